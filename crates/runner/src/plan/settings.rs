//! A cell's settings by name: what figures and tables call panels and axes.

use crate::manifest::document::Value;
use exactfed_core::problem::Fault;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A name, a flag, or a table in one line.
    Text(Arc<str>),
}

/// No setting of a sound cell is NaN, so that each equals itself.
impl Eq for Setting {}

impl Hash for Setting {
    fn hash<H: Hasher>(&self, to: &mut H) {
        match self {
            // 0 has one sign.
            Self::Number(value) => (value + 0.0).to_bits().hash(to),
            Self::Text(text) => text.hash(to),
        }
    }
}

impl Setting {
    /// The setting that is displayed as this text, such as a setting that was stored as text: a number if a number is
    /// displayed in exactly this way, and otherwise a text.
    pub fn displayed_as(text: &str) -> Self {
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value.to_string() == text => Self::Number(value),
            _ => Self::Text(text.into()),
        }
    }

    /// The value as text, in which a table of one flag that is set, such as `{ zero = true }`, which [`inline`] writes
    /// as `zero true`, is the name of the flag. By it `pretty` of `exactfed_evidence`, which words settings for pages,
    /// tells the kinds of `start` apart. Tables of settings have the text of [`fmt::Display`], with `true`.
    pub fn without_flag_value(&self) -> Cow<'_, str> {
        match self {
            Self::Number(value) => Cow::Owned(value.to_string()),
            Self::Text(text) => Cow::Borrowed(text.strip_suffix(" true").unwrap_or(text)),
        }
    }

    /// The number; `None` if the setting is a text.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// All settings of a cell by their dotted paths. Cells share the paths, and the
/// values of a table that is the same in them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where the value of each path is among the parts.
    shape: Arc<Shape>,
    /// The values of the parts, each in the order of its paths.
    parts: [Arc<[Setting]>; PARTS],
}

/// The number of parts of which a cell's settings consist: those of its problem, those of its algorithm, and the
/// others. The order of the parts makes no difference.
pub const PARTS: usize = 3;

/// The settings of a part by their paths, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    paths: Arc<[String]>,
    values: Arc<[Setting]>,
}

impl Hash for Part {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.values.hash(to);
    }
}

/// A problem or an algorithm, for all cells that have it.
pub struct SpecParts<T> {
    /// The settings as the program uses them.
    pub spec: Arc<T>,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
    /// Where the canonical text of its table is in the text of all problems or of all algorithms.
    pub text: Range<usize>,
    /// The paths and values of the settings.
    pub settings: Part,
}

/// Where the value of each setting is: in which part, and at which place there. Cells whose parts have the same paths
/// share it.
#[derive(Debug, Default)]
struct Shape {
    /// Every path, in order, with the number of its part and its place there.
    paths: Vec<(String, usize, usize)>,
    /// What every name means: the index of its path in `paths`.
    names: HashMap<String, usize>,
}

impl Shape {
    /// The shape of settings with these parts. A name is the end of a path after any dot. Where several paths end
    /// alike, it means the one of the algorithm before the problem's and those before all others, and then the
    /// shortest.
    fn new(parts: [&Part; PARTS]) -> Self {
        let mut paths = Vec::new();
        for (p, part) in parts.iter().enumerate() {
            paths.extend(part.paths.iter().enumerate().map(|(i, path)| (path.clone(), p, i)));
        }
        paths.sort();
        let mut names: HashMap<String, usize> = HashMap::new();
        for (i, (path, ..)) in paths.iter().enumerate() {
            let ends = path.match_indices('.').filter(|_| !needs_whole_path(path));
            for (dot, _) in ends {
                let best = names.entry(path[dot + 1..].to_owned()).or_insert(i);
                *best = std::cmp::min_by_key(*best, i, |i: &usize| {
                    (rank_of_path(&paths[*i].0), paths[*i].0.len(), *i)
                });
            }
        }
        names.extend(paths.iter().enumerate().map(|(i, (path, ..))| (path.clone(), i)));
        Self { paths, names }
    }
}

/// Makes settings of many cells. Paths, texts and shapes that are equal are in memory once.
#[derive(Default)]
pub struct Shapes {
    /// The lists of paths of all parts so far.
    paths: HashMap<Vec<String>, Arc<[String]>>,
    /// The texts of all settings so far.
    texts: HashSet<Arc<str>>,
    /// The shapes of all settings so far, by the addresses of the lists of paths of their parts.
    shapes: HashMap<[*const String; PARTS], Arc<Shape>>,
    /// The parts of all settings that were [read](Self::read).
    parts: HashSet<Part>,
}

impl Shapes {
    /// A part with these settings by their paths.
    pub fn part(&mut self, settings: BTreeMap<String, Setting>) -> Part {
        let (paths, mut values): (Vec<String>, Vec<Setting>) = settings.into_iter().unzip();
        for value in &mut values {
            if let Setting::Text(text) = value {
                match self.texts.get(text) {
                    Some(known) => *text = known.clone(),
                    None => drop(self.texts.insert(text.clone())),
                }
            }
        }
        let shared = self.paths.entry(paths).or_insert_with_key(|paths| paths.as_slice().into());
        Part { paths: shared.clone(), values: values.into() }
    }

    /// The settings of a cell with these parts. Cells whose parts have the same paths share their shape.
    pub fn settings(&mut self, parts: [&Part; PARTS]) -> Settings {
        let key = parts.map(|part| part.paths.as_ptr());
        let shape = self.shapes.entry(key).or_insert_with(|| Arc::new(Shape::new(parts)));
        Settings { shape: shape.clone(), parts: parts.map(|part| part.values.clone()) }
    }

    /// The settings of a cell that are displayed as these texts, by their paths, as reports and results store them.
    /// Equal parts are in memory once.
    pub fn read<P: Into<String>, T: AsRef<str>>(
        &mut self,
        all: impl IntoIterator<Item = (P, T)>,
    ) -> Settings {
        let mut parts = [const { BTreeMap::new() }; PARTS];
        for (path, text) in all {
            let path = path.into();
            parts[rank_of_path(&path)].insert(path, Setting::displayed_as(text.as_ref()));
        }
        let parts = parts.map(|settings| {
            let part = self.part(settings);
            if let Some(known) = self.parts.get(&part) {
                return known.clone();
            }
            self.parts.insert(part.clone());
            part
        });
        self.settings(parts.each_ref())
    }
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Settings {
    /// Every path and its setting, in the order of the paths. A table of a planned cell is a setting too, as a text in
    /// one line, and each value in it has its own path: both `algorithm.fedavg` and `algorithm.fedavg.step-size` are
    /// there.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        let paths = self.shape.paths.iter();
        paths.map(|(path, part, i)| (path.as_str(), &self.parts[*part][*i]))
    }

    /// The setting at a full path; `None` if there is none, also where the text is a name of another setting.
    pub fn at_path(&self, path: &str) -> Option<&Setting> {
        let &i = self.shape.names.get(path)?;
        let (full, part, i) = &self.shape.paths[i];
        (full == path).then(|| &self.parts[*part][*i])
    }

    /// The setting that a name means in this cell: a full path, or the end of a path after a dot, such as
    /// `local-steps`; `None` if the cell has no such setting.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        let (_, part, i) = &self.shape.paths[*self.shape.names.get(name)?];
        Some(&self.parts[*part][*i])
    }

    /// The full path of the setting that a name means in this cell ([`Self::get`]).
    pub fn path(&self, name: &str) -> Option<&str> {
        self.shape.names.get(name).map(|&i| self.shape.paths[i].0.as_str())
    }

    /// Adds the paths of the settings in which two cells differ: in its value, or because only one of the cells has it.
    pub fn add_differing(&self, other: &Self, to: &mut BTreeSet<String>) {
        if Arc::ptr_eq(&self.shape, &other.shape) {
            for (path, part, i) in &self.shape.paths {
                // Cells of one grid share most of their parts.
                if Arc::ptr_eq(&self.parts[*part], &other.parts[*part]) {
                    continue;
                }
                let [a, b] = [self, other].map(|all| &all.parts[*part][*i]);
                if a != b && !to.contains(path) {
                    to.insert(path.clone());
                }
            }
            return;
        }
        for (path, _) in self.iter().chain(other.iter()) {
            let [a, b] = [self, other].map(|all| all.at_path(path));
            if a != b && !to.contains(path) {
                to.insert(path.to_owned());
            }
        }
    }

    /// The short names, the last parts of the paths, of all settings in tables: of the problem, the algorithm, the
    /// start and the budget, and that of the path length. Settings that only their whole paths name are left out.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let paths = self.shape.paths.iter().map(|(path, ..)| path.as_str());
        paths
            .filter(|path| {
                let depth = path.matches('.').count();
                depth > 1 || (depth == 1 && rank_of_path(path) > 1 && !needs_whole_path(path))
            })
            .map(short)
            .chain(["path-length"])
    }

    /// The short names of all settings of all these cells, each once.
    pub fn all_names<'a>(cells: impl Iterator<Item = &'a Self>) -> BTreeSet<&'a str> {
        Self::shapes(cells).flat_map(Self::names).collect()
    }

    /// The paths of all settings of all cells, many of them several times.
    pub fn all_paths<'a>(cells: impl Iterator<Item = &'a Self>) -> impl Iterator<Item = &'a str> {
        Self::shapes(cells).flat_map(|settings| settings.iter().map(|(path, _)| path))
    }

    /// One cell's settings for each different shape, since cells with one shape have the same paths and names.
    fn shapes<'a>(cells: impl Iterator<Item = &'a Self>) -> impl Iterator<Item = &'a Self> {
        let mut seen: HashSet<*const Shape> = HashSet::new();
        cells.filter(move |settings| seen.insert(Arc::as_ptr(&settings.shape)))
    }
}

/// The canonical text of a problem's, an algorithm's or a budget's table, whose key is `top`, and its settings by
/// their paths.
pub fn text_and_settings(top: &str, spec: &impl Serialize) -> (String, BTreeMap<String, Setting>) {
    let value = toml::Value::try_from(spec).expect("settings are plain tables");
    let mut all = BTreeMap::new();
    add_values(&mut all, top, &value);
    (toml::Table::from_iter([(top.to_owned(), value)]).to_string(), all)
}

/// Adds the value at a path as a setting, and if it is a table all values within it at their own paths.
pub fn add_values(all: &mut BTreeMap<String, Setting>, path: &str, value: &toml::Value) {
    let setting = match value {
        toml::Value::Integer(value) => Setting::Number(*value as f64),
        toml::Value::Float(value) => Setting::Number(*value),
        other => Setting::Text(inline(other).into()),
    };
    all.insert(path.to_owned(), setting);
    if let toml::Value::Table(table) = value {
        for (key, value) in table {
            add_values(all, &format!("{path}.{key}"), value);
        }
    }
}

/// The values in a table that are no tables with values of their own, by their dotted paths: also lists, and tables
/// that are empty.
pub fn leaves(table: &toml::Table) -> Vec<(String, &toml::Value)> {
    /// Adds the values in a table whose path, with its dot, is `prefix`.
    fn add<'a>(prefix: &str, table: &'a toml::Table, all: &mut Vec<(String, &'a toml::Value)>) {
        for (key, value) in table {
            let path = format!("{prefix}{key}");
            match value {
                toml::Value::Table(inner) if !inner.is_empty() => {
                    add(&format!("{path}."), inner, all);
                }
                leaf => all.push((path, leaf)),
            }
        }
    }
    let mut all = Vec::new();
    add("", table, &mut all);
    all
}

/// A number rounded to six significant digits, as the numbers that multiples of constants come to are displayed.
pub fn rounded_to_six(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// The order in which names prefer settings, which also is the part that a setting belongs to: 0 for an algorithm's, 1
/// for a problem's, and 2 for any other.
fn rank_of_path(path: &str) -> usize {
    let top = path.split('.').next().unwrap_or_default();
    ["algorithm", "problem"].iter().position(|t| *t == top).unwrap_or(2)
}

/// Whether the last part of a setting's path means something else: H is an algorithm's, and
/// communications and gradients are what a run has cost.
fn needs_whole_path(path: &str) -> bool {
    ["budget.local-steps", "budget.communications", "budget.gradients"].contains(&path)
}

/// The last part of a path.
pub fn short(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The settings that symbols stand for in the sources.
const SYMBOLS: &[(&[&str], &[&str])] = &[
    (&["H"], &["local-steps"]),
    (&["γ", "gamma", "η", "eta", "stepsize", "lr"], &["step-size"]),
    (&["N", "K"], &["clients"]),
    (&["d"], &["dimension", "features"]),
    (&["T"], &["rounds"]),
    (&["p"], &["communication-probability"]),
    (&["B"], &["batch"]),
    (&["L"], &["cohort"]),
    (&["λ", "lambda"], &["l2"]),
    (&["S"], &["states"]),
];

/// The hint "did you mean `local-steps`?" for the symbol `H`; `None` if the name is no symbol, or if what it stands for
/// is not among `known`, the short names of the settings that cells have.
pub fn symbol(name: &str, known: &[&str]) -> Option<String> {
    let (_, settings) = SYMBOLS.iter().find(|(symbols, _)| symbols.contains(&name))?;
    let meant = settings.iter().find(|setting| known.contains(setting))?;
    Some(format!("did you mean `{meant}`?"))
}

/// The setting that a manifest writes as this value; `None` of an array, a table and what no setting may be.
pub fn from_value(value: &Value) -> Option<Setting> {
    match value {
        Value::String(text) => Some(Setting::Text(text.as_str().into())),
        Value::Integer(value) => Some(Setting::Number(*value as f64)),
        Value::Float(value) => Some(Setting::Number(*value)),
        Value::Boolean(value) => Some(Setting::Text(value.to_string().into())),
        _ => None,
    }
}

/// A value in one line: `perturbed (kernel 0.02, reward 0.02)`. Settings that are tables or lists have it as their
/// text, by which selections of cells name them.
fn inline(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(inline).collect::<Vec<_>>().join(", "),
        toml::Value::Table(table) => {
            let parts = table.iter().map(|(key, value)| match value {
                toml::Value::Table(inner) if inner.is_empty() => key.clone(),
                toml::Value::Table(_) => format!("{key} ({})", inline(value)),
                other => format!("{key} {}", inline(other)),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        toml::Value::Float(value) => value.to_string(),
        other => other.to_string(),
    }
}
