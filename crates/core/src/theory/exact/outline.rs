//! The means of runs of local steps and averages, and the least noise around their limit, from the clients' local steps
//! alone: lower bounds of errors, for a small part of what preparing a program takes. A search excludes most settings
//! by them.
//!
//! The rounds are THEORY (6.6): in run r, whose estimate has the error e_r and whose clients have the corrections
//! ξ_k, client k goes from e_r to e_k in h local steps of size γ, whose mean is the map Π_h, and ζ_k = ξ_k + F̄_k(θ*)
//! changes by (e_k − Σ_j π_j e_j)/(γh). With the server step γ_g
//!
//! ```text
//! e_k = Π_h (e_r, 1, ζ_k), or Π_h (e_r, 1) without corrections;   e_r ← (1 − γ_g) e_r + γ_g Σ_k π_k e_k
//! ```

use super::known::{KnownSteps, OneStep};
use super::linear_rounds::{ErrorParts, LinearRounds};
use super::local::{Drive, Steps};
use super::squares::{MeanRounds, StartError};
use super::types::Type;
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::round_program::LocalRuns;
use std::sync::Arc;

/// The rounds of several runs of local steps without their program, as THEORY (6.6) describes them. All clients take
/// the same local steps.
pub struct Outline {
    /// The means of u = (1, e_1, …, ζ_1, …): e_r of each run, and ζ_g of each run and type but the last, which
    /// follows from the others because Σ_k π_k ζ_k = 0.
    pub means: MeanRounds,
    layout: OutlineLayout,
    runs: LocalRuns,
    types: Vec<Type>,
    /// The local steps of each type and each pair of runs, in the order of [`OutlineLayout::pairs`].
    steps: Vec<Vec<Arc<Steps>>>,
    /// The estimate's error Σ_r weight_r e_r from u, d rows.
    result: Matrix,
    /// F̄_g(θ*) of each type whose corrections are among the numbers.
    fields: Vec<Vec<f64>>,
}

/// The order of the numbers of u: the number 1, e_r of each run, and ζ_g of each run and type.
#[derive(Clone, Copy)]
struct OutlineLayout {
    d: usize,
    runs: usize,
    /// How many types have their corrections among the numbers.
    corrected: usize,
}

/// What drives every client in a run: the local steps of client 0, which all clients take.
fn drive(runs: &LocalRuns, run: usize) -> Drive {
    Drive { update: runs.runs[run].updates.of_client(0), pulled: runs.is_corrected }
}

impl OutlineLayout {
    /// The length of u.
    fn size(self) -> usize {
        1 + self.runs * self.d * (1 + self.corrected)
    }

    /// All pairs (r, s) of runs with s ≤ r.
    fn pairs(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.runs).flat_map(|r| (0..=r).map(move |s| (r, s)))
    }

    /// The place in u of the first number of e_r.
    fn estimate(self, run: usize) -> usize {
        1 + run * self.d
    }

    /// The place in u of the first number of ζ_g in a run.
    fn correction(self, run: usize, g: usize) -> usize {
        1 + self.d * (self.runs + run * self.corrected + g)
    }
}

/// E‖R x‖² for a vector x of mean 0 and this covariance, where R is the matrix `result`.
fn variance_of(result: &Matrix, covariance: &Matrix) -> f64 {
    result.times(covariance).times_transposed(result).trace()
}

/// The place of a pair of runs among all, in the order of [`OutlineLayout::pairs`]: `second` is at most `first`.
fn pair(first: usize, second: usize) -> usize {
    first * (first + 1) / 2 + second
}

impl Outline {
    /// The outline of runs from this start on a problem whose clients are of these types, which all have equal shares;
    /// `known` is the cache of local steps. The numbers of clients of the types, and with them the variances, are those
    /// of the problem. `None` if second moments of the problem's field do not close.
    pub fn new(
        runs: LocalRuns,
        facts: &dyn Facts,
        types: &[Type],
        start: &StartError,
        known: &KnownSteps,
    ) -> Option<Self> {
        let corrected = if runs.is_corrected { types.len() - 1 } else { 0 };
        let layout = OutlineLayout { d: facts.dim(), runs: runs.runs.len(), corrected };
        let mut steps = Vec::new();
        for of_type in types {
            let mut of_pairs = Vec::new();
            for (r, s) in layout.pairs() {
                let drives = [drive(&runs, r), drive(&runs, s)];
                let client = of_type.first;
                of_pairs.push(known.steps(OneStep { facts, client, drives, same: r == s }).ok()?);
            }
            steps.push(of_pairs);
        }
        let optimum = facts.optimum();
        let fields: Vec<Vec<f64>> =
            types[..corrected].iter().map(|t| facts.field_at_optimum(t.first)).collect();
        // Columns (1, e_1, …, ζ_1, …) of the start: all runs begin at θ_0, and with ξ_k = 0, so that ζ_k = F̄_k(θ*).
        let mut columns = Vec::new();
        for (apart, unit) in start.columns(optimum) {
            let mut column = vec![unit];
            for _ in 0..layout.runs {
                column.extend(&apart);
            }
            for field in (0..layout.runs).flat_map(|_| &fields) {
                column.extend(field.iter().map(|x| unit * x));
            }
            columns.push(column);
        }
        let mut result = Matrix::zeros(layout.d, layout.size());
        for (r, run) in runs.runs.iter().enumerate() {
            (0..layout.d).for_each(|i| result[(i, layout.estimate(r) + i)] = run.weight);
        }
        let means = MeanRounds {
            noiseless: vec![start.mean_square(optimum)],
            columns: Matrix::from_columns(columns.into_iter()),
            means: Matrix::zeros(0, 0),
            ends: Vec::new(),
        };
        let mut new = Self { means, layout, runs, types: types.to_vec(), steps, result, fields };
        new.means.means = new.map();
        new.means.ends = vec![new.result.times(&new.means.means)];
        Some(new)
    }

    /// n_g/N, the share of type g in all clients.
    fn share(&self, g: usize) -> f64 {
        self.types[g].count / self.types.iter().map(|t| t.count).sum::<f64>()
    }

    /// The types h whose ζ_h are in u, each with the factor x_h in ζ_g = Σ_h x_h ζ_h.
    fn correction_of(&self, g: usize) -> Vec<(usize, f64)> {
        if g < self.layout.corrected {
            return vec![(g, 1.0)];
        }
        // The last type, since Σ_h π_h ζ_h = 0.
        (0..self.layout.corrected).map(|h| (h, -self.share(h) / self.share(g))).collect()
    }

    /// 1/(γh) of a run, by which THEORY (6.6) multiplies changes of corrections.
    fn learning_rate(&self, run: usize) -> f64 {
        let update = self.runs.runs[run].updates.of_client(0);
        1.0 / (update.step * update.steps as f64)
    }

    /// e_k of a client of type g after the local steps of a run, as a map of u: Π_h of THEORY (6.6), d rows.
    fn ends_of(&self, run: usize, g: usize) -> Matrix {
        let layout = self.layout;
        let steps = &self.steps[g][pair(run, run)].ends[0];
        let mut ends = Matrix::zeros(layout.d, layout.size());
        let corrections = self.correction_of(g);
        for i in 0..layout.d {
            for j in 0..layout.d {
                ends[(i, layout.estimate(run) + j)] = steps[(i, j)];
                if self.runs.is_corrected {
                    for (h, weight) in &corrections {
                        ends[(i, layout.correction(run, *h) + j)] =
                            weight * steps[(i, layout.d + 1 + j)];
                    }
                }
            }
            ends[(i, 0)] = steps[(i, layout.d)];
        }
        ends
    }

    /// The map of E u over a round, THEORY (6.6), without the noise, whose mean is 0: a square matrix of the order of
    /// u.
    fn map(&self) -> Matrix {
        let layout = self.layout;
        let mut map = Matrix::zeros(layout.size(), layout.size());
        map[(0, 0)] = 1.0;
        for (r, run) in self.runs.runs.iter().enumerate() {
            let ends: Vec<Matrix> = (0..self.types.len()).map(|g| self.ends_of(r, g)).collect();
            let mut mean = Matrix::zeros(layout.d, layout.size());
            ends.iter().enumerate().for_each(|(g, ends)| mean.add(self.share(g), ends));
            for i in 0..layout.d {
                let place = layout.estimate(r) + i;
                map[(place, place)] = 1.0 - run.server_step;
                let to = map.row_mut(place).iter_mut();
                to.zip(mean.row(i)).for_each(|(to, x)| *to += run.server_step * x);
            }
            for (g, i) in (0..layout.corrected).flat_map(|g| (0..layout.d).map(move |i| (g, i))) {
                let place = layout.correction(r, g) + i;
                map[(place, place)] = 1.0;
                let parts = ends[g].row(i).iter().zip(mean.row(i));
                let to = map.row_mut(place).iter_mut();
                to.zip(parts)
                    .for_each(|(to, (end, mean))| *to += self.learning_rate(r) * (end - mean));
            }
        }
        map
    }

    /// A lower bound of the stationary E‖θ_t − θ*‖² as THEORY (6.5), in two parts: the square of the bias, and the
    /// variance that follows from the noise at the stationary mean. The sum of the variance ends early once it is
    /// above `enough(square of the bias)`, so that the variance is then a smaller lower bound. The variance is that of
    /// the problem's own number of clients, and inversely proportional to that number. `None` if there is no stationary
    /// mean, or the sum does not converge.
    pub fn least_stationary(&self, enough: impl Fn(f64) -> f64) -> Option<[f64; 2]> {
        let u = self.means.stationary()?;
        let n = self.layout.size() - 1;
        let result = Matrix::from_fn(self.layout.d, n, |i, j| self.result[(i, j + 1)]);
        let squared_bias = self.result.apply(&u).iter().map(|x| x * x).sum::<f64>();
        let enough_variance = enough(squared_bias);
        let sum = self
            .means
            .accumulated(self.noise_at(&u), |sum| variance_of(&result, sum) > enough_variance)?;
        Some([squared_bias, variance_of(&result, &sum)])
    }

    /// R(m) of THEORY (6.5): the covariance that a round adds to the state, u without the number 1, if the state before
    /// it is the vector u for certain.
    fn noise_at(&self, u: &[f64]) -> Matrix {
        let n = self.layout.size() - 1;
        let mut noise = Matrix::zeros(n, n);
        for g in 0..self.types.len() {
            let enters = self.entry_of_ends(g);
            let of_ends = self.noise_of_ends(g, u);
            noise.add(1.0, &enters.times(&of_ends).times_transposed(&enters));
        }
        noise
    }

    /// The rounds as a linear map with additive noise, THEORY (6.9), from a start at this distance `apart` from θ*, d
    /// numbers. The oracles' noise must be the same at every θ.
    pub fn linear_rounds(&self, apart: &[f64]) -> LinearRounds {
        let layout = self.layout;
        let n = layout.size() - 1;
        let mut start_of_distance = vec![0.0; n];
        for r in 0..layout.runs {
            start_of_distance[layout.estimate(r) - 1..][..layout.d].copy_from_slice(apart);
        }
        let mut start_of_gradients = vec![0.0; n];
        for (r, g) in (0..layout.runs).flat_map(|r| (0..layout.corrected).map(move |g| (r, g))) {
            let to = &mut start_of_gradients[layout.correction(r, g) - 1..][..layout.d];
            to.copy_from_slice(&self.fields[g]);
        }
        // The noise is that at any mean of the state.
        let mut somewhere = vec![0.0; n + 1];
        somewhere[0] = 1.0;
        let map = self.means.linear();
        let constant: Vec<f64> = (1..=n).map(|i| self.means.means[(i, 0)]).collect();
        let noise = self.noise_at(&somewhere);
        let result = Matrix::from_fn(layout.d, n, |i, j| self.result[(i, j + 1)]);
        LinearRounds {
            lead: vec![ErrorParts {
                distance: apart.to_vec(),
                gradients: vec![0.0; layout.d],
                noise: 0.0,
            }],
            start_of_distance,
            start_of_gradients,
            start_noise: None,
            result_constant: result.apply(&constant),
            result_noise: variance_of(&result, &noise),
            result: result.times(&map),
            map,
            constant,
            noise,
        }
    }

    /// The state in which a client of type g begins its local steps in a run, from u: (e_r, 1, ζ_g), or (e_r, 1)
    /// without corrections.
    fn begin(&self, run: usize, g: usize, u: &[f64]) -> Vec<f64> {
        let d = self.layout.d;
        let mut begin = u[self.layout.estimate(run)..][..d].to_vec();
        begin.push(1.0);
        if self.runs.is_corrected {
            let corrections = self.correction_of(g);
            begin.extend((0..d).map(|i| {
                let parts = corrections.iter();
                parts
                    .map(|(h, weight)| weight * u[self.layout.correction(run, *h) + i])
                    .sum::<f64>()
            }));
        }
        begin
    }

    /// The covariance of the means over type g of the ends e_k in all runs, d rows for each run, given u: the noise map
    /// of THEORY (2.6), divided by n_g as in THEORY (3.5).
    fn noise_of_ends(&self, g: usize, u: &[f64]) -> Matrix {
        let d = self.layout.d;
        let width = self.layout.runs * d;
        let mut of_ends = Matrix::zeros(width, width);
        // Runs with draws of their own are not correlated.
        for (r, s) in self.layout.pairs().filter(|(r, s)| r == s || self.runs.is_common) {
            let begins = Matrix::outer(&self.begin(r, g, u), &self.begin(s, g, u));
            let found = self.steps[g][pair(r, s)].noise_from(&begins, 1).into_entries();
            for (i, j) in (0..d).flat_map(|i| (0..d).map(move |j| (i, j))) {
                let x = found[i * d + j] / self.types[g].count;
                of_ends[(r * d + i, s * d + j)] = x;
                of_ends[(s * d + j, r * d + i)] = x;
            }
        }
        of_ends
    }

    /// The matrix by which the means over type g of the ends in all runs, d numbers for each run, enter the next u
    /// without the number 1, by THEORY (6.6).
    fn entry_of_ends(&self, g: usize) -> Matrix {
        let layout = self.layout;
        let d = layout.d;
        let mut enters = Matrix::zeros(layout.size() - 1, layout.runs * d);
        for (r, run) in self.runs.runs.iter().enumerate() {
            for i in 0..d {
                enters[(layout.estimate(r) + i - 1, r * d + i)] = run.server_step * self.share(g);
                for h in 0..layout.corrected {
                    let own = f64::from(u8::from(g == h)) - self.share(g);
                    enters[(layout.correction(r, h) + i - 1, r * d + i)] =
                        own * self.learning_rate(r);
                }
            }
        }
        enters
    }
}
