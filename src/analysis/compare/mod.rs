//! Two sides, experiment by experiment and cell by cell: what cannot be compared,
//! what is gone, what is new, what has the same bits, and what changed, by how
//! much and how surely. docs/DIFF.md says how verdicts are reached.
//!
//! This part reads no file: [`results`] and [`record`] make sides, [`curves`]
//! draws what changed. Streams are common, so replicates are paired.
//!
//! *Invariant*: cells with equal digests enter no statistics, nor do cells whose problem,
//! instance or start differ; diverged replicates are never averaged away; timings are no
//! part of any verdict.

mod claims;
pub mod curves;
mod judge;
mod pairing;
pub mod record;
pub mod results;
mod settings;
mod side;
#[cfg(test)]
mod tests;

pub use claims::{ClaimChange, SideClaim};
use driftbench_runner::plan::Setting;
pub use judge::{Change, ChangeVerdict};
use pairing::Agree;
pub use pairing::Other;
use rayon::prelude::*;
pub use settings::{Settings, Texts};
pub use side::{SCHEMA, Side, SideCell, SideExperiment, SideRuns};
use std::collections::{BTreeMap, BTreeSet};

/// How a comparison judges.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Relative change of an error that counts as none, above 0.
    pub margin: f64,
    /// Squared errors below this are rounding, and count as this.
    pub floor: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { margin: 0.05, floor: crate::stats::ROUNDING_FLOOR }
    }
}

/// An experiment that both sides have, and no cell of it can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Incomparable {
    /// Its name.
    pub experiment: String,
    /// What differs: `schema`, `seed` or `manifest`.
    pub what: &'static str,
    /// What the first side has.
    pub before: String,
    /// What the second side has.
    pub after: String,
}

/// A cell and what would be its counterpart, if its problem, instance and start were the same.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherProblem {
    /// Its experiment.
    pub experiment: String,
    /// Its id before.
    pub was: String,
    /// Its id after.
    pub id: String,
    /// Name of the algorithm, with the settings that tell it apart.
    pub name: String,
    /// Settings that are others.
    pub other: Vec<Other>,
}

/// A cell that one side alone has.
#[derive(Clone, Debug, PartialEq)]
pub struct Lone {
    /// Its experiment.
    pub experiment: String,
    /// Its id.
    pub id: String,
    /// Name of the algorithm, with the settings that tell it apart.
    pub name: String,
}

/// What the cells of an experiment took, where both sides tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Its name.
    pub experiment: String,
    /// Cells that both sides ran.
    pub cells: usize,
    /// Seconds of one thread, before and after.
    pub seconds: (f64, f64),
}

/// Two sides, compared.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Names of the sides.
    pub sides: (String, String),
    /// The margin.
    pub margin: f64,
    /// Experiments without a cell that can be compared.
    pub incomparable: Vec<Incomparable>,
    /// Cells that have counterparts on other problems, which are not compared.
    pub problems: Vec<OtherProblem>,
    /// Cells that only the second side has.
    pub added: Vec<Lone>,
    /// Cells that only the first side has.
    pub removed: Vec<Lone>,
    /// Cells with the same bits in both.
    pub identical: usize,
    /// Cells whose bits changed, the worst verdict first.
    pub changed: Vec<Change>,
    /// Cells among them that were tested together.
    pub tested: usize,
    /// Claims whose verdict is another, those that fail first.
    pub claims: Vec<ClaimChange>,
    /// Experiments whose claims one side does not tell.
    pub untold: Vec<String>,
    /// What runs took.
    pub timings: Vec<Timing>,
}

/// What may count as a failure.
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
    /// Cells that are gone.
    Removed,
    /// Cells that are new.
    Added,
    /// Cells of which the runs do not tell.
    Underpowered,
    /// Experiments that cannot be compared, and cells whose problem is another.
    Incomparable,
    /// Cells whose bits changed, whatever the verdict.
    Changed,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Worse,
        Self::Diverged,
        Self::Failed,
        Self::Claims,
        Self::Removed,
        Self::Added,
        Self::Underpowered,
        Self::Incomparable,
        Self::Changed,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Diverged => "diverged",
            Self::Failed => "failed",
            Self::Claims => "claims",
            Self::Removed => "removed",
            Self::Added => "added",
            Self::Underpowered => "underpowered",
            Self::Incomparable => "incomparable",
            Self::Changed => "changed",
        }
    }
}

impl Comparison {
    /// How many of this class there are.
    pub fn count(&self, class: Class) -> usize {
        let of = |v: ChangeVerdict| self.changed.iter().filter(|c| c.verdict == v).count();
        match class {
            Class::Worse => of(ChangeVerdict::Worse),
            Class::Diverged => of(ChangeVerdict::NewlyDiverged),
            Class::Failed => of(ChangeVerdict::Failed),
            Class::Claims => self.claims.iter().filter(|c| c.fails).count(),
            Class::Removed => self.removed.len(),
            Class::Added => self.added.len(),
            Class::Underpowered => of(ChangeVerdict::Underpowered),
            Class::Incomparable => self.incomparable.len() + self.problems.len(),
            Class::Changed => self.changed.len(),
        }
    }

    /// Whether no cell is in both.
    pub fn is_empty(&self) -> bool {
        self.identical == 0 && self.changed.is_empty()
    }
}

/// Compares `after` with `before`.
pub fn compare(before: &Side, after: &Side, options: &Options) -> Comparison {
    let mut out = Comparison {
        sides: (before.name.clone(), after.name.clone()),
        margin: options.margin,
        ..Comparison::default()
    };
    if before.foreign.is_some() || after.foreign.is_some() {
        let told = |side: &Side| match side.foreign {
            Some(schema) => schema.to_string(),
            None => "the one that is read here".into(),
        };
        let (before, after) = (told(before), told(after));
        let experiment = "everything".into();
        out.incomparable.push(Incomparable { experiment, what: "schema", before, after });
        return out;
    }
    let names: BTreeSet<&String> =
        before.experiments.keys().chain(after.experiments.keys()).collect();
    for name in names {
        match (before.experiments.get(name), after.experiments.get(name)) {
            (Some(old), Some(new)) => experiment(name, old, new, options, &mut out),
            (Some(old), None) => out.removed.extend(lone(name, old, old.cells.keys())),
            (None, Some(new)) => out.added.extend(lone(name, new, new.cells.keys())),
            (None, None) => {}
        }
    }
    out.tested = judge::together(&mut out.changed, options);
    let key = |c: &Change| (c.verdict, c.severity(), c.experiment.clone(), c.id.clone());
    out.changed.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then((a.2, a.3).cmp(&(b.2, b.3)))
    });
    out.claims.sort_by_key(|c| !c.fails);
    out
}

fn experiment(
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
    let common: Vec<&String> = new.cells.keys().filter(|id| old.cells.contains_key(*id)).collect();
    let alone = |one: &SideExperiment, other: &SideExperiment| -> Vec<String> {
        one.cells.keys().filter(|id| !other.cells.contains_key(*id)).cloned().collect()
    };
    let (mut gone, mut come) = (alone(old, new), alone(new, old));
    let pairs = counterparts((old, &mut gone), (new, &mut come), Agree::Problem);
    let others = counterparts((old, &mut gone), (new, &mut come), Agree::Kinds);
    let apart = common.is_empty() && pairs.is_empty();
    if apart && others.is_empty() && !old.cells.is_empty() && !new.cells.is_empty() {
        out.incomparable.push(incomparable(name, old, new));
        return;
    }
    out.removed.extend(lone(name, old, gone.iter()));
    out.added.extend(lone(name, new, come.iter()));
    let told = told_apart(new);
    out.problems.extend(others.into_iter().map(|pair| OtherProblem {
        experiment: name.into(),
        name: cell_name(&new.cells[&pair.after], &told),
        was: pair.before,
        id: pair.after,
        other: pair.other,
    }));
    if apart {
        // Claims on other problems are other claims.
        return;
    }
    let mut timing = Timing { experiment: name.into(), cells: 0, seconds: (0.0, 0.0) };
    let mut todo = Vec::new();
    for id in common {
        let (was, is) = (&old.cells[id], &new.cells[id]);
        if let (Some(a), Some(b)) = (was.seconds, is.seconds) {
            timing.cells += 1;
            timing.seconds = (timing.seconds.0 + a, timing.seconds.1 + b);
        }
        match (was.digest(), is.digest()) {
            (Some(a), Some(b)) if a == b => out.identical += 1,
            // No result on either side is no change.
            (None, None) => {}
            _ => todo.push(pairing::Pair::same(id)),
        }
    }
    todo.extend(pairs);
    let change = |pair: pairing::Pair| {
        let (was, is) = (&old.cells[&pair.before], &new.cells[&pair.after]);
        judge::change((name, &pair.after, is), (&pair.before, was), &told, pair.other, options)
    };
    // Resampling takes its time, and each cell has a stream of its own.
    out.changed.extend(todo.into_par_iter().map(change).collect::<Vec<_>>());
    if timing.cells > 0 {
        out.timings.push(timing);
    }
    match (&old.claims, &new.claims) {
        (Some(old), Some(new)) => out.claims.extend(claims::changes(name, old, new)),
        _ => out.untold.push(name.to_owned()),
    }
}

/// The counterparts among cells that one side alone has, which are taken from their lists.
fn counterparts(
    (old, gone): (&SideExperiment, &mut Vec<String>),
    (new, come): (&SideExperiment, &mut Vec<String>),
    agree: Agree,
) -> Vec<pairing::Pair> {
    let pairs = pairing::pairs(old, gone, new, come, agree);
    let paired = |of: fn(&pairing::Pair) -> &String| pairs.iter().map(of).collect::<BTreeSet<_>>();
    let (before, after) = (paired(|p| &p.before), paired(|p| &p.after));
    gone.retain(|id| !before.contains(id));
    come.retain(|id| !after.contains(id));
    pairs
}

fn incomparable(name: &str, old: &SideExperiment, new: &SideExperiment) -> Incomparable {
    let (what, before, after) = if old.schema != SCHEMA || new.schema != SCHEMA {
        ("schema", old.schema.to_string(), new.schema.to_string())
    } else if old.seed != new.seed {
        ("seed", old.seed.to_string(), new.seed.to_string())
    } else {
        let count = |r: &SideExperiment| format!("{} other cells", r.cells.len());
        ("manifest", count(old), count(new))
    };
    Incomparable { experiment: name.into(), what, before, after }
}

/// The settings that tell apart an experiment's cells of one label, by path:
/// whether they have several values, or some cells are without.
fn told_apart(record: &SideExperiment) -> BTreeMap<String, bool> {
    let mut labels: BTreeMap<&str, Vec<&SideCell>> = BTreeMap::new();
    record.cells.values().for_each(|cell| labels.entry(&cell.label).or_default().push(cell));
    let mut told = BTreeMap::new();
    for cells in labels.values() {
        let paths: BTreeSet<&str> = cells.iter().flat_map(|c| c.settings.keys()).collect();
        for path in paths {
            let all = cells.iter().map(|cell| cell.settings.get(path));
            let values: BTreeSet<Option<&str>> = all.collect();
            let several = values.iter().flatten().count() > 1;
            if values.len() > 1 {
                *told.entry(path.to_owned()).or_default() |= several;
            }
        }
    }
    told
}

/// A cell's name: its label, and the settings that tell it apart.
fn cell_name(cell: &SideCell, told: &BTreeMap<String, bool>) -> String {
    let mut parts = vec![cell.label.clone()];
    for (path, several) in told {
        let Some(value) = cell.settings.get(path) else { continue };
        let value = super::pretty(path, &Setting::Text(value.to_owned()));
        // A choice with settings of its own: its name tells enough, but for those
        // that vary.
        let steps: Vec<&str> = path.split('.').collect();
        let part = match steps[..] {
            [_, _, _, choice, _] if *several => format!("{choice} {value}"),
            [_, _, _, choice, _] => choice.to_owned(),
            _ => value,
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(", ")
}

fn lone<'a>(
    experiment: &str,
    record: &SideExperiment,
    ids: impl Iterator<Item = &'a String>,
) -> Vec<Lone> {
    let told = told_apart(record);
    let of = |id: &String| Lone {
        experiment: experiment.into(),
        id: id.clone(),
        name: cell_name(&record.cells[id], &told),
    };
    ids.map(of).collect()
}
