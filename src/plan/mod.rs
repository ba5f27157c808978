//! What a manifest means: its cells, each with the content id that names its
//! results.
//!
//! *Invariant*: a cell id is a hash of what determines the numbers and of
//! nothing else; whitespace, key order, titles, labels and figures leave it.

mod claims;
mod grid;
mod settings;
mod validate;

use crate::data::Folder;
use crate::manifest::document::parse;
use crate::manifest::read::{Axis, read};
use crate::manifest::{
    BURN_IN, Diagnostic, Instance, Manifest, Node, Oracle, Record, Rejected, Source, Spacing, Start,
};
use crate::problem::Fault;
use crate::{algorithm, problem};
pub use claims::selected;
use serde::Serialize;
pub use settings::{Setting, SettingKey, Settings, short};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
pub use validate::{Drawn, place_of};

/// Version of the numbers: it enters every cell id, and rises when a release
/// changes what a cell computes.
pub const NUMERICS: u32 = 1;

/// Cells beyond which a manifest is refused.
const MOST_CELLS: usize = 1_000_000;

/// A manifest with its meaning.
pub struct Plan {
    /// Name of the experiment: its path below `experiments/`, without `.toml`.
    pub experiment: String,
    /// The manifest as it was given.
    pub source: Source,
    /// The manifest at the first value of every axis.
    pub manifest: Manifest,
    /// The cells, algorithm by algorithm, the first axis outermost.
    pub cells: Vec<Cell>,
}

/// One point of the grid: one algorithm on one problem, all its replicates.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Content id: sixteen hexadecimal digits.
    pub id: String,
    /// What determines the numbers.
    pub identity: Identity,
    /// Name of the algorithm in figures.
    pub label: String,
    /// Every setting by its path.
    pub settings: Settings,
    /// Paths of the settings that the grid varies.
    pub varied: Vec<String>,
    /// Path of the algorithm's entry in the manifest.
    pub entry: String,
}

/// What determines a cell's numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Identity {
    /// [`NUMERICS`].
    pub numerics: u32,
    /// Seed of every stream.
    pub seed: u64,
    /// Independent runs.
    pub replicates: u64,
    /// Whether oracles are noisy.
    pub oracle: Oracle,
    /// Whether replicates share one instance.
    #[serde(skip_serializing_if = "Instance::is_fixed")]
    pub instance: Instance,
    /// T.
    pub rounds: u64,
    /// What is kept.
    pub record: Record,
    /// θ_0.
    pub start: Start,
    /// The problem.
    pub problem: problem::Spec,
    /// The algorithm.
    pub algorithm: algorithm::Spec,
}

impl Identity {
    /// The canonical text that is hashed, also the body of `cell.toml`.
    pub fn canonical(&self) -> toml::Table {
        toml::Table::try_from(self).expect("settings are plain tables")
    }

    fn id(&self) -> String {
        let text = self.canonical().to_string();
        hex(&Sha256::digest(text.as_bytes())[..8])
    }

    /// The rounds that are recorded, from 0 to T.
    pub fn recorded(&self) -> Vec<u64> {
        recorded(&self.record, self.rounds)
    }

    /// Local steps of all clients in one round of one replicate, in the mean.
    pub fn steps_per_round(&self, clients: usize) -> u64 {
        let components = self.algorithm.components();
        components.iter().map(|c| c.terms.steps_of_all(clients)).sum()
    }

    /// Local steps of all clients of all replicates.
    pub fn client_steps(&self, clients: usize) -> u64 {
        self.steps_per_round(clients).saturating_mul(self.rounds).saturating_mul(self.replicates)
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Points that are recorded where a manifest says nothing.
const POINTS: u64 = 200;

fn recorded(record: &Record, rounds: u64) -> Vec<u64> {
    let mut all: Vec<u64> = match (record.every, record.spacing) {
        (Some(every), _) => (0..=rounds).step_by(every as usize).collect(),
        (None, Spacing::Linear) => {
            let points = record.points.unwrap_or(POINTS).min(rounds);
            (0..=points)
                .map(|i| (u128::from(i) * u128::from(rounds) / u128::from(points.max(1))) as u64)
                .collect()
        }
        (None, Spacing::Log) => {
            let points = record.points.unwrap_or(POINTS);
            let top = libm::log(rounds as f64);
            let at = |i: u64| libm::exp(top * i as f64 / points as f64) as u64;
            std::iter::once(0).chain((0..points).map(at)).collect()
        }
    };
    all.push(rounds);
    all.retain(|&t| t <= rounds);
    all.dedup();
    all
}

impl Plan {
    /// Reads a manifest and gives it its meaning.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn new(experiment: String, source: Source) -> Result<Self, Rejected> {
        let root = parse(&source)?;
        let reject = |found| Rejected::new(&source, validate::overrides(&root, &source, found));
        let (manifest, axes) = read::<Manifest>(&root, Manifest::may_vary).map_err(reject)?;
        let mut found = validate::manifest(&root, &manifest);
        let mut hashes = Hashes { folder: folder(&source), known: source.files.clone() };
        let cells = match cells(&root, &manifest, &axes, &mut hashes) {
            Ok(cells) => cells,
            Err(more) => {
                found.extend(more);
                return Err(reject(found));
            }
        };
        found.extend(validate::labels(&root, &manifest));
        found.extend(validate::figures(&root, &manifest, &cells));
        found.extend(claims::claims(&root, &manifest, &cells));
        if !found.is_empty() {
            return Err(reject(found));
        }
        let source = Source { files: hashes.known, ..source };
        Ok(Self { experiment, source, manifest, cells })
    }

    /// The data files beside the manifest.
    pub fn folder(&self) -> Folder {
        folder(&self.source)
    }
}

fn folder(source: &Source) -> Folder {
    Folder::new(Path::new(&source.name).parent().unwrap_or(Path::new("")))
}

/// Hashes of the data files, each read once.
struct Hashes {
    folder: Folder,
    known: BTreeMap<String, String>,
}

impl Hashes {
    /// Writes down in a problem's settings what its files hold.
    fn resolve(&mut self, problem: &mut problem::Spec) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (key, file) in problem.files() {
            if let Some(hash) = self.known.get(&file.path) {
                file.sha256 = Some(hash.clone());
                continue;
            }
            match self.folder.hash(&file.path) {
                Ok(hash) => {
                    self.known.insert(file.path.clone(), hash.clone());
                    file.sha256 = Some(hash);
                }
                Err(message) => faults.push(Fault::new(key, format!(": {message}"))),
            }
        }
        faults
    }
}

fn cells(
    root: &Node,
    manifest: &Manifest,
    axes: &[Axis],
    hashes: &mut Hashes,
) -> Result<Vec<Cell>, Vec<Diagnostic>> {
    let mut found = Vec::new();
    let mut cells: Vec<Cell> = Vec::new();
    let mut labels: HashMap<String, String> = HashMap::new();
    for mut entry in grid::points(root, manifest, axes, MOST_CELLS)? {
        for mut point in std::mem::take(&mut entry.all) {
            let unread = hashes.resolve(&mut point.manifest.problem);
            let point = &point;
            let faults = validate::cell(root, &point.manifest, &entry, &point.choice, unread);
            if !faults.is_empty() {
                found.extend(faults);
                continue;
            }
            let cell = cell(root, &entry, point);
            match labels.insert(cell.id.clone(), cell.label.clone()) {
                Some(label) => found.push(validate::twin(root, &entry, &point.choice, &label)),
                None => cells.push(cell),
            }
        }
    }
    if found.is_empty() { Ok(cells) } else { Err(found) }
}

fn cell(root: &Node, entry: &grid::Points, point: &grid::Point) -> Cell {
    let manifest = &point.manifest;
    let algorithm = entry.spec(manifest);
    let identity = Identity {
        numerics: NUMERICS,
        seed: manifest.seed,
        replicates: manifest.replicates,
        oracle: manifest.oracle,
        instance: manifest.instance,
        rounds: rounds(manifest, algorithm.scale().1),
        record: canonical(&manifest.record),
        start: manifest.start.clone(),
        problem: manifest.problem.clone(),
        algorithm,
    };
    let mut settings = Settings::of(&identity, &manifest.budget);
    for path in &point.varied {
        // A default is not part of the identity, but tells cells apart.
        let name = grid::setting_path(path);
        if let (false, Some((node, true))) =
            (settings.0.contains_key(&name), validate::walk(root, path, &point.choice))
        {
            settings.0.extend(settings::of_value(&node.value).map(|value| (name, value)));
        }
    }
    Cell {
        id: identity.id(),
        label: identity.algorithm.label().to_owned(),
        settings,
        varied: point.varied.iter().map(|path| grid::setting_path(path)).collect(),
        entry: entry.path(),
        identity,
    }
}

/// A record in which defaults are written out, so that writing them changes no id.
fn canonical(record: &Record) -> Record {
    let points = record.every.is_none().then(|| record.points.unwrap_or(POINTS));
    let burn_in = record.burn_in.filter(|share| *share != BURN_IN);
    Record { points, burn_in, ..record.clone() }
}

/// T from the budget and H.
fn rounds(manifest: &Manifest, local_steps: u64) -> u64 {
    let budget = &manifest.budget;
    let from_steps = budget.local_steps.map(|steps| steps.div_ceil(local_steps.max(1)));
    let rounds = budget.rounds.or(from_steps).unwrap_or(0);
    rounds.max(budget.min_rounds.unwrap_or(0))
}

#[cfg(test)]
mod tests;
