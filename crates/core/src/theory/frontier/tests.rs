//! The frontier against exact moments client by client, and against brute force.

use super::*;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::spectrum::Spectrum;
use crate::sample;
use crate::theory::linear::LocalUpdate;
use crate::theory::moments::{AlgorithmModel, Correction, ExactMoments, RunModel};

/// Clients of their own distributions, in two dimensions.
fn quadratic(clients: usize) -> Quadratic {
    let settings = quadratic::Settings {
        dimension: 2,
        spectrum: Spectrum { from: 0.5, to: 1.5 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.2,
        noise: 0.7,
        multiplicative_noise: 0.3,
        ..sample::quadratic(clients)
    };
    sample::build(&settings, 3)
}

/// The same method in the type of the exact moments.
fn model(run: &MethodRun) -> AlgorithmModel<'static> {
    let MethodRun { method, clients, local_steps, step_size } = *run;
    let correction = match method {
        Method::Scaffold | Method::ScaffoldRichardsonRomberg | Method::Scaffnew => Correction::Kept,
        _ => Correction::None,
    };
    let (steps, batch) = match method {
        Method::Sgd | Method::Scaffnew => (1, 1),
        Method::MinibatchSgd => (1, local_steps),
        _ => (local_steps, 1),
    };
    let runs = method.weights().iter().enumerate().map(|(r, &weight)| {
        let step = (r + 1) as f64 * step_size;
        let update = LocalUpdate { step, steps, batch, proximal: 0.0 };
        RunModel { weight, update: Box::new(move |_| update), server_step: 1.0, correction }
    });
    let coin = (method == Method::Scaffnew).then(|| 1.0 / local_steps as f64);
    let common = method.weights().len() > 1;
    AlgorithmModel { runs: runs.collect(), cohort: clients as usize, common, coin, burn_in: None }
}

fn agrees(facts: &dyn Facts, method: Method, what: &str) {
    let start: Vec<f64> =
        facts.optimum().iter().enumerate().map(|(i, x)| x + 1.0 + i as f64).collect();
    for (local_steps, step_size) in [(1, 0.3), (4, 0.1), (37, 0.01)] {
        let run = MethodRun { method, clients: facts.clients() as u64, local_steps, step_size };
        let model = model(&run);
        let exact = ExactMoments::new(facts, &model).unwrap();
        let rounds = [0, 1, 2, 7, 40];
        let found = errors(facts, &run, &StartError::Point(start.clone()), 40).unwrap();
        for moments in exact.at_rounds(&start, &rounds) {
            let ratio = found[moments.round as usize] / moments.sq_error;
            assert!((ratio - 1.0).abs() < 1e-10, "{what}, {run:?}, {}: {ratio}", moments.round);
        }
    }
}

#[test]
fn errors_are_the_exact_moments() {
    for method in Method::ALL {
        agrees(&quadratic(4), method, "quadratic");
    }
}
