//! Claims as formulas, and why cells are left out.

use super::tested::Against;
use crate::analysis::select;
use crate::manifest::Quantity;
use crate::manifest::claim::{Reaching, Scalar, Selection, When};
use crate::plan::Setting;

/// A target in words.
pub(super) fn target(reaching: &Reaching) -> String {
    match &reaching.per {
        None => reaching.target.to_string(),
        Some(per) => format!("{} {per}", reaching.target),
    }
}

/// Why a cell is left out.
pub(super) fn noted(name: &str, why: &str) -> String {
    if name.is_empty() { why.to_owned() } else { format!("{name}: {why}") }
}

pub(super) fn joined(a: &str, b: &str) -> String {
    [a, b].into_iter().filter(|x| !x.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A selection in words.
pub(super) fn told(selection: &Selection) -> String {
    let mut parts: Vec<String> =
        selection.0.get("label").map(ToString::to_string).into_iter().collect();
    for (key, value) in selection.0.iter().filter(|(key, _)| *key != "label") {
        let setting = match value {
            Scalar::Number(x) => Setting::Number(*x),
            text => Setting::Text(text.to_string()),
        };
        parts.push(select::pretty(key, &setting));
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
        Against::Cells(right) => format!("that of {}", told(right)),
        Against::Prediction(by) => by.words().to_owned(),
        Against::Value(value) => value.to_string(),
    };
    let factor = if factor == 1.0 { String::new() } else { format!("{factor} × ") };
    let at = match at {
        When::End => String::new(),
        When::Round(round) => format!(" at round {round}"),
        When::Stationary => " over the second half of the rounds".into(),
        When::EveryRound => " at every recorded round".into(),
    };
    format!("mean {} of {}{at} {sign} {factor}{right}", metric.formula(), told(left))
}
