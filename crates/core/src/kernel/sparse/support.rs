//! The support of a client's records: the features that they touch.

use super::rows::SparseRows;

/// How many numbers of all clients' rows the server takes at a time: as many as fill a quarter of a second-level cache.
/// Supports are kept only if θ is longer than this.
pub(super) const BLOCK: usize = 1 << 14;
/// A support is kept if it is at most one part in this many of the features, since steps on it then take less time.
const PARTS: usize = 2;

/// The features that a client's records touch: those that are stored in at least one record.
pub struct Support {
    /// The features, in increasing order.
    pub(super) columns: Vec<u32>,
    /// For each stored number of the records, in their order, the place of its column in `columns`.
    pub(super) places: Vec<u32>,
}

impl Support {
    /// The support of these records, however large it is.
    pub fn of_records(records: &SparseRows) -> Self {
        // For each feature 0 if a record touches it; then its place among those that are touched.
        let mut place = vec![u32::MAX; records.dim()];
        for j in records.iter().flat_map(|row| row.indices) {
            place[*j as usize] = 0;
        }
        let touched = (0..).zip(&place).filter(|(_, place)| **place == 0).map(|(j, _)| j);
        let columns: Vec<u32> = touched.collect();
        (0..).zip(&columns).for_each(|(at, j)| place[*j as usize] = at);
        let stored = records.iter().flat_map(|row| row.indices);
        let places = stored.map(|j| place[*j as usize]).collect();
        Self { columns, places }
    }

    /// The supports of these sets of records; `None` if steps on one of them would take longer than steps on
    /// whole rows, because the support is too large or θ is too short.
    pub fn worth_keeping(sets: &[SparseRows]) -> Option<Vec<Self>> {
        let all: Vec<Self> = sets.iter().map(Self::of_records).collect();
        let are_small = all
            .iter()
            .zip(sets)
            .all(|(support, set)| support.columns.len() <= set.dim() / PARTS && set.dim() > BLOCK);
        are_small.then_some(all)
    }
}
