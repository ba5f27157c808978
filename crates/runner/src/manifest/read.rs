//! Reads a manifest from its tree and collects every error instead of stopping at the first.
//!
//! Derived types stay the only schema. Where a type asks for one value and the
//! tree holds an array, the array is an axis of the grid: the deserializer
//! notes it and continues with the value that the current [`Choice`] selects, so that
//! any setting may be an array by construction.
//!
//! serde gives up a struct at its first bad value, so a document is read again
//! without the nodes known to be bad until nothing new is found.

use super::axis::{Choice, GridAxis};
use super::deserialize::NodeDeserializer;
use super::document::{Diagnostic, Diagnostics, Node};
use super::pass::ReadPass;
use super::{Budget, Manifest, Oracle, Start};
use exactfed_core::{algorithm, problem};
use serde::de::DeserializeSeed;
use std::marker::PhantomData;

/// Reads the manifest at the first value of every axis, and finds all axes, also those inside
/// one value of another. Every other value is read once too, in its table alone.
///
/// # Errors
/// Every diagnostic that any value of any axis shows.
pub fn read(root: &Node) -> Result<(Manifest, Vec<GridAxis>), Vec<Diagnostic>> {
    let mut found = Diagnostics::default();
    let none = Choice::new();
    let (first, mut axes) = exhaust(root, "", &none, PhantomData::<Manifest>, &mut found);
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
        for axis in read_again(root, &axis.path, &choice, &mut found) {
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

/// Reads the table that holds an axis under a choice; the axes that it then has.
fn read_again(root: &Node, axis: &str, choice: &Choice, found: &mut Diagnostics) -> Vec<GridAxis> {
    let parts: Vec<&str> = axis.split('.').collect();
    match parts.as_slice() {
        ["problem", ..] => axes_of(root, "problem", choice, PhantomData::<problem::Spec>, found),
        ["start", ..] => axes_of(root, "start", choice, PhantomData::<Start>, found),
        ["budget", ..] => axes_of(root, "budget", choice, PhantomData::<Budget>, found),
        ["oracle", ..] => axes_of(root, "oracle", choice, PhantomData::<Oracle>, found),
        ["algorithm", kind, number, ..] => {
            let path = format!("algorithm.{kind}.{number}");
            axes_of(root, &path, choice, algorithm::SettingsOfKind(kind), found)
        }
        _ => Vec::new(),
    }
}

fn axes_of<T>(
    root: &Node,
    path: &str,
    choice: &Choice,
    seed: impl for<'de> DeserializeSeed<'de, Value = T> + Copy,
    found: &mut Diagnostics,
) -> Vec<GridAxis> {
    root.find(path).map_or(Vec::new(), |node| exhaust(node, path, choice, seed, found).1)
}

/// Reads what stands at a path, under a choice: the value, or `None` if something is wrong with
/// it, and the axes that are met.
pub fn exhaust<T>(
    node: &Node,
    path: &str,
    choice: &Choice,
    seed: impl for<'de> DeserializeSeed<'de, Value = T> + Copy,
    found: &mut Diagnostics,
) -> (Option<T>, Vec<GridAxis>) {
    let pass = ReadPass::new(choice);
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
