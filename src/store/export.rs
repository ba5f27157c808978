//! All rows of all cells in one file, Parquet or CSV.
//!
//! *Invariant*: a row has the bits that the cell's pack has; only the label comes from the last run.
//! The cells of an experiment come in the order of its grid, then cells of earlier settings by their
//! ids, each with its rows by replicate and round. So a reader that looks for a setting skips the
//! groups of rows that do not have it.
//!
//! Cells are exported in portions, whose rows have about [`PORTION`] bytes: the packs that hold cells
//! of the portion are read, each thread one at a time, and their rows are sorted. A pack has its
//! cells in the order in which they finished, which is nearly the order of the grid. So most packs
//! are read once or twice.
//!
//! All cells are checked before the first row is written, so that the columns are known.

use super::axes::{Leaves, SettingColumn, SettingValues, leaves, planned_leaves};
pub use super::cells_frame::{WorkColumn, cells_frame};
use super::folder::Store;
use super::pack::{Pack, PackLine};
use super::parquet;
pub use super::parquet::column;
use super::portion::{CellFactsRow, PackPart, PortionCell, facts_schema, join_parts, take_rows};
pub use super::sink::ExportFormat;
use super::sink::Sink;
use exactfed_runner::files::{Error, error, stream_named};
use exactfed_runner::plan::{Cell, CellId, Plan};
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
    /// The number of cells in the file.
    pub cells: usize,
    /// The number of rows in the file.
    pub rows: usize,
    /// The reason for each cell that was left out because it is damaged.
    pub damaged: Vec<Error>,
}

/// Writes the rows of all stored cells of these experiments to the file `to`, in the order of the plans; `plans` are
/// the experiments as they were last run, with the cells that follow from results, since any other cell counts as one
/// of earlier settings. Damaged cells are left out and reported. Without any sound cell nothing is written.
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
    // In every line of a CSV file the settings would be half of it.
    rows.columns.retain(|name, _| format == ExportFormat::Parquet || name != "settings");
    stream_named(to, |file| {
        let metadata = file_metadata(plans, &rows.axes);
        let mut sink =
            Sink::new(file, format, &rows.schema(), metadata).map_err(|e| error(to, e))?;
        rows.read(&mut exported, &mut |frame| sink.add(frame).map_err(|e| error(to, e)))?;
        sink.finish().map_err(|e| error(to, e))
    })?;
    Ok(exported)
}

/// The rows that [`export`] writes to Parquet, in memory, for Python, and why cells are left out because they are
/// damaged; `None` if there are no cells.
///
/// # Errors
/// If the results cannot be read.
pub fn frame(store: &Store, plans: &[Plan]) -> Result<(Option<DataFrame>, Vec<Error>), Error> {
    let mut exported = Exported::default();
    let rows = ExportedRows::new(store, plans, &mut exported.damaged)?;
    let mut all = None;
    rows.read(&mut exported, &mut |frame| {
        parquet::append_rows(&mut all, frame).map_err(|e| error(&store.root, e))
    })?;
    Ok((all, exported.damaged))
}

/// The cells that are exported, and the columns of their rows.
struct ExportedRows<'a> {
    experiments: Vec<SoundCells<'a>>,
    /// The columns of packs and of facts, without the columns of `axes`. Optional columns are there if some cell has a
    /// value.
    columns: Schema,
    /// The columns of the settings in which cells differ.
    axes: Vec<SettingColumn>,
}

/// The cells of an experiment whose numbers are as they were written.
struct SoundCells<'a> {
    plan: &'a Plan,
    /// The cells of the last run by their ids: the index of each in the plan.
    last_run: HashMap<CellId, usize>,
    /// The packs whose index is as it was written.
    packs: Vec<Arc<Pack>>,
    /// The cells in the order of the export.
    cells: Vec<SoundCell>,
    /// For each of `packs` the bytes of one of its rows, approximately.
    row_bytes: Vec<usize>,
}

/// Where a cell is stored.
#[derive(Clone, Copy)]
struct SoundCell {
    /// The index of its pack in [`SoundCells::packs`].
    pack: usize,
    /// The index of the cell in the pack.
    index: usize,
}

/// What the check of an experiment's packs finds.
struct CheckedExperiment<'a> {
    cells: SoundCells<'a>,
    /// The optional columns that have values in some sound cell.
    columns: BTreeSet<String>,
    /// The values that the settings of the sound cells have.
    settings: SettingValues,
}

/// What the check of a pack finds.
#[derive(Default)]
struct CheckedPack {
    /// The indices of its sound cells.
    sound: Vec<usize>,
    /// What is wrong with each of its other cells.
    damaged: Vec<Error>,
    /// The values that the settings of the sound cells have.
    settings: SettingValues,
    /// The bytes of a row, approximately.
    row_bytes: usize,
}

impl<'a> ExportedRows<'a> {
    /// Checks the cells of these experiments, and adds what is wrong with each damaged file or cell to `damaged`. No
    /// column of a setting has the name of a column of packs, not even of an optional one that is left out.
    fn new(store: &Store, plans: &'a [Plan], damaged: &mut Vec<Error>) -> Result<Self, Error> {
        let mut experiments = Vec::new();
        let mut measured = BTreeSet::new();
        let mut settings = Vec::new();
        for plan in plans {
            let checked = check_experiment(store, plan, damaged)?;
            experiments.push(checked.cells);
            measured.extend(checked.columns);
            settings.push(checked.settings);
        }
        let mut columns = parquet::schema();
        columns.extend(facts_schema());
        let taken: Vec<&str> = columns.iter_names().map(|name| name.as_str()).collect();
        let axes = SettingColumn::all(&settings, &taken);
        let optional = parquet::optional_columns();
        columns.retain(|name, _| {
            let is_optional = optional.iter().any(|column| *column == **name);
            !is_optional || measured.contains(&**name)
        });
        Ok(Self { experiments, columns, axes })
    }

    /// The names and types of all columns of the file; the columns of settings come last.
    fn schema(&self) -> Schema {
        let mut schema = self.columns.clone();
        schema.extend(self.axes.iter().map(|axis| (axis.name.as_str().into(), axis.kind.clone())));
        schema
    }

    /// Hands all rows to `add`, a portion of cells at a time, and counts them in `exported`. What can no longer be read
    /// since it was checked is left out, and added to `exported.damaged`.
    fn read(
        &self,
        exported: &mut Exported,
        add: &mut dyn FnMut(DataFrame) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for sound in &self.experiments {
            for portion in sound.portions() {
                let parts = sound.read_portion(portion, self, &mut exported.damaged);
                if parts.is_empty() {
                    continue;
                }
                exported.cells += parts.iter().map(|part| part.cells.len()).sum::<usize>();
                let frame = join_parts(parts, &self.axes, self.schema())
                    .map_err(|e| error(Path::new(&sound.plan.experiment), e))?;
                exported.rows += frame.height();
                add(frame)?;
            }
        }
        Ok(())
    }
}

/// Checks the cells of an experiment, and puts the sound ones in the order of the export. What is wrong with the others
/// is added to `damaged`. Of a cell that several packs hold, only the copy that counts is looked at. The packs are
/// checked on the threads of the pool in which this is called.
///
/// # Errors
/// If the folder of the experiment cannot be read.
fn check_experiment<'a>(
    store: &Store,
    plan: &'a Plan,
    damaged: &mut Vec<Error>,
) -> Result<CheckedExperiment<'a>, Error> {
    let packs = store.packs(&plan.experiment)?;
    damaged.extend(packs.damaged.iter().map(|file| file.error.clone()));
    let mut last_run = HashMap::new();
    for (place, cell) in plan.cells.iter().enumerate() {
        last_run.insert(cell.id, place);
    }
    let mut cells = SoundCells {
        plan,
        last_run,
        packs: packs.sound.clone(),
        cells: Vec::new(),
        row_bytes: Vec::new(),
    };
    let checked: Vec<Result<CheckedPack, Error>> = (0..packs.sound.len())
        .into_par_iter()
        .map(|number| cells.check_pack(&packs.sound[number], packs.current_cells(number)))
        .collect();
    let mut columns = BTreeSet::new();
    let mut settings = SettingValues::default();
    for (number, checked) in checked.into_iter().enumerate() {
        let found = match checked {
            Ok(found) => found,
            Err(e) => CheckedPack { damaged: vec![e], ..CheckedPack::default() },
        };
        if !found.sound.is_empty() {
            columns.extend(packs.sound[number].head.columns.iter().cloned());
        }
        for index in found.sound {
            cells.cells.push(SoundCell { pack: number, index });
        }
        damaged.extend(found.damaged);
        settings.merge(found.settings);
        cells.row_bytes.push(found.row_bytes);
    }
    let last_run = &cells.last_run;
    cells.cells.sort_by_cached_key(|cell| {
        let id = packs.sound[cell.pack].cells[cell.index].record.id;
        // Cells of earlier settings come last, by their ids.
        (last_run.get(&id).copied().unwrap_or(usize::MAX), id)
    });
    Ok(CheckedExperiment { cells, columns, settings })
}

/// A cell of a portion that is to be read from a pack.
struct ChosenCell {
    /// The index of the cell among those of the portion.
    place: usize,
    /// The index of the cell in the pack.
    index: usize,
}

impl SoundCells<'_> {
    /// The cell of this id in the plan of the last run; `None` for a cell of earlier settings.
    fn planned(&self, id: &str) -> Option<&Cell> {
        self.last_run.get(&CellId::read(id)?).map(|place| &self.plan.cells[*place])
    }

    /// Checks these cells of a pack, given by their indices: whether their numbers have the digests in the index. The
    /// cells are those for which no later pack counts.
    ///
    /// # Errors
    /// If the pack as a whole is not as it was written; then none of its cells is exported.
    fn check_pack(&self, pack: &Pack, cells: Vec<usize>) -> Result<CheckedPack, Error> {
        let rows = pack.read_rows()?;
        let lines = pack.read_lines(cells.iter().copied())?;
        let row_bytes = TEXTS + rows.bytes / rows.len().max(1);
        let mut checked = CheckedPack { row_bytes, ..CheckedPack::default() };
        for (i, line) in cells.into_iter().zip(lines) {
            if let Err(e) = pack.traces(&rows, i) {
                checked.damaged.push(e);
                continue;
            }
            let settings = line.settings().map_err(|e| error(&pack.path, e))?;
            checked.settings.add(self.stored_leaves(&line.id, &settings));
            checked.sound.push(i);
        }
        Ok(checked)
    }

    /// The leaves of a stored cell, whose id is the hash of `settings`. For a cell of the last run its plan adds
    /// defaults and the names of files.
    fn stored_leaves(&self, id: &str, settings: &toml::Table) -> Leaves {
        match self.planned(id) {
            Some(cell) => planned_leaves(cell, settings),
            None => leaves(settings, []),
        }
    }

    /// The successive ranges of cells that are exported together. A range ends with the cell with which its rows have
    /// [`PORTION`] bytes or more, and the last one with the last cell.
    fn portions(&self) -> Vec<Range<usize>> {
        let mut portions = Vec::new();
        let mut from = 0;
        let mut bytes = 0;
        for (place, cell) in self.cells.iter().enumerate() {
            bytes += self.packs[cell.pack].rows(cell.index).len() * self.row_bytes[cell.pack];
            if bytes >= PORTION || place + 1 == self.cells.len() {
                portions.push(from..place + 1);
                from = place + 1;
                bytes = 0;
            }
        }
        portions
    }

    /// Reads the cells of a portion, which is a range of [`Self::cells`], from the packs that hold them. A pack that
    /// cannot be read any more is left out, and the error is added to `damaged`.
    fn read_portion(
        &self,
        portion: Range<usize>,
        all: &ExportedRows<'_>,
        damaged: &mut Vec<Error>,
    ) -> Vec<PackPart> {
        let mut by_pack: BTreeMap<usize, Vec<ChosenCell>> = BTreeMap::new();
        for (place, cell) in self.cells[portion].iter().enumerate() {
            let chosen = ChosenCell { place, index: cell.index };
            by_pack.entry(cell.pack).or_default().push(chosen);
        }
        let by_pack: Vec<(usize, Vec<ChosenCell>)> = by_pack.into_iter().collect();
        let read: Vec<Result<PackPart, Error>> = by_pack
            .par_iter()
            .map(|(number, chosen)| self.read_part(&self.packs[*number], chosen, all))
            .collect();
        let mut parts = Vec::new();
        for part in read {
            match part {
                Ok(part) => parts.push(part),
                Err(e) => damaged.push(e),
            }
        }
        parts
    }

    /// Reads these cells of a pack: their rows in the stored columns of `all`, and the facts that their rows share.
    fn read_part(
        &self,
        pack: &Pack,
        chosen: &[ChosenCell],
        all: &ExportedRows<'_>,
    ) -> Result<PackPart, Error> {
        let facts = facts_schema();
        let stored = all.columns.iter_names().filter(|name| !facts.contains(name));
        let all_rows = pack.read_columns(stored.map(|name| name.to_string()).collect())?;
        let mut rows: Vec<IdxSize> = Vec::new();
        for cell in chosen {
            rows.extend(pack.rows(cell.index).map(|row| row as IdxSize));
        }
        let frame = take_rows(&all_rows, rows).map_err(|e| error(&pack.path, e))?;
        let lines = pack.read_lines(chosen.iter().map(|cell| cell.index))?;
        let mut cells = Vec::new();
        for (cell, line) in chosen.iter().zip(lines) {
            cells.push(PortionCell {
                place: cell.place,
                rows: pack.rows(cell.index).len(),
                facts: self.facts(pack, line, all)?,
            });
        }
        Ok(PackPart { cells, frame })
    }

    /// The facts that all rows of a cell share, from its line in the index of `pack` and the plan of the last run.
    fn facts(
        &self,
        pack: &Pack,
        line: PackLine,
        all: &ExportedRows<'_>,
    ) -> Result<CellFactsRow, Error> {
        let settings = line.settings().map_err(|e| error(&pack.path, e))?;
        let planned = self.planned(&line.id);
        let seed = settings.get("seed").and_then(toml::Value::as_integer);
        let mut axes = self.stored_leaves(&line.id, &settings);
        axes.retain(|path, _| all.axes.iter().any(|axis| axis.path == *path));
        Ok(CellFactsRow {
            // Labels do not enter the id: the last run may have given the cell another one.
            label: planned.map_or(line.label, |planned| planned.label.clone()),
            seed: seed.unwrap_or_default() as u64,
            settings: serde_json::to_string(&settings).map_err(|e| error(&pack.path, e))?,
            digest: line.digest.to_string(),
            provenance: pack.head.provenance.clone(),
            last_run: planned.is_some(),
            axes,
        })
    }
}

/// The metadata of an exported file, as keys with values: the manifest of each experiment, and for each column of
/// `axes` the path of its setting.
fn file_metadata(plans: &[Plan], axes: &[SettingColumn]) -> Vec<(String, String)> {
    let mut metadata: BTreeMap<String, String> = BTreeMap::new();
    for plan in plans {
        let key = format!("exactfed.manifest.{}", plan.experiment);
        metadata.insert(key, plan.source.text.clone());
    }
    let mut paths = serde_json::Map::new();
    for axis in axes {
        paths.insert(axis.name.clone(), axis.path.clone().into());
    }
    metadata.insert("exactfed.axes".into(), serde_json::Value::Object(paths).to_string());
    metadata.into_iter().collect()
}
