//! The distribution to which a program's rounds lead: the fixed point of the linear map of a cycle.

use super::layers::{self, entry, entry_mut};
use super::moments::ProgramMoments;
use super::reduction::Lift;
use super::setup::{Origin, ProgramState};
use super::stages::PreparedRound;
use super::values::{CovarianceBlocks, Moments, SpectralRadii, WatchedVariates};
use crate::kernel::dot;
use crate::linalg::{Matrix, fixed_point, growth, radius};
use crate::problem::Facts;
use crate::program::Program;
use std::rc::Rc;

/// The largest order of a map of second moments whose matrix is squared.
const SQUARED: usize = 160;
/// The largest order of the matrix of the mean's map.
const WRITTEN: usize = 600;

/// The rounds of a cycle, from a state at its start.
pub struct Cycle<'a> {
    pub(super) exact: ProgramMoments<'a>,
    /// The rounds before the cycle.
    pub(super) lead: Vec<Rc<PreparedRound>>,
    pub(super) rounds: Vec<Rc<PreparedRound>>,
    pub(super) begin: ProgramState,
    /// All coordinates of the mean but the first from those that are free; and constants.
    pub(super) lift: Lift,
    /// The same for the deviations of each type.
    pub(super) own_lifts: Vec<Lift>,
}

impl<'a> Cycle<'a> {
    /// The cycle of a program, and the moments of control variates, if they are given; θ_0 = θ* where
    /// anything depends on the start.
    ///
    /// # Errors
    /// Why there is no stationary distribution.
    pub fn new(
        program: &'a Program,
        facts: &'a dyn Facts,
        variates: Option<WatchedVariates<'a>>,
    ) -> Result<Self, String> {
        Self::of(ProgramMoments::prepare(program, facts, variates, false)?)
    }

    /// The cycle of prepared moments, which do not follow the mean of all estimates.
    pub(super) fn of(exact: ProgramMoments<'a>) -> Result<Self, String> {
        let ProgramMoments { program, setup, .. } = &exact;
        if program.cycle == 0 {
            return Err("its rounds do not repeat, as frontiers and stationary errors need".into());
        }
        let length = program.cycle as u64;
        let first = program.order.len() as u64 - length + 1;
        let mut state = exact.initial(setup.facts.optimum(), 1.0);
        let step = |round: u64, state: &mut ProgramState, target: Option<&[Origin]>| {
            let prepared = exact.prepared(round, &state.origins, target)?;
            state.mean = prepared.mean_after(&state.mean);
            state.origins.clone_from(&prepared.origins);
            Ok::<_, String>(prepared)
        };
        let mut lead = Vec::new();
        for round in 1..first {
            lead.push(step(round, &mut state, None)?);
        }
        // Origins settle after a few cycles; if they do not, the last ones are kept.
        let mut rounds = Vec::new();
        for repeat in 0..4 {
            let begin = state.origins.clone();
            let mean = state.mean.clone();
            lead.append(&mut rounds);
            for round in first..first + length {
                let last = round + 1 == first + length && repeat == 3;
                let target = last.then(|| begin.clone());
                rounds.push(step(round, &mut state, target.as_deref())?);
            }
            if state.origins == begin {
                state.mean = mean;
                break;
            }
        }
        let size = state.mean.len() - 1;
        if size > WRITTEN {
            return Err(format!(
                "its state has {size} coordinates, and at most {WRITTEN} are solved for"
            ));
        }
        state.covariance = Matrix::zeros(size + 1, size + 1);
        let own = rounds[rounds.len() - 1].own_next.iter().map(|forms| forms.len() * setup.d);
        state.own = own.map(|size| Matrix::zeros(size, size)).collect();
        let lift = Lift::new(&mean_map(&rounds, size), &state.mean[1..]);
        let mut new = Self { exact, lead, rounds, begin: state, lift, own_lifts: Vec::new() };
        new.lift_own();
        Ok(new)
    }

    /// Finds the free coordinates of the deviations of each type.
    pub(super) fn lift_own(&mut self) {
        let lift = |(g, own): (usize, &Matrix)| {
            let size = own.rows();
            if self.exact.setup.types[g].count == 1.0 {
                // One client is the mean of its type.
                let (map, constant) = (Matrix::zeros(size, 0), vec![0.0; size]);
                return Lift { free: vec![], map, constant };
            }
            let after = |x: &[f64]| {
                let mut x = x.to_vec();
                for round in &self.rounds {
                    x = round.own_next[g].iter().flat_map(|form| form.value(&x)).collect();
                }
                x
            };
            Lift::new(&Matrix::of_map(size, after), &vec![0.0; size])
        };
        self.own_lifts = self.begin.own.iter().enumerate().map(lift).collect();
    }

    /// The state after the rounds of the cycle.
    fn after(&self, state: &ProgramState) -> ProgramState {
        self.rounds.iter().fold(state.clone(), |state, round| self.exact.after(round, &state).0)
    }

    /// A state without means, constants and noise of its own.
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

    /// lim E θ_t − θ* after each round of the cycle, d numbers each.
    ///
    /// # Errors
    /// Why there is none.
    pub fn biases(&self) -> Result<Vec<Vec<f64>>, String> {
        let mut mean = self.mean()?;
        let bias = |round: &Rc<PreparedRound>| {
            let known = round.known_mean(&mean);
            mean = round.next_mean(&known);
            round.result.value(&known)
        };
        Ok(self.rounds.iter().map(bias).collect())
    }

    /// The mean at the start of the cycle.
    fn mean(&self) -> Result<Vec<f64>, String> {
        let size = self.lift.free.len();
        let at = |free: &[f64], unit: f64| {
            let after = means_after(&self.rounds, self.lift.all_from(free, unit));
            self.lift.free.iter().map(|i| after[i + 1]).collect::<Vec<f64>>()
        };
        let constant = at(&vec![0.0; size], 1.0);
        let map = |x: &[f64]| at(x, 0.0);
        let free = fixed_point(&constant, map, || Matrix::of_map(size, map)).ok_or(DIVERGES)?;
        let mean = self.lift.all_from(&free, 1.0);
        // A combination that noise or a constant changes has no limit.
        let after = means_after(&self.rounds, mean.clone());
        let size = mean.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
        let settled = mean.iter().zip(&after).all(|(x, y)| (x - y).abs() <= 1e-8 * size);
        if settled { Ok(mean) } else { Err(DIVERGES.into()) }
    }

    /// A state from the free covariances, of which the columns are layers, and the reverse.
    fn state(&self, numbers: &Matrix, mean: &[f64]) -> ProgramState {
        let mut state = self.empty(numbers.cols());
        state.mean = mean.to_vec();
        let next = put_lifted(&self.lift.map, (numbers, 0), (&mut state.covariance, 1));
        self.put_own((numbers, next), &mut state);
        state
    }

    /// Puts the covariances of deviations, which are rows from a place on.
    pub(super) fn put_own(&self, (numbers, mut at): (&Matrix, usize), state: &mut ProgramState) {
        for (own, lift) in state.own.iter_mut().zip(&self.own_lifts) {
            at = put_lifted(&lift.map, (numbers, at), (own, 0));
        }
    }

    fn numbers(&self, state: &ProgramState) -> Matrix {
        let free: Vec<usize> = self.lift.free.iter().map(|i| i + 1).collect();
        self.own_numbers(state, numbers_at(&free, &state.covariance, state.layers))
    }

    /// These numbers and the free covariances of deviations.
    pub(super) fn own_numbers(&self, state: &ProgramState, mut out: Vec<f64>) -> Matrix {
        for (own, lift) in state.own.iter().zip(&self.own_lifts) {
            out.extend(numbers_at(&lift.free, own, state.layers));
        }
        Matrix::from_entries(out.len() / state.layers, state.layers, out)
    }

    /// The moments after each round of the cycle, at stationarity, and the blocks at its end.
    ///
    /// # Errors
    /// Why there are none.
    pub fn stationary(&self) -> Result<(Vec<Moments>, CovarianceBlocks), String> {
        let mean = self.mean()?;
        let zeros = vec![0.0; self.begin.mean.len()];
        let length = self.numbers(&self.begin).rows();
        let none = Matrix::zeros(length, 1);
        let constant = self.numbers(&self.after(&self.state(&none, &mean))).into_entries();
        let map = |x: &Matrix| self.numbers(&self.after(&self.state(x, &zeros)));
        let of = |x: &[f64]| map(&column(x)).into_entries();
        let whole = || map(&Matrix::identity(length));
        let found = fixed_point(&constant, of, whole).ok_or(DIVERGES)?;
        let state = self.state(&column(&found), &mean);
        let size = state.covariance.trace() + dot(&mean, &mean);
        let last = self.exact.program.order.len() as u64;
        let (mut after, mut phases) = (state.clone(), Vec::with_capacity(self.rounds.len()));
        for (round, number) in self.rounds.iter().zip(last - self.rounds.len() as u64 + 1..) {
            let (next, found) = self.exact.after(round, &after);
            after = next;
            let lyapunov = self.exact.lyapunov(&after, number, found.sq_error);
            phases.push(Moments { lyapunov, ..found });
        }
        // What is not free must come to rest as well.
        let least = |m: &Matrix| (0..m.rows()).fold(0.0_f64, |least, i| least.min(m[(i, i)]));
        let below = state.own.iter().map(least).fold(least(&state.covariance), f64::min);
        let apart = state.covariance.plus(-1.0, &after.covariance);
        let rest = apart.entries().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let sound = below >= -1e-12 * size && rest <= 1e-7 * size;
        if !sound {
            return Err(DIVERGES.into());
        }
        Ok((phases, self.exact.blocks(&after, last + 1)))
    }

    /// The spectral radii of a round, the geometric mean over the cycle; `None` if the growth of
    /// second moments does not settle.
    pub fn radii(&self) -> Option<SpectralRadii> {
        let length = self.rounds.len() as f64;
        let mut begin = Vec::new();
        for lift in std::iter::once(&self.lift).chain(&self.own_lifts) {
            for i in 0..lift.free.len() {
                begin.extend((i..lift.free.len()).map(|j| f64::from(u8::from(i == j))));
            }
        }
        let zeros = vec![0.0; self.begin.mean.len()];
        let trace = |x: &[f64]| {
            let state = self.state(&column(x), &zeros);
            state.covariance.trace() + state.own.iter().map(Matrix::trace).sum::<f64>()
        };
        let after = |x: &Matrix| self.numbers(&self.after(&self.state(x, &zeros)));
        let square = match begin.len() {
            // Rates that are close to each other take many rounds to part.
            size if size <= SQUARED => radius(after(&Matrix::identity(size))),
            _ => growth(begin, |x| after(&column(x)).into_entries(), trace)?,
        };
        let whole = mean_map(&self.rounds, self.begin.mean.len() - 1);
        let n = self.lift.free.len();
        let free = Matrix::from_fn(n, n, |i, j| {
            (0..whole.cols())
                .fold(0.0, |sum, k| sum + whole[(self.lift.free[i], k)] * self.lift.map[(k, j)])
        });
        let mean = libm::pow(radius(free), 1.0 / length);
        Some(SpectralRadii { mean, square: libm::pow(square, 1.0 / length) })
    }
}

/// The linear map of the mean over these rounds, without the number 1.
fn mean_map(rounds: &[Rc<PreparedRound>], size: usize) -> Matrix {
    let with = |x: &[f64]| [&[0.0], x].concat();
    Matrix::of_map(size, |x| means_after(rounds, with(x)).split_off(1))
}

fn means_after(rounds: &[Rc<PreparedRound>], mean: Vec<f64>) -> Vec<f64> {
    rounds.iter().fold(mean, |mean, round| round.mean_after(&mean))
}

/// Puts L S Lᵀ into a matrix from a place on, where the entries of S on and above its diagonal are
/// rows of numbers, of which the columns are layers; the row after them.
pub(super) fn put_lifted(
    lift: &Matrix,
    (numbers, mut at): (&Matrix, usize),
    (matrix, place): (&mut Matrix, usize),
) -> usize {
    let (n, layers) = (lift.cols(), numbers.cols());
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

/// The entries of a symmetric matrix at these places, on and above its diagonal.
pub(super) fn numbers_at(places: &[usize], matrix: &Matrix, layers: usize) -> Vec<f64> {
    let mut out = Vec::new();
    for (k, i) in places.iter().enumerate() {
        places[k..].iter().for_each(|j| out.extend_from_slice(entry(matrix, (*i, *j), layers)));
    }
    out
}

fn column(numbers: &[f64]) -> Matrix {
    Matrix::from_entries(numbers.len(), 1, numbers.to_vec())
}

const DIVERGES: &str = "its moments do not come to rest";
