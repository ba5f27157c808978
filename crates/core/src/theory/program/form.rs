//! Vectors as linear forms: of the coordinates in which a round computes, and of its noises.

use crate::linalg::Matrix;

/// A vector of some numbers: each is a sum of coordinates with weights, and the vector has a part
/// of each of some noises.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    /// Of each number, the coordinates with their weights, in increasing order.
    pub rows: Vec<Vec<(usize, f64)>>,
    /// Noises by number, in increasing order, with the matrix that is applied to each.
    pub noise: Vec<(usize, Matrix)>,
}

impl Form {
    /// So many numbers that are 0.
    pub fn zero(length: usize) -> Self {
        Self { rows: vec![Vec::new(); length], noise: Vec::new() }
    }

    /// The coordinates from `begin` on.
    pub fn coordinates(begin: usize, length: usize) -> Self {
        Self { rows: (0..length).map(|i| vec![(begin + i, 1.0)]).collect(), noise: Vec::new() }
    }

    /// The noise of this number.
    pub fn noise(id: usize, length: usize) -> Self {
        Self { noise: vec![(id, Matrix::identity(length))], ..Self::zero(length) }
    }

    /// Adds constants: coordinate 0 is the number 1.
    pub fn add_constant(&mut self, constants: &[f64]) {
        for (row, constant) in self.rows.iter_mut().zip(constants) {
            if *constant != 0.0 {
                merge(row, *constant, &[(0, 1.0)]);
            }
        }
    }

    /// Adds another one, each entry times its weight.
    pub fn add(&mut self, weights: &[f64], other: &Self) {
        for ((row, weight), more) in self.rows.iter_mut().zip(weights).zip(&other.rows) {
            if *weight != 0.0 {
                merge(row, *weight, more);
            }
        }
        if weights.iter().any(|weight| *weight != 0.0) {
            let scaled =
                |m: &Matrix| Matrix::from_fn(m.rows(), m.cols(), |i, j| weights[i] * m[(i, j)]);
            other.noise.iter().for_each(|(id, matrix)| self.add_noise(*id, scaled(matrix)));
        }
    }

    fn add_noise(&mut self, id: usize, matrix: Matrix) {
        match self.noise.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => self.noise[at].1.add(1.0, &matrix),
            Err(at) => self.noise.insert(at, (id, matrix)),
        }
    }

    /// M times it.
    pub fn mapped(&self, matrix: &Matrix) -> Self {
        let mut out = Self::zero(matrix.rows());
        for (i, row) in out.rows.iter_mut().enumerate() {
            for (weight, more) in matrix.row(i).iter().zip(&self.rows) {
                if *weight != 0.0 {
                    merge(row, *weight, more);
                }
            }
        }
        out.noise = self.noise.iter().map(|(id, m)| (*id, matrix.times(m))).collect();
        out
    }

    /// It, followed by others.
    pub fn stacked(parts: &[&Self]) -> Self {
        let length: usize = parts.iter().map(|part| part.rows.len()).sum();
        let mut out = Self::zero(length);
        let mut begin = 0;
        for part in parts {
            for (id, matrix) in &part.noise {
                let mut moved = Matrix::zeros(length, matrix.cols());
                for i in 0..matrix.rows() {
                    (0..matrix.cols()).for_each(|j| moved[(begin + i, j)] = matrix[(i, j)]);
                }
                out.add_noise(*id, moved);
            }
            for row in &part.rows {
                out.rows[begin].clone_from(row);
                begin += 1;
            }
        }
        out
    }

    /// The coordinates that it has, without noise.
    pub fn without_noise(&self) -> Self {
        Self { rows: self.rows.clone(), noise: Vec::new() }
    }

    /// The number of its weights.
    pub fn size(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Its numbers for these coordinates, without noise.
    pub fn value(&self, coordinates: &[f64]) -> Vec<f64> {
        let of =
            |row: &Vec<(usize, f64)>| row.iter().fold(0.0, |sum, (i, x)| sum + x * coordinates[*i]);
        self.rows.iter().map(of).collect()
    }

    /// It times a symmetric matrix over coordinates, of which the first `width` columns count.
    pub fn times(&self, matrix: &Matrix, width: usize) -> Matrix {
        let mut entries = Vec::with_capacity(self.rows.len() * width);
        let mut line = vec![0.0; width];
        for row in &self.rows {
            line.fill(0.0);
            for (i, weight) in row {
                crate::kernel::axpy(*weight, &matrix.row(*i)[..width], &mut line);
            }
            entries.extend_from_slice(&line);
        }
        Matrix::from_entries(self.rows.len(), width, entries)
    }

    /// `left`, as [`Form::times`] makes it, times the transpose of this.
    pub fn transposed_after(&self, left: &Matrix) -> Matrix {
        Matrix::from_fn(left.rows(), self.rows.len(), |i, j| {
            let line = left.row(i);
            self.rows[j].iter().fold(0.0, |sum, (k, x)| sum + x * line[*k])
        })
    }
}

/// row ← row + weight · more, both in increasing order.
fn merge(row: &mut Vec<(usize, f64)>, weight: f64, more: &[(usize, f64)]) {
    if row.is_empty() {
        row.extend(more.iter().map(|(i, x)| (*i, weight * x)));
        return;
    }
    let mut out = Vec::with_capacity(row.len() + more.len());
    let (mut a, mut b) = (row.iter().peekable(), more.iter().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                out.push((x.0, x.1 + weight * y.1));
                a.next();
                b.next();
            }
            (Some(x), Some(y)) if x.0 < y.0 => {
                out.push(**x);
                a.next();
            }
            (_, Some(y)) => {
                out.push((y.0, weight * y.1));
                b.next();
            }
            (Some(x), None) => {
                out.push(**x);
                a.next();
            }
            (None, None) => break,
        }
    }
    *row = out;
}
