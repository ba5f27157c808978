//! A round, ready to be applied: what its noises are linear in, and the forms of the next state.

use super::form::Form;
use super::local::{CoinPair, InfiniteMoments, Steps};
use super::setup::Origin;
use crate::linalg::Matrix;
use crate::round_program::Each;
use std::sync::Arc;

/// What makes coordinates and noises of a round known, in order.
pub(super) enum Stage {
    /// A vector becomes coordinates.
    Coordinates(Form),
    /// A sum of noises becomes one.
    Sum(Vec<(usize, Matrix)>),
    /// A noise, with those before it that are drawn together with it.
    Noise { source: NoiseSource, law: Law, with: Vec<(usize, NoiseSource, Law)> },
    /// What comes of the draw of a cohort, together with what came of it before.
    Drawn(Vec<Drawn>),
}

/// What a noise is linear in, for a type of clients or for the server: the form of y, and of a
/// client's deviation from it.
#[derive(Clone)]
pub(super) struct NoiseSource {
    pub of: Option<usize>,
    pub y: Form,
    pub own: Form,
}

/// How the covariance of two noises follows from E y y'ᵀ.
#[derive(Clone)]
pub(super) enum Law {
    /// As that of local steps of two runs.
    Steps(Arc<Steps>),
    /// Standard normal.
    Normal,
    /// What a mask of this variance removes; of all clients together, or of each for itself.
    Mask { variance: f64, each: Each, shared: bool },
    /// Local steps up to a coin that all clients share.
    Coin(Arc<CoinPair>),
}

/// Rows of which those of a drawn cohort count, by types: less their mean chance.
#[derive(Clone)]
pub(super) struct Drawn {
    /// The number of its first noise: one of each type, or one of the server.
    pub first: usize,
    /// Whether it is a sum over all.
    pub server: bool,
    /// L/N.
    pub chance: f64,
    pub mean: Vec<Form>,
    pub own: Vec<Form>,
    /// Σ over all clients.
    pub total: Form,
}

/// A round, ready to be applied.
pub(super) struct PreparedRound {
    /// The number of its coordinates.
    pub width: usize,
    /// The largest sum of sizes of the coefficients by which a number of the next state is made of atoms:
    /// where these cancel, rounding errors are that much larger.
    pub gain: f64,
    /// What does not exist after it, whatever the state before it.
    pub infinite: Option<InfiniteMoments>,
    pub stages: Vec<Stage>,
    /// The number 1 and each vector of the next state, and by types each of a client's deviation.
    pub next: Vec<Form>,
    pub own_next: Vec<Vec<Form>>,
    /// θ_t − θ*.
    pub result: Form,
    /// θ_k − θ* of the clients before they communicate, and the deviations, by types.
    pub ends: Option<(Vec<Form>, Vec<Form>)>,
    pub origins: Vec<Origin>,
}

impl PreparedRound {
    /// The mean of the next state from those of all coordinates.
    pub fn next_mean(&self, coordinates: &[f64]) -> Vec<f64> {
        self.next.iter().flat_map(|form| form.value(coordinates)).collect()
    }

    /// The means of all coordinates from those of the state.
    pub fn known_mean(&self, mean: &[f64]) -> Vec<f64> {
        let mut known = mean.to_vec();
        for stage in &self.stages {
            if let Stage::Coordinates(form) = stage {
                let value = form.value(&known);
                known.extend(value);
            }
        }
        known
    }

    /// The mean of the next state from that of this one.
    pub fn mean_after(&self, mean: &[f64]) -> Vec<f64> {
        self.next_mean(&self.known_mean(mean))
    }

    /// What the result and the noises are made of, where the coordinates are these.
    pub fn read(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut out = self.result.value(coordinates);
        let mut add = |form: &Form| out.extend(form.value(coordinates));
        for stage in &self.stages {
            match stage {
                Stage::Noise { source, .. } => add(&source.y),
                Stage::Drawn(all) => all.iter().for_each(|drawn| {
                    drawn.mean.iter().chain([&drawn.total]).for_each(&mut add);
                }),
                Stage::Coordinates(_) | Stage::Sum(_) => {}
            }
        }
        out
    }
}
