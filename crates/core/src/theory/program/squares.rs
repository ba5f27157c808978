//! The second moments of a program's cycle as one linear map, in which the number 1 is a coordinate,
//! so that the errors after any number of rounds follow from powers of a matrix.
//!
//! With u = (1, x), x the free coordinates of the state, the numbers are E u uᵀ, on and above the
//! diagonal, and the covariances of the clients' deviations from the means of their types.

use super::moments::ProgramState;
use super::stationary::{Cycle, put_free, put_lifted};
use crate::kernel::{difference, dot};
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::program::Program;

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
    /// The numbers at the start of the cycle.
    pub start: Vec<f64>,
}

impl<'a> Squares<'a> {
    /// Of a program.
    ///
    /// # Errors
    /// As [`Cycle::new`], and if what the state keeps for ever depends on the start.
    pub fn new(
        program: &'a Program,
        facts: &'a dyn Facts,
        start: &StartError,
    ) -> Result<Self, String> {
        let cycle = Cycle::new(program, facts)?;
        let (size, n) = (cycle.begin.mean.len(), cycle.lift.free.len() + 1);
        let spread = Matrix::from_fn(size, n, |i, j| match (i, j) {
            (0, _) => f64::from(u8::from(j == 0)),
            (i, 0) => cycle.lift.constant[i - 1],
            (i, j) => cycle.lift.map[(i - 1, j - 1)],
        });
        let mut new = Self { cycle, spread, first: Vec::new(), start: Vec::new() };
        new.begin(start)?;
        Ok(new)
    }

    /// The rounds of the cycle.
    pub fn rounds(&self) -> usize {
        self.cycle.rounds.len()
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
        self.first.push(square);
        for round in &cycle.lead {
            let (next, found) = cycle.exact.after(round, &state);
            state = next;
            self.first.push(found.covariance.trace());
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
        self.start = self.numbers(&state);
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
}
