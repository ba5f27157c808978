//! All rows of all cells in one file, Parquet or CSV.
//!
//! *Invariant*: a row is that of the cell's pack, bit for bit; only the label is that of the last
//! run. The cells of an experiment come in the order of its grid, and those of earlier settings by
//! their ids after them, each with its rows by replicate and round. A pack has its cells in the order
//! in which they finished, which is nearly that of the grid: for each portion of the cells, whose rows
//! have about [`PORTION`] bytes, the packs that hold some of it are read, one by each thread at a
//! time. So most packs are read once or twice, and a reader that looks for a setting skips the groups
//! of rows that do not have it.

use super::axes::{Leaves, SettingColumn, SettingValues, leaves, name_files};
use super::pack::{Pack, PackLine};
use super::parquet;
pub use super::parquet::column;
pub use super::sink::ExportFormat;
use super::sink::Sink;
use super::{Provenance, Status, Store};
use exactfed_runner::files::{Error, error, stream_named};
use exactfed_runner::plan::{Cell, CellId, Plan, Setting};
use exactfed_runner::runner::cost::expected_nanoseconds;
use exactfed_runner::runner::memory;
use polars::prelude::*;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the rows that are sorted at a time, approximately.
const PORTION: usize = 1 << 24;
/// Bytes of the texts of a row, approximately.
const TEXTS: usize = 128;

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
    let mut rows = ExportedRows::new(store, plans, &mut exported.damaged)?;
    if rows.experiments.iter().all(|experiment| experiment.cells.is_empty()) {
        return Ok(exported);
    }
    // As text, in every line, they would be half of the file.
    rows.columns.retain(|name, _| format == ExportFormat::Parquet || name != "settings");
    stream_named(to, |file| {
        let metadata = metadata(plans, &rows.axes);
        let mut sink =
            Sink::new(file, format, &rows.schema(), metadata).map_err(|e| error(to, e))?;
        rows.read(&mut exported, &mut |frame| sink.add(frame).map_err(|e| error(to, e)))?;
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
    let mut exported = Exported::default();
    let rows = ExportedRows::new(store, plans, &mut exported.damaged)?;
    let mut all = None;
    rows.read(&mut exported, &mut |frame| {
        parquet::append(&mut all, frame).map_err(|e| error(&store.root, e))
    })?;
    Ok((all, exported.damaged))
}

/// The cells that are exported, and their columns.
struct ExportedRows<'a> {
    experiments: Vec<SoundCells<'a>>,
    columns: Schema,
    axes: Vec<SettingColumn>,
}

/// The cells of an experiment whose numbers are as they were written.
struct SoundCells<'a> {
    plan: &'a Plan,
    /// The places of the cells of its last run by their ids.
    last_run: HashMap<CellId, usize>,
    packs: Vec<Arc<Pack>>,
    /// The number of its pack and its number there, for each cell in the order of ids.
    cells: Vec<(usize, usize)>,
    /// The bytes of a row of each pack, approximately.
    row_bytes: Vec<usize>,
}

/// What the check of a pack finds.
#[derive(Default)]
struct CheckedPack {
    sound: Vec<usize>,
    damaged: Vec<Error>,
    settings: SettingValues,
    row_bytes: usize,
}

impl<'a> ExportedRows<'a> {
    /// Checks the cells of these experiments.
    fn new(store: &Store, plans: &'a [Plan], damaged: &mut Vec<Error>) -> Result<Self, Error> {
        let (mut all, mut names, mut settings) = (Vec::new(), BTreeSet::new(), Vec::new());
        for plan in plans {
            let packs = store.packs(&plan.experiment)?;
            damaged.extend(packs.damaged.iter().map(|(_, e)| e.clone()));
            let places = plan.cells.iter().enumerate();
            let last_run = places.map(|(place, cell)| (cell.id, place)).collect();
            let (cells, row_bytes) = (Vec::new(), Vec::new());
            let mut sound =
                SoundCells { plan, last_run, packs: packs.packs.clone(), cells, row_bytes };
            let check = |k: usize| sound.check(&packs.packs[k], packs.current(k));
            let checked: Vec<Result<CheckedPack, Error>> =
                (0..packs.packs.len()).into_par_iter().map(check).collect();
            let mut values = SettingValues::default();
            for (k, checked) in checked.into_iter().enumerate() {
                let found = checked
                    .unwrap_or_else(|e| CheckedPack { damaged: vec![e], ..CheckedPack::default() });
                if !found.sound.is_empty() {
                    names.extend(packs.packs[k].head.columns.iter().cloned());
                }
                sound.cells.extend(found.sound.into_iter().map(|i| (k, i)));
                damaged.extend(found.damaged);
                values.merge(found.settings);
                sound.row_bytes.push(found.row_bytes);
            }
            sound.cells.sort_by_cached_key(|(k, i)| {
                let id = packs.packs[*k].cells[*i].record.id;
                (sound.last_run.get(&id).copied().unwrap_or(usize::MAX), id)
            });
            settings.push(values);
            all.push(sound);
        }
        let mut columns = parquet::schema();
        columns.extend(own_columns());
        let taken: Vec<&str> = columns.iter_names().map(|name| name.as_str()).collect();
        let axes = SettingColumn::all(&settings, &taken);
        let optional = parquet::optional();
        columns.retain(|name, _| !optional.contains(&name.to_string()) || names.contains(&**name));
        Ok(Self { experiments: all, columns, axes })
    }

    /// The names and types of all columns.
    fn schema(&self) -> Schema {
        let mut schema = self.columns.clone();
        schema.extend(self.axes.iter().map(|axis| (axis.name.as_str().into(), axis.kind.clone())));
        schema
    }

    /// Hands all rows to `add`, some cells at a time.
    fn read(
        &self,
        exported: &mut Exported,
        add: &mut dyn FnMut(DataFrame) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for sound in &self.experiments {
            for range in sound.portions() {
                let parts = sound.parts(range, self, &mut exported.damaged);
                if parts.is_empty() {
                    continue;
                }
                let (cells, frame) = sound
                    .portion(parts, self)
                    .map_err(|e| error(Path::new(&sound.plan.experiment), e))?;
                exported.cells += cells;
                exported.rows += frame.height();
                add(frame)?;
            }
        }
        Ok(())
    }
}

/// These rows of a frame, column by column: [`DataFrame::take`] waits for threads of polars, which a
/// forked process does not have.
fn taken(frame: &DataFrame, rows: Vec<IdxSize>) -> PolarsResult<DataFrame> {
    let rows = IdxCa::from_vec("".into(), rows);
    let columns: PolarsResult<Vec<Column>> =
        frame.columns().iter().map(|column| column.take(&rows)).collect();
    DataFrame::new(rows.len(), columns?)
}

/// Cells of a pack in a portion.
struct PackPart {
    /// The place of each in the portion, its number of rows, and what is known of it.
    cells: Vec<(usize, usize, ExportedCell)>,
    /// Their rows.
    frame: DataFrame,
}

/// What all rows of a cell share.
struct ExportedCell {
    label: String,
    seed: u64,
    settings: String,
    digest: String,
    provenance: Provenance,
    last_run: bool,
    axes: Leaves,
}

impl SoundCells<'_> {
    /// The cell of this id in the last run.
    fn planned(&self, id: &str) -> Option<&Cell> {
        self.last_run.get(&CellId::read(id)?).map(|place| &self.plan.cells[*place])
    }

    /// Checks these cells of a pack.
    fn check(&self, pack: &Pack, cells: Vec<usize>) -> Result<CheckedPack, Error> {
        let (rows, lines) = (pack.read()?, pack.lines(cells.iter().copied())?);
        let row_bytes = TEXTS + rows.bytes / rows.len().max(1);
        let mut checked = CheckedPack { row_bytes, ..CheckedPack::default() };
        for (i, line) in cells.into_iter().zip(lines) {
            if let Err(e) = pack.traces(&rows, i) {
                checked.damaged.push(e);
                continue;
            }
            let settings = line.settings().map_err(|e| error(&pack.path, e))?;
            checked.settings.add(self.leaves(&line.id, &settings));
            checked.sound.push(i);
        }
        Ok(checked)
    }

    /// The settings of one of its cells.
    fn leaves(&self, id: &str, settings: &toml::Table) -> Leaves {
        let cell = self.planned(id);
        let mut all = leaves(settings, cell.into_iter().flat_map(|cell| defaults(cell, settings)));
        if let Some(cell) = cell {
            name_files(&mut all, cell);
        }
        all
    }

    /// The cells in portions.
    fn portions(&self) -> Vec<Range<usize>> {
        let (mut ranges, mut from, mut bytes) = (Vec::new(), 0, 0);
        for (place, &(k, i)) in self.cells.iter().enumerate() {
            bytes += self.packs[k].rows(i).len() * self.row_bytes[k];
            if bytes >= PORTION || place + 1 == self.cells.len() {
                ranges.push(from..place + 1);
                (from, bytes) = (place + 1, 0);
            }
        }
        ranges
    }

    /// The cells of a portion in the packs that hold them.
    fn parts(
        &self,
        portion: Range<usize>,
        all: &ExportedRows<'_>,
        damaged: &mut Vec<Error>,
    ) -> Vec<PackPart> {
        let mut by_pack: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (place, &(k, i)) in self.cells[portion].iter().enumerate() {
            by_pack.entry(k).or_default().push((place, i));
        }
        let by_pack: Vec<_> = by_pack.into_iter().collect();
        let read = by_pack.par_iter().map(|(k, chosen)| self.part(&self.packs[*k], chosen, all));
        let read: Vec<Result<PackPart, Error>> = read.collect();
        read.into_iter().filter_map(|part| part.map_err(|e| damaged.push(e)).ok()).collect()
    }

    /// These cells of a pack, each with its place in the portion.
    fn part(
        &self,
        pack: &Pack,
        chosen: &[(usize, usize)],
        all: &ExportedRows<'_>,
    ) -> Result<PackPart, Error> {
        let own = own_columns();
        let stored = all.columns.iter_names().filter(|name| !own.contains(name));
        let frame = pack.frame(stored.map(|name| name.to_string()).collect())?;
        let rows: Vec<IdxSize> =
            chosen.iter().flat_map(|(_, i)| pack.rows(*i)).map(|row| row as IdxSize).collect();
        let frame = taken(&frame, rows).map_err(|e| error(&pack.path, e));
        let lines = pack.lines(chosen.iter().map(|(_, i)| *i))?;
        let cell = |(&(place, i), line): (&(usize, usize), PackLine)| -> Result<_, Error> {
            let settings = line.settings().map_err(|e| error(&pack.path, e))?;
            let planned = self.planned(&line.id);
            let seed = settings.get("seed").and_then(toml::Value::as_integer);
            let mut axes = self.leaves(&line.id, &settings);
            axes.retain(|path, _| all.axes.iter().any(|axis| axis.path == *path));
            let facts = ExportedCell {
                // Labels do not enter the id: that of the last run may be another than the stored one.
                label: planned.map_or(line.label, |planned| planned.label.clone()),
                seed: seed.unwrap_or_default() as u64,
                settings: serde_json::to_string(&settings).map_err(|e| error(&pack.path, e))?,
                digest: line.digest.to_string(),
                provenance: pack.head.provenance.clone(),
                last_run: planned.is_some(),
                axes,
            };
            Ok((place, pack.rows(i).len(), facts))
        };
        let cells = chosen.iter().zip(lines).map(cell).collect::<Result<_, _>>()?;
        Ok(PackPart { cells, frame: frame? })
    }

    /// The number of cells in these parts of a portion, and their rows in order.
    fn portion(
        &self,
        parts: Vec<PackPart>,
        all: &ExportedRows<'_>,
    ) -> PolarsResult<(usize, DataFrame)> {
        let (mut stored, mut cells, mut from) = (None, Vec::new(), 0);
        for part in parts {
            for (place, rows, facts) in part.cells {
                cells.push((place, from..from + rows, facts));
                from += rows;
            }
            parquet::append(&mut stored, part.frame)?;
        }
        cells.sort_by_key(|(place, ..)| *place);
        let rows = cells.iter().flat_map(|(_, rows, _)| rows.clone());
        let rows: Vec<IdxSize> = rows.map(|row| row as IdxSize).collect();
        let owners = cells.iter().enumerate();
        let owners = owners.flat_map(|(i, (_, rows, _))| std::iter::repeat_n(i, rows.len()));
        let owners: Vec<IdxSize> = owners.map(|i| i as IdxSize).collect();
        let mut stored = stored.unwrap_or_default();
        stored.rechunk_mut();
        let stored = taken(&stored, rows)?;
        let facts: Vec<ExportedCell> = cells.into_iter().map(|(.., facts)| facts).collect();
        let mut own = facts_columns(&facts);
        for axis in &all.axes {
            own.push(axis.column(facts.iter().map(|cell| &cell.axes))?);
        }
        let own = taken(&DataFrame::new(facts.len(), own)?, owners)?;
        let column = |(name, kind): (PlSmallStr, DataType)| -> PolarsResult<Column> {
            let column = own.column(&name).or_else(|_| stored.column(&name))?;
            match column.dtype() {
                found if *found == kind => Ok(column.clone()),
                found => polars_bail!(
                    ComputeError: "the column `{name}` is of type {found}, not {kind}"
                ),
            }
        };
        let columns = all.schema().into_iter().map(column).collect::<PolarsResult<Vec<_>>>()?;
        Ok((facts.len(), DataFrame::new(stored.height(), columns)?))
    }
}

/// What is known of each cell but its axes, one row for each.
fn facts_columns(cells: &[ExportedCell]) -> Vec<Column> {
    vec![
        column("label", cells, |cell| cell.label.as_str()),
        column("seed", cells, |cell| cell.seed),
        column("settings", cells, |cell| cell.settings.as_str()),
        column("digest", cells, |cell| cell.digest.as_str()),
        column("version", cells, |cell| cell.provenance.version.as_str()),
        column("commit", cells, |cell| cell.provenance.commit.as_str()),
        column("dirty", cells, |cell| cell.provenance.dirty),
        column("last_run", cells, |cell| cell.last_run),
    ]
}

/// The label, which follows the last run, and the columns that packs do not have, in their order.
fn own_columns() -> Schema {
    parquet::types(&facts_columns(&[]))
}

/// The cells of a plan, one row each: their state, the seconds that their runs are expected to take
/// on so many threads and the memory on one, and every setting in which they differ.
///
/// # Errors
/// If the columns cannot be put together.
pub fn cells_frame(plan: &Plan, store: &Store, threads: usize) -> PolarsResult<DataFrame> {
    let settings = |cell: &Cell| {
        let own = cell.identity.canonical();
        let mut all = leaves(&own, defaults(cell, &own));
        name_files(&mut all, cell);
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
    let cells = &plan.cells;
    let mut columns = vec![
        column("cell", cells, |cell| cell.id.as_str()),
        column("problem", cells, |cell| cell.identity.problem.kind()),
        column("algorithm", cells, |cell| cell.identity.algorithm.kind()),
        column("label", cells, |cell| cell.label.as_str()),
        column("state", cells, status),
        column("rounds", cells, |cell| cell.identity.rounds),
        column("runs", cells, |cell| cell.identity.runs()),
        column("seconds", cells, seconds),
        column("memory", cells, memory::of_cell),
    ];
    let taken: Vec<&str> = columns.iter().map(|column| column.name().as_str()).collect();
    for axis in SettingColumn::all(&[values], &taken) {
        columns.push(axis.column(all.iter())?);
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
