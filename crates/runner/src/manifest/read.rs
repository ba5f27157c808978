//! A serde deserializer over the tree that collects every error instead of
//! stopping at the first, and that knows grid axes.
//!
//! Derived types stay the only schema. Where a type asks for one value and the
//! tree holds an array, the array is an axis of the grid: the deserializer
//! notes it and continues with the value that the current [`Choice`] selects, so that
//! any setting may be an array by construction.
//!
//! serde gives up a struct at its first bad value, so a document is read again
//! without the nodes known to be bad until nothing new is found.

use super::axis::{Choice, GridAxis, MayVary};
use super::deserialize::NodeDeserializer;
use super::document::{Diagnostic, Diagnostics, Node};
use super::pass::ReadPass;
use serde::de::{DeserializeOwned, DeserializeSeed};
use std::marker::PhantomData;

/// A value, or `None` if something is wrong with it, and the axes in it.
pub type Read<T> = (Option<T>, Vec<GridAxis>);

/// Reads a value of type `T` from the tree, at the first value of every axis,
/// and finds all axes, also those inside one value of another. Every other value
/// is read once too, in its table alone: `again` reads the table that holds an
/// axis under a choice.
///
/// # Errors
/// Every diagnostic that any value of any axis shows.
pub fn read<T: DeserializeOwned>(
    root: &Node,
    may_vary: MayVary,
    again: impl Fn(&GridAxis, &Choice, &mut Diagnostics) -> Vec<GridAxis>,
) -> Result<(T, Vec<GridAxis>), Vec<Diagnostic>> {
    let mut found = Diagnostics::default();
    let none = Choice::new();
    let (first, mut axes) = exhaust(root, "", may_vary, &none, PhantomData::<T>, &mut found);
    // Axes, each under a choice, with so many values left to be read.
    let mut open: Vec<(Choice, GridAxis, usize)> = Vec::new();
    open.extend(axes.iter().map(|axis| (none.clone(), axis.clone(), axis.len)));
    while let Some((choice, axis, left)) = open.last_mut() {
        if *left <= 1 {
            open.pop();
            continue;
        }
        *left -= 1;
        let mut choice = choice.clone();
        choice.insert(axis.path.clone(), *left);
        for axis in again(axis, &choice, &mut found) {
            if axes.iter().all(|known| known.path != axis.path || known.place != axis.place) {
                open.push((choice.clone(), axis.clone(), axis.len));
                axes.push(axis);
            }
        }
    }
    match first {
        Some(value) if found.is_empty() => Ok((value, axes)),
        _ => Err(found.into_vec()),
    }
}

/// Reads what stands at a path, under a choice, and the axes that it meets.
pub fn exhaust<S: for<'de> DeserializeSeed<'de, Value = T> + Copy, T>(
    node: &Node,
    path: &str,
    may_vary: MayVary,
    choice: &Choice,
    seed: S,
    found: &mut Diagnostics,
) -> Read<T> {
    let pass = ReadPass::new(choice, may_vary);
    let value = loop {
        let before = pass.begin();
        match seed.deserialize(NodeDeserializer::new(node, path, &pass)) {
            Ok(value) => break Some(value),
            Err(_) if before == pass.progress() => break None,
            Err(_) => {}
        }
    };
    let (new, axes) = pass.finish();
    let clean = new.is_empty();
    if clean && value.is_none() && found.is_empty() {
        // No node noted the error, which is still reported.
        found.add(Diagnostic::new(None, "", "the manifest cannot be read"));
    }
    found.extend(new);
    (value.filter(|_| clean), axes)
}
