//! The classes and functions of the module.
//!
//! *Invariant*: each is thin over the library and the parts of the command line. Work runs in a
//! thread of its own while the calling thread checks for signals ([`worker`]).

// Rounds outlive the borrows of their runs in the types, and are ended with them.
#[allow(unsafe_code)]
mod algorithm;
// The Arrow C stream interface passes a pointer.
#[allow(unsafe_code)]
mod arrow;
// As of algorithms.
#[allow(unsafe_code)]
mod clients;
mod code;
mod compressor;
mod draw;
mod errors;
mod exact;
mod figures;
mod left_out;
mod margins;
mod metric;
mod numbers;
mod participants;
// As of algorithms.
#[allow(unsafe_code)]
mod plan;
// Compiled functions of users are called by their addresses.
#[allow(unsafe_code)]
mod problem;
mod results;
mod run;
mod tables;
// An exception is sent to another thread by the interface of C.
#[allow(unsafe_code)]
mod watch;
mod worker;

use errors::{raise, raise_text};
use exactfed::cli;
use exactfed::compare::Options;
use exactfed::manifest::Quantity;
use exactfed::report::diff::DiffFormat;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Adds the classes and functions to the module while Python imports it, and tells the library how Python code is
/// loaded.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    worker::loaded();
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(figure_inches, module)?)?;
    module.add_function(wrap_pyfunction!(quantity, module)?)?;
    module.add_function(wrap_pyfunction!(costs, module)?)?;
    module.add_function(wrap_pyfunction!(diff, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::locks, module)?)?;
    module.add_function(wrap_pyfunction!(run::add_results, module)?)?;
    module.add_function(wrap_pyfunction!(exact::exact, module)?)?;
    module.add_function(wrap_pyfunction!(exact::theory_kinds, module)?)?;
    module.add_class::<plan::NativePlan>()?;
    module.add_class::<results::NativeResults>()?;
    module.add_class::<arrow::NativeFrame>()?;
    module.add_function(wrap_pyfunction!(algorithm::register_algorithm, module)?)?;
    module.add_function(wrap_pyfunction!(problem::register_problem, module)?)?;
    module.add_function(wrap_pyfunction!(metric::register_metric, module)?)?;
    exactfed::registered::set_loader(code::load_code);
    module.add_class::<margins::NativeMargins>()?;
    module.add_class::<clients::PythonClients>()?;
    module.add_class::<clients::PythonVariates>()?;
    module.add_class::<draw::PythonDraw>()?;
    module.add_class::<compressor::PythonCompressor>()?;
    module.add_class::<clients::PythonFeedback>()?;
    module.add_function(wrap_pyfunction!(compressor::identity, module)?)?;
    module.add_function(wrap_pyfunction!(compressor::rand_k, module)?)?;
    module.add_function(wrap_pyfunction!(compressor::top_k, module)?)?;
    module.add_function(wrap_pyfunction!(compressor::qsgd, module)?)?;
    module.add_function(wrap_pyfunction!(compressor::natural_dithering, module)?)?;
    module.add_function(wrap_pyfunction!(compressor::natural, module)?)?;
    module.add_function(wrap_pyfunction!(compressor::sign, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

/// Runs the command line in this process and returns its exit code; `arguments` begin with the name of the program.
/// `program` is the command, with its first arguments, by which another process can run the command line: jobs of
/// `submit` call it.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> PyResult<u8> {
    cli::set_program(program);
    let ended = py.detach(|| worker::in_pool(|| cli::main(arguments)));
    ended.map_err(|error| raise_text(py, error.to_string()))
}

/// The width of a figure in inches: `column`, `text`, or a length such as `89mm`.
#[pyfunction]
fn figure_inches(text: &str) -> PyResult<f64> {
    cli::figure_inches(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The name in manifests of a quantity that figures can show along the rounds, by any name under which it is known;
/// `None` if there is no such quantity, as for the name of a setting.
#[pyfunction]
fn quantity(name: &str) -> Option<&'static str> {
    Quantity::known_as(name).map(Quantity::name)
}

/// The names in manifests of the costs, over which figures can show quantities.
#[pyfunction]
fn costs() -> Vec<&'static str> {
    Quantity::COSTS.iter().map(|cost| cost.name()).collect()
}

/// Compares the side `a` (before) with `b` (after), and returns the comparison as text for a terminal, as a page and
/// as JSON, and the exit code of `exactfed diff`. `fail_on` names the classes of changes that make the code 1.
#[pyfunction]
fn diff(
    py: Python<'_>,
    a: String,
    b: String,
    fail_on: Vec<String>,
) -> PyResult<(String, String, String, u8)> {
    worker::interruptible(py, raise, move || {
        let classes = cli::classes(&fail_on)?;
        let judge_claims = true;
        let compared = cli::compare_sides(&a, &b, classes, Options::default(), judge_claims)?;
        let text = compared.render(DiffFormat::Text)?;
        // The page is not written to a file here, relative to which it could have addresses of other pages.
        let html = compared.render(DiffFormat::Html(compared.drawn(None)))?;
        let json = compared.render(DiffFormat::Json)?;
        Ok((text, html, json, compared.code() as u8))
    })
}
