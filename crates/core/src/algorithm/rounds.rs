//! The rounds of built-in algorithms as programs: what the terms of their runs say, in operations.

use super::Component;
use crate::federated::{Learning, Schedule, Terms, Variates};
use crate::round_program::{
    Coefficient, CoefficientNumbers, Each, Expression, Level, LocalRun, LocalRuns, LocalUpdate,
    Mask, Operation, PerClient, Program, ProgramError, Round, RoundPrice, Traced, Weights,
    combination, mean, sum,
};
use std::collections::BTreeMap;

/// The numbers of clients and of dimensions.
#[derive(Clone, Copy, Debug)]
pub struct ProblemSize {
    /// N.
    pub clients: usize,
    /// d.
    pub dimension: usize,
}

impl Terms {
    /// The local steps of a client in a round.
    pub fn local_update(&self, client: usize) -> LocalUpdate {
        LocalUpdate {
            step: self.step(client),
            steps: self.steps(client),
            batch: self.batch(client),
            proximal: self.proximal,
        }
    }

    /// p, if a coin ends the local steps of a round.
    pub fn coin(&self) -> Option<f64> {
        match self.schedule {
            Schedule::Every => None,
            Schedule::Bernoulli { probability, .. } => Some(probability),
        }
    }
}

/// Runs from one start, whose weighted estimates add up to that of an algorithm.
struct ComponentRuns<'a> {
    components: &'a [Component],
    size: ProblemSize,
    /// L.
    cohort: usize,
    /// Whether the runs share their draws.
    is_common: bool,
    coin: Option<f64>,
}

impl<'a> ComponentRuns<'a> {
    fn new(components: &'a [Component], size: ProblemSize) -> Self {
        let first = &components[0];
        Self {
            components,
            size,
            cohort: first.terms.cohort.unwrap_or(size.clients),
            is_common: share_draws(components),
            coin: first.terms.coin(),
        }
    }

    /// The weights of the clients in the server's mean, if these are not their equal shares.
    fn progress_weights(&self, terms: &Terms) -> Option<Vec<f64>> {
        terms.progress_weights(self.size.clients, None)
    }

    /// The sum of the weights, which is 1 but for what is printed in RR, Remark 1.
    fn start_weight(&self) -> f64 {
        let weights: f64 = self.components.iter().map(|run| run.weight).sum();
        if (weights - 1.0).abs() > 1e-12 { weights } else { 1.0 }
    }

    /// Whether programs can say how the runs share their draws.
    fn check_draws(&self) -> Result<(), ProgramError> {
        let terms = || self.components.iter().map(|component| &component.terms);
        if terms().any(|terms| matches!(terms.variates, Variates::Unknown(_))) {
            return Err(ProgramError::Open);
        }
        let differ = |of: fn(&LocalUpdate) -> u64| {
            (0..self.size.clients).any(|client| {
                let mut each = terms().map(|terms| of(&terms.local_update(client)));
                let first = each.next();
                each.any(|other| Some(other) != first)
            })
        };
        let measures = |terms: &Terms| {
            matches!(terms.variates, Variates::Fresh | Variates::Kept(Learning::OptionOne))
        };
        let uneven_measures = differ(|update| update.steps) && terms().any(measures);
        let uneven_progress = terms().any(|terms| self.progress_weights(terms).is_some());
        if uneven_progress && self.cohort < self.size.clients {
            return Err(ProgramError::Open);
        }
        let uneven_batches = self.is_common && differ(|update| update.batch);
        let everybody = self.is_common || self.cohort == self.size.clients;
        let several = self.components.len() > 1;
        if uneven_measures || uneven_batches || several && (self.coin.is_some() || !everybody) {
            return Err(ProgramError::Open);
        }
        Ok(())
    }
}

/// The first round and the later ones, which repeat, with the step sizes of the first round.
///
/// # Errors
/// Why no program says what the rounds do.
pub fn constant_rounds(components: &[Component], size: ProblemSize) -> Traced {
    ComponentRuns::new(components, size).check_draws()?;
    Ok(constant_rounds_unchecked(components, size))
}

/// The same, whether or not programs can say how the runs share their draws: means do not depend on that.
pub fn constant_rounds_unchecked(components: &[Component], size: ProblemSize) -> Program {
    let runs = ComponentRuns::new(components, size);
    let first = RoundWriter::new(&runs, true, 1.0);
    let later = RoundWriter::new(&runs, false, 1.0);
    let mut rounds = Vec::new();
    // One run without variates begins as it goes on.
    if first.state != later.state {
        rounds.push(first.round());
    }
    rounds.push(later.round());
    program_of(size, runs.start_weight(), rounds, 1)
}

/// The rounds up to a number; the last repeats if step sizes are constant. From the second on, the
/// control variates of the first run are the atom of the state after the estimates of the runs.
///
/// # Errors
/// Why no program says what the rounds do.
pub fn rounds_up_to(components: &[Component], size: ProblemSize, rounds: u64) -> Traced {
    let runs = ComponentRuns::new(components, size);
    runs.check_draws()?;
    let decay = components[0].terms.decay;
    // What the round after the last one has as its state is known as well.
    let number = if decay.is_some() { rounds + 1 } else { 2 };
    let mut all = Vec::new();
    for round in 0..number {
        let decay_factor = decay.map_or(1.0, |decay| decay.factor(round));
        all.push(RoundWriter::new(&runs, round == 0, decay_factor).round());
    }
    Ok(program_of(size, runs.start_weight(), all, usize::from(decay.is_none())))
}

/// The rounds of N clients as runs of local steps, THEORY (6.6), if they are nothing else.
pub fn local_runs(components: &[Component], clients: usize) -> Option<LocalRuns> {
    let is_corrected = components[0].terms.variates != Variates::None;
    let mut runs = Vec::new();
    for Component { weight, terms, .. } in components {
        let is_known = match terms.variates {
            Variates::None => !is_corrected,
            Variates::Kept(Learning::OptionTwo) => is_corrected,
            Variates::Kept(Learning::OptionOne) | Variates::Fresh | Variates::Unknown(_) => false,
        };
        let is_constant = terms.schedule == Schedule::Every && terms.decay.is_none();
        let takes_all = terms.cohort.is_none_or(|size| size >= clients);
        let is_plain = terms.proximal == 0.0 && terms.progress_weights(clients, None).is_none();
        if !(is_known && is_constant && takes_all && is_plain) {
            return None;
        }
        runs.push(LocalRun {
            weight: *weight,
            updates: per_client(terms, clients, |client| terms.local_update(client)),
            server_step: terms.server_step,
        });
    }
    Some(LocalRuns { runs, is_corrected, is_common: share_draws(components) })
}

/// What a round of these runs costs, one communication of each.
pub fn round_price(components: &[Component], clients: usize) -> RoundPrice {
    let mut price = RoundPrice { communications: 0.0, gradients: 0.0, samples: 0.0, vectors: 0.0 };
    let is_common = share_draws(components);
    for Component { terms, .. } in components {
        let calls = terms.mean_calls(clients);
        price.communications += terms.communications() as f64;
        price.gradients += calls;
        price.samples = if is_common { price.samples.max(calls) } else { price.samples + calls };
        price.vectors += terms.vectors_per_client(clients) as f64;
    }
    price
}

/// Whether there are several runs, which share their draws.
pub fn share_draws(components: &[Component]) -> bool {
    components.len() > 1 && components.iter().all(|run| run.copy == components[0].copy)
}

/// Whether all clients take the same local steps.
pub fn treats_clients_alike(terms: &Terms) -> bool {
    terms.local_steps.len() == 1 && terms.batches.len() == 1
}

/// The program whose rounds are these in turn, and of which the last `cycle` repeat.
fn program_of(size: ProblemSize, start_weight: f64, rounds: Vec<Round>, cycle: usize) -> Program {
    let ProblemSize { clients, dimension } = size;
    let order = (0..rounds.len()).collect();
    Program { clients, dimension, order, rounds, cycle, start_weight }
}

/// The atom of the state from the second round on that holds the control variates of an algorithm of one run.
pub fn variates_atom(components: &[Component]) -> Option<usize> {
    match components {
        [run] if has_variates(&run.terms) => Some(1),
        _ => None,
    }
}

/// One value for all clients, or the value of each.
fn per_client<T: PartialEq + Copy>(
    terms: &Terms,
    clients: usize,
    of: impl Fn(usize) -> T,
) -> PerClient<T> {
    if treats_clients_alike(terms) {
        return PerClient::All(of(0));
    }
    let all: Vec<T> = (0..clients).map(of).collect();
    if all.iter().all(|x| *x == all[0]) { PerClient::All(all[0]) } else { PerClient::Each(all) }
}

/// A round that is being written.
struct RoundWriter<'a> {
    runs: &'a ComponentRuns<'a>,
    /// Whether it is the first: all runs begin at θ_0, and variates are 0.
    first: bool,
    /// What the decay of step sizes multiplies them by in this round; 1 without one.
    decay_factor: f64,
    state: Vec<Level>,
    operations: Vec<Operation>,
}

/// What a round leaves of a run.
struct RunEnd {
    /// The next estimate.
    estimate: Expression,
    /// The next variates.
    variates: Option<Expression>,
    /// The atom of the clients' ends.
    ends: usize,
}

/// The correction ξ of a run.
struct ClientCorrection {
    /// ξ.
    value: Expression,
    /// The atom of the mean of the variates, or of the variates that were measured in this round.
    variates: Option<usize>,
}

impl<'a> RoundWriter<'a> {
    fn new(runs: &'a ComponentRuns<'a>, first: bool, decay_factor: f64) -> Self {
        let kept = runs.components.iter().filter(|run| has_variates(&run.terms)).count();
        let state = if first {
            vec![Level::Server]
        } else {
            let mut state = vec![Level::Server; runs.components.len()];
            state.extend(vec![Level::Clients; kept]);
            state
        };
        Self { runs, first, decay_factor, state, operations: Vec::new() }
    }

    fn terms(&self, run: usize) -> &'a Terms {
        &self.runs.components[run].terms
    }

    fn add(&mut self, operation: Operation) -> usize {
        self.operations.push(operation);
        self.state.len() + self.operations.len() - 1
    }

    /// Whether a part of the clients is drawn.
    fn is_part(&self) -> bool {
        self.runs.cohort < self.runs.size.clients
    }

    /// The number of the draws that operations of all runs share.
    fn draws(&self) -> Option<usize> {
        self.runs.is_common.then_some(0)
    }

    /// The atom of θ_t of a run.
    fn estimate_atom(&self, run: usize) -> usize {
        if self.first { 0 } else { run }
    }

    /// The atom of the variates of a run, if it has any after the first round.
    fn variates_atom(&self, run: usize) -> Option<usize> {
        if self.first || !has_variates(self.terms(run)) {
            return None;
        }
        let components = &self.runs.components;
        let before = components[..run].iter().filter(|run| has_variates(&run.terms)).count();
        Some(components.len() + before)
    }

    /// Adds the mean of as many gradients at θ_t as local steps take; returns the atom.
    fn measured_fields(&mut self, run: usize, members: bool) -> usize {
        let terms = self.terms(run);
        let calls = per_client(terms, self.runs.size.clients, |k| {
            let update = terms.local_update(k);
            update.steps * update.batch
        });
        let draws = self.draws();
        let at = sum([(self.estimate_atom(run), 1.0)]);
        self.add(Operation::Fields { at, calls, members, draws })
    }

    /// The round of all runs, whose estimates are weighted and added.
    fn round(mut self) -> Round {
        let components = self.runs.components;
        let mut estimates = Vec::new();
        let mut variates = Vec::new();
        let mut first_ends = None;
        // The estimates of all runs, weighted.
        let mut terms: BTreeMap<usize, f64> = BTreeMap::new();
        for (number, run) in components.iter().enumerate() {
            let end = self.run(number);
            for (atom, coefficient) in &end.estimate.terms {
                if let Coefficient::Number(x) = coefficient {
                    *terms.entry(*atom).or_default() += run.weight * x;
                }
            }
            first_ends.get_or_insert(end.ends);
            estimates.push(end.estimate);
            variates.extend(end.variates);
        }
        let terms = terms.into_iter().map(|(atom, x)| (atom, Coefficient::Number(x))).collect();
        let is_alone = components.len() == 1 && !self.is_part();
        let cohort = self.is_part().then_some(self.runs.cohort);
        Round {
            state: self.state,
            cohort,
            masks: Vec::new(),
            operations: self.operations,
            next: estimates.into_iter().chain(variates).collect(),
            result: combination(terms),
            ends: first_ends.filter(|_| is_alone).map(|ends| sum([(ends, 1.0)])),
        }
    }

    /// The correction of a run, if it has control variates.
    fn correction(&mut self, run: usize) -> Option<ClientCorrection> {
        let own = self.variates_atom(run);
        match (self.terms(run).variates, own) {
            (Variates::None, _) => None,
            (Variates::Fresh, _) => {
                let rows = self.measured_fields(run, false);
                let all = self.add(mean(sum([(rows, 1.0)])));
                let value = sum([(rows, -1.0), (all, 1.0)]);
                Some(ClientCorrection { value, variates: Some(rows) })
            }
            (_, None) => Some(ClientCorrection { value: sum([]), variates: None }),
            // With random communication (H1) the mean of the variates stays 0.
            (_, Some(own)) if self.runs.coin.is_some() => {
                Some(ClientCorrection { value: sum([(own, -1.0)]), variates: None })
            }
            (_, Some(own)) => {
                let all = self.add(mean(sum([(own, 1.0)])));
                let value = sum([(own, -1.0), (all, 1.0)]);
                Some(ClientCorrection { value, variates: Some(all) })
            }
        }
    }

    fn run(&mut self, number: usize) -> RunEnd {
        let clients = self.runs.size.clients;
        let terms = self.terms(number);
        let members = self.is_part();
        let (decay_factor, coin) = (self.decay_factor, self.runs.coin);
        let theta = self.estimate_atom(number);
        let own = self.variates_atom(number);
        let correction = self.correction(number);
        let (correction, variates) = match correction {
            Some(ClientCorrection { value, variates }) => (Some(value), variates),
            None => (None, None),
        };
        let draws = self.draws();
        let ends = self.add(Operation::Steps {
            start: sum([(theta, 1.0)]),
            correction,
            anchor: (terms.proximal != 0.0).then(|| sum([(theta, 1.0)])),
            step: per_client(terms, clients, |k| decay_factor * terms.step(k)),
            count: per_client(terms, clients, |k| if coin.is_some() { 1 } else { terms.steps(k) }),
            batch: per_client(terms, clients, |k| terms.batch(k)),
            proximal: terms.proximal,
            members,
            draws,
            coin,
        });
        let (after, server_step) = self.average(number, ends);
        let estimate = sum([(theta, 1.0 - server_step), (after, server_step)]);
        let learned = match terms.variates {
            Variates::None | Variates::Unknown(_) => {
                return RunEnd { estimate, variates: None, ends };
            }
            Variates::Fresh => {
                let variates = variates.map(|rows| sum([(rows, 1.0)]));
                return RunEnd { estimate, variates, ends };
            }
            Variates::Kept(Learning::OptionOne) => {
                sum([(self.measured_fields(number, members), 1.0)])
            }
            Variates::Kept(Learning::OptionTwo) => {
                let from = if coin.is_some() { after } else { theta };
                self.learned_by_progress(number, [from, ends], [own, variates])
            }
        };
        if !members {
            return RunEnd { estimate, variates: Some(learned), ends };
        }
        let other = own.map_or_else(|| sum([]), |own| sum([(own, 1.0)]));
        let selected = self.add(Operation::Select { member: learned, other });
        RunEnd { estimate, variates: Some(sum([(selected, 1.0)])), ends }
    }

    /// The average of the clients' ends, and the step of the server towards it.
    fn average(&mut self, run: usize, ends: usize) -> (usize, f64) {
        let terms = self.terms(run);
        let rows = sum([(ends, 1.0)]);
        let mut server_step = terms.server_step;
        let average = match self.runs.progress_weights(terms) {
            _ if self.is_part() => Operation::Members { rows },
            None => mean(rows),
            Some(weights) => {
                let everybody: Vec<usize> = (0..self.runs.size.clients).collect();
                server_step *= terms.progress_factor(&weights, &everybody);
                let total: f64 = weights.iter().sum();
                let weights = weights.iter().map(|weight| weight / total).collect();
                Operation::Sum { rows, weights: Weights::Each(weights) }
            }
        };
        (self.add(average), server_step)
    }

    /// c_k − c̄ + (θ_t − θ_k)/(γ_k E_k), with the origin F̄_k(θ*), THEORY (4.8); under a coin
    /// c_k + (p/γ)(θ̄ − θ_k). The variates are c_k and c̄, where there are any.
    fn learned_by_progress(
        &self,
        run: usize,
        [from, ends]: [usize; 2],
        [own, mean]: [Option<usize>; 2],
    ) -> Expression {
        let mut all =
            vec![(from, self.learning_rates(run, 1.0)), (ends, self.learning_rates(run, -1.0))];
        all.extend(own.map(|own| (own, Coefficient::Number(1.0))));
        all.extend(mean.map(|mean| (mean, Coefficient::Number(-1.0))));
        all.sort_by_key(|(atom, _)| *atom);
        combination(all)
    }

    /// `sign` times how fast the variates of a run learn in this round: 1/(γ_k E_k), or p/γ_k under a coin, of the decayed
    /// γ_k. This is the reciprocal of ℓ_k in THEORY (4.10).
    fn learning_rates(&self, run: usize, sign: f64) -> Coefficient {
        let terms = self.terms(run);
        let rates = per_client(terms, self.runs.size.clients, |k| match self.runs.coin {
            Some(p) => sign * p / (self.decay_factor * terms.step(k)),
            None => sign / (self.decay_factor * terms.step(k) * terms.steps(k) as f64),
        });
        match rates {
            PerClient::All(x) => Coefficient::Number(x),
            PerClient::Each(all) => Coefficient::Numbers(CoefficientNumbers::Clients(all)),
        }
    }
}

/// Whether a run has control variates. Variates that are measured in each round are in the state for ψ alone,
/// THEORY (4.10).
fn has_variates(terms: &Terms) -> bool {
    terms.variates != Variates::None
}

/// Under a coin: a round is a local step of all clients, after which they communicate with
/// probability p, a mask by THEORY (4.5). The state is where each client is, and its variate.
///
/// # Errors
/// Why no program says what they do.
pub fn single_steps(terms: &Terms, size: ProblemSize) -> Traced {
    let Some(probability) = terms.coin() else { return Err(ProgramError::NoCoin) };
    if terms.proximal != 0.0 {
        return Err(ProgramError::Open);
    }
    let corrected = has_variates(terms);
    let round = |first: bool| {
        let theta = 0;
        let own = (corrected && !first).then_some(1);
        let mut state = vec![if first { Level::Server } else { Level::Clients }];
        state.extend(own.map(|_| Level::Clients));
        let base = state.len();
        let correction = corrected.then(|| own.map_or_else(|| sum([]), |own| sum([(own, -1.0)])));
        let step = Operation::Steps {
            start: sum([(theta, 1.0)]),
            correction,
            anchor: None,
            step: per_client(terms, size.clients, |k| terms.step(k)),
            count: PerClient::All(1),
            batch: per_client(terms, size.clients, |k| terms.batch(k)),
            proximal: 0.0,
            members: false,
            draws: None,
            coin: None,
        };
        let (ends, all, met) = (base, base + 1, base + 2);
        let apart = sum([(ends, -1.0), (all, 1.0)]);
        let meet = Operation::Mask { of: apart, mask: 0, level: Level::Clients };
        let operations = vec![step, mean(sum([(ends, 1.0)])), meet];
        let mut next = vec![sum([(ends, 1.0), (met, 1.0)])];
        let rate = probability / terms.step(0);
        let kept = own.map_or_else(|| sum([(met, rate)]), |own| sum([(own, 1.0), (met, rate)]));
        next.extend(corrected.then_some(kept));
        let masks = vec![Mask { probability, each: Each::Row, level: Level::Server }];
        let (result, ends) = (sum([(all, 1.0)]), Some(next[0].clone()));
        Round { state, cohort: None, masks, operations, next, result, ends }
    };
    Ok(program_of(size, 1.0, vec![round(true), round(false)], 1))
}
