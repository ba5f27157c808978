//! `submit`: the cells still to do, as a job array of Slurm and a job that merges.
//!
//! *Invariant*: a task writes into a folder of its own below `<out>/.slurm/<number>/`,
//! which also holds all that the tasks read: the manifests as they were, the list of the
//! cells, the program. Nothing that is edited, built or run meanwhile changes what they
//! compute. If Slurm takes no job, nothing stays.

mod folder;
mod script;
mod slurm;
mod wait;

use super::{Code, Failure, Manifests, prepared, print, shard};
use crate::store::{Status, Store};
use driftbench_core::words::count;
use driftbench_runner::plan::{Cell, Plan};
use driftbench_runner::runner::cost::expected_nanoseconds;
use folder::Folder;
use script::{Job, typed};
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "\
A job array runs the cells that have no results yet, each task its share into a folder of its own; \
a job after it merges them into --out and writes the reports. A task that is killed, preempted or \
out of time is queued again and loses only the cells that it was computing. What comes after -- \
goes to sbatch, for both jobs. docs/SCALE.md tells more.

Example: driftbench submit --slurm experiments/scafflsa/grid.toml --tasks 32 -- --partition=short --time=2:00:00")]
pub struct Args {
    /// To Slurm, by its `sbatch`
    #[arg(long, required = true)]
    slurm: bool,
    #[command(flatten)]
    manifests: Manifests,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Folder of the reports
    #[arg(long, value_name = "DIR", default_value = "reports")]
    reports: PathBuf,
    /// Tasks that the cells are split into, at most one a cell
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
    /// Threads of each task
    #[arg(long, value_name = "T", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    threads_per_task: u64,
    /// Run cells again that failed
    #[arg(long)]
    rerun_failed: bool,
    /// Print what would be submitted, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Wait until all is merged, and end as the merge does
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    /// Options of sbatch
    #[arg(last = true, value_name = "SBATCH OPTION")]
    sbatch: Vec<String>,
}

/// Cells whose instances are built at a time, to see that they exist.
const CHECKED: usize = 4096;
/// Tasks that a table lists, at most.
const LISTED: usize = 20;

pub fn run(args: &Args) -> Result<Code, Failure> {
    own_options(&args.sbatch)?;
    let plans = args.manifests.plans()?;
    let store = Store::open(&args.out)?;
    let (todo, failed) = todo(&plans, &store, args.rerun_failed);
    let cells: usize = todo.iter().map(Vec::len).sum();
    if failed > 0 {
        eprintln!("{} failed before; --rerun-failed runs what failed", count(failed, "cell"));
    }
    if cells == 0 {
        eprintln!("{}", nothing(&plans, failed));
        return Ok(if failed > 0 { Code::SomeFailed } else { Code::Done });
    }
    // Bad input costs nothing here, and hours in a queue.
    for (plan, cells) in plans.iter().zip(&todo) {
        cells.chunks(CHECKED).try_for_each(|some| prepared(plan, some).map(drop))?;
    }
    let list = list(&plans, &todo);
    folder::not_submitted_yet(&args.out, &list)?;
    let tasks = args.tasks.min(cells as u64);
    let table = table(&plans, &todo, tasks, args.threads_per_task);
    let absolute = |path: &Path| std::path::absolute(path).map_err(|e| unnamed(path, &e));
    let folder = folder::next(&absolute(&args.out)?);
    let job = Job {
        here: std::env::current_dir().map_err(|e| unnamed(Path::new("."), &e))?,
        experiments: plans.iter().map(|plan| folder::experiment(&folder, plan)).collect(),
        folder,
        out: absolute(&args.out)?,
        reports: absolute(&args.reports)?,
        tasks,
        threads: args.threads_per_task,
    };
    let scripts = [("task.sh", job.task()?), ("merge.sh", job.merge()?)];
    if args.dry_run {
        print(&dry(&job, args, &scripts, &table))?;
        return Ok(Code::Done);
    }
    let folder = Folder::write(&store, &job, &plans, &list, &scripts)?;
    let array = slurm::submit(&array(&job, &args.sbatch))?;
    let merge = slurm::submit(&merge(&job, &args.sbatch, array.number()))
        .inspect_err(|_| slurm::cancel(&array))?;
    let ids = [&array, &merge];
    folder.submitted(&store, &plans, ids)?;
    print(&told(&job, cells, &plans, ids))?;
    if args.wait { wait::follow(&job.folder, ids, cells) } else { Ok(Code::Done) }
}

fn unnamed(path: &Path, e: &std::io::Error) -> Failure {
    Failure::input(format!("error: {}: {e}", path.display()))
}

/// Options that are not for the user to give.
fn own_options(options: &[String]) -> Result<(), Failure> {
    let own = [("--array", "--tasks"), ("-a", "--tasks"), ("--wrap", "the manifests")];
    for option in options {
        let name = option.split('=').next().unwrap_or_default();
        if let Some((_, instead)) = own.iter().find(|(own, _)| *own == name) {
            return Err(Failure::input(format!(
                "error: {option}: this option of sbatch is driftbench's own; {instead} decide it"
            )));
        }
    }
    Ok(())
}

/// The cells without sound results, plan by plan, and how many are left out because they
/// failed before.
fn todo<'a>(plans: &'a [Plan], store: &Store, again: bool) -> (Vec<Vec<&'a Cell>>, usize) {
    let mut failed = 0;
    let mut missing = |plan: &'a Plan, cell: &Cell| match store.status(&plan.experiment, &cell.id) {
        Status::Done => false,
        Status::Failed(_) if !again => {
            failed += 1;
            false
        }
        Status::Missing | Status::Damaged(_) | Status::Failed(_) => true,
    };
    let mut todo = Vec::new();
    for plan in plans {
        todo.push(plan.cells.iter().filter(|cell| missing(plan, cell)).collect());
    }
    (todo, failed)
}

fn nothing(plans: &[Plan], failed: usize) -> String {
    let all: usize = plans.iter().map(|plan| plan.cells.len()).sum();
    match failed {
        0 => format!("all {all} cells are done; nothing is submitted"),
        _ => format!("the other {} cells are done; nothing is submitted", all - failed),
    }
}

/// The cells as `run --only` reads them.
fn list(plans: &[Plan], todo: &[Vec<&Cell>]) -> String {
    let mut list = String::new();
    for (plan, cells) in plans.iter().zip(todo) {
        for cell in cells {
            let _ = writeln!(list, "{}/{}", plan.experiment, cell.id);
        }
    }
    list
}

/// What each task has to do.
fn table(plans: &[Plan], todo: &[Vec<&Cell>], tasks: u64, threads: u64) -> String {
    let mut load = vec![(0usize, 0u64); tasks as usize];
    let shares = shard::split(plans, todo, tasks);
    for (share, cell) in shares.into_iter().zip(todo.iter().flatten()) {
        let (cells, cost) = &mut load[share as usize];
        *cells += 1;
        *cost = cost.saturating_add(expected_nanoseconds(&cell.identity));
    }
    let time = |cost: u64| super::plan::duration(cost as f64 * 1e-9 / threads as f64);
    let mut out = String::from(" task    cells  estimated time\n");
    for (i, (cells, cost)) in load.iter().take(LISTED).enumerate() {
        let _ = writeln!(out, "{:5}  {cells:7}  about {}", i + 1, time(*cost));
    }
    if load.len() > LISTED {
        let costs = || load.iter().map(|(_, cost)| *cost);
        let (least, most) = (costs().min().unwrap_or(0), costs().max().unwrap_or(0));
        let (least, most) = (time(least), time(most));
        let _ = writeln!(out, "  …    {} tasks in all, {least} to {most}", load.len());
    }
    out
}

/// The command that submits the tasks. What the user gives comes after what may be
/// changed and before what may not.
fn array(job: &Job, options: &[String]) -> Vec<String> {
    let mut words = vec!["sbatch".to_owned(), "--job-name=driftbench".into()];
    words.push(format!("--cpus-per-task={}", job.threads));
    words.push("--signal=B:USR1@60".into());
    words.extend(options.iter().cloned());
    words.push(format!("--array=1-{}", job.tasks));
    words.extend(common(job, "task-%a.log"));
    words.push(job.folder.join("task.sh").to_string_lossy().into_owned());
    words
}

/// The command that submits the job after them.
fn merge(job: &Job, options: &[String], array: &str) -> Vec<String> {
    let mut words = vec!["sbatch".to_owned(), "--job-name=driftbench-merge".into()];
    words.extend(options.iter().cloned());
    words.push(format!("--dependency=afterany:{array}"));
    words.extend(common(job, "merge.log"));
    words.push(job.folder.join("merge.sh").to_string_lossy().into_owned());
    words
}

fn common(job: &Job, log: &str) -> [String; 5] {
    [
        "--parsable".into(),
        "--requeue".into(),
        "--open-mode=append".into(),
        // Below the folder, so that no character of its path means anything in a pattern.
        format!("--output={log}"),
        format!("--chdir={}", job.folder.to_string_lossy()),
    ]
}

fn dry(job: &Job, args: &Args, scripts: &[(&str, String); 2], table: &str) -> String {
    let mut out = String::from(table);
    let commands =
        [array(job, &args.sbatch), merge(job, &args.sbatch, "<number of the first job>")];
    for ((name, script), command) in scripts.iter().zip(commands) {
        let _ = write!(out, "\n{}\n\n{name}:\n\n{script}", typed(&command));
    }
    out
}

fn told(job: &Job, cells: usize, plans: &[Plan], ids: [&slurm::Id; 2]) -> String {
    let [watch, cancel] = slurm::commands(ids);
    let [array, merge] = ids.map(slurm::Id::number);
    let folder = job.folder.display();
    let [cells, tasks] = [count(cells, "cell"), count(job.tasks as usize, "task")];
    let experiments = count(plans.len(), "experiment");
    format!(
        "{cells} of {experiments} in {tasks}\n\
         job {array}: the tasks; job {merge}: merges into {}, writes {}\n\
         watch:   {watch}\n\
         logs:    {folder}/*.log\n\
         cancel:  {cancel}\n\
         \x20        (without {merge}: what is finished by then is merged)\n",
        job.out.display(),
        job.reports.display()
    )
}
