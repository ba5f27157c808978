//! What all tables `[[claim.<kind>]]` have in common: statements that are tested against the
//! results. Claims change no number; a report gives a verdict on each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Keys of every `[[claim.<kind>]]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ClaimKeys {
    /// Name of the claim, which no other claim of the manifest has.
    #[schemars(example = &"scaffold-below-fedavg")]
    pub id: String,
    /// What is claimed, in a sentence.
    #[schemars(example = &"Scaffold goes on where FedAvg stops at its bias")]
    pub statement: String,
    /// Where it is claimed.
    #[schemars(example = &"RR, section 7")]
    pub source: Option<String>,
    /// The names of the statements of the registered sources that the claim is about. The page says
    /// whether its cells meet their conditions.
    #[serde(default)]
    #[schemars(example = serde_json::json!(["RR Theorem 1"]))]
    pub statements: Vec<String>,
    /// Id of the figure that shows it.
    #[schemars(example = &"fig1")]
    pub figure: Option<String>,
    /// The verdict that is expected. All but `supported` need a `reason`. If a claim is refuted,
    /// cannot be tested, or is supported against this expectation, `report` exits with code 1.
    #[serde(default)]
    pub expected: Expected,
    /// What is refuted. It is required if `expected = "refuted"`, and refused otherwise.
    pub refutes: Option<Refutes>,
    /// Why it is not expected to be supported.
    #[schemars(example = &"the printed sign is wrong")]
    pub reason: Option<String>,
    /// Name of a disagreement between or within sources that the claim bears on.
    #[schemars(example = &"RR Table 1, sign of the stochasticity bias")]
    pub dispute: Option<String>,
    /// The side of the dispute that it states.
    #[schemars(example = &"minus (SLIDES, RR second version)")]
    pub side: Option<String>,
    /// Whether it holds by algebra, whatever the theory says, so that it tests the engine alone.
    #[serde(default)]
    pub identity: bool,
    /// Whether the page *Which algorithm, when?* begins with this claim, as one of its answers. The
    /// statement says for which N and ε it holds.
    #[serde(default)]
    pub answer: bool,
}

/// All claims of a manifest, left unread: their kinds are known where the manifest is planned.
#[derive(JsonSchema)]
#[schemars(extend("unread" = true))]
pub struct ClaimTables {}

/// What is expected of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// The data support it.
    #[default]
    Supported,
    /// The data refute it, for the given reason.
    Refuted,
    /// It cannot be tested, for the given reason.
    NotTested,
}

impl Expected {
    /// The verdict that is expected, as pages write it.
    pub fn words(self) -> &'static str {
        ["supported", "refuted", "not tested"][self as usize]
    }
}

/// What a claim refutes that is expected to be refuted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Refutes {
    /// A formula or a sentence as a source prints it.
    PrintedFormula,
    /// A reading that a source allows but does not state.
    Reading,
    /// A statement beyond the conditions under which it is made.
    Extension,
    /// An approximation of the author of the manifest.
    Approximation,
    /// A finding of a source in a setting that is not the source's.
    OtherSetting,
    /// A statement that an earlier version of the manifest supported, and that is withdrawn.
    Withdrawn,
}

impl Refutes {
    /// What the claim refutes, as pages write it after the verdict "refuted".
    pub fn words(self) -> &'static str {
        match self {
            Self::PrintedFormula => "printed formula",
            Self::Reading => "a reading",
            Self::Extension => "beyond its conditions",
            Self::Approximation => "our approximation",
            Self::OtherSetting => "other setting",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Cells by their label and their settings: `{ label = "FedAvg", local-steps = 10 }`. A list
/// selects several values, and a text selects tables whose text begins with its words.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Selection(pub BTreeMap<String, Scalar>);

impl Selection {
    /// An example for the documentation: the cells of a label.
    pub fn example(label: &str) -> serde_json::Value {
        serde_json::json!({ "label": label })
    }
}

/// A value in a selection. The reader makes a text of a flag.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A number.
    Number(f64),
    /// A name or a flag.
    Text(String),
    /// Any of these.
    Any(Vec<Scalar>),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
            Self::Any(all) => {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                f.write_str(&all.join(" or "))
            }
        }
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }

    /// A list of types, by which the reader of manifests knows that the value may have any of them.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["number", "string", "boolean", "array"] })
    }
}
