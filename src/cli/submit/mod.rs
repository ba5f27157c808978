//! `submit`: runs the missing cells as a job array of Slurm, followed by a job that merges.
//!
//! *Invariant*: each task writes into its own folder below `<out>/.slurm/<number>/`, which
//! also contains everything that the tasks read: the manifests, the list of cells and the
//! program, as they were at submission. Nothing that is edited, built or run afterwards
//! changes the results. If Slurm accepts no job, no files are left.

mod folder;
mod script;
mod slurm;
mod wait;

use super::cell_times::CellTimes;
use super::code::{code_of_all, require_code};
use super::confirm::duration;
use super::manifests::Manifests;
use super::outcome::{Code, Failure, print};
use super::prepare::prepared;
use super::shard::{self, Cells};
use crate::store::{Status, Store};
use exactfed_core::words::count;
use exactfed_runner::files::error;
use exactfed_runner::plan::Plan;
use folder::SubmissionFolder;
pub use folder::set_program;
use script::{Job, typed};
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "\
A job array runs the missing cells; each task runs one shard and writes into its own folder. A \
following job merges these folders into --out and writes the reports. A task that is killed, \
preempted or out of time is queued again and loses only its unfinished cells. Options after -- are \
passed to sbatch for both jobs. See docs/SCALE.md.

Example: exactfed submit --slurm experiments/scafflsa/grid.toml --tasks 32 -- --partition=short --time=2:00:00")]
pub struct Args {
    /// Submit to Slurm with sbatch
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
    /// Number of tasks, at most one per cell
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
    /// Number of threads of each task
    #[arg(long, value_name = "T", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    threads_per_task: u64,
    /// Also run cells that failed before
    #[arg(long)]
    rerun_failed: bool,
    /// Print the scripts and commands without submitting
    #[arg(long)]
    dry_run: bool,
    /// Wait for the merge and exit with its code
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    /// Options for sbatch
    #[arg(last = true, value_name = "SBATCH OPTION")]
    sbatch: Vec<String>,
}

/// The most cells whose instances are in memory at a time while all cells are checked.
const CHECKED: usize = 4096;
/// The most tasks that the table of `--dry-run` lists.
const LISTED: usize = 20;

/// The command `submit`: checks all missing cells, writes the folder of a submission, and submits the array of tasks
/// and the merge that follows it. With `--dry-run` it prints what it would do instead; with `--wait` it returns the
/// code of the merge. If no cell is to be run, nothing is submitted, and the code is [`Code::SomeFailed`] if cells
/// failed before.
///
/// # Errors
/// If a cell cannot be prepared, is in an earlier submission that is not merged, or Slurm refuses a job.
pub fn run(args: &Args) -> Result<Code, Failure> {
    refuse_own_options(&args.sbatch)?;
    let plans = args.manifests.plans()?;
    let store = Store::open(&args.out)?;
    let (missing, failed) = missing_cells(&plans, &store, args.rerun_failed);
    let cells: usize = missing.iter().map(|(_, cells)| cells.len()).sum();
    if failed > 0 {
        eprintln!("{} failed before; pass --rerun-failed to run them again", count(failed, "cell"));
    }
    if plans.iter().any(|plan| plan.tuning.is_some()) {
        eprintln!(
            "of experiments with [tune] the candidates are submitted; when they are merged, `exactfed run` runs what follows from them"
        );
    }
    if cells == 0 {
        let all: usize = plans.iter().map(|plan| plan.cells.len()).sum();
        let (those, code) = match failed {
            0 => (format!("all {all}"), Code::Done),
            _ => (format!("the other {}", all - failed), Code::SomeFailed),
        };
        eprintln!("{those} cells are done; nothing is submitted");
        return Ok(code);
    }
    // An error is reported now rather than after hours in a queue.
    for (plan, cells) in &missing {
        require_code(plan, cells)?;
        cells.chunks(CHECKED).try_for_each(|some| prepared(plan, some).map(drop))?;
    }
    let list = cell_list(&missing);
    folder::refuse_submitted(&args.out, &list)?;
    let tasks = args.tasks.min(cells as u64);
    let out = absolute(&args.out)?;
    if args.dry_run {
        let job = job_in(folder::next_folder(&out), args, &plans, tasks)?;
        let table = task_table(&missing, tasks, args.threads_per_task)?;
        print(&dry_run(&job, args, &job.scripts()?, &table))?;
        return Ok(Code::Done);
    }
    // The folder is removed again where this function returns before it is kept.
    let mut folder = SubmissionFolder::reserve(&store, &out)?;
    let job = job_in(folder.path.clone(), args, &plans, tasks)?;
    folder.write(&plans, &list, &job.scripts()?)?;
    let array = slurm::submit(&array_command(&job, &args.sbatch))?;
    let merge = slurm::submit(&merge_command(&job, &args.sbatch, &array.number))
        .inspect_err(|_| slurm::cancel(&array))?;
    let ids = [&array, &merge];
    folder.keep(ids)?;
    // It says how the jobs are watched and cancelled, also where the results are waited for.
    print(&summary(&job, cells, &plans, ids))?;
    folder.take_over(&plans)?;
    if args.wait { wait::follow(&job.folder, ids, cells) } else { Ok(Code::Done) }
}

/// The absolute path of a file or folder that a user names, which need not exist.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    Ok(std::path::absolute(path).map_err(|e| error(path, e))?)
}

/// The paths and numbers of a submission in this folder, which need not exist, that runs cells of these plans in so
/// many tasks.
///
/// # Errors
/// If the working directory, from which relative paths begin, is not known.
fn job_in(folder: PathBuf, args: &Args, plans: &[Plan], tasks: u64) -> Result<Job, Failure> {
    let here = Path::new(".");
    Ok(Job {
        here: std::env::current_dir().map_err(|e| error(here, e))?,
        experiments: plans.iter().map(|plan| folder::manifest_path(&folder, plan)).collect(),
        code: code_of_all(plans, &args.manifests.python).map_err(|e| error(here, e))?,
        folder,
        out: absolute(&args.out)?,
        reports: absolute(&args.reports)?,
        tasks,
        threads: args.threads_per_task,
    })
}

/// Refuses options for sbatch, which the user wrote after `--`, that this command sets itself; the message
/// names what to use instead.
fn refuse_own_options(options: &[String]) -> Result<(), Failure> {
    let own = [("--array", "--tasks"), ("-a", "--tasks"), ("--wrap", "manifests")];
    for option in options {
        let name = option.split('=').next().unwrap_or_default();
        if let Some((_, instead)) = own.iter().find(|(own, _)| *own == name) {
            return Err(Failure::input(format!(
                "error: {option}: exactfed sets this option of sbatch; use {instead}"
            )));
        }
    }
    Ok(())
}

/// The cells of each plan that are to be submitted: those without sound results. Cells that failed before
/// are among them only with `rerun_failed`; the number that is returned counts the failed cells that are
/// left out.
fn missing_cells<'a>(
    plans: &'a [Plan],
    store: &Store,
    rerun_failed: bool,
) -> (Vec<Cells<'a>>, usize) {
    let mut missing = Vec::new();
    let mut failed = 0;
    for plan in plans {
        let mut cells = Vec::new();
        for cell in &plan.cells {
            match store.status(&plan.experiment, &cell.id) {
                Status::Done => {}
                Status::Failed(_) if !rerun_failed => failed += 1,
                Status::Missing | Status::Damaged(_) | Status::Failed(_) => cells.push(cell),
            }
        }
        missing.push((plan, cells));
    }
    (missing, failed)
}

/// The list of the cells of a submission, a line `experiment/id` each, as the tasks pass it to `run --only`
/// and the merge to `merge --expect`.
fn cell_list(missing: &[Cells<'_>]) -> String {
    let mut list = String::new();
    for (plan, cells) in missing {
        for cell in cells {
            let _ = writeln!(list, "{}/{}", plan.experiment, cell.id);
        }
    }
    list
}

/// The cells that one task of the array runs.
#[derive(Clone, Copy, Default)]
struct TaskLoad {
    /// The number of cells.
    cells: usize,
    /// The time of all these cells on one thread of this machine; `None` where no cell of an experiment
    /// could be measured.
    seconds: Option<f64>,
}

/// The table that `--dry-run` prints: for each task the number of its cells and the estimated time on so many
/// threads of this machine; of more than [`LISTED`] tasks the first, and the range of all times.
///
/// # Errors
/// If an instance cannot be built, to be measured.
fn task_table(missing: &[Cells<'_>], tasks: u64, threads: u64) -> Result<String, Failure> {
    let mut load = vec![TaskLoad { cells: 0, seconds: Some(0.0) }; tasks as usize];
    let mut shards = shard::split(missing, tasks).into_iter();
    for (plan, cells) in missing {
        let times = CellTimes::of_cells(plan, cells)?;
        // The shards of the cells of all plans come one after another.
        for (cell, shard) in cells.iter().zip(&mut shards) {
            let task = &mut load[shard as usize];
            task.cells += 1;
            task.seconds = task.seconds.zip(times.seconds(cell)).map(|(sum, more)| sum + more);
        }
    }
    let time = |seconds: f64| duration(seconds / threads as f64);
    let mut out = String::from(" task    cells  estimated time\n");
    for (i, TaskLoad { cells, seconds }) in load.iter().take(LISTED).enumerate() {
        let about = seconds.map_or("not measured".into(), |s| format!("about {}", time(s)));
        let _ = writeln!(out, "{:5}  {cells:7}  {about}", i + 1);
    }
    if load.len() > LISTED {
        let known = load.iter().filter_map(|task| task.seconds);
        let least = time(known.clone().fold(f64::INFINITY, f64::min));
        let most = time(known.fold(0.0, f64::max));
        let _ = writeln!(out, "  …    {} tasks in all, {least} to {most}", load.len());
    }
    Ok(out)
}

/// The command that submits the tasks. The user's options come after those that they may
/// override and before those that they may not. A minute before its time limit, the script of each task gets the signal
/// USR1 and lets the program store the cells that are complete.
fn array_command(job: &Job, options: &[String]) -> Vec<String> {
    let threads = format!("--cpus-per-task={}", job.threads);
    let defaults = ["--job-name=exactfed", &threads, "--signal=B:USR1@60"];
    let array = format!("--array=1-{}", job.tasks);
    sbatch(job, &defaults, options, array, "task-%a.log", "task.sh")
}

/// The command that submits the merge, which runs when all tasks of the job `array` have ended, in whatever way.
fn merge_command(job: &Job, options: &[String], array: &str) -> Vec<String> {
    let after = format!("--dependency=afterany:{array}");
    sbatch(job, &["--job-name=exactfed-merge"], options, after, "merge.log", "merge.sh")
}

/// The words of a command that submits `script` and logs into `log`, both in the folder of the submission:
/// the `defaults`, the user's `options`, which override them, and then what the user may not override,
/// `own` among it. `sbatch` prints the number of the job alone (`--parsable`); a job that is queued again goes on in
/// the same log.
fn sbatch(
    job: &Job,
    defaults: &[&str],
    options: &[String],
    own: String,
    log: &str,
    script: &str,
) -> Vec<String> {
    let mut words = vec!["sbatch".to_owned()];
    words.extend(defaults.iter().map(|word| (*word).to_owned()));
    words.extend_from_slice(options);
    words.extend([own, "--parsable".into(), "--requeue".into(), "--open-mode=append".into()]);
    // Relative to --chdir, since a pattern gives some characters of a path a meaning.
    words.push(format!("--output={log}"));
    words.push(format!("--chdir={}", job.folder.to_string_lossy()));
    words.push(job.folder.join(script).to_string_lossy().into_owned());
    words
}

/// The text that `--dry-run` prints: the table of tasks, and each command with its script. The number of the
/// first job, on which the second depends, is not known yet.
fn dry_run(job: &Job, args: &Args, scripts: &[(&str, String); 2], table: &str) -> String {
    let mut out = String::from(table);
    let commands = [
        array_command(job, &args.sbatch),
        merge_command(job, &args.sbatch, "<number of the first job>"),
    ];
    for ((name, script), command) in scripts.iter().zip(commands) {
        let _ = write!(out, "\n{}\n\n{name}:\n\n{script}", typed(&command));
    }
    out
}

/// The text that is printed once both jobs (`ids`: the array, the merge) are submitted: how many cells they
/// run, where they write, and how they are watched and cancelled.
fn summary(job: &Job, cells: usize, plans: &[Plan], ids: [&slurm::Id; 2]) -> String {
    let [watch, cancel] = slurm::commands(ids);
    let [array, merge] = ids.map(|id| &id.number);
    let folder = job.folder.display();
    let [cells, tasks] = [count(cells, "cell"), count(job.tasks as usize, "task")];
    let experiments = count(plans.len(), "experiment");
    format!(
        "{cells} of {experiments} in {tasks}\n\
         job {array}: the tasks; job {merge}: merges into {}, writes {}\n\
         watch:   {watch}\n\
         logs:    {folder}/*.log\n\
         cancel:  {cancel}\n\
         \x20        (without {merge}: the finished cells are merged)\n",
        job.out.display(),
        job.reports.display()
    )
}
