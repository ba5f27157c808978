//! Clients whose losses are merely convex, driven as a user drives them: a client may be linear, the mean may have a set
//! of minimisers, and classification without a penalty has an optimum unless the classes can be separated.

use crate::npz::{Named, doubles};
use crate::support::Bench;

/// FedAvg, Scaffold and Richardson-Romberg without noise on f₁ = x² + Gx and f₂ = −Gx (Karimireddy et al. 2020), as they
/// are printed: the second client has no curvature and no optimum.
const PRINTED: &str = r#"title = "t"
seed = 1
replicates = 1
oracle = "exact"
problem.atoms.file = "lsa.npz"
start.point = [1.0]
budget.rounds = 40
record.every = 1
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 10
[[algorithm.scaffold]]
step-size = 0.1
local-steps = 10
"#;

/// The fields 2x + G and −G as atoms.
fn printed_example(g: f64) -> Vec<u8> {
    let arrays: [Named<'_>; 3] = [
        ("A", &[2, 1, 1, 1], vec![2.0, 0.0]),
        ("b", &[2, 1, 1], vec![-g, g]),
        ("p", &[2, 1], vec![1.0, 1.0]),
    ];
    doubles(&arrays)
}

/// The squared errors of an algorithm at all recorded rounds, in their order.
fn sq_errors(bench: &Bench, label: &str) -> Vec<f64> {
    let rows = bench.rows("rows.csv");
    let own = rows.iter().filter(|row| row["label"] == label);
    own.map(|row| row["sq_error"].parse().unwrap()).collect()
}

/// θ* is 0. A round of FedAvg with H steps of γ multiplies the distance of the first client from −G/2 by (1 − 2γ)^H, and
/// moves the second by γHG; its limit is the fixed point of their mean. Scaffold has no bias.
#[test]
fn the_printed_example_has_its_closed_form() {
    let gamma = 0.1;
    for g in [1.0, 100.0] {
        let bench = Bench::new();
        bench.write("lsa.npz", printed_example(g));
        bench.write("m.toml", PRINTED);
        bench.compute(&["m.toml"]);
        bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
        let power = (1.0_f64 - 2.0 * gamma).powi(10);
        let mut x = 1.0_f64;
        for (round, found) in sq_errors(&bench, "FedAvg").into_iter().enumerate() {
            assert!((found / (x * x) - 1.0).abs() < 1e-12, "G = {g}, round {round}: {found}");
            let first = power * (x + g / 2.0) - g / 2.0;
            let second = x + gamma * 10.0 * g;
            x = 0.5 * (first + second);
        }
        let limit = g * (gamma * 10.0 / (1.0 - power) - 0.5);
        assert!((x / limit - 1.0).abs() < 1e-9, "{x} {limit}");
        let last = *sq_errors(&bench, "Scaffold").last().unwrap();
        assert!(last < 1e-15 * g * g, "{last}");
        bench.report();
        assert!(bench.read("reports/m/report.md").contains("Scaffold"));
    }
}

/// Exact theory says where FedAvg tends to although a client has no optimum of its own, and a single θ* is all that
/// `sq-error-limit` needs.
#[test]
fn theory_knows_the_limit_of_the_printed_example() {
    let bench = Bench::new();
    bench.write("lsa.npz", printed_example(1.0));
    bench.write("m.toml", PRINTED.replace("start.point = [1.0]", "start.limit = true"));
    bench.compute(&["m.toml"]);
    bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    let limit = 1.0 / (1.0 - 0.8_f64.powi(10)) - 0.5;
    for found in sq_errors(&bench, "FedAvg") {
        assert!((found / (limit * limit) - 1.0).abs() < 1e-12, "{found}");
    }
}

/// Least squares of two clients with two records each and five features, or with one record fewer.
const WIDE: &str = r#"title = "t"
seed = 1
replicates = 2
[problem.least-squares-dataset]
dataset = { file = "r.csv", label = "y", split = { column = "client" }, standardise = false }
[start]
zero = true
[budget]
rounds = 20
[record]
every = 5
metrics = ["suboptimality", "sq-error-average", "sq-error-clients", "train-loss"]
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 3
[[algorithm.scaffold]]
step-size = 0.1
local-steps = 3
[[claim.less]]
id = "variates"
statement = "Scaffold is nearer to the set of minimisers"
left = { label = "Scaffold" }
right = { label = "FedAvg" }
"#;

const RECORDS: &str =
    "client,a,b,c,d,e,y\n0,1,0,0.5,0,1,1\n0,0,1,-0.5,1,0,2\n1,0.3,1,0,0,1,-1\n1,0,0,1,1,-1,0.5\n";

/// A bench with the manifest and its records.
fn wide() -> Bench {
    let bench = Bench::new();
    bench.write("r.csv", RECORDS);
    bench.write("m.toml", WIDE);
    bench
}

#[test]
fn errors_are_distances_to_the_set_of_minimisers() {
    let bench = wide();
    bench.run(&["check", "m.toml"]).expect(0).warns(
        "θ* is not unique: the minimisers are a space of 1 dimension, and ‖θ − θ*‖ is the distance to the set of minimisers",
    );
    bench.compute(&["m.toml"]);
    bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    for row in bench.rows("rows.csv") {
        let number = |column: &str| -> f64 { row[column].parse().unwrap() };
        // Records are interpolated, so that the least loss is 0 and f − f* the loss; it is at least half of the least
        // eigenvalue that is not 0 times the squared distance from the set, and 0 only there.
        let gap = number("suboptimality");
        assert!((gap - number("train_loss")).abs() < 1e-14, "{row:?}");
        assert!(number("sq_error") > 0.0 && number("sq_error") < 1e3 * gap, "{row:?}");
        if row["round"] == "0" {
            assert_eq!(row["sq_error"], row["sq_error_average"]);
        }
    }
    let last = |label: &str| *sq_errors(&bench, label).last().unwrap();
    let first = sq_errors(&bench, "FedAvg")[0];
    assert!(last("FedAvg") < 0.9 * first, "no part of the error lies along the set");
    bench.report();
    let page = bench.read("reports/m/report.md");
    for part in
        ["is the distance to the set of minimisers", "the nearest point of the set of minimisers"]
    {
        assert!(page.contains(part), "{part} is not in {page}");
    }
}

#[test]
fn what_needs_a_single_optimum_is_refused() {
    for (settings, key) in [
        ("record.metrics=[\"sq-error-limit\"]", "`sq-error-limit` needs a unique θ*"),
        ("record.metrics=[\"sq-coupling\"]", "`sq-coupling` needs a unique θ*"),
        ("record.averages=[\"bias\"]", "`bias` needs a unique θ*"),
        ("record.averages=[\"covariance\"]", "`covariance` needs a unique θ*"),
    ] {
        let output = wide().run(&["check", "m.toml", "--set", settings]).expect(2);
        output.warns(key);
        output.warns("the squared distance to this set");
    }
    let bench = wide();
    bench.write("m.toml", WIDE.replace("zero = true", "limit = true"));
    bench.run(&["check", "m.toml"]).expect(2).warns("needs a unique θ*");
    // Both clients have the same 2 × 2 matrix, of rank one.
    let arrays: [Named<'_>; 3] = [
        ("A", &[2, 1, 2, 2], vec![1.0; 8]),
        ("b", &[2, 1, 2], vec![1.0, 1.0, -2.0, -2.0]),
        ("p", &[2, 1], vec![1.0, 1.0]),
    ];
    bench.write("lsa.npz", doubles(&arrays));
    bench.write("m.toml", FRONTIER);
    let output = bench.run(&["check", "m.toml"]).expect(2);
    output.warns("needs a unique θ*");
    output.warns("(frontier.0)");
}

/// A frontier of FedAvg on the field in `lsa.npz`.
const FRONTIER: &str = r#"title = "t"
seed = 1
replicates = 1
problem.atoms.file = "lsa.npz"
[[frontier]]
id = "least"
algorithms = ["fedavg"]
clients = [2]
targets = { from = 0.1, to = 0.01, points = 2 }
step-size = { from = 1e-3, to = 1.0, points = 4 }
local-steps = { up-to = 4, ratio = 2.0 }
"#;

/// Gradient descent by one client on logistic or softmax regression without a penalty.
fn classification(kind: &str, optimum: &str) -> String {
    format!(
        r#"title = "t"
seed = 1
replicates = 1
oracle = "exact"
[problem.{kind}]
dataset = {{ file = "r.csv", label = "y", clients = 1 }}
l2 = 0.0
[start]
zero = true
[budget]
rounds = 400
[record]
every = 100
metrics = ["train-loss"]
{optimum}
[[algorithm.fedavg]]
step-size = 0.5
local-steps = 3
"#
    )
}

#[test]
fn classes_without_a_penalty_have_an_optimum_unless_they_are_separated() {
    let apart = "a,b,y\n1,0.2,1\n2,1,1\n1.5,-1,1\n-1,0,0\n-2,1,0\n-0.5,-0.3,0\n";
    let mixed = format!("{apart}-1.5,0.4,1\n1.2,0.3,0\n0.4,-0.8,0\n-0.7,0.9,1\n");
    for kind in ["logistic-dataset", "softmax-dataset"] {
        let bench = Bench::new();
        bench.write("r.csv", apart);
        bench.write("m.toml", classification(kind, ""));
        let output = bench.run(&["check", "m.toml"]).expect(2);
        output.warns(&format!("(problem.{kind}.l2)"));
        output.warns("θ* does not exist without a penalty");
        output.warns("`optimum = false` in [record]");
        bench.write("m.toml", classification(kind, "optimum = false"));
        bench.compute(&["m.toml"]);
        bench.write("r.csv", &mixed);
        bench.write("m.toml", classification(kind, ""));
        bench.compute(&["m.toml", "--out", "mixed"]);
        bench.run(&["export", "mixed", "--out", "rows.csv"]).expect(0);
        let errors = sq_errors(&bench, "FedAvg");
        assert!(errors.last().unwrap() < &(1e-6 * errors[0]), "{errors:?}");
    }
}
