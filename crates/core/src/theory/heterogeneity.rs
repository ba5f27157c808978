//! How much clients differ (RR A2), and how well they are conditioned.

use crate::kernel::dot;
use crate::linalg::Matrix;
use crate::linalg::lanczos::{Approximation, Precision, extremes, spectral_norm};
use crate::problem::{Facts, by_distribution, group_clients};
use crate::theory::effort::{self, Effort};

/// Measures of an instance, all at θ*; means over clients are weighted by their shares. They
/// depend on eigenvalues, so print six digits at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// ζ₁: root mean square over clients of ‖F̄_c(θ*)‖ (RR A2, i = 1).
    pub zeta1: f64,
    /// ζ₂: root mean square over clients of ‖H_c − A‖, the spectral norm (RR
    /// A2, i = 2).
    pub zeta2: f64,
    /// The smallest eigenvalue of the symmetric part of A = Σ π_c H_c: μ, or a.
    pub mu: f64,
    /// The largest spectral norm of a client's H_c: L.
    pub smoothness: f64,
    /// Σ π_c tr C_c, the noise at θ*.
    pub noise: f64,
    /// ‖θ* − θ̃‖ with θ̃ the optimum of the virtual environment, if there is one.
    pub virtual_gap: Option<f64>,
    /// How far ζ₂, μ and L may be off, if an iteration found them.
    pub errors: Option<MeasureErrors>,
}

/// How far the measures that an iteration found may be from the exact ones, as
/// [`crate::linalg::lanczos`] estimates it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasureErrors {
    /// The error of ζ₂.
    pub zeta2: f64,
    /// The error of μ, which the iteration finds from above.
    pub mu: f64,
    /// The error of L.
    pub smoothness: f64,
}

/// The relative precision at which an iteration ends.
const PRECISION: f64 = 1e-6;
/// Numbers below this part of a client's norm are differences of numbers that are almost equal.
const ROUNDING: f64 = 1e-9;
/// The most steps of an iteration for a spectral norm where A is formed, and where it is not, so
/// that each step multiplies with the Jacobians of all clients.
const NORM_STEPS: [usize; 2] = [80, 40];
/// The most steps of the iteration for μ, which lies where eigenvalues are often dense.
const MEAN_STEPS: usize = 200;

/// A number that a decomposition found, which counts as exact.
fn exact(value: f64) -> Approximation {
    Approximation { value, error: 0.0 }
}

impl Measures {
    /// The effort of [`Measures::new`].
    pub fn effort(facts: &dyn Facts) -> Effort {
        let dense = effort::spectra(facts, 3.0);
        if dense.fits() { dense } else { iteration_effort(facts) }
    }

    /// The measures of an instance: by decompositions of all Jacobians where their effort fits,
    /// else by Lanczos' iteration. `None` if that is too much as well, or an eigenvalue cannot be
    /// found.
    pub fn new(facts: &dyn Facts) -> Option<Self> {
        match Self::effort(facts) {
            effort if !effort.fits() => None,
            effort if effort == effort::spectra(facts, 3.0) => Self::by_decompositions(facts),
            _ => Self::by_iteration(&MeanJacobian::new(facts, forming_effort(facts).fits())),
        }
    }

    fn by_decompositions(facts: &dyn Facts) -> Option<Self> {
        let jacobians: Vec<Matrix> = (0..facts.clients()).map(|c| facts.jacobian(c)).collect();
        let mean = Matrix::weighted_mean(jacobians.iter(), facts.unequal_shares());
        let mu = exact(mean.symmetric_part().symmetric_extremes()?.1);
        let found = Self::combined(
            facts,
            mu,
            |c| facts.noise_covariance(c).trace(),
            |c| {
                let apart = jacobians[c].plus(-1.0, &mean).spectral_norm()?;
                Some([apart, jacobians[c].spectral_norm()?].map(exact))
            },
        )?;
        Some(Self { errors: None, ..found })
    }

    fn by_iteration(mean: &MeanJacobian<'_>) -> Option<Self> {
        let facts = mean.facts;
        let d = facts.dim();
        let symmetric = facts.symmetric();
        let steps = NORM_STEPS[usize::from(mean.formed.is_none())];
        Self::combined(
            facts,
            mean.smallest()?,
            |c| facts.noise_trace(c),
            |c| {
                let of_norm = Precision { relative: PRECISION, floor: 0.0, steps };
                let norm = spectral_norm(d, symmetric, of_norm, |transposed, x, out| {
                    facts.jacobian_product(&[(c, 1.0)], transposed, x, out);
                });
                let of_apart = Precision { floor: PRECISION * ROUNDING * norm.value, ..of_norm };
                let apart = spectral_norm(d, symmetric, of_apart, |transposed, x, out| {
                    mean.difference(c, transposed, x, out);
                });
                (norm.error.is_finite() && apart.error.is_finite()).then_some([apart, norm])
            },
        )
    }

    /// The means over clients, from tr C_c, ‖H_c − A‖ and ‖H_c‖ of one client of each distribution.
    fn combined(
        facts: &dyn Facts,
        mu: Approximation,
        noise: impl Fn(usize) -> f64,
        norms: impl Fn(usize) -> Option<[Approximation; 2]>,
    ) -> Option<Self> {
        let (values, clients) = by_distribution(facts, |c| {
            let field = facts.field_at_optimum(c);
            Some((dot(&field, &field), noise(c), norms(c)?))
        })?;
        let n = facts.clients() as f64;
        // ζ₁², ζ₂², the sum of the squared errors of ζ₂, and Σ π_c tr C_c.
        let mut zeta1_square = 0.0;
        let mut zeta2_square = 0.0;
        let mut zeta2_error = 0.0;
        let mut all_noise = 0.0;
        // L as it was found, and the most that it may be.
        let mut smoothness = 0.0_f64;
        let mut most_smoothness = 0.0_f64;
        for (client, group) in clients.into_iter().enumerate() {
            let (field_square, own_noise, [apart, norm]) = &values[group];
            let weight = facts.weight(client);
            zeta1_square += weight * field_square / n;
            zeta2_square += weight * (apart.value * apart.value) / n;
            zeta2_error += facts.share(client) * (apart.error * apart.error);
            smoothness = smoothness.max(norm.value);
            most_smoothness = most_smoothness.max(norm.value + norm.error);
            all_noise += weight * own_noise / n;
        }
        let gap = facts
            .virtual_optimum()
            .map(|theta| libm::sqrt(crate::kernel::squared_distance(theta, facts.optimum())));
        Some(Self {
            zeta1: libm::sqrt(zeta1_square),
            zeta2: libm::sqrt(zeta2_square),
            mu: mu.value,
            smoothness,
            noise: all_noise,
            virtual_gap: gap,
            errors: Some(MeasureErrors {
                zeta2: libm::sqrt(zeta2_error),
                mu: mu.error,
                smoothness: most_smoothness - smoothness,
            }),
        })
    }

    /// A lower bound on μ.
    pub fn least_mu(&self) -> f64 {
        self.mu - self.errors.map_or(0.0, |errors| errors.mu)
    }
}

/// The effort of forming and decomposing the mean of the Jacobians, one at a time.
fn forming_effort(facts: &dyn Facts) -> Effort {
    let d = facts.dim() as f64;
    // A record adds d²/2 products to one triangle, and a product with its part takes 2 d.
    Effort::new(10.0 * d * d * d + 0.25 * d * facts.product_effort(), 10.0 * d * d)
}

/// The effort of measuring an instance by Lanczos' iteration.
fn iteration_effort(facts: &dyn Facts) -> Effort {
    let d = facts.dim() as f64;
    let all = facts.product_effort();
    let distributions = effort::distributions(facts);
    let forming = forming_effort(facts);
    let sides = if facts.symmetric() { 1.0 } else { 2.0 };
    let few = NORM_STEPS[usize::from(!forming.fits())] as f64;
    let many = MEAN_STEPS as f64;
    let mean = if forming.fits() { d * d } else { all };
    // A step multiplies with the Jacobians, and with all vectors before it twice.
    let clients =
        sides * few * (2.0 * all + distributions * mean) + distributions * 2.0 * few * few * d;
    let of_mean = if forming.fits() {
        forming
    } else {
        Effort::new(sides * many * mean + many * many * d, 0.0)
    };
    Effort::new(clients, many * d) + of_mean
}

/// A, the mean of the clients' Jacobians by their shares.
struct MeanJacobian<'a> {
    facts: &'a dyn Facts,
    /// The first client of each distribution, and the share of all its clients.
    shares: Vec<(usize, f64)>,
    /// A itself, if it can be decomposed.
    formed: Option<Matrix>,
}

impl<'a> MeanJacobian<'a> {
    fn new(facts: &'a dyn Facts, form: bool) -> Self {
        let (first, groups) = group_clients(facts.clients(), |c| facts.distribution(c));
        let mut shares: Vec<(usize, f64)> = first.into_iter().map(|c| (c, 0.0)).collect();
        for (client, group) in groups.into_iter().enumerate() {
            shares[group].1 += facts.share(client);
        }
        let formed = form.then(|| {
            let zero = Matrix::zeros(facts.dim(), facts.dim());
            shares.iter().fold(zero, |mut sum, (client, share)| {
                sum.add(*share, &facts.jacobian(*client));
                sum
            })
        });
        Self { facts, shares, formed }
    }

    /// out ← (H_c − A) x, or its transpose times x.
    fn difference(&self, client: usize, transposed: bool, x: &[f64], out: &mut [f64]) {
        if let Some(mean) = &self.formed {
            self.facts.jacobian_product(&[(client, 1.0)], transposed, x, out);
            mean.add_product(-1.0, transposed, x, out);
        } else {
            // H_c − A = Σ w_k H_k over one client k of each distribution.
            let mut weights = Vec::with_capacity(self.shares.len());
            for &(other, share) in &self.shares {
                weights.push((other, if other == client { 1.0 - share } else { -share }));
            }
            self.facts.jacobian_product(&weights, transposed, x, out);
        }
    }

    /// The smallest eigenvalue of the symmetric part.
    fn smallest(&self) -> Option<Approximation> {
        if let Some(mean) = &self.formed {
            let (largest, value) = mean.symmetric_part().symmetric_extremes()?;
            // Rounding errors of the decomposition.
            let error = f64::EPSILON * mean.rows() as f64 * largest.max(-value);
            return Some(Approximation { value, error });
        }
        let mut other = vec![0.0; self.facts.dim()];
        let symmetric = self.facts.symmetric();
        let found = extremes(
            self.facts.dim(),
            MEAN_STEPS,
            |found| found.smallest.error <= PRECISION * found.smallest.value.abs(),
            |x, out| {
                self.facts.jacobian_product(&self.shares, false, x, out);
                if !symmetric {
                    self.facts.jacobian_product(&self.shares, true, x, &mut other);
                    out.iter_mut().zip(&other).for_each(|(out, other)| *out = 0.5 * (*out + other));
                }
            },
        );
        found.smallest.error.is_finite().then_some(found.smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::garnet::Heterogeneity;
    use crate::problem::logistic::{self, generated};
    use crate::problem::softmax::synthetic;
    use crate::problem::{Exact, Twin, quadratic};
    use crate::sample;

    /// By decompositions, and by iterations with and without A.
    #[track_caller]
    fn agree(facts: &dyn Facts) {
        let dense = Measures::by_decompositions(facts).unwrap();
        assert_eq!(Measures::new(facts), Some(dense));
        for form in [true, false] {
            let found = Measures::by_iteration(&MeanJacobian::new(facts, form)).unwrap();
            let errors = found.errors.unwrap();
            let rounding = 1e-12 * dense.smoothness;
            for (have, want, error) in [
                (found.zeta2, dense.zeta2, errors.zeta2),
                (found.mu, dense.mu, errors.mu),
                (found.smoothness, dense.smoothness, errors.smoothness),
                (found.zeta1, dense.zeta1, 0.0),
                (found.noise, dense.noise, 1e-12 * dense.noise),
            ] {
                assert!((have - want).abs() <= error + rounding, "{found:?} {dense:?}");
            }
            assert!(errors.zeta2 <= PRECISION * dense.zeta2 + rounding, "{found:?}");
            assert!(errors.mu <= PRECISION * dense.mu + rounding, "{found:?}");
            assert!(errors.smoothness <= PRECISION * dense.smoothness + rounding, "{found:?}");
            assert!(found.least_mu() <= dense.mu + rounding && found.mu >= dense.mu - rounding);
            assert_eq!(found.virtual_gap, dense.virtual_gap);
        }
    }

    #[test]
    fn iterations_agree_with_decompositions() {
        let blobs = logistic::Settings { dimension: 30, clients: 3, ..sample::blobs() };
        let same = logistic::SharedRecords::Same;
        agree(&sample::build(&blobs, 1));
        agree(&sample::build(&logistic::Settings { split: same, clients: 5, ..blobs.clone() }, 1));
        agree(&Twin::new(sample::build(&blobs, 2)));
        agree(&Exact::new(sample::build(&blobs, 2)));
        agree(&sample::weighted_logistic());
        agree(&sample::weighted_ridge());
        let sparse = generated::Settings { l2: 1e-3, batch: 2, ..sample::sparse() };
        agree(&sample::build(&sparse, 3));
        let classes = synthetic::Settings { dimension: 6, l2: 0.01, ..sample::synthetic() };
        agree(&sample::build(&classes, 4));
        for heterogeneity in [
            Heterogeneity::Perturbed { kernel: 0.3, reward: 0.1 },
            Heterogeneity::Independent {},
            Heterogeneity::TwoKernels {},
        ] {
            agree(&sample::build(&sample::garnet(heterogeneity, 6), 1));
        }
        let settings = quadratic::Settings {
            dimension: 20,
            noise: 0.5,
            hessian_heterogeneity: 0.1,
            ..sample::quadratic(3)
        };
        agree(&sample::build(&settings, 1));
        // One client: H_c − A is 0.
        agree(&sample::build(&logistic::Settings { clients: 1, ..blobs }, 1));
    }

    /// Sizes that decompositions of all Jacobians do not fit.
    #[test]
    fn large_instances_are_measured_by_iterations() {
        let dense =
            logistic::Settings { dimension: 784, records: 250, clients: 20, ..sample::blobs() };
        let sparse = generated::Settings {
            dimension: 47_236,
            nonzeros: 75,
            records: 200,
            clients: 100,
            l2: 1e-3,
            ..sample::sparse()
        };
        let sparse = sample::build(&sparse, 1);
        assert!(Measures::effort(&sparse).fits() && !effort::spectra(&sparse, 3.0).fits());
        // The penalty alone acts along most features.
        let mu = MeanJacobian::new(&sparse, false).smallest().unwrap();
        assert!((mu.value - 1e-3).abs() <= mu.error && mu.error < 1e-8, "{mu:?}");
        let dense = sample::build(&dense, 1);
        let found = Measures::new(&dense).unwrap();
        let errors = found.errors.unwrap();
        assert!(errors.zeta2 < 1e-5 * found.zeta2 && errors.mu < 1e-9 * found.mu, "{found:?}");
        assert!(errors.smoothness < 1e-5 * found.smoothness && found.mu > 0.2, "{found:?}");
    }

    #[test]
    fn a_quadratic_has_the_measures_it_was_made_with() {
        let gradient_heterogeneity = 1.25;
        let hessian_heterogeneity = 0.25;
        let noise = 0.5;
        let base = sample::quadratic(6);
        let settings =
            quadratic::Settings { gradient_heterogeneity, hessian_heterogeneity, noise, ..base };
        let measures = Measures::new(&sample::build(&settings, 1)).unwrap();
        let Measures { zeta1, zeta2, mu, noise, .. } = measures;
        for (have, want) in [(zeta1, 1.25), (zeta2, 0.25), (mu, 0.5), (noise, 0.75)] {
            assert!((have - want).abs() < 1e-10, "{measures:?}");
        }
        assert!(measures.smoothness > 2.0 && measures.smoothness <= 2.25);
        assert_eq!(measures.virtual_gap, None);
    }
}
