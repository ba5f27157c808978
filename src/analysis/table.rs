//! Final metrics of every cell, as rows.

use super::{Experiment, Result};
use crate::manifest::{Metric, Quantity};
use crate::plan::short;
use crate::stats::Summary;
use std::collections::HashSet;

/// A table of the cells' final metrics.
pub struct Table {
    /// Names of the settings that vary.
    pub settings: Vec<String>,
    /// Whether theory knows an exact bias.
    pub has_bias: bool,
    /// Whether errors around the limit are recorded.
    pub has_limit: bool,
    /// What else is recorded of any cell.
    pub further: Vec<Quantity>,
    /// A row a cell.
    pub rows: Vec<Row>,
}

/// A cell's final metrics.
pub struct Row {
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
    /// What else is recorded, in the table's order.
    pub further: Vec<Option<Summary>>,
    /// Digest of the traces.
    pub digest: String,
}

/// The final metrics of an experiment.
pub fn finals(experiment: &Experiment) -> Table {
    let mut settings: Vec<String> = Vec::new();
    for path in experiment.cells.iter().flat_map(|c| &c.cell.varied) {
        let name = short(path);
        if !settings.iter().any(|s| s == name) {
            settings.push(name.to_owned());
        }
    }
    let own = experiment.cells.iter().flat_map(|c| c.cell.settings.0.keys());
    let own = own
        .filter(|path| path.starts_with("algorithm.") && path.matches('.').count() == 2)
        .map(|path| short(path));
    let cells: Vec<&Result> = experiment.cells.iter().collect();
    let mut seen = HashSet::new();
    for name in own.filter(|name| seen.insert(*name)) {
        let values = super::select::distinct(&cells, name).len();
        if values > 1 && !settings.iter().any(|s| s == name) {
            settings.push(name.to_owned());
        }
    }
    let recorded = |metric: &Metric| {
        let quantity = metric.quantity();
        let found = experiment.cells.iter().any(|cell| cell.finals(quantity).is_some());
        (found && quantity != Quantity::SqErrorLimit).then_some(quantity)
    };
    let asked = &experiment.plan.manifest.record.metrics;
    let further: Vec<Quantity> = asked.iter().filter_map(recorded).collect();
    let rows: Vec<Row> =
        experiment.cells.iter().map(|cell| row(cell, &settings, &further)).collect();
    Table {
        further,
        has_bias: rows.iter().any(|r| r.exact_bias.is_some()),
        has_limit: rows.iter().any(|r| r.sq_error_limit.is_some()),
        settings,
        rows,
    }
}

fn row(cell: &Result, settings: &[String], further: &[Quantity]) -> Row {
    let value =
        |name: &String| cell.cell.settings.get(name).map(ToString::to_string).unwrap_or_default();
    let summary = |metric| cell.finals(metric).map(|sample| Summary::of(&sample));
    Row {
        id: cell.cell.id.clone(),
        label: cell.cell.label.clone(),
        settings: settings.iter().map(value).collect(),
        n: cell.traces.len(),
        diverged: cell.diverged(),
        sq_error: summary(Quantity::SqError),
        sq_error_limit: summary(Quantity::SqErrorLimit),
        exact_bias: cell.exact_bias,
        further: further.iter().map(|quantity| summary(*quantity)).collect(),
        digest: cell.digest.clone(),
    }
}
