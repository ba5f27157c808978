//! Which algorithm ranks first at each grid point with several algorithms: one computation for the
//! table of a page and for its maps.
//!
//! *Invariant*: the algorithms of a grid point are compared once. Every comparison of a page, in
//! the table or in a map, belongs to one family for Holm's correction, so that no two parts of
//! a page disagree on a grid point.
//!
//! *Invariant*: all algorithms that are not separated from the best are named.
//!
//! *Invariant*: the order and the ratios are of losses ([`Quantity::loss`]), of which less is better:
//! of a quantity of which more is better, of what it lacks to its largest value.

use crate::cells::cost_sample::NoSample;
use crate::cells::costs::{is_short, paid_costs};
use crate::cells::panels::{self, Group};
use crate::cells::{CellResult, rounding_floor, setting_text};
use crate::scene::family;
use crate::stats::selection::selection_error;
use crate::stats::verdict::LEVEL;
use crate::stats::{Ratio, geometric_mean, holm, mean};
use exactfed_core::words::joined;
use exactfed_runner::manifest::{AtCost, Quantity, Start};
use exactfed_runner::plan::{CellId, Setting, short};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Means whose relative difference is at most this are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// The result of a comparison with the best of a grid point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// The mean loss is larger, after Holm's correction.
    Larger,
    /// The runs do not decide.
    Unclear,
    /// The means are equal but for rounding.
    Equal,
    /// Both means are zero to rounding, so that there is no ratio.
    BothZero,
}

/// An algorithm that is compared with the best of its grid point.
#[derive(Clone, Debug)]
pub struct Rival {
    /// Index of its cell among those compared.
    pub cell: u32,
    /// How many times larger its mean loss is, over paired runs; infinite where only the smallest mean
    /// is zero to rounding, NaN where both are.
    pub ratio: Ratio,
    /// What the comparison with the best shows.
    pub separation: Separation,
}

/// The ranking at a grid point.
#[derive(Clone, Debug)]
pub enum PointRanking {
    /// Runs of every algorithm diverged, so that none has a mean.
    Diverged,
    /// The runs of some algorithm end before the cost is reached, and no other has a mean.
    Ended,
    /// The smallest mean error is above the error at the start.
    AboveStart {
        /// The least mean of the quantity.
        error: f64,
    },
    /// One has the best mean.
    Ranked {
        /// Index of its cell among those compared.
        best: usize,
        /// The mean of the best algorithm.
        error: f64,
        /// Whether this mean is zero to rounding.
        is_zero: bool,
        /// The sample size of the best algorithm.
        n: usize,
        /// The others that have a mean, from the best to the worst.
        rivals: Vec<Rival>,
        /// Whether geometric means over instances are compared.
        is_geometric: bool,
    },
}

impl PointRanking {
    /// The best and those that are not separated from it, as indices among those compared.
    pub fn leaders(&self) -> Vec<usize> {
        self.ranked(|rival| rival.separation != Separation::Larger)
    }

    /// A mean that is zero to rounding counts as 0: a number is infinitely many times larger, and
    /// two zeros have no ratio.
    fn remove_ratios_to_zero(&mut self) {
        let Self::Ranked { is_zero: true, rivals, .. } = self else { return };
        for rival in rivals {
            let is_both = rival.separation == Separation::BothZero;
            rival.ratio.estimate = if is_both { f64::NAN } else { f64::INFINITY };
            rival.ratio.low = f64::NAN;
            rival.ratio.high = f64::NAN;
        }
    }

    /// The best and the rivals that are meant, as indices into the compared cells.
    fn ranked(&self, is_meant: fn(&Rival) -> bool) -> Vec<usize> {
        let Self::Ranked { best, rivals, .. } = self else { return Vec::new() };
        let meant = rivals.iter().filter(|rival| is_meant(rival));
        std::iter::once(*best).chain(meant.map(|rival| rival.cell as usize)).collect()
    }
}

/// The cells that are compared at a grid point, by which quantity, and at which cost; at the last
/// round if there is none.
pub type ComparedPoint<'a> = (Vec<&'a CellResult<'a>>, Quantity, Option<AtCost>);

/// A compared point as a key: the ids of the cells in their order, and the cost by its bits.
type PointKey<'a> = (Vec<&'a str>, Quantity, Option<(Quantity, u64)>);

/// The outcomes at all grid points of a page.
#[derive(Default)]
pub struct Rankings<'a> {
    outcomes: HashMap<PointKey<'a>, PointRanking>,
    /// Comparisons in the family of the correction.
    pub compared: usize,
}

impl<'a> Rankings<'a> {
    /// Compares the algorithms of each of these grid points with the best there.
    pub fn new(points: impl Iterator<Item = ComparedPoint<'a>>) -> Self {
        let mut outcomes = HashMap::new();
        let mut order: Vec<PointKey<'a>> = Vec::new();
        for (cells, quantity, at) in points {
            let key = key(&cells, quantity, at);
            if !outcomes.contains_key(&key) {
                outcomes.insert(key.clone(), rank(&cells, quantity, at));
                order.push(key);
            }
        }
        let mut open: Vec<(&PointKey<'a>, usize, f64)> = Vec::new();
        for key in &order {
            let PointRanking::Ranked { rivals, .. } = &outcomes[key] else { continue };
            let unclear = rivals
                .iter()
                .enumerate()
                .filter(|(_, rival)| rival.separation == Separation::Unclear);
            open.extend(unclear.map(|(i, rival)| (key, i, rival.ratio.p)));
        }
        let p: Vec<f64> = open.iter().map(|(_, _, p)| if p.is_nan() { 1.0 } else { *p }).collect();
        let compared = open.len();
        for ((key, i, _), p) in open.into_iter().zip(holm(&p)) {
            if let Some(PointRanking::Ranked { rivals, .. }) = outcomes.get_mut(key)
                && p <= LEVEL
                && rivals[i].ratio.low > 1.0
            {
                rivals[i].separation = Separation::Larger;
            }
        }
        outcomes.values_mut().for_each(PointRanking::remove_ratios_to_zero);
        Self { outcomes, compared }
    }

    /// The ranking of these cells, which were among the grid points.
    pub fn outcome(
        &self,
        cells: &[&'a CellResult<'a>],
        quantity: Quantity,
        at: Option<AtCost>,
    ) -> Option<&PointRanking> {
        self.outcomes.get(&key(cells, quantity, at))
    }
}

/// What the outcome of these cells is found by.
fn key<'a>(cells: &[&'a CellResult<'a>], quantity: Quantity, at: Option<AtCost>) -> PointKey<'a> {
    let at = at.map(|at| (at.unit, at.most.to_bits()));
    (cells.iter().map(|c| c.cell.id.as_str()).collect(), quantity, at)
}

/// The cells of a grid point by their means; comparisons that need a test are left unclear.
fn rank(cells: &[&CellResult<'_>], quantity: Quantity, at: Option<AtCost>) -> PointRanking {
    let mut all: Vec<(usize, Vec<f64>)> = Vec::with_capacity(cells.len());
    for (i, cell) in cells.iter().enumerate() {
        let Ok(sample) = cell.runs.sample(quantity, at) else { continue };
        let losses: Vec<f64> = sample.into_iter().map(|value| quantity.loss(value)).collect();
        if !mean(&losses).is_nan() {
            all.push((i, losses));
        }
    }
    // Instances are compared by ratios, so that those with the largest errors do not decide alone. A
    // loss of 0, as of an algorithm that predicts every class of an instance, has no ratio: then all
    // algorithms are compared by their means, since means of two kinds have no order.
    let is_geometric = cells.iter().any(|cell| cell.is_over_instances())
        && all.iter().all(|(_, sample)| !geometric_mean(sample).is_nan());
    all.sort_by(|a, b| height(&a.1, is_geometric).total_cmp(&height(&b.1, is_geometric)));
    let Some(((best, sample), others)) = all.split_first() else {
        let ended = cells.iter().any(|cell| is_short(cell, at));
        return if ended { PointRanking::Ended } else { PointRanking::Diverged };
    };
    let error = cells[*best].runs.sample(quantity, at).map_or(f64::NAN, |values| mean(&values));
    let floor = rounding_floor(quantity);
    let start = cells.iter().map(|c| c.runs.start).fold(0.0, f64::max);
    // A run that starts at its destination, at θ* or at the limit of its mean, can only go up.
    let is_away =
        start > 0.0 && cells.iter().all(|c| !matches!(*c.cell.identity.start, Start::Limit(_)));
    if quantity == Quantity::SqError && is_away && error > start {
        return PointRanking::AboveStart { error };
    }
    let mut rivals = Vec::with_capacity(others.len());
    for (cell, other) in others {
        let error_of_selection = selection_error(&[
            (1.0, cells[*cell].loss_selection_changes(quantity)),
            (-1.0, cells[*best].loss_selection_changes(quantity)),
        ]);
        let ratio = Ratio::of_selected(other, sample, is_geometric, error_of_selection);
        let exact = cells[*cell].is_deterministic() && cells[*best].is_deterministic();
        let separation = untested_separation(other, sample, exact, floor);
        rivals.push(Rival { cell: *cell as u32, ratio, separation });
    }
    let is_zero = mean(sample) < floor;
    PointRanking::Ranked { best: *best, error, is_zero, n: sample.len(), rivals, is_geometric }
}

/// The mean by which algorithms are ordered.
fn height(sample: &[f64], is_geometric: bool) -> f64 {
    if is_geometric { geometric_mean(sample) } else { mean(sample) }
}

/// Whether several runs show that nothing in the sample is random.
fn is_constant(sample: &[f64]) -> bool {
    sample.len() > 1 && sample.iter().all(|v| *v == sample[0])
}

/// The result of a comparison that needs no test: the means are equal, no run differs from
/// another, or nothing is random, so that one run is `exact`. Means below `floor` are rounding.
fn untested_separation(other: &[f64], best: &[f64], exact: bool, floor: f64) -> Separation {
    // By geometric means the best may have the larger mean.
    let [other_mean, best_mean] = [other, best].map(mean);
    let larger = other_mean.max(best_mean);
    if larger < floor {
        Separation::BothZero
    } else if (other_mean - best_mean).abs() <= ROUNDING * larger {
        Separation::Equal
    } else if exact || is_constant(other) && is_constant(best) {
        Separation::Larger
    } else {
        Separation::Unclear
    }
}

/// The ranking at every grid point with several algorithms.
pub struct Standings {
    /// Names of the settings that all algorithms have.
    pub axes: Vec<String>,
    /// The quantity by which they are ranked.
    pub by: Quantity,
    /// A row for each combination of their values.
    pub rows: Vec<Standing>,
    /// The cost at which the algorithms are compared; each after its last round if there is none.
    pub at: Option<AtCost>,
    /// Means of which one is less than 1 plus this times the other do not differ in practice.
    pub margin: f64,
    /// What the algorithms have paid, as sentences.
    pub costs: String,
    /// Comparisons on the whole page, maps included, in the family of Holm's correction.
    pub compared: usize,
}

/// The ranking at a grid point, as a row of the table.
pub struct Standing {
    /// The values of the settings that distinguish grid points.
    pub values: Vec<Setting>,
    /// Each of these settings in the notation of the sources.
    pub settings: Arc<[String]>,
    /// The algorithm with the best mean, and all that are not separated from it; none if no
    /// algorithm has a mean or all ended above the start.
    pub leaders: Vec<Arc<str>>,
    /// The family of the algorithm with the best mean, if one has a mean.
    pub family: Option<usize>,
    /// Every algorithm: those that are ranked from the best mean to the worst, then the others.
    pub algorithms: Vec<RankedAlgorithm>,
    /// The best mean; NaN if there is none.
    pub error: f64,
    /// Whether an algorithm is ranked first whose mean is zero to rounding.
    pub is_zero: bool,
    /// Whether its ratios are of geometric means over instances.
    pub is_geometric: bool,
    /// The size of the sample of the best.
    pub n: usize,
    /// What the sample is of: runs, or instances of the problem.
    pub unit: &'static str,
    /// Algorithms with runs that diverged, which are not ranked.
    pub diverged: Vec<Arc<str>>,
    /// Algorithms with runs that end before the cost is reached, which are not ranked either.
    pub ended: Vec<Arc<str>>,
}

/// An algorithm at a grid point.
pub struct RankedAlgorithm {
    /// Its label, and the settings that distinguish it from the others of the label there.
    pub name: Arc<str>,
    /// The id of its cell.
    pub cell: CellId,
    /// Its place, from 1 on, if it is ranked.
    pub rank: Option<u32>,
    /// How it compares with the best; `None` of the best, and of one that is not ranked.
    pub rival: Option<Rival>,
}

impl Standing {
    /// The algorithms that are compared with the best, and how many times larger their mean losses
    /// are, from the best to the worst.
    pub fn rivals(&self) -> Vec<(&str, &Rival)> {
        let compared = self.algorithms.iter();
        compared.filter_map(|one| Some((&*one.name, one.rival.as_ref()?))).collect()
    }

    /// The next after the best.
    pub fn next(&self) -> Option<(&str, &Rival)> {
        self.rivals().into_iter().next()
    }

    /// Why nothing is ranked, if nothing is.
    pub fn nothing_ranked(&self) -> &'static str {
        match self.error.is_nan() {
            false => "all end above the start",
            true if self.ended.is_empty() => "all diverged",
            true => "no runs reach the cost",
        }
    }

    /// What its ratios are of, in words.
    pub fn mean(&self) -> &'static str {
        if self.is_geometric { "geometric mean" } else { "mean" }
    }

    /// Why only the best is in the ranking.
    pub fn no_others(&self) -> &'static str {
        match (self.diverged.is_empty(), self.ended.is_empty()) {
            (_, true) => "all others diverged",
            (true, false) => "the others’ runs end before",
            (false, false) => "the others diverged or end before",
        }
    }
}

impl Standings {
    /// The rows of these grid points, which differ in the settings `axes`.
    pub fn new<'a>(
        axes: Vec<String>,
        points: &[Group<'a>],
        (by, at, margin): (Quantity, Option<AtCost>, f64),
        rankings: &Rankings<'a>,
    ) -> Self {
        let known: Vec<&str> = axes.iter().map(String::as_str).collect();
        // Many points have the same algorithms.
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

    /// The names of the cells that have no sample for this reason.
    fn without_sample(
        &self,
        cells: &[&CellResult<'_>],
        by: Quantity,
        at: Option<AtCost>,
        why: NoSample,
    ) -> Vec<Arc<str>> {
        let without = cells.iter().filter(|cell| cell.runs.sample(by, at) == Err(why));
        without.map(|cell| self.name(cell)).collect()
    }
}

impl Standing {
    fn new(
        group: &Group<'_>,
        outcome: &PointRanking,
        by: Quantity,
        at: Option<AtCost>,
        names: &AlgorithmNames<'_>,
    ) -> Self {
        let Group { values, settings, cells, .. } = group;
        let sample_size = cells[0].runs.sample_size();
        let (error, n, rivals): (f64, usize, &[Rival]) = match outcome {
            PointRanking::Diverged | PointRanking::Ended => (f64::NAN, sample_size, &[]),
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
            unit: if cells[0].is_over_instances() { "instance" } else { "run" },
            diverged: names.without_sample(cells, by, at, NoSample::Diverged),
            ended: names.without_sample(cells, by, at, NoSample::Ended),
        }
    }
}

/// Whether a cell of this label has a setting, in the same table of the manifest: a batch of the problem is another
/// setting than the batch of mini-batch SGD.
fn has_setting(cells: &[&CellResult<'_>], label: &str, path: &str) -> bool {
    let table = path.split('.').next();
    cells.iter().filter(|cell| cell.cell.label == label).any(|cell| {
        let own = cell.cell.settings.path(short(path));
        own.is_some_and(|own| own.split('.').next() == table)
    })
}

/// The settings that all algorithms have, and the grid points of their values with several cells.
pub fn grid_points<'a>(cells: &[&'a CellResult<'a>]) -> (Vec<String>, Vec<Group<'a>>) {
    let labels: BTreeSet<&str> = cells.iter().map(|c| c.cell.label.as_str()).collect();
    let varied = panels::varied(cells.iter().map(|c| c.cell));
    let axes = varied
        .iter()
        .filter(|path| labels.iter().all(|label| has_setting(cells, label, path)))
        .map(|path| short(path));
    let axes: Vec<String> = panels::unique(axes).into_iter().map(str::to_owned).collect();
    if labels.len() < 2 {
        return (axes, Vec::new());
    }
    let groups = panels::panels(&axes, cells).into_iter();
    let points = groups.filter(|group| group.cells.len() > 1).collect();
    (axes, points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_that_need_no_test() {
        const FLOOR: f64 = 1e-28;
        let random = |other: &[f64], best: &[f64]| untested_separation(other, best, false, FLOOR);
        assert_eq!(random(&[2.0, 2.0], &[2.0, 2.0]), Separation::Equal);
        assert_eq!(random(&[0.0, 0.0], &[0.0, 0.0]), Separation::BothZero);
        assert_eq!(random(&[2.0, 2.0], &[1.0, 1.0]), Separation::Larger);
        assert_eq!(random(&[2.0, 2.0], &[0.0, 0.0]), Separation::Larger);
        assert_eq!(random(&[2.0, 2.5], &[1.0, 1.0]), Separation::Unclear);
        // One run shows no spread, unless there is none.
        assert_eq!(random(&[2.0], &[1.0]), Separation::Unclear);
        let exact = |other: f64, best: f64| untested_separation(&[other], &[best], true, FLOOR);
        assert_eq!(exact(2.0, 1.0), Separation::Larger);
        // Rounding is not larger than rounding, but a number is.
        assert_eq!(exact(2e-30, 1e-32), Separation::BothZero);
        assert_eq!(exact(2e-20, 1e-32), Separation::Larger);
        // The geometric mean of the second is smaller, and its mean larger.
        assert_eq!(random(&[2.0, 2.0], &[0.5, 4.0]), Separation::Unclear);
    }
    #[test]
    fn a_mean_that_is_zero_to_rounding_has_no_finite_ratio() {
        let rival = |separation| {
            let ratio = Ratio { estimate: 832.0, low: 677.0, high: 986.0, p: 0.0 };
            Rival { cell: 1, ratio, separation }
        };
        let ranked = |is_zero| {
            let rivals = vec![rival(Separation::BothZero), rival(Separation::Larger)];
            let mut ranked = PointRanking::Ranked {
                best: 0,
                error: 4e-33,
                is_zero,
                n: 5,
                rivals,
                is_geometric: false,
            };
            ranked.remove_ratios_to_zero();
            let PointRanking::Ranked { rivals, .. } = ranked else { unreachable!("it is ranked") };
            rivals.iter().map(|rival| rival.ratio.estimate).collect::<Vec<_>>()
        };
        let of_zero = ranked(true);
        assert!(of_zero[0].is_nan() && of_zero[1] == f64::INFINITY);
        assert_eq!(ranked(false), [832.0, 832.0]);
    }
}
