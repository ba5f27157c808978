//! The effect of a client's local steps on first and second moments, for one run or for two runs that
//! share their draws.
//!
//! A client begins its local steps in the state y = (e, 1, w) of n = 2d + 1 numbers: e = θ − θ*, and w is
//! the part of the drift that is constant during the steps. If w is always F̄_k(θ*), the state is (e, 1)
//! with n = d + 1. A local step is e ← M e − γ w − γ ε, THEORY (2.1), and the covariance of the noise ε is linear
//! in E (e, 1)(e', 1)ᵀ, THEORY (1.2). Maps of E y y'ᵀ, an n × n' matrix, have one column for each of its
//! entries, row by row.
//!
//! After h steps e_h = Π_h y + n_h, and y becomes X_h y + (n_h, 0) with X_h = (Π_h; 0 I). The noise n_h has the mean 0
//! and the covariance 𝒩_h(E y y'ᵀ). M_h are the first d columns of Π_h, and 𝒩_h^{ee} the columns of 𝒩_h that
//! read E e e'ᵀ.
//!
//! ```text
//! THEORY (2.2)   Π_1 = (M, 0, −γI),  or (M, −γ F̄_k(θ*)) if y = (e, 1)
//! THEORY (2.3)   𝒩_1(E y y'ᵀ) = γ γ' / max(B, B') · C_k( E (e, 1)(e', 1)ᵀ )
//! THEORY (2.5)   Π_{h+i} = Π_i X_h
//! THEORY (2.6)   𝒩_{h+i}(Y) = 𝒩_i( X_h Y X_h'ᵀ ) + ( M_i ⊗ M_i' + 𝒩_i^{ee} ) 𝒩_h(Y)
//! THEORY (2.7)   E n n'ᵀ ← M_extra E n n'ᵀ if the first run alone takes extra steps, and E n n'ᵀ M_extraᵀ if the
//!                second run alone does
//! ```

use super::layers;
use crate::kernel::axpy;
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::round_program::LocalUpdate;

/// What a number h of local steps of one client does in two runs: the ends are e_h = Π_h y + n_h, and the covariance
/// E n_h n_h'ᵀ of their noises is the noise map 𝒩_h of E y y'ᵀ. A single run is given twice.
#[derive(Clone)]
pub struct Steps {
    /// The dimension d.
    pub(super) d: usize,
    /// Whether the two runs are the same: then E n nᵀ is symmetric, and half of the noise map is computed.
    same: bool,
    /// The factor by which the steps multiply (1, w) in y: 1, unless they are [discounted](Self::discounted).
    pub(super) rest: f64,
    /// Π_h of each run, d × n: THEORY (2.2) for one step, THEORY (2.5) for several.
    pub ends: [Matrix; 2],
    /// 𝒩_h, d² × n n', THEORY (2.6); without rows where means alone are followed. Where the oracle's noise is the same
    /// everywhere it is one column, the factor of E 1·1, since nothing else of E y y'ᵀ enters.
    pub(super) noise: Matrix,
}

/// What drives a client in one run: its local update, and whether it has a drift of its own.
#[derive(Clone, Copy)]
pub struct Drive {
    /// Step size γ, number of steps E, batch B and proximal term μ of the client.
    pub update: LocalUpdate,
    /// Whether w is part of y, because there is a correction or a proximal term; otherwise w is the constant
    /// F̄_k(θ*).
    pub pulled: bool,
}

/// n, the length of y in d dimensions: of (e, 1, w) if `pulled`, as in [`Drive::pulled`], and otherwise of (e, 1).
pub fn length(d: usize, pulled: bool) -> usize {
    if pulled { 2 * d + 1 } else { d + 1 }
}

/// Π_1 of one local step of a client, d × n: (M, 0, −γI), or (M, −γ F̄_k(θ*)) without a drift in y.
/// THEORY (2.2), with M of THEORY (2.1).
fn end_of_one(facts: &dyn Facts, client: usize, drive: Drive) -> Matrix {
    let d = facts.dim();
    let LocalUpdate { step, proximal, .. } = drive.update;
    let jacobian = facts.jacobian(client);
    let field = facts.field_at_optimum(client);
    Matrix::from_fn(d, length(d, drive.pulled), |i, j| {
        let diagonal = f64::from(u8::from(i == j));
        match j {
            _ if j < d => diagonal * (1.0 - step * proximal) - step * jacobian[(i, j)],
            _ if j == d && drive.pulled => 0.0,
            _ if j == d => -step * field[i],
            _ => -step * f64::from(u8::from(i + d + 1 == j)),
        }
    })
}

/// C_k(E 1·1), d² numbers, of a client whose oracle's noise is the same at every θ; `None` if it is not, or second
/// moments do not close.
pub fn constant_noise(facts: &dyn Facts, client: usize) -> Option<Matrix> {
    let d = facts.dim();
    for j in 0..=d {
        for k in (0..=d).filter(|k| (j, *k) != (d, d)) {
            let mut unit = Matrix::zeros(d + 1, d + 1);
            unit[(j, k)] = 1.0;
            let found = facts.noise_map(client, &unit)?;
            if found.entries().iter().any(|x| *x != 0.0) {
                return None;
            }
        }
    }
    let mut one = Matrix::zeros(d + 1, d + 1);
    one[(d, d)] = 1.0;
    Some(Matrix::from_entries(d * d, 1, facts.noise_map(client, &one)?.into_entries()))
}

/// C_k of THEORY (1.2) as a matrix, d² × (d+1)²: the covariance of a client's oracle at two points with the same
/// draw, from E (e, 1)(e', 1)ᵀ. `None` if second moments do not close.
pub fn oracle_noise(facts: &dyn Facts, client: usize) -> Option<Matrix> {
    let d = facts.dim();
    let mut map = Matrix::zeros(d * d, (d + 1) * (d + 1));
    for j in 0..=d {
        for k in 0..=d {
            let mut unit = Matrix::zeros(d + 1, d + 1);
            unit[(j, k)] = 1.0;
            let out = facts.noise_map(client, &unit)?;
            for i in 0..d * d {
                map[(i, j * (d + 1) + k)] = out[(i / d, i % d)];
            }
        }
    }
    Some(map)
}

impl Steps {
    /// One local step of client `client` in two runs on the same draws (or in one run, given twice, if `same`): Π_1 of
    /// THEORY (2.2) and 𝒩_1 of THEORY (2.3), where `oracle` is the matrix of C_k that [`oracle_noise`]
    /// computes, or the column that [`constant_noise`] computes. 𝒩_1 reads (e, 1) of each y alone. Without `oracle` means
    /// alone are followed. The numbers of steps in `drives` are not read.
    pub fn new(
        facts: &dyn Facts,
        client: usize,
        oracle: Option<&Matrix>,
        drives: [Drive; 2],
        same: bool,
    ) -> Self {
        let d = facts.dim();
        let [a, b] = drives;
        let ends = [end_of_one(facts, client, a), end_of_one(facts, client, b)];
        let rows = ends[0].cols();
        let cols = ends[1].cols();
        let Some(oracle) = oracle else {
            return Self { d, same, rest: 1.0, ends, noise: Matrix::zeros(0, rows * cols) };
        };
        // Of batches of B and B' draws the smaller one is the beginning of the larger one.
        let scale = a.update.step * b.update.step / a.update.batch.max(b.update.batch) as f64;
        if oracle.cols() == 1 {
            return Self { d, same, rest: 1.0, ends, noise: oracle.scaled(scale) };
        }
        let mut noise = Matrix::zeros(d * d, rows * cols);
        for i in 0..d * d {
            for j in 0..=d {
                for k in 0..=d {
                    noise[(i, j * cols + k)] = scale * oracle[(i, j * (d + 1) + k)];
                }
            }
        }
        Self { d, same, rest: 1.0, ends, noise }
    }

    /// Steps, or a pass, with these means of the ends, Π, and this noise map, which has no rows if means alone are
    /// followed. `same` says whether the two runs are one.
    pub(super) fn with_noise(ends: [Matrix; 2], noise: Matrix, same: bool) -> Self {
        Self { d: ends[0].rows(), same, rest: 1.0, ends, noise }
    }

    /// These steps, after which all of y is multiplied by √(1 − p) = `discount`. Then the map of second
    /// moments is (1 − p) T, whose powers are the terms of THEORY (2.9): where steps expand, weights would
    /// underflow and powers of T overflow.
    pub(super) fn discounted(&self, discount: f64) -> Self {
        Self {
            rest: self.rest * discount,
            ends: self.ends.clone().map(|end| end.scaled(discount)),
            noise: self.noise.scaled(discount * discount),
            ..*self
        }
    }

    /// Whether these steps have no noise map, because means alone are followed.
    pub(super) fn is_of_means(&self) -> bool {
        self.noise.rows() == 0
    }

    /// Whether the noise is the same whatever the state in which the client begins.
    fn has_constant_noise(&self) -> bool {
        self.noise.cols() == 1
    }

    /// 𝒩_h(E y y'ᵀ), THEORY (2.6), in `layers` layers: the covariance of the noises of the two ends, d × d. `whole` is
    /// E y y'ᵀ.
    pub(super) fn noise_from(&self, whole: &Matrix, layers: usize) -> Matrix {
        if !self.has_constant_noise() {
            return layers::mapped(&self.noise, whole, self.d, layers);
        }
        let unit = layers::entry(whole, (self.d, self.d), layers);
        Matrix::from_fn(self.d, self.d * layers, |i, j| {
            unit[j % layers] * self.noise[(i * self.d + j / layers, 0)]
        })
    }

    /// The larger of two sizes of the map of E e eᵀ to itself: (the largest entry of M_h)², or the largest coefficient
    /// of E e eᵀ in the noise map. It vanishes as the number of steps grows if and only if second moments contract, and
    /// is NaN if a coefficient is.
    pub(super) fn size(&self) -> f64 {
        let cols = self.ends[1].cols();
        let mut most = largest(&self.factor(0)) * largest(&self.factor(1));
        if self.has_constant_noise() {
            return most;
        }
        for i in 0..self.noise.rows() {
            for k in 0..self.d * self.d {
                most = maximum(most, self.noise[(i, k / self.d * cols + k % self.d)].abs());
            }
        }
        most
    }

    /// M_h of run 0 or 1, d × d: the first d columns of Π_h, the factor of e.
    fn factor(&self, run: usize) -> Matrix {
        Matrix::from_fn(self.d, self.d, |i, j| self.ends[run][(i, j)])
    }

    /// These steps and then the steps `next` of the same client, whose y has the same parts in each run: THEORY (2.5),
    /// (2.6). In two runs the draws of each step are shared.
    pub fn then(&self, next: &Self) -> Self {
        let d = self.d;
        let ends = [0, 1].map(|r| next.ends[r].times(&extended(&self.ends[r], self.rest)));
        let rest = self.rest * next.rest;
        if self.is_of_means() {
            return Self { rest, ends, ..self.clone() };
        }
        if self.has_constant_noise() {
            let noise = self.constant_noise_after(next);
            return Self { d, same: self.same, rest, ends, noise };
        }
        let of_next = self.pulled_back(&next.noise);
        // The noise n of these steps becomes M n, and its covariance adds to what the later noise reads.
        let a = next.factor(0);
        let b = next.factor(1);
        let cols = self.ends[1].cols();
        let propagate = Matrix::from_fn(d * d, d * d, |i, k| {
            a[(i / d, k / d)] * b[(i % d, k % d)] + next.noise[(i, k / d * cols + k % d)]
        });
        let mut noise = self.mirrored(|rows| rows_of(&propagate, rows).times(&self.noise));
        noise.add(1.0, &of_next);
        Self { d, same: self.same, rest, ends, noise }
    }

    /// The constant noise after the steps `next` that follow these ones, THEORY (2.6).
    fn constant_noise_after(&self, next: &Self) -> Matrix {
        let d = self.d;
        let before = Matrix::from_entries(d, d, self.noise.entries().to_vec());
        let moved = next.factor(0).times(&before).times_transposed(&next.factor(1));
        let mut noise = Matrix::from_entries(d * d, 1, moved.into_entries());
        noise.add(self.rest * self.rest, &next.noise);
        noise
    }

    /// A map of E y y'ᵀ to d × d matrices, with d² rows and as many columns as the noise map: `rows_of_map` computes
    /// the rows of the numbers that it is given. Row i d + j gives entry (i, j) of the d × d matrix. If the two runs
    /// are the same, that matrix is symmetric, and only the rows with i ≤ j are asked for; the others are their mirror
    /// images.
    pub(super) fn mirrored(&self, rows_of_map: impl Fn(&[usize]) -> Matrix) -> Matrix {
        let d = self.d;
        let rows: Vec<usize> = (0..d * d).filter(|i| !self.same || i / d <= i % d).collect();
        let computed = rows_of_map(&rows);
        let n = self.ends[1].cols();
        let cols = self.noise.cols();
        let mut out = Matrix::zeros(d * d, cols);
        for (r, &i) in rows.iter().enumerate() {
            for k in 0..cols {
                out[(i, k)] = computed[(r, k)];
                if self.same {
                    out[(i % d * d + i / d, k % n * n + k / n)] = computed[(r, k)];
                }
            }
        }
        out
    }

    /// `map`, a map of E y y'ᵀ after these steps, as a map of E y y'ᵀ before them, without what their noise adds:
    /// Y ↦ `map`(X_h Y X_h'ᵀ), the first term of THEORY (2.6).
    pub(super) fn pulled_back(&self, map: &Matrix) -> Matrix {
        // y after is X y with X = (Π; 0 rest·I), so a row R of weights of y y'ᵀ becomes Xᵀ R X'.
        let [a, b] = &self.ends;
        let d = self.d;
        let m = a.cols();
        let n = b.cols();
        self.mirrored(|rows| {
            let mut out = Matrix::zeros(rows.len(), map.cols());
            let mut left = vec![0.0; m * n];
            for (r, &i) in rows.iter().enumerate() {
                let from = map.row(i).chunks_exact(n);
                left.fill(0.0);
                for (k, from) in from.enumerate() {
                    if k < d {
                        for (left, x) in left.chunks_exact_mut(n).zip(a.row(k)) {
                            axpy(*x, from, left);
                        }
                    } else {
                        axpy(self.rest, from, &mut left[k * n..][..n]);
                    }
                }
                for (left, to) in left.chunks_exact(n).zip(out.row_mut(r).chunks_exact_mut(n)) {
                    (0..d).for_each(|k| axpy(left[k], b.row(k), to));
                    axpy(self.rest, &left[d..], &mut to[d..]);
                }
            }
            out
        })
    }

    /// The map of E y y'ᵀ to E e e'ᵀ after the steps, d² × n n': Π_h ⊗ Π_h' and the noise map.
    pub(super) fn second_moments(&self) -> Matrix {
        let d = self.d;
        let [a, b] = &self.ends;
        let n = b.cols();
        let mut out =
            Matrix::from_fn(d * d, a.cols() * n, |i, k| a[(i / d, k / n)] * b[(i % d, k % n)]);
        out.add(1.0, &self.noise);
        out
    }

    /// These steps, `count` times in a row (at least once): by repeated doubling of THEORY (2.5), (2.6).
    pub fn times(&self, count: u64) -> Self {
        let mut all = self.clone();
        for bit in (0..count.max(1).ilog2()).rev() {
            all = all.then(&all);
            if count >> bit & 1 == 1 {
                all = all.then(self);
            }
        }
        all
    }

    /// These steps, after which run number `run`, 0 or 1, alone takes the steps `extra` of the same client, of which
    /// only the part of this run is read. The draws of the extra steps are not shared, so the covariance of the two
    /// noises is only multiplied by M_extra: THEORY (2.7).
    pub fn alone(&self, run: usize, extra: &Self) -> Self {
        let d = self.d;
        let mut ends = self.ends.clone();
        ends[run] = extra.ends[run].times(&extended(&self.ends[run], self.rest));
        if self.is_of_means() {
            return Self { ends, ..self.clone() };
        }
        let factor = extra.factor(run);
        let mut noise = Matrix::zeros(d * d, self.noise.cols());
        for i in 0..d * d {
            for k in 0..d {
                let (weight, from) = if run == 0 {
                    (factor[(i / d, k)], k * d + i % d)
                } else {
                    (factor[(i % d, k)], i / d * d + k)
                };
                for c in 0..noise.cols() {
                    noise[(i, c)] += weight * self.noise[(from, c)];
                }
            }
        }
        Self { d, same: false, rest: self.rest, ends, noise }
    }
}

/// X_h, n × n, which maps y before the steps to y after them without noise: THEORY (2.4), where `end` is Π_h, and
/// (1, w) is multiplied by `rest`, which is 1 unless steps are discounted.
pub(super) fn extended(end: &Matrix, rest: f64) -> Matrix {
    let d = end.rows();
    let mut whole = Matrix::identity(end.cols()).scaled(rest);
    for i in 0..d {
        whole.row_mut(i).copy_from_slice(end.row(i));
    }
    whole
}

/// The largest absolute value of an entry; NaN if an entry is NaN.
pub(super) fn largest(matrix: &Matrix) -> f64 {
    matrix.entries().iter().fold(0.0, |most, x| maximum(most, x.abs()))
}

/// The larger number; NaN if one is NaN, which `f64::max` would pass over.
fn maximum(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}

/// The rows of a matrix that have these numbers, one after another.
pub(super) fn rows_of(matrix: &Matrix, rows: &[usize]) -> Matrix {
    Matrix::from_fn(rows.len(), matrix.cols(), |i, j| matrix[(rows[i], j)])
}
