//! The pages on the sources: which of their statements claims measure, with what verdicts, and the
//! errors that were found in them.

use super::claims::ClaimText;
use super::text_table::{TextCell, TextTable};
use crate::evidence::errata::{
    Contradiction, Erratum, ErratumClass, SourceErrata, errata as all_errata,
};
use crate::stats::verdict::Verdict;
use exactfed_core::sources::{Publication, Statement, sources as all_sources, statements};
use exactfed_core::words::joined;
use serde::Serialize;
use std::collections::BTreeMap;

/// How well a statement of a source is tested by the claims and tests on it; the best comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum TestExtent {
    /// All cells of a claim on the statement meet its conditions.
    Inside,
    /// All cells of a claim meet the conditions, but every such claim is supported by a bound that binds nowhere
    /// ([`ClaimText::slack`]).
    #[serde(rename = "inside but not binding")]
    NotBinding,
    /// Some cells of a claim on it meet its conditions.
    Partly,
    /// There are claims on it, and no cell of them is known to meet its conditions.
    #[serde(rename = "illustrated outside")]
    Outside,
    /// Its only claims hold by algebra, or it has a test in the program's own suite and no claim.
    #[serde(rename = "checked by a test alone")]
    Engine,
    /// It has neither a claim nor a test.
    #[serde(rename = "not tested")]
    Nothing,
}

impl TestExtent {
    /// The best extent to which a statement is tested by these claims, all of which name it, or by tests of the
    /// program. A claim whose conditions cannot be checked, or that has no cells, or no results of any, counts as
    /// outside.
    fn of(statement: &Statement, claims: &[&ClaimText]) -> Self {
        let by_claims =
            claims.iter().map(|claim| Self::by_claim(inside(claim, &statement.name), claim.slack));
        Self::best(by_claims, &statement.tests)
    }

    /// How well one claim tests a statement. `conditions` says what [`inside`] does; `slack` is the largest ratio to a
    /// bound that binds nowhere.
    fn by_claim(conditions: &str, slack: Option<f64>) -> Self {
        match (conditions, slack) {
            ("inside", None) => Self::Inside,
            ("inside", Some(_)) => Self::NotBinding,
            ("partly outside", _) => Self::Partly,
            (IDENTITY, _) => Self::Engine,
            _ => Self::Outside,
        }
    }

    /// The best of the extents to which single claims test a statement and that of `tests`, the program's own tests of
    /// it.
    fn best(by_claims: impl Iterator<Item = Self>, tests: &[String]) -> Self {
        let by_tests = (!tests.is_empty()).then_some(Self::Engine);
        by_claims.chain(by_tests).min().unwrap_or(Self::Nothing)
    }
}

/// What a page says of the conditions where a claim holds by algebra, so that it needs none.
const IDENTITY: &str = "an identity";

/// Each of the different values with the number of times that it occurs, in ascending order.
fn tally<T: Ord>(all: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_insert(0) += 1);
    counts.into_iter().collect()
}

/// Whether the cells of a claim meet the conditions of the statement of this name, in a few words such as "inside" or
/// "partly outside" ([`StatementConditions::summary`](crate::evidence::claims::StatementConditions::summary));
/// [`IDENTITY`] for a claim that holds by algebra, and empty for one that does not name the statement, or none of whose
/// cells has results yet.
fn inside(claim: &ClaimText, statement: &str) -> &'static str {
    if claim.stated.identity {
        return IDENTITY;
    }
    let conditions = claim.conditions.iter().find(|(name, ..)| *name == statement);
    conditions.map_or("", |(_, summary, _)| summary)
}

/// A claim next to the statement of a source that it is on, or next to the erratum that it shows.
#[derive(Serialize)]
struct ClaimOnStatement {
    page: String,
    id: String,
    statement: String,
    verdict: Verdict,
    verdict_text: String,
    estimate: String,
    /// Whether the cells of the claim meet the conditions of the statement, in words; empty where they are not checked.
    inside: &'static str,
}

impl ClaimOnStatement {
    /// What is shown of a claim; `inside` says whether its cells meet the conditions of the statement.
    fn new(claim: &ClaimText, inside: &'static str) -> Self {
        Self {
            page: claim.page.clone(),
            id: claim.stated.id.clone(),
            statement: claim.stated.statement.clone(),
            verdict: claim.verdict,
            verdict_text: claim.verdict_text.clone(),
            estimate: claim.estimate.clone(),
            inside,
        }
    }
}

/// The page on the statements of all sources.
#[derive(Serialize)]
pub struct Coverage {
    sources: Vec<CoveredSource>,
    /// The number of statements.
    statements: usize,
    /// The kinds of tests, each with the number of its statements.
    counts: Vec<(TestExtent, usize)>,
}

/// The statements of a publication.
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
    conditions: String,
    claims: Vec<ClaimOnStatement>,
    /// Tests of the program that check it.
    tests: &'static [String],
    /// Why no claim measures it; empty where one does.
    reason: &'static str,
    tested: TestExtent,
}

impl Coverage {
    /// All statements of the sources, each with the claims that name it. `None` unless a claim names a
    /// statement: experiments on other things have no such page.
    pub fn new(claims: &[&ClaimText]) -> Option<Self> {
        if !name_statements(claims) {
            return None;
        }
        let extents = statements().iter().map(|one| TestExtent::of(one, &claims_on(one, claims)));
        Some(Self {
            sources: all_sources().iter().map(|one| CoveredSource::new(one, claims)).collect(),
            statements: statements().len(),
            counts: tally(extents),
        })
    }
}

impl CoveredSource {
    /// A publication with all its statements, each with the claims that name it.
    fn new(source: &'static Publication, claims: &[&ClaimText]) -> Self {
        let own = statements().iter().filter(|statement| statement.source() == source.key);
        Self {
            key: &source.key,
            name: source.authors_and_year(),
            rows: own.map(|statement| CoveredStatement::new(statement, claims)).collect(),
        }
    }
}

/// Whether a claim names a statement of a source.
fn name_statements(claims: &[&ClaimText]) -> bool {
    claims.iter().any(|claim| !claim.stated.statements.is_empty())
}

/// The claims that name a statement.
fn claims_on<'c>(statement: &Statement, claims: &[&'c ClaimText]) -> Vec<&'c ClaimText> {
    let names_it = |claim: &&ClaimText| claim.stated.statements.contains(&statement.name);
    claims.iter().copied().filter(names_it).collect()
}

impl CoveredStatement {
    /// A statement with the claims among `all_claims` that name it. Where the first version of the source has other
    /// conditions, they follow in brackets.
    fn new(statement: &'static Statement, all_claims: &[&ClaimText]) -> Self {
        let claims = claims_on(statement, all_claims);
        let conditions: Vec<String> = statement.conditions.iter().map(|c| c.words()).collect();
        let words = joined(&conditions.iter().map(String::as_str).collect::<Vec<_>>());
        let first = &statement.first_version;
        let on_it =
            claims.iter().map(|claim| ClaimOnStatement::new(claim, inside(claim, &statement.name)));
        Self {
            place: statement.place(),
            says: &statement.says,
            conditions: if first.is_empty() {
                words
            } else {
                format!("{words} (first version: {first})")
            },
            claims: on_it.collect(),
            tests: &statement.tests,
            reason: &statement.reason,
            tested: TestExtent::of(statement, &claims),
        }
    }
}

/// The page on the errors in the sources.
#[derive(Serialize)]
pub struct Errata {
    sources: Vec<SourceWithErrata>,
    /// The number of entries.
    count: usize,
    /// The classes, each with the number of its entries.
    classes: Vec<(ErratumClass, usize)>,
}

/// The errors in a publication.
#[derive(Serialize)]
struct SourceWithErrata {
    key: &'static str,
    name: String,
    /// Which text of the publication was read for errors, such as a preprint.
    compared: &'static str,
    /// The errors, ordered by their class.
    errata: Vec<ErratumEntry>,
}

/// An error with what shows it.
#[derive(Serialize)]
struct ErratumEntry {
    #[serde(flatten)]
    erratum: &'static Erratum,
    /// For each counterexample an exact number, by the formula that the source prints and as it holds.
    numbers: TextTable,
    /// The claims that show it.
    shown_by: Vec<ClaimOnStatement>,
}

impl Errata {
    /// The errors with the verdicts of the claims that show them; `None` unless a claim names a
    /// statement of a source.
    pub fn new(claims: &[&ClaimText]) -> Option<Self> {
        if !name_statements(claims) {
            return None;
        }
        let all: Vec<&Erratum> = all_errata().iter().flat_map(|source| &source.errata).collect();
        Some(Self {
            sources: all_errata()
                .iter()
                .filter_map(|source| SourceWithErrata::new(source, claims))
                .collect(),
            count: all.len(),
            classes: tally(all.iter().map(|erratum| erratum.class)),
        })
    }
}

impl SourceWithErrata {
    /// The errors in a publication, each with the claims that show it; `None` if the sources have no publication
    /// of its key.
    fn new(source: &'static SourceErrata, claims: &[&ClaimText]) -> Option<Self> {
        let publication = all_sources().iter().find(|known| known.key == source.source)?;
        let mut errata: Vec<&Erratum> = source.errata.iter().collect();
        errata.sort_by_key(|erratum| erratum.class);
        Some(Self {
            key: &publication.key,
            name: publication.authors_and_year(),
            compared: &source.compared,
            errata: errata.into_iter().map(|one| ErratumEntry::new(one, claims)).collect(),
        })
    }
}

impl ErratumEntry {
    /// An error with the numbers of its counterexamples, where they have any, and with the claims that its entry names
    /// by page and id; claims of experiments without a page are left out.
    fn new(erratum: &'static Erratum, claims: &[&ClaimText]) -> Self {
        let rows = erratum.counterexamples.iter().filter_map(|example| {
            let Contradiction { printed, holds } = example.numbers()?;
            let what = example.what.as_str().into();
            Some(vec![what, TextCell::short(printed), TextCell::short(holds)])
        });
        let shown_by = erratum.claims.iter().filter_map(|name| {
            let (page, id) = name.split_once('#')?;
            let claim = claims.iter().find(|c| c.page == page && c.stated.id == id)?;
            // An erratum is on no statement, whose name could be given: only that a claim is an identity is said.
            Some(ClaimOnStatement::new(claim, inside(claim, "")))
        });
        Self {
            erratum,
            numbers: TextTable::new(&["number", "as printed", "as it holds"], rows),
            shown_by: shown_by.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bound that is far above every measured value is counted by itself, unless another claim inside of the
    /// conditions tests the statement.
    #[test]
    fn a_statement_whose_bounds_bind_nowhere_is_counted_apart() {
        let binding = ("inside", None);
        let slack = ("inside", Some(0.0335));
        let slack_in_part = ("partly outside", Some(0.01));
        let outside = ("outside", None);
        let identity = (IDENTITY, None);
        for (claims, expected) in [
            (vec![binding], TestExtent::Inside),
            (vec![slack, binding], TestExtent::Inside),
            (vec![outside, slack], TestExtent::NotBinding),
            (vec![slack, slack], TestExtent::NotBinding),
            (vec![("partly outside", None), slack], TestExtent::NotBinding),
            (vec![slack_in_part], TestExtent::Partly),
            (vec![outside], TestExtent::Outside),
            (vec![("", None)], TestExtent::Outside),
            (vec![identity], TestExtent::Engine),
            (vec![], TestExtent::Nothing),
        ] {
            let by_claims =
                claims.iter().map(|(conditions, slack)| TestExtent::by_claim(conditions, *slack));
            assert_eq!(TestExtent::best(by_claims, &[]), expected, "{claims:?}");
        }
        let tests = ["tests/suite/statements.rs: a_test".to_owned()];
        assert_eq!(TestExtent::best(std::iter::empty(), &tests), TestExtent::Engine);
        let slack_alone = std::iter::once(TestExtent::NotBinding);
        assert_eq!(TestExtent::best(slack_alone, &tests), TestExtent::NotBinding);
    }

    /// The title of the page has one count for each extent, in this order and in these words.
    #[test]
    fn extents_are_tallied_by_their_names() {
        let extents = [TestExtent::NotBinding, TestExtent::Partly, TestExtent::Inside];
        let counts = tally(extents.into_iter().chain([TestExtent::Inside]));
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(text, r#"[["inside",2],["inside but not binding",1],["partly",1]]"#);
    }
}
