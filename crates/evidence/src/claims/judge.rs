//! What every kind of claim needs: the cells that it is about, their names, and a list of what
//! was tested.

use super::sample::NoEvidence;
use super::text::with_reason;
use crate::cells::{CellResult, setting_text};
use crate::frontier::ComputedFrontier;
use crate::predictions::Theory;
use crate::stats::verdict::{Evidence, Region};
use exactfed_core::words::joined;
use exactfed_runner::manifest::claim::{Scalar, Selection};
use exactfed_runner::manifest::{Prediction, Quantity};
use exactfed_runner::plan::{Plan, selected, short};

/// The results and the theory of an experiment, by which its claims are judged.
pub struct Judge<'a> {
    /// The manifest and all its cells.
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
    /// The names of the cells or pairs of cells that were tested, with the evidence from each.
    pub tested: Vec<(String, Evidence)>,
    /// The names of what could not be tested, with the reasons. They keep the claim from being supported.
    pub untested: Vec<String>,
    /// How many of `untested` more replicates may make testable.
    pub unresolved: usize,
    /// The names of cells on which the claim states nothing, with the reasons. They count neither for nor against it.
    pub outside: Vec<String>,
}

impl Parts {
    /// Adds the evidence from a part of this name. Without evidence the part is untested, for the reason `otherwise`.
    pub fn add(&mut self, name: String, found: Option<Evidence>, otherwise: &str) {
        match found {
            Some(evidence) => self.tested.push((name, evidence)),
            None => self.untested.push(with_reason(&name, otherwise)),
        }
    }

    /// Adds the evidence from the means of a part of this name. Without evidence the part is untested, for the reason
    /// `otherwise`, and counts as unresolved if more replicates may change that.
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

    /// The evidence for the claim, which must hold for each part: a part that is untested keeps it from being
    /// supported, and not from being refuted. `None` if no part was tested.
    pub fn evidence(&self) -> Option<Evidence> {
        let each: Vec<Evidence> = self.tested.iter().map(|(_, evidence)| *evidence).collect();
        Evidence::all(&each, !self.untested.is_empty())
    }
}

/// What the test of a claim found, before it is judged together with the other claims.
pub struct Tested {
    /// What it was tested on.
    pub parts: Parts,
    /// What was tested, as a formula.
    pub formula: String,
    /// What the estimates of the parts are.
    pub scale: EstimateScale,
}

/// The keys for which a selection names one value, so that all its cells agree in them; keys with a list of values are
/// left out.
pub fn fixed_keys(selection: &Selection) -> impl Iterator<Item = &str> {
    let fixed = selection.0.iter().filter(|(_, value)| !matches!(value, Scalar::Any(_)));
    fixed.map(|(key, _)| key.as_str())
}

/// The value of a setting of a cell; `None` if the cell lacks it or it is no number.
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
    /// Logarithms that are shown as their exponential: ratios.
    Logarithm,
    /// Logarithms of means over numbers that they are compared with: shown as relative differences, which are 0 where
    /// both are equal.
    RelativeDifference,
    /// Logarithms of means of a quantity over the number that they are compared with: shown as the means.
    MeanOver {
        /// The quantity of the means.
        metric: Quantity,
        /// The number that they are compared with.
        value: f64,
    },
}

impl EstimateScale {
    /// An estimate, or the end of an interval, as it is shown to readers: the exponential of a logarithm.
    pub fn shown(self, x: f64) -> f64 {
        match self {
            Self::Plain | Self::Counted => x,
            Self::Logarithm => libm::exp(x),
            Self::RelativeDifference => libm::expm1(x),
            Self::MeanOver { value, .. } => value * libm::exp(x),
        }
    }

    /// The end of a region as it is shown; an end that is left open stays infinite, also for a logarithm.
    pub fn shown_end(self, x: f64) -> f64 {
        if x.is_finite() { self.shown(x) } else { x }
    }

    /// A region as it is shown.
    pub fn shown_region(self, (low, high): Region) -> Region {
        (self.shown(low), self.shown(high))
    }

    /// The interval of an estimate as it is shown. That of a mean is within the values that the quantity can have: the
    /// logarithm takes an interval of accuracies above 1.
    pub fn shown_interval(self, (low, high): (f64, f64)) -> (f64, f64) {
        let low = self.shown(low);
        let high = self.shown(high);
        match self {
            Self::MeanOver { metric, .. } => {
                (metric.nearest_possible(low), metric.nearest_possible(high))
            }
            _ => (low, high),
        }
    }

    /// How far an estimate is inside the region in which the claim holds, and below 0 how far outside: the distance to
    /// the nearest end, in units that make the parts of a claim comparable. The unit is half the width of a region with
    /// two ends; for one end it is that end, and 1 for logarithms. The part with the least room is shown to readers.
    /// `None` if no end is known.
    pub fn room(self, evidence: &Evidence) -> Option<f64> {
        let estimate = evidence.estimate;
        let (low, high) = evidence.region;
        let room = match (low.is_finite(), high.is_finite()) {
            (true, true) => 2.0 * (estimate - low).min(high - estimate) / (high - low),
            (true, false) => (estimate - low) / self.unit_of_room(low),
            (false, true) => (high - estimate) / self.unit_of_room(high),
            // A cell whose runs diverged is compared with nothing and does not hold: its p-value for support is 1.
            (false, false) if estimate.is_infinite() && evidence.support == 1.0 => -f64::INFINITY,
            (false, false) => return None,
        };
        (!room.is_nan()).then_some(room)
    }

    /// What the distance from the only end of a region is divided by: the size of the end, or 1 if the end is 0 or a
    /// logarithm.
    fn unit_of_room(self, end: f64) -> f64 {
        match self {
            Self::Plain | Self::Counted if end != 0.0 => end.abs(),
            _ => 1.0,
        }
    }
}

impl<'a> Judge<'a> {
    /// The cells of a selection that have results.
    pub fn chosen(&self, selection: &Selection) -> Vec<&'a CellResult<'a>> {
        self.cells.iter().filter(|c| selected(c.cell, selection)).collect()
    }

    /// The label and the settings that distinguish a cell from the others of a selection, as text. Settings that are
    /// `known` to readers from elsewhere are left out. Empty if the selection says all of them.
    pub fn name(&self, cell: &CellResult<'_>, selection: &Selection, known: &[&str]) -> String {
        let known: Vec<&str> = fixed_keys(selection).chain(known.iter().copied()).collect();
        let details = setting_text::details(cell.cell, &known);
        let label: &str = if known.contains(&"label") { "" } else { &cell.cell.label };
        joined(&[label, &details])
    }

    /// The short names of the settings that move together with this one on the grid (`zip`), itself among them.
    pub(super) fn zipped_with(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let zips = self.plan.manifest.zip.iter();
        let with = zips.filter(|zip| zip.iter().any(|other| short(other) == short(name)));
        with.flatten().map(|other| short(other))
    }

    /// Adds a cell of this name for which theory has no prediction, with the reason. Theory must have been asked for
    /// the prediction before: only then it knows that one was refused because of its cost. A bound whose conditions the
    /// cell does not meet claims nothing of the cell, which is outside of the claim then; any other missing prediction
    /// leaves the cell untested.
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
