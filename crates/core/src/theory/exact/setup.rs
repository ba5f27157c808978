//! The facts of a problem for each type of clients, the state between two rounds, and origins of coordinates. A type is
//! all clients that no round tells apart.
//!
//! The coordinates of a vector are what is left of it after its origin α θ* + β F̄_k(θ*), THEORY (4.8):
//! with α = 1 they are the distance of an estimate from θ*, and with β = 1 that of a control variate from
//! its limit. So nothing cancels close to θ*. The choice of α and β decides about rounding alone.

use super::error::MomentsError;
use super::known::{KnownSteps, OneStep};
use super::local::{Drive, Steps};
use super::types::Type;
use crate::linalg::Matrix;
use crate::problem::Facts;
use std::sync::Arc;

/// What does not change from round to round: the problem, the types of its clients, and their local steps.
pub(super) struct Setup<'a> {
    /// The problem.
    pub facts: &'a dyn Facts,
    /// The dimension d of every vector.
    pub d: usize,
    /// The types of clients.
    pub types: Vec<Type>,
    /// The type of each client. It is empty in a search over numbers of clients, whose rounds do not tell clients of a
    /// type apart: only matrices between clients and blocks of single clients need it.
    pub type_of: Vec<usize>,
    /// F̄_k(θ*) of each type, d numbers, whose mean by shares is 0: THEORY (1.1).
    pub fields: Vec<Vec<f64>>,
    /// Whether Σ_s (θ_s − θ*) over the rounds so far is part of the state, after the number 1.
    pub average: bool,
    /// The local steps that were computed so far.
    pub known: KnownSteps,
}

/// The origin α θ* + β F̄_k(θ*) of a vector, THEORY (4.8), as (α, β): for each type of clients, or once for a vector of
/// the server, which has β = 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Origin(pub Vec<(f64, f64)>);

/// The state between two rounds. Its coordinates are the number 1, the sum of the errors θ_t − θ* if
/// it is followed, and then each vector of the state: d numbers of the server, or d numbers for the mean over each
/// type.
#[derive(Clone)]
pub(super) struct ProgramState {
    /// Means of the coordinates, m in THEORY (5.1). Where second moments are followed as a linear map, all means are 0,
    /// and `covariance` holds E x xᵀ of the coordinates x.
    pub mean: Vec<f64>,
    /// Covariances of the coordinates, Σ in THEORY (5.2).
    pub covariance: Matrix,
    /// D_g of each type, THEORY (3.2): the covariance of a client's deviations from the means of its
    /// type, d numbers for each vector that clients have.
    pub own: Vec<Matrix>,
    /// The origin of each vector.
    pub origins: Vec<Origin>,
    /// The number of [layers](super::layers) of `covariance` and `own`.
    pub layers: usize,
}

impl<'a> Setup<'a> {
    /// A problem whose clients are of these types, with this cache of local steps; `type_of` is the type of each
    /// client ([`Self::type_of`]), and `average` says whether the sum of the errors θ_t − θ* is part of the state.
    pub fn new(
        facts: &'a dyn Facts,
        types: Vec<Type>,
        type_of: Vec<usize>,
        average: bool,
        known: KnownSteps,
    ) -> Self {
        let fields = types.iter().map(|t| facts.field_at_optimum(t.first)).collect();
        Self { facts, d: facts.dim(), types, type_of, fields, average, known }
    }

    /// How many coordinates come before the coordinates of the state's vectors: the number 1 and the sum of
    /// the errors θ_t − θ*.
    pub fn before_state(&self) -> usize {
        1 + if self.average { self.d } else { 0 }
    }

    /// The local steps of a client of type g in one run.
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
    pub fn local_steps_of_one(&self, g: usize, drive: Drive) -> Result<Arc<Steps>, MomentsError> {
        self.known.steps(self.one_step(g, drive))
    }

    /// The local steps of a client of type g in two runs on the same draws.
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
    pub fn local_steps_of_two(
        &self,
        g: usize,
        drives: [Drive; 2],
    ) -> Result<Arc<Steps>, MomentsError> {
        let client = self.types[g].first;
        self.known.steps(OneStep { facts: self.facts, client, drives, same: false })
    }

    /// A single local step of a client of type g in one run: what [`KnownSteps`] needs to compute or find any number of
    /// them.
    pub fn one_step(&self, g: usize, drive: Drive) -> OneStep<'a> {
        let client = self.types[g].first;
        OneStep { facts: self.facts, client, drives: [drive; 2], same: true }
    }

    /// α θ* + β F̄_k(θ*) of type g, d numbers, for α = `optimum` and β = `fields`: THEORY (4.8).
    pub fn origin(&self, g: usize, optimum: f64, fields: f64) -> Vec<f64> {
        let star = self.facts.optimum();
        (0..self.d).map(|i| optimum * star[i] + fields * self.fields[g][i]).collect()
    }
}

impl Origin {
    /// The origin α θ* of a vector of the server, for α = `optimum`.
    pub fn server(optimum: f64) -> Self {
        Self(vec![(optimum, 0.0)])
    }

    /// α and β of type g, or of the server.
    pub fn of_type(&self, g: usize) -> (f64, f64) {
        self.0[if self.0.len() == 1 { 0 } else { g }]
    }

    /// The bits of all α and β, by which a round that was prepared before is found again.
    pub fn bits(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|&(optimum, fields)| [optimum, fields].map(|x| (x + 0.0).to_bits()))
    }

    /// The origin that the next state has in place of this one: an α or β that is a whole number of size at
    /// most 8 is kept, and any other becomes 0, so that the origins of a repeated round repeat too and it
    /// is prepared once. See THEORY (4.8).
    pub fn of_state(&self) -> Self {
        let each = self.0.iter();
        Self(each.map(|&(optimum, fields)| (small_whole(optimum), small_whole(fields))).collect())
    }
}

/// The whole number next to x if it is close and of size at most 8, and otherwise 0.
fn small_whole(x: f64) -> f64 {
    let near = x.round();
    if (x - near).abs() < 1e-9 && near.abs() <= 8.0 { near } else { 0.0 }
}

/// A `sum` of numbers, or the whole number next to it, if the difference may be a rounding error. `size` is the sum of
/// the sizes of the numbers, or ten times that where their weights were computed and have rounding errors of their own.
/// So coefficients of α and β that add up to a whole number do so exactly, and cancel exactly where it is 0.
pub(super) fn tidy(sum: f64, size: f64) -> f64 {
    let near = sum.round();
    if (sum - near).abs() <= 1e-13 * size { near } else { sum }
}
