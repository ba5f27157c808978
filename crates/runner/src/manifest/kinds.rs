//! The tables of problems and algorithms, also of those that are defined outside of the program.

use super::Manifest;
use super::schema::ManifestSchema;
use exactfed_core::algorithm::custom::{
    CustomAlgorithm, CustomAlgorithmSettings, CustomDefinition,
};
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

/// All algorithms of a manifest: `[[algorithm.<kind>]]`.
#[derive(Clone, Debug, Default)]
pub struct AlgorithmTables {
    entries: Vec<AlgorithmEntry>,
    /// The kinds that are defined outside of the program, in the order of the text.
    custom: Vec<CustomDefinition>,
}

/// An algorithm's entry in the manifest.
#[derive(Clone, Debug)]
pub struct AlgorithmEntry {
    /// Its path: `algorithm.<kind>.<number>`.
    pub path: String,
    /// Its settings at the first value of every axis.
    pub spec: algorithm::Spec,
}

impl AlgorithmTables {
    /// Every entry, kind by kind in the order of the built-in ones.
    pub fn entries(&self) -> &[AlgorithmEntry] {
        &self.entries
    }

    /// The place of a kind among those of the manifest that are defined outside of the program.
    pub fn custom_place(&self, kind: &str) -> Option<usize> {
        self.custom.iter().position(|own| own.definition.kind == kind)
    }

    fn read(tree: Value, schema: &ManifestSchema) -> Result<Self, String> {
        let mut kinds: Vec<(String, Value)> = from_tree::<Table>(tree)?.into_iter().collect();
        let built_in = algorithm::Spec::KINDS;
        kinds
            .sort_by_key(|(kind, _)| built_in.iter().position(|k| k == kind).unwrap_or(usize::MAX));
        let mut all = Self::default();
        for (kind, entries) in kinds {
            if let Some(own) = schema.registry.algorithms.get(&kind) {
                all.custom.push(own.known.clone());
            }
            for (i, entry) in from_tree::<Vec<Value>>(entries)?.into_iter().enumerate() {
                let path = format!("algorithm.{kind}.{i}");
                let spec = algorithm(&path, entry, schema)?;
                all.entries.push(AlgorithmEntry { path, spec });
            }
        }
        Ok(all)
    }
}

impl Manifest {
    /// The definitions of the algorithms that are defined outside of the program, also of those of
    /// frontiers.
    pub fn definitions(&self) -> Vec<CustomDefinition> {
        let mut all = self.algorithm.custom.clone();
        for own in self.frontier.iter().flat_map(|frontier| &frontier.own) {
            if !all.contains(&own.known) {
                all.push(own.known.clone());
            }
        }
        all
    }
}

/// From the kinds of the one algorithm that [`algorithm::Spec`] is.
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
    let algorithms = algorithms.map(|tree| AlgorithmTables::read(tree, schema)).transpose()?;
    manifest.algorithm = algorithms.unwrap_or_default();
    for frontier in &mut manifest.frontier {
        for own in frontier.algorithms.iter().filter(|algorithm| algorithm.is_own()) {
            if let Some(algorithm) = schema.registry.algorithms.get(own.name()) {
                own.call(&algorithm.known.definition.name);
                frontier.own.push(algorithm.clone());
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
