//! Frontiers: for each algorithm, number of clients N and target ε the least cost of bringing the
//! exact error down to ε and holding it there, over step sizes and numbers of local steps.
//!
//! *Invariant*: every number is computed and none is sampled. Theory finds the fewest rounds for
//! each number of local steps; all costs of a round are then fixed, and the best number of local
//! steps follows from the list alone, so that budgets and prices need no new search. Neither depends
//! on the target, so that no least cost is larger for a larger target.

pub mod columns;
mod cost;
mod flag;
mod kept;
pub mod phase;
mod ranking;

use crate::results::{Cacheable, Cached, Results};
pub use cost::{FrontierCost, steps_prefix};
use exactfed_core::round_program::RoundSettings;
use exactfed_core::theory::frontier::{Reached, Worked, curve, search};
use exactfed_core::theory::heterogeneity::Measures;
use exactfed_runner::files::{Error, error};
use exactfed_runner::manifest::Prices;
use exactfed_runner::manifest::frontier::{Frontier, FrontierObjective, FrontierQuantity};
use exactfed_runner::manifest::searched::{AlgorithmName, SearchedAlgorithm};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{PreparedFrontier, PreparedPhase, prepare_frontiers};
pub use flag::FrontierFlag;
use kept::{from_columns, to_columns};
use phase::ComputedPhase;
pub use ranking::{RankedCost, RankedCosts};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;

/// A frontier of a manifest with its numbers.
#[derive(Clone, Debug)]
pub struct ComputedFrontier<'a> {
    /// What the manifest asks for.
    pub frontier: &'a Frontier,
    /// The algorithms that are compared, in the order of the manifest.
    pub algorithms: &'a [SearchedAlgorithm],
    /// The numbers of clients.
    pub clients: Vec<u64>,
    /// The targets ε, the largest first.
    pub targets: Vec<f64>,
    /// What is least on it, in the order of `best`.
    pub objectives: Vec<FrontierObjective>,
    /// What figures and claims that name no other are about.
    pub lead: FrontierObjective,
    /// The number d of coordinates of θ.
    pub dimension: usize,
    /// The root mean square of ‖θ_0 − θ*‖.
    pub radius: f64,
    /// ζ₁ and ζ₂, the heterogeneity of the clients (RR A2); `None` if they cannot be computed.
    pub heterogeneity: Option<(f64, f64)>,
    /// Prices of the simulated wall clock, if the manifest has them.
    pub prices: Option<Prices>,
    /// For each algorithm, N and ε every number of local steps that reaches ε, the fewest first; and those that
    /// come below ε in fewer rounds than they need to stay there.
    costs: CostsByPoint<'a>,
    /// The fewest oracle calls with which SGD reaches the smallest target, for each N.
    sgd: HashMap<u64, f64>,
    /// The best of them, in the order of objectives, algorithms, N and ε.
    pub best: Vec<FrontierPoint<'a>>,
    /// What it costs to miss the best settings, of algorithms whose code is at hand.
    pub sensitivity: Vec<Sensitivity<'a>>,
    /// The maps around it.
    pub phases: Vec<ComputedPhase<'a>>,
}

/// Costs by the name of the algorithm, N, the bits of ε, and whether the error stays below ε.
type CostsByPoint<'a> = HashMap<(&'a str, u64, u64, bool), Vec<FrontierCost<'a>>>;

/// How much more the lead objective is with other settings than the best ones, at a point of a frontier.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity<'a> {
    /// The point of the frontier, with its best settings.
    pub best: FrontierPoint<'a>,
    /// The value of the lead objective with the best settings.
    pub least: f64,
    /// The value with γ/2, 2γ, H/4 and 4H in place of the best γ and H, as multiples of `least`; `None` where the
    /// target is not reached. H/4 is at least 1, so that the multiple is 1 where H is 1. Pages do not show the last two
    /// of algorithms without local steps.
    pub times: [Option<f64>; 4],
}

/// A point of a frontier.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontierPoint<'a> {
    /// The objective that is least at this point.
    pub minimises: FrontierObjective,
    /// The algorithm whose settings are chosen so that it is.
    pub algorithm: &'a SearchedAlgorithm,
    /// The number N of clients.
    pub clients: u64,
    /// The target ε of the root mean square distance from θ*.
    pub target: f64,
    /// The least cost; `None` if the target is not reached.
    pub cost: Option<FrontierCost<'a>>,
    /// The least value of the objective where the error may rise above ε again, if it is less.
    pub passing: Option<f64>,
    /// What a reader must know of it.
    pub flags: Vec<FrontierFlag>,
}

/// The frontiers of a manifest with their maps, in its order. What no earlier report has computed and kept in
/// `results` is computed now and kept there; `worked` is called with the fraction of the whole work that each step
/// has done.
///
/// # Errors
/// If the problem cannot be built, or no algorithm reaches any target.
pub fn frontiers<'a>(
    plan: &'a Plan,
    results: &dyn Results,
    worked: Worked<'_>,
) -> Result<Vec<ComputedFrontier<'a>>, Error> {
    let prepared = prepare_frontiers(plan).map_err(|bad| {
        let reasons: Vec<String> =
            bad.into_iter().map(|bad| format!("{}: {}", bad.key, bad.message)).collect();
        frontier_error(plan, reasons.join("; "))
    })?;
    let kept: Vec<_> = prepared.iter().map(|one| known(results, one)).collect();
    let phases: Vec<_> = prepared.iter().map(|one| PreparedPhase::all(plan, one)).collect();
    let unknown_phases =
        phases.iter().flatten().filter(|one| phase::known(results, one).is_none()).count();
    let unknown = unknown_phases + kept.iter().filter(|kept| kept.is_none()).count();
    // Each frontier and map that is not known counts as the same part of the work; if all are known, none is done.
    let part = 1.0 / unknown as f64;
    let worked_on_part = |share: f64| worked(share * part);
    let mut all = Vec::with_capacity(prepared.len());
    for ((prepared, kept), phases) in prepared.iter().zip(kept).zip(&phases) {
        let reached = match kept {
            Some(reached) => reached,
            None => {
                let found = search(&*prepared.instance, &prepared.search, &worked_on_part)
                    .map_err(|fault| frontier_error(plan, fault.message))?;
                results.cache(&Cached::Frontier(prepared.key.clone()), &to_columns(&found));
                found
            }
        };
        let mut frontier = ComputedFrontier::new(prepared, plan.manifest.prices, &reached);
        frontier.phases =
            phases.iter().map(|one| ComputedPhase::new(one, results, &worked_on_part)).collect();
        if frontier.best.iter().all(|best| best.cost.is_none()) {
            let message = format!(
                "frontier \"{}\": no algorithm reaches any target: widen `step-size` or `local-steps`",
                prepared.frontier.id
            );
            return Err(frontier_error(plan, message));
        }
        all.push(frontier);
    }
    Ok(all)
}

/// An error about the frontiers of a plan, which names its manifest.
fn frontier_error(plan: &Plan, message: String) -> Error {
    error(Path::new(&plan.source.name), message)
}

/// Whether all frontiers and maps of a plan are kept from an earlier report, so that nothing must be computed; true
/// without frontiers, and false if they cannot be prepared.
pub fn are_known(plan: &Plan, results: &dyn Results) -> bool {
    plan.manifest.frontier.is_empty()
        || prepare_frontiers(plan).is_ok_and(|all| {
            all.iter().all(|one| {
                let mut phases = PreparedPhase::all(plan, one).into_iter();
                known(results, one).is_some()
                    && phases.all(|one| phase::known(results, &one).is_some())
            })
        })
}

/// What an earlier report computed of a frontier; `None` if no result is kept, or if what is kept cannot be read.
fn known(results: &dyn Results, prepared: &PreparedFrontier<'_>) -> Option<Vec<Reached>> {
    let columns = results.cached(&Cached::Frontier(prepared.key.clone()))?;
    from_columns(&columns, prepared.search.known.len())
}

/// What the cache should have of a frontier: its key, and a function that computes the frontier anew, for a check
/// that the kept numbers are right.
pub fn cacheable_frontier<'a>(prepared: &'a PreparedFrontier<'_>) -> Cacheable<'a> {
    Cacheable {
        what: Cached::Frontier(prepared.key.clone()),
        compute: Box::new(move || {
            let found = search(&*prepared.instance, &prepared.search, &|_| ()).ok()?;
            Some(to_columns(&found))
        }),
    }
}

impl<'a> ComputedFrontier<'a> {
    /// A frontier from what the search found: for each algorithm, N, ε and H the fewest rounds. All costs, the best
    /// settings for each objective, and what it costs to miss them follow from these; the maps around it are added
    /// later.
    fn new(prepared: &PreparedFrontier<'a>, prices: Option<Prices>, found: &[Reached]) -> Self {
        let manifest = prepared.frontier;
        let search = &prepared.search;
        let dimension = prepared.instance.dim();
        let mut costs = CostsByPoint::new();
        let mut sgd = HashMap::new();
        let tightest = search.targets.iter().copied().fold(f64::INFINITY, f64::min);
        let algorithms: &'a [SearchedAlgorithm] = &manifest.algorithms;
        for one @ Reached { run, target, held, rounds, .. } in found {
            // What SGD needs for the smallest target, of which budgets are multiples.
            if run.algorithm == prepared.sgd && *held && *target == tightest {
                let gradients = search.round_price(run).gradients * *rounds as f64;
                sgd.insert(run.clients, gradients);
            }
            // SGD may have been searched for the budgets alone.
            if let Some(algorithm) = algorithms.get(run.algorithm) {
                let cost = FrontierCost::new(algorithms, search, one, dimension);
                let point = (algorithm.name.as_str(), run.clients, target.to_bits(), *held);
                costs.entry(point).or_default().push(cost);
            }
        }
        costs.values_mut().for_each(|costs| costs.sort_by_key(|cost| cost.run.local_steps));
        let largest = search.local_steps.last().copied().unwrap_or(1);
        let mut frontier = Self {
            frontier: manifest,
            algorithms,
            clients: search.clients.clone(),
            targets: search.targets.clone(),
            objectives: manifest.objectives(prices.is_some()),
            lead: manifest.lead(prices.is_some()),
            dimension,
            radius: prepared.radius(),
            heterogeneity: Measures::new(&*prepared.instance).map(|m| (m.zeta1, m.zeta2)),
            prices,
            costs,
            sgd,
            best: Vec::new(),
            sensitivity: Vec::new(),
            phases: Vec::new(),
        };
        for objective in &frontier.objectives {
            for algorithm in frontier.algorithms {
                for clients in &frontier.clients {
                    for target in &frontier.targets {
                        let best =
                            frontier.best_at(*objective, algorithm, *clients, *target, largest);
                        frontier.best.push(best);
                    }
                }
            }
        }
        frontier.sensitivity = frontier.sensitivity_of(prepared);
        frontier
    }

    /// The costs of an algorithm at N and ε, for each number of local steps that reaches ε and stays there, the fewest
    /// first; empty if none does.
    pub fn costs<'b>(
        &'b self,
        algorithm: &'b SearchedAlgorithm,
        clients: u64,
        target: f64,
    ) -> &'b [FrontierCost<'a>] {
        let point = (algorithm.name.as_str(), clients, target.to_bits(), true);
        self.costs.get(&point).map_or(&[], Vec::as_slice)
    }

    /// The points of an algorithm at which an objective is least, one for each N and ε, in the order of
    /// [`best`](Self::best).
    pub fn points<'b>(
        &'b self,
        objective: FrontierObjective,
        algorithm: &'b SearchedAlgorithm,
    ) -> impl Iterator<Item = &'b FrontierPoint<'a>> {
        let is_of =
            move |b: &&FrontierPoint<'_>| b.algorithm == algorithm && b.minimises == objective;
        self.best.iter().filter(is_of)
    }

    /// The algorithm of this name. A claim names it, and the check of the manifest found it among the frontier's.
    pub fn algorithm(&self, name: &AlgorithmName) -> &'a SearchedAlgorithm {
        let found = self.frontier.algorithm(name);
        found.expect("the algorithm of a claim is one of its frontier")
    }

    /// The value of an objective for a run, at the manifest's prices of the simulated wall clock; NaN for seconds if
    /// the manifest has none.
    pub fn value(&self, objective: FrontierObjective, cost: &FrontierCost<'_>) -> f64 {
        cost.value(objective, self.prices.as_ref())
    }

    /// A quantity of the least cost of a point, if there is one ([`FrontierCost::quantity`]).
    pub fn quantity(&self, quantity: FrontierQuantity, point: &FrontierPoint<'_>) -> Option<f64> {
        point.cost?.quantity(quantity, point.minimises, self.prices.as_ref())
    }

    /// The most oracle calls of a client that an objective allows at N: infinite for an objective without a budget. A
    /// budget is a multiple of what SGD needs for the smallest target; where SGD does not reach it, nothing is
    /// allowed (0).
    pub fn allowed(&self, objective: FrontierObjective, clients: u64) -> f64 {
        objective
            .budget()
            .map_or(f64::INFINITY, |budget| self.sgd.get(&clients).map_or(0.0, |sgd| budget * sgd))
    }

    /// The target of the figure of communications against oracle calls, and of the table of what it costs to miss the
    /// best settings: the smallest that some algorithm reaches at every number of clients. `None` if there is none.
    pub fn shown_target(&self) -> Option<f64> {
        self.targets.iter().rev().copied().find(|target: &f64| {
            self.clients
                .iter()
                .all(|n| self.algorithms.iter().any(|a| !self.costs(a, *n, *target).is_empty()))
        })
    }

    /// The point of an algorithm at N = `clients` and ε = `target`: the run that costs least in the objective
    /// `minimises` and within its budget, with flags about it. `largest` is the largest number of local steps that
    /// was tried.
    fn best_at(
        &self,
        minimises: FrontierObjective,
        algorithm: &'a SearchedAlgorithm,
        clients: u64,
        target: f64,
        largest: u64,
    ) -> FrontierPoint<'a> {
        let costs = self.costs(algorithm, clients, target);
        let allowed = self.allowed(minimises, clients);
        let without_budget = costs.iter().min_by(|a, b| self.compare_costs(minimises, a, b));
        let best = costs
            .iter()
            .filter(|cost| cost.gradients <= allowed)
            .min_by(|a, b| self.compare_costs(minimises, a, b))
            .copied();
        // The least value among the runs that come below ε in fewer rounds but do not stay there.
        let passing = self
            .costs
            .get(&(algorithm.name.as_str(), clients, target.to_bits(), false))
            .into_iter()
            .flatten()
            .filter(|cost| cost.gradients <= allowed)
            .map(|cost| self.value(minimises, cost))
            .min_by(f64::total_cmp);
        let mut flags = Vec::new();
        match (best, without_budget) {
            (None, None) => flags.push(FrontierFlag::Infeasible),
            (None, Some(_)) => flags.push(FrontierFlag::OverBudget),
            (Some(best), cheapest) => {
                // The budget binds where a run that it does not allow would cost less.
                let binds = cheapest
                    .is_some_and(|run| self.value(minimises, run) < self.value(minimises, &best));
                flags.extend(binds.then_some(FrontierFlag::Budget));
                let has_steps = largest > 1 && algorithm.has_local_steps;
                let at_most = has_steps && best.run.local_steps == largest;
                flags.extend(at_most.then_some(FrontierFlag::LocalSteps));
                let is_largest = algorithm.has_largest_server_step(best.run.choice);
                flags.extend(is_largest.then_some(FrontierFlag::ServerStep));
                flags.extend(best.edge.map(FrontierFlag::StepSize));
            }
        }
        let least = best.as_ref().map(|best| self.value(minimises, best));
        let passing = passing.filter(|passing| least.is_none_or(|least| *passing < least));
        FrontierPoint { minimises, algorithm, clients, target, cost: best, passing, flags }
    }

    /// Orders two runs by the value of an objective, the smaller first. Of equal values, which whole numbers have,
    /// the run with fewer gradients is first.
    fn compare_costs(
        &self,
        minimises: FrontierObjective,
        a: &FrontierCost<'_>,
        b: &FrontierCost<'_>,
    ) -> Ordering {
        let by_value = self.value(minimises, a).total_cmp(&self.value(minimises, b));
        by_value.then(a.gradients.total_cmp(&b.gradients))
    }

    /// What it costs to miss the best settings of the lead objective at [`shown_target`](Self::shown_target): an
    /// entry for each algorithm and N at which the target is reached, except for algorithms whose code is not at
    /// hand.
    fn sensitivity_of(&self, prepared: &PreparedFrontier<'_>) -> Vec<Sensitivity<'a>> {
        let Some(target) = self.shown_target() else { return Vec::new() };
        let mut at_target: Vec<FrontierPoint<'a>> = Vec::new();
        for algorithm in self.algorithms.iter().filter(|one| one.kind_without_code().is_none()) {
            let points = self.points(self.lead, algorithm);
            at_target.extend(points.filter(|point| point.target == target).cloned());
        }
        at_target.into_par_iter().filter_map(|point| self.sensitivity_at(prepared, point)).collect()
    }

    /// What it costs to miss the best settings of a point, by the exact error curve of each other setting, which may be
    /// outside the ranges of the search; `None` where the target is not reached with the best settings.
    fn sensitivity_at(
        &self,
        prepared: &PreparedFrontier<'_>,
        best: FrontierPoint<'a>,
    ) -> Option<Sensitivity<'a>> {
        let cost = best.cost?;
        let least = self.value(self.lead, &cost);
        // Multiples of the step size and of the number of local steps.
        let others = [(0.5, 1.0), (2.0, 1.0), (1.0, 0.25), (1.0, 4.0)];
        let times = others.map(|(step, steps): (f64, f64)| {
            let RoundSettings { local_steps, step_size, .. } = cost.run;
            let run = RoundSettings {
                local_steps: libm::round(local_steps as f64 * steps).max(1.0) as u64,
                step_size: step_size * step,
                ..cost.run
            };
            let target = best.target;
            let search = &prepared.search;
            let rounds = curve(&*prepared.instance, search, &run).ok()?.rounds_to(&[target])[0]?;
            let reached = Reached { run, target, rounds, held: true, edge: None };
            let other = FrontierCost::new(self.algorithms, search, &reached, self.dimension);
            Some(self.value(self.lead, &other) / least)
        });
        Some(Sensitivity { best, least, times })
    }
}
