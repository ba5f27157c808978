//! The runs of a cell in memory: their final values, and the columns of their traces that a
//! figure draws or a claim tests. Other columns are dropped, so that the memory of a cell does not
//! grow with its number of rounds; of the costs at which runs are compared, one value per run stays.
//!
//! *Invariant*: which columns are in memory depends on the manifest alone, and their numbers have
//! the bits that were read.

use crate::cells::averages::{Averages, Centre, Centres, averages, mean_averages, vector};
use crate::cells::cost_sample::{CostSample, NoSample, column, value_at_target};
use crate::cells::final_values::{FinalValues, FinishedRuns};
use exactfed_core::kernel::dot;
use exactfed_runner::manifest::{ComparedAt, Prices, Quantity, TimeAverage};
use exactfed_runner::plan::{Cell, RunKeys};
use exactfed_runner::trace::{Outcome, Trace, hold_last_values};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// What figures and claims need of a cell's traces in addition to the final values, which are always kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceNeeds {
    /// Quantities of which the whole columns are kept, a value for each recorded round.
    pub along: BTreeSet<Quantity>,
    /// Averages over rounds that are kept in addition to the bias and the covariance, which are always kept.
    pub averages: BTreeSet<TimeAverage>,
    /// Quantities of which the value at a cost or at a target is kept.
    pub at: Vec<(ComparedAt, Quantity)>,
}

impl TraceNeeds {
    /// Whether only the final values are needed.
    fn is_none(&self) -> bool {
        self.along.is_empty() && self.averages.is_empty() && self.at.is_empty()
    }

    /// Adds the values of these quantities at a cost or a target; adds nothing without one, since final values are
    /// always kept.
    pub fn add_at(
        &mut self,
        at: Option<ComparedAt>,
        quantities: impl IntoIterator<Item = Quantity>,
    ) {
        let Some(at) = at else { return };
        for quantity in quantities {
            if !self.at.contains(&(at, quantity)) {
                self.at.push((at, quantity));
            }
        }
    }
}

/// Which successive runs of a cell are on one instance of the problem, and whether samples have their mean as one
/// value.
#[derive(Clone, Copy, Debug)]
pub struct Grouping {
    /// How many runs one value of a sample is the mean of: the replicates on an instance if the manifest asks for
    /// several `instances`, and else 1.
    runs_per_value: usize,
    /// How many successive runs are on one instance; `usize::MAX` if all are.
    on_instance: usize,
}

impl Grouping {
    /// Each run gives one value of a sample, and all are on the same instance.
    pub const ONE_INSTANCE: Self = Self { runs_per_value: 1, on_instance: usize::MAX };

    /// The grouping that a cell's keys `instances`, `replicates` and `instance` say.
    pub fn new(cell: &Cell) -> Self {
        let RunKeys { instance, instances, replicates, .. } = &*cell.identity.keys;
        if *instances > 1 {
            let replicates = *replicates as usize;
            return Self { runs_per_value: replicates, on_instance: replicates };
        }
        if instance.is_fixed() {
            return Self::ONE_INSTANCE;
        }
        // Each replicate has an instance of its own.
        Self { runs_per_value: 1, on_instance: 1 }
    }
}

/// The runs of a cell, with what figures, claims and tables need of their traces. A *sample* of a quantity has one
/// value for each run, or, if the cell has several instances, for each instance the mean of the runs on it.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The number of runs.
    pub count: usize,
    /// The number of runs that diverged.
    pub diverged: usize,
    /// The number of runs that ended at the target of the budget.
    pub reached: usize,
    /// How many successive runs each value of a sample is the mean of: the runs on an instance if the cell has several
    /// instances, and else 1 (also where each run has an instance of its own).
    runs_per_value: usize,
    /// The largest ‖θ_0 − θ*‖² of the runs; 0 if it is not recorded.
    pub start: f64,
    /// The samples at the last round; none if a run diverged.
    finals: FinalValues,
    /// What only some cells have; `None` if this one has nothing of it.
    more: Option<Box<MoreRuns>>,
}

/// What few cells of a large grid have. It is boxed, so that the other cells need no room for it.
#[derive(Clone, Debug, Default)]
struct MoreRuns {
    /// The final values of the runs that finished, if others diverged.
    finished: Option<FinishedRuns>,
    /// The final values of the single runs, where samples have means over several: `count` numbers for each quantity of
    /// which [`FinalValues`] has a sample.
    single: Box<[f64]>,
    /// The averages over rounds: an entry for each value of a sample.
    averages: Box<[Averages]>,
    /// The points around which those averages are taken that are second moments.
    centres: Centres,
    /// The samples at costs and targets that [`TraceNeeds::at`] names.
    at: Vec<ComparedSample>,
    /// One trace for each run, with the columns that [`TraceNeeds::along`] names; empty if it names none.
    along: Vec<Trace>,
    /// Prices of the simulated wall clock.
    prices: Prices,
}

/// The values of a quantity at a cost or a target, or why it has none there.
#[derive(Clone, Debug)]
struct ComparedSample {
    /// The cost or the target.
    at: ComparedAt,
    /// The quantity that is measured there.
    quantity: Quantity,
    /// Its values in the runs.
    sample: Result<CostSample, NoSample>,
    /// At a target, its value in each run, `None` where the run does not reach the target; empty at a cost.
    by_run: Vec<Option<f64>>,
}

impl Runs {
    /// Keeps of traces, one for each run, the final values and what `needs` names, and drops the rest. Where there are
    /// several instances, samples have a value per instance: runs on one instance are not independent. The prices give
    /// the cost in seconds of the simulated wall clock.
    pub fn new(
        mut traces: Vec<Trace>,
        Grouping { runs_per_value, on_instance }: Grouping,
        needs: &TraceNeeds,
        prices: &Prices,
    ) -> Self {
        let reached = traces.iter().filter(|t| t.outcome == Outcome::Reached).count();
        hold_last_values(&mut traces);
        let diverged = traces.iter().filter(|t| t.outcome == Outcome::Diverged).count();
        let starts = traces.iter().filter_map(|t| t.sq_error.first());
        let (finals, single) = if diverged == 0 {
            FinalValues::new(&traces.iter().collect::<Vec<_>>(), runs_per_value, prices)
        } else {
            (FinalValues::default(), Vec::new())
        };
        let mut runs = Self {
            count: traces.len(),
            diverged,
            reached,
            runs_per_value,
            start: starts.copied().fold(0.0, f64::max),
            finals,
            more: None,
        };
        let has_averages = traces.iter().any(|t| !t.averages.is_empty());
        if diverged == 0 && runs_per_value <= 1 && !has_averages && needs.is_none() {
            return runs;
        }
        let mut more = MoreRuns { single: single.into(), prices: *prices, ..MoreRuns::default() };
        if diverged > 0 {
            more.finished = Some(FinishedRuns::new(&traces, prices));
        }
        for (at, quantity) in needs.at.iter().copied() {
            let sample = CostSample::new(&traces, runs_per_value, at, quantity, prices);
            let by_run = at.target().map_or(Vec::new(), |until| {
                traces.iter().map(|trace| value_at_target(trace, until, quantity, prices)).collect()
            });
            more.at.push(ComparedSample { at, quantity, sample, by_run });
        }
        if has_averages {
            let (each, centres) = averages(&traces, &needs.averages, on_instance);
            more.averages = each.chunks(runs_per_value).map(mean_averages).collect();
            more.centres = centres;
        }
        if !needs.along.is_empty() {
            more.along = traces.into_iter().map(|t| keep_columns(t, &needs.along)).collect();
        }
        runs.more = Some(Box::new(more));
        runs
    }

    /// Puts the final values of many cells into one list, and holds once what several cells have in common; `known` has
    /// what earlier calls have seen. A large grid then has few blocks in memory, which the allocator can give back.
    pub fn share(cells: &mut [&mut Self], known: &mut HashSet<Arc<[u64]>>) {
        let mut finals: Vec<&mut FinalValues> = Vec::with_capacity(cells.len());
        finals.extend(cells.iter_mut().map(|runs| &mut runs.finals));
        FinalValues::share(&mut finals, known);
    }

    /// One trace for each run, with the columns that [`TraceNeeds::along`] named; empty if it named none.
    pub fn along(&self) -> &[Trace] {
        self.more.as_ref().map_or(&[], |more| &more.along)
    }

    /// The final value of a quantity in each single run, `None` where the run diverged. Empty if the quantity is not
    /// recorded, or if it is an average over rounds and a run diverged: the bias of a run is along the mean of all.
    /// Where samples have a value per instance, it is also empty for any average, and if a run ends with a value that
    /// is not finite.
    pub fn finals_by_run(&self, quantity: Quantity) -> Vec<Option<f64>> {
        if self.diverged > 0 {
            let finished = self.more.as_ref().and_then(|more| more.finished.as_ref());
            return finished.map_or(Vec::new(), |finished| finished.finals_by_run(quantity));
        }
        let finals = if self.runs_per_value > 1 {
            self.by_instance(quantity, None).map(|all| all.concat())
        } else {
            self.finals(quantity)
        };
        finals.into_iter().flatten().map(Some).collect()
    }

    /// The number of values in a sample: the number of instances if there are several, else of runs.
    pub fn sample_size(&self) -> usize {
        self.count / self.runs_per_value.max(1)
    }

    /// The values of a quantity in the single runs, at a cost or else at the last round: a list for each value of a
    /// sample, with the runs on that instance, or with one run where each run gives a value of its own. `None` if a run
    /// diverged, if a value is not finite, or if the quantity is not recorded or is an average over rounds.
    pub fn by_instance(&self, quantity: Quantity, at: Option<ComparedAt>) -> Option<Vec<Vec<f64>>> {
        let all = match (at, &self.more) {
            (Some(at), _) => self.sample_at(quantity, at).ok()?.single.clone(),
            (None, _) if self.diverged > 0 || quantity.average().is_some() => return None,
            (None, Some(more)) if self.runs_per_value > 1 => {
                self.finals.select(&more.single, quantity, self.count)?
            }
            (None, _) => self.finals.sample(quantity, self.count)?,
        };
        let finite = all.iter().all(|x| x.is_finite());
        finite.then(|| all.chunks(self.runs_per_value.max(1)).map(<[f64]>::to_vec).collect())
    }

    /// The sample of a quantity at the last round, or of an average over rounds; `None` if a run diverged or the
    /// quantity is not recorded.
    pub fn finals(&self, quantity: Quantity) -> Option<Vec<f64>> {
        if self.diverged > 0 {
            return None;
        }
        if let Some(average) = quantity.average() {
            return self.sample_of_average(quantity, average);
        }
        self.finals.sample(quantity, self.sample_size())
    }

    /// A quantity at each recorded round, if [`TraceNeeds::along`] named it: a column for each value of a sample, the
    /// mean of the runs on one instance; a column is empty where the quantity is not recorded. An instance has as many
    /// rows as the run on it that diverged first. No columns if no traces are in memory.
    pub fn columns(&self, quantity: Quantity) -> Vec<Cow<'_, [f64]>> {
        let Some(MoreRuns { along, prices, .. }) = self.more.as_deref() else { return Vec::new() };
        if self.runs_per_value <= 1 {
            return along.iter().map(|trace| column(trace, quantity, prices)).collect();
        }
        along
            .chunks(self.runs_per_value)
            .map(|on_instance| Cow::Owned(mean_column(on_instance, quantity, prices)))
            .collect()
    }

    /// The numbers of the rounds in the rows of the column at this place of [`Runs::columns`], from the first run on
    /// that instance, which may have more rows than the column; `None` if no traces are in memory.
    pub fn rounds(&self, place: usize) -> Option<&[u64]> {
        self.along().get(place * self.runs_per_value.max(1)).map(|trace| &trace.round[..])
    }

    /// The values of a quantity at a cost or a target, infinite for runs that diverged before.
    ///
    /// # Errors
    /// Why it has no values: at a target also that a run does not reach it. It has none either if [`TraceNeeds::at`]
    /// did not name it.
    pub fn sample_at(&self, quantity: Quantity, at: ComparedAt) -> Result<&CostSample, NoSample> {
        let known = self.compared_sample(quantity, at).ok_or(NoSample::Unrecorded)?;
        known.sample.as_ref().map_err(|why| *why)
    }

    /// The value of a quantity in each run at the first recorded round at which it has come to a target, `None` where
    /// it never does. Empty if [`TraceNeeds::at`] did not name it, or at a cost.
    pub fn values_at_target(&self, quantity: Quantity, at: ComparedAt) -> &[Option<f64>] {
        self.compared_sample(quantity, at).map_or(&[], |known| &known.by_run)
    }

    /// What is known of a quantity at a cost or a target; `None` if [`TraceNeeds::at`] did not name it.
    fn compared_sample(&self, quantity: Quantity, at: ComparedAt) -> Option<&ComparedSample> {
        let mut all = self.more.iter().flat_map(|more| &more.at);
        all.find(|known| known.at == at && known.quantity == quantity)
    }

    /// The sample of a quantity at a cost, or else at the last round.
    ///
    /// # Errors
    /// Why it has no such values: among others, a run diverged before.
    pub fn sample(&self, quantity: Quantity, at: Option<ComparedAt>) -> Result<Vec<f64>, NoSample> {
        let Some(at) = at else {
            if self.diverged > 0 {
                return Err(NoSample::Diverged);
            }
            return self.finals(quantity).ok_or(NoSample::Unrecorded);
        };
        let values = &self.sample_at(quantity, at)?.values;
        if values.contains(&f64::INFINITY) { Err(NoSample::Diverged) } else { Ok(values.clone()) }
    }

    /// An average over the rounds: a vector for each value of a sample, a matrix row by row. `None` if it is not
    /// recorded or not kept ([`TraceNeeds::averages`]), or if a run diverged; a cell without runs has no vectors.
    pub fn averages(&self, what: TimeAverage) -> Option<Vec<&[f64]>> {
        let all = self.more.as_ref().map_or(&[][..], |more| &more.averages);
        if all.is_empty() {
            return (self.count == 0).then(Vec::new);
        }
        all.iter().map(|all| vector(all, what)).collect()
    }

    /// The point around which an average is taken, which matters for second moments; `None` if it is not recorded.
    pub fn centre(&self, what: TimeAverage) -> Option<Centre> {
        let more = self.more.as_ref()?;
        let is_recorded = more.averages.iter().any(|all| vector(all, what).is_some());
        is_recorded.then(|| more.centres.centre(what))
    }

    /// The sample of a quantity that is a number made of an average over rounds: the trace of the covariance, or the
    /// bias along the direction of the mean bias, so that the mean of the sample is the norm of the mean bias. A mean
    /// bias of 0 has no direction; the biases are then along the first that is not 0, and all 0 if none is. `None` if
    /// the average is not recorded.
    fn sample_of_average(&self, quantity: Quantity, average: TimeAverage) -> Option<Vec<f64>> {
        let sample = self.averages(average)?;
        let size = sample.first()?.len();
        // A covariance is d · d numbers.
        let d = libm::sqrt(size as f64) as usize;
        if quantity == Quantity::Variance {
            let traces = sample.iter().map(|x| (0..d).map(|i| x[i * d + i]).sum());
            return Some(traces.collect());
        }
        let n = sample.len() as f64;
        let mean: Vec<f64> =
            (0..size).map(|i| sample.iter().map(|x| x[i]).sum::<f64>() / n).collect();
        let mut biases = std::iter::once(&mean[..]).chain(sample.iter().copied());
        let Some(along) = biases.find(|bias| dot(bias, bias) != 0.0) else {
            return Some(vec![0.0; sample.len()]);
        };
        let norm = libm::sqrt(dot(along, along));
        Some(sample.iter().map(|x| dot(x, along) / norm).collect())
    }
}

/// The mean of a quantity over the runs on one instance, a number for each recorded round that all of them have.
fn mean_column(runs: &[Trace], quantity: Quantity, prices: &Prices) -> Vec<f64> {
    let columns: Vec<Cow<'_, [f64]>> =
        runs.iter().map(|trace| column(trace, quantity, prices)).collect();
    let rows = columns.iter().map(|column| column.len()).min().unwrap_or(0);
    let n = columns.len() as f64;
    (0..rows).map(|row| columns.iter().map(|column| column[row]).sum::<f64>() / n).collect()
}

/// The trace with its rounds, its outcome and the columns of these quantities; all else is dropped. Cells may have
/// millions of rows, of which a figure draws few columns.
fn keep_columns(trace: Trace, needed: &BTreeSet<Quantity>) -> Trace {
    let mut kept = Trace { round: trace.round, outcome: trace.outcome, ..Trace::default() };
    // The costs of a round are one record, from which every cost is computed.
    if Quantity::COSTS.iter().any(|cost| needed.contains(cost)) {
        kept.cost = trace.cost;
    }
    if needed.contains(&Quantity::SqError) {
        kept.sq_error = trace.sq_error;
    }
    if needed.contains(&Quantity::SqErrorLimit) {
        kept.sq_error_limit = trace.sq_error_limit;
    }
    kept.further = trace.further;
    kept.further.retain(|(metric, _)| needed.contains(&metric.quantity()));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_core::federated::Cost;
    use exactfed_runner::manifest::{AtCost, Metric, Until};

    fn cost(communications: u64) -> Cost {
        Cost { communications, local_steps: 5 * communications, ..Cost::default() }
    }

    /// A trace in two dimensions with rows at rounds 0, 1 and 7, each round of which is a communication.
    fn trace(outcome: Outcome) -> Trace {
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

    /// The runs of a cell on one instance that have these traces.
    fn runs(traces: impl IntoIterator<Item = Trace>, needs: &TraceNeeds) -> Runs {
        let traces = traces.into_iter().collect();
        Runs::new(traces, Grouping::ONE_INSTANCE, needs, &Prices::default())
    }

    #[test]
    fn ends_are_those_of_the_traces() {
        let traces = vec![trace(Outcome::Finished), trace(Outcome::Finished)];
        let prices = Prices::default();
        let runs = runs(traces.clone(), &TraceNeeds::default());
        assert!(runs.along().is_empty());
        assert_eq!((runs.count, runs.diverged, runs.start), (2, 0, 4.0));
        for quantity in Quantity::ALL.iter().filter(|q| q.average().is_none()) {
            let last = |t: &Trace| column(t, *quantity, &prices).last().copied();
            let all: Option<Vec<f64>> = traces.iter().map(last).collect();
            assert_eq!(runs.finals(*quantity), all, "{quantity:?}");
        }
        assert_eq!(runs.finals(Quantity::Bias), Some(vec![5.0, 5.0]));
        assert_eq!(runs.averages(TimeAverage::CrossCovariance), None);
        assert_eq!(runs.finals_by_run(Quantity::SqError), [Some(0.1 + 0.2); 2]);
    }

    /// Runs that end with these biases.
    fn runs_with_biases(biases: &[[f64; 2]]) -> Runs {
        let mut traces = Vec::new();
        for bias in biases {
            let averages = vec![(TimeAverage::Bias, bias.to_vec())];
            traces.push(Trace { averages, ..trace(Outcome::Finished) });
        }
        runs(traces, &TraceNeeds::default())
    }

    #[test]
    fn a_mean_bias_of_zero_is_a_number() {
        let along = |biases: &[[f64; 2]]| runs_with_biases(biases).finals(Quantity::Bias);
        assert_eq!(along(&[[0.0, 0.0]; 2]), Some(vec![0.0, 0.0]));
        assert_eq!(along(&[[0.0, 0.0], [3.0, -4.0], [-3.0, 4.0]]), Some(vec![0.0, 5.0, -5.0]));
        assert_eq!(along(&[[3.0, 4.0], [3.0, 4.0]]), Some(vec![5.0, 5.0]));
    }

    /// Runs whose squared errors end at these numbers.
    fn runs_ending_at(ends: &[f64]) -> Runs {
        let mut traces = Vec::new();
        for end in ends {
            traces.push(Trace { sq_error: vec![4.0, 2.0, *end], ..trace(Outcome::Finished) });
        }
        runs(traces, &TraceNeeds::default())
    }

    /// The final samples of all quantities of cells, but those that are averages over rounds.
    fn finals(cells: &[Runs]) -> Vec<Option<Vec<f64>>> {
        let mut all = Vec::new();
        for runs in cells {
            let plain = Quantity::ALL.iter().filter(|q| q.average().is_none());
            all.extend(plain.map(|quantity| runs.finals(*quantity)));
        }
        all
    }

    #[test]
    fn what_cells_share_is_what_each_had() {
        let ends: [&[f64]; 4] = [&[1.0, 2.0], &[5.0, 5.0], &[], &[3.0, 4.0]];
        let mut all = ends.map(runs_ending_at);
        let before = finals(&all);
        let mut known = HashSet::new();
        Runs::share(&mut all.each_mut(), &mut known);
        assert_eq!(finals(&all), before);
        assert_eq!(all[3].finals(Quantity::SqError), Some(vec![3.0, 4.0]));
        assert!(all[0].finals.shares_constants(&all[3].finals));
        assert!(all[0].finals.shares_samples(&all[1].finals));
        assert_eq!(known.len(), 3);
    }

    #[test]
    fn only_needed_columns_stay() {
        let needs = TraceNeeds {
            along: [Quantity::Lyapunov].into(),
            averages: [TimeAverage::CrossCovariance].into(),
            ..TraceNeeds::default()
        };
        let runs = runs([trace(Outcome::Finished)], &needs);
        let [trace] = runs.along() else { panic!("one run") };
        assert_eq!((trace.rows(), trace.sq_error.len(), trace.cost.len()), (3, 0, 0));
        assert_eq!(trace.further, [(Metric::Lyapunov, vec![9.0, 8.0, 7.0])]);
        assert_eq!(runs.averages(TimeAverage::CrossCovariance).map(|a| a.len()), Some(1));
    }

    /// Each quantity has its own final values in the runs that finished.
    #[test]
    fn a_run_that_diverged_leaves_no_mean_and_keeps_the_others() {
        let outcomes = [Outcome::Diverged, Outcome::Finished, Outcome::Finished];
        let mut traces = outcomes.map(trace);
        traces[2].sq_error = vec![4.0, 2.0, 5.0];
        let mixed = runs(traces, &TraceNeeds::default());
        assert_eq!(mixed.finals(Quantity::SqError), None);
        assert_eq!(mixed.finals_by_run(Quantity::SqError), [None, Some(0.1 + 0.2), Some(5.0)]);
        assert_eq!(mixed.finals_by_run(Quantity::Lyapunov), [None, Some(7.0), Some(7.0)]);
        assert_eq!(mixed.finals_by_run(Quantity::Communications), [None, Some(7.0), Some(7.0)]);
        for without in [Quantity::SqErrorLimit, Quantity::Bias] {
            assert!(mixed.finals_by_run(without).is_empty(), "{without:?}");
        }
        let none = runs([trace(Outcome::Diverged)], &TraceNeeds::default());
        assert_eq!(none.finals_by_run(Quantity::SqError), [None]);
    }

    /// The first run ends at its target at the first recorded round after the start, the second one makes all rounds.
    #[test]
    fn a_run_that_ended_at_its_target_keeps_its_values() {
        let mut reached = trace(Outcome::Reached);
        reached.averages.clear();
        reached.round.truncate(2);
        reached.cost.truncate(2);
        reached.sq_error.truncate(2);
        reached.further[0].1.truncate(2);
        let other = Trace { averages: Vec::new(), ..trace(Outcome::Finished) };
        let along = [Quantity::SqError, Quantity::Communications].into();
        let mut needs = TraceNeeds { along, ..TraceNeeds::default() };
        for most in [1.0, 7.0, 1000.0] {
            needs.add_at(Some(at(most)), [Quantity::SqError]);
        }
        let runs = runs([reached, other], &needs);
        assert_eq!((runs.count, runs.diverged, runs.reached), (2, 0, 1));
        let errors = runs.columns(Quantity::SqError).concat();
        assert_eq!(errors, [4.0, 2.0, 2.0, 4.0, 2.0, 0.1 + 0.2]);
        let costs = runs.columns(Quantity::Communications).concat();
        assert_eq!(costs, [0.0, 1.0, 1.0, 0.0, 1.0, 7.0]);
        assert_eq!(runs.rounds(0), Some(&[0, 1, 7][..]));
        assert_eq!(runs.finals(Quantity::SqError), Some(vec![2.0, 0.1 + 0.2]));
        assert_eq!(runs.finals(Quantity::Communications), Some(vec![1.0, 7.0]));
        assert_eq!(runs.finals_by_run(Quantity::SqError), [Some(2.0), Some(0.1 + 0.2)]);
        assert_eq!(runs.sample_at(Quantity::SqError, at(1.0)).unwrap().values, [2.0, 2.0]);
        assert_eq!(runs.sample_at(Quantity::SqError, at(7.0)).unwrap().values, [2.0, 0.1 + 0.2]);
        let beyond = runs.sample_at(Quantity::SqError, at(1000.0));
        assert_eq!(beyond, Err(NoSample::Ended), "the second run could have gone on");
    }

    /// A number of communications.
    fn at(most: f64) -> ComparedAt {
        ComparedAt::Cost(AtCost { unit: Quantity::Communications, most })
    }

    /// The sample of two runs with these values, at this row.
    fn row(values: [f64; 2], row: Option<usize>) -> Result<CostSample, NoSample> {
        Ok(CostSample { values: values.to_vec(), single: values.to_vec(), row })
    }

    /// Three recorded rounds, of which the last costs 7 communications.
    #[test]
    fn a_cost_picks_the_last_round_that_it_pays_for() {
        let sample = |outcomes: [Outcome; 2], most: f64| {
            let mut needs = TraceNeeds::default();
            needs.add_at(Some(at(most)), [Quantity::SqError, Quantity::Lyapunov]);
            let runs = runs(outcomes.map(trace), &needs);
            assert!(runs.along().is_empty(), "memory does not grow with the rounds");
            assert_eq!(runs.sample_at(Quantity::Bytes, at(most)), Err(NoSample::Unrecorded));
            runs.sample_at(Quantity::SqError, at(most)).cloned()
        };
        use Outcome::{Diverged, Finished};
        for (most, value, place) in [(0.5, 4.0, 0), (1.0, 2.0, 1), (6.9, 2.0, 1)] {
            assert_eq!(sample([Finished; 2], most), row([value; 2], Some(place)), "{most}");
            assert_eq!(sample([Finished, Diverged], most), row([value; 2], Some(place)), "{most}");
        }
        for most in [7.0, 7.9] {
            assert_eq!(sample([Finished; 2], most), row([0.1 + 0.2; 2], Some(2)), "{most}");
            let diverged = sample([Finished, Diverged], most);
            assert_eq!(diverged, row([0.1 + 0.2, f64::INFINITY], None), "{most}");
        }
        let beyond = sample([Finished; 2], 8.0);
        assert_eq!(beyond, Err(NoSample::Ended), "another round was affordable");
    }

    /// Runs of which one comes to the target at round 1, one at round 7, and one never.
    #[test]
    fn a_target_picks_the_first_round_of_each_run_that_meets_it() {
        let errors = [[4.0, 1.0, 2.0], [4.0, 3.0, 1.0], [4.0, 3.0, 1.5]];
        let until = Until { metric: Quantity::SqError, target: 1.0 };
        let at = ComparedAt::Target { until };
        let runs_of = |count: usize| {
            let mut needs = TraceNeeds::default();
            needs.add_at(Some(at), [Quantity::Communications, Quantity::SqError]);
            let traces = errors[..count]
                .iter()
                .map(|errors| Trace { sq_error: errors.to_vec(), ..trace(Outcome::Finished) });
            runs(traces, &needs)
        };
        let two = runs_of(2);
        assert_eq!(two.sample(Quantity::Communications, Some(at)), Ok(vec![1.0, 7.0]));
        assert_eq!(two.sample(Quantity::SqError, Some(at)), Ok(vec![1.0, 1.0]));
        let three = runs_of(3);
        assert_eq!(three.sample(Quantity::Communications, Some(at)), Err(NoSample::Unreached));
        let by_run = three.values_at_target(Quantity::Communications, at);
        assert_eq!(by_run, [Some(1.0), Some(7.0), None]);
        assert!(three.along().is_empty(), "memory does not grow with the rounds");
    }
}
