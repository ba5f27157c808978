//! Frontiers: for each algorithm, number of clients N and target ε the least cost of bringing the
//! exact error down to ε and holding it there, over step sizes and numbers of local steps.
//!
//! *Invariant*: every number is computed and none is sampled. Theory finds the fewest rounds for
//! each number of local steps; all costs of a round are then fixed, and the best number of local
//! steps follows from the list alone, so that caps and prices need no new search.

mod kept;

use crate::results::{Cacheable, Cached, Results};
use exactfed_core::theory::frontier::{RangeEnd, Reached, Worked, search};
use exactfed_core::theory::heterogeneity::Measures;
use exactfed_runner::files::{Error, error};
use exactfed_runner::manifest::Prices;
use exactfed_runner::manifest::frontier::{FrontierAlgorithm, FrontierQuantity};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{PreparedFrontier, prepare_frontiers};
use kept::{from_columns, to_columns};
use std::collections::HashMap;
use std::path::Path;

/// A frontier of a manifest with its numbers.
#[derive(Clone, Debug)]
pub struct ComputedFrontier<'a> {
    /// The id of the frontier.
    pub id: &'a str,
    /// Heading of its first figure, if the manifest has one.
    pub title: Option<&'a str>,
    /// The algorithms.
    pub algorithms: &'a [FrontierAlgorithm],
    /// The numbers of clients.
    pub clients: Vec<u64>,
    /// The targets ε, the largest first.
    pub targets: Vec<f64>,
    /// The most oracle calls of a client, as a multiple of those of SGD.
    pub cap: Option<f64>,
    /// The problem.
    pub problem: FrontierProblem,
    /// Prices of the simulated wall clock, if the manifest has them.
    pub prices: Option<Prices>,
    /// For each algorithm, N and ε every number of local steps that reaches ε, the fewest first.
    pub reached: HashMap<(FrontierAlgorithm, u64, u64), Vec<FrontierCost>>,
    /// The fewest oracle calls of SGD for each N and ε that it reaches, if there is a cap.
    pub sgd: HashMap<(u64, u64), f64>,
    /// The best of them, in the order of objectives, algorithms, N and ε.
    pub best: Vec<FrontierPoint>,
}

/// What a reader must know of the problem of a frontier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrontierProblem {
    /// d.
    pub dimension: usize,
    /// The root mean square of ‖θ_0 − θ*‖.
    pub radius: f64,
    /// ζ₁ and ζ₂, the heterogeneity of the clients (RR A2); `None` if they cannot be computed.
    pub heterogeneity: Option<(f64, f64)>,
}

/// What it costs to reach a target with a number of local steps, at the best step size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrontierCost {
    /// H.
    pub local_steps: u64,
    /// γ.
    pub step_size: f64,
    /// T.
    pub rounds: u64,
    /// Communications.
    pub communications: f64,
    /// Oracle calls of a client.
    pub gradients: f64,
    /// Bytes sent by all.
    pub bytes: f64,
    /// The end of the range of step sizes at which γ lies.
    pub edge: Option<RangeEnd>,
}

/// What a reader must know of a point of a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontierFlag {
    /// No step size and number of local steps that were tried reach the target.
    Infeasible,
    /// The target is reached, but with more oracle calls than the cap allows.
    OverCap,
    /// More oracle calls than the cap allows would save communications.
    Cap,
    /// The number of local steps is the largest that was tried.
    LocalSteps,
    /// The step size is the smallest that was tried.
    StepSizeFrom,
    /// The step size is the largest that was tried.
    StepSizeTo,
}

impl FrontierFlag {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Infeasible => "infeasible",
            Self::OverCap => "over-cap",
            Self::Cap => "cap",
            Self::LocalSteps => "local-steps-edge",
            Self::StepSizeFrom => "step-size-lower-edge",
            Self::StepSizeTo => "step-size-upper-edge",
        }
    }

    /// What it means, in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Infeasible => "not reached",
            Self::OverCap => "reached only above the cap",
            Self::Cap => "the cap binds",
            Self::LocalSteps => "H or batch is the largest tried",
            Self::StepSizeFrom => "γ is the smallest tried",
            Self::StepSizeTo => "γ is the largest tried",
        }
    }

    /// Whether a wider range could give a smaller number.
    pub fn is_edge(self) -> bool {
        matches!(self, Self::LocalSteps | Self::StepSizeFrom | Self::StepSizeTo)
    }
}

/// A point of a frontier.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontierPoint {
    /// What is least there.
    pub minimises: FrontierQuantity,
    /// The algorithm.
    pub algorithm: FrontierAlgorithm,
    /// N.
    pub clients: u64,
    /// ε.
    pub target: f64,
    /// The least cost; `None` if the target is not reached.
    pub cost: Option<FrontierCost>,
    /// What a reader must know of it.
    pub flags: Vec<FrontierFlag>,
}

/// What stands before a number of local steps: mini-batch SGD takes as many oracle calls at one point.
pub fn steps_prefix(algorithm: FrontierAlgorithm) -> &'static str {
    if algorithm == FrontierAlgorithm::MinibatchSgd { "batch " } else { "H = " }
}

impl FrontierCost {
    fn of(reached: &Reached, dimension: usize) -> Self {
        let (price, rounds) =
            (reached.method.round_price(reached.local_steps), reached.rounds as f64);
        let vectors = price.vectors * reached.clients as f64;
        Self {
            local_steps: reached.local_steps,
            step_size: reached.step_size,
            rounds: reached.rounds,
            communications: price.communications * rounds,
            gradients: price.gradients * rounds,
            bytes: 8.0 * dimension as f64 * vectors * rounds,
            edge: reached.edge,
        }
    }

    /// Seconds of the simulated wall clock.
    pub fn seconds(&self, prices: &Prices) -> f64 {
        prices.seconds(self.communications, self.bytes, self.gradients)
    }

    /// A quantity of it; `None` of seconds without prices.
    pub fn quantity(&self, quantity: FrontierQuantity, prices: Option<&Prices>) -> Option<f64> {
        Some(match quantity {
            FrontierQuantity::Communications => self.communications,
            FrontierQuantity::Gradients => self.gradients,
            FrontierQuantity::Bytes => self.bytes,
            FrontierQuantity::Seconds => self.seconds(prices?),
            FrontierQuantity::LocalSteps => self.local_steps as f64,
            FrontierQuantity::StepSize => self.step_size,
        })
    }
}

/// The frontiers of a manifest, in its order. Those that no earlier report has computed are
/// computed now; `worked` is called with each share of the work that is done.
///
/// # Errors
/// If the problem cannot be built, or no algorithm reaches any target.
pub fn frontiers<'a>(
    plan: &'a Plan,
    results: &dyn Results,
    worked: Worked<'_>,
) -> Result<Vec<ComputedFrontier<'a>>, Error> {
    let failed = |message: String| error(Path::new(&plan.source.name), message);
    let prepared = prepare_frontiers(plan).map_err(|bad| {
        let reasons: Vec<String> =
            bad.into_iter().map(|bad| format!("{}: {}", bad.path, bad.message)).collect();
        failed(reasons.join("; "))
    })?;
    let known: Vec<_> = prepared.iter().map(|one| known(results, one)).collect();
    let part = 1.0 / known.iter().filter(|known| known.is_none()).count() as f64;
    let each = prepared.iter().zip(known).map(|(prepared, known)| {
        let compute = || {
            let worked = |share: f64| worked(share * part);
            let found = search(&*prepared.instance, &prepared.search, &worked);
            let found = found.map_err(|refusal| failed(refusal.to_string()))?;
            results.cache(&Cached::Frontier(prepared.key.clone()), &to_columns(&found));
            Ok(found)
        };
        let reached = known.map_or_else(compute, Ok)?;
        let frontier = ComputedFrontier::new(prepared, plan.manifest.prices, &reached);
        match frontier.best.iter().any(|best| best.cost.is_some()) {
            true => Ok(frontier),
            false => Err(failed(format!(
                "frontier \"{}\": no algorithm reaches any target: widen `step-size` or `local-steps`, or raise `gradient-cap`",
                frontier.id
            ))),
        }
    });
    each.collect()
}

/// Whether the frontiers of a plan are kept from an earlier report, if it has some.
pub fn are_known(plan: &Plan, results: &dyn Results) -> bool {
    plan.manifest.frontier.is_empty()
        || prepare_frontiers(plan)
            .is_ok_and(|all| all.iter().all(|one| known(results, one).is_some()))
}

/// What an earlier report computed of a frontier.
fn known(results: &dyn Results, prepared: &PreparedFrontier<'_>) -> Option<Vec<Reached>> {
    from_columns(&results.cached(&Cached::Frontier(prepared.key.clone()))?)
}

/// A frontier, to check its cache.
pub fn cacheable_frontier<'a>(prepared: &'a PreparedFrontier<'_>) -> Cacheable<'a> {
    let compute = || search(&*prepared.instance, &prepared.search, &|_| ()).ok();
    Cacheable {
        what: Cached::Frontier(prepared.key.clone()),
        compute: Box::new(move || compute().as_deref().map(to_columns)),
    }
}

impl<'a> ComputedFrontier<'a> {
    /// A frontier from the fewest rounds that theory found.
    fn new(prepared: &PreparedFrontier<'a>, prices: Option<Prices>, found: &[Reached]) -> Self {
        let (manifest, search) = (prepared.frontier, &prepared.search);
        let dimension = prepared.instance.dim();
        let mut reached: HashMap<(FrontierAlgorithm, u64, u64), Vec<FrontierCost>> = HashMap::new();
        let mut sgd: HashMap<(u64, u64), f64> = HashMap::new();
        for one in found {
            let (cost, target) = (FrontierCost::of(one, dimension), one.target.to_bits());
            if one.method == FrontierAlgorithm::Sgd {
                sgd.insert((one.clients, target), cost.gradients);
            }
            if manifest.algorithms.contains(&one.method) {
                reached.entry((one.method, one.clients, target)).or_default().push(cost);
            }
        }
        reached.values_mut().for_each(|costs| costs.sort_by_key(|cost| cost.local_steps));
        let largest = search.local_steps.last().copied().unwrap_or(1);
        let mut frontier = Self {
            id: &manifest.id,
            title: manifest.title.as_deref(),
            algorithms: &manifest.algorithms,
            clients: search.clients.clone(),
            targets: search.targets.clone(),
            cap: manifest.gradient_cap,
            problem: FrontierProblem {
                dimension,
                radius: prepared.radius(),
                heterogeneity: Measures::new(&*prepared.instance).map(|m| (m.zeta1, m.zeta2)),
            },
            prices,
            reached,
            sgd,
            best: Vec::new(),
        };
        for objective in frontier.objectives() {
            for algorithm in frontier.algorithms {
                for clients in &frontier.clients {
                    for target in &frontier.targets {
                        let point = (*algorithm, *clients, *target);
                        frontier.best.push(frontier.best_at(objective, point, largest));
                    }
                }
            }
        }
        frontier
    }

    /// What is least on the frontier; figures and claims are about the first.
    pub fn objectives(&self) -> Vec<FrontierQuantity> {
        let communications = self.cap.map(|_| FrontierQuantity::Communications);
        let seconds = self.prices.map(|_| FrontierQuantity::Seconds);
        communications.into_iter().chain(seconds).chain([FrontierQuantity::Gradients]).collect()
    }

    /// The costs of an algorithm at N and ε, for each number of local steps that reaches ε.
    pub fn costs(
        &self,
        algorithm: FrontierAlgorithm,
        clients: u64,
        target: f64,
    ) -> &[FrontierCost] {
        self.reached.get(&(algorithm, clients, target.to_bits())).map_or(&[], Vec::as_slice)
    }

    /// The points of an algorithm that figures and claims are about.
    pub fn points(&self, algorithm: FrontierAlgorithm) -> impl Iterator<Item = &FrontierPoint> {
        let first = self.objectives()[0];
        self.best.iter().filter(move |b| b.algorithm == algorithm && b.minimises == first)
    }

    /// The point of an algorithm at N and ε.
    fn best_at(
        &self,
        minimises: FrontierQuantity,
        (algorithm, clients, target): (FrontierAlgorithm, u64, f64),
        largest: u64,
    ) -> FrontierPoint {
        let costs = self.costs(algorithm, clients, target);
        let prices = self.prices.as_ref();
        let value = |cost: &FrontierCost| cost.quantity(minimises, prices).unwrap_or(f64::NAN);
        // Ties, which integers have, go to the fewest oracle calls.
        let least = |a: &&FrontierCost, b: &&FrontierCost| {
            value(a).total_cmp(&value(b)).then(a.gradients.total_cmp(&b.gradients))
        };
        let sgd = self.sgd.get(&(clients, target.to_bits()));
        // Where SGD does not reach the target, there is nothing that the cap is a multiple of.
        let allowed = self.cap.map_or(f64::INFINITY, |cap| sgd.map_or(0.0, |sgd| cap * sgd));
        let all = costs.iter().min_by(least);
        let best = costs.iter().filter(|cost| cost.gradients <= allowed).min_by(least).copied();
        let mut flags = Vec::new();
        match (best, all) {
            (None, None) => flags.push(FrontierFlag::Infeasible),
            (None, Some(_)) => flags.push(FrontierFlag::OverCap),
            (Some(best), all) => {
                flags
                    .extend(all.filter(|all| value(all) < value(&best)).map(|_| FrontierFlag::Cap));
                let at_most = best.local_steps == largest && largest > 1;
                flags.extend(
                    (at_most && algorithm != FrontierAlgorithm::Sgd)
                        .then_some(FrontierFlag::LocalSteps),
                );
                flags.extend(best.edge.map(|edge| match edge {
                    RangeEnd::From => FrontierFlag::StepSizeFrom,
                    RangeEnd::To => FrontierFlag::StepSizeTo,
                }));
            }
        }
        FrontierPoint { minimises, algorithm, clients, target, cost: best, flags }
    }
}
