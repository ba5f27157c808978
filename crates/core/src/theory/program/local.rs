//! The effect of a client's local steps on first and second moments, for one run or for
//! two that share their draws.
//!
//! Coordinates are e = θ − θ* and y = (e, 1, w), the state in which a client begins a
//! round; w is the part of its drift that is constant within the round. A local step is
//! e ← M e − γ w − γ noise, and the noise's covariance is linear in E (e, 1)(e', 1)ᵀ.

use super::layers;
use crate::kernel::axpy;
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::theory::linear::LocalUpdate;
use std::sync::{Arc, OnceLock};

/// Any number of local steps: e = Π y + noise, and the covariance of the noises of two
/// runs is a linear map of E y y'ᵀ.
#[derive(Clone)]
pub struct Steps {
    d: usize,
    /// Whether the two runs are the same: then the map is symmetric and half is computed.
    same: bool,
    /// Π of each run, d × n.
    pub ends: [Matrix; 2],
    /// The map, d² × n².
    pub noise: Matrix,
}

/// The local update of one run, and the form of its drift.
#[derive(Clone, Copy)]
pub struct Drive {
    /// γ, E, B and μ of the client.
    pub update: LocalUpdate,
    /// Whether w has d entries in y; otherwise it is the constant F̄_c(θ*).
    pub pulled: bool,
}

/// n, the length of y.
pub fn length(d: usize, pulled: bool) -> usize {
    if pulled { 2 * d + 1 } else { d + 1 }
}

/// Π of one local step.
fn one(facts: &dyn Facts, client: usize, drive: Drive) -> Matrix {
    let d = facts.dim();
    let LocalUpdate { step, proximal, .. } = drive.update;
    let jacobian = facts.jacobian(client);
    let field = facts.field_at_optimum(client);
    Matrix::from_fn(d, length(d, drive.pulled), |i, j| {
        let diagonal = f64::from(u8::from(i == j));
        match j {
            _ if j < d => diagonal * (1.0 - step * proximal) - step * jacobian[(i, j)],
            _ if j == d && drive.pulled => 0.0,
            _ if j == d => -step * field[i],
            _ => -step * f64::from(u8::from(i + d + 1 == j)),
        }
    })
}

/// The covariance of a client's oracle at two points as a map of E (e, 1)(e', 1)ᵀ, d² × (d+1)²;
/// `None` if second moments do not close.
pub fn oracle_noise(facts: &dyn Facts, client: usize) -> Option<Matrix> {
    let d = facts.dim();
    let mut map = Matrix::zeros(d * d, (d + 1) * (d + 1));
    for j in 0..=d {
        for k in 0..=d {
            let mut unit = Matrix::zeros(d + 1, d + 1);
            unit[(j, k)] = 1.0;
            let out = facts.noise_map(client, &unit)?;
            for i in 0..d * d {
                map[(i, j * (d + 1) + k)] = out[(i / d, i % d)];
            }
        }
    }
    Some(map)
}

impl Steps {
    /// One local step of client `client` in two runs on the same draws (or in one run, given twice),
    /// where the oracle's noise has this [map](oracle_noise).
    pub fn new(
        (facts, client): (&dyn Facts, usize),
        oracle: &Matrix,
        drives: [Drive; 2],
        same: bool,
    ) -> Self {
        let d = facts.dim();
        let [a, b] = drives;
        let ends = [one(facts, client, a), one(facts, client, b)];
        let (rows, cols) = (ends[0].cols(), ends[1].cols());
        let scale = a.update.step * b.update.step / a.update.batch.max(b.update.batch) as f64;
        let mut noise = Matrix::zeros(d * d, rows * cols);
        for i in 0..d * d {
            for (j, k) in (0..=d).flat_map(|j| (0..=d).map(move |k| (j, k))) {
                noise[(i, j * cols + k)] = scale * oracle[(i, j * (d + 1) + k)];
            }
        }
        Self { d, same, ends, noise }
    }

    /// M^h of a run, d × d.
    pub fn factor(&self, run: usize) -> Matrix {
        Matrix::from_fn(self.d, self.d, |i, j| self.ends[run][(i, j)])
    }

    /// These steps, then `next`.
    pub fn then(&self, next: &Self) -> Self {
        let d = self.d;
        let own = self.pulled_back(&next.noise);
        // The earlier noise is mapped to M E M'ᵀ, and causes noise in the later steps.
        let (a, b) = (next.factor(0), next.factor(1));
        let cols = self.ends[1].cols();
        let propagate = Matrix::from_fn(d * d, d * d, |i, k| {
            a[(i / d, k / d)] * b[(i % d, k % d)] + next.noise[(i, k / d * cols + k % d)]
        });
        let mut noise = self.mirrored(|rows| rows_of(&propagate, rows).times(&self.noise));
        noise.add(1.0, &own);
        let ends = [0, 1].map(|r| next.ends[r].times(&extended(&self.ends[r])));
        Self { d, same: self.same, ends, noise }
    }

    /// A map whose rows are computed by `rows_of_map`; if it is symmetric, the rows i ≤ j are
    /// computed and mirrored.
    fn mirrored(&self, rows_of_map: impl Fn(&[usize]) -> Matrix) -> Matrix {
        let d = self.d;
        let rows: Vec<usize> = (0..d * d).filter(|i| !self.same || i / d <= i % d).collect();
        let computed = rows_of_map(&rows);
        let (n, cols) = (self.ends[1].cols(), self.noise.cols());
        let mut out = Matrix::zeros(d * d, cols);
        for (r, &i) in rows.iter().enumerate() {
            for k in 0..cols {
                out[(i, k)] = computed[(r, k)];
                if self.same {
                    out[(i % d * d + i / d, k % n * n + k / n)] = computed[(r, k)];
                }
            }
        }
        out
    }

    /// A map of E y y'ᵀ after these steps as a map of E y y'ᵀ before them, without the
    /// contribution of their noise.
    fn pulled_back(&self, map: &Matrix) -> Matrix {
        // y after is X y with X = (Π; 0 I), so a row R of weights of y y'ᵀ becomes Xᵀ R X'.
        let ([a, b], d) = (&self.ends, self.d);
        let (m, n) = (a.cols(), b.cols());
        self.mirrored(|rows| {
            let mut out = Matrix::zeros(rows.len(), map.cols());
            let mut left = vec![0.0; m * n];
            for (r, &i) in rows.iter().enumerate() {
                let from = map.row(i).chunks_exact(n);
                left.fill(0.0);
                for (k, from) in from.enumerate() {
                    match k < d {
                        true => left
                            .chunks_exact_mut(n)
                            .zip(a.row(k))
                            .for_each(|(left, x)| axpy(*x, from, left)),
                        false => axpy(1.0, from, &mut left[k * n..][..n]),
                    }
                }
                for (left, to) in left.chunks_exact(n).zip(out.row_mut(r).chunks_exact_mut(n)) {
                    (0..d).for_each(|k| axpy(left[k], b.row(k), to));
                    to[d..].iter_mut().zip(&left[d..]).for_each(|(to, x)| *to += x);
                }
            }
            out
        })
    }

    /// These steps, `count` times in a row.
    pub fn times(&self, count: u64) -> Self {
        let mut all = self.clone();
        for bit in (0..count.max(1).ilog2()).rev() {
            all = all.then(&all);
            if count >> bit & 1 == 1 {
                all = all.then(self);
            }
        }
        all
    }

    /// These steps, after which run number `run` alone takes the steps `extra`. Their
    /// draws are not shared, so the covariance of the two noises only contracts.
    pub fn alone(&self, run: usize, extra: &Self) -> Self {
        let d = self.d;
        let mut ends = self.ends.clone();
        ends[run] = extra.ends[run].times(&extended(&self.ends[run]));
        let factor = extra.factor(run);
        let mut noise = Matrix::zeros(d * d, self.noise.cols());
        for i in 0..d * d {
            for k in 0..d {
                let (weight, from) = if run == 0 {
                    (factor[(i / d, k)], k * d + i % d)
                } else {
                    (factor[(i % d, k)], i / d * d + k)
                };
                for c in 0..noise.cols() {
                    noise[(i, c)] += weight * self.noise[(from, c)];
                }
            }
        }
        Self { d, same: false, ends, noise }
    }
}

/// y after from y before: e = Π y, the rest unchanged.
pub fn extended(end: &Matrix) -> Matrix {
    let (d, n) = (end.rows(), end.cols());
    Matrix::from_fn(n, n, |i, j| if i < d { end[(i, j)] } else { f64::from(u8::from(i == j)) })
}

fn rows_of(matrix: &Matrix, rows: &[usize]) -> Matrix {
    Matrix::from_fn(rows.len(), matrix.cols(), |i, j| matrix[(rows[i], j)])
}

/// The probability of so many local steps is neglected.
const NEGLIGIBLE: f64 = 1e-20;

/// Local steps until the next communication under a coin of probability p: moments at a geometric
/// number of steps, which all clients share.
pub struct GeometricSteps {
    /// p.
    probability: f64,
    /// E Π, d × n.
    pub end: Matrix,
    /// E e eᵀ as a map of E y yᵀ, d² × n².
    second: Matrix,
    /// y after 1, 2, 4, … steps from y before.
    powers: Vec<Matrix>,
}

impl GeometricSteps {
    /// The powers of a local step that are needed beyond the first.
    pub fn doublings(probability: f64) -> u32 {
        let (mut weight, mut doublings) = (1.0 - probability, 0);
        while weight > NEGLIGIBLE {
            weight *= weight;
            doublings += 1;
        }
        doublings
    }

    /// From 1, 2, 4, … local steps.
    pub fn new(powers: &[Arc<Steps>], probability: f64) -> Self {
        let step = &powers[0];
        let (d, n) = (step.d, step.ends[0].cols());
        let rest = 1.0 - probability;
        let mut end = step.ends[0].scaled(probability);
        let products = |steps: &Steps| {
            let end = &steps.ends[0];
            let mut out =
                Matrix::from_fn(d * d, n * n, |i, k| end[(i / d, k / n)] * end[(i % d, k % n)]);
            out.add(1.0, &steps.noise);
            out
        };
        let mut second = products(step).scaled(probability);
        let mut weight = rest;
        for steps in &powers[..powers.len() - 1] {
            // The sum over the first n steps is known; add the next n.
            end.add(weight, &end.times(&extended(&steps.ends[0])));
            let ee = Matrix::from_fn(d * d, d * d, |i, k| second[(i, k / d * n + k % d)]);
            let mut later = steps.pulled_back(&second);
            later.add(1.0, &steps.mirrored(|rows| rows_of(&ee, rows).times(&steps.noise)));
            second.add(weight, &later);
            weight *= weight;
        }
        let powers = powers.iter().map(|steps| extended(&steps.ends[0])).collect();
        Self { probability, end, second, powers }
    }

    /// E e eᵀ of one client where E y yᵀ = `y`, d × d.
    pub fn own(&self, y: &Matrix, layers: usize) -> Matrix {
        layers::mapped(&self.second, y, self.end.rows(), layers)
    }
}

/// Two clients that share the number of their steps.
pub struct CoinPair {
    /// The first.
    pub mine: Arc<GeometricSteps>,
    /// The second.
    pub theirs: Arc<GeometricSteps>,
    /// E e e'ᵀ as a map of E y y'ᵀ, d² × n², once it was asked for.
    map: OnceLock<Matrix>,
}

impl CoinPair {
    /// Two clients.
    pub fn new(mine: &Arc<GeometricSteps>, theirs: &Arc<GeometricSteps>) -> Arc<Self> {
        Arc::new(Self { mine: mine.clone(), theirs: theirs.clone(), map: OnceLock::new() })
    }

    /// E e e'ᵀ where E y y'ᵀ = `y`, d × d: independent given the number of steps.
    pub fn ends(&self, y: &Matrix, layers: usize) -> Matrix {
        let d = self.mine.end.rows();
        if layers > 1 {
            return layers::mapped(self.map.get_or_init(|| self.map()), y, d, layers);
        }
        let sum = self.summed(y.clone(), |y, a, b| a.times(y).times(&b.transpose()));
        Matrix::from_fn(d, d, |i, j| self.mine.probability * sum[(i, j)])
    }

    /// Σ (1 − p)^(k−1) of what k steps make of something, where `step` is what one of their powers does.
    fn summed(&self, begin: Matrix, step: impl Fn(&Matrix, &Matrix, &Matrix) -> Matrix) -> Matrix {
        let (mine, theirs) = (&self.mine.powers, &self.theirs.powers);
        let mut sum = step(&begin, &mine[0], &theirs[0]);
        let mut weight = 1.0 - self.mine.probability;
        for (mine, theirs) in mine.iter().zip(theirs) {
            if weight <= NEGLIGIBLE {
                break;
            }
            let later = step(&sum, mine, theirs);
            sum.add(weight, &later);
            weight *= weight;
        }
        sum
    }

    fn map(&self) -> Matrix {
        let (d, n) = (self.mine.end.rows(), self.mine.end.cols());
        let ends = Matrix::from_fn(d * d, n * n, |i, k| {
            if (i / d, i % d) == (k / n, k % n) { self.mine.probability } else { 0.0 }
        });
        // Each row is a matrix R of weights of y y'ᵀ, of which the steps make AᵀRB.
        self.summed(ends, |rows, a, b| {
            let turned = a.transpose();
            let row = |i: usize| Matrix::from_entries(n, n, rows.row(i).to_vec());
            let each = (0..d * d).flat_map(|i| turned.times(&row(i)).times(b).into_entries());
            Matrix::from_entries(d * d, n * n, each.collect())
        })
    }
}
