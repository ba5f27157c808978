//! `history`: how the committed reports changed from commit to commit, read from git alone.

use super::diff::{Compared, FAIL_ON, RECORDS, address, classes, revision_name};
use super::outcome::{Code, Failure, print};
use crate::compare::history::{History, HistoryStep, benchmarks};
use crate::compare::record;
use crate::report::diff::DiffFormat;
use crate::report::history::{BENCHMARKS, HistoryScope, render};
use crate::store::git::{self, Commit};
use exactfed_runner::files::{Error, error, write_named};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(
    after_help = "Example: exactfed history\n         exactfed history v0.1.0..HEAD --format html --out history.html\n         exactfed history --format html --out history.html --diffs diffs\n\nExit codes: 0 done; 2 bad input; 3 no commit changes reports or benchmarks."
)]
pub struct Args {
    /// A..B: the commits after A up to B, along first parents; B: the last 100 up to B
    #[arg(value_name = "A..B", default_value = "HEAD")]
    range: String,
    /// Folder of the repository with reports
    #[arg(long, value_name = "FOLDER", default_value = "reports")]
    reports: String,
    /// Output format
    #[arg(long, value_parser = ["text", "md", "html"], default_value = "text")]
    format: String,
    /// File to write instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Folder for a page of each diff, to which the history links
    #[arg(long, value_name = "FOLDER")]
    diffs: Option<PathBuf>,
}

/// The most commits that are read where the range has no beginning.
const MOST: usize = 100;

/// The command `history`: reads the committed reports commit by commit, compares each commit with the one before, and
/// prints or writes the history; with `--diffs`, also a page for each comparison.
///
/// # Errors
/// If no commit of the range changes reports or benchmarks, or git cannot be run.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let folder = args.reports.trim_matches('/');
    let (base, commits) = commits(&args.range, folder)?;
    if commits.is_empty() {
        let message = format!(
            "error: {}: no commit changes {folder}/ or {}",
            args.range,
            BENCHMARKS.join("/")
        );
        return Err(Failure { code: Code::NotComparable, ..Failure::input(message) });
    }
    let is_cut = base.is_some() && !args.range.contains("..");
    let last = if is_cut { format!(", the last {MOST} commits") } else { String::new() };
    let mut history = History::default();
    let mut files = BTreeMap::new();
    // The commits of the range have the numbers 1, 2, …; 0 is the one with which the first is compared.
    let numbers = usize::from(base.is_none())..;
    for (number, commit) in numbers.zip(base.into_iter().chain(commits)) {
        files = add_commit(&mut history, number, commit, folder, &files)?;
    }
    let mut pages = BTreeMap::new();
    if let Some(diffs) = &args.diffs {
        std::fs::create_dir_all(diffs).map_err(|e| error(diffs, e))?;
        for i in 1..history.steps.len() {
            let before = history.steps[i - 1].commit.id.clone();
            let path = write_diff_page(&before, &mut history.steps[i], diffs)?;
            let address = path.zip(args.out.as_ref()).and_then(|(path, out)| address(&path, out));
            pages.extend(address.map(|address| (history.steps[i].number, address)));
        }
    }
    let scope = HistoryScope { range: &(args.range.clone() + &last), folder, pages };
    let text = render(&history, &scope, &args.format)?;
    match &args.out {
        Some(path) => write_named(path, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(Code::Done)
}

/// The commits of a range (`A..B` or `B`) that change the reports in `folder` or the benchmarks, the oldest
/// first, and before them the commit with which the first is compared: A, or the one before the last
/// [`MOST`] up to B. The latter is `None` if there are no more than [`MOST`], whose first is then compared
/// with nothing.
///
/// # Errors
/// The message of git, if a revision is none.
fn commits(range: &str, folder: &str) -> Result<(Option<Commit>, Vec<Commit>), Failure> {
    let paths = [folder, &BENCHMARKS.join("/")];
    let Some((from, to)) = range.split_once("..") else {
        let mut found = git::log(&format!("--max-count={}", MOST + 1), &commit_id(range)?, paths)?;
        found.reverse();
        let base = (found.len() > MOST).then(|| found.remove(0));
        return Ok((base, found));
    };
    let from = commit_id(from)?;
    let to = commit_id(to)?;
    let mut found = git::log(&format!("^{from}"), &to, paths)?;
    found.reverse();
    // It is not listed, so that neither its date nor its subject is needed.
    let id = git::short(&from).to_owned();
    Ok((Some(Commit { id, date: String::new(), subject: String::new() }), found))
}

/// The id of the commit that a revision names; an end of a range that is empty is HEAD.
fn commit_id(revision: &str) -> Result<String, Error> {
    git::commit(if revision.is_empty() { "HEAD" } else { revision }, "no")
}

/// Adds a commit with this number to the history. `files` has, by path, the object ids of the commit before (none
/// before the first commit), and only experiments with a file that has another object id now are read. Returns the
/// object ids of this commit by path, for the next call. `folder` is the folder of the reports.
///
/// # Errors
/// If git cannot be run, or does not give the files. A file that is no record is noted in the history.
fn add_commit(
    history: &mut History,
    number: usize,
    commit: Commit,
    folder: &str,
    files: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let [docs, table] = BENCHMARKS;
    let mut now = git::listing(&commit.id, docs, &[table])?;
    now.retain(|(path, _)| path == table);
    now.extend(git::listing(&commit.id, folder, &RECORDS)?);
    let now: BTreeMap<String, String> = now.into_iter().collect();
    // The folder of a file is the name of its experiment; the table of benchmarks, without a folder, has none.
    let experiment = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let differs = |path: &&String| files.get(*path) != now.get(*path);
    let changed: BTreeSet<String> =
        files.keys().chain(now.keys()).filter(differs).map(|path| experiment(path)).collect();
    let wanted = now.iter().filter(|(path, _)| changed.contains(&experiment(path)));
    let (paths, ids): (Vec<String>, Vec<String>) =
        wanted.map(|(path, id)| (path.clone(), id.clone())).unzip();
    let name = commit.id.clone();
    let texts = git::blobs(&ids).map_err(|e| error(Path::new(&name), e))?;
    let (mut tables, texts): (Vec<_>, Vec<_>) =
        paths.into_iter().zip(texts).partition(|(path, _)| path == table);
    if changed.contains("") {
        match tables.pop() {
            // The commit has removed the table, and with it all benchmarks.
            None => history.note(number, table, &[]),
            Some((_, Ok(text))) => history.note(number, table, &benchmarks(&text)),
            // The benchmarks stay as they were, like the experiment of a record that is not read.
            Some((_, Err(wrong))) => {
                history.unread.push((wrong.to_string(), number, BENCHMARKS.join("/")));
            }
        }
    }
    let read = record::experiments(texts);
    // `None` stands for an experiment whose files the commit has removed.
    let mut found: BTreeMap<_, _> = changed.into_iter().map(|gone| (gone, None)).collect();
    found.extend(read.into_iter().map(|(experiment, read)| (experiment, Some(read))));
    history.push(number, commit, revision_name(&name, &name, folder), found);
    Ok(now)
}

/// Writes the page of the diff between a step of the history and the commit `before` it into a folder, which exists,
/// and returns the path of the page; writes none and returns `None` if no cell and no verdict changed. As for `diff`
/// without `--fail-on`, the page names the classes of [`FAIL_ON`] that occur.
fn write_diff_page(
    before: &str,
    step: &mut HistoryStep,
    folder: &Path,
) -> Result<Option<PathBuf>, Failure> {
    if step.comparison.is_unchanged() {
        return Ok(None);
    }
    let path = folder.join(format!("{before}-{}.html", step.commit.id));
    let classes = classes(&FAIL_ON.split(',').map(str::to_owned).collect::<Vec<_>>())?;
    // The comparison goes back into the step below: the page of the history shows it too.
    let compared = Compared::of_reports(std::mem::take(&mut step.comparison), classes);
    let text = compared.render(DiffFormat::Html(compared.drawn(None)))?;
    write_named(&path, text.as_bytes())?;
    step.comparison = compared.comparison;
    Ok(Some(path))
}
