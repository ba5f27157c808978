//! Cells in the results of an experiment that its page leaves out, because they are of runs with
//! another number of replicates, another seed or other settings.
//!
//! A look is a number of replicates, planned before the first runs, at which claims are judged at a level that takes
//! all planned looks into account.

use crate::looks::at_look;
use crate::results::{PlannedLooks, Results, Seeds};
use exactfed_core::words::{count, thousands};
use exactfed_runner::files::Error;
use exactfed_runner::plan::{CellId, Plan};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashSet};

/// What the results of an experiment contain of cells that are not in its plan, for the warnings of its page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnplannedCells {
    /// The number of replicates of the page.
    pub shown: u64,
    /// Smaller numbers of replicates at which verdicts on the cells of the page were seen before replicates were added,
    /// although no planned look accounts for that: pages showed them, or looks were planned that end before.
    pub seen: BTreeSet<u64>,
    /// Other numbers of replicates of cells that differ in nothing else from the cells of the page,
    /// except the numbers of looks that were planned.
    pub replicates: BTreeSet<u64>,
    /// The seeds of the cells of the page, if there are other cells.
    pub own_seeds: Seeds,
    /// The seeds of cells that differ from the cells of the page in the seed, in the seed of the noise or in both, and
    /// perhaps in the number of replicates.
    pub seeds: BTreeSet<Seeds>,
    /// The number of cells of other settings.
    pub others: usize,
    /// The seed of the noise of the page's cells, if their looks are the only ones that were planned: see
    /// [`UnplannedCells::sole_noise`].
    pub confirmed_with: Option<i64>,
}

/// Finds what the results of an experiment contain of cells that are not in its plan, nor candidates of its tuning, and
/// at which smaller numbers of replicates the verdicts on its cells were seen.
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
    let seeds = seeds_of(plan);
    let same: HashSet<String> = plan
        .cells
        .par_iter()
        .map(|cell| RunSettings::new(cell.identity.canonical()).rest)
        .collect();
    // A cell whose record is damaged counts as one of other settings.
    let runs: Vec<_> =
        ids.par_iter().map(|id| results.settings(name, id).ok().map(RunSettings::new)).collect();
    let recorded = results.planned_looks(name)?;
    found.own_seeds = seeds;
    for run in runs {
        match run.filter(|run| same.contains(&run.rest)) {
            Some(run) if run.seeds == seeds => {
                found.replicates.insert(run.replicates);
            }
            Some(run) => {
                found.seeds.insert(run.seeds);
            }
            None => found.others += 1,
        }
    }
    // The numbers of replicates of planned looks are no further sets of cells. If replicates were added beyond the last
    // planned look, the verdicts of the looks before have been seen.
    if let Some(looks) = at_look(plan, &recorded) {
        found.replicates.retain(|replicates| looks.until(*replicates).is_none());
        let is_only_plan = is_only_plan(plan, &recorded, &found.seeds);
        found.confirmed_with = is_only_plan.then_some(seeds.noise_seed);
    }
    for PlannedLooks { looks, cells, .. } in recorded {
        if looks.until(shown).is_none() && plan.has_cells(looks.first, &cells) {
            let taken = found.replicates.iter().filter(|r| looks.until(**r).is_some());
            found.seen.extend(taken.filter(|r| **r < shown));
        }
    }
    found.replicates.retain(|replicates| !found.seen.contains(replicates));
    Ok(found)
}

/// Whether the looks at the cells of a plan were planned before any of these cells was run, and no
/// looks are recorded for the cells with `other_seeds`, the seeds of the plan's cells that are stored with other noise.
/// An entry of an earlier release, which does not say its seeds, may be for cells with other seeds. If it is true, the
/// verdicts may be reported as a confirmation ([`UnplannedCells::sole_noise`]).
fn is_only_plan(plan: &Plan, recorded: &[PlannedLooks], other_seeds: &BTreeSet<Seeds>) -> bool {
    let (own, others): (Vec<&PlannedLooks>, Vec<&PlannedLooks>) =
        recorded.iter().partition(|planned| plan.has_cells(planned.looks.first, &planned.cells));
    own.iter().all(|planned| planned.fresh)
        && !others
            .iter()
            .any(|planned| planned.seeds.is_none_or(|seeds| other_seeds.contains(&seeds)))
}

/// The seeds of the cells of a plan, which all have the same; the default without cells.
pub fn seeds_of(plan: &Plan) -> Seeds {
    let first = plan.cells.first().map(|cell| RunSettings::new(cell.identity.canonical()));
    first.map_or_else(Seeds::default, |settings| settings.seeds)
}

/// Whether results contain no cell of a plan, at any number of replicates, and no page showed verdicts on them: looks
/// that are planned now are then the first ones.
///
/// # Errors
/// If the folder of the experiment cannot be read.
pub fn are_fresh(plan: &Plan, results: &dyn Results) -> Result<bool, Error> {
    let name = &plan.experiment;
    let stored: HashSet<CellId> = results.ids(name)?.into_iter().collect();
    let mut shown = results.shown_verdicts(name)?.into_iter();
    let was_shown = shown.any(|shown| plan.has_cells(shown.replicates, &shown.cells));
    let is_stored = plan.cells.iter().any(|cell| stored.contains(&cell.id));
    Ok(!is_stored && !was_shown && find(plan, results)?.replicates.is_empty())
}

/// The settings of a cell, with its seeds and its number of replicates apart from the others, to compare cells in them.
struct RunSettings {
    replicates: u64,
    seeds: Seeds,
    /// All other settings, as text.
    rest: String,
}

impl RunSettings {
    /// Splits the canonical settings of a cell. If they have no seed of the noise, the noise is drawn from the one
    /// seed.
    fn new(mut settings: toml::Table) -> Self {
        let mut take = |key: &str| settings.remove(key).and_then(|value| value.as_integer());
        let [replicates, seed, noise] = ["replicates", "seed", "noise-seed"].map(&mut take);
        let replicates = replicates.and_then(|n| n.try_into().ok()).unwrap_or_default();
        let seed = seed.unwrap_or_default();
        let seeds = Seeds { seed, noise_seed: noise.unwrap_or(seed) };
        Self { replicates, seeds, rest: settings.to_string() }
    }
}

impl UnplannedCells {
    /// A warning that replicates were added after verdicts had been seen, and that the same cells
    /// were run with other numbers of replicates or other seeds; empty if neither is so.
    pub fn warning(&self) -> String {
        self.added().into_iter().chain(self.other_sets()).collect::<Vec<_>>().join(" ")
    }

    /// The warning that replicates were added after verdicts had been seen, if they were.
    fn added(&self) -> Option<String> {
        let last = self.seen.last()?;
        let seen = first_values(self.seen.iter());
        Some(format!(
            "Replicates were added, from {last} to {}, after verdicts had been seen (at {seen}). The level of the verdicts on this page does not account for that (optional stopping); with another noise-seed, exactfed run --until-decided adds replicates at a level that does.",
            self.shown
        ))
    }

    /// The warning that the same cells were run with other numbers of replicates or other seeds, if they were. There is
    /// none if the verdicts of the page are no choice among these ([`Self::sole_noise`]).
    fn other_sets(&self) -> Option<String> {
        if self.sole_noise().is_some() {
            return None;
        }
        let replicates = (!self.replicates.is_empty()).then(|| {
            let number = self.replicates.len();
            further_sets(
                number,
                "other numbers of replicates:",
                &first_values(self.replicates.iter()),
            )
        });
        let seeds = (!self.seeds.is_empty()).then(|| self.sets_of_other_seeds());
        let sets: Vec<String> = replicates.into_iter().chain(seeds).collect();
        (!sets.is_empty()).then(|| format!(
            "The results contain {}. Choosing the number of replicates or the seed after seeing verdicts voids their error guarantee (optional stopping).",
            sets.join(" and ")
        ))
    }

    /// How many sets of the page's cells with other seeds there are, and their seeds, in words. The seed of the noise
    /// is named, and after it the seed of the instance if the page has another one. One number is enough where both
    /// seeds are the same and no other set has this noise.
    fn sets_of_other_seeds(&self) -> String {
        let mut sets: Vec<&Seeds> = self.seeds.iter().collect();
        sets.sort_by_key(|set| (set.noise_seed, set.seed));
        let number = sets.len();
        let noun = if number == 1 { "seed" } else { "seeds" };
        let in_words = |set: &&Seeds| {
            let Seeds { seed, noise_seed } = **set;
            let with_this_noise = self.seeds.iter().filter(|other| other.noise_seed == noise_seed);
            let is_clear = seed == noise_seed && with_this_noise.count() == 1;
            if seed == self.own_seeds.seed || is_clear {
                noise_seed.to_string()
            } else {
                format!("{noise_seed} (with seed = {seed})")
            }
        };
        let listed = first_values(sets.iter().map(in_words));
        further_sets(number, &format!("the noise of {noun}"), &listed)
    }

    /// A sentence that says on which noise the verdicts rest, if the results contain the same cells with other seeds
    /// and these verdicts are nevertheless no choice among several: the looks of the page's cells were planned before
    /// any of their runs, and no cells with other seeds have planned looks. Whatever the other sets showed, a verdict
    /// of the page is wrong with a probability of 5 % at most, since its runs draw other noise. `None` in any other
    /// case.
    pub fn sole_noise(&self) -> Option<String> {
        let noise = self.confirmed_with?;
        if self.seeds.is_empty() || !self.replicates.is_empty() || !self.seen.is_empty() {
            return None;
        }
        Some(format!(
            "These verdicts rest on the noise of seed {noise} alone: their looks were planned before any of these cells was run with it. The results also contain {}, which they do not use. Their error guarantee holds if they are the ones that are reported, whatever they say; a choice between them and verdicts on other noise has none.",
            self.sets_of_other_seeds()
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

/// A number of further sets of the page's cells, with `what` they differ in, and `each` value of it.
fn further_sets(number: usize, what: &str, each: &str) -> String {
    format!("{} of these cells with {what} {each}", count(number, "further set"))
}

/// The most values that a sentence lists.
const LISTED: usize = 40;

/// The first values of a list, in its order, and `…` for the rest.
fn first_values<T: ToString>(values: impl ExactSizeIterator<Item = T>) -> String {
    let more = (values.len() > LISTED).then(|| "…".to_owned());
    let listed = values.take(LISTED).map(|value| value.to_string());
    listed.chain(more).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The warning of a page with these seeds (of the instance, of the noise) on sets with others.
    fn warning(own: (i64, i64), others: &[(i64, i64)]) -> String {
        let seeds = |(seed, noise_seed): (i64, i64)| Seeds { seed, noise_seed };
        let others = others.iter().map(|pair| seeds(*pair)).collect();
        UnplannedCells { own_seeds: seeds(own), seeds: others, ..UnplannedCells::default() }
            .warning()
    }

    #[test]
    fn sets_of_other_seeds_are_counted_by_both_seeds() {
        for (own, others, wanted) in [
            (
                (1, 1),
                &[(1, 8), (9, 9)][..],
                "2 further sets of these cells with the noise of seeds 8, 9.",
            ),
            ((1, 2), &[(1, 1)][..], "1 further set of these cells with the noise of seed 1."),
            (
                (1, 1),
                &[(9, 5), (9, 7)][..],
                "2 further sets of these cells with the noise of seeds 5 (with seed = 9), 7 (with seed = 9).",
            ),
            (
                (1, 1),
                &[(2, 2), (1, 2)][..],
                "2 further sets of these cells with the noise of seeds 2, 2 (with seed = 2).",
            ),
            (
                (1, 2),
                &[(3, 2)][..],
                "1 further set of these cells with the noise of seed 2 (with seed = 3).",
            ),
        ] {
            let text = warning(own, others);
            assert!(text.starts_with(&format!("The results contain {wanted}")), "{text}");
        }
    }

    #[test]
    fn long_lists_end_with_dots() {
        let others: Vec<(i64, i64)> = (2..60).map(|seed| (seed, seed)).collect();
        let text = warning((1, 1), &others);
        assert!(text.contains("58 further sets") && text.contains(" 41, …."), "{text}");
    }
}
