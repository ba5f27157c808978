//! FedNova (Wang et al. 2020, without momentum): FedAvg whose server divides what each client has moved by the number
//! of its local steps, so that clients that do more work do not weigh more. With equal work it is FedAvg, to the last
//! bit. With a proximal term it normalises FedProx: the divisor is then the sum of the weights that the fields of the
//! client's steps have in its move.

use super::info::{Family, LOCAL, PULLED, RoundFormula};
use super::{
    AlgorithmKind, Component, Participation, RelativeNumber, WithWork, has_cohort, has_work,
    numbers,
};
use crate::client_sampling::ParticipationScheme;
use crate::federated::Terms;
use crate::problem::{Fault, Faults};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedNova (Wang et al. 2020): FedAvg whose server normalises the progress of each client by its number of local steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedNova {
    /// B_k, the numbers of gradients averaged in each local step, cycled over the clients.
    #[serde(default, skip_serializing_if = "super::are_single")]
    #[schemars(example = super::EXAMPLE_BATCHES, extend("default" = [1]))]
    pub batch_per_client: Vec<u64>,
    /// L, the number of clients drawn in each round, or a fraction of all N
    /// above 0 and below 1, which stands for the number nearest to it, at least 1; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 5)]
    pub cohort: Option<Participation>,
    /// How the clients of a round are selected and weighed. The mean number of local steps is that of
    /// the clients that take part where their shares are divided by their sum, and otherwise that of
    /// all clients.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "normalised"), example = &"rescaled")]
    pub participation: ParticipationScheme,
    /// γ_g, above 0: the server moves this multiple of the normalised way.
    #[serde(default = "crate::problem::unit", skip_serializing_if = "crate::problem::is_unit")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = 1.0), example = 1.0)]
    pub server_step: f64,
    /// μ, 0 or more: the weight of the proximal term μ(θ_c − θ_t) in every local step, as FedProx has it.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("minimum" = 0.0, "default" = 0.0), example = 1.0)]
    pub proximal: RelativeNumber,
}

impl AlgorithmKind for WithWork<FedNova> {
    const FAMILY: Family = Family::FedAvg;

    has_cohort!();
    has_work!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        const STEP: &str = r"\theta_{t+1} = \theta_t + \bar E\, \frac{1}{N} \sum_{c=1}^{N} \frac{\theta_c - \theta_t}{E_c}, \quad \bar E = \frac{1}{N} \sum_{c=1}^{N} E_c";
        const PULLED_STEP: &str = r"\theta_{t+1} = \theta_t + \bar E\, \frac{1}{N} \sum_{c=1}^{N} \frac{\theta_c - \theta_t}{a_c}, \quad a_c = \sum_{j=0}^{E_c-1} \left( 1 - \gamma \mu \right)^j";
        let words = "E_c local steps of client c; the server goes along the mean of what each has moved in a step, times the mean number of steps";
        let tex: &[&str] =
            if self.proximal.value() == 0.0 { &[LOCAL, STEP] } else { &[PULLED, PULLED_STEP] };
        Some(RoundFormula { words, tex })
    }

    /// One run of the engine. The keys of [`Work`](super::Work) replace the 1 local step that is written here.
    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(self.common.terms(Terms {
            normalised_progress: true,
            batches: numbers(None, &self.own.batch_per_client),
            cohort: self.own.cohort.map(Participation::number),
            participation: self.own.participation.clone(),
            server_step: self.own.server_step,
            proximal: self.own.proximal.value(),
            ..Terms::fedavg(step_size, 1)
        }))]
    }

    /// The weight of the proximal term.
    fn relative_numbers_mut(&mut self) -> Vec<(&'static str, &mut RelativeNumber)> {
        vec![("proximal", &mut self.own.proximal)]
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.common.local_steps = Some(local_steps);
    }

    /// What is wrong with the numbers of local steps, and the key `normalised`, which the keys of [`Work`](super::Work)
    /// have but FedNova does not. Under a proximal term the divisors depend on γ, so that they would change from round
    /// to round if it fell.
    fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults(self.common.faults());
        faults.require(!self.common.normalised, "normalised", || {
            "has no meaning here: FedNova normalises what clients have moved, not their step sizes".into()
        });
        let has_fixed_divisors = self.own.proximal.value() == 0.0 || self.common.decay.is_none();
        faults.require(has_fixed_divisors, "decay", || {
            "cannot be combined with `proximal`: what FedNova divides by would change from round to round"
                .into()
        });
        faults.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::rounds::{ProblemSize, constant_rounds};
    use crate::algorithm::{Instance, Spec};
    use crate::federated::{Conditions, Run};
    use crate::moments::{self, ExactMoments};
    use crate::problem::quadratic::Quadratic;
    use crate::problem::{Exact, Facts};
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
    /// Without noise the rounds are those of plain loops over the mean fields of three clients, to 1e-12: with unequal
    /// steps, with a server step, and with a proximal term also where all take equally many steps.
    #[test]
    fn trajectories_are_those_of_plain_loops() {
        for (steps, server_step, proximal) in [
            ([1, 4, 2], 1.0, 0.0),
            ([1, 4, 2], 0.7, 0.0),
            ([1, 4, 2], 1.3, 0.8),
            ([3, 3, 3], 1.0, 0.8),
        ] {
            let text = format!(
                "[fednova]\nstep-size = 0.1\nsteps-per-client = {steps:?}\nserver-step = {server_step}\nproximal = {proximal}\n"
            );
            let spec: Spec = toml::from_str(&text).unwrap();
            let problem = Exact::new(sample::noisy(3));
            let start = [0.7, -1.1];
            let from = Conditions { seed: 1, replicate: 0, start: &start, rounds: 30, copy: 0 };
            let mut run = problem.launch(&spec, &from);
            let mut theta = start;
            for round in 0..30 {
                let mut way = [0.0; 2];
                for (client, count) in steps.iter().enumerate() {
                    let mut local = theta;
                    // The sum of (1 − γμ)^j over the steps, by Horner's rule.
                    let mut divisor = 0.0;
                    for _ in 0..*count {
                        let mut field = [0.0; 2];
                        problem.mean_field(client, &local, &mut field);
                        for i in 0..2 {
                            local[i] -= 0.1 * (field[i] + proximal * (local[i] - theta[i]));
                        }
                        divisor = 1.0 + (1.0 - 0.1 * proximal) * divisor;
                    }
                    way[0] += (local[0] - theta[0]) / divisor / 3.0;
                    way[1] += (local[1] - theta[1]) / divisor / 3.0;
                }
                let mean_steps = steps.iter().sum::<u64>() as f64 / 3.0;
                theta[0] += server_step * mean_steps * way[0];
                theta[1] += server_step * mean_steps * way[1];
                run.round();
                let off = sample::distance(run.estimate(), &theta);
                assert!(off < 1e-12, "{text}, round {round}: off by {off}");
            }
            // The exact moments of the same rounds have the same mean.
            let components = spec.components();
            let moments = ExactMoments::new(&problem, &components).unwrap();
            let last = moments.at_rounds(&start, &[30], None).unwrap().remove(0);
            let error = sample::distance(&theta, problem.optimum());
            assert!((last.sq_error - error * error).abs() < 1e-12, "{text}");
        }
    }

    /// The 2 × 2 matrix A of a client's mean field, row by row.
    fn jacobian(problem: &Quadratic, client: usize) -> [f64; 4] {
        let matrix = problem.jacobian(client);
        [matrix[(0, 0)], matrix[(0, 1)], matrix[(1, 0)], matrix[(1, 1)]]
    }

    /// I − (I − γA)^E for the matrix A of a client: what E local steps move, from where they begin to the optimum of
    /// the client.
    fn move_of_steps(a: [f64; 4], step: f64, steps: u64) -> [f64; 4] {
        let one = [1.0 - step * a[0], -step * a[1], -step * a[2], 1.0 - step * a[3]];
        let mut power = [1.0, 0.0, 0.0, 1.0];
        for _ in 0..steps {
            power = [
                power[0] * one[0] + power[1] * one[2],
                power[0] * one[1] + power[1] * one[3],
                power[2] * one[0] + power[3] * one[2],
                power[2] * one[1] + power[3] * one[3],
            ];
        }
        [1.0 - power[0], -power[1], -power[2], 1.0 - power[3]]
    }

    /// The θ with Σ_k C_k (θ − θ_k*) = 0, where C_k is matrix k of `matrices` and θ_k* the optimum of client k.
    fn balanced(problem: &Quadratic, matrices: &[[f64; 4]]) -> [f64; 2] {
        let mut sum = [0.0; 4];
        let mut right = [0.0; 2];
        for (client, c) in matrices.iter().enumerate() {
            let optimum = problem.local_optimum(client).unwrap();
            for i in 0..4 {
                sum[i] += c[i];
            }
            right[0] += c[0] * optimum[0] + c[1] * optimum[1];
            right[1] += c[2] * optimum[0] + c[3] * optimum[1];
        }
        let determinant = sum[0] * sum[3] - sum[1] * sum[2];
        [
            (sum[3] * right[0] - sum[1] * right[1]) / determinant,
            (sum[0] * right[1] - sum[2] * right[0]) / determinant,
        ]
    }

    /// Wang et al. 2020: as γ falls, FedAvg with unequal local steps tends to the minimiser of Σ E_k f_k, and FedNova
    /// to that of Σ f_k, both with a distance that is proportional to γ. The fixed points by linear algebra are those of
    /// exact theory.
    #[test]
    fn it_keeps_the_objective_and_fedavg_does_not() {
        let problem = sample::noisy(3);
        let steps = [1, 6, 2];
        let weighted: Vec<[f64; 4]> = (0..3)
            .map(|client| jacobian(&problem, client).map(|x| steps[client] as f64 * x))
            .collect();
        let mismatched = balanced(&problem, &weighted);
        assert!(sample::distance(&mismatched, problem.optimum()) > 0.05, "{mismatched:?}");
        let mut fedavg_offs = Vec::new();
        let mut fednova_offs = Vec::new();
        for step in [0.02, 0.01] {
            let mut moves = Vec::new();
            let mut normalised_moves = Vec::new();
            for (client, count) in steps.iter().enumerate() {
                let of_client = move_of_steps(jacobian(&problem, client), step, *count);
                moves.push(of_client);
                normalised_moves.push(of_client.map(|x| x / *count as f64));
            }
            let fedavg = balanced(&problem, &moves);
            let fednova = balanced(&problem, &normalised_moves);
            for (normalised_progress, point) in [(false, fedavg), (true, fednova)] {
                let local_steps = steps.to_vec();
                let terms = Terms { local_steps, normalised_progress, ..Terms::fedavg(step, 1) };
                let exact = moments::fixed_point(&problem, &Component::one(terms)).unwrap();
                assert!(sample::distance(&exact, &point) < 1e-12, "{exact:?} {point:?}");
            }
            fedavg_offs.push(sample::distance(&fedavg, &mismatched));
            fednova_offs.push(sample::distance(&fednova, problem.optimum()));
        }
        for offs in [fedavg_offs, fednova_offs] {
            let order = libm::log2(offs[0] / offs[1]);
            assert!((order - 1.0).abs() < 0.1 && offs[0] > 1e-4, "{offs:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_its_proximal_term_is_named() {
        for (lines, key) in [
            ("proximal = -1.0", "proximal"),
            ("proximal = 20.0", "proximal"),
            ("proximal = 1.0\ndecay = { power = 0.5, offset = 1.0 }", "decay"),
            ("normalised = true", "normalised"),
            ("server-step = 0.0", "server-step"),
        ] {
            let text = format!("[fednova]\nstep-size = 0.1\nlocal-steps = 3\n{lines}\n");
            let spec: Spec = toml::from_str(&text).unwrap();
            let keys: Vec<String> =
                spec.check().into_iter().map(|fault| fault.key.into_owned()).collect();
            assert_eq!(keys, [key], "{lines}");
        }
    }
}
