//! The constants of a problem in whose units settings may be written: smoothness and strong convexity, as papers state
//! their step sizes.
//!
//! f_c is the loss of client c with its penalty, and f the mean of the clients' losses by their shares. L and μ hold at
//! every θ, in contrast to eigenvalues of Hessians at θ*. On fields that are no gradients, L is the Lipschitz constant
//! of the mean field, and μ is its strong monotonicity.

use super::facts::{DrawSmoothness, Facts, by_distribution};
use crate::linalg::Matrix;
use std::sync::OnceLock;

/// The quotient of the extreme eigenvalues of a matrix up to which it counts as singular.
const SINGULAR: f64 = 1e-12;

/// A constant of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// L: the largest smoothness of a client's f_c.
    L,
    /// The smoothness of f.
    MeanL,
    /// L without the penalty: the largest smoothness of a client's loss of records.
    DataL,
    /// The smoothness of f without the penalty.
    MeanDataL,
    /// The largest smoothness of the loss of a single draw with its penalty, such as that of a record.
    DrawL,
    /// μ: the smallest strong convexity of a client's f_c.
    Mu,
    /// The strong convexity of f.
    MeanMu,
}

impl Constant {
    /// All constants, in the order in which tables have them.
    pub const ALL: [Self; 7] =
        [Self::L, Self::MeanL, Self::DataL, Self::MeanDataL, Self::DrawL, Self::Mu, Self::MeanMu];

    /// The word for the constant in keys, such as `over-mean-L`.
    pub fn word(self) -> &'static str {
        match self {
            Self::L => "L",
            Self::MeanL => "mean-L",
            Self::DataL => "data-L",
            Self::MeanDataL => "mean-data-L",
            Self::DrawL => "draw-L",
            Self::Mu => "mu",
            Self::MeanMu => "mean-mu",
        }
    }

    /// What the constant is, for pages.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::L => "the largest smoothness of a client's loss",
            Self::MeanL => "the smoothness of the mean loss",
            Self::DataL => "the largest smoothness of a client's loss without the penalty",
            Self::MeanDataL => "the smoothness of the mean loss without the penalty",
            Self::DrawL => "the largest smoothness of the loss of a single draw",
            Self::Mu => "the smallest strong convexity of a client's loss",
            Self::MeanMu => "the strong convexity of the mean loss",
        }
    }

    /// Why a problem may not have the constant, for messages.
    pub fn reason_of_absence(self) -> &'static str {
        match self {
            Self::L | Self::MeanL => {
                "a bound on the smoothness of the losses at every θ is not known for this problem"
            }
            Self::DataL | Self::MeanDataL => "this problem has no loss of records",
            Self::DrawL => "the losses of single draws are not known to be smooth for this problem",
            Self::Mu => "the losses of its clients are not known to be strongly convex",
            Self::MeanMu => "its mean loss is not known to be strongly convex",
        }
    }

    /// Computes the constant of an instance, from its records or the Jacobians of its linear fields; `None` if it is
    /// not known. A strong convexity that is not above 0 is not known.
    fn compute(self, facts: &dyn Facts) -> Option<f64> {
        match self {
            Self::L => largest_over_clients(facts, |client| smoothness_of_client(facts, client)),
            Self::MeanL => smoothness_of_mean(facts),
            Self::DataL => {
                largest_over_clients(facts, |client| facts.data_smoothness(Some(client)))
            }
            Self::MeanDataL => facts.data_smoothness(None),
            Self::DrawL => match facts.draw_smoothness() {
                DrawSmoothness::AtMost(smoothness) => Some(smoothness),
                DrawSmoothness::Unbounded | DrawSmoothness::Unknown => None,
            },
            Self::Mu => convexity_of_clients(facts).filter(|mu| *mu > 0.0),
            Self::MeanMu => convexity_of_mean(facts).filter(|mu| *mu > 0.0),
        }
        .filter(|constant| constant.is_finite())
    }
}

/// The largest value over the distributions of clients; `None` if it is not known of one.
fn largest_over_clients(facts: &dyn Facts, value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    let (values, _) = by_distribution(facts, value)?;
    Some(values.into_iter().fold(0.0, f64::max))
}

/// L of a client's f_c: of its records with their penalty, or ‖H_c‖ of a linear field.
fn smoothness_of_client(facts: &dyn Facts, client: usize) -> Option<f64> {
    match facts.data_smoothness(Some(client)) {
        Some(of_data) => Some(of_data + facts.penalty()),
        None if facts.linear() => facts.jacobian(client).spectral_norm(),
        None => None,
    }
}

/// L of f: of all records with their penalty, or ‖Σ π_c H_c‖ of linear fields.
fn smoothness_of_mean(facts: &dyn Facts) -> Option<f64> {
    match facts.data_smoothness(None) {
        Some(of_data) => Some(of_data + facts.penalty()),
        None if facts.linear() => mean_jacobian(facts).spectral_norm(),
        None => None,
    }
}

/// Σ π_c H_c, d × d.
fn mean_jacobian(facts: &dyn Facts) -> Matrix {
    let jacobians: Vec<Matrix> = (0..facts.clients()).map(|c| facts.jacobian(c)).collect();
    Matrix::weighted_mean(jacobians.iter(), facts.unequal_shares())
}

/// The smallest eigenvalue of the symmetric part of a client's H_c over all clients, where fields are linear; elsewhere
/// what the problem states.
fn convexity_of_clients(facts: &dyn Facts) -> Option<f64> {
    if !facts.linear() {
        return facts.convexity();
    }
    let (values, _) = by_distribution(facts, |client| convexity_of_field(&facts.jacobian(client)))?;
    Some(values.into_iter().fold(f64::INFINITY, f64::min))
}

/// The smallest eigenvalue of the symmetric part of Σ π_c H_c, where fields are linear; elsewhere what the problem
/// states.
fn convexity_of_mean(facts: &dyn Facts) -> Option<f64> {
    if !facts.linear() {
        return facts.convexity();
    }
    convexity_of_field(&mean_jacobian(facts))
}

/// The smallest eigenvalue of the symmetric part of the Jacobian of a linear field, or 0 if rounding errors may be all
/// of it, as where a client holds fewer records than features and has no penalty.
fn convexity_of_field(jacobian: &Matrix) -> Option<f64> {
    let (largest, smallest) = jacobian.symmetric_part().symmetric_extremes()?;
    Some(if smallest > SINGULAR * largest { smallest } else { 0.0 })
}

/// The constants of one instance, each computed when it is first asked for. Eigenvalues of large problems take long, so
/// that whoever resolves many settings keeps this.
#[derive(Debug, Default)]
pub struct ProblemConstants {
    /// The constants that were asked for, in the order of [`Constant::ALL`].
    known: [OnceLock<Option<f64>>; Constant::ALL.len()],
}

impl ProblemConstants {
    /// A constant of the instance, which must be the same at every call; `None` if it is not known.
    pub fn get(&self, facts: &dyn Facts, constant: Constant) -> Option<f64> {
        *self.known[constant as usize].get_or_init(|| constant.compute(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Clients with fewer records than features have no strong convexity, whatever rounding makes of their smallest
    /// eigenvalue; their mean has one.
    #[test]
    fn merely_convex_clients_are_not_strongly_convex() {
        let problem = sample::unpenalised_ridge(&[2, 3, 4], 5);
        let constants = ProblemConstants::default();
        assert_eq!(constants.get(&problem, Constant::Mu), None);
        let mean_mu = constants.get(&problem, Constant::MeanMu).unwrap();
        let [l, mean_l] =
            [Constant::L, Constant::MeanL].map(|of| constants.get(&problem, of).unwrap());
        assert!(0.0 < mean_mu && mean_mu < mean_l && mean_l < l, "{mean_mu} {mean_l} {l}");
    }
}
