//! Claims on means: that one is at most, at least or about another, a prediction or a number.

use super::comparison::{Against, MeanComparison};
use super::judge::{EstimateScale, Judge, Parts, Tested, number};
use super::sample::{MetricSample, log_ratio, samples};
use super::text::selection_text;
use crate::cells::CellResult;
use crate::cells::setting_text::symbol;
use crate::cells::symbols::{average_symbol, quantity_symbol};
use crate::stats::mean;
use crate::stats::verdict::{Evidence, Region};
use exactfed_core::words::joined;
use exactfed_runner::manifest::TimeAverage;
use exactfed_runner::manifest::claim::{Inequality, Matches, Prediction, Selection, When};

/// Why two means have no ratio.
const NO_RATIO: &str = "both means are infinite, or both may be 0 as far as the runs show";

impl Judge<'_> {
    /// Tests that a mean is at most a multiple of another.
    pub fn less(&self, claim: &Inequality) -> Tested {
        let region = (f64::NEG_INFINITY, libm::log(claim.factor));
        self.tested(&claim.into(), |c, metric| c.formula(metric, "≤", claim.factor), |_| region)
    }

    /// Tests that a mean is at least a multiple of another.
    pub fn at_least(&self, claim: &Inequality) -> Tested {
        let region = (libm::log(claim.factor), f64::INFINITY);
        self.tested(&claim.into(), |c, metric| c.formula(metric, "≥", claim.factor), |_| region)
    }

    /// Tests that a mean or a vector is another, up to a relative margin that may grow with a
    /// power of a setting.
    pub fn matches(&self, claim: &Matches) -> Tested {
        let growth = claim.over.as_ref().zip(claim.order);
        let cells = self.chosen(&claim.of);
        let least = growth.map_or(f64::INFINITY, |(over, _)| {
            cells.iter().filter_map(|c| number(c, over)).fold(f64::INFINITY, f64::min)
        });
        let margin = |cell: &CellResult<'_>| match growth {
            Some((over, order)) => {
                let x = number(cell, over).unwrap_or(1.0);
                claim.margin * libm::pow(x / least.min(x), order)
            }
            None => claim.margin,
        };
        let percent = 100.0 * claim.margin;
        let margin_text = match growth {
            Some((over, order)) => {
                let symbol = symbol(over);
                let power = if order == 1.0 { String::new() } else { format!("^({order})") };
                format!("up to {percent} % at the smallest {symbol}, growing as {symbol}{power}")
            }
            None => format!("up to {percent} %"),
        };
        if let (Some(average), Some(by)) = (claim.average, claim.prediction) {
            let parts = self.vectors(&claim.of, average, by, &margin);
            let formula = format!(
                "‖{what} − {by}‖ ≤ margin · ‖{by}‖ for {of}, {margin_text}",
                what = average_symbol(average, cells.iter().copied()),
                by = by.words(),
                of = selection_text(&claim.of)
            );
            return Tested { parts, formula, scale: EstimateScale::Plain, conditions: Vec::new() };
        }
        let formula = |c: &MeanComparison<'_>, metric: &str| {
            format!("{}, {margin_text}", c.formula(metric, "equals", 1.0))
        };
        self.tested(&claim.into(), formula, |cell| {
            let log = libm::log1p(margin(cell));
            (-log, log)
        })
    }

    /// Tests that log(mean of the metric / what it is compared with) lies in a region, for
    /// every cell or pair.
    fn tested(
        &self,
        comparison: &MeanComparison<'_>,
        formula: impl Fn(&MeanComparison<'_>, &str) -> String,
        region: impl Fn(&CellResult<'_>) -> Region,
    ) -> Tested {
        let (parts, unit) = match comparison.against {
            Against::Cells(right) => (self.compare_pairs(comparison, right, region), 1.0),
            Against::Prediction(_) => (self.compare_cells(comparison, region), 1.0),
            Against::Value(value) => (self.compare_cells(comparison, region), value),
        };
        let mut cells = self.chosen(comparison.left);
        if let Against::Cells(right) = comparison.against {
            cells.extend(self.chosen(right));
        }
        let formula = formula(comparison, &quantity_symbol(comparison.metric, cells.into_iter()));
        Tested { parts, formula, scale: EstimateScale::Logarithm(unit), conditions: Vec::new() }
    }

    /// Each cell of a comparison against the cells of the other side with the same settings.
    fn compare_pairs(
        &self,
        comparison: &MeanComparison<'_>,
        right: &Selection,
        region: impl Fn(&CellResult<'_>) -> Region,
    ) -> Parts {
        let MeanComparison { metric, left, at, .. } = *comparison;
        let mut parts = Parts::default();
        let pairs = self.pairs(left, right);
        for (a, b) in pairs.both {
            let name = self.name(a, left, &[]);
            let (x, y) = match (samples(a, metric, at), samples(b, metric, at)) {
                (Ok(x), Ok(y)) => (x, y),
                (Err(why), _) | (_, Err(why)) => {
                    parts.add(name, None, &why);
                    continue;
                }
            };
            if x.len() != y.len() {
                parts.add(name.clone(), None, "the two sides are recorded at different rounds");
            }
            for (x, y) in x.iter().zip(&y) {
                let found = log_ratio(&x.sample, &y.sample, region(a));
                parts.add(joined(&[&name, &x.time]), found, NO_RATIO);
            }
        }
        let left_alone = pairs.left_alone.into_iter().map(|cell| (cell, left));
        let right_alone = pairs.right_alone.into_iter().map(|cell| (cell, right));
        for (cell, side) in left_alone.chain(right_alone) {
            let name = joined(&[&selection_text(side), &self.name(cell, side, &[])]);
            parts.add(name, None, "no cell of the other side has its settings");
        }
        parts
    }

    /// Each cell of a comparison against what theory predicts for it, or a number.
    fn compare_cells(
        &self,
        comparison: &MeanComparison<'_>,
        region: impl Fn(&CellResult<'_>) -> Region,
    ) -> Parts {
        let MeanComparison { metric, left, against, at } = *comparison;
        let mut parts = Parts::default();
        for cell in self.chosen(left) {
            let name = self.name(cell, left, &[]);
            // The expected mean at each recorded round; a number is the same at all of them.
            let expected = match against {
                Against::Prediction(by) => match self.theory.curve(&cell.cell.id, metric, by) {
                    Some(curve) => curve,
                    None => {
                        self.add_unpredicted(cell, by, &name, &mut parts);
                        continue;
                    }
                },
                Against::Value(value) => vec![value],
                Against::Cells(_) => continue,
            };
            let last = expected.len() - 1;
            let samples = match samples(cell, metric, at) {
                Ok(samples) => samples,
                Err(why) => {
                    parts.add(name, None, &why);
                    continue;
                }
            };
            for each in samples {
                if at.cost().is_some() && each.row.is_none() && last > 0 {
                    let why =
                        "its runs reach the cost at different rounds, and a prediction is for one";
                    parts.add(name.clone(), None, why);
                    continue;
                }
                let value = match at {
                    When::Stationary => mean(&expected[expected.len() / 2..]),
                    _ => expected[each.row.unwrap_or(last).min(last)],
                };
                let found = log_ratio(&each.sample, &MetricSample::number(value), region(cell));
                parts.add(joined(&[&name, &each.time]), found, NO_RATIO);
            }
        }
        parts
    }

    /// A vector that is averaged over rounds against what theory predicts, cell by cell.
    fn vectors(
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
                let found =
                    Evidence { n: cell.runs.count, ..Evidence::certain(f64::INFINITY, false) };
                parts.add(joined(&[&name, "diverged"]), Some(found), "");
                continue;
            }
            let Some(target) = self.theory.vector(&cell.cell.id, average, by) else {
                self.add_unpredicted(cell, by, &name, &mut parts);
                continue;
            };
            let sample = cell.runs.averages(average).filter(|sample| !sample.is_empty());
            let found = sample.filter(|_| target.iter().any(|x| *x != 0.0)).map(|sample| {
                let margin = margin(cell);
                if cell.is_deterministic() {
                    return Evidence::from_exact_vector(sample[0], &target, margin);
                }
                let sample: Vec<Vec<f64>> = sample.into_iter().map(<[f64]>::to_vec).collect();
                Evidence::from_vectors(&sample, &target, margin)
            });
            parts.add(name, found, "it is not recorded, or predicted to be 0");
        }
        parts
    }
}
