//! A side from a results folder: the digests of all cells, and only those numbers of the Parquet
//! files that a comparison with the other side needs.
//!
//! *Invariant*: every file is checked against its hash; a cell whose file differs is damaged, and
//! the others are still compared.

use super::claims::SideClaim;
use super::record;
use super::side::{SCHEMA, Side, SideCell, SideExperiment, SideRuns};
use crate::evidence::results::Results;
use crate::evidence::{CellResult, Experiment, tuned};
use crate::store::{self, Store};
use exactfed_runner::files::Error;
use exactfed_runner::plan::{CanonicalSettings, Cell, CellId, Plan};
use exactfed_runner::trace::Trace;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// A results folder.
pub struct ResultsFolder {
    store: Store,
    experiments: Vec<store::StoredExperiment>,
}

/// Writes what a report stores of an analysed experiment for later diffs: [`record::FINALS`], and
/// returns the text of [`record::RECORD`].
///
/// # Errors
/// If `out` cannot be written.
pub fn write_record(experiment: &Experiment<'_>, out: &mut dyn Write) -> std::io::Result<String> {
    let plan = experiment.plan;
    let mut order: Vec<u32> = (0..plan.cells.len() as u32).collect();
    order.sort_unstable_by_key(|place| plan.cells[*place as usize].id);
    let mut results: Vec<u32> = (0..experiment.cells.len() as u32).collect();
    let result = |place: u32| &experiment.cells[place as usize];
    let compared_by = plan.manifest.record.default_quantity();
    results.sort_unstable_by_key(|place| result(*place).cell.id);
    let cell = |(id, mut cell): (CellId, SideCell)| {
        if let Ok(found) = results.binary_search_by_key(&id, |place| result(*place).cell.id) {
            let CellResult { digest, runs, .. } = result(results[found]);
            let finals = runs.finals_by_run(compared_by).into();
            cell.runs = SideRuns::Done { digest: *digest, finals };
        }
        (id, cell)
    };
    let cells = || planned(order.iter().map(|place| &plan.cells[*place as usize])).map(cell);
    let head = SideExperiment {
        schema: SCHEMA,
        seed: plan.manifest.seed,
        manifest: manifest(&plan.source.text, &plan.source.overrides),
        cells: BTreeMap::new(),
        claims: Some(experiment.claims.iter().map(SideClaim::from).collect()),
    };
    record::write(&head, cells, out)
}

/// The hash of a manifest and its overrides.
fn manifest(text: &str, overrides: &[String]) -> String {
    let parts: Vec<&str> = std::iter::once(text).chain(overrides.iter().map(|o| &**o)).collect();
    record::hash(&parts.join("\n"))[..16].to_owned()
}

/// An experiment as it was last run, if this release can read its manifest; a tuned one with what
/// its results select.
fn plan(experiment: &store::StoredExperiment, store: &Store) -> Option<Plan> {
    let plan = crate::evidence::plan(experiment.name.clone(), experiment.source()).ok()?;
    tuned::follow(plan, store).ok()
}

/// Cells of a plan, without results.
fn planned<'p>(cells: impl Iterator<Item = &'p Cell>) -> impl Iterator<Item = (CellId, SideCell)> {
    let (mut canonical, mut label) = (CanonicalSettings::default(), Arc::<str>::default());
    cells.map(move |cell| {
        if *label != *cell.label {
            label = cell.label.as_str().into();
        }
        let settings = canonical.of(&cell.identity);
        (cell.id, SideCell { label: label.clone(), settings, ..SideCell::default() })
    })
}

impl ResultsFolder {
    /// A results folder with the experiments that it holds.
    ///
    /// # Errors
    /// If it is no results folder, or a file of an experiment cannot be read.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let store = Store::open_existing(root)?;
        let experiments = store.experiments()?;
        Ok(Self { store, experiments })
    }

    /// The side with its digests, all files checked, and without final errors.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn side(&self, name: String) -> Result<Side, Error> {
        // This release may not be able to read a manifest of another one; the cells can still be
        // compared. A plan is dropped once its cells are listed, to save memory.
        let cells = |experiment: &store::StoredExperiment| {
            let plan = plan(experiment, &self.store)?;
            Some(planned(plan.cells.iter()).collect())
        };
        let all: Vec<Option<Vec<(CellId, SideCell)>>> =
            self.experiments.par_iter().with_max_len(1).map(cells).collect();
        let mut side = Side { name, ..Side::default() };
        for (experiment, cells) in self.experiments.iter().zip(all) {
            let cells = match cells {
                Some(cells) => cells,
                None => self.stored(&experiment.name)?,
            };
            let mut cells: BTreeMap<CellId, SideCell> = cells.into_iter().collect();
            let mut each: Vec<(&CellId, &mut SideCell)> = cells.iter_mut().collect();
            each.par_iter_mut().for_each(|(id, cell)| {
                **cell = self.check(&experiment.name, id, std::mem::take(cell));
            });
            self.store.release(&experiment.name);
            let seed = |cell: &SideCell| cell.settings.at_path("seed")?.to_string().parse().ok();
            let seed = cells.values().find_map(seed);
            let record = SideExperiment {
                schema: SCHEMA,
                seed: seed.unwrap_or_default(),
                manifest: manifest(&experiment.source.text, &experiment.source.overrides),
                cells,
                claims: None,
            };
            side.experiments.insert(experiment.name.clone(), record);
        }
        Ok(side)
    }

    /// The cells of an experiment whose manifest cannot be read, as they were stored.
    fn stored(&self, experiment: &str) -> Result<Vec<(CellId, SideCell)>, Error> {
        let (mut cells, mut canonical) = (Vec::new(), CanonicalSettings::default());
        for id in self.store.ids(experiment)? {
            let settings = canonical.of_table(self.store.settings(experiment, &id)?);
            let label = self.store.summary(experiment, &id)?.map_or("".into(), |s| s.label);
            cells.push((id, SideCell { label, settings, ..SideCell::default() }));
        }
        Ok(cells)
    }

    fn check(&self, experiment: &str, id: &str, cell: SideCell) -> SideCell {
        match self.store.checked_summary(experiment, id) {
            Ok(Some(record)) => SideCell {
                runs: SideRuns::Done { digest: record.digest, finals: Box::default() },
                seconds: Some(record.seconds),
                ..cell
            },
            Ok(None) => cell,
            Err(e) => SideCell { runs: damaged(&e), ..cell },
        }
    }

    /// Reads the final values that a comparison with the other side needs.
    pub fn fill(&self, side: &mut Side, other: &Side) {
        for (name, record) in &mut side.experiments {
            let Some(theirs) = other.experiments.get(name) else { continue };
            let same = |id: &CellId, cell: &SideCell| {
                theirs.cells.get(id).is_some_and(|c| c.digest() == cell.digest())
            };
            let wanted: Vec<(&CellId, &mut SideCell)> =
                record.cells.iter_mut().filter(|(id, cell)| !same(id, cell)).collect();
            let ids: Vec<&str> = wanted.iter().map(|(id, _)| id.as_str()).collect();
            let order = self.store.reading_order(name, &ids);
            let mut wanted: Vec<Option<(&CellId, &mut SideCell)>> =
                wanted.into_iter().map(Some).collect();
            let mut wanted: Vec<(&CellId, &mut SideCell)> =
                order.into_iter().filter_map(|place| wanted[place].take()).collect();
            let fill = |(id, cell): &mut (&CellId, &mut SideCell)| {
                let compared_by = cell.compared_by();
                if let SideRuns::Done { finals, .. } = &mut cell.runs {
                    match self.store.finals(name, id, compared_by) {
                        Ok(read) => *finals = read.into(),
                        Err(e) => cell.runs = damaged(&e),
                    }
                }
            };
            let chunk = crate::evidence::cells_per_task(wanted.len());
            wanted.par_chunks_mut(chunk).for_each(|some| some.iter_mut().for_each(fill));
        }
    }

    /// Judges the claims of experiments that changed; the verdicts of the others are the same.
    pub fn judge(&self, side: &mut Side, other: &Side) {
        side.experiments.par_iter_mut().for_each(|(name, record)| {
            let Some(theirs) = other.experiments.get(name) else { return };
            record.claims = if unchanged(record, theirs) {
                theirs.claims.clone().or_else(|| Some(Vec::new()))
            } else {
                let own = self.experiments.iter().find(|one| one.name == *name);
                own.and_then(|one| self.claims(&plan(one, &self.store)?).ok())
            };
        });
    }

    fn claims(&self, plan: &Plan) -> Result<Vec<SideClaim>, Error> {
        if plan.claim_tables.is_empty() {
            return Ok(Vec::new());
        }
        let judged = crate::evidence::judged(plan, &self.store)?;
        Ok(judged.iter().map(SideClaim::from).collect())
    }

    /// The traces of a cell, if they can be read.
    pub fn traces(&self, experiment: &str, id: &str) -> Option<Vec<Trace>> {
        self.store.read(experiment, id).ok().flatten().map(|stored| stored.traces)
    }
}

fn damaged(error: &Error) -> SideRuns {
    let file = error.path.file_name().unwrap_or_default().to_string_lossy();
    SideRuns::Damaged(format!("{file} {}", error.message))
}

/// Whether two records have the same manifest and the same bits in every cell.
fn unchanged(a: &SideExperiment, b: &SideExperiment) -> bool {
    let same = |(id, cell): (&CellId, &SideCell)| {
        cell.digest().is_some() && b.cells.get(id).is_some_and(|c| c.digest() == cell.digest())
    };
    a.manifest == b.manifest && a.cells.len() == b.cells.len() && a.cells.iter().all(same)
}
