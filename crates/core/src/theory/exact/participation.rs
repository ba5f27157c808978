//! The moments of the draw of the clients that take part in a round, for each type of clients and each pair of types.
//!
//! Client k is drawn m_k times, and 1_k says whether it is drawn at all. The server weighs the row of client k by a
//! multiple w_k of m_k, or by a w_k that is 0 unless 1_k is 1, and what a client keeps depends on 1_k. P_k is the
//! probability that client k takes part, and P(k, l) that both k and l do. For different clients k and l,
//!
//! ```text
//! THEORY (4.12)   uniform:            Cov(1_k, 1_l) = −p (1 − p)/(N − 1),   Var 1_k = p (1 − p),   p = L/N
//! THEORY (4.13)   in proportion:      Cov(1_k, 1_l) = P(k, l) − L² π_k π_l,   Var 1_k = L π_k (1 − L π_k)
//! THEORY (4.14)   with replacement:   Cov(m_k, m_l) = −L π_k π_l,   Var m_k = L π_k (1 − π_k)
//!                                     E 1_k = 1 − (1 − π_k)^L,   Cov(m_k, 1_k) = L π_k (1 − π_k)^L
//!                                     Cov(m_k, 1_l) = −L π_k π_l (1 − π_l)^(L−1)
//!                                     Cov(1_k, 1_l) = (1 − π_k − π_l)^L − (1 − π_k)^L (1 − π_l)^L
//! THEORY (4.15)   inverse weights:    w_k = π_k 1_k/P_k,   Cov(w_k, w_l) = π_k π_l (P(k, l)/(P_k P_l) − 1)
//! THEORY (4.16)   coins:              P(k, l) = P_k P_l
//! THEORY (4.17)   coins, normalised:  w_k = 1_k/M,   E w_k = P_k E (1 + M_k)⁻¹,   E w_k² = P_k E (1 + M_k)⁻²
//!                                     E w_k w_l = P_k P_l E (2 + M_kl)⁻²,   E w_k 1_l = P_k P_l E (2 + M_kl)⁻¹
//! THEORY (4.18)   L of a set S:       P_k = L/|S|,   P(k, l) = L (L − 1)/(|S| (|S| − 1))   for k and l in S
//! ```
//!
//! where M clients take part, M_k of those other than k, and M_kl of those other than k and l.

use super::error::MomentsError;
use super::setup::Setup;
use crate::client_sampling::{
    ClientProbabilities, FixedSizeDesign, ParticipationScheme, inclusion_of, shares_of,
};
use crate::problem::Facts;
use crate::round_program::Round;
use std::collections::HashMap;

/// What a draw of clients multiplies the row of a client by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawFactor {
    /// m_k, how often the client is drawn, in the server's mean, or its weight w_k.
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
    /// Types of clients are drawn or weighed differently.
    ByTypes(DrawMoments),
}

/// The moments of a draw of clients. Pairs of types are numbered g T + h, where T is the number of types; the moments of
/// a pair are those of two different clients.
#[derive(Clone, Debug)]
pub(super) struct DrawMoments {
    /// E 1_k for each type.
    chances: Vec<f64>,
    /// E w_k for each type.
    mean_weights: Vec<f64>,
    /// Whether the counts are m_k, of which w_k is a multiple; otherwise w_k itself stands in their place.
    are_counts: bool,
    /// Whether the weights of those who take part sum to 1 in every round.
    weights_sum_to_one: bool,
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
    /// The moments of the draw of the clients of a round, in which not all take part.
    ///
    /// # Errors
    /// If clients are to be drawn with a probability above 1, in proportion to their shares or to numbers.
    pub(super) fn new(setup: &Setup<'_>, round: &Round) -> Result<Self, MomentsError> {
        let facts = setup.facts;
        let n = facts.clients();
        let size = round.cohort.unwrap_or(n);
        let first: Vec<usize> = setup.types.iter().map(|of| of.first).collect();
        let shares: Vec<f64> = first.iter().map(|client| facts.share(*client)).collect();
        Ok(match round.participation.for_shares(facts.unequal_shares().is_some()) {
            ParticipationScheme::Normalised | ParticipationScheme::Rescaled => {
                Self::Uniform { chance: size as f64 / n as f64, clients: n as f64 }
            }
            ParticipationScheme::WithReplacement => {
                Self::ByTypes(DrawMoments::with_replacement(&shares, size))
            }
            ParticipationScheme::Proportional => {
                let all: Vec<f64> = (0..n).map(|client| facts.share(client)).collect();
                let moments = DrawMoments::proportional(&all, size, &first);
                Self::ByTypes(moments.ok_or(MomentsError::ImpossibleDraw)?)
            }
            ParticipationScheme::Weighted(numbers) => {
                let moments = DrawMoments::weighted(&numbers, size, &first, &shares);
                Self::ByTypes(moments.ok_or(MomentsError::ImpossibleDraw)?)
            }
            ParticipationScheme::Bernoulli(probabilities) => {
                let chances = first.iter().map(|client| probabilities.of_client(*client)).collect();
                Self::ByTypes(DrawMoments::with_inverse_weights(chances, &shares, |g, h, p| {
                    p[g] * p[h]
                }))
            }
            ParticipationScheme::BernoulliNormalised(probabilities) => {
                Self::ByTypes(DrawMoments::normalised_coins(&probabilities, n, &first))
            }
            scheme @ (ParticipationScheme::Cyclic(_) | ParticipationScheme::Available(_)) => {
                Self::ByTypes(DrawMoments::of_schedule(&scheme, round.cohort, facts, &first))
            }
        })
    }

    /// w_k/m_k, by which the noise of the server's sum is multiplied: 1/L, which is `by_size`, where m_k counts how often
    /// a client is drawn, and 1 where w_k stands in the place of m_k.
    pub(super) fn weight_of_count(&self, by_size: f64) -> f64 {
        match self {
            Self::ByTypes(moments) if !moments.are_counts => 1.0,
            _ => by_size,
        }
    }

    /// E w_k of a client of type g; of a uniform draw it is `uniform`.
    pub(super) fn mean_weight(&self, g: usize, uniform: f64) -> f64 {
        match self {
            Self::Uniform { .. } => uniform,
            Self::ByTypes(moments) => moments.mean_weights[g],
        }
    }

    /// Whether the weights of those who take part sum to 1 in every round. Not for a uniform draw, where it depends on
    /// the rows to which they are applied.
    pub(super) fn weights_sum_to_one(&self) -> bool {
        match self {
            Self::Uniform { .. } => true,
            Self::ByTypes(moments) => moments.weights_sum_to_one,
        }
    }

    /// E 1_k of a client of type g.
    pub(super) fn chance(&self, g: usize) -> f64 {
        match self {
            Self::Uniform { chance, .. } => *chance,
            Self::ByTypes(moments) => moments.chances[g],
        }
    }

    /// The covariance of two factors of the row of one client of type g: THEORY (4.12) of a uniform draw.
    pub(super) fn own(&self, factors: [DrawFactor; 2], g: usize) -> f64 {
        match self {
            Self::Uniform { chance, .. } => chance * (1.0 - chance),
            Self::ByTypes(moments) => moments.covariances(factors).own[g],
        }
    }

    /// The covariance of the first factor for a client of type g with the second for another client, of type h: THEORY
    /// (4.12) of a uniform draw.
    pub(super) fn pair(&self, factors: [DrawFactor; 2], g: usize, h: usize) -> f64 {
        match self {
            Self::Uniform { chance, clients } => -(chance * (1.0 - chance)) / (clients - 1.0),
            Self::ByTypes(moments) => {
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

impl DrawMoments {
    /// The moments of L = `size` draws of one client each, with the shares `shares` of the types: THEORY (4.14).
    fn with_replacement(shares: &[f64], size: usize) -> Self {
        let l = size as f64;
        let types = shares.len();
        let power = |x: f64, exponent: usize| libm::pow(x, exponent as f64);
        let mut moments = Self::zero(types);
        moments.mean_weights = shares.to_vec();
        moments.are_counts = true;
        moments.weights_sum_to_one = true;
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
        moments.mean_weights = first.iter().map(|client| shares[*client]).collect();
        moments.are_counts = true;
        moments.weights_sum_to_one = true;
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

    /// The moments of the draw of L = `size` distinct clients in proportion to `numbers`, one for each of the N clients,
    /// whose shares are divided by the probabilities: THEORY (4.15). `first` is the first client of each type, and
    /// `shares` has the share of a client of each type. `None` if a probability is above 1.
    fn weighted(numbers: &[f64], size: usize, first: &[usize], shares: &[f64]) -> Option<Self> {
        let design = FixedSizeDesign::new(&shares_of(numbers), size)?;
        let inclusion = inclusion_of(numbers, size);
        let chances: Vec<f64> = first.iter().map(|client| inclusion[*client]).collect();
        let joint: Vec<Vec<f64>> = first.iter().map(|k| design.joint_inclusion(*k)).collect();
        Some(Self::with_inverse_weights(chances, shares, |g, h, _| {
            // Clients of one type have equal numbers; a type of one client has no pair.
            let k = first[g];
            let is_like = |l: &usize| *l != k && numbers[*l].to_bits() == numbers[k].to_bits();
            let another = if g == h { (0..numbers.len()).find(is_like) } else { Some(first[h]) };
            another.map_or(0.0, |l| joint[g][l])
        }))
    }

    /// The moments of a draw in which a client of type g takes part with the probability P_g = `chances[g]`, and then
    /// weighs its share π_g divided by P_g: THEORY (4.15). `joint` gives P(k, l) of two clients of types g and h from
    /// the two types and all P_g: of coins it is their product, THEORY (4.16). A client that never takes part has no
    /// weight.
    fn with_inverse_weights(
        chances: Vec<f64>,
        shares: &[f64],
        joint: impl Fn(usize, usize, &[f64]) -> f64,
    ) -> Self {
        let types = chances.len();
        let mut moments = Self::zero(types);
        let weights: Vec<f64> = chances
            .iter()
            .zip(shares)
            .map(|(chance, share)| if *chance > 0.0 { share / chance } else { 0.0 })
            .collect();
        for g in 0..types {
            let variance = chances[g] * (1.0 - chances[g]);
            moments.mean_weights[g] = weights[g] * chances[g];
            moments.indicators.own[g] = variance;
            moments.crossed.own[g] = weights[g] * variance;
            moments.counts.own[g] = weights[g] * weights[g] * variance;
            for h in 0..types {
                let covariance = joint(g, h, &chances) - chances[g] * chances[h];
                moments.indicators.pairs[g * types + h] = covariance;
                moments.crossed.pairs[g * types + h] = weights[g] * covariance;
                moments.counts.pairs[g * types + h] = weights[g] * weights[h] * covariance;
            }
        }
        moments.chances = chances;
        moments
    }

    /// The moments of a round of a schedule: the clients of one set take part, or `size` of them, with equal
    /// probabilities, THEORY (4.18). Weights are shares divided by these probabilities, or by the sum of the shares of
    /// those who take part, which is fixed: all of the set take part, or their shares are equal.
    fn of_schedule(
        scheme: &ParticipationScheme,
        size: Option<usize>,
        facts: &dyn Facts,
        first: &[usize],
    ) -> Self {
        let round = scheme.rounds_of_period(size, facts.clients()).remove(0);
        let count = round.clients.len() as f64;
        let drawn = round.size as f64;
        let chance = |k: &usize| if round.clients.contains(k) { drawn / count } else { 0.0 };
        let chances: Vec<f64> = first.iter().map(chance).collect();
        let of_all: f64 = round.clients.iter().map(|client| facts.share(*client)).sum();
        // The shares by which clients would weigh if all of the set took part.
        let sum = if scheme.is_normalised() { of_all } else { 1.0 };
        let shares: Vec<f64> = first.iter().map(|client| facts.share(*client) / sum).collect();
        let both = if count > 1.0 { drawn * (drawn - 1.0) / (count * (count - 1.0)) } else { 0.0 };
        let joint = |g: usize, h: usize, chances: &[f64]| {
            if chances[g] > 0.0 && chances[h] > 0.0 { both } else { 0.0 }
        };
        let mut moments = Self::with_inverse_weights(chances, &shares, joint);
        moments.weights_sum_to_one = scheme.is_normalised() && round.size > 0;
        moments
    }

    /// The moments of coins of all `clients` clients, whose equal shares are divided by the number of those who take
    /// part: THEORY (4.17). `first` is the first client of each type.
    fn normalised_coins(
        probabilities: &ClientProbabilities,
        clients: usize,
        first: &[usize],
    ) -> Self {
        let all: Vec<f64> = (0..clients).map(|client| probabilities.of_client(client)).collect();
        let types = first.len();
        let mut moments = Self::zero(types);
        moments.chances = first.iter().map(|client| all[*client]).collect();
        // Many types may have the same probabilities.
        let mut known: HashMap<[u64; 2], [f64; 2]> = HashMap::new();
        let mut of_pair = |p: f64, q: f64| {
            let key = [p.min(q), p.max(q)].map(f64::to_bits);
            *known.entry(key).or_insert_with(|| inverse_counts(&all, &[p, q]))
        };
        let mean_inverses: Vec<[f64; 2]> =
            moments.chances.iter().map(|p| inverse_counts(&all, &[*p])).collect();
        for (g, [inverse, _]) in mean_inverses.iter().enumerate() {
            moments.mean_weights[g] = moments.chances[g] * inverse;
        }
        for (g, [_, square_of_inverse]) in mean_inverses.iter().enumerate() {
            let p = moments.chances[g];
            let mean = moments.mean_weights[g];
            moments.indicators.own[g] = p * (1.0 - p);
            moments.crossed.own[g] = mean * (1.0 - p);
            moments.counts.own[g] = p * square_of_inverse - mean * mean;
            for h in 0..types {
                let q = moments.chances[h];
                // Clients of one type are two only if there are two with this probability.
                if g == h && all.iter().filter(|other| **other == p).count() < 2 {
                    continue;
                }
                let [inverse, square] = of_pair(p, q);
                moments.crossed.pairs[g * types + h] = p * q * inverse - mean * q;
                moments.counts.pairs[g * types + h] =
                    p * q * square - mean * moments.mean_weights[h];
            }
        }
        moments
    }

    /// Moments of 0 for this number of types.
    fn zero(types: usize) -> Self {
        let zero = FactorCovariances { own: vec![0.0; types], pairs: vec![0.0; types * types] };
        Self {
            chances: vec![0.0; types],
            mean_weights: vec![0.0; types],
            are_counts: false,
            weights_sum_to_one: false,
            counts: zero.clone(),
            crossed: zero.clone(),
            indicators: zero,
        }
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

/// E (j + M)⁻¹ and E (j + M)⁻², where j is the number of the probabilities `left_out`, and M the number of coins that
/// are 1 among coins of the probabilities `all` without one coin of each that is left out.
fn inverse_counts(all: &[f64], left_out: &[f64]) -> [f64; 2] {
    let mut without = left_out.to_vec();
    // The distribution of the number of coins that are 1.
    let mut distribution = vec![1.0];
    for p in all {
        if let Some(place) = without.iter().position(|other| other == p) {
            without.swap_remove(place);
            continue;
        }
        distribution.push(0.0);
        for count in (0..distribution.len()).rev() {
            let below = if count > 0 { distribution[count - 1] } else { 0.0 };
            distribution[count] = (1.0 - p) * distribution[count] + p * below;
        }
    }
    let mut sums = [0.0; 2];
    for (count, chance) in distribution.iter().enumerate() {
        let number = (left_out.len() + count) as f64;
        sums[0] += chance / number;
        sums[1] += chance / (number * number);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use DrawFactor::{Count, Indicator};

    /// The moments of normalised coins are those of all outcomes; two clients have the same probability.
    #[test]
    fn moments_of_normalised_coins_are_those_of_all_outcomes() {
        let p = [0.5, 0.3, 0.3, 0.9];
        let probabilities = ClientProbabilities::Given(p.to_vec());
        let first = [0, 1, 3];
        let law = DrawLaw::ByTypes(DrawMoments::normalised_coins(&probabilities, 4, &first));
        // The client of each type, and another one of the second type.
        let another = [0, 2, 3];
        for factors in [[Count, Count], [Count, Indicator], [Indicator, Count], [Indicator; 2]] {
            for (g, &client) in first.iter().enumerate() {
                for (h, &other) in another.iter().enumerate() {
                    let mut own = [0.0; 3];
                    let mut pair = [0.0; 3];
                    for outcome in 0..16_u32 {
                        let is_in = |k: usize| outcome >> k & 1 == 1;
                        let coins = (0..4).map(|k| if is_in(k) { p[k] } else { 1.0 - p[k] });
                        let chance: f64 = coins.product();
                        let count = f64::from(outcome.count_ones()).max(1.0);
                        let factor = |which: DrawFactor, k: usize| match which {
                            Count => f64::from(u8::from(is_in(k))) / count,
                            Indicator => f64::from(u8::from(is_in(k))),
                        };
                        for (sums, l) in [(&mut own, client), (&mut pair, other)] {
                            let x = factor(factors[0], client);
                            let y = factor(factors[1], l);
                            sums[0] += chance * x;
                            sums[1] += chance * y;
                            sums[2] += chance * x * y;
                        }
                    }
                    let covariance = |sums: [f64; 3]| sums[2] - sums[0] * sums[1];
                    assert!((law.own(factors, g) - covariance(own)).abs() < 1e-15);
                    if client != other {
                        let found = law.pair(factors, g, h);
                        assert!((found - covariance(pair)).abs() < 1e-15, "{factors:?} {g} {h}");
                    }
                    if factors[0] == Count {
                        assert!((law.mean_weight(g, 0.0) - own[0]).abs() < 1e-15);
                    }
                }
            }
        }
    }

    /// The moments of three draws with replacement are those of all 27 outcomes.
    #[test]
    fn moments_with_replacement_are_those_of_all_outcomes() {
        let shares = [0.5, 0.3, 0.2];
        let law = DrawLaw::ByTypes(DrawMoments::with_replacement(&shares, 3));
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
