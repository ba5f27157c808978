//! The same bits at any thread count, in any shard split, alone or in a grid.

mod support;

use support::Bench;

fn digests(bench: &Bench, arguments: &[&str]) -> Vec<String> {
    let out = format!("out-{}", arguments.join("").replace(['/', '='], "-"));
    let names = ["experiments/smoke/garnet.toml", "experiments/smoke/logistic.toml"];
    let mut all = vec!["run", "--quiet", "--out", &out];
    all.extend(names);
    all.extend(arguments);
    bench.run(&all).expect(0);
    bench.run(&["digest", &out]).expect(0).out.lines().map(str::to_owned).collect()
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.bring("garnet.toml");
    bench.bring("logistic.toml");
    bench
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
    let alone = [
        "--set",
        "problem.garnet.clients=8",
        "--set",
        "problem.garnet.heterogeneity=\"two-kernels\"",
        "--set",
        "algorithm.fedlsa.local-steps=20",
        "--set",
        "algorithm.scafflsa.local-steps=20",
        "--set",
        "algorithm.richardson-romberg.coupling=independent",
    ];
    let mut arguments = vec!["run", "--quiet", "--out", "alone", "experiments/smoke/garnet.toml"];
    arguments.extend(alone);
    bench.run(&arguments).expect(0);
    let cells = bench.run(&["digest", "alone"]).expect(0).out;
    assert_eq!(cells.lines().count(), 3);
    for cell in cells.lines() {
        assert!(grid.iter().any(|line| line == cell), "{cell} is not in the grid");
    }
}

/// More clients, more replicates: what was there keeps its bits.
#[test]
fn fewer_replicates_are_the_first_of_more() {
    let bench = bench();
    let finals = |replicates: &str| {
        let out = format!("r{replicates}");
        bench
            .run(&[
                "run",
                "--quiet",
                "--out",
                &out,
                "--replicates",
                replicates,
                "experiments/smoke/logistic.toml",
            ])
            .expect(0);
        bench.run(&["report", &out, "--out", &format!("{out}-pages"), "--quiet"]).expect(0);
        let text = bench.read(&format!("{out}-pages/smoke/logistic/finals.csv"));
        let mut values: Vec<String> = text
            .lines()
            .skip(1)
            .map(|l| l.rsplit(',').next().unwrap().split(' ').next().unwrap().to_owned())
            .collect();
        values.sort();
        values
    };
    assert_eq!(finals("1"), finals("3"));
}

/// The digests of the smoke experiments. If this snapshot moves, stored results
/// no longer reproduce: raise `NUMERICS` and say *results change* in CHANGELOG.
#[test]
fn digests_are_what_they_were() {
    let bench = bench();
    bench.bring("diverging.toml");
    bench
        .run(&[
            "run",
            "--quiet",
            "experiments/smoke/garnet.toml",
            "experiments/smoke/logistic.toml",
            "experiments/smoke/diverging.toml",
        ])
        .expect(0);
    insta::assert_snapshot!("smoke_digests", bench.run(&["digest"]).expect(0).out);
}

/// The digests of every algorithm on every problem. As above: if this moves,
/// say *results change*.
#[test]
fn digests_of_every_pair_are_what_they_were() {
    let bench = Bench::new();
    bench.bring_folder("data");
    let mut all = vec!["run".to_owned(), "--quiet".to_owned()];
    for problem in [
        "atoms",
        "garnet",
        "least-squares-dataset",
        "lms",
        "logistic",
        "logistic-dataset",
        "mdp",
        "quadratic",
    ] {
        all.push(bench.bring(&format!("all-{problem}.toml")));
    }
    bench.run(&all.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
    insta::assert_snapshot!("pair_digests", bench.run(&["digest"]).expect(0).out);
}
