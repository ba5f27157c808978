//! The moments of the draw of the clients that take part in a round, for each type of clients and each pair of types.
//!
//! Client k is drawn m_k times, and 1_k says whether it is drawn at all. The server weighs the row of client k by a
//! multiple of m_k, and what a client keeps depends on 1_k. For different clients k and l,
//!
//! ```text
//! THEORY (4.12)   uniform:            Cov(1_k, 1_l) = −p (1 − p)/(N − 1),   Var 1_k = p (1 − p),   p = L/N
//! THEORY (4.13)   in proportion:      Cov(1_k, 1_l) = P(k, l) − L² π_k π_l,   Var 1_k = L π_k (1 − L π_k)
//! THEORY (4.14)   with replacement:   Cov(m_k, m_l) = −L π_k π_l,   Var m_k = L π_k (1 − π_k)
//!                                     E 1_k = 1 − (1 − π_k)^L,   Cov(m_k, 1_k) = L π_k (1 − π_k)^L
//!                                     Cov(m_k, 1_l) = −L π_k π_l (1 − π_l)^(L−1)
//!                                     Cov(1_k, 1_l) = (1 − π_k − π_l)^L − (1 − π_k)^L (1 − π_l)^L
//! ```

use super::error::MomentsError;
use super::setup::Setup;
use crate::client_sampling::{FixedSizeDesign, ParticipationScheme};
use crate::round_program::Round;

/// What a draw of clients multiplies the row of a client by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawFactor {
    /// m_k, how often the client is drawn, in the server's mean.
    Count,
    /// 1_k, whether the client is drawn.
    Indicator,
}

/// The moments of the draw of a round.
#[derive(Clone, Debug)]
pub(super) enum DrawLaw {
    /// L of N clients are drawn, all with the probability p, and none twice.
    Uniform {
        /// p = L/N.
        chance: f64,
        /// N.
        clients: f64,
    },
    /// Clients are drawn by their shares.
    ByShares(ShareMoments),
}

/// The moments of a draw of clients by their shares. Pairs of types are numbered g T + h, where T is the number of
/// types; the moments of a pair are those of two different clients.
#[derive(Clone, Debug)]
pub(super) struct ShareMoments {
    /// E 1_k for each type.
    chances: Vec<f64>,
    /// Cov(m_k, m_l).
    counts: FactorCovariances,
    /// Cov(m_k, 1_l), with the count of a client of the first type.
    crossed: FactorCovariances,
    /// Cov(1_k, 1_l).
    indicators: FactorCovariances,
}

/// Covariances of two factors of rows.
#[derive(Clone, Debug)]
struct FactorCovariances {
    /// Of one client, for each type.
    own: Vec<f64>,
    /// Of two clients, for each pair of types.
    pairs: Vec<f64>,
}

impl DrawLaw {
    /// The moments of the draw of L = `size` clients in a round.
    ///
    /// # Errors
    /// If clients are to be drawn in proportion to their shares, and a share is above 1/L.
    pub(super) fn new(setup: &Setup<'_>, round: &Round, size: usize) -> Result<Self, MomentsError> {
        let facts = setup.facts;
        let n = facts.clients();
        let uniform = Self::Uniform { chance: size as f64 / n as f64, clients: n as f64 };
        Ok(match round.participation.for_shares(facts.unequal_shares().is_some()) {
            ParticipationScheme::Normalised | ParticipationScheme::Rescaled => uniform,
            ParticipationScheme::WithReplacement => {
                let first = setup.types.iter().map(|of| of.first);
                let shares: Vec<f64> = first.map(|client| facts.share(client)).collect();
                Self::ByShares(ShareMoments::with_replacement(&shares, size))
            }
            ParticipationScheme::Proportional => {
                let shares: Vec<f64> = (0..n).map(|client| facts.share(client)).collect();
                let first: Vec<usize> = setup.types.iter().map(|of| of.first).collect();
                let moments = ShareMoments::proportional(&shares, size, &first);
                Self::ByShares(moments.ok_or(MomentsError::ImpossibleDraw)?)
            }
        })
    }

    /// E 1_k of a client of type g.
    pub(super) fn chance(&self, g: usize) -> f64 {
        match self {
            Self::Uniform { chance, .. } => *chance,
            Self::ByShares(moments) => moments.chances[g],
        }
    }

    /// The covariance of two factors of the row of one client of type g: THEORY (4.12) of a uniform draw.
    pub(super) fn own(&self, factors: [DrawFactor; 2], g: usize) -> f64 {
        match self {
            Self::Uniform { chance, .. } => chance * (1.0 - chance),
            Self::ByShares(moments) => moments.covariances(factors).own[g],
        }
    }

    /// The covariance of the first factor for a client of type g with the second for another client, of type h: THEORY
    /// (4.12) of a uniform draw.
    pub(super) fn pair(&self, factors: [DrawFactor; 2], g: usize, h: usize) -> f64 {
        match self {
            Self::Uniform { chance, clients } => -(chance * (1.0 - chance)) / (clients - 1.0),
            Self::ByShares(moments) => {
                // Crossed moments have the count of a client of the first type.
                let [g, h] = if factors == [DrawFactor::Indicator, DrawFactor::Count] {
                    [h, g]
                } else {
                    [g, h]
                };
                moments.covariances(factors).pairs[g * moments.chances.len() + h]
            }
        }
    }
}

impl ShareMoments {
    /// The moments of L = `size` draws of one client each, with the shares `shares` of the types: THEORY (4.14).
    fn with_replacement(shares: &[f64], size: usize) -> Self {
        let l = size as f64;
        let types = shares.len();
        let power = |x: f64, exponent: usize| libm::pow(x, exponent as f64);
        let mut moments = Self::zero(types);
        for (g, p) in shares.iter().copied().enumerate() {
            let missed = power(1.0 - p, size);
            moments.chances[g] = 1.0 - missed;
            moments.counts.own[g] = l * p * (1.0 - p);
            moments.crossed.own[g] = l * p * missed;
            moments.indicators.own[g] = missed * (1.0 - missed);
            for (h, q) in shares.iter().copied().enumerate() {
                let pair = g * types + h;
                moments.counts.pairs[pair] = -l * p * q;
                moments.crossed.pairs[pair] = -l * p * q * power(1.0 - q, size - 1);
                // Two clients of one type have shares of at most one half; for others rounding may leave less than 0.
                let both_missed = power((1.0 - p - q).max(0.0), size);
                moments.indicators.pairs[pair] = both_missed - missed * power(1.0 - q, size);
            }
        }
        moments
    }

    /// The moments of the draw of L = `size` distinct clients in proportion to the shares of all N clients, where
    /// `first` is the first client of each type: THEORY (4.13). `None` if a share is above 1/L.
    fn proportional(shares: &[f64], size: usize, first: &[usize]) -> Option<Self> {
        let design = FixedSizeDesign::new(shares, size)?;
        let types = first.len();
        let mut moments = Self::zero(types);
        for (g, k) in first.iter().copied().enumerate() {
            let joint = design.joint_inclusion(k);
            let chance = size as f64 * shares[k];
            moments.chances[g] = chance;
            moments.indicators.own[g] = chance * (1.0 - chance);
            for (h, other) in first.iter().copied().enumerate() {
                // Clients of equal shares have equal inclusion probabilities; a type of one client has no pair.
                let is_like = |l: &usize| *l != k && shares[*l] == shares[other];
                let another = if g == h { (0..shares.len()).find(is_like) } else { Some(other) };
                let Some(l) = another else { continue };
                moments.indicators.pairs[g * types + h] =
                    joint[l] - chance * size as f64 * shares[l];
            }
        }
        // Nobody is drawn twice, so that counts are indicators.
        moments.counts = moments.indicators.clone();
        moments.crossed = moments.indicators.clone();
        Some(moments)
    }

    /// Moments of 0 for this number of types.
    fn zero(types: usize) -> Self {
        let zero = FactorCovariances { own: vec![0.0; types], pairs: vec![0.0; types * types] };
        let chances = vec![0.0; types];
        Self { chances, counts: zero.clone(), crossed: zero.clone(), indicators: zero }
    }

    /// The covariances of two factors.
    fn covariances(&self, factors: [DrawFactor; 2]) -> &FactorCovariances {
        match factors {
            [DrawFactor::Count, DrawFactor::Count] => &self.counts,
            [DrawFactor::Indicator, DrawFactor::Indicator] => &self.indicators,
            _ => &self.crossed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DrawFactor::{Count, Indicator};

    /// The moments of three draws with replacement are those of all 27 outcomes.
    #[test]
    fn moments_with_replacement_are_those_of_all_outcomes() {
        let shares = [0.5, 0.3, 0.2];
        let law = DrawLaw::ByShares(ShareMoments::with_replacement(&shares, 3));
        let factor = |which: DrawFactor, count: f64| match which {
            Count => count,
            Indicator => count.min(1.0),
        };
        for factors in [[Count, Count], [Count, Indicator], [Indicator, Count], [Indicator; 2]] {
            for g in 0..3 {
                for h in 0..3 {
                    let mut means = [0.0; 3];
                    for outcome in 0..27 {
                        let draws = [outcome / 9, outcome / 3 % 3, outcome % 3];
                        let chance: f64 = draws.iter().map(|k| shares[*k]).product();
                        let counts =
                            [g, h].map(|k| draws.iter().filter(|x| **x == k).count() as f64);
                        let x = factor(factors[0], counts[0]);
                        let y = factor(factors[1], counts[1]);
                        means[0] += chance * x;
                        means[1] += chance * y;
                        means[2] += chance * x * y;
                    }
                    let wanted = means[2] - means[0] * means[1];
                    let found = if g == h { law.own(factors, g) } else { law.pair(factors, g, h) };
                    assert!(
                        (found - wanted).abs() < 1e-15,
                        "{factors:?} {g} {h}: {found} {wanted}"
                    );
                    if factors[0] == Indicator {
                        assert!((law.chance(g) - means[0]).abs() < 1e-15);
                    }
                }
            }
        }
    }
}
