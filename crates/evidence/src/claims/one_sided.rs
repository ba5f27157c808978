//! `[[claim.less]]` and `[[claim.at-least]]`: a mean is at most, or at least, a multiple of another.

use super::judge::{Judge, Tested};
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::means::{MeanComparison, against};
use crate::cells::runs::TraceNeeds;
use exactfed_runner::manifest::Prediction;
use exactfed_runner::manifest::claim::{ClaimKeys, Inequality};
use exactfed_runner::plan::Cell;

/// A claim on an upper or a lower bound.
pub struct OneSided<'a> {
    claim: &'a Inequality,
    is_upper: bool,
}

impl<'a> OneSided<'a> {
    /// `[[claim.less]]`
    pub fn most(claim: &'a Inequality) -> Self {
        Self { claim, is_upper: true }
    }

    /// `[[claim.at-least]]`
    pub fn least(claim: &'a Inequality) -> Self {
        Self { claim, is_upper: false }
    }

    fn comparison(&self) -> MeanComparison<'a> {
        let claim = self.claim;
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        MeanComparison { metric: claim.metric, left: &claim.left, against, at: claim.at }
    }
}

impl<'a> Claim<'a> for OneSided<'a> {
    fn keys(&self) -> &'a ClaimKeys {
        &self.claim.common
    }

    fn cells(&self) -> Option<ClaimedCells<'a>> {
        Some(self.comparison().cells())
    }

    fn prediction(&self) -> Option<Prediction> {
        self.claim.prediction
    }

    fn needs_moments(&self) -> bool {
        self.comparison().needs_moments()
    }

    fn add_needs(&self, cell: &Cell, needs: &mut TraceNeeds) {
        self.comparison().add_needs(cell, needs);
    }

    /// Tests that a mean is at most, or at least, a multiple of another.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let (factor, limit) = (self.claim.factor, libm::log(self.claim.factor));
        let (sign, region) = match self.is_upper {
            true => ("≤", (f64::NEG_INFINITY, limit)),
            false => ("≥", (limit, f64::INFINITY)),
        };
        let formula = |c: &MeanComparison<'_>, metric: &str| c.formula(metric, sign, factor);
        judge.compared(&self.comparison(), formula, |_| region)
    }

    fn wrong(&self) -> Vec<WrongResult> {
        match (&self.claim.right, self.is_upper, self.claim.prediction) {
            (Some(_), ..) => vec![WrongResult::Exchanged],
            (None, true, _) => vec![WrongResult::Doubled],
            (None, false, Some(Prediction::ExactBias)) => {
                vec![WrongResult::Halved, WrongResult::WithoutNoise]
            }
            (None, false, _) => vec![WrongResult::Halved],
        }
    }
}
