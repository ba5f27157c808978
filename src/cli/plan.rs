//! `plan`: lists the cells of manifests with their state and estimated time.

use super::cell_times::{CellTimes, representatives};
use super::confirm::{PlannedTime, duration};
use super::manifests::Manifests;
use super::memory;
use super::outcome::{Code, Failure, print};
use super::prepare::{pool, prepared, warn_of};
use crate::evidence::{tuned, wants_moments};
use crate::report::check_texts;
use crate::store::{Status, Store};
use exactfed_core::problem::Spec;
use exactfed_core::theory::effort::Effort;
use exactfed_core::theory::exact::MomentsError;
use exactfed_core::words::count;
use exactfed_runner::plan::{Cell, Plan, short};
use exactfed_runner::runner::{Prepared, predict, words_on_multiples};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "Example: exactfed plan experiments/scafflsa/grid.toml")]
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

/// Cells beyond which only a summary is printed, and not every instance is built.
const MANY: usize = 1000;
/// The shortest time of a set-up that is printed, in seconds; a shorter one does not matter.
const SHORTEST_PRINTED: f64 = 1.0;
/// The most kinds of cells of a large grid whose instances are built; the others resemble these.
const MOST_BUILT: usize = 64;

/// The command `plan`: prints the cells of each manifest with their states and estimated times. Nothing is run but
/// the first rounds of some cells, to measure them.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let store = Store::open(&args.out)?;
    let pool = pool(args.threads)?;
    let begin = Instant::now();
    let all = args.manifests.plans()?.into_iter().map(|plan| tuned::all_stages(plan, &store));
    let plans = all.collect::<Result<Vec<Plan>, _>>()?;
    // Part of the stated time, since a run plans its cells too before the first.
    let planning = begin.elapsed() / plans.len().max(1) as u32;
    for plan in &plans {
        print(&describe(plan, &store, &pool, planning, args.all)?)?;
    }
    Ok(Code::Done)
}

/// Lines with what the numbers of a plan come to that are written in units of the problem's constants; empty if there
/// are none. `prepared` are cells on the problems of the plan.
pub fn multiples(plan: &Plan, prepared: &[Prepared<'_>]) -> String {
    let prepared: Vec<&Prepared<'_>> = prepared.iter().collect();
    let mut lines = String::new();
    for words in words_on_multiples(plan.cells.iter(), &prepared) {
        let _ = writeln!(lines, "  {}", words.replace('`', ""));
    }
    lines
}

/// The line that says how many frontiers a plan has, and how many maps, each of which is about one of the frontiers;
/// empty without frontiers.
pub fn frontiers(plan: &Plan) -> String {
    let frontiers = plan.manifest.frontier.len();
    let maps = plan.manifest.phase.len();
    let maps = if maps > 0 { format!(" with {}", count(maps, "map")) } else { String::new() };
    match frontiers {
        0 => String::new(),
        some => format!("{}{maps}, which `report` computes\n", count(some, "frontier")),
    }
}

/// What `plan` prints of an experiment: its cells with their states and with their times on the threads
/// of the pool, what follows from results, and a sum of what is missing, which are all cells that are not done, failed
/// ones included. `planning` is the time that it took to make the plan. `all` lists every cell also of a grid of more
/// than [`MANY`]. The instances of the cells are built to measure times, in such a grid those of a sample.
///
/// # Errors
/// What is wrong with these cells and with the frontiers, or that the instances do not fit in memory.
fn describe(
    plan: &Plan,
    store: &Store,
    pool: &rayon::ThreadPool,
    planning: Duration,
    all: bool,
) -> Result<String, Failure> {
    let threads = pool.current_num_threads();
    let many = plan.cells.len() > MANY;
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let sample = if many { sampled(&cells) } else { cells };
    memory::fits_instances(plan, &sample)?;
    let begin = Instant::now();
    let sample = pool.install(|| prepared(plan, &sample))?;
    let set_up_time = begin.elapsed();
    let set_up_seconds = set_up_time.as_secs_f64();
    warn_of(plan, &sample);
    let clients: ClientCounts =
        sample.iter().map(|p| (Arc::as_ptr(&p.cell.identity.problem), p.clients())).collect();
    let cells = count(plan.cells.len(), "cell");
    let runs = runs_of_each(plan);
    let mut out = format!("{}: {cells} of {runs}\n", plan.experiment);
    let statuses: Vec<Status> =
        plan.cells.iter().map(|cell| store.status(&plan.experiment, &cell.id)).collect();
    let with_status = plan.cells.iter().zip(&statuses);
    let missing = with_status.filter(|(_, status)| **status != Status::Done);
    let missing: Vec<&Cell> = missing.map(|(cell, _)| cell).collect();
    // What follows from candidates is planned from all of them, also from those that are done.
    let all_cells: Vec<&Cell> = plan.cells.iter().collect();
    let timed = if plan.tuning.is_some() { &all_cells } else { &missing };
    let times = CellTimes::measure(plan, timed, &sample);
    out.push_str(&multiples(plan, &sample));
    out.push_str(&list_cells(plan, &statuses, &times, threads, many && !all));
    out.push_str(&what_follows(plan, &times, threads)?);
    out.push_str(&set_up_line(set_up_seconds));
    let runs_time = times.total(missing.iter().copied(), threads);
    let runs_seconds = runs_time.unwrap_or(0.0);
    out.push_str(&without_optimum(plan, &sample, set_up_seconds, runs_seconds, threads));
    if plan.cells.iter().any(|cell| wants_moments(plan, cell)) {
        out.push_str(&moments(&sample, plan.cells.len()));
    }
    out.push_str(&frontiers(plan));
    out.push_str(&times.not_measured(&missing));
    let _ = write!(out, "{} done, {} missing", plan.cells.len() - missing.len(), missing.len());
    if !missing.is_empty() {
        let steps = missing.iter().map(|cell| client_steps(cell, &clients));
        let steps = steps.fold(0, u64::saturating_add);
        let _ = write!(out, ": {:.2e} client steps", steps as f64);
        if let Some(seconds) = runs_time {
            let time = duration(seconds + (planning + set_up_time).as_secs_f64());
            let _ = write!(out, ", about {time} on {}", count(threads, "thread"));
        }
    }
    out.push('\n');
    Ok(out)
}

/// A line for each cell of a plan: its id, its state (`statuses` has one for each cell), its label, its
/// varied settings and, unless it is done, its time on so many threads. If the list is `summarised`, as
/// for a large grid, the number of cells of each label and state, and one line of each as an example.
fn list_cells(
    plan: &Plan,
    statuses: &[Status],
    times: &CellTimes,
    threads: usize,
    summarised: bool,
) -> String {
    let mut out = String::new();
    let mut labels = Labels::default();
    for (cell, status) in plan.cells.iter().zip(statuses) {
        let state = status.name();
        if summarised && !labels.is_example(cell, state) {
            continue;
        }
        let time = match times.total(std::iter::once(cell), threads) {
            Some(seconds) if *status != Status::Done => format!("about {}", duration(seconds)),
            Some(_) | None => String::new(),
        };
        let settings = varied(cell).join(", ");
        let line = format!("  {}  {state:7}  {}  {settings}  {time}", cell.id, cell.label);
        let lines = if summarised { &mut labels.examples } else { &mut out };
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    if summarised {
        labels.write(&mut out);
    }
    out
}

/// The sentence on what `run` computes, at most, after the candidates of a tuned experiment: fresh runs,
/// further candidates, and how long they take by `times`. It follows from the manifest alone, whatever results
/// there are, and so does the time beyond which `run` asks. Empty if nothing is tuned.
fn what_follows(plan: &Plan, times: &CellTimes, threads: usize) -> Result<String, Failure> {
    if plan.tuning.is_none() {
        return Ok(String::new());
    }
    let manifest = crate::evidence::plan(plan.experiment.clone(), plan.source.clone())?;
    let groups = manifest.possible_evaluations().len();
    let more = match groups.saturating_mul(manifest.most_further_candidates()) {
        0 => String::new(),
        most => format!(
            "; and, where candidates are best at the edge of their range, up to {}",
            count(most, "further candidate")
        ),
    };
    // A group is an algorithm at a grid point: fresh runs are those of its best candidate and, with several groups, of
    // the candidate that is best for all algorithms together.
    let fresh = if groups > 1 { 2 * groups } else { groups };
    let fresh = count(fresh, "cell");
    let Some(time) = PlannedTime::new(&manifest, times, threads) else {
        return Ok(format!("then fresh runs of what is selected, up to {fresh}{more}\n"));
    };
    let of_fresh = duration(time.fresh);
    let unasked = duration(time.unasked());
    let race = if plan.has_race() {
        format!(
            "these are the first runs of candidates that race: then the others of those that are not stopped, about {} for all; ",
            duration(time.candidates)
        )
    } else {
        String::new()
    };
    Ok(format!(
        "{race}then fresh runs of what is selected, up to {fresh}, about {of_fresh}{more}: run asks before what follows takes more than {unasked}\n"
    ))
}

/// The runs of each cell, in words: `20 replicates on each of 3 instances`. They are those of the first cell; cells
/// of other stages of a tuned experiment may have other numbers.
fn runs_of_each(plan: &Plan) -> String {
    let first = plan.cells.first().map(|cell| &cell.identity);
    let replicates = first.map_or(plan.manifest.replicates, |identity| identity.replicates);
    let replicates = count(replicates as usize, "replicate");
    match first.map_or(1, |identity| identity.instances) {
        1 => replicates,
        several => format!("{replicates} on each of {several} instances"),
    }
}

/// The line which says how many seconds the problems of the built cells took to set up here; empty if it is too short a
/// time to matter.
fn set_up_line(seconds: f64) -> String {
    if seconds < SHORTEST_PRINTED {
        return String::new();
    }
    format!("before the first step, problems are set up: {} here\n", duration(seconds))
}

/// The seconds of a search for θ* beyond which a line is printed about it.
const LONG_SEARCH: f64 = 10.0;
/// The share of the stated time beyond which a line is printed about a shorter search too.
const LARGE_SHARE: f64 = 0.5;

/// The line which says that `[record] optimum = false` saves the search for θ*; empty where the search is short or
/// something other than `sq-error` needs θ*. `set_up` is the time in which the instances of `sample` were built on so
/// many threads, and `runs` the time of the missing cells, in seconds.
fn without_optimum(
    plan: &Plan,
    sample: &[Prepared<'_>],
    set_up: f64,
    runs: f64,
    threads: usize,
) -> String {
    let scenarios = sample.iter().flat_map(|prepared| &prepared.scenarios);
    // By the keys of instances, which cells share, so that each search counts once.
    let searches =
        scenarios.map(|scenario| (&*scenario.key, scenario.optimum_search.as_secs_f64()));
    let searches: HashMap<&str, f64> = searches.filter(|(_, seconds)| *seconds > 0.0).collect();
    let at_a_time = searches.len().clamp(1, threads);
    let seconds = (searches.values().sum::<f64>() / at_a_time as f64).min(set_up);
    let is_long = seconds > LONG_SEARCH || seconds > LARGE_SHARE * (set_up + runs);
    if seconds < SHORTEST_PRINTED || !is_long {
        return String::new();
    }
    // The plan without θ* is refused where anything else needs θ*.
    let mut source = plan.source.clone();
    source.overrides.push("record.optimum=false".into());
    let Ok(other) = crate::evidence::plan(plan.experiment.clone(), source) else {
        return String::new();
    };
    if check_texts(&other).is_err() {
        return String::new();
    }
    format!(
        "the search for θ* takes about {} of this, and nothing but `sq-error` needs it: `optimum = false` in [record] saves the time; figures and rankings that name no quantity are then of `{}`\n",
        duration(seconds),
        other.manifest.record.default_quantity().name()
    )
}

/// The number of clients N by the address of the problem, which cells with equal problems share, of the problems that
/// were built: where a data file determines N, the settings do not have it.
type ClientCounts = HashMap<*const Spec, usize>;

/// The local steps of all clients in all runs of a cell. N comes from the settings of the problem or else
/// from `clients`; it counts as 1 where neither has it, since that problem was not built.
fn client_steps(cell: &Cell, clients: &ClientCounts) -> u64 {
    let problem = &cell.identity.problem;
    let known = || clients.get(&Arc::as_ptr(problem)).copied().unwrap_or(1);
    cell.identity.client_steps(problem.extent().map_or_else(known, |extent| extent.clients))
}

/// The settings of a cell that vary over the grid, each as its short name and its value: `step-size 0.1`.
fn varied(cell: &Cell) -> Vec<String> {
    let setting = |path: &String| Some(format!("{} {}", short(path), cell.settings.get(path)?));
    cell.varied.iter().filter_map(setting).collect()
}

/// The summary of a large grid: its cells by label and state, and the first of each as an example.
#[derive(Default)]
struct Labels<'a> {
    /// The numbers of cells by label and state, in the order in which these come first.
    counts: Vec<((&'a str, &'static str), usize)>,
    /// The lines of the examples.
    examples: String,
}

impl<'a> Labels<'a> {
    /// Counts a cell in the state of this name; returns whether it is the first of its label and state, whose line the
    /// caller then adds to the examples.
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

    /// Appends the counts and then the examples to `out`.
    fn write(&self, out: &mut String) {
        for ((label, state), count) in &self.counts {
            let _ = writeln!(out, "  {count} {state}  {label}");
        }
        let _ = write!(out, "such as\n{}--all lists every cell\n", self.examples);
    }
}

/// The cells of a large grid whose instances `plan` builds: a sample of the [`kinds`], so that mistakes
/// show; and, on the same problems, up to [`MOST_BUILT`] cells whose times are measured.
fn sampled<'a>(cells: &[&'a Cell]) -> Vec<&'a Cell> {
    let mut sample = kinds(cells);
    fn problem(cell: &Cell) -> *const Spec {
        Arc::as_ptr(&cell.identity.problem)
    }
    let built: HashSet<_> = sample.iter().map(|cell| problem(cell)).collect();
    let on_built: Vec<&Cell> =
        cells.iter().copied().filter(|cell| built.contains(&problem(cell))).collect();
    let known: HashSet<_> = sample.iter().map(|cell| cell.id).collect();
    let measured = representatives(&on_built).into_iter();
    sample.extend(measured.filter(|cell| !known.contains(&cell.id)).take(MOST_BUILT));
    sample
}

/// The first cell of every kind, where a kind is a problem, with all its settings, and a kind of algorithm; of more
/// than [`MOST_BUILT`] kinds an evenly spaced sample, and a cell of each algorithm that it lacks.
fn kinds<'a>(cells: &[&'a Cell]) -> Vec<&'a Cell> {
    fn name(cell: &Cell) -> &str {
        cell.identity.algorithm.kind()
    }
    let mut seen = HashSet::new();
    let mut is_new =
        |cell: &'a Cell| seen.insert((Arc::as_ptr(&cell.identity.problem), name(cell)));
    let new = cells.iter().copied().filter(|cell| is_new(cell));
    let firsts: Vec<&Cell> = new.collect();
    let every = firsts.len().div_ceil(MOST_BUILT).max(1);
    let mut sample: Vec<&Cell> = firsts.iter().copied().step_by(every).collect();
    // No algorithm is left out.
    for cell in firsts {
        if !sample.iter().any(|known| name(known) == name(cell)) {
            sample.push(cell);
        }
    }
    sample
}

/// The line which says for how many of the sampled cells the exact moments that a figure or a claim asks
/// for can be computed, and why not for the others. `cells` is the number of all cells, of which `sample` may be a
/// part.
fn moments(sample: &[Prepared<'_>], cells: usize) -> String {
    // The cells whose moments do not close, whose runs end at a target, whose moments take too long, and the others.
    let mut open = 0;
    let mut ending = 0;
    let mut costly: Vec<Effort> = Vec::new();
    let mut unknown: Vec<MomentsError> = Vec::new();
    for prepared in sample {
        match predict::check_exact_moments(prepared) {
            Ok(()) => {}
            Err(predict::NoMoments::Open) => open += 1,
            Err(predict::NoMoments::Ends) => ending += 1,
            Err(predict::NoMoments::Costly(cost)) => costly.push(cost),
            Err(predict::NoMoments::Unknown(why)) => unknown.push(why),
        }
    }
    let known = sample.len() - open - ending - costly.len() - unknown.len();
    let tried = match sample.len() {
        n if n < cells => format!("{} of the sample", count(n, "cell")),
        n => count(n, "cell"),
    };
    let mut out = format!("exact moments: known for {known} of {tried}");
    if open > 0 {
        let _ = write!(out, "; for {open} they do not close");
    }
    if ending > 0 {
        let _ = write!(out, "; for {ending} {}", predict::NoMoments::Ends);
    }
    if let Some(why) = unknown.first() {
        let _ = write!(out, "; for {} they are not known: {why}", unknown.len());
    }
    if let Some(most) = costly.iter().copied().reduce(Effort::most) {
        let count = costly.len();
        let _ = write!(out, "; for {count} they would take {most}, and figures go without");
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_core::problem::arrays::NoFiles;
    use exactfed_runner::manifest::Source;
    use exactfed_runner::runner::prepare;

    const LOGISTIC: &str = include_str!("../../experiments/smoke/logistic.toml");

    /// The line about a manifest whose search for θ* took so many of 30 seconds of set-up.
    fn said(searched: u64, sets: &[&str]) -> String {
        let overrides = ["record.metrics=[\"accuracy\", \"train-loss\"]"].iter().chain(sets);
        let overrides = overrides.map(|set| (*set).to_owned()).collect();
        let source = Source { text: LOGISTIC.into(), overrides, ..Source::default() };
        let plan = crate::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let mut sample = prepare(&NoFiles, &[&plan.cells[0]]).unwrap();
        let scenario = Arc::get_mut(&mut sample[0].scenarios[0]).unwrap();
        assert!(scenario.optimum_search > Duration::ZERO);
        scenario.optimum_search = Duration::from_secs(searched);
        without_optimum(&plan, &sample, 30.0, 5.0, 2)
    }

    #[test]
    fn the_list_of_cells_tells_failed_ones_from_damaged_ones() {
        let source = Source { text: LOGISTIC.into(), ..Source::default() };
        let plan = crate::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let statuses = [Status::Failed("x".into()), Status::Damaged("y".into())];
        let list = list_cells(&plan, &statuses, &CellTimes::default(), 1, false);
        let words: Vec<&str> =
            list.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(words, ["failed", "damaged"]);
    }

    #[test]
    fn a_long_search_for_nothing_is_said_to_be_saved() {
        let of_losses = "figure.convergence=[{ y = \"train-loss\" }]";
        let sentence = said(25, &[of_losses, "claim={}"]);
        assert_eq!(
            sentence,
            "the search for θ* takes about 25 s of this, and nothing but `sq-error` needs it: `optimum = false` in [record] saves the time; figures and rankings that name no quantity are then of `train-loss`\n"
        );
        assert_eq!(said(9, &[of_losses, "claim={}"]), "", "neither long nor most of the time");
        for needs in [
            "figure.convergence=[{ y = \"sq-error\" }]",
            "start={ offset = 1.0 }",
            "analysis=\"{{ mean(cell(\\\"Scaffold-RR\\\", oracle=\\\"exact\\\")) }}\"",
        ] {
            assert_eq!(said(25, &[of_losses, "claim={}", needs]), "", "{needs}");
        }
    }
}
