//! Claims on engines that are right and on engines that are deliberately wrong.

use super::*;
use crate::analysis::Runs;
use crate::analysis::needs::{Needs, moments_by_claims};
use crate::analysis::theory::MomentsCache;
use crate::analysis::wrong::{self, Mutation};
use driftbench_runner::manifest::{Prices, Source};
use driftbench_runner::runner::prepare;
use std::sync::Arc;

const MANIFEST: &str = r#"
title = "t"
seed = 5
replicates = 300

[problem.quadratic]
dimension = 2
clients = 4
spectrum = { from = 0.5, to = 1.5 }
gradient-heterogeneity = 1.0
hessian-heterogeneity = 0.3
noise = 0.3

[start]
offset = 1.0

[budget]
rounds = 60

[record]
every = 4
averages = ["covariance"]
metrics = ["lyapunov"]

[[algorithm.fedlsa]]
step-size = 0.1
local-steps = 8

[[algorithm.scafflsa]]
step-size = 0.1
local-steps = 8

[[claim.matches]]
id = "curve"
statement = "the error is what the exact moments say"
of = {}
prediction = "exact-moments"
margin = 0.5
at = "every-round"

[[claim.matches]]
id = "lyapunov"
statement = "so is the Lyapunov function"
metric = "lyapunov"
of = { label = "SCAFFLSA" }
prediction = "exact-moments"
margin = 0.3
at = "stationary"

[[claim.less]]
id = "below"
statement = "SCAFFLSA is below FedLSA"
left = { label = "SCAFFLSA" }
right = { label = "FedLSA" }

[[claim.slope]]
id = "rounds"
statement = "the error falls over rounds"
metric = "lyapunov"
of = { label = "SCAFFLSA" }
over = "step-size"
value = 1.0
margin = 0.5

[[claim.reaches]]
id = "reaches"
statement = "SCAFFLSA is down soon"
of = { label = "SCAFFLSA" }
reaching = { target = 0.05 }
within = 20

[[claim.reaches]]
id = "never"
statement = "FedLSA goes to 0"
of = { label = "FedLSA" }
reaching = { target = 1e-9 }
within = 20
expected = "refuted"
reason = "it has a bias"
"#;

fn judged(text: &str, mutation: Mutation) -> Vec<JudgedClaim> {
    let source = Source { name: "t.toml".into(), text: text.into(), ..Source::default() };
    let plan = Plan::new("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
    let cells: Vec<_> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap();
    let needs = Needs::of_claims(&plan);
    let results: Vec<CellResult<'_>> = prepared
        .iter()
        .map(|p| CellResult {
            cell: p.cell,
            runs: Runs::new(wrong::traces(p, mutation), &needs.keep(p.cell), &Prices::default()),
            digest: String::new(),
            provenance: Arc::default(),
            seconds: 0.0,
            exact_bias: None,
            prices: Prices::default(),
        })
        .collect();
    let moments = plan.cells.iter().filter(|cell| moments_by_claims(&plan, cell));
    let moments = moments.map(|cell| cell.id.as_str()).collect();
    let theory = Theory::new(&plan, &prepared, &moments, MomentsCache::Off);
    judge(&plan, &results, &theory)
}

fn verdicts_of(claims: &[JudgedClaim]) -> Vec<(&str, Option<Verdict>)> {
    claims.iter().map(|c| (c.id.as_str(), c.verdict)).collect()
}

#[test]
fn a_right_engine_is_supported() {
    let claims = judged(MANIFEST, Mutation::None);
    use Verdict::*;
    assert_eq!(
        verdicts_of(&claims),
        [
            ("curve", Some(Supported)),
            ("lyapunov", Some(Supported)),
            ("below", Some(Supported)),
            ("rounds", None),
            ("reaches", Some(Supported)),
            ("never", Some(Refuted)),
        ]
    );
    assert!(claims.iter().all(|c| c.id == "rounds" || c.contradiction().is_none()));
    assert!(claims[3].untested[0].contains("no slope"), "{:?}", claims[3].untested);
    let curve = &claims[0];
    assert_eq!((curve.parts.len(), curve.n, curve.together), (30, 300, 5));
    assert!(curve.interval.0 < curve.estimate && curve.estimate < curve.interval.1);
    assert!(
        curve.formula.contains("at every recorded round equals the exact moments"),
        "{curve:?}"
    );
}

#[test]
fn wrong_engines_are_refuted() {
    for mutation in [Mutation::FlippedSign, Mutation::HalfLearnt, Mutation::StaleAverage] {
        let claims = judged(MANIFEST, mutation);
        let failing: Vec<&str> = claims
            .iter()
            .filter(|c| c.contradiction() == Some("refuted"))
            .map(|c| c.id.as_str())
            .collect();
        assert!(!failing.is_empty(), "{mutation:?}: {:?}", verdicts_of(&claims));
    }
}

/// Means of runs that diverged are infinite, and enter as that.
#[test]
fn infinite_means_enter_as_what_they_are() {
    let text = MANIFEST.replace("step-size = 0.1", "step-size = 40.0");
    let claims = judged(&text, Mutation::None);
    let of = |id: &str| claims.iter().find(|c| c.id == id).unwrap();
    assert_eq!(of("below").verdict, None, "both are infinite");
    assert!(of("below").untested[0].contains("both means are infinite"), "{:?}", of("below"));
    assert_eq!(of("reaches").verdict, Some(Verdict::Refuted));
    assert_eq!(of("reaches").estimate, f64::INFINITY);
}
