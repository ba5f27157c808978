//! Plans and results for tests, simulated in memory by an engine that is right or deliberately wrong.

use crate::cells::CellResult;
use crate::cells::runs::{Grouping, Runs};
use crate::needs::Needs;
use crate::wrong::{self, Mutation};
use exactfed_runner::manifest::{Prices, Source};
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::Prepared;
use exactfed_runner::trace::TraceDigest;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The plan of the manifest with this text.
pub fn plan(text: String) -> Plan {
    let source = Source { name: "t.toml".into(), text, ..Source::default() };
    crate::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"))
}

/// A cell with these runs as its results, and nothing else that results have.
pub fn result(cell: &Cell, runs: Runs) -> CellResult<'_> {
    CellResult {
        cell,
        runs,
        digest: TraceDigest::default(),
        provenance: Arc::default(),
        seconds: 0.0,
        selected_by: None,
        exact_bias: None,
    }
}

/// Runs cells that have one instance each, on an engine with this mutation, and returns their results.
pub fn results<'a>(
    prepared: &'a [Prepared<'a>],
    needs: &Needs<'_>,
    mutation: Mutation,
) -> Vec<CellResult<'a>> {
    let mut results = Vec::with_capacity(prepared.len());
    for one in prepared {
        let traces = wrong::traces(one, mutation);
        let needs = needs.traces(one.cell);
        let runs = Runs::new(traces, Grouping::ONE_INSTANCE, &needs, &Prices::default());
        results.push(result(one.cell, runs));
    }
    results
}

/// The folder of the published manifests; `None` in an archive of this crate, which does not have it.
pub fn published_manifests() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    folder.is_dir().then_some(folder)
}
