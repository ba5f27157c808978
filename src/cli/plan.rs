//! `plan`: the cells of some manifests, and what they will cost.

use super::{Code, Failure, Manifests, pool, prepared, print};
use crate::analysis::theory::wants_moments;
use crate::plan::Plan;
use crate::runner::{Prepared, Silent, predict};
use crate::store::{Status, Store};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "Example: driftbench plan experiments/scafflsa/grid.toml")]
pub struct Args {
    #[command(flatten)]
    manifests: Manifests,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Threads that the estimate is for; by default as many as the machine has
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let plans = args.manifests.plans()?;
    let store = Store::open(&args.out)?;
    let threads = pool(args.threads)?.current_num_threads();
    for plan in &plans {
        let prepared = prepared(plan, &plan.cells.iter().collect::<Vec<_>>())?;
        print(&told(plan, &prepared, &store, threads))?;
    }
    Ok(Code::Done)
}

fn told(plan: &Plan, cells: &[Prepared<'_>], store: &Store, threads: usize) -> String {
    let mut out = String::new();
    let mut speeds: HashMap<(*const (), &str), f64> = HashMap::new();
    let (mut done, mut seconds, mut steps) = (0, 0.0, 0);
    let _ = writeln!(
        out,
        "{}: {} cells of {} replicates",
        plan.experiment,
        cells.len(),
        plan.manifest.replicates
    );
    for prepared in cells {
        let cell = prepared.cell;
        let (state, time) = match store.status(&plan.experiment, &cell.id) {
            Status::Done => {
                done += 1;
                ("done", String::new())
            }
            status => {
                let speed = speeds
                    .entry((
                        Arc::as_ptr(&prepared.grounds[0].instance).cast(),
                        cell.identity.algorithm.kind(),
                    ))
                    .or_insert_with(|| seconds_per_step(prepared));
                let cost = *speed * prepared.client_steps() as f64 / threads as f64;
                seconds += cost;
                steps += prepared.client_steps();
                let state = if status == Status::Missing { "to do" } else { "damaged" };
                (state, format!("about {}", duration(cost)))
            }
        };
        let settings: Vec<String> = cell
            .varied
            .iter()
            .filter_map(|path| {
                Some(format!("{} {}", path.rsplit('.').next()?, cell.settings.get(path)?))
            })
            .collect();
        let _ = writeln!(
            out,
            "  {}  {state:7}  {}  {}  {time}",
            cell.id,
            cell.label,
            settings.join(", ")
        );
    }
    if cells.iter().any(|prepared| wants_moments(plan, prepared.cell)) {
        out.push_str(&moments(cells));
    }
    let todo = cells.len() - done;
    let _ = writeln!(
        out,
        "{done} done, {todo} to do: {steps:.2e} client steps, about {} on {threads} threads",
        duration(seconds),
        steps = steps as f64
    );
    out
}

/// What is known of the exact moments that a figure or a claim asks for.
fn moments(cells: &[Prepared<'_>]) -> String {
    let mut open = 0;
    let mut costly: Vec<f64> = Vec::new();
    for prepared in cells {
        match predict::known(prepared.cell, prepared.ground(0)) {
            Ok(()) => {}
            Err(predict::Without::Open) => open += 1,
            Err(predict::Without::Costly(products)) => costly.push(products),
        }
    }
    let known = cells.len() - open - costly.len();
    let mut out = format!("exact moments: known for {known} of {} cells", cells.len());
    if open > 0 {
        let _ = write!(out, "; for {open} they do not close");
    }
    if !costly.is_empty() {
        let most = costly.iter().copied().fold(0.0, f64::max);
        let _ = write!(
            out,
            "; for {} they would take up to {most:.0e} products, and figures go without",
            costly.len()
        );
    }
    out.push('\n');
    out
}

/// A time in words, to two digits.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Time of one client step, from rounds run for some milliseconds.
fn seconds_per_step(prepared: &Prepared<'_>) -> f64 {
    const PATIENCE: Duration = Duration::from_millis(20);
    let mut short = prepared.cell.clone();
    short.identity.replicates = 1;
    let mut rounds = 1;
    loop {
        let rounds_now = rounds.min(prepared.cell.identity.rounds);
        short.identity.rounds = rounds_now;
        let sample = Prepared {
            cell: &short,
            grounds: prepared.grounds.clone(),
            recorded: vec![0, rounds_now],
        };
        let begin = Instant::now();
        sample.simulate(0, &Silent);
        let elapsed = begin.elapsed();
        if elapsed > PATIENCE || rounds_now == prepared.cell.identity.rounds {
            return elapsed.as_secs_f64() / (sample.steps_per_round() * rounds_now) as f64;
        }
        rounds *= 4;
    }
}
