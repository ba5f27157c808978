//! Cells in the results of an experiment that its page leaves out, because they are of runs with
//! another number of replicates, another seed or other settings.

use crate::looks::at_look;
use crate::results::{PlannedLooks, Results};
use exactfed_core::words::{count, thousands};
use exactfed_runner::files::Error;
use exactfed_runner::plan::{CellId, Plan};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashSet};

/// The cells in the results of an experiment that are not in its plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnplannedCells {
    /// The replicates of the page.
    pub shown: u64,
    /// Fewer replicates at which verdicts were seen, at a level that knows of no further look.
    pub seen: BTreeSet<u64>,
    /// Other numbers of replicates of cells that differ in nothing else from those of the page,
    /// except those of looks that were planned.
    pub replicates: BTreeSet<u64>,
    /// Seeds of cells that differ in the seed, or in that of the noise, and perhaps in the number of
    /// replicates.
    pub seeds: BTreeSet<i64>,
    /// Cells of other settings.
    pub others: usize,
}

/// The cells in the results of an experiment that are not in its plan.
///
/// # Errors
/// If its folder cannot be read.
pub fn find(plan: &Plan, results: &dyn Results) -> Result<UnplannedCells, Error> {
    let name = &plan.experiment;
    let planned: HashSet<&str> = plan.all_cells().map(|cell| cell.id.as_str()).collect();
    // An experiment that was never run has no folder.
    let mut ids = if plan.cells.is_empty() { Vec::new() } else { results.ids(name)? };
    ids.retain(|id| !planned.contains(id.as_str()));
    let shown = plan.manifest.replicates;
    // Fewer replicates at which pages showed verdicts on these cells.
    let mut seen = results.shown_verdicts(name)?;
    seen.retain(|seen| seen.replicates < shown && plan.has_cells(seen.replicates, &seen.cells));
    let seen = seen.into_iter().map(|seen| seen.replicates).collect();
    let mut found = UnplannedCells { shown, seen, ..UnplannedCells::default() };
    if ids.is_empty() {
        return Ok(found);
    }
    let cell = plan.cells.first().map(|cell| RunSettings::new(cell.identity.canonical()));
    let [seed, noise] = cell.map_or([0, 0], |cell| cell.seeds);
    let same: HashSet<String> = plan
        .cells
        .par_iter()
        .map(|cell| RunSettings::new(cell.identity.canonical()).rest)
        .collect();
    // A cell whose record is damaged counts as one of other settings.
    let read = |id: &CellId| results.settings(name, id).ok().map(RunSettings::new);
    let runs: Vec<_> = ids.par_iter().map(read).collect();
    let looks = results.planned_looks(name)?;
    for run in runs {
        match run.filter(|run| same.contains(&run.rest)) {
            Some(run) if run.seeds == [seed, noise] => {
                found.replicates.insert(run.replicates);
            }
            Some(run) => {
                found.seeds.insert(run.seeds[usize::from(run.seeds[0] == seed)]);
            }
            None => found.others += 1,
        }
    }
    // Looks that were planned are no further sets; those before replicates that were added beyond the
    // plan have been seen.
    if let Some(looks) = at_look(plan, &looks) {
        found.replicates.retain(|replicates| looks.until(*replicates).is_none());
    }
    for PlannedLooks { looks, cells } in looks {
        if looks.until(shown).is_none() && plan.has_cells(looks.first, &cells) {
            let taken = found.replicates.iter().filter(|r| looks.until(**r).is_some());
            found.seen.extend(taken.filter(|r| **r < shown));
        }
    }
    found.replicates.retain(|replicates| !found.seen.contains(replicates));
    Ok(found)
}

/// A cell's settings, apart from its seeds and its number of replicates.
struct RunSettings {
    replicates: u64,
    /// The seed, and that of the noise.
    seeds: [i64; 2],
    rest: String,
}

impl RunSettings {
    fn new(mut settings: toml::Table) -> Self {
        let mut take = |key: &str| settings.remove(key).and_then(|value| value.as_integer());
        let [replicates, seed, noise] = ["replicates", "seed", "noise-seed"].map(&mut take);
        let replicates = replicates.and_then(|n| n.try_into().ok()).unwrap_or_default();
        let seed = seed.unwrap_or_default();
        Self { replicates, seeds: [seed, noise.unwrap_or(seed)], rest: settings.to_string() }
    }
}

impl UnplannedCells {
    /// A warning that replicates were added after verdicts had been seen, and that the same cells
    /// were run with other numbers of replicates or other seeds; empty if neither is so.
    pub fn warning(&self) -> String {
        self.added().into_iter().chain(self.other_sets()).collect::<Vec<_>>().join(" ")
    }

    /// The warning about added replicates.
    fn added(&self) -> Option<String> {
        let (last, seen) = (self.seen.last()?, listed(&self.seen));
        Some(format!(
            "Replicates were added, from {last} to {}, after verdicts had been seen (at {seen}). The level of the verdicts on this page does not account for that (optional stopping); with another noise-seed, exactfed run --until-decided adds replicates at a level that does.",
            self.shown
        ))
    }

    /// The warning about other numbers of replicates and other seeds.
    fn other_sets(&self) -> Option<String> {
        let seeds = if self.seeds.len() == 1 { "seed" } else { "seeds" };
        let sets = [
            (self.replicates.len(), "other numbers of replicates:", listed(&self.replicates)),
            (self.seeds.len(), &format!("the noise of {seeds}"), listed(&self.seeds)),
        ];
        let sets = sets.into_iter().filter(|(number, ..)| *number > 0);
        let sets = sets.map(|(number, what, each)| {
            format!("{} of these cells with {what} {each}", count(number, "further set"))
        });
        let sets = sets.collect::<Vec<_>>().join(" and ");
        (!sets.is_empty()).then(|| format!(
            "The results contain {sets}. Choosing the number of replicates or the seed after seeing verdicts voids their error guarantee (optional stopping).",
        ))
    }

    /// The number of cells of other settings, as a sentence; empty if there are none.
    pub fn other_settings(&self) -> String {
        let cells = match self.others {
            0 => return String::new(),
            1 => "cell",
            _ => "cells",
        };
        format!(
            "The results also contain {} {cells} of other settings, which this page leaves out.",
            thousands(self.others)
        )
    }
}

/// Values that a sentence lists.
const LISTED: usize = 40;

fn listed<T: ToString>(values: &BTreeSet<T>) -> String {
    let more = (values.len() > LISTED).then(|| "…".to_owned());
    let listed = values.iter().take(LISTED).map(ToString::to_string);
    listed.chain(more).collect::<Vec<_>>().join(", ")
}
