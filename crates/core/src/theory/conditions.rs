//! Whether an instance and a run meet the conditions of the sources' statements.
//!
//! On linear fields the constants are those of the Jacobians and of the moments of draws. On
//! others the problem states constants that hold at every θ.

use super::bounds::Constants;
use crate::problem::{DrawSmoothness, Facts};
use crate::sources::Condition;

/// What the conditions ask of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunConditions {
    /// γ.
    pub step_size: f64,
    /// H, the mean number of local steps of a round.
    pub local_steps: f64,
    /// Whether gradients are exact.
    pub exact: bool,
    /// Whether step sizes are divided by the numbers of local steps.
    pub normalised: bool,
    /// Whether all clients take part in every round, with one local step and weight like the others.
    pub everyone: bool,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConditionAnswer {
    /// It holds.
    Met,
    /// It does not hold.
    Unmet,
    /// The left side is this large, and may be at most `need`.
    Exceeded {
        /// The value of the left side.
        have: f64,
        /// What it may be.
        need: f64,
    },
    /// What would have to be known to check it.
    Unknown(&'static str),
}

impl ConditionAnswer {
    fn at_most(have: f64, need: f64) -> Self {
        match have.partial_cmp(&need) {
            Some(order) if order.is_le() => Self::Met,
            Some(_) => Self::Exceeded { have, need },
            None => Self::Unknown("its constants are not finite"),
        }
    }

    fn holds(holds: bool) -> Self {
        if holds { Self::Met } else { Self::Unmet }
    }
}

/// An instance and a run, whose conditions are checked.
pub struct Checked<'a> {
    /// The instance.
    pub facts: &'a dyn Facts,
    /// Its constants; `None` if they are not known.
    pub constants: Option<&'a Constants>,
    /// The run.
    pub run: RunConditions,
}

const NO_CONSTANTS: &str = "the constants of the instance are not computed";
const NO_SMOOTHNESS: &str = "the smoothness of the draws is not known";

impl Checked<'_> {
    /// Whether a condition holds.
    pub fn answer(&self, condition: Condition) -> ConditionAnswer {
        self.try_answer(condition).unwrap_or_else(ConditionAnswer::Unknown)
    }

    fn try_answer(&self, condition: Condition) -> Result<ConditionAnswer, &'static str> {
        let RunConditions { step_size, local_steps, exact, normalised, everyone } = self.run;
        let path = step_size * local_steps;
        let facts = self.facts;
        Ok(match condition {
            Condition::StronglyConvex => ConditionAnswer::holds(self.convexity()? > 0.0),
            Condition::ConvexDraws => self.convex_draws()?,
            Condition::StepTimesSmoothness(most) => {
                ConditionAnswer::at_most(step_size * self.smoothness()?, most * (1.0 + ROUNDING))
            }
            Condition::PathTimesConvexity => {
                ConditionAnswer::at_most(path * self.convexity()?, 1.0 + ROUNDING)
            }
            Condition::Path(most) => ConditionAnswer::at_most(path, most * (1.0 + ROUNDING)),
            Condition::PathTimesSmoothness => {
                ConditionAnswer::at_most(path * self.smoothness()?, 1.0 + ROUNDING)
            }
            Condition::WithoutNoise => ConditionAnswer::holds(exact),
            Condition::Linear => ConditionAnswer::holds(facts.linear()),
            Condition::Quadratic => ConditionAnswer::holds(facts.linear() && facts.symmetric()),
            Condition::Homogeneous => {
                let first = facts.distribution(0);
                ConditionAnswer::holds((1..facts.clients()).all(|c| facts.distribution(c) == first))
            }
            Condition::ZeroGradients => {
                let constants = self.constants.ok_or(NO_CONSTANTS)?;
                ConditionAnswer::holds(constants.zeta1() <= ZERO * constants.norm().max(1.0))
            }
            Condition::IndependentDraws => ConditionAnswer::holds(exact || facts.independent()),
            Condition::OneLocalStep => ConditionAnswer::holds(local_steps == 1.0),
            Condition::SeveralLocalSteps => ConditionAnswer::holds(local_steps > 1.0),
            Condition::OneClient => ConditionAnswer::holds(facts.clients() == 1),
            Condition::Normalised => ConditionAnswer::holds(normalised || local_steps == 1.0),
            Condition::Stable => self.stable()?,
            Condition::FewLocalSteps => self.few_local_steps()?,
            Condition::AllClients => {
                ConditionAnswer::holds(everyone && facts.unequal_shares().is_none())
            }
            Condition::Unknown(what) => ConditionAnswer::Unknown(what),
        })
    }

    /// μ, at every θ.
    fn convexity(&self) -> Result<f64, &'static str> {
        if self.facts.linear() {
            return Ok(self.constants.ok_or(NO_CONSTANTS)?.curvature());
        }
        self.facts.convexity().ok_or("the convexity of the functions is not known")
    }

    /// L of the draws, at every θ; on a linear field the smallest with E AᵀA ≼ L sym Ā.
    fn smoothness(&self) -> Result<f64, &'static str> {
        let of_draws = match self.facts.draw_smoothness() {
            DrawSmoothness::AtMost(most) => Some(most),
            _ => None,
        };
        if !self.facts.linear() {
            return of_draws.ok_or(NO_SMOOTHNESS);
        }
        let constants = self.constants.ok_or(NO_CONSTANTS)?;
        match constants.moments() {
            _ if self.run.exact => Ok(constants.norm()),
            Some(moments) => Ok(moments.cocoercivity),
            None => of_draws.ok_or(NO_SMOOTHNESS),
        }
    }

    fn convex_draws(&self) -> Result<ConditionAnswer, &'static str> {
        let facts = self.facts;
        if facts.linear() && !facts.symmetric() {
            return Ok(ConditionAnswer::Unmet);
        }
        if self.run.exact && facts.linear() {
            return Ok(ConditionAnswer::holds(self.convexity()? >= 0.0));
        }
        match facts.draw_smoothness() {
            DrawSmoothness::AtMost(_) => Ok(ConditionAnswer::Met),
            DrawSmoothness::Unbounded => Ok(ConditionAnswer::Unmet),
            DrawSmoothness::Unknown => Err(NO_SMOOTHNESS),
        }
    }

    fn stable(&self) -> Result<ConditionAnswer, &'static str> {
        let constants = self.constants.ok_or(NO_CONSTANTS)?;
        let moments = constants.moments().ok_or("the moments of A(Z) are not known")?;
        let (step, curvature) = (self.run.step_size, constants.curvature());
        if curvature <= 0.0 {
            return Ok(ConditionAnswer::Unmet);
        }
        let rate = moments.rate(curvature, step);
        Ok(match ConditionAnswer::at_most(step, 2.0 / moments.cocoercivity) {
            ConditionAnswer::Met if rate > 0.0 => ConditionAnswer::at_most(step * rate, 0.5),
            ConditionAnswer::Met => ConditionAnswer::Unmet,
            exceeded => exceeded,
        })
    }

    fn few_local_steps(&self) -> Result<ConditionAnswer, &'static str> {
        let constants = self.constants.ok_or(NO_CONSTANTS)?;
        let (step, a, norm) = (self.run.step_size, constants.curvature(), constants.norm());
        if a <= 0.0 || step * norm > 1.0 + ROUNDING {
            return Ok(ConditionAnswer::Unmet);
        }
        let most = (a / (32.0 * step * norm * norm)).min(1.0 / step).min(1.0 / (step * a));
        Ok(ConditionAnswer::at_most(self.run.local_steps, most * (1.0 + ROUNDING)))
    }
}

/// How far rounding may move a side of a condition, relatively.
const ROUNDING: f64 = 1e-9;
/// What counts as 0 of a norm, relatively.
const ZERO: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{logistic, quadratic};
    use crate::sample;
    use crate::sources::Condition::*;

    fn run(step_size: f64, local_steps: f64) -> RunConditions {
        let (exact, normalised, everyone) = (false, false, true);
        RunConditions { step_size, local_steps, exact, normalised, everyone }
    }

    fn answers(facts: &dyn Facts, run: RunConditions, of: &[Condition]) -> Vec<ConditionAnswer> {
        let constants = Constants::new(facts);
        let checked = Checked { facts, constants: constants.as_ref(), run };
        of.iter().map(|condition| checked.answer(*condition)).collect()
    }

    #[test]
    fn a_quadratic_meets_what_its_constants_say() {
        let base = quadratic::Settings { noise: 0.1, ..sample::isotropic(3, 2, 2.0) };
        let facts = sample::build(&base, 1);
        let of = [StronglyConvex, ConvexDraws, Quadratic, Homogeneous, ZeroGradients, WithoutNoise];
        use ConditionAnswer::*;
        assert_eq!(answers(&facts, run(0.1, 4.0), &of), [Met, Met, Met, Unmet, Met, Unmet]);
        let of = [StepTimesSmoothness(0.25), PathTimesConvexity, PathTimesSmoothness, Path(0.4)];
        assert_eq!(answers(&facts, run(0.1, 4.0), &of), [Met, Met, Met, Met]);
        let found = answers(&facts, run(0.2, 4.0), &of);
        assert!(
            matches!(found[0], Exceeded { have, need } if (have - 0.4).abs() < 1e-9 && need < 0.26)
        );
        assert!(found[1..].iter().all(|answer| matches!(answer, Exceeded { .. })), "{found:?}");
        let multiplied = quadratic::Settings { multiplicative_noise: 0.5, ..base };
        let multiplicative_form = quadratic::MultiplicativeForm::TwoPoint;
        let convex =
            sample::build(&quadratic::Settings { multiplicative_form, ..multiplied.clone() }, 1);
        let of = [ConvexDraws, StepTimesSmoothness(0.5)];
        assert_eq!(answers(&convex, run(0.2, 1.0), &of), [Met, Met]);
        assert!(matches!(answers(&convex, run(0.21, 1.0), &of)[1], Exceeded { .. }));
        let facts = sample::build(&multiplied, 1);
        assert_eq!(answers(&facts, run(0.1, 1.0), &[ConvexDraws]), [Unmet]);
        let exact = RunConditions { exact: true, ..run(0.1, 1.0) };
        assert_eq!(answers(&facts, exact, &[ConvexDraws, WithoutNoise]), [Met, Met]);
    }

    /// λ and the longest record bound the Hessians of draws at any θ.
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
}
