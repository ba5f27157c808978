//! The settings that tell exported cells apart, one typed column for each.
//!
//! *Invariant*: two cells of an experiment differ in the kind of their problem or algorithm,
//! in their seed or in one of these columns. So a group-by over all of them mixes no cells.

use driftbench_runner::plan::{Setting, short};
use polars::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A single value.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf {
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Number(f64),
    /// A flag, or the choice of a table without settings of its own.
    Flag(bool),
    /// A name, or a list as TOML writes it.
    Text(String),
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnType {
    Whole,
    Number,
    Flag,
    Text,
}

impl Leaf {
    fn column_type(&self) -> ColumnType {
        match self {
            Self::Whole(_) => ColumnType::Whole,
            Self::Number(_) => ColumnType::Number,
            Self::Flag(_) => ColumnType::Flag,
            Self::Text(_) => ColumnType::Text,
        }
    }

    fn from_setting(setting: &Setting) -> Self {
        match setting {
            Setting::Number(x) if x.fract() == 0.0 && x.abs() < 1e15 => Self::Whole(*x as i64),
            Setting::Number(x) => Self::Number(*x),
            Setting::Text(text) => match text.parse() {
                Ok(flag) => Self::Flag(flag),
                Err(_) => Self::Text(text.clone()),
            },
        }
    }
}

impl ColumnType {
    /// The type that holds values of both types.
    fn union(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Whole, Self::Number) | (Self::Number, Self::Whole) => Self::Number,
            _ => Self::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Whole => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Flag => DataType::Boolean,
            Self::Text => DataType::String,
        }
    }
}

/// The settings of a cell by their paths, which do not name the kinds of its problem and
/// algorithm: `algorithm.step-size`.
pub type Leaves = BTreeMap<String, Leaf>;

/// The leaves of a cell: the settings whose hash is its id, and defaults that its manifest
/// names as values of an axis.
pub fn leaves(table: &toml::Table, defaults: &[(String, Setting)]) -> Leaves {
    let mut all = Leaves::new();
    for (key, value) in table {
        add(&mut all, key, value);
    }
    for (path, setting) in defaults {
        all.entry(without_kind(path)).or_insert_with(|| Leaf::from_setting(setting));
    }
    // These have columns of their own.
    all.retain(|path, _| !["seed", "problem", "algorithm"].contains(&&**path));
    all
}

fn add(all: &mut Leaves, path: &str, value: &toml::Value) {
    let leaf = match value {
        toml::Value::Table(inner) if !inner.is_empty() => {
            inner.iter().for_each(|(key, value)| add(all, &format!("{path}.{key}"), value));
            return;
        }
        toml::Value::Table(_) => Leaf::Flag(true),
        toml::Value::Integer(value) => Leaf::Whole(*value),
        toml::Value::Float(value) => Leaf::Number(*value),
        toml::Value::Boolean(value) => Leaf::Flag(*value),
        toml::Value::String(text) => Leaf::Text(text.clone()),
        other => Leaf::Text(other.to_string()),
    };
    all.insert(without_kind(path), leaf);
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
    first: Leaf,
    cells: usize,
    several: bool,
    kind: ColumnType,
}

impl SettingValues {
    /// Adds a cell.
    pub fn add(&mut self, leaves: Leaves) {
        self.cells += 1;
        for (path, leaf) in leaves {
            let kind = leaf.column_type();
            let seen = self.seen.entry(path);
            let seen = seen.or_insert(Seen { first: leaf.clone(), cells: 0, several: false, kind });
            seen.cells += 1;
            seen.several |= seen.first != leaf;
            seen.kind = seen.kind.union(kind);
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
    kind: ColumnType,
}

impl SettingColumn {
    /// The columns of the settings in which cells of any of these experiments differ. None has
    /// one of the names in `taken`.
    pub fn all(experiments: &[SettingValues], taken: &[&str]) -> Vec<Self> {
        let paths: BTreeSet<&String> =
            experiments.iter().flat_map(SettingValues::differing).collect();
        let names = names(&paths, taken);
        let axis = |(path, name): (&String, String)| {
            let kinds = experiments.iter().filter_map(|e| e.seen.get(path)).map(|seen| seen.kind);
            let kind = kinds.reduce(ColumnType::union).unwrap_or(ColumnType::Text);
            Self { name, path: path.clone(), kind }
        };
        paths.into_iter().zip(names).map(axis).collect()
    }

    /// Type of the column.
    pub fn data_type(&self) -> DataType {
        self.kind.data_type()
    }

    /// The column of a cell with so many rows; null if the cell has no such setting.
    pub fn column(&self, leaves: &Leaves, rows: usize) -> Column {
        let value = match (self.kind, leaves.get(&self.path)) {
            (_, None) => AnyValue::Null,
            (ColumnType::Whole, Some(Leaf::Whole(x))) => AnyValue::Int64(*x),
            (ColumnType::Number, Some(Leaf::Whole(x))) => AnyValue::Float64(*x as f64),
            (ColumnType::Number, Some(Leaf::Number(x))) => AnyValue::Float64(*x),
            (ColumnType::Flag, Some(Leaf::Flag(x))) => AnyValue::Boolean(*x),
            (_, Some(Leaf::Whole(x))) => AnyValue::StringOwned(x.to_string().into()),
            (_, Some(Leaf::Number(x))) => AnyValue::StringOwned(format!("{x:?}").into()),
            (_, Some(Leaf::Flag(x))) => AnyValue::StringOwned(x.to_string().into()),
            (_, Some(Leaf::Text(text))) => AnyValue::String(text),
        };
        let value = Scalar::new(self.data_type(), value.into_static());
        Column::new_scalar((&*self.name).into(), value, rows)
    }
}

/// A name for each path: its last part, as on pages; the whole path if this name is taken or
/// another path has the same last part.
fn names(paths: &BTreeSet<&String>, taken: &[&str]) -> Vec<String> {
    let snake = |text: &str| text.replace(['-', '.'], "_");
    let mut brief: HashMap<String, usize> = HashMap::new();
    paths.iter().for_each(|path| *brief.entry(snake(short(path))).or_default() += 1);
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
        let found = names(&paths, &["step_size", "problem_a_zero"]);
        let expected = ["algorithm_step_size", "problem_a_zero_2", "l2", "start_zero", "zero_2"];
        assert_eq!(found, expected);
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
        let cells = cells.map(|text| leaves(&table(text), &[]));
        cells.iter().for_each(|cell| survey.add(cell.clone()));
        let axes = SettingColumn::all(&[survey], &[]);
        let found: Vec<(&str, DataType)> =
            axes.iter().map(|axis| (axis.name.as_str(), axis.data_type())).collect();
        let expected = [
            ("kinds", DataType::String),
            ("lazy", DataType::Boolean),
            ("p", DataType::Float64),
            ("rounds", DataType::Int64),
            ("zero", DataType::Boolean),
        ];
        assert_eq!(found, expected);
        let p = |cell: usize| axes[2].column(&cells[cell], 2);
        assert_eq!(p(0).null_count(), 2);
        assert_eq!(p(1).f64().unwrap().get(1), Some(1.0));
        let default = ("algorithm.fedavg.p".to_owned(), Setting::Number(2.0));
        let with_default = leaves(&table("rounds = 3\n[algorithm.fedavg]\n"), &[default]);
        assert_eq!(with_default["algorithm.p"], Leaf::Whole(2));
    }
}
