//! The local steps of the client types for one step size: the second moments of a client's end
//! as a linear map of those of its begin, for any number of steps.
//!
//! A client's coordinates are y = (e, 1, w) with e = θ − θ*, and w = γ(ξ − ξ*) if it is
//! corrected; a local step is e ← (I − γ H_c) e − w − γ noise, with −γ F̄_c(θ*) for −w if it is
//! not.

use super::products::{Products, product};
use crate::linalg::Matrix;
use crate::problem::Facts;
use faer::{Mat, Scale};
use rayon::prelude::*;

/// A type of clients.
pub struct ClientType {
    /// Its proportion π of the clients.
    pub proportion: f64,
    /// H_c, d × d.
    pub jacobian: Matrix,
    /// F̄_c(θ*).
    pub field: Vec<f64>,
    /// The covariance of the oracle's noise at two points as a map of E (e, 1)(e', 1)ᵀ,
    /// d² × (d+1)².
    pub noise: Matrix,
}

impl ClientType {
    /// The type of this client; `None` if second moments do not close.
    pub fn new(facts: &dyn Facts, client: usize, proportion: f64) -> Option<Self> {
        let d = facts.dim();
        let mut noise = Matrix::zeros(d * d, (d + 1) * (d + 1));
        for j in 0..=d {
            for k in 0..=d {
                let mut unit = Matrix::zeros(d + 1, d + 1);
                unit[(j, k)] = 1.0;
                let out = facts.noise_map(client, &unit)?;
                for i in 0..d * d {
                    noise[(i, j * (d + 1) + k)] = out[(i / d, i % d)];
                }
            }
        }
        let (jacobian, field) = (facts.jacobian(client), facts.field_at_optimum(client));
        Some(Self { proportion, jacobian, field, noise })
    }
}

/// The noise of local steps.
pub struct LocalNoise {
    /// The covariance of a client's ends given its begin and the number of steps, as a map of
    /// E y y'ᵀ, by type and pair of runs.
    pub own: Vec<Vec<Mat<f64>>>,
    /// The covariance of the ends of two clients.
    pub common: Vec<CommonNoise>,
}

/// The covariance of the ends of two clients given their begins. It differs from 0 if they share
/// a random number of steps.
pub struct CommonNoise {
    /// The types g ≤ h of the clients.
    pub types: (usize, usize),
    /// The covariance as a map of E y_g y_hᵀ.
    pub noise: Mat<f64>,
}

/// The powers 1, 2, 4, … of a type's local step.
struct TypePowers {
    /// y after from y before, for each run.
    means: Vec<Vec<Mat<f64>>>,
    /// E y y'ᵀ after from E y y'ᵀ before, for each pair of runs.
    squares: Vec<Vec<Mat<f64>>>,
}

/// The powers 1, 2, 4, … of the local steps of two clients of types g ≤ h, without their noise.
struct PairPowers {
    types: (usize, usize),
    maps: Vec<Mat<f64>>,
}

/// The local steps of all types for one step size.
pub struct LocalPowers {
    d: usize,
    types: Vec<TypePowers>,
    /// Empty unless the number of steps is random.
    pairs: Vec<PairPowers>,
}

/// The number of local steps of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepCount {
    /// This number.
    Fixed(u64),
    /// A geometric number with this mean, the same for all clients.
    Geometric(u64),
}

impl StepCount {
    /// The mean.
    pub fn mean(self) -> u64 {
        let (Self::Fixed(count) | Self::Geometric(count)) = self;
        count
    }

    /// The powers 1, 2, 4, … that are needed beyond the first.
    fn doublings(self) -> u32 {
        match self {
            Self::Fixed(count) => count.ilog2(),
            // (1 − 1/H)ⁿ < NEGLIGIBLE for n = 46 H.
            Self::Geometric(count) => count.ilog2() + 7,
        }
    }
}

/// The probability of so many local steps is neglected.
const NEGLIGIBLE: f64 = 1e-20;

/// The mean of the rows numbered `rows` of a power of a map, from its powers 1, 2, 4, ….
fn mean_power(powers: &[Mat<f64>], rows: &[usize], count: StepCount) -> Mat<f64> {
    let rows_of = |map: &Mat<f64>, factor: f64| {
        Mat::from_fn(rows.len(), map.ncols(), |i, j| factor * map[(rows[i], j)])
    };
    match count {
        StepCount::Fixed(count) => {
            let mut bits = (0..64).filter(|bit| count >> bit & 1 == 1);
            let first = rows_of(&powers[bits.next().unwrap_or(0)], 1.0);
            bits.fold(first, |rows, bit| product(rows.as_ref(), powers[bit].as_ref()))
        }
        StepCount::Geometric(mean) => {
            // Σ_τ p (1 − p)^(τ−1) map^τ; the sum over the first n is known, the next n are added.
            let p = 1.0 / mean as f64;
            let (mut sum, mut weight) = (rows_of(&powers[0], p), 1.0 - p);
            for power in powers {
                if weight <= NEGLIGIBLE {
                    break;
                }
                let later = product(sum.as_ref(), power.as_ref());
                sum += later * Scale(weight);
                weight *= weight;
            }
            sum
        }
    }
}

/// The coordinates of E e e'ᵀ among those of E y y'ᵀ.
fn end_rows(all: Products, d: usize) -> Vec<usize> {
    Products { n: d, same: all.same }.entries().map(|(i, j)| all.index(i, j)).collect()
}

/// The pairs r ≤ q of runs.
pub fn run_pairs(runs: usize) -> impl Iterator<Item = (usize, usize)> {
    Products { n: runs, same: true }.entries()
}

/// The map of y in one local step.
fn step(kind: &ClientType, gamma: f64, corrected: bool) -> Matrix {
    let d = kind.field.len();
    let n = if corrected { 2 * d + 1 } else { d + 1 };
    Matrix::from_fn(n, n, |i, j| {
        let same = f64::from(u8::from(i == j));
        match (i < d, j) {
            (false, _) => same,
            (true, j) if j < d => same - gamma * kind.jacobian[(i, j)],
            (true, j) if j > d => -f64::from(u8::from(j == i + d + 1)),
            _ if corrected => 0.0,
            _ => -gamma * kind.field[i],
        }
    })
}

impl TypePowers {
    /// Powers up to 2^`doublings` for runs of these step sizes.
    fn new(kind: &ClientType, steps: &[f64], corrected: bool, doublings: u32) -> Self {
        let d = kind.field.len();
        let maps: Vec<Matrix> = steps.iter().map(|gamma| step(kind, *gamma, corrected)).collect();
        let powers = |map: Mat<f64>| {
            let mut powers = vec![map];
            for k in 0..doublings as usize {
                powers.push(product(powers[k].as_ref(), powers[k].as_ref()));
            }
            powers
        };
        let square = |(r, q): (usize, usize)| {
            let products = Products { n: maps[r].rows(), same: r == q };
            let ends = Products { n: d, same: r == q };
            let mut map = products.mapped_by(&maps[r], &maps[q]);
            let scale = steps[r] * steps[q];
            for (j, k) in (Products { n: d + 1, same: false }).entries() {
                let column = products.index(j, k);
                for (i, l) in ends.entries() {
                    map[(products.index(i, l), column)] +=
                        scale * kind.noise[(i * d + l, j * (d + 1) + k)];
                }
            }
            powers(map)
        };
        let mean = |m: &Matrix| powers(Mat::from_fn(m.rows(), m.cols(), |i, j| m[(i, j)]));
        Self {
            means: maps.iter().map(mean).collect(),
            squares: run_pairs(steps.len()).map(square).collect(),
        }
    }

    /// E e e'ᵀ after so many steps as a map of E y y'ᵀ, for each pair of runs.
    fn second_moments(&self, d: usize, count: StepCount) -> Vec<Mat<f64>> {
        let runs = self.means.len();
        let pairs = run_pairs(runs).zip(&self.squares);
        pairs
            .map(|((r, q), powers)| {
                let all = Products { n: self.means[r][0].nrows(), same: r == q };
                mean_power(powers, &end_rows(all, d), count)
            })
            .collect()
    }
}

impl LocalPowers {
    /// The local steps of runs with these step sizes, up to `most` of them.
    pub fn new(types: &[ClientType], steps: &[f64], corrected: bool, most: StepCount) -> Self {
        let (d, doublings) = (types[0].field.len(), most.doublings());
        let powers = |kind| TypePowers::new(kind, steps, corrected, doublings);
        let types: Vec<TypePowers> = types.par_iter().map(powers).collect();
        let pair = |(g, h): (usize, usize)| {
            let products = Products { n: types[g].means[0][0].nrows(), same: g == h };
            let dense = |m: &Mat<f64>| Matrix::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)]);
            let maps = types[g].means[0].iter().zip(&types[h].means[0]);
            let maps = maps.map(|(a, b)| (dense(a), dense(b)));
            PairPowers {
                types: (g, h),
                maps: maps.map(|(a, b)| products.mapped_by(&a, &b)).collect(),
            }
        };
        let pairs = match most {
            StepCount::Fixed(_) => Vec::new(),
            StepCount::Geometric(_) => run_pairs(types.len()).map(pair).collect(),
        };
        Self { d, types, pairs }
    }

    /// E e after so many local steps as a map of (x, 1, v) before them, by type and run, where v = H w with H
    /// the mean of `count`.
    pub fn ends(&self, count: StepCount) -> Vec<Vec<Matrix>> {
        let rows: Vec<usize> = (0..self.d).collect();
        let factor = 1.0 / count.mean() as f64;
        let scale = |j: usize| if j > self.d { factor } else { 1.0 };
        let end = |powers: &Vec<Mat<f64>>| {
            let end = mean_power(powers, &rows, count);
            Matrix::from_fn(self.d, end.ncols(), |i, j| scale(j) * end[(i, j)])
        };
        self.types.iter().map(|t| t.means.iter().map(end).collect()).collect()
    }

    /// The noise of so many local steps with these [`ends`](Self::ends).
    pub fn noise(&self, count: StepCount, ends: &[Vec<Matrix>]) -> LocalNoise {
        let (d, factor) = (self.d, 1.0 / count.mean() as f64);
        let of_ends = |mut square: Mat<f64>, a: &Matrix, b: &Matrix, same: bool| {
            let all = Products { n: a.cols(), same };
            rescale(&mut square, all, d, factor);
            square - all.mapped_by(a, b)
        };
        let own_of = |(powers, ends): (&TypePowers, &Vec<Matrix>)| {
            let squares = powers.second_moments(d, count);
            let pairs = run_pairs(ends.len()).zip(squares);
            pairs.map(|((r, q), square)| of_ends(square, &ends[r], &ends[q], r == q)).collect()
        };
        let mut own: Vec<Vec<Mat<f64>>> = self.types.iter().zip(ends).map(own_of).collect();
        let mut common = Vec::new();
        for PairPowers { types: (g, h), maps } in &self.pairs {
            let (g, h) = (*g, *h);
            let all = Products { n: ends[g][0].cols(), same: g == h };
            let both = mean_power(maps, &end_rows(all, d), count);
            let noise = of_ends(both, &ends[g][0], &ends[h][0], g == h);
            if g == h {
                // Without what the number of steps has in common for all clients.
                own[g][0] -= &noise;
            }
            common.push(CommonNoise { types: (g, h), noise });
        }
        LocalNoise { own, common }
    }
}

/// Replaces w by v with w = `factor` v in a map of E y y'ᵀ.
fn rescale(map: &mut Mat<f64>, products: Products, d: usize, factor: f64) {
    let scale = |i: usize| if i > d { factor } else { 1.0 };
    for (column, (k, l)) in products.entries().enumerate() {
        let factor = scale(k) * scale(l);
        map.col_mut(column).iter_mut().for_each(|x| *x *= factor);
    }
}
