//! A bound that only the tests of this crate have. Its function, its row of `BOUNDS` and its entry of
//! the TOML text are all that it needs: were there another place, this test would fail.

use super::{BoundId, BoundValue, Check, Constants, LinearField, PublishedRun, RunBound};
use crate::algorithm::Component;
use crate::federated::Terms;
use crate::moments::ExactMoments;
use crate::problem::Facts;
use crate::sample;
use crate::sources::StatedAlgorithm::FedAvg;

/// The key of this file's bound, with the function that computes it.
pub const BOUNDS: &[RunBound] = &[("dummy", |run| run.if_plain(FedAvg).map(descent))];

/// Its entry of `published.toml`.
pub const TEXTS: &str = r#"
[[bounds]]
key = "dummy"
name = "gradient descent"
description = "(1 − γμ)^{2Ht}‖θ_0 − θ*‖² for clients of a common optimum without noise."
statement = "RR Proposition 1"
words = "the bound of gradient descent"
formula = "(1 − γμ)^{2Ht}‖θ_0 − θ*‖²"
quantity = "sq-error"
proved = true
is-listed = false
"#;

/// Gradient descent by clients of one optimum without noise, a textbook bound: (1 − γμ)^{2Ht} times the
/// squared distance of the start, with the least μ of the clients. It needs linear fields that are gradients, of
/// clients with equal shares that all take part, and γ ≤ 1/L, which RR Proposition 1 asks.
fn descent(run: &PublishedRun<'_>) -> BoundValue {
    let (mut check, moments) = Check::linear(run, "RR Proposition 1", LinearField::Gradient);
    check.exact(moments);
    let (have, need) = run.constants.common_optimum();
    check.at_most("ζ₁ = 0", have, need);
    let shrunk = run.decay(run.gamma() * run.constants.curvature());
    check.then(|| Some(shrunk * shrunk * run.start_sq_error))
}

/// The bound of this file is found by its key, and among the bounds that tables do not list for every run; it is the
/// exact error of clients of one optimum in one dimension. A function, a row and an entry are enough to register it.
#[test]
fn one_row_registers_a_bound() {
    let id = BoundId::try_from("dummy".to_owned()).unwrap();
    assert!(BoundId::all().any(|known| known == id));
    let problem = sample::build(&sample::isotropic(3, 1, 2.0), 1);
    let constants = Constants::new(&problem).unwrap();
    let run = PublishedRun::even(&problem, &constants, FedAvg, 0.1, 4, 3);
    let bound = id.for_run(&run).expect("it is a bound of FedAvg").value.unwrap();
    let start = [problem.optimum()[0] + 2.0];
    let components = [Component::one(Terms::fedavg(0.1, 4))];
    let moments = ExactMoments::new(&problem, &components).unwrap();
    let exact = moments.at_rounds(&start, &[3], None).unwrap()[0].sq_error;
    assert!((bound - exact).abs() < 1e-12 * exact, "{bound} is sharp in one dimension: {exact}");
    let unlisted = run.unlisted_bounds();
    assert!(unlisted.iter().any(|bound| bound.info.key == "dummy"));
}
