//! Rounds under a coin (SCAFFLSA H1): from one communication to the next, all clients do the
//! same geometric number of local steps. Given that number clients are independent; without
//! it they are not, so the second moments of a pair are not the product of their means.

use super::ExactMoments;
use super::stages::second_moment;
use super::state::{MomentState, Past};
use crate::linalg::Matrix;

/// A linear map of s (left) and of a client's v (right).
type MapOfBoth = (Matrix, Matrix);

/// The moments of θ_c at the end of a round, before the communication.
struct Ends {
    /// p/γ, the rate at which the variates learn.
    rate: f64,
    /// E θ_c − θ* of each type as a map of s and of the client's v.
    maps: Vec<MapOfBoth>,
    /// E e_g e_gᵀ of one client of each type.
    own: Vec<Matrix>,
    /// E e_g e_hᵀ of two different clients, type by type.
    pairs: Vec<Matrix>,
    /// E e_g ēᵀ of each type, with ē = θ̄ − θ*.
    with_mean: Vec<Matrix>,
    /// E ē ēᵀ.
    mean_square: Matrix,
}

impl ExactMoments<'_> {
    pub(super) fn coin_clients_error(&self, state: &MomentState) -> f64 {
        let mut sum = 0.0;
        for (g, coin) in self.coins.iter().enumerate() {
            let begin = self.begin(g, 0);
            let square = second_moment(state, (g, &begin), (g, &begin), true);
            sum += state.weight(g) * coin.own(&square).trace();
        }
        sum / self.facts.clients() as f64
    }

    /// The moments of the clients' local steps from one communication to the next.
    fn coin_ends(&self, state: &MomentState) -> Ends {
        let (types, d, n) = (self.types.len(), self.layout.d, self.facts.clients() as f64);
        let begins: Vec<MapOfBoth> = (0..types).map(|g| self.begin(g, 0)).collect();
        let end = |(begin, coin): (&MapOfBoth, &super::local::GeometricSteps)| {
            (coin.end.times(&begin.0), coin.end.times(&begin.1))
        };
        let begin = |g: usize| (g, &begins[g]);
        let own: Vec<Matrix> = (0..types)
            .map(|g| self.coins[g].own(&second_moment(state, begin(g), begin(g), true)))
            .collect();
        let mut pairs = vec![Matrix::zeros(d, d); types * types];
        for g in 0..types {
            for h in (g..types).filter(|&h| state.others(g, h) > 0.0) {
                let both = second_moment(state, begin(g), begin(h), false);
                let both = self.coins[g].pair(&self.coins[h], &both);
                pairs[h * types + g] = both.transpose();
                pairs[g * types + h] = both;
            }
        }
        let with_mean = state.with_mean(|g| own[g].clone(), |g, h| pairs[g * types + h].clone());
        let mut mean_square = Matrix::zeros(d, d);
        for (g, with_mean) in with_mean.iter().enumerate() {
            mean_square.add(state.weight(g) / n, with_mean);
        }
        Ends {
            rate: self.model.coin.unwrap_or(1.0) / self.types[0].updates[0].step,
            maps: begins.iter().zip(&self.coins).map(end).collect(),
            own,
            pairs,
            with_mean,
            mean_square,
        }
    }

    /// From one communication to the next: θ ← θ̄, ξ_c ← ξ_c + (p/γ)(θ_c − θ̄).
    pub(super) fn coin_round(
        &self,
        state: &MomentState,
        past: Option<&Past>,
    ) -> (MomentState, Option<Past>) {
        let (d, n) = (self.layout.d, self.facts.clients() as f64);
        let ends = self.coin_ends(state);
        // E ē sᵀ, whose first column is E ē.
        let mut mean_s = Matrix::zeros(d, self.layout.m);
        for (g, (from_s, from_v)) in ends.maps.iter().enumerate() {
            mean_s.add(state.weight(g) / n, &from_s.times(&state.s));
            if state.client_length() > 0 {
                mean_s.add(state.weight(g) / n, &from_v.times_transposed(&state.x[g]));
            }
        }
        let mut next = state.clone();
        let square = ends.mean_square.symmetric_part();
        for i in 0..d {
            next.s[(0, 1 + i)] = mean_s[(i, 0)];
            next.s[(1 + i, 0)] = mean_s[(i, 0)];
            for j in 0..d {
                next.s[(1 + i, 1 + j)] = square[(i, j)];
            }
        }
        if state.client_length() > 0 {
            ends.variates_learn(state, &mut next);
        }
        let past = past.map(|past| self.coin_past(past, state, &ends));
        (next, past)
    }

    fn coin_past(&self, past: &Past, state: &MomentState, ends: &Ends) -> Past {
        let (d, n) = (self.layout.d, self.facts.clients() as f64);
        let end = |g: usize| {
            let mut out = past.s.times_transposed(&ends.maps[g].0);
            if state.client_length() > 0 {
                out.add(1.0, &past.v[g].times_transposed(&ends.maps[g].1));
            }
            out
        };
        let each: Vec<Matrix> = (0..self.types.len()).map(end).collect();
        let mut mean = Matrix::zeros(d, d);
        (0..each.len()).for_each(|g| mean.add(state.weight(g) / n, &each[g]));
        let mut next = past.clone();
        for i in 0..d {
            for j in 0..d {
                next.s[(i, 1 + j)] = mean[(i, j)];
            }
        }
        if state.client_length() > 0 {
            for (v, each) in next.v.iter_mut().zip(&each) {
                v.add(-ends.rate, &each.plus(-1.0, &mean));
            }
        }
        next
    }
}

impl Ends {
    /// E e_g v_gᵀ of one client of type g.
    fn with_own(&self, state: &MomentState, g: usize) -> Matrix {
        let mut out = self.maps[g].0.times(&state.x[g]);
        out.add(1.0, &self.maps[g].1.times(&state.p[g]));
        out
    }

    /// E e_g v_hᵀ of a client of type g and another of type h.
    fn with_other(&self, state: &MomentState, g: usize, h: usize) -> Matrix {
        let mut out = self.maps[g].0.times(&state.x[h]);
        out.add(1.0, &self.maps[g].1.times(state.pair(g, h)));
        out
    }

    /// E (e − ē)(e' − ē)ᵀ from E e e'ᵀ (`both`) of clients of types g and h.
    fn apart_from_mean(&self, both: &Matrix, g: usize, h: usize) -> Matrix {
        both.plus(-1.0, &self.with_mean[g])
            .plus(-1.0, &self.with_mean[h].transpose())
            .plus(1.0, &self.mean_square)
    }

    /// v = c_c ← c_c − (p/γ)(θ_c − θ̄).
    fn variates_learn(&self, state: &MomentState, next: &mut MomentState) {
        let types = state.types();
        // E ē v_gᵀ.
        let mean_v =
            state.with_mean(|g| self.with_own(state, g), |g, h| self.with_other(state, h, g));
        for g in 0..types {
            self.own_variate_learns(state, next, g, &mean_v[g]);
            for h in g..types {
                let pair = match state.others(g, h) > 0.0 {
                    true => self.variate_pair_learns(state, (g, h), &mean_v),
                    // There is no such pair, and nothing of it is carried along.
                    false => Matrix::zeros(state.client_length(), state.client_length()),
                };
                next.q[h * types + g] = pair.transpose();
                next.q[g * types + h] = pair;
            }
        }
    }

    /// E v_g v_gᵀ and E s v_gᵀ; `mean_v` is E ē v_gᵀ.
    fn own_variate_learns(
        &self,
        state: &MomentState,
        next: &mut MomentState,
        g: usize,
        mean_v: &Matrix,
    ) {
        let (rate, d) = (self.rate, state.client_length());
        let apart = self.with_own(state, g).plus(-1.0, mean_v);
        let mut p = state.p[g].plus(-rate, &apart);
        p.add(-rate, &apart.transpose());
        p.add(rate * rate, &self.apart_from_mean(&self.own[g], g, g));
        next.p[g] = p.symmetric_part();
        // E e_g from E 1·s and E 1·v.
        let (from_s, from_v) = &self.maps[g];
        let means: Vec<f64> = (0..state.s.rows()).map(|k| state.s[(k, 0)]).collect();
        let (by_s, by_v) = (from_s.apply(&means), from_v.apply(&state.x[g].row(0)[..d]));
        for i in 0..d {
            let end = by_s[i] + by_v[i];
            next.x[g][(0, i)] = state.x[g][(0, i)] - rate * (end - next.s[(1 + i, 0)]);
            for j in 0..d {
                let learnt = self.with_mean[g][(j, i)] - self.mean_square[(i, j)];
                next.x[g][(1 + i, j)] = mean_v[(i, j)] - rate * learnt;
            }
        }
    }

    /// E v_g v_hᵀ of two different clients; `mean_v` is E ē vᵀ by type.
    fn variate_pair_learns(
        &self,
        state: &MomentState,
        (g, h): (usize, usize),
        mean_v: &[Matrix],
    ) -> Matrix {
        // E v_g (θ_h − θ̄)ᵀ and E (θ_g − θ̄) v_hᵀ.
        let right = self.with_other(state, h, g).plus(-1.0, &mean_v[g]).transpose();
        let left = self.with_other(state, g, h).plus(-1.0, &mean_v[h]);
        let both = &self.pairs[g * state.types() + h];
        let mut q = state.pair(g, h).plus(-self.rate, &right);
        q.add(-self.rate, &left);
        q.add(self.rate * self.rate, &self.apart_from_mean(both, g, h));
        if g == h { q.symmetric_part() } else { q }
    }
}
