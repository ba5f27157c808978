//! The checks of a manifest's tables: what is wrong is noted, with its place.

use super::cell::Cell;
use super::named_files::NamedFiles;
use super::places::{diagnostic_under, is_written};
use super::settings::{Settings, short};
use crate::manifest::axis::Choice;
use crate::manifest::document::below;
use crate::manifest::{Diagnostic, Manifest, Node};
use std::collections::BTreeSet;
use std::fmt::Display;

/// Checks a manifest, and notes what is wrong. Keys are dotted paths within the table that is
/// checked; the empty key is the table itself.
pub struct Checker<'a> {
    root: &'a Node,
    /// The manifest whose tables are checked.
    pub manifest: &'a Manifest,
    /// The cells of the grid, of which tables may speak.
    pub cells: &'a [Cell],
    /// The files that claims name. One that could not be read, which is noted already, is not among them.
    pub named_files: &'a NamedFiles,
    /// The path of the table that is checked; that of the manifest is empty.
    table: String,
    /// The short names of all settings of the cells.
    pub(super) known: Vec<&'a str>,
    /// What is wrong, in the order in which it was found.
    pub(super) found: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    /// A checker of the manifest's top level, which has found nothing yet and knows no files that claims name.
    pub(super) fn new(root: &'a Node, manifest: &'a Manifest, cells: &'a [Cell]) -> Self {
        let known = Settings::all_names(cells.iter().map(|c| &c.settings)).into_iter().collect();
        let named_files = const { &NamedFiles::none() };
        Self { root, manifest, cells, named_files, table: String::new(), known, found: Vec::new() }
    }

    /// Calls `check` with the keys meant within the table at a path, and returns to the top level. The path is one from
    /// the top level, and such calls are not nested.
    pub(super) fn table(&mut self, path: &str, check: impl FnOnce(&mut Self)) {
        path.clone_into(&mut self.table);
        check(self);
        self.table.clear();
    }

    /// Whether the manifest writes this key of the table, so that its value is no default.
    pub(super) fn is_written(&self, key: &str) -> bool {
        is_written(self.root, &below(&self.table, key))
    }

    /// Whether nothing is wrong so far, in this table and in those before it.
    pub fn is_sound(&self) -> bool {
        self.found.is_empty()
    }

    /// Notes that something is wrong with a key of the table; `more` may add a hint or what is allowed.
    pub fn note(
        &mut self,
        key: &str,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let path = below(&self.table, key);
        self.found.push(more(diagnostic_under(self.root, &path, &Choice::new(), message)));
    }

    /// Notes that something is wrong with a key of the table.
    pub fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.note(key, message, |diagnostic| diagnostic);
    }

    /// Notes a message about a key of the table, unless the condition `holds`.
    pub fn require(&mut self, holds: bool, key: &str, message: impl Into<String>) {
        if !holds {
            self.fault(key, message);
        }
    }

    /// Notes with this message that the id of the table is no plain name, or else, unless it `is_new`, that two tables
    /// of its `sort`, such as "figures", have it. Files are named by ids.
    pub(super) fn check_id(&mut self, id: &str, message: String, sort: &str, is_new: bool) {
        if id.is_empty()
            || !id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        {
            self.note("id", message, |d| d.allowing("lower-case letters, digits, -"));
        } else {
            self.require(is_new, "id", format!("two {sort} are called \"{id}\""));
        }
    }

    /// Notes each item of a list that equals an item before it. The key is that of the list.
    pub fn distinct<T: Display + Ord>(&mut self, key: &str, names: impl Iterator<Item = T>) {
        let mut seen = BTreeSet::new();
        for (i, name) in names.enumerate() {
            let message = format!("`{name}` is listed twice");
            self.require(seen.insert(name), &format!("{key}.{i}"), message);
        }
    }

    /// Notes that the value of a key is not a finite number above `least`, if so.
    pub fn above(&mut self, key: &str, value: f64, least: f64) {
        let name = short(key);
        let message = format!("`{name}` must be a finite number above {least}, not {value}");
        self.require(value.is_finite() && value > least, key, message);
    }

    /// Notes that the value of a key is not a finite number, if so.
    pub fn finite(&mut self, key: &str, value: f64) {
        let message = format!("`{}` must be a finite number, not {value}", short(key));
        self.require(value.is_finite(), key, message);
    }
}
