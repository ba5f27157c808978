//! Moments on problems with clients that have no unique optimum, and with a mean that has none.

use super::participation::assert_moments_of_runs;
use super::*;
use crate::federated::Run;
use crate::problem::spectrum::Spectrum;
use crate::theory::deterministic::fixed_point as noiseless_fixed_point;
use crate::theory::heterogeneity::Measures;

/// Quadratics of an isotropic mean, whose clients have Hessians of rank one or are flat along one direction.
fn flat_clients() -> Quadratic {
    let base = sample::isotropic(4, 3, 0.5);
    let settings = quadratic::Settings {
        spectrum: Spectrum { from: 0.5, to: 0.5 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.5,
        noise: 0.4,
        multiplicative_noise: 0.3,
        ..base
    };
    sample::build(&settings, 2)
}

/// Runs of FedAvg and of Scaffold have their exact moments: on quadratics, on least squares with fewer records than
/// features at some clients, and where all records together are fewer, so that errors are distances to a set.
#[test]
fn runs_have_their_moments_where_clients_are_flat() {
    let quadratics = flat_clients();
    let regular = sample::unpenalised_ridge(&[2, 9, 1], 4);
    let singular = sample::unpenalised_ridge(&[2, 1, 2], 8);
    for variates in [NONE, KEPT] {
        let components = one_run(variates, 0.05, 5, None);
        let what = format!("{variates:?}");
        assert_moments_of_runs(&quadratics, &components, &format!("quadratics, {what}"));
        assert_moments_of_runs(&regular, &components, &format!("regular, {what}"));
        assert_moments_of_runs(&singular, &components, &format!("singular, {what}"));
    }
}

/// The limit of FedAvg is known where clients are flat: rounds without noise lead there.
#[test]
fn limits_are_known_where_clients_are_flat() {
    let problem = flat_clients();
    let components = one_run(NONE, 0.1, 5, None);
    let limit = fixed_point(&problem, &components[0]).unwrap();
    let exact = crate::problem::Exact::new(flat_clients());
    let end = sample::run(&exact, &components[0].terms, problem.optimum(), 3000, 0);
    let apart = sample::distance(end.estimate(), &limit);
    assert!(apart < 1e-12 && sample::distance(&limit, problem.optimum()) > 1e-2, "{apart}");
    let (rest, _) = ExactMoments::new(&problem, &components).unwrap().stationary().unwrap();
    let off: Vec<f64> = problem.optimum().iter().zip(&rest.mean).map(|(x, y)| x + y).collect();
    assert!(sample::distance(&off, &limit) < 1e-12);
    let update = |_| LocalUpdate::of_steps(0.1, 5);
    let noiseless = noiseless_fixed_point(&exact, update).unwrap();
    assert!(sample::distance(&noiseless, &limit) < 1e-12);
    // Published bounds need strongly convex clients, which the constants deny.
    let constants = Constants::new(&problem).unwrap();
    assert!(constants.curvature() <= 0.0 && constants.moments().is_none());
    assert!(constants.clients.iter().all(|client| client.distance.is_infinite()));
}

/// Nothing is said of limits, stationary moments and expansions where θ* is not unique, and μ is 0.
#[test]
fn nothing_rests_where_the_optimum_is_a_set() {
    let problem = sample::unpenalised_ridge(&[2, 1, 2], 8);
    for variates in [NONE, KEPT] {
        let components = one_run(variates, 0.05, 5, None);
        assert_eq!(fixed_point(&problem, &components[0]), None);
        assert!(ExactMoments::new(&problem, &components).unwrap().stationary().is_err());
    }
    let update = |_| LocalUpdate::of_steps(0.05, 5);
    assert_eq!(noiseless_fixed_point(&problem, update), None);
    assert_eq!(crate::theory::linear::limit(&problem, update), None);
    assert!(Expansion::new(&problem).is_err());
    let measures = Measures::new(&problem).unwrap();
    assert!(measures.mu <= 0.0 && measures.mu > -1e-14, "{measures:?}");
    assert!(Constants::new(&problem).unwrap().mean_curvature <= 0.0);
}
