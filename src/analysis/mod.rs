//! From results to plain values: what charts draw and pages print.
//!
//! *Invariant*: nothing is smoothed, and nothing is left out unsaid. A curve is
//! the mean over all replicates and ends where the first of them diverged; a
//! cell with diverged replicates has no final mean.

pub mod compare;
mod convergence;
mod figure;
mod scaling;
mod select;
pub mod table;
mod winners;

use crate::files::Error;
use crate::manifest::figure::{Metric, Theory};
use crate::plan::{Cell, Drawn, Plan};
use crate::problem::Facts;
use crate::runner::{Prepared, prepare};
use crate::store::{self, Store, Stored};
use crate::trace::{Outcome, Trace};
pub use figure::{
    Body, Figure, Key, Legend, Map, MapCell, Panel, Point, Role, Scale, Series, Style,
};
pub use select::pretty;
use std::collections::HashMap;

/// An experiment with its results.
pub struct Experiment {
    /// The manifest and its cells.
    pub plan: Plan,
    /// The cells that have results, in the order of the plan.
    pub cells: Vec<Result>,
    /// Ids of cells without results.
    pub missing: Vec<String>,
    /// What the manifest asks to be drawn.
    pub figures: Vec<Figure>,
}

/// A cell with its results.
pub struct Result {
    /// The cell.
    pub cell: Cell,
    /// A trace per replicate.
    pub traces: Vec<Trace>,
    /// Digest of the traces.
    pub digest: String,
    /// Commit and version that computed it.
    pub provenance: store::provenance::Provenance,
    /// Time that it took on one thread, in seconds.
    pub seconds: f64,
    /// ‖lim E θ_t − θ*‖², where the manifest asks for it and theory knows it.
    pub exact_bias: Option<f64>,
}

impl Result {
    /// Replicates that diverged.
    pub fn diverged(&self) -> usize {
        self.traces.iter().filter(|t| t.outcome == Outcome::Diverged).count()
    }

    /// The metric at the last round, a number a replicate; `None` if one
    /// diverged, or the metric is not recorded.
    pub fn finals(&self, metric: Metric) -> Option<Vec<f64>> {
        if self.diverged() > 0 {
            return None;
        }
        self.traces.iter().map(|t| values(t, metric).last().copied()).collect()
    }
}

/// The column of a metric.
pub fn values(trace: &Trace, metric: Metric) -> &[f64] {
    match metric {
        Metric::SqError => &trace.sq_error,
        Metric::SqErrorLimit => &trace.sq_error_limit,
    }
}

/// The formula of a metric.
pub fn formula(metric: Metric) -> &'static str {
    match metric {
        Metric::SqError => "‖θ − θ*‖²",
        Metric::SqErrorLimit => "‖θ − lim E θ‖²",
    }
}

/// Reads the results of an experiment and works out its figures.
///
/// # Errors
/// Results that are not as they were written.
pub fn analyse(plan: Plan, store: &Store) -> std::result::Result<Experiment, Error> {
    let (mut cells, missing) = results(&plan, store)?;
    let biases: HashMap<&str, f64> = exact_biases(&plan);
    for result in &mut cells {
        result.exact_bias = biases.get(result.cell.id.as_str()).copied();
    }
    let figures = figures(&plan, &cells);
    Ok(Experiment { plan, cells, missing, figures })
}

/// The cells of a plan that have results, and the ids of those that have none.
///
/// # Errors
/// Results that are not as they were written.
pub fn results(
    plan: &Plan,
    store: &Store,
) -> std::result::Result<(Vec<Result>, Vec<String>), Error> {
    let (mut cells, mut missing) = (Vec::new(), Vec::new());
    for cell in &plan.cells {
        match store.read(&plan.experiment, &cell.id)? {
            None => missing.push(cell.id.clone()),
            Some(Stored { record, traces }) => cells.push(Result {
                cell: cell.clone(),
                traces,
                digest: record.digest,
                provenance: record.provenance,
                seconds: record.seconds,
                exact_bias: None,
            }),
        }
    }
    Ok((cells, missing))
}

fn figures(plan: &Plan, cells: &[Result]) -> Vec<Figure> {
    let table = &plan.manifest.figure;
    let ids: Vec<String> = Drawn::all(&plan.manifest).into_iter().map(|d| d.id).collect();
    let convergence = table.convergence.iter().map(|f| convergence::draw(f, cells));
    let scaling = table.scaling.iter().map(|f| scaling::draw(f, cells));
    let winners = table.winners.iter().map(|f| winners::draw(f, cells));
    let all = convergence.chain(scaling).chain(winners).zip(ids);
    all.map(|(figure, id)| Figure { id, ..figure }).collect()
}

/// ‖lim E θ_t − θ*‖² by cell id, if a figure asks for it and theory knows it.
fn exact_biases(plan: &Plan) -> HashMap<&str, f64> {
    let mut wanted = plan.manifest.figure.convergence.iter().flat_map(|f| &f.theory);
    if !wanted.any(|t| *t == Theory::ExactBias) {
        return HashMap::new();
    }
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let bias = |p: &Prepared<'_>| {
        let facts: &dyn Facts = &*p.instance;
        Some(crate::kernel::squared_distance(p.limit.as_ref()?, facts.optimum()))
    };
    let prepared = prepare(&cells).unwrap_or_default();
    let biases = prepared.iter().zip(&plan.cells).map(|(p, cell)| (cell.id.as_str(), bias(p)));
    biases.filter_map(|(id, bias)| Some((id, bias?))).collect()
}
