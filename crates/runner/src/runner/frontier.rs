//! What a frontier needs before it is computed: the instance of its problem, and the search that
//! the manifest describes.

use super::prepare::{SEVERAL_OPTIMA, all_or_wrong, start_on};
use crate::files::sha256;
use crate::manifest::frontier::{Frontier, FrontierStart};
use crate::manifest::searched::{SGD, SearchedAlgorithm};
use crate::manifest::{Oracle, Start};
use crate::plan::Plan;
use exactfed_core::algorithm::{Boxed, Instance, ProgramOf, SearchedSpecs, Spec};
use exactfed_core::federated::Conditions;
use exactfed_core::problem::{self, Fault};
use exactfed_core::round_program::Rounds;
use exactfed_core::theory::frontier::{self, Search, StartError, StepSizes};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// Golden-section steps in log γ around the best step size of the range: with step sizes of ratio
/// 1.5, six of them find the fewest rounds to 0.01 %.
const REFINEMENTS: u32 = 6;
/// Golden-section steps where ten thousand problems are searched, which leaves less time for each.
pub(super) const REFINED_PHASES: u32 = 4;
/// The largest d at which step sizes are refined between those of the grid: beyond it each takes as
/// long as the whole grid.
const MOST_REFINED: usize = 4;

/// A frontier of a manifest, ready to be computed.
pub struct PreparedFrontier<'a> {
    /// What the manifest asks for.
    pub frontier: &'a Frontier,
    /// The instance of the problem.
    pub instance: Arc<dyn Instance>,
    /// What is searched for: the algorithms of the manifest in its order, and SGD after them where it is none of them,
    /// since budgets are multiples of what it needs.
    pub search: Search,
    /// The place of SGD among the algorithms of the search.
    pub sgd: usize,
    /// A hash of what determines the numbers: the instance and the search.
    pub key: String,
}

impl PreparedFrontier<'_> {
    /// The root mean square of ‖θ_0 − θ*‖ over the starts of the frontier.
    pub fn radius(&self) -> f64 {
        match &self.search.start {
            StartError::Isotropic { mean_square } => mean_square.sqrt(),
            StartError::Point(start) => {
                let apart = start.iter().zip(self.instance.optimum()).map(|(x, y)| x - y);
                apart.map(|x| x * x).sum::<f64>().sqrt()
            }
        }
    }
}

/// Builds the problem of a manifest's frontiers, and checks that each frontier can be computed, without computing any
/// yet. Empty if the manifest has none.
///
/// # Errors
/// The paths of settings, and what is wrong with them.
pub fn prepare_frontiers<'p>(plan: &'p Plan) -> Result<Vec<PreparedFrontier<'p>>, Vec<Fault>> {
    let manifest = &plan.manifest;
    let Some(problem) = &plan.frontier_problem else { return Ok(Vec::new()) };
    let form = manifest.oracle.form();
    let built = problem.build(manifest.seed, &plan.folder(), form, Boxed).map_err(|fault| {
        vec![Fault::new(format!("problem.{}.{}", problem.kind(), fault.key), fault.message)]
    })?;
    let instance: Arc<dyn Instance> = Arc::from(built);
    if instance.optimum_set().is_some() && !manifest.frontier.is_empty() {
        return Err(vec![Fault::new("frontier.0", SEVERAL_OPTIMA)]);
    }
    let frontiers = manifest.frontier.iter().enumerate();
    let prepared =
        frontiers.map(|(i, frontier)| prepare_frontier(plan, problem, &instance, i, frontier));
    all_or_wrong(prepared.collect())
}

/// Makes the search of the frontier at this place of the manifest, and checks that it can be computed. `instance` is
/// built from the settings `problem`, and shared by all frontiers. Faults have paths from the root of the manifest.
fn prepare_frontier<'p>(
    plan: &'p Plan,
    problem: &problem::Spec,
    instance: &Arc<dyn Instance>,
    place: usize,
    frontier: &'p Frontier,
) -> Result<PreparedFrontier<'p>, Fault> {
    for (i, algorithm) in frontier.algorithms.iter().enumerate() {
        if let Some(Fault { key, message }) = algorithm.check_for(instance.clients()) {
            let path = format!("frontier.{place}.algorithms.{i}.{}.{key}", algorithm.name);
            return Err(Fault::new(path, message));
        }
    }
    let search = search_of_frontier(plan, frontier, instance)?;
    // The numbers of an algorithm without code may be known from an earlier report, so that it is not refused here.
    if frontier.lacking_code().next().is_none() {
        frontier::check_search(&**instance, &search).map_err(|Fault { key, message }| {
            let path = format!("frontier.{place}.{key}");
            Fault::new(path.trim_end_matches('.').to_owned(), message)
        })?;
    }
    let key = hash_of(&FrontierKey {
        seed: plan.manifest.seed,
        oracle: plan.manifest.oracle,
        problem,
        search: SearchKey::new(frontier, &search, instance.clients()),
    });
    let sgd = frontier
        .algorithms
        .iter()
        .position(|algorithm| algorithm.name == SGD)
        .unwrap_or(frontier.algorithms.len());
    Ok(PreparedFrontier { frontier, instance: instance.clone(), search, sgd, key })
}

/// All that determines the numbers of a frontier: kept results are found by its hash.
#[derive(Serialize)]
struct FrontierKey<'a> {
    seed: u64,
    oracle: Oracle,
    problem: &'a problem::Spec,
    search: SearchKey<'a>,
}

/// All that determines what a search finds on a problem, in the form that is hashed. A change of its fields makes
/// every kept frontier be computed again.
#[derive(Serialize)]
pub(super) struct SearchKey<'a> {
    algorithms: Vec<AlgorithmKey<'a>>,
    clients: &'a [u64],
    targets: &'a [f64],
    local_steps: &'a [u64],
    step_sizes: (f64, f64, usize),
    refinements: u32,
    prices: &'a [f64],
    start: StartKey<'a>,
}

/// What enters the key of a search from an algorithm.
#[derive(Serialize)]
struct AlgorithmKey<'a> {
    name: &'a str,
    has_local_steps: bool,
    choices: Cow<'a, [Spec]>,
}

/// What enters the key of a search from the start.
#[derive(Serialize)]
enum StartKey<'a> {
    Isotropic(f64),
    Point(&'a [f64]),
}

impl<'a> SearchKey<'a> {
    /// The key of the search that was made for a frontier, or for a problem of a map about it. SGD, which is searched
    /// where the frontier does not name it too, is left out: its rounds are the same in every manifest. `clients` is the
    /// number of clients of the problem, of which cohorts are fractions.
    pub(super) fn new(frontier: &'a Frontier, search: &'a Search, clients: usize) -> Self {
        let algorithms = frontier.algorithms.iter().map(|algorithm| AlgorithmKey {
            name: &algorithm.name,
            has_local_steps: algorithm.has_local_steps,
            choices: algorithm.choices_among(clients),
        });
        let StepSizes { from, to, points } = search.step_sizes;
        Self {
            algorithms: algorithms.collect(),
            clients: &search.clients,
            targets: &search.targets,
            local_steps: &search.local_steps,
            step_sizes: (from, to, points),
            refinements: search.refinements,
            prices: &search.prices,
            start: match &search.start {
                StartError::Isotropic { mean_square } => StartKey::Isotropic(*mean_square),
                StartError::Point(point) => StartKey::Point(point),
            },
        }
    }
}

/// The SHA-256 of a key's JSON, in which numbers have all their digits.
pub(super) fn hash_of(key: &impl Serialize) -> String {
    let text = serde_json::to_vec(key).expect("keys have names and finite numbers alone");
    sha256(&text)
}

/// The search that a frontier of the manifest asks for on an instance.
fn search_of_frontier(
    plan: &Plan,
    frontier: &Frontier,
    instance: &Arc<dyn Instance>,
) -> Result<Search, Fault> {
    let clients = match frontier.clients.as_slice() {
        [] => vec![instance.clients() as u64],
        some => some.to_vec(),
    };
    let range = frontier.step_size;
    let known = known_rounds(plan, frontier, instance);
    Ok(Search {
        algorithms: (0..known.len()).collect(),
        known,
        clients,
        targets: frontier.all_targets(),
        local_steps: frontier.all_local_steps(),
        step_sizes: StepSizes {
            from: range.from.min(range.to),
            to: range.from.max(range.to),
            points: range.points as usize,
        },
        refinements: if instance.dim() > MOST_REFINED { 0 } else { REFINEMENTS },
        // With prices, only what may cost least at one of them would be found, as maps need.
        prices: Vec::new(),
        start: start_of_search(plan, frontier, &**instance)?,
    })
}

/// Where all runs of a frontier start: at a distance from θ* in a random direction, or at the start θ_0 of the
/// manifest, which is 0 if it names none. A start at the limit is refused, because the limit differs between
/// algorithms.
fn start_of_search(
    plan: &Plan,
    frontier: &Frontier,
    instance: &dyn Instance,
) -> Result<StartError, Fault> {
    if let Some(radius) = frontier.isotropic_radius() {
        return Ok(StartError::Isotropic { mean_square: radius * radius });
    }
    debug_assert_eq!(frontier.start, FrontierStart::Runs);
    let start = plan.manifest.start.as_ref().unwrap_or(&Start::Zero(true));
    start_on(start, instance)?.map(StartError::Point).ok_or_else(|| {
        let message = "differs between the algorithms of a frontier, which have one start";
        Fault::new("start.limit", message)
    })
}

/// The most rounds of a custom algorithm that are traced to find out how they repeat.
const TRACED: u64 = 1000;

/// The rounds of a frontier's algorithms on an instance, in the order of the manifest, and the rounds of SGD after them
/// where the manifest does not name it. The rounds of a custom algorithm are traced on the instance when the search
/// asks for them, so that they are rounds of its clients.
pub(super) fn known_rounds(
    plan: &Plan,
    frontier: &Frontier,
    instance: &Arc<dyn Instance>,
) -> Vec<Arc<dyn Rounds>> {
    // The traced rounds are compared with a run of the code from here, away from θ*.
    let start: Vec<f64> = instance.optimum().iter().map(|x| x + 1.0).collect();
    let seed = plan.manifest.seed;
    let problem = instance.clone();
    let program_of: ProgramOf = Arc::new(move |spec| {
        let from = Conditions { seed, replicate: 0, start: &start, rounds: TRACED, copy: 0 };
        problem.program(spec, &from)
    });
    let has_sgd = frontier.algorithms.iter().any(|algorithm| algorithm.name == SGD);
    let sgd = (!has_sgd).then(SearchedAlgorithm::sgd);
    let mut known: Vec<Arc<dyn Rounds>> = Vec::new();
    for algorithm in frontier.algorithms.iter().chain(&sgd) {
        known.push(Arc::new(SearchedSpecs {
            name: algorithm.name.clone(),
            choices: algorithm.choices_among(instance.clients()).into_owned(),
            has_local_steps: algorithm.has_local_steps,
            program_of: program_of.clone(),
        }));
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Source;
    use crate::plan::UNREAD;
    use exactfed_core::round_program::RoundSettings;

    /// A manifest with a frontier of FedAvg on a quadratic of ten clients, with these values of `cohort`.
    fn text_of(cohorts: &str) -> String {
        format!(
            r#"
title = "t"
seed = 1
replicates = 1
problem.quadratic = {{ dimension = 2, clients = 10, spectrum = {{ from = 0.5, to = 1.5 }}, noise = 1.0 }}
[[frontier]]
id = "least"
algorithms = [{{ fedavg = {{ cohort = {cohorts} }} }}]
price-ratios = [1.0]
targets = [0.5]
step-size = {{ from = 1e-2, to = 1.0, points = 4 }}
local-steps = [1, 2]
"#
        )
    }

    /// The key of the frontier with these cohorts, and the gradients of a round with two local steps and the first
    /// cohort.
    fn prepared(cohorts: &str) -> (String, f64) {
        let plan = Plan::of_text(&text_of(cohorts), &[]);
        let all = prepare_frontiers(&plan).unwrap_or_else(|faults| panic!("{cohorts}: {faults:?}"));
        let run =
            RoundSettings { algorithm: 0, clients: 10, local_steps: 2, step_size: 0.1, choice: 0 };
        (all[0].key.clone(), all[0].search.round_price(&run).gradients)
    }

    #[test]
    fn a_fraction_is_the_nearest_number_of_the_clients_of_the_problem() {
        let numbers = prepared("[3, 5]");
        assert!((numbers.1 - 0.6).abs() < 1e-15, "{}", numbers.1);
        assert_eq!(prepared("[0.3, 0.5]"), numbers);
        assert_eq!(prepared("[0.25, 5]"), numbers);
    }

    #[test]
    fn a_cohort_of_more_clients_than_there_are_is_refused() {
        let plan = Plan::of_text(&text_of("[5, 100]"), &[]);
        let faults = prepare_frontiers(&plan).err().unwrap();
        let text = "must be at most the number of clients, 10, not 100";
        assert_eq!(faults, [Fault::new("frontier.0.algorithms.0.fedavg.cohort", text)]);
    }

    #[test]
    fn what_is_no_fraction_of_the_clients_is_refused() {
        for wrong in ["1.5", "2.5"] {
            let text = text_of(&format!("[{wrong}]"));
            let source = Source { name: "t.toml".into(), text, ..Source::default() };
            let rejected = Plan::new("t".into(), source, &UNREAD).err().unwrap().to_string();
            let wanted = "`cohort` of `fedavg` must be a number of clients, such as 5, or";
            assert!(rejected.contains(wanted), "{wrong}: {rejected}");
        }
    }
}
