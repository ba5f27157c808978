//! Simulation against exact moments: for every algorithm on every linear problem,
//! the mean over replicates lies within four standard errors of what theory
//! says, at every recorded round.

use exactfed::evidence::predictions::{MomentsCache, Theory};
use exactfed::manifest::{Prediction, Source, TimeAverage};
use exactfed::plan::{Cell, Plan};
use exactfed::problem;
use exactfed::runner::predict::{self, AveragedOver};
use exactfed::runner::prepare;
use exactfed::stats::{mean, standard_deviation};
use exactfed::trace::Trace;
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::Path;

const REPLICATES: u64 = 1500;

fn plan(name: &str, changes: &[&str]) -> Plan {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("experiments/smoke/{name}.toml"));
    let text = std::fs::read_to_string(&file).unwrap();
    let name = file.display().to_string();
    let mut overrides = vec![format!("replicates={REPLICATES}"), "instance=\"fixed\"".into()];
    overrides.extend(changes.iter().map(|change| (*change).to_owned()));
    let source = Source { name, text, overrides, ..Source::default() };
    exactfed::evidence::plan("smoke/t".into(), source).unwrap_or_else(|e| panic!("{e}"))
}

/// The mean of a column at a row against theory; how many standard errors it is
/// off, if it is further off than rounding.
fn off(traces: &[Trace], row: usize, of: impl Fn(&Trace) -> f64, exact: f64) -> f64 {
    let sample: Vec<f64> = traces.iter().map(of).collect();
    assert!(row < traces[0].rows());
    let error = standard_deviation(&sample) / (sample.len() as f64).sqrt();
    let apart = (mean(&sample) - exact).abs();
    if apart <= 1e-9 * exact.abs() + 1e-24 { 0.0 } else { apart / error }
}

/// The label of a cell, and its settings that vary.
fn described(cell: &Cell) -> String {
    let varied = cell.varied.iter().map(|v| cell.settings.get(v).map(ToString::to_string));
    format!("{} {:?}", cell.label, varied.collect::<Vec<_>>())
}

fn check(name: &str) {
    check_with(name, &[]);
}

/// The same with some settings of the manifest overridden.
fn check_with(name: &str, changes: &[&str]) {
    let plan = plan(name, changes);
    let cells: Vec<_> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap_or_else(|e| panic!("{e:?}"));
    let (mut without, mut compared, mut worst) = (Vec::new(), 0, 0.0_f64);
    for p in &prepared {
        let what = format!("{name}, {}", described(p.cell));
        let exact = predict::check_exact_moments(p)
            .and_then(|()| predict::exact_moments(p.cell, p.scenario(0)));
        let exact = match exact {
            Ok(exact) => exact,
            Err(reason) => {
                without.push(format!("{what}: {reason:?}"));
                continue;
            }
        };
        let traces: Vec<Trace> = (0..REPLICATES).map(|r| p.simulate(r)).collect();
        for (row, exact) in exact.iter().enumerate() {
            let mut measured =
                vec![("error", off(&traces, row, |t| t.sq_error[row], exact.sq_error))];
            for (i, (metric, _)) in traces[0].further.iter().enumerate() {
                let (expected, optimum) =
                    (metric.quantity().info().expected, p.scenario(0).instance.optimum());
                let value = expected.and_then(|expected| expected(exact, optimum, None));
                if let Some(value) = value.filter(|x| x.is_finite()) {
                    measured
                        .push((metric.name(), off(&traces, row, |t| t.further[i].1[row], value)));
                }
            }
            for (metric, errors) in measured {
                assert!(
                    errors < 4.0,
                    "{what}, {metric} at round {}: off by {errors:.1} standard errors",
                    exact.round
                );
                worst = worst.max(errors);
                compared += 1;
            }
        }
    }
    // Trajectories close for some algorithms alone, two runs under one coin are not followed, and adaptive servers are
    // not linear. Of clients of unequal shares, neither the mean of a part of them is followed nor their normalised
    // progress.
    let allowed = |what: &String| {
        let is_weighted = what.contains("unequal work") || what.contains("FedNova");
        let has_weights = changes.iter().any(|change| change.contains("weights"));
        let weighted = has_weights && is_weighted;
        let is_adaptive =
            ["FedAdagrad", "FedAdam", "FedYogi"].iter().any(|label| what.contains(label));
        what.contains("markov") || what.contains(", RR, H1 ") || is_adaptive || weighted
    };
    assert!(without.iter().all(allowed), "{without:#?}");
    let along = without.iter().filter(|what| what.contains("markov")).count();
    let trajectories = prepared.iter().filter(|p| described(p.cell).contains("markov")).count();
    assert!(along < trajectories || trajectories == 0, "no trajectory closes: {without:#?}");
    println!(
        "{name}: {compared} means compared, at most {worst:.2} standard errors off; without {without:#?}"
    );
    assert!(compared > 100, "{compared}");
}

#[test]
fn every_linear_problem() {
    problem::Spec::KINDS.par_iter().for_each(|kind| {
        let name = format!("all-{kind}");
        if plan(&name, &[]).cells.iter().all(|cell| cell.identity.problem.linear()) {
            check(&name);
        }
    });
}

/// Clients that weigh by their records, all of them in every round.
#[test]
fn ridge_regression_by_records() {
    let change = "problem.least-squares-dataset.dataset.weights=\"records\"";
    check_with("all-least-squares-dataset", &[change]);
}

/// Clients whose Hessians are of rank one, or flat along one direction, with a mean that is regular.
#[test]
fn quadratics_of_flat_clients() {
    let changes = [
        "problem.quadratic.spectrum={ from = 0.5, to = 0.5 }",
        "problem.quadratic.hessian-heterogeneity=0.5",
    ];
    check_with("all-quadratic", &changes);
}

const CURVED: &str = r#"title = "t"
seed = 3
replicates = 24
start.offset = 0.0
budget.local-steps = 20_000
record = { points = 1, iterates = true, averages = ["bias"] }
[problem.logistic]
dimension = 2
records = 40
clients = 5
data = { noisy = { spread = 2.0 } }
l2 = 0.1
[[algorithm.fedavg]]
step-size = 0.02
local-steps = 2
average = { burn-in = 0.1 }
"#;

/// A curved field's twin has the same draws, so that the bias measured against it has a tenth
/// of the sampling error of the naive one. The bias is that of the closure within its sampling
/// error, and to a fifth that of the first order.
#[test]
fn biases_against_a_twin_are_sharp_and_as_predicted() {
    let source = Source { name: "t.toml".into(), text: CURVED.into(), ..Source::default() };
    let plan = exactfed::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
    let cells: Vec<_> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap_or_else(|e| panic!("{e:?}"));
    let optimum = prepared[0].scenario(0).instance.optimum().to_vec();
    let (mut twin, mut naive) = (Vec::new(), Vec::new());
    for r in 0..24 {
        let trace = prepared[0].simulate(r);
        assert_eq!(trace.averages[0].0, TimeAverage::Bias);
        twin.push(trace.averages[0].1[0]);
        naive.push(trace.theta[trace.theta.len() - 2] - optimum[0]);
    }
    let error = |x: &[f64]| standard_deviation(x) / (x.len() as f64).sqrt();
    assert!(error(&twin) < 0.1 * error(&naive), "{} and {}", error(&twin), error(&naive));
    assert!(error(&twin) < 0.1 * mean(&twin).abs(), "{} of {}", error(&twin), mean(&twin));
    let apart = (mean(&twin) - mean(&naive)).abs();
    assert!(apart < 4.5 * error(&naive), "{apart}");

    let theory = Theory::new(&prepared, &HashSet::new(), MomentsCache::Off);
    let bias = (TimeAverage::Bias, AveragedOver::Rounds);
    let predicted = |by| theory.vector(&plan.cells[0].id, bias.0, by, bias.1).unwrap()[0];
    let (closure, first) = (predicted(Prediction::Closure), predicted(Prediction::FirstOrder));
    let apart = (mean(&twin) - closure).abs();
    assert!(apart < 4.5 * error(&twin), "{} and {closure}", mean(&twin));
    assert!((first / closure - 1.0).abs() < 0.2, "{first} and {closure}");
}

/// Every scheme of participation, with the limits of each round of a schedule.
#[test]
fn schemes_of_participation() {
    let text = include_str!("../manifests/schemes.toml").to_owned();
    let overrides = vec![format!("replicates={REPLICATES}")];
    let source = Source { name: "t.toml".into(), text, overrides, ..Source::default() };
    let plan = exactfed::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
    let cells: Vec<_> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap_or_else(|e| panic!("{e:?}"));
    let mut without = 0;
    for p in &prepared {
        let Ok(()) = predict::check_exact_moments(p) else {
            without += 1;
            continue;
        };
        let exact = predict::exact_moments(p.cell, p.scenario(0)).unwrap();
        let traces: Vec<Trace> = (0..REPLICATES).map(|r| p.simulate(r)).collect();
        for (row, exact) in exact.iter().enumerate() {
            let errors = off(&traces, row, |t| t.sq_error[row], exact.sq_error);
            assert!(errors < 4.0, "{} at {}: {errors:.1}", described(p.cell), exact.round);
        }
        let is_scheduled = p.cell.identity.algorithm.has_schedule();
        let limits = predict::limits(p.cell, p.scenario(0)).expect("means converge");
        assert_eq!(limits.len() > 1, is_scheduled, "{}", described(p.cell));
    }
    // A shuffled cycle and an adaptive server.
    assert_eq!(without, 2);
}
