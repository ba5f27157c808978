//! The instances that predictions for the cells of a plan need.

use super::theory::exact_bias;
use crate::cells::CellResult;
use crate::results::Results;
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::{Cell, CellId, Plan};
use exactfed_runner::runner::{KnownOptima, Prepared, prepare_knowing};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// How many cells' instances are in memory at a time, where every cell of an experiment needs one number of theory.
pub const AT_ONCE: usize = 4096;

/// The most reasons that a message lists why instances cannot be built.
const MOST_REASONS: usize = 3;

/// Builds the instances of some cells, with what results know of them: the optima that earlier runs searched for, and
/// the rounds of custom algorithms, as they were when the cells were run.
///
/// # Errors
/// If an instance cannot be built, for instance because a data file is missing.
pub fn build<'a>(
    plan: &Plan,
    results: &dyn Results,
    cells: &[&'a Cell],
) -> Result<Vec<Prepared<'a>>, Error> {
    let prepared = build_knowing(plan, &|key| results.known_optimum(key), cells)?;
    for p in prepared.iter().filter(|p| p.cell.identity.algorithm.is_custom()) {
        // The code of the algorithm need not be at hand. Without a stored result for each instance, its rounds are
        // traced when they are needed.
        let stored = results.programs(&plan.experiment, &p.cell.id);
        if stored.len() == p.scenarios.len() {
            p.scenarios.iter().zip(stored).for_each(|(scenario, program)| scenario.knows(program));
        }
    }
    Ok(prepared)
}

/// Builds the instances of some cells, whose optima are searched for unless `known` gives them.
///
/// # Errors
/// As [`build`].
pub fn build_knowing<'a>(
    plan: &Plan,
    known: KnownOptima<'_>,
    cells: &[&'a Cell],
) -> Result<Vec<Prepared<'a>>, Error> {
    prepare_knowing(&plan.folder(), known, cells).map_err(|bad| {
        let reasons: BTreeSet<String> = bad.into_iter().map(|bad| bad.message).collect();
        let first: Vec<String> = reasons.into_iter().take(MOST_REASONS).collect();
        error(Path::new(&plan.source.name), first.join("; "))
    })
}

/// Computes the exact bias of each cell, for [`CellResult::exact_bias`]. The instances of cells that are not among the
/// `prepared` ones are built a limited number at a time.
///
/// # Errors
/// If an instance cannot be built.
pub fn add_biases(
    plan: &Plan,
    results: &dyn Results,
    prepared: &[Prepared<'_>],
    cells: &mut [CellResult<'_>],
) -> Result<(), Error> {
    let mut known: HashMap<CellId, Option<f64>> =
        prepared.iter().map(|p| (p.cell.id, exact_bias(p))).collect();
    let others = cells.iter().map(|c| c.cell).filter(|cell| !known.contains_key(&cell.id));
    for some in others.collect::<Vec<&Cell>>().chunks(AT_ONCE) {
        known.extend(build(plan, results, some)?.iter().map(|p| (p.cell.id, exact_bias(p))));
    }
    cells.iter_mut().for_each(|cell| cell.exact_bias = known.get(&cell.cell.id).copied().flatten());
    Ok(())
}
