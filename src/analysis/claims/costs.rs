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
use std::borrow::Cow;

impl Judge<'_> {
    /// The slope of a cost, with its standard error by a seeded bootstrap over
    /// the replicates, which all points share.
    pub(super) fn slope_of_cost(
        &self,
        claim: &Slope,
        reaching: &Reaching,
        group: &[(f64, &Result<'_>)],
    ) -> Option<(f64, f64, usize)> {
        let n = group.iter().map(|(_, c)| c.replicates()).min()?;
        let mut courses = Vec::with_capacity(group.len());
        for (x, cell) in group {
            courses.push((*x, Course::of(cell, claim.metric, reaching)));
        }
        let slope = |replicates: &[usize]| {
            let points: Option<Vec<(f64, Vec<f64>)>> = courses
                .iter()
                .map(|(x, course)| Some((*x, vec![course.reached(replicates)?])))
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
            let n = cell.replicates();
            let all: Vec<usize> = (0..n).collect();
            if cell.diverged() > 0 {
                notes.push(noted(&name, "diverged"));
                continue;
            }
            let course = Course::of(cell, claim.metric, &claim.reaching);
            let cost = |replicates: &[usize]| course.reached(replicates).unwrap_or(f64::INFINITY);
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
    fn promised(&self, cell: &Result<'_>, claim: &Reaches, by: Prediction) -> Option<f64> {
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
        let trace = cell.along().first()?;
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

/// A cell's metric and cost, run by run, and the target.
struct Course<'a> {
    metric: Vec<Cow<'a, [f64]>>,
    cost: Vec<Cow<'a, [f64]>>,
    target: Option<f64>,
}

impl<'a> Course<'a> {
    fn of(cell: &'a Result<'_>, metric: Quantity, reaching: &Reaching) -> Self {
        let columns = |of| cell.along().iter().map(|trace| cell.column(trace, of)).collect();
        Self {
            metric: columns(metric),
            cost: columns(reaching.cost),
            target: target_of(cell, reaching),
        }
    }

    /// Where the mean over these replicates first is at most the target.
    fn reached(&self, replicates: &[usize]) -> Option<f64> {
        let target = self.target?;
        let rows = replicates.iter().map(|&r| self.metric[r].len()).min()?;
        let n = replicates.len() as f64;
        let at = |list: &[Cow<'_, [f64]>], row: usize| {
            replicates.iter().map(|&r| list[r][row]).sum::<f64>() / n
        };
        let row = (0..rows).find(|&row| at(&self.metric, row) <= target)?;
        Some(at(&self.cost, row))
    }
}

fn target_of(cell: &Result<'_>, reaching: &Reaching) -> Option<f64> {
    match &reaching.per {
        None => Some(reaching.target),
        Some(per) => Some(reaching.target * number(cell, per)?),
    }
}
