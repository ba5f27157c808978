//! Which clients take part in a round, as Python says it.

use super::numbers::{flat, floats, tuple, wrong_shape};
use exactfed::algorithm::Participation;
use exactfed::client_sampling::{ParticipationScheme, SchemeFault, proportional_fault};
use exactfed::federated::RoundClients;
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The size of a cohort as Python passes it: a number of clients, or a fraction of all.
#[derive(FromPyObject)]
pub enum CohortSize {
    Number(i64),
    Fraction(f64),
}

/// The number of clients that a size means, of n.
///
/// # Errors
/// If it is not from 1 to n, nor a fraction above 0 and below 1.
pub fn cohort_size(size: CohortSize, n: usize) -> PyResult<usize> {
    let (written, size) = match size {
        CohortSize::Number(size) => (size.to_string(), usize::try_from(size).unwrap_or(0)),
        CohortSize::Fraction(part) => match Participation::Fraction(part).among(n) {
            Participation::Clients(size) => (String::new(), size),
            // A fraction that is not between 0 and 1 stays one.
            Participation::Fraction(_) => (format!("{part:?}"), 0),
        },
    };
    if (1..=n).contains(&size) {
        return Ok(size);
    }
    Err(PyValueError::new_err(format!(
        "a cohort has from 1 to {n} clients, or a fraction of them above 0 and below 1, not {written}"
    )))
}

/// The scheme that Python writes as manifests do, for n clients with these shares, or equal ones without them, of which
/// L = `size` are drawn if it is given.
///
/// # Errors
/// If it is no scheme, or none for these clients.
pub fn scheme(
    written: &Bound<'_, PyAny>,
    size: Option<usize>,
    n: usize,
    shares: Option<&[f64]>,
) -> PyResult<ParticipationScheme> {
    let text: String = written.py().import("json")?.call_method1("dumps", (written,))?.extract()?;
    let scheme: ParticipationScheme = serde_json::from_str(&text).map_err(|error| {
        PyValueError::new_err(format!("participation is no scheme of manifests: {error}"))
    })?;
    let mut faults = scheme.check(size);
    if faults.is_empty() {
        faults = scheme.check_for(size, n);
    }
    if let Some(SchemeFault { key, message }) = faults.first() {
        return Err(PyValueError::new_err(format!("`{key}` {message}")));
    }
    let of_proportional = shares.filter(|_| scheme == ParticipationScheme::Proportional);
    match of_proportional.zip(size).and_then(|(shares, size)| proportional_fault(shares, size)) {
        Some(fault) => Err(PyValueError::new_err(fault)),
        None => Ok(scheme),
    }
}

/// The clients that an argument names, of n.
///
/// # Errors
/// If it is no array of whole numbers from 0 to n − 1, or names a client twice.
pub fn client_indices(indices: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<usize>> {
    let array = floats(indices, "indices")?;
    if array.shape().len() != 1 {
        return Err(wrong_shape("indices", array.shape(), "(L,)"));
    }
    let mut is_named = vec![false; n];
    let mut named = Vec::with_capacity(array.len());
    for number in flat(&array).iter() {
        if number.fract() != 0.0 || !(0.0..n as f64).contains(number) {
            let message = format!(
                "indices are those of clients, whole numbers from 0 to {}, not {number}",
                n - 1
            );
            return Err(PyValueError::new_err(message));
        }
        let client = *number as usize;
        if std::mem::replace(&mut is_named[client], true) {
            let message = format!("client {client} is named twice in indices");
            return Err(PyValueError::new_err(message));
        }
        named.push(client);
    }
    Ok(named)
}

/// w_k of the clients that are named, in their order, as n numbers, of which those of other clients are 0.
///
/// # Errors
/// If there is not one finite number for each client that is named.
pub fn weights_of_clients(
    weights: &Bound<'_, PyAny>,
    named: &[usize],
    n: usize,
) -> PyResult<Vec<f64>> {
    let weights = floats(weights, "weights")?;
    if weights.shape() != [named.len()] {
        return Err(wrong_shape("weights", weights.shape(), &tuple(&[named.len()])));
    }
    let mut of_clients = vec![0.0; n];
    for (client, weight) in named.iter().zip(flat(&weights).iter()) {
        if !weight.is_finite() {
            let message = format!("weights must be finite numbers, not {weight}");
            return Err(PyValueError::new_err(message));
        }
        of_clients[*client] = *weight;
    }
    Ok(of_clients)
}

/// Whether the mean over the clients that take part exists: there are some, or they have weights of their own.
pub fn has_mean(clients: &RoundClients<'_>) -> bool {
    clients.has_own_weights() || !clients.members().indices().is_empty()
}

/// The error for a mean over nobody.
pub fn no_mean() -> PyErr {
    PyValueError::new_err(
        "nobody takes part in this round, so that there is no mean: leave θ as it is",
    )
}
