//! `[[claim.matches]]`: a mean, or a vector that is averaged over rounds, equals another up to a
//! relative margin.

use super::judge::{EstimateScale, Judge, Parts, Tested, setting_number};
use super::keys::{ClaimOf, When};
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::means::MeanComparison;
use super::text::selection_text;
use crate::cells::CellResult;
use crate::cells::setting_text::symbol;
use crate::cells::symbols::average_symbol;
use crate::stats::distance::norm;
use crate::stats::verdict::Evidence;
use exactfed_core::words::joined;
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::manifest::{Prediction, Quantity, TimeAverage};
use exactfed_runner::plan::{Checker, KindKeys};
use exactfed_runner::runner::predict::AveragedOver;
use schemars::JsonSchema;
use serde::Deserialize;

/// The mean of a metric, or of a vector that is averaged over rounds, equals a prediction, that
/// of other cells or a number up to a relative margin: an equivalence test, for every cell or
/// pair.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MatchesKeys {
    /// The quantity that is measured.
    pub metric: Option<Quantity>,
    /// A vector, compared in norm, in place of `metric`. Without either the metric is `sq-error`.
    pub average: Option<TimeAverage>,
    /// The cells.
    #[schemars(example = Selection::example("FedAvg"))]
    pub of: Selection,
    /// A prediction of theory for them.
    pub prediction: Option<Prediction>,
    /// Other cells, in place of `prediction`.
    #[schemars(example = Selection::example("Scaffold"))]
    pub right: Option<Selection>,
    /// A number, in place of `prediction`.
    #[schemars(example = 0.01)]
    pub value: Option<f64>,
    /// The relative margin, above 0; with `order`, at the smallest value of
    /// the setting.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub margin: f64,
    /// Order of the remainder: the margin grows with this power of `over`.
    #[schemars(example = 1.0)]
    pub order: Option<f64>,
    /// The setting that the remainder is a power of, a number above 0 in every cell.
    #[schemars(example = &"step-size")]
    pub over: Option<String>,
    /// When it is measured.
    #[serde(default)]
    pub at: When,
}

impl KindKeys<ClaimKeys> for MatchesKeys {
    /// Notes what is wrong with the keys. A claim compares either means of a metric with one of three things, or
    /// vectors with a prediction.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        table.selection("of", &claim.of);
        table.above("margin", claim.margin, 0.0);
        match (claim.metric, claim.average) {
            (Some(_), Some(_)) => {
                let message = "`average` and `metric` exclude each other: write one of them";
                table.fault("average", message);
            }
            (metric, None) => table.quantity("metric", metric.unwrap_or_default()),
            (None, Some(average)) => {
                let name = average.name();
                let message =
                    format!("`{name}` is not recorded: write averages = [\"{name}\"] in [record]");
                let record = &table.manifest.record;
                let is_recorded = record.averages.contains(&average);
                if record.optimum {
                    table.require(is_recorded, "average", message);
                } else {
                    table.needs_optimum("average", &format!("`{name}`"));
                }
                let against =
                    claim.prediction.is_some() && claim.right.is_none() && claim.value.is_none();
                table.require(against, "", "a vector is compared with a `prediction`");
            }
        }
        let is_on_vectors = claim.average.is_some();
        let message = "an average over all rounds has no value at a cost";
        table.require(!is_on_vectors || claim.at.compared_at().is_none(), "at", message);
        if is_on_vectors {
            comparison(claim).check_sides(table);
        } else {
            comparison(claim).check(table);
        }
        match (&claim.over, claim.order) {
            (Some(over), Some(order)) => {
                table.positive("over", over, &claim.of);
                table.finite("order", order);
            }
            (None, None) => {}
            _ => table.fault("", "`order` and `over` are given together"),
        }
    }
}

/// The comparison of means that the keys of a claim describe. If the claim compares vectors, this is only for the
/// checks of its keys, since its `metric` then means nothing.
fn comparison(claim: &ClaimOf<MatchesKeys>) -> MeanComparison<'_> {
    MeanComparison {
        metric: claim.metric.unwrap_or_default(),
        left: &claim.of,
        right: claim.right.as_ref(),
        prediction: claim.prediction,
        value: claim.value,
        at: claim.at,
    }
}

/// The relative margin of a claim for a cell. If the claim has an `order`, the margin is the written one where the
/// setting `over` has its `smallest` value among the cells, and grows with this power of the setting.
fn margin_of(claim: &ClaimOf<MatchesKeys>, cell: &CellResult<'_>, smallest: f64) -> f64 {
    let Some((over, order)) = claim.over.as_ref().zip(claim.order) else { return claim.margin };
    let x = setting_number(cell, over).unwrap_or(1.0);
    claim.margin * libm::pow(x / smallest.min(x), order)
}

impl<'a> Claim<'a> for &'a ClaimOf<MatchesKeys> {
    /// The cells of the claim; of a claim on vectors, with the average that must be in memory in place of metrics.
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        let over = self.over.as_deref();
        Some(match self.average {
            None => ClaimedCells { over, ..comparison(self).cells() },
            Some(_) => {
                let prediction = self.prediction;
                let average = self.average;
                ClaimedCells { prediction, over, average, ..ClaimedCells::new(&self.of) }
            }
        })
    }

    /// Tests each cell or pair of cells, as a part: vectors in norm if the claim has an `average`, and else the
    /// logarithm of a ratio of means.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        // The setting with which the margin grows, and its power.
        let growth = self.over.as_ref().zip(self.order);
        let cells = judge.chosen(&self.of);
        let smallest = growth.map_or(f64::INFINITY, |(over, _)| {
            cells.iter().filter_map(|c| setting_number(c, over)).fold(f64::INFINITY, f64::min)
        });
        let percent = 100.0 * self.margin;
        let margin_text = match growth {
            Some((over, order)) => {
                let symbol = symbol(over);
                let power = if order == 1.0 { String::new() } else { format!("^({order})") };
                format!("up to {percent} % at the smallest {symbol}, growing as {symbol}{power}")
            }
            None => format!("up to {percent} %"),
        };
        if let (Some(average), Some(by)) = (self.average, self.prediction) {
            let parts = judge
                .compare_vectors(&self.of, average, by, &|cell| margin_of(self, cell, smallest));
            let formula = format!(
                "‖{what} − {by}‖ ≤ margin · ‖{by}‖ for {of}, {margin_text}",
                what = average_symbol(average, &cells),
                by = by.words(),
                of = selection_text(&self.of)
            );
            return Tested { parts, formula, scale: EstimateScale::Plain };
        }
        let tested = judge.compared(
            &comparison(self),
            "equals",
            1.0,
            |cell| {
                let log = libm::log1p(margin_of(self, cell, smallest));
                (-log, log)
            },
            |evidence, _| evidence,
        );
        Tested { formula: format!("{}, {margin_text}", tested.formula), ..tested }
    }

    /// What equals a prediction does not if it is twice or half as large; a vector must have the right sign too.
    fn wrong(&self) -> Vec<WrongResult> {
        match self.average {
            Some(_) => vec![WrongResult::Doubled, WrongResult::Halved, WrongResult::Negated],
            None => vec![WrongResult::Doubled, WrongResult::Halved],
        }
    }
}

impl Judge<'_> {
    /// Compares an average over rounds of each cell with the vector that theory predicts for it, in norm: the distance
    /// may be at most `margin` of the cell times the norm of the prediction. A cell with a run that diverged refutes
    /// the claim.
    fn compare_vectors(
        &self,
        of: &Selection,
        average: TimeAverage,
        by: Prediction,
        margin: &dyn Fn(&CellResult<'_>) -> f64,
    ) -> Parts {
        let mut parts = Parts::default();
        for cell in self.chosen(of) {
            let name = self.name(cell, of, &[]);
            if cell.runs.diverged > 0 {
                let found = Evidence {
                    n: cell.runs.sample_size(),
                    ..Evidence::certain(f64::INFINITY, false)
                };
                parts.add(joined(&[&name, "diverged"]), Some(found), "");
                continue;
            }
            // Runs record averages over the rounds after the burn-in, and the prediction is for these.
            let Some(target) = self.theory.vector(&cell.cell.id, average, by, AveragedOver::Rounds)
            else {
                self.add_unpredicted(cell, by, &name, &mut parts);
                continue;
            };
            let sample = cell.runs.averages(average).filter(|sample| !sample.is_empty());
            let found = sample.filter(|_| target.iter().any(|x| *x != 0.0)).map(|sample| {
                let margin = margin(cell);
                if cell.is_deterministic() {
                    // All runs are on one instance and equal, so that the first one has no sampling error.
                    let apart: Vec<f64> =
                        sample[0].iter().zip(&target).map(|(x, t)| x - t).collect();
                    let region = (f64::NEG_INFINITY, margin);
                    return Evidence::exact(norm(&apart) / norm(&target), region);
                }
                let sample: Vec<Vec<f64>> = sample.into_iter().map(<[f64]>::to_vec).collect();
                Evidence::from_vectors(&sample, &target, margin)
            });
            parts.add(name, found, "it is not recorded, or predicted to be 0");
        }
        parts
    }
}
