//! What a map of the best algorithm needs before it is computed: the problem of each square, and what is
//! searched for on it.

use super::frontier::{PreparedFrontier, REFINED_PHASES, SearchKey, hash_of, known_rounds};
use crate::manifest::Oracle;
use crate::manifest::frontier::Frontier;
use crate::manifest::phase::{PhaseMap, PhaseNumber, PhaseNumbers};
use crate::plan::{Plan, phase_problem};
use exactfed_core::algorithm::{Boxed, Instance};
use exactfed_core::problem::{Spec, quadratic};
use exactfed_core::theory::frontier::Search;
use serde::Serialize;
use std::sync::Arc;

/// A map of a manifest, ready to be computed.
pub struct PreparedPhase<'a> {
    plan: &'a Plan,
    /// What the manifest asks for.
    pub phase: &'a PhaseMap,
    /// The frontier that it is about.
    pub frontier: &'a Frontier,
    /// The number d of coordinates of θ.
    pub dimension: usize,
    /// The different problems of the squares.
    pub problems: Vec<PhaseProblem>,
    /// The seeds of the instances on which each square is solved.
    pub seeds: Vec<u64>,
    /// The squares, row by row from below; each place has a square for each seed, in their order.
    pub squares: Vec<PhaseSquare>,
    /// A hash of what determines the numbers.
    pub key: String,
}

/// A problem of one or several squares of a map, and the search that gives their numbers.
#[derive(Clone)]
pub struct PhaseProblem {
    /// The seed of its instance.
    seed: u64,
    settings: quadratic::Settings,
    /// What is searched for, at the prices of all its squares. The rounds of its algorithms are those on the frontier's
    /// instance: a search is made by [`PreparedPhase::build`], with the rounds on its own instance.
    pub search: Search,
}

/// The instance of a problem of a map.
pub struct BuiltPhaseProblem {
    /// The instance on which algorithms are searched.
    pub instance: Arc<dyn Instance>,
    /// What is searched for on it.
    pub search: Search,
}

/// All that determines the numbers of a map: kept results are found by its hash.
#[derive(Serialize)]
struct PhaseKey<'a> {
    oracle: Oracle,
    problems: Vec<ProblemKey<'a>>,
    /// The place of the problem of each square, and its price.
    prices: Vec<(usize, f64)>,
}

/// What enters the key of a map from a problem.
#[derive(Serialize)]
struct ProblemKey<'a> {
    seed: u64,
    settings: &'a quadratic::Settings,
    search: SearchKey<'a>,
}

impl PhaseProblem {
    /// What enters the key of a map about a frontier from this problem.
    fn key<'a>(&'a self, frontier: &'a Frontier) -> ProblemKey<'a> {
        let search = SearchKey::new(frontier, &self.search, self.settings.clients);
        ProblemKey { seed: self.seed, settings: &self.settings, search }
    }
}

/// A square of a map.
#[derive(Clone, Debug)]
pub struct PhaseSquare {
    /// The seed of its instance.
    pub seed: u64,
    /// The numbers that determine its problem, its target and its price.
    pub numbers: PhaseNumbers,
    /// The place of its problem in [`PreparedPhase::problems`].
    pub problem: usize,
}

impl<'a> PreparedPhase<'a> {
    /// The maps of a manifest that are about this frontier. A map that names no frontier is about the first one.
    pub fn all(plan: &'a Plan, frontier: &PreparedFrontier<'a>) -> Vec<Self> {
        plan.manifest
            .phase
            .iter()
            .filter_map(|phase| {
                let id = &Frontier::named(phase.frontier.as_deref(), &plan.manifest.frontier)?.id;
                let problem = phase_problem(plan.frontier_problem.as_ref()?)?;
                (frontier.frontier.id == *id).then(|| Self::new(plan, phase, frontier, problem))
            })
            .collect()
    }

    /// Makes the problems and the squares of a map about the frontier `of`, whose problem has the settings `like`.
    /// Squares that differ in the price alone have one problem, which is searched once.
    fn new(
        plan: &'a Plan,
        phase: &'a PhaseMap,
        of: &PreparedFrontier<'a>,
        like: &quadratic::Settings,
    ) -> Self {
        let frontier = of.frontier;
        let radius = of.radius();
        let numbers = phase.numbers(like, frontier);
        let mut problems: Vec<PhaseProblem> = Vec::new();
        let mut squares = Vec::new();
        let seeds = phase.instance_seeds(plan.manifest.seed);
        let columns = phase.x.values.values();
        for (y, at_y) in phase.y.values.values().into_iter().enumerate() {
            for (x, at_x) in columns.iter().enumerate() {
                let numbers =
                    numbers.with_number(phase.x.over, *at_x).with_number(phase.y.over, at_y);
                // The price changes nothing about the problem: along that axis all squares have the first one's
                // problem.
                let place = match (phase.x.over, phase.y.over) {
                    (PhaseNumber::Price, _) => y,
                    (_, PhaseNumber::Price) => x,
                    _ => y * columns.len() + x,
                };
                for (i, &seed) in seeds.iter().enumerate() {
                    let problem = place * seeds.len() + i;
                    // Problems are numbered in the order in which squares need them first.
                    if problem == problems.len() {
                        let search = Search {
                            clients: vec![numbers.clients()],
                            targets: vec![numbers.target(radius)],
                            refinements: REFINED_PHASES,
                            prices: Vec::new(),
                            ..of.search.clone()
                        };
                        let settings = numbers.problem(like, radius);
                        problems.push(PhaseProblem { seed, settings, search });
                    }
                    problems[problem].search.prices.push(numbers.get(PhaseNumber::Price));
                    squares.push(PhaseSquare { seed, numbers, problem });
                }
            }
        }
        let key = hash_of(&PhaseKey {
            oracle: plan.manifest.oracle,
            problems: problems.iter().map(|problem| problem.key(frontier)).collect(),
            prices: squares
                .iter()
                .map(|square| (square.problem, square.numbers.get(PhaseNumber::Price)))
                .collect(),
        });
        let dimension = like.dimension;
        Self { plan, phase, frontier, dimension, problems, seeds, squares, key }
    }

    /// Builds the instance of a problem, and the search on it with the rounds of the algorithms on this instance; `None`
    /// if there is no instance with these numbers. The squares of the problem then have no algorithm.
    pub fn build(&self, problem: &PhaseProblem) -> Option<BuiltPhaseProblem> {
        let spec = Spec::Quadratic(problem.settings.clone());
        let form = self.plan.manifest.oracle.form();
        let built = spec.build(problem.seed, &self.plan.folder(), form, Boxed).ok()?;
        let instance: Arc<dyn Instance> = Arc::from(built);
        let known = known_rounds(self.plan, self.frontier, &instance);
        let search = Search { known, ..problem.search.clone() };
        Some(BuiltPhaseProblem { instance, search })
    }
}
