//! The data of figures as the script of a page reads them.

use super::numbers::{NumberBlocks, Slice};
use crate::chart::PanelFrame;
use crate::chart::style::{self, Marker};
use crate::evidence::{
    Band, Color, Curve, CurveValue, MapLine, SampleUnit, Scale, Style, View, symbol,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything that the script of a page reads.
#[derive(Serialize)]
pub struct PageData<'e> {
    /// The numbers of all figures, to which figures refer by a [`Slice`].
    pub numbers: NumberBlocks,
    pub styles: FigureStyles,
    pub figures: Vec<CurveFigureData<'e>>,
    pub maps: Vec<MapFigureData<'e>>,
    /// The name of the experiment, which is written into a drawing that a reader saves, as are the question and the
    /// source.
    pub experiment: &'e str,
    pub question: Option<&'e str>,
    /// The source of the experiment with authors and year.
    pub origin: String,
}

/// The colours, dashes and markers of figures.
#[derive(Serialize)]
pub struct FigureStyles {
    palette: Vec<(u8, u8, u8)>,
    dashes: &'static [&'static str],
    thin_dashes: &'static [&'static str],
    markers: &'static [Marker],
    most_markers: usize,
    /// For each colour of lines the colour of the names that stand next to them, on white paper.
    inks: Vec<(u8, u8, u8)>,
}

impl FigureStyles {
    /// The styles in which drawings without a script are drawn too. The script needs the inks on white paper alone,
    /// since style sheets replace them on dark paper.
    pub fn new() -> Self {
        let colors = 0..style::PALETTE.len();
        Self {
            palette: style::PALETTE.to_vec(),
            dashes: &style::DASHES,
            thin_dashes: &style::THIN_DASHES,
            markers: &style::MARKERS,
            most_markers: style::MOST_MARKERS,
            inks: colors.map(|index| style::ink(Color::Palette(index))[0]).collect(),
        }
    }
}

/// A figure of curves, whether of cells or of exact values.
#[derive(Serialize)]
pub struct CurveFigureData<'e> {
    pub id: &'e str,
    pub title: &'e str,
    pub y: &'e str,
    pub scale_x: Scale,
    pub scale_y: Scale,
    pub layout: PanelRows,
    /// At which point of a curve its label states the value, and whether the label compares it with the lowest curve.
    pub labels: CurveValue,
    /// The index of the panel that is drawn large, if one is.
    pub large: Option<usize>,
    /// The kinds of predictions in the legend: the name of each, and the index of its dash pattern.
    pub kinds: Vec<(String, usize)>,
    #[serde(flatten)]
    pub curves: CurvesData,
}

/// How panels are arranged.
#[derive(Serialize)]
pub struct PanelRows {
    /// Panels in a row.
    pub columns: usize,
    pub frames: Vec<PanelFrame>,
}

/// The curves of a figure, and what a reader may choose of them.
#[derive(Serialize)]
pub struct CurvesData {
    /// Whether each cell is a curve over its rounds; otherwise each cell is a point of a curve over a setting.
    pub rounds: bool,
    /// The quantity or setting on the x axis.
    pub x: String,
    /// What a reader may choose for the x axis, with the manifest's choice first: names, and titles of the axis.
    pub xs: Vec<(String, String)>,
    /// Whether the points belong to no cells, so that a reader cannot choose another band.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// The band that the figure has before a reader chooses another one.
    pub band: BandName,
    /// The bands that a reader may choose; each cell has their ends in this order.
    pub bands: Vec<BandName>,
    /// Whether a number of a sample belongs to a run or to an instance.
    pub unit: SampleUnit,
    /// The points of curves that tuning selected; `None` in a figure of cells, which has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<Vec<SelectedData>>,
    pub cells: Vec<CellData>,
    /// The manifest's panels first, then those that a reader may choose.
    pub views: Vec<ViewData>,
    pub theory: Vec<PredictionData>,
    /// Slopes of reference lines.
    pub references: Vec<f64>,
}

/// The name of a band.
#[derive(Serialize)]
#[serde(untagged)]
pub enum BandName {
    Offered(Band),
    /// The band that fixed points have, or `none`.
    Fixed(&'static str),
}

/// A cell of a figure, or a curve of points that belong to no cell.
#[derive(Serialize)]
pub struct CellData {
    pub id: String,
    /// Its name in the address of a page with a reader's choices: its label with every setting that varies.
    pub name: String,
    pub n: SampleSize,
    /// How many runs diverged.
    pub diverged: usize,
    /// The places of the points on each x axis that a reader may choose, by the name of the axis.
    pub x: BTreeMap<String, Slice>,
    pub mean: Slice,
    /// The geometric means by which labels compare the curve with others; `None` where they compare its means.
    pub geometric: Option<Slice>,
    /// The lower and the upper ends of each band that the figure offers.
    pub bands: Vec<[Slice; 2]>,
    /// The sequence of each run or instance by itself; none where they would make the page too large.
    pub runs: ReplicateSlices,
}

/// The sizes of the samples of a cell.
#[derive(Serialize)]
#[serde(untagged)]
pub enum SampleSize {
    /// All points of the cell have samples of this size.
    OfAllPoints(usize),
    /// The sizes point by point.
    OfEachPoint(Vec<usize>),
}

/// The sequences of a cell's single replicates, or of its instances where there are several.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ReplicateSlices {
    Each(Vec<Slice>),
    /// The first of sequences of one length that follow one another, of which a cell may have a
    /// thousand, and their number.
    Following(Slice, usize),
}

impl ReplicateSlices {
    /// These sequences, written in the shorter form if they are three or more, have one length and follow one another
    /// in a block. The script (`data.js`) tells the forms apart: the second value of the shorter one is a number.
    pub fn new(slices: Vec<Slice>) -> Self {
        match slices[..] {
            [first, _, _, ..] if slices.windows(2).all(|pair| follows(pair[0], pair[1])) => {
                Self::Following(first, slices.len())
            }
            _ => Self::Each(slices),
        }
    }
}

/// Whether a sequence is stored directly after another one of the same length.
fn follows(before: Slice, after: Slice) -> bool {
    let Slice(block, first, length) = before;
    after == Slice(block, first + length, length)
}

/// A prediction of a cell.
#[derive(Serialize)]
pub struct PredictionData {
    /// The index of the cell.
    pub cell: usize,
    /// The words before the curve's name: `first order for`.
    pub words: String,
    /// The index of its dash pattern.
    pub dash: usize,
    /// The indices of the cell's recorded rounds for which there are predictions; `None` if there is one for each.
    pub rows: Option<Slice>,
    pub y: Slice,
}

/// The points of a curve that tuning selected, which are drawn as rings.
#[derive(Serialize)]
pub struct SelectedData {
    /// The index of the curve among the cells of the figure.
    pub cell: usize,
    pub label: String,
    pub x: Slice,
    pub y: Slice,
    /// The lower and the upper ends of the band.
    pub ends: [Slice; 2],
    /// The size of the sample of each point.
    pub n: Vec<usize>,
}

/// A way to divide the cells of a figure into panels, and the curves that they form there.
#[derive(Serialize)]
pub struct ViewData {
    /// The names of what distinguishes the panels, settings and the quantity, with commas between.
    panels: String,
    /// The symbols of these.
    symbols: Vec<String>,
    /// The panels: the title of each, and the indices of its cells in the list of the figure's cells.
    groups: Vec<(String, Vec<usize>)>,
    curves: Vec<CurveData>,
    /// For each cell of the figure the index of its curve.
    of: Vec<usize>,
}

impl ViewData {
    /// The view as the analysis has found it.
    pub fn new(view: &View) -> Self {
        Self {
            panels: view.panels.join(","),
            symbols: view.panels.iter().map(|name| symbol(name)).collect(),
            groups: view.groups.clone(),
            curves: view.curves.iter().map(CurveData::new).collect(),
            of: view.curve_of_cell.clone(),
        }
    }
}

/// A curve: the parts of its name, for places that have room for one of them, and its style.
#[derive(Serialize)]
struct CurveData {
    algorithm: String,
    /// The settings that distinguish the curve from others of the algorithm.
    settings: String,
    family: usize,
    /// The index of the colour in the palette, or −1.
    color: isize,
    /// The index of the dash pattern.
    dash: usize,
    /// The index of the marker.
    mark: usize,
    /// The name with the exact values of the settings, where another curve has the same texts; `None` where the name
    /// consists of `algorithm` and `settings`.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

impl CurveData {
    /// A curve, whose style becomes indices into the styles of the page.
    fn new(curve: &Curve) -> Self {
        let Style { color, dash, marker } = curve.style;
        let settings: Vec<&str> = curve.settings.iter().map(|s| s.text.as_str()).collect();
        Self {
            algorithm: curve.algorithm.clone(),
            settings: settings.join(", "),
            family: curve.family,
            color: color_index(color),
            dash: dash.index(),
            mark: marker,
            label: curve.has_exact_values.then(|| curve.name()),
        }
    }
}

/// An index into the palette; −1 for the neutral colour.
pub fn color_index(color: Color) -> isize {
    match color {
        Color::Palette(index) => index as isize,
        Color::Neutral => -1,
    }
}

/// A figure of maps.
#[derive(Serialize)]
pub struct MapFigureData<'e> {
    pub id: &'e str,
    pub title: &'e str,
    /// The titles of the axes.
    pub x: &'e str,
    pub y: &'e str,
    /// What a reader may choose to see in the squares.
    pub choices: &'static [&'static str],
    pub maps: Vec<MapData<'e>>,
    pub legend: Vec<MapLegendData>,
}

/// An entry of the legend of maps.
#[derive(Serialize)]
pub struct MapLegendData {
    pub label: String,
    /// The index of the colour in the palette, or −1.
    pub color: isize,
    /// Whether the entry shows a filled square; otherwise it shows a line.
    pub patch: bool,
}

/// A map.
#[derive(Serialize)]
#[serde(untagged)]
pub enum MapData<'e> {
    /// A map whose squares have a text for each choice.
    Squares {
        title: &'e str,
        /// The values of the settings along the axes, as texts.
        x: &'e [String],
        y: &'e [String],
        squares: Vec<SquareData>,
        /// Lines between points in units of squares.
        edges: Vec<MapLine>,
    },
    /// A map whose squares have no texts.
    Dense {
        /// The values of the settings along the axes, as texts.
        x: &'e [String],
        y: &'e [String],
        /// The values of both axes as numbers; `x` and `y` are their texts.
        values: &'e [Vec<f64>; 2],
        squares: Vec<DenseSquareData<'e>>,
        /// The algorithms that cost least in some square.
        winners: Vec<String>,
    },
}

/// A square of a map.
#[derive(Serialize)]
pub struct SquareData {
    /// The place of the square: the indices of its values along the axes.
    pub x: usize,
    pub y: usize,
    /// The index of the colour in the palette, or −1.
    pub color: isize,
    pub opacity: f64,
    pub outlined: bool,
    /// A text for each choice.
    pub shows: Vec<String>,
}

/// A square of a dense map: the indices of its values along the x axis and the y axis, the index of the algorithm that
/// costs least among the winners of the map, how far ahead that algorithm is, and a remark.
pub type DenseSquareData<'e> = (usize, usize, Option<usize>, String, &'e str);
