//! Published upper bounds with explicit constants, each with its conditions.
//!
//! Where a source errs the bound here is the one that its proof, mended, gives;
//! the docstring says what is printed and what is used. A bound whose conditions
//! fail has no value, only the conditions that fail.
//!
//! Sources: SCAFFLSA (federated linear stochastic approximation), RR (federated
//! Richardson-Romberg; "000" is its later version), SLIDES (Scaffold with
//! stochastic gradients), BOOK (Chapter 5).

pub mod book;
pub mod constants;
pub mod richardson_romberg;
pub mod scafflsa;
pub mod scaffold;
#[cfg(test)]
mod tests;

use crate::problem::Facts;
pub use constants::Constants;

/// What a bound speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// E‖θ_t − θ*‖² at the asked round.
    SqError,
    /// The Lyapunov function ψ, SCAFFLSA (51), or (45) at a fixed local step
    /// with a coin. Its first term, ‖θ_t − θ*‖² or N⁻¹ Σ‖θ_c − θ*‖², is below it.
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
    /// The left side's value; 0 where the condition is a yes or no.
    pub have: f64,
    /// What the left side may be at most; 1 where the condition is a yes or no.
    pub need: f64,
}

/// An upper bound at one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Source and number.
    pub name: &'static str,
    /// The formula as it is used.
    pub formula: &'static str,
    /// What it bounds.
    pub quantity: Bounded,
    /// Whether the value is a bound as it stands; if not, it is the source's
    /// leading terms, their universal constants taken as one and their higher
    /// orders left out, and measurements may lie above it.
    pub proved: bool,
    /// The value, or the conditions that fail.
    pub value: Result<f64, Vec<Unmet>>,
}

/// Which algorithm.
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
    /// 2θ^(γ) − θ^(2γ), not averaged over rounds; γ is the setting's step size.
    RichardsonRomberg,
}

/// What was run, and where it began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSetup {
    /// γ (η in SCAFFLSA; BOOK's μ is γH).
    pub step_size: f64,
    /// H, the local steps of a round.
    pub local_steps: u64,
    /// t, rounds done; with a coin, t H local steps are done, however many
    /// communications that was.
    pub rounds: u64,
    /// ‖θ_0 − θ*‖².
    pub start_sq_error: f64,
    /// L of BOOK, the clients that take part in a round; `None` for all.
    pub cohort: Option<usize>,
}

impl RunSetup {
    /// Local steps done by a client.
    pub fn steps(&self) -> f64 {
        self.local_steps as f64 * self.rounds as f64
    }

    /// H.
    fn h(&self) -> f64 {
        self.local_steps as f64
    }
}

/// The bounds that speak of this scheme, at the setting's round.
pub fn all(
    facts: &dyn Facts,
    constants: &Constants,
    scheme: Algorithm,
    setting: &RunSetup,
) -> Vec<Bound> {
    match scheme {
        Algorithm::FedAvg => vec![
            scafflsa::theorem_a5(facts, constants, setting),
            richardson_romberg::proposition_2(constants, setting),
            richardson_romberg::corollary_1(constants, setting),
            richardson_romberg::theorem_2(constants, setting),
            richardson_romberg::lemma_7(constants, setting),
            richardson_romberg::proposition_4(constants, setting),
            book::theorem_5_1(constants, setting),
            book::leading(constants, setting),
        ],
        Algorithm::Scaffold => {
            vec![scafflsa::theorem_b5(constants, setting), scaffold::rate(constants, setting)]
        }
        Algorithm::Coin { probability } => {
            vec![scafflsa::theorem_b2(constants, setting, probability)]
        }
        Algorithm::RichardsonRomberg => {
            vec![richardson_romberg::theorem_5(facts, constants, setting)]
        }
    }
}

/// (1 − γμ)^{Ht}: what the mean square distance of two runs on the same noise
/// has shrunk by after t rounds (RR Propositions 1, 3, γ ≤ 1/(2L), in 000
/// γ ≤ 1/L). SLIDES prints the distance itself in place of its square.
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

/// Collects what does not hold.
#[derive(Default)]
struct Check(Vec<Unmet>);

impl Check {
    /// `have` ≤ `need`; fails for NaN.
    fn at_most(&mut self, condition: &str, have: f64, need: f64) {
        if !matches!(have.partial_cmp(&need), Some(o) if o.is_le()) {
            self.0.push(Unmet { condition: condition.into(), have, need });
        }
    }

    fn holds(&mut self, condition: &str, holds: bool) {
        if !holds {
            self.0.push(Unmet { condition: condition.into(), have: 0.0, need: 1.0 });
        }
    }

    /// The field is linear, with Ā_c and their noise known.
    fn moments(&mut self, constants: &Constants) -> Option<constants::MatrixMoments> {
        self.holds("the field is linear: constants at θ* hold everywhere", constants.linear);
        let moments = constants.moments();
        self.holds("the moments of A(Z) are known and draws independent", moments.is_some());
        self.holds("sym Ā_c is positive definite for every client", constants.curvature() > 0.0);
        moments
    }

    fn everyone(&mut self, constants: &Constants, setting: &RunSetup) {
        let all = setting.cohort.is_none_or(|l| l == constants.clients.len());
        self.holds("every client takes part in every round", all);
    }

    fn gradient(&mut self, constants: &Constants) {
        self.holds("the field is a gradient", constants.gradient);
    }

    /// The value if all holds. It is asked for only then.
    fn then<T>(self, value: impl FnOnce() -> Option<T>) -> Result<T, Vec<Unmet>> {
        if !self.0.is_empty() {
            return Err(self.0);
        }
        value().ok_or_else(|| {
            let condition = "the bound can be computed in double precision".into();
            vec![Unmet { condition, have: 0.0, need: 1.0 }]
        })
    }
}
