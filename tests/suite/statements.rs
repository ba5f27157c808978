//! Statements of the sources that are no bounds or claims of the program, each checked in itself.
//!
//! RR's Lemmas 6 and 8 on scalar quadratics, whose moments up to order 6 close: exact moments of the
//! whole algorithm for two clients.

use exactfed_core::linalg::{Matrix, solve};

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
