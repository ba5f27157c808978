//! Several results folders put together: what each holds, what may be mixed, what is copied.
//!
//! *Invariant*: nothing is chosen between numbers. A cell that two folders hold is kept if
//! their digests are equal; where they differ none is copied, and what was there stays.
//! Every cell is checked by its hash where it is read and again where it is copied.

use super::{CELL, Experiment, Store, TRACES};
use crate::files::{Error, error, write_beside};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Where a cell is, by experiment and id.
pub type Key = (String, String);

/// A sound copy of a cell in one of the folders.
struct Copy {
    folder: usize,
    digest: String,
}

/// What some results folders hold; the first is the one that they are put into.
pub struct Survey<'a> {
    folders: &'a [Store],
    sound: BTreeMap<Key, Vec<Copy>>,
    damaged: BTreeMap<Key, Vec<(usize, Error)>>,
    experiments: BTreeMap<String, Vec<(usize, Experiment)>>,
    versions: BTreeMap<String, BTreeMap<usize, usize>>,
    preferred: Option<usize>,
}

/// A cell of which two folders hold different numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The cell.
    pub cell: Key,
    /// Digests and the folders that hold them, by their places.
    pub digests: BTreeMap<String, Vec<usize>>,
}

/// What was copied.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Cells that were not there.
    pub new: usize,
    /// Cells that were there.
    pub had: usize,
    /// Cells that were there damaged: set aside, and copied.
    pub healed: Vec<Key>,
}

impl<'a> Survey<'a> {
    /// Looks through all folders, reading and checking every file.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn new(folders: &'a [Store]) -> Result<Self, Error> {
        let mut survey = Self {
            folders,
            sound: BTreeMap::new(),
            damaged: BTreeMap::new(),
            experiments: BTreeMap::new(),
            versions: BTreeMap::new(),
            preferred: None,
        };
        // What they are put into may not be there yet.
        for (folder, store) in folders.iter().enumerate().filter(|(_, s)| s.root.is_dir()) {
            for experiment in store.experiments()? {
                let name = experiment.name.clone();
                for id in store.ids(&name)? {
                    survey.look(folder, store, (name.clone(), id));
                }
                survey.experiments.entry(name).or_default().push((folder, experiment));
            }
        }
        Ok(survey)
    }

    fn look(&mut self, folder: usize, store: &Store, cell: Key) {
        match store.checked(&cell.0, &cell.1) {
            Ok(Some(record)) => {
                let by = self.versions.entry(record.provenance.version).or_default();
                *by.entry(folder).or_default() += 1;
                let copy = Copy { folder, digest: record.digest };
                self.sound.entry(cell).or_default().push(copy);
            }
            Ok(None) => {}
            Err(e) => self.damaged.entry(cell).or_default().push((folder, e)),
        }
    }

    /// The versions of driftbench that computed the cells: how many cells by folder.
    pub fn versions(&self) -> &BTreeMap<String, BTreeMap<usize, usize>> {
        &self.versions
    }

    /// Says whose manifests are kept where folders hold different ones.
    pub fn prefer(&mut self, folder: usize) {
        self.preferred = Some(folder);
    }

    /// Experiments of which two folders hold manifests that mean different things: the
    /// manifest's text, a `--set` or a data file, and none of them is preferred. How its file
    /// was called does not matter.
    pub fn manifests_apart(&self) -> Vec<[(usize, &Experiment); 2]> {
        let differ = |(a, b): (&Experiment, &Experiment)| {
            a.text != b.text || a.overrides != b.overrides || a.files != b.files
        };
        let mut apart = Vec::new();
        for kept in self.experiments.values() {
            let Some((first, rest)) = kept.split_first() else { continue };
            if kept.iter().any(|(folder, _)| Some(*folder) == self.preferred) {
                continue;
            }
            if let Some(other) = rest.iter().find(|other| differ((&first.1, &other.1))) {
                apart.push([(first.0, &first.1), (other.0, &other.1)]);
            }
        }
        apart
    }

    /// Cells of which folders hold different numbers.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let conflict = |(cell, copies): (&Key, &Vec<Copy>)| {
            let mut digests: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for copy in copies {
                digests.entry(copy.digest.clone()).or_default().push(copy.folder);
            }
            (digests.len() > 1).then(|| Conflict { cell: cell.clone(), digests })
        };
        self.sound.iter().filter_map(conflict).collect()
    }

    /// Copies that are not as they were written, and whether there is a sound one.
    pub fn damaged(&self) -> impl Iterator<Item = (&Error, bool)> {
        self.damaged.iter().flat_map(|(cell, copies)| {
            let sound = self.sound.contains_key(cell);
            copies.iter().map(move |(_, e)| (e, sound))
        })
    }

    /// The cells of which there is a sound copy.
    pub fn cells(&self) -> impl Iterator<Item = &Key> {
        self.sound.keys()
    }

    /// Copies what the first folder lacks, but for cells in conflict.
    ///
    /// # Errors
    /// If something cannot be read or written; what was copied before stays.
    pub fn copy(&self) -> Result<Copied, Error> {
        let mut copied = Copied::default();
        let Some(to) = self.folders.first() else { return Ok(copied) };
        to.create()?;
        for (name, kept) in &self.experiments {
            let preferred = kept.iter().find(|(folder, _)| Some(*folder) == self.preferred);
            let chosen = preferred.or(kept.first()).filter(|(folder, _)| *folder > 0);
            if let Some((folder, experiment)) = chosen {
                keep(&self.folders[*folder], to, name, experiment)?;
            }
        }
        let apart: BTreeSet<Key> = self.conflicts().into_iter().map(|c| c.cell).collect();
        for (cell, copies) in self.sound.iter().filter(|(cell, _)| !apart.contains(*cell)) {
            let first = &copies[0];
            if first.folder == 0 {
                copied.had += 1;
                continue;
            }
            if self.damaged.get(cell).is_some_and(|c| c.iter().any(|(folder, _)| *folder == 0)) {
                to.set_aside(&cell.0, &cell.1)?;
                copied.healed.push(cell.clone());
            } else {
                copied.new += 1;
            }
            copy_cell(&self.folders[first.folder], to, cell)?;
        }
        Ok(copied)
    }
}

/// Copies an experiment's manifest.
fn keep(from: &Store, to: &Store, name: &str, experiment: &Experiment) -> Result<(), Error> {
    let path = from.folder(name).join(super::EXPERIMENT);
    let text = toml::to_string(experiment).map_err(|e| error(&path, e))?;
    let folder = to.folder(name);
    fs::create_dir_all(&folder).map_err(|e| error(&folder, e))?;
    write_beside(&folder.join(super::EXPERIMENT), text.as_bytes())
}

/// Copies a cell that is not there: beside its place, then renamed. Its bytes are checked
/// once more on the way.
fn copy_cell(from: &Store, to: &Store, (experiment, id): &Key) -> Result<(), Error> {
    let source = from.cell_folder(experiment, id);
    let gone = || error(&source.join(CELL), "is not there any more");
    let record = from.record(experiment, id)?.ok_or_else(gone)?;
    let bytes = from.bytes(experiment, &record)?;
    let folder = to.folder(experiment);
    fs::create_dir_all(&folder).map_err(|e| error(&folder, e))?;
    let beside = tempfile::Builder::new()
        .prefix(".writing-")
        .tempdir_in(&folder)
        .map_err(|e| error(&folder, e))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = beside.path().join(name);
        fs::write(&path, bytes).map_err(|e| error(&path, e))
    };
    write(TRACES, &bytes)?;
    let path = source.join(CELL);
    write(CELL, &fs::read(&path).map_err(|e| error(&path, e))?)?;
    let place = to.cell_folder(experiment, id);
    fs::rename(beside.path(), &place).map_err(|e| error(&place, e))?;
    let _ = beside.keep();
    Ok(())
}

impl Store {
    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How many cells the folder holds, complete or not: what progress counts.
    pub fn count(&self) -> usize {
        let count = |e: &Experiment| self.ids(&e.name).map_or(0, |ids| ids.len());
        self.experiments().map_or(0, |all| all.iter().map(count).sum())
    }
}
