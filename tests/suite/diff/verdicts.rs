//! Which verdict and which exit code `diff` gives for a change that is known: none, another seed, problem or setting, a
//! cell that is gone, worse, diverged or damaged, and a defect of the engine.

use super::{json, pair, ran, rewrite, scaled, verdicts};
use crate::support::Bench;
use crate::wrong::{self, Mutation};
use exactfed::compare::{
    ChangeVerdict, Options, SCHEMA, Side, SideCell, SideExperiment, SideRuns, compare,
};
use exactfed::manifest::Source;
use exactfed::problem::arrays::NoFiles;
use exactfed::runner::prepare;
use exactfed::trace::{self, Outcome, Trace};

#[test]
fn the_same_and_other_threads_are_bit_identical() {
    let bench = Bench::new();
    ran(&bench, "a", &[], &["--threads", "1"]);
    ran(&bench, "b", &[], &["--threads", "3"]);
    let output = bench.run(&["diff", "a", "b"]).expect(0);
    assert_eq!(
        output.out,
        "before  a (results folder)\nafter   b (results folder)\n3 cells bit-identical, 0 changed.\n"
    );
    bench.run(&["diff", "a", "a", "--fail-on", "changed,removed,added,incomparable"]).expect(0);
}

#[test]
fn another_seed_is_not_comparable() {
    let bench = pair(&[("seed = 3", "seed = 3\nnoise-seed = 4")]);
    bench
        .run(&["diff", "a", "b"])
        .expect(3)
        .prints("small: another noise seed (3 before, 4 after)");
    let bench = pair(&[("seed = 3", "seed = 4")]);
    bench.run(&["diff", "a", "b"]).expect(3).prints("small: another seed (3 before, 4 after)");
    for format in ["md", "html", "json"] {
        let output = bench.run(&["diff", "a", "b", "--format", format]).expect(3);
        assert!(output.out.to_lowercase().contains("seed"), "{}", output.out);
    }
    let other = bench.read("b/exactfed.toml").replace("schema = 5", "schema = 1");
    bench.write("b/exactfed.toml", &other);
    bench.run(&["diff", "a", "b"]).expect(3).prints("another schema");
}

/// A step size one per cent larger has the draws of the smaller one, so that runs are compared in pairs and six of them
/// are enough to tell, where there are many local steps, that the change lies within the margin.
#[test]
fn a_step_one_percent_larger_is_paired_and_within_the_margin() {
    let bench = pair(&[("0.05", "0.0505")]);
    let found = json(&bench, "a", "b");
    assert_eq!(found["identical"], 0);
    assert_eq!(found["added"].as_array().unwrap().len(), 0);
    assert_eq!(verdicts(&found).len(), 3);
    let mut sorted = verdicts(&found);
    sorted.sort();
    let wanted = [
        ("equivalent", "Fed | Avg, H = 5"),
        ("equivalent", "Scaffold"),
        ("underpowered", "Fed | Avg, H = 2"),
    ];
    assert_eq!(sorted, wanted, "{found}");
    let other = &found["changed"][0]["other-settings"][0];
    assert_eq!((&other["before"], &other["after"]), (&"0.05".into(), &"0.0505".into()));
    let output = bench.run(&["diff", "a", "b"]).expect(0);
    output.prints("With other settings:").prints("step-size 0.05 → 0.0505");
    bench.run(&["diff", "a", "b", "--fail-on", "changed"]).expect(1);
}

/// With another l2, other data or another start, θ* or the way to it is another: the cells are named, and their errors
/// are not compared, whatever else changed.
#[test]
fn cells_of_another_problem_are_named_and_not_compared() {
    for (edit, setting) in [
        (("l2 = 0.2", "l2 = 5.0"), "l2 0.2 → 5"),
        (("spread = 1.0", "spread = 0.5"), "spread 1 → 0.5"),
        (("zero = true", "offset = 3.0"), "offset – → 3"),
    ] {
        let bench = pair(&[edit, ("0.05", "0.06")]);
        let output = bench.run(&["diff", "a", "b"]).expect(3);
        output.prints("small: another problem or start in 3 cells").prints(setting);
        assert!(!output.out.contains("worse") && !output.out.contains("better"), "{}", output.out);
        let found = json(&bench, "a", "b");
        let count = |key: &str| found[key].as_array().unwrap().len();
        assert_eq!((count("other-problems"), count("changed"), count("claims")), (3, 0, 0));
        assert_eq!((count("removed"), count("added"), found["tested"].as_u64()), (0, 0, Some(0)));
        for side in ["a", "b"] {
            bench.run(&["report", side, "--out", &format!("{side}-pages"), "--quiet"]);
        }
        let output = bench.run(&["diff", "a-pages", "b-pages"]).expect(3);
        output.prints("another problem or start in 3 cells");
    }
}

/// Where an axis varies the problem, cells with a counterpart of their problem are compared, and the others are named.
#[test]
fn an_axis_of_the_problem_pairs_within_each_problem() {
    let bench = Bench::new();
    ran(&bench, "a", &[("l2 = 0.2", "l2 = [0.2, 0.4]")], &[]);
    ran(&bench, "b", &[("l2 = 0.2", "l2 = [0.2, 0.6]"), ("0.05", "0.06")], &[]);
    let found = json(&bench, "a", "b");
    let count = |key: &str| found[key].as_array().unwrap().len();
    assert_eq!((count("changed"), count("other-problems")), (3, 3), "{found}");
    for change in found["changed"].as_array().unwrap() {
        let others = change["other-settings"].as_array().unwrap();
        assert!(others.iter().all(|o| o["path"].as_str().unwrap().ends_with("step-size")));
    }
    bench.run(&["diff", "a", "b", "--fail-on", "incomparable"]).expect(1);
    for format in ["text", "md", "html"] {
        let output = bench.run(&["diff", "a", "b", "--format", format, "--fail-on", "none"]);
        assert!(output.expect(0).out.contains("another problem or start in 3 cells"));
    }
}

#[test]
fn a_cell_that_is_gone_is_reported() {
    let bench = pair(&[("[2, 5]", "2")]);
    let output = bench.run(&["diff", "a", "b"]).expect(0);
    output
        .prints("removed         small: Fed | Avg, H = 5")
        .prints("2 cells bit-identical, 0 changed.");
    bench.run(&["diff", "a", "b", "--fail-on", "removed"]).expect(1);
    let output = bench.run(&["diff", "b", "a", "--fail-on", "removed"]).expect(0);
    output.prints("added           small: Fed | Avg, H = 5");
}

#[test]
fn a_cell_that_is_worse_fails_and_takes_its_claim_along() {
    let bench = pair(&[]);
    rewrite(&bench, &scaled("Scaffold", 1000.0));
    let output = bench.run(&["diff", "a", "b"]).expect(1);
    output
        .prints("2 cells bit-identical, 1 changed: 1 worse.")
        .prints("claim  small: small: supported")
        .prints("Fails: 1 worse, 1 claim.");
    bench.run(&["diff", "a", "b", "--fail-on", "diverged"]).expect(0);
    bench.run(&["diff", "b", "a"]).expect(0);
    assert_eq!(verdicts(&json(&bench, "b", "a")), [("better", "Scaffold")]);
}

#[test]
fn a_cell_that_diverges_comes_first() {
    let bench = pair(&[]);
    rewrite(&bench, &|label, replicate, trace| {
        scaled("Fed | Avg", 3.0)(label, replicate, trace);
        if label == "Scaffold" && replicate == 4 {
            trace.outcome = Outcome::Diverged;
        }
    });
    let found = json(&bench, "a", "b");
    let kinds: Vec<&str> = verdicts(&found).iter().map(|(v, _)| *v).collect();
    assert_eq!(kinds, ["newly diverged", "worse", "worse"]);
    assert_eq!(found["changed"][0]["diverged"], serde_json::json!([0, 1]));
    assert_eq!(found["changed"][0]["ratio"], serde_json::Value::Null);
    let output = bench.run(&["diff", "a", "b", "--fail-on", "diverged"]).expect(1);
    output.prints("1 of 6 runs diverge and did not before");
    let page = bench.run(&["diff", "a", "b", "--format", "html"]).expect(1);
    page.prints("<b>0 → 1</b> <span>of 6 runs diverged</span>")
        .prints("Scaffold</span> diverges in runs that did not, the error of <span");
}

#[test]
fn a_damaged_cell_fails_and_the_others_are_compared() {
    let bench = pair(&[]);
    let cell = bench.cells("b/small").remove(0);
    bench.damage(&cell);
    let output = bench.run(&["diff", "a", "b"]).expect(1);
    output
        .prints("2 cells bit-identical, 1 changed: 1 failed.")
        .prints(".parquet does not have the hash");
    std::fs::remove_file(bench.path(&cell)).unwrap();
    bench.run(&["diff", "a", "b"]).expect(1).prints("no results are stored");
}

/// The side of a diff that results of a mutated engine give.
fn simulated(mutation: Mutation) -> Side {
    let text = wrong::manifest(10, "[4, 8]");
    let source = Source { name: "t".into(), text, ..Source::default() };
    let plan = exactfed::evidence::plan("e".into(), source).unwrap_or_else(|e| panic!("{e}"));
    let cells = plan.cells.iter().map(|planned| {
        let prepared = prepare(&NoFiles, &[planned]).unwrap();
        let traces = wrong::traces(&prepared[0], mutation);
        let finals: Vec<Option<f64>> = traces.iter().map(Trace::final_error).collect();
        let runs = SideRuns::done(trace::digest(&traces), finals);
        (planned.id, SideCell { label: planned.label.as_str().into(), runs, ..SideCell::default() })
    });
    let cells = cells.collect();
    let record = SideExperiment { schema: SCHEMA, seed: 5, cells, ..SideExperiment::default() };
    Side { name: "s".into(), experiments: [("e".to_owned(), record)].into(), foreign: None }
}

/// After a flipped sign of the control variates, the algorithms that have them are worse, and all
/// others keep their bits.
#[test]
fn a_flipped_sign_is_worse_where_it_matters() {
    let good = simulated(Mutation::None);
    let flipped = simulated(Mutation::FlippedSign);
    let found = compare(&good, &flipped, &Options::default());
    assert_eq!(found.identical, 2);
    assert_eq!(found.changed.len(), 2);
    for change in &found.changed {
        assert!(change.name.starts_with("SCAFFLSA"), "{}", change.name);
        let verdict = change.verdict;
        let is_worse = matches!(verdict, ChangeVerdict::Worse | ChangeVerdict::NewlyDiverged);
        assert!(is_worse, "{}: {verdict:?}", change.name);
    }
    let back = compare(&good, &simulated(Mutation::None), &Options::default());
    assert_eq!((back.identical, back.changed.len()), (4, 0));
}
