//! How heterogeneous an experiment's problems are: ζ₁, ζ₂ (RR A2), and what
//! else tells instances apart, with the average drift at the optimum (SLIDES)
//! for every step size and number of local steps.

use super::select::pretty;
use crate::manifest::Oracle;
use crate::plan::{Plan, Setting, short};
use crate::problem::Facts;
use crate::runner::Prepared;
use crate::theory::deterministic::drift;
use crate::theory::heterogeneity::Measures;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The instances of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// One a distinct instance, in the order of the cells; empty where they
    /// cannot be built again (a data file is gone).
    pub rows: Vec<Row>,
    /// Whether replicates have instances of their own; then the first is told.
    pub per_replicate: bool,
}

/// An instance.
#[derive(Clone, Debug)]
pub struct Row {
    /// Settings that tell it apart; empty if it is the only one.
    pub name: String,
    /// N and d.
    pub size: (usize, usize),
    /// Its measures.
    pub measures: Measures,
    /// γ, H and the average drift at θ*, for what the algorithms take.
    pub drifts: Vec<(f64, u64, f64)>,
}

/// Oracle calls beyond which a drift along a field that is not linear is left
/// out: it is walked, not computed.
const MOST_CALLS: u64 = 2_000_000;

/// The instances of a plan's prepared cells.
pub fn of(plan: &Plan, prepared: &[Prepared<'_>]) -> Table {
    let noisy = plan.cells.iter().any(|c| c.identity.oracle == Oracle::Stochastic);
    let mut places: HashMap<*const (), usize> = HashMap::new();
    let mut found: Vec<Found<'_>> = Vec::new();
    for p in prepared {
        let instance = &p.grounds[0].instance;
        let facts: &dyn Facts = &**instance;
        // With and without noise it is one instance; noise is told of the noisy.
        if p.cell.identity.oracle == Oracle::Exact && noisy {
            continue;
        }
        let place = *places.entry(Arc::as_ptr(instance).cast()).or_insert(found.len());
        if place == found.len() {
            found.push(Found { first: p, walks: Vec::new(), known: HashSet::new() });
        }
        for component in p.cell.identity.algorithm.components() {
            let terms = &component.terms;
            let (step, steps) = (terms.step_size, terms.most_steps());
            let walked = steps.saturating_mul(facts.clients() as u64);
            let told = steps > 1 && (facts.linear() || walked <= MOST_CALLS);
            if told && found[place].known.insert((step.to_bits(), steps)) {
                found[place].walks.push((step, steps));
            }
        }
    }
    let rows: Vec<Option<Row>> = found.par_iter().map(Found::row).collect();
    Table {
        rows: rows.into_iter().flatten().collect(),
        per_replicate: !plan.manifest.instance.is_fixed(),
    }
}

/// An instance, and the ways to walk from its optimum.
struct Found<'a> {
    first: &'a Prepared<'a>,
    walks: Vec<(f64, u64)>,
    known: HashSet<(u64, u64)>,
}

impl Found<'_> {
    /// Its row; `None` if an eigenvalue cannot be found.
    fn row(&self) -> Option<Row> {
        let facts: &dyn Facts = &*self.first.grounds[0].instance;
        let drifts = self.walks.par_iter();
        Some(Row {
            name: name(self.first),
            size: (facts.clients(), facts.dim()),
            measures: Measures::of(facts)?,
            drifts: drifts
                .map(|(step, steps)| (*step, *steps, drift(facts, *step, *steps)))
                .collect(),
        })
    }
}

/// The settings of the problem that the grid varies.
fn name(p: &Prepared<'_>) -> String {
    let varied = p.cell.varied.iter().filter(|path| path.starts_with("problem."));
    let value = |path: &String| Some((short(path).to_owned(), p.cell.settings.get(path)?.clone()));
    let settings: BTreeMap<String, Setting> = varied.filter_map(value).collect();
    let parts: Vec<String> = settings.iter().map(|(name, value)| pretty(name, value)).collect();
    parts.join(", ")
}
