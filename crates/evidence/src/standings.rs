//! The table of a page that says which algorithm ranks first at each grid point: the rankings of
//! [`crate::ranking`] with the names of the algorithms.

use crate::cells::cost_sample::NoSample;
use crate::cells::costs::paid_costs;
use crate::cells::panels::Group;
use crate::cells::{CellResult, setting_text};
use crate::ranking::{PointRanking, Rankings, Rival, Separation, ranked_losses};
use crate::scene::family;
use crate::stats::CensoredMedian;
use exactfed_core::words::{count, joined, number};
use exactfed_runner::manifest::{ComparedAt, Quantity};
use exactfed_runner::plan::{CellId, Setting};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// The ranking at every grid point with several algorithms, as the table of a page shows it.
pub struct Standings {
    /// The names of the varied settings that all algorithms have: a combination of their values is a grid point.
    pub axes: Vec<String>,
    /// The quantity by which the algorithms are ranked.
    pub by: Quantity,
    /// A row for each grid point with several algorithms.
    pub rows: Vec<Standing>,
    /// The cost or the target at which the algorithms are compared; each after its last round if there is none.
    pub at: Option<ComparedAt>,
    /// Two means do not differ in practice if the larger is less than 1 plus this margin times the smaller.
    pub margin: f64,
    /// What the algorithms have paid where they are compared, as sentences.
    pub costs: String,
    /// The number of comparisons with the best that needed a test, on the whole page with its maps: the family of
    /// Holm's correction.
    pub compared: usize,
}

/// The ranking at a grid point, as a row of the table.
pub struct Standing {
    /// The value of each of [`Standings::axes`] at the grid point.
    pub values: Vec<Setting>,
    /// Each of these values with its setting, in the notation of the sources, as `γ = 0.1`.
    pub settings: Arc<[String]>,
    /// The names of the algorithm with the best mean, and of all that are not separated from it; none if no
    /// algorithm has a mean or all ended above the start.
    pub leaders: Vec<Arc<str>>,
    /// The family, that is the colour, of the algorithm with the best mean; `None` if nothing is ranked.
    pub family: Option<usize>,
    /// Every algorithm: those that are ranked from the best mean to the worst, then the others.
    pub algorithms: Vec<RankedAlgorithm>,
    /// The best mean; NaN if no algorithm has a mean.
    pub error: f64,
    /// Whether the mean loss of the algorithm that is ranked first is zero to rounding.
    pub is_zero: bool,
    /// Whether the ratios to the best are of geometric means over instances.
    pub is_geometric: bool,
    /// The size of the sample of the best algorithm, or of the first one if nothing is ranked.
    pub n: usize,
    /// What a value of the sample is of: "run", or "instance" of the problem.
    pub unit: &'static str,
    /// The names of algorithms with runs that diverged, which are not ranked.
    pub diverged: Vec<Arc<str>>,
    /// The names of algorithms with runs that end before the cost is reached, which are not ranked either.
    pub ended: Vec<Arc<str>>,
    /// The names of algorithms with runs that do not reach the target, which are not ranked by a cost. Where algorithms
    /// are compared at a target, each is followed by how many runs do not reach it, and the median over all runs.
    pub unreached: Vec<Arc<str>>,
    /// The names of algorithms for which the quantity is not recorded or whose mean is NaN, which are not ranked
    /// either.
    pub without_values: Vec<Arc<str>>,
}

/// An algorithm at a grid point.
pub struct RankedAlgorithm {
    /// Its label, and the settings that distinguish it from the others of its label at the grid point.
    pub name: Arc<str>,
    /// The id of its cell.
    pub cell: CellId,
    /// Its place, 1 for the best; `None` if it is not ranked.
    pub rank: Option<u32>,
    /// How it compares with the best; `None` for the best itself, and for one that is not ranked.
    pub rival: Option<Rival>,
}

impl Standing {
    /// The names of the algorithms that are compared with the best, and how they compare with it, from the best to the
    /// worst.
    pub fn rivals(&self) -> Vec<(&str, &Rival)> {
        let compared = self.algorithms.iter();
        compared.filter_map(|one| Some((&*one.name, one.rival.as_ref()?))).collect()
    }

    /// The algorithm that is second, if one is, with how it compares with the best.
    pub fn next(&self) -> Option<(&str, &Rival)> {
        self.rivals().into_iter().next()
    }

    /// The names of the algorithms whose mean losses are zero to rounding, from the best on; none if the best mean is
    /// not zero to rounding. Between them there is no ratio, and so neither a difference nor a tie.
    pub fn zeros(&self) -> Vec<&str> {
        let best = self.leaders.first().filter(|_| self.is_zero).map(|name| &**name);
        let rivals = self.rivals().into_iter();
        let others = rivals.filter(|(_, rival)| rival.separation == Separation::BothZero);
        best.into_iter().chain(others.map(|(name, _)| name)).collect()
    }

    /// Why nothing is ranked, in words for a row without leaders.
    pub fn nothing_ranked(&self) -> &'static str {
        if !self.error.is_nan() {
            "all end above the start"
        } else if !self.ended.is_empty() {
            "no runs reach the cost"
        } else if !self.unreached.is_empty() {
            "no algorithm reaches the target in all runs"
        } else if self.without_values.is_empty() {
            "all diverged"
        } else {
            "no values"
        }
    }

    /// The kind of mean, in words, whose ratios to the best are shown.
    pub fn mean(&self) -> &'static str {
        if self.is_geometric { "geometric mean" } else { "mean" }
    }

    /// Why only the best is ranked, in words for a row that has other algorithms, none of which is compared with it.
    pub fn no_others(&self) -> &'static str {
        match (self.diverged.is_empty(), self.ended.is_empty()) {
            _ if !self.without_values.is_empty() => "the others have no values",
            _ if !self.unreached.is_empty() => "the others do not reach the target in all runs",
            (_, true) => "all others diverged",
            (true, false) => "the others’ runs end before",
            (false, false) => "the others diverged or end before",
        }
    }
}

impl Standings {
    /// The rows of these grid points, which differ in the settings `axes`, with the rankings by this quantity, at a
    /// cost or else at the last round. Grid points that are not among the rankings have no row.
    pub fn new<'a>(
        axes: Vec<String>,
        points: &[Group<'a>],
        by: Quantity,
        at: Option<ComparedAt>,
        margin: f64,
        rankings: &Rankings<'a>,
    ) -> Self {
        let known: Vec<&str> = axes.iter().map(String::as_str).collect();
        // Many grid points have the same algorithms, whose names they share.
        let names = AlgorithmNames { known: &known, shared: RefCell::default() };
        let rows = points
            .iter()
            .filter_map(|point| {
                let outcome = rankings.outcome(&point.cells, by, at)?;
                Some(Standing::new(point, outcome, by, at, &names))
            })
            .collect();
        let cells: Vec<&[&CellResult<'_>]> = points.iter().map(|point| &point.cells[..]).collect();
        let costs = paid_costs(&cells, at);
        Self { axes, rows, by, at, margin, costs, compared: rankings.compared }
    }
}

/// Names of algorithms at grid points, with the settings that distinguish them there.
struct AlgorithmNames<'k> {
    /// The settings that distinguish grid points, which names leave out.
    known: &'k [&'k str],
    /// The names so far: many grid points have the same algorithms, and share the texts.
    shared: RefCell<HashSet<Arc<str>>>,
}

impl AlgorithmNames<'_> {
    /// The label of a cell with the settings that distinguish it at its grid point.
    fn name(&self, cell: &CellResult<'_>) -> Arc<str> {
        let text = joined(&[&cell.cell.label, &setting_text::details(cell.cell, self.known)]);
        let mut shared = self.shared.borrow_mut();
        if let Some(known) = shared.get(&*text) {
            return Arc::clone(known);
        }
        let name: Arc<str> = text.into();
        shared.insert(name.clone());
        name
    }

    /// The names of the cells among these, all of one grid point, that are not ranked by the quantity for the reason
    /// `why`.
    fn not_ranked(
        &self,
        cells: &[&CellResult<'_>],
        by: Quantity,
        at: Option<ComparedAt>,
        why: NoSample,
    ) -> Vec<Arc<str>> {
        let without = cells.iter().filter(|cell| ranked_losses(cell, by, at) == Err(why));
        without.map(|cell| self.name(cell)).collect()
    }

    /// The names of the cells among these, all of one grid point, with a run that does not reach the target. Where they
    /// are compared at a target, each says how many runs do not reach it, and the median over all runs.
    fn unreached(
        &self,
        cells: &[&CellResult<'_>],
        by: Quantity,
        at: Option<ComparedAt>,
    ) -> Vec<Arc<str>> {
        let names = self.not_ranked(cells, by, at, NoSample::Unreached);
        let Some(at) = at else { return names };
        let without = cells
            .iter()
            .filter(|cell| ranked_losses(cell, by, Some(at)) == Err(NoSample::Unreached));
        let texts = without.map(|cell| censored_text(cell.runs.values_at_target(by, at)));
        names.iter().zip(texts).map(|(name, text)| format!("{name} ({text})").into()).collect()
    }
}

/// How many of these runs have no value, and the median over all of them with its interval, in which a run without a
/// value counts as larger than any other: "3 of 10 runs, median 120 [80, ∞]".
fn censored_text(values: &[Option<f64>]) -> String {
    let missing = values.iter().filter(|value| value.is_none()).count();
    let CensoredMedian { median, interval: (low, high) } = CensoredMedian::new(values);
    let limits = if low.is_nan() {
        String::new()
    } else {
        format!(" [{}, {}]", number(low, 3), number(high, 3))
    };
    let all = count(values.len(), "run");
    format!("{missing} of {all}, median {}{limits}", number(median, 3))
}

impl Standing {
    /// The row of a grid point, from the ranking of its cells by a quantity, at a cost or else at the last round.
    fn new(
        group: &Group<'_>,
        outcome: &PointRanking,
        by: Quantity,
        at: Option<ComparedAt>,
        names: &AlgorithmNames<'_>,
    ) -> Self {
        let Group { values, settings, cells, .. } = group;
        let sample_size = cells[0].runs.sample_size();
        let (error, n, rivals): (f64, usize, &[Rival]) = match outcome {
            PointRanking::Diverged | PointRanking::Ended | PointRanking::WithoutValues => {
                (f64::NAN, sample_size, &[])
            }
            PointRanking::AboveStart { error } => (*error, sample_size, &[]),
            PointRanking::Ranked { error, n, rivals, .. } => (*error, *n, rivals),
        };
        let leaders = outcome.leaders();
        let ranked = outcome.ranked(|_| true);
        let with_rank = ranked.iter().enumerate().map(|(i, place)| (*place, Some(i as u32 + 1)));
        let others = (0..cells.len()).filter(|place| !ranked.contains(place));
        let mut algorithms = Vec::with_capacity(cells.len());
        for (place, rank) in with_rank.chain(others.map(|place| (place, None))) {
            algorithms.push(RankedAlgorithm {
                name: names.name(cells[place]),
                cell: cells[place].cell.id,
                rank,
                rival: rivals.iter().find(|rival| rival.cell as usize == place).cloned(),
            });
        }
        Self {
            algorithms,
            values: values.clone(),
            settings: settings.clone(),
            family: leaders.first().map(|place| family::family_of(cells[*place].cell)),
            leaders: leaders.into_iter().map(|place| names.name(cells[place])).collect(),
            error,
            is_zero: matches!(outcome, PointRanking::Ranked { is_zero: true, .. }),
            is_geometric: matches!(outcome, PointRanking::Ranked { is_geometric: true, .. }),
            n,
            unit: cells[0].sample_unit().word(),
            diverged: names.not_ranked(cells, by, at, NoSample::Diverged),
            ended: names.not_ranked(cells, by, at, NoSample::Ended),
            unreached: names.unreached(cells, by, at),
            without_values: names.not_ranked(cells, by, at, NoSample::Unrecorded),
        }
    }
}
