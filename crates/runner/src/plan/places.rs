//! Where a manifest's text has what a dotted path names.

use crate::manifest::axis::Choice;
use crate::manifest::document::Value;
use crate::manifest::{Diagnostic, Node, Place};

/// Where the value at a path was written, under a choice of axis values; the
/// deepest table on the way if it was not written.
pub fn place_of(root: &Node, path: &str, choice: &Choice) -> Option<Place> {
    let (node, _) = find_node(root, path, choice)?;
    (node.id != root.id).then(|| node.place.clone())
}

/// The deepest node on the way to a path, and whether it is the path's own.
pub fn find_node<'a>(root: &'a Node, path: &str, choice: &Choice) -> Option<(&'a Node, bool)> {
    let mut node = root;
    let mut walked = String::new();
    for part in path.split('.') {
        let next = match &node.value {
            Value::Table(_) => node.get(part).map(|entry| &entry.node),
            Value::Array(items) => part.parse().ok().and_then(|i: usize| items.get(i)),
            _ => None,
        };
        let Some(next) = next else { return Some((node, false)) };
        node = next;
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(part);
        if let (Value::Array(items), Some(&index)) = (&node.value, choice.get(walked.as_str())) {
            node = items.get(index)?;
        }
    }
    Some((node, true))
}

/// A diagnostic that points to a path.
pub fn diagnostic_at(root: &Node, path: &str, message: impl Into<String>) -> Diagnostic {
    diagnostic_under(root, path, &Choice::new(), message)
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
