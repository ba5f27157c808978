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
    /// The frontier of the manifest whose algorithms and ranges of settings it has.
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
    /// The map with its numbers: those that an earlier report computed and kept in `results`, or new ones, which are
    /// then kept there. `worked` is called with each fraction of the work that is done.
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

    /// The algorithm of this name. A claim names it, and the check of the manifest found it among the frontier's.
    pub fn algorithm(&self, name: &AlgorithmName) -> &'a SearchedAlgorithm {
        let found = self.frontier.algorithm(name);
        found.expect("the algorithm of a claim is one of its frontier")
    }

    /// The places of the map, row by row from below, each as a slice with its square on every instance.
    pub fn places(&self) -> impl Iterator<Item = &[ComputedSquare<'a>]> {
        self.squares.chunks(self.seeds.len())
    }
}

impl<'a> ComputedSquare<'a> {
    /// Computes a single square, without those of other problems and without the cache, for tests of whole maps by some
    /// of their squares.
    pub fn solved(prepared: &PreparedPhase<'a>, square: &PhaseSquare) -> Self {
        Self::new(prepared, square, &solve(prepared, square.problem))
    }

    /// A square with the algorithms ranked at its price; `found` is what was found on its problem.
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

/// Whether the settings of a run are at an end of the range of step sizes of the search, or have its largest number
/// of local steps, so that a wider range might cost less. `search` is the whole search of the square's problem: the
/// ends of the narrower range in which [`nearer`] searches do not count.
fn is_at_edge(search: &Search, cost: &FrontierCost<'_>) -> bool {
    let StepSizes { from, to, .. } = search.step_sizes;
    let run = &cost.run;
    let has_steps = cost.algorithm.has_local_steps && search.local_steps != [1];
    let has_most_steps = has_steps && search.local_steps.last() == Some(&run.local_steps);
    run.step_size <= from || run.step_size >= to || has_most_steps
}

/// The algorithms on a square, each at the run of `found` that costs it least at the square's price, ordered by this
/// cost. Those within [`TIE`] of the least are tied.
fn ranked<'a>(
    prepared: &PreparedPhase<'a>,
    square: &PhaseSquare,
    found: &[Reached],
) -> RankedCosts<'a> {
    let search = &prepared.problems[square.problem].search;
    let price = FrontierObjective::Price(square.numbers.get(PhaseNumber::Price));
    let algorithms = &prepared.frontier.algorithms;
    let mut best: Vec<RankedCost<'a>> = Vec::new();
    for one in found {
        let cost = FrontierCost::new(algorithms, search, one, prepared.dimension);
        let value = cost.value(price, None);
        match best.iter_mut().find(|(algorithm, ..)| *algorithm == cost.algorithm) {
            Some((_, least_cost, least)) if value < *least => {
                *least_cost = cost;
                *least = value;
            }
            Some(_) => {}
            None => best.push((cost.algorithm, cost, value)),
        }
    }
    RankedCosts::new(best, TIE)
}

/// The number of settings of an algorithm that are searched, besides γ: of two algorithms with the same rounds the
/// one with fewer is the special case.
fn number_of_settings(algorithm: &SearchedAlgorithm) -> usize {
    usize::from(algorithm.has_local_steps) + algorithm.tried.len()
}

/// The choice of `other`'s further settings with which it has the same rounds as `algorithm` in a run, at the same γ
/// and H; `None` if there is none. The algorithm and the choice of `run` are those of `algorithm`.
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

/// A run that was found, as a run of each algorithm of which its algorithm is a special case, with the same γ and H:
/// SGD is FedAvg with one local step or mini-batch SGD with a batch of one, and FedAvg is an algorithm with a server
/// step, at 1. So no algorithm costs more on a map than its special cases.
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

/// A finer search around a run that was best: the same algorithm, with four numbers of local steps from H/√2 to √2 H,
/// and step sizes from half to twice its γ, all within the ranges of the search `of`. The search may have no number
/// of local steps.
fn nearer(of: &Search, best: &Reached) -> Search {
    let h = best.run.local_steps as f64;
    // The numbers of local steps increase.
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

/// Searches for the algorithms that are special cases of the algorithm of `best`, with as many local steps as were
/// best for it, over all step sizes of the search `of`. What they find is a start for a finer search of the general
/// algorithm: around the best step size of FedAvg another server step may be better than around the step size that
/// was found first.
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
                // A start needs no finer step size, and should be found even if it costs least at no price.
                refinements: 0,
                prices: Vec::new(),
                ..of.clone()
            });
        }
    }
    searches
}

/// Keeps of runs with the same settings the first one alone.
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

/// Finds for the problem with the index `place` the runs that may cost least at the price of any of its squares. The
/// search over the ranges of the manifest comes first; then searches for special cases; then finer searches around all
/// that these found. Nothing where the problem cannot be built.
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

/// The runs with which a search reaches its target; none where the search cannot be done.
fn find_reached(instance: &dyn Instance, search_for: &Search) -> Vec<Reached> {
    search(instance, search_for, &|_| ()).unwrap_or_default()
}

/// Adds to the runs that were found the same runs of more general algorithms ([`in_others`]), and then keeps of each
/// algorithm the runs with those numbers of local steps with which it costs least on some of the squares of the
/// problem, each once. Runs that come below ε and do not stay there, and runs of an algorithm that the map does not
/// compare, are dropped.
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

/// Solves all problems of a map, side by side on all threads: the runs of each, in the order of the problems.
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

/// The runs of all problems as columns for the cache, with a column for the index of the problem.
/// [`from_phase_columns`] reads them.
fn columns(found: &[Vec<Reached>]) -> Columns {
    let places = found.iter().enumerate().flat_map(|(k, all)| vec![k as f64; all.len()]);
    let mut out = to_columns(&found.concat());
    out.insert("problem".into(), places.collect());
    out
}

/// The runs that an earlier report found for each problem of a map, none for a problem that cannot be built or on which
/// no algorithm reaches the target; `None` if nothing is kept of the map, or if what is kept cannot be read.
pub fn known(results: &dyn Results, prepared: &PreparedPhase<'_>) -> Option<Vec<Vec<Reached>>> {
    let columns = results.cached(&Cached::Frontier(prepared.key.clone()))?;
    from_phase_columns(&columns, prepared.frontier.algorithms.len(), prepared.problems.len())
}

/// The runs that [`columns`] wrote, for each of this number of problems. `None` if a column is missing, if columns differ
/// in length, or if they cannot be of a map with these numbers of algorithms and problems.
fn from_phase_columns(
    columns: &Columns,
    algorithms: usize,
    problems: usize,
) -> Option<Vec<Vec<Reached>>> {
    let all = from_columns(columns, algorithms)?;
    let places = columns.get("problem").filter(|places| places.len() == all.len())?;
    let mut found = vec![Vec::new(); problems];
    for (place, one) in places.iter().zip(all) {
        found.get_mut(*place as usize)?.push(one);
    }
    Some(found)
}

/// What the cache should have of a map: its key, and a function that computes the map anew, for a check that the kept
/// numbers are right.
pub fn cacheable_phase<'a>(prepared: &'a PreparedPhase<'_>) -> Cacheable<'a> {
    Cacheable {
        what: Cached::Frontier(prepared.key.clone()),
        compute: Box::new(move || Some(columns(&compute(prepared, &|_| ())))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back_to_their_problems_unless_they_are_damaged() {
        let run =
            RoundSettings { algorithm: 1, clients: 2, local_steps: 8, step_size: 0.1, choice: 0 };
        let one = Reached { run, target: 0.5, rounds: 9, held: true, edge: None };
        let found = vec![vec![one], Vec::new(), vec![one, one]];
        let kept = columns(&found);
        assert_eq!(from_phase_columns(&kept, 2, 3), Some(found));
        assert_eq!(from_phase_columns(&kept, 1, 3), None);
        assert_eq!(from_phase_columns(&kept, 2, 2), None);
        let mut short = kept;
        short.get_mut("problem").unwrap().pop();
        assert_eq!(from_phase_columns(&short, 2, 3), None);
    }
}
