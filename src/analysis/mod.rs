//! From results to plain values: what charts draw and pages print.
//!
//! *Invariant*: nothing is smoothed, and nothing is left out unsaid. A curve is
//! the mean over all replicates and ends where the first of them diverged; a
//! cell with diverged replicates has no final mean.

pub mod compare;
mod convergence;
mod figure;
pub mod problems;
mod scaling;
mod select;
pub mod table;
mod winners;

use crate::federated::Cost;
use crate::files::Error;
use crate::manifest::figure::Theory;
use crate::manifest::{Prices, Quantity};
use crate::plan::{Cell, Drawn, Plan};
use crate::problem::Facts;
use crate::runner::{Prepared, prepare};
use crate::store::{self, Store, Stored};
use crate::trace::{Outcome, Trace};
pub use figure::{
    Body, Figure, Key, Legend, Map, MapCell, Panel, Point, Role, Scale, Series, Style,
};
pub use select::pretty;
use std::borrow::Cow;
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
    /// How heterogeneous the problems are.
    pub problems: problems::Table,
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
    /// ‖lim E θ_t − θ*‖², where the manifest asks for it and theory knows it;
    /// its mean over replicates where each has an instance of its own.
    pub exact_bias: Option<f64>,
    /// Prices of the simulated wall clock.
    pub prices: Prices,
}

impl Result {
    /// Replicates that diverged.
    pub fn diverged(&self) -> usize {
        self.traces.iter().filter(|t| t.outcome == Outcome::Diverged).count()
    }

    /// A quantity at the last round, a number a replicate; `None` if one
    /// diverged, or it is not recorded.
    pub fn finals(&self, quantity: Quantity) -> Option<Vec<f64>> {
        if self.diverged() > 0 {
            return None;
        }
        self.traces.iter().map(|t| self.column(t, quantity).last().copied()).collect()
    }

    /// A quantity along one of the cell's traces; empty if it is not recorded.
    pub fn column<'t>(&self, trace: &'t Trace, quantity: Quantity) -> Cow<'t, [f64]> {
        let cost = |of: &dyn Fn(&Cost) -> f64| trace.cost.iter().map(of).collect::<Vec<_>>().into();
        match quantity {
            Quantity::SqError => (&trace.sq_error[..]).into(),
            Quantity::SqErrorLimit => (&trace.sq_error_limit[..]).into(),
            Quantity::Communications => cost(&|c| c.communications as f64),
            Quantity::LocalSteps => cost(&|c| c.local_steps as f64),
            Quantity::OracleCalls => cost(&|c| c.oracle_calls as f64),
            Quantity::VectorsSent => cost(&|c| c.vectors_sent as f64),
            Quantity::Bytes => cost(&|c| c.bytes_sent as f64),
            Quantity::Seconds => cost(&|c| {
                let Prices { latency, bandwidth, call } = self.prices;
                let bytes = bandwidth.map_or(0.0, |rate| c.bytes_sent as f64 / rate);
                latency * c.communications as f64 + bytes + call * c.sequential_calls as f64
            }),
            other => {
                let mut further = trace.further.iter();
                let found = further.find(|(metric, _)| Some(*metric) == other.metric());
                found.map_or(Cow::Borrowed(&[][..]), |(_, values)| values[..].into())
            }
        }
    }
}

/// Reads the results of an experiment and works out its figures.
///
/// # Errors
/// Results that are not as they were written.
pub fn analyse(plan: Plan, store: &Store) -> std::result::Result<Experiment, Error> {
    let (mut cells, missing) = results(&plan, store)?;
    let planned: Vec<&Cell> = plan.cells.iter().collect();
    // Without them (a data file is gone) a page goes without theory.
    let prepared = prepare(&plan.folder(), &planned).unwrap_or_default();
    let biases: HashMap<&str, f64> = exact_biases(&plan, &prepared);
    for result in &mut cells {
        result.exact_bias = biases.get(result.cell.id.as_str()).copied();
    }
    let figures = figures(&plan, &cells);
    let problems = problems::of(&plan, &prepared);
    Ok(Experiment { plan, cells, missing, figures, problems })
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
                prices: plan.manifest.prices.unwrap_or_default(),
            }),
        }
    }
    Ok((cells, missing))
}

fn figures(plan: &Plan, cells: &[Result]) -> Vec<Figure> {
    let table = &plan.manifest.figure;
    let ids: Vec<String> = Drawn::all(&plan.manifest).into_iter().map(|d| d.id).collect();
    let only = |labels: &[String]| -> Vec<&Result> {
        let drawn = |cell: &&Result| labels.is_empty() || labels.contains(&cell.cell.label);
        cells.iter().filter(drawn).collect()
    };
    let convergence = table.convergence.iter().map(|f| convergence::draw(f, &only(&f.labels)));
    let scaling = table.scaling.iter().map(|f| scaling::draw(f, &only(&f.labels)));
    let winners = table.winners.iter().map(|f| winners::draw(f, &only(&f.labels)));
    let all = convergence.chain(scaling).chain(winners).zip(ids);
    all.map(|(figure, id)| Figure { id, ..figure }).collect()
}

/// ‖lim E θ_t − θ*‖² by cell id, if a figure asks for it and theory knows it.
fn exact_biases<'p>(plan: &Plan, prepared: &[Prepared<'p>]) -> HashMap<&'p str, f64> {
    let table = &plan.manifest.figure;
    let convergence = table.convergence.iter().flat_map(|f| &f.theory);
    let mut wanted = convergence.chain(table.scaling.iter().flat_map(|f| &f.theory));
    if !wanted.any(|t| *t == Theory::ExactBias) {
        return HashMap::new();
    }
    let bias = |p: &Prepared<'_>| {
        let squares = p.grounds.iter().map(|ground| {
            let facts: &dyn Facts = &*ground.instance;
            Some(crate::kernel::squared_distance(ground.limit.as_ref()?, facts.optimum()))
        });
        Some(crate::stats::mean(&squares.collect::<Option<Vec<f64>>>()?))
    };
    prepared.iter().filter_map(|p| Some((p.cell.id.as_str(), bias(p)?))).collect()
}
