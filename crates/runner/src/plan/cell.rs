//! One point of a manifest's grid.

use super::identity::Identity;
use super::settings::Settings;
use crate::hex::CellId;
use std::ops::Deref;
use std::sync::Arc;

/// One point of the grid: one algorithm on one problem, all its replicates. It derefs to what it
/// shares with its neighbours.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The content id, a hash of the identity, by which the results of the cell are found.
    pub id: CellId,
    /// What determines the numbers of the cell.
    pub identity: Identity,
    /// Every setting by its path, as figures, tables and claims name it.
    pub settings: Settings,
    /// What neighbours in the grid have in common.
    pub shared: Arc<SharedByCells>,
}

impl Deref for Cell {
    type Target = SharedByCells;

    fn deref(&self) -> &SharedByCells {
        &self.shared
    }
}

/// What a cell shares with its neighbours in the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedByCells {
    /// Name of the algorithm in figures.
    pub label: String,
    /// Paths of the settings that the grid varies.
    pub varied: Arc<[String]>,
    /// Path of the algorithm's entry in the manifest.
    pub entry: Arc<str>,
    /// The place of the algorithm among the manifest's custom algorithms, which decides on its colour; `None` for a
    /// built-in algorithm.
    pub custom_place: Option<usize>,
}
