//! The runs of a cell in memory: their final values, and the columns of their traces that a
//! figure draws or a claim tests. Other columns are dropped, so that the memory of a cell does not
//! grow with its number of rounds; of the costs at which runs are compared, one value per run stays.
//!
//! *Invariant*: which columns are in memory depends on the manifest alone, and their numbers have
//! the bits that were read.

use crate::cells::averages::{Averages, Centre, Centres, averages, mean_averages, vector};
use crate::cells::cost_sample::{CostSample, NoSample, column, means};
use exactfed_core::kernel::dot;
use exactfed_runner::manifest::{AtCost, Prices, Quantity, TimeAverage};
use exactfed_runner::plan::{Cell, RunKeys};
use exactfed_runner::trace::{Outcome, Trace};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// What is needed of a cell's traces beside the final values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceNeeds {
    /// Quantities round by round.
    pub along: BTreeSet<Quantity>,
    /// Averages over rounds, beside the bias and the covariance.
    pub averages: BTreeSet<TimeAverage>,
    /// Quantities that are compared where runs have paid a cost.
    pub at: Vec<(AtCost, Quantity)>,
    /// The quantity whose final value is kept of each run, also where others diverged.
    pub finals_of: Quantity,
}

impl TraceNeeds {
    /// Whether nothing is needed beside final values.
    fn is_none(&self) -> bool {
        self.along.is_empty() && self.averages.is_empty() && self.at.is_empty()
    }

    /// Adds some quantities at a cost, if there is one.
    pub fn add_at(&mut self, at: Option<AtCost>, quantities: impl IntoIterator<Item = Quantity>) {
        let Some(at) = at else { return };
        for quantity in quantities {
            if !self.at.contains(&(at, quantity)) {
                self.at.push((at, quantity));
            }
        }
    }
}

/// Which runs of a cell belong together.
#[derive(Clone, Copy, Debug)]
pub struct Grouping {
    /// The runs whose mean is one number of a sample: those on one of several instances.
    runs_per_value: usize,
    /// The most runs that are on one instance.
    on_instance: usize,
}

impl Grouping {
    /// Every run counts by itself, and all are on the same instance.
    pub const ONE_INSTANCE: Self = Self { runs_per_value: 1, on_instance: usize::MAX };

    /// The grouping of a cell's runs.
    pub fn new(cell: &Cell) -> Self {
        let RunKeys { instance, instances, replicates, .. } = &*cell.identity.keys;
        match (*instances > 1, instance.is_fixed()) {
            (true, _) => {
                Self { runs_per_value: *replicates as usize, on_instance: *replicates as usize }
            }
            (false, true) => Self::ONE_INSTANCE,
            (false, false) => Self { runs_per_value: 1, on_instance: 1 },
        }
    }
}
/// A set of quantities: a bit each, at the place of the quantity in [`Quantity::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct QuantitySet(u32);

impl QuantitySet {
    fn insert(&mut self, quantity: Quantity) {
        self.0 |= 1 << quantity as u32;
    }

    fn contains(self, quantity: Quantity) -> bool {
        self.0 & (1 << quantity as u32) != 0
    }

    /// The members of this set that are not in the other.
    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// How many members are before a quantity: in a list with an entry for each member, in their order, the entry of the
    /// quantity is at this place.
    fn place_of(self, quantity: Quantity) -> usize {
        let before = (1 << quantity as u32) - 1;
        (self.0 & before).count_ones() as usize
    }
}

/// A part of a list of numbers that several cells share.
#[derive(Clone, Debug, Default)]
struct SharedNumbers {
    whole: Arc<[f64]>,
    part: Range<u32>,
}

impl SharedNumbers {
    /// A list that nobody shares yet.
    fn alone(numbers: Vec<f64>) -> Self {
        Self { part: 0..numbers.len() as u32, whole: numbers.into() }
    }

    fn as_slice(&self) -> &[f64] {
        &self.whole[self.part.start as usize..self.part.end as usize]
    }
}

/// The values of quantities at the last round. A grid may have a million cells, so that what cells have in common is in
/// memory once.
#[derive(Clone, Debug, Default)]
struct FinalValues {
    /// The quantities that every run has recorded.
    known: QuantitySet,
    /// The known quantities that have the same value in all runs, as costs often have.
    constant: QuantitySet,
    /// One value for each constant quantity, in their order. They are kept as bits, which unlike numbers can be keys of
    /// a table: many cells have the same list and share it.
    constants: Arc<[u64]>,
    /// A sample for each known quantity that is not constant, one after the other in their order.
    samples: SharedNumbers,
}

impl FinalValues {
    /// The last values of runs none of which diverged. The second part has the values of the single runs where samples
    /// have means over several (`runs_per_value` > 1), quantity by quantity in the same order.
    fn new(traces: &[Trace], runs_per_value: usize, prices: &Prices) -> (Self, Vec<f64>) {
        let mut known = QuantitySet::default();
        let mut constant = QuantitySet::default();
        let mut constants = Vec::new();
        let mut samples = Vec::new();
        let mut single = Vec::new();
        for quantity in Quantity::ALL.iter().copied().filter(|q| q.average().is_none()) {
            let last_values: Option<Vec<f64>> = traces
                .iter()
                .map(|trace| column(trace, quantity, prices).last().copied())
                .collect();
            let Some(values) = last_values else { continue };
            known.insert(quantity);
            let first_bits = values.first().map_or(0, |x| x.to_bits());
            if runs_per_value == 1 && values.iter().all(|x| x.to_bits() == first_bits) {
                constant.insert(quantity);
                constants.push(first_bits);
                continue;
            }
            samples.extend(means(&values, runs_per_value));
            if runs_per_value > 1 {
                single.extend(values);
            }
        }
        let samples = SharedNumbers::alone(samples);
        (Self { known, constant, constants: constants.into(), samples }, single)
    }

    /// The values of a quantity among `lists`, which has `size` numbers for each known quantity that is not constant;
    /// `None` if the quantity is not known.
    fn select(&self, lists: &[f64], quantity: Quantity, size: usize) -> Option<Vec<f64>> {
        if self.constant.contains(quantity) {
            let bits = self.constants[self.constant.place_of(quantity)];
            return Some(vec![f64::from_bits(bits); size]);
        }
        if !self.known.contains(quantity) {
            return None;
        }
        let begin = self.known.without(self.constant).place_of(quantity) * size;
        Some(lists[begin..begin + size].to_vec())
    }
}

/// The runs of a cell.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The number of runs.
    pub count: usize,
    /// The number of runs that diverged.
    pub diverged: usize,
    /// The runs on each instance, of which every sample has the mean: 1 where each run counts by
    /// itself, because all have one instance, or each its own.
    runs_per_value: usize,
    /// The largest ‖θ_0 − θ*‖²; 0 if it is not known.
    pub start: f64,
    /// The values at the last round; none if a run diverged.
    finals: FinalValues,
    /// What a cell has that figures or claims need more of.
    more: Option<Box<MoreRuns>>,
}

/// What few cells of a large grid have, so that the others need no room for it.
#[derive(Clone, Debug, Default)]
struct MoreRuns {
    /// The final value of [`TraceNeeds::finals_of`] per run, where some diverged.
    finals: Box<[Option<f64>]>,
    /// The final values of each run, where samples have means over several: `count` numbers for each quantity of which
    /// [`FinalValues::samples`] has a sample.
    single: Box<[f64]>,
    /// The averages over rounds: one entry for each number of a sample.
    averages: Box<[Averages]>,
    /// The points around which these averages are, where they are second moments.
    centres: Centres,
    /// The quantities at costs that are needed.
    at: Vec<SampleAtCost>,
    /// One trace per run with the columns that are needed; empty if none is.
    along: Vec<Trace>,
    /// Prices of the simulated wall clock.
    prices: Prices,
}

/// A quantity at a cost, or why it has no values there.
#[derive(Clone, Debug)]
struct SampleAtCost {
    at: AtCost,
    quantity: Quantity,
    sample: Result<CostSample, NoSample>,
}

impl Runs {
    /// Drops from traces what is not needed. Where there are several instances, samples have a number
    /// per instance: runs on one instance are not independent.
    pub fn new(
        traces: Vec<Trace>,
        Grouping { runs_per_value, on_instance }: Grouping,
        needs: &TraceNeeds,
        prices: &Prices,
    ) -> Self {
        let diverged = traces.iter().filter(|t| t.outcome == Outcome::Diverged).count();
        let starts = traces.iter().filter_map(|t| t.sq_error.first());
        let (finals, single) = if diverged == 0 {
            FinalValues::new(&traces, runs_per_value, prices)
        } else {
            (FinalValues::default(), Vec::new())
        };
        let mut runs = Self {
            count: traces.len(),
            diverged,
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
            more.finals = traces.iter().map(|trace| trace.final_value(needs.finals_of)).collect();
        }
        for (at, quantity) in needs.at.iter().copied() {
            let sample = CostSample::new(&traces, runs_per_value, at, quantity, prices);
            more.at.push(SampleAtCost { at, quantity, sample });
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

    /// Puts the samples of many cells into one list, and holds a list of constants once that several cells have. A large
    /// grid then has few blocks in memory, and the allocator gets back the large blocks between which small ones were.
    pub fn share(cells: &mut [&mut Self], known: &mut HashSet<Arc<[u64]>>) {
        let size = cells.iter().map(|runs| runs.finals.samples.part.len()).sum();
        let mut numbers = Vec::with_capacity(size);
        for runs in cells.iter() {
            numbers.extend_from_slice(runs.finals.samples.as_slice());
        }
        let whole: Arc<[f64]> = numbers.into();
        let mut begin = 0;
        for runs in cells {
            let finals = &mut runs.finals;
            let end = begin + finals.samples.part.len() as u32;
            finals.samples = SharedNumbers { whole: whole.clone(), part: begin..end };
            begin = end;
            match known.get(&finals.constants) {
                Some(same) => finals.constants = same.clone(),
                None => drop(known.insert(finals.constants.clone())),
            }
        }
    }

    /// One trace per run with the columns that are needed; empty if none is.
    pub fn along(&self) -> &[Trace] {
        self.more.as_ref().map_or(&[], |more| &more.along)
    }

    /// The final value per run of a quantity, which is [`TraceNeeds::finals_of`]; `None` where it
    /// diverged.
    pub fn finals_by_run(&self, quantity: Quantity) -> Vec<Option<f64>> {
        match self.diverged {
            0 if self.runs_per_value > 1 => {
                let all = self.by_instance(quantity, None);
                all.into_iter().flatten().flatten().map(Some).collect()
            }
            0 => self.finals(quantity).into_iter().flatten().map(Some).collect(),
            _ => self.more.as_ref().map_or(Vec::new(), |more| more.finals.to_vec()),
        }
    }

    /// The size of samples: the number of instances if there are several, else of runs.
    pub fn sample_size(&self) -> usize {
        self.count / self.runs_per_value.max(1)
    }

    /// A quantity of each run, those on an instance together, at a cost or at the last round; `None`
    /// if a run diverged or it is not recorded.
    pub fn by_instance(&self, quantity: Quantity, at: Option<AtCost>) -> Option<Vec<Vec<f64>>> {
        let all = match (at, &self.more) {
            (Some(at), _) => self.sample_at(quantity, at).ok()?.single.clone(),
            (None, _) if self.diverged > 0 || quantity.average().is_some() => return None,
            (None, Some(more)) if self.runs_per_value > 1 => {
                self.finals.select(&more.single, quantity, self.count)?
            }
            (None, _) => {
                self.finals.select(self.finals.samples.as_slice(), quantity, self.count)?
            }
        };
        let finite = all.iter().all(|x| x.is_finite());
        finite.then(|| all.chunks(self.runs_per_value.max(1)).map(<[f64]>::to_vec).collect())
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
        self.finals.select(self.finals.samples.as_slice(), quantity, self.sample_size())
    }

    /// A quantity along the traces in memory, those on one instance averaged; empty where it is not
    /// recorded. An instance has as many rows as the run on it that diverged first.
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

    /// The recorded rounds of a number of the sample, if traces are in memory: those of the column
    /// at the same place.
    pub fn rounds(&self, place: usize) -> Option<&[u64]> {
        self.along().get(place * self.runs_per_value.max(1)).map(|trace| &trace.round[..])
    }

    /// A quantity at a cost.
    ///
    /// # Errors
    /// Why it has no values. It has none either if [`TraceNeeds::at`] did not name it.
    pub fn sample_at(&self, quantity: Quantity, at: AtCost) -> Result<&CostSample, NoSample> {
        let mut all = self.more.iter().flat_map(|more| &more.at);
        match all.find(|known| known.at == at && known.quantity == quantity) {
            Some(SampleAtCost { sample, .. }) => sample.as_ref().map_err(|why| *why),
            None => Err(NoSample::Unrecorded),
        }
    }

    /// A quantity at a cost, or at the last round, a sample.
    ///
    /// # Errors
    /// Why it has no such values.
    pub fn sample(&self, quantity: Quantity, at: Option<AtCost>) -> Result<Vec<f64>, NoSample> {
        let Some(at) = at else {
            if self.diverged > 0 {
                return Err(NoSample::Diverged);
            }
            return self.finals(quantity).ok_or(NoSample::Unrecorded);
        };
        let values = &self.sample_at(quantity, at)?.values;
        if values.contains(&f64::INFINITY) { Err(NoSample::Diverged) } else { Ok(values.clone()) }
    }

    /// An average over the rounds, one vector per replicate.
    pub fn averages(&self, what: TimeAverage) -> Option<Vec<&[f64]>> {
        let all = self.more.as_ref().map_or(&[][..], |more| &more.averages);
        if all.is_empty() {
            return (self.count == 0).then(Vec::new);
        }
        all.iter().map(|all| vector(all, what)).collect()
    }

    /// The point around which an average of second moments is; `None` if it is not recorded.
    pub fn centre(&self, what: TimeAverage) -> Option<Centre> {
        let more = self.more.as_ref()?;
        let is_recorded = more.averages.iter().any(|all| vector(all, what).is_some());
        is_recorded.then(|| more.centres.centre(what))
    }

    /// One number per replicate: the bias along the direction of the mean bias, so that the mean
    /// is the norm of the mean bias; or the trace of the covariance.
    fn along_mean(&self, quantity: Quantity, average: TimeAverage) -> Option<Vec<f64>> {
        let sample = self.averages(average)?;
        let size = sample.first()?.len();
        let d = libm::sqrt(size as f64) as usize;
        if quantity == Quantity::Variance {
            let traces = sample.iter().map(|x| (0..d).map(|i| x[i * d + i]).sum());
            return Some(traces.collect());
        }
        let n = sample.len() as f64;
        let mean: Vec<f64> =
            (0..size).map(|i| sample.iter().map(|x| x[i]).sum::<f64>() / n).collect();
        let norm = libm::sqrt(dot(&mean, &mean));
        Some(sample.iter().map(|x| dot(x, &mean) / norm).collect())
    }
}

/// The mean of a quantity over runs on one instance, row by row, as far as all of them have rows.
fn mean_column(runs: &[Trace], quantity: Quantity, prices: &Prices) -> Vec<f64> {
    let columns: Vec<Cow<'_, [f64]>> =
        runs.iter().map(|trace| column(trace, quantity, prices)).collect();
    let rows = columns.iter().map(|column| column.len()).min().unwrap_or(0);
    let n = columns.len() as f64;
    (0..rows).map(|row| columns.iter().map(|column| column[row]).sum::<f64>() / n).collect()
}

/// A trace with the columns of these quantities alone.
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
    use exactfed_runner::manifest::Metric;

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

    #[test]
    fn what_cells_share_is_what_each_had() {
        let of = |ends: &[f64]| {
            let ending = |end: &f64| vec![4.0, 2.0, *end];
            let traces = ends.iter().map(ending);
            let traces = traces.map(|sq_error| Trace { sq_error, ..trace(Outcome::Finished) });
            runs(traces, &TraceNeeds::default())
        };
        let mut all = [of(&[1.0, 2.0]), of(&[5.0, 5.0]), of(&[]), of(&[3.0, 4.0])];
        let finals = |runs: &[Runs]| -> Vec<Option<Vec<f64>>> {
            let plain = || Quantity::ALL.iter().filter(|q| q.average().is_none());
            runs.iter().flat_map(|one| plain().map(|q| one.finals(*q))).collect()
        };
        let before = finals(&all);
        let mut known = HashSet::new();
        Runs::share(&mut all.each_mut(), &mut known);
        assert_eq!(finals(&all), before);
        assert_eq!(all[3].finals(Quantity::SqError), Some(vec![3.0, 4.0]));
        assert!(Arc::ptr_eq(&all[0].finals.constants, &all[3].finals.constants));
        assert!(Arc::ptr_eq(&all[0].finals.samples.whole, &all[1].finals.samples.whole));
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

    #[test]
    fn a_run_that_diverged_leaves_no_mean_and_keeps_the_others() {
        let traces = [trace(Outcome::Finished), trace(Outcome::Diverged)];
        let runs = runs(traces, &TraceNeeds::default());
        assert_eq!(runs.finals(Quantity::SqError), None);
        assert_eq!(runs.finals_by_run(Quantity::SqError), [Some(0.1 + 0.2), None]);
    }

    /// Three recorded rounds, of which the last costs 7 communications.
    #[test]
    fn a_cost_picks_the_last_round_that_it_pays_for() {
        let at = |most| AtCost { unit: Quantity::Communications, most };
        let sample = |outcomes: [Outcome; 2], most: f64| {
            let mut needs = TraceNeeds::default();
            needs.add_at(Some(at(most)), [Quantity::SqError, Quantity::Lyapunov]);
            let runs = runs(outcomes.map(trace), &needs);
            assert!(runs.along().is_empty(), "memory does not grow with the rounds");
            assert_eq!(runs.sample_at(Quantity::Bytes, at(most)), Err(NoSample::Unrecorded));
            runs.sample_at(Quantity::SqError, at(most)).cloned()
        };
        use Outcome::{Diverged, Finished};
        let row = |values: [f64; 2], row| {
            Ok(CostSample { values: values.to_vec(), single: values.to_vec(), row })
        };
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
}
