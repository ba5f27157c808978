//! From the points of the grid to cells: parts that are made once for each
//! choice of a table's own axes, and put together.
//!
//! *Invariant*: what is hashed into an id is the canonical text of the whole
//! identity, though it is assembled from the texts of its tables.

use super::grid::{self, Entry, Grid, setting_path};
use super::settings::{self, Part, Setting, Shapes};
use super::tables::{At, Tables};
use super::{Cell, Hashes, Identity, MOST_CELLS, NUMERICS, Varied, hex, rounds, validate};
use crate::manifest::document::Found;
use crate::manifest::read::{Axis, Choice};
use crate::manifest::{Diagnostic, Manifest, Node, Record};
use driftbench_core::problem::Fault;
use driftbench_core::{algorithm, problem};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A problem or an algorithm, made for all cells that have it.
pub struct Made<T> {
    /// What it is.
    pub spec: Arc<T>,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
    /// Its table of the canonical text.
    text: String,
    settings: Part,
}

/// What else enters a cell's identity and its settings.
struct Rest {
    /// The canonical text before the problem's table.
    text: String,
    settings: Part,
}

/// What is made of the tables, by the numbers of their reads.
#[derive(Default)]
struct Parts {
    problems: HashMap<usize, Made<problem::Spec>>,
    /// Of one entry.
    algorithms: HashMap<usize, Made<algorithm::Spec>>,
    rests: HashMap<(At, u64), Rest>,
}

/// A point of one entry's grid: the tables, the choice, and what is read there.
type Here<'a, 't> = (&'a Tables<'t>, &'a Choice, At);

/// Makes cells.
struct Maker<'a> {
    root: &'a Node,
    manifest: &'a Manifest,
    hashes: &'a mut Hashes,
    record: Arc<Record>,
    shapes: Shapes,
    /// The varied axes of the cell before and their settings: the next often has
    /// the same.
    varied: (Vec<Arc<str>>, Varied),
    points: usize,
    found: Found,
    cells: Vec<Cell>,
    /// Places of cells by their ids.
    ids: HashMap<[u8; 8], usize>,
}

/// The cells of a manifest.
///
/// # Errors
/// All that is wrong with any of them.
pub fn cells(
    root: &Node,
    manifest: &Manifest,
    axes: &[Axis],
    hashes: &mut Hashes,
) -> Result<Vec<Cell>, Vec<Diagnostic>> {
    let found = grid::zips_are_sound(root, manifest, axes);
    if !found.is_empty() {
        return Err(found);
    }
    let (entries, mut grid) = (Entry::all(root, manifest), Grid::new(root, manifest));
    grid.not_too_large(&entries, axes, MOST_CELLS)?;
    let mut maker = Maker {
        root,
        manifest,
        hashes,
        record: Arc::new(manifest.record.canonical()),
        shapes: Shapes::default(),
        varied: (Vec::new(), Varied::default()),
        points: 0,
        found: Found::default(),
        cells: Vec::new(),
        ids: HashMap::new(),
    };
    let mut parts = Parts::default();
    for entry in &entries {
        parts.algorithms.clear();
        let path = Arc::from(entry.path());
        grid.visit(entry, &mut |tables, choice, at| {
            maker.points += 1;
            if maker.points > MOST_CELLS {
                return Err(vec![grid::too_large(axes, maker.points as f64, MOST_CELLS)]);
            }
            maker.visit(&path, &mut parts, (tables, choice, at));
            Ok(())
        })?;
    }
    if maker.found.is_empty() { Ok(maker.cells) } else { Err(maker.found.all()) }
}

impl Maker<'_> {
    /// Makes the cell at a point, or notes what is wrong there.
    fn visit(&mut self, entry: &Arc<str>, parts: &mut Parts, here: Here<'_, '_>) {
        let (tables, choice, at) = here;
        let Parts { problems, algorithms, rests } = parts;
        let problem = problems.entry(at.problem).or_insert_with(|| self.problem(here));
        let algorithm = algorithms.entry(at.algorithm).or_insert_with(|| self.algorithm(here));
        let (start, budget) = (tables.start.value(at.start), tables.budget.value(at.budget));
        let record = &*self.record;
        let point = validate::Point { problem, algorithm, start, budget, record, entry, choice };
        let faults = validate::cell(self.root, self.manifest.instance, &point);
        if !faults.is_empty() {
            return self.found.extend(faults);
        }
        let identity = Identity {
            numerics: NUMERICS,
            seed: self.manifest.seed,
            replicates: self.manifest.replicates,
            oracle: **tables.oracle.value(at.oracle),
            instance: self.manifest.instance,
            rounds: rounds(budget, algorithm.spec.scale().1),
            record: self.record.clone(),
            start: start.clone(),
            problem: problem.spec.clone(),
            algorithm: algorithm.spec.clone(),
        };
        let others = (At { problem: 0, algorithm: 0, ..at }, identity.rounds);
        let rest = rests.entry(others).or_insert_with(|| self.rest(here, &identity));
        let hash = hash([&rest.text, &problem.text, &algorithm.text]);
        if let Some(other) = self.ids.insert(hash, self.cells.len()) {
            let label = &self.cells[other].label;
            self.ids.insert(hash, other);
            let twin = validate::twin(self.root, entry, choice, label);
            return self.found.add(twin);
        }
        let parts = [&problem.settings, &algorithm.settings, &rest.settings];
        let cell = Cell {
            id: hex(&hash),
            label: identity.algorithm.label().to_owned(),
            settings: self.shapes.settings(parts),
            varied: self.varied(tables, at),
            entry: entry.clone(),
            identity,
        };
        self.cells.push(cell);
    }

    fn problem(&mut self, (tables, choice, at): Here<'_, '_>) -> Made<problem::Spec> {
        let mut spec = problem::Spec::clone(tables.problem.value(at.problem));
        let mut faults = self.hashes.resolve(&mut spec);
        faults.extend(spec.check());
        let (text, mut settings) = told("problem", &spec);
        self.add_defaults(&mut settings, tables.problem.axes(at.problem), choice);
        Made { spec: Arc::new(spec), faults, text, settings: self.shapes.part(settings) }
    }

    fn algorithm(&mut self, (tables, choice, at): Here<'_, '_>) -> Made<algorithm::Spec> {
        let spec = tables.algorithm.value(at.algorithm).clone();
        let (text, mut settings) = told("algorithm", &*spec);
        let terms = &spec.components()[0].terms;
        let length = Setting::Number(terms.step_size * terms.most_steps() as f64);
        settings.insert("path-length".into(), length);
        self.add_defaults(&mut settings, tables.algorithm.axes(at.algorithm), choice);
        let (faults, settings) = (spec.check(), self.shapes.part(settings));
        Made { spec, faults, text, settings }
    }

    fn rest(&mut self, (tables, choice, at): Here<'_, '_>, identity: &Identity) -> Rest {
        let mut table = identity.canonical();
        table.retain(|key, _| key != "problem" && key != "algorithm");
        let mut all = BTreeMap::new();
        for top in ["start", "oracle", "rounds"] {
            settings::add(&mut all, top, &table[top]);
        }
        let budget = tables.budget.value(at.budget);
        for (name, value) in [
            ("budget.local-steps", budget.local_steps),
            ("budget.rounds", budget.rounds),
            ("budget.min-rounds", budget.min_rounds),
        ] {
            all.extend(value.map(|value| (name.to_owned(), Setting::Number(value as f64))));
        }
        self.add_defaults(&mut all, tables.start.axes(at.start), choice);
        Rest { text: table.to_string(), settings: self.shapes.part(all) }
    }

    /// Adds what an axis says that is a default, and so not part of the identity:
    /// it tells cells apart.
    fn add_defaults(
        &self,
        settings: &mut BTreeMap<String, Setting>,
        axes: &[Axis],
        choice: &Choice,
    ) {
        for axis in axes.iter().filter(|axis| axis.len > 1) {
            let name = setting_path(&axis.path);
            if let (false, Some((node, true))) =
                (settings.contains_key(&name), validate::walk(self.root, &axis.path, choice))
            {
                settings.extend(settings::of_value(&node.value).map(|value| (name, value)));
            }
        }
    }

    /// Paths of the settings that the grid varies here.
    fn varied(&mut self, tables: &Tables<'_>, at: At) -> Varied {
        let paths = || tables.axes(at).filter(|axis| axis.len > 1).map(|axis| &axis.path);
        if !paths().eq(&self.varied.0) {
            let settings = paths().map(|path| setting_path(path)).collect();
            self.varied = (paths().cloned().collect(), Varied(settings));
        }
        self.varied.1.clone()
    }
}

/// A table's canonical text, and its settings by their paths.
fn told(top: &str, spec: &impl Serialize) -> (String, BTreeMap<String, Setting>) {
    let value = toml::Value::try_from(spec).expect("settings are plain tables");
    let mut all = BTreeMap::new();
    settings::add(&mut all, top, &value);
    (toml::Table::from_iter([(top.to_owned(), value)]).to_string(), all)
}

/// The first bytes of the hash of the canonical text that these tables make.
fn hash(texts: [&str; 3]) -> [u8; 8] {
    let mut sha = Sha256::new();
    for (i, text) in texts.iter().enumerate() {
        sha.update(if i == 0 { "" } else { "\n" });
        sha.update(text);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&sha.finalize()[..8]);
    first
}
