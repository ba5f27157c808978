//! The tables of problems and algorithms, also of those that are defined outside of the program.

use super::Manifest;
use super::schema::ManifestSchema;
use exactfed_core::algorithm::custom::{CustomAlgorithm, CustomAlgorithmSettings};
use exactfed_core::algorithm::{self, AlgorithmKeys};
use exactfed_core::definition::KeyValues;
use exactfed_core::flattened::Flattened;
use exactfed_core::problem;
use exactfed_core::problem::custom::CustomProblemSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use toml::{Table, Value};

/// An algorithm's entry in the manifest.
#[derive(Clone, Debug)]
pub struct AlgorithmEntry {
    /// Its path: `algorithm.<kind>.<number>`.
    pub path: String,
    /// Its settings at the first value of every axis.
    pub spec: algorithm::Spec,
}

/// All algorithms of a manifest, of which the schema is made from the kinds of the one algorithm
/// that [`algorithm::Spec`] is.
pub struct AlgorithmTables;

impl JsonSchema for AlgorithmTables {
    fn schema_name() -> Cow<'static, str> {
        "AlgorithmTables".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = algorithm::Spec::json_schema(generator).to_value();
        let mut kinds = serde_json::Map::new();
        for choice in one["oneOf"].as_array().into_iter().flatten() {
            for (kind, entry) in choice["properties"].as_object().into_iter().flatten() {
                let entries = json!({ "description": choice["description"], "type": "array", "items": entry });
                kinds.insert(kind.clone(), entries);
            }
        }
        schemars::json_schema!({
            "description": "All algorithms of a manifest, by kind: `[[algorithm.<kind>]]`.",
            "type": "object",
            "properties": kinds,
        })
    }
}

/// Reads a type from a tree that fits its schema.
///
/// # Errors
/// What its schema does not say.
pub fn from_tree<T: DeserializeOwned>(tree: Value) -> Result<T, String> {
    T::deserialize(tree).map_err(|e| e.message().to_owned())
}

/// Reads a manifest from a tree that fits its schema.
pub fn manifest(tree: Value, schema: &ManifestSchema) -> Result<Manifest, String> {
    let mut tree = from_tree::<Table>(tree)?;
    let (problem, algorithms) = (tree.remove("problem"), tree.remove("algorithm"));
    let mut manifest: Manifest = from_tree(Value::Table(tree))?;
    manifest.problem = problem.map(|tree| self::problem(tree, schema)).transpose()?;
    let mut kinds: Vec<(String, Value)> =
        algorithms.map_or(Ok(Table::new()), from_tree)?.into_iter().collect();
    let built_in = algorithm::Spec::KINDS;
    kinds.sort_by_key(|(kind, _)| built_in.iter().position(|k| k == kind).unwrap_or(usize::MAX));
    for (kind, entries) in kinds {
        let own = schema.registry.algorithms.get(&kind);
        manifest.definitions.extend(own.map(|own| own.known.clone()));
        for (i, entry) in from_tree::<Vec<Value>>(entries)?.into_iter().enumerate() {
            let path = format!("algorithm.{kind}.{i}");
            let spec = algorithm(&path, entry, schema)?;
            manifest.algorithm.push(AlgorithmEntry { path, spec });
        }
    }
    for frontier in &mut manifest.frontier {
        for own in frontier.algorithms.iter().filter(|algorithm| algorithm.is_own()) {
            if let Some(algorithm) = schema.registry.algorithms.get(own.name()) {
                own.call(&algorithm.known.definition.name);
                frontier.own.push(algorithm.clone());
                if !manifest.definitions.contains(&algorithm.known) {
                    manifest.definitions.push(algorithm.known.clone());
                }
            }
        }
    }
    Ok(manifest)
}

/// Reads `[problem.<kind>]` from a tree that fits its schema.
pub fn problem(tree: Value, schema: &ManifestSchema) -> Result<problem::Spec, String> {
    let own = tree.as_table().and_then(|table| table.iter().next());
    let own = own.and_then(|(kind, values)| Some((schema.registry.problems.get(kind)?, values)));
    let Some((problem, values)) = own else { return from_tree(tree) };
    let values: KeyValues = from_tree(values.clone())?;
    let values = values.with_defaults(&problem.definition.keys);
    Ok(problem::Spec::Custom(CustomProblemSettings { problem: problem.clone(), values }))
}

/// Reads the entry at a path, `algorithm.<kind>.<number>`, from a tree that fits its schema.
pub fn algorithm(
    path: &str,
    tree: Value,
    schema: &ManifestSchema,
) -> Result<algorithm::Spec, String> {
    let kind = path.split('.').nth(1).unwrap_or_default();
    let Some(algorithm) = schema.registry.algorithms.get(kind).cloned() else {
        return from_tree(Value::Table(Table::from_iter([(kind.to_owned(), tree)])));
    };
    own_algorithm(algorithm, tree)
}

/// Reads an entry of an algorithm that is defined outside of the program.
///
/// # Errors
/// What is wrong with it.
pub fn own_algorithm(
    algorithm: Arc<CustomAlgorithm>,
    tree: Value,
) -> Result<algorithm::Spec, String> {
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
