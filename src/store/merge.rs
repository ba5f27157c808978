//! Merging several results folders into one: reads them, compares their cells, copies.
//!
//! *Invariant*: merging never chooses between numbers. A cell that two folders hold is copied if
//! their digests are equal; if they differ it is not copied, and existing results stay. Every
//! cell is checked by its hash when the folders are read and again when it is copied.

use super::batch::Batch;
use super::packs::open_packs;
use super::paths::{file_name, is_cell};
use super::{FailedRecord, PlannedLooks, Store, StoredExperiment};
use crate::stats::looks::Looks;
use exactfed_runner::files::Error;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

/// An experiment, and two folders with the looks that each has planned for the same cells.
pub type DifferentLooks<'a> = (&'a str, [(usize, Looks); 2]);

/// A cell, by its experiment and its id.
pub type CellKey = (String, String);

/// A sound copy of a cell in one of the folders.
struct SoundCopy {
    folder: usize,
    digest: Box<str>,
    /// Its batch, by its place among all.
    batch: usize,
}

/// A file that is not as it was written.
struct Damage {
    folder: usize,
    error: Error,
    /// The cells that it holds, as far as they are known.
    cells: Vec<CellKey>,
}

/// The contents of some results folders; the first is the one that they are merged into.
#[derive(Default)]
pub struct MergeSources<'a> {
    folders: &'a [Store],
    sound: BTreeMap<CellKey, Vec<SoundCopy>>,
    batches: Vec<PathBuf>,
    damaged: Vec<Damage>,
    failed: BTreeMap<CellKey, (usize, FailedRecord)>,
    experiments: BTreeMap<String, Vec<(usize, StoredExperiment)>>,
    /// The versions of exactfed that computed the cells, with the number of cells by folder.
    pub versions: BTreeMap<String, BTreeMap<usize, usize>>,
    /// The folder whose manifests are preferred if folders hold different ones.
    pub preferred: Option<usize>,
}

/// A cell of which two folders hold different numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The cell.
    pub cell: CellKey,
    /// Digests and the places of the folders that hold them.
    pub digests: BTreeMap<String, Vec<usize>>,
}

/// The number of cells that a merge copied.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CopiedCells {
    /// Cells that the first folder lacked.
    pub new: usize,
    /// Cells that it had.
    pub had: usize,
    /// Cells that it had damaged: quarantined, and copied.
    pub healed: usize,
}

impl<'a> MergeSources<'a> {
    /// Reads all folders and checks every file.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn new(folders: &'a [Store]) -> Result<Self, Error> {
        let mut sources = Self { folders, ..Self::default() };
        // The folder that they are merged into may not exist yet.
        for (folder, store) in folders.iter().enumerate().filter(|(_, s)| s.root.is_dir()) {
            for experiment in store.experiments()? {
                sources.read(folder, store, &experiment.name)?;
                let stored = sources.experiments.entry(experiment.name.clone()).or_default();
                stored.push((folder, experiment));
            }
        }
        Ok(sources)
    }

    /// Reads an experiment: first packs, of which the latest counts, then the folders of single
    /// cells, which count before packs.
    fn read(&mut self, folder: usize, store: &Store, name: &str) -> Result<(), Error> {
        store.refuse_links(name)?;
        let mut found: HashMap<String, (SoundCopy, String)> = HashMap::new();
        for (place, pack) in open_packs(&store.folder(name))? {
            self.add(folder, name, place, pack, &mut found);
        }
        for id in store.cell_folders(name)? {
            let place = store.cell_folder(name, &id);
            let key = (name.to_owned(), id);
            match Batch::open_single(&place).transpose() {
                Some(batch) => self.add(folder, name, place, batch, &mut found),
                None => match store.failed(name, &key.1) {
                    Ok(None) => {}
                    Ok(Some(failed)) => {
                        self.failed.entry(key).or_insert((folder, failed));
                    }
                    Err(error) => self.damaged.push(Damage { folder, error, cells: vec![key] }),
                },
            }
        }
        for (id, (copy, version)) in found {
            *self.versions.entry(version).or_default().entry(folder).or_default() += 1;
            self.sound.entry((name.to_owned(), id)).or_default().push(copy);
        }
        Ok(())
    }

    /// Adds the cells of a batch to those that were found in an experiment's folder, if it is as
    /// it was written.
    fn add(
        &mut self,
        folder: usize,
        experiment: &str,
        place: PathBuf,
        batch: Result<Batch, Error>,
        found: &mut HashMap<String, (SoundCopy, String)>,
    ) {
        let name = file_name(&place);
        let ids: Vec<&str> = match &batch {
            Ok(batch) => batch.cells().map(|(id, _)| id).collect(),
            Err(_) if is_cell(&name) => vec![&name],
            Err(_) => Vec::new(),
        };
        let cells: Vec<CellKey> =
            ids.iter().map(|id| (experiment.to_owned(), (*id).to_owned())).collect();
        match batch.and_then(|batch| batch.check().map(|()| batch)) {
            Ok(batch) => {
                for (id, digest) in batch.cells() {
                    let copy =
                        SoundCopy { folder, digest: digest.into(), batch: self.batches.len() };
                    found.insert(id.to_owned(), (copy, batch.head.provenance.version.clone()));
                }
                self.batches.push(place);
            }
            Err(error) => {
                // The folder of a damaged cell counts before the packs until it is quarantined.
                if is_cell(&name) {
                    found.remove(&name);
                }
                self.damaged.push(Damage { folder, error, cells });
            }
        }
    }

    /// Experiments of which two folders hold manifests that mean different things (the
    /// manifest's text, a `--set` or a data file), and of which no manifest is preferred. The
    /// name of the manifest's file does not matter.
    pub fn different_manifests(&self) -> Vec<[(usize, &StoredExperiment); 2]> {
        let mut different = Vec::new();
        for stored in self.experiments.values() {
            let Some(((folder, first), rest)) = stored.split_first() else { continue };
            let differs = |(_, other): &&(usize, StoredExperiment)| {
                let (one, other) = (&first.source, &other.source);
                (&one.text, &one.overrides, &one.files)
                    != (&other.text, &other.overrides, &other.files)
            };
            if self.preferred_of(stored).is_none()
                && let Some((other, second)) = rest.iter().find(differs)
            {
                different.push([(*folder, first), (*other, second)]);
            }
        }
        different
    }

    /// Experiments for whose cells two folders planned different looks, with the folders.
    ///
    /// # Errors
    /// If a record of looks is not as it was written.
    pub fn different_looks(&self) -> Result<Vec<DifferentLooks<'_>>, Error> {
        let mut different = Vec::new();
        for (name, stored) in &self.experiments {
            let mut known: Vec<(usize, PlannedLooks)> = Vec::new();
            for (folder, _) in stored {
                for planned in self.folders[*folder].planned_looks(name)? {
                    let other = known.iter().find(|(_, other)| other.cells == planned.cells);
                    match other.map(|(first, other)| (*first, other.looks)) {
                        Some((first, looks)) if looks != planned.looks => {
                            different.push((&**name, [(first, looks), (*folder, planned.looks)]));
                        }
                        _ => known.push((*folder, planned)),
                    }
                }
            }
        }
        Ok(different)
    }

    /// The experiment of the preferred folder, if it has it.
    fn preferred_of<'s>(
        &self,
        stored: &'s [(usize, StoredExperiment)],
    ) -> Option<&'s (usize, StoredExperiment)> {
        stored.iter().find(|(folder, _)| Some(*folder) == self.preferred)
    }

    /// Cells of which folders hold different numbers.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let conflict = |(cell, copies): (&CellKey, &Vec<SoundCopy>)| {
            let mut digests: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for copy in copies {
                digests.entry(copy.digest.to_string()).or_default().push(copy.folder);
            }
            (digests.len() > 1).then(|| Conflict { cell: cell.clone(), digests })
        };
        self.sound.iter().filter_map(conflict).collect()
    }

    /// The damaged files, and whether there are sound copies of all their cells.
    pub fn damaged(&self) -> impl Iterator<Item = (&Error, bool)> {
        self.damaged.iter().map(|damage| {
            let sound = damage.cells.iter().all(|cell| self.sound.contains_key(cell));
            (&damage.error, sound && !damage.cells.is_empty())
        })
    }

    /// Copies the cells that the first folder lacks, except those in conflict. If another run
    /// holds the lock of an experiment, its name is reported to `busy` and the lock is waited
    /// for.
    ///
    /// # Errors
    /// If a file cannot be read or written; cells that were copied before stay.
    pub fn copy(&self, busy: &dyn Fn(&str)) -> Result<CopiedCells, Error> {
        let mut copied = CopiedCells::default();
        let Some(to) = self.folders.first() else { return Ok(copied) };
        to.create()?;
        let conflicts: BTreeSet<CellKey> = self.conflicts().into_iter().map(|c| c.cell).collect();
        for (name, stored) in &self.experiments {
            let _lock = to.lock_first(&[name], &|| false, busy)?;
            let preferred = self.preferred_of(stored).or(stored.first());
            if let Some((_, experiment)) = preferred.filter(|(folder, _)| *folder > 0) {
                to.write_experiment_as(name, experiment)?;
            }
            for (folder, experiment) in stored.iter().filter(|(folder, _)| *folder > 0) {
                to.copy_data_files_from(&self.folders[*folder], experiment)?;
                to.copy_looks(&self.folders[*folder], name)?;
            }
            // Damaged packs of the first folder are quarantined here, and damaged cells when
            // they are copied.
            to.recover(name)?;
            self.copy_cells(to, name, &conflicts, &mut copied)?;
        }
        for (cell, (folder, failed)) in &self.failed {
            if *folder > 0 && !self.sound.contains_key(cell) {
                to.write_failed(&FailedRecord { experiment: cell.0.clone(), ..failed.clone() })?;
            }
        }
        Ok(copied)
    }

    /// Copies the cells of an experiment that the first folder lacks, and counts them.
    fn copy_cells(
        &self,
        to: &Store,
        name: &str,
        conflicts: &BTreeSet<CellKey>,
        copied: &mut CopiedCells,
    ) -> Result<(), Error> {
        let damaged = self.damaged.iter().filter(|damage| damage.folder == 0);
        let damaged: HashSet<&CellKey> = damaged.flat_map(|damage| &damage.cells).collect();
        // No id, 16 hexadecimal digits, is above "g".
        let (first, last) = ((name.to_owned(), String::new()), (name.to_owned(), "g".to_owned()));
        let mut batches = BTreeSet::new();
        for (cell, copies) in self.sound.range(first..last) {
            let source = &copies[0];
            if source.folder == 0 {
                copied.had += 1;
                continue;
            }
            if conflicts.contains(cell) {
                continue;
            }
            if damaged.contains(cell) {
                if to.cell_folder(&cell.0, &cell.1).is_dir() {
                    to.quarantine(&cell.0, &cell.1)?;
                }
                copied.healed += 1;
            } else {
                copied.new += 1;
            }
            batches.insert(source.batch);
        }
        let without: HashSet<&str> = conflicts
            .iter()
            .filter(|(other, _)| other == name)
            .map(|(_, id)| id.as_str())
            .collect();
        let folder = to.make_folder(name)?;
        for batch in batches {
            Batch::open(&self.batches[batch])?.copy(&folder, &without)?;
        }
        to.forget_packs(name);
        Ok(())
    }
}
