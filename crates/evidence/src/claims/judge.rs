//! What every kind of claim needs: the cells that it is about, their names, and a list of what
//! was tested.

use super::sample::NoEvidence;
use super::text::with_reason;
use crate::cells::{CellResult, setting_text};
use crate::frontier::ComputedFrontier;
use crate::predictions::Theory;
use crate::stats::verdict::Evidence;
use exactfed_core::words::joined;
use exactfed_runner::manifest::Prediction;
use exactfed_runner::manifest::claim::{Scalar, Selection};
use exactfed_runner::plan::{Plan, selected, short};

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
    /// Cells that could not be tested, and why: they keep the claim from being supported.
    pub untested: Vec<String>,
    /// How many of `untested` more replicates may make testable.
    pub unresolved: usize,
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

    /// Adds the evidence that means give on a part, or the reason why they give none.
    pub fn add_means(
        &mut self,
        name: String,
        found: Result<Evidence, NoEvidence>,
        otherwise: &str,
    ) {
        if found == Err(NoEvidence::Unresolved) {
            self.unresolved += 1;
        }
        self.add(name, found.ok(), otherwise);
    }

    /// The evidence for the claim, which must hold for each part. `None` if no part was tested.
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
    /// What its estimates are.
    pub scale: EstimateScale,
}

/// The keys of a selection that have one value.
pub fn fixed_keys(selection: &Selection) -> impl Iterator<Item = &str> {
    let fixed = selection.0.iter().filter(|(_, value)| !matches!(value, Scalar::Any(_)));
    fixed.map(|(key, _)| key.as_str())
}

/// A setting of a cell, if it is a number.
pub fn setting_number(cell: &CellResult<'_>, name: &str) -> Option<f64> {
    cell.cell.settings.get(name)?.number()
}

/// What the estimates of a claim are, and so how they are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EstimateScale {
    /// Numbers that are shown as they are.
    Plain,
    /// Costs that are counted: whole numbers.
    Counted,
    /// Logarithms that are shown as their exponential times this unit: a ratio, or a mean in units of
    /// the value that it is compared with.
    Logarithm(f64),
}

impl EstimateScale {
    /// A number as it is shown.
    pub fn shown(self, x: f64) -> f64 {
        match self {
            Self::Plain | Self::Counted => x,
            Self::Logarithm(unit) => unit * libm::exp(x),
        }
    }

    /// The end of a region as it is shown; an end that is left open stays infinite.
    pub fn shown_end(self, x: f64) -> f64 {
        if x.is_finite() { self.shown(x) } else { x }
    }

    /// An interval as it is shown.
    pub fn shown_interval(self, (low, high): (f64, f64)) -> (f64, f64) {
        (self.shown(low), self.shown(high))
    }

    /// How far an estimate is from the nearest end of the region in which the claim holds, below 0
    /// outside of it: half the region's width is 1 where it has two ends; else relative to the end,
    /// or as a logarithm. `None` where no such end is known.
    pub fn room(self, evidence: &Evidence) -> Option<f64> {
        let estimate = evidence.estimate;
        let (low, high) = evidence.region;
        let room = match (low.is_finite(), high.is_finite()) {
            (true, true) => 2.0 * (estimate - low).min(high - estimate) / (high - low),
            (true, false) => (estimate - low) / self.unit_of_room(low),
            (false, true) => (high - estimate) / self.unit_of_room(high),
            // A cell whose runs diverged is compared with nothing and does not hold.
            (false, false) if estimate.is_infinite() && evidence.support == 1.0 => -f64::INFINITY,
            (false, false) => return None,
        };
        (!room.is_nan()).then_some(room)
    }

    /// What a distance from the end of a region is divided by.
    fn unit_of_room(self, end: f64) -> f64 {
        match self {
            Self::Plain | Self::Counted if end != 0.0 => end.abs(),
            _ => 1.0,
        }
    }
}

impl<'a> Judge<'a> {
    /// The cells of a selection.
    pub fn chosen(&self, selection: &Selection) -> Vec<&'a CellResult<'a>> {
        self.cells.iter().filter(|c| selected(c.cell, selection)).collect()
    }

    /// The settings that distinguish a cell from the others of a selection, beside what is
    /// `known`.
    pub fn name(&self, cell: &CellResult<'_>, selection: &Selection, known: &[&str]) -> String {
        let known: Vec<&str> = fixed_keys(selection).chain(known.iter().copied()).collect();
        let details = setting_text::details(cell.cell, &known);
        let label: &str = if known.contains(&"label") { "" } else { &cell.cell.label };
        joined(&[label, &details])
    }

    /// The settings that are zipped with this one.
    pub(super) fn zipped_with(&self, name: &str) -> impl Iterator<Item = &'a str> {
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
        let id = &cell.cell.id;
        let rounds = cell.cell.identity.rounds;
        let words = by.words();
        let too_costly = self.theory.too_costly(id, by);
        let bound = self.theory.bound(id, by, rounds).map(|bound| bound.value.err());
        let of_moments = matches!(by, Prediction::ExactMoments | Prediction::Stationary);
        let scenarios = self.theory.prepared(id).into_iter().flat_map(|cell| &cell.scenarios);
        let mut shares = scenarios.map(|scenario| scenario.instance.unequal_shares());
        let reason = match (too_costly, &bound) {
            (Some(cost), _) => format!("{words} is not computed at this size: {cost}"),
            (None, _) if !by.is_bound() => {
                match self.theory.no_moments(id).filter(|_| of_moments) {
                    Some(why) => format!("nothing is known of {words} here: {why}"),
                    None if shares.any(|shares| shares.is_some()) => format!(
                        "nothing is known of {words} here, or of clients of unequal weights, or it diverged"
                    ),
                    None => format!("nothing is known of {words} here, or it diverged"),
                }
            }
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
