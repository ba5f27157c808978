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
    /// The cells that the claim is about, with what it needs of them; `None` if it is about frontiers or maps.
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        None
    }

    /// Tests the claim on the results of an experiment. Its verdict follows when all claims are judged together.
    fn test(&self, judge: &Judge<'_>) -> Tested;

    /// Wrong results that would make the claim false, in addition to [`WrongResult::WITH_CELLS`]: a test changes the
    /// results in these ways, and fails if a supported claim stays supported under all of them.
    fn wrong(&self) -> Vec<WrongResult> {
        Vec::new()
    }
}

/// The cells that a claim is about, and what it needs of their runs and of theory.
pub struct ClaimedCells<'a> {
    /// The cells that the claim is made for.
    pub of: &'a Selection,
    /// The cells that they are compared with, if it is with other cells.
    pub right: Option<&'a Selection>,
    /// The prediction of theory that the cells are compared with, if it is with one.
    pub prediction: Option<Prediction>,
    /// The setting along which the cells are compared, if they are compared along one.
    pub over: Option<&'a str>,
    /// The quantities that are measured, and when. Values at the last round are always in memory, so that a claim that
    /// needs no others may name no quantity.
    pub measured: (Vec<Quantity>, When),
    /// The average over rounds that is measured, if one is.
    pub average: Option<TimeAverage>,
}

impl<'a> ClaimedCells<'a> {
    /// Cells that are compared with no others, after their last rounds.
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

    /// The selections of the claim: its own cells, and the cells that they are compared with, if there are some.
    pub fn selections(&self) -> impl Iterator<Item = &'a Selection> + use<'a> {
        [Some(self.of), self.right].into_iter().flatten()
    }

    /// Whether the claim compares a quantity with the exact moments, which then are computed for each recorded round of
    /// the cells; averages over rounds are compared with the moments at stationarity alone.
    pub fn needs_moments(&self) -> bool {
        let is_of_moments = self.prediction == Some(Prediction::ExactMoments);
        is_of_moments && self.measured.0.iter().any(|quantity| quantity.average().is_none())
    }

    /// Adds what the claim needs of a cell's traces in addition to their last rounds; nothing if the claim is not about
    /// the cell.
    pub fn add_needs(&self, cell: &Cell, needs: &mut TraceNeeds) {
        if !self.selections().any(|cells| selected(cell, cells)) {
            return;
        }
        needs.averages.extend(self.average);
        let (quantities, at) = &self.measured;
        let quantities = quantities.iter().copied().filter(|q| q.average().is_none());
        match at.compared_at() {
            _ if *at == When::End => {}
            None => needs.along.extend(quantities),
            cost => needs.add_at(cost, quantities),
        }
    }
}

/// A way in which the results of cells, or of a frontier, may be wrong. Tests change results in these ways, to show
/// that claims find it.
#[derive(Clone, Debug, PartialEq)]
pub enum WrongResult {
    /// The results of the two sides are exchanged.
    Exchanged,
    /// All values of the setting have the results of the first.
    Ignored,
    /// The first value of the setting has the results of the last, and so on.
    Reversed,
    /// Results are multiplied by the setting of the cell over the first value of the setting.
    TiltedUp,
    /// Results are divided by the setting of the cell over the first value of the setting.
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
    /// Control variates and extrapolation do nothing: the results are those of the algorithm without them.
    Plain,
    /// An algorithm without control variates and extrapolation has the results of one with them.
    Corrected,
    /// There is no noise: errors are the squared exact bias.
    WithoutNoise,
    /// Runs go to the fixed point of the virtual environment: their distances from this point and from θ* are
    /// exchanged.
    OtherPoint,
    /// The costs of a frontier are multiplied by N^a ε^b, with these a and b.
    FrontierTilted(f64, f64),
    /// The costs of two algorithms on a frontier are exchanged.
    FrontierExchanged(AlgorithmName, AlgorithmName),
    /// The costs of an algorithm on a frontier are twice as large.
    FrontierDoubled(AlgorithmName),
}

impl WrongResult {
    /// The ways in which the results of the cells of any claim may be wrong.
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
