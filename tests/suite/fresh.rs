//! Published pages are those that anybody gets who runs the manifests: what else lies in results is
//! on no page of `reproduce`, changes after verdicts are in the manifest as amendments, and
//! `scripts/fresh.sh` finds every byte in which reports differ from the committed ones.

use crate::support::process::Program;
use crate::support::{Bench, Finished, QUADRATIC, edited, files_below, root};
use std::fs;
use std::path::{Path, PathBuf};

const CLAIM: &str = r#"[[algorithm.fedavg]]
step-size = 0.1
local-steps = 2
[[claim.less]]
id = "small"
statement = "FedAvg's error is small"
left = { label = "FedAvg" }
value = 10.0
[[claim.less]]
id = "tiny"
statement = "FedAvg's error is tiny"
left = { label = "FedAvg" }
value = 1.0
"#;

const AMENDED: &str = r#"[[amendment]]
setting = "value"
claim = "small"
from = 1e-1
to = 10
reason = "a tenth was *refuted*"
"#;

/// The manifest of an experiment `e`, with something at its end.
fn bench_of(end: &str) -> Bench {
    let bench = Bench::new();
    let runs = edited(QUADRATIC, &[("replicates = 2", "replicates = 20")]);
    bench.write("experiments/e.toml", [&runs, CLAIM, end].concat());
    bench
}

fn reproduce(bench: &Bench) -> Finished {
    bench.run(&["reproduce", "--quiet"]).expect(0)
}

/// Seeds, replicates and settings of earlier runs in the same results change no published page. The
/// terminal names them, and `report` has them on its page.
#[test]
fn reproduced_pages_do_not_depend_on_what_else_is_in_the_results() {
    let fresh = bench_of("");
    let output = reproduce(&fresh);
    assert_eq!(output.err, "");
    let bench = bench_of("");
    for set in ["replicates=30", "seed=9", "noise-seed=8", "budget.rounds=30"] {
        bench.compute(&["experiments/e.toml", "--set", set]);
        bench.report();
    }
    let output = reproduce(&bench);
    output.warns("e: The results contain 1 further set of these cells with other numbers of replicates: 30 and 2 further sets of these cells with the noise of seeds 8, 9.");
    output.warns("add an [[amendment]] to it");
    let (own, fresh) = (bench.contents("reports"), fresh.contents("reports"));
    let names: Vec<&String> = own.keys().collect();
    assert_eq!(names, fresh.keys().collect::<Vec<_>>());
    for (name, bytes) in own.iter().filter(|(name, _)| !name.ends_with("provenance.md")) {
        assert!(*bytes == fresh[name], "{name}");
    }
    bench.report();
    assert!(bench.read("reports/e/report.md").contains("The results contain 1 further set"));
}

/// An amendment is on every page that shows a verdict, changes no cell, and concerns the claim that it
/// names, or all.
#[test]
fn amendments_are_on_every_page() {
    let plain = bench_of("");
    reproduce(&plain);
    let bench = bench_of(AMENDED);
    reproduce(&bench);
    assert_eq!(bench.digests("results"), plain.digests("results"));
    let said = "After verdicts had been seen, the manifest was amended: value of small. Choosing the number of replicates, the seed, settings or claims after seeing verdicts voids their error guarantee (optional stopping).";
    let [md, html] =
        ["report.md", "report.html"].map(|file| bench.read(&format!("reports/e/{file}")));
    assert!(md.contains(said) && html.contains(said), "{md}");
    assert!(md.contains(r"| value of small | 0.1 | 10 | a tenth was \*refuted\* |"), "{md}");
    assert!(
        html.contains(r##"<a href="#amendments">"##) && html.contains(r#"<h2 id="amendments">"#)
    );
    assert!(md.contains("| **supported, amended** | FedAvg's error is small |"), "{md}");
    assert!(md.contains("| **supported** | FedAvg's error is tiny |"), "{md}");
    let means = "Amended: the claim, or a setting of its experiment, was changed";
    for file in ["reports/claims.md", "reports/claims.html"] {
        let (page, plain) = (bench.read(file), plain.read(file));
        assert!(page.contains("supported, amended") && page.contains(means), "{file}: {page}");
        assert!(!plain.contains("amended") && !plain.contains("Amended"), "{file}: {plain}");
    }
    bench.run(&["report", "--format", "latex", "--quiet"]).expect(0);
    let tables = bench.read("reports/e/tables.tex");
    assert!(tables.contains("supported, amended") && tables.contains(means), "{tables}");

    let replicates = "[[amendment]]\nsetting = \"replicates\"\nfrom = 10\nto = 20\n";
    let bench = bench_of(replicates);
    reproduce(&bench);
    let page = bench.read("reports/e/report.md");
    assert_eq!(page.matches("**supported, amended**").count(), 2, "{page}");
    assert!(page.contains("| replicates | 10 | 20 | – |"), "{page}");
}

/// A clone has every version of every report.
#[test]
fn committed_reports_are_small() {
    let list = Program::new("git").args(["ls-files", "-z", "reports"]).folder(root());
    let listed = Finished::from(list.run()).out;
    let names = listed.split('\0').filter(|name| !name.is_empty());
    let mut files: Vec<PathBuf> = names.map(|name| root().join(name)).collect();
    if files.is_empty() {
        // An archive of the sources has no other files than those that git tracks.
        files = files_below(&root().join("reports"));
    }
    assert!(files.len() > 600, "{} files", files.len());
    let mut all = 0;
    for file in files {
        let bytes = fs::metadata(&file).unwrap().len();
        assert!(bytes <= 1_000_000, "{} has {bytes} bytes", file.display());
        all += bytes;
    }
    // Half a million of them are of the published experiments of other groups.
    assert!(all <= 12_500_000, "reports/ has {all} bytes");
}

/// A repository with the script and these reports, all of it committed.
fn committed(bench: &Bench) -> Bench {
    let repository = Bench::new();
    for file in ["scripts/fresh.sh", ".gitignore"] {
        repository.write(file, fs::read(root().join(file)).unwrap());
    }
    for (name, bytes) in bench.contents("reports") {
        repository.write(&format!("reports/{name}"), bytes);
    }
    let git = |arguments: &[&str]| {
        let named = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let arguments = [&named, arguments].concat();
        let git = Program::new("git").args(arguments).folder(&repository.folder);
        Finished::from(git.run()).expect(0);
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "reports"]);
    repository
}

/// What the script of a repository says of a folder with fresh reports.
fn compared(repository: &Bench, fresh: &Path) -> Finished {
    let script = Program::new("sh").args([Path::new("scripts/fresh.sh"), fresh]);
    script.folder(&repository.folder).run().into()
}

#[test]
fn every_difference_from_the_committed_reports_is_found() {
    let bench = bench_of("");
    reproduce(&bench);
    let repository = committed(&bench);
    let fresh = bench.folder.path();
    let same = compared(&repository, fresh).expect(0);
    same.prints("the reports of a fresh run are the committed ones");
    let differs = |line: &str| {
        let output = compared(&repository, fresh).expect(1);
        assert_eq!(
            output.err.lines().filter(|l| l.contains("  reports/")).count(),
            1,
            "{}",
            output.err
        );
        output.warns(line).warns("make reproduce");
    };

    // What git ignores may differ.
    bench.write("reports/e/report.html", "another page");
    bench.write("reports/e/provenance.md", "another machine");
    compared(&repository, fresh).expect(0);

    let page = bench.read("reports/e/report.md");
    bench.write("reports/e/report.md", page.replacen("small", "smail", 1));
    differs("changed  reports/e/report.md");
    // A line end alone is a difference too.
    bench.write("reports/e/report.md", page.clone() + "\n");
    differs("changed  reports/e/report.md");
    fs::remove_file(bench.path("reports/e/report.md")).unwrap();
    differs("missing  reports/e/report.md");
    bench.write("reports/e/report.md", page);
    bench.write("reports/e/new figure.svg", "<svg/>");
    differs("extra    reports/e/new figure.svg");
    fs::remove_file(bench.path("reports/e/new figure.svg")).unwrap();
    compared(&repository, fresh).expect(0);
    compared(&repository, &repository.path("nothing")).expect(2).warns("is not a folder");
}
