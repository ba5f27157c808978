//! What a page notes on results that it does not show.

use crate::evidence::Experiment;
use serde::Serialize;

/// What the results contain besides the cells of a page, and what is not computed.
#[derive(Serialize)]
pub struct Notes {
    /// Sentences on results of other cells that affect the guarantee of the verdicts, such as other numbers of
    /// replicates; empty if there are none.
    pub warning: String,
    /// A sentence on results of cells with other settings, which do not affect the verdicts; empty if there are none.
    pub other_cells: String,
    /// The theory that is not computed at this size, one sentence each.
    pub not_computed: Vec<String>,
}

impl Notes {
    /// The notes on an experiment. Both notes on other results are empty if whoever analysed it has removed what the
    /// results contain besides its cells, as for pages that depend on manifests alone.
    pub fn new(experiment: &Experiment<'_>) -> Self {
        Self {
            warning: experiment.unplanned.warning(),
            other_cells: experiment.unplanned.other_settings(),
            not_computed: experiment.not_computed.clone(),
        }
    }
}
