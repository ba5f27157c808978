//! The same bits at any thread count, in any shard split, alone or in a grid.

use crate::support::{Bench, GARNET, LOGISTIC};
use exactfed::problem::Spec;

fn digests(bench: &Bench, arguments: &[&str]) -> Vec<String> {
    let out = format!("out-{}", arguments.join("").replace(['/', '='], "-"));
    bench.compute(&[&["--out", &out, GARNET, LOGISTIC], arguments].concat());
    bench.digests(&out)
}

fn bench() -> Bench {
    Bench::with_smoke(&["garnet", "logistic"])
}

#[test]
fn threads_do_not_matter() {
    let bench = bench();
    let one = digests(&bench, &["--threads", "1"]);
    assert_eq!(one.len(), 36 + 28);
    for threads in ["2", "3", "7"] {
        assert_eq!(digests(&bench, &["--threads", threads]), one, "{threads} threads");
    }
}

/// Every algorithm passes over records in random orders with the same bits on any number of threads, and its draws are
/// others than those with replacement.
#[test]
fn threads_do_not_matter_to_passes_over_records() {
    let bench = Bench::with_smoke(&["all-least-squares-dataset"]);
    let file = "experiments/smoke/all-least-squares-dataset.toml";
    let found = |out: &str, arguments: &[&str]| {
        bench.compute(&[&["--out", out, file], arguments].concat());
        bench.digests(out)
    };
    let sampling = "problem.least-squares-dataset.sampling=\"reshuffled\"";
    let one = found("one", &["--set", sampling, "--threads", "1"]);
    let three = found("three", &["--set", sampling, "--threads", "3"]);
    assert_eq!(one, three);
    let with_replacement = found("with", &[]);
    let shared = one.iter().filter(|digest| with_replacement.contains(digest)).count();
    assert_eq!((one.len(), shared), (with_replacement.len(), 0));
}

#[test]
fn shards_put_together_are_the_whole() {
    let bench = bench();
    let whole = digests(&bench, &[]);
    let mut parts = Vec::new();
    for shard in ["1/3", "2/3", "3/3"] {
        parts.extend(digests(&bench, &["--shard", shard]));
    }
    parts.sort();
    assert_eq!(parts, whole);
}

#[test]
fn a_cell_alone_has_the_bits_it_has_in_the_grid() {
    let bench = bench();
    let grid = digests(&bench, &[]);
    let settings = [
        "problem.garnet.clients=8",
        "problem.garnet.heterogeneity=\"two-kernels\"",
        "algorithm.fedlsa.local-steps=20",
        "algorithm.scafflsa.local-steps=20",
        "algorithm.richardson-romberg.coupling=independent",
    ];
    let sets: Vec<&str> = settings.iter().flat_map(|set| ["--set", set]).collect();
    bench.compute(&[&["--out", "alone", GARNET], &sets[..]].concat());
    let cells = bench.digests("alone");
    assert_eq!(cells.len(), 3);
    assert!(cells.iter().all(|cell| grid.contains(cell)), "{cells:?} are not in the grid");
}

/// More clients, more replicates: what was there keeps its bits.
#[test]
fn fewer_replicates_are_the_first_of_more() {
    let bench = bench();
    let finals = |replicates: &str| {
        let out = format!("r{replicates}");
        bench.compute(&["--out", &out, "--replicates", replicates, LOGISTIC]);
        bench.run(&["report", &out, "--out", &format!("{out}-pages"), "--quiet"]).expect(0);
        let text = bench.read(&format!("{out}-pages/smoke/logistic/finals.csv"));
        let first = |line: &str| line.rsplit(',').next()?.split(' ').next().map(str::to_owned);
        let mut values: Vec<_> = text.lines().skip(1).map(first).collect();
        values.sort();
        values
    };
    assert_eq!(finals("1"), finals("3"));
}

/// The digests of the smoke experiments. If this snapshot moves, stored results
/// no longer reproduce: raise `NUMERICS` and say *results change* in CHANGELOG.
#[test]
fn digests_are_what_they_were() {
    let bench = Bench::of_smoke(&["garnet", "logistic", "diverging"]);
    insta::assert_snapshot!("smoke_digests", bench.run(&["digest"]).expect(0).out);
}

/// The digests of every algorithm on every problem. As above: if this moves,
/// say *results change*.
#[test]
fn digests_of_every_pair_are_what_they_were() {
    let mut names: Vec<String> = Spec::KINDS.iter().map(|kind| format!("all-{kind}")).collect();
    names.sort();
    let bench = Bench::of_smoke(&names.iter().map(String::as_str).collect::<Vec<_>>());
    insta::assert_snapshot!("pair_digests", bench.run(&["digest"]).expect(0).out);
}
