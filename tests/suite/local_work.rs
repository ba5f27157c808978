//! Local work that differs between clients, steps and rounds, as a user writes it. Numbers are those of loops in NumPy.

use crate::relative::{bench, manifest};
use crate::support::Bench;

/// The squared errors after each round of the only run of an export.
fn errors(bench: &Bench) -> Vec<f64> {
    bench.compute(&["mine.toml"]);
    bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    bench.rows("rows.csv").iter().map(|row| row["sq_error"].parse().unwrap()).collect()
}

/// Ridge regression with these algorithms for three rounds, all of which are recorded.
fn ridge(algorithms: &str) -> Bench {
    let text = manifest("least-squares-dataset", "side", "0.1", algorithms);
    bench(&text.replace("rounds = 2", "rounds = 3\n[record]\nevery = 1"))
}

fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < 1e-11, "{what}: {found} and {expected}");
    }
}

/// Step sizes that fall from local step to local step, with unequal numbers of steps: for FedAvg, for FedProx with a
/// server step, and for Scaffold, whose variates are divided by the sum of the step sizes.
#[test]
fn steps_fall_from_step_to_step_as_in_a_loop() {
    let start = 0.007_230_082_562_948_404;
    for (algorithm, keys, expected) in [
        (
            "fedavg",
            "steps-per-client = [2, 3]",
            [0.004_303_345_360_712_861, 0.003_539_958_084_208_883_5, 0.003_188_699_718_535_226_7],
        ),
        (
            "fedprox",
            "steps-per-client = [3, 1]\nproximal = 0.5\nserver-step = 1.25",
            [0.003_285_546_518_872_218_5, 0.003_955_939_843_664_119, 0.005_109_217_643_927_3],
        ),
        (
            "scaffold",
            "steps-per-client = [2, 3]",
            [0.004_303_345_360_712_861, 0.003_089_220_486_574_409_4, 0.002_484_507_096_481_251_8],
        ),
    ] {
        let decay = "decay = { power = 0.8, offset = 4, by = \"local-steps\" }";
        let entry = format!("[[algorithm.{algorithm}]]\nstep-size = 0.3\n{keys}\n{decay}\n");
        let found = errors(&ridge(&entry));
        assert_near(&found, &[&[start][..], &expected].concat(), algorithm);
    }
}

/// FedProx with these keys of local work.
fn fedprox(keys: &str) -> String {
    format!("[[algorithm.fedprox]]\nstep-size = 0.1\nproximal = 1.0\n{keys}\n")
}

/// The gradients of the slowest client after each round of FedProx with these keys, and the digests of the results,
/// which are the same on one thread and on two.
fn costs_and_digests(keys: &str) -> (Vec<u64>, Vec<String>) {
    let bench = ridge(&fedprox(keys));
    bench.compute(&["mine.toml", "--threads", "1"]);
    bench.compute(&["mine.toml", "--threads", "2", "--out", "two"]);
    let digests = bench.digests("results");
    assert_eq!(digests, bench.digests("two"));
    bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    let rows = bench.rows("rows.csv");
    (rows.iter().map(|row| row["sequential_calls"].parse().unwrap()).collect(), digests)
}

/// Stragglers have the same bits with any number of threads, cost less than all work, and take whole epochs.
#[test]
fn stragglers_are_drawn_and_paid() {
    let (all, _) = costs_and_digests("local-epochs = 4");
    let (late, digests) = costs_and_digests("local-epochs = 4\nstragglers = { fraction = 1.0 }");
    assert_eq!(all.last(), Some(&180), "4 epochs of 15 records in three rounds");
    assert!(late.last() < all.last(), "{late:?}");
    assert!(late.iter().all(|cost| cost % 3 == 0), "epochs have 9 or 15 steps: {late:?}");
    let few = "local-epochs = 4\nstragglers = { fraction = 1.0, most = 2 }";
    assert_ne!(costs_and_digests(few).1, digests);
    for (keys, words) in [
        ("local-steps = 4\nstragglers = { fraction = 0.0 }", "must be above 0 and at most 1"),
        ("local-epochs = 0.5\nstragglers = { fraction = 0.5, most = 2 }", "counts epochs"),
    ] {
        let said = ridge(&fedprox(keys)).run(&["check", "mine.toml"]).expect(2).err;
        assert!(said.contains(words), "{said}");
    }
}

/// Keys that an algorithm cannot have are refused with the reason.
#[test]
fn what_cannot_be_combined_is_refused() {
    for (entry, words) in [
        (
            "[[algorithm.fednova]]\nstep-size = 0.1\nlocal-steps = 4\ndecay = { power = 1, offset = 9, by = \"local-steps\" }\n",
            "what FedNova divides by would change",
        ),
        (
            "[[algorithm.scaffnew]]\nstep-size = 0.1\ncommunication-probability = 0.5\nclock = \"steps\"\nserver-step = 0.5\n",
            "needs rounds that end at communications",
        ),
        (
            "[[algorithm.scaffnew]]\nstep-size = 0.1\ncommunication-probability = 0.5\ndecay = { power = 1, offset = 9, by = \"local-steps\" }\n",
            "must be \"rounds\" under a coin",
        ),
    ] {
        let said = ridge(entry).run(&["check", "mine.toml"]).expect(2).err;
        assert!(said.contains(words), "{said}");
    }
}
