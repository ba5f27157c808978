//! `verify`: runs cells again and compares the bits.

use super::interrupt::Interrupt;
use super::progress::Progress;
use super::{Code, Failure, pool, print};
use crate::store::{Store, StoredCell};
use driftbench_runner::files::Error;
use driftbench_runner::plan::{Cell, Plan, hex};
use driftbench_runner::runner::{self, Prepared, prepare};
use driftbench_runner::trace::{self, Trace};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(clap::Args)]
#[command(after_help = "Example: driftbench verify results --sample 50")]
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
    let store = Store::open_existing(&args.results)?;
    let pool = pool(args.threads)?;
    let mut plans: Vec<(Plan, Vec<String>)> = Vec::new();
    let mut told = Findings::default();
    for (_, experiment) in store.listing()? {
        let experiment = match experiment {
            Ok(experiment) => experiment,
            Err(e) => {
                told.wrong += 1;
                let _ = writeln!(told.text, "{e}");
                continue;
            }
        };
        match Plan::new(experiment.name.clone(), experiment.source()) {
            Ok(plan) => match store.ids(&plan.experiment) {
                Ok(ids) => plans.push((plan, ids)),
                Err(e) => {
                    told.wrong += 1;
                    let _ = writeln!(told.text, "{}: {e}", experiment.name);
                }
            },
            Err(e) => {
                told.wrong += 1;
                let _ = writeln!(told.text, "{}: its manifest is none now: {e}", experiment.name);
            }
        }
    }
    let chosen = chosen(&plans, args);
    let interrupt = Interrupt::listen()?;
    for (plan, cells) in plans.iter().map(|(plan, _)| plan).zip(&chosen) {
        if !cells.is_empty() && !interrupt.is_requested() {
            let work = || again(plan, cells, &store, args, &interrupt, &mut told);
            pool.install(work)?;
        }
    }
    if interrupt.is_requested() {
        print(&told.text)?;
        return Ok(Code::Interrupted);
    }
    let planned: usize = plans.iter().map(|(plan, _)| plan.cells.len()).sum();
    let (equal, other, wrong) = (told.equal, told.other, told.wrong);
    let _ = writeln!(
        told.text,
        "{} of {planned} cells run again: {equal} bit-identical, {other} different, {wrong} not comparable",
        chosen.iter().map(Vec::len).sum::<usize>()
    );
    if !args.quiet || other + wrong > 0 {
        print(&told.text)?;
    }
    Ok(match (other, wrong) {
        (0, 0) => Code::Done,
        (0, _) => Code::SomeFailed,
        _ => Code::Refuted,
    })
}

/// What was found.
#[derive(Default)]
struct Findings {
    text: String,
    equal: usize,
    other: usize,
    wrong: usize,
}

/// The cells that are run again, of each plan those that have results: by the order of
/// hashes, which no one chooses.
fn chosen<'a>(plans: &'a [(Plan, Vec<String>)], args: &Args) -> Vec<Vec<&'a Cell>> {
    let mut lots: Vec<(String, usize, &Cell)> = Vec::new();
    for (k, (plan, ids)) in plans.iter().enumerate() {
        for cell in &plan.cells {
            if ids.binary_search(&cell.id).is_ok() {
                let lot = format!("{} {} {}", args.seed, plan.experiment, cell.id);
                lots.push((hex(&Sha256::digest(lot)), k, cell));
            }
        }
    }
    lots.sort_by(|a, b| a.0.cmp(&b.0));
    let most = if args.all { lots.len() } else { args.sample };
    let mut chosen: Vec<Vec<&Cell>> = plans.iter().map(|_| Vec::new()).collect();
    for (_, k, cell) in lots.into_iter().take(most) {
        chosen[k].push(cell);
    }
    chosen
}

/// Runs these cells again and compares.
fn again(
    plan: &Plan,
    cells: &[&Cell],
    store: &Store,
    args: &Args,
    interrupt: &Interrupt,
    told: &mut Findings,
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
            Err(e) => {
                told.wrong += 1;
                let _ = writeln!(told.text, "{name}: {e}");
            }
        }
    }
    let cells = interrupt.immediately(|| buildable(plan, &sound, told));
    let total = cells.iter().map(Prepared::client_steps).sum();
    let progress = Progress::new(name, (0, cells.len()), total, args.quiet, interrupt.flag());
    let differences = Mutex::new(Vec::new());
    let keep = |done: runner::Done<'_>| -> Result<(), Error> {
        let now = trace::digest(&done.traces);
        let other = stored.get(&*done.cell.id).is_some_and(|before| *before != now);
        if other && let Some(before) = store.read(name, &done.cell.id)? {
            let found = difference(done.cell, &before, &done.traces, &now);
            lock(&differences).push(found);
        }
        Ok(())
    };
    let before = &told.text;
    let last = || {
        let mut found = lock(&differences);
        found.sort();
        let _ = print(&found.iter().fold(before.clone(), |all, f| format!("{all}{name}: {f}\n")));
    };
    let run = || runner::run(&cells, rayon::current_num_threads(), &progress, keep);
    let failed = interrupt.in_time(last, run)?;
    progress.finish();
    let mut differences = differences.into_inner().unwrap_or_else(PoisonError::into_inner);
    differences.sort();
    for found in &differences {
        let _ = writeln!(told.text, "{name}: {found}");
    }
    for failed in &failed {
        let _ = writeln!(told.text, "{name}: cell {} failed: {}", failed.cell, failed.reason);
    }
    told.other += differences.len();
    told.wrong += failed.len();
    told.equal += cells.len() - differences.len() - failed.len();
    Ok(())
}

/// The cells whose instances can be built; the others are counted and named.
fn buildable<'a>(plan: &Plan, cells: &[&'a Cell], told: &mut Findings) -> Vec<Prepared<'a>> {
    if let Ok(all) = prepare(&plan.folder(), cells) {
        return all;
    }
    let mut all = Vec::new();
    for cell in cells {
        match prepare(&plan.folder(), &[cell]) {
            Ok(one) => all.extend(one),
            Err(bad) => {
                told.wrong += 1;
                let why = bad.first().map_or("", |bad| bad.message.as_str());
                let (name, id, label) = (&plan.experiment, &cell.id, &cell.label);
                let _ = writeln!(told.text, "{name}: cell {id} ({label}) cannot be run: {why}");
            }
        }
    }
    all
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a cell's numbers first differ from those that are stored.
fn difference(cell: &Cell, before: &StoredCell, now: &[Trace], digest: &str) -> String {
    let by = &before.record.provenance;
    let place = before.traces.iter().zip(now).enumerate().find_map(|(r, (a, b))| {
        let i = a.sq_error.iter().zip(&b.sq_error).position(|(x, y)| x.to_bits() != y.to_bits())?;
        let (x, y) = (a.sq_error[i], b.sq_error[i]);
        Some(format!("replicate {r}, round {}: sq_error {x:e} stored, {y:e} now", a.round[i]))
    });
    let place = place.unwrap_or_else(|| "in columns beside sq_error".into());
    format!(
        "cell {} ({}) has digest {}, now {digest}; {place}; written by driftbench {}, commit {}",
        cell.id, cell.label, before.record.digest, by.version, by.commit
    )
}
