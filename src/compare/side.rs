//! A side of a comparison: its experiments and cells.

use super::claims::SideClaim;
use crate::evidence::family::family;
use crate::stats::looks::Looks;
use exactfed_runner::manifest::{Quantity, Record};
use exactfed_runner::plan::{CellId, Settings, Shapes};
use exactfed_runner::trace::TraceDigest;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Version of what a side stores of an experiment. The first reports had final errors
/// alone, and count as 0; [`super::record`] reads schema 1 as this one.
pub const SCHEMA: u32 = 2;

/// A side of a comparison: all that is compared of a results folder, of a folder of reports or of a git revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Its name on pages.
    pub name: String,
    /// The schema of a results folder that this program does not read, of which nothing else is known; `None` of all
    /// other sides.
    pub foreign: Option<u32>,
    /// Its experiments by name.
    pub experiments: BTreeMap<String, SideExperiment>,
}

/// An experiment of a side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideExperiment {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// The seed of its manifest.
    pub seed: u64,
    /// Hash of its manifest's text and `--set`s; empty if not known.
    pub manifest: String,
    /// The looks that were planned for its cells, at which its claims are judged; `None` if none were, if it has no
    /// claims, or if a report of an earlier release does not say them.
    pub looks: Option<Looks>,
    /// The cells of the experiment by id, also those without results.
    pub cells: BTreeMap<CellId, SideCell>,
    /// Its claims; `None` if they were not judged.
    pub claims: Option<Vec<SideClaim>>,
}

impl SideExperiment {
    /// The seed of the noise of its cells as a text: that of the first cell whose settings have one, or else the seed
    /// of the experiment, since settings have it only where it is another one. A plan gives all cells the same; stored
    /// cells whose manifest cannot be read may have several.
    pub fn noise_seed(&self) -> String {
        match self.cells.values().find_map(|cell| cell.settings.at_path("noise-seed")) {
            Some(seed) => seed.to_string(),
            None => self.seed.to_string(),
        }
    }
}

/// A cell of a side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideCell {
    /// Name of the algorithm.
    pub label: Arc<str>,
    /// The leaves of the settings that determine the numbers.
    pub settings: Settings,
    /// What is known of its runs.
    pub runs: SideRuns,
    /// Time on one thread, in seconds; reports do not store it.
    pub seconds: Option<f64>,
}

/// What a side knows of the runs of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SideRuns {
    /// The results are stored and sound.
    Done {
        /// Digest of the traces.
        digest: TraceDigest,
        /// The final value per replicate of [`SideCell::compared_by`]; `None` where it diverged. It is empty where a
        /// results folder was not asked for it, since the other side has the same digest.
        finals: Box<[Option<f64>]>,
        /// The replicates after those of `finals`.
        omitted: OmittedRuns,
    },
    /// The manifest asks for the cell, and nothing is stored.
    #[default]
    Missing,
    /// The stored results are not as they were written; the text says how.
    Damaged(String),
}

impl SideRuns {
    /// Sound runs with the final values of all replicates.
    pub fn done(digest: TraceDigest, finals: impl Into<Box<[Option<f64>]>>) -> Self {
        Self::Done { digest, finals: finals.into(), omitted: OmittedRuns::default() }
    }
}

/// The runs of a cell whose final values its report does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OmittedRuns {
    /// How many they are.
    pub count: u32,
    /// How many of them diverged.
    pub diverged: u32,
}

/// How many of the runs with these final values diverged.
pub fn count_diverged(finals: &[Option<f64>]) -> usize {
    finals.iter().filter(|value| value.is_none()).count()
}

impl SideCell {
    /// A cell without results, from paths and texts of its settings, as tests make them.
    pub fn new<'a>(label: &str, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let settings = Shapes::default().read(settings);
        Self { label: label.into(), settings, ..Self::default() }
    }

    /// The kind of its algorithm, which its settings name: `fedavg` of `algorithm.fedavg.step-size`. Empty if the
    /// settings have no algorithm.
    pub fn kind(&self) -> &str {
        let mut paths = self.settings.iter().map(|(path, _)| path);
        let below = paths.find_map(|path| path.strip_prefix("algorithm."));
        below.unwrap_or_default().split('.').next().unwrap_or_default()
    }

    /// The index of the family of its algorithm, which decides on the colour of the cell on pages. A custom algorithm,
    /// whose kind is not known here, is of the family of others.
    pub fn family(&self) -> usize {
        family(self.kind())
    }

    /// The quantity by which its runs are compared, as its settings say: ‖θ_T − θ*‖², or where `record.optimum` is
    /// false the first loss among `record.metrics`, or else the first metric ([`Record::default_quantity`]).
    pub fn compared_by(&self) -> Quantity {
        let list = self.settings.at_path("record.metrics").map(ToString::to_string);
        // The text of the list has each name in quotes.
        let names = list.as_deref().unwrap_or_default().split('"');
        let metrics = names.filter_map(|name| Quantity::named(name)?.metric()).collect();
        // The key is there only if it is false.
        let optimum = self.settings.at_path("record.optimum").is_none();
        Record { optimum, metrics, ..Record::default() }.default_quantity()
    }

    /// The hash of the bits of its traces; `None` without sound results. Cells with the same digest need no comparison.
    pub fn digest(&self) -> Option<TraceDigest> {
        match &self.runs {
            SideRuns::Done { digest, .. } => Some(*digest),
            _ => None,
        }
    }
}

/// The paths of the settings in which these cells differ: their values differ, or some of the cells lack the setting.
/// There are none for fewer than two cells.
pub fn differing_paths<C: Borrow<SideCell>>(
    cells: impl IntoIterator<Item = C>,
) -> BTreeSet<String> {
    let mut cells = cells.into_iter();
    let first = cells.next().map(|cell| cell.borrow().settings.clone()).unwrap_or_default();
    let mut differing = BTreeSet::new();
    for cell in cells {
        first.add_differing(&cell.borrow().settings, &mut differing);
    }
    differing
}

/// An id for each short name, in the order of the names.
#[cfg(test)]
pub fn id_of(name: &str) -> CellId {
    let digits = exactfed_runner::files::hex(name.as_bytes());
    CellId::read(&format!("{digits:0<16}")).expect("a name of at most eight letters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_compared_by_what_their_settings_record() {
        let by =
            |settings: &[(&str, &str)]| SideCell::new("a", settings.iter().copied()).compared_by();
        let metrics = ("record.metrics", "[\"accuracy\", \"test-loss\"]");
        assert_eq!(by(&[]), Quantity::SqError);
        assert_eq!(by(&[metrics]), Quantity::SqError);
        assert_eq!(by(&[metrics, ("record.optimum", "false")]), Quantity::TestLoss);
    }
}
