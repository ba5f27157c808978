//! The verdict on each cell whose bits changed.
//!
//! *Invariant*: a verdict of worse, better or equivalent contradicts neither the
//! interval that is shown nor Holm's adjustment over all tested cells.

use super::pairing::Pair;
use super::side::{SideCell, SideRuns};
use crate::stats::paired::Shift;
use crate::stats::verdict::LEVEL;
use crate::stats::{ROUNDING_FLOOR, holm};
use exactfed_core::rng::Stream;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::Setting;

/// How changes are judged.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The largest relative change of an error that counts as none, above 0.
    pub margin: f64,
    /// Squared errors below this are rounding, and count as this.
    pub floor: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { margin: 0.05, floor: ROUNDING_FLOOR }
    }
}

impl Options {
    /// The margin of a log ratio.
    fn log_margin(&self) -> f64 {
        libm::log(1.0 + self.margin)
    }
}

/// How a cell changed, the worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeVerdict {
    /// There are no sound results, and there were.
    Failed,
    /// Replicates diverged that did not.
    NewlyDiverged,
    /// The errors rose.
    Worse,
    /// The runs do not suffice for a verdict.
    #[default]
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
    /// All of them, the worst first, with their names and their tones on pages: a change to the
    /// worse is `refuted`, one to the better `supported`, none `even`.
    pub const ALL: [(Self, &str, &str); 9] = [
        (Self::Failed, "failed", "refuted"),
        (Self::NewlyDiverged, "newly diverged", "refuted"),
        (Self::Worse, "worse", "refuted"),
        (Self::Underpowered, "underpowered", "inconclusive"),
        (Self::Better, "better", "supported"),
        (Self::NoLongerDiverged, "no longer diverged", "supported"),
        (Self::Recovered, "recovered", "supported"),
        (Self::Equivalent, "equivalent", "even"),
        (Self::SameErrors, "same final errors", "even"),
    ];

    /// Its name on pages.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Its tone on pages.
    pub fn tone(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// Whether it says that results changed; the others say that they did not, or that the runs
    /// do not tell.
    pub fn is_change(self) -> bool {
        ["refuted", "supported"].contains(&self.tone())
    }
}

/// A cell whose bits changed, or its counterpart with other settings.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Its experiment.
    pub experiment: String,
    /// Label of the algorithm, with the settings that distinguish the cell.
    pub name: String,
    /// The family of the algorithm.
    pub family: usize,
    /// The cell before and after.
    pub pair: Pair,
    /// What is compared: ‖θ_T − θ*‖², or what takes its place where θ* is left out.
    pub quantity: Quantity,
    /// Final errors before and after, one per replicate; `None` where it diverged. Of another quantity
    /// they are what is compared of it, of which less is better ([`Quantity::loss`]).
    pub finals: (Vec<Option<f64>>, Vec<Option<f64>>),
    /// The mean log ratio of paired final errors, after over before.
    pub shift: Option<Shift>,
    /// The log ratio where nothing is random.
    pub exact: Option<f64>,
    /// The log ratio that would have been detected four times out of five.
    pub detectable: Option<f64>,
    /// Adjusted p-value of the verdict, or of a difference if there is none.
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: ChangeVerdict,
    /// Remarks on the verdict.
    pub note: String,
}

impl Change {
    /// How many times larger the error is after, in the geometric mean.
    pub fn ratio(&self) -> Option<f64> {
        self.log_ratio().map(libm::exp)
    }

    /// How far the change is, for sorting.
    pub fn severity(&self) -> f64 {
        self.log_ratio().map_or(0.0, f64::abs)
    }

    fn log_ratio(&self) -> Option<f64> {
        self.shift.map(|shift| shift.mean).or(self.exact)
    }

    /// Replicates that diverged, before and after.
    pub fn diverged(&self) -> (usize, usize) {
        let count = |finals: &[Option<f64>]| finals.iter().filter(|f| f.is_none()).count();
        (count(&self.finals.0), count(&self.finals.1))
    }

    /// The change between two cells: its verdict, or the shift to be tested.
    pub fn new(
        experiment: &str,
        name: String,
        pair: Pair,
        was: &SideCell,
        is: &SideCell,
        options: &Options,
    ) -> Self {
        let mut change = Self {
            experiment: experiment.into(),
            name,
            family: is.family(),
            pair,
            quantity: is.compared_by(),
            ..Self::default()
        };
        let lost = |runs: &SideRuns| match runs {
            SideRuns::Damaged(why) => format!("damaged: {why}"),
            _ => "no results are stored".into(),
        };
        match (&was.runs, &is.runs) {
            (SideRuns::Done { finals: old, .. }, SideRuns::Done { finals: new, .. }) => {
                let loss = |value: &Option<f64>| value.map(|value| change.quantity.loss(value));
                change.finals = (old.iter().map(loss).collect(), new.iter().map(loss).collect());
                change.judge_runs(is, options);
                if change.quantity != Quantity::SqError {
                    change.add_note(&format!("errors are those of {}", change.quantity.compared()));
                }
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

    /// The verdict on the runs by themselves, or the shift to be tested.
    fn judge_runs(&mut self, is: &SideCell, options: &Options) {
        let (old, new) = &self.finals;
        // Streams are named by replicate: where the numbers of replicates differ, the first ones
        // are counterparts.
        let both = || old.iter().zip(new);
        let newly = both().filter(|(a, b)| a.is_some() && b.is_none()).count();
        let no_longer = both().filter(|(a, b)| a.is_none() && b.is_some()).count();
        let paired: Vec<(f64, f64)> = both().filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
        let (n, all) = (paired.len(), old.len().max(new.len()));
        if newly > 0 {
            self.note = format!("{newly} of {} runs diverge and did not before", both().count());
            self.verdict = ChangeVerdict::NewlyDiverged;
            return;
        }
        if no_longer > 0 {
            self.note = format!("{no_longer} of {} runs diverged and no longer do", both().count());
            self.verdict = ChangeVerdict::NoLongerDiverged;
            return;
        }
        if n < all {
            self.note = format!("of {n} runs that finished on both sides");
        }
        if paired.iter().all(|(a, b)| a == b) {
            self.verdict = ChangeVerdict::SameErrors;
            return;
        }
        let log = |x: f64| libm::log(x.max(options.floor));
        let differences: Vec<f64> = paired.iter().map(|(a, b)| log(*b) - log(*a)).collect();
        if paired.iter().any(|(a, b)| a.min(*b) < options.floor) {
            self.add_note(&format!("errors below {0:e} count as {0:e}", options.floor));
        }
        let alike = paired.windows(2).all(|two| two[0] == two[1]);
        if alike && (n > 1 || is_exact(is)) {
            self.exact = Some(differences[0]);
            self.verdict = match differences[0] {
                x if x.abs() <= options.log_margin() => ChangeVerdict::Equivalent,
                x if x > 0.0 => ChangeVerdict::Worse,
                _ => ChangeVerdict::Better,
            };
            self.add_note("nothing is random: no interval");
            return;
        }
        // Seeded by the cell, so that the same diff has the same intervals every time.
        let seed = u64::from_str_radix(&self.pair.after, 16).unwrap_or(0);
        let mut stream = Stream::shared_instance(seed);
        self.shift = Shift::new(&differences, options.log_margin(), |n| stream.index(n));
        if self.shift.is_none() {
            self.add_note("one run has no interval");
        }
    }

    fn add_note(&mut self, text: &str) {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text);
    }
}

/// Whether a single run of the cell is all that there is to know.
fn is_exact(cell: &SideCell) -> bool {
    let random = ["cohort", "communication-probability"];
    let oracle = cell.settings.at_path("oracle");
    let mut paths = cell.settings.iter().map(|(path, _)| path);
    matches!(oracle, Some(Setting::Text(text)) if **text == *"exact")
        && !paths.any(|path| random.iter().any(|key| path.ends_with(key)))
}

/// Tests all shifts together: a family of differences and one of equivalences, of which a cell
/// can be wrong in one only. Returns how many were tested.
pub fn test_together(changes: &mut [Change], options: &Options) -> usize {
    let margin = options.log_margin();
    let mut tested: Vec<(&mut Change, Shift)> =
        changes.iter_mut().filter_map(|c| c.shift.map(|shift| (c, shift))).collect();
    let count = tested.len();
    let adjusted =
        |p: fn(&Shift) -> f64| holm(&tested.iter().map(|(_, s)| p(s)).collect::<Vec<_>>());
    let (differs, equivalent) = (adjusted(|s| s.differs), adjusted(|s| s.equivalent));
    for (((change, shift), differs), equivalent) in tested.iter_mut().zip(differs).zip(equivalent) {
        change.detectable = Some(shift.detectable(count, LEVEL));
        let (low, high) = shift.interval;
        let is_significant = differs <= LEVEL && (low > 0.0 || high < 0.0);
        (change.verdict, change.p) = match shift.mean > 0.0 {
            _ if equivalent <= LEVEL && shift.within(margin) => {
                (ChangeVerdict::Equivalent, Some(equivalent))
            }
            true if is_significant => (ChangeVerdict::Worse, Some(differs)),
            false if is_significant => (ChangeVerdict::Better, Some(differs)),
            _ => (ChangeVerdict::Underpowered, Some(differs)),
        };
    }
    count
}
