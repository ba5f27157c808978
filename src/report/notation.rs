//! Symbols with indices in prose: `θ_T` and `θ_c^(H)` as HTML writes them.

use minijinja::HtmlEscape;
use minijinja::value::Value;

/// The most characters of an index: longer ones are names, as `sq_error`.
const LONGEST_INDEX: usize = 2;

/// A text as HTML, where the index of a symbol of one letter is an index: `F_c` becomes
/// `F<sub>c</sub>`.
pub fn notation(text: &str) -> Value {
    let mut out = String::with_capacity(text.len());
    let (mut done, mut begin) = (0, 0);
    while let Some(found) = text[begin..].find('_') {
        let place = begin + found;
        begin = place + 1;
        let Some(index) = index_at(text, place) else { continue };
        out.push_str(&HtmlEscape(&text[done..place]).to_string());
        out.push_str(&format!("<sub>{index}</sub>"));
        done = begin + index.len();
        if let Some(power) = power_at(&text[done..]) {
            out.push_str(&format!("<sup>{}</sup>", HtmlEscape(power)));
            done += '^'.len_utf8() + power.len();
        }
        begin = done;
    }
    out.push_str(&HtmlEscape(&text[done..]).to_string());
    Value::from_safe_string(out)
}

/// The index after the underscore at this place, if a symbol of one letter stands before it.
fn index_at(text: &str, place: usize) -> Option<&str> {
    // A bar or a tilde over a letter is a character of its own.
    let is_mark = |c: char| ('\u{300}'..='\u{36f}').contains(&c);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut before = text[..place].chars().rev().filter(|c| !is_mark(*c));
    let is_symbol = before.next()?.is_alphabetic() && !before.next().is_some_and(is_word);
    let after = &text[place + 1..];
    let index = &after[..after.find(|c| !is_word(c)).unwrap_or(after.len())];
    let is_index = (1..=LONGEST_INDEX).contains(&index.chars().count()) && !index.contains('_');
    (is_symbol && is_index).then_some(index)
}

/// What is in brackets after `^`, with the brackets.
fn power_at(rest: &str) -> Option<&str> {
    let power = rest.strip_prefix('^').filter(|power| power.starts_with('('))?;
    power.find(')').map(|end| &power[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_symbols_become_indices() {
        let html = |text: &str| notation(text).to_string();
        assert_eq!(html("‖θ_T − θ*‖², F̄_c(θ*)"), "‖θ<sub>T</sub> − θ*‖², F̄<sub>c</sub>(θ*)");
        assert_eq!(html("Σ θ_c^(H)‖"), "Σ θ<sub>c</sub><sup>(H)</sup>‖");
        assert_eq!(html("<b> C_c & a_12"), "&lt;b&gt; C<sub>c</sub> &amp; a<sub>12</sub>");
        for name in ["sq_error", "a_b_c", "x_123", "_c", "F_", "to_c", "1_c", "F_ c"] {
            assert_eq!(html(name), name);
        }
    }
}
