//! Rounds under a coin (H1): a geometric number of local steps that all clients
//! share. Given that number clients are independent, but not without it, so
//! that the moments of a pair are no product of means (EXTRA 1a).

use super::stages::second;
use super::state::{MomentState, Past, picked};
use super::{ExactMoments, trace};
use crate::linalg::Matrix;

impl ExactMoments<'_> {
    /// E y y'ᵀ of a client of type g and another of type h.
    fn coin_pair(
        &self,
        state: &MomentState,
        begins: &[(Matrix, Matrix)],
        (g, h): (usize, usize),
    ) -> Matrix {
        let (a, b) = (&begins[g], &begins[h]);
        let mut out = picked(&a.0, &state.s, &b.0);
        if state.own() > 0 {
            out.add(1.0, &picked(&a.0, &state.x[h], &b.1));
            out.add(1.0, &picked(&a.1, &state.x[g].transpose(), &b.0));
            out.add(1.0, &picked(&a.1, state.pair(g, h), &b.1));
        }
        out
    }

    pub(super) fn coin_clients_error(&self, state: &MomentState) -> f64 {
        let mut sum = 0.0;
        for (g, coin) in self.coins.iter().enumerate() {
            let begin = self.begin(g, 0);
            sum += state.counts[g] * trace(&coin.own(&second(state, g, &begin, &begin)));
        }
        sum / self.facts.clients() as f64
    }

    /// From one communication to the next: θ ← θ̄, ξ_c ← ξ_c + (p/γ)(θ_c − θ̄).
    pub(super) fn coin_round(
        &self,
        state: &MomentState,
        past: Option<&Past>,
    ) -> (MomentState, Option<Past>) {
        let (types, d, n) = (self.types.len(), self.layout.d, self.facts.clients() as f64);
        let rate = self.scheme.coin.unwrap_or(1.0) / self.types[0].work[0].step;
        let begins: Vec<(Matrix, Matrix)> = (0..types).map(|g| self.begin(g, 0)).collect();
        // E of a client's end as a map of s and of its v.
        let ends: Vec<(Matrix, Matrix)> = begins
            .iter()
            .zip(&self.coins)
            .map(|(b, coin)| (coin.end.times(&b.0), coin.end.times(&b.1)))
            .collect();
        let own: Vec<Matrix> = (0..types)
            .map(|g| self.coins[g].own(&second(state, g, &begins[g], &begins[g])))
            .collect();
        let mut pairs = vec![Matrix::zeros(d, d); types * types];
        for g in 0..types {
            for h in g..types {
                if state.others(g, h) > 0.0 {
                    let both =
                        self.coins[g].pair(&self.coins[h], &self.coin_pair(state, &begins, (g, h)));
                    pairs[h * types + g] = both.transpose();
                    pairs[g * types + h] = both;
                }
            }
        }
        // E e_g θ̄ᵀ, E θ̄ θ̄ᵀ and E θ̄.
        let with_mean: Vec<Matrix> = (0..types)
            .map(|g| {
                let mut sum = own[g].clone();
                for h in 0..types {
                    sum.add(state.others(g, h), &pairs[g * types + h]);
                }
                sum.scaled(1.0 / n)
            })
            .collect();
        let mut mean_square = Matrix::zeros(d, d);
        let mut mean_s = Matrix::zeros(d, self.layout.m);
        for g in 0..types {
            mean_square.add(state.counts[g] / n, &with_mean[g]);
            mean_s.add(state.counts[g] / n, &ends[g].0.times(&state.s));
            if state.own() > 0 {
                mean_s.add(state.counts[g] / n, &ends[g].1.times_transposed(&state.x[g]));
            }
        }
        let mut next = state.clone();
        for i in 0..d {
            next.s[(0, 1 + i)] = mean_s[(i, 0)];
            next.s[(1 + i, 0)] = mean_s[(i, 0)];
            for j in 0..d {
                next.s[(1 + i, 1 + j)] = 0.5 * (mean_square[(i, j)] + mean_square[(j, i)]);
            }
        }
        if state.own() > 0 {
            self.coin_variates(
                state,
                &mut next,
                rate,
                &ends,
                &own,
                &pairs,
                &with_mean,
                &mean_square,
            );
        }
        let past = past.map(|past| self.coin_past(past, state, rate, &ends));
        (next, past)
    }

    /// v = c_c ← c_c − (p/γ)(θ_c − θ̄).
    #[expect(clippy::too_many_arguments, reason = "the moments of one round, made by the caller")]
    fn coin_variates(
        &self,
        state: &MomentState,
        next: &mut MomentState,
        rate: f64,
        ends: &[(Matrix, Matrix)],
        own: &[Matrix],
        pairs: &[Matrix],
        with_mean: &[Matrix],
        mean_square: &Matrix,
    ) {
        let (types, d, n) = (self.types.len(), self.layout.d, self.facts.clients() as f64);
        // E e_g v_gᵀ, and E e_g v_hᵀ of another client of type h.
        let with_own = |g: usize| {
            let mut out = ends[g].0.times(&state.x[g]);
            out.add(1.0, &ends[g].1.times(&state.p[g]));
            out
        };
        let with_other = |g: usize, h: usize| {
            let mut out = ends[g].0.times(&state.x[h]);
            out.add(1.0, &ends[g].1.times(state.pair(g, h)));
            out
        };
        // E θ̄ v_gᵀ.
        let mean_v: Vec<Matrix> = (0..types)
            .map(|g| {
                let mut sum = with_own(g);
                for h in (0..types).filter(|&h| state.others(g, h) > 0.0) {
                    sum.add(state.others(g, h), &with_other(h, g));
                }
                sum.scaled(1.0 / n)
            })
            .collect();
        // E of the ends' and the mean's part in 1·v.
        let first = |of: &Matrix, x: &Matrix, g: usize, i: usize| {
            let column: Vec<f64> = (0..state.s.rows()).map(|k| state.s[(k, 0)]).collect();
            let own: Vec<f64> = (0..d).map(|k| state.x[g][(0, k)]).collect();
            of.apply(&column)[i] + x.apply(&own)[i]
        };
        let mean: Vec<f64> = (0..d).map(|i| next.s[(1 + i, 0)]).collect();
        for g in 0..types {
            let (mine, all) = (with_own(g), &mean_v[g]);
            // (θ_g − θ̄)(θ_g − θ̄)ᵀ and its kin.
            let spread = |a: &Matrix, b: &Matrix, c: &Matrix| {
                a.plus(-1.0, b).plus(-1.0, &c.transpose()).plus(1.0, mean_square)
            };
            let apart = mine.plus(-1.0, all);
            let mut p = state.p[g].plus(-rate, &apart);
            p.add(-rate, &apart.transpose());
            p.add(rate * rate, &spread(&own[g], &with_mean[g], &with_mean[g]));
            next.p[g] = Matrix::from_fn(d, d, |i, j| 0.5 * (p[(i, j)] + p[(j, i)]));
            let turned = with_mean[g].transpose();
            for i in 0..d {
                let end = first(&ends[g].0, &ends[g].1, g, i);
                next.x[g][(0, i)] = state.x[g][(0, i)] - rate * (end - mean[i]);
                for j in 0..d {
                    next.x[g][(1 + i, j)] =
                        all[(i, j)] - rate * (turned[(i, j)] - mean_square[(i, j)]);
                }
            }
            for h in g..types {
                if state.others(g, h) <= 0.0 {
                    // There is no such pair; nothing of it is carried along.
                    next.q[g * types + h] = Matrix::zeros(d, d);
                    continue;
                }
                // E v_g (θ_h − θ̄)ᵀ and E (θ_g − θ̄) v_hᵀ.
                let right = with_other(h, g).plus(-1.0, &mean_v[g]).transpose();
                let left = with_other(g, h).plus(-1.0, &mean_v[h]);
                let mut q = state.pair(g, h).plus(-rate, &right);
                q.add(-rate, &left);
                q.add(rate * rate, &spread(&pairs[g * types + h], &with_mean[g], &with_mean[h]));
                if g == h {
                    q = Matrix::from_fn(d, d, |i, j| 0.5 * (q[(i, j)] + q[(j, i)]));
                }
                next.q[h * types + g] = q.transpose();
                next.q[g * types + h] = q;
            }
        }
    }

    fn coin_past(
        &self,
        past: &Past,
        state: &MomentState,
        rate: f64,
        ends: &[(Matrix, Matrix)],
    ) -> Past {
        let (d, n) = (self.layout.d, self.facts.clients() as f64);
        let end = |g: usize| {
            let mut out = past.s.times_transposed(&ends[g].0);
            if state.own() > 0 {
                out.add(1.0, &past.v[g].times_transposed(&ends[g].1));
            }
            out
        };
        let each: Vec<Matrix> = (0..self.types.len()).map(end).collect();
        let mut mean = Matrix::zeros(d, d);
        (0..each.len()).for_each(|g| mean.add(state.counts[g] / n, &each[g]));
        let mut next = past.clone();
        for i in 0..d {
            for j in 0..d {
                next.s[(i, 1 + j)] = mean[(i, j)];
            }
        }
        if state.own() > 0 {
            for (v, each) in next.v.iter_mut().zip(&each) {
                v.add(-rate, &each.plus(-1.0, &mean));
            }
        }
        next
    }
}
