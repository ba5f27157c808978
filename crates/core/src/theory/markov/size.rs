//! The effort of exact moments along trajectories, from the sizes of the chains.

use super::layout::Layout;
use crate::linalg::{DIRECT, RESTARTS};
use crate::problem::Facts;
use crate::round_program::LocalRuns;
use crate::theory::effort::Effort;

/// The most numbers of a joint state for which anything is computed.
const MOST_NUMBERS: f64 = 1e7;

/// The sizes that decide the effort.
struct MarkovSizes {
    /// S of the longest chain and Π S_k.
    states: f64,
    positions: f64,
    clients: f64,
    /// Length of y and of z.
    own: f64,
    whole: f64,
    /// Squarings of a client's map.
    powers: f64,
}

impl MarkovSizes {
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

    /// Products of preparing the clients' second moments, and the numbers that they take.
    fn prepare(&self) -> (f64, f64) {
        let order = self.states * self.own * self.own;
        let products = self.clients * self.powers * order * order * order;
        (products, (self.clients + 3.0) * order * order)
    }

    /// Products of a round of second moments, and the numbers of a state.
    fn round(&self) -> (f64, f64) {
        let Self { states, positions, clients, own, whole, .. } = self;
        // The time that a product of two small matrices takes at least, in multiplications.
        let least = 60.0;
        let squares = clients * positions * states * (own * own * own * own + least);
        let pairs =
            clients * clients * positions * states * (whole * whole * (whole + 1.0) + least);
        (squares + pairs, positions * whole * whole)
    }
}

/// The effort of moments up to round `rounds`.
pub fn rounds_effort(facts: &dyn Facts, runs: &LocalRuns, rounds: u64) -> Effort {
    let sizes = MarkovSizes::new(facts, runs);
    let (prepare, held) = sizes.prepare();
    let (round, state) = sizes.round();
    limited(state, prepare + 1.3 * rounds as f64 * round, held + 6.0 * state)
}

/// The effort of [`super::TrajectoryMoments::stationary`].
pub fn stationary_effort(facts: &dyn Facts, runs: &LocalRuns) -> Effort {
    let sizes = MarkovSizes::new(facts, runs);
    let (prepare, held) = sizes.prepare();
    let (round, state) = sizes.round();
    let search = if state <= DIRECT as f64 {
        state * round + state * state * state
    } else {
        RESTARTS as f64 * 31.0 * (round + 120.0 * state)
    };
    limited(state, prepare + search, held + 70.0 * state)
}

/// The effort of [`super::limit`].
pub fn limit_effort(facts: &dyn Facts, runs: &LocalRuns) -> Effort {
    let sizes = MarkovSizes::new(facts, runs);
    let unknown = sizes.positions * sizes.whole;
    // A few states of few clients: it is computed before every run.
    let fits = unknown <= DIRECT as f64;
    let order = sizes.states * sizes.own;
    let prepare = sizes.clients * sizes.powers * order * order * order;
    let state = if fits { 0.0 } else { f64::INFINITY };
    limited(state, prepare + unknown * unknown * unknown, 3.0 * unknown * unknown)
}

/// An effort, beyond every limit for states with too many numbers.
fn limited(state: f64, products: f64, numbers: f64) -> Effort {
    if state > MOST_NUMBERS {
        Effort::new(f64::INFINITY, state)
    } else {
        Effort::new(products, numbers)
    }
}
