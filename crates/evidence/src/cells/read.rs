//! Reads the results of cells into memory, as far as figures, claims and tables need them.

use crate::cells::runs::{Grouping, Runs, TraceNeeds};
use crate::cells::{CellResult, Missing, SelectedBy};
use crate::results::{Provenance, Results, StoredCell};
use exactfed_core::words::{quoted, shell_word, thousands};
use exactfed_runner::files::{Error, error};
use exactfed_runner::manifest::Source;
use exactfed_runner::plan::{Cell, CellId, Plan};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Reads the results of these cells of a plan: returns the cells that have results, with what `needs` asks for of their
/// runs, and the cells without results, both in the order of the cells. Exact biases are not among it: they are `None`
/// until `add_biases` of the predictions has computed them.
///
/// # Errors
/// If results are damaged; the error of the first such cell.
pub fn read_cells<'a>(
    plan: &'a Plan,
    cells: impl Iterator<Item = &'a Cell>,
    results: &dyn Results,
    needs: &(dyn Fn(&Cell) -> TraceNeeds + Sync),
) -> Result<(Vec<CellResult<'a>>, Vec<Missing<'a>>), Error> {
    let cells: Vec<&'a Cell> = cells.collect();
    // Each task reads several cells in the order of the results, so that cells of one pack are read
    // together. What is not needed is dropped immediately.
    let ids: Vec<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
    let order = results.reading_order(&plan.experiment, &ids);
    drop(ids);
    let prices = plan.manifest.prices.unwrap_or_default();
    let selected = selected_cells(plan);
    // What many cells have in common is in memory once.
    let mut known: Vec<Arc<Provenance>> = Vec::new();
    let mut constants = HashSet::new();
    let mut found: Vec<Option<CellResult<'_>>> = cells.iter().map(|_| None).collect();
    let mut wrong: BTreeMap<usize, Error> = BTreeMap::new();
    for some in order.chunks(AT_ONCE) {
        let tasks = some.par_chunks(cells_per_task(some.len()));
        let mut read: Vec<(usize, Result<Option<CellResult<'a>>, Error>)> = tasks
            .flat_map_iter(|task| {
                task.iter().map(|place| {
                    let cell = cells[*place];
                    let stored = results.read(&plan.experiment, &cell.id);
                    let result = stored.map(|stored| {
                        stored.map(|StoredCell { record, traces }| CellResult {
                            cell,
                            runs: Runs::new(traces, Grouping::new(cell), &needs(cell), &prices),
                            digest: record.digest,
                            provenance: record.provenance,
                            seconds: record.seconds,
                            selected_by: selected.get(&cell.id).cloned(),
                            exact_bias: None,
                        })
                    });
                    (*place, result)
                })
            })
            .collect();
        let stored = read.iter_mut().filter_map(|(_, result)| result.as_mut().ok()?.as_mut());
        Runs::share(&mut stored.map(|cell| &mut cell.runs).collect::<Vec<_>>(), &mut constants);
        for (place, result) in read {
            match result {
                Ok(None) => {}
                Ok(Some(mut cell)) => {
                    match known.iter().find(|p| **p == cell.provenance) {
                        Some(one) => cell.provenance = one.clone(),
                        None => known.push(cell.provenance.clone()),
                    }
                    found[place] = Some(cell);
                }
                Err(e) => drop(wrong.insert(place, e)),
            }
        }
    }
    if let Some((_, first)) = wrong.pop_first() {
        return Err(first);
    }
    let mut missing = Vec::new();
    for (cell, _) in cells.into_iter().zip(&found).filter(|(_, found)| found.is_none()) {
        missing.push(Missing { cell, failed: results.failure(&plan.experiment, &cell.id)? });
    }
    // In place, since it is by far the largest value here.
    found.retain(Option::is_some);
    Ok((found.into_iter().map(|cell| cell.expect("it was found")).collect(), missing))
}

/// The cells of fresh runs whose settings were selected among candidates, by id, with what they were selected by; none
/// without `[tune]`.
fn selected_cells(plan: &Plan) -> HashMap<CellId, SelectedBy> {
    let (Some(tuning), Some(tune)) = (&plan.tuning, &plan.manifest.tune) else {
        return HashMap::new();
    };
    let evaluated = tuning.groups.iter().filter_map(|group| {
        let cell = group.evaluation.as_ref()?;
        let selected_by = SelectedBy {
            metric: tune.metric,
            changes: group.selection_changes.clone(),
            loss_changes: group.loss_selection_changes.clone(),
        };
        Some((cell.id, selected_by))
    });
    evaluated.collect()
}

/// How many cells are read before what they have in common is joined and they are put in the order of the plan.
const AT_ONCE: usize = 1 << 16;

/// The number of cells that a thread reads one after the other, of this number of cells: enough tasks for all threads,
/// and so few that the cells of a pack are mostly in one task.
pub fn cells_per_task(cells: usize) -> usize {
    (cells / 64).clamp(1, 512)
}

/// Refuses results that several versions of exactfed computed: for one manifest they may compute different numbers.
///
/// # Errors
/// If there are several versions, with the number of cells of each.
pub fn one_version(plan: &Plan, cells: &[CellResult<'_>]) -> Result<(), Error> {
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    cells.iter().for_each(|c| *versions.entry(&c.provenance.version).or_default() += 1);
    if versions.len() < 2 {
        return Ok(());
    }
    let each: Vec<String> = versions
        .into_iter()
        .map(|(version, count)| match count {
            1 => format!("1 cell by {version}"),
            count => format!("{} cells by {version}", thousands(count)),
        })
        .collect();
    Err(error(
        Path::new(&plan.experiment),
        format!(
            "its cells were computed by several versions of exactfed ({}), which a report does not mix: compute all with one ({}, with the --out of these results)",
            each.join(", "),
            command_to_compute_all(&plan.source)
        ),
    ))
}

/// The command for a shell that computes all cells of a manifest, with its `--set`, also those that have results.
fn command_to_compute_all(source: &Source) -> String {
    let file = shell_word(&source.name);
    let sets: String =
        source.overrides.iter().map(|set| format!(" --set {}", quoted(set))).collect();
    format!("exactfed run {file}{sets} --force")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_overrides_as_they_were() {
        let overrides = vec!["title=\"Holm's order\"".to_owned(), "replicates=3".to_owned()];
        let source = Source { name: "my file.toml".into(), overrides, ..Source::default() };
        assert_eq!(
            command_to_compute_all(&source),
            r#"exactfed run 'my file.toml' --set 'title="Holm'\''s order"' --set 'replicates=3' --force"#
        );
    }
}
