//! How much clients differ (RR A2), and how well they are conditioned.
//!
//! F̄_c is the mean field of client c, H_c its Jacobian at θ*, C_c the covariance of one draw of the field at θ*, π_c
//! the client's share, and A = Σ π_c H_c. Clients of one distribution have these in common.

use crate::kernel::dot;
use crate::linalg::Matrix;
use crate::linalg::lanczos::{Approximation, Precision, extremes, spectral_norm};
use crate::problem::{Facts, by_distribution, group_clients};
use crate::theory::effort::{self, Effort};

/// How different the clients of an instance are, and how well conditioned and noisy their fields are. All is
/// measured at θ*; means over clients are weighted by their shares. The numbers depend on eigenvalues, so print
/// six digits at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// ζ₁: root mean square over clients of ‖F̄_c(θ*)‖ (RR A2, i = 1).
    pub zeta1: f64,
    /// ζ₂: root mean square over clients of ‖H_c − A‖, the spectral norm (RR
    /// A2, i = 2).
    pub zeta2: f64,
    /// The smallest eigenvalue of the symmetric part of A = Σ π_c H_c: μ, or a. Not above 0 where θ* is not unique.
    pub mu: f64,
    /// The largest spectral norm of a client's H_c: L.
    pub smoothness: f64,
    /// Σ π_c tr C_c, the noise at θ*.
    pub noise: f64,
    /// ‖θ* − θ̃‖ with θ̃ the optimum of the virtual environment; `None` on problems without one.
    pub virtual_gap: Option<f64>,
    /// How far ζ₂, μ and L may be off, if Lanczos' iteration found them; `None` if decompositions did.
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

/// The relative error at which Lanczos' iteration for a norm or an eigenvalue ends.
const PRECISION: f64 = 1e-6;
/// Numbers below this part of a client's norm are differences of numbers that are almost equal.
const ROUNDING: f64 = 1e-9;
/// The most steps of the iteration for μ, which lies where eigenvalues are often dense.
const MEAN_STEPS: usize = 200;

/// The most steps of the iteration for a spectral norm. They are fewer unless A `is_formed` as a matrix, since each
/// step then multiplies with the Jacobians of all clients.
fn norm_steps(is_formed: bool) -> usize {
    if is_formed { 80 } else { 40 }
}

/// A number that a decomposition found, which counts as exact.
fn exact(value: f64) -> Approximation {
    Approximation { value, error: 0.0 }
}

impl Measures {
    /// The effort of [`Measures::new`]: of decompositions where it fits, else of Lanczos' iteration, which may be
    /// too much as well.
    pub fn effort(facts: &dyn Facts) -> Effort {
        let dense = effort::spectra(facts, 3.0);
        if dense.fits() { dense } else { iteration_effort(facts) }
    }

    /// The measures of an instance: by decompositions of all Jacobians where their effort fits,
    /// else by Lanczos' iteration. `None` if that is too much as well, or an eigenvalue cannot be
    /// found. Measures that take long are cached with results: a change of a bit of them needs another version of
    /// cached measures, which the crate that caches them states.
    pub fn new(facts: &dyn Facts) -> Option<Self> {
        if effort::spectra(facts, 3.0).fits() {
            Self::by_decompositions(facts)
        } else if iteration_effort(facts).fits() {
            Self::by_iteration(&MeanJacobian::new(facts, forming_effort(facts).fits()))
        } else {
            None
        }
    }

    /// The measures from eigenvalue decompositions of the Jacobians, which are all in memory at once; `None` if
    /// one of these fails.
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

    /// The measures from products of Jacobians with vectors alone, with their errors; `None` if the error that an
    /// iteration states is not finite, or the decomposition of A fails, where it is formed.
    fn by_iteration(mean: &MeanJacobian<'_>) -> Option<Self> {
        let facts = mean.facts;
        let d = facts.dim();
        let symmetric = facts.symmetric();
        let steps = norm_steps(mean.formed.is_some());
        Self::combined(
            facts,
            mean.smallest()?,
            |c| facts.noise_trace(c),
            |c| {
                let of_norm = Precision { relative: PRECISION, floor: 0.0, steps };
                let norm = spectral_norm(d, symmetric, of_norm, |transposed, x, out| {
                    facts.jacobian_product(&[(c, 1.0)], transposed, x, out);
                });
                // Where H_c is nearly A, their difference is rounding errors of this size.
                let of_apart = Precision { floor: PRECISION * ROUNDING * norm.value, ..of_norm };
                let apart = spectral_norm(d, symmetric, of_apart, |transposed, x, out| {
                    mean.difference(c, transposed, x, out);
                });
                (norm.error.is_finite() && apart.error.is_finite()).then_some([apart, norm])
            },
        )
    }

    /// The measures of all clients, with μ given: `noise(c)` is tr C_c and `norms(c)` is [‖H_c − A‖, ‖H_c‖], which
    /// are asked for of the first client c of each distribution. `None` if `norms` is. The measures always have errors,
    /// which are 0 if all that is given is [`exact`].
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
        let mut zeta1_square = 0.0;
        let mut zeta2_square = 0.0;
        // Σ π_c (the error of ‖H_c − A‖)²: by the triangle inequality its root is at least the error of ζ₂.
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
            // Rounding errors may hide that A is singular.
            mu: if facts.optimum_set().is_some() { mu.value.min(0.0) } else { mu.value },
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
}

/// The effort of adding up the mean A of the Jacobians, one after the other in memory, and of decomposing A.
fn forming_effort(facts: &dyn Facts) -> Effort {
    let d = facts.dim() as f64;
    // A record adds d²/2 products to one triangle of A, and 2 d to `product_effort`.
    Effort::new(10.0 * d * d * d + 0.25 * d * facts.product_effort(), 10.0 * d * d)
}

/// The effort of [`Measures::by_iteration`], if every iteration takes as many steps as it may.
fn iteration_effort(facts: &dyn Facts) -> Effort {
    let d = facts.dim() as f64;
    let all = facts.product_effort();
    let distributions = effort::distributions(facts);
    let forming = forming_effort(facts);
    // Of a Jacobian that is not symmetric the transpose is multiplied as well.
    let sides = if facts.symmetric() { 1.0 } else { 2.0 };
    let few = norm_steps(forming.fits()) as f64;
    let many = MEAN_STEPS as f64;
    // The multiplications of A with a vector.
    let mean = if forming.fits() { d * d } else { all };
    // Each step of an iteration multiplies with Jacobians, and makes its vector orthogonal to all earlier ones, which
    // takes two products of each of their numbers. There are two iterations for each distribution: ‖H_c‖ multiplies
    // with H_c, and ‖H_c − A‖ with H_c and A. `all` counts H_c of all distributions.
    let clients =
        sides * few * (2.0 * all + distributions * mean) + distributions * 2.0 * few * few * d;
    let of_mean = if forming.fits() {
        forming
    } else {
        Effort::new(sides * many * mean + many * many * d, 0.0)
    };
    Effort::new(clients, many * d) + of_mean
}

/// A = Σ π_c H_c, the mean of the clients' Jacobians, as a matrix or by its products with vectors.
struct MeanJacobian<'a> {
    facts: &'a dyn Facts,
    /// The first client of each distribution, and the sum of the shares of all clients with this distribution.
    shares: Vec<(usize, f64)>,
    /// A as a matrix; `None` if it is too large, so that only its products with vectors are known.
    formed: Option<Matrix>,
}

impl<'a> MeanJacobian<'a> {
    /// The mean of an instance's Jacobians, as a matrix if `form`, and otherwise only by its products with vectors.
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

    /// Writes (H_c − A) x, or (H_c − A)ᵀ x if `transposed`, to `out`, for the client c that is the first of its
    /// distribution.
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

    /// μ, the smallest eigenvalue of the symmetric part of A, with its error; `None` if the decomposition fails, or
    /// the error that the iteration states is not finite.
    fn smallest(&self) -> Option<Approximation> {
        const TRANSPOSED: bool = true;
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
                self.facts.jacobian_product(&self.shares, !TRANSPOSED, x, out);
                if !symmetric {
                    self.facts.jacobian_product(&self.shares, TRANSPOSED, x, &mut other);
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

    /// Asserts that the measures by decompositions and by iterations, with A formed and not formed, are equal
    /// within the errors that the iterations state.
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
            assert!(found.mu >= dense.mu - rounding, "{found:?}");
            assert_eq!(found.virtual_gap, dense.virtual_gap);
        }
    }

    /// Problems of each kind, with clients of equal and of unequal shares, of one distribution and of several.
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
        let sparse = generated::Settings { l2: 1e-3.into(), batch: 2, ..sample::sparse() };
        agree(&sample::build(&sparse, 3));
        let classes = synthetic::Settings { dimension: 6, l2: 0.01.into(), ..sample::synthetic() };
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
            l2: 1e-3.into(),
            ..sample::sparse()
        };
        let sparse = sample::build(&sparse, 1);
        assert!(Measures::effort(&sparse).fits() && !effort::spectra(&sparse, 3.0).fits());
        // The penalty alone acts along most features.
        let form = false;
        let mu = MeanJacobian::new(&sparse, form).smallest().unwrap();
        assert!((mu.value - 1e-3).abs() <= mu.error && mu.error < 1e-8, "{mu:?}");
        let dense = sample::build(&dense, 1);
        let found = Measures::new(&dense).unwrap();
        let errors = found.errors.unwrap();
        assert!(errors.zeta2 < 1e-5 * found.zeta2 && errors.mu < 1e-9 * found.mu, "{found:?}");
        assert!(errors.smoothness < 1e-5 * found.smoothness && found.mu > 0.2, "{found:?}");
    }

    /// Eigenvalues from 0.5 to 2 in three dimensions, and noise of the variance 0.25 in each of them.
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
