//! Two structs whose keys stand in one table: what serde calls `flatten`.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

/// A table with the keys of two structs. The keys of its own are reached as fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flattened<C, T> {
    /// The keys that it shares with other tables.
    #[serde(flatten)]
    pub common: C,
    /// The keys of its own.
    #[serde(flatten)]
    pub own: T,
}

impl<C, T> Deref for Flattened<C, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.own
    }
}

impl<C, T> DerefMut for Flattened<C, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.own
    }
}

impl<C: JsonSchema, T: JsonSchema> JsonSchema for Flattened<C, T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}+{}", C::schema_id(), T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        #[derive(JsonSchema)]
        struct Both<C, T> {
            #[serde(flatten)]
            _common: C,
            #[serde(flatten)]
            _own: T,
        }
        let mut both = Both::<C, T>::json_schema(generator);
        // The description of the table is that of `T`.
        if let Some(text) = T::json_schema(generator).get("description") {
            both.insert("description".into(), text.clone());
        }
        both
    }
}
