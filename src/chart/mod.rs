//! Figures as SVG: the only user of plotters.
//!
//! Axes are drawn first and every series is a layer of its own above them, so
//! that a page can hide one. Plotters draws at four times the size, since its
//! coordinates are whole pixels, and without fonts: text is left to the viewer.
//!
//! *Invariant*: values that are not finite or out of range are omitted and interrupt a curve.
//!
//! A file imports from files of earlier lines, and none imports from this one:
//!
//! 1. `font`, `axis`, `style`, `layout`, `compact`, `label_values`: widths of texts, axes, colours,
//!    places of panels, what plotters draws in fewer characters, and what labels say;
//! 2. `drawing`, `fitted_text`, `labels`, `legend`, `export`: what all drawings share, texts that fit, labels of
//!    curves, the legend, and drawings as PDF and PNG;
//! 3. `panel`, `map`: the inside of a panel;
//! 4. `figure`, `thumbnail`: whole figures, and figures in miniature.

pub mod axis;
mod compact;
mod drawing;
pub mod export;
mod figure;
mod fitted_text;
pub mod font;
mod label_values;
mod labels;
mod layout;
mod legend;
mod map;
mod panel;
pub mod style;
pub mod thumbnail;

pub use figure::{DrawError, PanelFrame, frames, svg, svg_of_size};
pub use layout::PAGE;
pub use map::map_values;

#[cfg(test)]
pub mod tests;
