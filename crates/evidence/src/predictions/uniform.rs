//! The terms of runs to which expansions in the step size apply.

use exactfed_core::federated::{Schedule, Terms, Variates};

/// What expansions in the step size need to know of a run in which all clients take part with the same number of plain
/// local steps of constant size, one draw each, and the server takes their mean.
pub(super) struct UniformTerms {
    /// γ, the step size of a local step.
    pub(super) step_size: f64,
    /// H, the number of local steps of a round; its mean if a coin decides when clients communicate.
    pub(super) local_steps: f64,
    /// Whether fields are corrected by control variates that clients keep.
    pub(super) corrected: bool,
}

impl UniformTerms {
    /// What expansions need to know of a run with these terms; `None` if they do not apply to it.
    pub(super) fn new(terms: &Terms) -> Option<Self> {
        let corrected = match terms.variates {
            Variates::None => false,
            Variates::Kept(_) => true,
            Variates::Fresh | Variates::Unknown(_) => return None,
        };
        let local_steps = match terms.schedule {
            Schedule::Every => terms.local_steps[0] as f64,
            Schedule::Bernoulli { probability, .. } => 1.0 / probability,
        };
        let even = terms.local_steps.len() == 1 && terms.batches == [1] && terms.cohort.is_none();
        let step_size =
            if terms.normalised { terms.step_size / local_steps } else { terms.step_size };
        let constant = terms.decay.is_none();
        let plain = terms.proximal == 0.0 && terms.server_step == 1.0;
        (even && constant && plain).then_some(Self { step_size, local_steps, corrected })
    }
}
