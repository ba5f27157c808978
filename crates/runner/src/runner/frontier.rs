//! What a frontier needs before it is computed: the instance of its problem, and the search that
//! the manifest describes.

use super::prepare::{all_or_wrong, start_on};
use crate::files::sha256;
use crate::manifest::Start;
use crate::manifest::frontier::{Frontier, FrontierStart};
use crate::manifest::kinds::own_algorithm;
use crate::plan::Plan;
use exactfed_core::algorithm::custom::CustomAlgorithm;
use exactfed_core::algorithm::{Boxed, Instance, Spec};
use exactfed_core::definition::KeyType;
use exactfed_core::federated::Conditions;
use exactfed_core::problem::Fault;
use exactfed_core::program::Traced;
use exactfed_core::theory::frontier::{
    self, FrontierAlgorithm, MethodRun, OwnRounds, RoundPrice, Search, StartError, StepSizes,
};
use std::sync::Arc;
use toml::{Table, Value};

/// Golden-section steps in log γ around the best step size of the range: with step sizes of ratio
/// 1.5, six of them find the fewest rounds to 0.01 %.
const REFINEMENTS: u32 = 6;
/// The same where ten thousand problems are searched.
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
    /// What is searched for. SGD is among the methods where budgets are multiples of what it needs.
    pub search: Search,
    /// A hash of what determines the numbers: the instance and the search.
    pub key: String,
}

impl PreparedFrontier<'_> {
    /// The root mean square of ‖θ_0 − θ*‖.
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

/// The frontiers of a manifest. Nothing is computed yet, and every reason why one cannot be is
/// known.
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
    let text = toml::Value::try_from(problem).map(|v| v.to_string()).unwrap_or_default();
    let prepare = |(i, frontier): (usize, &'p Frontier)| {
        let search = search(plan, frontier, &instance)?;
        // Without its code it may still be known from an earlier report.
        if frontier.lacking_code().next().is_none() {
            frontier::check_search(&*instance, &search).map_err(|Fault { key, message }| {
                let path = format!("frontier.{i}.{key}");
                Fault::new(path.trim_end_matches('.').to_owned(), message)
            })?;
        }
        let own: Vec<_> = frontier.own.iter().map(|own| &own.known).collect();
        let key = format!("{} {:?} {text} {search:?} {own:?}", manifest.seed, manifest.oracle);
        let (instance, key) = (instance.clone(), sha256(key.as_bytes()));
        Ok(PreparedFrontier { frontier, instance, search, key })
    };
    all_or_wrong(manifest.frontier.iter().enumerate().map(prepare).collect())
}

/// What the manifest asks for, as theory searches for it.
fn search(plan: &Plan, frontier: &Frontier, instance: &Arc<dyn Instance>) -> Result<Search, Fault> {
    let mut methods = frontier.algorithms.clone();
    if !methods.contains(&FrontierAlgorithm::Sgd) {
        methods.push(FrontierAlgorithm::Sgd);
    }
    let clients = match frontier.clients.as_slice() {
        [] => vec![instance.clients() as u64],
        some => some.to_vec(),
    };
    let range = frontier.step_size;
    let own = OwnAlgorithms {
        instance: instance.clone(),
        algorithms: frontier.own.clone(),
        seed: plan.manifest.seed,
    };
    Ok(Search {
        methods,
        clients,
        targets: frontier.all_targets(),
        local_steps: frontier.all_local_steps(),
        step_sizes: StepSizes {
            from: range.from.min(range.to),
            to: range.from.max(range.to),
            points: range.points as usize,
        },
        refinements: if instance.dim() > MOST_REFINED { 0 } else { REFINEMENTS },
        prices: Vec::new(),
        start: start(plan, frontier, &**instance)?,
        own: (!frontier.own.is_empty()).then(|| Arc::new(own) as Arc<dyn OwnRounds>),
    })
}

fn start(plan: &Plan, frontier: &Frontier, instance: &dyn Instance) -> Result<StartError, Fault> {
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

/// The algorithms of a frontier that are defined outside of the program, on its problem.
struct OwnAlgorithms {
    instance: Arc<dyn Instance>,
    algorithms: Vec<Arc<CustomAlgorithm>>,
    seed: u64,
}

/// The rounds that are followed until they repeat.
const TRACED: u64 = 1000;

impl OwnAlgorithms {
    fn known(&self, run: &MethodRun) -> Option<&Arc<CustomAlgorithm>> {
        self.algorithms.iter().find(|own| own.known.definition.kind == run.method.name())
    }

    /// The entry of a manifest that has these settings.
    fn spec(&self, run: &MethodRun) -> Result<Spec, String> {
        let algorithm = self.known(run).ok_or("its code is not at hand")?;
        let known = &algorithm.known;
        let mut table = Table::new();
        table.insert("step-size".into(), run.step_size.into());
        if known.has_local_steps {
            table.insert("local-steps".into(), Value::Integer(run.local_steps as i64));
        }
        for (key, value) in run.method.settings(run.choice) {
            let defined = known.definition.keys.iter().find(|defined| defined.name == key);
            let is_whole = defined.is_some_and(|defined| defined.of == KeyType::Whole);
            let value = if is_whole { Value::Integer(value as i64) } else { value.into() };
            table.insert(key.to_owned(), value);
        }
        own_algorithm(algorithm.clone(), Value::Table(table))
    }
}

impl OwnRounds for OwnAlgorithms {
    fn program(&self, run: &MethodRun) -> Traced {
        let spec = self.spec(run)?;
        let start: Vec<f64> = self.instance.optimum().iter().map(|x| x + 1.0).collect();
        let from =
            Conditions { seed: self.seed, replicate: 0, start: &start, rounds: TRACED, copy: 0 };
        self.instance.program(&spec, &from).unwrap_or_else(|| Err("it has no rounds".into()))
    }

    fn price(&self, run: &MethodRun) -> RoundPrice {
        let price = self.known(run).map(|own| own.known.price).unwrap_or_default();
        let calls = (price.calls_per_step * run.local_steps) as f64;
        RoundPrice {
            communications: price.communications as f64,
            gradients: calls,
            samples: calls,
            vectors: price.vectors as f64,
        }
    }
}
