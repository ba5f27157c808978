//! How heterogeneous an experiment's problems are: ζ₁, ζ₂ (RR A2), and what
//! else tells instances apart, with the average drift at the optimum (SLIDES)
//! for every step size and number of local steps.

use super::select::pretty;
use driftbench_core::algorithm::Component;
use driftbench_core::federated::Schedule;
use driftbench_core::problem::Facts;
use driftbench_core::theory::deterministic::{drift, drift_effort};
use driftbench_core::theory::effort::Effort;
use driftbench_core::theory::heterogeneity::Measures;
use driftbench_runner::files::Error;
use driftbench_runner::manifest::Oracle;
use driftbench_runner::plan::{Cell, Plan, Setting, short};
use driftbench_runner::runner::Prepared;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The instances of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// One a distinct instance, in the order of the cells.
    pub rows: Vec<Row>,
    /// Whether replicates have instances of their own; then the first is shown.
    pub per_replicate: bool,
    /// Instances beyond those of the rows.
    pub further: usize,
    /// Step sizes and numbers of local steps beyond those of the rows' drifts.
    pub further_drifts: usize,
    /// What the measures and drifts take that are not computed at this size: how many, and
    /// the largest.
    pub not_computed: Option<(usize, Effort)>,
}

impl Table {
    /// What is not computed at this size, as a sentence.
    pub(super) fn not_computed(&self) -> Option<String> {
        let (count, most) = self.not_computed?;
        Some(format!(
            "Of the problems' measures and drifts {count}: the table would take {most} or more."
        ))
    }
}

/// An instance.
#[derive(Clone, Debug)]
pub struct Row {
    /// Settings that tell it apart; empty if it is the only one.
    pub name: String,
    /// N and d.
    pub size: (usize, usize),
    /// Its measures; `None` where they are not computed.
    pub measures: Option<Measures>,
    /// γ, H and the average drift at θ*, for what the algorithms take.
    pub drifts: Vec<(f64, u64, f64)>,
}

/// Oracle calls beyond which a drift along a field that is not linear is left
/// out: it is walked, not computed.
const MOST_CALLS: u64 = 2_000_000;

/// Instances that are told, and step sizes with numbers of local steps of all of them.
const MOST_INSTANCES: usize = 500;
const MOST_DRIFTS: usize = 500;

/// The instances of a plan, those that are prepared already and the others.
///
/// # Errors
/// If one of the others cannot be built.
pub fn of(plan: &Plan, prepared: &[Prepared<'_>]) -> Result<Table, Error> {
    let per_replicate = !plan.manifest.instance.is_fixed();
    let (mut groups, further) = groups(plan);
    let known: HashMap<&str, &Prepared<'_>> =
        prepared.iter().map(|p| (p.cell.id.as_str(), p)).collect();
    let unknown = groups.iter().map(|group| group.first);
    let unknown: Vec<&Cell> = unknown.filter(|c| !known.contains_key(c.id.as_str())).collect();
    let more = super::instances(plan, &unknown)?;
    let more: HashMap<&str, &Prepared<'_>> = more.iter().map(|p| (p.cell.id.as_str(), p)).collect();
    let (mut found, mut room, mut further_drifts) = (Vec::new(), MOST_DRIFTS, 0);
    let mut budget = Budget::default();
    for group in &mut groups {
        let id = group.first.id.as_str();
        let Some(first) = known.get(id).or_else(|| more.get(id)) else { continue };
        let facts: &dyn Facts = &*first.grounds[0].instance;
        let told = |(_, steps): &(f64, u64)| {
            let walked = steps.saturating_mul(facts.clients() as u64);
            *steps > 1 && (facts.linear() || walked <= MOST_CALLS)
        };
        let mut walks = std::mem::take(&mut group.walks);
        walks.retain(told);
        further_drifts += walks.len().saturating_sub(room);
        walks.truncate(room);
        room -= walks.len();
        walks.retain(|(_, steps)| budget.allows(drift_effort(facts, *steps)));
        let measured = budget.allows(Measures::effort(facts));
        found.push(Found { first, walks, measured });
    }
    let rows: Vec<Option<Row>> = found.par_iter().map(Found::row).collect();
    let (rows, not_computed) = (rows.into_iter().flatten().collect(), budget.refused);
    Ok(Table { rows, per_replicate, further, further_drifts, not_computed })
}

/// What the table may still take: all of it together is one computation.
#[derive(Default)]
struct Budget {
    products: f64,
    refused: Option<(usize, Effort)>,
}

impl Budget {
    /// Whether there is room for something; if not it is counted.
    fn allows(&mut self, cost: Effort) -> bool {
        let all = Effort { products: self.products + cost.products, ..cost };
        if all.fits() {
            self.products = all.products;
            return true;
        }
        let (count, most) = self.refused.unwrap_or_default();
        self.refused = Some((count + 1, most.most(all)));
        false
    }
}

/// Cells of one instance: the first of them, and how their algorithms walk.
struct Group<'a> {
    first: &'a Cell,
    walks: Vec<(f64, u64)>,
    known: HashSet<(u64, u64)>,
}

/// The first instances of a plan in the order of its cells, and how many more there are.
fn groups(plan: &Plan) -> (Vec<Group<'_>>, usize) {
    let noisy = plan.cells.iter().any(|c| c.identity.oracle == Oracle::Stochastic);
    // With and without noise it is one instance; noise is told of the noisy.
    let told = |cell: &&Cell| !(cell.identity.oracle == Oracle::Exact && noisy);
    let cells: Vec<&Cell> = plan.cells.iter().filter(told).collect();
    let key = |cell: &&Cell| {
        let problem = toml::Value::try_from(&*cell.identity.problem).map(|v| v.to_string());
        let text = format!("{} {}", cell.identity.seed, problem.unwrap_or_default());
        Sha256::digest(text.as_bytes()).into()
    };
    let keys: Vec<[u8; 32]> = cells.par_iter().map(key).collect();
    let mut places = HashMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (cell, key) in cells.into_iter().zip(keys) {
        let next = places.len();
        let place = *places.entry(key).or_insert(next);
        if place == groups.len() && place < MOST_INSTANCES {
            groups.push(Group { first: cell, walks: Vec::new(), known: HashSet::new() });
        }
        let Some(group) = groups.get_mut(place) else { continue };
        // The drift is of local steps of one length, as many for every client.
        let components = cell.identity.algorithm.components().into_iter();
        let equal =
            |c: &Component| c.terms.schedule == Schedule::Every && c.terms.local_steps.len() == 1;
        for component in components.filter(equal) {
            let walk = (component.terms.step(0), component.terms.most_steps());
            if group.known.insert((walk.0.to_bits(), walk.1)) {
                group.walks.push(walk);
            }
        }
    }
    let further = places.len() - groups.len();
    (groups, further)
}

/// An instance, and the ways to walk from its optimum.
struct Found<'a> {
    first: &'a Prepared<'a>,
    walks: Vec<(f64, u64)>,
    /// Whether its measures are computed.
    measured: bool,
}

impl Found<'_> {
    /// Its row; `None` if an eigenvalue cannot be found.
    fn row(&self) -> Option<Row> {
        let facts: &dyn Facts = &*self.first.grounds[0].instance;
        let drifts = self.walks.par_iter();
        Some(Row {
            name: name(self.first),
            size: (facts.clients(), facts.dim()),
            measures: if self.measured { Some(Measures::new(facts)?) } else { None },
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
