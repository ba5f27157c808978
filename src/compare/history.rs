//! The history of reports: what changed from commit to commit, as a comparison finds it, and the
//! states of each claim. A benchmark is kept like the claim that its bar is met.
//!
//! *Invariant*: a record that cannot be read changes nothing: its experiment stays as it was, and
//! [`History::unread`] names it with the reason.

use super::claims::SideClaim;
use super::comparison::{Comparison, compare};
use super::judge::Options;
use super::record::{RECORD, RecordError};
use super::side::{SCHEMA, Side, SideExperiment};
use crate::evidence::claims::Estimate;
use crate::stats::verdict::Verdict;
use crate::store::git::Commit;
use std::collections::BTreeMap;

/// The states of a claim in the order of commits, each with the number of the commit that brought it. A state is the
/// claim with its verdict and estimate, or `None` if the commit removed it.
pub type States = Vec<(usize, Option<SideClaim>)>;

/// A commit that changed reports or benchmarks.
pub struct HistoryStep {
    /// Its place in the history; 0 is the commit before the first.
    pub number: usize,
    /// The commit.
    pub commit: Commit,
    /// Its reports, compared with the reports of the commit before it in the history.
    pub comparison: Comparison,
}

/// The history of reports.
#[derive(Default)]
pub struct History {
    /// The commits, the oldest first.
    pub steps: Vec<HistoryStep>,
    /// The states of the claims by experiment and name, and of the benchmarks by file and name. A claim without a
    /// second state has been the same since it came.
    pub states: BTreeMap<(String, String), States>,
    /// Records that cannot be read: the reason, the commit's number, the experiment.
    pub unread: Vec<(String, usize, String)>,
    /// The reports after the last commit.
    side: Side,
}

impl History {
    /// Adds a commit: compares its reports with those of the commit that was added last, and notes the states of its
    /// claims. The first commit is compared with a side without experiments. The other arguments are the number of the
    /// commit in the history, the name of its side in the comparison, and the experiments whose files the commit
    /// changed: what was read of the files, or `None` if the commit removed them. All other experiments are as they
    /// were. Commits must be added from the oldest to the newest.
    pub fn push(
        &mut self,
        number: usize,
        commit: Commit,
        name: String,
        experiments: BTreeMap<String, Option<Result<SideExperiment, RecordError>>>,
    ) {
        let mut after = Side { name, ..self.side.clone() };
        for (experiment, read) in experiments {
            match read {
                Some(Ok(record)) if record.schema == SCHEMA => {
                    self.note(number, &experiment, record.claims.as_deref().unwrap_or_default());
                    after.experiments.insert(experiment, record);
                }
                Some(Ok(_)) => {
                    let why = format!("no {RECORD} of schema {SCHEMA}");
                    self.unread.push((why, number, experiment));
                }
                Some(Err(error)) => self.unread.push((error.to_string(), number, experiment)),
                None => {
                    self.note(number, &experiment, &[]);
                    after.experiments.remove(&experiment);
                }
            }
        }
        let comparison = compare(&self.side, &after, &Options::default());
        self.steps.push(HistoryStep { number, commit, comparison });
        self.side = after;
    }

    /// Notes the states of the claims of an experiment at the commit of this number, or of the benchmarks of a file,
    /// whose name `experiment` is then. `claims` are all that it has after this commit: those that are known and not
    /// among them were removed. A claim gets a new state only where it is new, where it was removed or comes back, or
    /// where its verdict, estimate or interval changed.
    pub fn note(&mut self, number: usize, experiment: &str, claims: &[SideClaim]) {
        for ((known_experiment, id), states) in &mut self.states {
            let was_there = states.last().is_some_and(|(_, last)| last.is_some());
            let is_there = claims.iter().any(|claim| claim.id == *id);
            if known_experiment == experiment && was_there && !is_there {
                states.push((number, None));
            }
        }
        for claim in claims {
            let key = (experiment.to_owned(), claim.id.clone());
            let states = self.states.entry(key).or_default();
            match states.last_mut() {
                // Another wording of the statement is no new state.
                Some((_, Some(last))) if has_same_result(last, claim) => *last = claim.clone(),
                _ => states.push((number, Some(claim.clone()))),
            }
        }
    }
}

/// Whether two claims have the same verdict and the same bits of the estimate and its interval.
fn has_same_result(a: &SideClaim, b: &SideClaim) -> bool {
    a.verdict == b.verdict && estimate_bits(a) == estimate_bits(b)
}

/// The bits of the estimate and the ends of its interval, which are equal also where an end is NaN.
fn estimate_bits(claim: &SideClaim) -> [u64; 3] {
    [claim.estimate, claim.low, claim.high].map(f64::to_bits)
}

/// Reads the benchmarks of a Markdown file with tables as `make bench` writes them, each as the claim that the bar is
/// met: the verdict is supported if it is. Rows that do not say `yes` or `no`, or have no number, are left out. A
/// name is what is measured with its bar; if a name occurs again, `, again` is added to it.
pub fn benchmarks(text: &str) -> Vec<SideClaim> {
    let mut found: Vec<SideClaim> = Vec::new();
    let mut columns = None;
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        // A line of headings begins another table.
        columns = benchmark_columns(&cells).or(columns);
        let Some(columns) = columns else { continue };
        let values = columns.map(|column: usize| cells.get(column).copied().unwrap_or_default());
        let [what, bar, measured, holds] = values;
        let verdict = match holds {
            "yes" => Verdict::Supported,
            "no" => Verdict::Refuted,
            _ => continue,
        };
        let Some(estimate) = parse_estimate(measured) else { continue };
        let mut id = format!("{what}, {bar}");
        while found.iter().any(|other| other.id == id) {
            id.push_str(", again");
        }
        found.push(SideClaim {
            id,
            statement: measured.to_owned(),
            verdict,
            expected_refuted: false,
            estimate: estimate.value,
            low: estimate.interval.0,
            high: estimate.interval.1,
        });
    }
    found
}

/// Where the columns of a table of benchmarks are, by the line of its headings: what is measured, the bar, the
/// measurement, and whether the bar is met. `None` if the line lacks one of these headings.
fn benchmark_columns(headings: &[&str]) -> Option<[usize; 4]> {
    let find = |name: &str| headings.iter().position(|heading| heading.starts_with(name));
    Some([find("what")?, find("bar")?, find("measured")?, find("holds")?])
}

/// The first number of a measurement with its interval, as in `5.08 ns (5.00 to 5.17)`, in whatever unit it is. The
/// ends of the interval are NaN if the text has none; `None` if it has no number before the first `:`, `;` or `,`,
/// which begins another measurement or a remark.
fn parse_estimate(measured: &str) -> Option<Estimate> {
    let first = measured.split([':', ';', ',']).next()?;
    let value = first.split_whitespace().find_map(|word| word.parse().ok())?;
    let interval = parse_interval(first).unwrap_or((f64::NAN, f64::NAN));
    Some(Estimate { value, interval })
}

/// The ends of the interval that a measurement has in brackets, as `(5.00 to 5.17)`; `None` if it has none.
fn parse_interval(measured: &str) -> Option<(f64, f64)> {
    let (_, interval) = measured.split_once('(')?;
    let (low, high) = interval.trim_matches(')').split_once(" to ")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}
