//! From the points of the grid to cells: parts that are made once for each
//! choice of a table's own axes, and put together.
//!
//! *Invariant*: what is hashed into an id is the canonical text of the whole
//! identity, though it is assembled from the texts of its tables.

use super::budget::rounds_of_budget;
use super::candidates;
use super::cell::{Cell, SharedByCells};
use super::grid::{self, MOST_CELLS, setting_path};
use super::hashes::Hashes;
use super::identity::{Identity, NUMERICS, RunKeys};
use super::places::{diagnostic_under, find_node, place_of};
use super::settings::{self, Part, Setting, Shapes, SpecParts, text_and_settings};
use super::tables::{Grid, GridPoint};
use super::validate::{CheckedPoint, check_cell};
use crate::hex::CellId;
use crate::manifest::axis::{Choice, GridAxis};
use crate::manifest::document::Value;
use crate::manifest::schema::ManifestSchema;
use crate::manifest::{Diagnostic, Manifest, Node, Oracle, Record};
use exactfed_core::algorithm::Instance;
use exactfed_core::algorithm::Participation::Fraction;
use exactfed_core::problem::{Fault, ProblemConstants};
use exactfed_core::{algorithm, problem};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// What enters a cell's identity and its settings beside the problem and the algorithm: oracle, start, rounds and what
/// is recorded.
struct OtherParts {
    /// The canonical text before the table of the problem.
    text: String,
    settings: Part,
}

/// The parts that cells have in common, each made once. A table is read once for each choice of its own axes, and a
/// part is known by the number of that read ([`GridPoint`]).
#[derive(Default)]
struct SharedParts {
    problems: HashMap<usize, SpecParts<problem::Spec>>,
    /// The number of clients of each problem on which an algorithm lets a fraction of the clients take part; `None` if
    /// it is not known.
    clients: HashMap<usize, Option<usize>>,
    /// The first instance of each problem on which an algorithm counts local work in epochs, or has numbers in units of
    /// the problem's constants; `None` if it cannot be built.
    instances: HashMap<usize, Option<FirstInstance>>,
    /// The algorithms of the entry that is visited, each at the number of its read. There is a list for each number of
    /// clients of which a fraction takes part, and for each problem whose records say how long an epoch is.
    algorithms: HashMap<ProblemDependence, Vec<Option<SpecParts<algorithm::Spec>>>>,
    /// The other parts at each point, in which the numbers of problem and algorithm are 0, and number of rounds T.
    others: HashMap<(GridPoint, u64), OtherParts>,
}

/// The first instance of a problem, without its optimum, and its constants.
struct FirstInstance {
    instance: Box<dyn Instance>,
    constants: ProblemConstants,
}

/// What an algorithm needs to know of its problem.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ProblemDependence {
    /// The number of clients, if a fraction of them takes part and it is known.
    clients: Option<usize>,
    /// The number of the problem's read, if local work is counted in epochs or numbers are in units of constants.
    problem: Option<usize>,
}

/// Makes the cells of a grid, one at each point that is visited. They share what they have in common.
struct CellMaker<'a> {
    root: &'a Node,
    manifest: &'a Manifest,
    hashes: &'a mut Hashes,
    /// All strings of the problem's table, among which are the paths of its files; `None` until they are asked for.
    problem_texts: Option<Vec<String>>,
    /// The names of files that vary, by the hashes of their contents.
    file_names: HashMap<String, String>,
    record: Arc<Record>,
    /// What determines the runs, for each oracle of the grid.
    keys: Vec<Arc<RunKeys>>,
    shapes: Shapes,
    /// Tables of the canonical text one after the other, since there are many: of problems, and of the
    /// algorithms of one entry.
    texts: [String; 2],
    /// The varied axes of the cell before and their settings: the next often has
    /// the same.
    varied: (Vec<Arc<str>>, Arc<[String]>),
    /// What is wrong, in the order in which it was found, and the same diagnostics as a set.
    found: (Vec<Diagnostic>, HashSet<Diagnostic>),
    cells: Vec<Cell>,
    /// The places of cells among `cells`, by the bytes of their ids.
    ids: HashMap<[u8; 8], usize>,
    /// The first thing that is wrong with a cell, by its id. `None` if such cells are not made and all that is wrong is
    /// reported.
    faults: Option<&'a mut HashMap<CellId, String>>,
}

/// The cells of a manifest, in the order of its text: algorithm by algorithm, the first axis outermost. No two have one
/// id. `axes` are all axes that the reading of the manifest met. `hashes` gets the hashes of the data files that the
/// problems name. With `faults` the cells that are wrong are made too, and the first fault of each is noted there: this
/// is how further candidates of a tuned setting are tried.
///
/// # Errors
/// All that is wrong with the grid and, without `faults`, with any cell.
pub fn cells(
    root: &Node,
    manifest: &Manifest,
    axes: &[GridAxis],
    schema: &ManifestSchema,
    hashes: &mut Hashes,
    faults: Option<&mut HashMap<CellId, String>>,
) -> Result<Vec<Cell>, Vec<Diagnostic>> {
    let found = grid::check_zips(root, manifest, axes);
    if !found.is_empty() {
        return Err(found);
    }
    let mut entries: Vec<&str> = manifest.algorithm.iter().map(|entry| &*entry.path).collect();
    entries.sort_by_key(|path| place_of(root, path, &Choice::new()));
    let mut grid = Grid::new(root, &manifest.zip, schema);
    grid.check_size(&entries, axes)?;
    let mut maker = CellMaker {
        root,
        manifest,
        hashes,
        problem_texts: None,
        file_names: HashMap::new(),
        record: Arc::new(manifest.record.canonical()),
        keys: Vec::new(),
        shapes: Shapes::default(),
        texts: Default::default(),
        varied: Default::default(),
        found: Default::default(),
        cells: Vec::new(),
        ids: HashMap::new(),
        faults,
    };
    let mut parts = SharedParts::default();
    let mut points = 0;
    for entry in entries {
        parts.algorithms.clear();
        maker.texts[1].clear();
        let path = Arc::from(entry);
        grid.enter(entry);
        grid.walk(&mut |grid, point| {
            points += 1;
            if points > MOST_CELLS {
                return Err(vec![grid::too_large(axes, points as f64)]);
            }
            maker.visit(&path, &mut parts, grid, point);
            Ok(())
        })?;
    }
    let CellMaker { mut cells, found: (found, _), .. } = maker;
    cells.shrink_to_fit();
    if found.is_empty() { Ok(cells) } else { Err(found) }
}

/// Whether an algorithm's settings depend on an instance of its problem: on how long an epoch is, or on constants.
fn needs_instance(algorithm: &algorithm::Spec, problem: &problem::Spec) -> bool {
    let has_epochs = algorithm.local_epochs().is_some() && problem.has_epochs();
    has_epochs || !algorithm.multiples().is_empty()
}

/// All strings that are values in a tree, in no particular order.
fn texts_of(root: &Node) -> Vec<String> {
    let mut texts = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        match &node.value {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(nodes) => open.extend(nodes),
            Value::Table(entries) => open.extend(entries.iter().map(|entry| &entry.node)),
            _ => {}
        }
    }
    texts
}

/// What tables and figures call the file at a path: the end of the path, with as few folders as tell it from all other
/// paths among `texts`, the strings of the problem's table.
fn shortest_name<'p>(path: &'p str, texts: &[String]) -> &'p str {
    let begins = path.rmatch_indices('/').map(|(slash, _)| slash + 1);
    for begin in begins.chain([0]) {
        let name = &path[begin..];
        let is_of_another = texts.iter().any(|text| {
            let before = text.strip_suffix(name).filter(|_| text != path);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        });
        if !is_of_another {
            return name;
        }
    }
    path
}

impl CellMaker<'_> {
    /// The first instance of a problem for runs with these keys; `None` if it cannot be built.
    fn first_instance(
        &self,
        problem: &SpecParts<problem::Spec>,
        keys: &RunKeys,
    ) -> Option<FirstInstance> {
        let instance = self.hashes.instance(problem, keys.instance_seed(keys.seed, 0))?;
        Some(FirstInstance { instance, constants: ProblemConstants::default() })
    }

    /// The number of the cell that has this hash; `None` if no cell has it, and the next cell gets it.
    fn earlier_cell(&mut self, hash: [u8; 8]) -> Option<usize> {
        let earlier = self.ids.insert(hash, self.cells.len())?;
        // The id goes on to mean the earlier cell.
        self.ids.insert(hash, earlier);
        Some(earlier)
    }

    /// Says that a grid point describes the runs of cell number `earlier`.
    fn message_on_repeated(&self, earlier: usize) -> String {
        let label = &self.cells[earlier].label;
        format!(
            "this describes the same runs twice (already as \"{label}\"); is a value or an algorithm repeated?"
        )
    }

    /// Makes the cell of the algorithm's entry at a grid point (`reads`), or notes what is wrong there. A point that
    /// describes the runs of an earlier cell is a mistake; where faults are noted by cells, it is left out.
    fn visit(
        &mut self,
        entry: &Arc<str>,
        parts: &mut SharedParts,
        grid: &Grid<'_>,
        reads: GridPoint,
    ) {
        let choice = &grid.choice;
        let SharedParts { problems, clients, instances, algorithms, others } = parts;
        let spec = grid.algorithm.value(reads.algorithm);
        let oracle = **grid.oracle.value(reads.oracle);
        let keys = self.keys(oracle);
        let problem = problems.entry(reads.problem).or_insert_with(|| self.problem(grid, reads));
        let clients = matches!(spec.cohort(), Some(Fraction(_)))
            .then(|| *clients.entry(reads.problem).or_insert_with(|| self.hashes.clients(problem)))
            .flatten();
        let mut needs = ProblemDependence { clients, problem: None };
        let mut instance = None;
        if needs_instance(spec, &problem.spec) {
            needs.problem = Some(reads.problem);
            let known = instances.entry(reads.problem);
            instance = known.or_insert_with(|| self.first_instance(problem, &keys)).as_ref();
        }
        let algorithm = slot(algorithms.entry(needs).or_default(), reads.algorithm)
            .get_or_insert_with(|| self.algorithm(grid, reads, clients, instance));
        let start = grid.start.value(reads.start);
        let budget = grid.budget.value(reads.budget);
        let point = CheckedPoint { problem, algorithm, start, budget, oracle, entry, choice };
        let wrong = check_cell(self.root, self.manifest, &point);
        if !wrong.is_empty() && self.faults.is_none() {
            return wrong.into_iter().for_each(|wrong| self.note(wrong));
        }
        let identity = Identity {
            keys,
            rounds: rounds_of_budget(budget, &algorithm.spec, &problem.spec, oracle),
            until: budget.until,
            record: self.record.clone(),
            start: start.clone(),
            problem: problem.spec.clone(),
            algorithm: algorithm.spec.clone(),
        };
        let key_of_others = (GridPoint { problem: 0, algorithm: 0, ..reads }, identity.rounds);
        let known = others.entry(key_of_others);
        let other = known.or_insert_with(|| self.other_parts(grid, reads, &identity));
        let [problems, algorithms] = &self.texts;
        let text_of_problem = &problems[problem.text.clone()];
        let hash =
            hash_of_tables([&other.text, text_of_problem, &algorithms[algorithm.text.clone()]]);
        if let Some(earlier) = self.earlier_cell(hash) {
            if self.faults.is_none() {
                let message = self.message_on_repeated(earlier);
                self.note(diagnostic_under(self.root, entry, choice, message));
            }
            return;
        }
        let parts = [&problem.settings, &algorithm.settings, &other.settings];
        let cell = Cell {
            id: CellId::from_hash(&hash),
            settings: self.shapes.settings(parts),
            shared: self.shared(grid, reads, entry, &identity),
            identity,
        };
        if let (Some(faults), Some(first)) = (&mut self.faults, wrong.into_iter().next()) {
            faults.insert(cell.id, first.message);
        }
        self.cells.push(cell);
    }

    /// The keys that determine the runs of cells with this oracle, which all these cells share.
    fn keys(&mut self, oracle: Oracle) -> Arc<RunKeys> {
        let known = self.keys.iter().find(|keys| keys.oracle == oracle).cloned();
        known.unwrap_or_else(|| {
            let keys = Arc::new(RunKeys {
                numerics: NUMERICS,
                seed: self.manifest.seed,
                noise_seed: self.manifest.noise_seed.filter(|seed| *seed != self.manifest.seed),
                replicates: candidates::replicates(self.manifest),
                instances: self.manifest.instances.unwrap_or(1),
                fresh: false,
                oracle,
                instance: self.manifest.instance,
            });
            self.keys.push(keys.clone());
            keys
        })
    }

    /// What a cell shares with its neighbours: the value of the cell before, if it is equal, so that it is in memory
    /// once.
    fn shared(
        &mut self,
        grid: &Grid<'_>,
        point: GridPoint,
        entry: &Arc<str>,
        identity: &Identity,
    ) -> Arc<SharedByCells> {
        let custom = &self.manifest.definitions;
        let kind = identity.algorithm.kind();
        let shared = SharedByCells {
            label: identity.algorithm.label().to_owned(),
            varied: self.varied(grid, point),
            entry: entry.clone(),
            custom_place: custom.iter().position(|own| own.definition.kind == kind),
        };
        match self.cells.last() {
            Some(before) if *before.shared == shared => before.shared.clone(),
            _ => Arc::new(shared),
        }
    }

    /// Notes what is wrong, once: many cells have one fault.
    fn note(&mut self, wrong: Diagnostic) {
        if self.found.1.insert(wrong.clone()) {
            self.found.0.push(wrong);
        }
    }

    /// Makes the problem at a grid point, with the hashes of its files, what is wrong with it, its canonical text and
    /// settings. The text has the hashes of files, and the settings have names in place of those that the grid varies.
    fn problem(&mut self, grid: &Grid<'_>, point: GridPoint) -> SpecParts<problem::Spec> {
        let mut spec = problem::Spec::clone(grid.problem.value(point.problem));
        let mut faults = self.hashes.resolve(&mut spec);
        faults.extend(spec.check());
        let axes = grid.problem.axes(point.problem);
        let (text, mut settings) = text_and_settings("problem", &spec);
        if let Some(named) = self.with_file_names(&spec, axes) {
            settings = text_and_settings("problem", &named).1;
        }
        if faults.is_empty() {
            match self.found_penalty(&spec) {
                Ok(Some(lambda)) => {
                    let lambda = Setting::Number(settings::rounded_to_six(lambda));
                    settings.insert(format!("problem.{}.l2", spec.kind()), lambda);
                }
                Ok(None) => {}
                Err(fault) => faults.push(fault),
            }
        }
        self.add_defaults(&mut settings, axes, &grid.choice);
        let text = appended(&mut self.texts[0], &text);
        SpecParts { spec: Arc::new(spec), faults, text, settings: self.shapes.part(settings) }
    }

    /// λ on the first instance of a problem, if it is written as a multiple of the smoothness of its losses.
    ///
    /// # Errors
    /// Why it is not known.
    fn found_penalty(&mut self, spec: &problem::Spec) -> Result<Option<f64>, Fault> {
        let keys = self.keys(Oracle::default());
        let found = self.hashes.with_number_as_penalty(spec, keys.instance_seed(keys.seed, 0))?;
        Ok(found.and_then(|mut spec| spec.penalty_mut().map(|penalty| penalty.value())))
    }

    /// The problem with names of files in place of the hashes of their contents, for the files that the grid varies:
    /// readers tell files apart by names. `None` if no file varies. Files of equal contents have one name, as they
    /// make one cell.
    fn with_file_names(
        &mut self,
        spec: &problem::Spec,
        axes: &[GridAxis],
    ) -> Option<problem::Spec> {
        let kind = spec.kind();
        let mut named = spec.clone();
        let mut varies = false;
        for (key, file) in named.files() {
            let path = format!("problem.{kind}.{key}");
            let Some(hash) = file.sha256.take_if(|_| {
                axes.iter().any(|axis| {
                    let rest = path.strip_prefix(&*axis.path);
                    axis.len > 1
                        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                })
            }) else {
                continue;
            };
            varies = true;
            // Strings of other tables, such as the name by which a claim selects a file, change no name.
            let texts = self
                .problem_texts
                .get_or_insert_with(|| self.root.child("problem").map_or(Vec::new(), texts_of));
            let name = shortest_name(&file.path, texts);
            file.path = self.file_names.entry(hash).or_insert_with(|| name.to_owned()).clone();
        }
        varies.then_some(named)
    }

    /// Makes the algorithm at a grid point, with what is wrong with it, its canonical text and settings. Where a
    /// fraction of the clients takes part, it becomes a number of clients, if `clients` is known. Epochs become the
    /// numbers of local steps that they are on `instance`, and multiples of constants the numbers that they are there,
    /// which are their settings; it is given if there are any. One setting follows from others: `path-length`, the step
    /// size times the most local steps of a client, of the algorithm's first run.
    fn algorithm(
        &mut self,
        grid: &Grid<'_>,
        point: GridPoint,
        clients: Option<usize>,
        instance: Option<&FirstInstance>,
    ) -> SpecParts<algorithm::Spec> {
        let mut spec = grid.algorithm.value(point.algorithm).clone();
        if let (Some(clients), Some(cohort)) = (clients, spec.cohort()) {
            Arc::make_mut(&mut spec).set_cohort(cohort.among(clients));
        }
        let mut faults = Vec::new();
        if let Some(FirstInstance { instance, constants }) = instance {
            let mut resolved = algorithm::Spec::clone(&spec);
            faults = resolved.resolve(&**instance, constants);
            spec = Arc::new(resolved.with_steps_of_epochs(&**instance).into_owned());
        }
        let (text, mut settings) = text_and_settings("algorithm", &*spec);
        // The table as a whole is another long text in nearly every cell.
        settings.retain(|path, _| path.matches('.').count() > 1);
        for (key, _, found) in spec.multiples() {
            let number = found.map(|found| Setting::Number(settings::rounded_to_six(found)));
            let path = format!("algorithm.{}.{key}", spec.kind());
            settings.extend(number.map(|number| (path, number)));
        }
        let terms = &spec.components()[0].terms;
        let length = Setting::Number(terms.step_size * terms.most_steps() as f64);
        settings.insert("path-length".into(), length);
        self.add_defaults(&mut settings, grid.algorithm.axes(point.algorithm), &grid.choice);
        faults.extend(spec.check());
        let settings = self.shapes.part(settings);
        SpecParts { spec, faults, text: appended(&mut self.texts[1], &text), settings }
    }

    /// Makes the canonical text and the settings of a cell other than its problem and its algorithm. The keys of the
    /// budget are settings and no part of the text, which has the number of rounds that they come to.
    fn other_parts(
        &mut self,
        grid: &Grid<'_>,
        point: GridPoint,
        identity: &Identity,
    ) -> OtherParts {
        let mut table = identity.canonical();
        table.retain(|key, _| key != "problem" && key != "algorithm");
        let mut all = BTreeMap::new();
        for top in ["start", "oracle", "rounds"] {
            settings::add_values(&mut all, top, &table[top]);
        }
        let (_, mut budget) = text_and_settings("budget", &**grid.budget.value(point.budget));
        budget.remove("budget");
        all.extend(budget);
        self.add_defaults(&mut all, grid.start.axes(point.start), &grid.choice);
        OtherParts { text: table.to_string(), settings: self.shapes.part(all) }
    }

    /// Adds to the settings of a table the values on its axes that are defaults: these are not written into the
    /// identity, but figures and claims name them, since cells differ by them.
    fn add_defaults(
        &self,
        settings: &mut BTreeMap<String, Setting>,
        axes: &[GridAxis],
        choice: &Choice,
    ) {
        for axis in axes.iter().filter(|axis| axis.len > 1) {
            let name = setting_path(&axis.path);
            if let (false, Some((node, true))) =
                (settings.contains_key(&name), find_node(self.root, &axis.path, choice))
            {
                settings.extend(settings::from_value(&node.value).map(|value| (name, value)));
            }
        }
    }

    /// The paths of the settings that vary over the axes of a grid point.
    fn varied(&mut self, grid: &Grid<'_>, point: GridPoint) -> Arc<[String]> {
        let paths = || grid.axes(point).filter(|axis| axis.len > 1).map(|axis| &axis.path);
        if !paths().eq(&self.varied.0) {
            let settings = paths().map(|path| setting_path(path)).collect();
            self.varied = (paths().cloned().collect(), settings);
        }
        self.varied.1.clone()
    }
}

/// The slot at a place of a list, which is made long enough.
fn slot<T>(list: &mut Vec<Option<T>>, number: usize) -> &mut Option<T> {
    if list.len() <= number {
        list.resize_with(number + 1, || None);
    }
    &mut list[number]
}

/// Appends a text to all others, and returns where it is there.
fn appended(all: &mut String, text: &str) -> Range<usize> {
    let from = all.len();
    all.push_str(text);
    from..all.len()
}

/// The first 8 bytes of the hash of the canonical text that these tables make: the other parts, the problem and the
/// algorithm, as [`Identity`] has its fields, with an empty line between. They are the cell's id.
fn hash_of_tables(texts: [&str; 3]) -> [u8; 8] {
    let mut sha = Sha256::new();
    for (i, text) in texts.iter().enumerate() {
        sha.update(if i == 0 { "" } else { "\n" });
        sha.update(text);
    }
    *sha.finalize().first_chunk().expect("a hash has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_as_few_folders_as_tell_them_apart() {
        for (paths, names) in [
            (["data/one.csv", "data/two.csv", "t"], ["one.csv", "two.csv", "t"]),
            (["a/x.csv", "b/x.csv", "y.csv"], ["a/x.csv", "b/x.csv", "y.csv"]),
            (["x.csv", "b/x.csv", "c/b/x.csv"], ["x.csv", "b/x.csv", "c/b/x.csv"]),
            // Letters are no folder.
            (["d/mine.csv", "d/e.csv", "t"], ["mine.csv", "e.csv", "t"]),
            (["same.csv", "same.csv", "t"], ["same.csv", "same.csv", "t"]),
        ] {
            let texts = paths.map(str::to_owned);
            assert_eq!(paths.map(|path| shortest_name(path, &texts)), names);
        }
    }
}
