//! The candidates of tuned settings: what `[tune]` says of them, and their place as axes in the
//! algorithms' tables.

use super::checker::Checker;
use super::places::{diagnostic_under, place_of};
use super::tuning::Tuning;
use super::types::Plan;
use crate::manifest::axis::Choice;
use crate::manifest::document::{KeyValue, Value, set};
use crate::manifest::entries::from_tree;
use crate::manifest::read::read_at;
use crate::manifest::schema::ManifestSchema;
use crate::manifest::tune::{CandidateList, PerSetting, Tune, TunedSetting};
use crate::manifest::{Diagnostic, Manifest, Node, Place, Quantity};
use exactfed_core::rng::MAX_REPLICATES;
use exactfed_core::sources::StatedAlgorithm;
use std::collections::BTreeSet;

/// The most candidates of one setting.
const MOST_CANDIDATES: usize = 1000;
/// The most steps of a range that are listed, before those that are equal when rounded are dropped.
const MOST_STEPS: f64 = 10_000.0;

/// A candidate rounded to three significant digits, so that it is short in tables; or to the nearest whole number if
/// candidates are `whole`.
pub fn rounded(x: f64, whole: bool) -> f64 {
    if whole {
        return libm::round(x);
    }
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// The numbers from `low` to `high`, both exact, in `steps` steps of one ratio, rounded in between, to whole numbers if
/// `whole`. Numbers that become equal by rounding are there once. `steps` is a whole number, 1 or more.
fn geometric(low: f64, high: f64, steps: f64, whole: bool) -> Vec<f64> {
    let mut all = vec![low];
    for i in 1..steps as usize {
        all.push(rounded(low * libm::pow(high / low, i as f64 / steps), whole));
    }
    all.push(high);
    all.dedup();
    all
}

/// Reads `[tune]`, and puts its candidates into the algorithms' tables of the tree, as axes, so that each candidate
/// becomes a cell. `None` if there is no `[tune]`, or if the table itself is wrong, which the reading of the manifest
/// reports.
///
/// # Errors
/// What is wrong with the candidates, or an algorithm that has a value of a tuned setting already.
pub fn put_tuned_candidates(
    root: &mut Node,
    schema: &ManifestSchema,
) -> Result<Option<Tuning>, Vec<Diagnostic>> {
    let Some(node) = root.find("tune") else { return Ok(None) };
    // What is wrong with the table itself is found again when the manifest is read.
    let read = read_at(node, "tune", &Choice::new(), schema, from_tree::<Tune>);
    let Ok((tune, _)) = read else { return Ok(None) };
    let settings = tuned_settings(root, &tune)?;
    for setting in &settings {
        put_candidates(root, schema, setting, &setting.values)?;
    }
    Ok(Some(Tuning { settings, ..Tuning::default() }))
}

/// One diagnostic, at the place of a path, as the error of a function.
fn fault(root: &Node, path: &str, message: impl Into<String>) -> Vec<Diagnostic> {
    vec![diagnostic_under(root, path, &Choice::new(), message)]
}

/// The settings that `[tune]` names, in the order of `over`, each with its candidates from `range` or `values`.
///
/// # Errors
/// The first mistake in these keys.
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
        let range = list_of_setting(root, "range", tune.range.as_ref(), key, names.len())?;
        let values = list_of_setting(root, "values", tune.values.as_ref(), key, names.len())?;
        settings.push(match (range, values) {
            (Some(range), None) => from_range(root, tune, &range.key, &range.numbers)?,
            (None, Some(values)) => from_values(root, &values.key, values.numbers)?,
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

/// The list of numbers of a tuned setting, and the key that gets them.
struct ListOfSetting {
    /// The name in `over` or, if the numbers are in a unit, this name and the unit, with a dot between them.
    key: String,
    numbers: Vec<f64>,
}

/// The list for a setting in `table`, which is `range` or `values` (`name`) of `[tune]`; `None` if it has none. Where
/// only one setting is tuned (`tuned` = 1), the list may stand without a table.
///
/// # Errors
/// If a table has several units, or none.
fn list_of_setting(
    root: &Node,
    name: &str,
    table: Option<&PerSetting>,
    key: &str,
    tuned: usize,
) -> Result<Option<ListOfSetting>, Vec<Diagnostic>> {
    let list = match table {
        Some(PerSetting::One(numbers)) if tuned == 1 => {
            return Ok(Some(ListOfSetting { key: key.to_owned(), numbers: numbers.clone() }));
        }
        Some(PerSetting::Each(lists)) => lists.get(key),
        _ => None,
    };
    Ok(match list {
        None => None,
        Some(CandidateList::Numbers(numbers)) => {
            Some(ListOfSetting { key: key.to_owned(), numbers: numbers.clone() })
        }
        Some(CandidateList::Multiples(units)) => {
            if units.len() != 1 {
                let message = format!("`{key}` must have one unit, not {}", units.len());
                return Err(fault(root, &format!("tune.{name}.{key}"), message));
            }
            units.iter().next().map(|(unit, numbers)| ListOfSetting {
                key: format!("{key}.{unit}"),
                numbers: numbers.clone(),
            })
        }
    })
}

/// The path of the list for a setting `key` in `range` or `values` (`name`): `tune.range.<key>`, or `tune.range` if
/// that is the list itself.
fn path_of_list(root: &Node, name: &str, key: &str) -> String {
    let own = format!("tune.{name}.{key}");
    if root.find(&own).is_some() { own } else { format!("tune.{name}") }
}

/// A tuned setting with the candidates of a range: its ends, and numbers of equal ratio in between, as few as keep the
/// ratio of neighbours at most `tune.ratio`. They are whole if both ends are written as integers. The setting's own
/// ratio, with which it is extended, is that of the candidates that are left after rounding, on average.
fn from_range(
    root: &Node,
    tune: &Tune,
    key: &str,
    range: &[f64],
) -> Result<TunedSetting, Vec<Diagnostic>> {
    let path = path_of_list(root, "range", key);
    let (low, high) = match range {
        [low, high] if *low > 0.0 && low < high && (high / low).is_finite() => (*low, *high),
        [low, high] if *low > 0.0 && low < high && high.is_finite() => {
            let message = format!(
                "`range` = [{low:?}, {high:?}]: the larger must be at most 1e308 times the smaller"
            );
            return Err(fault(root, &path, message));
        }
        _ => {
            let message = "must be two numbers above 0, the smaller first: such as [1e-3, 1.0]";
            return Err(fault(root, &path, message));
        }
    };
    let ratio = tune.ratio;
    if !(ratio > 1.0 && ratio.is_finite()) {
        let message = format!("`ratio` must be a number above 1, not {ratio}");
        return Err(fault(root, "tune.ratio", message));
    }
    let whole = are_whole(root, &path);
    // This is infinite where the ratio is 1 up to rounding.
    let steps = libm::ceil(libm::log(high / low) / libm::log(ratio) - 1e-9).max(1.0);
    let too_many = |candidates: f64| {
        let candidates =
            if candidates < 1e15 { candidates.to_string() } else { format!("{candidates:.1e}") };
        let [low, high] =
            [low, high].map(|end| if whole { end.to_string() } else { format!("{end:?}") });
        let message = format!(
            "`range` = [{low}, {high}] with `ratio` = {ratio} makes {candidates} candidates; at most {MOST_CANDIDATES} are allowed: write a larger `ratio`"
        );
        fault(root, &path, message)
    };
    // Candidates are counted before they are listed, and again afterwards, because rounding makes some of them equal.
    if steps > MOST_STEPS {
        return Err(too_many(steps + 1.0));
    }
    let values = geometric(low, high, steps, whole);
    if values.len() > MOST_CANDIDATES {
        return Err(too_many(values.len() as f64));
    }
    let ratio = libm::pow(high / low, 1.0 / (values.len() - 1) as f64);
    Ok(TunedSetting { key: key.to_owned(), values, ratio: Some(ratio), whole })
}

/// A tuned setting with listed candidates, which are put in order. Having no ratio, it is never extended.
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
        let message = "must be at least two different candidates; write a single value in the algorithm's table";
        return Err(fault(root, &path, message));
    }
    Ok(TunedSetting { key: key.to_owned(), values, ratio: None, whole: are_whole(root, &path) })
}

/// Whether all numbers of the list at a path were written as integers; false if no list is there.
fn are_whole(root: &Node, path: &str) -> bool {
    let Some(Value::Array(items)) = root.find(path).map(|node| &node.value) else { return false };
    items.iter().all(|item| matches!(item.value, Value::Integer(_)))
}

/// Puts these candidates of a setting, as an axis, into every algorithm's table whose kind has such a key. The key of
/// a setting inside another one is a dotted path, whose first part must be such a key.
///
/// # Errors
/// If a table has a value of the setting already, or no algorithm has such a key.
pub fn put_candidates(
    root: &mut Node,
    schema: &ManifestSchema,
    setting: &TunedSetting,
    values: &[f64],
) -> Result<(), Vec<Diagnostic>> {
    let key = &setting.key;
    let place = place_of(root, "tune.over", &Choice::new()).unwrap_or(Place::Text(0, 0));
    let mut items = Vec::with_capacity(values.len());
    for x in values {
        let value = if setting.whole { Value::Integer(*x as i64) } else { Value::Float(*x) };
        items.push(Node { place: place.clone(), value });
    }
    let list = Node { place, value: Value::Array(items) };
    let mut found = 0;
    for path in algorithm_paths(root) {
        let own = format!("{path}.{key}");
        if root.find(&own).is_some() {
            let message = format!(
                "`{key}` is tuned, so that it has no value here: remove it, or the setting from `over` of [tune]"
            );
            return Err(fault(root, &own, message));
        }
        if schema.has_key(&path, key.split('.').next().unwrap_or_default()) {
            let _ = set(root, &own.split('.').collect::<Vec<_>>(), &list);
            found += 1;
        }
    }
    // A kind that is not known is found when the manifest is read; the setting may be its own.
    if found == 0 && algorithm_paths(root).iter().all(|path| schema.at(path).is_some()) {
        let message = format!("no algorithm of this manifest has a setting `{key}`");
        return Err(fault(root, "tune.over", message));
    }
    Ok(())
}

/// The paths of all algorithms' tables, `algorithm.<kind>.<number>`.
fn algorithm_paths(root: &Node) -> Vec<String> {
    let Some(Value::Table(kinds)) = root.find("algorithm").map(|node| &node.value) else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    for KeyValue { key, node, .. } in kinds {
        if let Value::Array(items) = &node.value {
            paths.extend((0..items.len()).map(|i| format!("algorithm.{key}.{i}")));
        }
    }
    paths
}

impl Checker<'_> {
    /// Notes what is wrong with `[tune]` beside its candidates.
    pub fn tune(&mut self) {
        let Some(tune) = &self.manifest.tune else { return };
        if let Some(at) = tune.at {
            self.compared_at("tune.at", at, tune.metric, |_| true);
        }
        // The other half of the streams of noise is for the runs of the other sort, candidates or fresh ones.
        let most = MAX_REPLICATES / 2;
        for (key, number) in [("replicates", tune.replicates), ("evaluate", tune.evaluate)] {
            let Some(number) = number else { continue };
            let runs = number.saturating_mul(self.manifest.instances.unwrap_or(1));
            let path = format!("tune.{key}");
            self.require(number > 0, &path, format!("`{key}` must be 1 or more, not 0"));
            let message = format!("`{key}` makes {runs} runs; at most {most} are allowed");
            self.require(runs <= most, &path, message);
        }
        if tune.metric.average().is_some() {
            let message = format!("`{}` is no quantity of single runs", tune.metric.name());
            self.fault("tune.metric", message);
        } else {
            let before = self.found.len();
            self.quantity("tune.metric", tune.metric);
            if self.found.len() == before {
                self.algorithms_without(tune.metric);
            }
        }
    }

    /// Notes each algorithm whose runs do not have the quantity by which candidates are selected, though it is
    /// recorded: none of its candidates could ever be selected.
    fn algorithms_without(&mut self, quantity: Quantity) {
        let Some(metric) = quantity.metric() else { return };
        let lacking = self.cells.iter().filter(|cell| !metric.is_of(&cell.identity.algorithm));
        let labels: BTreeSet<&str> = lacking.map(|cell| cell.label.as_str()).collect();
        for label in labels {
            let message = format!(
                "`metric` = \"{}\" is not measured of \"{label}\", so that none of its candidates could be selected: name a quantity that all algorithms have",
                metric.name()
            );
            self.fault("tune.metric", message);
        }
    }
}

impl Plan {
    /// A warning of what is allowed, but hardly meant, which commands print: mini-batch SGD with one gradient in a
    /// round next to algorithms whose local steps are tuned. `None` if there is no reason for it.
    pub fn warning(&self) -> Option<String> {
        let names = self.manifest.tune.as_ref()?.over.all();
        let is_tuned = |key: &str| names.iter().any(|name| name == key);
        let is_meant = !is_tuned("local-steps") || is_tuned("batch");
        let cell = self
            .cells
            .iter()
            .find(|cell| {
                let algorithm = &cell.identity.algorithm;
                algorithm.stated() == StatedAlgorithm::MinibatchSgd && algorithm.scale().1 == 1
            })
            .filter(|_| !is_meant)?;
        Some(format!(
            "\"{}\" takes one gradient of each client in a round, and the local steps of the other algorithms are tuned: write \"batch\" in `over` of [tune] with the candidates of \"local-steps\", or its `batch`",
            cell.label
        ))
    }
}

/// The number of runs of each cell on each instance: that of `[tune]` for candidates, if it has one, and otherwise
/// that of the manifest.
pub fn replicates(manifest: &Manifest) -> u64 {
    let tuned = manifest.tune.as_ref().and_then(|tune| tune.replicates);
    tuned.unwrap_or(manifest.replicates)
}
