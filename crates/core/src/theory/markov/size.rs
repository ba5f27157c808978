//! The effort of exact moments along trajectories, from the sizes of the chains.

use super::layout::Layout;
use crate::linalg::{DIRECT, RESTARTS};
use crate::problem::Facts;
use crate::round_program::LocalRuns;
use crate::theory::effort::Effort;

/// The most numbers E 1{x} z zᵀ over all x for which anything is computed.
const MOST_NUMBERS: f64 = 1e7;

/// The sizes from which the effort follows.
struct MarkovSizes {
    /// The most states S_k of a client's chain.
    states: f64,
    /// The number of joint positions of all chains, Π S_k.
    positions: f64,
    /// The number of clients, N.
    clients: f64,
    /// The length of a client's state y.
    own: f64,
    /// The length of the joint state z.
    whole: f64,
    /// The products of matrices that the power of a client's map takes, for the most local steps of a client.
    powers: f64,
}

/// What a part of a computation takes.
struct PartEffort {
    /// The number of multiplications.
    products: f64,
    /// How many numbers it keeps in memory.
    numbers: f64,
}

impl MarkovSizes {
    /// The sizes of these runs on a problem, for which [`super::are_closed`] is true, as callers have asked before: the
    /// draws of each client follow a chain, and each client takes as many local steps in every run as in the first,
    /// which is looked at alone.
    fn new(facts: &dyn Facts, runs: &LocalRuns) -> Self {
        let layout = Layout::new(facts, runs);
        let states = (0..facts.clients()).map(|c| facts.positions(c).unwrap_or(0) as f64);
        let steps = (0..facts.clients()).map(|c| runs.runs[0].updates.of_client(c).steps).max();
        Self {
            positions: states.clone().product(),
            states: states.fold(0.0, f64::max),
            clients: facts.clients() as f64,
            own: layout.client_length() as f64,
            whole: layout.state_length() as f64,
            powers: 1.5 * libm::log2(steps.unwrap_or(1) as f64 + 1.0) + 1.0,
        }
    }

    /// What the maps of the clients' second moments take, before any round.
    fn prepare(&self) -> PartEffort {
        let order = self.states * self.own * self.own;
        let products = self.clients * self.powers * order * order * order;
        PartEffort { products, numbers: (self.clients + 3.0) * order * order }
    }

    /// What one round of second moments takes: the multiplications, and the numbers E 1{x} z zᵀ of one state.
    fn round(&self) -> PartEffort {
        let Self { states, positions, clients, own, whole, .. } = self;
        // The time that a product of two small matrices takes at least, in multiplications.
        let least = 60.0;
        let squares = clients * positions * states * (own * own * own * own + least);
        let pairs =
            clients * clients * positions * states * (whole * whole * (whole + 1.0) + least);
        PartEffort { products: squares + pairs, numbers: positions * whole * whole }
    }
}

/// The effort of [`super::TrajectoryMoments::at_rounds`] up to round `rounds`: of the clients' maps, and of each round.
/// It is of no use unless [`super::are_closed`], which callers ask before. Following the sum of past estimates is
/// counted as 0.3 of a round.
pub fn rounds_effort(facts: &dyn Facts, runs: &LocalRuns, rounds: u64) -> Effort {
    let sizes = MarkovSizes::new(facts, runs);
    let prepare = sizes.prepare();
    let round = sizes.round();
    let state = round.numbers;
    let products = prepare.products + 1.3 * rounds as f64 * round.products;
    limited(state, products, prepare.numbers + 6.0 * state)
}

/// The effort of [`super::TrajectoryMoments::stationary`]: of the clients' maps, and of a direct or an iterative
/// solution of the linear system of second moments. Like [`rounds_effort`], it is of use only if
/// [`super::are_closed`].
pub fn stationary_effort(facts: &dyn Facts, runs: &LocalRuns) -> Effort {
    let sizes = MarkovSizes::new(facts, runs);
    let prepare = sizes.prepare();
    let round = sizes.round();
    let state = round.numbers;
    let search = if state <= DIRECT as f64 {
        // The matrix of the map, and a direct solution.
        state * round.products + state * state * state
    } else {
        // All restarts of GMRES, each of which applies the map 31 times: for the residual, and for 30 directions, which
        // are made orthogonal to each other.
        RESTARTS as f64 * 31.0 * (round.products + 120.0 * state)
    };
    limited(state, prepare.products + search, prepare.numbers + 70.0 * state)
}

/// The effort of [`super::limit`], which is computed for a direct solution alone: it is beyond every limit for more
/// unknown numbers than [`DIRECT`]. Callers refuse the limit then, and count it as not known. Like [`rounds_effort`],
/// it is of use only if [`super::are_closed`].
pub fn limit_effort(facts: &dyn Facts, runs: &LocalRuns) -> Effort {
    let sizes = MarkovSizes::new(facts, runs);
    let unknown = sizes.positions * sizes.whole;
    // Only few states of few clients fit, because the limit is computed before every run.
    let fits = unknown <= DIRECT as f64;
    let order = sizes.states * sizes.own;
    let prepare = sizes.clients * sizes.powers * order * order * order;
    let state = if fits { 0.0 } else { f64::INFINITY };
    limited(state, prepare + unknown * unknown * unknown, 3.0 * unknown * unknown)
}

/// The effort of this many products and numbers; infinite if a state has more than [`MOST_NUMBERS`] numbers.
fn limited(state: f64, products: f64, numbers: f64) -> Effort {
    if state > MOST_NUMBERS {
        Effort::new(f64::INFINITY, state)
    } else {
        Effort::new(products, numbers)
    }
}
