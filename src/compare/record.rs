//! The files of a report folder that later diffs read: `record.toml` has the settings that all
//! cells of an experiment share and the verdicts on its claims; `finals.csv` has one line per
//! cell, with every bit of the final errors of its first [`MOST_KEPT`] replicates.
//!
//! Reports are under version control, so that what they keep must be small. Replicates are
//! independent, so that the first ones are a sample of all; and their random streams do not depend
//! on the number of replicates, so that a diff can pair them with those of any other side. All
//! replicates are in results folders.
//!
//! *Invariant*: numbers are read back to the last bit, and a file that was changed is refused:
//! `record.toml` holds the hash of `finals.csv`.

use super::claims::SideClaim;
use super::side::{
    OmittedRuns, SCHEMA, SideCell, SideExperiment, SideRuns, count_diverged, differing_paths,
};
use crate::store::git::NotText;
use exactfed_core::words::{inert, revived};
use exactfed_runner::files::{hex, sha256};
use exactfed_runner::plan::{CellId, Setting, Shapes};
use exactfed_runner::trace::TraceDigest;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use thiserror::Error;

/// The file of settings that cells share.
pub const RECORD: &str = "record.toml";
/// The file of final errors.
pub const FINALS: &str = "finals.csv";

/// Stands for the final error of a replicate that diverged.
const DIVERGED: &str = "diverged";
/// Stands for a setting whose text is empty, since an empty field is that of a cell without the
/// setting. [`inert`] writes no other text so.
const EMPTY_TEXT: &str = "'";
/// Columns before the columns of the settings that vary among cells.
const HEAD: [&str; 3] = ["cell", "digest", "label"];
/// Columns after them: the number of replicates, how many of them diverged, and the final errors of
/// the first ones.
const TAIL: [&str; 3] = ["runs", "diverged", "finals"];

/// The most replicates of a cell whose final errors are written: the most pairs for which the note on
/// diffs (docs/notes/diff.md) has the coverage of the interval.
pub const MOST_KEPT: usize = 20;

/// Reports of this schema have the final errors of all replicates, and therefore no counts.
const SCHEMA_OF_ALL_RUNS: u32 = 1;
/// The columns of such reports after those of the settings.
const TAIL_OF_ALL_RUNS: [&str; 1] = ["finals"];

/// The contents of [`RECORD`].
#[derive(Serialize, Deserialize)]
struct RecordFile {
    schema: u32,
    seed: u64,
    /// Hash of the manifest and its overrides.
    manifest: String,
    /// Hash of [`FINALS`].
    finals: String,
    /// The settings that all cells share, by path.
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    claim: Vec<SideClaim>,
}

/// SHA-256 of a text, whatever its line ends are.
pub fn hash(text: &str) -> String {
    sha256(same_line_ends(text).as_bytes())
}

/// A text with the line ends of Unix: git may have changed them on Windows.
fn same_line_ends(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// The files of a record: names and texts.
pub fn files<C: Iterator<Item = (CellId, SideCell)>>(
    record: &SideExperiment,
    cells: impl Fn() -> C,
) -> [(&'static str, String); 2] {
    let mut finals = Vec::new();
    let shared = write(record, cells, &mut finals).expect("memory takes it all");
    [(RECORD, shared), (FINALS, String::from_utf8(finals).expect("it was made of text"))]
}

/// Writes [`FINALS`] of a record, and returns the text of [`RECORD`]. `cells` is called several times
/// and gives the cells by their ids, so that they are never all in memory.
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
        settings: shared.map(|(path, value)| (path.to_owned(), value.to_string())).collect(),
        claim: record.claims.clone().unwrap_or_default(),
    };
    Ok(toml::to_string(&file).expect("a record is a plain table"))
}

/// Writes a line per cell, with a column for each setting in which cells differ, and returns the
/// hash of the text, whatever its line ends are.
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

/// Writes the line of a cell.
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

/// The fields of a cell in the columns of [`TAIL`].
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

/// The cells whose lines are in memory at a time.
const AT_ONCE: usize = 4096;

/// The shortest decimals that read back as the same numbers, with spaces between.
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

/// A record from its files; the first reports had no `record.toml`.
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

/// The files of a record that a folder has.
#[derive(Default)]
struct FolderFiles {
    record: Option<Result<String, RecordError>>,
    finals: Option<Result<String, RecordError>>,
}

/// The experiments to which these files belong, each a [`RECORD`] or [`FINALS`] with its path and
/// text, by their folders; or what is wrong with the files of a folder.
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

/// The experiment of a folder with these files.
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

/// The cells of a text in the form of [`FINALS`]; `shared` are the settings that all cells share, and
/// `tail` the columns after those of the settings.
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
    let mut shapes = Shapes::default();
    let mut label = Arc::<str>::default();
    for row in reader.records() {
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

/// A line that the reader of CSV refuses: it has more or fewer columns than the first.
fn other_columns(e: csv::Error) -> WrongLine {
    let line = e.position().map_or(1, csv::Position::line);
    WrongLine { line, message: "does not have the columns of the first line".to_owned() }
}

/// The final errors of a line, one per replicate; `None` where it diverged.
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

/// The replicates that a line leaves out, from its counts of all replicates and of those that
/// diverged.
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

/// How many remain of a count without `kept`.
fn parse_rest(text: &str, kept: usize) -> Result<u32, String> {
    let count = text.parse::<u32>().ok();
    let rest = count.and_then(|count| count.checked_sub(u32::try_from(kept).ok()?));
    rest.ok_or_else(|| format!("`{text}` is no count of at least {kept} runs"))
}

#[cfg(test)]
mod tests {
    use super::super::side::id_of;
    use super::*;
    use crate::stats::verdict::Verdict;

    fn record() -> SideExperiment {
        let cell = |label: &str, step: &str, finals: Vec<Option<f64>>| SideCell {
            runs: SideRuns::done(TraceDigest::of(step), finals),
            ..SideCell::new(label, [("seed", "7"), ("step", step), ("law", "a, \"b\"\n")])
        };
        let mut missing = cell("F", "3", Vec::new());
        missing.runs = SideRuns::Missing;
        let numbers = [0.1 + 0.2, 0.0, 1e-300, f64::MIN_POSITIVE / 3.0, 123_456.789, 1e22];
        let cells = [
            ("x", cell("F, 1", "1", numbers.map(Some).to_vec())),
            ("y", cell("=\"G\"", "2", vec![None, Some(1.0 / 3.0)])),
            ("z", missing),
        ];
        let claim = SideClaim {
            id: "c".into(),
            statement: "\"quoted\"".into(),
            verdict: Verdict::Supported,
            expected_refuted: true,
            estimate: 0.5,
            low: f64::NEG_INFINITY,
            high: 1.0,
        };
        SideExperiment {
            schema: SCHEMA,
            seed: 7,
            manifest: "hash".into(),
            cells: cells.map(|(name, cell)| (id_of(name), cell)).into(),
            claims: Some(vec![claim]),
        }
    }

    #[test]
    fn every_bit_comes_back() {
        let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
        assert_eq!(finals.lines().next(), Some("cell,digest,label,step,runs,diverged,finals"));
        assert!(toml.contains("seed = \"7\""), "{toml}");
        assert_eq!(read(Some(&toml), &finals), Ok(record()));
        assert_eq!(read(Some(&toml), &finals.replace('\n', "\r\n")), Ok(record()));
    }

    #[test]
    fn reports_of_all_runs_are_read_as_those_of_the_first() {
        let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
        let mut old_finals = String::new();
        for line in finals.lines() {
            let (rest, last) = line.rsplit_once(',').unwrap();
            let (rest, _diverged) = rest.rsplit_once(',').unwrap();
            let (rest, _runs) = rest.rsplit_once(',').unwrap();
            old_finals.push_str(&format!("{rest},{last}\n"));
        }
        assert!(old_finals.starts_with("cell,digest,label,step,finals\n"));
        let old_toml =
            toml.replace("schema = 2", "schema = 1").replace(&hash(&finals), &hash(&old_finals));
        assert_eq!(read(Some(&old_toml), &old_finals), Ok(record()));
        let error = read(Some(&toml), &old_finals).unwrap_err();
        assert!(matches!(error, RecordError::FinalsLine { line: 1, .. }), "{error}");
    }

    #[test]
    fn of_many_runs_the_first_are_kept_and_the_others_counted() {
        let mut all = record();
        let cell = all.cells.get_mut(&id_of("x")).unwrap();
        let mut finals: Vec<Option<f64>> = (0..40).map(|i| Some(f64::from(i))).collect();
        finals[3] = None;
        finals[39] = None;
        cell.runs = SideRuns::done(TraceDigest::of("1"), finals.clone());
        let [(_, toml), (_, text)] = files(&all, || all.cells.clone().into_iter());
        let kept = read(Some(&toml), &text).unwrap();
        finals.truncate(MOST_KEPT);
        let SideRuns::Done { finals: first, omitted, .. } = &kept.cells[&id_of("x")].runs else {
            panic!("{kept:?}");
        };
        assert_eq!(**first, *finals);
        assert_eq!(*omitted, OmittedRuns { count: 20, diverged: 1 });
        let again = files(&kept, || kept.cells.clone().into_iter());
        assert_eq!(again.map(|(_, text)| text), [toml, text]);
    }

    #[test]
    fn an_empty_text_is_no_missing_setting() {
        let mut all = record();
        let settings = [[("seed", "7"), ("name", "")], [("seed", "7"), ("name", "'")]];
        for (name, settings) in ["x", "y"].into_iter().zip(settings) {
            let cell = all.cells.get_mut(&id_of(name)).unwrap();
            cell.settings = SideCell::new("", settings).settings;
        }
        let [(_, toml), (_, text)] = files(&all, || all.cells.clone().into_iter());
        assert_eq!(read(Some(&toml), &text), Ok(all));
    }

    #[test]
    fn what_is_not_as_it_was_written_is_refused() {
        let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
        let wrong = |toml: &str, finals: &str| read(Some(toml), finals).unwrap_err().to_string();
        let refused = |finals: &str, place: &str| {
            let message = wrong(&toml, finals);
            assert!(message.starts_with(place), "{message}");
        };
        refused(&finals.replace("1e-300", "-1e-300"), "finals.csv:2: ");
        refused(&finals.replace("diverged 0", "diverge 0"), "finals.csv:3: ");
        refused("cell,digest,replicate,outcome,sq_error,label\n", "finals.csv:1: ");
        refused(&finals.replace(&*id_of("y"), &id_of("x")), "finals.csv:3: ");
        refused(&finals.replace(&*id_of("y"), "y"), "finals.csv:3: ");
        refused(&finals.replace(&*TraceDigest::of("2").text(), "2"), "finals.csv:3: ");
        refused(&finals.replace(",,F", ",F"), "finals.csv:4: ");
        refused(&finals.replace(",6,0,", ",5,0,"), "finals.csv:2: ");
        refused(&finals.replace(",2,1,", ",2,2,"), "finals.csv:3: ");
        refused(&finals.replace("1e-300", "1e-301"), "finals.csv: does not have the hash");
        let bad = wrong(&toml.replace("seed = 7", "seed = x"), &finals);
        assert!(bad.starts_with("record.toml:2: "), "{bad}");
    }

    #[test]
    fn other_schemas_are_named_and_not_read() {
        let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
        assert_eq!(read(None, "anything").unwrap().schema, 0);
        let other = toml.replace("schema = 2", "schema = 9");
        assert_eq!(read(Some(&other), &finals).unwrap().schema, 9);
    }
}
