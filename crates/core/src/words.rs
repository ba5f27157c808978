//! Helpers for the words of messages, pages and tables.

use std::borrow::Cow;

/// A count with its noun, singular or plural: `1 cell`, `2 cells`.
pub fn count(number: usize, noun: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{end}")
}

/// A count with a space before each group of three digits: `100 000`.
pub fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let parts: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|part| std::str::from_utf8(part).unwrap_or_default())
        .collect();
    parts.join(" ")
}

/// The parts that are not empty, separated by commas.
pub fn joined(parts: &[&str]) -> String {
    parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The characters that begin a formula in a spreadsheet, and the quote that [`inert`] prepends.
const BEGINNINGS: &[char] = &['=', '+', '-', '@', '\t', '\r', '\''];

/// A CSV field that a spreadsheet shows instead of computing it: `'` is prepended to a text
/// that would begin a formula. Numbers are unchanged, since they are not formulas.
pub fn inert(text: &str) -> Cow<'_, str> {
    if text.starts_with(BEGINNINGS) && text.parse::<f64>().is_err() {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text whose field [`inert`] returns: the inverse of [`inert`].
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
    use super::{count, inert, revived, thousands};

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

    #[test]
    fn thousands_are_apart() {
        assert_eq!([0, 999, 1000, 100_000].map(thousands), ["0", "999", "1 000", "100 000"]);
    }
}
