//! The verdicts of claims as bars, by publication and by dispute.

use super::claims::{self, ClaimText};
use crate::stats::verdict::Verdict;
use exactfed_core::sources;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many of some claims have each verdict, drawn as a bar with a segment for each verdict.
#[derive(Serialize)]
pub struct VerdictBar {
    name: String,
    /// The key of the publication on which the claims are; empty for other claims, and for the claims of a dispute.
    key: &'static str,
    counts: Vec<(Verdict, usize)>,
    /// For each verdict that occurs its segment: the left end and the width, in percent of the longest bar.
    segments: Vec<(Verdict, f64, f64)>,
}

impl VerdictBar {
    /// A bar of these counts, in a drawing whose longest bar has `longest` claims, at least 1, and fills the width.
    fn new(name: String, key: &'static str, counts: Vec<(Verdict, usize)>, longest: usize) -> Self {
        let unit = 100.0 / longest as f64;
        let mut left = 0.0;
        let mut segments = Vec::new();
        for (verdict, count) in &counts {
            let width = *count as f64 * unit;
            segments.push((*verdict, left, width));
            left += width;
        }
        Self { name, key, counts, segments }
    }
}

/// A bar for each publication whose claims there are, and one for the claims on other sources. A claim counts for the
/// publication that its source names first.
pub fn bars_by_publication(claims: &[ClaimText]) -> Vec<VerdictBar> {
    let mut counted = Vec::new();
    for source in sources::sources().iter().map(Some).chain([None]) {
        let key = source.map(|source| source.key.as_str());
        let counts = claims::counts(claims.iter().filter(|claim| first_key(claim) == key));
        if !counts.is_empty() {
            counted.push((source, counts));
        }
    }
    let totals = counted.iter().map(|(_, counts)| counts.iter().map(|(_, count)| count).sum());
    let longest = totals.max().unwrap_or(1);
    let mut bars = Vec::new();
    for (source, counts) in counted {
        bars.push(match source {
            Some(source) => {
                let name = format!("{} ({})", source.authors_and_year(), source.key);
                VerdictBar::new(name, &source.key, counts, longest)
            }
            None => VerdictBar::new("other sources".into(), "", counts, longest),
        });
    }
    bars
}

/// The key of the publication that a claim's source names first; `None` if it names no known publication.
fn first_key(claim: &ClaimText) -> Option<&'static str> {
    let source = claim.stated.source.as_deref().unwrap_or_default();
    let mut words = source.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| sources::named_in(word).first().map(|source| source.key.as_str()))
}

/// A disagreement between or within sources: claims whose manifests give them the same `dispute`.
#[derive(Serialize)]
pub struct Dispute {
    /// What each side states, with the claims that state it.
    sides: Vec<(String, Vec<ClaimText>)>,
    /// The verdicts of the claims of all sides.
    bar: VerdictBar,
    /// Whether a claim of a side is refuted.
    has_refuted: bool,
}

/// The disputes that claims name, in the order of their names. Several claims may be on one, also of different
/// experiments.
pub fn disputes(claims: &[ClaimText]) -> Vec<Dispute> {
    let mut all: BTreeMap<&str, Vec<&ClaimText>> = BTreeMap::new();
    for claim in claims {
        if let Some(dispute) = claim.stated.dispute.as_ref().filter(|name| !name.is_empty()) {
            all.entry(dispute).or_default().push(claim);
        }
    }
    let longest = all.values().map(Vec::len).max().unwrap_or(1);
    all.into_iter().map(|(name, claims)| Dispute::new(name, &claims, longest)).collect()
}

impl Dispute {
    /// The dispute of this name and of these claims; the longest bar of all disputes has `longest` claims. A claim that
    /// names no side is a side of its own, by its statement.
    fn new(name: &str, claims: &[&ClaimText], longest: usize) -> Self {
        let counts = claims::counts(claims.iter().copied());
        let mut sides: Vec<(String, Vec<ClaimText>)> = Vec::new();
        for claim in claims.iter().copied() {
            let side = claim.stated.side.as_deref().unwrap_or(&claim.stated.statement);
            match sides.iter_mut().find(|(other, _)| *other == side) {
                Some((_, stating)) => stating.push(claim.clone()),
                None => sides.push((side.to_owned(), vec![claim.clone()])),
            }
        }
        Self {
            sides,
            has_refuted: counts.iter().any(|(verdict, _)| *verdict == Verdict::Refuted),
            bar: VerdictBar::new(name.to_owned(), "", counts, longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_a_bar_fill_its_share_of_the_width() {
        let counts = vec![(Verdict::Supported, 3), (Verdict::Refuted, 1)];
        let expected = [(Verdict::Supported, 0.0, 37.5), (Verdict::Refuted, 37.5, 12.5)];
        assert_eq!(VerdictBar::new(String::new(), "", counts, 8).segments, expected);
    }
}
