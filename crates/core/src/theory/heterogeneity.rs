//! How much clients differ (RR A2), and how well they are conditioned.

use crate::kernel::dot;
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::theory::effort::{self, Effort};
use std::collections::btree_map::{BTreeMap, Entry};

/// Measures of an instance, all at θ*. They depend on eigenvalues, so print six digits at
/// most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// ζ₁: root mean square over clients of ‖F̄_c(θ*)‖ (RR A2, i = 1).
    pub zeta1: f64,
    /// ζ₂: root mean square over clients of ‖H_c − A‖, the spectral norm (RR
    /// A2, i = 2).
    pub zeta2: f64,
    /// The smallest eigenvalue of the symmetric part of A = N⁻¹ Σ H_c: μ, or a.
    pub mu: f64,
    /// The largest spectral norm of a client's H_c: L.
    pub smoothness: f64,
    /// N⁻¹ Σ tr C_c, the noise at θ*.
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
        let mean = Matrix::mean(jacobians.iter());
        let (mut first, mut second, mut noise, mut smoothness) = (0.0, 0.0, 0.0, 0.0_f64);
        let mut laws: BTreeMap<usize, [f64; 4]> = BTreeMap::new();
        for (c, jacobian) in jacobians.iter().enumerate() {
            let [drift, apart, most, spread] = match laws.entry(facts.distribution(c)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let field = facts.field_at_optimum(c);
                    *new.insert([
                        dot(&field, &field),
                        jacobian.plus(-1.0, &mean).spectral_norm()?,
                        jacobian.spectral_norm()?,
                        facts.noise_covariance(c).trace(),
                    ])
                }
            };
            first += drift / n as f64;
            second += apart * apart / n as f64;
            smoothness = smoothness.max(most);
            noise += spread / n as f64;
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
    use crate::problem::arrays::NoFiles;
    use crate::problem::{Settings as _, quadratic, spectrum::Spectrum};

    #[test]
    fn a_quadratic_has_the_measures_it_was_made_with() {
        let problem = quadratic::Settings {
            dimension: 4,
            clients: 6,
            spectrum: Spectrum { from: 0.5, to: 2.0 },
            gradient_heterogeneity: 1.25,
            hessian_heterogeneity: 0.25,
            noise: 0.5,
            multiplicative_noise: 0.0,
        }
        .build(1, &NoFiles)
        .unwrap();
        let measures = Measures::new(&problem).unwrap();
        for (have, want) in [
            (measures.zeta1, 1.25),
            (measures.zeta2, 0.25),
            (measures.mu, 0.5),
            (measures.noise, 1.0),
        ] {
            assert!((have - want).abs() < 1e-10, "{measures:?}");
        }
        assert!(measures.smoothness > 2.0 && measures.smoothness <= 2.25);
        assert_eq!(measures.virtual_gap, None);
    }
}
