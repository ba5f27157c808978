//! What may be wrong with the axes of a map.

use exactfed_runner::plan::{Cell, Checker, Setting, short};
use std::collections::{BTreeSet, HashMap};

/// Notes what is wrong with a figure whose squares show cells: its axes, the keys `x` and `y`, must be two settings of
/// cells, and cells that share a square and a label must be apart in `panels`.
pub fn check_map(table: &mut Checker<'_>, panels: &[String], [x, y]: [&str; 2]) {
    // The values on an axis need not be numbers.
    table.setting("x", x);
    table.setting("y", y);
    if x == y {
        return table.fault("y", format!("`{x}` is on both axes"));
    }
    if !table.is_sound() {
        return;
    }
    // By label and values of panels and axes: the cells of one square must not differ in other settings.
    let mut squares: HashMap<(&str, Vec<Option<&Setting>>), &Cell> = HashMap::new();
    for cell in table.cells {
        let names = panels.iter().map(String::as_str).chain([x, y]);
        let square = (cell.label.as_str(), names.map(|name| cell.settings.get(name)).collect());
        let Some(other) = squares.insert(square, cell) else { continue };
        let more: BTreeSet<&str> = cell
            .varied
            .iter()
            .filter(|path| cell.settings.at_path(path) != other.settings.at_path(path))
            .map(|path| short(path))
            .collect();
        let more: Vec<&str> = more.into_iter().collect();
        let message = format!("one square would hold several cells of \"{}\"", cell.label);
        let hint = format!("add to `panels`: {}", more.join(", "));
        return table.note("", message, |d| d.hinting(Some(hint)));
    }
}
