//! A round, ready to be applied: the sources of its noises, and the forms of the next state. What is called `own` is of
//! a client's deviation from the mean of its type, THEORY (3.1). A form is a vector W x + Σ G_i n_i of coordinates x
//! and noises n_i, THEORY (4.1).

use super::coin::{CoinPair, InfiniteMoments};
use super::form::Form;
use super::local::Steps;
use super::participation::{DrawFactor, DrawLaw};
use super::setup::Origin;
use crate::linalg::Matrix;
use crate::round_program::Each;
use std::sync::Arc;

/// A step in following the moments of a round: it adds coordinates or noises to what is known. Stages come in the order
/// of the round, so that what a stage reads is known, and in the order of the numbers of the noises that they make,
/// which are counted from 0 over the stages.
pub(super) enum Stage {
    /// The numbers of this form become coordinates.
    Coordinates(Form),
    /// A sum Σ G_i n_i of noises, with the number and the matrix of each, becomes one noise.
    Sum(Vec<(usize, Matrix)>),
    /// A noise, whose covariance follows from its source by the law, with the earlier noises that are drawn together
    /// with it.
    Noise { source: NoiseSource, law: Law, with: Vec<EarlierNoise> },
    /// The noises of the last of these operations, which read which clients take part. They are correlated with the
    /// noises of the others, which came before.
    Drawn(Vec<Drawn>),
}

/// An earlier noise that is drawn together with a new one.
pub(super) struct EarlierNoise {
    /// The number of the earlier noise.
    pub id: usize,
    /// The source of the earlier noise.
    pub source: NoiseSource,
    /// How the covariance of the new noise with the earlier one follows from their sources.
    pub law: Law,
}

/// The source of a noise: a vector in whose second moments the covariance of the noise is linear. It is the y of
/// THEORY (2.2) for local steps, and what a mask acts on.
#[derive(Clone)]
pub(super) struct NoiseSource {
    /// The type of clients whose vector it is; `None` for the server.
    pub of: Option<usize>,
    /// The form of the mean of the vector over the type, or of the server's vector.
    pub y: Form,
    /// The form of a client's deviation; of the server's vector it is 0.
    pub own: Form,
}

/// How the covariance of two noises follows from E y y'ᵀ of their sources.
#[derive(Clone)]
pub(super) enum Law {
    /// The noise map of local steps of two runs, THEORY (2.6).
    Steps(Arc<Steps>),
    /// Standard normal numbers: the identity.
    Normal,
    /// A mask of variance s (1 − s), THEORY (4.5), with one coin for `each` vector or entry. The coins are the same for
    /// all clients if `shared`; otherwise each client has coins of its own.
    Mask { variance: f64, each: Each, shared: bool },
    /// Local steps up to a coin that all clients share, THEORY (2.11).
    Coin(Arc<CoinPair>),
}

/// Rows a_k that count only for clients of the drawn cohort: the noises Σ_k (m_k − E m_k) a_k of the server, or
/// (1_k − E 1_k) a_k of each client, THEORY (4.6), (4.11).
#[derive(Clone)]
pub(super) struct Drawn {
    /// The number of the first noise. There is one noise for the mean over each type, or one of the server.
    pub first: usize,
    /// Whether the noise is a sum over all clients, of the server.
    pub server: bool,
    /// The moments of the draw.
    pub law: Arc<DrawLaw>,
    /// ā_g for each type.
    pub mean: Vec<Form>,
    /// ã_k for each type.
    pub own: Vec<Form>,
    /// Σ_k a_k over all clients.
    pub total: Form,
}

impl Drawn {
    /// What the draw multiplies the rows by.
    pub fn factor(&self) -> DrawFactor {
        if self.server { DrawFactor::Count } else { DrawFactor::Indicator }
    }

    /// How many noises it has, where there are `types` types of clients.
    pub fn noises(&self, types: usize) -> usize {
        if self.server { 1 } else { types }
    }
}

/// A vector of each client, split by THEORY (3.1).
pub(super) struct ClientForms {
    /// The form of the mean over each type.
    pub mean: Vec<Form>,
    /// The form of a client's deviation, for each type.
    pub own: Vec<Form>,
}

/// A round, prepared for a problem and for states with certain origins, and ready to be applied to the moments of such
/// a state.
pub(super) struct PreparedRound {
    /// The number of coordinates at the end of the round.
    pub width: usize,
    /// The largest sum of the absolute values of the coefficients by which a number of the next state is made of atoms.
    /// Where summands cancel, rounding errors are larger by up to this factor.
    pub gain: f64,
    /// The moments that do not exist after the round, whatever the state before it.
    pub infinite: Option<InfiniteMoments>,
    /// How the coordinates and noises of the round become known, in order.
    pub stages: Vec<Stage>,
    /// The coordinates of the next state: the number 1, the sum of the errors θ_t − θ* if it is
    /// followed, and its vectors.
    pub next: Vec<Form>,
    /// A client's deviations in the next state, for each type.
    pub own_next: Vec<Vec<Form>>,
    /// The error θ_t − θ* of the estimate after the round.
    pub result: Form,
    /// θ_k − θ* of the clients before they communicate; `None` unless the round records it.
    pub ends: Option<ClientForms>,
    /// The origins of the next state's vectors.
    pub origins: Vec<Origin>,
}

impl PreparedRound {
    /// The mean of the next state from the means of all coordinates of the round.
    pub fn next_mean(&self, coordinates: &[f64]) -> Vec<f64> {
        self.next.iter().flat_map(|form| form.value(coordinates)).collect()
    }

    /// The means of all coordinates of the round, from the means of the coordinates of the state before it. Noises have
    /// mean 0 and add no coordinates.
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

    /// M m + c of one round: the mean of the next state from the mean m of the state before it, THEORY (5.1).
    pub fn mean_after(&self, mean: &[f64]) -> Vec<f64> {
        self.next_mean(&self.known_mean(mean))
    }

    /// All numbers that the estimate and the sources of noises read, one after another, if these are the round's
    /// coordinates, of the server and of means over types: what clients' deviations enter is left out. A combination of
    /// the state that changes none of them enters no estimate and no noise of the round.
    pub fn read(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut out = self.result.value(coordinates);
        for stage in &self.stages {
            match stage {
                Stage::Noise { source, .. } => out.extend(source.y.value(coordinates)),
                Stage::Drawn(all) => {
                    let forms =
                        all.iter().flat_map(|drawn| drawn.mean.iter().chain([&drawn.total]));
                    out.extend(forms.flat_map(|form| form.value(coordinates)));
                }
                // These stages are made of what is known, and draw nothing.
                Stage::Coordinates(_) | Stage::Sum(_) => {}
            }
        }
        out
    }
}
