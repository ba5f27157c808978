//! `run --until-decided`: adds replicates until every claim is supported or refuted.
//!
//! *Invariant*: the looks at the verdicts are planned and recorded before the first of them, and
//! which are taken follows from the results: a command that was interrupted and is called again
//! takes the same looks, with the same verdicts and the same bits.

use super::interrupt::Interrupt;
use super::memory;
use super::outcome::{Code, Failure};
use super::prepare::{check_instances_of_replicates, pool};
use super::reuse::EarlierRuns;
use super::run::{Args, Follower, PreparedRun, RunOptions};
use crate::evidence::claims::JudgedClaim;
use crate::evidence::unplanned::{are_fresh, seeds_of};
use crate::evidence::{judged_once, planned_looks};
use crate::stats::looks::{Look, Looks};
use crate::store::{PlannedLooks, Results, Status, Store};
use exactfed_core::rng::MAX_REPLICATES;
use exactfed_core::words::count;
use exactfed_runner::files;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::Silent;
use rayon::ThreadPool;
use rayon::prelude::*;

/// The planned looks at the verdicts of an experiment, some of whose claims may be open.
struct OpenLooks {
    /// The first and the largest number of replicates, from which all looks follow.
    planned: Looks,
    /// The planned looks, each with its number of replicates and the level at which claims are judged.
    all: Vec<Look>,
    /// The place in `all` of the look that is taken next.
    next: usize,
    /// For each claim, whether a look has supported or refuted it.
    decided: Vec<bool>,
    /// Whether the looks are recorded in the results folder.
    is_recorded: bool,
}

/// The context in which the claims of all experiments of a command are judged.
struct Judging<'a> {
    options: &'a RunOptions,
    pool: ThreadPool,
    follower: &'a dyn Follower,
}

impl Judging<'_> {
    /// Tells the follower a message, unless `--quiet` is set.
    fn say(&self, text: &str) {
        if !self.options.quiet {
            self.follower.message(text);
        }
    }
}

/// The command `run --until-decided`.
pub fn run(args: &Args) -> Result<Code, Failure> {
    decide(args.manifests.plans()?, &args.options, args.max_replicates, None, &Silent)
}

/// Runs the missing cells of these plans, judges their claims, and adds replicates while claims are open, at
/// the looks that are planned beforehand: up to `most` replicates, by default
/// [`Looks::GROWTH`] times the manifest's number. All plans take their first look, then those with open
/// claims their second, and so on. Signals are handled by `interrupt` or, if there is none, from the first
/// preparation on.
///
/// # Errors
/// If more replicates cannot decide the claims of a plan, other looks were planned before, or cells cannot
/// be run.
pub fn decide(
    plans: Vec<Plan>,
    options: &RunOptions,
    most: Option<u64>,
    mut interrupt: Option<Interrupt>,
    follower: &dyn Follower,
) -> Result<Code, Failure> {
    let store = Store::open(&options.out)?;
    let by = Judging { options, pool: pool(options.threads)?, follower };
    let looks =
        plans.into_iter().map(|plan| by.pool.install(|| OpenLooks::new(plan, &store, most)));
    let (mut plans, mut open): (Vec<_>, Vec<_>) = Failure::join(looks)?.into_iter().unzip();
    let mut code = Code::Done;
    while !plans.is_empty() {
        for (plan, looks) in plans.iter_mut().zip(&mut open) {
            looks.skip_stored(plan, &by)?;
        }
        // The replicates of the look before, whose runs are the first of this one; no entry at the first look.
        let earlier = plans.iter().zip(&open).filter_map(|(plan, looks)| {
            Some((plan.experiment.clone(), looks.all[looks.next.checked_sub(1)?].replicates))
        });
        let earlier = EarlierRuns::with_replicates(earlier.collect());
        let mut prepared = PreparedRun::new(&plans, options, interrupt)?.reusing(earlier);
        // The cells can be run: only now are the looks recorded, and before any verdict is seen.
        store.create()?;
        for (plan, looks) in plans.iter().zip(&mut open) {
            looks.record(plan, &store, &by)?;
        }
        code = code.and(prepared.execute(follower)?);
        if code == Code::Interrupted {
            return Ok(code);
        }
        let listening = prepared.into_interrupt();
        // Judging may trace the rounds of algorithms in Python.
        by.pool.broadcast(|_| listening.cover_thread());
        let mut still_open = Vec::new();
        for (plan, mut looks) in plans.into_iter().zip(open) {
            if listening.immediately(|| looks.take(&plan, &by))? {
                still_open.push((looks.advance(&plan)?, looks));
            }
        }
        (plans, open) = still_open.into_iter().unzip();
        interrupt = Some(listening);
    }
    Ok(code)
}

/// Why more replicates of a plan's cells cannot decide its claims, whatever the results: the end of a
/// sentence about the manifest. `None` if they can.
fn unsuitable(plan: &Plan) -> Option<&'static str> {
    if plan.claim_tables.is_empty() {
        return Some("has no claims that could be decided");
    }
    if plan.tuning.is_some() {
        return Some(
            "has [tune], whose fresh runs follow from the candidates' results: more replicates might select others",
        );
    }
    let several = plan.manifest.instances.is_some_and(|instances| instances > 1);
    several.then_some(
        "has several instances, which are the sample: more replicates on each add none to it",
    )
}

impl OpenLooks {
    /// Plans the looks at the claims of a plan: the looks that its results record where these were taken or
    /// begun, or new ones up to `most` replicates. Returns the plan with the replicates of the first look,
    /// and the looks.
    ///
    /// # Errors
    /// If the manifest is not suitable, `most` contradicts it or the recorded looks, looks of other numbers of
    /// replicates are recorded for the same cells, or an instance of the last look cannot be built.
    fn new(plan: Plan, store: &Store, most: Option<u64>) -> Result<(Plan, Self), Failure> {
        let file = &plan.source.name;
        let first = plan.manifest.replicates;
        let refuse = |why: String| Failure::input(format!("error: {file}: {why}"));
        if let Some(why) = unsuitable(&plan) {
            return Err(refuse(format!("--until-decided: the manifest {why}")));
        }
        if most.is_some_and(|most| most > MAX_REPLICATES) {
            return Err(refuse(format!("--max-replicates must be at most {MAX_REPLICATES}")));
        }
        // These are looks of which one is at the manifest's number of replicates.
        let recorded = planned_looks(&plan, store)?;
        let planned = match (recorded, most) {
            (Some(Looks { most: planned, .. }), Some(most)) if most != planned => {
                return Err(refuse(format!(
                    "--max-replicates {most}: looks up to {planned} replicates were planned before verdicts were seen, and a plan that follows verdicts has no level; go on without the option, or run with other noise (--set noise-seed=…)"
                )));
            }
            (Some(planned), _) => planned,
            (None, Some(most)) if most < first => {
                return Err(refuse(format!(
                    "--max-replicates {most} is below the manifest's replicates, {first}"
                )));
            }
            (None, most) => {
                refuse_other_looks(&plan, store).map_err(|error| refuse(error.to_string()))?;
                let by_default = first.saturating_mul(Looks::GROWTH).min(MAX_REPLICATES);
                Looks { first, most: most.unwrap_or(by_default) }
            }
        };
        // What is wrong at the last look is reported before the first.
        check_instances_of_replicates(&plan.with_replicates(planned.most)?)?;
        let plan = if planned.first == first { plan } else { plan.with_replicates(planned.first)? };
        let decided = vec![false; plan.claim_tables.len()];
        let all = planned.all();
        let is_recorded = recorded.is_some();
        Ok((plan, Self { planned, all, next: 0, decided, is_recorded }))
    }

    /// Records the looks in the results folder, unless they are recorded, before anything is judged: a level
    /// holds only for looks that no verdict has influenced. Says so if a page has shown verdicts before.
    fn record(&mut self, plan: &Plan, store: &Store, by: &Judging<'_>) -> Result<(), Failure> {
        if self.is_recorded {
            return Ok(());
        }
        let name = &plan.experiment;
        let shown = store.shown_verdicts(name)?;
        // Of these cells, at whichever number of replicates.
        let mut seen = shown.iter().filter(|s| plan.has_cells(s.replicates, &s.cells));
        if let Some(seen) = seen.next() {
            by.say(&format!(
                "{name}: a page showed verdicts at {} replicates before these looks were planned, and later pages will say so; with other noise (--set noise-seed=…) the looks are the first",
                seen.replicates
            ));
        }
        let planned = PlannedLooks {
            cells: plan.cells_hash(),
            looks: self.planned,
            seeds: Some(seeds_of(plan)),
            // Whether these looks are the first: no cell with these settings and seeds is stored, at any number of
            // replicates, and no page showed verdicts on them.
            fresh: are_fresh(plan, store)?,
        };
        store.plan_looks(name, planned)?;
        self.is_recorded = true;
        Ok(())
    }

    /// Takes the recorded looks whose cells have all their results already, as after an interruption: judges and
    /// reports the claims without a run, and replaces `plan` by the plan of the first look that is not skipped. The
    /// last look that is needed is not skipped even if its results are there: only a run stores its plan as the plan of
    /// the experiment. With `--force` no look is skipped.
    fn skip_stored(&mut self, plan: &mut Plan, by: &Judging<'_>) -> Result<(), Failure> {
        while self.is_recorded && !by.options.force && self.next + 1 < self.all.len() {
            let store = Store::open(&by.options.out)?;
            let is_done = |cell: &Cell| store.status(&plan.experiment, &cell.id) == Status::Done;
            if !by.pool.install(|| plan.cells.par_iter().all(is_done)) {
                break;
            }
            let open = self.judge(plan, by)?;
            if open == 0 {
                break;
            }
            self.report(plan, open, by);
            *plan = self.advance(plan)?;
        }
        Ok(())
    }

    /// Judges and reports the claims at the look that is next, whose cells were run. Returns whether another
    /// look follows.
    fn take(&mut self, plan: &Plan, by: &Judging<'_>) -> Result<bool, Failure> {
        let open = self.judge(plan, by)?;
        self.report(plan, open, by);
        Ok(open > 0 && self.next + 1 < self.all.len())
    }

    /// Judges the claims at the look that is next, notes which are decided, and returns how many are open:
    /// no look has decided them, and more replicates may. `plan` has the replicates of this look, and its cells were
    /// run; some may have failed. A claim that an earlier look has decided stays decided.
    fn judge(&mut self, plan: &Plan, by: &Judging<'_>) -> Result<usize, Failure> {
        // A new store: an open one remembers the packs that it has seen.
        let store = Store::open_existing(&by.options.out)?;
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        memory::fits_instances(plan, &cells)?;
        let level = self.all[self.next].level;
        // The first plan gives the claims their texts, and the second one says which cells are read.
        let claims = by.pool.install(|| judged_once(plan, plan, &store, level))?;
        let is_open = |(claim, decided): (&JudgedClaim<'_>, &mut bool)| {
            *decided |= claim.is_decided();
            !*decided && claim.is_open()
        };
        Ok(claims.iter().zip(&mut self.decided).map(is_open).filter(|open| *open).count())
    }

    /// Goes on to the look after this one, which there must be, and returns the plan with its number of replicates.
    fn advance(&mut self, plan: &Plan) -> Result<Plan, Failure> {
        self.next += 1;
        Ok(plan.with_replicates(self.all[self.next].replicates)?)
    }

    /// Tells the follower, unless `--quiet` is set, how many claims are open at the look that was judged last, and what
    /// comes next.
    fn report(&self, plan: &Plan, open: usize, by: &Judging<'_>) {
        let name = &plan.experiment;
        let looks = self.all.len();
        let look = self.all[self.next];
        let at = format!(
            "{name}: look {} of at most {looks}, at {}",
            self.next + 1,
            count(look.replicates as usize, "replicate")
        );
        let claims = count(self.decided.len(), "claim");
        let are = if open == 1 { "is" } else { "are" };
        let next = self.all.get(self.next + 1).map(|next| next.replicates);
        let text = match (open, next) {
            (0, _) => format!("{at}: {}", outcome(&self.decided)),
            (_, Some(next)) => {
                let more = count((next - look.replicates) as usize, "replicate");
                format!("{at}: {open} of {claims} {are} open; {more} more of each cell come next")
            }
            (_, None) => format!("{at}: {open} of {claims} {are} open, and no more are planned"),
        };
        by.say(&text);
    }
}

/// The words on the claims where none is open any more: `decided` says of each whether a look has supported or refuted
/// it, and more replicates can decide none of the others.
fn outcome(decided: &[bool]) -> String {
    let undecided = decided.iter().filter(|decided| !**decided).count();
    if undecided == 0 {
        return "every claim is decided".to_owned();
    }
    let others = if undecided < decided.len() { "; the others are decided" } else { "" };
    let claims = count(decided.len(), "claim");
    format!("{undecided} of {claims} cannot be decided by more replicates{others}")
}

/// Why looks are not taken.
#[derive(Debug, thiserror::Error)]
enum LooksError {
    /// The record of earlier looks cannot be read.
    #[error(transparent)]
    Unread(#[from] files::Error),
    /// Other looks at the same cells were planned.
    #[error(
        "--until-decided: looks from {} to {} replicates were planned before verdicts were seen, and none of them is at {replicates}: go on with --replicates {}, or run with other noise (--set noise-seed=…)",
        planned.first, planned.most, planned.first
    )]
    OthersPlanned { planned: Looks, replicates: u64 },
}

/// Refuses new looks at cells for which looks are recorded. The caller has found that the plan's number of
/// replicates is at none of the recorded looks; else the command would go on with these.
fn refuse_other_looks(plan: &Plan, store: &Store) -> Result<(), LooksError> {
    let recorded = store.planned_looks(&plan.experiment)?;
    let of_these_cells = |p: &&PlannedLooks| plan.has_cells(p.looks.first, &p.cells);
    match recorded.iter().find(of_these_cells).map(|planned| planned.looks) {
        None => Ok(()),
        Some(planned) => {
            Err(LooksError::OthersPlanned { planned, replicates: plan.manifest.replicates })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_claims_are_decided_only_where_there_are_others() {
        assert_eq!(outcome(&[true, true]), "every claim is decided");
        let one_of_two =
            "1 of 2 claims cannot be decided by more replicates; the others are decided";
        assert_eq!(outcome(&[true, false]), one_of_two);
        assert_eq!(outcome(&[false]), "1 of 1 claim cannot be decided by more replicates");
        let none = "2 of 2 claims cannot be decided by more replicates";
        assert_eq!(outcome(&[false, false]), none);
    }
}
