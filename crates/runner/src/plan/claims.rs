//! Whether claims make sense: that the cells which they name are there, that
//! what they look at is recorded, and that they ask one question.

use super::validate::{at, unrecorded};
use super::{Cell, Setting, Settings};
use crate::manifest::claim::{Expected, Prediction, Reaching, Scalar, Selection, When};
use crate::manifest::document::nearest;
use crate::manifest::read::Choice;
use crate::manifest::{Diagnostic, Manifest, Node, Quantity};
use crate::plan::Drawn;
use std::collections::BTreeSet;

/// Whether a cell is of a selection.
pub fn selected(cell: &Cell, selection: &Selection) -> bool {
    selection.0.iter().all(|(key, wanted)| fits(cell, key, wanted))
}

fn fits(cell: &Cell, key: &str, wanted: &Scalar) -> bool {
    match (key, wanted) {
        (_, Scalar::Any(all)) => all.iter().any(|one| fits(cell, key, one)),
        ("label", wanted) => cell.label == wanted.to_string(),
        _ => match (cell.settings.get(key), wanted) {
            (Some(Setting::Number(have)), Scalar::Number(wanted)) => have == wanted,
            (Some(Setting::Text(have)), Scalar::Text(wanted)) => have.starts_with(wanted),
            _ => false,
        },
    }
}

struct Checker<'a> {
    root: &'a Node,
    manifest: &'a Manifest,
    cells: &'a [Cell],
    found: Vec<Diagnostic>,
}

/// What is wrong with the claims.
pub fn claims(root: &Node, manifest: &Manifest, cells: &[Cell]) -> Vec<Diagnostic> {
    let mut checker = Checker { root, manifest, cells, found: Vec::new() };
    checker.common();
    let table = &manifest.claim;
    for (i, c) in table.less.iter().enumerate() {
        let path = format!("claim.less.{i}");
        checker.compared(&path, c.metric, &c.left, c.right.as_ref(), c.prediction, c.value);
        checker.positive(&format!("{path}.factor"), c.factor);
    }
    for (i, c) in table.at_least.iter().enumerate() {
        let path = format!("claim.at-least.{i}");
        checker.compared(&path, c.metric, &c.left, c.right.as_ref(), c.prediction, c.value);
        checker.positive(&format!("{path}.factor"), c.factor);
    }
    for (i, c) in table.slope.iter().enumerate() {
        let path = format!("claim.slope.{i}");
        checker.quantity(&format!("{path}.metric"), c.metric);
        checker.selection(&format!("{path}.of"), &c.of);
        checker.number(&format!("{path}.over"), &c.over, &c.of);
        checker.finite(&format!("{path}.value"), c.value);
        checker.positive(&format!("{path}.margin"), c.margin);
        if let Some(reaching) = &c.reaching {
            checker.reaching(&format!("{path}.reaching"), reaching, &c.of);
        }
        if c.at == When::EveryRound {
            checker.fault(&format!("{path}.at"), "a slope is taken at one time");
        }
    }
    for (i, c) in table.matches.iter().enumerate() {
        let path = format!("claim.matches.{i}");
        checker.selection(&format!("{path}.of"), &c.of);
        checker.positive(&format!("{path}.margin"), c.margin);
        match (c.metric, c.average) {
            (Some(_), Some(_)) => checker
                .fault(&format!("{path}.average"), "`average` stands beside `metric`: write one"),
            (metric, None) => {
                checker.quantity(&format!("{path}.metric"), metric.unwrap_or_default());
                checker.one_of(&path, c.right.is_some(), c.prediction.is_some(), c.value.is_some());
            }
            (None, Some(average)) => {
                if !manifest.record.averages.contains(&average) {
                    let name = average.name();
                    checker.fault(
                        &format!("{path}.average"),
                        format!(
                            "`{name}` is not recorded: write averages = [\"{name}\"] in [record]"
                        ),
                    );
                }
                if c.prediction.is_none() || c.right.is_some() || c.value.is_some() {
                    checker.fault(&path, "a vector is compared with a `prediction`");
                }
            }
        }
        if let Some(right) = &c.right {
            checker.selection(&format!("{path}.right"), right);
            checker.another(&path, &c.of, right);
        }
        if let Some(value) = c.value {
            checker.positive(&format!("{path}.value"), value);
        }
        match (&c.over, c.order) {
            (Some(over), Some(order)) => {
                checker.number(&format!("{path}.over"), over, &c.of);
                checker.finite(&format!("{path}.order"), order);
            }
            (None, None) => {}
            _ => checker.fault(&path, "`order` and `over` go together"),
        }
    }
    for (i, c) in table.reaches.iter().enumerate() {
        let path = format!("claim.reaches.{i}");
        checker.quantity(&format!("{path}.metric"), c.metric);
        checker.selection(&format!("{path}.of"), &c.of);
        checker.reaching(&format!("{path}.reaching"), &c.reaching, &c.of);
        if let Some(within) = c.within {
            checker.positive(&format!("{path}.within"), within);
        }
        if c.within.is_some() == c.prediction.is_some() {
            checker.fault(&path, "write `within` or `prediction`, one of them");
        }
        if c.prediction.is_some_and(|p| !p.is_bound()) {
            checker.fault(&format!("{path}.prediction"), "`prediction` must be a bound here");
        }
    }
    checker.found
}

impl Checker<'_> {
    fn fault(&mut self, path: &str, message: impl Into<String>) {
        self.found.push(at(self.root, path, &Choice::new(), message));
    }

    fn common(&mut self) {
        let figures: BTreeSet<String> =
            Drawn::all(self.manifest).into_iter().map(|f| f.id).collect();
        let mut ids = BTreeSet::new();
        for (path, common) in self.manifest.claim.all() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if common.id.is_empty() || !common.id.chars().all(plain) {
                let message =
                    format!("a claim's id is a plain name: \"{}\" does not do", common.id);
                let path = format!("{path}.id");
                let diagnostic = at(self.root, &path, &Choice::new(), message);
                self.found.push(diagnostic.allowing("lower-case letters, digits, -"));
            } else if !ids.insert(common.id.to_owned()) {
                let message = format!("two claims are called \"{}\"", common.id);
                self.fault(&format!("{path}.id"), message);
            }
            if let Some(figure) = common.figure.filter(|f| !figures.contains(*f)) {
                let known: Vec<&str> = figures.iter().map(String::as_str).collect();
                let message = format!("no figure is called \"{figure}\"");
                let path = format!("{path}.figure");
                let diagnostic = at(self.root, &path, &Choice::new(), message);
                self.found
                    .push(diagnostic.hinting(nearest(figure, &known)).allowing(known.join(", ")));
            }
            match (common.expected, common.reason) {
                (Expected::Supported, Some(_)) => self.fault(
                    &format!("{path}.reason"),
                    "`reason` says why a claim is not expected to be supported, and this one is",
                ),
                (Expected::Refuted, None) => self.fault(
                    &format!("{path}.expected"),
                    "`expected = \"refuted\"` needs a `reason`",
                ),
                (Expected::NotTested, None) => self.fault(
                    &format!("{path}.expected"),
                    "`expected = \"not-tested\"` needs a `reason`",
                ),
                _ => {}
            }
            if common.side.is_some() != common.dispute.is_some() {
                self.fault(&path, "`dispute` and `side` go together");
            }
        }
    }

    fn positive(&mut self, path: &str, value: f64) {
        if !(value.is_finite() && value > 0.0) {
            let key = path.rsplit('.').next().unwrap_or_default();
            self.fault(path, format!("`{key}` must be a finite number above 0, not {value}"));
        }
    }

    fn finite(&mut self, path: &str, value: f64) {
        if !value.is_finite() {
            let key = path.rsplit('.').next().unwrap_or_default();
            self.fault(path, format!("`{key}` must be a finite number, not {value}"));
        }
    }

    /// No cell may be compared with itself: both selections would mean it.
    fn another(&mut self, path: &str, left: &Selection, right: &Selection) {
        let both = |cell: &&Cell| selected(cell, left) && selected(cell, right);
        if let Some(cell) = self.cells.iter().find(both) {
            let message = format!(
                "a cell of `{}` would be compared with itself: both sides select it",
                cell.label
            );
            self.fault(path, message);
        }
    }

    fn quantity(&mut self, path: &str, quantity: Quantity) {
        if let Some(message) = unrecorded(self.manifest, quantity) {
            self.fault(path, message);
        }
    }

    fn one_of(&mut self, path: &str, right: bool, prediction: bool, value: bool) {
        let count = [right, prediction, value].into_iter().filter(|x| *x).count();
        if count != 1 {
            let message = format!("write one of `right`, `prediction` and `value`, not {count}");
            self.fault(path, message);
        }
    }

    fn compared(
        &mut self,
        path: &str,
        metric: Quantity,
        left: &Selection,
        right: Option<&Selection>,
        prediction: Option<Prediction>,
        value: Option<f64>,
    ) {
        self.quantity(&format!("{path}.metric"), metric);
        self.selection(&format!("{path}.left"), left);
        if let Some(right) = right {
            self.selection(&format!("{path}.right"), right);
            self.another(path, left, right);
        }
        if let Some(value) = value {
            self.positive(&format!("{path}.value"), value);
        }
        self.one_of(path, right.is_some(), prediction.is_some(), value.is_some());
    }

    /// A selection must name known settings and at least one cell.
    fn selection(&mut self, path: &str, selection: &Selection) {
        let mut known = Settings::all_names(self.cells.iter().map(|c| &c.settings));
        known.insert("label");
        let known: Vec<&str> = known.into_iter().collect();
        let mut sound = true;
        for key in selection.0.keys() {
            let there = self.cells.iter().any(|c| c.settings.get(key).is_some());
            if key != "label" && !there {
                let message = format!("no cell has a setting `{key}`");
                let diagnostic = at(self.root, &format!("{path}.{key}"), &Choice::new(), message);
                self.found
                    .push(diagnostic.hinting(nearest(key, &known)).allowing(known.join(", ")));
                sound = false;
            }
        }
        if sound && !self.cells.iter().any(|cell| selected(cell, selection)) {
            let labels: BTreeSet<&str> = self.cells.iter().map(|c| c.label.as_str()).collect();
            let labels: Vec<&str> = labels.into_iter().collect();
            let wanted = selection.0.get("label").map(ToString::to_string).unwrap_or_default();
            let diagnostic = at(self.root, path, &Choice::new(), "no cell is of this selection");
            self.found.push(
                diagnostic
                    .hinting(
                        nearest(&wanted, &labels).filter(|_| !labels.contains(&wanted.as_str())),
                    )
                    .allowing(format!("labels {}", labels.join(", "))),
            );
        }
    }

    /// A setting must be a number in every selected cell.
    fn number(&mut self, path: &str, name: &str, of: &Selection) {
        let cells: Vec<&Cell> = self.cells.iter().filter(|c| selected(c, of)).collect();
        let sound = cells.iter().all(|c| matches!(c.settings.get(name), Some(Setting::Number(_))));
        if !sound {
            self.fault(path, format!("`{name}` is not a number in every cell that is meant"));
        }
    }

    fn reaching(&mut self, path: &str, reaching: &Reaching, of: &Selection) {
        self.positive(&format!("{path}.target"), reaching.target);
        self.quantity(&format!("{path}.cost"), reaching.cost);
        if let Some(per) = &reaching.per {
            self.number(&format!("{path}.per"), per, of);
        }
    }
}
