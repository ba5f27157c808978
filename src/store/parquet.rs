//! Traces in Parquet, written and read by polars.

use super::provenance::Provenance;
use driftbench_core::federated::Cost;
use driftbench_runner::manifest::{Metric, TimeAverage};
use driftbench_runner::plan::{Cell, Plan};
use driftbench_runner::trace::{Outcome, Trace};
use polars::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;
use std::ops::Range;
use std::time::Duration;

/// A cell whose results are written.
#[derive(Clone, Copy)]
pub struct NewCell<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// N.
    pub clients: usize,
    /// One trace per replicate.
    pub traces: &'a [Trace],
    /// Time that the cell took on one thread.
    pub elapsed: Duration,
}

/// The bytes of a Parquet file with the rows of these cells, one after another. Its metadata
/// have the settings of `single`, where the file holds that cell alone.
pub fn write(
    plan: &Plan,
    provenance: &Provenance,
    single: Option<&Cell>,
    cells: &[NewCell<'_>],
) -> Result<Vec<u8>, String> {
    let frame = frame(plan, cells).map_err(|e| e.to_string())?;
    encode(metadata(plan, provenance, single), frame)
}

fn encode(metadata: Vec<(String, String)>, mut frame: DataFrame) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let metadata = KeyValueMetadata::from_static(metadata);
    // A small file is mostly metadata: compressing it takes time and saves nothing.
    let small = frame.height() < SMALL;
    let compression =
        if small { ParquetCompression::Uncompressed } else { ParquetCompression::Zstd(None) };
    ParquetWriter::new(&mut bytes)
        .with_compression(compression)
        .with_statistics(StatisticsOptions::empty())
        .set_parallel(false)
        .with_key_value_metadata(Some(metadata))
        .finish(&mut frame)
        .map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// The bytes of a file with these rows alone.
pub fn select_rows(bytes: Vec<u8>, rows: &[Range<usize>]) -> Result<Vec<u8>, String> {
    let mut reader = ParquetReader::new(Cursor::new(&*bytes));
    let metadata = reader.get_metadata().map_err(|e| e.to_string())?.key_value_metadata().clone();
    let own = metadata.into_iter().flatten().filter(|pair| pair.key.starts_with("driftbench."));
    let own = own.map(|pair| (pair.key.to_string(), pair.value.unwrap_or_default().to_string()));
    let own = own.collect();
    let frame = decode(bytes)?;
    let mut parts = rows.iter().map(|range| frame.slice(range.start as i64, range.len()));
    let mut all = parts.next().ok_or("no rows are left")?;
    for part in parts {
        all.vstack_mut_owned(part).map_err(|e| e.to_string())?;
    }
    all.rechunk_mut();
    encode(own, all)
}

/// A file of fewer rows is not compressed.
const SMALL: usize = 256;

fn metadata(plan: &Plan, provenance: &Provenance, single: Option<&Cell>) -> Vec<(String, String)> {
    let cell = single.map(|cell| {
        let identity = &cell.identity;
        [
            ("cell", cell.id.clone()),
            ("settings", identity.canonical().to_string()),
            ("seed", identity.seed.to_string()),
        ]
    });
    [
        ("experiment", plan.experiment.clone()),
        ("manifest", plan.source.text.clone()),
        ("version", provenance.version.clone()),
        ("commit", provenance.commit.clone()),
        ("dirty", provenance.dirty.to_string()),
    ]
    .into_iter()
    .chain(cell.into_iter().flatten())
    .map(|(key, value)| (format!("driftbench.{key}"), value))
    .collect()
}

/// All rows in their order: the cell, the trace, and the number of the row in the trace.
fn rows<'a>(
    cells: &'a [NewCell<'a>],
) -> impl Iterator<Item = (&'a NewCell<'a>, &'a Trace, usize)> + Clone {
    cells.iter().flat_map(|new| {
        let traces = new.traces.iter();
        traces.flat_map(move |trace| (0..trace.rows()).map(move |i| (new, trace, i)))
    })
}

fn frame(plan: &Plan, cells: &[NewCell<'_>]) -> PolarsResult<DataFrame> {
    let height = rows(cells).count();
    let experiment = StringChunked::full("experiment".into(), &plan.experiment, height);
    let text = |name: &str, value: fn(&Cell) -> &str| {
        let values = rows(cells).map(|(new, ..)| value(new.cell));
        StringChunked::from_iter_values(name.into(), values).into_column()
    };
    let count = |name: &str, value: fn(&Trace, usize) -> u64| {
        let values = rows(cells).map(|(_, trace, i)| value(trace, i));
        UInt64Chunked::from_iter_values(name.into(), values).into_column()
    };
    let replicate = cells.iter().flat_map(|new| {
        let traces = new.traces.iter().enumerate();
        traces.flat_map(|(r, trace)| std::iter::repeat_n(r as u32, trace.rows()))
    });
    let clients = rows(cells).map(|(new, ..)| new.clients as u32);
    let step_sizes = rows(cells).map(|(new, ..)| new.cell.identity.algorithm.scale().0);
    let local_steps = rows(cells).map(|(new, ..)| new.cell.identity.algorithm.scale().1);
    let mut columns = vec![
        experiment.into_column(),
        text("cell", |cell| &cell.id),
        text("problem", |cell| cell.identity.problem.kind()),
        text("algorithm", |cell| cell.identity.algorithm.kind()),
        text("label", |cell| &cell.label),
        UInt32Chunked::from_iter_values("clients".into(), clients).into_column(),
        Float64Chunked::from_iter_values("step_size".into(), step_sizes).into_column(),
        UInt64Chunked::from_iter_values("local_steps".into(), local_steps).into_column(),
        UInt32Chunked::from_iter_values("replicate".into(), replicate).into_column(),
        count("round", |t, i| t.round[i]),
        count("local_step", |t, i| t.cost[i].local_steps),
        count("communications", |t, i| t.cost[i].communications),
        count("oracle_calls", |t, i| t.cost[i].oracle_calls),
        count("sequential_calls", |t, i| t.cost[i].sequential_calls),
        count("vectors_sent", |t, i| t.cost[i].vectors_sent),
        count("bytes_sent", |t, i| t.cost[i].bytes_sent),
    ];
    columns.extend(measured(cells));
    let outcomes = rows(cells).map(|(_, trace, _)| trace.outcome.name());
    columns.push(StringChunked::from_iter_values("outcome".into(), outcomes).into_column());
    DataFrame::new(height, columns)
}

/// The columns of measured values: each that any trace has, null where a trace has none.
fn measured(cells: &[NewCell<'_>]) -> Vec<Column> {
    let mut columns = Vec::new();
    let mut number = |name: &str, values: &dyn Fn(&Trace) -> Option<&Vec<f64>>| {
        let values = rows(cells).map(|(_, trace, i)| values(trace)?.get(i).copied());
        let values = Float64Chunked::from_iter_options(name.into(), values);
        if values.null_count() < values.len() {
            columns.push(values.into_column());
        }
    };
    number("sq_error", &|trace| Some(&trace.sq_error));
    number("sq_error_limit", &|trace| Some(&trace.sq_error_limit));
    let traces = || cells.iter().flat_map(|new| new.traces);
    let names: BTreeSet<Metric> = traces().flat_map(|t| &t.further).map(|(m, _)| *m).collect();
    for metric in names {
        number(metric.column(), &|trace| {
            trace.further.iter().find(|(m, _)| *m == metric).map(|(_, values)| values)
        });
    }
    if cells.iter().any(|new| new.cell.identity.record.iterates) {
        let iterate = |trace: &Trace, row: usize| {
            let d = trace.theta.len() / trace.rows();
            trace.theta[row * d..][..d].to_vec()
        };
        columns.push(list("theta".into(), cells, iterate));
    }
    let names: BTreeSet<TimeAverage> =
        traces().flat_map(|t| &t.averages).map(|(name, _)| *name).collect();
    for name in names {
        // One value per run, in its last row.
        let average = |trace: &Trace, row: usize| {
            let average =
                trace.averages.iter().find(|(n, _)| *n == name && row + 1 == trace.rows());
            average.map_or(Vec::new(), |(_, values)| values.clone())
        };
        columns.push(list(name.column(), cells, average));
    }
    columns
}

/// A column of lists, which `value` makes of a trace and the number of a row.
fn list(name: String, cells: &[NewCell<'_>], value: impl Fn(&Trace, usize) -> Vec<f64>) -> Column {
    let height = rows(cells).count();
    let mut builder = ListPrimitiveChunkedBuilder::<Float64Type>::new(
        name.into(),
        height,
        height,
        DataType::Float64,
    );
    rows(cells).for_each(|(_, trace, row)| builder.append_slice(&value(trace, row)));
    builder.finish().into_column()
}

/// Checks that the rows of a file are those of these cells, in this order: of each so many, or
/// of a single one all. Returns the names of the file's columns.
pub fn check_cells<'a>(
    bytes: &[u8],
    cells: impl IntoIterator<Item = (&'a str, Option<usize>)>,
) -> Result<Vec<String>, String> {
    let mut reader = ParquetReader::new(Cursor::new(bytes)).read_parallel(ParallelStrategy::None);
    let schema = reader.schema().map_err(|e| e.to_string())?;
    let frame = reader.with_columns(Some(vec!["cell".to_owned()])).finish();
    let frame = frame.map_err(|e| e.to_string())?;
    let named = frame.column("cell").and_then(|column| column.str()).map_err(|e| e.to_string())?;
    let height = frame.height();
    let (mut named, mut expected) = (named.iter(), 0_usize);
    for (cell, rows) in cells {
        let rows = rows.unwrap_or(height);
        expected = expected.saturating_add(rows);
        if let Some(other) = named.by_ref().take(rows).find(|name| *name != Some(cell)) {
            let other = other.unwrap_or("none");
            return Err(format!("has rows of cell {other} where those of {cell} belong"));
        }
    }
    match height == expected {
        true => Ok(schema.iter_names().map(ToString::to_string).collect()),
        false => Err(format!("has {height} rows, not {expected}")),
    }
}

/// The rows of a Parquet file.
pub fn decode(bytes: Vec<u8>) -> Result<DataFrame, String> {
    ParquetReader::new(Cursor::new(bytes))
        .read_parallel(ParallelStrategy::None)
        .finish()
        .map_err(|e| e.to_string())
}

/// The replicate of each row. Each replicate has a row, so that no number of one can ask for
/// more memory.
fn replicates(rows: &DataFrame) -> PolarsResult<Vec<usize>> {
    let replicates = rows.column("replicate")?.u32()?.into_no_null_iter();
    let replicates: Vec<usize> = replicates.map(|r| r as usize).collect();
    if replicates.iter().any(|r| *r >= replicates.len()) {
        polars_bail!(ComputeError: "has replicates without rows");
    }
    Ok(replicates)
}

fn outcomes(rows: &DataFrame) -> PolarsResult<Vec<Outcome>> {
    let names = rows.column("outcome")?.str()?.iter();
    Ok(names.map(|name| name.and_then(Outcome::named).unwrap_or_default()).collect())
}

fn counts(rows: &DataFrame, column: &str) -> PolarsResult<Vec<u64>> {
    Ok(rows.column(column)?.u64()?.into_no_null_iter().collect())
}

fn errors(rows: &DataFrame) -> PolarsResult<Vec<Option<f64>>> {
    Ok(rows.column("sq_error")?.f64()?.iter().collect())
}

/// A column, if there is one of this name. The error of `DataFrame::column` would list all names,
/// which takes longer than reading a small cell.
fn optional<'a>(rows: &'a DataFrame, column: &str) -> Option<&'a Column> {
    rows.columns().iter().find(|other| other.name() == column)
}

/// The numbers of a column; none if there is no such column.
fn numbers(rows: &DataFrame, column: &str) -> PolarsResult<Vec<Option<f64>>> {
    optional(rows, column).map_or(Ok(Vec::new()), |column| Ok(column.f64()?.iter().collect()))
}

/// The lists of a column; none if there is no such column.
fn lists(rows: &DataFrame, column: &str) -> PolarsResult<Vec<Vec<f64>>> {
    let Some(column) = optional(rows, column) else { return Ok(Vec::new()) };
    let lists = column.list()?;
    let list = |row| match lists.get_as_series(row) {
        Some(values) => Ok(values.f64()?.into_no_null_iter().collect()),
        None => Ok(Vec::new()),
    };
    (0..rows.height()).map(list).collect()
}

/// The final errors of a cell with these rows, one per replicate; `None` if it diverged.
pub fn finals(rows: &DataFrame) -> PolarsResult<Vec<Option<f64>>> {
    let mut finals = Vec::new();
    let errors = errors(rows)?;
    for ((r, error), outcome) in replicates(rows)?.into_iter().zip(errors).zip(outcomes(rows)?) {
        // Rows of a replicate are in the order of its rounds: the last one stays.
        finals.resize(finals.len().max(r + 1), None);
        finals[r] = error.filter(|_| outcome == Outcome::Finished);
    }
    Ok(finals)
}

/// The traces of a cell with these rows, one per replicate.
pub fn traces(rows: &DataFrame) -> PolarsResult<Vec<Trace>> {
    let replicates = replicates(rows)?;
    let mut traces = vec![Trace::default(); replicates.iter().max().map_or(0, |last| last + 1)];
    let (rounds, errors, outcomes) = (counts(rows, "round")?, errors(rows)?, outcomes(rows)?);
    let [communications, local_steps] =
        [counts(rows, "communications")?, counts(rows, "local_step")?];
    let [oracle_calls, sequential_calls] =
        [counts(rows, "oracle_calls")?, counts(rows, "sequential_calls")?];
    let [vectors_sent, bytes_sent] = [counts(rows, "vectors_sent")?, counts(rows, "bytes_sent")?];
    for (i, r) in replicates.iter().enumerate() {
        let trace = &mut traces[*r];
        trace.round.push(rounds[i]);
        trace.cost.push(Cost {
            communications: communications[i],
            local_steps: local_steps[i],
            oracle_calls: oracle_calls[i],
            sequential_calls: sequential_calls[i],
            vectors_sent: vectors_sent[i],
            bytes_sent: bytes_sent[i],
        });
        trace.sq_error.extend(errors[i]);
        trace.outcome = outcomes[i];
    }
    for (r, value) in replicates.iter().zip(numbers(rows, "sq_error_limit")?) {
        traces[*r].sq_error_limit.extend(value);
    }
    for metric in Metric::ALL {
        let values = numbers(rows, metric.column())?;
        // The limit has a field of its own. In a pack, a cell has nulls in the columns of others.
        if *metric == Metric::SqErrorLimit || values.first().is_none_or(Option::is_none) {
            continue;
        }
        traces.iter_mut().for_each(|trace| trace.further.push((*metric, Vec::new())));
        for (r, value) in replicates.iter().zip(values) {
            traces[*r].further.last_mut().into_iter().for_each(|(_, all)| all.extend(value));
        }
    }
    for (r, values) in replicates.iter().zip(lists(rows, "theta")?) {
        traces[*r].theta.extend(values);
    }
    for name in TimeAverage::ALL {
        for (r, values) in replicates.iter().zip(lists(rows, &name.column())?) {
            if !values.is_empty() {
                traces[*r].averages.push((*name, values));
            }
        }
    }
    Ok(traces)
}
