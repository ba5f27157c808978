//! The data of a figure whose points do not belong to cells of the experiment, such as exact values, the candidates of
//! a search and profiles: each curve of each panel takes the place of a cell without runs, with the band that it has.

use super::figure_data::{
    BandName, CellData, CurvesData, PredictionData, ReplicateSlices, SampleSize, SelectedData,
    ViewData,
};
use super::numbers::Numbers;
use crate::evidence::{Line, Plot, Point, SampleUnit, Series, View, words_before};

/// What was collected from the panels so far.
#[derive(Default)]
struct FixedParts {
    cells: Vec<CellData>,
    theory: Vec<PredictionData>,
    selected: Vec<SelectedData>,
    view: View,
}

/// Whether a measured line has a band at some point.
fn has_band(series: &Series) -> bool {
    series.line.is_measured() && series.points.iter().any(|p| p.low.is_finite())
}

/// The curves of a figure whose points belong to no cells, as the script of a page reads them; their numbers are added
/// to `numbers`. The panels are the only view, so that a page never shows its name.
pub fn fixed_figure(plot: &Plot, numbers: &mut Numbers) -> CurvesData {
    let mut parts = FixedParts::default();
    // Any name would do: with a single view nothing shows it.
    parts.view.panels.push("clients".into());
    for panel in &plot.panels {
        let first = parts.cells.len();
        for series in &panel.series {
            parts.add(series, first, &panel.title, numbers);
        }
        parts.view.groups.push((panel.title.clone(), (first..parts.cells.len()).collect()));
    }
    let is_banded = plot.series().any(has_band);
    let band = if is_banded { "given" } else { "none" };
    CurvesData {
        // Each entry of `cells` is a whole curve, as a cell over its rounds is.
        rounds: true,
        x: "x".into(),
        xs: vec![("x".into(), plot.x.clone())],
        fixed: true,
        band: BandName::Fixed(band),
        bands: if is_banded { vec![BandName::Fixed(band)] } else { Vec::new() },
        unit: SampleUnit::Run,
        selected: Some(parts.selected),
        cells: parts.cells,
        views: vec![ViewData::new(&parts.view)],
        theory: parts.theory,
        references: Vec::new(),
    }
}

impl FixedParts {
    /// Adds a line of the panel with this title. The panel's curves are the entries of `cells` from index `first` on:
    /// one for each measured or exact line. A prediction or a ring belongs to the line of its curve that comes before
    /// it in the panel, and is left out if there is none; reference lines, which belong to no curve, are left out too.
    fn add(&mut self, series: &Series, first: usize, title: &str, numbers: &mut Numbers) {
        let Some(curve) = series.line.curve() else { return };
        let View { curves, curve_of_cell, .. } = &mut self.view;
        let place = curves.iter().position(|known| known == curve).unwrap_or(curves.len());
        if place == curves.len() {
            curves.push(curve.clone());
        }
        let mut column = |value: fn(&Point) -> f64| numbers.add(series.points.iter().map(value));
        let x = column(|p| p.x);
        let y = column(|p| p.y);
        // Candidates that were stopped have fewer runs than the others.
        let n = || series.points.iter().map(|p| p.n).collect();
        let cell = curve_of_cell[first..].iter().position(|curve| *curve == place);
        match (&series.line, cell.map(|place_in_panel| first + place_in_panel)) {
            (Line::Predicted(_, prediction), Some(cell)) => self.theory.push(PredictionData {
                cell,
                words: words_before(*prediction),
                dash: series.line.style().dash.index(),
                rows: None,
                y,
            }),
            (Line::Selected(_), Some(cell)) => self.selected.push(SelectedData {
                cell,
                label: series.line.name(),
                x,
                y,
                ends: [column(|p| p.low), column(|p| p.high)],
                n: n(),
            }),
            (Line::Measured(_) | Line::Exact(_), _) => {
                let mut bands = Vec::new();
                if has_band(series) {
                    bands.push([column(|p| p.low), column(|p| p.high)]);
                }
                let name = format!("{}, {title}", curve.name());
                self.cells.push(CellData {
                    id: name.clone(),
                    name,
                    n: SampleSize::OfEachPoint(n()),
                    diverged: series.diverged,
                    x: [("x".to_owned(), x)].into(),
                    mean: y,
                    geometric: None,
                    bands,
                    runs: ReplicateSlices::Each(Vec::new()),
                });
                curve_of_cell.push(place);
            }
            _ => {}
        }
    }
}
