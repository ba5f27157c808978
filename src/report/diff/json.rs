//! A comparison for programs.

use crate::compare::{Change, ChangeVerdict, ClaimChange, Class, Comparison, SideClaim};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Everything, with numbers as numbers; docs/DIFF.md says what each is.
pub fn json(comparison: &Comparison, fails: &[(Class, usize)]) -> Value {
    let counts = ChangeVerdict::ALL.map(|(v, name)| (name, comparison.count_verdict(v)));
    let problems = comparison.problems.iter().map(|c| {
        json!({"experiment": c.experiment, "cell": c.pair.after, "cell-before": c.pair.before,
            "name": c.name, "other-settings": c.pair.other})
    });
    json!({
        "schema": 1,
        "before": comparison.sides.0,
        "after": comparison.sides.1,
        "margin": comparison.margin,
        "comparable": !comparison.is_empty(),
        "fails": fails.iter().map(|(class, n)| (class.name(), *n)).collect::<BTreeMap<_, _>>(),
        "incomparable": comparison.incomparable,
        "other-problems": problems.collect::<Vec<_>>(),
        "removed": comparison.removed,
        "added": comparison.added,
        "identical": comparison.identical,
        "tested": comparison.tested,
        "verdicts": BTreeMap::from(counts),
        "changed": comparison.changed.iter().map(json_change).collect::<Vec<_>>(),
        "claims": comparison.claims.iter().map(json_claim).collect::<Vec<_>>(),
        "claims-untold": comparison.without_claims,
        "timings": comparison.timings,
    })
}

fn json_change(change: &Change) -> Value {
    let interval = change.shift.map(|s| [libm::exp(s.interval.0), libm::exp(s.interval.1)]);
    json!({
        "experiment": change.experiment,
        "cell": change.pair.after,
        "cell-before": change.pair.before,
        "name": change.name,
        "verdict": change.verdict.name(),
        "other-settings": change.pair.other,
        "runs": [change.finals.0.len(), change.finals.1.len()],
        "diverged": change.diverged(),
        "ratio": change.ratio(),
        "interval": interval,
        "p": change.p,
        "detectable": change.detectable.map(libm::exp),
        "note": change.note,
    })
}

fn json_claim(change: &ClaimChange) -> Value {
    let side = |claim: &Option<SideClaim>| {
        claim.as_ref().map(|c| {
            json!({
                "verdict": c.verdict.name(),
                "estimate": c.estimate,
                "interval": [c.low, c.high],
            })
        })
    };
    let either = change.after.as_ref().or(change.before.as_ref());
    json!({
        "experiment": change.experiment,
        "id": either.map(|c| &c.id),
        "statement": either.map(|c| &c.statement),
        "before": side(&change.before),
        "after": side(&change.after),
        "fails": change.fails,
    })
}
