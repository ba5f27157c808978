//! The terms of runs to which expansions in the step size apply.

use exactfed_core::federated::{Learning, Schedule, Terms, Variates};
use exactfed_core::theory::expansion::{RoundSteps, VariateSource};

/// What expansions in the step size need to know of a run in which all clients take part with the same number of plain
/// local steps of constant size, one draw each, and the server takes their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UniformTerms {
    /// γ, the step size of a local step.
    pub(super) step_size: f64,
    /// The number of local steps between two communications.
    pub(super) local_steps: RoundSteps,
    /// How the control variates learn that clients keep and that correct their fields; `None` if they have none.
    pub(super) variates: Option<VariateSource>,
}

impl UniformTerms {
    /// What expansions need to know of a run with these terms; `None` if they do not apply to it.
    pub(super) fn new(terms: &Terms) -> Option<Self> {
        let local_steps = match terms.schedule {
            Schedule::Every => RoundSteps::Fixed(terms.local_steps[0]),
            Schedule::Bernoulli { probability, .. } => RoundSteps::Coin(probability),
        };
        let variates = match (terms.variates, terms.schedule) {
            (Variates::None, _) => None,
            (Variates::Kept(Learning::OptionOne), Schedule::Every) => {
                Some(VariateSource::FurtherDraws)
            }
            // At a communication that a coin decides, variates learn from the ends whatever their option is.
            (Variates::Kept(_), _) => Some(VariateSource::Ends),
            (Variates::Fresh | Variates::Unknown(_), _) => return None,
        };
        let even =
            terms.local_steps.len() == 1 && terms.batches == [1] && !terms.may_leave_out_clients();
        let step_size =
            if terms.normalised { terms.step_size / local_steps.mean() } else { terms.step_size };
        let constant = terms.repeats_local_work();
        let plain = terms.proximal == 0.0 && terms.goes_to_mean();
        (even && constant && plain).then_some(Self { step_size, local_steps, variates })
    }

    /// Whether fields are corrected by control variates.
    pub(super) fn is_corrected(&self) -> bool {
        self.variates.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_core::federated::Clock;

    /// Expansions tell a coin from the same mean number of local steps, and the two options of control variates.
    #[test]
    fn coins_and_options_are_told_apart() {
        let scaffold = Terms::scaffold(0.1, 4);
        let clock = Clock::Communications;
        let schedule = Schedule::Bernoulli { probability: 0.25, clock };
        let option_one = Variates::Kept(Learning::OptionOne);
        for (terms, local_steps, variates) in [
            (Terms::fedavg(0.1, 4), RoundSteps::Fixed(4), None),
            (scaffold.clone(), RoundSteps::Fixed(4), Some(VariateSource::Ends)),
            (
                Terms { variates: option_one, ..scaffold.clone() },
                RoundSteps::Fixed(4),
                Some(VariateSource::FurtherDraws),
            ),
            (
                Terms { schedule, ..Terms::scaffold(0.1, 1) },
                RoundSteps::Coin(0.25),
                Some(VariateSource::Ends),
            ),
        ] {
            let wanted = UniformTerms { step_size: 0.1, local_steps, variates };
            assert_eq!(UniformTerms::new(&terms), Some(wanted));
        }
        assert_eq!(UniformTerms::new(&Terms { cohort: Some(2), ..scaffold }), None);
    }
}
