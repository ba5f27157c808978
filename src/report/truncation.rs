//! Tables of a page, truncated if they have more rows than a browser can open.
//!
//! *Invariant*: a table that fits is complete; a truncated one has a note on how many rows there
//! are, which of them it shows and which file has all.

use super::owned::Owned;
use super::series::line;
use exactfed_core::words::thousands;
use exactfed_runner::files::Error;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// Rows of a table.
pub const MOST_ROWS: usize = 1000;

/// A table as templates see it.
#[derive(Clone, Default, Serialize)]
pub struct TextTable {
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// How many rows there are and which of them these are, if these are not all.
    pub note: String,
    /// The file with all of them, in the folder of the page.
    pub file: String,
}

/// Where the files with whole tables go, which may be long: each is written at once.
pub trait TableFiles {
    /// Writes a file of this name in the folder of the page.
    fn add(&mut self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>);
}

/// A page without files writes none.
impl TableFiles for () {
    fn add(&mut self, _: &str, _: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {}
}

/// The files with whole tables in the folder of a page.
pub struct FolderTables<'a> {
    pub owned: &'a Owned,
    pub folder: &'a Path,
    /// Their names, or the first error.
    pub written: Result<BTreeSet<String>, Error>,
}

impl TableFiles for FolderTables<'_> {
    fn add(&mut self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
        let Ok(names) = &mut self.written else { return };
        names.insert(name.to_owned());
        if let Err(fault) = self.owned.stream(&self.folder.join(name), write) {
            self.written = Err(fault);
        }
    }
}

impl TextTable {
    /// A table of these rows.
    pub fn new(heads: &[impl AsRef<str>], rows: impl Iterator<Item = Vec<String>>) -> Self {
        let heads = heads.iter().map(|head| head.as_ref().to_owned()).collect();
        Self { heads, rows: rows.collect(), ..Self::default() }
    }

    /// The first `most` of these rows; if there are more, a file of this name has all.
    pub fn first(
        heads: &[impl AsRef<str>],
        mut rows: impl ExactSizeIterator<Item = Vec<String>>,
        (most, name): (usize, &str),
        files: &mut dyn TableFiles,
    ) -> Self {
        let all = rows.len();
        let table = Self::new(heads, rows.by_ref().take(most));
        if all <= most {
            return table;
        }
        let file = format!("{name}.csv");
        files.add(&file, &mut |out| {
            out.write_all(line(&table.heads).as_bytes())?;
            table.rows.iter().try_for_each(|row| out.write_all(line(row).as_bytes()))?;
            rows.by_ref().try_for_each(|row| out.write_all(line(&row).as_bytes()))
        });
        table.of_rows(all, &file)
    }

    /// The table with a note, unless it has all of so many rows, that this file has all.
    pub fn of_rows(self, all: usize, file: &str) -> Self {
        if self.rows.len() == all {
            return self;
        }
        let (shown, all) = (thousands(self.rows.len()), thousands(all));
        let note = format!("The first {shown} of {all} rows; all are in");
        Self { note, file: file.to_owned(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_table_has_a_note_and_a_file_with_all_rows() {
        let heads = ["n", "x, y"];
        let rows = |count: usize| (0..count).map(|i| vec![i.to_string(), "a \"b\"".to_owned()]);
        struct Files(Vec<(String, String)>);
        impl TableFiles for Files {
            fn add(&mut self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
                let mut text = Vec::new();
                write(&mut text).unwrap();
                self.0.push((name.to_owned(), String::from_utf8(text).unwrap()));
            }
        }
        let mut files = Files(Vec::new());
        let whole = TextTable::first(&heads, rows(3), (3, "t"), &mut files);
        assert_eq!((whole.rows.len(), whole.note.as_str(), files.0.len()), (3, "", 0));
        let short = TextTable::first(&heads, rows(1234), (2, "t"), &mut files);
        assert_eq!(short.rows.len(), 2);
        assert_eq!(
            (&*short.note, &*short.file),
            ("The first 2 of 1 234 rows; all are in", "t.csv")
        );
        let [(name, text)] = files.0.as_slice() else { panic!("one file") };
        assert_eq!((name.as_str(), text.lines().count()), ("t.csv", 1235));
        assert!(text.starts_with("n,\"x, y\"\n0,\"a \"\"b\"\"\"\n"), "{text}");
    }
}
