//! How heterogeneous the problems of an experiment are, as a page shows it: ζ₁, ζ₂ (RR A2) and the settings that
//! distinguish instances, with the average drift at the optimum (SLIDES) for every step size γ and
//! number H of local steps: how far the clients' mean is from θ* after H local steps without noise from θ*, over γH.

use crate::cells::panels::{grouped, unique};
use crate::cells::setting_text::pretty;
use crate::predictions::measures::measures;
use crate::results::Results;
use exactfed_core::federated::Schedule;
use exactfed_core::problem::Facts;
use exactfed_core::theory::deterministic::{drift, drift_effort};
use exactfed_core::theory::effort::Effort;
use exactfed_core::theory::heterogeneity::Measures;
use exactfed_runner::files::Error;
use exactfed_runner::manifest::Oracle;
use exactfed_runner::plan::{Cell, Plan, Setting, short};
use exactfed_runner::runner::cautions::{
    CellOnInstance, biased_participation, remarks_on_data, several_optima,
    unstable_proximal_terms_of_plan,
};
use exactfed_runner::runner::{Prepared, words_on_multiples};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a page says of the instances of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Instances {
    /// The distinct instances, in the order of the cells.
    pub rows: Vec<InstanceRow>,
    /// Whether each replicate has an instance of its own; then the first one is shown.
    pub per_replicate: bool,
    /// The number of instances for which there was no room.
    pub further: usize,
    /// The number of drifts, at a step size and a number of local steps each, for which there was no room.
    pub further_drifts: usize,
    /// A sentence that the mean of a round's step is biased for some cells, if it is.
    pub biased_participation: Option<String>,
    /// A sentence that the proximal term of some cells alone makes their local steps diverge, if it does.
    pub unstable_proximal_terms: Option<String>,
    /// Why nothing is known at θ* of some instance; `None` if all is known.
    pub unknown_at_optimum: Option<UnknownAtOptimum>,
    /// A sentence that errors are distances to a set of minimisers, if θ* of some instance is not unique.
    pub several_optima: Option<String>,
    /// What a reader should know of the columns of data files and of numbers in units of the problem's constants, a
    /// sentence each.
    pub remarks: Vec<String>,
    /// How many measures and drifts are not computed because they would take too long, and the largest cost of one by
    /// itself, which fits where only the computed ones have left too little; `None` if all are computed.
    pub not_computed: Option<(usize, Effort)>,
}

impl Instances {
    /// A sentence that some measures or drifts are not computed at this size, if that is so.
    pub fn not_computed(&self) -> Option<String> {
        let (count, most) = self.not_computed?;
        let entries = if count == 1 { "entry" } else { "entries" };
        // An effort that fits names no number.
        let cost = if most.fits() {
            let products = most.products;
            format!("about {products:.0e} products, more than the computed entries leave")
        } else {
            most.to_string()
        };
        Some(format!(
            "{count} {entries} of the table on heterogeneity, the largest of which would take {cost}."
        ))
    }
}

/// Why nothing is known at θ* of an instance: neither measures of heterogeneity nor drifts, nor what theory predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownAtOptimum {
    /// The manifest leaves θ* out.
    LeftOut,
    /// Nobody knows θ*: the problem is one of a user's that does not state it.
    Optimum,
    /// The problem states θ*, and its fields are not affine.
    Fields,
}

impl UnknownAtOptimum {
    /// Why nothing is known at θ* of the instance of a cell, of which this is so.
    pub fn new(cell: &Cell, facts: &dyn Facts) -> Self {
        if facts.knows_optimum() {
            Self::Fields
        } else if cell.identity.problem.has_optimum() {
            Self::LeftOut
        } else {
            Self::Optimum
        }
    }

    /// Why conditions that are about θ* cannot be checked, in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::LeftOut => "θ* was not searched for",
            Self::Optimum => "θ* is not known",
            Self::Fields => "nothing but θ* is known of the fields",
        }
    }

    /// The sentence of a page on it.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::LeftOut => {
                "θ* was not searched for (record.optimum = false), so that what is computed at θ* is not known."
            }
            Self::Optimum => {
                "θ* is not known of this problem: neither distances from it nor what is computed at it are on this page."
            }
            Self::Fields => {
                "The problem states θ*, and no more is known of its fields there, so that theory predicts nothing."
            }
        }
    }
}

/// What a page says of one instance of a problem.
#[derive(Clone, Debug)]
pub struct InstanceRow {
    /// The settings of the problem that distinguish the instance from the others; empty if there is one.
    pub name: String,
    /// The number N of clients, and the number d of entries of θ.
    pub size: (usize, usize),
    /// Whether clients have unequal weights.
    pub weighted: bool,
    /// Whether the manifest gives these weights, so that they are not those of their records.
    pub has_given_weights: bool,
    /// How much its clients differ; `None` if that is not computed.
    pub measures: Option<Measures>,
    /// A bound on the distance of the computed θ* from the optimum, if it was found by a search.
    pub optimum_error: Option<f64>,
    /// γ, H and the average drift at θ*, for each step size and number of local steps of the algorithms.
    pub drifts: Vec<(f64, u64, f64)>,
}

/// The number of oracle calls beyond which a drift along a field that is not linear is left out, because it is
/// simulated step by step.
const MOST_CALLS: u64 = 2_000_000;

/// The most instances that are shown.
const MOST_INSTANCES: usize = 500;
/// The most drifts that are shown, of all instances together.
const MOST_DRIFTS: usize = 500;

/// What a page says of the instances of a plan. Instances that are not among the `prepared` ones are built; the
/// measures may be cached in the results.
///
/// # Errors
/// If an instance cannot be built.
pub fn instances(
    plan: &Plan,
    prepared: &[Prepared<'_>],
    results: &dyn Results,
) -> Result<Instances, Error> {
    let per_replicate = !plan.manifest.instance.is_fixed();
    let (groups, further) = groups(plan);
    let known: HashSet<&str> = prepared.iter().map(|p| p.cell.id.as_str()).collect();
    let unknown: Vec<&Cell> =
        groups.iter().map(|cells| cells[0]).filter(|c| !known.contains(c.id.as_str())).collect();
    let more = super::instances::build(plan, results, &unknown)?;
    let by_id: HashMap<&str, &Prepared<'_>> =
        prepared.iter().chain(&more).map(|p| (p.cell.id.as_str(), p)).collect();
    // The first cell of each instance, the step sizes and numbers of local steps of its drifts, and whether its
    // measures are computed.
    let mut found = Vec::new();
    let mut room = MOST_DRIFTS;
    let mut further_drifts = 0;
    let mut unknown_at_optimum = None;
    let mut budget = CostBudget::default();
    let facts = groups.iter().flat_map(|cells| {
        let first = by_id.get(cells[0].id.as_str());
        let facts = first.map(|first| -> &dyn Facts { &*first.scenarios[0].instance });
        facts
            .into_iter()
            .flat_map(|facts| cells.iter().map(move |cell| CellOnInstance { cell, facts }))
    });
    let biased_participation = biased_participation(facts.clone());
    let several_optima = several_optima(facts);
    let mut remarks = remarks_on_data(groups.iter().map(|cells| cells[0]), &plan.folder());
    let firsts: Vec<&Prepared<'_>> =
        groups.iter().filter_map(|cells| by_id.get(cells[0].id.as_str()).copied()).collect();
    remarks.extend(words_on_multiples(plan.cells.iter(), &firsts));
    for cells in &groups {
        let Some(first) = by_id.get(cells[0].id.as_str()) else { continue };
        let facts: &dyn Facts = &*first.scenarios[0].instance;
        if !facts.knows_facts_at_optimum() {
            // All measures and drifts are at θ*.
            unknown_at_optimum = Some(UnknownAtOptimum::new(cells[0], facts));
            found.push((first, Vec::new(), false));
            continue;
        }
        let mut walks = walks_with_drift(cells, facts);
        further_drifts += walks.len().saturating_sub(room);
        walks.truncate(room);
        room -= walks.len();
        walks.retain(|(_, steps)| budget.allows(drift_effort(facts, *steps)));
        let measured = budget.allows(Measures::effort(facts));
        found.push((first, walks, measured));
    }
    let rows: Vec<Option<InstanceRow>> = found
        .par_iter()
        .map(|(first, walks, measured)| instance_row(first, walks, measured.then_some(results)))
        .collect();
    let rows = rows.into_iter().flatten().collect();
    let not_computed = budget.refused;
    Ok(Instances {
        rows,
        per_replicate,
        further,
        further_drifts,
        biased_participation,
        unstable_proximal_terms: unstable_proximal_terms_of_plan(plan),
        unknown_at_optimum,
        several_optima,
        remarks,
        not_computed,
    })
}

/// What the table on heterogeneity may still cost: all of it together may take as long as one computation of theory.
#[derive(Default)]
struct CostBudget {
    /// The multiplications of what was allowed so far.
    products: f64,
    /// How many computations were not allowed, and the largest cost of one of them by itself; `None` if all were
    /// allowed.
    refused: Option<(usize, Effort)>,
}

impl CostBudget {
    /// Whether a computation of this cost may be done in addition to those that were allowed before, which counts it as
    /// done; one that does not fit is counted as refused.
    fn allows(&mut self, cost: Effort) -> bool {
        let all = Effort { products: self.products + cost.products, ..cost };
        if all.fits() {
            self.products = all.products;
            return true;
        }
        let (count, most) = self.refused.unwrap_or_default();
        self.refused = Some((count + 1, most.most(cost)));
        false
    }
}

/// The cells of each instance of a plan, for as many instances as are shown in the order of their first cells, and how
/// many more instances there are. Cells with and without noise have one instance, whose noise only the noisy cells
/// show: where there are any, those without noise are left out.
fn groups(plan: &Plan) -> (Vec<Vec<&Cell>>, usize) {
    let keys: Vec<[u8; 32]> = plan
        .cells
        .par_iter()
        .map(|cell| {
            let problem = toml::Value::try_from(&*cell.identity.problem).map(|v| v.to_string());
            let text = format!("{} {}", cell.identity.seed, problem.unwrap_or_default());
            Sha256::digest(text.as_bytes()).into()
        })
        .collect();
    let groups = grouped(keys.into_iter().zip(&plan.cells));
    let further = groups.len().saturating_sub(MOST_INSTANCES);
    let is_noisy = |cell: &&Cell| cell.identity.oracle == Oracle::Stochastic;
    let shown = groups.into_iter().take(MOST_INSTANCES).map(|(_, mut cells)| {
        if cells.iter().any(is_noisy) {
            cells.retain(is_noisy);
        }
        cells
    });
    (shown.collect(), further)
}

/// The walks of these cells that drift from θ*, without those that would take too long on a field that is not linear.
/// After one step the mean of the clients is θ* again, so that there is no drift.
fn walks_with_drift(cells: &[&Cell], facts: &dyn Facts) -> Vec<(f64, u64)> {
    let mut walks = walks(cells);
    walks.retain(|(_, steps)| {
        let calls = steps.saturating_mul(facts.clients() as u64);
        *steps > 1 && (facts.linear() || calls <= MOST_CALLS)
    });
    walks
}

/// The pairs of a step size and a number of local steps of the algorithms of some cells, each once, as far as the drift
/// is defined: for local steps of one length, equally many for every client.
fn walks(cells: &[&Cell]) -> Vec<(f64, u64)> {
    let components = cells.iter().flat_map(|cell| cell.identity.algorithm.components());
    let with_drift = components
        .filter(|c| c.terms.schedule == Schedule::Every && c.terms.local_steps.len() == 1);
    let walks = unique(with_drift.map(|c| (c.terms.step(0).to_bits(), c.terms.most_steps())));
    walks.into_iter().map(|(step, steps)| (f64::from_bits(step), steps)).collect()
}

/// The row of the instance of a cell, with the drifts at these pairs of a step size and a number of local steps. Its
/// measures are computed only if `measured` gives results, in which they may be cached. `None`, so that the table has
/// no row, if the measures are to be computed and are too much work, or an eigenvalue cannot be found.
fn instance_row(
    first: &Prepared<'_>,
    walks: &[(f64, u64)],
    measured: Option<&dyn Results>,
) -> Option<InstanceRow> {
    let facts: &dyn Facts = &*first.scenarios[0].instance;
    Some(InstanceRow {
        name: problem_name(first),
        size: (facts.clients(), facts.dim()),
        optimum_error: facts.optimum_error(),
        weighted: facts.unequal_shares().is_some(),
        has_given_weights: first.cell.identity.problem.has_given_weights(),
        measures: match measured {
            Some(results) => Some(measures(first, results)?),
            None => None,
        },
        drifts: walks
            .par_iter()
            .map(|(step, steps)| (*step, *steps, drift(facts, *step, *steps)))
            .collect(),
    })
}

/// The settings of a cell's problem that vary over the grid, as text that tells its instance from the others.
fn problem_name(p: &Prepared<'_>) -> String {
    let mut settings: BTreeMap<String, Setting> = BTreeMap::new();
    for path in p.cell.varied.iter().filter(|path| path.starts_with("problem.")) {
        if let Some(value) = p.cell.settings.get(path) {
            settings.insert(short(path).to_owned(), value.clone());
        }
    }
    let parts: Vec<String> = settings.iter().map(|(name, value)| pretty(name, value)).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{simulated, wrong};
    use exactfed_core::theory::effort::MOST_PRODUCTS;

    /// The sentence of a page on what a budget refuses of these numbers of products, in this order.
    fn sentence(products: &[f64]) -> Option<String> {
        let mut budget = CostBudget::default();
        for part in products {
            budget.allows(Effort::new(part * MOST_PRODUCTS, 1.0));
        }
        Instances { not_computed: budget.refused, ..Instances::default() }.not_computed()
    }

    #[test]
    fn the_cost_of_a_refused_entry_is_its_own() {
        assert_eq!(sentence(&[0.5, 0.5]), None);
        // The first entry leaves a tenth, in which only the last one fits.
        let left = sentence(&[0.9, 0.25, 0.2, 0.1]).unwrap();
        let expected = "2 entries of the table on heterogeneity, the largest of which would take about 1e10 products, more than the computed entries leave.";
        assert_eq!(left, expected);
        let beyond = sentence(&[0.9, 5.0]).unwrap();
        let expected = "1 entry of the table on heterogeneity, the largest of which would take about 2e11 products.";
        assert_eq!(beyond, expected);
    }

    /// Cells without noise stand for an instance that no noisy cell has, and for no other.
    #[test]
    fn an_instance_of_exact_cells_alone_has_its_group() {
        let oracles = |zip: &str, noise: &str| {
            let keys = format!("seed = 5\noracle = [\"exact\", \"stochastic\"]\n{zip}");
            let text = wrong::manifest(1, "4").replace("seed = 5", &keys);
            let plan =
                simulated::plan(text.replace("\nnoise = 0.3", &format!("\nnoise = {noise}")));
            let (groups, further) = groups(&plan);
            assert_eq!(further, 0);
            let oracles = groups.iter().map(|cells| {
                cells.iter().map(|cell| cell.identity.oracle == Oracle::Exact).collect()
            });
            oracles.collect::<Vec<Vec<bool>>>()
        };
        // Of FedLSA and SCAFFLSA.
        let zipped = oracles("zip = [[\"oracle\", \"noise\"]]", "[0.0, 1.0]");
        assert_eq!(zipped, [[true; 2], [false; 2]]);
        assert_eq!(oracles("", "[0.5, 1.0]"), [[false; 2]; 2]);
    }
}
