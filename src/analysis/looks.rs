//! Verdicts of results to which `run --until-decided` added replicates: a page judges the claims
//! at the looks that were planned, each on the cells of that look, and so shows the verdicts that
//! the run has seen.

use super::claims::{JudgedClaim, JudgedClaims};
use crate::stats::looks::{Look, Looks};
use crate::stats::verdict::LEVEL;
use crate::store::{Store, cells_hash};
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::Plan;
use std::path::Path;

/// The looks that were planned for the cells of a plan, if it is at one of them.
///
/// # Errors
/// If their record is not as it was written.
pub fn planned_looks(plan: &Plan, store: &Store) -> Result<Option<Looks>, Error> {
    for planned in store.planned_looks(&plan.experiment)? {
        let is_at_look = planned.looks.until(plan.manifest.replicates).is_some();
        if is_at_look && has_cells(plan, planned.looks.first, &planned.cells) {
            return Ok(Some(planned.looks));
        }
    }
    Ok(None)
}

/// Whether a plan has the cells of this hash at this number of replicates.
pub fn has_cells(plan: &Plan, replicates: u64, hash: &str) -> bool {
    match replicates == plan.manifest.replicates {
        true => cells_hash(plan) == hash,
        false => plan.with_replicates(replicates).is_ok_and(|plan| cells_hash(&plan) == hash),
    }
}

/// The looks up to the replicates of a plan; one look at the whole level if none were planned.
pub struct LooksOfPlan {
    planned: Option<Looks>,
    taken: Vec<Look>,
}

impl LooksOfPlan {
    /// The looks that were planned for a plan.
    ///
    /// # Errors
    /// If their record is not as it was written.
    pub fn new(plan: &Plan, store: &Store) -> Result<Self, Error> {
        let planned = match plan.manifest.claim.all().is_empty() {
            true => None,
            false => planned_looks(plan, store)?,
        };
        let taken = planned.and_then(|planned| planned.until(plan.manifest.replicates));
        Ok(Self { planned, taken: taken.unwrap_or_default() })
    }

    /// The level of the last look.
    pub fn level(&self) -> f64 {
        self.taken.last().map_or(LEVEL, |look| look.level)
    }

    /// The claims, judged at all looks, of which `last` are the verdicts of the last.
    ///
    /// # Errors
    /// If results of an earlier look are damaged.
    pub fn judge<'a>(
        self,
        plan: &'a Plan,
        store: &Store,
        last: Vec<JudgedClaim<'a>>,
    ) -> Result<JudgedClaims<'a>, Error> {
        let Some(planned) = self.planned else { return Ok(last.into()) };
        let mut judged = Vec::new();
        for look in &self.taken[..self.taken.len() - 1] {
            let earlier = plan.with_replicates(look.replicates);
            let earlier = earlier.map_err(|e| error(Path::new(&plan.experiment), e))?;
            judged.push(super::judged_once(plan, &earlier, store, look.level)?);
        }
        judged.push(last);
        Ok(JudgedClaims::from_looks(planned, self.taken, judged))
    }
}
