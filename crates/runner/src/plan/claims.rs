//! What is wrong with claims: selections that match no cell, quantities that are not recorded,
//! and keys that contradict each other.

use super::costs::unrecorded;
use super::figures::figure_ids;
use super::places::{Checker, PLAIN_NAMES, is_plain_name};
use super::selection::selected;
use super::{Cell, Setting, short};
use crate::manifest::Prediction;
use crate::manifest::Quantity;
use crate::manifest::claim::{
    ClaimKeys, Expected, Inequality, Matches, Reaches, Reaching, Selection, Slope, When,
};
use exactfed_core::sources::{statement, statements};
use std::collections::BTreeSet;

/// Notes what is wrong with the claims.
pub fn check_claims(checker: &mut Checker<'_>) {
    checker.common();
    let table = &checker.manifest.claim;
    for (kind, claims) in [("less", &table.less), ("at-least", &table.at_least)] {
        let claims = claims.iter().enumerate();
        claims.for_each(|(i, claim)| checker.comparison(&format!("claim.{kind}.{i}"), claim));
    }
    for (i, claim) in table.slope.iter().enumerate() {
        checker.slope(&format!("claim.slope.{i}"), claim);
    }
    for (i, claim) in table.matches.iter().enumerate() {
        checker.matches(&format!("claim.matches.{i}"), claim);
    }
    for (i, claim) in table.reaches.iter().enumerate() {
        checker.reaches(&format!("claim.reaches.{i}"), claim);
    }
}

impl Checker<'_> {
    fn comparison(&mut self, path: &str, claim: &Inequality) {
        self.quantity(&format!("{path}.metric"), claim.metric);
        self.selection(&format!("{path}.left"), &claim.left);
        let right = claim.right.as_ref();
        self.against(path, &claim.left, right, claim.prediction, claim.value, true);
        self.positive(&format!("{path}.factor"), claim.factor);
        self.at(path, claim.at, claim.metric, &claim.left);
        if let Some(right) = &claim.right {
            self.at(path, claim.at, claim.metric, right);
        }
    }

    fn slope(&mut self, path: &str, claim: &Slope) {
        self.quantity(&format!("{path}.metric"), claim.metric);
        self.selection(&format!("{path}.of"), &claim.of);
        self.number(&format!("{path}.over"), &claim.over, &claim.of);
        self.finite(&format!("{path}.value"), claim.value);
        self.positive(&format!("{path}.margin"), claim.margin);
        if let Some(reaching) = &claim.reaching {
            self.reaching(&format!("{path}.reaching"), reaching, &claim.of);
        }
        self.at(path, claim.at, claim.metric, &claim.of);
        let one = claim.at != When::EveryRound;
        self.require(one, &format!("{path}.at"), "a slope is taken at one time");
    }

    fn matches(&mut self, path: &str, claim: &Matches) {
        self.selection(&format!("{path}.of"), &claim.of);
        self.positive(&format!("{path}.margin"), claim.margin);
        match (claim.metric, claim.average) {
            (Some(_), Some(_)) => {
                let message = "`average` and `metric` exclude each other: write one of them";
                self.fault(&format!("{path}.average"), message);
            }
            (metric, None) => {
                self.quantity(&format!("{path}.metric"), metric.unwrap_or_default());
            }
            (None, Some(average)) => {
                let name = average.name();
                if !self.manifest.record.averages.contains(&average) {
                    let message = format!(
                        "`{name}` is not recorded: write averages = [\"{name}\"] in [record]"
                    );
                    self.fault(&format!("{path}.average"), message);
                }
                if claim.prediction.is_none() || claim.right.is_some() || claim.value.is_some() {
                    self.fault(path, "a vector is compared with a `prediction`");
                }
            }
        }
        match (claim.at.cost(), claim.average) {
            (Some(_), Some(_)) => {
                self.fault(
                    &format!("{path}.at"),
                    "an average over all rounds has no value at a cost",
                );
            }
            _ => self.at(path, claim.at, claim.metric.unwrap_or_default(), &claim.of),
        }
        if let Some(right) = &claim.right {
            self.at(path, claim.at, claim.metric.unwrap_or_default(), right);
        }
        let (right, is_one) = (claim.right.as_ref(), claim.average.is_none());
        self.against(path, &claim.of, right, claim.prediction, claim.value, is_one);
        match (&claim.over, claim.order) {
            (Some(over), Some(order)) => {
                self.number(&format!("{path}.over"), over, &claim.of);
                self.finite(&format!("{path}.order"), order);
            }
            (None, None) => {}
            _ => self.fault(path, "`order` and `over` are given together"),
        }
    }

    fn reaches(&mut self, path: &str, claim: &Reaches) {
        self.quantity(&format!("{path}.metric"), claim.metric);
        self.selection(&format!("{path}.of"), &claim.of);
        self.reaching(&format!("{path}.reaching"), &claim.reaching, &claim.of);
        if let Some(within) = claim.within {
            self.positive(&format!("{path}.within"), within);
        }
        let one = claim.within.is_some() != claim.prediction.is_some();
        self.require(one, path, "write `within` or `prediction`, one of them");
        let bound = claim.prediction.is_none_or(Prediction::is_bound);
        self.require(bound, &format!("{path}.prediction"), "`prediction` must be a bound here");
    }

    /// Checks the keys that every kind of claim has.
    fn common(&mut self) {
        let figures: BTreeSet<String> =
            figure_ids(self.manifest).into_iter().map(|(id, _)| id).collect();
        let mut ids = BTreeSet::new();
        for (path, common) in self.manifest.claim.all() {
            if !is_plain_name(&common.id) {
                let message = format!("a claim's id is a plain name, unlike \"{}\"", common.id);
                self.note(&format!("{path}.id"), message, |d| d.allowing(PLAIN_NAMES));
            } else if !ids.insert(&common.id) {
                let message = format!("two claims are called \"{}\"", common.id);
                self.fault(&format!("{path}.id"), message);
            }
            if let Some(figure) = common.figure.as_ref().filter(|f| !figures.contains(*f)) {
                let known: Vec<&str> = figures.iter().map(String::as_str).collect();
                let message = format!("no figure is called \"{figure}\"");
                self.note(&format!("{path}.figure"), message, |d| d.naming(figure, &known));
            }
            self.statements(&path, common);
            self.expectation(&path, common);
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
            _ => {}
        }
        let both = common.side.is_some() == common.dispute.is_some();
        self.require(both, path, "`dispute` and `side` are given together");
    }

    fn positive(&mut self, path: &str, value: f64) {
        let message = format!("`{}` must be a finite number above 0, not {value}", short(path));
        self.require(value.is_finite() && value > 0.0, path, message);
    }

    fn finite(&mut self, path: &str, value: f64) {
        let message = format!("`{}` must be a finite number, not {value}", short(path));
        self.require(value.is_finite(), path, message);
    }

    /// Checks the cost at which some cells are compared, if it is at one.
    fn at(&mut self, path: &str, at: When, metric: Quantity, of: &Selection) {
        if let Some(at) = at.cost() {
            let cells = self.cells.iter().filter(|cell| selected(cell, of));
            self.at_cost(&format!("{path}.at"), at, metric, cells);
        }
    }

    fn quantity(&mut self, path: &str, quantity: Quantity) {
        if let Some(message) = unrecorded(self.manifest, quantity) {
            self.fault(path, message);
        }
    }

    /// Checks what a claim compares its cells with, and that no cell is compared with itself.
    fn against(
        &mut self,
        path: &str,
        of: &Selection,
        right: Option<&Selection>,
        prediction: Option<Prediction>,
        value: Option<f64>,
        is_one: bool,
    ) {
        if let Some(right) = right {
            self.selection(&format!("{path}.right"), right);
            let both = |cell: &&Cell| selected(cell, of) && selected(cell, right);
            if let Some(cell) = self.cells.iter().find(both) {
                let message = format!(
                    "a cell of `{}` would be compared with itself: both sides select it",
                    cell.label
                );
                self.fault(path, message);
            }
        }
        if let Some(value) = value {
            self.positive(&format!("{path}.value"), value);
        }
        let written = [right.is_some(), prediction.is_some(), value.is_some()];
        let count = written.into_iter().filter(|is_written| *is_written).count();
        if is_one && count != 1 {
            let message = format!("write one of `right`, `prediction` and `value`, not {count}");
            self.fault(path, message);
        }
    }

    /// A setting must be a number in every selected cell.
    fn number(&mut self, path: &str, name: &str, of: &Selection) {
        let mut cells = self.cells.iter().filter(|c| selected(c, of));
        let sound = cells.all(|c| matches!(c.settings.get(name), Some(Setting::Number(_))));
        self.require(sound, path, format!("`{name}` is not a number in every selected cell"));
    }

    fn reaching(&mut self, path: &str, reaching: &Reaching, of: &Selection) {
        self.positive(&format!("{path}.target"), reaching.target);
        self.quantity(&format!("{path}.cost"), reaching.cost);
        if let Some(per) = &reaching.per {
            self.number(&format!("{path}.per"), per, of);
        }
    }
}
