//! Rounds whose noise is the same everywhere, as one linear map with a constant and additive noise: THEORY (6.9).

use super::error::MomentsError;
use super::known::KnownSteps;
use super::moments::ProgramMoments;
use super::setup::Setup;
use super::stages::{Law, PreparedRound, Stage};
use super::stationary::{Cycle, MOST_COORDINATES, mean_map};
use super::types::Type;
use crate::kernel::{axpy, dot};
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::round_program::Program;
use std::cell::RefCell;

/// Rounds x ← M x + ζ₁ c + n of a state x, where the noise n has mean 0 and a covariance that is the same in all
/// rounds. The estimate after a round has the error W x + ζ₁ w + m, where x is the state before the round and the noise m
/// has mean 0 too: THEORY (6.9).
#[derive(Clone, Debug)]
pub struct LinearRounds {
    /// The errors before the rounds that repeat: after round 0, and after each round of the lead.
    pub lead: Vec<ErrorParts>,
    /// The state before the first of the rounds that repeat that comes of the distance of the start from θ*.
    pub start_of_distance: Vec<f64>,
    /// The state before these rounds that comes of the clients' gradients at θ*, where the problem's ζ₁ is taken as 1.
    pub start_of_gradients: Vec<f64>,
    /// The covariance of the state before these rounds; `None` if nothing was drawn before.
    pub start_noise: Option<Matrix>,
    /// M, of the order of the state.
    pub map: Matrix,
    /// c, what the clients' gradients at θ* add to the state in a round.
    pub constant: Vec<f64>,
    /// The covariance of n, which is that of the problem's noise and of its number of clients.
    pub noise: Matrix,
    /// W, which maps the state before a round to the error after it and has d rows.
    pub result: Matrix,
    /// w, what the clients' gradients at θ* add to the error, d numbers.
    pub result_constant: Vec<f64>,
    /// The trace of the covariance of m.
    pub result_noise: f64,
}

/// The parts of the error of an estimate.
#[derive(Clone, Debug)]
pub struct ErrorParts {
    /// What comes of the distance of the start from θ*, d numbers.
    pub distance: Vec<f64>,
    /// What comes of the clients' gradients at θ*, d numbers.
    pub gradients: Vec<f64>,
    /// The trace of the covariance.
    pub noise: f64,
}

impl LinearRounds {
    /// The rounds of a program that repeats one round, from a start at this distance `apart` from θ*, on a problem whose
    /// clients are of these types and have equal shares. The cache of local steps must be one
    /// [of constant noise](KnownSteps::of_constant_noise). `None` if the rounds draw clients, masks or a coin, whose noise
    /// depends on the state, or if several different rounds repeat.
    ///
    /// # Errors
    /// Why there are no moments.
    pub fn of_program(
        program: &Program,
        facts: &dyn Facts,
        types: &[Type],
        known: &KnownSteps,
        apart: &[f64],
    ) -> Result<Option<Self>, MomentsError> {
        let setup = Setup::new(facts, types.to_vec(), Vec::new(), false, known.clone());
        let exact = ProgramMoments { program, setup, prepared: RefCell::default(), variates: None };
        let cycle = Cycle::prepare(exact, MOST_COORDINATES)?;
        let [round] = &cycle.rounds[..] else { return Ok(None) };
        if !cycle.lead.iter().chain(&cycle.rounds).all(|round| has_additive_noise(round)) {
            return Ok(None);
        }
        let optimum = facts.optimum();
        let start: Vec<f64> = optimum.iter().zip(apart).map(|(x, apart)| x + apart).collect();
        let mut distance = cycle.exact.initial(&start, 0.0).mean;
        let mut gradients = cycle.exact.initial(optimum, 1.0);
        let mut lead = vec![ErrorParts {
            distance: apart.to_vec(),
            gradients: vec![0.0; apart.len()],
            noise: 0.0,
        }];
        for round in &cycle.lead {
            let (next, found) = cycle.exact.after(round, &gradients);
            let of_distance = round.result.value(&round.known_mean(&distance));
            distance = round.mean_after(&distance);
            lead.push(ErrorParts {
                distance: of_distance,
                noise: found.covariance.trace(),
                gradients: found.mean,
            });
            gradients = next;
        }
        let size = cycle.begin.mean.len() - 1;
        let mut at_rest = cycle.begin.clone();
        at_rest.mean.fill(0.0);
        at_rest.mean[0] = 1.0;
        let (next, found) = cycle.exact.after(round, &at_rest);
        Ok(Some(Self {
            start_of_distance: distance[1..].to_vec(),
            start_of_gradients: gradients.mean[1..].to_vec(),
            start_noise: (lead.len() > 1).then(|| without_one(&gradients.covariance)),
            lead,
            map: mean_map(&cycle.rounds, size),
            constant: next.mean[1..].to_vec(),
            noise: without_one(&next.covariance),
            result: error_map(round, size, apart.len()),
            result_constant: found.mean,
            result_noise: found.covariance.trace(),
        }))
    }

    /// The parts of the error after a round, whose state before it comes of the distance and of the gradients, and has
    /// this trace of W Cov(x) Wᵀ.
    pub fn error_after(&self, of_distance: &[f64], of_gradients: &[f64], noise: f64) -> ErrorParts {
        let mut gradients = self.result.apply(of_gradients);
        axpy(1.0, &self.result_constant, &mut gradients);
        ErrorParts {
            distance: self.result.apply(of_distance),
            gradients,
            noise: noise + self.result_noise,
        }
    }
}

impl ErrorParts {
    /// ‖u‖², u · w, ‖w‖² and the trace of the covariance, for the parts u of the distance and w of the gradients.
    pub fn coefficients(&self) -> [f64; 4] {
        let Self { distance, gradients, noise } = self;
        [dot(distance, distance), dot(distance, gradients), dot(gradients, gradients), *noise]
    }
}

/// W of a round, d × `size`: the linear map of the state before it, of `size` coordinates next to the number 1, to the
/// error after it.
fn error_map(round: &PreparedRound, size: usize, d: usize) -> Matrix {
    let mut map = Matrix::zeros(d, size);
    for j in 0..size {
        let mut unit = vec![0.0; size + 1];
        unit[j + 1] = 1.0;
        let column = round.result.value(&round.known_mean(&unit));
        column.into_iter().enumerate().for_each(|(i, x)| map[(i, j)] = x);
    }
    map
}

/// A matrix over the coordinates of a state without those of the number 1, which is the first.
fn without_one(matrix: &Matrix) -> Matrix {
    Matrix::from_fn(matrix.rows() - 1, matrix.cols() - 1, |i, j| matrix[(i + 1, j + 1)])
}

/// Whether the noises of a round are of local steps, gradients and normal numbers alone, with a number of local steps
/// that is not drawn.
fn has_additive_noise(round: &PreparedRound) -> bool {
    round.stages.iter().all(|stage| match stage {
        Stage::Coordinates(_) | Stage::Sum(_) => true,
        Stage::Noise { law, with, .. } => {
            is_additive(law) && with.iter().all(|earlier| is_additive(&earlier.law))
        }
        Stage::Drawn(_) => false,
    })
}

/// Whether a noise with this law is of local steps, of gradients or of normal numbers, and so the same in every state
/// where oracles' noise is constant.
fn is_additive(law: &Law) -> bool {
    matches!(law, Law::Steps(_) | Law::Normal)
}
