//! A column of a table: numbers or texts, which of its values are missing, and whether it names the
//! records instead of describing them.
//!
//! *Invariant*: whether a value is missing is decided here alone, by one list, for features, labels,
//! clients and marks of the test set alike.

use crate::words::{count, sanitised};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

/// The texts that stand for a missing value: those that pandas reads as missing by default, those
/// that R, databases and spreadsheets write, and the usual signs. Their case counts: "Na" is sodium,
/// and "none" may be a category.
pub const MARKS: [&str; 25] = [
    "", "NA", "na", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-NaN",
    "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "NULL", "null", "None", "NaT", "?", "-",
    ".",
];

/// The largest whole number up to which all whole numbers are numbers of their own in double
/// precision, 2^53.
const LARGEST_EXACT: &str = "9007199254740992";

/// The fewest records in which a column with a name is taken to count or to number the rows: with fewer,
/// the values of a feature do so by chance.
const FEWEST_NUMBERED: usize = 10;

/// Whether a text is a usual mark of a missing value, compared as it is, with its case and its spaces.
pub fn is_mark(text: &str) -> bool {
    MARKS.contains(&text)
}

/// The digits of a whole number in decimal notation, without its sign, leading zeros, and the point and
/// zeros that may follow, so that 0 has none; `None` if the text is no such number, as one with an exponent. Numbers
/// beyond 2^53 are compared by their digits, since double precision does not tell them apart.
fn whole_digits(text: &str) -> Option<&str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_whole = !whole.is_empty()
        && whole.bytes().all(|byte| byte.is_ascii_digit())
        && fraction.bytes().all(|byte| byte == b'0');
    is_whole.then(|| whole.trim_start_matches('0'))
}

/// Whether a text is a whole number beyond 2^53, as identifiers may be, which double precision may not
/// tell from its neighbours. It is `false` for a text with an exponent, which was a number of double
/// precision when it was written.
pub fn is_long(text: &str) -> bool {
    let longest = LARGEST_EXACT.len();
    whole_digits(text).is_some_and(|digits| {
        digits.len() > longest || digits.len() == longest && digits > LARGEST_EXACT
    })
}

/// Whether a text is a whole number that double precision does not have, so that it would be read as
/// another whole number. A number of [`is_long`] may still be exact, such as 2^54.
pub fn is_inexact(text: &str) -> bool {
    is_long(text) && whole_digits(text) != Some(&format!("{:.0}", number(text).abs()))
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Numbers of which some are whole and beyond 2^53, such as identifiers: these with all their
    /// digits, the others as double precision writes them. So two values are the same number if
    /// their texts are equal.
    LongNumbers(Vec<String>),
    /// Anything else, as text.
    Text(Vec<String>),
    /// Values that can be no data, such as dates or lists: they are not read, and only a setting that names
    /// the column is refused.
    Unread {
        /// What the values are, in the words of the file's format, such as "date32".
        kind: String,
        /// The number of rows.
        rows: usize,
    },
}

impl Column {
    /// The number of rows, whether or not values are missing.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::LongNumbers(values) | Self::Text(values) => values.len(),
            Self::Unread { rows, .. } => *rows,
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value in a row, counted from 0, as text: a number in its shortest form (1.0 is "1"), and "NaN" where a
    /// column of numbers lacks a value; a text column has the mark of the missing value as the file has it. Of values
    /// that are not read it is their type.
    pub fn text(&self, row: usize) -> String {
        match self {
            Self::Numbers(values) => values[row].to_string(),
            Self::LongNumbers(values) | Self::Text(values) => values[row].clone(),
            Self::Unread { kind, .. } => kind.clone(),
        }
    }

    /// The column of the values in these rows, in the order of `rows`.
    #[must_use]
    pub fn take(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(all) => Self::Numbers(take_rows(all, rows)),
            Self::LongNumbers(all) => Self::LongNumbers(take_rows(all, rows)),
            Self::Text(all) => Self::Text(take_rows(all, rows)),
            Self::Unread { kind, .. } => Self::Unread { kind: kind.clone(), rows: rows.len() },
        }
    }

    /// Whether the values are read, as numbers or as texts: those of other types, such as dates, are not.
    pub fn is_read(&self) -> bool {
        !matches!(self, Self::Unread { .. })
    }

    /// For each row whether its value is missing: NaN, or a text that is a usual mark of a missing value.
    /// "-" is no mark in a column that has "+" too, because the two are then signs. Of values that are not read
    /// none counts as missing.
    pub fn missing(&self) -> Vec<bool> {
        match self {
            Self::Numbers(values) => values.iter().map(|x| x.is_nan()).collect(),
            Self::LongNumbers(values) => values.iter().map(|text| is_mark(text)).collect(),
            Self::Text(values) => {
                let has_signs = values.iter().any(|text| text == "+");
                values.iter().map(|text| is_mark(text) && !(has_signs && text == "-")).collect()
            }
            Self::Unread { rows, .. } => vec![false; *rows],
        }
    }

    /// The column of numbers, with NaN in the place of each mark of a missing value, that a text column is
    /// if it has marks and all its other texts are numbers; else the column itself. A reader of files makes a column
    /// text because of its marks, and without the records whose values are missing it would be numbers. A column of
    /// numbers that a file holds as texts, without a mark, stays text.
    pub fn with_marks_read(&self) -> Cow<'_, Self> {
        match self {
            Self::Text(texts) if texts.iter().any(|text| is_mark(text)) => {
                numbers_and_marks(texts).map_or(Cow::Borrowed(self), Cow::Owned)
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// The values as numbers of double precision, NaN where one is missing; `None` for a column of texts, or of
    /// values that are not read.
    pub fn numbers(&self) -> Option<Cow<'_, [f64]>> {
        match self {
            Self::Numbers(values) => Some(Cow::Borrowed(values)),
            Self::LongNumbers(values) => {
                Some(Cow::Owned(values.iter().map(|text| number(text)).collect()))
            }
            Self::Text(_) | Self::Unread { .. } => None,
        }
    }

    /// Whether the values are 0, 1, 2, … or 1, 2, 3, … in this order, as an index of rows is. A column without rows
    /// is so too: the caller asks for ten rows or more.
    fn counts_rows(&self) -> bool {
        let Self::Numbers(values) = self else { return false };
        [0.0, 1.0]
            .into_iter()
            .any(|first| values.iter().zip(0_u32..).all(|(x, i)| *x == first + f64::from(i)))
    }

    /// Whether the column may hold identifiers of records, which are no feature: all values are whole
    /// numbers and no two are equal. It is `false` with few records, in which a feature may be so by chance.
    pub fn may_number_records(&self) -> bool {
        self.len() >= FEWEST_NUMBERED
            && match self {
                Self::Numbers(values) => {
                    let mut seen = HashSet::new();
                    values.iter().all(|x| x.fract() == 0.0 && seen.insert(x.to_bits()))
                }
                Self::LongNumbers(values) => {
                    let mut seen = HashSet::new();
                    values.iter().all(|text| number(text).fract() == 0.0 && seen.insert(text))
                }
                Self::Text(_) | Self::Unread { .. } => false,
            }
    }
}

/// The values in these rows.
fn take_rows<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| values[row].clone()).collect()
}

/// Texts as a column of numbers, with NaN in the place of marks of missing values; `None` if one is neither
/// a number nor a mark. It is [`Column::LongNumbers`] if a whole number is beyond 2^53, so that no two of them become
/// equal.
pub fn numbers_and_marks(texts: &[String]) -> Option<Column> {
    if !texts.iter().all(|text| is_mark(text) || text.parse::<f64>().is_ok()) {
        return None;
    }
    if texts.iter().any(|text| is_long(text)) {
        return Some(Column::LongNumbers(texts.iter().map(|text| exact_text(text)).collect()));
    }
    Some(Column::Numbers(texts.iter().map(|text| number(text)).collect()))
}

/// The number that a text is, in double precision; NaN for any other text, as a mark of a missing value.
pub fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// How a number that a file has as `text` is written in [`Column::LongNumbers`]: a whole number beyond 2^53
/// with all its digits, without leading zeros; any other as double precision writes it, and "NaN", a mark of a missing
/// value, for a text that is no number.
pub fn exact_text(text: &str) -> String {
    match whole_digits(text).filter(|_| is_long(text)) {
        Some(digits) if text.starts_with('-') => format!("-{digits}"),
        Some(digits) => digits.to_owned(),
        None => number(text).to_string(),
    }
}

/// The few texts of a column that are no numbers, or marks of missing values, in a column most of whose values are
/// numbers: a message names them.
pub struct Exceptions {
    /// The row of the first of these texts.
    first: usize,
    /// The number of rows that have one.
    rows: usize,
    /// The number of different texts.
    texts: usize,
}

impl Exceptions {
    /// The texts that are neither numbers nor marks of missing values; `None` if there are none, or at
    /// least as many as numbers.
    pub fn among_numbers(values: &[String]) -> Option<Self> {
        Self::few(values, |value| !is_mark(value) && value.parse::<f64>().is_err())
    }

    /// The marks of missing values among numbers; `None` if there are none, at least as many as numbers, or other texts.
    pub fn marks_among_numbers(values: &[String]) -> Option<Self> {
        numbers_and_marks(values)?;
        Self::few(values, is_mark)
    }

    /// The values that are exceptions; `None` if there are none, or at least as many as numbers that are no marks.
    fn few(values: &[String], is_exception: impl Fn(&str) -> bool) -> Option<Self> {
        let exceptions: Vec<usize> =
            (0..values.len()).filter(|row| is_exception(&values[*row])).collect();
        let numbers =
            values.iter().filter(|value| !is_mark(value) && value.parse::<f64>().is_ok()).count();
        let texts = exceptions.iter().map(|row| &values[*row]).collect::<HashSet<_>>().len();
        let first = *exceptions.first()?;
        let rows = exceptions.len();
        (numbers > rows).then_some(Self { first, rows, texts })
    }

    /// What the column holds, for a message: "numbers but for \"x\" in 2 rows, first in line 7". `values` are the
    /// texts of the column, of which these exceptions were found; `place` says where in the file the row of this number
    /// is, counted from 0.
    pub fn describe(&self, values: &[String], place: impl Fn(usize) -> String) -> String {
        let text = sanitised(&values[self.first]);
        let place = place(self.first);
        let rows = count(self.rows, "row");
        match self.texts {
            1 => format!("numbers but for \"{text}\" in {rows}, first in {place}"),
            several => {
                format!("numbers but for {several} texts in {rows}, first \"{text}\" in {place}")
            }
        }
    }
}

/// A value of [`Column::LongNumbers`], in the order of the numbers.
#[derive(Clone, PartialEq)]
pub struct LongNumber<'a>(pub &'a str);

impl LongNumber<'_> {
    /// Compares two numbers by their values in double precision and, where these are equal although the
    /// whole numbers differ, by their digits.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        let own = self.0;
        let other = other.0;
        // Whole numbers without leading zeros are in the order of their lengths, then of their
        // digits; negative ones in the reverse order.
        let by_size = own.len().cmp(&other.len()).then_with(|| own.cmp(other));
        let by_digits = if own.starts_with('-') { by_size.reverse() } else { by_size };
        number(own).total_cmp(&number(other)).then(by_digits)
    }
}

impl PartialOrd for LongNumber<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.total_cmp(other))
    }
}

/// Whether a column of this name names the rows: its name is empty, or is the one that pandas gives to the
/// index of a table.
fn is_name_of_index(name: &str) -> bool {
    // A column without a name, read from CSV, and its copies "Unnamed: 0.1" and so on.
    let after_unnamed = name.strip_prefix("Unnamed: 0");
    name.is_empty()
        || after_unnamed.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        || is_parquet_index(name)
}

/// Whether pandas gave a column this name because it was the index of a table that it wrote to
/// Parquet.
fn is_parquet_index(name: &str) -> bool {
    name.starts_with("__index_level_")
}

/// The places, from 0, of the columns of a table that number or name its rows, as pandas and R write them,
/// and so are no features: the first columns, as long as they have no name or the one that pandas gives to
/// an index; the next column if it counts the rows; and those that pandas writes to Parquet as indices.
///
/// `may_be` says whether the column of this name may be left out, because it has no other use, such as
/// the label. A column that counts the rows is kept if no other column would be left.
pub fn row_indices(columns: &[(String, Column)], may_be: impl Fn(&str) -> bool) -> Vec<usize> {
    let leading = columns.iter().take_while(|(name, _)| is_name_of_index(name) && may_be(name));
    let begin = leading.count();
    let mut found: Vec<usize> = (0..begin).collect();
    let later = (begin..columns.len()).filter(|&i| may_be(&columns[i].0));
    let (indices, others): (Vec<usize>, Vec<usize>) =
        later.partition(|&i| is_parquet_index(&columns[i].0));
    if others.first() == Some(&begin)
        && others.len() > 1
        && columns[begin].1.len() >= FEWEST_NUMBERED
        && columns[begin].1.counts_rows()
    {
        found.push(begin);
    }
    found.extend(indices);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn marks_are_as_pandas_and_r_write_them() {
        let marks = [
            "", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "?", "-", ".", "#N/A",
            "NaT", "<NA>",
        ];
        for mark in marks {
            assert!(is_mark(mark), "{mark:?}");
            let column = Column::Text(texts(&["a", mark, "b"]));
            assert_eq!(column.missing(), [false, true, false], "{mark:?}");
        }
        for value in ["Na", "none", "nano", "0", "--", "x", "N"] {
            assert!(!is_mark(value), "{value:?}");
        }
        let signs = Column::Text(texts(&["+", "-", "?"]));
        assert_eq!(signs.missing(), [false, false, true], "beside + it is a sign");
    }

    #[test]
    fn whole_numbers_of_any_length_are_told_apart() {
        for (text, long) in [
            ("9007199254740992", false),
            ("9007199254740993", true),
            ("-9007199254740993", true),
            ("0009007199254740992", false),
            ("+00012345678901234567890", true),
            ("9007199254740993.0", true),
            ("9007199254740993.5", false),
            ("9007199254740992.", false),
            ("1e300", false),
            ("x9007199254740993", false),
            ("", false),
        ] {
            assert_eq!(is_long(text), long, "{text}");
        }
        let all =
            ["9007199254740993", "09007199254740993", "1.0", "01", "NA", "-90071992547409930"];
        let Some(Column::LongNumbers(exact)) = numbers_and_marks(&texts(&all)) else { panic!() };
        let want = ["9007199254740993", "9007199254740993", "1", "1", "NaN", "-90071992547409930"];
        assert_eq!(exact, want);
        let sorted = [
            "-9007199254740994",
            "-9007199254740993",
            "-2",
            "3",
            "20",
            "9007199254740992",
            "9007199254740993",
            "90071992547409921",
        ];
        for pair in sorted.windows(2) {
            let order = LongNumber(pair[0]).total_cmp(&LongNumber(pair[1]));
            assert_eq!(order, Ordering::Less, "{pair:?}");
        }
    }

    /// A column of n numbers.
    fn numbers(n: u32, of: fn(u32) -> f64) -> Column {
        Column::Numbers((0..n).map(of).collect())
    }

    /// The numbers first, first + 1, … of n rows.
    fn count(first: u32, n: u32) -> Column {
        Column::Numbers((first..first + n).map(f64::from).collect())
    }

    /// n distinct whole numbers beyond 2^53.
    fn long_numbers(n: u64) -> Column {
        Column::LongNumbers((0..n).map(|i| (1 << 60 | i).to_string()).collect())
    }

    #[test]
    fn columns_that_number_the_rows_are_found() {
        let rest = || numbers(12, |i| f64::from(i * i % 7));
        let names = Column::Text((0..12).map(|i| format!("car {i}")).collect());
        let shuffled = numbers(12, |i| f64::from(i * 5 % 12));
        /// Columns with their names, and which of them are indices of rows.
        type Case<'a> = (Vec<(&'a str, Column)>, &'a [usize]);
        let cases: [Case<'_>; 11] = [
            (vec![("", count(0, 12)), ("a", rest()), ("y", rest())], &[0]),
            (vec![("", shuffled.clone()), ("a", rest()), ("y", rest())], &[0]),
            (vec![("", names), ("a", rest()), ("y", rest())], &[0]),
            (vec![("Unnamed: 0.1", count(0, 12)), ("Unnamed: 0", rest()), ("a", rest())], &[0, 1]),
            (vec![("id", count(1, 12)), ("a", rest()), ("y", rest())], &[0]),
            (vec![("id", count(2, 12)), ("a", rest()), ("y", rest())], &[]),
            (vec![("id", shuffled), ("a", rest()), ("y", rest())], &[]),
            (vec![("id", count(0, 9)), ("a", count(0, 9)), ("y", count(0, 9))], &[]),
            (vec![("x", count(1, 12)), ("y", rest())], &[]),
            (vec![("a", rest()), ("", count(0, 12)), ("y", rest())], &[]),
            (vec![("a", rest()), ("y", rest()), ("__index_level_0__", rest())], &[2]),
        ];
        for (columns, want) in cases {
            let columns: Vec<(String, Column)> =
                columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect();
            let names: Vec<&String> = columns.iter().map(|(name, _)| name).collect();
            assert_eq!(row_indices(&columns, |name| name != "y"), want, "{names:?}");
        }
    }

    #[test]
    fn columns_that_may_number_records_have_distinct_whole_numbers() {
        assert!(numbers(20, |i| f64::from(i * 7 % 20 + 1000)).may_number_records());
        assert!(!numbers(20, |i| f64::from(i / 2)).may_number_records());
        assert!(!numbers(20, |i| f64::from(i) + 0.5).may_number_records());
        assert!(long_numbers(20).may_number_records());
        assert!(!long_numbers(9).may_number_records());
    }
}
