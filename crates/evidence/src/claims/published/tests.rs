//! Claims on published numbers, judged on runs whose errors are known.

use crate::claims::JudgedClaim;
use crate::claims::tests::{judged, verdicts_of};
use crate::stats::verdict::Verdict;
use crate::wrong::{self, Mutation};
use exactfed_runner::manifest::Source;
use exactfed_runner::plan::Plan;
use std::collections::BTreeMap;

/// One client whose loss is ‖θ‖²/2 in two dimensions: from 1 in both, FedLSA with one local step of 0.1 has the squared
/// error 2 · 0.81^t after t rounds.
const POWERS: &str = r#"
title = "t"
seed = 5
replicates = 1
oracle = "exact"
problem.quadratic = { dimension = 2, clients = 1, spectrum = { from = 1.0, to = 1.0 }, noise = 0.0 }
start.offset = 1.0
budget.rounds = 20
record.every = 1

[[algorithm.fedlsa]]
step-size = [0.1, 0.2]
local-steps = 1

[[claim.published]]
id = "curve"
statement = "the error has the published values"
file = "numbers.csv"
"#;

/// The plan of a manifest with a file of published numbers.
fn plan(text: &str, numbers: &str) -> Plan {
    let in_memory = BTreeMap::from([("numbers.csv".to_owned(), numbers.as_bytes().into())]);
    let text = text.to_owned();
    let source = Source { name: "t.toml".into(), text, in_memory, ..Source::default() };
    crate::plan("t".into(), source).unwrap_or_else(|error| panic!("{error}"))
}

/// The verdict on the only claim of a manifest, and the largest difference that it states.
fn difference(claims: &[JudgedClaim<'_>]) -> (Verdict, f64) {
    (claims[0].judgement.verdict, claims[0].estimate().value)
}

#[test]
fn curves_that_are_known_are_as_published() {
    let numbers =
        "step-size,round,value\n0.1,1,1.62\n0.1,2,1.3122\n0.2,1,1.28\n0.2,,2.658455991569832e-4\n";
    let exact = POWERS.to_owned() + "margin = 1e-12\n";
    let plan_of_right = plan(&exact, numbers);
    let claims = judged(&plan_of_right, Mutation::None);
    assert_eq!(verdicts_of(&claims), [("curve", Verdict::Supported)]);
    let names: Vec<&str> = claims[0].parts.iter().map(|part| part.name.as_str()).collect();
    assert!(names[0].starts_with("FedLSA, γ = 0.1, round "), "{names:?}");
    assert_eq!(names.len(), 2);
    assert!(claims[0].is_exact());
    assert!(difference(&claims).1.abs() < 1e-13, "{:?}", claims[0].estimate());
    assert!(
        claims[0].formula.contains("4 published numbers of numbers.csv"),
        "{}",
        claims[0].formula
    );

    // One number is a thousandth too small, and the page states by how much the run is above it.
    let wrong_numbers = numbers.replace("1.3122", "1.3108878");
    let plan_of_wrong = plan(&exact, &wrong_numbers);
    let (verdict, largest) = difference(&judged(&plan_of_wrong, Mutation::None));
    assert_eq!(verdict, Verdict::Refuted);
    assert!((largest - 0.001_001).abs() < 1e-6, "{largest}");

    // Three decimals are printed: 1.3122 is within half a unit of the third one, and 1.62 of 1.6205 is not.
    let printed = POWERS.to_owned() + "decimals = 3\n";
    let plan_of_printed = plan(&printed, "step-size,round,value\n0.1,1,1.62\n0.1,2,1.312\n");
    assert_eq!(difference(&judged(&plan_of_printed, Mutation::None)).0, Verdict::Supported);
    let plan_of_misprint = plan(&printed, "step-size,round,value\n0.1,1,1.6206\n");
    assert_eq!(difference(&judged(&plan_of_misprint, Mutation::None)).0, Verdict::Refuted);
}

/// The error of a published number is that of as many runs as it is the mean of.
#[test]
fn published_runs_have_an_error_too() {
    let claim = |runs: u64| {
        format!(
            "[[claim.published]]\nid = \"end\"\nstatement = \"s\"\nof = {{ label = \"FedLSA\" }}\nfile = \"numbers.csv\"\nmargin = 9.0\nruns = {runs}\n"
        )
    };
    let width = |runs: u64| {
        let text = wrong::manifest(40, "8") + &claim(runs);
        let plan = plan(&text, "value\n0.02\n");
        let claims = judged(&plan, Mutation::None);
        let (low, high) = claims[0].estimate().interval;
        assert!(claims[0].formula.contains("standard errors away"), "{}", claims[0].formula);
        libm::log1p(high) - libm::log1p(low)
    };
    let of_one = width(1);
    let of_many = width(1_000_000);
    // The errors of the published run and of the mean of 40 runs have the ratio √40, and limits are skewed.
    let ratio = of_one / of_many;
    assert!((4.0..8.0).contains(&ratio), "{ratio}");
}

/// What is wrong with a file is a message at its key.
#[test]
fn files_with_mistakes_are_refused() {
    let text = POWERS.to_owned() + "margin = 0.1\n";
    for (numbers, message) in [
        ("step-size,number\n0.1,1.0\n", "there is no column `value`"),
        ("step-size,value\n0.1,-1.0\n", "`value` is -1 in line 2"),
        (
            "step-size,value\n0.1,1.0\n0.3,1.0\n",
            "line 3 selects no cell: no cell has step-size = 0.3 (there are `step-size` 0.1, 0.2)",
        ),
        ("round,value\n21,1.0\n", "line 2 is of round 21, which is not recorded"),
        ("round,value\n1.5,1.0\n", "`round` is 1.5 in line 2"),
        ("value\nnone\n", "the column `value` of numbers.csv has no numbers"),
    ] {
        let in_memory = BTreeMap::from([("numbers.csv".to_owned(), numbers.as_bytes().into())]);
        let source =
            Source { name: "t.toml".into(), text: text.clone(), in_memory, ..Source::default() };
        let rejected = crate::plan("t".into(), source).err().map(|error| error.to_string());
        let rejected = rejected.unwrap_or_default();
        assert!(rejected.contains(message), "{numbers}: {rejected}");
        assert!(rejected.contains("claim.published"), "{rejected}");
    }
}
