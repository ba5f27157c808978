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
#[cfg(test)]
mod dummy;
mod published;
pub mod richardson_romberg;
pub mod scafflsa;
pub mod scaffold;
#[cfg(test)]
mod tests;

use crate::problem::Facts;
use crate::sources::StatedAlgorithm::{self, FedAvg};
use check::{Check, LinearField};
pub use constants::Constants;
pub use published::{BoundId, PublishedBound};
use serde::Deserialize;

/// The quantity that a bound is an upper bound of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

/// A condition of a bound that a run does not meet: an inequality, or a condition without sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    /// The condition: "γ ≤ 1/(2L)".
    pub condition: String,
    /// The value of the left side; 0 if the condition has no sides.
    pub have: f64,
    /// The largest allowed value of the left side; 1 if the condition has no sides.
    pub need: f64,
}

/// A published upper bound for one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The statement that it comes from, and how pages write it.
    pub info: &'static PublishedBound,
    /// The value of the bound, or the conditions that the run does not meet.
    pub value: BoundValue,
}

/// The value of a bound, or the conditions that fail.
pub type BoundValue = Result<f64, Vec<Unmet>>;

/// The function that computes the value of a bound for a run; `None` if the statement is not about runs of this
/// kind, as of another algorithm. Whether it is `None` must not depend on the round: the lists of bounds of one
/// run at several rounds are paired by place.
type ValueOfRun = fn(&PublishedRun<'_>) -> Option<BoundValue>;

/// The key of a bound in `published.toml`, and the function that computes it.
type RunBound = (&'static str, ValueOfRun);

/// A run in the terms of published bounds, up to the round at which bounds are computed. Its step sizes are constant,
/// it has no proximal term, its server step is 1 and its estimate is not averaged over rounds. Bounds take this for
/// granted: callers ask for no bounds of other runs.
pub struct PublishedRun<'a> {
    /// What is known of the instance.
    pub facts: &'a dyn Facts,
    /// The constants of the instance.
    pub constants: &'a Constants,
    /// The algorithm: FedAvg, Scaffold, Scaffold under a coin (`RandomScaffold`), or Richardson-Romberg of two runs of
    /// FedAvg, of which all fields describe the first; the second has the step size 2γ.
    pub algorithm: StatedAlgorithm,
    /// p, above 0 and at most 1, of communication by a coin after each local step (SCAFFLSA under H1); `None` without
    /// one.
    pub probability: Option<f64>,
    /// γ (η in SCAFFLSA), or BOOK's μ if `normalised`.
    pub step_size: f64,
    /// H, the most local steps of a client in a round, or their mean under a coin.
    pub most_steps: u64,
    /// E_k, the local steps of each client; one number if they are equal.
    pub local_steps: Vec<u64>,
    /// B_k, the draws of a local step of each client; one number if they are equal. Most bounds are for one draw.
    pub batches: Vec<u64>,
    /// Whether γ_k = γ/E_k.
    pub normalised: bool,
    /// t, the number of rounds; under a coin these are t H local steps, whatever the
    /// number of communications.
    pub rounds: u64,
    /// ‖θ_0 − θ*‖².
    pub start_sq_error: f64,
    /// L of BOOK, the number of clients that take part in a round; `None` if all do.
    pub cohort: Option<usize>,
}

impl<'a> PublishedRun<'a> {
    /// A run in which all clients take part in each round with `most_steps` local steps of one draw each, from a
    /// start at the distance 2 from θ*.
    #[cfg(test)]
    pub fn even(
        facts: &'a dyn Facts,
        constants: &'a Constants,
        algorithm: StatedAlgorithm,
        step_size: f64,
        most_steps: u64,
        rounds: u64,
    ) -> Self {
        Self {
            facts,
            constants,
            algorithm,
            probability: None,
            step_size,
            most_steps,
            local_steps: vec![most_steps],
            batches: vec![1],
            normalised: false,
            rounds,
            start_sq_error: 4.0,
            cohort: None,
        }
    }

    /// Whether all clients take the same number of local steps in a round.
    fn is_even(&self) -> bool {
        self.local_steps.iter().all(|steps| *steps == self.local_steps[0])
    }

    /// The run, if it is of this algorithm with equal local steps of one draw each: most statements are about
    /// such runs alone. `None` also for FedAvg with normalised step sizes, which only statements by
    /// [`Self::if_equal_paths`] are about.
    fn if_plain(&self, algorithm: StatedAlgorithm) -> Option<&Self> {
        let is_normalised_fedavg = algorithm == FedAvg && self.normalised;
        let is_plain = self.is_even() && self.batches == [1] && !is_normalised_fedavg;
        (self.algorithm == algorithm && is_plain).then_some(self)
    }

    /// The run, if it is of FedAvg and all clients have the same γ_k E_k, the sum of their step sizes in a round:
    /// BOOK's statements, and some others, allow unequal numbers of local steps if steps are normalised. Batches may
    /// be of any size: a statement about single draws has to exclude others itself.
    fn if_equal_paths(&self) -> Option<&Self> {
        let has_equal_paths = self.is_even() || self.normalised;
        (self.algorithm == FedAvg && has_equal_paths).then_some(self)
    }

    /// H, for formulas.
    fn h(&self) -> f64 {
        self.most_steps as f64
    }

    /// The step size γ of a local step, of a client with H local steps if steps are normalised.
    fn gamma(&self) -> f64 {
        if self.normalised { self.step_size / self.h() } else { self.step_size }
    }

    /// BOOK's μ, the sum of the step sizes of a round: γH, or `step_size` if γ_k = γ/E_k.
    fn path(&self) -> f64 {
        if self.normalised { self.step_size } else { self.step_size * self.h() }
    }

    /// (1 − x)ⁿ, where n = Ht is the number of local steps of the whole run: what is left of the start if each step
    /// shrinks its error by the factor 1 − x.
    fn decay(&self, x: f64) -> f64 {
        decay(x, self.h() * self.rounds as f64)
    }

    /// The number of clients that take part in a round, L of BOOK.
    fn taking_part(&self) -> usize {
        self.cohort.unwrap_or(self.constants.clients.len())
    }

    /// What each of the N clients does in a round, in their order.
    fn work(&self) -> impl Iterator<Item = ClientWork> {
        self.local_steps
            .iter()
            .cycle()
            .zip(self.batches.iter().cycle())
            .map(|(steps, batch)| ClientWork {
                local_steps: *steps as f64,
                gradients: *batch as f64 * *steps as f64,
            })
            .take(self.facts.clients())
    }
}

/// What a client does in a round.
struct ClientWork {
    /// E_k, the number of its local steps.
    local_steps: f64,
    /// B_k E_k, the number of gradients in all its steps.
    gradients: f64,
}

/// (1 − γμ)^{Ht}: an upper bound of the factor by which the mean square distance of two runs on the same noise has
/// changed after t = `rounds` rounds of H local steps. It is proved for FedAvg if γL ≤ 1 (RR Propositions 1, 3; their
/// first version asks γ ≤ 1/(2L)), and for Scaffold of option II whose runs begin with control variates of 0 if
/// γHL ≤ 1, also with the distance of the control variates: THEORY (7.1), (7.2), (7.3), (7.4), (7.5), (7.6). SLIDES prints
/// the factor for the distance itself instead of its square. `None` if the run does not meet the statement's conditions, or
/// the constants that they need are not known. μ is the least strong convexity of a client's function, as both proofs
/// need it, and not that of their mean. L is that of single draws: on linear fields the smallest with E AᵀA ≼ L sym Ā,
/// since the proofs use no more.
pub fn contraction(run: &PublishedRun<'_>) -> Option<f64> {
    let name = match run.algorithm {
        FedAvg => "RR Proposition 3",
        StatedAlgorithm::Scaffold => "SLIDES contraction of Scaffold",
        _ => return None,
    };
    let constants = run.constants;
    let (mu, _) = constants.everywhere?;
    let smoothness = constants.moments().map(|m| m.cocoercivity).or(constants.draws)?;
    if !run.is_even() || run.batches != [1] || !run.facts.independent() {
        return None;
    }
    let mut check = Check::new(run);
    check.equal_shares();
    check.gradient();
    check.everyone();
    check.holds("every f_c is strongly convex", mu > 0.0);
    check.stated(name, mu, Some(smoothness));
    check.then(|| Some(run.decay(run.gamma() * mu))).ok()
}

/// (1 − x)ⁿ, which is 0 for x ≥ 1 unless n is 0. It keeps its precision for small x and large n.
fn decay(x: f64, n: f64) -> f64 {
    if n == 0.0 {
        1.0
    } else if x >= 1.0 {
        0.0
    } else {
        libm::exp(n * libm::log1p(-x))
    }
}
