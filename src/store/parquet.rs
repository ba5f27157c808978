//! Traces in Parquet: the only user of polars.

use super::provenance::Provenance;
use driftbench_core::federated::Cost;
use driftbench_runner::manifest::{Metric, TimeAverage};
use driftbench_runner::plan::{Cell, Plan};
use driftbench_runner::trace::{Outcome, Trace};
use polars::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;
use std::ops::Range;

/// What the metadata say of all rows.
pub struct Context<'a> {
    pub plan: &'a Plan,
    pub provenance: &'a Provenance,
    /// The cell, where the file holds one.
    pub cell: Option<&'a Cell>,
}

/// A cell whose rows are written.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub cell: &'a Cell,
    /// N.
    pub clients: usize,
    /// A trace per replicate.
    pub traces: &'a [Trace],
}

/// The bytes of a Parquet file with the rows of these cells, one after another.
pub fn write(context: &Context<'_>, entries: &[&Entry<'_>]) -> Result<Vec<u8>, String> {
    encode(context, frame(context, entries).map_err(|e| e.to_string())?)
}

fn encode(context: &Context<'_>, frame: DataFrame) -> Result<Vec<u8>, String> {
    encode_with(metadata(context), frame)
}

fn encode_with(meta: Vec<(String, String)>, mut frame: DataFrame) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let meta = KeyValueMetadata::from_static(meta);
    // What is small is mostly metadata: compressing it costs time and no less room.
    let small = frame.height() < SMALL;
    let compression =
        if small { ParquetCompression::Uncompressed } else { ParquetCompression::Zstd(None) };
    ParquetWriter::new(&mut bytes)
        .with_compression(compression)
        .with_statistics(StatisticsOptions::empty())
        .set_parallel(false)
        .with_key_value_metadata(Some(meta))
        .finish(&mut frame)
        .map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// A file's bytes with other labels, one a row; there may be more of them.
pub fn relabelled<'a>(
    bytes: Vec<u8>,
    labels: impl Iterator<Item = &'a str>,
    context: &Context<'_>,
) -> Result<Vec<u8>, String> {
    let mut frame = decode(bytes)?;
    let labels = labels.take(frame.height());
    let labels = StringChunked::from_iter_values("label".into(), labels).into_column();
    frame.with_column(labels).map_err(|e| e.to_string())?;
    encode(context, frame)
}

/// A file's bytes with these rows alone.
pub fn picked(bytes: Vec<u8>, rows: &[Range<usize>]) -> Result<Vec<u8>, String> {
    let mut reader = ParquetReader::new(Cursor::new(&*bytes));
    let told = reader.get_metadata().map_err(|e| e.to_string())?.key_value_metadata().clone();
    let own = told.into_iter().flatten().filter(|pair| pair.key.starts_with("driftbench."));
    let pair =
        |(key, value): (&str, Option<&str>)| (key.to_owned(), value.unwrap_or_default().to_owned());
    let own = own.map(|told| pair((&told.key, told.value.as_deref()))).collect();
    let frame = decode(bytes)?;
    let mut parts = rows.iter().map(|range| frame.slice(range.start as i64, range.len()));
    let mut all = parts.next().ok_or("no rows are left")?;
    for part in parts {
        all.vstack_mut_owned(part).map_err(|e| e.to_string())?;
    }
    all.rechunk_mut();
    encode_with(own, all)
}

/// Rows below which a file is not compressed.
const SMALL: usize = 256;

fn metadata(context: &Context<'_>) -> Vec<(String, String)> {
    let Context { plan, provenance, cell } = context;
    let cell = cell.map(|cell| {
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

/// A row of a trace of a cell.
type Row<'a> = (&'a Entry<'a>, &'a Trace, usize);

/// All rows, in their order.
fn rows<'a>(entries: &'a [&'a Entry<'a>]) -> impl Iterator<Item = Row<'a>> + Clone {
    entries.iter().flat_map(|entry| {
        let traces = entry.traces.iter();
        traces.flat_map(move |trace| (0..trace.rows()).map(move |i| (*entry, trace, i)))
    })
}

fn frame(context: &Context<'_>, entries: &[&Entry<'_>]) -> PolarsResult<DataFrame> {
    let height = rows(entries).count();
    let experiment = StringChunked::full("experiment".into(), &context.plan.experiment, height);
    let text = |name: &str, of: fn(&Cell) -> &str| {
        let values = rows(entries).map(|(entry, ..)| of(entry.cell));
        StringChunked::from_iter_values(name.into(), values).into_column()
    };
    let each = |name: &str, of: fn(&Trace, usize) -> u64| {
        let values = rows(entries).map(|(_, trace, i)| of(trace, i));
        UInt64Chunked::from_iter_values(name.into(), values).into_column()
    };
    let replicate = entries.iter().flat_map(|entry| {
        let traces = entry.traces.iter().enumerate();
        traces.flat_map(|(r, trace)| std::iter::repeat_n(r as u32, trace.rows()))
    });
    let clients = rows(entries).map(|(entry, ..)| entry.clients as u32);
    let step_sizes = rows(entries).map(|(entry, ..)| entry.cell.identity.algorithm.scale().0);
    let local_steps = rows(entries).map(|(entry, ..)| entry.cell.identity.algorithm.scale().1);
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
        each("round", |t, i| t.round[i]),
        each("local_step", |t, i| t.cost[i].local_steps),
        each("communications", |t, i| t.cost[i].communications),
        each("oracle_calls", |t, i| t.cost[i].oracle_calls),
        each("sequential_calls", |t, i| t.cost[i].sequential_calls),
        each("vectors_sent", |t, i| t.cost[i].vectors_sent),
        each("bytes_sent", |t, i| t.cost[i].bytes_sent),
    ];
    columns.extend(measured(entries));
    let outcomes = rows(entries).map(|(_, trace, _)| trace.outcome.name());
    columns.push(StringChunked::from_iter_values("outcome".into(), outcomes).into_column());
    DataFrame::new(height, columns)
}

/// What was measured: a column is there if any trace has it, null where one has not.
fn measured(entries: &[&Entry<'_>]) -> Vec<Column> {
    let mut columns = Vec::new();
    let mut number = |name: &str, of: &dyn Fn(&Trace) -> Option<&Vec<f64>>| {
        let values = rows(entries).map(|(_, trace, i)| of(trace)?.get(i).copied());
        let values = Float64Chunked::from_iter_options(name.into(), values);
        if values.null_count() < values.len() {
            columns.push(values.into_column());
        }
    };
    number("sq_error", &|trace| Some(&trace.sq_error));
    number("sq_error_limit", &|trace| Some(&trace.sq_error_limit));
    let traces = || entries.iter().flat_map(|entry| entry.traces);
    let names: BTreeSet<Metric> = traces().flat_map(|t| &t.further).map(|(m, _)| *m).collect();
    for metric in names {
        number(metric.column(), &|trace| {
            trace.further.iter().find(|(m, _)| *m == metric).map(|(_, values)| values)
        });
    }
    if entries.iter().any(|entry| entry.cell.identity.record.iterates) {
        let of = |trace: &Trace, row: usize| {
            let d = trace.theta.len() / trace.rows();
            trace.theta[row * d..][..d].to_vec()
        };
        columns.push(list("theta".into(), entries, of));
    }
    let names: BTreeSet<TimeAverage> =
        traces().flat_map(|t| &t.averages).map(|(name, _)| *name).collect();
    for name in names {
        // One value a run, in its last row.
        let of = |trace: &Trace, row: usize| match trace.averages.iter().find(|(n, _)| *n == name) {
            Some((_, values)) if row + 1 == trace.rows() => values.clone(),
            _ => Vec::new(),
        };
        columns.push(list(name.column(), entries, of));
    }
    columns
}

/// A column of lists, `of(trace, row)` each.
fn list(name: String, entries: &[&Entry<'_>], of: impl Fn(&Trace, usize) -> Vec<f64>) -> Column {
    let height = rows(entries).count();
    let mut builder = ListPrimitiveChunkedBuilder::<Float64Type>::new(
        name.into(),
        height,
        height,
        DataType::Float64,
    );
    rows(entries).for_each(|(_, trace, row)| builder.append_slice(&of(trace, row)));
    builder.finish().into_column()
}

/// Sees that the rows of a file are of these cells, in this order: of each so many, or of
/// a single one all.
pub fn of_cells<'a>(
    bytes: &[u8],
    cells: impl IntoIterator<Item = (&'a str, Option<usize>)>,
) -> Result<(), String> {
    let frame = ParquetReader::new(Cursor::new(bytes))
        .read_parallel(ParallelStrategy::None)
        .with_columns(Some(vec!["cell".to_owned()]))
        .finish()
        .map_err(|e| e.to_string())?;
    let named = frame.column("cell").and_then(|column| column.str()).map_err(|e| e.to_string())?;
    let height = frame.height();
    let (mut named, mut expected) = (named.iter(), 0);
    for (cell, rows) in cells {
        let rows = rows.unwrap_or(height);
        expected += rows;
        if let Some(other) = named.by_ref().take(rows).find(|name| *name != Some(cell)) {
            let other = other.unwrap_or("none");
            return Err(format!("has rows of cell {other} where those of {cell} belong"));
        }
    }
    match height == expected {
        true => Ok(()),
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

/// The final errors of a cell, a replicate each, from as few columns as can be.
pub fn finals(bytes: Vec<u8>) -> Result<Vec<Option<f64>>, String> {
    let columns = ["replicate", "sq_error", "outcome"].map(str::to_owned);
    let frame = ParquetReader::new(Cursor::new(bytes))
        .read_parallel(ParallelStrategy::None)
        .with_columns(Some(columns.to_vec()))
        .finish()
        .map_err(|e| e.to_string())?;
    let rows = Rows::of_ends(&frame).map_err(|e| e.to_string())?;
    Ok(rows.finals(0..rows.len()))
}

/// The rows of a file, column by column.
pub struct Rows {
    /// As they were read.
    pub frame: DataFrame,
    replicate: Vec<u32>,
    sq_error: Vec<f64>,
    outcome: Vec<Outcome>,
    round: Vec<u64>,
    cost: Vec<Cost>,
    sq_error_limit: Vec<Option<f64>>,
    further: Vec<(Metric, Vec<Option<f64>>)>,
    theta: Option<ListChunked>,
    averages: Vec<(TimeAverage, ListChunked)>,
}

impl Rows {
    /// All rows of a file.
    pub fn read(bytes: Vec<u8>) -> Result<Self, String> {
        Self::all(decode(bytes)?).map_err(|e| e.to_string())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.replicate.len()
    }

    /// Of what final errors need.
    fn of_ends(frame: &DataFrame) -> PolarsResult<Self> {
        let outcome = frame.column("outcome")?.str()?.iter();
        let replicate: Vec<u32> = frame.column("replicate")?.u32()?.into_no_null_iter().collect();
        // Each replicate has a row, so that no number of one can ask for more room.
        if replicate.iter().any(|r| *r as usize >= replicate.len()) {
            polars_bail!(ComputeError: "has replicates without rows");
        }
        Ok(Self {
            frame: DataFrame::empty(),
            replicate,
            sq_error: frame.column("sq_error")?.f64()?.into_no_null_iter().collect(),
            outcome: outcome.map(|o| o.and_then(Outcome::named).unwrap_or_default()).collect(),
            round: Vec::new(),
            cost: Vec::new(),
            sq_error_limit: Vec::new(),
            further: Vec::new(),
            theta: None,
            averages: Vec::new(),
        })
    }

    fn all(frame: DataFrame) -> PolarsResult<Self> {
        let whole = |name: &str| -> PolarsResult<Vec<u64>> {
            Ok(frame.column(name)?.u64()?.into_no_null_iter().collect())
        };
        let number = |name: &str| -> PolarsResult<Vec<Option<f64>>> {
            match frame.column(name) {
                Ok(column) => Ok(column.f64()?.iter().collect()),
                Err(_) => Ok(Vec::new()),
            }
        };
        let lists = |name: &str| match frame.column(name) {
            Ok(column) => column.list().map(|list| Some(list.clone())),
            Err(_) => Ok(None),
        };
        let (communications, local_steps) = (whole("communications")?, whole("local_step")?);
        let (oracle_calls, sequential) = (whole("oracle_calls")?, whole("sequential_calls")?);
        let (vectors_sent, bytes_sent) = (whole("vectors_sent")?, whole("bytes_sent")?);
        let cost = |i: usize| Cost {
            communications: communications[i],
            local_steps: local_steps[i],
            oracle_calls: oracle_calls[i],
            sequential_calls: sequential[i],
            vectors_sent: vectors_sent[i],
            bytes_sent: bytes_sent[i],
        };
        let mut rows = Self::of_ends(&frame)?;
        rows.round = whole("round")?;
        rows.cost = (0..rows.len()).map(cost).collect();
        rows.sq_error_limit = number("sq_error_limit")?;
        for metric in Metric::ALL {
            let values = number(metric.column())?;
            // The limit has a column of its own, whoever asked for it.
            if *metric != Metric::SqErrorLimit && !values.is_empty() {
                rows.further.push((*metric, values));
            }
        }
        rows.theta = lists("theta")?;
        for name in TimeAverage::ALL {
            rows.averages.extend(lists(&name.column())?.map(|values| (*name, values)));
        }
        rows.frame = frame;
        Ok(rows)
    }

    /// The final errors of the cell in these rows, a replicate each; `None` where it
    /// diverged.
    pub fn finals(&self, range: Range<usize>) -> Vec<Option<f64>> {
        let mut finals: Vec<Option<f64>> = Vec::new();
        for i in range {
            // Rows of a replicate are in the order of its rounds: the last one stays.
            let r = self.replicate[i] as usize;
            finals.resize(finals.len().max(r + 1), None);
            finals[r] = (self.outcome[i] == Outcome::Finished).then_some(self.sq_error[i]);
        }
        finals
    }

    /// The traces of the cell in these rows.
    pub fn traces(&self, range: Range<usize>) -> PolarsResult<Vec<Trace>> {
        let mut traces: Vec<Trace> = Vec::new();
        let has = |values: &[Option<f64>]| values.get(range.start).is_some_and(Option::is_some);
        let names: Vec<_> = self.further.iter().filter(|(_, values)| has(values)).collect();
        for i in range.clone() {
            let r = self.replicate[i] as usize;
            while traces.len() <= r {
                let further = names.iter().map(|(metric, _)| (*metric, Vec::new()));
                traces.push(Trace { further: further.collect(), ..Trace::default() });
            }
            let trace = &mut traces[r];
            trace.round.push(self.round[i]);
            trace.cost.push(self.cost[i]);
            trace.sq_error.push(self.sq_error[i]);
            trace.sq_error_limit.extend(self.sq_error_limit.get(i).copied().flatten());
            for ((_, to), (_, from)) in trace.further.iter_mut().zip(&names) {
                to.extend(from[i]);
            }
            if let Some(row) = self.theta.as_ref().and_then(|t| t.get_as_series(i)) {
                trace.theta.extend(row.f64()?.into_no_null_iter());
            }
            for (name, values) in &self.averages {
                let row = values.get_as_series(i).filter(|row| !row.is_empty());
                if let Some(row) = row {
                    let values = row.f64()?.into_no_null_iter().collect();
                    trace.averages.push((*name, values));
                }
            }
            trace.outcome = self.outcome[i];
        }
        Ok(traces)
    }
}
