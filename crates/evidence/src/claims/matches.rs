//! `[[claim.matches]]`: a mean, or a vector that is averaged over rounds, equals another up to a
//! relative margin.

use super::judge::{EstimateScale, Judge, Parts, Tested, number};
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::means::{MeanComparison, against};
use super::text::selection_text;
use crate::cells::CellResult;
use crate::cells::runs::TraceNeeds;
use crate::cells::setting_text::symbol;
use crate::cells::symbols::average_symbol;
use crate::stats::verdict::Evidence;
use exactfed_core::words::joined;
use exactfed_runner::manifest::Prediction;
use exactfed_runner::manifest::TimeAverage;
use exactfed_runner::manifest::claim::{ClaimKeys, Matches, Selection};
use exactfed_runner::plan::{Cell, selected};

/// The comparison of means that a claim makes, unless it compares vectors.
fn comparison(claim: &Matches) -> MeanComparison<'_> {
    let against = against(claim.right.as_ref(), claim.prediction, claim.value);
    let metric = claim.metric.unwrap_or_default();
    MeanComparison { metric, left: &claim.of, against, at: claim.at }
}

impl<'a> Claim<'a> for &'a Matches {
    fn keys(&self) -> &'a ClaimKeys {
        &self.common
    }

    fn cells(&self) -> Option<ClaimedCells<'a>> {
        Some(ClaimedCells { of: &self.of, right: self.right.as_ref() })
    }

    fn prediction(&self) -> Option<Prediction> {
        self.prediction
    }

    fn needs_moments(&self) -> bool {
        self.average.is_none() && comparison(self).needs_moments()
    }

    fn add_needs(&self, cell: &Cell, needs: &mut TraceNeeds) {
        match self.average {
            Some(average) => needs.averages.extend(selected(cell, &self.of).then_some(average)),
            None => comparison(self).add_needs(cell, needs),
        }
    }

    /// Tests that a mean or a vector is another, up to a relative margin that may grow with a
    /// power of a setting.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let growth = self.over.as_ref().zip(self.order);
        let cells = judge.chosen(&self.of);
        let least = growth.map_or(f64::INFINITY, |(over, _)| {
            cells.iter().filter_map(|c| number(c, over)).fold(f64::INFINITY, f64::min)
        });
        let margin = |cell: &CellResult<'_>| match growth {
            Some((over, order)) => {
                let x = number(cell, over).unwrap_or(1.0);
                self.margin * libm::pow(x / least.min(x), order)
            }
            None => self.margin,
        };
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
            let parts = judge.vectors(&self.of, average, by, &margin);
            let formula = format!(
                "‖{what} − {by}‖ ≤ margin · ‖{by}‖ for {of}, {margin_text}",
                what = average_symbol(average, cells.iter().copied()),
                by = by.words(),
                of = selection_text(&self.of)
            );
            return Tested { parts, formula, scale: EstimateScale::Plain, conditions: Vec::new() };
        }
        let formula = |c: &MeanComparison<'_>, metric: &str| {
            format!("{}, {margin_text}", c.formula(metric, "equals", 1.0))
        };
        judge.compared(&comparison(self), formula, |cell| {
            let log = libm::log1p(margin(cell));
            (-log, log)
        })
    }

    fn over(&self) -> Option<&'a str> {
        self.over.as_deref()
    }

    fn wrong(&self) -> Vec<WrongResult> {
        match self.average {
            Some(_) => vec![WrongResult::Doubled, WrongResult::Halved, WrongResult::Negated],
            None => vec![WrongResult::Doubled, WrongResult::Halved],
        }
    }
}

impl Judge<'_> {
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
