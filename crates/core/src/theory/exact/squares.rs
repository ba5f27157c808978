//! The second moments of a program's cycle as one linear map, in which the number 1 is a coordinate,
//! so that the errors after any number of rounds follow from powers of a matrix.
//!
//! With u = (1, x), where x are the free coordinates of which estimates and noises are made, the numbers z of
//! THEORY (6.1) are the entries of E u uᵀ on and above the diagonal, row by row, and then those of D_g of
//! each type, the covariance of a client's deviations. The cycle is the rounds that repeat for ever, and the lead the
//! rounds before it. Coordinates are free if no others determine them. A matrix of second moments may have several
//! layers: then each entry is as many numbers next to each other ([`super::layers`]).
//!
//! ```text
//! THEORY (6.1)   z ← Q z over a cycle,  E‖θ_t − θ*‖² = r_phase · z  after each of its rounds
//! THEORY (6.4)   E‖θ_t − θ*‖² ≥ ‖E θ_t − θ*‖²
//! THEORY (6.5)   stationary error ≥ v + tr( W ( Σ_{k≥0} Mᵏ R(m) (Mᵏ)ᵀ ) Wᵀ )
//! ```
//!
//! In the last line m is the stationary mean of the state, M its linear map over a cycle, R(m) the covariance that a
//! cycle adds to a state that is m for certain, W the map from the state to the estimate after the last round of the
//! cycle, and v the error of that round from the state m.

use super::coin::NEGLIGIBLE;
use super::error::MomentsError;
use super::known::KnownSteps;
use super::layers::{self, trace};
use super::local::largest;
use super::moments::ProgramMoments;
use super::reduction::Echelon;
use super::setup::{ProgramState, Setup};
use super::stages::PreparedRound;
use super::stationary::{Cycle, MOST_COORDINATES, numbers_at, put_lifted};
use super::types::Type;
use crate::kernel::{difference, dot, squared_distance};
use crate::linalg::{Matrix, SymmetricBlocks, solve};
use crate::problem::Facts;
use crate::round_program::Program;
use std::cell::RefCell;
use std::rc::Rc;

/// The distribution of the error θ_0 − θ* of the start.
#[derive(Clone, Debug, PartialEq)]
pub enum StartError {
    /// A random error with the mean 0 and the same variance in all directions.
    Isotropic {
        /// E‖θ_0 − θ*‖², which is spread evenly over the d directions.
        mean_square: f64,
    },
    /// The fixed start θ_0, d numbers.
    Point(Vec<f64>),
}

impl StartError {
    /// E‖θ_0 − θ*‖², the mean square error before the first round, where `optimum` is θ*.
    pub fn mean_square(&self, optimum: &[f64]) -> f64 {
        match self {
            Self::Point(start) => squared_distance(start, optimum),
            Self::Isotropic { mean_square } => *mean_square,
        }
    }

    /// Columns (c, c_1) of d numbers and one number with Σ (c, c_1)(c, c_1)ᵀ = E (θ_0 − θ*, 1)(θ_0 − θ*, 1)ᵀ.
    /// So the mean of a quadratic function over a random start is the sum of its values at the columns,
    /// THEORY (6.4).
    pub(super) fn columns(&self, optimum: &[f64]) -> Vec<(Vec<f64>, f64)> {
        let d = optimum.len();
        match self {
            Self::Point(start) => vec![(difference(start, optimum), 1.0)],
            Self::Isotropic { mean_square } => {
                let size = libm::sqrt(mean_square / d as f64);
                let axes = Matrix::identity(d).scaled(size);
                let mut all: Vec<_> = (0..d).map(|i| (axes.row(i).to_vec(), 0.0)).collect();
                all.push((vec![0.0; d], 1.0));
                all
            }
        }
    }
}

/// The second moments of a program over its cycle as a linear map, and the second moments z at the start of the first
/// cycle: from them frontiers find how many rounds an error takes to fall below a target. That they converge is not
/// checked.
pub struct Squares<'a> {
    cycle: Cycle<'a>,
    /// All coordinates of the state at the start of the cycle from u: P of THEORY (5.4), and the number 1.
    spread: Matrix,
    /// u from all coordinates of the state.
    read: Matrix,
    /// Columns c with Σ c cᵀ = E x xᵀ of the coordinates x before the first round, the number 1 among them.
    begins: Vec<Vec<f64>>,
    /// The means of the rounds, by which settings are excluded.
    pub mean: MeanRounds,
}

/// The means of the rounds up to the cycle and in it. They are what the rounds do without noise, and their squared
/// errors are lower bounds of mean square errors, THEORY (6.4).
pub struct MeanRounds {
    /// ‖E θ_t − θ*‖² after 0, 1, … rounds, up to the start of the cycle, or its mean over a random start:
    /// THEORY (6.4).
    pub noiseless: Vec<f64>,
    /// Columns c with Σ c cᵀ = E u uᵀ at the start of the cycle, without noise.
    pub columns: Matrix,
    /// The map of E u over the cycle, M and c of THEORY (5.1) in one matrix.
    pub means: Matrix,
    /// E θ_t − θ* after each round of the cycle as maps of E u at its start, d rows each.
    pub ends: Vec<Matrix>,
}

/// The mean of the state before the first round for each column (c, c_1) of the start's error: c_1 stands in the place
/// of the number 1, and c in the place of θ_0 − θ*.
fn initial_means(exact: &ProgramMoments<'_>, start: &StartError) -> Vec<Vec<f64>> {
    let optimum = exact.setup.facts.optimum();
    let mut begins = Vec::new();
    for (error, one) in start.columns(optimum) {
        let mut begin = exact.initial(optimum, one).mean;
        // The first round may start from the number 1 alone.
        if begin.len() > 1 {
            begin[1..].copy_from_slice(&error);
        }
        begins.push(begin);
    }
    begins
}

impl<'a> Squares<'a> {
    /// The second moments of a program's cycle from this start. `known` has the types of the problem's clients and a
    /// cache of local steps, which a search has for all its settings; without it the types are found from the program.
    ///
    /// # Errors
    /// If no rounds repeat, moments do not close or are infinite, the state has too many coordinates, noise or a
    /// constant adds up in it, or a combination that it keeps for ever depends on the start, even if nothing reads it.
    pub fn new(
        program: &'a Program,
        facts: &'a dyn Facts,
        start: &StartError,
        known: Option<(Vec<Type>, &KnownSteps)>,
    ) -> Result<Self, MomentsError> {
        let exact = match known {
            None => ProgramMoments::without_average(program, facts, None)?,
            Some((types, known)) => {
                let average = false;
                let setup = Setup::new(facts, types, Vec::new(), average, known.clone());
                ProgramMoments { program, setup, prepared: RefCell::default(), variates: None }
            }
        };
        let cycle = Cycle::prepare(exact, MOST_COORDINATES)?;
        // This refuses infinite moments; the map is not needed here.
        cycle.square_map()?;
        if let Some(sum) = cycle.what_adds_up() {
            return Err(sum.into());
        }
        let size = cycle.begin.mean.len();
        let n = cycle.lift.free.len() + 1;
        let mut spread = Matrix::from_fn(size, n, |i, j| match (i, j) {
            (0, _) => f64::from(u8::from(j == 0)),
            (i, 0) => cycle.lift.constant[i - 1],
            (i, j) => cycle.lift.map[(i - 1, j - 1)],
        });
        let mut read = Matrix::zeros(n, size);
        read[(0, 0)] = 1.0;
        for (i, place) in cycle.lift.free.iter().enumerate() {
            read[(i + 1, place + 1)] = 1.0;
        }
        let optimum = cycle.exact.setup.facts.optimum();
        let begins = initial_means(&cycle.exact, start);
        let mut noiseless = vec![start.mean_square(optimum)];
        let mut columns = begins.clone();
        for round in &cycle.lead {
            let squares = columns.iter().map(|mean| {
                let end = round.result.value(&round.known_mean(mean));
                dot(&end, &end)
            });
            noiseless.push(squares.sum());
            columns.iter_mut().for_each(|mean| *mean = round.mean_after(mean));
        }
        // What is kept for ever must have the value that it has from θ*.
        for mean in &columns {
            let full = spread.apply(&read.apply(mean));
            let size = full.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
            if full.iter().zip(mean).any(|(x, y)| (x - y).abs() > 1e-8 * size) {
                return Err(MomentsError::KeptStart);
            }
        }
        // Combinations that nothing reads, now or later, are left out. Vectors that clients keep may have such.
        let keeps = cycle.begin.own.iter().any(|own| own.rows() > 0);
        let mut maps = follow_means(&cycle, &spread, &read, keeps);
        let observed = keeps.then(|| Echelon::observed(&maps.read, &maps.means));
        if let Some(Echelon { rows, pivots }) = observed.filter(|found| found.rows.len() < n) {
            read = Matrix::from_fn(rows.len(), n, |i, j| rows[i][j]).times(&read);
            spread = Matrix::from_fn(size, rows.len(), |i, j| spread[(i, pivots[j])]);
            let with_noises = false;
            maps = follow_means(&cycle, &spread, &read, with_noises);
        }
        let columns = Matrix::from_columns(columns.iter().map(|mean| read.apply(mean)));
        let mean = MeanRounds { noiseless, columns, means: maps.means, ends: maps.ends };
        Ok(Self { cycle, spread, read, begins, mean })
    }

    /// Sets the numbers n_g of clients of the types, in the proportions that they had. They enter THEORY (3.5), (3.6)
    /// as numbers, so no local steps are computed again. Clients must have equal shares, and vectors of
    /// clients must meet in sums by shares alone, whose weights by types do not change then.
    pub fn set_counts(&mut self, counts: impl Iterator<Item = f64>) {
        let types = &mut self.cycle.exact.setup.types;
        types.iter_mut().zip(counts).for_each(|(t, count)| t.count = count);
        self.cycle.lift_own();
    }

    /// z at the start of the first cycle, THEORY (6.1), and E‖θ_t − θ*‖² after 0, 1, … rounds up to it.
    pub fn start(&self) -> (Vec<f64>, Vec<f64>) {
        let (state, first) = self.followed(&self.cycle.lead);
        (self.numbers(&state).into_entries(), first)
    }

    /// E‖θ_t − θ*‖² after 0, 1, …, `count` rounds, which are followed one by one, without Q: less work than Q for a few
    /// rounds.
    pub fn errors(&self, count: usize) -> Vec<f64> {
        let Cycle { lead, rounds, .. } = &self.cycle;
        let (_, errors) = self.followed(lead.iter().chain(rounds.iter().cycle()).take(count));
        errors
    }

    /// The state after these rounds from the start, and E‖θ_t − θ*‖² before them and after each of them.
    fn followed<'r>(
        &self,
        rounds: impl IntoIterator<Item = &'r Rc<PreparedRound>>,
    ) -> (ProgramState, Vec<f64>) {
        let exact = &self.cycle.exact;
        let mut state = exact.initial(exact.setup.facts.optimum(), 0.0);
        self.begins.iter().for_each(|begin| state.covariance.add_outer(1.0, begin, begin));
        let mut errors = vec![self.mean.noiseless[0]];
        for round in rounds {
            let (next, found) = exact.after(round, &state);
            state = next;
            errors.push(found.covariance.trace());
        }
        (state, errors)
    }

    /// z of a state, THEORY (6.1); its columns are the state's layers.
    fn numbers(&self, state: &ProgramState) -> Matrix {
        let layers = state.layers;
        let all = (0..self.read.rows()).collect::<Vec<_>>();
        let left = self.read.times(&state.covariance);
        let square = layers::times_transposed(&left, &self.read, layers);
        self.cycle.own_numbers(state, numbers_at(&all, &square, layers))
    }

    /// The length of z, [`Self::blocks`].
    pub fn size(&self) -> usize {
        self.blocks().length()
    }

    /// Q z, the numbers after a cycle, for each column z of `numbers`, and E‖θ_t − θ*‖² = r_phase · z after each round
    /// of the cycle, in one row for each round: THEORY (6.1). If `numbers` is the identity, they are Q, and the rows
    /// r_phase.
    pub fn after(&self, numbers: &Matrix) -> (Matrix, Matrix) {
        let layers = numbers.cols();
        let mut errors = Vec::new();
        let mut state = self.cycle.empty(layers);
        let own = put_lifted(&self.spread, numbers, 0, &mut state.covariance, 0);
        self.cycle.put_own(numbers, own, &mut state);
        for round in &self.cycle.rounds {
            let (next, found) = self.cycle.exact.after(round, &state);
            state = next;
            errors.extend(trace(&found.covariance, layers));
        }
        let errors = Matrix::from_entries(self.cycle.rounds.len(), layers, errors);
        (self.numbers(&state), errors)
    }

    /// The symmetric matrices whose entries make up z: E u uᵀ, and D_g of each type.
    pub fn blocks(&self) -> SymmetricBlocks {
        let deviations = self.cycle.own_lifts.iter().map(|lift| lift.free.len());
        SymmetricBlocks::new(std::iter::once(self.read.rows()).chain(deviations))
    }

    /// The right-hand side of THEORY (6.5), a lower bound of the stationary E‖θ_t − θ*‖² after the last round
    /// of the cycle; `None` if means have no limit.
    pub fn least_stationary(&self) -> Option<f64> {
        let n = self.mean.means.rows() - 1;
        let u = self.mean.stationary()?;
        let mut numbers = numbers_at(&(0..=n).collect::<Vec<_>>(), &Matrix::outer(&u, &u), 1);
        numbers.resize(self.size(), 0.0);
        let (after, errors) = self.after(&Matrix::from_entries(numbers.len(), 1, numbers));
        // R(m): the covariance that a cycle adds.
        let added = Matrix::from_fn(n, n, |i, j| {
            let a = i.min(j) + 1;
            let b = i.max(j) + 1;
            // The place in z of entry (a, b) of E u uᵀ, which has n + 1 rows.
            let place = a * (n + 1) - a * (a + 1) / 2 + b;
            after[(place, 0)] - u[a] * u[b]
        });
        let sum = self.mean.accumulated(added, |_| false)?;
        let last = self.mean.ends.last()?;
        let end = Matrix::from_fn(last.rows(), n, |i, j| last[(i, j + 1)]);
        Some(errors.entries().last()? + end.times(&sum).times_transposed(&end).trace())
    }
}

/// The most doublings of the number of cycles whose noise is added up.
const MOST_DOUBLINGS: usize = 60;

impl MeanRounds {
    /// M of THEORY (5.1): the map over a cycle of E u without the number 1, which is the first number of u.
    pub(super) fn linear(&self) -> Matrix {
        let n = self.means.rows() - 1;
        Matrix::from_fn(n, n, |i, j| self.means[(i + 1, j + 1)])
    }

    /// The fixed point of the means E u over a cycle, m = M m + c of THEORY (5.6), with the number 1; `None` if there
    /// is none, or more than one. That means converge to it is not checked.
    pub(super) fn stationary(&self) -> Option<Vec<f64>> {
        let linear = self.linear();
        let n = linear.rows();
        let constant: Vec<f64> = (0..n).map(|i| self.means[(i + 1, 0)]).collect();
        let mut u = vec![1.0];
        u.extend(solve(&Matrix::identity(n).plus(-1.0, &linear), &constant).ok()?);
        Some(u)
    }

    /// Σ_{k≥0} Mᵏ R (Mᵏ)ᵀ of THEORY (6.5) by doubling, where R = `added` is what each cycle adds to the
    /// covariance of u without the number 1; or the first partial sum for which `is_enough` is true. `None` if Mᵏ does
    /// not vanish.
    pub(super) fn accumulated(
        &self,
        added: Matrix,
        is_enough: impl Fn(&Matrix) -> bool,
    ) -> Option<Matrix> {
        let mut sum = added;
        let mut power = self.linear();
        for _ in 0..=MOST_DOUBLINGS {
            let left = largest(&power);
            if is_enough(&sum) || left * left <= NEGLIGIBLE {
                return Some(sum);
            }
            if !left.is_finite() {
                return None;
            }
            sum.add(1.0, &power.times(&sum).times_transposed(&power));
            power = power.times(&power);
        }
        None
    }
}

/// Linear maps of E u at the start of a cycle, which say what follows from it in the cycle.
struct MeanMaps {
    /// The map to E u at the end of the cycle.
    means: Matrix,
    /// The maps to E θ_t − θ* after each round of the cycle.
    ends: Vec<Matrix>,
    /// All that estimates and noises read in the cycle, one row for each number; without rows if that was not
    /// asked for.
    read: Matrix,
}

/// The maps of E u over a cycle, by following each unit vector u through its rounds: `spread` makes a state of u, and
/// `read` finds u in a state. `with_noises` asks for [`MeanMaps::read`].
fn follow_means(cycle: &Cycle<'_>, spread: &Matrix, read: &Matrix, with_noises: bool) -> MeanMaps {
    // One column for each number of u.
    let mut means = Vec::new();
    let mut ends: Vec<Vec<Vec<f64>>> = vec![Vec::new(); cycle.rounds.len()];
    let mut all_read = Vec::new();
    for j in 0..read.rows() {
        let mut mean: Vec<f64> = (0..spread.rows()).map(|i| spread[(i, j)]).collect();
        let mut numbers_read = Vec::new();
        for (round, ends) in cycle.rounds.iter().zip(&mut ends) {
            let known = round.known_mean(&mean);
            ends.push(round.result.value(&known));
            if with_noises {
                numbers_read.extend(round.read(&known));
            }
            mean = round.next_mean(&known);
        }
        means.push(read.apply(&mean));
        all_read.push(numbers_read);
    }
    MeanMaps {
        means: Matrix::from_columns(means.into_iter()),
        ends: ends.into_iter().map(|columns| Matrix::from_columns(columns.into_iter())).collect(),
        read: Matrix::from_columns(all_read.into_iter()),
    }
}
