//! The experiments of a results folder: what each was last run as, and the one listing
//! of them that every command uses.
//!
//! *Invariant*: an experiment is listed wherever its folder is, also below the folder of
//! another experiment. A folder that holds cells without a sound `experiment.toml` is an
//! error that names the file; it is never skipped.

use super::record::{checksummed, has_checksum, verify_checksum};
use super::recovery::is_quarantined;
use super::{EXPERIMENT, Store, is_cell, pack};
use driftbench_runner::files::{Error, error, write_synced};
use driftbench_runner::manifest::Source;
use driftbench_runner::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// An experiment as it was last run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredExperiment {
    /// Its name.
    pub name: String,
    /// The manifest's file, as it was given.
    pub manifest: String,
    /// `--set`s.
    pub overrides: Vec<String>,
    /// The manifest's text.
    pub text: String,
    /// Hashes of its data files, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Where its results folder keeps copies of them.
    #[serde(skip)]
    pub copies: Option<PathBuf>,
}

impl StoredExperiment {
    /// The file that keeps it in its folder.
    pub const FILE: &str = EXPERIMENT;

    /// The experiment that a plan is of.
    fn of(plan: &Plan) -> Self {
        Self {
            name: plan.experiment.clone(),
            manifest: plan.source.name.clone(),
            overrides: plan.source.overrides.clone(),
            text: plan.source.text.clone(),
            files: plan.source.files.clone(),
            copies: None,
        }
    }

    /// The experiment that the text of such a file keeps; `None` if it is another kind of
    /// file, such as a manifest that happens to have this name.
    ///
    /// # Errors
    /// If the text keeps an experiment and is not as it was written.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        match (toml::from_str::<Self>(text), has_checksum(text)) {
            (Err(_), false) => Ok(None),
            (Ok(_), false) => {
                Err("has no seal: it is damaged, or an older release wrote it".to_owned())
            }
            (_, true) => verify_checksum(text.as_bytes()).map(Some),
        }
    }

    /// The manifest as it was last run.
    pub fn source(&self) -> Source {
        Source {
            name: self.manifest.clone(),
            text: self.text.clone(),
            overrides: self.overrides.clone(),
            files: self.files.clone(),
            copies: self.copies.clone(),
            tables: Some(super::read_table),
        }
    }
}

/// An experiment's name, and what was last run or why that cannot be read.
pub type ListedExperiment = (String, Result<StoredExperiment, Error>);

impl Store {
    /// Writes down what is run, and keeps its data files, for reports.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_experiment(&self, plan: &Plan) -> Result<(), Error> {
        self.make_folder(&plan.experiment)?;
        self.copy_data_files(&plan.folder(), &plan.source.files)?;
        self.write_experiment_as(&plan.experiment, &StoredExperiment::of(plan))
    }

    /// Writes down an experiment under this name.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write_experiment_as(
        &self,
        name: &str,
        experiment: &StoredExperiment,
    ) -> Result<(), Error> {
        let path = self.make_folder(name)?.join(EXPERIMENT);
        let text = checksummed(experiment).map_err(|e| error(&path, e))?;
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
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

    /// All experiments of the folder, by name, those among them that cannot be read too.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn listing(&self) -> Result<Vec<ListedExperiment>, Error> {
        let mut found = Vec::new();
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            let (inner, holds_cells) = subfolders(&folder)?;
            open.extend(inner);
            // The marker of the results is in the root, and never an experiment.
            if folder != self.root && (holds_cells || has_file(&folder)) {
                let below = folder.strip_prefix(&self.root).unwrap_or(&folder);
                let parts = below.components().map(|part| part.as_os_str().to_string_lossy());
                let name = parts.collect::<Vec<_>>().join("/");
                let experiment = self.experiment(&folder, &name);
                found.push((name, experiment));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    fn experiment(&self, folder: &Path, name: &str) -> Result<StoredExperiment, Error> {
        const MEND: &str = "`driftbench run` with the experiment's manifest writes it again";
        let path = folder.join(EXPERIMENT);
        let kept = self.checksummed::<StoredExperiment>(&path);
        let kept = kept.map_err(|e| error(&e.path, format!("{}; {MEND}", e.message)))?;
        match kept {
            Some(experiment) if experiment.name == name => {
                Ok(StoredExperiment { copies: Some(Self::copies(&self.root)), ..experiment })
            }
            Some(other) => {
                Err(error(&path, format!("is of the experiment \"{}\"; {MEND}", other.name)))
            }
            None => Err(error(&path, format!("is not there, and cells are beside it; {MEND}"))),
        }
    }
}

fn has_file(folder: &Path) -> bool {
    folder.join(EXPERIMENT).symlink_metadata().is_ok()
}

/// The folders below one that may hold experiments, and whether it holds cells itself.
fn subfolders(folder: &Path) -> Result<(Vec<PathBuf>, bool), Error> {
    let (mut inner, mut holds_cells) = (Vec::new(), false);
    for entry in fs::read_dir(folder).map_err(|e| error(folder, e))? {
        let entry = entry.map_err(|e| error(folder, e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Symbolic links are not followed out of the results.
        if name.starts_with('.') || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let cells = is_cell(&name) || pack::is_pack(&name);
        if (cells || is_quarantined(&name)) && !has_file(&entry.path()) {
            holds_cells |= cells;
        } else {
            inner.push(entry.path());
        }
    }
    Ok((inner, holds_cells))
}
