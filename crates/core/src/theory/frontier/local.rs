//! The local steps of the client types for one step size: the second moments of a client's end
//! as a linear map of those of its begin, for any number of steps.
//!
//! A client's coordinates are y = (e, 1, w) with e = θ − θ*, and w = γ(ξ − ξ*) if it is
//! corrected; a local step is e ← (I − γ H_c) e − w − γ noise, with −γ F̄_c(θ*) for −w if it is
//! not.

use super::products::{Products, product};
use crate::linalg::Matrix;
use crate::problem::Facts;
use faer::Mat;
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

/// The moments of a client's end of its local steps, as maps of those of its begin.
pub struct LocalMoments {
    /// E e of each run as a map of y, d × n.
    pub ends: Vec<Matrix>,
    /// The covariance of the ends of each pair of runs given the begin and the number of steps, as
    /// a map of E y y'ᵀ.
    pub noise: Vec<Mat<f64>>,
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
    means: Vec<Vec<Matrix>>,
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
    corrected: bool,
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

/// Σ_τ p (1 − p)^(τ−1) times the rows numbered `rows` of map^τ, from the powers 1, 2, 4, … of the
/// map.
fn geometric_mean(powers: &[Mat<f64>], rows: &[usize], p: f64) -> Mat<f64> {
    let mut sum = Mat::from_fn(rows.len(), powers[0].ncols(), |i, j| p * powers[0][(rows[i], j)]);
    let mut weight = 1.0 - p;
    for power in powers {
        if weight <= NEGLIGIBLE {
            break;
        }
        let later = product(sum.as_ref(), power.as_ref());
        sum += later * faer::Scale(weight);
        weight *= weight;
    }
    sum
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
        let means: Vec<Vec<Matrix>> = steps
            .iter()
            .map(|&gamma| {
                let mut powers = vec![step(kind, gamma, corrected)];
                for k in 0..doublings as usize {
                    powers.push(powers[k].times(&powers[k]));
                }
                powers
            })
            .collect();
        let square = |(r, q): (usize, usize)| {
            let (a, b) = (&means[r][0], &means[q][0]);
            let products = Products { n: a.rows(), same: r == q };
            let ends = Products { n: d, same: r == q };
            let mut map = products.mapped_by(a, b);
            let scale = steps[r] * steps[q];
            for (j, k) in (0..=d).flat_map(|j| (0..=d).map(move |k| (j, k))) {
                let column = products.index(j, k);
                for (i, l) in ends.entries() {
                    map[(products.index(i, l), column)] +=
                        scale * kind.noise[(i * d + l, j * (d + 1) + k)];
                }
            }
            let mut powers = vec![map];
            for k in 0..doublings as usize {
                powers.push(product(powers[k].as_ref(), powers[k].as_ref()));
            }
            powers
        };
        let squares = run_pairs(steps.len()).map(square).collect();
        Self { means, squares }
    }

    /// The moments after `count` local steps.
    fn after(&self, d: usize, count: u64) -> LocalMoments {
        let bits: Vec<usize> = (0..64).filter(|bit| count >> bit & 1 == 1).rev().collect();
        let end = |powers: &Vec<Matrix>| {
            let first = &powers[bits[0]];
            let rows =
                Matrix::from_entries(d, first.cols(), first.entries()[..d * first.cols()].to_vec());
            bits[1..].iter().fold(rows, |rows, &bit| rows.times(&powers[bit]))
        };
        let ends: Vec<Matrix> = self.means.iter().map(end).collect();
        let mut noise = Vec::new();
        for ((r, q), powers) in run_pairs(ends.len()).zip(&self.squares) {
            let all = Products { n: ends[r].cols(), same: r == q };
            let rows = end_rows(all, d);
            let first = &powers[bits[0]];
            let rows = Mat::from_fn(rows.len(), all.len(), |i, j| first[(rows[i], j)]);
            let square = bits[1..]
                .iter()
                .fold(rows, |rows, &bit| product(rows.as_ref(), powers[bit].as_ref()));
            noise.push(square - all.mapped_by(&ends[r], &ends[q]));
        }
        LocalMoments { ends, noise }
    }
}

impl LocalPowers {
    /// The local steps of runs with these step sizes, up to `most` of them.
    pub fn new(types: &[ClientType], steps: &[f64], corrected: bool, most: StepCount) -> Self {
        let (d, doublings) = (types[0].field.len(), most.doublings());
        let powers = |kind| TypePowers::new(kind, steps, corrected, doublings);
        let types: Vec<TypePowers> = types.par_iter().map(powers).collect();
        let pair = |(g, h): (usize, usize)| {
            let products = Products { n: types[g].means[0][0].rows(), same: g == h };
            let maps = types[g].means[0].iter().zip(&types[h].means[0]);
            PairPowers {
                types: (g, h),
                maps: maps.map(|(a, b)| products.mapped_by(a, b)).collect(),
            }
        };
        let pairs = match most {
            StepCount::Fixed(_) => Vec::new(),
            StepCount::Geometric(_) => run_pairs(types.len()).map(pair).collect(),
        };
        Self { d, corrected, types, pairs }
    }

    /// The moments of each type after so many local steps, where w = v / H with H the mean of
    /// `count`, and the covariances between clients.
    pub fn after(&self, count: StepCount) -> (Vec<LocalMoments>, Vec<CommonNoise>) {
        let (mut all, mut common) = match count {
            StepCount::Fixed(count) => {
                (self.types.iter().map(|t| t.after(self.d, count)).collect(), Vec::new())
            }
            StepCount::Geometric(mean) => self.geometric(1.0 / mean as f64),
        };
        if self.corrected {
            let factor = 1.0 / count.mean() as f64;
            all.iter_mut().for_each(|moments: &mut LocalMoments| moments.rescale(self.d, factor));
            for CommonNoise { types: (g, h), noise } in &mut common {
                rescale(noise, Products { n: 2 * self.d + 1, same: g == h }, self.d, factor);
            }
        }
        (all, common)
    }

    /// The moments of one run after a geometric number of steps.
    fn geometric(&self, p: f64) -> (Vec<LocalMoments>, Vec<CommonNoise>) {
        let d = self.d;
        let mut all: Vec<LocalMoments> = Vec::new();
        for powers in &self.types {
            let n = powers.means[0][0].rows();
            let means: Vec<Mat<f64>> =
                powers.means[0].iter().map(|m| Mat::from_fn(n, n, |i, j| m[(i, j)])).collect();
            let end = geometric_mean(&means, &(0..d).collect::<Vec<_>>(), p);
            let own =
                geometric_mean(&powers.squares[0], &end_rows(Products { n, same: true }, d), p);
            let ends = vec![Matrix::from_fn(d, n, |i, j| end[(i, j)])];
            all.push(LocalMoments { ends, noise: vec![own] });
        }
        let mut common = Vec::new();
        for PairPowers { types: (g, h), maps } in &self.pairs {
            let (g, h) = (*g, *h);
            let products = Products { n: all[g].ends[0].cols(), same: g == h };
            let both = geometric_mean(maps, &end_rows(products, d), p);
            if g == h {
                all[g].noise[0] -= &both;
            }
            let noise = both - products.mapped_by(&all[g].ends[0], &all[h].ends[0]);
            common.push(CommonNoise { types: (g, h), noise });
        }
        (all, common)
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

impl LocalMoments {
    /// Replaces w by v with w = `factor` v.
    fn rescale(&mut self, d: usize, factor: f64) {
        let scale = |i: usize| if i > d { factor } else { 1.0 };
        for end in &mut self.ends {
            *end = Matrix::from_fn(d, end.cols(), |i, j| scale(j) * end[(i, j)]);
        }
        for ((r, q), noise) in run_pairs(self.ends.len()).zip(&mut self.noise) {
            rescale(noise, Products { n: 2 * d + 1, same: r == q }, d, factor);
        }
    }
}
