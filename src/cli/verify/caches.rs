//! Cached theory against what is computed now: a cache whose hash is right may still have other
//! numbers, since anybody can compute a hash.

use super::findings::{Chosen, Findings};
use crate::cli::code::no_code;
use crate::cli::interrupt::Interrupt;
use crate::evidence::cacheable_measures;
use crate::evidence::frontier::cacheable_frontier;
use crate::evidence::frontier::phase::cacheable_phase;
use crate::evidence::predictions::cacheable_moments;
use crate::store::{CheckedCache, Store};
use exactfed_runner::manifest::Oracle;
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{Prepared, PreparedPhase, prepare_frontiers};
use rayon::prelude::*;
use std::collections::HashSet;

/// Computes again what is cached of these cells (exact moments, optima and measures of heterogeneity) and of
/// the chosen frontiers and their maps, and adds each cache with other numbers to the findings; what is not cached is
/// skipped. The cells must have been built without caches, which are what is checked. Ends early after an interruption.
pub fn check(
    plan: &Plan,
    cells: &[Prepared<'_>],
    chosen: &Chosen<'_>,
    store: &Store,
    interrupt: &Interrupt,
    findings: &mut Findings,
) {
    let going_on = || !interrupt.is_requested();
    // The moments of an algorithm whose code is not at hand are left out, as its cells are.
    let at_hand = |cell: &Prepared<'_>| cell.cell.identity.algorithm.kind_without_code().is_none();
    let moments = cells.par_iter().filter(|cell| at_hand(cell) && going_on());
    let mut checked: Vec<CheckedCache> =
        moments.filter_map(|cell| store.check_cached(&cacheable_moments(cell))).collect();
    let mut seen = HashSet::new();
    let scenarios = cells.iter().flat_map(|cell| &cell.scenarios);
    let instances = scenarios.filter(|scenario| seen.insert(&*scenario.key));
    checked.extend(instances.filter_map(|scenario| store.check_optimum(scenario)));
    // Measures depend on the first instance and on the oracle alone: one cell stands for all others.
    let mut seen = HashSet::new();
    let first = cells.iter().filter(|cell| {
        let is_exact = cell.cell.identity.oracle == Oracle::Exact;
        seen.insert((&*cell.scenarios[0].key, is_exact))
    });
    let first = first.filter(|_| going_on());
    checked.extend(first.filter_map(|cell| store.check_cached(&cacheable_measures(cell))));
    let frontiers =
        if chosen.frontiers.is_empty() { Ok(Vec::new()) } else { prepare_frontiers(plan) };
    match frontiers {
        Ok(all) => {
            let all = all.iter().filter(|one| chosen.frontiers.contains(&one.frontier.id.as_str()));
            let all = all.filter(|_| going_on());
            for frontier in all {
                if let Some(kind) = frontier.frontier.lacking_code().next() {
                    let name = &plan.experiment;
                    let id = &frontier.frontier.id;
                    let why = no_code(kind);
                    findings.add_wrong(format_args!("{name}: frontier \"{id}\" left out: {why}"));
                    continue;
                }
                checked.extend(store.check_cached(&cacheable_frontier(frontier)));
                let phases = PreparedPhase::all(plan, frontier);
                let phases = phases.iter().filter(|_| going_on());
                checked.extend(phases.filter_map(|one| store.check_cached(&cacheable_phase(one))));
            }
        }
        Err(bad) => bad.iter().for_each(|bad| {
            findings.add_wrong(format_args!("{}: {}: {}", plan.experiment, bad.key, bad.message));
        }),
    }
    for CheckedCache { file, difference } in checked {
        findings.caches += 1;
        if let Some(difference) = difference {
            findings.stale += 1;
            findings.add(format_args!(
                "{}: {} is not what is computed now: {difference}; remove this cache, and report again",
                plan.experiment,
                file.display()
            ));
        }
    }
}
