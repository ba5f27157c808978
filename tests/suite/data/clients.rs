//! How records are divided among clients and a test set, how the clients weigh, and what is measured over the
//! records of either.

use super::{Data, TABLE, manifest, records};

/// Where a column names the client of each record, nothing is drawn, so that `instances` is refused, and the number of
/// clients is that of the file, so that a share of the clients is a number of them.
#[test]
fn clients_that_a_column_names() {
    let settings = "features = [\"age\"], split = { column = \"site\" }";
    let data = Data::new(&records(settings), "r.csv", TABLE.as_bytes());
    let run_with = |set: &str| data.bench.run(&["run", "mine.toml", "--set", set]);
    let remedy = "delete `instances`, or draw a test set for each with `test = 0.2` in `dataset`";
    run_with("instances=3").expect(2).warns(remedy);
    run_with("algorithm.fedavg.cohort=1").expect(0);
    let digests = data.bench.digests("results");
    run_with("algorithm.fedavg.cohort=0.1").expect(0);
    assert_eq!(data.bench.digests("results"), digests);
}

/// The records of three sites, of 30, 20 and 10 records, whose labels depend on the age in different ways.
fn unequal_sites() -> String {
    let mut table = String::from("age,site,label\n");
    for i in 0..60 {
        let age = i * 17 % 23;
        let site = ["a", "a", "a", "b", "b", "c"][i % 6];
        let label = u8::from(age > [4, 4, 4, 12, 12, 18][i % 6]);
        table += &format!("{age}.5,{site},{label}\n");
    }
    table
}

/// What commands say about FedAvg and Scaffold on the records of `unequal_sites`, and what they reach.
struct Participation {
    /// The standard error output of `check`.
    checked: String,
    /// The standard error output of `plan`.
    planned: String,
    /// The Markdown page of the report.
    page: String,
    /// The HTML page of the report.
    html: String,
    /// The final mean squared error of FedAvg.
    fedavg: f64,
    /// The final mean squared error of Scaffold.
    scaffold: f64,
}

/// Checks, plans, runs and reports 4000 noiseless rounds of one local step, with this setting `weights` of the clients
/// and this line with their `cohort`, which is empty where all clients take part.
fn participation(weights: &str, cohort: &str) -> Participation {
    let data = Data::new("", "r.csv", unequal_sites().as_bytes());
    let settings =
        format!("split = {{ column = \"site\" }}, standardise = true, weights = \"{weights}\"");
    let mut text = manifest(&format!("oracle = \"exact\"\n{}", records(&settings)))
        .replace("rounds = 3", "rounds = 4000")
        .replace("[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n", "");
    for kind in ["fedavg", "scaffold"] {
        text += &format!("[[algorithm.{kind}]]\nstep-size = 0.2\nlocal-steps = 1\n{cohort}");
    }
    data.bench.write("mine.toml", text);
    let checked = data.bench.run(&["check", "mine.toml"]).expect(0).err;
    let planned = data.bench.run(&["plan", "mine.toml"]).expect(0).err;
    data.accepted();
    let page = data.bench.read("reports/mine/report.md");
    let html = data.bench.read("reports/mine/report.html");
    let rows = data.bench.rows("reports/mine/summary.csv");
    let [fedavg, scaffold] = ["FedAvg", "Scaffold"].map(|label| {
        let row = rows.iter().find(|row| row["label"] == label).unwrap();
        row["sq_error_mean"].parse().unwrap()
    });
    Participation { checked, planned, page, html, fedavg, scaffold }
}

/// Where clients have unequal shares and a part of them takes part in each round, FedAvg has another fixed point than
/// the optimum, also with one local step and without noise; Scaffold does not. `check`, `plan` and the page say so.
#[test]
fn unequal_shares_of_a_part_of_the_clients_are_biased() {
    let bias = "the mean of a round’s step is not the gradient of the objective";
    let biased = participation("records", "cohort = 1\n");
    for text in [&biased.checked, &biased.planned] {
        assert!(
            text.contains(bias) && text.contains("FedAvg (1 of 3 clients in a round)"),
            "{text}"
        );
        assert!(!text.contains("Scaffold"), "{text}");
    }
    let page = &biased.page;
    assert!(page.contains("Participation is biased: with unequal shares"), "{page}");
    assert!(page.contains("; `participation = \"rescaled\"` draws the same clients"), "{page}");
    let html = &biased.html;
    let code = "<code>participation = &quot;rescaled&quot;</code> draws the same clients";
    assert!(html.contains(code), "{html}");
    assert!(page.contains("expected weight is then not its share"), "{page}");
    assert!(biased.fedavg > 1e-4, "{}", biased.fedavg);
    assert!(biased.scaffold < 1e-20, "{}", biased.scaffold);
    assert!(biased.checked.contains("`participation = \"rescaled\"`"), "{}", biased.checked);
    for (weights, cohort) in [
        ("records", ""),
        ("equal", "cohort = 1\n"),
        ("records", "cohort = 1\nparticipation = \"rescaled\"\n"),
        ("records", "cohort = 1\nparticipation = \"with-replacement\"\n"),
        ("records", "cohort = 1\nparticipation = \"proportional\"\n"),
    ] {
        let unbiased = participation(weights, cohort);
        assert_eq!(unbiased.checked, "");
        assert_eq!(unbiased.planned, "");
        assert!(!unbiased.page.contains("Participation is biased"), "{}", unbiased.page);
    }
}

/// What cannot be drawn in proportion to the records is refused before the first run, with the client and the remedy,
/// and so is a scheme without a cohort.
#[test]
fn schemes_of_participation_that_cannot_be_are_refused() {
    let settings = "split = { column = \"site\" }, standardise = true, weights = \"records\"";
    let table = unequal_sites() + &"7.5,a,1\n3.5,a,0\n".repeat(20);
    let data = Data::new(&records(settings), "r.csv", table.as_bytes());
    let check = |lines: &[&str]| {
        let mut arguments = vec!["check", "mine.toml"];
        for line in lines {
            arguments.extend(["--set", *line]);
        }
        data.bench.run(&arguments).expect(2).err
    };
    let scheme = "algorithm.fedavg.participation=\"proportional\"";
    let refused = check(&["algorithm.fedavg.cohort=2", scheme]);
    let wanted = "draws 2 distinct clients, each with 2 times its share as the probability, which is above 1 for client 1, whose share is 0.7000: use `cohort` up to 1";
    let is_possible = "algorithm.fedavg.cohort=1";
    data.bench.run(&["check", "mine.toml", "--set", is_possible, "--set", scheme]).expect(0);
    assert!(refused.contains(wanted), "{refused}");
    let alone = check(&[scheme]);
    assert!(alone.contains("has a meaning with `cohort` only"), "{alone}");
}

/// Refused are a test set with a class that no client has, and metrics that the problem does not have.
#[test]
fn test_sets_and_metrics_that_are_wrong_are_refused() {
    let marked = "clients = 2, features = [\"age\"], test = { column = \"held\" }";
    let table = "age,label,held\n1,a,0\n2,b,0\n3,c,1\n4,a,0\n";
    let data = Data::new(&records(marked), "r.csv", table.as_bytes());
    data.refused("only records of the test set have the label \"c\"").warns("dataset.test)");

    let ridge = "[problem.least-squares-dataset]\ndataset = { file = \"r.csv\", clients = 2, features = [\"age\"] }";
    for (problem, metric, message) in [
        (ridge, "accuracy", "`metrics` has `accuracy`, but `least-squares-dataset` has no classes"),
        (ridge, "test-loss", "`metrics` has `test-loss`, but there is no test set: write `test"),
        (
            "[problem.quadratic]\ndimension = 2\nclients = 2\nspectrum = { from = 1.0, to = 2.0 }\nnoise = 0.1",
            "train-loss",
            "`metrics` has `train-loss`, but `quadratic` is not a problem of records",
        ),
    ] {
        let problem = format!("{problem}\n[record]\nmetrics = [\"{metric}\"]");
        Data::new(&problem, "r.csv", TABLE.as_bytes()).refused(message);
    }
    let random = "clients = 2, features = [\"age\"], test = 0.4";
    let one_class = "clients = 2, features = [\"age\"], test = { column = \"held\" }";
    let table = "age,label,held\n1,a,0\n2,b,0\n3,a,1\n4,a,1\n5,a,0\n6,b,0\n";
    for (settings, metric, message) in [
        (random, "worst-test-accuracy", "clients get records at random, and none of the test set"),
        (random, "test-loss-spread", "write `test-within = \"clients\"` in `dataset`"),
        (one_class, "test-auc", "all of the records of the test set have the same class"),
    ] {
        let problem = format!("{}\n[record]\nmetrics = [\"{metric}\"]", records(settings));
        Data::new(&problem, "r.csv", table.as_bytes()).refused(message);
    }
}

/// With θ > 0 the class of a record is predicted by the sign of its age, so that all values follow from the nine
/// records by hand: accuracies of 2/3, 1 and 1/2 at the three sites. With θ = 0 all records are on the boundary.
#[test]
fn worst_clients_and_classes_have_the_values_that_follow_by_hand() {
    let table =
        "age,site,label\n1,a,1\n2,a,1\n3,a,0\n-1,b,0\n-2,b,0\n4,b,1\n5,b,1\n2,c,1\n-2,c,1\n";
    let settings = "features = [\"age\"], split = { column = \"site\" }";
    let expected = [
        ("worst-accuracy", 0.5),
        ("first-decile-accuracy", 0.5),
        ("accuracy-spread", 0.207_869_854_820_775_23),
        // Records of site a weigh 1/9, of site b 1/12 and of site c 1/6: recalls of 10/13 and 3/5.
        ("balanced-accuracy", 89.0 / 130.0),
        // In units of (1/36)²: 24 + 60 + 60 pairs in order and 18 that tie, of 26 · 10.
        ("auc", 153.0 / 260.0),
    ];
    let metrics = expected.map(|(metric, _)| metric);
    let text = manifest(&records(settings)) + &format!("[record]\nmetrics = {metrics:?}\n");
    let data = Data::new(&records(settings), "r.csv", table.as_bytes());
    data.bench.write(
        "mine.toml",
        text.replace("replicates = 1\n", "replicates = 1\noracle = \"exact\"\n"),
    );
    data.accepted();
    data.bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    for row in data.bench.rows("rows.csv") {
        for (metric, value) in expected {
            let have: f64 = row[&metric.replace('-', "_")].parse().unwrap();
            let at_start = if metric.ends_with("spread") { 0.0 } else { 0.5 };
            let expected = if row["round"] == "0" { at_start } else { value };
            assert!((have - expected).abs() < 1e-14, "{metric}: {have}, not {expected}");
        }
    }
}

/// A drawn test set that takes all records of a client whom a column names is refused. A column that marks the test set
/// may take them.
#[test]
fn a_test_set_takes_no_client_away() {
    let mut table = String::from("age,site,held,label\n");
    (0..20).for_each(|i| table += &format!("{i}.5,s{},0,{}\n", i % 2, i % 3 % 2));
    table += "7.5,alone,1,1\n";
    let settings = |test: &str| {
        format!(
            "[problem.logistic-dataset]\ndataset = {{ file = \"r.csv\", features = [\"age\"], split = {{ column = \"site\" }}, test = {test} }}\nl2 = 0.1"
        )
    };
    let marked = Data::new(&settings("{ column = \"held\" }"), "r.csv", table.as_bytes());
    marked.accepted();
    let drawn = Data::new(&settings("0.5"), "r.csv", table.as_bytes());
    let mut refused = 0;
    for seed in 1..20 {
        let output = drawn.bench.run(&["check", "mine.toml", "--set", &format!("seed={seed}")]);
        if output.code == 2 {
            refused += 1;
            assert!(output.err.contains("all records of the client \"alone\" are drawn"));
            assert!(output.err.contains("`test-within = \"clients\"` leaves them some"));
        }
    }
    // About half of the seeds draw the only record of the client.
    assert!((4..16).contains(&refused), "{refused}");
}

/// A drawn test set that takes all records of a class, or all values of a feature but one, is refused with the key that
/// prevents it, with which every seed passes.
#[test]
fn a_test_set_that_takes_a_class_or_a_value_names_the_remedy() {
    let mut rare_class = String::from("age,label\n");
    (0..30).for_each(|i| rare_class += &format!("{i},{}\n", if i == 7 { 2 } else { i % 2 }));
    let mut rare_value = String::from("age,flag,label\n");
    (0..30).for_each(|i| rare_value += &format!("{i},{},{}\n", u8::from(i == 7), i % 2));
    let settings = "file = \"r.csv\", clients = 2, test = 0.2";
    for (kind, table, more, message) in [
        (
            "softmax-dataset",
            &rare_class,
            "",
            "no client could learn it; `test-within = \"clients\"` leaves them some",
        ),
        (
            "logistic-dataset",
            &rare_value,
            ", standardise = true",
            "leave them out: `flag`; if all other values are in the test set, `test-within = \"clients\"` leaves clients some",
        ),
    ] {
        let problem = |within: &str| {
            format!("[problem.{kind}]\nl2 = 0.1\ndataset = {{ {settings}{more}{within} }}")
        };
        let drawn = Data::new(&problem(""), "r.csv", table.as_bytes());
        let within = Data::new(&problem(", test-within = \"clients\""), "r.csv", table.as_bytes());
        let mut refused = 0;
        for seed in 1..20 {
            let seed = format!("seed={seed}");
            within.bench.run(&["check", "mine.toml", "--set", &seed]).expect(0);
            let output = drawn.bench.run(&["check", "mine.toml", "--set", &seed]);
            if output.code == 2 {
                refused += 1;
                assert!(output.err.contains(message), "{}", output.err);
            }
        }
        assert!((1..12).contains(&refused), "{kind}: {refused}");
    }
}

/// Losses and accuracies over the records and over a test set have the values that they must, for clients that weigh by
/// their records. The page says how the clients weigh, and draws an accuracy.
#[test]
fn losses_and_accuracies_are_recorded_and_drawn() {
    let mut table = String::from("age,label,site\n");
    for i in 0..60_usize {
        let site = ["a", "b", "b", "c", "c", "c"][i % 6];
        let (shift, label) = if i % 3 == 0 { (4, "yes") } else { (0, "no") };
        table += &format!("{},{label},{site}\n", i % 7 + shift);
    }
    let settings = "split = { column = \"site\" }, weights = \"records\", test = 0.2, \
                    standardise = true, intercept = true";
    let data = Data::new(&records(settings), "r.csv", table.as_bytes());
    let metrics = ["train-loss", "test-loss", "accuracy", "test-accuracy", "correction-sum"];
    let figures = metrics[..4].iter().map(|y| format!("[[figure.convergence]]\ny = \"{y}\"\n"));
    let more = format!(
        "[[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = 2\n[record]\nmetrics = {metrics:?}\n{}",
        figures.collect::<String>()
    );
    let text = manifest(&records(settings)).replace("rounds = 3", "rounds = 300");
    data.bench.write("mine.toml", text + &more);
    data.accepted();
    let page = data.bench.read("reports/mine/report.md");
    assert!(page.contains("Clients weigh by their records"), "{page}");
    assert!(page.contains("test accuracy over communications"), "{page}");
    data.bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    let rows = data.bench.read("rows.csv");
    let heads: Vec<&str> = rows.lines().next().unwrap().split(',').collect();
    let at = |name: &str| heads.iter().position(|head| *head == name).unwrap();
    for line in rows.lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let value = |name: &str| row[at(name)].parse::<f64>().unwrap();
        assert!((0.0..=1.0).contains(&value("test_accuracy")), "{line}");
        if row[at("round")] == "0" {
            assert!((value("train_loss") - std::f64::consts::LN_2).abs() < 1e-12, "{line}");
            assert_eq!(value("accuracy"), 0.5);
        }
        if row[at("round")] == "300" {
            assert!(value("accuracy") > 0.6 && value("test_loss") < 0.69, "{line}");
        }
    }
}
