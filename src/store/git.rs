//! Files of a git revision, read by the `git` command without a checkout.
//!
//! *Invariant*: git takes no text of a user for an option, and files are passed between
//! commands by object ids alone.

use exactfed_runner::files::{Error, error};
use std::fmt;
use std::io::{ErrorKind, Seek, Write};
use std::path::Path;
use std::process::{Command, Output};

/// A commit of a history.
pub struct Commit {
    /// Its id, abbreviated.
    pub id: String,
    /// The date of its author.
    pub date: String,
    /// The first line of its message.
    pub subject: String,
}

/// The beginning of a commit's id.
pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

fn git(arguments: &[&str]) -> Result<Output, Error> {
    // A repository may ask for its messages in another encoding, such as UTF-16.
    let encoding = ["-c", "i18n.logOutputEncoding=UTF-8"];
    Command::new("git").args(encoding).args(arguments).output().map_err(|e| absent(&e))
}

fn absent(e: &std::io::Error) -> Error {
    let message = match e.kind() {
        ErrorKind::NotFound => {
            "is not installed: name a folder of results or of reports instead of a revision".into()
        }
        _ => e.to_string(),
    };
    error(Path::new("git"), message)
}

/// What git prints, or the first line of its message.
fn said(output: &Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().next().unwrap_or("git failed").trim_start_matches("fatal: ").to_owned())
}

/// The commit that a revision names; `no` says what a name that is none might have been.
///
/// # Errors
/// The message of git, if it names none.
pub fn commit(revision: &str, no: &str) -> Result<String, Error> {
    let peeled = format!("{revision}^{{commit}}");
    let output = git(&["rev-parse", "--verify", "--end-of-options", &peeled])?;
    let id = said(&output).map(|id| id.trim().to_owned());
    id.map_err(|why| error(Path::new(revision), format!("is {no} git revision ({why})")))
}

/// The commits that change any of these paths, the newest first: up to `to` along first parents,
/// with a bound such as `^commit` or `--max-count=9`.
///
/// # Errors
/// The message of git.
pub fn log(bound: &str, to: &str, paths: [&str; 2]) -> Result<Vec<Commit>, Error> {
    let [a, b] = paths.map(|path| format!(":(top,literal){path}"));
    let format =
        ["--first-parent", "--no-show-signature", "--abbrev=12", "--format=%h%x09%as%x09%s"];
    let output = git(&[&["log"], &format[..], &[bound, to, "--", &a, &b]].concat())?;
    let lines = said(&output).map_err(|why| error(Path::new(to), why))?;
    let commit = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        Some(Commit { id: parts.next()?, date: parts.next()?, subject: parts.next()? })
    };
    Ok(lines.lines().filter_map(commit).collect())
}

/// The files of these names below a folder of a commit: paths below the folder, and object ids.
///
/// # Errors
/// The message of git.
pub fn listing(
    commit: &str,
    folder: &str,
    wanted: &[&str],
) -> Result<Vec<(String, String)>, Error> {
    let output = git(&["ls-tree", "-r", "-z", "--full-tree", commit])?;
    let listing = said(&output).map_err(|why| error(Path::new(commit), why))?;
    let entry = |line: &str| {
        // mode, kind and id, a tab, the path
        let (about, path) = line.split_once('\t')?;
        let below = if folder.is_empty() { path } else { path.strip_prefix(folder)? };
        let below = if folder.is_empty() { below } else { below.strip_prefix('/')? };
        let mut about = about.split(' ').skip(1);
        let (kind, id) = (about.next()?, about.next()?);
        let matches = kind == "blob" && wanted.contains(&below.rsplit('/').next()?);
        matches.then(|| (below.to_owned(), id.to_owned()))
    };
    Ok(listing.split('\0').filter_map(entry).collect())
}

/// A committed file whose bytes are not UTF-8 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotText;

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is not UTF-8 text")
    }
}

/// The texts of these objects, by one process. What one of them contains says nothing about the
/// others: whoever reads many commits goes on.
///
/// # Errors
/// If git cannot be run, or does not give one of them.
pub fn blobs(ids: &[String]) -> Result<Vec<Result<String, NotText>>, String> {
    let wrong = |e: std::io::Error| format!("git: {e}");
    let mut list = tempfile::tempfile().map_err(wrong)?;
    let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
    list.write_all(lines.as_bytes()).and_then(|()| list.rewind()).map_err(wrong)?;
    let mut batch = Command::new("git");
    let batch = batch.args(["cat-file", "--batch"]).stdin(list).output();
    let all = batch.map_err(|e| absent(&e).to_string())?.stdout;
    let mut rest = &all[..];
    ids.iter().map(|id| blob(id, &mut rest)).collect()
}

/// The next of the answers: a line with id, kind and length, the bytes, a line end.
fn blob(id: &str, rest: &mut &[u8]) -> Result<Result<String, NotText>, String> {
    let odd = || format!("git does not give the object {id}");
    let end = rest.iter().position(|b| *b == b'\n').ok_or_else(odd)?;
    let head = String::from_utf8_lossy(&rest[..end]);
    let length = head.strip_prefix(&format!("{id} blob ")).and_then(|n| n.parse::<usize>().ok());
    let from = end + 1;
    let to = length.and_then(|n| from.checked_add(n)).filter(|to| *to < rest.len());
    let to = to.ok_or_else(odd)?;
    let text = String::from_utf8(rest[from..to].to_vec());
    *rest = &rest[to + 1..];
    Ok(text.map_err(|_| NotText))
}
