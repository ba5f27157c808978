//! The features that a client's records touch.

use super::rows::SparseRows;

/// Numbers of all clients in a block of the server: a quarter of a second-level cache. Supports are
/// kept of longer θ alone.
pub(super) const BLOCK: usize = 1 << 14;
/// Steps on a support take less time where the support is at most this part of the features: 1/2.
const PARTS: usize = 2;

/// The features that a client's records touch.
pub struct Support {
    /// The features, in increasing order.
    pub(super) columns: Vec<u32>,
    /// The place among them of the column of each stored number.
    pub(super) places: Vec<u32>,
}

impl Support {
    /// The features that these records touch.
    pub fn of_records(records: &SparseRows) -> Self {
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

    /// The supports of these sets; `None` if steps on one of them would take longer than steps on
    /// whole rows, because it is too large or θ is too short.
    pub fn worth_keeping(sets: &[SparseRows]) -> Option<Vec<Self>> {
        let all: Vec<Self> = sets.iter().map(Self::of_records).collect();
        let is_small = all
            .iter()
            .zip(sets)
            .all(|(support, set)| support.columns.len() <= set.dim() / PARTS && set.dim() > BLOCK);
        is_small.then_some(all)
    }
}
