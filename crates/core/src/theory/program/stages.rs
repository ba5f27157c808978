//! A round, ready to be applied: what its noises are linear in, and the forms of the next state.

use super::form::Form;
use super::local::{GeometricSteps, Steps};
use super::noise::Small;
use super::setup::Origin;
use crate::linalg::Matrix;
use crate::program::Each;
use std::rc::Rc;

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
    pub y: Small,
    pub own: Small,
}

/// How the covariance of two noises follows from E y y'ᵀ.
#[derive(Clone)]
pub(super) enum Law {
    /// As that of local steps of two runs.
    Steps(Rc<Steps>),
    /// Standard normal.
    Normal,
    /// What a mask of this variance removes; of all clients together, or of each for itself.
    Mask { variance: f64, each: Each, shared: bool },
    /// Local steps up to a coin that all clients share.
    Coin(Rc<GeometricSteps>, Rc<GeometricSteps>),
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
    pub mean: Vec<Small>,
    pub own: Vec<Small>,
    /// Σ over all clients.
    pub total: Small,
}

/// A round, ready to be applied.
pub(super) struct PreparedRound {
    /// The number of its coordinates.
    pub width: usize,
    pub stages: Vec<Stage>,
    /// Each vector of the next state, and by types each of a client's deviation.
    pub next: Vec<Form>,
    pub own_next: Vec<Vec<Form>>,
    /// θ_t − θ*.
    pub result: Form,
    /// θ_k − θ* of the clients before they communicate, and the deviations, by types.
    pub ends: Option<(Vec<Small>, Vec<Small>)>,
    pub origins: Vec<Origin>,
}
