//! Files of a git revision, read by the `git` command without a checkout.
//!
//! *Invariant*: git takes no text of a user for an option, and files are passed between
//! commands by object ids alone.

use exactfed_runner::files::{Error, error};
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

/// Runs git with these arguments in the current folder, and returns what it printed and whether it failed: that git
/// refuses the arguments is no error here ([`printed_text`]).
///
/// # Errors
/// If git cannot be started.
fn run_git(arguments: &[&str]) -> Result<Output, Error> {
    // A repository may ask for its messages in another encoding, such as UTF-16.
    let encoding = ["-c", "i18n.logOutputEncoding=UTF-8"];
    Command::new("git").args(encoding).args(arguments).output().map_err(|e| cannot_start(&e))
}

/// The error that says why the program `git` cannot be started. It is the same for `history`, which reads revisions
/// alone, and for `diff`, which can also compare folders.
fn cannot_start(e: &std::io::Error) -> Error {
    let message = match e.kind() {
        ErrorKind::NotFound => {
            "is not installed: without it no revision can be read, and `diff` compares folders of results or of reports alone".into()
        }
        _ => e.to_string(),
    };
    error(Path::new("git"), message)
}

/// What git printed to its standard output.
///
/// # Errors
/// The first line of the message of git, if it failed.
fn printed_text(output: &Output) -> Result<String, GitError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    let first = messages.lines().next().unwrap_or("git failed");
    Err(GitError::Refused(first.trim_start_matches("fatal: ").to_owned()))
}

/// The id of the commit that a revision names.
///
/// # Errors
/// If the revision names none. The message is "is `no` git revision" with the words `no`, which are "no", or say what
/// else a user may have meant by the name: "neither a results folder nor a".
pub fn commit(revision: &str, no: &str) -> Result<String, Error> {
    let peeled = format!("{revision}^{{commit}}");
    let output = run_git(&["rev-parse", "--verify", "--end-of-options", &peeled])?;
    match printed_text(&output) {
        Ok(id) => Ok(id.trim().to_owned()),
        Err(why) => Err(error(Path::new(revision), format!("is {no} git revision ({why})"))),
    }
}

/// The commits that change any of these paths, which are relative to the root of the repository, the newest first. They
/// are those that lead to `to` along first parents, within a bound such as `^commit` or `--max-count=9`. `bound` and
/// `to` come from the program, not from a user, who could write an option: `to` is the id of a commit.
///
/// # Errors
/// The message of git.
pub fn log(bound: &str, to: &str, paths: [&str; 2]) -> Result<Vec<Commit>, Error> {
    let pathspecs = paths.map(|path| format!(":(top,literal){path}"));
    let mut arguments = vec!["log", "--first-parent", "--no-show-signature"];
    arguments.extend(["--abbrev=12", "--format=%h%x09%as%x09%s", bound, to, "--"]);
    arguments.extend(pathspecs.iter().map(String::as_str));
    let output = run_git(&arguments)?;
    let lines = printed_text(&output).map_err(|why| error(Path::new(to), why))?;
    Ok(lines.lines().filter_map(parse_commit).collect())
}

/// The commit in a line that has its id, date and subject with tabs between; `None` if the line lacks one.
fn parse_commit(line: &str) -> Option<Commit> {
    let mut parts = line.splitn(3, '\t').map(str::to_owned);
    Some(Commit { id: parts.next()?, date: parts.next()?, subject: parts.next()? })
}

/// The files below a folder of a commit, at any depth, whose names are wanted: for each its path below the folder, and
/// the id of its object, whose text [`blobs`] reads. `commit` is the id of a commit. An empty folder is the root of the
/// repository; a folder that the commit does not have gives no files.
///
/// # Errors
/// The message of git.
pub fn listing(
    commit: &str,
    folder: &str,
    wanted: &[&str],
) -> Result<Vec<(String, String)>, Error> {
    let output = run_git(&["ls-tree", "-r", "-z", "--full-tree", commit])?;
    let listing = printed_text(&output).map_err(|why| error(Path::new(commit), why))?;
    let mut files = Vec::new();
    for entry in listing.split('\0') {
        let Some((path, id)) = parse_blob_entry(entry) else { continue };
        let Some(path_below) = strip_folder(path, folder) else { continue };
        let name = path_below.rsplit('/').next().unwrap_or(path_below);
        if wanted.contains(&name) {
            files.push((path_below.to_owned(), id.to_owned()));
        }
    }
    Ok(files)
}

/// The path and the object id of an entry that `git ls-tree` prints: mode, kind and id, a tab, the
/// path. `None` if the entry is no file.
fn parse_blob_entry(entry: &str) -> Option<(&str, &str)> {
    let (about, path) = entry.split_once('\t')?;
    let mut about = about.split(' ').skip(1);
    let kind = about.next()?;
    let id = about.next()?;
    if kind == "blob" { Some((path, id)) } else { None }
}

/// The part of a path below a folder; `None` if it is not below it. An empty folder is the root of the repository.
fn strip_folder<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    if folder.is_empty() {
        return Some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// A committed file whose bytes are not UTF-8 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not UTF-8 text")]
pub struct NotText;

/// Why git does not answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program cannot be started.
    #[error(transparent)]
    NotStarted(Error),
    /// The list of the objects that git is asked for cannot be written.
    #[error("git: {0}")]
    List(#[from] std::io::Error),
    /// The first line of the message with which git ended.
    #[error("{0}")]
    Refused(String),
    /// Git ended while it listed objects.
    #[error("git: {message}")]
    Failed {
        /// The whole message of git.
        message: String,
    },
    /// The repository does not have an object.
    #[error("git does not give the object {id}")]
    NoObject {
        /// The hash of the object.
        id: String,
    },
}

/// The texts of the objects with these ids, in their order, which a single process of git reads. An object that is no
/// text is an error by itself, so that a history of many commits goes on after it.
///
/// # Errors
/// If git cannot be run, or does not give one of the objects.
pub fn blobs(ids: &[String]) -> Result<Vec<Result<String, NotText>>, GitError> {
    let answers = cat_files(ids)?;
    let mut rest = &answers[..];
    let mut texts = Vec::with_capacity(ids.len());
    for id in ids {
        let blob = next_blob(id, &mut rest);
        let bytes = blob.ok_or_else(|| GitError::NoObject { id: id.clone() })?;
        texts.push(String::from_utf8(bytes.to_vec()).map_err(|_| NotText));
    }
    Ok(texts)
}

/// The bytes that `git cat-file --batch` answers to these ids, one answer after another, in the form that [`next_blob`]
/// takes apart. That an object is missing is no error here: the answer says it.
fn cat_files(ids: &[String]) -> Result<Vec<u8>, GitError> {
    // A file instead of a pipe: git answers while it reads, so that both ends of two pipes could
    // wait for each other.
    let mut list = tempfile::tempfile()?;
    let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
    list.write_all(lines.as_bytes())?;
    list.rewind()?;
    let output = Command::new("git").args(["cat-file", "--batch"]).stdin(list).output();
    let output = output.map_err(|e| GitError::NotStarted(cannot_start(&e)))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(GitError::Failed { message });
    }
    Ok(output.stdout)
}

/// Takes the next answer of `git cat-file --batch` from `rest` and returns the bytes of the object in it: an answer is
/// a line with id, kind and length, the bytes, and a line end. `None` if the answer is not a file of this id, or is
/// cut.
fn next_blob<'r>(id: &str, rest: &mut &'r [u8]) -> Option<&'r [u8]> {
    let head_end = rest.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&rest[..head_end]).ok()?;
    let length: usize = head.strip_prefix(&format!("{id} blob "))?.parse().ok()?;
    let from = head_end + 1;
    let to = from.checked_add(length)?;
    let bytes = rest.get(from..to)?;
    // The line end after the bytes must be there too.
    *rest = rest.get(to + 1..)?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `history` takes no folders in place of revisions, so that it cannot be told to name one.
    #[test]
    fn without_git_no_command_is_told_to_name_a_folder() {
        let said = cannot_start(&ErrorKind::NotFound.into()).to_string();
        assert!(said.starts_with("git: is not installed: without it no revision"), "{said}");
        assert!(!said.contains("instead of a revision"), "{said}");
    }
}
