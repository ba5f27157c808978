//! Which rounds of a run are recorded.

use crate::manifest::{BURN_IN, Record, Spacing};

/// The default of the number of recorded rounds.
const POINTS: u64 = 200;

impl Record {
    /// The rounds of T that are recorded, from 0 to T.
    pub fn rounds(&self, rounds: u64) -> Vec<u64> {
        let points = self.points.unwrap_or(POINTS);
        let mut all: Vec<u64> = match (self.every, self.spacing) {
            (Some(every), _) => (0..=rounds / every).map(|i| i * every).collect(),
            (None, Spacing::Linear) => {
                let points = points.min(rounds);
                let (top, parts) = (u128::from(rounds), u128::from(points.max(1)));
                (0..=points).map(|i| (u128::from(i) * top / parts) as u64).collect()
            }
            (None, Spacing::Log) => {
                let top = libm::log(rounds as f64);
                let round = |i: u64| libm::exp(top * i as f64 / points as f64) as u64;
                let mut all: Vec<u64> = std::iter::once(0).chain((0..points).map(round)).collect();
                all.dedup();
                all
            }
        };
        all.push(rounds);
        all.retain(|&t| t <= rounds);
        all.dedup();
        all
    }

    /// Number of rounds of T that are recorded, or a few more.
    pub fn points(&self, rounds: u64) -> u64 {
        let points =
            self.every.map_or(self.points.unwrap_or(POINTS), |every| rounds / every.max(1));
        points.min(rounds).saturating_add(2)
    }

    /// A record in which defaults are written out, so that writing them changes no id.
    pub(super) fn canonical(&self) -> Self {
        let points = self.every.is_none().then(|| self.points.unwrap_or(POINTS));
        let burn_in = self.burn_in.filter(|share| *share != BURN_IN);
        Self { points, burn_in, ..self.clone() }
    }
}
