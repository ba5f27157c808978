//! The cells of a tuned experiment that follow from results: further candidates, and fresh runs of
//! what is selected.
//!
//! *Invariant*: they take no more time than was planned before the first cell, unless that is
//! confirmed (`tests/suite/tune.rs`).

use super::follower::Follower;
use super::session::{Session, Task, missing};
use crate::cli::cell_times::CellTimes;
use crate::cli::confirm::{NotConfirmed, PlannedTime, may_need_question};
use crate::cli::outcome::{Code, Failure};
use crate::cli::{memory, shard};
use crate::evidence::tuned;
use crate::store::Lock;
use exactfed_runner::plan::{Cell, CellId, Plan};
use std::collections::HashSet;

impl Session<'_> {
    /// Runs the cells that follow from results, stage by stage: of an experiment with `[tune]` further
    /// candidates, the other runs of candidates that race, and fresh runs of what is selected, as far as
    /// results decide. The cells of the plan were run before, and the `lock` of its experiment is held; `before` is the
    /// number of these cells for the progress, to which the cells of each stage are added. Returns [`Code::Done`] where
    /// nothing follows, or a list of cells (`--only`) names all that is to be run; [`Code::SomeFailed`] also if cells
    /// were not confirmed.
    ///
    /// # Errors
    /// If cells cannot be prepared, do not fit in memory, or results cannot be read or written.
    pub(super) fn following(
        &self,
        plan: &Plan,
        mut before: usize,
        lock: &Lock,
        follower: &dyn Follower,
    ) -> Result<Code, Failure> {
        let mut code = Code::Done;
        if plan.tuning.is_none() || self.options.only.is_some() {
            return Ok(code);
        }
        let threads = self.pool.current_num_threads();
        // All cells that followed so far, with results or without.
        let mut follows: Vec<Cell> = Vec::new();
        // The cells that were run, or had results, in this or an earlier stage.
        let mut handled: HashSet<CellId> = plan.cells.iter().map(|cell| cell.id).collect();
        let mut reported: HashSet<String> = HashSet::new();
        while !self.interrupt.is_requested() {
            // The plan is made anew for each stage, since it follows results once: what they decide by now.
            let source = plan.source.clone();
            let next = crate::evidence::plan(plan.experiment.clone(), source)?;
            let mut next = self.pool.install(|| tuned::follow(next, &self.store))?;
            self.report_left_out(&next, &mut reported, follower);
            // Only those that no earlier stage has handled, and each once, though the plan may list it twice.
            let cells = next.all_cells().filter(|cell| handled.insert(cell.id));
            next.cells = cells.cloned().collect();
            if next.cells.is_empty() {
                self.report_waiting(&next, follower);
                break;
            }
            let plans = std::slice::from_ref(&next);
            let cells = shard::chosen(plans, None, self.options.shard)?.remove(0).1;
            let missing = missing(&next, &cells, &self.store, self.options);
            memory::fits(&[(&next, missing.clone())], threads, self.options.memory)?;
            follows.extend_from_slice(&next.cells);
            let confirm = || self.confirm_following(plan, &missing, &follows, threads);
            if let Err(why) = self.interrupt.immediately(confirm)? {
                follower.warning(&format!("error: {}: {why}", plan.experiment));
                return Ok(code.and(Code::SomeFailed));
            }
            let new = cells.len();
            let task = self.interrupt.immediately(|| Task::new(&next, cells, &missing))?;
            code = code.and(self.experiment(task, lock, before, follower)?);
            before += new;
        }
        Ok(code)
    }

    /// Asks whether to run the missing cells of a stage, if all cells that followed from results so far and in this
    /// stage, `follows`, take longer than was planned from `plan`, which has the listed candidates. Nothing is asked
    /// with `--yes`. The inner `Err` says that the user has not confirmed them; the outer one that an instance cannot
    /// be built, to be measured.
    fn confirm_following(
        &self,
        plan: &Plan,
        missing: &[&Cell],
        follows: &[Cell],
        threads: usize,
    ) -> Result<Result<(), NotConfirmed>, Failure> {
        if self.options.yes || !may_need_question(follows, threads) {
            return Ok(Ok(()));
        }
        // The planned time is that of candidates, and is compared with the time of what follows.
        let cells: Vec<&Cell> = plan.cells.iter().chain(follows).collect();
        let times = CellTimes::of_cells(plan, &cells)?.or_counted();
        let Some(planned) = PlannedTime::new(plan, &times, threads) else { return Ok(Ok(())) };
        Ok(planned.confirm(missing, follows, &times))
    }

    /// Tells the follower which further candidates are left out and why. `reported` has the texts that it
    /// was told in earlier stages, which are not repeated.
    fn report_left_out(
        &self,
        plan: &Plan,
        reported: &mut HashSet<String>,
        follower: &dyn Follower,
    ) {
        for group in plan.tuning.iter().flat_map(|tuning| &tuning.groups) {
            for reason in &group.refused {
                let name = &plan.experiment;
                let label = &group.label;
                let text = format!("{name}: {label}: a further candidate is left out: {reason}");
                if reported.insert(text.clone()) && !self.options.quiet {
                    follower.message(&text);
                }
            }
        }
    }

    /// Tells the follower, where this is a shard, that it lacks results of candidates from which further
    /// cells would follow.
    fn report_waiting(&self, plan: &Plan, follower: &dyn Follower) {
        let mut groups = plan.tuning.iter().flat_map(|tuning| &tuning.groups);
        let is_open = groups.any(|group| !group.is_complete());
        if is_open && self.options.shard.is_some() && !self.options.quiet {
            follower.message(&format!(
                "{}: what follows from the candidates is run when all are there: merge the shards and run again",
                plan.experiment
            ));
        }
    }
}
