//! Traces in Parquet, written and read by polars, on the thread that asks for it: a forked process, as Python may be,
//! does not have the threads of polars.

use exactfed_core::federated::Cost;
use exactfed_runner::manifest::{Metric, Quantity, TimeAverage};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::Done;
use exactfed_runner::trace::{Outcome, Trace};
use polars::prelude::*;
use std::io::Cursor;
use std::ops::Range;

/// The bytes of a Parquet file with these metadata, as keys with values, and these rows.
pub fn encode(metadata: Vec<(String, String)>, mut frame: DataFrame) -> PolarsResult<Vec<u8>> {
    let mut bytes = Vec::new();
    // A small file is mostly metadata: compressing it takes time and saves nothing.
    let is_small = frame.height() < SMALL;
    let compression =
        if is_small { ParquetCompression::Uncompressed } else { ParquetCompression::Zstd(None) };
    ParquetWriter::new(&mut bytes)
        .with_compression(compression)
        .with_statistics(StatisticsOptions::empty())
        .set_parallel(false)
        .with_key_value_metadata(Some(KeyValueMetadata::from_static(metadata)))
        .finish(&mut frame)?;
    Ok(bytes)
}

/// The text under `key` in the metadata of a Parquet file; empty without this key.
pub fn metadata_value(bytes: &[u8], key: &str) -> PolarsResult<String> {
    let mut reader = ParquetReader::new(Cursor::new(bytes));
    let metadata = reader.get_metadata()?.key_value_metadata().clone();
    let pair = metadata.into_iter().flatten().find(|pair| pair.key == key);
    Ok(pair.and_then(|pair| pair.value).unwrap_or_default().to_string())
}

/// The rows of a Parquet file whose indices are in these ranges, one range after another.
///
/// # Errors
/// If the file cannot be decoded, or there are no ranges.
pub fn select_rows(bytes: &[u8], ranges: &[Range<usize>]) -> PolarsResult<DataFrame> {
    let frame = decode(bytes, None)?;
    let mut selected = None;
    for range in ranges {
        append_rows(&mut selected, frame.slice(range.start as i64, range.len()))?;
    }
    let mut selected = selected.ok_or_else(|| polars_err!(ComputeError: "no rows are left"))?;
    selected.rechunk_mut();
    Ok(selected)
}

/// Adds `rows` below the rows of `all`, which are `None` as long as there are none.
///
/// # Errors
/// If the columns of both differ in number, name or type.
pub fn append_rows(all: &mut Option<DataFrame>, rows: DataFrame) -> PolarsResult<()> {
    match all {
        None => *all = Some(rows),
        Some(all) => {
            all.vstack_mut_owned(rows)?;
        }
    }
    Ok(())
}

/// A column of costs: its name, and the part of a cost that it holds, for reading and writing. A cost is that of all
/// rounds of a run up to the round of the row.
struct CostColumn {
    name: &'static str,
    part: fn(&mut Cost) -> &mut u64,
}

/// The columns of costs, in their order.
const COSTS: [CostColumn; 6] = [
    CostColumn { name: "local_step", part: |cost| &mut cost.local_steps },
    CostColumn { name: "communications", part: |cost| &mut cost.communications },
    CostColumn { name: "oracle_calls", part: |cost| &mut cost.oracle_calls },
    CostColumn { name: "sequential_calls", part: |cost| &mut cost.sequential_calls },
    CostColumn { name: "vectors_sent", part: |cost| &mut cost.vectors_sent },
    CostColumn { name: "bytes_sent", part: |cost| &mut cost.bytes_sent },
];

/// A file of fewer rows is not compressed.
const SMALL: usize = 256;

/// The name of the last column, which says how a run ended: all rounds were run, it diverged, or it reached a target.
const OUTCOME: &str = "outcome";

/// The names and types of these columns.
pub fn schema_of(columns: &[Column]) -> Schema {
    columns.iter().map(|column| (column.name().clone(), column.dtype().clone())).collect()
}

/// The names and types of all columns that a file can have, in their order.
pub fn schema() -> Schema {
    schema_of(&all_columns("", &[], |_| true))
}

/// The names of the columns in which a pack may have no values: the columns of everything that is measured.
pub fn optional_columns() -> Vec<String> {
    let columns = measured_columns(&[], |_| true);
    columns.iter().map(|column| column.name().to_string()).collect()
}

/// A row of a file: a recorded round of a run of a cell.
struct TraceRow<'a> {
    /// The cell with its traces.
    done: &'a Done<'a>,
    /// The number of the run, which is also the place of its trace in the cell.
    run: u32,
    trace: &'a Trace,
    /// The index of the round among those that are recorded in the trace.
    place: usize,
}

/// The rows of these cells in their order: by cell, run and round.
fn rows<'a>(cells: &'a [Done<'a>]) -> impl Iterator<Item = TraceRow<'a>> {
    cells.iter().flat_map(|done| {
        (0..).zip(&done.traces).flat_map(move |(run, trace)| {
            (0..trace.rows()).map(move |place| TraceRow { done, run, trace, place })
        })
    })
}

/// A column of this name with what `value` returns for each row.
pub fn column<R, T, Kind: ?Sized>(
    name: &str,
    rows: impl IntoIterator<Item = R>,
    value: impl Fn(R) -> T,
) -> Column
where
    Series: NamedFrom<Vec<T>, Kind>,
{
    Column::new(name.into(), rows.into_iter().map(value).collect::<Vec<T>>())
}

/// The rows of these cells of a plan, one cell after another, with all columns of a pack.
pub fn rows_frame(plan: &Plan, cells: &[Done<'_>]) -> PolarsResult<DataFrame> {
    // A pack has no columns of metrics of other programs that its cells do not record.
    let has_column = |metric: &Metric| {
        !metric.is_own()
            || cells.iter().any(|done| done.cell.identity.record.metrics.contains(metric))
    };
    DataFrame::new(rows(cells).count(), all_columns(&plan.experiment, cells, has_column))
}

/// The columns of a pack, with those metrics for which `has_column` holds, and a value for each row of these cells, which
/// belong to this experiment; without cells, empty columns, which have the names and types. The columns `step_size` and `local_steps` say what the manifest
/// gives: γ and H of the first run that an algorithm combines, or what stands for H, as the batch of mini-batch SGD.
/// Runs (`replicate`) are numbered from 0 over all instances of a cell.
fn all_columns(
    experiment: &str,
    cells: &[Done<'_>],
    has_column: impl Fn(&Metric) -> bool,
) -> Vec<Column> {
    let mut columns = vec![
        column("experiment", rows(cells), |_| experiment),
        column("cell", rows(cells), |row| row.done.cell.id.as_str()),
        column("problem", rows(cells), |row| row.done.cell.identity.problem.kind()),
        column("algorithm", rows(cells), |row| row.done.cell.identity.algorithm.kind()),
        column("label", rows(cells), |row| row.done.cell.label.as_str()),
        column("clients", rows(cells), |row| row.done.clients as u32),
        column("step_size", rows(cells), |row| row.done.cell.identity.algorithm.scale().0),
        column("local_steps", rows(cells), |row| row.done.cell.identity.algorithm.scale().1),
        column("instance", rows(cells), |row| {
            row.done.cell.identity.instance_of(row.run.into()) as u32
        }),
        column("replicate", rows(cells), |row| row.run),
        column("round", rows(cells), |row| row.trace.round[row.place]),
    ];
    for CostColumn { name, part } in COSTS {
        columns.push(column(name, rows(cells), |row| {
            let mut cost = row.trace.cost[row.place];
            *part(&mut cost)
        }));
    }
    columns.extend(measured_columns(cells, has_column));
    columns.push(column(OUTCOME, rows(cells), |row| row.trace.outcome.name()));
    columns
}

/// The columns of measured values: of the metrics for which `has_column` holds, with null where a trace has none; of
/// `theta` (θ_t, d numbers); and of time averages, which only the last row of a run has.
fn measured_columns(cells: &[Done<'_>], has_column: impl Fn(&Metric) -> bool) -> Vec<Column> {
    let mut columns = vec![number_column("sq_error", cells, |trace| Some(&trace.sq_error))];
    for metric in Metric::known().filter(has_column) {
        columns.push(number_column(metric.column(), cells, |trace| match metric {
            Metric::SqErrorLimit => Some(&trace.sq_error_limit),
            _ => trace.further.iter().find(|(m, _)| *m == metric).map(|(_, values)| values),
        }));
    }
    let iterates_are_recorded = cells.iter().any(|done| done.cell.identity.record.iterates);
    columns.push(list_column("theta", cells, iterates_are_recorded, |trace, place| {
        let d = trace.theta.len() / trace.rows();
        trace.theta[place * d..][..d].to_vec()
    }));
    for name in TimeAverage::ALL {
        let mut traces = cells.iter().flat_map(|done| &done.traces);
        let is_measured = traces.any(|trace| average_in(trace, *name).is_some());
        columns.push(list_column(&name.column(), cells, is_measured, |trace, place| {
            // A run has one value, in its last row.
            let is_last = place + 1 == trace.rows();
            match average_in(trace, *name) {
                Some(value) if is_last => value.clone(),
                _ => Vec::new(),
            }
        }));
    }
    columns
}

/// The value of a time average of a run; `None` if it was not measured.
fn average_in(trace: &Trace, name: TimeAverage) -> Option<&Vec<f64>> {
    trace.averages.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// A column of numbers, which `values` finds in a trace, one per recorded round, or none if the trace lacks them. Rows
/// without a number are null.
fn number_column(
    name: &str,
    cells: &[Done<'_>],
    values: impl Fn(&Trace) -> Option<&Vec<f64>>,
) -> Column {
    column(name, rows(cells), |row| values(row.trace)?.get(row.place).copied())
}

/// A column of lists, which `value` makes of a trace and the place of a round in it. If some cell measured the column
/// (`is_measured`), rows of the other cells have empty lists; else all rows are null.
fn list_column(
    name: &str,
    cells: &[Done<'_>],
    is_measured: bool,
    value: impl Fn(&Trace, usize) -> Vec<f64>,
) -> Column {
    let height = rows(cells).count();
    let kind = DataType::Float64;
    if !is_measured {
        return Column::full_null(name.into(), height, &DataType::List(Box::new(kind)));
    }
    let mut builder =
        ListPrimitiveChunkedBuilder::<Float64Type>::new(name.into(), height, height, kind);
    for row in rows(cells) {
        builder.append_slice(&value(row.trace, row.place));
    }
    builder.finish().into_column()
}

/// Checks that a file has the rows of these cells, in this order, and no others. A cell is given by its id and its
/// number of rows. Only the column of ids is decoded.
///
/// # Errors
/// What is in the place of a cell's rows, or why the file cannot be decoded.
pub fn check_cells<'a>(
    bytes: &[u8],
    cells: impl IntoIterator<Item = (&'a str, usize)>,
) -> PolarsResult<()> {
    let frame = decode(bytes, Some(vec!["cell".to_owned()]))?;
    let mut ids = frame.column("cell")?.str()?.iter();
    let mut expected = 0_usize;
    for (cell, rows) in cells {
        expected = expected.saturating_add(rows);
        if let Some(other) = ids.by_ref().take(rows).find(|id| *id != Some(cell)) {
            let other = other.unwrap_or("none");
            polars_bail!(ComputeError: "has rows of cell {other} where those of {cell} belong");
        }
    }
    let height = frame.height();
    if height != expected {
        polars_bail!(ComputeError: "has {height} rows, not {expected}");
    }
    Ok(())
}

/// The rows of a file, with these columns or, for `None`, with all.
pub fn decode(bytes: &[u8], columns: Option<Vec<String>>) -> PolarsResult<DataFrame> {
    let reader = ParquetReader::new(Cursor::new(bytes)).read_parallel(ParallelStrategy::None);
    reader.with_columns(columns).finish()
}

/// The numbers of a column, `None` where a row has none; empty if there is no such column.
fn numbers_in(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<f64>>> {
    match frame.column(name) {
        Ok(column) => Ok(column.f64()?.iter().collect()),
        Err(_) => Ok(Vec::new()),
    }
}

/// The lists of a column, one for each row; `None` without this column.
fn lists_in(frame: &DataFrame, name: &str) -> PolarsResult<Option<ListChunked>> {
    match frame.column(name) {
        Ok(column) => Ok(Some(column.list()?.clone())),
        Err(_) => Ok(None),
    }
}

/// The number at a place, if the column has one there.
fn number_at(values: &[Option<f64>], place: usize) -> Option<f64> {
    values.get(place).copied().flatten()
}

/// The rows of a file, column by column: each vector has one entry for each row, or none if no cell has values.
pub struct TraceRows {
    /// The bytes that they take in memory, approximately.
    pub bytes: usize,
    /// The number of the replicate.
    replicate: Vec<u32>,
    sq_error: Vec<Option<f64>>,
    outcome: Vec<Outcome>,
    round: Vec<u64>,
    cost: Vec<Cost>,
    sq_error_limit: Vec<Option<f64>>,
    further: Vec<(Metric, Vec<Option<f64>>)>,
    theta: Option<ListChunked>,
    averages: Vec<(TimeAverage, ListChunked)>,
}

impl TraceRows {
    /// Decodes all rows of a file, in which these optional columns have values, as the head of the pack says; the other
    /// optional columns are not read.
    ///
    /// # Errors
    /// If the file cannot be decoded, or a column is missing or of another type.
    pub fn read(bytes: &[u8], optional: &[String]) -> PolarsResult<Self> {
        let mut columns = vec!["replicate".to_owned(), "round".to_owned(), OUTCOME.to_owned()];
        columns.extend(COSTS.iter().map(|cost| cost.name.to_owned()));
        columns.extend(optional.iter().cloned());
        let frame = decode(bytes, Some(columns))?;
        let replicate: Vec<u32> = frame.column("replicate")?.u32()?.into_no_null_iter().collect();
        // Each replicate has a row, so that no number of one can ask for more room.
        if replicate.iter().any(|r| *r as usize >= replicate.len()) {
            polars_bail!(ComputeError: "has replicates without rows");
        }
        let mut outcome = Vec::new();
        for name in frame.column(OUTCOME)?.str()?.iter() {
            outcome.push(name.and_then(Outcome::named).unwrap_or_default());
        }
        let mut cost = vec![Cost::default(); replicate.len()];
        for CostColumn { name, part } in COSTS {
            let values = frame.column(name)?.u64()?.into_no_null_iter();
            for (cost, value) in cost.iter_mut().zip(values) {
                *part(cost) = value;
            }
        }
        let mut further = Vec::new();
        for metric in Metric::known() {
            let values = numbers_in(&frame, metric.column())?;
            // The limit has a column of its own, whether or not it is among the metrics.
            if metric != Metric::SqErrorLimit && !values.is_empty() {
                further.push((metric, values));
            }
        }
        let mut averages = Vec::new();
        for name in TimeAverage::ALL {
            if let Some(values) = lists_in(&frame, &name.column())? {
                averages.push((*name, values));
            }
        }
        Ok(Self {
            sq_error: numbers_in(&frame, "sq_error")?,
            outcome,
            round: frame.column("round")?.u64()?.into_no_null_iter().collect(),
            cost,
            sq_error_limit: numbers_in(&frame, "sq_error_limit")?,
            further,
            theta: lists_in(&frame, "theta")?,
            averages,
            replicate,
            bytes: frame.estimated_size(),
        })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.replicate.len()
    }

    /// The final values of a measured quantity in the rows of a cell, one per replicate; `None` for a
    /// replicate that diverged or has no such value. `range` has the indices of the cell's rows in the file.
    pub fn finals(&self, range: Range<usize>, quantity: Quantity) -> Vec<Option<f64>> {
        let values = self.measured_values(quantity);
        let mut finals: Vec<Option<f64>> = Vec::new();
        for i in range {
            let r = self.replicate[i] as usize;
            finals.resize(finals.len().max(r + 1), None);
            // Rows of a replicate are in the order of its rounds: the last one stays.
            let has_value = self.outcome[i] != Outcome::Diverged;
            finals[r] = if has_value { number_at(values, i) } else { None };
        }
        finals
    }

    /// The column of a measured quantity; empty if no cell has it, or the quantity is a cost, which is not measured.
    fn measured_values(&self, quantity: Quantity) -> &[Option<f64>] {
        match quantity {
            Quantity::SqError => &self.sq_error,
            Quantity::SqErrorLimit => &self.sq_error_limit,
            _ => {
                let found = self.further.iter().find(|(metric, _)| metric.quantity() == quantity);
                found.map_or(&[], |(_, values)| values)
            }
        }
    }

    /// The traces of the cell whose rows have these indices, one for each replicate; what the cell has not recorded is
    /// empty in them.
    pub fn traces(&self, range: Range<usize>) -> PolarsResult<Vec<Trace>> {
        let mut traces: Vec<Trace> = Vec::new();
        // Cells of one pack may have measured different metrics: a metric that this cell measured has
        // a value in its first row.
        let mut measured: Vec<&(Metric, Vec<Option<f64>>)> = self.further.iter().collect();
        measured.retain(|(_, values)| number_at(values, range.start).is_some());
        for i in range {
            let r = self.replicate[i] as usize;
            while traces.len() <= r {
                let further = measured.iter().map(|(metric, _)| (*metric, Vec::new())).collect();
                traces.push(Trace { further, ..Trace::default() });
            }
            let trace = &mut traces[r];
            trace.round.push(self.round[i]);
            trace.cost.push(self.cost[i]);
            trace.sq_error.extend(number_at(&self.sq_error, i));
            trace.sq_error_limit.extend(number_at(&self.sq_error_limit, i));
            for ((_, to), (_, from)) in trace.further.iter_mut().zip(&measured) {
                to.extend(from[i]);
            }
            if let Some(row) = self.theta.as_ref().and_then(|theta| theta.get_as_series(i)) {
                trace.theta.extend(row.f64()?.into_no_null_iter());
            }
            for (name, values) in &self.averages {
                let Some(row) = values.get_as_series(i) else { continue };
                if !row.is_empty() {
                    trace.averages.push((*name, row.f64()?.into_no_null_iter().collect()));
                }
            }
            trace.outcome = self.outcome[i];
        }
        Ok(traces)
    }
}
