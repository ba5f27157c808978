//! Writes a round of the runs of an algorithm as operations of a program.
//!
//! An *atom* is a vector of the server, or one vector for each client (its *level*), which the state has at the start
//! of the round or an operation makes. Atoms are numbered: first the state, then the operations.

use super::{ComponentRuns, MOST_FALLING_STEPS, has_variates, per_client};
use crate::client_sampling::ParticipationScheme;
use crate::federated::{Learning, Terms, Variates};
use crate::round_program::{
    Coefficient, CoefficientNumbers, Expression, Level, Operation, PerClient, Round, Weights,
    combination, mean, sum,
};
use std::collections::BTreeMap;

/// A round of all runs of an algorithm that is being written.
pub(super) struct RoundWriter<'a> {
    runs: &'a ComponentRuns<'a>,
    /// Whether it is the first round: all runs begin at θ_0, and variates are 0.
    is_first: bool,
    /// How the clients of the round are selected and weighed, the default where all take part, and how many of them are
    /// drawn, if a number is.
    participation: (ParticipationScheme, Option<usize>),
    /// What multiplies the way that each client has moved, N numbers, since the scheme of this round alone does not give
    /// it its weight: in the long run a client takes part more or less often. `None` if all are 1.
    corrections: Option<Vec<f64>>,
    /// What the decay of step sizes has counted before this round ([`Terms::decay_count`]); 0 without a decay.
    decay_count: u64,
    /// The levels of the atoms of the state: θ_0 in the first round, and later the estimates of all runs and then the
    /// variates of the runs that have some.
    state: Vec<Level>,
    /// The operations that are written so far, each of which makes an atom.
    operations: Vec<Operation>,
}

/// What a round leaves of one run.
struct RunEnd {
    /// The next estimate of the run.
    estimate: Expression,
    /// Its next variates; `None` if it has none.
    variates: Option<Expression>,
    /// The atom of the clients' ends: their θ after the local steps.
    ends: usize,
}

/// The correction ξ_k of the clients of one run in a round.
struct ClientCorrection {
    /// ξ_k, one row for each client.
    value: Expression,
    /// The atom of c̄, the mean of the variates that the run keeps; `None` where c̄ is 0, or nothing is kept.
    mean: Option<usize>,
    /// The atom of the variates that were measured in this round, if they are.
    measured: Option<usize>,
}

/// The mean of the clients that take part, and how far the server goes towards it.
struct ServerMove {
    /// The atom of the mean.
    mean: usize,
    /// The part of the way from θ_t to the mean that the server goes.
    step: f64,
}

/// The atoms from whose difference the variates of a run learn in a round (option two).
struct ClientMoves {
    /// θ_t, where the local steps began; under a coin the mean of the clients.
    from: usize,
    /// θ_k, where the local steps ended.
    ends: usize,
    /// c_k, `None` where it is 0.
    variates: Option<usize>,
    /// c̄, `None` where it is 0.
    mean: Option<usize>,
}

/// How the clients of round number `round` of these runs, from 0 on, are selected and weighed, and how many are drawn;
/// and what multiplies the ways of the clients, N numbers, or `None` for 1. By a schedule with rescaled weights a client
/// has its share divided by the part of the rounds in which it takes part, and the scheme of a single round divides it
/// by the probability in this round.
fn round_participation(
    runs: &ComponentRuns<'_>,
    round: usize,
) -> ((ParticipationScheme, Option<usize>), Option<Vec<f64>>) {
    if !runs.draws_clients {
        return ((ParticipationScheme::Normalised, None), None);
    }
    let clients = runs.size.clients;
    let scheme = &runs.participation;
    let (of_round, size) = scheme.of_round(round, runs.cohort, clients);
    let mut corrections = None;
    if scheme.is_scheduled() && !scheme.is_normalised() {
        let in_round = of_round.frequencies(size, clients).unwrap_or_default();
        let in_period = scheme.frequencies(runs.cohort, clients).unwrap_or_default();
        let quotients = in_round.iter().zip(in_period).map(|(own, all)| own / all);
        corrections = Some(quotients.collect());
    }
    ((of_round, size), corrections)
}

impl<'a> RoundWriter<'a> {
    /// Round number `round` of these runs, from 0 on, without operations yet. Before it the decay of step sizes has
    /// counted to `decay_count`.
    pub(super) fn new(runs: &'a ComponentRuns<'a>, round: usize, decay_count: u64) -> Self {
        let is_first = round == 0;
        let with_variates = runs.components.iter().filter(|run| has_variates(&run.terms)).count();
        let state = if is_first {
            vec![Level::Server]
        } else {
            let mut state = vec![Level::Server; runs.components.len()];
            state.extend(vec![Level::Clients; with_variates]);
            state
        };
        let (participation, corrections) = round_participation(runs, round);
        let operations = Vec::new();
        Self { runs, is_first, participation, corrections, decay_count, state, operations }
    }

    /// The levels of the atoms of the state at the start of the round.
    pub(super) fn state(&self) -> &[Level] {
        &self.state
    }

    /// Writes the round of all runs. Its result is the weighted sum of their estimates.
    pub(super) fn write(mut self) -> Round {
        let components = self.runs.components;
        let mut estimates = Vec::new();
        let mut variates = Vec::new();
        let mut first_ends = None;
        // The coefficient of each atom in the weighted sum of the estimates.
        let mut coefficients: BTreeMap<usize, f64> = BTreeMap::new();
        for (number, run) in components.iter().enumerate() {
            let end = self.write_run(number);
            // Estimates have coefficients of this kind alone (`write_run`).
            for (atom, coefficient) in &end.estimate.terms {
                if let Coefficient::Number(x) = coefficient {
                    *coefficients.entry(*atom).or_default() += run.weight * x;
                }
            }
            first_ends.get_or_insert(end.ends);
            estimates.push(end.estimate);
            variates.extend(end.variates);
        }
        let terms = coefficients.into_iter().map(|(atom, x)| (atom, Coefficient::Number(x)));
        // Only a run alone, in which all clients take part, records where its clients ended, and so their errors.
        let has_recorded_ends = components.len() == 1 && !self.is_part();
        let ends = first_ends.filter(|_| has_recorded_ends).map(|ends| sum([(ends, 1.0)]));
        let (participation, cohort) = self.participation;
        Round {
            cohort,
            participation,
            state: self.state,
            masks: Vec::new(),
            operations: self.operations,
            next: estimates.into_iter().chain(variates).collect(),
            result: combination(terms.collect()),
            ends,
        }
    }

    /// Writes the operations of one run, by its number among the runs of the algorithm, in the order of the engine:
    /// correction, local steps, the server's mean, and what the variates learn.
    fn write_run(&mut self, number: usize) -> RunEnd {
        let theta = self.estimate_atom(number);
        let variates = self.variates_atom(number);
        let correction = self.write_correction(number);
        let mean_of_variates = correction.as_ref().and_then(|correction| correction.mean);
        let measured = correction.as_ref().and_then(|correction| correction.measured);
        let value = correction.map(|correction| correction.value);
        let ends = self.write_local_steps(number, value);
        let server = self.write_server_mean(number, ends);
        let kept = if self.moves_by_increments(number) { 1.0 } else { 1.0 - server.step };
        let estimate = sum([(theta, kept), (server.mean, server.step)]);
        let learned = match self.terms(number).variates {
            Variates::None | Variates::Unknown(_) => None,
            Variates::Fresh => measured.map(|rows| sum([(rows, 1.0)])),
            // Option one: each variate is a mean of further gradients at θ_t.
            Variates::Kept(Learning::OptionOne) => {
                let rows = self.write_measured_fields(number, self.is_part());
                Some(self.write_kept_variates(sum([(rows, 1.0)]), variates))
            }
            Variates::Kept(Learning::OptionTwo) => {
                let from = if self.runs.coin.is_some() { server.mean } else { theta };
                let progress = ClientMoves { from, ends, variates, mean: mean_of_variates };
                let learned = self.learned_by_progress(number, &progress);
                Some(self.write_kept_variates(learned, variates))
            }
        };
        RunEnd { estimate, variates: learned, ends }
    }

    /// Writes what the correction of a run is made of; `None` if the run has no control variates. It is c̄ − c_k, of
    /// the variates in the state, which are 0 in the first round, or of those that are measured here (FedLin).
    fn write_correction(&mut self, run: usize) -> Option<ClientCorrection> {
        let variates = self.variates_atom(run);
        match (self.terms(run).variates, variates) {
            (Variates::None, _) => None,
            (Variates::Fresh, _) => {
                let members_only = false;
                let rows = self.write_measured_fields(run, members_only);
                let all = self.add(mean(sum([(rows, 1.0)])));
                let value = sum([(rows, -1.0), (all, 1.0)]);
                Some(ClientCorrection { value, mean: None, measured: Some(rows) })
            }
            // Variates are 0 before the first round.
            (_, None) => Some(ClientCorrection { value: sum([]), mean: None, measured: None }),
            // With random communication (H1) the mean of the variates stays 0.
            (_, Some(own)) if self.runs.coin.is_some() => {
                let value = sum([(own, -1.0)]);
                Some(ClientCorrection { value, mean: None, measured: None })
            }
            (_, Some(own)) => {
                let all = self.add(mean(sum([(own, 1.0)])));
                let value = sum([(own, -1.0), (all, 1.0)]);
                Some(ClientCorrection { value, mean: Some(all), measured: None })
            }
        }
    }

    /// Writes the local steps of a run with this correction, and returns the atom of the clients' ends. Under a
    /// coin, which decides on the number of steps, the count is 1 for all clients, so that they do not differ in it.
    fn write_local_steps(&mut self, run: usize, correction: Option<Expression>) -> usize {
        let terms = self.terms(run);
        if terms.decay_by_step().is_some() {
            return self.write_falling_steps(run, correction.as_ref());
        }
        let coin = self.runs.coin;
        let factor = terms.step_factor(self.decay_count, 0);
        let clients = self.runs.size.clients;
        let step = per_client(terms, clients, |k| factor * terms.step(k));
        let count = per_client(terms, clients, |k| if coin.is_some() { 1 } else { terms.steps(k) });
        self.write_steps(run, sum([(self.estimate_atom(run), 1.0)]), correction, step, count)
    }

    /// Writes local steps whose sizes fall from step to step, one by one, and returns the atom of the clients' ends. A
    /// client that takes fewer steps than others takes steps of size 0 in the end, which leave its θ as it is.
    fn write_falling_steps(&mut self, run: usize, correction: Option<&Expression>) -> usize {
        let terms = self.terms(run);
        let clients = self.runs.size.clients;
        let most = (0..clients).map(|client| terms.steps(client)).max().unwrap_or(1);
        let mut at = self.estimate_atom(run);
        for number in 0..most.min(MOST_FALLING_STEPS) {
            let factor = terms.step_factor(self.decay_count, number);
            let step = per_client(terms, clients, |k| {
                if number < terms.steps(k) { factor * terms.step(k) } else { 0.0 }
            });
            let start = sum([(at, 1.0)]);
            at = self.write_steps(run, start, correction.cloned(), step, PerClient::All(1));
        }
        at
    }

    /// Writes local steps of a run from `start`, of these sizes and numbers, and returns the atom of where they end. A
    /// proximal term pulls to θ_t, where the round began.
    fn write_steps(
        &mut self,
        run: usize,
        start: Expression,
        correction: Option<Expression>,
        step: PerClient<f64>,
        count: PerClient<u64>,
    ) -> usize {
        let terms = self.terms(run);
        let theta = self.estimate_atom(run);
        let steps = Operation::Steps {
            start,
            correction,
            anchor: (terms.proximal != 0.0).then(|| sum([(theta, 1.0)])),
            step,
            count,
            batch: per_client(terms, self.runs.size.clients, |k| terms.batch(k)),
            proximal: terms.proximal,
            members: self.is_part(),
            draws: self.shared_draws(),
            coin: self.runs.coin,
        };
        self.add(steps)
    }

    /// Writes the mean of as many gradients of each client at θ_t as its local steps take, and returns the atom. With
    /// `members_only` only the clients that take part compute gradients.
    fn write_measured_fields(&mut self, run: usize, members_only: bool) -> usize {
        let terms = self.terms(run);
        let calls = per_client(terms, self.runs.size.clients, |k| {
            let update = terms.local_update(k);
            update.steps * update.batch
        });
        let draws = self.shared_draws();
        let at = sum([(self.estimate_atom(run), 1.0)]);
        self.add(Operation::Fields { at, calls, members: members_only, draws })
    }

    /// Writes the mean of the ends of the clients that take part, towards which the server goes in a run. Where the
    /// server weighs the clients by their numbers of local steps (FedNova), the weights are divided by their sum, and
    /// the server's step is multiplied by FedNova's factor. Equal weights are those of the plain mean. Where the weights
    /// of the participating clients do not sum to 1, it is the weighted sum of what they have moved, which the server
    /// adds to θ_t.
    fn write_server_mean(&mut self, run: usize, ends: usize) -> ServerMove {
        let terms = self.terms(run);
        let rows = if self.moves_by_increments(run) {
            self.weighted_moves(run, ends)
        } else {
            sum([(ends, 1.0)])
        };
        let mut step = terms.server_step;
        let average = match self.runs.progress_weights(terms) {
            // Where clients' shares are divided by the sum of those who take part, `ComponentRuns::check_draws` refuses
            // FedNova's weights. A program that is written without this check has the plain mean in their place.
            _ if self.is_part() => Operation::Members { rows },
            None => mean(rows),
            Some(weights) => {
                let everybody: Vec<usize> = (0..self.runs.size.clients).collect();
                step *= terms.progress_factor(&weights, &everybody);
                if weights.iter().all(|weight| *weight == weights[0]) {
                    mean(rows)
                } else {
                    let total: f64 = weights.iter().sum();
                    let weights = weights.iter().map(|weight| weight / total).collect();
                    Operation::Sum { rows, weights: Weights::Each(weights) }
                }
            }
        };
        ServerMove { mean: self.add(average), step }
    }

    /// The next variates of a run: `learned` for the clients that take part; the others keep theirs, which are the atom
    /// `variates`, or 0 without it.
    fn write_kept_variates(&mut self, learned: Expression, variates: Option<usize>) -> Expression {
        if !self.is_part() {
            return learned;
        }
        let other = variates.map_or_else(|| sum([]), |variates| sum([(variates, 1.0)]));
        let selected = self.add(Operation::Select { member: learned, other });
        sum([(selected, 1.0)])
    }

    /// What each client's variate becomes if it learns from the way that the client has moved (option two): c_k − c̄ +
    /// (θ_t − θ_k)/(γ_k E_k), or under a coin c_k + (p/γ)(θ̄ − θ_k). It tends to F̄_k(θ*), which is therefore left out
    /// of its coordinates in THEORY (4.8).
    fn learned_by_progress(&self, run: usize, progress: &ClientMoves) -> Expression {
        let mut all = vec![
            (progress.from, self.learning_rates(run, 1.0)),
            (progress.ends, self.learning_rates(run, -1.0)),
        ];
        all.extend(progress.variates.map(|own| (own, Coefficient::Number(1.0))));
        all.extend(progress.mean.map(|mean| (mean, Coefficient::Number(-1.0))));
        all.sort_by_key(|(atom, _)| *atom);
        combination(all)
    }

    /// `sign` times the rate at which the variates of a run learn in this round: 1/(γ_k E_k), or p/γ_k under a coin, of
    /// the decayed γ_k. It is the reciprocal of ℓ_k in THEORY (4.10).
    fn learning_rates(&self, run: usize, sign: f64) -> Coefficient {
        let terms = self.terms(run);
        let rates = per_client(terms, self.runs.size.clients, |k| match self.runs.coin {
            Some(p) => sign * p / (terms.step_factor(self.decay_count, 0) * terms.step(k)),
            None => sign / terms.length(k, self.decay_count),
        });
        match rates {
            PerClient::All(x) => Coefficient::Number(x),
            PerClient::Each(all) => Coefficient::Numbers(CoefficientNumbers::Clients(all)),
        }
    }

    /// The terms of a run, by its number.
    fn terms(&self, run: usize) -> &'a Terms {
        &self.runs.components[run].terms
    }

    /// Adds an operation to the round, and returns the number of the atom that it makes.
    fn add(&mut self, operation: Operation) -> usize {
        self.operations.push(operation);
        self.state.len() + self.operations.len() - 1
    }

    /// Whether only a part of the clients, which is drawn in each round, takes part.
    fn is_part(&self) -> bool {
        self.runs.draws_clients
    }

    /// Whether the server adds a sum of what clients have moved in a run, whose weights do not sum to 1, in place of
    /// going to a mean of their ends.
    fn moves_by_increments(&self, run: usize) -> bool {
        let has_progress = self.has_progress_ratios(run);
        self.is_part() && (has_progress || !self.participation.0.weights_sum_to_one())
    }

    /// Whether what a client has moved in a run is multiplied by FedNova's ratio Ē/a_k, since the scheme gives it a
    /// weight of its own.
    fn has_progress_ratios(&self, run: usize) -> bool {
        let is_normalised = self.runs.participation.is_normalised();
        self.is_part() && !is_normalised && self.runs.progress_weights(self.terms(run)).is_some()
    }

    /// What clients have moved from θ_t to their ends in a run, times what corrects the weights of the round's scheme,
    /// and times FedNova's ratio Ē/a_k.
    fn weighted_moves(&self, run: usize, ends: usize) -> Expression {
        let theta = self.estimate_atom(run);
        let mut factors = self.corrections.clone();
        if self.has_progress_ratios(run)
            && let Some(weights) = self.runs.progress_weights(self.terms(run))
        {
            let ratios = self.terms(run).progress_ratios(&weights);
            let corrections = factors.unwrap_or_else(|| vec![1.0; ratios.len()]);
            factors = Some(ratios.iter().zip(corrections).map(|(ratio, x)| ratio * x).collect());
        }
        let Some(factors) = factors else { return sum([(ends, 1.0), (theta, -1.0)]) };
        let away = factors.iter().map(|factor| -factor).collect();
        let [factors, away] =
            [factors, away].map(|all| Coefficient::Numbers(CoefficientNumbers::Clients(all)));
        let mut terms = vec![(ends, factors), (theta, away)];
        terms.sort_by_key(|(atom, _)| *atom);
        combination(terms)
    }

    /// The number by which operations of different runs share their draws; `None` if the runs share none.
    fn shared_draws(&self) -> Option<usize> {
        self.runs.is_common.then_some(0)
    }

    /// The atom of θ_t of a run.
    fn estimate_atom(&self, run: usize) -> usize {
        if self.is_first { 0 } else { run }
    }

    /// The atom of the variates of a run at the start of the round; `None` in the first round, where they are 0, and
    /// for a run without variates.
    fn variates_atom(&self, run: usize) -> Option<usize> {
        if self.is_first || !has_variates(self.terms(run)) {
            return None;
        }
        let components = &self.runs.components;
        let before = components[..run].iter().filter(|run| has_variates(&run.terms)).count();
        Some(components.len() + before)
    }
}
