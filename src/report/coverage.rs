//! The pages on the sources: which of their statements claims measure, with what verdicts, and the
//! errors that were found in them.

use super::claims::ClaimText;
use super::number_text::short;
use crate::evidence::errata::{Erratum, SourceErrata, errata as all_errata};
use exactfed_core::sources::{Publication, Statement, sources as all_sources, statements};
use exactfed_core::words::joined;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How a statement is tested at best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum TestExtent {
    /// All cells of a claim meet its conditions.
    Inside,
    /// Some cells of a claim do.
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

impl TestExtent {
    fn of(statement: &Statement, claims: &[&ClaimText]) -> Self {
        let each = claims.iter().map(|claim| match inside(claim, &statement.name) {
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

/// How often each occurs, in their order.
fn tally<T: Ord>(all: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_insert(0) += 1);
    counts.into_iter().collect()
}

/// Whether the cells of a claim meet the conditions of a statement.
fn inside(claim: &ClaimText, statement: &str) -> &'static str {
    let conditions = claim.conditions.iter().find(|(name, ..)| *name == statement);
    match claim.stated.identity {
        true => IDENTITY,
        false => conditions.map_or("", |(_, summary, _)| summary),
    }
}

/// A claim on a statement, or on an error.
fn claim_on(claim: &ClaimText, statement: &str) -> Value {
    json!({
        "page": claim.page,
        "id": claim.stated.id,
        "statement": claim.stated.statement,
        "verdict": claim.verdict,
        "verdict_text": claim.verdict_text,
        "estimate": claim.estimate,
        "inside": inside(claim, statement),
    })
}

/// The statements of all sources, each with the claims on it; `None` unless a claim names one.
pub fn coverage(claims: &[&ClaimText]) -> Option<Value> {
    claims.iter().find(|claim| !claim.stated.statements.is_empty())?;
    let on = |statement: &Statement| -> Vec<&ClaimText> {
        let of = |claim: &&ClaimText| claim.stated.statements.contains(&statement.name);
        claims.iter().copied().filter(of).collect()
    };
    let row = |statement: &Statement| {
        let claims = on(statement);
        let words: Vec<String> = statement.conditions.iter().map(|c| c.words()).collect();
        let words = joined(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let first = &statement.first_version;
        json!({
            "place": statement.place(),
            "says": statement.says,
            // What it is about, and its conditions.
            "conditions": match first.is_empty() {
                true => words,
                false => format!("{words} (first version: {first})"),
            },
            "claims": claims.iter().map(|c| claim_on(c, &statement.name)).collect::<Vec<_>>(),
            // Tests of the program that check it.
            "tests": statement.tests,
            // Why no claim measures it.
            "reason": statement.reason,
            "tested": TestExtent::of(statement, &claims),
        })
    };
    let source = |source: &Publication| {
        let own = statements().iter().filter(|statement| statement.source() == source.key);
        let (name, rows) = (source.authors_and_year(), own.map(row).collect::<Vec<_>>());
        json!({ "key": source.key, "name": name, "rows": rows })
    };
    Some(json!({
        "sources": all_sources().iter().map(source).collect::<Vec<_>>(),
        "statements": statements().len(),
        // The kinds of tests, each with the number of its statements.
        "counts": tally(statements().iter().map(|one| TestExtent::of(one, &on(one)))),
    }))
}

/// The errors in the sources, with the verdicts of the claims that show them; `None` unless a claim
/// names a statement of a source.
pub fn errata(claims: &[&ClaimText]) -> Option<Value> {
    claims.iter().find(|claim| !claim.stated.statements.is_empty())?;
    let entry = |erratum: &Erratum| {
        let named = |name: &String| {
            let (page, id) = name.split_once('#')?;
            let claim = claims.iter().find(|c| c.page == page && c.stated.id == id)?;
            Some(claim_on(claim, ""))
        };
        let rows = erratum.counterexamples.iter().filter_map(|example| {
            let (printed, holds) = example.numbers()?;
            Some([example.what.clone(), short(printed), short(holds)])
        });
        let mut entry = json!(erratum);
        // Number, as printed, as it holds.
        entry["rows"] = json!(rows.collect::<Vec<_>>());
        entry["shown_by"] = erratum.claims.iter().filter_map(named).collect();
        entry
    };
    let of_source = |source: &SourceErrata| {
        let mut errata: Vec<&Erratum> = source.errata.iter().collect();
        errata.sort_by_key(|erratum| erratum.class);
        let publication = all_sources().iter().find(|known| known.key == source.source)?;
        Some(json!({
            "key": publication.key,
            "name": publication.authors_and_year(),
            // Which text of it was compared.
            "compared": source.compared,
            // By class, results first.
            "errata": errata.into_iter().map(entry).collect::<Vec<_>>(),
        }))
    };
    let errata = || all_errata().iter().flat_map(|source| &source.errata);
    Some(json!({
        "sources": all_errata().iter().filter_map(of_source).collect::<Vec<_>>(),
        "count": errata().count(),
        // The classes, each with the number of its entries.
        "classes": tally(errata().map(|erratum| erratum.class)),
    }))
}
