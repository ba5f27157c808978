//! What a problem says of each type of clients, and origins of coordinates.
//!
//! A vector's coordinates have the origin α θ* + β F̄_k(θ*): with α = 1 they are its distance from
//! θ*, and with β = 1 that of a control variate from its limit. So nothing cancels close to θ*, and
//! whatever α and β are chosen, the numbers are exact.

use super::known::{KnownSteps, OneStep};
use super::local::{Drive, Steps};
use super::types::Type;
use crate::linalg::Matrix;
use crate::problem::Facts;
use std::sync::Arc;

/// What a problem says of each type of clients.
pub(super) struct Setup<'a> {
    pub facts: &'a dyn Facts,
    pub d: usize,
    pub types: Vec<Type>,
    /// The type of each client.
    pub type_of: Vec<usize>,
    /// F̄_k(θ*) of each type, d numbers.
    pub fields: Vec<Vec<f64>>,
    /// Whether the sum of all estimates is part of the state.
    pub average: bool,
    pub known: KnownSteps,
}

/// α and β of each type of clients; of the server one α, and 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Origin(pub Vec<(f64, f64)>);

/// The state between two rounds: mean and covariance of its coordinates, of which the first is the
/// number 1, and the covariance of a client's deviation from the mean of its type.
#[derive(Clone)]
pub(super) struct ProgramState {
    pub mean: Vec<f64>,
    pub covariance: Matrix,
    pub own: Vec<Matrix>,
    pub origins: Vec<Origin>,
    /// The layers of covariances.
    pub layers: usize,
}

impl<'a> Setup<'a> {
    /// Of these types, with that of each client.
    pub fn new(
        facts: &'a dyn Facts,
        (types, type_of): (Vec<Type>, Vec<usize>),
        average: bool,
        known: KnownSteps,
    ) -> Self {
        let fields = types.iter().map(|t| facts.field_at_optimum(t.first)).collect();
        Self { facts, d: facts.dim(), types, type_of, fields, average, known }
    }

    /// The coordinates of the number 1 and of the sum of estimates.
    pub fn before_state(&self) -> usize {
        1 + if self.average { self.d } else { 0 }
    }

    /// The local steps of two runs on the same draws, or of one run, given twice.
    pub fn local(&self, g: usize, drives: [Drive; 2], same: bool) -> Result<Arc<Steps>, String> {
        self.known.steps(self.one_step(g, drives, same))
    }

    /// The first of them.
    pub fn one_step(&self, g: usize, drives: [Drive; 2], same: bool) -> OneStep<'a> {
        OneStep { facts: self.facts, client: self.types[g].first, drives, same }
    }

    /// α θ* + β F̄ of a type.
    pub fn origin(&self, g: usize, optimum: f64, fields: f64) -> Vec<f64> {
        let star = self.facts.optimum();
        (0..self.d).map(|i| optimum * star[i] + fields * self.fields[g][i]).collect()
    }
}

impl Origin {
    pub fn server(optimum: f64) -> Self {
        Self(vec![(optimum, 0.0)])
    }

    pub fn of(&self, g: usize) -> (f64, f64) {
        self.0[if self.0.len() == 1 { 0 } else { g }]
    }

    /// Its bits, to find rounds that are prepared already.
    pub fn bits(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|&(optimum, fields)| [optimum, fields].map(|x| (x + 0.0).to_bits()))
    }

    /// Small whole numbers, which a pattern repeats.
    pub fn of_state(&self) -> Self {
        let whole = |x: f64| {
            let near = x.round();
            if (x - near).abs() < 1e-9 && near.abs() <= 8.0 { near } else { 0.0 }
        };
        Self(self.0.iter().map(|&(optimum, fields)| (whole(optimum), whole(fields))).collect())
    }
}

/// A sum whose rounding errors are 0 if it is next to a whole number or 0.
pub(super) fn tidy(sum: f64, size: f64) -> f64 {
    let near = sum.round();
    if (sum - near).abs() <= 1e-13 * size { near } else { sum }
}
