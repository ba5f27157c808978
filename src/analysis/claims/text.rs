//! Claims as formulas, and why cells are left out.

use super::ratios::Against;
use crate::analysis::setting_text;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::claim::{Reaching, Scalar, Selection, When};
use driftbench_runner::plan::Setting;

/// A target in words.
pub(super) fn target_text(reaching: &Reaching) -> String {
    match &reaching.per {
        None => number(reaching.target),
        Some(per) => format!("{} × {per}", number(reaching.target)),
    }
}

/// A number as a manifest may write it: not `0.00000000000000000001`.
fn number(x: f64) -> String {
    if x == 0.0 || (1e-4..1e6).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// Why a cell is left out.
pub(super) fn with_reason(name: &str, why: &str) -> String {
    if name.is_empty() { why.to_owned() } else { format!("{name}: {why}") }
}

/// A selection in words.
pub(super) fn selection_text(selection: &Selection) -> String {
    let mut parts: Vec<String> =
        selection.0.get("label").map(ToString::to_string).into_iter().collect();
    for (key, value) in selection.0.iter().filter(|(key, _)| *key != "label") {
        let setting = match value {
            Scalar::Number(x) => Setting::Number(*x),
            text => Setting::Text(text.to_string()),
        };
        parts.push(setting_text::pretty(key, &setting));
    }
    if parts.is_empty() { "every cell".into() } else { parts.join(", ") }
}

pub(super) fn comparison(
    metric: Quantity,
    left: &Selection,
    against: &Against<'_>,
    sign: &str,
    factor: f64,
    at: When,
) -> String {
    let right = match against {
        Against::Cells(right) => format!("that of {}", selection_text(right)),
        Against::Prediction(by) => by.words().to_owned(),
        Against::Value(value) => number(*value),
    };
    let factor = if factor == 1.0 { String::new() } else { format!("{factor} × ") };
    // A bias is the norm of a mean, and a mean is not taken of it again.
    let mean = if metric.average().is_some() { "" } else { "mean " };
    format!(
        "{mean}{} of {}{} {sign} {factor}{right}",
        metric.formula(),
        selection_text(left),
        time_text(at)
    )
}

/// The time of a claim, in words.
pub(super) fn time_text(at: When) -> String {
    match at {
        When::End => String::new(),
        When::Round(round) => format!(" at round {round}"),
        When::Stationary => " over the second half of the rounds".into(),
        When::EveryRound => " at every recorded round".into(),
    }
}
