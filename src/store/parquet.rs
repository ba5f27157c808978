//! Traces in Parquet: the only user of polars.

use super::provenance::Provenance;
use crate::federated::Cost;
use crate::manifest::{Metric, TimeAverage};
use crate::plan::{Cell, Plan};
use crate::trace::{Outcome, Trace};
use polars::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;

/// What the columns and the metadata say beside the traces.
pub struct Context<'a> {
    pub plan: &'a Plan,
    pub cell: &'a Cell,
    /// N.
    pub clients: usize,
    pub provenance: &'a Provenance,
}

/// The bytes of a cell's Parquet file.
pub fn write(context: &Context<'_>, traces: &[Trace]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut frame = frame(context, traces).map_err(|e| e.to_string())?;
    let meta = KeyValueMetadata::from_static(metadata(context));
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

/// Rows below which a file is not compressed.
const SMALL: usize = 256;

fn metadata(context: &Context<'_>) -> Vec<(String, String)> {
    let Context { plan, cell, provenance, .. } = context;
    [
        ("experiment", plan.experiment.clone()),
        ("cell", cell.id.clone()),
        ("settings", cell.identity.canonical().to_string()),
        ("manifest", plan.source.text.clone()),
        ("seed", cell.identity.seed.to_string()),
        ("version", provenance.version.clone()),
        ("commit", provenance.commit.clone()),
        ("dirty", provenance.dirty.to_string()),
    ]
    .into_iter()
    .map(|(key, value)| (format!("driftbench.{key}"), value))
    .collect()
}

fn frame(context: &Context<'_>, traces: &[Trace]) -> PolarsResult<DataFrame> {
    let rows: usize = traces.iter().map(Trace::rows).sum();
    let identity = &context.cell.identity;
    let (step_size, local_steps) = identity.algorithm.scale();
    let text =
        |name: &str, value: &str| StringChunked::full(name.into(), value, rows).into_column();
    let each = |of: fn(&Trace, usize) -> u64, name: &str| {
        let values = traces.iter().flat_map(|t| (0..t.rows()).map(move |i| of(t, i)));
        UInt64Chunked::from_iter_values(name.into(), values).into_column()
    };
    let mut columns = vec![
        text("experiment", &context.plan.experiment),
        text("cell", &context.cell.id),
        text("problem", identity.problem.kind()),
        text("algorithm", identity.algorithm.kind()),
        text("label", &context.cell.label),
        UInt32Chunked::full("clients".into(), context.clients as u32, rows).into_column(),
        Float64Chunked::full("step_size".into(), step_size, rows).into_column(),
        UInt64Chunked::full("local_steps".into(), local_steps, rows).into_column(),
        UInt32Chunked::from_iter_values(
            "replicate".into(),
            traces.iter().enumerate().flat_map(|(r, t)| std::iter::repeat_n(r as u32, t.rows())),
        )
        .into_column(),
        each(|t, i| t.round[i], "round"),
        each(|t, i| t.cost[i].local_steps, "local_step"),
        each(|t, i| t.cost[i].communications, "communications"),
        each(|t, i| t.cost[i].oracle_calls, "oracle_calls"),
        each(|t, i| t.cost[i].sequential_calls, "sequential_calls"),
        each(|t, i| t.cost[i].vectors_sent, "vectors_sent"),
        each(|t, i| t.cost[i].bytes_sent, "bytes_sent"),
    ];
    for (name, of) in METRICS {
        let values: Vec<f64> = traces.iter().flat_map(|t| of(t).iter().copied()).collect();
        if values.len() == rows {
            columns.push(Column::new((*name).into(), values));
        }
    }
    let names = traces.iter().flat_map(|t| &t.further).map(|(metric, _)| *metric);
    for metric in names.collect::<BTreeSet<_>>() {
        let of = |t: &Trace| t.further.iter().find(|(m, _)| *m == metric).map(|(_, v)| v.clone());
        let values: Vec<f64> = traces.iter().filter_map(of).flatten().collect();
        if values.len() == rows {
            columns.push(Column::new(metric.column().into(), values));
        }
    }
    if identity.record.iterates {
        let of = |trace: &Trace, row: usize| {
            let d = trace.theta.len() / trace.rows();
            trace.theta[row * d..][..d].to_vec()
        };
        columns.push(list("theta".into(), traces, rows, of));
    }
    let names = traces.iter().flat_map(|t| &t.averages).map(|(name, _)| *name);
    for name in names.collect::<BTreeSet<_>>() {
        // One value a run, in its last row.
        let of = |trace: &Trace, row: usize| match trace.averages.iter().find(|(n, _)| *n == name) {
            Some((_, values)) if row + 1 == trace.rows() => values.clone(),
            _ => Vec::new(),
        };
        columns.push(list(name.column(), traces, rows, of));
    }
    let outcomes = traces.iter().flat_map(|t| std::iter::repeat_n(t.outcome.name(), t.rows()));
    columns.push(StringChunked::from_iter_values("outcome".into(), outcomes).into_column());
    DataFrame::new(rows, columns)
}

/// A metric's values, a number a row.
type Values = fn(&Trace) -> &Vec<f64>;

/// The metrics by column; a column is there if every trace has it.
const METRICS: &[(&str, Values)] =
    &[("sq_error", |t| &t.sq_error), ("sq_error_limit", |t| &t.sq_error_limit)];

/// A column of lists, `of(trace, row)` each.
fn list(
    name: String,
    traces: &[Trace],
    rows: usize,
    of: impl Fn(&Trace, usize) -> Vec<f64>,
) -> Column {
    let mut builder =
        ListPrimitiveChunkedBuilder::<Float64Type>::new(name.into(), rows, rows, DataType::Float64);
    for trace in traces {
        (0..trace.rows()).for_each(|row| builder.append_slice(&of(trace, row)));
    }
    builder.finish().into_column()
}

/// The traces of a cell from the bytes of its Parquet file.
pub fn read(bytes: Vec<u8>) -> Result<Vec<Trace>, String> {
    let frame = ParquetReader::new(Cursor::new(bytes))
        .read_parallel(ParallelStrategy::None)
        .finish()
        .map_err(|e| e.to_string())?;
    traces(&frame).map_err(|e| e.to_string())
}

/// The final errors of a cell, a replicate each, from as few columns as can be.
pub fn finals(bytes: Vec<u8>) -> Result<Vec<Option<f64>>, String> {
    let columns = ["replicate", "sq_error", "outcome"].map(str::to_owned);
    let frame = ParquetReader::new(Cursor::new(bytes))
        .read_parallel(ParallelStrategy::None)
        .with_columns(Some(columns.to_vec()))
        .finish()
        .map_err(|e| e.to_string())?;
    last_rows(&frame).map_err(|e| e.to_string())
}

fn last_rows(frame: &DataFrame) -> PolarsResult<Vec<Option<f64>>> {
    let replicate = frame.column("replicate")?.u32()?.into_no_null_iter();
    let sq_error = frame.column("sq_error")?.f64()?.into_no_null_iter();
    let outcome = frame.column("outcome")?;
    let outcome = outcome.str()?;
    let mut finals: Vec<Option<f64>> = Vec::new();
    for (i, (r, error)) in replicate.zip(sq_error).enumerate() {
        // Rows of a replicate are in the order of its rounds: the last one stays.
        finals.resize(finals.len().max(r as usize + 1), None);
        let outcome = outcome.get(i).and_then(Outcome::named).unwrap_or_default();
        finals[r as usize] = (outcome == Outcome::Finished).then_some(error);
    }
    Ok(finals)
}

fn traces(frame: &DataFrame) -> PolarsResult<Vec<Trace>> {
    let whole = |name: &str| -> PolarsResult<Vec<u64>> {
        Ok(frame.column(name)?.u64()?.into_no_null_iter().collect())
    };
    let number = |name: &str| -> PolarsResult<Vec<f64>> {
        match frame.column(name) {
            Ok(column) => Ok(column.f64()?.into_no_null_iter().collect()),
            Err(_) => Ok(Vec::new()),
        }
    };
    let (round, local_steps) = (whole("round")?, whole("local_step")?);
    let (communications, oracle_calls) = (whole("communications")?, whole("oracle_calls")?);
    let sequential_calls = whole("sequential_calls")?;
    let (vectors_sent, bytes_sent) = (whole("vectors_sent")?, whole("bytes_sent")?);
    let mut further = Vec::new();
    for metric in Metric::ALL {
        // The limit has a column of its own, whoever asked for it.
        let values = number(metric.column())?;
        if *metric != Metric::SqErrorLimit && !values.is_empty() {
            further.push((*metric, values));
        }
    }
    let (sq_error, sq_error_limit) = (number("sq_error")?, number("sq_error_limit")?);
    let replicate: Vec<u32> = frame.column("replicate")?.u32()?.into_no_null_iter().collect();
    let outcome = frame.column("outcome")?;
    let outcome = outcome.str()?;
    let lists = |name: &str| frame.column(name).ok().map(|column| column.list()).transpose();
    let theta = lists("theta")?;
    let mut averages = Vec::new();
    for name in TimeAverage::ALL {
        averages.extend(lists(&name.column())?.map(|values| (*name, values)));
    }
    let mut traces: Vec<Trace> = Vec::new();
    for (i, &r) in replicate.iter().enumerate() {
        while traces.len() <= r as usize {
            let names = further.iter().map(|(metric, _)| (*metric, Vec::new()));
            traces.push(Trace { further: names.collect(), ..Trace::default() });
        }
        let trace = &mut traces[r as usize];
        trace.round.push(round[i]);
        trace.cost.push(Cost {
            communications: communications[i],
            local_steps: local_steps[i],
            oracle_calls: oracle_calls[i],
            sequential_calls: sequential_calls[i],
            vectors_sent: vectors_sent[i],
            bytes_sent: bytes_sent[i],
        });
        trace.sq_error.extend(sq_error.get(i));
        trace.sq_error_limit.extend(sq_error_limit.get(i));
        for ((_, to), (_, from)) in trace.further.iter_mut().zip(&further) {
            to.push(from[i]);
        }
        if let Some(row) = theta.and_then(|t| t.get_as_series(i)) {
            trace.theta.extend(row.f64()?.into_no_null_iter());
        }
        for (name, values) in &averages {
            let row = values.get_as_series(i).filter(|row| !row.is_empty());
            if let Some(row) = row {
                let values = row.f64()?.into_no_null_iter().collect();
                trace.averages.push((*name, values));
            }
        }
        trace.outcome = outcome.get(i).and_then(Outcome::named).unwrap_or_default();
    }
    Ok(traces)
}
