//! Several results folders put together: what each holds, what may be mixed, what is copied.
//!
//! *Invariant*: nothing is chosen between numbers. A cell that two folders hold is kept if
//! their digests are equal; where they differ none is copied, and what was there stays.
//! Every cell is checked by its hash where it is read and again where it is copied.

use super::pack::{self, Pack};
use super::{CELL, FailedRecord, ListedExperiment, Store, StoredExperiment, TRACES};
use driftbench_runner::files::{Error, TemporaryFolder, error, read_plain};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

/// Where a cell is, by experiment and id.
pub type Key = (String, String);

/// A sound copy of a cell in one of the folders.
struct Copy {
    folder: usize,
    digest: Box<str>,
    /// The pack that it is in, by its place among all.
    pack: Option<usize>,
}

/// What is not as it was written.
struct Damage {
    folder: usize,
    error: Error,
    /// The cells that it was, where that can be told.
    cells: Vec<Key>,
}

/// What some results folders hold; the first is the one that they are put into.
pub struct Survey<'a> {
    folders: &'a [Store],
    sound: BTreeMap<Key, Vec<Copy>>,
    packs: Vec<Pack>,
    damaged: Vec<Damage>,
    failed: BTreeMap<Key, (usize, FailedRecord)>,
    experiments: BTreeMap<String, Vec<(usize, StoredExperiment)>>,
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
    pub healed: usize,
}

/// Time between two looks whether another run has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

impl<'a> Survey<'a> {
    /// Looks through all folders, reading and checking every file.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn new(folders: &'a [Store]) -> Result<Self, Error> {
        let mut survey = Self {
            folders,
            sound: BTreeMap::new(),
            packs: Vec::new(),
            damaged: Vec::new(),
            failed: BTreeMap::new(),
            experiments: BTreeMap::new(),
            versions: BTreeMap::new(),
            preferred: None,
        };
        // What they are put into may not be there yet.
        for (folder, store) in folders.iter().enumerate().filter(|(_, s)| s.root.is_dir()) {
            for experiment in store.experiments()? {
                survey.look(folder, store, &experiment.name)?;
                let kept = survey.experiments.entry(experiment.name.clone()).or_default();
                kept.push((folder, experiment));
            }
        }
        Ok(survey)
    }

    /// Looks through an experiment: first packs, of which the latest counts, then cells in
    /// folders of their own, which count before packs.
    fn look(&mut self, folder: usize, store: &Store, name: &str) -> Result<(), Error> {
        store.see_inside(name)?;
        let key = |id: &str| (name.to_owned(), id.to_owned());
        let mut found: HashMap<String, (Copy, String)> = HashMap::new();
        let mut packs = Vec::new();
        for place in pack::folders(&store.folder(name))? {
            match Pack::open(&place).map(|pack| (pack.check(), pack)) {
                Ok((Ok(()), pack)) => packs.push(pack),
                Ok((Err(error), pack)) => {
                    let cells = pack.cells().map(|(id, _)| key(id)).collect();
                    self.damaged.push(Damage { folder, error, cells });
                }
                Err(error) => self.damaged.push(Damage { folder, error, cells: Vec::new() }),
            }
        }
        packs.sort_by_key(Pack::generation);
        for pack in packs {
            let place = Some(self.packs.len());
            for (id, digest) in pack.cells() {
                let copy = Copy { folder, digest: digest.into(), pack: place };
                found.insert(id.to_owned(), (copy, pack.version().to_owned()));
            }
            self.packs.push(pack);
        }
        for id in store.folders_of_cells(name)? {
            let record = store.own_record(name, &id);
            let checked = record.and_then(|record| match record {
                Some(record) => store.bytes(name, &record).map(|_| Some(record)),
                None => Ok(None),
            });
            match checked {
                Ok(Some(record)) => {
                    let copy = Copy { folder, digest: record.digest.into(), pack: None };
                    found.insert(id, (copy, record.provenance.version));
                }
                Ok(None) => match store.failed(name, &id) {
                    Ok(Some(failed)) => {
                        self.failed.entry(key(&id)).or_insert((folder, failed));
                    }
                    Ok(None) => {}
                    Err(error) => {
                        self.damaged.push(Damage { folder, error, cells: vec![key(&id)] });
                    }
                },
                Err(error) => {
                    found.remove(&id);
                    self.damaged.push(Damage { folder, error, cells: vec![key(&id)] });
                }
            }
        }
        for (id, (copy, version)) in found {
            *self.versions.entry(version).or_default().entry(folder).or_default() += 1;
            self.sound.entry(key(&id)).or_default().push(copy);
        }
        Ok(())
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
    pub fn manifests_apart(&self) -> Vec<[(usize, &StoredExperiment); 2]> {
        let differ = |(a, b): (&StoredExperiment, &StoredExperiment)| {
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
                digests.entry(copy.digest.to_string()).or_default().push(copy.folder);
            }
            (digests.len() > 1).then(|| Conflict { cell: cell.clone(), digests })
        };
        self.sound.iter().filter_map(conflict).collect()
    }

    /// What is not as it was written, and whether there are sound copies of all of it.
    pub fn damaged(&self) -> impl Iterator<Item = (&Error, bool)> {
        self.damaged.iter().map(|damage| {
            let sound = damage.cells.iter().all(|cell| self.sound.contains_key(cell));
            (&damage.error, sound && !damage.cells.is_empty())
        })
    }

    /// Copies what the first folder lacks, but for cells in conflict. `busy` is told the
    /// name of an experiment on which another run is at work, which is waited for.
    ///
    /// # Errors
    /// If something cannot be read or written; what was copied before stays.
    pub fn copy(&self, busy: &dyn Fn(&str)) -> Result<Copied, Error> {
        let mut copied = Copied::default();
        let Some(to) = self.folders.first() else { return Ok(copied) };
        to.create()?;
        let apart: BTreeSet<Key> = self.conflicts().into_iter().map(|c| c.cell).collect();
        for (name, kept) in &self.experiments {
            let _lock = locked(to, name, busy)?;
            let preferred = kept.iter().find(|(folder, _)| Some(*folder) == self.preferred);
            let chosen = preferred.or(kept.first()).filter(|(folder, _)| *folder > 0);
            if let Some((_, experiment)) = chosen {
                to.write_experiment_as(name, experiment)?;
            }
            for (folder, experiment) in kept.iter().filter(|(folder, _)| *folder > 0) {
                to.copy_data_files_from(&self.folders[*folder], experiment)?;
            }
            // What is damaged there makes room, its packs at once, cells where they are copied.
            to.recover(name)?;
            let hurt = self.damaged.iter().filter(|damage| damage.folder == 0);
            let hurt: HashSet<&Key> = hurt.flat_map(|damage| &damage.cells).collect();
            let (first, last) = ((name.clone(), String::new()), (name.clone(), "g".to_owned()));
            let mut packs = BTreeSet::new();
            for (cell, copies) in self.sound.range(first..last) {
                let source = &copies[0];
                if source.folder == 0 {
                    copied.had += 1;
                    continue;
                }
                if apart.contains(cell) {
                    continue;
                }
                match hurt.contains(cell) {
                    true => {
                        if to.cell_folder(&cell.0, &cell.1).is_dir() {
                            to.quarantine(&cell.0, &cell.1)?;
                        }
                        copied.healed += 1;
                    }
                    false => copied.new += 1,
                }
                match source.pack {
                    Some(pack) => {
                        packs.insert(pack);
                    }
                    None => copy_cell(&self.folders[source.folder], to, cell)?,
                }
            }
            let without: HashSet<&str> =
                apart.iter().filter(|(of, _)| of == name).map(|(_, id)| id.as_str()).collect();
            let folder = to.make_folder(name)?;
            packs.into_iter().try_for_each(|pack| self.packs[pack].copy(&folder, &without))?;
            to.forget(name);
        }
        self.copy_failures(to)?;
        Ok(copied)
    }

    /// Copies why cells failed, where no folder has results of them.
    fn copy_failures(&self, to: &Store) -> Result<(), Error> {
        for (cell, (folder, failed)) in &self.failed {
            if *folder > 0 && !self.sound.contains_key(cell) {
                to.write_failed(&FailedRecord { experiment: cell.0.clone(), ..failed.clone() })?;
            }
        }
        Ok(())
    }
}

/// The lock of an experiment, as soon as it can be had.
fn locked(store: &Store, name: &str, busy: &dyn Fn(&str)) -> Result<super::Lock, Error> {
    let mut told = false;
    loop {
        if let Some(lock) = store.try_lock(name)? {
            return Ok(lock);
        }
        if !std::mem::replace(&mut told, true) {
            busy(name);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Copies a cell that has a folder of its own. Its bytes are checked once more on the way.
fn copy_cell(from: &Store, to: &Store, (experiment, id): &Key) -> Result<(), Error> {
    let source = from.cell_folder(experiment, id).join(CELL);
    let gone = || error(&source, "is not there any more");
    let record = from.own_record(experiment, id)?.ok_or_else(gone)?;
    let bytes = from.bytes(experiment, &record)?;
    let temporary = TemporaryFolder::new(&to.make_folder(experiment)?)?;
    temporary.add(TRACES, &bytes)?;
    temporary.add(CELL, &read_plain(&source)?)?;
    temporary.settle(&to.cell_folder(experiment, id))
}

impl Store {
    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How many cells the folder holds, sound or not: what progress counts.
    pub fn count(&self) -> usize {
        let count = |(name, _): &ListedExperiment| self.ids(name).map_or(0, |ids| ids.len());
        self.listing().map_or(0, |all| all.iter().map(count).sum())
    }
}
