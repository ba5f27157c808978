//! The claims of a page, with their verdicts.

use super::{amendments, looks};
use crate::evidence::Experiment;
use crate::evidence::claims::JudgedClaim;
use crate::report::claims::{self, ClaimText, estimate, number_of};
use crate::report::text_table::{TableFiles, TextCell, TextTable};
use crate::stats::verdict::Verdict;
use exactfed_runner::manifest::claim::Refutes;
use serde::Serialize;

/// The claims of an experiment.
#[derive(Serialize)]
pub struct ClaimsSection {
    pub list: Vec<ClaimText>,
    /// How many have each verdict.
    pub counts: Vec<(Verdict, usize)>,
    /// At which looks they were judged, and on which noise, where replicates were added in planned
    /// looks; empty otherwise.
    pub looks: String,
    /// Whether some claim was tested, and all that were are on exact numbers.
    pub exact: bool,
    /// The head of the column of estimates, which says whether they have intervals.
    pub head: &'static str,
    /// What an earlier version of the page supported and this one does not.
    pub withdrawn: TextTable,
}

impl ClaimsSection {
    /// The section of an experiment's claims; `files` takes the tables that are too long for the page.
    pub fn new(experiment: &Experiment<'_>, files: &mut TableFiles<'_>) -> Self {
        let name = &experiment.plan.experiment;
        let taken_looks = experiment.looks.as_ref();
        let mut list: Vec<ClaimText> =
            experiment.claims.iter().map(|claim| claims::claim(name, claim, files)).collect();
        looks::add_remarks(taken_looks, &mut list);
        amendments::mark(&experiment.plan.manifest.amendment, &mut list);
        let mut sentences: Vec<String> = taken_looks.map(looks::sentence).into_iter().collect();
        // Where the results also contain runs on other noise: a sentence that says on which noise the verdicts rest.
        sentences.extend(experiment.unplanned.sole_noise());
        let exact = are_exact(&list);
        Self {
            counts: claims::counts(&list),
            looks: sentences.join(" "),
            exact,
            head: claims::estimate_head(exact),
            withdrawn: withdrawn(&experiment.claims),
            list,
        }
    }
}

/// Whether some claim was tested, and nothing that was tested has a sampling error.
fn are_exact(claims: &[ClaimText]) -> bool {
    let mut tested = claims.iter().filter(|claim| claim.verdict != Verdict::NotTested).peekable();
    tested.peek().is_some() && tested.all(|claim| claim.exact)
}

/// The claims that an earlier version of the page supported and this one withdraws: the limit that
/// each stated, and the number that is farthest beyond it.
fn withdrawn(claims: &[JudgedClaim<'_>]) -> TextTable {
    let is_withdrawn = |claim: &&JudgedClaim<'_>| claim.common.refutes == Some(Refutes::Withdrawn);
    let heads = ["statement", "it claimed", "found", "where"];
    TextTable::new(&heads, claims.iter().filter(is_withdrawn).map(withdrawn_row))
}

/// The row of a withdrawn claim. What it claimed is the limits of its region, but not the limit 0, which every ratio
/// keeps.
fn withdrawn_row(claim: &JudgedClaim<'_>) -> Vec<TextCell> {
    let text = number_of(claim);
    let (low, high) = claim.region();
    // A ratio is at least 0 whatever the claim says.
    let limits: Vec<String> = [(low, "at least"), (high, "at most")]
        .iter()
        .filter(|(limit, _)| limit.is_finite() && *limit != 0.0)
        .map(|(limit, words)| format!("{words} {}", text(*limit)))
        .collect();
    vec![
        claim.common.statement.clone().into(),
        limits.join(", ").into(),
        estimate(claim, claim.estimate()),
        claim.nearest().map_or_else(TextCell::dash, |part| part.name.clone().into()),
    ]
}
