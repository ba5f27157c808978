//! Settings in tables of pages.

use super::text_table::TextCell;
use exactfed_runner::plan::Setting;

/// A setting of a column, empty where a cell has none. Manifests choose some kinds by `zero = true`,
/// of which the table shows `zero`.
pub fn setting_cell(setting: Option<&Setting>) -> TextCell {
    match setting {
        Some(Setting::Text(text)) => text.strip_suffix(" true").unwrap_or(text).into(),
        Some(number) => number.into(),
        None => TextCell::default(),
    }
}
