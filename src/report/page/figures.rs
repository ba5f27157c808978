//! The figures of a page.

use crate::chart::{self, DrawError};
use crate::evidence::{Body, Experiment, band_name};
use serde::Serialize;

/// A figure with its caption.
#[derive(Serialize)]
pub struct PageFigure {
    pub id: String,
    pub title: String,
    pub caption: String,
    /// The words of the caption that say what the band shows, which the script replaces when a reader chooses another
    /// band; `None` where a reader cannot choose one.
    pub band: Option<String>,
    pub svg: String,
    /// Whether the page's script can draw the figure again, in other views, and save it: figures of curves, not of
    /// maps.
    pub live: bool,
}

/// Draws the figures of an experiment in the width of a page, in their order: as the files `figures/`*id*`.svg`, and as
/// what a page shows until its script draws the figures in the width of the window.
///
/// # Errors
/// If a figure cannot be drawn.
pub fn draw(experiment: &Experiment<'_>) -> Result<Vec<PageFigure>, DrawError> {
    let mut figures = Vec::new();
    for figure in &experiment.figures {
        figures.push(PageFigure {
            id: figure.id.clone(),
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            band: figure.exploration.as_ref().map(|shown| band_name(shown.band, shown.y[0])),
            svg: chart::svg(figure, chart::PAGE)?,
            live: matches!(figure.body, Body::Plot(_)),
        });
    }
    Ok(figures)
}
