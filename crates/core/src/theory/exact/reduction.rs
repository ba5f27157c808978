//! States that hold more than they need: combinations of coordinates that never change, THEORY (5.4), and
//! combinations that nothing reads.
//!
//! FedDyn's server keeps the mean of what its clients keep. Such a combination never changes, so the map of a
//! cycle has the eigenvalue 1 along it. It is found as a left eigenvector, and one coordinate is computed
//! from the others. Other combinations enter nothing: of Scaffold's variates only their distances from their
//! mean enter corrections.
//!
//! The map of means may have the eigenvalue 1 for another reason: at γ = 2/λ two local steps along an
//! eigenvector of curvature λ multiply the error by (1 − γλ)² = 1. The combination that the map *keeps* then
//! holds the error of the start, and noise is added to it in each round. A counter is kept by the linear map
//! too, and grows by the constant of each round. So a kept combination is a constant of the rounds only if
//! its value does not depend on the start and neither noise nor a constant is added to it
//! ([`super::stationary::Cycle`] checks all three).

use crate::kernel::dot;
use crate::linalg::Matrix;

/// An entry that is at most this part of the sum of the sizes of its summands is a rounding error.
const UNCHANGED: f64 = 1e-9;

/// How all coordinates x of a state follow from the free ones, x = P x_free + p, THEORY (5.4): for each combination of
/// coordinates that a cycle keeps, one coordinate is computed from the others, and the others are free.
pub(super) struct Lift {
    /// The numbers of the free coordinates, in increasing order.
    pub free: Vec<usize>,
    /// P, one row for each coordinate and one column for each free coordinate.
    pub map: Matrix,
    /// p, one number for each coordinate.
    pub constant: Vec<f64>,
    /// The kept combinations ℓ with ℓ M = ℓ, as rows over all coordinates. The coordinate at the pivot of a row, where
    /// ℓ is 1, is computed from the free ones.
    pub kept: Echelon,
}

impl Lift {
    /// Finds the combinations ℓ with ℓ M = ℓ of a linear map M, THEORY (5.4), by elimination; ℓ x keeps the
    /// value that it has at x = `start`.
    pub fn new(map: &Matrix, start: &[f64]) -> Self {
        let n = map.rows();
        // The rows of (M − I)ᵀ; what is left without a pivot spans the combinations.
        let mut changes = Echelon::default();
        for j in 0..n {
            let mut row = Vec::with_capacity(n);
            let mut sizes = Vec::with_capacity(n);
            for i in 0..n {
                let unit = f64::from(u8::from(i == j));
                row.push(map[(i, j)] - unit);
                sizes.push(map[(i, j)].abs() + unit);
            }
            changes.add(row, sizes);
        }
        let mut kept = Echelon::default();
        for column in (0..n).filter(|j| !changes.pivots.contains(j)) {
            let mut line = vec![0.0; n];
            line[column] = 1.0;
            changes.each().for_each(|(row, pivot)| line[pivot] = -row[column]);
            let sizes = absolute(&line);
            kept.add(line, sizes);
        }
        let free: Vec<usize> = (0..n).filter(|i| !kept.pivots.contains(i)).collect();
        let mut lift = Matrix::zeros(n, free.len());
        let mut constant = vec![0.0; n];
        free.iter().enumerate().for_each(|(j, i)| lift[(*i, j)] = 1.0);
        for (row, at) in kept.each() {
            constant[at] = dot(row, start);
            free.iter().enumerate().for_each(|(j, i)| lift[(at, j)] = -row[*i]);
        }
        Self { free, map: lift, constant, kept }
    }

    /// The lift where nothing is kept and all coordinates are free.
    pub fn identity(size: usize) -> Self {
        Self {
            free: (0..size).collect(),
            map: Matrix::identity(size),
            constant: vec![0.0; size],
            kept: Echelon::default(),
        }
    }

    /// The lift of coordinates that are all 0, so that none is free: the deviations of the only client of a type.
    pub fn zero(size: usize) -> Self {
        Self {
            free: Vec::new(),
            map: Matrix::zeros(size, 0),
            constant: vec![0.0; size],
            kept: Echelon::default(),
        }
    }

    /// Whether ℓ Σ ℓᵀ is not 0 for a kept combination ℓ, where Σ is a covariance in which these coordinates
    /// begin at row and column `begin`: more than the rounding errors of its entries, and of numbers whose
    /// standard deviation is `size`.
    pub fn has_variance_along_kept(&self, covariance: &Matrix, begin: usize, size: f64) -> bool {
        self.kept.rows.iter().any(|row| {
            let parts = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
            let mut sum = 0.0;
            let mut of_entries = 0.0_f64;
            for (i, x) in parts.clone() {
                for (j, y) in parts.clone() {
                    let part = x * y * covariance[(begin + i, begin + j)];
                    sum += part;
                    of_entries += part.abs();
                }
            }
            let rounding = UNCHANGED * size * parts.map(|(_, x)| x.abs()).sum::<f64>();
            sum.abs() > UNCHANGED * of_entries && sum.abs() > rounding * rounding
        })
    }

    /// All coordinates P x_free after a number 0 in the place of the number 1: the linear part of the lift, in which
    /// all kept combinations are 0.
    pub fn homogeneous(&self, free: &[f64]) -> Vec<f64> {
        let mut all = vec![0.0; self.constant.len() + 1];
        if !free.is_empty() {
            all[1..].copy_from_slice(&self.map.apply(free));
        }
        all
    }

    /// All coordinates P x_free + `unit` p after the number 1, which is `unit`: 1 for means, and 0 for differences of
    /// means.
    pub fn all_from(&self, free: &[f64], unit: f64) -> Vec<f64> {
        let mut all =
            if free.is_empty() { vec![0.0; self.constant.len()] } else { self.map.apply(free) };
        all.iter_mut().zip(&self.constant).for_each(|(x, constant)| *x += unit * constant);
        all.insert(0, unit);
        all
    }
}

/// Linearly independent rows in reduced echelon form. Each row is 1 at its pivot, where all other rows are 0.
#[derive(Default)]
pub(super) struct Echelon {
    /// The rows, which have the same length.
    pub rows: Vec<Vec<f64>>,
    /// The place of the pivot of each row.
    pub pivots: Vec<usize>,
}

impl Echelon {
    /// The combinations of coordinates that are read now or after any number of cycles: the row space of
    /// `read` Mᵏ for k = 0, 1, 2, …, and of the first coordinate, which is the number 1, where M is `map`.
    /// The numbers z of THEORY (6.1) need only the second moments of these combinations. `read` has one row for each
    /// number that is read, and both matrices have one column for each coordinate.
    pub fn observed(read: &Matrix, map: &Matrix) -> Self {
        let n = map.rows();
        let mut new = Self::default();
        // Rows that are read, and whose image under M was not looked at yet.
        let mut open: Vec<Vec<f64>> = (0..read.rows()).map(|i| read.row(i).to_vec()).collect();
        open.push(Matrix::identity(n).row(0).to_vec());
        while let Some(row) = open.pop() {
            if new.rows.len() == n {
                break;
            }
            if !new.add(row.clone(), absolute(&row)) {
                continue;
            }
            // The row times M, and the sizes of the numbers that are added up.
            let mut next = vec![0.0; n];
            let mut sizes = vec![0.0; n];
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

    /// The rows, each with the place of its pivot.
    pub fn each(&self) -> impl Iterator<Item = (&Vec<f64>, usize)> {
        self.rows.iter().zip(self.pivots.iter().copied())
    }

    /// Adds a row, unless it is a linear combination of the rows before it up to rounding; returns whether it was
    /// added. `sizes` are the sums of the sizes of the numbers of which its entries were made, which bound their
    /// rounding errors.
    fn add(&mut self, mut row: Vec<f64>, mut sizes: Vec<f64>) -> bool {
        for (known, pivot) in self.each() {
            subtract(&mut row, &mut sizes, known, pivot);
        }
        drop_rounding(&mut row, &sizes);
        // The entry with the least rounding, and of several the largest.
        let best = (0..row.len()).max_by(|&x, &y| {
            let by_rounding =
                uncancelled_part(row[x], sizes[x]).total_cmp(&uncancelled_part(row[y], sizes[y]));
            by_rounding.then(row[x].abs().total_cmp(&row[y].abs()))
        });
        let Some(pivot) = best.filter(|j| row[*j] != 0.0) else { return false };
        let factor = row[pivot];
        row.iter_mut().for_each(|x| *x /= factor);
        for known in &mut self.rows {
            let mut sizes = absolute(known);
            subtract(known, &mut sizes, &row, pivot);
            drop_rounding(known, &sizes);
        }
        self.rows.push(row);
        self.pivots.push(pivot);
        true
    }
}

/// |sum|/size of a sum of numbers whose sizes add up to `size`: 1 if nothing cancelled, and the smaller, the larger the
/// relative rounding errors of the sum may be.
fn uncancelled_part(sum: f64, size: f64) -> f64 {
    if sum == 0.0 { 0.0 } else { sum.abs() / size }
}

/// The absolute values of a row's entries.
fn absolute(row: &[f64]) -> Vec<f64> {
    row.iter().map(|x| x.abs()).collect()
}

/// Subtracts from a row the multiple of `other`, which is 1 at `place`, that makes the row 0 at `place`. The sizes of
/// what is subtracted are added to `sizes`.
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

/// Sets to 0 the entries that may be rounding errors, given the sizes of the numbers that were added up.
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
        let found = Echelon::observed(&read, &map);
        assert_eq!(found.rows.len(), 3, "{:?}", found.rows);
        for (row, pivot) in found.rows.iter().zip(&found.pivots) {
            assert_eq!(row[*pivot], 1.0);
            assert!((row[1] + row[2]).abs() < 1e-12, "a + b is in {row:?}");
        }
    }
}
