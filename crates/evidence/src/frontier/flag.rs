//! What a reader must know of a point of a frontier.

use exactfed_core::theory::frontier::RangeEnd;

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
    /// A step size beyond the range might be better.
    StepSize(RangeEnd),
    /// The server step is the largest that was tried.
    ServerStep,
}

impl FrontierFlag {
    /// The name of the flag in `frontier.csv` and in tables of the Python package.
    pub fn name(self) -> &'static str {
        match self {
            Self::Infeasible => "infeasible",
            Self::OverBudget => "over-budget",
            Self::Budget => "budget",
            Self::LocalSteps => "local-steps-edge",
            Self::StepSize(RangeEnd::From) => "step-size-lower-edge",
            Self::StepSize(RangeEnd::To) => "step-size-upper-edge",
            Self::StepSize(RangeEnd::OfAnotherChoice) => "step-size-edge-of-another-choice",
            Self::ServerStep => "server-step-edge",
        }
    }

    /// What the flag says about a point, in a few words for a table of a page.
    pub fn words(self) -> &'static str {
        match self {
            Self::Infeasible => "not reached",
            Self::OverBudget => "reached only above the budget",
            Self::Budget => "the budget binds",
            Self::LocalSteps => "H or batch is the largest tried",
            Self::StepSize(RangeEnd::From) => "γ is the smallest tried",
            Self::StepSize(RangeEnd::To) => "γ is the largest tried",
            Self::StepSize(RangeEnd::OfAnotherChoice) => {
                "the range of γ may be too narrow for another server step"
            }
            Self::ServerStep => "the server step is the largest tried",
        }
    }

    /// Whether a wider range of γ or H could give a smaller number. Among large server steps it does not: FedAvg goes
    /// over into mini-batch SGD.
    pub fn is_edge(self) -> bool {
        matches!(self, Self::LocalSteps | Self::StepSize(_))
    }
}
