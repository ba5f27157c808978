//! What every kind of claim needs: the cells that it is about, their names, and a list of what
//! was tested.

use super::conditions::{self, StatementConditions};
use super::text::with_reason;
use crate::analysis::frontier::ComputedFrontier;
use crate::analysis::theory::Theory;
use crate::analysis::{CellResult, setting_text};
use crate::stats::verdict::Evidence;
use exactfed_core::words::joined;
use exactfed_runner::manifest::claim::{ClaimKeys, Prediction, Scalar, Selection};
use exactfed_runner::plan::{Plan, Setting, selected, short};
use std::collections::BTreeSet;

/// What claims are judged by.
pub struct Judge<'a> {
    /// The manifest and its cells.
    pub plan: &'a Plan,
    /// The cells that have results.
    pub cells: &'a [CellResult<'a>],
    /// What theory predicts for them.
    pub theory: &'a Theory<'a>,
    /// The frontiers of the manifest.
    pub frontiers: &'a [ComputedFrontier<'a>],
}

/// What a claim was tested on, part by part.
#[derive(Default)]
pub struct Parts {
    /// Names of cells or pairs, with the evidence of each.
    pub tested: Vec<(String, Evidence)>,
    /// Those that could not be tested, and why: they keep the claim from being supported.
    pub untested: Vec<String>,
    /// Cells of which the claim states nothing, and why.
    pub outside: Vec<String>,
}

impl Parts {
    /// Adds the evidence of a part, or the reason why there is none.
    pub fn add(&mut self, name: String, found: Option<Evidence>, otherwise: &str) {
        match found {
            Some(evidence) => self.tested.push((name, evidence)),
            None => self.untested.push(with_reason(&name, otherwise)),
        }
    }

    /// The evidence for the claim, which must hold for each part.
    pub fn evidence(&self) -> Option<Evidence> {
        let each: Vec<Evidence> = self.tested.iter().map(|(_, evidence)| *evidence).collect();
        Evidence::all(&each, !self.untested.is_empty())
    }
}

/// A claim that was tested.
pub struct Tested {
    /// What it was tested on.
    pub parts: Parts,
    /// What was tested, as a formula.
    pub formula: String,
    /// Estimates that are logarithms are shown as their exponential times this unit: a ratio, or a
    /// mean in units of the value that it is compared with. `None` if they are shown as they are.
    pub unit: Option<f64>,
    /// Whether its cells meet the conditions of the statements that it is about.
    pub conditions: Vec<StatementConditions>,
}

/// The keys of a selection that have one value.
pub fn fixed_keys(selection: &Selection) -> impl Iterator<Item = &str> {
    let fixed = selection.0.iter().filter(|(_, value)| !matches!(value, Scalar::Any(_)));
    fixed.map(|(key, _)| key.as_str())
}

/// A setting of a cell, if it is a number.
pub fn number(cell: &CellResult<'_>, name: &str) -> Option<f64> {
    match cell.cell.settings.get(name)? {
        Setting::Number(x) => Some(*x),
        Setting::Text(_) => None,
    }
}

impl<'a> Judge<'a> {
    /// The same with the conditions of the claim's statements, or nothing tested if some of the
    /// cells that are meant have no results yet.
    pub fn complete(
        &self,
        common: &ClaimKeys,
        left: &Selection,
        right: Option<&Selection>,
        tested: Tested,
    ) -> Tested {
        let mut cells = self.chosen(left);
        cells.extend(right.map(|right| self.chosen(right)).unwrap_or_default());
        let conditions = conditions::of_cells(self.theory, &common.statements, &cells);
        let tested = Tested { conditions, ..tested };
        let there: BTreeSet<&str> = self.cells.iter().map(|c| c.cell.id.as_str()).collect();
        let missing = self.plan.cells.iter().filter(|cell| !there.contains(cell.id.as_str()));
        let is_meant = |cell| selected(cell, left) || right.is_some_and(|r| selected(cell, r));
        match missing.filter(|cell| is_meant(cell)).count() {
            0 => tested,
            missing => {
                let untested = vec![format!("{missing} of its cells have no results yet")];
                Tested { parts: Parts { untested, ..Parts::default() }, ..tested }
            }
        }
    }

    /// The cells of a selection.
    pub fn chosen(&self, selection: &Selection) -> Vec<&'a CellResult<'a>> {
        self.cells.iter().filter(|c| selected(c.cell, selection)).collect()
    }

    /// The settings that distinguish a cell from the others of a selection, beside what is
    /// `known`.
    pub fn name(&self, cell: &CellResult<'_>, selection: &Selection, known: &[&str]) -> String {
        let known: Vec<&str> = fixed_keys(selection).chain(known.iter().copied()).collect();
        let details = setting_text::details(cell.cell, &known);
        match selection.0.contains_key("label") {
            true => details,
            false => joined(&[&cell.cell.label, &details]),
        }
    }

    /// The settings that are zipped with this one.
    pub fn zipped_with(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let zips = self.plan.manifest.zip.iter();
        let with = zips.filter(|zip| zip.iter().any(|other| short(other) == short(name)));
        with.flatten().map(|other| short(other))
    }

    /// Adds a cell for which there is no prediction. A bound whose conditions the cell does not
    /// meet claims nothing of it; any other missing prediction leaves the cell untested.
    pub fn add_unpredicted(
        &self,
        cell: &CellResult<'_>,
        by: Prediction,
        name: &str,
        parts: &mut Parts,
    ) {
        let (id, rounds) = (&cell.cell.id, cell.cell.identity.rounds);
        let words = by.words();
        let too_costly = self.theory.too_costly(id, by);
        let bound = self.theory.bound(id, by, rounds).map(|bound| bound.value.err());
        let reason = match (too_costly, &bound) {
            (Some(cost), _) => format!("{words} is not computed at this size: {cost}"),
            (None, _) if !by.is_bound() && self.theory.has_unequal_shares(id) => format!(
                "{words} does not apply to it or assumes that clients have equal weights, or it diverged"
            ),
            (None, _) if !by.is_bound() => format!("{words} does not apply to it, or it diverged"),
            (None, None) => format!("{words} does not apply to it"),
            (None, Some(Some(unmet))) if !unmet.is_empty() => {
                let unmet: Vec<&str> = unmet.iter().map(|u| u.condition.as_str()).collect();
                format!("{words}: {} fails", unmet.join(", "))
            }
            (None, Some(_)) => format!("{words} bounds another quantity"),
        };
        let is_outside = by.is_bound() && bound.is_none_or(|unmet| unmet.is_some());
        let list = if is_outside && too_costly.is_none() {
            &mut parts.outside
        } else {
            &mut parts.untested
        };
        list.push(with_reason(name, &reason));
    }
}
