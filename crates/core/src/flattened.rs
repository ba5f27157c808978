//! Two structs whose keys stand in one table: what serde calls `flatten`.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

/// One table of a manifest with the keys of two structs. The fields of `own` are read as if they were its own fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flattened<C, T> {
    /// The keys that other tables have too.
    #[serde(flatten)]
    pub common: C,
    /// The keys that only tables of this kind have.
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

    /// The schema of a table with the keys of both structs, under the description of `T`.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        #[derive(JsonSchema)]
        struct Both<C, T> {
            #[serde(flatten)]
            _common: C,
            #[serde(flatten)]
            _own: T,
        }
        let mut both = Both::<C, T>::json_schema(generator);
        if let Some(text) = T::json_schema(generator).get("description") {
            both.insert("description".into(), text.clone());
        }
        both
    }
}
