//! Results of runs as the evidence needs them: the trait [`Results`], which a store of results implements,
//! and the values that pass through it.

use crate::stats::looks::Looks;
use exactfed_core::moments;
use exactfed_core::problem::Minimiser;
use exactfed_core::round_program::Traced;
use exactfed_runner::files::Error;
use exactfed_runner::plan::CellId;
use exactfed_runner::trace::{Trace, TraceDigest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Results of experiments. Evidence reads them through this trait and does no input or output of
/// its own.
pub trait Results: Sync {
    /// The results of a cell; `None` if there are none.
    ///
    /// # Errors
    /// If they are not as they were written.
    fn read(&self, experiment: &str, id: &str) -> Result<Option<StoredCell>, Error>;

    /// Why the run of a cell failed; `None` if it did not fail.
    ///
    /// # Errors
    /// If the record is not as it was written.
    fn failure(&self, experiment: &str, id: &str) -> Result<Option<String>, Error>;

    /// The indices of these cells in an order in which they are read fast.
    fn reading_order(&self, experiment: &str, ids: &[&str]) -> Vec<usize>;

    /// The ids of all cells of an experiment that have results, also of cells that its plan no longer has, sorted and
    /// each once; empty if nothing is stored of the experiment.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn ids(&self, experiment: &str) -> Result<Vec<CellId>, Error>;

    /// Frees the memory that makes the next reads of an experiment fast, when most of it has been read. It can still be
    /// read.
    fn release(&self, experiment: &str);

    /// The settings of a cell that has results.
    ///
    /// # Errors
    /// If they are not as they were written.
    fn settings(&self, experiment: &str, id: &str) -> Result<toml::Table, Error>;

    /// What tracing the rounds of a cell's custom algorithm gave on each instance when the cell was run, as stored with
    /// it; empty if nothing was.
    fn programs(&self, experiment: &str, id: &str) -> Vec<Traced>;

    /// The looks that were planned for cells of an experiment.
    ///
    /// # Errors
    /// If the record is not as it was written.
    fn planned_looks(&self, experiment: &str) -> Result<Vec<PlannedLooks>, Error>;

    /// Which verdicts of an experiment pages showed, at which numbers of replicates: more replicates after that are
    /// optional stopping.
    ///
    /// # Errors
    /// If the record is not as it was written.
    fn shown_verdicts(&self, experiment: &str) -> Result<Vec<ShownVerdicts>, Error>;

    /// The optimum of an instance with this key, if an earlier run searched for it.
    fn known_optimum(&self, key: &str) -> Option<Minimiser>;

    /// The columns that are cached for `what` by the current version of its numbers ([`Cached::version`]); `None` if
    /// there are none.
    fn cached(&self, what: &Cached) -> Option<Columns>;

    /// Caches columns for `what`. They may be computed again at any time, so that a failure to write them is ignored.
    fn cache(&self, what: &Cached, columns: &Columns);
}

/// A cell as it was stored.
pub struct StoredCell {
    /// What is known of the cell without its traces.
    pub record: CellSummary,
    /// One trace per replicate.
    pub traces: Vec<Trace>,
}

/// What is stored of a cell apart from its settings and traces.
#[derive(Clone, Debug)]
pub struct CellSummary {
    /// The id of the cell, which is a digest of all that determines its runs.
    pub id: CellId,
    /// The label of the cell's algorithm when the cell was stored.
    pub label: Arc<str>,
    /// Digest of the traces.
    pub digest: TraceDigest,
    /// Time that the cell took on one thread, in seconds.
    pub seconds: f64,
    /// The program that computed it.
    pub provenance: Arc<Provenance>,
}

/// Which program computed a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit that the program was built from, or "unknown".
    pub commit: String,
    /// Whether its sources differed from the commit.
    pub dirty: bool,
}

/// Columns of the same length, by name.
pub type Columns = BTreeMap<String, Vec<f64>>;

/// Theory that takes long and is cached with the results. Nothing depends on what is cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cached {
    /// The exact moments of a cell at its recorded rounds, by its content id.
    Moments(String),
    /// A frontier, by the content of the instance and of the search.
    Frontier(String),
    /// How heterogeneous an instance is, by its content and oracle.
    Measures(String),
    /// The optimum of an instance, its residual and the bound on its error, by the content of the
    /// instance.
    Optimum(String),
}

impl Cached {
    /// The version of the cached numbers, which is raised when the same computation gives other numbers, so that older
    /// entries are not read.
    pub fn version(&self) -> u32 {
        match self {
            Self::Moments(_) => moments::VERSION,
            Self::Frontier(_) => 4,
            Self::Measures(_) => 1,
            Self::Optimum(_) => 2,
        }
    }
}

/// An entry of the cache and how it is computed, so that `verify` can compare both.
pub struct Cacheable<'a> {
    /// What the cache holds.
    pub what: Cached,
    /// Computes the columns anew; `None` if there are none.
    pub compute: Box<dyn Fn() -> Option<Columns> + 'a>,
}

/// Looks that were planned, before the first, for cells of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLooks {
    /// The hash of the cells of the first look, by which plans of these cells are recognised.
    pub cells: String,
    /// The numbers of replicates at which claims are judged.
    #[serde(flatten)]
    pub looks: Looks,
    /// The seeds of these cells. Records of earlier releases do not say them.
    #[serde(flatten)]
    pub seeds: Option<Seeds>,
    /// Whether no cell with these settings and seeds was stored, at any number of replicates, when
    /// the looks were planned.
    #[serde(default)]
    pub fresh: bool,
}

/// The seeds from which the runs of a cell draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Seeds {
    /// The seed of the instance, and of the noise unless that has its own.
    pub seed: i64,
    /// The seed of the noise.
    pub noise_seed: i64,
}

/// Verdicts that a page showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownVerdicts {
    /// The hash of the cells of the page.
    pub cells: String,
    /// The number of replicates of each of these cells.
    pub replicates: u64,
}
