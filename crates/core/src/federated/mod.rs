//! The one engine behind every algorithm: rounds of local steps, an average,
//! control variates. What tells algorithms apart are [`Terms`].
//!
//! Static per local step (the problem is a type parameter), dynamic per round
//! (a [`Run`] is an object, the terms are values).
//!
//! *Invariant*: a round is a function of the state before it and of the
//! streams; clients are summed in their order, whatever ran them.

mod correction;
mod cost;
mod local;
mod terms;

use crate::kernel::{self, Cohort, LocalSteps, Members};
use crate::problem::Problem;
use crate::rng::{Purpose, Stream};
pub use correction::ControlVariates;
pub use cost::Cost;
pub use terms::{Clock, Learning, Schedule, Terms, Variates, expected_steps};

/// An algorithm on its way: what a runner drives and measures.
pub trait Run {
    /// One round.
    fn round(&mut self);
    /// The estimate of θ* after the rounds so far, d numbers.
    fn estimate(&self) -> &[f64];
    /// What the rounds so far have cost.
    fn cost(&self) -> Cost;
    /// The clients' own state; `None` where the estimate is not of one run.
    fn clients(&self) -> Option<Clients<'_>> {
        None
    }
    /// The clients' streams, where the run has its own.
    fn noise(&self) -> &[Stream] {
        &[]
    }
    /// Goes on with these streams, one a client.
    fn set_noise(&mut self, _streams: &[Stream]) {}
}

/// What the clients of a run hold.
pub struct Clients<'a> {
    /// θ_k at the end of the last local steps, N rows of d.
    pub ends: &'a [f64],
    /// Whether the clients have gone on from the server's θ since they last
    /// communicated (between two coins).
    pub apart: bool,
    /// ξ_k, N rows of d; empty without control variates.
    pub corrections: &'a [f64],
    /// γ_k E_k (γ/p under a coin), N numbers: what weighs ξ_k in the Lyapunov
    /// functions (SCAFFLSA 45, 51).
    pub lengths: Vec<f64>,
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

impl LocalSteps {
    fn of(terms: &Terms, client: usize) -> Self {
        let (step, steps) = (terms.step(client), terms.steps(client));
        Self { step, steps, batch: terms.batch(client) }
    }

    /// γ_k E_k.
    fn length(&self) -> f64 {
        self.step * self.steps as f64
    }

    /// E_k B_k.
    fn calls(&self) -> u64 {
        self.steps * self.batch
    }
}

/// What the clients of a cohort do together in a round of fixed work.
#[derive(Clone, Copy, Default)]
struct Together {
    /// max E_k.
    slowest: u64,
    /// Σ E_k B_k.
    calls: u64,
    /// max E_k B_k.
    sequential: u64,
}

impl Together {
    fn of(work: &[LocalSteps], members: &Members) -> Self {
        members.indices().iter().map(|&client| &work[client]).fold(Self::default(), |sum, work| {
            Self {
                slowest: sum.slowest.max(work.steps),
                calls: sum.calls + work.calls(),
                sequential: sum.sequential.max(work.calls()),
            }
        })
    }
}

/// One run: every client of the cohort starts a round at θ_t, takes E_k local
/// steps of size γ_k along F_k + ξ_k, and θ_{t+1} is their mean (RR Alg. 1;
/// SCAFFLSA Alg. 1, 2, 4; SLIDES II; BOOK 5.8–5.11).
pub struct Federated<'p, P: Problem> {
    problem: &'p P,
    terms: Terms,
    /// What each client does.
    work: Vec<LocalSteps>,
    /// H, where all do the same.
    even: Option<u64>,
    /// γ_k E_k, N numbers.
    lengths: Vec<f64>,
    /// Whether local steps are θ ← θ − γ_k (F_k + ξ_k) and nothing more.
    plain: bool,
    theta: Vec<f64>,
    /// θ_t of the round before.
    before: Vec<f64>,
    /// θ_k, N rows of d.
    ends: Vec<f64>,
    variates: Option<ControlVariates>,
    /// What stands for ξ without control variates, d numbers.
    zero: Vec<f64>,
    /// Who takes part in this round.
    cohort: Members,
    /// What they do together.
    together: Together,
    streams: Vec<Stream>,
    states: Vec<P::State>,
    server: Stream,
    /// Local steps until the next communication, under a coin.
    until: u64,
    apart: bool,
    cost: Cost,
}

impl<'p, P: Problem> Federated<'p, P> {
    /// An engine at θ_0.
    pub fn new(problem: &'p P, terms: Terms, from: &Conditions) -> Self {
        let (n, d) = (problem.clients(), problem.dim());
        assert_eq!(from.start.len(), d);
        let mut streams: Vec<Stream> = (0..n as u64)
            .map(|c| Stream::new(from.seed, Purpose::Client, from.copy, from.replicate, c))
            .collect();
        let states = streams.iter_mut().enumerate().map(|(c, rng)| problem.begin(c, rng)).collect();
        let corrected = terms.variates != Variates::None;
        let (work, cohort): (Vec<_>, _) =
            ((0..n).map(|c| LocalSteps::of(&terms, c)).collect(), Members::all(n));
        let steps = work.first().map_or(0, |work| work.steps);
        let mut run = Self {
            problem,
            even: work.iter().all(|work| work.steps == steps).then_some(steps),
            lengths: work.iter().map(LocalSteps::length).collect(),
            together: Together::of(&work, &cohort),
            work,
            plain: terms.proximal == 0.0 && terms.batches.iter().all(|&b| b == 1),
            terms,
            theta: from.start.to_vec(),
            before: vec![0.0; d],
            ends: from.start.repeat(n),
            variates: corrected.then(|| ControlVariates::new(n, d)),
            zero: vec![0.0; d],
            cohort,
            streams,
            states,
            server: Stream::new(from.seed, Purpose::Server, from.copy, from.replicate, 0),
            until: 0,
            apart: false,
            cost: Cost::default(),
        };
        run.until = run.next_coin();
        run
    }

    /// Puts the server at θ, d numbers: for algorithms that move it between
    /// rounds.
    pub fn move_to(&mut self, theta: &[f64]) {
        self.theta.copy_from_slice(theta);
    }

    /// Local steps until the coin next says to communicate.
    fn next_coin(&mut self) -> u64 {
        match self.terms.schedule {
            Schedule::Every => 0,
            Schedule::Bernoulli { probability, .. } => self.server.geometric(probability),
        }
    }

    /// Sends the cohort through its local steps, from θ_t or, where the clients
    /// are apart, from where they are; `steps` where all do as many.
    fn advance(&mut self, steps: Option<u64>) {
        let start = if self.apart { None } else { Some(&self.theta[..]) };
        let corrections =
            self.variates.as_ref().map_or(&self.zero[..], ControlVariates::corrections);
        let cohort = Cohort::new(
            &self.cohort,
            (start, &mut self.ends),
            corrections,
            (&mut self.streams, &mut self.states),
            &self.work,
            steps,
        );
        if self.plain {
            return share(self.problem, cohort);
        }
        let extra = local::Extra { proximal: self.terms.proximal, anchor: &self.theta };
        cohort.each(|local| local::walk(self.problem, local, &extra));
    }

    /// The mean of E_k oracle calls at θ_t becomes c_k, for the whole cohort.
    fn measure(&mut self) {
        let Some(variates) = &mut self.variates else { return };
        let d = self.theta.len();
        let (mut mean, mut one) = (vec![0.0; d], vec![0.0; d]);
        for &client in self.cohort.indices() {
            let (state, rng) = (&mut self.states[client], &mut self.streams[client]);
            let calls = self.work[client].calls();
            local::mean_field(calls, &mut mean, &mut one, |out| {
                self.problem.oracle(client, state, &self.theta, rng, out);
            });
            variates.set(client, &mean);
        }
    }

    /// A round of fixed work.
    fn fixed(&mut self) {
        let n = self.streams.len();
        if let Some(size) = self.terms.cohort.filter(|&size| size < n) {
            self.cohort = Members::new(self.server.distinct(n, size));
            self.together = Together::of(&self.work, &self.cohort);
        }
        let fresh = self.terms.variates == Variates::Fresh;
        if fresh {
            self.measure();
            self.variates.as_mut().expect("made with them").settle();
        }
        self.advance(self.even);
        std::mem::swap(&mut self.before, &mut self.theta);
        kernel::mean_of(&self.cohort, &self.ends, &mut self.theta);
        if self.terms.server_step != 1.0 {
            for (theta, before) in self.theta.iter_mut().zip(&self.before) {
                *theta = before + self.terms.server_step * (*theta - before);
            }
        }
        match (&mut self.variates, self.terms.variates) {
            (Some(variates), Variates::Kept(Learning::OptionTwo)) => {
                variates.learn(&self.cohort, &self.before, &self.ends, &self.lengths);
            }
            (Some(_), Variates::Kept(Learning::OptionOne)) => {
                std::mem::swap(&mut self.before, &mut self.theta);
                self.measure();
                std::mem::swap(&mut self.before, &mut self.theta);
                self.variates.as_mut().expect("it is there").settle();
            }
            _ => {}
        }
        self.pay_for_fixed(fresh);
    }

    fn pay_for_fixed(&mut self, fresh: bool) {
        let Together { slowest, calls, sequential } = self.together;
        let batch = self.problem.batch();
        let again = fresh || self.terms.variates == Variates::Kept(Learning::OptionOne);
        let times = if again { 2 * batch } else { batch };
        let vectors = if self.variates.is_some() { 4 } else { 2 };
        self.cost.local_steps += slowest;
        self.cost.oracle_calls += times * calls;
        self.cost.sequential_calls += times * sequential;
        self.cost.send(vectors * self.cohort.indices().len() as u64, self.theta.len());
        // FedLin's clients wait for the mean of their fields, then for θ.
        self.cost.communications += if fresh { 2 } else { 1 };
    }

    /// A round under the coin: to the next communication, or so many steps.
    fn by_coin(&mut self, probability: f64, clock: Clock) {
        let mut left = match clock {
            Clock::Communications => self.until,
            Clock::Steps => expected_steps(probability),
        };
        let (n, d) = (self.streams.len() as u64, self.theta.len());
        while left > 0 {
            let steps = left.min(self.until);
            self.advance(Some(steps));
            self.apart = true;
            left -= steps;
            self.until -= steps;
            self.cost.local_steps += steps;
            let batches: u64 = self.work.iter().map(|work| work.batch).sum();
            self.cost.oracle_calls += steps * batches * self.problem.batch();
            let largest = self.work.iter().map(|work| work.batch).max().unwrap_or(1);
            self.cost.sequential_calls += steps * largest * self.problem.batch();
            if self.until == 0 {
                kernel::mean_of(&self.cohort, &self.ends, &mut self.theta);
                if let Some(variates) = &mut self.variates {
                    variates.learn_by_coin(
                        &self.ends,
                        &self.theta,
                        probability / self.terms.step_size,
                    );
                }
                self.cost.communications += 1;
                self.cost.send(2 * n, d);
                self.apart = false;
                self.until = self.next_coin();
            }
        }
        if clock == Clock::Steps {
            if self.apart {
                kernel::mean_of(&self.cohort, &self.ends, &mut self.theta);
            } else {
                let rows = self.ends.chunks_exact_mut(self.theta.len());
                rows.for_each(|row| row.copy_from_slice(&self.theta));
            }
        }
    }
}

/// Client steps times d + 8 beyond which sending half of them to an idle thread
/// costs less than it saves: some tens of microseconds.
const WORTH: u64 = 80_000;
/// Members below which lockstep would lose more than a thread gains.
const FEWEST: usize = 6;

/// Sends a cohort through its local steps, in halves where they are large: a
/// thread that has nothing to do takes one of them. Clients do not meet within
/// a round, so the bits do not depend on it.
#[inline(always)]
fn share<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>) {
    if cohort.len() >= FEWEST
        && cohort.client_steps() * (cohort.dim() as u64 + 8) > WORTH
        && rayon::current_thread_index().is_some()
    {
        return in_halves(problem, cohort);
    }
    problem.advance(cohort);
}

#[inline(never)]
fn in_halves<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>) {
    let (low, high) = cohort.halves();
    rayon::join(|| share(problem, low), || share(problem, high));
}

impl<P: Problem> Run for Federated<'_, P> {
    fn round(&mut self) {
        match self.terms.schedule {
            Schedule::Every => self.fixed(),
            Schedule::Bernoulli { probability, clock } => self.by_coin(probability, clock),
        }
    }

    fn estimate(&self) -> &[f64] {
        &self.theta
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn clients(&self) -> Option<Clients<'_>> {
        let length = |work: &LocalSteps| match self.terms.schedule {
            Schedule::Every => work.length(),
            Schedule::Bernoulli { probability, .. } => self.terms.step_size / probability,
        };
        Some(Clients {
            ends: &self.ends,
            apart: self.apart,
            corrections: self.variates.as_ref().map_or(&[][..], ControlVariates::corrections),
            lengths: self.work.iter().map(length).collect(),
        })
    }

    fn noise(&self) -> &[Stream] {
        &self.streams
    }

    fn set_noise(&mut self, streams: &[Stream]) {
        self.streams.clone_from_slice(streams);
    }
}

#[cfg(test)]
mod terms_tests;
#[cfg(test)]
mod tests;
