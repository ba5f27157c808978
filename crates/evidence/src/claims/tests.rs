//! Claims on engines that are right and on engines that are deliberately wrong.

use super::*;
use crate::needs::Needs;
use crate::predictions::{MomentsCache, Theory};
use crate::simulated;
use crate::stats::verdict::{LEVEL, Verdict};
use crate::wrong::{self, Mutation};
use exactfed_runner::manifest::Source;
use exactfed_runner::runner::prepare;
use std::collections::HashSet;

/// What follows the problem and the algorithms in the manifest of these tests.
const CLAIMS: &str = include_str!("tests-claims.toml");

/// The plan of [`CLAIMS`] on cells with 300 replicates and 8 local steps at this step size.
fn plan(step_size: &str) -> Plan {
    let text = wrong::manifest(300, "8") + CLAIMS;
    simulated::plan(text.replace("step-size = 0.1", &format!("step-size = {step_size}")))
}

/// The claims of a plan as they are judged at the level 5 % on runs of its cells, which are run here by an engine with
/// this fault.
pub fn judged(plan: &Plan, mutation: Mutation) -> Vec<JudgedClaim<'_>> {
    let cells: Vec<_> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap();
    let needs = Needs::of_claims(plan);
    let results = simulated::results(&prepared, &needs, mutation);
    let moments = plan.cells.iter().filter(|cell| needs.claims_need_moments(cell));
    let moments = moments.map(|cell| cell.id.as_str()).collect();
    let theory = Theory::new(&prepared, &moments, MomentsCache::Off);
    Judge { plan, cells: &results, theory: &theory, frontiers: &[] }.look(plan, LEVEL)
}

pub fn verdicts_of<'c>(claims: &[JudgedClaim<'c>]) -> Vec<(&'c str, Verdict)> {
    claims.iter().map(|claim| (claim.common.id.as_str(), claim.judgement.verdict)).collect()
}

fn claim<'c, 'a>(claims: &'c [JudgedClaim<'a>], id: &str) -> &'c JudgedClaim<'a> {
    claims.iter().find(|claim| claim.common.id == id).unwrap()
}

#[test]
fn a_right_engine_is_supported() {
    let plan = plan("0.1");
    let claims = judged(&plan, Mutation::None);
    use Verdict::*;
    assert_eq!(
        verdicts_of(&claims),
        [
            ("curve", Supported),
            ("lyapunov", Supported),
            ("below", Supported),
            ("rounds", NotTested),
            ("reaches", Supported),
            ("never", Refuted),
        ]
    );
    assert!(claims.iter().all(|c| c.common.id == "rounds" || c.contradiction().is_none()));
    assert!(claims[3].untested[0].contains("a slope needs two"), "{:?}", claims[3].untested);
    let curve = &claims[0];
    let together = claims.iter().filter(|claim| !claim.judgement.p.is_nan()).count();
    assert_eq!((curve.parts.len(), curve.n, together), (30, 300, 5));
    let Estimate { value, interval } = curve.estimate();
    assert!(interval.0 < value && value < interval.1);
    assert!(
        curve.formula.contains("at every recorded round equals the exact moments"),
        "{curve:?}"
    );
}

#[test]
fn wrong_engines_are_refuted() {
    let plan = plan("0.1");
    for mutation in [Mutation::FlippedSign, Mutation::HalfLearnt, Mutation::StaleAverage] {
        let claims = judged(&plan, mutation);
        let failing: Vec<&str> = claims
            .iter()
            .filter(|c| c.contradiction() == Some("refuted"))
            .map(|c| c.common.id.as_str())
            .collect();
        assert!(!failing.is_empty(), "{mutation:?}: {:?}", verdicts_of(&claims));
    }
}

/// Means of runs that diverged are infinite.
#[test]
fn infinite_means_enter_as_what_they_are() {
    let plan = plan("40.0");
    let claims = judged(&plan, Mutation::None);
    let claim = |id| claim(&claims, id);
    assert_eq!(claim("below").judgement.verdict, Verdict::NotTested, "both are infinite");
    assert!(claim("below").untested[0].contains("both means are infinite"), "{:?}", claim("below"));
    assert_eq!(claim("reaches").judgement.verdict, Verdict::Refuted);
    assert_eq!(claim("reaches").estimate().value, f64::INFINITY);
}

/// Errors around the limit are those around each replicate's own, where it has its own instance.
#[test]
fn moments_of_several_instances_are_averaged() {
    let text = wrong::manifest(400, "4") + LIMIT;
    let plan = simulated::plan(text.replace("seed = 5", "seed = 5\ninstance = \"per-replicate\""));
    assert_eq!(verdicts_of(&judged(&plan, Mutation::None)), [("limit", Verdict::Supported)]);
}

const LIMIT: &str = r#"
[record]
every = 10

[[claim.matches]]
id = "limit"
statement = "the error around the limit is what the exact moments say"
metric = "sq-error-limit"
of = { label = "FedLSA" }
prediction = "exact-moments"
margin = 0.5
at = "every-round"
"#;

/// FedAvg with one local step on quadratics, whose bias is 0, so that its estimate is noise.
const UNBIASED: &str = include_str!("tests-unbiased.toml");

/// The norm of a noisy mean is above 0 whatever the bias is: that is no evidence of a bias.
#[test]
fn noise_is_no_evidence_of_a_bias() {
    for seed in 1..=30 {
        let plan = simulated::plan(UNBIASED.replace("seed = 1", &format!("seed = {seed}")));
        let claims = judged(&plan, Mutation::None);
        let verdict = |id| claim(&claims, id).judgement.verdict;
        assert_ne!(verdict("small"), Verdict::Refuted, "seed {seed}");
        assert_ne!(verdict("large"), Verdict::Supported, "seed {seed}");
        assert_eq!(verdict("far"), Verdict::Supported, "seed {seed}");
        assert_eq!(verdict("theorem-2"), Verdict::NotTested, "seed {seed}");
    }
}

/// Theorem 2 of RR bounds the bias, whose first rounds say nothing of when the squared error comes to a target.
#[test]
fn a_bound_of_another_quantity_limits_no_cost() {
    let claim = "
[[claim.reaches]]
id = \"bias\"
statement = \"s\"
of = { label = \"FedAvg\" }
reaching = { target = 0.01 }
prediction = \"rr-theorem2\"

[[claim.reaches]]
id = \"never\"
statement = \"s\"
of = { label = \"FedAvg\" }
reaching = { target = 1e-300 }
prediction = \"scafflsa-a5-limit\"
";
    let plan = simulated::plan(UNBIASED.to_owned() + claim);
    let claims = judged(&plan, Mutation::None);
    for id in ["bias", "never"] {
        let claim = self::claim(&claims, id);
        assert_eq!(claim.judgement.verdict, Verdict::NotTested, "{claim:?}");
        assert!(claim.untested[0].contains("bounds another quantity"), "{claim:?}");
    }
}

/// Half of the rounds, however many of them are recorded: logarithmic spacing records few late ones.
#[test]
fn the_second_half_is_of_rounds() {
    for (rounds, first) in [
        (vec![0, 25, 50, 75, 100], 2),
        (vec![0, 3, 6, 9], 2),
        (vec![0, 1, 2, 4, 8, 16, 32, 64, 100], 7),
        (vec![0], 0),
    ] {
        assert_eq!(super::sample::second_half(&rounds), first, "{rounds:?}");
    }
}

/// A manifest with step sizes, local steps and Hessian heterogeneities that vary, each written as a list.
fn varied(step_sizes: &str, local_steps: &str, heterogeneities: &str) -> String {
    wrong::manifest(2, local_steps)
        .replace("step-size = 0.1", &format!("step-size = {step_sizes}"))
        .replace(
            "hessian-heterogeneity = 0.3",
            &format!("hessian-heterogeneity = {heterogeneities}"),
        )
}

/// Logarithms and powers of 0 are no numbers that a claim could be judged by.
#[test]
fn a_setting_whose_logarithm_or_power_is_taken_is_above_0() {
    let slope = "slope]]\nover = \"hessian-heterogeneity\"\nvalue = 1.0";
    let order = "matches]]\nover = \"hessian-heterogeneity\"\norder = 1.0\nvalue = 1.0";
    let per = "slope]]\nover = \"step-size\"\nvalue = 1.0\n\
               reaching = { target = 1.0, per = \"hessian-heterogeneity\" }";
    for keys in [slope, order, per] {
        for (selected, is_sound) in [("[0.1, 0.3]", true), ("[0.0, 0.1, 0.3]", false)] {
            let of = format!("{{ label = \"FedLSA\", hessian-heterogeneity = {selected} }}");
            let claim =
                format!("[[claim.{keys}\nmargin = 0.5\nof = {of}\nid = \"a\"\nstatement = \"s\"\n");
            let text = varied("[0.05, 0.1]", "4", "[0.0, 0.1, 0.3]") + &claim;
            let source = Source { name: "t.toml".into(), text, ..Source::default() };
            let said = crate::plan("t".into(), source).err().map(|e| e.to_string());
            let message = "`hessian-heterogeneity` must be above 0 in every selected cell, not 0";
            assert_eq!(said.is_none(), is_sound, "{said:?}");
            assert!(said.is_none_or(|said| said.contains(message)), "{claim}");
        }
    }
}

/// Two cells of a line have the same step size where their numbers of local steps, which are zipped with it, differ.
#[test]
fn a_slope_needs_two_different_values() {
    let claim = "
[[claim.slope]]
id = \"a\"
statement = \"s\"
of = { label = \"FedLSA\" }
over = \"step-size\"
value = 1.0
margin = 0.5
";
    let zip = "seed = 5\noracle = \"exact\"\nzip = [[\"step-size\", \"local-steps\"]]";
    let text = varied("[0.1, 0.1]", "[2, 4]", "0.3").replace("seed = 5", zip) + claim;
    let plan = simulated::plan(text);
    let claims = judged(&plan, Mutation::None);
    assert_eq!(verdicts_of(&claims), [("a", Verdict::NotTested)]);
    assert!(claims[0].untested[0].contains("a slope needs two"), "{:?}", claims[0].untested);
}

/// A cost of 0 has no logarithm: a target that holds from the start is reached at no cost.
#[test]
fn a_target_that_holds_from_the_start_is_reached_at_no_cost() {
    let claim = "
[[claim.slope]]
id = \"a\"
statement = \"s\"
of = { label = \"FedLSA\" }
over = \"step-size\"
reaching = { target = 1e9 }
value = 0.0
margin = 1.0
";
    let plan = simulated::plan(varied("[0.05, 0.1]", "4", "0.3") + claim);
    let claims = judged(&plan, Mutation::None);
    assert_eq!(verdicts_of(&claims), [("a", Verdict::NotTested)]);
    assert!(claims[0].untested[0].contains("at no cost"), "{:?}", claims[0].untested);
}

/// An empty reason is none, and a claim is on no dispute without a name.
#[test]
fn texts_of_claims_are_not_empty() {
    let said = |statement: &str, keys: &str| {
        let claim = format!(
            "[[claim.less]]\nid = \"a\"\nstatement = \"{statement}\"\nleft = {{}}\nvalue = 1.0\n"
        );
        let text = wrong::manifest(2, "4") + &claim + keys;
        let source = Source { name: "t.toml".into(), text, ..Source::default() };
        crate::plan("t".into(), source).err().map(|e| e.to_string())
    };
    let refuted = "expected = \"refuted\"\nrefutes = \"reading\"\nreason";
    assert_eq!(said("s", &format!("{refuted} = \"r\"\ndispute = \"d\"\nside = \"x\"")), None);
    for (statement, keys, key) in [
        ("s", &*format!("{refuted} = \" \""), "reason"),
        ("s", "dispute = \"\"\nside = \"x\"", "dispute"),
        ("s", "dispute = \"d\"\nside = \"\"", "side"),
        ("", "", "statement"),
    ] {
        let said = said(statement, keys).unwrap_or_default();
        assert!(said.contains(&format!("`{key}` is empty")), "{key}: {said}");
    }
}

/// A claim on runs is not on theory alone before there are any.
#[test]
fn nothing_is_said_of_conditions_without_results() {
    let claim = "
[[claim.less]]
id = \"a\"
statement = \"s\"
statements = [\"SCAFFLSA Theorem 4.1, corrected\"]
left = { label = \"FedLSA\" }
value = 1.0
";
    let plan = simulated::plan(wrong::manifest(2, "4") + claim);
    let theory = Theory::new(&[], &HashSet::new(), MomentsCache::Off);
    let judge = Judge { plan: &plan, cells: &[], theory: &theory, frontiers: &[] };
    let claims = judge.look(&plan, LEVEL);
    assert!(claims[0].untested[0].contains("no results yet"), "{:?}", claims[0]);
    assert!(claims[0].conditions.is_empty(), "{:?}", claims[0]);
    let claims = judged(&plan, Mutation::None);
    let conditions = &claims[0].conditions;
    assert_eq!(conditions.len(), 1);
    assert_ne!(conditions[0].summary(), "on theory alone");
}
