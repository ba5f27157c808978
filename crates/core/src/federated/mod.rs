//! The one engine behind every algorithm: rounds of local steps, an average,
//! control variates. Algorithms differ in their [`Terms`] only.
//!
//! Dispatch is static per local step (the problem is a type parameter) and dynamic per
//! round (a [`Run`] is a trait object, the terms are values).
//!
//! *Invariant*: a round is a function of the state before it and of the streams. Clients
//! are summed in the order of their indices, whichever thread ran them.

mod correction;
mod cost;
mod decay;
mod draw;
mod messages;
mod pool;
mod progress;
mod round_clients;
mod sampling;
mod server_optimiser;
mod step_sizes;
mod straggler_draws;
mod stragglers;
mod terms;
mod together;
mod work;

use crate::kernel::{Cohort, Members, Proximal, SupportRound};
use crate::problem::Problem;
use crate::rng::{Purpose, Stream};
pub use correction::ControlVariates;
pub use cost::Cost;
pub use decay::{Decay, DecayUnit};
pub use draw::{ClientDrawError, Draw};
pub use messages::ErrorFeedback;
use pool::{AnyPool, LocalRound, Pool, advance_in_parallel};
use progress::ProgressWeights;
pub use round_clients::{LocalWork, RoundClients};
use sampling::{ClientSampler, DrawWeights};
use server_optimiser::ServerMoments;
pub use server_optimiser::{SecondMoment, ServerOptimiser};
use straggler_draws::StragglerDraws;
pub use stragglers::Stragglers;
pub use terms::{Clock, Learning, Schedule, StatedPrice, Terms, Variates, expected_steps};
pub use together::{RunsTogether, Together, runs_together};
use work::{Participants, RoundWork, StepPlans};

/// A run of an algorithm, which a runner drives and measures.
pub trait Run {
    /// Runs one round.
    fn round(&mut self);
    /// The estimate of θ* after the rounds so far, d numbers.
    fn estimate(&self) -> &[f64];
    /// What the rounds so far have cost.
    fn cost(&self) -> Cost;
    /// The state of the clients after the rounds so far. `None` if the run is not simply a run of the engine: its
    /// estimates are averaged or combined, or the algorithm is custom.
    fn clients(&self) -> Option<Clients<'_>> {
        None
    }
    /// Says before the first round that nobody will read [`Clients::ends`], so that they need not be computed in full,
    /// which saves time on sparse records. Estimates and costs stay the same.
    fn without_ends(&mut self) {}
    /// The streams from which the clients draw, one per client; empty if the run does not tell.
    fn noise(&self) -> &[Stream] {
        &[]
    }
    /// Continues with copies of these streams, one per client, so that its next draws are those of the run that they
    /// belong to. Does nothing by default.
    fn set_noise(&mut self, _streams: &[Stream]) {}
    /// Why the run cannot go on, in words; `None` if it can. Only runs of custom algorithms can fail.
    fn failure(&self) -> Option<&str> {
        None
    }
}

/// The state of a run's clients.
pub struct Clients<'a> {
    /// θ_k at the end of the last local steps, N rows of d; empty if they were not formed
    /// ([`Run::without_ends`]). Where a round is a fixed number of local steps under a coin, θ_k at the end of the
    /// round, which is θ if the clients have just communicated.
    pub ends: &'a [f64],
    /// Whether the clients have moved from the server's θ since they last
    /// communicated (between two communications under a coin).
    pub apart: bool,
    /// ξ_k, N rows of d; empty without control variates.
    pub corrections: &'a [f64],
    /// ℓ_k = γ_k E_k (γ/p under a coin), N numbers: the squares of ℓ_k weigh those of ξ_k in the Lyapunov
    /// functions (SCAFFLSA 45, 51).
    pub lengths: Vec<f64>,
}

/// What a run starts from.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// The seed that the manifest states.
    pub seed: u64,
    /// The number of the replicate; each replicate has its own streams.
    pub replicate: u64,
    /// The start θ_0, d numbers.
    pub start: &'a [f64],
    /// The number T of rounds that the run will have, of which the burn-in of averages is a fraction.
    pub rounds: u64,
    /// The number of the copy, 0 by default: runs of different copies share no noise.
    pub copy: u8,
}

/// The server's stream, and how far a run under a coin is between two communications.
struct Coin {
    /// The server draws from it when clients communicate, or which of them take part.
    stream: Stream,
    /// The number of local steps until the next communication; 0 without a coin.
    until: u64,
    /// Whether the clients have taken local steps since they last communicated.
    clients_moved: bool,
}

/// One run: every client of the cohort starts a round at θ_t and takes E_k local
/// steps of size γ_k along F_k + ξ_k; θ_{t+1} is their mean by the clients' shares (RR Alg. 1;
/// SCAFFLSA Alg. 1, 2, 4; SLIDES II; BOOK 5.8–5.11).
pub struct Federated<'p, P: Problem> {
    terms: Terms,
    plans: StepPlans,
    /// The clients that take part in the current round.
    cohort: Participants,
    pool: Pool<'p, P>,
    /// θ_k of the clients after their last local steps, N rows of d.
    ends: Vec<f64>,
    /// θ_t of the server, d numbers.
    theta: Vec<f64>,
    /// θ_{t−1} after a round of fixed length, d numbers.
    before: Vec<f64>,
    variates: Option<ControlVariates>,
    /// What replaces the shares in the weights of the clients' ends, if something does (FedNova).
    progress: Option<ProgressWeights>,
    /// The moments of an adaptive server, if the terms have one.
    moments: Option<ServerMoments>,
    /// What draws the clients of each round; `None` if all take part.
    sampler: Option<ClientSampler>,
    /// What draws the stragglers of each round; `None` if all clients finish their work.
    stragglers: Option<StragglerDraws>,
    coin: Coin,
    cost: Cost,
    /// What the decay of step sizes has counted before the round that comes next; 0 without a decay.
    decay_count: u64,
    /// What the decay counts in a round: 1, or the most local steps of a client; 0 without a decay.
    decay_per_round: u64,
}

impl<'p, P: Problem> Federated<'p, P> {
    /// A run of these terms on a problem, before its first round. The terms were checked ([`Terms::check`],
    /// [`Terms::check_for`]); those of a custom algorithm, which do not say what its rounds do, are not for it.
    ///
    /// # Panics
    /// If the start θ_0 does not have d numbers, or clients cannot be drawn in proportion to their shares
    /// ([`proportional_fault`](crate::client_sampling::proportional_fault)).
    pub fn new(problem: &'p P, terms: Terms, from: &Conditions) -> Self {
        let n = problem.clients();
        let d = problem.dim();
        assert_eq!(from.start.len(), d);
        let corrected = terms.variates != Variates::None;
        let plans = StepPlans::new(&terms, n, 0);
        let shares = problem.unequal_shares();
        let weights = terms.progress_weights(n, shares);
        // FedNova's weights are not those of the default scheme, also where shares are equal. Where stragglers are
        // drawn it has some in nearly every round.
        let draws_progress = terms.normalised_progress && terms.stragglers.is_some();
        let are_unequal = shares.is_some() || weights.is_some() || draws_progress;
        let scheme = terms.participation.for_shares(are_unequal);
        let sampler = ClientSampler::new(&scheme, terms.cohort, n, shares);
        let progress = weights.map(|weights| ProgressWeights::new(&terms, weights));
        let stragglers = StragglerDraws::new(&terms, n, from);
        let stream = Stream::new(from.seed, Purpose::Server, from.copy, from.replicate, 0);
        let moments = terms.server_optimiser.map(|optimiser| ServerMoments::new(optimiser, d));
        let mut run = Self {
            decay_count: 0,
            decay_per_round: terms.decay_count(1),
            terms,
            cohort: Participants::new(Members::all(n), &plans.clients),
            plans,
            pool: Pool::new(problem, from),
            ends: from.start.repeat(n),
            theta: from.start.to_vec(),
            before: vec![0.0; d],
            variates: corrected.then(|| ControlVariates::new(n, d, problem.unequal_shares())),
            progress,
            moments,
            sampler,
            stragglers,
            coin: Coin { stream, until: 0, clients_moved: false },
            cost: Cost::default(),
        };
        run.coin.until = run.steps_to_communication();
        run
    }

    /// Draws the number of local steps until the next communication under a coin; 0
    /// without one.
    fn steps_to_communication(&mut self) -> u64 {
        match self.terms.schedule {
            Schedule::Every => 0,
            Schedule::Bernoulli { probability, .. } => self.coin.stream.geometric(probability),
        }
    }

    /// The cohort's local steps, which remain to be run, from θ_t or, if the clients have moved from it, from their own
    /// θ_k. `steps`, if it is given, is the number of steps of every client, in place of the numbers in the plans.
    fn prepare_cohort(&mut self, steps: Option<u64>) -> Cohort<'_, P::State> {
        let start = if self.coin.clients_moved { None } else { Some(&self.theta[..]) };
        let corrections = self.variates.as_ref().map(ControlVariates::corrections);
        let proximal = Proximal { weight: self.terms.proximal, anchor: &self.theta };
        let round = LocalRound {
            members: &self.cohort.members,
            start,
            ends: &mut self.ends,
            corrections,
            plans: &self.plans.clients,
            steps,
            extended: (!self.plans.plain).then_some(proximal),
        };
        self.pool.prepare_cohort(round)
    }

    /// Runs the local steps that [`Federated::prepare_cohort`] returns, after which the members' rows of `ends` have
    /// the new θ_k, or on supports the entries of their supports. Nothing is counted here.
    fn advance(&mut self, steps: Option<u64>) {
        let problem = self.pool.problem;
        advance_in_parallel(problem, self.prepare_cohort(steps));
    }

    /// Runs the local steps of a round with fixed numbers of them from θ_t, after which the members' rows of `ends`
    /// have the new θ_k.
    fn advance_fixed_round(&mut self) {
        if self.terms.decay_by_step().is_some() {
            self.advance_step_by_step();
        } else {
            self.advance(self.plans.equal_steps);
        }
    }

    /// Runs the local steps of a round one by one, since their sizes fall. A client takes part in as many of them as it
    /// has steps in this round. Its draws are those that it would have if all were run at once.
    fn advance_step_by_step(&mut self) {
        // The round was counted already, when its steps were planned.
        let count = self.decay_count - self.decay_per_round;
        for step in 0..self.cohort.work.slowest {
            let factor = self.terms.step_factor(count, step);
            let mut plans = self.plans.clients.clone();
            for (client, plan) in plans.iter_mut().enumerate() {
                plan.step = factor * self.terms.step(client);
            }
            let members = self.cohort.members.indices().iter().copied();
            let members = Members::new(members.filter(|k| plans[*k].steps > step).collect());
            let proximal = Proximal { weight: self.terms.proximal, anchor: &self.theta };
            let problem = self.pool.problem;
            let cohort = self.pool.prepare_cohort(LocalRound {
                members: &members,
                start: (step == 0).then_some(&self.theta[..]),
                ends: &mut self.ends,
                corrections: self.variates.as_ref().map(ControlVariates::corrections),
                plans: &plans,
                steps: Some(1),
                extended: (!self.plans.plain).then_some(proximal),
            });
            advance_in_parallel(problem, cohort);
        }
    }

    /// Sets c_k to the mean of E_k B_k oracle calls at `self.theta`, for each member of the cohort, and updates ξ of
    /// all clients; other clients keep their c_k. Callers see to it that `self.theta` is θ_t, the start of the round.
    fn measure_variates(&mut self) {
        let Some(variates) = &mut self.variates else { return };
        let d = self.theta.len();
        let mut mean = vec![0.0; d];
        let mut one = vec![0.0; d];
        for &client in self.cohort.members.indices() {
            let calls = self.plans.clients[client].calls();
            self.pool.mean_field(client, calls, &self.theta, &mut mean, &mut one);
            variates.set(client, &mean);
        }
        if self.terms.variates == Variates::Fresh && self.sampler.is_some() {
            self.correct_members();
        } else if let Some(variates) = &mut self.variates {
            variates.update_corrections();
        }
    }

    /// Sets ξ_k of the members of a cohort to the mean of what they have just measured minus their own c_k: other
    /// clients have measured nothing in this round. The members have the weights in this mean that they have in that of
    /// their ends, also where these do not sum to 1.
    fn correct_members(&mut self) {
        let Some(variates) = &self.variates else { return };
        let members = &self.cohort.members;
        let mut mean = vec![0.0; self.theta.len()];
        pool::average(self.mean_weights(), members, variates.stored(), &mut mean);
        let weight = self.sampler.as_ref().map_or(1.0, |s| s.sum_of_weights(members.indices()));
        mean.iter_mut().for_each(|x| *x *= weight);
        if let Some(variates) = &mut self.variates {
            variates.correct_members(&self.cohort.members, &mean);
        }
    }

    /// The weights of the ends in the server's mean, N numbers, of which those of the participating clients are divided
    /// by their sum: what the draw of the round makes them, or the clients' shares or, for FedNova, what replaces
    /// these. `None` if all are equal.
    fn mean_weights(&self) -> Option<&[f64]> {
        if let Some(progress) = &self.progress {
            let weights =
                if self.has_own_weights() { &progress.of_round } else { &progress.weights };
            return Some(weights);
        }
        match self.sampler.as_ref().map(ClientSampler::mean_weights) {
            Some(DrawWeights::Each(weights)) => Some(weights),
            Some(DrawWeights::Equal) => None,
            Some(DrawWeights::Shares) | None => self.pool.problem.unequal_shares(),
        }
    }

    /// Whether the scheme of participation gives each client that takes part a weight of its own, in place of its share
    /// divided by the sum of those who take part.
    fn has_own_weights(&self) -> bool {
        self.sampler.as_ref().is_some_and(ClientSampler::replaces_sum)
    }

    /// Puts the server at the mean of the cohort's ends, by [`Self::mean_weights`].
    fn average(&mut self) {
        let mut mean = std::mem::take(&mut self.theta);
        pool::average(self.mean_weights(), &self.cohort.members, &self.ends, &mut mean);
        self.theta = mean;
    }

    /// Puts the server at the mean of the cohort's ends, and lets variates learn from the ends if they do (option two:
    /// c_k ← c_k − c̄ + (θ_t − θ_k)/(γ_k E_k)).
    /// θ_t, where the round began, must be in `self.before`; what `self.theta` has is overwritten.
    fn average_and_learn(&mut self) {
        // The ends are not formed outside of the features that a client's records touch.
        if self.pool.on_supports {
            let lengths = &self.plans.lengths[..];
            let learning = self.variates.as_mut().map(|variates| variates.to_learn(lengths));
            let start = &self.before[..];
            let ends = &self.ends[..];
            let plans = &self.plans.clients[..];
            let round = SupportRound { start, ends, plans, learning };
            let records = self.pool.problem.sparse_records().expect("records that have supports");
            return records.mean_on_supports(round, self.terms.proximal, &mut self.theta);
        }
        let replaces_shares = self.sampler.as_ref().is_some_and(ClientSampler::replaces_shares);
        if replaces_shares {
            self.average();
        }
        match (&mut self.variates, self.terms.variates) {
            (Some(variates), Variates::Kept(Learning::OptionTwo)) => {
                let ends = &self.ends;
                let lengths = &self.plans.lengths;
                let members = &self.cohort.members;
                if replaces_shares {
                    variates.learn(members, &self.before, ends, lengths);
                } else {
                    let after = &mut self.theta;
                    variates.average_and_learn(members, &self.before, ends, lengths, after);
                }
            }
            _ if !replaces_shares => self.average(),
            _ => {}
        }
    }

    /// Plans the local steps of the round that begins, if they are not the same in every round: their sizes fall, or
    /// stragglers are drawn among the clients that take part. Counts the round for the decay of step sizes.
    fn plan_local_steps(&mut self) {
        if self.terms.repeats_local_work() {
            return;
        }
        let clients = self.pool.streams.len();
        if let Some(stragglers) = &mut self.stragglers {
            self.terms.local_steps = stragglers.draw(&self.cohort.members);
            let weights = self.terms.progress_weights(clients, self.pool.problem.unequal_shares());
            self.progress = weights.map(|weights| ProgressWeights::new(&self.terms, weights));
        }
        self.plans = StepPlans::new(&self.terms, clients, self.decay_count);
        self.decay_count += self.decay_per_round;
    }

    /// Begins a round with fixed numbers of local steps, up to the local steps: draws the cohort unless all take part,
    /// plans local steps, and measures variates that are measured anew (FedLin). The caller then runs the local
    /// steps, such as those of [`Self::prepare_cohort`], and calls [`Self::end_fixed_round`].
    fn begin_fixed_round(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            self.cohort.members = sampler.draw(&mut self.coin.stream);
        }
        self.plan_local_steps();
        if self.sampler.is_some() || self.stragglers.is_some() {
            self.cohort.work = RoundWork::of_members(&self.cohort.members, &self.plans.clients);
        }
        let members = self.cohort.members.indices();
        if let (Some(progress), Some(sampler)) = (&mut self.progress, &self.sampler) {
            progress.begin_round(sampler, members);
        }
        // If nobody takes part, nobody measures anything.
        if self.terms.variates == Variates::Fresh && !self.cohort.members.indices().is_empty() {
            self.measure_variates();
        }
    }

    /// FedNova's factor of the numbers of local steps of this round's clients; 1 without it.
    fn progress_factor(&self) -> f64 {
        match &self.progress {
            Some(progress) if !self.has_own_weights() => {
                self.terms.progress_factor(&progress.weights, self.cohort.members.indices())
            }
            _ => 1.0,
        }
    }

    /// The sum of the weights of this round's clients, by which [`Self::average`] divides them.
    fn sum_of_weights(&self) -> f64 {
        let members = self.cohort.members.indices();
        match (&self.sampler, &self.progress) {
            (Some(_), Some(progress)) if self.has_own_weights() => {
                members.iter().map(|&client| progress.of_round[client]).sum()
            }
            (Some(sampler), _) => sampler.sum_of_weights(members),
            (None, _) => 1.0,
        }
    }

    /// Moves the server from θ_t, which `self.before` has, by its step or its adaptive optimiser: `self.theta` has the
    /// mean of the clients' ends, and is replaced by θ_{t+1}. The server goes γ_g times the way to the mean, and for
    /// FedNova times its factor and, unless the weights of the round's clients sum to 1, times their sum.
    fn move_server(&mut self) {
        let weight = self.sum_of_weights();
        let server_step = self.terms.server_step * self.progress_factor();
        if let Some(moments) = &mut self.moments {
            if weight != 1.0 {
                scale_move(&self.before, weight, &mut self.theta);
            }
            moments.move_server(&self.before, server_step, &mut self.theta);
            return;
        }
        let server_step = server_step * weight;
        if server_step != 1.0 {
            scale_move(&self.before, server_step, &mut self.theta);
        }
    }

    /// Ends a round with fixed numbers of local steps after the local steps: the server moves, variates that are kept
    /// learn, and the cost is counted.
    fn end_fixed_round(&mut self) {
        std::mem::swap(&mut self.before, &mut self.theta);
        self.average_and_learn();
        self.move_server();
        if self.terms.variates == Variates::Kept(Learning::OptionOne) {
            // Option one: c_k is measured by further calls. They are made at θ_t, not at θ_{t+1}.
            std::mem::swap(&mut self.before, &mut self.theta);
            self.measure_variates();
            std::mem::swap(&mut self.before, &mut self.theta);
        }
        let clients = self.pool.streams.len();
        let batch = self.pool.problem.batch();
        let round = self.cohort.cost(&self.terms, clients, batch, self.theta.len());
        self.cost = self.cost + round;
    }

    /// Runs a round under the coin: by one clock up to the next communication, by the other a fixed number of local
    /// steps, between which clients may communicate several times or not at all. All clients take part in each step,
    /// and the cost of the steps is counted here.
    fn run_by_coin(&mut self, probability: f64, clock: Clock) {
        self.plan_local_steps();
        let mut left = match clock {
            Clock::Communications => self.coin.until,
            Clock::Steps => expected_steps(probability),
        };
        while left > 0 {
            let steps = left.min(self.coin.until);
            self.advance(Some(steps));
            self.coin.clients_moved = true;
            left -= steps;
            self.coin.until -= steps;
            self.cost.local_steps += steps;
            let batches = self.plans.clients.iter().map(|plan| plan.batch);
            let all = batches.clone().sum::<u64>();
            let largest = batches.max().unwrap_or(1);
            self.cost.oracle_calls += steps * all * self.pool.problem.batch();
            self.cost.sequential_calls += steps * largest * self.pool.problem.batch();
            if self.coin.until == 0 {
                // Under a coin all clients have one step size.
                self.communicate(probability / self.plans.clients[0].step);
            }
        }
        if clock == Clock::Steps {
            // The estimate is the mean of the clients, who stay where they are.
            if self.coin.clients_moved {
                self.average();
            } else {
                // They have just communicated, so that all are at θ, and not where their local steps ended.
                let rows = self.ends.chunks_exact_mut(self.theta.len());
                rows.for_each(|row| row.copy_from_slice(&self.theta));
            }
        }
    }

    /// Makes a communication under the coin, counts its cost, and draws when the next one is; the variates learn at
    /// `rate` = p/γ.
    fn communicate(&mut self, rate: f64) {
        std::mem::swap(&mut self.before, &mut self.theta);
        self.average();
        if let Some(variates) = &mut self.variates {
            variates.learn_by_coin(&self.ends, &self.theta, rate);
        }
        self.move_server();
        self.cost.communications += 1;
        self.cost.send(2 * self.pool.streams.len() as u64, self.theta.len());
        self.coin.clients_moved = false;
        self.coin.until = self.steps_to_communication();
    }
}

impl<P: Problem> Run for Federated<'_, P> {
    fn round(&mut self) {
        match self.terms.schedule {
            // The same three parts as in a round of `Together`.
            Schedule::Every => {
                self.begin_fixed_round();
                // If nobody takes part, θ and all variates stay, and nothing is sent.
                if !self.cohort.members.indices().is_empty() {
                    self.advance_fixed_round();
                    self.end_fixed_round();
                }
            }
            Schedule::Bernoulli { probability, clock } => self.run_by_coin(probability, clock),
        }
    }

    fn estimate(&self) -> &[f64] {
        &self.theta
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn clients(&self) -> Option<Clients<'_>> {
        let lengths = match self.terms.schedule {
            Schedule::Every => self.plans.lengths.clone(),
            Schedule::Bernoulli { probability, .. } => {
                self.plans.clients.iter().map(|plan| plan.step / probability).collect()
            }
        };
        Some(Clients {
            ends: if self.pool.on_supports { &[] } else { &self.ends },
            apart: self.coin.clients_moved,
            corrections: self.variates.as_ref().map_or(&[][..], ControlVariates::corrections),
            lengths,
        })
    }

    /// Lets local steps keep to the features of each client's records, if that gives the same bits: on sparse records,
    /// where all clients take part with equal weights, and no variate is measured.
    fn without_ends(&mut self) {
        let Terms { schedule, proximal, variates, .. } = &self.terms;
        let all_take_part = *schedule == Schedule::Every && !self.terms.may_leave_out_clients();
        let problem = self.pool.problem;
        let have_equal_weights = problem.unequal_shares().is_none() && self.progress.is_none();
        let measure_nothing =
            matches!(variates, Variates::None | Variates::Kept(Learning::OptionTwo));
        // The plans of the first round serve all rounds, since neither step sizes nor numbers of steps rise.
        let plans = &self.plans.clients;
        let has_supports =
            problem.sparse_records().is_some_and(|records| records.has_supports(plans, *proximal));
        // Weights of FedNova that are equal in the first round differ where stragglers are drawn.
        let is_simple = self.terms.decay_by_step().is_none() && self.stragglers.is_none();
        self.pool.on_supports =
            all_take_part && have_equal_weights && measure_nothing && has_supports && is_simple;
    }

    fn noise(&self) -> &[Stream] {
        &self.pool.streams
    }

    fn set_noise(&mut self, streams: &[Stream]) {
        self.pool.streams.clone_from_slice(streams);
    }
}

/// Replaces θ by the point that is `factor` times as far from `before` in the same direction.
fn scale_move(before: &[f64], factor: f64, theta: &mut [f64]) {
    for (theta, before) in theta.iter_mut().zip(before) {
        *theta = before + factor * (*theta - before);
    }
}

#[cfg(test)]
mod terms_tests;
#[cfg(test)]
mod tests;
