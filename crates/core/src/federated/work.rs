//! What the clients that take part in a round do in it, and what that costs.

use super::{Cost, Schedule, Terms};
use crate::kernel::{LocalSteps, Members};

impl LocalSteps {
    /// The oracle calls of the client's local steps in a round, E_k B_k.
    pub(super) fn calls(&self) -> u64 {
        self.steps * self.batch
    }
}

/// What each client does in a round with a fixed number of local steps.
pub(super) struct StepPlans {
    /// The local steps of each client, N entries.
    pub(super) clients: Vec<LocalSteps>,
    /// H, if all clients take the same number of local steps.
    pub(super) equal_steps: Option<u64>,
    /// γ_k E_k, the sum of the client's step sizes in a round, N numbers. What the client has moved in the round,
    /// divided by this, is minus the mean of what its steps went along: its fields with the correction and the proximal
    /// term.
    pub(super) lengths: Vec<f64>,
    /// Whether a local step is θ ← θ − γ_k (F_k + ξ_k), with one oracle call and
    /// without a proximal term.
    pub(super) plain: bool,
}

impl StepPlans {
    /// The plans of a round before which the decay of step sizes has counted to `count`. Where they fall from step to
    /// step, those of the plans are of the first step. Under a coin the numbers of steps count for nothing, since the
    /// coin decides.
    pub(super) fn new(terms: &Terms, clients: usize, count: u64) -> Self {
        let factor = terms.step_factor(count, 0);
        let mut plans = Vec::with_capacity(clients);
        let mut lengths = Vec::with_capacity(clients);
        for client in 0..clients {
            lengths.push(terms.length(client, count));
            plans.push(LocalSteps {
                step: factor * terms.step(client),
                steps: terms.steps(client),
                batch: terms.batch(client),
            });
        }
        let first = plans.first().map_or(0, |plan| plan.steps);
        Self {
            equal_steps: plans.iter().all(|plan| plan.steps == first).then_some(first),
            lengths,
            clients: plans,
            plain: terms.proximal == 0.0 && terms.batches.iter().all(|&batch| batch == 1),
        }
    }
}

/// The work of the clients that take part in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundWork {
    /// The local steps of the slowest client, max E_k.
    pub(super) slowest: u64,
    /// The oracle calls of the local steps of all clients, Σ E_k B_k.
    pub(super) calls: u64,
    /// The oracle calls of the local steps of the client that makes the most, max E_k B_k.
    pub(super) sequential: u64,
}

impl RoundWork {
    /// The work of the members of a cohort, where client k has the plan `plans[k]`.
    pub(super) fn of_members(members: &Members, plans: &[LocalSteps]) -> Self {
        let mut work = Self::default();
        for &client in members.indices() {
            let plan = &plans[client];
            work.slowest = plan.steps.max(work.slowest);
            work.calls += plan.calls();
            work.sequential = plan.calls().max(work.sequential);
        }
        work
    }
}

/// The clients that take part in a round, and the size of their work.
pub(super) struct Participants {
    pub(super) members: Members,
    pub(super) work: RoundWork,
}

impl Participants {
    /// The members of a round, where client k has the plan `plans[k]`.
    pub(super) fn new(members: Members, plans: &[LocalSteps]) -> Self {
        let work = RoundWork::of_members(&members, plans);
        Self { members, work }
    }

    /// What a round with fixed numbers of local steps costs if these clients take part, on a problem with `clients`
    /// clients in dimension d where an oracle call evaluates `batch` records. In addition to the calls of local steps,
    /// which [`RoundWork`] counts, it has those by which clients measure control variates ([`Terms::call_factor`]).
    pub(super) fn cost(&self, terms: &Terms, clients: usize, batch: u64, d: usize) -> Cost {
        let evaluations_per_step_call = batch * terms.call_factor();
        let mut cost = Cost {
            communications: terms.communications(),
            local_steps: self.work.slowest,
            oracle_calls: evaluations_per_step_call * self.work.calls,
            sequential_calls: evaluations_per_step_call * self.work.sequential,
            ..Cost::default()
        };
        cost.send(terms.vectors_per_client(clients) * self.members.indices().len() as u64, d);
        cost
    }
}

impl Terms {
    /// What each round costs on a problem with `clients` clients in dimension d where an oracle call evaluates `batch`
    /// records: what [`Run::cost`](super::Run::cost) grows by. `None` where rounds may differ in their cost: under
    /// random communication, with stragglers, if a part of clients takes part that do not all do the same work, and if
    /// the number of those who take part is not the same in all rounds.
    pub fn round_cost(&self, clients: usize, batch: u64, d: usize) -> Option<Cost> {
        let plans = StepPlans::new(self, clients, 0).clients;
        let do_equal_work =
            plans.iter().all(|plan| plan.steps == plans[0].steps && plan.batch == plans[0].batch);
        let size = self.participation.participants(self.cohort, clients)?;
        let is_known = do_equal_work || !self.draws_clients(clients);
        let has_random_work = self.schedule != Schedule::Every || self.stragglers.is_some();
        if has_random_work || !is_known {
            return None;
        }
        // If a part of the clients takes part, their work is equal: the first ones stand for any.
        let participants = Participants::new(Members::all(size), &plans);
        Some(participants.cost(self, clients, batch, d))
    }
}
