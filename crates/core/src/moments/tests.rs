//! Exact moments against themselves: stationary against long runs, types against
//! single clients. Simulation against them is in `tests/suite/moments.rs`.

mod coins;
mod flat;
mod participation;
mod passes;
mod schemes;
mod shared_draws;
mod work;

use super::*;
use crate::federated::{Clock, Decay, Learning, Run, Schedule, Terms};
use crate::linalg::Matrix;
use crate::problem::Twin;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::td::Noise;
use crate::round_program::LocalUpdate;
use crate::sample;
use crate::sources::StatedAlgorithm::{FedAvg, RichardsonRomberg, Scaffold};
use crate::theory::bounds::{Constants, PublishedRun};
use crate::theory::expansion::{Expansion, RoundSteps, VariateSource, closure};
use crate::theory::linear::RoundMap;

const NONE: Variates = Variates::None;
const KEPT: Variates = Variates::Kept(Learning::OptionTwo);
const KEPT_OF_OPTION_ONE: Variates = Variates::Kept(Learning::OptionOne);
const FRESH: Variates = Variates::Fresh;
/// Under a coin a round is a fixed number of local steps ([`means_converge`]).
const PER_STEP: bool = true;

/// Clients with one distribution in one dimension: the curvature is `a`, the additive noise has the standard deviation
/// `noise`, and the multiplicative noise `multiplicative_noise` times the curvature.
fn scalar(clients: usize, a: f64, noise: f64, multiplicative_noise: f64) -> Quadratic {
    let base = sample::isotropic(clients, 1, a);
    sample::build(&quadratic::Settings { noise, multiplicative_noise, ..base }, 1)
}

/// An algorithm that is one run of `steps` equal local steps of all clients in each round or, with `coin`, under a coin
/// of this probability.
fn one_run(variates: Variates, step: f64, steps: u64, coin: Option<f64>) -> Vec<Component> {
    let mut components = sample::components(&[(1.0, step)], steps, variates);
    if let Some(probability) = coin {
        let clock = Clock::Communications;
        components[0].terms.schedule = Schedule::Bernoulli { probability, clock };
    }
    components
}

/// With step sizes that fall, n times the mean square error of the mean of n iterates tends to tr(A⁻¹CA⁻ᵀ)/(NH), with A
/// the mean matrix of the field and C the mean covariance of a draw's noise: for FedAvg at H = 1 and for Scaffold at
/// any H. FedAvg's heterogeneity bias at H = 4 falls only with γ_t, and dominates.
#[test]
fn averages_of_falling_steps_obey_the_central_limit_theorem() {
    let facts = sample::noisy(4);
    let limit = Expansion::new(&facts).unwrap().clt_trace().unwrap();
    let scaled = |correction, steps: u64| -> f64 {
        let mut components = one_run(correction, 0.3 / steps as f64, steps, None);
        components[0].terms.decay = Some(Decay::by_rounds(0.66, 100.0));
        let exact = ExactMoments::new(&facts, &components).unwrap();
        let found = exact.at_rounds(facts.optimum(), &[4000], None).unwrap().remove(0);
        found.sq_error_average * (4000 * steps) as f64 / limit
    };
    for (correction, steps) in [(NONE, 1), (KEPT, 1), (KEPT, 4)] {
        let found = scaled(correction, steps);
        assert!((found - 1.0).abs() < 0.02, "{correction:?} {steps}: {found:?}");
    }
    let biased = scaled(NONE, 4);
    assert!(biased > 1.5, "{biased:?}");
}

/// At a constant step size n times the covariance of the mean of n iterates tends to Σ(I − Γ̄ᵀ)⁻¹ + (I − Γ̄)⁻¹Σ − Σ,
/// with Σ the stationary covariance of θ_t and Γ̄ the matrix by which a round maps E θ_t − θ*.
#[test]
fn averages_of_constant_steps_have_their_asymptotic_covariance() {
    let facts = sample::noisy(4);
    let rounds = 40_000;
    let model = one_run(NONE, 0.1, 3, None);
    let exact = ExactMoments::new(&facts, &model).unwrap();
    let (rest, _) = exact.stationary().unwrap();
    // From the limit of the mean, so that no transient enters the bias of the average.
    let start: Vec<f64> = facts.optimum().iter().zip(&rest.mean).map(|(x, y)| x + y).collect();
    let found = exact.at_rounds(&start, &[rounds], None).unwrap().remove(0);
    let bias = crate::kernel::dot(&rest.mean, &rest.mean);
    let map = crate::theory::linear::RoundMap::new(&facts, 0.1, 3).unwrap();
    let system = Matrix::identity(2).plus(-1.0, &map.gamma);
    // tr (I − Γ̄)⁻¹ Σ, column by column of the symmetric Σ.
    let sigma = &rest.covariance;
    let crossed: f64 =
        (0..2).map(|i| crate::linalg::solve(&system, sigma.row(i)).unwrap()[i]).sum();
    let asymptotic = 2.0 * crossed - sigma.trace();
    let scaled = (found.sq_error_average - bias) * rounds as f64;
    assert!((scaled / asymptotic - 1.0).abs() < 0.01, "{scaled} {asymptotic}");
}

/// The moments after 3000 rounds are the stationary ones, for each kind of control variates, under a coin, and with
/// unequal shares.
#[test]
fn stationary_moments_are_the_limit_of_long_runs() {
    let quadratic = sample::noisy(4);
    let ridge = sample::weighted_ridge();
    let cases = [
        (NONE, 5, None),
        (KEPT, 1, None),
        (KEPT, 5, None),
        (KEPT_OF_OPTION_ONE, 5, None),
        (FRESH, 5, None),
        (KEPT, 1, Some(0.2)),
    ];
    let all = [&quadratic as &dyn Facts, &ridge].map(|facts| cases.map(|case| (facts, case)));
    for (facts, (correction, steps, coin)) in all.concat() {
        let model = one_run(correction, 0.05, steps, coin);
        let exact = ExactMoments::new(facts, &model).unwrap();
        let long = exact.at_rounds(facts.optimum(), &[3000], None).unwrap().remove(0);
        let what = format!("{correction:?}, {steps}, {coin:?}");
        let (found, _) = exact.stationary().unwrap_or_else(|_| panic!("{what}: none found"));
        let errors = (found.sq_error, long.sq_error);
        for (a, b) in [errors].into_iter().chain(found.lyapunov.zip(long.lyapunov)) {
            assert!((a / b - 1.0).abs() < 1e-9, "{what}: {a} and {b}");
        }
    }
}

/// With unequal shares the stationary bias of FedAvg and its covariance are those of [`Expansion`] as γ → 0, (γ(H −
/// 1)/2) b_h and (γ/N) **A**C. What is not derived for unequal shares is refused: covariances of corrections, the
/// second order, cohorts and published bounds.
#[test]
fn the_first_order_follows_unequal_shares() {
    let facts = sample::weighted_ridge();
    let step = 1e-4;
    let steps = 5;
    let expansion = Expansion::new(&facts).unwrap();
    let model = one_run(NONE, step, steps, None);
    let (found, _) = ExactMoments::new(&facts, &model).unwrap().stationary().unwrap();
    let corrected = true;
    let printed = true;
    let local_steps = RoundSteps::Fixed(steps);
    let bias = expansion.bias(step, local_steps, !corrected).unwrap();
    let size = libm::sqrt(crate::kernel::dot(&found.mean, &found.mean));
    assert!(sample::distance(&bias, &found.mean) < 2e-3 * size, "{bias:?} {:?}", found.mean);
    let blocks = expansion.blocks(&facts, step, local_steps, None, !printed).unwrap();
    let ratio = blocks.theta.trace() / found.covariance.trace();
    assert!((ratio - 1.0).abs() < 2e-3, "{ratio}");
    let variates = Some(VariateSource::Ends);
    assert!(expansion.blocks(&facts, step, local_steps, variates, !printed).is_none());
    assert!(expansion.next(step, local_steps, !corrected).is_none());
    let mut part = one_run(NONE, step, steps, None);
    part[0].terms.cohort = Some(2);
    assert!(ExactMoments::new(&facts, &part).is_err());
    let constants = Constants::new(&facts).unwrap();
    for algorithm in [FedAvg, Scaffold, RichardsonRomberg] {
        let run = PublishedRun::even(&facts, &constants, algorithm, step, 5, 9);
        for bound in run.listed_bounds() {
            let unmet = bound.value.unwrap_err();
            assert_eq!(unmet[0].condition, "clients have equal weights", "{}", bound.info.name);
        }
    }
}

/// On a curved field of unequal shares the closure, a prediction of the bias from the exact moments of the twin (the
/// field linearised at θ* draw by draw), is the bias to first order as γ → 0: of the noise alone (one local step, and
/// control variates) and with heterogeneity.
#[test]
fn the_closure_meets_the_first_order_for_unequal_shares() {
    let curved = sample::weighted_logistic();
    let step = 2e-4;
    let twin = Twin::new(sample::weighted_logistic());
    let expansion = Expansion::new(&curved).unwrap();
    for (correction, steps) in [(NONE, 1), (NONE, 4), (KEPT, 4)] {
        let corrected = correction == KEPT;
        let model = one_run(correction, step, steps, None);
        let (moments, blocks) = ExactMoments::new(&twin, &model).unwrap().stationary().unwrap();
        let closed = closure(&curved, &moments, &blocks, step, steps, corrected).unwrap();
        let first = expansion.bias(step, RoundSteps::Fixed(steps), corrected).unwrap();
        let off = sample::distance(&closed, &first);
        let size = sample::distance(&first, &[0.0; 3]);
        assert!(size > 1e-7 && off < 0.01 * size, "{correction:?}, {steps}: {closed:?} {first:?}");
    }
}

/// A problem has the same moments whether its six equal clients are of one type, whose moments are followed together,
/// or each of a type of its own, since each has an environment of its own.
#[test]
fn types_are_their_clients() {
    let facts = sample::chain((0..6).collect(), Noise::Independent);
    let one = sample::chain(vec![0; 6], Noise::Independent);
    let start: Vec<f64> = facts.optimum().iter().map(|x| x + 1.0).collect();
    for (correction, cohort, coin) in
        [(NONE, 6, None), (KEPT, 6, None), (KEPT, 4, None), (FRESH, 6, None), (KEPT, 6, Some(0.3))]
    {
        let mut model = one_run(correction, 0.05, 3, coin);
        model[0].terms.cohort = if cohort < 6 { Some(cohort) } else { None };
        let each = ExactMoments::new(&facts, &model).unwrap();
        let all = ExactMoments::new(&one, &model).unwrap();
        for (a, b) in each
            .at_rounds(&start, &[1, 5, 40], None)
            .unwrap()
            .iter()
            .zip(all.at_rounds(&start, &[1, 5, 40], None).unwrap())
        {
            let what = format!("{correction:?}, {cohort}, {coin:?}, round {}", a.round);
            let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-10, "{what}: {a} {b}");
            near(a.sq_error, b.sq_error);
            near(a.sq_error_average, b.sq_error_average);
            assert_eq!(a.lyapunov.is_some(), b.lyapunov.is_some());
            a.lyapunov.zip(b.lyapunov).into_iter().for_each(|(a, b)| near(a, b));
        }
    }
}

/// The example of SCAFFLSA, Theorem B.4: one dimension, F_c = a θ − b with b of
/// variance σ², p² = 2ηa − η²a²: at fixed steps ψ converges to η²σ²/p² for every N,
/// the clients' mean to ησ²/((2 − ηa)aN).
#[test]
fn the_example_of_theorem_b4_has_its_closed_form() {
    let eta = 0.05_f64;
    let a = 0.5_f64;
    let z = 2.0 * eta * a - eta * eta * a * a;
    for clients in [2, 4, 8] {
        let facts = scalar(clients, a, 1.0, 0.0);
        let model = one_run(KEPT, eta, 1, Some(z.sqrt()));
        let (found, _) = ExactMoments::new(&facts, &model).unwrap().stationary().unwrap();
        let mean = eta / ((2.0 - eta * a) * a * clients as f64);
        assert!((found.sq_error / mean - 1.0).abs() < 1e-10, "{} {mean}", found.sq_error);
        let exact = ExactMoments::new(&facts, &model).unwrap();
        let late = exact.at_rounds_of_steps(1, facts.optimum(), &[2000]).unwrap();
        let psi = late[0].lyapunov.unwrap();
        let wanted = eta * eta / z;
        assert!((psi / wanted - 1.0).abs() < 1e-9, "N = {clients}: ψ {psi}, not {wanted}");
    }
}

/// lim E‖θ_t − θ*‖² of one client under plain steps is γσ²/(a(2 − γa)) for every H; here γ = 0.05, a = 0.8 and σ = 0.5.
#[test]
fn one_dimension_by_hand() {
    let facts = scalar(1, 0.8, 0.5, 0.0);
    for steps in [1, 7] {
        let model = one_run(NONE, 0.05, steps, None);
        let (found, _) = ExactMoments::new(&facts, &model).unwrap().stationary().unwrap();
        let wanted = 0.05 * 0.25 / (0.8 * (2.0 - 0.05 * 0.8));
        assert!((found.sq_error / wanted - 1.0).abs() < 1e-12, "{}", found.sq_error);
    }
}

/// One dimension: a local step multiplies the error by 1 − γa(1 + τw), with w of variance 1, so that the radii of a
/// round of H steps of N equal clients can be computed by hand.
#[test]
fn spectral_radii_have_their_closed_form_in_one_dimension() {
    let a = 1.0_f64;
    let tau = 0.8_f64;
    let clients = 3;
    let steps = 4;
    let facts = scalar(clients, a, 0.5, tau);
    // Stable, unstable in the mean square alone, unstable.
    for gamma in [0.3_f64, 1.9, 2.2] {
        let model = one_run(NONE, gamma, steps, None);
        let found = ExactMoments::new(&facts, &model).unwrap().radii().unwrap();
        let mean = (1.0 - gamma * a).abs();
        let square = mean * mean + gamma * gamma * tau * tau * a * a;
        let n = clients as f64;
        let wanted = square.powi(4) / n + (1.0 - 1.0 / n) * mean.powi(8);
        assert!((found.square / wanted - 1.0).abs() < 1e-9, "{} {wanted}", found.square);
        assert!((found.mean / mean.powi(4) - 1.0).abs() < 1e-6, "{:?}", found.mean);
        assert_eq!(found.square < 1.0, gamma < 1.0);
    }
}

/// If moments grow, they grow at the rate of the spectral radius; if it is
/// below 1 they come to rest.
#[test]
fn unstable_moments_grow_at_their_spectral_radius() {
    let facts = sample::noisy(4);
    let start: Vec<f64> = facts.optimum().iter().map(|x| x + 1.0).collect();
    for (correction, coin, step) in [
        (NONE, None, 1.45),
        (KEPT, None, 1.45),
        (KEPT_OF_OPTION_ONE, None, 1.45),
        (FRESH, None, 1.45),
        (KEPT, Some(0.6), 1.4),
        (NONE, None, 0.2),
        (KEPT, None, 0.2),
        (KEPT, Some(0.3), 0.2),
    ] {
        let what = format!("{correction:?}, {coin:?}, {step}");
        let steps = if coin.is_some() { 1 } else { 3 };
        let model = one_run(correction, step, steps, coin);
        let exact = ExactMoments::new(&facts, &model).unwrap();
        let found = exact.radii().unwrap_or_else(|| panic!("{what}"));
        let moments = exact.at_rounds(&start, &[100, 200], None).unwrap();
        let rate = libm::pow(moments[1].sq_error / moments[0].sq_error, 0.01);
        if step > 1.0 {
            assert!(found.square > 1.0, "{what}: {found:?}");
            assert!((rate / found.square - 1.0).abs() < 1e-6, "{what}: {rate} {found:?}");
        } else {
            assert!(found.square < 1.0 && (rate - 1.0).abs() < 1e-6, "{what}: {rate} {found:?}");
            assert!(found.mean < 1.0);
        }
        // Jensen: the mean cannot grow faster than the square allows.
        assert!(found.mean <= found.square.sqrt() * (1.0 + 1e-6), "{what}: {found:?}");
    }
}

/// Cached moments of a version have the bits of that version: a hash of some moments' bits is pinned together with it.
#[test]
fn the_version_names_these_bits() {
    let facts = sample::noisy(4);
    let start: Vec<f64> = facts.optimum().iter().map(|x| x + 1.0).collect();
    let mut bits = 0xcbf2_9ce4_8422_2325_u64;
    for (correction, coin) in [(NONE, None), (KEPT, None), (FRESH, None), (KEPT, Some(0.6))] {
        let steps = if coin.is_some() { 1 } else { 3 };
        let model = one_run(correction, 0.2, steps, coin);
        for m in ExactMoments::new(&facts, &model)
            .unwrap()
            .at_rounds(&start, &[0, 1, 7, 40], None)
            .unwrap()
        {
            let values = [m.sq_error, m.sq_error_average, m.lyapunov.unwrap_or(0.0), m.mean[0]];
            for x in values {
                bits = (bits ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    assert_eq!((VERSION, bits), (6, 1_272_304_093_339_157_620), "other bits need another VERSION");
}

/// One client, H = 1: E‖θ_t − θ'_t‖² shrinks by (1 − γa)² + γ²τ²a² a step, whatever the additive
/// noise.
#[test]
fn coupled_runs_come_together_as_the_moments_say() {
    let problem = scalar(1, 0.8, 0.7, 0.5);
    let step = 0.3_f64;
    let model = one_run(NONE, step, 1, None);
    let exact = ExactMoments::new(&problem, &model).unwrap();
    let start = [problem.optimum()[0] + 2.0];
    let found = exact.coupled(&start, &[0, 1, 5]).unwrap();
    let factor = (1.0 - step * 0.8).powi(2) + (step * 0.5 * 0.8).powi(2);
    for (have, power) in found.iter().zip([0, 1, 5]) {
        assert!((have - 4.0 * factor.powi(power)).abs() < 1e-12, "{have}");
    }
}

/// Where θ* is common to all clients and noise multiplies gradients, a run from θ* stays there with control variates of
/// 0, so that the distance from it with variates is ψ.
#[test]
fn the_distance_from_a_run_at_rest_is_psi() {
    let base = sample::quadratic(4);
    let settings =
        quadratic::Settings { hessian_heterogeneity: 0.3, multiplicative_noise: 0.5, ..base };
    let problem = sample::build(&settings, 1);
    let start: Vec<f64> = problem.optimum().iter().map(|x| x + 1.0).collect();
    let rounds = [0, 1, 2, 7];
    let model = one_run(KEPT, 0.1, 3, None);
    let exact = ExactMoments::new(&problem, &model).unwrap();
    let with_variates = exact.coupled_with_variates(&start, &rounds).unwrap().unwrap();
    let alone = exact.coupled(&start, &rounds).unwrap();
    for (i, moments) in exact.at_rounds(&start, &rounds, None).unwrap().iter().enumerate() {
        let psi = moments.lyapunov.unwrap();
        let found = with_variates[i];
        assert!((found - psi).abs() < 1e-12 * psi, "{}: {found} {psi}", moments.round);
        assert_eq!(found > alone[i], moments.round > 0, "{}: {found}", moments.round);
    }
    let without = one_run(NONE, 0.1, 3, None);
    let exact = ExactMoments::new(&problem, &without).unwrap();
    assert_eq!(exact.coupled_with_variates(&start, &rounds).unwrap(), None);
}

/// RR Theorem 6: the average of Richardson-Romberg's iterates goes to 2θ̄(γ) − θ̄(2γ) in mean square, as
/// 1/T, and not to θ* if clients are heterogeneous.
#[test]
fn averaged_richardson_romberg_goes_to_the_extrapolated_mean() {
    let facts = sample::noisy(4);
    let step = 0.02;
    let steps = 4;
    let fine = RoundMap::new(&facts, step, steps).unwrap().bias().unwrap();
    let coarse = RoundMap::new(&facts, 2.0 * step, steps).unwrap().bias().unwrap();
    let extrapolated: Vec<f64> = fine.iter().zip(&coarse).map(|(x, y)| 2.0 * x - y).collect();
    let runs = [(2.0, step), (-1.0, 2.0 * step)];
    let mut model = sample::components(&runs, steps, NONE);
    // The copy of the first run: both have the same draws.
    model[1].copy = 0;
    let rounds = [1_000, 4_000, 16_000];
    let exact = ExactMoments::new(&facts, &model).unwrap();
    let found = exact.at_rounds(facts.optimum(), &rounds, Some(0)).unwrap();
    let apart: Vec<f64> = found
        .iter()
        .map(|m| m.covariance.trace() + sample::distance(&m.mean, &extrapolated).powi(2))
        .collect();
    assert!((apart[1] / apart[2] - 4.0).abs() < 0.5 && apart[0] > 3.0 * apart[1], "{apart:?}");
    let remaining = sample::distance(&extrapolated, &[0.0; 2]).powi(2);
    assert!(remaining > 0.0 && remaining < 0.1 * sample::distance(&fine, &[0.0; 2]).powi(2));
}

/// At γ = 2/L a step has the factor −1, and two steps 1: the error is kept for ever and noise is added
/// to it, so that there is no stationary distribution. At half this step size it is so for Richardson-Romberg, whose
/// second run has twice the step size.
#[test]
fn an_eigenvalue_of_1_by_the_choice_of_a_step_size_is_no_constant() {
    let runs: [&[(f64, f64)]; 2] = [&[(1.0, 2.0)], &[(2.0, 1.0), (-1.0, 2.0)]];
    for noise in [0.5, 0.0] {
        let one = scalar(3, 1.0, noise, 0.0);
        let settings = quadratic::Settings {
            dimension: 3,
            spectrum: crate::problem::spectrum::Spectrum { from: 0.2, to: 1.0 },
            gradient_heterogeneity: 1.0,
            noise,
            ..sample::quadratic(3)
        };
        let three: Quadratic = sample::build(&settings, 1);
        for (facts, runs) in [&one, &three].into_iter().flat_map(|facts| runs.map(|r| (facts, r))) {
            for (steps, correction) in [(1, NONE), (2, NONE), (2, FRESH), (4, NONE)] {
                let model = sample::components(runs, steps, correction);
                let exact = ExactMoments::new(facts, &model).unwrap();
                let radii = exact.radii().unwrap();
                let what = format!("{steps}, {runs:?}, {correction:?}, noise {noise}: {radii:?}");
                assert!((radii.mean - 1.0).abs() < 1e-9 && radii.mean >= 1.0, "{what}");
                assert!((radii.square - 1.0).abs() < 1e-6 && radii.square >= 1.0, "{what}");
                assert!(exact.stationary().is_err(), "{what}");
                assert!(!means_converge(facts, &model, !PER_STEP), "{what}");
                // A step size that is a little smaller is stable.
                let runs: Vec<_> = runs.iter().map(|(w, step)| (*w, 0.999 * step)).collect();
                let model = sample::components(&runs, steps, correction);
                let exact = ExactMoments::new(facts, &model).unwrap();
                assert!(exact.radii().unwrap().square < 1.0, "{what}");
                assert!(exact.stationary().is_ok(), "{what}");
                assert!(means_converge(facts, &model, !PER_STEP), "{what}");
            }
        }
    }
}

/// Where second moments diverge, the equation of their fixed point still has a solution, also one with a positive
/// diagonal. It is no stationary value, and is not returned: moments at rest exist where the radius is below 1.
#[test]
fn what_diverges_has_no_stationary_moments() {
    let settings = quadratic::Settings {
        dimension: 3,
        spectrum: crate::problem::spectrum::Spectrum { from: 0.2, to: 1.0 },
        gradient_heterogeneity: 1.0,
        noise: 0.5,
        ..sample::quadratic(4)
    };
    let facts: Quadratic = sample::build(&settings, 1);
    let runs: [&[(f64, f64)]; 2] = [&[(1.0, 1.0)], &[(2.0, 1.0), (-1.0, 2.0)]];
    for (base, correction) in
        runs.into_iter().flat_map(|runs| [NONE, KEPT, FRESH].map(|correction| (runs, correction)))
    {
        let fastest = base.iter().fold(0.0_f64, |most, run| most.max(run.1));
        for step in [0.5, 1.5, 1.9, 2.1, 2.4, 2.6, 3.0, 4.0, 30.0] {
            let runs: Vec<_> = base.iter().map(|(w, of)| (*w, of * step / fastest)).collect();
            let model = sample::components(&runs, 2, correction);
            let exact = ExactMoments::new(&facts, &model).unwrap();
            let radii = exact.radii().unwrap();
            let rest = exact.stationary();
            let what = format!("{runs:?}, {correction:?}: {radii:?}");
            assert_eq!(rest.is_ok(), radii.square < 1.0, "{what}");
            assert_eq!(means_converge(&facts, &model, !PER_STEP), radii.mean < 1.0, "{what}");
            let start: Vec<f64> = facts.optimum().iter().map(|x| x + 1.0).collect();
            let late = exact.at_rounds(&start, &[500], None).unwrap().remove(0).sq_error;
            match rest {
                Ok((rest, _)) => assert!((rest.sq_error / late - 1.0).abs() < 1e-9, "{what}"),
                Err(_) => assert!(late.is_nan() || late >= 1e9, "{what}: {late}"),
            }
        }
    }
}
