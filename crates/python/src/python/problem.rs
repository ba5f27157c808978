//! Problems in Python: a class whose instances have the gradient of many rows at once, a loss of margins, or a compiled
//! function.

mod functions;

use super::code::{hash_source, keyword_values, traceback};
use exactfed::definition::{Definition, KeyValues};
use exactfed::problem::arrays::Files;
use exactfed::problem::function::{DrawSpace, FunctionProblem};
use exactfed::problem::{Facts, Fault, InstanceSize, MemoryPart, OptimumSearch};
use exactfed::registered::register;
use exactfed::registry::ProblemKind;
use exactfed_runner::panics::lock;
use functions::{Described, functions_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// How many instances a kind keeps, so that what a check has built is not built again for the runs.
const MOST_KEPT: usize = 4;
/// The seed of the instance by which a kind is known before instances are built.
const PROBED_SEED: u64 = 0;

/// What is known of a kind for some values of its keys, from an instance with them.
#[derive(Clone)]
struct KnownKind {
    clients: usize,
    dimension: usize,
    is_affine: bool,
    has_optimum: bool,
    has_loss: bool,
    has_records: bool,
}

/// An instance that was built, and what it says of its kind.
#[derive(Clone)]
struct BuiltProblem {
    problem: FunctionProblem,
    known: KnownKind,
}

/// An instance that is kept: the text of the values of its keys, and its seed, by which it is found.
struct KeptProblem {
    values: String,
    seed: u64,
    built: BuiltProblem,
}

/// `[problem.<kind>]` of a class in Python.
struct PythonProblem {
    /// Makes an instance from the values of the keys and a seed, and describes it.
    build: Py<PyAny>,
    uses_seed: bool,
    /// What was found out so far, by the text of the values.
    known: Mutex<HashMap<String, Result<KnownKind, String>>>,
    /// The last instances that were built.
    kept: Mutex<VecDeque<KeptProblem>>,
}

impl PythonProblem {
    /// The instance of these values and this seed, checked, without its stated θ*: one that is kept, or a new one. The
    /// error is a text for the user. Neither lock is held while Python runs.
    fn instance(&self, values: &KeyValues, seed: u64) -> Result<BuiltProblem, String> {
        let seed = if self.uses_seed { seed } else { PROBED_SEED };
        let text = text_of(values);
        let kept = lock(&self.kept)
            .iter()
            .find(|kept| kept.seed == seed && kept.values == text)
            .map(|kept| kept.built.clone());
        if let Some(built) = kept {
            return Ok(built);
        }
        let built = self.build_new(values, seed)?;
        let mut kept = lock(&self.kept);
        kept.push_back(KeptProblem { values: text, seed, built: built.clone() });
        if kept.len() > MOST_KEPT {
            kept.pop_front();
        }
        Ok(built)
    }

    /// Builds an instance and checks its functions.
    fn build_new(&self, values: &KeyValues, seed: u64) -> Result<BuiltProblem, String> {
        let (functions, sizes) = Python::attach(|py| {
            let described = || -> PyResult<Described> {
                let keywords = keyword_values(py, values)?;
                self.build.bind(py).call1((keywords, seed))?.extract()
            };
            let described = described().map_err(|error| text_of_error(py, &error))?;
            functions_of(py, described).map_err(|error| text_of_error(py, &error))
        })?;
        let functions = Arc::new(functions);
        let has_records = matches!(sizes.draws, DrawSpace::Records(_));
        let problem =
            FunctionProblem::new(functions.clone(), sizes).map_err(|fault| fault.to_string())?;
        functions.end_checks();
        let known = KnownKind {
            clients: problem.clients(),
            dimension: problem.dim(),
            is_affine: problem.is_affine(),
            has_optimum: problem.is_affine() || functions.has_optimum(),
            has_loss: functions.has_loss(),
            has_records,
        };
        Ok(BuiltProblem { problem, known })
    }

    /// What is known of the kind for these values, from the instance of a fixed seed, or what is wrong with them.
    fn known(&self, values: &KeyValues) -> Result<KnownKind, String> {
        let text = text_of(values);
        let known = lock(&self.known).get(&text).cloned();
        known.unwrap_or_else(|| {
            let found = self.instance(values, PROBED_SEED).map(|built| built.known);
            lock(&self.known).entry(text).or_insert(found).clone()
        })
    }

    /// Whether something is known to be so for these values; no if they are wrong, which is reported elsewhere.
    fn is_known(&self, values: &KeyValues, fact: fn(&KnownKind) -> bool) -> bool {
        self.known(values).is_ok_and(|known| fact(&known))
    }
}

/// The values of keys as text, by which they are compared.
fn text_of(values: &KeyValues) -> String {
    serde_json::to_string(values).unwrap_or_default()
}

/// What an exception says of an instance: its text alone if that says all, as of a problem that lacks an attribute, and
/// else with its traceback.
fn text_of_error(py: Python<'_>, error: &PyErr) -> String {
    let is_plain = error.get_type(py).name().is_ok_and(|name| name == "ProblemError");
    if is_plain { error.value(py).to_string() } else { traceback(py, error) }
}

/// The fault that an instance is another than the one by which its kind is known; `None` if it is not.
fn other_than_known(found: &KnownKind, known: &KnownKind, seed: u64) -> Option<Fault> {
    let sizes = (found.clients, found.dimension);
    let known_sizes = (known.clients, known.dimension);
    let message = if sizes != known_sizes {
        format!(
            "clients and dim must not depend on the seed: they are {} and {} with seed {seed}, and {} and {} with seed {PROBED_SEED}",
            sizes.0, sizes.1, known_sizes.0, known_sizes.1
        )
    } else if found.is_affine != known.is_affine {
        format!(
            "whether the gradient is affine in theta, with a unique optimum, must not depend on the seed: it is with one of the seeds {seed} and {PROBED_SEED}, and not with the other"
        )
    } else {
        return None;
    };
    Some(Fault::new("", message))
}

impl ProblemKind for PythonProblem {
    type Instance = FunctionProblem;

    fn linear(&self, values: &KeyValues) -> bool {
        self.is_known(values, |known| known.is_affine)
    }
    fn size(&self, values: &KeyValues) -> (usize, usize) {
        self.known(values).map_or((1, 1), |known| (known.clients, known.dimension))
    }
    fn has_optimum(&self, values: &KeyValues) -> bool {
        self.is_known(values, |known| known.has_optimum)
    }
    fn uses_seed(&self) -> bool {
        self.uses_seed
    }
    fn has_loss(&self, values: &KeyValues) -> bool {
        self.is_known(values, |known| known.has_loss)
    }
    fn has_records(&self, values: &KeyValues) -> bool {
        self.is_known(values, |known| known.has_records)
    }
    /// The vectors of the clients, with a d × d matrix for each if the field is affine. What the class itself holds is
    /// not counted.
    fn extent(&self, values: &KeyValues) -> InstanceSize {
        let (clients, dimension) = self.size(values);
        if self.linear(values) {
            return InstanceSize::of_matrices(clients, dimension);
        }
        let bytes = 32.0 * clients as f64 * dimension as f64;
        let what = format!("vectors of {dimension} numbers of {clients} clients");
        let parts = vec![MemoryPart::new("clients", bytes, what)];
        InstanceSize { clients, dimension, parts }
    }
    fn check(&self, values: &KeyValues) -> Vec<Fault> {
        self.known(values).err().map(|message| Fault::new("", message)).into_iter().collect()
    }
    fn build(
        &self,
        values: &KeyValues,
        seed: u64,
        files: &dyn Files,
    ) -> Result<FunctionProblem, Fault> {
        let fault = |message: String| Fault::new("", message);
        let known = self.known(values).map_err(fault)?;
        let built = self.instance(values, seed).map_err(fault)?;
        if let Some(other) = other_than_known(&built.known, &known, seed) {
            return Err(other);
        }
        match files.optimum_search() {
            OptimumSearch::LeftOut => Ok(built.problem),
            OptimumSearch::New | OptimumSearch::Known(_) => {
                built.problem.with_stated_optimum().map_err(|error| fault(error.to_string()))
            }
        }
    }
}

/// Registers a problem, for the decorator in Python: its definition as JSON, to which the hash of its source is added
/// here; what makes an instance from the values of its keys and a seed, and describes it; and whether that depends on
/// the seed. It is an error if the definition is wrong, or the name is taken.
#[pyfunction]
pub fn register_problem(definition: &str, build: Py<PyAny>, uses_seed: bool) -> PyResult<()> {
    let definition: Result<Definition, _> = serde_json::from_str(definition);
    let mut definition = definition.map_err(|e| PyValueError::new_err(e.to_string()))?;
    hash_source(&mut definition);
    let known = Mutex::default();
    let kept = Mutex::default();
    let problem = PythonProblem { build, uses_seed, known, kept };
    register(|registry| registry.add_problem(definition, problem))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
