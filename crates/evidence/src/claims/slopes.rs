//! Claims on slopes: of a metric, or of the cost to bring it down to a target, over a setting.

use super::costs::slope_of_cost;
use super::judge::{EstimateScale, Judge, Parts, Tested, number};
use super::sample::{MetricSample, log_combination, samples};
use super::text::{selection_text, target_text, time_text};
use crate::cells::CellResult;
use crate::cells::setting_text::symbol;
use crate::cells::symbols::quantity_symbol;
use crate::stats::verdict::{Evidence, Region, slope_weights};
use exactfed_runner::manifest::claim::Slope;
use std::collections::HashMap;

/// The cells of one slope, each with its value of the setting.
type SlopeCells<'a> = Vec<(f64, &'a CellResult<'a>)>;

impl<'a> Judge<'a> {
    /// Tests that a slope is a number, up to a margin, for each group of cells that differ in
    /// the setting alone.
    pub fn slope(&self, claim: &Slope) -> Tested {
        let mut parts = Parts::default();
        let region = (claim.value - claim.margin, claim.value + claim.margin);
        for (name, group) in self.slope_groups(claim) {
            let weights = slope_weights(&group.iter().map(|(x, _)| *x).collect::<Vec<_>>());
            let found = match &claim.reaching {
                _ if group.len() < 2 => None,
                None => slope_of_metric(claim, &group, &weights, region),
                Some(reaching) => slope_of_cost(claim.metric, reaching, &group, &weights, region),
            };
            let otherwise = "no slope: a cell diverged, is the only one, has a mean that may be 0, or does not reach the target or the cost";
            parts.add(name, found, otherwise);
        }
        let metric = quantity_symbol(claim.metric, self.chosen(&claim.of).into_iter());
        let what = match &claim.reaching {
            None => metric,
            Some(r) => format!("{} until {metric} ≤ {}", r.cost.formula(), target_text(r)),
        };
        let formula = format!(
            "slope of log({what}) over log({}) of {}{} is {} ± {}",
            symbol(&claim.over),
            selection_text(&claim.of),
            time_text(claim.at),
            claim.value,
            claim.margin
        );
        Tested { parts, formula, scale: EstimateScale::Plain, conditions: Vec::new() }
    }

    /// The cells of a claim by what distinguishes them beside the setting of the slope, in their
    /// order.
    fn slope_groups(&self, claim: &Slope) -> Vec<(String, SlopeCells<'a>)> {
        let mut groups: Vec<(String, SlopeCells<'a>)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        // γH follows from the settings that it is made of, and zipped axes move together.
        let mut known = vec![claim.over.as_str(), "path-length"];
        known.extend(self.zipped_with(&claim.over));
        for cell in self.chosen(&claim.of) {
            let Some(x) = number(cell, &claim.over) else { continue };
            let name = self.name(cell, &claim.of, &known);
            let place = *places.entry(name.clone()).or_insert(groups.len());
            if place == groups.len() {
                groups.push((name, Vec::new()));
            }
            groups[place].1.push((x, cell));
        }
        groups
    }
}

/// Evidence for the slope of a metric's mean.
fn slope_of_metric(
    claim: &Slope,
    group: &[(f64, &CellResult<'_>)],
    weights: &[f64],
    region: Region,
) -> Option<Evidence> {
    let all = group.iter().map(|(_, cell)| samples(cell, claim.metric, claim.at).ok()?.pop());
    let all: Vec<MetricSample> = all.map(|last| Some(last?.sample)).collect::<Option<_>>()?;
    let weighted: Vec<(f64, &MetricSample)> = weights.iter().copied().zip(&all).collect();
    log_combination(&weighted, region)
}
