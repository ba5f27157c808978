//! Moments under a coin after fixed numbers of local steps: the second reading of
//! SCAFFLSA H1 (Theorem 5.1). The moments of all clients' θ_c and variates close step by
//! step: each step is a local step, followed by a communication with probability p.

use super::local::{Drive, Steps};
use super::stages::add_block;
use super::state::{MemberUpdate, MomentState, Stage, sparse_sandwich};
use super::{AlgorithmModel, Correction, Moments, Type, types};
use crate::kernel::{difference, dot};
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::theory::linear::LocalUpdate;

/// The moments of one run under a coin at the end of rounds of `per_round` local
/// steps each, from θ_0 = `start`; `None` if they do not close.
pub fn at_rounds(
    facts: &dyn Facts,
    model: &AlgorithmModel<'_>,
    per_round: u64,
    start: &[f64],
    rounds: &[u64],
) -> Option<Vec<Moments>> {
    let process = FixedSteps::new(facts, model)?;
    let mut state = process.begin(start);
    let (mut out, mut round) = (Vec::new(), 0);
    for &target in rounds {
        while round < target {
            for _ in 0..per_round {
                state = process.step(&state);
            }
            round += 1;
        }
        out.push(process.moments(&state, round));
    }
    Some(out)
}

/// One local step and one communication; v = (e, c) of a client, s = 1.
struct FixedSteps<'a> {
    facts: &'a dyn Facts,
    probability: f64,
    /// γ and p/γ.
    step: f64,
    rate: f64,
    types: Vec<Type>,
    corrected: bool,
    stage: Stage,
    steps: Vec<Steps>,
}

impl<'a> FixedSteps<'a> {
    fn new(facts: &'a dyn Facts, model: &AlgorithmModel<'_>) -> Option<Self> {
        let (Some(probability), [run]) = (model.coin, model.runs.as_slice()) else {
            return None;
        };
        if !facts.linear() || !facts.independent() || model.burn_in.is_some() {
            return None;
        }
        let (types, _) = types(facts, model);
        let corrected = run.correction != Correction::None;
        let d = facts.dim();
        let (mut steps, mut members) = (Vec::new(), Vec::new());
        for t in &types {
            let update = LocalUpdate { steps: 1, ..t.updates[0] };
            if update.proximal != 0.0 {
                return None;
            }
            let drive = Drive { update, pulled: corrected };
            let one = Steps::new(facts, t.first, [drive; 2], true)?;
            members.push(member(&one, d, corrected));
            steps.push(one);
        }
        let two = if facts.clients() > 1 { 1.0 } else { 0.0 };
        let counts: Vec<f64> = types.iter().map(|t| t.count).collect();
        let stage = Stage::new(Matrix::identity(1), (1.0, two), members, &counts);
        let step = types[0].updates[0].step;
        let rate = probability / step;
        Some(Self { facts, probability, step, rate, types, corrected, stage, steps })
    }

    fn begin(&self, start: &[f64]) -> MomentState {
        let own = |t: &Type| {
            let mut v = difference(start, self.facts.optimum());
            if self.corrected {
                v.extend(self.facts.field_at_optimum(t.first).iter().map(|x| -x));
            }
            v
        };
        let v: Vec<Vec<f64>> = self.types.iter().map(own).collect();
        MomentState::fixed(super::counts_and_weights(&self.types), &[1.0], &v)
    }

    /// A local step of all clients, then a communication with probability p.
    fn step(&self, state: &MomentState) -> MomentState {
        let d = self.facts.dim();
        let noise = |g: usize| {
            // y = (e, 1, w) with w = −c; without variates w is no variable.
            let n = super::local::length(d, self.corrected);
            let position = |i: usize| match i {
                _ if i < d => (Some(i), 1.0),
                _ if i == d => (None, 1.0),
                _ => (Some(i - 1), -1.0),
            };
            let y = Matrix::from_fn(n, n, |i, j| {
                let ((a, x), (b, z)) = (position(i), position(j));
                let value = match (a, b) {
                    (Some(a), Some(b)) => state.p[g][(a, b)],
                    (Some(a), None) | (None, Some(a)) => state.x[g][(0, a)],
                    (None, None) => state.s[(0, 0)],
                };
                x * z * value
            });
            self.steps[g].covariance(&y)
        };
        let noises: Vec<Matrix> = (0..self.types.len()).map(noise).collect();
        let stepped = state.after(&self.stage, &noises);
        let met = self.communicate(&stepped);
        let p = self.probability;
        let mix = |a: &Matrix, b: &Matrix| a.scaled(1.0 - p).plus(p, b);
        let mixed = |a: &[Matrix], b: &[Matrix]| a.iter().zip(b).map(|(a, b)| mix(a, b)).collect();
        MomentState {
            counts: stepped.counts.clone(),
            weights: stepped.weights.clone(),
            s: stepped.s.clone(),
            x: mixed(&stepped.x, &met.x),
            p: mixed(&stepped.p, &met.p),
            q: mixed(&stepped.q, &met.q),
        }
    }

    /// θ_c ← θ̄ and c_c ← c_c − (p/γ)(θ_c − θ̄): v ← K v + L ē, ē = Σ π_c e_c.
    fn communicate(&self, state: &MomentState) -> MomentState {
        let (d, n, types) = (self.facts.dim(), self.facts.clients() as f64, state.types());
        let width = state.client_length();
        // K removes e and adds it to c; L puts ē in both places.
        let (mut keep, mut give) = (Matrix::zeros(width, width), Matrix::zeros(width, d));
        add_block(&mut give, 0, 1.0, &Matrix::identity(d));
        if self.corrected {
            for i in 0..d {
                keep[(d + i, d + i)] = 1.0;
                keep[(d + i, i)] = -self.rate;
            }
            add_block(&mut give, d, self.rate, &Matrix::identity(d));
        }
        let top = |m: &Matrix| Matrix::from_fn(d, m.cols(), |i, j| m[(i, j)]);
        // E ē v_gᵀ, E ē ēᵀ and E ē.
        let with_mean = state.with_mean(|g| top(&state.p[g]), |g, h| top(state.pair(h, g)));
        let mut square = Matrix::zeros(d, d);
        let mut mean = Matrix::zeros(d, 1);
        for (g, (with_mean, x)) in with_mean.iter().zip(&state.x).enumerate() {
            let share = state.weight(g) / n;
            square.add(share, &Matrix::from_fn(d, d, |i, j| with_mean[(i, j)]));
            mean.add(share, &Matrix::from_fn(d, 1, |i, _| x[(0, i)]));
        }
        // (K v_g + L ē)(K v_h + L ē)ᵀ.
        let left: Vec<Matrix> =
            with_mean.iter().map(|v| sparse_sandwich(&keep, &v.transpose(), &give)).collect();
        let right: Vec<Matrix> =
            with_mean.iter().map(|v| sparse_sandwich(&give, v, &keep)).collect();
        let common = sparse_sandwich(&give, &square, &give);
        let product = |a: &Matrix, g: usize, h: usize| {
            let mut out = sparse_sandwich(&keep, a, &keep);
            out.add(1.0, &left[g]);
            out.add(1.0, &right[h]);
            out.add(1.0, &common);
            out
        };
        let mut next = state.clone();
        for g in 0..types {
            let mut x = state.x[g].times_transposed(&keep);
            x.add(1.0, &mean.transpose().times_transposed(&give));
            next.x[g] = x;
            next.p[g] = product(&state.p[g], g, g);
            for h in 0..types {
                if state.others(g, h) > 0.0 {
                    next.q[g * types + h] = product(state.pair(g, h), g, h);
                }
            }
        }
        next
    }

    fn moments(&self, state: &MomentState, round: u64) -> Moments {
        let (d, n, types) = (self.facts.dim(), self.facts.clients() as f64, state.types());
        let block = |m: &Matrix| Matrix::from_fn(d, d, |i, j| m[(i, j)]);
        let (mut square, mut mean) = (Matrix::zeros(d, d), vec![0.0; d]);
        let (mut clients, mut variates) = (0.0, 0.0);
        for g in 0..types {
            let share = state.weight(g) / n;
            square.add(share * state.weights[g] / n, &block(&state.p[g]));
            for h in (0..types).filter(|&h| state.others(g, h) > 0.0) {
                let others = state.others(g, h) * state.weights[h];
                square.add(share * others / n, &block(state.pair(g, h)));
            }
            (0..d).for_each(|i| mean[i] += share * state.x[g][(0, i)]);
            clients += share * block(&state.p[g]).trace();
            if self.corrected {
                let own = (0..d).fold(0.0, |sum, i| sum + state.p[g][(d + i, d + i)]);
                variates += share * own;
            }
        }
        let length = self.step / self.probability;
        let mut covariance = square.clone();
        covariance.add_outer(-1.0, &mean, &mean);
        debug_assert!(dot(&mean, &mean) <= square.trace() * (1.0 + 1e-9) + 1e-300);
        Moments {
            round,
            sq_error: square.trace(),
            mean,
            covariance,
            sq_error_average: f64::NAN,
            sq_error_clients: (round > 0).then_some(clients),
            lyapunov: self.corrected.then_some(clients + length * length * variates),
        }
    }
}

/// A local step as a stage: e ← M e + γ c + noise, or with F̄_c(θ*) for −c.
fn member(one: &Steps, d: usize, corrected: bool) -> MemberUpdate {
    let end = one.end(0);
    let width = if corrected { 2 * d } else { d };
    let mut v_v = Matrix::zeros(width, width);
    let mut v_s = Matrix::zeros(width, 1);
    let mut v_e = Matrix::zeros(width, d);
    for i in 0..d {
        v_e[(i, i)] = 1.0;
        v_s[(i, 0)] = end[(i, d)];
        for j in 0..d {
            v_v[(i, j)] = end[(i, j)] - f64::from(u8::from(i == j));
            if corrected {
                v_v[(i, d + j)] = -end[(i, d + 1 + j)];
            }
        }
    }
    MemberUpdate {
        s_s: Matrix::zeros(1, 1),
        s_v: Matrix::zeros(1, width),
        s_e: Matrix::zeros(1, d),
        v_s,
        v_v,
        v_e,
    }
}
