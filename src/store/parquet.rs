//! Traces in Parquet, written and read by polars.

use exactfed_core::federated::Cost;
use exactfed_runner::manifest::{Metric, Quantity, TimeAverage};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::Done;
use exactfed_runner::trace::{Outcome, Trace};
use polars::prelude::*;
use std::io::Cursor;
use std::ops::Range;

/// The bytes of a file with these metadata and rows.
pub fn encode(metadata: Vec<(String, String)>, mut frame: DataFrame) -> PolarsResult<Vec<u8>> {
    let mut bytes = Vec::new();
    // A small file is mostly metadata: compressing it takes time and saves nothing.
    let small = frame.height() < SMALL;
    let compression =
        if small { ParquetCompression::Uncompressed } else { ParquetCompression::Zstd(None) };
    ParquetWriter::new(&mut bytes)
        .with_compression(compression)
        .with_statistics(StatisticsOptions::empty())
        .set_parallel(false)
        .with_key_value_metadata(Some(KeyValueMetadata::from_static(metadata)))
        .finish(&mut frame)?;
    Ok(bytes)
}

/// The value of this key in the metadata of a file, and these of its rows.
pub fn select_rows(
    bytes: &[u8],
    key: &str,
    rows: &[Range<usize>],
) -> PolarsResult<(String, DataFrame)> {
    let mut reader = ParquetReader::new(Cursor::new(bytes));
    let metadata = reader.get_metadata()?.key_value_metadata().clone();
    let value = metadata.into_iter().flatten().find(|pair| pair.key == key);
    let value = value.and_then(|pair| pair.value).unwrap_or_default().to_string();
    let (frame, mut all) = (decode(bytes, None)?, None);
    for range in rows {
        append(&mut all, frame.slice(range.start as i64, range.len()))?;
    }
    let mut all = all.ok_or_else(|| polars_err!(ComputeError: "no rows are left"))?;
    all.rechunk_mut();
    Ok((value, all))
}

/// Puts rows below others, if there are some.
pub fn append(all: &mut Option<DataFrame>, rows: DataFrame) -> PolarsResult<()> {
    match all {
        None => *all = Some(rows),
        Some(all) => drop(all.vstack_mut_owned(rows)?),
    }
    Ok(())
}

/// A column, and the part of a cost that it holds.
type CostColumn = (&'static str, fn(&mut Cost) -> &mut u64);

/// The columns of costs, in their order.
pub const COSTS: [CostColumn; 6] = [
    ("local_step", |cost| &mut cost.local_steps),
    ("communications", |cost| &mut cost.communications),
    ("oracle_calls", |cost| &mut cost.oracle_calls),
    ("sequential_calls", |cost| &mut cost.sequential_calls),
    ("vectors_sent", |cost| &mut cost.vectors_sent),
    ("bytes_sent", |cost| &mut cost.bytes_sent),
];

/// A file of fewer rows is not compressed.
const SMALL: usize = 256;

/// The last column.
const OUTCOME: &str = "outcome";

/// The names and types of these columns.
pub fn types(columns: &[Column]) -> Schema {
    columns.iter().map(|column| (column.name().clone(), column.dtype().clone())).collect()
}

/// All columns of a file in their order.
pub fn schema() -> Schema {
    types(&columns("", &[]))
}

/// The columns of which a pack may have no values: what is measured.
pub fn optional() -> Vec<String> {
    measured(&[]).iter().map(|column| column.name().to_string()).collect()
}

/// The cell of a row, the number of its trace, the trace, and the number of the row in the trace.
type Row<'a> = (&'a Done<'a>, u32, &'a Trace, usize);

/// All rows in their order.
fn rows<'a>(cells: &'a [Done<'a>]) -> impl Iterator<Item = Row<'a>> {
    let traces = cells.iter().flat_map(|new| (0..).zip(&new.traces).map(move |(r, t)| (new, r, t)));
    traces.flat_map(|(new, r, trace)| (0..trace.rows()).map(move |i| (new, r, trace, i)))
}

/// The column of what `of` gives of each row.
pub fn column<R, T, Kind: ?Sized>(
    name: &str,
    rows: impl IntoIterator<Item = R>,
    of: impl Fn(R) -> T,
) -> Column
where
    Series: NamedFrom<Vec<T>, Kind>,
{
    Column::new(name.into(), rows.into_iter().map(of).collect::<Vec<T>>())
}

/// The rows of these cells, one after another.
pub fn frame(plan: &Plan, cells: &[Done<'_>]) -> PolarsResult<DataFrame> {
    DataFrame::new(rows(cells).count(), columns(&plan.experiment, cells))
}

/// The columns of these cells.
fn columns(experiment: &str, cells: &[Done<'_>]) -> Vec<Column> {
    let mut columns = vec![
        column("experiment", rows(cells), |_| experiment),
        column("cell", rows(cells), |(new, ..)| new.cell.id.as_str()),
        column("problem", rows(cells), |(new, ..)| new.cell.identity.problem.kind()),
        column("algorithm", rows(cells), |(new, ..)| new.cell.identity.algorithm.kind()),
        column("label", rows(cells), |(new, ..)| new.cell.label.as_str()),
        column("clients", rows(cells), |(new, ..)| new.clients as u32),
        column("step_size", rows(cells), |(new, ..)| new.cell.identity.algorithm.scale().0),
        column("local_steps", rows(cells), |(new, ..)| new.cell.identity.algorithm.scale().1),
        column("instance", rows(cells), |(new, r, ..)| {
            new.cell.identity.instance_of(r.into()) as u32
        }),
        column("replicate", rows(cells), |(_, r, ..)| r),
        column("round", rows(cells), |(.., trace, i)| trace.round[i]),
    ];
    columns.extend(COSTS.map(|(name, field)| {
        column(name, rows(cells), |(.., trace, i)| *field(&mut { trace.cost[i] }))
    }));
    columns.extend(measured(cells));
    columns.push(column(OUTCOME, rows(cells), |(.., trace, _)| trace.outcome.name()));
    columns
}

/// The columns of measured values, null where a trace has none.
fn measured(cells: &[Done<'_>]) -> Vec<Column> {
    let number = |name: &str, values: &dyn Fn(&Trace) -> Option<&Vec<f64>>| {
        column(name, rows(cells), |(.., trace, i)| values(trace)?.get(i).copied())
    };
    let mut columns = vec![number("sq_error", &|trace| Some(&trace.sq_error))];
    for metric in Metric::ALL {
        columns.push(number(metric.column(), &|trace| match metric {
            Metric::SqErrorLimit => Some(&trace.sq_error_limit),
            _ => trace.further.iter().find(|(m, _)| m == metric).map(|(_, values)| values),
        }));
    }
    let height = rows(cells).count();
    let list = |name: &str, is_measured: bool, value: &dyn Fn(&Trace, usize) -> Vec<f64>| {
        let (name, kind) = (name.into(), DataType::Float64);
        if !is_measured {
            return Column::full_null(name, height, &DataType::List(Box::new(kind)));
        }
        let mut builder =
            ListPrimitiveChunkedBuilder::<Float64Type>::new(name, height, height, kind);
        rows(cells).for_each(|(.., trace, row)| builder.append_slice(&value(trace, row)));
        builder.finish().into_column()
    };
    let recorded = cells.iter().any(|new| new.cell.identity.record.iterates);
    columns.push(list("theta", recorded, &|trace, row| {
        let d = trace.theta.len() / trace.rows();
        trace.theta[row * d..][..d].to_vec()
    }));
    for name in TimeAverage::ALL {
        let found = |trace: &Trace| trace.averages.iter().position(|(n, _)| n == name);
        let any = cells.iter().flat_map(|new| &new.traces).any(|trace| found(trace).is_some());
        // One value per run, in its last row.
        columns.push(list(&name.column(), any, &|trace, row| {
            let average = found(trace).filter(|_| row + 1 == trace.rows());
            average.map_or(Vec::new(), |i| trace.averages[i].1.clone())
        }));
    }
    columns
}

/// Checks that the rows of a file are those of these cells, in this order: of each so many.
pub fn check_cells<'a>(
    bytes: &[u8],
    cells: impl IntoIterator<Item = (&'a str, usize)>,
) -> PolarsResult<()> {
    let frame = decode(bytes, Some(vec!["cell".to_owned()]))?;
    let (mut named, mut expected) = (frame.column("cell")?.str()?.iter(), 0_usize);
    for (cell, rows) in cells {
        expected = expected.saturating_add(rows);
        if let Some(other) = named.by_ref().take(rows).find(|name| *name != Some(cell)) {
            let other = other.unwrap_or("none");
            polars_bail!(ComputeError: "has rows of cell {other} where those of {cell} belong");
        }
    }
    match frame.height() {
        height if height == expected => Ok(()),
        height => polars_bail!(ComputeError: "has {height} rows, not {expected}"),
    }
}

/// The rows of a file, of these columns or of all.
pub fn decode(bytes: &[u8], columns: Option<Vec<String>>) -> PolarsResult<DataFrame> {
    let reader = ParquetReader::new(Cursor::new(bytes)).read_parallel(ParallelStrategy::None);
    reader.with_columns(columns).finish()
}

/// The rows of a file, column by column.
pub struct TraceRows {
    /// The bytes that they take, approximately.
    pub bytes: usize,
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
    /// All rows of a file, in which these optional columns have values.
    pub fn read(bytes: &[u8], optional: &[String]) -> PolarsResult<Self> {
        let costs = COSTS.iter().map(|(name, _)| *name);
        let required = ["replicate", "round", OUTCOME].into_iter().chain(costs);
        let columns = required.map(str::to_owned).chain(optional.iter().cloned()).collect();
        let frame = decode(bytes, Some(columns))?;
        let replicate: Vec<u32> = frame.column("replicate")?.u32()?.into_no_null_iter().collect();
        // Each replicate has a row, so that no number of one can ask for more room.
        if replicate.iter().any(|r| *r as usize >= replicate.len()) {
            polars_bail!(ComputeError: "has replicates without rows");
        }
        let outcome = frame.column(OUTCOME)?.str()?.iter();
        let outcome = outcome.map(|o| o.and_then(Outcome::named).unwrap_or_default()).collect();
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
        let mut cost = vec![Cost::default(); replicate.len()];
        for (name, field) in COSTS {
            let values = frame.column(name)?.u64()?.into_no_null_iter();
            cost.iter_mut().zip(values).for_each(|(cost, value)| *field(cost) = value);
        }
        let mut further = Vec::new();
        for metric in Metric::ALL {
            let values = number(metric.column())?;
            // The limit has a column of its own, whether or not it is among the metrics.
            if *metric != Metric::SqErrorLimit && !values.is_empty() {
                further.push((*metric, values));
            }
        }
        let mut averages = Vec::new();
        for name in TimeAverage::ALL {
            averages.extend(lists(&name.column())?.map(|values| (*name, values)));
        }
        Ok(Self {
            sq_error: number("sq_error")?,
            outcome,
            round: frame.column("round")?.u64()?.into_no_null_iter().collect(),
            cost,
            sq_error_limit: number("sq_error_limit")?,
            further,
            theta: lists("theta")?,
            averages,
            replicate,
            bytes: frame.estimated_size(),
        })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.replicate.len()
    }

    /// The final values of a measured quantity of the cell in these rows, one per replicate; `None` if
    /// it diverged, or has no such value.
    pub fn finals(&self, range: Range<usize>, of: Quantity) -> Vec<Option<f64>> {
        let mut finals: Vec<Option<f64>> = Vec::new();
        let further = || self.further.iter().find(|(metric, _)| metric.quantity() == of);
        let values = match of {
            Quantity::SqError => &self.sq_error[..],
            Quantity::SqErrorLimit => &self.sq_error_limit,
            _ => further().map_or(&[][..], |(_, values)| values),
        };
        for i in range {
            // Rows of a replicate are in the order of its rounds: the last one stays.
            let r = self.replicate[i] as usize;
            finals.resize(finals.len().max(r + 1), None);
            let value = values.get(i).copied().flatten();
            finals[r] = value.filter(|_| self.outcome[i] == Outcome::Finished);
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
            trace.sq_error.extend(self.sq_error.get(i).copied().flatten());
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
