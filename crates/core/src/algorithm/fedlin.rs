//! FedLin (Mitra et al. 2021): local steps along F_k(θ) − F_k(θ_t) + N⁻¹ Σ F_j(θ_t),
//! that is Scaffold's step with control variates measured at the start of the round
//! instead of carried over from the last one. A round costs two exchanges, and E_k
//! oracle calls more per client. Without noise it converges to θ* as Scaffold does.

use super::info::{CORRECTED, Family, MEAN, RoundFormula};
use super::{AlgorithmKind, Component, WithWork, has_work};
use crate::federated::{Terms, Variates};
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedLin (Mitra et al. 2021): Scaffold with control variates that are measured anew in each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FedLin {}

impl AlgorithmKind for WithWork<FedLin> {
    const FAMILY: Family = Family::FedLin;

    has_work!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        const MEASURE: &str =
            r"\xi_c = \frac{1}{N} \sum_{k=1}^{N} F_k(\theta_t; Z) - F_c(\theta_t; Z)";
        let words = "as Scaffold, with variates measured again at the start of each round, which makes two communications a round";
        Some(RoundFormula { words, tex: &[CORRECTED, MEASURE, MEAN] })
    }

    /// One run of the engine. The keys of [`Work`](super::Work) replace the 1 local step that is written here.
    fn components(&self, step_size: f64) -> Vec<Component> {
        let terms = Terms { variates: Variates::Fresh, ..Terms::fedavg(step_size, 1) };
        vec![Component::one(self.common.terms(terms))]
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.common.local_steps = Some(local_steps);
    }

    fn faults(&self) -> Vec<Fault> {
        self.common.faults()
    }
}
