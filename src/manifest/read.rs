//! A serde deserializer over the tree that collects every error instead of
//! stopping at the first, and that knows grid axes.
//!
//! Derived types stay the only schema. Where a type asks for one value and the
//! tree holds an array, the array is an axis of the grid: the deserializer
//! notes it and goes on with the value that the current [`Choice`] picks. So
//! any setting may be an array by construction.
//!
//! serde gives up a struct at its first bad value, so a document is read again
//! without the nodes known to be bad until nothing new is found.

use super::at::{At, Context};
use super::document::{Diagnostic, Node, Place};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Which value of each axis is meant, by path; the first where nothing is said.
pub type Choice = BTreeMap<String, usize>;

/// A setting that holds an array where one value is meant.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Dotted path of the setting.
    pub path: String,
    /// Number of values.
    pub len: usize,
    /// Where the array was written.
    pub place: Place,
}

/// Reads a value of type `T` from the tree, at the first value of every axis,
/// and finds all axes, also those inside one value of another.
///
/// # Errors
/// Every diagnostic that any value of any axis shows.
pub fn read<T: DeserializeOwned>(
    root: &Node,
    may_vary: fn(&str) -> bool,
) -> Result<(T, Vec<Axis>), Vec<Diagnostic>> {
    let mut found = Vec::new();
    let (first, mut axes) = exhaust::<T>(root, may_vary, &Choice::new(), &mut found);
    let mut choices: Vec<Choice> = axes.iter().flat_map(|a| others(&Choice::new(), a)).collect();
    while let Some(choice) = choices.pop() {
        let (_, more) = exhaust::<T>(root, may_vary, &choice, &mut found);
        for axis in more {
            if axes.iter().all(|known| known.path != axis.path || known.place != axis.place) {
                choices.extend(others(&choice, &axis));
                axes.push(axis);
            }
        }
    }
    match first {
        Some(value) if found.is_empty() => Ok((value, axes)),
        _ => Err(found),
    }
}

/// A choice with each value of an axis but the first.
fn others(choice: &Choice, axis: &Axis) -> Vec<Choice> {
    let with = |index| {
        let mut choice = choice.clone();
        choice.insert(axis.path.clone(), index);
        choice
    };
    (1..axis.len).map(with).collect()
}

/// Reads the value that a choice picks from a tree that [`read`] accepted, and
/// the axes that it met.
///
/// # Errors
/// What [`read`] would have said.
pub fn pick<T: DeserializeOwned>(
    root: &Node,
    may_vary: fn(&str) -> bool,
    choice: &Choice,
) -> Result<(T, Vec<Axis>), Vec<Diagnostic>> {
    let mut found = Vec::new();
    let (value, axes) = exhaust(root, may_vary, choice, &mut found);
    Ok((value.ok_or(found)?, axes))
}

fn exhaust<T: DeserializeOwned>(
    root: &Node,
    may_vary: fn(&str) -> bool,
    choice: &Choice,
    found: &mut Vec<Diagnostic>,
) -> (Option<T>, Vec<Axis>) {
    let context = Context::new(choice, may_vary);
    let value = loop {
        let before = context.begin();
        let at = At::root(root, &context);
        match T::deserialize(at) {
            Ok(value) => break Some(value),
            Err(_) if before == context.known() => break None,
            Err(_) => {}
        }
    };
    let (new, axes) = context.finish();
    let clean = new.is_empty();
    if clean && value.is_none() && found.is_empty() {
        // No node took the error as its own; still, it is said.
        found.push(Diagnostic::new(None, "", "the manifest cannot be read"));
    }
    for diagnostic in new {
        if !found.contains(&diagnostic) {
            found.push(diagnostic);
        }
    }
    (value.filter(|_| clean), axes)
}
