//! `history` on a repository whose past is known.

use super::diff::git;
use crate::support::{Bench, Finished, exactfed};
use exactfed::compare::{SCHEMA, SideCell, SideClaim, SideExperiment, SideRuns, record};
use exactfed::plan::CellId;
use exactfed::stats::verdict::Verdict;
use exactfed::trace::TraceDigest;

/// Commits the reports of an experiment with one cell and one claim.
fn commit(bench: &Bench, digest: &str, verdict: Verdict, [estimate, low, high]: [f64; 3]) {
    let (id, statement) = ("c".to_owned(), "it <holds>".to_owned());
    let claim = SideClaim { id, statement, verdict, expected_refuted: false, estimate, low, high };
    let runs = SideRuns::done(TraceDigest::of(digest), [Some(estimate); 3]);
    let cell = SideCell { runs, ..SideCell::new("FedAvg", [("seed", "7")]) };
    let cells = [(CellId::of("x"), cell)].into();
    let claims = Some(vec![claim]);
    let looks = None;
    let manifest = "m".into();
    let of = SideExperiment { schema: SCHEMA, seed: 7, manifest, looks, cells, claims };
    let write = |(file, text)| bench.write(&format!("reports/small/{file}"), text);
    record::files(&of, || of.cells.clone().into_iter()).into_iter().for_each(write);
    git(bench, &["add", "."]).expect(0);
    git(bench, &["commit", "-qm", &format!("Digest <{digest}>")]).expect(0);
}

/// A record that is none, then an interval, a verdict and a benchmark that change, then nothing.
fn past() -> Bench {
    let bench = Bench::new();
    git(&bench, &["init", "-q"]).expect(0);
    let table = "| what | bar | measured (95 % interval) | holds |\n| --- | --- | --- | --- |\n";
    let row = |rest: &str| format!("{table}| a step | at most 9 ns | {rest} |\n");
    bench.write("docs/notes/performance.md", row("5.08 ns (5.00 to 5.17) | yes"));
    bench.write("reports/old/record.toml", "schema = ");
    bench.write("reports/old/finals.csv", "");
    commit(&bench, "a", Verdict::Supported, [0.5, 0.4, 0.6]);
    commit(&bench, "b", Verdict::Supported, [0.5, 0.3, 0.7]);
    bench.write("docs/notes/performance.md", row("9.50 ns | no"));
    commit(&bench, "c", Verdict::Refuted, [2.0, 1.5, 3.0]);
    bench.write("other", "");
    git(&bench, &["add", "."]).expect(0);
    git(&bench, &["commit", "-qm", "Nothing"]).expect(0);
    bench
}

#[test]
fn what_changed_is_named_with_its_commit() {
    let bench = past();
    let text = bench.run(&["history"]).expect(0);
    text.prints("      1 verdict; 1 claim; 1 benchmark; cells: 1 changed\n");
    text.prints("      1 claim; cells: 1 changed\n");
    text.prints("not read  old in commit #1: record.toml:1: ");
    text.prints(
        "claim  small: c: supported (0.500 [0.400, 0.600]) from #1 → supported (0.500 [0.300, 0.700]) from #2 → refuted (2.00 [1.50, 3.00]) from #3\n",
    );
    assert!(!text.out.contains("Nothing") && text.out.starts_with("history  HEAD\n#3"));
    let text = bench.run(&["history", "HEAD~2..", "--format", "md"]).expect(0);
    text.prints("1 of 1 claim changed their verdict in 1 commit");
    text.prints("#1 refuted 2.00 \\[1.50, 3.00\\]; before supported 0.500 \\[0.300, 0.700\\]");
    text.prints("a step, at most 9 ns | #1 refuted 9.50; before supported 5.08 \\[5.00, 5.17\\] |");
}

#[test]
fn the_page_draws_intervals_and_links_to_the_diffs() {
    let bench = past();
    let options = ["--format", "html", "--out", "history.html", "--diffs", "diffs"];
    bench.run(&[&["history"], &options[..]].concat()).expect(0);
    let page = bench.read("history.html").replace("&#x2f;", "/");
    assert_eq!(page.matches("<svg class=\"interval\"").count(), 3 + 2);
    assert!(page.contains("it &lt;holds&gt;") && page.contains("Digest &lt;c&gt;"), "{page}");
    let links: Vec<&str> =
        page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let diffs: Vec<&&str> = links.iter().filter(|link| link.starts_with("diffs/")).collect();
    assert_eq!(diffs.len(), 2, "{links:?}");
    assert!(bench.read(diffs[0]).contains("<strong>Fails:</strong> 1 worse, 1 claim."));
    let anchors = links.iter().filter_map(|link| link.strip_prefix('#'));
    anchors.for_each(|id| assert!(page.contains(&format!("id=\"{id}\"")), "{id}"));
}

#[test]
fn what_is_no_range_is_refused() {
    let bench = past();
    for no in ["nowhere", "nowhere..HEAD", "HEAD..nowhere", "HEAD...HEAD", "-x", "--all..HEAD"] {
        bench.run(&["history", "--", no]).expect(2).warns("is no git revision (");
    }
    let none = ": no commit changes reports/ or docs/notes/performance.md";
    bench.run(&["history", "HEAD~1..HEAD"]).expect(3).warns(none);
    bench.run(&["history", "--format", "pdf"]).expect(2);
    Bench::new().run(&["history"]).expect(2).warns("is no git revision (not a git repository");
}

/// Bytes that are no text, in each file that a history reads, cost their own commit, and no later
/// one. A comparison with that commit names the file.
#[test]
fn a_file_that_is_no_text_costs_its_own_commit_alone() {
    for file in
        ["reports/small/record.toml", "reports/small/finals.csv", "docs/notes/performance.md"]
    {
        let bench = past();
        git(&bench, &["rm", "-rq", "reports/old"]).expect(0);
        git(&bench, &["commit", "-qm", "gone"]).expect(0);
        let before = bench.run(&["history"]).expect(0).out;
        let text = bench.read(file);
        for (bytes, subject) in [(&b"\xff\xfe"[..], "binary"), (text.as_bytes(), "mended")] {
            bench.write(file, bytes);
            git(&bench, &["commit", "-qam", subject]).expect(0);
        }
        let after = bench.run(&["history"]).expect(0);
        let folder = file.strip_prefix("reports/").unwrap_or(file);
        let (experiment, reason) = match folder.split_once('/') {
            Some(("small", name)) => ("small", format!("{name}: is not UTF-8 text")),
            _ => (file, "is not UTF-8 text".to_owned()),
        };
        after.prints(&format!("not read  {experiment} in commit #5: {reason}"));
        let claims = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with("claim  "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(claims(&after.out), claims(&before), "{file}");
        if experiment == "small" {
            let refused = bench.run(&["diff", "HEAD~1", "HEAD"]).expect(2);
            refused.warns(&format!("error: HEAD~1: small/{reason}"));
        }
    }
}

/// A repository may ask git for messages in an encoding that is not UTF-8.
#[test]
fn the_encoding_of_messages_changes_nothing() {
    let bench = past();
    let before = bench.run(&["history"]).expect(0).out;
    for encoding in ["UTF-16", "UTF-32LE", "ISO-8859-1"] {
        git(&bench, &["config", "i18n.logOutputEncoding", encoding]).expect(0);
        assert_eq!(bench.run(&["history"]).expect(0).out, before, "{encoding}");
    }
}

/// The files of a bare repository are called as its revisions are, and a branch may be called as a
/// folder is.
#[test]
fn revisions_that_are_called_as_files_are() {
    let bench = Bench::new();
    git(&bench, &["init", "-q"]).expect(0);
    commit(&bench, "a", Verdict::Supported, [0.5, 0.4, 0.6]);
    commit(&bench, "b", Verdict::Refuted, [2.0, 1.5, 3.0]);
    let expected = bench.run(&["diff", "HEAD~1", "HEAD"]).expect(1).out;
    git(&bench, &["branch", "other"]).expect(0);
    git(&bench, &["clone", "-q", "--bare", ".", "bare"]).expect(0);
    let in_bare = |arguments: &[&str]| -> Finished {
        exactfed().args(arguments).folder(bench.path("bare")).run().into()
    };
    assert!(bench.path("bare/HEAD").is_file());
    assert_eq!(in_bare(&["diff", "HEAD~1", "HEAD"]).expect(1).out, expected);
    assert_eq!(in_bare(&["history"]).expect(0).out, bench.run(&["history"]).expect(0).out);

    bench.write("other/file", "");
    let named = bench.run(&["diff", "HEAD~1", "other"]).expect(1).out;
    assert_eq!(named.replace("other (git revision", "HEAD (git revision"), expected);
    bench.write("file.txt", "");
    bench.run(&["diff", "file.txt", "HEAD"]).expect(2).warns("file.txt: is a file, not a folder");
    std::fs::create_dir(bench.path("empty")).unwrap();
    bench.run(&["diff", "empty", "HEAD"]).expect(2).warns("empty: holds neither results (");
}

#[test]
fn without_git_there_is_no_history_and_no_advice_to_name_a_folder() {
    let bench = Bench::new();
    let history = exactfed().args(["history"]).folder(&bench.folder);
    let output = Finished::from(history.env("PATH", "").run()).expect(2);
    output.warns("git: is not installed: without it no revision can be read");
    assert!(!output.err.contains("instead of a revision"), "{}", output.err);
}
