//! How the server draws the clients that take part in a round, and how it weighs them.
//!
//! Of N clients with the shares π_k, L take part in a round. The server moves from θ to
//!
//! ```text
//! θ + Σ_k w_k (θ_k − θ)
//! ```
//!
//! where θ_k is the end of client k, and the weights w_k depend on the draw. A scheme is *unbiased* if E w_k = π_k for
//! every client: then a round with one local step goes along the gradient of the objective on average.

mod fixed_size;

pub use fixed_size::FixedSizeDesign;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the clients that take part in a round are drawn and weighed, if `cohort` says that some of
/// them do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParticipationScheme {
    /// L distinct clients, all with the same probability; their shares are divided by their sum
    /// (McMahan et al. 2017). Biased if shares are unequal.
    #[default]
    Normalised,
    /// L distinct clients, all with the same probability; client k weighs N/L times its share (Li et
    /// al. 2020, scheme II, for θ_k − θ in place of θ_k). Unbiased.
    Rescaled,
    /// L draws, each of client k with its share as the probability; each draw weighs 1/L, and a
    /// client that is drawn m times weighs m/L and works once (Li et al. 2020, scheme I). Unbiased.
    WithReplacement,
    /// L distinct clients, client k with the probability L π_k, which must be at most 1; each weighs
    /// 1/L. Of all such draws it is the one of maximum entropy (Hájek 1964). Unbiased.
    Proportional,
}

impl ParticipationScheme {
    /// Whether a round in which L = `size` of `clients` clients take part depends on a draw: a part of the clients is
    /// drawn, or some of them may be drawn twice. `None` stands for rounds in which all take part.
    pub fn draws_clients(self, size: Option<usize>, clients: usize) -> bool {
        size.is_some_and(|size| size < clients || self == Self::WithReplacement)
    }

    /// The scheme with the same draws and weights on a problem whose shares are equal: there `Rescaled` and
    /// `Proportional` are `Normalised`. Engine and theory ask for it, so that the bits are the same too.
    pub fn for_shares(self, are_unequal: bool) -> Self {
        match self {
            Self::Rescaled | Self::Proportional if !are_unequal => Self::Normalised,
            other => other,
        }
    }

    /// Whether E w_k = π_k for every client, also where shares are unequal.
    pub fn is_unbiased(self) -> bool {
        self != Self::Normalised
    }

    /// The word for the scheme in manifests.
    pub fn word(self) -> &'static str {
        match self {
            Self::Normalised => "normalised",
            Self::Rescaled => "rescaled",
            Self::WithReplacement => "with-replacement",
            Self::Proportional => "proportional",
        }
    }
}

/// What is wrong with drawing L = `size` distinct clients with the probabilities L π_k, where π_k are these shares: a
/// share above 1/L asks for a probability above 1. `None` if nothing is.
pub fn proportional_fault(shares: &[f64], size: usize) -> Option<String> {
    let mut largest = 0;
    for (client, share) in shares.iter().enumerate() {
        if *share > shares[largest] {
            largest = client;
        }
    }
    if fixed_size::is_possible(shares[largest], size) {
        return None;
    }
    let number = largest + 1;
    let share = shares[largest];
    let most = (1.0 / share) as usize;
    Some(format!(
        "\"proportional\" draws {size} distinct clients, each with {size} times its share as the probability, which is above 1 for client {number}, whose share is {share:.4}: use `cohort` up to {most}, \"rescaled\" or \"with-replacement\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::StrDeserializer;

    #[test]
    fn a_share_above_one_of_l_is_refused() {
        let shares = [0.25, 0.5, 0.25];
        assert_eq!(proportional_fault(&shares, 1), None);
        assert_eq!(proportional_fault(&shares, 2), None, "the second client always takes part");
        let message = "\"proportional\" draws 3 distinct clients, each with 3 times its share as the probability, which is above 1 for client 2, whose share is 0.5000: use `cohort` up to 2, \"rescaled\" or \"with-replacement\"";
        assert_eq!(proportional_fault(&shares, 3).as_deref(), Some(message));
    }

    #[test]
    fn words_are_those_of_manifests() {
        use ParticipationScheme::{Normalised, Proportional, Rescaled, WithReplacement};
        for scheme in [Normalised, Rescaled, WithReplacement, Proportional] {
            let word = StrDeserializer::<serde::de::value::Error>::new(scheme.word());
            assert_eq!(ParticipationScheme::deserialize(word), Ok(scheme));
        }
        assert!(WithReplacement.draws_clients(Some(3), 3) && !Rescaled.draws_clients(Some(3), 3));
        assert!(!WithReplacement.draws_clients(None, 3));
    }
}
