//! Whether what a manifest says makes sense, reported where it says it.

use super::cells::Made;
use super::settings::symbol;
use super::{Cell, MOST_POINTS, SettingKey, Settings, short};
use crate::manifest::document::{Value, nearest};
use crate::manifest::read::Choice;
use crate::manifest::{
    Budget, Diagnostic, Instance, Manifest, Metric, Node, Place, Quantity, Record, Source, Spacing,
    Start,
};
use driftbench_core::problem::Fault;
use driftbench_core::rng::MAX_REPLICATES;
use driftbench_core::{algorithm, problem};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where the value at a path was written, under a choice of axis values; the
/// deepest table on the way where it was not written.
pub fn place_of(root: &Node, path: &str, choice: &Choice) -> Option<Place> {
    let (node, _) = walk(root, path, choice)?;
    (node.id != root.id).then(|| node.place.clone())
}

/// The deepest node on the way to a path, and whether it is the path's own.
pub fn walk<'a>(root: &'a Node, path: &str, choice: &Choice) -> Option<(&'a Node, bool)> {
    let mut node = root;
    let mut walked = String::new();
    for part in path.split('.') {
        let next = match &node.value {
            Value::Table(_) => node.get(part).map(|entry| &entry.node),
            Value::Array(items) => part.parse().ok().and_then(|i: usize| items.get(i)),
            _ => None,
        };
        let Some(next) = next else { return Some((node, false)) };
        node = next;
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(part);
        if let (Value::Array(items), Some(&index)) = (&node.value, choice.get(walked.as_str())) {
            node = items.get(index)?;
        }
    }
    Some((node, true))
}

pub fn at(root: &Node, path: &str, choice: &Choice, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(place_of(root, path, choice), path, message)
}

/// The most rounds of a run.
const MOST_ROUNDS: u64 = 1_000_000_000_000;
/// The most characters of a name: of a curve, a figure, a claim.
const MOST_NAME: usize = 100;

/// Texts that no page could show as they are, and names that are none.
fn texts(node: &Node, path: &str, found: &mut Vec<Diagnostic>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match &node.value {
        Value::Table(all) => all.iter().for_each(|e| texts(&e.node, &below(&e.key), found)),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(i, n)| texts(n, &below(&i.to_string()), found));
        }
        Value::String(text) => {
            let key = short(path);
            let mut wrong = |message: String| {
                found.push(Diagnostic::new(Some(node.place.clone()), path, message));
            };
            let control = |c: &char| c.is_control() && !"\n\r\t".contains(*c);
            if let Some(c) = text.chars().find(control) {
                wrong(format!("`{key}` holds the control character U+{:04X}", u32::from(c)));
            }
            // A data file's columns have names of their own.
            let names = ["label", "id"].contains(&key) && !path.starts_with("problem.");
            if names && text.contains(['\n', '\r', '\t']) {
                wrong(format!("`{key}` is a name: it must stand in one line"));
            }
            let length = text.chars().count();
            if names && length > MOST_NAME {
                wrong(format!("`{key}` has {length} characters; at most {MOST_NAME} are allowed"));
            }
        }
        _ => {}
    }
}

/// What is wrong with a manifest whatever the grid point.
pub fn manifest(root: &Node, manifest: &Manifest) -> Vec<Diagnostic> {
    let none = Choice::new();
    let mut found = Vec::new();
    texts(root, "", &mut found);
    let mut require = |holds: bool, path: &str, message: String| {
        if !holds {
            found.push(at(root, path, &none, message));
        }
    };
    let replicates = manifest.replicates;
    require(replicates > 0, "replicates", "`replicates` must be 1 or more, not 0".into());
    require(
        replicates <= MAX_REPLICATES,
        "replicates",
        format!("`replicates` must be at most {MAX_REPLICATES} (a stream each), not {replicates}"),
    );
    require(
        !manifest.algorithm.entries().is_empty(),
        "algorithm",
        "there is no algorithm: write at least one [[algorithm.<kind>]]".into(),
    );
    let record = &manifest.record;
    let both = record.points.is_some() && record.every.is_some();
    require(!both, "record.every", "write `points` or `every`, not both".into());
    let log = record.spacing == Spacing::Log;
    require(
        !(log && record.every.is_some()),
        "record.spacing",
        "`spacing` is of `points`: beside `every` it has no meaning".into(),
    );
    require(record.points != Some(0), "record.points", "`points` must be 1 or more, not 0".into());
    require(record.every != Some(0), "record.every", "`every` must be 1 or more, not 0".into());
    let points = record.points.unwrap_or(1);
    require(
        points <= MOST_POINTS,
        "record.points",
        format!("`points` must be at most {MOST_POINTS}, not {points}"),
    );
    for (i, metric) in record.metrics.iter().enumerate() {
        let name = metric.name();
        let path = format!("record.metrics.{i}");
        require(
            !record.metrics[..i].contains(metric),
            &path,
            format!("`{name}` stands here twice"),
        );
    }
    for (i, average) in record.averages.iter().enumerate() {
        let message = format!("`{}` stands here twice", average.name());
        require(!record.averages[..i].contains(average), &format!("record.averages.{i}"), message);
    }
    if let Some(share) = record.burn_in {
        let message = format!("`burn-in` must be a share of the rounds in [0, 1), not {share}");
        require((0.0..1.0).contains(&share), "record.burn-in", message);
        let message = "`burn-in` is of `averages`, and there are none";
        require(!record.averages.is_empty(), "record.burn-in", message.into());
    }
    if let Some(prices) = manifest.prices {
        for (key, value) in [("latency", prices.latency), ("call", prices.call)] {
            let message = format!("`{key}` must be a finite number, 0 or more, not {value}");
            require(value.is_finite() && value >= 0.0, &format!("prices.{key}"), message);
        }
        if let Some(value) = prices.bandwidth {
            let message = format!("`bandwidth` must be a number above 0, not {value}");
            require(value > 0.0, "prices.bandwidth", message);
        }
    }
    found
}

/// A point of the grid, as far as it can be wrong.
pub struct Point<'a> {
    pub problem: &'a Made<problem::Spec>,
    pub algorithm: &'a Made<algorithm::Spec>,
    pub start: &'a Start,
    pub budget: &'a Budget,
    pub record: &'a Record,
    /// Path of the algorithm's entry.
    pub entry: &'a str,
    pub choice: &'a Choice,
}

/// What is wrong with one point of the grid.
pub fn cell(root: &Node, instance: Instance, point: &Point<'_>) -> Vec<Diagnostic> {
    let Point { problem, algorithm, choice, .. } = point;
    let mut found = Vec::new();
    if instance == Instance::PerReplicate && !problem.spec.uses_seed() {
        let message = "`instance`: nothing of this problem is drawn, so that replicates share it";
        found.push(at(root, "instance", choice, message));
    }
    let mut add = |base: &str, faults: &[Fault]| {
        for Fault { key, message } in faults {
            let path = format!("{base}.{key}");
            let space = if message.starts_with(':') { "" } else { " " };
            let message = format!("`{key}`{space}{message}");
            found.push(at(root, &path, choice, message));
        }
    };
    if !problem.faults.is_empty() {
        add(&format!("problem.{}", problem.spec.kind()), &problem.faults);
    }
    add(point.entry, &algorithm.faults);
    add("budget", &budget(point.budget, &algorithm.spec));
    add("record", every(point).as_slice());
    add("start", &start(point.start));
    found
}

/// Too many recorded rounds.
fn every(point: &Point<'_>) -> Option<Fault> {
    let every = point.record.every.filter(|every| *every > 0)?;
    let points = super::rounds(point.budget, point.algorithm.spec.scale().1) / every;
    let message = || {
        format!(
            "= {every} would record {points} rounds of a run; at most {MOST_POINTS} are recorded"
        )
    };
    (points > MOST_POINTS).then(|| Fault::new("every", message()))
}

fn budget(budget: &Budget, algorithm: &algorithm::Spec) -> Vec<Fault> {
    let mut faults = Vec::new();
    match (budget.local_steps, budget.rounds) {
        (Some(_), Some(_)) => {
            faults.push(Fault::new("rounds", "stands beside `local-steps`: write one of them"));
        }
        (None, None) => {
            faults.push(Fault::new("local-steps", "or `rounds` is needed: how long is a run?"))
        }
        (Some(0), None) => faults.push(Fault::new("local-steps", "must be 1 or more, not 0")),
        (Some(steps), None) if steps < algorithm.scale().1 && budget.min_rounds.is_none() => {
            let h = algorithm.scale().1;
            let message = format!(
                "must be at least the {h} local steps of one round, not {steps}; or write `min-rounds` to go beyond it"
            );
            faults.push(Fault::new("local-steps", message));
        }
        (None, Some(0)) => faults.push(Fault::new("rounds", "must be 1 or more, not 0")),
        _ => {}
    }
    let rounds = super::rounds(budget, algorithm.scale().1);
    if faults.is_empty() && rounds > MOST_ROUNDS {
        let key = if budget.rounds.is_some() { "rounds" } else { "local-steps" };
        let message = format!("makes {rounds} rounds; at most {MOST_ROUNDS} are allowed");
        faults.push(Fault::new(key, message));
    }
    faults
}

fn start(start: &Start) -> Vec<Fault> {
    let finite = |key, value: f64| {
        let message = || format!("must be finite, not {value}");
        (!value.is_finite()).then(|| Fault::new(key, message()))
    };
    match start {
        Start::Offset(offset) => finite("offset", *offset).into_iter().collect(),
        Start::Point(point) => point.iter().filter_map(|x| finite("point", *x)).take(1).collect(),
        Start::Zero(true) | Start::Limit(true) => Vec::new(),
        Start::Zero(false) => vec![Fault::new("zero", "is true or not written")],
        Start::Limit(false) => vec![Fault::new("limit", "is true or not written")],
    }
}

/// Diagnostics of overrides, with the setting that may have been meant: one of
/// the manifest whose path ends as the override's does.
pub fn overrides(root: &Node, source: &Source, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut paths = Vec::new();
    leaves(root, String::new(), &mut paths);
    let meant = |mut diagnostic: Diagnostic| {
        if let (Some(Place::Override(i)), None) = (&diagnostic.place, &diagnostic.hint) {
            let key = source.overrides[*i].split('=').next().unwrap_or_default().trim();
            let end = format!(".{}", short(key));
            let close = paths.iter().find(|path| path.ends_with(&end) && *path != key);
            diagnostic.hint = close.map(|path| format!("did you mean `{path}`?"));
        }
        diagnostic
    };
    found.into_iter().map(meant).collect()
}

/// Paths of all values that the text (and no override) wrote.
fn leaves(node: &Node, path: String, out: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match &node.value {
        Value::Table(entries) => {
            entries.iter().for_each(|e| leaves(&e.node, below(&e.key), out));
        }
        Value::Array(items)
            if matches!(items.first(), Some(Node { value: Value::Table(_), .. })) =>
        {
            items.iter().enumerate().for_each(|(i, item)| leaves(item, below(&i.to_string()), out));
        }
        _ if matches!(node.place, Place::Text(..)) => out.push(path),
        _ => {}
    }
}

/// Algorithm entries that one label cannot tell apart.
pub fn labels(root: &Node, manifest: &Manifest) -> Vec<Diagnostic> {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    for (kind, number, spec) in manifest.algorithm.entries() {
        let path = format!("algorithm.{kind}.{number}");
        if let Some(other) = seen.insert(spec.label().to_owned(), path.clone()) {
            let message = format!("`{other}` is called \"{}\" too", spec.label());
            let diagnostic = at(root, &path, &Choice::new(), message);
            found.push(diagnostic.hinting(Some("give one of them a `label`".into())));
        }
    }
    found
}

/// Two points of the grid that are the same.
pub fn twin(root: &Node, entry: &str, choice: &Choice, label: &str) -> Diagnostic {
    let message = format!(
        "this describes the same runs twice (already as \"{label}\"); is a value or an algorithm repeated?"
    );
    at(root, entry, choice, message)
}

/// What is wrong with the figures.
pub fn figures(root: &Node, manifest: &Manifest, cells: &[Cell]) -> Vec<Diagnostic> {
    let none = Choice::new();
    let (mut found, mut repeated) = (Vec::new(), Vec::new());
    let mut ids = BTreeSet::new();
    let known = Settings::all_names(cells.iter().map(|c| &c.settings));
    let known: Vec<&str> = known.into_iter().collect();
    let mut setting = |path: String, name: &str, number: bool| {
        let mut values = cells.iter().filter_map(|c| c.settings.get(name)).peekable();
        let none_has_it = values.peek().is_none();
        if number && none_has_it && Quantity::named(name).is_some() {
            return;
        }
        let mut text = || values.find(|v| matches!(v, super::Setting::Text(_)));
        if none_has_it {
            let message = format!("no cell has a setting `{name}`");
            let diagnostic = at(root, &path, &none, message);
            let hint = symbol(name, &known).or_else(|| nearest(name, &known));
            found.push(diagnostic.hinting(hint).allowing(known.join(", ")));
        } else if number && let Some(text) = text() {
            let message = format!("an axis needs numbers, but `{name}` is \"{text}\"");
            found.push(at(root, &path, &none, message));
        }
    };
    for f in Drawn::all(manifest) {
        for (i, name) in f.panels.iter().enumerate() {
            let path = format!("{}.panels.{i}", f.path);
            if f.panels[..i].contains(name) {
                repeated.push(at(root, &path, &none, format!("`{name}` stands here twice")));
            }
            setting(path, name, false);
        }
        for (key, name, number) in &f.axes {
            setting(format!("{}.{key}", f.path), name, *number);
        }
    }
    found.extend(repeated);
    let labels: BTreeSet<&str> = cells.iter().map(|c| c.label.as_str()).collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    for f in Drawn::all(manifest) {
        for (i, label) in f.labels.iter().enumerate().filter(|(_, l)| !labels.contains(&l.as_str()))
        {
            let message = format!("no algorithm is called \"{label}\"");
            let diagnostic = at(root, &format!("{}.labels.{i}", f.path), &none, message);
            found.push(diagnostic.hinting(nearest(label, &labels)).allowing(labels.join(", ")));
        }
        for (key, quantity) in &f.quantities {
            if let Some(message) = unrecorded(manifest, *quantity) {
                found.push(at(root, &format!("{}.{key}", f.path), &none, message));
            }
        }
    }
    if found.is_empty() {
        found.extend(mixed(root, manifest, cells));
    }
    for f in Drawn::all(manifest) {
        let path = format!("{}.id", f.path);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if f.id.is_empty() || !f.id.chars().all(plain) {
            let message = format!("a figure's id names its file: \"{}\" does not do", f.id);
            found.push(at(root, &path, &none, message).allowing("lower-case letters, digits, -"));
        } else if !ids.insert(f.id.clone()) {
            found.push(at(root, &path, &none, format!("two figures are called \"{}\"", f.id)));
        }
        if let [(_, across, _), (key, upwards, _)] = f.axes.as_slice()
            && across == upwards
        {
            let message = format!("`{across}` is on both axes");
            found.push(at(root, &format!("{}.{key}", f.path), &none, message));
        }
        if f.columns == Some(0) {
            let path = format!("{}.columns", f.path);
            found.push(at(root, &path, &none, "`columns` must be 1 or more, not 0"));
        }
    }
    found
}

/// Why a quantity cannot be drawn.
pub fn unrecorded(manifest: &Manifest, quantity: Quantity) -> Option<String> {
    let name = quantity.name();
    match quantity.metric() {
        Some(Metric::SqErrorLimit) => None,
        Some(metric) if !manifest.record.metrics.contains(&metric) => {
            Some(format!("`{name}` is not recorded: write metrics = [\"{name}\"] in [record]"))
        }
        None if quantity.average().is_some_and(|a| !manifest.record.averages.contains(&a)) => {
            let average = quantity.average().map_or("", |a| a.name());
            Some(format!("`{name}` is not recorded: write averages = [\"{average}\"] in [record]"))
        }
        None if quantity == Quantity::Seconds && manifest.prices.is_none() => {
            Some(format!("`{name}` needs prices: write a table [prices]"))
        }
        _ => None,
    }
}

/// Maps that would pool cells of different settings in one square.
fn mixed(root: &Node, manifest: &Manifest, cells: &[Cell]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for figure in Drawn::all(manifest) {
        let [(_, x, _), (_, y, _)] = figure.axes.as_slice() else { continue };
        if x == y {
            continue;
        }
        let known = || figure.panels.iter().map(String::as_str).chain([*x, *y]);
        let mut squares: HashMap<(&str, Vec<Option<SettingKey<'_>>>), &Cell> = HashMap::new();
        for cell in cells {
            let value = |name: &str| cell.settings.get(name).map(super::Setting::key);
            let square = (cell.label.as_str(), known().map(value).collect());
            let Some(other) = squares.insert(square, cell) else { continue };
            let differs = |path: &&String| cell.settings.at(path) != other.settings.at(path);
            let left: BTreeSet<&str> =
                cell.varied.iter().filter(differs).map(|p| short(p)).collect();
            let left: Vec<&str> = left.into_iter().collect();
            let message = format!("one square would hold several cells of \"{}\"", cell.label);
            let hint = format!("add to `panels`: {}", left.join(", "));
            found.push(at(root, &figure.path, &Choice::new(), message).hinting(Some(hint)));
            break;
        }
    }
    found
}

/// What all kinds of figures have.
pub struct Drawn<'a> {
    /// Path of the figure in the manifest.
    pub path: String,
    /// Name of its file.
    pub id: String,
    panels: &'a [String],
    labels: &'a [String],
    /// Key, name of the setting, whether it must be a number.
    axes: Vec<(&'static str, &'a str, bool)>,
    /// Key and quantity.
    quantities: Vec<(&'static str, Quantity)>,
    columns: Option<usize>,
}

impl<'a> Drawn<'a> {
    /// All figures of a manifest, in the order of their kinds.
    pub fn all(manifest: &'a Manifest) -> Vec<Self> {
        let id = |id: &Option<String>, kind: &str, i: usize| {
            let number = if i == 0 { String::new() } else { format!("-{}", i + 1) };
            id.clone().unwrap_or_else(|| format!("{kind}{number}"))
        };
        let table = &manifest.figure;
        let mut all = Vec::new();
        for (i, f) in table.convergence.iter().enumerate() {
            let path = format!("figure.convergence.{i}");
            let id = id(&f.id, "convergence", i);
            let quantities = vec![("x", f.x), ("y", f.y)];
            let (panels, labels, columns) = (&f.panels, &f.labels, f.columns);
            all.push(Self { path, id, panels, labels, axes: vec![], quantities, columns });
        }
        for (i, f) in table.scaling.iter().enumerate() {
            let path = format!("figure.scaling.{i}");
            let (id, axes) = (id(&f.id, "scaling", i), vec![("x", f.x.as_str(), true)]);
            let x = Quantity::named(&f.x).map(|x| ("x", x)).filter(|_| f.x != "local-steps");
            let quantities = x.into_iter().chain([("y", f.y)]).collect();
            let (panels, labels, columns) = (&f.panels, &f.labels, f.columns);
            all.push(Self { path, id, panels, labels, axes, quantities, columns });
        }
        for (i, f) in table.winners.iter().enumerate() {
            let path = format!("figure.winners.{i}");
            let axes = vec![("x", f.x.as_str(), false), ("y", f.y.as_str(), false)];
            let id = id(&f.id, "winners", i);
            let quantities = vec![("metric", f.metric)];
            let (panels, labels, columns) = (&f.panels, &f.labels, f.columns);
            all.push(Self { path, id, panels, labels, axes, quantities, columns });
        }
        for (i, f) in table.stability.iter().enumerate() {
            let path = format!("figure.stability.{i}");
            let axes = vec![("x", f.x.as_str(), false), ("y", f.y.as_str(), false)];
            let (id, quantities) = (id(&f.id, "stability", i), vec![]);
            let (panels, labels, columns) = (&f.panels, &f.labels, f.columns);
            all.push(Self { path, id, panels, labels, axes, quantities, columns });
        }
        all
    }
}
