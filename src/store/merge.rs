//! Merging several results folders into one: reads them, compares their cells, copies.
//!
//! *Invariant*: merging never chooses between numbers. A cell that two folders hold is copied if
//! their digests are equal; if they differ it is not copied, and existing results stay. Every
//! cell is checked by its hash when the folders are read and again when it is copied.
//!
//! The folders are read without locks, so that nothing is written unless the caller finds that they can be merged. A
//! run may change the first folder after that; so each experiment of it is read again once its lock is held. A merge
//! holds one lock at a time: a run that waits for a merge is never waited for by it.

use super::experiments::StoredExperiment;
use super::failures::FailedRecord;
use super::folder::Store;
use super::pack::Pack;
use super::packs::Packs;
use super::paths::{contents, failed_cell, file_name};
use crate::stats::looks::Looks;
use exactfed_evidence::results::{PlannedLooks, Results};
use exactfed_runner::data::DataFolder;
use exactfed_runner::files::{Error, error};
use exactfed_runner::trace::TraceDigest;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;

/// The name of an experiment, and two folders, by their indices among the merged ones, with the looks that each has
/// planned for the same cells.
pub type DifferentLooks<'a> = (&'a str, [(usize, Looks); 2]);

/// A cell, by its experiment and its id.
pub type CellKey = (String, String);

/// A sound copy of a cell in one of the folders.
struct SoundCopy {
    /// The index of the folder among the merged ones.
    folder: usize,
    /// The digest of the numbers.
    digest: TraceDigest,
    /// The index of its pack in [`MergeSources::packs`].
    pack: usize,
    /// The index of the cell in the pack.
    index: usize,
}

/// A pack that is as it was written.
struct SoundPack {
    /// The file.
    path: PathBuf,
    /// The index of its folder among the merged ones.
    folder: usize,
    /// The name of its experiment.
    experiment: String,
    /// The version of exactfed that computed its cells.
    version: String,
    /// The number of its cells that no later pack holds; 0 once the folder was read again, which has another entry for
    /// the pack if it is still there.
    cells: usize,
}

/// A file that is not as it was written.
struct Damage {
    /// The index of its folder among the merged ones.
    folder: usize,
    /// The name of its experiment.
    experiment: String,
    /// What is wrong with it.
    error: Error,
    /// The cells that it should hold; none if its index cannot be read, so that they are not known.
    cells: Vec<CellKey>,
}

/// The contents of some results folders: the others are merged into the first. A folder is
/// named by its index among them.
#[derive(Default)]
pub struct MergeSources<'a> {
    folders: &'a [Store],
    /// The sound copies of each cell, in the order of the folders.
    sound: BTreeMap<CellKey, Vec<SoundCopy>>,
    /// The sound packs of all folders.
    packs: Vec<SoundPack>,
    damaged: Vec<Damage>,
    /// The records of each failed cell, by the folders that hold them.
    failed: BTreeMap<CellKey, BTreeMap<usize, FailedRecord>>,
    /// Each experiment as it was last run in each of the folders that hold it, in the order of the folders.
    experiments: BTreeMap<String, Vec<(usize, StoredExperiment)>>,
    /// The looks at verdicts that were planned for each experiment, each with its folder, in the order of the folders.
    looks: BTreeMap<String, Vec<(usize, PlannedLooks)>>,
    /// The folder whose manifests are preferred if folders hold different ones. The caller sets it before it asks for
    /// differences or copies.
    pub preferred: Option<usize>,
}

/// A cell for which two folders hold different numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The cell.
    pub cell: CellKey,
    /// The different digests, each with the indices of the folders that hold numbers with it.
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
    /// Reads the experiments of all folders, or the one called `only`, which each folder that exists must have, and
    /// checks every file. The first folder may not exist yet. Nothing is written, and no lock is held.
    ///
    /// # Errors
    /// If a folder cannot be read, lacks the experiment `only`, or has an `experiment.toml` or a record of looks that
    /// is not as it was written. Damaged packs and records of failed cells are no errors ([`Self::damaged`]).
    pub fn new(folders: &'a [Store], only: Option<&str>) -> Result<Self, Error> {
        let mut sources = Self { folders, ..Self::default() };
        for (folder, store) in folders.iter().enumerate() {
            // The folder that they are merged into may not exist yet.
            if !store.root.is_dir() {
                continue;
            }
            let found = match only {
                None => store.experiments()?,
                Some(name) => vec![store.read_experiment(&store.folder(name), name)?],
            };
            for experiment in found {
                sources.add(folder, store, experiment, &HashSet::new())?;
            }
        }
        Ok(sources)
    }

    /// Reads the first folder's part of the experiment `name` again, whose lock the caller holds, in place of what was
    /// read before. Packs that were found sound are not checked again, since no pack is changed after it was written.
    fn read_again(&mut self, to: &Store, name: &str) -> Result<(), Error> {
        let mut checked = HashSet::new();
        for pack in &mut self.packs {
            if pack.folder == 0 && pack.experiment == name {
                pack.cells = 0;
                checked.insert(pack.path.clone());
            }
        }
        for (_, copies) in self.sound.range_mut(keys_of(name)) {
            copies.retain(|copy| copy.folder > 0);
        }
        self.sound.retain(|_, copies| !copies.is_empty());
        for (_, records) in self.failed.range_mut(keys_of(name)) {
            records.remove(&0);
        }
        self.damaged.retain(|damage| damage.folder > 0 || damage.experiment != name);
        if let Some(stored) = self.experiments.get_mut(name) {
            stored.retain(|(folder, _)| *folder > 0);
        }
        if let Some(planned) = self.looks.get_mut(name) {
            planned.retain(|(folder, _)| *folder > 0);
        }
        match to.find_experiment(name)? {
            Some(experiment) => self.add(0, to, experiment, &checked),
            None => Ok(()),
        }
    }

    /// Adds an experiment of a folder, which `store` opens: its packs, of which those in `checked` are known to be
    /// sound, and its records of failed cells and of planned looks. The first folder may come after the others, since
    /// it is read again; all lists stay in the order of the folders.
    fn add(
        &mut self,
        folder: usize,
        store: &Store,
        experiment: StoredExperiment,
        checked: &HashSet<PathBuf>,
    ) -> Result<(), Error> {
        let name = &experiment.name;
        self.read_packs(folder, store, name, checked)?;
        self.read_failed(folder, store, name)?;
        let looks = self.looks.entry(name.clone()).or_default();
        let place = looks.partition_point(|(other, _)| *other < folder);
        let planned = store.planned_looks(name)?;
        drop(looks.splice(place..place, planned.into_iter().map(|one| (folder, one))));
        let stored = self.experiments.entry(name.clone()).or_default();
        let place = stored.partition_point(|(other, _)| *other < folder);
        stored.insert(place, (folder, experiment));
        Ok(())
    }

    /// Reads the packs of the experiment `name` in a folder, which `store` opens, and checks those that are not in
    /// `checked`.
    fn read_packs(
        &mut self,
        folder: usize,
        store: &Store,
        name: &str,
        checked: &HashSet<PathBuf>,
    ) -> Result<(), Error> {
        store.refuse_links(name)?;
        let packs = Packs::open(&store.folder(name))?;
        for file in &packs.damaged {
            // Its index cannot be read, so that its cells are not known.
            self.damaged.push(Damage {
                folder,
                experiment: name.to_owned(),
                error: file.error.clone(),
                cells: Vec::new(),
            });
        }
        for (number, pack) in packs.sound.iter().enumerate() {
            let key = |i: usize| (name.to_owned(), pack.cells[i].record.id.to_string());
            let current = packs.current_cells(number);
            if !checked.contains(&pack.path)
                && let Err(error) = pack.check()
            {
                let cells = current.into_iter().map(key).collect();
                self.damaged.push(Damage { folder, experiment: name.to_owned(), error, cells });
                continue;
            }
            for &index in &current {
                let digest = pack.cells[index].record.digest;
                let copy = SoundCopy { folder, digest, pack: self.packs.len(), index };
                let copies = self.sound.entry(key(index)).or_default();
                copies.insert(copies.partition_point(|other| other.folder < folder), copy);
            }
            self.packs.push(SoundPack {
                path: pack.path.clone(),
                folder,
                experiment: name.to_owned(),
                version: pack.head.provenance.version.clone(),
                cells: current.len(),
            });
        }
        Ok(())
    }

    /// Reads the records of the failed cells of the experiment `name` in a folder, which `store` opens.
    fn read_failed(&mut self, folder: usize, store: &Store, name: &str) -> Result<(), Error> {
        for path in contents(&store.folder(name))?.files {
            let file = file_name(&path);
            let Some(id) = failed_cell(&file) else { continue };
            let key = (name.to_owned(), id.to_owned());
            match store.failed(name, id) {
                Ok(None) => {}
                Ok(Some(failed)) => {
                    self.failed.entry(key).or_default().insert(folder, failed);
                }
                Err(error) => {
                    let experiment = name.to_owned();
                    self.damaged.push(Damage { folder, experiment, error, cells: vec![key] });
                }
            }
        }
        Ok(())
    }

    /// The versions of exactfed that computed the sound cells of all experiments, each with the number of its cells in
    /// each folder. Folders are merged only if there is one version.
    pub fn versions(&self) -> BTreeMap<&str, BTreeMap<usize, usize>> {
        let mut versions: BTreeMap<&str, BTreeMap<usize, usize>> = BTreeMap::new();
        for pack in self.packs.iter().filter(|pack| pack.cells > 0) {
            let cells = versions.entry(&pack.version).or_default();
            *cells.entry(pack.folder).or_default() += pack.cells;
        }
        versions
    }

    /// The experiments for which two folders hold manifests that mean different things, with the indices of the
    /// folders: a merge needs a choice between them. Experiments of the preferred folder are left out, since it
    /// decides.
    pub fn different_manifests(&self) -> Vec<[(usize, &StoredExperiment); 2]> {
        self.experiments.values().filter_map(|stored| self.different_pair(stored)).collect()
    }

    /// The first folder that has an experiment and the first one whose manifest of it means something else, with the
    /// experiment as each has it; `None` if there is no such folder, or the preferred folder has the experiment.
    fn different_pair<'s>(
        &self,
        stored: &'s [(usize, StoredExperiment)],
    ) -> Option<[(usize, &'s StoredExperiment); 2]> {
        if self.preferred_of(stored).is_some() {
            return None;
        }
        let ((folder, first), rest) = stored.split_first()?;
        let (other, second) = rest.iter().find(|(_, other)| !same_meaning(first, other))?;
        Some([(*folder, first), (*other, second)])
    }

    /// The experiments for whose cells two folders planned different looks, with the indices of the folders. Such
    /// folders are not merged.
    pub fn different_looks(&self) -> Vec<DifferentLooks<'_>> {
        let mut different = Vec::new();
        for (name, looks) in &self.looks {
            different.extend(different_looks(looks).into_iter().map(|pair| (&**name, pair)));
        }
        different
    }

    /// Whether folders have different manifests of an experiment, planned different looks at its verdicts, or have
    /// cells, of this or of any other experiment, of different versions.
    fn differs(&self, name: &str) -> bool {
        self.versions().len() > 1
            || self.experiments.get(name).is_some_and(|all| self.different_pair(all).is_some())
            || self.looks.get(name).is_some_and(|looks| !different_looks(looks).is_empty())
    }

    /// The experiment as the preferred folder has it, among the folders' own; `None` without a preferred folder, or if
    /// it does not have the experiment.
    fn preferred_of<'s>(
        &self,
        stored: &'s [(usize, StoredExperiment)],
    ) -> Option<&'s (usize, StoredExperiment)> {
        stored.iter().find(|(folder, _)| Some(*folder) == self.preferred)
    }

    /// The cells for which folders hold different numbers, the first folder being one of those that are compared. A
    /// merge does not copy them.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        for (cell, copies) in &self.sound {
            let mut digests: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for copy in copies {
                digests.entry(copy.digest.to_string()).or_default().push(copy.folder);
            }
            if digests.len() > 1 {
                conflicts.push(Conflict { cell: cell.clone(), digests });
            }
        }
        conflicts
    }

    /// What is wrong with each damaged file, and whether the merge has all its cells from other files, so that nothing
    /// is lost.
    pub fn damaged(&self) -> impl Iterator<Item = (&Error, bool)> {
        self.damaged.iter().map(|damage| (&damage.error, self.is_healed(damage)))
    }

    /// Whether the merge has all cells of a damaged file; `false` if its cells are not known, since then nobody can
    /// tell.
    fn is_healed(&self, damage: &Damage) -> bool {
        let mut cells = damage.cells.iter();
        !damage.cells.is_empty()
            && cells.all(|cell| self.sound.get(cell).is_some_and(|copies| is_merged(copies)))
    }

    /// Copies what the first folder lacks: the cells, except those in conflict, the manifests, the data files, and the
    /// records of looks and of failed cells. If a run holds the lock of an experiment, its name is reported to `busy`
    /// and the lock is waited for. What is known of the first folder is read again, so that conflicts and damaged files
    /// are better asked for afterwards.
    ///
    /// # Errors
    /// If a file cannot be read or written, or if what a run has changed in the first folder makes it one that differs
    /// from the others in manifest, planned looks or version; cells that were copied before stay.
    pub fn copy(&mut self, busy: &dyn Fn(&str)) -> Result<CopiedCells, Error> {
        let mut copied = CopiedCells::default();
        let Some(to) = self.folders.first() else { return Ok(copied) };
        to.create()?;
        let names: Vec<String> = self.experiments.keys().cloned().collect();
        for name in &names {
            let differed = self.differs(name);
            let _lock = to.lock_first(&[name], &|| false, busy)?;
            self.read_again(to, name)?;
            // The caller could ask for differences that there were before.
            if !differed && self.differs(name) {
                let message = "was changed since the merge began: its manifest, version or planned looks are no longer those of the other folders, and it is not merged; merge again to see the difference";
                return Err(error(&to.folder(name), message));
            }
            self.copy_locked(to, name, &mut copied)?;
        }
        Ok(copied)
    }

    /// Copies what the first folder `to` lacks of an experiment, whose lock the caller holds, and counts the cells in
    /// `copied`.
    fn copy_locked(&self, to: &Store, name: &str, copied: &mut CopiedCells) -> Result<(), Error> {
        let stored = self.experiments.get(name).map(Vec::as_slice).unwrap_or_default();
        let replaced = self.replaced_experiment(name, stored);
        if let Some(experiment) = &replaced {
            // It is not recorded as complete until all its cells are there: a merge that is killed before would leave
            // results that reports refuse, as if files had been removed.
            to.write_stored(&StoredExperiment { complete: None, ..experiment.clone() })?;
        }
        self.copy_data_and_looks(to, name, stored)?;
        // This quarantines damaged files of the first folder.
        to.recover(name)?;
        self.copy_cells(to, name, copied)?;
        self.copy_failed(to, name)?;
        if let Some(experiment) = &replaced {
            to.write_stored(experiment)?;
        }
        Ok(())
    }

    /// The experiment as it is written to the first folder: as the preferred folder has it, else as the first of the
    /// folders in `stored` has it. Its record of completeness, with which reports take a missing cell for a removed
    /// one, is kept only if the merge has all cells of some folder with the same record. `None` if nothing is written,
    /// since the first folder's own experiment stays, and none of its files is damaged.
    fn replaced_experiment(
        &self,
        name: &str,
        stored: &[(usize, StoredExperiment)],
    ) -> Option<StoredExperiment> {
        let (folder, experiment) = self.preferred_of(stored).or(stored.first())?;
        if *folder == 0 && self.damaged_in(0, name).next().is_none() {
            return None;
        }
        let is_complete = stored.iter().any(|(holder, other)| {
            other.complete == experiment.complete && self.merges_all_cells(*holder, name)
        });
        let complete = experiment.complete.clone().filter(|_| is_complete);
        Some(StoredExperiment { complete, ..experiment.clone() })
    }

    /// Whether the merge has every cell of an experiment for which a folder has a file, sound or damaged.
    fn merges_all_cells(&self, folder: usize, name: &str) -> bool {
        let mut damaged = self.damaged_in(folder, name);
        let mut sound = self.sound.range(keys_of(name));
        damaged.all(|damage| self.is_healed(damage))
            && sound.all(|(_, copies)| {
                copies.iter().all(|copy| copy.folder != folder) || is_merged(copies)
            })
    }

    /// The damaged files of the experiment `name` in a folder, packs and records of failed cells.
    fn damaged_in<'s>(&'s self, folder: usize, name: &'s str) -> impl Iterator<Item = &'s Damage> {
        self.damaged.iter().filter(move |one| one.folder == folder && one.experiment == name)
    }

    /// Copies the data files of an experiment that have sound copies, and the records of looks at its verdicts, from
    /// all folders that have it, which are those in `stored`, to the first folder `to`.
    fn copy_data_and_looks(
        &self,
        to: &Store,
        name: &str,
        stored: &[(usize, StoredExperiment)],
    ) -> Result<(), Error> {
        for (folder, experiment) in stored {
            if *folder == 0 {
                continue;
            }
            let from = &self.folders[*folder];
            let copies = DataFolder::of_copies(Store::copies(&from.root));
            let files = experiment.source.files.iter();
            // A copy that is damaged is left out; commands that need the file report that it is missing.
            let sound = files.filter(|(_, hash)| copies.sound_copy(hash).is_some());
            to.copy_data_files(&copies, sound)?;
            to.copy_looks(from, name)?;
        }
        Ok(())
    }

    /// Copies the cells of an experiment that the first folder `to` lacks, except those in conflict, and counts them in
    /// `copied`, as well as those that it has. Of several equal copies the one in the first folder that has any is
    /// taken. Cells of one pack go to one new pack.
    fn copy_cells(&self, to: &Store, name: &str, copied: &mut CopiedCells) -> Result<(), Error> {
        let mut damaged: HashSet<&CellKey> = HashSet::new();
        for damage in self.damaged.iter().filter(|damage| damage.folder == 0) {
            damaged.extend(&damage.cells);
        }
        let mut chosen: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (cell, copies) in self.sound.range(keys_of(name)) {
            let source = &copies[0];
            if source.folder == 0 {
                copied.had += 1;
                continue;
            }
            if !is_merged(copies) {
                continue;
            }
            if damaged.contains(cell) {
                copied.healed += 1;
            } else {
                copied.new += 1;
            }
            chosen.entry(source.pack).or_default().push(source.index);
        }
        let folder = to.make_folder(name)?;
        for (pack, mut cells) in chosen {
            cells.sort_unstable();
            Pack::open(&self.packs[pack].path)?.copy_cells(&folder, &cells)?;
        }
        to.forget_packs(name);
        Ok(())
    }

    /// Copies the records of cells of an experiment that could not be run, if no folder has their results and the first
    /// folder `to` has no record of its own. Of several records that of the first folder that has one is taken.
    fn copy_failed(&self, to: &Store, name: &str) -> Result<(), Error> {
        for (cell, records) in self.failed.range(keys_of(name)) {
            let first = records.first_key_value();
            if let Some((folder, failed)) = first
                && *folder > 0
                && !self.sound.contains_key(cell)
            {
                to.write_failed(&FailedRecord { experiment: name.to_owned(), ..failed.clone() })?;
            }
        }
        Ok(())
    }
}

/// A range in which the keys of all cells of an experiment lie, and no others.
fn keys_of(name: &str) -> Range<CellKey> {
    // No id, which has 16 hexadecimal digits, is above "g".
    (name.to_owned(), String::new())..(name.to_owned(), "g".to_owned())
}

/// Whether the merge has a cell with these sound copies, in the order of the folders: the first folder keeps its own,
/// and others are copied if their numbers are equal.
fn is_merged(copies: &[SoundCopy]) -> bool {
    let Some((first, rest)) = copies.split_first() else { return false };
    first.folder == 0 || rest.iter().all(|copy| copy.digest == first.digest)
}

/// The looks that two folders planned, with the indices of the folders, for each set of cells for which they planned
/// different ones. `looks` are all of one experiment, each with the index of its folder.
fn different_looks(looks: &[(usize, PlannedLooks)]) -> Vec<[(usize, Looks); 2]> {
    let mut different = Vec::new();
    let mut known: Vec<&(usize, PlannedLooks)> = Vec::new();
    for one in looks {
        let (folder, planned) = one;
        let earlier = known.iter().find(|(_, other)| other.cells == planned.cells);
        if let Some((first, other)) = earlier
            && other.looks != planned.looks
        {
            different.push([(*first, other.looks), (*folder, planned.looks)]);
        } else {
            known.push(one);
        }
    }
    different
}

/// Whether two manifests mean the same: their texts, apart from line ends, their `--set`s and their data files are
/// equal.
fn same_meaning(one: &StoredExperiment, other: &StoredExperiment) -> bool {
    let one = &one.source;
    let other = &other.source;
    one.text.lines().eq(other.text.lines())
        && one.overrides == other.overrides
        && one.files == other.files
}
