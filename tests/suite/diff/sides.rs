//! What the two sides of a `diff` may be: results, reports and revisions of git; and which sides and options are
//! refused.

use super::{git, json, recorded, reported, verdicts, write_record};
use crate::support::{Finished, root};
use exactfed::compare::{SideRuns, record};
use exactfed::trace::TraceDigest;

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
