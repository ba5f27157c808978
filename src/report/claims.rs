//! Claims, bounds and disagreements as the templates see them: strings only.

use super::number_text::{interval, short};
use super::truncation::{File, MOST_ROWS, TextTable};
use crate::analysis::bounds::BoundRow;
use crate::analysis::claims::{ClaimPart, JudgedClaim};
use crate::analysis::first_order::FirstOrderRow;
use crate::stats::verdict::{Doubt, Verdict};
use driftbench_core::words::joined;
use driftbench_runner::manifest::claim::Expected;
use serde::Serialize;

/// A claim.
#[derive(Clone, Serialize)]
pub struct ClaimText {
    pub id: String,
    /// The experiment's name, and its title.
    pub page: String,
    pub statement: String,
    pub source: String,
    pub figure: String,
    pub formula: String,
    /// `supported`, `refuted`, `inconclusive` or `not tested`.
    pub verdict: String,
    /// The verdict with what was expected of it.
    pub told: String,
    pub estimate: String,
    pub p: String,
    pub n: usize,
    pub together: usize,
    /// What was tested, and what could not be.
    pub remarks: Vec<String>,
    /// Each cell or pair: name, estimate, verdict by itself.
    pub parts: TextTable,
    pub dispute: String,
    pub side: String,
}

/// The sides of a disagreement.
#[derive(Serialize)]
pub struct Dispute {
    pub name: String,
    pub claims: Vec<ClaimText>,
}

pub fn claim(page: &str, claim: &JudgedClaim, files: &mut Vec<File>) -> ClaimText {
    let verdict = claim.verdict.map_or("not tested", Verdict::name);
    let mut remarks = Vec::new();
    if claim.parts.len() > 1 {
        let part = if claim.part.is_empty() { "one of them" } else { &claim.part };
        remarks.push(format!(
            "must hold for each of {}; the estimate is of {part}",
            claim.parts.len()
        ));
    }
    let expected = match claim.expected.0 {
        Expected::Supported => "supported",
        Expected::Refuted => "refuted",
        Expected::NotTested => "not tested",
    };
    if let Some(reason) = &claim.expected.1 {
        remarks.push(format!("expected to be {expected}: {reason}"));
    }
    match (claim.verdict, claim.needed) {
        (Some(Verdict::Inconclusive), Some(n)) => {
            remarks.push(format!("about {} runs would decide it", two_digits(n)));
        }
        (Some(Verdict::Inconclusive), None) => {
            remarks.push("more runs may decide it; how many is not known".into());
        }
        _ => {}
    }
    let decided = matches!(claim.verdict, Some(Verdict::Supported | Verdict::Refuted));
    let doubt = match claim.doubt {
        Doubt::Heavy => {
            "the errors of some runs have a heavier tail than a lognormal law: their limits are twice as far"
        }
        Doubt::Skewed => {
            "for so few vectors, or vectors so skewed, the radius of the interval is three times as large"
        }
        Doubt::Few if decided => {
            "so few runs do not show how heavy the tail of their errors is: the verdict assumes that it is no heavier than a lognormal law's"
        }
        _ => "",
    };
    remarks.extend((!doubt.is_empty()).then(|| doubt.to_owned()));
    const MOST_NOTES: usize = 4;
    for (notes, what) in [(&claim.untested, "not tested"), (&claim.outside, "not claimed")] {
        remarks.extend(notes.iter().take(MOST_NOTES).map(|note| format!("{what}: {note}")));
        if notes.len() > MOST_NOTES {
            remarks.push(format!("{what}: {} more", notes.len() - MOST_NOTES));
        }
    }
    let (dispute, side) = claim.dispute.clone().unwrap_or_default();
    let as_expected = claim.expected.0 != Expected::Supported && expected == verdict;
    ClaimText {
        id: claim.id.clone(),
        page: page.to_owned(),
        statement: claim.statement.clone(),
        source: claim.source.clone(),
        figure: claim.figure.clone().unwrap_or_default(),
        formula: claim.formula.clone(),
        told: if as_expected { format!("{verdict}, as expected") } else { verdict.to_owned() },
        verdict: verdict.to_owned(),
        estimate: interval(claim.estimate, claim.interval),
        p: probability(claim.p),
        n: claim.n,
        together: claim.together,
        remarks,
        parts: parts(claim, files),
        dispute,
        side,
    }
}

/// A number of runs, rounded up to two digits.
fn two_digits(n: u64) -> u64 {
    let unit = 10_u64.pow(n.max(1).ilog10().saturating_sub(1));
    n.div_ceil(unit).saturating_mul(unit)
}

fn parts(claim: &JudgedClaim, files: &mut Vec<File>) -> TextTable {
    let parts = if claim.parts.len() > 1 { &claim.parts[..] } else { &[] };
    let row = |p: &ClaimPart| {
        let name = if p.name.is_empty() { "–" } else { &p.name };
        vec![name.to_owned(), interval(p.estimate, p.interval), p.verdict.name().to_owned()]
    };
    let heads = ["cell", "estimate, 95 % interval", "by itself"].map(str::to_owned).to_vec();
    let name = format!("claim-{}", claim.id);
    TextTable::first(heads, parts.iter().map(row), (MOST_ROWS, &name), files)
}

fn probability(p: f64) -> String {
    match p {
        p if p.is_nan() => "–".into(),
        p if p < 1e-4 => "< 0.0001".into(),
        p => format!("{p:.4}"),
    }
}

/// The published bounds of an experiment's cells.
pub fn bounds(rows: &[BoundRow], files: &mut Vec<File>) -> TextTable {
    let heads = ["cell", "bound", "at the last round", "measured", "conditions that fail"];
    let row = |row: &BoundRow| {
        let cell = joined(&[&row.cell.1, &row.details]);
        let proved = if row.proved { "" } else { " (leading terms only: no bound)" };
        let told = |(condition, have, need): &(String, f64, f64)| match (*have, *need) {
            (0.0, 1.0) => condition.clone(),
            _ => format!("{condition} ({} against {})", short(*have), short(*need)),
        };
        let unmet = row.unmet.iter().map(told).collect::<Vec<_>>().join("; ");
        let value = row.value.map_or("–".into(), short);
        let measured = row.measured.map_or("–".into(), short);
        vec![cell, format!("{}{proved}", row.name), value, measured, unmet]
    };
    let heads = heads.map(str::to_owned).to_vec();
    TextTable::first(heads, rows.iter().map(row), (MOST_ROWS, "bounds"), files)
}

/// Where the first order of the bias holds.
pub fn first_order(rows: &[FirstOrderRow], files: &mut Vec<File>) -> TextTable {
    let heads =
        ["cell", "γ(H − 1)Nλ", "‖E θ − θ*‖", "first order", "and the term after it", "closure"];
    let percent = |x: &Option<f64>| match x {
        Some(x) => format!("{:.1} %", 100.0 * x),
        None => "–".into(),
    };
    let row = |row: &FirstOrderRow| {
        let cell = joined(&[&row.cell.0, &row.cell.1]);
        let mut cells = vec![cell, short(row.reach), short(row.bias)];
        cells.extend(row.apart.iter().map(percent));
        cells
    };
    let heads = heads.map(str::to_owned).to_vec();
    TextTable::first(heads, rows.iter().map(row), (MOST_ROWS, "orders"), files)
}

/// The disagreements, each with the claims that bear on it.
pub fn disputes(claims: &[ClaimText]) -> Vec<Dispute> {
    let mut all: Vec<Dispute> = Vec::new();
    for claim in claims.iter().filter(|c| !c.dispute.is_empty()) {
        match all.iter_mut().find(|d| d.name == claim.dispute) {
            Some(dispute) => dispute.claims.push(claim.clone()),
            None => {
                all.push(Dispute { name: claim.dispute.clone(), claims: vec![claim.clone()] });
            }
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// How many claims have each verdict.
pub fn counts(claims: &[ClaimText]) -> Vec<(String, usize)> {
    ["supported", "refuted", "inconclusive", "not tested"]
        .into_iter()
        .map(|verdict| (verdict.to_owned(), claims.iter().filter(|c| c.verdict == verdict).count()))
        .filter(|(_, count)| *count > 0)
        .collect()
}
