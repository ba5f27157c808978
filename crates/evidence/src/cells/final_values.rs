//! The values of quantities at the last round of a cell's runs.

use crate::cells::cost_sample::{column, means};
use exactfed_runner::manifest::{Prices, Quantity};
use exactfed_runner::trace::{Outcome, Trace};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// A set of quantities, of which there are at most 64: bit i is set if the quantity at place i of [`Quantity::ALL`] is
/// a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct QuantitySet(u64);

const _: () = assert!(Quantity::ALL.len() <= u64::BITS as usize, "every quantity has a bit");

impl QuantitySet {
    fn insert(&mut self, quantity: Quantity) {
        self.0 |= 1 << quantity as u64;
    }

    fn contains(self, quantity: Quantity) -> bool {
        self.0 & (1 << quantity as u64) != 0
    }

    /// The members of this set that are not in the other.
    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// How many members are before a quantity: in a list with an entry for each member, in their order, the entry of
    /// the quantity is at this place.
    fn place_of(self, quantity: Quantity) -> usize {
        let before = (1 << quantity as u64) - 1;
        (self.0 & before).count_ones() as usize
    }
}

/// The numbers of one cell, as a part of a list with the numbers of many cells.
#[derive(Clone, Debug, Default)]
struct SharedNumbers {
    /// The list, which the cells share.
    whole: Arc<[f64]>,
    /// The places in it of the numbers of this cell.
    part: Range<u32>,
}

impl SharedNumbers {
    /// A list that nobody shares yet.
    fn alone(numbers: Vec<f64>) -> Self {
        Self { part: 0..numbers.len() as u32, whole: numbers.into() }
    }

    /// The numbers of this cell alone.
    fn as_slice(&self) -> &[f64] {
        &self.whole[self.part.start as usize..self.part.end as usize]
    }
}

/// The values of quantities at the last round of runs that all finished. A grid may have a million cells, so that what
/// cells have in common is in memory once.
#[derive(Clone, Debug, Default)]
pub(super) struct FinalValues {
    /// The quantities that every run has recorded.
    known: QuantitySet,
    /// The known quantities that have the same value in all runs, as costs often have.
    constant: QuantitySet,
    /// One value for each constant quantity, in the order of [`Quantity::ALL`]. They are kept as bits, which unlike
    /// numbers can be keys of a table: many cells have the same list and share it.
    constants: Arc<[u64]>,
    /// A sample for each known quantity that is not constant, one after the other in the order of [`Quantity::ALL`].
    samples: SharedNumbers,
}

impl FinalValues {
    /// The last values of runs that all finished. A sample has the mean of each `runs_per_value` successive runs,
    /// those on one instance; if that is more than 1, the second part of the result has the values of the single runs
    /// for each quantity of which there is a sample, one after the other in the order of the samples, and else nothing.
    pub(super) fn new(
        traces: &[&Trace],
        runs_per_value: usize,
        prices: &Prices,
    ) -> (Self, Vec<f64>) {
        let mut known = QuantitySet::default();
        let mut constant = QuantitySet::default();
        let mut constants = Vec::new();
        let mut samples = Vec::new();
        let mut single = Vec::new();
        // The averages over rounds are no columns of traces.
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

    /// The sample of a quantity, which has this size; `None` if the quantity is not known.
    pub(super) fn sample(&self, quantity: Quantity, size: usize) -> Option<Vec<f64>> {
        self.select(self.samples.as_slice(), quantity, size)
    }

    /// The values of a quantity among `lists`, which has `size` numbers for each known quantity that is not constant,
    /// as the second part of [`FinalValues::new`] has one for each run; `None` if the quantity is not known.
    pub(super) fn select(
        &self,
        lists: &[f64],
        quantity: Quantity,
        size: usize,
    ) -> Option<Vec<f64>> {
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

    /// Puts the samples of many cells into one list, and holds a list of constants once that several cells have;
    /// `known` has the lists of constants of earlier calls. A large grid then has few blocks in memory, and the
    /// allocator gets back the large blocks between which small ones were.
    pub(super) fn share(cells: &mut [&mut Self], known: &mut HashSet<Arc<[u64]>>) {
        let size = cells.iter().map(|finals| finals.samples.part.len()).sum();
        let mut numbers = Vec::with_capacity(size);
        for finals in cells.iter() {
            numbers.extend_from_slice(finals.samples.as_slice());
        }
        let whole: Arc<[f64]> = numbers.into();
        let mut begin = 0;
        for finals in cells {
            let end = begin + finals.samples.part.len() as u32;
            finals.samples = SharedNumbers { whole: whole.clone(), part: begin..end };
            begin = end;
            match known.get(&finals.constants) {
                Some(same) => finals.constants = same.clone(),
                None => drop(known.insert(finals.constants.clone())),
            }
        }
    }

    /// Whether two cells share their constants, for tests.
    #[cfg(test)]
    pub(super) fn shares_constants(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.constants, &other.constants)
    }

    /// Whether the samples of two cells are in one list, for tests.
    #[cfg(test)]
    pub(super) fn shares_samples(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.samples.whole, &other.samples.whole)
    }
}

/// The final values of the runs of a cell that finished, where others diverged.
#[derive(Clone, Debug)]
pub(super) struct FinishedRuns {
    /// Whether each run of the cell finished, in the order of the runs.
    is_finished: Box<[bool]>,
    /// The values of those that did.
    finals: FinalValues,
}

impl FinishedRuns {
    /// Keeps the final values of those runs of a cell that finished.
    pub(super) fn new(traces: &[Trace], prices: &Prices) -> Self {
        let mut finished = Vec::with_capacity(traces.len());
        let mut is_finished = Vec::with_capacity(traces.len());
        for trace in traces {
            let has_diverged = trace.outcome == Outcome::Diverged;
            is_finished.push(!has_diverged);
            if !has_diverged {
                finished.push(trace);
            }
        }
        let (finals, _) = FinalValues::new(&finished, 1, prices);
        Self { is_finished: is_finished.into(), finals }
    }

    /// The final value of a quantity in each run of the cell, `None` where the run diverged; empty if the quantity is
    /// an average over rounds, or if the runs that finished have not recorded it.
    pub(super) fn finals_by_run(&self, quantity: Quantity) -> Vec<Option<f64>> {
        let size = self.is_finished.iter().filter(|is_finished| **is_finished).count();
        let Some(sample) = self.finals.sample(quantity, size) else { return Vec::new() };
        let mut values = sample.into_iter();
        let each = self.is_finished.iter();
        each.map(|is_finished| if *is_finished { values.next() } else { None }).collect()
    }
}
