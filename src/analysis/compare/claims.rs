//! Claims on two sides: which verdicts are others.

use crate::analysis::claims::JudgedClaim;
use crate::stats::verdict::Verdict;
use driftbench_runner::manifest::claim::Expected;

/// What is kept of a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideClaim {
    /// Its name.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// `supported`, `refuted`, `inconclusive` or `not tested`.
    pub verdict: String,
    /// Whether the manifest expects it to be refuted.
    pub expected_refuted: bool,
    /// The estimate.
    pub estimate: f64,
    /// Ends of its 95 % interval.
    pub interval: (f64, f64),
}

impl SideClaim {
    /// What is kept of a claim that was judged.
    pub fn of(claim: &JudgedClaim) -> Self {
        Self {
            id: claim.id.clone(),
            statement: claim.statement.clone(),
            verdict: claim.verdict.map_or("not tested", Verdict::name).to_owned(),
            expected_refuted: claim.expected.0 == Expected::Refuted,
            estimate: claim.estimate,
            interval: claim.interval,
        }
    }
}

/// A claim with another verdict, or on one side only.
#[derive(Clone, Debug)]
pub struct ClaimChange {
    /// Its experiment.
    pub experiment: String,
    /// The claim before, if it was there.
    pub before: Option<SideClaim>,
    /// The claim after, if it is there.
    pub after: Option<SideClaim>,
    /// Whether it is refuted, was not, and is not expected to be.
    pub fails: bool,
}

/// The claims of an experiment whose verdict is another.
pub fn changes(experiment: &str, old: &[SideClaim], new: &[SideClaim]) -> Vec<ClaimChange> {
    let find = |all: &[SideClaim], id: &str| all.iter().find(|c| c.id == id).cloned();
    let ids = new.iter().chain(old.iter().filter(|c| find(new, &c.id).is_none()));
    let change = |claim: &SideClaim| {
        let (before, after) = (find(old, &claim.id), find(new, &claim.id));
        let verdict = |c: &Option<SideClaim>| c.as_ref().map(|c| c.verdict.clone());
        let refuted = |c: &Option<SideClaim>| c.as_ref().is_some_and(|c| c.verdict == "refuted");
        let expected = after.as_ref().is_some_and(|c| c.expected_refuted);
        let fails = before.is_some() && !refuted(&before) && refuted(&after) && !expected;
        let other = verdict(&before) != verdict(&after);
        other.then(|| ClaimChange { experiment: experiment.into(), before, after, fails })
    };
    ids.filter_map(change).collect()
}
