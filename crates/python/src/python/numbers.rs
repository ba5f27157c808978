//! Numbers and arrays that algorithms in Python pass.

use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use std::borrow::Cow;

/// A shape as Python writes it.
pub fn tuple(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        all => {
            let all: Vec<String> = all.iter().map(usize::to_string).collect();
            format!("({})", all.join(", "))
        }
    }
}

/// A number, or one of each of n clients.
pub fn floats_per_client(value: &Bound<'_, PyAny>, what: &str, n: usize) -> PyResult<Vec<f64>> {
    check_real(value, what)?;
    if let Ok(one) = value.extract::<f64>() {
        return Ok(vec![one]);
    }
    let array = floats(value, what)?;
    match array.shape() {
        [] => {}
        [len] if *len == n => {}
        shape => return Err(wrong_shape(what, shape, &format!("a number or ({n},)"))),
    }
    Ok(array.as_array().iter().copied().collect())
}

/// The error for an array of another shape than expected.
pub fn wrong_shape(what: &str, shape: &[usize], expected: &str) -> PyErr {
    let shape = tuple(shape);
    PyValueError::new_err(format!("{what} has the shape {shape}; expected {expected}"))
}

/// Whole numbers of 1 or more: one, or one of each of n clients.
pub fn counts_per_client(value: &Bound<'_, PyAny>, what: &str, n: usize) -> PyResult<Vec<u64>> {
    if let Ok(one) = value.extract::<u64>() {
        return counts(&[one as f64], what);
    }
    counts(&floats_per_client(value, what, n)?, what)
}

/// An array as a slice in C order, copied if it is not.
pub fn flat<'a>(array: &'a PyReadonlyArrayDyn<'_, f64>) -> Cow<'a, [f64]> {
    match array.as_slice() {
        Ok(slice) => Cow::Borrowed(slice),
        Err(_) => Cow::Owned(array.as_array().iter().copied().collect()),
    }
}

/// A number.
pub fn float(value: &Bound<'_, PyAny>, what: &str) -> PyResult<f64> {
    check_real(value, what)?;
    value.extract::<f64>().map_err(|e| {
        PyValueError::new_err(format!("{what} must be a number: {}", e.value(value.py())))
    })
}

/// Refuses complex numbers: NumPy would take their real parts, with no more than a warning.
fn check_real(value: &Bound<'_, PyAny>, what: &str) -> PyResult<()> {
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        return Ok(());
    }
    // What is no array, such as rows of several lengths, is reported where it is converted.
    let numpy = value.py().import("numpy")?;
    let complex = numpy.call_method1("iscomplexobj", (value,));
    match complex.and_then(|complex| complex.extract()) {
        Ok(true) => Err(PyValueError::new_err(format!("{what} is complex; expected real numbers"))),
        Ok(false) | Err(_) => Ok(()),
    }
}

/// Takes any array of real numbers as one of 64-bit floats.
pub fn floats<'py>(
    value: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, f64>> {
    if let Ok(array) = value.cast::<PyArrayDyn<f64>>() {
        return Ok(array.readonly());
    }
    check_real(value, what)?;
    let converted = value.py().import("numpy")?.call_method1("asarray", (value, "float64"));
    let array = converted.map_err(|e| {
        PyValueError::new_err(format!(
            "{what} must be an array of numbers: {}",
            e.value(value.py())
        ))
    })?;
    Ok(array.cast::<PyArrayDyn<f64>>()?.readonly())
}

/// The largest number of local steps of a client in a round.
const MOST_COUNT: f64 = 1e9;

/// Whole numbers of 1 or more.
pub fn counts(values: &[f64], what: &str) -> PyResult<Vec<u64>> {
    let one = |value: &f64| match *value {
        value if value.fract() == 0.0 && (1.0..=MOST_COUNT).contains(&value) => Ok(value as u64),
        value => Err(PyValueError::new_err(format!(
            "{what} must be a whole number from 1 to 10⁹, not {value}"
        ))),
    };
    values.iter().map(one).collect()
}
