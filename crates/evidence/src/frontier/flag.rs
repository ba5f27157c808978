//! What a reader must know of a point of a frontier.

/// What a reader must know of a point of a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontierFlag {
    /// No step size and number of local steps that were tried reach the target.
    Infeasible,
    /// The target is reached, but with more oracle calls than the budget has.
    OverBudget,
    /// More oracle calls than the budget has would save communications.
    Budget,
    /// The number of local steps is the largest that was tried.
    LocalSteps,
    /// The step size is the smallest that was tried.
    StepSizeFrom,
    /// The step size is the largest that was tried.
    StepSizeTo,
    /// With another server step, a step size beyond the range might be better.
    StepSizeOther,
    /// The server step is the largest that was tried.
    ServerStep,
}

impl FrontierFlag {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Infeasible => "infeasible",
            Self::OverBudget => "over-budget",
            Self::Budget => "budget",
            Self::LocalSteps => "local-steps-edge",
            Self::StepSizeFrom => "step-size-lower-edge",
            Self::StepSizeTo => "step-size-upper-edge",
            Self::StepSizeOther => "step-size-edge-of-another-choice",
            Self::ServerStep => "server-step-edge",
        }
    }

    /// What it means, in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Infeasible => "not reached",
            Self::OverBudget => "reached only above the budget",
            Self::Budget => "the budget binds",
            Self::LocalSteps => "H or batch is the largest tried",
            Self::StepSizeFrom => "γ is the smallest tried",
            Self::StepSizeTo => "γ is the largest tried",
            Self::StepSizeOther => "the range of γ may be too narrow for another server step",
            Self::ServerStep => "the server step is the largest tried",
        }
    }

    /// Whether a wider range of γ or H could give a smaller number. Among large server steps it does not: FedAvg goes
    /// over into mini-batch SGD.
    pub fn is_edge(self) -> bool {
        matches!(
            self,
            Self::LocalSteps | Self::StepSizeFrom | Self::StepSizeTo | Self::StepSizeOther
        )
    }
}
