//! Whether an instance and a run meet the conditions under which the sources make their statements. Pages say so
//! of each claim that tests a statement: they check each of its cells, and count how many are inside, outside or not
//! checkable.
//!
//! On linear fields the constants follow from the Jacobians and from the moments of draws. On
//! other fields the problem states constants that hold at every θ. f_c is the loss of client c, A = A(Z) the Jacobian
//! of one draw of a client's linear field, and Ā_c its mean.

use super::bounds::Constants;
use crate::client_sampling::ParticipationScheme;
use crate::problem::{DrawSmoothness, Facts};
use crate::sources::{Condition, StatedAlgorithm};

/// The facts about the run of a cell on which the conditions of statements depend. If the estimate combines several
/// runs, as Richardson-Romberg does, all facts but the algorithm are of the first of them.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConditions<'a> {
    /// The algorithm of the run.
    pub algorithm: StatedAlgorithm,
    /// The algorithms of all cells of the claim, with this one; an algorithm of several cells occurs several times.
    pub compared: &'a [StatedAlgorithm],
    /// Whether the step size is the same in all rounds.
    pub constant: bool,
    /// Whether the estimate is a mean of iterates over rounds.
    pub averaged: bool,
    /// The step size γ of a local step. A normalised step size is divided by H here already.
    pub step_size: f64,
    /// H, the most local steps of a client in a round, or their mean number under a coin.
    pub local_steps: f64,
    /// Whether gradients are exact.
    pub exact: bool,
    /// Whether step sizes are divided by the numbers of local steps.
    pub normalised: bool,
    /// The number of clients that take part in each round; `None` if all do.
    pub cohort: Option<usize>,
    /// How they are drawn and weighed.
    pub participation: ParticipationScheme,
    /// Whether the clients do the same number of local steps or are normalised, and the server
    /// takes their mean.
    pub equal: bool,
}

/// Whether a condition holds for one cell. A cell that fails one condition is outside the statement; a cell that fails
/// none is inside only if all answers are [`ConditionAnswer::Met`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConditionAnswer {
    /// The condition holds.
    Met,
    /// The condition does not hold.
    Unmet,
    /// The condition is an inequality that does not hold: its left side is `have`, and may be at most `need`. Pages
    /// write the largest `have`/`need` over cells.
    Exceeded {
        /// The value of the left side.
        have: f64,
        /// The largest value that the condition allows.
        need: f64,
    },
    /// It cannot be checked whether the condition holds. The text says why not, and pages write it after “since”;
    /// it is empty if the words of the condition are enough.
    Unknown(&'static str),
}

impl ConditionAnswer {
    /// The answer to the condition `have` ≤ `need`, which holds up to rounding; unknown if a side is NaN.
    fn at_most(have: f64, need: f64) -> Self {
        match have.partial_cmp(&(need * (1.0 + ROUNDING))) {
            Some(order) if order.is_le() => Self::Met,
            Some(_) => Self::Exceeded { have, need },
            None => Self::Unknown("its constants are not finite"),
        }
    }

    /// The answer to a condition that is no inequality, and is met if `holds`.
    fn holds(holds: bool) -> Self {
        if holds { Self::Met } else { Self::Unmet }
    }
}

/// An instance and a run, of which it is checked whether they meet conditions.
pub struct Checked<'a> {
    /// The instance with θ* known, or why there is no such instance: the text of [`ConditionAnswer::Unknown`] then.
    pub facts: Result<&'a dyn Facts, &'static str>,
    /// The constants of the instance; `None` if they are too much work, or could not be computed.
    pub constants: Option<&'a Constants>,
    /// What is known of the run.
    pub run: RunConditions<'a>,
}

/// Why a condition on L, or on the convexity of draws, cannot be checked.
const NO_SMOOTHNESS: &str = "the smoothness of the draws is not known";

impl Checked<'_> {
    /// Whether the instance and the run meet a condition.
    pub fn answer(&self, condition: &Condition) -> ConditionAnswer {
        self.try_answer(condition).unwrap_or_else(ConditionAnswer::Unknown)
    }

    /// [`Checked::answer`], with the text of [`ConditionAnswer::Unknown`] as the error.
    fn try_answer(&self, condition: &Condition) -> Result<ConditionAnswer, &'static str> {
        let run = &self.run;
        let pace = (self.run.step_size, self.run.local_steps);
        let sides = condition.sides(pace, || self.convexity(), || self.smoothness())?;
        if let Some((have, need)) = sides {
            return Ok(ConditionAnswer::at_most(have, need));
        }
        let holds = match condition {
            Condition::Algorithm { any_of, compared_with } => {
                // A claim that compares the algorithms of the statement with others is also about the others.
                let is_comparison = run.compared.iter().any(|other| any_of.contains(other));
                any_of.contains(&run.algorithm)
                    || (is_comparison && compared_with.contains(&run.algorithm))
            }
            Condition::ConstantStepSize => run.constant,
            Condition::LastIterate => !run.averaged,
            Condition::AveragedIterates => run.averaged,
            Condition::WithoutNoise => run.exact,
            Condition::OneLocalStep => run.local_steps == 1.0,
            Condition::SeveralLocalSteps => run.local_steps > 1.0,
            // With one local step of every client nothing is divided.
            Condition::Normalised => run.normalised || run.local_steps == 1.0,
            // The words of such a condition say what is not known.
            Condition::Unknown(_) => return Err(""),
            Condition::StronglyConvex => self.convexity()? > 0.0,
            Condition::ConvexDraws => self.convex_draws()?,
            Condition::Linear => self.facts?.linear(),
            Condition::Quadratic => self.facts?.linear() && self.facts?.symmetric(),
            Condition::Homogeneous => {
                let facts = self.facts?;
                let first = facts.distribution(0);
                (1..facts.clients()).all(|c| facts.distribution(c) == first)
            }
            Condition::ZeroGradients => {
                let (have, need) = self.constants()?.common_optimum();
                have <= need
            }
            // Exact gradients do not depend on draws.
            Condition::IndependentDraws => self.facts?.independent() || run.exact,
            Condition::OneClient => self.facts?.clients() == 1,
            Condition::Stable => return self.stable(),
            Condition::FewLocalSteps => return self.few_local_steps(),
            Condition::AllClients => {
                let facts = self.facts?;
                run.equal
                    && !run.participation.draws_clients(run.cohort, facts.clients())
                    && facts.unequal_shares().is_none()
            }
            // The inequalities, which `sides` has answered, and conditions that no code checks yet.
            _ => return Err("the program does not check it"),
        };
        Ok(ConditionAnswer::holds(holds))
    }

    /// The constants of the instance, or why they are not known.
    fn constants(&self) -> Result<&Constants, &'static str> {
        self.facts?;
        self.constants.ok_or("the constants of the instance are not computed")
    }

    /// μ, the least strong convexity of the clients' functions at every θ, or why it is not known. On a linear field it
    /// is the least eigenvalue of sym Ā_c, which may be 0 or negative.
    fn convexity(&self) -> Result<f64, &'static str> {
        if self.facts?.linear() {
            return Ok(self.constants()?.curvature());
        }
        self.facts?.convexity().ok_or("the convexity of the functions is not known")
    }

    /// L of the gradients of single draws at every θ, with which step sizes are compared, or why it is not known. On
    /// a linear field it is the smallest L with E AᵀA ≼ L sym Ā for every client, and max ‖Ā_c‖ without noise. On
    /// other fields, and where E AᵀA is not known, it is the L that the problem states for all draws.
    fn smoothness(&self) -> Result<f64, &'static str> {
        let of_draws = match self.facts?.draw_smoothness() {
            DrawSmoothness::AtMost(most) => Some(most),
            _ => None,
        };
        if !self.facts?.linear() {
            return of_draws.ok_or(NO_SMOOTHNESS);
        }
        let constants = self.constants()?;
        match constants.moments() {
            _ if self.run.exact => Ok(constants.norm()),
            Some(moments) => Ok(moments.cocoercivity),
            None => of_draws.ok_or(NO_SMOOTHNESS),
        }
    }

    /// Whether the loss of every draw is convex and smooth ([`Condition::ConvexDraws`]), or why it is not known. False
    /// for a linear field that is no gradient. With exact gradients of a linear field the clients' mean losses count as
    /// the draws.
    fn convex_draws(&self) -> Result<bool, &'static str> {
        let facts = self.facts?;
        if facts.linear() && !facts.symmetric() {
            return Ok(false);
        }
        if self.run.exact && facts.linear() {
            return Ok(self.convexity()? >= 0.0);
        }
        // The statements that need this are about draws that are independent too (RR A1).
        if !facts.independent() && !self.run.exact {
            return Err("draws are not independent");
        }
        match facts.draw_smoothness() {
            DrawSmoothness::AtMost(_) => Ok(true),
            DrawSmoothness::Unbounded => Ok(false),
            DrawSmoothness::Unknown => Err(NO_SMOOTHNESS),
        }
    }

    /// The answer to [`Condition::Stable`], SCAFFLSA A2 at the step size η of the run: unmet if A3's a is not positive;
    /// otherwise the first of the inequalities η ≤ 2/L and ηa ≤ 1/2 that fails, or else whether A2's a is positive.
    fn stable(&self) -> Result<ConditionAnswer, &'static str> {
        let constants = self.constants()?;
        let (rate, sides) =
            constants.stability(self.run.step_size).ok_or("the moments of A(Z) are not known")?;
        if constants.curvature() <= 0.0 {
            return Ok(ConditionAnswer::Unmet);
        }
        let mut answers =
            sides.into_iter().map(|(have, need)| ConditionAnswer::at_most(have, need));
        let positive = ConditionAnswer::holds(rate > 0.0);
        let failing = answers.find(|answer| *answer != ConditionAnswer::Met);
        Ok(failing.unwrap_or(positive))
    }

    /// The answer to [`Condition::FewLocalSteps`]: whether H is at most what SCAFFLSA's Theorem 5.3 and its proof allow
    /// at the step size η of the run. It is unmet whatever H is if a ≤ 0 or η max ‖Ā_c‖ > 1.
    fn few_local_steps(&self) -> Result<ConditionAnswer, &'static str> {
        let constants = self.constants()?;
        let step = self.run.step_size;
        let a = constants.curvature();
        let norm = constants.norm();
        if a <= 0.0 || step * norm > 1.0 + ROUNDING {
            return Ok(ConditionAnswer::Unmet);
        }
        let moments = constants.moments().ok_or("the moments of A(Z) are not known")?;
        // The condition of the statement, the one that its proof needs, and the two that the proof assumes.
        let of_statement = a / (32.0 * step * norm * norm);
        let of_proof = moments.rate(a, step) / (16.0 * step * moments.worst);
        let most = of_statement.min(of_proof).min(1.0 / step).min(1.0 / (step * a));
        Ok(ConditionAnswer::at_most(self.run.local_steps, most))
    }
}

/// How far rounding may move a side of a condition, relatively.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{logistic, quadratic};
    use crate::sample;
    use crate::sources::Condition::*;

    const OURS: &[StatedAlgorithm] = &[StatedAlgorithm::FedAvg];

    /// A run of FedAvg with constant steps and all clients, in a claim about FedAvg alone.
    fn run(step_size: f64, local_steps: f64) -> RunConditions<'static> {
        RunConditions {
            algorithm: StatedAlgorithm::FedAvg,
            compared: OURS,
            constant: true,
            averaged: false,
            step_size,
            local_steps,
            exact: false,
            normalised: false,
            cohort: None,
            participation: ParticipationScheme::Normalised,
            equal: true,
        }
    }

    /// The answer to each of the conditions `of` for a run on an instance.
    fn answers(
        facts: &dyn Facts,
        run: RunConditions<'_>,
        of: &[Condition],
    ) -> Vec<ConditionAnswer> {
        let constants = Constants::new(facts);
        let checked = Checked { facts: Ok(facts), constants: constants.as_ref(), run };
        of.iter().map(|condition| checked.answer(condition)).collect()
    }

    /// Three clients whose functions have the curvature 2 in all directions, so that L = μ = 2. Multiplicative noise of
    /// the two-point form keeps all draws convex and makes L = 2.5; the Gaussian form has draws that are not convex.
    #[test]
    fn a_quadratic_meets_what_its_constants_say() {
        let base = quadratic::Settings { noise: 0.1, ..sample::isotropic(3, 2, 2.0) };
        let facts = sample::build(&base, 1);
        let of = [StronglyConvex, ConvexDraws, Quadratic, Homogeneous, ZeroGradients, WithoutNoise];
        use ConditionAnswer::*;
        assert_eq!(answers(&facts, run(0.1, 4.0), &of), [Met, Met, Met, Unmet, Met, Unmet]);
        let of = [StepTimesSmoothness(4.0), PathTimesConvexity(1.0), PathTimesSmoothness];
        assert_eq!(answers(&facts, run(0.1, 4.0), &of), [Met, Met, Met]);
        let found = answers(&facts, run(0.2, 4.0), &of);
        assert!(matches!(found[0], Exceeded { have: 0.2, need } if (need - 0.125).abs() < 1e-9));
        assert!(found[1..].iter().all(|answer| matches!(answer, Exceeded { .. })), "{found:?}");
        let multiplied = quadratic::Settings { multiplicative_noise: 0.5, ..base };
        let multiplicative_form = quadratic::MultiplicativeForm::TwoPoint;
        let convex =
            sample::build(&quadratic::Settings { multiplicative_form, ..multiplied.clone() }, 1);
        let of = [ConvexDraws, StepTimesSmoothness(2.0)];
        assert_eq!(answers(&convex, run(0.2, 1.0), &of), [Met, Met]);
        assert!(matches!(answers(&convex, run(0.21, 1.0), &of)[1], Exceeded { .. }));
        let facts = sample::build(&multiplied, 1);
        assert_eq!(answers(&facts, run(0.1, 1.0), &[ConvexDraws]), [Unmet]);
        let exact = RunConditions { exact: true, ..run(0.1, 1.0) };
        assert_eq!(answers(&facts, exact, &[ConvexDraws, WithoutNoise]), [Met, Met]);
    }

    /// Logistic regression knows L and the convexity of its draws at every θ, from λ and the longest record, so that
    /// conditions are answered although the field is not linear.
    #[test]
    fn a_logistic_regression_states_constants_for_every_point() {
        let facts: logistic::Logistic = sample::build(&sample::blobs(), 2);
        let DrawSmoothness::AtMost(most) = facts.draw_smoothness() else { panic!() };
        let constants = Constants::new(&facts).unwrap();
        assert!(constants.norm() <= most && facts.convexity().unwrap() <= constants.curvature());
        let found = answers(&facts, run(2.0 / most, 1.0), &[StepTimesSmoothness(1.0), ConvexDraws]);
        assert!(
            matches!(found[0], ConditionAnswer::Exceeded { .. })
                && found[1] == ConditionAnswer::Met,
            "{found:?}"
        );
    }

    /// A statement about FedAvg is about runs of FedAvg, and about a run of Scaffold only where the statement allows
    /// the comparison and the claim has a run of FedAvg too. Step sizes and averages are conditions of their own.
    #[test]
    fn statements_are_about_their_algorithm() {
        use ConditionAnswer::{Met, Unmet};
        let facts = sample::build(&sample::isotropic(3, 2, 2.0), 1);
        let algorithm = StatedAlgorithm::Scaffold;
        const THEIRS: &[StatedAlgorithm] = &[StatedAlgorithm::Scaffold];
        let stated = |any_of: &[StatedAlgorithm], compared_with: &[StatedAlgorithm]| Algorithm {
            any_of: any_of.into(),
            compared_with: compared_with.into(),
        };
        let of = [stated(OURS, &[]), stated(OURS, THEIRS), stated(THEIRS, &[])];
        assert_eq!(answers(&facts, run(0.1, 4.0), &of), [Met, Met, Unmet]);
        let both = [OURS, THEIRS].concat();
        let alone = RunConditions { algorithm, compared: THEIRS, ..run(0.1, 4.0) };
        assert_eq!(answers(&facts, alone, &of), [Unmet, Unmet, Met]);
        let compared = RunConditions { algorithm, compared: &both, ..run(0.1, 4.0) };
        assert_eq!(answers(&facts, compared, &of), [Unmet, Met, Met]);
        let falling = RunConditions { constant: false, averaged: true, ..run(0.1, 4.0) };
        let of = [ConstantStepSize, LastIterate, AveragedIterates];
        assert_eq!(answers(&facts, falling, &of), [Unmet, Unmet, Met]);
        assert_eq!(answers(&facts, run(0.1, 4.0), &of), [Met, Met, Unmet]);
    }
}
