//! The coefficients of the mean square error over rounds.
//!
//! Rounds x ← M x + ζ₁ c + n make of a start R x_R + ζ₁ x_ζ the mean R u_t + ζ₁ w_t of the estimate's error, and its
//! covariance is σ² V_t. So
//!
//! ```text
//! THEORY (6.10)   E‖θ_t − θ*‖² = R² ‖u_t‖² + 2 R ζ₁ u_t · w_t + ζ₁² ‖w_t‖² + σ² tr V_t
//! ```

use crate::kernel::{axpy, dot};
use crate::linalg::Matrix;
use crate::theory::exact::{ErrorParts, LinearRounds};

/// All of the first rounds are in the table.
const FIRST: u64 = 32;

/// Between a power of two and the next there are so many rounds of the table.
const PER_OCTAVE: u64 = 16;

/// The most octaves after the first rounds.
const MOST_OCTAVES: u32 = 14;

/// What a round may still change, relative to what the largest coefficient was before any round, where a table ends.
const SETTLED: f64 = 1e-13;

/// The size of a coefficient beyond which rounds are taken to diverge.
const GROWN: f64 = 1e30;

/// The numbers of a problem of a class in which its error is a quadratic form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProblemScale {
    /// R, the distance of the start from θ*.
    pub distance: f64,
    /// ζ₁, the root mean square of the clients' gradients at θ*.
    pub gradients: f64,
    /// σ², the mean square of the noise of an oracle, over the number of clients.
    pub noise: f64,
}

/// The coefficients of THEORY (6.10) after some rounds, in increasing order: all of the first ones, and then so many
/// that each is at most a sixteenth later than the one before. They end where later rounds change nothing.
#[derive(Clone, Debug, Default)]
pub struct Coefficients {
    /// The rounds t after which coefficients are known, in increasing order.
    pub rounds: Vec<u64>,
    /// ‖u_t‖², u_t · w_t, ‖w_t‖² and tr V_t after each of the rounds.
    of_distance: Vec<f64>,
    of_both: Vec<f64>,
    of_gradients: Vec<f64>,
    of_noise: Vec<f64>,
    /// Whether later rounds change nothing, so that the last coefficients are the limits.
    pub is_settled: bool,
}

/// The state of the computation before a round.
struct Followed {
    /// The state that comes of the distance of the start.
    distance: Vec<f64>,
    /// The state that comes of the gradients at θ*.
    gradients: Vec<f64>,
    /// W times the map from the start to the state.
    result: Matrix,
    /// The trace of W Cov Wᵀ of the state, but for the covariance at the start.
    noise: f64,
}

/// What `count` rounds do, for a count that is a power of two.
struct Leap {
    /// M to the power of the count.
    map: Matrix,
    /// Σ_{s<count} Mˢ c, what the constants of all these rounds add.
    constant: Vec<f64>,
    /// Σ_{s<count} Mˢ Q (Mˢ)ᵀ, where Q is the covariance of n.
    noise: Matrix,
}

impl Leap {
    /// Twice as many rounds.
    fn doubled(&self) -> Self {
        let mut constant = self.map.apply(&self.constant);
        axpy(1.0, &self.constant, &mut constant);
        let mut noise = self.map.times(&self.noise).times_transposed(&self.map);
        noise.add(1.0, &self.noise);
        Self { map: self.map.times(&self.map), constant, noise }
    }
}

impl Followed {
    /// The state after the rounds of a leap.
    fn after(&self, leap: &Leap) -> Self {
        let mut gradients = leap.map.apply(&self.gradients);
        axpy(1.0, &leap.constant, &mut gradients);
        Self {
            distance: leap.map.apply(&self.distance),
            gradients,
            noise: self.noise + trace_of(&self.result, &leap.noise),
            result: self.result.times(&leap.map),
        }
    }
}

/// The trace of W C Wᵀ, for a matrix W and a covariance C.
fn trace_of(w: &Matrix, covariance: &Matrix) -> f64 {
    dot(w.times(covariance).entries(), w.entries())
}

impl Coefficients {
    /// The coefficients of rounds up to the round from which nothing changes, or of a fixed number of octaves. They are
    /// empty if rounds diverge.
    pub fn new(rounds: &LinearRounds) -> Self {
        let mut all = Self::default();
        for (round, parts) in rounds.lead.iter().enumerate() {
            all.push(round as u64, parts);
        }
        let mut leap = Leap {
            map: rounds.map.clone(),
            constant: rounds.constant.clone(),
            noise: rounds.noise.clone(),
        };
        let mut state = Followed {
            distance: rounds.start_of_distance.clone(),
            gradients: rounds.start_of_gradients.clone(),
            result: rounds.result.clone(),
            noise: 0.0,
        };
        let mut round = rounds.lead.len() as u64;
        let mut step = 1;
        for octave in 0..=MOST_OCTAVES {
            let count = if octave == 0 { FIRST } else { PER_OCTAVE };
            for _ in 0..count {
                let start = rounds.start_noise.as_ref();
                let of_start = start.map_or(0.0, |start| trace_of(&state.result, start));
                let noise = state.noise + of_start;
                all.push(round, &rounds.error_after(&state.distance, &state.gradients, noise));
                if all.is_grown() {
                    return Self::default();
                }
                if all.settles() {
                    all.is_settled = true;
                    return all;
                }
                state = state.after(&leap);
                round += step;
            }
            let doublings = if octave == 0 { (FIRST / PER_OCTAVE).ilog2() } else { 1 };
            for _ in 0..doublings {
                leap = leap.doubled();
                step *= 2;
            }
        }
        all
    }

    /// Adds the coefficients after a round.
    fn push(&mut self, round: u64, parts: &ErrorParts) {
        let [distance, both, gradients, noise] = parts.coefficients();
        self.rounds.push(round);
        self.of_distance.push(distance);
        self.of_both.push(both);
        self.of_gradients.push(gradients);
        self.of_noise.push(noise);
    }

    /// Whether a last coefficient is so large that rounds diverge.
    fn is_grown(&self) -> bool {
        let last = self.rounds.len() - 1;
        let sum = self.of_distance[last] + self.of_gradients[last] + self.of_noise[last];
        sum.is_nan() || sum >= GROWN
    }

    /// Whether the coefficients after the last two rounds of the table are the same, and the start is forgotten.
    fn settles(&self) -> bool {
        let last = self.rounds.len() - 1;
        self.of_distance[last] <= SETTLED * SETTLED * self.of_distance[0]
            && rests(&self.of_gradients)
            && rests(&self.of_noise)
    }

    /// E‖θ_t − θ*‖² after each round of the table, THEORY (6.10).
    pub fn errors(&self, scale: &ProblemScale) -> impl Iterator<Item = f64> {
        let distance = scale.distance * scale.distance;
        let both = 2.0 * scale.distance * scale.gradients;
        let gradients = scale.gradients * scale.gradients;
        let noise = scale.noise;
        (0..self.rounds.len()).map(move |i| {
            distance * self.of_distance[i]
                + both * self.of_both[i]
                + gradients * self.of_gradients[i]
                + noise * self.of_noise[i]
        })
    }

    /// The first round of the table from which the error stays at most ε² = `square`, as far as its rounds show. The
    /// first such round of all is at most a sixteenth earlier, and the same among the first 32. `None` if the last error
    /// is above ε², or rounds diverge.
    pub fn rounds_to(&self, scale: &ProblemScale, square: f64) -> Option<u64> {
        let mut held = None;
        for (round, error) in self.rounds.iter().zip(self.errors(scale)) {
            // An error that is NaN is not at most ε² either.
            held = if error <= square { held.or(Some(*round)) } else { None };
        }
        held
    }
}

/// Whether the last two of these numbers, of which there are at least two, are the same up to [`SETTLED`].
fn rests(of: &[f64]) -> bool {
    let last = of.len() - 1;
    (of[last] - of[last - 1]).abs() <= SETTLED * of[last].abs()
}
