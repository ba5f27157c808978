//! Two structs whose keys stand in one table: what serde calls `flatten`.
//!
//! serde's own `flatten` copies a table before it reads it, so that values lose their places in
//! the text and unknown keys pass. Here each struct is read from the table itself by a
//! deserializer that knows the name [`FLATTENED`], which then also refuses keys that neither
//! struct has.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// The name of the tuple struct that [`Flattened`] asks a deserializer for: its elements are
/// all read from one table.
pub const FLATTENED: &str = "exactfed::Flattened";

/// A table with the keys of two structs. The keys of its own are reached as fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flattened<C, T> {
    /// The keys that it shares with other tables.
    pub common: C,
    /// The keys of its own.
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

/// How the two are written, and their schema: for these serde's `flatten` does.
#[derive(Serialize, JsonSchema)]
struct Both<'a, C, T> {
    #[serde(flatten)]
    common: &'a C,
    #[serde(flatten)]
    own: &'a T,
}

impl<C: Serialize, T: Serialize> Serialize for Flattened<C, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Both { common: &self.common, own: &self.own }.serialize(to)
    }
}

impl<'de, C: Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for Flattened<C, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_tuple_struct(FLATTENED, 2, FlattenedParts(PhantomData))
    }
}

struct FlattenedParts<C, T>(PhantomData<(C, T)>);

impl<'de, C: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for FlattenedParts<C, T> {
    type Value = Flattened<C, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one table, twice")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        // The second part is read even if the first is wrong, so that the mistakes of both are
        // reported at once.
        let (common, own) = (parts.next_element(), parts.next_element());
        let missing = || A::Error::custom("a table has two parts");
        Ok(Flattened { common: common?.ok_or_else(missing)?, own: own?.ok_or_else(missing)? })
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
        let mut both = Both::<C, T>::json_schema(generator);
        // The description is that of the table, which its own struct has.
        if let Some(text) = T::json_schema(generator).get("description") {
            both.insert("description".into(), text.clone());
        }
        both
    }
}
