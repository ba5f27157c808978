//! A side from a results folder: the digests of all cells, and only those numbers of the Parquet
//! files that a comparison with the other side needs.
//!
//! *Invariant*: every file is checked against its hash; a cell whose file differs is damaged, and
//! the others are still compared.

use super::claims::SideClaim;
use super::record;
use super::side::{SCHEMA, Side, SideCell, SideExperiment, SideRuns};
use crate::evidence::results::Results;
use crate::evidence::{CellResult, Experiment, planned_looks, tuned};
use crate::stats::looks::Looks;
use crate::store::{Store, StoredExperiment};
use exactfed_runner::files::Error;
use exactfed_runner::plan::{CanonicalSettings, Cell, CellId, Plan};
use exactfed_runner::trace::{Trace, hold_last_values};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// A results folder that is a side of a comparison.
pub struct ResultsFolder {
    store: Store,
    experiments: Vec<StoredExperiment>,
}

/// Makes what a report stores of an analysed experiment for later diffs: writes the text of [`record::FINALS`] to
/// `out`, and returns the text of [`record::RECORD`]. They have all cells of the plan, also those without results; of
/// a tuned experiment these are the fresh runs of what was selected, without the candidates.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_record(experiment: &Experiment<'_>, out: &mut dyn Write) -> std::io::Result<String> {
    let plan = experiment.plan;
    let compared_by = plan.manifest.record.default_quantity();
    let mut order: Vec<u32> = (0..plan.cells.len() as u32).collect();
    order.sort_unstable_by_key(|place| plan.cells[*place as usize].id);
    let results = ResultsById::new(&experiment.cells);
    let cells = || {
        let by_id = order.iter().map(|place| &plan.cells[*place as usize]);
        planned_cells(by_id).map(|(id, mut cell)| {
            if let Some(found) = results.find(id) {
                let finals = found.runs.finals_by_run(compared_by);
                cell.runs = SideRuns::done(found.digest, finals);
            }
            (id, cell)
        })
    };
    let head = SideExperiment {
        schema: SCHEMA,
        seed: plan.manifest.seed,
        manifest: manifest_hash(&plan.source.text, &plan.source.overrides),
        looks: experiment.looks.as_ref().map(|looks| looks.planned),
        cells: BTreeMap::new(),
        claims: Some(experiment.claims.iter().map(SideClaim::from).collect()),
    };
    record::write(&head, cells, out)
}

/// The results of cells, to be found by id.
struct ResultsById<'a> {
    results: &'a [CellResult<'a>],
    /// Places among them, by id.
    order: Vec<u32>,
}

impl<'a> ResultsById<'a> {
    /// Sorts the places of the results by the ids of their cells.
    fn new(results: &'a [CellResult<'a>]) -> Self {
        let mut order: Vec<u32> = (0..results.len() as u32).collect();
        order.sort_unstable_by_key(|place| results[*place as usize].cell.id);
        Self { results, order }
    }

    /// The results of the cell with this id; `None` if it has none.
    fn find(&self, id: CellId) -> Option<&'a CellResult<'a>> {
        let id_at = |place: &u32| self.results[*place as usize].cell.id;
        let found = self.order.binary_search_by_key(&id, id_at).ok()?;
        Some(&self.results[self.order[found] as usize])
    }
}

/// The hash of the text of a manifest and its overrides (`--set`), 16 hexadecimal digits. Where it is the same on both
/// sides, and so are the planned looks and the bits of all cells, the verdicts on claims are the same.
fn manifest_hash(text: &str, overrides: &[String]) -> String {
    let mut parts = vec![text];
    parts.extend(overrides.iter().map(String::as_str));
    record::hash(&parts.join("\n"))[..16].to_owned()
}

/// The plan of an experiment as it was last run; of a tuned experiment the plan of the fresh runs of what its results
/// select. `None` if this release cannot read its manifest, or the results that select are damaged.
fn plan_of(experiment: &StoredExperiment, store: &Store) -> Option<Plan> {
    let plan = crate::evidence::plan(experiment.name.clone(), experiment.source()).ok()?;
    tuned::follow(plan, store).ok()
}

/// What a side has of the plan of an experiment in a results folder.
struct PlannedSide {
    /// The cells of the plan with their ids, without results yet.
    cells: Vec<(CellId, SideCell)>,
    /// The looks that the folder records for the cells; `None` if there are none, or no claims that are judged at them.
    looks: Option<Looks>,
}

impl PlannedSide {
    /// Lists the cells of a plan, and reads the looks that were planned for them.
    ///
    /// # Errors
    /// If the record of looks is not as it was written.
    fn new(plan: &Plan, store: &Store) -> Result<Self, Error> {
        let looks = if plan.claim_tables.is_empty() { None } else { planned_looks(plan, store)? };
        Ok(Self { cells: planned_cells(plan.cells.iter()).collect(), looks })
    }
}

/// The cells of a plan as a side has them, with their ids, and without results yet.
fn planned_cells<'p>(
    cells: impl Iterator<Item = &'p Cell>,
) -> impl Iterator<Item = (CellId, SideCell)> {
    let mut canonical = CanonicalSettings::default();
    let mut label = Arc::<str>::default();
    cells.map(move |cell| {
        // Neighbours mostly have the same label, which they share.
        if *label != *cell.label {
            label = cell.label.as_str().into();
        }
        let settings = canonical.of(&cell.identity);
        (cell.id, SideCell { label: label.clone(), settings, ..SideCell::default() })
    })
}

/// The seed that the settings of a cell name; `None` if they name none, or no whole number.
fn seed_of(cell: &SideCell) -> Option<u64> {
    cell.settings.at_path("seed")?.to_string().parse().ok()
}

impl ResultsFolder {
    /// Opens a results folder that exists, and finds the experiments that it holds.
    ///
    /// # Errors
    /// If it is no results folder, or a file of an experiment cannot be read.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let store = Store::open_existing(root)?;
        let experiments = store.experiments()?;
        Ok(Self { store, experiments })
    }

    /// Makes a side of this name from the folder: all cells with the digests of their traces, after a check of every
    /// file. Final errors and claims are not read yet: [`fill`](Self::fill) and [`judge`](Self::judge) add those that
    /// a comparison needs, once both sides are known. Cells of the plan without results are missing ones; stored cells
    /// that the plan does not have are left out, unless the plan cannot be made.
    ///
    /// # Errors
    /// If a folder cannot be read, or the record of planned looks is not as it was written. A damaged file of results
    /// is no error: its cells are damaged.
    pub fn side(&self, name: String) -> Result<Side, Error> {
        // A plan is dropped once its cells are listed, to save memory.
        let planned: Vec<Option<PlannedSide>> = self
            .experiments
            .par_iter()
            .with_max_len(1)
            .map(|experiment| {
                plan_of(experiment, &self.store)
                    .map(|plan| PlannedSide::new(&plan, &self.store))
                    .transpose()
            })
            .collect::<Result<_, Error>>()?;
        let mut side = Side { name, ..Side::default() };
        for (experiment, planned) in self.experiments.iter().zip(planned) {
            // This release may not be able to read a manifest of another one; the cells can still be
            // compared.
            let PlannedSide { cells, looks } = match planned {
                Some(planned) => planned,
                None => PlannedSide { cells: self.stored_cells(&experiment.name)?, looks: None },
            };
            let mut cells: BTreeMap<CellId, SideCell> = cells.into_iter().collect();
            let mut each: Vec<(&CellId, &mut SideCell)> = cells.iter_mut().collect();
            each.par_iter_mut().for_each(|(id, cell)| self.check_cell(&experiment.name, id, cell));
            self.store.release(&experiment.name);
            let record = SideExperiment {
                schema: SCHEMA,
                seed: cells.values().find_map(seed_of).unwrap_or_default(),
                manifest: manifest_hash(&experiment.source.text, &experiment.source.overrides),
                looks,
                cells,
                claims: None,
            };
            side.experiments.insert(experiment.name.clone(), record);
        }
        Ok(side)
    }

    /// The cells of an experiment whose manifest cannot be read, with the labels and settings that are stored with
    /// their results, and without results yet. Cells that have no results are not known then.
    fn stored_cells(&self, experiment: &str) -> Result<Vec<(CellId, SideCell)>, Error> {
        let mut cells = Vec::new();
        let mut canonical = CanonicalSettings::default();
        for id in self.store.ids(experiment)? {
            let settings = canonical.of_table(self.store.settings(experiment, &id)?);
            let summary = self.store.summary(experiment, &id)?;
            let label = summary.map_or("".into(), |summary| summary.label);
            cells.push((id, SideCell { label, settings, ..SideCell::default() }));
        }
        Ok(cells)
    }

    /// Adds the digest and the time of a cell after a check of its file. The cell stays missing if nothing is stored,
    /// and becomes damaged if the check fails.
    fn check_cell(&self, experiment: &str, id: &str, cell: &mut SideCell) {
        match self.store.checked_summary(experiment, id) {
            Ok(Some(record)) => {
                cell.runs = SideRuns::done(record.digest, []);
                cell.seconds = Some(record.seconds);
            }
            Ok(None) => {}
            Err(e) => cell.runs = damaged(&e),
        }
    }

    /// Reads the final values that a comparison of `side`, which [`side`](Self::side) made, with the other side
    /// needs: those of the cells whose digest the other side does not have under the same id. Cells with equal
    /// digests need none.
    pub fn fill(&self, side: &mut Side, other: &Side) {
        for (name, record) in &mut side.experiments {
            let Some(theirs) = other.experiments.get(name) else { continue };
            let mut ids: Vec<&str> = Vec::new();
            let mut changed: Vec<Option<(&CellId, &mut SideCell)>> = Vec::new();
            for (id, cell) in &mut record.cells {
                let is_same = theirs.cells.get(id).is_some_and(|c| c.digest() == cell.digest());
                if !is_same {
                    ids.push(id.as_str());
                    changed.push(Some((id, cell)));
                }
            }
            // In this order each file is read once.
            let mut ordered: Vec<(&CellId, &mut SideCell)> = Vec::with_capacity(changed.len());
            for place in self.store.reading_order(name, &ids) {
                ordered.extend(changed[place].take());
            }
            let chunk = crate::evidence::cells_per_task(ordered.len());
            ordered.par_chunks_mut(chunk).for_each(|cells| {
                for (id, cell) in cells {
                    self.read_finals(name, id, cell);
                }
            });
        }
    }

    /// Reads the final values of a cell by which its runs are compared. It becomes damaged if they cannot be read; a
    /// cell without sound results stays as it is.
    fn read_finals(&self, experiment: &str, id: &str, cell: &mut SideCell) {
        let compared_by = cell.compared_by();
        let SideRuns::Done { finals, .. } = &mut cell.runs else { return };
        match self.store.finals(experiment, id, compared_by) {
            Ok(read) => *finals = read.into(),
            Err(e) => cell.runs = damaged(&e),
        }
    }

    /// Judges the claims of the experiments that both sides have and whose results or planned looks differ. Where
    /// manifest, looks and bits are the same, so are the verdicts: `side` takes the claims of the other side, or an
    /// empty list if the other side has not judged them. If the other side is a results folder too, its own call then
    /// takes this list, so that no claim of the experiment is a change.
    pub fn judge(&self, side: &mut Side, other: &Side) {
        side.experiments.par_iter_mut().for_each(|(name, record)| {
            let Some(theirs) = other.experiments.get(name) else { return };
            record.claims = if has_same_results(record, theirs) {
                // The other side's verdicts, or none on either side.
                theirs.claims.clone().or_else(|| Some(Vec::new()))
            } else {
                self.judge_experiment(name)
            };
        });
    }

    /// The claims of an experiment of this folder with their verdicts; `None` if the folder does not have it, there is
    /// no plan of it ([`plan_of`]), or its claims cannot be judged ([`Self::judge_claims`]), as where results are
    /// damaged.
    fn judge_experiment(&self, name: &str) -> Option<Vec<SideClaim>> {
        let stored = self.experiments.iter().find(|experiment| experiment.name == *name)?;
        let plan = plan_of(stored, &self.store)?;
        self.judge_claims(&plan).ok()
    }

    /// The claims of a plan with their verdicts by the results in this folder; empty if it has none.
    ///
    /// # Errors
    /// If results are damaged, an instance that theory needs cannot be built, for instance because a data file is
    /// missing, or a frontier cannot be computed.
    fn judge_claims(&self, plan: &Plan) -> Result<Vec<SideClaim>, Error> {
        if plan.claim_tables.is_empty() {
            return Ok(Vec::new());
        }
        let judged = crate::evidence::judged(plan, &self.store)?;
        Ok(judged.iter().map(SideClaim::from).collect())
    }

    /// The traces of a cell, one per replicate, for the curves of a change; `None` if nothing is stored, or if it is
    /// damaged.
    pub fn traces(&self, experiment: &str, id: &str) -> Option<Vec<Trace>> {
        let mut traces = self.store.read(experiment, id).ok().flatten()?.traces;
        hold_last_values(&mut traces);
        Some(traces)
    }
}

/// The runs of a cell whose file is damaged, with the name of the file and what is wrong with it.
fn damaged(error: &Error) -> SideRuns {
    let file = error.path.file_name().unwrap_or_default().to_string_lossy();
    SideRuns::Damaged(format!("{file} {}", error.message))
}

/// Whether an experiment has the same manifest and the same planned looks on both sides, and the same bits in every
/// cell. A cell without results on either side makes it false. The looks decide at which level claims are judged, and
/// on which replicates.
fn has_same_results(a: &SideExperiment, b: &SideExperiment) -> bool {
    if a.manifest != b.manifest || a.looks != b.looks || a.cells.len() != b.cells.len() {
        return false;
    }
    a.cells.iter().all(|(id, cell)| {
        // Cells without results may differ once they have some.
        cell.digest().is_some() && b.cells.get(id).is_some_and(|c| c.digest() == cell.digest())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_runner::trace::TraceDigest;

    #[test]
    fn other_looks_at_the_same_bits_may_have_other_verdicts() {
        let runs = SideRuns::done(TraceDigest::of("a"), []);
        let cell = SideCell { runs, ..SideCell::new("FedAvg", []) };
        let judged = |looks: Option<Looks>| SideExperiment {
            manifest: "m".into(),
            looks,
            cells: [(CellId::of("x"), cell.clone())].into(),
            ..SideExperiment::default()
        };
        let looks =
            [None, Some(Looks { first: 10, most: 40 }), Some(Looks { first: 10, most: 80 })];
        for (i, a) in looks.into_iter().enumerate() {
            for (j, b) in looks.into_iter().enumerate() {
                assert_eq!(has_same_results(&judged(a), &judged(b)), i == j, "{a:?}, {b:?}");
            }
        }
    }
}
