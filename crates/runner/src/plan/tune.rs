//! `[tune]`: which settings are candidates, which of them is selected by the runs so far, and
//! which cells are to be run next.
//!
//! *Invariant*: what is selected is a function of the manifest and of the losses of the cells, so
//! that it does not matter when, where and in which order they were run.

use super::candidates::replicates;
use super::cell::Cell;
use super::settings::short;
use super::tuning::{Candidate, CandidateRuns, TuningGroup};
use super::types::Plan;
use crate::hex::CellId;
use crate::manifest::tune::{EVALUATE, TunedSetting};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

impl Plan {
    /// The cell with the fresh runs of a candidate, which figures and claims show if it is selected: as many as
    /// `evaluate` of `[tune]` says. Tuned settings are not among those that it says are varied, since they have one
    /// value for each algorithm at a point of the grid.
    fn cell_of_fresh_runs(&self, candidate: &Candidate) -> Cell {
        let mut cell = candidate.cell.clone();
        let several = self.manifest.instances.is_some_and(|n| n > 1);
        let usual = if several { replicates(&self.manifest) } else { EVALUATE };
        let tune = self.manifest.tune.as_ref();
        let keys = Arc::make_mut(&mut cell.identity.keys);
        keys.replicates = tune.and_then(|tune| tune.evaluate).unwrap_or(usual);
        keys.fresh = true;
        let varied = cell.varied.iter().filter(|path| !self.is_tuned(path)).cloned().collect();
        Arc::make_mut(&mut cell.shared).varied = varied;
        cell.id = CellId::of(&cell.identity.canonical().to_string());
        cell
    }

    /// Whether the setting at a path is tuned.
    fn is_tuned(&self, path: &str) -> bool {
        self.tuning.as_ref().is_some_and(|tuning| tuning.has(path))
    }

    /// The settings that are tuned, in the order of `over`; none without `[tune]`.
    pub(super) fn tuned_settings(&self) -> &[TunedSetting] {
        self.tuning.as_ref().map_or(&[], |tuning| &tuning.settings)
    }

    /// Groups the cells of candidates: those of one algorithm at one point of the grid, which differ in tuned settings
    /// alone, are in one group. Groups and candidates are in the order of the cells. Losses are not read yet.
    pub(super) fn group_candidates(&self, cells: &[Cell]) -> Vec<TuningGroup> {
        let mut groups: Vec<TuningGroup> = Vec::new();
        let mut places: HashMap<(String, Vec<String>), usize> = HashMap::new();
        for cell in cells {
            let others = cell
                .varied
                .iter()
                .filter(|path| !self.is_tuned(path))
                .map(|path| cell.settings.at_path(path).map(|value| format!("{path} {value}")));
            let key = (cell.entry.to_string(), others.flatten().collect());
            let place = *places.entry(key).or_insert_with(|| {
                let label = cell.label.clone();
                groups.push(TuningGroup { label, ..TuningGroup::default() });
                groups.len() - 1
            });
            let kind = cell.entry.split('.').nth(1).unwrap_or_default();
            let values = self
                .tuned_settings()
                .iter()
                .map(|setting| {
                    cell.settings.at_path(&format!("algorithm.{kind}.{}", setting.key))?.number()
                })
                .collect();
            let first = self.first_runs(cell);
            groups[place].candidates.push(Candidate {
                cell: cell.clone(),
                first,
                values,
                loss: None,
            });
        }
        groups
    }

    /// The plan after the candidates' runs so far: its cells are the fresh runs of the candidates that these select,
    /// and its groups hold what is known of all candidates. Where the runs do not decide yet, candidates have cells
    /// that are to be run first ([`Candidate::cells`](super::Candidate::cells)). A plan without `[tune]` stays as it
    /// is.
    ///
    /// # Errors
    /// If results cannot be read.
    pub fn following<R: CandidateRuns>(mut self, runs: &R) -> Result<Self, R::Error> {
        let Some(listed) = self.tuning.as_mut().map(|tuning| std::mem::take(&mut tuning.listed))
        else {
            return Ok(self);
        };
        let mut groups = self.group_candidates(&listed);
        loop {
            self.read_losses(&mut groups, runs)?;
            self.leave_allowed_edges(&mut groups, runs)?;
            if !self.extend(&mut groups, runs)? {
                break;
            }
        }
        self.select_shared(&mut groups);
        for group in &mut groups {
            group.evaluation = group.winner().map(|winner| self.cell_of_fresh_runs(winner));
        }
        self.cells = groups.iter().filter_map(|group| group.evaluation.clone()).collect();
        if let Some(tuning) = &mut self.tuning {
            tuning.listed = listed;
            tuning.groups = groups;
        }
        Ok(self)
    }

    /// Reads the losses of candidates' runs that are not known yet, and decides the race. Selects a candidate in each
    /// group where all losses are known that the selection needs.
    fn read_losses<R: CandidateRuns>(
        &self,
        groups: &mut [TuningGroup],
        runs: &R,
    ) -> Result<(), R::Error> {
        for group in groups.iter_mut() {
            for first in group.candidates.iter_mut().filter_map(|c| c.first.as_mut()) {
                if first.loss.is_none() {
                    first.loss = runs.loss(&first.cell)?;
                }
            }
        }
        self.decide_race(groups, runs);
        for group in groups {
            loop {
                let mut open = group.candidates.iter_mut().filter(|c| c.loss.is_none());
                open.try_for_each(|candidate| {
                    if candidate.goes_on() {
                        candidate.loss = runs.loss(&candidate.cell)?;
                    }
                    Ok(())
                })?;
                if !group.is_complete() {
                    break;
                }
                group.select(self.tuned_settings());
                if !group.resume_neighbours(self.tuned_settings().len()) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The places of the groups at each point of the grid. A point is known by the names and values of the settings
    /// that vary over the grid for every algorithm; an algorithm has several groups there if other settings of its own
    /// vary.
    pub(super) fn groups_by_point(
        &self,
        groups: &[TuningGroup],
    ) -> BTreeMap<Vec<String>, Vec<usize>> {
        let common = groups
            .iter()
            .map(|group| self.varied_names(group))
            .reduce(|all: BTreeSet<String>, own| all.intersection(&own).cloned().collect())
            .unwrap_or_default();
        let mut points: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
        for (i, group) in groups.iter().enumerate() {
            let cell = &group.candidates[0].cell;
            let point = common
                .iter()
                .filter_map(|name| Some(format!("{name} {}", cell.settings.get(name)?)))
                .collect();
            points.entry(point).or_default().push(i);
        }
        points
    }

    /// The short names of the settings of a group that vary over the grid and are not tuned.
    fn varied_names(&self, group: &TuningGroup) -> BTreeSet<String> {
        let varied = group.candidates[0].cell.varied.iter();
        varied.filter(|path| !self.is_tuned(path)).map(|path| short(path).to_owned()).collect()
    }

    /// Selects, at each point of the grid with several algorithms whose losses are all known, the values of the tuned
    /// settings that are best for all algorithms together, and sets `shared` of each algorithm to its fresh runs with
    /// them. The best values have the smallest product of losses among those with which every algorithm has a finite
    /// loss: no run diverged or ended too early, and no candidate was stopped.
    fn select_shared(&self, groups: &mut [TuningGroup]) {
        for places in self.groups_by_point(groups).into_values() {
            // A group that is not complete may still get candidates, which may change what is best for all.
            if !places.iter().all(|place| groups[*place].is_complete()) {
                continue;
            }
            let first = &groups[places[0]];
            let mut known = Vec::new();
            for candidate in &first.candidates {
                let values = &candidate.values;
                known.extend(log_product(groups, &places, values).map(|product| (product, values)));
            }
            let best = known.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
            let best = best.map(|(_, values)| values.clone());
            let Some(best) = best.filter(|_| places.len() > 1) else { continue };
            for place in places {
                let group = &groups[place];
                let shared = group
                    .candidates
                    .iter()
                    .find(|c| c.values == best)
                    .map(|c| self.cell_of_fresh_runs(c));
                groups[place].shared = shared;
            }
        }
    }

    /// All cells that belong to the experiment as far as results decide. Where settings are tuned these are the cells
    /// of the candidates, the fresh runs of the selected ones, and the fresh runs with the values that are best for
    /// all algorithms. Some are there twice.
    pub fn all_cells(&self) -> impl Iterator<Item = &Cell> {
        let groups = self.tuning.iter().flat_map(|tuning| &tuning.groups);
        let of_groups = groups.flat_map(|group| {
            let candidates = group.candidates.iter().flat_map(Candidate::cells);
            candidates.chain(&group.evaluation).chain(&group.shared)
        });
        self.cells.iter().chain(of_groups)
    }

    /// The fresh runs of every listed candidate, a list for each algorithm at each point of the grid. Of each list one
    /// cell will be run, or two if another one is best for all algorithms together: this bounds the time that follows.
    /// Empty without `[tune]`.
    pub fn possible_evaluations(&self) -> Vec<Vec<Cell>> {
        let Some(tuning) = &self.tuning else { return Vec::new() };
        let groups = self.group_candidates(&tuning.listed);
        groups
            .iter()
            .map(|group| {
                group
                    .candidates
                    .iter()
                    .map(|candidate| self.cell_of_fresh_runs(candidate))
                    .collect()
            })
            .collect()
    }
}

/// Σ log loss over the groups at these places, of the candidate with these values in each; `None` if a group has no
/// such candidate, or if its loss is not known or not finite.
fn log_product(groups: &[TuningGroup], places: &[usize], values: &[Option<f64>]) -> Option<f64> {
    let mut logarithms = Vec::with_capacity(places.len());
    for place in places {
        let mut candidates = groups[*place].candidates.iter();
        let loss = candidates.find(|c| c.values == values)?.loss.filter(|l| l.is_finite())?;
        logarithms.push(libm::log(loss));
    }
    Some(logarithms.iter().sum::<f64>())
}
