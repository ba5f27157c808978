//! `init`: writes a manifest to start from.

use super::confirm::{ask, is_yes};
use super::outcome::{Code, Failure, print};
use super::{data, names};
use crate::store::read_table;
use exactfed_runner::data::describe::columns;
use exactfed_runner::files::write_named;
use std::ffi::OsStr;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The manifest of the README: a synthetic problem, for those who have no records at hand.
const SYNTHETIC: &str = include_str!("mine.toml");
/// The name of the synthetic manifest, where none is given.
const SYNTHETIC_NAME: &str = "mine.toml";
/// The endings of packed files, which follow that of the file inside. Not all of these are read.
const PACKED: [&str; 5] = ["gz", "bz2", "xz", "zst", "zip"];

/// How often a question is asked at most; the last wrong answer ends the command.
const ATTEMPTS: usize = 5;

#[derive(clap::Args)]
#[command(after_help = "\
With FILE, the manifest is that of `exactfed data FILE`. Without FILE, `init` asks for the file, the \
column of the labels and whether to tune, and asks again where an answer cannot be used; where there is no terminal to ask on, it writes a \
manifest of a synthetic problem, mine.toml. A manifest that exists is replaced only with --force.

Example: exactfed init records.csv --label outcome")]
pub struct Args {
    /// CSV, Parquet, LIBSVM or .npz
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The column of the labels (CSV, Parquet); by default one with a usual name, or the last
    #[arg(long, value_name = "COLUMN", requires = "file")]
    label: Option<String>,
    /// The column of the clients (CSV, Parquet; .npz: the array), or the number of clients to which shuffled
    /// records are given; by default a column whose name says so, such as site or hospital, or up to 10
    #[arg(long, value_name = "COLUMN|N", requires = "file")]
    clients: Option<String>,
    /// The first line of a CSV file is a record; the columns are called c1, c2, …
    #[arg(long, requires = "file")]
    no_header: bool,
    /// Compare five algorithms, each with the settings that are best for it
    #[arg(long, requires = "file")]
    tune: bool,
    /// The manifest; by default the name of FILE with .toml, in the current folder
    #[arg(long, value_name = "MANIFEST")]
    out: Option<PathBuf>,
    /// Replace a manifest that exists
    #[arg(long)]
    force: bool,
}

/// The command `init`: writes a manifest for a data file, which it asks for on a terminal, or for a synthetic
/// problem, and prints what to do next.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let stdin = std::io::stdin();
    let mut stderr = std::io::stderr();
    let (records, out) = match &args.file {
        Some(file) => {
            let file = file.clone();
            let label = args.label.clone();
            let clients = args.clients.clone();
            let out = args.out.clone().unwrap_or_else(|| named_after(&file));
            let no_header = args.no_header;
            (Some(data::Args { file, label, clients, no_header, tune: args.tune }), out)
        }
        None if stdin.is_terminal() && stderr.is_terminal() => {
            let mut dialogue = Dialogue { from: &mut stdin.lock(), to: &mut stderr };
            questions(args.out.as_deref(), args.force, &mut dialogue)?
        }
        None => (None, args.out.clone().unwrap_or_else(|| SYNTHETIC_NAME.into())),
    };
    let experiment = check_name(&out, args.force)?;
    let (about, text) = match records {
        Some(records) => {
            data::manifest(&data::Args { file: seen_from(&out, records.file), ..records })?
        }
        None => (vec!["a synthetic logistic problem".to_owned()], SYNTHETIC.to_owned()),
    };
    write_named(&out, text.as_bytes())?;
    let about: String = about.iter().map(|line| format!("  {line}\n")).collect();
    let name = out.display().to_string();
    let width = name.len() + 1;
    print(&format!(
        "{name} is written:\n{about}next:\n\
         \x20 exactfed check {name}   # reports mistakes with line and column\n\
         \x20 exactfed run {name}     # computes the missing cells into results/\n\
         \x20 exactfed report{:width$}  # writes reports/{experiment}/report.html\n",
        ""
    ))?;
    Ok(Code::Done)
}

/// Where questions are asked and answered: the terminal, or texts in tests.
struct Dialogue<'a> {
    from: &'a mut dyn BufRead,
    to: &'a mut dyn Write,
}

impl Dialogue<'_> {
    /// Asks a question and returns what `check` makes of the answer, which is trimmed and may be empty. A wrong answer
    /// is reported and the question asked again, up to [`ATTEMPTS`] times.
    ///
    /// # Errors
    /// If there is no answer, or the last attempt is wrong too.
    fn answer<T>(
        &mut self,
        question: &str,
        check: impl Fn(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut attempts = 1;
        loop {
            let answer = ask(question, self.from, self.to).ok_or_else(|| {
                Failure::input("\nerror: there was no answer; nothing is written")
            })?;
            match check(&answer) {
                Err(wrong) if attempts < ATTEMPTS => {
                    let _ = writeln!(self.to, "{}", wrong.message.trim_end());
                    attempts += 1;
                }
                found => return found,
            }
        }
    }
}

/// Asks all that `init` without FILE needs: the data file, the manifest if its name is taken, the column of
/// the labels if the file has named columns, and whether to tune. Returns the answers as the arguments of
/// `data`, `None` for a synthetic problem, and the path of the new manifest. `out` is the path that the
/// command line names, if it does; `force` allows to replace a manifest.
fn questions(
    out: Option<&Path>,
    force: bool,
    dialogue: &mut Dialogue<'_>,
) -> Result<(Option<data::Args>, PathBuf), Failure> {
    // Before any question, since no answer changes it.
    out.map(|out| check_name(out, force)).transpose()?;
    let question = "Data file, CSV, Parquet, LIBSVM or .npz; empty for a synthetic problem:";
    let file = dialogue.answer(question, |path| match path {
        "" => Ok(None),
        path => known_file(path).map(|columns| Some((PathBuf::from(path), columns))),
    })?;
    let named = file.as_ref().map_or_else(|| SYNTHETIC_NAME.into(), |(file, _)| named_after(file));
    let mut out = out.map_or(named, Path::to_owned);
    if let Err(taken) = check_name(&out, force) {
        let _ = writeln!(dialogue.to, "{}", taken.message.trim_end());
        out = dialogue.answer("Name of the manifest, ending in .toml:", |name| {
            check_name(Path::new(name), force).map(|_| PathBuf::from(name))
        })?;
    }
    let Some((file, columns)) = file else { return Ok((None, out)) };
    let mut records = data::Args::of_file(file);
    if let Some((names, default)) = columns {
        let question = format!("Columns: {names}\nColumn of the labels [{default}]:");
        records = dialogue.answer(&question, |label| {
            let label = Some(label.to_owned()).filter(|label| !label.is_empty());
            let records = data::Args { label, ..data::Args::of_file(records.file.clone()) };
            data::manifest(&records).map(|_| records)
        })?;
    }
    let question = "Compare five algorithms, each with the settings that are best for it? [y/N]";
    records.tune = dialogue.answer(question, |answer| match answer.to_lowercase().as_str() {
        "" | "n" | "no" => Ok(false),
        yes if is_yes(yes) => Ok(true),
        _ => Err(Failure::input("error: the answer is y or n")),
    })?;
    Ok((Some(records), out))
}

/// The names of the columns of a data file in one text, and the name of the column that holds the labels by
/// default; `None` for a file without named columns, after a check that its records give a manifest.
///
/// # Errors
/// If the file cannot be read, or gives no manifest.
fn known_file(path: &str) -> Result<Option<(String, String)>, Failure> {
    let columns = columns(path, Some(read_table));
    let columns = columns.map_err(|e| Failure::input(format!("error: {e}")))?;
    if columns.is_none() {
        data::manifest(&data::Args::of_file(path.into()))?;
    }
    Ok(columns)
}

/// The path of the manifest that is made of a data file by default: the file's name with `.toml`, in the
/// current folder, with `-` for characters that names of experiments cannot have.
fn named_after(file: &Path) -> PathBuf {
    let packed = file.extension().is_some_and(|end| PACKED.iter().any(|one| end == *one));
    // Without the two endings of a packed file, such as `.csv.gz`.
    let file = if packed { file.with_extension("") } else { file.to_owned() };
    let stem = file.file_stem().unwrap_or(OsStr::new("")).to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.chars().map(plain).collect();
    format!("{}.toml", name.trim_start_matches('.')).into()
}

/// The path by which a new manifest names a data file: manifests read paths relative to their own folder,
/// so that it is absolute where that is not the current folder.
fn seen_from(manifest: &Path, file: PathBuf) -> PathBuf {
    let is_here = manifest.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    if is_here { file } else { std::path::absolute(&file).unwrap_or(file) }
}

/// The name of the experiment that a new manifest at this path describes.
///
/// # Errors
/// If the path does not end in `.toml`, exists (unless `force` replaces it), or names no experiment.
fn check_name(out: &Path, force: bool) -> Result<String, Failure> {
    let name = out.display();
    if out.extension() != Some(OsStr::new("toml")) {
        let message = format!("error: {name}: the name of a manifest ends in .toml");
        return Err(Failure::input(message));
    }
    if !force && out.symlink_metadata().is_ok() {
        return Err(Failure::input(format!(
            "error: {name} exists; --force replaces it, and --out names another manifest"
        )));
    }
    names::from_manifest(out).map_err(|e| Failure::input(format!("{e}  = help: --out names it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Found = Result<(Option<data::Args>, PathBuf), Failure>;

    /// What [`questions`] returns for these lines of answers, and the text that it printed. `out` is the
    /// manifest that the command line names.
    fn answered(answers: &str, out: Option<&Path>) -> (Found, String) {
        let mut asked = Vec::new();
        let mut dialogue = Dialogue { from: &mut answers.as_bytes(), to: &mut asked };
        let force = false;
        let found = questions(out, force, &mut dialogue);
        (found, String::from_utf8(asked).unwrap())
    }

    /// A folder with the records `r.csv`, and their path.
    fn records() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.csv");
        std::fs::write(&file, "age,site,outcome\n1,a,0\n2,b,1\n").unwrap();
        (folder, file)
    }

    #[test]
    fn questions_are_asked_one_after_another() {
        let (folder, file) = records();
        let path = file.to_str().unwrap();
        let out = folder.path().join("o.toml");
        for (answers, label, tune) in [
            ("\n\n", None, false),
            ("age\nyes\n", Some("age"), true),
            (" age \nno\n", Some("age"), false),
        ] {
            let (found, asked) = answered(&format!("{path}\n{answers}"), Some(&out));
            let (found, named) = found.unwrap();
            let found = found.unwrap();
            assert_eq!(
                (found.file.as_path(), found.label.as_deref(), found.tune, &named),
                (&*file, label, tune, &out)
            );
            let (begin, end) = asked.split_once(": Columns: ").unwrap();
            assert!(begin.starts_with("Data file, CSV"), "{asked}");
            assert!(
                end.starts_with("age, site, outcome\nColumn of the labels [outcome]: "),
                "{asked}"
            );
        }
        let (found, asked) = answered("\n", Some(&out));
        assert!(found.unwrap().0.is_none() && !asked.contains("Columns"), "{asked}");
    }

    #[test]
    fn wrong_answers_are_asked_again_at_once() {
        let (folder, file) = records();
        let path = file.to_str().unwrap();
        let out = folder.path().join("o.toml");
        let answers = format!("gone.csv\n{path}\noutcom\noutcome\nmaybe\ny\n");
        let (found, asked) = answered(&answers, Some(&out));
        let found = found.unwrap().0.unwrap();
        assert_eq!((found.label.as_deref(), found.tune), (Some("outcome"), true));
        let parts: Vec<&str> = asked.split("error: ").collect();
        let [first, file, label, tune] = parts[..] else { panic!("{asked}") };
        assert!(first.starts_with("Data file"), "{asked}");
        assert!(file.starts_with("gone.csv cannot be read"), "{asked}");
        assert!(file.contains("\nData file") && file.ends_with("[outcome]: "), "{asked}");
        assert!(label.contains("there is no column `outcom`"), "{asked}");
        assert!(label.contains("Column of the labels") && label.ends_with("[y/N] "), "{asked}");
        assert!(tune.starts_with("the answer is y or n\nCompare"), "{asked}");

        let (found, asked) = answered(&"gone.csv\n".repeat(9), Some(&out));
        assert!(found.err().unwrap().message.contains("gone.csv cannot be read"));
        assert_eq!(asked.matches("Data file").count(), ATTEMPTS);
    }

    #[test]
    fn a_manifest_that_exists_is_noticed_before_other_questions() {
        let (folder, file) = records();
        std::fs::write(folder.path().join("o.toml"), "").unwrap();
        let taken = folder.path().join("o.toml");
        let (found, asked) = answered("", Some(&taken));
        assert!(found.err().unwrap().message.contains("o.toml exists") && asked.is_empty());

        // The package's own manifest, in the folder in which tests run.
        let named = folder.path().join("Cargo.csv");
        std::fs::copy(&file, &named).unwrap();
        assert!(Path::new("Cargo.toml").exists());
        let free = folder.path().join("p.toml");
        let taken = taken.display();
        let answers = format!("{}\n{taken}\n{}\n\n\n", named.display(), free.display());
        let (found, asked) = answered(&answers, None);
        assert_eq!(found.unwrap().1, free);
        let asked = asked.split_once("error: Cargo.toml exists").unwrap().1;
        assert!(asked.contains("\nName of the manifest, ending in .toml: error: "), "{asked}");
        assert!(asked.contains("o.toml exists") && asked.contains("[y/N]"), "{asked}");
    }

    #[test]
    fn no_answer_ends_it() {
        let (folder, _) = records();
        let out = folder.path().join("o.toml");
        let arrays = folder.path().join("r.svm");
        std::fs::write(&arrays, "1 1:2\n0 1:3\n").unwrap();
        let path = arrays.to_str().unwrap();
        let (found, asked) = answered(&format!("{path}\n"), Some(&out));
        assert!(!asked.contains("Columns") && asked.contains("[y/N]"), "{asked}");
        for found in [found, answered("", Some(&out)).0] {
            assert!(found.err().unwrap().message.contains("there was no answer"));
        }
        let empty = folder.path().join("e.csv");
        std::fs::write(&empty, "a,b\n1,\n2,1\n").unwrap();
        let (found, asked) = answered(&format!("{}\n", empty.display()), Some(&out));
        // Values that are missing can be filled in.
        assert!(found.is_err() && asked.contains("Columns: a, b"), "{asked}");
    }

    #[test]
    fn manifests_are_named_after_their_records() {
        for (file, manifest) in [
            ("a/my data (1).csv", "my-data--1-.toml"),
            (".r.npz", "r.toml"),
            ("a9a.txt", "a9a.toml"),
            ("a/r.csv.gz", "r.toml"),
            ("r.svm.gz", "r.toml"),
            ("r.tab.bz2", "r.toml"),
            ("v1.2.csv", "v1.2.toml"),
        ] {
            assert_eq!(named_after(Path::new(file)), Path::new(manifest));
        }
    }
}
