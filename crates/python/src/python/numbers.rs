//! Numbers and arrays that algorithms in Python pass.

use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use std::borrow::Cow;

/// The shape of an array as Python writes it: `(3,)`, `(3, 2)`.
pub fn tuple(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        all => {
            let all: Vec<String> = all.iter().map(usize::to_string).collect();
            format!("({})", all.join(", "))
        }
    }
}

/// Reads an argument that is one number for all clients or an array with one for each of n clients; returns one number
/// or n. `what` is the name of the argument in errors, here and below.
///
/// # Errors
/// If it is no real number, or an array of another shape.
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

/// Reads an argument that is one whole number for all clients or an array with one for each of n clients, all from 1
/// to 10⁹; returns one number or n.
///
/// # Errors
/// If a number is not whole or out of range, or the array has another shape.
pub fn counts_per_client(value: &Bound<'_, PyAny>, what: &str, n: usize) -> PyResult<Vec<u64>> {
    if let Ok(one) = value.extract::<u64>() {
        return counts(&[one as f64], what);
    }
    counts(&floats_per_client(value, what, n)?, what)
}

/// The numbers of an array as a slice in C order; they are copied only if the array has another order.
pub fn flat<'a>(array: &'a PyReadonlyArrayDyn<'_, f64>) -> Cow<'a, [f64]> {
    match array.as_slice() {
        Ok(slice) => Cow::Borrowed(slice),
        Err(_) => Cow::Owned(array.as_array().iter().copied().collect()),
    }
}

/// Copies what a user's function returned, which must have this shape, to `out`. `name` is the name of the function in
/// errors.
///
/// # Errors
/// If it is no array of numbers, or has another shape.
pub fn copy_returned(
    returned: &Bound<'_, PyAny>,
    name: &str,
    shape: &[usize],
    out: &mut [f64],
) -> PyResult<()> {
    let array = floats(returned, &format!("what {name} returned"))?;
    if array.shape() != shape {
        let found = tuple(array.shape());
        let expected = tuple(shape);
        return Err(PyValueError::new_err(format!(
            "{name} returned an array of shape {found}; expected {expected}"
        )));
    }
    out.copy_from_slice(&flat(&array));
    Ok(())
}

/// Reads an argument that is one real number.
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

/// Reads an argument that is an array of real numbers, or anything that NumPy converts to one, as 64-bit floats; an
/// array of these is not copied.
///
/// # Errors
/// If it is complex, or NumPy cannot convert it.
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

/// The largest number of local steps of a client in a round, or of draws in a local step.
const MOST_COUNT: f64 = 1e9;

/// The values as whole numbers.
///
/// # Errors
/// If one is not whole, or not from 1 to [`MOST_COUNT`].
pub fn counts(values: &[f64], what: &str) -> PyResult<Vec<u64>> {
    let mut counts = Vec::with_capacity(values.len());
    for &value in values {
        if value.fract() != 0.0 || !(1.0..=MOST_COUNT).contains(&value) {
            return Err(PyValueError::new_err(format!(
                "{what} must be a whole number from 1 to 10⁹, not {value}"
            )));
        }
        counts.push(value as u64);
    }
    Ok(counts)
}
