//! The tables of a manifest in which settings may vary. Each is read by itself, and
//! once for each choice of its own axes, so that what a million cells share is made once.

use super::places::place_of;
use crate::manifest::axis::{Choice, GridAxis};
use crate::manifest::document::Diagnostics;
use crate::manifest::read::exhaust;
use crate::manifest::{Budget, Diagnostic, Manifest, Node, Oracle, Start};
use exactfed_core::{algorithm, problem};
use serde::de::DeserializeSeed;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

/// A table, and what was read of it.
pub struct VaryingTable<'a, S, T> {
    node: Option<&'a Node>,
    path: String,
    seed: S,
    /// What was read, in the order of reading.
    reads: Vec<ReadValue<T>>,
    /// Numbers of reads, by the choice of the table's own axes.
    known: HashMap<Vec<(Arc<str>, usize)>, usize>,
}

/// A table at one choice of its axes.
struct ReadValue<T> {
    value: Arc<T>,
    /// The axes that were met, often those of the read before.
    axes: Arc<[GridAxis]>,
}

impl<'a, S: for<'de> DeserializeSeed<'de, Value = T> + Copy, T> VaryingTable<'a, S, T> {
    fn new(root: &'a Node, path: &str, seed: S) -> Self {
        let (path, reads, known) = (path.to_owned(), Vec::new(), HashMap::new());
        Self { node: root.find(&path), path, seed, reads, known }
    }

    /// A table that has this value where it is not written.
    fn or(mut self, value: T) -> Self {
        if self.node.is_none() {
            self.reads.push(ReadValue { value: Arc::new(value), axes: Arc::new([]) });
            self.known.insert(Vec::new(), 0);
        }
        self
    }

    /// Reads the table under a choice; the number of the read.
    fn read(&mut self, choice: &Choice) -> Result<usize, Vec<Diagnostic>> {
        let from = (Bound::Included(self.path.as_str()), Bound::Unbounded);
        let own = choice.range::<str, _>(from).take_while(|(path, _)| path.starts_with(&self.path));
        let own: Vec<(Arc<str>, usize)> = own.map(|(path, i)| (path.clone(), *i)).collect();
        if let Some(number) = self.known.get(&own) {
            return Ok(*number);
        }
        let mut found = Diagnostics::default();
        let read = self.node.map(|node| exhaust(node, &self.path, choice, self.seed, &mut found));
        let Some((Some(value), axes)) = read else { return Err(found.into_vec()) };
        let number = self.reads.len();
        let before = self.reads.last().filter(|before| before.axes[..] == axes[..]);
        let axes = before.map_or_else(|| axes.into(), |before| before.axes.clone());
        self.reads.push(ReadValue { value: Arc::new(value), axes });
        self.known.insert(own, number);
        Ok(number)
    }

    /// The value of a read.
    pub fn value(&self, number: usize) -> &Arc<T> {
        &self.reads[number].value
    }

    /// The axes of a read.
    pub fn axes(&self, number: usize) -> &[GridAxis] {
        &self.reads[number].axes
    }
}

/// The tables of a manifest's cells, of one algorithm at a time.
pub struct VaryingTables<'a> {
    pub oracle: VaryingTable<'a, PhantomData<Oracle>, Oracle>,
    pub problem: VaryingTable<'a, PhantomData<problem::Spec>, problem::Spec>,
    pub start: VaryingTable<'a, PhantomData<Start>, Start>,
    pub budget: VaryingTable<'a, PhantomData<Budget>, Budget>,
    pub algorithm: VaryingTable<'a, algorithm::SettingsOfKind<'static>, algorithm::Spec>,
    root: &'a Node,
}

/// A grid point: for each table the number of the read that it has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GridPoint {
    pub oracle: usize,
    pub problem: usize,
    pub start: usize,
    pub budget: usize,
    pub algorithm: usize,
}

impl<'a> VaryingTables<'a> {
    /// The tables, nothing read.
    pub fn new(root: &'a Node) -> Self {
        Self {
            oracle: VaryingTable::new(root, "oracle", PhantomData).or(Oracle::default()),
            problem: VaryingTable::new(root, "problem", PhantomData),
            start: VaryingTable::new(root, "start", PhantomData),
            budget: VaryingTable::new(root, "budget", PhantomData),
            algorithm: VaryingTable::new(root, "algorithm", algorithm::SettingsOfKind("")),
            root,
        }
    }

    /// From now on the algorithm is that of an entry.
    pub fn enter(&mut self, entry: &AlgorithmEntry) {
        self.algorithm =
            VaryingTable::new(self.root, &entry.path(), algorithm::SettingsOfKind(entry.kind));
    }

    /// Reads all tables under a choice.
    pub fn read(&mut self, choice: &Choice) -> Result<GridPoint, Vec<Diagnostic>> {
        Ok(GridPoint {
            oracle: self.oracle.read(choice)?,
            problem: self.problem.read(choice)?,
            start: self.start.read(choice)?,
            budget: self.budget.read(choice)?,
            algorithm: self.algorithm.read(choice)?,
        })
    }

    /// The axes of a grid point, in the order of the text.
    pub fn axes(&self, point: GridPoint) -> impl Iterator<Item = &GridAxis> {
        self.root.keys().flat_map(move |key| match key {
            "oracle" => self.oracle.axes(point.oracle),
            "problem" => self.problem.axes(point.problem),
            "start" => self.start.axes(point.start),
            "budget" => self.budget.axes(point.budget),
            "algorithm" => self.algorithm.axes(point.algorithm),
            _ => &[],
        })
    }
}

/// A grid point of one algorithm's entry, as it is visited.
#[derive(Clone, Copy)]
pub struct Visited<'a, 't> {
    /// The tables, which have been read there.
    pub tables: &'a VaryingTables<'t>,
    /// The values of the axes.
    pub choice: &'a Choice,
    /// What was read.
    pub point: GridPoint,
}

/// An algorithm's entry in the manifest.
pub struct AlgorithmEntry {
    /// The algorithm's kind.
    pub kind: &'static str,
    /// Its number among the entries of the kind.
    pub number: usize,
}

impl AlgorithmEntry {
    /// All entries, in the order of the text.
    pub fn all(root: &Node, manifest: &Manifest) -> Vec<Self> {
        let entries = manifest.algorithm.entries().into_iter();
        let mut all: Vec<Self> = entries.map(|(kind, number, _)| Self { kind, number }).collect();
        all.sort_by_key(|entry| place_of(root, &entry.path(), &Choice::new()));
        all
    }

    /// The entry's path in the manifest.
    pub fn path(&self) -> String {
        format!("algorithm.{}.{}", self.kind, self.number)
    }
}
