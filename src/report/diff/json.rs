//! A comparison as JSON.

use crate::compare::{
    Change, ChangeVerdict, ClaimChange, Class, Comparison, OtherProblem, SideClaim,
};
use serde_json::json;
use std::collections::BTreeMap;

/// Everything, with numbers as numbers; docs/notes/diff.md says what each is.
pub fn json(comparison: &Comparison, fails: &[(Class, usize)]) -> serde_json::Value {
    let counts = ChangeVerdict::ALL.map(|(v, name, _)| (name, comparison.count_verdict(v)));
    let problem = |OtherProblem { experiment, name, pair }: &OtherProblem| {
        json!({"experiment": experiment, "cell": pair.after, "cell-before": pair.before,
            "name": name, "other-settings": pair.other})
    };
    let change = |change: &Change| {
        json!({
            "experiment": change.experiment,
            "cell": change.pair.after,
            "cell-before": change.pair.before,
            "name": change.name,
            "verdict": change.verdict.name(),
            "other-settings": change.pair.other,
            "runs": change.runs(),
            "diverged": change.diverged(),
            "ratio": change.ratio(),
            "interval": change.shift.map(|s| [libm::exp(s.interval.0), libm::exp(s.interval.1)]),
            "p": change.p,
            "detectable": change.detectable.map(libm::exp),
            "note": change.note,
        })
    };
    let side = |claim: &SideClaim| {
        let interval = [claim.low, claim.high];
        json!({ "verdict": claim.verdict.name(), "estimate": claim.estimate, "interval": interval })
    };
    let claim = |change: &ClaimChange| {
        json!({
            "experiment": change.experiment,
            "id": change.id,
            "statement": change.statement,
            "before": change.before.as_ref().map(side),
            "after": change.after.as_ref().map(side),
            "fails": change.fails,
        })
    };
    json!({
        "schema": 1,
        "before": comparison.sides.0,
        "after": comparison.sides.1,
        "margin": comparison.margin,
        "comparable": !comparison.is_empty(),
        "fails": fails.iter().map(|(class, n)| (class.name(), *n)).collect::<BTreeMap<_, _>>(),
        "incomparable": comparison.incomparable,
        "other-problems": comparison.problems.iter().map(problem).collect::<Vec<_>>(),
        "removed": comparison.removed,
        "added": comparison.added,
        "identical": comparison.identical,
        "tested": comparison.tested,
        "verdicts": BTreeMap::from(counts),
        "changed": comparison.changed.iter().map(change).collect::<Vec<_>>(),
        "claims": comparison.claims.iter().map(claim).collect::<Vec<_>>(),
        "claims-untold": comparison.without_claims,
        "timings": comparison.timings,
    })
}
