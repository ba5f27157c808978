//! The Python module `exactfed._native`: what the package `exactfed` calls.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod python;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)
}
