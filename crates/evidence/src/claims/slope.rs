//! `[[claim.slope]]`: the slope of a metric, or of the cost to bring it down to a target, over a setting.

use super::costs::slope_of_cost;
use super::judge::{EstimateScale, Judge, Parts, Tested, number};
use super::kind::{Claim, ClaimedCells, WrongResult, follow};
use super::sample::{MetricSample, log_combination, samples};
use super::text::{selection_text, target_text, time_text};
use crate::cells::CellResult;
use crate::cells::runs::TraceNeeds;
use crate::cells::setting_text::symbol;
use crate::cells::symbols::quantity_symbol;
use crate::stats::verdict::{Evidence, Region, slope_weights};
use exactfed_runner::manifest::claim::{ClaimKeys, Slope, When};
use exactfed_runner::plan::Cell;
use std::collections::HashMap;

/// The cells of one slope, each with its value of the setting.
type SlopeCells<'a> = Vec<(f64, &'a CellResult<'a>)>;

impl<'a> Claim<'a> for &'a Slope {
    fn keys(&self) -> &'a ClaimKeys {
        &self.common
    }

    fn cells(&self) -> Option<ClaimedCells<'a>> {
        Some(ClaimedCells { of: &self.of, right: None })
    }

    fn add_needs(&self, cell: &Cell, needs: &mut TraceNeeds) {
        match &self.reaching {
            Some(reaching) => {
                let both = [self.metric, reaching.cost];
                follow(needs, cell, &self.of, When::EveryRound, &both);
            }
            None => follow(needs, cell, &self.of, self.at, &[self.metric]),
        }
    }

    /// Tests that a slope is a number, up to a margin, for each group of cells that differ in
    /// the setting alone.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        let region = (self.value - self.margin, self.value + self.margin);
        for (name, group) in judge.slope_groups(self) {
            let weights = slope_weights(&group.iter().map(|(x, _)| *x).collect::<Vec<_>>());
            let found = match &self.reaching {
                _ if group.len() < 2 => None,
                None => slope_of_metric(self, &group, &weights, region),
                Some(reaching) => slope_of_cost(self.metric, reaching, &group, &weights, region),
            };
            let otherwise = "no slope: a cell diverged, is the only one, has a mean that may be 0, or does not reach the target or the cost";
            parts.add(name, found, otherwise);
        }
        let metric = quantity_symbol(self.metric, judge.chosen(&self.of).into_iter());
        let what = match &self.reaching {
            None => metric,
            Some(r) => format!("{} until {metric} ≤ {}", r.cost.formula(), target_text(r)),
        };
        let formula = format!(
            "slope of log({what}) over log({}) of {}{} is {} ± {}",
            symbol(&self.over),
            selection_text(&self.of),
            time_text(self.at),
            self.value,
            self.margin
        );
        Tested { parts, formula, scale: EstimateScale::Plain, conditions: Vec::new() }
    }

    fn over(&self) -> Option<&'a str> {
        Some(&self.over)
    }

    fn wrong(&self) -> Vec<WrongResult> {
        vec![
            WrongResult::Ignored,
            WrongResult::Reversed,
            WrongResult::TiltedUp,
            WrongResult::TiltedDown,
        ]
    }
}

impl<'a> Judge<'a> {
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
