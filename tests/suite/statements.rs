//! Statements of the sources that are no bounds or claims of the program, each checked in itself: RR's
//! Lemmas 6 and 8 on scalar quadratics of two clients, whose moments up to order 6 close, and the
//! contraction of Scaffold in SLIDES.

use exactfed_core::algorithm::Component;
use exactfed_core::federated::Terms;
use exactfed_core::kernel::{axpy, squared_distance};
use exactfed_core::linalg::{Matrix, solve};
use exactfed_core::moments::ExactMoments;
use exactfed_core::problem::arrays::NoFiles;
use exactfed_core::problem::{Facts, Settings, quadratic, spectrum};
use exactfed_core::rng::Stream;

/// The moments of order 0 to 6.
const ORDERS: usize = 7;

/// Two clients with F_c(θ; Z) = (1 + τw) a_c θ + g_c + σε, w = ±1, ε Gaussian and g_1 + g_2 = 0, so
/// that θ* = 0 and ∇f_c(θ*) = g_c.
#[derive(Clone, Copy)]
struct Pair {
    curvatures: [f64; 2],
    gradient: f64,
    noise: f64,
    factor: f64,
}

fn binomial(n: usize, k: usize) -> f64 {
    (1..=k).fold(1.0, |product, i| product * (n + 1 - i) as f64 / i as f64)
}

/// E (m + sε)^k of a Gaussian.
fn gaussian_moment(mean: f64, deviation: f64, k: usize) -> f64 {
    // E ε^j is 1, 1, 3, 15 for j = 0, 2, 4, 6.
    let even = |j: usize| (1..j).step_by(2).fold(1.0, |product, i| product * i as f64);
    let term = |j: usize| {
        binomial(k, j) * libm::pow(mean, (k - j) as f64) * libm::pow(deviation, j as f64) * even(j)
    };
    (0..=k).step_by(2).fold(0.0, |sum, j| sum + term(j))
}

impl Pair {
    /// The map of (E θ^k)_k by one local step of client `c`.
    fn local_step(&self, c: usize, step: f64) -> Matrix {
        let shift = if c == 0 { self.gradient } else { -self.gradient };
        let shrink = |sign: f64| 1.0 - step * self.curvatures[c] * (1.0 + sign * self.factor);
        Matrix::from_fn(ORDERS, ORDERS, |k, j| {
            if j > k {
                return 0.0;
            }
            let power = |sign| libm::pow(shrink(sign), j as f64);
            let factor = 0.5 * (power(1.0) + power(-1.0));
            binomial(k, j) * factor * gaussian_moment(-step * shift, step * self.noise, k - j)
        })
    }

    /// The moments of the stationary law of FedAvg, and those of a client's θ after H steps from it.
    fn stationary(&self, step: f64, steps: u64) -> (Vec<f64>, Vec<f64>) {
        let ends = [0, 1].map(|c| self.local_step(c, step).power(steps));
        let round = Matrix::from_fn(ORDERS, ORDERS, |k, i| {
            // Both clients are independent given θ: products of polynomials in θ.
            let product = |j: usize| {
                let both = (0..=i).map(|l| ends[0][(j, l)] * ends[1][(k - j, i - l)]);
                binomial(k, j) * both.sum::<f64>()
            };
            libm::pow(0.5, k as f64) * (0..=k).map(product).sum::<f64>()
        });
        let order = ORDERS - 1;
        let left = Matrix::from_fn(order, order, |k, j| {
            f64::from(u8::from(k == j)) - round[(k + 1, j + 1)]
        });
        let right: Vec<f64> = (1..ORDERS).map(|k| round[(k, 0)]).collect();
        let mut moments = vec![1.0];
        moments.extend(solve(&left, &right).unwrap());
        let local = ends[0].apply(&moments);
        (moments, local)
    }
}

const COMMON: Pair = Pair { curvatures: [1.0, 0.5], gradient: 0.0, noise: 1.0, factor: 1.0 };

/// With additive noise alone and one curvature the law is Gaussian: 3s² and 15s³.
#[test]
fn the_moments_of_a_gaussian_law_are_found() {
    let pair = Pair { curvatures: [1.0, 1.0], factor: 0.0, ..COMMON };
    let (moments, _) = pair.stationary(0.1, 3);
    let s = moments[2];
    // Var θ = (γ²σ²/N) Σ_h (1 − γ)^{2h} / (1 − (1 − γ)^{2H}).
    assert!((s - 0.005 / 0.19).abs() < 1e-12, "{s}");
    assert!((moments[4] / (3.0 * s * s) - 1.0).abs() < 1e-10, "{moments:?}");
    assert!((moments[6] / (15.0 * s * s * s) - 1.0).abs() < 1e-10, "{moments:?}");
}

/// RR Lemma 6: with ∇f_c(θ*) = 0, moments of order 2p are O(γ^p), of the iterates and within a
/// round. The L of draws is 2, and γ is at most 1/(9L).
#[test]
fn lemma_6_has_the_right_orders() {
    for p in [2, 3] {
        let order = f64::from(p);
        let ratio = |step: f64, steps| {
            let (theta, local) = COMMON.stationary(step, steps);
            [theta, local].map(|m| m[2 * p as usize] / libm::pow(step, order))
        };
        let limit = ratio(1e-4, 1)[0];
        for (step, steps) in [(0.05, 1), (0.05, 20), (0.01, 1), (0.01, 100), (0.001, 10)] {
            let [theta, local] = ratio(step, steps);
            assert!(theta > 0.3 * limit && theta < 2.0 * limit, "{p} {step} {steps}: {theta}");
            // The variance of one client is not divided by N = 2.
            assert!(local < 8.0 * 2.0 * limit, "{p} {step} {steps}: {local}");
        }
    }
}

/// RR Lemma 8: with heterogeneous gradients they are O(γ^p + γ^{2p}H^{2p}).
#[test]
fn lemma_8_has_the_right_orders() {
    let pair = Pair { gradient: 1.0, ..COMMON };
    for p in [2, 3] {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for step in [0.02, 0.005, 0.001, 0.0002] {
            for steps in [1, 2, 10, 40, 160, 640] {
                let path: f64 = step * steps as f64;
                if path * 0.5 > 1.0 {
                    continue;
                }
                let (theta, _) = pair.stationary(step, steps);
                let bound = libm::pow(step, f64::from(p)) + libm::pow(path, 2.0 * f64::from(p));
                let ratio = theta[2 * p as usize] / bound;
                (least, most) = (least.min(ratio), most.max(ratio));
            }
        }
        assert!(most < 10.0 && least > 0.0, "{p}: {least} {most}");
    }
}

/// RR Lemma 8 prints ζ₁ where its square must stand: E^{1/3}‖θ‖⁶ grows as ζ₁², so that with ζ₁ no
/// constant β is universal.
#[test]
fn the_heterogeneity_of_lemma_8_is_squared() {
    let ratio = |gradient: f64, power: f64| {
        let pair = Pair { gradient, noise: 0.0, factor: 0.0, ..COMMON };
        let (step, steps) = (0.01_f64, 10_u64);
        let (theta, _) = pair.stationary(step, steps);
        let h = steps as f64;
        let heterogeneity = 6.0 * step * step * (h - 1.0) * h * libm::pow(gradient, power) / 0.25;
        libm::cbrt(theta[6]) / heterogeneity
    };
    for gradient in [1.0, 10.0, 1000.0] {
        assert!((ratio(gradient, 2.0) / ratio(1.0, 2.0) - 1.0).abs() < 1e-6);
        assert!((ratio(gradient, 1.0) / ratio(1.0, 1.0) / gradient - 1.0).abs() < 1e-6);
    }
}

/// A round of Scaffold without noise on linear fields, from θ − θ* and u_c = γH(ξ_c − ξ_c*) of all clients.
fn scaffold_round(jacobians: &[Matrix], step: f64, steps: u64, state: &[f64]) -> Vec<f64> {
    let d = jacobians[0].rows();
    let (theta, variates) = state.split_at(d);
    let end = |(jacobian, variate): (&Matrix, &[f64])| {
        let mut local = theta.to_vec();
        for _ in 0..steps {
            let pull = jacobian.apply(&local);
            axpy(-step, &pull, &mut local);
            axpy(-1.0 / steps as f64, variate, &mut local);
        }
        local
    };
    let ends: Vec<f64> = jacobians.iter().zip(variates.chunks(d)).flat_map(end).collect();
    let mut mean = vec![0.0; d];
    ends.chunks(d).for_each(|end| axpy(1.0 / jacobians.len() as f64, end, &mut mean));
    let learnt = variates.iter().zip(&ends).zip(mean.iter().cycle());
    let learnt: Vec<f64> = learnt.map(|((u, end), mean)| u + end - mean).collect();
    [mean, learnt].concat()
}

/// The norm of a map of such states where Σ u_c = 0, by ‖θ‖² + N⁻¹ Σ ‖u_c‖².
fn weighted_norm(d: usize, n: usize, map: impl Fn(&[f64]) -> Vec<f64>) -> f64 {
    let size = d * (n + 1);
    let weight = |i: usize| if i < d { 1.0 } else { 1.0 / libm::sqrt(n as f64) };
    let projected = Matrix::from_fn(size, size, |i, j| {
        let mean = if i.min(j) >= d && i % d == j % d { 1.0 / n as f64 } else { 0.0 };
        f64::from(u8::from(i == j)) - mean
    });
    let columns: Vec<Vec<f64>> = (0..size).map(|j| map(projected.row(j))).collect();
    let weighted = |i: usize, j: usize| weight(i) * columns[j][i] / weight(j);
    Matrix::from_fn(size, size, weighted).spectral_norm().unwrap()
}

/// SLIDES: without noise Scaffold's iterates and control variates come together by (1 − γμ)^H in a
/// round if γHL ≤ 1; beyond, not always. THEORY (7.2) proves half of this exponent, with noise too.
#[test]
fn scaffold_contracts_without_noise_where_the_condition_holds() {
    let mut rng = Stream::shared_instance(7);
    let mut largest = |count: usize, least: f64, most: f64| {
        let mut worst = 0.0_f64;
        for _ in 0..count {
            let (d, n) = (1 + rng.index(3), 2 + rng.index(3));
            let steps = [1, 2, 3, 5, 10, 30][rng.index(6)];
            let jacobians: Vec<Matrix> = (0..n)
                .map(|_| {
                    let values: Vec<f64> = (0..d).map(|_| libm::pow(0.01, rng.uniform())).collect();
                    spectrum::rotated(&values, &spectrum::direction(d, &mut rng))
                })
                .collect();
            let extremes: Vec<(f64, f64)> =
                jacobians.iter().map(|a| a.symmetric_extremes().unwrap()).collect();
            let l = extremes.iter().map(|x| x.0).fold(0.0, f64::max);
            let mu = extremes.iter().map(|x| x.1).fold(f64::INFINITY, f64::min);
            let path = least + (most - least) * rng.uniform();
            let step = (path / (steps as f64 * l)).min(1.0 / l);
            let norm = weighted_norm(d, n, |state| scaffold_round(&jacobians, step, steps, state));
            worst = worst.max(norm / libm::pow(1.0 - step * mu, steps as f64));
        }
        worst
    };
    let (within, beyond) = (largest(4000, 0.02, 1.0), largest(1000, 1.0, 2.0));
    assert!(within <= 1.0 + 1e-12 && within > 0.99, "{within}");
    assert!(beyond > 1.5, "{beyond}");
}

/// The round above is Scaffold's: its iterates are the exact means.
#[test]
fn the_round_map_of_scaffold_is_that_of_the_exact_moments() {
    let settings = quadratic::Settings {
        dimension: 3,
        clients: 4,
        spectrum: spectrum::Spectrum { from: 0.5, to: 2.0 },
        gradient_heterogeneity: 0.0,
        hessian_heterogeneity: 0.3,
        noise: 0.0,
        multiplicative_noise: 0.0,
        multiplicative_form: quadratic::MultiplicativeForm::default(),
    };
    let problem = settings.build(3, &NoFiles).unwrap();
    let (step, steps) = (0.1, 5);
    let jacobians: Vec<Matrix> = (0..4).map(|c| problem.jacobian(c)).collect();
    let components = [Component::one(Terms::scaffold(step, steps))];
    let start: Vec<f64> = problem.optimum().iter().map(|x| x + 1.0).collect();
    let exact = ExactMoments::new(&problem, &components).unwrap();
    let mut state = [[1.0; 3].as_slice(), &[0.0; 3 * 4]].concat();
    for m in exact.at_rounds(&start, &[0, 1, 2, 3, 4, 5, 6, 7], None).unwrap() {
        assert!(squared_distance(&state[..3], &m.mean) < 1e-24, "{}", m.round);
        state = scaffold_round(&jacobians, step, steps, &state);
    }
}
