//! Draws of the clients of a run, as an algorithm in Python keeps them.

use exactfed::federated::{Draw, RoundClients};
use exactfed::kernel::Members;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

/// What the clients that take part have drawn at one time; :meth:`Clients.draw` makes it, and
/// :meth:`Clients.fields` evaluates it.
#[pyclass(frozen, module = "exactfed", name = "Draw")]
pub struct PythonDraw {
    inner: Draw,
    /// The clients that drew.
    source: Box<dyn RecordSource>,
}

/// The clients of a run, of which a draw asks the records that it has.
pub trait RecordSource: Send + Sync {
    /// The numbers of the records that each client drew, of shape (N, places), where -1 stands for no record; `None` if
    /// the problem draws no records.
    ///
    /// # Errors
    /// If the run has ended, or the table would be too large.
    fn records_of_draw<'py>(
        &self,
        py: Python<'py>,
        draw: &Draw,
    ) -> PyResult<Option<Bound<'py, PyArray2<i64>>>>;
}

impl PythonDraw {
    /// A draw of these clients.
    pub fn new(inner: Draw, source: Box<dyn RecordSource>) -> Self {
        Self { inner, source }
    }

    /// The draw as the engine knows it.
    pub fn draw(&self) -> &Draw {
        &self.inner
    }
}

#[pymethods]
impl PythonDraw {
    /// The number of draws over which each client takes the mean.
    #[getter]
    fn calls(&self) -> u64 {
        self.inner.calls()
    }

    /// The indices of the clients that drew.
    #[getter]
    fn members<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_vec(py, indices(self.inner.members()))
    }

    /// The numbers of the records that were drawn, from 0 on among those of each client, of shape
    /// (N, calls · B) where a gradient of the problem is the mean over B records, in the order of
    /// the draw. -1 stands for no record: in rows of clients that did not draw, and where the last
    /// batch of an epoch has fewer than B. ``None`` where the problem draws no records.
    #[getter]
    fn indices<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<i64>>>> {
        self.source.records_of_draw(py, &self.inner)
    }

    fn __repr__(&self) -> String {
        let calls = self.inner.calls();
        format!("<a draw of {calls} for {} clients>", self.inner.members().indices().len())
    }
}

/// The indices of clients that take part, as an array of NumPy has them.
pub fn indices(members: &Members) -> Vec<i64> {
    members.indices().iter().map(|&k| k as i64).collect()
}

/// The most numbers of records that one draw is asked for, 2 GB of them.
const MOST_RECORDS: usize = 1 << 28;

/// The numbers of the records that each client drew, row by row, and the number of places of a row; -1 stands for no
/// record. `None` if the problem draws no records.
///
/// # Errors
/// If the table would be too large, or the draw is of another run.
pub fn record_table(
    clients: &RoundClients<'_>,
    draw: &Draw,
) -> Result<Option<(Vec<i64>, usize)>, String> {
    if clients.record_counts().is_none() {
        return Ok(None);
    }
    let n = clients.count();
    if draw.calls() as usize > MOST_RECORDS / n {
        return Err(format!(
            "a draw of {} records for each client is too large to be listed",
            draw.calls()
        ));
    }
    let mut rows = Vec::with_capacity(n);
    for client in 0..n {
        rows.push(clients.records_of_draw(draw, client).map_err(|error| error.to_string())?);
    }
    let places = rows.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let mut numbers = Vec::with_capacity(n * places);
    for row in rows {
        let mut row = row.unwrap_or_default();
        row.resize(places, None);
        numbers.extend(row.into_iter().map(|record| record.map_or(-1, |record| record as i64)));
    }
    Ok(Some((numbers, places)))
}
