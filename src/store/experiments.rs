//! The experiments of a results folder as they were last run, and the one listing of them
//! that every command uses.
//!
//! *Invariant*: an experiment is listed wherever its folder is, also below the folder of
//! another experiment. A folder that holds cells without a sound `experiment.toml` is an
//! error that names the file; it is never skipped.

use super::checksum::{ChecksumError, has_checksum, parse_checked, read_checked, with_checksum};
use super::folder::Store;
use super::paths::{EXPERIMENT, FolderEntries, contents, failed_cell, file_name, is_pack};
use super::table;
use exactfed_core::definition::Definition;
use exactfed_runner::data::TableReader;
use exactfed_runner::files::{Error, error, read_regular_text, sha256, write_synced};
use exactfed_runner::manifest::Source;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::registered::registered;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The most removed cells that a message names.
const NAMED: usize = 5;

/// An experiment as it was last run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredExperiment {
    /// Its name.
    pub name: String,
    /// The hash of the ids of the cells that do not depend on results ([`Plan::cells_hash`]), if a run ended with all
    /// of them stored. A cell that is missing since then was removed: reports refuse the experiment, and merges keep
    /// the hash only where all cells are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<String>,
    /// Its manifest.
    #[serde(flatten)]
    pub source: Source,
}

/// Why the file of an experiment is not read.
#[derive(Debug, thiserror::Error)]
pub enum StoredExperimentError {
    /// The text is not as it was written.
    #[error(transparent)]
    Checksum(#[from] ChecksumError),
    /// The text describes an experiment and has no checksum.
    #[error("has no checksum: it is damaged, or an older release wrote it")]
    NoChecksum,
    /// Pages would show code that did not make the results.
    #[error(
        "the source of the algorithm `{kind}` does not have the hash that identifies its cells"
    )]
    OtherSource {
        /// The kind of the algorithm.
        kind: String,
    },
}

impl StoredExperiment {
    /// The experiment in the text of a file that has the name `experiment.toml`; `None` if it is another kind of file,
    /// such as a manifest that happens to have this name.
    ///
    /// # Errors
    /// If the text holds an experiment and is not as it was written.
    pub fn parse(text: &str) -> Result<Option<Self>, StoredExperimentError> {
        if has_checksum(text) {
            let experiment: Self = parse_checked(text.as_bytes())?;
            experiment.check_sources()?;
            return Ok(Some(experiment));
        }
        match toml::from_str::<Self>(text) {
            Ok(_) => Err(StoredExperimentError::NoChecksum),
            Err(_) => Ok(None),
        }
    }

    /// The text from which [`Self::parse`] makes the experiment again.
    ///
    /// # Errors
    /// If it cannot be written as TOML.
    pub fn text(&self) -> Result<String, toml::ser::Error> {
        with_checksum(self)
    }

    /// Checks that the code of each custom algorithm, problem and metric, which pages show, has the hash that is in the
    /// ids of its cells. One whose code is not stored passes.
    fn check_sources(&self) -> Result<(), StoredExperimentError> {
        let algorithms = self.source.algorithms.iter().map(|known| &known.definition);
        let metrics = self.source.metrics.iter().map(|known| &known.definition);
        for definition in algorithms.chain(&self.source.problem).chain(metrics) {
            let Definition { kind, source, source_hash, .. } = definition;
            if !source.is_empty() && *source_hash != sha256(source.as_bytes()) {
                return Err(StoredExperimentError::OtherSource { kind: kind.clone() });
            }
        }
        Ok(())
    }

    /// The manifest as it was last run, completed by what a file cannot hold and a plan needs: the reader of tables,
    /// and the algorithms that are registered in this program.
    pub fn source(&self) -> Source {
        Source {
            tables: Some(table::read as TableReader),
            registry: registered(),
            ..self.source.clone()
        }
    }
}

/// An experiment's name, and the experiment as it was last run or why it cannot be read.
pub type ListedExperiment = (String, Result<StoredExperiment, Error>);

impl Store {
    /// Writes the experiment of a plan and copies its data files, so that reports need neither the manifest nor the
    /// data: from now on the plan is the last run of the experiment. That a run stored all cells is remembered as long
    /// as the plan has the same cells ([`Plan::cells_hash`]). The caller holds the lock of the experiment, unless nobody
    /// else uses this folder: a run could record meanwhile that all cells are stored, and the record would be lost.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_experiment(&self, plan: &Plan) -> Result<(), Error> {
        self.make_folder(&plan.experiment)?;
        self.copy_data_files(&plan.folder(), &plan.source.files)?;
        self.write_stored(&self.record_of(plan))
    }

    /// Writes the experiment of a plan as [`Self::write_experiment`], for a caller that does not hold the lock of the
    /// experiment: it is taken, and the call waits while a run holds it, whose name goes to `busy` then. Where the
    /// same plan was written before, as by a run of it that is at work, nothing changes and nobody is waited for.
    ///
    /// # Errors
    /// If a file cannot be written, or the run that holds the lock waits for this thread.
    pub fn take_over(&self, plan: &Plan, busy: &dyn Fn(&str)) -> Result<(), Error> {
        let name = plan.experiment.as_str();
        let path = self.make_folder(name)?.join(EXPERIMENT);
        // Copies of data files are not in the experiment's folder, and never changed.
        self.copy_data_files(&plan.folder(), &plan.source.files)?;
        let text = with_checksum(&self.record_of(plan)).map_err(|e| error(&path, e))?;
        if read_regular_text(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        let _lock = self.lock_first(&[name], &|| false, busy)?;
        // The run before may have stored all cells.
        self.write_stored(&self.record_of(plan))
    }

    /// The record of a plan as the last run of its experiment. That a run stored all cells stays in it if the plan has
    /// the same cells.
    fn record_of(&self, plan: &Plan) -> StoredExperiment {
        StoredExperiment {
            name: plan.experiment.clone(),
            complete: self.complete_hash(plan).filter(|hash| *hash == plan.cells_hash()),
            source: plan.source.clone(),
        }
    }

    /// Records that a run has stored all cells of a plan, whose experiment was written before: a cell that is missing
    /// later was removed. The caller holds the lock of the experiment, and has run the plan without an option that
    /// leaves cells out.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record_complete(&self, plan: &Plan) -> Result<(), Error> {
        self.write_stored(&StoredExperiment {
            name: plan.experiment.clone(),
            complete: Some(plan.cells_hash()),
            source: plan.source.clone(),
        })
    }

    /// Records that cells of a plan, whose experiment was written before, are still to be stored: a cell that is
    /// missing was not removed. The caller holds the lock of the experiment.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record_incomplete(&self, plan: &Plan) -> Result<(), Error> {
        self.write_stored(&StoredExperiment {
            name: plan.experiment.clone(),
            complete: None,
            source: plan.source.clone(),
        })
    }

    /// The hash of the cells that the last complete run of an experiment stored; `None` if no run was complete, or the
    /// record cannot be read.
    fn complete_hash(&self, plan: &Plan) -> Option<String> {
        let name = &plan.experiment;
        self.read_experiment(&self.folder(name), name).ok()?.complete
    }

    /// Refuses an experiment if a run stored all cells of this plan and some are no longer there:
    /// their files were removed. Before the first run that ends with all cells stored, a removed
    /// cell cannot be distinguished from one that was never run. Of a tuned experiment the plan may have the cells that
    /// follow from results too; they must be there as well.
    ///
    /// # Errors
    /// Which cells are gone, or why the folder of the experiment cannot be read.
    pub fn refuse_removed(&self, plan: &Plan) -> Result<(), Error> {
        if self.complete_hash(plan).is_none_or(|hash| hash != plan.cells_hash()) {
            return Ok(());
        }
        let packs = self.packs(&plan.experiment)?;
        // A plan that follows results has some cells twice.
        let mut seen = HashSet::new();
        let mut gone: Vec<&Cell> = Vec::new();
        for cell in plan.all_cells() {
            if seen.insert(cell.id) && packs.place(&cell.id).is_none() {
                gone.push(cell);
            }
        }
        // The cells of a damaged pack are reported as damaged when they are read.
        if gone.is_empty() || !packs.damaged.is_empty() {
            return Ok(());
        }
        let mut named: Vec<String> = Vec::new();
        for cell in gone.iter().take(NAMED) {
            named.push(format!("{} ({})", cell.id, cell.label));
        }
        if gone.len() > NAMED {
            named.push(format!("and {} more", gone.len() - NAMED));
        }
        let message = format!(
            "a run stored all cells, and {} of them {} gone, so that a file was removed: {}; `exactfed run` computes what is missing again",
            gone.len(),
            if gone.len() == 1 { "is" } else { "are" },
            named.join(", ")
        );
        Err(error(&self.folder(&plan.experiment), message))
    }

    /// Writes the record of an experiment, and not its data files, unless the file has it already.
    pub(super) fn write_stored(&self, experiment: &StoredExperiment) -> Result<(), Error> {
        let path = self.make_folder(&experiment.name)?.join(EXPERIMENT);
        let text = with_checksum(experiment).map_err(|e| error(&path, e))?;
        if read_regular_text(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        write_synced(&path, text.as_bytes())
    }

    /// All experiments of the folder, by name.
    ///
    /// # Errors
    /// If a folder cannot be read, or an experiment is not as it was written.
    pub fn experiments(&self) -> Result<Vec<StoredExperiment>, Error> {
        self.listing()?.into_iter().map(|(_, experiment)| experiment).collect()
    }

    /// All experiments of the folder, by name, including those that cannot be read.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn listing(&self) -> Result<Vec<ListedExperiment>, Error> {
        let mut found = Vec::new();
        let mut unread = vec![self.root.clone()];
        while let Some(folder) = unread.pop() {
            let FolderEntries { folders, files } = contents(&folder)?;
            // Folders of data copies and of the cache have a dot at the beginning of their names.
            unread.extend(folders.into_iter().filter(|path| !file_name(path).starts_with('.')));
            // The root is never an experiment.
            if folder != self.root && holds_experiment(&folder, &files) {
                let name = self.experiment_name(&folder);
                let experiment = self.read_experiment(&folder, &name);
                found.push((name, experiment));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// The experiment of this name; `None` if its folder has neither cells nor an experiment.
    ///
    /// # Errors
    /// If it is not as it was written, or its folder has cells without it.
    pub(super) fn find_experiment(&self, name: &str) -> Result<Option<StoredExperiment>, Error> {
        self.refuse_links(name)?;
        let folder = self.folder(name);
        let FolderEntries { files, .. } = contents(&folder)?;
        if !holds_experiment(&folder, &files) {
            return Ok(None);
        }
        self.read_experiment(&folder, name).map(Some)
    }

    /// The name of the experiment in a folder: its path below the root, with slashes on every system.
    fn experiment_name(&self, folder: &Path) -> String {
        let below = folder.strip_prefix(&self.root).unwrap_or(folder);
        let parts: Vec<_> =
            below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        parts.join("/")
    }

    /// The experiment as its own folder has it, with data files that are read from the copies below the store's root.
    ///
    /// # Errors
    /// If it is not there, not as it was written, or of another name than this.
    pub(super) fn read_experiment(
        &self,
        folder: &Path,
        name: &str,
    ) -> Result<StoredExperiment, Error> {
        let remedy = "`exactfed run` with the experiment's manifest writes it again";
        self.try_read_experiment(folder, name)
            .map_err(|e| error(&e.path, format!("{}; {remedy}", e.message)))
    }

    /// Reads and checks the experiment for [`Self::read_experiment`], which adds to errors how the file is written
    /// again.
    fn try_read_experiment(&self, folder: &Path, name: &str) -> Result<StoredExperiment, Error> {
        let path = folder.join(EXPERIMENT);
        let Some(mut experiment) = read_checked::<StoredExperiment>(&path)? else {
            return Err(error(&path, "does not exist, although its folder contains cells"));
        };
        experiment.check_sources().map_err(|e| error(&path, e))?;
        if experiment.name != name {
            let message = format!("is of the experiment \"{}\"", experiment.name);
            return Err(error(&path, message));
        }
        experiment.source.copies = Some(Self::copies(&self.root));
        Ok(experiment)
    }
}

/// Whether a folder, whose `files` these are, is the folder of an experiment, sound or not: it has cells, records of
/// failed ones, or anything called `experiment.toml`.
fn holds_experiment(folder: &Path, files: &[PathBuf]) -> bool {
    files.iter().any(|path| is_of_cells(&file_name(path)))
        || folder.join(EXPERIMENT).symlink_metadata().is_ok()
}

/// Whether a file of this name holds cells or records of failed ones.
fn is_of_cells(name: &str) -> bool {
    is_pack(name) || failed_cell(name).is_some()
}
