//! Quadratics with chosen spectrum and chosen heterogeneity (RR A4, in the
//! later version A5): f_c(θ) = ½ (θ − θ_c*)ᵀ H_c (θ − θ_c*), and the oracle
//! F_c(θ; Z) = (1 + τw) H_c (θ − θ_c*) + σε, ε Gaussian, and w Gaussian or ±1.
//!
//! H_c = A ± δ(I − 2uuᵀ) and ∇f_c(θ*) = ±g in pairs of clients, so that the
//! means are A and 0, and ζ₁, ζ₂ have their settings' values without computing an
//! eigenvalue.

use super::affine::{Affine, half_square, mean_part};
use super::arrays::Files;
use super::facts::{DrawSmoothness, Facts};
use super::fault::{Fault, Faults, MOST_DIMENSIONS};
use super::oracle::Problem;
use super::size::InstanceSize;
use super::spectrum::{Spectrum, direction, rotated};
use crate::kernel::{Draws, axpy, dot, product};
use crate::linalg::Matrix;
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Quadratic losses with a Hessian H_c and an optimum θ_c* for each client, and Gaussian noise on
/// the gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// d, the dimension of θ; 1 or more.
    #[schemars(range(min = 1), example = 5)]
    pub dimension: usize,
    /// N, the number of clients; 1 or more, and 2 or more if there is heterogeneity of either kind,
    /// which moves clients in pairs apart: of an odd number, the last client is at the mean.
    #[schemars(range(min = 1), example = 10)]
    pub clients: usize,
    /// Eigenvalues of the mean Hessian A, evenly spaced in the logarithm.
    #[schemars(example = Spectrum { from: 0.1, to: 1.0 })]
    pub spectrum: Spectrum,
    /// ζ₁ of RR A2, 0 or more: the root mean square of ‖∇f_c(θ*)‖.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 1.0)]
    pub gradient_heterogeneity: f64,
    /// ζ₂ of RR A2, 0 or more: the root mean square of ‖H_c − A‖. It moves eigenvalues of clients by at most
    /// the smallest one, so that the loss of every client is convex; if by the smallest one, a client may
    /// have no unique optimum.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 0.05)]
    pub hessian_heterogeneity: f64,
    /// σ, 0 or more: the standard deviation of additive noise in each entry.
    #[schemars(range(min = 0.0), example = 1.0)]
    pub noise: f64,
    /// τ, 0 or more: the standard deviation of a random factor on the gradient, which has mean 1.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 0.5)]
    pub multiplicative_noise: f64,
    /// The law of that factor.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(extend("default" = "gaussian"))]
    pub multiplicative_form: MultiplicativeForm,
}

/// The law of the random factor 1 + τw on the gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MultiplicativeForm {
    /// w is Gaussian: some draws are of a loss that is not convex.
    #[default]
    Gaussian,
    /// w is 1 or −1, with probability ½ each; τ at most 1, so that the loss of every draw is convex
    /// and smooth, as RR A1 requires.
    TwoPoint,
}

impl Settings {
    /// How far each client of a pair must be from the mean of all, so that the root mean square of this
    /// distance over all clients is `zeta`, ζ₁ or ζ₂. It is larger than `zeta` for an odd N, where the last
    /// client has no partner and is at distance 0; and 0 for a single client.
    fn distance_in_pairs(&self, zeta: f64) -> f64 {
        let paired = 2 * (self.clients / 2);
        if paired == 0 { 0.0 } else { zeta * libm::sqrt(self.clients as f64 / paired as f64) }
    }
}

impl super::settings::Settings for Settings {
    type Instance = Quadratic;

    /// Reports the values for which no instance exists, or which are too large.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        faults.dimension("dimension", self.dimension);
        faults.clients(self.clients);
        faults.memory("clients", self.clients, 8 * self.dimension.min(MOST_DIMENSIONS).pow(2));
        self.spectrum.check(&mut faults);
        faults.non_negative("gradient-heterogeneity", self.gradient_heterogeneity);
        faults.non_negative("hessian-heterogeneity", self.hessian_heterogeneity);
        faults.non_negative("noise", self.noise);
        faults.non_negative("multiplicative-noise", self.multiplicative_noise);
        let convex = self.multiplicative_form == MultiplicativeForm::Gaussian
            || self.multiplicative_noise <= 1.0;
        faults.require(convex, "multiplicative-noise", || {
            "must be at most 1 for a factor of two points, so that every draw is convex".into()
        });
        let apart = self.distance_in_pairs(self.hessian_heterogeneity);
        let least = self.spectrum.from;
        faults.require(apart <= least || apart == 0.0, "hessian-heterogeneity", || {
            format!("moves eigenvalues by {apart}, which must be at most the smallest, {least}")
        });
        for (key, value) in [
            ("gradient-heterogeneity", self.gradient_heterogeneity),
            ("hessian-heterogeneity", self.hessian_heterogeneity),
        ] {
            let has_partner = self.clients > 1;
            faults.require(has_partner || value == 0.0, key, || {
                "must be 0 for a single client".into()
            });
        }
        faults.0
    }

    fn extent(&self) -> Option<InstanceSize> {
        Some(InstanceSize::of_matrices(self.clients, self.dimension))
    }

    /// Draws the mean Hessian A and a target from the stream that all clients share, and for each pair of
    /// clients, such as 0 and 1, the directions u and g along which they differ from the means, with opposite signs.
    /// The last of an odd number of clients is at the means. θ* is the target but for rounding errors.
    fn build(&self, seed: u64, _files: &dyn Files) -> Result<Quadratic, Fault> {
        let d = self.dimension;
        let mut rng = Stream::shared_instance(seed);
        let mean = rotated(&self.spectrum.values(d), &direction(d, &mut rng));
        let target = direction(d, &mut rng);
        let mut clients = Vec::with_capacity(self.clients);
        for c in 0..self.clients {
            // A pair draws from the stream of its first client.
            let mut rng = Stream::client_instance(seed, c - c % 2);
            let has_partner = c / 2 < self.clients / 2;
            let sign = if !has_partner {
                0.0
            } else if c.is_multiple_of(2) {
                1.0
            } else {
                -1.0
            };
            let u = direction(d, &mut rng);
            let g = direction(d, &mut rng);
            let delta = sign * self.distance_in_pairs(self.hessian_heterogeneity);
            let pull = sign * self.distance_in_pairs(self.gradient_heterogeneity);
            let mut hessian = mean.plus(delta, &Matrix::identity(d));
            hessian.add_outer(-2.0 * delta, &u, &u);
            // H_c θ − offset is `pull` g at the target, so that the mean over clients is 0 there.
            let mut offset = hessian.apply(&target);
            axpy(-pull, &g, &mut offset);
            clients.push(Affine::new(hessian, offset));
        }
        let type_of = (0..self.clients).collect();
        let noise = GradientNoise {
            additive: self.noise,
            multiplicative: self.multiplicative_noise,
            form: self.multiplicative_form,
        };
        Quadratic::new(clients, type_of, noise)
    }
}

/// The noise of the oracle F(θ; Z) = (1 + τw) ∇f(θ) + σε.
#[derive(Clone, Copy, Debug)]
pub struct GradientNoise {
    /// σ, the standard deviation of the additive noise in each entry.
    pub additive: f64,
    /// τ, the standard deviation of the random factor 1 + τw.
    pub multiplicative: f64,
    /// The law of w.
    pub form: MultiplicativeForm,
}

/// An instance: the quadratic of each client, and the noise of its oracle.
pub struct Quadratic {
    /// The noise of the oracle of every client.
    noise: GradientNoise,
    /// ∇f_c: H_c and H_c θ_c*.
    clients: Vec<Affine>,
    /// The type of each client: clients of one type have the same H_c and θ_c*.
    type_of: Vec<usize>,
    /// The mean of the H_c.
    mean: Matrix,
    /// θ*.
    optimum: Vec<f64>,
}

/// Above this dimension the matrix product of the kernels is faster than dot products.
const LONG: usize = 16;

impl Quadratic {
    /// The quadratics of these clients with this noise; `type_of` is the type of each.
    ///
    /// # Errors
    /// If their mean has no unique minimiser in double precision.
    pub(super) fn new(
        clients: Vec<Affine>,
        type_of: Vec<usize>,
        noise: GradientNoise,
    ) -> Result<Self, Fault> {
        let mean = Affine::weighted_mean(clients.iter(), None);
        let message = "the system is singular in double precision";
        let optimum = mean.solve().map_err(|_| Fault::new("spectrum", message))?;
        Ok(Self { noise, clients, type_of, mean: mean.matrix, optimum })
    }

    /// Draws 1 + τw, the factor of multiplicative noise.
    #[inline(always)]
    fn draw_factor(&self, rng: &mut Stream) -> f64 {
        match self.noise.form {
            MultiplicativeForm::Gaussian => 1.0 + self.noise.multiplicative * rng.gaussian(),
            MultiplicativeForm::TwoPoint if rng.bits() >> 63 == 0 => {
                1.0 - self.noise.multiplicative
            }
            MultiplicativeForm::TwoPoint => 1.0 + self.noise.multiplicative,
        }
    }

    /// Writes ∇f_c(θ) = H_c θ − H_c θ_c* to `field`, d numbers.
    #[inline(always)]
    fn gradient(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        let client = &self.clients[client];
        let offset = &client.offset[..theta.len()];
        if theta.len() > LONG {
            product(client.matrix.entries(), theta, field);
            field.iter_mut().zip(offset).for_each(|(field, offset)| *field -= offset);
            return;
        }
        for (i, field) in field.iter_mut().enumerate() {
            *field = dot(theta, client.matrix.row(i)) - offset[i];
        }
    }
}

impl Facts for Quadratic {
    fn clients(&self) -> usize {
        self.clients.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn local_optimum(&self, client: usize) -> Option<&[f64]> {
        self.clients[client].root()
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.gradient(client, theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.clients[client].matrix.clone()
    }
    fn symmetric(&self) -> bool {
        true
    }
    /// The covariance of a gradient at θ*: σ²I of the additive noise, and τ² ∇f_c(θ*) ∇f_c(θ*)ᵀ of the random factor.
    fn noise_covariance(&self, client: usize) -> Matrix {
        let gradient = self.field_at_optimum(client);
        let mut covariance =
            Matrix::identity(self.dim()).scaled(self.noise.additive * self.noise.additive);
        covariance.add_outer(
            self.noise.multiplicative * self.noise.multiplicative,
            &gradient,
            &gradient,
        );
        covariance
    }
    /// The covariance of gradients between two points θ and θ', τ² E F̄_c(θ) F̄_c(θ')ᵀ + σ²I, given
    /// s = E (e, 1)(e', 1)ᵀ with e = θ − θ* and e' = θ' − θ*. It is linear in s, whose last entry multiplies σ²I; that
    /// entry is 1 if s is such a moment, which it need not be.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let mean = mean_part(self, client, s)
            .scaled(self.noise.multiplicative * self.noise.multiplicative);
        let one = s[(self.dim(), self.dim())];
        Some(
            mean.plus(
                one * self.noise.additive * self.noise.additive,
                &Matrix::identity(self.dim()),
            ),
        )
    }
    fn linear(&self) -> bool {
        true
    }
    fn distribution(&self, client: usize) -> usize {
        self.type_of[client]
    }
    /// The largest eigenvalue of a client's Hessian times the largest factor on it. A Gaussian factor may be
    /// negative, and has no bound. `Unknown` if an eigenvalue is not found.
    fn draw_smoothness(&self) -> DrawSmoothness {
        if self.noise.multiplicative > 0.0 && self.noise.form == MultiplicativeForm::Gaussian {
            return DrawSmoothness::Unbounded;
        }
        // The larger of the two factors 1 ± τ; the smaller is not negative, since τ is at most 1.
        let factor = 1.0 + self.noise.multiplicative;
        let norms = self.clients.iter().map(|client| client.matrix.spectral_norm());
        let largest = norms.reduce(|a, b| Some(a?.max(b?))).flatten();
        largest.map_or(DrawSmoothness::Unknown, |most| DrawSmoothness::AtMost(factor * most))
    }
    /// The quadratic form of the mean Hessian.
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        Some(half_square(&self.mean, theta, self.optimum()))
    }
}

impl Problem for Quadratic {
    type State = ();

    /// Writes (1 + τw) ∇f_c(θ) + σε, with a w that all entries share. What has standard deviation 0 is not drawn.
    #[inline(always)]
    fn oracle(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        let rng = &mut *draws.rng;
        self.gradient(client, theta, field);
        if self.noise.multiplicative > 0.0 {
            let factor = self.draw_factor(rng);
            field.iter_mut().for_each(|x| *x *= factor);
        }
        if self.noise.additive > 0.0 {
            field.iter_mut().for_each(|x| *x += self.noise.additive * rng.gaussian());
        }
    }

    /// Draws w and ε, as far as they have standard deviations above 0.
    fn draw(&self, _client: usize, draws: &mut Draws<()>, _records: &mut Vec<usize>) {
        if self.noise.multiplicative > 0.0 {
            self.draw_factor(draws.rng);
        }
        if self.noise.additive > 0.0 {
            for _ in 0..self.dim() {
                draws.rng.gaussian();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Settings as _, check};
    use crate::sample;

    /// Settings with heterogeneity and noise of both kinds.
    fn settings(clients: usize) -> Settings {
        Settings {
            spectrum: Spectrum { from: 0.2, to: 2.0 },
            gradient_heterogeneity: 1.5,
            hessian_heterogeneity: 0.1,
            noise: 0.7,
            multiplicative_noise: 0.4,
            ..sample::quadratic(clients)
        }
    }

    #[test]
    fn heterogeneity_is_what_was_asked_for() {
        for clients in [2, 4, 7] {
            let problem = sample::build(&settings(clients), 3);
            let mut gradients = 0.0;
            let mut hessians = 0.0;
            for c in 0..clients {
                let g = problem.field_at_optimum(c);
                gradients += dot(&g, &g) / clients as f64;
                let apart = problem.jacobian(c).plus(-1.0, &problem.mean);
                let (high, low) = apart.symmetric_extremes().unwrap();
                hessians += high.max(-low).powi(2) / clients as f64;
            }
            assert!((gradients.sqrt() - 1.5).abs() < 1e-12, "{gradients}");
            assert!((hessians.sqrt() - 0.1).abs() < 1e-12, "{hessians}");
            let (high, low) = problem.mean.symmetric_extremes().unwrap();
            assert!((high - 2.0).abs() < 1e-12 && (low - 0.2).abs() < 1e-12, "{high} {low}");
        }
    }

    #[test]
    fn the_oracle_has_the_stated_mean_and_covariance() {
        check::agree(&sample::build(&settings(4), 4), 200_000);
        let multiplicative_form = MultiplicativeForm::TwoPoint;
        check::agree(&sample::build(&Settings { multiplicative_form, ..settings(4) }, 4), 200_000);
    }

    #[test]
    fn a_factor_of_two_points_is_0_or_2() {
        let base = sample::isotropic(1, 2, 1.0);
        let multiplicative_form = MultiplicativeForm::TwoPoint;
        let two = Settings { multiplicative_noise: 1.0, multiplicative_form, ..base.clone() };
        let problem = sample::build(&two, 1);
        let theta: Vec<f64> = problem.optimum().iter().map(|x| x + 1.0).collect();
        let mut draws = Draws { rng: &mut Stream::shared_instance(1), state: &mut () };
        let mut field = [0.0; 2];
        let mut doubled = 0;
        for _ in 0..1000 {
            problem.oracle(0, &mut draws, &theta, &mut field);
            let factor = field[0].round();
            assert!(factor == 0.0 || factor == 2.0, "{field:?}");
            assert!((field[0] - factor).abs() + (field[1] - factor).abs() < 1e-12, "{field:?}");
            doubled += usize::from(factor == 2.0);
        }
        assert!((430..570).contains(&doubled), "{doubled}");
        let far = Settings { multiplicative_noise: 1.5, ..two.clone() };
        assert_eq!(far.check().len(), 1);
        assert!(toml::to_string(&two).unwrap().contains("two-point"));
        assert!(!toml::to_string(&base).unwrap().contains("form"));
    }

    #[test]
    fn suboptimality_is_the_difference_of_losses() {
        let problem = sample::build(&settings(5), 5);
        let loss = |theta: &[f64]| {
            let clients = problem.clients.iter();
            let losses = clients.map(|c| half_square(&c.matrix, theta, c.root().unwrap()));
            losses.sum::<f64>() / 5.0
        };
        let theta = [0.3, -2.0, 1.0];
        let gap = loss(&theta) - loss(problem.optimum());
        assert!((problem.suboptimality(&theta).unwrap() - gap).abs() < 1e-12);
    }

    /// With the heterogeneity of the smallest eigenvalue of an isotropic mean one client of a pair has the Hessian 2a uuᵀ,
    /// of rank one, and the other is flat along one direction.
    #[test]
    fn clients_may_be_flat() {
        let flat = Settings {
            spectrum: Spectrum { from: 0.5, to: 0.5 },
            hessian_heterogeneity: 0.5,
            ..settings(4)
        };
        assert_eq!(flat.check(), []);
        let problem = sample::build(&flat, 6);
        for client in 0..4 {
            assert_eq!(problem.local_optimum(client), None);
            let (high, low) = problem.jacobian(client).symmetric_extremes().unwrap();
            assert!((high - 1.0).abs() < 1e-12 && low.abs() < 1e-12, "{high} {low}");
        }
        assert_eq!(problem.optimum_set(), None);
        check::agree(&problem, 200_000);
        check::agree(&crate::problem::Exact::new(problem), 2);
    }

    #[test]
    fn too_much_heterogeneity_is_refused() {
        let faults = Settings { hessian_heterogeneity: 0.21, ..settings(4) }.check();
        assert_eq!(faults.len(), 1);
        assert!(faults[0].message.contains("the smallest, 0.2"), "{faults:?}");
        assert_eq!(Settings { clients: 1, ..settings(1) }.check().len(), 2);
    }
}
