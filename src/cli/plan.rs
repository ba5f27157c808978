//! `plan`: lists the cells of manifests with their state and estimated time.

use super::{Code, Failure, Manifests, memory, pool, prepared, print};
use crate::analysis::wants_moments;
use crate::store::{Status, Store};
use driftbench_core::algorithm;
use driftbench_core::problem::{Facts, Spec};
use driftbench_core::theory::effort::Effort;
use driftbench_core::words::count;
use driftbench_runner::plan::{Cell, Plan};
use driftbench_runner::runner::{Prepared, Silent, predict};
use std::collections::{HashMap, HashSet};
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
    /// Number of threads of the estimate; by default as many as the machine has
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// List every cell, also of large grids
    #[arg(long)]
    all: bool,
}

/// Cells beyond which only a summary is told, and instances are sampled.
const MANY: usize = 1000;
/// Kinds of cells that are timed at most; the others are like these.
const MOST_TIMED: usize = 64;

pub fn run(args: &Args) -> Result<Code, Failure> {
    let plans = args.manifests.plans()?;
    let store = Store::open(&args.out)?;
    let threads = pool(args.threads)?.current_num_threads();
    for plan in &plans {
        print(&told(plan, &store, threads, args.all)?)?;
    }
    Ok(Code::Done)
}

fn told(plan: &Plan, store: &Store, threads: usize, all: bool) -> Result<String, Failure> {
    let many = plan.cells.len() > MANY;
    let status: Vec<Status> =
        plan.cells.iter().map(|cell| store.status(&plan.experiment, &cell.id)).collect();
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let sample = if many { kinds(&cells) } else { cells };
    memory::fits_instances(plan, &sample)?;
    let sample = prepared(plan, &sample)?;
    let todo = |cell: &Cell| store.status(&plan.experiment, &cell.id) != Status::Done;
    let speeds = Speeds::of(&sample, |cell| many || todo(cell));
    let mut out = format!(
        "{}: {} of {}\n",
        plan.experiment,
        count(plan.cells.len(), "cell"),
        count(plan.manifest.replicates as usize, "replicate")
    );
    let (mut done, mut seconds, mut steps) = (0, 0.0, 0_u64);
    let mut labels = Labels::default();
    for (cell, status) in plan.cells.iter().zip(&status) {
        let (state, time) = match status {
            Status::Done => {
                done += 1;
                ("done", String::new())
            }
            status => {
                let (mine, cost) = speeds.cost(cell);
                seconds += cost / threads as f64;
                steps = steps.saturating_add(mine);
                let state = if *status == Status::Missing { "to do" } else { "damaged" };
                (state, format!("about {}", duration(cost / threads as f64)))
            }
        };
        if all || !many || labels.is_example(cell, state) {
            let settings = varied(cell).join(", ");
            let line = format!("  {}  {state:7}  {}  {settings}  {time}\n", cell.id, cell.label);
            if many && !all { labels.examples.push_str(&line) } else { out.push_str(&line) }
        }
    }
    if many && !all {
        labels.tell(&mut out);
    }
    if plan.cells.iter().any(|cell| wants_moments(plan, cell)) {
        out.push_str(&moments(&sample, plan.cells.len()));
    }
    let todo = plan.cells.len() - done;
    let _ = writeln!(
        out,
        "{done} done, {todo} to do: {steps:.2e} client steps, about {} on {}",
        duration(seconds),
        count(threads, "thread"),
        steps = steps as f64
    );
    Ok(out)
}

/// The varied settings of a cell, as lines tell them.
fn varied(cell: &Cell) -> Vec<String> {
    let told =
        |path: &String| Some(format!("{} {}", path.rsplit('.').next()?, cell.settings.get(path)?));
    cell.varied.iter().filter_map(told).collect()
}

/// Cells by label and state, and the first of each as an example.
#[derive(Default)]
struct Labels<'a> {
    counts: Vec<((&'a str, &'static str), usize)>,
    examples: String,
}

impl<'a> Labels<'a> {
    /// Counts a cell; whether it is the first of its label and state.
    fn is_example(&mut self, cell: &'a Cell, state: &'static str) -> bool {
        let key = (cell.label.as_str(), state);
        // Cells of one label stand together.
        match self.counts.iter_mut().rev().find(|(known, _)| *known == key) {
            Some((_, count)) => {
                *count += 1;
                false
            }
            None => {
                self.counts.push((key, 1));
                true
            }
        }
    }

    fn tell(&self, out: &mut String) {
        for ((label, state), count) in &self.counts {
            let _ = writeln!(out, "  {count} {state}  {label}");
        }
        let _ = write!(out, "such as\n{}--all tells every cell\n", self.examples);
    }
}

/// A cell of every kind, a kind being a problem and an algorithm; of more than
/// so many kinds, some that are evenly spread.
fn kinds<'a>(cells: &[&'a Cell]) -> Vec<&'a Cell> {
    let mut seen = HashSet::new();
    let new = cells.iter().copied().filter(|cell| seen.insert(kind(cell)));
    let firsts: Vec<&Cell> = new.collect();
    let every = firsts.len().div_ceil(MOST_TIMED).max(1);
    let mut kept: Vec<&Cell> = firsts.iter().copied().step_by(every).collect();
    // No algorithm is left out.
    let name = |cell: &Cell| cell.identity.algorithm.kind();
    for cell in firsts {
        if !kept.iter().any(|known| name(known) == name(cell)) {
            kept.push(cell);
        }
    }
    kept
}

/// The problem and the algorithm.
type Kind = (*const Spec, &'static str);

fn kind(cell: &Cell) -> Kind {
    (Arc::as_ptr(&cell.identity.problem), cell.identity.algorithm.kind())
}

/// Seconds a client step and numbers of clients, by kind.
struct Speeds {
    kinds: HashMap<Kind, (f64, usize)>,
    /// For kinds that were not timed: the mean of those of the same algorithm.
    algorithms: HashMap<&'static str, (f64, usize)>,
}

impl Speeds {
    /// Times a cell of every kind among those that are asked for.
    fn of(cells: &[Prepared<'_>], wanted: impl Fn(&Cell) -> bool) -> Self {
        let mut kinds: HashMap<Kind, (f64, usize)> = HashMap::new();
        let mut all: HashMap<&'static str, Vec<(f64, usize)>> = HashMap::new();
        for prepared in cells {
            let kind = kind(prepared.cell);
            if kinds.len() < MOST_TIMED && !kinds.contains_key(&kind) && wanted(prepared.cell) {
                let timed = (seconds_per_step(prepared), prepared.clients());
                kinds.insert(kind, timed);
                all.entry(kind.1).or_default().push(timed);
            }
        }
        let mean = |timed: Vec<(f64, usize)>| {
            let seconds = timed.iter().map(|t| t.0).sum::<f64>() / timed.len() as f64;
            (seconds, timed.iter().map(|t| t.1).sum::<usize>() / timed.len())
        };
        let algorithms = all.into_iter().map(|(name, timed)| (name, mean(timed))).collect();
        Self { kinds, algorithms }
    }

    /// Client steps of a cell and the seconds that they take on one thread.
    fn cost(&self, cell: &Cell) -> (u64, f64) {
        let (problem, algorithm) = kind(cell);
        let timed = self.kinds.get(&(problem, algorithm));
        let &(seconds, clients) =
            timed.or_else(|| self.algorithms.get(algorithm)).unwrap_or(&(0.0, 1));
        let clients = cell.identity.problem.extent().map_or(clients, |extent| extent.clients);
        let steps = cell.identity.client_steps(clients);
        (steps, seconds * steps as f64)
    }
}

/// What is known of the exact moments that a figure or a claim asks for, from
/// some of the cells or all.
fn moments(sample: &[Prepared<'_>], cells: usize) -> String {
    let mut open = 0;
    let mut costly: Vec<Effort> = Vec::new();
    for prepared in sample {
        match predict::known(prepared) {
            Ok(()) => {}
            Err(predict::Without::Open) => open += 1,
            Err(predict::Without::Costly(cost)) => costly.push(cost),
        }
    }
    let known = sample.len() - open - costly.len();
    let tried = match sample.len() {
        n if n < cells => format!("{} that were tried", count(n, "cell")),
        n => count(n, "cell"),
    };
    let mut out = format!("exact moments: known for {known} of {tried}");
    if open > 0 {
        let _ = write!(out, "; for {open} they do not close");
    }
    if let Some(most) = costly.iter().copied().reduce(Effort::most) {
        let count = costly.len();
        let _ = write!(out, "; for {count} they would take {most}, and figures go without");
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

/// Oracle calls of a round beyond which it is not timed as it is.
const MOST_CALLS: f64 = 1e7;
/// Seconds of an oracle call where it is guessed.
const GUESS: f64 = 5e-8;

/// Time of one client step, from rounds run for some milliseconds.
fn seconds_per_step(prepared: &Prepared<'_>) -> f64 {
    let clients = prepared.clients();
    let facts: &dyn Facts = &*prepared.grounds[0].instance;
    let component = prepared.cell.identity.algorithm.components().remove(0);
    let batch = component.terms.batches.iter().copied().max().unwrap_or(1) as f64;
    let calls = batch * facts.batch() as f64;
    if calls * prepared.steps_per_round() as f64 <= MOST_CALLS {
        return timed(prepared, prepared.cell.clone());
    }
    // A round would take too long: fewer local steps of an algorithm without
    // batches take as long each, but for the batch.
    if facts.batch() as f64 * clients as f64 > MOST_CALLS {
        return calls * GUESS;
    }
    let mut few = prepared.cell.clone();
    let fedavg = algorithm::fedavg::Settings::new(component.terms.step_size, 1);
    few.identity.algorithm = Arc::new(algorithm::Spec::FedAvg(fedavg));
    timed(prepared, few) * batch
}

/// Time of one client step of `short`, a cell on the grounds of another.
fn timed(prepared: &Prepared<'_>, mut short: Cell) -> f64 {
    const PATIENCE: Duration = Duration::from_millis(20);
    short.identity.replicates = 1;
    let mut rounds = 1;
    loop {
        let rounds_now = rounds.min(prepared.cell.identity.rounds);
        short.identity.rounds = rounds_now;
        let sample = Prepared {
            cell: &short,
            grounds: prepared.grounds.clone(),
            recorded: Arc::new([0, rounds_now]),
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
