//! A claim of a kind that only the tests of this crate have. Its file and its row in `kinds!` are all
//! that it needs: were there a second place, this test would not compile or would fail.

use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::ClaimOf;
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::tests::{judged, verdicts_of};
use super::text::{number_text, selection_text};
use crate::simulated;
use crate::stats::verdict::{Evidence, Verdict};
use crate::wrong::{self, Mutation};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::plan::{Checker, KindKeys, Plan};
use schemars::JsonSchema;
use serde::Deserialize;

/// Every run of these cells ends with an error of at most a number.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DummyClaimKeys {
    /// The cells.
    #[schemars(example = Selection::example("FedAvg"))]
    pub of: Selection,
    /// The largest squared error that a run may end with, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub most: f64,
}

impl KindKeys<ClaimKeys> for DummyClaimKeys {
    /// Notes what is wrong with the keys: the cells and the number.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        table.selection("of", &claim.of);
        table.above("most", claim.most, 0.0);
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<DummyClaimKeys> {
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        Some(ClaimedCells::new(&self.of))
    }

    /// Tests the largest error of a run of each cell, as a part without sampling error.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        for cell in judge.chosen(&self.of) {
            // A run that diverged is above any number.
            let errors = cell.runs.finals_by_run(Quantity::SqError);
            let finite = errors.iter().map(|error| error.unwrap_or(f64::INFINITY));
            let found = finite.max_by(f64::total_cmp).map(|largest| Evidence {
                n: errors.len(),
                ..Evidence::exact(largest, (f64::NEG_INFINITY, self.most))
            });
            parts.add(judge.name(cell, &self.of, &[]), found, "it has no runs");
        }
        let cells = selection_text(&self.of);
        let formula = format!("largest error of a run of {cells} ≤ {}", number_text(self.most));
        Tested { parts, formula, scale: EstimateScale::Plain }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        vec![WrongResult::Doubled]
    }
}

const CLAIMS: &str = r#"
[[claim.dummy]]
id = "all"
statement = "every run ends below"
of = { label = "SCAFFLSA" }
most = MOST

[[claim.dummy]]
id = "not-all"
statement = "all runs but the worst end below"
of = { label = "SCAFFLSA" }
most = ALMOST
expected = "refuted"
refutes = "reading"
reason = "one run is above"
"#;

/// A plan with this step size, whose first claim is that errors are at most `most`, and whose second one claims a
/// little less.
fn claims_at(step_size: &str, most: f64) -> Plan {
    let manifest = wrong::manifest(20, "8").replace("0.1\n", &format!("{step_size}\n"));
    let almost = format!("{:e}", most * (1.0 - 1e-12));
    let claims = CLAIMS.replace("ALMOST", &almost).replace("MOST", &format!("{most:e}"));
    simulated::plan(manifest + &claims)
}

/// At exactly the largest error the claim holds, and just below this error it does not.
#[test]
fn one_row_registers_a_claim() {
    let plan = claims_at("0.1", 1e9);
    let largest = judged(&plan, Mutation::None)[0].estimate().value;
    assert!(largest > 0.0 && largest < 1.0, "{largest}");

    let plan = claims_at("0.1", largest);
    let claims = judged(&plan, Mutation::None);
    assert_eq!(verdicts_of(&claims), [("all", Verdict::Supported), ("not-all", Verdict::Refuted)]);
    assert!(claims.iter().all(|claim| claim.is_exact() && claim.n == 20));
    let wrong = judged(&plan, Mutation::FlippedSign);
    assert_eq!(wrong[0].contradiction(), Some("refuted"));

    let plan = claims_at("40.0", 1e9);
    let diverged = judged(&plan, Mutation::None);
    assert_eq!(diverged[0].judgement.verdict, Verdict::Refuted);
    assert_eq!(diverged[0].estimate().value, f64::INFINITY);
}

/// The schema has the kind, from which the reference of manifests is written.
#[test]
fn a_registered_claim_is_in_the_schema() {
    let claims = &crate::KINDS.schema()["$defs"]["ClaimTables"]["properties"];
    assert!(claims["dummy"].is_object(), "{claims}");
}
