//! Metrics in Python: a function of θ, and of where the clients end, that returns a number.

use super::code::{hash_source, traceback};
use exactfed::custom_metric::{CustomMetricDefinition, MeasureCustom};
use exactfed::registered::register_metric as register;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A metric whose values a function in Python returns.
struct PythonMetric {
    /// The function. It gets θ, and the clients' ends if it reads them, as arrays of its own.
    function: Py<PyAny>,
}

impl PythonMetric {
    /// Calls the function, with the ends as an array of shape (N, d) if there are any.
    fn call(&self, py: Python<'_>, theta: &[f64], ends: Option<&[f64]>) -> PyResult<f64> {
        let array = PyArray1::from_slice(py, theta);
        let function = self.function.bind(py);
        let value = match ends {
            None => function.call1((array,))?,
            Some(ends) => {
                let d = theta.len();
                let rows = PyArray1::from_slice(py, ends).reshape([ends.len() / d, d])?;
                function.call1((array, rows))?
            }
        };
        value.extract()
    }
}

impl MeasureCustom for PythonMetric {
    fn value(&self, theta: &[f64], ends: Option<&[f64]>) -> Result<f64, String> {
        Python::attach(|py| self.call(py, theta, ends).map_err(|error| traceback(py, &error)))
    }
}

/// Registers a metric, for the decorator in Python: its definition as JSON, to which the hash of its source is added
/// here, and its function. It is an error if the definition is wrong, or the name is taken.
#[pyfunction]
pub fn register_metric(definition: &str, function: Py<PyAny>) -> PyResult<()> {
    let known: Result<CustomMetricDefinition, _> = serde_json::from_str(definition);
    let mut known = known.map_err(|e| PyValueError::new_err(e.to_string()))?;
    hash_source(&mut known.definition);
    register(known, PythonMetric { function })
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
