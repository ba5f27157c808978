//! Axes of the grid, and choices of their values.

use super::document::Place;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The index of the chosen value of each axis, by the path of the axis. Of an axis that is missing here, the first
/// value is chosen.
pub type Choice = BTreeMap<Arc<str>, usize>;

/// A setting that holds an array where one value is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridAxis {
    /// Dotted path of the setting.
    pub path: Arc<str>,
    /// The number of values on the axis.
    pub len: usize,
    /// Where the array was written.
    pub place: Place,
}

/// Whether the setting at this path may be an axis: it is in one of the tables that determine the runs of a cell, or is
/// one of them, or is the key `oracle`. Anywhere else an array is a list or a mistake, and never an axis.
pub fn may_vary(path: &str) -> bool {
    let top = path.split('.').next().unwrap_or_default();
    matches!(top, "problem" | "start" | "budget" | "algorithm" | "oracle")
}
