//! The numbers of a page for its script.

use crate::evidence::Experiment;
use crate::report::page_data::page_data;

/// The data of the page's script, without `<`, so that nothing in it ends the element.
///
/// # Errors
/// If they cannot be written as JSON.
pub fn json(experiment: &Experiment<'_>) -> serde_json::Result<String> {
    let json = serde_json::to_string(&page_data(experiment))?;
    Ok(json.replace('<', "\\u003c"))
}
