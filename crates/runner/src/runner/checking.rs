//! What is known of instances before the first cell runs: that all can be built.

use super::prepare::{
    InstanceKey, KnownOptima, Prepared, Shared, all_or_wrong, build, check_classes,
    fault_of_problem, prepare_at_most, prepare_knowing, wants_twin,
};
use crate::manifest::Start;
use crate::plan::{Cell, Plan};
use exactfed_core::problem::arrays::Files;
use exactfed_core::problem::{Fault, MOST_REFINED};
use rayon::prelude::*;
use std::collections::HashMap;

/// Checks what [`prepare_knowing`] would find, and builds what a check looks at: the instances of all cells or, of a cell
/// on whose first instance the search for θ* takes long, that one alone. Of the other instances of such a cell no optima
/// are searched for.
///
/// # Errors
/// As for [`prepare`], but that a search for θ* that fails on another instance than the first is not found where it
/// takes long.
pub fn prepare_to_check<'a>(
    files: &dyn Files,
    optima: KnownOptima<'_>,
    cells: &[&'a Cell],
) -> Result<Vec<Prepared<'a>>, Vec<Fault>> {
    let Ok(first) = prepare_at_most(files, optima, cells, 1) else {
        // All that is wrong is reported, with the other instances too.
        return prepare_knowing(files, optima, cells);
    };
    let mut prepared = Vec::with_capacity(cells.len());
    let mut long = Vec::new();
    let mut short = Vec::new();
    for of_cell in first {
        if of_cell.cell.identity.built_instances() == 1 {
            prepared.push(of_cell);
        } else if has_long_search(&of_cell) {
            long.push(of_cell.cell);
            prepared.push(of_cell);
        } else {
            short.push(of_cell.cell);
        }
    }
    check_instances(files, &long)?;
    prepared.extend(prepare_knowing(files, optima, &short)?);
    Ok(prepared)
}

/// Whether finding θ* of the first instance of a cell took a search that is worth keeping, and nothing but θ* depends on
/// such searches that may be at fault.
fn has_long_search(prepared: &Prepared<'_>) -> bool {
    let identity = &prepared.cell.identity;
    let instance = &prepared.scenarios[0].instance;
    let has_dependents = wants_twin(identity) || matches!(*identity.start, Start::Limit(_));
    instance.searched_optimum().is_some() && instance.dim() > MOST_REFINED && !has_dependents
}

/// Checks that the instances of the fresh runs can be built that follow the candidates of a plan, whichever candidates
/// are selected. Their optima are not searched for. Succeeds without `[tune]`.
///
/// # Errors
/// What is wrong with each instance, as of [`prepare`].
pub fn check_evaluations(files: &dyn Files, plan: &Plan) -> Result<(), Vec<Fault>> {
    // All candidates of a group have the same instances.
    let evaluations: Vec<Cell> = plan
        .possible_evaluations()
        .into_iter()
        .filter_map(|group| group.into_iter().next())
        .collect();
    check_instances(files, &evaluations.iter().collect::<Vec<_>>())
}

/// Checks that the instances of these cells can be built. Their optima are not searched for.
///
/// # Errors
/// What is wrong with each instance, as of [`prepare`].
pub fn check_instances(files: &dyn Files, cells: &[&Cell]) -> Result<(), Vec<Fault>> {
    let shared = Shared::new(cells);
    let mut wanted: HashMap<InstanceKey, &Cell> = HashMap::new();
    for cell in cells {
        for key in shared.keys(cell, cell.identity.oracle.form(), u64::MAX) {
            wanted.entry(InstanceKey { has_optimum: false, ..key }).or_insert(cell);
        }
    }
    let built: Vec<Result<(), Fault>> = wanted
        .into_par_iter()
        .map(|(key, cell)| {
            build(files, &|_| None, &key, cell)
                .map_err(|fault| fault_of_problem(cell, &fault))
                .and_then(|built| check_classes(cell, &*built.instance))
        })
        .collect();
    all_or_wrong(built).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_core::problem::arrays::NoFiles;

    /// A cell on four instances has all of them in few unknowns, and one in many.
    #[test]
    fn long_searches_are_made_on_one_instance() {
        for (d, built) in [(MOST_REFINED, 4), (MOST_REFINED + 1, 1)] {
            let plan = Plan::of_text(
                &format!(
                    r#"title = "t"
seed = 1
replicates = 1
instances = 4
start.zero = true
budget.rounds = 5
problem.logistic = {{ dimension = {d}, records = 5, clients = 2, data = {{ noisy = {{ spread = 1.0 }} }}, l2 = 0.1 }}
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 2
"#
                ),
                &[],
            );
            let cells: Vec<&Cell> = plan.cells.iter().collect();
            let prepared = prepare_to_check(&NoFiles, &|_| None, &cells).unwrap();
            assert_eq!(prepared[0].scenarios.len(), built, "{d}");
        }
    }
}
