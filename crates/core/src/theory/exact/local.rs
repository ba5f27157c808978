//! The effect of a client's local steps on first and second moments, for one run or for two runs that
//! share their draws.
//!
//! A client begins its local steps in the state y = (e, 1, w) of n = 2d + 1 numbers: e = θ − θ*, and w is
//! the part of the drift that is constant during the steps. If w is always F̄_k(θ*), the state is (e, 1)
//! with n = d + 1. A local step is e ← M e − γ w − γ ε, THEORY (2.1), and the covariance of the noise ε is linear
//! in E (e, 1)(e', 1)ᵀ, THEORY (1.2). Maps of E y y'ᵀ, an n × n' matrix, have one column for each of its
//! entries, row by row.

use super::layers;
use crate::kernel::axpy;
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::round_program::LocalUpdate;
use std::sync::{Arc, OnceLock};

/// Any number h of local steps of one client in two runs: the ends are e_h = Π_h y + n_h, and the covariance
/// E n_h n_h'ᵀ of their noises is the noise map 𝒩_h of E y y'ᵀ. One run is given twice.
#[derive(Clone)]
pub struct Steps {
    d: usize,
    /// Whether the two runs are the same: then E n nᵀ is symmetric, and half of the noise map is computed.
    same: bool,
    /// What the steps multiply (1, w) in y by: 1, unless they are [discounted](Self::discounted).
    rest: f64,
    /// Π_h of each run, d × n: THEORY (2.2) for one step, THEORY (2.5) for several.
    pub ends: [Matrix; 2],
    /// 𝒩_h, d² × n n', THEORY (2.6); without rows where means alone are followed.
    pub noise: Matrix,
}

/// What drives a client in one run: its local update, and whether it has a drift of its own.
#[derive(Clone, Copy)]
pub struct Drive {
    /// Step size γ, number of steps E, batch B and proximal term μ of the client.
    pub update: LocalUpdate,
    /// Whether w is part of y, because there is a correction or a proximal term; otherwise w is the constant
    /// F̄_k(θ*).
    pub pulled: bool,
}

/// n, the length of y in d dimensions.
pub fn length(d: usize, pulled: bool) -> usize {
    if pulled { 2 * d + 1 } else { d + 1 }
}

/// Π_1 of one local step of a client, d × n: (M, 0, −γI), or (M, −γ F̄_k(θ*)) without a drift in y.
/// THEORY (2.2), with M of THEORY (2.1).
fn end_of_one(facts: &dyn Facts, client: usize, drive: Drive) -> Matrix {
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

/// C_k of THEORY (1.2) as a matrix, d² × (d+1)²: the covariance of a client's oracle at two points with the same
/// draw, from E (e, 1)(e', 1)ᵀ. `None` if second moments do not close.
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
    /// One local step of client `client` in two runs on the same draws (or in one run, given twice): Π_1 of
    /// THEORY (2.2) and 𝒩_1 of THEORY (2.3), where `oracle` is the matrix of C_k that [`oracle_noise`]
    /// computes. 𝒩_1 reads (e, 1) of each y alone. Without `oracle` means alone are followed.
    pub fn new(
        (facts, client): (&dyn Facts, usize),
        oracle: Option<&Matrix>,
        drives: [Drive; 2],
        same: bool,
    ) -> Self {
        let d = facts.dim();
        let [a, b] = drives;
        let ends = [end_of_one(facts, client, a), end_of_one(facts, client, b)];
        let rows = ends[0].cols();
        let cols = ends[1].cols();
        let Some(oracle) = oracle else {
            return Self { d, same, rest: 1.0, ends, noise: Matrix::zeros(0, rows * cols) };
        };
        let scale = a.update.step * b.update.step / a.update.batch.max(b.update.batch) as f64;
        let mut noise = Matrix::zeros(d * d, rows * cols);
        for i in 0..d * d {
            for (j, k) in (0..=d).flat_map(|j| (0..=d).map(move |k| (j, k))) {
                noise[(i, j * cols + k)] = scale * oracle[(i, j * (d + 1) + k)];
            }
        }
        Self { d, same, rest: 1.0, ends, noise }
    }

    /// These steps, after which all of y is multiplied by √(1 − p) = `discount`. Then the map of second
    /// moments is (1 − p) T, whose powers are the terms of THEORY (2.9): where steps expand, weights would
    /// underflow and powers of T overflow.
    fn discounted(&self, discount: f64) -> Self {
        Self {
            rest: self.rest * discount,
            ends: self.ends.clone().map(|end| end.scaled(discount)),
            noise: self.noise.scaled(discount * discount),
            ..*self
        }
    }

    /// Whether these steps have no noise map, because means alone are followed.
    fn is_of_means(&self) -> bool {
        self.noise.rows() == 0
    }

    /// The largest coefficient by which the steps map E e eᵀ to itself, through M_h ⊗ M_h or through the
    /// noise map. It vanishes as the number of steps grows if and only if second moments contract.
    fn size(&self) -> f64 {
        let cols = self.ends[1].cols();
        let mut most = largest(&self.factor(0)) * largest(&self.factor(1));
        for i in 0..self.noise.rows() {
            for k in 0..self.d * self.d {
                most = maximum(most, self.noise[(i, k / self.d * cols + k % self.d)].abs());
            }
        }
        most
    }

    /// M_h of a run, d × d: the first d columns of Π_h.
    fn factor(&self, run: usize) -> Matrix {
        Matrix::from_fn(self.d, self.d, |i, j| self.ends[run][(i, j)])
    }

    /// These steps and then the steps `next`: THEORY (2.5), (2.6).
    pub fn then(&self, next: &Self) -> Self {
        let d = self.d;
        let ends = [0, 1].map(|r| next.ends[r].times(&extended(&self.ends[r], self.rest)));
        let rest = self.rest * next.rest;
        if self.is_of_means() {
            return Self { rest, ends, ..self.clone() };
        }
        let own = self.pulled_back(&next.noise);
        // The noise n of these steps becomes M n, and its covariance adds to what the later noise reads.
        let a = next.factor(0);
        let b = next.factor(1);
        let cols = self.ends[1].cols();
        let propagate = Matrix::from_fn(d * d, d * d, |i, k| {
            a[(i / d, k / d)] * b[(i % d, k % d)] + next.noise[(i, k / d * cols + k % d)]
        });
        let mut noise = self.mirrored(|rows| rows_of(&propagate, rows).times(&self.noise));
        noise.add(1.0, &own);
        Self { d, same: self.same, rest, ends, noise }
    }

    /// A map of d² rows and as many columns as the noise map, of which `rows_of_map` computes the rows with these
    /// numbers. Row i d + j gives entry (i, j) of a d × d matrix; if that is symmetric, the rows with i ≤ j are
    /// computed and mirrored.
    fn mirrored(&self, rows_of_map: impl Fn(&[usize]) -> Matrix) -> Matrix {
        let d = self.d;
        let rows: Vec<usize> = (0..d * d).filter(|i| !self.same || i / d <= i % d).collect();
        let computed = rows_of_map(&rows);
        let n = self.ends[1].cols();
        let cols = self.noise.cols();
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

    /// `map`, a map of E y y'ᵀ after these steps, as a map of E y y'ᵀ before them, without what their noise adds:
    /// Y ↦ `map`(X_h Y X_h'ᵀ), the first term of THEORY (2.6).
    fn pulled_back(&self, map: &Matrix) -> Matrix {
        // y after is X y with X = (Π; 0 rest·I), so a row R of weights of y y'ᵀ becomes Xᵀ R X'.
        let [a, b] = &self.ends;
        let d = self.d;
        let m = a.cols();
        let n = b.cols();
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
                        false => axpy(self.rest, from, &mut left[k * n..][..n]),
                    }
                }
                for (left, to) in left.chunks_exact(n).zip(out.row_mut(r).chunks_exact_mut(n)) {
                    (0..d).for_each(|k| axpy(left[k], b.row(k), to));
                    axpy(self.rest, &left[d..], &mut to[d..]);
                }
            }
            out
        })
    }

    /// These steps, `count` times in a row (at least once): by repeated doubling of THEORY (2.5), (2.6).
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

    /// These steps, after which run number `run` alone takes the steps `extra`. The draws of the extra steps are
    /// not shared, so the covariance of the two noises is only multiplied by M_extra: THEORY (2.7).
    pub fn alone(&self, run: usize, extra: &Self) -> Self {
        let d = self.d;
        let mut ends = self.ends.clone();
        ends[run] = extra.ends[run].times(&extended(&self.ends[run], self.rest));
        if self.is_of_means() {
            return Self { ends, ..self.clone() };
        }
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
        Self { d, same: false, rest: self.rest, ends, noise }
    }
}

/// X_h, n × n, which maps y before the steps to y after them without noise: THEORY (2.4), where `end` is Π_h, and
/// (1, w) is multiplied by `rest`, which is 1 unless steps are discounted.
fn extended(end: &Matrix, rest: f64) -> Matrix {
    let d = end.rows();
    let n = end.cols();
    Matrix::from_fn(
        n,
        n,
        |i, j| {
            if i < d { end[(i, j)] } else { rest * f64::from(u8::from(i == j)) }
        },
    )
}

/// The largest entry in size; NaN if one is NaN.
pub(super) fn largest(matrix: &Matrix) -> f64 {
    matrix.entries().iter().fold(0.0, |most, x| maximum(most, x.abs()))
}

/// The larger number; NaN if one is NaN, which `f64::max` would pass over.
fn maximum(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}

/// These rows of a matrix.
fn rows_of(matrix: &Matrix, rows: &[usize]) -> Matrix {
    Matrix::from_fn(rows.len(), matrix.cols(), |i, j| matrix[(rows[i], j)])
}

/// Terms of a series whose weight, or whose map of second moments, has a size of at most this are neglected.
pub(super) const NEGLIGIBLE: f64 = 1e-20;
/// What steps of a neglected probability may add where their sizes are not discounted.
const SMALL: f64 = 1e-17;
/// The size at which the powers of a local step count as growing.
const GROWN: f64 = 1e40;
/// The most doublings of a discounted local step. One that has not vanished by then is taken for one
/// that never does: rounding errors could decide about it.
const MOST_DOUBLINGS: u32 = 40;

/// What does not exist after a geometric number of local steps, because a sum is infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InfiniteMoments {
    /// Second moments: (1 − p) times the spectral radius of their map in a local step is not below 1.
    Second,
    /// Means as well, since this is so of the map of means.
    All,
}

/// The local steps of a client until the next communication under a coin of probability p: moments after a
/// geometric number K of steps, which all clients share.
///
/// The series THEORY (2.8), (2.9) are summed by doubling. That of second moments is finite if and only if
/// (1 − p) ρ(T) < 1, where T is the map of second moments in a local step. Where local steps expand, its
/// terms are small only as products of a small weight and a large power; there each step is discounted by
/// √(1 − p), so that weight and power are one number.
pub struct GeometricSteps {
    /// p.
    probability: f64,
    /// The moments that are infinite after the steps, if any are.
    pub infinite: Option<InfiniteMoments>,
    /// What each step multiplies y by in `powers`.
    discount: f64,
    /// Π̄ = E Π_K, d × n: THEORY (2.8).
    pub end: Matrix,
    /// S, which maps E y yᵀ of one client to E e eᵀ, d² × n²: THEORY (2.9). Without rows if second moments
    /// are not followed or infinite.
    second: Matrix,
    /// X_h of THEORY (2.4) for h = 1, 2, 4, … steps, discounted.
    powers: Vec<Matrix>,
}

impl GeometricSteps {
    /// How often a local step that does not expand must be doubled, so that (1 − p)^h of the number h of steps is
    /// negligible.
    pub fn doublings(probability: f64) -> u32 {
        let mut weight = 1.0 - probability;
        let mut doublings = 0;
        while weight > NEGLIGIBLE {
            weight *= weight;
            doublings += 1;
        }
        doublings
    }

    /// The moments after a geometric number of steps, from 1, 2, 4, … local steps, the last after as many
    /// [doublings](Self::doublings) as the probability needs.
    pub fn new(powers: &[Arc<Steps>], probability: f64) -> Self {
        let step = &powers[0];
        let last = &powers[powers.len() - 1];
        let tails = 1.0 - probability;
        let weight = libm::pow(tails, libm::ldexp(1.0, powers.len() as i32 - 1));
        if step.is_of_means() {
            return Self::of_means(step, probability, None);
        }
        // A coin that always falls leaves one step, whatever its size.
        if tails == 0.0 || weight * last.size() <= SMALL {
            return Self::summed(powers, probability, 1.0);
        }
        let discount = libm::sqrt(tails);
        let mut powers = vec![Arc::new(step.discounted(discount))];
        for _ in 0..MOST_DOUBLINGS {
            let last = powers[powers.len() - 1].clone();
            let size = last.size();
            if size <= NEGLIGIBLE && last.rest * last.rest <= NEGLIGIBLE {
                return Self::summed(&powers, probability, discount);
            }
            if size.is_nan() || size > GROWN {
                break;
            }
            powers.push(Arc::new(last.then(&last)));
        }
        Self::of_means(step, probability, Some(InfiniteMoments::Second))
    }

    /// Sums the series THEORY (2.8), (2.9), from the powers 1, 2, 4, … of a step with this discount: by doubling,
    /// S_{2n} = S_n + (1 − p)ⁿ S_n Tⁿ, and the same for Π̄.
    fn summed(powers: &[Arc<Steps>], probability: f64, discount: f64) -> Self {
        let step = &powers[0];
        let d = step.d;
        let n = step.ends[0].cols();
        let tails = 1.0 - probability;
        let mut end = step.ends[0].scaled(probability / discount);
        let products = |steps: &Steps| {
            let end = &steps.ends[0];
            let mut out =
                Matrix::from_fn(d * d, n * n, |i, k| end[(i / d, k / n)] * end[(i % d, k % n)]);
            out.add(1.0, &steps.noise);
            out
        };
        let square = discount * discount;
        let mut second = products(step).scaled(probability / square);
        // What the powers do not contain of (1 − p)ⁿ, for means and for second moments.
        let mut weight = tails / discount;
        let mut of_squares = tails / square;
        for steps in &powers[..powers.len() - 1] {
            // The sum over the first n steps is known; add the next n.
            end.add(weight, &end.times(&extended(&steps.ends[0], steps.rest)));
            let ee = Matrix::from_fn(d * d, d * d, |i, k| second[(i, k / d * n + k % d)]);
            let mut later = steps.pulled_back(&second);
            later.add(1.0, &steps.mirrored(|rows| rows_of(&ee, rows).times(&steps.noise)));
            second.add(of_squares, &later);
            weight *= weight;
            of_squares *= of_squares;
        }
        let powers = powers.iter().map(|steps| extended(&steps.ends[0], steps.rest)).collect();
        Self { probability, infinite: None, discount, end, second, powers }
    }

    /// Π̄ of THEORY (2.8) alone, where second moments are not followed or `infinite`. It is not a number if the
    /// series of means is infinite too.
    fn of_means(step: &Steps, probability: f64, infinite: Option<InfiniteMoments>) -> Self {
        let d = step.d;
        let n = step.ends[0].cols();
        let tails = 1.0 - probability;
        let none = |infinite, end| {
            let second = Matrix::zeros(0, n * n);
            Self { probability, infinite, discount: 1.0, end, second, powers: Vec::new() }
        };
        let mut end = step.ends[0].scaled(probability);
        let mut power = extended(&step.ends[0].scaled(tails), tails);
        for _ in 0..MOST_DOUBLINGS {
            let size = largest(&power);
            if size <= NEGLIGIBLE {
                return none(infinite, end);
            }
            if size.is_nan() || size > GROWN {
                break;
            }
            end.add(1.0, &end.times(&power));
            power = power.times(&power);
        }
        let unknown = Matrix::from_fn(d, n, |_, _| f64::NAN);
        none(Some(InfiniteMoments::All), unknown)
    }

    /// S(Y) = E e eᵀ at the end of one client, d × d, where Y = `y` is its E y yᵀ: THEORY (2.9).
    pub fn second_of_one(&self, y: &Matrix, layers: usize) -> Matrix {
        layers::mapped(&self.second, y, self.end.rows(), layers)
    }
}

/// Two clients that share the number K of their steps, and no other draw.
pub struct CoinPair {
    /// The first.
    pub mine: Arc<GeometricSteps>,
    /// The second.
    pub theirs: Arc<GeometricSteps>,
    /// J, which maps E y y'ᵀ to E e e'ᵀ, d² × n n', once it was asked for.
    map: OnceLock<Matrix>,
}

impl CoinPair {
    /// The pair of two clients, or a client with another of its type.
    pub fn new(mine: &Arc<GeometricSteps>, theirs: &Arc<GeometricSteps>) -> Arc<Self> {
        Arc::new(Self { mine: mine.clone(), theirs: theirs.clone(), map: OnceLock::new() })
    }

    /// J(Y) = E e e'ᵀ at the ends of the two clients, d × d, where Y = `y` is their E y y'ᵀ: THEORY (2.10).
    /// Given K their ends are independent.
    pub fn second_of_two(&self, y: &Matrix, layers: usize) -> Matrix {
        let d = self.mine.end.rows();
        if layers > 1 {
            return layers::mapped(self.map.get_or_init(|| self.map()), y, d, layers);
        }
        let sum = self.summed(y.clone(), |y, a, b| a.times(y).times(&b.transpose()));
        let first = self.mine.probability / self.discount();
        Matrix::from_fn(d, d, |i, j| first * sum[(i, j)])
    }

    /// What each pair of steps multiplies y y'ᵀ by in the powers: the product of the discounts of both clients.
    fn discount(&self) -> f64 {
        self.mine.discount * self.theirs.discount
    }

    /// Σ_k (1 − p)^{k−1} of what k steps make of `begin`, THEORY (2.10), by doubling; `step` applies the powers
    /// X_h and X_h' of the two clients to a partial sum. The result has the discount of one step too much.
    fn summed(&self, begin: Matrix, step: impl Fn(&Matrix, &Matrix, &Matrix) -> Matrix) -> Matrix {
        let mut mine = MatrixPowers::new(&self.mine);
        let mut theirs = MatrixPowers::new(&self.theirs);
        let mut sum = step(&begin, &mine.power, &theirs.power);
        let mut weight = (1.0 - self.mine.probability) / self.discount();
        for _ in 0..MOST_DOUBLINGS {
            if weight * largest(&mine.power) * largest(&theirs.power) <= NEGLIGIBLE {
                break;
            }
            let later = step(&sum, &mine.power, &theirs.power);
            sum.add(weight, &later);
            weight *= weight;
            mine.square();
            theirs.square();
        }
        sum
    }

    /// J as a matrix, d² × n n', for second moments of several layers.
    fn map(&self) -> Matrix {
        let d = self.mine.end.rows();
        let n = self.mine.end.cols();
        let first = self.mine.probability / self.discount();
        let ends = Matrix::from_fn(d * d, n * n, |i, k| {
            if (i / d, i % d) == (k / n, k % n) { first } else { 0.0 }
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

/// X_h of a client for h = 1, 2, 4, … steps, THEORY (2.4), one after another. A client whose own series needs few
/// powers may meet one whose series needs more, which are squares of the last.
struct MatrixPowers<'a> {
    known: &'a [Matrix],
    power: Matrix,
}

impl<'a> MatrixPowers<'a> {
    /// Begins with one step.
    fn new(steps: &'a GeometricSteps) -> Self {
        Self { known: &steps.powers[1..], power: steps.powers[0].clone() }
    }

    /// Goes on to twice as many steps.
    fn square(&mut self) {
        self.power = match self.known {
            [next, rest @ ..] => {
                self.known = rest;
                next.clone()
            }
            [] => self.power.times(&self.power),
        };
    }
}
