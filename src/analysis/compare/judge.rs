//! What became of a cell whose bits changed, and the verdicts over all of them.
//!
//! *Invariant*: a verdict of worse, better or equivalent contradicts neither the
//! interval that is shown nor Holm's adjustment over all tested cells.

use super::pairing::Other;
use super::{Options, SideCell, SideRuns, cell_name};
use crate::stats::holm;
use crate::stats::paired::Shift;
use crate::stats::verdict::LEVEL;
use driftbench_core::rng::Stream;
use std::collections::BTreeMap;

/// What is known of a change, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeVerdict {
    /// There are no sound results, and there were.
    Failed,
    /// Replicates diverged that did not.
    NewlyDiverged,
    /// The errors rose.
    Worse,
    /// The runs do not tell.
    Underpowered,
    /// The errors fell.
    Better,
    /// Replicates diverged that no longer do.
    NoLongerDiverged,
    /// There are sound results, and there were none.
    Recovered,
    /// The errors changed by less than the margin.
    Equivalent,
    /// The final errors are the same; other rows or columns differ.
    SameErrors,
}

impl ChangeVerdict {
    /// All of them, the worst first.
    pub const ALL: [Self; 9] = [
        Self::Failed,
        Self::NewlyDiverged,
        Self::Worse,
        Self::Underpowered,
        Self::Better,
        Self::NoLongerDiverged,
        Self::Recovered,
        Self::Equivalent,
        Self::SameErrors,
    ];

    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::NewlyDiverged => "newly diverged",
            Self::Worse => "worse",
            Self::Underpowered => "underpowered",
            Self::Better => "better",
            Self::NoLongerDiverged => "no longer diverged",
            Self::Recovered => "recovered",
            Self::Equivalent => "equivalent",
            Self::SameErrors => "same final errors",
        }
    }
}

/// A cell whose bits changed, or its counterpart with other settings.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its experiment.
    pub experiment: String,
    /// Its id before.
    pub was: String,
    /// Its id after.
    pub id: String,
    /// Name of the algorithm, with the settings that tell it apart.
    pub name: String,
    /// Settings that are others; empty for the same cell.
    pub other: Vec<Other>,
    /// Replicates that diverged, before and after.
    pub diverged: (usize, usize),
    /// Final errors of paired replicates, before and after, as they are.
    pub finals: (Vec<Option<f64>>, Vec<Option<f64>>),
    /// The mean log ratio of paired final errors, after over before.
    pub shift: Option<Shift>,
    /// The log ratio where nothing is random.
    pub exact: Option<f64>,
    /// Log ratio that would have been seen four times out of five.
    pub detectable: Option<f64>,
    /// Adjusted p-value of the verdict, or of a difference if there is none.
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: ChangeVerdict,
    /// What readers should know of it.
    pub note: String,
}

impl Change {
    /// How many times larger the error is after, in the geometric mean.
    pub fn ratio(&self) -> Option<f64> {
        self.shift.map(|s| s.mean).or(self.exact).map(libm::exp)
    }

    /// How far the change is, for sorting.
    pub fn severity(&self) -> f64 {
        self.shift.map(|s| s.mean).or(self.exact).map_or(0.0, f64::abs)
    }
}

/// What became of a cell: experiment, id and cell after, id and cell before.
pub fn change(
    (experiment, id, is): (&str, &str, &SideCell),
    (old_id, was): (&str, &SideCell),
    told: &BTreeMap<String, bool>,
    other: Vec<Other>,
    options: &Options,
) -> Change {
    let mut change = Change {
        experiment: experiment.into(),
        was: old_id.into(),
        id: id.into(),
        name: cell_name(is, told),
        other,
        diverged: (0, 0),
        finals: (Vec::new(), Vec::new()),
        shift: None,
        exact: None,
        detectable: None,
        p: None,
        verdict: ChangeVerdict::Underpowered,
        note: String::new(),
    };
    let lost = |runs: &SideRuns| match runs {
        SideRuns::Damaged(why) => format!("damaged: {why}"),
        _ => "no results are stored".into(),
    };
    match (&was.runs, &is.runs) {
        (SideRuns::Done { finals: old, .. }, SideRuns::Done { finals: new, .. }) => {
            change.finals = (old.clone(), new.clone());
            runs(&mut change, is, options);
        }
        (old, SideRuns::Done { .. }) => {
            change.verdict = ChangeVerdict::Recovered;
            change.note = format!("before: {}", lost(old));
        }
        (_, new) => {
            change.verdict = ChangeVerdict::Failed;
            change.note = lost(new);
        }
    }
    change
}

/// The verdict on a cell's runs by themselves, or the shift to be tested.
fn runs(change: &mut Change, is: &SideCell, options: &Options) {
    let (old, new) = &change.finals;
    let count = |finals: &[Option<f64>]| finals.iter().filter(|f| f.is_none()).count();
    change.diverged = (count(old), count(new));
    // Other numbers of replicates: streams are named by replicate, so that the
    // first ones are counterparts.
    let both = || old.iter().zip(new);
    let newly = both().filter(|(a, b)| a.is_some() && b.is_none()).count();
    let no_longer = both().filter(|(a, b)| a.is_none() && b.is_some()).count();
    let paired: Vec<(f64, f64)> = both().filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
    let (n, all) = (paired.len(), old.len().max(new.len()));
    if newly > 0 {
        change.verdict = ChangeVerdict::NewlyDiverged;
        change.note = format!("{newly} of {} runs diverge that did not", both().count());
        return;
    }
    if no_longer > 0 {
        change.verdict = ChangeVerdict::NoLongerDiverged;
        change.note = format!("{no_longer} of {} runs diverged and no longer do", both().count());
        return;
    }
    if n < all {
        change.note = format!("of {n} runs that finished on both sides");
    }
    if paired.iter().all(|(a, b)| a == b) {
        change.verdict = ChangeVerdict::SameErrors;
        return;
    }
    let log = |x: f64| libm::log(x.max(options.floor));
    let differences: Vec<f64> = paired.iter().map(|(a, b)| log(*b) - log(*a)).collect();
    if paired.iter().any(|(a, b)| a.min(*b) < options.floor) {
        note(change, &format!("errors below {:e} count as that", options.floor));
    }
    let alike = paired.windows(2).all(|two| two[0] == two[1]);
    if alike && (n > 1 || is_exact(is)) {
        change.exact = Some(differences[0]);
        change.verdict = match differences[0] {
            x if x.abs() <= libm::log(1.0 + options.margin) => ChangeVerdict::Equivalent,
            x if x > 0.0 => ChangeVerdict::Worse,
            _ => ChangeVerdict::Better,
        };
        note(change, "nothing is random: no interval");
        return;
    }
    // Seeded by the cell, so that a report says the same every time.
    let mut stream = Stream::shared_instance(u64::from_str_radix(&change.id, 16).unwrap_or(0));
    let margin = libm::log(1.0 + options.margin);
    change.shift = Shift::new(&differences, margin, |n| stream.index(n));
    if change.shift.is_none() {
        note(change, "one run has no interval");
    }
}

fn note(change: &mut Change, text: &str) {
    if !change.note.is_empty() {
        change.note.push_str("; ");
    }
    change.note.push_str(text);
}

/// Whether a single run of the cell is all that there is to know.
fn is_exact(cell: &SideCell) -> bool {
    let random =
        |path: &str| ["cohort", "communication-probability"].iter().any(|key| path.ends_with(key));
    let oracle = cell.settings.get("oracle").is_some_and(|oracle| oracle == "exact");
    oracle && !cell.settings.keys().any(random)
}

/// Tests all shifts together: a family of differences and one of equivalences,
/// of which a cell can be wrong in one only. How many were tested.
pub fn together(changes: &mut [Change], options: &Options) -> usize {
    let margin = libm::log(1.0 + options.margin);
    let mut tested: Vec<(&mut Change, Shift)> =
        changes.iter_mut().filter_map(|c| c.shift.map(|shift| (c, shift))).collect();
    let count = tested.len();
    let adjusted =
        |p: fn(&Shift) -> f64| holm(&tested.iter().map(|(_, s)| p(s)).collect::<Vec<_>>());
    let (differs, equivalent) = (adjusted(|s| s.differs), adjusted(|s| s.equivalent));
    for (((change, shift), differs), equivalent) in tested.iter_mut().zip(differs).zip(equivalent) {
        change.detectable = Some(shift.detectable(count, LEVEL));
        let told = differs <= LEVEL && shift.excludes_zero();
        (change.verdict, change.p) = match shift.mean > 0.0 {
            _ if equivalent <= LEVEL && shift.within(margin) => {
                (ChangeVerdict::Equivalent, Some(equivalent))
            }
            true if told => (ChangeVerdict::Worse, Some(differs)),
            false if told => (ChangeVerdict::Better, Some(differs)),
            _ => (ChangeVerdict::Underpowered, Some(differs)),
        };
    }
    count
}
