//! Writes the record of an experiment, a cell at a time.

use super::super::side::{SideCell, SideExperiment, SideRuns, count_diverged, differing_paths};
use super::format::{
    DIVERGED, EMPTY_TEXT, FINALS, HEAD, MOST_KEPT, RECORD, RecordFile, TAIL, same_line_ends,
};
use exactfed_core::words::inert;
use exactfed_runner::files::hex;
use exactfed_runner::plan::{CellId, Setting};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Write;

/// The two files of a record, each its name and its text: [`RECORD`], then [`FINALS`]. It is [`write`] in memory, which
/// tests need.
pub fn files<C: Iterator<Item = (CellId, SideCell)>>(
    record: &SideExperiment,
    cells: impl Fn() -> C,
) -> [(&'static str, String); 2] {
    let mut finals = Vec::new();
    let shared = write(record, cells, &mut finals).expect("memory takes it all");
    [(RECORD, shared), (FINALS, String::from_utf8(finals).expect("it was made of text"))]
}

/// Writes the text of [`FINALS`] to `out`, and returns the text of [`RECORD`], which the caller writes to its own file.
/// The cells are not those of `record` but those that `cells` makes, in the order of their ids. `cells` is called
/// several times and must make the same cells each time, since the columns must be known before the first line and the
/// cells are never all in memory. Of each cell the first [`MOST_KEPT`] final errors are written.
///
/// # Errors
/// If `out` cannot be written.
pub fn write<C: Iterator<Item = (CellId, SideCell)>>(
    record: &SideExperiment,
    cells: impl Fn() -> C,
    out: &mut dyn Write,
) -> std::io::Result<String> {
    let varied = differing_paths(cells().map(|(_, cell)| cell));
    let finals = write_finals(cells(), &varied, out)?;
    let first = cells().next().map(|(_, cell)| cell.settings).unwrap_or_default();
    let shared = first.iter().filter(|(path, _)| !varied.contains(*path));
    let file = RecordFile {
        schema: record.schema,
        seed: record.seed,
        manifest: record.manifest.clone(),
        finals,
        looks: record.looks,
        settings: shared.map(|(path, value)| (path.to_owned(), value.to_string())).collect(),
        claim: record.claims.clone().unwrap_or_default(),
    };
    Ok(toml::to_string(&file).expect("a record is a plain table"))
}

/// Writes the whole text of [`FINALS`] to `out`: a line per cell, with a column for each setting of `varied`, in which
/// cells differ. Returns the hash of the text ([`hash`](super::hash)), by which a reader of [`RECORD`] sees that the
/// file was changed. The lines are made in blocks of [`AT_ONCE`] cells, since the text of a large experiment is larger
/// than its other data.
fn write_finals(
    cells: impl Iterator<Item = (CellId, SideCell)>,
    varied: &BTreeSet<String>,
    out: &mut dyn Write,
) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut cells = cells.peekable();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let paths = varied.iter().map(String::as_str);
    writer.write_record(HEAD.into_iter().chain(paths).chain(TAIL))?;
    loop {
        for (id, cell) in cells.by_ref().take(AT_ONCE) {
            write_line(&mut writer, id, &cell, varied)?;
        }
        let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        let text = std::str::from_utf8(&bytes).expect("it was made of text");
        hash.update(same_line_ends(text).as_bytes());
        out.write_all(&bytes)?;
        if cells.peek().is_none() {
            return Ok(hex(&hash.finalize()));
        }
        writer = csv::Writer::from_writer(Vec::new());
    }
}

/// Writes the line of a cell. Its digest is empty without sound results, and so is the field of a setting that it does
/// not have. [`inert`] puts a quote before a text that a spreadsheet would compute.
fn write_line(
    writer: &mut csv::Writer<Vec<u8>>,
    id: CellId,
    cell: &SideCell,
    varied: &BTreeSet<String>,
) -> csv::Result<()> {
    writer.write_field(id.as_str())?;
    match &cell.runs {
        SideRuns::Done { digest, .. } => writer.write_field(&*digest.text())?,
        SideRuns::Missing | SideRuns::Damaged(_) => writer.write_field("")?,
    }
    writer.write_field(inert(&cell.label).as_bytes())?;
    for path in varied {
        match cell.settings.at_path(path).map(Setting::to_string) {
            None => writer.write_field("")?,
            Some(text) if text.is_empty() => writer.write_field(EMPTY_TEXT)?,
            Some(text) => writer.write_field(inert(&text).as_bytes())?,
        }
    }
    writer.write_record(tail_fields(&cell.runs))
}

/// The fields of a cell in the columns of [`TAIL`]; empty without sound results. The counts are of all replicates, also
/// of those whose final errors are not written now or were not in the report from which the cell was read.
fn tail_fields(runs: &SideRuns) -> [String; 3] {
    match runs {
        SideRuns::Done { finals, omitted, .. } => {
            let kept = &finals[..finals.len().min(MOST_KEPT)];
            let runs = finals.len() + omitted.count as usize;
            let diverged = count_diverged(finals) + omitted.diverged as usize;
            [runs.to_string(), diverged.to_string(), finals_text(kept)]
        }
        SideRuns::Missing | SideRuns::Damaged(_) => Default::default(),
    }
}

/// The number of cells whose lines are in memory at a time.
const AT_ONCE: usize = 4096;

/// The final errors of a cell as one field: the shortest decimals that read back as the same numbers, with spaces
/// between them, and [`DIVERGED`] for a replicate that diverged.
fn finals_text(finals: &[Option<f64>]) -> String {
    let mut words = Vec::with_capacity(finals.len());
    for value in finals {
        words.push(match value {
            None => DIVERGED.to_owned(),
            Some(v) if (1e-3..1e6).contains(&v.abs()) => v.to_string(),
            Some(v) => format!("{v:e}"),
        });
    }
    words.join(" ")
}
