//! Settings in tables of pages.

use super::text_table::TextCell;
use exactfed_runner::plan::Setting;

/// The cell of a table for a setting; empty where a cell of the experiment does not have the setting. Manifests choose
/// some kinds by a flag, as in `zero = true`, for which the table shows `zero`.
pub fn setting_cell(setting: Option<&Setting>) -> TextCell {
    match setting {
        Some(Setting::Text(text)) => text.strip_suffix(" true").unwrap_or(text).into(),
        Some(number) => number.into(),
        None => TextCell::default(),
    }
}
