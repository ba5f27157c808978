//! The data of figures as the script of a page reads them.

use super::numbers::{NumberBlocks, Slice};
use crate::chart::PanelFrame;
use crate::chart::style::{self, Marker};
use crate::evidence::{
    Band, Color, Curve, CurveValue, MapLine, SampleUnit, Scale, Style, View, symbol,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The data of a page.
#[derive(Serialize)]
pub struct PageData<'e> {
    pub numbers: NumberBlocks,
    pub styles: FigureStyles,
    pub figures: Vec<CurveFigureData<'e>>,
    pub maps: Vec<MapFigureData<'e>>,
    /// What a saved drawing says of itself.
    pub experiment: &'e str,
    pub question: Option<&'e str>,
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
    /// The colour of the names beside lines of each colour, on white paper.
    inks: Vec<(u8, u8, u8)>,
}

impl FigureStyles {
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
    /// The point whose value labels say, and whether they compare it with the lowest.
    pub labels: CurveValue,
    /// The index of the panel that is drawn large, if one is.
    pub large: Option<usize>,
    /// The predictions in the legend: name, and dash pattern.
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
    /// Whether a cell is a curve, or a point.
    pub rounds: bool,
    /// The quantity or setting on the x axis.
    pub x: String,
    /// What a reader may choose instead, the own one first: names, and titles of the axis.
    pub xs: Vec<(String, String)>,
    /// Whether the points have the band that they have, and no other.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    pub band: BandName,
    /// The bands that a reader may choose, of which each cell has the ends in this order.
    pub bands: Vec<BandName>,
    /// What each number of a sample is of.
    pub unit: SampleUnit,
    /// The points that were selected among those of a curve, in figures of fixed points.
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

/// A cell of a figure, or a curve in its place.
#[derive(Serialize)]
pub struct CellData {
    pub id: String,
    /// Its name in addresses: its label with every setting that varies.
    pub name: String,
    pub n: SampleSize,
    /// How many runs diverged.
    pub diverged: usize,
    pub x: BTreeMap<String, Slice>,
    pub mean: Slice,
    /// By what labels compare it with other curves, where that is not the mean.
    pub geometric: Option<Slice>,
    /// The lower and the upper ends of each band that the figure offers.
    pub bands: Vec<[Slice; 2]>,
    /// Each number of the samples by itself, until a run diverged.
    pub runs: ReplicateSlices,
}

/// The sizes of the samples of a cell.
#[derive(Serialize)]
#[serde(untagged)]
pub enum SampleSize {
    OfAllPoints(usize),
    OfEachPoint(Vec<usize>),
}

/// The sequences of replicates.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ReplicateSlices {
    Each(Vec<Slice>),
    /// The first of sequences of one length that follow one another, of which a cell may have a
    /// thousand, and their number.
    Following(Slice, usize),
}

impl ReplicateSlices {
    pub fn new(slices: Vec<Slice>) -> Self {
        let follow = |pair: &[Slice]| {
            let Slice(block, first, length) = pair[0];
            pair[1] == Slice(block, first + length, length)
        };
        match slices[..] {
            [first, _, _, ..] if slices.windows(2).all(follow) => {
                Self::Following(first, slices.len())
            }
            _ => Self::Each(slices),
        }
    }
}

/// A prediction of a cell.
#[derive(Serialize)]
pub struct PredictionData {
    /// The index of the cell.
    pub cell: usize,
    /// The words before the curve's name: `first order for`.
    pub words: String,
    pub dash: usize,
    /// Its rounds among the cell's; all of them if there is none.
    pub rows: Option<Slice>,
    pub y: Slice,
}

/// Selected points of a curve.
#[derive(Serialize)]
pub struct SelectedData {
    /// The index of the curve.
    pub cell: usize,
    pub label: String,
    pub x: Slice,
    pub y: Slice,
    pub ends: [Slice; 2],
    pub n: Vec<usize>,
}

/// Panels and their curves, as the analysis has assigned them.
#[derive(Serialize)]
pub struct ViewData {
    panels: String,
    symbols: Vec<String>,
    /// Titles, and indices of the cells.
    groups: Vec<(String, Vec<usize>)>,
    curves: Vec<CurveData>,
    /// The curve of each cell.
    of: Vec<usize>,
}

impl ViewData {
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
    settings: String,
    family: usize,
    color: isize,
    dash: usize,
    mark: usize,
    /// The name, unless it is that of the parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

impl CurveData {
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
    pub color: isize,
    pub patch: bool,
}

/// A map.
#[derive(Serialize)]
#[serde(untagged)]
pub enum MapData<'e> {
    /// A map whose squares have a text for each choice.
    Squares {
        title: &'e str,
        x: &'e [String],
        y: &'e [String],
        squares: Vec<SquareData>,
        /// Lines between points in units of squares.
        edges: Vec<MapLine>,
    },
    /// A map whose squares have no texts.
    Dense {
        x: &'e [String],
        y: &'e [String],
        values: &'e [Vec<f64>; 2],
        squares: Vec<DenseSquareData<'e>>,
        /// Who is best somewhere.
        winners: Vec<String>,
    },
}

/// A square of a map.
#[derive(Serialize)]
pub struct SquareData {
    pub x: usize,
    pub y: usize,
    pub color: isize,
    pub opacity: f64,
    pub outlined: bool,
    /// A text for each choice.
    pub shows: Vec<String>,
}

/// A square of a dense map: its place, the number of who is best, how far ahead, and a remark.
pub type DenseSquareData<'e> = (usize, usize, Option<usize>, String, &'e str);
