//! Cells selected by their label and settings, as claims and figures name them.

use super::cell::Cell;
use super::checker::Checker;
use super::settings::{Setting, symbol};
use crate::manifest::claim::{Scalar, Selection};
use crate::manifest::figure::FigureKeys;
use crate::quantity::Quantity;
use exactfed_core::words::nearest;
use std::collections::BTreeSet;

/// Whether a figure shows a cell. A figure that names neither labels nor settings shows all cells.
pub fn shows(figure: &FigureKeys, cell: &Cell) -> bool {
    let FigureKeys { labels, only, .. } = figure;
    (labels.is_empty() || labels.contains(&cell.label))
        && only.as_ref().is_none_or(|only| selected(cell, only))
}

/// Whether a selection of cells has this cell: every key that it names is as wanted. An empty selection has all cells.
pub fn selected(cell: &Cell, selection: &Selection) -> bool {
    selection.0.iter().all(|(key, wanted)| fits(cell, key, wanted))
}

/// Whether the label or a setting of a cell is as wanted: equal, or one of a list. Of a setting that is a text, the
/// first words are enough ([`begins_with_words`]). It is false if the cell has no such setting.
fn fits(cell: &Cell, key: &str, wanted: &Scalar) -> bool {
    match (key, wanted) {
        (_, Scalar::Any(all)) => all.iter().any(|one| fits(cell, key, one)),
        ("label", wanted) => cell.label == wanted.to_string(),
        _ => match (cell.settings.get(key), wanted) {
            (Some(Setting::Number(have)), Scalar::Number(wanted)) => have == wanted,
            (Some(Setting::Text(have)), Scalar::Text(wanted)) => begins_with_words(have, wanted),
            _ => false,
        },
    }
}

/// Whether the text of a setting begins with these words. A setting whose value is a table has the whole table as its
/// text, such as `perturbed (kernel 0.02, reward 0.02)` or `burn-in 0.1`, and selections name such a value by its
/// first words: `perturbed`, or `burn`. The words must end where a word or a number of the text ends, so that
/// `dirichlet 0.3` does not select `dirichlet 0.35`.
pub fn begins_with_words(text: &str, words: &str) -> bool {
    let Some(rest) = text.strip_prefix(words) else { return false };
    let mut following = rest.chars();
    let goes_on = match following.next() {
        // A point belongs to a number if a digit follows.
        Some('.') => following.next().is_some_and(|c| c.is_ascii_digit()),
        Some(next) => is_in_word(next),
        None => false,
    };
    // Words that end with a space or another such character are whole in any case.
    let ends_within_word = words.ends_with(|c| is_in_word(c) || c == '.');
    !(goes_on && ends_within_word)
}

/// Whether a character belongs to a word. A hyphen does not, so that `burn` names `burn-in 0.1`.
fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The values of a setting, or the labels, as a text.
fn named_values(name: &str, values: &[String]) -> String {
    match name {
        "label" => format!("labels {}", values.join(", ")),
        _ => format!("`{name}` {}", values.join(", ")),
    }
}

impl Checker<'_> {
    /// Notes settings that a selection names and no cell has, or else that it selects no cell. Then the values are
    /// listed that the first of its keys may have together with the other keys, or all labels if no key may have any.
    pub fn selection(&mut self, key: &str, selection: &Selection) {
        let known: BTreeSet<&str> = self.known.iter().copied().chain(["label"]).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let mut sound = true;
        for name in selection.0.keys() {
            let there = self.cells.iter().any(|c| c.settings.get(name).is_some());
            if name != "label" && !there {
                let message = format!("no cell has a setting `{name}`");
                self.note(&format!("{key}.{name}"), message, |d| d.naming(name, &known));
                sound = false;
            }
        }
        if sound && !self.cells.iter().any(|cell| selected(cell, selection)) {
            let (name, values) = self.values_in_place_of(selection);
            let names: Vec<&str> = values.iter().map(String::as_str).collect();
            let wanted = selection.0.get(name).map(ToString::to_string).unwrap_or_default();
            let hint =
                nearest(&wanted, &names).filter(|_| name == "label" && !names.contains(&&*wanted));
            let allowed = named_values(name, &values);
            let message = "this selection matches no cell";
            self.note(key, message, |d| d.hinting(hint).allowing(allowed));
        }
    }

    /// The values that could stand in a selection which matches no cell, in words: those of the first of its keys that
    /// may have any together with the other keys, or all labels.
    pub fn allowed_in_place_of(&self, selection: &Selection) -> String {
        let (name, values) = self.values_in_place_of(selection);
        named_values(name, &values)
    }

    /// The key of a selection that matches no cell, and the values that it may have together with the other keys; all
    /// labels if no key may have any.
    fn values_in_place_of<'s>(&self, selection: &'s Selection) -> (&'s str, Vec<String>) {
        let keys = selection.0.keys().map(String::as_str).filter(|key| *key != "label");
        keys.map(|name| (name, self.values(name, selection)))
            .find(|(_, values)| !values.is_empty())
            .unwrap_or_else(|| ("label", self.values("label", &Selection::default())))
    }

    /// Notes an error unless a setting is a number above 0 in every selected cell, as one must be whose logarithm or
    /// power is taken.
    pub fn positive(&mut self, key: &str, name: &str, of: &Selection) {
        let cells = self.cells.iter().filter(|cell| selected(cell, of));
        let values: Vec<Option<f64>> =
            cells.map(|cell| cell.settings.get(name).and_then(Setting::number)).collect();
        if values.iter().any(Option::is_none) {
            self.fault(key, format!("`{name}` is not a number in every selected cell"));
        } else if let Some(x) = values.into_iter().flatten().find(|x| *x <= 0.0) {
            let message = format!(
                "`{name}` must be above 0 in every selected cell, not {x}: leave such cells out of `of`"
            );
            self.fault(key, message);
        }
    }

    /// Notes an error unless some cell has a setting of this name.
    pub fn setting(&mut self, key: &str, name: &str) {
        if self.cells.iter().any(|cell| cell.settings.get(name).is_some()) {
            return;
        }
        let message = format!("no cell has a setting `{name}`");
        let hint = symbol(name, &self.known).or_else(|| nearest(name, &self.known));
        let allowed = self.known.join(", ");
        self.note(key, message, |d| d.hinting(hint).allowing(allowed));
    }

    /// Notes an error unless this is the name of an axis of numbers: of a setting that some cell has, and that is a
    /// number in all cells that have it, or of a quantity.
    pub fn axis_of_numbers(&mut self, key: &str, name: &str) {
        let mut values = self.cells.iter().filter_map(|c| c.settings.get(name)).peekable();
        if values.peek().is_none() {
            if Quantity::named(name).is_none() {
                self.setting(key, name);
            }
        } else if let Some(text) = values.find(|v| matches!(v, Setting::Text(_))) {
            self.fault(key, format!("an axis needs numbers, but `{name}` is \"{text}\""));
        }
    }

    /// The different values of a setting in the cells that the other keys of a selection select, in the order of the
    /// cells: what the selection could say of this setting.
    fn values(&self, key: &str, selection: &Selection) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for cell in self
            .cells
            .iter()
            .filter(|cell| selection.0.iter().all(|(k, v)| k == key || fits(cell, k, v)))
        {
            let value = match key {
                "label" => Some(cell.label.clone()),
                _ => cell.settings.get(key).map(ToString::to_string),
            };
            values.extend(value.filter(|value| !values.contains(value)));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_of_a_text_end_at_the_end_of_a_word() {
        for (text, words) in [
            ("dirichlet 0.3", "dirichlet 0.3"),
            ("dirichlet 0.3", "dirichlet"),
            ("dirichlet 0.3", "dirichlet "),
            ("perturbed (kernel 0.02, reward 0.02)", "perturbed"),
            ("perturbed (kernel 0.02, reward 0.02)", "perturbed (kernel 0.02"),
            ("burn-in 0.1", "burn"),
            ("zero true", "zero"),
            ("2, 3", "2"),
            ("one.csv", "one"),
        ] {
            assert!(begins_with_words(text, words), "{text} begins with {words}");
        }
        for (text, words) in [
            ("dirichlet 0.35", "dirichlet 0.3"),
            ("dirichlet 0.3", "dirichlet 0"),
            ("dirichlet 0.3", "dirichlet 0."),
            ("dirichlet 0.3", "dirich"),
            ("noisy_2", "noisy"),
            ("iid", "iid 1"),
            ("own", "iid"),
        ] {
            assert!(!begins_with_words(text, words), "{text} does not begin with {words}");
        }
    }
}
