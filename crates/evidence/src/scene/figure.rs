//! A figure as plain values.

use crate::cells::sample_unit::SampleUnit;
use crate::scene::line::{Curve, LegendEntry, Line};
use crate::scene::map::Maps;
use exactfed_core::words::joined;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::figure::FigureKeys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The band around a mean over replicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// Mean ± standard deviation.
    #[default]
    Std,
    /// Mean ± standard error.
    Sem,
    /// 95 % interval of the mean, by Student's t; on the logarithm if the mean is positive, so that
    /// the band is positive too, and of an accuracy on that of its error rate. Tables have wider
    /// intervals of skewed errors.
    Ci95,
    /// From the 10 % to the 90 % quantile.
    Quantiles,
    /// No band.
    None,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic.
    Log,
}

impl Scale {
    /// The scale of an axis of a quantity: logarithmic, on which ratios are distances, unless more of
    /// it is better. Accuracies of 0.90 and 0.99 are far apart, and their ratio is near 1.
    pub fn for_quantity(quantity: Quantity) -> Self {
        if quantity.more_is_better() { Self::Linear } else { Self::Log }
    }
}

/// A figure, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name of its file.
    pub id: String,
    /// The heading of the figure on its page.
    pub title: String,
    /// What it shows: the number of runs, the band, the dashes, missing cells.
    pub caption: String,
    /// The number of panels in a row.
    pub columns: usize,
    /// The index of the panel that is drawn large, if one is.
    pub large: Option<usize>,
    /// What a page needs in order to draw other views; `None` of maps and of figures that do not
    /// show cells.
    pub exploration: Option<Exploration>,
    /// What the figure draws.
    pub body: Body,
}

/// The cells of a figure of curves, and the views of them that a page offers.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// What the x axis shows.
    pub x: XAxis,
    /// What the y axis shows: one quantity, or one for each panel.
    pub y: Vec<Quantity>,
    /// What the band shows.
    pub band: Band,
    /// Ids of the cells, in the order of the manifest.
    pub cells: Vec<String>,
    /// The views: the manifest's panels first.
    pub views: Vec<View>,
    /// What each number of its samples is of.
    pub unit: SampleUnit,
    /// Slopes of the reference lines.
    pub slopes: Vec<f64>,
    /// For how many cells exact moments are asked for and not known, and why; `None` if none are missing.
    pub without_moments: Option<String>,
}

/// A figure's cells divided into panels, and the curves that they form there.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Short names of the settings that distinguish panels, outermost first. In a figure of several quantities the
    /// first one is `quantity`.
    pub panels: Vec<String>,
    /// The panels: title, and indices of their cells among the figure's. A cell that lacks the setting of a panel is in
    /// the panels of all its values, and so in several. In a figure of several quantities the indices are those of the
    /// cells with the first quantity, then of the same cells with the second one, and so on.
    pub groups: Vec<(String, Vec<usize>)>,
    /// The curves, in the order of the manifest.
    pub curves: Vec<Curve>,
    /// The index of the curve of each of the figure's cells, once for each quantity.
    pub curve_of_cell: Vec<usize>,
}

impl View {
    /// The view of a figure of several quantities, with the panels of this view for each of them. `names` has a name
    /// for each quantity, with which the titles of its panels begin.
    pub fn with_quantities(self, names: &[String]) -> Self {
        let cells = self.curve_of_cell.len();
        let mut groups = Vec::new();
        for (i, name) in names.iter().enumerate() {
            for (title, indices) in &self.groups {
                let title = joined(&[name, title]);
                groups.push((title, indices.iter().map(|index| i * cells + index).collect()));
            }
        }
        let quantity = std::iter::once("quantity".to_owned());
        Self {
            panels: quantity.chain(self.panels).collect(),
            groups,
            curve_of_cell: self.curve_of_cell.repeat(names.len()),
            ..self
        }
    }
}

/// What the x axis of a figure of curves shows.
#[derive(Clone, Debug, PartialEq)]
pub enum XAxis {
    /// A quantity along each cell's rounds: a cell is a curve.
    Rounds(Quantity),
    /// A setting, or a quantity at the last round: a cell is a point.
    Cells(String),
}

/// The content of a figure.
#[derive(Clone, Debug)]
pub enum Body {
    /// Curves over one axis, in panels.
    Plot(Plot),
    /// Coloured squares over two settings.
    Maps(Maps),
}

/// Panels of curves with common scales.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The panels, left to right, then down.
    pub panels: Vec<Panel>,
    /// The entries that say what lines mean.
    pub legend: Vec<LegendEntry>,
    /// Title of the x axis.
    pub x: String,
    /// Title of the y axis.
    pub y: String,
    /// Scale of the x axis.
    pub scale_x: Scale,
    /// Scale of the y axis.
    pub scale_y: Scale,
    /// What the labels of its curves say.
    pub labels: CurveValue,
}

/// Which value the label at the end of a curve says, and how labels compare these values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurveValue {
    /// The point whose value it is.
    pub at: LabelledPoint,
    /// Whether the label also says how many times larger it is than the lowest: of errors and
    /// costs, not of fractions and settings.
    #[serde(rename = "ranked")]
    pub is_ranked: bool,
    /// Values below this are rounding and count as 0, so that no ratio compares them.
    pub zero_below: f64,
}

/// The point of a curve whose value its label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelledPoint {
    /// The last point of the curve.
    Last,
    /// The first point of a curve of a frontier, which is that of its smallest target.
    Tightest,
    /// The first point of a profile: the share of instances on which an algorithm is best, alone or
    /// tied with others.
    Best,
    /// The point that tuning selected.
    Selected,
}

impl CurveValue {
    /// Labels that say the last value of each curve, on a y axis with this scale. They compare values by ratios on
    /// logarithmic axes alone: quantities of which more is better are on linear ones ([`Scale::for_quantity`]).
    pub fn last(scale_y: Scale) -> Self {
        Self { at: LabelledPoint::Last, is_ranked: scale_y == Scale::Log, zero_below: 0.0 }
    }
}

/// A panel of curves.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The settings that distinguish it.
    pub title: String,
    /// The lines of the panel, in the order in which they are drawn.
    pub series: Vec<Series>,
}

/// A line with its points.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the line shows, which decides on its style.
    pub line: Line,
    /// Its points, left to right.
    pub points: Vec<Point>,
    /// Replicates that diverged: the curve ends where the first of them did.
    pub diverged: usize,
    /// Ids of its cells: one for all points, or one for each point.
    pub cells: Vec<String>,
    /// Indices of its points among the recorded rounds, where it shows a single cell.
    pub rows: Vec<usize>,
}

impl Series {
    /// A line through points that belong to no cells.
    pub fn new(line: Line, points: Vec<Point>) -> Self {
        Self { line, points, diverged: 0, cells: Vec::new(), rows: Vec::new() }
    }

    /// Whether its points are drawn with markers. A reference line has none, nor has a prediction whose points all
    /// have the same height.
    pub fn has_marks(&self) -> bool {
        if matches!(self.line, Line::Reference(_)) {
            return false;
        }
        let is_flat = self.points.windows(2).all(|pair| pair[0].y == pair[1].y);
        self.line.is_measured() || !is_flat
    }
}

/// A point of a curve, with its band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Value on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
    /// The geometric mean over several instances, by which labels compare curves as the ranking
    /// does; NaN where `y` compares them.
    pub geometric: f64,
    /// Lower end of the band; NaN without one.
    pub low: f64,
    /// Upper end of the band; NaN without one.
    pub high: f64,
    /// The size of the sample: instances if there are several, else runs.
    pub n: usize,
}

impl Point {
    /// A point without a band, which is not of a sample: predicted, exact, or computed from points.
    pub fn bare(x: f64, y: f64) -> Self {
        Self { x, y, geometric: f64::NAN, low: f64::NAN, high: f64::NAN, n: 0 }
    }
}

impl Figure {
    /// A figure that no table of a manifest describes: no panel is large, a page offers no other views, and a row has
    /// as many panels as there are, up to `most`, which is at least 1.
    pub fn plain(id: String, title: String, caption: String, most: usize, body: Body) -> Self {
        let columns = body.panels().clamp(1, most);
        Self { id, title, caption, columns, large: None, exploration: None, body }
    }

    /// A figure that a table of a manifest describes, with its id, and with its heading and number of panels in a row
    /// where it has them: by default `title`, and as many as there are, up to `most`.
    pub fn new(
        common: &FigureKeys,
        title: String,
        caption: String,
        most: usize,
        body: Body,
    ) -> Self {
        let title = common.title.clone().unwrap_or(title);
        let plain = Self::plain(common.id().to_owned(), title, caption, most, body);
        Self { columns: common.columns.unwrap_or(plain.columns), ..plain }
    }

    /// The entries of the legend, which say what colours and lines mean.
    pub fn legend(&self) -> &[LegendEntry] {
        match &self.body {
            Body::Plot(plot) => &plot.legend,
            Body::Maps(maps) => &maps.legend,
        }
    }

    /// Whether the figure has a point or a square to show.
    pub fn has_content(&self) -> bool {
        match &self.body {
            Body::Plot(plot) => plot.series().any(|s| !s.points.is_empty()),
            Body::Maps(maps) => maps.maps.iter().any(|m| !m.squares.is_empty()),
        }
    }
}

/// The caption of a figure of cells none of which has results.
pub const NO_RESULTS: &str = "The figure is empty: no cell has results yet.";

impl Body {
    /// The number of panels of curves, or of maps.
    pub fn panels(&self) -> usize {
        match self {
            Self::Plot(plot) => plot.panels.len(),
            Self::Maps(maps) => maps.maps.len(),
        }
    }
}

impl Plot {
    /// The lines of all panels.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.panels.iter().flat_map(|panel| &panel.series)
    }
}
