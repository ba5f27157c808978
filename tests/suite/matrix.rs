//! Every algorithm runs on every problem, from a manifest under
//! `experiments/smoke`, or the pair is listed here with why it makes no sense.

use crate::support::{Bench, files_with, smoke};
use exactfed::manifest::{Oracle, Source};
use exactfed::runner::prepare;
use exactfed::{algorithm, problem};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Names that mean an algorithm on a linear field, each with its name on other fields.
fn linear_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    algorithm::Spec::ALL.iter().filter_map(|info| Some((info.kind, info.linear_name_of?)))
}

fn manifests() -> Vec<PathBuf> {
    files_with(&smoke(""), "toml")
}

#[test]
fn every_pair_that_makes_sense_is_there() {
    let mut there: BTreeSet<(String, String)> = BTreeSet::new();
    let mut curved: BTreeSet<String> = BTreeSet::new();
    for file in manifests() {
        let text = std::fs::read_to_string(&file).unwrap();
        let source = Source { name: file.display().to_string(), text, ..Source::default() };
        let plan =
            exactfed::evidence::plan("smoke/t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let cells: Vec<_> = plan.cells.iter().collect();
        for prepared in prepare(&plan.folder(), &cells).unwrap_or_else(|e| panic!("{e:?}")) {
            let identity = &prepared.cell.identity;
            let (algorithm, problem) = (identity.algorithm.kind(), identity.problem.kind());
            there.insert((algorithm.into(), problem.into()));
            let (planned, built) =
                (identity.problem.linear(), prepared.scenarios[0].instance.linear());
            if identity.oracle == Oracle::Stochastic {
                assert_eq!(planned, built, "{problem}: its settings and its facts disagree");
            }
            if !planned {
                curved.insert(problem.to_owned());
            }
        }
    }
    let mut missing = Vec::new();
    for algorithm in algorithm::Spec::KINDS {
        for problem in problem::Spec::KINDS {
            let nonsense =
                linear_names().any(|(name, _)| name == *algorithm) && curved.contains(*problem);
            let found = there.contains(&((*algorithm).to_owned(), (*problem).to_owned()));
            if found == nonsense {
                missing.push(format!("{algorithm} on {problem}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "neither run nor listed, or both");
    assert!(there.len() > 70, "{} pairs", there.len());
}

#[test]
fn pairs_that_make_no_sense_are_refused_with_the_other_name() {
    let bench = Bench::new();
    for (name, other) in linear_names() {
        let settings = if name == "centralised-lsa" { "" } else { "local-steps = 2\n" };
        bench.write(
            "bad.toml",
            format!(
                "title = \"t\"\nseed = 1\nreplicates = 1\n[problem.logistic]\ndimension = 2\nrecords = 4\n\
                 clients = 2\ndata = {{ noisy = {{ spread = 1.0 }} }}\nl2 = 1.0\n[start]\nzero = true\n\
                 [budget]\nrounds = 1\n[[algorithm.{name}]]\nstep-size = 0.1\n{settings}"
            ),
        );
        bench.run(&["check", "bad.toml"]).expect(2).warns(&format!("`{other}`")).warns("bad.toml:");
    }
}

#[test]
fn all_of_them_run() {
    let name = |file: &PathBuf| file.file_stem().unwrap().to_string_lossy().into_owned();
    let names: Vec<String> = manifests().iter().map(name).collect();
    let bench = Bench::with_smoke(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let files: Vec<String> =
        names.iter().map(|name| format!("experiments/smoke/{name}.toml")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let output = bench.run(&[&["run", "--quiet"], &files[..]].concat()).expect(0);
    assert_eq!(output.err, "");
    bench.report();
    let page = bench.read("reports/smoke/all-mdp/report.md");
    assert!(page.contains("ζ₁") && page.contains("‖θ\\* − θ̃‖"), "{page}");
}

#[test]
fn the_table_of_documents_has_every_kind() {
    let text = std::fs::read_to_string("docs/ALGORITHMS.md").unwrap();
    let kinds = algorithm::Spec::KINDS.iter().chain(problem::Spec::KINDS);
    let missing: Vec<&&str> =
        kinds.filter(|kind| !text.contains(&format!("| `{kind}` |"))).collect();
    assert!(missing.is_empty(), "docs/ALGORITHMS.md lacks {missing:?}");
}
