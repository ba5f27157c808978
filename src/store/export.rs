//! All rows of all cells in one file, Parquet or CSV.
//!
//! *Invariant*: a row is that of the cell's own file, bit for bit, with nulls where the cell
//! has no such column; only the label is that of the last run. Rows are sorted by experiment,
//! cell, replicate and round. At no time is more in memory than one cell, or one pack, and one
//! group of rows.

use super::axes::{Leaves, SettingColumn, SettingValues, leaves};
use super::parquet::COSTS;
use super::{CellSummary, Status, Store};
use exactfed_core::words::inert;
use exactfed_runner::files::{Error, error, remove_leftovers, stream_atomically};
use exactfed_runner::manifest::{Metric, TimeAverage};
use exactfed_runner::plan::{Cell, Plan, Setting};
use exactfed_runner::runner::cost::expected_nanoseconds;
use polars::prelude::*;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Rows from which on a group is written.
const GROUP: usize = 1 << 16;

/// The format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Apache Parquet, zstd.
    Parquet,
    /// Comma-separated values, RFC 4180.
    Csv,
}

/// An experiment that is exported.
struct ExportedExperiment<'a> {
    plan: &'a Plan,
    /// The cells of its last run by id.
    last_run: HashMap<&'a str, &'a Cell>,
}

/// The result of an export.
#[derive(Debug, Default)]
pub struct Exported {
    /// Cells in the file.
    pub cells: usize,
    /// Rows in the file.
    pub rows: usize,
    /// The reason for each cell that was left out because it is damaged.
    pub damaged: Vec<Error>,
}

/// A cell whose file was checked.
struct CheckedCell<'a> {
    experiment: &'a ExportedExperiment<'a>,
    summary: CellSummary,
}

/// Writes all cells of these experiments, as they were last run, to `to`. Damaged cells are left
/// out and reported. Without any cell nothing is written.
///
/// # Errors
/// If the file cannot be written.
pub fn export(
    store: &Store,
    plans: &[Plan],
    to: &Path,
    format: ExportFormat,
) -> Result<Exported, Error> {
    let mut exported = Exported::default();
    let experiments: Vec<ExportedExperiment<'_>> =
        plans.iter().map(ExportedExperiment::new).collect();
    let mut rows = ExportedRows::new(store, &experiments, &mut exported.damaged)?;
    if rows.cells.is_empty() {
        return Ok(exported);
    }
    // As text, in every line, they would be half of the file.
    rows.columns.retain(|(name, _)| format == ExportFormat::Parquet || name != "settings");
    remove_leftovers(to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    stream_atomically(to, |file| {
        let metadata = metadata(plans, &rows.axes);
        let mut sink =
            Sink::new(file, format, &rows.schema(), metadata).map_err(|e| error(to, e))?;
        for cell in &rows.cells {
            let frame = match cell.read(store, &rows.columns, &rows.axes) {
                Ok(frame) => frame,
                Err(e) => {
                    exported.damaged.push(e);
                    continue;
                }
            };
            exported.cells += 1;
            exported.rows += frame.height();
            sink.add(frame).map_err(|e| error(to, e))?;
        }
        sink.finish().map_err(|e| error(to, e))
    })?;
    Ok(exported)
}

/// The rows that [`export`] writes to Parquet, in memory, and why cells are left out because
/// they are damaged; `None` if there are no cells.
///
/// # Errors
/// If the results cannot be read.
pub fn frame(store: &Store, plans: &[Plan]) -> Result<(Option<DataFrame>, Vec<Error>), Error> {
    let mut damaged = Vec::new();
    let experiments: Vec<ExportedExperiment<'_>> =
        plans.iter().map(ExportedExperiment::new).collect();
    let rows = ExportedRows::new(store, &experiments, &mut damaged)?;
    let read = |cell: &CheckedCell<'_>| cell.read(store, &rows.columns, &rows.axes);
    let frames: Vec<Result<DataFrame, Error>> = rows.cells.par_iter().map(read).collect();
    let mut all: Option<DataFrame> = None;
    for frame in frames {
        match (frame, &mut all) {
            (Ok(frame), None) => all = Some(frame),
            (Ok(frame), Some(all)) => {
                all.vstack_mut_owned(frame).map_err(|e| error(&store.root, e))?;
            }
            (Err(e), _) => damaged.push(e),
        }
    }
    Ok((all, damaged))
}

/// The cells that are exported, and their columns.
struct ExportedRows<'a> {
    cells: Vec<CheckedCell<'a>>,
    columns: Vec<(String, DataType)>,
    axes: Vec<SettingColumn>,
}

impl<'a> ExportedRows<'a> {
    /// Checks the cells of these experiments.
    fn new(
        store: &Store,
        experiments: &'a [ExportedExperiment<'a>],
        damaged: &mut Vec<Error>,
    ) -> Result<Self, Error> {
        let (mut cells, mut names, mut settings) = (Vec::new(), BTreeSet::new(), Vec::new());
        for experiment in experiments {
            let mut values = SettingValues::default();
            for id in store.ids(&experiment.plan.experiment)? {
                match experiment.check_cell(store, &id, &mut names, &mut values) {
                    Ok(cell) => cells.extend(cell),
                    Err(e) => damaged.push(e),
                }
            }
            settings.push(values);
        }
        let mut columns = columns();
        let taken: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let axes = SettingColumn::all(&settings, &taken);
        columns.retain(|(name, _)| OWN.contains(&&**name) || names.contains(name));
        Ok(Self { cells, columns, axes })
    }

    /// The names and types of all columns.
    fn schema(&self) -> Vec<(String, DataType)> {
        let axes = self.axes.iter().map(|axis| (axis.name.clone(), axis.kind.clone()));
        self.columns.iter().cloned().chain(axes).collect()
    }
}

/// The cells of a plan, one row each: their state, what their runs are expected to take in
/// seconds on so many threads, and every setting in which they differ.
///
/// # Errors
/// If the columns cannot be put together.
pub fn cells_frame(plan: &Plan, store: &Store, threads: usize) -> PolarsResult<DataFrame> {
    let settings = |cell: &Cell| {
        let own = cell.identity.canonical();
        let mut all = leaves(&own, defaults(cell, &own));
        // A column of its own has it.
        all.remove("rounds");
        all
    };
    let all: Vec<Leaves> = plan.cells.iter().map(settings).collect();
    let mut values = SettingValues::default();
    all.iter().for_each(|leaves| values.add(leaves.clone()));
    let status = |cell: &Cell| match store.status(&plan.experiment, &cell.id) {
        Status::Done => "done",
        Status::Missing => "missing",
        Status::Damaged(_) => "damaged",
        Status::Failed(_) => "failed",
    };
    let seconds =
        |cell: &Cell| expected_nanoseconds(&cell.identity) as f64 * 1e-9 / threads.max(1) as f64;
    fn text<T: AsRef<str>>(cells: &[Cell], name: &str, of: impl Fn(&Cell) -> T) -> Column {
        let all: StringChunked = cells.iter().map(|cell| Some(of(cell))).collect();
        all.with_name(name.into()).into_column()
    }
    let cells = &plan.cells;
    let mut columns = vec![
        text(cells, "cell", |cell| cell.id.clone()),
        text(cells, "problem", |cell| cell.identity.problem.kind().to_owned()),
        text(cells, "algorithm", |cell| cell.identity.algorithm.kind().to_owned()),
        text(cells, "label", |cell| cell.label.clone()),
        text(cells, "state", status),
        Column::new("rounds".into(), cells.iter().map(|c| c.identity.rounds).collect::<Vec<_>>()),
        Column::new("runs".into(), cells.iter().map(|c| c.identity.runs()).collect::<Vec<_>>()),
        Column::new("seconds".into(), cells.iter().map(seconds).collect::<Vec<_>>()),
    ];
    let taken: Vec<String> = columns.iter().map(|column| column.name().to_string()).collect();
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    for axis in SettingColumn::all(&[values], &taken) {
        let mut all = all.iter().map(|leaves| axis.column(leaves, 1));
        let Some(mut column) = all.next() else { continue };
        all.try_for_each(|next| column.append_owned(next).map(drop))?;
        columns.push(column);
    }
    DataFrame::new(cells.len(), columns)
}

/// The metadata of the file.
fn metadata(plans: &[Plan], axes: &[SettingColumn]) -> Vec<(String, String)> {
    let manifest =
        |plan: &Plan| (format!("exactfed.manifest.{}", plan.experiment), plan.source.text.clone());
    let mut metadata: BTreeMap<String, String> = plans.iter().map(manifest).collect();
    let axes: serde_json::Map<String, serde_json::Value> =
        axes.iter().map(|axis| (axis.name.clone(), axis.path.clone().into())).collect();
    metadata.insert("exactfed.axes".into(), serde_json::Value::Object(axes).to_string());
    metadata.into_iter().collect()
}

impl<'a> ExportedExperiment<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { plan, last_run: plan.cells.iter().map(|cell| (&*cell.id, cell)).collect() }
    }

    /// Checks the file of a cell, and adds its columns to `names` and its settings to `values`;
    /// `None` if it has no results.
    fn check_cell(
        &self,
        store: &Store,
        id: &str,
        names: &mut BTreeSet<String>,
        values: &mut SettingValues,
    ) -> Result<Option<CheckedCell<'_>>, Error> {
        let Some((batch, i)) = store.find(&self.plan.experiment, id)? else { return Ok(None) };
        let (columns, settings) = (batch.columns()?, batch.settings(i)?);
        for column in columns {
            if !names.contains(column) {
                names.insert(column.clone());
            }
        }
        values.add(self.leaves(id, &settings));
        Ok(Some(CheckedCell { experiment: self, summary: batch.summary(i) }))
    }

    /// The settings of one of its cells.
    fn leaves(&self, id: &str, settings: &toml::Table) -> Leaves {
        leaves(
            settings,
            self.last_run.get(id).into_iter().flat_map(|cell| defaults(cell, settings)),
        )
    }
}

/// The values of a cell's axes that are defaults, and so not among the settings that its id
/// hashes, by path.
fn defaults<'a>(
    cell: &'a Cell,
    settings: &toml::Table,
) -> impl Iterator<Item = (&'a str, &'a Setting)> {
    let is_part = |path: &str| {
        let mut parts = path.split('.');
        let first = parts.next().and_then(|part| settings.get(part));
        parts.try_fold(first, |value, part| value.map(|value| value.get(part))).flatten().is_some()
    };
    // A budget is part of the id by the rounds that it comes to.
    let axes =
        cell.varied.iter().filter(move |path| !path.starts_with("budget.") && !is_part(path));
    axes.filter_map(|path| Some((path.as_str(), cell.settings.at_path(path)?)))
}

/// Columns of the program that computed a row and of the settings of its cell.
const OWN: [&str; 7] = ["seed", "settings", "digest", "version", "commit", "dirty", "last_run"];

/// All possible columns in their order.
fn columns() -> Vec<(String, DataType)> {
    use DataType::{Boolean, Float64, String as Text, UInt32, UInt64};
    let list = DataType::List(Box::new(Float64));
    let mut all: Vec<(String, DataType)> =
        ["experiment", "cell", "problem", "algorithm", "label"].map(|n| (n.into(), Text)).into();
    all.extend([("clients".into(), UInt32), ("step_size".into(), Float64)]);
    all.extend([("local_steps".into(), UInt64)]);
    all.extend(["instance", "replicate"].map(|name| (name.into(), UInt32)));
    all.push(("round".into(), UInt64));
    all.extend(COSTS.map(|(name, _)| (name.into(), UInt64)));
    all.push(("sq_error".into(), Float64));
    all.extend(Metric::ALL.iter().map(|m| (m.column().into(), Float64)));
    all.push(("theta".into(), list.clone()));
    all.extend(TimeAverage::ALL.iter().map(|a| (a.column(), list.clone())));
    all.push(("outcome".into(), Text));
    let own = [UInt64, Text, Text, Text, Text, Boolean, Boolean];
    all.extend(OWN.iter().zip(own).map(|(name, kind)| ((*name).into(), kind)));
    all
}

impl CheckedCell<'_> {
    /// The rows of the cell with these columns, and those of its settings.
    fn read(
        &self,
        store: &Store,
        columns: &[(String, DataType)],
        axes: &[SettingColumn],
    ) -> Result<DataFrame, Error> {
        let (experiment, summary) = (self.experiment, &self.summary);
        let (name, id) = (&experiment.plan.experiment, &summary.id);
        let path = store.cell_folder(name, id);
        let frame = store.read_frame(name, id)?;
        let rows = frame.height();
        let settings = store.settings(name, id)?;
        let column = |(name, kind): &(String, DataType)| {
            if let Some(column) = self.constant_column(name, rows, &settings)? {
                return Ok(column);
            }
            match frame.column(name) {
                Ok(column) if column.dtype() == kind => Ok(column.clone()),
                Ok(column) => {
                    let found = column.dtype();
                    let message = format!("the column `{name}` is of type {found}, not {kind}");
                    Err(error(&path, message))
                }
                Err(_) => Ok(Column::full_null((&**name).into(), rows, kind)),
            }
        };
        let mut columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let leaves = experiment.leaves(id, &settings);
        columns.extend(axes.iter().map(|axis| axis.column(&leaves, rows)));
        DataFrame::new(rows, columns).map_err(|e| error(&path, e))
    }

    /// A column that does not come from the cell's file; `None` if this one does.
    fn constant_column(
        &self,
        name: &str,
        rows: usize,
        settings: &toml::Table,
    ) -> Result<Option<Column>, Error> {
        let (experiment, summary) = (self.experiment, &self.summary);
        let (by, planned) = (&summary.provenance, experiment.last_run.get(&*summary.id));
        let text = |value: &str| StringChunked::full(name.into(), value, rows).into_column();
        let flag = |value| BooleanChunked::full(name.into(), value, rows).into_column();
        Ok(Some(match name {
            "experiment" => text(&experiment.plan.experiment),
            // Labels do not enter the id: that of the last run may be another than the stored one.
            "label" => text(planned.map_or(&summary.label, |planned| &planned.label)),
            "seed" => {
                let seed = settings.get("seed").and_then(toml::Value::as_integer);
                let seed = seed.unwrap_or_default() as u64;
                UInt64Chunked::full(name.into(), seed, rows).into_column()
            }
            "settings" => {
                let json = serde_json::to_string(settings);
                text(&json.map_err(|e| error(Path::new(&summary.id), e))?)
            }
            "digest" => text(&summary.digest),
            "version" => text(&by.version),
            "commit" => text(&by.commit),
            "dirty" => flag(by.dirty),
            "last_run" => flag(planned.is_some()),
            _ => return Ok(None),
        }))
    }
}

/// The file that rows are written to.
enum Sink<'a> {
    /// The writer of groups of rows, and the rows that wait for the next group.
    Parquet(Box<BatchedParquet<'a>>, Option<DataFrame>),
    Csv(Box<csv::Writer<BufWriter<&'a mut File>>>),
}

type BatchedParquet<'a> = polars::io::parquet::write::BatchedWriter<BufWriter<&'a mut File>>;

impl<'a> Sink<'a> {
    fn new(
        file: &'a mut File,
        format: ExportFormat,
        columns: &[(String, DataType)],
        metadata: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let file = BufWriter::new(file);
        match format {
            ExportFormat::Parquet => {
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
            ExportFormat::Csv => {
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
            Self::Csv(writer) => write_lines(&frame, writer),
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

/// Writes rows as lines of CSV: numbers with all their digits, nulls empty, lists as
/// numbers with spaces between.
fn write_lines<W: Write>(frame: &DataFrame, writer: &mut csv::Writer<W>) -> Result<(), String> {
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
