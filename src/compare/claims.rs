//! Claims on two sides: the ones whose verdict changed.

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
    let find = |all: &[SideClaim], id: &str| all.iter().find(|c| c.id == id).cloned();
    let all = new.iter().chain(old.iter().filter(|c| find(new, &c.id).is_none()));
    let change = |claim: &SideClaim| {
        let (id, statement) = (claim.id.clone(), claim.statement.clone());
        let (before, after) = (find(old, &id), find(new, &id));
        let verdict = |claim: &Option<SideClaim>| claim.as_ref().map(|claim| claim.verdict);
        let (was, is) = (verdict(&before), verdict(&after));
        let is_expected = after.as_ref().is_some_and(|claim| claim.expected_refuted);
        let refuted = Some(Verdict::Refuted);
        let fails = was.is_some() && was != refuted && is == refuted && !is_expected;
        let experiment = experiment.to_owned();
        (was != is).then_some(ClaimChange { experiment, id, statement, before, after, fails })
    };
    all.filter_map(change).collect()
}
