//! Where a manifest's text has what a dotted path names, and diagnostics that point there.

use super::settings::short;
use crate::manifest::axis::Choice;
use crate::manifest::document::Value;
use crate::manifest::{Diagnostic, Node, Place};
use exactfed_core::problem::Fault;

/// Where the value at a path was written, where axes on the path have the values of a choice. If it was not written,
/// it is where the deepest table on the way was written, and `None` if that is the manifest itself, or if an axis on
/// the path has no item of the choice.
pub fn place_of(root: &Node, path: &str, choice: &Choice) -> Option<Place> {
    let (node, _) = find_node(root, path, choice)?;
    (!std::ptr::eq(node, root)).then(|| node.place.clone())
}

/// The deepest node on the way to a path, and whether it is the node at the path itself. An array on the way that is
/// an axis counts as its item that the choice selects; `None` if there is no such item.
pub fn find_node<'a>(root: &'a Node, path: &str, choice: &Choice) -> Option<(&'a Node, bool)> {
    let mut node = root;
    let mut end = 0;
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

/// Whether a manifest has the key at this path.
pub fn is_written(root: &Node, path: &str) -> bool {
    find_node(root, path, &Choice::new()).is_some_and(|(_, is_its_own)| is_its_own)
}

/// A diagnostic that points to the value at a path, where axes have the values of a choice.
pub fn diagnostic_under(
    root: &Node,
    path: &str,
    choice: &Choice,
    message: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(place_of(root, path, choice), path, message)
}

/// The diagnostic of a fault that a problem or an algorithm found in its table, which is at this path. A fault of the
/// whole table begins with the table's name.
pub fn diagnostic_of(root: &Node, path: &str, choice: &Choice, fault: &Fault) -> Diagnostic {
    let Fault { key, message } = fault;
    if key.is_empty() {
        return diagnostic_under(root, path, choice, format!("`{}`: {message}", short(path)));
    }
    let space = if message.starts_with(':') { "" } else { " " };
    diagnostic_under(root, &format!("{path}.{key}"), choice, format!("`{key}`{space}{message}"))
}
