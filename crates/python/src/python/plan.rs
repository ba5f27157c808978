//! Manifests and their cells.

use super::arrow::NativeFrame;
use super::clients::PythonClients;
use super::errors::{raise, raise_manifest};
use super::watch::RoundClock;
use super::worker::interruptible;
use exactfed::cli;
use exactfed::evidence::tuned;
use exactfed::federated::{Conditions, StatedPrice};
use exactfed::manifest::Source;
use exactfed::plan::Plan;
use exactfed::problem::Spec;
use exactfed::runner::stream_names;
use exactfed::store::Store;
use exactfed::store::export::{WorkColumn, cells_frame};
use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A manifest that was read, with the plan of its cells.
#[pyclass(frozen)]
pub struct NativePlan {
    /// The manifest as it was read.
    pub source: Source,
    /// The plan, whose own source has the hashes and sizes of data files in addition.
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
        let (source, plan) = interruptible(py, raise_manifest, move || {
            let (experiment, source) = match &path {
                Some(path) => cli::manifest_source(path, overrides)?,
                None => (name.clone(), cli::unfiled_source(&name, text, overrides)?),
            };
            let source = Source { in_memory, ..source };
            let plan = cli::planned(experiment, source.clone())?;
            Ok((source, plan))
        })?;
        Ok(Self { source, plan: Arc::new(plan) })
    }

    fn __len__(&self) -> usize {
        self.plan.cells.len()
    }

    /// The name of the experiment.
    #[getter]
    fn experiment(&self) -> &str {
        &self.plan.experiment
    }

    /// The paths of the data files, in the folder of the manifest, by the hashes of their bytes: executors send the
    /// files to their workers by these hashes.
    #[getter]
    fn files(&self) -> BTreeMap<String, PathBuf> {
        let base = Path::new(&self.source.name).parent().unwrap_or(Path::new(""));
        let files = self.plan.source.files.iter();
        files.map(|(path, hash)| (hash.clone(), base.join(path))).collect()
    }

    /// The kinds of the algorithms that are defined outside of exactfed, whose code executors send to their workers.
    #[getter]
    fn algorithms(&self) -> Vec<String> {
        let known = self.plan.source.algorithms.iter();
        known.map(|known| known.definition.kind.clone()).collect()
    }

    /// The kind of the problem if it is defined outside of exactfed, whose code executors send to their workers.
    #[getter]
    fn own_problem(&self) -> Option<&str> {
        let problem = self.plan.manifest.problem();
        matches!(problem, Spec::Custom(_)).then(|| problem.kind())
    }

    /// The names of the metrics that are defined outside of exactfed, whose code executors send to their workers.
    #[getter]
    fn own_metrics(&self) -> Vec<String> {
        let metrics = self.plan.source.metrics.iter();
        metrics.map(|known| known.definition.kind.clone()).collect()
    }

    /// The same plan with the cells of all stages, as far as the results in the folder `out` decide which follow.
    fn following(&self, py: Python<'_>, out: PathBuf) -> PyResult<Self> {
        let experiment = self.plan.experiment.clone();
        let source = self.source.clone();
        let plan = interruptible(py, raise, move || {
            let store = Store::open(&out)?;
            Ok(tuned::all_stages(cli::planned(experiment, source)?, &store)?)
        })?;
        Ok(Self { source: self.source.clone(), plan: Arc::new(plan) })
    }

    /// Builds the instances of all cells and frontiers, as a run would, and drops them; an exception says what is
    /// wrong.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let plan = self.plan.clone();
        interruptible(py, raise_manifest, move || cli::check(&plan))
    }

    /// The clients of the run with this number of the cell at this place, before its first round, and θ_0: a user
    /// steps through the run by himself.
    fn clients<'py>(
        &self,
        py: Python<'py>,
        cell: usize,
        run: u64,
    ) -> PyResult<(PythonClients, Bound<'py, PyArray1<f64>>)> {
        let plan = self.plan.clone();
        let Some(identity) = plan.cells.get(cell).map(|cell| cell.identity.clone()) else {
            let message = format!("there are {} cells, and no cell {cell}", plan.cells.len());
            return Err(PyIndexError::new_err(message));
        };
        if run >= identity.runs() {
            let message = format!("the cell has {} runs, and no run {run}", identity.runs());
            return Err(PyIndexError::new_err(message));
        }
        let build = move || cli::scenario(&plan, &plan.cells[cell], run);
        let built = interruptible(py, raise_manifest, build)?;
        let (seed, replicate) = stream_names(&identity, run);
        let start = &built.start[..];
        let rounds = identity.rounds;
        let from = Conditions { seed, replicate, start, rounds, copy: 0 };
        let clients = built.instance.round_clients(&from, StatedPrice::default());
        let instance = Some(built.instance.clone());
        // No round of a user's own code takes too long. The half leaves room to add the seconds of now.
        //
        // SAFETY: the clients keep their instance.
        let clients =
            unsafe { PythonClients::new(clients, instance, rounds, RoundClock::new(u64::MAX / 2)) };
        Ok((clients, PyArray1::from_slice(py, &built.start)))
    }

    /// The cells of all stages as a frame, with their state in the results folder `out`, and with the seconds that each
    /// takes on this number of `threads`, which are measured now; or without `threads` with the operations of each,
    /// which are counted.
    fn frame(&self, py: Python<'_>, out: PathBuf, threads: Option<usize>) -> PyResult<NativeFrame> {
        let plan = self.following(py, out.clone())?.plan;
        let made = move || {
            let work = match threads {
                None => WorkColumn::Operations,
                Some(threads) => WorkColumn::Seconds(cli::seconds_of_cells(&plan, threads)),
            };
            Ok(cells_frame(&plan, &Store::open(&out)?, work))
        };
        NativeFrame::new(py, interruptible(py, raise, made)?)
    }
}
