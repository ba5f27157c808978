//! A node of the tree as a serde deserializer, which notes what is wrong and where,
//! and takes one value of each axis.

use super::axis::{GridAxis, may_vary};
use super::document::{Diagnostic, KeyValue, Node, Value};
use super::pass::{ReadError, ReadPass};
use exactfed_core::flattened::FLATTENED;
use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor,
};
use std::cell::RefCell;
use std::rc::Rc;

/// The table whose keys are kinds of algorithms.
const ALGORITHM: &str = "algorithm";
/// The choice for which a number alone stands.
const FRACTION: &str = "fraction";

/// A node that is read into a type.
#[derive(Clone)]
pub struct NodeDeserializer<'a> {
    node: &'a Node,
    path: String,
    context: &'a ReadPass<'a>,
    /// The keys of all structs that are read from this one table, if there are several.
    keys: Option<Rc<RefCell<Vec<&'static str>>>>,
}

impl<'a> NodeDeserializer<'a> {
    /// The node at a path; the root has the empty path.
    pub fn new(node: &'a Node, path: &str, context: &'a ReadPass<'a>) -> Self {
        Self { node, path: path.to_owned(), context, keys: None }
    }

    fn child(&self, key: &str, node: &'a Node) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{key}", self.path);
        Self { node, path, context: self.context, keys: None }
    }

    /// Notes the diagnostic and marks the node bad.
    fn fail(&self, message: impl Into<String>) -> ReadError {
        self.fail_with(Diagnostic::new(Some(self.node.place.clone()), &self.path, message))
    }

    fn fail_with(&self, diagnostic: Diagnostic) -> ReadError {
        self.context.note(diagnostic);
        self.context.bad.borrow_mut().insert(self.node.id);
        ReadError::Reported
    }

    fn expected(&self, what: &str) -> ReadError {
        let found = match &self.node.value {
            Value::String(text) => format!("the string {text:?}"),
            Value::Integer(Some(value)) => format!("{value}"),
            Value::Float(value) if value.fract() == 0.0 && what.starts_with("a whole") => {
                format!("a number with point or exponent: write {value}")
            }
            Value::Float(value) => format!("{value}"),
            Value::Boolean(value) => format!("{value}"),
            other => other.kind().to_owned(),
        };
        self.fail(format!("expected {what}, not {found}"))
    }

    /// Notes an error as a diagnostic of this node, unless a deeper node has done so.
    fn report_here<T>(&self, result: Result<T, ReadError>) -> Result<T, ReadError> {
        result.map_err(|error| match error {
            ReadError::Reported => ReadError::Reported,
            ReadError::Missing(field) => match self.node.child(field) {
                // It is there but bad: this table cannot be read either.
                Some(_) => {
                    self.context.bad.borrow_mut().insert(self.node.id);
                    ReadError::Reported
                }
                None => {
                    let whole = if self.path.is_empty() { "the manifest" } else { &self.path };
                    self.fail(format!("{whole} lacks the key `{field}`"))
                }
            },
            ReadError::Message(message) => self.fail(message),
        })
    }

    /// The keys and values of a table.
    fn entries(&self) -> Result<&'a [KeyValue], ReadError> {
        match &self.node.value {
            Value::Table(entries) => Ok(entries),
            _ => Err(self.expected("a table")),
        }
    }

    /// Notes every key of a table that is none of these.
    fn refuse_keys_but(&self, known: &[&str]) {
        for entry in self.entries().into_iter().flatten() {
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            let path = self.child(&entry.key, &entry.node).path;
            let message = format!("unknown key `{}`", entry.key);
            let diagnostic = Diagnostic::new(Some(entry.place.clone()), &path, message);
            let mut diagnostic = diagnostic.naming(&entry.key, known);
            if self.path == ALGORITHM {
                let own = "and algorithms of your own, where @exactfed.algorithm or `python = [\"file.py\"]` defines them";
                diagnostic.allowed = diagnostic.allowed.map(|names| format!("{names}, {own}"));
            }
            self.context.note(diagnostic);
        }
    }

    /// Reads the good values of a table whose keys are wanted.
    fn visit_entries<'de, V: Visitor<'de>>(
        &self,
        visitor: V,
        wants: impl Fn(&str) -> bool,
    ) -> Result<V::Value, ReadError> {
        let wanted = |e: &&KeyValue| wants(&e.key) && !self.context.is_bad(&e.node);
        let entries = self.entries()?.iter().filter(wanted);
        let entries = entries.map(|e| (e.key.as_str(), self.child(&e.key, &e.node)));
        self.report_here(visitor.visit_map(MapDeserializer::new(entries)))
    }

    /// The chosen element, if this is an array where one value is expected.
    fn chosen_value(self) -> Result<Self, ReadError> {
        let Value::Array(items) = &self.node.value else { return Ok(self) };
        if !may_vary(&self.path) {
            return Err(self.fail("expected one value, not an array: this is not a grid axis"));
        }
        if items.is_empty() {
            return Err(self.fail("an axis of the grid needs at least one value"));
        }
        let path = self.path.clone();
        let chosen = self.choose(items);
        if matches!(chosen.node.value, Value::Array(_)) {
            return Err(Self { path, ..chosen }.fail("the values of an axis cannot be arrays"));
        }
        Ok(chosen)
    }

    /// Notes an axis; returns the element that the choice selects.
    fn choose(self, items: &'a [Node]) -> Self {
        let axis = GridAxis {
            path: self.path.as_str().into(),
            len: items.len(),
            place: self.node.place.clone(),
        };
        self.context.axes.borrow_mut().push(axis);
        let index = self.context.choice.get(self.path.as_str()).copied().unwrap_or(0);
        Self { node: &items[index.min(items.len() - 1)], ..self }
    }
}

impl<'de> Deserializer<'de> for NodeDeserializer<'_> {
    type Error = ReadError;

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        const EXPECTED: &str = "a whole number, 0 or more";
        let this = self.chosen_value()?;
        match this.node.value {
            Value::Integer(Some(value)) if value >= 0 => this.report_here(visitor.visit_i64(value)),
            Value::Integer(None) => {
                Err(this.fail(format!("expected {EXPECTED}: this is too large")))
            }
            _ => Err(this.expected(EXPECTED)),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let this = self.chosen_value()?;
        let value = match this.node.value {
            Value::Float(value) => value,
            Value::Integer(Some(value)) => value as f64,
            _ => return Err(this.expected("a number")),
        };
        this.report_here(visitor.visit_f64(value))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let this = self.chosen_value()?;
        match this.node.value {
            Value::Boolean(value) => this.report_here(visitor.visit_bool(value)),
            _ => Err(this.expected("true or false")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let this = self.chosen_value()?;
        match &this.node.value {
            Value::String(text) => this.report_here(visitor.visit_str(text)),
            _ => Err(this.expected("a string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Value::Array(items) = &self.node.value else {
            if matches!(self.node.value, Value::Table(_)) {
                let message = format!("expected an array of tables: write [[{}]]", self.path);
                return Err(self.fail(message));
            }
            return Err(self.expected("an array: write [ … ]"));
        };
        let setting = may_vary(&self.path);
        if setting && items.is_empty() {
            return Err(self.fail("an empty list has no meaning: leave the key out"));
        }
        if setting && items.iter().any(|item| matches!(item.value, Value::Array(_))) {
            // Lists in a list: an axis whose values are lists.
            let list = self.choose(items);
            return match &list.node.value {
                Value::Array(items)
                    if !items.iter().any(|i| matches!(i.value, Value::Array(_))) =>
                {
                    list.deserialize_seq(visitor)
                }
                Value::Array(_) => Err(list.fail("the values of an axis cannot be lists of lists")),
                _ => Err(list.expected("a list, as the others of this axis are")),
            };
        }
        let items = items.iter().enumerate().filter(|(_, item)| !self.context.is_bad(item));
        let items = items.map(|(i, item)| self.child(&i.to_string(), item));
        self.report_here(visitor.visit_seq(SeqDeserializer::new(items)))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let this = self.chosen_value()?;
        match &this.keys {
            Some(keys) => keys.borrow_mut().extend(fields),
            None => this.refuse_keys_but(fields),
        }
        this.visit_entries(visitor, |key| fields.contains(&key))
    }

    /// Structs that are read from one table.
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name != FLATTENED {
            return Err(self.expected("one value"));
        }
        let this = self.chosen_value()?;
        let entries = this.entries()?;
        let keys = this.keys.clone().unwrap_or_default();
        let axes = this.context.axes.borrow().len();
        let part = Self { keys: Some(keys.clone()), ..this.clone() };
        let parts = SeqDeserializer::new(std::iter::repeat(part));
        let result = this.report_here(visitor.visit_seq(parts));
        if this.keys.is_none() {
            this.refuse_keys_but(&keys.borrow());
        }
        // Each part noted its own axes: they are put in the order of the text.
        let place = |axis: &GridAxis| {
            let below = axis.path.get(this.path.len() + 1..).unwrap_or_default();
            let key = below.split('.').next().unwrap_or_default();
            entries.iter().position(|entry| entry.key == key)
        };
        this.context.axes.borrow_mut()[axes..].sort_by_key(place);
        result
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let this = self.chosen_value()?;
        let (name, place, content) = match &this.node.value {
            Value::String(name) => (name, &this.node.place, None),
            Value::Table(entries) => match entries.as_slice() {
                [entry] => (&entry.key, &entry.place, Some(&entry.node)),
                several => {
                    let count = several.len();
                    let message = format!("expected exactly one of these keys, not {count}");
                    let place = several.get(1).map_or(&this.node.place, |e| &e.place);
                    let diagnostic = Diagnostic::new(Some(place.clone()), &this.path, message);
                    return Err(this.fail_with(diagnostic.allowing(variants.join(", "))));
                }
            },
            // `test = 0.2` is short for `test = { fraction = 0.2 }`.
            Value::Integer(_) | Value::Float(_) if variants.contains(&FRACTION) => {
                let variant =
                    Variant { parent: this.clone(), name: FRACTION, content: Some(this.node) };
                return this.report_here(visitor.visit_enum(variant));
            }
            _ => {
                let number = if variants.contains(&FRACTION) { "a number or " } else { "" };
                return Err(this.expected(&format!("{number}one of {}", variants.join(", "))));
            }
        };
        if !variants.contains(&name.as_str()) {
            let message = format!("unknown name `{name}`");
            let diagnostic = Diagnostic::new(Some(place.clone()), &this.path, message);
            return Err(this.fail_with(diagnostic.naming(name, variants)));
        }
        if content.is_some_and(|node| this.context.is_bad(node)) {
            this.context.bad.borrow_mut().insert(this.node.id);
            return Err(ReadError::Reported);
        }
        let variant = Variant { parent: this.clone(), name, content };
        this.report_here(visitor.visit_enum(variant))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Boolean(_) => self.deserialize_bool(visitor),
            Value::Integer(_) | Value::Float(_) => self.deserialize_f64(visitor),
            Value::String(_) => self.deserialize_str(visitor),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Table(_) => self.deserialize_map(visitor),
            Value::Datetime => {
                Err(self.expected("a number, a string, true or false, or a list of them"))
            }
        }
    }

    /// A table whose keys are free.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.visit_entries(visitor, |_| true)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 char bytes byte_buf unit unit_struct tuple
        identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, ReadError> for NodeDeserializer<'_> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

struct Variant<'a> {
    parent: NodeDeserializer<'a>,
    name: &'a str,
    /// The table's value, or nothing where only the name was written.
    content: Option<&'a Node>,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = ReadError;
    type Variant = Self;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        Ok((seed.deserialize(StrDeserializer::new(self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.content.map(|node| &node.value) {
            None => Ok(()),
            Some(Value::Table(entries)) if entries.is_empty() => Ok(()),
            Some(_) => {
                let name = self.name;
                Err(self.parent.fail(format!("`{name}` takes no settings: write \"{name}\"")))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        match self.content {
            Some(node) => seed.deserialize(self.parent.child(self.name, node)),
            None => {
                let name = self.name;
                Err(self.parent.fail(format!("`{name}` needs a value: write {{ {name} = … }}")))
            }
        }
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        _visitor: V,
    ) -> Result<V::Value, ReadError> {
        Err(self.parent.fail("this name takes no value"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.content {
            // serde wants a name for messages that this deserializer never prints.
            Some(node) => {
                self.parent.child(self.name, node).deserialize_struct("variant", fields, visitor)
            }
            None if fields.is_empty() => {
                visitor.visit_map(MapDeserializer::new(std::iter::empty::<(&str, &str)>()))
            }
            None => {
                let name = self.name;
                let message = format!("`{name}` needs settings: write {{ {name} = {{ … }} }}");
                let place = Some(self.parent.node.place.clone());
                let diagnostic = Diagnostic::new(place, &self.parent.path, message);
                Err(self.parent.fail_with(diagnostic.allowing(fields.join(", "))))
            }
        }
    }
}
