//! Claims, bounds and disagreements as the templates see them: strings only.

use super::interval_chart;
use super::number_text::{self, NumberText, counted, level_text, short};
use super::text_table::{TableFiles, TextCell, TextTable};
use crate::compare::SideClaim;
use crate::evidence::claims::{ClaimPart, Estimate, EstimateScale, JudgedClaim};
use crate::stats::ROUNDING_FLOOR;
use crate::stats::verdict::{Doubt, LEVEL, Region, Verdict};
use exactfed_core::sources;
use exactfed_runner::manifest::claim::ClaimKeys;
use serde::Serialize;

/// A claim with its verdict.
#[derive(Clone, Serialize)]
pub struct ClaimText {
    #[serde(flatten)]
    pub stated: ClaimKeys,
    /// Name of the experiment.
    pub page: String,
    /// The source that the claim names, with authors and year.
    pub cited: String,
    /// The keys of the publications that the source names.
    pub keys: Vec<&'static str>,
    pub verdict: Verdict,
    /// The verdict, and whether it was expected.
    pub verdict_text: String,
    /// Whether it, or a setting of its experiment, was changed after verdicts had been seen.
    pub amended: bool,
    /// What was tested, as a formula.
    pub formula: String,
    /// The estimate with its interval.
    pub estimate: String,
    /// The number of the estimate, by which tables are sorted; `None` where nothing was tested.
    pub value: Option<f64>,
    /// The p-value, adjusted for all claims of the page; a dash where there is none.
    pub p: String,
    /// The confidence of an interval that agrees with the verdict; a dash where there is no p-value.
    pub confidence: String,
    /// The size of the sample on which the evidence rests.
    pub n: usize,
    /// The noun for a value of the sample: "run", or "instance" of the problem.
    pub unit: &'static str,
    /// Whether nothing that was tested has a sampling error.
    pub exact: bool,
    /// The largest ratio of what was measured to a published bound, where the claim is supported because the bound is
    /// far above, so that it binds nowhere ([`JudgedClaim::slack`]); `None` for other claims.
    pub slack: Option<f64>,
    /// For a supported claim, the numbers that would have been refuted, in words; empty for other claims.
    pub resolution: String,
    /// What was tested, and what could not be.
    pub remarks: Vec<String>,
    /// The statements of sources that the claim is about: the name of each, and whether the cells meet its conditions,
    /// in a few words and in a sentence.
    pub conditions: Vec<(&'static str, &'static str, String)>,
    /// The cells or pairs of cells that the claim was tested on, with the verdict on each by itself; no rows if there
    /// is only one.
    pub parts: TextTable,
    /// A drawing of the interval and of the numbers for which the claim holds, as SVG; empty if nothing was tested.
    pub chart: String,
}

/// The estimate of a claim on a side of a comparison, with its interval if it has one; `None` where the side does not
/// have the claim, or the claim has no finite estimate.
pub fn side_estimate(claim: Option<&SideClaim>) -> Option<String> {
    let SideClaim { estimate, low, high, .. } = claim.filter(|claim| claim.estimate.is_finite())?;
    Some(number_text::interval(*estimate, (*low, *high)))
}

/// The function that writes the estimates and the limits of a claim: counts as whole numbers, others with three digits.
pub fn number_of(claim: &JudgedClaim<'_>) -> NumberText {
    if claim.scale == EstimateScale::Counted { counted } else { short }
}

/// An estimate that belongs to a claim, or to a part of it, with its interval if it has one.
pub fn estimate(claim: &JudgedClaim<'_>, estimate: Estimate) -> TextCell {
    let text = number_text::estimate_text(number_of(claim), estimate, claim.scale);
    TextCell::stating(estimate.value, text)
}

/// The head of a column of estimates; `exact` says that no estimate in it has a sampling error, so that none has an
/// interval.
pub fn estimate_head(exact: bool) -> &'static str {
    if exact { "value" } else { "estimate, 95 % interval" }
}

/// The keys of the publications that the text of a manifest's `source` names.
pub fn keys(source: &str) -> Vec<&'static str> {
    sources::named_in(source).iter().map(|publication| publication.key.as_str()).collect()
}

/// A judged claim as texts, for the page of the experiment called `page`. A table of its parts that is too long for the
/// page is handed to `files`. Two things are added later, since they concern all claims of the page: whether it is
/// amended ([`mark`](super::page::amendments::mark)), and at which look it was decided (`add_remarks` of
/// `page::looks`).
pub fn claim(page: &str, claim: &JudgedClaim<'_>, files: &mut TableFiles<'_>) -> ClaimText {
    let common = claim.common;
    let judgement = claim.judgement;
    let source = common.source.as_deref().unwrap_or_default();
    let verdict = judgement.verdict.name();
    let slack = claim.slack();
    let is_surprising =
        claim.expected() == Verdict::Supported || claim.expected() != judgement.verdict;
    let shown_estimate = estimate(claim, claim.estimate());
    ClaimText {
        stated: common.clone(),
        page: page.to_owned(),
        cited: sources::cited(source),
        keys: keys(source),
        verdict: judgement.verdict,
        verdict_text: match (is_surprising, slack, common.refutes) {
            (true, Some(ratio), _) => {
                format!("{verdict}, not binding (largest ratio {})", short(ratio))
            }
            (true, None, _) => verdict.to_owned(),
            (false, _, Some(what)) => format!("{verdict}, as expected: {}", what.words()),
            (false, _, None) => format!("{verdict}, as expected"),
        },
        amended: false,
        formula: claim.formula.clone(),
        estimate: shown_estimate.text,
        value: shown_estimate.number,
        p: probability(claim.p().unwrap_or(f64::NAN)),
        confidence: claim.p().map_or_else(|| "–".to_owned(), |_| confidence(judgement.level)),
        n: claim.n,
        unit: claim.unit.word(),
        exact: claim.is_exact(),
        slack,
        resolution: (claim.resolution)
            .map(|found| resolution(found, number_of(claim)))
            .unwrap_or_default(),
        remarks: remarks(claim),
        conditions: (claim.conditions.iter())
            .map(|found| (found.statement.name.as_str(), found.summary(), found.sentence()))
            .collect(),
        parts: parts(claim, files),
        chart: interval_chart::svg(claim.estimate(), claim.region(), claim.scale, number_of(claim)),
    }
}

/// The numbers beyond the ends of a supported claim's resolution, which would have been refuted with a power of 80 % at
/// least, in words; empty if no end is finite.
fn resolution(found: Region, text: NumberText) -> String {
    let (low, high) = found;
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("below {} or above {}", text(low), text(high)),
        (true, false) => format!("below {}", text(low)),
        (false, true) => format!("above {}", text(high)),
        (false, false) => String::new(),
    }
}

/// Remarks on a verdict: what it was tested on, whether more runs would decide it, and what the runs do not show.
fn remarks(claim: &JudgedClaim<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(remark_on_parts(claim));
    if let Some(reason) = &claim.common.reason {
        remarks.push(format!("expected to be {}: {reason}", claim.expected().name()));
    }
    if claim.judgement.verdict == Verdict::Inconclusive {
        remarks.push(remark_on_needed_sample(claim));
    }
    remarks.extend(remark_on_doubt(claim));
    const MOST_NOTES: usize = 4;
    for (notes, what) in [(&claim.untested, "not tested"), (&claim.outside, "outside the claim")] {
        remarks.extend(notes.iter().take(MOST_NOTES).map(|note| format!("{what}: {note}")));
        if notes.len() > MOST_NOTES {
            remarks.push(format!("{what}: {} more", notes.len() - MOST_NOTES));
        }
    }
    remarks
}

/// What would decide an inconclusive claim, with a probability of 80 % if its estimate is right: about how many values
/// a sample would need, those that were run among them, or that no number does. The values are runs, or instances where
/// the manifest has several. A claim on frontiers or maps rests on no sample (n = 0), since their costs are exact: only
/// points that were not tested leave it inconclusive.
fn remark_on_needed_sample(claim: &JudgedClaim<'_>) -> String {
    let unit = claim.unit.word();
    match claim.needed {
        _ if claim.n == 0 => "it needs the points that are not tested".into(),
        _ if claim.doubt == Doubt::Equal && claim.is_exact() => {
            format!("nothing in the {unit}s is random: no number of {unit}s decides it")
        }
        Some(n) => format!("about {} {unit}s would decide it", two_digits(n)),
        None => format!("more {unit}s may decide it; their number cannot be estimated"),
    }
}

/// Why the interval of a claim is wider than usual, or what its verdict assumes or leaves open; `None` if nothing is
/// known against its sample, and where the sample is too small to show a tail but nothing is decided that assumes one.
fn remark_on_doubt(claim: &JudgedClaim<'_>) -> Option<String> {
    let unit = claim.unit.word();
    match claim.doubt {
        Doubt::Heavy => Some(
            "some errors have a heavier tail than a lognormal distribution: their limits are twice as far from the estimate".to_owned(),
        ),
        Doubt::Skewed => Some(
            "the vectors are few, or skewed for their number: the radius of the interval is three times as large".to_owned(),
        ),
        Doubt::Equal if claim.parts.iter().any(ClaimPart::is_of_zeros) => Some(format!(
            "both sides of some part are zero to rounding (squared errors below {}, norms below {}), so that they have no ratio",
            level_text(ROUNDING_FLOOR),
            level_text(ROUNDING_FLOOR.sqrt())
        )),
        Doubt::Equal => {
            let included = if claim.judgement.verdict == Verdict::Supported {
                ", and what is supported includes equality"
            } else {
                ""
            };
            Some(format!(
                "the two sides are equal in every {unit} of some part, up to rounding: neither is less than the other{included}"
            ))
        }
        Doubt::Few if claim.is_decided() => Some(format!(
            "the {unit}s are too few to show how heavy the tail of the errors is: the verdict assumes that it is no heavier than that of a lognormal distribution"
        )),
        Doubt::Few | Doubt::None => None,
    }
}

/// For a claim that was tested on several parts (cells, pairs of cells, rounds), on which of them its estimate is, and
/// which of them decides the verdict; `None` for a claim that was tested on one, or not at all. Where no end of a
/// region is known, nothing is said of how near the estimate is to a limit.
fn remark_on_parts(claim: &JudgedClaim<'_>) -> Option<String> {
    let (nearest, weakest) = claim.nearest().zip(claim.weakest())?;
    let count = claim.parts.len();
    let (low, high) = nearest.region;
    let margin = if regions_differ(&claim.parts) && !high.is_nan() {
        format!(", where it may be at most {}", number_of(claim)(high))
    } else {
        String::new()
    };
    let decides = if std::ptr::eq(nearest, weakest) || claim.is_exact() {
        String::new()
    } else {
        format!("; least certain is {}: {}", named(weakest), estimate(claim, weakest.estimate).text)
    };
    let place = match nearest.estimate.value {
        _ if low.is_nan() => "",
        value if (low..=high).contains(&value) => ", the nearest to the limit",
        _ => ", the farthest beyond the limit",
    };
    (count > 1).then(|| {
        let name = named(nearest);
        format!("must hold for each of {count}; the estimate is for {name}{place}{margin}{decides}")
    })
}

/// The name of a part in a sentence on all parts.
fn named(part: &ClaimPart) -> String {
    if part.name.is_empty() { "one of them".to_owned() } else { part.name.clone() }
}

/// The size of a sample, rounded up to two digits: an estimate of how many runs are needed is not more exact.
fn two_digits(n: u64) -> u64 {
    let unit = 10_u64.pow(n.max(1).ilog10().saturating_sub(1));
    n.div_ceil(unit).saturating_mul(unit)
}

/// Whether not all of these parts of a claim have the same numbers for which it holds, as where a margin grows with a
/// setting. Parts that were judged without a comparison with a limit, such as 0 against 0, have no such numbers (their
/// region is NaN) and are left out.
fn regions_differ(parts: &[ClaimPart]) -> bool {
    let mut known = parts.iter().map(|part| part.region).filter(|(low, _)| !low.is_nan());
    let Some((low, high)) = known.next() else { return false };
    known.any(|other| !is_same_limit(low, other.0) || !is_same_limit(high, other.1))
}

/// Whether two limits, which may be infinite, are the same number. Limits of parts without a sampling error are wider
/// by a rounding error, which no reader sees.
fn is_same_limit(a: f64, b: f64) -> bool {
    const ROUNDING: f64 = 1e-8;
    let are_finite = a.is_finite() && b.is_finite();
    a == b || (are_finite && (a - b).abs() <= ROUNDING * a.abs().max(b.abs()))
}

/// A table with a row for each part of a claim, if it has several; without rows if it has one. Where the limits of the
/// parts differ, the table has a column of them. If there are more rows than a page shows, `files` gets all of them, in
/// the file `claim-`*id*`.csv`.
fn parts(claim: &JudgedClaim<'_>, files: &mut TableFiles<'_>) -> TextTable {
    let parts = if claim.parts.len() > 1 { &claim.parts[..] } else { &[] };
    let differ = regions_differ(parts);
    let row = |part: &ClaimPart| {
        let name = if part.name.is_empty() { "–" } else { &part.name };
        let mut row = vec![name.into(), estimate(claim, part.estimate)];
        if differ {
            let limit = part.region.1;
            row.push(TextCell::stating(limit, number_of(claim)(limit)));
        }
        row.push(part.verdict.name().into());
        row
    };
    let mut heads = vec!["cell", estimate_head(claim.is_exact()), "by itself"];
    if differ {
        heads.insert(2, "at most");
    }
    let name = format!("claim-{}", claim.common.id);
    TextTable::first_rows(&heads, parts.iter().map(row), &name, files)
}

/// The confidence of an interval that agrees with a verdict at this level, which is at most 5 % after Holm's
/// correction, with the digits that distinguish it from 100 %: 0.001 is "99.9 %".
fn confidence(level: f64) -> String {
    let digits = (0..9).find(|digits| 100.0 * level >= 0.5 * 0.1_f64.powi(*digits)).unwrap_or(9);
    let text = format!("{:.*}", digits as usize, 100.0 * (1.0 - level));
    format!("{text} %")
}

/// A p-value as text; a dash for NaN, which stands for none.
pub fn probability(p: f64) -> String {
    match p {
        p if p.is_nan() => "–".into(),
        p if p < 1e-4 => "< 0.0001".into(),
        // A test by limits at the level knows no more, and 0.0500 would leave open on which side it is.
        p if p <= LEVEL && p > LEVEL - 5e-5 => format!("≤ {LEVEL}"),
        p => format!("{p:.4}"),
    }
}

/// How many of these claims have each verdict, in the order of [`Verdict::ALL`]; verdicts that none has are left out.
pub fn counts<'c>(claims: impl IntoIterator<Item = &'c ClaimText>) -> Vec<(Verdict, usize)> {
    let verdicts: Vec<Verdict> = claims.into_iter().map(|claim| claim.verdict).collect();
    let mut counts = Vec::new();
    for (verdict, _) in Verdict::ALL {
        let count = verdicts.iter().filter(|own| **own == verdict).count();
        if count > 0 {
            counts.push((verdict, count));
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a claim that holds for the numbers of this region.
    fn part(region: Region) -> ClaimPart {
        ClaimPart {
            name: String::new(),
            estimate: Estimate::NONE,
            is_exact: true,
            region,
            verdict: Verdict::Supported,
        }
    }

    /// A part without a comparison, as 0 against 0, has no region that could differ from the others, and a region that is
    /// wider by a rounding error is no other one.
    #[test]
    fn regions_of_parts_differ_where_readers_see_it() {
        let none = (f64::NAN, f64::NAN);
        let at_least = (2.0, f64::INFINITY);
        for (regions, expected) in [
            (vec![], false),
            (vec![at_least], false),
            (vec![none, none], false),
            (vec![none, at_least], false),
            (vec![at_least, none, at_least], false),
            (vec![at_least, (2.0 - 1e-9, f64::INFINITY)], false),
            (vec![at_least, (0.0, 2.0)], true),
            (vec![(0.5, 2.0), none, (0.8, 1.25)], true),
        ] {
            let parts: Vec<ClaimPart> = regions.iter().map(|region| part(*region)).collect();
            assert_eq!(regions_differ(&parts), expected, "{regions:?}");
        }
    }
}
