//! The files of a report folder that later diffs read: `record.toml` has the settings that all
//! cells of an experiment share and the verdicts on its claims; `finals.csv` has one line per
//! cell, with every bit of the final errors of its first [`MOST_KEPT`] replicates.
//!
//! Reports are under version control, so that what they keep must be small. Replicates are
//! independent, so that the first ones are a sample of all; and their random streams do not depend
//! on the number of replicates, so that a diff can pair them with those of any other side. All
//! replicates are in results folders.
//!
//! *Invariant*: numbers are read back to the last bit, and a file that was changed is refused:
//! `record.toml` holds the hash of `finals.csv`.
//!
//! `format` has what both directions share; `reading` and `writing` import it and not each other.

mod format;
mod reading;
#[cfg(test)]
mod tests;
mod writing;

pub use format::{FINALS, MOST_KEPT, RECORD, hash};
pub use reading::{FileText, RecordError, experiments, read};
pub use writing::{files, write};
