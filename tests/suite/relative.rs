//! Step sizes, penalties and probabilities in units of the problem's constants, as a user writes them. The constants
//! are those that NumPy computes from the same records.

use crate::support::Bench;
use std::fmt::Write as _;

/// The largest eigenvalue of a client's E xxᵀ, over two clients; that of their mean, and the largest ‖x‖² of a record:
/// by `numpy.linalg.eigvalsh` of the records of [`records`].
const LARGEST: f64 = 1.025_034_437_222_67;
const OF_MEAN: f64 = 0.937_758_237_932_747_9;
const OF_RECORD: f64 = 2.890_625;
/// The smallest eigenvalue of a client's E xxᵀ, by the same function.
const SMALLEST: f64 = 0.002_465_216_529_065_167_2;

/// 9 records of one client and 15 of another, with three features, two classes, three kinds and no rounding.
fn records() -> String {
    let mut text = String::from("a,b,c,side,client,kind\n");
    for i in 0..24_i32 {
        let a = f64::from(i * 7 % 13 - 6) / 4.0;
        let b = f64::from(i * 5 % 11 - 5) / 8.0;
        let c = f64::from(i * i % 17 - 8) / 16.0;
        writeln!(text, "{a},{b},{c},{},{},{}", i % 2, u8::from(i >= 9), i % 3).unwrap();
    }
    text
}

/// A manifest on these records with this penalty and these algorithms.
pub fn manifest(kind: &str, label: &str, l2: &str, algorithms: &str) -> String {
    format!(
        r#"title = "t"
seed = 1
replicates = 1
oracle = "exact"
[problem.{kind}]
l2 = {l2}
[problem.{kind}.dataset]
file = "records.csv"
features = ["a", "b", "c"]
label = "{label}"
split = {{ column = "client" }}
standardise = false
intercept = false
[start]
zero = true
[budget]
rounds = 2
{algorithms}"#
    )
}

/// A bench with this manifest, `mine.toml`, and the records.
pub fn bench(manifest: &str) -> Bench {
    let bench = Bench::new();
    bench.write("records.csv", records());
    bench.write("mine.toml", manifest);
    bench
}

/// FedAvg with this step size.
fn fedavg(step_size: &str) -> String {
    format!("[[algorithm.fedavg]]\nstep-size = {step_size}\nlocal-steps = 2\n")
}

/// The step sizes of an export, in its order and each once.
fn exported_steps(bench: &Bench) -> Vec<f64> {
    bench.run(&["run", "mine.toml"]).expect(0);
    bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    let mut steps: Vec<f64> = Vec::new();
    for row in bench.rows("rows.csv") {
        let step = row["step_size"].parse().unwrap();
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 1e-12, "{what}: {found} and {expected}");
}

/// The numbers of every kind of records are those of NumPy: a quarter of the eigenvalues for two classes, half of them
/// for several, and the eigenvalues themselves for ridge regression.
#[test]
fn step_sizes_are_those_of_numpy() {
    for (kind, label, factor) in [
        ("logistic-dataset", "side", 0.25),
        ("softmax-dataset", "kind", 0.5),
        ("least-squares-dataset", "side", 1.0),
    ] {
        for (unit, constant) in [
            ("over-L", factor * LARGEST + 0.1),
            ("over-mean-L", factor * OF_MEAN + 0.1),
            ("over-data-L", factor * LARGEST),
            ("over-mean-data-L", factor * OF_MEAN),
            ("over-draw-L", factor * OF_RECORD + 0.1),
        ] {
            let text = manifest(kind, label, "0.1", &fedavg(&format!("{{ {unit} = 0.5 }}")));
            let found = exported_steps(&bench(&text));
            assert_eq!(found.len(), 1, "{kind}, {unit}");
            assert_near(found[0], 0.5 / constant, &format!("{kind}, {unit}"));
        }
    }
    let text = manifest("least-squares-dataset", "side", "0.1", &fedavg("{ over-L-plus-mu = 2 }"));
    let expected = 2.0 / (LARGEST + SMALLEST + 0.2);
    assert_near(exported_steps(&bench(&text))[0], expected, "2/(L + μ)");
}

/// λ is a multiple of the smoothness without it, and then γ and p are of the smoothness with it. `check` and `plan`
/// print what is written next to the numbers, and the page shows them too.
#[test]
fn a_penalty_is_a_multiple_of_the_smoothness_without_it() {
    let scaffnew = "[[algorithm.scaffnew]]\nstep-size = { over-L = 1.0 }\n\
                    communication-probability = { over-sqrt-kappa = 1.0 }\n";
    let text = manifest("logistic-dataset", "side", "{ times-L = 0.5 }", scaffnew);
    let bench = bench(&text);
    for command in ["check", "plan"] {
        let said = bench.run(&[command, "mine.toml"]).expect(0).out;
        for words in [
            "l2 = { times-L = 0.5 } is 0.128129",
            "communication-probability = { over-sqrt-kappa = 1 } of Scaffnew is 0.57735",
            "step-size = { over-L = 1 } of Scaffnew is 2.60154",
            "L = 0.384388, the largest smoothness of a client's loss",
            "mu = 0.128129, the smallest strong convexity of a client's loss",
        ] {
            assert!(said.contains(words), "{command}, {words}: {said}");
        }
    }
    assert_near(exported_steps(&bench)[0], 1.0 / (1.5 * 0.25 * LARGEST), "γ");
    bench.run(&["report"]).expect(0);
    let page = bench.read("reports/mine/report.md");
    assert!(page.contains("is 2.60154") && page.contains("is 0.128129"), "{page}");
    let mean = text.replace("{ times-L = 0.5 }", "{ times-mean-L = 0.5 }");
    bench.write("mine.toml", mean);
    let expected = 1.0 / (0.25 * LARGEST + 0.125 * OF_MEAN);
    bench.run(&["run", "mine.toml", "--out", "other"]).expect(0);
    bench.run(&["export", "other", "--out", "other.csv"]).expect(0);
    let found = bench.rows("other.csv")[0]["step_size"].parse().unwrap();
    assert_near(found, expected, "γ with λ of the mean loss");
}

/// The exported step sizes of FedAvg with this axis on a logistic regression.
fn steps_of_axis(step_size: &str) -> Vec<f64> {
    exported_steps(&bench(&manifest("logistic-dataset", "side", "0.1", &fedavg(step_size))))
}

/// Numbers in units are values of axes, alone, in a list with numbers, and as candidates of `[tune]`.
#[test]
fn units_are_axes_and_are_tuned() {
    let whole = 1.0 / (0.25 * LARGEST + 0.1);
    let inside = steps_of_axis("{ over-L = [0.5, 1.0] }");
    let listed = steps_of_axis("[{ over-L = 0.5 }, { over-L = 1.0 }]");
    assert_eq!(inside, listed);
    assert_near(inside[0], 0.5 * whole, "the first value");
    assert_near(inside[1], whole, "the second value");
    assert_eq!(steps_of_axis("[0.25, { over-L = 1.0 }]"), [0.25, inside[1]]);
    for candidates in [
        "over = \"step-size.over-L\"\nvalues = [0.5, 1.0]",
        "over = \"step-size\"\nvalues = { step-size = { over-L = [0.5, 1.0] } }",
    ] {
        let tuned = format!("[[algorithm.fedavg]]\nlocal-steps = 2\n[tune]\n{candidates}\n");
        let text = manifest("logistic-dataset", "side", "0.1", &tuned);
        let found = exported_steps(&bench(&text));
        assert!(!found.is_empty() && found.iter().all(|step| inside.contains(step)), "{found:?}");
    }
}

/// What is not known, or is no number above 0, is an error before anything runs, with the key and what is allowed.
#[test]
fn what_is_wrong_with_units_is_said_before_a_run() {
    for (step_size, words) in [
        ("{ over-L = 0.0 }", "must have a finite number above 0"),
        ("{ over-l = 1.0 }", "unknown name `over-l`"),
        ("{ over-L = 1.0, over-mu = 1.0 }", "expected exactly one of these keys"),
        ("{ over-L = \"1\" }", "expected a number"),
        ("\"over-L\"", "expected a number"),
    ] {
        let text = manifest("logistic-dataset", "side", "0.1", &fedavg(step_size));
        let said = bench(&text).run(&["check", "mine.toml"]).expect(2).err;
        assert!(said.contains(words) && said.contains("step-size"), "{step_size}: {said}");
    }
    let quadratic = r#"title = "t"
seed = 1
replicates = 1
problem.quadratic = { dimension = 2, clients = 2, spectrum = { from = 0.5, to = 1.0 }, gradient-heterogeneity = 1.0, hessian-heterogeneity = 0.1, noise = 0.1 }
start.zero = true
budget.rounds = 2
[[algorithm.fedprox]]
step-size = 0.1
local-steps = 2
proximal = { times-data-L = 0.1 }
"#;
    let bench = Bench::new();
    bench.write("bad.toml", quadratic);
    let said = bench.run(&["check", "bad.toml"]).expect(2).err;
    let words = "`proximal` is in units of `times-data-L`, but this problem has no loss of records";
    assert!(said.contains(words), "{said}");
}
