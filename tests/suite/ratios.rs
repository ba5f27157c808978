//! Two algorithms have one ratio: the ranking, the labels beside curves, the headline and the tables
//! of a page say the same number.

use crate::support::{Bench, QUADRATIC, edited};
use exactfed::evidence::{Body, CellResult, Experiment, Figure, Point, Separation, analyse, tuned};
use exactfed::plan::Plan;
use exactfed::stats::{Ratio, mean};
use exactfed::store::Store;
use exactfed::words::{plain, readable};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Several instances with several runs on each.
const INSTANCES: &str = include_str!("../manifests/instances.toml");

/// The last measured point of each cell of a figure that shows the quantity of the ranking.
fn last_points<'f>(figure: &'f Figure, experiment: &Experiment<'_>) -> HashMap<&'f str, Point> {
    let shown = figure.exploration.as_ref().map(|exploration| &exploration.y[..]);
    let Body::Plot(plot) = &figure.body else { return HashMap::new() };
    if shown != Some(&[experiment.standings.by]) || !plot.labels.is_ranked {
        return HashMap::new();
    }
    let mut points = HashMap::new();
    for series in plot.series().filter(|one| one.line.is_measured() && one.diverged == 0) {
        match &series.cells[..] {
            // A curve over rounds is one cell.
            [cell] if !series.rows.is_empty() => {
                points.extend(series.points.last().map(|point| (&**cell, *point)));
            }
            cells => points.extend(cells.iter().map(|cell| &**cell).zip(series.points.clone())),
        }
    }
    points
}

/// The ratio that labels say of two points.
fn label_ratio(other: Point, best: Point) -> f64 {
    if other.geometric.is_nan() || best.geometric.is_nan() {
        other.y / best.y
    } else {
        other.geometric / best.geometric
    }
}

/// Compares the ranking of an experiment with the labels of its figures; how many ratios there are.
#[track_caller]
fn check_labels(experiment: &Experiment<'_>) -> usize {
    let name = &experiment.plan.experiment;
    let standings = &experiment.standings;
    // A ranking at a cost may be of other rounds than the ends of curves.
    let ends_there = |cell: &&CellResult<'_>| {
        cell.runs.sample(standings.by, standings.at).ok() == cell.runs.finals(standings.by)
    };
    let compared_at_end = experiment.cells.iter().filter(ends_there);
    let compared_at_end: HashSet<&str> = compared_at_end.map(|cell| &*cell.cell.id).collect();
    let mut compared = 0;
    for figure in &experiment.figures {
        let mut points = last_points(figure, experiment);
        points.retain(|cell, _| compared_at_end.contains(cell));
        for row in &experiment.standings.rows {
            let best = row.algorithms.iter().find(|algorithm| algorithm.rank == Some(1));
            let Some(best) = best.and_then(|best| points.get(best.cell.as_str())) else { continue };
            for algorithm in &row.algorithms {
                let Some(rival) = &algorithm.rival else { continue };
                let Some(point) = points.get(algorithm.cell.as_str()) else { continue };
                if rival.separation == Separation::BothZero || row.is_zero {
                    continue;
                }
                let (found, wanted) = (label_ratio(*point, *best), rival.ratio.estimate);
                assert!(
                    (found / wanted - 1.0).abs() < 1e-9,
                    "{name}#{}, {:?}, {}: {found}, not {wanted}",
                    figure.id,
                    row.settings,
                    algorithm.name
                );
                compared += 1;
            }
        }
    }
    compared
}

/// The plans of the experiments of a store that rank algorithms from runs.
fn ranked_plans(store: &Store) -> Vec<Plan> {
    let stored = store.experiments().unwrap();
    let plan = |name: String, source| {
        let plan = exactfed::evidence::plan(name, source).unwrap_or_else(|e| panic!("{e}"));
        tuned::follow(plan, store).unwrap_or_else(|e| panic!("{e}"))
    };
    let plans = stored.into_iter().map(|one| plan(one.name.clone(), one.source()));
    plans.filter(|plan| !plan.cells.is_empty() && plan.manifest.frontier.is_empty()).collect()
}

/// With EXACTFED_RESULTS, the results of `make reproduce` as well.
#[test]
fn labels_have_the_ratios_of_the_ranking() {
    let bench = Bench::ran(INSTANCES);
    let store = Store::open(&bench.path("results")).unwrap();
    let plans = ranked_plans(&store);
    let experiment = analyse(&plans[0], &store).unwrap_or_else(|e| panic!("{e}"));
    // Two grid points, in each of five figures.
    assert_eq!(check_labels(&experiment), 10);
    let Some(folder) = std::env::var_os("EXACTFED_RESULTS") else { return };
    let store = Store::open_existing(Path::new(&folder)).unwrap();
    let mut compared = 0;
    for plan in ranked_plans(&store) {
        let experiment = analyse(&plan, &store).unwrap_or_else(|e| panic!("{e}"));
        let own = check_labels(&experiment);
        println!("{}: {own} ratios", plan.experiment);
        compared += own;
    }
    assert!(compared > 500, "{compared} ratios of published results");
}

/// The cell of an algorithm with ten local steps.
fn at_ten<'e>(experiment: &'e Experiment<'e>, label: &str) -> &'e CellResult<'e> {
    let is_meant = |cell: &&CellResult<'_>| {
        let steps = cell.cell.settings.get("local-steps").and_then(|steps| steps.number());
        cell.cell.label == label && steps == Some(10.0)
    };
    experiment.cells.iter().find(is_meant).unwrap()
}

/// The texts have the geometric mean of the ratios on the instances, although the arithmetic means of
/// the curves have another ratio.
#[test]
fn headline_label_and_table_say_one_ratio() {
    let bench = Bench::ran(INSTANCES);
    bench.report();
    let store = Store::open(&bench.path("results")).unwrap();
    let plans = ranked_plans(&store);
    let experiment = analyse(&plans[0], &store).unwrap_or_else(|e| panic!("{e}"));
    let sample = |label| {
        let runs = &at_ten(&experiment, label).runs;
        runs.finals(experiment.standings.by).unwrap()
    };
    let (fedavg, scaffold) = (sample("FedAvg"), sample("Scaffold"));
    let logarithms: Vec<f64> =
        fedavg.iter().zip(&scaffold).map(|(a, b)| libm::log(a / b)).collect();
    let ratio = libm::exp(mean(&logarithms));
    let of_means = Ratio::paired(&fedavg, &scaffold, false).estimate;
    assert_ne!(readable(ratio, 2), readable(of_means, 2), "the manifest tells the two apart");
    let page = bench.read("reports/m/report.md");
    let headline = format!("’s error is {} times as large", readable(ratio, 2));
    assert!(page.contains(&headline), "no {headline:?} in {page}");
    assert!(page.contains(&format!("the ratio of geometric means is {} ", plain(ratio, 3))));
    assert!(page.contains(&format!("| FedAvg | {} \\[", plain(ratio, 3))), "{page}");
    let drawing = bench.read("reports/m/figures/ends.svg");
    let label = format!(", {}× Scaffold<", readable(ratio, 2));
    assert!(drawing.contains(&label), "no {label:?} in the drawing");
    assert!(page.contains("Ratios next to the curves are of geometric means over the instances"));
}

/// Without noise one local step of FedAvg and any number of Scaffold's converge to θ* exactly.
const ZEROS: &str = r#"
[[algorithm.fedavg]]
step-size = 0.5
local-steps = 1
[[algorithm.scaffold]]
step-size = 0.4
local-steps = 3
[[figure.convergence]]
id = "errors"
"#;

/// A claim that one of two errors that are zero to rounding is less says so, and what tuning finds has no ratio either.
#[test]
fn claims_and_tuning_compare_no_errors_of_zero() {
    let exact = [("budget.rounds = 20", "budget.rounds = 400\noracle = \"exact\"")];
    let claim = "[[claim.less]]\nid = \"a\"\nstatement = \"s\"\nleft = { label = \"FedAvg\" }\nright = { label = \"Scaffold\" }\n";
    let bench = Bench::ran(&(edited(QUADRATIC, &exact) + ZEROS + claim));
    bench.report();
    let page = bench.read("reports/m/report.md");
    let remark = "both sides of some part are zero to rounding (squared errors below 10⁻²⁸, norms below 10⁻¹⁴)";
    assert!(page.contains(remark), "{page}");
    let tuned = ZEROS.replace("step-size = 0.5\n", "").replace("step-size = 0.4\n", "");
    let range = "[tune]\nover = \"step-size\"\nvalues = [0.3, 0.4]\n";
    let bench = Bench::ran(&(edited(QUADRATIC, &exact) + &tuned + range));
    bench.report();
    let page = bench.read("reports/m/report.md");
    assert!(page.contains("has no ratio to another"), "{page}");
    let csv = bench.read("reports/m/tuned.csv");
    assert!(csv.lines().skip(1).all(|line| line.ends_with(",,,")), "{csv}");
}

/// Rounding errors have no ratio, whichever of them is smaller.
#[test]
fn errors_that_are_zero_to_rounding_are_said_to_be() {
    let exact = [("budget.rounds = 20", "budget.rounds = 400\noracle = \"exact\"")];
    let slow = "[[algorithm.fedavg]]\nlabel = \"Slow\"\nstep-size = 1e-3\nlocal-steps = 1\n";
    let both = "# The error of both FedAvg and Scaffold is zero to rounding";
    let not_slow = format!("{both}; that of Slow is not");
    for (more, headline) in [("", both), (slow, not_slow.as_str())] {
        let bench = Bench::ran(&(edited(QUADRATIC, &exact) + ZEROS + more));
        bench.report();
        let page = bench.read("reports/m/report.md");
        assert!(page.lines().any(|line| line == headline), "{page}");
        assert!(page.contains("| both are zero to rounding (below 10⁻²⁸) |"), "{page}");
        assert!(page.contains("What is zero to rounding (below 10⁻²⁸) has no ratio"), "{page}");
        assert!(page.contains("| zero to rounding: "), "{page}");
        assert!(!page.contains("| tie: "), "{page}");
        assert!(!page.contains("no practical difference"), "{page}");
        let drawing = bench.read("reports/m/figures/errors.svg");
        assert!(drawing.contains(", zero to rounding<") && !drawing.contains("×"), "{headline}");
    }
}
