//! The page of an experiment as its templates read it: one section each file, of texts and numbers.
//!
//! *Invariant*: a section has no value without a type, so that what a template can name is what the
//! struct of its section declares.

pub mod amendments;
mod bounds;
mod claims;
mod errors;
mod experiment;
mod figures;
mod finding;
mod first_order;
mod formulas;
mod frontier;
mod headline;
mod heterogeneity;
mod looks;
mod manifest;
mod matrix;
mod missing;
mod notes;
mod ranking;
mod script_data;
mod tuning;

use super::manifest_texts::TextError;
use super::text_table::{TableFiles, TextTable};
use crate::chart::DrawError;
use crate::evidence::Experiment;
use amendments::AmendmentsSection;
use claims::ClaimsSection;
use experiment::ExperimentSection;
pub use experiment::planned_cells;
use figures::PageFigure;
use finding::Finding;
use formulas::FormulasSection;
use frontier::FrontierSection;
use heterogeneity::HeterogeneitySection;
use manifest::ManifestSection;
use notes::Notes;
use ranking::RankingSection;
use serde::Serialize;
use tuning::TuningSection;

/// The page of an experiment. A table without rows is not shown.
#[derive(Serialize)]
pub struct Page {
    pub experiment: ExperimentSection,
    pub manifest: ManifestSection,
    pub notes: Notes,
    pub finding: Finding,
    pub figures: Vec<PageFigure>,
    pub claims: ClaimsSection,
    pub amendments: AmendmentsSection,
    /// What tuning selected; `None` where nothing is tuned.
    pub tuning: Option<TuningSection>,
    pub ranking: RankingSection,
    pub frontier: FrontierSection,
    pub formulas: FormulasSection,
    /// The errors of the cells at the last round.
    pub errors: TextTable,
    /// The cells without results, where other cells have some.
    pub missing: TextTable,
    /// How far the measured biases are from the first order of the bias and other predictions.
    pub first_order: TextTable,
    /// The values of published bounds in the cells.
    pub bounds: TextTable,
    pub heterogeneity: HeterogeneitySection,
    /// The numbers of its figures, as JSON that a script element can hold.
    pub data: String,
}

/// Why the page of an experiment cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A figure cannot be drawn.
    #[error(transparent)]
    Figure(#[from] DrawError),
    /// The finding or the analysis of the manifest cannot be filled from the results.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The numbers for the page's script cannot be written as JSON.
    #[error(transparent)]
    Script(#[from] serde_json::Error),
}

impl Page {
    /// The page of an experiment. Tables that are too long for it, and tables for other programs, are handed to
    /// `files`.
    ///
    /// # Errors
    /// If a figure cannot be drawn, a text of the manifest cannot be filled, or the numbers are no JSON.
    pub fn new(experiment: &Experiment<'_>, files: &mut TableFiles<'_>) -> Result<Self, PageError> {
        Ok(Self {
            experiment: ExperimentSection::new(experiment),
            manifest: ManifestSection::new(experiment),
            notes: Notes::new(experiment),
            finding: Finding::new(experiment)?,
            figures: figures::draw(experiment)?,
            claims: ClaimsSection::new(experiment, files),
            amendments: AmendmentsSection::new(&experiment.plan.manifest.amendment),
            tuning: TuningSection::new(experiment, files),
            ranking: RankingSection::new(experiment, files),
            frontier: FrontierSection::new(&experiment.frontiers),
            formulas: FormulasSection::new(experiment),
            errors: errors::table(experiment),
            missing: missing::table(experiment),
            first_order: first_order::table(&experiment.first_order, files),
            bounds: bounds::table(&experiment.bounds, files),
            heterogeneity: HeterogeneitySection::new(&experiment.problems),
            data: script_data::json(experiment)?,
        })
    }
}
