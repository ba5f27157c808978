//! The entries of problems and algorithms, also of those that are defined outside of the program.

use super::schema::ManifestSchema;
use exactfed_core::algorithm::custom::CustomAlgorithmSettings;
use exactfed_core::algorithm::{self, AlgorithmKeys};
use exactfed_core::definition::KeyValues;
use exactfed_core::flattened::Flattened;
use exactfed_core::problem;
use exactfed_core::problem::custom::CustomProblemSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::{Table, Value};

/// A tree fits its schema, and is wrong nevertheless: the message of the type that it was read as.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TreeError(String);

/// Reads a type from a tree that fits its schema.
///
/// # Errors
/// What its schema does not say.
pub fn from_tree<T: DeserializeOwned>(tree: Value) -> Result<T, TreeError> {
    T::deserialize(tree).map_err(|e| TreeError(e.message().to_owned()))
}

/// Reads `[problem.<kind>]` from a tree that fits its schema: a table whose one key is the kind. The kind may be
/// registered in Rust.
pub fn problem(tree: Value, schema: &ManifestSchema) -> Result<problem::Spec, TreeError> {
    let registered = tree
        .as_table()
        .and_then(|table| table.iter().next())
        .and_then(|(kind, values)| Some((schema.registry.problems.get(kind)?, values)));
    let Some((problem, values)) = registered else { return from_tree(tree) };
    let values: KeyValues = from_tree(values.clone())?;
    let values = values.with_defaults(&problem.definition.keys);
    Ok(problem::Spec::Custom(CustomProblemSettings { problem: problem.clone(), values }))
}

/// Reads the entry of an algorithm at a path, `algorithm.<kind>.<number>`, from a tree that fits its schema. The kind
/// may be defined in Python or registered in Rust.
pub fn algorithm(
    path: &str,
    tree: Value,
    schema: &ManifestSchema,
) -> Result<algorithm::Spec, TreeError> {
    let kind = path.split('.').nth(1).unwrap_or_default();
    let Some(algorithm) = schema.registry.algorithms.get(kind).cloned() else {
        return from_tree(Value::Table(Table::from_iter([(kind.to_owned(), tree)])));
    };
    let Flattened { common, own } = from_tree::<Flattened<AlgorithmKeys, OwnKeys>>(tree)?;
    let OwnKeys { local_steps, values } = own;
    let values = values.with_defaults(&algorithm.known.definition.keys);
    let own = CustomAlgorithmSettings { algorithm, local_steps, values };
    Ok(algorithm::Spec::Custom(Flattened { common, own }))
}

/// The keys of an algorithm that is defined outside of the program.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OwnKeys {
    local_steps: Option<u64>,
    #[serde(flatten)]
    values: KeyValues,
}
