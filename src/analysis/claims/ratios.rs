//! What each kind of claim is tested on: cells, pairs of cells, samples.

use super::costs::slope_of_cost;
use super::sample::{MetricSample, combined, ratio};
use super::text::{comparison, selection_text, target_text, time_text, with_reason};
use super::{EstimateScale, Judge, Tested};
use crate::analysis::{CellResult, setting_text};
use crate::stats::mean;
use crate::stats::verdict::{Evidence, Region, slope_weights};
use driftbench_core::words::joined;
use driftbench_runner::manifest::claim::{
    Comparison, Matches, Prediction, Scalar, Selection, Slope, When,
};
use driftbench_runner::manifest::{Quantity, TimeAverage};
use driftbench_runner::plan::{Setting, selected};
use std::collections::{BTreeSet, HashMap};

/// A side of a comparison at one time, and which.
struct TimedSample {
    name: String,
    row: usize,
    side: MetricSample,
}

/// What a kind of claim was tested on, part by part.
#[derive(Default)]
pub(super) struct Parts {
    /// Cells or pairs with what they say.
    pub tested: Vec<(String, Evidence)>,
    /// Those that could not be tested, and why: they keep the claim from being supported.
    pub untested: Vec<String>,
    /// Cells of which the claim says nothing, and why.
    pub outside: Vec<String>,
}

impl Parts {
    /// Notes what a part says, or that it says nothing.
    fn add(&mut self, name: String, found: Option<Evidence>, otherwise: &str) {
        match found {
            Some(evidence) => self.tested.push((name, evidence)),
            None => self.untested.push(with_reason(&name, otherwise)),
        }
    }
}

/// What a metric is compared with.
pub(super) enum Against<'a> {
    Cells(&'a Selection),
    Prediction(Prediction),
    Value(f64),
}

impl<'a> Judge<'a> {
    /// What was tested, or nothing if some of the cells that are meant have no
    /// results yet.
    pub(super) fn whole(&self, sides: &[Selection], tested: Tested) -> Tested {
        let meant =
            |cell: &&driftbench_runner::plan::Cell| sides.iter().any(|side| selected(cell, side));
        let there: BTreeSet<&str> = self.cells.iter().map(|c| c.cell.id.as_str()).collect();
        let missing =
            self.plan.cells.iter().filter(meant).filter(|c| !there.contains(c.id.as_str())).count();
        if missing == 0 {
            return tested;
        }
        let untested = vec![format!("{missing} of its cells have no results yet")];
        Tested { parts: Parts { untested, ..Parts::default() }, ..tested }
    }

    pub(super) fn chosen(&self, selection: &Selection) -> Vec<&'a CellResult<'a>> {
        self.cells.iter().filter(|c| selected(c.cell, selection)).collect()
    }

    /// What tells a cell from the others of a selection.
    pub(super) fn name(&self, cell: &CellResult<'_>, selection: &Selection) -> String {
        let one = |(key, value): (&'_ String, &'_ Scalar)| {
            (!matches!(value, Scalar::Any(_))).then(|| key.clone())
        };
        let known: Vec<String> = selection.0.iter().filter_map(one).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut details = setting_text::details(cell.cell, &known);
        if !selection.0.contains_key("label") {
            details = joined(&[&cell.cell.label, &details]);
        }
        details
    }

    /// A metric of a cell, run by run, at each time that is asked for: infinite where a run
    /// had diverged. `None` if it is not recorded.
    fn samples(
        &self,
        cell: &CellResult<'_>,
        metric: Quantity,
        at: When,
    ) -> Option<Vec<TimedSample>> {
        let whole = |sample| {
            let side = MetricSample::new(cell, metric, sample);
            Some(vec![TimedSample { name: String::new(), row: usize::MAX, side }])
        };
        let rests = metric.average().is_some() || matches!(at, When::End | When::Stationary);
        if cell.diverged() > 0 && rests {
            return whole(vec![f64::INFINITY; cell.replicates()]);
        }
        if metric.average().is_some() || at == When::End {
            return whole(cell.finals(metric)?);
        }
        let columns: Vec<_> = cell.along().iter().map(|t| cell.column(t, metric)).collect();
        // A run that diverged has fewer rows than the others.
        let longest = (0..columns.len()).max_by_key(|&i| columns[i].len())?;
        let rows = Some(columns[longest].len()).filter(|rows| *rows > 0)?;
        let value = |c: &[f64], row: usize| c.get(row).copied().unwrap_or(f64::INFINITY);
        let one = |row: usize, name: String| {
            let sample = columns.iter().map(|c| value(c, row)).collect();
            TimedSample { name, row, side: MetricSample::new(cell, metric, sample) }
        };
        let rounds = &cell.along()[longest].round;
        Some(match at {
            When::Round(round) => {
                if cell.diverged() == cell.replicates() && rounds[rows - 1] < round {
                    return whole(vec![f64::INFINITY; cell.replicates()]);
                }
                let closest = (0..rows).min_by_key(|&i| rounds[i].abs_diff(round))?;
                vec![one(closest, String::new())]
            }
            When::EveryRound => {
                (1..rows).map(|row| one(row, format!("round {}", rounds[row]))).collect()
            }
            // The end was answered above.
            When::End | When::Stationary => {
                let from = rows / 2;
                let sample = columns.iter().map(|c| mean(&c[from..rows])).collect();
                let side = MetricSample::new(cell, metric, sample);
                vec![TimedSample { name: String::new(), row: rows - 1, side }]
            }
        })
    }

    /// log(mean of the metric / what it is compared with), for every cell or pair.
    fn ratios(
        &self,
        metric: Quantity,
        left: &Selection,
        against: &Against<'_>,
        at: When,
        region: impl Fn(&CellResult<'_>) -> Region,
    ) -> Parts {
        let mut parts = Parts::default();
        let unrecorded = format!("{} is not recorded", metric.formula());
        if let Against::Cells(right) = against {
            let pairs = self.pairs(left, right);
            for (a, b) in pairs.both {
                let name = self.name(a, left);
                let (x, y) = (self.samples(a, metric, at), self.samples(b, metric, at));
                let (Some(x), Some(y)) = (x, y) else {
                    parts.add(name, None, &unrecorded);
                    continue;
                };
                if x.len() != y.len() {
                    parts.add(name.clone(), None, "the two are not recorded at the same rounds");
                }
                for (x, y) in x.iter().zip(&y) {
                    let found = ratio(&x.side, &y.side, region(a));
                    parts.add(joined(&[&name, &x.name]), found, "both means are infinite");
                }
            }
            let left_alone = pairs.left_alone.into_iter().map(|cell| (cell, left));
            let right_alone = pairs.right_alone.into_iter().map(|cell| (cell, *right));
            for (cell, of) in left_alone.chain(right_alone) {
                let name = joined(&[&selection_text(of), &self.name(cell, of)]);
                parts.add(name, None, "no cell of the other side has its settings");
            }
            return parts;
        }
        for cell in self.chosen(left) {
            let name = self.name(cell, left);
            let curve = match against {
                Against::Prediction(by) => match self.theory.curve(&cell.cell.id, metric, *by) {
                    Some(curve) => Some(curve),
                    None => {
                        self.without(cell, *by, name, &mut parts);
                        continue;
                    }
                },
                _ => None,
            };
            let Some(samples) = self.samples(cell, metric, at) else {
                parts.add(name, None, &unrecorded);
                continue;
            };
            for each in samples {
                let value = match (against, &curve) {
                    (Against::Value(value), _) => *value,
                    (_, Some(curve)) if at == When::Stationary => mean(&curve[curve.len() / 2..]),
                    (_, Some(curve)) => curve[each.row.min(curve.len() - 1)],
                    _ => f64::NAN,
                };
                let found = ratio(&each.side, &MetricSample::number(value), region(cell));
                parts.add(joined(&[&name, &each.name]), found, "both sides are infinite");
            }
        }
        parts
    }

    /// Notes a cell of which a prediction says nothing: a bound whose conditions it does not
    /// meet claims nothing of it; what theory should say and does not leaves it untested.
    pub(super) fn without(
        &self,
        cell: &CellResult<'_>,
        by: Prediction,
        name: String,
        parts: &mut Parts,
    ) {
        let why = with_reason(&name, &self.why(cell, by));
        let rounds = cell.cell.identity.rounds;
        let bound = self.theory.bound(&cell.cell.id, by, rounds);
        let silent = by.is_bound() && bound.is_none_or(|bound| bound.value.is_err());
        match silent && self.theory.too_costly(&cell.cell.id, by).is_none() {
            true => parts.outside.push(why),
            false => parts.untested.push(why),
        }
    }

    /// Why a prediction does not speak of a cell.
    pub(super) fn why(&self, cell: &CellResult<'_>, by: Prediction) -> String {
        if let Some(cost) = self.theory.too_costly(&cell.cell.id, by) {
            return format!("{} is not computed at this size: {cost}", by.words());
        }
        if by.is_bound() {
            let rounds = cell.cell.identity.rounds;
            return match self.theory.bound(&cell.cell.id, by, rounds) {
                None => format!("{} does not speak of it", by.words()),
                Some(bound) => {
                    let unmet = bound.value.err().unwrap_or_default();
                    if unmet.is_empty() {
                        return format!("{} is of another quantity", by.words());
                    }
                    let each = unmet.iter().map(|u| u.condition.clone());
                    format!("{}: {} fails", by.words(), each.collect::<Vec<_>>().join(", "))
                }
            };
        }
        format!("{} does not speak of it, or it diverged", by.words())
    }

    pub(super) fn less(&self, claim: &Comparison) -> Tested {
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let region = (f64::NEG_INFINITY, libm::log(claim.factor));
        let parts = self.ratios(claim.metric, &claim.left, &against, claim.at, |_| region);
        let formula = comparison(claim.metric, &claim.left, &against, "≤", claim.factor, claim.at);
        Tested { parts, formula, shown: EstimateScale::of(&against) }
    }

    pub(super) fn at_least(&self, claim: &Comparison) -> Tested {
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let region = (libm::log(claim.factor), f64::INFINITY);
        let parts = self.ratios(claim.metric, &claim.left, &against, claim.at, |_| region);
        let formula = comparison(claim.metric, &claim.left, &against, "≥", claim.factor, claim.at);
        Tested { parts, formula, shown: EstimateScale::of(&against) }
    }

    pub(super) fn slope(&self, claim: &Slope) -> Tested {
        let mut groups: Vec<(String, Vec<(f64, &CellResult<'_>)>)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for cell in self.chosen(&claim.of) {
            let Some(x) = number(cell, &claim.over) else { continue };
            let mut selection = claim.of.clone();
            selection.0.insert(claim.over.clone(), Scalar::Number(x));
            selection.0.retain(|_, value| !matches!(value, Scalar::Any(_)));
            let mut known: Vec<&str> = selection.0.keys().map(String::as_str).collect();
            // γH follows from what it is made of, and zipped axes move together.
            known.push("path-length");
            let partners = self.partners(&claim.over);
            known.extend(partners.iter().map(String::as_str));
            let details = setting_text::details(cell.cell, &known);
            let name = match claim.of.0.contains_key("label") {
                true => details,
                false => joined(&[&cell.cell.label, &details]),
            };
            let place = *places.entry(name.clone()).or_insert(groups.len());
            if place == groups.len() {
                groups.push((name, Vec::new()));
            }
            groups[place].1.push((x, cell));
        }
        let mut parts = Parts::default();
        let region = (claim.value - claim.margin, claim.value + claim.margin);
        for (name, group) in groups {
            let weights = slope_weights(&group.iter().map(|(x, _)| *x).collect::<Vec<_>>());
            let found = match &claim.reaching {
                _ if group.len() < 2 => None,
                None => self.slope_of(claim, &group, &weights, region),
                Some(reaching) => slope_of_cost(claim, reaching, &group, &weights, region),
            };
            let otherwise = "no slope: a cell diverged, is alone, has a mean of 0 or does not come down to the target";
            parts.add(name, found, otherwise);
        }
        let what = match &claim.reaching {
            None => claim.metric.formula().to_owned(),
            Some(r) => {
                format!(
                    "{} until {} ≤ {}",
                    r.cost.formula(),
                    claim.metric.formula(),
                    target_text(r)
                )
            }
        };
        let formula = format!(
            "slope of log({what}) over log({}) of {}{} is {} ± {}",
            claim.over,
            selection_text(&claim.of),
            time_text(claim.at),
            claim.value,
            claim.margin
        );
        Tested { parts, formula, shown: EstimateScale::Plain }
    }

    fn slope_of(
        &self,
        claim: &Slope,
        group: &[(f64, &CellResult<'_>)],
        weights: &[f64],
        region: Region,
    ) -> Option<Evidence> {
        let samples = group.iter().map(|(_, cell)| self.samples(cell, claim.metric, claim.at));
        let sides: Vec<MetricSample> =
            samples.map(|all| all?.pop().map(|at| at.side)).collect::<Option<_>>()?;
        let weighted: Vec<(f64, &MetricSample)> = weights.iter().copied().zip(&sides).collect();
        combined(&weighted, region)
    }

    pub(super) fn matches(&self, claim: &Matches) -> Tested {
        let cells = self.chosen(&claim.of);
        let least = |over: &String| {
            cells.iter().filter_map(|c| number(c, over)).fold(f64::INFINITY, f64::min)
        };
        let least = claim.over.as_ref().map_or(f64::INFINITY, least);
        let margin = |cell: &CellResult<'_>| match (&claim.over, claim.order) {
            (Some(over), Some(order)) => {
                let x = number(cell, over).unwrap_or(1.0);
                claim.margin * libm::pow(x / least.min(x), order)
            }
            _ => claim.margin,
        };
        let words = match (&claim.over, claim.order) {
            (Some(over), Some(order)) => {
                format!(
                    "up to {} % at the smallest {over}, growing with it to the power {order}",
                    100.0 * claim.margin
                )
            }
            _ => format!("up to {} %", 100.0 * claim.margin),
        };
        if let (Some(average), Some(by)) = (claim.average, claim.prediction) {
            let parts = self.vectors(&claim.of, average, by, &margin);
            let formula = format!(
                "‖{what} − {by}‖ ≤ margin · ‖{by}‖ for {of}, {words}",
                what = average.formula(),
                by = by.words(),
                of = selection_text(&claim.of)
            );
            return Tested { parts, formula, shown: EstimateScale::Plain };
        }
        let metric = claim.metric.unwrap_or_default();
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let parts = self.ratios(metric, &claim.of, &against, claim.at, |cell| {
            let log = libm::log1p(margin(cell));
            (-log, log)
        });
        let formula = format!(
            "{}, {words}",
            comparison(metric, &claim.of, &against, "equals", 1.0, claim.at)
        );
        Tested { parts, formula, shown: EstimateScale::of(&against) }
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
            let name = self.name(cell, of);
            if cell.diverged() > 0 {
                let found =
                    Evidence { n: cell.replicates(), ..Evidence::certain(f64::INFINITY, false) };
                parts.add(joined(&[&name, "diverged"]), Some(found), "");
                continue;
            }
            let Some(target) = self.theory.vector(&cell.cell.id, average, by) else {
                parts.untested.push(with_reason(&name, &self.why(cell, by)));
                continue;
            };
            let sample = cell.averages(average).filter(|sample| !sample.is_empty());
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

pub(super) fn number(cell: &CellResult<'_>, name: &str) -> Option<f64> {
    match cell.cell.settings.get(name)? {
        Setting::Number(x) => Some(*x),
        Setting::Text(_) => None,
    }
}

fn against(
    right: Option<&Selection>,
    prediction: Option<Prediction>,
    value: Option<f64>,
) -> Against<'_> {
    match (right, prediction) {
        (Some(right), _) => Against::Cells(right),
        (None, Some(by)) => Against::Prediction(by),
        _ => Against::Value(value.unwrap_or(f64::NAN)),
    }
}
