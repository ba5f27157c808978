//! A figure as plain values.

use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::claim::Prediction;
use driftbench_runner::manifest::figure::Band;
use std::collections::HashMap;

/// A figure, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name of its file.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What it shows: n, the band, the dashes, what is missing.
    pub caption: String,
    /// Panels in a row.
    pub columns: usize,
    /// What it is made from; `None` for what is not drawn from cells.
    pub asks: Option<Asks>,
    /// The panels.
    pub body: Body,
}

/// What a figure of curves is made from, so that a page can draw other views of
/// the same cells.
#[derive(Clone, Debug)]
pub struct Asks {
    /// What is across.
    pub x: Across,
    /// What is drawn.
    pub y: Quantity,
    /// What the band is.
    pub band: Band,
    /// Its cells by id, in the order of the manifest.
    pub cells: Vec<String>,
    /// What a page may show: the manifest's panels first.
    pub views: Vec<View>,
    /// Slopes to compare with.
    pub slopes: Vec<f64>,
}

/// A figure's cells divided into panels, and the curves that they make there.
#[derive(Clone, Debug)]
pub struct View {
    /// Short names of the settings that tell panels apart, outermost first.
    pub panels: Vec<String>,
    /// The panels: title, and places of the cells among the figure's.
    pub groups: Vec<(String, Vec<usize>)>,
    /// The curves, in the order of the manifest.
    pub curves: Vec<Curve>,
    /// The curve of each of the figure's cells.
    pub of: Vec<usize>,
}

/// A curve: an algorithm under some settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Its name in the legend.
    pub label: String,
    /// The algorithm's label.
    pub algorithm: String,
    /// The settings that tell it from the algorithm's others: short name, and how the field
    /// writes it.
    pub settings: Vec<(String, String)>,
    /// How it looks.
    pub style: Style,
}

/// What is across.
#[derive(Clone, Debug, PartialEq)]
pub enum Across {
    /// A quantity along each cell's rounds: a curve a cell.
    Rounds(Quantity),
    /// A setting, or a quantity at the last round: a point a cell.
    Cells(String),
}

/// What a figure is made of.
#[derive(Clone, Debug)]
pub enum Body {
    /// Curves.
    Panels {
        /// Left to right, then down.
        panels: Vec<Panel>,
        /// What lines mean.
        legend: Vec<Legend>,
        /// Name of the x axis.
        x: String,
        /// Name of the y axis.
        y: String,
        /// Scale of the x axis.
        scale_x: Scale,
        /// Scale of the y axis.
        scale_y: Scale,
    },
    /// Coloured cells over two settings.
    Maps {
        /// Left to right, then down.
        maps: Vec<Map>,
        /// What colours mean.
        legend: Vec<Legend>,
        /// Name of the x axis.
        x: String,
        /// Name of the y axis.
        y: String,
    },
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic: what is not above 0 is cut.
    Log,
}

impl Scale {
    /// Its name in pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Log => "log",
        }
    }
}

/// A panel of curves.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What tells it apart.
    pub title: String,
    /// Its curves.
    pub series: Vec<Series>,
}

/// Colours, dashes of measured curves and marks that there are.
pub const COLORS: usize = 8;
/// Dashes of measured curves.
pub const DASHES: usize = 4;
/// Marks.
pub const MARKS: usize = 16;

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Index into the palette, or [`GREY`].
    pub color: usize,
    /// Index into the dashes of its role; 0 is solid for what is measured.
    pub dash: usize,
    /// Index into the marks.
    pub mark: usize,
}

/// The colour of what belongs to no curve.
pub const GREY: usize = usize::MAX;

impl Style {
    /// A solid line or a patch of this colour.
    pub fn plain(color: usize) -> Self {
        Self { color, ..Self::default() }
    }
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A mean over replicates.
    Measured,
    /// A prediction.
    Theory(Prediction),
    /// A line to compare with.
    Reference,
}

impl Role {
    /// Its name in drawings and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Theory(_) => "theory",
            Self::Reference => "reference",
        }
    }
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// How it looks.
    pub style: Style,
    /// What it is.
    pub role: Role,
    /// Its points, left to right.
    pub points: Vec<Point>,
    /// Replicates that diverged: the curve ends where the first of them did.
    pub diverged: usize,
    /// The cells behind it, by id: one for all points, or one a point.
    pub cells: Vec<String>,
    /// The recorded rounds of its points, where one cell is behind it.
    pub rows: Vec<usize>,
}

/// A point of a curve, with its band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Lower end of the band; NaN without one.
    pub low: f64,
    /// Upper end of the band; NaN without one.
    pub high: f64,
    /// Replicates behind it.
    pub n: usize,
}

/// A line of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legend {
    /// The name.
    pub label: String,
    /// How it looks.
    pub style: Style,
    /// Line or patch.
    pub key: Key,
}

/// How a legend shows a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A line.
    Line,
    /// A thin line without a mark: of predictions.
    Theory,
    /// The same, of a line to compare with.
    Reference,
    /// A coloured patch.
    Patch,
}

/// A map over two settings.
#[derive(Clone, Debug)]
pub struct Map {
    /// What tells it apart.
    pub title: String,
    /// Values across.
    pub x: Vec<String>,
    /// Values upwards.
    pub y: Vec<String>,
    /// Its cells.
    pub cells: Vec<MapCell>,
}

/// A cell of a map.
#[derive(Clone, Debug)]
pub struct MapCell {
    /// Index across.
    pub x: usize,
    /// Index upwards.
    pub y: usize,
    /// Who wins: index into the palette; [`GREY`] if nobody does alone.
    pub color: usize,
    /// Who wins, or all that are not separated from the best; of stability, how many runs
    /// diverged.
    pub winner: String,
    /// By what factor, with its interval; of stability, what theory says.
    pub detail: String,
    /// What is written in it, line by line.
    pub lines: Vec<String>,
    /// Whether one algorithm is separated from all others; of stability, whether theory agrees.
    pub sure: bool,
    /// What a map of stability shows.
    pub stability: Option<Stability>,
}

/// How many runs of a cell diverged, and what theory says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stability {
    /// Replicates.
    pub runs: usize,
    /// Of these, those that diverged.
    pub diverged: usize,
    /// Spectral radius of a round's map of the mean, where it is known.
    pub mean: Option<f64>,
    /// Spectral radius of a round's map of second moments, where it is known.
    pub square: Option<f64>,
}

impl Stability {
    /// The share of runs that diverged.
    pub fn share(&self) -> f64 {
        self.diverged as f64 / self.runs.max(1) as f64
    }

    /// Whether second moments stay bounded, where theory knows.
    pub fn bounded(&self) -> Option<bool> {
        self.square.map(|radius| radius < 1.0)
    }

    /// Whether runs diverged where moments stay bounded, or none where they do not.
    pub fn differs(&self) -> bool {
        self.bounded().is_some_and(|bounded| bounded == (self.diverged > 0))
    }
}

impl Figure {
    /// The styles of all curves and squares.
    pub fn styles(&self) -> Vec<Style> {
        match &self.body {
            Body::Panels { panels, .. } => {
                panels.iter().flat_map(|p| &p.series).map(|s| s.style).collect()
            }
            Body::Maps { maps, .. } => {
                let cells = maps.iter().flat_map(|m| &m.cells);
                cells.map(|cell| Style::plain(cell.color)).collect()
            }
        }
    }
}

impl Panel {
    /// Whether there is a point in it.
    pub fn drawn(&self) -> bool {
        self.series.iter().any(|s| !s.points.is_empty())
    }
}

/// A line from here to there, in squares.
pub type Edge = ((f64, f64), (f64, f64));

impl Map {
    /// The sides between squares where moments stay bounded and squares where they do
    /// not.
    pub fn edges(&self) -> Vec<Edge> {
        let mut squares: HashMap<(usize, usize), &MapCell> = HashMap::new();
        for cell in &self.cells {
            squares.entry((cell.x, cell.y)).or_insert(cell);
        }
        let bounded = |x: usize, y: usize| squares.get(&(x, y))?.stability.as_ref()?.bounded();
        let differ = |a: Option<bool>, b: Option<bool>| a.zip(b).is_some_and(|(a, b)| a != b);
        let mut lines = Vec::new();
        for cell in &self.cells {
            let (x, y) = (cell.x, cell.y);
            let (left, low) = (x as f64, y as f64);
            if differ(bounded(x, y), bounded(x + 1, y)) {
                lines.push(((left + 1.0, low), (left + 1.0, low + 1.0)));
            }
            if differ(bounded(x, y), bounded(x, y + 1)) {
                lines.push(((left, low + 1.0), (left + 1.0, low + 1.0)));
            }
        }
        lines
    }
}

impl MapCell {
    /// How strong its colour is, from 0 to 1.
    pub fn strength(&self) -> f64 {
        match self.stability {
            Some(found) if found.diverged > 0 => 0.2 + 0.5 * found.share(),
            Some(_) => 0.25,
            None if self.sure => 0.55,
            None => 0.18,
        }
    }
}
