//! The draws of stragglers in the rounds of a run.

use super::{Conditions, Stragglers, Terms};
use crate::kernel::Members;
use crate::rng::{Purpose, Stream};

/// What draws the stragglers of each round of a run.
pub(super) struct StragglerDraws {
    stragglers: Stragglers,
    /// E_k, the local steps of a client that finishes its work, N numbers.
    all_steps: Vec<u64>,
    /// The stream of these draws alone, so that clients take part and draw as they do without stragglers.
    stream: Stream,
}

impl StragglerDraws {
    /// What draws the stragglers of runs with these terms, of `clients` clients; `None` if the terms have none.
    pub(super) fn new(terms: &Terms, clients: usize, from: &Conditions<'_>) -> Option<Self> {
        let stragglers = terms.stragglers?;
        let all_steps = (0..clients).map(|client| terms.steps(client)).collect();
        let stream = Stream::new(from.seed, Purpose::Stragglers, from.copy, from.replicate, 0);
        Some(Self { stragglers, all_steps, stream })
    }

    /// The numbers of local steps in the next round, N numbers: those of the stragglers among the clients that take
    /// part are drawn, and all others are E_k.
    pub(super) fn draw(&mut self, members: &Members) -> Vec<u64> {
        let members = members.indices();
        let mut drawn = self.stream.distinct(members.len(), self.stragglers.count(members.len()));
        drawn.sort_unstable();
        let mut steps = self.all_steps.clone();
        for place in drawn {
            let client = members[place];
            let most = self.stragglers.most_parts(steps[client]);
            let parts = 1 + self.stream.index(most as usize) as u64;
            steps[client] = self.stragglers.steps_of_parts(parts, steps[client]);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_sampling::{ClientProbabilities, ParticipationScheme};
    use crate::federated::{Federated, Run};
    use crate::problem::{Exact, Facts};
    use crate::sample;

    const FROM: Conditions<'static> =
        Conditions { seed: 3, replicate: 1, start: &[0.3, -1.2], rounds: 30, copy: 0 };

    fn terms(stragglers: Stragglers) -> Terms {
        let local_steps = vec![4, 10];
        Terms { local_steps, stragglers: Some(stragglers), ..Terms::fedavg(0.1, 1) }
    }

    /// Of 10 clients 9 are stragglers in each round, each as often as any other, with uniform numbers of steps.
    #[test]
    fn numbers_of_steps_are_uniform_for_the_fraction_of_stragglers() {
        let stragglers = Stragglers { fraction: 0.9, most: None, epochs: None };
        let terms = Terms { local_steps: vec![6], ..terms(stragglers) };
        let mut draws = StragglerDraws::new(&terms, 10, &FROM).unwrap();
        let members = Members::all(10);
        // How often each number of steps was taken, by each client.
        let mut counts = [[0_u32; 7]; 10];
        for _ in 0..20_000 {
            let steps = draws.draw(&members);
            steps
                .iter()
                .zip(&mut counts)
                .for_each(|(steps, of_client)| of_client[*steps as usize] += 1);
        }
        for of_client in counts {
            assert_eq!(of_client[0], 0);
            for (steps, count) in of_client.iter().enumerate().skip(1) {
                let expected = if steps == 6 { 0.1 + 0.9 / 6.0 } else { 0.9 / 6.0 };
                let standard_error = (expected * (1.0 - expected) / 20_000.0_f64).sqrt();
                let share = f64::from(*count) / 20_000.0;
                assert!((share - expected).abs() < 4.5 * standard_error, "{steps}: {share}");
            }
        }
        assert!((stragglers.mean_steps(6, 10) - (0.9 * 3.5 + 0.1 * 6.0)).abs() < 1e-12);
    }

    #[test]
    fn members_alone_are_stragglers_and_epochs_are_whole() {
        let stragglers = Stragglers { fraction: 0.5, most: Some(3), epochs: Some(5) };
        let terms = Terms { local_steps: vec![10, 15, 20], ..terms(stragglers) };
        let mut draws = StragglerDraws::new(&terms, 6, &FROM).unwrap();
        let members = Members::new(vec![1, 2, 5]);
        let mut most = [0; 6];
        for _ in 0..200 {
            let steps = draws.draw(&members);
            // 3 · (1 − 0.5), rounded, is 2, so that one of the three members is a straggler.
            let late = steps.iter().zip([10, 15, 20, 10, 15, 20]).filter(|(own, all)| *own != all);
            assert_eq!(late.count(), 1, "{steps:?}");
            for (client, steps) in steps.iter().enumerate().filter(|(client, _)| client % 3 == 2) {
                assert_eq!(steps % 4, 0, "an epoch of client {client} has 4 steps");
                most[client] = most[client].max(steps % 20);
            }
        }
        assert_eq!(most, [0, 0, 12, 0, 0, 12], "3 of 5 epochs are the most of a straggler");
    }

    /// By coins of their own, about half of ten clients take part, so that the mean number of steps is that of five
    /// members.
    #[test]
    fn mean_calls_count_those_who_take_part_by_coins() {
        let stragglers = Stragglers { fraction: 0.6, most: None, epochs: None };
        let coins = ParticipationScheme::Bernoulli(ClientProbabilities::Fraction(0.5));
        let terms = Terms { participation: coins, ..terms(stragglers) };
        let of_member = 0.5 * (stragglers.mean_steps(4, 5) + stragglers.mean_steps(10, 5));
        assert!((terms.mean_calls(10) - 0.5 * of_member).abs() < 1e-12);
        assert!(of_member < 7.0, "{of_member}");
    }

    /// The rounds are plain loops over the numbers of steps that were drawn, and cost what these take.
    #[test]
    fn rounds_are_plain_loops_over_the_drawn_numbers() {
        let problem = Exact::new(sample::noisy(3));
        let terms = terms(Stragglers { fraction: 0.7, most: None, epochs: None });
        let mut draws = StragglerDraws::new(&terms, 3, &FROM).unwrap();
        let mut run = Federated::new(&problem, terms, &FROM);
        let mut server = FROM.start.to_vec();
        let mut calls = 0;
        let mut sequential = 0;
        for _ in 0..20 {
            let steps = draws.draw(&Members::all(3));
            let mut mean = [0.0; 2];
            for (client, count) in steps.iter().enumerate() {
                let mut theta = server.clone();
                let mut field = [0.0; 2];
                for _ in 0..*count {
                    problem.mean_field(client, &theta, &mut field);
                    (0..2).for_each(|i| theta[i] -= 0.1 * field[i]);
                }
                (0..2).for_each(|i| mean[i] += theta[i] / 3.0);
            }
            server = mean.to_vec();
            calls += steps.iter().sum::<u64>();
            sequential += steps.iter().max().unwrap();
            run.round();
            assert!(sample::distance(run.estimate(), &server) < 1e-12);
            assert_eq!(run.cost().oracle_calls, calls);
            assert_eq!(run.cost().sequential_calls, sequential);
        }
    }
}
