//! What is allowed, but may not be meant, of cells whose instances are built.

use super::Prepared;
use crate::plan::Cell;
use exactfed_core::federated::Variates;
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

impl CellOnInstance<'_> {
    /// The smallest number L of clients in a round of the cell with which the mean of a round's step is not the
    /// gradient of the objective, because L < N clients with unequal shares take part; `None` if there is none. Runs
    /// with control variates do not count: these vanish with the clients' fields at θ\*, which is their fixed point
    /// all the same.
    fn biased_cohort(&self) -> Option<usize> {
        self.facts.unequal_shares()?;
        let components = self.cell.identity.algorithm.components();
        let plain = components.iter().filter(|of| of.terms.variates == Variates::None);
        let cohorts = plain.filter_map(|component| component.terms.cohort);
        cohorts.filter(|cohort| *cohort < self.facts.clients()).min()
    }
}

/// A sentence which says for which of these cells the mean of a round's step is biased; `None` if it is for none.
pub fn biased_participation<'a>(cells: impl Iterator<Item = CellOnInstance<'a>>) -> Option<String> {
    let mut found: BTreeMap<(String, usize), BTreeSet<usize>> = BTreeMap::new();
    for of in cells {
        if let Some(cohort) = of.biased_cohort() {
            let key = (of.cell.label.clone(), of.facts.clients());
            found.entry(key).or_default().insert(cohort);
        }
    }
    if found.is_empty() {
        return None;
    }
    let mut named = Vec::new();
    for ((label, clients), cohorts) in &found {
        let cohorts: Vec<String> = cohorts.iter().map(usize::to_string).collect();
        named.push(format!("{label} ({} of {clients} clients in a round)", enumerated(&cohorts)));
    }
    Some(format!(
        "with unequal shares and participation of some of the clients, the mean of a round’s step is not the gradient of the objective, because the shares of the participating clients are divided by their sum. So the fixed point is not θ*, even with one local step, for {}",
        enumerated(&named)
    ))
}

/// Sentences that tell a user what is allowed in these cells, but may not be meant: biased participation, and what the
/// columns of data files suggest.
pub fn cautions(prepared: &[Prepared<'_>], files: &dyn Files) -> Vec<String> {
    let facts = prepared.iter().flat_map(|of| {
        let cell = of.cell;
        of.scenarios.iter().map(move |scenario| CellOnInstance { cell, facts: &*scenario.instance })
    });
    let bias = biased_participation(facts);
    bias.into_iter().chain(remarks_on_data(prepared.iter().map(|of| of.cell), files)).collect()
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
