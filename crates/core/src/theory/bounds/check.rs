//! The conditions of a bound: those of its statement, and those under which it can be evaluated.

use super::constants::MatrixMoments;
use super::{Constants, RunSetup, Unmet};
use crate::sources::{Condition, statement};

/// Collects the conditions that do not hold.
#[derive(Default)]
pub(super) struct Check(Vec<Unmet>);

impl Check {
    /// `have` ≤ `need` up to rounding (γμH of 0.2, 0.1 and 50 is above 1); fails for NaN.
    pub fn at_most(&mut self, condition: &str, have: f64, need: f64) {
        let rounded = need + 1e-14 * need.abs();
        if !matches!(have.partial_cmp(&rounded), Some(o) if o.is_le()) {
            self.0.push(Unmet { condition: condition.into(), have, need });
        }
    }

    /// A condition that has no sides.
    pub fn holds(&mut self, condition: &str, holds: bool) {
        if !holds {
            self.0.push(Unmet { condition: condition.into(), have: 0.0, need: 1.0 });
        }
    }

    /// Requires clients of equal shares and a linear field with known moments of A(Z); returns
    /// them.
    pub fn moments(&mut self, constants: &Constants) -> Option<MatrixMoments> {
        self.holds("clients have equal weights", constants.equal_shares);
        self.holds("the field is linear: constants at θ* hold everywhere", constants.linear);
        let moments = constants.moments();
        self.holds("the moments of A(Z) are known and draws independent", moments.is_some());
        self.holds("sym Ā_c is positive definite for every client", constants.curvature() > 0.0);
        moments
    }

    /// Requires full participation.
    pub fn everyone(&mut self, constants: &Constants, setup: &RunSetup) {
        let all = setup.cohort.is_none_or(|l| l == constants.clients.len());
        self.holds("every client takes part in every round", all);
    }

    /// Requires what a statement of the sources asks of γ, H and the clients' optima, where the mean
    /// fields have the curvature μ, and L is what its step sizes are compared with; `None` leaves out
    /// what needs L. Its conditions on runs hold of every run that has this bound.
    ///
    /// # Panics
    /// If the sources have no statement of this name.
    pub fn stated(
        &mut self,
        name: &str,
        constants: &Constants,
        setup: &RunSetup,
        (mu, smoothness): (f64, Option<f64>),
    ) {
        let statement = statement(name).unwrap_or_else(|| panic!("no statement {name}"));
        let step = if statement.source() == "SCAFFLSA" { "η" } else { "γ" };
        for condition in &statement.conditions {
            let pace = (setup.step_size, setup.h());
            let sides = condition.sides(pace, || Ok(mu), || smoothness.ok_or(()));
            let Ok(Some((have, need))) = sides else { continue };
            match condition {
                Condition::StepTimesSmoothness(1.0) => {
                    self.at_most(&format!("{step} ≤ 1/L"), have, need);
                }
                Condition::StepTimesSmoothness(inverse) => {
                    self.at_most(&format!("{step} ≤ 1/({inverse}L)"), have, need);
                }
                _ => self.at_most(&condition.words(), have, need),
            }
        }
        if statement.conditions.contains(&Condition::ZeroGradients) {
            let (have, need) = constants.common_optimum();
            self.at_most("ζ₁ = 0", have, need);
        }
        if statement.conditions.contains(&Condition::Stable)
            && let Some(stability) = constants.stability(setup.step_size)
        {
            for (words, have, need) in stability.sides {
                self.at_most(words, have, need);
            }
            self.holds("A2 holds with some a > 0", stability.rate > 0.0);
        }
    }

    /// Requires fields that are gradients.
    pub fn gradient(&mut self, constants: &Constants) {
        self.holds("the field is a gradient", constants.gradient);
    }

    /// The value if all conditions hold; it is computed only then.
    pub fn then<T>(self, value: impl FnOnce() -> Option<T>) -> Result<T, Vec<Unmet>> {
        if !self.0.is_empty() {
            return Err(self.0);
        }
        value().ok_or_else(|| {
            let condition = "the bound can be computed in double precision".into();
            vec![Unmet { condition, have: 0.0, need: 1.0 }]
        })
    }
}
