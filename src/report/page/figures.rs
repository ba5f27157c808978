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
    /// What the caption says of the band, which another view changes; `None` where no band is drawn
    /// by the page's script.
    pub band: Option<&'static str>,
    pub svg: String,
    /// Whether the page's script draws other views of it, and saves them.
    pub live: bool,
}

/// Draws the figures of an experiment.
///
/// # Errors
/// If one cannot be drawn.
pub fn draw(experiment: &Experiment<'_>) -> Result<Vec<PageFigure>, DrawError> {
    let mut figures = Vec::new();
    for figure in &experiment.figures {
        figures.push(PageFigure {
            id: figure.id.clone(),
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            band: figure.exploration.as_ref().map(|shown| band_name(shown.band)),
            svg: chart::svg(figure, chart::PAGE)?,
            live: matches!(figure.body, Body::Plot(_)),
        });
    }
    Ok(figures)
}
