//! A round as a linear map of the moments of the types' means and of their clients' deviations.
//!
//! The clients of a type are exchangeable. With v = γH(ξ − ξ*), the mean v̄_g of a type and the
//! deviations of its clients from it are uncorrelated, so the state of a run is the second
//! moment U of u = (x, v̄_1, …, v̄_{G−1}, 1) with x = θ − θ*, and the covariance D_g of the
//! deviation of one client of each type. Σ_c ξ_c = 0 gives v̄_G and is built in: the state has no
//! direction in which Σ_c ξ_c differs from 0, along which rounding errors would never decay. Two
//! runs r and q on the same draws have E u_r u_qᵀ, so that the map falls into one block for
//! each pair of runs.

use super::local::{ClientType, CommonNoise, LocalMoments, run_pairs};
use super::products::{Products, product};
use crate::linalg::Matrix;
use faer::{Mat, Scale};

/// The means of a round, and what its noise adds to them, for any number of clients.
pub struct RoundMoments {
    d: usize,
    proportions: Vec<f64>,
    weights: &'static [f64],
    /// u after from u before, for each run.
    means: Vec<Matrix>,
    /// u before the first round with x = 0, for each run.
    begins: Vec<Vec<f64>>,
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

/// The runs of a method.
pub struct Runs<'a> {
    /// The weights of their estimates.
    pub weights: &'static [f64],
    /// γH of each.
    pub lengths: &'a [f64],
    /// Whether clients have variates.
    pub corrected: bool,
    /// The oracle calls whose mean is one call of a local step.
    pub batch: u64,
}

/// y = (x, 1, v̄_g), or (x, 1) without variates, from u.
fn begin_of_type(proportions: &[f64], d: usize, corrected: bool, g: usize) -> Matrix {
    let types = proportions.len();
    if !corrected {
        return Matrix::identity(d + 1);
    }
    let n = types * d + 1;
    let last = g + 1 == types;
    Matrix::from_fn(2 * d + 1, n, |i, j| match i {
        _ if i < d => f64::from(u8::from(i == j)),
        _ if i == d => f64::from(u8::from(j + 1 == n)),
        _ if j < d || j + 1 == n || (i - d - 1) != j % d => 0.0,
        _ if last => -proportions[j / d - 1] / proportions[g],
        _ => f64::from(u8::from(j / d == g + 1)),
    })
}

impl RoundMoments {
    /// The round whose local steps have these moments.
    pub fn new(
        types: &[ClientType],
        (local, common): (&[LocalMoments], &[CommonNoise]),
        runs: &Runs<'_>,
    ) -> Self {
        let (d, corrected) = (types[0].field.len(), runs.corrected);
        let scale = Scale(1.0 / runs.batch as f64);
        let proportions: Vec<f64> = types.iter().map(|t| t.proportion).collect();
        let starts: Vec<Matrix> =
            (0..types.len()).map(|g| begin_of_type(&proportions, d, corrected, g)).collect();
        let from_u = |noise: &Mat<f64>, (g, h): (usize, usize), same: bool| {
            let u = Products { n: starts[g].cols(), same };
            if g == h || !same {
                return product(noise.as_ref(), u.mapped_by(&starts[g], &starts[h]).as_ref());
            }
            // Clients of two types: the covariance is not symmetric, but U is.
            let full = Products { same: false, ..u };
            let map = product(noise.as_ref(), full.mapped_by(&starts[g], &starts[h]).as_ref());
            let pairs: Vec<(usize, usize)> = u.entries().collect();
            Mat::from_fn(map.nrows(), pairs.len(), |row, column| {
                let (k, l) = pairs[column];
                let other = if k == l { 0.0 } else { map[(row, full.index(l, k))] };
                map[(row, full.index(k, l))] + other
            })
        };
        let pairs = || run_pairs(runs.weights.len()).enumerate();
        let noise_of = |g: usize| {
            pairs().map(|(i, (r, q))| from_u(&local[g].noise[i], (g, g), r == q) * scale).collect()
        };
        let common_from_u = |common: &CommonNoise| CommonNoise {
            types: common.types,
            noise: from_u(&common.noise, common.types, true),
        };
        let deviations_of = |g: usize| {
            let common = common.iter().find(|common| common.types == (g, g));
            pairs().map(|(i, pair)| DeviationMap::new(&local[g], i, pair, common)).collect()
        };
        let types_with_variates = if corrected { types.len() } else { 0 };
        Self {
            d,
            weights: runs.weights,
            means: (0..runs.weights.len()).map(|r| mean(local, &starts, &proportions, r)).collect(),
            begins: runs.lengths.iter().map(|length| begin(types, *length, corrected)).collect(),
            noise: (0..types.len()).map(noise_of).collect(),
            common: common.iter().map(common_from_u).collect(),
            deviations: (0..types_with_variates).map(deviations_of).collect(),
            proportions,
        }
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.d
    }

    /// The weights of the runs' estimates.
    pub fn weights(&self) -> &'static [f64] {
        self.weights
    }

    /// E u after a round from u before, for each run.
    pub fn means(&self) -> &[Matrix] {
        &self.means
    }

    /// u before the first round with x = 0, for each run.
    pub fn begins(&self) -> &[Vec<f64>] {
        &self.begins
    }

    /// N tr(Z V) with V the covariance that the clients' own noise adds to u without its last
    /// entry, where the moments U of a pair of runs are `at`.
    pub fn noise_effect(&self, pair: usize, same: bool, at: &[f64], z: &Matrix) -> f64 {
        let d = self.d;
        let own = Products { n: d, same };
        let at = Mat::from_fn(at.len(), 1, |i, _| at[i]);
        let mut effect = 0.0;
        for (g, proportion) in self.proportions.iter().enumerate() {
            let noise = product(self.noise[g][pair].as_ref(), at.as_ref());
            let shares = self.shares(g);
            let n = shares.len() * d;
            for (i, j) in (Products { n, same: false }).entries() {
                let factor = shares[i / d] * shares[j / d] / proportion;
                effect += factor * z[(i, j)] * noise[(own.index(i % d, j % d), 0)];
            }
        }
        effect
    }

    /// The share of the mean end of type g in each block of d entries of u.
    fn shares(&self, g: usize) -> Vec<f64> {
        let blocks = (self.means[0].rows() - 1) / self.d;
        let share = |block: usize| match block {
            0 => self.proportions[g],
            _ => f64::from(u8::from(block == g + 1)) - self.proportions[g],
        };
        (0..blocks).map(share).collect()
    }

    /// The maps for N clients, one for each pair of runs.
    pub fn with_clients(&self, clients: u64) -> Vec<PairMap> {
        let pairs = run_pairs(self.weights.len()).enumerate();
        pairs.map(|(pair, runs)| self.pair_map(pair, runs, clients as f64)).collect()
    }

    fn pair_map(&self, pair: usize, (r, q): (usize, usize), clients: f64) -> PairMap {
        let (d, same) = (self.d, r == q);
        let u = Products { n: self.means[r].rows(), same };
        let own = Products { n: d, same };
        let counts: Vec<f64> = self.proportions.iter().map(|p| libm::round(p * clients)).collect();
        let varied = (0..self.deviations.len()).filter(|&g| counts[g] > 1.0);
        let varied: Vec<usize> = varied.collect();
        let begin = |i: usize| u.len() + i * own.len();
        let mut map = Mat::zeros(begin(varied.len()), begin(varied.len()));
        map.submatrix_mut(0, 0, u.len(), u.len())
            .copy_from(u.mapped_by(&self.means[r], &self.means[q]));
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
        let weight = self.weights[r] * self.weights[q] * if same { 1.0 } else { 2.0 };
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
        let d = self.d;
        let (a, b) = (self.shares(g), self.shares(h));
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

impl DeviationMap {
    /// Of a client whose local steps have these moments, in pair number `pair` of runs.
    fn new(
        local: &LocalMoments,
        pair: usize,
        (r, q): (usize, usize),
        common: Option<&CommonNoise>,
    ) -> Self {
        let d = local.ends[0].rows();
        let (own, all) = (Products { n: d, same: r == q }, Products { n: 2 * d + 1, same: r == q });
        let columns: Vec<usize> =
            own.entries().map(|(i, j)| all.index(d + 1 + i, d + 1 + j)).collect();
        let of_variates =
            |map: &Mat<f64>| Mat::from_fn(map.nrows(), columns.len(), |i, j| map[(i, columns[j])]);
        // The client's end minus the mean of all ends is added to v.
        let factor = |end: &Matrix| {
            Matrix::from_fn(d, d, |i, j| f64::from(u8::from(i == j)) + end[(i, d + 1 + j)])
        };
        let mut kept = own.mapped_by(&factor(&local.ends[r]), &factor(&local.ends[q]));
        if let Some(common) = common {
            kept += of_variates(&common.noise);
        }
        Self { kept, noise: of_variates(&local.noise[pair]) }
    }
}

/// u after from u before.
fn mean(local: &[LocalMoments], starts: &[Matrix], proportions: &[f64], run: usize) -> Matrix {
    let n = starts[0].cols();
    let ends: Vec<Matrix> =
        local.iter().zip(starts).map(|(local, start)| local.ends[run].times(start)).collect();
    let d = ends[0].rows();
    let mut all = Matrix::zeros(d, n);
    ends.iter().zip(proportions).for_each(|(end, share)| all.add(*share, end));
    Matrix::from_fn(n, n, |i, j| match i / d {
        0 => all[(i, j)],
        _ if i + 1 == n => f64::from(u8::from(i == j)),
        g => f64::from(u8::from(i == j)) + ends[g - 1][(i % d, j)] - all[(i % d, j)],
    })
}

/// u with x = 0 and ξ = 0, where γH = `length`.
fn begin(types: &[ClientType], length: f64, corrected: bool) -> Vec<f64> {
    let mut u = vec![0.0; types[0].field.len()];
    if corrected {
        let last = types.len() - 1;
        u.extend(types[..last].iter().flat_map(|t| t.field.iter().map(|f| length * f)));
    }
    u.push(1.0);
    u
}
