//! Compares two sides, experiment by experiment and cell by cell: what cannot be compared, which
//! cells were removed and added, which have the same bits, and which changed, by how much and
//! how significantly. docs/DIFF.md says how verdicts are reached.
//!
//! This module reads no file: [`results`] and [`record`] make sides, [`curves`]
//! draws what changed, [`history`] follows many commits. Random streams are common, so replicates are paired.
//!
//! *Invariant*: cells with equal digests enter no statistics, nor do cells whose problem,
//! instance or start differ; diverged replicates are never averaged away; timings are no
//! part of any verdict.

mod claims;
pub mod curves;
pub mod history;
mod judge;
mod names;
mod pairing;
pub mod record;
pub mod results;
mod side;
#[cfg(test)]
mod tests;

pub use claims::{ClaimChange, SideClaim};
use exactfed_runner::plan::CellId;
pub use judge::{Change, ChangeVerdict, Options};
use names::CellNames;
use pairing::Agree;
pub use pairing::{OtherSetting, Pair};
use rayon::prelude::*;
use serde::Serialize;
pub use side::{SCHEMA, Side, SideCell, SideExperiment, SideRuns};
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

/// A cell and its counterpart, whose problem, instance or start is another.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherProblem {
    /// Its experiment.
    pub experiment: String,
    /// Name of the algorithm, with the settings that distinguish it.
    pub name: String,
    /// The two cells.
    pub pair: Pair,
}

/// A cell that one side alone has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lone {
    /// Its experiment.
    pub experiment: String,
    /// Its id.
    #[serde(rename = "cell")]
    pub id: CellId,
    /// Name of the algorithm, with the settings that distinguish it.
    pub name: String,
}

/// The time of an experiment's cells, of those whose time both sides store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Its name.
    pub experiment: String,
    /// The number of cells.
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
    /// Cells that have counterparts on other problems, with which they are not compared.
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
    /// Claims whose verdict changed, those that fail first.
    pub claims: Vec<ClaimChange>,
    /// Experiments whose claims one side does not have.
    pub without_claims: Vec<String>,
    /// The time of runs.
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
    /// All of them, with their names on the command line.
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
    /// How many of this class there are.
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

    /// Whether both sides have the same cells, bits and verdicts.
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
        let of =
            |wanted: bool| self.changed.iter().filter(move |c| c.verdict.is_change() == wanted);
        of(true).chain(of(false))
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
        let schema = |side: &Side| match side.foreign {
            Some(schema) => schema.to_string(),
            None => "the one that is read here".into(),
        };
        let (before, after) = (schema(before), schema(after));
        let experiment = "everything".into();
        out.incomparable.push(Incomparable { experiment, what: "schema", before, after });
        return out;
    }
    let names: BTreeSet<&String> =
        before.experiments.keys().chain(after.experiments.keys()).collect();
    for name in names {
        match (before.experiments.get(name), after.experiments.get(name)) {
            (Some(old), Some(new)) => experiment(name, old, new, options, &mut out),
            (Some(old), None) => out.removed.extend(lone(name, old, old.cells.keys().copied())),
            (None, Some(new)) => out.added.extend(lone(name, new, new.cells.keys().copied())),
            (None, None) => {}
        }
    }
    out.tested = judge::test_together(&mut out.changed, options);
    out.changed.sort_by(|a, b| {
        let by_verdict = a.verdict.cmp(&b.verdict);
        let by_name = (&a.experiment, &a.pair.after).cmp(&(&b.experiment, &b.pair.after));
        by_verdict.then(b.severity().total_cmp(&a.severity())).then(by_name)
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
    let is_in = |side: &SideExperiment, id: &CellId| side.cells.contains_key(id);
    let (common, mut come): (Vec<CellId>, Vec<CellId>) =
        new.cells.keys().copied().partition(|id| is_in(old, id));
    let gone = old.cells.keys().filter(|id| !is_in(new, id));
    let mut gone: Vec<CellId> = gone.copied().collect();
    let mut pairs = pairing::take_pairs(old, &mut gone, new, &mut come, Agree::Problem);
    let others = pairing::take_pairs(old, &mut gone, new, &mut come, Agree::Kinds);
    let nothing_compared = common.is_empty() && pairs.is_empty();
    let both_have_cells = !old.cells.is_empty() && !new.cells.is_empty();
    if nothing_compared && others.is_empty() && both_have_cells {
        out.incomparable.push(incomparable(name, old, new));
        return;
    }
    out.removed.extend(lone(name, old, gone));
    out.added.extend(lone(name, new, come));
    let names = CellNames::new(new);
    out.problems.extend(others.into_iter().map(|pair| OtherProblem {
        experiment: name.into(),
        name: names.name(&new.cells[&pair.after]),
        pair,
    }));
    if nothing_compared {
        // Claims on other problems are other claims.
        return;
    }
    for id in &common {
        match (old.cells[id].digest(), new.cells[id].digest()) {
            (Some(a), Some(b)) if a == b => out.identical += 1,
            // No result on either side is no change.
            (None, None) => {}
            _ => pairs.push(Pair { before: *id, after: *id, other: Vec::new() }),
        }
    }
    let change = |pair: Pair| {
        let (was, is) = (&old.cells[&pair.before], &new.cells[&pair.after]);
        Change::new(name, names.name(is), pair, was, is, options)
    };
    // Resampling takes its time, and each cell has a stream of its own.
    out.changed.extend(pairs.into_par_iter().map(change).collect::<Vec<_>>());
    out.timings.extend(timing(name, &common, old, new));
    match (&old.claims, &new.claims) {
        (Some(old), Some(new)) => out.claims.extend(claims::changes(name, old, new)),
        _ => out.without_claims.push(name.to_owned()),
    }
}

/// The time of the cells that both sides have, if any is stored.
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
    (timing.cells > 0).then_some(timing)
}

fn incomparable(name: &str, old: &SideExperiment, new: &SideExperiment) -> Incomparable {
    let (what, before, after) = if old.schema != SCHEMA || new.schema != SCHEMA {
        ("schema", old.schema.to_string(), new.schema.to_string())
    } else if old.seed != new.seed {
        ("seed", old.seed.to_string(), new.seed.to_string())
    } else if old.noise_seed() != new.noise_seed() {
        ("noise seed", old.noise_seed(), new.noise_seed())
    } else {
        let count = |side: &SideExperiment| format!("{} other cells", side.cells.len());
        ("manifest", count(old), count(new))
    };
    Incomparable { experiment: name.into(), what, before, after }
}

fn lone(
    experiment: &str,
    side: &SideExperiment,
    ids: impl IntoIterator<Item = CellId>,
) -> Vec<Lone> {
    let names = CellNames::new(side);
    let lone =
        |id: CellId| Lone { experiment: experiment.into(), id, name: names.name(&side.cells[&id]) };
    ids.into_iter().map(lone).collect()
}
