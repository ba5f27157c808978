//! The stored results of an experiment.

use super::arrow::NativeFrame;
use super::errors::{raise, raise_text};
use super::plan::NativePlan;
use super::worker::{interruptible, stoppable};
use super::{figures, tables};
use exactfed::cli::{self, Failure, Interrupt, Rerun};
use exactfed::evidence::results::Results;
use exactfed::evidence::{Experiment, analyse, tuned};
use exactfed::plan::{Cell, Plan};
use exactfed::report::{self, Format, Writer};
use exactfed::store::export;
use exactfed::store::{Status, Store, StoredExperiment};
use exactfed_runner::files::Error;
use polars::prelude::{DataFrame, PolarsResult};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The results of an experiment, with its manifest as it was last run when they were opened.
#[pyclass(frozen)]
pub struct NativeResults {
    /// The results folder.
    root: PathBuf,
    experiment: StoredExperiment,
    /// The analysis, computed when it is first asked for.
    analysed: OnceLock<Analysed>,
}

/// What Python shows of the analysis of an experiment.
struct Analysed {
    /// The id of each figure, and the figure as JSON.
    figures: Vec<(String, String)>,
    /// The frames by the names of their methods; `tuned` where something is tuned.
    tables: BTreeMap<&'static str, PolarsResult<DataFrame>>,
    /// The headline, the first figure and the claims, for notebooks.
    html: String,
}

impl Analysed {
    /// Makes the frames, the figures and the HTML of an experiment that was analysed.
    fn new(experiment: &Experiment<'_>) -> Result<Self, Failure> {
        let mut tables = BTreeMap::from([
            ("claims", tables::claims(&experiment.claims)),
            ("frontier", tables::frontier(&experiment.frontiers)),
            ("ranking", tables::ranking(experiment)),
            ("ranking_of_all", tables::ranking_of_all(experiment)),
        ]);
        tables.extend(experiment.tuning.as_ref().map(|found| ("tuned", tables::tuned(found))));
        let html = report::notebook(experiment)?;
        Ok(Self { figures: figures_of(experiment), tables, html })
    }
}

/// The ids of the figures, each with the figure as JSON.
fn figures_of(experiment: &Experiment<'_>) -> Vec<(String, String)> {
    let figures = experiment.figures.iter();
    figures.map(|one| (one.id.clone(), figures::figure(one, experiment).to_string())).collect()
}

/// How a plan of a tuned experiment follows the results: to the fresh runs alone ([`tuned::follow`]), as pages do, or
/// to the cells of all stages ([`tuned::all_stages`]).
type Stages = fn(Plan, &dyn Results) -> Result<Plan, Error>;

/// The experiments that could not be reported with the reasons, and a message for each claim that did not end as its
/// manifest expects.
type ReportNotes = (Vec<(String, String)>, Vec<String>);

/// Analyses the results of a plan, if its instances fit in memory.
fn analysed<'a>(plan: &'a Plan, store: &Store) -> Result<Experiment<'a>, Failure> {
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    cli::fits_instances(plan, &cells)?;
    Ok(analyse(plan, store)?)
}

impl NativeResults {
    /// Calls `work` with the opened results and the plan of the stored manifest with these overrides in addition, whose
    /// cells follow the results by `stages`; returns what it returns.
    fn following<T: Send + 'static>(
        &self,
        py: Python<'_>,
        stages: Stages,
        overrides: Vec<String>,
        work: impl FnOnce(&Store, Plan) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let root = self.root.clone();
        let mut experiment = self.experiment.clone();
        interruptible(py, raise, move || {
            let store = Store::open_existing(&root)?;
            experiment.source.overrides.extend(overrides);
            let source = experiment.source();
            let plan = stages(exactfed::evidence::plan(experiment.name, source)?, &store)?;
            work(&store, plan)
        })
    }

    /// Calls `work` with the opened results and the plan with the cells of all stages; returns what it returns.
    fn with_plan<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store, Plan) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        self.following(py, tuned::all_stages, Vec::new(), work)
    }

    /// The analysis of the results, which is computed at the first call and not again when results change.
    fn analysed(&self, py: Python<'_>) -> PyResult<&Analysed> {
        if self.analysed.get().is_none() {
            let analyse = |store: &Store, plan| Analysed::new(&analysed(&plan, store)?);
            let made = self.following(py, tuned::follow, Vec::new(), analyse)?;
            // Another thread may have been faster, with the same numbers.
            let _ = self.analysed.set(made);
        }
        Ok(self.analysed.get().expect("it was set"))
    }
}

#[pymethods]
impl NativeResults {
    /// Opens the results of an experiment in the folder `root`: of the one that is named, or of the only one.
    #[new]
    fn new(py: Python<'_>, root: PathBuf, experiment: Option<String>) -> PyResult<Self> {
        let folder = root.clone();
        let experiment = interruptible(py, raise, move || find(&folder, experiment.as_deref()))?;
        Ok(Self { root, experiment, analysed: OnceLock::new() })
    }

    /// Opens the results in the folder `root` of the experiment that `text`, which [`Self::text`] returned, describes:
    /// as it was when they were opened there, also if it has been run with other settings since.
    #[staticmethod]
    fn reopen(py: Python<'_>, root: PathBuf, text: String) -> PyResult<Self> {
        let folder = root.clone();
        let experiment = interruptible(py, raise, move || {
            let refused =
                |why: String| Failure::input(format!("error: the pickled results: {why}"));
            let parsed = StoredExperiment::parse(&text).map_err(|e| refused(e.to_string()))?;
            let mut experiment = parsed.ok_or_else(|| refused("they are no experiment".into()))?;
            // The folder of the copies of data files is not in the text.
            experiment.source.copies = find(&folder, Some(&experiment.name))?.source.copies;
            Ok(experiment)
        })?;
        Ok(Self { root, experiment, analysed: OnceLock::new() })
    }

    /// The experiment with its manifest as a text, for [`Self::reopen`].
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        self.experiment.text().map_err(|e| raise_text(py, format!("error: {e}")))
    }

    /// The name of the experiment.
    #[getter]
    fn experiment(&self) -> &str {
        &self.experiment.name
    }

    /// The rows of the cells of the last run or, if `earlier`, also of cells with other settings that were stored
    /// before; and a message for each damaged cell, which is left out. `None` if no cell has results.
    fn rows(&self, py: Python<'_>, earlier: bool) -> PyResult<(Option<NativeFrame>, Vec<String>)> {
        let (frame, damaged) =
            self.with_plan(py, |store, plan| Ok(export::frame(store, &[plan])?))?;
        let chosen = |frame: DataFrame| {
            if earlier {
                return Ok(frame);
            }
            // On this thread: the threads of polars do not exist in a process that was forked.
            frame.filter_seq(frame.column("last_run")?.bool()?)
        };
        let frame = frame.map(|frame| NativeFrame::new(py, chosen(frame))).transpose()?;
        Ok((frame, damaged.iter().map(Error::to_string).collect()))
    }

    /// The plan of the stored manifest with the cells of all stages that results decide.
    fn plan(&self, py: Python<'_>) -> PyResult<NativePlan> {
        let plan = self.with_plan(py, |_, plan| Ok(plan))?;
        Ok(NativePlan { source: plan.source.clone(), plan: Arc::new(plan) })
    }

    /// The number of cells that are done.
    fn done(&self, py: Python<'_>) -> PyResult<usize> {
        self.with_plan(py, |store, plan| {
            let is_done = |cell: &&Cell| store.status(&plan.experiment, &cell.id) == Status::Done;
            Ok(plan.cells.iter().filter(is_done).count())
        })
    }

    /// A frame of the cells that failed or are damaged, with the reasons.
    fn failures(&self, py: Python<'_>) -> PyResult<NativeFrame> {
        let failed = self.with_plan(py, |store, plan| {
            let failed = |cell: &Cell| match store.status(&plan.experiment, &cell.id) {
                Status::Failed(reason) | Status::Damaged(reason) => {
                    Some([cell.id.to_string(), cell.label.clone(), reason])
                }
                Status::Done | Status::Missing => None,
            };
            Ok(plan.cells.iter().filter_map(failed).collect::<Vec<_>>())
        })?;
        NativeFrame::new(py, tables::failures(&failed))
    }

    /// The id and the digest of each cell that has results, after a check of its numbers.
    fn digests(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with_plan(py, |store, plan| {
            let mut all = Vec::new();
            for cell in &plan.cells {
                if let Some(stored) = store.read(&plan.experiment, &cell.id)? {
                    all.push((stored.record.id.to_string(), stored.record.digest.to_string()));
                }
            }
            Ok(all)
        })
    }

    /// Runs `sample` of the stored cells again, or all, and compares their numbers with the stored ones; files of
    /// `run_code` define algorithms in Python. Returns the findings as text, and the numbers of cells that are
    /// bit-identical, of cells and caches that are different, and of those that cannot be compared.
    #[pyo3(signature = (sample, seed, threads, run_code))]
    fn verify(
        &self,
        py: Python<'_>,
        sample: Option<usize>,
        seed: u64,
        threads: Option<usize>,
        run_code: Vec<PathBuf>,
    ) -> PyResult<(String, usize, usize, usize)> {
        let root = self.root.clone();
        let name = self.experiment.name.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let interrupt = Interrupt::by_request(stop.clone());
        let all = sample.is_none();
        let sample = sample.unwrap_or_default();
        let rerun = Rerun { sample, all, run_code, seed, threads, quiet: true };
        let work = move || cli::verify_results(&root, Some(&name), &rerun, &interrupt);
        let found = stoppable(py, |_| Ok(()), || stop.store(true, Relaxed), work)?;
        let different = found.different();
        let incomparable = found.incomparable();
        Ok((found.text, found.equal, different, incomparable))
    }

    /// The ids of the figures.
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.analysed(py)?.figures.iter().map(|(id, _)| id.clone()).collect())
    }

    /// The figure of this id as JSON; `None` if the page has none.
    fn figure(&self, py: Python<'_>, id: &str) -> PyResult<Option<String>> {
        let figures = &self.analysed(py)?.figures;
        Ok(figures.iter().find(|(known, _)| known == id).map(|(_, json)| json.clone()))
    }

    /// The figure of this id as JSON, of the manifest with these overrides in addition, which may define it; `None` if
    /// there is none.
    fn other_figure(
        &self,
        py: Python<'_>,
        id: String,
        overrides: Vec<String>,
    ) -> PyResult<Option<String>> {
        self.following(py, tuned::follow, overrides, move |store, plan| {
            let figures = figures_of(&analysed(&plan, store)?);
            Ok(figures.into_iter().find(|(known, _)| *known == id).map(|(_, json)| json))
        })
    }

    /// The path of each figure of the manifest by its id, such as `figure.convergence.0`.
    fn figure_paths(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with_plan(py, |_, plan| {
            Ok(exactfed::plan::figure_ids(&plan.manifest, &plan.figure_tables))
        })
    }

    /// A frame of the analysis: `claims`, `frontier`, `ranking`, `ranking_of_all` or, where something
    /// is tuned, `tuned`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<NativeFrame>> {
        let frame = self.analysed(py)?.tables.get(name);
        frame.map(|frame| NativeFrame::new(py, frame.clone())).transpose()
    }

    /// The headline, the first figure and the claims as HTML.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.analysed(py)?.html.clone())
    }

    /// Writes the reports of all experiments in the results folder into `out`, in these formats, with figures of this
    /// width in inches. Returns what could not be reported, and the claims that did not end as expected.
    fn report(
        &self,
        py: Python<'_>,
        out: PathBuf,
        formats: Vec<String>,
        inches: f64,
    ) -> PyResult<ReportNotes> {
        let known = |name: &String| {
            Format::named(name).ok_or_else(|| {
                let all = Format::ALL.map(|(_, name)| name).join(", ");
                raise_text(py, format!("error: \"{name}\" is no format (allowed: {all})"))
            })
        };
        let formats: Vec<Format> = formats.iter().map(known).collect::<PyResult<_>>()?;
        let root = self.root.clone();
        let reported = interruptible(py, raise, move || {
            let store = Store::open_existing(&root)?;
            let mut writer = Writer::new(&out, &formats)?;
            writer.inches = inches;
            cli::report_results(&store, &writer, cli::Printed::Nothing)
        })?;
        Ok((reported.failed, reported.contradictions))
    }
}

/// The experiment with this name in a results folder or, without a name, the only one.
///
/// # Errors
/// If there is no such experiment, there are several and none is named, or it cannot be read.
fn find(root: &Path, name: Option<&str>) -> Result<StoredExperiment, Failure> {
    let listing = Store::open_existing(root)?.listing()?;
    let names: Vec<String> = listing.iter().map(|(name, _)| name.clone()).collect();
    let place = match name {
        Some(name) => names.iter().position(|known| known == name),
        None if names.len() == 1 => Some(0),
        None => None,
    };
    let shown = root.display();
    let Some(place) = place else {
        let why = match (name, names.is_empty()) {
            (_, true) => "there are no experiments".to_owned(),
            (Some(name), _) => format!("there is no experiment \"{name}\""),
            (None, _) => format!("there are {} experiments: name one", names.len()),
        };
        return Err(Failure::input(format!(
            "error: {shown}: {why} (allowed: {})",
            names.join(", ")
        )));
    };
    let (_, found) = listing.into_iter().nth(place).expect("it is one of them");
    Ok(found?)
}
