//! The one engine behind every algorithm: rounds of local steps, an average,
//! a correction.
//!
//! Static per local step (the problem and the correction are type
//! parameters), dynamic per round (a [`Run`] is an object).
//!
//! *Invariant*: a round is a function of the state before it and of the
//! streams; clients are summed in their order, whatever ran them.

mod correction;
mod cost;

use crate::kernel::{self, Local};
use crate::problem::Problem;
use crate::rng::{Purpose, Stream};
pub use correction::{ControlVariates, Correction, Uncorrected};
pub use cost::Cost;

/// An algorithm on its way: what a runner drives and measures.
pub trait Run {
    /// One communication round.
    fn round(&mut self);
    /// The estimate of θ* after the rounds so far, d numbers.
    fn estimate(&self) -> &[f64];
    /// What the rounds so far have cost.
    fn cost(&self) -> Cost;
}

/// What a run starts from.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// The manifest's seed.
    pub seed: u64,
    /// Which replicate; replicates have streams of their own.
    pub replicate: u64,
    /// θ_0, d numbers.
    pub start: &'a [f64],
    /// T, for what depends on it (burn-in).
    pub rounds: u64,
    /// 0, or the number of the copy where two runs must not share noise.
    pub copy: u8,
}

/// FedAvg and its corrected kin: every client starts a round at θ_t, takes H
/// local steps of size γ along F_c + ξ_c, and θ_{t+1} is the clients' mean
/// (RR Alg. 1; SCAFFLSA Alg. 1, 4; SLIDES II).
pub struct Federated<'p, P: Problem, C> {
    problem: &'p P,
    correction: C,
    step: f64,
    steps: u64,
    theta: Vec<f64>,
    /// θ_t of the round before.
    before: Vec<f64>,
    /// θ_c at the end of the round, N rows of d.
    ends: Vec<f64>,
    streams: Vec<Stream>,
    states: Vec<P::State>,
    cost: Cost,
}

impl<'p, P: Problem, C: Correction> Federated<'p, P, C> {
    /// An engine at θ_0 with step size γ and H local steps a round.
    pub fn new(problem: &'p P, correction: C, step: f64, steps: u64, from: &Conditions) -> Self {
        let (n, d) = (problem.clients(), problem.dim());
        assert_eq!(from.start.len(), d);
        let mut streams: Vec<Stream> = (0..n as u64)
            .map(|c| Stream::new(from.seed, Purpose::Client, from.copy, from.replicate, c))
            .collect();
        let states = streams.iter_mut().enumerate().map(|(c, rng)| problem.begin(c, rng)).collect();
        Self {
            problem,
            correction,
            step,
            steps,
            theta: from.start.to_vec(),
            before: vec![0.0; d],
            ends: vec![0.0; n * d],
            streams,
            states,
            cost: Cost::default(),
        }
    }
}

impl<P: Problem, C: Correction> Run for Federated<'_, P, C> {
    fn round(&mut self) {
        let (n, d) = (self.streams.len(), self.theta.len());
        for end in self.ends.chunks_exact_mut(d) {
            end.copy_from_slice(&self.theta);
        }
        let clients = self.ends.chunks_exact_mut(d).zip(&mut self.streams).zip(&mut self.states);
        let mut cohort: Vec<Local<'_, P::State>> = Vec::with_capacity(n);
        for (client, ((theta, rng), state)) in clients.enumerate() {
            let correction = self.correction.of(client);
            let (step, steps) = (self.step, self.steps);
            cohort.push(Local { client, theta, correction, rng, state, step, steps });
        }
        self.problem.advance(&mut cohort);
        drop(cohort);
        std::mem::swap(&mut self.before, &mut self.theta);
        kernel::mean_rows(&self.ends, &mut self.theta);
        self.correction.update(&self.before, &self.ends, self.step * self.steps as f64);
        let calls = n as u64 * self.steps * self.problem.batch();
        self.cost.add_round(self.steps, calls, 2 * n as u64 * C::VECTORS);
    }

    fn estimate(&self) -> &[f64] {
        &self.theta
    }

    fn cost(&self) -> Cost {
        self.cost
    }
}

#[cfg(test)]
mod tests;
