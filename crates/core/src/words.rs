//! Words of messages, pages and tables.

use std::borrow::Cow;

/// A count with its noun: `1 cell`, `2 cells`.
pub fn count(number: usize, noun: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{end}")
}

/// The parts that are not empty, with commas between them.
pub fn joined(parts: &[&str]) -> String {
    parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// What begins a formula in a spreadsheet, and what [`inert`] puts before it.
const BEGINNINGS: &[char] = &['=', '+', '-', '@', '\t', '\r', '\''];

/// A text as a field of CSV that a spreadsheet shows and does not compute: `'` is put before
/// what would begin a formula. A number is no formula and stays as it is.
pub fn inert(text: &str) -> Cow<'_, str> {
    if text.starts_with(BEGINNINGS) && text.parse::<f64>().is_err() {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text that [`inert`] made a field of.
pub fn revived(field: &str) -> &str {
    field.strip_prefix('\'').filter(|text| text.starts_with(BEGINNINGS)).unwrap_or(field)
}

/// A text as one word of a shell command, in quotes.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text as one word of a shell command, in quotes if it needs them.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if text.is_empty() || !text.chars().all(plain) { quoted(text) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{count, inert, revived};

    #[test]
    fn no_text_is_a_formula_and_numbers_stay() {
        for text in ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(1)", "\t=1", "-1-2", "'=1"] {
            assert_eq!(inert(text), format!("'{text}"));
            assert_eq!(revived(&inert(text)), text);
        }
        for text in ["", "a=1", "-1", "+2.5e-3", "-inf", "×1", "0 of 4 ≠"] {
            assert_eq!((&*inert(text), revived(text)), (text, text));
        }
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| count(n, "cell")), ["0 cells", "1 cell", "2 cells"]);
    }
}
