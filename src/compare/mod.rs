//! Compares two sides, experiment by experiment and cell by cell: what cannot be compared, which
//! cells were removed and added, which have the same bits, and which changed, by how much and
//! how significantly. docs/DIFF.md says how verdicts are reached.
//!
//! [`compare`] reads no file: [`results`] and [`record`] make sides, [`curves`] draws what changed,
//! [`history`] follows many commits. Random streams are common, so replicates are paired.
//!
//! A file imports from files of earlier lines, and none imports from this one:
//!
//! 1. `claims`: claims of a side, and those whose verdict changed;
//! 2. `side`: a side, with its experiments and cells;
//! 3. `names`, `pairing`, `record`: names of cells, counterparts, and the files of reports;
//! 4. `judge`, `results`: verdicts on changed cells, and sides of results folders;
//! 5. `comparison`, `curves`: the comparison of two sides, and figures of a change;
//! 6. `history`: comparisons from commit to commit.

mod claims;
mod comparison;
pub mod curves;
pub mod history;
mod judge;
mod names;
mod pairing;
pub mod record;
pub mod results;
mod side;
#[cfg(test)]
mod tests;

pub use claims::{ClaimChange, SideClaim};
pub use comparison::{Class, Comparison, Incomparable, ListedCell, OtherProblem, Timing, compare};
pub use judge::{Change, ChangeVerdict, Options};
pub use pairing::{OtherSetting, Pair};
pub use side::{OmittedRuns, SCHEMA, Side, SideCell, SideExperiment, SideRuns};
