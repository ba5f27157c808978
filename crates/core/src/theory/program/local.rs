//! The effect of a client's local steps on first and second moments, for one run or for
//! two that share their draws.
//!
//! Coordinates are e = θ − θ* and y = (e, 1, w), the state in which a client begins a
//! round; w is the part of its drift that is constant within the round. A local step is
//! e ← M e − γ w − γ noise, and the noise's covariance is linear in E (e, 1)(e', 1)ᵀ.

use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::theory::linear::LocalUpdate;

/// Any number of local steps: e = Π y + noise, and the covariance of the noises of two
/// runs is a linear map of E y y'ᵀ.
#[derive(Clone)]
pub struct Steps {
    d: usize,
    /// Whether the two runs are the same: then the map is symmetric and half is computed.
    same: bool,
    /// Π of each run, d × n.
    ends: [Matrix; 2],
    /// The map, d² × n².
    noise: Matrix,
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

impl Steps {
    /// One local step of client `client` in two runs on the same draws (or in
    /// one run, given twice); `None` if second moments do not close.
    pub fn new(facts: &dyn Facts, client: usize, drives: [Drive; 2], same: bool) -> Option<Self> {
        let d = facts.dim();
        let [a, b] = drives;
        let ends = [one(facts, client, a), one(facts, client, b)];
        let (rows, cols) = (ends[0].cols(), ends[1].cols());
        let scale = a.update.step * b.update.step / a.update.batch.max(b.update.batch) as f64;
        let mut noise = Matrix::zeros(d * d, rows * cols);
        for j in 0..=d {
            for k in 0..=d {
                let mut s = Matrix::zeros(d + 1, d + 1);
                s[(j, k)] = 1.0;
                let out = facts.noise_map(client, &s)?;
                for i in 0..d * d {
                    noise[(i, j * cols + k)] = scale * out[(i / d, i % d)];
                }
            }
        }
        Some(Self { d, same, ends, noise })
    }

    /// Π of the first run (0) or the second (1), d × n.
    pub fn end(&self, run: usize) -> &Matrix {
        &self.ends[run]
    }

    /// M^h of a run, d × d.
    pub fn factor(&self, run: usize) -> Matrix {
        Matrix::from_fn(self.d, self.d, |i, j| self.ends[run][(i, j)])
    }

    /// The covariance of the two runs' noises where E y y'ᵀ = `y`, d × d.
    pub fn covariance(&self, y: &Matrix) -> Matrix {
        Matrix::from_entries(self.d, self.d, self.noise.apply(y.entries()))
    }

    /// These steps, then `next`.
    fn then(&self, next: &Self) -> Self {
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
        let (x, x_other) = (extended(&self.ends[0]), extended(&self.ends[1]));
        let (turned, n) = (x.transpose(), x_other.cols());
        self.mirrored(|rows| {
            let mut out = Matrix::zeros(rows.len(), map.cols());
            for (r, &i) in rows.iter().enumerate() {
                let row = Matrix::from_entries(x.rows(), n, map.row(i).to_vec());
                let row = turned.times(&row).times(&x_other);
                for k in 0..map.cols() {
                    out[(r, k)] = row.entries()[k];
                }
            }
            out
        })
    }

    /// These steps, `count` times in a row.
    pub fn times(&self, count: u64) -> Self {
        let mut all: Option<Self> = None;
        for bit in (0..u64::BITS - count.leading_zeros()).rev() {
            all = all.map(|steps| steps.then(&steps));
            if count >> bit & 1 == 1 {
                all = Some(all.map_or_else(|| self.clone(), |steps| steps.then(self)));
            }
        }
        all.unwrap_or_else(|| self.clone())
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
    /// From one local step.
    pub fn new(step: &Steps, probability: f64) -> Self {
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
        let mut steps = step.clone();
        let mut powers = vec![extended(&steps.ends[0])];
        let mut weight = rest;
        while weight > 1e-20 {
            // The sum over the first n steps is known; add the next n.
            end.add(weight, &end.times(&extended(&steps.ends[0])));
            let ee = Matrix::from_fn(d * d, d * d, |i, k| second[(i, k / d * n + k % d)]);
            let mut later = steps.pulled_back(&second);
            later.add(1.0, &steps.mirrored(|rows| rows_of(&ee, rows).times(&steps.noise)));
            second.add(weight, &later);
            steps = steps.then(&steps);
            powers.push(extended(&steps.ends[0]));
            weight *= weight;
        }
        Self { probability, end, second, powers }
    }

    /// E e eᵀ of one client where E y yᵀ = `y`, d × d.
    pub fn own(&self, y: &Matrix) -> Matrix {
        let d = self.end.rows();
        Matrix::from_entries(d, d, self.second.apply(y.entries()))
    }

    /// E e e'ᵀ of two clients where E y y'ᵀ = `y`, d × d: independent given
    /// the number of steps, which they share.
    pub fn pair(&self, other: &Self, y: &Matrix) -> Matrix {
        let d = self.end.rows();
        let mut sum = self.powers[0].times(y).times(&other.powers[0].transpose());
        let mut weight = 1.0 - self.probability;
        for (mine, theirs) in self.powers.iter().zip(&other.powers) {
            if weight <= 1e-20 {
                break;
            }
            let later = mine.times(&sum).times(&theirs.transpose());
            sum.add(weight, &later);
            weight *= weight;
        }
        Matrix::from_fn(d, d, |i, j| self.probability * sum[(i, j)])
    }
}
