//! Where a manifest's text has what a dotted path names, and diagnostics that point there.

use super::{Cell, Settings};
use crate::manifest::axis::Choice;
use crate::manifest::document::Value;
use crate::manifest::{Diagnostic, Manifest, Node, Place};
use std::collections::BTreeSet;
use std::fmt::Display;

/// Where the value at a path was written, under a choice of axis values; the
/// deepest table on the way if it was not written.
pub fn place_of(root: &Node, path: &str, choice: &Choice) -> Option<Place> {
    let (node, _) = find_node(root, path, choice)?;
    (!std::ptr::eq(node, root)).then(|| node.place.clone())
}

/// The deepest node on the way to a path, and whether it is the path's own.
pub fn find_node<'a>(root: &'a Node, path: &str, choice: &Choice) -> Option<(&'a Node, bool)> {
    let (mut node, mut end) = (root, 0);
    for part in path.split('.') {
        let Some(next) = node.child(part) else { return Some((node, false)) };
        node = next;
        end += part.len();
        if let (Value::Array(items), Some(&index)) = (&node.value, choice.get(&path[..end])) {
            node = items.get(index)?;
        }
        end += 1;
    }
    Some((node, true))
}

/// A diagnostic that points to a path, under a choice of axis values.
pub fn diagnostic_under(
    root: &Node,
    path: &str,
    choice: &Choice,
    message: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(place_of(root, path, choice), path, message)
}

/// Checks a manifest, and notes what is wrong.
pub struct Checker<'a> {
    pub(super) root: &'a Node,
    pub(super) manifest: &'a Manifest,
    pub(super) cells: &'a [Cell],
    /// The names of all settings of the cells.
    pub(super) known: Vec<&'a str>,
    pub(super) found: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(root: &'a Node, manifest: &'a Manifest, cells: &'a [Cell]) -> Self {
        let known = Settings::all_names(cells.iter().map(|c| &c.settings)).into_iter().collect();
        Self { root, manifest, cells, known, found: Vec::new() }
    }

    /// Notes a message at a path, to which `more` may add a hint.
    pub fn note(
        &mut self,
        path: &str,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.found.push(more(diagnostic_under(self.root, path, &Choice::new(), message)));
    }

    /// Notes a message at a path.
    pub fn fault(&mut self, path: &str, message: impl Into<String>) {
        self.note(path, message, |diagnostic| diagnostic);
    }

    /// Notes a message at a path unless a condition holds.
    pub fn require(&mut self, holds: bool, path: &str, message: impl Into<String>) {
        if !holds {
            self.fault(path, message);
        }
    }

    /// The id of the table at a path must be a plain name, which `message` says, and be new among
    /// those of its `sort`.
    pub fn id(&mut self, path: &str, id: &str, message: String, (sort, is_new): (&str, bool)) {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let path = format!("{path}.id");
        if id.is_empty() || !id.chars().all(is_plain) {
            self.note(&path, message, |d| d.allowing("lower-case letters, digits, -"));
        } else {
            self.require(is_new, &path, format!("two {sort} are called \"{id}\""));
        }
    }

    /// Notes each name of the list at a path that is among those before it.
    pub fn distinct<T: Display + Ord>(&mut self, path: &str, names: impl Iterator<Item = T>) {
        let mut seen = BTreeSet::new();
        for (i, name) in names.enumerate() {
            let message = format!("`{name}` is listed twice");
            self.require(seen.insert(name), &format!("{path}.{i}"), message);
        }
    }
}
