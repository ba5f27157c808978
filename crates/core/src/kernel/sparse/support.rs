//! The features that a client's records touch.

use super::rows::SparseRows;

/// Numbers of all clients in a block of the server: a quarter of a second-level cache. Supports are
/// kept of longer θ alone.
pub(super) const BLOCK: usize = 1 << 14;
/// A support is worth it where it is at most one of so many parts of the features.
const PARTS: usize = 2;

/// The features that a client's records touch.
pub struct Support {
    /// In increasing order.
    pub(super) columns: Vec<u32>,
    /// The place among them of the column of each stored number.
    pub(super) places: Vec<u32>,
}

impl Support {
    /// That of these records.
    pub fn of(records: &SparseRows) -> Self {
        let mut place = vec![u32::MAX; records.dim()];
        let stored = || records.iter().flat_map(|row| row.indices);
        stored().for_each(|j| place[*j as usize] = 0);
        let touched = (0..).zip(&place).filter(|(_, place)| **place == 0).map(|(j, _)| j);
        let columns: Vec<u32> = touched.collect();
        (0..).zip(&columns).for_each(|(at, j)| place[*j as usize] = at);
        let places = stored().map(|j| place[*j as usize]).collect();
        Self { columns, places }
    }

    /// The supports of these sets; `None` where one is too large, or θ too short, to be worth it.
    pub fn of_all(sets: &[SparseRows]) -> Option<Vec<Self>> {
        let all: Vec<Self> = sets.iter().map(Self::of).collect();
        all.iter()
            .zip(sets)
            .all(|(support, set): (&Self, &SparseRows)| {
                support.columns.len() <= set.dim() / PARTS && set.dim() > BLOCK
            })
            .then_some(all)
    }
}
