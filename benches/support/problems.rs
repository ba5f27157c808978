//! The problems of several benches.

use driftbench::problem::arrays::NoFiles;
use driftbench::problem::logistic::{self, Logistic};
use driftbench::problem::td::{Noise, Td};
use driftbench::problem::{Settings as _, garnet};

/// TD(0) on a Garnet problem with perturbed kernels and rewards.
pub fn td(features: usize, clients: usize) -> Td {
    garnet::Settings {
        states: 30.max(4 * features),
        actions: 2,
        branching: 2,
        features,
        discount: 0.95,
        clients,
        heterogeneity: garnet::Heterogeneity::Perturbed { kernel: 0.02, reward: 0.02 },
        policy: garnet::Policy::Uniform,
        noise: Noise::Independent,
    }
    .build(1, &NoFiles)
    .expect("the instance has a unique solution")
}

/// Ten clients with 200 records each, one record per step.
pub fn logistic(dimension: usize) -> Logistic {
    logistic::Settings {
        dimension,
        records: 200,
        clients: 10,
        data: logistic::Data::Noisy { spread: 3.0, separation: 1.0 },
        split: logistic::SharedRecords::Own,
        l2: 0.1,
        margin: 0.0,
        batch: 1,
    }
    .build(1, &NoFiles)
    .expect("it has an optimum")
}
