//! The cells of a tuned experiment that follow from results: further candidates, and fresh runs of
//! what is selected.
//!
//! *Invariant*: they take no more time than was planned before the first cell, unless that is
//! confirmed (`tests/suite/tune.rs`).

use super::follower::Follower;
use super::session::{Session, Task, missing};
use crate::cli::confirm::PlannedTime;
use crate::cli::outcome::{Code, Failure};
use crate::cli::{memory, shard};
use crate::evidence::tuned;
use crate::store::Lock;
use exactfed_runner::plan::{CellId, Plan};
use exactfed_runner::runner::cost::expected_seconds;
use std::collections::HashSet;

impl Session<'_> {
    /// Runs the cells that follow from results: of an experiment with `[tune]` further candidates
    /// and fresh runs of what is selected, as far as results decide. `before` cells of the command
    /// were handled.
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
        let (planned, mut seconds) = (PlannedTime::new(plan, threads), 0.0);
        let mut handled: HashSet<CellId> = plan.cells.iter().map(|cell| cell.id).collect();
        let mut reported: HashSet<String> = HashSet::new();
        while !self.interrupt.is_requested() {
            let source = plan.source.clone();
            let next = crate::evidence::plan(plan.experiment.clone(), source)?;
            let mut next = self.pool.install(|| tuned::follow(next, &self.store))?;
            self.report_left_out(&next, &mut reported, follower);
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
            seconds += expected_seconds(next.cells.iter(), threads);
            let confirm =
                || if self.options.yes { Ok(()) } else { planned.confirm(&missing, seconds) };
            if let Err(why) = self.interrupt.immediately(confirm) {
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

    /// Reports the further candidates that are left out, each reason once.
    fn report_left_out(
        &self,
        plan: &Plan,
        reported: &mut HashSet<String>,
        follower: &dyn Follower,
    ) {
        for group in plan.tuning.iter().flat_map(|tuning| &tuning.groups) {
            for reason in &group.refused {
                let (name, label) = (&plan.experiment, &group.label);
                let text = format!("{name}: {label}: a further candidate is left out: {reason}");
                if reported.insert(text.clone()) && !self.options.quiet {
                    follower.message(&text);
                }
            }
        }
    }

    /// Reports that a shard has not all candidates from which the rest follows.
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
