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

/// A table, and what was read of it.
pub struct VaryingTable<'a, T> {
    node: Option<&'a Node>,
    path: String,
    read: fn(&str, toml::Value, &ManifestSchema) -> Result<T, TreeError>,
    /// What was read, in the order of reading.
    reads: Vec<ReadValue<T>>,
    /// The axes that were met.
    axes: Vec<Arc<str>>,
    /// Numbers of reads, by the choice of the table's own axes: their numbers among `axes`, and
    /// those of the values.
    known: HashMap<Box<[(u32, u32)]>, usize>,
}

/// A table at one choice of its axes.
struct ReadValue<T> {
    value: Arc<T>,
    /// The axes that were met, often those of the read before.
    axes: Arc<[GridAxis]>,
}

impl<'a, T> VaryingTable<'a, T> {
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

    /// Reads the table under a choice; the number of the read.
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

    /// The value of a read.
    pub fn value(&self, number: usize) -> &Arc<T> {
        &self.reads[number].value
    }

    /// The axes of a read.
    pub fn axes(&self, number: usize) -> &[GridAxis] {
        &self.reads[number].axes
    }
}

/// The grid of a manifest: the tables of its cells, of one algorithm's entry at a time, which is
/// entered before its points are visited, and the point that is visited.
pub struct Grid<'a> {
    pub oracle: VaryingTable<'a, Oracle>,
    pub problem: VaryingTable<'a, problem::Spec>,
    pub start: VaryingTable<'a, Start>,
    pub budget: VaryingTable<'a, Budget>,
    pub algorithm: VaryingTable<'a, algorithm::Spec>,
    /// The values of the axes.
    pub choice: Choice,
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
    /// The grid of a manifest, nothing read.
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

    /// From now on the algorithm is that of the entry at a path.
    pub fn enter(&mut self, entry: &str) {
        self.algorithm = VaryingTable::new(self.root, entry, entries::algorithm);
    }

    /// Reads all tables under the choice.
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
