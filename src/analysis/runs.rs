//! The runs of a cell in memory: their final values, and the columns of their traces that a
//! figure draws or a claim tests. Other columns are dropped, so that the memory of a cell does not
//! grow with its number of rounds.
//!
//! *Invariant*: which columns are in memory depends on the manifest alone, and their numbers have
//! the bits that were read.

use crate::stats::mean;
use driftbench_core::federated::Cost;
use driftbench_core::kernel::dot;
use driftbench_runner::manifest::{Prices, Quantity, TimeAverage};
use driftbench_runner::trace::{Outcome, Trace};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What is needed of a cell's traces beside the final values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceNeeds {
    /// Quantities round by round.
    pub along: BTreeSet<Quantity>,
    /// Averages over rounds, beside the bias and the covariance.
    pub averages: BTreeSet<TimeAverage>,
}

/// The averages of a run over its rounds.
type Averages = Vec<(TimeAverage, Vec<f64>)>;

/// The runs of a cell.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Runs.
    pub count: usize,
    /// Runs that diverged.
    pub diverged: usize,
    /// The runs on each instance, of which every sample has the mean: 1 where each run counts by
    /// itself, because all have one instance, or each its own.
    on_each: usize,
    /// The largest ‖θ_0 − θ*‖²; 0 if it is not known.
    pub start: f64,
    /// The quantities that all runs have at the end, one bit each in their order; none if a run
    /// diverged.
    known: u32,
    /// Their final values, quantity by quantity, a sample each.
    ends: Box<[f64]>,
    /// ‖θ_T − θ*‖² per run, where some diverged.
    errors: Box<[Option<f64>]>,
    /// ‖θ_T − θ*‖² per run, where the sample has means over several and none diverged.
    single: Box<[f64]>,
    averages: Box<[Averages]>,
    /// One trace per run with the columns that are needed; empty if none is.
    pub along: Vec<Trace>,
}

impl Runs {
    /// Drops from traces what is not needed. Where there are several instances, with `on_each` runs
    /// each, samples have a number per instance: runs on one instance are not independent.
    pub fn new(traces: Vec<Trace>, on_each: usize, needs: &TraceNeeds, prices: &Prices) -> Self {
        let diverged = traces.iter().filter(|t| t.outcome == Outcome::Diverged).count();
        let starts = traces.iter().filter_map(|t| t.sq_error.first());
        let (mut known, mut ends) = (0, Vec::new());
        for quantity in Quantity::ALL.iter().filter(|q| q.average().is_none() && diverged == 0) {
            let last = |t: &Trace| column(t, *quantity, prices).last().copied();
            if let Some(values) = traces.iter().map(last).collect::<Option<Vec<f64>>>() {
                known |= bit(*quantity);
                ends.extend(means(&values, on_each));
            }
        }
        let errors = match diverged {
            0 => Box::default(),
            _ => traces.iter().map(Trace::final_error).collect(),
        };
        let mut runs = Self {
            count: traces.len(),
            diverged,
            on_each,
            start: starts.copied().fold(0.0, f64::max),
            known,
            ends: ends.into(),
            errors,
            single: Box::default(),
            averages: Box::default(),
            along: Vec::new(),
        };
        if on_each > 1 && diverged == 0 {
            runs.single = traces.iter().filter_map(Trace::final_error).collect();
        }
        if traces.iter().any(|t| !t.averages.is_empty()) {
            let all = traces.chunks(on_each).map(|some| mean_averages(some, needs));
            runs.averages = all.collect();
        }
        if !needs.along.is_empty() {
            runs.along = traces.into_iter().map(|t| along(t, &needs.along)).collect();
        }
        runs
    }

    /// ‖θ_T − θ*‖² per run; `None` where it diverged.
    pub fn errors(&self) -> Vec<Option<f64>> {
        match self.diverged {
            0 if self.on_each > 1 => self.single.iter().copied().map(Some).collect(),
            0 => self.finals(Quantity::SqError).into_iter().flatten().map(Some).collect(),
            _ => self.errors.to_vec(),
        }
    }

    /// The size of samples: the number of instances if there are several, else of runs.
    pub fn sample_size(&self) -> usize {
        self.count / self.on_each.max(1)
    }

    /// ‖θ_T − θ*‖² of the runs on each instance; `None` if a run diverged.
    pub fn by_instance(&self) -> Option<Vec<&[f64]>> {
        match self.on_each {
            _ if self.diverged > 0 => None,
            1 => {
                let bit = bit(Quantity::SqError);
                let before = (self.known & (bit - 1)).count_ones() as usize * self.count;
                let ends = (self.known & bit != 0).then(|| &self.ends[before..before + self.count]);
                ends.map(|ends| ends.chunks(1).collect())
            }
            size => Some(self.single.chunks(size).collect()),
        }
    }

    /// A quantity at the last round, a sample; `None` if a run diverged or the quantity is not
    /// recorded.
    pub fn finals(&self, quantity: Quantity) -> Option<Vec<f64>> {
        if self.diverged > 0 {
            return None;
        }
        if let Some(average) = quantity.average() {
            return self.along_mean(quantity, average);
        }
        let bit = bit(quantity);
        let size = self.sample_size();
        let before = (self.known & (bit - 1)).count_ones() as usize * size;
        (self.known & bit != 0).then(|| self.ends[before..before + size].to_vec())
    }

    /// A quantity along the traces in memory, those on one instance averaged; empty where it is not
    /// recorded. An instance has as many rows as the run on it that diverged first.
    pub fn columns(&self, quantity: Quantity, prices: &Prices) -> Vec<Cow<'_, [f64]>> {
        let one = |trace| column(trace, quantity, prices);
        if self.on_each <= 1 {
            return self.along.iter().map(one).collect();
        }
        let of_instance = |some: &[Trace]| {
            let all: Vec<Cow<'_, [f64]>> =
                some.iter().map(|t| column(t, quantity, prices)).collect();
            let rows = all.iter().map(|column| column.len()).min().unwrap_or(0);
            let row = |i: usize| all.iter().map(|column| column[i]).sum::<f64>() / all.len() as f64;
            Cow::Owned((0..rows).map(row).collect())
        };
        self.along.chunks(self.on_each).map(of_instance).collect()
    }

    /// The recorded rounds of a number of the sample, if traces are in memory: those of the column
    /// at the same place.
    pub fn rounds(&self, place: usize) -> Option<&[u64]> {
        self.along.get(place * self.on_each.max(1)).map(|trace| &trace.round[..])
    }

    /// An average over the rounds, a vector per number of a sample.
    pub fn averages(&self, what: TimeAverage) -> Option<Vec<&[f64]>> {
        if self.averages.is_empty() {
            return (self.count == 0).then(Vec::new);
        }
        let vectors = self.averages.iter().map(|all| all.iter().find(|(a, _)| *a == what));
        vectors.map(|found| found.map(|(_, vector)| &vector[..])).collect()
    }

    /// One number per replicate: the bias along the direction of the mean bias, so that the mean
    /// is the norm of the mean bias; or the trace of the covariance.
    fn along_mean(&self, quantity: Quantity, average: TimeAverage) -> Option<Vec<f64>> {
        let sample = self.averages(average)?;
        let size = sample.first()?.len();
        let d = libm::sqrt(size as f64) as usize;
        if quantity == Quantity::Variance {
            let trace = |x: &&[f64]| (0..d).map(|i| x[i * d + i]).sum();
            return Some(sample.iter().map(trace).collect());
        }
        let n = sample.len() as f64;
        let mean: Vec<f64> =
            (0..size).map(|i| sample.iter().map(|x| x[i]).sum::<f64>() / n).collect();
        let norm = libm::sqrt(dot(&mean, &mean));
        Some(sample.iter().map(|x| dot(x, &mean) / norm).collect())
    }
}

/// The mean of each `size` successive numbers.
fn means(values: &[f64], size: usize) -> impl Iterator<Item = f64> {
    values.chunks(size.max(1)).map(|some| if some.len() == 1 { some[0] } else { mean(some) })
}

fn bit(quantity: Quantity) -> u32 {
    1 << quantity as u32
}

/// The averages of a trace that are needed.
fn averages(trace: &Trace, needs: &TraceNeeds) -> Averages {
    let always = [TimeAverage::Bias, TimeAverage::Covariance];
    let all = trace.averages.iter();
    all.filter(|(a, _)| always.contains(a) || needs.averages.contains(a)).cloned().collect()
}

/// The averages of the runs on one instance, averaged: those that all of them have.
fn mean_averages(runs: &[Trace], needs: &TraceNeeds) -> Averages {
    let Some((first, others)) = runs.split_first() else { return Averages::new() };
    let mut sums = averages(first, needs);
    for other in others {
        let other = averages(other, needs);
        sums.retain_mut(|(name, sum)| match other.iter().find(|(n, _)| n == name) {
            Some((_, values)) => {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                true
            }
            None => false,
        });
    }
    if runs.len() > 1 {
        let n = runs.len() as f64;
        sums.iter_mut().flat_map(|(_, sum)| sum).for_each(|sum| *sum /= n);
    }
    sums
}

/// A trace with these columns alone.
fn along(trace: Trace, needed: &BTreeSet<Quantity>) -> Trace {
    let is_needed = |q: Quantity| needed.contains(&q);
    let only = |column: Vec<f64>, q: Quantity| if is_needed(q) { column } else { Vec::new() };
    let further = trace.further.into_iter().filter(|(metric, _)| is_needed(metric.quantity()));
    Trace {
        round: trace.round,
        cost: if COSTS.into_iter().any(is_needed) { trace.cost } else { Vec::new() },
        sq_error: only(trace.sq_error, Quantity::SqError),
        sq_error_limit: only(trace.sq_error_limit, Quantity::SqErrorLimit),
        further: further.collect(),
        theta: Vec::new(),
        averages: Vec::new(),
        outcome: trace.outcome,
    }
}

/// The costs of a run.
pub const COSTS: [Quantity; 6] = [
    Quantity::Communications,
    Quantity::LocalSteps,
    Quantity::OracleCalls,
    Quantity::VectorsSent,
    Quantity::Bytes,
    Quantity::Seconds,
];

/// A quantity along a trace; empty if it is not recorded.
pub fn column<'t>(trace: &'t Trace, quantity: Quantity, prices: &Prices) -> Cow<'t, [f64]> {
    let cost = |of: &dyn Fn(&Cost) -> f64| trace.cost.iter().map(of).collect::<Vec<_>>().into();
    match quantity {
        Quantity::SqError => (&trace.sq_error[..]).into(),
        Quantity::SqErrorLimit => (&trace.sq_error_limit[..]).into(),
        Quantity::Communications => cost(&|c| c.communications as f64),
        Quantity::LocalSteps => cost(&|c| c.local_steps as f64),
        Quantity::OracleCalls => cost(&|c| c.oracle_calls as f64),
        Quantity::VectorsSent => cost(&|c| c.vectors_sent as f64),
        Quantity::Bytes => cost(&|c| c.bytes_sent as f64),
        Quantity::Seconds => cost(&|c| {
            let Prices { latency, bandwidth, call } = *prices;
            let bytes = bandwidth.map_or(0.0, |rate| c.bytes_sent as f64 / rate);
            latency * c.communications as f64 + bytes + call * c.sequential_calls as f64
        }),
        other => {
            let mut further = trace.further.iter();
            let found = further.find(|(metric, _)| Some(*metric) == other.metric());
            found.map_or(Cow::Borrowed(&[][..]), |(_, values)| values[..].into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driftbench_runner::manifest::Metric;

    fn trace(outcome: Outcome) -> Trace {
        let cost = |c: u64| Cost { communications: c, local_steps: 5 * c, ..Cost::default() };
        Trace {
            round: vec![0, 1, 7],
            cost: [0, 1, 7].map(cost).to_vec(),
            sq_error: vec![4.0, 2.0, 0.1 + 0.2],
            further: vec![(Metric::Lyapunov, vec![9.0, 8.0, 7.0])],
            theta: vec![1.0; 6],
            averages: vec![
                (TimeAverage::Bias, vec![3.0, 4.0]),
                (TimeAverage::CrossCovariance, vec![1.0; 8]),
            ],
            outcome,
            ..Trace::default()
        }
    }

    #[test]
    fn ends_are_those_of_the_traces() {
        let traces = vec![trace(Outcome::Finished), trace(Outcome::Finished)];
        let prices = Prices::default();
        let runs = Runs::new(traces.clone(), 1, &TraceNeeds::default(), &prices);
        assert!(runs.along.is_empty());
        assert_eq!((runs.count, runs.diverged, runs.start), (2, 0, 4.0));
        for quantity in Quantity::ALL.iter().filter(|q| q.average().is_none()) {
            let last = |t: &Trace| column(t, *quantity, &prices).last().copied();
            let all: Option<Vec<f64>> = traces.iter().map(last).collect();
            assert_eq!(runs.finals(*quantity), all, "{quantity:?}");
        }
        assert_eq!(runs.finals(Quantity::Bias), Some(vec![5.0, 5.0]));
        assert_eq!(runs.averages(TimeAverage::CrossCovariance), None);
        assert_eq!(runs.errors(), [Some(0.1 + 0.2); 2]);
    }

    #[test]
    fn only_needed_columns_stay() {
        let needs = TraceNeeds {
            along: [Quantity::Lyapunov].into(),
            averages: [TimeAverage::CrossCovariance].into(),
        };
        let runs = Runs::new(vec![trace(Outcome::Finished)], 1, &needs, &Prices::default());
        let [trace] = &runs.along[..] else { panic!("one run") };
        assert_eq!((trace.rows(), trace.sq_error.len(), trace.cost.len()), (3, 0, 0));
        assert_eq!(trace.further, [(Metric::Lyapunov, vec![9.0, 8.0, 7.0])]);
        assert_eq!(runs.averages(TimeAverage::CrossCovariance).map(|a| a.len()), Some(1));
    }

    #[test]
    fn a_run_that_diverged_leaves_no_mean_and_keeps_the_others() {
        let traces = vec![trace(Outcome::Finished), trace(Outcome::Diverged)];
        let runs = Runs::new(traces, 1, &TraceNeeds::default(), &Prices::default());
        assert_eq!(runs.finals(Quantity::SqError), None);
        assert_eq!(runs.errors(), [Some(0.1 + 0.2), None]);
    }
}
