//! How a CSV file is written: its separator, its decimal sign and its comments, found from its first lines, and the
//! numbers that it has in that way.
//!
//! The reader of records is the library's. A separator is found by reading with each of the usual ones: the right one
//! divides all lines into equally many values.

use super::{reader, reader_settings};
use csv::StringRecord;
use exactfed_core::problem::arrays::CsvDialect;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// The names of types with which Orange describes columns, but for lists of categories.
const TYPES: [&str; 8] = ["c", "d", "s", "t", "continuous", "discrete", "string", "time"];
/// What Orange says of columns; an empty text is said of features.
const ROLES: [&str; 5] = ["class", "meta", "ignore", "i", ""];
/// The bytes with which a text in UTF-8 may begin, which are no part of it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The separators that are tried, in the order of preference.
const SEPARATORS: [char; 5] = [',', ';', '\t', '|', ' '];
/// The most bytes of a file, and the most of its lines, from which its way of writing is found.
const MOST_BYTES: usize = 1 << 20;
const MOST_LINES: usize = 1000;

/// A value with its number, if it is one, in the notation that all readers know, from the notation of the file: without
/// signs between groups of digits, and with a point before its decimals. A value that is no number stays as it is.
/// `None` if the value has a point where the file has another decimal sign: "1.5" is no number there, and would be read
/// as one.
pub fn plain_number(value: &str, dialect: CsvDialect) -> Option<Cow<'_, str>> {
    let decimal = dialect.decimal.unwrap_or('.');
    let plain = match dialect.thousands {
        Some(sign) if is_grouped(value, sign, decimal) => Cow::Owned(value.replace(sign, "")),
        _ => Cow::Borrowed(value),
    };
    if decimal == '.' {
        return Some(plain);
    }
    if plain.contains('.') {
        return None;
    }
    let has_one = plain.matches(decimal).count() == 1;
    Some(if has_one { Cow::Owned(plain.replace(decimal, ".")) } else { plain })
}

/// Whether a text is a number whose digits before the decimal sign are in groups of three with `sign` between them:
/// two groups or more, of which the first has one to three digits and does not begin with 0.
fn is_grouped(value: &str, sign: char, decimal: char) -> bool {
    let unsigned = value.strip_prefix(['+', '-']).unwrap_or(value);
    let (whole, fraction) = unsigned.split_once(decimal).unwrap_or((unsigned, ""));
    let Some((first, others)) = whole.split_once(sign) else { return false };
    (1..=3).contains(&first.len())
        && are_digits(first)
        && !first.starts_with('0')
        && others.split(sign).all(|group| group.len() == 3 && are_digits(group))
        && are_digits(fraction)
}

/// Whether a text is a number with `sign` before its decimals, of which there is at least one.
fn has_decimals_after(value: &str, sign: char) -> bool {
    let unsigned = value.strip_prefix(['+', '-']).unwrap_or(value);
    unsigned.split_once(sign).is_some_and(|(whole, fraction)| {
        are_digits(whole) && !fraction.is_empty() && are_digits(fraction)
    })
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text of a file as the reader of records takes it, to which every blank is a separator, and which wants a name for
/// each column and nothing but records behind the names: where blanks separate values, with a single one between two
/// values; with empty lines in the place of a first line that names the separator, and of the two lines in which Orange
/// describes the columns; and with an empty name before the others where the names of the rows have none, as R writes
/// tables. Its lines have the numbers that they have in the file.
pub fn separable(bytes: &[u8], dialect: CsvDialect) -> Cow<'_, [u8]> {
    let separator = dialect.separator.unwrap_or(',');
    let mut text = Cow::Borrowed(bytes);
    if let Some(line) = separator_line(bytes).filter(|line| line.separator == separator) {
        text = Cow::Owned(with_empty_lines(bytes, line.place));
    }
    if separator == ' ' {
        text = Cow::Owned(with_single_blanks(&text, dialect.comment));
    }
    if let Some(lines) = lines_of_orange(&text, dialect) {
        return Cow::Owned(with_empty_lines(&text, lines));
    }
    match u8::try_from(separator) {
        Ok(separator) if lacks_name_of_rows(&text, dialect) => {
            let place = record_place(&text, 0, dialect.comment);
            let name = [b'"', b'"', separator];
            Cow::Owned([&text[..place], &name, &text[place..]].concat())
        }
        _ => text,
    }
}

/// Whether the first column of a table has no place in its header, as R's `write.table` writes the names of the rows:
/// the header has two names or more, and each of the first lines after it one value more. As names of rows, the first
/// values are there and differ. Where each line ends with a separator, it has one value more too, which is empty.
fn lacks_name_of_rows(text: &[u8], dialect: CsvDialect) -> bool {
    if dialect.is_without_header {
        return false;
    }
    let mut reader = reader_settings(dialect).flexible(true).from_reader(first_lines(text));
    let Ok(names) = reader.headers().map(StringRecord::len) else { return false };
    let mut seen = HashSet::new();
    let mut has_last_values = false;
    for record in reader.records() {
        let Ok(record) = record else { return false };
        let first = record.get(0).unwrap_or_default();
        if record.len() != names + 1 || first.is_empty() || !seen.insert(first.to_owned()) {
            return false;
        }
        has_last_values = has_last_values || record.get(names).is_some_and(|last| !last.is_empty());
    }
    names > 1 && has_last_values
}

/// The two lines behind the header in which Orange says of what kind the columns of a table are, if there are such: in
/// the first, the name of a type or the categories of each column, and in the second, which column is the class, and
/// which ones are no features.
fn lines_of_orange(text: &[u8], dialect: CsvDialect) -> Option<Range<usize>> {
    if dialect.is_without_header {
        return None;
    }
    let mut reader = reader(first_lines(text), dialect);
    reader.headers().ok()?;
    let begin = reader.position().byte();
    let mut types = StringRecord::new();
    let mut roles = StringRecord::new();
    let has_both = reader.read_record(&mut types).ok()? && reader.read_record(&mut roles).ok()?;
    let end = reader.position().byte();
    let are_roles =
        roles.iter().all(|role| ROLES.contains(&role)) && roles.iter().any(|role| !role.is_empty());
    let are_types = types.iter().any(|kind| TYPES.contains(&kind));
    // Places in a text that is in memory.
    (has_both && are_types && are_roles).then_some(begin as usize..end as usize)
}

/// The first line of a file, if it does nothing but name the separator, as Excel reads and writes it: `sep=;`, which may
/// be in quotes.
struct SeparatorLine {
    separator: char,
    /// Where in the file it is, without the line end.
    place: Range<usize>,
}

/// The first line of a file, if it names the separator and another line follows.
fn separator_line(text: &[u8]) -> Option<SeparatorLine> {
    let begin = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let end = begin + text[begin..].iter().position(ends_line)?;
    let line = &text[begin..end];
    let in_quotes = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\""));
    let (key, value) = in_quotes.unwrap_or(line).split_at_checked(b"sep=".len())?;
    let [separator] = *value else { return None };
    let is_sign = separator.is_ascii_punctuation() && separator != b'"';
    let may_separate = is_sign || separator == b'\t' || separator == b' ';
    (key.eq_ignore_ascii_case(b"sep=") && may_separate)
        .then(|| SeparatorLine { separator: char::from(separator), place: begin..end })
}

/// The text with empty lines in the place of these, so that the lines behind them keep their numbers.
fn with_empty_lines(text: &[u8], lines: Range<usize>) -> Vec<u8> {
    let ends: Vec<u8> = text[lines.clone()].iter().copied().filter(ends_line).collect();
    [&text[..lines.start], &ends, &text[lines.end..]].concat()
}

fn ends_line(byte: &u8) -> bool {
    matches!(*byte, b'\n' | b'\r')
}

/// The number of the line, from 1, in which the first record at or behind this place of a text begins, which may be the
/// header. The reader itself gives the line behind the record before, where a comment or an empty line may be.
pub fn line_of_record(text: &[u8], place: usize, comment: Option<char>) -> u64 {
    let place = record_place(text, place, comment);
    1 + text[..place].iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The place in a text at which the first record at or behind `place` begins, which is the beginning of a line: after
/// the mark of the byte order, empty lines and comments.
fn record_place(text: &[u8], place: usize, comment: Option<char>) -> usize {
    let begins_with_mark = place == 0 && text.starts_with(BYTE_ORDER_MARK);
    let mut place = if begins_with_mark { BYTE_ORDER_MARK.len() } else { place.min(text.len()) };
    loop {
        place += text[place..].iter().take_while(|byte| ends_line(byte)).count();
        let is_comment = comment.zip(text.get(place)).is_some_and(|(c, b)| c == char::from(*b));
        if !is_comment {
            return place;
        }
        place += text[place..].iter().position(ends_line).unwrap_or(text.len() - place);
    }
}

/// Where a byte of a text is whose values are separated by blanks.
#[derive(Clone, Copy)]
enum LinePart {
    /// Before the first value of a line.
    LineBegin,
    /// In a line that is no record.
    Comment,
    /// In a value, or behind its quotes.
    Value,
    /// Between the quotes of a value.
    Quotes,
    /// In blanks behind a value.
    Blank,
}

/// The text with one blank in the place of each run of blanks and tabs that is in no quotes, and none at the beginning
/// and the end of lines. Quotes begin at the beginning of a value, as for the reader of records. Lines that begin with
/// the sign of a comment stay as they are.
fn with_single_blanks(bytes: &[u8], comment: Option<char>) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut place = LinePart::LineBegin;
    for &byte in bytes {
        let is_blank = byte == b' ' || byte == b'\t';
        let begins_comment = comment.is_some_and(|sign| char::from(byte) == sign);
        place = match place {
            LinePart::Quotes if byte == b'"' => LinePart::Value,
            LinePart::Quotes => LinePart::Quotes,
            _ if ends_line(&byte) => LinePart::LineBegin,
            LinePart::Comment => LinePart::Comment,
            LinePart::LineBegin if is_blank => continue,
            LinePart::LineBegin if begins_comment => LinePart::Comment,
            LinePart::Value | LinePart::Blank if is_blank => {
                // It is written with the value that follows, so that none ends a line.
                place = LinePart::Blank;
                continue;
            }
            LinePart::LineBegin | LinePart::Blank if byte == b'"' => {
                out.extend(separator_after(place));
                LinePart::Quotes
            }
            LinePart::LineBegin | LinePart::Blank | LinePart::Value => {
                out.extend(separator_after(place));
                LinePart::Value
            }
        };
        out.push(byte);
    }
    out
}

/// What is written before a byte of a value: a blank behind the blanks that separate it from another value.
fn separator_after(place: LinePart) -> Option<u8> {
    matches!(place, LinePart::Blank).then_some(b' ')
}

/// How a file is written, as far as its first lines show it; what `stated` says is taken over. Without a separator that
/// divides the lines into equally many values, two or more, it is `stated`.
pub fn detected(bytes: &[u8], stated: CsvDialect) -> CsvDialect {
    let sample = first_lines(bytes);
    let named = separator_line(sample);
    let table = named.as_ref().map_or(sample, |line| &sample[line.place.end..]);
    let is_comment = table.trim_ascii_start().starts_with(b"#");
    let comment = stated.comment.or(is_comment.then_some('#'));
    let mut tried = SEPARATORS.to_vec();
    // What the file says comes first, and then what is stated or goes with the name of the file.
    for own in [stated.separator, named.map(|line| line.separator)].into_iter().flatten() {
        tried.retain(|separator| *separator != own);
        tried.insert(0, own);
    }
    for separator in tried {
        let dialect = CsvDialect { separator: Some(separator), comment, ..stated };
        if let Some(records) = records_of_one_length(sample, dialect) {
            return with_signs_of_numbers(dialect, &records);
        }
    }
    stated
}

/// The first lines of a file, whole ones if there are several.
fn first_lines(bytes: &[u8]) -> &[u8] {
    let most = &bytes[..bytes.len().min(MOST_BYTES)];
    let mut line_ends = most.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    if let Some((end, _)) = line_ends.nth(MOST_LINES - 1) {
        return &most[..=end];
    }
    match most.iter().rposition(|byte| *byte == b'\n') {
        Some(end) if bytes.len() > MOST_BYTES => &most[..=end],
        _ => most,
    }
}

/// The values of all lines of a text, if all have equally many, two or more; `None` if they do not.
fn records_of_one_length(sample: &[u8], dialect: CsvDialect) -> Option<Vec<Vec<String>>> {
    let sample = separable(sample, dialect);
    let mut records: Vec<Vec<String>> = Vec::new();
    for record in reader(&sample, CsvDialect { is_without_header: true, ..dialect }).records() {
        records.push(record.ok()?.iter().map(str::to_owned).collect());
    }
    let length = records.first()?.len();
    (length > 1).then_some(records)
}

/// The dialect with the decimal sign and the sign between thousands that these records have, if it states none. The
/// first record may have names.
fn with_signs_of_numbers(dialect: CsvDialect, records: &[Vec<String>]) -> CsvDialect {
    let values = || records.iter().skip(1).flatten().map(String::as_str);
    if dialect.decimal.is_some() || dialect.thousands.is_some() {
        return dialect;
    }
    let has_group_of_points = |value: &str| is_grouped(value, '.', ',');
    let has_points =
        values().any(|value| has_decimals_after(value, '.') && !has_group_of_points(value));
    let with_commas: Vec<&str> = values()
        .filter(|value| has_decimals_after(value, ',') || is_grouped(value, ',', '.'))
        .collect();
    // Numbers such as "1,234", which may have either meaning, have groups where commas separate values, since a writer
    // of decimal commas takes another separator.
    let may_be_groups = with_commas.iter().all(|value| is_grouped(value, ',', '.'));
    if !with_commas.is_empty() && may_be_groups && (dialect.separator == Some(',') || has_points) {
        return CsvDialect { thousands: Some(','), ..dialect };
    }
    let has_decimal_commas = !with_commas.is_empty()
        || values().any(|value| value.contains(',') && has_group_of_points(value));
    // With points before decimals too, no reading is right for all numbers.
    if !has_decimal_commas || has_points {
        return dialect;
    }
    let has_groups = values().any(has_group_of_points);
    CsvDialect { decimal: Some(','), thousands: has_groups.then_some('.'), ..dialect }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<(&'static str, String)> {
        detected(text.as_bytes(), CsvDialect::default()).keys()
    }

    #[track_caller]
    fn says(text: &str, expected: &str) {
        let found: Vec<String> =
            keys(text).into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
        assert_eq!(found.join(", "), expected, "{text}");
    }

    #[test]
    fn separators_divide_lines_into_equally_many_values() {
        says("a,b\n1,2\n3,4\n", "separator = \",\"");
        says("a;b\n1;2\n3;4", "separator = \";\"");
        says("a\tb c\n1\t2\n", "separator = \"\\t\"");
        says("a|b\n1|x, y\n", "separator = \"|\"");
        says("a  b\n 1\t2 \n", "separator = \" \"");
        says("a,b;c\n1,2;3\n", "separator = \",\"");
        // Neither a table nor a text of several values in each line.
        says("a\n1\n", "");
        says("a,b\n1\n2,3,4\n", "");
        says("", "");
    }

    #[test]
    fn signs_of_numbers_are_those_that_all_numbers_have() {
        says("a;b\n1,5;2\n-0,25;3\n", "separator = \";\", decimal = \",\"");
        says("a;b\n1.250,5;2\n0,25;3\n", "separator = \";\", decimal = \",\", thousands = \".\"");
        says("a,b\n\"1,250,000\",2.5\n\"1,000\",3\n", "separator = \",\", thousands = \",\"");
        says("a,b\n\"0,12\",2\n\"1,250\",3\n", "separator = \",\", decimal = \",\"");
        says("a;b\n1.5;x, y\n2.5;z\n", "separator = \";\"");
        says("# about\n# it\na,b\n1,2\n", "separator = \",\", comment = \"#\"");
    }

    #[test]
    fn numbers_have_points_and_no_groups() {
        let dialect =
            |decimal, thousands| CsvDialect { decimal, thousands, ..CsvDialect::default() };
        for (value, decimal, thousands, plain) in [
            ("1.5", None, None, "1.5"),
            ("1,5", Some(','), None, "1.5"),
            ("1,5,2", Some(','), None, "1,5,2"),
            ("1,250,000.5", None, Some(','), "1250000.5"),
            ("-12,500", None, Some(','), "-12500"),
            ("1,25", None, Some(','), "1,25"),
            ("0,125", None, Some(','), "0,125"),
            ("1.250,5", Some(','), Some('.'), "1250.5"),
            ("1 250", None, Some(' '), "1250"),
            ("NA", Some(','), Some('.'), "NA"),
        ] {
            let found = plain_number(value, dialect(decimal, thousands));
            assert_eq!(found.as_deref(), Some(plain), "{value}");
        }
        assert_eq!(plain_number("1.5", dialect(Some(','), None)), None);
    }

    /// As R's `write.table` writes a table with names of rows, in whose header they have no name.
    #[test]
    fn names_of_rows_get_an_empty_name() {
        let with = |separator| CsvDialect { separator: Some(separator), ..CsvDialect::default() };
        let as_read = |text: &str, dialect| {
            String::from_utf8(separable(text.as_bytes(), dialect).into_owned()).unwrap()
        };
        for (text, separator, read) in [
            (
                "\"x\" \"y\"\n\"1\"  5 6\n\"2\" 7 8\n",
                ' ',
                "\"\" \"x\" \"y\"\n\"1\" 5 6\n\"2\" 7 8\n",
            ),
            ("x\ty\na\t5\t\nb\t\t6\n", '\t', "\"\"\tx\ty\na\t5\t\nb\t\t6\n"),
            ("\u{feff}\nx,y\na,5,6\n", ',', "\u{feff}\n\"\",x,y\na,5,6\n"),
        ] {
            assert_eq!(as_read(text, with(separator)), read);
        }
        let noted = CsvDialect { comment: Some('#'), ..with(',') };
        assert_eq!(as_read("# p,q,r\nx,y\na,5,6\n", noted), "# p,q,r\n\"\",x,y\na,5,6\n");
        // A separator at the end of each line, an unquoted comma, names of rows that are not unique, and one column.
        for text in [
            "x,y\n1,2,\n3,4,\n",
            "x,y\n1,2,3\n4,5\n",
            "x,y\na,5,6\na,7,8\n",
            "x\na,5\nb,6\n",
            "x,y\n",
        ] {
            assert_eq!(as_read(text, with(',')), text);
        }
        let without = CsvDialect { is_without_header: true, ..with(',') };
        assert_eq!(as_read("x,y\na,5,6\n", without), "x,y\na,5,6\n");
        says("\"x\" \"y\"\n\"1\" 5 6\n\"2\" 7 8\n", "separator = \" \"");
    }

    #[test]
    fn lines_in_which_orange_describes_columns_are_no_records() {
        let tabs = CsvDialect { separator: Some('\t'), ..CsvDialect::default() };
        for (text, read) in [
            ("a\tkind\nc\td\n\tclass\n1\tx\n", "a\tkind\n\n\n1\tx\n"),
            ("\u{feff}a\tb\r\ncontinuous\tx y\r\n\tmeta\r\n1\tx", "\u{feff}a\tb\r\n\r\n\r\n1\tx"),
            // Records, of which the second is none of Orange's.
            ("a\tkind\n1\tc\n\td\n2\tclass\n", "a\tkind\n1\tc\n\td\n2\tclass\n"),
            ("a\tkind\nc\td\n", "a\tkind\nc\td\n"),
            ("a\tb\nc\td\n\t\n", "a\tb\nc\td\n\t\n"),
        ] {
            let found = separable(text.as_bytes(), tabs);
            assert_eq!(String::from_utf8(found.into_owned()).unwrap(), read, "{text:?}");
        }
        let without = CsvDialect { is_without_header: true, ..tabs };
        let text = b"a\tkind\nc\td\n\tclass\n";
        assert_eq!(&*separable(text, without), text);
    }

    #[test]
    fn a_first_line_may_name_the_separator() {
        says("sep=;\na;b\n1;2\n", "separator = \";\"");
        says("\u{feff}SEP=\t\r\na\tb\r\n1\t2\r\n", "separator = \"\\t\"");
        says("\"sep=;\"\na;b\n1,5;2,5\n", "separator = \";\", decimal = \",\"");
        // A separator that is not usual, and one that others could be taken for.
        says("sep=^\na^b\n1^2\n", "separator = \"^\"");
        says("sep=;\na,x;b,y\n1;2\n", "separator = \";\"");
        says("sep=,\n# a;b\na,b\n1,2\n", "separator = \",\", comment = \"#\"");
        // It is none of the separator of the file, or names none.
        says("sep=;\na,b\n1,2\n", "");
        says("sep=x\n1;2\n", "");
        let read = |text: &str, separator| {
            let dialect = CsvDialect { separator: Some(separator), ..CsvDialect::default() };
            String::from_utf8(separable(text.as_bytes(), dialect).into_owned()).unwrap()
        };
        assert_eq!(read("\u{feff}sep=;\r\na;b\r\n", ';'), "\u{feff}\r\na;b\r\n");
        assert_eq!(read("sep=;\nx;y\na;5;6\n", ';'), "\n\"\";x;y\na;5;6\n");
        assert_eq!(read("sep= \na  b\n", ' '), "\na b\n");
        assert_eq!(read("sep=;\na;b\n", ','), "sep=;\na;b\n");
    }

    #[test]
    fn blanks_are_made_single() {
        let text = "  a \t b\r\n 1  \"x  y\" \n\n2   in\"ch \r 3  4";
        let plain = "a b\r\n1 \"x  y\"\n\n2 in\"ch\r3 4";
        assert_eq!(with_single_blanks(text.as_bytes(), None), plain.as_bytes());
        let noted = b"# length  in \"\na  b\n";
        assert_eq!(with_single_blanks(noted, Some('#')), b"# length  in \"\na b\n");
    }
}
