//! Who computed a result: the program's version, and the commit it was built
//! from.

use serde::{Deserialize, Serialize};

/// Who computed a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit that the program was built from, or "unknown".
    pub commit: String,
    /// Whether its sources differed from the commit.
    pub dirty: bool,
}

impl Provenance {
    /// The provenance of what this program computes.
    pub fn now() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: env!("EXACTFED_COMMIT").into(),
            dirty: env!("EXACTFED_DIRTY") == "true",
        }
    }
}
