//! Claims on two sides, and those whose verdict changed.

use crate::evidence::claims::{Estimate, JudgedClaim};
use crate::stats::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// A judged claim as a side of a comparison, or the record of a report, stores it. The history keeps benchmarks so too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SideClaim {
    /// Its name.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// The result of its test.
    pub verdict: Verdict,
    /// Whether the manifest expects it to be refuted, so that this verdict is no failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expected_refuted: bool,
    /// The estimate of the quantity that it is about.
    pub estimate: f64,
    /// Lower end of the 95 % interval of the estimate.
    pub low: f64,
    /// Upper end of this interval.
    pub high: f64,
}

impl SideClaim {
    /// The estimate with its interval.
    pub fn estimate(&self) -> Estimate {
        Estimate { value: self.estimate, interval: (self.low, self.high) }
    }
}

impl From<&JudgedClaim<'_>> for SideClaim {
    /// What a side stores of a claim that was judged.
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
    /// The name of the claim.
    pub id: String,
    /// What is claimed: the words of the side after, if it has the claim.
    pub statement: String,
    /// The claim before, if it was there.
    pub before: Option<SideClaim>,
    /// The claim after, if it is there.
    pub after: Option<SideClaim>,
    /// Whether the change is a failure: the claim is refuted, was there and not refuted before, and is not expected
    /// to be refuted.
    pub fails: bool,
}

/// The claims of an experiment whose verdict changed, or that one side does not have: those of the side after first,
/// then those that it lacks. Claims are the same if they have the same name; another wording or estimate is no
/// change.
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

/// The claim of this name, if there is one.
fn find<'a>(claims: &'a [SideClaim], id: &str) -> Option<&'a SideClaim> {
    claims.iter().find(|claim| claim.id == id)
}
