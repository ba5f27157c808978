//! The weight λ of the penalty of losses of records: a number, or a multiple of the smoothness of the losses without
//! it.

use super::constants::Constant;
use super::fault::Faults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// λ: a number, or a multiple of the smoothness of the losses without the penalty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Penalty {
    /// λ itself.
    Number(f64),
    /// A multiple, which becomes a number once the records are known.
    Multiple(PenaltyMultiple),
}

/// A multiple of the smoothness of the losses without their penalty, at every θ. It is computed from the
/// records of an instance before λ is known; every instance has its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum PenaltyMultiple {
    /// x L, with L the largest smoothness of a client's loss without its penalty.
    #[serde(rename = "times-L")]
    TimesL(f64),
    /// x times the smoothness of the mean of the clients' losses by their shares, without its penalty, as
    /// in ProxSkip's code.
    #[serde(rename = "times-mean-L")]
    TimesMeanL(f64),
}

impl From<f64> for Penalty {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Default for Penalty {
    fn default() -> Self {
        Self::Number(0.0)
    }
}

impl PenaltyMultiple {
    /// The key of the unit, and the number that is written with it.
    pub fn written(self) -> (&'static str, f64) {
        match self {
            Self::TimesL(number) => ("times-L", number),
            Self::TimesMeanL(number) => ("times-mean-L", number),
        }
    }

    /// The constant that is multiplied.
    pub fn constant(self) -> Constant {
        match self {
            Self::TimesL(_) => Constant::DataL,
            Self::TimesMeanL(_) => Constant::MeanDataL,
        }
    }
}

impl Penalty {
    /// λ; 1 for a multiple, which [`super::Spec::with_number_as_penalty`] replaces by a number before an instance is
    /// built.
    pub fn value(self) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Multiple(_) => 1.0,
        }
    }

    /// The multiple that is written; `None` if λ itself is.
    pub fn multiple(self) -> Option<PenaltyMultiple> {
        match self {
            Self::Number(_) => None,
            Self::Multiple(multiple) => Some(multiple),
        }
    }

    /// Adds a fault of `l2` unless λ is a finite number, 0 or more, or the number of a multiple is one above 0.
    pub(super) fn check(self, faults: &mut Faults) {
        match self {
            Self::Number(number) => faults.non_negative("l2", number),
            Self::Multiple(multiple) => {
                let (unit, number) = multiple.written();
                faults.require(number.is_finite() && number > 0.0, "l2", || {
                    format!("= {{ {unit} = {number:?} }} must have a finite number above 0")
                });
            }
        }
    }
}
