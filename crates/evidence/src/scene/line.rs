//! The lines of a figure: what each of them shows, its name and its style.
//!
//! *Invariant*: a name and a style are derived from the typed parts of a line here and nowhere
//! else. Drawings, the data of a page, CSV and legends read them.

use crate::scene::family::FAMILIES;
use exactfed_runner::manifest::Prediction;
use exactfed_runner::plan::Setting;

/// The tone of one of `count` curves or algorithms of a family, as [`Color::tone`] takes it: the one with the rank 0
/// has the strongest shade (1), the last one, with the rank `count` − 1, the lightest, and those between are spread
/// evenly; if they are more than [`SHADES`], some share a shade. One that is alone has the family's own colour (0).
pub fn shade(rank: usize, count: usize) -> usize {
    if count == 1 { 0 } else { 1 + rank * (SHADES - 1) / (count - 1) }
}

/// The number of shades of a family's colour, which show the settings of its curves, from strong to light.
pub const SHADES: usize = 5;
/// The number of colours of the palette: of each family its own colour, then its shades.
pub const COLORS: usize = FAMILIES * (1 + SHADES);
/// The number of dash patterns of measured curves.
pub const DASHES: usize = 4;
/// The number of dash patterns of predictions and reference lines; the last pattern is for reference lines.
pub const THIN_DASHES: usize = 14;
/// The number of different markers.
pub const MARKERS: usize = 16;

/// The colour of a line or a square: an entry of the palette, or grey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Color {
    /// An index into the palette.
    Palette(usize),
    /// The grey of what belongs to no single curve or algorithm.
    Neutral,
}

impl Color {
    /// The own colour of a family, which is none of its shades.
    pub fn of_family(family: usize) -> Self {
        Self::tone(family, 0)
    }

    /// The own colour of a family (tone 0), or one of its shades, from the strongest (tone 1) to the lightest.
    pub fn tone(family: usize, tone: usize) -> Self {
        Self::Palette(family % FAMILIES * (1 + SHADES) + tone % (1 + SHADES))
    }

    /// The family whose colour or shade it is; `None` of grey.
    pub fn family(self) -> Option<usize> {
        match self {
            Self::Palette(index) => Some(index / (1 + SHADES)),
            Self::Neutral => None,
        }
    }
}

/// The dash pattern of a line, by what the line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dash {
    /// An index into the patterns of measured curves; 0 is solid.
    Measured(usize),
    /// An index into the patterns of the thinner lines of predictions and references.
    Thin(usize),
}

impl Dash {
    /// The index of the pattern among the patterns of its kind, measured or thin.
    pub fn index(self) -> usize {
        match self {
            Self::Measured(index) | Self::Thin(index) => index,
        }
    }

    /// Whether it is a pattern of measured curves.
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Measured(_))
    }
}

/// The style of a line: colour, dash pattern and marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Style {
    /// The colour of the line and of its markers.
    pub color: Color,
    /// The dash pattern of the line.
    pub dash: Dash,
    /// An index into the markers; reference lines are drawn without their marker.
    pub marker: usize,
}

impl Style {
    /// A solid line of this colour with the first marker.
    pub fn solid(color: Color) -> Self {
        Self { color, dash: Dash::Measured(0), marker: 0 }
    }
}

/// A setting that distinguishes a curve from the others of its algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveSetting {
    /// The name of the setting without the table that it is in.
    pub name: String,
    /// The value that the cells of the curve have.
    pub value: Setting,
    /// Name and value in the notation of the sources, such as `H = 10`.
    pub text: String,
}

/// A curve: an algorithm under some settings, and the style that both have in a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The algorithm's label, or the name of what is shown instead of an algorithm.
    pub algorithm: String,
    /// The family of the algorithm, which its colour shows.
    pub family: usize,
    /// The settings that distinguish it from the other curves of the algorithm.
    pub settings: Vec<CurveSetting>,
    /// Whether its name has the exact values of the settings, because another curve has the
    /// same texts.
    pub has_exact_values: bool,
    /// The colour, dash pattern and marker of the curve.
    pub style: Style,
}

impl Curve {
    /// A curve of an algorithm without settings that distinguish it. Its family is that of the style's colour, and of
    /// grey the first family.
    pub fn new(algorithm: &str, style: Style) -> Self {
        let algorithm = algorithm.to_owned();
        let family = style.color.family().unwrap_or_default();
        Self { algorithm, family, settings: Vec::new(), has_exact_values: false, style }
    }

    /// The name of the curve: the algorithm, and the settings by their texts, or by their names and exact values where
    /// another curve would have the same name.
    pub fn name(&self) -> String {
        let mut name = self.algorithm.clone();
        for CurveSetting { name: setting, value, text } in &self.settings {
            name.push_str(", ");
            name.push_str(&if self.has_exact_values {
                format!("{setting} {value}")
            } else {
                text.clone()
            });
        }
        name
    }
}

/// A line that belongs to no curve and is there for comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reference {
    /// A power law: a straight line of this slope on logarithmic axes.
    Slope(f64),
    /// The ratio 1 in the chart of a change.
    NoChange,
}

/// What a line shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// The means over the runs of a curve's cells.
    Measured(Curve),
    /// Exact values that belong to no cell.
    Exact(Curve),
    /// A prediction for the curve, or a published bound ([`Prediction::is_bound`]).
    Predicted(Curve, Prediction),
    /// A ring around the point of a curve that tuning selected.
    Selected(Curve),
    /// A line for comparison.
    Reference(Reference),
}

impl Line {
    /// The name of the line in legends, labels and files: the name of its curve with what the line is of the curve.
    pub fn name(&self) -> String {
        match self {
            Self::Measured(curve) | Self::Exact(curve) => curve.name(),
            Self::Predicted(curve, prediction) => {
                format!("{} {}", words_before(*prediction), curve.name())
            }
            Self::Selected(curve) => format!("selected for {}", curve.name()),
            Self::Reference(Reference::Slope(slope)) => format!("slope {slope}").replace('-', "−"),
            Self::Reference(Reference::NoChange) => "no change".into(),
        }
    }

    /// What kind of line it is, as drawings name it in the class of its group, and files in a column.
    pub fn role(&self) -> &'static str {
        match self {
            Self::Measured(_) => "measured",
            Self::Exact(_) => "exact",
            Self::Predicted(..) => "theory",
            Self::Selected(_) => "selected",
            Self::Reference(_) => "reference",
        }
    }

    /// The style in which the line is drawn. A prediction has the colour and the marker of its curve, and a dash
    /// pattern of its kind.
    pub fn style(&self) -> Style {
        match self {
            Self::Measured(curve) | Self::Exact(curve) | Self::Selected(curve) => curve.style,
            Self::Predicted(curve, prediction) => Style { dash: dash(*prediction), ..curve.style },
            Self::Reference(_) => {
                Style { dash: Dash::Thin(REFERENCE), ..Style::solid(Color::Neutral) }
            }
        }
    }

    /// Whether it is a curve of its own: results of runs, or exact values without any.
    pub fn is_measured(&self) -> bool {
        matches!(self, Self::Measured(_) | Self::Exact(_))
    }

    /// The curve that the line shows, predicts or marks; `None` of a line for comparison.
    pub fn curve(&self) -> Option<&Curve> {
        match self {
            Self::Measured(curve)
            | Self::Exact(curve)
            | Self::Predicted(curve, _)
            | Self::Selected(curve) => Some(curve),
            Self::Reference(_) => None,
        }
    }

    /// The kind of prediction that the line shows; `None` of other lines.
    pub fn prediction(&self) -> Option<Prediction> {
        match self {
            Self::Predicted(_, prediction) => Some(*prediction),
            _ => None,
        }
    }
}

/// An entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub enum LegendEntry {
    /// A curve or a reference line.
    Line(Line),
    /// A prediction beside any of the curves.
    Prediction(Prediction),
    /// The line in a map of stability where a spectral radius passes 1.
    Threshold,
    /// The colour of squares of a map.
    Patch {
        /// What the squares have in common.
        name: String,
        /// The colour of the squares.
        color: Color,
    },
}

impl LegendEntry {
    /// An entry for a colour of squares in a map; `name` says what these squares have in common.
    pub fn patch(name: &str, color: Color) -> Self {
        Self::Patch { name: name.to_owned(), color }
    }

    /// The text next to the sample of the line or the square.
    pub fn name(&self) -> String {
        match self {
            Self::Line(line) => line.name(),
            Self::Prediction(prediction) => legend_text(*prediction).into(),
            Self::Threshold => "ρ = 1".into(),
            Self::Patch { name, .. } => name.clone(),
        }
    }

    /// The style of the sample of the line. A prediction is grey, since it stands for those of all curves; of a patch
    /// only the colour counts.
    pub fn style(&self) -> Style {
        match self {
            Self::Line(line) => line.style(),
            Self::Prediction(prediction) => {
                Style { dash: dash(*prediction), ..Style::solid(Color::Neutral) }
            }
            Self::Threshold => Style::solid(Color::Neutral),
            Self::Patch { color, .. } => Style::solid(*color),
        }
    }

    /// Whether it shows a measured curve.
    pub fn is_measured(&self) -> bool {
        matches!(self, Self::Line(line) if line.is_measured())
    }

    /// Whether it shows a coloured patch instead of a line.
    pub fn is_patch(&self) -> bool {
        matches!(self, Self::Patch { .. })
    }
}

/// The index of the dash pattern of reference lines: the last of the thin ones.
const REFERENCE: usize = 13;

/// The dash pattern of a kind of prediction. Kinds that one figure may draw together have different patterns.
fn dash(prediction: Prediction) -> Dash {
    Dash::Thin(match prediction {
        Prediction::ExactBias => 0,
        Prediction::ExactMoments => 1,
        Prediction::FirstOrder => 2,
        Prediction::SecondOrder => 3,
        Prediction::Closure => 4,
        Prediction::Bound(bound) => bound.dash(),
        Prediction::ContractionPrinted => 12,
        // No figure has two of the first three; claims are tested on the others, which none draws.
        Prediction::Contraction
        | Prediction::Clt
        | Prediction::PublishedPower
        | Prediction::Stationary
        | Prediction::FirstOrderPrinted
        | Prediction::RrIdentity
        | Prediction::RrIdentityPrinted => 11,
    })
}

/// The words before the name of a curve in the name of a prediction for it, such as `exact bias of`.
pub fn words_before(prediction: Prediction) -> String {
    match prediction {
        Prediction::ExactBias => "exact bias of".into(),
        Prediction::PublishedPower => "published power for".into(),
        Prediction::Contraction | Prediction::ContractionPrinted => {
            format!("{} for", legend_text(prediction))
        }
        other => format!("{} for", other.words()),
    }
}

/// The name of a kind of prediction in a legend.
pub fn legend_text(prediction: Prediction) -> &'static str {
    match prediction {
        Prediction::ExactBias => "exact bias, squared",
        Prediction::ExactMoments => "infinite replicates (exact)",
        Prediction::FirstOrder => "first order",
        Prediction::SecondOrder => "and the term after it",
        Prediction::Closure => "closure",
        Prediction::Clt => "central limit theorem",
        Prediction::Contraction => "(1 − γμ)ᴴᵗ, RR",
        Prediction::ContractionPrinted => "(1 − γμ)²ᴴᵗ, SLIDES",
        other => other.words(),
    }
}
