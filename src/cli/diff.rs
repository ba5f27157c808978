//! `diff`: compares two sides, each a results folder, a reports folder or a git revision, and
//! chooses the exit code.

use super::outcome::{Code, Failure, print};
use crate::compare::results::ResultsFolder;
use crate::compare::{
    Change, ChangeVerdict, Class, Comparison, Options, Side, compare, curves, record,
};
use crate::report::diff::{self as pages, DiffFormat, DrawnChange};
use crate::store::{FolderEntries, SCHEMA, Store, contents, git};
use exactfed_runner::files::{Error, error, read_regular_text, write_named};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(
    after_help = "Example: exactfed diff results other-results\n         exactfed diff HEAD reports\n         exactfed diff v0.1.0 main:reports --format html --out diff.html\n\nExit codes: 0 nothing that --fail-on names; 1 something that it names; 2 bad input; 3 nothing to compare."
)]
pub struct Args {
    /// State before: a results folder, a reports folder, a git revision with reports/, or
    /// REV:folder
    a: String,
    /// State after, in the same forms
    b: String,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: DiffFormatName,
    /// File to write instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What makes the exit code 1: worse, diverged, failed, claims, removed, added,
    /// underpowered, incomparable, changed, or none
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    #[arg(default_value = FAIL_ON)]
    fail_on: Vec<String>,
    /// Largest relative change of an error that counts as none
    #[arg(long, value_name = "FRACTION", default_value_t = Options::default().margin)]
    margin: f64,
    /// Squared errors below this are rounding, and count as this
    #[arg(long, value_name = "ERROR", default_value_t = Options::default().floor)]
    floor: f64,
    /// Do not judge the claims of results that changed
    #[arg(long)]
    no_claims: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DiffFormatName {
    /// A summary for a terminal
    Text,
    /// Markdown for a pull request
    Md,
    /// A page with charts
    Html,
    /// Everything, for programs
    Json,
}

/// The classes of changes that make the exit code 1 by default.
pub const FAIL_ON: &str = "worse,diverged,failed,claims";

/// The names of the files of an experiment's report that are compared: the record of its settings and verdicts, and the
/// final errors of its cells.
pub const RECORDS: [&str; 2] = [record::RECORD, record::FINALS];

/// The most changed cells whose charts are drawn on a page.
const MOST_DRAWN: usize = 24;

/// The command `diff`: compares the sides `a` and `b`, and prints or writes the comparison in the chosen format. The
/// exit code says whether it fails.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let classes = classes(&args.fail_on)?;
    let compared = compare_sides(&args.a, &args.b, classes, options(args)?, !args.no_claims)?;
    let format = match args.format {
        DiffFormatName::Text => DiffFormat::Text,
        DiffFormatName::Md => DiffFormat::Markdown,
        DiffFormatName::Html => DiffFormat::Html(compared.drawn(args.out.as_deref())),
        DiffFormatName::Json => DiffFormat::Json,
    };
    let text = compared.render(format)?;
    match &args.out {
        Some(path) => write_named(path, text.as_bytes())?,
        None => print(&text)?,
    }
    Ok(compared.code())
}

/// Two sides that were compared, with what pages and the exit code need of them.
pub struct Compared {
    /// The comparison.
    pub comparison: Comparison,
    /// Before and after, from which curves and links to pages come; both empty if the comparison is of
    /// reports alone.
    sides: [DiffSource; 2],
    /// The classes that occur in the comparison and make it fail, each with its number of cells or claims.
    fails: Vec<(Class, usize)>,
}

/// Compares the side `a` (before) with `b` (after), each the name of a results folder, a reports folder or a
/// git revision. The comparison fails if a class of `failing` occurs in it. Unless `judge_claims`, claims of
/// results are not judged, which saves time; claims of reports have their verdicts already.
///
/// # Errors
/// If a side is none of these, or cannot be read.
pub fn compare_sides(
    a: &str,
    b: &str,
    failing: Vec<Class>,
    options: Options,
    judge_claims: bool,
) -> Result<Compared, Failure> {
    let mut a = DiffSource::open(a)?;
    let mut b = DiffSource::open(b)?;
    // Results are read only where the other side differs.
    a.complete(&b.side, ResultsFolder::fill);
    b.complete(&a.side, ResultsFolder::fill);
    if judge_claims {
        // Where nothing changed, a side takes the verdicts of the other.
        a.complete(&b.side, ResultsFolder::judge);
        b.complete(&a.side, ResultsFolder::judge);
    }
    let comparison = compare(&a.side, &b.side, &options);
    Ok(Compared { sides: [a, b], ..Compared::of_reports(comparison, failing) })
}

impl Compared {
    /// A comparison of two sides for which there are neither results nor pages, as in the history of reports:
    /// charts then show final errors and no curves, and link to no pages. It fails if a class of `failing` occurs in
    /// it.
    pub fn of_reports(comparison: Comparison, failing: Vec<Class>) -> Self {
        let fails = failing.into_iter().map(|c| (c, comparison.count(c))).filter(|(_, n)| *n > 0);
        let fails = fails.collect();
        Self { comparison, sides: Default::default(), fails }
    }

    /// The comparison in a format: text, Markdown, a page or JSON.
    ///
    /// # Errors
    /// If a chart cannot be drawn.
    pub fn render(&self, format: DiffFormat<'_>) -> Result<String, Failure> {
        Ok(pages::render(&self.comparison, &self.fails, format)?)
    }

    /// The exit code of `diff`: [`Code::NotComparable`] if there was nothing to compare, [`Code::Refuted`] if the
    /// comparison fails, and else [`Code::Done`].
    pub fn code(&self) -> Code {
        if self.comparison.is_empty() {
            Code::NotComparable
        } else if self.fails.is_empty() {
            Code::Done
        } else {
            Code::Refuted
        }
    }

    /// The changed cells that changed most, up to [`MOST_DRAWN`], each with its charts and the address of its
    /// experiment's page after the change. Charts are curves where both sides are results folders, and else
    /// final errors. `out` is the file to which the page with the charts is written, since addresses are
    /// relative to it; `None` leaves them out. Cells whose final errors are not known, or are the same, are left out.
    pub fn drawn<'c>(&'c self, out: Option<&Path>) -> Vec<DrawnChange<'c>> {
        let [a, b] = &self.sides;
        let worth = |c: &&Change| !c.finals.0.is_empty() && c.verdict != ChangeVerdict::SameErrors;
        let draw = |change: &'c Change| {
            let Change { experiment, pair, .. } = change;
            let traces = |source: &DiffSource, id: &str| {
                source.folder.as_ref().and_then(|folder| folder.traces(experiment, id))
            };
            let figures = match (traces(a, &pair.before), traces(b, &pair.after)) {
                (Some(before), Some(after)) => curves::of_traces(change, &before, &after),
                _ => curves::of_finals(change),
            };
            let page = b.pages.as_ref().zip(out);
            let page = page
                .and_then(|(pages, out)| address(&pages.join(experiment).join("report.html"), out));
            DrawnChange { change, figures, page }
        };
        self.comparison.largest_first().filter(worth).take(MOST_DRAWN).map(draw).collect()
    }
}

/// The classes of changes with these names, as `--fail-on` lists them; the name `none` stands for no class.
///
/// # Errors
/// If a name is unknown.
pub fn classes(names: &[String]) -> Result<Vec<Class>, Failure> {
    let class = |name: &String| {
        let found = Class::ALL.into_iter().find(|(_, known)| known == name);
        found.map(|(class, _)| class).ok_or_else(|| {
            let all: Vec<&str> = Class::ALL.iter().map(|(_, n)| *n).chain(["none"]).collect();
            Failure::input(format!("error: --fail-on: \"{name}\" is none of {}", all.join(", ")))
        })
    };
    names.iter().filter(|name| *name != "none").map(class).collect()
}

/// The margin (a relative change) and the floor (a squared error) of the comparison, from the command line.
///
/// # Errors
/// If one of them is out of range.
fn options(args: &Args) -> Result<Options, Failure> {
    for (key, value, most) in [("margin", args.margin, 10.0), ("floor", args.floor, 1.0)] {
        if !(value > 0.0 && value <= most) {
            let message =
                format!("error: --{key} is {value}: it must be above 0 and at most {most}");
            return Err(Failure::input(message));
        }
    }
    Ok(Options { margin: args.margin, floor: args.floor })
}

/// A side of a comparison and where it is from.
#[derive(Default)]
struct DiffSource {
    side: Side,
    /// The results folder, if the side is one: verdicts and curves are computed from it.
    folder: Option<ResultsFolder>,
    /// The reports folder, if the side is one: charts link to its pages.
    pages: Option<PathBuf>,
}

impl DiffSource {
    /// The side that a name on the command line means: an existing folder of results or of reports, or else a
    /// git revision. Results of another schema give a side without experiments, which says so.
    ///
    /// # Errors
    /// If the name is none of these, or the side cannot be read.
    fn open(name: &str) -> Result<Self, Failure> {
        let path = Path::new(name);
        if !path.exists() {
            return revision(name);
        }
        if let Some(schema) = Store::schema(path) {
            let full_name = format!("{name} (results folder)");
            if schema != SCHEMA {
                let side = Side { name: full_name, foreign: Some(schema), ..Side::default() };
                return Ok(Self { side, ..Self::default() });
            }
            let folder = ResultsFolder::open(path)?;
            let side = folder.side(full_name)?;
            return Ok(Self { side, folder: Some(folder), pages: None });
        }
        let files = if path.is_dir() { gather(path)? } else { Vec::new() };
        if files.is_empty() {
            return Self::of_other_path(name, path);
        }
        let source = reports(name, format!("{name} (reports folder)"), files)?;
        Ok(Self { pages: Some(path.to_owned()), ..source })
    }

    /// The revision of this name, where the path of the same name holds neither results nor reports: a bare
    /// repository has a file HEAD, and a branch may have the name of a folder.
    ///
    /// # Errors
    /// What the path is, if there is no such revision either.
    fn of_other_path(name: &str, path: &Path) -> Result<Self, Failure> {
        let is_commit = git::commit(name.split(':').next().unwrap_or(name), "no").is_ok();
        if is_commit {
            return revision(name);
        }
        let what = if path.is_dir() {
            format!(
                "holds neither results (exactfed.toml) nor reports ({} of an experiment)",
                record::RECORD
            )
        } else {
            "is a file, not a folder".to_owned()
        };
        Err(Failure::input(format!("error: {name}: {what}")))
    }

    /// Calls `add` to add to the side what only its results folder can give, if it has one, as far as the
    /// `other` side needs it for the comparison.
    fn complete(&mut self, other: &Side, add: fn(&ResultsFolder, &mut Side, &Side)) {
        if let Some(folder) = &self.folder {
            add(folder, &mut self.side, other);
        }
    }
}

/// The side of the committed reports that a name means: `REV:folder`, or `REV` for its folder `reports`.
///
/// # Errors
/// If git knows no such revision, or it has no reports in the folder.
fn revision(name: &str) -> Result<DiffSource, Failure> {
    let (revision, folder) = name.split_once(':').unwrap_or((name, "reports"));
    let folder = folder.trim_matches('/');
    let commit = git::commit(revision, "neither a results folder, a reports folder nor a")?;
    let (paths, ids): (Vec<String>, Vec<String>) =
        git::listing(&commit, folder, &RECORDS)?.into_iter().unzip();
    let texts = git::blobs(&ids).map_err(|e| error(Path::new(name), e))?;
    let commit = git::short(&commit);
    if texts.is_empty() {
        let message = format!("error: {name}: commit {commit} has no reports in {folder}/");
        return Err(Failure::input(message));
    }
    let files = paths.into_iter().zip(texts).collect();
    reports(name, revision_name(name, commit, folder), files)
}

/// The name that pages print for a side from a git revision: `name` as the user wrote it, the commit and the
/// folder.
pub fn revision_name(name: &str, commit: &str, folder: &str) -> String {
    format!("{name} (git revision, commit {commit}, {folder}/)")
}

/// A side called `full_name` from the files of reports ([`RECORDS`]), each with its path, whose folder is the name of
/// its experiment, and its text; errors call the side `name`. It has neither a results folder nor pages.
///
/// # Errors
/// If the record of an experiment cannot be read.
fn reports(
    name: &str,
    full_name: String,
    files: Vec<(String, record::FileText)>,
) -> Result<DiffSource, Failure> {
    let mut side = Side { name: full_name, ..Side::default() };
    for (experiment, read) in record::experiments(files) {
        let read = read.map_err(|wrong| {
            let wrong = format!("{experiment}/{wrong}");
            Failure::input(format!("error: {name}: {}", wrong.trim_start_matches('/')))
        })?;
        side.experiments.insert(experiment, read);
    }
    Ok(DiffSource { side, ..DiffSource::default() })
}

/// The texts of all files in a folder and the folders below it that reports are compared by ([`RECORDS`]),
/// each with its path relative to the folder, with `/` on every system. Empty if it is no folder of reports.
///
/// # Errors
/// If a folder or one of these files cannot be read, or one is no text.
fn gather(root: &Path) -> Result<Vec<(String, record::FileText)>, Error> {
    let mut open = vec![root.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        let FolderEntries { folders, files } = contents(&folder)?;
        open.extend(folders);
        let is_record = |path: &&PathBuf| RECORDS.iter().any(|name| path.ends_with(name));
        for path in files.iter().filter(is_record) {
            let name = path.strip_prefix(root).unwrap_or(path);
            let text = read_regular_text(path).map_err(|e| error(path, e))?;
            found.push((name.to_string_lossy().replace('\\', "/"), Ok(text)));
        }
    }
    Ok(found)
}

/// The address of an existing page as a link in the file `out`: its path relative to the folder of `out`.
/// `None` if the page does not exist, is not in that folder or below it, or its path has characters that
/// would need escapes; the link is then left out.
pub fn address(page: &Path, out: &Path) -> Option<String> {
    let page = page.canonicalize().ok()?;
    let folder = Path::new(".").join(out.parent()?).canonicalize().ok()?;
    let address = page.strip_prefix(folder).ok()?.to_str()?.replace('\\', "/");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    address.chars().all(is_plain).then_some(address)
}
