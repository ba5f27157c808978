//! What is wrong with the keys that all claims have.

use super::checker::Checker;
use super::kinds::KindTable;
use crate::manifest::claim::{ClaimKeys, Expected};
use exactfed_core::sources::{statement, statements};
use std::collections::BTreeSet;

impl Checker<'_> {
    /// Notes what is wrong with the claims. `figures` are the ids and paths of the figures, which claims may name.
    pub fn claims(&mut self, tables: &[KindTable<ClaimKeys>], figures: &[(String, String)]) {
        let figures: BTreeSet<&str> = figures.iter().map(|(id, _)| id.as_str()).collect();
        let mut ids = BTreeSet::new();
        let known: Vec<&str> = figures.iter().copied().collect();
        for claim in tables {
            let common = claim.common();
            let is_new = ids.insert(&common.id);
            self.table(&claim.path, |checker| {
                let message = format!("a claim's id is a plain name, unlike \"{}\"", common.id);
                checker.check_id(&common.id, message, "claims", is_new);
                if let Some(figure) = common.figure.as_deref().filter(|f| !figures.contains(f)) {
                    let message = format!("no figure is called \"{figure}\"");
                    checker.note("figure", message, |d| d.naming(figure, &known));
                }
                checker.statements(common);
                checker.texts(common);
                checker.expectation(common);
            });
        }
        tables.iter().for_each(|claim| claim.check(self));
    }

    /// Notes names of statements that no source has, and names that a claim lists twice.
    fn statements(&mut self, common: &ClaimKeys) {
        for (i, name) in common.statements.iter().enumerate() {
            let place = format!("statements.{i}");
            let twice = common.statements[..i].contains(name);
            self.require(!twice, &place, format!("\"{name}\" is named twice"));
            if statement(name).is_none() {
                let source = name.split(' ').next().unwrap_or_default();
                let of_source = statements().iter().filter(|known| known.source() == source);
                let mut known: Vec<&str> = of_source.map(|known| known.name.as_str()).collect();
                if known.is_empty() {
                    known = statements().iter().map(|known| known.name.as_str()).collect();
                }
                let message = format!("no statement is called \"{name}\"");
                self.note(&place, message, |d| d.naming(name, &known));
            }
        }
    }

    /// Notes texts of a claim that are empty, and so say nothing.
    fn texts(&mut self, common: &ClaimKeys) {
        let message = "`statement` is empty: it says what is claimed";
        self.require(!common.statement.trim().is_empty(), "statement", message);
        for (key, text) in
            [("reason", &common.reason), ("dispute", &common.dispute), ("side", &common.side)]
        {
            let says_something = text.as_ref().is_none_or(|text| !text.trim().is_empty());
            self.require(
                says_something,
                key,
                format!("`{key}` is empty: write it or leave it out"),
            );
        }
    }

    /// Notes an expected verdict that lacks its reason, a reason or `refutes` without such a verdict, and half of a
    /// dispute.
    fn expectation(&mut self, common: &ClaimKeys) {
        match (common.expected, &common.reason) {
            (Expected::Supported, Some(_)) => self.fault(
                "reason",
                "`reason` says why a claim is not expected to be supported, and this one is",
            ),
            (Expected::Refuted, None) => {
                self.fault("expected", "`expected = \"refuted\"` needs a `reason`");
            }
            (Expected::NotTested, None) => {
                self.fault("expected", "`expected = \"not-tested\"` needs a `reason`");
            }
            (Expected::Refuted, Some(_)) if common.refutes.is_none() => self.fault(
                "expected",
                "`expected = \"refuted\"` needs `refutes`, which says what is refuted",
            ),
            _ => {}
        }
        let is_refuted = common.refutes.is_none() || common.expected == Expected::Refuted;
        let message = "`refutes` is for a claim with `expected = \"refuted\"`";
        self.require(is_refuted, "refutes", message);
        let both = common.side.is_some() == common.dispute.is_some();
        self.require(both, "", "`dispute` and `side` are given together");
    }
}
