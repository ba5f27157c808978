//! The clients' streams, states of noise and local steps, for every algorithm.

use super::Conditions;
use super::draw::{ClientDrawError, ClientNoise, Draw};
use crate::kernel::{self, Cohort, CohortData, Draws, LocalSteps, Members, Proximal};
use crate::problem::{JointGain, Problem, RecordsOf, mean_of_calls};
use crate::rng::{Purpose, Stream};
use std::any::Any;
use std::sync::Arc;

/// The problem of a run, and what the draws of its clients depend on.
pub struct Pool<'p, P: Problem> {
    pub problem: &'p P,
    /// The random stream of each client, N.
    pub streams: Vec<Stream>,
    /// The state of each client's noise, N, such as the state of a Markov chain.
    states: Vec<P::State>,
    /// Whether local steps write only those entries of θ_k that belong to features of the client's records, one after
    /// the other at the beginning of the client's row ([`crate::kernel::SupportRound`]).
    pub on_supports: bool,
    /// d zeros: the correction of every client where there are no control variates.
    zero: Vec<f64>,
}

/// The local steps of a cohort.
pub struct LocalRound<'a> {
    /// The clients that take part.
    pub members: &'a Members,
    /// θ_t, if all members begin there instead of at their own rows.
    pub start: Option<&'a [f64]>,
    /// θ_k, N rows of d: where members without `start` begin, and where members end.
    pub ends: &'a mut [f64],
    /// ξ_k, N rows of d, or one row for all; without it all are 0.
    pub corrections: Option<&'a [f64]>,
    /// γ_k, E_k and B_k of each client.
    pub plans: &'a [LocalSteps],
    /// The number of steps of every client, in place of the numbers in `plans`, if it is given.
    pub steps: Option<u64>,
    /// The proximal term of steps that have one or average several oracle calls; `None` for plain steps
    /// ([`Cohort::extended`]).
    pub extended: Option<Proximal<'a>>,
}

impl<'p, P: Problem> Pool<'p, P> {
    /// The clients of a problem before the first draw of a run, each with the stream that its number, the replicate and
    /// the copy give it, whatever the algorithm is.
    pub fn new(problem: &'p P, from: &Conditions) -> Self {
        let mut streams: Vec<Stream> = (0..problem.clients() as u64)
            .map(|c| Stream::new(from.seed, Purpose::Client, from.copy, from.replicate, c))
            .collect();
        let states = streams.iter_mut().enumerate().map(|(c, rng)| problem.begin(c, rng)).collect();
        Self { problem, streams, states, on_supports: false, zero: vec![0.0; problem.dim()] }
    }

    /// The local steps of a cohort, which remain to be run: the members will draw from the pool's streams and states.
    #[inline]
    pub fn prepare_cohort<'a>(&'a mut self, round: LocalRound<'a>) -> Cohort<'a, P::State> {
        let LocalRound { members, start, ends, corrections, plans, steps, extended } = round;
        let corrections = corrections.unwrap_or(&self.zero);
        let data = CohortData {
            start,
            theta: ends,
            corrections,
            streams: &mut self.streams,
            states: &mut self.states,
            plans,
            steps,
        };
        let mut cohort = Cohort::new(members, data);
        cohort.extended = extended;
        cohort.on_supports = self.on_supports;
        cohort
    }
}

/// A [`Pool`] whose type does not name the problem, for algorithms that are defined outside of this crate.
pub trait AnyPool: Send {
    /// Runs the local steps of a cohort. Costs are the caller's to count.
    fn advance(&mut self, round: LocalRound<'_>);
    /// Writes the mean of `calls` oracle calls (1 or more) of a client at θ to `mean` (d numbers), each with new draws
    /// of the client; `one` is a buffer of d numbers for a single call. Costs are the caller's to count.
    fn mean_field(
        &mut self,
        client: usize,
        calls: u64,
        theta: &[f64],
        mean: &mut [f64],
        one: &mut [f64],
    );
    /// Makes the draws of `calls` oracle calls of each of these clients without evaluating fields. Returns what the
    /// clients drew from, as it was before ([`Draw::before`]).
    fn draw(&mut self, members: &Members, calls: u64) -> Arc<dyn Any + Send + Sync>;
    /// Writes the mean of the oracle calls of a draw for a client at θ to `mean` (d numbers); `one` is a buffer of d
    /// numbers for a single call. Nothing is drawn, and costs are the caller's to count.
    ///
    /// # Errors
    /// If the client is not among those that drew, or the draw is of clients of another problem.
    fn field_of_draw(
        &self,
        client: usize,
        draw: &Draw,
        theta: &[f64],
        mean: &mut [f64],
        one: &mut [f64],
    ) -> Result<(), ClientDrawError>;
    /// The numbers of the records that a client drew: for each oracle call of the draw as many places as a batch has,
    /// of which the last ones are `None` if the call has fewer records. `None` if the client draws no records.
    ///
    /// # Errors
    /// As [`AnyPool::field_of_draw`].
    fn records_of_draw(
        &self,
        client: usize,
        draw: &Draw,
    ) -> Result<Option<Vec<Option<usize>>>, ClientDrawError>;
    /// Writes the mean field F̄_k(θ) of a client to `field`, d numbers.
    fn expected_field(&self, client: usize, theta: &[f64], field: &mut [f64]);
    /// The mean loss of each client at θ, N numbers, as [`Facts::client_losses`](crate::problem::Facts::client_losses)
    /// has it of the records that clients hold; `None` if there is none.
    fn losses(&self, theta: &[f64]) -> Option<Vec<f64>>;
    /// The number of records from which a client draws; `None` if it draws none.
    fn record_count(&self, client: usize) -> Option<usize>;
}

impl<P: Problem> AnyPool for Pool<'_, P> {
    fn advance(&mut self, round: LocalRound<'_>) {
        advance_in_parallel(self.problem, self.prepare_cohort(round));
    }

    fn mean_field(
        &mut self,
        client: usize,
        calls: u64,
        theta: &[f64],
        mean: &mut [f64],
        one: &mut [f64],
    ) {
        let problem = self.problem;
        let mut draws = Draws { rng: &mut self.streams[client], state: &mut self.states[client] };
        mean_of_calls(calls, mean, one, |out| problem.oracle(client, &mut draws, theta, out));
    }

    fn draw(&mut self, members: &Members, calls: u64) -> Arc<dyn Any + Send + Sync> {
        let mut before = Vec::with_capacity(members.indices().len());
        let mut records = Vec::new();
        for &client in members.indices() {
            let rng = &mut self.streams[client];
            let state = &mut self.states[client];
            before.push(ClientNoise { rng: rng.clone(), state: state.clone() });
            let mut draws = Draws { rng, state };
            for _ in 0..calls {
                self.problem.draw(client, &mut draws, &mut records);
                records.clear();
            }
        }
        Arc::new(before)
    }

    fn field_of_draw(
        &self,
        client: usize,
        draw: &Draw,
        theta: &[f64],
        mean: &mut [f64],
        one: &mut [f64],
    ) -> Result<(), ClientDrawError> {
        let ClientNoise { mut rng, mut state } = self.noise_of_draw(client, draw)?;
        let mut draws = Draws { rng: &mut rng, state: &mut state };
        mean_of_calls(draw.calls, mean, one, |out| {
            self.problem.oracle(client, &mut draws, theta, out);
        });
        Ok(())
    }

    fn records_of_draw(
        &self,
        client: usize,
        draw: &Draw,
    ) -> Result<Option<Vec<Option<usize>>>, ClientDrawError> {
        let ClientNoise { mut rng, mut state } = self.noise_of_draw(client, draw)?;
        if self.problem.record_count(client).is_none() {
            return Ok(None);
        }
        let mut draws = Draws { rng: &mut rng, state: &mut state };
        let mut all = Vec::new();
        let mut records = Vec::new();
        for call in 1..=draw.calls {
            self.problem.draw(client, &mut draws, &mut records);
            all.extend(records.drain(..).map(Some));
            // A call may have fewer records than a batch: the last one of an epoch.
            all.resize((call * self.problem.batch()) as usize, None);
        }
        Ok(Some(all))
    }

    fn expected_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.problem.mean_field(client, theta, field);
    }

    fn losses(&self, theta: &[f64]) -> Option<Vec<f64>> {
        self.problem.client_losses(theta, RecordsOf::Clients)
    }

    fn record_count(&self, client: usize) -> Option<usize> {
        self.problem.record_count(client)
    }
}

impl<P: Problem> Pool<'_, P> {
    /// A copy of what a client drew from when this draw was made.
    ///
    /// # Errors
    /// As [`AnyPool::field_of_draw`].
    fn noise_of_draw(
        &self,
        client: usize,
        draw: &Draw,
    ) -> Result<ClientNoise<P::State>, ClientDrawError> {
        let before = draw.before.downcast_ref::<Vec<ClientNoise<P::State>>>();
        let before = before.ok_or(ClientDrawError::OtherRun)?;
        Ok(before[draw.place_of(client)?].clone())
    }
}

/// Writes the mean of the members' rows of `ends` (N rows of d) to `mean`, d numbers. `shares` are the weights of the N
/// clients; without them all are equal. The weights of a part of the clients are divided by their sum (McMahan et al.
/// 2017).
///
/// # Panics
/// If there is no member, or a member has no row.
pub fn average(shares: Option<&[f64]>, members: &Members, ends: &[f64], mean: &mut [f64]) {
    match shares {
        None => kernel::mean_of(members, ends, mean),
        Some(shares) => kernel::weighted_mean_of(members, shares, ends, mean),
    }
}

/// The local steps of all members times d + 8, a measure of the time of a round, above which handing half of them to an
/// idle thread saves more than it costs (tens of microseconds).
pub const WORTH: u64 = 80_000;
/// The fewest members that are split between threads: with fewer of them kernels step fewer clients in lockstep, which
/// costs more than a thread gains.
const FEWEST: usize = 6;

/// Whether half of `client_steps` local steps, those of all members of a round in dimension d, are worth a thread of
/// their own, and there is a pool of threads to take them.
fn worth_a_thread(client_steps: u64, d: usize) -> bool {
    client_steps * (d as u64 + 8) > WORTH && rayon::current_thread_index().is_some()
}

/// Whether one call evaluates the fields of all clients, which threads must not divide.
fn shares_calls<P: Problem>(problem: &P) -> bool {
    matches!(problem.joint_gain(), JointGain::SharedCalls)
}

/// Runs a cohort's local steps, splitting large cohorts into halves so that idle
/// threads can take one of them. Clients do not interact within a round, so the
/// bits do not depend on the split.
#[inline(always)]
pub fn advance_in_parallel<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>) {
    if cohort.len() >= FEWEST
        && worth_a_thread(cohort.client_steps(), cohort.dim())
        && !shares_calls(problem)
    {
        return advance_halves(problem, cohort);
    }
    problem.advance(cohort);
}

/// Splits a cohort into halves and runs each with [`advance_in_parallel`]. It stays out of line, so that
/// the usual path, without a split, remains short.
#[inline(never)]
fn advance_halves<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>) {
    let half = cohort.len() / 2;
    let (low, high) = cohort.split(half);
    rayon::join(|| advance_in_parallel(problem, low), || advance_in_parallel(problem, high));
}

/// Runs the local steps of several runs, of the same members in equal numbers unless the runs share calls. Each member is
/// stepped in all runs before the next one. Large cohorts are split into halves for idle threads, as in [`advance_in_parallel`].
pub fn advance_together_in_parallel<P: Problem>(problem: &P, runs: Vec<Cohort<'_, P::State>>) {
    let Some(cohort) = runs.first() else { return };
    let half = cohort.len() / 2;
    let d = cohort.dim();
    let is_large = worth_a_thread(cohort.client_steps() * runs.len() as u64, d);
    if half > 0 && is_large && !shares_calls(problem) {
        let (low, high) = runs.into_iter().map(|run| run.split(half)).unzip();
        rayon::join(
            || advance_together_in_parallel(problem, low),
            || advance_together_in_parallel(problem, high),
        );
    } else {
        problem.advance_together(runs);
    }
}
