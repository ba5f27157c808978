//! The settings that tell exported cells apart, one typed column for each.
//!
//! *Invariant*: two cells of an experiment differ in the kind of their problem or algorithm,
//! in their seed or in one of these columns. So a group-by over all of them mixes no cells.

use exactfed_core::problem::arrays::HASH_PREFIX;
use exactfed_runner::plan::{self, Cell, Setting, short};
use polars::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use toml::Value;

/// The TOML value that a manifest would have for a setting of a planned cell: a whole number below 10^15 as an integer,
/// and the texts `true` and `false`, as which flags are kept, as flags.
fn from_setting(setting: &Setting) -> Value {
    match setting {
        Setting::Number(x) if x.fract() == 0.0 && x.abs() < 1e15 => Value::Integer(*x as i64),
        Setting::Number(x) => Value::Float(*x),
        Setting::Text(text) => match text.parse() {
            Ok(flag) => Value::Boolean(flag),
            Err(_) => Value::String(text.to_string()),
        },
    }
}

/// The type of a column that holds values like this one; texts for all that is neither a number nor a flag.
fn data_type(value: &Value) -> DataType {
    match value {
        Value::Integer(_) => DataType::Int64,
        Value::Float(_) => DataType::Float64,
        Value::Boolean(_) => DataType::Boolean,
        _ => DataType::String,
    }
}

/// The type that holds values of both types: texts, unless the types are equal or both are of numbers.
fn common_type(one: DataType, other: DataType) -> DataType {
    use DataType::{Float64, Int64};
    match (one, other) {
        (one, other) if one == other => one,
        (Int64, Float64) | (Float64, Int64) => Float64,
        _ => DataType::String,
    }
}

/// The settings of a cell by their paths, which do not name the kinds of its problem and
/// algorithm: `algorithm.step-size`. The values are numbers, flags and texts, also for a list as
/// TOML writes it, and true for a table without settings of its own.
pub type Leaves = BTreeMap<String, Value>;

/// The leaves of a cell: the settings of `table`, whose hash is its id, and `defaults`, which its id does not hash, and
/// which its manifest names among the values of an axis. Without them, a cell at the default would have no value there.
pub fn leaves<'a>(
    table: &toml::Table,
    defaults: impl IntoIterator<Item = (&'a str, &'a Setting)>,
) -> Leaves {
    let mut all = Leaves::new();
    for (path, value) in plan::leaves(table) {
        let leaf = match value {
            Value::Table(_) => Value::Boolean(true),
            Value::Array(_) | Value::Datetime(_) => Value::String(value.to_string()),
            single => single.clone(),
        };
        all.insert(without_kind(&path), leaf);
    }
    for (path, setting) in defaults {
        all.entry(without_kind(path)).or_insert_with(|| from_setting(setting));
    }
    // The seed and the kinds of the problem and the algorithm have columns of their own.
    all.retain(|path, _| !["seed", "problem", "algorithm"].contains(&&**path));
    all
}

/// Replaces hashes of data files among the leaves by the names that the manifest of the planned cell has for the files:
/// where the grid varies a file, a column of names says more.
fn name_files(leaves: &mut Leaves, cell: &Cell) {
    for (path, setting) in cell.settings.iter() {
        if let Some(leaf @ Value::String(_)) = leaves.get_mut(&without_kind(path))
            && leaf.as_str().is_some_and(|text| text.starts_with(HASH_PREFIX))
        {
            *leaf = from_setting(setting);
        }
    }
}

/// The leaves of a planned cell, whose id is the hash of `settings`: with the values that the grid names though they
/// are defaults, and with names of data files in place of hashes.
pub fn planned_leaves(cell: &Cell, settings: &toml::Table) -> Leaves {
    let mut all = leaves(settings, defaults(cell, settings));
    name_files(&mut all, cell);
    all
}

/// The settings of a cell that its grid varies and that have their default value, by path: `settings`, which its id
/// hashes, leave them out.
fn defaults<'a>(cell: &'a Cell, settings: &toml::Table) -> Vec<(&'a str, &'a Setting)> {
    let mut defaults = Vec::new();
    for path in cell.varied.iter() {
        // A budget is part of the id by the rounds that it comes to.
        if path.starts_with("budget.") || has_path(settings, path) {
            continue;
        }
        if let Some(setting) = cell.settings.at_path(path) {
            defaults.push((path.as_str(), setting));
        }
    }
    defaults
}

/// Whether settings have a value at a path, such as `algorithm.fedavg.step-size`.
fn has_path(settings: &toml::Table, path: &str) -> bool {
    let mut parts = path.split('.');
    let Some(mut value) = parts.next().and_then(|part| settings.get(part)) else { return false };
    for part in parts {
        match value.get(part) {
            Some(inner) => value = inner,
            None => return false,
        }
    }
    true
}

/// A path without the kind of the problem or algorithm: `algorithm.step-size` for
/// `algorithm.fedavg.step-size`.
fn without_kind(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        [top @ ("problem" | "algorithm"), _, rest @ ..] => [&[*top], rest].concat().join("."),
        _ => path.to_owned(),
    }
}

/// The values that the settings of an experiment's cells have, from which follows in which settings the cells differ.
#[derive(Default)]
pub struct SettingValues {
    /// The number of cells that were added.
    cells: usize,
    /// What is known of the values of each setting, by path.
    seen: BTreeMap<String, SeenValues>,
}

/// The values of a setting in the cells that were added.
struct SeenValues {
    /// The value in the first cell that has the setting.
    first: Value,
    /// The number of cells that have the setting.
    cells: usize,
    /// Whether another value than the first one was seen.
    several: bool,
    /// The type that holds all values.
    kind: DataType,
}

impl SettingValues {
    /// Adds a cell with these leaves. Each cell is added once, since cells are counted.
    pub fn add(&mut self, leaves: Leaves) {
        let mut one = Self { cells: 1, seen: BTreeMap::new() };
        for (path, first) in leaves {
            let kind = data_type(&first);
            one.seen.insert(path, SeenValues { first, cells: 1, several: false, kind });
        }
        self.merge(one);
    }

    /// Adds the cells of `other`, which belong to the same experiment and were read from another pack.
    pub fn merge(&mut self, other: Self) {
        self.cells += other.cells;
        for (path, new) in other.seen {
            let Some(seen) = self.seen.get_mut(&path) else {
                self.seen.insert(path, new);
                continue;
            };
            seen.cells += new.cells;
            seen.several |= new.several || seen.first != new.first;
            seen.kind = common_type(seen.kind.clone(), new.kind);
        }
    }

    /// The paths of settings in which cells differ, in value or in having it.
    fn differing_paths(&self) -> impl Iterator<Item = &String> {
        let differing =
            self.seen.iter().filter(|(_, seen)| seen.several || seen.cells < self.cells);
        differing.map(|(path, _)| path)
    }
}

/// The column of a setting in a table with a row for each cell, or for each recorded round of each.
#[derive(Debug)]
pub struct SettingColumn {
    /// Name of the column.
    pub name: String,
    /// Path of the setting.
    pub path: String,
    /// Type of the column.
    pub kind: DataType,
}

impl SettingColumn {
    /// The columns of the settings in which cells of one of these experiments differ from each other, in the order of
    /// their paths. None has one of the names in `taken`. The type of a column holds the values of the setting in all
    /// experiments.
    pub fn all(experiments: &[SettingValues], taken: &[&str]) -> Vec<Self> {
        let mut all_paths: BTreeSet<&String> = BTreeSet::new();
        let mut differing: BTreeSet<&String> = BTreeSet::new();
        for experiment in experiments {
            all_paths.extend(experiment.seen.keys());
            differing.extend(experiment.differing_paths());
        }
        let names = column_names(&differing, &all_paths, taken);
        let mut columns = Vec::new();
        for (path, name) in differing.into_iter().zip(names) {
            let seen = experiments.iter().filter_map(|experiment| experiment.seen.get(path));
            let kind = seen.map(|seen| seen.kind.clone()).reduce(common_type);
            let kind = kind.unwrap_or(DataType::String);
            columns.push(Self { name, path: path.clone(), kind });
        }
        columns
    }

    /// The values of the setting in these cells, with one row for each; null where a cell has no such setting.
    pub fn column<'a>(&self, cells: impl Iterator<Item = &'a Leaves>) -> PolarsResult<Column> {
        let mut values: Vec<AnyValue<'_>> = Vec::new();
        for leaves in cells {
            values.push(match leaves.get(&self.path) {
                Some(value) => cast_value(value, &self.kind),
                None => AnyValue::Null,
            });
        }
        let name = self.name.as_str().into();
        Ok(Series::from_any_values_and_dtype(name, &values, &self.kind, true)?.into_column())
    }
}

/// A value as it stands in a column of this type, which can hold it: as a text if the column holds values of other
/// types too.
fn cast_value(value: &Value, kind: &DataType) -> AnyValue<'static> {
    match (kind, value) {
        (DataType::Int64, Value::Integer(x)) => AnyValue::Int64(*x),
        (DataType::Float64, Value::Integer(x)) => AnyValue::Float64(*x as f64),
        (DataType::Float64, Value::Float(x)) => AnyValue::Float64(*x),
        (DataType::Boolean, Value::Boolean(x)) => AnyValue::Boolean(*x),
        (_, Value::String(text)) => AnyValue::StringOwned(text.as_str().into()),
        (_, Value::Float(x)) => AnyValue::StringOwned(format!("{x:?}").into()),
        (_, other) => AnyValue::StringOwned(other.to_string().into()),
    }
}

/// A column name for each of `paths`, in their order: the last part of the path, as on pages; the whole path if this
/// name is in `taken`, or if another of `all` paths, to which `paths` belong, ends with it. The latter counts also if
/// no cells differ in it, since readers would confuse, say, a batch of records with a batch of gradients.
fn column_names(paths: &BTreeSet<&String>, all: &BTreeSet<&String>, taken: &[&str]) -> Vec<String> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for path in all {
        *count.entry(snake_case(short(path))).or_default() += 1;
    }
    let is_free = |name: &str| count[name] == 1 && !taken.contains(&name);
    let mut used: HashSet<String> = taken.iter().map(|name| (*name).to_owned()).collect();
    // Short names come first: no whole path takes the one of another setting.
    used.extend(count.keys().filter(|name| is_free(name)).cloned());
    let mut names = Vec::new();
    for path in paths {
        let last = snake_case(short(path));
        if is_free(&last) {
            names.push(last);
            continue;
        }
        let whole = snake_case(path);
        let mut name = whole.clone();
        let mut number = 2;
        while !used.insert(name.clone()) {
            name = format!("{whole}_{number}");
            number += 1;
        }
        names.push(name);
    }
    names
}

/// A path as a column name: with `_` in place of hyphens and dots.
fn snake_case(path: &str) -> String {
    path.replace(['-', '.'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_where_they_can_be_and_no_two_are_equal() {
        let paths = ["algorithm.step-size", "problem.l2", "start.zero", "problem.a.zero", "zero-2"];
        let owned = paths.map(str::to_owned);
        let paths: BTreeSet<&String> = owned.iter().collect();
        let found = column_names(&paths, &paths, &["step_size", "problem_a_zero"]);
        let expected = ["algorithm_step_size", "problem_a_zero_2", "l2", "start_zero", "zero_2"];
        assert_eq!(found, expected);
        // A key that all cells share has no column, and keeps its name from another's.
        let own = "algorithm.batch".to_owned();
        let shared = "problem.batch".to_owned();
        let other = "problem.l2".to_owned();
        let named = |all: &[&String]| {
            column_names(&[&own].into(), &all.iter().copied().chain([&own]).collect(), &[])
        };
        assert_eq!(named(&[&shared]), ["algorithm_batch"]);
        assert_eq!(named(&[&other]), ["batch"]);
    }

    #[test]
    fn cells_differ_in_a_column_of_the_right_type() {
        let table = |text: &str| -> toml::Table { toml::from_str(text).unwrap() };
        let mut survey = SettingValues::default();
        let cells = [
            "seed = 1\nrounds = 3\n[algorithm.fedavg]\nstep-size = 0.5\n[start]\nzero = {}",
            "seed = 1\nrounds = 4\n[algorithm.fedlsa]\nstep-size = 0.5\np = 1\nkinds = [1, 2]",
            "seed = 2\nrounds = 4\n[algorithm.fedlsa]\nstep-size = 0.5\np = 0.5\nlazy = true",
        ];
        let cells = cells.map(|text| leaves(&table(text), []));
        for cell in &cells {
            survey.add(cell.clone());
        }
        let axes = SettingColumn::all(&[survey], &[]);
        let found: Vec<(&str, DataType)> =
            axes.iter().map(|axis| (axis.name.as_str(), axis.kind.clone())).collect();
        let expected = [
            ("kinds", DataType::String),
            ("lazy", DataType::Boolean),
            ("p", DataType::Float64),
            ("rounds", DataType::Int64),
            ("zero", DataType::Boolean),
        ];
        assert_eq!(found, expected);
        let p = axes[2].column(cells.iter()).unwrap();
        let p: Vec<Option<f64>> = p.f64().unwrap().iter().collect();
        assert_eq!(p, [None, Some(1.0), Some(0.5)]);
        let default = ("algorithm.fedavg.p", &Setting::Number(2.0));
        let with_default = leaves(&table("rounds = 3\n[algorithm.fedavg]\n"), [default]);
        assert_eq!(with_default["algorithm.p"], Value::Integer(2));
    }
}
