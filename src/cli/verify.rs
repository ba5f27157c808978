//! `verify`: runs cells again and compares the bits, also those of cached theory.
//!
//! *Invariant*: results run no code unasked. Cells of algorithms whose code is not at hand are left
//! out and named ([`super::code`]).

mod caches;
mod findings;

pub use findings::Findings;

use super::code::{load_for_cells, load_for_problems, load_python, no_code};
use super::interrupt::Interrupt;
use super::outcome::{Code, Failure, print};
use super::prepare::pool;
use super::progress::Progress;
use crate::evidence::tuned;
use crate::store::{Results, Store, StoredCell};
use exactfed_core::words::count;
use exactfed_runner::files::{Error, sha256};
use exactfed_runner::panics::lock;
use exactfed_runner::plan::{Cell, CellId, Plan};
use exactfed_runner::runner::{self, Prepared, prepare};
use exactfed_runner::trace::{self, Trace, TraceDigest};
use findings::Chosen;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[derive(clap::Args)]
#[command(after_help = "\
Cached theory of these cells and frontiers is computed again too. Results run no Python code \
unasked: cells of an algorithm whose code is not at hand are left out and listed, and the exit code \
is then 4. --run-code names a file that defines it; nothing of it runs but what the hash in the ids \
of these cells covers (docs/EXTENDING.md).

Example: exactfed verify results --sample 50")]
pub struct Args {
    /// Folder of the results
    #[arg(default_value = "results")]
    results: PathBuf,
    #[command(flatten)]
    rerun: Rerun,
}

/// What is computed again, and how.
#[derive(clap::Args)]
pub struct Rerun {
    /// Number of randomly chosen cells and frontiers to compute again
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub sample: usize,
    /// Compute all cells and frontiers again
    #[arg(long, conflicts_with = "sample")]
    pub all: bool,
    /// File of Python code that defines algorithms of the results (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub run_code: Vec<PathBuf>,
    /// Seed of the random choice
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Number of threads; by default as many as the machine has
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Print differences only
    #[arg(long, short)]
    pub quiet: bool,
}

/// The command `verify`: runs stored cells again, and prints what differs. Differences set the code
/// [`Code::Refuted`]; cells that cannot be compared set [`Code::SomeFailed`].
pub fn run(args: &Args) -> Result<Code, Failure> {
    let interrupt = Interrupt::listen()?;
    let findings = verify_results(&args.results, None, &args.rerun, &interrupt)?;
    if interrupt.is_requested() {
        print(&findings.text)?;
        return Ok(Code::Interrupted);
    }
    let different = findings.different();
    let incomparable = findings.incomparable();
    if !args.rerun.quiet || different + incomparable > 0 {
        print(&findings.text)?;
    }
    Ok(match (different, incomparable) {
        (0, 0) => Code::Done,
        (0, _) => Code::SomeFailed,
        _ => Code::Refuted,
    })
}

/// Runs a sample of the stored cells of a results folder again, of one experiment or of all, computes the
/// cached theory of these cells and of a sample of the frontiers again, and compares both with what is
/// stored. Differences, damaged files and cells that cannot be run are findings and no errors. After an
/// interruption the findings so far are returned, without a summary.
///
/// # Errors
/// If the folder or the files of `rerun.run_code` cannot be read.
pub fn verify_results(
    results: &Path,
    experiment: Option<&str>,
    rerun: &Rerun,
    interrupt: &Interrupt,
) -> Result<Findings, Failure> {
    let store = Store::open_existing(results)?;
    let pool = pool(rerun.threads)?;
    let mut findings = Findings::default();
    // Manifests cannot be read without their problems.
    let left_out_of_problems = load_for_problems(&store, &rerun.run_code)?;
    let mut plans = interrupt.immediately(|| stored_plans(&store, experiment, &mut findings))?;
    if !rerun.run_code.is_empty() {
        // The plans say which code is lacking; with the code they are read once more.
        let left_out = load_for_cells(&plans, &rerun.run_code)?;
        findings = Findings::default();
        left_out_of_problems.iter().chain(&left_out).for_each(|line| findings.add(line));
        plans = interrupt.immediately(|| stored_plans(&store, experiment, &mut findings))?;
    }
    let chosen = chosen(&plans, rerun);
    for (plan, chosen) in plans.iter().map(|(plan, _)| plan).zip(&chosen) {
        if !chosen.is_empty() && !interrupt.is_requested() {
            let work = || run_again(plan, chosen, &store, rerun.quiet, interrupt, &mut findings);
            pool.install(work)?;
        }
    }
    if !interrupt.is_requested() {
        let planned: usize = plans.iter().map(|(plan, _)| plan.cells.len()).sum();
        findings.summarise(chosen.iter().map(|chosen| chosen.cells.len()).sum(), planned);
    }
    Ok(findings)
}

/// The plans of all experiments of a results folder, or of the one that is `wanted`, each with the sorted
/// ids of the cells that have results; the plans have the cells of all stages that results decide. Of Python code only
/// the algorithms of the package itself are loaded. An experiment whose files or manifest cannot be read is left out
/// and added to the findings; damaged records of looks, cells that were removed and code that cannot be loaded are
/// added, and leave nothing out.
///
/// # Errors
/// If the folder cannot be listed, or the results of candidates are damaged.
pub fn stored_plans(
    store: &Store,
    wanted: Option<&str>,
    findings: &mut Findings,
) -> Result<Vec<(Plan, Vec<CellId>)>, Failure> {
    let mut plans = Vec::new();
    let mut listing = store.listing()?;
    listing.retain(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
    for (name, experiment) in listing {
        let Ok(experiment) = experiment.map_err(|e| findings.add_wrong(e)) else { continue };
        let planned = store.planned_looks(&name).map(drop);
        let shown = store.shown_verdicts(&name).map(drop);
        for e in [planned, shown].into_iter().filter_map(Result::err) {
            findings.add_wrong(e);
        }
        if let Err(e) = load_python(&experiment.source) {
            findings.add(format_args!("{name}: {e}"));
        }
        match crate::evidence::plan(experiment.name.clone(), experiment.source()) {
            Ok(plan) => match store.ids(&name) {
                Ok(ids) => {
                    if let Err(e) = store.refuse_removed(&plan) {
                        findings.add_wrong(e);
                    }
                    plans.push((tuned::all_stages(plan, store)?, ids));
                }
                Err(e) => findings.add_wrong(format_args!("{name}: {e}")),
            },
            Err(e) => {
                findings.add_wrong(format_args!("{name}: its manifest is not valid any more: {e}"));
            }
        }
    }
    Ok(plans)
}

/// What is computed again of each plan, in the order of the plans: among the frontiers and the cells that
/// have results of all plans, the first `rerun.sample` in the order of hashes that depend on the seed,
/// so that nobody chooses them; or all.
fn chosen<'a>(plans: &'a [(Plan, Vec<CellId>)], rerun: &Rerun) -> Vec<Chosen<'a>> {
    enum Item<'a> {
        Cell(&'a Cell),
        Frontier(&'a str),
    }
    let mut order: Vec<(String, usize, Item<'a>)> = Vec::new();
    for (k, (plan, ids)) in plans.iter().enumerate() {
        let hash = |id: &str| sha256(format!("{} {} {id}", rerun.seed, plan.experiment).as_bytes());
        let stored = plan.cells.iter().filter(|cell| ids.binary_search(&cell.id).is_ok());
        order.extend(stored.map(|cell| (hash(&cell.id), k, Item::Cell(cell))));
        let frontiers = plan.manifest.frontier.iter().map(|frontier| frontier.id.as_str());
        order.extend(frontiers.map(|id| (hash(&format!("frontier {id}")), k, Item::Frontier(id))));
    }
    order.sort_by(|a, b| a.0.cmp(&b.0));
    let most = if rerun.all { order.len() } else { rerun.sample };
    let mut chosen: Vec<Chosen<'_>> = plans.iter().map(|_| Chosen::default()).collect();
    for (_, k, item) in order.into_iter().take(most) {
        match item {
            Item::Cell(cell) => chosen[k].cells.push(cell),
            Item::Frontier(id) => chosen[k].frontiers.push(id),
        }
    }
    chosen
}

/// Runs the chosen cells of a plan again, computes their cached theory and that of the chosen frontiers
/// again, and adds what differs from the stored numbers to the findings. Damaged cells, and cells that
/// cannot be run here, are added too. It is called in the pool on whose threads the cells are to be run. After an
/// interruption the process may end here, with the findings so far printed.
///
/// # Errors
/// If results cannot be read while cells are run.
fn run_again(
    plan: &Plan,
    chosen: &Chosen<'_>,
    store: &Store,
    quiet: bool,
    interrupt: &Interrupt,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let name = &plan.experiment;
    // The digests of the stored cells; the numbers themselves are read again where digests differ.
    let mut stored: HashMap<CellId, TraceDigest> = HashMap::new();
    let mut sound = Vec::new();
    for cell in &chosen.cells {
        match store.read(name, &cell.id) {
            Ok(Some(found)) => {
                stored.insert(cell.id, found.record.digest);
                sound.push(*cell);
            }
            Ok(None) => {}
            Err(e) => findings.add_wrong(format_args!("{name}: {e}")),
        }
    }
    let cells = interrupt.immediately(|| {
        let cells = buildable(plan, &sound, findings);
        caches::check(plan, &cells, chosen, store, interrupt, findings);
        with_code(plan, cells, findings)
    });
    let total = cells.iter().map(Prepared::work).sum();
    let progress = Progress::new(name, 0, cells.len(), total, quiet, interrupt.stop.clone());
    let differences = Mutex::new(Vec::new());
    let compare = |done: runner::Done<'_>| -> Result<(), Error> {
        let now = trace::digest(&done.traces);
        let other = stored.get(&done.cell.id).is_some_and(|before| *before != now);
        if other && let Some(before) = store.read(name, &done.cell.id)? {
            let found = difference(done.cell, &before, &done.traces, now);
            lock(&differences).push(found);
        }
        Ok(())
    };
    let before = &findings.text;
    // Prints what was found so far, if a round has no end in sight after an interruption.
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

/// Prepares these cells of a plan; those whose instances cannot be built are left out and added to the
/// findings. No cached optimum is used, since what is cached is compared with these instances.
fn buildable<'a>(plan: &Plan, cells: &[&'a Cell], findings: &mut Findings) -> Vec<Prepared<'a>> {
    if let Ok(all) = prepare(&plan.folder(), cells) {
        return all;
    }
    // Some cannot be built: each is tried by itself.
    let mut all = Vec::new();
    for cell in cells {
        match prepare(&plan.folder(), &[cell]) {
            Ok(one) => all.extend(one),
            Err(bad) => {
                let why = bad.first().map_or("", |bad| bad.message.as_str());
                let name = &plan.experiment;
                let id = &cell.id;
                let label = &cell.label;
                let line = format_args!("{name}: cell {id} ({label}) cannot be run: {why}");
                findings.add_wrong(line);
            }
        }
    }
    all
}

/// The cells of algorithms whose code is at hand, as that of built-in ones always is; the others are counted as left
/// out and added to the findings, a line for each kind of algorithm.
fn with_code<'a>(
    plan: &Plan,
    mut cells: Vec<Prepared<'a>>,
    findings: &mut Findings,
) -> Vec<Prepared<'a>> {
    let mut left_out: BTreeMap<&str, Vec<&Cell>> = BTreeMap::new();
    cells.retain(|one| {
        let lacking = one.cell.identity.algorithm.kind_without_code();
        lacking.iter().for_each(|kind| left_out.entry(kind).or_default().push(one.cell));
        lacking.is_none()
    });
    for (kind, cells) in left_out {
        findings.left_out += cells.len();
        let name = &plan.experiment;
        let number = count(cells.len(), "cell");
        let named = cells.iter().map(|cell| format!("{} ({})", cell.id, cell.label));
        findings.add(format_args!(
            "{name}: {number} left out: {}: {}",
            no_code(kind),
            named.collect::<Vec<_>>().join(", ")
        ));
    }
    cells
}

/// A sentence on a cell whose numbers, `now`, differ from the stored ones, `before`: the first place where its
/// squared errors differ, both digests (`digest` is the digest of `now`), and the program that stored it. Traces are
/// one per replicate, in the same order.
fn difference(cell: &Cell, before: &StoredCell, now: &[Trace], digest: TraceDigest) -> String {
    let by = &before.record.provenance;
    let place = before.traces.iter().zip(now).enumerate().find_map(|(r, (a, b))| {
        let i = a.sq_error.iter().zip(&b.sq_error).position(|(x, y)| x.to_bits() != y.to_bits())?;
        let x = a.sq_error[i];
        let y = b.sq_error[i];
        Some(format!("replicate {r}, round {}: sq_error {x:e} stored, {y:e} now", a.round[i]))
    });
    let place = place.unwrap_or_else(|| "in other columns than sq_error".into());
    format!(
        "cell {} ({}) has digest {}, now {digest}; {place}; written by exactfed {}, commit {}",
        cell.id, cell.label, before.record.digest, by.version, by.commit
    )
}
