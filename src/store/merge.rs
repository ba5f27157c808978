//! Merging several results folders into one: reads them, compares their cells, copies.
//!
//! *Invariant*: merging never chooses between numbers. A cell that two folders hold is copied if
//! their digests are equal; if they differ it is not copied, and existing results stay. Every
//! cell is checked by its hash when the folders are read and again when it is copied.

use super::pack::Pack;
use super::packs::Packs;
use super::paths::{contents, failed_cell, file_name};
use super::{FailedRecord, PlannedLooks, Results, Store, StoredExperiment};
use crate::stats::looks::Looks;
use exactfed_runner::data::DataFolder;
use exactfed_runner::files::Error;
use exactfed_runner::trace::TraceDigest;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

/// An experiment, and two folders with the looks that each has planned for the same cells.
pub type DifferentLooks<'a> = (&'a str, [(usize, Looks); 2]);

/// A cell, by its experiment and its id.
pub type CellKey = (String, String);

/// A sound copy of a cell in one of the folders.
struct SoundCopy {
    folder: usize,
    digest: TraceDigest,
    /// Its pack, by its place among all, and its number there.
    place: (usize, usize),
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
    packs: Vec<PathBuf>,
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
    /// Reads all folders, or this experiment in them alone, and checks every file.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn new(folders: &'a [Store], only: Option<&str>) -> Result<Self, Error> {
        let mut sources = Self { folders, ..Self::default() };
        // The folder that they are merged into may not exist yet.
        for (folder, store) in folders.iter().enumerate().filter(|(_, s)| s.root.is_dir()) {
            let found = match only {
                None => store.experiments()?,
                Some(name) => vec![store.read_experiment(&store.folder(name), name)?],
            };
            for experiment in found {
                sources.read(folder, store, &experiment.name)?;
                let stored = sources.experiments.entry(experiment.name.clone()).or_default();
                stored.push((folder, experiment));
            }
        }
        Ok(sources)
    }

    /// Reads an experiment.
    fn read(&mut self, folder: usize, store: &Store, name: &str) -> Result<(), Error> {
        store.refuse_links(name)?;
        let packs = Packs::open(&store.folder(name))?;
        for (_, error) in &packs.damaged {
            self.damaged.push(Damage { folder, error: error.clone(), cells: Vec::new() });
        }
        for (k, pack) in packs.packs.iter().enumerate() {
            let key = |i: usize| (name.to_owned(), pack.cells[i].record.id.to_string());
            let current = packs.current(k);
            if let Err(error) = pack.check() {
                let cells = current.into_iter().map(key).collect();
                self.damaged.push(Damage { folder, error, cells });
                continue;
            }
            let version = self.versions.entry(pack.head.provenance.version.clone()).or_default();
            *version.entry(folder).or_default() += current.len();
            for i in current {
                let (digest, place) = (pack.cells[i].record.digest, (self.packs.len(), i));
                self.sound.entry(key(i)).or_default().push(SoundCopy { folder, digest, place });
            }
            self.packs.push(pack.path.clone());
        }
        for path in contents(&store.folder(name))?.1 {
            let file = file_name(&path);
            let Some(id) = failed_cell(&file) else { continue };
            let key = (name.to_owned(), id.to_owned());
            match store.failed(name, id) {
                Ok(None) => {}
                Ok(Some(failed)) => {
                    self.failed.entry(key).or_insert((folder, failed));
                }
                Err(error) => self.damaged.push(Damage { folder, error, cells: vec![key] }),
            }
        }
        Ok(())
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
                // Cells in conflict or damaged are not copied, so that the merge lacks them.
                let has_all = conflicts.is_empty() && self.damaged.is_empty();
                let complete = experiment.complete.clone().filter(|_| has_all);
                to.write_stored(&StoredExperiment { complete, ..experiment.clone() })?;
            }
            for (folder, experiment) in stored.iter().filter(|(folder, _)| *folder > 0) {
                let from = &self.folders[*folder];
                let copies = DataFolder::of_copies(Store::copies(&from.root));
                let files = experiment.source.files.iter();
                let sound = files.filter(|(_, hash)| copies.sound_copy(hash).is_some());
                to.copy_data_files(&copies, sound)?;
                to.copy_looks(from, name)?;
            }
            // This quarantines damaged files of the first folder.
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
        let mut chosen: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (cell, copies) in self.sound.range(first..last) {
            let source = &copies[0];
            if source.folder == 0 {
                copied.had += 1;
                continue;
            }
            if conflicts.contains(cell) {
                continue;
            }
            let count = if damaged.contains(cell) { &mut copied.healed } else { &mut copied.new };
            *count += 1;
            chosen.entry(source.place.0).or_default().push(source.place.1);
        }
        let folder = to.make_folder(name)?;
        for (pack, mut cells) in chosen {
            cells.sort_unstable();
            Pack::open(&self.packs[pack])?.copy(&folder, &cells)?;
        }
        to.forget_packs(name);
        Ok(())
    }
}
