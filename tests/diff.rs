//! `diff` as a user meets it: pairs with a known truth, each with the verdict and
//! the exit code that it must get.

mod support;

use driftbench::analysis::compare::{SideRuns, record};
use driftbench::manifest::Source;
use driftbench::plan::Plan;
use driftbench::store::Store;
use driftbench::trace::{Outcome, Trace};
use std::time::Duration;
use support::process::Program;
use support::{Bench, Said};

const MANIFEST: &str = r#"
title = "Small <b>problems</b>"
seed = 3
replicates = 6

[problem.logistic]
dimension = 2
records = 20
clients = 3
data = { heterogeneous = { spread = 1.0, perturbation = 0.5 } }
l2 = 0.2

[start]
zero = true

[budget]
rounds = 30

[record]
every = 5

[[algorithm.fedavg]]
label = "Fed | Avg"
step-size = 0.05
local-steps = [2, 5]

[[algorithm.scaffold]]
step-size = 0.05
local-steps = 5

[[claim.less]]
id = "small"
statement = "errors are below 1"
left = { label = "Scaffold" }
value = 1.0
"#;

const FILE: &str = "experiments/small.toml";

/// Runs the manifest with an edit into a folder.
fn ran(bench: &Bench, out: &str, edit: &dyn Fn(&str) -> String, more: &[&str]) {
    bench.write(FILE, &edit(MANIFEST));
    let mut arguments = vec!["run", FILE, "--out", out, "--quiet"];
    arguments.extend(more);
    bench.run(&arguments).expect(0);
}

fn plain(text: &str) -> String {
    text.to_owned()
}

/// A bench with results in `a` and `b`, the second of an edited manifest.
fn pair(edit: &dyn Fn(&str) -> String) -> Bench {
    let bench = Bench::new();
    ran(&bench, "a", &plain, &[]);
    ran(&bench, "b", edit, &[]);
    bench
}

/// Results in `b` as an engine that did this to the traces would have left them.
fn rewrite(bench: &Bench, edit: &dyn Fn(&str, usize, &mut Trace)) {
    let store = Store::open_existing(&bench.path("b")).unwrap();
    let kept = store.experiments().unwrap().remove(0);
    let (name, text) = (kept.source.name, kept.source.text);
    let source = Source { name, text, ..Source::default() };
    let plan = Plan::new(kept.name, source).unwrap_or_else(|e| panic!("{e}"));
    for cell in &plan.cells {
        let mut stored = store.read(&plan.experiment, &cell.id).unwrap().unwrap();
        stored.traces.iter_mut().enumerate().for_each(|(r, t)| edit(&cell.label, r, t));
        let by = &stored.record.provenance;
        store.write(&plan, cell, 3, &stored.traces, Duration::from_secs(1), by).unwrap();
    }
}

fn json(bench: &Bench, a: &str, b: &str) -> serde_json::Value {
    let said = bench.run(&["diff", a, b, "--format", "json", "--fail-on", "none"]);
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {} {}", said.out, said.err))
}

fn verdicts(json: &serde_json::Value) -> Vec<(&str, &str)> {
    let text = |v: &'_ serde_json::Value| -> &'static str { v.as_str().unwrap().to_owned().leak() };
    let all = json["changed"].as_array().unwrap();
    all.iter().map(|c| (text(&c["verdict"]), text(&c["name"]))).collect()
}

#[test]
fn the_same_and_other_threads_are_bit_identical() {
    let bench = Bench::new();
    ran(&bench, "a", &plain, &["--threads", "1"]);
    ran(&bench, "b", &plain, &["--threads", "3"]);
    let said = bench.run(&["diff", "a", "b"]).expect(0);
    assert_eq!(
        said.out,
        "before  a (results folder)\nafter   b (results folder)\n3 cells bit-identical, 0 changed.\n"
    );
    bench.run(&["diff", "a", "a", "--fail-on", "changed,removed,added,incomparable"]).expect(0);
}

#[test]
fn another_seed_is_not_comparable() {
    let bench = pair(&|text| text.replace("seed = 3", "seed = 4"));
    let said = bench.run(&["diff", "a", "b"]).expect(3);
    assert!(said.out.contains("small: another seed (3 before, 4 after)"), "{}", said.out);
    for format in ["md", "html", "json"] {
        let said = bench.run(&["diff", "a", "b", "--format", format]).expect(3);
        assert!(said.out.to_lowercase().contains("seed"), "{}", said.out);
    }
    let other = bench.read("b/driftbench.toml").replace("schema = 4", "schema = 1");
    bench.write("b/driftbench.toml", &other);
    let said = bench.run(&["diff", "a", "b"]).expect(3);
    assert!(said.out.contains("another schema"), "{}", said.out);
}

#[test]
fn another_manifest_is_not_comparable() {
    let bench = pair(&|text| {
        let head = text.split("[[algorithm").next().unwrap();
        format!("{head}[[algorithm.fedprox]]\nstep-size = 0.05\nlocal-steps = 3\nproximal = 0.1\n")
    });
    let said = bench.run(&["diff", "a", "b"]).expect(3);
    assert!(said.out.contains("another manifest"), "{}", said.out);
}

/// One per cent of the step size: the same draws, so that six runs tell a change
/// far below the noise where there are many local steps; it lies within the margin.
#[test]
fn a_step_one_percent_larger_is_paired_and_within_the_margin() {
    let bench = pair(&|text| text.replace("0.05", "0.0505"));
    let found = json(&bench, "a", "b");
    assert_eq!(found["identical"], 0);
    assert_eq!((found["added"].as_array().unwrap().len(), verdicts(&found).len()), (0, 3));
    let mut told = verdicts(&found);
    told.sort();
    let (few, many) = (("underpowered", "Fed | Avg, H = 2"), "Fed | Avg, H = 5");
    assert_eq!(told, [("equivalent", many), ("equivalent", "Scaffold"), few], "{found}");
    let other = &found["changed"][0]["other-settings"][0];
    assert_eq!((&other["before"], &other["after"]), (&"0.05".into(), &"0.0505".into()));
    let said = bench.run(&["diff", "a", "b"]).expect(0);
    assert!(said.out.contains("With other settings:"), "{}", said.out);
    assert!(said.out.contains("step-size 0.05 → 0.0505"), "{}", said.out);
    bench.run(&["diff", "a", "b", "--fail-on", "changed"]).expect(1);
}

/// With another l2, other data or another start, θ* or the way to it is another: errors are
/// not compared, though the cells are named, whatever else changed.
#[test]
fn cells_of_another_problem_are_named_and_not_compared() {
    for (edit, told) in [
        (("l2 = 0.2", "l2 = 5.0"), "l2 0.2 → 5"),
        (("spread = 1.0", "spread = 0.5"), "spread 1 → 0.5"),
        (("zero = true", "offset = 3.0"), "offset – → 3"),
    ] {
        let bench = pair(&|text| text.replace(edit.0, edit.1).replace("0.05", "0.06"));
        let said = bench.run(&["diff", "a", "b"]).expect(3);
        assert!(said.out.contains("small: another problem or start in 3 cells"), "{}", said.out);
        assert!(said.out.contains(told), "{}", said.out);
        assert!(!said.out.contains("worse") && !said.out.contains("better"), "{}", said.out);
        let found = json(&bench, "a", "b");
        let count = |key: &str| found[key].as_array().unwrap().len();
        assert_eq!((count("other-problems"), count("changed"), count("claims")), (3, 0, 0));
        assert_eq!((count("removed"), count("added"), found["tested"].as_u64()), (0, 0, Some(0)));
        for side in ["a", "b"] {
            bench.run(&["report", side, "--out", &format!("{side}-pages"), "--quiet"]);
        }
        let pages = bench.run(&["diff", "a-pages", "b-pages"]).expect(3);
        assert!(pages.out.contains("another problem or start in 3 cells"), "{}", pages.out);
    }
}

/// Cells of the same problem are compared beside others that are not.
#[test]
fn an_axis_of_the_problem_pairs_within_each_problem() {
    let edit = |l2: &'static str, step: &'static str| {
        move |text: &str| text.replace("l2 = 0.2", l2).replace("0.05", step)
    };
    let bench = Bench::new();
    ran(&bench, "a", &edit("l2 = [0.2, 0.4]", "0.05"), &[]);
    ran(&bench, "b", &edit("l2 = [0.2, 0.6]", "0.06"), &[]);
    let found = json(&bench, "a", "b");
    let count = |key: &str| found[key].as_array().unwrap().len();
    assert_eq!((count("changed"), count("other-problems")), (3, 3), "{found}");
    for change in found["changed"].as_array().unwrap() {
        let others = change["other-settings"].as_array().unwrap();
        assert!(others.iter().all(|o| o["path"].as_str().unwrap().ends_with("step-size")));
    }
    bench.run(&["diff", "a", "b", "--fail-on", "incomparable"]).expect(1);
    for format in ["text", "md", "html"] {
        let said = bench.run(&["diff", "a", "b", "--format", format, "--fail-on", "none"]);
        assert!(said.expect(0).out.contains("another problem or start in 3 cells"));
    }
}

#[test]
fn a_cell_that_is_gone_is_told() {
    let bench = pair(&|text| text.replace("[2, 5]", "2"));
    let said = bench.run(&["diff", "a", "b"]).expect(0);
    assert!(said.out.contains("removed         small: Fed | Avg, H = 5"), "{}", said.out);
    assert!(said.out.contains("2 cells bit-identical, 0 changed."), "{}", said.out);
    bench.run(&["diff", "a", "b", "--fail-on", "removed"]).expect(1);
    let said = bench.run(&["diff", "b", "a", "--fail-on", "removed"]).expect(0);
    assert!(said.out.contains("added           small: Fed | Avg, H = 5"), "{}", said.out);
}

fn scaled(label: &'static str, factor: f64) -> impl Fn(&str, usize, &mut Trace) {
    move |of, _, trace| {
        if of == label {
            trace.sq_error.iter_mut().for_each(|x| *x *= factor);
        }
    }
}

#[test]
fn a_cell_that_is_worse_fails_and_takes_its_claim_along() {
    let bench = pair(&plain);
    rewrite(&bench, &scaled("Scaffold", 1000.0));
    let said = bench.run(&["diff", "a", "b"]).expect(1);
    assert!(said.out.contains("2 cells bit-identical, 1 changed: 1 worse."), "{}", said.out);
    assert!(said.out.contains("claim  small: small: supported"), "{}", said.out);
    assert!(said.out.contains("Fails: 1 worse, 1 claims."), "{}", said.out);
    bench.run(&["diff", "a", "b", "--fail-on", "diverged"]).expect(0);
    bench.run(&["diff", "b", "a"]).expect(0);
    assert_eq!(verdicts(&json(&bench, "b", "a")), [("better", "Scaffold")]);
}

#[test]
fn a_cell_that_diverges_comes_first() {
    let bench = pair(&plain);
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
    let said = bench.run(&["diff", "a", "b", "--fail-on", "diverged"]).expect(1);
    assert!(said.out.contains("1 of 6 runs diverge and did not before"), "{}", said.out);
}

#[test]
fn a_damaged_cell_fails_and_the_others_are_compared() {
    let bench = pair(&plain);
    let folder = std::fs::read_dir(bench.path("b/small")).unwrap().flatten();
    let cell = folder.map(|e| e.path()).find(|p| p.is_dir()).unwrap();
    let path = cell.join("traces.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let said = bench.run(&["diff", "a", "b"]).expect(1);
    assert!(said.out.contains("2 cells bit-identical, 1 changed: 1 failed."), "{}", said.out);
    assert!(said.out.contains("traces.parquet does not have the hash"), "{}", said.out);
    std::fs::remove_dir_all(cell).unwrap();
    let said = bench.run(&["diff", "a", "b"]).expect(1);
    assert!(said.out.contains("no results are stored"), "{}", said.out);
}

/// Reports of `a`, in `pages`.
fn reported() -> Bench {
    let bench = Bench::new();
    ran(&bench, "a", &plain, &[]);
    bench.run(&["report", "a", "--out", "pages", "--quiet"]).expect(0);
    bench
}

#[test]
fn reports_hold_what_a_diff_needs() {
    let bench = reported();
    let said = bench.run(&["diff", "pages", "a"]).expect(0);
    assert!(said.out.contains("3 cells bit-identical, 0 changed."), "{}", said.out);
    // One run is lost, another ten times worse.
    let [toml, csv] =
        [record::RECORD, record::FINALS].map(|f| bench.read(&format!("pages/small/{f}")));
    let mut kept = record::read(Some(&toml), &csv).unwrap();
    let cell = kept.cells.values_mut().find(|c| c.label == "Scaffold").unwrap();
    let SideRuns::Done { digest, finals } = &mut cell.runs else { panic!() };
    digest.push('x');
    finals.iter_mut().flatten().for_each(|x| *x *= 10.0);
    for (file, text) in record::files(&kept) {
        bench.write(&format!("other/small/{file}"), &text);
    }
    assert_eq!(verdicts(&json(&bench, "pages", "other")), [("worse", "Scaffold")]);
    assert_eq!(verdicts(&json(&bench, "a", "other")), [("worse", "Scaffold")]);
    let said = bench.run(&["diff", "pages", "other", "--format", "html"]).expect(1);
    assert!(said.out.contains("One dot per run: reports store final errors and no curves."));
}

#[test]
fn a_corrupt_file_costs_a_message_with_its_line() {
    let bench = reported();
    let path = format!("pages/small/{}", record::FINALS);
    let good = bench.read(&path);
    let refused = |text: &str, told: &str| {
        bench.write(&path, text);
        let said = bench.run(&["diff", "pages", "a", "--out", "out.md"]).expect(2);
        assert!(said.err.contains(told), "{}", said.err);
        assert!(!bench.path("out.md").exists());
    };
    let line = good.lines().nth(2).unwrap();
    let broken = line.rsplit_once(' ').unwrap().0.to_owned() + " 0.0x1";
    refused(&good.replace(line, &broken), "pages: small/finals.csv:3: `0.0x1` is neither");
    refused(&good.replace(line, "a,b"), "finals.csv:3: does not have the columns");
    let (head, last) = good.trim_end().rsplit_once(' ').unwrap();
    refused(&format!("{head} 1{last}\n"), "finals.csv: does not have the hash");
    std::fs::remove_file(bench.path(&path)).unwrap();
    let said = bench.run(&["diff", "pages", "a"]).expect(2);
    assert!(said.err.contains("finals.csv: is missing"), "{}", said.err);
    let said = bench.run(&["diff", "experiments", "a"]).expect(2);
    assert!(said.err.contains("holds neither results"), "{}", said.err);
    bench.write("pages/small/record.toml", "schema = ");
    let said = bench.run(&["diff", "pages", "a"]).expect(2);
    assert!(said.err.contains("finals.csv: is missing") || said.err.contains("record.toml:1"));
}

fn git(bench: &Bench, arguments: &[&str]) -> Said {
    let git = Program::new("git").args(["-c", "user.name=t", "-c", "user.email=t@t"]);
    git.args(arguments).folder(&bench.folder).run().into()
}

#[test]
fn revisions_are_read_without_a_checkout() {
    let bench = reported();
    git(&bench, &["init", "-q"]).expect(0);
    std::fs::rename(bench.path("pages"), bench.path("reports")).unwrap();
    git(&bench, &["add", "reports"]).expect(0);
    git(&bench, &["commit", "-qm", "reports"]).expect(0);
    let said = bench.run(&["diff", "HEAD", "reports"]).expect(0);
    assert!(said.out.contains("HEAD (git revision, commit "), "{}", said.out);
    assert!(said.out.contains("3 cells bit-identical, 0 changed."), "{}", said.out);
    bench.run(&["diff", "HEAD:reports", "a"]).expect(0);
    // A path comes before a revision of that name.
    git(&bench, &["branch", "a"]).expect(0);
    let said = bench.run(&["diff", "a", "HEAD"]).expect(0);
    assert!(said.out.contains("before  a (results folder)"), "{}", said.out);
    let said = bench.run(&["diff", "HEAD:elsewhere", "a"]).expect(2);
    assert!(said.err.contains("has no reports in elsewhere/"), "{}", said.err);
    for no in ["nowhere", "-x", "--help=x", "HEAD~9"] {
        let said = bench.run(&["diff", "a", "--", no]);
        let said = if no.starts_with('-') { bench.run(&["diff", "--", no, "a"]) } else { said };
        assert!(said.err.contains("nor a git revision"), "{no}: {}", said.err);
        assert_eq!(said.code, 2);
    }
}

#[test]
fn without_git_a_revision_is_refused_in_plain_words() {
    let bench = reported();
    let diff = support::driftbench().args(["diff", "HEAD", "a"]).folder(&bench.folder);
    let said = Said::from(diff.env("PATH", "").run()).expect(2);
    assert!(said.err.contains("git: is not installed"), "{}", said.err);
}

#[test]
fn pages_are_escaped_and_whole_and_the_same_twice() {
    let bench = pair(&|text| text.replace("Small <b>", "<script>").replace("0.05", "0.09"));
    let page = |format: &str| bench.run(&["diff", "a", "b", "--format", format]).out;
    let html = page("html");
    assert_eq!(html, page("html"));
    assert!(!html.contains("<script") && !html.contains("http:") || html.contains("w3.org"));
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http:") && !outside.contains("https:") && !html.contains("NaN"));
    assert_eq!(html.matches("<figure>").count(), 6, "two charts a cell");
    let md = page("md");
    assert_eq!(md, page("md"));
    assert!(md.contains("Fed \\| Avg") && md.contains("<details"), "{md}");
    let lines = md.lines().filter(|l| l.starts_with("| ") && l.contains("Fed"));
    let bars = |l: &str| l.replace("\\|", "").matches('|').count();
    assert!(lines.clone().count() == 2 && lines.clone().all(|l| bars(l) == 10), "{md}");
    bench.run(&["diff", "a", "b", "--format", "md", "--out", "diff.md"]);
    assert_eq!(bench.read("diff.md"), md);
}

#[test]
fn markdown_fits_a_comment() {
    let bench = reported();
    let files = [record::RECORD, record::FINALS].map(|f| bench.read(&format!("pages/small/{f}")));
    let mut kept = record::read(Some(&files[0]), &files[1]).unwrap();
    let cell = kept.cells.values().next().unwrap().clone();
    for side in ["x", "y"] {
        kept.cells.clear();
        for i in 0..1500 {
            let mut cell = cell.clone();
            let SideRuns::Done { digest, .. } = &mut cell.runs else { panic!() };
            digest.push_str(side);
            kept.cells.insert(format!("{i:016x}"), cell);
        }
        for (file, text) in record::files(&kept) {
            bench.write(&format!("{side}/small/{file}"), &text);
        }
    }
    let said = bench.run(&["diff", "x", "y", "--format", "md"]).expect(0);
    assert!(said.out.chars().count() <= 65_536);
    assert!(said.out.contains("1500 same final errors"), "{}", &said.out[..400]);
    assert!(said.out.contains("of 1500 rows are left out: a comment holds 65 536 characters"));
}

#[test]
fn options_are_checked() {
    let bench = reported();
    let refused = |arguments: &[&str], told: &str| {
        let mut all = vec!["diff", "a", "a"];
        all.extend(arguments);
        let said = bench.run(&all).expect(2);
        assert!(said.err.contains(told), "{}", said.err);
    };
    refused(&["--fail-on", "wrose"], "\"wrose\" is none of worse, diverged, failed");
    refused(&["--margin", "0"], "--margin is 0: it must be above 0");
    refused(&["--floor", "nan"], "--floor is NaN");
    refused(&["--out", "no/such/folder/x.md"], "no/such/folder");
}
