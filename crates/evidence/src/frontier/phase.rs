//! Maps of the best algorithm: the frontier of each of many problems, at one target and one price each.
//!
//! *Invariant*: every number is computed and none is sampled.

use super::kept::{from_columns, to_columns};
use super::{FrontierCost, RankedCost, RankedCosts};
use crate::results::{Cacheable, Cached, Columns, Results};
use exactfed_core::algorithm::Instance;
use exactfed_core::round_program::RoundSettings;
use exactfed_core::theory::frontier::{Reached, Search, StepSizes, Worked, search};
use exactfed_runner::manifest::PRACTICAL_MARGIN;
use exactfed_runner::manifest::frontier::{Frontier, FrontierObjective};
use exactfed_runner::manifest::phase::{PhaseMap, PhaseNumber, PhaseNumbers};
use exactfed_runner::manifest::searched::{AlgorithmName, SearchedAlgorithm};
use exactfed_runner::runner::{BuiltPhaseProblem, PhaseSquare, PreparedPhase};
use rayon::prelude::*;

/// Algorithms whose costs are within this factor of the least are as good as each other.
pub const TIE: f64 = 1.0 + PRACTICAL_MARGIN;

/// A map with its numbers.
#[derive(Clone, Debug)]
pub struct ComputedPhase<'a> {
    /// What the manifest asks for.
    pub phase: &'a PhaseMap,
    /// The frontier that it is about.
    pub frontier: &'a Frontier,
    /// The algorithms that are compared, in the order of the manifest.
    pub algorithms: &'a [SearchedAlgorithm],
    /// The number d of coordinates of θ.
    pub dimension: usize,
    /// How many different problems there are.
    pub problems: usize,
    /// The seeds of the instances on which each place of the map is solved.
    pub seeds: Vec<u64>,
    /// The squares, row by row from below; each place has a square for each seed, in their order.
    pub squares: Vec<ComputedSquare<'a>>,
}

/// A square of a map with its numbers.
#[derive(Clone, Debug)]
pub struct ComputedSquare<'a> {
    /// The seed of its instance.
    pub seed: u64,
    /// The numbers that determine its problem, its target and its price.
    pub numbers: PhaseNumbers,
    /// The algorithms that reach the target, each at its least cost; those that tie are within [`TIE`].
    pub ranked: RankedCosts<'a>,
    /// The algorithms whose best step size or number of local steps is at the end of its range, so that a wider
    /// range might cost less.
    pub at_edge: Vec<&'a SearchedAlgorithm>,
}

impl<'a> ComputedPhase<'a> {
    /// Computes a map that no earlier report has computed; `worked` is called with each share.
    pub fn new(prepared: &PreparedPhase<'a>, results: &dyn Results, worked: Worked<'_>) -> Self {
        let known = known(results, prepared);
        let found = known.unwrap_or_else(|| {
            let found = compute(prepared, worked);
            results.cache(&Cached::Frontier(prepared.key.clone()), &columns(&found));
            found
        });
        Self {
            phase: prepared.phase,
            frontier: prepared.frontier,
            algorithms: &prepared.frontier.algorithms,
            dimension: prepared.dimension,
            problems: prepared.problems.len(),
            seeds: prepared.seeds.clone(),
            squares: prepared
                .squares
                .iter()
                .map(|square| ComputedSquare::new(prepared, square, &found[square.problem]))
                .collect(),
        }
    }

    /// The algorithm of a claim, whose checks found it in the manifest.
    pub fn algorithm(&self, name: &AlgorithmName) -> &'a SearchedAlgorithm {
        let found = self.frontier.algorithm(name);
        found.expect("the algorithm of a claim is one of its frontier")
    }

    /// The places of the map, row by row from below: of each the square of every instance.
    pub fn places(&self) -> impl Iterator<Item = &[ComputedSquare<'a>]> {
        self.squares.chunks(self.seeds.len())
    }
}

impl<'a> ComputedSquare<'a> {
    /// A square by itself.
    pub fn solved(prepared: &PreparedPhase<'a>, square: &PhaseSquare) -> Self {
        Self::new(prepared, square, &solve(prepared, square.problem))
    }

    fn new(prepared: &PreparedPhase<'a>, square: &PhaseSquare, found: &[Reached]) -> Self {
        let search = &prepared.problems[square.problem].search;
        let ranked = ranked(prepared, square, found);
        let costs = ranked.all.iter();
        let at_edge = costs
            .filter(|(_, cost, _)| is_at_edge(search, cost))
            .map(|(algorithm, ..)| *algorithm)
            .collect();
        Self { seed: square.seed, numbers: square.numbers, ranked, at_edge }
    }

    /// Whether the best step size or number of local steps of the cheapest algorithm is at the end of its range.
    pub fn is_best_at_edge(&self) -> bool {
        self.ranked.all.first().is_some_and(|(best, ..)| self.at_edge.contains(best))
    }
}

/// Whether settings are at an end of the range of step sizes of the whole search, or have its largest number of local
/// steps. The ends of the narrower range that [`nearer`] makes of it do not count.
fn is_at_edge(search: &Search, cost: &FrontierCost<'_>) -> bool {
    let StepSizes { from, to, .. } = search.step_sizes;
    let run = &cost.run;
    let has_steps = cost.algorithm.has_local_steps && search.local_steps != [1];
    let has_most_steps = has_steps && search.local_steps.last() == Some(&run.local_steps);
    run.step_size <= from || run.step_size >= to || has_most_steps
}

/// The algorithms on a square, each at its least cost.
fn ranked<'a>(
    prepared: &PreparedPhase<'a>,
    square: &PhaseSquare,
    found: &[Reached],
) -> RankedCosts<'a> {
    let search = &prepared.problems[square.problem].search;
    let price = FrontierObjective::Price(square.numbers.get(PhaseNumber::Price));
    let costs = found.iter().map(|one| {
        let algorithms = &prepared.frontier.algorithms;
        let cost = FrontierCost::new(algorithms, search, one, prepared.dimension);
        (cost.algorithm, cost, cost.value(price, None))
    });
    let mut best: Vec<RankedCost<'a>> = Vec::new();
    for one in costs {
        match best.iter_mut().find(|known| known.0 == one.0) {
            Some(known) if one.2 < known.2 => *known = one,
            Some(_) => {}
            None => best.push(one),
        }
    }
    RankedCosts::new(best, TIE)
}

/// The number of its settings that are searched, γ apart.
fn number_of_settings(algorithm: &SearchedAlgorithm) -> usize {
    usize::from(algorithm.has_local_steps) + algorithm.tried.len()
}

/// The choice of another algorithm's settings with which its rounds are the same, if there is one.
fn choice_with_rounds(
    other: &SearchedAlgorithm,
    algorithm: &SearchedAlgorithm,
    run: &RoundSettings,
) -> Option<usize> {
    let rounds = algorithm.spec(run).components();
    (0..other.choices.len()).find(|choice: &usize| {
        other.spec(&RoundSettings { choice: *choice, ..*run }).components() == rounds
    })
}

/// The same rounds as those of other algorithms, of which they are a special case, with as many local steps: SGD takes
/// one local step or a batch of one, and FedAvg a server step of 1.
fn in_others(algorithms: &[SearchedAlgorithm], one: &Reached) -> Vec<Reached> {
    // SGD may have been searched for the budgets alone.
    let sgd = SearchedAlgorithm::sgd();
    let algorithm = algorithms.get(one.run.algorithm).unwrap_or(&sgd);
    let mut found = Vec::new();
    for (place, other) in algorithms.iter().enumerate() {
        if algorithm.is_custom() || number_of_settings(other) <= number_of_settings(algorithm) {
            continue;
        }
        if let Some(choice) = choice_with_rounds(other, algorithm, &one.run) {
            let run = RoundSettings { algorithm: place, choice, ..one.run };
            found.push(Reached { run, ..*one });
        }
    }
    found
}

/// The numbers of local steps between one that was best and its neighbours, which are powers of a ratio, and step
/// sizes around its best.
fn nearer(of: &Search, best: &Reached) -> Search {
    let h = best.run.local_steps as f64;
    let most = of.local_steps.last().copied().unwrap_or(1);
    let near = [-0.5, -0.25, 0.25, 0.5].map(|power| libm::round(h * libm::exp2(power)) as u64);
    let mut local_steps: Vec<u64> = near.into_iter().filter(|h| (1..=most).contains(h)).collect();
    local_steps.dedup();
    let StepSizes { from, to, .. } = of.step_sizes;
    let low = best.run.step_size / 2.0;
    let high = best.run.step_size * 2.0;
    let step_sizes = StepSizes { from: low.max(from), to: high.min(to), points: 5 };
    Search { algorithms: vec![best.run.algorithm], local_steps, step_sizes, ..of.clone() }
}

/// The searches for special cases of an algorithm with as many local steps as were best for it: around the step size
/// of FedAvg another server step may be better than around that of the best.
fn searches_for_special_cases(
    algorithms: &[SearchedAlgorithm],
    of: &Search,
    best: &Reached,
) -> Vec<Search> {
    let Some(algorithm) = algorithms.get(best.run.algorithm) else { return Vec::new() };
    if algorithm.is_custom() || algorithm.tried.is_empty() {
        return Vec::new();
    }
    let mut searches = Vec::new();
    for (place, special) in algorithms.iter().enumerate() {
        let settings = RoundSettings { algorithm: place, choice: 0, ..best.run };
        let is_special = !special.is_custom()
            && special.has_local_steps
            && number_of_settings(special) < number_of_settings(algorithm)
            && choice_with_rounds(algorithm, special, &settings).is_some();
        if is_special {
            searches.push(Search {
                algorithms: vec![place],
                local_steps: vec![best.run.local_steps],
                refinements: 0,
                prices: Vec::new(),
                ..of.clone()
            });
        }
    }
    searches
}

/// Leaves out rounds that were found before with the same settings.
fn drop_repeated(found: &mut Vec<Reached>) {
    let mut known: Vec<RoundSettings> = Vec::new();
    found.retain(|one| {
        let is_new = !known.contains(&one.run);
        if is_new {
            known.push(one.run);
        }
        is_new
    });
}

/// What is least on a problem at the price of each of its squares.
fn solve(prepared: &PreparedPhase<'_>, place: usize) -> Vec<Reached> {
    let problem = &prepared.problems[place];
    let squares: Vec<&PhaseSquare> =
        prepared.squares.iter().filter(|square| square.problem == place).collect();
    let algorithms = &prepared.frontier.algorithms;
    let Some(BuiltPhaseProblem { instance, search }) = prepared.build(problem) else {
        return Vec::new();
    };
    let mut found = find_reached(&*instance, &search);
    keep_best(prepared, &squares, &mut found);
    let special: Vec<Reached> = found
        .iter()
        .flat_map(|one| searches_for_special_cases(algorithms, &search, one))
        .flat_map(|search| find_reached(&*instance, &search))
        .collect();
    let others = special.iter().filter(|one| one.held).flat_map(|one| in_others(algorithms, one));
    let starts: Vec<Reached> = found
        .iter()
        .copied()
        .chain(others.filter(|other| found.iter().all(|one| one.run != other.run)))
        .collect();
    let nearer = starts.iter().map(|one| nearer(&search, one));
    let more: Vec<Reached> = nearer
        .filter(|near| !near.local_steps.is_empty())
        .flat_map(|near| find_reached(&*instance, &near))
        .collect();
    found.extend(more);
    keep_best(prepared, &squares, &mut found);
    found
}

/// What a search finds; nothing where it cannot be done.
fn find_reached(instance: &dyn Instance, search_for: &Search) -> Vec<Reached> {
    search(instance, search_for, &|_| ()).unwrap_or_default()
}

/// Adds what other algorithms reach with the same settings, and drops every run with a number of local steps with which
/// its algorithm is best on no square.
fn keep_best(prepared: &PreparedPhase<'_>, squares: &[&PhaseSquare], found: &mut Vec<Reached>) {
    let algorithms = &prepared.frontier.algorithms;
    found.extend(found.clone().iter().flat_map(|one| in_others(algorithms, one)));
    found.retain(|one| one.held && one.run.algorithm < algorithms.len());
    let best: Vec<_> =
        squares.iter().flat_map(|square| ranked(prepared, square, found).all).collect();
    found.retain(|one| {
        best.iter().any(|(_, cost, _)| {
            cost.run.algorithm == one.run.algorithm && cost.run.local_steps == one.run.local_steps
        })
    });
    drop_repeated(found);
}

/// What is kept of each problem.
fn compute(prepared: &PreparedPhase<'_>, worked: Worked<'_>) -> Vec<Vec<Reached>> {
    (0..prepared.problems.len())
        .into_par_iter()
        .map(|place: usize| {
            let found = solve(prepared, place);
            worked(1.0 / prepared.problems.len() as f64);
            found
        })
        .collect()
}

/// What is kept, as columns for the cache.
fn columns(found: &[Vec<Reached>]) -> Columns {
    let places = found.iter().enumerate().flat_map(|(k, all)| vec![k as f64; all.len()]);
    let mut out = to_columns(&found.concat());
    out.insert("problem".into(), places.collect());
    out
}

/// What an earlier report computed of a map.
pub fn known(results: &dyn Results, prepared: &PreparedPhase<'_>) -> Option<Vec<Vec<Reached>>> {
    let columns = results.cached(&Cached::Frontier(prepared.key.clone()))?;
    let all = from_columns(&columns, prepared.problems[0].search.known.len())?;
    let mut found = vec![Vec::new(); prepared.problems.len()];
    for (place, one) in columns.get("problem")?.iter().zip(all) {
        found.get_mut(*place as usize)?.push(one);
    }
    Some(found)
}

/// A map, to check its cache.
pub fn cacheable_phase<'a>(prepared: &'a PreparedPhase<'_>) -> Cacheable<'a> {
    Cacheable {
        what: Cached::Frontier(prepared.key.clone()),
        compute: Box::new(move || Some(columns(&compute(prepared, &|_| ())))),
    }
}
