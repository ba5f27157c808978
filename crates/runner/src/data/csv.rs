//! CSV with a header.

use csv::{Position, StringRecord};
use exactfed_core::problem::arrays::{Column, Contents, is_mark, sanitised};
use exactfed_core::words::count;

/// The most columns: more than features may be, and some that are not used.
const MOST_COLUMNS: usize = 20_000;

/// The columns, numbers where every row of a column is one or empty, which is NaN.
pub fn read(bytes: &[u8]) -> Result<Contents, String> {
    // Twice: what a column holds is known at its end, and texts take far more
    // room than numbers.
    let mut columns = survey(bytes)?;
    let mut reader = reader(bytes);
    for record in reader.records() {
        let record = record.map_err(|e| wrong(&e))?;
        for ((_, column), value) in columns.iter_mut().zip(&record) {
            match column {
                Column::Numbers(all) => all.push(value.parse().unwrap_or(f64::NAN)),
                Column::Text(all) => all.push(value.to_owned()),
            }
        }
    }
    Ok(Contents::Table(columns))
}

fn reader(bytes: &[u8]) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes)
}

/// The columns without their values, if all of it is a table.
fn survey(bytes: &[u8]) -> Result<Vec<(String, Column)>, String> {
    let mut reader = reader(bytes);
    let heads = reader.headers().map_err(|e| wrong(&e))?.clone();
    if heads.len() > MOST_COLUMNS {
        let n = heads.len();
        return Err(format!("line 1: there are {n} columns; at most {MOST_COLUMNS} are allowed"));
    }
    let mut seen = std::collections::HashSet::new();
    if let Some(twice) = heads.iter().find(|name| !seen.insert(*name)) {
        return Err(format!("two columns are called \"{}\"", sanitised(twice)));
    }
    let mut numbers = vec![true; heads.len()];
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| wrong(&e))? {
        for (number, value) in numbers.iter_mut().zip(&record) {
            *number = *number && (value.is_empty() || value.parse::<f64>().is_ok());
        }
    }
    let empty = |number| match number {
        true => Column::Numbers(Vec::new()),
        false => Column::Text(Vec::new()),
    };
    Ok(heads.iter().map(str::to_owned).zip(numbers.into_iter().map(empty)).collect())
}

/// The columns that lack values, with how many and the first line that lacks one: empty, or a
/// usual mark of a missing value; `None` if the bytes are no table.
pub fn missing(bytes: &[u8]) -> Option<Vec<(String, usize, u64)>> {
    let mut reader = reader(bytes);
    let heads = reader.headers().ok()?.clone();
    let mut found = vec![(0, 0); heads.len()];
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).ok()? {
        let line = record.position().map_or(0, Position::line);
        for ((number, first), value) in found.iter_mut().zip(&record) {
            if is_mark(value) {
                if *number == 0 {
                    *first = line;
                }
                *number += 1;
            }
        }
    }
    let all = heads.iter().zip(found).filter(|(_, (number, _))| *number > 0);
    Some(all.map(|(name, (number, first))| (name.to_owned(), number, first)).collect())
}

/// What is wrong with a record.
fn wrong(e: &csv::Error) -> String {
    let line = e.position().map_or(1, Position::line);
    match e.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let (values, columns) =
                (count(*len as usize, "value"), count(*expected_len as usize, "column"));
            format!("line {line}: it has {values}, but there are {columns}")
        }
        csv::ErrorKind::Utf8 { .. } => format!("line {line}: it is not UTF-8 text"),
        _ => format!("line {line}: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_numbers_or_text() {
        let text = "a, b ,c\n1,x,-2.5e3\n2,\"y, z\",4\n";
        let Ok(Contents::Table(columns)) = read(text.as_bytes()) else { panic!() };
        assert_eq!(columns[0], ("a".into(), Column::Numbers(vec![1.0, 2.0])));
        assert_eq!(columns[1], ("b".into(), Column::Text(vec!["x".into(), "y, z".into()])));
        assert_eq!(columns[2], ("c".into(), Column::Numbers(vec![-2500.0, 4.0])));
    }

    #[test]
    fn what_is_not_a_table_is_refused() {
        for (bytes, message) in [
            (&b"a,b\n1,2\n3\n"[..], "line 3: it has 1 value, but there are 2 columns"),
            (b"a,a\n1,2\n", "two columns are called \"a\""),
            (b"a\n1\n\xff\xfe\n", "line 3: it is not UTF-8 text"),
        ] {
            assert_eq!(read(bytes).unwrap_err(), message);
        }
        assert!(read("a\n\u{fffd}\n".as_bytes()).is_ok());
    }

    /// A million columns; a name of a million letters, which no message repeats.
    #[test]
    fn what_is_too_wide_is_refused_in_a_few_words() {
        let heads: Vec<String> = (0..1_000_000).map(|i| format!("c{i}")).collect();
        let said = read(heads.join(",").as_bytes()).unwrap_err();
        assert_eq!(said, "line 1: there are 1000000 columns; at most 20000 are allowed");
        let name = "\u{1b}[31m".repeat(200_000);
        let said = read(format!("{name},{name}\n").as_bytes()).unwrap_err();
        assert!(said.chars().count() < 100 && !said.contains('\u{1b}'), "{said}");
    }
}
