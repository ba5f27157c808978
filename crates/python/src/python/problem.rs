//! Problems in Python: a class whose instances have the gradient of many rows at once, or a compiled function.

use super::code::{hash_source, keyword_values, traceback};
use super::numbers::{flat, floats, tuple};
use exactfed::definition::{Definition, KeyValues};
use exactfed::problem::arrays::Files;
use exactfed::problem::function::{
    DrawSpace, FieldRows, FunctionError, FunctionProblem, FunctionSizes, ProblemFunctions,
};
use exactfed::problem::{Facts, Fault, InstanceSize, MemoryPart, OptimumSearch};
use exactfed::registered::register;
use exactfed::registry::ProblemKind;
use exactfed_runner::panics::lock;
use numpy::{PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// How many instances a kind keeps, so that what a check has built is not built again for the runs.
const MOST_KEPT: usize = 4;
/// The seed of the instance by which a kind is known before instances are built.
const PROBED_SEED: u64 = 0;

/// An instance of a problem as `exactfed._problem` describes it.
#[derive(FromPyObject)]
struct Described {
    clients: usize,
    dim: usize,
    records: Option<Vec<usize>>,
    shares: Option<Vec<f64>>,
    grad: Option<Py<PyAny>>,
    address: usize,
    data: usize,
    mean_grad: Option<Py<PyAny>>,
    value: Option<Py<PyAny>>,
    optimum: Option<Py<PyAny>>,
    instance: Py<PyAny>,
}

/// A compiled function that writes F_c(θ; z) to its fourth argument: `void field(const double *theta, int64_t client,
/// int64_t draw, double *field, void *data)`. A draw that is a seed has its 64 bits in a signed number. Threads call it
/// at the same time, and without Python's interpreter.
type CompiledField = unsafe extern "C" fn(*const f64, i64, i64, *mut f64, *mut c_void);

/// What writes the field of a row.
enum Field {
    /// A callable of Python, which gets many rows at once.
    Python(Py<PyAny>),
    /// A compiled function, with the address that it gets as its last argument.
    Compiled(CompiledField, usize),
}

/// The functions of an instance.
struct PythonFunctions {
    field: Field,
    mean_grad: Option<Py<PyAny>>,
    value: Option<Py<PyAny>>,
    optimum: Option<Py<PyAny>>,
    /// d.
    dimension: usize,
    /// Whether draws are seeds, which have all 64 bits.
    draws_seeds: bool,
    /// Calls a function without warnings of NumPy.
    quietly: Py<PyAny>,
    /// Whether the instance is still checked: at drawn points functions may overflow without meaning.
    is_checked: AtomicBool,
    /// What owns the memory at the addresses.
    _instance: Py<PyAny>,
}

impl PythonFunctions {
    /// Calls a function of the instance and copies what it returned, which must have this shape, to `out`. The text of
    /// an error is the traceback, or says what was returned instead.
    fn call<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        function: &Py<PyAny>,
        arguments: &[Bound<'py, PyAny>],
        shape: &[usize],
        out: &mut [f64],
    ) -> Result<(), FunctionError> {
        let function = function.bind(py);
        let arguments = arguments.iter().cloned();
        let returned = if self.is_checked.load(Ordering::Relaxed) {
            let all: Vec<_> = std::iter::once(function.clone()).chain(arguments).collect();
            pyo3::types::PyTuple::new(py, all).and_then(|all| self.quietly.bind(py).call1(all))
        } else {
            pyo3::types::PyTuple::new(py, arguments.collect::<Vec<_>>())
                .and_then(|all| function.call1(all))
        };
        let returned = returned.map_err(|error| FunctionError(traceback(py, &error)))?;
        let array = floats(&returned, &format!("what {name} returned"))
            .map_err(|error| FunctionError(error.value(py).to_string()))?;
        if array.shape() != shape {
            let found = tuple(array.shape());
            let expected = tuple(shape);
            return Err(FunctionError(format!(
                "{name} returned an array of shape {found}; expected {expected}"
            )));
        }
        out.copy_from_slice(&flat(&array));
        Ok(())
    }

    /// θ of some rows as an array of shape (M, d).
    fn thetas<'py>(&self, py: Python<'py>, thetas: &[f64]) -> PyResult<Bound<'py, PyAny>> {
        let rows = thetas.len() / self.dimension;
        Ok(PyArray1::from_slice(py, thetas).reshape([rows, self.dimension])?.into_any())
    }
}

/// The indices of clients as an array of shape (M,).
fn client_array<'py>(py: Python<'py>, clients: &[usize]) -> Bound<'py, PyAny> {
    PyArray1::from_iter(py, clients.iter().map(|&client| client as i64)).into_any()
}

/// The error for an array that cannot be made.
fn no_array(error: &PyErr) -> FunctionError {
    FunctionError(error.to_string())
}

impl ProblemFunctions for PythonFunctions {
    fn fields(&self, rows: FieldRows<'_>, fields: &mut [f64]) -> Result<(), FunctionError> {
        let FieldRows { thetas, clients, draws } = rows;
        let d = self.dimension;
        match &self.field {
            Field::Compiled(function, data) => {
                let points = thetas.chunks_exact(d).zip(fields.chunks_exact_mut(d));
                for ((theta, field), (client, draw)) in points.zip(clients.iter().zip(draws)) {
                    // SAFETY: the user states that the function reads d numbers at its first argument and writes d
                    // numbers to its fourth, as the documents say. Its memory is owned by the instance.
                    unsafe {
                        function(
                            theta.as_ptr(),
                            *client as i64,
                            *draw as i64,
                            field.as_mut_ptr(),
                            *data as *mut c_void,
                        );
                    }
                }
                Ok(())
            }
            Field::Python(grad) => Python::attach(|py| {
                let points = self.thetas(py, thetas).map_err(|error| no_array(&error))?;
                let drawn = if self.draws_seeds {
                    PyArray1::from_slice(py, draws).into_any()
                } else {
                    PyArray1::from_iter(py, draws.iter().map(|&draw| draw as i64)).into_any()
                };
                let arguments = [points, client_array(py, clients), drawn];
                self.call(py, "grad", grad, &arguments, &[clients.len(), d], fields)
            }),
        }
    }

    fn prefers_many_rows(&self) -> bool {
        matches!(self.field, Field::Python(_))
    }

    fn mean_fields(
        &self,
        thetas: &[f64],
        clients: &[usize],
        fields: &mut [f64],
    ) -> Result<bool, FunctionError> {
        let Some(mean_grad) = &self.mean_grad else { return Ok(false) };
        Python::attach(|py| {
            let points = self.thetas(py, thetas).map_err(|error| no_array(&error))?;
            let arguments = [points, client_array(py, clients)];
            let shape = [clients.len(), self.dimension];
            self.call(py, "mean_grad", mean_grad, &arguments, &shape, fields)
        })?;
        Ok(true)
    }

    fn losses(&self, thetas: &[f64], clients: &[usize]) -> Option<Result<Vec<f64>, FunctionError>> {
        let value = self.value.as_ref()?;
        let mut losses = vec![0.0; clients.len()];
        let found = Python::attach(|py| {
            let points = self.thetas(py, thetas).map_err(|error| no_array(&error))?;
            let arguments = [points, client_array(py, clients)];
            self.call(py, "value", value, &arguments, &[clients.len()], &mut losses)
        });
        Some(found.map(|()| losses))
    }

    fn optimum(&self) -> Option<Result<Vec<f64>, FunctionError>> {
        let stated = self.optimum.as_ref()?;
        Some(Python::attach(|py| {
            let stated = stated.bind(py);
            let value = if stated.is_callable() { stated.call0() } else { Ok(stated.clone()) };
            let value = value.map_err(|error| FunctionError(traceback(py, &error)))?;
            let array = floats(&value, "optimum")
                .map_err(|error| FunctionError(error.value(py).to_string()))?;
            Ok(flat(&array).into_owned())
        }))
    }
}

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
        functions.is_checked.store(false, Ordering::Relaxed);
        let known = KnownKind {
            clients: problem.clients(),
            dimension: problem.dim(),
            is_affine: problem.is_affine(),
            has_optimum: problem.is_affine() || functions.optimum.is_some(),
            has_loss: functions.value.is_some(),
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

/// The functions and sizes of an instance.
fn functions_of(
    py: Python<'_>,
    described: Described,
) -> PyResult<(PythonFunctions, FunctionSizes)> {
    let Described { clients, dim, records, shares, grad, address, data, .. } = described;
    let field = match grad {
        Some(grad) => Field::Python(grad),
        None => {
            // SAFETY: the user states that this is the address of such a function.
            let function = unsafe { std::mem::transmute::<usize, CompiledField>(address) };
            Field::Compiled(function, data)
        }
    };
    let functions = PythonFunctions {
        field,
        mean_grad: described.mean_grad,
        value: described.value,
        optimum: described.optimum,
        dimension: dim,
        draws_seeds: records.is_none(),
        quietly: py.import("exactfed._problem")?.getattr("_quietly")?.unbind(),
        is_checked: AtomicBool::new(true),
        _instance: described.instance,
    };
    let draws = records.map_or(DrawSpace::Seeds, DrawSpace::Records);
    Ok((functions, FunctionSizes { clients, dimension: dim, draws, shares }))
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
