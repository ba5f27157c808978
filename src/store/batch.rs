//! A batch: a folder that holds the results of one or more cells. All results are stored,
//! read, checked and copied as batches.
//!
//! A batch is `traces.parquet`, the rows of its cells one after another, and an index. The
//! folder of a single cell is `<id>/`, and its index is `cell.toml`. A pack, which holds many
//! small cells so that a large grid is not as many folders, is `pack-<hash>/`, and its index
//! is `cells.jsonl`: one line on the pack, then one line per cell in the order of the rows.
//!
//! *Invariant*: the index holds the length and the hash of the Parquet file. It is checked
//! itself, `cell.toml` by its checksum and `cells.jsonl` by the hash in the name of its folder.
//! So every changed bit of a batch is detected, and packs of the same name are equal.

use super::checksum::{parse_checked, with_checksum};
use super::parquet::{self, TraceRows};
use super::paths::{CELL, PACK, PACK_INDEX, TRACES, file_name, is_cell};
use super::record::{CellRecord, check_folder, check_settings};
use exactfed_evidence::results::{CellSummary, Provenance};
use exactfed_runner::files::{
    Error, MOST_READ, TemporaryFolder, error, open_regular, read_plain, sha256,
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The part of an index that concerns all cells; the first line of `cells.jsonl`.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct BatchHead {
    /// Name of the experiment.
    pub experiment: String,
    /// If packs hold the same cell, the one of the highest generation counts. The folder of a
    /// single cell has none and counts before every pack.
    pub generation: Option<u64>,
    /// Length of the Parquet file; set by [`Batch::write`].
    pub bytes: u64,
    /// SHA-256 of the Parquet file; set by [`Batch::write`].
    pub sha256: String,
    /// The program that computed the cells.
    pub provenance: Provenance,
}

/// The part of an index that concerns one cell; a line of `cells.jsonl`.
#[derive(Serialize, Deserialize)]
pub struct BatchLine {
    /// Content id.
    pub id: String,
    /// Name of the curve.
    pub label: String,
    /// Digest of the traces.
    pub digest: String,
    /// Number of rows.
    pub rows: usize,
    /// Time that the cell took on one thread.
    pub seconds: f64,
    /// A bound on the distance of θ* from the optimum, if it was found by a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimum_error: Option<f64>,
    /// The settings that determine the numbers, as TOML.
    pub cell: String,
}

impl BatchLine {
    /// The two parts of a `cell.toml`, which does not state the number of rows.
    fn from_record(record: CellRecord) -> (BatchHead, Self) {
        let CellRecord { id, experiment, label, digest, bytes, sha256, optimum_error, .. } = record;
        let head = BatchHead {
            experiment,
            generation: None,
            bytes,
            sha256,
            provenance: record.provenance,
        };
        let cell = record.cell.to_string();
        let seconds = record.seconds;
        (head, Self { id, label, digest, rows: 0, seconds, optimum_error, cell })
    }

    /// The `cell.toml` of these parts.
    fn into_record(self, head: BatchHead) -> Result<CellRecord, String> {
        let BatchHead { experiment, bytes, sha256, provenance, .. } = head;
        let cell = toml::from_str(&self.cell).map_err(|e| e.message().to_owned())?;
        let Self { id, label, digest, seconds, optimum_error, .. } = self;
        Ok(CellRecord {
            id,
            experiment,
            label,
            digest,
            bytes,
            sha256,
            seconds,
            optimum_error,
            provenance,
            cell,
        })
    }

    /// The part of an index that `text` is: the whole `cell.toml`, or a line of `cells.jsonl`.
    fn parse(text: &[u8], single: bool) -> Result<Self, String> {
        match single {
            true => parse_checked(text).map(|record| Self::from_record(record).1),
            false => serde_json::from_slice(text).map_err(|e| e.to_string()),
        }
    }
}

/// The part of an index that is held of each cell.
struct BatchCell {
    id: Box<str>,
    label: Arc<str>,
    digest: Box<str>,
    seconds: f64,
    /// Its rows in a pack; `None` in a folder of its own, of which it has all rows.
    rows: Option<Range<usize>>,
    /// The bytes of its [`BatchLine`] in the index.
    line: Range<usize>,
}

/// A batch whose index is as it was written.
pub struct Batch {
    /// The folder.
    pub folder: PathBuf,
    /// The part of its index that concerns all cells.
    pub head: BatchHead,
    cells: Vec<BatchCell>,
    /// The names of the columns of the Parquet file, once it has been checked.
    columns: OnceLock<Result<Vec<String>, Error>>,
}

/// The name of the pack that has this index.
fn pack_name(index: &[u8]) -> String {
    format!("{PACK}{}", &sha256(index)[..16])
}

impl Batch {
    /// The batch in the folder of a cell; `None` if the cell has no results there.
    pub fn open_single(folder: &Path) -> Result<Option<Self>, Error> {
        match folder.join(CELL).symlink_metadata() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Self::open(folder).map(Some),
        }
    }

    /// The batch in a folder. Its index is checked, and its Parquet file is not.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let name = file_name(folder);
        let single = is_cell(&name);
        let path = folder.join(if single { CELL } else { PACK_INDEX });
        let index = read_plain(&path, MOST_READ)?;
        let parsed = if single { parse_record(&name, &index) } else { parse_pack(&name, &index) };
        let cells = parsed.and_then(|(head, lines)| Ok((head, Self::place_cells(lines, single)?)));
        let (head, cells) = cells.map_err(|e| error(&path, e))?;
        Ok(Self { folder: folder.to_owned(), head, cells, columns: OnceLock::new() })
    }

    /// The cells of these lines, whose settings are checked.
    fn place_cells(lines: Vec<PlacedLine>, single: bool) -> Result<Vec<BatchCell>, String> {
        let (mut cells, mut row): (Vec<BatchCell>, usize) = (Vec::new(), 0);
        for (line, place) in lines {
            check_settings(&line.id, &line.cell)?;
            let label = match cells.last() {
                Some(last) if *last.label == *line.label => last.label.clone(),
                _ => line.label.into(),
            };
            let end = row.checked_add(line.rows).ok_or("has too many rows")?;
            cells.push(BatchCell {
                id: line.id.into(),
                label,
                digest: line.digest.into(),
                seconds: line.seconds,
                rows: (!single).then_some(row..end),
                line: place,
            });
            row = end;
        }
        Ok(cells)
    }

    /// Ids and digests of the cells, in the order of their rows.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cells.iter().map(|cell| (&*cell.id, &*cell.digest))
    }

    /// The record of the `i`-th cell without its settings.
    pub fn summary(&self, i: usize) -> CellSummary {
        let cell = &self.cells[i];
        CellSummary {
            id: cell.id.to_string(),
            label: cell.label.to_string(),
            digest: cell.digest.to_string(),
            seconds: cell.seconds,
            provenance: self.head.provenance.clone(),
        }
    }

    /// The settings of the `i`-th cell.
    pub fn settings(&self, i: usize) -> Result<toml::Table, Error> {
        let line = self.line(i)?;
        toml::from_str(&line.cell).map_err(|e| error(&self.index_file(), e.message()))
    }

    /// The part of the index that concerns the `i`-th cell. It is read when it is needed: the
    /// settings of all cells of a large grid would take much memory.
    fn line(&self, i: usize) -> Result<BatchLine, Error> {
        let (path, range) = (self.index_file(), &self.cells[i].line);
        let mut text = vec![0; range.len()];
        let mut read = || {
            let mut file = open_regular(&path, fs::File::options().read(true))?;
            file.seek(SeekFrom::Start(range.start as u64))?;
            file.read_exact(&mut text)
        };
        read().map_err(|e| error(&path, e))?;
        BatchLine::parse(&text, self.is_single()).map_err(|e| error(&path, e))
    }

    fn is_single(&self) -> bool {
        self.head.generation.is_none()
    }

    fn index_file(&self) -> PathBuf {
        self.folder.join(if self.is_single() { CELL } else { PACK_INDEX })
    }

    /// The Parquet file.
    pub fn traces_file(&self) -> PathBuf {
        self.folder.join(TRACES)
    }

    /// The bytes of the Parquet file and the names of its columns, if the file has the length
    /// and the hash that the index states, and its rows are those of the cells.
    fn read_traces(&self) -> Result<(Vec<u8>, Vec<String>), Error> {
        let path = self.traces_file();
        let expected = self.head.bytes;
        let about = path.symlink_metadata().ok().filter(fs::Metadata::is_file);
        if let Some(found) = about.map(|about| about.len()).filter(|found| *found != expected) {
            let message = format!("has {found} bytes, not {expected} as when it was written");
            return Err(error(&path, message));
        }
        let bytes = read_plain(&path, expected)?;
        if sha256(&bytes) != self.head.sha256 {
            return Err(error(&path, "does not have the hash that it was written with"));
        }
        let rows = |cell: &BatchCell| cell.rows.as_ref().map(ExactSizeIterator::len);
        let cells = self.cells.iter().map(|cell| (&*cell.id, rows(cell)));
        let columns = parquet::check_cells(&bytes, cells).map_err(|e| error(&path, e))?;
        Ok((bytes, columns))
    }

    /// The names of the columns of the Parquet file, which is read and checked the first time.
    pub fn columns(&self) -> Result<&[String], Error> {
        let columns = self.columns.get_or_init(|| self.read_traces().map(|(_, names)| names));
        columns.as_deref().map_err(Clone::clone)
    }

    /// Checks the Parquet file, the first time that this is asked for.
    pub fn check(&self) -> Result<(), Error> {
        self.columns().map(drop)
    }

    /// All rows.
    pub fn read_rows(&self) -> Result<TraceRows, Error> {
        let (bytes, _) = self.read_traces()?;
        TraceRows::read(bytes).map_err(|e| error(&self.traces_file(), e))
    }

    /// The range of the `i`-th cell among the rows.
    pub fn range(&self, i: usize, rows: &TraceRows) -> Range<usize> {
        self.cells[i].rows.clone().unwrap_or(0..rows.len())
    }

    /// Copies the batch into another experiment's folder, without these cells. It is checked
    /// once more on the way.
    pub fn copy(&self, to: &Path, without: &HashSet<&str>) -> Result<(), Error> {
        let (bytes, _) = self.read_traces()?;
        let copied = |i: &usize| !without.contains(&*self.cells[*i].id);
        let chosen: Vec<usize> = (0..self.cells.len()).filter(copied).collect();
        if chosen.is_empty() {
            return Ok(());
        }
        if chosen.len() < self.cells.len() {
            let rows: Vec<_> = chosen.iter().filter_map(|&i| self.cells[i].rows.clone()).collect();
            let lines = chosen.into_iter().map(|i| self.line(i)).collect::<Result<_, _>>()?;
            let bytes = parquet::select_rows(bytes, &rows);
            let bytes = bytes.map_err(|e| error(&self.traces_file(), e))?;
            return Self::write(to, self.head.clone(), lines, &bytes).map(drop);
        }
        let index = self.index_file();
        let temporary = TemporaryFolder::new(to)?;
        temporary.add(TRACES, &bytes)?;
        temporary.add(&file_name(&index), &read_plain(&index, MOST_READ)?)?;
        temporary.settle(&to.join(file_name(&self.folder)))
    }

    /// Writes a batch below an experiment's folder, to a temporary folder that is renamed, and
    /// returns where it is.
    ///
    /// # Errors
    /// If it cannot be written; then nothing of it is left.
    pub fn write(
        folder: &Path,
        head: BatchHead,
        mut lines: Vec<BatchLine>,
        traces: &[u8],
    ) -> Result<PathBuf, Error> {
        let (bytes, sha256) = (traces.len() as u64, sha256(traces));
        let head = BatchHead { bytes, sha256, ..head };
        let text = match (head.generation, lines.as_slice()) {
            (None, [_]) => lines.remove(0).into_record(head).and_then(|r| {
                let text = with_checksum(&r)?;
                Ok((r.id, CELL, text))
            }),
            _ => {
                pack_index(&head, &lines).map(|text| (pack_name(text.as_bytes()), PACK_INDEX, text))
            }
        };
        let (name, file, index) = text.map_err(|e| error(folder, e))?;
        let place = folder.join(name);
        let temporary = TemporaryFolder::new(folder)?;
        temporary.add(TRACES, traces)?;
        temporary.add(file, index.as_bytes())?;
        temporary.settle(&place)?;
        Ok(place)
    }
}

/// A line of an index and its bytes there.
type PlacedLine = (BatchLine, Range<usize>);

/// Reads the `cell.toml` of the folder of this name.
fn parse_record(name: &str, index: &[u8]) -> Result<(BatchHead, Vec<PlacedLine>), String> {
    let (head, line) = BatchLine::from_record(parse_checked(index)?);
    check_folder(name, &line.id)?;
    Ok((head, vec![(line, 0..index.len())]))
}

/// Reads the `cells.jsonl` of the folder of this name.
fn parse_pack(name: &str, index: &[u8]) -> Result<(BatchHead, Vec<PlacedLine>), String> {
    if name != pack_name(index) {
        return Err("does not have the hash that its folder is named by".to_owned());
    }
    let mut lines = index.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let head: BatchHead = serde_json::from_slice(first).map_err(|e| e.to_string())?;
    head.generation.ok_or("has no generation")?;
    let (mut placed, mut from) = (Vec::new(), first.len());
    for line in lines {
        placed.push((BatchLine::parse(line, false)?, from..from + line.len()));
        from += line.len();
    }
    Ok((head, placed))
}

/// The text of `cells.jsonl`.
fn pack_index(head: &BatchHead, lines: &[BatchLine]) -> Result<String, String> {
    let mut index = serde_json::to_string(head).map_err(|e| e.to_string())? + "\n";
    for line in lines {
        index += &serde_json::to_string(line).map_err(|e| e.to_string())?;
        index.push('\n');
    }
    Ok(index)
}
