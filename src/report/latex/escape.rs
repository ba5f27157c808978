//! Text as LaTeX shows it literally, with the mathematics that this program writes.
//!
//! *Invariant*: the output is ASCII, except for accented Latin letters, which every engine knows,
//! and no character of a manifest acts as a command.

use crate::report::notation::numbers;
use std::collections::HashMap;
use std::sync::LazyLock;

/// For each character what stands for it in LaTeX.
type CharacterTable = HashMap<char, &'static str>;

/// The table of a text in which each character is followed by what stands for it.
macro_rules! table {
    ($text:literal) => {
        LazyLock::new(|| {
            let words: Vec<&str> = $text.split_whitespace().collect();
            let pair = |pair: &[&'static str]| Some((pair[0].parse().ok()?, pair[1]));
            words.chunks_exact(2).filter_map(pair).collect()
        })
    };
}

/// Characters, each followed by its symbol in mathematics.
static SYMBOLS: LazyLock<CharacterTable> = table!(
    r"
    Γ \Gamma   Δ \Delta   Λ \Lambda   Π \Pi   Σ \Sigma   Φ \Phi   Ψ \Psi   Ω \Omega   α \alpha
    β \beta   γ \gamma   δ \delta   ε \varepsilon   ζ \zeta   η \eta   θ \theta   κ \kappa
    λ \lambda   μ \mu   µ \mu   ν \nu   ξ \xi   π \pi   ρ \rho   σ \sigma   τ \tau   φ \varphi
    χ \chi   ψ \psi   ω \omega   Ā \bar{A}   ā \bar{a}   Ã \tilde{A}   ℓ \ell   ± \pm   × \times   · \cdot
    − -   ≤ \leq   ≥ \geq   ≠ \neq   ≈ \approx   ≪ \ll   ≫ \gg   ≲ \lesssim   ≻ \succ
    ≼ \preceq   ≽ \succeq   ∨ \vee   ∧ \wedge   ∝ \propto   ∞ \infty   ∈ \in   ∇ \nabla   ∂ \partial
    √ \surd   ⊗ \otimes
    → \to   ← \leftarrow   ‖ \Vert   ⟨ \langle   ⟩ \rangle   ° ^{\circ}   ½ \tfrac{1}{2}
    ✕ \times   < <   > >   | |
"
);

/// Superscript characters, each followed by what it raises.
static RAISED: LazyLock<CharacterTable> = table!(
    r"
    ⁰ 0   ¹ 1   ² 2   ³ 3   ⁴ 4   ⁵ 5   ⁶ 6   ⁷ 7   ⁸ 8   ⁹ 9   ⁻ -   ⁺ +   ⁱ i   ⁿ n   ˢ s
    ᵗ t   ᴴ H   ᵀ \top
"
);

/// Subscript characters, each followed by what it lowers.
static LOWERED: LazyLock<CharacterTable> = table!(
    r"
    ₀ 0   ₁ 1   ₂ 2   ₃ 3   ₄ 4   ₅ 5   ₆ 6   ₇ 7   ₈ 8   ₉ 9   ₖ k
"
);

/// Accents that follow their letter.
const ACCENTS: &[(char, &str)] =
    &[('\u{302}', r"\hat"), ('\u{303}', r"\tilde"), ('\u{304}', r"\bar"), ('\u{305}', r"\bar")];

/// Characters that are not mathematics, each followed by what shows it literally.
static TEXT: LazyLock<CharacterTable> = table!(
    r#"
    \ \textbackslash{}   { \{   } \}   $ \$   & \&   # \#   % \%   _ \_   ~ \textasciitilde{}
    ^ \textasciicircum{}   " \textquotedbl{}   ' '   ` \textasciigrave{}   – --   — ---
    … \ldots{}   § \S{}   ’ '   ‘ `   “ ``   ” ''
"#
);

/// A part of the output.
enum Piece {
    /// LaTeX of a paragraph.
    Text(String),
    /// LaTeX of a formula, without what begins and ends a formula.
    Math(String),
}

/// Text for LaTeX, with numbers as on the other pages. Symbols, raised and lowered characters become formulas, and a
/// letter may have an index of one character after `_`, as in θ_c; every other character stands for itself.
pub fn text(text: &str) -> String {
    let chars: Vec<char> = numbers(text).chars().collect();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        let after_symbol = matches!(pieces.last(), Some(Piece::Math(_)));
        if let Some((_, accent)) = ACCENTS.iter().find(|(from, _)| *from == c) {
            let letter = match pieces.pop() {
                Some(Piece::Math(m)) => m,
                Some(Piece::Text(t)) => t,
                None => String::new(),
            };
            pieces.push(Piece::Math(format!("{accent}{{{letter}}}")));
        } else if c == '*' && after_symbol {
            pieces.push(Piece::Math("^{*}".into()));
        } else if let Some(letter) = indexed(&chars, i) {
            if !after_symbol {
                pieces.pop();
                pieces.push(Piece::Math(letter.into()));
            }
            pieces.push(Piece::Math(format!("_{{{}}}", chars[i + 1])));
            i += 1;
        } else if let Some((mark, table)) = [("^", &*RAISED), ("_", &*LOWERED)]
            .into_iter()
            .find(|(_, table)| table.contains_key(&c))
        {
            let run = chars[i..].iter().map_while(|c| table.get(c).copied());
            let run: Vec<&str> = run.collect();
            pieces.push(Piece::Math(format!("{mark}{{{}}}", run.concat())));
            i += run.len() - 1;
        } else if let Some(symbol) = SYMBOLS.get(&c) {
            let apart = if symbol.ends_with(|c: char| c.is_ascii_alphabetic()) { " " } else { "" };
            pieces.push(Piece::Math(format!("{symbol}{apart}")));
        } else {
            pieces.push(Piece::Text(literal(c)));
        }
        i += 1;
    }
    concatenated(&pieces)
}

/// The letter before the character at this place, if that is a `_` which begins an index of one character of the
/// letter: of a symbol, or of a letter that stands alone, as in θ_c and b_h. `None` elsewhere, as in `step_size`.
fn indexed(chars: &[char], at: usize) -> Option<char> {
    let is_in_word = |i: usize| chars.get(i).is_some_and(char::is_ascii_alphanumeric);
    let letter = *chars.get(at.checked_sub(1)?)?;
    let is_alone = !at.checked_sub(2).is_some_and(is_in_word);
    let is_one_character = is_in_word(at + 1) && !is_in_word(at + 2);
    let is_symbol = letter.is_alphabetic() && !letter.is_ascii();
    let has_index = is_symbol || letter.is_ascii_alphabetic() && is_alone;
    (chars[at] == '_' && is_one_character && has_index).then_some(letter)
}

/// LaTeX that shows a character that is no symbol; its code point in brackets if not every engine has the character.
fn literal(c: char) -> String {
    if let Some(shown) = TEXT.get(&c) {
        return (*shown).to_owned();
    }
    match c {
        '\u{a0}' => "~".into(),
        c if c.is_control() || c.is_whitespace() => " ".into(),
        c if c.is_ascii() || ('\u{c0}'..='\u{17f}').contains(&c) => c.into(),
        c => format!("[U+{:04X}]", c as u32),
    }
}

/// Operators that join the formulas before and after them, from which spaces separate them, to one formula.
const OPERATORS: [&str; 7] = ["-", r"\leq", r"\geq", r"\cdot", r"\pm", r"\times", r"\approx"];

/// The output, with neighbouring mathematics in one formula. A space between an operator and the formulas that it joins
/// is left out, so that they are one formula too.
fn concatenated(pieces: &[Piece]) -> String {
    let mut out = String::new();
    let mut math = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Math(m) => math.push_str(m),
            // A formula has its own spaces around operators.
            Piece::Text(t)
                if t == " " && (joins(pieces, i + 1) || i > 0 && joins(pieces, i - 1)) => {}
            Piece::Text(t) => {
                flush(&mut math, &mut out);
                out.push_str(t);
            }
        }
    }
    flush(&mut math, &mut out);
    out
}

/// Whether the piece at this index is an operator between two formulas, from each of which a space separates it.
fn joins(pieces: &[Piece], at: usize) -> bool {
    use Piece::{Math, Text};
    let around = at.checked_sub(2).and_then(|from| pieces.get(from..=at + 2));
    matches!(around, Some([Math(_), Text(left), Math(operator), Text(right), Math(_)])
        if left == " " && right == " " && OPERATORS.contains(&operator.trim_end()))
}

/// Moves the formula that was collected so far to the output, if there is one.
fn flush(math: &mut String, out: &mut String) {
    if !math.is_empty() {
        out.push_str(&format!(r"\ensuremath{{{}}}", math.trim_end()));
        math.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_runner::manifest::{Quantity, TimeAverage};
    use std::path::Path;
    use std::time::{Duration, Instant};

    #[test]
    fn characters_of_commands_are_shown_literally() {
        assert_eq!(
            text(r#"ab_cd & 5% #1 {x} ~ ^ \input{/etc/passwd} $x$ <>|"#),
            concat!(
                r"ab\_cd \& 5\% \#1 \{x\} \textasciitilde{} \textasciicircum{} ",
                r"\textbackslash{}input\{/etc/passwd\} \$x\$ \ensuremath{<>|}"
            )
        );
        assert_eq!(text("snow ☃, é\n\u{7}"), "snow [U+2603], é  ");
    }

    #[test]
    fn mathematics_is_grouped() {
        assert_eq!(text("‖θ − θ*‖²"), r"\ensuremath{\Vert \theta -\theta ^{*}\Vert ^{2}}");
        assert_eq!(text("θ − 1"), r"\ensuremath{\theta} \ensuremath{-} 1");
        assert_eq!(
            text("N⁻¹ Σ θ_c F̄ ζ₁ b_h"),
            r"N\ensuremath{^{-1}} \ensuremath{\Sigma} \ensuremath{\theta _{c}} \ensuremath{\bar{F}} \ensuremath{\zeta _{1}} \ensuremath{b_{h}}"
        );
        assert_eq!(
            text("[1.23e-4, -2e10]"),
            r"[1.23\ensuremath{\cdot}10\ensuremath{^{-4}}, \ensuremath{-}2\ensuremath{\cdot}10\ensuremath{^{10}}]"
        );
        assert_eq!(text("0e5a5c 1e b1e5 1e-"), "0e5a5c 1e b1e5 1e-");
    }

    /// Looking characters up in a text took 40 µs each: 16 s for these.
    #[test]
    fn a_long_text_takes_a_moment() {
        let long = "é~θ_c".repeat(80_000);
        let begin = Instant::now();
        let escaped = text(&long);
        let took = begin.elapsed();
        assert_eq!(escaped, text("é~θ_c").repeat(80_000));
        assert!(took < Duration::from_secs(8), "{took:?}");
    }

    /// Asserts that each character of a text has a LaTeX of its own: none is a code point in brackets.
    #[track_caller]
    fn mapped(what: &str) {
        let escaped = text(what);
        assert!(!escaped.contains("[U+"), "{what:?}: {escaped}");
        let known = |c: char| c.is_ascii() || ('À'..='ÿ').contains(&c);
        assert!(escaped.chars().all(known), "{what:?}: {escaped}");
    }

    /// The symbols of quantities and averages, and of the manifests, whose texts pages show.
    #[test]
    fn every_symbol_of_quantities_and_manifests_is_mapped() {
        for quantity in Quantity::ALL {
            [quantity.formula(), quantity.formula_around_optimum()].into_iter().for_each(mapped);
        }
        for average in TimeAverage::ALL {
            [average.formula(), average.formula_around_optimum()].into_iter().for_each(mapped);
        }
        fn walk(folder: &Path, seen: &mut usize) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, seen);
                } else if path.extension().is_some_and(|end| end == "toml") {
                    *seen += 1;
                    std::fs::read_to_string(&path).unwrap().lines().for_each(mapped);
                }
            }
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut seen = 0;
        walk(&root.join("experiments"), &mut seen);
        assert!(seen > 50);
    }
}
