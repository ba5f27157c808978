//! A round as a linear map of the moments of the types' means and of their clients' deviations.
//!
//! The clients of a type are exchangeable. With v = γH(ξ − ξ*), the mean v̄_g of a type and the
//! deviations of its clients from it are uncorrelated, so the state of a run is the second
//! moment U of u = (x, v̄_1, …, v̄_{G−1}, 1) with x = θ − θ*, and the covariance D_g of the
//! deviation of one client of each type. Σ_c ξ_c = 0 gives v̄_G and is built in: the state has no
//! direction in which Σ_c ξ_c differs from 0, along which rounding errors would never decay. Two
//! runs r and q on the same draws have E u_r u_qᵀ, so that the map falls into one block for
//! each pair of runs.

use super::local::{CommonNoise, LocalNoise, run_pairs};
use super::means::RoundMeans;
use super::products::{Products, product};
use crate::linalg::Matrix;
use faer::{Mat, Scale};

/// The means of a round, and what its noise adds to them, for any number of clients.
pub struct RoundMoments {
    /// The means.
    pub means: RoundMeans,
    /// The covariance of a client's end given its begin as a map of U, by type and pair of runs.
    noise: Vec<Vec<Mat<f64>>>,
    /// The covariance of the ends of two clients as a map of U, with their types.
    common: Vec<CommonNoise>,
    /// How the clients' deviations from the means of their types evolve, by type and pair of
    /// runs; empty without variates.
    deviations: Vec<Vec<DeviationMap>>,
}

/// How the deviation of a client from the mean of its type evolves.
struct DeviationMap {
    /// D after from D before without the noise.
    kept: Mat<f64>,
    /// The covariance of the client's end as a map of D.
    noise: Mat<f64>,
}

/// The block of a round's map for a pair of runs, with a number of clients.
pub struct PairMap {
    /// The weight of the pair in E‖θ̂ − θ*‖².
    pub weight: f64,
    /// The map, with the moments U and then those of D_g for each type of several clients.
    pub map: Mat<f64>,
    /// The coordinates of E x_i x'_i.
    pub trace: Vec<usize>,
    /// The coordinate of E 1·1.
    pub one: usize,
    /// U and each D_g with its first coordinate.
    pub blocks: Vec<(Products, usize)>,
}

impl RoundMoments {
    /// The round of these means, whose local steps have this noise and whose oracle calls are
    /// means of `batch`. Only rounds without variates have batches.
    pub fn new(means: RoundMeans, noise: &LocalNoise, batch: u64) -> Self {
        let (types, scale) = (means.proportions.len(), Scale(1.0 / batch as f64));
        let pairs = || run_pairs(means.weights.len()).enumerate();
        let noise_of = |g: usize| {
            let of_pair = |(i, (r, q))| from_u(&means, &noise.own[g][i], (g, g), r == q) * scale;
            pairs().map(of_pair).collect()
        };
        let deviations_of = |g: usize| {
            let common = noise.common.iter().find(|common| common.types == (g, g));
            let of_pair = |(i, (r, q)): (usize, (usize, usize))| {
                let ends = (&means.ends[g][r], &means.ends[g][q]);
                DeviationMap::new(ends, &noise.own[g][i], r == q, common)
            };
            pairs().map(of_pair).collect()
        };
        let common_of = |common: &CommonNoise| {
            let noise = from_u(&means, &common.noise, common.types, true);
            CommonNoise { types: common.types, noise }
        };
        let has_variates = means.starts[0].rows() > means.dim() + 1;
        Self {
            noise: (0..types).map(noise_of).collect(),
            common: noise.common.iter().map(common_of).collect(),
            deviations: (0..if has_variates { types } else { 0 }).map(deviations_of).collect(),
            means,
        }
    }

    /// N tr(Z V) with V the covariance that the clients' own noise adds to u without its last
    /// entry, where the moments U of a pair of runs are `at`.
    pub fn noise_effect(&self, pair: usize, same: bool, at: &[f64], z: &Matrix) -> f64 {
        let d = self.means.dim();
        let own = Products { n: d, same };
        let at = Mat::from_fn(at.len(), 1, |i, _| at[i]);
        let mut effect = 0.0;
        for (g, proportion) in self.means.proportions.iter().enumerate() {
            let noise = product(self.noise[g][pair].as_ref(), at.as_ref());
            let shares = self.means.shares(g);
            let n = shares.len() * d;
            for (i, j) in (Products { n, same: false }).entries() {
                let factor = shares[i / d] * shares[j / d] / proportion;
                effect += factor * z[(i, j)] * noise[(own.index(i % d, j % d), 0)];
            }
        }
        effect
    }

    /// The maps for N clients, one for each pair of runs.
    pub fn with_clients(&self, clients: u64) -> Vec<PairMap> {
        let pairs = run_pairs(self.means.weights.len()).enumerate();
        pairs.map(|(pair, runs)| self.pair_map(pair, runs, clients as f64)).collect()
    }

    fn pair_map(&self, pair: usize, (r, q): (usize, usize), clients: f64) -> PairMap {
        let (d, same) = (self.means.dim(), r == q);
        let u = Products { n: self.means.maps[r].rows(), same };
        let own = Products { n: d, same };
        let counts: Vec<f64> =
            self.means.proportions.iter().map(|p| libm::round(p * clients)).collect();
        let varied = (0..self.deviations.len()).filter(|&g| counts[g] > 1.0);
        let varied: Vec<usize> = varied.collect();
        let begin = |i: usize| u.len() + i * own.len();
        let mut map = Mat::zeros(begin(varied.len()), begin(varied.len()));
        map.submatrix_mut(0, 0, u.len(), u.len())
            .copy_from(u.mapped_by(&self.means.maps[r], &self.means.maps[q]));
        for common in &self.common {
            let (g, h) = common.types;
            self.add_noise(&mut map, u, 0, &common.noise, (g, h), 1.0);
        }
        for (g, count) in counts.iter().enumerate() {
            self.add_noise(&mut map, u, 0, &self.noise[g][pair], (g, g), 1.0 / count);
        }
        for (i, &g) in varied.iter().enumerate() {
            let (deviation, at, share) = (&self.deviations[g][pair], begin(i), 1.0 / counts[g]);
            self.add_noise(&mut map, u, at, &deviation.noise, (g, g), share);
            let rest = Scale(1.0 - share);
            map.submatrix_mut(at, 0, own.len(), u.len()).copy_from(&self.noise[g][pair] * rest);
            map.submatrix_mut(at, at, own.len(), own.len())
                .copy_from(&deviation.kept + &deviation.noise * rest);
        }
        let weight = self.means.weights[r] * self.means.weights[q] * if same { 1.0 } else { 2.0 };
        let trace = (0..d).map(|i| u.index(i, i)).collect();
        let blocks = std::iter::once((u, 0)).chain((0..varied.len()).map(|i| (own, begin(i))));
        PairMap { weight, map, trace, one: u.index(u.n - 1, u.n - 1), blocks: blocks.collect() }
    }

    /// Adds to U the covariance `factor` · `noise` of the mean ends of types g and h, a map of
    /// the coordinates from `column` on.
    fn add_noise(
        &self,
        map: &mut Mat<f64>,
        u: Products,
        column: usize,
        noise: &Mat<f64>,
        (g, h): (usize, usize),
        factor: f64,
    ) {
        let d = self.means.dim();
        let (a, b) = (self.means.shares(g), self.means.shares(h));
        let end = Products { n: d, same: u.same && g == h };
        // Rows of the map and of the noise, with their factors.
        let mut terms = Vec::new();
        for (i, j) in u.entries().filter(|&(i, j)| i + 1 < u.n && j + 1 < u.n) {
            let (row, from) = (u.index(i, j), end.index(i % d, j % d));
            terms.push((row, from, factor * a[i / d] * b[j / d]));
            if g != h {
                terms.push((row, end.index(j % d, i % d), factor * b[i / d] * a[j / d]));
            }
        }
        for k in 0..noise.ncols() {
            let from = noise.col(k);
            let mut to = map.col_mut(column + k);
            for &(row, entry, factor) in &terms {
                to[row] += factor * from[entry];
            }
        }
    }
}

/// A map of E y_g y_hᵀ as a map of U.
fn from_u(means: &RoundMeans, noise: &Mat<f64>, (g, h): (usize, usize), same: bool) -> Mat<f64> {
    let (a, b) = (&means.starts[g], &means.starts[h]);
    let u = Products { n: a.cols(), same };
    if g == h || !same {
        return product(noise.as_ref(), u.mapped_by(a, b).as_ref());
    }
    // Of clients of two types the covariance is not symmetric, but U is.
    let full = Products { same: false, ..u };
    let map = product(noise.as_ref(), full.mapped_by(a, b).as_ref());
    let entries: Vec<(usize, usize)> = u.entries().collect();
    Mat::from_fn(map.nrows(), entries.len(), |row, column| {
        let (k, l) = entries[column];
        let other = if k == l { 0.0 } else { map[(row, full.index(l, k))] };
        map[(row, full.index(k, l))] + other
    })
}

impl DeviationMap {
    /// Of a client whose local steps have these ends and this noise in two runs, or in one given
    /// twice.
    fn new(
        (a, b): (&Matrix, &Matrix),
        noise: &Mat<f64>,
        same: bool,
        common: Option<&CommonNoise>,
    ) -> Self {
        let d = a.rows();
        let (own, all) = (Products { n: d, same }, Products { n: 2 * d + 1, same });
        let columns: Vec<usize> =
            own.entries().map(|(i, j)| all.index(d + 1 + i, d + 1 + j)).collect();
        let of_variates =
            |map: &Mat<f64>| Mat::from_fn(map.nrows(), columns.len(), |i, j| map[(i, columns[j])]);
        // The client's end minus the mean of all ends is added to v.
        let factor = |end: &Matrix| {
            Matrix::from_fn(d, d, |i, j| f64::from(u8::from(i == j)) + end[(i, d + 1 + j)])
        };
        let mut kept = own.mapped_by(&factor(a), &factor(b));
        if let Some(common) = common {
            kept += of_variates(&common.noise);
        }
        Self { kept, noise: of_variates(noise) }
    }
}
