//! What is wrong with the keys that all claims have.

use super::kinds::KindTable;
use super::places::Checker;
use crate::manifest::claim::{ClaimKeys, Expected};
use exactfed_core::sources::{statement, statements};
use std::collections::BTreeSet;

/// Notes what is wrong with the claims.
pub fn check_claims(
    checker: &mut Checker<'_>,
    tables: &[KindTable<ClaimKeys>],
    figures: &[(String, String)],
) {
    checker.common(tables, figures);
    tables.iter().for_each(|claim| claim.check(checker));
}

impl Checker<'_> {
    /// Checks the keys that every kind of claim has.
    fn common(&mut self, tables: &[KindTable<ClaimKeys>], figures: &[(String, String)]) {
        let figures: BTreeSet<&str> = figures.iter().map(|(id, _)| id.as_str()).collect();
        let mut ids = BTreeSet::new();
        for claim in tables {
            let (path, common) = (&claim.path, claim.common());
            let message = format!("a claim's id is a plain name, unlike \"{}\"", common.id);
            self.id(path, &common.id, message, ("claims", ids.insert(&common.id)));
            if let Some(figure) = common.figure.as_ref().filter(|f| !figures.contains(f.as_str())) {
                let known: Vec<&str> = figures.iter().copied().collect();
                let message = format!("no figure is called \"{figure}\"");
                self.note(&format!("{path}.figure"), message, |d| d.naming(figure, &known));
            }
            self.statements(path, common);
            self.expectation(path, common);
        }
    }

    fn statements(&mut self, path: &str, common: &ClaimKeys) {
        for (i, name) in common.statements.iter().enumerate() {
            let twice = common.statements[..i].contains(name);
            let message = || format!("\"{name}\" is named twice");
            self.require(!twice, &format!("{path}.statements.{i}"), message());
            if statement(name).is_none() {
                let source = name.split(' ').next().unwrap_or_default();
                let of_source = statements().iter().filter(|known| known.source() == source);
                let mut known: Vec<&str> = of_source.map(|known| known.name.as_str()).collect();
                if known.is_empty() {
                    known = statements().iter().map(|known| known.name.as_str()).collect();
                }
                let message = format!("no statement is called \"{name}\"");
                let place = format!("{path}.statements.{i}");
                self.note(&place, message, |d| d.naming(name, &known));
            }
        }
    }

    fn expectation(&mut self, path: &str, common: &ClaimKeys) {
        let needs_reason = |expected| format!("`expected = \"{expected}\"` needs a `reason`");
        match (common.expected, &common.reason) {
            (Expected::Supported, Some(_)) => self.fault(
                &format!("{path}.reason"),
                "`reason` says why a claim is not expected to be supported, and this one is",
            ),
            (Expected::Refuted, None) => {
                self.fault(&format!("{path}.expected"), needs_reason("refuted"));
            }
            (Expected::NotTested, None) => {
                self.fault(&format!("{path}.expected"), needs_reason("not-tested"));
            }
            (Expected::Refuted, Some(_)) if common.refutes.is_none() => self.fault(
                &format!("{path}.expected"),
                "`expected = \"refuted\"` needs `refutes`, which says what is refuted",
            ),
            _ => {}
        }
        let is_refuted = common.refutes.is_none() || common.expected == Expected::Refuted;
        let message = "`refutes` is for a claim with `expected = \"refuted\"`";
        self.require(is_refuted, &format!("{path}.refutes"), message);
        let both = common.side.is_some() == common.dispute.is_some();
        self.require(both, path, "`dispute` and `side` are given together");
    }
}
