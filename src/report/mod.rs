//! Pages from analysed experiments: the only user of minijinja.
//!
//! *Invariant*: a page is a function of the results alone. It has no time, no machine and no
//! commit, so that writing it again changes nothing; those are on a provenance page in the same
//! folder, which is not under version control. While a run rewrites pages they also have a bar
//! ([`live`]).
//!
//! *Invariant*: everything that comes from a manifest is escaped.

mod claims;
mod colored_text;
mod coverage;
pub mod diff;
mod figure_data;
mod fixed_figure;
mod format;
mod frontier_csv;
mod gallery;
mod guide;
pub mod history;
mod index;
mod index_entry;
mod interval_chart;
mod latex;
mod live;
mod live_versions;
mod manifest_texts;
mod markdown;
mod navigation;
mod notation;
mod number_text;
mod numbers;
mod owned;
mod page;
mod page_data;
mod provenance;
mod published;
mod series;
mod setting_cells;
mod summary;
mod templates;
mod text_table;
mod topics;
mod verdict_bars;
mod writer;

use crate::evidence::Experiment;
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::Plan;
pub use format::Format;
pub use index_entry::IndexEntry;
pub use manifest_texts::TextError;
use minijinja::context;
use minijinja::value::{Serde, Value};
use page::Page;
pub use published::PublishedElsewhere;
use std::path::Path;
use templates::Templates;
pub use writer::Writer;

/// What a notebook shows of an experiment: its headline, its first figure and its claims.
///
/// # Errors
/// If a figure cannot be drawn, or the analysis text cannot be filled.
pub fn notebook(experiment: &Experiment<'_>) -> Result<String, Error> {
    let manifest = Path::new(&experiment.plan.source.name);
    // A notebook has no files for long tables.
    let page = Page::new(experiment, &mut |_, _| {}).map_err(|e| error(manifest, e))?;
    Templates::new().render("notebook.html", context! { page => Value::from(Serde(&page)) })
}

/// Checks that a manifest's texts on its results are templates and name cells and claims of the
/// plan. Commands that plan a manifest call it, so that a mistake shows before anything is run.
///
/// # Errors
/// The key (`analysis` or `finding`) whose text cannot be filled from results, and why.
pub fn check_texts(plan: &Plan) -> Result<(), (&'static str, TextError)> {
    let manifest = &plan.manifest;
    for (key, text) in [("analysis", &manifest.analysis), ("finding", &manifest.finding)] {
        manifest_texts::check(text.as_deref().unwrap_or_default(), plan).map_err(|e| (key, e))?;
    }
    Ok(())
}
