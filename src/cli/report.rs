//! `report`: writes reports from results.

use super::code::{load_for_cells, load_for_problems, load_python};
use super::memory;
use super::outcome::{Code, Failure};
use super::progress;
use super::verify::{Findings, stored_plans};
use crate::chart::export::{COLUMN, TEXT};
use crate::evidence::claims::JudgedClaim;
use crate::evidence::frontier::{ComputedFrontier, are_known, frontiers};
use crate::evidence::{Experiment, analyse_with, tuned};
use crate::report::{Format, IndexEntry, Writer};
use crate::stats::verdict::Verdict;
use crate::store::{self, ListedExperiment, Store};
use clap::builder::PossibleValuesParser;
use exactfed_core::words::count;
use exactfed_runner::manifest::claim::ClaimKeys;
use exactfed_runner::panics::caught;
use exactfed_runner::plan::{Cell, Plan};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
Results run no Python code unasked. The frontier of an algorithm whose code is not at hand is \
computed with --run-code, or by a report where the code is, and kept with the results.

With the format latex, each report also contains tables.tex, its tables for \\input (booktabs). With \
pdf, png and svg, each figure is also a file figures/<id>.pdf for \\includegraphics, whose text is \
outlines, figures/<id>.png, at 300 pixels per inch, and figures/<id>.paper.svg.

Example: exactfed report results --out paper --format latex,pdf --figure-width column")]
pub struct Args {
    /// Folder of the results
    #[arg(default_value = "results")]
    results: PathBuf,
    /// Folder of the reports
    #[arg(long, value_name = "DIR", default_value = "reports")]
    out: PathBuf,
    /// Formats to write
    #[arg(long, value_delimiter = ',', default_values = ["html", "md"])]
    #[arg(value_parser = PossibleValuesParser::new(Format::ALL.map(|(_, name)| name)))]
    format: Vec<String>,
    /// Width of these figures: column (3.25in) or text (6.75in) of a paper with two columns,
    /// or a length such as 5.5in, 89mm or 240pt [default: text]
    #[arg(long, value_name = "WIDTH", value_parser = figure_inches)]
    figure_width: Option<f64>,
    /// File of Python code that defines algorithms of the results (may be repeated)
    #[arg(long, value_name = "FILE")]
    run_code: Vec<PathBuf>,
    /// Print errors only
    #[arg(long, short)]
    quiet: bool,
}

/// The widths of figures that `--figure-width` allows, in inches.
const WIDTHS: std::ops::RangeInclusive<f64> = 1.0..=20.0;

/// A text is no width of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WidthError {
    /// It is not a name of a width, nor a number with a unit.
    #[error("expected column, text, or a length such as 5.5in, 89mm, 9cm or 240pt")]
    NoLength,
    /// It is too narrow or too wide.
    #[error("a figure is from {} to {} inches wide", WIDTHS.start(), WIDTHS.end())]
    OutOfRange,
}

/// The width of figures in inches that a text names: `column` or `text` of a paper with two columns, or a
/// length such as `89mm`; `pt` is 1/72 of an inch.
///
/// # Errors
/// If it names no length, or one out of range; the message says what is allowed.
pub fn figure_inches(text: &str) -> Result<f64, WidthError> {
    let length = || {
        let units = [("in", 1.0), ("mm", 25.4), ("cm", 2.54), ("pt", 72.0)];
        let mut found =
            units.iter().filter_map(|(unit, per)| Some((text.strip_suffix(unit)?, per)));
        let (number, per) = found.next()?;
        Some(number.trim_end().parse::<f64>().ok()? / per)
    };
    let width = match text {
        "column" => COLUMN,
        "text" => TEXT,
        _ => length().ok_or(WidthError::NoLength)?,
    };
    if WIDTHS.contains(&width) { Ok(width) } else { Err(WidthError::OutOfRange) }
}

/// The command `report`: writes the pages of all experiments of a results folder. Of Python code, only the algorithms
/// that the package ships are loaded, and what `--run-code` names.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let formats: Vec<Format> = args.format.iter().filter_map(|name| Format::named(name)).collect();
    if args.figure_width.is_some() && !formats.iter().any(|format| format.has_width()) {
        return Err(Failure::input(
            "error: --figure-width is for figures as PDF, PNG or SVG: add --format pdf, png or svg",
        ));
    }
    let store = Store::open_existing(&args.results)?;
    if !args.run_code.is_empty() {
        load_for_problems(&store, &args.run_code)?.iter().for_each(|line| eprintln!("{line}"));
        let plans = stored_plans(&store, None, &mut Findings::default())?;
        load_for_cells(&plans, &args.run_code)?.iter().for_each(|line| eprintln!("{line}"));
    }
    let mut writer = Writer::new(&args.out, &formats)?;
    writer.inches = args.figure_width.unwrap_or(TEXT);
    write_all(stored(&store)?, BTreeMap::new(), &store, &writer, args.quiet)
}

/// All experiments of a results folder, each as it was last run or with why it cannot be read. The Python
/// algorithms that the package ships, where manifests name them, are loaded, and no other code.
///
/// # Errors
/// If the folder cannot be listed.
pub fn stored<'p>(store: &Store) -> Result<Vec<Subject<'p>>, Failure> {
    let listing = store.listing()?;
    let known = listing.iter().filter_map(|(_, experiment)| experiment.as_ref().ok());
    // Pages of cells need no code, and a frontier says that it does.
    known.for_each(|experiment| drop(load_python(&experiment.source)));
    Ok(listing.into_iter().map(|listed| Subject::Stored(Box::new(listed))).collect())
}

/// An experiment whose pages are to be written, and where its manifest comes from.
pub enum Subject<'p> {
    /// The manifest as the command read it, for `reproduce`.
    Planned(&'p Plan),
    /// The manifest in the results, as the experiment was last run.
    Stored(Box<ListedExperiment>),
}

impl Subject<'_> {
    /// The name of the experiment.
    pub fn name(&self) -> &str {
        match self {
            Self::Planned(plan) => &plan.experiment,
            Self::Stored(listed) => &listed.0,
        }
    }

    /// Analyses the results of the experiment, with the cells that follow from results, and writes its pages; `printed`
    /// says what is printed meanwhile. The index is not written: [`write_index`] does that with what is returned.
    ///
    /// # Errors
    /// The name of the experiment, and why it cannot be reported.
    pub fn write(
        self,
        store: &Store,
        writer: &Writer,
        printed: Printed,
    ) -> Result<Written, Unreported> {
        match self {
            Self::Planned(plan) => write_one(plan, store, writer, printed),
            Self::Stored(listed) => {
                let (name, experiment) = *listed;
                let plan = experiment.map_err(Failure::from).and_then(plan);
                write_one(&plan.map_err(|e| unreported(name, &e))?, store, writer, printed)
            }
        }
    }
}

/// The plan of an experiment as it was last run, with the cells that its manifest lists: none that follow
/// from results. The caller has loaded what code of Python it may.
///
/// # Errors
/// If the stored manifest is no longer valid.
pub fn plan(experiment: store::StoredExperiment) -> Result<Plan, Failure> {
    let source = experiment.source();
    Ok(crate::evidence::plan(experiment.name, source)?)
}

/// The formats in which `run --live` and `reproduce` write reports, where nobody chooses formats.
pub const FORMATS: [Format; 2] = [Format::Html, Format::Md];

/// What the index needs of an experiment whose pages were written, and a message for each claim
/// that did not end as the manifest expects.
pub type Written = (IndexEntry, Vec<String>);

/// Analyses the results of a plan, with the cells that follow from results, and writes its pages; that these show
/// verdicts is noted in the results. A panic is a reason like any other, so that the other experiments are reported.
fn write_one(
    plan: &Plan,
    store: &Store,
    writer: &Writer,
    printed: Printed,
) -> Result<Written, Unreported> {
    let work = || -> Result<Written, Failure> {
        let followed = if plan.tuning.is_some() {
            // A plan follows results once, from what its manifest lists.
            let listed = crate::evidence::plan(plan.experiment.clone(), plan.source.clone())?;
            Some(tuned::follow(listed, store)?)
        } else {
            None
        };
        let plan = followed.as_ref().unwrap_or(plan);
        store.refuse_removed(plan)?;
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        memory::fits_instances(plan, &cells)?;
        let mut experiment = analyse_with(plan, store, frontiers_of(plan, store, printed)?)?;
        if shows_unplanned_verdicts(&experiment) {
            store.note_shown(plan);
        }
        if writer.of_manifests {
            // `unplanned` is what the page would say of earlier looks at the verdicts that were not planned. That is in
            // the results alone, on which such pages must not depend.
            let left_out = std::mem::take(&mut experiment.unplanned).warning();
            if !left_out.is_empty() && printed != Printed::Nothing {
                eprintln!("{}: {left_out} {NOT_ON_PAGE}", plan.experiment);
            }
        }
        Ok((writer.page(&experiment)?, contradictions(&experiment)))
    };
    let done = caught(work).unwrap_or_else(|said| Err(Failure::input(said)));
    done.map_err(|e| unreported(plan.experiment.clone(), &e))
}

/// The sentence that follows a warning which `reproduce` prints instead of writing it on the page.
const NOT_ON_PAGE: &str = "The page does not say so, since `reproduce` writes pages that depend on the manifests alone: if the manifest was changed after verdicts had been seen, add an [[amendment]] to it.";

/// Whether a page shows verdicts that rest on runs and were not planned as one of several looks. The results
/// then note it, since replicates that are added later would be a second look at them.
fn shows_unplanned_verdicts(experiment: &Experiment<'_>) -> bool {
    // `n` is the number of replicates on which a verdict rests, 0 where it rests on theory alone or nothing was tested.
    let rests_on_runs = |claim: &JudgedClaim<'_>| claim.n > 0;
    experiment.looks.is_none() && experiment.claims.iter().any(rests_on_runs)
}

/// Computes the frontiers of a plan with their maps, or reads them from the cache of the results; what is computed is
/// cached. If they are not cached, the progress is printed where `printed` says so, since they may take minutes.
///
/// # Errors
/// If a problem of the frontiers cannot be built, or no algorithm reaches any target.
fn frontiers_of<'a>(
    plan: &'a Plan,
    store: &Store,
    printed: Printed,
) -> Result<Vec<ComputedFrontier<'a>>, Failure> {
    let computed = if are_known(plan, store) {
        frontiers(plan, store, &|_| ())
    } else {
        progress::of_frontiers(&plan.experiment, printed != Printed::Progress, |worked| {
            frontiers(plan, store, worked)
        })
    };
    Ok(computed?)
}

/// What is printed on standard error before a report ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// Nothing.
    Nothing,
    /// Warnings.
    Warnings,
    /// Warnings, and how far what takes time is.
    Progress,
}

impl Printed {
    /// What a command prints, with `--quiet` or without.
    pub fn by_command(quiet: bool) -> Self {
        if quiet { Self::Warnings } else { Self::Progress }
    }
}

/// Which experiments were reported, and which claims contradict their manifests.
pub struct Reported {
    /// The number of experiments whose pages are written.
    pub written: usize,
    /// The experiments that could not be reported, and why.
    pub failed: Vec<Unreported>,
    /// A message for each claim that did not end as its manifest expects.
    pub contradictions: Vec<String>,
}

/// Writes the pages of all experiments of a results folder, and the index of all pages, for Python. Experiments that
/// cannot be reported are in the result, and nothing is printed about them.
///
/// # Errors
/// If the index cannot be written.
pub fn report_results(
    store: &Store,
    writer: &Writer,
    printed: Printed,
) -> Result<Reported, Failure> {
    report_all(stored(store)?, BTreeMap::new(), store, writer, printed)
}

/// Writes the pages of these experiments, several in parallel, and the index. The experiments in `before`, by
/// name, have pages that are up to date: they are not analysed again and have their entry in the index.
fn report_all(
    subjects: Vec<Subject<'_>>,
    mut before: BTreeMap<String, Written>,
    store: &Store,
    writer: &Writer,
    printed: Printed,
) -> Result<Reported, Failure> {
    let subjects = subjects.into_iter().map(|subject| (before.remove(subject.name()), subject));
    let subjects: Vec<_> = subjects.collect();
    let one = |(before, subject): (Option<Written>, Subject<'_>)| {
        before.map_or_else(|| subject.write(store, writer, printed), Ok)
    };
    // Results keep the order of the experiments.
    let each: Vec<_> = subjects.into_par_iter().with_max_len(1).map(one).collect();
    write_index(each, writer)
}

/// Writes the pages about all experiments (the index and the list of claims), given what became of the pages of
/// each experiment, and counts what was reported.
///
/// # Errors
/// If these pages cannot be written.
pub fn write_index(
    each: impl IntoIterator<Item = Result<Written, Unreported>>,
    writer: &Writer,
) -> Result<Reported, Failure> {
    let mut entries = Vec::new();
    let mut failed = Vec::new();
    let mut contradictions = Vec::new();
    for one in each {
        match one {
            Ok((entry, found)) => {
                entries.push(entry);
                contradictions.extend(found);
            }
            Err(unreported) => failed.push(unreported),
        }
    }
    let written = entries.len();
    writer.index(entries, &failed)?;
    Ok(Reported { written, failed, contradictions })
}

/// Writes the pages of these experiments and the index as [`report_all`] does, prints what could not be
/// reported and which claims contradict their manifests, and returns the exit code: [`Code::BadInput`] if an experiment
/// could not be reported, and else [`Code::Refuted`] if a claim contradicts its manifest. `before` has the entries of
/// experiments whose pages are up to date, by name.
pub fn write_all(
    subjects: Vec<Subject<'_>>,
    before: BTreeMap<String, Written>,
    store: &Store,
    writer: &Writer,
    quiet: bool,
) -> Result<Code, Failure> {
    let reported = report_all(subjects, before, store, writer, Printed::by_command(quiet))?;
    for (name, reason) in &reported.failed {
        eprintln!("error: {name} cannot be reported: {reason}");
    }
    reported.contradictions.iter().for_each(|message| eprintln!("{message}"));
    if !quiet {
        let index = writer.index_file();
        eprintln!("{} written: open {}", count(reported.written, "report"), index.display());
    }
    Ok(match (reported.failed.is_empty(), reported.contradictions.is_empty()) {
        (false, _) => Code::BadInput,
        (true, false) => Code::Refuted,
        (true, true) => Code::Done,
    })
}

/// The name of an experiment whose pages could not be written, and why.
pub type Unreported = (String, String);

/// The name of an experiment and why it cannot be reported: the message of the failure without the prefix
/// `error: ` and without the name, which callers print before it.
fn unreported(name: String, failure: &Failure) -> Unreported {
    let reason = failure.message.strip_prefix("error: ").unwrap_or(&failure.message).trim_end();
    let rest = reason.strip_prefix(name.as_str()).and_then(|r| r.strip_prefix(": "));
    let reason = rest.unwrap_or(reason).to_owned();
    (name, reason)
}

/// A message for each claim that did not end as the manifest expects. An inconclusive claim contradicts nothing.
fn contradictions(experiment: &Experiment<'_>) -> Vec<String> {
    let name = &experiment.plan.experiment;
    let messages = experiment.claims.iter().filter_map(|claim| {
        let ended = claim.contradiction()?;
        let is_untested = claim.judgement.verdict == Verdict::NotTested;
        let reason = claim.untested.first().filter(|_| is_untested);
        let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
        let ClaimKeys { id, statement, .. } = claim.common;
        Some(format!("{name}: the claim \"{id}\" is {ended}{reason}: {statement}"))
    });
    messages.collect()
}
