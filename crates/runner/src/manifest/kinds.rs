//! Manifests whose algorithms and problems may be defined outside of the program.

use super::entries::{self, TreeError, from_tree};
use super::schema::ManifestSchema;
use super::{Manifest, searched};
use exactfed_core::algorithm;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;
use std::borrow::Cow;
use toml::{Table, Value};

/// An algorithm's entry in the manifest.
#[derive(Clone, Debug)]
pub struct AlgorithmEntry {
    /// Its path: `algorithm.<kind>.<number>`.
    pub path: String,
    /// Its settings at the first value of every axis.
    pub spec: algorithm::Spec,
}

/// The schema of all algorithms of a manifest, a list of entries for each kind. It is made from the schema of
/// [`algorithm::Spec`], which is a choice of one entry of one kind.
pub struct AlgorithmTables;

impl JsonSchema for AlgorithmTables {
    fn schema_name() -> Cow<'static, str> {
        "AlgorithmTables".into()
    }

    /// A table with an array of entries for each kind, from the choices of the schema of one entry. Manifests are read
    /// by it (`ManifestSchema`), so that what it allows, manifests may say; docs/MANIFEST.md and the JSON Schema for
    /// editors are made from it as well.
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

/// Reads a manifest from a tree that fits its schema. Problem and algorithms are read apart, because their kinds may
/// be registered. Algorithms are in the order of the built-in kinds, custom ones after them, and have their
/// definitions listed. The algorithms of frontiers are made too; what is wrong with these is no error here, but noted
/// in each frontier for the checks of the plan.
pub fn manifest(tree: Value, schema: &ManifestSchema) -> Result<Manifest, TreeError> {
    let mut tree = from_tree::<Table>(tree)?;
    let problem = tree.remove("problem");
    let algorithms = tree.remove("algorithm");
    let mut manifest: Manifest = from_tree(Value::Table(tree))?;
    for metric in &manifest.record.metrics {
        manifest.record.own.extend(schema.registry.metrics.get(metric.name()).cloned());
    }
    manifest.problem = problem.map(|tree| entries::problem(tree, schema)).transpose()?;
    if let Some(problem) = &manifest.problem {
        // Where θ* is not known, the manifest is one that leaves it out.
        manifest.record.optimum &= problem.has_optimum();
    }
    let mut kinds: Vec<(String, Value)> =
        algorithms.map_or(Ok(Table::new()), from_tree)?.into_iter().collect();
    let built_in = algorithm::Spec::KINDS;
    kinds.sort_by_key(|(kind, _)| built_in.iter().position(|k| k == kind).unwrap_or(usize::MAX));
    for (kind, entries) in kinds {
        let own = schema.registry.algorithms.get(&kind);
        manifest.definitions.extend(own.map(|own| own.known.clone()));
        for (i, entry) in from_tree::<Vec<Value>>(entries)?.into_iter().enumerate() {
            let path = format!("algorithm.{kind}.{i}");
            let spec = entries::algorithm(&path, entry, schema)?;
            manifest.algorithm.push(AlgorithmEntry { path, spec });
        }
    }
    for frontier in &mut manifest.frontier {
        (frontier.algorithms, frontier.faults) = searched::read_all(&frontier.written, schema);
        for written in &frontier.written {
            let own = schema.registry.algorithms.get(written.name());
            if let Some(own) = own.filter(|own| !manifest.definitions.contains(&own.known)) {
                manifest.definitions.push(own.known.clone());
            }
        }
    }
    Ok(manifest)
}
