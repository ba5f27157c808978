//! Who computes results: this program's version, and the commit that it was built from.

use exactfed_evidence::results::Provenance;

/// The provenance of what this program computes.
pub fn now() -> Provenance {
    Provenance {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: env!("EXACTFED_COMMIT").into(),
        dirty: env!("EXACTFED_DIRTY") == "true",
    }
}
