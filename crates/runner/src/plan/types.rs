//! A manifest that has been read, with the cells of its grid.

use super::cell::Cell;
use super::hashes::data_folder;
use super::kinds::{EvidenceKinds, KindTable};
use super::named_files::NamedFiles;
use super::tuning::Tuning;
use crate::data::DataFolder;
use crate::manifest::claim::ClaimKeys;
use crate::manifest::figure::FigureKeys;
use crate::manifest::{Manifest, Source};
use exactfed_core::problem;

/// A manifest and its cells.
pub struct Plan {
    /// Name of the experiment: its path below `experiments/`, without `.toml`.
    pub experiment: String,
    /// The manifest as it was given, with the hashes and sizes of the data files that it names, and the definitions of
    /// its custom algorithms, as they were when the cells were planned.
    pub source: Source,
    /// The manifest at the first value of every axis.
    pub manifest: Manifest,
    /// The kinds of claims and figures that the manifest may have.
    pub kinds: &'static EvidenceKinds,
    /// `[[figure.<kind>]]`, kind by kind, or the default figure of a manifest with cells and without such tables; none
    /// where the kinds are not known.
    pub figure_tables: Vec<KindTable<FigureKeys>>,
    /// `[[claim.<kind>]]`, kind by kind; none where the kinds are not known.
    pub claim_tables: Vec<KindTable<ClaimKeys>>,
    /// The files that the claims name in addition to those of the problem.
    pub named_files: NamedFiles,
    /// The cells, algorithm by algorithm, the first axis outermost.
    pub cells: Vec<Cell>,
    /// The problem of the frontiers, if there are any, with the hashes of its files.
    pub frontier_problem: Option<problem::Spec>,
    /// The ids of the figures, in the order of the manifest.
    pub figures: Vec<String>,
    /// The order in which the claims stand in the manifest, as indices into `claim_tables`.
    pub claims: Vec<usize>,
    /// What `[tune]` says and what is known of it; `None` without `[tune]`. The cells then are those of all listed
    /// candidates, or of their first runs where candidates race, until the plan follows their results
    /// ([`Plan::following`]).
    pub tuning: Option<Tuning>,
}

impl Plan {
    /// The data files that the manifest names: in memory, in its folder, or as copies that results keep.
    pub fn folder(&self) -> DataFolder {
        data_folder(&self.source)
    }
}
