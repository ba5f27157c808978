//! What each kind of claim is tested on: cells, pairs of cells, samples.

use super::words::{comparison, joined, noted, target, told};
use super::{Judge, Shown, Tested};
use crate::analysis::{Result, select};
use crate::manifest::claim::{AtLeast, Less, Matches, Prediction, Scalar, Selection, Slope, When};
use crate::manifest::{Oracle, Quantity};
use crate::plan::{Setting, SettingKey, selected, short};
use crate::stats::mean;
use crate::stats::verdict::{Evidence, Region, log_ratio, log_ratio_to, log_slope};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A sample at one time, and which.
struct At {
    name: String,
    row: usize,
    sample: Vec<f64>,
}

/// What a metric is compared with.
pub(super) enum Against<'a> {
    Cells(&'a Selection),
    Prediction(Prediction),
    Value(f64),
}

/// The settings that tell the cells of an entry apart.
type Axes<'a> = &'a [String];

/// The right cells that a left cell of some axes may stand beside, found by the
/// values of what both leave open and not one by one.
struct Partners<'a>(Vec<Kin<'a>>);

/// Right cells of the same axes.
struct Kin<'a> {
    /// Settings that have to agree where both cells have them.
    open: BTreeSet<&'a str>,
    /// Places of the cells by what they have, and of all of them.
    by_values: HashMap<Vec<SettingKey<'a>>, Vec<usize>>,
    all: Vec<(usize, &'a Result<'a>)>,
    /// Places of cells that do not have every setting.
    lacking: Vec<(usize, &'a Result<'a>)>,
}

impl<'a> Partners<'a> {
    fn of(axes: Axes<'a>, right: &[&'a Result<'a>], said: &BTreeSet<String>) -> Self {
        let mut kin: BTreeMap<Axes<'a>, Kin<'a>> = BTreeMap::new();
        for (place, cell) in right.iter().enumerate() {
            let own = kin.entry(&cell.cell.varied).or_insert_with(|| {
                let names = axes.iter().chain(&cell.cell.varied).map(|path| short(path));
                Kin {
                    open: names.filter(|name| !said.contains(*name)).collect(),
                    by_values: HashMap::new(),
                    all: Vec::new(),
                    lacking: Vec::new(),
                }
            });
            own.all.push((place, cell));
            match own.values(cell) {
                Some(values) => own.by_values.entry(values).or_default().push(place),
                None => own.lacking.push((place, cell)),
            }
        }
        Self(kin.into_values().collect())
    }

    /// Places of the right cells of the same settings, in their order.
    fn of_cell(&self, cell: &'a Result<'a>) -> Vec<usize> {
        let mut places = Vec::new();
        for kin in &self.0 {
            let beside = |(place, other): &(usize, &'a Result<'a>)| {
                let same = kin.open.iter().all(|name| {
                    let (x, y) = (cell.cell.settings.get(name), other.cell.settings.get(name));
                    x.is_none() || y.is_none() || x == y
                });
                same.then_some(*place)
            };
            match kin.values(cell) {
                Some(values) => {
                    places.extend(kin.by_values.get(&values).into_iter().flatten());
                    places.extend(kin.lacking.iter().filter_map(beside));
                }
                None => places.extend(kin.all.iter().filter_map(beside)),
            }
        }
        places.sort_unstable();
        places
    }
}

impl<'a> Kin<'a> {
    /// A cell's values of what is open; `None` if it lacks any.
    fn values(&self, cell: &'a Result<'a>) -> Option<Vec<SettingKey<'a>>> {
        self.open.iter().map(|name| Some(cell.cell.settings.get(name)?.key())).collect()
    }
}

impl<'a> Judge<'a> {
    /// What was tested, or nothing if some of the cells that are meant have no
    /// results yet.
    pub(super) fn whole(&self, sides: &[Selection], tested: Tested) -> Tested {
        let meant = |cell: &&crate::plan::Cell| sides.iter().any(|side| selected(cell, side));
        let there: BTreeSet<&str> = self.cells.iter().map(|c| c.cell.id.as_str()).collect();
        let missing =
            self.plan.cells.iter().filter(meant).filter(|c| !there.contains(c.id.as_str())).count();
        if missing == 0 {
            return tested;
        }
        let notes = vec![format!("{missing} of its cells have no results yet")];
        Tested { parts: Vec::new(), notes, ..tested }
    }

    pub(super) fn chosen(&self, selection: &Selection) -> Vec<&'a Result<'a>> {
        self.cells.iter().filter(|c| selected(c.cell, selection)).collect()
    }

    /// What tells a cell from the others of a selection.
    pub(super) fn name(&self, cell: &Result<'_>, selection: &Selection) -> String {
        let one = |(key, value): (&'_ String, &'_ Scalar)| {
            (!matches!(value, Scalar::Any(_))).then(|| key.clone())
        };
        let known: Vec<String> = selection.0.iter().filter_map(one).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut details = select::details(cell, &known);
        if !selection.0.contains_key("label") {
            details = [cell.cell.label.clone(), details]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(", ");
        }
        details
    }

    /// A metric of a cell, run by run, at each time that is asked for.
    fn samples(&self, cell: &Result<'_>, metric: Quantity, at: When) -> Option<Vec<At>> {
        if metric.average().is_some() || at == When::End {
            let sample = cell.finals(metric)?;
            return Some(vec![At { name: String::new(), row: usize::MAX, sample }]);
        }
        if cell.diverged() > 0 {
            return None;
        }
        let columns: Vec<_> = cell.along().iter().map(|t| cell.column(t, metric)).collect();
        let rows = columns.iter().map(|c| c.len()).min().filter(|rows| *rows > 0)?;
        let one = |row: usize, name: String| At {
            name,
            row,
            sample: columns.iter().map(|c| c[row]).collect(),
        };
        let rounds = &cell.along()[0].round;
        Some(match at {
            When::Round(round) => {
                let closest = (0..rows).min_by_key(|&i| rounds[i].abs_diff(round))?;
                vec![one(closest, String::new())]
            }
            When::EveryRound => {
                (1..rows).map(|row| one(row, format!("round {}", rounds[row]))).collect()
            }
            // The end was told above.
            When::End | When::Stationary => {
                let from = rows / 2;
                let sample = columns.iter().map(|c| mean(&c[from..rows])).collect();
                vec![At { name: String::new(), row: rows - 1, sample }]
            }
        })
    }

    /// The settings that are zipped with this one.
    fn partners(&self, name: &str) -> Vec<String> {
        let zips = self.plan.manifest.zip.iter();
        let with = zips.filter(|zip| zip.iter().any(|other| short(other) == short(name)));
        with.flatten().map(|other| short(other).to_owned()).collect()
    }

    /// Left cells with the right cells of the same settings, where neither
    /// selection says otherwise.
    fn pairs(&self, left: &Selection, right: &Selection) -> Vec<(&'a Result<'a>, &'a Result<'a>)> {
        let mut pairs = Vec::new();
        let fixed = |side: &Selection| -> Vec<String> {
            let fixed = side.0.iter().filter(|(_, value)| !matches!(value, Scalar::Any(_)));
            fixed.map(|(key, _)| key.clone()).collect()
        };
        let keys: Vec<String> = fixed(left).into_iter().chain(fixed(right)).collect();
        let said: BTreeSet<String> = keys
            .iter()
            .flat_map(|key| self.partners(key).into_iter().chain([key.clone()]))
            .collect();
        let right = self.chosen(right);
        let mut partners: BTreeMap<Axes<'a>, Partners<'a>> = BTreeMap::new();
        for a in self.chosen(left) {
            let found = partners
                .entry(&a.cell.varied)
                .or_insert_with(|| Partners::of(&a.cell.varied, &right, &said));
            let with = found.of_cell(a).into_iter().map(|place| right[place]);
            pairs.extend(with.filter(|b| a.cell.id != b.cell.id).map(|b| (a, b)));
        }
        pairs
    }

    /// The cells of a selection of which a run diverged: a mean that is infinite
    /// is below nothing and matches nothing.
    fn diverged(&self, of: &Selection) -> Vec<(String, Evidence)> {
        let all = self.chosen(of).into_iter().filter(|cell| cell.diverged() > 0);
        all.map(|cell| {
            let name = joined(&self.name(cell, of), "diverged");
            (name, Evidence { n: cell.replicates(), ..Evidence::exact(f64::INFINITY, (0.0, 1.0)) })
        })
        .collect()
    }

    /// log(mean of the metric / what it is compared with), for every cell or pair.
    fn ratios(
        &self,
        metric: Quantity,
        left: &Selection,
        against: &Against<'_>,
        at: When,
        region: impl Fn(&Result<'_>) -> Region,
    ) -> (Vec<(String, Evidence)>, Vec<String>) {
        let (mut parts, mut notes) = (Vec::new(), Vec::new());
        let mut add =
            |cell: &Result<'_>, name: String, found: Option<(f64, f64)>, n: usize| match found {
                Some((estimate, error)) if estimate.is_finite() => {
                    let error = if noiseless(cell) { 0.0 } else { error };
                    parts.push((name, Evidence::student(estimate, error, n, region(cell))));
                }
                _ => notes.push(name),
            };
        match against {
            Against::Cells(right) => {
                for (a, b) in self.pairs(left, right) {
                    let name = self.name(a, left);
                    let (x, y) = (self.samples(a, metric, at), self.samples(b, metric, at));
                    let (Some(x), Some(y)) = (x, y) else {
                        add(a, noted(&name, "diverged, or not recorded"), None, 0);
                        continue;
                    };
                    for (x, y) in x.iter().zip(&y) {
                        let n = x.sample.len();
                        let found = Some(log_ratio(&x.sample, &y.sample));
                        add(a, joined(&name, &x.name), found, n);
                    }
                }
            }
            Against::Value(value) => {
                for cell in self.chosen(left) {
                    let name = self.name(cell, left);
                    for at in self.samples(cell, metric, at).unwrap_or_default() {
                        let found = below(&at.sample, *value);
                        add(cell, joined(&name, &at.name), found, at.sample.len());
                    }
                }
            }
            Against::Prediction(by) => {
                for cell in self.chosen(left) {
                    let name = self.name(cell, left);
                    let curve = self.theory.curve(&cell.cell.id, metric, *by);
                    let (Some(curve), Some(samples)) = (curve, self.samples(cell, metric, at))
                    else {
                        add(cell, noted(&name, &self.why(cell, *by)), None, 0);
                        continue;
                    };
                    for each in samples {
                        let rows = curve.len();
                        let value = match at {
                            When::Stationary => mean(&curve[rows / 2..]),
                            _ => curve[each.row.min(rows - 1)],
                        };
                        let found = below(&each.sample, value);
                        add(cell, joined(&name, &each.name), found, each.sample.len());
                    }
                }
            }
        }
        (parts, notes)
    }

    /// Why a prediction does not speak of a cell.
    pub(super) fn why(&self, cell: &Result<'_>, by: Prediction) -> String {
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

    pub(super) fn less(&self, claim: &Less) -> Tested {
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let region = (f64::NEG_INFINITY, libm::log(claim.factor));
        let (mut parts, notes) =
            self.ratios(claim.metric, &claim.left, &against, claim.at, |_| region);
        parts.extend(self.diverged(&claim.left));
        let formula = comparison(claim.metric, &claim.left, &against, "≤", claim.factor, claim.at);
        Tested { parts, notes, formula, shown: Shown::Ratio }
    }

    pub(super) fn at_least(&self, claim: &AtLeast) -> Tested {
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let region = (libm::log(claim.factor), f64::INFINITY);
        let (parts, notes) = self.ratios(claim.metric, &claim.left, &against, claim.at, |_| region);
        let formula = comparison(claim.metric, &claim.left, &against, "≥", claim.factor, claim.at);
        Tested { parts, notes, formula, shown: Shown::Ratio }
    }

    pub(super) fn slope(&self, claim: &Slope) -> Tested {
        let mut groups: Vec<(String, Vec<(f64, &Result<'_>)>)> = Vec::new();
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
            let name = select::details(cell, &known);
            let place = *places.entry(name.clone()).or_insert(groups.len());
            if place == groups.len() {
                groups.push((name, Vec::new()));
            }
            groups[place].1.push((x, cell));
        }
        let (mut parts, mut notes) = (Vec::new(), Vec::new());
        let region = (claim.value - claim.margin, claim.value + claim.margin);
        for (name, group) in groups {
            let found = match &claim.reaching {
                None => self.slope_of(claim, &group),
                Some(reaching) => self.slope_of_cost(claim, reaching, &group),
            };
            match found {
                Some((slope, error, n)) if slope.is_finite() => {
                    let error = if group.iter().all(|(_, c)| noiseless(c)) { 0.0 } else { error };
                    parts.push((name, Evidence::student(slope, error, n, region)));
                }
                _ => notes.push(noted(
                    &name,
                    "no slope: a cell diverged, is alone or does not come down to the target",
                )),
            }
        }
        let what = match &claim.reaching {
            None => claim.metric.formula().to_owned(),
            Some(r) => {
                format!("{} until {} ≤ {}", r.cost.formula(), claim.metric.formula(), target(r))
            }
        };
        let formula = format!(
            "slope of log({what}) over log({}) of {} = {} ± {}",
            claim.over,
            told(&claim.of),
            claim.value,
            claim.margin
        );
        Tested { parts, notes, formula, shown: Shown::Plain }
    }

    fn slope_of(&self, claim: &Slope, group: &[(f64, &Result<'_>)]) -> Option<(f64, f64, usize)> {
        let mut points = Vec::with_capacity(group.len());
        for (x, cell) in group {
            let at = self.samples(cell, claim.metric, claim.at)?.pop()?;
            points.push((*x, at.sample));
        }
        let n = points.iter().map(|(_, y)| y.len()).min()?;
        let (slope, error) = log_slope(&points);
        Some((slope, error, n))
    }

    pub(super) fn matches(&self, claim: &Matches) -> Tested {
        let cells = self.chosen(&claim.of);
        let least = |over: &String| {
            cells.iter().filter_map(|c| number(c, over)).fold(f64::INFINITY, f64::min)
        };
        let least = claim.over.as_ref().map_or(f64::INFINITY, least);
        let margin = |cell: &Result<'_>| match (&claim.over, claim.order) {
            (Some(over), Some(order)) => {
                let x = number(cell, over).unwrap_or(1.0);
                claim.margin * libm::pow(x / least.min(x), order)
            }
            _ => claim.margin,
        };
        let words = match (&claim.over, claim.order) {
            (Some(over), Some(order)) => {
                format!(
                    "up to {} %, growing with {over} to the power {order}",
                    100.0 * claim.margin
                )
            }
            _ => format!("up to {} %", 100.0 * claim.margin),
        };
        if let (Some(average), Some(by)) = (claim.average, claim.prediction) {
            let (mut parts, mut notes) = (self.diverged(&claim.of), Vec::new());
            for cell in &cells {
                let name = self.name(cell, &claim.of);
                let sample: Option<Vec<Vec<f64>>> = cell
                    .averages(average)
                    .map(|all| all.into_iter().map(<[f64]>::to_vec).collect());
                let target = self.theory.vector(&cell.cell.id, average, by);
                match (sample.filter(|s| cell.diverged() == 0 && !s.is_empty()), target) {
                    (Some(sample), Some(target)) if target.iter().any(|x| *x != 0.0) => {
                        let margin = margin(cell);
                        let evidence = if noiseless(cell) {
                            Evidence::of_distance(&sample[..1], &target, margin)
                        } else {
                            Evidence::of_distance(&sample, &target, margin)
                        };
                        parts.push((name, evidence));
                    }
                    (_, Some(_)) => {
                        notes.push(noted(&name, "diverged, not recorded, or predicted to be 0"));
                    }
                    _ => notes.push(noted(&name, &self.why(cell, by))),
                }
            }
            let formula = format!(
                "‖{what} − {by}‖ ≤ margin · ‖{by}‖ for {of}, {words}",
                what = average.formula(),
                by = by.words(),
                of = told(&claim.of)
            );
            return Tested { parts, notes, formula, shown: Shown::Plain };
        }
        let metric = claim.metric.unwrap_or_default();
        let against = against(claim.right.as_ref(), claim.prediction, claim.value);
        let (mut parts, notes) = self.ratios(metric, &claim.of, &against, claim.at, |cell| {
            let log = libm::log1p(margin(cell));
            (-log, log)
        });
        parts.extend(self.diverged(&claim.of));
        let formula =
            format!("{}, {words}", comparison(metric, &claim.of, &against, "=", 1.0, claim.at));
        Tested { parts, notes, formula, shown: Shown::Ratio }
    }
}

pub(super) fn number(cell: &Result<'_>, name: &str) -> Option<f64> {
    match cell.cell.settings.get(name)? {
        Setting::Number(x) => Some(*x),
        Setting::Text(_) => None,
    }
}

/// Whether nothing in a cell is random, so that one run is all.
pub(super) fn noiseless(cell: &Result<'_>) -> bool {
    let coin = cell.cell.settings.get("communication-probability").is_some();
    let cohort = cell.cell.settings.get("cohort").is_some();
    cell.cell.identity.oracle == Oracle::Exact && !coin && !cohort
}

/// log(mean/value); a mean of 0 is below any value.
fn below(sample: &[f64], value: f64) -> Option<(f64, f64)> {
    if value <= 0.0 || value.is_nan() {
        return None;
    }
    if mean(sample) == 0.0 {
        return Some((-700.0, 0.0));
    }
    Some(log_ratio_to(sample, value))
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
