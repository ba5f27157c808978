//! The second moments of a program's cycle as one linear map, in which the number 1 is a coordinate,
//! so that the errors after any number of rounds follow from powers of a matrix.
//!
//! With u = (1, x), x the free coordinates of the state, the numbers are E u uᵀ, on and above the
//! diagonal, and the covariances of the clients' deviations from the means of their types.

use super::moments::{ProgramMoments, ProgramState};
use super::setup::{KnownSteps, Setup};
use super::stationary::{Cycle, matrix, put_free, put_lifted};
use super::types::Type;
use crate::kernel::{difference, dot};
use crate::linalg::{Matrix, solve};
use crate::problem::Facts;
use crate::program::Program;
use std::cell::RefCell;
use std::collections::HashMap;

/// The distribution of the error θ_0 − θ* of the start.
#[derive(Clone, Debug, PartialEq)]
pub enum StartError {
    /// Mean 0 and the same variance in all directions.
    Isotropic {
        /// E‖θ_0 − θ*‖².
        mean_square: f64,
    },
    /// The fixed start θ_0, d numbers.
    Point(Vec<f64>),
}

impl StartError {
    /// E‖θ_0 − θ*‖², and columns c with Σ c cᵀ = E (θ_0 − θ*, 1)(θ_0 − θ*, 1)ᵀ.
    fn columns(&self, optimum: &[f64]) -> (f64, Vec<(Vec<f64>, f64)>) {
        let d = optimum.len();
        match self {
            Self::Point(start) => {
                let apart = difference(start, optimum);
                (dot(&apart, &apart), vec![(apart, 1.0)])
            }
            Self::Isotropic { mean_square } => {
                let size = libm::sqrt(mean_square / d as f64);
                let axis = |i: usize| (0..d).map(|j| if i == j { size } else { 0.0 }).collect();
                let mut all: Vec<_> = (0..d).map(|i| (axis(i), 0.0)).collect();
                all.push((vec![0.0; d], 1.0));
                (*mean_square, all)
            }
        }
    }
}

/// A cycle with its start.
pub struct Squares<'a> {
    cycle: Cycle<'a>,
    /// All coordinates of the mean from u.
    spread: Matrix,
    /// E‖θ_t − θ*‖² after 0, 1, … rounds, up to the start of the cycle.
    pub first: Vec<f64>,
    /// The same without noise, ‖E θ_t − θ*‖² or its mean over the start.
    pub noiseless: Vec<f64>,
    /// The numbers at the start of the cycle.
    pub start: Vec<f64>,
    /// Columns c with Σ c cᵀ = E u uᵀ there without noise.
    pub columns: Matrix,
    /// The map of E u over the cycle.
    pub means: Matrix,
    /// E θ_t − θ* after each of its rounds from u at its start.
    pub ends: Vec<Matrix>,
}

impl<'a> Squares<'a> {
    /// Of a program of N clients that are all told apart by their distributions alone; so many
    /// are of the first distribution, the second, …, as which `facts` has its first clients.
    ///
    /// # Errors
    /// Why there are none.
    pub fn of_types(
        program: &'a Program,
        facts: &'a dyn Facts,
        counts: &[u64],
        start: &StartError,
        known: &KnownSteps,
    ) -> Result<Self, String> {
        let of = |(first, count): (usize, &u64)| Type { first, count: *count as f64 };
        let types = counts.iter().enumerate().map(of).collect();
        let setup = Setup::of_types(facts, (types, Vec::new()), false, known.clone());
        let prepared = RefCell::new(HashMap::new());
        Self::of(Cycle::of(ProgramMoments { program, setup, prepared, variates: None })?, start)
    }

    /// Of a program.
    ///
    /// # Errors
    /// As [`Cycle::new`], and if what the state keeps for ever depends on the start.
    pub fn new(
        program: &'a Program,
        facts: &'a dyn Facts,
        start: &StartError,
    ) -> Result<Self, String> {
        Self::of(Cycle::new(program, facts)?, start)
    }

    fn of(cycle: Cycle<'a>, start: &StartError) -> Result<Self, String> {
        let (size, n) = (cycle.begin.mean.len(), cycle.lift.free.len() + 1);
        let spread = Matrix::from_fn(size, n, |i, j| match (i, j) {
            (0, _) => f64::from(u8::from(j == 0)),
            (i, 0) => cycle.lift.constant[i - 1],
            (i, j) => cycle.lift.map[(i - 1, j - 1)],
        });
        let empty = Matrix::zeros(0, 0);
        let (columns, means, ends) = (empty.clone(), empty, Vec::new());
        let (first, noiseless, start_numbers) = (Vec::new(), Vec::new(), Vec::new());
        let mut new =
            Self { cycle, spread, first, noiseless, start: start_numbers, columns, means, ends };
        new.begin(start)?;
        let mut ends = vec![Matrix::zeros(new.dim(), n); new.cycle.rounds.len()];
        new.means = matrix(n, |u| new.means_of(u).0);
        for j in 0..n {
            let unit: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == j))).collect();
            for (end, found) in ends.iter_mut().zip(new.means_of(&unit).1) {
                found.iter().enumerate().for_each(|(i, x)| end[(i, j)] = *x);
            }
        }
        new.ends = ends;
        Ok(new)
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.cycle.exact.setup.d
    }

    /// The rounds of the cycle.
    pub fn rounds(&self) -> usize {
        self.cycle.rounds.len()
    }

    /// E u after the cycle from E u before it, and E θ_t − θ* after each round.
    fn means_of(&self, u: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut mean = self.spread.apply(u);
        let mut ends = Vec::new();
        for round in &self.cycle.rounds {
            let known = self.cycle.exact.known_mean(round, &mean);
            ends.push(round.result.value(&known));
            mean = self.cycle.exact.mean_after(round, &mean);
        }
        (self.free(&mean), ends)
    }

    /// u of a mean.
    fn free(&self, mean: &[f64]) -> Vec<f64> {
        let free = self.cycle.lift.free.iter().map(|i| mean[i + 1]);
        std::iter::once(mean[0]).chain(free).collect()
    }

    /// The rounds before the cycle.
    fn begin(&mut self, start: &StartError) -> Result<(), String> {
        let cycle = &self.cycle;
        let optimum = cycle.exact.setup.facts.optimum();
        let (square, columns) = start.columns(optimum);
        let mut state = cycle.exact.initial(optimum, 0.0);
        let mut means: Vec<Vec<f64>> = Vec::new();
        for (apart, unit) in columns {
            let theta: Vec<f64> = optimum.iter().zip(&apart).map(|(x, y)| x + y).collect();
            let mut column = cycle.exact.initial(&theta, unit).mean;
            if column.len() > 1 {
                column[1..].copy_from_slice(&apart);
            }
            state.covariance.add_outer(1.0, &column, &column);
            means.push(column);
        }
        (self.first, self.noiseless) = (vec![square], vec![square]);
        for round in &cycle.lead {
            let (next, found) = cycle.exact.after(round, &state);
            state = next;
            self.first.push(found.covariance.trace());
            let end = |mean: &Vec<f64>| {
                let end = round.result.value(&cycle.exact.known_mean(round, mean));
                dot(&end, &end)
            };
            self.noiseless.push(means.iter().map(end).sum());
            means.iter_mut().for_each(|mean| *mean = cycle.exact.mean_after(round, mean));
        }
        // What is kept for ever must be what it is from θ*.
        for mean in &means {
            let full = self.spread.apply(&self.free(mean));
            let size = full.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
            if full.iter().zip(mean).any(|(x, y)| (x - y).abs() > 1e-8 * size) {
                return Err("what it keeps for ever depends on its start".into());
            }
        }
        let columns: Vec<Vec<f64>> = means.iter().map(|mean| self.free(mean)).collect();
        self.start = self.numbers(&state);
        self.columns = Matrix::from_fn(columns[0].len(), columns.len(), |i, j| columns[j][i]);
        Ok(())
    }

    fn state(&self, numbers: &[f64]) -> ProgramState {
        let mut state = self.cycle.empty();
        let rest = put_lifted(&self.spread, numbers, (&mut state.covariance, 0));
        self.cycle.put_own(rest, &mut state);
        state
    }

    fn numbers(&self, state: &ProgramState) -> Vec<f64> {
        let mut out = Vec::new();
        let free = self.cycle.lift.free.iter().map(|i| i + 1);
        let free: Vec<usize> = std::iter::once(0).chain(free).collect();
        put_free(&free, &|i, j| state.covariance[(i, j)], &mut out);
        self.cycle.own_numbers(state, &mut out);
        out
    }

    /// The numbers after the cycle from those before it, and E‖θ_t − θ*‖² after each of its rounds.
    pub fn after(&self, numbers: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut state, mut errors) = (self.state(numbers), Vec::new());
        for round in &self.cycle.rounds {
            let (next, found) = self.cycle.exact.after(round, &state);
            state = next;
            errors.push(found.covariance.trace());
        }
        (self.numbers(&state), errors)
    }

    /// The places of the numbers that are squares, which no moments have below 0.
    pub fn squares(&self) -> Vec<usize> {
        let sizes = std::iter::once(self.spread.cols());
        let sizes = sizes.chain(self.cycle.own_lifts.iter().map(|lift| lift.free.len()));
        let mut at = 0;
        let mut out = Vec::new();
        for n in sizes {
            for i in 0..n {
                out.push(at);
                at += n - i;
            }
        }
        out
    }

    /// A lower bound of the stationary E‖θ_t − θ*‖² after the last round of the cycle: bias and the
    /// variance that follows from the noise at the stationary mean; `None` if means have no limit.
    pub fn least_stationary(&self) -> Option<f64> {
        let n = self.means.rows() - 1;
        let linear = Matrix::from_fn(n, n, |i, j| self.means[(i + 1, j + 1)]);
        let constant: Vec<f64> = (0..n).map(|i| self.means[(i + 1, 0)]).collect();
        let mut u = vec![1.0];
        u.extend(solve(&Matrix::identity(n).plus(-1.0, &linear), &constant).ok()?);
        let mut numbers = Vec::new();
        put_free(&(0..=n).collect::<Vec<_>>(), &|i, j| u[i] * u[j], &mut numbers);
        numbers.resize(self.start.len(), 0.0);
        let (after, errors) = self.after(&numbers);
        let place = |i: usize, j: usize| i * (n + 1) - i * (i + 1) / 2 + j;
        // The covariance that a cycle adds, and what of it is left after 0, 1, … cycles.
        let mut sum = Matrix::from_fn(n, n, |i, j| {
            let (a, b) = (i.min(j) + 1, i.max(j) + 1);
            after[place(a, b)] - u[a] * u[b]
        });
        let (mut power, mut doublings) = (linear, 0);
        let size = |m: &Matrix| m.entries().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        while size(&power) * size(&power) > 1e-20 {
            sum.add(1.0, &power.times(&sum).times_transposed(&power));
            power = power.times(&power);
            doublings += 1;
            if doublings > 60 || !size(&power).is_finite() {
                return None;
            }
        }
        let end = self.ends.last()?;
        let end = Matrix::from_fn(end.rows(), n, |i, j| end[(i, j + 1)]);
        Some(errors.last()? + end.times(&sum).times_transposed(&end).trace())
    }
}
