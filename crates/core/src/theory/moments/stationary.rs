//! Moments at stationarity: the fixed point of the round's linear map.

use super::averages::AverageMoments;
use super::size::{DIRECT, KRYLOV, MomentSizes};
use super::{CovarianceBlocks, ExactMoments, Moments};
use crate::kernel::{axpy, dot};
use crate::linalg::{Matrix, solve};

/// The most restarts of GMRES.
const RESTARTS: usize = 40;

impl ExactMoments<'_> {
    /// The stationary state; `None` if none is found.
    fn stationary_state(&self) -> Option<super::MomentState> {
        let begin = self.initial_state(self.facts.optimum());
        let start = begin.numbers();
        // The map is affine: x ← B x + c.
        let constant = self.consistent_round(&begin.with(1.0, &vec![0.0; start.len()])).numbers();
        let map = |x: &[f64]| self.consistent_round(&begin.with(0.0, x)).numbers();
        let found = if start.len() <= DIRECT {
            let mut system = Matrix::identity(start.len());
            let mut unit = vec![0.0; start.len()];
            for j in 0..start.len() {
                unit[j] = 1.0;
                for (i, x) in map(&unit).into_iter().enumerate() {
                    system[(i, j)] -= x;
                }
                unit[j] = 0.0;
            }
            solve(&system, &constant).ok()?
        } else {
            let restarts = MomentSizes::new(self.facts, self.model).restarts().min(RESTARTS);
            gmres(&start, &constant, restarts, map)?
        };
        let state = begin.with(1.0, &found);
        let size = state.s.rows();
        let sound = (0..size).all(|i| state.s[(i, i)] >= 0.0 && state.s[(i, i)].is_finite());
        sound.then_some(state)
    }

    /// The state after a round, with c̄ replaced by the mean of the variates, which it
    /// equals in every run. The round's map alone preserves their difference, so it has
    /// further fixed points.
    pub(super) fn consistent_round(&self, state: &super::MomentState) -> super::MomentState {
        let mut state = self.round(state, None).0;
        if self.model.coin.is_some() && state.client_length() > 0 {
            return centred(state, self.type_of.len() as f64);
        }
        let (d, n, types) = (self.layout.d, self.type_of.len() as f64, self.types.len());
        for (mean, own) in self.layout.mean.iter().zip(&self.layout.own) {
            let (Some(mean), Some(own)) = (*mean, *own) else { continue };
            for g in 0..types {
                for i in 0..d {
                    for j in 0..state.client_length() {
                        let mut sum = state.weights[g] * state.p[g][(own + i, j)];
                        for h in 0..types {
                            let others = state.others(g, h) * state.weights[h];
                            sum += others * state.pair(h, g)[(own + i, j)];
                        }
                        state.x[g][(mean + i, j)] = sum / n;
                    }
                }
            }
        }
        for (mean, own) in self.layout.mean.iter().zip(&self.layout.own) {
            let (Some(mean), Some(own)) = (*mean, *own) else { continue };
            for i in 0..d {
                for j in 0..state.s.rows() {
                    let sum = (0..types)
                        .fold(0.0, |sum, g| sum + state.weight(g) * state.x[g][(j, own + i)]);
                    state.s[(mean + i, j)] = sum / n;
                    state.s[(j, mean + i)] = sum / n;
                }
            }
        }
        state
    }

    /// The moments at stationarity, and the covariance blocks of the first run; `None` if
    /// there is no stationary distribution with second moments, or none is found.
    pub fn stationary(&self) -> Option<(Moments, CovarianceBlocks)> {
        let state = self.stationary_state()?;
        let clients = self.clients_error(&state);
        let averages = AverageMoments::new(self, &state);
        let mut moments = self.moments(&state, &averages, u64::MAX, clients);
        moments.sq_error_average = f64::NAN;
        Some((moments, self.blocks(&state)))
    }

    fn blocks(&self, state: &super::MomentState) -> CovarianceBlocks {
        let d = self.layout.d;
        let e = self.layout.e[0];
        let theta = Matrix::from_fn(d, d, |i, j| state.s[(e + i, e + j)]);
        let Some(own) = self.layout.own[0] else {
            return CovarianceBlocks {
                theta,
                theta_variate: vec![],
                variate: vec![],
                variate_pair: vec![],
            };
        };
        let mean = self.layout.mean[0];
        // ξ_c − ξ_c* = c̄ − (c_c − F̄_c(θ*)).
        let with_mean = |row: usize, j: usize| mean.map_or(0.0, |mean| state.s[(row, mean + j)]);
        let n = self.type_of.len();
        let theta_variate = |c: usize| {
            let g = self.type_of[c];
            Matrix::from_fn(d, d, |i, j| with_mean(e + i, j) - state.x[g][(e + i, own + j)])
        };
        let mixed =
            |g: usize, i: usize, j: usize| mean.map_or(0.0, |mean| state.x[g][(mean + i, own + j)]);
        let product = |c: usize, other: usize| {
            let (g, h) = (self.type_of[c], self.type_of[other]);
            let block = if c == other { &state.p[g] } else { state.pair(g, h) };
            Matrix::from_fn(d, d, |i, j| {
                let means = mean.map_or(0.0, |mean| state.s[(mean + i, mean + j)]);
                means - mixed(h, i, j) - mixed(g, j, i) + block[(own + i, own + j)]
            })
        };
        CovarianceBlocks {
            theta,
            theta_variate: (0..n).map(theta_variate).collect(),
            variate: (0..n).map(|c| product(c, c)).collect(),
            variate_pair: (0..n).map(|c| product(c, (c + 1) % n)).collect(),
        }
    }
}

/// The state with the mean of the variates subtracted from each of them. The mean is 0
/// in every run; under a coin there is no c̄.
fn centred(mut state: super::MomentState, n: f64) -> super::MomentState {
    let types = state.types();
    // E v v̄ᵀ of each type, E v̄ v̄ᵀ and E s v̄ᵀ.
    let with_mean = state.with_mean(|g| state.p[g].clone(), |g, h| state.pair(g, h).clone());
    let mut square = Matrix::zeros(state.client_length(), state.client_length());
    let mut cross = Matrix::zeros(state.s.rows(), state.client_length());
    for (g, (with_mean, x)) in with_mean.iter().zip(&state.x).enumerate() {
        square.add(state.weight(g) / n, with_mean);
        cross.add(state.weight(g) / n, x);
    }
    let apart = |a: &Matrix, g: usize, h: usize| {
        a.plus(-1.0, &with_mean[g]).plus(-1.0, &with_mean[h].transpose()).plus(1.0, &square)
    };
    for g in 0..types {
        state.x[g].add(-1.0, &cross);
        state.p[g] = apart(&state.p[g], g, g);
        for h in 0..types {
            if state.others(g, h) > 0.0 {
                state.q[g * types + h] = apart(state.pair(g, h), g, h);
            }
        }
    }
    state
}

/// x with x = B x + c, by GMRES from `start` with at most `restarts` restarts; `None` if
/// the residual does not shrink to rounding error.
pub fn gmres(
    start: &[f64],
    constant: &[f64],
    restarts: usize,
    map: impl Fn(&[f64]) -> Vec<f64>,
) -> Option<Vec<f64>> {
    let norm = |x: &[f64]| libm::sqrt(dot(x, x));
    let mut x = start.to_vec();
    let residual = |x: &[f64]| -> Vec<f64> {
        let mapped = map(x);
        (0..x.len()).map(|i| constant[i] + mapped[i] - x[i]).collect()
    };
    let mut r = residual(&x);
    let scale = norm(constant).max(f64::MIN_POSITIVE);
    for _ in 0..restarts {
        let size = norm(&r);
        if !size.is_finite() {
            return None;
        }
        if size <= 1e-14 * scale {
            return Some(x);
        }
        // Arnoldi on I − B, orthogonalised twice.
        let mut basis = vec![r.iter().map(|v| v / size).collect::<Vec<f64>>()];
        let mut hessenberg: Vec<Vec<f64>> = Vec::new();
        for _ in 0..KRYLOV {
            let last = &basis[basis.len() - 1];
            let mapped = map(last);
            let mut w: Vec<f64> = (0..last.len()).map(|i| last[i] - mapped[i]).collect();
            let before = norm(&w);
            let mut column = vec![0.0; basis.len() + 1];
            for _ in 0..2 {
                for (i, v) in basis.iter().enumerate() {
                    let along = dot(&w, v);
                    column[i] += along;
                    axpy(-along, v, &mut w);
                }
            }
            let left = norm(&w);
            let end = column.len() - 1;
            column[end] = left;
            hessenberg.push(column);
            if left <= 1e-13 * before {
                break;
            }
            basis.push(w.iter().map(|v| v / left).collect());
        }
        let weights = least_squares(&hessenberg, size);
        for (weight, v) in weights.iter().zip(&basis) {
            axpy(*weight, v, &mut x);
        }
        r = residual(&x);
    }
    (norm(&r) <= 1e-9 * scale).then_some(x)
}

/// y that minimises ‖size e₁ − H y‖, H upper Hessenberg by columns, by Givens
/// rotations.
fn least_squares(columns: &[Vec<f64>], size: f64) -> Vec<f64> {
    let k = columns.len();
    let mut r: Vec<Vec<f64>> = columns.to_vec();
    let mut rhs = vec![0.0; k + 1];
    rhs[0] = size;
    let mut turns: Vec<(f64, f64)> = Vec::new();
    for j in 0..k {
        for (i, (c, s)) in turns.iter().enumerate() {
            let (a, b) = (r[j][i], r[j][i + 1]);
            (r[j][i], r[j][i + 1]) = (c * a + s * b, c * b - s * a);
        }
        let (a, b) = (r[j][j], r[j][j + 1]);
        let length = libm::sqrt(a * a + b * b);
        let (c, s) = if length > 0.0 { (a / length, b / length) } else { (1.0, 0.0) };
        r[j][j] = length;
        let (a, b) = (rhs[j], rhs[j + 1]);
        (rhs[j], rhs[j + 1]) = (c * a + s * b, c * b - s * a);
        turns.push((c, s));
    }
    let mut y = vec![0.0; k];
    for i in (0..k).rev() {
        let sum = (i + 1..k).fold(rhs[i], |sum, j| sum - r[j][i] * y[j]);
        y[i] = if r[i][i] != 0.0 { sum / r[i][i] } else { 0.0 };
    }
    y
}
