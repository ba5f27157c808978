//! How much clients differ (RR A2), and how well they are conditioned.

use crate::kernel::dot;
use crate::linalg::Matrix;
use crate::problem::{Facts, by_distribution};
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
}

impl Measures {
    /// The effort of [`Measures::new`].
    pub fn effort(facts: &dyn Facts) -> Effort {
        effort::spectra(facts, 3.0)
    }

    /// The measures of an instance; `None` if an eigenvalue cannot be found.
    pub fn new(facts: &dyn Facts) -> Option<Self> {
        let n = facts.clients();
        let jacobians: Vec<Matrix> = (0..n).map(|c| facts.jacobian(c)).collect();
        let mean = Matrix::weighted_mean(jacobians.iter(), facts.unequal_shares());
        let (mut first, mut second, mut noise, mut smoothness) = (0.0, 0.0, 0.0, 0.0_f64);
        let (values, clients) = by_distribution(facts, |c| {
            let field = facts.field_at_optimum(c);
            Some([
                dot(&field, &field),
                jacobians[c].plus(-1.0, &mean).spectral_norm()?,
                jacobians[c].spectral_norm()?,
                facts.noise_covariance(c).trace(),
            ])
        })?;
        for (client, group) in clients.into_iter().enumerate() {
            let ([drift, apart, most, spread], weight) = (values[group], facts.weight(client));
            first += weight * drift / n as f64;
            second += weight * (apart * apart) / n as f64;
            smoothness = smoothness.max(most);
            noise += weight * spread / n as f64;
        }
        let gap = facts
            .virtual_optimum()
            .map(|theta| libm::sqrt(crate::kernel::squared_distance(theta, facts.optimum())));
        Some(Self {
            zeta1: libm::sqrt(first),
            zeta2: libm::sqrt(second),
            mu: mean.symmetric_part().symmetric_extremes()?.1,
            smoothness,
            noise,
            virtual_gap: gap,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::quadratic;
    use crate::sample;

    #[test]
    fn a_quadratic_has_the_measures_it_was_made_with() {
        let (gradient_heterogeneity, hessian_heterogeneity, noise) = (1.25, 0.25, 0.5);
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
