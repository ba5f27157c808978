//! `verify`: runs cells again and compares the bits.

use super::interrupt::Interrupt;
use super::progress::Progress;
use super::{Code, Failure, load_python, pool, print};
use crate::analysis::tuned;
use crate::store::{Store, StoredCell};
use exactfed_runner::files::{Error, sha256};
use exactfed_runner::panics::lock;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::{self, Prepared, prepare};
use exactfed_runner::trace::{self, Trace};
use std::collections::HashMap;
use std::fmt::{Display, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[derive(clap::Args)]
#[command(after_help = "Example: exactfed verify results --sample 50")]
pub struct Args {
    /// Folder of the results
    #[arg(default_value = "results")]
    results: PathBuf,
    /// Number of randomly chosen cells to run again
    #[arg(long, value_name = "N", default_value_t = 20)]
    sample: usize,
    /// Run all cells again
    #[arg(long, conflicts_with = "sample")]
    all: bool,
    /// Seed of the random choice
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Number of threads; by default as many as the machine has
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print differences only
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let rerun = Rerun {
        sample: (!args.all).then_some(args.sample),
        seed: args.seed,
        threads: args.threads,
        quiet: args.quiet,
    };
    let interrupt = Interrupt::listen()?;
    let findings = verify_results(&args.results, None, &rerun, &interrupt)?;
    if interrupt.is_requested() {
        print(&findings.text)?;
        return Ok(Code::Interrupted);
    }
    let Findings { other, wrong, .. } = findings;
    if !args.quiet || other + wrong > 0 {
        print(&findings.text)?;
    }
    Ok(match (other, wrong) {
        (0, 0) => Code::Done,
        (0, _) => Code::SomeFailed,
        _ => Code::Refuted,
    })
}

/// Which cells are run again, and how.
pub struct Rerun {
    /// The number of randomly chosen cells; all if there is none.
    pub sample: Option<usize>,
    /// The seed of the choice.
    pub seed: u64,
    /// The number of threads.
    pub threads: Option<usize>,
    /// Whether no progress is printed.
    pub quiet: bool,
}

/// Runs cells of a results folder again, of one experiment or of all, and compares their numbers
/// with the stored ones.
///
/// # Errors
/// If the folder cannot be read.
pub fn verify_results(
    results: &Path,
    experiment: Option<&str>,
    rerun: &Rerun,
    interrupt: &Interrupt,
) -> Result<Findings, Failure> {
    let store = Store::open_existing(results)?;
    let pool = pool(rerun.threads)?;
    let mut findings = Findings::default();
    let plans = interrupt.immediately(|| stored_plans(&store, experiment, &mut findings))?;
    let chosen = chosen(&plans, rerun);
    for (plan, cells) in plans.iter().map(|(plan, _)| plan).zip(&chosen) {
        if !cells.is_empty() && !interrupt.is_requested() {
            let work = || run_again(plan, cells, &store, rerun.quiet, interrupt, &mut findings);
            pool.install(work)?;
        }
    }
    if !interrupt.is_requested() {
        let planned: usize = plans.iter().map(|(plan, _)| plan.cells.len()).sum();
        let Findings { equal, other, wrong, .. } = findings;
        findings.add(format_args!(
            "{} of {planned} cells run again: {equal} bit-identical, {other} different, {wrong} not comparable",
            chosen.iter().map(Vec::len).sum::<usize>()
        ));
    }
    Ok(findings)
}

/// The findings so far: lines for the user, and numbers of cells.
#[derive(Default)]
pub struct Findings {
    /// A line for each cell that is not as it was, and a summary.
    pub text: String,
    /// Cells that are bit-identical.
    pub equal: usize,
    /// Cells with other numbers.
    pub other: usize,
    /// Cells and experiments that cannot be compared.
    pub wrong: usize,
}

impl Findings {
    /// Adds a line.
    fn add(&mut self, line: impl Display) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Adds a line on something that cannot be compared.
    fn add_wrong(&mut self, line: impl Display) {
        self.wrong += 1;
        self.add(line);
    }
}

/// The plans of all experiments, with the ids of the cells that have results.
fn stored_plans(
    store: &Store,
    wanted: Option<&str>,
    findings: &mut Findings,
) -> Result<Vec<(Plan, Vec<String>)>, Failure> {
    let mut plans = Vec::new();
    let mut listing = store.listing()?;
    listing.retain(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
    for (name, experiment) in listing {
        let experiment = match experiment {
            Ok(experiment) => experiment,
            Err(e) => {
                findings.add_wrong(e);
                continue;
            }
        };
        let planned = store.planned_looks(&name).map(drop);
        let shown = store.shown_verdicts(&name).map(drop);
        for e in [planned, shown].into_iter().filter_map(Result::err) {
            findings.add_wrong(e);
        }
        if let Err(e) = load_python(&experiment.source) {
            findings.add(format_args!("{name}: {e}"));
        }
        match Plan::new(experiment.name.clone(), experiment.source()) {
            Ok(plan) => match store.ids(&name) {
                Ok(ids) => plans.push((tuned::all_stages(plan, store)?, ids)),
                Err(e) => findings.add_wrong(format_args!("{name}: {e}")),
            },
            Err(e) => {
                findings.add_wrong(format_args!("{name}: its manifest is not valid any more: {e}"));
            }
        }
    }
    Ok(plans)
}

/// The cells that are run again, of each plan among those that have results: the first in the
/// order of hashes, which nobody chooses.
fn chosen<'a>(plans: &'a [(Plan, Vec<String>)], rerun: &Rerun) -> Vec<Vec<&'a Cell>> {
    let mut order: Vec<(String, usize, &Cell)> = Vec::new();
    for (k, (plan, ids)) in plans.iter().enumerate() {
        for cell in &plan.cells {
            if ids.binary_search(&cell.id).is_ok() {
                let name = format!("{} {} {}", rerun.seed, plan.experiment, cell.id);
                order.push((sha256(name.as_bytes()), k, cell));
            }
        }
    }
    order.sort_by(|a, b| a.0.cmp(&b.0));
    let most = rerun.sample.unwrap_or(order.len());
    let mut chosen: Vec<Vec<&Cell>> = plans.iter().map(|_| Vec::new()).collect();
    for (_, k, cell) in order.into_iter().take(most) {
        chosen[k].push(cell);
    }
    chosen
}

/// Runs these cells again and compares their numbers with the stored ones.
fn run_again(
    plan: &Plan,
    cells: &[&Cell],
    store: &Store,
    quiet: bool,
    interrupt: &Interrupt,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let name = &plan.experiment;
    let mut stored: HashMap<&str, String> = HashMap::new();
    let mut sound = Vec::new();
    for cell in cells {
        match store.read(name, &cell.id) {
            Ok(Some(found)) => {
                stored.insert(&cell.id, found.record.digest);
                sound.push(*cell);
            }
            Ok(None) => {}
            Err(e) => findings.add_wrong(format_args!("{name}: {e}")),
        }
    }
    let cells = interrupt.immediately(|| buildable(plan, &sound, findings));
    let total = cells.iter().map(Prepared::client_steps).sum();
    let progress = Progress::new(name, (0, cells.len()), total, quiet, interrupt.stop.clone());
    let differences = Mutex::new(Vec::new());
    let compare = |done: runner::Done<'_>| -> Result<(), Error> {
        let now = trace::digest(&done.traces);
        let other = stored.get(&*done.cell.id).is_some_and(|before| *before != now);
        if other && let Some(before) = store.read(name, &done.cell.id)? {
            let found = difference(done.cell, &before, &done.traces, &now);
            lock(&differences).push(found);
        }
        Ok(())
    };
    let before = &findings.text;
    let last = || {
        let mut found = lock(&differences);
        found.sort();
        let _ = print(&found.iter().fold(before.clone(), |all, f| format!("{all}{name}: {f}\n")));
    };
    let run = || runner::run(&cells, rayon::current_num_threads(), &progress, compare);
    let failed = interrupt.in_time(last, run)?;
    progress.finish();
    let mut differences = differences.into_inner().unwrap_or_else(PoisonError::into_inner);
    differences.sort();
    for found in &differences {
        findings.add(format_args!("{name}: {found}"));
    }
    for failed in &failed {
        findings
            .add_wrong(format_args!("{name}: cell {} failed: {}", failed.cell.id, failed.reason));
    }
    findings.other += differences.len();
    findings.equal += cells.len() - differences.len() - failed.len();
    Ok(())
}

/// The cells whose instances can be built; the others are counted and named.
fn buildable<'a>(plan: &Plan, cells: &[&'a Cell], findings: &mut Findings) -> Vec<Prepared<'a>> {
    if let Ok(all) = prepare(&plan.folder(), cells) {
        return all;
    }
    let mut all = Vec::new();
    for cell in cells {
        match prepare(&plan.folder(), &[cell]) {
            Ok(one) => all.extend(one),
            Err(bad) => {
                let why = bad.first().map_or("", |bad| bad.message.as_str());
                let (name, id, label) = (&plan.experiment, &cell.id, &cell.label);
                let line = format_args!("{name}: cell {id} ({label}) cannot be run: {why}");
                findings.add_wrong(line);
            }
        }
    }
    all
}

/// The first place where a cell's numbers differ from the stored ones.
fn difference(cell: &Cell, before: &StoredCell, now: &[Trace], digest: &str) -> String {
    let by = &before.record.provenance;
    let place = before.traces.iter().zip(now).enumerate().find_map(|(r, (a, b))| {
        let i = a.sq_error.iter().zip(&b.sq_error).position(|(x, y)| x.to_bits() != y.to_bits())?;
        let (x, y) = (a.sq_error[i], b.sq_error[i]);
        Some(format!("replicate {r}, round {}: sq_error {x:e} stored, {y:e} now", a.round[i]))
    });
    let place = place.unwrap_or_else(|| "in other columns than sq_error".into());
    format!(
        "cell {} ({}) has digest {}, now {digest}; {place}; written by exactfed {}, commit {}",
        cell.id, cell.label, before.record.digest, by.version, by.commit
    )
}
