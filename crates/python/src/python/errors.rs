//! Failures of the library as exceptions of the package, with the texts of the command line.

use exactfed::cli::Failure;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

/// Calls the exception of the package with this name; if that fails, the exception that it raised.
fn exception<'py>(py: Python<'py>, name: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let module = py.import("exactfed._errors");
    let made = module.and_then(|module| module.call_method1(name, arguments));
    made.map_or_else(|e| e, PyErr::from_value)
}

/// The exception for a failure: a `ManifestError` where a manifest is wrong.
pub fn raise(py: Python<'_>, failure: Failure) -> PyErr {
    match failure.rejected {
        Some(_) => raise_manifest(py, failure),
        None => raise_text(py, failure.message),
    }
}

/// A `ManifestError` for a failure to read a manifest, with a diagnostic for each mistake (file, line, column, key,
/// message, hint, what is allowed); without diagnostics if the manifest cannot be read at all.
pub fn raise_manifest(py: Python<'_>, failure: Failure) -> PyErr {
    let text = failure.message.trim_end().to_owned();
    let rejected = failure.rejected.as_deref();
    let diagnostics: Vec<_> = rejected
        .iter()
        .flat_map(|rejected| rejected.diagnostics.iter().map(move |found| (rejected, found)))
        .map(|(rejected, found)| {
            let (line, column) = rejected.position(found).unzip();
            let file = rejected.source.name.clone();
            let key = found.path.clone();
            let message = found.message.clone();
            (file, line, column, key, message, found.hint.clone(), found.allowed.clone())
        })
        .collect();
    exception(py, "ManifestError", (text, diagnostics))
}

/// An `ExactfedError` with this text, for any other bad input.
pub fn raise_text(py: Python<'_>, text: String) -> PyErr {
    exception(py, "ExactfedError", (text.trim_end(),))
}
