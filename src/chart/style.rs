//! The tables of colours, dash patterns and markers, so that no reader has to distinguish curves
//! by colour alone. Pages read the same tables.

use crate::evidence::{self, Color, Dash, Style};
use plotters::style::RGBColor;

/// The palette on white paper: of each family its colour, then its shades from strong to light.
/// The colours of families are four of Okabe and Ito's (blue, vermilion, green, pink) and four (violet,
/// ochre, crimson, teal) that a search found to be far from them and from one another for
/// colour-blind readers, with the same hue on either paper, so that a family is named alike in both;
/// the shades have the hue of their family at five lightnesses, each at least 3 to 1 against the
/// paper.
pub const PALETTE: [(u8, u8, u8); evidence::COLORS] = [
    (0, 114, 178),
    (0, 77, 123),
    (0, 96, 152),
    (6, 115, 179),
    (50, 134, 200),
    (74, 151, 218),
    (213, 94, 0),
    (126, 50, 0),
    (155, 64, 0),
    (184, 78, 0),
    (212, 94, 0),
    (233, 111, 25),
    (0, 158, 115),
    (0, 84, 59),
    (0, 105, 75),
    (0, 126, 91),
    (0, 147, 107),
    (23, 166, 122),
    (204, 121, 167),
    (121, 45, 90),
    (142, 65, 110),
    (163, 84, 129),
    (184, 103, 148),
    (202, 120, 166),
    (122, 52, 255),
    (87, 38, 179),
    (109, 57, 200),
    (131, 76, 222),
    (153, 95, 243),
    (171, 117, 249),
    (138, 103, 47),
    (98, 67, 5),
    (121, 84, 8),
    (145, 101, 11),
    (169, 118, 15),
    (189, 134, 31),
    (141, 0, 40),
    (147, 13, 44),
    (179, 19, 56),
    (213, 24, 68),
    (248, 30, 80),
    (250, 86, 104),
    (44, 86, 97),
    (11, 80, 94),
    (16, 99, 116),
    (21, 119, 139),
    (27, 140, 163),
    (32, 158, 184),
];

/// The palette on dark paper, in the same order.
pub const DARK_PALETTE: [(u8, u8, u8); evidence::COLORS] = [
    (61, 155, 224),
    (165, 208, 255),
    (120, 191, 255),
    (84, 172, 243),
    (55, 151, 220),
    (4, 130, 197),
    (242, 140, 60),
    (255, 190, 147),
    (255, 163, 95),
    (242, 140, 60),
    (217, 119, 39),
    (192, 99, 15),
    (63, 214, 160),
    (81, 228, 173),
    (55, 208, 154),
    (16, 188, 136),
    (0, 165, 118),
    (0, 142, 101),
    (235, 160, 204),
    (255, 182, 225),
    (237, 162, 206),
    (217, 143, 187),
    (194, 122, 165),
    (172, 101, 144),
    (166, 108, 255),
    (218, 189, 252),
    (204, 165, 251),
    (188, 141, 250),
    (171, 117, 249),
    (151, 94, 242),
    (143, 98, 0),
    (253, 190, 88),
    (231, 171, 70),
    (210, 153, 51),
    (189, 134, 31),
    (168, 117, 15),
    (255, 94, 111),
    (253, 184, 184),
    (252, 155, 157),
    (251, 124, 131),
    (250, 86, 104),
    (246, 30, 80),
    (30, 116, 134),
    (62, 218, 252),
    (42, 198, 230),
    (37, 178, 207),
    (32, 158, 184),
    (26, 138, 161),
];

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

/// Markers along a curve, at most.
pub const MOST_MARKERS: usize = 7;

/// A polygon or a star.
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
    /// Its corners around the origin, for an outer circle of this radius.
    pub fn outline(self, radius: u32) -> Vec<(i32, i32)> {
        let between = if self.waist < 1.0 { 2 } else { 1 };
        let all = self.corners * between;
        let corner = |i: u32| {
            let angle = (self.turn + 360.0 * f64::from(i) / f64::from(all)).to_radians();
            let inner = between == 2 && i % 2 == 1;
            let r = f64::from(radius) * if inner { self.waist } else { 1.0 };
            ((r * libm::sin(angle)).round() as i32, (-r * libm::cos(angle)).round() as i32)
        };
        (0..all).map(corner).collect()
    }
}

/// A colour: red, green and blue.
pub fn rgb(color: Color) -> (u8, u8, u8) {
    match color {
        Color::Palette(index) => PALETTE[index % PALETTE.len()],
        Color::Neutral => NEUTRAL[0],
    }
}

/// The grey of what has no family, on white and on dark paper.
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
    let of = |palette: &[(u8, u8, u8)], paper| {
        let own = palette[index % palette.len()];
        if contrast(own, paper) >= TEXT_CONTRAST { own } else { with_text_contrast(own, paper) }
    };
    [of(&PALETTE, PAPERS[0]), of(&DARK_PALETTE, PAPERS[1])]
}

/// A colour with its light scaled to the contrast of text, and a little more because of rounding.
fn with_text_contrast(color: (u8, u8, u8), paper: (u8, u8, u8)) -> (u8, u8, u8) {
    let (own, paper) = (luminance(color) + 0.05, luminance(paper) + 0.05);
    let wanted = TEXT_CONTRAST + 0.1;
    let target = if own < paper { paper / wanted } else { paper * wanted };
    let by = (target - 0.05) / (own - 0.05);
    let encoded = |c: f64| match (c * by).min(1.0) {
        c if c <= 0.003_130_8 => 12.92 * c,
        c => 1.055 * libm::pow(c, 1.0 / 2.4) - 0.055,
    };
    let [r, g, b] = linear(color).map(|c| (255.0 * encoded(c)).round() as u8);
    (r, g, b)
}

fn linear((r, g, b): (u8, u8, u8)) -> [f64; 3] {
    [r, g, b]
        .map(|v| f64::from(v) / 255.0)
        .map(|c| if c <= 0.04045 { c / 12.92 } else { libm::pow((c + 0.055) / 1.055, 2.4) })
}

/// The contrast of two colours (WCAG 2).
fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

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

/// The name of a colour in attributes that style sheets read.
pub fn color_name(color: Color) -> String {
    match color {
        Color::Palette(index) => (index % PALETTE.len()).to_string(),
        Color::Neutral => "none".into(),
    }
}

/// A style's marker.
pub fn marker(style: Style) -> Marker {
    MARKERS[style.marker % MARKERS.len()]
}

/// A dash pattern as SVG writes it.
pub fn dash_array(dash: Dash) -> &'static str {
    match dash {
        Dash::Measured(index) => DASHES[index % DASHES.len()],
        Dash::Thin(index) => THIN_DASHES[index % THIN_DASHES.len()],
    }
}

/// The points of a curve at which its markers are drawn: all of a few, some of many, and others
/// for each marker and for predictions, so that markers do not cover one another.
pub fn marked_points(points: Vec<(f64, f64)>, style: Style) -> Vec<(f64, f64)> {
    if points.len() <= 2 * MOST_MARKERS {
        return points;
    }
    let every = points.len().div_ceil(MOST_MARKERS);
    let first = style.marker % MARKERS.len() * every / MARKERS.len();
    let first = if style.dash.is_measured() { first } else { (first + every / 2) % every };
    points.into_iter().skip(first).step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::SHADES;

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

    /// Machado, Oliveira and Fernandes (2009), full severity, on linear RGB.
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

    fn seen(matrix: &[[f64; 3]; 3], color: (u8, u8, u8)) -> [f64; 3] {
        let from = linear(color);
        matrix.map(|row| row.iter().zip(from).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0))
    }

    /// CIE L*a*b* under daylight (D65).
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let x = 0.4124 * r + 0.3576 * g + 0.1805 * b;
        let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
        let z = 0.0193 * r + 0.1192 * g + 0.9505 * b;
        let [x, y, z] = [x / 0.95047, y, z / 1.08883].map(|t| {
            if t > 216.0 / 24389.0 { libm::cbrt(t) } else { (24389.0 / 27.0 * t + 16.0) / 116.0 }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// Euclidean distance in L*a*b* (CIE 1976) to a reader of this kind.
    fn apart(sight: &[[f64; 3]; 3], a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
        let (a, b) = (lab(seen(sight, a)), lab(seen(sight, b)));
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

    /// The hue (CIE LCh, degrees), and how far two hues are apart.
    fn hue(color: (u8, u8, u8)) -> f64 {
        let [_, a, b] = lab(linear(color));
        libm::atan2(b, a).to_degrees()
    }

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

    /// The name beside a line has the colour of the line, or as much more contrast as text needs.
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
