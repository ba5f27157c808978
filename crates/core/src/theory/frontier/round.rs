//! A round as a linear map of the moments of the types' means and of their clients' deviations.
//!
//! The clients of a type are exchangeable. With v = γH(ξ − ξ*), the mean v̄_g of a type and the
//! deviations of its clients from it are uncorrelated, so the state of a run is the second
//! moment U of u = (x, v̄_1, …, v̄_{G−1}, 1) with x = θ − θ*, and the covariance D_g of the
//! deviations of one client of each type. Σ_c ξ_c = 0 gives v̄_G and is built in: the state has no
//! direction in which Σ_c ξ_c differs from 0, along which rounding errors would never decay. Two
//! runs r and q on the same draws have E u_r u_qᵀ, so that the map falls into one block for
//! each pair of runs.

use super::local::{ClientType, LocalMoments, run_pairs};
use super::products::{Products, product};
use crate::linalg::Matrix;
use faer::Mat;

/// The means of a round, and what its noise adds to them, for any number of clients.
pub struct RoundMoments {
    d: usize,
    corrected: bool,
    proportions: Vec<f64>,
    weights: &'static [f64],
    /// u after from u before, for each run.
    means: Vec<Matrix>,
    /// I + ∂e/∂v of a client, by type and run.
    deviations: Vec<Vec<Matrix>>,
    /// The covariance of a client's end given its begin as a map of U, by type and pair of runs.
    noise: Vec<Vec<Mat<f64>>>,
    /// The same as a map of D.
    own_noise: Vec<Vec<Mat<f64>>>,
    /// u before the first round with x = 0, for each run.
    begin: Vec<Vec<f64>>,
}

/// The block of a round's map for a pair of runs, with a number of clients.
pub struct PairMap {
    /// The weight of the pair in E‖θ̂ − θ*‖².
    pub weight: f64,
    /// The map, with the moments U and then those of D_g for each type of several clients.
    pub map: Mat<f64>,
    /// The coordinates of E x_i x'_i.
    pub trace: Vec<usize>,
    /// The coordinates of E 1·1.
    pub one: usize,
    /// The orders and first coordinates of U and D_g.
    pub blocks: Vec<(Products, usize)>,
}

/// v̄_g, or y = (x, 1, v̄_g), from u.
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
    /// The round whose local steps have these moments, each oracle call the mean of `batch`, and
    /// whose runs have these weights and step sizes times numbers of local steps.
    pub fn new(
        types: &[ClientType],
        local: &[LocalMoments],
        (weights, lengths): (&'static [f64], &[f64]),
        corrected: bool,
        batch: u64,
    ) -> Self {
        let (d, runs) = (types[0].field.len(), weights.len());
        let proportions: Vec<f64> = types.iter().map(|t| t.proportion).collect();
        let starts: Vec<Matrix> =
            (0..types.len()).map(|g| begin_of_type(&proportions, d, corrected, g)).collect();
        let scale = 1.0 / batch as f64;
        let by_pair = |g: usize, map: &dyn Fn(Products, &Mat<f64>) -> Mat<f64>| {
            let pairs = run_pairs(runs).zip(&local[g].noise);
            pairs
                .map(|((r, q), noise)| {
                    map(Products { n: starts[g].rows(), same: r == q }, noise) * faer::Scale(scale)
                })
                .collect::<Vec<_>>()
        };
        let from_means = |products: Products, noise: &Mat<f64>, g: usize| {
            let u = Products { n: starts[g].cols(), same: products.same };
            product(noise.as_ref(), u.mapped_by(&starts[g], &starts[g]).as_ref())
        };
        let from_own = |products: Products, noise: &Mat<f64>| {
            let own = Products { n: d, same: products.same };
            let columns: Vec<usize> =
                own.entries().map(|(i, j)| products.index(d + 1 + i, d + 1 + j)).collect();
            Mat::from_fn(noise.nrows(), columns.len(), |i, j| noise[(i, columns[j])])
        };
        let all = 0..types.len();
        let noise = all.clone().map(|g| by_pair(g, &|p, w| from_means(p, w, g))).collect();
        let own_noise = if corrected {
            all.clone().map(|g| by_pair(g, &from_own)).collect()
        } else {
            Vec::new()
        };
        let deviation = |end: &Matrix| {
            Matrix::from_fn(d, d, |i, j| f64::from(u8::from(i == j)) + end[(i, d + 1 + j)])
        };
        let deviations = if corrected {
            local.iter().map(|l| l.ends.iter().map(deviation).collect()).collect()
        } else {
            Vec::new()
        };
        let means = (0..runs).map(|r| mean(local, &starts, &proportions, d, r)).collect();
        let begin = lengths.iter().map(|length| begin(types, *length, corrected)).collect();
        Self { d, corrected, proportions, weights, means, deviations, noise, own_noise, begin }
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
        &self.begin
    }

    /// N tr(Z V) with V the covariance that a round's noise adds to u without its last entry,
    /// where the moments U of a pair of runs are `at`.
    pub fn noise_effect(&self, pair: usize, same: bool, at: &[f64], z: &Matrix) -> f64 {
        let d = self.d;
        let own = Products { n: d, same };
        let at = Mat::from_fn(at.len(), 1, |i, _| at[i]);
        let mut effect = 0.0;
        for (g, proportion) in self.proportions.iter().enumerate() {
            let (noise, shares) = (product(self.noise[g][pair].as_ref(), at.as_ref()), self.shares(g));
            for (i, j) in (0..shares.len() * d).flat_map(|i| (0..shares.len() * d).map(move |j| (i, j))) {
                let factor = shares[i / d] * shares[j / d] / proportion;
                effect += factor * z[(i, j)] * noise[(own.index(i % d, j % d), 0)];
            }
        }
        effect
    }

    /// The share of a type's mean end in each d-block of u.
    fn shares(&self, g: usize) -> Vec<f64> {
        let blocks = (self.means[0].rows() - 1) / self.d;
        let of = |h: usize| if h == g + 1 { 1.0 } else { 0.0 };
        (0..blocks).map(|h| if h == 0 { self.proportions[g] } else { of(h) - self.proportions[g] }).collect()
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
        let mut blocks = vec![(u, 0)];
        let mut size = u.len();
        let counts: Vec<f64> = self.proportions.iter().map(|p| p * clients).collect();
        let mut own_begin = vec![None; counts.len()];
        for (g, count) in counts.iter().enumerate() {
            if self.corrected && *count > 1.5 {
                own_begin[g] = Some(size);
                blocks.push((own, size));
                size += own.len();
            }
        }
        let mut map = Mat::zeros(size, size);
        map.submatrix_mut(0, 0, u.len(), u.len())
            .copy_from(u.mapped_by(&self.means[r], &self.means[q]));
        for (g, count) in counts.iter().enumerate() {
            let (from_u, shares) = (&self.noise[g][pair], self.shares(g));
            for (b, c) in (0..shares.len()).flat_map(|b| (0..shares.len()).map(move |c| (b, c))) {
                if same && b > c {
                    continue;
                }
                let factor = shares[b] * shares[c] / count;
                for i in 0..d {
                    for j in if same && b == c { i } else { 0 }..d {
                        let (row, from) = (u.index(b * d + i, c * d + j), own.index(i, j));
                        for k in 0..u.len() {
                            map[(row, k)] += factor * from_u[(from, k)];
                        }
                        if let Some(begin) = own_begin[g] {
                            let from_own = &self.own_noise[g][pair];
                            for k in 0..own.len() {
                                map[(row, begin + k)] += factor * from_own[(from, k)];
                            }
                        }
                    }
                }
            }
            let Some(begin) = own_begin[g] else { continue };
            let rest = 1.0 - 1.0 / count;
            let kept = own.mapped_by(&self.deviations[g][r], &self.deviations[g][q]);
            let from_own = &self.own_noise[g][pair];
            for i in 0..own.len() {
                for k in 0..u.len() {
                    map[(begin + i, k)] = rest * from_u[(i, k)];
                }
                for k in 0..own.len() {
                    map[(begin + i, begin + k)] = kept[(i, k)] + rest * from_own[(i, k)];
                }
            }
        }
        let weight = self.weights[r] * self.weights[q] * if same { 1.0 } else { 2.0 };
        let trace = (0..d).map(|i| u.index(i, i)).collect();
        PairMap { weight, map, trace, one: u.index(u.n - 1, u.n - 1), blocks }
    }
}

/// u after from u before.
fn mean(
    local: &[LocalMoments],
    starts: &[Matrix],
    proportions: &[f64],
    d: usize,
    run: usize,
) -> Matrix {
    let n = starts[0].cols();
    let ends: Vec<Matrix> =
        local.iter().zip(starts).map(|(local, start)| local.ends[run].times(start)).collect();
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
