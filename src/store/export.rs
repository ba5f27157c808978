//! All rows of all cells in one file, Parquet or CSV.
//!
//! *Invariant*: a row is what the cell's own file holds, bit for bit, with nulls where
//! the cell has no such column; rows stand by experiment, cell, replicate and round. At
//! no time is more in memory than one cell and one group of rows.

use super::axes::{Axis, Leaves, Survey, leaves};
use super::{CellSummary, Kept, Store, TRACES};
use driftbench_core::words::inert;
use driftbench_runner::files::{Error, error, remove_leftovers, stream_atomically};
use driftbench_runner::manifest::{Metric, TimeAverage};
use driftbench_runner::plan::Setting;
use polars::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufWriter, Cursor, Write};
use std::path::Path;

/// Rows from which on a group is written.
const GROUP: usize = 1 << 16;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet, zstd.
    Parquet,
    /// Comma-separated values, RFC 4180.
    Csv,
}

/// An experiment that is exported.
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// Its manifest's text.
    pub manifest: String,
    /// The cells of its last run by id, with the defaults that its manifest names as values
    /// of an axis: such a setting is not part of the id.
    pub last_run: HashMap<String, Vec<(String, Setting)>>,
}

/// What was exported.
#[derive(Debug, Default)]
pub struct Exported {
    /// Cells in the file.
    pub cells: usize,
    /// Rows in the file.
    pub rows: usize,
    /// Cells that are not as they were written, and why.
    pub damaged: Vec<Error>,
}

/// A cell whose file was found sound.
struct Found<'a> {
    experiment: &'a Chosen,
    record: CellSummary,
}

/// Writes all cells of these experiments to `to`, beside its place and renamed. What is
/// damaged is left out and told. Without any cell nothing is written.
///
/// # Errors
/// If the file cannot be written.
pub fn export(
    store: &Store,
    experiments: &[Chosen],
    to: &Path,
    format: Format,
) -> Result<Exported, Error> {
    let mut told = Exported::default();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let (mut cells, mut surveys) = (Vec::new(), Vec::new());
    for experiment in experiments {
        surveys.push(Survey::default());
        for id in store.ids(&experiment.name)? {
            match look(store, &experiment.name, &id) {
                Ok(Some((record, columns, settings))) => {
                    names.extend(columns);
                    let survey = surveys.last_mut();
                    survey.into_iter().for_each(|s| s.add(experiment.leaves(&id, &settings)));
                    cells.push(Found { experiment, record });
                }
                Ok(None) => {}
                Err(e) => told.damaged.push(e),
            }
        }
    }
    if cells.is_empty() {
        return Ok(told);
    }
    let mut columns = columns();
    let taken: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let axes = Axis::all(&surveys, &taken);
    columns.retain(|(name, _)| OWN.contains(&&**name) || names.contains(name));
    // As text, a line each, they would be half of the file.
    columns.retain(|(name, _)| format == Format::Parquet || name != "settings");
    remove_leftovers(to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    stream_atomically(to, |file| {
        let mut all = columns.clone();
        all.extend(axes.iter().map(|axis| (axis.name.clone(), axis.data_type())));
        let metadata = metadata(experiments, &axes);
        let mut sink = Sink::new(file, format, &all, metadata).map_err(|e| error(to, e))?;
        for cell in &cells {
            let frame = match read(store, cell, &columns, &axes) {
                Ok(frame) => frame,
                Err(e) => {
                    told.damaged.push(e);
                    continue;
                }
            };
            told.cells += 1;
            told.rows += frame.height();
            sink.add(frame).map_err(|e| error(to, e))?;
        }
        sink.finish().map_err(|e| error(to, e))
    })?;
    Ok(told)
}

impl Chosen {
    /// The settings of one of its cells.
    fn leaves(&self, id: &str, settings: &toml::Table) -> Leaves {
        leaves(settings, self.last_run.get(id).map_or(&[], Vec::as_slice))
    }
}

/// What the file says of itself.
fn metadata(experiments: &[Chosen], axes: &[Axis]) -> Vec<(String, String)> {
    let manifest = |e: &Chosen| (format!("driftbench.manifest.{}", e.name), e.manifest.clone());
    let mut metadata: BTreeMap<String, String> = experiments.iter().map(manifest).collect();
    let axes: serde_json::Map<String, serde_json::Value> =
        axes.iter().map(|axis| (axis.name.clone(), axis.path.clone().into())).collect();
    metadata.insert("driftbench.axes".into(), serde_json::Value::Object(axes).to_string());
    metadata.into_iter().collect()
}

/// What is written down of a sound cell, the columns that it has, and its settings.
type Look = (CellSummary, Vec<String>, toml::Table);

/// Looks at a cell; `None` if it has no results.
fn look(store: &Store, experiment: &str, id: &str) -> Result<Option<Look>, Error> {
    let frame = match store.find(experiment, id)? {
        None => return Ok(None),
        Some(Kept::Alone(record)) => {
            let bytes = store.bytes(experiment, &record)?;
            let schema = ParquetReader::new(Cursor::new(bytes))
                .schema()
                .map_err(|e| error(&store.cell_folder(experiment, id).join(TRACES), e))?;
            let names = schema.iter_names().map(ToString::to_string).collect();
            return Ok(Some((record.summary(), names, record.cell)));
        }
        Some(Kept::Packed(cell)) => {
            (cell.summary(), frame(store, experiment, id)?, cell.settings()?)
        }
    };
    let (summary, frame, settings) = frame;
    let full = frame.columns().iter().filter(|column| column.null_count() < column.len());
    let full = full.map(|column| column.name().to_string()).collect();
    Ok(Some((summary, full, settings)))
}

/// The rows of a sound cell.
fn frame(store: &Store, experiment: &str, id: &str) -> Result<DataFrame, Error> {
    let kept = store.found(experiment, id)?;
    store.rows(experiment, kept, |_, rows, range| rows.frame.slice(range.start as i64, range.len()))
}

/// Columns that say who computed a row and of what settings it is.
const OWN: [&str; 7] = ["seed", "settings", "digest", "version", "commit", "dirty", "last_run"];

/// All columns that there may be, in their order.
fn columns() -> Vec<(String, DataType)> {
    use DataType::{Boolean, Float64, String as Text, UInt32, UInt64};
    let list = DataType::List(Box::new(Float64));
    let mut all: Vec<(String, DataType)> =
        ["experiment", "cell", "problem", "algorithm", "label"].map(|n| (n.into(), Text)).into();
    all.extend([("clients".into(), UInt32), ("step_size".into(), Float64)]);
    all.extend([("local_steps".into(), UInt64), ("replicate".into(), UInt32)]);
    let counts = [
        "round",
        "local_step",
        "communications",
        "oracle_calls",
        "sequential_calls",
        "vectors_sent",
        "bytes_sent",
    ];
    all.extend(counts.map(|n| (n.into(), UInt64)));
    all.push(("sq_error".into(), Float64));
    all.extend(Metric::ALL.iter().map(|m| (m.column().into(), Float64)));
    all.push(("theta".into(), list.clone()));
    all.extend(TimeAverage::ALL.iter().map(|a| (a.column(), list.clone())));
    all.push(("outcome".into(), Text));
    let own = [UInt64, Text, Text, Text, Text, Boolean, Boolean];
    all.extend(OWN.iter().zip(own).map(|(name, kind)| ((*name).into(), kind)));
    all
}

/// A cell's rows with these columns, and those of its settings.
fn read(
    store: &Store,
    cell: &Found<'_>,
    columns: &[(String, DataType)],
    axes: &[Axis],
) -> Result<DataFrame, Error> {
    let (experiment, record) = (cell.experiment, &cell.record);
    let path = store.cell_folder(&experiment.name, &record.id);
    let frame = frame(store, &experiment.name, &record.id)?;
    let rows = frame.height();
    let table = store.settings(&experiment.name, &record.id)?;
    let settings = serde_json::to_string(&table).map_err(|e| error(&path, e))?;
    let by = &record.provenance;
    let text =
        |name: &str, value: &str| StringChunked::full(name.into(), value, rows).into_column();
    let yes = |name: &str, value| BooleanChunked::full(name.into(), value, rows).into_column();
    let own = |name: &str| match name {
        "seed" => {
            let seed = table.get("seed").and_then(toml::Value::as_integer);
            UInt64Chunked::full(name.into(), seed.unwrap_or_default() as u64, rows).into_column()
        }
        "settings" => text(name, &settings),
        "digest" => text(name, &record.digest),
        "version" => text(name, &by.version),
        "commit" => text(name, &by.commit),
        "dirty" => yes(name, by.dirty),
        _ => yes(name, experiment.last_run.contains_key(&record.id)),
    };
    let column = |(name, kind): &(String, DataType)| match frame.column(name) {
        _ if OWN.contains(&&**name) => Ok(own(name)),
        _ if name == "experiment" => Ok(text(name, &experiment.name)),
        Ok(column) if column.dtype() == kind => Ok(column.clone()),
        Ok(column) => {
            let have = column.dtype();
            Err(error(&path, format!("the column `{name}` is of type {have}, not {kind}")))
        }
        Err(_) => Ok(Column::full_null((&**name).into(), rows, kind)),
    };
    let mut columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let leaves = experiment.leaves(&record.id, &table);
    columns.extend(axes.iter().map(|axis| axis.column(&leaves, rows)));
    DataFrame::new(rows, columns).map_err(|e| error(&path, e))
}

/// Where rows go.
enum Sink<'a> {
    /// Groups of rows, and those that wait for the next.
    Parquet(Box<BatchedParquet<'a>>, Option<DataFrame>),
    Csv(Box<csv::Writer<BufWriter<&'a mut File>>>),
}

type BatchedParquet<'a> = polars::io::parquet::write::BatchedWriter<BufWriter<&'a mut File>>;

impl<'a> Sink<'a> {
    fn new(
        file: &'a mut File,
        format: Format,
        columns: &[(String, DataType)],
        metadata: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let file = BufWriter::new(file);
        match format {
            Format::Parquet => {
                let field =
                    |(name, kind): &(String, DataType)| Field::new((&**name).into(), kind.clone());
                let schema: Schema = columns.iter().map(field).collect();
                let metadata = KeyValueMetadata::from_static(metadata);
                ParquetWriter::new(file)
                    .with_compression(ParquetCompression::Zstd(None))
                    .set_parallel(false)
                    .with_key_value_metadata(Some(metadata))
                    .batched(&schema)
                    .map(|writer| Self::Parquet(Box::new(writer), None))
                    .map_err(|e| e.to_string())
            }
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(file);
                let names = columns.iter().map(|(name, _)| name);
                writer.write_record(names).map_err(|e| e.to_string())?;
                Ok(Self::Csv(Box::new(writer)))
            }
        }
    }

    fn add(&mut self, frame: DataFrame) -> Result<(), String> {
        match self {
            Self::Parquet(writer, waiting) => {
                let mut all = match waiting.take() {
                    Some(mut before) => {
                        before.vstack_mut_owned(frame).map_err(|e| e.to_string())?;
                        before
                    }
                    None => frame,
                };
                if all.height() < GROUP {
                    *waiting = Some(all);
                    return Ok(());
                }
                writer.write_batch(all.rechunk_mut()).map_err(|e| e.to_string())
            }
            Self::Csv(writer) => lines(&frame, writer),
        }
    }

    fn finish(self) -> Result<(), String> {
        match self {
            Self::Parquet(mut writer, waiting) => {
                if let Some(mut last) = waiting {
                    writer.write_batch(last.rechunk_mut()).map_err(|e| e.to_string())?;
                }
                writer.finish().map(drop).map_err(|e| e.to_string())
            }
            Self::Csv(mut writer) => writer.flush().map_err(|e| e.to_string()),
        }
    }
}

/// The rows as lines of CSV: numbers with all their digits, nulls empty, lists as
/// numbers with spaces between.
fn lines<W: Write>(frame: &DataFrame, writer: &mut csv::Writer<W>) -> Result<(), String> {
    for row in 0..frame.height() {
        for column in frame.columns() {
            let value = column.get(row).map_err(|e| e.to_string())?;
            let text = match value {
                AnyValue::Null => String::new(),
                AnyValue::Float64(x) => format!("{x:?}"),
                AnyValue::String(text) => inert(text).into_owned(),
                AnyValue::List(values) => {
                    let values = values.f64().map_err(|e| e.to_string())?;
                    let all: Vec<String> =
                        values.into_no_null_iter().map(|x| format!("{x:?}")).collect();
                    all.join(" ")
                }
                other => other.to_string(),
            };
            writer.write_field(text).map_err(|e| e.to_string())?;
        }
        writer.write_record(None::<&[u8]>).map_err(|e| e.to_string())?;
    }
    Ok(())
}
