//! Manifests and their cells.

use super::arrow::NativeFrame;
use super::errors::{raise, raise_manifest};
use super::worker::interruptible;
use driftbench::analysis::tuned;
use driftbench::cli::{self, Failure};
use driftbench::manifest::Source;
use driftbench::plan::Plan;
use driftbench::store::Store;
use driftbench::store::export::cells_frame;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A manifest that was read, with its cells.
#[pyclass(frozen)]
pub struct NativePlan {
    /// The name of the experiment.
    pub experiment: String,
    /// The manifest.
    pub source: Source,
    /// Its cells.
    pub plan: Arc<Plan>,
}

#[pymethods]
impl NativePlan {
    /// Reads a manifest: the file `path`, or else `text` for an experiment of this name; with
    /// these data files in memory.
    #[new]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        text: String,
        name: String,
        overrides: Vec<String>,
        arrays: BTreeMap<String, PyBackedBytes>,
    ) -> PyResult<Self> {
        let in_memory: BTreeMap<String, Arc<[u8]>> =
            arrays.into_iter().map(|(name, bytes)| (name, Arc::from(&*bytes))).collect();
        let read = move || -> Result<(String, Source, Plan), Failure> {
            let (experiment, source) = match &path {
                Some(path) => cli::manifest_source(path, overrides)?,
                None => (name.clone(), cli::unfiled_source(&name, text, overrides)?),
            };
            let source = Source { in_memory, ..source };
            let plan = cli::planned(experiment.clone(), source.clone())?;
            Ok((experiment, source, plan))
        };
        let (experiment, source, plan) =
            interruptible(py, read)?.map_err(|e| raise_manifest(py, e))?;
        Ok(Self { experiment, source, plan: Arc::new(plan) })
    }

    fn __len__(&self) -> usize {
        self.plan.cells.len()
    }

    /// The name of the experiment.
    #[getter]
    fn experiment(&self) -> &str {
        &self.experiment
    }

    /// Builds the instances of all cells, as a run would.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let plan = self.plan.clone();
        interruptible(py, move || cli::check(&plan))?.map_err(|e| raise_manifest(py, e))
    }

    /// The cells as a frame, with their state in a results folder.
    fn frame(&self, py: Python<'_>, out: PathBuf, threads: usize) -> PyResult<NativeFrame> {
        let (experiment, source) = (self.experiment.clone(), self.source.clone());
        let made = interruptible(py, move || -> Result<_, Failure> {
            let store = Store::open(&out)?;
            let plan = tuned::all_stages(cli::planned(experiment, source)?, &store)?;
            Ok(cells_frame(&plan, &store, threads))
        })?;
        NativeFrame::new(py, made.map_err(|e| raise(py, e))?)
    }
}
