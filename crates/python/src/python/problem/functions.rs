//! The functions of an instance of a problem in Python, as the library calls them.

use super::super::code::traceback;
use super::super::margins::NativeMargins;
use super::super::numbers::{copy_returned, flat, floats};
use exactfed::kernel::prefetch_all;
use exactfed::problem::function::{
    DrawSpace, FieldRows, FunctionError, FunctionSizes, MarginRecords, ProblemFunctions,
};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An instance of a problem as `exactfed._problem` describes it.
#[derive(FromPyObject)]
pub(super) struct Described {
    clients: usize,
    dim: usize,
    records: Option<Vec<usize>>,
    shares: Option<Vec<f64>>,
    grad: Option<Py<PyAny>>,
    margins: Option<DescribedMargins>,
    address: usize,
    data: usize,
    record_memory: Option<RecordMemory>,
    mean_grad: Option<Py<PyAny>>,
    value: Option<Py<PyAny>>,
    optimum: Option<Py<PyAny>>,
    instance: Py<PyAny>,
}

/// A loss of margins as `exactfed._problem` describes it.
#[derive(FromPyObject)]
struct DescribedMargins {
    records: Py<NativeMargins>,
    slope: Py<PyAny>,
    loss: Py<PyAny>,
}

/// Where the records lie that a compiled function reads: record z of client c begins at `first` + c `client_bytes` +
/// z `record_bytes`. All numbers are in bytes.
#[derive(Clone, Copy, FromPyObject)]
struct RecordMemory {
    first: usize,
    client_bytes: isize,
    record_bytes: isize,
    /// How many bytes a record has.
    length: usize,
}

/// A compiled function that writes F_c(θ; z) to its fourth argument: `void field(const double *theta, int64_t client,
/// int64_t draw, double *field, void *data)`. A draw that is a seed has its 64 bits in a signed number. Threads call it
/// at the same time, and without Python's interpreter.
type CompiledField = unsafe extern "C" fn(*const f64, i64, i64, *mut f64, *mut c_void);

/// What writes the field of a row.
enum Field {
    /// A callable of Python, which gets many rows at once.
    Python(Py<PyAny>),
    /// Records of which callables of Python get the margins.
    Margins(MarginFunctions),
    /// A compiled function, which gets one row.
    Compiled(CompiledFunction),
}

/// A compiled function and what it reads.
struct CompiledFunction {
    function: CompiledField,
    /// The address that it gets as its last argument.
    data: usize,
    /// Where its records lie, if that is known.
    records: Option<RecordMemory>,
}

/// The records of a problem whose loss depends on margins, and the callables of Python that get many margins at once.
struct MarginFunctions {
    records: Arc<MarginRecords>,
    slope: Py<PyAny>,
    loss: Py<PyAny>,
}

/// The functions of an instance.
pub(super) struct PythonFunctions {
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
        copy_returned(&returned, name, shape, out)
            .map_err(|error| FunctionError(error.value(py).to_string()))
    }

    /// Whether θ* is stated.
    pub(super) fn has_optimum(&self) -> bool {
        self.optimum.is_some()
    }

    /// Ends the checks of the instance: from here on NumPy warns.
    pub(super) fn end_checks(&self) {
        self.is_checked.store(false, Ordering::Relaxed);
    }

    /// Whether the clients have a loss.
    pub(super) fn has_loss(&self) -> bool {
        self.value.is_some() || matches!(self.field, Field::Margins(_))
    }

    /// Calls a function of margins of the instance and copies the number of each margin to `values`.
    fn call_of_margins(
        &self,
        name: &str,
        function: &Py<PyAny>,
        margins: &[f64],
        values: &mut [f64],
    ) -> Result<(), FunctionError> {
        Python::attach(|py| {
            let arguments = [PyArray1::from_slice(py, margins).into_any()];
            self.call(py, name, function, &arguments, &[margins.len()], values)
        })
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
            Field::Compiled(CompiledFunction { function, data, .. }) => {
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
            Field::Margins(MarginFunctions { records, .. }) => {
                records.write_fields(rows, |margins, slopes| self.slopes(margins, slopes), fields)
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
        match &self.field {
            Field::Python(_) | Field::Margins(_) => true,
            Field::Compiled(_) => false,
        }
    }

    fn margin_records(&self) -> Option<&MarginRecords> {
        match &self.field {
            Field::Margins(margins) => Some(&margins.records),
            Field::Python(_) | Field::Compiled(_) => None,
        }
    }

    fn slopes(&self, margins: &[f64], slopes: &mut [f64]) -> Result<(), FunctionError> {
        match &self.field {
            Field::Margins(MarginFunctions { slope, .. }) => {
                self.call_of_margins("slope", slope, margins, slopes)
            }
            Field::Python(_) | Field::Compiled(_) => {
                Err(FunctionError("the loss does not depend on margins".to_owned()))
            }
        }
    }

    fn read_ahead(&self, client: usize, draw: u64) {
        let Field::Compiled(CompiledFunction { records: Some(memory), .. }) = &self.field else {
            return;
        };
        let client_begins = memory.client_bytes.wrapping_mul(client as isize);
        let record_begins = memory.record_bytes.wrapping_mul(draw as isize);
        let begins = client_begins.wrapping_add(record_begins);
        prefetch_all(memory.first.wrapping_add_signed(begins) as *const u8, memory.length);
    }

    fn mean_fields(
        &self,
        thetas: &[f64],
        clients: &[usize],
        fields: &mut [f64],
    ) -> Result<bool, FunctionError> {
        if let Field::Margins(MarginFunctions { records, .. }) = &self.field {
            records.write_mean_fields(
                thetas,
                clients,
                |margins, slopes| self.slopes(margins, slopes),
                fields,
            )?;
            return Ok(true);
        }
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
        if let Field::Margins(MarginFunctions { records, loss, .. }) = &self.field {
            return Some(records.losses(thetas, clients, |margins, losses| {
                self.call_of_margins("loss", loss, margins, losses)
            }));
        }
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

/// The functions and sizes of an instance.
pub(super) fn functions_of(
    py: Python<'_>,
    described: Described,
) -> PyResult<(PythonFunctions, FunctionSizes)> {
    let Described { clients, dim, records, shares, grad, margins, address, data, .. } = described;
    let field = match (grad, margins) {
        (Some(grad), _) => Field::Python(grad),
        (None, Some(margins)) => {
            let DescribedMargins { records, slope, loss } = margins;
            let records = records.get().records();
            Field::Margins(MarginFunctions { records, slope, loss })
        }
        (None, None) => {
            // SAFETY: the user states that this is the address of such a function.
            let function = unsafe { std::mem::transmute::<usize, CompiledField>(address) };
            let records = described.record_memory;
            Field::Compiled(CompiledFunction { function, data, records })
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
