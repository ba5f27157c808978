//! The grid: which values of which axes are taken together.

use super::places::place_of;
use super::settings::short;
use super::tables::{Grid, GridPoint};
use crate::manifest::axis::{Choice, GridAxis};
use crate::manifest::{Diagnostic, Manifest, Node};
use exactfed_core::words::count;
use std::sync::Arc;

/// The most cells that a manifest may have.
pub const MOST_CELLS: usize = 1_000_000;

/// The path by which cells know the setting of an axis: without the number of the algorithm's entry, which the path of
/// the axis has.
pub fn setting_path(axis: &str) -> String {
    let parts: Vec<&str> = axis.split('.').collect();
    match parts.as_slice() {
        ["algorithm", kind, _, rest @ ..] => format!("algorithm.{kind}.{}", rest.join(".")),
        _ => axis.to_owned(),
    }
}

impl Grid<'_> {
    /// Visits every point of the grid that the values chosen so far leave open, the first axis outermost; zipped axes
    /// move together. An axis inside one value of another axis (the settings of one kind of heterogeneity, say) has
    /// points only under that value. Before and after, the same values are chosen.
    ///
    /// # Errors
    /// The first error of `visit`, or what is wrong with the first table that cannot be read; the walk ends there.
    pub fn walk(
        &mut self,
        visit: &mut impl FnMut(&Self, GridPoint) -> Result<(), Vec<Diagnostic>>,
    ) -> Result<(), Vec<Diagnostic>> {
        let point = self.read()?;
        let Some(first) = self.axes(point).find(|axis| self.is_open(axis)) else {
            return visit(self, point);
        };
        let len = first.len;
        let group: Vec<Arc<str>> = match zip_of(self.zip, first) {
            None => vec![first.path.clone()],
            Some(names) => {
                let all = self.axes(point).filter(|axis| {
                    let is_zipped = names.iter().any(|name| names_axis(name, axis));
                    self.is_open(axis) && (axis.path == first.path || is_zipped)
                });
                all.map(|axis| axis.path.clone()).collect()
            }
        };
        for index in 0..len {
            self.choice.extend(group.iter().map(|path| (path.clone(), index)));
            self.walk(visit)?;
        }
        for path in &group {
            self.choice.remove(path);
        }
        Ok(())
    }

    /// Whether no value of an axis is chosen yet.
    fn is_open(&self, axis: &GridAxis) -> bool {
        !self.choice.contains_key(&axis.path)
    }

    /// A lower bound on the number of points of an algorithm's entry, which is entered; no value may be chosen yet. It
    /// is the product of the lengths of the axes that every point has, of zipped axes the first alone. The tables are
    /// read at the first value of each axis; axes inside values, which other points may lack, are left out and can only
    /// make more points.
    ///
    /// # Errors
    /// What is wrong with the first table that is wrong.
    fn least_points(&mut self, entry: &str) -> Result<f64, Vec<Diagnostic>> {
        self.enter(entry);
        let point = self.read()?;
        let axes: Vec<&GridAxis> = self.axes(point).collect();
        let mut points = 1.0;
        for (i, axis) in axes.iter().enumerate() {
            let zip = zip_of(self.zip, axis);
            let nested = axes.iter().any(|other| is_inside(axis, other));
            if !nested
                && !axes[..i].iter().any(|other| {
                    zip.is_some_and(|names| names.iter().any(|name| names_axis(name, other)))
                })
            {
                points *= axis.len as f64;
            }
        }
        Ok(points)
    }

    /// Refuses a grid that is too large by the lower bound on its points, before any point is visited. `entries` are
    /// the paths of all algorithms' entries, and `axes`, all axes of the manifest, are for the message.
    pub fn check_size(
        &mut self,
        entries: &[&str],
        axes: &[GridAxis],
    ) -> Result<(), Vec<Diagnostic>> {
        let mut points = 0.0;
        for entry in entries {
            points += self.least_points(entry)?;
        }
        if points > MOST_CELLS as f64 { Err(vec![too_large(axes, points)]) } else { Ok(()) }
    }
}

/// The diagnostic that a grid has at least this number of points, which are too many, with the lengths of its longest
/// axes. It points to the longest.
pub fn too_large(axes: &[GridAxis], points: f64) -> Diagnostic {
    let mut longest: Vec<&GridAxis> = axes.iter().filter(|axis| axis.len > 1).collect();
    longest.sort_by_key(|axis| std::cmp::Reverse(axis.len));
    longest.truncate(5);
    let lengths: Vec<String> = longest
        .iter()
        .map(|axis| format!("`{}` has {}", axis.path, count(axis.len, "value")))
        .collect();
    let points = if points < 1e15 { format!("{points}") } else { format!("{points:.1e}") };
    let message = format!("the grid has {points} cells or more; at most {MOST_CELLS} are allowed");
    Diagnostic::new(longest.first().map(|axis| axis.place.clone()), "", message)
        .hinting(Some(lengths.join(", ")))
}

/// The names in the zip that an axis is in; `None` if it is in none.
fn zip_of<'m>(zip: &'m [Vec<String>], axis: &GridAxis) -> Option<&'m Vec<String>> {
    zip.iter().find(|names| names.iter().any(|name| names_axis(name, axis)))
}

/// Whether a name in a zip means this axis: it is the path of its setting, or the last part of this path.
fn names_axis(name: &str, axis: &GridAxis) -> bool {
    let path = setting_path(&axis.path);
    path == name || short(&path) == name
}

/// Whether an axis is inside a value of another one, as the settings of one kind of heterogeneity are.
fn is_inside(axis: &GridAxis, other: &GridAxis) -> bool {
    axis.path.strip_prefix(&*other.path).is_some_and(|rest| rest.starts_with('.'))
}

/// What is wrong with the zips: one that names no axis, an axis that is in two of them, or
/// axes of unequal length.
pub fn check_zips(root: &Node, manifest: &Manifest, axes: &[GridAxis]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let known: Vec<String> =
        axes.iter().map(|a| short(&setting_path(&a.path)).to_owned()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    for (i, names) in manifest.zip.iter().enumerate() {
        let mut first: Option<&GridAxis> = None;
        for (j, name) in names.iter().enumerate() {
            let path = format!("zip.{i}.{j}");
            let place = place_of(root, &path, &Choice::new());
            let members: Vec<&GridAxis> = axes.iter().filter(|a| names_axis(name, a)).collect();
            if members.is_empty() {
                let message = format!("`{name}` is not an axis of the grid");
                let diagnostic = Diagnostic::new(place.clone(), &path, message);
                found.push(match known.as_slice() {
                    [] => diagnostic.allowing("no setting is an array"),
                    known => diagnostic.naming(name, known),
                });
            }
            if members.iter().any(|axis| zip_of(&manifest.zip[..i], axis).is_some()) {
                let message = format!("`{name}` is in an earlier zip too");
                let hint = "write one zip of all axes that move together".to_owned();
                found.push(Diagnostic::new(place, &path, message).hinting(Some(hint)));
            }
            for axis in members {
                match first {
                    Some(other) if other.len != axis.len => {
                        let message = format!(
                            "zipped axes must have one length: `{}` has {}, `{}` has {}",
                            other.path, other.len, axis.path, axis.len
                        );
                        found.push(Diagnostic::new(Some(axis.place.clone()), &axis.path, message));
                    }
                    Some(_) => {}
                    None => first = Some(axis),
                }
            }
        }
    }
    found
}
