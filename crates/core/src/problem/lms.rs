//! Least mean squares (BOOK 5.44–5.46, 5.66): streams of regressors
//! h ~ N(0, R_k) and observations y = hᵀw_k + v. The field is h(hᵀθ − y), with
//! mean R_k(θ − w_k): half the gradient of (5.44), as (5.45) has it.

use super::affine::half_square;
use super::arrays::Files;
use super::facts::{DrawSmoothness, Facts};
use super::fault::{Fault, Faults, MOST_DIMENSIONS};
use super::oracle::Problem;
use super::size::InstanceSize;
use super::spectrum::{Spectrum, direction, reflect, rotated};
use crate::kernel::{Draws, axpy, difference, dot};
use crate::linalg::{Matrix, solve};
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least mean squares (BOOK, 5.44–5.46): client k observes y = hᵀw_k + v with
/// Gaussian h of covariance R_k.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// d, the dimension of h and of θ; 1 or more.
    #[schemars(range(min = 1), example = 5)]
    pub dimension: usize,
    /// N (K in BOOK), the number of clients; 1 or more.
    #[schemars(range(min = 1), example = 20)]
    pub clients: usize,
    /// Eigenvalues of R_k, evenly spaced in the logarithm.
    #[schemars(example = Spectrum { from: 0.5, to: 2.0 })]
    pub spectrum: Spectrum,
    /// Whether the clients share one covariance.
    #[serde(default)]
    pub covariances: Covariances,
    /// The standard deviation of the entries of w_k around a common w, 0 or more.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 0.5)]
    pub model_spread: f64,
    /// σ, 0 or more: the standard deviation of v.
    #[schemars(range(min = 0.0), example = 0.1)]
    pub noise: f64,
}

/// Whether the clients share one covariance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Covariances {
    /// All clients have the same R.
    #[default]
    Same,
    /// All R_k have the same spectrum; the axes of each are reflected along a random direction.
    Rotated,
}

impl super::settings::Settings for Settings {
    type Instance = Lms;

    /// Reports the values for which no instance exists, or which are too large.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        faults.dimension("dimension", self.dimension);
        faults.clients(self.clients);
        faults.memory("clients", self.clients, 8 * self.dimension.min(MOST_DIMENSIONS).pow(2));
        self.spectrum.check(&mut faults);
        faults.non_negative("model-spread", self.model_spread);
        faults.non_negative("noise", self.noise);
        faults.0
    }

    fn extent(&self) -> Option<InstanceSize> {
        Some(InstanceSize::of_matrices(self.clients, self.dimension))
    }

    /// Draws the covariances R_k and the models w_k, and solves (Σ R_k) θ* = Σ R_k w_k. A client's own stream
    /// gives what is its own, so the first clients stay when N grows.
    fn build(&self, seed: u64, _files: &dyn Files) -> Result<Lms, Fault> {
        let d = self.dimension;
        let mut rng = Stream::shared_instance(seed);
        let values = self.spectrum.values(d);
        let shared = direction(d, &mut rng);
        let model = direction(d, &mut rng);
        let mut rhs = vec![0.0; d];
        let n = self.clients as f64;
        let mut clients = Vec::with_capacity(self.clients);
        for c in 0..self.clients {
            let mut rng = Stream::client_instance(seed, c);
            // Drawn also where all clients share one covariance, so that the models w_k are equal in both cases.
            let own = direction(d, &mut rng);
            let axis = match self.covariances {
                Covariances::Same => shared.clone(),
                Covariances::Rotated => own,
            };
            let covariance = rotated(&values, &axis);
            let mut model = model.clone();
            model.iter_mut().for_each(|w| *w += self.model_spread * rng.gaussian());
            axpy(1.0 / n, &covariance.apply(&model), &mut rhs);
            clients.push(LmsClient { axis, covariance, model });
        }
        let mean = Matrix::weighted_mean(clients.iter().map(|c| &c.covariance), None);
        let optimum = solve(&mean, &rhs)
            .map_err(|_| Fault::new("spectrum", "the system is singular in double precision"))?;
        let roots = values.iter().map(|&x| libm::sqrt(x)).collect();
        Ok(Lms { noise: self.noise, roots, clients, mean, optimum })
    }
}

/// The distribution of one client's stream.
struct LmsClient {
    /// The direction u of the reflections with R_k = (I − 2uuᵀ) diag(λ) (I − 2uuᵀ), d numbers.
    axis: Vec<f64>,
    /// R_k, d × d.
    covariance: Matrix,
    /// w_k, d numbers: the client's θ_k*.
    model: Vec<f64>,
}

/// An instance: the distribution of each client's stream, and θ*.
pub struct Lms {
    /// σ, the standard deviation of the observations' noise v.
    noise: f64,
    /// √λ of the eigenvalues λ of all R_k, d numbers.
    roots: Vec<f64>,
    clients: Vec<LmsClient>,
    /// The mean of R_k over clients, d × d.
    mean: Matrix,
    optimum: Vec<f64>,
}

impl Facts for Lms {
    fn clients(&self) -> usize {
        self.clients.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn local_optimum(&self, client: usize) -> Option<&[f64]> {
        Some(&self.clients[client].model)
    }
    /// Writes R_k (θ − w_k).
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        let client = &self.clients[client];
        field.copy_from_slice(&client.covariance.apply(&difference(theta, &client.model)));
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.clients[client].covariance.clone()
    }
    fn symmetric(&self) -> bool {
        true
    }
    /// The covariance of the client's draws at θ*: RDR + R tr(RD) + σ²R with D = (θ* − w_k)(θ* − w_k)ᵀ, since
    /// E hhᵀDhhᵀ = 2RDR + R tr(RD) for Gaussian h, and the mean field there is R(θ* − w_k).
    fn noise_covariance(&self, client: usize) -> Matrix {
        let pull = self.field_at_optimum(client);
        let client = &self.clients[client];
        let apart = difference(&self.optimum, &client.model);
        let weight = dot(&apart, &pull) + self.noise * self.noise;
        let mut covariance = client.covariance.scaled(weight);
        covariance.add_outer(1.0, &pull, &pull);
        covariance
    }
    /// The covariance of the client's draws between two points θ and θ', given s = E (e, 1)(e', 1)ᵀ with e = θ − θ*
    /// and e' = θ' − θ*: RDᵀR + R tr(RD) + σ²R with D = E (θ − w_k)(θ' − w_k)ᵀ, since
    /// E hhᵀDhhᵀ = RDR + RDᵀR + R tr(RD) for Gaussian h, and RDR is the product of the mean fields. It is
    /// linear in s, which need not be such a moment.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let d = self.dim();
        let client = &self.clients[client];
        let apart = difference(&self.optimum, &client.model);
        // The matrix (I, θ* − w_k), which makes θ − w_k of (e, 1).
        let shift = Matrix::from_fn(d, d + 1, |i, j| match j {
            _ if j == d => apart[i],
            _ => f64::from(u8::from(i == j)),
        });
        let second = shift.times(s).times(&shift.transpose());
        let r = &client.covariance;
        let along = client.covariance.times(&second);
        let turned = r.times(&second.transpose()).times(r);
        Some(turned.plus(along.trace() + self.noise * self.noise * s[(d, d)], r))
    }
    fn linear(&self) -> bool {
        true
    }
    /// `Unbounded`: the loss of a draw has the Hessian hhᵀ, and Gaussian regressors h have no bound.
    fn draw_smoothness(&self) -> DrawSmoothness {
        DrawSmoothness::Unbounded
    }
    /// The loss is the mean of ½ E(hᵀθ − y)², whose gradient is the field.
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        Some(half_square(&self.mean, theta, &self.optimum))
    }
}

impl Problem for Lms {
    type State = ();

    /// Draws h as the reflection of Gaussians with variances λ, and v, and writes h (hᵀ(θ − w_k) − v).
    #[inline(always)]
    fn oracle(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        let d = theta.len();
        let rng = &mut *draws.rng;
        let client = &self.clients[client];
        let roots = &self.roots[..d];
        let axis = &client.axis[..d];
        let model = &client.model[..d];
        for i in 0..d {
            field[i] = roots[i] * rng.gaussian();
        }
        reflect(axis, field);
        let along = crate::kernel::fold_sum(d, |i| field[i] * (theta[i] - model[i]));
        let error = along - self.noise * rng.gaussian();
        field.iter_mut().for_each(|h| *h *= error);
    }

    /// Draws the Gaussians of h and that of v.
    fn draw(&self, _client: usize, draws: &mut Draws<()>, _records: &mut Vec<usize>) {
        for _ in 0..=self.dim() {
            draws.rng.gaussian();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::check;

    /// Four clients with noise and models of their own.
    fn instance(covariances: Covariances) -> Lms {
        let settings = Settings {
            dimension: 3,
            clients: 4,
            spectrum: Spectrum { from: 0.5, to: 2.0 },
            covariances,
            model_spread: 0.6,
            noise: 0.3,
        };
        crate::sample::build(&settings, 4)
    }

    #[test]
    fn the_oracle_has_the_stated_mean_and_covariance() {
        for covariances in [Covariances::Same, Covariances::Rotated] {
            check::agree(&instance(covariances), 400_000);
        }
    }

    #[test]
    fn one_covariance_means_the_mean_model() {
        let problem = instance(Covariances::Same);
        for i in 0..3 {
            let mean = (0..4).map(|c| problem.local_optimum(c).unwrap()[i]).sum::<f64>() / 4.0;
            assert!((problem.optimum()[i] - mean).abs() < 1e-14);
        }
        let rotated = instance(Covariances::Rotated);
        assert_ne!(rotated.jacobian(0), rotated.jacobian(1));
    }
}
