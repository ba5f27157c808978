//! What every kind of claim states about itself. Each kind has a file with its test, what it needs of
//! the results, and what may be wrong with results that it must not survive.

use super::judge::{Judge, Tested};
use super::keys::When;
use crate::cells::runs::TraceNeeds;
use exactfed_runner::manifest::claim::Selection;
use exactfed_runner::manifest::searched::AlgorithmName;
use exactfed_runner::manifest::{Prediction, Quantity, TimeAverage};
use exactfed_runner::plan::{Cell, selected};

/// A claim of a manifest.
pub trait Claim<'a>: Sync {
    /// The cells that it is about; `None` if it is about frontiers.
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        None
    }

    /// Tests the claim on the cells of an experiment.
    fn test(&self, judge: &Judge<'_>) -> Tested;

    /// What may be wrong with results that makes it false, apart from what is wrong with any cells.
    fn wrong(&self) -> Vec<WrongResult> {
        Vec::new()
    }
}

/// The cells that a claim is about.
pub struct ClaimedCells<'a> {
    /// The cells of which it is claimed.
    pub of: &'a Selection,
    /// The cells that they are compared with.
    pub right: Option<&'a Selection>,
    /// The prediction of theory for the cells that the claim is tested on, if it is tested on one.
    pub prediction: Option<Prediction>,
    /// The setting along which the cells are compared, if they are compared along one.
    pub over: Option<&'a str>,
    /// The quantities that are measured, and when; last rounds are there without being named.
    pub measured: (Vec<Quantity>, When),
    /// The average over rounds that is measured, if one is.
    pub average: Option<TimeAverage>,
}

impl<'a> ClaimedCells<'a> {
    /// Cells that are compared with nothing, after their last rounds.
    pub fn new(of: &'a Selection) -> Self {
        Self {
            of,
            right: None,
            prediction: None,
            over: None,
            measured: (Vec::new(), When::End),
            average: None,
        }
    }

    /// One selection, or both.
    pub fn selections(&self) -> impl Iterator<Item = &'a Selection> + use<'a> {
        [Some(self.of), self.right].into_iter().flatten()
    }

    /// Whether the exact moments of the cells are needed round by round.
    pub fn needs_moments(&self) -> bool {
        let is_of_moments = self.prediction == Some(Prediction::ExactMoments);
        is_of_moments && self.measured.0.iter().any(|quantity| quantity.average().is_none())
    }

    /// Adds what must be read of a cell's traces, beyond their last rounds.
    pub fn add_needs(&self, cell: &Cell, needs: &mut TraceNeeds) {
        if !self.selections().any(|cells| selected(cell, cells)) {
            return;
        }
        needs.averages.extend(self.average);
        let (quantities, at) = &self.measured;
        let quantities = quantities.iter().copied().filter(|q| q.average().is_none());
        match at.cost() {
            _ if *at == When::End => {}
            None => needs.along.extend(quantities),
            cost => needs.add_at(cost, quantities),
        }
    }
}

/// What may be wrong with results.
#[derive(Clone, Debug, PartialEq)]
pub enum WrongResult {
    /// The results of the two sides are exchanged.
    Exchanged,
    /// All values of the setting have the results of the first.
    Ignored,
    /// The first value of the setting has the results of the last, and so on.
    Reversed,
    /// Results are larger by the setting, relative to its first value.
    TiltedUp,
    /// They are smaller by it.
    TiltedDown,
    /// Results are twice as large.
    Doubled,
    /// Results are half as large.
    Halved,
    /// Vectors have the other sign.
    Negated,
    /// Clients are not averaged: results are N times as large.
    TimesClients,
    /// Results are H times as large.
    TimesLocalSteps,
    /// Runs stay where they start.
    Standing,
    /// A round does what a quarter of a round should.
    Slow,
    /// Control variates and extrapolation do nothing.
    Plain,
    /// An algorithm without them has the results of one with them.
    Corrected,
    /// There is no noise: errors are the squared exact bias.
    WithoutNoise,
    /// Runs go to the fixed point of the virtual environment: their distances from it are those
    /// from θ*, and the other way round.
    OtherPoint,
    /// The costs of a frontier are multiplied by N^a ε^b, with these a and b.
    FrontierTilted(f64, f64),
    /// The costs of two algorithms on a frontier are exchanged.
    FrontierExchanged(AlgorithmName, AlgorithmName),
    /// The costs of an algorithm on a frontier are twice as large.
    FrontierDoubled(AlgorithmName),
}

impl WrongResult {
    /// What may be wrong with the results of any cells.
    pub const WITH_CELLS: [Self; 7] = [
        Self::TimesClients,
        Self::TimesLocalSteps,
        Self::Standing,
        Self::Slow,
        Self::Plain,
        Self::Corrected,
        Self::OtherPoint,
    ];
}
