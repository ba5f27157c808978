//! Moments under a coin, where local steps may expand.

use super::*;

/// The second moments of the state of two clients in one dimension under a coin of probability p after each of some
/// rounds, from a θ_0 at distance 1 of θ*. For each number of local steps the second moments after so many steps,
/// weighted by the number's probability, are added up. The state is (e_1, e_2, w_1, w_2), with e_k = θ_k − θ* and the
/// correction w_k, which is 0 at first.
fn under_a_coin(a: f64, noise: f64, tau: f64, gamma: f64, p: f64, rounds: usize) -> Vec<Matrix> {
    let mut state = Matrix::zeros(4, 4);
    (0..4).for_each(|k| state[(k / 2, k % 2)] = 1.0);
    // A local step of both clients: e_k ← (1 − γa) e_k − γ w_k.
    let step = Matrix::from_fn(4, 4, |i, j| match (i, j) {
        (0, 0) | (1, 1) => 1.0 - gamma * a,
        (0, 2) | (1, 3) => -gamma,
        _ => f64::from(u8::from(i == j)),
    });
    // A communication: e_k becomes the mean, and w_k grows by (p/γ)(e_k − mean).
    let meet = Matrix::from_fn(4, 4, |i, j| match (i, j) {
        (0 | 1, 0 | 1) => 0.5,
        (2 | 3, 0 | 1) => p / gamma * (f64::from(u8::from(i == j + 2)) - 0.5),
        _ => f64::from(u8::from(i == j)),
    });
    let mut states = Vec::new();
    for _ in 0..rounds {
        let mut sum = Matrix::zeros(4, 4);
        let mut weight = p;
        while weight * (1.0 + state.trace()) > 1e-18 * sum.trace() {
            let mut next = step.times(&state).times_transposed(&step);
            for i in 0..2 {
                next[(i, i)] += gamma * gamma * (tau * tau * a * a * state[(i, i)] + noise * noise);
            }
            sum.add(weight, &next);
            weight *= 1.0 - p;
            state = next;
        }
        state = meet.times(&sum).times_transposed(&meet);
        states.push(state.clone());
    }
    states
}

/// Under a coin local steps may expand. With one client the radius is p a/(1 − (1 − p) a), a the factor of
/// a local step, and infinite from (1 − p) a = 1 on, as the error is after one round.
#[test]
fn a_geometric_number_of_expanding_steps_has_the_right_moments_or_none() {
    let curvature = 1.0_f64;
    let tau = 0.3_f64;
    let factor = |gamma: f64| {
        let mean = 1.0 - gamma * curvature;
        (mean, mean * mean + (gamma * tau * curvature).powi(2))
    };
    for p in [0.05_f64, 0.2, 0.4, 0.9] {
        let rest = 1.0 - p;
        // (1 − p) a is this.
        for share in [0.3, 0.9, 0.99, 0.9999, 1.0001, 1.5, 40.0] {
            let a = share / rest;
            let quadratic = curvature * curvature * (1.0 + tau * tau);
            let root = 1.0 - quadratic * (1.0 - a) / (curvature * curvature);
            if root < 0.0 {
                continue;
            }
            let gamma = curvature * (1.0 + root.sqrt()) / quadratic;
            let (mean, found) = factor(gamma);
            assert!((found / a - 1.0).abs() < 1e-12);
            let facts = scalar(1, curvature, 0.5, tau);
            let model = one_run(KEPT, gamma, 1, Some(p));
            let exact = ExactMoments::new(&facts, &model).unwrap();
            let radii = exact.radii().unwrap();
            let start = [facts.optimum()[0] + 1.0];
            let moments = exact.at_rounds(&start, &[0, 1, 2], None).unwrap();
            let what = format!("p = {p}, (1 − p) a = {share}: {radii:?}");
            let of_mean = if (rest * mean).abs() < 1.0 {
                p * mean.abs() / (1.0 - rest * mean)
            } else {
                f64::INFINITY
            };
            let near = |x: f64, y: f64| x == y || (x / y - 1.0).abs() < 1e-7;
            assert!(near(radii.mean, of_mean), "{what}, not {of_mean}");
            assert_eq!(moments[1].mean[0].is_finite(), of_mean.is_finite(), "{what}");
            if share < 1.0 {
                let wanted = p * a / (1.0 - rest * a);
                assert!(near(radii.square, wanted), "{what}, not {wanted}");
                assert_eq!(exact.stationary().is_ok(), wanted < 1.0, "{what}");
                let by_noise = 0.25 * gamma * gamma / (1.0 - rest * a);
                let error = wanted + by_noise;
                assert!(near(moments[1].sq_error, error), "{what}: {moments:?} {error}");
            } else {
                assert_eq!(radii.square, f64::INFINITY, "{what}");
                let infinite = moments[1..].iter().all(|m| m.sq_error == f64::INFINITY);
                assert!(infinite && moments[0].sq_error == 1.0, "{what}: {moments:?}");
                assert!(exact.stationary().is_err(), "{what}");
            }
        }
    }
}

/// The moments of two clients whose variates meet are the sums over numbers of steps, taken step by step.
#[test]
fn expanding_steps_of_two_clients_are_summed() {
    let a = 1.0;
    let noise = 0.5;
    let tau = 0.2;
    for (gamma, p) in [(0.5, 0.3), (1.9, 0.3), (2.05, 0.3), (2.1, 0.4), (2.3, 0.6), (2.05, 0.25)] {
        let facts = scalar(2, a, noise, tau);
        let model = one_run(KEPT, gamma, 1, Some(p));
        let exact = ExactMoments::new(&facts, &model).unwrap();
        let start = [facts.optimum()[0] + 1.0];
        let found = exact.at_rounds(&start, &[1, 2, 3, 4], None).unwrap();
        let wanted = under_a_coin(a, noise, tau, gamma, p, 4);
        for (found, wanted) in found.iter().zip(wanted) {
            let wanted = wanted[(0, 0)];
            let ratio = found.sq_error / wanted;
            assert!((ratio - 1.0).abs() < 1e-10, "{gamma} {p}: {} {wanted}", found.sq_error);
        }
    }
}

/// As γ → 0 the covariances of control variates under a coin are those of one draw, whatever its probability is, and are
/// not divided by 1/p.
#[test]
fn variates_under_a_coin_have_the_covariance_of_one_draw() {
    let a = 1.0;
    let noise = 0.5;
    let gamma = 1e-5;
    let facts = scalar(2, a, noise, 0.0);
    let expansion = Expansion::new(&facts).unwrap();
    let variates = Some(VariateSource::Ends);
    let printed = true;
    for p in [0.25, 0.8] {
        let local_steps = RoundSteps::Coin(p);
        let first = expansion.blocks(&facts, gamma, local_steps, variates, !printed).unwrap();
        // Both clients have one curvature, so that the variates come to rest long before θ does.
        let state = under_a_coin(a, noise, 0.0, gamma, p, 200).pop().unwrap();
        for (found, wanted) in [
            (state[(2, 2)], first.variate[0][(0, 0)]),
            (state[(2, 3)], first.variate_pair[0][(0, 0)]),
        ] {
            assert!((found / wanted - 1.0).abs() < 1e-2, "{p}: {found} {wanted}");
        }
    }
}

/// The mean over the local steps under a coin of the variance of a client around the start of its round, taken step by
/// step, is what the expansion's second order has, up to 1/N.
#[test]
fn the_variance_within_a_round_under_a_coin_is_that_of_the_expansion() {
    let clients = 1000.0;
    let gamma = 1e-6;
    let a = 0.8;
    let noise = 0.25;
    let variate = noise * (1.0 - 1.0 / clients);
    let corrected = true;
    for p in [0.25_f64, 0.6] {
        // E e² and E e ξ after h local steps, with e the distance from the start of the round.
        let mut square = 0.0;
        let mut cross = 0.0;
        let mut mean = 0.0;
        let mut mean_without_variates = 0.0;
        let mut weight = p;
        for h in 0..400 {
            mean += weight * square;
            mean_without_variates += weight * f64::from(h) * gamma * gamma * noise;
            let one = 1.0 - gamma * a;
            square =
                one * one * square - 2.0 * gamma * one * cross + gamma * gamma * (variate + noise);
            cross = one * cross - gamma * variate;
            weight *= 1.0 - p;
        }
        let unit = gamma * gamma * noise * (1.0 - 1.0 / clients);
        let ratio = mean / (unit * RoundSteps::Coin(p).variance_within(corrected));
        assert!((ratio - 1.0).abs() < 0.01, "{p}: {ratio}");
        let plain = unit * RoundSteps::Coin(p).variance_within(!corrected);
        assert!((mean_without_variates / plain - 1.0).abs() < 0.01, "{p}");
    }
}
