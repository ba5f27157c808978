//! `[[claim.slope]]`: the slope of a metric, or of the cost to bring it down to a target, over a setting.

use super::costs::{slope_of_cost, target_sign};
use super::judge::{EstimateScale, Judge, Parts, Tested, setting_number};
use super::keys::{ClaimOf, Reaching, When, check_reaching, check_time};
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::sample::{MetricSample, NoEvidence, log_combination, samples};
use super::text::{selection_text, target_text, time_text};
use crate::cells::CellResult;
use crate::cells::panels::grouped;
use crate::cells::setting_text::symbol;
use crate::cells::symbols::quantity_symbol;
use crate::stats::mean;
use crate::stats::verdict::{Evidence, Region, slope_weights};
use exactfed_core::words::plain;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// The slope of the logarithm of a metric's mean over that of a setting is `value`, up to
/// `margin`. Cells that differ in the label or in another setting have separate slopes, and the
/// claim must hold for each.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlopeKeys {
    /// The quantity whose slope is taken.
    #[serde(default)]
    pub metric: Quantity,
    /// The cells.
    #[schemars(example = Selection::example("FedAvg"))]
    pub of: Selection,
    /// The setting along which the slope is taken, a number above 0 in every cell.
    #[schemars(example = &"step-size")]
    pub over: String,
    /// The slope that is claimed.
    #[schemars(example = 1.0)]
    pub value: f64,
    /// How far the slope may be from it, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub margin: f64,
    /// Takes the slope of what it costs to bring the mean of the metric down to a target.
    pub reaching: Option<Reaching>,
    /// When the metric is measured.
    #[serde(default)]
    pub at: When,
}

impl KindKeys<ClaimKeys> for SlopeKeys {
    /// Notes what is wrong with the keys: the metric, the cells, the setting, the slope, and the time or the target.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        table.quantity("metric", claim.metric);
        table.selection("of", &claim.of);
        table.positive("over", &claim.over, &claim.of);
        table.finite("value", claim.value);
        table.above("margin", claim.margin, 0.0);
        if let Some(reaching) = &claim.reaching {
            check_reaching(table, claim.metric, reaching, &claim.of);
        }
        check_time(table, claim.at, claim.metric, &claim.of);
        table.require(claim.at != When::EveryRound, "at", "a slope is taken at one time");
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<SlopeKeys> {
    /// The cells of the claim. For the cost to reach a target, the metric and the cost are needed at every recorded
    /// round.
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        let measured = match &self.reaching {
            Some(reaching) => (vec![self.metric, reaching.cost], When::EveryRound),
            None => (vec![self.metric], self.at),
        };
        Some(ClaimedCells { over: Some(&self.over), measured, ..ClaimedCells::new(&self.of) })
    }

    /// Tests the slope over the setting of each group of cells that agree in all other settings, but for those that are
    /// zipped with it, as a part.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        // The largest distance of a mean from a fitted line, for the formula.
        let mut farthest = None;
        let region = (self.value - self.margin, self.value + self.margin);
        for (name, group) in judge.along(&self.of, &self.over) {
            let is_one_value = group.iter().all(|(x, _)| *x == group[0].0);
            let weights = slope_weights(&group.iter().map(|(x, _)| *x).collect::<Vec<_>>());
            let found = match &self.reaching {
                _ if is_one_value => Err(NoEvidence::Undefined),
                None => slope_of_metric(self, &group, &weights, region, &mut farthest),
                Some(reaching) => slope_of_cost(self.metric, reaching, &group, &weights, region)
                    .ok_or(NoEvidence::Undefined),
            };
            let otherwise = match &self.reaching {
                _ if is_one_value => "it has one value of the setting, and a slope needs two",
                _ if group.iter().any(|(_, cell)| cell.runs.diverged > 0) => "a cell diverged",
                None => "a mean may be 0, or a cell ends before the cost",
                Some(_) => "a cell does not reach the target, or is there at no cost",
            };
            parts.add_means(name, found, otherwise);
        }
        let metric = quantity_symbol(self.metric, &judge.chosen(&self.of));
        let what = match &self.reaching {
            None => metric,
            Some(r) => {
                let sign = target_sign(self.metric);
                format!("{} until {metric} {sign} {}", r.cost.formula(), target_text(r))
            }
        };
        let percent = farthest.map(|farthest| plain(100.0 * farthest, 2));
        let off_line = percent.map(|far| format!(", and points are up to {far} % off the line"));
        let formula = format!(
            "slope of log({what}) over log({}) of {}{} is {} ± {}{}",
            symbol(&self.over),
            selection_text(&self.of),
            time_text(self.at),
            self.value,
            self.margin,
            off_line.unwrap_or_default(),
        );
        Tested { parts, formula, scale: EstimateScale::Plain }
    }

    /// A slope is false if results do not depend on the setting, depend on it the other way round, or with another
    /// power.
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
    /// The cells of a selection along the setting `over`, in the order of the plan: groups of cells that agree in the
    /// label and in all settings but `over`, those that are zipped with it, and γH. Each group has a name, and each
    /// cell its value of `over`. A group may have one value alone, of which no slope can be taken: a single cell, or
    /// several that differ only in settings zipped with `over`. Cells whose value is no number are left out.
    pub fn along(
        &self,
        of: &Selection,
        over: &str,
    ) -> Vec<(String, Vec<(f64, &'a CellResult<'a>)>)> {
        // γH follows from the settings that it is made of, and zipped axes move together.
        let mut known = vec![over, "path-length"];
        known.extend(self.zipped_with(over));
        grouped(self.chosen(of).into_iter().filter_map(|cell| {
            let x = setting_number(cell, over)?;
            Some((self.name(cell, of, &known), (x, cell)))
        }))
    }
}

/// Evidence for the slope of a metric's mean over the setting that the claim names; `group` has the value of the
/// setting and the cell at each point of one line, and `weights` are those of [`slope_weights`]. With more than two
/// points, `farthest` is raised to the largest distance of a mean from the fitted line, as a share of the line's value
/// there.
///
/// # Errors
/// Why there is none: a cell has no values at the time of the claim, or [`log_combination`] gives none.
fn slope_of_metric(
    claim: &ClaimOf<SlopeKeys>,
    group: &[(f64, &CellResult<'_>)],
    weights: &[f64],
    region: Region,
    farthest: &mut Option<f64>,
) -> Result<Evidence, NoEvidence> {
    // A slope is taken at one time, so that each cell has one sample.
    let all: Vec<MetricSample> = group
        .iter()
        .map(|(_, cell)| samples(cell, claim.metric, claim.at).ok()?.pop())
        .map(|last| Some(last?.sample))
        .collect::<Option<_>>()
        .ok_or(NoEvidence::Undefined)?;
    let weighted: Vec<(f64, &MetricSample)> = weights.iter().copied().zip(&all).collect();
    let found = log_combination(&weighted, region)?;
    if group.len() > 2 {
        let slope: f64 = weighted.iter().map(|(w, sample)| w * libm::log(sample.mean())).sum();
        let rests: Vec<f64> = group
            .iter()
            .zip(&all)
            .map(|((x, _), sample)| libm::log(sample.mean()) - slope * libm::log(*x))
            .collect();
        let off = rests.iter().map(|rest| libm::fabs(libm::expm1(rest - mean(&rests))));
        *farthest = off.chain(*farthest).reduce(f64::max);
    }
    Ok(found)
}
