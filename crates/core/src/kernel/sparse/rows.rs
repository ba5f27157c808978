//! Rows that are mostly zeros.
//!
//! *Invariant*: sums over non-zeros have eight accumulators, which are folded by halves, and
//! no multiply-add is fused. All code is scalar, so every instruction set gives the same bits.

use thiserror::Error;

/// Rows of `d` numbers, of which only some are stored (compressed sparse rows); the others
/// are 0.
///
/// *Invariant*: `offsets` begins at 0, never falls and ends at the number of values; there
/// are as many indices as values, each is below `d`, and within a row they rise.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows {
    /// The number of columns.
    d: usize,
    /// For each row the place of its first stored number among all, and at the end the number of all.
    offsets: Vec<usize>,
    /// The column of each stored number.
    indices: Vec<u32>,
    /// The stored numbers, row by row.
    values: Vec<f64>,
}

/// The stored numbers of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseRow<'a> {
    /// The columns of the stored numbers, which rise.
    pub indices: &'a [u32],
    /// The stored numbers, one for each column in `indices`.
    pub values: &'a [f64],
}

/// Why arrays are no compressed sparse rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SparseRowsError {
    /// There must be as many values as indices.
    #[error("there are {values} values, but {indices} indices")]
    Lengths {
        /// The number of values.
        values: usize,
        /// The number of indices.
        indices: usize,
    },
    /// The first offset is not 0, or the last is not the number of values.
    #[error("the offsets of rows must begin at 0 and end at {values}")]
    Offsets {
        /// The number of values.
        values: usize,
    },
    /// An offset is smaller than the one before it.
    #[error("row {row} ends before it begins")]
    EndsEarly {
        /// The row, from 0.
        row: usize,
    },
    /// The indices of a row are not sorted, or an index occurs twice in it.
    #[error("row {row}: index {index} does not rise")]
    NotRising {
        /// The row, from 0.
        row: usize,
        /// The index, which is at most the one before it.
        index: u32,
    },
    /// A row has an index that is no column.
    #[error("row {row}: index {index} is not below {d}")]
    Beyond {
        /// The row, from 0.
        row: usize,
        /// The index.
        index: u32,
        /// The number of columns.
        d: usize,
    },
}

impl SparseRows {
    /// Rows of `d` numbers in the form of compressed sparse rows: row k has the values number `offsets[k]` to
    /// `offsets[k + 1]`, and value i is in column `indices[i]`.
    ///
    /// # Errors
    /// The first part of the invariant that does not hold.
    pub fn new(
        d: usize,
        offsets: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self, SparseRowsError> {
        let count = values.len();
        let stored = indices.len();
        if count != stored {
            return Err(SparseRowsError::Lengths { values: count, indices: stored });
        }
        if offsets.first() != Some(&0) || offsets.last() != Some(&count) {
            return Err(SparseRowsError::Offsets { values: count });
        }
        if let Some(row) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(SparseRowsError::EndsEarly { row });
        }
        for (row, ends) in offsets.windows(2).enumerate() {
            let columns = &indices[ends[0]..ends[1]];
            if let Some(pair) = columns.windows(2).find(|pair| pair[0] >= pair[1]) {
                return Err(SparseRowsError::NotRising { row, index: pair[1] });
            }
            if let Some(last) = columns.last().filter(|last| **last as usize >= d) {
                return Err(SparseRowsError::Beyond { row, index: *last, d });
            }
        }
        Ok(Self { d, offsets, indices, values })
    }

    /// Rows of `d` numbers, each given by the columns and the values of its stored numbers.
    ///
    /// # Panics
    /// If the columns of a row do not rise, or one is not below `d`.
    pub fn from_rows<R>(d: usize, rows: impl Iterator<Item = R>) -> Self
    where
        R: IntoIterator<Item = (u32, f64)>,
    {
        let mut offsets = vec![0];
        let mut indices = Vec::new();
        let mut values = Vec::new();
        for row in rows {
            for (column, value) in row {
                indices.push(column);
                values.push(value);
            }
            offsets.push(values.len());
        }
        Self::new(d, offsets, indices, values).expect("columns rise")
    }

    /// The sparse form of rows of `d` numbers that are given in full, which stores the numbers other than 0.
    ///
    /// # Panics
    /// If `d` is 0 or 2³² or more, or the last row is not whole.
    pub fn from_dense(d: usize, rows: &[f64]) -> Self {
        assert!(rows.len().is_multiple_of(d) && u32::try_from(d).is_ok());
        let rows = rows
            .chunks_exact(d)
            .map(|row| (0..).zip(row.iter().copied()).filter(|(_, x): &(u32, f64)| *x != 0.0));
        Self::from_rows(d, rows)
    }

    /// All numbers, row by row, with those that are not stored as 0: d numbers for each row.
    pub fn to_dense(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.len() * self.d];
        for (row, out) in self.iter().zip(all.chunks_exact_mut(self.d.max(1))) {
            row.iter().for_each(|(j, x)| out[j] = x);
        }
        all
    }

    /// New rows: for each pair the row of this number, times this factor. A row may be taken several times.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn selected(&self, rows: impl Iterator<Item = (usize, f64)>) -> Self {
        Self::from_rows(
            self.d,
            rows.map(|(k, factor)| self.row(k).stored().map(move |(j, x)| (j, factor * x))),
        )
    }

    /// The rows with a further column at the end in which all numbers are 1, as an intercept needs it.
    ///
    /// # Panics
    /// If d is 2³² or more, so that no index is left for the column.
    #[must_use]
    pub fn with_ones(&self) -> Self {
        let column = u32::try_from(self.d).expect("a column index");
        Self::from_rows(self.d + 1, self.iter().map(|row| row.stored().chain([(column, 1.0)])))
    }

    /// Replaces each stored number x of column j by `f(j, x)`. Numbers that are not stored stay 0.
    pub fn map_stored(&mut self, f: impl Fn(usize, f64) -> f64) {
        for (x, j) in self.values.iter_mut().zip(&self.indices) {
            *x = f(*j as usize, *x);
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// d, the numbers of a row.
    pub fn dim(&self) -> usize {
        self.d
    }

    /// The stored numbers of all rows.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The row and the column, from 0 on, of stored number `entry` in the order of [`SparseRows::values`]. For messages
    /// about it.
    ///
    /// # Panics
    /// If there are fewer stored numbers.
    pub fn place(&self, entry: usize) -> (usize, usize) {
        let row = self.offsets.partition_point(|&begin| begin <= entry) - 1;
        (row, self.indices[entry] as usize)
    }

    /// The stored numbers of row number k, from 0 on, with their columns.
    ///
    /// # Panics
    /// If there are fewer rows.
    #[inline(always)]
    pub fn row(&self, k: usize) -> SparseRow<'_> {
        let begin = self.offsets[k];
        let end = self.offsets[k + 1];
        // SAFETY: the invariant: offsets do not fall, and the last is the number of values and of
        // indices.
        unsafe {
            SparseRow {
                indices: self.indices.get_unchecked(begin..end),
                values: self.values.get_unchecked(begin..end),
            }
        }
    }

    /// Row k, with other columns in place of its own: `columns` has a column for each stored number of all rows.
    #[inline(always)]
    pub(super) fn row_in<'a>(&'a self, k: usize, columns: &'a [u32]) -> SparseRow<'a> {
        let SparseRow { values, .. } = self.row(k);
        SparseRow { indices: &columns[self.offsets[k]..self.offsets[k + 1]], values }
    }

    /// All rows, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SparseRow<'_>> {
        (0..self.len()).map(|k| self.row(k))
    }
}

impl<'a> SparseRow<'a> {
    /// The column and the value of each stored number, in the order of the columns.
    #[inline(always)]
    pub fn iter(self) -> impl ExactSizeIterator<Item = (usize, f64)> + use<'a> {
        self.indices.iter().zip(self.values).map(|(j, x)| (*j as usize, *x))
    }

    /// The column, as it is stored, and the value of each stored number, in the order of the columns.
    fn stored(self) -> impl Iterator<Item = (u32, f64)> + use<'a> {
        self.indices.iter().copied().zip(self.values.iter().copied())
    }

    /// The product xᵀy of the row x with a vector of d numbers.
    ///
    /// # Panics
    /// If `y` has fewer than d numbers.
    pub fn dot(&self, y: &[f64]) -> f64 {
        self.sum(|j| y[j])
    }

    /// Σ x_j y(j) over the stored numbers x_j of the row, with eight accumulators.
    pub fn sum(&self, y: impl Fn(usize) -> f64) -> f64 {
        let [sum] = fold_sparse(self, |j| [y(j)]);
        sum
    }

    /// Adds the row x, times a factor, to a vector: out ← out + factor x.
    ///
    /// # Panics
    /// If `out` has fewer than d numbers.
    pub fn add_to(&self, factor: f64, out: &mut [f64]) {
        self.iter().for_each(|(j, x)| out[j] += factor * x);
    }
}

/// The number of accumulators of a sum over stored numbers.
const SUMS: usize = 8;

/// K sums at once: Σ x_j y_k(j) over the stored numbers x_j of a row, where `y(j)` returns the K numbers y_k(j).
#[inline(always)]
pub(super) fn fold_sparse<const K: usize>(
    row: &SparseRow<'_>,
    y: impl Fn(usize) -> [f64; K],
) -> [f64; K] {
    let mut sums = [[0.0; SUMS]; K];
    let (indices, rest) = row.indices.as_chunks::<SUMS>();
    let (values, last) = row.values.as_chunks::<SUMS>();
    // Called for whole groups of eight numbers, and for those that are left.
    let mut add = |l: usize, j: u32, x: f64| {
        let y = y(j as usize);
        (0..K).for_each(|k| sums[k][l] += x * y[k]);
    };
    for (indices, values) in indices.iter().zip(values) {
        (0..SUMS).for_each(|l| add(l, indices[l], values[l]));
    }
    // With an end known at compile time, so that the accumulators stay in registers.
    for l in 0..SUMS - 1 {
        let (Some(j), Some(x)) = (rest.get(l), last.get(l)) else { break };
        add(l, *j, *x);
    }
    sums.map(|[a, b, c, d, e, f, g, h]| ((a + e) + (c + g)) + ((b + f) + (d + h)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_are_multiplied() {
        let dense = [0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.5, 0.0, -1.0];
        let rows = SparseRows::from_dense(3, &dense);
        assert_eq!((rows.len(), rows.dim(), rows.values()), (3, 3, &[2.0, 1.5, -1.0][..]));
        assert_eq!(rows.to_dense(), dense);
        assert_eq!(rows.row(2).dot(&[1.0, 5.0, 4.0]), -2.5);
        assert_eq!((rows.place(0), rows.place(2)), ((0, 1), (2, 2)));
        assert_eq!(rows.with_ones().row(1), SparseRow { indices: &[3], values: &[1.0] });
        let turned = rows.selected([(2, -1.0), (0, 2.0)].into_iter());
        assert_eq!(turned.to_dense(), [-1.5, 0.0, 1.0, 0.0, 4.0, 0.0]);
        let long: Vec<f64> = (0..40).map(|i| f64::from(i) - 7.0).collect();
        let sum: f64 = long.iter().map(|x| x * x).sum();
        assert_eq!(SparseRows::from_dense(40, &long).row(0).dot(&long), sum);
    }

    /// What is wrong with these arrays of three columns.
    fn fault_of(offsets: &[usize], indices: &[u32], values: &[f64]) -> String {
        let rows = SparseRows::new(3, offsets.to_vec(), indices.to_vec(), values.to_vec());
        rows.unwrap_err().to_string()
    }

    #[test]
    fn rows_that_are_not_whole_are_refused() {
        assert_eq!(fault_of(&[0, 1], &[0], &[1.0, 2.0]), "there are 2 values, but 1 indices");
        assert!(fault_of(&[0, 1], &[0, 1], &[1.0, 2.0]).contains("must begin at 0 and end at 2"));
        assert!(fault_of(&[], &[], &[]).contains("must begin at 0"));
        assert_eq!(fault_of(&[0, 2, 1, 2], &[0, 1], &[1.0; 2]), "row 1 ends before it begins");
        assert_eq!(fault_of(&[0, 5, 2], &[0, 1], &[1.0; 2]), "row 1 ends before it begins");
        assert_eq!(fault_of(&[0, 2], &[1, 1], &[1.0; 2]), "row 0: index 1 does not rise");
        assert_eq!(fault_of(&[0, 0, 1], &[3], &[1.0]), "row 1: index 3 is not below 3");
    }
}
