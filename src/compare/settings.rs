//! Settings of many cells by path; cells share equal texts.
//!
//! *Invariant*: paths are in alphabetical order, and each occurs once.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The settings of a cell by dotted path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Vec<(Arc<str>, Arc<str>)>);

/// Texts that cells share.
#[derive(Default)]
pub struct Texts(HashSet<Arc<str>>);

impl Texts {
    /// The shared copy of a text.
    pub fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.0.insert(new.clone());
        new
    }

    /// Settings with these paths and values; of a repeated path, the last value.
    pub fn settings<P: AsRef<str>, V: AsRef<str>>(
        &mut self,
        all: impl IntoIterator<Item = (P, V)>,
    ) -> Settings {
        let shared =
            |(path, value): (P, V)| (self.shared(path.as_ref()), self.shared(value.as_ref()));
        let all: BTreeMap<Arc<str>, Arc<str>> = all.into_iter().map(shared).collect();
        Settings(all.into_iter().collect())
    }
}

impl Settings {
    /// The value of a path.
    pub fn get(&self, path: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(other, _)| (**other).cmp(path));
        place.ok().map(|place| &*self.0[place].1)
    }

    /// The paths, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, _)| &**path)
    }

    /// Paths and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, value)| (&**path, &**value))
    }

    /// Sets the value of a path.
    pub fn insert(&mut self, path: &str, value: &str) {
        *self = Texts::default().settings(self.iter().chain([(path, value)]));
    }
}

impl<P: AsRef<str>, V: AsRef<str>, const N: usize> From<[(P, V); N]> for Settings {
    fn from(all: [(P, V); N]) -> Self {
        Texts::default().settings(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_in_order_and_texts_are_shared() {
        let mut texts = Texts::default();
        let a = texts.settings([("b", "1"), ("a", "2"), ("b", "3")]);
        let b = texts.settings([("a", "2")]);
        assert_eq!(a.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!((a.get("b"), a.get("c"), b.get("a")), (Some("3"), None, Some("2")));
        assert!(Arc::ptr_eq(&a.0[0].1, &b.0[0].1));
    }
}
