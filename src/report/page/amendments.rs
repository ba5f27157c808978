//! The amendments of a manifest as pages state them: what was changed after verdicts had been seen.

use crate::report::claims::ClaimText;
use crate::report::text_table::{TextCell, TextTable};
use exactfed_core::words::joined;
use exactfed_runner::manifest::amendment::{AmendedValue, Amendment};
use serde::Serialize;

/// The most changes that the warning names; the table below it has all.
const NAMED: usize = 4;

/// What was changed: "replicates", or "margin of goes-on".
fn changed(amendment: &Amendment) -> String {
    match &amendment.claim {
        None => amendment.setting.clone(),
        Some(claim) => format!("{} of {claim}", amendment.setting),
    }
}

/// The amendments of a manifest.
#[derive(Serialize)]
pub struct AmendmentsSection {
    /// A warning that names what was changed; empty if there are no amendments.
    pub warning: String,
    pub table: TextTable,
}

impl AmendmentsSection {
    /// The section on these amendments.
    pub fn new(amendments: &[Amendment]) -> Self {
        Self { warning: warning(amendments), table: table(amendments) }
    }
}

/// A warning that names what was changed after verdicts had been seen, and what follows; empty without amendments.
fn warning(amendments: &[Amendment]) -> String {
    let all: Vec<String> = amendments.iter().map(changed).collect();
    let mut named: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
    let more = format!("{} more", all.len().saturating_sub(NAMED));
    if all.len() > NAMED {
        named.push(&more);
    }
    if named.is_empty() {
        return String::new();
    }
    format!(
        "After verdicts had been seen, the manifest was amended: {}. Choosing the number of replicates, the seed, settings or claims after seeing verdicts voids their error guarantee (optional stopping).",
        joined(&named)
    )
}

/// The table of the amendments: what was changed, the values before and after, and why.
fn table(amendments: &[Amendment]) -> TextTable {
    let rows = amendments.iter().map(|amendment| {
        vec![
            changed(amendment).into(),
            value_cell(amendment.from.as_ref()),
            value_cell(amendment.to.as_ref()),
            amendment.reason.as_deref().map_or_else(TextCell::dash, TextCell::from),
        ]
    });
    TextTable::new(&["changed", "from", "to", "reason"], rows)
}

/// A value before or after a change; a dash if the amendment does not state it.
fn value_cell(value: Option<&AmendedValue>) -> TextCell {
    match value {
        Some(AmendedValue::Number(number)) => {
            TextCell::stating(*number, AmendedValue::Number(*number).to_string())
        }
        Some(text) => text.to_string().into(),
        None => TextCell::dash(),
    }
}

/// The sentence that explains the word "amended" in verdicts.
pub const AMENDED: &str =
    "Amended: the claim, or a setting of its experiment, was changed after verdicts had been seen.";

/// Marks the claims that an amendment concerns as amended, also in the text of their verdicts, which is extended:
/// claims are marked once. An amendment of a setting of the experiment concerns all claims.
pub fn mark(amendments: &[Amendment], claims: &mut [ClaimText]) {
    for claim in claims {
        claim.amended = amendments.iter().any(|amendment| amendment.concerns(&claim.stated.id));
        if claim.amended {
            claim.verdict_text.push_str(", amended");
        }
    }
}
