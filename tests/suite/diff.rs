//! `diff` as a user meets it: pairs with a known truth, each with the verdict and
//! the exit code that it must get.

use crate::support::markup::{Tag, tags};
use crate::support::process::Program;
use crate::support::{Bench, Finished, edited, root};
use crate::wrong::{self, Mutation};
use exactfed::chart::style::color_name;
use exactfed::compare::{
    ChangeVerdict, Options, SCHEMA, Side, SideCell, SideExperiment, SideRuns, compare, record,
};
use exactfed::evidence::Color;
use exactfed::manifest::Source;
use exactfed::plan::CellId;
use exactfed::problem::arrays::NoFiles;
use exactfed::runner::prepare;
use exactfed::trace::{self, Outcome, Trace, TraceDigest};

const MANIFEST: &str = include_str!("../manifests/small-problems.toml");

const FILE: &str = "experiments/small.toml";

/// Changes of the manifest.
type Changes<'a> = &'a [(&'a str, &'a str)];

/// Runs the manifest with changes into a folder.
fn ran(bench: &Bench, out: &str, changes: Changes<'_>, more: &[&str]) {
    bench.write(FILE, edited(MANIFEST, changes));
    bench.compute(&[&[FILE, "--out", out], more].concat());
}

/// A bench with results in `a` and `b`, the second of a changed manifest.
fn pair(changes: Changes<'_>) -> Bench {
    let bench = Bench::new();
    ran(&bench, "a", &[], &[]);
    ran(&bench, "b", changes, &[]);
    bench
}

/// Results in `b` as an engine that did this to the traces would have left them.
fn rewrite(bench: &Bench, edit: &dyn Fn(&str, usize, &mut Trace)) {
    bench.forge("b", |cell, stored| {
        stored.traces.iter_mut().enumerate().for_each(|(r, t)| edit(&cell.label, r, t));
        true
    });
}

fn json(bench: &Bench, a: &str, b: &str) -> serde_json::Value {
    let output = bench.run(&["diff", a, b, "--format", "json", "--fail-on", "none"]);
    serde_json::from_str(&output.out)
        .unwrap_or_else(|e| panic!("{e}: {} {}", output.out, output.err))
}

fn verdicts(json: &serde_json::Value) -> Vec<(&str, &str)> {
    let all = json["changed"].as_array().unwrap().iter();
    all.map(|c| (c["verdict"].as_str().unwrap(), c["name"].as_str().unwrap())).collect()
}

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

/// One per cent of the step size: the same draws, so that six runs tell a change
/// far below the noise where there are many local steps; it lies within the margin.
#[test]
fn a_step_one_percent_larger_is_paired_and_within_the_margin() {
    let bench = pair(&[("0.05", "0.0505")]);
    let found = json(&bench, "a", "b");
    assert_eq!(found["identical"], 0);
    assert_eq!((found["added"].as_array().unwrap().len(), verdicts(&found).len()), (0, 3));
    let mut sorted = verdicts(&found);
    sorted.sort();
    let (few, many) = (("underpowered", "Fed | Avg, H = 2"), "Fed | Avg, H = 5");
    assert_eq!(sorted, [("equivalent", many), ("equivalent", "Scaffold"), few], "{found}");
    let other = &found["changed"][0]["other-settings"][0];
    assert_eq!((&other["before"], &other["after"]), (&"0.05".into(), &"0.0505".into()));
    let output = bench.run(&["diff", "a", "b"]).expect(0);
    output.prints("With other settings:").prints("step-size 0.05 → 0.0505");
    bench.run(&["diff", "a", "b", "--fail-on", "changed"]).expect(1);
}

/// With another l2, other data or another start, θ* or the way to it is another: errors are
/// not compared, though the cells are named, whatever else changed.
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

/// Cells of the same problem are compared beside others that are not.
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

fn scaled(label: &'static str, factor: f64) -> impl Fn(&str, usize, &mut Trace) {
    move |of, _, trace| {
        if of == label {
            trace.sq_error.iter_mut().for_each(|x| *x *= factor);
        }
    }
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

/// Reports of `a`, in `pages`.
fn reported() -> Bench {
    let bench = Bench::new();
    ran(&bench, "a", &[], &[]);
    bench.run(&["report", "a", "--out", "pages", "--quiet"]).expect(0);
    bench
}

fn recorded(bench: &Bench) -> SideExperiment {
    let files = [record::RECORD, record::FINALS].map(|f| bench.read(&format!("pages/small/{f}")));
    record::read(Some(&files[0]), &files[1]).unwrap()
}

fn write_record(bench: &Bench, pages: &str, of: &SideExperiment) {
    record::files(of, || of.cells.clone().into_iter())
        .iter()
        .for_each(|(f, text)| bench.write(&format!("{pages}/small/{f}"), text));
}

#[test]
fn reports_hold_what_a_diff_needs() {
    let bench = reported();
    bench.run(&["diff", "pages", "a"]).expect(0).prints("3 cells bit-identical, 0 changed.");
    // One run is lost, another ten times worse.
    let mut kept = recorded(&bench);
    let cell = kept.cells.values_mut().find(|c| *c.label == *"Scaffold").unwrap();
    let SideRuns::Done { digest, finals, .. } = &mut cell.runs else { panic!() };
    *digest = TraceDigest::of("another");
    finals.iter_mut().flatten().for_each(|x| *x *= 10.0);
    write_record(&bench, "other", &kept);
    assert_eq!(verdicts(&json(&bench, "pages", "other")), [("worse", "Scaffold")]);
    assert_eq!(verdicts(&json(&bench, "a", "other")), [("worse", "Scaffold")]);
    let output = bench.run(&["diff", "pages", "other", "--format", "html"]).expect(1);
    output.prints("One dot per run: reports store final errors and no curves.");
}

#[test]
fn documents_say_how_many_runs_reports_keep() {
    let most = record::MOST_KEPT;
    for (file, words) in [
        ("docs/DIFF.md", format!("first {most} replicates")),
        ("docs/FORMAT.md", format!("first {most} runs")),
    ] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&words), "{file}");
    }
}

#[test]
fn a_corrupt_file_costs_a_message_with_its_line() {
    let bench = reported();
    let path = format!("pages/small/{}", record::FINALS);
    let good = bench.read(&path);
    let refused = |text: &str, message: &str| {
        bench.write(&path, text);
        bench.run(&["diff", "pages", "a", "--out", "out.md"]).expect(2).warns(message);
        assert!(!bench.path("out.md").exists());
    };
    let (head, last) = good.trim_end().rsplit_once(' ').unwrap();
    refused(&format!("{head} {last}x\n"), "pages: small/finals.csv:4: `");
    refused(&format!("{head} 1{last}\n"), "finals.csv: does not have the hash");
    std::fs::remove_file(bench.path(&path)).unwrap();
    bench.run(&["diff", "pages", "a"]).expect(2).warns("finals.csv: is missing");
    bench.run(&["diff", "experiments", "a"]).expect(2).warns("holds neither results");
    bench.write("pages/small/record.toml", "schema = ");
    let output = bench.run(&["diff", "pages", "a"]).expect(2);
    assert!(output.err.contains("finals.csv: is missing") || output.err.contains("record.toml:1"));
}

pub fn git(bench: &Bench, arguments: &[&str]) -> Finished {
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
    let output = bench.run(&["diff", "HEAD", "reports"]).expect(0);
    assert!(output.out.contains("HEAD (git revision, commit "), "{}", output.out);
    assert!(output.out.contains("3 cells bit-identical, 0 changed."), "{}", output.out);
    bench.run(&["diff", "HEAD:reports", "a"]).expect(0);
    // A path comes before a revision of that name.
    git(&bench, &["branch", "a"]).expect(0);
    bench.run(&["diff", "a", "HEAD"]).expect(0).prints("before  a (results folder)");
    bench.run(&["diff", "HEAD:elsewhere", "a"]).expect(2).warns("has no reports in elsewhere/");
    for no in ["nowhere", "-x", "--help=x", "HEAD~9"] {
        let output = bench.run(&["diff", "a", "--", no]);
        let output = if no.starts_with('-') { bench.run(&["diff", "--", no, "a"]) } else { output };
        assert!(output.err.contains("nor a git revision"), "{no}: {}", output.err);
        assert_eq!(output.code, 2);
    }
}

#[test]
fn without_git_a_revision_is_refused_in_plain_words() {
    let bench = reported();
    let diff = crate::support::exactfed().args(["diff", "HEAD", "a"]).folder(&bench.folder);
    Finished::from(diff.env("PATH", "").run()).expect(2).warns("git: is not installed");
}

#[test]
fn pages_are_escaped_and_whole_and_the_same_twice() {
    let bench = pair(&[("Small <b>", "<script>"), ("0.05", "0.09")]);
    let page = |format: &str| bench.run(&["diff", "a", "b", "--format", format]).out;
    let html = page("html");
    assert_eq!(html, page("html"));
    assert!(!html.contains("<script") && !html.contains("http:") || html.contains("w3.org"));
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http:") && !outside.contains("https:") && !html.contains("NaN"));
    assert_eq!(html.matches("<figure>").count(), 3, "one figure a cell");
    assert_eq!(html.matches("<svg ").count(), 6, "two charts a cell");
    let md = page("md");
    assert_eq!(md, page("md"));
    assert!(md.contains("Fed \\| Avg") && md.contains("<details"), "{md}");
    let bars = |l: &str| l.replace("\\|", "").matches('|').count();
    let rows = |part: &str| -> Vec<usize> {
        part.lines().filter(|l| l.starts_with("| ") && l.contains("Fed")).map(bars).collect()
    };
    let (first, folded) = md.split_once("<details").unwrap();
    assert_eq!((rows(first), rows(folded)), (vec![6], vec![10, 10]), "{md}");
    bench.run(&["diff", "a", "b", "--format", "md", "--out", "diff.md"]);
    assert_eq!(bench.read("diff.md"), md);
}

/// A bench with a cell that is a thousand times worse, one that is a hundred times better, and one
/// of which the runs do not tell, in `b`.
fn worse_better_and_undecided() -> Bench {
    let prox = "local-steps = 5\n\n[[algorithm.fedprox]]\nlabel = \"Prox\"\nstep-size = 0.05\nlocal-steps = 3\nproximal = 0.1\n";
    let bench = Bench::new();
    for side in ["a", "b"] {
        ran(&bench, side, &[("local-steps = [2, 5]", prox)], &[]);
    }
    rewrite(&bench, &|label, replicate, trace| {
        scaled("Scaffold", 1000.0)(label, replicate, trace);
        scaled("Prox", 0.01)(label, replicate, trace);
        scaled("Fed | Avg", [9.0, 0.3, 8.0, 0.2, 7.0, 0.1][replicate])(label, replicate, trace);
    });
    bench
}

/// The texts between two marks, in their order.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap()).collect()
}

#[test]
fn pages_begin_with_the_largest_changes() {
    let bench = worse_better_and_undecided();
    let found = json(&bench, "a", "b");
    let names: Vec<&str> = verdicts(&found).iter().map(|(_, name)| *name).collect();
    assert_eq!(names, ["Scaffold", "Fed | Avg", "Prox"], "by verdict");
    let html = bench.run(&["diff", "a", "b", "--format", "html"]).expect(1).out;
    let names = between(&html, "<h3 class=\"family-", "</h3>");
    assert_eq!(
        names,
        ["2\">Scaffold", "5\">Prox", "0\">Fed | Avg"],
        "changes before the undecided"
    );
    let title = "3 of 3 cells changed: the error of <span class=\"family-2\">Scaffold</span> rose 1\u{a0}000-fold, the error of <span class=\"family-5\">Prox</span> fell 100-fold";
    assert_eq!(between(&html, "<h1>", "</h1>"), [title]);
    let order = ["<h1>", "Fails:", "Largest changes", "<figure>", "Changed cells (", "Claims"];
    let places: Vec<usize> = order.iter().map(|mark| html.find(mark).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    let md = bench.run(&["diff", "a", "b", "--format", "md"]).expect(1).out;
    let (first, folded) = md.split_once("<details").unwrap();
    let scaffold = first.find("| Scaffold |").unwrap();
    assert!(scaffold < first.find("| Prox |").unwrap() && !first.contains("| Fed"), "{md}");
    assert!(folded.contains("Fed \\| Avg"), "{md}");
}

/// The series of a drawing: label, colour and dash pattern.
fn drawn(svg: &str) -> Vec<[String; 3]> {
    let is_series = |tag: &Tag<'_>| tag.value("class").is_some_and(|c| c.starts_with("series "));
    let three = |tag: Tag<'_>| {
        let names = ["data-label", "data-color", "stroke-dasharray"];
        names.map(|name| tag.value(name).unwrap_or_default().to_owned())
    };
    tags(svg).into_iter().filter(is_series).map(three).collect()
}

#[test]
fn before_is_grey_and_dashed_under_after_in_its_familys_colour() {
    let bench = worse_better_and_undecided();
    let html = bench.run(&["diff", "a", "b", "--format", "html"]).expect(1).out;
    for (figure, family) in between(&html, "<figure>", "</figure>").iter().zip([2, 5, 0]) {
        let [curves, ratio] = &between(figure, "<svg ", "</svg>")[..] else { panic!("{figure}") };
        let [before, after] = &drawn(curves)[..] else { panic!("{curves}") };
        assert_eq!((&*before[0], &*before[1], &*after[0]), ("before", "none", "after"));
        let color = color_name(Color::of_family(family));
        assert_eq!(after[1], color, "the colour of the family");
        assert!(!before[2].is_empty() && after[2].is_empty(), "{before:?} {after:?}");
        let [ratio, one] = &drawn(ratio)[..] else { panic!("{ratio}") };
        assert_eq!((&*ratio[0], &ratio[1], &*one[0]), ("ratio", &after[1], "no change"));
    }
}

#[test]
fn what_did_not_change_is_one_line() {
    let bench = pair(&[]);
    let page = |out: &str| {
        let html = bench.run(&["diff", "a", "b", "--format", "html"]).out;
        assert!(html.contains(out), "{html}");
        html
    };
    let html = page("<h1>No cell changed</h1>");
    assert!(html.contains(">3 of 3 cells are bit-identical. No failures.<"), "{html}");
    assert!(!html.contains("<figure") && !html.contains("Largest changes"), "{html}");
    rewrite(&bench, &|label, replicate, trace| {
        scaled("Scaffold", [2.0, 0.5, 2.1, 0.4, 1.9, 0.6][replicate])(label, replicate, trace);
    });
    page("<h1>1 of 3 cells changed, none of them significantly</h1>");
    page("2 of 3 cells are bit-identical.");
    // One of those that did not change.
    let is_same = |pack: &String| {
        !String::from_utf8_lossy(&bench.read_bytes(pack)).contains("\"label\":\"Scaffold")
    };
    let cell = bench.cells("b/small").into_iter().find(is_same).unwrap();
    bench.damage(&cell);
    let html = page("has no sound results</h1>");
    let lost = html.find("Cells without sound results").unwrap();
    assert!(lost < html.find("<figure").unwrap() && html.contains("1 of 3 cells is bit-identical"));
}

#[test]
fn changes_link_to_the_page_of_their_experiment() {
    let bench = reported();
    ran(&bench, "b", &[("0.05", "0.09")], &[]);
    bench.run(&["report", "b", "--out", "other", "--quiet"]);
    let links = |out: &[&str]| {
        let common = ["diff", "pages", "other", "--format", "html", "--fail-on", "none"];
        let printed = bench.run(&[&common[..], out].concat()).expect(0).out;
        let page = out.last().map_or(printed, |file| bench.read(file)).replace("&#x2f;", "/");
        between(&page, "<a href=\"", "\"").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(links(&["--out", "diff.html"]), ["other/small/report.html"; 3]);
    assert_eq!(links(&["--out", "other/diff.html"]), ["small/report.html"; 3]);
    assert!(links(&["--out", "pages/diff.html"]).is_empty(), "the page is in no folder below");
    assert!(links(&[]).is_empty(), "there is no file that the link could be relative to");
}

#[test]
fn markdown_fits_a_comment() {
    let bench = reported();
    let mut kept = recorded(&bench);
    let cell = kept.cells.values().next().unwrap().clone();
    for side in ["x", "y"] {
        kept.cells.clear();
        for i in 0..1500 {
            let mut cell = cell.clone();
            let SideRuns::Done { digest, .. } = &mut cell.runs else { panic!() };
            *digest = TraceDigest::of(side);
            kept.cells.insert(CellId::of(&i.to_string()), cell);
        }
        write_record(&bench, side, &kept);
    }
    let output = bench.run(&["diff", "x", "y", "--format", "md"]).expect(0);
    assert!(output.out.chars().count() <= 65_536);
    assert!(output.out.contains("1500 same final errors"), "{}", &output.out[..400]);
    assert!(output.out.contains("of 1500 rows are left out: a comment holds 65 536 characters"));
}

#[test]
fn options_are_checked() {
    let bench = reported();
    let refused = |arguments: &[&str], message: &str| {
        let mut all = vec!["diff", "a", "a"];
        all.extend(arguments);
        bench.run(&all).expect(2).warns(message);
    };
    refused(&["--fail-on", "wrose"], "\"wrose\" is none of worse, diverged, failed");
    refused(&["--margin", "0"], "--margin is 0: it must be above 0");
    refused(&["--floor", "nan"], "--floor is NaN");
    refused(&["--out", "no/such/folder/x.md"], "no/such/folder");
}

/// The side that an engine gives.
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
    let (schema, cells) = (SCHEMA, cells.collect());
    let record = SideExperiment { schema, seed: 5, cells, ..SideExperiment::default() };
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
    let verdicts: Vec<(&str, ChangeVerdict)> =
        found.changed.iter().map(|c| (c.name.as_str(), c.verdict)).collect();
    let bad = |v: ChangeVerdict| matches!(v, ChangeVerdict::Worse | ChangeVerdict::NewlyDiverged);
    assert_eq!(verdicts.len(), 2);
    let all_worse = verdicts.iter().all(|(name, v)| name.starts_with("SCAFFLSA") && bad(*v));
    assert!(all_worse, "{verdicts:?}");
    let back = compare(&good, &simulated(Mutation::None), &Options::default());
    assert_eq!((back.identical, back.changed.len()), (4, 0));
}
