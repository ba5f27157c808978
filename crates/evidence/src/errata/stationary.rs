//! Stationary laws of one dimension, by iterating expectations: what RR and SLIDES state of biases and covariances
//! of clients that are not quadratic, or whose noise is not.

/// The gradient f'(x) = x + 0.3|x|^p/(1 + x²)^((p − 1)/2) of a function that is not quadratic, with p = `power`. For
/// p from 2 to 3 its slope is between 0.66 and 1.34 and f''' is bounded, though Lipschitz near 0 for no p between 2
/// and 3.
pub fn smooth_gradient(x: f64, power: f64) -> f64 {
    x + 0.3 * libm::pow(x.abs(), power) / libm::pow(1.0 + x * x, 0.5 * (power - 1.0))
}

/// The expectation of a function, `of`, under the stationary law of a random iteration, computed without sampling. A
/// step of the iteration goes from x to one of the two points next(x), with probability ½ each; the standard
/// deviation of its law must be about √(γ/2), where γ is `step`. The expectation after n steps from x, as a function
/// of x on a grid, is the mean of the expectations after n − 1 steps from both points, and becomes constant as n
/// grows.
fn stationary_mean(step: f64, next: impl Fn(f64) -> [f64; 2], of: impl Fn(f64) -> f64) -> f64 {
    let width = step / 32.0;
    // Six standard deviations to each side.
    let half = libm::ceil(6.0 * libm::sqrt(0.5 * step) / width);
    let points: Vec<f64> = (0..=2 * half as usize).map(|i| width * (i as f64 - half)).collect();
    // For each point of the grid the places of its two successors.
    let successors: Vec<_> = points
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
        mean = successors
            .iter()
            .map(|[up, down]| 0.5 * (interpolate(&mean, *up) + interpolate(&mean, *down)))
            .collect();
    }
    mean[half as usize]
}

/// The value of a function on a grid by linear interpolation. A place is the index of a point of the grid, which is not
/// the last one, and the fraction of the way from there to the next point.
fn interpolate(values: &[f64], place: (usize, f64)) -> f64 {
    let (index, part) = place;
    (1.0 - part) * values[index] + part * values[index + 1]
}

/// The bias of SGD as a multiple of γ^(3/2): E x/γ^(3/2) under the stationary law of x ← x − γ(f'(x) ± 1), where f'
/// is the [`smooth_gradient`] with this power, θ* = 0 and γ is `step`. By stationarity E f'(x) = 0, so that E x =
/// −E(f'(x) − x).
pub fn stationary_bias(power: f64, step: f64) -> f64 {
    -stationary_mean(
        step,
        |x: f64| [-1.0, 1.0].map(|sign| x - step * (smooth_gradient(x, power) + sign)),
        |x| smooth_gradient(x, power) - x,
    ) / libm::pow(step, 1.5)
}

/// What the first order, γ/2, leaves of the variance of SGD on a quadratic function whose noise depends on x, as a
/// multiple of γ²: (E x² − γ/2)/γ² under the stationary law of x ← x − γ(x ± (1 + |x|/2)). By stationarity E x²(2 −
/// γ) = γE(1 + |x|/2)².
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

/// FedAvg or Scaffold with N → ∞ clients of one distribution at stationarity, where the average over clients does not
/// move. The gradient of every client is the [`smooth_gradient`] with p = 2, with noise ±1.
pub struct ManyClients {
    /// The average, from which every round starts.
    average: f64,
    /// The step size γ.
    step: f64,
    /// The number H of local steps.
    steps: u32,
}

/// Where a client of [`ManyClients`] is in its rounds.
#[derive(Clone, Copy)]
struct ClientState {
    /// The local iterate.
    local: f64,
    /// The control variate ξ: with Scaffold the mean of the stochastic gradients in the round before.
    variate: f64,
    /// The sum of the stochastic gradients in this round so far.
    sum: f64,
    /// The number of local steps to go in this round.
    left: u32,
    /// The number of rounds to go, this one included.
    rounds: u32,
}

impl ManyClients {
    /// The expectation of the mean stochastic gradient of a client in its last round, from this state on, over all
    /// signs of the noise of all later steps. The work doubles with each step: 18 steps in all rounds take moments.
    fn gradient(&self, state: ClientState) -> f64 {
        let ClientState { local, variate, sum, left, rounds } = state;
        if left == 0 {
            let mean = sum / f64::from(self.steps);
            if rounds == 1 {
                return mean;
            }
            return self.gradient(self.start_of_round(mean, rounds - 1));
        }
        [-1.0, 1.0].iter().fold(0.0, |total, noise| {
            let drawn = smooth_gradient(local, 2.0) + noise;
            let next = local - self.step * (drawn - variate);
            let after = ClientState { local: next, sum: sum + drawn, left: left - 1, ..state };
            total + 0.5 * self.gradient(after)
        })
    }

    /// The state of a client at the start of a round, with this control variate and this number of rounds to go.
    fn start_of_round(&self, variate: f64, rounds: u32) -> ClientState {
        ClientState { local: self.average, variate, sum: 0.0, left: self.steps, rounds }
    }

    /// The bias lim E θ_t − θ* as a multiple of γ^(3/2), with θ* = 0: the average at which the expected gradient is
    /// 0, by fixed-point iteration. With `rounds` = 1 it is the bias of FedAvg, which has ξ = 0. With more it is the
    /// bias of Scaffold if the control variates forget ξ = 0 within this number of rounds.
    pub fn bias(step: f64, steps: u32, rounds: u32) -> f64 {
        let mut run = Self { average: 0.0, step, steps };
        for _ in 0..6 {
            run.average -= run.gradient(run.start_of_round(0.0, rounds));
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
