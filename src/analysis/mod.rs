//! From results to plain values: what charts draw and pages print.
//!
//! *Invariant*: nothing is smoothed, and nothing is left out unsaid. A curve is
//! the mean over all replicates and ends where the first of them diverged; a
//! cell with diverged replicates has no final mean.

pub mod bounds;
pub mod claims;
pub mod compare;
mod convergence;
mod figure;
mod lines;
pub mod orders;
pub mod problems;
mod scaling;
mod select;
mod stability;
pub mod table;
pub mod theory;
mod winners;

use crate::federated::Cost;
use crate::files::Error;
use crate::kernel::dot;
use crate::manifest::{Prices, Quantity, TimeAverage};
use crate::plan::{Cell, Drawn, Plan};
use crate::runner::prepare;
use crate::store::{self, Store, Stored};
use crate::trace::{Outcome, Trace};
pub use figure::{
    Across, Asks, Body, Figure, Key, Legend, Map, MapCell, Panel, Point, Role, Scale, Series,
    Stability, Style,
};
pub use lines::name as theory_name;
use rayon::prelude::*;
pub use scaling::across;
pub use select::{pretty, titles, told as details_of};
use std::borrow::Cow;
use theory::Theory;
pub use winners::{Standing, Sure, standings};

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
    /// What the results say of the manifest's claims.
    pub claims: Vec<claims::Claim>,
    /// What the published bounds say of the cells.
    pub bounds: Vec<bounds::Row>,
    /// Where the first order of measured biases holds.
    pub orders: Vec<orders::Row>,
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
        if let Some(average) = quantity.average() {
            return self.along_mean(quantity, average);
        }
        self.traces.iter().map(|t| self.column(t, quantity).last().copied()).collect()
    }

    /// What is averaged over the rounds, a vector a replicate.
    pub fn averages(&self, what: TimeAverage) -> Option<Vec<&[f64]>> {
        let of = |t: &'_ Trace| t.averages.iter().position(|(name, _)| *name == what);
        self.traces.iter().map(|t| of(t).map(|i| &t.averages[i].1[..])).collect()
    }

    /// A number a replicate whose mean is the norm of the mean bias, or the trace
    /// of the covariance: a bias is seen along the direction of its mean.
    fn along_mean(&self, quantity: Quantity, average: TimeAverage) -> Option<Vec<f64>> {
        let sample = self.averages(average)?;
        let size = sample.first()?.len();
        let d = libm::sqrt(size as f64) as usize;
        if quantity == Quantity::Variance {
            let trace = |x: &&[f64]| (0..d).map(|i| x[i * d + i]).sum();
            return Some(sample.iter().map(trace).collect());
        }
        let n = sample.len() as f64;
        let mean: Vec<f64> =
            (0..size).map(|i| sample.iter().map(|x| x[i]).sum::<f64>() / n).collect();
        let norm = libm::sqrt(dot(&mean, &mean));
        Some(sample.iter().map(|x| dot(x, &mean) / norm).collect())
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
    let theory = Theory::new(&plan, &prepared, Some(store));
    if asks_for_bias(&plan) {
        for result in &mut cells {
            result.exact_bias = theory.exact_bias(&result.cell.id);
        }
    }
    let figures = figures(&plan, &cells, &theory);
    let problems = problems::of(&plan, &prepared);
    let claims = claims::judge(&plan, &cells, &theory);
    let bounds = bounds::of(&plan, &cells, &theory);
    let orders = orders::of(&cells, &theory);
    drop(theory);
    drop(prepared);
    Ok(Experiment { plan, cells, missing, figures, problems, claims, bounds, orders })
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
    let read = |cell: &Cell| store.read(&plan.experiment, &cell.id);
    let all: Vec<_> = plan.cells.par_iter().map(read).collect();
    for (cell, stored) in plan.cells.iter().zip(all) {
        match stored? {
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

fn figures(plan: &Plan, cells: &[Result], theory: &Theory<'_>) -> Vec<Figure> {
    let table = &plan.manifest.figure;
    let ids: Vec<String> = Drawn::all(&plan.manifest).into_iter().map(|d| d.id).collect();
    let only = |labels: &[String]| -> Vec<&Result> {
        let drawn = |cell: &&Result| labels.is_empty() || labels.contains(&cell.cell.label);
        cells.iter().filter(drawn).collect()
    };
    let convergence =
        table.convergence.iter().map(|f| convergence::draw(f, &only(&f.labels), theory));
    let scaling = table.scaling.iter().map(|f| scaling::draw(f, &only(&f.labels), theory));
    let winners = table.winners.iter().map(|f| winners::draw(f, &only(&f.labels)));
    let stability = table.stability.iter().map(|f| stability::draw(f, &only(&f.labels), theory));
    let all = convergence.chain(scaling).chain(winners).chain(stability).zip(ids);
    all.map(|(figure, id)| Figure { id, ..figure }).collect()
}

/// Whether a figure draws exact biases, so that tables have them too.
fn asks_for_bias(plan: &Plan) -> bool {
    let table = &plan.manifest.figure;
    let convergence = table.convergence.iter().flat_map(|f| &f.theory);
    convergence
        .chain(table.scaling.iter().flat_map(|f| &f.theory))
        .any(|t| *t == crate::manifest::figure::Theory::ExactBias)
}
