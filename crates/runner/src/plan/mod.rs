//! The cells of a manifest, each with the content id that names its results.
//!
//! *Invariant*: a cell id is a hash of what determines the numbers and of nothing else;
//! whitespace, key order, titles, labels and figures do not change it.

mod amendments;
mod budget;
mod candidates;
mod canonical;
mod cell;
mod cells;
mod checker;
mod checks;
mod claims;
mod costs;
mod extension;
mod figures;
mod frontier;
mod grid;
mod hashes;
mod identity;
mod kinds;
mod make;
mod named_files;
mod phase;
mod places;
mod race;
mod record;
mod replicates;
mod selection;
mod settings;
mod tables;
mod tune;
mod tuning;
mod types;
mod validate;

pub use crate::hex::CellId;
pub use canonical::CanonicalSettings;
pub use cell::{Cell, SharedByCells};
pub use checker::Checker;
pub use costs::{needs_optimum, unrecorded};
pub use figures::figure_ids;
pub use frontier::FRONTIER_FIGURES;
pub use identity::{FRESH, Identity, NUMERICS, RunKeys};
pub use kinds::{CommonKeys, EvidenceKinds, KindKeys, KindTable, TableKind, UNREAD};
pub use named_files::NamedFiles;
pub use phase::phase_problem;
pub use places::place_of;
pub use replicates::sets_replicates;
pub use selection::{begins_with_words, selected, shows};
pub use settings::{Setting, Settings, Shapes, leaves, rounded_to_six, short};
pub use tuning::{Candidate, CandidateRuns, Decision, FirstRuns, Tuning, TuningEdge, TuningGroup};
pub use types::Plan;

#[cfg(test)]
mod custom_problem_tests;
#[cfg(test)]
mod tests;
