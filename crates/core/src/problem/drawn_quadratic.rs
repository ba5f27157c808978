//! Quadratics that are drawn from a class: the condition number, both heterogeneities and the noise are given, and the
//! eigenvalues, the axes, the types of clients with their shares, and the directions in which the types differ are drawn.
//!
//! Clients of one type are alike: f_c(θ) = ½ (θ − θ_g*)ᵀ H_g (θ − θ_g*) of type g. The mean of the H_g, weighted by the
//! numbers of clients, is A, and that of the gradients at θ* is 0.

use super::affine::Affine;
use super::arrays::Files;
use super::fault::{Fault, Faults};
use super::quadratic::{GradientNoise, MultiplicativeForm, Quadratic};
use super::size::InstanceSize;
use super::spectrum::Spectrum;
use crate::kernel::{axpy, dot};
use crate::linalg::{Matrix, SymmetricEigen};
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Quadratic losses of a given number of types of clients, drawn with this condition number and these heterogeneities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// d, the dimension of θ; 2 or more.
    #[schemars(range(min = 2), example = 5)]
    pub dimension: usize,
    /// N, the number of clients.
    #[schemars(range(min = 1), example = 20)]
    pub clients: usize,
    /// The number of types of clients, at most N; 2 or more if there is heterogeneity of either kind. How many clients
    /// are of each type is drawn, all divisions of the N clients into so many parts being equally likely.
    #[schemars(range(min = 1), example = 4)]
    pub types: usize,
    /// The smallest and the largest eigenvalue of the mean Hessian A. The others are drawn between them: uniformly in
    /// the logarithm, or nearer to one of the two ends.
    #[schemars(example = Spectrum { from: 0.1, to: 1.0 })]
    pub spectrum: Spectrum,
    /// ζ₁ of RR A2, 0 or more: the root mean square of ‖∇f_c(θ*)‖.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 1.0)]
    pub gradient_heterogeneity: f64,
    /// ζ₂ of RR A2, 0 or more: the root mean square of ‖H_c − A‖. The loss of every client is convex. Directions of
    /// difference are drawn until they are.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 0.05)]
    pub hessian_heterogeneity: f64,
    /// σ, 0 or more: the standard deviation of additive noise in each entry.
    #[schemars(range(min = 0.0), example = 1.0)]
    pub noise: f64,
}

/// How often the differences of Hessians are drawn until all clients are convex.
const MOST_DRAWS: usize = 200;

/// The powers s of u in λ = from · (to/from)^(u^s), with u uniform: eigenvalues are drawn with one of them.
const POWERS: [f64; 3] = [1.0, 3.0, 1.0 / 3.0];

impl super::settings::Settings for Settings {
    type Instance = Quadratic;

    /// Reports the values for which no instance exists, or which are too large.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        faults.dimension("dimension", self.dimension);
        faults.require(self.dimension >= 2, "dimension", || "must be 2 or more".into());
        faults.clients(self.clients);
        let possible = 1..=self.clients;
        faults.require(possible.contains(&self.types), "types", || {
            format!("must be from 1 to the number of clients, {}, not {}", self.clients, self.types)
        });
        self.spectrum.check(&mut faults);
        for (key, value) in [
            ("gradient-heterogeneity", self.gradient_heterogeneity),
            ("hessian-heterogeneity", self.hessian_heterogeneity),
        ] {
            faults.non_negative(key, value);
            faults.require(self.types > 1 || value == 0.0, key, || {
                "must be 0 for a single type of clients".into()
            });
        }
        faults.non_negative("noise", self.noise);
        faults.0
    }

    fn extent(&self) -> Option<InstanceSize> {
        Some(InstanceSize::of_matrices(self.clients, self.dimension))
    }

    fn build(&self, seed: u64, _files: &dyn Files) -> Result<Quadratic, Fault> {
        let mut rng = Stream::shared_instance(seed);
        let values = self.eigenvalues(&mut rng);
        let axes = rotation(self.dimension, &mut rng);
        let counts = self.counts(&mut rng);
        let shares: Vec<f64> = counts.iter().map(|n| *n as f64 / self.clients as f64).collect();
        let apart = self.hessian_differences(&values, &shares, &mut rng)?;
        let gradients = self.gradients(&shares, &mut rng);
        let target = super::spectrum::direction(self.dimension, &mut rng);
        let mut clients = Vec::with_capacity(self.clients);
        let mut type_of = Vec::with_capacity(self.clients);
        for (g, count) in counts.iter().enumerate() {
            let mut hessian = diagonal(&values);
            hessian.add(1.0, &apart[g]);
            let hessian = axes.times(&hessian).times_transposed(&axes).symmetric_part();
            let mut offset = hessian.apply(&target);
            axpy(-1.0, &gradients[g], &mut offset);
            for _ in 0..*count {
                clients.push(Affine::new(hessian.clone(), offset.clone()));
                type_of.push(g);
            }
        }
        let form = MultiplicativeForm::default();
        Quadratic::new(
            clients,
            type_of,
            GradientNoise { additive: self.noise, multiplicative: 0.0, form },
        )
    }
}

impl Settings {
    /// The d eigenvalues of A, the ends first.
    fn eigenvalues(&self, rng: &mut Stream) -> Vec<f64> {
        let Spectrum { from, to } = self.spectrum;
        let power = POWERS[rng.index(POWERS.len())];
        let mut values = vec![from, to];
        for _ in 2..self.dimension {
            let place = libm::pow(rng.uniform(), power);
            values.push(from * libm::exp(place * libm::log(to / from)));
        }
        values
    }

    /// How many clients are of each type, at least one of each.
    fn counts(&self, rng: &mut Stream) -> Vec<usize> {
        // Between the clients in a row there are N − 1 places at which a type may end.
        let mut ends: Vec<usize> =
            rng.distinct(self.clients - 1, self.types - 1).iter().map(|i| i + 1).collect();
        ends.push(self.clients);
        ends.sort_unstable();
        let mut begin = 0;
        let mut counts = Vec::with_capacity(self.types);
        for end in ends {
            counts.push(end - begin);
            begin = end;
        }
        counts
    }

    /// H_g − A of each type in the axes of A, whose eigenvalues are `values`: A^q S_g A^q with symmetric Gaussian
    /// matrices S_g and a q that is drawn between 0 and 1, so that types differ in all directions by as much, or most in
    /// those in which A is steep.
    ///
    /// # Errors
    /// If clients are not convex in all of many draws.
    fn hessian_differences(
        &self,
        values: &[f64],
        shares: &[f64],
        rng: &mut Stream,
    ) -> Result<Vec<Matrix>, Fault> {
        let d = self.dimension;
        if self.hessian_heterogeneity == 0.0 {
            return Ok(vec![Matrix::zeros(d, d); shares.len()]);
        }
        let mean = diagonal(values);
        for _ in 0..MOST_DRAWS {
            let power = rng.uniform();
            let sides: Vec<f64> = values.iter().map(|x| libm::pow(*x, power)).collect();
            let drawn: Vec<Matrix> = shares.iter().map(|_| symmetric(d, rng)).collect();
            let center = Matrix::weighted_mean(drawn.iter(), Some(shares));
            let mut apart = Vec::with_capacity(drawn.len());
            let mut square = 0.0;
            for (one, share) in drawn.iter().zip(shares) {
                let centred = one.plus(-1.0, &center);
                let scaled = Matrix::from_fn(d, d, |i, j| sides[i] * centred[(i, j)] * sides[j]);
                let norm = SymmetricEigen::new(&scaled).norm();
                square += share * norm * norm;
                apart.push(scaled);
            }
            let factor = self.hessian_heterogeneity / libm::sqrt(square);
            let apart: Vec<Matrix> = apart.iter().map(|one| one.scaled(factor)).collect();
            let mut hessians = apart.iter().map(|one| mean.plus(1.0, one));
            if hessians.all(|hessian| SymmetricEigen::new(&hessian).least() > 0.0) {
                return Ok(apart);
            }
        }
        let message = format!(
            "clients of {} types are hardly ever convex if Hessians differ by {}, where the smallest eigenvalue of their mean is {}",
            self.types, self.hessian_heterogeneity, self.spectrum.from
        );
        Err(Fault::new("hessian-heterogeneity", message))
    }

    /// The gradient of each type at θ*: Gaussian vectors with the weighted mean 0 and the root mean square ζ₁.
    fn gradients(&self, shares: &[f64], rng: &mut Stream) -> Vec<Vec<f64>> {
        let d = self.dimension;
        if self.gradient_heterogeneity == 0.0 {
            return vec![vec![0.0; d]; shares.len()];
        }
        let mut drawn: Vec<Vec<f64>> =
            shares.iter().map(|_| (0..d).map(|_| rng.gaussian()).collect()).collect();
        let mut mean = vec![0.0; d];
        drawn.iter().zip(shares).for_each(|(one, share)| axpy(*share, one, &mut mean));
        let mut square = 0.0;
        for (one, share) in drawn.iter_mut().zip(shares) {
            axpy(-1.0, &mean, one);
            square += share * dot(one, one);
        }
        let factor = self.gradient_heterogeneity / libm::sqrt(square);
        drawn.iter_mut().flatten().for_each(|x| *x *= factor);
        drawn
    }
}

/// The diagonal matrix of these entries.
fn diagonal(values: &[f64]) -> Matrix {
    Matrix::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { 0.0 })
}

/// A symmetric matrix with independent Gaussian entries on and above the diagonal, whose law does not change by a
/// rotation.
fn symmetric(d: usize, rng: &mut Stream) -> Matrix {
    let drawn = Matrix::from_entries(d, d, (0..d * d).map(|_| rng.gaussian()).collect());
    drawn.symmetric_part()
}

/// Columns of length 1 that are orthogonal to each other, uniformly drawn: Gaussian vectors, each without its parts along
/// the ones before it.
fn rotation(d: usize, rng: &mut Stream) -> Matrix {
    let mut columns: Vec<Vec<f64>> = Vec::with_capacity(d);
    for _ in 0..d {
        let mut column: Vec<f64> = (0..d).map(|_| rng.gaussian()).collect();
        // Twice, since the first time leaves rounding errors of the size of what is taken away.
        for _ in 0..2 {
            for other in &columns {
                let part = dot(&column, other);
                axpy(-part, other, &mut column);
            }
        }
        let length = libm::sqrt(dot(&column, &column));
        column.iter_mut().for_each(|x| *x /= length);
        columns.push(column);
    }
    Matrix::from_columns(columns.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Facts, Settings as _, check, group_clients};
    use crate::sample;

    /// Settings with heterogeneity of both kinds.
    fn settings() -> Settings {
        Settings {
            dimension: 4,
            clients: 12,
            types: 3,
            spectrum: Spectrum { from: 0.1, to: 2.0 },
            gradient_heterogeneity: 1.5,
            hessian_heterogeneity: 0.08,
            noise: 0.7,
        }
    }

    #[test]
    fn instances_have_what_was_asked_for() {
        let mut all_counts = std::collections::HashSet::new();
        for seed in 0..20 {
            let problem = sample::build(&settings(), seed);
            let (first, type_of) = group_clients(12, |client| problem.distribution(client));
            assert_eq!(first.len(), 3);
            all_counts.insert(first.clone());
            let mean = Matrix::weighted_mean(
                (0..12).map(|c| problem.jacobian(c)).collect::<Vec<_>>().iter(),
                None,
            );
            let mut gradients = 0.0;
            let mut hessians = 0.0;
            for c in 0..12 {
                let field = problem.field_at_optimum(c);
                gradients += dot(&field, &field) / 12.0;
                let hessian = problem.jacobian(c);
                assert_eq!(hessian, problem.jacobian(first[type_of[c]]));
                assert!(SymmetricEigen::new(&hessian).least() > 0.0);
                hessians += SymmetricEigen::new(&hessian.plus(-1.0, &mean)).norm().powi(2) / 12.0;
            }
            assert!((gradients.sqrt() - 1.5).abs() < 1e-11, "{gradients}");
            assert!((hessians.sqrt() - 0.08).abs() < 1e-11, "{hessians}");
            let found = SymmetricEigen::new(&mean);
            assert!((found.norm() - 2.0).abs() < 1e-12 && (found.least() - 0.1).abs() < 1e-12);
        }
        assert!(all_counts.len() > 10, "{all_counts:?}");
    }

    #[test]
    fn the_oracle_has_the_stated_mean_and_covariance() {
        check::agree(&sample::build(&settings(), 4), 200_000);
    }

    #[test]
    fn clients_that_cannot_be_convex_are_refused() {
        let far = Settings { hessian_heterogeneity: 5.0, ..settings() };
        assert_eq!(far.check(), []);
        let fault = far.build(1, &crate::problem::arrays::NoFiles).err().unwrap();
        assert!(fault.message.contains("hardly ever convex"), "{fault:?}");
        let one = Settings { types: 1, ..settings() };
        assert_eq!(one.check().len(), 2);
        let many = Settings { types: 13, ..settings() };
        assert_eq!(many.check().len(), 1);
    }
}
