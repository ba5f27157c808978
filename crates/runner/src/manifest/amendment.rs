//! `[[amendment]]`: what was changed after verdicts had been seen.

use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;

/// A change of the manifest after verdicts on its results had been seen: of the number of
/// replicates, the seed, another setting, or a claim. Choosing these by the verdicts voids the
/// error guarantee of the verdicts, so every page of the experiment states its amendments. They
/// change no run.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Amendment {
    /// What was changed: a key of the manifest, or of the claim that `claim` names, or a few words.
    #[schemars(example = &"replicates")]
    pub setting: String,
    /// The id of the claim that was changed; without it the change concerns all claims.
    #[schemars(example = &"goes-on")]
    pub claim: Option<String>,
    /// The value before the change; left out of what is new. `from`, `to` or both are needed.
    #[schemars(example = &20)]
    pub from: Option<AmendedValue>,
    /// The value after the change; left out of what was removed.
    #[schemars(example = &60)]
    pub to: Option<AmendedValue>,
    /// Why it was changed, or when.
    #[schemars(example = &"20 runs left two claims inconclusive")]
    pub reason: Option<String>,
}

impl Amendment {
    /// Whether the change concerns the claim of this id: it names this claim, or no claim at all, which means all.
    pub fn concerns(&self, claim: &str) -> bool {
        self.claim.as_deref().is_none_or(|changed| changed == claim)
    }
}

/// A number or a text.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AmendedValue {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl fmt::Display for AmendedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}
