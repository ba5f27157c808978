//! How FedNova's server weighs clients by their numbers of local steps.

use super::Terms;
use super::sampling::ClientSampler;

/// The weights of the clients' ends where the server divides what clients have moved by their numbers of local steps
/// (FedNova).
pub(super) struct ProgressWeights {
    /// π_k/a_k of each client, N numbers ([`Terms::progress_weights`]).
    pub(super) weights: Vec<f64>,
    /// Ē/a_k of each client, N numbers, where Ē = Σ π_k E_k: what multiplies the weight w_k of a client that takes part,
    /// where w_k is not its share divided by the sum of those who take part.
    ratios: Vec<f64>,
    /// w_k Ē/a_k of the clients that take part in the current round, N numbers; of others it means nothing.
    pub(super) of_round: Vec<f64>,
}

impl ProgressWeights {
    /// The weights for rounds with these terms, where `weights` are π_k/a_k.
    pub(super) fn new(terms: &Terms, weights: Vec<f64>) -> Self {
        let ratios = terms.progress_ratios(&weights);
        let of_round = vec![0.0; weights.len()];
        Self { weights, ratios, of_round }
    }

    /// Sets the weights of the clients that take part in the round that begins, `members`, which the sampler has drawn.
    pub(super) fn begin_round(&mut self, sampler: &ClientSampler, members: &[usize]) {
        for &client in members {
            let weight = sampler.weight(client).unwrap_or(0.0);
            self.of_round[client] = weight * self.ratios[client];
        }
    }
}
