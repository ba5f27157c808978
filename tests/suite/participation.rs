//! Who takes part in a round: schemes as manifests write them.

use crate::support::Bench;

/// Every scheme that a table writes, on clients with equal shares.
const SCHEMES: &str = include_str!("../manifests/schemes.toml");

/// A manifest with these lines in its only algorithm, FedAvg on eight clients.
fn manifest(lines: &str) -> String {
    let (head, _) = SCHEMES.split_once("[[algorithm").unwrap();
    format!(
        "{head}[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 1\n{lines}\n[[figure.convergence]]\n"
    )
}

/// What `check` says of a manifest with these lines, which it refuses.
fn refused(lines: &str) -> String {
    let bench = Bench::new();
    bench.write("mine.toml", manifest(lines));
    bench.run(&["check", "mine.toml"]).expect(2).err
}

/// Draws depend neither on the number of threads nor on the shard that runs a cell.
#[test]
fn threads_and_shards_change_no_draw() {
    let bench = Bench::new();
    bench.write("mine.toml", SCHEMES);
    let digests = |arguments: &[&str]| {
        let out = format!("out-{}", arguments.join("").replace('/', "-"));
        bench.compute(&[&["mine.toml", "--out", &out], arguments].concat());
        bench.digests(&out)
    };
    let one = digests(&["--threads", "1"]);
    assert_eq!(one.len(), 11);
    for threads in ["2", "3"] {
        assert_eq!(digests(&["--threads", threads]), one, "{threads} threads");
    }
    let mut parts = digests(&["--shard", "1/2"]);
    parts.extend(digests(&["--shard", "2/2"]));
    parts.sort();
    assert_eq!(parts, one);
}

/// The page draws exact moments of every scheme but groups in a drawn order, and says why it has none of these and of
/// adaptive servers. It names the schemes that are biased, as `check` does.
#[test]
fn pages_have_exact_moments_and_name_what_is_biased() {
    let bench = Bench::new();
    bench.write("mine.toml", SCHEMES);
    let checked = bench.run(&["check", "mine.toml"]).expect(0).err;
    let schedules = "clients take part by a schedule, so that the mean of a round’s step is the gradient of the objective in no round. So the estimate does not tend to θ*, even with one local step, for FedAvg and mini-batch SGD; with `client-weights = \"rescaled\"` its distance from θ* vanishes with the step size";
    assert!(checked.contains(schedules), "{checked}");
    // Equal probabilities of clients with equal shares, and control variates, have no bias.
    assert!(!checked.contains("coins") && !checked.contains("Scaffold"), "{checked}");
    bench.compute(&["mine.toml"]);
    bench.report();
    let page = bench.read("reports/mine/report.md");
    let on_page = schedules.replace("θ*", "θ\\*");
    assert!(page.contains(&format!("Participation is biased: {on_page}")), "{page}");
    assert!(page.contains("the order of the groups is drawn anew in each cycle"), "{page}");
    let unequal = bench.run(&[
        "check",
        "mine.toml",
        "--set",
        "algorithm.minibatch-sgd.participation={ bernoulli-normalised = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0] }",
    ]);
    let coins = "with coins of the clients that have unequal probabilities or shares, the mean of a round’s step is not a multiple of the gradient of the objective, because the shares of those who come are divided by their sum. So the fixed point is not θ*, even with one local step, for mini-batch SGD; `participation = { bernoulli = … }` tosses the same coins without this bias";
    unequal.expect(0).warns(coins);
}

/// Without noise and with one local step the unbiased schemes have θ* as the limit of their mean: the step size falls, and
/// the error with it. A single client in each round that is biased ends elsewhere.
#[test]
fn unbiased_schemes_converge_with_falling_steps() {
    let bench = Bench::new();
    let decay = "decay = { power = 0.75, offset = 10.0 }";
    let algorithm = |label: &str, scheme: &str| {
        format!(
            "[[algorithm.fedavg]]\nlabel = \"{label}\"\nstep-size = 0.3\nlocal-steps = 1\n{decay}\n{scheme}\n"
        )
    };
    let (head, _) = SCHEMES.split_once("[[algorithm").unwrap();
    let mut text = head.replace("rounds = 24", "rounds = 3000").replace("= 40", "= 3");
    text = text.replace("noise = 0.3", "noise = 0.0");
    text += &algorithm("coins", "participation = { bernoulli = 0.4 }");
    text += &algorithm(
        "weighted",
        "cohort = 2\nparticipation = { weighted = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0] }",
    );
    text += &algorithm(
        "rescaled",
        "participation = { cyclic = { members = [\"1\", \"2-8\"], client-weights = \"rescaled\" } }",
    );
    text += &algorithm("normalised", "participation = { cyclic = { members = [\"1\", \"2-8\"] } }");
    bench.write("mine.toml", text + "[[figure.convergence]]\n");
    bench.compute(&["mine.toml"]);
    bench.report();
    let rows = bench.rows("reports/mine/summary.csv");
    let error = |label: &str| -> f64 {
        let row = rows.iter().find(|row| row["label"] == label).unwrap();
        row["sq_error_mean"].parse().unwrap()
    };
    for unbiased in ["coins", "weighted", "rescaled"] {
        assert!(error(unbiased) < 0.02, "{unbiased}: {}", error(unbiased));
        assert!(error("normalised") > 20.0 * error(unbiased), "{}", error("normalised"));
    }
}

/// What a scheme cannot be is refused before the first run, with its place, the value and what is allowed.
#[test]
fn schemes_that_cannot_be_are_refused() {
    for (lines, wanted) in [
        (
            "cohort = 3\nparticipation = { bernoulli = 0.3 }",
            "`cohort` cannot be combined with `participation = { bernoulli = … }`: each client decides",
        ),
        ("participation = \"bernoulli\"", "`bernoulli` needs a value: write { bernoulli = … }"),
        (
            "participation = { bernoulli = 1.5 }",
            "`participation.bernoulli` must be above 0 and at most 1, not 1.5",
        ),
        (
            "participation = { bernoulli = [0.3, 0.5] }",
            "`participation.bernoulli` has 2 numbers, and there are 8 clients; each client needs one",
        ),
        (
            "participation = { weighted = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0] }",
            "`participation` has a meaning with `cohort` only",
        ),
        (
            "cohort = 2\nparticipation = { weighted = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0] }",
            "client 8 with the probability 1.1250, which is above 1: use `cohort` up to 1",
        ),
        (
            "participation = { cyclic = { groups = 9 } }",
            "`participation.cyclic.groups` must be at most the number of clients, 8, not 9",
        ),
        (
            "participation = { cyclic = { groups = 9223372036854775807 } }",
            "`participation.cyclic.groups` must be from 1 to 100000, not 9223372036854775807",
        ),
        (
            "participation = { cyclic = { groups = 2, members = [\"1-8\"] } }",
            "`participation.cyclic.members` and `groups` exclude each other",
        ),
        (
            "participation = { cyclic = { members = [\"1-4\", \"5-7\"] } }",
            "`participation.cyclic.members` must name every client: client 8 is in no group",
        ),
        (
            "participation = { available = { schedule = [\"1-4\", \"5-9\"] } }",
            "`participation.available.schedule` names client 9; there are 8 clients",
        ),
        (
            "participation = { available = { schedule = [\"1-4\", \"all\"] } }",
            "`participation.available.schedule`: \"all\" is no list of clients, such as \"1-3, 7\"",
        ),
        (
            "cohort = 5\nparticipation = { cyclic = { groups = 2 } }",
            "`cohort` must be at most 4, the most clients that may take part in a round, not 5",
        ),
        ("participation = { cyclic = { order = \"random\" } }", "unknown name `random`"),
        ("participation = { cycle = {} }", "unknown name `cycle`"),
    ] {
        let said = refused(lines);
        assert!(said.contains(wanted), "{lines}:\n{said}");
        assert!(said.contains("mine.toml:"), "the place is named: {said}");
    }
}

#[test]
fn a_scheme_and_a_coin_of_communication_are_refused() {
    let coin = "[[algorithm.scaffold]]\nstep-size = 0.1\ncommunication-probability = 0.2\nparticipation = { bernoulli = 0.3 }";
    let said = refused(coin);
    let wanted = "`participation` cannot be combined with `communication-probability`: all clients take every local step";
    assert!(said.contains(wanted), "{said}");
}

/// A number alone, and the same number by the name of the choice, are one cell; so is a scheme without its defaults.
#[test]
fn short_forms_are_the_same_cells() {
    let bench = Bench::new();
    for (name, scheme) in [
        ("short", "{ bernoulli = 0.3 }"),
        ("long", "{ bernoulli = { fraction = 0.3 } }"),
        ("plain", "{ cyclic = { groups = 2 } }"),
        ("full", "{ cyclic = { groups = 2, order = \"given\", client-weights = \"normalised\" } }"),
        ("default", "\"normalised\""),
    ] {
        let file = format!("{name}.toml");
        bench.write(&file, manifest(&format!("participation = {scheme}")));
        bench.compute(&[&file, "--replicates", "1"]);
    }
    bench.write("without.toml", manifest(""));
    bench.compute(&["without.toml", "--replicates", "1"]);
    // Six manifests have three different cells.
    assert_eq!(bench.digests("results").len(), 3);
}
