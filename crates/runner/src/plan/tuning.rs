//! What tuning is about: the candidates of each algorithm at each point of the grid, what is known of their
//! runs, and which of them is selected.

use super::cell::Cell;
use crate::manifest::tune::TunedSetting;
use std::sync::Arc;

/// Settings that are tuned, their candidates, and what is known of the runs of these.
#[derive(Clone, Debug, Default)]
pub struct Tuning {
    /// The settings that are tuned, with their candidates.
    pub settings: Vec<TunedSetting>,
    /// The cells of the candidates that the manifest lists, each with all its runs.
    pub listed: Vec<Cell>,
    /// The candidates of each algorithm at each point of the grid, once the plan follows results.
    pub groups: Vec<TuningGroup>,
}

impl Tuning {
    /// Whether the setting of a cell at a path, `algorithm.<kind>.<key>`, is tuned. The kind makes no difference: a
    /// setting is tuned for every algorithm that has it. False for paths of other tables.
    pub fn has(&self, path: &str) -> bool {
        let mut keys = self.settings.iter().map(|setting| setting.key.as_str());
        let mut parts = path.splitn(3, '.');
        parts.next() == Some("algorithm") && keys.any(|key| parts.clone().nth(1) == Some(key))
    }
}

/// The candidates of an algorithm at a point of the grid.
#[derive(Clone, Debug, Default)]
pub struct TuningGroup {
    /// The label of the algorithm.
    pub label: String,
    /// All candidates, in the order of their values.
    pub candidates: Vec<Candidate>,
    /// The place of the selected one, once the losses of all are known; `None` before, and where no
    /// candidate has a finite loss, since runs diverged, ended too early or do not have the metric.
    pub selected: Option<usize>,
    /// The edges at which the selected candidate stands, so that a better one may be outside of the candidates. Where
    /// all candidates diverged, they are the smallest values of the settings.
    pub edges: Vec<TuningEdge>,
    /// How many times candidates were added; `extend` of `[tune]` as soon as none could be, so that none are tried
    /// again.
    pub extended: u64,
    /// Why further candidates were left out, each reason once.
    pub refused: Vec<String>,
    /// For each resample of the candidates' runs, by how much the logarithm of the mean metric of the candidate that
    /// it selects differs from that of the selected candidate. Intervals of comparisons contain the error that this
    /// adds. Empty until it is computed, and where nothing says how the selection varies.
    pub selection_changes: Arc<[f64]>,
    /// Such differences of the logarithm of the mean loss, which are other numbers where more of the metric is better.
    pub loss_selection_changes: Arc<[f64]>,
    /// The cell with fresh runs of the selected candidate.
    pub evaluation: Option<Cell>,
    /// The cell with fresh runs of this group's candidate that has the values which are best for all algorithms
    /// together; `None` where the point has one group, or the values are not known.
    pub shared: Option<Cell>,
}

/// Values of the tuned settings of an algorithm, and what their runs gave.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The cell with all its runs.
    pub cell: Cell,
    /// Its first runs, by which it may be stopped; `None` if candidates do not race, or have too few runs for it.
    pub first: Option<FirstRuns>,
    /// The values of the tuned settings, in their order; `None` for one that the algorithm lacks.
    pub values: Vec<Option<f64>>,
    /// The mean loss of all its runs, which is smallest for the best candidate: infinite if one diverged; NaN if one
    /// ends before the cost at which candidates are compared, or does not have the metric; `None` if they were not run.
    pub loss: Option<f64>,
}

/// The first runs of a candidate.
#[derive(Clone, Debug)]
pub struct FirstRuns {
    /// Their cell: that of the candidate with fewer instances, or fewer runs on its only one.
    pub cell: Cell,
    /// The mean loss of the first runs, with the meanings that [`Candidate::loss`] has for all runs.
    pub loss: Option<f64>,
    /// What becomes of the candidate, once that is known.
    pub decision: Option<Decision>,
}

/// What becomes of a candidate after its first runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It has all its runs.
    GoesOn,
    /// It is certain to be worse than another candidate, or one of its first runs diverged. It has no more runs.
    Stopped,
}

impl Candidate {
    /// Whether the candidate was stopped after its first runs, so that it has no others.
    pub fn is_stopped(&self) -> bool {
        self.first.as_ref().is_some_and(|first| first.decision == Some(Decision::Stopped))
    }

    /// Whether it is certain that the candidate is to have all its runs: it has no first runs, or they did not stop it.
    pub fn goes_on(&self) -> bool {
        self.first.as_ref().is_none_or(|first| first.decision == Some(Decision::GoesOn))
    }

    /// The cell with the most runs that the candidate is known to have, which pages show: all runs, or the first ones
    /// while it is not known that it goes on.
    pub fn last_cell(&self) -> &Cell {
        match &self.first {
            Some(first) if !self.goes_on() => &first.cell,
            _ => &self.cell,
        }
    }

    /// The mean loss of the runs of [`Self::last_cell`]; `None` if they were not run.
    pub fn last_loss(&self) -> Option<f64> {
        match &self.first {
            Some(first) if !self.goes_on() => first.loss,
            _ => self.loss,
        }
    }

    /// The cells that the candidate is known to have: that of its first runs, if candidates race, and that of all runs
    /// if it goes on.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        let first = self.first.as_ref().map(|first| &first.cell);
        first.into_iter().chain(self.goes_on().then_some(&self.cell))
    }

    /// Whether one of the candidate's first runs diverged, and thus one of all its runs.
    pub(super) fn first_runs_diverged(&self) -> bool {
        self.first.as_ref().is_some_and(|first| first.loss == Some(f64::INFINITY))
    }

    /// Sets what becomes of the candidate after its first runs; nothing if it has none.
    pub(super) fn decide(&mut self, decision: Decision) {
        if let Some(first) = &mut self.first {
            first.decision = Some(decision);
        }
    }
}

/// The results of candidates' runs, which plans read to find out what is run next.
pub trait CandidateRuns {
    /// Why results cannot be read.
    type Error;

    /// The mean loss of the runs of a cell: infinite if one diverged; NaN if one ends before the cost at which
    /// candidates are compared, or does not have the metric; `None` if they were not run.
    ///
    /// # Errors
    /// If results are damaged.
    fn loss(&self, cell: &Cell) -> Result<Option<f64>, Self::Error>;

    /// The number of clients of a cell whose settings do not say it, from its results; `None` without results.
    ///
    /// # Errors
    /// If results are damaged.
    fn clients(&self, cell: &Cell) -> Result<Option<usize>, Self::Error>;

    /// Whether Σ w log(mean loss) of these weights w and cells, which have equally many runs, is above 0
    /// with the confidence that stopping a candidate asks for. [`Self::loss`] was called for each of
    /// the cells before. False if the runs of one are not known.
    fn is_larger(&self, terms: &[(f64, &Cell)]) -> bool;
}

/// Where the selected candidate is at the edge of what was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningEdge {
    /// It has the smallest value of the setting of this number.
    Smallest(usize),
    /// It has the largest.
    Largest(usize),
    /// Runs with the next larger value diverged.
    Divergence(usize),
}

impl TuningEdge {
    /// The place of the setting in `over` of `[tune]`.
    pub fn setting(self) -> usize {
        match self {
            Self::Smallest(i) | Self::Largest(i) | Self::Divergence(i) => i,
        }
    }
}

impl TuningGroup {
    /// Whether the losses of all candidates are known but for those that were stopped, so that one can be selected.
    pub fn is_complete(&self) -> bool {
        self.candidates.iter().all(|candidate| candidate.loss.is_some() || candidate.is_stopped())
    }

    /// The selected candidate, if one is selected.
    pub fn winner(&self) -> Option<&Candidate> {
        self.selected.map(|place| &self.candidates[place])
    }

    /// The different values of the tuned setting at this place among the candidates, increasing.
    pub(super) fn values(&self, setting: usize) -> Vec<f64> {
        let mut all: Vec<f64> =
            self.candidates.iter().filter_map(|candidate| candidate.values[setting]).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// Selects the candidate with the smallest finite loss, the first of equals, and finds the edges at which it
    /// stands. The group must be [complete](Self::is_complete): losses that are not known would be passed over.
    pub(super) fn select(&mut self, settings: &[TunedSetting]) {
        let losses = self.candidates.iter().enumerate();
        let finite = losses.filter_map(|(i, c)| Some((i, c.loss.filter(|loss| loss.is_finite())?)));
        self.selected = finite.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place);
        self.edges = (0..settings.len()).flat_map(|i| self.edges_of(i, &settings[i])).collect();
    }

    /// Takes a selection back, because further runs are needed before it can be made.
    pub(super) fn deselect(&mut self) {
        self.selected = None;
        self.edges.clear();
    }

    /// The edges of one setting at which the selected candidate stands. Where runs of all candidates diverged, it is
    /// the smallest value, below which runs may not diverge. Empty for a setting with one value.
    fn edges_of(&self, setting: usize, tuned: &TunedSetting) -> Vec<TuningEdge> {
        let values = self.values(setting);
        if values.len() < 2 {
            return Vec::new();
        }
        let Some(winner) = self.winner() else {
            // Where everything diverged a smaller value may not.
            let diverged = self.candidates.iter().all(|c| c.loss == Some(f64::INFINITY));
            return diverged.then_some(TuningEdge::Smallest(setting)).into_iter().collect();
        };
        let Some(own) = winner.values[setting] else { return Vec::new() };
        let mut edges = Vec::new();
        // There is no whole number below 1 to be tried.
        if own == values[0] && !(tuned.whole && own <= 1.0) {
            edges.push(TuningEdge::Smallest(setting));
        }
        match self.above(winner, setting) {
            None if Some(&own) == values.last() => edges.push(TuningEdge::Largest(setting)),
            Some(above) if above.loss == Some(f64::INFINITY) => {
                edges.push(TuningEdge::Divergence(setting));
            }
            _ => {}
        }
        edges
    }

    /// The candidate with the next larger value of a setting and the same values of all other settings as this one;
    /// `None` if there is none.
    pub(super) fn above(&self, of: &Candidate, setting: usize) -> Option<&Candidate> {
        let alike = self.candidates.iter().filter(|other| {
            let mut pairs = other.values.iter().zip(&of.values).enumerate();
            pairs.all(|(i, (a, b))| if i == setting { a > b } else { a == b })
        });
        alike.min_by(|a, b| {
            a.values[setting].partial_cmp(&b.values[setting]).unwrap_or(std::cmp::Ordering::Equal)
        })
    }
}
