//! The two sides of a comparison: what replicates gave, and what their means are compared by.
//!
//! *Invariant*: a mean that is 0 or infinite enters as what it is; only a side whose
//! oracle and instance are both fixed has no sampling error.

use crate::analysis::CellResult;
use crate::stats::log_means::LogMeans;
use crate::stats::verdict::{Evidence, Region, widened};
use crate::stats::{ROUNDING_FLOOR, mean};
use driftbench_runner::manifest::Quantity;

/// A quantity of a cell at one time, a number a replicate.
pub(super) struct MetricSample {
    /// Its values; infinite for a replicate that had diverged.
    pub sample: Vec<f64>,
    /// Whether nothing in the cell is random, so that one run is all.
    pub fixed: bool,
    /// Means below this are rounding and count as 0.
    pub floor: f64,
}

impl MetricSample {
    pub fn new(cell: &CellResult<'_>, metric: Quantity, sample: Vec<f64>) -> Self {
        let floor = match metric {
            // A norm and a difference of objectives: no squares of what is known to 1e-16.
            Quantity::Bias | Quantity::Suboptimality => ROUNDING_FLOOR.sqrt(),
            _ => ROUNDING_FLOOR,
        };
        Self { sample, fixed: cell.is_deterministic(), floor }
    }

    /// A number that is not random.
    pub fn number(value: f64) -> Self {
        Self { sample: vec![value], fixed: true, floor: ROUNDING_FLOOR }
    }

    /// The mean over replicates, 0 where it is rounding.
    pub fn mean(&self) -> f64 {
        match mean(&self.sample) {
            m if m.abs() < self.floor => 0.0,
            m => m,
        }
    }

    /// Whether a mean of these replicates can be judged at all.
    fn judged(&self) -> bool {
        self.fixed || self.sample.len() > 1
    }
}

/// Evidence that log(mean a / mean b) lies in a region; `None` where the ratio is not
/// defined: both means are infinite, or one is no number or negative.
pub(super) fn ratio(a: &MetricSample, b: &MetricSample, region: Region) -> Option<Evidence> {
    let (x, y) = (a.mean(), b.mean());
    let n = a.sample.len().min(b.sample.len());
    let log = match (x, y) {
        (x, y) if !(x >= 0.0 && y >= 0.0) || x.is_infinite() && y.is_infinite() => return None,
        // 0 is as much as 0, whatever the factor, and has no ratio to it.
        (0.0, 0.0) if a.judged() && b.judged() => {
            return Some(Evidence { n, ..Evidence::certain(f64::NAN, true) });
        }
        (0.0, 0.0) => return Some(Evidence::undecided(0.0, n)),
        (x, y) if x == 0.0 || y.is_infinite() => f64::NEG_INFINITY,
        (x, y) if y == 0.0 || x.is_infinite() => f64::INFINITY,
        (x, y) => libm::log(x / y),
    };
    if !a.judged() || !b.judged() {
        return Some(Evidence::undecided(log, n));
    }
    if log.is_infinite() {
        return Some(Evidence { n, ..Evidence::exact(log, region) });
    }
    combined(&[(1.0, a), (-1.0, b)], region)
}

/// Evidence that Σ w_j log E x_j lies in a region; `None` where a mean is not above 0 and
/// finite.
pub(super) fn combined(sides: &[(f64, &MetricSample)], region: Region) -> Option<Evidence> {
    let means: Vec<f64> = sides.iter().map(|(_, side)| side.mean()).collect();
    if !means.iter().all(|m| *m > 0.0 && m.is_finite()) {
        return None;
    }
    let logs = sides.iter().zip(&means).map(|((w, side), m)| (side.fixed, w * libm::log(*m)));
    let (fixed, random): (Vec<_>, Vec<_>) = logs.partition(|(fixed, _)| *fixed);
    let offset: f64 = fixed.iter().map(|(_, log)| log).sum();
    if random.is_empty() {
        return Some(Evidence::exact(offset, widened(region)));
    }
    let of_random = sides.iter().filter(|(_, side)| !side.fixed);
    let points: Vec<(f64, &[f64])> = of_random.map(|(w, side)| (*w, &side.sample[..])).collect();
    match LogMeans::new(&points) {
        Some(known) => Some(Evidence::from_log_means(&known.shifted(offset), region)),
        None => {
            let estimate = offset + random.iter().map(|(_, log)| log).sum::<f64>();
            let n = points.iter().map(|(_, x)| x.len()).min().unwrap_or(0);
            Some(Evidence::undecided(estimate, n))
        }
    }
}
