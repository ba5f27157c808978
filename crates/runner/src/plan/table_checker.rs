//! Checks of the values of one table, each by its key.

use super::costs::unrecorded;
use super::places::Checker;
use super::settings::symbol;
use super::{Cell, Setting, selected, short};
use crate::manifest::claim::Selection;
use crate::manifest::{AtCost, Diagnostic, Manifest, Quantity};
use exactfed_core::words::nearest;

/// Checks a table, and notes what is wrong. Keys are dotted paths within the table; the empty key
/// is the table itself.
pub struct TableChecker<'c, 'a> {
    pub(super) checker: &'c mut Checker<'a>,
    path: &'c str,
}

impl<'c, 'a> TableChecker<'c, 'a> {
    /// Of the table at a path.
    pub fn new(checker: &'c mut Checker<'a>, path: &'c str) -> Self {
        Self { checker, path }
    }

    /// The manifest that the table is of.
    pub fn manifest(&self) -> &'a Manifest {
        self.checker.manifest
    }

    /// The cells of the manifest.
    pub fn cells(&self) -> &'a [Cell] {
        self.checker.cells
    }

    /// Whether nothing is wrong so far, in this table and in those before it.
    pub fn is_sound(&self) -> bool {
        self.checker.found.is_empty()
    }

    fn path(&self, key: &str) -> String {
        if key.is_empty() { self.path.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Notes a message, to which `more` may add a hint.
    pub fn note(
        &mut self,
        key: &str,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.checker.note(&self.path(key), message, more);
    }

    /// Notes a message.
    pub fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.checker.fault(&self.path(key), message);
    }

    /// Notes a message unless a condition holds.
    pub fn require(&mut self, holds: bool, key: &str, message: impl Into<String>) {
        self.checker.require(holds, &self.path(key), message);
    }

    /// A value must be a finite number above another.
    pub fn above(&mut self, key: &str, value: f64, least: f64) {
        let name = short(key);
        let message = format!("`{name}` must be a finite number above {least}, not {value}");
        self.require(value.is_finite() && value > least, key, message);
    }

    /// A value must be a finite number.
    pub fn finite(&mut self, key: &str, value: f64) {
        let message = format!("`{}` must be a finite number, not {value}", short(key));
        self.require(value.is_finite(), key, message);
    }

    /// A quantity must be recorded.
    pub fn quantity(&mut self, key: &str, quantity: Quantity) {
        if let Some(message) = unrecorded(self.manifest(), quantity) {
            self.fault(key, message);
        }
    }

    /// A selection must name known settings and at least one cell.
    pub fn selection(&mut self, key: &str, selection: &Selection) {
        self.checker.selection(&self.path(key), selection);
    }

    /// A setting must be a number in every selected cell.
    pub fn number(&mut self, key: &str, name: &str, of: &Selection) {
        let mut cells = self.cells().iter().filter(|cell| selected(cell, of));
        let sound = cells.all(|c| matches!(c.settings.get(name), Some(Setting::Number(_))));
        self.require(sound, key, format!("`{name}` is not a number in every selected cell"));
    }

    /// A name must be that of some cell's setting; where a number is needed, of settings that are
    /// numbers or of a quantity.
    pub fn setting(&mut self, key: &str, name: &str, is_number: bool) {
        let mut values = self.cells().iter().filter_map(|c| c.settings.get(name)).peekable();
        if values.peek().is_none() {
            if is_number && Quantity::named(name).is_some() {
                return;
            }
            let known = &self.checker.known;
            let message = format!("no cell has a setting `{name}`");
            let hint = symbol(name, known).or_else(|| nearest(name, known));
            let allowed = known.join(", ");
            self.note(key, message, |d| d.hinting(hint).allowing(allowed));
        } else if is_number && let Some(text) = values.find(|v| matches!(v, Setting::Text(_))) {
            self.fault(key, format!("an axis needs numbers, but `{name}` is \"{text}\""));
        }
    }

    /// Some cells must be comparable at a cost by a metric.
    pub fn at_cost(
        &mut self,
        key: &str,
        at: AtCost,
        metric: Quantity,
        is_meant: impl Fn(&Cell) -> bool,
    ) {
        let cells = self.cells().iter().filter(|cell| is_meant(cell));
        self.checker.at_cost(&self.path(key), at, metric, cells);
    }
}
