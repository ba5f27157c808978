//! The verdict on each cell whose bits changed.
//!
//! *Invariant*: a verdict of worse, better or equivalent contradicts neither the
//! interval that is shown nor Holm's adjustment over all tested cells.

use super::pairing::Pair;
use super::side::{OmittedRuns, SideCell, SideRuns, count_diverged};
use crate::stats::paired::Shift;
use crate::stats::verdict::LEVEL;
use crate::stats::{ROUNDING_FLOOR, holm};
use exactfed_core::algorithm::Spec;
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
    /// The margin as a natural logarithm, since log ratios are compared with it.
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
    /// All of them, the worst first, with their names and their tones on pages, which are those of verdicts on
    /// claims: a change to the worse has the tone `refuted`, one to the better `supported`, no change `even`. They
    /// are in the order of the variants, by which [`name`](Self::name) and [`tone`](Self::tone) find them.
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

    /// Whether the verdict says that results changed, for the better or the worse. Pages list such cells first. The
    /// other verdicts say that results did not change, or that the runs do not tell.
    pub fn is_change(self) -> bool {
        ["refuted", "supported"].contains(&self.tone())
    }
}

/// A cell whose bits changed, or a cell and its counterpart with other settings: what changed, and the verdict on it.
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
    /// Final errors before and after, one per replicate; `None` where it diverged. If another quantity
    /// is compared, its losses, which are better if they are less ([`Quantity::loss`]). Empty on both sides unless both
    /// have sound results.
    pub finals: (Vec<Option<f64>>, Vec<Option<f64>>),
    /// Before and after: the replicates after those of `finals`, whose final errors a report does not keep.
    pub omitted: (OmittedRuns, OmittedRuns),
    /// The mean natural logarithm of the ratio of paired final errors, after over before; `None` where the verdict
    /// needs no test, or one pair alone is left.
    pub shift: Option<Shift>,
    /// The natural logarithm of the ratio, after over before, if nothing is random and final errors differ.
    pub exact: Option<f64>,
    /// The log ratio that a test of this cell would have detected four times out of five, where `shift` was tested.
    pub detectable: Option<f64>,
    /// The p-value with Holm's adjustment where `shift` was tested: of equivalence if that is the verdict, and
    /// otherwise of a difference.
    pub p: Option<f64>,
    /// How the cell changed. The verdict of a cell with a shift is underpowered until the shifts of all cells are
    /// tested together.
    pub verdict: ChangeVerdict,
    /// Remarks on the verdict, with semicolons between them; empty if there are none.
    pub note: String,
}

impl Change {
    /// How many times larger the error is after than before, in the geometric mean over pairs; `None` if no ratio was
    /// computed.
    pub fn ratio(&self) -> Option<f64> {
        self.log_ratio().map(libm::exp)
    }

    /// The distance of the log ratio from 0, by which cells of one verdict are sorted; 0 without a ratio.
    pub fn severity(&self) -> f64 {
        self.log_ratio().map_or(0.0, f64::abs)
    }

    /// The mean log ratio of the errors after and before: estimated, or known exactly.
    fn log_ratio(&self) -> Option<f64> {
        self.shift.map(|shift| shift.mean).or(self.exact)
    }

    /// The numbers of replicates of the cell, before and after, also of those whose final errors are not kept. Both are
    /// 0 unless both sides have sound results: a change that failed or recovered keeps no runs, not even those of its
    /// sound side.
    pub fn runs(&self) -> (usize, usize) {
        let before = self.finals.0.len() + self.omitted.0.count as usize;
        let after = self.finals.1.len() + self.omitted.1.count as usize;
        (before, after)
    }

    /// The numbers of replicates that diverged, before and after. Replicates that a report does not keep count as well.
    /// Both are 0 where [`Self::runs`] is, that is, unless both sides have sound results.
    pub fn diverged(&self) -> (usize, usize) {
        let before = count_diverged(&self.finals.0) + self.omitted.0.diverged as usize;
        let after = count_diverged(&self.finals.1) + self.omitted.1.diverged as usize;
        (before, after)
    }

    /// The change from the cell `was` to the cell `is`, at least one of which has sound results; cells with equal
    /// digests are not to be compared. Both have the same [`SideCell::compared_by`], and the final values of both are
    /// read. The change has its verdict, unless the verdict depends on a test: then it has the shift that
    /// `test_together` tests later, together with those of all other cells. `name` is the name of the cell after.
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
        match (&was.runs, &is.runs) {
            (
                SideRuns::Done { finals: old, omitted: old_omitted, .. },
                SideRuns::Done { finals: new, omitted: new_omitted, .. },
            ) => {
                change.finals = (losses(old, change.quantity), losses(new, change.quantity));
                change.omitted = (*old_omitted, *new_omitted);
                change.judge_runs(is, options);
                if change.quantity != Quantity::SqError {
                    change.add_note(&format!("errors are those of {}", change.quantity.compared()));
                }
            }
            (old, SideRuns::Done { .. }) => {
                change.verdict = ChangeVerdict::Recovered;
                change.note = format!("before: {}", why_lost(old));
            }
            (_, new) => {
                change.verdict = ChangeVerdict::Failed;
                change.note = why_lost(new);
            }
        }
        change
    }

    /// Judges runs that are sound on both sides, and says in the note of how many pairs, unless it is of all. If in
    /// some pair one run diverged and the other one did not, this decides the verdict. Otherwise the pairs in which
    /// neither run diverged are judged by their errors: if all of these are equal, or if there is no such pair, the
    /// verdict is that the final errors are the same.
    fn judge_runs(&mut self, is: &SideCell, options: &Options) {
        let mut runs = PairedRuns::new(&self.finals.0, &self.finals.1);
        let pairs = runs.on_both_sides;
        self.add_omitted_divergences(&mut runs);
        if runs.newly_diverged > 0 {
            self.note = format!(
                "{} of {} runs diverge and did not before",
                runs.newly_diverged, runs.on_both_sides
            );
            self.verdict = ChangeVerdict::NewlyDiverged;
            return;
        }
        if runs.no_longer_diverged > 0 {
            self.note = format!(
                "{} of {} runs diverged and no longer do",
                runs.no_longer_diverged, runs.on_both_sides
            );
            self.verdict = ChangeVerdict::NoLongerDiverged;
            return;
        }
        let n = runs.finished.len();
        if self.has_omitted_runs() {
            self.note = format!(
                "of {n} runs that finished on both sides, among the first {pairs}, which a report keeps"
            );
        } else if n < self.finals.0.len().max(self.finals.1.len()) {
            self.note = format!("of {n} runs that finished on both sides");
        }
        if runs.finished.iter().all(|run| run.before == run.after) {
            self.verdict = ChangeVerdict::SameErrors;
            return;
        }
        self.judge_errors(&runs.finished, is, options);
    }

    /// Whether a side is a report that does not keep the final errors of all runs.
    pub fn has_omitted_runs(&self) -> bool {
        self.omitted.0.count > 0 || self.omitted.1.count > 0
    }

    /// Adds to `runs`, which are the pairs of kept replicates, the divergences among the later replicates, if both
    /// sides have equally many replicates and one is a report; `runs` then counts all replicates, but the finished ones
    /// are the kept ones alone. A report says how many of its later replicates diverged and not which ones, so that
    /// only the difference between the two counts is certain to be newly diverged, or no longer.
    fn add_omitted_divergences(&self, runs: &mut PairedRuns) {
        let (runs_before, runs_after) = self.runs();
        if !self.has_omitted_runs() || runs_before != runs_after {
            return;
        }
        let pairs = runs.on_both_sides;
        let (diverged_before, diverged_after) = self.diverged();
        let later_before = diverged_before - count_diverged(&self.finals.0[..pairs]);
        let later_after = diverged_after - count_diverged(&self.finals.1[..pairs]);
        runs.newly_diverged += later_after.saturating_sub(later_before);
        runs.no_longer_diverged += later_before.saturating_sub(later_after);
        runs.on_both_sides = runs_after;
    }

    /// Judges the errors of pairs in which no run diverged, at least one of which has two different errors. `is` is the
    /// cell after. If nothing is random, the log ratio is exact, and the margin decides the verdict: nothing is random
    /// if several pairs all have the same two errors, or if a single pair is of a cell that draws nothing. Otherwise
    /// the shift is estimated, for [`test_together`]; one noisy pair gives none and stays underpowered. Errors below
    /// the floor count as the floor.
    fn judge_errors(&mut self, runs: &[PairedErrors], is: &SideCell, options: &Options) {
        let log = |error: f64| libm::log(error.max(options.floor));
        let mut differences: Vec<f64> = Vec::new();
        for run in runs {
            differences.push(log(run.after) - log(run.before));
        }
        if runs.iter().any(|run| run.before.min(run.after) < options.floor) {
            self.add_note(&format!("errors below {0:e} count as {0:e}", options.floor));
        }
        let are_equal = runs.windows(2).all(|two| two[0] == two[1]);
        if are_equal && (runs.len() > 1 || is_exact(is)) {
            let difference = differences[0];
            self.exact = Some(difference);
            self.verdict = if difference.abs() <= options.log_margin() {
                ChangeVerdict::Equivalent
            } else if difference > 0.0 {
                ChangeVerdict::Worse
            } else {
                ChangeVerdict::Better
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

    /// Adds a remark to the note on the verdict, after a semicolon if it has others.
    fn add_note(&mut self, text: &str) {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text);
    }
}

/// The losses of final values of a quantity, which are compared: less is better. `None` where a replicate diverged.
fn losses(finals: &[Option<f64>], quantity: Quantity) -> Vec<Option<f64>> {
    finals.iter().map(|value| value.map(|value| quantity.loss(value))).collect()
}

/// Why a cell has no sound results, in words.
fn why_lost(runs: &SideRuns) -> String {
    match runs {
        SideRuns::Damaged(why) => format!("damaged: {why}"),
        _ => "no results are stored".into(),
    }
}

/// The final errors of a run and its counterpart.
#[derive(Clone, Copy, PartialEq)]
struct PairedErrors {
    before: f64,
    after: f64,
}

/// The runs that are on both sides. Streams are named by replicate: where the numbers of replicates
/// differ, the first ones are counterparts.
#[derive(Default)]
struct PairedRuns {
    /// The number of pairs, whether their runs diverged or not.
    on_both_sides: usize,
    /// In how many pairs the run after diverged and the run before did not.
    newly_diverged: usize,
    /// In how many pairs the run before diverged and the run after did not.
    no_longer_diverged: usize,
    /// The runs that diverged on neither side.
    finished: Vec<PairedErrors>,
}

impl PairedRuns {
    /// Pairs the replicates of two sides, each with its final error, or `None` if it diverged.
    fn new(before: &[Option<f64>], after: &[Option<f64>]) -> Self {
        let mut runs = Self::default();
        for (before, after) in before.iter().zip(after) {
            runs.on_both_sides += 1;
            match (*before, *after) {
                (Some(before), Some(after)) => runs.finished.push(PairedErrors { before, after }),
                (Some(_), None) => runs.newly_diverged += 1,
                (None, Some(_)) => runs.no_longer_diverged += 1,
                (None, None) => {}
            }
        }
        runs
    }
}

/// The settings of algorithms that make runs random even with an exact oracle.
const RANDOM: [&str; 4] =
    ["cohort", "communication-probability", "bernoulli", "bernoulli-normalised"];
/// The setting whose value [`SHUFFLED`] makes runs random even with an exact oracle.
const CYCLE_ORDER: &str = "participation.cyclic.order";
/// The groups of clients take part in an order that is drawn.
const SHUFFLED: &str = "shuffled";
/// The settings that a cell has only where several instances are drawn.
const OF_INSTANCES: [&str; 2] = ["instance", "instances"];

/// Whether nothing is random in the runs of a cell, so that one run says all. What a custom algorithm does is not
/// known, and may be random.
fn is_exact(cell: &SideCell) -> bool {
    let has_exact_oracle = match cell.settings.at_path("oracle") {
        Some(Setting::Text(text)) => **text == *"exact",
        _ => false,
    };
    let is_built_in = Spec::KINDS.contains(&cell.kind());
    let draws_instances = OF_INSTANCES.iter().any(|path| cell.settings.at_path(path).is_some());
    let draws_clients = cell.settings.iter().any(|(path, value)| {
        let is_random = RANDOM.iter().any(|key| path.ends_with(key));
        is_random || path.ends_with(CYCLE_ORDER) && value.to_string() == SHUFFLED
    });
    has_exact_oracle && is_built_in && !draws_instances && !draws_clients
}

/// Tests the shifts of all changes that have one, and writes their verdicts, p-values and detectable ratios into
/// them. Each shift is tested for a difference from 0 and for equivalence within the margin, and Holm's method
/// adjusts the p-values of each of these two families over all shifts. A cell has one true state, so that its verdict
/// can be wrong in one family only. Returns how many shifts were tested.
pub fn test_together(changes: &mut [Change], options: &Options) -> usize {
    let margin = options.log_margin();
    let mut tested: Vec<(&mut Change, Shift)> = Vec::new();
    for change in changes {
        if let Some(shift) = change.shift {
            tested.push((change, shift));
        }
    }
    let count = tested.len();
    let differs: Vec<f64> = tested.iter().map(|(_, shift)| shift.differs).collect();
    let equivalent: Vec<f64> = tested.iter().map(|(_, shift)| shift.equivalent).collect();
    let adjusted = holm(&differs).into_iter().zip(holm(&equivalent));
    for ((change, shift), (differs, equivalent)) in tested.into_iter().zip(adjusted) {
        change.detectable = Some(shift.detectable(count, LEVEL));
        let (low, high) = shift.interval;
        let is_significant = differs <= LEVEL && (low > 0.0 || high < 0.0);
        change.p = Some(differs);
        if equivalent <= LEVEL && shift.within(margin) {
            change.verdict = ChangeVerdict::Equivalent;
            change.p = Some(equivalent);
        } else if !is_significant {
            change.verdict = ChangeVerdict::Underpowered;
        } else if shift.mean > 0.0 {
            change.verdict = ChangeVerdict::Worse;
        } else {
            change.verdict = ChangeVerdict::Better;
        }
    }
    count
}
