//! Least costs of algorithms on an instance, for many scales of it, targets and prices at once.
//!
//! T rounds cost T (price · communications + gradients), THEORY (6.8). A cost is *robust* if it is the largest among
//! step sizes from γ/1.25 to 1.25 γ: then no step size is best by a coincidence that a small error of γ would destroy,
//! such as a step size at which the bias of FedAvg vanishes.

use super::{Coefficients, ProblemScale};
use crate::problem::{Facts, group_clients};
use crate::round_program::{Program, RoundPrice, RoundSettings, Rounds};
use crate::theory::exact::{KnownSteps, LinearRounds, Outline, StartError, Type};
use std::sync::Arc;

/// The factor by which step sizes may be off for a robust cost.
pub const ROBUST_FACTOR: f64 = 1.25;

/// The settings that are tried.
#[derive(Clone, Debug)]
pub struct SettingsGrid {
    /// The largest step size; a step size at which rounds diverge costs infinitely much.
    pub largest_step: f64,
    /// The number of step sizes, each [`ROBUST_FACTOR`] to the power of −1/`per_factor` of the one before.
    pub steps: usize,
    /// How many step sizes there are in a factor of [`ROBUST_FACTOR`].
    pub per_factor: usize,
    /// The numbers H of local steps.
    pub local_steps: Vec<u64>,
}

impl SettingsGrid {
    /// Step size number i, from the largest on.
    fn step_size(&self, i: usize) -> f64 {
        let power = i as f64 / self.per_factor as f64;
        self.largest_step * libm::exp(-power * libm::log(ROBUST_FACTOR))
    }
}

/// What is asked of an instance.
#[derive(Clone, Copy, Debug)]
pub struct ClassSquare {
    /// The distance of the start, the heterogeneity of gradients and the noise.
    pub scale: ProblemScale,
    /// ε, the root mean square error that is to be reached.
    pub target: f64,
    /// The price of a communication in gradients of a client.
    pub price: f64,
}

/// The settings of an algorithm that cost least, with their cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastCost {
    /// The settings, with the clients of the instance.
    pub settings: RoundSettings,
    /// T with these settings.
    pub rounds: u64,
    /// T (price · communications + gradients) with these settings, or the largest among the step sizes around theirs.
    pub cost: f64,
}

/// The least costs of an algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct BestCosts {
    /// The least cost over all settings; `None` if none reach the target.
    pub least: Option<LeastCost>,
    /// The least of the robust costs; `None` if no settings reach the target with all step sizes around theirs.
    pub robust: Option<LeastCost>,
}

/// The coefficients of one algorithm with one number of local steps and one choice of further settings, for all step
/// sizes.
struct Row {
    /// The settings, with the largest step size.
    settings: RoundSettings,
    price: RoundPrice,
    /// By step size, from the largest on.
    coefficients: Vec<Coefficients>,
}

/// The coefficients of all algorithms on an instance with all their settings.
pub struct CostTables {
    tried: SettingsGrid,
    /// How many algorithms there are.
    algorithms: usize,
    rows: Vec<Row>,
}

/// An instance whose oracles' noise is the same at every θ, with a start.
pub struct ClassInstance<'a> {
    facts: &'a dyn Facts,
    types: Vec<Type>,
    /// θ_0 − θ*, the distance of the start from the optimum, d numbers.
    apart: Vec<f64>,
    start: StartError,
}

impl<'a> ClassInstance<'a> {
    /// The instance with a start at this distance `apart` from θ*, d numbers.
    pub fn new(facts: &'a dyn Facts, apart: &[f64]) -> Self {
        let (first, type_of) = group_clients(facts.clients(), |client| facts.distribution(client));
        let start = facts.optimum().iter().zip(apart).map(|(x, apart)| x + apart).collect();
        let types = Type::all(&first, &type_of);
        Self { facts, types, apart: apart.to_vec(), start: StartError::Point(start) }
    }

    /// The rounds of an algorithm with these settings as a linear map, from its local steps alone where they are all that
    /// it does; `known` is a cache of local steps of constant noise. `None` if the noise of a round depends on the state,
    /// or nothing is known of the rounds.
    pub fn linear_rounds(
        &self,
        rounds: &dyn Rounds,
        settings: &RoundSettings,
        known: &KnownSteps,
    ) -> Option<LinearRounds> {
        if let Some(runs) = rounds.local_runs(settings) {
            let outline = Outline::new(runs, self.facts, &self.types, &self.start, known)?;
            return Some(outline.linear_rounds(&self.apart));
        }
        let program = rounds.program(settings).ok()?;
        let program = Program { clients: self.facts.clients(), ..program };
        LinearRounds::of_program(&program, self.facts, &self.types, known, &self.apart).ok()?
    }
}

impl CostTables {
    /// The coefficients of these algorithms with all their settings on an instance. An algorithm of which nothing is
    /// known costs infinitely much.
    pub fn new(
        instance: &ClassInstance<'_>,
        algorithms: &[Arc<dyn Rounds>],
        tried: &SettingsGrid,
    ) -> Self {
        let known = KnownSteps::of_constant_noise();
        let mut rows: Vec<Row> = Vec::new();
        for (algorithm, rounds) in algorithms.iter().enumerate() {
            let one = [1];
            let local_steps = if rounds.has_local_steps() { &tried.local_steps[..] } else { &one };
            for (local_steps, choice) in local_steps
                .iter()
                .flat_map(|h| (0..rounds.choices()).map(move |choice| (*h, choice)))
            {
                let clients = instance.facts.clients() as u64;
                let step_size = tried.largest_step;
                let settings = RoundSettings { algorithm, clients, local_steps, step_size, choice };
                let price = rounds.price(&settings);
                rows.push(Row { settings, price, coefficients: Vec::with_capacity(tried.steps) });
            }
        }
        for i in 0..tried.steps {
            // The powers of a local step of this size serve all algorithms.
            let known = known.afresh();
            for row in &mut rows {
                let settings = RoundSettings { step_size: tried.step_size(i), ..row.settings };
                let rounds = &*algorithms[row.settings.algorithm];
                let found = instance.linear_rounds(rounds, &settings, &known);
                let found = found.map(|rounds| Coefficients::new(&rounds));
                row.coefficients.push(found.unwrap_or_default());
            }
        }
        Self { tried: tried.clone(), algorithms: algorithms.len(), rows }
    }

    /// The least costs of each algorithm.
    pub fn least(&self, square: &ClassSquare) -> Vec<BestCosts> {
        let mut all = vec![BestCosts::default(); self.algorithms];
        for row in &self.rows {
            let round_cost = square.price * row.price.communications + row.price.gradients;
            let rounds: Vec<Option<u64>> = row
                .coefficients
                .iter()
                .map(|found| found.rounds_to(&square.scale, square.target * square.target))
                .collect();
            let best = &mut all[row.settings.algorithm];
            for (i, of_step) in rounds.iter().enumerate() {
                let Some(of_step) = *of_step else { continue };
                let step_size = self.tried.step_size(i);
                let settings = RoundSettings { step_size, ..row.settings };
                let cost = of_step as f64 * round_cost;
                let found = LeastCost { settings, rounds: of_step, cost };
                keep_less(&mut best.least, found);
                if let Some(most) = self.most_around(&rounds, i) {
                    keep_less(
                        &mut best.robust,
                        LeastCost { cost: most as f64 * round_cost, ..found },
                    );
                }
            }
        }
        all
    }

    /// The most rounds among the step sizes around number i, of which none may be beyond the range; `None` if one does
    /// not reach the target.
    fn most_around(&self, rounds: &[Option<u64>], i: usize) -> Option<u64> {
        let first = i.checked_sub(self.tried.per_factor)?;
        let around = rounds.get(first..=i + self.tried.per_factor)?;
        around.iter().try_fold(0, |most, rounds| rounds.map(|rounds| most.max(rounds)))
    }
}

/// Replaces the best by settings that cost less.
fn keep_less(best: &mut Option<LeastCost>, other: LeastCost) {
    if best.is_none_or(|best| other.cost < best.cost) {
        *best = Some(other);
    }
}
