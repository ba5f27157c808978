//! Helpers for the words of messages, pages and tables.

use std::borrow::{Borrow, Cow};

/// A count with its noun, singular or plural: `1 cell`, `2 cells`. The plural is the noun with an s.
pub fn count(number: usize, noun: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{end}")
}

/// The most characters of a name or a value from a file that a message shows.
const MOST_CHARACTERS: usize = 60;

/// A text from a file for use in a message: its first 60 characters, with U+FFFD in the place of line breaks and other
/// control characters, and `…` at the end if characters were left out.
pub fn sanitised(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(MOST_CHARACTERS)
        .map(|c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(MOST_CHARACTERS).is_some() {
        short.push('…');
    }
    short
}

/// A number as an ordinal in figures, with its English ending: `1st`, `2nd`, `11th`.
pub fn ordinal(number: usize) -> String {
    let end = match (number % 10, number % 100) {
        (1..=3, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
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

/// A count as a whole number with a space before each group of three digits (`1 800`). `None` for what is written with
/// a few significant digits instead: a number with a fraction, such as a mean of counts, a negative one, and a million
/// or more.
pub fn whole(value: f64) -> Option<String> {
    let is_whole = value.fract() == 0.0 && (0.0..1e6).contains(&value);
    is_whole.then(|| thousands(value as usize))
}

/// 10 to the power `exponent`, as text: `10⁻³`, and `1` and `10` for the powers 0 and 1.
pub fn power_of_ten(exponent: i32) -> String {
    if (0..=1).contains(&exponent) {
        return if exponent == 0 { "1".into() } else { "10".into() };
    }
    let digits = exponent.to_string();
    let raised = digits.chars().map(|c| match c {
        '-' => '⁻',
        d => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][d as usize - '0' as usize],
    });
    format!("10{}", raised.collect::<String>())
}

/// A number, rounded to `digits` significant digits, for pages: `0.025`, `4.5`, `1 900`, and `1.3·10⁻⁴`
/// below 0.01 and from 1 000 000 on; `–` for NaN.
pub fn readable(value: f64, digits: usize) -> String {
    significant(value, digits, Characters::OfPages)
}

/// A number, rounded to `digits` significant digits, in characters of a keyboard: `0.025`, `4.5` and
/// `1.3e-4`. It has no exponent where the absolute value of the exponent would be at most `digits - 1`.
pub fn plain(value: f64, digits: usize) -> String {
    significant(value, digits, Characters::OfKeyboard)
}

/// The characters in which a number is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Characters {
    /// The characters of pages, as [`readable`] writes it: 10⁻⁴ is an exponent.
    OfPages,
    /// The characters of a keyboard, as [`plain`] writes it: e-4 is an exponent.
    OfKeyboard,
}

/// A number, rounded to `digits` significant digits, 1 or more, in these characters: `0`, `–` for NaN and `∞` whatever
/// the characters are.
fn significant(value: f64, digits: usize, characters: Characters) -> String {
    let raised = characters == Characters::OfPages;
    if value.is_nan() || value == 0.0 {
        return if value == 0.0 { "0".into() } else { "–".into() };
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞".into() } else { "−∞".into() };
    }
    let decimals = i32::try_from(digits).unwrap_or(i32::MAX) - 1;
    // Rounded first, so that 0.0099996 is 0.01.
    let scientific = format!("{:.*e}", digits.saturating_sub(1), value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let rounded: f64 = scientific.parse().unwrap_or(f64::NAN);
    let most_without_exponent = if raised { 2 } else { decimals };
    let text = match exponent {
        e if e.abs() <= most_without_exponent => {
            format!("{rounded:.*}", usize::try_from(decimals - e).unwrap_or(0))
        }
        3..=5 if raised => thousands(rounded as usize),
        _ if raised => format!("{mantissa}·{}", power_of_ten(exponent)),
        _ => scientific,
    };
    if value >= 0.0 {
        text
    } else if raised {
        format!("−{text}")
    } else {
        format!("-{text}")
    }
}

/// A count, or a mean of counts, for pages: as [`whole`] where that is possible, and otherwise rounded to `digits`
/// significant digits: `24`, `24.1`.
pub fn number(value: f64, digits: usize) -> String {
    whole(value).unwrap_or_else(|| readable(value, digits))
}

/// The parts that are not empty, separated by a comma and a space; empty if all are.
pub fn joined(parts: &[&str]) -> String {
    parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A list of texts as a sentence has it: `a`, `a and b`, `a, b and c`.
pub fn enumerated<S: Borrow<str>>(texts: &[S]) -> String {
    match texts {
        [head @ .., last] if !head.is_empty() => {
            format!("{} and {}", head.join(", "), last.borrow())
        }
        all => all.concat(),
    }
}

/// The characters that begin a formula in a spreadsheet, and the quote that [`inert`] prepends.
const BEGINNINGS: &[char] = &['=', '+', '-', '@', '\t', '\r', '\''];

/// A CSV field that a spreadsheet shows instead of computing it: `'` is prepended to a text
/// that would begin a formula, and to one that begins with `'`, so that [`revived`] can undo it. Numbers are unchanged,
/// since they are not formulas. Commas, quotes and line breaks are left to the writer of CSV.
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

/// The hint "did you mean `x`?" for an unknown name, where x is the allowed name that is closest to it: at most a third
/// of the letters, or one, differ; or, if there is no such name, one of the two is the beginning of the other but for
/// at most its last letter, or the unknown name is the last word of the allowed one, as `epochs` of `local-epochs`.
/// `None` if no allowed name is close in one of these ways.
pub fn nearest(name: &str, allowed: &[&str]) -> Option<String> {
    let distance = |other: &&&str| strsim::damerau_levenshtein(name, other);
    let close = allowed.iter().filter(|other| {
        let longer = name.chars().count().max(other.chars().count());
        distance(other) < longer && distance(other) <= (longer / 3).max(1)
    });
    let with_this_beginning = allowed.iter().filter(|other| begin_alike(name, other));
    let with_this_last_word = allowed.iter().filter(|other| is_last_word(name, other));
    let best = close
        .min_by_key(distance)
        .or_else(|| with_this_beginning.min_by_key(distance))
        .or_else(|| with_this_last_word.min_by_key(distance))?;
    Some(format!("did you mean `{best}`?"))
}

/// Whether one of two names is the beginning of the other but for at most its last letter; at least three letters must
/// agree.
fn begin_alike(one: &str, other: &str) -> bool {
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    common >= 3 && common + 1 >= one.chars().count().min(other.chars().count())
}

/// Whether a name of three letters or more is the last of several words of another name, in the singular or the plural.
fn is_last_word(name: &str, other: &str) -> bool {
    let last = other.rsplit_once(['-', '_', ' ']).map(|(_, last)| last);
    let is_same = last.is_some_and(|last| {
        last.strip_suffix('s').unwrap_or(last) == name.strip_suffix('s').unwrap_or(name)
    });
    is_same && name.chars().count() >= 3
}

/// A text as one word of a shell command, always in single quotes.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text as one word of a shell command, in quotes only if it has characters that a shell may give a meaning.
pub fn shell_word(text: &str) -> String {
    let has_plain_characters =
        text.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c));
    if has_plain_characters && !text.is_empty() { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::{count, enumerated, inert, nearest, ordinal, readable, revived, thousands};

    #[test]
    fn counts_and_ordinals_read_as_they_are_spoken() {
        assert_eq!([0, 1, 2].map(|n| count(n, "cell")), ["0 cells", "1 cell", "2 cells"]);
        let lists = [0, 1, 2, 3].map(|n| enumerated(&["a", "b", "c"][..n]));
        assert_eq!(lists, ["", "a", "a and b", "a, b and c"]);
        assert_eq!([0, 999, 1000, 100_000].map(thousands), ["0", "999", "1 000", "100 000"]);
        let all = [1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 24, 111].map(ordinal).join(" ");
        assert_eq!(all, "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd 24th 111th");
    }

    /// A number with two significant digits.
    fn two(value: f64) -> String {
        readable(value, 2)
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([two(4.52), two(0.0), two(1.0), two(-0.25)], ["4.5", "0", "1.0", "−0.25"]);
        assert_eq!([two(1921.0), two(123.4), two(99.6)], ["1 900", "120", "100"]);
        assert_eq!([two(0.00999), two(1.26e-3), two(2e6)], ["0.010", "1.3·10⁻³", "2.0·10⁶"]);
        assert_eq!([two(f64::NAN), two(f64::INFINITY)], ["–", "∞"]);
        assert_eq!([readable(1.2605e-3, 3), readable(12345.0, 3)], ["1.26·10⁻³", "12 300"]);
    }

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
    fn the_name_that_was_meant() {
        for (name, meant) in [
            ("step-sise", Some("step-size")),
            ("tuning", Some("tune")),
            ("out", Some("outcome")),
            ("test_loss", Some("test-loss")),
            ("te", None),
            ("sizes", Some("step-size")),
            ("loss", Some("test-loss")),
            ("ize", None),
            ("momentum", None),
        ] {
            let found = nearest(name, &["step-size", "tune", "outcome", "test-loss", "title"]);
            assert_eq!(found, meant.map(|meant| format!("did you mean `{meant}`?")), "{name}");
        }
    }
}
