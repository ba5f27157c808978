//! Verdicts of results to which `run --until-decided` added replicates: a page judges the claims
//! at the looks that were planned, each on the cells of that look, and so shows the verdicts that
//! the run has seen.

use crate::cells::read::read_cells;
use crate::cells::{CellResult, Missing};
use crate::claims::{Judge, JudgedClaim, JudgedClaims};
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

/// The looks that were planned for the cells of a plan, if it is at one of them.
///
/// # Errors
/// If their record is not as it was written.
pub fn planned_looks(plan: &Plan, results: &dyn Results) -> Result<Option<Looks>, Error> {
    Ok(at_look(plan, &results.planned_looks(&plan.experiment)?))
}

/// The looks, among the recorded ones, that were planned for the cells of a plan, if it is at one of
/// them.
pub fn at_look(plan: &Plan, recorded: &[PlannedLooks]) -> Option<Looks> {
    let is_of_plan = |planned: &&PlannedLooks| {
        planned.looks.until(plan.manifest.replicates).is_some()
            && plan.has_cells(planned.looks.first, &planned.cells)
    };
    recorded.iter().find(is_of_plan).map(|planned| planned.looks)
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
    pub fn new(plan: &Plan, results: &dyn Results) -> Result<Self, Error> {
        let planned = match plan.claim_tables.is_empty() {
            true => None,
            false => planned_looks(plan, results)?,
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
        results: &dyn Results,
        last: Vec<JudgedClaim<'a>>,
    ) -> Result<JudgedClaims<'a>, Error> {
        let Some(planned) = self.planned else {
            return Ok(JudgedClaims { list: last, looks: None });
        };
        let mut judged = Vec::new();
        for look in &self.taken[..self.taken.len() - 1] {
            let earlier = plan.with_replicates(look.replicates);
            let earlier = earlier.map_err(|e| error(Path::new(&plan.experiment), e))?;
            judged.push(judged_once(plan, &earlier, results, look.level)?);
        }
        judged.push(last);
        Ok(JudgedClaims::from_looks(planned, self.taken, judged))
    }
}

/// The cells of a plan that have results, with what is needed of their runs, and those that
/// have none.
///
/// # Errors
/// If results are damaged.
pub fn cell_results<'a>(
    plan: &'a Plan,
    results: &dyn Results,
    needs: &Needs<'_>,
) -> Result<(Vec<CellResult<'a>>, Vec<Missing<'a>>), Error> {
    let all: Vec<&'a Cell> = plan.cells.iter().collect();
    read_cells(plan, &all, results, &|cell| needs.traces(cell))
}

/// The claims of a manifest with their verdicts, without figures.
///
/// # Errors
/// If results are damaged.
pub fn judged<'a>(plan: &'a Plan, results: &dyn Results) -> Result<JudgedClaims<'a>, Error> {
    let looks = LooksOfPlan::new(plan, results)?;
    let last = judged_once(plan, plan, results, looks.level())?;
    looks.judge(plan, results, last)
}

/// The verdicts at one look, at its level. `plan` has the cells, and differs from `stated`, whose claims
/// are judged, only in the number of replicates.
///
/// # Errors
/// If results are damaged.
pub fn judged_once<'a>(
    stated: &'a Plan,
    plan: &Plan,
    results: &dyn Results,
    level: f64,
) -> Result<Vec<JudgedClaim<'a>>, Error> {
    let needs = Needs::of_claims(plan);
    let (cells, _) = cell_results(plan, results, &needs)?;
    let by_claims = |cell: &&Cell| needs.claims_need_theory(cell);
    let planned: Vec<&Cell> = plan.cells.iter().filter(by_claims).collect();
    let prepared = instances::build(plan, results, &planned)?;
    let moments = plan.cells.iter().filter(|cell| needs.claims_need_moments(cell));
    let moments: HashSet<&str> = moments.map(|cell| cell.id.as_str()).collect();
    let theory = Theory::new(&prepared, &moments, MomentsCache::Read(results));
    let frontiers = frontier::frontiers(plan, results, &|_| ())?;
    let judge = Judge { plan, cells: &cells, theory: &theory, frontiers: &frontiers };
    Ok(judge.look(stated, level))
}
