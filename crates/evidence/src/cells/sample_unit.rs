//! What the numbers of a sample are of.

use serde::Serialize;

/// What each number of a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleUnit {
    /// Each number is from a run of its own.
    Run,
    /// One of several instances of the problem: the mean of the runs on it.
    Instance,
}

impl SampleUnit {
    /// The noun for one of them, as pages count them.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Instance => "instance",
        }
    }
}
