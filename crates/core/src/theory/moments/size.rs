//! The effort of exact moments, from the sizes of the data of [`super::ExactMoments`].

use super::{AlgorithmModel, Correction, types};
use crate::problem::Facts;
use crate::theory::effort::{self, Effort, MOST_PRODUCTS};

/// The largest order of the stationary system that is solved directly.
pub(super) const DIRECT: usize = 600;
/// The vectors of GMRES between restarts.
pub(super) const KRYLOV: usize = 30;
/// The least number of restarts of GMRES that must fit within the limit.
const FEWEST_RESTARTS: f64 = 4.0;

/// The sizes that decide the effort of moments.
pub(super) struct MomentSizes {
    /// d and N.
    d: f64,
    clients: f64,
    runs: f64,
    corrected: bool,
    /// Types of clients.
    types: f64,
    /// Length of y, of v and of s.
    y: f64,
    v: f64,
    s: f64,
    /// Products of preparing the local steps of a type.
    prepare: f64,
    /// Products of a round.
    round: f64,
}

impl MomentSizes {
    pub(super) fn new(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> Self {
        let (types, _) = types(facts, model);
        let d = facts.dim() as f64;
        let corrected = model.runs.iter().any(|r| r.correction != Correction::None);
        let runs = model.runs.len() as f64;
        let y = if corrected { 2.0 * d + 1.0 } else { d + 1.0 };
        let longest = types.iter().flat_map(|t| &t.updates).map(|w| w.steps).max().unwrap_or(1);
        let doublings = match model.coin {
            Some(p) => 3.0 * libm::log2(50.0 / p),
            None => 1.5 * libm::log2(longest as f64 + 1.0),
        };
        let noise = (d + 1.0) * (d + 1.0) * effort::noise_map(facts);
        let prepare = runs * runs * (doublings * (d * d * y * y * (d * d + 2.0 * y)) + noise);
        let v = if corrected { runs * d } else { 0.0 };
        let s = 1.0 + 2.0 * v.max(runs * d);
        let per_type = 12.0 * s * s * s + runs * runs * y * y * d * d;
        // A pair of types takes time even without numbers.
        let mut per_pair = 20.0 + if corrected { 4.0 * v * v * s } else { 0.0 };
        if let Some(p) = model.coin {
            per_pair += 2.0 * y * y * y * libm::log2(50.0 / p);
        }
        let (clients, types) = (facts.clients() as f64, types.len() as f64);
        let round = types * per_type + types * types / 2.0 * per_pair;
        Self { d, clients, runs, corrected, types, y, v, s, prepare, round }
    }

    /// The numbers in memory while a round is computed: the local steps of all types, the
    /// updates of the members of each, and a few states.
    fn numbers(&self) -> f64 {
        let Self { d, runs, types, y, v, s, .. } = self;
        let pairs = types * runs * (runs + 1.0) / 2.0;
        let steps = (pairs + 2.0) * d * d * y * y + d * d * d * d;
        let members = 2.0 * types * (s + v) * (s + v + 2.0 * runs * d);
        // Five numbers for the header of a matrix.
        let state = types * types * (5.0 + v * v) + types * (s * v + v * v) + s * s;
        steps + members + 3.0 * state
    }

    /// The numbers of a state, and the products of applying a round's map to them.
    fn map(&self) -> (f64, f64) {
        let Self { types, v, s, .. } = self;
        let length = s * s + types * (s * v + v * v) + types * types * v * v;
        (length, self.round + 4.0 * KRYLOV as f64 * length)
    }

    /// The number of restarts of GMRES that fit within the limit.
    pub(super) fn restarts(&self) -> usize {
        let left = MOST_PRODUCTS - self.types * self.prepare;
        (left / ((KRYLOV as f64 + 1.0) * self.map().1)).max(FEWEST_RESTARTS) as usize
    }
}

/// The effort of moments up to round `rounds`, stored at `rows` rounds: preparing the
/// types, and their pairs round by round.
pub fn rounds_effort(
    facts: &dyn Facts,
    model: &AlgorithmModel<'_>,
    rounds: u64,
    rows: usize,
) -> Effort {
    let sizes = MomentSizes::new(facts, model);
    let stored = rows as f64 * (sizes.d * sizes.d + 2.0 * sizes.d);
    // Local steps whose size falls are prepared in each round.
    let prepared = if model.decay.is_some() { rounds.max(1) as f64 } else { 1.0 };
    let products = prepared * sizes.types * sizes.prepare + rounds as f64 * sizes.round;
    Effort::new(products, sizes.numbers() + stored)
}

/// The effort of [`super::ExactMoments::stationary`], with the blocks of all clients.
pub fn stationary_effort(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> Effort {
    let sizes = MomentSizes::new(facts, model);
    let (length, map) = sizes.map();
    let blocks = if sizes.corrected { 6.0 * sizes.clients * sizes.d * sizes.d } else { 0.0 };
    let (search, held) = if length <= DIRECT as f64 {
        (length * map + length * length * length, 3.0 * length * length)
    } else {
        (FEWEST_RESTARTS * (KRYLOV as f64 + 1.0) * map, (KRYLOV as f64 + 5.0) * length)
    };
    let products = sizes.types * sizes.prepare + search + blocks;
    Effort::new(products, sizes.numbers() + held + blocks)
}
