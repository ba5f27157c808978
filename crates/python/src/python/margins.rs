//! The records of a loss of margins, which `exactfed.MarginLoss` holds.

use super::numbers::{copy_returned, flat, floats, wrong_shape};
use exactfed::problem::function::{FieldRows, MarginRecords};
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Records whose losses are functions of their margins. Arrays are of the shapes that functions of problems get.
#[pyclass(frozen)]
pub struct NativeMargins {
    records: Arc<MarginRecords>,
}

impl NativeMargins {
    /// The records, which a problem of the library shares with the class in Python.
    pub fn records(&self) -> Arc<MarginRecords> {
        self.records.clone()
    }

    /// θ of rows that have these clients, M × d numbers.
    ///
    /// # Errors
    /// If θ does not have the shape (M, d).
    fn thetas(&self, theta: &Bound<'_, PyAny>, rows: usize) -> PyResult<Vec<f64>> {
        let array = floats(theta, "theta")?;
        let shape = [rows, self.records.dimension()];
        if array.shape() != shape {
            let expected = format!("({}, {})", shape[0], shape[1]);
            return Err(wrong_shape("theta", array.shape(), &expected));
        }
        Ok(flat(&array).into_owned())
    }
}

#[pymethods]
impl NativeMargins {
    /// Holds the rows y x of all records, of shape (n, d), client by client, of which each client has a count.
    #[new]
    fn new(rows: PyReadonlyArray2<'_, f64>, counts: Vec<usize>, l2: f64) -> PyResult<Self> {
        let records: usize = counts.iter().sum();
        let &[length, dimension] = rows.shape() else { unreachable!("an array with two axes") };
        if length != records {
            let expected = format!("({records}, {dimension})");
            return Err(wrong_shape("rows", rows.shape(), &expected));
        }
        let rows = rows.as_array().iter().copied().collect();
        let records = MarginRecords::new(rows, &counts, dimension, l2);
        Ok(Self { records: Arc::new(records) })
    }

    /// The gradient of one record of each row's client, of shape (M, d).
    fn fields<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        k: PyReadonlyArray1<'py, i64>,
        draw: PyReadonlyArray1<'py, i64>,
        slope: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let counts = self.records.counts();
        let clients = clients_of(&k, counts.len())?;
        let thetas = self.thetas(theta, clients.len())?;
        let draws = draws_of(&draw, &clients, &counts)?;
        let rows = FieldRows { thetas: &thetas, clients: &clients, draws: &draws };
        let mut fields = vec![0.0; thetas.len()];
        self.records.write_fields(
            rows,
            |margins, slopes| call(slope, "slope", margins, slopes),
            &mut fields,
        )?;
        PyArray1::from_vec(py, fields).reshape([clients.len(), self.records.dimension()])
    }

    /// The gradient over all records of each row's client, of shape (M, d).
    fn mean_fields<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        k: PyReadonlyArray1<'py, i64>,
        slope: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let clients = clients_of(&k, self.records.counts().len())?;
        let thetas = self.thetas(theta, clients.len())?;
        let mut fields = vec![0.0; thetas.len()];
        self.records.write_mean_fields(
            &thetas,
            &clients,
            |margins, slopes| call(slope, "slope", margins, slopes),
            &mut fields,
        )?;
        PyArray1::from_vec(py, fields).reshape([clients.len(), self.records.dimension()])
    }

    /// The mean loss of each row's client, of shape (M,).
    fn losses<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        k: PyReadonlyArray1<'py, i64>,
        loss: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let clients = clients_of(&k, self.records.counts().len())?;
        let thetas = self.thetas(theta, clients.len())?;
        let losses = self
            .records
            .losses(&thetas, &clients, |margins, losses| call(loss, "loss", margins, losses))?;
        Ok(PyArray1::from_vec(py, losses))
    }
}

/// Calls a function of margins and copies the number of each margin to `values`.
fn call(
    function: &Bound<'_, PyAny>,
    name: &str,
    margins: &[f64],
    values: &mut [f64],
) -> PyResult<()> {
    let returned = function.call1((PyArray1::from_slice(function.py(), margins),))?;
    copy_returned(&returned, name, &[margins.len()], values)
}

/// The clients of rows, each below N.
///
/// # Errors
/// If one is not.
fn clients_of(k: &PyReadonlyArray1<'_, i64>, n: usize) -> PyResult<Vec<usize>> {
    let index = |&client: &i64| usize::try_from(client).ok().filter(|&client| client < n);
    k.as_array()
        .iter()
        .map(|client| index(client).ok_or_else(|| out_of_range("k", *client, n)))
        .collect()
}

/// The draws of rows that have these clients, each below the number of the client's records.
///
/// # Errors
/// If one is not, or there is not one for each row.
fn draws_of(
    draw: &PyReadonlyArray1<'_, i64>,
    clients: &[usize],
    counts: &[usize],
) -> PyResult<Vec<u64>> {
    if draw.len() != clients.len() {
        let expected = format!("({},)", clients.len());
        return Err(wrong_shape("draw", draw.shape(), &expected));
    }
    let mut draws = Vec::with_capacity(clients.len());
    for (&record, &client) in draw.as_array().iter().zip(clients) {
        let index = u64::try_from(record).ok().filter(|&record| record < counts[client] as u64);
        draws.push(index.ok_or_else(|| out_of_range("draw", record, counts[client]))?);
    }
    Ok(draws)
}

/// The error for an index that is not below a bound.
fn out_of_range(what: &str, index: i64, bound: usize) -> PyErr {
    PyValueError::new_err(format!(
        "{what} has the number {index}; it must be from 0 to {}",
        bound - 1
    ))
}
