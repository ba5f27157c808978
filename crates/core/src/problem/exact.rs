//! Any problem without its noise: the oracle returns the mean field.

use super::{DrawSmoothness, Facts, Problem, RecordsOf};
use crate::linalg::Matrix;
use crate::rng::Stream;

/// A problem with F_c(θ; Z) = F̄_c(θ), on which FedAvg is FedAvg-D (RR §4). It is one type
/// for all problems, so that the engine is compiled once.
pub struct Exact(Box<dyn Facts>);

impl Exact {
    /// This problem without its noise.
    pub fn new(problem: impl Facts + 'static) -> Self {
        Self(Box::new(problem))
    }
}

impl Facts for Exact {
    fn clients(&self) -> usize {
        self.0.clients()
    }
    fn unequal_shares(&self) -> Option<&[f64]> {
        self.0.unequal_shares()
    }
    fn optimum(&self) -> &[f64] {
        self.0.optimum()
    }
    fn optimum_error(&self) -> Option<f64> {
        self.0.optimum_error()
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        self.0.local_optimum(client)
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.0.mean_field(client, theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.0.jacobian(client)
    }
    fn symmetric(&self) -> bool {
        self.0.symmetric()
    }
    fn jacobian_product(
        &self,
        weights: &[(usize, f64)],
        transposed: bool,
        x: &[f64],
        out: &mut [f64],
    ) {
        self.0.jacobian_product(weights, transposed, x, out);
    }
    fn product_effort(&self) -> f64 {
        self.0.product_effort()
    }
    fn noise_covariance(&self, _client: usize) -> Matrix {
        Matrix::zeros(self.dim(), self.dim())
    }
    fn noise_trace(&self, _client: usize) -> f64 {
        0.0
    }
    fn noise_map(&self, _client: usize, _s: &Matrix) -> Option<Matrix> {
        self.linear().then(|| Matrix::zeros(self.dim(), self.dim()))
    }
    fn curvature(&self, client: usize, m: &Matrix) -> Option<Vec<f64>> {
        self.0.curvature(client, m)
    }
    fn convexity(&self) -> Option<f64> {
        self.0.convexity()
    }
    /// Means of draws are as smooth as these; of linear fields the Jacobians say it.
    fn draw_smoothness(&self) -> DrawSmoothness {
        match self.0.draw_smoothness() {
            DrawSmoothness::Unbounded => DrawSmoothness::Unknown,
            known => known,
        }
    }
    fn mean_smoothness(&self, client: usize) -> Option<f64> {
        self.0.mean_smoothness(client)
    }
    fn third_derivative(&self, client: usize) -> Option<f64> {
        self.0.third_derivative(client)
    }
    fn draws(&self) -> usize {
        self.0.draws()
    }
    fn distribution(&self, client: usize) -> usize {
        self.0.distribution(client)
    }
    fn linear(&self) -> bool {
        self.0.linear()
    }
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        self.0.suboptimality(theta)
    }
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.0.loss(theta, of)
    }
    fn accuracy(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.0.accuracy(theta, of)
    }
    fn feature_norm(&self, x: &[f64]) -> Option<f64> {
        self.0.feature_norm(x)
    }
    fn virtual_optimum(&self) -> Option<&[f64]> {
        self.0.virtual_optimum()
    }
}

impl Problem for Exact {
    type State = ();

    fn oracle(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        _rng: &mut Stream,
        field: &mut [f64],
    ) {
        self.0.mean_field(client, theta, field);
    }
}
