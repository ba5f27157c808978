//! Sizes that cannot be, and runs that are perhaps not meant.

use crate::support::{Bench, Finished, array, edited};

const SMALL: &str = include_str!("../manifests/sizes.toml");

/// What a command says about a manifest in which lines were replaced; nothing may
/// be written.
fn run_with(verb: &[&str], changes: &[(&str, &str)]) -> Finished {
    let bench = Bench::new();
    bench.write("large.toml", edited(SMALL, changes));
    let output = bench.run(&[verb, &["large.toml"]].concat());
    assert_eq!(bench.files(), ["large.toml"], "something was written");
    output
}

#[test]
fn what_memory_cannot_hold_is_refused_at_its_key() {
    let run = |changes: &[(&str, &str)]| {
        run_with(&["run", "--memory", "1G", "--threads", "2"], changes).expect(2).err
    };
    let quadratic = "[problem.quadratic]\ndimension = 100\nclients = 100_000\n\
        spectrum = { from = 0.5, to = 1.0 }\nnoise = 0.1\n\n";
    let tables: Vec<&str> = SMALL.split_inclusive("\n\n").collect();
    let all = [
        run(&[("states = 6", "states = 65_536")]),
        run(&[("states = 6", "states = 100"), ("clients = 2", "clients = 100_000_000")]),
        run(&[("actions = 2", "actions = 1_000_000_000_000")]),
        run(&[("states = 6", "states = 3_000"), ("features = 2", "features = 3_000")]),
        run(&[(tables[1], quadratic)]),
        run(&[("rounds = 4", "rounds = 9_000_000"), ("points = 2", "every = 1")]),
        run(&[("replicates = 2", "replicates = 16_000_000")]),
        run(&[
            ("replicates = 2", "replicates = 10_000\ninstance = \"per-replicate\""),
            ("clients = 2", "clients = 1_000"),
        ]),
        run(&[
            ("rounds = 4", "rounds = 9_000_000"),
            ("points = 2", "points = 1_000_000\niterates = true"),
            ("states = 6", "states = 1000"),
            ("features = 2", "features = 1000"),
        ]),
    ];
    insta::assert_snapshot!("memory", all.join("\n"));
}

#[test]
fn a_memory_that_suffices_is_enough() {
    let bench = Bench::new();
    bench.write("small.toml", SMALL);
    bench.compute(&["small.toml", "--memory", "1M"]);
    bench.run(&["run", "small.toml", "--memory", "much"]).expect(2).warns("500M or 64G");
}

#[test]
fn a_run_of_days_wants_a_yes() {
    let long = [("rounds = 4", "rounds = 1_000_000_000_000")];
    let text = run_with(&["run", "--threads", "2"], &long).expect(2).err;
    assert!(text.starts_with("error: 1 cell to run, about "), "{text}");
    assert!(text.ends_with(" h on 2 threads; pass --yes to run them\n"), "{text}");
}

#[test]
fn many_cells_want_a_yes_and_their_plan_is_a_summary() {
    let grid = |verb: &[&str], steps: usize, offsets: usize| {
        let values = |count: usize| array((1..=count).map(|i| i as f64 / 1000.0));
        run_with(verb, &[("0.1", &values(steps)), ("1.0", &values(offsets))])
    };
    let text = grid(&["run"], 334, 300).expect(2).err;
    assert_eq!(text, "error: 100200 cells to run; pass --yes to run them\n");
    let text = grid(&["plan", "--threads", "2"], 40, 30).expect(0).out;
    assert!(
        text.starts_with("large: 1200 cells of 2 replicates\n  1200 missing  SCAFFLSA\nsuch as\n"),
        "{text}"
    );
    assert!(text.contains("\n--all lists every cell\n0 done, 1200 missing: "), "{text}");
    assert_eq!(text.lines().count(), 6, "{text}");
    let text = grid(&["plan", "--threads", "2", "--all"], 40, 30).expect(0).out;
    assert_eq!(text.lines().count(), 1202);
}

/// Every whole number at its largest: refused with a message, or planned at once.
#[test]
fn any_whole_number_is_reported() {
    for (key, from) in [
        ("seed", "seed = 1"),
        ("replicates", "replicates = 2"),
        ("states", "states = 6"),
        ("actions", "actions = 2"),
        ("branching", "branching = 2"),
        ("features", "features = 2"),
        ("clients", "clients = 2"),
        ("rounds", "rounds = 4"),
        ("min-rounds", "rounds = 4"),
        ("points", "points = 2"),
        ("every", "points = 2"),
        ("local-steps", "local-steps = 2"),
        ("cohort", "local-steps = 2"),
        ("steps-per-client", "local-steps = 2"),
        ("noise", "discount = 0.9"),
    ] {
        for value in ["9223372036854775807", "9223372036854775808", "1_000_000_000_000_000"] {
            let to = match key {
                "steps-per-client" => format!("{key} = [{value}, {value}]"),
                "cohort" | "min-rounds" => format!("{from}\n{key} = {value}"),
                "noise" => format!("{from}\nnoise = {{ markov = {{ burn-in = {value} }} }}"),
                _ => format!("{key} = {value}"),
            };
            let text = run_with(&["plan"], &[(from, &to)]);
            assert!(text.code == 0 || text.code == 2, "{to}: {} {}", text.code, text.err);
            assert!(!text.err.contains("panicked"), "{to}: {}", text.err);
            assert!(text.code == 0 || text.err.starts_with("error: "), "{to}: {}", text.err);
        }
    }
}
