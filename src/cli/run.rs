//! `run`: what is missing of some experiments.

use super::{Code, Failure, Manifests, pool, prepared};
use crate::plan::{Cell, Plan};
use crate::runner::progress::Progress;
use crate::runner::{self, Prepared};
use crate::store::provenance::Provenance;
use crate::store::{Status, Store};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Example: driftbench run experiments/scafflsa/fig1-high.toml --threads 2")]
pub struct Args {
    #[command(flatten)]
    manifests: Manifests,
    #[command(flatten)]
    how: How,
}

/// How cells are run.
#[derive(clap::Args)]
pub struct How {
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Threads; by default as many as the machine has
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Run share I of N of the cells
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<(u64, u64)>,
    /// Run cells again that are done
    #[arg(long)]
    pub force: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err("a share is I/N with I from 1 to N, such as 2/8".into()),
    }
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let plans = args.manifests.plans()?;
    execute(&plans, &args.how)
}

/// Runs what is missing of these plans.
pub fn execute(plans: &[Plan], how: &How) -> Result<Code, Failure> {
    let store = Store::open(&how.out)?;
    let pool = pool(how.threads)?;
    // Every instance is built before anything is written, so that bad input
    // costs nothing.
    let all: Vec<(&Plan, Vec<Prepared<'_>>)> = plans
        .iter()
        .map(|plan| pool.install(|| Ok((plan, prepared(plan, &share(plan, how.shard))?))))
        .collect::<Result<_, Failure>>()?;
    store.create()?;
    let provenance = Provenance::now();
    let mut code = Code::Done;
    for (plan, cells) in all {
        if experiment(&store, plan, cells, how, &pool, &provenance)? == Code::SomeFailed {
            code = Code::SomeFailed;
        }
    }
    Ok(code)
}

/// The cells of a shard: by id, so that every share is the same on any machine.
fn share(plan: &Plan, shard: Option<(u64, u64)>) -> Vec<&Cell> {
    let Some((i, n)) = shard else { return plan.cells.iter().collect() };
    let mut cells: Vec<&Cell> = plan.cells.iter().collect();
    cells.sort_by(|a, b| a.id.cmp(&b.id));
    cells.into_iter().zip((0..n).cycle()).filter(|(_, k)| k + 1 == i).map(|(c, _)| c).collect()
}

fn experiment(
    store: &Store,
    plan: &Plan,
    cells: Vec<Prepared<'_>>,
    how: &How,
    pool: &rayon::ThreadPool,
    provenance: &Provenance,
) -> Result<Code, Failure> {
    store.keep_experiment(plan)?;
    let name = &plan.experiment;
    let clients: HashMap<&str, usize> =
        cells.iter().map(|p| (p.cell.id.as_str(), p.clients())).collect();
    let known: HashSet<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    let others = store.others(name, &known);
    if others > 0 && !how.quiet {
        eprintln!(
            "{name}: {others} cells of other settings stay in {}; reports leave them out",
            how.out.join(name).display()
        );
    }
    let mut missing = Vec::new();
    for cell in cells {
        match store.status(name, &cell.cell.id) {
            Status::Done if !how.force => {
                store.relabel(plan, cell.cell, cell.clients())?;
                continue;
            }
            Status::Damaged(reason) => {
                let aside = store.set_aside(name, &cell.cell.id)?;
                eprintln!("{name}: {reason}; moved to {} and run again", aside.display());
            }
            Status::Done | Status::Missing => {}
        }
        missing.push(cell);
    }
    if missing.is_empty() {
        if !how.quiet {
            eprintln!("{name}: all {} cells are done", clients.len());
        }
        return Ok(Code::Done);
    }
    let total = missing.iter().map(Prepared::client_steps).sum();
    let progress = Progress::new(name, missing.len(), total, how.quiet);
    let keep = |done: runner::Done<'_>| {
        let n = clients[done.cell.id.as_str()];
        store.write(plan, done.cell, n, &done.traces, done.elapsed, provenance)
    };
    let threads = pool.current_num_threads();
    let failed = pool.install(|| runner::run(&missing, threads, &progress, keep));
    progress.finish();
    let failed = failed?;
    for failure in &failed {
        eprintln!("{name}: cell {} failed: {}", failure.cell, failure.reason);
    }
    Ok(if failed.is_empty() { Code::Done } else { Code::SomeFailed })
}
