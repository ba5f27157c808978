//! The tables of a manifest in which settings may vary. Each is read by itself, and
//! once for each choice of its own axes, so that what a million cells share is made once.

use crate::manifest::axis::{Choice, GridAxis};
use crate::manifest::entries::{self, TreeError, from_tree};
use crate::manifest::read::read_at;
use crate::manifest::schema::ManifestSchema;
use crate::manifest::{Budget, Diagnostic, Node, Oracle, Start};
use exactfed_core::{algorithm, problem};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

/// A table of a manifest, and what was read of it under the choices of its axes so far.
pub struct VaryingTable<'a, T> {
    /// `None` if the manifest does not have the table.
    node: Option<&'a Node>,
    path: String,
    /// Reads the value of the table at this path from a tree that fits its schema.
    read: fn(&str, toml::Value, &ManifestSchema) -> Result<T, TreeError>,
    /// What was read, in the order of reading: the number of a read is its place here.
    reads: Vec<ReadValue<T>>,
    /// The paths of the axes of which a value was chosen in any read.
    axes: Vec<Arc<str>>,
    /// The numbers of the reads, by the choice of values on the table's own axes: pairs of the place of an axis in
    /// `axes` and the index of its value.
    known: HashMap<Box<[(u32, u32)]>, usize>,
}

/// A table at one choice of its axes.
struct ReadValue<T> {
    value: Arc<T>,
    /// The axes that were met in this read, shared with the read before where they are equal.
    axes: Arc<[GridAxis]>,
}

impl<'a, T> VaryingTable<'a, T> {
    /// The table at a path, of which nothing is read yet.
    fn new(
        root: &'a Node,
        path: &str,
        read: fn(&str, toml::Value, &ManifestSchema) -> Result<T, TreeError>,
    ) -> Self {
        let path = path.to_owned();
        let reads = Vec::new();
        let axes = Vec::new();
        let known = HashMap::new();
        Self { node: root.find(&path), path, read, reads, axes, known }
    }

    /// Reads the table where axes have the values of a choice, unless that was done before. Returns the number of the
    /// read. Values that are chosen on axes of other tables make no difference, and an axis without a chosen value has
    /// its first.
    ///
    /// # Errors
    /// What is wrong with the table; nothing if the manifest lacks it, which is noted elsewhere.
    fn read(&mut self, choice: &Choice, schema: &ManifestSchema) -> Result<usize, Vec<Diagnostic>> {
        let from = (Bound::Included(self.path.as_str()), Bound::Unbounded);
        let own = choice.range::<str, _>(from).take_while(|(path, _)| path.starts_with(&self.path));
        let axes = &mut self.axes;
        let own: Box<[(u32, u32)]> = own
            .map(|(path, value)| {
                let known = axes.iter().position(|axis| axis == path).unwrap_or(axes.len());
                if known == axes.len() {
                    axes.push(path.clone());
                }
                (known as u32, *value as u32)
            })
            .collect();
        if let Some(number) = self.known.get(&own) {
            return Ok(*number);
        }
        let node = self.node.ok_or_else(Vec::new)?;
        let (value, axes) = read_at(node, &self.path, choice, schema, |tree| {
            (self.read)(&self.path, tree, schema)
        })?;
        let number = self.reads.len();
        let before = self.reads.last().filter(|before| before.axes[..] == axes[..]);
        let axes = before.map_or_else(|| axes.into(), |before| before.axes.clone());
        self.reads.push(ReadValue { value: Arc::new(value), axes });
        self.known.insert(own, number);
        Ok(number)
    }

    /// What the read of this number gave.
    pub fn value(&self, number: usize) -> &Arc<T> {
        &self.reads[number].value
    }

    /// The axes that were met in the read of this number.
    pub fn axes(&self, number: usize) -> &[GridAxis] {
        &self.reads[number].axes
    }
}

/// The grid of a manifest: the tables that determine its cells, and the values of axes at the point that is visited.
/// It has one algorithm's entry at a time, which is entered before its points are visited ([`Self::enter`]).
pub struct Grid<'a> {
    pub oracle: VaryingTable<'a, Oracle>,
    pub problem: VaryingTable<'a, problem::Spec>,
    pub start: VaryingTable<'a, Start>,
    pub budget: VaryingTable<'a, Budget>,
    /// The table of the entry that is visited.
    pub algorithm: VaryingTable<'a, algorithm::Spec>,
    /// The values of the axes that are chosen so far.
    pub choice: Choice,
    /// The lists of axes whose values are taken together.
    pub zip: &'a [Vec<String>],
    root: &'a Node,
    schema: &'a ManifestSchema,
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

impl<'a> Grid<'a> {
    /// The grid of a manifest, of which nothing is read yet. A manifest without `oracle` has the default there; no
    /// algorithm's entry is entered.
    pub fn new(root: &'a Node, zip: &'a [Vec<String>], schema: &'a ManifestSchema) -> Self {
        let mut oracle = VaryingTable::new(root, "oracle", |_, tree, _| from_tree(tree));
        if oracle.node.is_none() {
            oracle.reads.push(ReadValue { value: Arc::default(), axes: Arc::default() });
            oracle.known.insert(Box::default(), 0);
        }
        Self {
            oracle,
            problem: VaryingTable::new(root, "problem", |_, tree, schema| {
                entries::problem(tree, schema)
            }),
            start: VaryingTable::new(root, "start", |_, tree, _| from_tree(tree)),
            budget: VaryingTable::new(root, "budget", |_, tree, _| from_tree(tree)),
            algorithm: VaryingTable::new(root, "algorithm", entries::algorithm),
            choice: Choice::new(),
            zip,
            root,
            schema,
        }
    }

    /// Makes the entry at a path the algorithm of the grid. Values that are chosen on axes stay chosen.
    pub fn enter(&mut self, entry: &str) {
        self.algorithm = VaryingTable::new(self.root, entry, entries::algorithm);
    }

    /// Reads all tables at the values that are chosen so far, and the first value of every other axis.
    ///
    /// # Errors
    /// What is wrong with the first table that is wrong.
    pub fn read(&mut self) -> Result<GridPoint, Vec<Diagnostic>> {
        let choice = &self.choice;
        let schema = self.schema;
        Ok(GridPoint {
            oracle: self.oracle.read(choice, schema)?,
            problem: self.problem.read(choice, schema)?,
            start: self.start.read(choice, schema)?,
            budget: self.budget.read(choice, schema)?,
            algorithm: self.algorithm.read(choice, schema)?,
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
