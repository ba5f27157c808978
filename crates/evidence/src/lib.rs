//! What results say: claims with verdicts, figures, rankings, tuning and frontiers, as plain values
//! that charts draw and pages print.
//!
//! *Invariant*: nothing is smoothed, and a page reports what is left out. A curve is the mean over
//! all replicates and ends where the first of them diverged; a cell with diverged replicates has
//! no final mean.
//!
//! Results are read through the trait [`results::Results`]: nothing here knows files or their formats.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bound_rows;
pub mod cells;
pub mod claims;
pub mod errata;
pub mod figures;
pub mod frontier;
mod kinds;
pub mod looks;
pub mod needs;
pub mod predictions;
pub mod ranking;
pub mod results;
pub mod scene;
#[cfg(test)]
mod simulated;
pub mod standings;
pub mod stats;
pub mod study;
pub mod table;
pub mod tuning;
pub mod unplanned;
#[cfg(test)]
mod wrong;

pub use cells::averages::Centre;
pub use cells::cost_sample::NoSample;
pub use cells::costs::{vectors_sent, when_text};
pub use cells::mean_limits::{mean_limits, summary};
pub use cells::panels::unique;
pub use cells::read::cells_per_task;
pub use cells::runs::{Grouping, Runs, TraceNeeds};
pub use cells::sample_unit::SampleUnit;
pub use cells::setting_text::{cell_name, details, pretty, symbol};
pub use cells::symbols::centres;
pub use cells::{CellResult, Missing, SelectedBy, tuned};
use exactfed_runner::manifest::{Rejected, Source};
use exactfed_runner::plan::{EvidenceKinds, Plan};
pub use figures::curves::curves;
pub use figures::measured::{self, band_name, x_value};
pub use looks::{judged, judged_once, planned_looks};
pub use needs::{draws_exact_bias, wants_moments};
pub use predictions::measures::cacheable_measures;
pub use predictions::{exact, first_order, problems};
pub use ranking::{Rival, Separation};
pub use scene::family;
pub use scene::figure::{
    Band, Body, CurveValue, Exploration, Figure, LabelledPoint, Panel, Plot, Point, Scale, Series,
    View, XAxis,
};
pub use scene::line::{
    COLORS, Color, Curve, CurveSetting, DASHES, Dash, LegendEntry, Line, MARKERS, Reference,
    SHADES, Style, THIN_DASHES, words_before,
};
pub use scene::map::{
    DenseMap, Lead, Map, MapLine, Maps, Ranking, Square, SquareValue, StabilityValue,
};
pub use standings::{RankedAlgorithm, Standing, Standings};
pub use study::{Experiment, analyse, analyse_with};
pub use tuning::{CandidateCounts, CandidateRow, TunedRow, TuningResult};

/// The kinds of claims and figures of manifests.
pub static KINDS: EvidenceKinds = EvidenceKinds::new(claims::KINDS, figures::KINDS);

/// Reads a manifest with its claims and figures, and makes its cells.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn plan(experiment: String, source: Source) -> Result<Plan, Rejected> {
    Plan::new(experiment, source, &KINDS)
}
