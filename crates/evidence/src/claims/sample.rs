//! The values of a metric that a claim is about, one per replicate, and the evidence about
//! ratios and products of their means.
//!
//! *Invariant*: a mean that is 0 or infinite enters as what it is; only a sample of a cell
//! without any randomness has no sampling error.

use super::keys::When;
use crate::cells::cost_sample::{CostSample, NoSample};
use crate::cells::costs::place_text;
use crate::cells::{CellResult, rounding_floor};
use crate::stats::distance::{is_resolved, scheffe_radius};
use crate::stats::log_means::LogMeans;
use crate::stats::selection::selection_error;
use crate::stats::verdict::{Evidence, Region, Unit, widened};
use crate::stats::{ROUNDING_FLOOR, mean, standard_deviation};
use exactfed_runner::manifest::{ComparedAt, Quantity, TimeAverage};
use std::borrow::Cow;
use thiserror::Error;

/// A metric of a cell at one time, one value per replicate.
pub struct MetricSample {
    /// The values; infinite for a replicate that had diverged.
    pub values: Vec<f64>,
    /// Whether nothing in the cell is random ([`CellResult::is_deterministic`]), so that all values are equal and one
    /// run is all that there is to know.
    pub fixed: bool,
    /// Whether each value is the mean of the runs on one of several instances.
    pub of_instances: bool,
    /// Means below this are rounding and count as 0.
    pub floor: f64,
    /// How much other selections of the cell's settings by this metric would change the logarithm of its mean
    /// ([`crate::stats::selection::selection_changes`]); none without a selection.
    pub selection_changes: Vec<f64>,
    /// The vectors, one for each replicate, the norm of whose mean is the bias, if their sampling error leaves it open
    /// whether their mean is 0: the direction of the mean, along which `values` are, is noise then. `None` for other
    /// quantities.
    pub unresolved: Option<Vec<Vec<f64>>>,
}

impl MetricSample {
    /// These values of a metric of a cell, with what is known of their distribution.
    pub fn new(cell: &CellResult<'_>, metric: Quantity, values: Vec<f64>) -> Self {
        let floor = rounding_floor(metric);
        let of_instances = cell.is_over_instances();
        let fixed = cell.is_deterministic();
        let bias = (metric == Quantity::Bias && !fixed && cell.runs.diverged == 0)
            .then(|| cell.runs.averages(TimeAverage::Bias))
            .flatten();
        let vectors = bias.map(|all| all.into_iter().map(<[f64]>::to_vec).collect());
        let unresolved = vectors.filter(|all: &Vec<_>| !is_resolved(all));
        let selection_changes = cell.selection_changes(metric).to_vec();
        Self { values, fixed, of_instances, floor, selection_changes, unresolved }
    }

    /// A number that is not random, as a prediction.
    pub fn exact(value: f64) -> Self {
        Self {
            values: vec![value],
            fixed: true,
            of_instances: false,
            floor: ROUNDING_FLOOR,
            selection_changes: Vec::new(),
            unresolved: None,
        }
    }

    /// The mean of the values, 0 where it is only rounding.
    pub fn mean(&self) -> f64 {
        match mean(&self.values) {
            m if m.abs() < self.floor => 0.0,
            m => m,
        }
    }

    /// The mean with its interval, as a number to which a norm is compared; `None` unless all of the interval is above
    /// 0 and finite.
    fn unit(&self) -> Option<Unit> {
        let estimate = self.mean();
        let reach = if self.fixed {
            0.0
        } else {
            let n = self.values.len();
            // In one dimension Scheffé's region is Student's interval.
            let in_errors = scheffe_radius(1, n, OUTSIDE).unwrap_or(f64::INFINITY);
            in_errors * standard_deviation(&self.values) / libm::sqrt(n as f64)
        };
        let ends = (estimate - reach, estimate + reach);
        let outside = if self.fixed { 0.0 } else { OUTSIDE };
        (ends.0 > 0.0 && ends.1.is_finite()).then_some(Unit { estimate, ends, outside })
    }

    /// Whether the replicates suffice to judge their mean: one is enough only if nothing is random.
    fn can_be_judged(&self) -> bool {
        self.fixed || self.values.len() > 1
    }
}

/// The probability that a mean to which a norm is compared is outside of its interval; p-values are larger by this.
const OUTSIDE: f64 = 1e-3;

/// A metric of a cell at one of the times that a claim is about.
pub struct TimedSample {
    /// The time in words, as a part of a name; empty unless the claim is about several times.
    pub time: String,
    /// The row of the recorded round; `None` for the last round, and at a cost that runs pay at different rounds.
    pub row: Option<usize>,
    /// The values of the runs at this time.
    pub sample: MetricSample,
}

/// Why a metric of a cell has no values at the times of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum SampleError {
    /// The metric is not among those that are recorded.
    #[error("{} is not recorded", metric.formula())]
    NotRecorded {
        /// The metric.
        metric: Quantity,
    },
    /// The runs are shorter than the claim asks for.
    #[error("its runs end before {}", place_text(*at))]
    Ended {
        /// The cost that they do not reach.
        at: ComparedAt,
    },
    /// Not all runs have reached the target at which the metric is measured, or until which it is a cost.
    #[error(
        "a run does not reach the target, so that its cost is not known; `reaches-before` compares such costs"
    )]
    Unreached,
}

/// A metric of a cell at each time that a claim is about. A run that had diverged by then has the worst value:
/// infinity, or the least possible one if more is better. At the end and for means over rounds all runs have it if one
/// of them diverged.
///
/// # Errors
/// Why it has no values: it is not recorded, runs end before the cost is reached, or it is a cost that is not known.
pub fn samples(
    cell: &CellResult<'_>,
    metric: Quantity,
    at: When,
) -> Result<Vec<TimedSample>, SampleError> {
    if at == When::End && !cell.knows_cost(metric) {
        return Err(SampleError::Unreached);
    }
    let Some(compared_at) = at.compared_at() else {
        return samples_at_rounds(cell, metric, at).ok_or_else(|| unrecorded(metric));
    };
    match cell.runs.sample_at(metric, compared_at) {
        Ok(CostSample { values, row, .. }) => {
            // Runs that had diverged by then are infinite here, even if more is better.
            let worst = metric.after_divergence();
            let values = values.iter().map(|x| if x.is_infinite() { worst } else { *x }).collect();
            let sample = MetricSample::new(cell, metric, values);
            Ok(vec![TimedSample { time: String::new(), row: *row, sample }])
        }
        Err(NoSample::Ended) => Err(SampleError::Ended { at: compared_at }),
        Err(NoSample::Unreached) => Err(SampleError::Unreached),
        Err(_) => Err(unrecorded(metric)),
    }
}

/// The error that a metric is not recorded.
fn unrecorded(metric: Quantity) -> SampleError {
    SampleError::NotRecorded { metric }
}

/// A metric of a cell at each time that a claim is about, where rounds and no costs say when; `None` if it is not
/// recorded.
fn samples_at_rounds(
    cell: &CellResult<'_>,
    metric: Quantity,
    at: When,
) -> Option<Vec<TimedSample>> {
    let is_average = metric.average().is_some();
    if cell.runs.diverged > 0 && (is_average || matches!(at, When::End | When::Stationary)) {
        return Some(vec![TimedSample::of_diverged(cell, metric)]);
    }
    if is_average || at == When::End {
        return Some(vec![TimedSample::at_end(cell, metric, cell.runs.finals(metric)?)]);
    }
    let columns = cell.runs.columns(metric);
    // A run that diverged has fewer rows than the others.
    let longest = (0..columns.len()).max_by_key(|&i| columns[i].len())?;
    let rows = Some(columns[longest].len()).filter(|rows| *rows > 0)?;
    let rounds = cell.runs.rounds(longest)?;
    match at {
        When::Round(round) => {
            if cell.runs.diverged == cell.runs.count && rounds[rows - 1] < round {
                return Some(vec![TimedSample::of_diverged(cell, metric)]);
            }
            let row = (0..rows).min_by_key(|&i| rounds[i].abs_diff(round))?;
            Some(vec![TimedSample::at_row(cell, metric, &columns, row, String::new())])
        }
        When::EveryRound => {
            let mut all = Vec::with_capacity(rows - 1);
            for (row, round) in rounds.iter().enumerate().take(rows).skip(1) {
                let time = format!("round {round}");
                all.push(TimedSample::at_row(cell, metric, &columns, row, time));
            }
            Some(all)
        }
        // The end and costs were answered above.
        _ => {
            let from = second_half(&rounds[..rows]);
            let values = columns.iter().map(|c| mean(&c[from.min(c.len())..])).collect();
            Some(vec![TimedSample::at_end(cell, metric, values)])
        }
    }
}

impl TimedSample {
    /// These values at the last round, or over the last rounds.
    fn at_end(cell: &CellResult<'_>, metric: Quantity, values: Vec<f64>) -> Self {
        let sample = MetricSample::new(cell, metric, values);
        Self { time: String::new(), row: None, sample }
    }

    /// The worst value of the metric in every run, since a mean is the worst if a single run diverged.
    fn of_diverged(cell: &CellResult<'_>, metric: Quantity) -> Self {
        Self::at_end(cell, metric, vec![metric.after_divergence(); cell.runs.sample_size()])
    }

    /// A metric at one recorded round: the values in this row of its columns, one column for each run or instance. A
    /// column that has no such row is of a run that had diverged, and counts with the worst value.
    fn at_row(
        cell: &CellResult<'_>,
        metric: Quantity,
        columns: &[Cow<'_, [f64]>],
        row: usize,
        time: String,
    ) -> Self {
        let worst = metric.after_divergence();
        let values = columns.iter().map(|column| column.get(row).copied().unwrap_or(worst));
        let sample = MetricSample::new(cell, metric, values.collect());
        Self { time, row: Some(row), sample }
    }
}

/// The first row whose round is at least half of the last one: from it on, rounds count as stationary, whatever rounds
/// are recorded. There must be a round.
pub fn second_half(rounds: &[u64]) -> usize {
    rounds.partition_point(|round| *round < rounds[rounds.len() - 1] / 2)
}

/// Why the means of samples give no evidence on their ratio, or on the sum of their logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEvidence {
    /// A logarithm or a ratio does not exist, as of two infinite means: more replicates do not change that.
    Undefined,
    /// The mean whose norm is taken may be 0 as far as these replicates show ([`MetricSample::unresolved`]), and in a
    /// ratio the other side may be 0 too: more replicates may show that it is not.
    Unresolved,
}

/// Evidence that log(mean a / mean b) lies in a region. If both means are 0, whatever the region is, the claim holds,
/// and the estimate is NaN. For samples over several instances it is evidence on a typical instance
/// ([`log_combination`]).
///
/// # Errors
/// Why there is none: both means are infinite, one is no number or negative, or both may be 0 as far as the replicates
/// show.
pub fn log_ratio(
    a: &MetricSample,
    b: &MetricSample,
    region: Region,
) -> Result<Evidence, NoEvidence> {
    let x = a.mean();
    let y = b.mean();
    let n = a.values.len().min(b.values.len());
    let can_be_judged = a.can_be_judged() && b.can_be_judged();
    let log = match (x, y) {
        (x, y) if !(x >= 0.0 && y >= 0.0) || x.is_infinite() && y.is_infinite() => {
            return Err(NoEvidence::Undefined);
        }
        // 0 is as much as 0, whatever the factor, and has no ratio to it.
        (0.0, 0.0) if can_be_judged => {
            return Ok(Evidence { n, ..Evidence::certain(f64::NAN, true) });
        }
        (0.0, 0.0) => 0.0,
        (x, y) if x == 0.0 || y.is_infinite() => f64::NEG_INFINITY,
        (x, y) if y == 0.0 || x.is_infinite() => f64::INFINITY,
        (x, y) => libm::log(x / y),
    };
    if !can_be_judged {
        return Ok(Evidence::undecided(log, n));
    }
    if a.unresolved.is_some() || b.unresolved.is_some() {
        // A mean is infinite because runs diverged, and stays so.
        let are_finite = x.is_finite() && y.is_finite();
        let none = if are_finite { NoEvidence::Unresolved } else { NoEvidence::Undefined };
        return unresolved_ratio(a, b, region).ok_or(none);
    }
    if log.is_infinite() {
        return Ok(Evidence { n, ..Evidence::exact(log, region) });
    }
    log_combination(&[(1.0, a), (-1.0, b)], region)
}

/// Evidence that log(mean a / mean b) lies in a region, where a or b is the norm of a mean that may be 0
/// ([`MetricSample::unresolved`]). `None` if both are, or if the other one may be 0 or is infinite.
fn unresolved_ratio(a: &MetricSample, b: &MetricSample, region: Region) -> Option<Evidence> {
    match (&a.unresolved, &b.unresolved) {
        (Some(vectors), None) => Some(Evidence::from_norm(vectors, &b.unit()?, region)),
        (None, Some(vectors)) => {
            let opposite = (-region.1, -region.0);
            let found = Evidence::from_norm(vectors, &a.unit()?, opposite);
            let (low, high) = found.interval;
            let estimate = -found.estimate;
            let interval = (-high, -low);
            Some(Evidence { estimate, interval, region, ..found })
        }
        _ => None,
    }
}

/// Evidence that Σ w_j log E x_j lies in a region, from pairs of a weight w_j and a sample: a slope or a ratio. Samples
/// are paired: value i of each is of the run or the instance with the same number. From several samples over several
/// instances it is evidence on Σ w_j E log x_j, which is about a typical instance.
///
/// # Errors
/// Why there is none: a mean is not finite or not above 0, or may be 0.
pub fn log_combination(
    samples: &[(f64, &MetricSample)],
    region: Region,
) -> Result<Evidence, NoEvidence> {
    let means: Vec<f64> = samples.iter().map(|(_, sample)| sample.mean()).collect();
    if !means.iter().all(|m| *m > 0.0 && m.is_finite()) {
        return Err(NoEvidence::Undefined);
    }
    if samples.iter().any(|(_, sample)| sample.unresolved.is_some()) {
        return Err(NoEvidence::Unresolved);
    }
    let logs = samples.iter().zip(&means).map(|((w, x), m)| (x.fixed, w * libm::log(*m)));
    let (fixed, random): (Vec<_>, Vec<_>) = logs.partition(|(is_fixed, _)| *is_fixed);
    // What is not random shifts the estimate and its limits.
    let offset: f64 = fixed.iter().map(|(_, log)| log).sum();
    if random.is_empty() {
        return Ok(Evidence::exact(offset, widened(region)));
    }
    let of_random = samples.iter().filter(|(_, sample)| !sample.fixed);
    let points: Vec<(f64, &[f64])> = of_random.map(|(w, x)| (*w, &x.values[..])).collect();
    let over_instances = points.len() > 1 && samples.iter().any(|(_, x)| x.of_instances);
    let known =
        if over_instances { LogMeans::over_instances(&points) } else { LogMeans::new(&points) };
    let changes: Vec<(f64, &[f64])> =
        samples.iter().map(|(w, sample)| (*w, &sample.selection_changes[..])).collect();
    match known.map(|known| known.with_selection_error(selection_error(&changes))) {
        Some(known) => Ok(Evidence::from_log_means(&known.shifted(offset), region)),
        None => {
            let estimate = offset + random.iter().map(|(_, log)| log).sum::<f64>();
            let n = points.iter().map(|(_, x)| x.len()).min().unwrap_or(0);
            Ok(Evidence::undecided(estimate, n))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::runs::Runs;
    use crate::stats::verdict::Verdict;
    use crate::{simulated, wrong};

    /// A norm of 1 of a mean that may be 0.
    fn unresolved() -> MetricSample {
        let vectors = vec![vec![3.0, 0.0], vec![-1.0, 0.0]];
        MetricSample {
            values: vec![3.0, -1.0],
            fixed: false,
            unresolved: Some(vectors),
            ..MetricSample::exact(1.0)
        }
    }

    /// More replicates may resolve two norms, and leave means infinite that are.
    #[test]
    fn what_more_replicates_may_change_is_told_apart() {
        let ratio = |a: &MetricSample, b: &MetricSample| {
            log_ratio(a, b, (f64::NEG_INFINITY, 0.0)).map(|evidence| evidence.n)
        };
        let infinite = MetricSample::exact(f64::INFINITY);
        assert_eq!(ratio(&unresolved(), &unresolved()), Err(NoEvidence::Unresolved));
        assert_eq!(ratio(&unresolved(), &infinite), Err(NoEvidence::Undefined));
        assert_eq!(ratio(&infinite, &infinite), Err(NoEvidence::Undefined));
        assert_eq!(ratio(&unresolved(), &MetricSample::exact(1.0)), Ok(2));
        let one = MetricSample::exact(1.0);
        let slope = |a: &MetricSample| log_combination(&[(1.0, a), (-1.0, &one)], (0.0, 1.0));
        assert_eq!(slope(&unresolved()), Err(NoEvidence::Unresolved));
        assert_eq!(slope(&MetricSample::exact(0.0)), Err(NoEvidence::Undefined));
    }

    /// An exact oracle does not make a sample over drawn instances a number that is not random.
    #[test]
    fn a_sample_over_instances_has_an_error() {
        let keys = "seed = 5\noracle = \"exact\"\ninstances = 2";
        let plan = simulated::plan(wrong::manifest(1, "4").replace("seed = 5", keys));
        let cell = simulated::result(&plan.cells[0], Runs::default());
        let sample = MetricSample::new(&cell, Quantity::SqError, vec![1.0, 3.0]);
        let limit = MetricSample::exact(2.1);
        let below = log_ratio(&sample, &limit, (f64::NEG_INFINITY, 0.0)).unwrap();
        assert_eq!((below.alone(), below.n), (Verdict::Inconclusive, 2));
        assert!(below.error > 0.0, "{}", below.error);
    }
}
