//! Draws of the clients that are kept as values, so that a custom algorithm can evaluate fields on them at several
//! points.

use crate::kernel::Members;
use crate::rng::Stream;
use std::any::Any;
use std::sync::Arc;
use thiserror::Error;

/// What a client draws from, as it was before a draw was made: the same numbers come from it again.
#[derive(Clone)]
pub(super) struct ClientNoise<S> {
    /// The client's stream.
    pub(super) rng: Stream,
    /// The state of its noise, such as the state of a Markov chain.
    pub(super) state: S,
}

/// What the clients that take part have drawn at one time ([`RoundClients::draw`](super::RoundClients::draw)): one mean
/// of several oracle calls for each of them, which
/// [`RoundClients::fields_of_draw`](super::RoundClients::fields_of_draw) evaluates at any points, as often as it is
/// asked to, also in later rounds of the same run. Clones are the same draw.
#[derive(Clone)]
pub struct Draw {
    /// The run whose clients drew.
    pub(super) run: Arc<RunIdentity>,
    /// The number of oracle calls over which each client takes the mean, 1 or more.
    pub(super) calls: u64,
    /// The clients that drew.
    pub(super) members: Members,
    /// A `Vec<ClientNoise<S>>` with one entry for each of `members`, where S is the state of the problem's noise.
    pub(super) before: Arc<dyn Any + Send + Sync>,
}

/// Tells the clients of one run from those of others, by its address.
pub(super) struct RunIdentity;

impl Draw {
    /// The number of oracle calls over which each client takes the mean.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The clients that drew: those that took part when the draw was made.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The place of a client among the members.
    ///
    /// # Errors
    /// [`ClientDrawError::NotDrawn`] if it is no member.
    pub(super) fn place_of(&self, client: usize) -> Result<usize, ClientDrawError> {
        let found = self.members.indices().binary_search(&client);
        found.map_err(|_| ClientDrawError::NotDrawn { client })
    }
}

/// Why fields cannot be evaluated on a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClientDrawError {
    /// The clients of another run made the draw.
    #[error("the draw was made by the clients of another run")]
    OtherRun,
    /// A client takes part now, and did not when the draw was made.
    #[error(
        "client {client} takes part in this round and did not when the draw was made: draw after the clients of the \
         round are known, or evaluate the draw in rounds of the clients that drew"
    )]
    NotDrawn {
        /// The index of the client, from 0 on.
        client: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federated::{Conditions, RoundClients, StatedPrice};
    use crate::problem::garnet::Heterogeneity;
    use crate::problem::{Exact, Facts, Problem, Reshuffled, Twin, td};
    use crate::sample;

    const PRICE: StatedPrice = StatedPrice { communications: 1, vectors: 2, calls_per_step: 1 };

    /// The clients of a problem at the start of a run.
    fn clients<P: Problem>(problem: &P) -> RoundClients<'_> {
        let start = vec![0.5; problem.dim()];
        let from = Conditions { seed: 5, replicate: 3, start: &start, rounds: 30, copy: 0 };
        RoundClients::new(problem, &from, PRICE)
    }

    /// Checks of a problem that a draw is one of `fields`, that it is the same at every point, that taking it advances
    /// the clients as `fields` does, and that no other draw changes it.
    fn assert_draws_are_those_of_fields<P: Problem>(problem: &P) {
        let n = problem.clients();
        let d = problem.dim();
        let mut by_calls = clients(problem);
        let mut by_draws = clients(problem);
        let point = vec![0.3; d];
        let other: Vec<f64> = (0..n * d).map(|i| 0.1 * i as f64 - 0.4).collect();
        let mut kept: Vec<(Draw, Vec<f64>)> = Vec::new();
        for calls in [1, 3, 1, 40, 2] {
            let mut wanted = vec![0.0; n * d];
            by_calls.fields(&point, calls, &mut wanted);
            let draw = by_draws.draw(calls);
            let mut found = vec![0.0; n * d];
            by_draws.fields_of_draw(&other, &draw, &mut found).unwrap();
            by_draws.fields_of_draw(&point, &draw, &mut found).unwrap();
            assert_eq!(found, wanted, "{calls} calls");
            kept.push((draw, wanted));
            by_calls.end_round();
            by_draws.end_round();
        }
        for (draw, wanted) in kept {
            let mut found = vec![0.0; n * d];
            by_draws.fields_of_draw(&point, &draw, &mut found).unwrap();
            assert_eq!(found, wanted, "a draw of an earlier round");
        }
    }

    #[test]
    fn draws_are_those_of_fields_on_every_problem() {
        assert_draws_are_those_of_fields(&sample::noisy(3));
        for noise in [0.0, 0.4] {
            let quadratic = crate::problem::quadratic::Settings {
                multiplicative_noise: noise,
                multiplicative_form: crate::problem::quadratic::MultiplicativeForm::TwoPoint,
                noise: 0.4 - noise,
                ..sample::quadratic(3)
            };
            assert_draws_are_those_of_fields(&sample::build(&quadratic, 3));
        }
        let td = sample::build(&sample::garnet(Heterogeneity::Independent {}, 3), 3);
        assert_draws_are_those_of_fields(&td);
        for calls_per_state in [1.0, 2.5] {
            let markov = td::Noise::Markov { burn_in: 10, calls_per_state };
            assert_draws_are_those_of_fields(&sample::chain(vec![0, 1], markov));
        }
        assert_draws_are_those_of_fields(&sample::weighted_logistic());
        assert_draws_are_those_of_fields(&sample::weighted_ridge());
        assert_draws_are_those_of_fields(&sample::build(&sample::sparse(), 3));
        assert_draws_are_those_of_fields(&sample::build(&sample::synthetic(), 3));
        assert_draws_are_those_of_fields(&Reshuffled(sample::weighted_ridge()));
        assert_draws_are_those_of_fields(&Exact::new(sample::weighted_ridge()));
        assert_draws_are_those_of_fields(&Twin::new(sample::weighted_logistic()));
    }

    /// The records of a draw are those whose mean gradient the draw evaluates; an epoch of reshuffled draws has every
    /// record once.
    #[test]
    fn records_of_a_draw_are_those_of_its_gradients() {
        let rows = [1.0, 0.0, 2.0, -1.0, 1.0, 0.5, 0.0, 3.0, 1.0, 2.0, -2.0, 1.0];
        let optimum = [1.0, -1.0, 0.5];
        let problem = sample::least_squares(&rows, &optimum);
        let theta = [0.7, -0.2, 0.4];
        let mut run = clients(&problem);
        let draw = run.draw(3);
        let mut field = vec![0.0; 3];
        run.fields_of_draw(&theta, &draw, &mut field).unwrap();
        let drawn = run.records_of_draw(&draw, 0).unwrap().unwrap();
        assert_eq!(drawn.len(), 3);
        let mut mean = vec![0.0; 3];
        for record in drawn.into_iter().flatten() {
            let row = &rows[3 * record..][..3];
            let error = crate::kernel::dot(row, &theta) - crate::kernel::dot(row, &optimum);
            crate::kernel::axpy(error / 3.0, row, &mut mean);
        }
        assert!(sample::distance(&mean, &field) < 1e-14);
        let reshuffled = Reshuffled(sample::weighted_ridge());
        let mut run = clients(&reshuffled);
        let counts = run.record_counts().unwrap();
        assert_eq!(counts, [4, 8, 12, 16]);
        let draw = run.draw(4);
        let drawn = |client| run.records_of_draw(&draw, client).unwrap().unwrap();
        let mut epoch: Vec<usize> = drawn(1).into_iter().flatten().collect();
        epoch.sort_unstable();
        assert_eq!(epoch, [0, 1, 2, 3, 4, 5, 6, 7], "4 calls of 2 records are an epoch of 8");
        let first = drawn(0);
        assert_eq!(first.len(), 8);
        assert_ne!(first[..4], first[4..], "two epochs of 4 records have orders of their own");
        let exact = Exact::new(sample::weighted_ridge());
        let mut run = clients(&exact);
        assert_eq!(run.record_counts(), None);
        let draw = run.draw(1);
        assert_eq!(run.records_of_draw(&draw, 0), Ok(None));
    }

    /// Clients that take no part do not draw, and those that take part later cannot evaluate the draw.
    #[test]
    fn a_draw_is_of_the_clients_that_take_part() {
        let problem = sample::noisy(4);
        let mut run = clients(&problem);
        let mut others = clients(&problem);
        let everybody = run.draw(1);
        others.draw(1);
        run.draw_cohort(2);
        let members = run.members().indices().to_vec();
        let draw = run.draw(1);
        assert_eq!(draw.members().indices(), members);
        let point = [0.2, 0.1];
        let mut fields = vec![7.0; 8];
        run.fields_of_draw(&point, &everybody, &mut fields).unwrap();
        for client in 0..4 {
            let is_written = fields[2 * client] != 7.0;
            assert_eq!(is_written, members.contains(&client), "client {client}");
        }
        run.fields_of_draw(&point, &draw, &mut fields).unwrap();
        run.end_round();
        let absent = (0..4).find(|client| !members.contains(client)).unwrap();
        let refused = run.fields_of_draw(&point, &draw, &mut fields);
        assert_eq!(refused, Err(ClientDrawError::NotDrawn { client: absent }));
        assert_eq!(run.records_of_draw(&draw, absent), Ok(None), "no records");
        let foreign = others.draw(1);
        let refused = run.fields_of_draw(&point, &foreign, &mut fields);
        assert_eq!(refused, Err(ClientDrawError::OtherRun));
        // The absent clients have drawn once, and go on with the draw of `others`.
        let mut wanted = vec![0.0; 8];
        others.fields_of_draw(&point, &foreign, &mut wanted).unwrap();
        run.fields(&point, 1, &mut fields);
        assert_eq!(fields[2 * absent..][..2], wanted[2 * absent..][..2]);
    }

    /// Gradients are counted where they are evaluated, and a mean field takes one of each record.
    #[test]
    fn evaluations_are_counted_and_draws_are_not() {
        let problem = sample::weighted_ridge();
        let mut run = clients(&problem);
        let draw = run.draw(5);
        assert_eq!(run.cost().oracle_calls, 0);
        let mut fields = vec![0.0; 12];
        for _ in 0..2 {
            run.fields_of_draw(&[0.0; 3], &draw, &mut fields).unwrap();
        }
        assert_eq!(run.cost().oracle_calls, 2 * 5 * 2 * 4, "batches of two, four clients");
        assert_eq!(run.cost().sequential_calls, 2 * 5 * 2);
        let before = run.cost();
        run.mean_fields(&[0.1; 3], &mut fields);
        for client in 0..4 {
            let mut exact = vec![0.0; 3];
            problem.mean_field(client, &[0.1; 3], &mut exact);
            assert_eq!(fields[3 * client..][..3], exact);
        }
        assert_eq!(run.cost().oracle_calls - before.oracle_calls, 4 + 8 + 12 + 16);
        assert_eq!(run.cost().sequential_calls - before.sequential_calls, 16);
        let quadratic = sample::noisy(3);
        let mut run = clients(&quadratic);
        run.mean_fields(&[0.1; 2], &mut [0.0; 6]);
        assert_eq!((run.cost().oracle_calls, run.cost().sequential_calls), (3, 1));
    }
}
