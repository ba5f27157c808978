//! The amendments of a manifest as pages state them: what was changed after verdicts had been seen.

use super::claims::ClaimText;
use super::truncation::TextTable;
use exactfed_core::words::joined;
use exactfed_runner::manifest::amendment::Amendment;

/// Changes that the warning names; the table below it has all.
const NAMED: usize = 4;

/// What was changed: "replicates", or "margin of goes-on".
fn changed(amendment: &Amendment) -> String {
    match &amendment.claim {
        None => amendment.setting.clone(),
        Some(claim) => format!("{} of {claim}", amendment.setting),
    }
}

/// A warning that names what was changed; empty if there are no amendments.
pub fn warning(amendments: &[Amendment]) -> String {
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

/// All amendments.
pub fn table(amendments: &[Amendment]) -> TextTable {
    let text = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let row = |amendment: &Amendment| {
        let [from, to] =
            [&amendment.from, &amendment.to].map(|v| v.as_ref().map(|v| v.to_string()));
        vec![changed(amendment), text(from), text(to), text(amendment.reason.clone())]
    };
    TextTable::new(&["changed", "from", "to", "reason"], amendments.iter().map(row))
}

/// What the word in verdicts means.
pub const AMENDED: &str =
    "Amended: the claim, or a setting of its experiment, was changed after verdicts had been seen.";

/// Adds to the verdicts of the claims that were changed that they are of an amended claim.
pub fn mark(amendments: &[Amendment], claims: &mut [ClaimText]) {
    for claim in claims {
        claim.amended = amendments.iter().any(|amendment| amendment.concerns(&claim.stated.id));
        if claim.amended {
            claim.verdict_text.push_str(", amended");
        }
    }
}
