//! Which rounds of a run are recorded.

use crate::manifest::{BURN_IN, Record, Spacing};

/// The number of recorded rounds, about, where neither `points` nor `every` is written.
const POINTS: u64 = 200;

impl Record {
    /// The numbers of the rounds that are recorded of a run of T = `rounds` rounds, increasing from 0 to T. The
    /// distance `every` must not be 0, which checks of the manifest refuse.
    pub fn rounds(&self, rounds: u64) -> Vec<u64> {
        let points = self.points.unwrap_or(POINTS);
        let mut all: Vec<u64> = match (self.every, self.spacing) {
            (Some(every), _) => (0..=rounds / every).map(|i| i * every).collect(),
            (None, Spacing::Linear) => {
                let parts = points.min(rounds);
                // Products may be larger than 64 bits.
                let last = u128::from(rounds);
                let divisor = u128::from(parts.max(1));
                (0..=parts).map(|i| (u128::from(i) * last / divisor) as u64).collect()
            }
            (None, Spacing::Log) => {
                let top = libm::log(rounds as f64);
                let mut all = vec![0];
                all.extend((0..points).map(|i| libm::exp(top * i as f64 / points as f64) as u64));
                all.dedup();
                all
            }
        };
        all.push(rounds);
        all.retain(|&t| t <= rounds);
        all.dedup();
        all
    }

    /// An upper bound on the number of rounds that are recorded of a run of T = `rounds` rounds, without listing them.
    /// Estimates of memory and of work are made with it.
    pub fn points(&self, rounds: u64) -> u64 {
        let points =
            self.every.map_or(self.points.unwrap_or(POINTS), |every| rounds / every.max(1));
        points.min(rounds).saturating_add(2)
    }

    /// The record as it enters ids: whether a manifest writes a default or not makes no difference. The number of
    /// points is written out, and the default of the burn-in is left out.
    pub(super) fn canonical(&self) -> Self {
        let points = self.every.is_none().then(|| self.points.unwrap_or(POINTS));
        let burn_in = self.burn_in.filter(|share| *share != BURN_IN);
        Self { points, burn_in, ..self.clone() }
    }
}
