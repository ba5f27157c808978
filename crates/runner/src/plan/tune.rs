//! `[tune]`: which settings are candidates, which of them is selected by the runs so far, and
//! which cells are to be run next.
//!
//! *Invariant*: what is selected is a function of the manifest and of the losses of the cells, so
//! that it does not matter when, where and in which order they were run.

use super::places::{Checker, place_of};
use super::settings::{Setting, short};
use super::{Cell, Plan, cell_id, tree_cells};
use crate::manifest::axis::Choice;
use crate::manifest::document::{Diagnostics, Value, parse, put};
use crate::manifest::read::exhaust;
use crate::manifest::tune::{EVALUATE, PerSetting, Tune, TunedSetting};
use crate::manifest::{Diagnostic, Manifest, Node, Place, Rejected};
use driftbench_core::algorithm::{SettingsOfKind, Spec};
use driftbench_core::rng::MAX_REPLICATES;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::marker::PhantomData;

/// Candidates that are added beyond the end of a range at a time.
const ADDED: usize = 3;
/// The ratio of two candidates between which none is added.
const CLOSE: f64 = 1.05;
/// Candidates of one setting.
const MOST_CANDIDATES: usize = 1000;

/// Settings that are tuned, and how far that is.
#[derive(Clone, Debug, Default)]
pub struct Tuning {
    /// The settings.
    pub settings: Vec<TunedSetting>,
    /// The candidates of each algorithm at each point of the grid, once the plan follows results.
    pub groups: Vec<TuningGroup>,
}

impl Tuning {
    /// Whether the setting at a path is tuned.
    pub fn has(&self, path: &str) -> bool {
        let mut keys = self.settings.iter().map(|setting| setting.key.as_str());
        let mut parts = path.splitn(3, '.');
        parts.next() == Some("algorithm") && keys.any(|key| parts.clone().nth(1) == Some(key))
    }
}

/// The candidates of an algorithm at a point of the grid.
#[derive(Clone, Debug)]
pub struct TuningGroup {
    /// The algorithm's label.
    pub label: String,
    /// All candidates, in the order of their values.
    pub candidates: Vec<Candidate>,
    /// The place of the selected one, once the losses of all are known; `None` before, and where
    /// runs of every candidate diverged.
    pub selected: Option<usize>,
    /// Why a better one may be outside of the candidates.
    pub edges: Vec<TuningEdge>,
    /// How often candidates were added.
    pub extended: u64,
    /// Fresh runs of the selected one.
    pub evaluation: Option<Cell>,
    /// Fresh runs of the candidate that is best for all algorithms together.
    pub shared: Option<Cell>,
}

/// A candidate.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its runs.
    pub cell: Cell,
    /// The values of the tuned settings, in their order; `None` for one that the algorithm lacks.
    pub values: Vec<Option<f64>>,
    /// The mean over its runs; infinite if one diverged, NaN if one ends before the cost at which
    /// candidates are compared, `None` if it was not run.
    pub loss: Option<f64>,
}

/// Where the selected candidate stands at the border of what was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningEdge {
    /// It has the smallest value of the setting of this number.
    Smallest(usize),
    /// It has the largest.
    Largest(usize),
    /// Runs with the next larger value diverged.
    Divergence(usize),
}

impl TuningEdge {
    /// The number of the setting.
    pub fn setting(self) -> usize {
        match self {
            Self::Smallest(i) | Self::Largest(i) | Self::Divergence(i) => i,
        }
    }
}

impl TuningGroup {
    /// Whether the losses of all candidates are known.
    pub fn is_complete(&self) -> bool {
        self.candidates.iter().all(|candidate| candidate.loss.is_some())
    }

    /// The candidate that is selected.
    pub fn winner(&self) -> Option<&Candidate> {
        self.selected.map(|place| &self.candidates[place])
    }

    /// The different values of a setting, increasing.
    fn values(&self, setting: usize) -> Vec<f64> {
        let mut all: Vec<f64> =
            self.candidates.iter().filter_map(|candidate| candidate.values[setting]).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// Selects the candidate with the smallest loss, the first of equals.
    fn select(&mut self, settings: &[TunedSetting]) {
        let losses = self.candidates.iter().enumerate();
        let finite = losses.filter_map(|(i, c)| Some((i, c.loss.filter(|loss| loss.is_finite())?)));
        self.selected = finite.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place);
        self.edges = (0..settings.len()).flat_map(|i| self.edges_of(i, &settings[i])).collect();
    }

    /// The edges of a setting at which the selected candidate stands.
    fn edges_of(&self, setting: usize, tuned: &TunedSetting) -> Vec<TuningEdge> {
        let values = self.values(setting);
        if values.len() < 2 {
            return Vec::new();
        }
        let Some(winner) = self.winner() else {
            // Where everything diverged a smaller value may not.
            let diverged = self.candidates.iter().all(|c| c.loss == Some(f64::INFINITY));
            return diverged.then_some(TuningEdge::Smallest(setting)).into_iter().collect();
        };
        let Some(own) = winner.values[setting] else { return Vec::new() };
        let mut edges = Vec::new();
        // There is no whole number below 1 to be tried.
        if own == values[0] && !(tuned.whole && own <= 1.0) {
            edges.push(TuningEdge::Smallest(setting));
        }
        match self.above(winner, setting) {
            None if Some(&own) == values.last() => edges.push(TuningEdge::Largest(setting)),
            Some(above) if above.loss == Some(f64::INFINITY) => {
                edges.push(TuningEdge::Divergence(setting));
            }
            _ => {}
        }
        edges
    }

    /// The candidate with the next larger value of a setting, and the others equal.
    fn above(&self, of: &Candidate, setting: usize) -> Option<&Candidate> {
        let alike = |other: &&Candidate| {
            let mut pairs = other.values.iter().zip(&of.values).enumerate();
            pairs.all(|(i, (a, b))| if i == setting { a > b } else { a == b })
        };
        let by_value = |a: &&Candidate, b: &&Candidate| {
            a.values[setting].partial_cmp(&b.values[setting]).unwrap_or(std::cmp::Ordering::Equal)
        };
        self.candidates.iter().filter(alike).min_by(by_value)
    }

    /// The values of each setting that are tried next.
    fn further(&self, settings: &[TunedSetting]) -> BTreeMap<usize, Vec<f64>> {
        let mut further: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for edge in &self.edges {
            let (i, known) = (edge.setting(), self.values(edge.setting()));
            let Some(ratio) = settings[i].ratio else { continue };
            let (first, last) = (known[0], known[known.len() - 1]);
            let powers = (1..=ADDED).map(|power| libm::pow(ratio, power as f64));
            let more: Vec<f64> = match edge {
                TuningEdge::Smallest(_) => powers.map(|power| first / power).collect(),
                TuningEdge::Largest(_) => powers.map(|power| last * power).collect(),
                TuningEdge::Divergence(_) => {
                    let winner = self.winner();
                    let above = winner.and_then(|winner| self.above(winner, i));
                    let pair = winner.zip(above).map(|(a, b)| (a.values[i], b.values[i]));
                    match pair {
                        Some((Some(low), Some(high))) if high > CLOSE * low => {
                            vec![libm::sqrt(low * high)]
                        }
                        _ => Vec::new(),
                    }
                }
            };
            let rounded = more.into_iter().map(|x| rounded(x, settings[i].whole));
            let new = rounded.filter(|x| *x > 0.0 && !known.contains(x));
            further.entry(i).or_default().extend(new);
        }
        further.retain(|_, values| !values.is_empty());
        further
    }
}

/// A number to three digits, so that candidates are short; or the nearest whole one.
fn rounded(x: f64, whole: bool) -> f64 {
    if whole {
        return libm::round(x);
    }
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// So many numbers from `low` to `high` that successive ones have at most this ratio.
fn geometric(low: f64, high: f64, ratio: f64, whole: bool) -> Vec<f64> {
    let steps = libm::ceil(libm::log(high / low) / libm::log(ratio) - 1e-9).max(1.0);
    let number = |i: usize| low * libm::pow(high / low, i as f64 / steps);
    let inner = (1..steps as usize).map(|i| rounded(number(i), whole));
    let mut all: Vec<f64> = std::iter::once(low).chain(inner).chain([high]).collect();
    all.dedup();
    all
}

/// Reads `[tune]`, and puts its candidates into the algorithms' tables of the tree, as axes.
///
/// # Errors
/// What is wrong with it.
pub fn expand(root: &mut Node) -> Result<Option<Tuning>, Vec<Diagnostic>> {
    let Some(node) = root.find("tune") else { return Ok(None) };
    let mut found = Diagnostics::default();
    let none = Choice::new();
    let (tune, _) = exhaust(node, "tune", &none, PhantomData::<Tune>, &mut found);
    // What is wrong with the table itself is found again when the manifest is read.
    let Some(tune) = tune else { return Ok(None) };
    let settings = tuned_settings(root, &tune)?;
    for setting in &settings {
        put_candidates(root, &setting.key, &setting.values)?;
    }
    Ok(Some(Tuning { settings, groups: Vec::new() }))
}

fn fault(root: &Node, path: &str, message: impl Into<String>) -> Vec<Diagnostic> {
    vec![Diagnostic::new(place_of(root, path, &Choice::new()), path, message)]
}

/// The settings that are tuned with their candidates.
fn tuned_settings(root: &Node, tune: &Tune) -> Result<Vec<TunedSetting>, Vec<Diagnostic>> {
    let names = tune.over.all();
    if names.is_empty() {
        return Err(fault(root, "tune.over", "`over` names no setting"));
    }
    let mut settings = Vec::new();
    for (i, key) in names.iter().enumerate() {
        if names[..i].contains(key) {
            return Err(fault(root, "tune.over", format!("`{key}` is listed twice")));
        }
        let of = |table: &Option<PerSetting>| match table {
            Some(PerSetting::One(list)) if names.len() == 1 => Some(list.clone()),
            Some(PerSetting::Each(lists)) => lists.get(key).cloned(),
            _ => None,
        };
        settings.push(match (of(&tune.range), of(&tune.values)) {
            (Some(range), None) => from_range(root, tune, key, &range)?,
            (None, Some(values)) => from_values(root, key, values)?,
            (Some(_), Some(_)) => {
                let message = format!("`range` and `values` exclude each other: `{key}` has both");
                return Err(fault(root, "tune.values", message));
            }
            (None, None) => {
                let example = match names.len() {
                    1 => "range = [1e-3, 1.0]".to_owned(),
                    _ => format!("range = {{ {key} = [1e-3, 1.0] }}"),
                };
                let message = format!("`{key}` has no candidates: write `{example}`, or `values`");
                return Err(fault(root, "tune.over", message));
            }
        });
    }
    for (name, table) in [("range", &tune.range), ("values", &tune.values)] {
        let Some(PerSetting::Each(lists)) = table else { continue };
        if let Some(other) = lists.keys().find(|key| !names.contains(key)) {
            let path = format!("tune.{name}.{other}");
            return Err(fault(root, &path, format!("`{other}` is not among `over`")));
        }
    }
    Ok(settings)
}

/// Where the list of a setting stands: `tune.range`, or below it.
fn path_of_list(root: &Node, name: &str, key: &str) -> String {
    let own = format!("tune.{name}.{key}");
    if root.find(&own).is_some() { own } else { format!("tune.{name}") }
}

fn from_range(
    root: &Node,
    tune: &Tune,
    key: &str,
    range: &[f64],
) -> Result<TunedSetting, Vec<Diagnostic>> {
    let path = path_of_list(root, "range", key);
    let (low, high) = match range {
        [low, high] if *low > 0.0 && low < high && high.is_finite() => (*low, *high),
        _ => {
            let message = "must be two numbers above 0, the smaller first: such as [1e-3, 1.0]";
            return Err(fault(root, &path, message));
        }
    };
    if !(tune.ratio > 1.0 && tune.ratio.is_finite()) {
        let message = format!("`ratio` must be a number above 1, not {}", tune.ratio);
        return Err(fault(root, "tune.ratio", message));
    }
    let whole = are_whole(root, &path);
    let values = geometric(low, high, tune.ratio, whole);
    if values.len() > MOST_CANDIDATES {
        let message =
            format!("makes {} candidates; at most {MOST_CANDIDATES} are allowed", values.len());
        return Err(fault(root, &path, message));
    }
    let ratio = libm::pow(high / low, 1.0 / (values.len() - 1) as f64);
    Ok(TunedSetting { key: key.to_owned(), values, ratio: Some(ratio), whole })
}

fn from_values(
    root: &Node,
    key: &str,
    mut values: Vec<f64>,
) -> Result<TunedSetting, Vec<Diagnostic>> {
    let path = path_of_list(root, "values", key);
    values.sort_by(f64::total_cmp);
    let written = values.len();
    values.dedup();
    if written < 2 || values.len() < written {
        return Err(fault(root, &path, "must be at least two different candidates"));
    }
    Ok(TunedSetting { key: key.to_owned(), values, ratio: None, whole: are_whole(root, &path) })
}

/// Whether all numbers of a list were written as integers.
fn are_whole(root: &Node, path: &str) -> bool {
    let Some(Value::Array(items)) = root.find(path).map(|node| &node.value) else { return false };
    items.iter().all(|item| matches!(item.value, Value::Integer(_)))
}

/// Puts the candidates of a setting into every algorithm's table that has such a key.
fn put_candidates(root: &mut Node, key: &str, values: &[f64]) -> Result<(), Vec<Diagnostic>> {
    let place = place_of(root, "tune.over", &Choice::new()).unwrap_or(Place::Text(0, 0));
    let whole = are_whole(root, &path_of_list(root, "range", key))
        || are_whole(root, &path_of_list(root, "values", key));
    let number = |x: &f64| match whole {
        true => Value::Integer(Some(*x as i64)),
        false => Value::Float(*x),
    };
    let items = values.iter().map(|x| Node::new(place.clone(), number(x))).collect();
    let list = Node::new(place.clone(), Value::Array(items));
    let mut found = 0;
    for path in entries(root) {
        let own = format!("{path}.{key}");
        if root.find(&own).is_some() {
            let message = format!(
                "`{key}` is tuned, so that it has no value here: remove it, or the setting from `over` of [tune]"
            );
            return Err(fault(root, &own, message));
        }
        if accepts(root, &path, key, &list) {
            put(root, &own, &list);
            found += 1;
        }
    }
    if found == 0 {
        let message = format!("no algorithm of this manifest has a setting `{key}`");
        return Err(fault(root, "tune.over", message));
    }
    Ok(())
}

/// The paths of all algorithms' tables.
fn entries(root: &Node) -> Vec<String> {
    let Some(Value::Table(kinds)) = root.find("algorithm").map(|node| &node.value) else {
        return Vec::new();
    };
    let of_kind = |entry: &crate::manifest::document::KeyValue| {
        let count = match &entry.node.value {
            Value::Array(items) => items.len(),
            _ => 0,
        };
        let kind = entry.key.clone();
        (0..count).map(move |i| format!("algorithm.{kind}.{i}")).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(of_kind).collect()
}

/// Whether an algorithm's table has such a key.
fn accepts(root: &Node, path: &str, key: &str, list: &Node) -> bool {
    let mut tried = root.clone();
    put(&mut tried, &format!("{path}.{key}"), list);
    let Some(node) = tried.find(path) else { return false };
    let kind = path.split('.').nth(1).unwrap_or_default();
    let Some(kind) = Spec::KINDS.iter().find(|known| **known == kind) else { return false };
    let mut found = Diagnostics::default();
    exhaust(node, path, &Choice::new(), SettingsOfKind(kind), &mut found);
    let unknown = format!("unknown key `{key}`");
    !found.into_vec().iter().any(|diagnostic| diagnostic.message == unknown)
}

impl<'a> Checker<'a> {
    /// What is wrong with `[tune]` beside its candidates.
    pub fn tune(&mut self, cells: &'a [Cell]) {
        let Some(tune) = self.manifest.tune.clone() else { return };
        if let Some(at) = tune.at {
            self.at_cost("tune.at", at, tune.metric, cells.iter());
        }
        let most = MAX_REPLICATES / 2;
        for (key, number) in [("replicates", tune.replicates), ("evaluate", tune.evaluate)] {
            let Some(number) = number else { continue };
            let runs = number.saturating_mul(self.manifest.instances.unwrap_or(1));
            let path = format!("tune.{key}");
            self.require(number > 0, &path, format!("`{key}` must be 1 or more, not 0"));
            let message = format!("`{key}` makes {runs} runs; at most {most} are allowed");
            self.require(runs <= most, &path, message);
        }
        let recorded = tune.metric.metric().is_none_or(|metric| {
            self.manifest.record.metrics.contains(&metric)
                || metric == crate::manifest::Metric::SqErrorLimit
        });
        let name = tune.metric.name();
        let message = format!("`{name}` is not recorded: add it to `record.metrics`");
        self.require(recorded, "tune.metric", message);
        let averaged = tune.metric.average().is_none();
        let message = format!("`{name}` is no quantity of single runs");
        self.require(averaged, "tune.metric", message);
    }
}

/// The number of runs of each candidate on each instance.
pub fn replicates(manifest: &Manifest) -> u64 {
    let tuned = manifest.tune.as_ref().and_then(|tune| tune.replicates);
    tuned.unwrap_or(manifest.replicates)
}

impl Plan {
    /// The fresh runs of a candidate.
    fn evaluation(&self, candidate: &Candidate) -> Cell {
        let mut cell = candidate.cell.clone();
        let several = self.manifest.instances.is_some_and(|n| n > 1);
        let usual = if several { replicates(&self.manifest) } else { EVALUATE };
        let tune = self.manifest.tune.as_ref();
        cell.identity.replicates = tune.and_then(|tune| tune.evaluate).unwrap_or(usual);
        cell.identity.fresh = true;
        cell.varied = cell.varied.iter().filter(|path| !self.is_tuned(path)).cloned().collect();
        cell.id = cell_id(&cell.identity.canonical().to_string());
        cell
    }

    /// Whether the setting at a path is tuned.
    fn is_tuned(&self, path: &str) -> bool {
        self.tuning.as_ref().is_some_and(|tuning| tuning.has(path))
    }

    /// The candidates in the manifest, grouped by algorithm and point of the grid.
    fn groups(&self, cells: &[Cell], settings: &[TunedSetting]) -> Vec<TuningGroup> {
        let mut groups: Vec<TuningGroup> = Vec::new();
        let mut places: HashMap<(String, Vec<String>), usize> = HashMap::new();
        for cell in cells {
            let others = cell.varied.iter().filter(|path| !self.is_tuned(path));
            let others = others
                .map(|path| cell.settings.at_path(path).map(|value| format!("{path} {value}")));
            let key = (cell.entry.to_string(), others.flatten().collect());
            let place = *places.entry(key).or_insert_with(|| {
                groups.push(TuningGroup {
                    label: cell.label.clone(),
                    candidates: Vec::new(),
                    selected: None,
                    edges: Vec::new(),
                    extended: 0,
                    evaluation: None,
                    shared: None,
                });
                groups.len() - 1
            });
            let kind = cell.entry.split('.').nth(1).unwrap_or_default();
            let value = |setting: &TunedSetting| match cell
                .settings
                .at_path(&format!("algorithm.{kind}.{}", setting.key))
            {
                Some(Setting::Number(value)) => Some(*value),
                _ => None,
            };
            let values = settings.iter().map(value).collect();
            groups[place].candidates.push(Candidate { cell: cell.clone(), values, loss: None });
        }
        groups
    }

    /// The plan of fresh runs of what is selected by the losses of the candidates: `loss` is the
    /// mean over the runs of a cell, infinite if one diverged, `None` if it was not run. Where it is
    /// not known yet, more candidates are to be run first. A plan without `[tune]` stays as it is.
    ///
    /// # Errors
    /// What `loss` returns.
    pub fn following<E>(
        mut self,
        loss: impl Fn(&Cell) -> Result<Option<f64>, E>,
    ) -> Result<Self, E> {
        let Some(mut tuning) = self.tuning.take() else { return Ok(self) };
        self.tuning = Some(Tuning { settings: tuning.settings.clone(), groups: Vec::new() });
        let mut groups = self.groups(&self.cells, &tuning.settings);
        let most = self.manifest.tune.as_ref().map_or(0, |tune| tune.extend);
        loop {
            for group in &mut groups {
                for candidate in group.candidates.iter_mut().filter(|c| c.loss.is_none()) {
                    candidate.loss = loss(&candidate.cell)?;
                }
                if group.is_complete() {
                    group.select(&tuning.settings);
                }
            }
            if !self.extend(&mut groups, &tuning.settings, most) {
                break;
            }
        }
        self.select_shared(&mut groups);
        for group in &mut groups {
            let done = group.is_complete().then(|| group.winner()).flatten();
            group.evaluation = done.map(|winner| self.evaluation(winner));
        }
        self.cells = groups.iter().filter_map(|group| group.evaluation.clone()).collect();
        tuning.groups = groups;
        self.tuning = Some(tuning);
        Ok(self)
    }

    /// Adds candidates to the groups that are complete and whose best stands at an edge; whether
    /// there are any.
    fn extend(&self, groups: &mut [TuningGroup], settings: &[TunedSetting], most: u64) -> bool {
        let mut wanted: Vec<(usize, BTreeMap<usize, Vec<f64>>)> = Vec::new();
        for (i, group) in groups.iter().enumerate() {
            if group.is_complete() && group.extended < most {
                let further = group.further(settings);
                if !further.is_empty() {
                    wanted.push((i, further));
                }
            }
        }
        if wanted.is_empty() {
            return false;
        }
        let mut all: Vec<Vec<f64>> = settings.iter().map(|s| s.values.clone()).collect();
        for (setting, values) in all.iter_mut().enumerate() {
            values.extend(groups.iter().flat_map(|group| group.values(setting)));
            let further = wanted.iter().filter_map(|(_, further)| further.get(&setting));
            values.extend(further.flatten());
            values.sort_by(f64::total_cmp);
            values.dedup();
        }
        let Ok(cells) = self.candidates(settings, &all) else { return false };
        let found = self.groups(&cells, settings);
        for (i, further) in wanted {
            let group = &mut groups[i];
            let known: Vec<Vec<f64>> = (0..settings.len()).map(|s| group.values(s)).collect();
            group.extended += 1;
            let same = |other: &&TuningGroup| {
                let id = &group.candidates[0].cell.id;
                other.candidates.iter().any(|candidate| candidate.cell.id == *id)
            };
            let Some(other) = found.iter().find(same) else { continue };
            let is_wanted = |candidate: &&Candidate| {
                let known_or_new = candidate.values.iter().enumerate().all(|(s, value)| {
                    value.is_none_or(|x| {
                        known[s].contains(&x) || further.get(&s).is_some_and(|f| f.contains(&x))
                    })
                });
                known_or_new && group.candidates.iter().all(|c| c.cell.id != candidate.cell.id)
            };
            let new: Vec<Candidate> = other.candidates.iter().filter(is_wanted).cloned().collect();
            group.candidates.extend(new);
            let order = |a: &Candidate, b: &Candidate| {
                a.values.partial_cmp(&b.values).unwrap_or(std::cmp::Ordering::Equal)
            };
            group.candidates.sort_by(order);
        }
        true
    }

    /// The cells of the manifest with these candidates of the tuned settings.
    fn candidates(
        &self,
        settings: &[TunedSetting],
        values: &[Vec<f64>],
    ) -> Result<Vec<Cell>, Rejected> {
        let mut root = parse(&self.source)?;
        for (setting, values) in settings.iter().zip(values) {
            let _ = put_candidates(&mut root, &setting.key, values);
        }
        tree_cells(&root, &self.source)
    }

    /// Selects, at each point of the grid, the candidate that is best for all algorithms together:
    /// the smallest product of losses among those of which no run diverged.
    fn select_shared(&self, groups: &mut [TuningGroup]) {
        // The settings that vary in every algorithm.
        let names = |group: &TuningGroup| -> BTreeSet<String> {
            let varied = group.candidates[0].cell.varied.iter();
            varied.filter(|path| !self.is_tuned(path)).map(|path| short(path).to_owned()).collect()
        };
        let common = |all: BTreeSet<String>, own| all.intersection(&own).cloned().collect();
        let common = groups.iter().map(names).reduce(common).unwrap_or_default();
        let point = |group: &TuningGroup| -> Vec<String> {
            let cell = &group.candidates[0].cell;
            let value = |name: &String| Some(format!("{name} {}", cell.settings.get(name)?));
            common.iter().filter_map(value).collect()
        };
        let mut points: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
        for (i, group) in groups.iter().enumerate() {
            points.entry(point(group)).or_default().push(i);
        }
        for places in points.into_values() {
            // What is added to the candidates of one may change what is best for all.
            if !places.iter().all(|place| groups[*place].is_complete()) {
                continue;
            }
            let first = &groups[places[0]];
            let product = |values: &[Option<f64>]| {
                let loss = |place: &usize| {
                    let mut candidates = groups[*place].candidates.iter();
                    candidates.find(|c| c.values == values)?.loss.filter(|l| l.is_finite())
                };
                let losses: Option<Vec<f64>> = places.iter().map(loss).collect();
                losses.map(|losses| losses.iter().map(|l| libm::log(*l)).sum::<f64>())
            };
            let known =
                first.candidates.iter().filter_map(|c| Some((product(&c.values)?, &c.values)));
            let best = known.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, values)| values.clone());
            let Some(best) = best.filter(|_| places.len() > 1) else { continue };
            for place in places {
                let group = &groups[place];
                let shared = group.candidates.iter().find(|c| c.values == best);
                let shared = shared.map(|c| self.evaluation(c));
                groups[place].shared = shared;
            }
        }
    }

    /// All cells that belong to the experiment as far as results decide: of a tuned one the
    /// candidates, the fresh runs of what is selected and of what is best for all together.
    pub fn all_cells(&self) -> impl Iterator<Item = &Cell> {
        let groups = self.tuning.iter().flat_map(|tuning| &tuning.groups);
        let of_groups = groups.flat_map(|group| {
            let candidates = group.candidates.iter().map(|candidate| &candidate.cell);
            candidates.chain(&group.evaluation).chain(&group.shared)
        });
        self.cells.iter().chain(of_groups)
    }

    /// The number of fresh cells that follow the candidates at most, and of candidates that may be
    /// added.
    pub fn expected_following(&self) -> Option<(usize, usize)> {
        let tuning = self.tuning.as_ref()?;
        let groups = match tuning.groups.len() {
            0 => self.groups(&self.cells, &tuning.settings).len(),
            known => known,
        };
        let extend = self.manifest.tune.as_ref().map_or(0, |tune| tune.extend) as usize;
        Some((2 * groups, groups * extend * ADDED * tuning.settings.len()))
    }
}
