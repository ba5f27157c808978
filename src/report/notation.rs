//! Symbols and numbers in prose as HTML writes them: `θ_T`, `θ_c^(H)` and `1.2e-3`.

use exactfed_core::words::power_of_ten;
use minijinja::HtmlEscape;
use minijinja::value::Value;

/// The most characters of an index: longer ones are names, as `sq_error`.
const LONGEST_INDEX: usize = 2;

/// A text as HTML: the index of a symbol of one letter is an index, so that `F_c` becomes
/// `F<sub>c</sub>` and `d_(k,i)` becomes `d<sub>k,i</sub>`, a letter or brackets after `^` are
/// raised, and numbers are written as on the rest of a page, `1.2e-3` as `1.2·10⁻³`. Everything else is
/// escaped, so that templates print the value as it is.
pub fn notation(text: &str) -> Value {
    let text = &numbers(text);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let mut begin = 0;
    while let Some(found) = text[begin..].find(['_', '^']) {
        let place = begin + found;
        begin = place + 1;
        let found = match text.as_bytes()[place] {
            b'_' => index_at(text, place).map(|index| {
                let inner = index.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
                (format!("<sub>{}</sub>", HtmlEscape(inner.unwrap_or(index))), index.len())
            }),
            _ => power_at(&text[place + 1..]).map(|power| {
                let inner = match power.strip_prefix('(').and_then(|p| p.strip_suffix(')')) {
                    // The brackets of a power of a symbol with an index belong to the symbol.
                    Some(inner) if done != place || place == 0 => inner,
                    _ => power,
                };
                (format!("<sup>{}</sup>", HtmlEscape(inner)), power.len())
            }),
        };
        let Some((html, len)) = found else { continue };
        out.push_str(&HtmlEscape(&text[done..place]).to_string());
        out.push_str(&html);
        begin += len;
        done = begin;
    }
    out.push_str(&HtmlEscape(&text[done..]).to_string());
    Value::from_safe_string(out)
}

/// A text in which no line break separates a symbol from its number (H = 10), a number from its unit (5 %), or the
/// groups of a number's digits.
pub fn unbroken(text: &str) -> String {
    let text = text
        .replace(" = ", "\u{a0}=\u{a0}")
        .replace(" ± ", "\u{a0}±\u{a0}")
        .replace(" %", "\u{a0}%")
        // A word joiner keeps a sign with what it belongs to.
        .replace("−(", "−\u{2060}(")
        .replace("1/", "1/\u{2060}");
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut after = text.chars().skip(1);
    for c in text.chars() {
        let next = after.next().unwrap_or(' ');
        let is_within_number = c == ' ' && before.is_ascii_digit() && next.is_ascii_digit();
        out.push(if is_within_number { '\u{a0}' } else { c });
        before = c;
    }
    out
}

/// A text in which numbers are written as on pages: with powers of ten in place of exponents, and with a minus in place
/// of a hyphen.
pub fn numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = &rest[..rest.find(|c| !is_part_of_number(c)).unwrap_or(rest.len())];
        if word.is_empty() {
            let other = &rest[..rest.find(is_part_of_number).unwrap_or(rest.len())];
            out.push_str(other);
            rest = &rest[other.len()..];
            continue;
        }
        // A full stop after a number ends a sentence.
        let number = word.trim_end_matches('.');
        out.push_str(&number_text(number).unwrap_or_else(|| number.to_owned()));
        out.push_str(&word[number.len()..]);
        rest = &rest[word.len()..];
    }
    out
}

/// Whether a character may stand in a number, or in a word that must not be taken for one.
fn is_part_of_number(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-+".contains(c)
}

/// A number as pages write it, from a word that writes it with an exponent or a hyphen as its sign; `None` for numbers
/// that need no change, and for other words.
fn number_text(word: &str) -> Option<String> {
    let (sign, digits) = word.strip_prefix('-').map_or(("", word), |digits| ("−", digits));
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((digits, ""));
    if !is_decimal(mantissa) || (sign.is_empty() && exponent.is_empty()) {
        return None;
    }
    if exponent.is_empty() {
        return (digits == mantissa).then(|| format!("{sign}{mantissa}"));
    }
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 1000)?;
    Some(match mantissa {
        "1" => format!("{sign}{}", power_of_ten(exponent)),
        _ => format!("{sign}{mantissa}·{}", power_of_ten(exponent)),
    })
}

/// Whether a text is a short decimal number without a sign and an exponent.
fn is_decimal(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.len() < 12
        && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Whether a character belongs to the letter before it: a bar or a tilde over it, or a prime.
fn is_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c) || "'′".contains(c)
}

/// Whether a character may stand in a name.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The index after the underscore at this place, if a symbol of one letter stands before it, which a power may precede,
/// as in `∇²f_c`. An index in brackets may be longer, and may stand at a 1, which is then the indicator function.
fn index_at(text: &str, place: usize) -> Option<&str> {
    let mut before = text[..place].chars().rev().filter(|c| !is_mark(*c));
    let symbol = before.next()?;
    let alone = !before.next().is_some_and(|c| is_word(c) && !"⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c));
    let after = &text[place + 1..];
    if let Some(index) = brackets_at(after) {
        return (alone && (symbol.is_alphabetic() || symbol == '1')).then_some(index);
    }
    let is_symbol = symbol.is_alphabetic() && alone;
    let index = &after[..after.find(|c| !is_word(c)).unwrap_or(after.len())];
    let is_index = (1..=LONGEST_INDEX).contains(&index.chars().count()) && !index.contains('_');
    (is_symbol && is_index).then_some(index)
}

/// The power with which a text begins that follows `^`: a letter that no other letter or digit follows, or brackets
/// with what is in them; `None` if the text begins with neither.
fn power_at(power: &str) -> Option<&str> {
    let mut letters = power.chars();
    let letter = letters.next().filter(|c| c.is_ascii_alphabetic());
    match letter.filter(|_| !letters.next().is_some_and(char::is_alphanumeric)) {
        Some(letter) => Some(&power[..letter.len_utf8()]),
        None => brackets_at(power),
    }
}

/// The brackets with which a text begins, with what is in them; `None` if it begins otherwise, or they are not closed.
fn brackets_at(text: &str) -> Option<&str> {
    let text = text.starts_with('(').then_some(text)?;
    let mut depth = 0;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    })?;
    Some(&text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_symbols_become_indices() {
        let html = |text: &str| notation(text).to_string();
        assert_eq!(html("‖θ_T − θ*‖², F̄_c(θ*)"), "‖θ<sub>T</sub> − θ*‖², F̄<sub>c</sub>(θ*)");
        assert_eq!(html("Σ θ_c^(H)‖"), "Σ θ<sub>c</sub><sup>(H)</sup>‖");
        assert_eq!(html("θ'_t, ξ′_c"), "θ&#x27;<sub>t</sub>, ξ′<sub>c</sub>");
        assert_eq!(
            html("O((1 − γμ)^(2(H + 1)t)), γ^(3/2), ^(, x^2"),
            "O((1 − γμ)<sup>2(H + 1)t</sup>), γ<sup>3&#x2f;2</sup>, ^(, x^2"
        );
        assert_eq!(html("(1 − γμ)^H, θ_t^c"), "(1 − γμ)<sup>H</sup>, θ<sub>t</sub><sup>c</sup>");
        assert_eq!(html("x^Ht, x^"), "x^Ht, x^");
        assert_eq!(
            html("∇²f_c, Σ_(h=1..H) 1_(k,i) d_(k,i)^(2)"),
            "∇²f<sub>c</sub>, Σ<sub>h=1..H</sub> 1<sub>k,i</sub> d<sub>k,i</sub><sup>(2)</sup>"
        );
        assert_eq!(html("<b> C_c & a_12"), "&lt;b&gt; C<sub>c</sub> &amp; a<sub>12</sub>");
        for name in
            ["sq_error", "a_b_c", "x_123", "_c", "F_", "to_c", "1_c", "F_ c", "to_(c)", "F_(c"]
        {
            assert_eq!(html(name), name);
        }
    }

    #[test]
    fn numbers_are_those_of_the_page() {
        assert_eq!(numbers("1.2e-3 [-1e5, 0.5e0]; -0.5."), "1.2·10⁻³ [−10⁵, 0.5·1]; −0.5.");
        for same in ["8e1f-2", "1e2e3", "fig1-2", "0.01 to 10", "2.0.1", "-a", "12345678901234e3"] {
            assert_eq!(numbers(same), same);
        }
        assert_eq!(unbroken("H = 10, to 5 %"), "H\u{a0}=\u{a0}10, to 5\u{a0}%");
        assert_eq!(unbroken("1 800 or 2 times"), "1\u{a0}800 or 2 times");
    }
}
