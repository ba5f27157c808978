//! What is allowed, but may not be meant, of cells whose instances are built.

use super::Prepared;
use crate::plan::{Cell, Plan};
use exactfed_core::client_sampling::ParticipationScheme;
use exactfed_core::federated::{Terms, Variates};
use exactfed_core::problem::Facts;
use exactfed_core::problem::arrays::Files;
use exactfed_core::words::enumerated;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// A cell, and what is known of an instance that it runs on.
pub struct CellOnInstance<'a> {
    /// The cell that may be a reason for caution.
    pub cell: &'a Cell,
    /// The instance of the cell's problem.
    pub facts: &'a dyn Facts,
}

/// Why the mean of a round's step is not the gradient of the objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ParticipationBias {
    /// This number of clients is drawn, and their unequal shares are divided by their sum.
    DrawnShares(usize),
    /// Clients come by coins, and their shares are divided by their sum.
    Coins,
    /// Clients take part by a schedule.
    Schedule,
}

impl CellOnInstance<'_> {
    /// Why the mean of a round's step of the cell is biased, with the smallest number of clients that are drawn; `None`
    /// if it is not. Runs with control variates do not count: these vanish with the clients' fields at θ\*, which is
    /// their fixed point all the same.
    fn bias(&self) -> Option<ParticipationBias> {
        let components = self.cell.identity.algorithm.components();
        let plain = components.iter().filter(|of| of.terms.variates == Variates::None);
        let biases = plain.filter_map(|component| {
            let Terms { participation: scheme, cohort, .. } = &component.terms;
            let shares = self.facts.unequal_shares();
            let is_biased = scheme.is_biased(*cohort, self.facts.clients(), shares);
            is_biased.then(|| match scheme {
                ParticipationScheme::BernoulliNormalised(_) => ParticipationBias::Coins,
                _ if scheme.is_scheduled() => ParticipationBias::Schedule,
                _ => ParticipationBias::DrawnShares(cohort.unwrap_or_default()),
            })
        });
        biases.min()
    }
}

/// Sentences which say for which of these cells the mean of a round's step is biased, and why; `None` if it is for none.
pub fn biased_participation<'a>(cells: impl Iterator<Item = CellOnInstance<'a>>) -> Option<String> {
    let mut drawn: BTreeMap<(String, usize), BTreeSet<usize>> = BTreeMap::new();
    let mut by_coins = BTreeSet::new();
    let mut by_schedule = BTreeSet::new();
    for of in cells {
        let label = of.cell.label.clone();
        match of.bias() {
            Some(ParticipationBias::DrawnShares(cohort)) => {
                drawn.entry((label, of.facts.clients())).or_default().insert(cohort);
            }
            Some(ParticipationBias::Coins) => drop(by_coins.insert(label)),
            Some(ParticipationBias::Schedule) => drop(by_schedule.insert(label)),
            None => {}
        }
    }
    let mut named = Vec::new();
    for ((label, clients), cohorts) in &drawn {
        let cohorts: Vec<String> = cohorts.iter().map(usize::to_string).collect();
        named.push(format!("{label} ({} of {clients} clients in a round)", enumerated(&cohorts)));
    }
    let mut sentences = Vec::new();
    if !named.is_empty() {
        sentences.push(format!(
            "with unequal shares and participation of some of the clients, the mean of a round’s step is not the gradient of the objective, because the shares of the participating clients are divided by their sum. So the fixed point is not θ*, even with one local step, for {}; `participation = \"rescaled\"` draws the same clients without this bias",
            enumerated(&named)
        ));
    }
    if !by_coins.is_empty() {
        sentences.push(format!(
            "with coins of the clients that have unequal probabilities or shares, the mean of a round’s step is not a multiple of the gradient of the objective, because the shares of those who come are divided by their sum. So the fixed point is not θ*, even with one local step, for {}; `participation = {{ bernoulli = … }}` tosses the same coins without this bias",
            enumerated(&Vec::from_iter(by_coins))
        ));
    }
    if !by_schedule.is_empty() {
        sentences.push(format!(
            "clients take part by a schedule, so that the mean of a round’s step is the gradient of the objective in no round. So the estimate does not tend to θ*, even with one local step, for {}; with `client-weights = \"rescaled\"` its distance from θ* vanishes with the step size",
            enumerated(&Vec::from_iter(by_schedule))
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(". Moreover, "))
}

/// A sentence that errors on the instances of these cells are distances to sets of minimisers, and how many dimensions
/// these have; `None` if θ* is unique on all of them.
pub fn several_optima<'a>(cells: impl Iterator<Item = CellOnInstance<'a>>) -> Option<String> {
    let dimensions: BTreeSet<usize> =
        cells.filter_map(|of| Some(of.facts.optimum_set()?.dimension())).collect();
    if dimensions.is_empty() {
        return None;
    }
    let counts: Vec<String> = dimensions.iter().map(usize::to_string).collect();
    let counts = enumerated(&counts);
    let noun =
        if dimensions.len() == 1 && dimensions.contains(&1) { "dimension" } else { "dimensions" };
    Some(format!(
        "θ* is not unique: the minimisers are a space of {counts} {noun}, and ‖θ − θ*‖ is the distance to the set of minimisers"
    ))
}

/// The largest γμ up to which local steps towards the server do not overshoot it by more than they were away: a step
/// with the proximal term alone multiplies the distance by 1 − γμ.
const MOST_PROXIMAL: f64 = 2.0;

/// A sentence which says for which of these cells the proximal term alone makes local steps diverge; `None` if it does
/// for none. A cell with one local step has no such steps: its clients begin where the server is.
fn unstable_proximal_terms<'a>(cells: impl Iterator<Item = &'a Cell>) -> Option<String> {
    let mut named = BTreeSet::new();
    for cell in cells {
        for component in cell.identity.algorithm.components() {
            let terms = &component.terms;
            let product = terms.step_size * terms.proximal;
            if product >= MOST_PROXIMAL && terms.most_steps() > 1 {
                let values = format!("γ = {}, μ = {}", terms.step_size, terms.proximal);
                named.insert(format!("{} ({values})", cell.label));
            }
        }
    }
    if named.is_empty() {
        return None;
    }
    let named: Vec<String> = named.into_iter().collect();
    Some(format!(
        "with γμ ≥ 2 a local step overshoots the server’s estimate by as much as the client was away from it, or more, so that runs may grow without limit; reduce `step-size` or `proximal` of {}",
        enumerated(&named)
    ))
}

/// The sentence of [`cautions`] on proximal terms that a page shows: for the cells of a plan, or with `[tune]` for the
/// fresh runs of what is selected. Candidates may have any combination of settings, and those that diverge are not
/// selected.
pub fn unstable_proximal_terms_of_plan(plan: &Plan) -> Option<String> {
    let is_tuned = plan.tuning.is_some();
    unstable_proximal_terms(plan.cells.iter().filter(|cell| cell.identity.fresh || !is_tuned))
}

/// Sentences that tell a user what is allowed in these cells of a plan, but may not be meant: biased participation, sets
/// of minimisers in place of a single one, proximal terms that make steps diverge, and what the columns of data files
/// suggest. Nothing is said of proximal terms with `[tune]`: most cells are candidates then, and the page has the sentence
/// on those that are selected.
pub fn cautions(plan: &Plan, prepared: &[Prepared<'_>]) -> Vec<String> {
    let facts = prepared.iter().flat_map(|of| {
        let cell = of.cell;
        of.scenarios.iter().map(move |scenario| CellOnInstance { cell, facts: &*scenario.instance })
    });
    let bias = biased_participation(facts.clone());
    let optima = several_optima(facts);
    let proximal = match plan.tuning {
        Some(_) => None,
        None => unstable_proximal_terms(prepared.iter().map(|of| of.cell)),
    };
    bias.into_iter()
        .chain(optima)
        .chain(proximal)
        .chain(remarks_on_data(prepared.iter().map(|of| of.cell), &plan.folder()))
        .collect()
}

/// Sentences that tell a user what may not be meant in the columns of the data files of these cells, each once.
pub fn remarks_on_data<'a>(
    cells: impl Iterator<Item = &'a Cell>,
    files: &dyn Files,
) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut remarks = Vec::new();
    for cell in cells {
        let problem = &cell.identity.problem;
        if !seen.insert(Arc::as_ptr(problem)) {
            continue;
        }
        let Some(dataset) = problem.on_records().and_then(|of| of.dataset) else { continue };
        for remark in dataset.remarks(files) {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of FedProx with these settings.
    fn caution(settings: &str) -> Option<String> {
        let plan = Plan::of_text(
            &format!(
                r#"title = "t"
seed = 1
replicates = 1
start.zero = true
budget.rounds = 5
problem.quadratic = {{ dimension = 1, clients = 2, spectrum = {{ from = 0.5, to = 1.5 }}, noise = 0.1 }}
[[algorithm.fedprox]]
{settings}
"#
            ),
            &[],
        );
        unstable_proximal_terms(plan.cells.iter())
    }

    #[test]
    fn a_proximal_term_that_overshoots_is_named() {
        let said = caution("step-size = 0.3\nproximal = 10.0\nlocal-steps = 5").unwrap();
        assert!(said.contains("FedProx (γ = 0.3, μ = 10)"), "{said}");
        assert_eq!(caution("step-size = 0.3\nproximal = 6.0\nlocal-steps = 5"), None);
        assert_eq!(caution("step-size = 0.3\nproximal = 10.0\nlocal-steps = 1"), None);
    }
}
