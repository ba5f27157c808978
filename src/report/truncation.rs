//! Tables of a page, truncated if they have more rows than a browser can open.
//!
//! *Invariant*: a table that fits is complete; a truncated one has a note on how many rows there
//! are, which of them it shows and which file has all.

use super::series::line;
use exactfed_core::words::thousands;
use serde::Serialize;
use std::io::{self, Write};

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

/// Writes a file of this name in the folder of the page with what the second argument writes. It has a
/// whole table, which may be long: each is written at once.
pub type TableFiles<'a> = dyn FnMut(&str, &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) + 'a;

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
        files: &mut TableFiles<'_>,
    ) -> Self {
        let all = rows.len();
        let table = Self::new(heads, rows.by_ref().take(most));
        if all <= most {
            return table;
        }
        let file = format!("{name}.csv");
        files(&file, &mut |out| {
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
        let mut files = Vec::new();
        let mut table = |count, most| {
            TextTable::first(&heads, rows(count), (most, "t"), &mut |name, write| {
                let mut text = Vec::new();
                write(&mut text).unwrap();
                files.push((name.to_owned(), String::from_utf8(text).unwrap()));
            })
        };
        let (whole, short) = (table(3, 3), table(1234, 2));
        assert_eq!((whole.rows.len(), whole.note.as_str()), (3, ""));
        assert_eq!(short.rows.len(), 2);
        assert_eq!(
            (&*short.note, &*short.file),
            ("The first 2 of 1 234 rows; all are in", "t.csv")
        );
        let [(name, text)] = files.as_slice() else { panic!("one file") };
        assert_eq!((name.as_str(), text.lines().count()), ("t.csv", 1235));
        assert!(text.starts_with("n,\"x, y\"\n0,\"a \"\"b\"\"\"\n"), "{text}");
    }
}
