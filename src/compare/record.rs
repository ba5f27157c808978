//! The files of a report folder that later diffs read: `record.toml` has the settings that all
//! cells of an experiment share and the verdicts on its claims; `finals.csv` has one line per
//! cell, with every bit of every replicate's final error.
//!
//! *Invariant*: numbers are read back to the last bit, and a file that was changed is refused:
//! `record.toml` holds the hash of `finals.csv`.

use super::claims::SideClaim;
use super::side::{SCHEMA, SideCell, SideExperiment, SideRuns, differing_paths};
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

/// The file of settings that cells share.
pub const RECORD: &str = "record.toml";
/// The file of final errors.
pub const FINALS: &str = "finals.csv";

/// Stands for the final error of a replicate that diverged.
const DIVERGED: &str = "diverged";
/// Columns before those of the settings that vary among cells.
const HEAD: [&str; 3] = ["cell", "digest", "label"];

#[derive(Serialize, Deserialize)]
struct RecordFile {
    schema: u32,
    seed: u64,
    manifest: String,
    finals: String,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    claim: Vec<SideClaim>,
}

/// SHA-256 of a text, whatever its line ends are.
pub fn hash(text: &str) -> String {
    sha256(same_line_ends(text).as_bytes())
}

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

/// Writes [`FINALS`] of a record, and returns the text of [`RECORD`]. The cells come one after the
/// other, by their ids: of many, few are in memory at a time.
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
    let line = |cell: Option<(CellId, SideCell)>, writer: &mut csv::Writer<Vec<u8>>| {
        let Some((id, cell)) = cell else {
            let names = varied.iter().map(String::as_str);
            return writer.write_record(HEAD.into_iter().chain(names).chain(["finals"]));
        };
        let (digest, finals) = match &cell.runs {
            SideRuns::Done { digest, finals } => (&*digest.text(), numbers(finals)),
            SideRuns::Missing | SideRuns::Damaged(_) => ("", String::new()),
        };
        let value =
            |path: &str| cell.settings.at_path(path).map(Setting::to_string).unwrap_or_default();
        let settings: Vec<String> = varied.iter().map(|path| value(path)).collect();
        let settings = settings.iter().map(|text| inert(text));
        let fields = [id.as_str().into(), digest.into(), inert(&cell.label)].into_iter();
        let fields: Vec<Cow<'_, str>> = fields.chain(settings).chain([finals.into()]).collect();
        writer.write_record(fields.iter().map(|field| field.as_bytes()))
    };
    let mut lines = std::iter::once(None).chain(cells.map(Some)).peekable();
    let mut hash = Sha256::new();
    while lines.peek().is_some() {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        lines.by_ref().take(AT_ONCE).try_for_each(|cell| line(cell, &mut writer))?;
        let text = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        hash.update(
            same_line_ends(std::str::from_utf8(&text).expect("it was made of text")).as_bytes(),
        );
        out.write_all(&text)?;
    }
    Ok(hex(&hash.finalize()))
}

/// Lines that are in memory at a time.
const AT_ONCE: usize = 4096;

/// The shortest decimals that read back as the same numbers.
fn numbers(finals: &[Option<f64>]) -> String {
    let text = |value: &Option<f64>| match value {
        None => DIVERGED.to_owned(),
        Some(v) if (1e-3..1e6).contains(&v.abs()) => v.to_string(),
        Some(v) => format!("{v:e}"),
    };
    finals.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// A record from its files; the first reports had no `record.toml`.
///
/// # Errors
/// If a file was changed: its name, the line where one is to blame, and what is wrong there.
pub fn read(record: Option<&str>, finals: &str) -> Result<SideExperiment, String> {
    let Some(text) = record else { return Ok(SideExperiment::default()) };
    let refused = |e: toml::de::Error| {
        let line = e.span().map(|at| 1 + text[..at.start].matches('\n').count());
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{RECORD}{line}: {}", e.message())
    };
    let table: toml::Table = toml::from_str(text).map_err(refused)?;
    let schema = table.get("schema").and_then(toml::Value::as_integer).unwrap_or(0);
    if schema != i64::from(SCHEMA) {
        // This program does not know how to read the rest.
        let schema = u32::try_from(schema).unwrap_or(0);
        return Ok(SideExperiment { schema, ..SideExperiment::default() });
    }
    let file: RecordFile = toml::from_str(text).map_err(refused)?;
    let cells = cells(finals, &file.settings)
        .map_err(|(line, message)| format!("{FINALS}:{line}: {message}"))?;
    if hash(finals) != file.finals {
        return Err(format!("{FINALS}: does not have the hash that it was written with"));
    }
    Ok(SideExperiment {
        schema: SCHEMA,
        seed: file.seed,
        manifest: file.manifest,
        cells,
        claims: Some(file.claim),
    })
}

/// The text of a file of a record, or what is wrong with its bytes.
pub type FileText = Result<String, String>;

/// The experiments to which these files belong, each a [`RECORD`] or [`FINALS`] with its path and
/// text, by their folders; or what is wrong with the files of a folder.
pub fn experiments(
    files: Vec<(String, FileText)>,
) -> BTreeMap<String, Result<SideExperiment, String>> {
    let mut folders: BTreeMap<String, [Option<FileText>; 2]> = BTreeMap::new();
    for (path, text) in files {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
        let place = usize::from(file == FINALS);
        let text = text.map_err(|wrong| format!("{file}: {wrong}"));
        folders.entry(folder.to_owned()).or_default()[place] = Some(text);
    }
    let read_folder = |(folder, files)| (folder, read_files(files));
    folders.into_iter().map(read_folder).collect()
}

/// The experiment of a folder with these files, a [`RECORD`] and [`FINALS`].
fn read_files([shared, finals]: [Option<FileText>; 2]) -> Result<SideExperiment, String> {
    let shared = shared.transpose()?;
    match (&shared, finals.transpose()?) {
        (Some(_), None) => Err(format!("{FINALS}: is missing")),
        (_, finals) => read(shared.as_deref(), &finals.unwrap_or_default()),
    }
}

/// The cells of a text in the form of [`FINALS`]; or the line that is wrong, and what is wrong there.
fn cells(
    text: &str,
    shared: &BTreeMap<String, String>,
) -> Result<BTreeMap<CellId, SideCell>, (u64, String)> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let place = |e: csv::Error| {
        let line = e.position().map_or(1, csv::Position::line);
        (line, "does not have the columns of the first line".to_owned())
    };
    let heads = reader.headers().map_err(place)?.clone();
    let columns: Vec<&str> = heads.iter().collect();
    let known = columns.len() > HEAD.len() && columns[..HEAD.len()] == HEAD;
    if !known || columns.last() != Some(&"finals") {
        return Err((1, "does not have the columns that a report writes".into()));
    }
    let (mut all, mut shapes) = (BTreeMap::new(), Shapes::default());
    let mut label = Arc::<str>::default();
    for row in reader.records() {
        let row = row.map_err(place)?;
        let line = row.position().map_or(1, csv::Position::line);
        let varied = columns.iter().copied().zip(&row).take(row.len() - 1).skip(HEAD.len());
        let own = varied.filter(|(_, value)| !value.is_empty());
        let own = own.map(|(path, value)| (path, revived(value)));
        let shared = shared.iter().map(|(path, value)| (path.as_str(), value.as_str()));
        let settings = shapes.read(shared.chain(own));
        let runs = match &row[1] {
            "" => SideRuns::Missing,
            digest => SideRuns::Done {
                digest: TraceDigest::read(digest)
                    .ok_or_else(|| (line, format!("`{digest}` is not a digest")))?,
                finals: parsed(&row[row.len() - 1]).map_err(|message| (line, message))?,
            },
        };
        if *label != *revived(&row[2]) {
            label = revived(&row[2]).into();
        }
        let id = CellId::read(&row[0])
            .ok_or_else(|| (line, format!("`{}` is not the id of a cell", &row[0])))?;
        let cell = SideCell { label: label.clone(), settings, runs, seconds: None };
        if all.insert(id, cell).is_some() {
            return Err((line, format!("names the cell {id} again")));
        }
    }
    Ok(all)
}

fn parsed(text: &str) -> Result<Box<[Option<f64>]>, String> {
    let number = |word: &str| match word.parse::<f64>() {
        _ if word == DIVERGED => Ok(None),
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(Some(value)),
        _ => Err(format!("`{word}` is neither a squared error nor `{DIVERGED}`")),
    };
    text.split_whitespace().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::side::id_of;
    use super::*;
    use crate::stats::verdict::Verdict;

    fn record() -> SideExperiment {
        let cell = |label: &str, step: &str, finals: Vec<Option<f64>>| SideCell {
            runs: SideRuns::Done { digest: TraceDigest::of(step), finals: finals.into() },
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
        assert_eq!(finals.lines().next(), Some("cell,digest,label,step,finals"));
        assert!(toml.contains("seed = \"7\""), "{toml}");
        assert_eq!(read(Some(&toml), &finals), Ok(record()));
        assert_eq!(read(Some(&toml), &finals.replace('\n', "\r\n")), Ok(record()));
    }

    #[test]
    fn what_is_not_as_it_was_written_is_refused() {
        let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
        let wrong = |toml: &str, finals: &str| read(Some(toml), finals).unwrap_err();
        let refused = |finals: &str, place: &str| {
            let message = wrong(&toml, finals);
            assert!(message.starts_with(place), "{message}");
        };
        refused(&finals.replace("1e-300", "-1e-300"), "finals.csv:2: ");
        refused(&finals.replace("diverged", "diverge"), "finals.csv:3: ");
        refused("cell,digest,replicate,outcome,sq_error,label\n", "finals.csv:1: ");
        refused(&finals.replace(&*id_of("y"), &id_of("x")), "finals.csv:3: ");
        refused(&finals.replace(&*id_of("y"), "y"), "finals.csv:3: ");
        refused(&finals.replace(&*TraceDigest::of("2").text(), "2"), "finals.csv:3: ");
        refused(&finals.replace(",,F", ",F"), "finals.csv:4: ");
        refused(&finals.replace("1e-300", "1e-301"), "finals.csv: does not have the hash");
        let bad = wrong(&toml.replace("seed = 7", "seed = x"), &finals);
        assert!(bad.starts_with("record.toml:2: "), "{bad}");
    }

    #[test]
    fn other_schemas_are_named_and_not_read() {
        let [(_, toml), (_, finals)] = files(&record(), || record().cells.into_iter());
        assert_eq!(read(None, "anything").unwrap().schema, 0);
        let other = toml.replace("schema = 1", "schema = 9");
        assert_eq!(read(Some(&other), &finals).unwrap().schema, 9);
    }
}
