//! The cells of a manifest, each with the content id that names its results.
//!
//! *Invariant*: a cell id is a hash of what determines the numbers and of nothing else;
//! whitespace, key order, titles, labels and figures do not change it.

mod amendments;
mod candidates;
mod canonical;
mod cells;
mod claims;
mod costs;
mod extension;
mod figures;
mod frontier;
mod grid;
mod identity;
mod kinds;
mod phase;
mod places;
mod race;
mod replicates;
mod selection;
mod settings;
mod tables;
mod tune;
mod tuning;
mod validate;

use crate::data::DataFolder;
pub use crate::hex::CellId;
use crate::manifest::axis::Choice;
use crate::manifest::claim::ClaimKeys;
use crate::manifest::document::parse;
use crate::manifest::figure::FigureKeys;
use crate::manifest::read::read;
use crate::manifest::schema::ManifestSchema;
use crate::manifest::{
    BURN_IN, Budget, Diagnostic, Manifest, Node, Oracle, Quantity, Record, Rejected, Source,
    Spacing,
};
pub use canonical::CanonicalSettings;
pub use costs::{NEEDS_OPTIMUM, unrecorded};
use exactfed_core::problem::Fault;
use exactfed_core::problem::arrays::FileSize;
use exactfed_core::{algorithm, problem};
pub use figures::figure_ids;
pub use frontier::FRONTIER_FIGURES;
pub use identity::{Identity, RunKeys};
pub use kinds::{CommonKeys, EvidenceKinds, KindKeys, KindTable, TableKind, UNREAD};
pub use phase::phase_problem;
pub use places::{Checker, place_of};
pub use replicates::sets_replicates;
pub use selection::{selected, shows};
pub use settings::{Setting, Settings, Shapes, leaves, short};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
pub use tuning::{Candidate, CandidateRuns, Decision, FirstRuns, Tuning, TuningEdge, TuningGroup};

/// Version of the numbers: it enters every cell id, and rises when a release
/// changes what a cell computes.
pub const NUMERICS: u32 = 2;

/// Cells beyond which a manifest is refused.
const MOST_CELLS: usize = 1_000_000;

/// A manifest and its cells.
pub struct Plan {
    /// Name of the experiment: its path below `experiments/`, without `.toml`.
    pub experiment: String,
    /// The manifest as it was given.
    pub source: Source,
    /// The manifest at the first value of every axis.
    pub manifest: Manifest,
    /// What the kinds of its claims and figures are.
    pub kinds: &'static EvidenceKinds,
    /// `[[figure.<kind>]]`, kind by kind; none where the kinds are not known.
    pub figure_tables: Vec<KindTable<FigureKeys>>,
    /// `[[claim.<kind>]]`, kind by kind; none where the kinds are not known.
    pub claim_tables: Vec<KindTable<ClaimKeys>>,
    /// The cells, algorithm by algorithm, the first axis outermost.
    pub cells: Vec<Cell>,
    /// The problem of the frontiers, if there are any, with the hashes of its files.
    pub frontier_problem: Option<problem::Spec>,
    /// The ids of the figures, in the order of the manifest.
    pub figures: Vec<String>,
    /// The order of the claims in the manifest, as indices into those of its table.
    pub claims: Vec<usize>,
    /// The settings that are tuned. Then the cells are those of all listed candidates, or of their first runs
    /// where candidates race, until the plan follows their results ([`Plan::following`]).
    pub tuning: Option<Tuning>,
}

/// One point of the grid: one algorithm on one problem, all its replicates. It derefs to what it
/// shares with its neighbours.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Content id.
    pub id: CellId,
    /// What determines the numbers.
    pub identity: Identity,
    /// Every setting by its path.
    pub settings: Settings,
    /// What neighbours in the grid have in common.
    pub shared: Arc<SharedByCells>,
}

impl Deref for Cell {
    type Target = SharedByCells;

    fn deref(&self) -> &SharedByCells {
        &self.shared
    }
}

/// What a cell shares with its neighbours in the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedByCells {
    /// Name of the algorithm in figures.
    pub label: String,
    /// Paths of the settings that the grid varies.
    pub varied: Arc<[String]>,
    /// Path of the algorithm's entry in the manifest.
    pub entry: Arc<str>,
    /// The place of the algorithm among those of the manifest that are defined outside of the
    /// program, if it is one.
    pub custom_place: Option<usize>,
}

/// The default of the number of recorded rounds.
const POINTS: u64 = 200;

impl Record {
    /// The rounds of T that are recorded, from 0 to T.
    pub fn rounds(&self, rounds: u64) -> Vec<u64> {
        let points = self.points.unwrap_or(POINTS);
        let mut all: Vec<u64> = match (self.every, self.spacing) {
            (Some(every), _) => (0..=rounds / every).map(|i| i * every).collect(),
            (None, Spacing::Linear) => {
                let points = points.min(rounds);
                let (top, parts) = (u128::from(rounds), u128::from(points.max(1)));
                (0..=points).map(|i| (u128::from(i) * top / parts) as u64).collect()
            }
            (None, Spacing::Log) => {
                let top = libm::log(rounds as f64);
                let round = |i: u64| libm::exp(top * i as f64 / points as f64) as u64;
                let mut all: Vec<u64> = std::iter::once(0).chain((0..points).map(round)).collect();
                all.dedup();
                all
            }
        };
        all.push(rounds);
        all.retain(|&t| t <= rounds);
        all.dedup();
        all
    }

    /// Number of rounds of T that are recorded, or a few more.
    pub fn points(&self, rounds: u64) -> u64 {
        let points =
            self.every.map_or(self.points.unwrap_or(POINTS), |every| rounds / every.max(1));
        points.min(rounds).saturating_add(2)
    }

    /// A record in which defaults are written out, so that writing them changes no id.
    fn canonical(&self) -> Self {
        let points = self.every.is_none().then(|| self.points.unwrap_or(POINTS));
        let burn_in = self.burn_in.filter(|share| *share != BURN_IN);
        Self { points, burn_in, ..self.clone() }
    }
}

impl Plan {
    /// Reads a manifest and makes its cells.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn new(
        experiment: String,
        source: Source,
        kinds: &'static EvidenceKinds,
    ) -> Result<Self, Rejected> {
        let mut root = parse(&source)?;
        let schema = ManifestSchema::new(kinds.schema(), &source);
        let tuning = candidates::expand(&mut root, &schema);
        let tuning = tuning.map_err(|found| Rejected::new(&source, found))?;
        let reject = |found| {
            Rejected::new(&source, validate::with_hints_for_overrides(&root, &source, found))
        };
        let (mut manifest, axes) = read(&root, &schema, tuning.is_some()).map_err(reject)?;
        let unread = |message| reject(vec![Diagnostic::new(None, "", message)]);
        let [figure, claim] = [&mut manifest.figure, &mut manifest.claim].map(std::mem::take);
        let compared_by = manifest.record.default_quantity();
        if let Some(tune) = &mut manifest.tune
            && !places::is_written(&root, "tune.metric")
        {
            tune.metric = compared_by;
        }
        let tables = KindTable::read("figure", kinds.figures, figure, compared_by);
        let mut figure_tables = tables.map_err(unread)?;
        let claim_tables = KindTable::read("claim", kinds.claims, claim, compared_by);
        let claim_tables = claim_tables.map_err(unread)?;
        let mut found = validate::check_manifest(&root, &manifest);
        let mut hashes = Hashes::new(&source);
        let with = |more: Vec<Diagnostic>| reject([&found[..], &more].concat());
        let cells = cells::cells(&root, &manifest, &axes, &schema, (&mut hashes, None));
        let cells = cells.map_err(with)?;
        let frontier_problem = frontier::frontier_problem(&root, &manifest, &axes, &mut hashes);
        let frontier_problem = frontier_problem.map_err(with)?;
        let mut checker = Checker::new(&root, &manifest, &cells);
        checker.check(kinds, &figure_tables, &claim_tables);
        found.extend(checker.found);
        found.extend(hashes.unused(&source));
        if !found.is_empty() {
            return Err(reject(found));
        }
        let algorithms = manifest.definitions.clone();
        let Hashes { known: files, sizes, .. } = hashes;
        let source = Source { files, sizes, algorithms, ..source };
        if !kinds.figures.is_empty() && figure_tables.is_empty() && !cells.is_empty() {
            let by = (tuning.as_ref(), compared_by);
            figure_tables = figures::default_figures(kinds, &cells, by);
        }
        let all = figure_ids(&manifest, &figure_tables);
        let figures = in_order_of_text(&root, all.iter().map(|(_, path)| &**path));
        let figures = figures.into_iter().map(|place| all[place].0.clone()).collect();
        let claims = in_order_of_text(&root, claim_tables.iter().map(|claim| &*claim.path));
        let mut plan = Self {
            experiment,
            source,
            manifest,
            kinds,
            figure_tables,
            claim_tables,
            cells,
            frontier_problem,
            figures,
            claims,
            tuning,
        };
        plan.begin_race();
        Ok(plan)
    }

    /// The data files beside the manifest.
    pub fn folder(&self) -> DataFolder {
        folder(&self.source)
    }
}

impl Checker<'_> {
    /// Notes what is wrong with all tables but those of the cells.
    fn check(
        &mut self,
        kinds: &EvidenceKinds,
        figures: &[KindTable<FigureKeys>],
        claims: &[KindTable<ClaimKeys>],
    ) {
        self.figures(figures);
        self.claims(claims, &figure_ids(self.manifest, figures));
        self.amendments(claims, kinds.is_none());
        self.frontiers();
        self.phases();
        self.tune();
        self.equal_labels();
        if let Some(at) = self.manifest.compare.at {
            self.at_cost("compare.at", at, Quantity::SqError, |_| true);
        }
    }
}

/// The order of these paths in a manifest's text, as indices.
fn in_order_of_text<'p>(root: &Node, paths: impl Iterator<Item = &'p str>) -> Vec<usize> {
    let places: Vec<_> = paths.map(|path| place_of(root, path, &Choice::new())).collect();
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].cmp(&places[*b]));
    order
}

fn folder(source: &Source) -> DataFolder {
    let base = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    DataFolder::new(base, source.copies.clone(), source.tables, source.in_memory.clone())
}

/// Hashes and sizes of the data files, each read once.
struct Hashes {
    folder: DataFolder,
    known: BTreeMap<String, String>,
    sizes: BTreeMap<String, FileSize>,
}

impl Hashes {
    fn new(source: &Source) -> Self {
        let (known, sizes) = (source.files.clone(), source.sizes.clone());
        Self { folder: folder(source), known, sizes }
    }

    /// The errors of files in memory that no key of the manifest names.
    fn unused(&self, source: &Source) -> Option<Diagnostic> {
        let unused = source.in_memory.keys().find(|name| !self.known.contains_key(*name))?;
        let named: Vec<&str> = self.known.keys().map(String::as_str).collect();
        let diagnostic = Diagnostic::new(None, "", format!("no key names `{unused}` as a file"));
        Some(match named.is_empty() {
            true => diagnostic.allowing("the manifest names no file"),
            false => diagnostic.naming(unused, &named),
        })
    }

    /// The number of clients of a problem, if it is sound and its settings or files say it.
    fn clients(&self, problem: &settings::SpecParts<problem::Spec>) -> Option<usize> {
        problem.faults.is_empty().then(|| problem.spec.clients(&self.folder)).flatten()
    }

    /// Adds to the settings of a problem what its data files hold.
    fn resolve(&mut self, problem: &mut problem::Spec) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (key, file) in problem.files() {
            let path = &file.path;
            if !self.known.contains_key(path) {
                match self.folder.hash(path) {
                    Ok((hash, size)) => {
                        self.known.insert(path.clone(), hash);
                        self.sizes.insert(path.clone(), size);
                    }
                    Err(message) => {
                        faults.push(Fault::new(key, format!(": {message}")));
                        continue;
                    }
                }
            }
            let hash = self.known[path].clone();
            if !self.sizes.contains_key(path) {
                self.sizes.extend(self.folder.size(path, &hash).map(|size| (path.clone(), size)));
            }
            file.size = self.sizes.get(path).copied();
            file.sha256 = Some(hash);
        }
        faults
    }
}

/// T from the budget and what a round costs.
fn rounds(
    budget: &Budget,
    algorithm: &algorithm::Spec,
    problem: &problem::Spec,
    oracle: Oracle,
) -> u64 {
    let local_steps = algorithm.scale().1.max(1);
    let from_steps = budget.local_steps.map(|steps| steps.div_ceil(local_steps));
    let affordable = || {
        let clients = problem.extent().map_or(usize::MAX, |extent| extent.clients);
        let batch = batch(problem, oracle);
        let each = algorithm.components().into_iter().map(|c| c.terms.mean_round(clients, batch));
        let (communications, gradients) =
            each.fold((0.0, 0.0), |(c, g), (more_c, more_g)| (c + more_c, g + more_g));
        let communications = budget.communications.map(|most| most as f64 / communications);
        let gradients = budget.gradients.map(|most| most as f64 / gradients);
        let rounds = communications.into_iter().chain(gradients).reduce(f64::min)?;
        // Means are rounded: what is affordable but for rounding is affordable.
        Some((rounds * (1.0 + 1e-12)) as u64)
    };
    let rounds = budget.rounds.or(from_steps).or_else(affordable).unwrap_or(0);
    rounds.max(budget.min_rounds.unwrap_or(0))
}

/// The oracle evaluations of an oracle call.
fn batch(problem: &problem::Spec, oracle: Oracle) -> u64 {
    if oracle == Oracle::Exact { 1 } else { problem.batch() }
}

#[cfg(test)]
mod tests;
