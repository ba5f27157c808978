//! The settings that tell exported cells apart, one typed column for each.
//!
//! *Invariant*: two cells of an experiment differ in the kind of their problem or algorithm,
//! in their seed or in one of these columns. So a group-by over all of them mixes no cells.

use exactfed_core::problem::arrays::HASH_PREFIX;
use exactfed_runner::plan::{self, Cell, Setting, short};
use polars::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use toml::Value;

/// A value that a manifest writes as this setting.
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

/// The type of a column of such values.
fn data_type(value: &Value) -> DataType {
    match value {
        Value::Integer(_) => DataType::Int64,
        Value::Float(_) => DataType::Float64,
        Value::Boolean(_) => DataType::Boolean,
        _ => DataType::String,
    }
}

/// The type that holds values of both types.
fn union(one: DataType, other: DataType) -> DataType {
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

/// The leaves of a cell: the settings whose hash is its id, and defaults that its manifest
/// names as values of an axis.
pub fn leaves<'a>(
    table: &toml::Table,
    defaults: impl IntoIterator<Item = (&'a str, &'a Setting)>,
) -> Leaves {
    let leaf = |(path, value): (String, &Value)| {
        let leaf = match value {
            Value::Table(_) => Value::Boolean(true),
            Value::Array(_) | Value::Datetime(_) => Value::String(value.to_string()),
            single => single.clone(),
        };
        (without_kind(&path), leaf)
    };
    let mut all: Leaves = plan::leaves(table).into_iter().map(leaf).collect();
    for (path, setting) in defaults {
        all.entry(without_kind(path)).or_insert_with(|| from_setting(setting));
    }
    // These have columns of their own.
    all.retain(|path, _| !["seed", "problem", "algorithm"].contains(&&**path));
    all
}

/// Replaces the hashes of files that the grid varies by the names that a planned cell has for them.
pub fn name_files(leaves: &mut Leaves, cell: &Cell) {
    for (path, setting) in cell.settings.iter() {
        if let Some(leaf @ Value::String(_)) = leaves.get_mut(&without_kind(path))
            && leaf.as_str().is_some_and(|text| text.starts_with(HASH_PREFIX))
        {
            *leaf = from_setting(setting);
        }
    }
}

fn without_kind(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        [top @ ("problem" | "algorithm"), _, rest @ ..] => [&[*top], rest].concat().join("."),
        _ => path.to_owned(),
    }
}

/// The values of the settings of an experiment's cells.
#[derive(Default)]
pub struct SettingValues {
    cells: usize,
    seen: BTreeMap<String, Seen>,
}

struct Seen {
    first: Value,
    cells: usize,
    several: bool,
    kind: DataType,
}

impl SettingValues {
    /// Adds a cell.
    pub fn add(&mut self, leaves: Leaves) {
        let seen = |(path, first): (String, Value)| {
            let kind = data_type(&first);
            (path, Seen { first, cells: 1, several: false, kind })
        };
        self.merge(Self { cells: 1, seen: leaves.into_iter().map(seen).collect() });
    }

    /// Adds other cells of the same experiment.
    pub fn merge(&mut self, other: Self) {
        self.cells += other.cells;
        for (path, new) in other.seen {
            let Some(seen) = self.seen.get_mut(&path) else {
                self.seen.insert(path, new);
                continue;
            };
            seen.cells += new.cells;
            seen.several |= new.several || seen.first != new.first;
            seen.kind = union(seen.kind.clone(), new.kind);
        }
    }

    /// The paths of settings in which cells differ, in value or in having it.
    fn differing(&self) -> impl Iterator<Item = &String> {
        let differs = |seen: &Seen| seen.several || seen.cells < self.cells;
        self.seen.iter().filter(move |(_, seen)| differs(seen)).map(|(path, _)| path)
    }
}

/// The column of a setting.
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
    /// The columns of the settings in which cells of any of these experiments differ. None has
    /// one of the names in `taken`.
    pub fn all(experiments: &[SettingValues], taken: &[&str]) -> Vec<Self> {
        let paths: BTreeSet<&String> =
            experiments.iter().flat_map(SettingValues::differing).collect();
        let all = experiments.iter().flat_map(|e| e.seen.keys()).collect();
        let names = names(&paths, &all, taken);
        let axis = |(path, name): (&String, String)| {
            let seen = experiments.iter().filter_map(|e| e.seen.get(path));
            let kind = seen.map(|seen| seen.kind.clone()).reduce(union);
            let kind = kind.unwrap_or(DataType::String);
            Self { name, path: path.clone(), kind }
        };
        paths.into_iter().zip(names).map(axis).collect()
    }

    /// The column of these cells, one row each; null where a cell has no such setting.
    pub fn column<'a>(&self, cells: impl Iterator<Item = &'a Leaves>) -> PolarsResult<Column> {
        let value = |leaves: &Leaves| match (&self.kind, leaves.get(&self.path)) {
            (_, None) => AnyValue::Null,
            (DataType::Int64, Some(Value::Integer(x))) => AnyValue::Int64(*x),
            (DataType::Float64, Some(Value::Integer(x))) => AnyValue::Float64(*x as f64),
            (DataType::Float64, Some(Value::Float(x))) => AnyValue::Float64(*x),
            (DataType::Boolean, Some(Value::Boolean(x))) => AnyValue::Boolean(*x),
            (_, Some(Value::String(text))) => AnyValue::StringOwned(text.as_str().into()),
            (_, Some(Value::Float(x))) => AnyValue::StringOwned(format!("{x:?}").into()),
            (_, Some(other)) => AnyValue::StringOwned(other.to_string().into()),
        };
        let values: Vec<AnyValue<'_>> = cells.map(value).collect();
        let name = (&*self.name).into();
        Ok(Series::from_any_values_and_dtype(name, &values, &self.kind, true)?.into_column())
    }
}

/// A name for each path: its last part, as on pages; the whole path if this name is taken or
/// another of `all` paths has the same last part, also one in which no cells differ: a batch of
/// records is not one of oracle calls.
fn names(paths: &BTreeSet<&String>, all: &BTreeSet<&String>, taken: &[&str]) -> Vec<String> {
    let snake = |text: &str| text.replace(['-', '.'], "_");
    let mut brief: HashMap<String, usize> = HashMap::new();
    all.iter().for_each(|path| *brief.entry(snake(short(path))).or_default() += 1);
    let free = |name: &String| brief[name] == 1 && !taken.contains(&&**name);
    let mut used: HashSet<String> = taken.iter().map(|name| (*name).to_owned()).collect();
    used.extend(brief.keys().filter(|name| free(name)).cloned());
    let mut name = |path: &&String| {
        let last = snake(short(path));
        if free(&last) {
            return last;
        }
        let whole = snake(path);
        let others = (2..).map(|i| format!("{whole}_{i}"));
        let mut all = std::iter::once(whole.clone()).chain(others);
        let name = all.find(|name| used.insert(name.clone()));
        name.unwrap_or(whole)
    };
    paths.iter().map(&mut name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_where_they_can_be_and_no_two_are_equal() {
        let paths = ["algorithm.step-size", "problem.l2", "start.zero", "problem.a.zero", "zero-2"];
        let paths = paths.map(str::to_owned);
        let paths: BTreeSet<&String> = paths.iter().collect();
        let found = names(&paths, &paths, &["step_size", "problem_a_zero"]);
        let expected = ["algorithm_step_size", "problem_a_zero_2", "l2", "start_zero", "zero_2"];
        assert_eq!(found, expected);
        // A key that all cells share has no column, and keeps its name from another's.
        let own = "algorithm.batch".to_owned();
        let (shared, other) = ("problem.batch".to_owned(), "problem.l2".to_owned());
        let named = |all: &[&String]| {
            names(&[&own].into(), &all.iter().copied().chain([&own]).collect(), &[])
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
        cells.iter().for_each(|cell| survey.add(cell.clone()));
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
