//! The tables of colours, dash patterns and markers, so that no reader has to distinguish curves
//! by colour alone. Pages read the same tables.

use crate::evidence::family::FAMILIES;
use crate::evidence::{self, Color, Dash, SHADES, Style};
use plotters::style::RGBColor;

/// The palette on white paper: a row for each family, its colour and then its shades from strong to
/// light. The colours of families are four of Okabe and Ito's (blue, vermilion, green, pink) and four (violet,
/// ochre, crimson, teal) that a search found to be far from them and from one another for
/// colour-blind readers, with the same hue on either paper, so that a family is named alike in both;
/// the shades have the hue of their family at five lightnesses, each at least 3 to 1 against the
/// paper.
pub const PALETTE: [(u8, u8, u8); evidence::COLORS] = by_family([
    [0x0072b2, 0x004d7b, 0x006098, 0x0673b3, 0x3286c8, 0x4a97da],
    [0xd55e00, 0x7e3200, 0x9b4000, 0xb84e00, 0xd45e00, 0xe96f19],
    [0x009e73, 0x00543b, 0x00694b, 0x007e5b, 0x00936b, 0x17a67a],
    [0xcc79a7, 0x792d5a, 0x8e416e, 0xa35481, 0xb86794, 0xca78a6],
    [0x7a34ff, 0x5726b3, 0x6d39c8, 0x834cde, 0x995ff3, 0xab75f9],
    [0x8a672f, 0x624305, 0x795408, 0x91650b, 0xa9760f, 0xbd861f],
    [0x8d0028, 0x930d2c, 0xb31338, 0xd51844, 0xf81e50, 0xfa5668],
    [0x2c5661, 0x0b505e, 0x106374, 0x15778b, 0x1b8ca3, 0x209eb8],
]);

/// The palette on dark paper, in the same order.
pub const DARK_PALETTE: [(u8, u8, u8); evidence::COLORS] = by_family([
    [0x3d9be0, 0xa5d0ff, 0x78bfff, 0x54acf3, 0x3797dc, 0x0482c5],
    [0xf28c3c, 0xffbe93, 0xffa35f, 0xf28c3c, 0xd97727, 0xc0630f],
    [0x3fd6a0, 0x51e4ad, 0x37d09a, 0x10bc88, 0x00a576, 0x008e65],
    [0xeba0cc, 0xffb6e1, 0xeda2ce, 0xd98fbb, 0xc27aa5, 0xac6590],
    [0xa66cff, 0xdabdfc, 0xcca5fb, 0xbc8dfa, 0xab75f9, 0x975ef2],
    [0x8f6200, 0xfdbe58, 0xe7ab46, 0xd29933, 0xbd861f, 0xa8750f],
    [0xff5e6f, 0xfdb8b8, 0xfc9b9d, 0xfb7c83, 0xfa5668, 0xf61e50],
    [0x1e7486, 0x3edafc, 0x2ac6e6, 0x25b2cf, 0x209eb8, 0x1a8aa1],
]);

/// The palette from a row of colours (0xRRGGBB) for each family: all rows one after the other, as red, green and blue.
const fn by_family(rows: [[u32; 1 + SHADES]; FAMILIES]) -> [(u8, u8, u8); evidence::COLORS] {
    let mut colors = [(0, 0, 0); evidence::COLORS];
    let mut i = 0;
    while i < colors.len() {
        let [_, r, g, b] = rows[i / (1 + SHADES)][i % (1 + SHADES)].to_be_bytes();
        colors[i] = (r, g, b);
        i += 1;
    }
    colors
}

/// Dash patterns of measured curves; the first is solid.
pub const DASHES: [&str; evidence::DASHES] = ["", "7 3", "2 2.5", "6 3 2 3"];

/// Dash patterns of predictions; the last is that of reference lines.
pub const THIN_DASHES: [&str; evidence::THIN_DASHES] = [
    "1.5 3",
    "5 2",
    "8 3 1.5 3",
    "3 3",
    "1 2",
    "10 4",
    "10 3 3 3",
    "10 3 1.5 3 1.5 3",
    "6 2 2 2",
    "13 2",
    "4 2 1 2",
    "2 5",
    "7 5",
    "1.5 6",
];

/// The markers of curves: filled where they are measured, open where they are predicted.
pub const MARKERS: [Marker; evidence::MARKERS] = [
    Marker { corners: 12, turn: 0.0, waist: 1.0 },
    Marker { corners: 4, turn: 45.0, waist: 1.0 },
    Marker { corners: 3, turn: 0.0, waist: 1.0 },
    Marker { corners: 4, turn: 0.0, waist: 1.0 },
    Marker { corners: 3, turn: 180.0, waist: 1.0 },
    Marker { corners: 5, turn: 0.0, waist: 0.45 },
    Marker { corners: 6, turn: 0.0, waist: 1.0 },
    Marker { corners: 4, turn: 45.0, waist: 0.35 },
    Marker { corners: 3, turn: 90.0, waist: 1.0 },
    Marker { corners: 4, turn: 0.0, waist: 0.35 },
    Marker { corners: 3, turn: 270.0, waist: 1.0 },
    Marker { corners: 5, turn: 0.0, waist: 1.0 },
    Marker { corners: 3, turn: 0.0, waist: 0.3 },
    Marker { corners: 6, turn: 0.0, waist: 0.45 },
    Marker { corners: 3, turn: 180.0, waist: 0.3 },
    Marker { corners: 5, turn: 180.0, waist: 0.45 },
];

/// The most markers along a curve with many points.
pub const MOST_MARKERS: usize = 7;

/// The shape of a marker: a polygon or a star.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Marker {
    /// Corners on the outer circle.
    pub corners: u32,
    /// Degrees from one corner above.
    pub turn: f64,
    /// Radius between corners, relative; 1 for a polygon.
    pub waist: f64,
}

impl Marker {
    /// The corners of the marker as offsets (right, down) from its middle, if its outer circle has this radius. They
    /// are rounded to whole numbers, as plotters needs them, so that callers choose a radius in small units.
    pub fn outline(self, radius: u32) -> Vec<(i32, i32)> {
        let between = if self.waist < 1.0 { 2 } else { 1 };
        let count = self.corners * between;
        let mut corners = Vec::new();
        for i in 0..count {
            let angle = (self.turn + 360.0 * f64::from(i) / f64::from(count)).to_radians();
            let is_inner = between == 2 && i % 2 == 1;
            let r = f64::from(radius) * if is_inner { self.waist } else { 1.0 };
            let right = (r * libm::sin(angle)).round() as i32;
            let down = (-r * libm::cos(angle)).round() as i32;
            corners.push((right, down));
        }
        corners
    }
}

/// The red, green and blue of a colour on white paper, in which all drawings are made.
pub fn rgb(color: Color) -> (u8, u8, u8) {
    match color {
        Color::Palette(index) => PALETTE[index % PALETTE.len()],
        Color::Neutral => NEUTRAL[0],
    }
}

/// The grey of lines and squares that belong to no family, on white and on dark paper.
pub const NEUTRAL: [(u8, u8, u8); 2] = [(60, 60, 60), (0xc2, 0xc2, 0xc2)];

/// The paper of style.css, white and dark.
pub const PAPERS: [(u8, u8, u8); 2] = [(255, 255, 255), (0x12, 0x14, 0x17)];

/// The contrast to the paper that text needs.
const TEXT_CONTRAST: f64 = 4.5;

/// The colour in which texts have the name of a line of this colour, on white and on dark paper: the
/// colour itself where it has the contrast of text, or else as much darker or lighter as it must be,
/// with the same hue.
pub fn ink(color: Color) -> [(u8, u8, u8); 2] {
    let Color::Palette(index) = color else { return NEUTRAL };
    let line = PALETTE[index % PALETTE.len()];
    let dark_line = DARK_PALETTE[index % DARK_PALETTE.len()];
    [ink_on(PAPERS[0], line), ink_on(PAPERS[1], dark_line)]
}

/// The colour of the name of a line on this paper: the colour of the line if it has the contrast of text.
fn ink_on(paper: (u8, u8, u8), line: (u8, u8, u8)) -> (u8, u8, u8) {
    if contrast(line, paper) >= TEXT_CONTRAST { line } else { with_text_contrast(line, paper) }
}

/// A colour with its light scaled to the contrast of text, and a little more because of rounding.
fn with_text_contrast(color: (u8, u8, u8), paper: (u8, u8, u8)) -> (u8, u8, u8) {
    // WCAG 2 adds 0.05 to luminances for the light that a screen reflects.
    let light = luminance(color) + 0.05;
    let paper_light = luminance(paper) + 0.05;
    let wanted = TEXT_CONTRAST + 0.1;
    let target = if light < paper_light { paper_light / wanted } else { paper_light * wanted };
    let factor = (target - 0.05) / (light - 0.05);
    let [r, g, b] =
        linear(color).map(|channel| (255.0 * encoded((channel * factor).min(1.0))).round() as u8);
    (r, g, b)
}

/// The light of the channels of a colour (sRGB), from 0 to 1.
fn linear((r, g, b): (u8, u8, u8)) -> [f64; 3] {
    [r, g, b].map(|channel| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { libm::pow((c + 0.055) / 1.055, 2.4) }
    })
}

/// The value of an sRGB channel, from 0 to 1, that has this light: the inverse of [`linear`] for one channel.
fn encoded(light: f64) -> f64 {
    if light <= 0.003_130_8 { 12.92 * light } else { 1.055 * libm::pow(light, 1.0 / 2.4) - 0.055 }
}

/// The contrast ratio of two colours (WCAG 2): 1 of equal ones, and 21 of black and white.
fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let light = luminance(a).max(luminance(b));
    let dark = luminance(a).min(luminance(b));
    (light + 0.05) / (dark + 0.05)
}

/// The relative luminance of a colour (WCAG 2), from 0 to 1.
fn luminance(color: (u8, u8, u8)) -> f64 {
    let [r, g, b] = linear(color);
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// A colour as style sheets write it.
pub fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// A colour as plotters knows it.
pub fn plotters_color(color: Color) -> RGBColor {
    let (r, g, b) = rgb(color);
    RGBColor(r, g, b)
}

/// The name of a colour in the attribute `data-color`, by which style sheets give it another value on dark paper: its
/// index in the palette, or `none` of grey.
pub fn color_name(color: Color) -> String {
    match color {
        Color::Palette(index) => (index % PALETTE.len()).to_string(),
        Color::Neutral => "none".into(),
    }
}

/// The shape of a style's marker.
pub fn marker(style: Style) -> Marker {
    MARKERS[style.marker % MARKERS.len()]
}

/// A dash pattern as SVG writes it: lengths of dashes and gaps in pixels; empty for a solid line.
pub fn dash_array(dash: Dash) -> &'static str {
    match dash {
        Dash::Measured(index) => DASHES[index % DASHES.len()],
        Dash::Thin(index) => THIN_DASHES[index % THIN_DASHES.len()],
    }
}

/// The points of a curve at which its markers are drawn. Few points (up to twice [`MOST_MARKERS`]) all have markers; of
/// many, at most [`MOST_MARKERS`], with equally many points between them. Where the first of these is depends on the
/// marker, and on whether the curve is a prediction, so that the markers of neighbouring curves do not cover one
/// another. The Python package calls it too, with the indices of points as their coordinates.
pub fn marked_points(points: Vec<(f64, f64)>, style: Style) -> Vec<(f64, f64)> {
    if points.len() <= 2 * MOST_MARKERS {
        return points;
    }
    let every = points.len().div_ceil(MOST_MARKERS);
    let mut first = style.marker % MARKERS.len() * every / MARKERS.len();
    if !style.dash.is_measured() {
        first = (first + every / 2) % every;
    }
    points.into_iter().skip(first).step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_drawn_around_their_point() {
        for (i, marker) in MARKERS.iter().enumerate() {
            let outline = marker.outline(100);
            let reach = outline.iter().map(|(x, y)| libm::hypot(f64::from(*x), f64::from(*y)));
            assert!((reach.fold(0.0, f64::max) - 100.0).abs() < 1.5, "{i}");
            let others = MARKERS.iter().skip(i + 1).map(|other| other.outline(100));
            assert!(others.into_iter().all(|other| other != outline), "{i}");
        }
        assert_eq!(MARKERS[2].outline(10)[0], (0, -10));
    }

    /// The matrices that make of the light of a colour's channels what readers see: all readers without a deficiency,
    /// then readers without red, green and blue cones (Machado, Oliveira and Fernandes 2009, full severity).
    const SIGHTS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    /// The light of a colour's channels as a reader of the kind of this matrix sees it, from 0 to 1.
    fn seen(matrix: &[[f64; 3]; 3], color: (u8, u8, u8)) -> [f64; 3] {
        let from = linear(color);
        matrix.map(|row| row.iter().zip(from).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0))
    }

    /// A colour in CIE L*a*b* under daylight (D65), from the light of its channels (sRGB).
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let x = 0.4124 * r + 0.3576 * g + 0.1805 * b;
        let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
        let z = 0.0193 * r + 0.1192 * g + 0.9505 * b;
        let [x, y, z] = [x / 0.95047, y, z / 1.08883].map(|t| {
            if t > 216.0 / 24389.0 { libm::cbrt(t) } else { (24389.0 / 27.0 * t + 16.0) / 116.0 }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// The Euclidean distance of two colours in L*a*b* (CIE 1976) to a reader of this kind.
    fn apart(sight: &[[f64; 3]; 3], a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
        let a = lab(seen(sight, a));
        let b = lab(seen(sight, b));
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }

    const EACH: usize = 1 + SHADES;

    /// A distance of 2.3 is just seen: families are sevenfold that apart on either paper, for readers
    /// without red, green or blue cones too, and neighbouring shades of a family more than twice
    /// that. Okabe and Ito's orange and sky blue do not stand out from white, and a yellow dark
    /// enough to do so is vermilion to who lacks red cones.
    #[test]
    fn colours_stay_apart_for_all_eyes() {
        for palette in [PALETTE, DARK_PALETTE] {
            for (kind, sight) in SIGHTS.iter().enumerate() {
                for i in 0..palette.len() / EACH {
                    for j in 0..i {
                        let far = apart(sight, palette[i * EACH], palette[j * EACH]);
                        assert!(far > 16.0, "sight {kind}, families {i} and {j}: {far}");
                    }
                    for shade in 1..SHADES {
                        let at = i * EACH + shade;
                        let far = apart(sight, palette[at], palette[at + 1]);
                        assert!(far > 6.0, "sight {kind}, family {i}, shade {shade}: {far}");
                    }
                }
            }
        }
    }

    /// At least 3 to 1 for graphics and 4.5 to 1 for text, on the paper of style.css.
    #[test]
    fn colours_stand_out_from_paper() {
        let css = include_str!("../../templates/style.css");
        let [white, dark] = PAPERS;
        assert!(css.contains("--paper: #ffffff;") && css.contains("--paper: #121417;"));
        assert!(PALETTE.into_iter().all(|color| contrast(color, white) >= 3.0));
        assert!(DARK_PALETTE.into_iter().all(|color| contrast(color, dark) >= 3.0));
    }

    /// The hue of a colour in degrees, from −180 to 180 (CIE LCh).
    fn hue(color: (u8, u8, u8)) -> f64 {
        let [_, a, b] = lab(linear(color));
        libm::atan2(b, a).to_degrees()
    }

    /// How far two hues are apart in degrees, the shorter way around.
    fn turn(a: f64, b: f64) -> f64 {
        let difference = (a - b).rem_euclid(360.0);
        difference.min(360.0 - difference)
    }

    /// A family is named by one word on either paper, and no two families by the same: their hues
    /// differ by less than 5 degrees between papers and by more than 17 between families. No shade
    /// is as far from its family as another family is.
    #[test]
    fn a_family_has_one_hue_on_either_paper_and_no_other_has_it() {
        let own = |palette: &[(u8, u8, u8)], family: usize| hue(palette[family * EACH]);
        for i in 0..PALETTE.len() / EACH {
            let apart = turn(own(&PALETTE, i), own(&DARK_PALETTE, i));
            assert!(apart < 5.0, "family {i}: {apart} degrees between papers");
            for palette in [PALETTE, DARK_PALETTE] {
                let others = (0..i).map(|j| turn(own(&palette, i), own(&palette, j)));
                let nearest = others.fold(f64::INFINITY, f64::min);
                assert!(nearest > 17.0, "family {i}: {nearest} degrees from another");
                for shade in 1..=SHADES {
                    let far = turn(own(&palette, i), hue(palette[i * EACH + shade]));
                    assert!(far < 8.5, "family {i}, shade {shade}: {far} degrees");
                }
            }
        }
    }

    /// The name next to a line has the colour of the line, or as much more contrast as text needs.
    #[test]
    fn names_have_the_colour_of_their_line_and_the_contrast_of_text() {
        for (paper, palette) in [PALETTE, DARK_PALETTE].into_iter().enumerate() {
            for (index, line) in palette.into_iter().enumerate() {
                let text = ink(Color::Palette(index))[paper];
                let contrasts = [text, line].map(|color| contrast(color, PAPERS[paper]));
                assert!(contrasts[0] >= TEXT_CONTRAST, "{paper} {index}: {contrasts:?}");
                if contrasts[1] >= TEXT_CONTRAST {
                    assert_eq!(text, line, "{paper} {index}");
                } else {
                    assert!(contrasts[0] < TEXT_CONTRAST + 0.3, "{paper} {index}: {contrasts:?}");
                    assert!(
                        turn(hue(text), hue(line)) < 10.0,
                        "{paper} {index}: {text:?} {line:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn markers_of_two_curves_lie_apart() {
        let points: Vec<(f64, f64)> = (0..200).map(|i| (f64::from(i), 0.0)).collect();
        let solid = Style::solid(Color::Palette(0));
        let with = |marker| marked_points(points.clone(), Style { marker, ..solid });
        assert!(with(0).len() <= MOST_MARKERS && with(0).iter().all(|p| !with(1).contains(p)));
        let few = Style { marker: 3, ..solid };
        assert_eq!(marked_points(points[..5].to_vec(), few).len(), 5);
        let predicted = marked_points(points.clone(), Style { dash: Dash::Thin(4), ..solid });
        assert!(predicted.iter().all(|p| !with(0).contains(p)));
    }
}
