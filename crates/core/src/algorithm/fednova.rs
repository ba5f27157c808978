//! FedNova (Wang et al. 2020, without momentum): FedAvg whose server divides what each client has moved by the number
//! of its local steps, so that clients that do more work do not weigh more. With equal work it is FedAvg, to the last
//! bit.

use super::info::{Family, LOCAL, RoundFormula};
use super::{AlgorithmKind, Component, Participation, WithWork, has_cohort};
use crate::federated::Terms;
use crate::problem::{Fault, Faults};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedNova (Wang et al. 2020): FedAvg whose server normalises the progress of each client by its number of local steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedNova {
    /// L, the number of clients drawn without replacement in each round, or a fraction of all N
    /// above 0 and below 1, which stands for the number nearest to it, at least 1; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 5)]
    pub cohort: Option<Participation>,
}

impl AlgorithmKind for WithWork<FedNova> {
    const FAMILY: Family = Family::FedAvg;

    has_cohort!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        const STEP: &str = r"\theta_{t+1} = \theta_t + \bar E\, \frac{1}{N} \sum_{c=1}^{N} \frac{\theta_c - \theta_t}{E_c}, \quad \bar E = \frac{1}{N} \sum_{c=1}^{N} E_c";
        let words = "E_c local steps of client c; the server goes along the mean of what each has moved in a step, times the mean number of steps";
        Some(RoundFormula { words, tex: &[LOCAL, STEP] })
    }

    /// One run of the engine. The keys of [`Work`](super::Work) replace the 1 local step that is written here.
    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(self.common.terms(Terms {
            normalised_progress: true,
            cohort: self.own.cohort.map(Participation::number),
            ..Terms::fedavg(step_size, 1)
        }))]
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.common.local_steps = Some(local_steps);
    }

    /// What is wrong with the numbers of local steps, and the key `normalised`, which the keys of [`Work`](super::Work)
    /// have but FedNova does not.
    fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults(self.common.faults());
        faults.require(!self.common.normalised, "normalised", || {
            "has no meaning here: FedNova normalises what clients have moved, not their step sizes".into()
        });
        faults.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::rounds::{ProblemSize, constant_rounds};
    use crate::federated::Run;
    use crate::problem::Facts;
    use crate::sample;
    use crate::theory::exact::Cycle;

    /// FedNova with these numbers of local steps of the clients, of which `cohort` take part if it is given.
    fn terms(local_steps: &[u64], cohort: Option<usize>) -> Terms {
        Terms {
            local_steps: local_steps.to_vec(),
            cohort,
            normalised_progress: true,
            ..Terms::fedavg(0.1, 1)
        }
    }

    /// A round is θ + Ē Σ π_k (θ_k − θ)/E_k over the clients that take part, with their mean number Ē of local steps.
    #[test]
    fn the_server_moves_by_normalised_progress() {
        let problem = sample::noisy(4);
        let steps = [1_u64, 4, 2, 7];
        let start = [0.3, -1.2];
        for cohort in [None, Some(2)] {
            let run = sample::run(&problem, &terms(&steps, cohort), &start, 1, 0);
            let ends = run.clients().unwrap().ends.to_vec();
            let rows = ends.chunks(2).zip(steps);
            // Clients that took no part are still at the start.
            let members: Vec<(&[f64], f64)> = rows
                .filter(|(row, _)| *row != start)
                .map(|(row, steps)| (row, steps as f64))
                .collect();
            assert_eq!(members.len(), cohort.unwrap_or(4));
            let count = members.len() as f64;
            let mean_steps = members.iter().map(|(_, steps)| steps).sum::<f64>() / count;
            for i in 0..2 {
                let progress = members.iter().map(|(row, steps)| (row[i] - start[i]) / steps);
                let wanted = start[i] + mean_steps * progress.sum::<f64>() / count;
                assert!((run.estimate()[i] - wanted).abs() < 1e-14, "{cohort:?}: {wanted}");
            }
        }
    }

    #[test]
    fn equal_work_is_fedavg() {
        let problem = sample::noisy(4);
        let fedavg = sample::run(&problem, &Terms::fedavg(0.1, 3), &[1.0, 2.0], 5, 0);
        let own = sample::run(&problem, &terms(&[3], None), &[1.0, 2.0], 5, 0);
        assert_eq!(own.estimate(), fedavg.estimate());
    }

    /// Without noise the program of its rounds goes where the rounds go.
    #[test]
    fn its_program_has_its_limit() {
        let problem = crate::problem::Exact::new(sample::noisy(4));
        let components = [Component::one(terms(&[1, 4], None))];
        let size = ProblemSize { clients: 4, dimension: 2 };
        let program = constant_rounds(&components, size).unwrap();
        let bias = Cycle::of_means(&program, &problem).unwrap().biases().unwrap().remove(0);
        let late = sample::run(&problem, &components[0].terms, &[1.0, 2.0], 400, 0);
        for i in 0..2 {
            let found = late.estimate()[i] - problem.optimum()[i];
            assert!((found - bias[i]).abs() < 1e-12, "{found} {bias:?}");
        }
        assert!(
            bias.iter().any(|x| x.abs() > 1e-3),
            "heterogeneous clients leave a bias: {bias:?}"
        );
    }
}
