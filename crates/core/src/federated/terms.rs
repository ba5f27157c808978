//! The terms of a run: everything in which algorithms differ, as values. An algorithm
//! is a choice of terms.

use super::{Decay, ServerOptimiser, Stragglers};
use crate::client_sampling::{ParticipationScheme, proportional_fault};
use crate::problem::{Fault, Faults};
use crate::words::count;
use serde::{Deserialize, Serialize};

/// The terms of one run of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The step size γ.
    pub step_size: f64,
    /// E_k, local steps per round, one entry or more; client k has entry k modulo the length.
    pub local_steps: Vec<u64>,
    /// Whether γ_k = γ/E_k (BOOK 5.11); else γ_k = γ.
    pub normalised: bool,
    /// Whether the server divides what a client has moved by its number of local steps (FedNova), or by what replaces
    /// this number under a proximal term, a_k ([`Terms::progress_length`]): the mean of the clients has weights ∝
    /// π_k/a_k, and the server step is multiplied by Σ π_k E_k Σ π_k/a_k.
    pub normalised_progress: bool,
    /// B_k, the oracle calls that a local step averages, one entry or more; client k has entry k modulo the length.
    pub batches: Vec<u64>,
    /// When clients communicate.
    pub schedule: Schedule,
    /// L, the number of clients that are drawn in each round; `None` if no number is drawn.
    pub cohort: Option<usize>,
    /// How the clients that take part are selected and weighed; by default all take part where no number is drawn.
    pub participation: ParticipationScheme,
    /// γ_g: θ_{t+1} = θ_t + γ_g (mean of the clients − θ_t), or the step of the adaptive optimiser of the server.
    pub server_step: f64,
    /// The adaptive optimiser that moves the server in place of its plain step; `None` without one.
    pub server_optimiser: Option<ServerOptimiser>,
    /// The control variates, whose corrections are added to the clients' fields.
    pub variates: Variates,
    /// The weight μ of a proximal term μ(θ_c − θ_t) in every local step (FedProx); 0 without one.
    pub proximal: f64,
    /// How γ falls from round to round or from local step to local step; `None` if it is constant.
    pub decay: Option<Decay>,
    /// The clients that do a random part of their work in a round; `None` if all finish it.
    pub stragglers: Option<Stragglers>,
}

/// After which local steps clients communicate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// After their E_k local steps (SCAFFLSA H2).
    Every,
    /// After each local step with this probability, one coin for all (H1).
    Bernoulli {
        /// The probability p that clients communicate after a local step.
        probability: f64,
        /// Where a round ends.
        clock: Clock,
    },
}

/// What a round is under random communication; the run itself is the same.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// From one communication to the next: a geometric number of local steps.
    #[default]
    Communications,
    /// A fixed number of local steps, 1/p rounded, whether or not there was communication in them,
    /// as in SCAFFLSA, Theorem 5.1.
    Steps,
}

/// The control variates c_k of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variates {
    /// None: FedAvg and its variants.
    None,
    /// Kept from round to round (Scaffold).
    Kept(Learning),
    /// Measured anew in each round by E_k oracle calls at θ_t, whose mean all clients
    /// receive before their local steps (FedLin).
    Fresh,
    /// Whatever a custom algorithm keeps. Nothing is known of its rounds but what they cost, so that theory says
    /// nothing about it.
    Unknown(StatedPrice),
}

/// What a round of a custom algorithm costs, given the oracle calls of its local steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StatedPrice {
    /// The number of communications of a round.
    pub communications: u64,
    /// The vectors of d numbers that a client of the cohort and the server send each other.
    pub vectors: u64,
    /// How many oracle calls a client makes, in all, for each oracle call of its local steps.
    pub calls_per_step: u64,
}

impl Default for StatedPrice {
    /// The price of FedAvg: θ is sent to each client and back.
    fn default() -> Self {
        Self { communications: 1, vectors: 2, calls_per_step: 1 }
    }
}

/// How a variate that is kept between rounds learns (Karimireddy et al. 2020, options I and II).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Learning {
    /// c_k ← the mean of E_k more gradients at θ_t.
    OptionOne,
    /// c_k ← c_k − c̄ + (θ_t − θ_k)/(γ_k E_k).
    #[default]
    OptionTwo,
}

/// The most local steps of a client in a round, and the most calls in a step: sums
/// over clients then fit in 64 bits.
const MOST_STEPS: u64 = 1_000_000_000;

impl Terms {
    /// The terms of FedAvg with the step size γ and H local steps of every client.
    pub fn fedavg(step_size: f64, local_steps: u64) -> Self {
        Self {
            step_size,
            local_steps: vec![local_steps],
            normalised: false,
            normalised_progress: false,
            batches: vec![1],
            schedule: Schedule::Every,
            cohort: None,
            participation: ParticipationScheme::Normalised,
            server_step: 1.0,
            server_optimiser: None,
            variates: Variates::None,
            proximal: 0.0,
            decay: None,
            stragglers: None,
        }
    }

    /// The terms of Scaffold: those of [`Terms::fedavg`], with control variates that are kept between rounds.
    pub fn scaffold(step_size: f64, local_steps: u64) -> Self {
        let variates = Variates::Kept(Learning::OptionTwo);
        Self { variates, ..Self::fedavg(step_size, local_steps) }
    }

    /// The number E_k of local steps of a client in a round.
    pub fn steps(&self, client: usize) -> u64 {
        self.local_steps[client % self.local_steps.len()]
    }

    /// The step size γ_k of a client, in the first round where step sizes fall.
    pub fn step(&self, client: usize) -> f64 {
        if self.normalised { self.step_size / self.steps(client) as f64 } else { self.step_size }
    }

    /// The number B_k of oracle calls that a client averages in a local step.
    pub fn batch(&self, client: usize) -> u64 {
        self.batches[client % self.batches.len()]
    }

    /// a_k, by which FedNova divides what a client has moved: the sum of the weights that the fields of its E_k local
    /// steps have in its move, divided by γ_k. It is E_k, and with a proximal term, which shrinks the moves of earlier
    /// steps, Σ (1 − γ_k μ)^j over j below E_k (Wang et al. 2020).
    pub fn progress_length(&self, client: usize) -> f64 {
        let steps = self.steps(client) as f64;
        if self.proximal == 0.0 {
            return steps;
        }
        let pull = self.step(client) * self.proximal;
        (1.0 - libm::pow(1.0 - pull, steps)) / pull
    }

    /// π_k/a_k, N numbers, where these weigh the clients in the server's mean in place of their shares π_k (FedNova);
    /// a_k is the [`progress_length`](Self::progress_length). `shares` are π_k, N numbers; without them all are 1/N.
    /// `None` if the shares are the weights, or the clients take equal numbers of local steps without a proximal term,
    /// so that both are the same mean and the server step is as it is.
    pub fn progress_weights(&self, clients: usize, shares: Option<&[f64]>) -> Option<Vec<f64>> {
        let is_equal = self.local_steps.iter().all(|steps| *steps == self.local_steps[0]);
        if !self.normalised_progress || is_equal && self.proximal == 0.0 {
            return None;
        }
        let mut weights = Vec::with_capacity(clients);
        for client in 0..clients {
            let share = shares.map_or(1.0 / clients as f64, |shares| shares[client]);
            weights.push(share / self.progress_length(client));
        }
        Some(weights)
    }

    /// Σ π_k E_k Σ π_k/a_k over the clients that take part, `members`, with their shares divided by their sum: what
    /// FedNova multiplies the server step by. `weights` are the [`progress_weights`](Self::progress_weights) π_k/a_k of
    /// all clients.
    pub fn progress_factor(&self, weights: &[f64], members: &[usize]) -> f64 {
        let mut sum = 0.0;
        let mut steps = 0.0;
        let mut inverse = 0.0;
        for &client in members {
            // π_k, found from π_k/a_k.
            let share = weights[client] * self.progress_length(client);
            sum += share;
            steps += share * self.steps(client) as f64;
            inverse += weights[client];
        }
        steps / sum * (inverse / sum)
    }

    /// Ē/a_k of each client, N numbers, where Ē = Σ π_k E_k is the mean over all clients: by it FedNova multiplies what
    /// a client has moved, where its weight is w_k. `weights` are the [`progress_weights`](Self::progress_weights)
    /// π_k/a_k of all clients.
    pub fn progress_ratios(&self, weights: &[f64]) -> Vec<f64> {
        let mut mean_steps = 0.0;
        for (client, weight) in weights.iter().enumerate() {
            let share = weight * self.progress_length(client);
            mean_steps += share * self.steps(client) as f64;
        }
        (0..weights.len()).map(|client| mean_steps / self.progress_length(client)).collect()
    }

    /// Whether the server goes to the mean of the clients' ends: it has no server step other than 1, and no adaptive
    /// optimiser. The mean has the weights of [`Self::progress_weights`], or those of the clients' shares.
    pub fn goes_to_mean(&self) -> bool {
        self.server_step == 1.0 && self.server_optimiser.is_none()
    }

    /// H: the local steps in a round of the client that takes the most; under random
    /// communication 1/p, rounded.
    pub fn most_steps(&self) -> u64 {
        match self.schedule {
            Schedule::Every => self.local_steps.iter().copied().max().unwrap_or(1),
            Schedule::Bernoulli { probability, .. } => expected_steps(probability),
        }
    }

    /// The number of local steps of all clients that take part in a round, at most 2⁶⁴ − 1: with fixed numbers of steps
    /// the mean over cohorts, rounded up; under a coin the number of clients times [`Self::most_steps`], which is 1/p
    /// rounded to the nearest whole number. Progress and the expected time of runs are counted by it.
    pub fn steps_of_all(&self, clients: usize) -> u64 {
        match self.schedule {
            Schedule::Every => {
                // The list repeats cyclically over the clients.
                let whole = clients / self.local_steps.len();
                let left = clients % self.local_steps.len();
                let all = sum_of_steps(&self.local_steps) * whole as u128
                    + sum_of_steps(&self.local_steps[..left]);
                let participants = self.participation.mean_participants(self.cohort, clients);
                // A mean such as 3 · 0.1 may be above a whole number by a rounding alone.
                let taking_part = if participants.fract() == 0.0 {
                    all.saturating_mul(participants as u128)
                } else {
                    (all as f64 * participants * (1.0 - 4.0 * f64::EPSILON)) as u128 + 1
                };
                let mean = taking_part.div_ceil(clients as u128);
                u64::try_from(mean).unwrap_or(u64::MAX)
            }
            Schedule::Bernoulli { probability, clock: Clock::Communications }
                if probability > 0.0 =>
            {
                // A quotient such as 3/(1/3) may be above a whole number by a rounding alone.
                let mean = clients as f64 / probability * (1.0 - 4.0 * f64::EPSILON);
                (mean.ceil() as u64).max(clients as u64)
            }
            Schedule::Bernoulli { .. } => self.most_steps().saturating_mul(clients as u64),
        }
    }

    /// The quotient of all oracle calls of a client in a round and the oracle calls of its local steps, E_k B_k: 2
    /// where it measures its control variate with as many calls again, and otherwise 1, but for what a custom algorithm
    /// states.
    pub fn call_factor(&self) -> u64 {
        match self.variates {
            Variates::Fresh | Variates::Kept(Learning::OptionOne) => 2,
            Variates::None | Variates::Kept(Learning::OptionTwo) => 1,
            Variates::Unknown(price) => price.calls_per_step,
        }
    }

    /// The number of communications of a round with fixed numbers of local steps: 1, but 2 for FedLin, whose clients
    /// wait for the mean of their fields and then for θ.
    pub fn communications(&self) -> u64 {
        match self.variates {
            Variates::Fresh => 2,
            Variates::Unknown(price) => price.communications,
            Variates::None | Variates::Kept(_) => 1,
        }
    }

    /// The number of vectors of d numbers that a client which takes part and the server send each other in a round of
    /// fixed length, if there are `clients` clients: the client's end and θ, and unless the client can compute ξ_k
    /// itself, the change of c_k and c̄ (Karimireddy et al. 2020, Algorithm 1).
    ///
    /// With option two, −c_k + c̄ becomes ξ_k − (θ_t − θ_k)/ℓ_k + Σ_j π_j (θ_t − θ_j)/ℓ_j, ℓ_k = γ_k E_k,
    /// if all clients take part. If all ℓ_k are one ℓ, this is ξ_k + (θ_k − θ̄)/ℓ, and the client
    /// knows all of it: its own end θ_k, and the clients' mean θ̄ = θ_t + (θ_{t+1} − θ_t)/γ_g, by
    /// whichever shares, from what it received. If they differ, the last sum is no function of θ̄; a
    /// client that misses a round does not have the c̄ of that round; and measured variates are
    /// known to the client that measured them alone.
    pub fn vectors_per_client(&self, clients: usize) -> u64 {
        let all_take_part = !self.draws_clients(clients);
        let steps = &self.local_steps;
        // Whether γ_k E_k is the same for all clients.
        let have_equal_steps = steps.iter().all(|e| *e == steps[0]);
        let is_normalised = self.normalised && self.decay_by_step().is_none();
        let have_one_length = self.stragglers.is_none() && (is_normalised || have_equal_steps);
        match self.variates {
            Variates::None => 2,
            Variates::Kept(Learning::OptionTwo) if all_take_part && have_one_length => 2,
            Variates::Kept(_) | Variates::Fresh => 4,
            Variates::Unknown(price) => price.vectors,
        }
    }

    /// The oracle calls of a client in a round, on average over the N clients, whether they take part or not (a client
    /// that does not makes none); under a coin in a round that ends with a communication. Calls that measure control
    /// variates are included.
    pub fn mean_calls(&self, clients: usize) -> f64 {
        let call_factor = self.call_factor() as f64;
        let are_alike = self.local_steps.len() == 1 && self.batches.len() == 1;
        let frequencies =
            if are_alike { None } else { self.participation.frequencies(self.cohort, clients) };
        if let Some(frequencies) = frequencies {
            let mut sum = 0.0;
            for (client, frequency) in frequencies.iter().enumerate() {
                sum += frequency * self.mean_calls_of_client(client, clients);
            }
            return call_factor * sum / clients as f64;
        }
        let calls_of_participant = if are_alike {
            self.mean_calls_of_client(0, clients)
        } else {
            let all = (0..clients).map(|client| self.mean_calls_of_client(client, clients));
            all.sum::<f64>() / clients as f64
        };
        call_factor * self.part_of_clients(clients) * calls_of_participant
    }

    /// The oracle calls in a round of the client that makes the most of those that take part, for which the others wait;
    /// under a coin on average in a round that ends with a communication. If clients that do unequal work are drawn, it is
    /// the slowest of all N clients. Calls that measure control variates are included.
    pub fn slowest_calls(&self, clients: usize) -> f64 {
        let are_alike = self.local_steps.len() == 1 && self.batches.len() == 1;
        let different = if are_alike { 1 } else { clients };
        let most = (0..different).map(|client| self.calls_of_client(client)).fold(0.0, f64::max);
        self.call_factor() as f64 * most
    }

    /// Whether rounds on a problem with this number of clients depend on a draw or a schedule of clients, so that not
    /// all take part in each.
    pub fn draws_clients(&self, clients: usize) -> bool {
        self.participation.draws_clients(self.cohort, clients)
    }

    /// Whether rounds may leave clients out, whatever their number is.
    pub fn may_leave_out_clients(&self) -> bool {
        self.participation.may_leave_out_clients(self.cohort)
    }

    /// Whether it is random which clients take part in a round.
    pub fn draws_participants(&self) -> bool {
        self.participation.is_random(self.cohort)
    }

    /// The part of the N clients that takes part in a round on average: L/N if L are drawn. If clients are drawn with
    /// replacement, it is an upper bound, since clients that are drawn twice work once.
    pub fn part_of_clients(&self, clients: usize) -> f64 {
        self.participation.mean_participants(self.cohort, clients) / clients as f64
    }

    /// The expected oracle calls of a client between two communications, E_k B_k, or B_k/p under a coin.
    fn calls_of_client(&self, client: usize) -> f64 {
        match self.schedule {
            Schedule::Every => (self.steps(client) * self.batch(client)) as f64,
            Schedule::Bernoulli { probability, .. } => self.batch(client) as f64 / probability,
        }
    }

    /// [`Self::calls_of_client`] on average over the draws of stragglers, on a problem with this number of clients.
    /// Where the number of those who take part is random, their mean number, rounded, stands for it.
    fn mean_calls_of_client(&self, client: usize, clients: usize) -> f64 {
        match self.stragglers {
            Some(stragglers) if self.schedule == Schedule::Every => {
                let members = self.participation.mean_participants(self.cohort, clients);
                let members = libm::floor(members + 0.5).max(1.0) as usize;
                stragglers.mean_steps(self.steps(client), members) * self.batch(client) as f64
            }
            _ => self.calls_of_client(client),
        }
    }

    /// The number of communications of a round, and the number of oracle evaluations of the client that makes the most
    /// of them, both on average: what a budget is divided by. The round is what the clock says. If clients that do
    /// unequal work are drawn, the second number is that of the slowest of all N clients, in a round in which somebody
    /// takes part. `batch` is the number of evaluations of an oracle call.
    pub fn mean_round(&self, clients: usize, batch: u64) -> (f64, f64) {
        match self.schedule {
            Schedule::Every => {
                let calls = self.most_calls(clients, |client| self.steps(client) as f64);
                let gradients = calls * batch as f64;
                // A round with nobody costs nothing.
                let part = self.participation.part_of_rounds_with_somebody(clients);
                let communications = part * self.communications() as f64;
                (communications, part * (self.call_factor() as f64 * gradients))
            }
            Schedule::Bernoulli { probability, clock: Clock::Communications } => {
                (1.0, self.most_calls(clients, |_| 1.0 / probability) * batch as f64)
            }
            Schedule::Bernoulli { probability, clock: Clock::Steps } => {
                let steps = expected_steps(probability) as f64;
                (probability * steps, self.most_calls(clients, |_| steps) * batch as f64)
            }
        }
    }

    /// The oracle calls of the client that makes the most in its local steps, if client k takes `steps(k)` of them: the
    /// same for all clients, or what repeats over the clients as the terms' list of local steps does.
    fn most_calls(&self, clients: usize, steps: impl Fn(usize) -> f64) -> f64 {
        // Both lists repeat cyclically over the clients, so that one period of both has every client's work.
        let step_period = self.local_steps.len().max(1);
        let batch_period = self.batches.len().max(1);
        let period = if step_period.is_multiple_of(batch_period) {
            step_period
        } else {
            step_period.saturating_mul(batch_period)
        };
        (0..period.min(clients)).map(|k| steps(k) * self.batch(k) as f64).fold(0.0, f64::max)
    }

    /// Everything that is wrong with the terms whatever the problem is, under the keys of the
    /// manifest. What the keys of one kind of algorithm forbid, the kind finds (`AlgorithmKind::faults`).
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        faults.positive("step-size", self.step_size);
        let steps_key =
            if self.local_steps.len() == 1 { "local-steps" } else { "steps-per-client" };
        faults.at_least_one(steps_key, self.local_steps.iter().copied().min().unwrap_or(0));
        require_few(&mut faults, steps_key, &self.local_steps);
        let batches_key = "batch-per-client";
        require_few(&mut faults, batches_key, &self.batches);
        faults.at_least_one(batches_key, self.batches.iter().copied().min().unwrap_or(0));
        faults.at_least_one("cohort", self.cohort.unwrap_or(1) as u64);
        for fault in self.participation.check(self.cohort) {
            faults.0.push(Fault::new(fault.key, fault.message));
        }
        faults.positive("server-step", self.server_step);
        if let Some(optimiser) = &self.server_optimiser {
            optimiser.check(&mut faults);
        }
        faults.non_negative("proximal", self.proximal);
        if self.normalised_progress {
            // Otherwise the lengths a_k may be 0 or negative.
            let pull = self.step_size * self.proximal;
            faults.require(pull < 2.0, "proximal", || {
                format!(
                    "must be below 2/γ = {}, since the pull alone expands otherwise",
                    2.0 / self.step_size
                )
            });
        }
        self.check_decay(&mut faults);
        if let Some(stragglers) = self.stragglers {
            stragglers.check(&mut faults);
        }
        self.check_coin(&mut faults);
        faults.0
    }

    /// Adds what cannot be combined with a coin, and a probability that is out of range.
    fn check_coin(&self, faults: &mut Faults) {
        if let Schedule::Bernoulli { probability: p, clock } = self.schedule {
            faults.require((1e-9..=1.0).contains(&p), "communication-probability", || {
                format!("must be from 1e-9 to 1, not {p}")
            });
            let message = "cannot be combined with `communication-probability`: all clients take every local step";
            self.require_all_clients(faults, message);
            // A round of a fixed number of local steps has no θ_t at its start: clients are apart there.
            let ends_at_communication = clock == Clock::Communications;
            let is_plain = self.server_step == 1.0 || ends_at_communication;
            faults.require(is_plain, "server-step", || {
                "needs rounds that end at communications: `clock = \"communications\"`".into()
            });
            let is_constant = self.decay.is_none() || ends_at_communication;
            faults.require(is_constant, "decay", || {
                "needs rounds that end at communications: `clock = \"communications\"`".into()
            });
            faults.require(self.decay_by_step().is_none(), "decay.by", || {
                "must be \"rounds\" under a coin, whose communications have one step size".into()
            });
        }
    }

    /// Adds a fault with this message to the key by which clients are left out of rounds, if one does.
    fn require_all_clients(&self, faults: &mut Faults, message: &str) {
        let key = if self.cohort.is_some() { "cohort" } else { "participation" };
        faults.require(!self.may_leave_out_clients(), key, || message.into());
    }

    /// Everything that is wrong with the terms on a problem with this number of clients: a cohort or a list for more
    /// clients than there are, or a scheme of participation for other clients.
    pub fn check_for(&self, clients: usize) -> Vec<Fault> {
        let mut faults = Faults::default();
        if let Some(cohort) = self.cohort {
            faults.require(cohort <= clients, "cohort", || {
                format!("must be at most the number of clients, {clients}, not {cohort}")
            });
        }
        for fault in self.participation.check_for(self.cohort, clients) {
            faults.0.push(Fault::new(fault.key, fault.message));
        }
        for (key, list) in
            [("steps-per-client", &self.local_steps), ("batch-per-client", &self.batches)]
        {
            faults.require(list.len() <= clients, key, || {
                format!("has {} for {}", count(list.len(), "number"), count(clients, "client"))
            });
        }
        faults.0
    }
}

impl Terms {
    /// What is wrong with the terms for clients with these unequal shares: some cannot be drawn in proportion to them.
    pub fn check_for_shares(&self, shares: &[f64]) -> Vec<Fault> {
        let mut faults = Faults::default();
        let is_proportional = self.participation == ParticipationScheme::Proportional;
        if let Some(size) = self.cohort.filter(|size| is_proportional && *size < shares.len()) {
            let fault = proportional_fault(shares, size);
            faults.require(fault.is_none(), "participation", || fault.unwrap_or_default());
        }
        faults.0
    }
}

/// The sum of the numbers of local steps. 128 bits hold it for every list, also one that [`Terms::check`] refuses.
fn sum_of_steps(steps: &[u64]) -> u128 {
    steps.iter().map(|&e| u128::from(e)).sum()
}

/// Requires that no number of the list under `key` exceeds [`MOST_STEPS`]; the first one that does is
/// reported.
fn require_few(faults: &mut Faults, key: &'static str, numbers: &[u64]) {
    if let Some(n) = numbers.iter().find(|n| **n > MOST_STEPS) {
        faults.require(false, key, || format!("must be at most {MOST_STEPS}, not {n}"));
    }
}

/// 1/p, the expected number of local steps up to a communication under a coin of probability p, to the nearest whole
/// number and at least 1; 1 also where p is not above 0, which is refused elsewhere.
pub fn expected_steps(probability: f64) -> u64 {
    if probability > 0.0 { ((1.0 / probability + 0.5) as u64).max(1) } else { 1 }
}
