//! The history of reports as text, Markdown or a page.

use super::claims::side_estimate;
use super::diff::clean;
use super::interval_chart;
use super::templates::Templates;
use crate::compare::SideClaim;
use crate::compare::history::{History, HistoryStep, States};
use crate::evidence::claims::Estimate;
use exactfed_runner::files::Error;
use minijinja::context;
use minijinja::value::{Serde, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Folder and file of a repository in which a table of benchmarks is looked for. The rows of the table are followed as
/// claims are; the name of the file stands in place of their experiment.
pub const BENCHMARKS: [&str; 2] = ["docs/notes", "performance.md"];

/// Which commits and which reports a history is about.
pub struct HistoryScope<'a> {
    /// The range of commits in words.
    pub range: &'a str,
    /// The folder with reports.
    pub folder: &'a str,
    /// The page of the diff between a commit and the one before it, relative to the page of the history, by the number
    /// of the commit.
    pub pages: BTreeMap<usize, String>,
}

/// The history in a format: `text`, `md` or `html`, the only ones that have a template. It lists the commits that
/// changed results, and the claims whose verdict or estimate moved.
///
/// # Errors
/// If a template fails.
pub fn render(history: &History, scope: &HistoryScope<'_>, format: &str) -> Result<String, Error> {
    let mut claims = Vec::new();
    for ((experiment, id), states) in &history.states {
        if states.len() > 1 {
            claims.push(claim(experiment, id, states));
        }
    }
    let before = [None].into_iter().chain(history.steps.iter().map(Some));
    // The step 0, if there is one, is the state with which the first commit of the range is compared.
    let steps = before.zip(&history.steps).filter(|(_, step)| step.number > 0);
    let mut unread: BTreeMap<&str, (BTreeSet<usize>, BTreeSet<&str>)> = BTreeMap::new();
    for (why, number, experiment) in &history.unread {
        let (numbers, experiments) = unread.entry(why).or_default();
        numbers.insert(*number);
        experiments.insert(experiment);
    }
    let values = context! {
        range => clean(scope.range), folder => scope.folder,
        benchmarks => BENCHMARKS[1], unread => Value::from(Serde(&unread)),
        steps => steps.map(|(before, now)| step(history, scope, before, now)).collect::<Vec<_>>(),
        claims,
        total => history.states.keys().filter(|(of, _)| of != BENCHMARKS[1]).count(),
    };
    Templates::new().render(&format!("history.{format}").replace("text", "txt"), values)
}

/// A claim, or a benchmark, that has had several states, as templates see it: the newest state comes first. The key
/// `changed` says whether the verdict changed; otherwise only the estimate or its interval did, or the claim was
/// removed.
fn claim(experiment: &str, id: &str, states: &States) -> Value {
    let known = || states.iter().filter_map(|(_, claim)| claim.as_ref());
    let verdicts: BTreeSet<&str> = known().map(|claim| claim.verdict.name()).collect();
    let estimates = states.iter().map(|(_, claim)| match claim {
        Some(claim) => claim.estimate(),
        None => Estimate::NONE,
    });
    let drawings = interval_chart::rows(&estimates.collect::<Vec<_>>());
    let mut rows = Vec::new();
    for ((number, claim), drawing) in states.iter().zip(drawings).rev() {
        rows.push(row(*number, claim.as_ref(), &drawing));
    }
    context! {
        experiment, id => clean(id), changed => verdicts.len() > 1,
        statement => known().next_back().map(|claim| clean(&claim.statement)),
        rows,
    }
}

/// The verdict and the estimate of a claim after the commit of this number, as templates see them, with the drawing of
/// the estimate. Where `claim` is `None`, since the reports of the commit do not have the claim, there are neither.
fn row(number: usize, claim: Option<&SideClaim>, drawing: &str) -> Value {
    let estimate = side_estimate(claim);
    context! { number, estimate, drawing, verdict => claim.map(|claim| claim.verdict.name()) }
}

/// What a commit changed, as templates see it: how many cells of each experiment, claims and benchmarks. `before` is
/// the commit that it is compared with, `None` if it is compared with nothing. The key `verdicts` counts claims that
/// have another verdict than before, `claims` those with another verdict, estimate or interval; `quiet` says that
/// nothing changed, so that templates only count the commit.
fn step(
    history: &History,
    scope: &HistoryScope<'_>,
    before: Option<&HistoryStep>,
    HistoryStep { number, commit, comparison }: &HistoryStep,
) -> Value {
    // How many cells changed, have another problem, are new and are gone, in this order: in each experiment, and in
    // all.
    let mut cells: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut all = [0; 4];
    let changed = comparison.changed.iter().map(|change| (0, &change.experiment));
    let problems = comparison.problems.iter().map(|problem| (1, &problem.experiment));
    let added = comparison.added.iter().map(|lone| (2, &lone.experiment));
    let removed = comparison.removed.iter().map(|lone| (3, &lone.experiment));
    for (column, experiment) in changed.chain(problems).chain(added).chain(removed) {
        cells.entry(experiment).or_default()[column] += 1;
        all[column] += 1;
    }
    let Moved { claims, benchmarks } = Moved::count(history, *number);
    let quiet = comparison.is_unchanged() && claims + benchmarks == 0;
    let both = comparison.claims.iter().filter(|c| c.before.is_some() && c.after.is_some());
    context! {
        number, cells, all, id => &commit.id, date => &commit.date,
        before => before.map(|before| &before.commit.id),
        subject => clean(&commit.subject), verdicts => both.count(),
        claims, benchmarks, quiet,
        incomparable => comparison.incomparable.len(), page => scope.pages.get(number),
    }
}

/// How many claims and benchmarks have another verdict or estimate since a commit.
#[derive(Default)]
struct Moved {
    claims: usize,
    benchmarks: usize,
}

impl Moved {
    /// The counts for the commit of this number. The first state of a claim or benchmark is the state in which it came,
    /// and no change.
    fn count(history: &History, commit: usize) -> Self {
        let mut all = Self::default();
        for ((experiment, _), states) in &history.states {
            let has_moved =
                states.iter().skip(1).any(|(at, claim)| *at == commit && claim.is_some());
            let is_benchmark = experiment == BENCHMARKS[1];
            let count = if is_benchmark { &mut all.benchmarks } else { &mut all.claims };
            *count += usize::from(has_moved);
        }
        all
    }
}
