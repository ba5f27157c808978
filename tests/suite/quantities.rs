//! Whether more is better is a property of a quantity, which claims, rankings, headlines, maps and
//! captions ask: with forged results in which one algorithm is better than the other, whichever
//! quantity is measured.

use crate::support::Bench;
use exactfed::evidence::tuned;
use exactfed::plan::Cell;
use exactfed::store::{Results, Store};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::trace::Trace;
use std::collections::HashMap;
use std::time::Duration;

const INSTANCES: usize = 10;

/// Two algorithms at two step sizes, of which the smaller is better, on few records of two classes.
fn manifest(quantity: Quantity) -> String {
    let name = quantity.name();
    let metrics = quantity.metric().map(|metric| metric.name());
    let metrics = metrics.map_or(String::new(), |name| format!("metrics = [\"{name}\"]"));
    // The point from which the distance is measured that has one.
    let reference =
        if name == "sq-error-reference" { "reference = { optimum-of-client = 0 }" } else { "" };
    let claims = claims(quantity);
    // Where the quantity is one of control variates, the first algorithm has some too, under the name of the other.
    let first = if matches!(name, "lyapunov" | "correction-sum" | "sq-coupling-variates") {
        "[[algorithm.scaffold]]\nlabel = \"FedAvg\"\nvariates = \"option-one\""
    } else {
        "[[algorithm.fedavg]]"
    };
    format!(
        r#"title = "{name}"
seed = 1
replicates = 2
instances = {INSTANCES}
[problem.softmax-dataset]
l2 = 0.1
[problem.softmax-dataset.dataset]
file = "records.csv"
label = "kind"
split = {{ column = "site" }}
test = 0.25
[start]
zero = true
[budget]
rounds = 8
[record]
every = 1
{metrics}
{reference}
[tune]
over = "step-size"
values = [0.05, 0.1]
metric = "{name}"
{first}
local-steps = 1
[[algorithm.scaffold]]
local-steps = 1
[[figure.winners]]
id = "map"
metric = "{name}"
x = "local-steps"
y = "batch"
panels = ["step-size"]
[[figure.convergence]]
id = "curves"
y = "{name}"

{claims}"#
    )
}

/// Claims in both directions: what is smaller, what is reached, and what is not.
fn claims(quantity: Quantity) -> String {
    let name = quantity.name();
    let middle = value_of_loss(quantity, 0.5 * (LOSSES[0] + LOSSES[1]));
    let (less, more) =
        if quantity.more_is_better() { ("Scaffold", "FedAvg") } else { ("FedAvg", "Scaffold") };
    format!(
        r#"[[claim.less]]
id = "less"
statement = "s"
metric = "{name}"
left = {{ label = "{less}" }}
right = {{ label = "{more}" }}
[[claim.less]]
id = "not-less"
statement = "s"
metric = "{name}"
left = {{ label = "{more}" }}
right = {{ label = "{less}" }}
[[claim.at-least]]
id = "at-least"
statement = "s"
metric = "{name}"
left = {{ label = "{more}" }}
right = {{ label = "{less}" }}
[[claim.reaches]]
id = "reaches"
statement = "s"
metric = "{name}"
of = {{ label = "FedAvg" }}
reaching = {{ target = {middle} }}
within = 8
[[claim.reaches]]
id = "never"
statement = "s"
metric = "{name}"
of = {{ label = "Scaffold" }}
reaching = {{ target = {middle} }}
within = 8
[[claim.reaches]]
id = "not-yet"
statement = "s"
metric = "{name}"
of = {{ label = "FedAvg" }}
reaching = {{ target = {middle} }}
within = 2
"#
    )
}

/// How far the two algorithms end from the best value: FedAvg is the better one.
const LOSSES: [f64; 2] = [0.2, 0.4];

/// How far every run begins from it.
const START: f64 = 0.9;

fn value_of_loss(quantity: Quantity, loss: f64) -> f64 {
    if quantity.more_is_better() { 1.0 - loss } else { loss }
}

/// A run that comes to its value along a line, a little better or worse than the others.
fn forge(cell: &Cell, quantity: Quantity, replicate: usize, trace: &mut Trace) {
    let own = LOSSES[usize::from(cell.label == "Scaffold")];
    let worse =
        if cell.settings.get("step-size").unwrap().number() == Some(0.1) { 1.5 } else { 1.0 };
    let end = own * worse * (1.0 + 0.01 * (replicate % 7) as f64);
    let rows = trace.rows();
    let loss = |row: usize| START + (end - START) * row as f64 / (rows - 1) as f64;
    let column: Vec<f64> = (0..rows).map(|row| value_of_loss(quantity, loss(row))).collect();
    // Any other quantity says the opposite.
    let other = |row: usize| START + (0.5 / own - START) * row as f64 / (rows - 1) as f64;
    trace.sq_error = (0..rows).map(other).collect();
    match quantity.metric() {
        None => trace.sq_error = column,
        Some(metric) if metric.quantity() == Quantity::SqErrorLimit => {
            trace.sq_error_limit = column
        }
        Some(metric) => trace.further = vec![(metric, column)],
    }
}

/// The quantities that are no costs and not averaged over rounds.
fn measured() -> impl Iterator<Item = Quantity> {
    // Metrics that a user defines have no names here.
    let is_measured = |q: &Quantity| {
        q.average().is_none()
            && !Quantity::COSTS.contains(q)
            && q.metric().is_none_or(|metric| !metric.is_own())
    };
    Quantity::ALL.iter().copied().filter(is_measured)
}

/// Writes the cells of all experiments again with other numbers.
fn forge_all(bench: &Bench) {
    let store = Store::open_existing(&bench.path("results")).unwrap();
    for kept in store.experiments().unwrap() {
        let quantity = Quantity::named(&kept.name).unwrap();
        let plan = exactfed::evidence::plan(kept.name.clone(), kept.source());
        let plan = tuned::all_stages(plan.unwrap_or_else(|e| panic!("{e}")), &store).unwrap();
        for cell in &plan.cells {
            let Some(mut stored) = store.read(&plan.experiment, &cell.id).unwrap() else {
                continue;
            };
            for (replicate, trace) in stored.traces.iter_mut().enumerate() {
                forge(cell, quantity, replicate, trace);
            }
            let by = &stored.record.provenance;
            store.write(&plan, cell, 2, &stored.traces, Duration::ZERO, by).unwrap();
        }
    }
}

fn bench() -> Bench {
    let bench = Bench::new();
    let record = |i: u32| {
        let kind = ["a", "b"][i as usize % 2];
        format!("{},{},{kind},{}\n", i % 5, (i * 7) % 11, i / 12)
    };
    let records: String = (0..24).map(record).collect();
    bench.write("records.csv", "x,y,kind,site\n".to_owned() + &records);
    let files: Vec<String> = measured().map(|q| format!("{}.toml", q.name())).collect();
    measured().zip(&files).for_each(|(q, file)| bench.write(file, manifest(q)));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    // The forged candidates decide which fresh runs follow; then these are forged as well.
    bench.compute(&files);
    forge_all(&bench);
    bench.compute(&files);
    forge_all(&bench);
    // Some claims are refuted, as they have to be.
    bench.run(&["report", "--quiet"]).expect(1);
    bench
}

#[test]
fn claims_rankings_headlines_and_captions_know_which_value_is_better() {
    let bench = bench();
    let mut upwards = 0;
    for quantity in measured() {
        let name = quantity.name();
        let folder = format!("reports/{name}");
        let page = bench.read(&format!("{folder}/report.md"));
        let says = |text: &str| assert!(page.contains(text), "{name}: no {text:?} in\n{page}");
        // What was selected, and what ranks first.
        for row in bench.rows(&format!("{folder}/tuned.csv")) {
            assert_eq!(row["selected"], "0.05", "{name}: {row:?}");
        }
        let ends = if quantity.more_is_better() { "highest" } else { "lowest" };
        says(&format!("FedAvg ends {ends}, at "));
        // The headline, by the error or what an accuracy lacks to 1.
        let lacks = quantity.info().shortfall.map(|shortfall| shortfall.name);
        let word = quantity.loss_name();
        says(&format!("# Tuned, Scaffold’s {word} is 2.0 times FedAvg’s"));
        let claims: toml::Table = bench.read(&format!("{folder}/record.toml")).parse().unwrap();
        let verdict = |id: &str| {
            let claims = claims["claim"].as_array().unwrap();
            let claim = claims.iter().find(|claim| claim["id"].as_str() == Some(id)).unwrap();
            claim["verdict"].as_str().unwrap().to_owned()
        };
        for (id, expected) in [
            ("less", "supported"),
            ("not-less", "refuted"),
            ("at-least", "supported"),
            ("reaches", "supported"),
            ("never", "refuted"),
            ("not-yet", "refuted"),
        ] {
            assert_eq!(verdict(id), expected, "{name}: {id}\n{page}");
        }
        // Captions: of the candidates, the map, the profile and the labels of curves.
        let (best, too) =
            if lacks.is_some() { ("largest", "large") } else { ("smallest", "small") };
        says(&format!("was selected is too {too}, since it is the {best} of several"));
        says(&format!("The algorithm with the {best} mean of "));
        let profile = bench.rows(&format!("{folder}/figures/profile.csv"));
        let leads = profile.iter().find(|row| row["series"].contains("FedAvg")).unwrap();
        assert_eq!(leads["y"].parse::<f64>().unwrap(), 1.0, "{name}: {leads:?}");
        let svg = bench.read(&format!("{folder}/figures/curves.svg"));
        assert_eq!(svg.contains(", lowest"), lacks.is_none(), "{name}");
        if let Some(lacks) = lacks {
            says(&format!("The {lacks} is 1 − {}", quantity.formula()));
            says(&format!("{lacks} (1 − {})", quantity.formula()));
            assert!(!page.contains("ends lowest"), "{name}: {page}");
            upwards += 1;
        }
    }
    // Accuracy, of the worst client, first decile, balanced, and AUC: of clients and of the test set.
    assert_eq!(upwards, 10);
}

/// Accuracies on few records, which differ much between two instances: the logarithm of an accuracy, which suits an
/// error, would take limits far above 1.
const FRACTIONS: &str = include_str!("../manifests/fractions.toml");

/// The two numbers between the first brackets after this text of a Markdown page.
fn bracket(page: &str, before: &str) -> [f64; 2] {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("no {before:?}: {page}"));
    let limits = rest.split_once("\\[").unwrap().1.split_once("\\]").unwrap().0;
    let (low, high) = limits.split_once(", ").unwrap();
    [low, high].map(|limit| limit.parse().unwrap_or_else(|_| panic!("{limits} after {before}")))
}

/// Asserts that these are limits of this mean, from 0 to the largest value `most` of what is stated under this name.
#[track_caller]
fn are_limits(name: &str, mean: f64, [low, high]: [f64; 2], most: f64) {
    let are_limits = 0.0 <= low && low <= mean && mean <= high && high <= most;
    assert!(are_limits, "{name}: {mean} [{low}, {high}]");
}

/// The number in a column of a row.
fn number(row: &HashMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap()
}

/// Limits of the mean of an accuracy are from 0 to 1, and of a standard deviation of accuracies from 0 to 1/2, wherever
/// they are stated.
#[test]
fn limits_of_fractions_are_values_that_fractions_can_have() {
    let bench = Bench::new();
    let record = |i: u32| {
        let kind = ["a", "b"][(i * i + i / 3) as usize % 2];
        format!("{},{},{kind}\n", i % 5, i * 7 % 11)
    };
    let records: String = (0..40).map(record).collect();
    bench.write("records.csv", "x,y,kind\n".to_owned() + &records);
    bench.write("m.toml", FRACTIONS);
    bench.compute(&["m.toml"]);
    bench.report();
    for (file, [mean, low, high], most) in [
        ("tuned.csv", ["value", "low", "high"], 1.0),
        (
            "summary.csv",
            ["test_accuracy_mean", "test_accuracy_ci95_low", "test_accuracy_ci95_high"],
            1.0,
        ),
        ("figures/accuracy.csv", ["y", "low", "high"], 1.0),
        ("figures/tuning-step-size.csv", ["y", "low", "high"], 1.0),
        ("figures/spread.csv", ["y", "low", "high"], 0.5),
    ] {
        let rows = bench.rows(&format!("reports/m/{file}"));
        let mut widest: f64 = 0.0;
        for row in &rows {
            let limits = [number(row, low), number(row, high)];
            are_limits(file, number(row, mean), limits, most);
            widest = widest.max(limits[1] - limits[0]);
        }
        assert!(widest > 0.2, "{file}: {widest}");
    }
    let page = bench.read("reports/m/report.md");
    are_limits("mean of a text", 0.469, bracket(&page, "Accuracy: 0.469"), 1.0);
    assert!(page.contains("spread: 0.141 \\[7.08·10⁻³, 0.500\\]."), "{page}");
    are_limits("claim", 0.469, bracket(&page, "| s | 0.469"), 1.0);
    are_limits("table of tuned settings", 0.469, bracket(&page, "| FedAvg | 0.01 | 0.469"), 1.0);
    let caption = "logarithm of the test error rate (1 − test accuracy; for skewed errors";
    assert!(page.contains(caption), "{page}");
    // The caption has the words that the script of the page replaces.
    let html = bench.read("reports/m/report.html");
    assert_eq!(html.matches("<span class=\"band\">band: pointwise 95").count(), 2, "{html}");
}
