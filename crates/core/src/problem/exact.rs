//! Any problem without its noise: the oracle returns the mean field.

use super::facts::{DrawSmoothness, Facts, forward_facts, forward_measures};
use super::oracle::Problem;
use crate::kernel::Draws;
use crate::linalg::Matrix;

/// A problem with F_c(θ; Z) = F̄_c(θ), on which FedAvg is FedAvg-D (RR §4). It is one type
/// for all problems, so that the engine is compiled once. Its draws are independent, also if those of the problem
/// are Markovian, and an oracle call counts as one gradient, whatever the batch of the problem is.
pub struct Exact(Box<dyn Facts>);

impl Exact {
    /// This problem without its noise.
    pub fn new(problem: impl Facts + 'static) -> Self {
        Self(Box::new(problem))
    }
}

impl Facts for Exact {
    forward_facts!(self.0, {
        fn local_optimum(&self, client: usize) -> Option<&[f64]>;
        fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]);
        fn curvature(&self, client: usize, m: &Matrix) -> Option<Vec<f64>>;
        fn convexity(&self) -> Option<f64>;
        fn mean_smoothness(&self, client: usize) -> Option<f64>;
        fn third_derivative(&self, client: usize) -> Option<f64>;
        fn linear(&self) -> bool;
        fn calls_of_epoch(&self, client: usize) -> Option<f64>;
        fn feature_norm(&self, x: &[f64]) -> Option<f64>;
        fn virtual_optimum(&self) -> Option<&[f64]>;
    });
    forward_measures!(self.0);

    fn noise_covariance(&self, _client: usize) -> Matrix {
        Matrix::zeros(self.dim(), self.dim())
    }
    fn noise_trace(&self, _client: usize) -> f64 {
        0.0
    }
    /// 0; `None` on a field that is not linear, whose second moments do not close even without noise.
    fn noise_map(&self, _client: usize, _s: &Matrix) -> Option<Matrix> {
        self.linear().then(|| Matrix::zeros(self.dim(), self.dim()))
    }
    /// A mean of draws that are convex and smooth is so with the same constant. Where the draws have no
    /// constant, their mean may have one, which is not known here.
    fn draw_smoothness(&self) -> DrawSmoothness {
        match self.0.draw_smoothness() {
            DrawSmoothness::Unbounded => DrawSmoothness::Unknown,
            known => known,
        }
    }
}

impl Problem for Exact {
    type State = ();

    fn oracle(&self, client: usize, _draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        self.0.mean_field(client, theta, field);
    }

    /// Draws nothing.
    fn draw(&self, _client: usize, _draws: &mut Draws<()>, _records: &mut Vec<usize>) {}
}
