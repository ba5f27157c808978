//! Keys that several kinds of claims have, and what may be wrong with them.

use exactfed_core::flattened::Flattened;
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::manifest::{ComparedAt, Quantity};
use exactfed_runner::plan::{Checker, selected};
use exactfed_runner::quantity::Shortfall;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A claim of a kind: the common keys and those of the kind.
pub type ClaimOf<K> = Flattened<ClaimKeys, K>;

/// When a metric is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = When::add_costs)]
pub enum When {
    /// At the last round.
    #[default]
    End,
    /// At the recorded round closest to this one.
    Round(u64),
    /// The mean over the recorded rounds from half of the last one on, run by run.
    Stationary,
    /// At every recorded round but the first; the claim must hold at each.
    EveryRound,
    /// At a cost or a target.
    #[serde(untagged)]
    #[schemars(skip, !untagged)]
    At(ComparedAt),
}

impl When {
    /// The cost or the target at which the metric is measured, if it is at one.
    pub fn compared_at(self) -> Option<ComparedAt> {
        match self {
            Self::At(at) => Some(at),
            _ => None,
        }
    }

    /// Adds the tables of costs and of a target to the choices of the schema, from which the reference of manifests is
    /// written.
    fn add_costs(schema: &mut schemars::Schema) {
        if let Some(serde_json::Value::Array(choices)) = schema.get_mut("oneOf") {
            choices.extend(ComparedAt::choices(|unit| {
                let unit = unit.formula();
                format!("At the last recorded round of each run that costs at most so many {unit}.")
            }));
        }
    }
}

/// A target, and the unit of the cost to reach it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Reaching {
    /// The target, above 0, of an accuracy at most 1; multiplied by the value of the setting `per`, if
    /// it is given.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub target: f64,
    /// A setting that the target is a multiple of, a number above 0 in every cell.
    #[schemars(example = &"step-size")]
    pub per: Option<String>,
    /// The unit of the cost.
    #[serde(default = "communications")]
    pub cost: Quantity,
}

fn communications() -> Quantity {
    Quantity::Communications
}

/// The factor without effect, which is the default of `factor` and the whole of `share`.
pub fn one() -> f64 {
    1.0
}

/// Notes what is wrong with the cost or the target at which a claim compares cells; nothing if it compares them at
/// another time.
pub fn check_time(table: &mut Checker<'_>, at: When, metric: Quantity, of: &Selection) {
    if let Some(at) = at.compared_at() {
        table.compared_at("at", at, metric, |cell| selected(cell, of));
    }
}

/// Notes what is wrong with the target of a metric that cells are to reach, and with the unit of the cost of that.
pub fn check_reaching(
    table: &mut Checker<'_>,
    metric: Quantity,
    reaching: &Reaching,
    of: &Selection,
) {
    table.above("reaching.target", reaching.target, 0.0);
    if let Some(Shortfall { largest, .. }) = metric.info().shortfall {
        let is_possible = reaching.per.is_some() || reaching.target <= largest;
        let message =
            format!("`{}` is at most {largest}, and never {}", metric.name(), reaching.target);
        table.require(is_possible, "reaching.target", message);
    }
    table.quantity("reaching.cost", reaching.cost);
    if let Some(per) = &reaching.per {
        table.positive("reaching.per", per, of);
    }
}
