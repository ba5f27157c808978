//! Reads a manifest from its tree by the schema of its types, and collects every error instead of
//! stopping at the first.
//!
//! Where the schema asks for one value and the tree holds an array, the array is an axis of the
//! grid: the reader notes it and continues with the value that the current [`Choice`] selects, so
//! that any setting may be an array by construction. What it returns fits the types, which serde
//! then reads without places in the text.

mod choices;

use super::axis::{Choice, GridAxis, may_vary};
use super::document::{Diagnostic, KeyValue, Node, Value, below};
use super::entries::TreeError;
use super::schema::{COMPRESSOR, ManifestSchema, UNBIASED_COMPRESSOR, has_free_keys};
use super::{Manifest, kinds};
use choices::variants;
use exactfed_core::compression::{Compressor, CompressorError};
use serde_json::Value as Schema;
use toml::{Table, Value as Toml};

/// The table whose keys are kinds of algorithms.
const ALGORITHM: &str = "algorithm";
/// The choice for which a number alone stands: `test = 0.2` is short for
/// `test = { fraction = 0.2 }`.
const FRACTION: &str = "fraction";
/// The choice for which a list of numbers alone stands: `weights = [0.4, 0.3, 0.3]` is short for
/// `weights = { given = [0.4, 0.3, 0.3] }`.
const GIVEN: &str = "given";
/// The choice for which a table of numbers alone stands: `class-weights = { yes = 5.0 }` is short for
/// `class-weights = { labels = { yes = 5.0 } }`.
const LABELS: &str = "labels";
/// The kinds of the algorithms that `exactfed.algorithms` defines.
pub const SHIPPED: [&str; 24] = [
    "client-momentum",
    "compressed-scaffnew",
    "delayed",
    "diana",
    "ef21",
    "fedac",
    "fedavgm",
    "fedbuff",
    "feddyn",
    "fedexp",
    "fedfista",
    "fednesterov",
    "gossip",
    "gradient-tracking",
    "marina",
    "masked",
    "mimelite",
    "private",
    "scaffold-momentum",
    "storm",
    "svrg",
    "svrg-anchor",
    "topk",
    "vr-proxskip",
];
/// What messages call the values of keys that take whole numbers.
const WHOLE: &str = "a whole number, 0 or more";
/// What messages call the values of keys that take a number of clients or a fraction of all clients.
const WHOLE_OR_FRACTION: &str = "a whole number, or a fraction of all";
/// What messages call the values of keys that take any number.
const NUMBER: &str = "a number";

/// The integers that a key takes whose values messages call `what`, for the message that one is out of range; `None` if
/// it takes no integers.
fn allowed_integers(what: &str) -> Option<String> {
    let most = i64::MAX;
    match what {
        WHOLE => Some(format!("0 to {most}")),
        WHOLE_OR_FRACTION => Some(format!("0 to {most}, or a fraction")),
        NUMBER => Some(format!(
            "integers from {} to {most}, and numbers with point or exponent",
            i64::MIN
        )),
        _ => None,
    }
}

/// Reads the manifest at the first value of every axis, and finds all axes, also those inside
/// one value of another. Every other value is read once too.
///
/// `is_tune_read` says that a `[tune]` was read and its candidates are in the tree. Without it, a table that is wrong
/// or unknown may be meant as `[tune]`, which provides keys of algorithms. That algorithms lack keys then follows from
/// the other mistake, and is not noted.
///
/// # Errors
/// Every diagnostic that any value of any axis shows.
pub fn read(
    root: &Node,
    schema: &ManifestSchema,
    is_tune_read: bool,
) -> Result<(Manifest, Vec<GridAxis>), Vec<Diagnostic>> {
    let may_lack_keys = !is_tune_read
        && !root.keys().all(|key| key != "tune" && schema.root["properties"].get(key).is_some());
    let choice = None;
    let found = Vec::new();
    let axes = Vec::new();
    let mut reader = Reader { schema, choice, may_lack_keys, found, axes };
    let tree = reader.read_value(&schema.root, root, "");
    reader.finish("", tree, |tree| kinds::manifest(tree, schema))
}

/// Reads one table, which stands at this path, at the values of the axes that a choice selects. Returns what `read`
/// makes of it, and the axes that were met on the way. The path is one that the schema has ([`ManifestSchema::at`]): a
/// key of the top level, or the entry of an algorithm.
///
/// # Errors
/// All that is wrong with the table.
pub fn read_at<T>(
    node: &Node,
    path: &str,
    choice: &Choice,
    schema: &ManifestSchema,
    read: impl FnOnce(Toml) -> Result<T, TreeError>,
) -> Result<(T, Vec<GridAxis>), Vec<Diagnostic>> {
    let found = Vec::new();
    let axes = Vec::new();
    let mut reader = Reader { schema, choice: Some(choice), may_lack_keys: false, found, axes };
    let tree = schema.at(path).and_then(|schema| reader.read_value(schema, node, path));
    reader.finish(path, tree, read)
}

/// Checks the tree of a manifest by its schema, and takes one value of each axis.
struct Reader<'a> {
    schema: &'a ManifestSchema,
    /// The values that are taken of the axes; without a choice all values of an axis are checked, and the first is
    /// taken.
    choice: Option<&'a Choice>,
    /// Whether nothing is noted of keys that algorithms lack, since a `[tune]` that is not known may provide them.
    may_lack_keys: bool,
    /// What is wrong, in the order in which it was found.
    found: Vec<Diagnostic>,
    /// The axes that were met.
    axes: Vec<GridAxis>,
}

impl<'a> Reader<'a> {
    /// Ends the reading: returns what `read` makes of the tree with the axes that were met, or everything that is
    /// wrong. An error of `read` has no place in the text, and names the path.
    fn finish<T>(
        self,
        path: &str,
        tree: Option<Toml>,
        read: impl FnOnce(Toml) -> Result<T, TreeError>,
    ) -> Result<(T, Vec<GridAxis>), Vec<Diagnostic>> {
        let mut found = self.found;
        match tree.filter(|_| found.is_empty()).map(read) {
            Some(Ok(value)) => return Ok((value, self.axes)),
            Some(Err(error)) => found.push(Diagnostic::new(None, path, error.to_string())),
            // The schema leaves the value unread, or has nothing at the path.
            None if found.is_empty() => {
                found.push(Diagnostic::new(None, "", "the manifest cannot be read"));
            }
            None => {}
        }
        Err(found)
    }

    /// Notes a fault, and returns `None`, which is what methods return of a value that is wrong.
    fn note(&mut self, diagnostic: Diagnostic) -> Option<Toml> {
        self.found.push(diagnostic);
        None
    }

    /// Notes a fault at the place of a node, and returns `None`.
    fn note_at(&mut self, node: &Node, path: &str, message: impl Into<String>) -> Option<Toml> {
        self.note(Diagnostic::new(Some(node.place.clone()), path, message))
    }

    /// Notes that a node is not what it should be, which is `what` in words, and returns `None`. The message also says
    /// what the node is, or that its integer is too large.
    fn note_unexpected(&mut self, node: &Node, path: &str, what: &str) -> Option<Toml> {
        if let (Value::LongInteger { is_negative }, Some(allowed)) =
            (&node.value, allowed_integers(what))
        {
            let size = if *is_negative { "small" } else { "large" };
            let message = format!("expected {what}: this is too {size}");
            let diagnostic = Diagnostic::new(Some(node.place.clone()), path, message);
            return self.note(diagnostic.allowing(allowed));
        }
        let found = match &node.value {
            Value::String(text) => format!("the string {text:?}"),
            Value::Integer(value) => format!("{value}"),
            Value::Float(value) if value.fract() == 0.0 && what == WHOLE => {
                format!("a number with point or exponent: write {value}")
            }
            Value::Float(value) => format!("{value}"),
            Value::Boolean(value) => format!("{value}"),
            other => other.kind().to_owned(),
        };
        self.note_at(node, path, format!("expected {what}, not {found}"))
    }

    /// The value of a node that fits the schema, with one value of each axis within. `None` if it does not fit, which
    /// is noted, or if its schema says that it is left unread.
    fn read_value(&mut self, schema: &'a Schema, node: &Node, path: &str) -> Option<Toml> {
        let schema = self.schema.resolve(schema);
        // Where settings may vary, `anyOf` is a number of clients or a fraction of them, which `read_single` reads;
        // elsewhere it is a value of one of several types.
        if let Some(kinds) = schema["anyOf"].as_array().filter(|_| !may_vary(path)) {
            return self.read_any_of(kinds, node, path);
        }
        match &schema["type"] {
            // Only a value in a selection of cells may have one of several simple types.
            Schema::Array(_) => self.read_scalar(node, path),
            kind if kind == "array" => self.read_list(&schema["items"], node, path),
            _ if schema["unread"] == true => None,
            _ if has_free_keys(schema) => {
                let values = &schema["additionalProperties"];
                self.read_table(node, path, |_| Some(values))
            }
            _ => self.read_setting(schema, node, path),
        }
    }

    /// A setting that takes one value. Where an array is written, it is an axis, and the value is the one that the
    /// choice selects.
    fn read_setting(&mut self, schema: &'a Schema, node: &Node, path: &str) -> Option<Toml> {
        let Value::Array(items) = &node.value else { return self.read_single(schema, node, path) };
        if stands_for_numbers(schema, items) {
            return self.read_single(schema, node, path);
        }
        if !may_vary(path) {
            let message = "expected one value, not an array: this is not a grid axis";
            return self.note_at(node, path, message);
        }
        if items.is_empty() {
            return self.note_at(node, path, "an axis of the grid needs at least one value");
        }
        self.read_axis(items, node, path, |reader, item| match item.value {
            Value::Array(_) => reader.note_at(item, path, "the values of an axis cannot be arrays"),
            _ => reader.read_single(schema, item, path),
        })
    }

    /// Notes that a node is an axis with these items, one or more, and returns what `read` makes of the item that the
    /// choice selects. Without a choice all items are read, so that the faults of each are noted, and the first is
    /// returned.
    fn read_axis(
        &mut self,
        items: &[Node],
        node: &Node,
        path: &str,
        mut read: impl FnMut(&mut Self, &Node) -> Option<Toml>,
    ) -> Option<Toml> {
        self.axes.push(GridAxis { path: path.into(), len: items.len(), place: node.place.clone() });
        let Some(choice) = self.choice else {
            let mut all = items.iter().map(|item| read(self, item));
            let first = all.next().flatten();
            all.for_each(drop);
            return first;
        };
        let index = choice.get(path).copied().unwrap_or(0);
        read(self, &items[index.min(items.len() - 1)])
    }

    /// A single value by its schema: a choice among names, a number, a flag, a text or a table.
    fn read_single(&mut self, schema: &'a Schema, node: &Node, path: &str) -> Option<Toml> {
        let names = variants(schema);
        if !names.is_empty() {
            return self.read_variant(&names, node, path);
        }
        if let Some([one, other]) = schema["anyOf"].as_array().map(Vec::as_slice) {
            let whole = self.schema.resolve(one);
            let other = self.schema.resolve(other);
            // A number, or a multiple of a constant of the problem: a table of one key.
            let has_units = !variants(other).is_empty();
            let kind = match &node.value {
                Value::Table(_) if has_units => other,
                _ if has_units => whole,
                // Only the key `cohort` has another schema: a whole number of clients, or a fraction of all.
                Value::Integer(0..) => whole,
                Value::Float(_) => other,
                _ => return self.note_unexpected(node, path, WHOLE_OR_FRACTION),
            };
            return self.read_single(kind, node, path);
        }
        match (schema["type"].as_str().unwrap_or_default(), &node.value) {
            ("integer", Value::Integer(value)) if *value >= 0 => Some(Toml::Integer(*value)),
            ("integer", _) => self.note_unexpected(node, path, WHOLE),
            ("number", Value::Float(value)) => Some(Toml::Float(*value)),
            ("number", Value::Integer(value)) => Some(Toml::Float(*value as f64)),
            ("number", _) => self.note_unexpected(node, path, NUMBER),
            ("boolean", Value::Boolean(value)) => Some(Toml::Boolean(*value)),
            ("boolean", _) => self.note_unexpected(node, path, "true or false"),
            ("string", Value::String(text)) if schema["format"] == COMPRESSOR => {
                let must_be_unbiased = false;
                self.read_compressor(text, must_be_unbiased, node, path)
            }
            ("string", Value::String(text)) if schema["format"] == UNBIASED_COMPRESSOR => {
                let must_be_unbiased = true;
                self.read_compressor(text, must_be_unbiased, node, path)
            }
            ("string", Value::String(text)) => Some(Toml::String(text.clone())),
            ("string", _) => self.note_unexpected(node, path, "a string"),
            _ => {
                let keys = &schema["properties"];
                if let Value::Table(entries) = &node.value {
                    self.check_keys(schema, entries, node, path);
                }
                self.read_table(node, path, |key| keys.get(key))
            }
        }
    }

    /// The text of a compressor in its one form, so that cells with one compressor have one id.
    fn read_compressor(
        &mut self,
        text: &str,
        must_be_unbiased: bool,
        node: &Node,
        path: &str,
    ) -> Option<Toml> {
        let read =
            if must_be_unbiased { Compressor::unbiased_from_str(text) } else { text.parse() };
        match read {
            Ok(compressor) => Some(Toml::String(compressor.to_string())),
            Err(error) => {
                let place = Some(node.place.clone());
                let diagnostic = Diagnostic::new(place, path, error.to_string());
                self.note(diagnostic.allowing(CompressorError::allowed(must_be_unbiased)))
            }
        }
    }

    /// Notes every key of a table that is unknown, and every required key that is missing; of the tables of algorithms
    /// no missing key, where a `[tune]` that could not be read may provide it.
    fn check_keys(&mut self, schema: &Schema, entries: &[KeyValue], node: &Node, path: &str) {
        let keys: Vec<&str> = keys(schema).collect();
        for entry in entries.iter().filter(|entry| !keys.contains(&entry.key.as_str())) {
            let message = format!("unknown key `{}`", entry.key);
            let diagnostic =
                Diagnostic::new(Some(entry.place.clone()), &below(path, &entry.key), message);
            let mut diagnostic = diagnostic.naming(&entry.key, &keys);
            if path == ALGORITHM {
                let own = "and your own algorithms, where @exactfed.algorithm or `python = [\"file.py\"]` defines them";
                diagnostic.allowed = diagnostic.allowed.map(|names| format!("{names}, {own}"));
                if SHIPPED.contains(&entry.key.as_str()) {
                    let code =
                        "write python = [\"exactfed.algorithms\"], which defines it, at the top";
                    diagnostic.hint = Some(code.to_owned());
                }
            }
            self.note(diagnostic);
        }
        if self.may_lack_keys && path.starts_with("algorithm.") {
            return;
        }
        let required = schema["required"].as_array().into_iter().flatten();
        for key in required.filter_map(Schema::as_str).filter(|key| node.child(key).is_none()) {
            let whole = if path.is_empty() { "the manifest" } else { path };
            self.note_at(node, path, format!("{whole} lacks the key `{key}`"));
        }
    }

    /// The values of a table, each read by the schema of its key. A key that has no schema is left out;
    /// [`Self::check_keys`] notes it.
    fn read_table(
        &mut self,
        node: &Node,
        path: &str,
        schema_of: impl Fn(&str) -> Option<&'a Schema>,
    ) -> Option<Toml> {
        let Value::Table(entries) = &node.value else {
            return self.note_unexpected(node, path, "a table");
        };
        let mut table = Table::new();
        for entry in entries {
            let value = schema_of(&entry.key)
                .and_then(|schema| self.read_value(schema, &entry.node, &below(path, &entry.key)));
            table.extend(value.map(|value| (entry.key.clone(), value)));
        }
        Some(Toml::Table(table))
    }

    /// A list whose items have this schema. All items are read, also after a wrong one. Where settings may vary, a
    /// list of lists is an axis whose values are lists.
    fn read_list(&mut self, schema: &'a Schema, node: &Node, path: &str) -> Option<Toml> {
        let Value::Array(items) = &node.value else {
            if matches!(node.value, Value::Table(_)) {
                let message = format!("expected an array of tables: write [[{path}]]");
                return self.note_at(node, path, message);
            }
            return self.note_unexpected(node, path, "an array: write [ … ]");
        };
        if may_vary(path) && items.is_empty() {
            return self.note_at(node, path, "an empty list has no meaning: leave the key out");
        }
        if may_vary(path) && items.iter().any(is_array) {
            return self.read_axis(items, node, path, |reader, item| match &item.value {
                Value::Array(inner) if inner.iter().any(is_array) => {
                    reader.note_at(item, path, "the values of an axis cannot be lists of lists")
                }
                Value::Array(_) => reader.read_list(schema, item, path),
                _ => reader.note_unexpected(item, path, "a list, as the others of this axis are"),
            });
        }
        let items = items
            .iter()
            .enumerate()
            .map(|(i, item)| self.read_value(schema, item, &below(path, &i.to_string())));
        // Collecting options directly would stop at the first wrong item.
        let items: Vec<Option<Toml>> = items.collect();
        items.into_iter().collect::<Option<Vec<Toml>>>().map(Toml::Array)
    }

    /// A value in a selection of cells ([`Scalar`](super::claim::Scalar)): a number, a string, true or false, or a
    /// list of them. A flag becomes the text `true` or `false`, as the settings of cells have it.
    fn read_scalar(&mut self, node: &Node, path: &str) -> Option<Toml> {
        match &node.value {
            Value::String(text) => Some(Toml::String(text.clone())),
            Value::Boolean(value) => Some(Toml::String(value.to_string())),
            Value::Float(value) => Some(Toml::Float(*value)),
            Value::Integer(value) => Some(Toml::Float(*value as f64)),
            Value::LongInteger { .. } => self.note_unexpected(node, path, NUMBER),
            Value::Array(items) => {
                let items: Vec<Option<Toml>> = items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| self.read_scalar(item, &below(path, &i.to_string())))
                    .collect();
                items.into_iter().collect::<Option<Vec<Toml>>>().map(Toml::Array)
            }
            Value::Table(_) | Value::Datetime => self.note_unexpected(
                node,
                path,
                "a number, a string, true or false, or a list of them",
            ),
        }
    }
}

/// Whether an array with these items is no axis, but short for the choice [`GIVEN`] of the schema, which has a list of
/// numbers.
fn stands_for_numbers(schema: &Schema, items: &[Node]) -> bool {
    let are_numbers = items.iter().all(|item| {
        matches!(item.value, Value::Integer(_) | Value::LongInteger { .. } | Value::Float(_))
    });
    are_numbers && !items.is_empty() && variants(schema).iter().any(|(name, _)| *name == GIVEN)
}

/// The keys of a table, in their order.
fn keys(schema: &Schema) -> impl Iterator<Item = &str> {
    schema["properties"].as_object().into_iter().flat_map(|all| all.keys().map(String::as_str))
}

fn is_array(node: &Node) -> bool {
    matches!(node.value, Value::Array(_))
}
