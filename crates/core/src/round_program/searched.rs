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

/// What a round of an algorithm costs on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundPrice {
    /// Communications, summed over the runs that the algorithm is made of.
    pub communications: f64,
    /// Gradients of each client, on average; an oracle call counts as one, whatever the batch of the problem is.
    pub gradients: f64,
    /// Gradients of the client that makes the most of those that take part, for which the others wait.
    pub slowest_gradients: f64,
    /// Draws of each client, on average. A draw that several runs on common draws use counts once.
    pub samples: f64,
    /// Vectors of d numbers that each client sends or receives, on average over all clients.
    pub vectors: f64,
}

/// The E_k local steps of a client in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalUpdate {
    /// The step size γ_k.
    pub step: f64,
    /// The number E_k of local steps.
    pub steps: u64,
    /// The number B_k of gradients that a local step averages.
    pub batch: u64,
    /// The weight μ of the proximal term μ(θ_k − θ_t) in each local step; 0 without one.
    pub proximal: f64,
}

impl LocalUpdate {
    /// E_k steps of size γ_k on single gradients, without a proximal term.
    pub fn of_steps(step: f64, steps: u64) -> Self {
        Self { step, steps, batch: 1, proximal: 0.0 }
    }

    /// The bits of the four numbers. Clients are of one type, so that their moments are followed together, only if
    /// their bits are equal.
    pub fn bits(&self) -> [u64; 4] {
        [self.step.to_bits(), self.steps, self.batch, self.proximal.to_bits()]
    }
}

/// One of the runs of [`LocalRuns`]. In each round all clients make local steps from θ_t, and the server moves towards
/// the mean of where they end.
#[derive(Clone, Debug)]
pub struct LocalRun {
    /// The weight of the run's estimate in the estimate of the algorithm.
    pub weight: f64,
    /// The local steps that each client makes in a round.
    pub updates: PerClient<LocalUpdate>,
    /// The server step γ_g, by which the estimate moves to the mean of the clients' ends: THEORY (6.6).
    pub server_step: f64,
}

/// An algorithm whose rounds are nothing but local steps, with corrections or without, and means: one run, or several
/// runs from one start.
#[derive(Clone, Debug)]
pub struct LocalRuns {
    /// The runs, whose weighted estimates add up to the estimate of the algorithm.
    pub runs: Vec<LocalRun>,
    /// Whether the clients of all runs keep corrections, as Scaffold's do, which are 0 before the first round.
    pub is_corrected: bool,
    /// Whether there are several runs, which have the same draws.
    pub is_common: bool,
}

/// The rounds of an algorithm, and what they cost, for all settings that a search tries.
pub trait Rounds: Send + Sync {
    /// The name of the algorithm, for messages.
    fn name(&self) -> &str;

    /// The rounds of the algorithm with these settings as a program, or why there is none.
    fn program(&self, settings: &RoundSettings) -> Traced;

    /// What a round of the algorithm with these settings costs.
    fn price(&self, settings: &RoundSettings) -> RoundPrice;

    /// How many choices of settings other than γ and H are tried.
    fn choices(&self) -> usize {
        1
    }

    /// Whether the number of local steps is a setting. An algorithm without it is searched once, with H = 1.
    fn has_local_steps(&self) -> bool {
        true
    }

    /// Whether one program, with its number of clients changed, serves any number of clients, because no number in it
    /// belongs to one client alone.
    fn treats_clients_alike(&self) -> bool {
        false
    }

    /// Whether the error may come below a target and rise above it again much later, so that a search has to prove that
    /// it stays below.
    fn may_oscillate(&self) -> bool {
        true
    }

    /// The rounds of the algorithm with these settings as runs of local steps; `None` if they are anything else. Errors
    /// are then bounded with less effort than by the program.
    fn local_runs(&self, _: &RoundSettings) -> Option<LocalRuns> {
        None
    }
}
