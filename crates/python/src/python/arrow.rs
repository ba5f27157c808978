//! Frames through the Arrow C stream interface, which polars, pandas and pyarrow read.

use super::errors::raise_text;
use exactfed_runner::panics::lock;
use polars::prelude::*;
use polars_arrow::array::{Array, StructArray};
use polars_arrow::datatypes::{ArrowDataType, Field as StreamField};
use polars_arrow::ffi::{ArrowArrayStream, export_iterator};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Mutex;

/// A table of results that Python reads by `__arrow_c_stream__`.
#[pyclass(frozen)]
pub struct NativeFrame(Mutex<DataFrame>);

impl NativeFrame {
    /// Makes a table of a frame; the exception if the frame could not be made.
    pub fn new(py: Python<'_>, frame: PolarsResult<DataFrame>) -> PyResult<Self> {
        let frame = frame.map_err(|e| raise_text(py, format!("error: {e}")))?;
        Ok(Self(Mutex::new(frame)))
    }
}

/// A stream that moves to the thread of its reader, who finds it at the address of the capsule.
#[repr(transparent)]
struct Sendable(ArrowArrayStream);

// SAFETY: the stream owns its batches, which are immutable and shared by atomic counts, and an
// iterator over them; nothing in it belongs to a thread.
unsafe impl Send for Sendable {}

#[pymethods]
impl NativeFrame {
    /// The number of rows.
    fn __len__(&self) -> usize {
        lock(&self.0).height()
    }

    /// The rows as an Arrow stream, without copies.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the request.
        drop(requested_schema);
        let mut frame = lock(&self.0);
        frame.rechunk_mut();
        let level = CompatLevel::newest();
        let fields: Vec<StreamField> =
            frame.columns().iter().map(|column| column.field().to_arrow(level)).collect();
        let kind = ArrowDataType::Struct(fields);
        let batch = |batch: polars_arrow::record_batch::RecordBatch| {
            let rows = batch.len();
            let all = StructArray::new(kind.clone(), rows, batch.into_arrays(), None);
            Ok(Box::new(all) as Box<dyn Array>)
        };
        let batches: Vec<PolarsResult<Box<dyn Array>>> =
            frame.iter_chunks(level, false).map(batch).collect();
        let is_nullable = false;
        let field = StreamField::new("".into(), kind.clone(), is_nullable);
        let stream = Sendable(export_iterator(Box::new(batches.into_iter()), field));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
