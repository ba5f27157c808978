//! CSV: values with a separator between them, in lines.

pub mod dialect;

use super::ContentError;
use csv::{Position, StringRecord};
use dialect::{detected, line_of_record, plain_number, separable};
use exactfed_core::problem::arrays::{Column, Contents, CsvDialect};
use exactfed_core::problem::column::{exact_text, is_long, is_mark, number};
use exactfed_core::words::count;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The most columns of a file: more than there may be features, since some columns are not used.
const MOST_COLUMNS: usize = 20_000;

/// The columns of a CSV file as a table. A column is of numbers if each of its values is a number or empty, which is
/// read as NaN; if it has whole numbers beyond 2^53, it keeps their digits as texts. Any other column is of texts.
///
/// # Errors
/// What is wrong with the bytes. Where the file makes no table of several columns, and it would if it were written in
/// another way, the message states the keys of this way.
pub fn read(bytes: &[u8], dialect: CsvDialect) -> Result<Contents, ContentError> {
    let table = read_as(bytes, dialect);
    let columns = match &table {
        Ok(Contents::Table(columns)) => columns.len(),
        _ => 0,
    };
    if columns > 1 {
        return table;
    }
    let found = detected(bytes, dialect);
    if found.separator == dialect.separator && found.comment == dialect.comment {
        return table;
    }
    Err(ContentError::OtherDialect { keys: found.keys() })
}

/// [`read`] without a guess at how the file may be written.
fn read_as(bytes: &[u8], dialect: CsvDialect) -> Result<Contents, ContentError> {
    let bytes = &*separable(bytes, dialect);
    // The file is read twice: what a column holds is known at its end, and texts take far more room than numbers.
    let mut columns = survey_columns(bytes, dialect)?;
    let mut reader = reader(bytes, dialect);
    for record in reader.records() {
        let record = record.map_err(|e| content_error(&e, bytes, dialect))?;
        for (EmptyColumn { values, has_marks_alone, .. }, value) in columns.iter_mut().zip(&record)
        {
            match values {
                Column::Numbers(all) => all.push(number(&number_text(value, dialect))),
                Column::LongNumbers(all) => all.push(exact_text(&number_text(value, dialect))),
                // Among marks of missing values, numbers are written as all readers of texts know them.
                Column::Text(all) if *has_marks_alone => {
                    let plain = plain_number(value, dialect);
                    all.push(plain.map_or_else(|| value.to_owned(), Cow::into_owned));
                }
                Column::Text(all) => all.push(value.to_owned()),
                // A CSV file has no values of other types.
                Column::Unread { .. } => {}
            }
        }
    }
    Ok(Contents::Table(columns.into_iter().map(|column| (column.name, column.values)).collect()))
}

/// A column before its values are read.
struct EmptyColumn {
    name: String,
    /// No values, of the type that holds all of the column.
    values: Column,
    /// Whether all its texts are marks of missing values: else it is one of numbers.
    has_marks_alone: bool,
}

/// The text of a value of a column of numbers, whose values are numbers or empty.
fn number_text(value: &str, dialect: CsvDialect) -> Cow<'_, str> {
    plain_number(value, dialect).unwrap_or_default()
}

/// A reader of the records after the header line, if there is one, whose fields are trimmed. Each line must have as
/// many values as the first.
fn reader(bytes: &[u8], dialect: CsvDialect) -> csv::Reader<&[u8]> {
    reader_settings(dialect).from_reader(bytes)
}

/// The settings of [`reader`]. Of separators other than one byte, which the keys of a dataset do not have, it takes a
/// comma.
fn reader_settings(dialect: CsvDialect) -> csv::ReaderBuilder {
    let byte = |c: Option<char>| c.and_then(|c| u8::try_from(c).ok());
    let mut settings = csv::ReaderBuilder::new();
    settings
        .trim(csv::Trim::All)
        .delimiter(byte(dialect.separator).unwrap_or(b','))
        .comment(byte(dialect.comment))
        .has_headers(!dialect.is_without_header);
    settings
}

/// The names and types of the columns, without their values, by a pass over the whole file.
fn survey_columns(bytes: &[u8], dialect: CsvDialect) -> Result<Vec<EmptyColumn>, ContentError> {
    let mut reader = reader(bytes, dialect);
    let mut heads = reader.headers().map_err(|e| content_error(&e, bytes, dialect))?.clone();
    let header_line = line_of_record(bytes, 0, dialect.comment);
    if heads.is_empty() {
        return Err(ContentError::Invalid("there is no line but comments and empty ones".into()));
    }
    if heads.len() > MOST_COLUMNS {
        let n = heads.len();
        return Err(ContentError::Line {
            line: header_line,
            message: format!("there are {n} columns; at most {MOST_COLUMNS} are allowed"),
        });
    }
    if dialect.is_without_header {
        heads = (1..=heads.len()).map(|i| format!("c{i}")).collect();
    }
    let mut found = vec![ColumnSurvey::default(); heads.len()];
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| content_error(&e, bytes, dialect))? {
        for ((column, value), head) in found.iter_mut().zip(&record).zip(&heads) {
            column.add_value(value, plain_number(value, dialect).as_deref(), head);
        }
    }
    if !dialect.is_without_header {
        check_names(&heads, &found, dialect)
            .map_err(|held| ContentError::NoHeader { line: header_line, held })?;
    }
    let mut columns = Vec::with_capacity(found.len());
    for (name, survey) in distinct_names(&heads).into_iter().zip(&found) {
        let has_marks_alone = survey.has_text && !survey.has_other_text;
        columns.push(EmptyColumn { name, values: survey.empty(), has_marks_alone });
    }
    Ok(columns)
}

/// The names of columns, of which the second with the same name gets ".1" at its end, the third ".2" and so on, or the
/// next number with which no column has the name: so pandas and R read such files.
fn distinct_names(heads: &StringRecord) -> Vec<String> {
    let mut taken: HashSet<String> = heads.iter().map(str::to_owned).collect();
    // How many columns there were of each name so far, or the last number that one of them got.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut names = Vec::with_capacity(heads.len());
    for head in heads {
        let Some(number) = numbers.get_mut(head) else {
            numbers.insert(head, 0);
            names.push(head.to_owned());
            continue;
        };
        loop {
            *number += 1;
            let name = format!("{head}.{number}");
            if taken.insert(name.clone()) {
                names.push(name);
                break;
            }
        }
    }
    names
}

/// What is known of a column from its values so far.
#[derive(Clone, Default)]
struct ColumnSurvey {
    /// Whether a value is neither empty nor a number.
    has_text: bool,
    /// Whether a value is neither empty, nor a number, nor a mark of a missing value.
    has_other_text: bool,
    /// Whether a value is a whole number beyond 2^53.
    has_long: bool,
    /// Whether a value equals the head of the column: then the head may be a value, and line 1 a record
    /// ([`check_names`]).
    has_head: bool,
}

impl ColumnSurvey {
    /// Takes in one more value of the column whose head is `head`; `plain` is the value as [`plain_number`] has it.
    fn add_value(&mut self, value: &str, plain: Option<&str>, head: &str) {
        let is_number = plain.is_some_and(|plain| plain.parse::<f64>().is_ok());
        let is_text = !(value.is_empty() || is_number);
        self.has_text = self.has_text || is_text;
        self.has_other_text = self.has_other_text || is_text && !is_mark(value);
        self.has_long = self.has_long || plain.is_some_and(is_long);
        self.has_head = self.has_head || value == head;
    }

    /// The column without its values, of the type that holds all of them: long whole numbers keep their digits as text.
    fn empty(&self) -> Column {
        match (self.has_text, self.has_long) {
            (true, _) => Column::Text(Vec::new()),
            (false, true) => Column::LongNumbers(Vec::new()),
            (false, false) => Column::Numbers(Vec::new()),
        }
    }
}

/// An error if the header seems to be a record, which says what it holds, "numbers" or "values": some of its fields are
/// numbers, and each of the others is a mark of a missing value or occurs as a text in its own column. So numbers such as
/// years may be names if another field is neither. They may not if one of them is written as no name is, with decimals,
/// leading zeros or signs between thousands, and no text is above numbers. Also allowed is what pandas writes for columns
/// without names: an empty field above the index, then the numbers 0, 1, 2, ….
fn check_names(
    heads: &StringRecord,
    found: &[ColumnSurvey],
    dialect: CsvDialect,
) -> Result<(), &'static str> {
    let are_values = heads
        .iter()
        .zip(found)
        .all(|(name, column)| is_value(name, dialect) || column.has_text && column.has_head);
    let has_number_that_is_no_name =
        heads.iter().any(|name| is_number(name, dialect) && !may_be_name(name));
    let no_text_is_above_numbers =
        heads.iter().zip(found).all(|(name, column)| is_value(name, dialect) || column.has_text);
    let counts_columns = heads.len() > 1
        && heads.iter().enumerate().all(|(i, name)| match i.checked_sub(1) {
            None => name.is_empty(),
            Some(before) => name == before.to_string(),
        });
    let is_record = are_values || has_number_that_is_no_name && no_text_is_above_numbers;
    let has_number = heads.iter().any(|name| is_number(name, dialect));
    if !has_number || !is_record || counts_columns {
        return Ok(());
    }
    let all_numbers = heads.iter().all(|name| is_value(name, dialect));
    Err(if all_numbers { "numbers" } else { "values" })
}

/// Whether a field is written as a number, or as a mark of a missing value.
fn is_value(name: &str, dialect: CsvDialect) -> bool {
    is_number(name, dialect) || is_mark(name)
}

/// Whether a field is written as a number.
fn is_number(name: &str, dialect: CsvDialect) -> bool {
    plain_number(name, dialect).is_some_and(|plain| plain.parse::<f64>().is_ok())
}

/// Whether a field that is a number may also be the name of a column: a whole number without leading zeros, as a year is,
/// or a word such as "inf".
fn may_be_name(number: &str) -> bool {
    let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = !number.bytes().any(|byte| byte.is_ascii_digit());
    is_word || is_whole && (number == "0" || !number.starts_with('0'))
}

/// What is wrong with a line of the text, in our words, from the error of the reader.
fn content_error(e: &csv::Error, text: &[u8], dialect: CsvDialect) -> ContentError {
    let place = e.position().map_or(0, Position::byte);
    // A place in a text that is in memory.
    let line = line_of_record(text, place as usize, dialect.comment);
    let message = match e.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let values = count(*len as usize, "value");
            let columns = count(*expected_len as usize, "column");
            // The first record after the header disagrees with it, which is as likely to be wrong.
            let is_first = e.position().is_some_and(|position| position.record() == 1);
            let remedy = if is_first && !dialect.is_without_header {
                let header = line_of_record(text, 0, dialect.comment);
                format!(
                    "; line {header} must have a name for each column: complete it, or remove it if it has none"
                )
            } else {
                String::new()
            };
            format!("it has {values}, but there are {columns}{remedy}")
        }
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8 text".into(),
        _ => e.to_string(),
    };
    ContentError::Line { line, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Contents, ContentError> {
        super::read(bytes, CsvDialect { separator: Some(','), ..CsvDialect::default() })
    }

    #[test]
    fn columns_are_numbers_or_text() {
        let text = "a, b ,c\n1,x,-2.5e3\n2,\"y, z\",4\n";
        let Ok(Contents::Table(columns)) = read(text.as_bytes()) else { panic!() };
        assert_eq!(columns[0], ("a".into(), Column::Numbers(vec![1.0, 2.0])));
        assert_eq!(columns[1], ("b".into(), Column::Text(vec!["x".into(), "y, z".into()])));
        assert_eq!(columns[2], ("c".into(), Column::Numbers(vec![-2500.0, 4.0])));
    }

    #[test]
    fn a_first_line_of_values_is_refused() {
        for (text, what) in [
            ("1.5,2,0\n2.5,3,1\n", "numbers"),
            ("1,1,0\n2,3,1\n", "numbers"),
            ("1.5,,0\n2.5,3,1\n", "numbers"),
            ("1.5,NA,0\n2.5,3,1\n", "numbers"),
            ("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n", "values"),
            ("39,State-gov,<=50K\n50,State-gov,<=50K\n38,Private,>50K\n", "values"),
            ("A1,01,7.5,9.7\nB2,03,8.5,9.1\nC3,05,1,13.4\n", "values"),
            ("18.0,8,torino\n15.0,8,skylark\n16.0,8,rebel\n", "values"),
        ] {
            let said = read(text.as_bytes()).unwrap_err().to_string();
            assert_eq!(
                said,
                format!(
                    "line 1 holds {what} and no names; add a header line, or write `header = false`"
                )
            );
        }
        for text in [
            "country,1990,1991\nA,1,2\nB,3,4\n",
            // A text above numbers is a name.
            "dose,0.5,0.75\n1,2,3\n2,3,4\n",
            "group,inf,1990\nA,2,3\nB,3,4\n",
            ",0,1,2\n0,0.5,1,0\n1,0.25,2,1\n",
            "a,b\n1,2\n",
            "x\n1\n",
            "a,b,yes\na,b,yes\n",
        ] {
            assert!(read(text.as_bytes()).is_ok(), "{text}");
        }
    }

    /// A mark of a missing value makes no other numbers of those around it: they are what they are without it.
    #[test]
    fn numbers_among_marks_are_read_in_the_notation_of_the_file() {
        let commas = CsvDialect {
            separator: Some(';'),
            decimal: Some(','),
            thousands: Some('.'),
            ..CsvDialect::default()
        };
        let text = "a;b;c\n1,5;NA;1,5\n1.250,25;2,5;x\n?;3;2\n";
        let Ok(Contents::Table(columns)) = super::read(text.as_bytes(), commas) else { panic!() };
        let numbers = |place: usize| columns[place].1.with_marks_read().numbers().unwrap().to_vec();
        assert_eq!(numbers(0)[..2], [1.5, 1250.25]);
        assert!(numbers(0)[2].is_nan() && numbers(1)[0].is_nan());
        assert_eq!(numbers(1)[1..], [2.5, 3.0]);
        assert_eq!(columns[2].1, Column::Text(vec!["1,5".into(), "x".into(), "2".into()]));
    }

    /// Lines are counted as an editor does, with those that are no records.
    #[test]
    fn lines_that_are_no_records_are_counted() {
        let tabs = CsvDialect { separator: Some('\t'), ..CsvDialect::default() };
        let semicolons = CsvDialect { separator: Some(';'), ..tabs };
        let notes = CsvDialect { comment: Some('#'), ..semicolons };
        for (text, dialect, message) in [
            ("sep=;\n1;2\n3;4\n", semicolons, "line 2 holds numbers and no names; "),
            ("sep=;\r\na;b\r\n1;2\r\n3\r\n", semicolons, "line 4: it has 1 value, but"),
            (
                "sep=;\n\na;b\n1;2;3\n1;2;4\n",
                semicolons,
                "line 4: it has 3 values, but there are 2",
            ),
            (
                "sep=;\n\na;b\n1;2;3\n1;2;4\n",
                semicolons,
                "; line 3 must have a name for each column",
            ),
            ("\u{feff}# x\na;b\n1;2\n\n# y\n3\n", notes, "line 6: it has 1 value, but"),
            ("a\tb\nc\td\n\tclass\n1\t2\n3\n", tabs, "line 5: it has 1 value, but"),
        ] {
            let said = super::read(text.as_bytes(), dialect).unwrap_err().to_string();
            assert!(said.contains(message), "{text:?}: {said}");
        }
    }

    #[test]
    fn whole_numbers_beyond_double_precision_keep_their_digits() {
        let text = "id,x\n1234567890123456789,1\n1234567890123456790.0,2\n7,3\n007.0,4\n,5\n";
        let Ok(Contents::Table(columns)) = read(text.as_bytes()) else { panic!() };
        let exact = ["1234567890123456789", "1234567890123456790", "7", "7", "NaN"];
        assert_eq!(columns[0].1, Column::LongNumbers(exact.map(str::to_owned).to_vec()));
        assert_eq!(columns[1].1, Column::Numbers(vec![1.0, 2.0, 3.0, 4.0, 5.0]));
    }

    #[test]
    fn what_is_not_a_table_is_refused() {
        for (bytes, message) in [
            (&b"a,b\n1,2\n3\n"[..], "line 3: it has 1 value, but there are 2 columns"),
            (
                b"569,30,no\n1,2,3,4,0\n2,3,4,5,1\n",
                "line 2: it has 5 values, but there are 3 columns; line 1 must have a name for each column: complete it, or remove it if it has none",
            ),
            (b"\n\n", "there is no line but comments and empty ones"),
            (b"a\n1\n\xff\xfe\n", "line 3: it is not UTF-8 text"),
        ] {
            assert_eq!(read(bytes).unwrap_err().to_string(), message);
        }
        assert!(read("a\n\u{fffd}\n".as_bytes()).is_ok());
    }

    #[test]
    fn columns_of_one_name_are_numbered() {
        let names = |header: &str| {
            let Ok(Contents::Table(columns)) = read(header.as_bytes()) else { panic!("{header}") };
            columns.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names("a,b,a,a\n"), ["a", "b", "a.1", "a.2"]);
        assert_eq!(names("a,a,a.1\n"), ["a", "a.2", "a.1"]);
        assert_eq!(names("a.1,a,a\n"), ["a.1", "a", "a.2"]);
        assert_eq!(names(",x,\n"), ["", "x", ".1"]);
    }

    /// A million columns.
    #[test]
    fn what_is_too_wide_is_refused_in_a_few_words() {
        let heads: Vec<String> = (0..1_000_000).map(|i| format!("c{i}")).collect();
        let said = read(heads.join(",").as_bytes()).unwrap_err().to_string();
        assert_eq!(said, "line 1: there are 1000000 columns; at most 20000 are allowed");
    }
}
