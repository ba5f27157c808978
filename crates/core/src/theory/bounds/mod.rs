//! Published upper bounds with explicit constants, each with its conditions.
//!
//! If a source has an error, the bound is that of the corrected proof, and the docstring
//! states what is printed and what is used. A bound whose conditions fail has no value,
//! only the list of failed conditions. What its statement asks of step sizes, local steps and
//! optima is read from `sources` (`check`).
//!
//! Sources: SCAFFLSA (federated linear stochastic approximation), RR (federated
//! Richardson-Romberg; "000" is its second version), SLIDES (Scaffold with stochastic
//! gradients), BOOK (Chapter 5).

pub mod book;
mod check;
pub mod constants;
mod published;
pub mod richardson_romberg;
pub mod scafflsa;
pub mod scaffold;
#[cfg(test)]
mod sixth_moments;
#[cfg(test)]
mod tests;

use check::Check;
pub use constants::Constants;
pub use published::{BoundId, PUBLISHED, PublishedBound, PublishedRun};

/// The bounded quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// E‖θ_t − θ*‖² at the round of the setup.
    SqError,
    /// The Lyapunov function ψ, SCAFFLSA (51), or (45) at a fixed local step
    /// with a coin. It is at least its first term, ‖θ_t − θ*‖² or N⁻¹ Σ‖θ_c − θ*‖².
    Lyapunov,
    /// ‖lim E θ_t − θ*‖, not squared.
    Bias,
    /// E‖θ_t − θ̄‖² around θ̄ = lim E θ_t.
    LimitSqError,
}

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    /// The condition: "γ ≤ 1/(2L)".
    pub condition: String,
    /// The value of the left side; 0 if the condition has no sides.
    pub have: f64,
    /// The largest allowed value of the left side; 1 if the condition has no sides.
    pub need: f64,
}

/// An upper bound for one setup.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Source and number.
    pub name: &'static str,
    /// The formula that is used.
    pub formula: &'static str,
    /// The bounded quantity.
    pub quantity: Bounded,
    /// Whether the value is a proved bound. If not, it is made of the source's leading
    /// terms with universal constants set to 1 and without higher orders, and measurements
    /// may exceed it.
    pub proved: bool,
    /// The value, or the conditions that fail.
    pub value: Result<f64, Vec<Unmet>>,
}

/// The algorithm of a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Algorithm {
    /// FedAvg, FedLSA.
    FedAvg,
    /// Scaffold, SCAFFLSA under H2: every H steps.
    Scaffold,
    /// SCAFFLSA under H1.
    Coin {
        /// p, above 0 and at most 1.
        probability: f64,
    },
    /// 2θ^(γ) − θ^(2γ), not averaged over rounds; γ is the step size of the setup.
    RichardsonRomberg,
}

/// The parameters of a run that enter the bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSetup {
    /// γ (η in SCAFFLSA; BOOK's μ is γH).
    pub step_size: f64,
    /// H, the local steps of a round.
    pub local_steps: u64,
    /// t, the number of rounds; under a coin these are t H local steps, whatever the
    /// number of communications.
    pub rounds: u64,
    /// ‖θ_0 − θ*‖².
    pub start_sq_error: f64,
    /// L of BOOK, the clients that take part in a round; `None` for all.
    pub cohort: Option<usize>,
}

impl RunSetup {
    /// The local steps of a client.
    pub fn steps(&self) -> f64 {
        self.local_steps as f64 * self.rounds as f64
    }

    /// H.
    fn h(&self) -> f64 {
        self.local_steps as f64
    }
}

/// (1 − γμ)^{Ht}: the factor by which the mean square distance of two runs on the same
/// noise has shrunk after t rounds (RR Propositions 1, 3 for γ ≤ 1/(2L), in 000 for
/// γ ≤ 1/L). SLIDES prints the distance itself instead of its square.
pub fn contraction(mu: f64, step_size: f64, local_steps: u64, rounds: u64) -> f64 {
    decay(step_size * mu, local_steps as f64 * rounds as f64)
}

/// (1 − x)ⁿ, 0 for x ≥ 1.
fn decay(x: f64, n: f64) -> f64 {
    if n == 0.0 {
        1.0
    } else if x >= 1.0 {
        0.0
    } else {
        libm::exp(n * libm::log1p(-x))
    }
}
