//! A user's own problem: estimating a median by the clients' smoothed stochastic
//! subgradients. `cargo run --release --locked --example own_problem`.
//!
//! A problem consists of facts (optimum, mean fields, Jacobians, noise) and an
//! oracle. The compiler requires each of them; the test at the end checks that they agree.

use driftbench::algorithm::{Boxed, Spec, fedavg, scaffold};
use driftbench::federated::Conditions;
use driftbench::linalg::Matrix;
use driftbench::problem::{Facts, Problem, Visitor};
use driftbench::rng::Stream;

/// Client c draws records x around a centre of its own; the field is tanh(θ − x).
struct Median {
    records: Vec<Vec<f64>>,
    optimum: Vec<f64>,
    local: Vec<Vec<f64>>,
}

fn field(records: &[f64], theta: f64) -> f64 {
    records.iter().map(|x| libm::tanh(theta - x)).sum::<f64>() / records.len() as f64
}

/// The root of an increasing function, by bisection.
fn root(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-1e3, 1e3);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

impl Median {
    fn new(clients: usize, seed: u64) -> Self {
        let draw = |c: usize| {
            let mut rng = Stream::client_instance(seed, c);
            (0..50).map(|_| c as f64 + rng.gaussian()).collect::<Vec<f64>>()
        };
        let records: Vec<Vec<f64>> = (0..clients).map(draw).collect();
        let local = records.iter().map(|r| vec![root(|theta| field(r, theta))]).collect();
        let mean = |theta| records.iter().map(|r| field(r, theta)).sum::<f64>();
        let optimum = vec![root(mean)];
        Self { records, optimum, local }
    }
}

impl Facts for Median {
    fn clients(&self) -> usize {
        self.records.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        &self.local[client]
    }
    fn mean_field(&self, client: usize, theta: &[f64], out: &mut [f64]) {
        out[0] = field(&self.records[client], theta[0]);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        let slope = |x: &f64| 1.0 - libm::tanh(self.optimum[0] - x).powi(2);
        let records = &self.records[client];
        let mean = records.iter().map(slope).sum::<f64>() / records.len() as f64;
        Matrix::from_fn(1, 1, |_, _| mean)
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        let records = &self.records[client];
        let mean = field(records, self.optimum[0]);
        let square = |x: &f64| (libm::tanh(self.optimum[0] - x) - mean).powi(2);
        let variance = records.iter().map(square).sum::<f64>() / records.len() as f64;
        Matrix::from_fn(1, 1, |_, _| variance)
    }
    fn linear(&self) -> bool {
        false
    }
}

impl Problem for Median {
    type State = ();

    #[inline(always)]
    fn oracle(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        rng: &mut Stream,
        out: &mut [f64],
    ) {
        let records = &self.records[client];
        out[0] = libm::tanh(theta[0] - records[rng.index(records.len())]);
    }
}

fn main() {
    let problem = Boxed.visit(Median::new(5, 1));
    println!("θ* = {:.6}", problem.optimum()[0]);
    for spec in [
        Spec::FedAvg(fedavg::Settings::new(0.05, 50)),
        Spec::Scaffold(scaffold::Settings::new(0.05, 50)),
    ] {
        let from = Conditions { seed: 1, replicate: 0, start: &[0.0], rounds: 400, copy: 0 };
        let mut run = problem.launch(&spec, &from);
        (0..400).for_each(|_| run.round());
        println!("{:10} θ = {:.6}", spec.label(), run.estimate()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_facts_agree_with_its_oracle() {
        driftbench::problem::check::agree(&Median::new(5, 1), 200_000);
    }
}
