//! Verdicts of results to which `run --until-decided` added replicates: a page judges the claims
//! at the looks that were planned, each on the cells of that look, and so shows the verdicts that
//! the run has seen.

use crate::cells::read::read_cells;
use crate::claims::{Judge, JudgedClaim};
use crate::frontier;
use crate::needs::Needs;
use crate::predictions::{MomentsCache, Theory, instances};
use crate::results::{PlannedLooks, Results};
use crate::stats::looks::{Look, Looks};
use crate::stats::verdict::LEVEL;
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::{Cell, Plan};
use std::collections::HashSet;
use std::path::Path;

/// The looks that were planned for the cells of a plan, if its number of replicates is that of one of them.
///
/// # Errors
/// If their record is not as it was written.
pub fn planned_looks(plan: &Plan, results: &dyn Results) -> Result<Option<Looks>, Error> {
    Ok(at_look(plan, &results.planned_looks(&plan.experiment)?))
}

/// The recorded looks that were planned for the cells of a plan, if one of them has the plan's number of replicates.
pub fn at_look(plan: &Plan, recorded: &[PlannedLooks]) -> Option<Looks> {
    recorded
        .iter()
        .find(|planned| {
            planned.looks.until(plan.manifest.replicates).is_some()
                && plan.has_cells(planned.looks.first, &planned.cells)
        })
        .map(|planned| planned.looks)
}

/// The looks at which the claims of a page were judged, and which of them decided each claim.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenLooks {
    /// The looks that were planned before the first of them.
    pub planned: Looks,
    /// The looks up to the replicates of the page.
    pub taken: Vec<Look>,
    /// The index among `taken` of the look that decided each claim, in the order of the claims; `None` for a claim that
    /// is not decided.
    pub decided: Vec<Option<usize>>,
}

/// The looks at which the claims of a plan are judged: the planned ones up to its number of replicates, or one look at
/// the whole level if none were planned.
pub struct LooksOfPlan {
    planned: Option<Looks>,
    /// The planned looks up to the replicates of the plan; empty if none were planned.
    taken: Vec<Look>,
}

impl LooksOfPlan {
    /// Finds the looks that were planned for the cells of a plan; none for a plan without claims.
    ///
    /// # Errors
    /// If their record is not as it was written.
    pub fn new(plan: &Plan, results: &dyn Results) -> Result<Self, Error> {
        let planned =
            if plan.claim_tables.is_empty() { None } else { planned_looks(plan, results)? };
        let taken = planned.and_then(|planned| planned.until(plan.manifest.replicates));
        Ok(Self { planned, taken: taken.unwrap_or_default() })
    }

    /// The level of the last look, at which the cells of the plan itself are judged.
    pub fn level(&self) -> f64 {
        self.taken.last().map_or(LEVEL, |look| look.level)
    }

    /// Judges the claims of a plan at the earlier looks, where `last` has them as the last look judged them, at
    /// [`level`](Self::level). At an earlier look the cells are those of the same manifest with fewer replicates. A
    /// claim gets the verdict, the estimate and the p-value of the first look that decided it, so that what later looks
    /// see changes no verdict. The second part of the result is `None` if no looks were planned.
    ///
    /// # Errors
    /// As for [`judged_once`], of an earlier look.
    pub fn judge<'a>(
        self,
        plan: &'a Plan,
        results: &dyn Results,
        last: Vec<JudgedClaim<'a>>,
    ) -> Result<(Vec<JudgedClaim<'a>>, Option<TakenLooks>), Error> {
        let Self { planned: Some(planned), taken } = self else { return Ok((last, None)) };
        let mut claims = last;
        // Planned looks were found by a look at the plan's number of replicates, which is the last of `taken`.
        let end = taken.len() - 1;
        let mut decided: Vec<Option<usize>> =
            claims.iter().map(|claim| claim.is_decided().then_some(end)).collect();
        for (i, look) in taken[..end].iter().enumerate() {
            let earlier = plan
                .with_replicates(look.replicates)
                .map_err(|e| error(Path::new(&plan.experiment), e))?;
            let earlier = judged_once(plan, &earlier, results, look.level)?;
            for ((claim, at), earlier) in claims.iter_mut().zip(&mut decided).zip(earlier) {
                if earlier.is_decided() && at.is_none_or(|at| i < at) {
                    *claim = earlier;
                    *at = Some(i);
                }
            }
        }
        Ok((claims, Some(TakenLooks { planned, taken, decided })))
    }
}

/// Reads the results of a plan and judges its claims at all looks, without drawing figures, as diffs need them.
///
/// # Errors
/// If results are damaged, an instance that theory needs cannot be built, for instance because a data file is missing,
/// or a frontier cannot be computed.
pub fn judged<'a>(plan: &'a Plan, results: &dyn Results) -> Result<Vec<JudgedClaim<'a>>, Error> {
    let looks = LooksOfPlan::new(plan, results)?;
    let last = judged_once(plan, plan, results, looks.level())?;
    Ok(looks.judge(plan, results, last)?.0)
}

/// Reads the results of `plan` and judges the claims at one look, at this level. The claims borrow their texts from
/// `stated`, which differs from `plan` only in the number of replicates and may outlive it.
///
/// # Errors
/// If results are damaged, an instance that theory needs cannot be built, for instance because a data file is missing,
/// or a frontier cannot be computed.
pub fn judged_once<'a>(
    stated: &'a Plan,
    plan: &Plan,
    results: &dyn Results,
    level: f64,
) -> Result<Vec<JudgedClaim<'a>>, Error> {
    let needs = Needs::of_claims(plan);
    let (cells, _) = read_cells(plan, plan.cells.iter(), results, &|cell| needs.traces(cell))?;
    let with_theory: Vec<&Cell> =
        plan.cells.iter().filter(|cell| needs.claims_need_theory(cell)).collect();
    let prepared = instances::build(plan, results, &with_theory)?;
    let moments: HashSet<&str> = plan
        .cells
        .iter()
        .filter(|cell| needs.claims_need_moments(cell))
        .map(|cell| cell.id.as_str())
        .collect();
    let theory = Theory::new(&prepared, &moments, MomentsCache::Read(results));
    let frontiers = frontier::frontiers(plan, results, &|_| ())?;
    let judge = Judge { plan, cells: &cells, theory: &theory, frontiers: &frontiers };
    Ok(judge.look(stated, level))
}
