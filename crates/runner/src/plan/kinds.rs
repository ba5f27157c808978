//! The tables of claims and figures. The evidence defines their kinds and gives them with a manifest
//! that is planned; without them these tables are left unread, since they change no number.

use super::checker::Checker;
use crate::manifest::claim::ClaimKeys;
use crate::manifest::entries::{TreeError, from_tree};
use crate::manifest::figure::FigureKeys;
use crate::manifest::{Manifest, Quantity, reference, schema};
use exactfed_core::flattened::Flattened;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use toml::{Table, Value};

/// The kinds of claims and figures that manifests may have.
pub struct EvidenceKinds {
    /// `[[claim.<kind>]]`, in the order in which claims are tested.
    pub claims: &'static [TableKind<ClaimKeys>],
    /// `[[figure.<kind>]]`; the first is that of the figure of a manifest without figures, and has
    /// defaults for all keys.
    pub figures: &'static [TableKind<FigureKeys>],
    /// The schema of a manifest with these kinds, once it is known.
    schema: OnceLock<serde_json::Value>,
}

impl EvidenceKinds {
    /// The kinds of these tables, of claims and of figures.
    pub const fn new(
        claims: &'static [TableKind<ClaimKeys>],
        figures: &'static [TableKind<FigureKeys>],
    ) -> Self {
        Self { claims, figures, schema: OnceLock::new() }
    }

    /// Whether there are no kinds, so that claims and figures are left unread ([`UNREAD`]).
    pub(super) fn is_none(&self) -> bool {
        self.claims.is_empty() && self.figures.is_empty()
    }

    /// The schema of the types of a manifest with these kinds, in which no setting is an axis.
    pub fn schema(&self) -> &serde_json::Value {
        self.schema.get_or_init(|| {
            let mut generator = SchemaGenerator::default();
            let mut schema = generator.root_schema_for::<Manifest>().to_value();
            if !self.is_none() {
                let figures = tables(&mut generator, self.figures);
                let claims = tables(&mut generator, self.claims);
                for (name, definition) in generator.definitions() {
                    schema["$defs"][name] = definition.clone();
                }
                schema["$defs"]["FigureTables"] = figures;
                schema["$defs"]["ClaimTables"] = claims;
            }
            schema::tidy(&mut schema);
            schema
        })
    }

    /// The JSON Schema of a manifest.
    pub fn json_schema(&self) -> serde_json::Value {
        schema::json_schema(self.schema())
    }

    /// The text of docs/MANIFEST.md, the reference of all keys.
    pub fn reference(&self) -> String {
        reference::markdown(self.schema())
    }
}

/// No kinds of claims and figures: their tables are left unread, for callers that only need cells.
pub static UNREAD: EvidenceKinds = EvidenceKinds::new(&[], &[]);

/// The schema of a table with an array of tables for each kind.
fn tables<C>(generator: &mut SchemaGenerator, kinds: &[TableKind<C>]) -> serde_json::Value {
    let arrays: serde_json::Map<_, _> = kinds
        .iter()
        .map(|kind| {
            let items = (kind.schema)(generator);
            let text = kind.description;
            let array = json!({ "type": "array", "items": items, "description": text });
            (kind.name.to_owned(), array)
        })
        .collect();
    json!({ "type": "object", "properties": arrays })
}

/// Reads a table of a kind from a tree that fits its schema.
type ReadTable<C> = fn(Value) -> Result<Arc<dyn AnyTable<C>>, TreeError>;

/// A kind of table, all kinds of which have the keys `C`.
pub struct TableKind<C: 'static> {
    /// Its name in manifests.
    pub name: &'static str,
    /// What its tables are, in a sentence.
    pub description: &'static str,
    /// The key whose default is the quantity by which the manifest compares runs, if it has one.
    default_quantity_key: Option<&'static str>,
    /// The schema of one table.
    schema: fn(&mut SchemaGenerator) -> Schema,
    read: ReadTable<C>,
}

impl<C: CommonKeys> TableKind<C> {
    /// The kind whose tables have the keys `K` beside the keys of all kinds.
    pub const fn of<K: KindKeys<C>>(name: &'static str, description: &'static str) -> Self {
        /// Reads a table with the keys `K`, and forgets which kind it is of.
        fn read<C: CommonKeys, K: KindKeys<C>>(
            tree: Value,
        ) -> Result<Arc<dyn AnyTable<C>>, TreeError> {
            Ok(Arc::new(from_tree::<Flattened<C, K>>(tree)?))
        }
        let schema = SchemaGenerator::subschema_for::<Flattened<C, K>>;
        let default_quantity_key = K::DEFAULT_QUANTITY_KEY;
        Self { name, description, default_quantity_key, schema, read: read::<C, K> }
    }
}

/// The keys that all kinds of a table have.
pub trait CommonKeys: DeserializeOwned + JsonSchema + fmt::Debug + Send + Sync + 'static {
    /// Adds keys that a table does not have, from the name of its kind and its number among the tables of this kind.
    fn complete(_: &mut Table, _: &str, _: usize) {}
}

impl CommonKeys for ClaimKeys {}

impl CommonKeys for FigureKeys {
    /// Gives a figure without an id its default, so that a figure is known by its id from the
    /// manifest to its file.
    fn complete(table: &mut Table, kind: &str, i: usize) {
        let number = if i == 0 { String::new() } else { format!("-{}", i + 1) };
        table.entry("id").or_insert_with(|| Value::String(format!("{kind}{number}")));
    }
}

/// The keys that one kind of a table has.
pub trait KindKeys<C>: DeserializeOwned + JsonSchema + fmt::Debug + Send + Sync + 'static {
    /// The key whose default is the quantity by which the manifest compares runs
    /// ([`Record::default_quantity`](crate::manifest::Record::default_quantity)), if it has one.
    const DEFAULT_QUANTITY_KEY: Option<&'static str> = None;

    /// Notes what is wrong with a table, beyond its common keys.
    fn check(table: &Flattened<C, Self>, checker: &mut Checker<'_>)
    where
        Self: Sized;

    /// The file that a table names in addition to those of the problem, if it names one: its key, and its path
    /// relative to the manifest's folder. The plan reads it ([`NamedFiles`](super::NamedFiles)), so that tables do no
    /// I/O.
    fn file(_: &Flattened<C, Self>) -> Option<(&'static str, &str)>
    where
        Self: Sized,
    {
        None
    }
}

/// A table of any kind, behind a pointer: what plans need of it without knowing its kind.
trait AnyTable<C>: Any + fmt::Debug + Send + Sync {
    fn common(&self) -> &C;
    fn check(&self, checker: &mut Checker<'_>);
    fn file(&self) -> Option<(&'static str, &str)>;
}

impl<C: CommonKeys, K: KindKeys<C>> AnyTable<C> for Flattened<C, K> {
    fn common(&self) -> &C {
        &self.common
    }

    fn check(&self, checker: &mut Checker<'_>) {
        K::check(self, checker);
    }

    fn file(&self) -> Option<(&'static str, &str)> {
        K::file(self)
    }
}

/// A table of a manifest.
#[derive(Clone, Debug)]
pub struct KindTable<C: 'static> {
    /// The name of its kind.
    pub kind: &'static str,
    /// Its path: `claim.<kind>.<number>`.
    pub path: String,
    table: Arc<dyn AnyTable<C>>,
}

impl<C: CommonKeys> KindTable<C> {
    /// The keys that all kinds have.
    pub fn common(&self) -> &C {
        self.table.common()
    }

    /// All keys of the table, read as the kind with the keys `K`.
    ///
    /// # Panics
    /// If the table is of a kind with other keys.
    pub fn keys<K: KindKeys<C>>(&self) -> &Flattened<C, K> {
        let table: &dyn Any = &*self.table;
        table.downcast_ref().expect("a table is of the kind that it was read as")
    }

    /// Notes what is wrong with it, beyond its common keys.
    pub fn check(&self, checker: &mut Checker<'_>) {
        checker.table(&self.path, |checker| self.table.check(checker));
    }

    /// The file that the table names in addition to those of the problem: the place of its key, and its path; `None`
    /// if it names none.
    pub fn file(&self) -> Option<(String, &str)> {
        let (key, path) = self.table.file()?;
        Some((format!("{}.{key}", self.path), path))
    }

    /// Reads all tables of a sort (`claim` or `figure`), kind by kind, from a tree that fits the schema of these kinds.
    /// `quantity` is the one by which the manifest compares runs; it is the default of a key that some kinds have.
    pub(super) fn read(
        sort: &str,
        kinds: &[TableKind<C>],
        mut tree: Table,
        quantity: Quantity,
    ) -> Result<Vec<Self>, TreeError> {
        let mut tables = Vec::new();
        for TableKind { name, read, default_quantity_key, .. } in kinds {
            let own = tree.remove(*name).map_or(Ok(Vec::new()), from_tree::<Vec<Table>>)?;
            for (i, mut table) in own.into_iter().enumerate() {
                C::complete(&mut table, name, i);
                if let Some(key) = default_quantity_key {
                    table.entry(*key).or_insert_with(|| quantity.name().into());
                }
                let path = format!("{sort}.{name}.{i}");
                tables.push(Self { kind: name, path, table: read(Value::Table(table))? });
            }
        }
        Ok(tables)
    }
}
