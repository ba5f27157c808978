//! What all tables `[[figure.<kind>]]` have in common: what a report draws. Figures change no number.

use super::claim::Selection;
use schemars::JsonSchema;
use serde::Deserialize;

/// Keys of every `[[figure.<kind>]]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct FigureKeys {
    /// Name of the figure's file; by default its kind and number.
    #[schemars(example = &"fig1")]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[schemars(example = &"Figure 1")]
    pub title: Option<String>,
    /// Labels of the algorithms that are drawn; all by default.
    #[schemars(example = serde_json::json!(["FedAvg"]))]
    pub labels: Vec<String>,
    /// Settings of the cells that are drawn; all cells by default.
    #[schemars(example = serde_json::json!({ "dimension": 2 }))]
    pub only: Option<Selection>,
    /// Settings for whose values there are separate panels, outermost first. Maps of divergence
    /// have separate panels for the algorithms, too.
    #[schemars(example = serde_json::json!(["local-steps"]))]
    pub panels: Vec<String>,
    /// Number of panels in a row.
    #[schemars(range(min = 1), example = 2)]
    pub columns: Option<usize>,
    /// The settings of the panel that is drawn large. By default it is the panel in which the
    /// algorithms end farthest apart.
    #[schemars(example = serde_json::json!({ "local-steps": 100 }))]
    pub large: Option<Selection>,
}

impl FigureKeys {
    /// The id, or an empty text without one. Figures of a plan all have ids: one that the manifest does not name gets
    /// its default when it is read (`plan::CommonKeys::complete`).
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }
}

/// All figures of a manifest, left unread: their kinds are known where the manifest is planned.
#[derive(JsonSchema)]
#[schemars(extend("unread" = true))]
pub struct FigureTables {}
