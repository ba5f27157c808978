//! What theory predicts of a cell.

use super::fixed_point::runs_along_trajectories;
use super::prepare::{CustomLimits, Prepared, Scenario, stream_names};
use crate::plan::{Cell, Identity};
use exactfed_core::algorithm::rounds::local_runs;
use exactfed_core::algorithm::{Average, Component};
use exactfed_core::federated::{Clock, Conditions, Schedule, Variates, expected_steps};
use exactfed_core::kernel::axpy;
use exactfed_core::moments::{self, ExactMoments};
use exactfed_core::problem::Facts;
use exactfed_core::round_program::{LocalRuns, Program, ProgramError, Traced};
use exactfed_core::theory::deterministic;
use exactfed_core::theory::effort::Effort;
use exactfed_core::theory::exact::{
    CovarianceBlocks, Cycle, Moments, MomentsError, ProgramMoments, ProgramSizes, closes,
};
use exactfed_core::theory::markov::{self, TrajectoryMoments};
use std::sync::Arc;
use thiserror::Error;

/// The number of local steps of a round of a cell, if a round ends after a fixed number of steps under random
/// communication, and not with a communication; `None` otherwise. All runs that an algorithm combines have one
/// schedule, so that the first is asked.
fn fixed_steps(identity: &Identity) -> Option<u64> {
    let terms = identity.algorithm.components().remove(0).terms;
    match terms.schedule {
        Schedule::Bernoulli { probability, clock: Clock::Steps } => {
            Some(expected_steps(probability))
        }
        _ => None,
    }
}

/// The number of rounds before averaging begins; `None` if the estimate is no average over rounds.
fn burn_in(identity: &Identity) -> Option<u64> {
    match identity.algorithm.average() {
        Average::None => None,
        Average::BurnIn(share) => Some((share * identity.rounds as f64) as u64),
    }
}

/// The runs that the estimate of a built-in algorithm combines on an instance; `None` for a custom algorithm, of whose rounds its
/// terms say nothing.
fn known_components(identity: &Identity, facts: &dyn Facts) -> Option<Vec<Component>> {
    let components = identity.algorithm.on_instance(facts).components();
    if components.iter().any(|run| matches!(run.terms.variates, Variates::Unknown(_))) {
        None
    } else {
        Some(components)
    }
}

/// The runs that the estimate of a cell combines on an instance, where its distribution settles at the end of rounds,
/// as predictions of stationarity need; an average over rounds is not taken into account. `None` if rounds end after a
/// fixed number of steps under random communication, step sizes fall, there are stragglers, or nothing is known of the
/// rounds.
pub fn stationary_components(identity: &Identity, facts: &dyn Facts) -> Option<Vec<Component>> {
    let components = known_components(identity, facts)?;
    let is_repeated = components[0].terms.repeats_local_work();
    if !is_repeated || fixed_steps(identity).is_some() { None } else { Some(components) }
}

/// The runs of an algorithm on a problem whose draws follow trajectories, if their exact moments can be computed.
/// `None` otherwise: for independent draws, whose moments [`independent_moments`] computes, and where no moments are
/// known, for instance because only a part of the clients takes part.
pub fn runs_with_trajectory_moments(
    components: &[Component],
    facts: &dyn Facts,
) -> Option<LocalRuns> {
    local_runs(components, facts.clients()).filter(|runs| markov::are_closed(facts, runs))
}

/// What computes the exact moments of a built-in algorithm, whose estimate combines these runs, on a problem with
/// independent draws.
///
/// # Errors
/// Why there are none: what the problem lacks, or else that the moments do not close.
pub fn independent_moments<'a>(
    facts: &'a dyn Facts,
    components: &'a [Component],
) -> Result<ExactMoments<'a>, NoMoments> {
    if !facts.knows_facts_at_optimum() {
        closes(facts)?;
    }
    ExactMoments::new(facts, components).map_err(|error| match error {
        MomentsError::PartOfPass
        | MomentsError::Program(
            ProgramError::AdaptiveServer
            | ProgramError::ShuffledCycle
            | ProgramError::LongPeriod { .. },
        ) => NoMoments::Unknown(error),
        _ => closes(facts).map_or_else(NoMoments::Unknown, |()| NoMoments::Open),
    })
}

/// Why exact moments of a cell are not known.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NoMoments {
    /// Their equations do not close.
    #[error("second moments do not close")]
    Open,
    /// The rounds of a custom algorithm are no program, or its moments are not known.
    #[error(transparent)]
    Unknown(#[from] MomentsError),
    /// The run of a cell ends at a target, and so when its noise decides.
    #[error("runs end at the target of `budget.until`, and moments are of all rounds")]
    Ends,
    /// They would need too much time or memory.
    #[error("it is not computed at this size: {0}")]
    Costly(Effort),
}

/// What tracing the rounds of a cell's custom algorithm gives: a program, or the reason why there is none. `scenario`
/// is one of the cell's own, and keeps the answer: the rounds are traced at the first call, unless an earlier run gave
/// their program ([`Scenario::knows`]). Of a built-in algorithm whose clients take part by a schedule it is the program
/// of its rounds, which repeat with a period. `None` for any other built-in algorithm, whose terms say more than a
/// program: also how step sizes fall, and what happens between communications.
pub fn program<'s>(cell: &Cell, scenario: &'s Scenario) -> Option<&'s Arc<Traced>> {
    let algorithm = &cell.identity.algorithm;
    let has_program = algorithm.is_custom() || algorithm.has_schedule();
    let found = scenario
        .program
        .get_or_init(|| has_program.then(|| Arc::new(trace_rounds(cell, scenario))));
    found.as_ref()
}

/// Traces the rounds of a cell's custom algorithm. Where second moments do not close it is not run, since nothing would
/// be computed with its program.
fn trace_rounds(cell: &Cell, scenario: &Scenario) -> Traced {
    closes(&*scenario.instance).map_err(|error| ProgramError::Refused(error.to_string()))?;
    let identity = &cell.identity;
    let (seed, replicate) = stream_names(identity, 0);
    let start = &scenario.start;
    let rounds = identity.rounds;
    let from = Conditions { seed, replicate, start, rounds, copy: 0 };
    scenario.instance.program(&scenario.algorithm, &from)
}

impl Prepared<'_> {
    /// What tracing the rounds of a custom algorithm gives, on each instance; empty for a built-in algorithm.
    pub fn programs(&self) -> Vec<Arc<Traced>> {
        if !self.cell.identity.algorithm.is_custom() {
            return Vec::new();
        }
        self.scenarios.iter().filter_map(|scenario| program(self.cell, scenario).cloned()).collect()
    }
}

/// The stationary distribution of a cell with a custom algorithm, or with a schedule of clients, after each round of its
/// cycle: rounds may repeat with a period. It does not have the Lyapunov function, since nothing says what the control
/// variates of a custom algorithm are. `None` for any other built-in algorithm.
///
/// # Errors
/// Why there is none, or why it is not computed at this size.
pub fn cycle<'s>(cell: &Cell, scenario: &'s Scenario) -> Option<Result<Cycle<'s>, NoMoments>> {
    let program = match &**program(cell, scenario)? {
        Ok(program) => program,
        Err(why) => return Some(Err(NoMoments::Unknown(why.clone().into()))),
    };
    let cost = ProgramSizes::new(program, &*scenario.instance).at_rest(program.cycle);
    if !cost.fits() {
        return Some(Err(NoMoments::Costly(cost)));
    }
    let variates = None;
    Some(Cycle::new(program, &*scenario.instance, variates).map_err(NoMoments::Unknown))
}

/// lim E θ_t of a cell on an instance, d numbers; `None` where theory does not know it, or means do not converge.
/// Where rounds have a period, it is the mean of the limits over the rounds of the period, to which averages over
/// rounds tend.
pub fn limit<'s>(cell: &Cell, scenario: &'s Scenario) -> Option<&'s [f64]> {
    match scenario.fixed_point(cell) {
        None => custom_limits(cell, scenario).map(|limits| &limits.mean[..]),
        Some(point) => means_converge(cell, scenario).then_some(point),
    }
}

/// Whether the means of a built-in algorithm converge to their fixed point. It is found out at the first call, and the
/// scenario keeps the answer.
fn means_converge(cell: &Cell, scenario: &Scenario) -> bool {
    *scenario.means_converge.get_or_init(|| find_convergence(cell, scenario))
}

/// Finds out for [`means_converge`] whether the means of a built-in algorithm converge to their fixed point.
fn find_convergence(cell: &Cell, scenario: &Scenario) -> bool {
    let facts: &dyn Facts = &*scenario.instance;
    let identity = &cell.identity;
    if facts.linear() && !facts.independent() {
        let runs = runs_along_trajectories(identity, facts).unwrap_or_default();
        return !runs.is_empty() && runs.iter().all(|(_, run)| markov::means_converge(facts, run));
    }
    let Some(components) = known_components(identity, facts) else { return false };
    if components.iter().any(|run| run.terms.stragglers.is_some()) {
        return false;
    }
    if components[0].terms.decay.is_some() {
        // Step sizes fall below every limit of stability.
        return true;
    }
    let is_plain = components.iter().all(|run| run.terms.variates == Variates::None);
    if !facts.linear() && is_plain {
        // Rounds are linear close to their fixed point, not to θ*.
        return components.iter().all(|component| {
            let update = |client| component.terms.local_update(client);
            let point = deterministic::fixed_point(facts, update);
            point.is_some_and(|point| deterministic::attracts(facts, update, &point))
        });
    }
    let per_step = fixed_steps(identity).is_some();
    moments::means_converge(facts, &components, per_step)
}

/// The limits of E θ_t after each round of the cycle of a cell's rounds, d numbers each; one limit where rounds have
/// no period. `None` where theory does not know them, or means do not converge.
pub fn limits<'s>(cell: &Cell, scenario: &'s Scenario) -> Option<Vec<&'s [f64]>> {
    match periodic(cell, scenario) {
        None => Some(vec![limit(cell, scenario)?]),
        Some(_) => {
            Some(custom_limits(cell, scenario)?.phases.iter().map(|phase| &phase[..]).collect())
        }
    }
}

/// The limits of a cell with a custom algorithm, or with a schedule of clients, computed at the first call and kept by the
/// scenario. `None` for any other built-in algorithm, and where the moments of the cycle are not known.
fn custom_limits<'s>(cell: &Cell, scenario: &'s Scenario) -> Option<&'s CustomLimits> {
    scenario.custom_limits.get_or_init(|| find_custom_limits(cell, scenario)).as_ref()
}

/// Computes for [`custom_limits`] the limits after each round of the cycle, and their mean. `None` also where θ* is not
/// unique, since rounding errors may hide that limits are not.
fn find_custom_limits(cell: &Cell, scenario: &Scenario) -> Option<CustomLimits> {
    if scenario.instance.optimum_set().is_some() {
        return None;
    }
    let mut phases = cycle(cell, scenario)?.ok()?.biases().ok()?;
    phases.iter_mut().for_each(|phase| axpy(1.0, scenario.instance.optimum(), phase));
    let mut mean = phases[0].clone();
    phases[1..].iter().for_each(|phase| axpy(1.0, phase, &mut mean));
    mean.iter_mut().for_each(|x| *x /= phases.len() as f64);
    Some(CustomLimits { mean, phases })
}

/// The rounds over which an average is taken, where the rounds of a cell repeat with a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AveragedOver {
    /// The rounds of the cycle.
    Cycle,
    /// The rounds after the burn-in, of which runs record averages.
    Rounds,
}

/// The program of a cell's rounds if its estimate has a period of two rounds or more; `None` otherwise, also where the
/// estimate is an average over rounds, which settles.
fn periodic<'s>(cell: &Cell, scenario: &'s Scenario) -> Option<&'s Program> {
    let program = (**program(cell, scenario)?).as_ref().ok()?;
    let is_periodic = program.cycle > 1 && cell.identity.algorithm.average() == Average::None;
    is_periodic.then_some(program)
}

/// The weight of each round of a cell's cycle in an average over rounds, by which moments of these rounds are mixed.
/// Their sum is 1; it is the single weight 1 where rounds have no period.
pub fn phase_weights(cell: &Cell, scenario: &Scenario, over: AveragedOver) -> Vec<f64> {
    let Some(program) = periodic(cell, scenario) else { return vec![1.0] };
    let Identity { rounds, record, .. } = &cell.identity;
    match over {
        AveragedOver::Cycle => program.phase_shares(0, program.cycle as u64),
        AveragedOver::Rounds => program.phase_shares(record.rounds_before(*rounds), *rounds),
    }
}

/// At each of these rounds, the value of the round of the cycle that it is: `phases` has a value for each round of the
/// cycle, or one where rounds have no period.
pub fn at_phases(cell: &Cell, scenario: &Scenario, phases: &[f64], rounds: &[u64]) -> Vec<f64> {
    let program = periodic(cell, scenario);
    let values = rounds.iter().map(|round| {
        let phase = program.map_or(0, |program| program.phase(*round));
        phases[phase]
    });
    values.collect()
}

/// The stationary moments of a cell after each round of its cycle, and the blocks of the covariance at the end of the
/// cycle. If the estimate is an average over rounds, there is one set of moments, the mixture of all: that the average
/// varies less than the iterates is not taken into account.
///
/// # Errors
/// Why there are none.
pub fn at_rest(
    cell: &Cell,
    cycle: &Cycle<'_>,
) -> Result<(Vec<Moments>, CovarianceBlocks), MomentsError> {
    let (mut phases, blocks) = cycle.stationary()?;
    if cell.identity.algorithm.average() != Average::None {
        let even = vec![1.0 / phases.len() as f64; phases.len()];
        phases = vec![Moments::mixture(&phases, &even)];
    }
    Ok((phases, blocks))
}

/// What computes the exact moments of a custom algorithm's program on a cell's instance, without the Lyapunov function,
/// as for [`cycle`]. What that costs is checked by [`check_exact_moments`].
///
/// # Errors
/// Why the rounds are no program, or why its moments are not known.
fn moments_of_program<'p>(
    program: &'p Traced,
    scenario: &'p Scenario,
) -> Result<ProgramMoments<'p>, NoMoments> {
    let program = program.as_ref().map_err(|why| NoMoments::Unknown(why.clone().into()))?;
    let variates = None;
    ProgramMoments::new(program, &*scenario.instance, variates).map_err(NoMoments::Unknown)
}

/// Checks that the exact moments of a cell can be computed, within the bounds on their cost for
/// all of its instances together. The first instance stands for all, since they have the same sizes.
///
/// # Errors
/// Why they cannot.
pub fn check_exact_moments(prepared: &Prepared<'_>) -> Result<(), NoMoments> {
    let identity = &prepared.cell.identity;
    if identity.until.is_some() {
        return Err(NoMoments::Ends);
    }
    let facts: &dyn Facts = &*prepared.scenarios[0].instance;
    if let Some(traced) = self::program(prepared.cell, &prepared.scenarios[0]) {
        moments_of_program(traced, &prepared.scenarios[0])?;
        let rows = prepared.recorded.len();
        let one = traced.as_ref().as_ref().map_or_else(
            |_| Effort::default(),
            |program| {
                let different_rounds = program.rounds.len() as u64;
                ProgramSizes::new(program, facts).effort(different_rounds, identity.rounds, rows)
            },
        );
        return check_effort(one, prepared);
    }
    let components = known_components(identity, facts).ok_or(NoMoments::Open)?;
    let along = runs_with_trajectory_moments(&components, facts);
    if along.is_none() {
        independent_moments(facts, &components)?;
    }
    let steps = fixed_steps(identity);
    if steps.is_some() && (components.len() > 1 || burn_in(identity).is_some()) {
        return Err(NoMoments::Open);
    }
    let rounds = identity.rounds.saturating_mul(steps.unwrap_or(1));
    let one = match along {
        Some(runs) => markov::rounds_effort(facts, &runs, rounds),
        None => moments::effort(facts, &components, rounds, prepared.recorded.len()),
    };
    check_effort(one, prepared)
}

/// An error if computing something for every instance of a cell, at this effort for each, takes too much time or
/// memory. Instances are computed one after another: the memory is that of one.
fn check_effort(one: Effort, prepared: &Prepared<'_>) -> Result<(), NoMoments> {
    let all = Effort { products: one.products * prepared.scenarios.len() as f64, ..one };
    if all.fits() { Ok(()) } else { Err(NoMoments::Costly(all)) }
}

/// E‖θ_t − θ'_t‖² of two runs of a cell on the same draws, one from the cell's start and one from θ*: a number for
/// each recorded round. [`check_exact_moments`] must have allowed it, which bounds the cost. `None` if the moments do
/// not close, the estimate is an average over rounds, or rounds end after a fixed number of steps under a coin.
pub fn coupled_moments(cell: &Cell, scenario: &Scenario) -> Option<Vec<f64>> {
    let start = &scenario.start;
    let identity = &cell.identity;
    let recorded = cell.identity.recorded();
    if let Some(program) = self::program(cell, scenario) {
        let exact =
            moments_of_program(program, scenario).ok().filter(|_| burn_in(identity).is_none())?;
        return exact.coupled(start, &recorded).ok();
    }
    let components = coupled_components(identity, scenario)?;
    let exact = ExactMoments::new(&*scenario.instance, &components).ok()?;
    exact.coupled(start, &recorded).ok()
}

/// The exact mean square distance of two runs with that of their control variates, E‖θ_t − θ'_t‖² +
/// Σ_c π_c ℓ_c² E‖ξ_c − ξ'_c‖². `None` also if there are none, and for custom algorithms.
pub fn coupled_moments_with_variates(cell: &Cell, scenario: &Scenario) -> Option<Vec<f64>> {
    if program(cell, scenario).is_some() {
        return None;
    }
    let components = coupled_components(&cell.identity, scenario)?;
    let exact = ExactMoments::new(&*scenario.instance, &components).ok()?;
    exact.coupled_with_variates(&scenario.start, &cell.identity.recorded()).ok()?
}

/// The runs that the estimate of a cell combines, for moments of the difference of two runs of the cell. `None` if the
/// estimate is an average over rounds, or rounds end after a fixed number of steps under a coin.
fn coupled_components(identity: &Identity, scenario: &Scenario) -> Option<Vec<Component>> {
    if fixed_steps(identity).is_some() || burn_in(identity).is_some() {
        return None;
    }
    known_components(identity, &*scenario.instance)
}

/// The exact moments of a cell at each of its recorded rounds. [`check_exact_moments`] must have allowed it, which
/// bounds the cost.
///
/// # Errors
/// Why they are not known.
pub fn exact_moments(cell: &Cell, scenario: &Scenario) -> Result<Vec<Moments>, NoMoments> {
    let facts: &dyn Facts = &*scenario.instance;
    let start = &scenario.start;
    let identity = &cell.identity;
    let recorded = cell.identity.recorded();
    if let Some(program) = self::program(cell, scenario) {
        let found =
            moments_of_program(program, scenario)?.at_rounds(start, &recorded, burn_in(identity));
        return found.map_err(NoMoments::Unknown);
    }
    let components = known_components(identity, facts).ok_or(NoMoments::Open)?;
    if let Some(runs) = runs_with_trajectory_moments(&components, facts) {
        let exact = TrajectoryMoments::new(facts, &runs).ok_or(NoMoments::Open)?;
        return Ok(exact.at_rounds(start, &recorded, burn_in(identity)));
    }
    let exact = independent_moments(facts, &components)?;
    let found = match fixed_steps(identity) {
        Some(_) if burn_in(identity).is_some() => return Err(NoMoments::Open),
        Some(steps) => exact.at_rounds_of_steps(steps, start, &recorded),
        None => exact.at_rounds(start, &recorded, burn_in(identity)),
    };
    found.map_err(|_| NoMoments::Open)
}
