//! Tables of a page, truncated if they have more rows than a browser can open.
//!
//! *Invariant*: a table that fits is complete; a truncated one has a note on how many rows there
//! are, which of them it shows and which file has all.

use super::number_text::short;
use super::series::line;
use exactfed_core::words::thousands;
use exactfed_runner::plan::Setting;
use serde::Serialize;
use std::io::{self, Write};

/// The most rows that a table of a page shows.
pub const MOST_ROWS: usize = 1000;

/// A table as templates see it.
#[derive(Clone, Default, Serialize)]
pub struct TextTable {
    pub heads: Vec<String>,
    pub rows: Vec<Vec<TextCell>>,
    /// A note on how many rows there are, and which of them the table shows; empty if it shows all. If there is a file,
    /// the note ends with "all are in" or the like, and templates write the name of the file and a full stop after it.
    pub note: String,
    /// The file with all rows, in the folder of the page, to which the note leads; empty without one.
    pub file: String,
}

/// A cell of a table: a text, and the number that it states.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TextCell {
    pub text: String,
    /// The number by which a page sorts the column; `None` for words, and where there is no finite
    /// number.
    pub number: Option<f64>,
}

impl TextCell {
    /// A text that states a number.
    pub fn stating(number: f64, text: String) -> Self {
        Self { text, number: Some(number).filter(|number| number.is_finite()) }
    }

    /// A number with three digits.
    pub fn short(number: f64) -> Self {
        Self::stating(number, short(number))
    }

    /// A count, written in groups of three digits.
    pub fn count(count: usize) -> Self {
        Self::stating(count as f64, thousands(count))
    }

    /// What stands in the place of a number that is missing.
    pub fn dash() -> Self {
        "–".into()
    }
}

impl From<String> for TextCell {
    fn from(text: String) -> Self {
        Self { text, number: None }
    }
}

impl From<&str> for TextCell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&Setting> for TextCell {
    fn from(setting: &Setting) -> Self {
        Self { text: setting.to_string(), number: setting.number() }
    }
}

/// What a page does with a file that it needs in its folder, such as a table that is too long for the page: the first
/// argument is the name of the file, and the second one writes its content to a stream. The content is written at once
/// and never in memory as a whole.
pub type TableFiles<'a> = dyn FnMut(&str, &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) + 'a;

impl TextTable {
    /// A table of all these rows, below these heads, of which there must be as many as cells in each row.
    pub fn new(heads: &[impl AsRef<str>], rows: impl Iterator<Item = Vec<TextCell>>) -> Self {
        let heads = heads.iter().map(|head| head.as_ref().to_owned()).collect();
        Self { heads, rows: rows.collect(), ..Self::default() }
    }

    /// A table of the first [`MOST_ROWS`] of these rows. If there are more, the table has a note, and `files` gets the
    /// file `name.csv` with the heads and all rows, which are made one by one. The names of such files are known to
    /// [`is_table`](super::owned::is_table), so that a later report removes a file that it does not need.
    pub fn first_rows(
        heads: &[impl AsRef<str>],
        rows: impl ExactSizeIterator<Item = Vec<TextCell>>,
        name: &str,
        files: &mut TableFiles<'_>,
    ) -> Self {
        Self::first_rows_of(MOST_ROWS, heads, rows, name, files)
    }

    /// [`Self::first_rows`] with another limit than [`MOST_ROWS`]: the table of the first `most` rows, and the file of
    /// all rows if there are more. Only as many rows are in memory as the table has.
    fn first_rows_of(
        most: usize,
        heads: &[impl AsRef<str>],
        mut rows: impl ExactSizeIterator<Item = Vec<TextCell>>,
        name: &str,
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
            for row in &table.rows {
                out.write_all(csv_line(row).as_bytes())?;
            }
            rows.by_ref().try_for_each(|row| out.write_all(csv_line(&row).as_bytes()))
        });
        table.of_rows(all, &file)
    }

    /// The table with a note that it has the first rows out of `all` rows, which the caller writes to `file`; without a
    /// note if it has all rows.
    pub fn of_rows(self, all: usize, file: &str) -> Self {
        if self.rows.len() == all {
            return self;
        }
        let shown = thousands(self.rows.len());
        let all = thousands(all);
        let note = format!("The first {shown} of {all} rows; all are in");
        Self { note, file: file.to_owned(), ..self }
    }
}

/// A row of a table as a line of a CSV file.
fn csv_line(row: &[TextCell]) -> String {
    line(&row.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_table_has_a_note_and_a_file_with_all_rows() {
        let heads = ["n", "x, y"];
        let rows = |count: usize| (0..count).map(|i| vec![TextCell::count(i), "a \"b\"".into()]);
        let mut files = Vec::new();
        let mut table = |count, most| {
            TextTable::first_rows_of(most, &heads, rows(count), "t", &mut |name, write| {
                let mut text = Vec::new();
                write(&mut text).unwrap();
                files.push((name.to_owned(), String::from_utf8(text).unwrap()));
            })
        };
        let whole = table(3, 3);
        assert_eq!((whole.rows.len(), whole.note.as_str()), (3, ""));
        let truncated = table(1234, 2);
        assert_eq!(truncated.rows.len(), 2);
        assert_eq!(
            (&*truncated.note, &*truncated.file),
            ("The first 2 of 1 234 rows; all are in", "t.csv")
        );
        let [(name, text)] = files.as_slice() else { panic!("one file") };
        assert_eq!((name.as_str(), text.lines().count()), ("t.csv", 1235));
        assert!(text.starts_with("n,\"x, y\"\n0,\"a \"\"b\"\"\"\n"), "{text}");
    }
}
