//! Algorithms whose settings a search varies.

use super::{PerClient, Traced};

/// An algorithm of a search with all its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundSettings {
    /// The place of the algorithm among those that the search knows.
    pub algorithm: usize,
    /// The number of clients, N.
    pub clients: u64,
    /// The local steps of a client in a round, H.
    pub local_steps: u64,
    /// The step size γ.
    pub step_size: f64,
    /// The number of the [choice](Rounds::choices) of the algorithm's further settings.
    pub choice: usize,
}

/// What a round costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundPrice {
    /// Communications: one for each run.
    pub communications: f64,
    /// Gradients of each client, on average.
    pub gradients: f64,
    /// Draws of each client, on average: runs on common draws use each draw once.
    pub samples: f64,
    /// Vectors of d numbers that each client sends or receives.
    pub vectors: f64,
}

/// The E_k local steps of a client in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalUpdate {
    /// The step size γ_k.
    pub step: f64,
    /// The number E_k of local steps.
    pub steps: u64,
    /// B_k, gradients averaged in a local step.
    pub batch: u64,
    /// μ of a term μ(θ_k − θ_t) in each local step.
    pub proximal: f64,
}

impl LocalUpdate {
    /// E_k steps of size γ_k on single gradients, without a proximal term.
    pub fn of_steps(step: f64, steps: u64) -> Self {
        Self { step, steps, batch: 1, proximal: 0.0 }
    }

    /// The bits of the four numbers, by which clients are grouped.
    pub fn bits(&self) -> [u64; 4] {
        [self.step.to_bits(), self.steps, self.batch, self.proximal.to_bits()]
    }
}

/// A run of rounds in which all clients make local steps.
#[derive(Clone, Debug)]
pub struct LocalRun {
    /// The weight of the run's estimate in the estimate of the algorithm.
    pub weight: f64,
    /// The local steps that each client makes in a round.
    pub updates: PerClient<LocalUpdate>,
    /// The server step γ_g, by which the estimate moves to the mean of the clients' ends: THEORY (6.6).
    pub server_step: f64,
}

/// Several runs from one start, whose rounds are nothing but local steps, with corrections or without, and means.
#[derive(Clone, Debug)]
pub struct LocalRuns {
    /// The runs, whose weighted estimates add up to the estimate of the algorithm.
    pub runs: Vec<LocalRun>,
    /// Whether their clients keep corrections, which are 0 before the first round.
    pub is_corrected: bool,
    /// Whether they share their draws.
    pub is_common: bool,
}

/// The rounds of an algorithm, and what they cost, for all settings that a search tries.
pub trait Rounds: Send + Sync {
    /// The name of the algorithm, for messages.
    fn name(&self) -> &str;

    /// The rounds as a program, or why they are none.
    fn program(&self, settings: &RoundSettings) -> Traced;

    /// What a round costs.
    fn price(&self, settings: &RoundSettings) -> RoundPrice;

    /// How many choices of further settings are tried.
    fn choices(&self) -> usize {
        1
    }

    /// Whether the number of local steps is a setting. An algorithm without it is searched once, with H = 1.
    fn has_local_steps(&self) -> bool {
        true
    }

    /// Whether the same program serves any number of clients, because none of its numbers is one client's own.
    fn treats_clients_alike(&self) -> bool {
        false
    }

    /// Whether the error may come below a target and rise above it again much later, so that a crossing needs a
    /// proof.
    fn may_oscillate(&self) -> bool {
        true
    }

    /// The rounds as runs of local steps, if they are nothing else: then bounds of the error cost less than the
    /// program.
    fn local_runs(&self, _: &RoundSettings) -> Option<LocalRuns> {
        None
    }
}
