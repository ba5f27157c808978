//! What a side of a comparison is.

use super::{Settings, SideClaim};
use std::collections::BTreeMap;

/// Version of what a side keeps of an experiment. Reports of before had finals
/// alone, and count as 0.
pub const SCHEMA: u32 = 1;

/// A side of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// What it is, as readers are told.
    pub name: String,
    /// Schema of a results folder that this program does not read.
    pub foreign: Option<u32>,
    /// Its experiments.
    pub experiments: BTreeMap<String, SideExperiment>,
}

/// What is kept of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideExperiment {
    /// [`SCHEMA`] of whoever wrote it.
    pub schema: u32,
    /// Seed of its streams.
    pub seed: u64,
    /// Hash of its manifest's text and `--set`s; empty if not known.
    pub manifest: String,
    /// Its cells by id.
    pub cells: BTreeMap<String, SideCell>,
    /// Its claims; `None` if they were not judged.
    pub claims: Option<Vec<SideClaim>>,
}

/// What is kept of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideCell {
    /// Name of the algorithm.
    pub label: String,
    /// What determines the numbers, by dotted path.
    pub settings: Settings,
    /// Its runs.
    pub runs: SideRuns,
    /// Time on one thread, in seconds, where results tell.
    pub seconds: Option<f64>,
}

/// What became of a cell's runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SideRuns {
    /// They are there.
    Done {
        /// Digest of the traces.
        digest: String,
        /// ‖θ_T − θ*‖² a replicate; `None` where it diverged.
        finals: Vec<Option<f64>>,
    },
    /// The manifest asks for the cell, and nothing is stored.
    #[default]
    Missing,
    /// They are not as they were written, and why.
    Damaged(String),
}

impl SideCell {
    /// Digest of its traces, if they are there.
    pub fn digest(&self) -> Option<&str> {
        match &self.runs {
            SideRuns::Done { digest, .. } => Some(digest),
            _ => None,
        }
    }
}
