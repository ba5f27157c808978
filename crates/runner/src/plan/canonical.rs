//! The settings that determine the numbers of cells, one by one, as records of reports have them.

use super::identity::{Identity, RunKeys};
use super::settings::{Part, Setting, Settings, Shapes, leaves};
use crate::manifest::{Quantity, Record, Start};
use exactfed_core::{algorithm, problem};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::Arc;

/// Makes the canonical settings of cells, by which comparisons of results find the same cell on both sides. The
/// settings that cells of a plan share are made once, and are found again by the address of what they are made from.
#[derive(Default)]
pub struct CanonicalSettings<'p> {
    shapes: Shapes,
    problems: HashMap<*const problem::Spec, Part>,
    algorithms: HashMap<*const algorithm::Spec, Part>,
    others: HashMap<OtherKey, Part>,
    /// What is at the addresses lives as long as this.
    plan: PhantomData<&'p Identity>,
}

/// The most algorithms whose settings are kept. Beyond this number all are dropped, and are made anew where cells ask
/// for them again.
const MOST_KEPT: usize = 1 << 14;

/// What the settings other than the problem and the algorithm are made of: the keys of the runs, T,
/// the target at which runs end, what is recorded, and the start.
type OtherKey = (*const RunKeys, u64, Option<(Quantity, u64)>, *const Record, *const Start);

impl<'p> CanonicalSettings<'p> {
    /// The settings that determine the numbers of a cell; those that are empty are left out.
    pub fn of(&mut self, identity: &'p Identity) -> Settings {
        let Self { shapes, problems, algorithms, others, .. } = self;
        let Identity { keys, rounds, until, record, start, problem, algorithm } = identity;
        if algorithms.len() >= MOST_KEPT {
            algorithms.clear();
        }
        let problem = problems
            .entry(Arc::as_ptr(problem))
            .or_insert_with(|| part(shapes, [("problem".to_owned(), toml(&**problem))]));
        let algorithm = algorithms
            .entry(Arc::as_ptr(algorithm))
            .or_insert_with(|| part(shapes, [("algorithm".to_owned(), toml(&**algorithm))]));
        // A target is a number, which has no hash but by its bits.
        let until = until.map(|until| (until.metric, until.target.to_bits()));
        let key = (Arc::as_ptr(keys), *rounds, until, Arc::as_ptr(record), Arc::as_ptr(start));
        let other = others.entry(key).or_insert_with(|| {
            let all = identity.canonical().into_iter();
            part(shapes, all.filter(|(key, _)| key != "problem" && key != "algorithm"))
        });
        shapes.settings([algorithm, problem, other])
    }

    /// The settings of a cell from the table that is stored with its results, for cells whose manifest cannot be read
    /// any more.
    pub fn of_table(&mut self, mut table: toml::Table) -> Settings {
        let tops = ["algorithm", "problem"].map(|top| table.remove_entry(top));
        let [algorithm, problem] = tops.map(|top| part(&mut self.shapes, top));
        let other = part(&mut self.shapes, table);
        self.shapes.settings([&algorithm, &problem, &other])
    }
}

/// The settings of a problem or an algorithm as TOML.
fn toml(spec: &impl Serialize) -> toml::Value {
    toml::Value::try_from(spec).expect("settings are plain tables")
}

/// The settings in these tables, or single values, which stand at the top level of what a cell's id hashes, each by its
/// key: every value by its dotted path, without empty texts.
fn part(shapes: &mut Shapes, tables: impl IntoIterator<Item = (String, toml::Value)>) -> Part {
    let table = toml::Table::from_iter(tables);
    shapes.part(
        leaves(&table)
            .into_iter()
            .filter_map(|(path, value)| Some((path, setting(value)?)))
            .collect::<BTreeMap<_, _>>(),
    )
}

/// The setting that a value is displayed as; `None` if that is an empty text, which is left out.
fn setting(value: &toml::Value) -> Option<Setting> {
    match value {
        toml::Value::String(text) => (!text.is_empty()).then(|| Setting::displayed_as(text)),
        toml::Value::Float(number) if number.is_finite() => Some(Setting::Number(*number)),
        toml::Value::Float(number) => Some(Setting::displayed_as(&number.to_string())),
        other => Some(Setting::displayed_as(&other.to_string())),
    }
}
