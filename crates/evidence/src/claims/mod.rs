//! Claims: whether the results support the statements in a manifest.
//!
//! *Invariant*: a claim that names several cells is supported only if it holds for each of them;
//! a cell without a prediction, or with a run that diverged, is reported and never counted as
//! support.

mod conditions;
mod costs;
#[cfg(test)]
mod dummy;
mod frontier_constant;
mod frontier_less;
mod frontier_slope;
mod frontiers;
mod judge;
mod judged;
mod keys;
mod kind;
mod matches;
mod means;
mod one_sided;
mod pairs;
mod phase_less;
mod published;
mod published_rows;
mod reaches;
mod reaches_before;
mod sample;
mod slope;
#[cfg(test)]
mod tests;
mod text;

use crate::cells::CellResult;
use crate::kinds::kinds;
use crate::stats::verdict::{Evidence, verdicts};
pub use conditions::StatementConditions;
use exactfed_core::sources::statement;
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::plan::{Cell, KindTable, Plan, TableKind, selected};
use frontier_constant::FrontierConstantKeys;
use frontier_less::FrontierLessKeys;
use frontier_slope::FrontierSlopeKeys;
pub use judge::{EstimateScale, Judge, setting_number};
use judge::{Parts, Tested};
use judged::judged;
pub use judged::{ClaimPart, Estimate, JudgedClaim};
pub use keys::{Reaching, When};
pub use kind::{Claim, ClaimedCells, WrongResult};
use matches::MatchesKeys;
use one_sided::{ComparisonKeys, OneSided};
use phase_less::PhaseLessKeys;
use published::PublishedKeys;
use reaches::ReachesKeys;
use reaches_before::ReachesBeforeKeys;
use slope::SlopeKeys;
use std::collections::BTreeSet;
use std::convert::identity;

kinds! {
    claims of ClaimKeys, each by claim as dyn Claim<'_> + '_;
    "less", "A metric is at most another.", ComparisonKeys, |claim| OneSided { claim, is_upper: true };
    "at-least", "A metric is at least another.", ComparisonKeys, |claim| OneSided { claim, is_upper: false };
    "slope", "The slope of a metric over a setting.", SlopeKeys, identity;
    "matches", "A metric or a vector against a prediction.", MatchesKeys, identity;
    "published", "A metric against published numbers in a file.", PublishedKeys, identity;
    "reaches", "The cost to reach a target.", ReachesKeys, identity;
    "reaches-before", "The cost to reach a target below that of others.", ReachesBeforeKeys, identity;
    "frontier-slope", "The slope of a frontier over the target.", FrontierSlopeKeys, identity;
    "frontier-constant", "A frontier against powers of N and ε.", FrontierConstantKeys, identity;
    "frontier-less", "A frontier below another.", FrontierLessKeys, identity;
    "phase-less", "An algorithm that costs least in a region of a map.", PhaseLessKeys, identity;
    #[cfg(test)]
    "dummy", "The error of every run against a number.", dummy::DummyClaimKeys, identity;
}

/// The claims of a plan, in the order of its tables: kind by kind, and not as the manifest has them (see
/// [`Plan::claims`]).
pub fn claims(plan: &Plan) -> Vec<Box<dyn Claim<'_> + '_>> {
    plan.claim_tables.iter().map(claim).collect()
}

impl Judge<'_> {
    /// Judges the claims of a manifest together at a family-wise level: 5 %, or the part of it that one of several
    /// looks may use. Returns them in the order of the manifest. The returned claims borrow their texts from `stated`,
    /// a plan of the same manifest as that of the cells, perhaps with another number of replicates: it outlives the
    /// plans of earlier looks.
    pub fn look<'s>(&self, stated: &'s Plan, level: f64) -> Vec<JudgedClaim<'s>> {
        let all = claims(self.plan);
        let mut each: Vec<(Tested, Vec<StatementConditions>)> = Vec::with_capacity(all.len());
        for (table, claim) in self.plan.claim_tables.iter().zip(&all) {
            each.push(self.test_claim(table.common(), &**claim));
        }
        let family: Vec<Evidence> =
            each.iter().filter_map(|(tested, _)| tested.parts.evidence()).collect();
        let mut found = family.iter().copied().zip(verdicts(&family, level));
        let mut by_table: Vec<Option<JudgedClaim<'_>>> = Vec::with_capacity(all.len());
        let tables = stated.claim_tables.iter().zip(&all).zip(each);
        for ((table, claim), (tested, conditions)) in tables {
            // Claims of which nothing was tested are not in the family.
            let evidence = if tested.parts.tested.is_empty() { None } else { found.next() };
            let mut judged =
                judged(table.common(), tested, conditions, evidence, family.len(), level);
            let prediction = claim.cells().and_then(|cells| cells.prediction);
            judged.is_on_bound = prediction.is_some_and(|by| by.is_bound());
            // All cells of a manifest have the same number of instances.
            judged.unit = self.cells.first().map_or(judged.unit, |cell| cell.sample_unit());
            by_table.push(Some(judged));
        }
        self.plan.claims.iter().filter_map(|place| by_table[*place].take()).collect()
    }

    /// Tests a claim, and checks the conditions of the statements that it names; nothing is tested if
    /// some of the cells that the claim is about have no results yet, and conditions are checked on those that have. If
    /// none has, nothing is said of conditions.
    fn test_claim(
        &self,
        keys: &ClaimKeys,
        claim: &dyn Claim<'_>,
    ) -> (Tested, Vec<StatementConditions>) {
        let selections: Vec<&Selection> =
            claim.cells().into_iter().flat_map(|cells| cells.selections()).collect();
        let cells: Vec<&CellResult<'_>> =
            selections.iter().flat_map(|cells| self.chosen(cells)).collect();
        let mut conditions = Vec::with_capacity(keys.statements.len());
        let mut tested = claim.test(self);
        for stated in keys.statements.iter().filter_map(|name| statement(name)) {
            conditions.push(conditions::of_cells(self.theory, stated, &cells));
        }
        let there: BTreeSet<&str> = self.cells.iter().map(|c| c.cell.id.as_str()).collect();
        let is_missing = |cell: &&Cell| !there.contains(cell.id.as_str());
        let is_meant = |cell: &&Cell| selections.iter().any(|cells| selected(cell, cells));
        let missing = self.plan.cells.iter().filter(is_missing).filter(is_meant).count();
        if missing > 0 {
            let untested = vec![format!("{missing} of its cells have no results yet")];
            tested.parts = Parts { untested, ..Parts::default() };
            if cells.is_empty() {
                // The claim is about runs, though there are none yet, and not on theory alone.
                conditions.clear();
            }
        }
        (tested, conditions)
    }
}
