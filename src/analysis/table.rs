//! The final metrics of every cell, as rows of a table.

use super::{CellResult, Experiment};
use crate::stats::{Summary, mean};
use driftbench_runner::manifest::{Metric, Quantity};
use driftbench_runner::plan::short;
use std::collections::HashSet;

/// A table of the cells' final metrics.
pub struct FinalsTable<'a> {
    /// Names of the settings that vary.
    pub settings: Vec<String>,
    /// Whether theory knows an exact bias.
    pub has_bias: bool,
    /// Whether errors around the limit are recorded.
    pub has_limit: bool,
    /// Further quantities that are recorded of some cell.
    pub further: Vec<Quantity>,
    /// The cells; each row is computed when it is read.
    cells: &'a [CellResult<'a>],
}

/// A cell's final metrics.
pub struct FinalsRow {
    /// Content id.
    pub id: String,
    /// Name of the algorithm.
    pub label: String,
    /// Values of the settings that vary; empty where the cell has no such one.
    pub settings: Vec<String>,
    /// Replicates.
    pub n: usize,
    /// Replicates that diverged.
    pub diverged: usize,
    /// ‖θ_T − θ*‖²; `None` if a replicate diverged.
    pub sq_error: Option<Summary>,
    /// ‖θ_T − lim E θ_t‖², where it is recorded.
    pub sq_error_limit: Option<Summary>,
    /// ‖lim E θ_t − θ*‖².
    pub exact_bias: Option<f64>,
    /// The table's further quantities.
    pub further: Vec<Option<Summary>>,
    /// Digest of the traces.
    pub digest: String,
}

/// The final metrics of an experiment.
pub fn finals<'a>(experiment: &'a Experiment<'_>) -> FinalsTable<'a> {
    let cells: &[CellResult<'_>] = &experiment.cells;
    let mut settings: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    for name in cells.iter().flat_map(|c| &*c.cell.varied).map(|path| short(path)) {
        if seen.insert(name) {
            settings.push(name.to_owned());
        }
    }
    let own = cells.iter().flat_map(|c| c.cell.settings.iter().map(|(path, _)| path));
    let own = own
        .filter(|path| path.starts_with("algorithm.") && path.matches('.').count() == 2)
        .map(short);
    let all: Vec<&CellResult<'_>> = cells.iter().collect();
    for name in own {
        if seen.insert(name) && super::panels::distinct(&all, name).len() > 1 {
            settings.push(name.to_owned());
        }
    }
    let recorded = |metric: &Metric| {
        let quantity = metric.quantity();
        let found = cells.iter().any(|cell| cell.finals(quantity).is_some());
        (found && quantity != Quantity::SqErrorLimit).then_some(quantity)
    };
    let asked = &experiment.plan.manifest.record.metrics;
    FinalsTable {
        settings,
        has_bias: cells.iter().any(|c| c.exact_bias.is_some()),
        has_limit: cells.iter().any(|c| c.finals(Quantity::SqErrorLimit).is_some()),
        further: asked.iter().filter_map(recorded).collect(),
        cells,
    }
}

impl FinalsTable<'_> {
    /// Its rows, in the order of the cells.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = FinalsRow> {
        self.cells.iter().map(|cell| self.row(cell))
    }

    /// At most `most` rows, those with the smallest mean error, in the order of the cells. Cells
    /// with runs that diverged have no mean and rank last.
    pub fn best(&self, most: usize) -> impl ExactSizeIterator<Item = FinalsRow> {
        let mut places: Vec<usize> = (0..self.cells.len()).collect();
        if places.len() > most {
            let error = |cell: &CellResult<'_>| {
                cell.finals(Quantity::SqError).map_or(f64::INFINITY, |sample| mean(&sample))
            };
            let errors: Vec<f64> = self.cells.iter().map(error).collect();
            places.sort_by(|a, b| errors[*a].total_cmp(&errors[*b]));
            places.truncate(most);
            places.sort_unstable();
        }
        places.into_iter().map(|place| self.row(&self.cells[place]))
    }

    fn row(&self, cell: &CellResult<'_>) -> FinalsRow {
        let value = |name: &String| {
            cell.cell.settings.get(name).map(ToString::to_string).unwrap_or_default()
        };
        let summary = |metric| cell.finals(metric).map(|sample| Summary::new(&sample));
        FinalsRow {
            id: cell.cell.id.clone(),
            label: cell.cell.label.clone(),
            settings: self.settings.iter().map(value).collect(),
            n: cell.replicates(),
            diverged: cell.diverged(),
            sq_error: summary(Quantity::SqError),
            sq_error_limit: summary(Quantity::SqErrorLimit),
            exact_bias: cell.exact_bias,
            further: self.further.iter().map(|quantity| summary(*quantity)).collect(),
            digest: cell.digest.clone(),
        }
    }
}
