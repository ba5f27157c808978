//! States that hold more than they need.
//!
//! FedDyn's server keeps the mean of what its clients keep. Such a combination never changes, so the map
//! of a cycle has the eigenvalue 1 along it. It is found as a left eigenvector, and one coordinate is
//! computed from the others. Other combinations enter nothing: of Scaffold's variates only their
//! distances from their mean do.

use crate::kernel::dot;
use crate::linalg::Matrix;

/// A combination whose change is smaller than this, relative to it, does not change.
const UNCHANGED: f64 = 1e-9;

/// Coordinates as affine functions of the free ones.
pub(super) struct Lift {
    pub free: Vec<usize>,
    pub map: Matrix,
    pub constant: Vec<f64>,
}

impl Lift {
    /// Of a linear map: combinations ℓ with ℓ M = ℓ keep the values that they have at `start`.
    pub fn new(map: &Matrix, start: &[f64]) -> Self {
        let n = map.rows();
        // The rows of [(M − I)ᵀ], reduced; what is left without a pivot spans the combinations.
        let mut a = Matrix::from_fn(n, n, |i, j| map[(j, i)] - f64::from(u8::from(i == j)));
        let mut pivots: Vec<(usize, usize)> = Vec::new();
        let (mut rows, mut columns): (Vec<usize>, Vec<usize>) =
            ((0..n).collect(), (0..n).collect());
        let scale = a.entries().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        loop {
            let candidates = rows.iter().flat_map(|i| columns.iter().map(move |j| (*i, *j)));
            let best = candidates.max_by(|x, y| a[*x].abs().total_cmp(&a[*y].abs()));
            let Some((i, j)) = best.filter(|at| a[*at].abs() > UNCHANGED * scale) else { break };
            let pivot = a[(i, j)];
            (0..n).for_each(|k| a[(i, k)] /= pivot);
            for other in (0..n).filter(|other| *other != i) {
                let factor = a[(other, j)];
                if factor != 0.0 {
                    (0..n).for_each(|k| a[(other, k)] -= factor * a[(i, k)]);
                }
            }
            rows.retain(|row| *row != i);
            columns.retain(|column| *column != j);
            pivots.push((i, j));
        }
        // ℓ is 1 at one of the columns that are left, and −a there at the pivots' columns.
        let mut combinations: Vec<Vec<f64>> = columns
            .iter()
            .map(|&column| {
                let mut line = vec![0.0; n];
                line[column] = 1.0;
                pivots.iter().for_each(|&(i, j)| line[j] = -a[(i, column)]);
                line
            })
            .collect();
        // One coordinate of each is computed: its largest, which the others then lack.
        let mut computed = Vec::new();
        for k in 0..combinations.len() {
            let line = combinations[k].clone();
            let largest = (0..n).max_by(|x, y| line[*x].abs().total_cmp(&line[*y].abs()));
            let Some(at) = largest.filter(|at| line[*at] != 0.0) else { continue };
            let line: Vec<f64> = line.iter().map(|x| x / line[at]).collect();
            for (other, all) in combinations.iter_mut().enumerate() {
                let factor = if other == k { 0.0 } else { all[at] };
                all.iter_mut().zip(&line).for_each(|(x, y)| *x -= factor * y);
            }
            combinations[k] = line;
            computed.push((at, k));
        }
        let free: Vec<usize> = (0..n).filter(|i| computed.iter().all(|(at, _)| at != i)).collect();
        let mut lift = Matrix::zeros(n, free.len());
        let mut constant = vec![0.0; n];
        free.iter().enumerate().for_each(|(j, i)| lift[(*i, j)] = 1.0);
        for (at, k) in computed {
            constant[at] = dot(&combinations[k], start);
            free.iter().enumerate().for_each(|(j, i)| lift[(at, j)] = -combinations[k][*i]);
        }
        Self { free, map: lift, constant }
    }

    /// The number 1, which is `unit`, and all from the free ones.
    pub fn all_from(&self, free: &[f64], unit: f64) -> Vec<f64> {
        let mut all =
            if free.is_empty() { vec![0.0; self.constant.len()] } else { self.map.apply(free) };
        all.iter_mut().zip(&self.constant).for_each(|(x, constant)| *x += unit * constant);
        all.insert(0, unit);
        all
    }
}

/// The combinations of coordinates that are read now or after any number of steps of a map: rows in
/// reduced echelon form, each with the place of its pivot.
#[derive(Default)]
pub(super) struct Observed {
    pub rows: Vec<Vec<f64>>,
    pub pivots: Vec<usize>,
}

impl Observed {
    /// Those of which the first coordinate and the rows of a matrix are made.
    pub fn new(read: &Matrix, map: &Matrix) -> Self {
        let (n, mut new) = (map.rows(), Self::default());
        let mut first = vec![0.0; n];
        first[0] = 1.0;
        let mut open: Vec<Vec<f64>> = (0..read.rows()).map(|i| read.row(i).to_vec()).collect();
        open.push(first);
        while let Some(row) = open.pop() {
            if new.rows.len() == n {
                break;
            }
            if !new.add(&row) {
                continue;
            }
            let (mut next, mut sizes) = (vec![0.0; n], vec![0.0; n]);
            for (k, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                for ((next, size), m) in next.iter_mut().zip(&mut sizes).zip(map.row(k)) {
                    *next += x * m;
                    *size += (x * m).abs();
                }
            }
            drop_rounding(&mut next, &sizes);
            open.push(next);
        }
        new
    }

    /// Adds a row; whether it is new.
    fn add(&mut self, row: &[f64]) -> bool {
        let mut row = row.to_vec();
        let mut sizes: Vec<f64> = row.iter().map(|x| x.abs()).collect();
        for (known, &pivot) in self.rows.iter().zip(&self.pivots) {
            subtract(&mut row, &mut sizes, known, pivot);
        }
        drop_rounding(&mut row, &sizes);
        let share = |j: usize| if row[j] == 0.0 { 0.0 } else { row[j].abs() / sizes[j] };
        let best = (0..row.len()).max_by(|x, y| share(*x).total_cmp(&share(*y)));
        let Some(pivot) = best.filter(|j| row[*j] != 0.0) else { return false };
        let factor = row[pivot];
        row.iter_mut().for_each(|x| *x /= factor);
        for known in &mut self.rows {
            let mut sizes: Vec<f64> = known.iter().map(|x| x.abs()).collect();
            subtract(known, &mut sizes, &row, pivot);
            drop_rounding(known, &sizes);
        }
        self.rows.push(row);
        self.pivots.push(pivot);
        true
    }
}

/// Subtracts a multiple of a row that is 1 at a place, so that this one is 0 there.
fn subtract(row: &mut [f64], sizes: &mut [f64], other: &[f64], place: usize) {
    let factor = row[place];
    if factor != 0.0 {
        for ((x, size), y) in row.iter_mut().zip(sizes).zip(other) {
            *x -= factor * y;
            *size += (factor * y).abs();
        }
        row[place] = 0.0;
    }
}

/// Sets to 0 what is rounding beside the sizes of what was added up.
fn drop_rounding(row: &mut [f64], sizes: &[f64]) {
    for (x, size) in row.iter_mut().zip(sizes) {
        if x.abs() <= UNCHANGED * size {
            *x = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of (1, a, b, c) the first step reads a − b, the second 0.3 c, and nothing else is read: three
    /// combinations, whatever else the map makes of a + b.
    #[test]
    fn what_is_read_later_is_observed_and_sums_are_not() {
        let read = Matrix::from_entries(1, 4, vec![0.0, 1.0, -1.0, 0.0]);
        let map = Matrix::from_entries(
            4,
            4,
            vec![1.0, 0.0, 0.0, 0.0, 0.1, 0.9, 0.2, 0.3, 0.1, 0.5, 0.6, 0.0, 0.0, 0.0, 0.0, 0.7],
        );
        let found = Observed::new(&read, &map);
        assert_eq!(found.rows.len(), 3, "{:?}", found.rows);
        for (row, pivot) in found.rows.iter().zip(&found.pivots) {
            assert_eq!(row[*pivot], 1.0);
            assert!((row[1] + row[2]).abs() < 1e-12, "a + b is in {row:?}");
        }
    }
}
