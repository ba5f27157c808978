//! The Python module `driftbench._native`: what the package `driftbench` calls.
//!
//! *Invariant*: every function is thin over the library and the parts of the command line. Work
//! runs in a thread of its own while the calling thread checks for signals ([`worker`]).

#![warn(missing_docs)]

mod algorithm;
mod arrow;
mod clients;
mod errors;
mod figures;
mod plan;
mod results;
mod run;
mod tables;
mod watch;
mod worker;

use errors::raise;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command line in this process and returns its exit code. `program` is the command by
/// which another process can do the same.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
    driftbench::cli::set_program(program);
    py.detach(|| driftbench::cli::main(arguments))
}

/// The width of a figure in inches: `column`, `text`, or a length such as `89mm`.
#[pyfunction]
fn figure_inches(text: &str) -> PyResult<f64> {
    driftbench::cli::figure_inches(text).map_err(pyo3::exceptions::PyValueError::new_err)
}

/// Whether figures can show this quantity along the rounds, as opposed to a setting.
#[pyfunction]
fn is_quantity(name: &str) -> bool {
    driftbench_runner::manifest::Quantity::named(name).is_some()
}

/// Compares two sides: texts for readers and for programs, and the exit code of the command.
#[pyfunction]
fn diff(
    py: Python<'_>,
    a: String,
    b: String,
    fail_on: Vec<String>,
) -> PyResult<results::DiffTexts> {
    worker::interruptible(py, move || results::compare(&a, &b, &fail_on))?.map_err(|e| raise(py, e))
}

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(figure_inches, module)?)?;
    module.add_function(wrap_pyfunction!(is_quantity, module)?)?;
    module.add_function(wrap_pyfunction!(diff, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_class::<plan::NativePlan>()?;
    module.add_class::<results::NativeResults>()?;
    module.add_class::<arrow::NativeFrame>()?;
    module.add_function(wrap_pyfunction!(algorithm::register_algorithm, module)?)?;
    driftbench::registered::set_loader(algorithm::load_code);
    module.add_class::<clients::Clients>()?;
    module.add_class::<clients::Variates>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
