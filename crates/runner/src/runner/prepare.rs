//! What a cell needs before it runs: its instance, its start and its limit.

use super::fixed_point::fixed_point;
use crate::files::sha256;
use crate::manifest::{self, Metric, Oracle, ReferencePoint, Start, TimeAverage};
use crate::plan::{Cell, FRESH, Identity};
use crate::quantity::MeasuredOn;
use exactfed_core::algorithm::{Boxed, Instance, Spec};
use exactfed_core::problem::arrays::{Contents, DataFile, Files, FilesError};
use exactfed_core::problem::{
    Fault, MOST_DIMENSIONS, Minimiser, OptimumSearch, OracleForm, ProblemConstants, RecordsOf,
};
use exactfed_core::round_program::Traced;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What runs of a cell on one instance of its problem have in common, and what is found out about them. Cells share the
/// instance, and no scenario: what it keeps is of one algorithm.
pub struct Scenario {
    /// The problem's instance, shared between cells.
    pub instance: Arc<dyn Instance>,
    /// The algorithm on the instance: numbers in units of the problem's constants are those of this instance.
    pub algorithm: Arc<Spec>,
    /// The constants of the instance, as far as settings of cells are in units of them.
    pub constants: Arc<ProblemConstants>,
    /// A hash of what determines the instance: its settings, its files' contents and its seed. What is stored of an
    /// instance, as its optimum, is found by it.
    pub key: Arc<str>,
    /// How long the search for θ* took, where there was one.
    pub optimum_search: Duration,
    /// Whether runs are measured from θ*, as the manifest says.
    uses_optimum: bool,
    /// The starting point θ_0, d numbers.
    pub start: Vec<f64>,
    /// The reference point r, d numbers, if the manifest states one.
    pub reference: Option<Vec<f64>>,
    /// What [`Self::fixed_point`] returns, once it is asked for.
    fixed_point: OnceLock<Option<Vec<f64>>>,
    /// The linearised twin and lim E θ_t of its runs, where biases are measured
    /// on a field that is not linear.
    pub twin: Option<(Arc<dyn Instance>, Vec<f64>)>,
    /// What tracing the rounds of a custom algorithm gave, once it is asked for or known from results; `None` for a
    /// built-in algorithm.
    pub(super) program: OnceLock<Option<Arc<Traced>>>,
    /// lim E θ_t of a custom algorithm, once it is asked for; `None` where it is not known.
    pub(super) custom_limits: OnceLock<Option<CustomLimits>>,
    /// Whether the means of a built-in algorithm converge, once it is asked for.
    pub(super) means_converge: OnceLock<bool>,
}

/// The limits of E θ_t of a custom algorithm, whose rounds may repeat with a period.
pub struct CustomLimits {
    /// The mean of the limits over the rounds of a period, d numbers.
    pub mean: Vec<f64>,
    /// The limit after each round of a period, d numbers each.
    pub phases: Vec<Vec<f64>>,
}

impl Scenario {
    /// The mean that the rounds of `cell` leave as it is, d numbers, where theory knows it: lim E θ_t if means converge.
    /// Runs measure `sq-error-limit` from it, and start at it on request, also where they do not. What theory says is
    /// [`predict::limit`](super::predict::limit). It is computed at the first call, since it may take long and `check`
    /// needs it only where runs start at it. `cell` must be the one that the scenario was made for.
    pub fn fixed_point(&self, cell: &Cell) -> Option<&[f64]> {
        self.fixed_point.get_or_init(|| fixed_point(cell, &*self.instance)).as_deref()
    }

    /// θ*, from which runs are measured, d numbers; `None` if the manifest leaves it out.
    pub fn optimum(&self) -> Option<&[f64]> {
        self.uses_optimum.then(|| self.instance.optimum())
    }

    /// Takes over what tracing the rounds of a custom algorithm gave in an earlier run, so that they are not traced
    /// again. Has no effect if they were traced in this process already.
    pub fn knows(&self, program: Traced) {
        let _ = self.program.set(Some(Arc::new(program)));
    }
}

/// A cell with its instances.
pub struct Prepared<'a> {
    /// The cell that is prepared.
    pub cell: &'a Cell,
    /// A scenario for each instance, in their order.
    pub scenarios: Vec<Arc<Scenario>>,
    /// The rounds that are recorded.
    pub recorded: Arc<[u64]>,
    /// The number of the first run that is missing: results have those before it, which are not
    /// run again. Usually 0.
    pub first_run: u64,
}

impl Prepared<'_> {
    /// The scenario of the run of this number. Where fewer instances are built than the cell has, as for predictions
    /// about one of them, they are taken in turn.
    pub fn scenario(&self, run: u64) -> &Scenario {
        let place = self.cell.identity.instance_of(run) as usize;
        &self.scenarios[place % self.scenarios.len()]
    }

    /// The number N of clients.
    pub fn clients(&self) -> usize {
        self.scenarios[0].instance.clients()
    }

    /// The largest bound on the distance of the computed θ* of an instance from its true optimum, over the instances
    /// that have a bound; `None` if none has one, as where θ* solves linear equations.
    pub fn optimum_error(&self) -> Option<f64> {
        let errors = self.scenarios.iter().filter_map(|s| s.instance.optimum_error());
        errors.reduce(f64::max)
    }

    /// The number of runs that are missing, which [`Self::first_run`] is the first of.
    pub fn missing_runs(&self) -> u64 {
        self.cell.identity.runs().saturating_sub(self.first_run)
    }
}

/// What determines an instance, so that cells with one key share it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct InstanceKey {
    /// The settings of the problem as text.
    pub(super) problem: Arc<str>,
    pub(super) seed: u64,
    /// The form of the problem: with noise, without, or linearised.
    pub(super) form: OracleForm,
    /// Whether its optimum is found.
    pub(super) has_optimum: bool,
}

/// An instance that was built.
#[derive(Clone)]
pub(super) struct BuiltInstance {
    pub(super) instance: Arc<dyn Instance>,
    /// Its constants, which cells with numbers in units of them share.
    constants: Arc<ProblemConstants>,
    /// The hash of its problem and its seed.
    hash: Arc<str>,
    /// How long the search for its optimum took; 0 if there was none.
    optimum_search: Duration,
}

/// The seed and the number of the replicate that name the streams of a run: the noise, not the instance. On each of
/// several instances the seed is that of the instance, or what it would be if `noise-seed` were the manifest's seed.
/// The replicates on an instance are numbered from 0, and from [`FRESH`] if the runs are fresh.
pub fn stream_names(identity: &Identity, run: u64) -> (u64, u64) {
    let first = if identity.fresh { FRESH } else { 0 };
    let seed = identity.noise_seed.unwrap_or(identity.seed);
    match identity.instance {
        manifest::InstanceMode::PerReplicate => (seed, first + run),
        manifest::InstanceMode::Fixed => {
            let seed = identity.instance_seed(seed, identity.instance_of(run));
            (seed, first + run % identity.replicates)
        }
    }
}

/// Whether a cell measures a bias that noise would hide, so that each instance is built with its linearised twin: the
/// same draws of a field that is linearised at θ*.
pub fn wants_twin(identity: &Identity) -> bool {
    identity.oracle == Oracle::Stochastic
        && identity.record.averages.contains(&TimeAverage::Bias)
        && !identity.problem.linear()
}

/// Whether each run of a cell has a second one on the same draws that starts at θ*, because a distance between the two
/// is recorded.
pub fn wants_coupled_run(identity: &Identity) -> bool {
    let metrics = &identity.record.metrics;
    metrics.contains(&Metric::SqCoupling) || metrics.contains(&Metric::SqCouplingVariates)
}

/// What many cells have in common, computed once.
#[derive(Default)]
pub(super) struct Shared {
    /// The settings of problems as text, by the addresses of the problems.
    problems: HashMap<usize, Arc<str>>,
    /// The rounds that are recorded, by the address of the record and the number T of rounds.
    recorded: HashMap<(usize, u64), Arc<[u64]>>,
}

/// The address of a shared value, by which equal values are recognised: cells of a plan share what is equal in them.
/// Where two cells have equal values at two addresses, they are merely handled twice.
fn address<T>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).addr()
}

impl Shared {
    /// Computes the texts of the problems of these cells and the rounds that they record.
    pub(super) fn new(cells: &[&Cell]) -> Self {
        let mut shared = Self::default();
        for Identity { problem, record, rounds, .. } in cells.iter().map(|cell| &cell.identity) {
            // Settings are plain tables, so that each problem has a text.
            shared.problems.entry(address(problem)).or_insert_with(|| {
                let text = toml::Value::try_from(&**problem).map(|v| v.to_string());
                text.unwrap_or_default().into()
            });
            shared
                .recorded
                .entry((address(record), *rounds))
                .or_insert_with(|| record.rounds(*rounds).into());
        }
        shared
    }

    /// The keys of the first instances of a cell in a form, `most` of them or fewer, in the order of the instances. The
    /// cell must be one of those that [`Shared::new`] was given.
    pub(super) fn keys(
        &self,
        cell: &Cell,
        form: OracleForm,
        most: u64,
    ) -> impl Iterator<Item = InstanceKey> {
        let identity = &cell.identity;
        let problem = self.problems[&address(&identity.problem)].clone();
        let numbers = 0..identity.built_instances().min(most);
        let has_optimum = identity.record.optimum;
        numbers.map(move |number| {
            let seed = identity.instance_seed(identity.seed, number);
            InstanceKey { problem: problem.clone(), seed, form, has_optimum }
        })
    }

    /// The rounds that a cell records, which it shares with cells of equal length. The cell must be one of those that
    /// [`Shared::new`] was given.
    fn recorded(&self, cell: &Cell) -> Arc<[u64]> {
        let Identity { record, rounds, .. } = &cell.identity;
        self.recorded[&(address(record), *rounds)].clone()
    }
}

/// Looks up what an earlier search found as θ* of the instance with this hash ([`Scenario::key`]); `None` if it is not
/// known.
pub type KnownOptima<'k> = &'k (dyn Fn(&str) -> Option<Minimiser> + Sync);

/// Data files as a problem reads them while an instance is built. It asks them how it is to find its optimum.
struct FilesAndOptimum<'a> {
    files: &'a dyn Files,
    optimum: OptimumSearch<'a>,
    /// When the problem asked, which is when its search begins.
    searched_from: OnceLock<Instant>,
}

impl Files for FilesAndOptimum<'_> {
    fn open(&self, file: &DataFile) -> Result<Arc<Contents>, FilesError> {
        self.files.open(file)
    }
    /// The problem asks this when it is about to find its optimum: the search is timed from here.
    fn optimum_search(&self) -> OptimumSearch<'_> {
        self.searched_from.get_or_init(Instant::now);
        self.optimum
    }
}

/// Builds the instances of all cells, each once.
///
/// # Errors
/// Every instance that has no unique solution, and starts that do not fit, with the paths of
/// settings in the manifest as their keys. A fault of an instance is there once for each cell that needs the instance.
pub fn prepare<'a>(files: &dyn Files, cells: &[&'a Cell]) -> Result<Vec<Prepared<'a>>, Vec<Fault>> {
    prepare_knowing(files, &|_| None, cells)
}

/// Builds the instances of all cells, each once. Optima that are known from earlier runs are not searched for again.
///
/// # Errors
/// As for [`prepare`].
pub fn prepare_knowing<'a>(
    files: &dyn Files,
    optima: KnownOptima<'_>,
    cells: &[&'a Cell],
) -> Result<Vec<Prepared<'a>>, Vec<Fault>> {
    prepare_at_most(files, optima, cells, u64::MAX)
}

/// [`prepare_knowing`] of the first instances of each cell, `most` of them or fewer.
pub(super) fn prepare_at_most<'a>(
    files: &dyn Files,
    optima: KnownOptima<'_>,
    cells: &[&'a Cell],
    most: u64,
) -> Result<Vec<Prepared<'a>>, Vec<Fault>> {
    let shared = Shared::new(cells);
    let mut wanted: HashMap<InstanceKey, &Cell> = HashMap::new();
    for cell in cells {
        let twins = wants_twin(&cell.identity).then(|| shared.keys(cell, OracleForm::Twin, most));
        let own = shared.keys(cell, cell.identity.oracle.form(), most);
        for key in own.chain(twins.into_iter().flatten()) {
            wanted.entry(key).or_insert(cell);
        }
    }
    let built: HashMap<InstanceKey, Result<BuiltInstance, Fault>> = wanted
        .into_par_iter()
        .map(|(key, cell)| {
            let built = build(files, optima, &key, cell);
            (key, built)
        })
        .collect();
    let prepared: Vec<Result<Prepared<'a>, Fault>> = cells
        .par_iter()
        .map(|cell| {
            let mut scenarios = Vec::new();
            for key in shared.keys(cell, cell.identity.oracle.form(), most) {
                let own = built_instance(&built, &key, cell)?;
                let twin = if wants_twin(&cell.identity) {
                    let twin_key = InstanceKey { form: OracleForm::Twin, ..key };
                    Some(built_instance(&built, &twin_key, cell)?.instance)
                } else {
                    None
                };
                scenarios.push(Arc::new(scenario(cell, own, twin)?));
            }
            Ok(Prepared { cell, scenarios, recorded: shared.recorded(cell), first_run: 0 })
        })
        .collect();
    all_or_wrong(prepared)
}

/// A fault of a problem, with the path of the setting in the manifest, or that of the problem's table.
pub(super) fn fault_of_problem(cell: &Cell, fault: &Fault) -> Fault {
    let table = format!("problem.{}", cell.identity.problem.kind());
    let path = if fault.key.is_empty() { table } else { format!("{table}.{}", fault.key) };
    Fault::new(path, &*fault.message)
}

/// The instance with this key, which is among the `built` ones; or what is wrong with it, with the path of a setting in
/// the manifest by which the cell asks for the instance.
fn built_instance(
    built: &HashMap<InstanceKey, Result<BuiltInstance, Fault>>,
    key: &InstanceKey,
    cell: &Cell,
) -> Result<BuiltInstance, Fault> {
    built[key].clone().map_err(|fault| match key.form {
        OracleForm::Own | OracleForm::Exact => fault_of_problem(cell, &fault),
        // The problem itself was built before.
        OracleForm::Twin => Fault::new("record.averages", &*fault.message),
    })
}

/// Builds the instance with this key, whose problem is that of the cell, and searches for its optimum unless `optima`
/// knows it or the key leaves it out. A fault has the key of a setting in the table of the problem.
pub(super) fn build(
    files: &dyn Files,
    optima: KnownOptima<'_>,
    key: &InstanceKey,
    cell: &Cell,
) -> Result<BuiltInstance, Fault> {
    let InstanceKey { problem, seed, form, has_optimum } = key;
    let hash: Arc<str> = sha256(format!("{seed} {problem}").as_bytes()).into();
    let known = if *has_optimum { optima(&hash) } else { None };
    let optimum = match &known {
        Some(known) => OptimumSearch::Known(known),
        None if *has_optimum => OptimumSearch::New,
        None => OptimumSearch::LeftOut,
    };
    let files = FilesAndOptimum { files, optimum, searched_from: OnceLock::new() };
    let instance = cell.identity.problem.build(*seed, &files, *form, Boxed)?;
    let searched_from = files.searched_from.get().filter(|_| instance.searched_optimum().is_some());
    let optimum_search = searched_from.map_or(Duration::ZERO, Instant::elapsed);
    Ok(BuiltInstance {
        instance: Arc::from(instance),
        constants: Arc::default(),
        hash,
        optimum_search,
    })
}

/// All values if there is no error, and otherwise all errors.
pub fn all_or_wrong<T>(found: Vec<Result<T, Fault>>) -> Result<Vec<T>, Vec<Fault>> {
    if found.iter().all(Result::is_ok) {
        Ok(found.into_iter().flatten().collect())
    } else {
        Err(found.into_iter().filter_map(Result::err).collect())
    }
}

/// Puts together what runs of a cell on an instance need, with the linearised twin of the instance if biases are
/// measured against one. An error if the algorithm, the matrices or the start do not fit the instance.
fn scenario(
    cell: &Cell,
    built: BuiltInstance,
    twin: Option<Arc<dyn Instance>>,
) -> Result<Scenario, Fault> {
    let BuiltInstance { instance, constants, hash, optimum_search } = built;
    let algorithm = algorithm_on(cell, &*instance, &constants)?;
    if let (Some(other), false) =
        (algorithm.info().and_then(|info| info.linear_name_of), instance.linear())
    {
        let kind = algorithm.kind();
        let problem = cell.identity.problem.kind();
        let message = format!(
            "`{kind}` is the algorithm's name on a linear field, and that of `{problem}` is not linear: write `{other}`"
        );
        return Err(Fault::new(cell.entry.to_string(), message));
    }
    let fault = algorithm.check_for(instance.clients());
    if let Some(fault) = fault.or_else(|| algorithm.check_for_shares(instance.unequal_shares())) {
        return Err(Fault::new(format!("{}.{}", cell.entry, fault.key), fault.message));
    }
    check_matrices(cell, instance.dim())?;
    check_classes(cell, &*instance)?;
    check_unique_optimum(cell, &*instance)?;
    let known_fixed_point = OnceLock::new();
    let start = match start_on(&cell.identity.start, &*instance)? {
        Some(start) => start,
        None => {
            let limit = known_fixed_point.get_or_init(|| fixed_point(cell, &*instance));
            limit.clone().ok_or_else(|| {
                let message = if instance.optimum_set().is_some() {
                    SEVERAL_OPTIMA
                } else {
                    "needs a linear problem with independent noise, or with few clients and states, on which the limit is known exactly"
                };
                Fault::new("start.limit", message)
            })?
        }
    };
    let twin = twin
        .map(|twin: Arc<dyn Instance>| -> Result<_, Fault> {
            let message = "`bias` needs independent draws on a field that is not linear";
            let limit = super::fixed_point::fixed_point(cell, &*twin)
                .ok_or_else(|| Fault::new("record.averages", message))?;
            Ok((twin, limit))
        })
        .transpose()?;
    let reference = &cell.identity.record.reference;
    let reference = reference.as_ref().map(|point| reference_on(point, &*instance)).transpose()?;
    Ok(Scenario {
        algorithm,
        constants,
        start,
        reference,
        fixed_point: known_fixed_point,
        twin,
        instance,
        key: hash,
        optimum_search,
        uses_optimum: cell.identity.record.optimum,
        program: OnceLock::new(),
        custom_limits: OnceLock::new(),
        means_converge: OnceLock::new(),
    })
}

/// The algorithm of a cell on an instance with these constants: multiples of constants become the numbers that they are
/// there. On further instances of a cell these differ from those with which the cell was planned, so that they are
/// checked again.
fn algorithm_on(
    cell: &Cell,
    instance: &dyn Instance,
    constants: &ProblemConstants,
) -> Result<Arc<Spec>, Fault> {
    let planned = &cell.identity.algorithm;
    if planned.multiples().is_empty() {
        return Ok(planned.clone());
    }
    let mut algorithm = Spec::clone(planned);
    let mut faults = algorithm.resolve(instance, constants);
    if faults.is_empty() {
        faults = algorithm.check();
    }
    match faults.into_iter().next() {
        Some(fault) => Err(Fault::new(format!("{}.{}", cell.entry, fault.key), fault.message)),
        None => Ok(Arc::new(algorithm)),
    }
}

/// The start θ_0 on an instance, d numbers; `None` if it is the limit, which depends on the algorithm. An offset is one
/// from θ*, which the instance must know. A fault says that a point does not have d numbers.
pub fn start_on(start: &Start, instance: &dyn Instance) -> Result<Option<Vec<f64>>, Fault> {
    let d = instance.dim();
    match start {
        Start::Offset(offset) => Ok(Some(instance.optimum().iter().map(|x| x + offset).collect())),
        Start::Zero(_) => Ok(Some(vec![0.0; d])),
        Start::Point(point) if point.len() == d => Ok(Some(point.clone())),
        Start::Point(point) => {
            let message = format!("must have d = {d} numbers, not {}", point.len());
            Err(Fault::new("start.point", message))
        }
        Start::Limit(_) => Ok(None),
    }
}

/// The reference point r on an instance, d numbers.
///
/// # Errors
/// A fault if a point does not have d numbers, there is no client of this number, or it has no single optimum.
fn reference_on(reference: &ReferencePoint, instance: &dyn Instance) -> Result<Vec<f64>, Fault> {
    let d = instance.dim();
    let clients = instance.clients();
    match reference {
        ReferencePoint::Point(point) if point.len() == d => Ok(point.clone()),
        ReferencePoint::Point(point) => {
            let message = format!("must have d = {d} numbers, not {}", point.len());
            Err(Fault::new("record.reference.point", message))
        }
        ReferencePoint::OptimumOfClient(client) if *client < clients => {
            let optimum = instance.local_optimum(*client).map(<[f64]>::to_vec);
            optimum.ok_or_else(|| {
                let message =
                    format!("is {client}, but this client has no optimum of its own, or several");
                Fault::new("record.reference.optimum-of-client", message)
            })
        }
        ReferencePoint::OptimumOfClient(client) => {
            let message =
                format!("must be the number of a client, from 0 to {}, not {client}", clients - 1);
            Err(Fault::new("record.reference.optimum-of-client", message))
        }
    }
}

/// An error if a cell records an AUC of records that all have the same class, of which there is none. Whether there are
/// records and classes at all was checked before.
pub(super) fn check_classes(cell: &Cell, instance: &dyn Instance) -> Result<(), Fault> {
    let anywhere = vec![0.0; instance.dim()];
    for metric in &cell.identity.record.metrics {
        let MeasuredOn::Order(of) = metric.measured().0 else { continue };
        if instance.auc(&anywhere, of).is_none() {
            let records = match of {
                RecordsOf::Clients => "the records that clients hold",
                RecordsOf::Test => "the records of the test set",
            };
            let name = metric.name();
            let message = format!(
                "`{name}` compares records of different classes; all of {records} have the same class"
            );
            return Err(Fault::new("record.metrics", message));
        }
    }
    Ok(())
}

/// Why something is refused that is about a single θ*.
pub(super) const SEVERAL_OPTIMA: &str = "needs a unique θ*, and this problem has a set of minimisers; `sq-error`, the squared distance to this set, and `suboptimality` are known";

/// An error if a cell records what needs a unique θ* on an instance that has several.
fn check_unique_optimum(cell: &Cell, instance: &dyn Instance) -> Result<(), Fault> {
    if instance.optimum_set().is_none() {
        return Ok(());
    }
    let record = &cell.identity.record;
    let mut metrics = record.metrics.iter().map(|metric| metric.quantity());
    if let Some(metric) = metrics.find(|metric| metric.needs_unique_optimum()) {
        return Err(Fault::new("record.metrics", format!("`{}` {SEVERAL_OPTIMA}", metric.name())));
    }
    // All averages are around θ* or around a limit.
    match record.averages.first() {
        Some(average) => {
            let message = format!("`{}` {SEVERAL_OPTIMA}", average.name());
            Err(Fault::new("record.averages", message))
        }
        None => Ok(()),
    }
}

/// An error if a cell asks for d × d matrices, or for d columns of numbers, where d is too large.
fn check_matrices(cell: &Cell, d: usize) -> Result<(), Fault> {
    let record = &cell.identity.record;
    let matrix = record.averages.iter().any(|average| *average != TimeAverage::Bias);
    let limit = record.metrics.contains(&Metric::SqErrorLimit);
    let asked = [
        (matrix, "record.averages", "covariances: "),
        (limit, "record.metrics", "`sq-error-limit`: "),
        (record.iterates, "record.iterates", ""),
    ];
    match asked.into_iter().find(|(asked, ..)| *asked && d > MOST_DIMENSIONS) {
        None => Ok(()),
        Some((_, path, what)) => {
            let message = format!("{what}d must be at most {MOST_DIMENSIONS}; here it is {d}");
            Err(Fault::new(path, message))
        }
    }
}
