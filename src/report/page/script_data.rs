//! The numbers of a page for its script.

use crate::evidence::Experiment;
use crate::report::page_data::page_data;

/// The data that the script of a page reads, as JSON without `<`, so that no text in it ends the script element.
///
/// # Errors
/// If the data cannot be written as JSON.
pub fn json(experiment: &Experiment<'_>) -> serde_json::Result<String> {
    let json = serde_json::to_string(&page_data(experiment))?;
    Ok(json.replace('<', "\\u003c"))
}
