//! Stationary laws of one dimension, by iterating expectations: what RR and SLIDES state of biases and covariances
//! of clients that are not quadratic, or whose noise is not.

/// f'(x) = x + 0.3|x|^p/(1 + x²)^((p − 1)/2): for p from 2 to 3 the slope is between 0.66 and 1.34 and f''' is bounded,
/// though Lipschitz near 0 for no p between 2 and 3.
pub fn smooth_gradient(x: f64, power: f64) -> f64 {
    x + 0.3 * libm::pow(x.abs(), power) / libm::pow(1.0 + x * x, 0.5 * (power - 1.0))
}

/// E of a function under the stationary law of x ← next(x), one of two with probability ½ each, whose standard deviation
/// is about √(γ/2): its expectation after many steps is iterated backwards on a grid.
fn stationary_mean(step: f64, next: impl Fn(f64) -> [f64; 2], of: impl Fn(f64) -> f64) -> f64 {
    let width = step / 32.0;
    // Six standard deviations to each side.
    let half = libm::ceil(6.0 * libm::sqrt(0.5 * step) / width);
    let points: Vec<f64> = (0..=2 * half as usize).map(|i| width * (i as f64 - half)).collect();
    let next: Vec<_> = points
        .iter()
        .map(|x| {
            next(*x).map(|x: f64| {
                let at = (x / width + half).clamp(0.0, 2.0 * half - 1e-9);
                (at as usize, at - libm::floor(at))
            })
        })
        .collect();
    let mut mean: Vec<f64> = points.iter().map(|x| of(*x)).collect();
    for _ in 0..libm::ceil(12.0 / step) as usize {
        mean = next
            .iter()
            .map(|[up, down]| 0.5 * (interpolate(&mean, *up) + interpolate(&mean, *down)))
            .collect();
    }
    mean[half as usize]
}

/// A function on a grid, between the point with this index and the next one: `part` of the way to it.
fn interpolate(values: &[f64], place: (usize, f64)) -> f64 {
    let (index, part) = place;
    (1.0 - part) * values[index] + part * values[index + 1]
}

/// E x/γ^(3/2) under the stationary law of x ← x − γ(f'(x) ± 1), N = H = 1: by stationarity E f'(x) = 0, so that
/// E x = −E(f'(x) − x).
pub fn stationary_bias(power: f64, step: f64) -> f64 {
    -stationary_mean(
        step,
        |x: f64| [-1.0, 1.0].map(|sign| x - step * (smooth_gradient(x, power) + sign)),
        |x| smooth_gradient(x, power) - x,
    ) / libm::pow(step, 1.5)
}

/// (E x² − γ/2)/γ² under the stationary law of x ← x − γ(x ± (1 + |x|/2)): by stationarity
/// E x²(2 − γ) = γE(1 + |x|/2)².
pub fn covariance_of_quadratics(step: f64) -> f64 {
    let square = step
        * (1.0
            + stationary_mean(
                step,
                |x: f64| [-1.0, 1.0].map(|sign| x - step * (x + sign * (1.0 + 0.5 * x.abs()))),
                f64::abs,
            ))
        / (2.0 - 1.25 * step);
    (square - 0.5 * step) / (step * step)
}

/// N → ∞ clients of one distribution, f' of [`smooth_gradient`] with p = 2 and noise ±1: the average does not move. With
/// Scaffold the variate of a client is the mean of its stochastic gradients in the round before.
pub struct ManyClients {
    average: f64,
    step: f64,
    steps: u32,
}

impl ManyClients {
    /// E of the mean stochastic gradient in the last round, over all signs of the noise, for a client at `local` that has
    /// `left` local steps to go in its round, and `rounds` rounds, this one included. `sum` is of the stochastic gradients
    /// in this round so far.
    fn gradient(&self, local: f64, variate: f64, sum: f64, (left, rounds): (u32, u32)) -> f64 {
        let mean = sum / f64::from(self.steps);
        match (left, rounds) {
            (0, 1) => mean,
            (0, _) => self.gradient(self.average, mean, 0.0, (self.steps, rounds - 1)),
            _ => [-1.0, 1.0].iter().fold(0.0, |total, noise| {
                let drawn = smooth_gradient(local, 2.0) + noise;
                let next = local - self.step * (drawn - variate);
                total + 0.5 * self.gradient(next, variate, sum + drawn, (left - 1, rounds))
            }),
        }
    }

    /// The bias, which is the average at which that expectation is 0, over γ^(3/2): FedAvg's with one round from ξ = 0,
    /// Scaffold's with as many as its variates remember.
    pub fn bias(step: f64, steps: u32, rounds: u32) -> f64 {
        let mut run = Self { average: 0.0, step, steps };
        for _ in 0..6 {
            run.average -= run.gradient(run.average, 0.0, 0.0, (steps, rounds));
        }
        run.average / libm::pow(step, 1.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E|x|^p is (γ/2)^(p/2) E|G|^p to first order, G a standard Gaussian.
    #[test]
    fn the_bias_is_of_another_order_unless_the_third_derivative_is_lipschitz() {
        for step in [0.04, 0.01, 0.0025] {
            let leading = -0.3 * 1.0805 * libm::pow(0.5 * step, 1.1) / libm::pow(step, 1.5);
            let found = stationary_bias(2.2, step);
            assert!((found / leading - 1.0).abs() < 0.02, "{step}: {found} {leading}");
            // The control: −0.3 · 2^(−3/2) E|G|³ = −0.169.
            let control = stationary_bias(3.0, step);
            assert!((control + 0.169).abs() < 0.01, "{step}: {control}");
        }
    }

    /// (γ/2)E|x| is γ^(3/2)/(2√π) to first order.
    #[test]
    fn the_covariance_of_quadratics_has_a_remainder_of_another_order() {
        let leading = 0.5 / std::f64::consts::PI.sqrt();
        for step in [0.04, 0.01, 0.0025_f64] {
            let found = covariance_of_quadratics(step) * step.sqrt();
            assert!(found > leading && found < leading + 0.5 * step.sqrt(), "{step}: {found}");
        }
    }

    /// FedAvg's by γ²(H − 1)/2, Scaffold's with the variance of its variates too: −½f''⁻¹f''' times that, f''' = 0.6.
    #[test]
    fn parts_of_the_bias_do_not_fall_with_the_clients() {
        for (step, steps, rounds) in [(0.01_f64, 10, 1), (0.1, 2, 3), (0.2 / 6.0, 6, 3)] {
            let h = f64::from(steps);
            let variates = if rounds == 1 { 0.0 } else { (2.0 * h - 1.0) / (3.0 * h) };
            let leading = -0.15 * step.sqrt() * (h - 1.0) * (1.0 + variates);
            let found = ManyClients::bias(step, steps, rounds);
            assert!((found / leading - 1.0).abs() < 0.2, "{found} {leading}");
        }
    }
}
