//! Rows of numbers as the kernels read them, and a table that owns such rows.

use super::padding::padded;

/// Rows of `d` numbers, `stride` apart.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    data: &'a [f64],
    d: usize,
    stride: usize,
}

impl<'a> Rows<'a> {
    /// Rows of `d` numbers that begin `stride` apart; the last may end after `d` numbers.
    ///
    /// # Panics
    /// If `d` is 0 or exceeds `stride`, or the last row is not whole.
    pub fn new(data: &'a [f64], d: usize, stride: usize) -> Self {
        assert!(d > 0 && d <= stride);
        let rest = data.len() % stride;
        assert!(rest == 0 || rest >= d);
        Self { data, d, stride }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.data.len().div_ceil(self.stride)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// d, the numbers of a row.
    pub fn dim(&self) -> usize {
        self.d
    }

    /// The distance between the first numbers of neighbouring rows.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The d numbers of row number k, from 0 on, without its padding.
    ///
    /// # Panics
    /// If there are fewer rows.
    #[inline(always)]
    pub fn row(&self, k: usize) -> &'a [f64] {
        &self.data[k * self.stride..][..self.d]
    }

    /// All rows, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f64]> + use<'a> {
        let rows = *self;
        (0..rows.len()).map(move |k| rows.row(k))
    }

    /// The rows `begin..end`.
    ///
    /// # Panics
    /// If there are fewer rows, or `begin` exceeds `end`.
    pub fn part(&self, begin: usize, end: usize) -> Self {
        assert!(begin <= end && end <= self.len());
        let end = (end * self.stride).min(self.data.len());
        Self { data: &self.data[(begin * self.stride).min(end)..end], ..*self }
    }

    /// The columns `begin..end` of all rows, as rows of `end - begin` numbers that begin as far apart as before.
    ///
    /// # Panics
    /// If there are fewer columns, or the range is empty.
    pub fn columns(&self, begin: usize, end: usize) -> Self {
        assert!(begin < end && end <= self.d);
        Self { data: self.data.get(begin..).unwrap_or_default(), d: end - begin, ..*self }
    }
}

/// Eight numbers that fill a cache line, and begin at one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
struct CacheLine([f64; 8]);

/// Numbers that begin at a cache line, so that no register that is loaded from an aligned row
/// crosses one.
#[derive(Clone, Debug, PartialEq)]
pub struct Aligned {
    lines: Vec<CacheLine>,
    len: usize,
}

impl Aligned {
    /// Allocates `len` numbers, all of which are 0.
    pub fn zeros(len: usize) -> Self {
        Self { lines: vec![CacheLine([0.0; 8]); len.div_ceil(8)], len }
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f64];
    #[inline(always)]
    fn deref(&self) -> &[f64] {
        // SAFETY: a line is eight numbers, and there are lines for `len` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Aligned {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f64] {
        // SAFETY: as above; the lines are borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// Rows of `d` numbers, padded with zeros to whole registers of any instruction set; the first
/// begins at a cache line.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    d: usize,
    stride: usize,
    data: Aligned,
}

impl Table {
    /// A table of the rows of these lists, one after the other: each list is rows of `d` numbers without padding.
    ///
    /// # Panics
    /// If `d` is 0 or the last row of a list is not whole.
    pub fn new(d: usize, lists: &[impl AsRef<[f64]>]) -> Self {
        let stride = padded(d);
        let lists = lists.iter().map(AsRef::as_ref);
        assert!(d > 0 && lists.clone().all(|list| list.len().is_multiple_of(d)));
        let count: usize = lists.clone().map(|list| list.len() / d).sum();
        let mut data = Aligned::zeros(count * stride);
        let rows = lists.flat_map(|list| list.chunks_exact(d));
        rows.zip(data.chunks_exact_mut(stride)).for_each(|(row, to)| to[..d].copy_from_slice(row));
        Self { d, stride, data }
    }

    /// The rows of the table, without their padding.
    #[inline(always)]
    pub fn rows(&self) -> Rows<'_> {
        Rows { data: &self.data, d: self.d, stride: self.stride }
    }

    /// The first number of the first row; every row has `stride` numbers.
    #[inline(always)]
    pub(in crate::kernel) fn as_ptr(&self) -> *const f64 {
        self.data.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_its_rows_padded_with_zeros_and_aligned() {
        for d in [1, 2, 3, 8, 33, 50] {
            let numbers: Vec<f64> = (0..3 * d).map(|i| 1.0 + i as f64).collect();
            let table = Table::new(d, &[&numbers[..d], &numbers[d..]]);
            assert_eq!(table.as_ptr().addr() % 64, 0);
            assert_eq!(table.rows().iter().collect::<Vec<_>>().concat(), numbers);
            let rows = table.rows();
            assert_eq!(rows.part(1, 3).row(1), &numbers[2 * d..]);
            assert_eq!((rows.len(), rows.stride()), (3, padded(d)));
            let padding =
                (0..3).flat_map(|k| &rows.data[k * rows.stride + d..(k + 1) * rows.stride]);
            assert!(padding.into_iter().all(|x| *x == 0.0));
        }
    }
}
