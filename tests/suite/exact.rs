//! What theory knows of a cell: the numbers of the pages, and what runs measure.

use crate::support::{Bench, edited, smoke};
use exactfed::evidence::exact::{CellTheory, KINDS, cell_theory, find_cell};
use exactfed::evidence::{Body, analyse};
use exactfed::manifest::Prediction;
use exactfed::manifest::Source;
use exactfed::manifest::claim::{Scalar, Selection};
use exactfed::plan::{Cell, Plan};
use exactfed::runner::prepare;
use exactfed::stats::{mean, standard_deviation};
use exactfed::store::Store;
use std::collections::BTreeSet;

const REPLICATES: u64 = 600;

/// A linear problem with biased FedAvg, whose figures draw predictions of every kind.
const LINEAR: &str = include_str!("../manifests/linear.toml");

fn plan(name: &str, text: &str) -> Plan {
    let source = Source { name: name.into(), text: text.into(), ..Source::default() };
    exactfed::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"))
}

fn theory<'a>(plan: &Plan, cell: &'a Cell) -> CellTheory<'a> {
    cell_theory(plan, &|_| None, cell, 0).unwrap_or_else(|e| panic!("{e}"))
}

/// The numbers of a value that is known.
#[track_caller]
fn known<'t>(theory: &'t CellTheory<'_>, name: &str) -> &'t [f64] {
    let value = theory.get(name).unwrap_or_else(|| panic!("there is no {name}"));
    value.value.as_ref().unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// How many standard errors the mean of a sample is off, if it is further off than rounding.
fn off(sample: &[f64], exact: f64) -> f64 {
    let error = standard_deviation(sample) / (sample.len() as f64).sqrt();
    let apart = (mean(sample) - exact).abs();
    if apart <= 1e-9 * exact.abs() + 1e-24 { 0.0 } else { apart / error }
}

#[test]
fn means_and_covariances_are_those_of_runs() {
    let plan = plan("t.toml", LINEAR);
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap();
    let mut compared = 0;
    for p in &prepared {
        let exact = theory(&plan, p.cell);
        let (means, covariances) = (known(&exact, "mean"), known(&exact, "covariance"));
        let traces: Vec<_> = (0..REPLICATES).map(|r| p.simulate(r)).collect();
        assert_eq!(exact.rounds, traces[0].round);
        let mut check = |what: &str, row: usize, of: &dyn Fn(usize) -> f64, value: f64| {
            let sample: Vec<f64> = (0..traces.len()).map(of).collect();
            let off = off(&sample, value);
            assert!(off < 4.0, "{}, {what} at {row}: {off} standard errors", exact.name);
            compared += 1;
        };
        for row in 0..exact.rounds.len() {
            let theta = |run: usize, i: usize| traces[run].theta[2 * row + i];
            for i in 0..2 {
                check("mean", row, &|run| theta(run, i), means[2 * row + i]);
                for j in 0..=i {
                    let apart = |run, i: usize| theta(run, i) - means[2 * row + i];
                    let product = |run| apart(run, i) * apart(run, j);
                    check("covariance", row, &product, covariances[4 * row + 2 * i + j]);
                }
            }
            let error = known(&exact, "sq_error")[row];
            check("sq_error", row, &|run| traces[run].sq_error[row], error);
            let limit = known(&exact, "sq_error_limit")[row];
            check("sq_error_limit", row, &|run| traces[run].sq_error_limit[row], limit);
            for (place, (metric, _)) in traces[0].further.iter().enumerate() {
                let name = metric.column();
                let Ok(values) = &exact.get(name).unwrap().value else { continue };
                if values[row].is_finite() {
                    check(name, row, &|run| traces[run].further[place].1[row], values[row]);
                }
            }
        }
    }
    assert!(compared > 150, "{compared}");
}

/// Each prediction in the figures of a page has the numbers of its cell.
#[test]
fn predictions_are_those_of_the_page() {
    let bench = Bench::ran(&edited(LINEAR, &[("replicates = 600", "replicates = 2")]));
    let store = Store::open(&bench.path("results")).unwrap();
    let stored = store.experiments().unwrap().remove(0);
    let plan = exactfed::evidence::plan(stored.name.clone(), stored.source())
        .unwrap_or_else(|e| panic!("{e}"));
    let page = analyse(&plan, &store).unwrap_or_else(|e| panic!("{e}"));
    let all: Vec<CellTheory<'_>> = plan.cells.iter().map(|cell| theory(&plan, cell)).collect();
    let mut seen = BTreeSet::new();
    for (figure, moments) in page.figures.iter().zip(["sq_error", "sq_error_limit", "sq_coupling"])
    {
        let Body::Plot(plot) = &figure.body else { panic!("{figure:?}") };
        for series in plot.series().filter(|series| !series.points.is_empty()) {
            let Some(by) = series.line.prediction() else { continue };
            let [cell] = &series.cells[..] else { panic!("{series:?}") };
            let exact = all.iter().find(|exact| exact.cell.id == **cell).unwrap();
            let square = |name: &str| known(exact, name).iter().fold(0.0, |sum, x| sum + x * x);
            let bound = |name: &str| {
                let found = exact.bounds.iter().find(|curve| curve.bound.info.name == name);
                found.unwrap_or_else(|| panic!("{name}")).values.clone()
            };
            let rows = exact.rounds.len();
            let values = match by {
                Prediction::ExactMoments => known(exact, moments).to_vec(),
                Prediction::ExactBias => vec![square("bias"); rows],
                Prediction::FirstOrder => vec![square("first_order_bias"); rows],
                Prediction::Contraction => known(exact, "contraction").to_vec(),
                Prediction::ContractionPrinted => known(exact, "contraction_printed").to_vec(),
                Prediction::Bound(id) => bound(&id.info().name),
                other => panic!("{other:?}"),
            };
            for point in &series.points {
                let row = exact.rounds.iter().position(|t| *t as f64 == point.x).unwrap();
                let apart = (values[row] - point.y).abs();
                assert!(apart <= 4.0 * f64::EPSILON * point.y, "{by:?} of {}", exact.name);
            }
            seen.insert(format!("{by:?}"));
        }
    }
    let drawn =
        "ExactMoments ExactBias FirstOrder Contraction ContractionPrinted Bound(scafflsa-a5)";
    let drawn: BTreeSet<String> = drawn.split(' ').map(str::to_owned).collect();
    assert!(seen.is_superset(&drawn), "{seen:?}");
}

/// Among the cells of some manifests, every kind of value is known of one and has its shape; every
/// other has a reason.
#[test]
fn every_value_is_known_somewhere() {
    let mut open: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
    assert_eq!(open.len(), KINDS.len(), "names are distinct");
    let mut bounds = BTreeSet::new();
    for name in ["all-lms", "all-logistic"] {
        let file = smoke(&format!("{name}.toml"));
        let text = std::fs::read_to_string(&file).unwrap();
        let plan = plan(file.to_str().unwrap(), &text);
        for cell in &plan.cells {
            let exact = theory(&plan, cell);
            for value in &exact.values {
                assert_eq!(value.shape.len(), value.kind.axes.len());
                match &value.value {
                    Ok(numbers) => {
                        let name = value.kind.name;
                        assert_eq!(numbers.len(), value.shape.iter().product::<usize>(), "{name}");
                        open.remove(name);
                    }
                    Err(why) => {
                        let why = why.to_string();
                        assert!(why.contains("it is ") || why.contains("do not close"), "{why}");
                    }
                }
            }
            for curve in &exact.bounds {
                assert_eq!(curve.values.len(), exact.rounds.len());
                let last = curve.values.last().unwrap();
                assert_eq!(last.is_nan(), curve.bound.value.is_err(), "{curve:?}");
                bounds.insert(&curve.bound.info.name);
            }
        }
    }
    assert!(open.is_empty(), "known nowhere: {open:?}");
    assert!(bounds.len() > 10, "{bounds:?}");
}

/// A field that is not linear has no exact moments; θ_c* is the zero of the field of client c.
#[test]
fn a_value_that_is_not_known_has_its_reason() {
    let text = std::fs::read_to_string(smoke("logistic.toml")).unwrap();
    let plan = plan("t.toml", &text);
    let exact = theory(&plan, &plan.cells[0]);
    let why = exact.get("mean").unwrap().value.as_ref().unwrap_err().to_string();
    assert!(why.contains("where the equations of second moments close"), "{why}");
    assert!(exact.get("limit").unwrap().value.is_err());
    let optima = exact.get("client_optima").unwrap();
    let [n, d] = optima.shape[..] else { panic!("{optima:?}") };
    assert_eq!(known(&exact, "optimum").len(), d);
    assert_eq!(known(&exact, "shares"), vec![1.0 / n as f64; n]);
}

#[test]
fn one_cell_is_found() {
    let plan = plan("t.toml", LINEAR);
    let select = |label: &str, steps: Option<f64>| {
        let steps = steps.map(|steps| ("local-steps".to_owned(), Scalar::Number(steps)));
        let label = ("label".to_owned(), Scalar::Text(label.into()));
        Selection([Some(label), steps].into_iter().flatten().collect())
    };
    let id = &plan.cells[1].id;
    for (prefix, selection) in [
        (id.as_str(), Selection::default()),
        (&id[..6], Selection::default()),
        ("", select("FedAvg", Some(5.0))),
    ] {
        assert_eq!(&find_cell(&plan, prefix, &selection).unwrap().id, id);
    }
    let several = find_cell(&plan, "", &select("FedAvg", None)).unwrap_err().to_string();
    assert!(several.starts_with("several cells are selected; name one of\n  "), "{several}");
    assert_eq!(several.matches("FedAvg, H = ").count(), 2, "{several}");
    let none = find_cell(&plan, "", &select("FedSGD", None)).unwrap_err().to_string();
    assert!(none.starts_with("no cell is selected; there are\n") && none.lines().count() == 4);
    let gone = cell_theory(&plan, &|_| None, &plan.cells[0], 1).unwrap_err().to_string();
    assert!(gone.contains("the cell has 1 instance; none has the number 1, from 0"), "{gone}");
}

/// FedAvg within and beyond the edge of stability, γ = 2/L = 2.
const BEYOND: &str = r#"
title = "t"
seed = 1
replicates = 20

[problem.quadratic]
dimension = 3
clients = 4
spectrum = { from = 0.2, to = 1.0 }
gradient-heterogeneity = 1.0
noise = 0.5

[start]
offset = 1.0

[budget]
rounds = 40

[[algorithm.fedavg]]
label = "beyond"
step-size = 2.4
local-steps = 2

[[algorithm.fedavg]]
label = "within"
step-size = 0.5
local-steps = 2

[[claim.matches]]
id = "beyond"
statement = "beyond the edge errors settle"
of = { label = "beyond" }
prediction = "stationary"
margin = 0.5

[[claim.matches]]
id = "within"
statement = "within it they do"
of = { label = "within" }
prediction = "stationary"
margin = 0.5
"#;

/// Scaffnew, whose local steps expand where the step size is large.
const EXPANDING: &str = r#"
title = "t"
seed = 1
replicates = 5

[problem.lms]
dimension = 2
clients = 2
spectrum = { from = 0.5, to = 1.2 }
model-spread = 0.5
noise = 0.3

[start]
offset = 1.0

[budget]
rounds = 400

[[algorithm.scaffnew]]
step-size = [0.5, 2.0, 5.0]
communication-probability = [0.2, 0.4]

[[figure.stability]]
x = "step-size"
y = "communication-probability"
"#;

#[test]
fn claims_and_maps_have_no_stationary_error_of_what_diverges() {
    let bench = Bench::ran(BEYOND);
    let report = bench.run(&["report"]).expect(1);
    report.warns("the claim \"beyond\" is not tested");
    assert!(!report.err.contains("\"within\""), "{}", report.err);

    let bench = Bench::ran(EXPANDING);
    bench.report();
    let rows = bench.rows("reports/m/figures/stability.csv");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let number = |key: &str| row[key].parse::<f64>().unwrap();
        let (radius, diverged) = (number("radius_square"), number("diverged"));
        match number("x") {
            0.5 => assert!(radius < 1.0 && diverged == 0.0, "{row:?}"),
            _ => assert!(radius == f64::INFINITY && diverged > 0.0, "{row:?}"),
        }
    }
}
