//! The race of candidates: each has its first runs, and those that are certain to be worse than the
//! best of them are stopped there.
//!
//! *Invariant*: the candidates that are not stopped have the cells, and thus the numbers, that they
//! would have without a race; which are stopped is a function of the manifest and of first runs.

use super::candidates::replicates;
use super::cell::Cell;
use super::tuning::{CandidateRuns, Decision, FirstRuns, TuningGroup};
use super::types::Plan;
use crate::hex::CellId;
use std::sync::Arc;

/// The fewest first runs by which a candidate is stopped: fewer say little about how much runs vary.
const LEAST_FIRST_RUNS: u64 = 5;

/// First runs are all runs divided by this number, rounded up: the first third.
const PART: u64 = 3;

impl TuningGroup {
    /// Whether the losses of the first runs of all candidates are known; a candidate without first runs needs none.
    fn has_first_runs(&self) -> bool {
        let mut firsts = self.candidates.iter().filter_map(|candidate| candidate.first.as_ref());
        firsts.all(|first| first.loss.is_some())
    }

    /// The place of the candidate with these values of the tuned settings; `None` if there is none.
    fn place_of(&self, values: &[Option<f64>]) -> Option<usize> {
        self.candidates.iter().position(|candidate| candidate.values == values)
    }

    /// The mean loss of the first runs of the candidate at a place; `None` if it has none, they were not run, or the
    /// loss is not finite, because one diverged or ended too early.
    fn first_loss(&self, place: usize) -> Option<f64> {
        self.candidates[place].first.as_ref()?.loss.filter(|loss| loss.is_finite())
    }

    /// The place of the candidate whose first runs have the smallest finite mean loss; `None` if the loss of none is
    /// finite.
    fn first_in_race(&self) -> Option<usize> {
        let losses = (0..self.candidates.len()).filter_map(|i| Some((i, self.first_loss(i)?)));
        losses.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place)
    }

    /// Lets the candidate at a place go on if it was stopped and none of its first runs diverged. Returns whether it
    /// does.
    fn resume(&mut self, place: usize) -> bool {
        let candidate = &mut self.candidates[place];
        let may_go_on = candidate.is_stopped() && !candidate.first_runs_diverged();
        if may_go_on {
            candidate.decide(Decision::GoesOn);
        }
        may_go_on
    }

    /// Lets stopped candidates go on that are next above the selected one in one of the tuned settings, of which there
    /// are `settings`: whether any of their runs diverges determines whether the selected one stands at an edge.
    /// Returns whether there are such candidates; then nothing is selected until their runs are known.
    pub(super) fn resume_neighbours(&mut self, settings: usize) -> bool {
        let Some(winner) = self.winner() else { return false };
        let places: Vec<usize> = (0..settings)
            .filter_map(|setting| {
                let neighbour = self.above(winner, setting)?;
                self.place_of(&neighbour.values)
            })
            .collect();
        let mut any_goes_on = false;
        for place in places {
            any_goes_on |= self.resume(place);
        }
        if any_goes_on {
            // Their other runs may show that one of them is better.
            self.deselect();
        }
        any_goes_on
    }
}

impl Plan {
    /// Whether candidates of this plan race, so that some are stopped after their first runs.
    pub fn has_race(&self) -> bool {
        let listed = self.tuning.iter().flat_map(|tuning| &tuning.listed);
        listed.map(|cell| self.first_cell(cell)).any(|first| first.is_some())
    }

    /// Keeps the cells of a new plan with `[tune]` as those of its listed candidates, with all their runs. Where
    /// candidates race, the cells of the plan then are those of their first runs. A plan without `[tune]` stays as it
    /// is.
    pub(super) fn begin_race(&mut self) {
        if self.tuning.is_none() {
            return;
        }
        let first = self
            .cells
            .iter()
            .map(|cell| self.first_cell(cell).unwrap_or_else(|| cell.clone()))
            .collect();
        let listed = std::mem::replace(&mut self.cells, first);
        if let Some(tuning) = &mut self.tuning {
            tuning.listed = listed;
        }
    }

    /// The first runs of a candidate with this cell, by which it may be stopped; `None` if it has no
    /// [first cell](Self::first_cell).
    pub(super) fn first_runs(&self, candidate: &Cell) -> Option<FirstRuns> {
        let cell = self.first_cell(candidate)?;
        Some(FirstRuns { cell, loss: None, decision: None })
    }

    /// The cell of a candidate's first runs. `None` if candidates do not race, or if these would be fewer than
    /// [`LEAST_FIRST_RUNS`].
    pub(super) fn first_cell(&self, candidate: &Cell) -> Option<Cell> {
        let has_race = self.manifest.tune.as_ref().is_some_and(|tune| tune.race);
        // Its runs are counted by instances where it has several, and otherwise by replicates.
        let has_instances = candidate.identity.instances > 1;
        let all = if has_instances {
            candidate.identity.instances
        } else {
            candidate.identity.replicates
        };
        let part = all.div_ceil(PART);
        if !has_race || part < LEAST_FIRST_RUNS {
            return None;
        }
        let mut cell = candidate.clone();
        let keys = Arc::make_mut(&mut cell.identity.keys);
        *(if has_instances { &mut keys.instances } else { &mut keys.replicates }) = part;
        cell.id = CellId::of(&cell.identity.canonical().to_string());
        Some(cell)
    }

    /// The cell of a candidate's first runs, if this is the cell of all its runs, candidates race and the first runs
    /// are not too few; `None` for cells with fresh runs, and where nothing is tuned. `run` takes the first runs of a
    /// cell from there instead of computing them again.
    pub fn first_cell_of(&self, cell: &Cell) -> Option<Cell> {
        let identity = &cell.identity;
        let all_instances = self.manifest.instances.unwrap_or(1);
        let has_all_runs = identity.instances == all_instances
            && identity.replicates == replicates(&self.manifest);
        if self.tuning.is_none() || identity.fresh || !has_all_runs {
            return None;
        }
        self.first_cell(cell)
    }

    /// Decides which candidates go on after their first runs, at each point of the grid where all first runs are
    /// known. A candidate is stopped if one of its first runs diverged, or if they are certain to be worse than the
    /// best first runs of its group and its values cannot be the best for all algorithms together. Where one of the
    /// first runs diverged, the loss of all runs is infinite too, and is set. Candidates whose runs ended before the
    /// cost at which they are compared go on. What was decided before stays.
    pub(super) fn decide_race<R: CandidateRuns>(&self, groups: &mut [TuningGroup], runs: &R) {
        for places in self.groups_by_point(groups).into_values() {
            if !places.iter().all(|place| groups[*place].has_first_runs()) {
                continue;
            }
            let shared = self.shared_in_race(groups, &places, runs);
            for &place in &places {
                let decisions = decisions(&groups[place], &shared, runs);
                for (candidate, decision) in groups[place].candidates.iter_mut().zip(decisions) {
                    candidate.decide(decision);
                    if candidate.first_runs_diverged() {
                        candidate.loss = Some(f64::INFINITY);
                    }
                }
            }
        }
    }

    /// The values of the tuned settings that may be the best for all algorithms at a point of the grid together, whose
    /// groups are at these places: the product of the losses of their first runs is not certain to be larger than the
    /// smallest product. Candidates with such values go on, because the comparison of all algorithms with equal values
    /// needs their runs. Empty if the point has one group.
    fn shared_in_race<R: CandidateRuns>(
        &self,
        groups: &[TuningGroup],
        places: &[usize],
        runs: &R,
    ) -> Vec<Vec<Option<f64>>> {
        if places.len() < 2 {
            return Vec::new();
        }
        let mut all: Vec<SharedValues<'_>> = Vec::new();
        for candidate in &groups[places[0]].candidates {
            all.extend(SharedValues::new(groups, places, &candidate.values));
        }
        let products = all.iter().min_by(|a, b| a.log_product.total_cmp(&b.log_product));
        let Some(best) = products else { return Vec::new() };
        all.iter()
            .filter(|values| {
                let mut terms: Vec<(f64, &Cell)> =
                    values.cells.iter().map(|cell| (1.0, *cell)).collect();
                terms.extend(best.cells.iter().map(|cell| (-1.0, *cell)));
                !runs.is_larger(&terms)
            })
            .map(|values| values.values.to_vec())
            .collect()
    }
}

/// Values of the tuned settings with which every group at a point of the grid has a candidate.
struct SharedValues<'g> {
    values: &'g [Option<f64>],
    /// The cells of the first runs with these values, one of each group.
    cells: Vec<&'g Cell>,
    /// Σ log of the mean losses of these cells, by which values are compared.
    log_product: f64,
}

impl<'g> SharedValues<'g> {
    /// These values, with the first runs that the groups at these places have with them; `None` if a group has no such
    /// candidate, or its first runs have no finite loss.
    fn new(groups: &'g [TuningGroup], places: &[usize], values: &'g [Option<f64>]) -> Option<Self> {
        let mut shared = Self { values, cells: Vec::new(), log_product: 0.0 };
        for group in places.iter().map(|place| &groups[*place]) {
            let place = group.place_of(values)?;
            shared.log_product += libm::log(group.first_loss(place)?);
            shared.cells.push(&group.candidates[place].first.as_ref()?.cell);
        }
        Some(shared)
    }
}

/// What becomes of each candidate of a group, in their order. `shared` are the values that may be the best for all
/// algorithms.
fn decisions<R: CandidateRuns>(
    group: &TuningGroup,
    shared: &[Vec<Option<f64>>],
    runs: &R,
) -> Vec<Decision> {
    let best = group.first_in_race().and_then(|place| group.candidates[place].first.as_ref());
    let mut decisions = Vec::with_capacity(group.candidates.len());
    for candidate in &group.candidates {
        let Some(first) = &candidate.first else {
            decisions.push(Decision::GoesOn);
            continue;
        };
        if let Some(decision) = first.decision {
            decisions.push(decision);
            continue;
        }
        let is_finite = first.loss.is_some_and(f64::is_finite);
        let is_worse = best.is_some_and(|best| {
            is_finite && runs.is_larger(&[(1.0, &first.cell), (-1.0, &best.cell)])
        });
        let may_be_shared = shared.contains(&candidate.values);
        let is_stopped = candidate.first_runs_diverged() || is_worse && !may_be_shared;
        decisions.push(if is_stopped { Decision::Stopped } else { Decision::GoesOn });
    }
    decisions
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::{BTreeSet, HashSet};
    use std::convert::Infallible;

    const MANIFEST: &str = r#"
        title = "a race"
        question = "?"
        seed = 1
        replicates = 30
        [problem.quadratic]
        dimension = 2
        clients = 3
        spectrum = { from = 0.5, to = 2.0 }
        gradient-heterogeneity = 1.0
        hessian-heterogeneity = 0.2
        noise = 0.5
        [start]
        offset = 1.0
        [budget]
        rounds = 10
        [record]
        points = 2
        [tune]
        over = "step-size"
        range = [0.01, 0.1]
        [[algorithm.fedavg]]
        local-steps = 2
        [[algorithm.scaffold]]
        local-steps = 2
        [[algorithm.minibatch-sgd]]
    "#;

    /// Invented results. The loss of a cell is a function of its id, and known once the cell was run. A
    /// comparison is certain for some pairs of cells.
    struct Invented {
        seed: u64,
        done: RefCell<HashSet<CellId>>,
    }

    impl Invented {
        /// A number in [0, 1) of a text.
        fn number(&self, text: &str) -> f64 {
            let start = 0xcbf2_9ce4_8422_2325 ^ self.seed;
            let hash = text
                .bytes()
                .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) as f64 / 2f64.powi(64)
        }
    }

    impl CandidateRuns for Invented {
        type Error = Infallible;

        fn loss(&self, cell: &Cell) -> Result<Option<f64>, Infallible> {
            let x = self.number(cell.id.as_str());
            let loss = if x > 0.95 { f64::INFINITY } else { 0.1 + x };
            Ok(self.done.borrow().contains(&cell.id).then_some(loss))
        }

        fn clients(&self, _: &Cell) -> Result<Option<usize>, Infallible> {
            Ok(Some(3))
        }

        fn is_larger(&self, terms: &[(f64, &Cell)]) -> bool {
            let part = |(weight, cell): &(f64, &Cell)| weight * self.number(cell.id.as_str());
            terms.iter().map(part).sum::<f64>() > 0.3
        }
    }

    /// All cells that are ever asked for, in whichever order they are run, are those that belong to the
    /// experiment in the end.
    #[test]
    fn no_cell_is_run_that_the_experiment_does_not_have() {
        let mut extended = 0;
        for seed in 0..60 {
            let runs = Invented { seed, done: RefCell::default() };
            let plan = || {
                Plan::of_text(MANIFEST, &[]).following(&runs).unwrap_or_else(|never| match never {})
            };
            loop {
                let asked: BTreeSet<CellId> = plan().all_cells().map(|cell| cell.id).collect();
                let is_open = |id: &&CellId| !runs.done.borrow().contains(*id);
                let mut open: Vec<CellId> = asked.iter().filter(is_open).copied().collect();
                if open.is_empty() {
                    let done: BTreeSet<CellId> = runs.done.borrow().iter().copied().collect();
                    assert_eq!(asked, done, "seed {seed}");
                    break;
                }
                // A part of them, another one for each seed.
                open.sort_by(|a, b| runs.number(a.as_str()).total_cmp(&runs.number(b.as_str())));
                open.truncate(1 + seed as usize * open.len() / 60);
                runs.done.borrow_mut().extend(open);
            }
            let groups = plan().tuning.map(|tuning| tuning.groups).unwrap_or_default();
            assert!(
                groups.iter().all(|group| group.evaluation.is_some() || group.selected.is_none())
            );
            extended += groups.iter().map(|group| group.extended).sum::<u64>();
        }
        assert!(extended > 30, "candidates were added {extended} times");
    }
}
