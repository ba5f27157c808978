//! The tables of a manifest in which settings may vary, each read by itself and
//! once for each choice of its own axes: what a million cells share is made once.

use super::grid::Entry;
use crate::manifest::document::Found;
use crate::manifest::read::{Axis, Choice, exhaust};
use crate::manifest::{Budget, Diagnostic, Manifest, Node, Oracle, Start};
use driftbench_core::{algorithm, problem};
use serde::de::DeserializeSeed;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

/// A table, and what was read of it.
pub struct Table<'a, S, T> {
    node: Option<&'a Node>,
    path: String,
    seed: S,
    /// What was read, in the order of reading.
    reads: Vec<Read<T>>,
    /// Numbers of reads, by the choice of the table's own axes.
    known: HashMap<Vec<(Arc<str>, usize)>, usize>,
}

/// A table at one choice of its axes.
struct Read<T> {
    value: Arc<T>,
    /// The axes that were met, often those of the read before.
    axes: Arc<[Axis]>,
}

impl<'a, S: for<'de> DeserializeSeed<'de, Value = T> + Copy, T> Table<'a, S, T> {
    fn new(root: &'a Node, path: &str, seed: S) -> Self {
        let (path, reads, known) = (path.to_owned(), Vec::new(), HashMap::new());
        Self { node: root.find(&path), path, seed, reads, known }
    }

    /// A table that has this value where it is not written.
    fn or(mut self, value: T) -> Self {
        if self.node.is_none() {
            self.reads.push(Read { value: Arc::new(value), axes: Arc::new([]) });
            self.known.insert(Vec::new(), 0);
        }
        self
    }

    /// What is read under a choice: its number.
    fn at(&mut self, choice: &Choice) -> Result<usize, Vec<Diagnostic>> {
        let from = (Bound::Included(self.path.as_str()), Bound::Unbounded);
        let own = choice.range::<str, _>(from).take_while(|(path, _)| path.starts_with(&self.path));
        let own: Vec<(Arc<str>, usize)> = own.map(|(path, i)| (path.clone(), *i)).collect();
        if let Some(number) = self.known.get(&own) {
            return Ok(*number);
        }
        let mut found = Found::default();
        let read = self.node.map(|node| {
            exhaust(node, &self.path, Manifest::may_vary, choice, self.seed, &mut found)
        });
        let Some((Some(value), axes)) = read else { return Err(found.all()) };
        let number = self.reads.len();
        let before = self.reads.last().filter(|before| before.axes[..] == axes[..]);
        let axes = before.map_or_else(|| axes.into(), |before| before.axes.clone());
        self.reads.push(Read { value: Arc::new(value), axes });
        self.known.insert(own, number);
        Ok(number)
    }

    /// The value of a read.
    pub fn value(&self, number: usize) -> &Arc<T> {
        &self.reads[number].value
    }

    /// The axes of a read.
    pub fn axes(&self, number: usize) -> &[Axis] {
        &self.reads[number].axes
    }
}

type Of<T> = PhantomData<T>;

/// The tables of a manifest's cells, of one algorithm at a time.
pub struct Tables<'a> {
    pub oracle: Table<'a, Of<Oracle>, Oracle>,
    pub problem: Table<'a, Of<problem::Spec>, problem::Spec>,
    pub start: Table<'a, Of<Start>, Start>,
    pub budget: Table<'a, Of<Budget>, Budget>,
    pub algorithm: Table<'a, algorithm::OfKind<'static>, algorithm::Spec>,
    root: &'a Node,
}

/// Numbers of reads: the tables at a point of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct At {
    pub oracle: usize,
    pub problem: usize,
    pub start: usize,
    pub budget: usize,
    pub algorithm: usize,
}

impl<'a> Tables<'a> {
    /// The tables, nothing read.
    pub fn new(root: &'a Node) -> Self {
        Self {
            oracle: Table::new(root, "oracle", PhantomData).or(Oracle::default()),
            problem: Table::new(root, "problem", PhantomData),
            start: Table::new(root, "start", PhantomData),
            budget: Table::new(root, "budget", PhantomData),
            algorithm: Table::new(root, "algorithm", algorithm::OfKind("")),
            root,
        }
    }

    /// From now on the algorithm is that of an entry.
    pub fn enter(&mut self, entry: &Entry) {
        self.algorithm = Table::new(self.root, &entry.path(), algorithm::OfKind(entry.kind));
    }

    /// What all tables are under a choice.
    ///
    /// # Errors
    /// What reading the whole manifest would have said.
    pub fn at(&mut self, choice: &Choice) -> Result<At, Vec<Diagnostic>> {
        Ok(At {
            oracle: self.oracle.at(choice)?,
            problem: self.problem.at(choice)?,
            start: self.start.at(choice)?,
            budget: self.budget.at(choice)?,
            algorithm: self.algorithm.at(choice)?,
        })
    }

    /// The axes that were met there, in the order of the text.
    pub fn axes(&self, at: At) -> impl Iterator<Item = &Axis> {
        self.root.keys().flat_map(move |key| match key {
            "oracle" => self.oracle.axes(at.oracle),
            "problem" => self.problem.axes(at.problem),
            "start" => self.start.axes(at.start),
            "budget" => self.budget.axes(at.budget),
            "algorithm" => self.algorithm.axes(at.algorithm),
            _ => &[],
        })
    }
}
