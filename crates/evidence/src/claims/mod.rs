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
mod reaches;
mod sample;
mod slope;
#[cfg(test)]
mod tests;
mod text;

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
use reaches::ReachesKeys;
use slope::SlopeKeys;
use std::collections::BTreeSet;
use std::convert::identity;

kinds! {
    claims of ClaimKeys, each by claim as dyn Claim<'_> + '_;
    "less", "A metric is at most another.", ComparisonKeys, |claim| OneSided { claim, is_upper: true };
    "at-least", "A metric is at least another.", ComparisonKeys, |claim| OneSided { claim, is_upper: false };
    "slope", "The slope of a metric over a setting.", SlopeKeys, identity;
    "matches", "A metric or a vector against a prediction.", MatchesKeys, identity;
    "reaches", "The cost to reach a target.", ReachesKeys, identity;
    "frontier-slope", "The slope of a frontier over the target.", FrontierSlopeKeys, identity;
    "frontier-constant", "A frontier against powers of N and ε.", FrontierConstantKeys, identity;
    "frontier-less", "A frontier below another.", FrontierLessKeys, identity;
    "phase-less", "An algorithm that costs least in a region of a map.", PhaseLessKeys, identity;
    #[cfg(test)]
    "dummy", "The error of every run against a number.", dummy::DummyClaimKeys, identity;
}

/// The claims of a plan, kind by kind.
pub fn claims(plan: &Plan) -> Vec<Box<dyn Claim<'_> + '_>> {
    plan.claim_tables.iter().map(claim).collect()
}

impl Judge<'_> {
    /// The claims of a manifest, judged together at a family-wise level, in the order of the manifest.
    /// `stated` has the same manifest as the plan of the cells, which may have other replicates.
    pub fn look<'s>(&self, stated: &'s Plan, level: f64) -> Vec<JudgedClaim<'s>> {
        let table = claims(self.plan);
        let tested = self.plan.claim_tables.iter().zip(&table);
        let tested = tested.map(|(table, claim)| self.tested(table.common(), &**claim));
        let tested: Vec<(Tested, Vec<StatementConditions>)> = tested.collect();
        let evidence = tested.iter().filter_map(|(tested, _)| tested.parts.evidence());
        let family: Vec<Evidence> = evidence.collect();
        let mut found = family.iter().copied().zip(verdicts(&family, level));
        let stated = stated.claim_tables.iter().zip(&table).zip(tested);
        let judged = stated.map(|((stated, claim), (tested, conditions))| {
            let evidence = if tested.parts.tested.is_empty() { None } else { found.next() };
            let mut judged =
                judged(stated.common(), tested, conditions, evidence, family.len(), level);
            let prediction = claim.cells().and_then(|cells| cells.prediction);
            judged.is_on_bound = prediction.is_some_and(|by| by.is_bound());
            Some(judged)
        });
        let mut judged: Vec<Option<JudgedClaim<'_>>> = judged.collect();
        self.plan.claims.iter().filter_map(|place| judged[*place].take()).collect()
    }

    /// Tests a claim, with the conditions of the statements that it is about; nothing is tested if
    /// some of the cells that are meant have no results yet.
    fn tested(
        &self,
        keys: &ClaimKeys,
        claim: &dyn Claim<'_>,
    ) -> (Tested, Vec<StatementConditions>) {
        let selections = claim.cells().into_iter().flat_map(|cells| cells.selections());
        let selections: Vec<&Selection> = selections.collect();
        let cells: Vec<_> = selections.iter().flat_map(|cells| self.chosen(cells)).collect();
        let stated = keys.statements.iter().filter_map(|name| statement(name));
        let conditions = stated.map(|stated| conditions::of_cells(self.theory, stated, &cells));
        let mut tested = claim.test(self);
        let conditions = conditions.collect();
        let there: BTreeSet<&str> = self.cells.iter().map(|c| c.cell.id.as_str()).collect();
        let missing = self.plan.cells.iter().filter(|cell| !there.contains(cell.id.as_str()));
        let is_meant = |cell: &&Cell| selections.iter().any(|cells| selected(cell, cells));
        let missing = missing.filter(is_meant).count();
        if missing > 0 {
            let untested = vec![format!("{missing} of its cells have no results yet")];
            tested.parts = Parts { untested, ..Parts::default() };
        }
        (tested, conditions)
    }
}
