//! A pack: a Parquet file with the rows of one or more cells, one cell after another. All results
//! are stored, read, checked and copied as packs; a large grid is not as many files.
//!
//! The metadata of the file hold an index: a line of JSON on the pack, a line per cell in the order
//! of the rows, and a checksum. It is found without decoding the rest of the file.
//!
//! *Invariant*: a pack is named by the hash of its bytes, so every changed bit is detected, and packs
//! of the same name are equal. All packs have the same columns, so that a Parquet reader reads those
//! of an experiment together.

use super::checksum::{CHANGED, checked, checksum};
use super::parquet::{self, TraceRows};
use super::paths::{PACK, file_name};
use exactfed_core::round_program::Traced;
use exactfed_evidence::results::{CellSummary, Provenance};
use exactfed_runner::files::{
    Error, MOST_READ, error, open_regular, read_plain, refuse_links, sha256, write_synced,
};
use exactfed_runner::plan::CellId;
use exactfed_runner::trace::{self, Trace, TraceDigest};
use polars::prelude::{Column, DataFrame};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The key of the index in the metadata of the file.
const INDEX: &str = "exactfed.cells";
/// The key of the manifest there.
const MANIFEST: &str = "exactfed.manifest";

/// The first line of an index: what concerns all cells of a pack.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct PackHead {
    /// Name of the experiment.
    pub experiment: String,
    /// If packs hold the same cell, the one of the highest generation counts.
    pub generation: u64,
    /// The optional columns that have values; set by [`Pack::write`].
    pub columns: Vec<String>,
    /// The program that computed the cells.
    pub provenance: Provenance,
}

/// Another line of an index: what concerns one cell.
#[derive(Serialize, Deserialize)]
pub struct PackLine {
    /// Content id.
    pub id: CellId,
    /// Name of the curve.
    pub label: String,
    /// Digest of the traces.
    pub digest: TraceDigest,
    /// Number of rows.
    pub rows: usize,
    /// Time that the cell took on one thread.
    pub seconds: f64,
    /// A bound on the distance of θ* from the optimum, if it was found by a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimum_error: Option<f64>,
    /// The settings that determine the numbers, as TOML.
    pub cell: String,
    /// What theory makes of the rounds of an algorithm of one's own, on each instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Traced>,
}

impl PackLine {
    /// The settings as a table.
    pub fn settings(&self) -> Result<toml::Table, String> {
        toml::from_str(&self.cell).map_err(|e| e.message().to_owned())
    }
}

/// What is held of each cell: its line without the settings, which of a large grid would take much
/// memory.
pub struct PackedCell {
    pub record: CellSummary,
    rows: Range<u32>,
    /// The bytes of its line in the index.
    line: Range<u32>,
}

/// A pack whose index is as it was written.
pub struct Pack {
    /// The file.
    pub path: PathBuf,
    /// The first line of its index.
    pub head: PackHead,
    /// Its cells, in the order of their rows.
    pub cells: Vec<PackedCell>,
    /// Where its index begins in the file.
    index: u64,
    /// Whether its bytes are as they were written, once that was asked for.
    sound: OnceLock<Result<(), Error>>,
}

impl Pack {
    /// The pack in a file. Its index is checked, and its rows are not.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (text, index) = read_index(path)?;
        let parsed = checked(&text).ok_or_else(|| CHANGED.to_owned()).and_then(parse_index);
        let (head, cells) = parsed.map_err(|e| error(path, e))?;
        Ok(Self { path: path.to_owned(), head, cells, index, sound: OnceLock::new() })
    }

    /// The rows of the `i`-th cell.
    pub fn rows(&self, i: usize) -> Range<usize> {
        usizes(&self.cells[i].rows)
    }

    /// The line of the `i`-th cell, which is read from the file.
    pub fn line(&self, i: usize) -> Result<PackLine, Error> {
        let range = usizes(&self.cells[i].line);
        let mut text = vec![0; range.len()];
        let mut read = || {
            let mut file = open_regular(&self.path, fs::File::options().read(true))?;
            file.seek(SeekFrom::Start(self.index + range.start as u64))?;
            file.read_exact(&mut text)
        };
        read().map_err(|e| error(&self.path, e))?;
        serde_json::from_slice(&text).map_err(|_| error(&self.path, CHANGED))
    }

    /// The lines of these cells, which are read from the file.
    pub fn lines(&self, cells: impl Iterator<Item = usize>) -> Result<Vec<PackLine>, Error> {
        let (text, _) = read_index(&self.path)?;
        let line = |i: usize| serde_json::from_slice(text.get(usizes(&self.cells[i].line))?).ok();
        let lines: Option<_> = cells.map(line).collect();
        lines.ok_or_else(|| error(&self.path, CHANGED))
    }

    /// The bytes, if they have the hash that the pack is named by and the rows are those of the
    /// cells.
    fn bytes(&self) -> Result<Vec<u8>, Error> {
        let bytes = read_plain(&self.path, MOST_READ)?;
        if file_name(&self.path) != pack_name(&bytes) {
            return Err(error(&self.path, "does not have the hash that it is named by"));
        }
        let cells = self.cells.iter().map(|cell| (&*cell.record.id, cell.rows.len()));
        parquet::check_cells(&bytes, cells).map_err(|e| error(&self.path, e))?;
        Ok(bytes)
    }

    /// Checks all bytes, the first time that this is asked for.
    pub fn check(&self) -> Result<(), Error> {
        self.sound.get_or_init(|| self.bytes().map(drop)).clone()
    }

    /// All rows, to make traces of.
    pub fn read(&self) -> Result<TraceRows, Error> {
        TraceRows::read(&self.bytes()?, &self.head.columns).map_err(|e| error(&self.path, e))
    }

    /// These columns of all rows.
    pub fn frame(&self, columns: Vec<String>) -> Result<DataFrame, Error> {
        parquet::decode(&self.bytes()?, Some(columns)).map_err(|e| error(&self.path, e))
    }

    /// The traces of the `i`-th cell, which are among `rows`.
    ///
    /// # Errors
    /// If their digest is not that of the index.
    pub fn traces(&self, rows: &TraceRows, i: usize) -> Result<Vec<Trace>, Error> {
        let CellSummary { id, digest, .. } = &self.cells[i].record;
        let traces = rows.traces(self.rows(i)).map_err(|e| error(&self.path, e))?;
        if trace::digest(&traces) == *digest {
            return Ok(traces);
        }
        let message = format!("does not hold the numbers of cell {id} as they were written");
        Err(error(&self.path, message))
    }

    /// Copies these cells, in their order, to another pack below an experiment's folder. They are
    /// checked once more on the way.
    pub fn copy(&self, folder: &Path, cells: &[usize]) -> Result<(), Error> {
        let bytes = self.bytes()?;
        if cells.len() == self.cells.len() {
            return write_synced(&folder.join(file_name(&self.path)), &bytes);
        }
        let rows: Vec<Range<usize>> = cells.iter().map(|&i| self.rows(i)).collect();
        let lines = self.lines(cells.iter().copied())?;
        let selected = parquet::select_rows(&bytes, MANIFEST, &rows);
        let (manifest, frame) = selected.map_err(|e| error(&self.path, e))?;
        Self::write(folder, self.head.clone(), &lines, &manifest, frame).map(drop)
    }

    /// Writes a pack below an experiment's folder and returns where it is.
    ///
    /// # Errors
    /// If it cannot be written; then nothing of it is left.
    pub fn write(
        folder: &Path,
        head: PackHead,
        lines: &[PackLine],
        manifest: &str,
        frame: DataFrame,
    ) -> Result<PathBuf, Error> {
        let has_values = |column: &Column| column.null_count() < column.len();
        let mut columns = parquet::optional();
        columns.retain(|name| frame.column(name).is_ok_and(has_values));
        let index = index_text(&PackHead { columns, ..head }, lines);
        let index = index.map_err(|e| error(folder, e))?;
        let metadata = vec![(MANIFEST.to_owned(), manifest.to_owned()), (INDEX.to_owned(), index)];
        let bytes = parquet::encode(metadata, frame).map_err(|e| error(folder, e))?;
        let path = folder.join(pack_name(&bytes));
        write_synced(&path, &bytes)?;
        Ok(path)
    }
}

/// A range of places.
fn usizes(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// The name of the pack that has these bytes.
fn pack_name(bytes: &[u8]) -> String {
    format!("{}{PACK}", &sha256(bytes)[..16])
}

/// The text of an index.
fn index_text(head: &PackHead, lines: &[PackLine]) -> Result<String, String> {
    let mut index = serde_json::to_string(head).map_err(|e| e.to_string())? + "\n";
    for line in lines {
        index += &serde_json::to_string(line).map_err(|e| e.to_string())?;
        index.push('\n');
    }
    let last = checksum(index.as_bytes());
    Ok(index + &last)
}

/// The text of the index in a file, and where it begins.
fn read_index(path: &Path) -> Result<(Vec<u8>, u64), Error> {
    let folder = path.parent().unwrap_or(path);
    refuse_links(folder.parent().unwrap_or(folder), folder)?;
    let read = || {
        let mut file = open_regular(path, fs::File::options().read(true))?;
        let length = file.metadata()?.len();
        let mut end = [0; 8];
        file.seek(SeekFrom::Start(length.saturating_sub(8)))?;
        file.read_exact(&mut end)?;
        let [a, b, c, d, ..] = end;
        let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
        let from = length.saturating_sub(8).saturating_sub(footer);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(footer.min(MOST_READ)).read_to_end(&mut bytes)?;
        Ok((bytes, from))
    };
    let (mut footer, from) = read().map_err(|e: std::io::Error| error(path, e))?;
    let range = find_index(&footer).ok_or_else(|| error(path, CHANGED))?;
    let place = from + range.start as u64;
    footer.truncate(range.end);
    footer.drain(..range.start);
    Ok((footer, place))
}

/// The place of the index in the footer of a Parquet file, which Thrift's compact protocol encodes: the
/// key, the type of the next field, the length of the value in groups of seven bits, and the value.
fn find_index(footer: &[u8]) -> Option<Range<usize>> {
    const TEXT: u8 = 0x18;
    // Neither TOML nor JSON contains this byte, so no other value has this in it.
    let key = [INDEX.as_bytes(), &[TEXT]].concat();
    let mut from = footer.windows(key.len()).position(|part| part == key)? + key.len();
    let mut length = 0;
    for shift in (0..32).step_by(7) {
        let byte = *footer.get(from)?;
        from += 1;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    let end = from.checked_add(length).filter(|end| *end <= footer.len())?;
    Some(from..end)
}

/// The id, if settings, as TOML, are those whose hash it is.
pub fn check_settings(id: CellId, settings: &str) -> Result<(), String> {
    match CellId::of(settings) {
        hash if hash == id => Ok(()),
        hash => Err(format!("has settings of cell {hash} where those of {id} belong")),
    }
}

/// Reads an index without its checksum, and checks the settings of its cells.
fn parse_index(index: &[u8]) -> Result<(PackHead, Vec<PackedCell>), String> {
    let mut lines = index.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let head: PackHead = serde_json::from_slice(first).map_err(|e| e.to_string())?;
    let provenance = Arc::new(head.provenance.clone());
    let place = |n: usize| u32::try_from(n).map_err(|_| "is too large");
    let (mut cells, mut from, mut row): (Vec<PackedCell>, _, u32) =
        (Vec::new(), place(first.len())?, 0);
    for text in lines {
        let line: PackLine = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        check_settings(line.id, &line.cell)?;
        let label = match cells.last() {
            Some(last) if *last.record.label == *line.label => last.record.label.clone(),
            _ => line.label.into(),
        };
        let end = row.checked_add(place(line.rows)?).ok_or("has too many rows")?;
        let next = from.checked_add(place(text.len())?).ok_or("is too large")?;
        let PackLine { id, digest, seconds, .. } = line;
        let record = CellSummary { id, label, digest, seconds, provenance: provenance.clone() };
        cells.push(PackedCell { record, rows: row..end, line: from..next });
        (row, from) = (end, next);
    }
    Ok((head, cells))
}
