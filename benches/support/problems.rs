//! The problems of several benches, cohorts of their clients, and how long benches measure.

#![allow(dead_code)]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use exactfed::kernel::softmax::ClassTables;
use exactfed::kernel::{Cohort, CohortData, LocalSteps, Members};
use exactfed::problem::arrays::NoFiles;
use exactfed::problem::garnet::{self, Heterogeneity};
use exactfed::problem::lms::{self, Lms};
use exactfed::problem::logistic::sparse::SparseLogistic;
use exactfed::problem::logistic::{self, Logistic, generated};
use exactfed::problem::quadratic::{self, Quadratic};
use exactfed::problem::softmax::{self, Softmax};
use exactfed::problem::spectrum::Spectrum;
use exactfed::problem::td::{Noise, Td};
use exactfed::problem::{InstanceInputs, Problem, Sampling, Settings as _};
use exactfed::rng::{Purpose, Stream};
use std::time::Duration;

/// TD(0) on a Garnet problem with two actions and two successors of each.
pub fn garnet(
    [states, features, clients]: [usize; 3],
    heterogeneity: Heterogeneity,
    noise: Noise,
    seed: u64,
) -> Td {
    garnet::Settings {
        states,
        actions: 2,
        branching: 2,
        features,
        discount: 0.95,
        clients,
        heterogeneity,
        policy: garnet::Policy::Uniform,
        noise,
    }
    .build(seed, &NoFiles)
    .expect("the instance has a unique solution")
}

/// Kernels and rewards of clients that differ a little.
pub fn perturbed() -> Heterogeneity {
    Heterogeneity::Perturbed { kernel: 0.02, reward: 0.02 }
}

/// TD(0) on a Garnet problem with perturbed kernels and rewards.
pub fn td(features: usize, clients: usize) -> Td {
    garnet([30.max(4 * features), features, clients], perturbed(), Noise::Independent, 1)
}

/// Clients with so many records each, one record per step.
pub fn logistic(dimension: usize, records: usize, clients: usize) -> Logistic {
    logistic::Settings {
        dimension,
        records,
        clients,
        data: logistic::Data::Noisy { spread: 3.0, separation: 1.0 },
        split: logistic::SharedRecords::Own,
        l2: 0.1.into(),
        margin: 0.0,
        batch: 1,
        sampling: Sampling::default(),
    }
    .build(1, &NoFiles)
    .expect("it has an optimum")
}

/// Softmax regression with 10 classes and 250 records of d Gaussian features per client.
pub fn softmax(features: usize, clients: usize, batch: usize) -> Softmax {
    let mut rng = Stream::shared_instance(4);
    let mut client = || {
        let size = 1.0 / (features as f64).sqrt();
        let rows = (0..250 * features).map(|_| size * rng.gaussian()).collect();
        (rows, (0..250).map(|_| rng.index(10) as u8).collect())
    };
    let records: Vec<_> = (0..clients).map(|_| client()).collect();
    let (classes, l2) = (10, 0.01);
    let tables = ClassTables::new(features, classes, l2, &records);
    Softmax::new(softmax::SoftmaxLoss { classes, l2, batch }, tables, InstanceInputs::default())
        .expect("it has an optimum")
}

/// Twenty clients with so many records of so many non-zeros each, one record per step.
pub fn sparse_logistic(dimension: usize, nonzeros: usize, records: usize) -> SparseLogistic {
    generated::Settings {
        dimension,
        nonzeros,
        records,
        clients: 20,
        frequency_decay: 1.0,
        signal: 1.0,
        heterogeneity: 0.0,
        l2: 0.01.into(),
        batch: 1,
        sampling: Sampling::default(),
    }
    .build(1, &NoFiles)
    .expect("it has an optimum")
}

/// A quadratic with the heterogeneity of gradients and of Hessians.
pub fn quadratic(dimension: usize, clients: usize, [gradient, hessian]: [f64; 2]) -> Quadratic {
    quadratic::Settings {
        dimension,
        clients,
        spectrum: Spectrum { from: 0.1, to: 1.0 },
        gradient_heterogeneity: gradient,
        hessian_heterogeneity: hessian,
        noise: 1.0,
        multiplicative_noise: 0.0,
        multiplicative_form: quadratic::MultiplicativeForm::Gaussian,
    }
    .build(1, &NoFiles)
    .expect("it has an optimum")
}

/// A stream of regressors of one client.
pub fn lms(dimension: usize) -> Lms {
    lms::Settings {
        dimension,
        clients: 1,
        spectrum: Spectrum { from: 0.5, to: 2.0 },
        covariances: lms::Covariances::Rotated,
        model_spread: 0.0,
        noise: 0.1,
    }
    .build(1, &NoFiles)
    .expect("it has an optimum")
}

/// The data of a cohort of all clients.
pub struct Bench<'p, P: Problem> {
    problem: &'p P,
    members: Members,
    streams: Vec<Stream>,
    states: Vec<P::State>,
    theta: Vec<f64>,
    correction: Vec<f64>,
    plans: Vec<LocalSteps>,
}

impl<'p, P: Problem> Bench<'p, P> {
    pub fn new(problem: &'p P, step: f64, steps: u64) -> Self {
        let (n, d) = (problem.clients(), problem.dim());
        let mut streams = streams(n);
        let states = streams.iter_mut().enumerate().map(|(c, rng)| problem.begin(c, rng)).collect();
        let plans = vec![LocalSteps { step, steps, batch: 1 }; n];
        let (theta, correction) = (vec![0.0; n * d], vec![0.0; d]);
        Self { problem, members: Members::all(n), streams, states, theta, correction, plans }
    }

    pub fn cohort(&mut self) -> Cohort<'_, P::State> {
        let steps = Some(self.plans[0].steps);
        let data = CohortData {
            start: None,
            theta: &mut self.theta,
            corrections: &self.correction,
            streams: &mut self.streams,
            states: &mut self.states,
            plans: &self.plans,
            steps,
        };
        Cohort::new(&self.members, data)
    }

    pub fn run(&mut self) {
        let problem = self.problem;
        problem.advance(self.cohort());
    }
}

pub fn streams(n: usize) -> Vec<Stream> {
    (0..n as u64).map(|c| Stream::new(1, Purpose::Client, 0, 0, c)).collect()
}

/// A group whose times are of so many elements.
pub fn group<'c>(c: &'c mut Criterion, name: &str, elements: u64) -> BenchmarkGroup<'c, WallTime> {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(elements));
    group
}

/// Short measurements: `make bench` takes some minutes, and comparisons are interleaved.
pub fn timing() -> Criterion {
    let (warm_up, measurement) = (Duration::from_millis(500), Duration::from_secs(2));
    Criterion::default().warm_up_time(warm_up).measurement_time(measurement).sample_size(30)
}
