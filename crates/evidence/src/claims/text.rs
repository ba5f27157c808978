//! Parts of a claim's formula as text, and reasons why cells were not tested.

use super::keys::{Reaching, When};
use crate::cells::costs::when_text;
use crate::cells::setting_text;
use exactfed_runner::manifest::claim::{Scalar, Selection};
use exactfed_runner::plan::Setting;

/// A target as text, with the symbol of the setting that it is a multiple of.
pub fn target_text(reaching: &Reaching) -> String {
    match &reaching.per {
        None => number_text(reaching.target),
        Some(per) => format!("{} {}", number_text(reaching.target), setting_text::symbol(per)),
    }
}

/// A number as a manifest may write it: with an exponent if it is below 1e-4 or from 1e6 on.
pub fn number_text(x: f64) -> String {
    if x == 0.0 || (1e-4..1e6).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// A cell's name with the reason why it was not tested.
pub fn with_reason(name: &str, reason: &str) -> String {
    if name.is_empty() { reason.to_owned() } else { format!("{name}: {reason}") }
}

/// A selection as text: the label, and then the other settings.
pub fn selection_text(selection: &Selection) -> String {
    let mut parts: Vec<String> =
        selection.0.get("label").map(ToString::to_string).into_iter().collect();
    for (key, value) in selection.0.iter().filter(|(key, _)| *key != "label") {
        let setting = match value {
            Scalar::Number(x) => Setting::Number(*x),
            text => Setting::Text(text.to_string().into()),
        };
        parts.push(setting_text::pretty(key, &setting));
    }
    if parts.is_empty() { "every cell".into() } else { parts.join(", ") }
}

/// The time of a claim as text that follows the cells in its formula; empty for the last round.
pub fn time_text(at: When) -> String {
    match at {
        When::End => String::new(),
        When::Round(round) => format!(" at round {round}"),
        When::Stationary => " over the second half of the rounds".into(),
        When::EveryRound => " at every recorded round".into(),
        When::At(at) => format!(" {}", when_text(Some(at))),
    }
}
