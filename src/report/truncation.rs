//! Tables of a page, truncated if they have more rows than a browser can open.
//!
//! *Invariant*: a table that fits is complete; a truncated one has a note on how many rows there
//! are, which of them it shows and which file has all.

use super::series::quoted;
use exactfed_core::words::thousands;
use serde::Serialize;

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

/// A file in the folder of a page: its name and its text.
pub type File = (String, String);

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
        files: &mut Vec<File>,
    ) -> Self {
        let all = rows.len();
        let table = Self::new(heads, rows.by_ref().take(most));
        if all <= most {
            return table;
        }
        let file = format!("{name}.csv");
        let line = |row: &[String]| {
            let fields: Vec<String> = row.iter().map(|field| quoted(field)).collect();
            fields.join(",") + "\n"
        };
        let mut text = line(&table.heads);
        table.rows.iter().for_each(|row| text.push_str(&line(row)));
        // It may be long, and is not copied as it grows.
        text.reserve(text.len() / most.max(1) * (all - most) * 5 / 4);
        rows.for_each(|row| text.push_str(&line(&row)));
        files.push((file.clone(), text));
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
        let whole = TextTable::first(&heads, rows(3), (3, "t"), &mut files);
        assert_eq!((whole.rows.len(), whole.note.as_str(), files.len()), (3, "", 0));
        let short = TextTable::first(&heads, rows(1234), (2, "t"), &mut files);
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
