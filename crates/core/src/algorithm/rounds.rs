//! The rounds of built-in algorithms as programs: what the terms of their runs say, in operations.
//!
//! An algorithm is made of one or more *runs* of the engine ([`Component`]), whose weighted estimates add up to its
//! estimate. An *atom* of a round is a vector of the server, or one vector for each client, which the state has at the
//! start of the round or an operation makes. Atoms are numbered: first the state, then the operations.

mod single_steps;
mod writer;

use super::Component;
use crate::client_sampling::ParticipationScheme;
use crate::federated::{Learning, Schedule, Terms, Variates};
use crate::round_program::{
    LocalRun, LocalRuns, LocalUpdate, PerClient, Program, ProgramError, Round, RoundPrice, Traced,
};
pub use single_steps::single_steps;
use writer::RoundWriter;

/// The most rounds of a schedule of clients of which programs are written.
pub const LONGEST_PERIOD: usize = 1000;

/// The most local steps of a round that a program writes one by one, since their sizes fall from step to step.
const MOST_FALLING_STEPS: u64 = 1000;

/// The numbers of clients and of dimensions of a problem, for which a program is written.
#[derive(Clone, Copy, Debug)]
pub struct ProblemSize {
    /// N.
    pub clients: usize,
    /// d.
    pub dimension: usize,
}

impl Terms {
    /// The local steps of a client in a round: their size (the first one where step sizes fall) and number (without
    /// stragglers), and what each of them is made of. Under a coin the number counts for nothing.
    pub fn local_update(&self, client: usize) -> LocalUpdate {
        LocalUpdate {
            step: self.step(client),
            steps: self.steps(client),
            batch: self.batch(client),
            proximal: self.proximal,
        }
    }

    /// The probability p that clients communicate after a local step, if a coin decides about it; `None` if each client
    /// takes a fixed number of local steps in a round.
    pub fn coin(&self) -> Option<f64> {
        match self.schedule {
            Schedule::Every => None,
            Schedule::Bernoulli { probability, .. } => Some(probability),
        }
    }
}

/// The runs of an algorithm from one start, whose weighted estimates add up to the estimate of the algorithm.
struct ComponentRuns<'a> {
    components: &'a [Component],
    size: ProblemSize,
    /// L, the number of clients that are drawn in a round, if a number is.
    cohort: Option<usize>,
    /// How the clients that take part are selected and weighed.
    participation: ParticipationScheme,
    /// Whether rounds depend on a draw or a schedule of clients.
    draws_clients: bool,
    /// Whether there are several runs, which share their draws.
    is_common: bool,
    /// The probability of the coin after each local step, if there is one ([`Terms::coin`]).
    coin: Option<f64>,
}

impl<'a> ComponentRuns<'a> {
    /// The runs of an algorithm that is made of these components, one or more, on problems of this size.
    fn new(components: &'a [Component], size: ProblemSize) -> Self {
        // All runs have the cohort and the coin of the first.
        let first = &components[0];
        Self {
            components,
            size,
            cohort: first.terms.cohort,
            participation: first.terms.participation.clone(),
            draws_clients: first.terms.draws_clients(size.clients),
            is_common: share_draws(components),
            coin: first.terms.coin(),
        }
    }

    /// The weights π_k/a_k of the N clients in the server's mean where these replace their shares (FedNova); `None`
    /// where they do not. The shares π_k are taken to be 1/N: exact moments are refused for FedNova on a problem with
    /// unequal shares ([`crate::moments`]).
    fn progress_weights(&self, terms: &Terms) -> Option<Vec<f64>> {
        terms.progress_weights(self.size.clients, None)
    }

    /// The sum of the weights of the runs, the multiple of θ_0 that the estimate is before the first round. It is 1,
    /// exactly where it is 1 up to rounding, but for the weights that RR, Remark 1 prints.
    fn start_weight(&self) -> f64 {
        let weights: f64 = self.components.iter().map(|run| run.weight).sum();
        if (weights - 1.0).abs() > 1e-12 { weights } else { 1.0 }
    }

    /// Whether two of the runs differ in this number of the local steps of any of the N clients.
    fn differ_in(&self, number: fn(&LocalUpdate) -> u64) -> bool {
        (0..self.size.clients).any(|client| {
            let mut each =
                self.components.iter().map(|run| number(&run.terms.local_update(client)));
            let first = each.next();
            each.any(|other| Some(other) != first)
        })
    }

    /// Whether the server divides what clients have moved by their numbers of local steps, and multiplies it by the mean
    /// number of those who take part, as FedNova does where their shares are divided by their sum: then no linear map
    /// says what a round with a part of the clients does.
    fn has_random_progress(&self, terms: &Terms) -> bool {
        let is_normalised = self.participation.is_normalised();
        self.draws_clients && is_normalised && self.progress_weights(terms).is_some()
    }

    /// The number of rounds that repeat, apart from the state that the first round begins with: 1 without a schedule of
    /// clients.
    fn period(&self) -> usize {
        self.participation.period(self.size.clients)
    }

    /// Checks that programs can say what the rounds do and how the runs share their draws, so that second moments
    /// follow from them. A custom algorithm, whose terms say nothing of its rounds, is refused too.
    ///
    /// # Errors
    /// [`ProgramError::AdaptiveServer`] if the moves of the server are not linear, [`ProgramError::ShuffledCycle`] if
    /// groups of clients take part in an order that is drawn, [`ProgramError::LongPeriod`] if a schedule of clients has
    /// too many rounds, [`ProgramError::RandomWork`] if there are stragglers, [`ProgramError::CohortTwice`] of FedLin
    /// with a part of the clients, [`ProgramError::ManyFallingSteps`] if too many steps of a round differ in their
    /// sizes, and [`ProgramError::Open`] if programs cannot say it for any other reason.
    fn check_draws(&self) -> Result<(), ProgramError> {
        if self.participation.is_shuffled() {
            return Err(ProgramError::ShuffledCycle);
        }
        if self.period() > LONGEST_PERIOD {
            return Err(ProgramError::LongPeriod { rounds: self.period() });
        }
        let mut measures_variates = false;
        for Component { terms, .. } in self.components {
            if terms.server_optimiser.is_some() {
                return Err(ProgramError::AdaptiveServer);
            }
            if terms.stragglers.is_some() {
                return Err(ProgramError::RandomWork);
            }
            if self.draws_clients && terms.variates == Variates::Fresh {
                return Err(ProgramError::CohortTwice);
            }
            if terms.decay_by_step().is_some() && terms.most_steps() > MOST_FALLING_STEPS {
                return Err(ProgramError::ManyFallingSteps { most: MOST_FALLING_STEPS });
            }
            // Nothing is known of the rounds, or the draw of the cohort decides on the weights of the server's mean.
            let is_unknown = matches!(terms.variates, Variates::Unknown(_));
            if is_unknown || self.has_random_progress(terms) {
                return Err(ProgramError::Open);
            }
            measures_variates |=
                matches!(terms.variates, Variates::Fresh | Variates::Kept(Learning::OptionOne));
        }
        // Runs whose clients measure their variates must take equally many gradients for it, and runs on common draws
        // must have equal batches.
        let has_uneven_measures = measures_variates && self.differ_in(|update| update.steps);
        let has_uneven_batches = self.is_common && self.differ_in(|update| update.batch);
        // Several runs must not be under a coin, nor draw a cohort each, as runs on independent draws do.
        let have_one_cohort = self.is_common || !self.draws_clients;
        let has_several = self.components.len() > 1;
        let has_open_pairs = has_several && (self.coin.is_some() || !have_one_cohort);
        if has_uneven_measures || has_uneven_batches || has_open_pairs {
            return Err(ProgramError::Open);
        }
        Ok(())
    }
}

/// The rounds of an algorithm that is made of these runs, as a program: the first round, and the later ones, which
/// repeat, with a schedule of clients after its period. All have the step sizes of the first round, also where step sizes decay: [`rounds_up_to`] has the decayed
/// ones.
///
/// # Errors
/// [`ProgramError::Open`] if no program says what the rounds do and how the runs share their draws, and
/// [`ProgramError::AdaptiveServer`], [`ProgramError::ShuffledCycle`] or [`ProgramError::RandomWork`] if this is because
/// of an adaptive server, of a shuffled schedule or of stragglers.
pub fn constant_rounds(components: &[Component], size: ProblemSize) -> Traced {
    ComponentRuns::new(components, size).check_draws()?;
    Ok(constant_rounds_unchecked(components, size))
}

/// [`constant_rounds`] without its checks, for means and for estimates of effort. Where [`constant_rounds`] refuses the
/// runs since no program says how they share their draws, the means are right here and the second moments are not. Of
/// FedNova with a cohort and unequal numbers of local steps the means are wrong too: the server weighs the ends of the
/// cohort equally in this program, and so are those of an adaptive server, which goes a plain step here, and of a
/// schedule in a drawn order, which is the given one here, or of more rounds than [`LONGEST_PERIOD`], which is cut. So
/// are those of stragglers, who finish their work here, of steps whose sizes fall beyond the first
/// [`MOST_FALLING_STEPS`] of a round, which are left out, and of FedLin with a part of the clients, whose variates all
/// clients measure here. Not for custom algorithms, whose terms do not say what rounds do.
pub fn constant_rounds_unchecked(components: &[Component], size: ProblemSize) -> Program {
    let runs = ComponentRuns::new(components, size);
    let period = runs.period().min(LONGEST_PERIOD);
    let first = RoundWriter::new(&runs, 0, 0);
    // The first round of one run without variates is like the later ones.
    let is_repeated = first.state() == RoundWriter::new(&runs, 1, 0).state();
    let count = if is_repeated { period } else { 1 + period };
    let rounds = (0..count).map(|round| RoundWriter::new(&runs, round, 0).write()).collect();
    program_of(size, runs.start_weight(), rounds, period)
}

/// The rounds of an algorithm that is made of these runs, as a program that says what rounds 1 to `rounds` do, and any
/// later one if step sizes are constant: then round 2 repeats, or the rounds of the period of a schedule, from round 2
/// on. The state of the first round is θ_0 alone. From the second round on it has the estimate of each run, and after
/// these the control variates of each run that has some.
///
/// # Errors
/// As for [`constant_rounds`].
pub fn rounds_up_to(components: &[Component], size: ProblemSize, rounds: u64) -> Traced {
    let runs = ComponentRuns::new(components, size);
    runs.check_draws()?;
    let decay = components[0].terms.decay;
    let period = runs.period();
    // One round more than is asked for, so that the state after the last one is known as well.
    let count = if decay.is_some() { rounds as usize + 1 } else { period + 1 };
    let mut all = Vec::new();
    for round in 0..count {
        let decay_count = components[0].terms.decay_count(round as u64);
        all.push(RoundWriter::new(&runs, round, decay_count).write());
    }
    let cycle = if decay.is_some() { 0 } else { period };
    Ok(program_of(size, runs.start_weight(), all, cycle))
}

/// The rounds of N clients as runs of local steps, with corrections or without, whose ends the server averages: THEORY
/// (6.6). `None` if the rounds do anything else: a coin, step sizes that fall, stragglers, a cohort, a proximal term,
/// FedNova's weights, an adaptive server or other control variates than Scaffold's. Of clients that are alike
/// ([`treats_clients_alike`]), 1 stands for any number.
pub fn local_runs(components: &[Component], clients: usize) -> Option<LocalRuns> {
    let is_corrected = components[0].terms.variates != Variates::None;
    let mut runs = Vec::new();
    for Component { weight, terms, .. } in components {
        let is_known = match terms.variates {
            // All runs have corrections, or none has.
            Variates::None => !is_corrected,
            Variates::Kept(Learning::OptionTwo) => is_corrected,
            Variates::Kept(Learning::OptionOne) | Variates::Fresh | Variates::Unknown(_) => false,
        };
        let is_constant = terms.schedule == Schedule::Every && terms.repeats_local_work();
        let takes_all = !terms.draws_clients(clients);
        let is_plain = terms.proximal == 0.0
            && terms.progress_weights(clients, None).is_none()
            && terms.server_optimiser.is_none();
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

/// What a round of an algorithm that is made of these runs costs: the sum over the runs, but for draws that the runs
/// share. Under a coin it is a round that ends with a communication. Each oracle call counts as one gradient, whatever
/// the batch of the problem is. With a cohort, all are means over all clients, whether they take part or not, but for
/// the gradients of the slowest client.
pub fn round_price(components: &[Component], clients: usize) -> RoundPrice {
    let mut price = RoundPrice {
        communications: 0.0,
        gradients: 0.0,
        slowest_gradients: 0.0,
        samples: 0.0,
        vectors: 0.0,
    };
    let is_common = share_draws(components);
    for Component { terms, .. } in components {
        let calls = terms.mean_calls(clients);
        let with_somebody = terms.participation.part_of_rounds_with_somebody(clients);
        price.communications += with_somebody * terms.communications() as f64;
        price.gradients += calls;
        price.slowest_gradients += terms.slowest_calls(clients);
        price.samples = if is_common { price.samples.max(calls) } else { price.samples + calls };
        price.vectors += terms.vectors_per_client(clients) as f64 * terms.part_of_clients(clients);
    }
    price
}

/// Whether an algorithm is made of several runs, and all of them have the same draws.
pub fn share_draws(components: &[Component]) -> bool {
    components.len() > 1 && components.iter().all(|run| run.copy == components[0].copy)
}

/// Whether all clients take the same local steps, however many clients there are: the terms list no number per client.
/// Whether all of them take part is another question.
pub fn treats_clients_alike(terms: &Terms) -> bool {
    terms.local_steps.len() == 1 && terms.batches.len() == 1
}

/// The program of which round t is entry t of `rounds`, counted from 1, and of which the last `cycle` rounds repeat for
/// ever.
fn program_of(size: ProblemSize, start_weight: f64, rounds: Vec<Round>, cycle: usize) -> Program {
    let ProblemSize { clients, dimension } = size;
    let order = (0..rounds.len()).collect();
    Program { clients, dimension, order, rounds, cycle, start_weight }
}

/// The atom that holds the control variates of an algorithm of one run in the state of its rounds, from the second
/// round on, for those who compute moments of the corrections ξ_k. `None` if it has no control variates, or several
/// runs.
pub fn variates_atom(components: &[Component]) -> Option<usize> {
    match components {
        [run] if has_variates(&run.terms) => Some(1),
        _ => None,
    }
}

/// The values `value_of(k)` of all clients k as one value, if all have the same, and as N values otherwise. They may
/// depend on k only through what `terms` say of client k.
fn per_client<T: PartialEq + Copy>(
    terms: &Terms,
    clients: usize,
    value_of: impl Fn(usize) -> T,
) -> PerClient<T> {
    if treats_clients_alike(terms) {
        return PerClient::All(value_of(0));
    }
    let all: Vec<T> = (0..clients).map(value_of).collect();
    if all.iter().all(|x| *x == all[0]) { PerClient::All(all[0]) } else { PerClient::Each(all) }
}

/// Whether the state of a run's rounds has control variates, from the second round on. For variates that are measured
/// anew in each round it has them only because ψ of THEORY (4.10) is made of them.
fn has_variates(terms: &Terms) -> bool {
    terms.variates != Variates::None
}
