//! The comparison of two sides: what cannot be compared, which cells were removed and added, which have
//! the same bits, and which changed.
//!
//! Cells of both sides are compared if they have the same id, which is a hash of all their settings, or if they are
//! counterparts ([`super::pairing`]): cells of one algorithm that differ in a few settings.
//!
//! *Invariant*: cells with equal digests enter no statistics, nor do cells whose problem,
//! instance or start differ; diverged replicates are never averaged away; timings are no
//! part of any verdict.

use super::claims::{self, ClaimChange};
use super::judge::{self, Change, ChangeVerdict, Options};
use super::names::CellNames;
use super::pairing::{self, Agree, OtherSetting, Pair};
use super::side::{SCHEMA, Side, SideCell, SideExperiment};
use exactfed_runner::plan::CellId;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;

/// An experiment that both sides have, and no cell of it can be compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Incomparable {
    /// Its name.
    pub experiment: String,
    /// What differs: `schema`, `seed`, `noise seed` or `manifest`.
    pub what: &'static str,
    /// What the first side has.
    pub before: String,
    /// What the second side has.
    pub after: String,
}

/// A cell and its counterpart on the other side, which has another problem, instance or start. Their errors are
/// distances from another θ*, or of runs with another way to go, so that they are listed and not compared.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherProblem {
    /// Its experiment.
    pub experiment: String,
    /// Name of the algorithm, with the settings that distinguish it.
    pub name: String,
    /// The two cells.
    pub pair: Pair,
    /// Whether both cells have the same records and the same test set, if any, and differ only in how the records are
    /// divided among clients: then losses and accuracies on the test set can be compared.
    pub has_same_records: bool,
}

/// A cell as lists name it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedCell {
    /// Its experiment.
    pub experiment: String,
    /// Its id.
    #[serde(rename = "cell")]
    pub id: CellId,
    /// Name of the algorithm, with the settings that distinguish it.
    pub name: String,
}

/// The time that cells of an experiment took, summed over the cells whose time both sides store. It enters no verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// The name of the experiment.
    pub experiment: String,
    /// The number of these cells.
    pub cells: usize,
    /// Their time in seconds of one thread, before and after.
    pub seconds: (f64, f64),
}

/// All that a comparison of two sides found. `exactfed diff` prints it.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Names of the sides, before and after.
    pub sides: (String, String),
    /// The largest relative change of an error that counts as none.
    pub margin: f64,
    /// Experiments without a cell that can be compared.
    pub incomparable: Vec<Incomparable>,
    /// Cells that have counterparts on other problems, with which they are not compared.
    pub problems: Vec<OtherProblem>,
    /// Cells that only the second side has and that have no counterpart, with or without results.
    pub added: Vec<ListedCell>,
    /// Cells that only the first side has and that have no counterpart, with or without results.
    pub removed: Vec<ListedCell>,
    /// The number of cells with the same id and the same bits on both sides.
    pub identical: usize,
    /// Cells whose bits changed, or that have sound results on one side alone, and cells with counterparts of other
    /// settings; the worst verdict first. A cell, or a pair, without sound results on both sides is in no list.
    pub changed: Vec<Change>,
    /// How many of the changed cells were tested for a difference, all together as one family.
    pub tested: usize,
    /// Claims whose verdict changed, or that one side does not have; those that fail first.
    pub claims: Vec<ClaimChange>,
    /// Experiments with compared cells whose claims were not judged on one side, so that their claims are not compared.
    pub without_claims: Vec<String>,
    /// How long runs took, by experiment.
    pub timings: Vec<Timing>,
}

/// A kind of difference between two sides that `exactfed diff` may count as a failure: `--fail-on` names the classes
/// that make its exit code 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Errors that rose.
    Worse,
    /// Replicates that diverge and did not.
    Diverged,
    /// Cells without sound results that had them.
    Failed,
    /// Claims that are refuted and were not, unless that is expected.
    Claims,
    /// Cells that only the first side has.
    Removed,
    /// Cells that only the second side has.
    Added,
    /// Cells whose runs do not suffice for a verdict.
    Underpowered,
    /// Experiments that cannot be compared, and cells whose problem is another.
    Incomparable,
    /// Cells whose bits changed, whatever the verdict.
    Changed,
}

impl Class {
    /// All of them, with their names on the command line, in the order of the variants, by which `name` finds one.
    pub const ALL: [(Self, &str); 9] = [
        (Self::Worse, "worse"),
        (Self::Diverged, "diverged"),
        (Self::Failed, "failed"),
        (Self::Claims, "claims"),
        (Self::Removed, "removed"),
        (Self::Added, "added"),
        (Self::Underpowered, "underpowered"),
        (Self::Incomparable, "incomparable"),
        (Self::Changed, "changed"),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl Comparison {
    /// How many differences of a class there are. Classes overlap: a cell that is worse has changed as well.
    pub fn count(&self, class: Class) -> usize {
        match class {
            Class::Worse => self.count_verdict(ChangeVerdict::Worse),
            Class::Diverged => self.count_verdict(ChangeVerdict::NewlyDiverged),
            Class::Failed => self.count_verdict(ChangeVerdict::Failed),
            Class::Claims => self.claims.iter().filter(|c| c.fails).count(),
            Class::Removed => self.removed.len(),
            Class::Added => self.added.len(),
            Class::Underpowered => self.count_verdict(ChangeVerdict::Underpowered),
            Class::Incomparable => self.incomparable.len() + self.problems.len(),
            Class::Changed => self.changed.len(),
        }
    }

    /// Whether both sides have the same cells with the same bits, and the same verdicts on claims. Cells without sound
    /// results on both sides do not count as changed, and neither do timings.
    pub fn is_unchanged(&self) -> bool {
        let lone = self.added.len() + self.removed.len() + self.claims.len();
        lone + self.count(Class::Incomparable) + self.count(Class::Changed) == 0
    }

    /// How many changed cells have this verdict.
    pub fn count_verdict(&self, verdict: ChangeVerdict) -> usize {
        self.changed.iter().filter(|change| change.verdict == verdict).count()
    }

    /// The changed cells in the order of a page: those whose verdict says that results changed,
    /// the worst first, and then the others.
    pub fn largest_first(&self) -> impl Iterator<Item = &Change> {
        let changes = self.changed.iter().filter(|c| c.verdict.is_change());
        let others = self.changed.iter().filter(|c| !c.verdict.is_change());
        changes.chain(others)
    }

    /// Whether nothing was compared, for which `exactfed diff` has an exit code of its own: no cell that has sound
    /// results on a side is on both sides, or has a counterpart on the same problem.
    pub fn is_empty(&self) -> bool {
        self.identical == 0 && self.changed.is_empty()
    }
}

/// Compares all experiments of two sides, cell by cell. The final errors and claims that a comparison needs must be
/// in both sides already; no file is read. If one side is a results folder of a foreign schema, nothing is compared,
/// and the comparison says so in place of an experiment.
pub fn compare(before: &Side, after: &Side, options: &Options) -> Comparison {
    let mut out = Comparison {
        sides: (before.name.clone(), after.name.clone()),
        margin: options.margin,
        ..Comparison::default()
    };
    if before.foreign.is_some() || after.foreign.is_some() {
        out.incomparable.push(Incomparable {
            experiment: "everything".into(),
            what: "schema",
            before: schema_text(before),
            after: schema_text(after),
        });
        return out;
    }
    let mut names: BTreeSet<&String> = before.experiments.keys().collect();
    names.extend(after.experiments.keys());
    for name in names {
        match (before.experiments.get(name), after.experiments.get(name)) {
            (Some(old), Some(new)) => compare_experiment(name, old, new, options, &mut out),
            (Some(old), None) => {
                out.removed.extend(lone_cells(name, old, old.cells.keys().copied()));
            }
            (None, Some(new)) => {
                out.added.extend(lone_cells(name, new, new.cells.keys().copied()));
            }
            (None, None) => {}
        }
    }
    out.tested = judge::test_together(&mut out.changed, options);
    out.changed.sort_by(|a, b| {
        let by_verdict = a.verdict.cmp(&b.verdict);
        let by_severity = b.severity().total_cmp(&a.severity());
        let by_name = (&a.experiment, &a.pair.after).cmp(&(&b.experiment, &b.pair.after));
        by_verdict.then(by_severity).then(by_name)
    });
    out.claims.sort_by_key(|claim| !claim.fails);
    out
}

/// The schema of a side's results folder, in the words of a message that it cannot be compared.
fn schema_text(side: &Side) -> String {
    match side.foreign {
        Some(schema) => schema.to_string(),
        None => "the one that is read here".into(),
    }
}

/// Whether a setting in which `cell` differs from its counterpart only says how the records of a data set are divided
/// among clients, so that the records and the test set are the same whatever its value. The column of a split is one
/// that says more, unless the settings name the features and keep all records: without `features` the column is no
/// feature, and with `missing = "drop"` the records without a client are dropped.
fn is_of_partition(setting: &OtherSetting, cell: &SideCell) -> bool {
    let Some((problem, key)) = setting.path.split_once(".dataset.") else { return false };
    match key.split('.').next().unwrap_or_default() {
        "weights" | "clients" => true,
        "split" if key == "split.column" => {
            // If these differed, they would be settings that differ too, and are not of the partition.
            let features = cell.settings.at_path(&format!("{problem}.dataset.features"));
            let missing = cell.settings.at_path(&format!("{problem}.dataset.missing"));
            let drops_records = missing.is_some_and(|missing| missing.to_string() == "drop");
            features.is_some() && !drops_records
        }
        "split" => true,
        _ => false,
    }
}

/// A pair of cells of an experiment on different problems, for the list of what is not compared. `after` is the
/// experiment on the side after, and `names` are those of its cells.
fn other_problem(
    experiment: &str,
    pair: Pair,
    after: &SideExperiment,
    names: &CellNames,
) -> OtherProblem {
    let cell = &after.cells[&pair.after];
    OtherProblem {
        experiment: experiment.into(),
        name: names.name(cell),
        has_same_records: pair.other.iter().all(|setting| is_of_partition(setting, cell)),
        pair,
    }
}

/// Compares an experiment that both sides have, `old` before and `new` after, and adds what it finds to `out`: lone
/// cells, pairs on other problems, identical and changed cells, timings and claims; or that no cell can be compared,
/// and why. Changes whose errors must be tested together with those of other experiments have no final verdict yet:
/// [`judge::test_together`] gives it.
fn compare_experiment(
    name: &str,
    old: &SideExperiment,
    new: &SideExperiment,
    options: &Options,
    out: &mut Comparison,
) {
    if old.schema != SCHEMA || new.schema != SCHEMA {
        out.incomparable.push(incomparable(name, old, new));
        return;
    }
    let mut common: Vec<CellId> = Vec::new();
    let mut added: Vec<CellId> = Vec::new();
    for id in new.cells.keys() {
        if old.cells.contains_key(id) {
            common.push(*id);
        } else {
            added.push(*id);
        }
    }
    let mut removed: Vec<CellId> = old.cells.keys().copied().collect();
    removed.retain(|id| !new.cells.contains_key(id));
    let mut pairs = pairing::take_pairs(old, &mut removed, new, &mut added, Agree::Problem);
    let others = pairing::take_pairs(old, &mut removed, new, &mut added, Agree::Kinds);
    let nothing_compared = common.is_empty() && pairs.is_empty();
    let both_have_cells = !old.cells.is_empty() && !new.cells.is_empty();
    if nothing_compared && others.is_empty() && both_have_cells {
        out.incomparable.push(incomparable(name, old, new));
        return;
    }
    out.removed.extend(lone_cells(name, old, removed));
    out.added.extend(lone_cells(name, new, added));
    let names = CellNames::new(new);
    out.problems.extend(others.into_iter().map(|pair| other_problem(name, pair, new, &names)));
    if nothing_compared {
        // Claims on other problems are other claims.
        return;
    }
    for id in &common {
        match (old.cells[id].digest(), new.cells[id].digest()) {
            (Some(a), Some(b)) if a == b => out.identical += 1,
            _ => pairs.push(Pair { before: *id, after: *id, other: Vec::new() }),
        }
    }
    // No result on either side is no change.
    pairs.retain(|pair| {
        old.cells[&pair.before].digest().is_some() || new.cells[&pair.after].digest().is_some()
    });
    // Resampling takes long. Each cell has a stream of its own, so that the order does not matter.
    let changes: Vec<Change> = pairs
        .into_par_iter()
        .map(|pair| {
            let was = &old.cells[&pair.before];
            let is = &new.cells[&pair.after];
            Change::new(name, names.name(is), pair, was, is, options)
        })
        .collect();
    out.changed.extend(changes);
    out.timings.extend(timing(name, &common, old, new));
    match (&old.claims, &new.claims) {
        (Some(old), Some(new)) => out.claims.extend(claims::changes(name, old, new)),
        _ => out.without_claims.push(name.to_owned()),
    }
}

/// The time of an experiment's cells on both sides. `common` are the ids that both sides have; counterparts with other
/// settings are not timed. `None` if no cell has a time on both sides, as with a report, which stores none.
fn timing(
    name: &str,
    common: &[CellId],
    old: &SideExperiment,
    new: &SideExperiment,
) -> Option<Timing> {
    let mut timing = Timing { experiment: name.into(), cells: 0, seconds: (0.0, 0.0) };
    for id in common {
        if let (Some(before), Some(after)) = (old.cells[id].seconds, new.cells[id].seconds) {
            timing.cells += 1;
            timing.seconds = (timing.seconds.0 + before, timing.seconds.1 + after);
        }
    }
    if timing.cells > 0 { Some(timing) } else { None }
}

/// The first reason why no cell of an experiment can be compared: the schema, the seed, or the seed of the noise
/// differs, or else the manifest, whose cells are all others. It is for experiments that were found to have a schema
/// that is not read, or no cell in common and no counterparts; it does not check that.
fn incomparable(name: &str, old: &SideExperiment, new: &SideExperiment) -> Incomparable {
    let (what, before, after) = if old.schema != SCHEMA || new.schema != SCHEMA {
        ("schema", old.schema.to_string(), new.schema.to_string())
    } else if old.seed != new.seed {
        ("seed", old.seed.to_string(), new.seed.to_string())
    } else if old.noise_seed() != new.noise_seed() {
        ("noise seed", old.noise_seed(), new.noise_seed())
    } else {
        ("manifest", other_cells_text(old), other_cells_text(new))
    };
    Incomparable { experiment: name.into(), what, before, after }
}

/// What is said of a side with which no cell is shared: how many cells it has.
fn other_cells_text(side: &SideExperiment) -> String {
    format!("{} other cells", side.cells.len())
}

/// The cells with these ids, which are on this side alone, as lists name them: with the settings that distinguish them
/// from the other cells of this side. Cells without results are listed too.
fn lone_cells(
    experiment: &str,
    side: &SideExperiment,
    ids: impl IntoIterator<Item = CellId>,
) -> Vec<ListedCell> {
    let names = CellNames::new(side);
    let mut lone = Vec::new();
    for id in ids {
        let name = names.name(&side.cells[&id]);
        lone.push(ListedCell { experiment: experiment.into(), id, name });
    }
    lone
}
