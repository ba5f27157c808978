//! Python code that manifests name: how it is loaded, and what algorithms and problems in Python have in common.

use exactfed::definition::{Definition, KeyValues, SettingValue};
use exactfed::files::sha256;
use exactfed::registered::LoadError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;

/// The values of the keys of an algorithm or a problem by name, as keyword arguments of its function or class. Names
/// have `_` in place of `-`, as Python needs.
pub fn keyword_values<'py>(py: Python<'py>, values: &KeyValues) -> PyResult<Bound<'py, PyDict>> {
    let keywords = PyDict::new(py);
    for (name, value) in values.iter() {
        let name = name.replace('-', "_");
        match value {
            SettingValue::Flag(value) => keywords.set_item(name, value)?,
            SettingValue::Whole(value) => keywords.set_item(name, value)?,
            SettingValue::Number(value) => keywords.set_item(name, value)?,
            SettingValue::Text(value) => keywords.set_item(name, value)?,
        }
    }
    Ok(keywords)
}

/// Adds to a definition the hash of its source, which enters the ids of cells.
pub fn hash_source(definition: &mut Definition) {
    definition.source_hash = sha256(definition.source.as_bytes());
}

/// The text of an exception with its traceback, as Python prints it; the exception alone if that fails.
pub fn traceback(py: Python<'_>, error: &PyErr) -> String {
    let lines = || -> PyResult<String> {
        let traceback = py.import("traceback")?;
        let parts = (error.get_type(py), error.value(py), error.traceback(py));
        let lines = traceback.call_method1("format_exception", parts)?;
        let lines: Vec<String> = lines.extract()?;
        Ok(lines.concat())
    };
    lines().unwrap_or_else(|_| error.to_string()).trim_end().to_owned()
}

/// Loads a file of Python or a module, which registers its algorithms and problems; the library calls it for code that a manifest or
/// an option names. Without `sources` all of the code runs, and the list is empty. With the `sources` of stored
/// algorithms, only those statements of a file run that the sources contain, and a line for each other statement is
/// returned, so that nothing else of the file has an effect.
///
/// # Errors
/// The traceback of the code, or why the file cannot be loaded.
pub fn load_code(code: &Path, sources: Option<&[String]>) -> Result<Vec<String>, LoadError> {
    Python::attach(|py| {
        let load = || -> PyResult<Vec<String>> {
            let Some(sources) = sources else {
                py.import("exactfed._definition")?.call_method1("load_code", (code,))?;
                return Ok(Vec::new());
            };
            let module = py.import("exactfed._covered")?;
            module.call_method1("load_covered", (code, sources))?.extract()
        };
        load().map_err(|e| {
            // The text of this exception says it all.
            let is_plain = e.get_type(py).name().is_ok_and(|name| name == "CodeError");
            LoadError::Code(if is_plain { e.value(py).to_string() } else { traceback(py, &e) })
        })
    })
}
