//! Plans and results for tests, simulated in memory by an engine that is right or deliberately wrong.

use crate::cells::CellResult;
use crate::cells::runs::{Grouping, Runs};
use crate::needs::Needs;
use crate::wrong::{self, Mutation};
use exactfed_runner::manifest::{Prices, Source};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::Prepared;
use exactfed_runner::trace::TraceDigest;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn plan(text: String) -> Plan {
    let source = Source { name: "t.toml".into(), text, ..Source::default() };
    crate::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"))
}

/// The results of cells that have one instance each.
pub fn results<'a>(
    prepared: &'a [Prepared<'a>],
    needs: &Needs<'_>,
    mutation: Mutation,
) -> Vec<CellResult<'a>> {
    let result = |prepared: &'a Prepared<'a>| CellResult {
        cell: prepared.cell,
        runs: Runs::new(
            wrong::traces(prepared, mutation),
            Grouping::ONE_INSTANCE,
            &needs.traces(prepared.cell),
            &Prices::default(),
        ),
        digest: TraceDigest::default(),
        provenance: Arc::default(),
        seconds: 0.0,
        selected_by: None,
        exact_bias: None,
    };
    prepared.iter().map(result).collect()
}

/// The folder of the published manifests; `None` in an archive of this crate, which does not have it.
pub fn published_manifests() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    folder.is_dir().then_some(folder)
}
