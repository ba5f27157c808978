//! A pack: a Parquet file with the rows of one or more cells, one cell after another. All results
//! are stored, read, checked and copied as packs; a large grid is not as many files.
//!
//! The metadata of the file hold an index: a line of JSON on the pack, a line per cell in the order
//! of the rows, and a checksum. It is found without decoding the rest of the file.
//!
//! *Invariant*: a pack is named by the hash of its bytes, so every changed bit is detected, and packs
//! of the same name are equal. All packs have the same columns, so that a Parquet reader reads those
//! of an experiment together.

use super::checksum::{CHANGED, checked_body, checksum_line};
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
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The key of the index in the metadata of the file.
const INDEX: &str = "exactfed.cells";
/// The key of the manifest there.
const MANIFEST: &str = "exactfed.manifest";

/// The first line of an index, which concerns all cells of a pack.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct PackHead {
    /// Name of the experiment.
    pub experiment: String,
    /// If packs hold the same cell, the one of the highest generation counts.
    pub generation: u64,
    /// The optional columns that have values; set by [`Pack::encode`].
    pub columns: Vec<String>,
    /// The program that computed the cells.
    pub provenance: Provenance,
}

/// Another line of an index, which concerns one cell.
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
    /// The largest bound, over the instances of the cell, on the distance of θ* from the optimum; `None` if θ* was not
    /// found by a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimum_error: Option<f64>,
    /// The settings that determine the numbers, as TOML.
    pub cell: String,
    /// The programs that tracing made of the rounds of a user's algorithm, one per instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Traced>,
}

/// Why the index of a pack is not read.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A line is no JSON, or has other keys.
    #[error(transparent)]
    Line(#[from] serde_json::Error),
    /// The settings of a cell are no TOML.
    #[error("{}", .0.message())]
    Settings(#[from] toml::de::Error),
    /// The id of a cell is not the hash of its settings.
    #[error("has settings of cell {hash} where those of {id} belong")]
    OtherSettings {
        /// The id that the settings have.
        hash: CellId,
        /// The id that they should have.
        id: CellId,
    },
    /// The cells together have more rows than a file can have.
    #[error("has too many rows")]
    TooManyRows,
    /// A number in the index is larger than a file can be.
    #[error("is too large")]
    TooLarge,
}

impl PackLine {
    /// The settings as a table.
    pub fn settings(&self) -> Result<toml::Table, PackError> {
        Ok(toml::from_str(&self.cell)?)
    }
}

/// The part of a cell's line that stays in memory. Settings are left out: a large grid has many cells,
/// and their settings would take much memory.
pub struct PackedCell {
    pub record: CellSummary,
    /// The indices of its rows among those of the pack.
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
    /// The byte at which its index begins in the file.
    index: u64,
    /// The result of the first call of [`Self::check`].
    sound: OnceLock<Result<(), Error>>,
}

impl Pack {
    /// Opens the pack in a file. Its index is read and checked, and its rows are not.
    ///
    /// # Errors
    /// If the index is not as it was written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let index = read_index(path)?;
        let body = checked_body(&index.text).ok_or_else(|| error(path, CHANGED))?;
        let (head, cells) = parse_index(body).map_err(|e| error(path, e))?;
        Ok(Self { path: path.to_owned(), head, cells, index: index.start, sound: OnceLock::new() })
    }

    /// The indices of the rows of the `i`-th cell among those of the pack.
    pub fn rows(&self, i: usize) -> Range<usize> {
        as_usize_range(&self.cells[i].rows)
    }

    /// Reads the line of the `i`-th cell from the file. The checksum of the index was checked when the pack was opened,
    /// and is not checked again.
    pub fn read_line(&self, i: usize) -> Result<PackLine, Error> {
        let range = as_usize_range(&self.cells[i].line);
        let place = self.index + range.start as u64;
        let text =
            read_bytes_at(&self.path, place, range.len()).map_err(|e| error(&self.path, e))?;
        serde_json::from_slice(&text).map_err(|_| error(&self.path, CHANGED))
    }

    /// Reads the lines of the cells with these indices from the file, whose index is read once for all of them and, as
    /// by [`Self::read_line`], not checked again.
    pub fn read_lines(&self, cells: impl Iterator<Item = usize>) -> Result<Vec<PackLine>, Error> {
        let index = read_index(&self.path)?;
        let changed = || error(&self.path, CHANGED);
        let mut lines = Vec::new();
        for i in cells {
            let range = as_usize_range(&self.cells[i].line);
            let text = index.text.get(range).ok_or_else(changed)?;
            lines.push(serde_json::from_slice(text).map_err(|_| changed())?);
        }
        Ok(lines)
    }

    /// Reads all bytes, and checks that they have the hash that the pack is named by, and the rows of
    /// its cells.
    fn read_checked_bytes(&self) -> Result<Vec<u8>, Error> {
        let bytes = read_plain(&self.path, MOST_READ)?;
        if file_name(&self.path) != pack_name(&bytes) {
            return Err(error(&self.path, "does not have the hash that it is named by"));
        }
        let cells = self.cells.iter().map(|cell| (&*cell.record.id, cell.rows.len()));
        parquet::check_cells(&bytes, cells).map_err(|e| error(&self.path, e))?;
        Ok(bytes)
    }

    /// Checks that all bytes of the file are as they were written, without decoding numbers. Only the first call reads
    /// the file; later ones repeat its result.
    pub fn check(&self) -> Result<(), Error> {
        self.sound.get_or_init(|| self.read_checked_bytes().map(drop)).clone()
    }

    /// Reads and checks the file, at each call anew, and decodes all its rows, of which [`Self::traces`] makes the
    /// traces of a cell.
    pub fn read_rows(&self) -> Result<TraceRows, Error> {
        let bytes = self.read_checked_bytes()?;
        TraceRows::read(&bytes, &self.head.columns).map_err(|e| error(&self.path, e))
    }

    /// Reads and checks the file, at each call anew, and decodes these columns of all its rows.
    pub fn read_columns(&self, columns: Vec<String>) -> Result<DataFrame, Error> {
        let bytes = self.read_checked_bytes()?;
        parquet::decode(&bytes, Some(columns)).map_err(|e| error(&self.path, e))
    }

    /// The traces of the `i`-th cell; `rows` are all rows of this pack.
    ///
    /// # Errors
    /// If their digest is not the one in the index.
    pub fn traces(&self, rows: &TraceRows, i: usize) -> Result<Vec<Trace>, Error> {
        let CellSummary { id, digest, .. } = &self.cells[i].record;
        let traces = rows.traces(self.rows(i)).map_err(|e| error(&self.path, e))?;
        if trace::digest(&traces) == *digest {
            return Ok(traces);
        }
        let message = format!("does not hold the numbers of cell {id} as they were written");
        Err(error(&self.path, message))
    }

    /// Copies the cells with these indices, at least one and in ascending order, to a new pack in the folder of an
    /// experiment, which has the generation, the provenance and the manifest of this pack. They are checked once more
    /// on the way. All cells together are copied as the same bytes, under the same name.
    ///
    /// # Errors
    /// If this pack is not as it was written, or the new one cannot be written.
    pub fn copy_cells(&self, folder: &Path, cells: &[usize]) -> Result<(), Error> {
        let bytes = self.read_checked_bytes()?;
        if cells.len() == self.cells.len() {
            return write_synced(&folder.join(file_name(&self.path)), &bytes);
        }
        let lines = self.read_lines(cells.iter().copied())?;
        let ranges: Vec<Range<usize>> = cells.iter().map(|&i| self.rows(i)).collect();
        let manifest =
            parquet::metadata_value(&bytes, MANIFEST).map_err(|e| error(&self.path, e))?;
        let rows = parquet::select_rows(&bytes, &ranges).map_err(|e| error(&self.path, e))?;
        Self::write(folder, self.head.clone(), &lines, &manifest, rows)?;
        Ok(())
    }

    /// Writes a pack to the folder of an experiment and returns its path. `lines` describe its cells in the order of
    /// their rows in `frame`, which has all columns of packs, and `manifest` is the text of the manifest by which they
    /// were run. If there is a pack of the same bytes, it has the same name and is replaced.
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
        let bytes = Self::encode(head, lines, manifest, frame).map_err(|e| error(folder, e))?;
        let path = folder.join(pack_name(&bytes));
        write_synced(&path, &bytes)?;
        Ok(path)
    }

    /// The bytes of the file in which [`Self::write`] stores a pack. Its `head.columns` are the optional columns of the
    /// frame that have values, whatever `head` says.
    ///
    /// # Errors
    /// If the cells cannot be encoded.
    pub fn encode(
        head: PackHead,
        lines: &[PackLine],
        manifest: &str,
        frame: DataFrame,
    ) -> Result<Vec<u8>, EncodeError> {
        let mut columns = parquet::optional_columns();
        columns.retain(|name| frame.column(name).is_ok_and(has_values));
        let head = PackHead { columns, ..head };
        let index = index_text(&head, lines)?;
        let metadata = vec![(MANIFEST.to_owned(), manifest.to_owned()), (INDEX.to_owned(), index)];
        Ok(parquet::encode(metadata, frame)?)
    }
}

/// Whether a column has a value in some row.
fn has_values(column: &Column) -> bool {
    column.null_count() < column.len()
}

/// A range of a pack, which is stored in few bytes, as a range of indices.
fn as_usize_range(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Why cells cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The index cannot be written as JSON.
    #[error(transparent)]
    Index(#[from] serde_json::Error),
    /// The rows cannot be written as Parquet.
    #[error(transparent)]
    Table(#[from] polars::prelude::PolarsError),
}

/// The name of the file of a pack that has these bytes, which begins with their hash.
fn pack_name(bytes: &[u8]) -> String {
    format!("{}{PACK}", &sha256(bytes)[..16])
}

/// The text of an index, with its checksum.
fn index_text(head: &PackHead, lines: &[PackLine]) -> serde_json::Result<String> {
    let mut index = serde_json::to_string(head)?;
    index.push('\n');
    for line in lines {
        index += &serde_json::to_string(line)?;
        index.push('\n');
    }
    let last = checksum_line(index.as_bytes());
    Ok(index + &last)
}

/// The index of a pack as the file has it, unchecked.
struct IndexBytes {
    text: Vec<u8>,
    /// The byte of the file at which it begins.
    start: u64,
}

/// Reads the index of the pack in a file, and nothing else of it. Its checksum is not checked.
fn read_index(path: &Path) -> Result<IndexBytes, Error> {
    let folder = path.parent().unwrap_or(path);
    refuse_links(folder.parent().unwrap_or(folder), folder)?;
    let (footer_start, mut footer) = read_footer(path).map_err(|e| error(path, e))?;
    let range = find_index(&footer).ok_or_else(|| error(path, CHANGED))?;
    let start = footer_start + range.start as u64;
    footer.truncate(range.end);
    footer.drain(..range.start);
    Ok(IndexBytes { text: footer, start })
}

/// The byte at which the footer of a Parquet file begins, and the footer, which has the metadata of the file. The last
/// 8 bytes of the file are the length of the footer and a mark, which is not checked.
///
/// # Errors
/// If the file is a symbolic link, has fewer than 8 bytes, or cannot be read.
fn read_footer(path: &Path) -> io::Result<(u64, Vec<u8>)> {
    let mut file = open_regular(path, fs::File::options().read(true))?;
    let footer_end = file.metadata()?.len().saturating_sub(8);
    let mut end = [0; 8];
    file.seek(SeekFrom::Start(footer_end))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, ..] = end;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    let start = footer_end.saturating_sub(length);
    file.seek(SeekFrom::Start(start))?;
    let mut footer = Vec::new();
    file.take(length.min(MOST_READ)).read_to_end(&mut footer)?;
    Ok((start, footer))
}

/// Reads this many bytes of a file from `place` on.
fn read_bytes_at(path: &Path, place: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut file = open_regular(path, fs::File::options().read(true))?;
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The place of the index in the footer of a Parquet file, which Thrift's compact protocol encodes: the
/// key, the type of the next field, the length of the value in groups of seven bits, and the value. `None` if the
/// footer has no index, or ends within it.
fn find_index(footer: &[u8]) -> Option<Range<usize>> {
    const TEXT: u8 = 0x18;
    // Neither TOML nor JSON contains this byte, so no other value of the footer has `key` in it.
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

/// Checks that the id of a cell is the hash of its settings, which are TOML, character by character as they were hashed
/// when the cell was planned.
pub fn check_settings(id: CellId, settings: &str) -> Result<(), PackError> {
    let hash = CellId::of(settings);
    if hash != id {
        return Err(PackError::OtherSettings { hash, id });
    }
    Ok(())
}

/// The head and the cells of an index, from its lines without the checksum. The rows of the cells are taken to follow
/// one another in the file, which [`Pack::check`] compares with the file.
///
/// # Errors
/// If a line cannot be read, or the id of a cell is not the hash of its settings.
fn parse_index(index: &[u8]) -> Result<(PackHead, Vec<PackedCell>), PackError> {
    let mut lines = index.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let head: PackHead = serde_json::from_slice(first)?;
    let provenance = Arc::new(head.provenance.clone());
    let mut cells: Vec<PackedCell> = Vec::new();
    let mut row = 0_u32;
    let mut line_start = as_u32(first.len())?;
    for text in lines {
        let line: PackLine = serde_json::from_slice(text)?;
        check_settings(line.id, &line.cell)?;
        // Neighbours mostly have the same label, which they share.
        let label = match cells.last() {
            Some(last) if *last.record.label == *line.label => last.record.label.clone(),
            _ => line.label.into(),
        };
        let end = row.checked_add(as_u32(line.rows)?).ok_or(PackError::TooManyRows)?;
        let line_end = line_start.checked_add(as_u32(text.len())?).ok_or(PackError::TooLarge)?;
        let record = CellSummary {
            id: line.id,
            label,
            digest: line.digest,
            seconds: line.seconds,
            provenance: provenance.clone(),
        };
        cells.push(PackedCell { record, rows: row..end, line: line_start..line_end });
        row = end;
        line_start = line_end;
    }
    Ok((head, cells))
}

/// A size in the few bytes in which it is stored for each cell.
///
/// # Errors
/// If it is larger than a file can be.
fn as_u32(n: usize) -> Result<u32, PackError> {
    u32::try_from(n).map_err(|_| PackError::TooLarge)
}
