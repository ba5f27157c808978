//! The history of reports: what changed from commit to commit, as a comparison finds it, and the
//! states of each claim. A benchmark is kept like the claim that its bar is met.
//!
//! *Invariant*: a record that cannot be read changes nothing: its experiment stays as it was, and
//! the record is named with the reason.

use super::claims::SideClaim;
use super::record::RECORD;
use super::side::{SCHEMA, Side, SideExperiment};
use super::{Comparison, Options, compare};
use crate::stats::verdict::Verdict;
use crate::store::git::Commit;
use std::collections::BTreeMap;

/// What a claim was, and from which commit on; `None` while it was not there.
pub type States = Vec<(usize, Option<SideClaim>)>;

/// A commit that changed reports or benchmarks.
pub struct HistoryStep {
    /// Its place in the history; 0 is the commit before the first.
    pub number: usize,
    /// The commit.
    pub commit: Commit,
    /// Its reports, compared with those before.
    pub comparison: Comparison,
}

/// The history of reports.
#[derive(Default)]
pub struct History {
    /// The commits, the oldest first.
    pub steps: Vec<HistoryStep>,
    /// The claims by experiment and name, and the benchmarks by file and name.
    pub states: BTreeMap<(String, String), States>,
    /// Records that cannot be read: the reason, the commit's number, the experiment.
    pub unread: Vec<(String, usize, String)>,
    side: Side,
}

impl History {
    /// Adds a commit, whose side has this name: the experiments whose files changed, or `None` if
    /// they are gone.
    pub fn push(
        &mut self,
        number: usize,
        (commit, name): (Commit, String),
        experiments: BTreeMap<String, Option<Result<SideExperiment, String>>>,
    ) {
        let mut after = Side { name, ..self.side.clone() };
        for (experiment, read) in experiments {
            let unread = match read {
                Some(Ok(record)) if record.schema == SCHEMA => {
                    self.note(number, &experiment, record.claims.as_deref().unwrap_or_default());
                    after.experiments.insert(experiment.clone(), record);
                    None
                }
                Some(Ok(_)) => Some(format!("no {RECORD} of schema {SCHEMA}")),
                Some(Err(why)) => Some(why),
                None => {
                    self.note(number, &experiment, &[]);
                    after.experiments.remove(&experiment);
                    None
                }
            };
            self.unread.extend(unread.map(|why| (why, number, experiment)));
        }
        let comparison = compare(&self.side, &after, &Options::default());
        self.steps.push(HistoryStep { number, commit, comparison });
        self.side = after;
    }

    /// Takes note of all claims of an experiment, or all benchmarks of a file.
    pub fn note(&mut self, number: usize, experiment: &str, claims: &[SideClaim]) {
        for ((of, id), states) in &mut self.states {
            let is_there = states.last().is_some_and(|(_, last)| last.is_some());
            if of == experiment && is_there && claims.iter().all(|claim| claim.id != *id) {
                states.push((number, None));
            }
        }
        let bits = |c: &SideClaim| (c.verdict, [c.estimate, c.low, c.high].map(f64::to_bits));
        for claim in claims {
            let states = self.states.entry((experiment.to_owned(), claim.id.clone())).or_default();
            match states.last_mut() {
                Some((_, Some(last))) if bits(last) == bits(claim) => *last = claim.clone(),
                _ => states.push((number, Some(claim.clone()))),
            }
        }
    }
}

/// The benchmarks of a Markdown table with the columns that `make bench` writes. Rows without a
/// bar or a number are left out.
pub fn benchmarks(text: &str) -> Vec<SideClaim> {
    let (mut found, mut columns): (Vec<SideClaim>, Option<Vec<usize>>) = (Vec::new(), None);
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let column = |name: &&str| cells.iter().position(|cell| cell.starts_with(*name));
        let heads: Option<Vec<usize>> =
            ["what", "bar", "measured", "holds"].iter().map(column).collect();
        columns = heads.or(columns);
        let values = columns.iter().flatten().map(|at| cells.get(*at).copied().unwrap_or_default());
        let [what, bar, measured, holds] = values.collect::<Vec<_>>()[..] else { continue };
        let verdict = match holds {
            "yes" => Verdict::Supported,
            "no" => Verdict::Refuted,
            _ => continue,
        };
        let Some((estimate, low, high)) = number(measured) else { continue };
        let mut id = format!("{what}, {bar}");
        while found.iter().any(|other| other.id == id) {
            id.push_str(", again");
        }
        let (statement, expected_refuted) = (measured.to_owned(), false);
        found.push(SideClaim { id, statement, verdict, expected_refuted, estimate, low, high });
    }
    found
}

/// The first number of a measurement with its interval, as in `5.08 ns (5.00 to 5.17)`.
fn number(measured: &str) -> Option<(f64, f64, f64)> {
    let first = measured.split([':', ';', ',']).next()?;
    let value = first.split_whitespace().find_map(|word| word.parse().ok())?;
    let ends =
        first.split_once('(').and_then(|(_, ends)| ends.trim_matches(')').split_once(" to "));
    let ends = ends.and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    let (low, high) = ends.unwrap_or((f64::NAN, f64::NAN));
    Some((value, low, high))
}
