//! The grid: which values of which axes are taken together.

use crate::algorithm::Spec;
use crate::manifest::read::{Axis, Choice};
use crate::manifest::{Diagnostic, Manifest, Node, Place};
use crate::plan::settings::short;
use crate::plan::validate::place_of;

/// One algorithm entry and the points of its grid.
pub struct Points {
    /// The algorithm's kind.
    pub kind: &'static str,
    /// Its number among the entries of the kind.
    pub number: usize,
    /// A choice for each point, the first axis outermost.
    pub choices: Vec<Choice>,
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

/// Axes that move together; an axis of its own is a group of one.
type Group<'a> = Vec<&'a Axis>;

/// The points of every algorithm entry, in the order of the manifest.
///
/// # Errors
/// A zip that names no axis, or axes of unequal length.
pub fn points(
    root: &Node,
    manifest: &Manifest,
    axes: &[Axis],
) -> Result<Vec<Points>, Vec<Diagnostic>> {
    let found = zips_are_sound(root, manifest, axes);
    if !found.is_empty() {
        return Err(found);
    }
    let mut entries: Vec<Points> = manifest
        .algorithm
        .entries()
        .into_iter()
        .map(|(kind, number, _)| Points { kind, number, choices: Vec::new() })
        .collect();
    entries.sort_by_key(|entry| place_of(root, &entry.path(), &Choice::new()));
    for entry in &mut entries {
        let groups = groups(manifest, axes, &entry.path());
        if groups.iter().flatten().any(|axis| axis.len == 0) {
            continue;
        }
        entry.choices = product(&groups);
    }
    Ok(entries)
}

fn relevant(axis: &Axis, entry: &str) -> bool {
    !axis.path.starts_with("algorithm.")
        || axis.path.strip_prefix(entry).is_some_and(|rest| rest.starts_with('.'))
}

fn groups<'a>(manifest: &Manifest, axes: &'a [Axis], entry: &str) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for axis in axes.iter().filter(|axis| relevant(axis, entry)) {
        let zip = manifest.zip.iter().find(|names| names.iter().any(|n| names_axis(n, axis)));
        let partner = zip.and_then(|names| {
            groups.iter_mut().find(|g| names.iter().any(|n| names_axis(n, g[0])))
        });
        match partner {
            Some(group) => group.push(axis),
            None => groups.push(vec![axis]),
        }
    }
    groups
}

fn names_axis(name: &str, axis: &Axis) -> bool {
    let path = setting_path(&axis.path);
    path == name || short(&path) == name
}

fn product(groups: &[Group<'_>]) -> Vec<Choice> {
    let mut choices = vec![Choice::new()];
    for group in groups {
        choices = choices
            .iter()
            .flat_map(|choice| {
                (0..group[0].len).map(move |index| {
                    let mut choice = choice.clone();
                    choice.extend(group.iter().map(|axis| (axis.path.clone(), index)));
                    choice
                })
            })
            .collect();
    }
    choices
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
