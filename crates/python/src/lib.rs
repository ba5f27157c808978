//! The Python module `driftbench._native`.

#![warn(missing_docs)]

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command line in this process and returns its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| driftbench::cli::main(arguments))
}

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
