//! The font of exported figures, DejaVu Sans, which is part of the program: exports are the same
//! on every machine, and need no font of the machine.

use std::sync::LazyLock;
use ttf_parser::Face;

/// The name of the font.
pub(super) const FAMILY: &str = "DejaVu Sans";

/// The bytes of the font's files: regular and bold.
pub(super) static FILES: LazyLock<[&[u8]; 2]> =
    LazyLock::new(|| [dejavu::sans::regular(), dejavu::sans::bold()]);

/// The parsed files: regular and bold.
static FACES: LazyLock<[Face<'static>; 2]> = LazyLock::new(|| {
    FILES.map(|bytes| Face::parse(bytes, 0).expect("the fonts are part of the program"))
});

/// The weight of letters. Bold ones are wider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FontWeight {
    /// The weight of running text.
    Regular,
    /// The weight of titles and names.
    Bold,
}

/// The width of a line of text in letters of this size, both in pixels: the sum of the characters' advances. Kerning,
/// which exports apply, makes some texts narrower by a few per cent. Characters that the font lacks count as its
/// replacement box.
///
/// A page shows a drawing in the viewer's own sans-serif font. DejaVu Sans is among the widest of
/// them, so that a margin of this width holds the text there too.
pub fn width(text: &str, size: f64, weight: FontWeight) -> f64 {
    let [regular, bold] = &*FACES;
    let face = match weight {
        FontWeight::Regular => regular,
        FontWeight::Bold => bold,
    };
    let advance = |character: char| {
        let glyph = face.glyph_index(character).unwrap_or_default();
        f64::from(face.glyph_hor_advance(glyph).unwrap_or_default())
    };
    text.chars().map(advance).sum::<f64>() * size / f64::from(face.units_per_em())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What captions, axes and legends of the experiments use.
    #[test]
    fn both_faces_have_the_signs_of_figures() {
        let signs = "θ‖⁻⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂✓✗×≤≥≈±·…–—−∞√∑∈→∝αβγδεηκλμρσφχψωΓΔΣΩ²éß̄";
        for face in FACES.iter() {
            let missing: String =
                signs.chars().filter(|c| face.glyph_index(*c).is_none()).collect();
            assert_eq!(missing, "");
        }
    }

    #[test]
    fn widths_are_the_advances_of_the_font() {
        // Advances in DejaVu Sans: i 569, m 1995, of 2048 units per em.
        let expected = 10.0 * (569.0 + 1995.0) / 2048.0;
        assert!((width("im", 10.0, FontWeight::Regular) - expected).abs() < 1e-12);
        assert!((width("im", 20.0, FontWeight::Regular) - 2.0 * expected).abs() < 1e-12);
        assert!(width("im", 10.0, FontWeight::Bold) > expected);
        assert!(width("", 10.0, FontWeight::Regular).abs() < f64::EPSILON);
        assert!(width("\u{10FFFF}", 10.0, FontWeight::Regular) > 0.0, "the replacement box");
    }
}
