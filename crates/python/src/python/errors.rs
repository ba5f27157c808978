//! Failures of the library as exceptions of the package, with the texts of the command line.

use exactfed::cli::Failure;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// An exception of the package by its name.
fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    name: &str,
) -> PyResult<Bound<'py, PyType>> {
    cell.import(py, "exactfed._errors", name).cloned()
}

/// The exception for a failure: a `ManifestError` where a manifest is wrong.
pub fn raise(py: Python<'_>, failure: Failure) -> PyErr {
    match failure.rejected {
        Some(_) => raise_manifest(py, failure),
        None => raise_text(py, failure.message),
    }
}

/// The exception for a failure to read a manifest.
pub fn raise_manifest(py: Python<'_>, failure: Failure) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let text = failure.message.trim_end().to_owned();
    let rejected = failure.rejected.as_deref();
    let diagnostics: Vec<_> = rejected
        .iter()
        .flat_map(|rejected| rejected.diagnostics.iter().map(move |found| (rejected, found)))
        .map(|(rejected, found)| {
            let (line, column) = rejected.position(found).unzip();
            let file = rejected.source.name.clone();
            let (key, message) = (found.path.clone(), found.message.clone());
            (file, line, column, key, message, found.hint.clone(), found.allowed.clone())
        })
        .collect();
    let made =
        class(py, &CLASS, "ManifestError").and_then(|class| class.call1((text, diagnostics)));
    made.map_or_else(|e| e, PyErr::from_value)
}

/// The exception for any other bad input.
pub fn raise_text(py: Python<'_>, text: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = class(py, &CLASS, "ExactfedError").and_then(|class| class.call1((text.trim_end(),)));
    made.map_or_else(|e| e, PyErr::from_value)
}
