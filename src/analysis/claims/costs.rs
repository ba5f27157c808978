//! What it costs to bring the mean of a metric down to a target: seeded bootstraps
//! over the replicates.

use super::tested::{noiseless, number};
use super::words::{noted, target, told};
use super::{Judge, Shown, Tested};
use crate::analysis::Result;
use crate::manifest::Quantity;
use crate::manifest::claim::{Prediction, Reaches, Reaching, Slope};
use crate::rng::Stream;
use crate::stats::verdict::{Evidence, log_slope};

impl Judge<'_> {
    /// The slope of a cost, with its standard error by a seeded bootstrap over
    /// the replicates, which all points share.
    pub(super) fn slope_of_cost(
        &self,
        claim: &Slope,
        reaching: &Reaching,
        group: &[(f64, &Result)],
    ) -> Option<(f64, f64, usize)> {
        let n = group.iter().map(|(_, c)| c.traces.len()).min()?;
        let slope = |replicates: &[usize]| {
            let points: Option<Vec<(f64, Vec<f64>)>> = group
                .iter()
                .map(|(x, cell)| {
                    let cost = reached(cell, claim.metric, reaching, replicates)?;
                    Some((*x, vec![cost]))
                })
                .collect();
            points.map(|points| log_slope(&points).0)
        };
        let all: Vec<usize> = (0..n).collect();
        let estimate = slope(&all)?;
        let mut rng = Stream::shared_instance(BOOTSTRAP_SEED);
        let sample = (0..BOOTSTRAPS).filter_map(|_| slope(&resampled(&mut rng, n)));
        let sample: Vec<f64> = sample.collect();
        let error = crate::stats::standard_deviation(&sample);
        Some((estimate, if n < 2 { f64::NAN } else { error }, n))
    }

    pub(super) fn reaches(&self, claim: &Reaches) -> Tested {
        let (mut parts, mut notes) = (Vec::new(), Vec::new());
        for cell in self.chosen(&claim.of) {
            let name = self.name(cell, &claim.of);
            let limit = match (claim.within, claim.prediction) {
                (Some(within), _) => Some(within),
                (None, Some(by)) => self.promised(cell, claim, by),
                _ => None,
            };
            let Some(limit) = limit else {
                let why = claim.prediction.map(|by| self.why(cell, by)).unwrap_or_default();
                notes.push(noted(&name, &format!("{why}; or it never comes down to the target")));
                continue;
            };
            let n = cell.traces.len();
            let all: Vec<usize> = (0..n).collect();
            if cell.diverged() > 0 {
                notes.push(noted(&name, "diverged"));
                continue;
            }
            let cost = |replicates: &[usize]| {
                reached(cell, claim.metric, &claim.reaching, replicates).unwrap_or(f64::INFINITY)
            };
            let estimate = cost(&all);
            let region = (0.0, limit);
            if noiseless(cell) {
                parts.push((name, Evidence::exact(estimate, region)));
                continue;
            }
            let mut rng = Stream::shared_instance(BOOTSTRAP_SEED);
            let mut sample: Vec<f64> =
                (0..BOOTSTRAPS).map(|_| cost(&resampled(&mut rng, n))).collect();
            sample.sort_by(f64::total_cmp);
            let over = sample.iter().filter(|t| **t > limit).count();
            let share = |count: usize| (count + 1) as f64 / (BOOTSTRAPS + 1) as f64;
            let quantile = |p: f64| sample[((BOOTSTRAPS - 1) as f64 * p) as usize];
            parts.push((
                name,
                Evidence {
                    estimate,
                    error: f64::NAN,
                    interval: (quantile(0.025), quantile(0.975)),
                    support: if n < 2 { 1.0 } else { share(over) },
                    refute: if n < 2 { 1.0 } else { share(BOOTSTRAPS - over) },
                    distance: (estimate - limit).abs(),
                    n,
                },
            ));
        }
        let most = match (claim.within, claim.prediction) {
            (Some(within), _) => within.to_string(),
            (_, Some(by)) => format!("what {} needs", by.words()),
            _ => String::new(),
        };
        let formula = format!(
            "{} until {} of {} ≤ {} is at most {most}",
            claim.reaching.cost.formula(),
            claim.metric.formula(),
            told(&claim.of),
            target(&claim.reaching)
        );
        Tested { parts, notes, formula, shown: Shown::Plain }
    }

    /// The cost after which a bound is below the target, at the cell's settings.
    fn promised(&self, cell: &Result, claim: &Reaches, by: Prediction) -> Option<f64> {
        let target = target_of(cell, &claim.reaching)?;
        let below = |round: u64| {
            let bound = self.theory.bound(&cell.cell.id, by, round)?;
            bound.value.ok().map(|value| value <= target)
        };
        let mut high = 1;
        while !below(high)? {
            high *= 2;
            if high > 1 << 50 {
                return None;
            }
        }
        let mut low = high / 2;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if below(middle)? { high = middle } else { low = middle }
        }
        // A bound counts rounds; the cost of a round is the same in all of them.
        let trace = cell.traces.first()?;
        let rounds = *trace.round.last()? as f64;
        let cost = *cell.column(trace, claim.reaching.cost).last()?;
        Some(high as f64 * cost / rounds)
    }
}

/// Bootstrap samples of costs.
const BOOTSTRAPS: usize = 999;
/// The bootstrap's own stream: the same numbers on every machine.
const BOOTSTRAP_SEED: u64 = 0x0b00_7574;

fn resampled(rng: &mut Stream, n: usize) -> Vec<usize> {
    (0..n).map(|_| rng.index(n)).collect()
}

/// Where the mean over these replicates first is at most the target.
fn reached(
    cell: &Result,
    metric: Quantity,
    reaching: &Reaching,
    replicates: &[usize],
) -> Option<f64> {
    let target = target_of(cell, reaching)?;
    let columns: Vec<_> =
        replicates.iter().map(|&r| cell.column(&cell.traces[r], metric)).collect();
    let costs: Vec<_> =
        replicates.iter().map(|&r| cell.column(&cell.traces[r], reaching.cost)).collect();
    let rows = columns.iter().map(|c| c.len()).min()?;
    let n = columns.len() as f64;
    let at = |list: &[std::borrow::Cow<'_, [f64]>], row: usize| {
        list.iter().map(|c| c[row]).sum::<f64>() / n
    };
    let row = (0..rows).find(|&row| at(&columns, row) <= target)?;
    Some(at(&costs, row))
}

fn target_of(cell: &Result, reaching: &Reaching) -> Option<f64> {
    match &reaching.per {
        None => Some(reaching.target),
        Some(per) => Some(reaching.target * number(cell, per)?),
    }
}
