//! Which files of a reports folder were written by reports: the folder contains a list of them.
//!
//! *Invariant*: no file that is not on the list is overwritten or removed, except by the same
//! content. A file is listed before it is written, so that the list also has the files of an
//! interrupted report.

use super::navigation::page_files;
use crate::compare::record::{FINALS, RECORD};
use exactfed_runner::files::{
    Error, error, open_regular, read_regular, read_regular_text, remove_leftovers,
    stream_atomically, write_atomically,
};
use exactfed_runner::panics::lock;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The name of the list.
const LIST: &str = ".exactfed-reports";
/// Its first line.
const HEAD: &str = "# What `exactfed report` wrote here; it overwrites and removes nothing else.";

/// A reports folder.
pub struct Owned {
    out: PathBuf,
    /// Paths below the folder, with `/` between parts.
    known: Mutex<BTreeSet<String>>,
}

impl Owned {
    /// The existing folder at `out`, with the files that its list names. Without a list, as in a clone, they are
    /// recognised by their contents.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn open(out: &Path) -> Result<Self, Error> {
        let list = out.join(LIST);
        let known = match read_regular_text(&list) {
            Ok(text) => text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => unlisted(out),
            Err(e) => {
                return Err(error(&list, format!("{e}; it lists what reports may overwrite")));
            }
        };
        remove_leftovers(out);
        Ok(Self { out: out.to_owned(), known: Mutex::new(known) })
    }

    /// The name of a file in the list: its path below the folder, with `/` between parts.
    fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.out).unwrap_or(path);
        let parts = below.components().map(|part| part.as_os_str().to_string_lossy());
        parts.collect::<Vec<_>>().join("/")
    }

    /// Whether the list has a file, so that it may be overwritten and removed.
    pub fn has(&self, path: &Path) -> bool {
        lock(&self.known).contains(&self.name(path))
    }

    /// Lists a file that is about to be written. A file that exists without being listed may only have the content
    /// `bytes` already: with empty `bytes`, for a content that is not known yet, only an empty file may exist.
    ///
    /// # Errors
    /// If it exists with another content and is not listed, or the list cannot be written.
    pub fn claim(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let name = self.name(path);
        let mut known = lock(&self.known);
        if known.contains(&name) {
            return Ok(());
        }
        let exists = path.symlink_metadata().is_ok();
        if exists && !read_regular(path, bytes.len() as u64).is_ok_and(|old| old == bytes) {
            return Err(error(
                path,
                "was not written by `exactfed report`, which does not overwrite it: name another folder with --out, or move it away",
            ));
        }
        let list = self.out.join(LIST);
        append_line(&list, &name).map_err(|e| error(&list, e))?;
        known.insert(name);
        Ok(())
    }

    /// Lists a file and writes it.
    ///
    /// # Errors
    /// As [`Owned::claim`], or if it cannot be written.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        self.claim(path, bytes)?;
        write_atomically(path, bytes)
    }

    /// Lists a file and writes what `write` streams to it; returns what `write` returns. A file that exists without
    /// being listed is compared first, with its whole new content in memory.
    ///
    /// # Errors
    /// As [`Owned::claim`], or if it cannot be written.
    pub fn stream<T>(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> Result<T, Error> {
        if self.has(path) || path.symlink_metadata().is_err() {
            self.claim(path, &[])?;
            return stream_atomically(path, |file| {
                let mut out = BufWriter::new(file);
                let written = write(&mut out).and_then(|done| out.flush().map(|()| done));
                written.map_err(|e| error(path, e))
            });
        }
        let mut bytes = Vec::new();
        let written = write(&mut bytes).map_err(|e| error(path, e))?;
        self.write(path, &bytes).map(|()| written)
    }

    /// Writes the list of files again, in order and without files that no longer exist. Files that another report has
    /// added to it stay.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn settle(&self) -> Result<(), Error> {
        let known = lock(&self.known);
        let list = self.out.join(LIST);
        // Another report may have added to the list.
        let text = read_regular_text(&list).unwrap_or_default();
        let added = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let all: BTreeSet<&str> = added.chain(known.iter().map(String::as_str)).collect();
        let existing = all.into_iter().filter(|name| self.out.join(name).is_file());
        let lines: Vec<&str> = std::iter::once(HEAD).chain(existing).collect();
        write_atomically(&list, format!("{}\n", lines.join("\n")).as_bytes())
    }
}

/// Appends a line to the list. The line break in front ends a line that a kill has truncated.
fn append_line(list: &Path, name: &str) -> io::Result<()> {
    let mut file = open_regular(list, fs::File::options().create(true).append(true))?;
    file.write_all(format!("\n{name}\n").as_bytes())
}

/// How the second paragraph of a Markdown page about all experiments begins.
const WRITTEN_BY: &str = "\n\nWritten by `exactfed report`";

/// The files that reports wrote to a folder without a list, as in a clone of a repository, by their paths below it.
/// Pages about all experiments are recognised by their beginnings, also those of earlier versions, and the other files
/// by the record in the folder of their experiment.
fn unlisted(out: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let begins = ["# Experiments\n\nWritten by", "# Claims\n\n", "# Where the sources disagree\n"];
    for (page, _) in page_files() {
        let text = read_regular_text(&out.join(&page)).unwrap_or_default();
        let of_report = text.contains("<title>exactfed: ") || text.contains(WRITTEN_BY);
        if of_report || begins.iter().any(|b| text.starts_with(b)) {
            found.insert(page);
        }
    }
    // The folders whose entries were not read yet.
    let mut unread = vec![String::new()];
    while let Some(folder) = unread.pop() {
        let of_experiment = out.join(&folder).join(RECORD).is_file();
        for (name, is_folder) in entries(&out.join(&folder)) {
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if of_experiment && is_folder && name == "figures" {
                let files = entries(&out.join(&path)).into_iter();
                // PDF and PNG came after the list.
                let ends = [".svg", ".csv", OBSOLETE_FIGURE];
                let figures = files.filter(|(file, is_folder)| {
                    !is_folder && ends.iter().any(|end| file.ends_with(end))
                });
                found.extend(figures.map(|(file, _)| format!("{path}/{file}")));
            } else if is_folder {
                unread.push(path);
            } else if of_experiment && is_page(&name) {
                found.insert(path);
            }
        }
    }
    found
}

/// The entries of a folder: the name of each, and whether it is a folder. Symbolic links and hidden files are left out,
/// and so is all of a folder that cannot be read.
fn entries(folder: &Path) -> Vec<(String, bool)> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    let plain = all.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let kind = entry.file_type().ok()?;
        (!kind.is_symlink() && !name.starts_with('.')).then_some((name, kind.is_dir()))
    });
    plain.collect()
}

/// The ends of the files of a figure.
pub const FIGURE_ENDS: [&str; 5] = [".svg", ".csv", ".pdf", ".png", PAPER];
/// The end of the name of a figure for papers as SVG; the figure of a page ends with `.svg`.
pub const PAPER: &str = ".paper.svg";
/// The end of figures and the name of a document that earlier versions wrote for LaTeX.
const OBSOLETE_FIGURE: &str = ".tex";
const OBSOLETE_DOCUMENT: &str = "all.tex";

/// Whether a file of this name in an experiment's folder of figures is one of a figure, also of an earlier version.
pub fn is_figure(name: &str) -> bool {
    FIGURE_ENDS.iter().chain([&OBSOLETE_FIGURE]).any(|end| name.ends_with(end))
}

/// The name of the table of an experiment's frontiers.
pub const FRONTIER: &str = "frontier.csv";

/// The names of the CSV files of other tables that not every page has; files of the parts of a claim begin with
/// `claim-`.
const TABLES: [&str; 5] = ["winners", "bounds", "orders", "tuned", "candidates"];

/// Whether a file of this name in an experiment's folder is a table that belongs to its page only sometimes, or a file
/// that no version writes any longer. Such files are removed when the page does not have them.
pub fn is_table(name: &str) -> bool {
    let table = name.strip_suffix(".csv");
    let is_named = table.is_some_and(|t| TABLES.contains(&t) || t.starts_with("claim-"));
    name == FRONTIER || name == OBSOLETE_DOCUMENT || is_named
}

/// Whether reports write a file of this name to the folder of an experiment itself; figures are in a folder below it
/// ([`is_figure`]).
fn is_page(name: &str) -> bool {
    let fixed = ["report.md", "report.html", "summary.csv", "provenance.md", "tables.tex"];
    fixed.contains(&name) || [RECORD, FINALS].contains(&name) || is_table(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables that pages have only sometimes, in a folder without a list: they may be overwritten and removed.
    #[test]
    fn tables_of_pages_are_recognised_by_their_names() {
        for table in TABLES.iter().chain(&["claim-below", "frontier"]) {
            let name = format!("{table}.csv");
            assert!(is_table(&name) && is_page(&name), "{name}");
        }
        assert!(is_table("candidates.csv"));
        for name in ["records.csv", "candidates.md", "claims.csv"] {
            assert!(!is_table(name) && !is_page(name), "{name}");
        }
    }
}
