//! The common form of the claims `less`, `at-least` and `matches`: a mean of some cells and what it
//! is compared with.

use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::{When, check_time};
use super::kind::ClaimedCells;
use super::sample::{MetricSample, log_ratio, samples, second_half};
use super::text::{number_text, selection_text, time_text};
use crate::cells::CellResult;
use crate::cells::symbols::quantity_symbol;
use crate::stats::mean;
use crate::stats::verdict::{Evidence, Region};
use exactfed_core::words::joined;
use exactfed_runner::manifest::claim::Selection;
use exactfed_runner::manifest::{Prediction, Quantity};
use exactfed_runner::plan::{Checker, selected};

/// Why two means have no ratio.
const NO_RATIO: &str = "both means are infinite, or both may be 0 as far as the runs show";

/// A claim that compares the mean of a metric with one of three: that over other cells, a
/// prediction of theory for the same cells, or a number.
#[derive(Clone, Copy)]
pub struct MeanComparison<'a> {
    /// The quantity whose means are compared.
    pub metric: Quantity,
    /// The cells that the claim is made for.
    pub left: &'a Selection,
    /// The cells that they are compared with.
    pub right: Option<&'a Selection>,
    /// The prediction that they are compared with.
    pub prediction: Option<Prediction>,
    /// The number that they are compared with.
    pub value: Option<f64>,
    /// The rounds at which they are compared.
    pub at: When,
}

impl<'a> MeanComparison<'a> {
    /// Notes what is wrong with the keys of a comparison of means: what [`Self::check_sides`] notes, that not exactly
    /// one of `right`, `prediction` and `value` is written, and what is wrong with the cost at which the left cells are
    /// compared.
    pub fn check(&self, table: &mut Checker<'_>) {
        self.check_sides(table);
        let Self { metric, left, right, prediction, value, at } = *self;
        let written = [right.is_some(), prediction.is_some(), value.is_some()];
        let count = written.into_iter().filter(|is_written| *is_written).count();
        let message = format!("write one of `right`, `prediction` and `value`, not {count}");
        table.require(count == 1, "", message);
        check_time(table, at, metric, left);
    }

    /// Notes what is wrong with each thing that the left cells are compared with: with the selection `right`, which may
    /// have no left cell (it would be compared with itself), and the cost at which its cells are compared; with a
    /// prediction, which needs θ*; and with a number, which must be above 0. Of a claim on vectors no more is checked
    /// here: its own check requires a prediction, and no cost.
    pub fn check_sides(&self, table: &mut Checker<'_>) {
        let Self { metric, left, right, prediction, value, at } = *self;
        if let Some(right) = right {
            table.selection("right", right);
            if let Some(cell) =
                table.cells.iter().find(|cell| selected(cell, left) && selected(cell, right))
            {
                let message = format!(
                    "a cell of `{}` would be compared with itself: both sides select it",
                    cell.label
                );
                table.fault("", message);
            }
            check_time(table, at, metric, right);
        }
        table.predictions("prediction", prediction.is_some());
        if let Some(value) = value {
            table.above("value", value, 0.0);
        }
    }

    /// The cells that the claim is about, with what it needs of them.
    pub fn cells(&self) -> ClaimedCells<'a> {
        let Self { metric, left, right, prediction, at, .. } = *self;
        let measured = (vec![metric], at);
        ClaimedCells { right, prediction, measured, ..ClaimedCells::new(left) }
    }
}

impl Judge<'_> {
    /// Tests that log(mean of the metric / what it is compared with) lies in the `region` of the left cell, for every
    /// cell or pair of cells. `sign` and `factor` are written in the formula between the two sides, and have no other
    /// effect, since the region has the factor in it already. `of_pair` gets the evidence from a pair of cells, and
    /// whether nothing is random in either, and returns what this evidence means for the claim.
    pub fn compared(
        &self,
        comparison: &MeanComparison<'_>,
        sign: &str,
        factor: f64,
        region: impl Fn(&CellResult<'_>) -> Region,
        of_pair: impl Fn(Evidence, bool) -> Evidence,
    ) -> Tested {
        let MeanComparison { metric, left, right, prediction, value, at } = *comparison;
        let parts = match right {
            Some(right) => self.compare_pairs(comparison, right, region, of_pair),
            None => self.compare_cells(comparison, region),
        };
        let cells = comparison.cells().selections().flat_map(|side| self.chosen(side));
        let symbol = quantity_symbol(metric, &cells.collect::<Vec<_>>());
        let against = match (right, prediction) {
            (Some(right), _) => format!("that of {}", selection_text(right)),
            (None, Some(by)) => by.words().to_owned(),
            (None, None) => value.map_or_else(String::new, number_text),
        };
        let factor = if factor == 1.0 { String::new() } else { format!("{factor} × ") };
        // A bias is the norm of a mean already.
        let mean = if metric.average().is_some() { "" } else { "mean " };
        let left = selection_text(left);
        let time = time_text(at);
        let formula = format!("{mean}{symbol} of {left}{time} {sign} {factor}{against}");
        let scale = match value {
            Some(value) => EstimateScale::MeanOver { metric, value },
            None => EstimateScale::Logarithm,
        };
        Tested { parts, formula, scale }
    }

    /// Compares each cell of the left side with the cells of the right side that have its settings, at each time of the
    /// claim. Cells without a counterpart are untested.
    fn compare_pairs(
        &self,
        comparison: &MeanComparison<'_>,
        right: &Selection,
        region: impl Fn(&CellResult<'_>) -> Region,
        of_pair: impl Fn(Evidence, bool) -> Evidence,
    ) -> Parts {
        let MeanComparison { metric, left, at, .. } = *comparison;
        let mut parts = Parts::default();
        let pairs = self.pairs(left, right);
        for (a, b) in pairs.both {
            let name = self.name(a, left, &[]);
            let (x, y) = match (samples(a, metric, at), samples(b, metric, at)) {
                (Ok(x), Ok(y)) => (x, y),
                (Err(error), _) | (_, Err(error)) => {
                    parts.add(name, None, &error.to_string());
                    continue;
                }
            };
            if x.len() != y.len() {
                parts.add(name.clone(), None, "the two sides are recorded at different rounds");
            }
            for (x, y) in x.iter().zip(&y) {
                let is_fixed = x.sample.fixed && y.sample.fixed;
                let found = log_ratio(&x.sample, &y.sample, region(a))
                    .map(|evidence| of_pair(evidence, is_fixed));
                parts.add_means(joined(&[&name, &x.time]), found, NO_RATIO);
            }
        }
        for (cell, side) in pairs.alone {
            let name = joined(&[&selection_text(side), &self.name(cell, side, &[])]);
            parts.add(name, None, "no cell of the other side has its settings");
        }
        parts
    }

    /// Compares each cell with what theory predicts for it, or else with the number of the claim, at each time of the
    /// claim.
    fn compare_cells(
        &self,
        comparison: &MeanComparison<'_>,
        region: impl Fn(&CellResult<'_>) -> Region,
    ) -> Parts {
        let MeanComparison { metric, left, prediction, value, at, .. } = *comparison;
        let mut parts = Parts::default();
        for cell in self.chosen(left) {
            let name = self.name(cell, left, &[]);
            // The expected mean at each recorded round; a number is the same at all of them.
            let expected = match prediction {
                Some(by) => match self.theory.curve(&cell.cell.id, metric, by) {
                    Some(curve) => curve,
                    None => {
                        self.add_unpredicted(cell, by, &name, &mut parts);
                        continue;
                    }
                },
                None => vec![value.unwrap_or(f64::NAN)],
            };
            let last = expected.len() - 1;
            let samples = match samples(cell, metric, at) {
                Ok(samples) => samples,
                Err(error) => {
                    parts.add(name, None, &error.to_string());
                    continue;
                }
            };
            for each in samples {
                if at.compared_at().is_some() && each.row.is_none() && last > 0 {
                    let why =
                        "its runs reach the cost at different rounds, and a prediction is for one";
                    parts.add(name.clone(), None, why);
                    continue;
                }
                // The expectation at the time of the sample.
                let value = match at {
                    // The expectation has as many rounds as the trace, unless it is a number or the runs diverged.
                    When::Stationary => {
                        let rounds = cell.runs.rounds(0).filter(|all| all.len() == expected.len());
                        mean(&expected[rounds.map_or(0, second_half)..])
                    }
                    _ => expected[each.row.unwrap_or(last).min(last)],
                };
                let found = log_ratio(&each.sample, &MetricSample::exact(value), region(cell));
                parts.add_means(joined(&[&name, &each.time]), found, NO_RATIO);
            }
        }
        parts
    }
}
