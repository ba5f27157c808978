//! A round, ready to be applied: what its noises are linear in, and the forms of the next state.

use super::form::Form;
use super::local::{CoinPair, Steps};
use super::noise::Small;
use super::setup::Origin;
use crate::linalg::Matrix;
use crate::program::Each;
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
    pub y: Small,
    pub own: Small,
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
    /// The number 1 and each vector of the next state, and by types each of a client's deviation.
    pub next: Vec<Form>,
    pub own_next: Vec<Vec<Form>>,
    /// θ_t − θ*.
    pub result: Form,
    /// θ_k − θ* of the clients before they communicate, and the deviations, by types.
    pub ends: Option<(Vec<Small>, Vec<Small>)>,
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
        let mut add = |small: &Small| out.extend(small.value(coordinates));
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

    /// The same round from so many other coordinates, of which those of its state are combinations, and
    /// to combinations of the next state, if they are given: rows over the number 1 and its numbers.
    pub fn through(&self, state: Form, width: usize, read: Option<&Matrix>) -> Self {
        let mut all = state;
        let mut stages = Vec::new();
        let moved = |source: &NoiseSource, all: &Form| NoiseSource {
            y: source.y.substituted(all),
            ..source.clone()
        };
        for stage in &self.stages {
            stages.push(match stage {
                Stage::Coordinates(form) => {
                    all = Form::stacked(&[&all, &form.substituted(&all)]);
                    continue;
                }
                Stage::Sum(parts) => Stage::Sum(parts.clone()),
                Stage::Noise { source, law, with } => {
                    let with = with.iter().map(|(id, of, law)| (*id, moved(of, &all), law.clone()));
                    let (source, law, with) = (moved(source, &all), law.clone(), with.collect());
                    Stage::Noise { source, law, with }
                }
                Stage::Drawn(drawn) => {
                    let each = |drawn: &Drawn| Drawn {
                        mean: drawn.mean.iter().map(|small| small.substituted(&all)).collect(),
                        total: drawn.total.substituted(&all),
                        ..drawn.clone()
                    };
                    Stage::Drawn(drawn.iter().map(each).collect())
                }
            });
        }
        let next: Vec<Form> = self.next.iter().map(|form| form.substituted(&all)).collect();
        Self {
            width,
            stages,
            next: read.map_or_else(|| next.clone(), |read| combined(&next, read)),
            own_next: self.own_next.clone(),
            result: self.result.substituted(&all),
            ends: None,
            origins: self.origins.clone(),
        }
    }
}

/// Combinations of the numbers of some forms; the first form and the first row are the number 1.
fn combined(forms: &[Form], read: &Matrix) -> Vec<Form> {
    let (unit, forms) = forms.split_at(1);
    let rows: Vec<usize> = (1..read.rows()).collect();
    let d = forms.first().map_or(1, |form| form.length);
    let chunk = |rows: &[usize]| {
        let mut out = Form::zero(rows.len());
        out.add_constant(&rows.iter().map(|i| read[(*i, 0)]).collect::<Vec<_>>());
        let unit = vec![1.0; rows.len()];
        for (k, form) in forms.iter().enumerate() {
            let part = Matrix::from_fn(rows.len(), d, |i, j| read[(rows[i], 1 + k * d + j)]);
            if part.entries().iter().any(|x| *x != 0.0) {
                out.add(&unit, &form.mapped(&part));
            }
        }
        out
    };
    unit.iter().cloned().chain(rows.chunks(d).map(chunk)).collect()
}
