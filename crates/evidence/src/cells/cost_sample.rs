//! The values of a quantity in the runs of a cell: where they have paid a cost or come to a target, and along a trace.

use crate::stats::mean;
use exactfed_runner::manifest::{AtCost, ComparedAt, Prices, Quantity, Until};
use exactfed_runner::trace::{Outcome, Trace};
use std::borrow::Cow;

/// Why a quantity of a cell's runs has no sample at a cost, at a target or at the last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSample {
    /// A run had diverged by then.
    Diverged,
    /// A run ends before it has paid the cost.
    Ended,
    /// A run has not reached the target, so that its cost until then is larger than what it has paid.
    Unreached,
    /// The quantity, or the unit of the cost, is not recorded.
    Unrecorded,
}

/// A quantity of a cell's runs where they are compared: in each run, at the last recorded round up to which it has paid
/// at most a cost, or at the first one at which it has come to a target.
#[derive(Clone, Debug, PartialEq)]
pub struct CostSample {
    /// The sample: the value of each run, or the mean of the runs on each of several instances; infinite where a run
    /// had diverged before.
    pub values: Vec<f64>,
    /// The value of each run, infinite where it had diverged before.
    pub single: Vec<f64>,
    /// The row of the recorded round, if it is the same in all runs.
    pub row: Option<usize>,
}

impl CostSample {
    /// The values of a quantity in these runs, one trace for each, at this cost or target. Each value of the sample is
    /// the mean of `runs_per_value` successive runs: those on one instance.
    ///
    /// # Errors
    /// If a run ends before the cost or the target is reached, or the quantity is not recorded.
    pub fn new(
        traces: &[Trace],
        runs_per_value: usize,
        at: ComparedAt,
        quantity: Quantity,
        prices: &Prices,
    ) -> Result<Self, NoSample> {
        // The row of each run; none for a run that diverged before.
        let rows = traces
            .iter()
            .map(|trace| match at {
                ComparedAt::Target { until } => row_at_target(trace, until),
                ComparedAt::Cost(at) => row_at(trace, at, prices),
            })
            .collect::<Result<Vec<Option<usize>>, NoSample>>()?;
        let mut single = Vec::with_capacity(traces.len());
        for (trace, row) in traces.iter().zip(&rows) {
            let value = match row {
                Some(row) => column(trace, quantity, prices).get(*row).copied(),
                None => Some(f64::INFINITY),
            };
            single.push(value.ok_or(NoSample::Unrecorded)?);
        }
        let first = rows.first().copied().flatten();
        let row = first.filter(|_| rows.iter().all(|row| *row == first));
        Ok(Self { values: means(&single, runs_per_value).collect(), single, row })
    }
}

/// The row of the last recorded round up to which a run has paid at most this, which of a run that has ended at its
/// target is the last one for all larger costs; `None` if the run diverged before it had paid more.
///
/// # Errors
/// If the run ends although it could have paid for another round, or its costs are not recorded.
fn row_at(trace: &Trace, at: AtCost, prices: &Prices) -> Result<Option<usize>, NoSample> {
    let AtCost { unit, most } = at;
    let costs = column(trace, unit, prices);
    let affordable = costs.partition_point(|cost| *cost <= most);
    if affordable < costs.len() || trace.outcome == Outcome::Diverged {
        return Ok(affordable.checked_sub(1).filter(|_| affordable < costs.len()));
    }
    let (Some(last), Some(rounds)) = (costs.last(), trace.round.last()) else {
        return Err(NoSample::Unrecorded);
    };
    if trace.outcome == Outcome::Reached {
        return Ok(Some(affordable - 1));
    }
    // A run of another round would still cost at most this, in the mean of its rounds.
    let next = last + last / (*rounds).max(1) as f64;
    if *last < most && next <= most { Err(NoSample::Ended) } else { Ok(Some(affordable - 1)) }
}

/// The row of the first recorded round at which a run has come to a target; `None` if the run diverged before.
///
/// # Errors
/// If the run does not come to the target, or its metric is not recorded.
fn row_at_target(trace: &Trace, until: Until) -> Result<Option<usize>, NoSample> {
    let values = trace.measured(until.metric);
    let row = values.iter().position(|value| until.is_met(*value));
    match row {
        None if values.is_empty() => Err(NoSample::Unrecorded),
        None if trace.outcome != Outcome::Diverged => Err(NoSample::Unreached),
        row => Ok(row),
    }
}

/// The value of a quantity in a run at the first recorded round at which it has come to a target; `None` if it never
/// does, or the quantity is not recorded.
pub fn value_at_target(
    trace: &Trace,
    until: Until,
    quantity: Quantity,
    prices: &Prices,
) -> Option<f64> {
    let row = row_at_target(trace, until).ok()??;
    column(trace, quantity, prices).get(row).copied()
}

/// The values of a quantity at the recorded rounds of a run; empty if it is not recorded. Costs are computed, those in
/// seconds with these prices.
pub fn column<'t>(trace: &'t Trace, quantity: Quantity, prices: &Prices) -> Cow<'t, [f64]> {
    match trace.measured(quantity) {
        [] => trace.cost.iter().map_while(|cost| quantity.of_cost(cost, prices)).collect(),
        measured => measured.into(),
    }
}

/// The mean of each `size` successive values, which are the values of the runs on one instance. With a size of 1, the
/// values with the bits that they have.
pub fn means(values: &[f64], size: usize) -> impl Iterator<Item = f64> {
    values.chunks(size.max(1)).map(|some| if some.len() == 1 { some[0] } else { mean(some) })
}
