//! A comparison as JSON, with numbers as numbers. docs/notes/diff.md says what each key means; the keys are written in
//! the order of the fields.

use crate::compare::{
    Change, ChangeVerdict, ClaimChange, Class, Comparison, Incomparable, ListedCell, OtherProblem,
    OtherSetting, SideClaim, Timing,
};
use exactfed_runner::plan::CellId;
use serde::Serialize;
use std::collections::BTreeMap;

/// A comparison with everything that was found, none of which is truncated.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct JsonComparison<'c> {
    schema: u32,
    before: &'c str,
    after: &'c str,
    margin: f64,
    comparable: bool,
    fails: BTreeMap<&'static str, usize>,
    incomparable: &'c [Incomparable],
    other_problems: Vec<JsonOtherProblem<'c>>,
    removed: &'c [ListedCell],
    added: &'c [ListedCell],
    identical: usize,
    tested: usize,
    verdicts: BTreeMap<&'static str, usize>,
    changed: Vec<JsonChange<'c>>,
    claims: Vec<JsonClaimChange<'c>>,
    #[serde(rename = "claims-untold")]
    without_claims: &'c [String],
    timings: &'c [Timing],
}

/// A cell that is not compared, since its counterpart has another problem or start.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct JsonOtherProblem<'c> {
    experiment: &'c str,
    cell: CellId,
    cell_before: CellId,
    name: &'c str,
    other_settings: &'c [OtherSetting],
}

/// A cell whose bits changed.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct JsonChange<'c> {
    experiment: &'c str,
    cell: CellId,
    cell_before: CellId,
    name: &'c str,
    verdict: &'static str,
    other_settings: &'c [OtherSetting],
    /// The numbers of replicates before and after; both are 0 of a change that failed or recovered.
    runs: (usize, usize),
    /// The numbers of replicates that diverged, before and after; both are 0 where those of `runs` are.
    diverged: (usize, usize),
    /// How many times larger the error is after.
    ratio: Option<f64>,
    /// The lower and the upper limit of the ratio.
    interval: Option<[f64; 2]>,
    p: Option<f64>,
    /// The ratio that would have been detected four times out of five.
    detectable: Option<f64>,
    note: &'c str,
}

/// A claim whose verdict changed, or that one side lacks.
#[derive(Serialize)]
struct JsonClaimChange<'c> {
    experiment: &'c str,
    id: &'c str,
    statement: &'c str,
    before: Option<JsonSideClaim>,
    after: Option<JsonSideClaim>,
    fails: bool,
}

/// A claim on one side.
#[derive(Serialize)]
struct JsonSideClaim {
    verdict: &'static str,
    estimate: f64,
    interval: [f64; 2],
}

impl<'c> JsonComparison<'c> {
    /// The comparison; `fails` are the classes of `--fail-on` that occurred, each with the number of its changes.
    pub fn new(comparison: &'c Comparison, fails: &[(Class, usize)]) -> Self {
        let verdicts = ChangeVerdict::ALL.map(|(v, name, _)| (name, comparison.count_verdict(v)));
        Self {
            schema: 1,
            before: &comparison.sides.0,
            after: &comparison.sides.1,
            margin: comparison.margin,
            comparable: !comparison.is_empty(),
            fails: fails.iter().map(|(class, count)| (class.name(), *count)).collect(),
            incomparable: &comparison.incomparable,
            other_problems: comparison.problems.iter().map(JsonOtherProblem::new).collect(),
            removed: &comparison.removed,
            added: &comparison.added,
            identical: comparison.identical,
            tested: comparison.tested,
            verdicts: verdicts.into(),
            changed: comparison.changed.iter().map(JsonChange::new).collect(),
            claims: comparison.claims.iter().map(JsonClaimChange::new).collect(),
            without_claims: &comparison.without_claims,
            timings: &comparison.timings,
        }
    }
}

impl<'c> JsonOtherProblem<'c> {
    /// A cell with the settings in which its counterpart differs.
    fn new(OtherProblem { experiment, name, pair, .. }: &'c OtherProblem) -> Self {
        Self {
            experiment,
            cell: pair.after,
            cell_before: pair.before,
            name,
            other_settings: &pair.other,
        }
    }
}

impl<'c> JsonChange<'c> {
    /// A change, whose natural logarithms of ratios become ratios. Numbers that are not finite become `null`.
    fn new(change: &'c Change) -> Self {
        Self {
            experiment: &change.experiment,
            cell: change.pair.after,
            cell_before: change.pair.before,
            name: &change.name,
            verdict: change.verdict.name(),
            other_settings: &change.pair.other,
            runs: change.runs(),
            diverged: change.diverged(),
            ratio: change.ratio(),
            interval: change.shift.map(|s| [libm::exp(s.interval.0), libm::exp(s.interval.1)]),
            p: change.p,
            detectable: change.detectable.map(libm::exp),
            note: &change.note,
        }
    }
}

impl<'c> JsonClaimChange<'c> {
    /// A claim with its state on each side that has it.
    fn new(change: &'c ClaimChange) -> Self {
        Self {
            experiment: &change.experiment,
            id: &change.id,
            statement: &change.statement,
            before: change.before.as_ref().map(JsonSideClaim::new),
            after: change.after.as_ref().map(JsonSideClaim::new),
            fails: change.fails,
        }
    }
}

impl JsonSideClaim {
    /// The verdict, the estimate and its interval on one side. Numbers that are not finite become `null`.
    fn new(claim: &SideClaim) -> Self {
        Self {
            verdict: claim.verdict.name(),
            estimate: claim.estimate,
            interval: [claim.low, claim.high],
        }
    }
}
