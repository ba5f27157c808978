//! The moments to which a program's rounds lead: the fixed point of the linear map of a cycle, THEORY (5.6).
//!
//! The map nearly always has a fixed point. Moments lead there only if the map contracts, which
//! [`super::stability`] proves before anything is said to be stationary. What is called `own` belongs to a client's
//! deviations from the mean of its type, THEORY (3.1).
//!
//! A *cycle* is the rounds that repeat for ever. A combination of coordinates that it does not change is *kept*; for
//! each of these one coordinate is computed from the others, and the others are *free*, THEORY (5.4). The *origin*
//! α θ* + β F̄_k(θ*) of a vector is what its coordinates leave out, THEORY (4.8). A matrix of second moments may have
//! several *layers*: then each entry is as many numbers next to each other ([`super::layers`]).
//!
//! m and Σ are the mean and the covariance of the coordinates, and D_g is the covariance of the deviations of a client
//! of type g. Over a cycle they become
//!
//! ```text
//! THEORY (5.1)   m ← M m + c
//! THEORY (5.2)   (Σ, D_1, D_2, …) ← T(Σ, D_1, D_2, …) + R(m),  R(m) the covariance that noises at the mean m add
//! THEORY (5.6)   and at rest  m = M m + c,  (Σ, D) = T(Σ, D) + R(m)
//! ```

use super::coin::InfiniteMoments;
use super::error::MomentsError;
use super::layers::{self, entry, entry_mut};
use super::moments::ProgramMoments;
use super::reduction::Lift;
use super::setup::{Origin, ProgramState};
use super::stages::PreparedRound;
use super::values::{CovarianceBlocks, Moments};
use crate::kernel::dot;
use crate::linalg::{Matrix, cholesky, fixed_point};
use crate::problem::Facts;
use crate::round_program::Program;
use std::rc::Rc;

/// The most coordinates of a state, the order of the matrix M of means, THEORY (5.1), which is computed.
pub(super) const MOST_COORDINATES: usize = 600;
/// The most coordinates of a state where means alone are followed.
const MOST_COORDINATES_OF_MEANS: usize = 1500;
/// The most cycles that are prepared until the origins of a cycle's start repeat.
const MOST_PREPARED: usize = 4;

/// The rounds of a program that repeat for ever, and the state at the start of the first cycle. From them follow
/// limits, stationary moments and spectral radii.
pub struct Cycle<'a> {
    /// The moments of the program.
    pub(super) exact: ProgramMoments<'a>,
    /// The rounds before the cycle: the program's own, and cycles that did not end with the origins with which they
    /// began.
    pub(super) lead: Vec<Rc<PreparedRound>>,
    /// The rounds of the cycle.
    pub(super) rounds: Vec<Rc<PreparedRound>>,
    /// The state at the start of the first cycle, with the mean that θ_0 = θ* leads to, and covariances of 0.
    pub(super) begin: ProgramState,
    /// The moments that do not exist after a round of the cycle, whatever the start.
    pub(super) infinite: Option<InfiniteMoments>,
    /// How all coordinates but the number 1 follow from the free ones, THEORY (5.4).
    pub(super) lift: Lift,
    /// How all coordinates of a client's deviations follow from the free ones, for each type.
    pub(super) own_lifts: Vec<Lift>,
}

impl<'a> Cycle<'a> {
    /// The cycle of a program, with ψ if the atom of control variates is given. Where anything depends on the start,
    /// the start is θ*. Whether moments converge is found out only by [`Self::check_means`] and [`Self::stationary`].
    ///
    /// # Errors
    /// If no rounds repeat, moments do not close, or the state has too many coordinates.
    pub fn new(
        program: &'a Program,
        facts: &'a dyn Facts,
        variates: Option<usize>,
    ) -> Result<Self, MomentsError> {
        let exact = ProgramMoments::without_average(program, facts, variates)?;
        Self::prepare(exact, MOST_COORDINATES)
    }

    /// The cycle of the means of a program alone, linearised at θ\* if the field is curved. It has no
    /// second moments: [`Self::check_means`] and [`Self::biases`] alone may be asked of it. Draws must be independent,
    /// which is not checked.
    ///
    /// # Errors
    /// Why there is no such cycle.
    pub fn of_means(program: &'a Program, facts: &'a dyn Facts) -> Result<Self, MomentsError> {
        Self::prepare(ProgramMoments::of_means(program, facts)?, MOST_COORDINATES_OF_MEANS)
    }

    /// The cycle of a program: prepares its rounds, and finds how all coordinates follow from the free ones. `exact`
    /// must not follow the mean of all estimates, since the sum of errors that its state then has tends to no limit.
    ///
    /// A round is prepared for the origins of the state before it: the multiples of θ* and F̄_k(θ*) that coordinates
    /// leave out, THEORY (4.8). So the cycle is the first one that ends with the origins with which it began, to which
    /// the last of [`MOST_PREPARED`] is made to return; the cycles before it are rounds of `lead`.
    ///
    /// # Errors
    /// If no rounds repeat, a round's moments do not close, or the state has more than `most` coordinates.
    pub(super) fn prepare(exact: ProgramMoments<'a>, most: usize) -> Result<Self, MomentsError> {
        let ProgramMoments { program, setup, .. } = &exact;
        if program.cycle == 0 {
            return Err(MomentsError::NotRepeating);
        }
        let length = program.cycle as u64;
        let first = program.order.len() as u64 - length + 1;
        let mut state = exact.initial(setup.facts.optimum(), 1.0);
        let mut lead = Vec::new();
        for round in 1..first {
            lead.push(follow_mean(&exact, round, &mut state, None)?);
        }
        // Origins settle after a few cycles. If they do not, the last cycle prepared is made to end with those with
        // which it begins.
        let mut rounds = Vec::new();
        for repeat in 0..MOST_PREPARED {
            let begin = state.origins.clone();
            let mean = state.mean.clone();
            lead.append(&mut rounds);
            for round in first..first + length {
                let last = round + 1 == first + length && repeat == MOST_PREPARED - 1;
                let target = last.then(|| begin.clone());
                rounds.push(follow_mean(&exact, round, &mut state, target.as_deref())?);
            }
            if state.origins == begin {
                // The state at the start of this cycle again.
                state.mean = mean;
                break;
            }
        }
        let size = state.mean.len() - 1;
        if size > most {
            return Err(MomentsError::TooLarge { size, most });
        }
        state.covariance = Matrix::zeros(size + 1, size + 1);
        let own_sizes = rounds[rounds.len() - 1].own_next.iter().map(|forms| forms.len() * setup.d);
        state.own = own_sizes.map(|size| Matrix::zeros(size, size)).collect();
        let infinite = rounds.iter().filter_map(|round| round.infinite).max();
        let lift = match infinite {
            Some(InfiniteMoments::All) => Lift::identity(size),
            _ => Lift::new(&mean_map(&rounds, size), &state.mean[1..]),
        };
        let own_lifts = Vec::new();
        let mut new = Self { exact, lead, rounds, begin: state, infinite, lift, own_lifts };
        new.lift_own();
        Ok(new)
    }

    /// Finds the free coordinates of the deviations of each type, which depend on whether it has more than one client:
    /// the only client of a type has no deviation.
    pub(super) fn lift_own(&mut self) {
        let types = 0..self.begin.own.len();
        self.own_lifts = types.map(|g| self.own_lift(g)).collect();
    }

    /// How the deviations of a client of type g follow from free ones: what a cycle keeps of deviations is 0, as at the
    /// start.
    fn own_lift(&self, g: usize) -> Lift {
        let size = self.begin.own[g].rows();
        if self.exact.setup.types[g].count == 1.0 {
            // One client is the mean of its type.
            return Lift::zero(size);
        }
        if self.infinite == Some(InfiniteMoments::All) {
            return Lift::identity(size);
        }
        let map = Matrix::of_map(size, |deviations| {
            self.rounds.iter().fold(deviations.to_vec(), |x, round| {
                round.own_next[g].iter().flat_map(|form| form.value(&x)).collect()
            })
        });
        Lift::new(&map, &vec![0.0; size])
    }

    /// The state after a cycle that begins with this state.
    pub(super) fn after(&self, state: &ProgramState) -> ProgramState {
        self.rounds.iter().fold(state.clone(), |state, round| self.exact.after(round, &state).0)
    }

    /// A state at the start of a cycle whose means and covariances are 0, also the mean of the number 1.
    pub(super) fn empty(&self, layers: usize) -> ProgramState {
        let ProgramState { mean, own, origins, .. } = &self.begin;
        ProgramState {
            mean: vec![0.0; mean.len()],
            covariance: Matrix::zeros(mean.len(), mean.len() * layers),
            own: own.iter().map(|own| Matrix::zeros(own.rows(), own.rows() * layers)).collect(),
            origins: origins.clone(),
            layers,
        }
    }

    /// lim E θ_t − θ* after each round of the cycle, from its first round on, d numbers each: the means m = M m + c of
    /// THEORY (5.6).
    ///
    /// # Errors
    /// Why means do not converge.
    pub fn biases(&self) -> Result<Vec<Vec<f64>>, MomentsError> {
        let mut mean = self.mean()?;
        let mut biases = Vec::with_capacity(self.rounds.len());
        for round in &self.rounds {
            let known = round.known_mean(&mean);
            biases.push(round.result.value(&known));
            mean = round.next_mean(&known);
        }
        Ok(biases)
    }

    /// The stationary mean m of THEORY (5.6) at the start of the cycle, with the number 1.
    ///
    /// # Errors
    /// Why means do not converge.
    fn mean(&self) -> Result<Vec<f64>, MomentsError> {
        self.check_means()?;
        let count = self.lift.free.len();
        let constant = self.free_after(self.lift.all_from(&vec![0.0; count], 1.0));
        let linear_map = |x: &[f64]| self.free_after(self.lift.all_from(x, 0.0));
        let free = fixed_point(&constant, linear_map, || Matrix::of_map(count, linear_map))
            .ok_or(MomentsError::Unstable)?;
        let mean = self.lift.all_from(&free, 1.0);
        // Only free coordinates must be fixed: what is kept may change where nothing reads it.
        let after = means_after(&self.rounds, mean.clone());
        let size = mean.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
        for i in &self.lift.free {
            let is_fixed = (mean[i + 1] - after[i + 1]).abs() <= 1e-8 * size;
            if !is_fixed {
                return Err(MomentsError::Unstable);
            }
        }
        Ok(mean)
    }

    /// The means of the free coordinates after a cycle that begins with these means of all coordinates, the number 1
    /// among them.
    pub(super) fn free_after(&self, mean: Vec<f64>) -> Vec<f64> {
        let after = means_after(&self.rounds, mean);
        self.lift.free.iter().map(|i| after[i + 1]).collect()
    }

    /// The state at the start of a cycle with this mean, whose free coordinates have the covariances `numbers`: in one
    /// column for each layer the entries of (Σ, D_1, D_2, …) of THEORY (5.2) on and above the diagonals.
    pub(super) fn state(&self, numbers: &Matrix, mean: &[f64]) -> ProgramState {
        let mut state = self.empty(numbers.cols());
        state.mean = mean.to_vec();
        let next = put_lifted(&self.lift.map, numbers, 0, &mut state.covariance, 1);
        self.put_own(numbers, next, &mut state);
        state
    }

    /// Writes the covariances of deviations into a state. The covariances of their free coordinates are the rows of
    /// `numbers` from row `at` on.
    pub(super) fn put_own(&self, numbers: &Matrix, mut at: usize, state: &mut ProgramState) {
        for (own, lift) in state.own.iter_mut().zip(&self.own_lifts) {
            at = put_lifted(&lift.map, numbers, at, own, 0);
        }
    }

    /// The covariances of the free coordinates of a state, one column for each layer: what [`Self::state`] makes a
    /// state of.
    pub(super) fn numbers(&self, state: &ProgramState) -> Matrix {
        let free: Vec<usize> = self.lift.free.iter().map(|i| i + 1).collect();
        self.own_numbers(state, numbers_at(&free, &state.covariance, state.layers))
    }

    /// The numbers `out`, and after them the covariances of the free coordinates of deviations, one column for each
    /// layer.
    pub(super) fn own_numbers(&self, state: &ProgramState, mut out: Vec<f64>) -> Matrix {
        for (own, lift) in state.own.iter().zip(&self.own_lifts) {
            out.extend(numbers_at(&lift.free, own, state.layers));
        }
        Matrix::from_entries(out.len() / state.layers, state.layers, out)
    }

    /// The stationary moments after each round of the cycle, from its first round on, THEORY (5.6), and the second
    /// moments of θ and, if control variates are followed, of the clients' corrections at its end.
    ///
    /// # Errors
    /// Why there are no stationary moments, or why it is not proven that moments converge.
    pub fn stationary(&self) -> Result<(Vec<Moments>, CovarianceBlocks), MomentsError> {
        let mean = self.mean()?;
        let map = self.square_map()?;
        self.check_squares(&map)?;
        let none = Matrix::zeros(map.blocks.length(), 1);
        let constant = self.numbers(&self.after(&self.state(&none, &mean))).into_entries();
        let found = fixed_point(&constant, |x| map.apply(x), || map.whole())
            .ok_or(MomentsError::Unstable)?;
        let state = self.state(&column(&found), &mean);
        let size = state.covariance.trace() + dot(&mean, &mean);
        let last = self.exact.program.order.len() as u64;
        let mut after = state.clone();
        let mut phases = Vec::with_capacity(self.rounds.len());
        for (round, number) in self.rounds.iter().zip(last - self.rounds.len() as u64 + 1..) {
            let (next, found) = self.exact.after(round, &after);
            after = next;
            let lyapunov = self.exact.lyapunov(&after, number, found.sq_error);
            phases.push(Moments { lyapunov, ..found });
        }
        // The solution is a fixed point, also in what is not free, and a covariance.
        let apart = state.covariance.plus(-1.0, &after.covariance);
        let rest = apart.entries().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let estimates = phases.iter().map(|phase| &phase.covariance);
        let are_covariances = estimates
            .chain([&state.covariance])
            .chain(&state.own)
            .all(|matrix| is_covariance(matrix, size));
        if rest > 1e-7 * size || !are_covariances {
            return Err(MomentsError::Unstable);
        }
        let blocks = self.exact.blocks(&after, last + 1, &phases[phases.len() - 1]);
        Ok((phases, blocks))
    }
}

/// Whether a symmetric matrix is positive semidefinite within rounding, where all second moments of
/// the state add up to `size`.
fn is_covariance(matrix: &Matrix, size: f64) -> bool {
    // The factorisation needs a positive definite matrix.
    let rounding = 1e-10 * matrix.trace() + 1e-20 * size;
    // A constant has no variance, not even by rounding.
    let is_zero = matrix.entries().iter().all(|x| *x == 0.0);
    is_zero || cholesky(matrix.plus(rounding, &Matrix::identity(matrix.rows()))).is_ok()
}

/// M of THEORY (5.1), `size` × `size`: the linear map over these rounds of the means of a state's coordinates but the
/// number 1, of which there are `size`.
pub(super) fn mean_map(rounds: &[Rc<PreparedRound>], size: usize) -> Matrix {
    Matrix::of_map(size, |x| {
        // Without the number 1 the affine map of the means is linear.
        let mean = [&[0.0], x].concat();
        means_after(rounds, mean).split_off(1)
    })
}

/// Prepares a round for a state's origins and returns it, after the mean and the origins of `state` were replaced by
/// those of the next state, which has the origins `target`, if they are given.
///
/// # Errors
/// Why the moments of the round do not close, or if the program has no such round.
fn follow_mean(
    exact: &ProgramMoments<'_>,
    round: u64,
    state: &mut ProgramState,
    target: Option<&[Origin]>,
) -> Result<Rc<PreparedRound>, MomentsError> {
    let prepared = exact.prepared(round, &state.origins, target)?;
    state.mean = prepared.mean_after(&state.mean);
    state.origins.clone_from(&prepared.origins);
    Ok(prepared)
}

/// The means of all coordinates after these rounds, M m + c of THEORY (5.1), where `mean` has the means m before them.
/// Both begin with the number 1.
pub(super) fn means_after(rounds: &[Rc<PreparedRound>], mean: Vec<f64>) -> Vec<f64> {
    rounds.iter().fold(mean, |mean, round| round.mean_after(&mean))
}

/// Writes L S Lᵀ, where L is `lift`, into a matrix from row and column `place` on. The entries of S on and
/// above its diagonal are the rows of `numbers` from row `at` on, with one column for each layer. Returns
/// the row after them.
pub(super) fn put_lifted(
    lift: &Matrix,
    numbers: &Matrix,
    mut at: usize,
    matrix: &mut Matrix,
    place: usize,
) -> usize {
    let n = lift.cols();
    let layers = numbers.cols();
    let mut square = Matrix::zeros(n, n * layers);
    for (i, j) in (0..n).flat_map(|i| (i..n).map(move |j| (i, j))) {
        entry_mut(&mut square, (i, j), layers).copy_from_slice(numbers.row(at));
        entry_mut(&mut square, (j, i), layers).copy_from_slice(numbers.row(at));
        at += 1;
    }
    let all = layers::times_transposed(&lift.times(&square), lift, layers);
    layers::put_diagonal(matrix, place, &all, layers);
    at
}

/// The entries on and above the diagonal of the submatrix that has these rows and columns of a symmetric matrix, row by
/// row, each with all its layers.
pub(super) fn numbers_at(places: &[usize], matrix: &Matrix, layers: usize) -> Vec<f64> {
    let mut out = Vec::new();
    for (k, i) in places.iter().enumerate() {
        places[k..].iter().for_each(|j| out.extend_from_slice(entry(matrix, (*i, *j), layers)));
    }
    out
}

/// A matrix of one column.
pub(super) fn column(numbers: &[f64]) -> Matrix {
    Matrix::from_entries(numbers.len(), 1, numbers.to_vec())
}
