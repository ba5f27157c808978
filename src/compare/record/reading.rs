//! Reads the record of an experiment, and says what is wrong with files that were changed.

use super::super::side::{OmittedRuns, SCHEMA, SideCell, SideExperiment, SideRuns, count_diverged};
use super::format::{
    DIVERGED, EMPTY_TEXT, FINALS, HEAD, RECORD, RecordFile, SCHEMA_OF_ALL_RUNS, TAIL,
    TAIL_OF_ALL_RUNS, hash,
};
use crate::store::git::NotText;
use exactfed_core::words::revived;
use exactfed_runner::plan::{CellId, Shapes};
use exactfed_runner::trace::TraceDigest;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Why the record of an experiment is not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// A file is not text.
    #[error("{file}: {error}")]
    NotText {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: NotText,
    },
    /// A line of [`RECORD`] is wrong.
    #[error("{RECORD}:{line}: {message}")]
    RecordLine {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// [`RECORD`] is wrong as a whole.
    #[error("{RECORD}: {message}")]
    Record {
        /// What is wrong.
        message: String,
    },
    /// A line of [`FINALS`] is wrong.
    #[error("{FINALS}:{line}: {message}")]
    FinalsLine {
        /// The line, from 1.
        line: u64,
        /// What is wrong there.
        message: String,
    },
    /// The errors were changed after they were written.
    #[error("{FINALS}: does not have the hash that it was written with")]
    OtherHash,
    /// There is a record without its errors.
    #[error("{FINALS}: is missing")]
    NoFinals,
}

/// Reads an experiment from the texts of [`RECORD`] and [`FINALS`]. The first reports had no [`RECORD`]: `None` gives
/// an experiment of schema 0 without cells. So does a schema that this program does not know, with that schema: a
/// comparison then says that the experiment is not comparable.
///
/// # Errors
/// If a file was changed: its name, the line where one is to blame, and what is wrong there.
pub fn read(record: Option<&str>, finals: &str) -> Result<SideExperiment, RecordError> {
    let Some(text) = record else { return Ok(SideExperiment::default()) };
    let table: toml::Table = toml::from_str(text).map_err(|e| toml_error(text, &e))?;
    let schema = table.get("schema").and_then(toml::Value::as_integer).unwrap_or(0);
    let schema = u32::try_from(schema).unwrap_or(0);
    let tail: &[&str] = match schema {
        SCHEMA => &TAIL,
        SCHEMA_OF_ALL_RUNS => &TAIL_OF_ALL_RUNS,
        // This program does not know how to read the rest.
        _ => return Ok(SideExperiment { schema, ..SideExperiment::default() }),
    };
    let file: RecordFile = toml::from_str(text).map_err(|e| toml_error(text, &e))?;
    // Before the hash is checked: a message that names a line helps more.
    let cells = read_cells(finals, &file.settings, tail)
        .map_err(|WrongLine { line, message }| RecordError::FinalsLine { line, message })?;
    if hash(finals) != file.finals {
        return Err(RecordError::OtherHash);
    }
    Ok(SideExperiment {
        schema: SCHEMA,
        seed: file.seed,
        manifest: file.manifest,
        looks: file.looks,
        cells,
        claims: Some(file.claim),
    })
}

/// What is wrong with the text of [`RECORD`], and in which line.
fn toml_error(text: &str, e: &toml::de::Error) -> RecordError {
    let message = e.message().to_owned();
    match e.span() {
        Some(span) => {
            let line = 1 + text[..span.start].matches('\n').count();
            RecordError::RecordLine { line, message }
        }
        None => RecordError::Record { message },
    }
}

/// The text of a file of a record, or what is wrong with its bytes.
pub type FileText = Result<String, NotText>;

/// The texts of the files of a record that a folder has; `None` of a file that it does not have.
#[derive(Default)]
struct FolderFiles {
    record: Option<Result<String, RecordError>>,
    finals: Option<Result<String, RecordError>>,
}

/// Reads the records of many folders, such as all experiments of a commit. Each of `files` is a path that ends in
/// [`RECORD`] or [`FINALS`], with the text of the file. The keys are the folders of the paths, which are the names of
/// the experiments; a value is the experiment, or what is wrong with the files of its folder.
pub fn experiments(
    files: Vec<(String, FileText)>,
) -> BTreeMap<String, Result<SideExperiment, RecordError>> {
    let mut folders: BTreeMap<String, FolderFiles> = BTreeMap::new();
    for (path, text) in files {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
        let text = text.map_err(|error| RecordError::NotText { file: file.to_owned(), error });
        let of_folder = folders.entry(folder.to_owned()).or_default();
        if file == FINALS {
            of_folder.finals = Some(text);
        } else {
            of_folder.record = Some(text);
        }
    }
    folders.into_iter().map(|(folder, files)| (folder, read_folder(files))).collect()
}

/// Reads the experiment of a folder. [`RECORD`] without [`FINALS`] is an error; [`FINALS`] alone is one of the first
/// reports, whose numbers are not read.
fn read_folder(files: FolderFiles) -> Result<SideExperiment, RecordError> {
    let record = files.record.transpose()?;
    let finals = files.finals.transpose()?;
    if record.is_some() && finals.is_none() {
        return Err(RecordError::NoFinals);
    }
    read(record.as_deref(), &finals.unwrap_or_default())
}

/// A line of [`FINALS`] that is wrong, counted from 1.
struct WrongLine {
    line: u64,
    message: String,
}

/// Reads the cells from the text of [`FINALS`]. `shared` are the settings that all cells share, by path, from
/// [`RECORD`]; `tail` has the names of the columns after those of the varied settings, by which the schemas differ:
/// [`TAIL`], or [`TAIL_OF_ALL_RUNS`] without counts. Texts were written with a quote before what a spreadsheet would
/// compute, which [`revived`] takes away. A cell without a digest has no results.
fn read_cells(
    text: &str,
    shared: &BTreeMap<String, String>,
    tail: &[&str],
) -> Result<BTreeMap<CellId, SideCell>, WrongLine> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let heads = reader.headers().map_err(other_columns)?.clone();
    let columns: Vec<&str> = heads.iter().collect();
    let inside = columns.strip_prefix(&HEAD).and_then(|rest| rest.strip_suffix(tail));
    let Some(varied) = inside else {
        let message = "does not have the columns that a report writes".into();
        return Err(WrongLine { line: 1, message });
    };
    let mut cells = BTreeMap::new();
    // Equal paths and texts of all cells are stored once.
    let mut shapes = Shapes::default();
    let mut label = Arc::<str>::default();
    for row in reader.records() {
        // Every row has as many columns as the first line, so that the last ones are those of `tail`.
        let row = row.map_err(other_columns)?;
        let line = row.position().map_or(1, csv::Position::line);
        let wrong = |message: String| WrongLine { line, message };
        let mut settings: Vec<(&str, &str)> =
            shared.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
        for (path, value) in varied.iter().zip(row.iter().skip(HEAD.len())) {
            match value {
                // The cell is without the setting.
                "" => {}
                EMPTY_TEXT => settings.push((path, "")),
                _ => settings.push((path, revived(value))),
            }
        }
        let settings = shapes.read(settings);
        let runs = match &row[1] {
            "" => SideRuns::Missing,
            text => {
                let digest = TraceDigest::read(text)
                    .ok_or_else(|| wrong(format!("`{text}` is not a digest")))?;
                let finals = parse_finals(&row[row.len() - 1]).map_err(wrong)?;
                let omitted = match tail.len() {
                    // The first schema has the final errors of all runs.
                    1 => OmittedRuns::default(),
                    _ => parse_omitted(&row[row.len() - 3], &row[row.len() - 2], &finals)
                        .map_err(wrong)?,
                };
                SideRuns::Done { digest, finals, omitted }
            }
        };
        // Neighbours mostly have the same label, which they share.
        if *label != *revived(&row[2]) {
            label = revived(&row[2]).into();
        }
        let id = CellId::read(&row[0])
            .ok_or_else(|| wrong(format!("`{}` is not the id of a cell", &row[0])))?;
        let cell = SideCell { label: label.clone(), settings, runs, seconds: None };
        if cells.insert(id, cell).is_some() {
            return Err(wrong(format!("names the cell {id} again")));
        }
    }
    Ok(cells)
}

/// What is wrong with a line that the CSV reader refuses: it has more or fewer columns than the first.
fn other_columns(e: csv::Error) -> WrongLine {
    let line = e.position().map_or(1, csv::Position::line);
    WrongLine { line, message: "does not have the columns of the first line".to_owned() }
}

/// Reads the final errors of a cell from their field, one per replicate; `None` where it diverged. An error is a
/// message about the first word that is neither.
fn parse_finals(text: &str) -> Result<Box<[Option<f64>]>, String> {
    let mut finals = Vec::new();
    for word in text.split_whitespace() {
        if word == DIVERGED {
            finals.push(None);
            continue;
        }
        match word.parse::<f64>() {
            Ok(value) if value >= 0.0 && value.is_finite() => finals.push(Some(value)),
            _ => return Err(format!("`{word}` is neither a squared error nor `{DIVERGED}`")),
        }
    }
    Ok(finals.into())
}

/// How many replicates of a cell have no final error in its line, and how many of these diverged: the counts of all
/// replicates in the line, `runs` and `diverged`, without the replicates of `kept`, whose final errors are there. An
/// error is a message about counts that contradict `kept` or each other.
fn parse_omitted(runs: &str, diverged: &str, kept: &[Option<f64>]) -> Result<OmittedRuns, String> {
    let omitted = OmittedRuns {
        count: parse_rest(runs, kept.len())?,
        diverged: parse_rest(diverged, count_diverged(kept))?,
    };
    if omitted.diverged > omitted.count {
        return Err(format!("`{diverged}` of `{runs}` runs cannot have diverged"));
    }
    Ok(omitted)
}

/// The count that a field holds, without `kept` of it. An error is a message: the field is no count, or a smaller one.
fn parse_rest(text: &str, kept: usize) -> Result<u32, String> {
    let count = text.parse::<u32>().ok();
    let rest = count.and_then(|count| count.checked_sub(u32::try_from(kept).ok()?));
    rest.ok_or_else(|| format!("`{text}` is no count of at least {kept} runs"))
}
