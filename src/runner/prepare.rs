//! What a cell needs before it runs: its instance, its start, its limit.

use crate::algorithm::{Boxed, Instance};
use crate::kernel::axpy;
use crate::manifest::{Oracle, Start};
use crate::plan::Cell;
use crate::problem::{Facts, Fault};
use crate::theory::linear;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// A cell with its instance.
pub struct Prepared<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The problem's instance, shared between cells.
    pub instance: Arc<dyn Instance>,
    /// θ_0.
    pub start: Vec<f64>,
    /// lim E θ_t, where theory knows it.
    pub limit: Option<Vec<f64>>,
    /// The rounds that are recorded.
    pub recorded: Vec<u64>,
}

impl Prepared<'_> {
    /// Local steps of all clients of all replicates.
    pub fn client_steps(&self) -> u64 {
        self.cell.identity.client_steps(self.instance.clients())
    }

    /// Local steps of all clients in one round of one replicate.
    pub fn steps_per_round(&self) -> u64 {
        let components = self.cell.identity.algorithm.components();
        components.iter().map(|c| c.local_steps).sum::<u64>() * self.instance.clients() as u64
    }
}

/// A cell whose instance or start does not exist.
#[derive(Debug)]
pub struct BadCell {
    /// Path of the setting in the manifest.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// Builds the instances of all cells, each once.
///
/// # Errors
/// Every instance that has no unique solution, and starts that do not fit.
pub fn prepare<'a>(cells: &[&'a Cell]) -> Result<Vec<Prepared<'a>>, Vec<BadCell>> {
    let key = |cell: &Cell| {
        let identity = &cell.identity;
        let problem = toml::Value::try_from(&identity.problem).map(|v| v.to_string());
        (problem.unwrap_or_default(), identity.seed, identity.oracle == Oracle::Exact)
    };
    let mut wanted: HashMap<_, &Cell> = HashMap::new();
    cells.iter().for_each(|cell| {
        wanted.entry(key(cell)).or_insert(cell);
    });
    let built: HashMap<_, Result<Arc<dyn Instance>, Fault>> = wanted
        .into_par_iter()
        .map(|(key, cell)| {
            let built = cell.identity.problem.build(key.1, key.2, Boxed);
            (key, built.map(Arc::from))
        })
        .collect();
    let prepared: Vec<Result<Prepared<'a>, BadCell>> = cells
        .par_iter()
        .map(|cell| match &built[&key(cell)] {
            Ok(instance) => one(cell, instance.clone()),
            Err(fault) => {
                let path = format!("problem.{}.{}", cell.identity.problem.kind(), fault.key);
                Err(BadCell { path, message: fault.message.clone() })
            }
        })
        .collect();
    let (good, bad): (Vec<_>, Vec<_>) = prepared.into_iter().partition(Result::is_ok);
    if bad.is_empty() {
        Ok(good.into_iter().flatten().collect())
    } else {
        Err(bad.into_iter().filter_map(Result::err).collect())
    }
}

fn one<'a>(cell: &'a Cell, instance: Arc<dyn Instance>) -> Result<Prepared<'a>, BadCell> {
    let limit = limit(cell, &*instance);
    let d = instance.dim();
    let bad = |key: &str, message: String| BadCell { path: format!("start.{key}"), message };
    let start = match &cell.identity.start {
        Start::Offset(offset) => instance.optimum().iter().map(|x| x + offset).collect(),
        Start::Zero(_) => vec![0.0; d],
        Start::Point(point) if point.len() == d => point.clone(),
        Start::Point(point) => {
            let message = format!("must have d = {d} numbers, not {}", point.len());
            return Err(bad("point", message));
        }
        Start::Limit(_) => match &limit {
            Some(limit) => limit.clone(),
            None => {
                let message = "needs a linear problem, on which the limit is known exactly";
                return Err(bad("limit", message.into()));
            }
        },
    };
    Ok(Prepared { cell, start, limit, recorded: cell.identity.recorded(), instance })
}

/// lim E θ_t: the weighted sum of the limits of the runs that the algorithm is
/// made of; control variates remove a run's bias on a linear field.
fn limit(cell: &Cell, instance: &dyn Instance) -> Option<Vec<f64>> {
    let facts: &dyn Facts = instance;
    if !facts.linear() {
        return None;
    }
    let mut sum = vec![0.0; facts.dim()];
    for component in cell.identity.algorithm.components() {
        let limit = if component.corrected {
            facts.optimum().to_vec()
        } else {
            linear::limit(facts, component.step_size, component.local_steps)?
        };
        axpy(component.weight, &limit, &mut sum);
    }
    Some(sum)
}
