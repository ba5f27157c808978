//! Claims on two sides, and those whose verdict changed.

use crate::evidence::claims::{Estimate, JudgedClaim};
use crate::stats::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// A claim as a side of a comparison stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SideClaim {
    /// Its name.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the manifest expects it to be refuted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expected_refuted: bool,
    /// The estimate.
    pub estimate: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl SideClaim {
    /// The estimate with its interval.
    pub fn estimate(&self) -> Estimate {
        Estimate { value: self.estimate, interval: (self.low, self.high) }
    }
}

impl From<&JudgedClaim<'_>> for SideClaim {
    fn from(claim: &JudgedClaim<'_>) -> Self {
        Self {
            id: claim.common.id.to_owned(),
            statement: claim.common.statement.to_owned(),
            verdict: claim.judgement.verdict,
            expected_refuted: claim.expected() == Verdict::Refuted,
            estimate: claim.estimate().value,
            low: claim.estimate().interval.0,
            high: claim.estimate().interval.1,
        }
    }
}

/// A claim whose verdict changed, or that is on one side only.
#[derive(Clone, Debug)]
pub struct ClaimChange {
    /// Its experiment.
    pub experiment: String,
    /// Its name.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// The claim before, if it was there.
    pub before: Option<SideClaim>,
    /// The claim after, if it is there.
    pub after: Option<SideClaim>,
    /// Whether it is refuted, was not, and is not expected to be.
    pub fails: bool,
}

/// The claims of an experiment whose verdict changed.
pub fn changes(experiment: &str, old: &[SideClaim], new: &[SideClaim]) -> Vec<ClaimChange> {
    let without_successor = old.iter().filter(|claim| find(new, &claim.id).is_none());
    let mut changes = Vec::new();
    for claim in new.iter().chain(without_successor) {
        let before = find(old, &claim.id);
        let after = find(new, &claim.id);
        let was = before.map(|claim| claim.verdict);
        let is = after.map(|claim| claim.verdict);
        if was == is {
            continue;
        }
        // A claim that is new has not turned, whatever its verdict.
        let turns_to_refuted = was.is_some() && is == Some(Verdict::Refuted);
        let is_expected = after.is_some_and(|claim| claim.expected_refuted);
        changes.push(ClaimChange {
            experiment: experiment.to_owned(),
            id: claim.id.clone(),
            statement: claim.statement.clone(),
            before: before.cloned(),
            after: after.cloned(),
            fails: turns_to_refuted && !is_expected,
        });
    }
    changes
}

fn find<'a>(claims: &'a [SideClaim], id: &str) -> Option<&'a SideClaim> {
    claims.iter().find(|claim| claim.id == id)
}
