//! A side of a comparison: its experiments and cells.

use super::claims::SideClaim;
use super::settings::Settings;
use crate::analysis::family::family;
use std::collections::BTreeMap;

/// Version of what a side stores of an experiment. The first reports had final errors
/// alone, and count as 0.
pub const SCHEMA: u32 = 1;

/// A side of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Its name on pages.
    pub name: String,
    /// Schema of a results folder, if this program does not read it.
    pub foreign: Option<u32>,
    /// Its experiments.
    pub experiments: BTreeMap<String, SideExperiment>,
}

/// An experiment of a side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideExperiment {
    /// [`SCHEMA`] of the program that wrote it.
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

/// A cell of a side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideCell {
    /// Name of the algorithm.
    pub label: String,
    /// The settings that determine the numbers, by dotted path.
    pub settings: Settings,
    /// Its runs.
    pub runs: SideRuns,
    /// Time on one thread, in seconds; reports do not store it.
    pub seconds: Option<f64>,
}

/// The runs of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SideRuns {
    /// They are stored.
    Done {
        /// Digest of the traces.
        digest: String,
        /// ‖θ_T − θ*‖² per replicate; `None` where it diverged.
        finals: Vec<Option<f64>>,
    },
    /// The manifest asks for the cell, and nothing is stored.
    #[default]
    Missing,
    /// They are not as they were written, and why.
    Damaged(String),
}

impl SideCell {
    /// The family of its algorithm, which its settings name.
    pub fn family(&self) -> usize {
        let kind = |path: &str| path.strip_prefix("algorithm.")?.split('.').next().map(family);
        self.settings.keys().find_map(kind).unwrap_or_else(|| family(""))
    }

    /// Digest of its traces, if they are there.
    pub fn digest(&self) -> Option<&str> {
        match &self.runs {
            SideRuns::Done { digest, .. } => Some(digest),
            _ => None,
        }
    }
}
