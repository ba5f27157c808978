//! The pages on the sources: which of their statements claims measure, with what verdicts, and the
//! errors that were found in them.

use super::claims::ClaimText;
use super::number_text::short;
use crate::evidence::errata::{CounterexampleNumbers, Erratum, ErratumClass, SourceErrata, errata};
use crate::stats::verdict::Verdict;
use exactfed_core::sources::{Statement, sources as all_sources, statements};
use exactfed_core::words::joined;
use serde::Serialize;
use std::collections::BTreeMap;

/// The statements of the sources, each with the claims on it.
#[derive(Serialize)]
pub struct Coverage {
    sources: Vec<CoveredSource>,
    statements: usize,
    /// The kinds of tests, each with the number of its statements.
    counts: Vec<(TestExtent, usize)>,
}

/// How a statement is tested at best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum TestExtent {
    /// All cells of a claim meet its conditions.
    #[serde(rename = "inside")]
    Inside,
    /// Some cells of a claim do.
    #[serde(rename = "partly")]
    Partly,
    /// Claims have no cell that does, or whose conditions are checked.
    #[serde(rename = "illustrated outside")]
    Outside,
    /// Claims on it hold by algebra, or it has a test of the program.
    #[serde(rename = "checked by a test alone")]
    Engine,
    /// Not at all.
    #[serde(rename = "not tested")]
    Nothing,
}

/// The statements of a source.
#[derive(Serialize)]
struct CoveredSource {
    key: &'static str,
    name: String,
    rows: Vec<CoveredStatement>,
}

/// A statement with the claims on it.
#[derive(Serialize)]
struct CoveredStatement {
    place: &'static str,
    says: &'static str,
    /// What it is about, and its conditions.
    conditions: String,
    claims: Vec<StatementClaim>,
    /// Tests of the program that check it.
    tests: &'static [String],
    /// Why no claim measures it.
    reason: &'static str,
    tested: TestExtent,
}

/// A claim on a statement, or on an error.
#[derive(Clone, Serialize)]
struct StatementClaim {
    page: String,
    id: String,
    statement: String,
    verdict: Verdict,
    verdict_text: String,
    estimate: String,
    /// Whether its cells meet the conditions of the statement.
    inside: &'static str,
}

impl TestExtent {
    fn of(statement: &Statement, claims: &[StatementClaim]) -> Self {
        let each = claims.iter().map(|claim| match claim.inside {
            "inside" => Self::Inside,
            "partly outside" => Self::Partly,
            IDENTITY => Self::Engine,
            _ => Self::Outside,
        });
        let tests = (!statement.tests.is_empty()).then_some(Self::Engine);
        each.chain(tests).min().unwrap_or(Self::Nothing)
    }
}

/// What stands in place of conditions at a claim that holds by algebra.
const IDENTITY: &str = "an identity";

/// An error in a source with the claims that show it.
#[derive(Serialize)]
struct ErratumText {
    #[serde(flatten)]
    erratum: &'static Erratum,
    /// Number, as printed, as it holds.
    rows: Vec<[String; 3]>,
    /// The claims that show it, with their verdicts.
    shown_by: Vec<StatementClaim>,
}

/// The errors of a source.
#[derive(Serialize)]
struct ErrataOfSource {
    key: &'static str,
    name: String,
    /// Which text of it was compared.
    compared: &'static str,
    /// By class, results first.
    errata: Vec<ErratumText>,
}

/// The errors in the sources.
#[derive(Serialize)]
pub struct Errata {
    sources: Vec<ErrataOfSource>,
    count: usize,
    /// The classes, each with the number of its entries.
    classes: Vec<(ErratumClass, usize)>,
}

/// How often each occurs, in their order.
fn tally<T: Ord>(all: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_insert(0) += 1);
    counts.into_iter().collect()
}

fn claim_on(claim: &ClaimText, statement: &str) -> StatementClaim {
    let conditions = claim.conditions.iter().find(|(name, ..)| *name == statement);
    StatementClaim {
        page: claim.page.clone(),
        id: claim.stated.id.clone(),
        statement: claim.stated.statement.clone(),
        verdict: claim.verdict,
        verdict_text: claim.verdict_text.clone(),
        estimate: claim.tested.estimate.clone(),
        inside: match claim.stated.identity {
            true => IDENTITY,
            false => conditions.map_or("", |(_, summary, _)| summary),
        },
    }
}

impl Coverage {
    /// The statements of all sources; `None` unless a claim names one.
    pub fn new(claims: &[ClaimText]) -> Option<Self> {
        claims.iter().find(|claim| !claim.stated.statements.is_empty())?;
        let row = |statement: &'static Statement| {
            let name = statement.name.as_str();
            let on = claims.iter().filter(|c| c.stated.statements.iter().any(|s| s == name));
            let words: Vec<String> = statement.conditions.iter().map(|c| c.words()).collect();
            let words = joined(&words.iter().map(String::as_str).collect::<Vec<_>>());
            let first = &statement.first_version;
            let claims: Vec<StatementClaim> = on.map(|claim| claim_on(claim, name)).collect();
            CoveredStatement {
                tested: TestExtent::of(statement, &claims),
                place: statement.place(),
                says: &statement.says,
                conditions: match first.is_empty() {
                    true => words,
                    false => format!("{words} (first version: {first})"),
                },
                claims,
                tests: &statement.tests,
                reason: &statement.reason,
            }
        };
        let of =
            |key: &str| statements().iter().filter(move |s| s.source() == key).map(row).collect();
        let sources: Vec<CoveredSource> = all_sources()
            .iter()
            .map(|source| CoveredSource {
                key: &source.key,
                name: source.authors_and_year(),
                rows: of(&source.key),
            })
            .collect();
        let rows = || sources.iter().flat_map(|source| &source.rows);
        let counts = tally(rows().map(|row| row.tested));
        Some(Self { statements: rows().count(), counts, sources })
    }
}

impl Errata {
    /// The errors, with the verdicts of the claims that show them; `None` unless a claim names a
    /// statement of a source.
    pub fn new(claims: &[ClaimText]) -> Option<Self> {
        claims.iter().find(|claim| !claim.stated.statements.is_empty())?;
        let text = |erratum: &'static Erratum| {
            let named = |name: &String| {
                let (page, id) = name.split_once('#')?;
                let claim = claims.iter().find(|c| c.page == page && c.stated.id == id)?;
                Some(claim_on(claim, ""))
            };
            let rows = erratum.counterexamples.iter().filter_map(|example| {
                let CounterexampleNumbers { printed, holds } = example.numbers()?;
                Some([example.what.clone(), short(printed), short(holds)])
            });
            ErratumText {
                erratum,
                rows: rows.collect(),
                shown_by: erratum.claims.iter().filter_map(named).collect(),
            }
        };
        let of_source = |source: &'static SourceErrata| {
            let mut errata: Vec<ErratumText> = source.errata.iter().map(text).collect();
            errata.sort_by_key(|text| text.erratum.class);
            let publication = all_sources().iter().find(|known| known.key == source.source)?;
            let (key, name) = (&publication.key, publication.authors_and_year());
            Some(ErrataOfSource { key, name, compared: &source.compared, errata })
        };
        let sources: Vec<ErrataOfSource> = errata().iter().filter_map(of_source).collect();
        let texts = || sources.iter().flat_map(|source| &source.errata);
        let classes = tally(texts().map(|text| text.erratum.class));
        let count = texts().count();
        Some(Self { sources, count, classes })
    }
}
