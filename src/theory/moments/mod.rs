//! Exact first and second moments of whole algorithms on linear fields, without
//! sampling (MATH 4.8): E‖θ_t − θ*‖², mean and covariance at every round and at
//! stationarity, as infinitely many replicates would give them.
//!
//! Given the state at the start of a round clients are independent, and all
//! updates are affine, so that second moments close: a round is a linear map of
//! them. Clients of one law that do the same work form a type; cost and size
//! depend on the number of types and not on that of clients. Coordinates are
//! θ − θ* and c_k − F̄_k(θ*), so that nothing cancels close to the optimum.

mod coin;
mod local;
mod state;
mod stationary;
pub mod steps;

use crate::kernel::axpy;
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::theory::linear::Work;
use local::{Drive, Steps};
use state::{Member, Past, Stage, State, sandwich};

/// What is added to a client's field, as theory sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// Nothing (FedAvg and its kin).
    None,
    /// ξ_k = c̄ − c_k with c_k ← c_k − c̄ + (θ_t − θ_k)/(γ_k E_k).
    Kept,
    /// The same with c_k ← the mean of E_k more oracle calls at θ_t.
    KeptFresh,
    /// c_k is the mean of E_k oracle calls at θ_t, made before the round.
    Fresh,
}

/// One run of the engine, as theory sees it.
pub struct Run<'a> {
    /// Weight of its estimate in the algorithm's.
    pub weight: f64,
    /// What each client does.
    pub work: Box<dyn Fn(usize) -> Work + Sync + 'a>,
    /// γ_g.
    pub server_step: f64,
    /// What is added to a client's field.
    pub correction: Correction,
}

/// An algorithm as theory sees it: runs side by side whose estimates are added
/// up with their weights.
pub struct Scheme<'a> {
    /// The runs.
    pub runs: Vec<Run<'a>>,
    /// L, clients that take part in a round.
    pub cohort: usize,
    /// Whether the runs share their draws.
    pub common: bool,
    /// p, where clients communicate by a coin (H1); a round is one communication.
    pub coin: Option<f64>,
    /// Rounds after which the estimate is the mean of those since, if it is one.
    pub burn_in: Option<u64>,
}

/// Exact moments at the end of a round.
#[derive(Clone, Debug)]
pub struct Moments {
    /// t.
    pub round: u64,
    /// E‖θ̂_t − θ*‖² of the algorithm's estimate.
    pub sq_error: f64,
    /// E θ̂_t − θ*, d numbers.
    pub mean: Vec<f64>,
    /// Cov θ̂_t, d × d.
    pub covariance: Matrix,
    /// E‖t⁻¹ Σ_{s≤t} θ̂_s − θ*‖², the mean of all estimates so far (at round 0,
    /// of the first); NaN where the estimate is itself an average.
    pub sq_error_average: f64,
    /// E N⁻¹ Σ ‖θ_c − θ*‖² at the end of the local steps before; of one run in
    /// which all clients take part.
    pub sq_error_clients: Option<f64>,
    /// E of the Lyapunov function (SCAFFLSA 51, at communications 45).
    pub lyapunov: Option<f64>,
}

/// Second moments of θ and of a type's control variate at stationarity, in the
/// coordinates θ − θ* and ξ_c + F̄_c(θ*).
#[derive(Clone, Debug)]
pub struct Blocks {
    /// E of the products of θ, d × d.
    pub theta: Matrix,
    /// E (θ − θ*)(ξ_c − ξ_c*)ᵀ by client, d × d each.
    pub theta_variate: Vec<Matrix>,
    /// E (ξ_c − ξ_c*)(ξ_c − ξ_c*)ᵀ by client.
    pub variate: Vec<Matrix>,
    /// E (ξ_c − ξ_c*)(ξ_c' − ξ_c'*)ᵀ with c' the client after c.
    pub variate_pair: Vec<Matrix>,
}

/// Where the parts of s and v are: s = (1, e, c̄, e', c̄', …), v = (c, c', …).
struct Layout {
    d: usize,
    e: Vec<usize>,
    mean: Vec<Option<usize>>,
    own: Vec<Option<usize>>,
    m: usize,
    n: usize,
}

impl Layout {
    fn new(d: usize, corrected: &[bool], coin: bool) -> Self {
        let (mut m, mut n) = (1, 0);
        let (mut e, mut mean, mut own) = (Vec::new(), Vec::new(), Vec::new());
        let next = |at: &mut usize| {
            *at += d;
            *at - d
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
    fn pick(&self, cols: usize, at: usize, scale: f64) -> Matrix {
        Matrix::from_fn(self.d, cols, |i, j| if i + at == j { scale } else { 0.0 })
    }
}

/// Puts `block` into rows from `at` on, added to what is there.
fn put(into: &mut Matrix, at: usize, scale: f64, block: &Matrix) {
    for i in 0..block.rows() {
        for j in 0..block.cols() {
            into[(at + i, j)] += scale * block[(i, j)];
        }
    }
}

/// Clients that have one law and do the same.
struct Type {
    first: usize,
    count: f64,
    work: Vec<Work>,
}

/// A type's way through the local steps.
struct Course {
    /// y of each run from s and from v.
    begin: Vec<(Matrix, Matrix)>,
    /// e at the end from s and from v, all runs on top of each other.
    from_s: Matrix,
    from_v: Matrix,
    /// The steps of each pair of runs r ≤ q, row by row.
    steps: Vec<Steps>,
    /// H_c and the factor of one fresh mean of oracle calls in the noise, for
    /// each pair of runs.
    jacobian: Matrix,
    calls: Vec<f64>,
}

/// The exact moments of a scheme on a problem.
pub struct Exact<'a> {
    facts: &'a dyn Facts,
    scheme: &'a Scheme<'a>,
    layout: Layout,
    types: Vec<Type>,
    /// Which type a client is of.
    of: Vec<usize>,
    courses: Vec<Course>,
    coins: Vec<local::Coin>,
    stages: Vec<Stage>,
}

/// Multiplications beyond which moments are not computed.
pub const MOST_PRODUCTS: f64 = 4e10;

fn types(facts: &dyn Facts, scheme: &Scheme<'_>) -> (Vec<Type>, Vec<usize>) {
    let mut types: Vec<Type> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let of = (0..facts.clients()).map(|c| {
        let work: Vec<Work> = scheme.runs.iter().map(|run| (run.work)(c)).collect();
        let bits = |w: &Work| (w.step.to_bits(), w.steps, w.batch, w.proximal.to_bits());
        let key = (facts.law(c), work.iter().map(bits).collect::<Vec<_>>());
        let place = *places.entry(key).or_insert(types.len());
        if place == types.len() {
            types.push(Type { first: c, count: 0.0, work });
        }
        types[place].count += 1.0;
        place
    });
    let of = of.collect();
    (types, of)
}

/// Products that moments to round `rounds` take, about: preparing the types,
/// and their pairs round by round.
pub fn products(facts: &dyn Facts, scheme: &Scheme<'_>, rounds: u64) -> f64 {
    let (types, _) = types(facts, scheme);
    let d = facts.dim() as f64;
    let corrected = scheme.runs.iter().any(|r| r.correction != Correction::None);
    let (runs, n) = (scheme.runs.len() as f64, if corrected { 2.0 * d + 1.0 } else { d + 1.0 });
    let longest = types.iter().flat_map(|t| &t.work).map(|w| w.steps).max().unwrap_or(1);
    let doublings = match scheme.coin {
        Some(p) => 3.0 * libm::log2(50.0 / p),
        None => 1.5 * libm::log2(longest as f64 + 1.0),
    };
    let count = types.len() as f64;
    let prepare = count * runs * runs * doublings * (d * d * n * n * (d * d + 2.0 * n));
    let v = if corrected { runs * d } else { 0.0 };
    let m = 1.0 + 2.0 * v.max(runs * d);
    let per_type = 12.0 * m * m * m + runs * runs * n * n * d * d;
    let mut per_pair = if corrected { 4.0 * v * v * m } else { 0.0 };
    if let Some(p) = scheme.coin {
        per_pair += 2.0 * n * n * n * libm::log2(50.0 / p);
    }
    prepare + rounds as f64 * (count * per_type + count * count / 2.0 * per_pair)
}

/// Whether the way in which the runs of a scheme share their draws is one that
/// moments are followed through.
pub fn followed(facts: &dyn Facts, scheme: &Scheme<'_>) -> bool {
    let (types, _) = types(facts, scheme);
    let runs = &scheme.runs;
    let uneven = types.iter().any(|t| t.work.iter().any(|w| w.steps != t.work[0].steps));
    let fresh = |r: &Run<'_>| matches!(r.correction, Correction::Fresh | Correction::KeptFresh);
    let batches = types.iter().any(|t| t.work.iter().any(|w| w.batch != t.work[0].batch));
    let fresh = runs.iter().any(fresh);
    let alone = runs.len() == 1;
    let drawn = !(uneven && fresh || scheme.common && batches);
    let cohort = scheme.common || scheme.cohort == facts.clients();
    drawn && (alone || scheme.coin.is_none() && cohort)
}

impl<'a> Exact<'a> {
    /// Prepares the moments of a scheme; `None` where second moments do not
    /// close: the field is not linear, draws are not independent, or the runs
    /// of the scheme share their draws in a way that is not followed.
    pub fn new(facts: &'a dyn Facts, scheme: &'a Scheme<'a>) -> Option<Self> {
        if !facts.linear() || !facts.independent() {
            return None;
        }
        if !followed(facts, scheme) {
            return None;
        }
        let (types, of) = types(facts, scheme);
        let runs = &scheme.runs;
        let corrected: Vec<bool> = runs.iter().map(|r| r.correction != Correction::None).collect();
        let layout = Layout::new(facts.dim(), &corrected, scheme.coin.is_some());
        let mut new = Self {
            facts,
            scheme,
            layout,
            types,
            of,
            courses: Vec::new(),
            coins: Vec::new(),
            stages: Vec::new(),
        };
        for g in 0..new.types.len() {
            if let Some(p) = scheme.coin {
                let work = Work { steps: 1, ..new.types[g].work[0] };
                let drive = Drive { work, pulled: new.pulled(0, &work) };
                let step = Steps::new(facts, new.types[g].first, [drive; 2], true)?;
                new.coins.push(local::Coin::new(&step, p));
            } else {
                let course = new.course(g)?;
                new.courses.push(course);
            }
        }
        if scheme.coin.is_none() {
            new.stages = new.make_stages();
        }
        Some(new)
    }

    /// Whether a run's drift is not constant, so that w has entries of its own.
    fn pulled(&self, run: usize, work: &Work) -> bool {
        self.scheme.runs[run].correction != Correction::None || work.proximal != 0.0
    }

    /// y = (e, 1, w) of a run from s and from v.
    fn begin(&self, g: usize, run: usize) -> (Matrix, Matrix) {
        let Layout { d, m, n, .. } = self.layout;
        let work = &self.types[g].work[run];
        let pulled = self.pulled(run, work);
        let rows = local::length(d, pulled);
        let (mut from_s, mut from_v) = (Matrix::zeros(rows, m), Matrix::zeros(rows, n));
        put(&mut from_s, 0, 1.0, &self.layout.pick(m, self.layout.e[run], 1.0));
        from_s[(d, 0)] = 1.0;
        if pulled {
            // w is the drift that the round does not change: c̄ − c, or F̄_c(θ*).
            put(&mut from_s, d + 1, -work.proximal, &self.layout.pick(m, self.layout.e[run], 1.0));
            match (self.layout.mean[run], self.layout.own[run]) {
                (mean, Some(own)) => {
                    put(&mut from_v, d + 1, -1.0, &self.layout.pick(n, own, 1.0));
                    if let Some(mean) = mean {
                        put(&mut from_s, d + 1, 1.0, &self.layout.pick(m, mean, 1.0));
                    }
                }
                _ => {
                    let field = self.field(self.types[g].first);
                    (0..d).for_each(|i| from_s[(d + 1 + i, 0)] += field[i]);
                }
            }
        }
        (from_s, from_v)
    }

    /// F̄_c(θ*).
    fn field(&self, client: usize) -> Vec<f64> {
        let mut field = vec![0.0; self.layout.d];
        self.facts.mean_field(client, self.facts.optimum(), &mut field);
        field
    }

    fn course(&self, g: usize) -> Option<Course> {
        let Layout { d, m, n, .. } = self.layout;
        let Type { first, work, .. } = &self.types[g];
        let runs = work.len();
        let begin: Vec<(Matrix, Matrix)> = (0..runs).map(|r| self.begin(g, r)).collect();
        let drive = |r: usize| Drive { work: work[r], pulled: self.pulled(r, &work[r]) };
        let (mut steps, mut calls) = (Vec::new(), Vec::new());
        for r in 0..runs {
            for q in r..runs {
                let one = Steps::new(self.facts, *first, [drive(r), drive(q)], r == q)?;
                let one = if r == q || self.scheme.common { one } else { one.uncoupled() };
                let (a, b) = (work[r].steps, work[q].steps);
                let shared = one.times(a.min(b));
                let rest = one.times(a.max(b) - a.min(b));
                steps.push(match a.cmp(&b) {
                    std::cmp::Ordering::Equal => shared,
                    std::cmp::Ordering::Less => shared.alone(1, &rest),
                    std::cmp::Ordering::Greater => shared.alone(0, &rest),
                });
                let factor = 1.0 / (a * work[r].batch) as f64;
                calls.push(if r == q || self.scheme.common { factor } else { 0.0 });
            }
        }
        let (mut from_s, mut from_v) = (Matrix::zeros(runs * d, m), Matrix::zeros(runs * d, n));
        for r in 0..runs {
            let end = steps[pair(runs, r, r)].end(0);
            put(&mut from_s, r * d, 1.0, &end.times(&begin[r].0));
            put(&mut from_v, r * d, 1.0, &end.times(&begin[r].1));
        }
        Some(Course { begin, from_s, from_v, steps, jacobian: self.facts.jacobian(*first), calls })
    }

    fn inclusion(&self) -> (f64, f64) {
        let (l, n) = (self.scheme.cohort as f64, self.facts.clients() as f64);
        (l / n, if n > 1.0 { l * (l - 1.0) / (n * (n - 1.0)) } else { 0.0 })
    }

    fn make_stages(&self) -> Vec<Stage> {
        let mut stages = Vec::new();
        if self.scheme.runs.iter().any(|r| r.correction == Correction::Fresh) {
            stages.push(self.fresh_stage());
        }
        let Layout { d, m, .. } = self.layout;
        let mut keep = Matrix::identity(m);
        for (r, run) in self.scheme.runs.iter().enumerate() {
            for i in 0..d {
                let at = self.layout.e[r] + i;
                keep[(at, at)] = 1.0 - run.server_step;
            }
        }
        let members = (0..self.types.len()).map(|g| self.member(g)).collect();
        stages.push(Stage { keep, inclusion: self.inclusion(), members });
        stages
    }

    fn blank(&self, noises: usize) -> Member {
        let Layout { m, n, .. } = self.layout;
        Member {
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
        let Layout { d, m, n, .. } = self.layout;
        let clients = self.facts.clients() as f64;
        let runs = self.scheme.runs.len();
        let mut keep = Matrix::identity(m);
        for mean in self.layout.mean.iter().flatten() {
            (0..d).for_each(|i| keep[(mean + i, mean + i)] = 0.0);
        }
        let member = |course: &Course| {
            let mut member = self.blank(runs * d);
            for r in 0..runs {
                let (Some(mean), Some(own)) = (self.layout.mean[r], self.layout.own[r]) else {
                    continue;
                };
                let at = course.jacobian.times(&self.layout.pick(m, self.layout.e[r], 1.0));
                let noise = self.layout.pick(runs * d, r * d, 1.0);
                put(&mut member.s_s, mean, 1.0 / clients, &at);
                put(&mut member.s_e, mean, 1.0 / clients, &noise);
                put(&mut member.v_s, own, 1.0, &at);
                put(&mut member.v_e, own, 1.0, &noise);
                put(&mut member.v_v, own, -1.0, &self.layout.pick(n, own, 1.0));
            }
            member
        };
        let members = self.courses.iter().map(member).collect();
        let two = if clients > 1.0 { 1.0 } else { 0.0 };
        Stage { keep, inclusion: (1.0, two), members }
    }

    /// The end of a round for a member of type g: the server's average and what
    /// its control variate learns. Its noises are those of the local steps of
    /// each run, then those of each run's oracle calls at θ_t.
    fn member(&self, g: usize) -> Member {
        let Layout { d, m, n, .. } = self.layout;
        let course = &self.courses[g];
        let (runs, clients) = (self.scheme.runs.len(), self.facts.clients() as f64);
        let mut member = self.blank(2 * runs * d);
        let rows = |of: &Matrix, r: usize| Matrix::from_fn(d, of.cols(), |i, j| of[(r * d + i, j)]);
        for (r, run) in self.scheme.runs.iter().enumerate() {
            let share = run.server_step / self.scheme.cohort as f64;
            let e = self.layout.e[r];
            let (from_s, from_v) = (rows(&course.from_s, r), rows(&course.from_v, r));
            let noise = self.layout.pick(2 * runs * d, r * d, 1.0);
            put(&mut member.s_s, e, share, &from_s);
            put(&mut member.s_v, e, share, &from_v);
            put(&mut member.s_e, e, share, &noise);
            let (Some(mean), Some(own)) = (self.layout.mean[r], self.layout.own[r]) else {
                continue;
            };
            // What is added to c_k, as a map of s, v and the noises.
            let work = &self.types[g].work[r];
            let length = work.step * work.steps as f64;
            let begin = self.layout.pick(m, e, 1.0);
            let (by_s, by_v, by_noise) = match run.correction {
                Correction::Kept => {
                    let mut by_s = begin.plus(-1.0, &from_s).scaled(1.0 / length);
                    by_s.add(-1.0, &self.layout.pick(m, mean, 1.0));
                    (by_s, from_v.scaled(-1.0 / length), noise.scaled(-1.0 / length))
                }
                Correction::KeptFresh => {
                    let calls = self.layout.pick(2 * runs * d, (runs + r) * d, 1.0);
                    (course.jacobian.times(&begin), self.layout.pick(n, own, -1.0), calls)
                }
                _ => continue,
            };
            put(&mut member.v_s, own, 1.0, &by_s);
            put(&mut member.v_v, own, 1.0, &by_v);
            put(&mut member.v_e, own, 1.0, &by_noise);
            put(&mut member.s_s, mean, 1.0 / clients, &by_s);
            put(&mut member.s_v, mean, 1.0 / clients, &by_v);
            put(&mut member.s_e, mean, 1.0 / clients, &by_noise);
        }
        member
    }

    /// E y y'ᵀ of two runs of one client of type g.
    fn joint(&self, state: &State, g: usize, r: usize, q: usize) -> Matrix {
        let (a, b) = (&self.courses[g].begin[r], &self.courses[g].begin[q]);
        second(state, g, a, b)
    }

    /// The covariance of the noises of the local steps, all runs by all runs.
    fn walk_noise(&self, state: &State, g: usize) -> Matrix {
        let runs = self.scheme.runs.len();
        self.by_pairs(|r, q| {
            self.courses[g].steps[pair(runs, r, q)].covariance(&self.joint(state, g, r, q))
        })
    }

    /// The covariance of means of oracle calls at θ_t.
    fn call_noise(&self, state: &State, g: usize) -> Matrix {
        let (d, runs) = (self.layout.d, self.scheme.runs.len());
        self.by_pairs(|r, q| {
            let (a, b) = (self.layout.e[r], self.layout.e[q]);
            let at = |from: usize, i: usize| if i < d { from + i } else { 0 };
            let s = Matrix::from_fn(d + 1, d + 1, |i, j| state.s[(at(a, i), at(b, j))]);
            let factor = self.courses[g].calls[pair(runs, r, q)];
            let map = self.facts.noise_map(self.types[g].first, &s);
            map.map_or_else(|| Matrix::zeros(d, d), |c| c.scaled(factor))
        })
    }

    fn by_pairs(&self, of: impl Fn(usize, usize) -> Matrix) -> Matrix {
        let (d, runs) = (self.layout.d, self.scheme.runs.len());
        let mut out = Matrix::zeros(runs * d, runs * d);
        for r in 0..runs {
            for q in r..runs {
                let block = of(r, q);
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

    /// The noises of stage number `stage` in this state.
    fn noises(&self, state: &State, stage: usize) -> Vec<Matrix> {
        let last = stage + 1 == self.stages.len();
        let calls = self.scheme.runs.iter().any(|r| r.correction == Correction::KeptFresh);
        let of = |g: usize| {
            if !last {
                return self.call_noise(state, g);
            }
            let walk = self.walk_noise(state, g);
            let size = walk.rows();
            let call = if calls { self.call_noise(state, g) } else { Matrix::zeros(size, size) };
            Matrix::from_fn(2 * size, 2 * size, |i, j| match (i < size, j < size) {
                (true, true) => walk[(i, j)],
                (false, false) => call[(i - size, j - size)],
                _ => 0.0,
            })
        };
        (0..self.types.len()).map(of).collect()
    }

    /// The state before the first round, from θ_0.
    fn begin_at(&self, start: &[f64]) -> State {
        let Layout { d, m, n, .. } = self.layout;
        let mut s = vec![0.0; m];
        s[0] = 1.0;
        for &e in &self.layout.e {
            (0..d).for_each(|i| s[e + i] = start[i] - self.facts.optimum()[i]);
        }
        let own = |t: &Type| {
            let field = self.field(t.first);
            let mut v = vec![0.0; n];
            for own in self.layout.own.iter().flatten() {
                (0..d).for_each(|i| v[own + i] = -field[i]);
            }
            v
        };
        let v: Vec<Vec<f64>> = self.types.iter().map(own).collect();
        State::fixed(self.types.iter().map(|t| t.count).collect(), &s, &v)
    }

    /// L: the estimate's distance from θ* is L s.
    fn estimate(&self) -> Matrix {
        let mut out = Matrix::zeros(self.layout.d, self.layout.m);
        for (r, run) in self.scheme.runs.iter().enumerate() {
            out.add(run.weight, &self.layout.pick(self.layout.m, self.layout.e[r], 1.0));
        }
        // Weights need not sum to one (RR Remark 1, as printed).
        let weights = self.scheme.runs.iter().fold(0.0, |sum, run| sum + run.weight);
        if self.scheme.runs.len() > 1 && (weights - 1.0).abs() > 1e-12 {
            (0..self.layout.d)
                .for_each(|i| out[(i, 0)] = (weights - 1.0) * self.facts.optimum()[i]);
        }
        out
    }

    /// A round: the state after it and the sums over the past.
    fn round(&self, state: &State, past: Option<&Past>) -> (State, Option<Past>) {
        if self.scheme.coin.is_some() {
            return self.coin_round(state, past);
        }
        let (mut state, mut past) = (state.clone(), past.cloned());
        for (i, stage) in self.stages.iter().enumerate() {
            past = past.map(|past| past.after(stage, &state.counts));
            state = state.after(stage, &self.noises(&state, i));
        }
        (state, past)
    }

    /// E N⁻¹ Σ ‖θ_c − θ*‖² at the end of the local steps that begin here.
    fn clients_error(&self, state: &State) -> Option<f64> {
        if self.scheme.runs.len() > 1 || self.scheme.cohort < self.facts.clients() {
            return None;
        }
        if self.scheme.coin.is_some() {
            return Some(self.coin_clients_error(state));
        }
        let fresh = self.stages.len() > 1;
        let moved = fresh.then(|| state.after(&self.stages[0], &self.noises(state, 0)));
        let state = moved.as_ref().unwrap_or(state);
        let mut sum = 0.0;
        for (g, course) in self.courses.iter().enumerate() {
            let end = second(
                state,
                g,
                &(course.from_s.clone(), course.from_v.clone()),
                &(course.from_s.clone(), course.from_v.clone()),
            );
            sum += state.counts[g] * trace(&end.plus(1.0, &self.walk_noise(state, g)));
        }
        Some(sum / self.facts.clients() as f64)
    }

    /// E ψ of the server's θ: E‖θ − θ*‖² + N⁻¹ Σ ℓ_c² E‖ξ_c − ξ_c*‖².
    fn lyapunov(&self, state: &State) -> Option<f64> {
        let own = self.layout.own[0].filter(|_| self.scheme.runs.len() == 1)?;
        let d = self.layout.d;
        let at = self.layout.e[0];
        let mut psi = (0..d).fold(0.0, |sum, i| sum + state.s[(at + i, at + i)]);
        for (g, t) in self.types.iter().enumerate() {
            let work = &t.work[0];
            let length = match self.scheme.coin {
                Some(p) => work.step / p,
                None => work.step * work.steps as f64,
            };
            let mut square = 0.0;
            for i in 0..d {
                square += state.p[g][(own + i, own + i)];
                if let Some(mean) = self.layout.mean[0] {
                    square += state.s[(mean + i, mean + i)] - 2.0 * state.x[g][(mean + i, own + i)];
                }
            }
            psi += t.count / self.facts.clients() as f64 * length * length * square;
        }
        Some(psi)
    }

    /// The moments at these rounds, which rise, from θ_0 = `start`.
    pub fn at(&self, start: &[f64], rounds: &[u64]) -> Vec<Moments> {
        let estimate = self.estimate();
        let mut state = self.begin_at(start);
        let mut clients = None;
        let mut averages = Averages::new(self, &state);
        let mut out = Vec::new();
        let mut round = 0;
        for &target in rounds {
            while round < target {
                if round + 1 == target {
                    clients = self.clients_error(&state);
                }
                let (next, past) = self.round(&state, averages.past.as_ref());
                (state, averages.past) = (next, past);
                round += 1;
                averages.see(&state, &estimate, round);
            }
            out.push(self.moments(&state, &averages, round, clients));
        }
        out
    }

    fn moments(
        &self,
        state: &State,
        averages: &Averages,
        round: u64,
        clients: Option<f64>,
    ) -> Moments {
        let estimate = self.estimate();
        let last = sandwich(&estimate, &state.s, &estimate);
        let column: Vec<f64> = (0..state.s.rows()).map(|i| state.s[(i, 0)]).collect();
        let last_mean = estimate.apply(&column);
        let averaged = self.scheme.burn_in.is_some();
        let (square, mean) = match averages.mean() {
            Some((square, mean)) if averaged => (square, mean),
            _ => (last.clone(), last_mean),
        };
        let mut covariance = square.clone();
        covariance.add_outer(-1.0, &mean, &mean);
        let average = match averages.mean() {
            _ if averaged => f64::NAN,
            Some((square, _)) => trace(&square),
            None => trace(&last),
        };
        Moments {
            round,
            sq_error: trace(&square),
            mean,
            covariance,
            sq_error_average: average,
            sq_error_clients: if round == 0 { None } else { clients },
            lyapunov: self.lyapunov(state),
        }
    }
}

/// E y y'ᵀ where y and y' come from s and a type's v by these maps.
fn second(state: &State, g: usize, a: &(Matrix, Matrix), b: &(Matrix, Matrix)) -> Matrix {
    let mut out = sandwich(&a.0, &state.s, &b.0);
    if state.own() > 0 {
        out.add(1.0, &sandwich(&a.0, &state.x[g], &b.1));
        out.add(1.0, &sandwich(&a.1, &state.x[g].transpose(), &b.0));
        out.add(1.0, &sandwich(&a.1, &state.p[g], &b.1));
    }
    out
}

fn pair(runs: usize, r: usize, q: usize) -> usize {
    r * runs - r * (r + 1) / 2 + q
}

fn trace(a: &Matrix) -> f64 {
    (0..a.rows()).fold(0.0, |sum, i| sum + a[(i, i)])
}

/// Sums over past rounds.
struct Averages {
    /// Rounds before the sums begin.
    burn_in: u64,
    count: u64,
    past: Option<Past>,
    /// E (Σ ε)(Σ ε)ᵀ, d × d, and E Σ ε.
    square: Matrix,
    sum: Vec<f64>,
}

impl Averages {
    fn new(exact: &Exact<'_>, state: &State) -> Self {
        let d = exact.layout.d;
        Self {
            burn_in: exact.scheme.burn_in.unwrap_or(0),
            count: 0,
            past: Some(Past::new(d, state)),
            square: Matrix::zeros(d, d),
            sum: vec![0.0; d],
        }
    }

    /// Takes in the state at the end of a round; the past is then up to here.
    fn see(&mut self, state: &State, estimate: &Matrix, round: u64) {
        let Some(past) = self.past.as_mut().filter(|_| round > self.burn_in) else { return };
        let cross = past.s.times(&estimate.transpose());
        self.square.add(1.0, &cross);
        self.square.add(1.0, &cross.transpose());
        self.square.add(1.0, &sandwich(estimate, &state.s, estimate));
        let column: Vec<f64> = (0..state.s.rows()).map(|i| state.s[(i, 0)]).collect();
        axpy(1.0, &estimate.apply(&column), &mut self.sum);
        past.add(estimate, state);
        self.count += 1;
    }

    /// E of the square of the mean of the estimates since the burn-in, and its mean.
    fn mean(&self) -> Option<(Matrix, Vec<f64>)> {
        let n = self.count as f64;
        let mean = || self.sum.iter().map(|x| x / n).collect();
        (self.count > 0).then(|| (self.square.scaled(1.0 / (n * n)), mean()))
    }
}

#[cfg(test)]
mod tests;
