//! The grid: which values of which axes are taken together.

use crate::algorithm::Spec;
use crate::manifest::read::{Axis, Choice, pick};
use crate::manifest::{Diagnostic, Manifest, Node, Place};
use crate::plan::settings::short;
use crate::plan::validate::place_of;

/// One algorithm entry and the points of its grid.
pub struct Points {
    /// The algorithm's kind.
    pub kind: &'static str,
    /// Its number among the entries of the kind.
    pub number: usize,
    /// The points, the first axis outermost.
    pub all: Vec<Point>,
}

/// A point of the grid.
pub struct Point {
    /// The value of every axis.
    pub choice: Choice,
    /// Paths of the axes that have more than one value here.
    pub varied: Vec<String>,
    /// The manifest at these values.
    pub manifest: Manifest,
}

impl Points {
    /// The entry's path in the manifest.
    pub fn path(&self) -> String {
        format!("algorithm.{}.{}", self.kind, self.number)
    }

    /// The entry's settings in a manifest that was read for one choice.
    pub fn spec(&self, manifest: &Manifest) -> Spec {
        let entries = manifest.algorithm.entries();
        let found = entries.into_iter().find(|e| e.0 == self.kind && e.1 == self.number);
        found.expect("the entry was listed from the same manifest").2
    }
}

/// The path of a setting as cells know it: without an entry's number.
pub fn setting_path(axis: &str) -> String {
    let parts: Vec<&str> = axis.split('.').collect();
    match parts.as_slice() {
        ["algorithm", kind, _, rest @ ..] => format!("algorithm.{kind}.{}", rest.join(".")),
        _ => axis.to_owned(),
    }
}

/// The entries of all algorithms, in the order of the manifest, each with the
/// points of its grid. An axis inside one value of another axis (the settings
/// of one kind of heterogeneity, say) counts only under that value.
///
/// # Errors
/// A zip that names no axis, axes of unequal length, or too large a grid.
pub fn points(
    root: &Node,
    manifest: &Manifest,
    axes: &[Axis],
    most: usize,
) -> Result<Vec<Points>, Vec<Diagnostic>> {
    let found = zips_are_sound(root, manifest, axes);
    if !found.is_empty() {
        return Err(found);
    }
    let mut entries: Vec<Points> = manifest
        .algorithm
        .entries()
        .into_iter()
        .map(|(kind, number, _)| Points { kind, number, all: Vec::new() })
        .collect();
    entries.sort_by_key(|entry| place_of(root, &entry.path(), &Choice::new()));
    let mut total = 0;
    for entry in &mut entries {
        let path = entry.path();
        expand(root, &path, Choice::new(), &mut entry.all, most)?;
        total += entry.all.len();
        if total > most {
            let message = format!("the grid has more than {most} cells");
            return Err(vec![Diagnostic::new(None, "", message)]);
        }
    }
    Ok(entries)
}

/// Branches on the first axis that the choice leaves open, and on those that
/// are zipped with it.
fn expand(
    root: &Node,
    entry: &str,
    choice: Choice,
    out: &mut Vec<Point>,
    most: usize,
) -> Result<(), Vec<Diagnostic>> {
    if out.len() > most {
        return Ok(());
    }
    let (manifest, axes) = pick::<Manifest>(root, Manifest::may_vary, &choice)?;
    let mine: Vec<Axis> = axes.into_iter().filter(|axis| relevant(axis, entry)).collect();
    let open = |axis: &&Axis| !choice.contains_key(&axis.path);
    let Some(first) = mine.iter().find(open) else {
        let varied = mine.into_iter().filter(|axis| axis.len > 1).map(|axis| axis.path);
        out.push(Point { varied: varied.collect(), choice, manifest });
        return Ok(());
    };
    let zip = manifest.zip.iter().find(|names| names.iter().any(|n| names_axis(n, first)));
    let together = |axis: &&Axis| {
        axis.path == first.path
            || zip.is_some_and(|names| names.iter().any(|n| names_axis(n, axis)))
    };
    let group: Vec<&Axis> = mine.iter().filter(open).filter(together).collect();
    for index in 0..first.len {
        let mut choice = choice.clone();
        choice.extend(group.iter().map(|axis| (axis.path.clone(), index)));
        expand(root, entry, choice, out, most)?;
    }
    Ok(())
}

fn relevant(axis: &Axis, entry: &str) -> bool {
    !axis.path.starts_with("algorithm.")
        || axis.path.strip_prefix(entry).is_some_and(|rest| rest.starts_with('.'))
}

fn names_axis(name: &str, axis: &Axis) -> bool {
    let path = setting_path(&axis.path);
    path == name || short(&path) == name
}

fn zips_are_sound(root: &Node, manifest: &Manifest, axes: &[Axis]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let known: Vec<String> =
        axes.iter().map(|a| short(&setting_path(&a.path)).to_owned()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    for (i, names) in manifest.zip.iter().enumerate() {
        let mut first: Option<&Axis> = None;
        for (j, name) in names.iter().enumerate() {
            let path = format!("zip.{i}.{j}");
            let place = place_of(root, &path, &Choice::new());
            let members: Vec<&Axis> = axes.iter().filter(|a| names_axis(name, a)).collect();
            if members.is_empty() {
                let message = format!("`{name}` is not an axis of the grid");
                found.push(
                    Diagnostic::new(place.clone(), &path, message)
                        .hinting(crate::manifest::document::nearest(name, &known))
                        .allowing(if known.is_empty() {
                            "no setting is an array".into()
                        } else {
                            known.join(", ")
                        }),
                );
            }
            for axis in members {
                match first {
                    Some(other) if other.len != axis.len => {
                        let message = format!(
                            "zipped axes must have one length: `{}` has {}, `{}` has {}",
                            other.path, other.len, axis.path, axis.len
                        );
                        let place: Option<Place> = Some(axis.place.clone());
                        found.push(Diagnostic::new(place, &axis.path, message));
                    }
                    Some(_) => {}
                    None => first = Some(axis),
                }
            }
        }
    }
    found
}
