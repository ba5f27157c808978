//! `init`: writes a manifest to start from.

use super::confirm::{ask, is_yes};
use super::{Code, Failure, data, names, print};
use crate::store::read_table;
use driftbench_runner::data::describe::columns;
use driftbench_runner::files::write_atomically;
use std::ffi::OsStr;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The manifest of the README: a synthetic problem, for those who have no records at hand.
const SYNTHETIC: &str = include_str!("mine.toml");

#[derive(clap::Args)]
#[command(after_help = "\
With FILE, the manifest is that of `driftbench data FILE`. Without FILE, `init` asks for the file, the \
column of the labels and whether to tune; where there is no terminal to ask on, it writes a \
manifest of a synthetic problem, mine.toml. A manifest that exists is replaced only with --force.

Example: driftbench init records.csv --label outcome")]
pub struct Args {
    /// CSV, Parquet, LIBSVM or .npz
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The column of the labels (CSV, Parquet); by default one with a usual name, or the last
    #[arg(long, value_name = "COLUMN", requires = "file")]
    label: Option<String>,
    /// Compare four algorithms, each with the step size that is best for it
    #[arg(long, requires = "file")]
    tune: bool,
    /// The manifest; by default the name of FILE with .toml, in the current folder
    #[arg(long, value_name = "MANIFEST")]
    out: Option<PathBuf>,
    /// Replace a manifest that exists
    #[arg(long)]
    force: bool,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    let records = match &args.file {
        Some(file) => {
            Some(data::Args { file: file.clone(), label: args.label.clone(), tune: args.tune })
        }
        None if stdin.is_terminal() && stderr.is_terminal() => {
            questions(&mut stdin.lock(), &mut stderr)?
        }
        None => None,
    };
    let out = match (&args.out, &records) {
        (Some(out), _) => out.clone(),
        (None, Some(records)) => named_after(&records.file),
        (None, None) => PathBuf::from("mine.toml"),
    };
    let experiment = check_name(&out, args.force)?;
    let (about, text) = match records {
        Some(records) => {
            data::manifest(&data::Args { file: seen_from(&out, records.file), ..records })?
        }
        None => (vec!["a synthetic logistic problem".to_owned()], SYNTHETIC.to_owned()),
    };
    write_atomically(&out, text.as_bytes())?;
    let about: String = about.iter().map(|line| format!("  {line}\n")).collect();
    let name = out.display().to_string();
    let width = name.len() + 1;
    print(&format!(
        "{name} is written:\n{about}next:\n\
         \x20 driftbench check {name}   # reports mistakes with line and column\n\
         \x20 driftbench run {name}     # computes the missing cells into results/\n\
         \x20 driftbench report{:width$}  # writes reports/{experiment}/report.html\n",
        ""
    ))?;
    Ok(Code::Done)
}

/// Asks for the file of the records and what to do with them; `None` for a synthetic problem.
fn questions(from: &mut impl BufRead, to: &mut impl Write) -> Result<Option<data::Args>, Failure> {
    let mut answer = |question: &str| {
        ask(question, from, to)
            .ok_or_else(|| Failure::input("\nerror: there was no answer; nothing is written"))
    };
    let path = answer("Data file, CSV, Parquet, LIBSVM or .npz; empty for a synthetic problem:")?;
    if path.is_empty() {
        return Ok(None);
    }
    let columns = columns(&path, Some(read_table));
    let mut label = String::new();
    if let Some((names, default)) = columns.map_err(|e| Failure::input(format!("error: {e}")))? {
        label = answer(&format!("Columns: {names}\nColumn of the labels [{default}]:"))?;
    }
    let tune =
        answer("Compare four algorithms, each with the step size that is best for it? [y/N]")?;
    Ok(Some(data::Args {
        file: path.into(),
        label: Some(label).filter(|label| !label.is_empty()),
        tune: is_yes(&tune),
    }))
}

/// The manifest of records, in the current folder.
fn named_after(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or(OsStr::new("")).to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.chars().map(plain).collect();
    format!("{}.toml", name.trim_start_matches('.')).into()
}

/// The file as a manifest names it, which is read relative to its own folder.
fn seen_from(manifest: &Path, file: PathBuf) -> PathBuf {
    let beside = manifest.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    if beside { file } else { std::path::absolute(&file).unwrap_or(file) }
}

/// The name of the experiment of a new manifest.
fn check_name(out: &Path, force: bool) -> Result<String, Failure> {
    let (name, wrong) = (out.display(), |what: String| Err(Failure::input(what)));
    if out.extension() != Some(OsStr::new("toml")) {
        return wrong(format!("error: {name}: the name of a manifest ends in .toml"));
    }
    if !force && out.symlink_metadata().is_ok() {
        return wrong(format!(
            "error: {name} exists; --force replaces it, and --out names another manifest"
        ));
    }
    names::from_manifest(out).map_err(|e| Failure::input(format!("{e}  = help: --out names it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers to these questions, and what was asked.
    fn answered(answers: &str) -> (Result<Option<data::Args>, Failure>, String) {
        let mut asked = Vec::new();
        let found = questions(&mut answers.as_bytes(), &mut asked);
        (found, String::from_utf8(asked).unwrap())
    }

    #[test]
    fn questions_are_asked_one_after_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.csv");
        std::fs::write(&file, "age,site,outcome\n1,a,0\n2,b,1\n").unwrap();
        let path = file.to_str().unwrap();
        for (answers, label, tune) in [
            ("\n\n", None, false),
            ("age\nyes\n", Some("age"), true),
            (" age \nno\n", Some("age"), false),
        ] {
            let (found, asked) = answered(&format!("{path}\n{answers}"));
            let found = found.unwrap().unwrap();
            assert_eq!(
                (found.file.as_path(), found.label.as_deref(), found.tune),
                (&*file, label, tune)
            );
            let (begin, end) = asked.split_once(": Columns: ").unwrap();
            assert!(begin.starts_with("Data file, CSV"), "{asked}");
            assert!(
                end.starts_with("age, site, outcome\nColumn of the labels [outcome]: "),
                "{asked}"
            );
        }
        let (found, asked) = answered("\n");
        assert!(found.unwrap().is_none() && !asked.contains("Columns"), "{asked}");
    }

    #[test]
    fn no_answer_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let arrays = folder.path().join("r.svm");
        std::fs::write(&arrays, "1 1:2\n0 1:3\n").unwrap();
        let path = arrays.to_str().unwrap();
        let (found, asked) = answered(&format!("{path}\n"));
        assert!(!asked.contains("Columns") && asked.contains("[y/N]"), "{asked}");
        for found in [found, answered("").0] {
            assert!(found.err().unwrap().message.contains("there was no answer"));
        }
        let gone = answered("gone.csv\n").0.err().unwrap();
        assert!(gone.message.contains("gone.csv cannot be read"), "{}", gone.message);
    }

    #[test]
    fn manifests_are_named_after_their_records() {
        for (file, manifest) in [
            ("a/my data (1).csv", "my-data--1-.toml"),
            (".r.npz", "r.toml"),
            ("a9a.txt", "a9a.toml"),
        ] {
            assert_eq!(named_after(Path::new(file)), Path::new(manifest));
        }
    }
}
