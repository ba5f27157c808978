//! The instances that predictions for the cells of a plan need.

use super::theory::exact_bias;
use crate::cells::CellResult;
use crate::cells::read::{instances, optima};
use crate::results::Results;
use exactfed_runner::files::Error;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::Prepared;
use std::collections::HashMap;

/// Cells whose instances are in memory at a time, where every cell needs one number of theory.
const AT_ONCE: usize = 4096;

/// The instances of the cells of which theory is needed, by id; of all cells where they are few.
///
/// # Errors
/// If one cannot be built.
pub fn needed<'a>(
    plan: &'a Plan,
    results: &dyn Results,
    is_needed: impl Fn(&str) -> bool,
) -> Result<Vec<Prepared<'a>>, Error> {
    let all = plan.cells.len() <= AT_ONCE;
    let needed = plan.cells.iter().filter(|cell| all || is_needed(&cell.id));
    instances(plan, &optima(results), &needed.collect::<Vec<&Cell>>())
}

/// Computes the exact biases of all cells; the instances of those that are not prepared already
/// are built a limited number at a time.
///
/// # Errors
/// If one cannot be built.
pub fn add_biases(
    plan: &Plan,
    results: &dyn Results,
    prepared: &[Prepared<'_>],
    cells: &mut [CellResult<'_>],
) -> Result<(), Error> {
    let bias = |p: &Prepared<'_>| (p.cell.id.clone(), exact_bias(p));
    let mut known: HashMap<String, Option<f64>> = prepared.iter().map(bias).collect();
    let others = cells.iter().map(|c| c.cell).filter(|cell| !known.contains_key(&cell.id));
    for some in others.collect::<Vec<&Cell>>().chunks(AT_ONCE) {
        known.extend(instances(plan, &optima(results), some)?.iter().map(bias));
    }
    cells.iter_mut().for_each(|cell| cell.exact_bias = known.get(&cell.cell.id).copied().flatten());
    Ok(())
}
