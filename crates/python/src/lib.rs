//! The Python module `driftbench._native`: what the package `driftbench` calls.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod python;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)
}
