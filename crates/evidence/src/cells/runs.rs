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
    /// Quantities at costs.
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
    on_each: usize,
    /// The most runs that are on one instance.
    on_instance: usize,
}

impl Grouping {
    /// Every run counts by itself, and all are on the same instance.
    pub const ONE_INSTANCE: Self = Self { on_each: 1, on_instance: usize::MAX };

    /// The grouping of a cell's runs.
    pub fn new(cell: &Cell) -> Self {
        let RunKeys { instance, instances, replicates, .. } = &*cell.identity.keys;
        match (*instances > 1, instance.is_fixed()) {
            (true, _) => Self { on_each: *replicates as usize, on_instance: *replicates as usize },
            (false, true) => Self::ONE_INSTANCE,
            (false, false) => Self { on_each: 1, on_instance: 1 },
        }
    }
}

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
    /// Those among them that have the same value in all runs, as costs often have.
    constant: u32,
    /// These values, by their bits: many cells have the same.
    constants: Arc<[u64]>,
    /// The final values of the others, quantity by quantity, a sample each: a part of those of
    /// many cells ([`Runs::share`]).
    ends: Arc<[f64]>,
    /// Which part.
    part: Range<u32>,
    /// What a cell has that figures or claims need more of.
    more: Option<Box<MoreRuns>>,
}

/// What few cells of a large grid have, so that the others need no room for it.
#[derive(Clone, Debug, Default)]
struct MoreRuns {
    /// The final value of [`TraceNeeds::finals_of`] per run, where some diverged.
    finals: Box<[Option<f64>]>,
    /// The final values of each run, where samples have means over several.
    single: Box<[f64]>,
    averages: (Box<[Averages]>, Centres),
    /// The quantities at costs that are needed.
    at: Vec<(AtCost, Quantity, Result<CostSample, NoSample>)>,
    /// One trace per run with the columns that are needed; empty if none is.
    along: Vec<Trace>,
    /// Prices of the simulated wall clock.
    prices: Prices,
}

impl Runs {
    /// Drops from traces what is not needed. Where there are several instances, samples have a number
    /// per instance: runs on one instance are not independent.
    pub fn new(
        traces: Vec<Trace>,
        Grouping { on_each, on_instance }: Grouping,
        needs: &TraceNeeds,
        prices: &Prices,
    ) -> Self {
        let diverged = traces.iter().filter(|t| t.outcome == Outcome::Diverged).count();
        let starts = traces.iter().filter_map(|t| t.sq_error.first());
        let (mut known, mut constant, mut constants) = (0, 0, Vec::new());
        let (mut ends, mut single) = (Vec::new(), Vec::new());
        for quantity in Quantity::ALL.iter().filter(|q| q.average().is_none() && diverged == 0) {
            let last = |t: &Trace| column(t, *quantity, prices).last().copied();
            if let Some(values) = traces.iter().map(last).collect::<Option<Vec<f64>>>() {
                known |= bit(*quantity);
                let first = values.first().map_or(0, |x| x.to_bits());
                if on_each == 1 && values.iter().all(|x| x.to_bits() == first) {
                    constant |= bit(*quantity);
                    constants.push(first);
                    continue;
                }
                ends.extend(means(&values, on_each));
                single.extend(values.iter().filter(|_| on_each > 1));
            }
        }
        let mut runs = Self {
            count: traces.len(),
            diverged,
            on_each,
            start: starts.copied().fold(0.0, f64::max),
            known,
            constant,
            constants: constants.into(),
            part: 0..ends.len() as u32,
            ends: ends.into(),
            more: None,
        };
        let has_averages = traces.iter().any(|t| !t.averages.is_empty());
        if diverged > 0 || on_each > 1 || has_averages || !needs.is_none() {
            let at = |(at, quantity): &(AtCost, Quantity)| {
                let sample = CostSample::new(&traces, on_each, (*at, *quantity), prices);
                (*at, *quantity, sample)
            };
            let finals = traces.iter().map(|trace| trace.final_value(needs.finals_of));
            let mut more = MoreRuns {
                finals: finals.filter(|_| diverged > 0).collect(),
                single: single.into(),
                at: needs.at.iter().map(at).collect(),
                prices: *prices,
                ..MoreRuns::default()
            };
            if has_averages {
                let (each, centres) = averages(&traces, &needs.averages, on_instance);
                more.averages = (each.chunks(on_each).map(mean_averages).collect(), centres);
            }
            if !needs.along.is_empty() {
                more.along = traces.into_iter().map(|t| along(t, &needs.along)).collect();
            }
            runs.more = Some(Box::new(more));
        }
        runs
    }

    /// Puts the final values of many cells side by side, and holds once what several have: a large
    /// grid has few blocks in memory, and the large ones between which they were made can be freed.
    pub fn share(cells: &mut [&mut Self], known: &mut HashSet<Arc<[u64]>>) {
        let mut ends = Vec::with_capacity(cells.iter().map(|runs| runs.part.len()).sum());
        cells.iter().for_each(|runs| ends.extend_from_slice(runs.ends()));
        let ends: Arc<[f64]> = ends.into();
        let mut from = 0;
        for runs in cells {
            runs.part = from..from + runs.part.len() as u32;
            (runs.ends, from) = (ends.clone(), runs.part.end);
            match known.get(&runs.constants) {
                Some(same) => runs.constants = same.clone(),
                None => drop(known.insert(runs.constants.clone())),
            }
        }
    }

    fn ends(&self) -> &[f64] {
        &self.ends[self.part.start as usize..self.part.end as usize]
    }

    /// One trace per run with the columns that are needed; empty if none is.
    pub fn along(&self) -> &[Trace] {
        self.more.as_ref().map_or(&[], |more| &more.along)
    }

    /// The final value per run of a quantity, which is [`TraceNeeds::finals_of`]; `None` where it
    /// diverged.
    pub fn finals_by_run(&self, quantity: Quantity) -> Vec<Option<f64>> {
        match self.diverged {
            0 if self.on_each > 1 => {
                let all = self.by_instance(quantity, None);
                all.into_iter().flatten().flatten().map(Some).collect()
            }
            0 => self.finals(quantity).into_iter().flatten().map(Some).collect(),
            _ => self.more.as_ref().map_or(Vec::new(), |more| more.finals.to_vec()),
        }
    }

    /// The size of samples: the number of instances if there are several, else of runs.
    pub fn sample_size(&self) -> usize {
        self.count / self.on_each.max(1)
    }

    /// A quantity of each run, those on an instance together, at a cost or at the last round; `None`
    /// if a run diverged or it is not recorded.
    pub fn by_instance(&self, quantity: Quantity, at: Option<AtCost>) -> Option<Vec<Vec<f64>>> {
        let all = match (at, &self.more) {
            (Some(at), _) => self.sample_at(quantity, at).ok()?.single.clone(),
            (None, _) if self.diverged > 0 || quantity.average().is_some() => return None,
            (None, Some(more)) if self.on_each > 1 => {
                self.last(&more.single, quantity, self.count)?
            }
            (None, _) => self.last(self.ends(), quantity, self.count)?,
        };
        let finite = all.iter().all(|x| x.is_finite());
        finite.then(|| all.chunks(self.on_each.max(1)).map(<[f64]>::to_vec).collect())
    }

    /// The final values of a quantity, `size` numbers, among those of all that are not constant;
    /// `None` if it is not known.
    fn last(&self, values: &[f64], quantity: Quantity, size: usize) -> Option<Vec<f64>> {
        let bit = bit(quantity);
        let before = |among: u32| (among & (bit - 1)).count_ones() as usize;
        if self.constant & bit != 0 {
            return Some(vec![f64::from_bits(self.constants[before(self.constant)]); size]);
        }
        let place = before(self.known & !self.constant) * size;
        (self.known & bit != 0).then(|| values[place..place + size].to_vec())
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
        self.last(self.ends(), quantity, self.sample_size())
    }

    /// A quantity along the traces in memory, those on one instance averaged; empty where it is not
    /// recorded. An instance has as many rows as the run on it that diverged first.
    pub fn columns(&self, quantity: Quantity) -> Vec<Cow<'_, [f64]>> {
        let Some(MoreRuns { along, prices, .. }) = self.more.as_deref() else { return Vec::new() };
        let one = |trace| column(trace, quantity, prices);
        if self.on_each <= 1 {
            return along.iter().map(one).collect();
        }
        let of_instance = |some: &[Trace]| {
            let all = some.iter().map(|trace| column(trace, quantity, prices));
            let all: Vec<Cow<'_, [f64]>> = all.collect();
            let rows = all.iter().map(|column| column.len()).min().unwrap_or(0);
            let row = |i: usize| all.iter().map(|column| column[i]).sum::<f64>() / all.len() as f64;
            Cow::Owned((0..rows).map(row).collect())
        };
        along.chunks(self.on_each).map(of_instance).collect()
    }

    /// The recorded rounds of a number of the sample, if traces are in memory: those of the column
    /// at the same place.
    pub fn rounds(&self, place: usize) -> Option<&[u64]> {
        self.along().get(place * self.on_each.max(1)).map(|trace| &trace.round[..])
    }

    /// A quantity at a cost.
    ///
    /// # Errors
    /// Why it has no values. It has none either if [`TraceNeeds::at`] did not name it.
    pub fn sample_at(&self, quantity: Quantity, at: AtCost) -> Result<&CostSample, NoSample> {
        let mut all = self.more.iter().flat_map(|more| &more.at);
        let found = all.find(|(known, of, _)| *known == at && *of == quantity);
        found
            .map_or(Err(NoSample::Unrecorded), |(_, _, sample)| sample.as_ref().map_err(|why| *why))
    }

    /// A quantity at a cost, or at the last round, a sample.
    ///
    /// # Errors
    /// Why it has no such values.
    pub fn sample(&self, quantity: Quantity, at: Option<AtCost>) -> Result<Vec<f64>, NoSample> {
        match at {
            Some(at) => match &self.sample_at(quantity, at)?.values {
                values if values.contains(&f64::INFINITY) => Err(NoSample::Diverged),
                values => Ok(values.clone()),
            },
            None if self.diverged > 0 => Err(NoSample::Diverged),
            None => self.finals(quantity).ok_or(NoSample::Unrecorded),
        }
    }

    /// An average over the rounds, one vector per replicate.
    pub fn averages(&self, what: TimeAverage) -> Option<Vec<&[f64]>> {
        let all = self.more.as_ref().map_or(&[][..], |more| &more.averages.0);
        if all.is_empty() {
            return (self.count == 0).then(Vec::new);
        }
        all.iter().map(|all| vector(all, what)).collect()
    }

    /// The point around which an average of second moments is; `None` if it is not recorded.
    pub fn centre(&self, what: TimeAverage) -> Option<Centre> {
        let (all, centres) = &self.more.as_ref()?.averages;
        all.iter().any(|all| vector(all, what).is_some()).then(|| centres.centre(what))
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

fn bit(quantity: Quantity) -> u32 {
    1 << quantity as u32
}

/// A trace with these columns alone.
fn along(trace: Trace, needed: &BTreeSet<Quantity>) -> Trace {
    let is_needed = |q: Quantity| needed.contains(&q);
    let only = |column: Vec<f64>, q: Quantity| if is_needed(q) { column } else { Vec::new() };
    let further = trace.further.into_iter().filter(|(metric, _)| is_needed(metric.quantity()));
    Trace {
        round: trace.round,
        cost: if Quantity::COSTS.into_iter().any(is_needed) { trace.cost } else { Vec::new() },
        sq_error: only(trace.sq_error, Quantity::SqError),
        sq_error_limit: only(trace.sq_error_limit, Quantity::SqErrorLimit),
        further: further.collect(),
        theta: Vec::new(),
        averages: Vec::new(),
        outcome: trace.outcome,
    }
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
        assert!(Arc::ptr_eq(&all[0].constants, &all[3].constants));
        assert!(Arc::ptr_eq(&all[0].ends, &all[1].ends));
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
