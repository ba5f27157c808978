//! The common form of the claims `less`, `at-least` and `matches`: a mean of some cells and what
//! it is compared with.

use super::text::{number_text, selection_text, time_text};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::claim::{
    ClaimTables, Inequality, Matches, Prediction, Selection, When,
};

/// What a mean is compared with.
#[derive(Clone, Copy)]
pub enum Against<'a> {
    /// The mean of the same metric over other cells.
    Cells(&'a Selection),
    /// What theory predicts for the same cells.
    Prediction(Prediction),
    /// A number.
    Value(f64),
}

/// A claim that compares the mean of a metric with something.
#[derive(Clone, Copy)]
pub struct MeanComparison<'a> {
    /// The metric.
    pub metric: Quantity,
    /// The cells of which it is claimed.
    pub left: &'a Selection,
    /// What they are compared with.
    pub against: Against<'a>,
    /// The rounds at which they are compared.
    pub at: When,
}

impl<'a> From<&'a Inequality> for MeanComparison<'a> {
    fn from(claim: &'a Inequality) -> Self {
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        Self { metric: claim.metric, left: &claim.left, against, at: claim.at }
    }
}

impl<'a> From<&'a Matches> for MeanComparison<'a> {
    fn from(claim: &'a Matches) -> Self {
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let metric = claim.metric.unwrap_or_default();
        Self { metric, left: &claim.of, against, at: claim.at }
    }
}

/// What a mean is compared with: of these three the one that is given.
fn against(
    right: Option<&Selection>,
    prediction: Option<Prediction>,
    value: Option<f64>,
) -> Against<'_> {
    let cells = right.map(Against::Cells).or(prediction.map(Against::Prediction));
    cells.unwrap_or(Against::Value(value.unwrap_or(f64::NAN)))
}

impl<'a> MeanComparison<'a> {
    /// The claims of a manifest that compare means.
    pub fn all(table: &'a ClaimTables) -> impl Iterator<Item = Self> {
        let matches = table.matches.iter().filter(|claim| claim.average.is_none());
        let bounded = table.less.iter().chain(&table.at_least);
        bounded.map(Self::from).chain(matches.map(Self::from))
    }

    /// The comparison as a formula, with this symbol of the metric.
    pub fn formula(&self, metric: &str, sign: &str, factor: f64) -> String {
        let right = match self.against {
            Against::Cells(right) => format!("that of {}", selection_text(right)),
            Against::Prediction(by) => by.words().to_owned(),
            Against::Value(value) => number_text(value),
        };
        let factor = if factor == 1.0 { String::new() } else { format!("{factor} × ") };
        // A bias is the norm of a mean already.
        let mean = if self.metric.average().is_some() { "" } else { "mean " };
        let left = selection_text(self.left);
        format!("{mean}{metric} of {left}{} {sign} {factor}{right}", time_text(self.at))
    }
}
