//! A round as a list of stages: where a client begins, the map of its local steps, the
//! updates of the server and of its control variate, and the noise of each.

use super::local::{self, Drive, Steps};
use super::state::{MemberUpdate, MomentState, Stage, sparse_sandwich};
use super::{Correction, ExactMoments, Type};
use crate::linalg::Matrix;
use crate::theory::linear::LocalUpdate;

/// The positions of the parts of s = (1, e, c̄, e', c̄', …) and v = (c, c', …), one e, c̄ and
/// c per run.
pub(super) struct StateLayout {
    pub(super) d: usize,
    pub(super) e: Vec<usize>,
    pub(super) mean: Vec<Option<usize>>,
    pub(super) own: Vec<Option<usize>>,
    pub(super) m: usize,
    pub(super) n: usize,
}

impl StateLayout {
    pub(super) fn new(d: usize, corrected: &[bool], coin: bool) -> Self {
        let (mut m, mut n) = (1, 0);
        let (mut e, mut mean, mut own) = (Vec::new(), Vec::new(), Vec::new());
        let next = |end: &mut usize| {
            *end += d;
            *end - d
        };
        for &corrected in corrected {
            e.push(next(&mut m));
            // Under a coin the mean of the variates stays 0.
            mean.push((corrected && !coin).then(|| next(&mut m)));
            own.push(corrected.then(|| next(&mut n)));
        }
        Self { d, e, mean, own, m, n }
    }

    /// The d × `cols` matrix that picks d entries from `at` on, times `scale`.
    pub(super) fn selection(&self, cols: usize, begin: usize, scale: f64) -> Matrix {
        Matrix::from_fn(self.d, cols, |i, j| if i + begin == j { scale } else { 0.0 })
    }
}

/// Adds `scale` times `block` to the rows from `begin` on.
pub(super) fn add_block(into: &mut Matrix, begin: usize, scale: f64, block: &Matrix) {
    for i in 0..block.rows() {
        for j in 0..block.cols() {
            into[(begin + i, j)] += scale * block[(i, j)];
        }
    }
}

/// The local steps of a type.
pub(super) struct TypeSteps {
    /// y of each run from s and from v.
    begin: Vec<(Matrix, Matrix)>,
    /// e at the end from s and from v, all runs on top of each other.
    pub(super) from_s: Matrix,
    pub(super) from_v: Matrix,
    /// The steps of each pair of runs r ≤ q, row by row.
    steps: Vec<Steps>,
    /// H_c and the factor of one fresh mean of oracle calls in the noise, for
    /// each pair of runs.
    jacobian: Matrix,
    calls: Vec<f64>,
}

impl ExactMoments<'_> {
    /// Whether a run's drift varies, so that w has entries in y.
    pub(super) fn pulled(&self, run: usize, update: &LocalUpdate) -> bool {
        self.model.runs[run].correction != Correction::None || update.proximal != 0.0
    }

    /// y = (e, 1, w) of a run from s and from v.
    pub(super) fn begin(&self, g: usize, run: usize) -> (Matrix, Matrix) {
        let StateLayout { d, m, n, .. } = self.layout;
        let update = &self.types[g].updates[run];
        let pulled = self.pulled(run, update);
        let rows = local::length(d, pulled);
        let (mut from_s, mut from_v) = (Matrix::zeros(rows, m), Matrix::zeros(rows, n));
        let error = self.layout.selection(m, self.layout.e[run], 1.0);
        add_block(&mut from_s, 0, 1.0, &error);
        from_s[(d, 0)] = 1.0;
        if pulled {
            // w is the drift that is constant within the round: c̄ − c, or F̄_c(θ*).
            add_block(&mut from_s, d + 1, -update.proximal, &error);
            match (self.layout.mean[run], self.layout.own[run]) {
                (mean, Some(own)) => {
                    add_block(&mut from_v, d + 1, -1.0, &self.layout.selection(n, own, 1.0));
                    if let Some(mean) = mean {
                        add_block(&mut from_s, d + 1, 1.0, &self.layout.selection(m, mean, 1.0));
                    }
                }
                _ => {
                    let field = self.facts.field_at_optimum(self.types[g].first);
                    (0..d).for_each(|i| from_s[(d + 1 + i, 0)] += field[i]);
                }
            }
        }
        (from_s, from_v)
    }

    pub(super) fn steps_of_type(&self, g: usize) -> Option<TypeSteps> {
        let StateLayout { d, m, n, .. } = self.layout;
        let Type { first, updates, .. } = &self.types[g];
        let runs = updates.len();
        let begin: Vec<(Matrix, Matrix)> = (0..runs).map(|r| self.begin(g, r)).collect();
        let drive = |r: usize| Drive { update: updates[r], pulled: self.pulled(r, &updates[r]) };
        let (mut steps, mut calls) = (Vec::new(), Vec::new());
        for r in 0..runs {
            for q in r..runs {
                let one = Steps::new(self.facts, *first, [drive(r), drive(q)], r == q)?;
                let one = if r == q || self.model.common { one } else { one.uncoupled() };
                let (a, b) = (updates[r].steps, updates[q].steps);
                let shared = one.times(a.min(b));
                let rest = one.times(a.max(b) - a.min(b));
                steps.push(match a.cmp(&b) {
                    std::cmp::Ordering::Equal => shared,
                    std::cmp::Ordering::Less => shared.alone(1, &rest),
                    std::cmp::Ordering::Greater => shared.alone(0, &rest),
                });
                let factor = 1.0 / (a * updates[r].batch) as f64;
                calls.push(if r == q || self.model.common { factor } else { 0.0 });
            }
        }
        let (mut from_s, mut from_v) = (Matrix::zeros(runs * d, m), Matrix::zeros(runs * d, n));
        for r in 0..runs {
            let end = steps[pair(runs, r, r)].end(0);
            add_block(&mut from_s, r * d, 1.0, &end.times(&begin[r].0));
            add_block(&mut from_v, r * d, 1.0, &end.times(&begin[r].1));
        }
        Some(TypeSteps {
            begin,
            from_s,
            from_v,
            steps,
            jacobian: self.facts.jacobian(*first),
            calls,
        })
    }

    fn inclusion(&self) -> (f64, f64) {
        let (l, n) = (self.model.cohort as f64, self.facts.clients() as f64);
        (l / n, if n > 1.0 { l * (l - 1.0) / (n * (n - 1.0)) } else { 0.0 })
    }

    pub(super) fn make_stages(&self) -> Vec<Stage> {
        let mut stages = Vec::new();
        if self.model.runs.iter().any(|r| r.correction == Correction::Fresh) {
            stages.push(self.fresh_stage());
        }
        let StateLayout { d, m, .. } = self.layout;
        let mut keep = Matrix::identity(m);
        for (r, run) in self.model.runs.iter().enumerate() {
            for i in 0..d {
                let entry = self.layout.e[r] + i;
                keep[(entry, entry)] = 1.0 - run.server_step;
            }
        }
        let members = (0..self.types.len()).map(|g| self.member(g)).collect();
        stages.push(Stage::new(keep, self.inclusion(), members, &self.counts()));
        stages
    }

    /// Whether a round ends with oracle calls at θ_t, which add noise.
    fn calls(&self) -> bool {
        self.model.runs.iter().any(|r| r.correction == Correction::KeptFresh)
    }

    fn counts(&self) -> Vec<f64> {
        self.types.iter().map(|t| t.count).collect()
    }

    fn blank(&self, noises: usize) -> MemberUpdate {
        let StateLayout { m, n, .. } = self.layout;
        MemberUpdate {
            s_s: Matrix::zeros(m, m),
            s_v: Matrix::zeros(m, n),
            s_e: Matrix::zeros(m, noises),
            v_s: Matrix::zeros(n, m),
            v_v: Matrix::zeros(n, n),
            v_e: Matrix::zeros(n, noises),
        }
    }

    /// c_k ← the mean of oracle calls at θ_t, for all clients (FedLin).
    fn fresh_stage(&self) -> Stage {
        let StateLayout { d, m, n, .. } = self.layout;
        let clients = self.facts.clients() as f64;
        let runs = self.model.runs.len();
        let mut keep = Matrix::identity(m);
        for mean in self.layout.mean.iter().flatten() {
            (0..d).for_each(|i| keep[(mean + i, mean + i)] = 0.0);
        }
        let member = |(steps, kind): (&TypeSteps, &Type)| {
            let mut member = self.blank(runs * d);
            let share = kind.weight / clients;
            for r in 0..runs {
                let (Some(mean), Some(own)) = (self.layout.mean[r], self.layout.own[r]) else {
                    continue;
                };
                let field = steps.jacobian.times(&self.layout.selection(m, self.layout.e[r], 1.0));
                let noise = self.layout.selection(runs * d, r * d, 1.0);
                add_block(&mut member.s_s, mean, share, &field);
                add_block(&mut member.s_e, mean, share, &noise);
                add_block(&mut member.v_s, own, 1.0, &field);
                add_block(&mut member.v_e, own, 1.0, &noise);
                add_block(&mut member.v_v, own, -1.0, &self.layout.selection(n, own, 1.0));
            }
            member
        };
        let members = self.type_steps.iter().zip(&self.types).map(member).collect();
        let two = if clients > 1.0 { 1.0 } else { 0.0 };
        Stage::new(keep, (1.0, two), members, &self.counts())
    }

    /// The end of a round for a member of type g: the server's average and the update of
    /// its control variate. Its noises are those of the local steps of each run, then
    /// those of each run's oracle calls at θ_t, if there are any.
    fn member(&self, g: usize) -> MemberUpdate {
        let StateLayout { d, m, n, .. } = self.layout;
        let steps = &self.type_steps[g];
        let (runs, clients) = (self.model.runs.len(), self.facts.clients() as f64);
        let noises = if self.calls() { 2 * runs * d } else { runs * d };
        let mut member = self.blank(noises);
        let rows =
            |map: &Matrix, r: usize| Matrix::from_fn(d, map.cols(), |i, j| map[(r * d + i, j)]);
        for (r, run) in self.model.runs.iter().enumerate() {
            let weight = self.types[g].weight;
            let share = weight * run.server_step / self.model.cohort as f64;
            let e = self.layout.e[r];
            let (from_s, from_v) = (rows(&steps.from_s, r), rows(&steps.from_v, r));
            let noise = self.layout.selection(noises, r * d, 1.0);
            add_block(&mut member.s_s, e, share, &from_s);
            add_block(&mut member.s_v, e, share, &from_v);
            add_block(&mut member.s_e, e, share, &noise);
            let (Some(mean), Some(own)) = (self.layout.mean[r], self.layout.own[r]) else {
                continue;
            };
            // The increment of c_k as a map of s, v and the noises.
            let update = &self.types[g].updates[r];
            let length = update.step * update.steps as f64;
            let begin = self.layout.selection(m, e, 1.0);
            let (by_s, by_v, by_noise) = match run.correction {
                Correction::Kept => {
                    let mut by_s = begin.plus(-1.0, &from_s).scaled(1.0 / length);
                    by_s.add(-1.0, &self.layout.selection(m, mean, 1.0));
                    (by_s, from_v.scaled(-1.0 / length), noise.scaled(-1.0 / length))
                }
                Correction::KeptFresh => {
                    let calls = self.layout.selection(noises, (runs + r) * d, 1.0);
                    (steps.jacobian.times(&begin), self.layout.selection(n, own, -1.0), calls)
                }
                _ => continue,
            };
            add_block(&mut member.v_s, own, 1.0, &by_s);
            add_block(&mut member.v_v, own, 1.0, &by_v);
            add_block(&mut member.v_e, own, 1.0, &by_noise);
            add_block(&mut member.s_s, mean, weight / clients, &by_s);
            add_block(&mut member.s_v, mean, weight / clients, &by_v);
            add_block(&mut member.s_e, mean, weight / clients, &by_noise);
        }
        member
    }

    /// E y y'ᵀ of two runs of one client of type g.
    fn joint(&self, state: &MomentState, g: usize, r: usize, q: usize) -> Matrix {
        let (a, b) = (&self.type_steps[g].begin[r], &self.type_steps[g].begin[q]);
        second_moment(state, (g, a), (g, b), true)
    }

    /// The covariance of the noises of the local steps, all runs by all runs.
    pub(super) fn local_noise(&self, state: &MomentState, g: usize) -> Matrix {
        let runs = self.model.runs.len();
        self.by_pairs(|r, q| {
            self.type_steps[g].steps[pair(runs, r, q)].covariance(&self.joint(state, g, r, q))
        })
    }

    /// The covariance of means of oracle calls at θ_t.
    fn call_noise(&self, state: &MomentState, g: usize) -> Matrix {
        let (d, runs) = (self.layout.d, self.model.runs.len());
        self.by_pairs(|r, q| {
            let (a, b) = (self.layout.e[r], self.layout.e[q]);
            let position = |begin: usize, i: usize| if i < d { begin + i } else { 0 };
            let s = Matrix::from_fn(d + 1, d + 1, |i, j| state.s[(position(a, i), position(b, j))]);
            let factor = self.type_steps[g].calls[pair(runs, r, q)];
            let map = self.facts.noise_map(self.types[g].first, &s);
            map.map_or_else(|| Matrix::zeros(d, d), |c| c.scaled(factor))
        })
    }

    fn by_pairs(&self, block: impl Fn(usize, usize) -> Matrix) -> Matrix {
        let (d, runs) = (self.layout.d, self.model.runs.len());
        let mut out = Matrix::zeros(runs * d, runs * d);
        for r in 0..runs {
            for q in r..runs {
                let block = block(r, q);
                for i in 0..d {
                    for j in 0..d {
                        out[(r * d + i, q * d + j)] = block[(i, j)];
                        out[(q * d + j, r * d + i)] = block[(i, j)];
                    }
                }
            }
        }
        out
    }

    /// The covariances of the noises of stage number `stage`, by type.
    pub(super) fn noises(&self, state: &MomentState, stage: usize) -> Vec<Matrix> {
        let last = stage + 1 == self.stages.len();
        let covariance = |g: usize| {
            if !last {
                return self.call_noise(state, g);
            }
            let local = self.local_noise(state, g);
            if !self.calls() {
                return local;
            }
            let (size, call) = (local.rows(), self.call_noise(state, g));
            Matrix::from_fn(2 * size, 2 * size, |i, j| match (i < size, j < size) {
                (true, true) => local[(i, j)],
                (false, false) => call[(i - size, j - size)],
                _ => 0.0,
            })
        };
        (0..self.types.len()).map(covariance).collect()
    }
}

/// E y y'ᵀ where y comes from s and the v of a client of type g by the maps a, and y' by b from
/// those of a client of type h: of `one` client, or of two different ones.
pub(super) fn second_moment(
    state: &MomentState,
    (g, a): (usize, &(Matrix, Matrix)),
    (h, b): (usize, &(Matrix, Matrix)),
    one: bool,
) -> Matrix {
    let mut out = sparse_sandwich(&a.0, &state.s, &b.0);
    if state.client_length() > 0 {
        let both = if one { &state.p[g] } else { state.pair(g, h) };
        out.add(1.0, &sparse_sandwich(&a.0, &state.x[h], &b.1));
        out.add(1.0, &sparse_sandwich(&a.1, &state.x[g].transpose(), &b.0));
        out.add(1.0, &sparse_sandwich(&a.1, both, &b.1));
    }
    out
}

fn pair(runs: usize, r: usize, q: usize) -> usize {
    r * runs - r * (r + 1) / 2 + q
}
