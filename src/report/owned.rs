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
    /// The files of an existing folder.
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

    fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.out).unwrap_or(path);
        let parts = below.components().map(|part| part.as_os_str().to_string_lossy());
        parts.collect::<Vec<_>>().join("/")
    }

    /// Whether a file may be removed.
    pub fn has(&self, path: &Path) -> bool {
        lock(&self.known).contains(&self.name(path))
    }

    /// Checks that a file may be written, and lists it.
    ///
    /// # Errors
    /// If it exists and is not listed, or the list cannot be written.
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
        // The line break in front ends a line that a kill has truncated.
        let append = || {
            let mut file = open_regular(&list, fs::File::options().create(true).append(true))?;
            file.write_all(format!("\n{name}\n").as_bytes())
        };
        append().map_err(|e| error(&list, e))?;
        known.insert(name);
        Ok(())
    }

    /// Writes a file that may be written.
    ///
    /// # Errors
    /// As [`Owned::claim`], or if it cannot be written.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        self.claim(path, bytes)?;
        write_atomically(path, bytes)
    }

    /// Streams a file that may be written.
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

    /// Writes the list in order, without files that no longer exist.
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

/// How the second paragraph of a Markdown page about all experiments begins.
const WRITTEN_BY: &str = "\n\nWritten by `exactfed report`";

/// The files of a folder without a list, as under version control: identified by the beginnings of
/// the pages, also those of earlier versions, and by the record in each experiment's folder.
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
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
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
                open.push(path);
            } else if of_experiment && is_page(&name) {
                found.insert(path);
            }
        }
    }
    found
}

/// The names in a folder and which of them are folders; symbolic links are left out.
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

/// Whether a file has the name of a figure of an experiment.
pub fn is_figure(name: &str) -> bool {
    FIGURE_ENDS.iter().chain([&OBSOLETE_FIGURE]).any(|end| name.ends_with(end))
}

/// The table of the frontiers of an experiment.
pub const FRONTIER: &str = "frontier.csv";

/// Whether a file has the name of a table of a page, or of a file that no version writes any longer.
pub fn is_table(name: &str) -> bool {
    let table = name.strip_suffix(".csv");
    let fixed =
        |t: &str| ["winners", "bounds", "orders", "tuned"].contains(&t) || t.starts_with("claim-");
    name == FRONTIER || name == OBSOLETE_DOCUMENT || table.is_some_and(fixed)
}

/// Whether a file has the name of one in the folder of an experiment's page.
fn is_page(name: &str) -> bool {
    let fixed = ["report.md", "report.html", "summary.csv", "provenance.md", "tables.tex"];
    fixed.contains(&name) || [RECORD, FINALS].contains(&name) || is_table(name)
}
