//! Which algorithm ranks first at each grid point with several algorithms: one computation for the
//! table of a page ([`crate::standings`]) and for its maps.
//!
//! *Invariant*: the algorithms of a grid point are compared once. Every comparison of a page, in
//! the table or in a map, belongs to one family for Holm's correction, so that no two parts of
//! a page disagree on a grid point.
//!
//! *Invariant*: all algorithms that are not separated from the best are named.
//!
//! *Invariant*: the order and the ratios are of losses ([`Quantity::loss`]), of which less is better. If more of a
//! quantity is better, its loss is what it lacks to its largest value.

use crate::cells::cost_sample::NoSample;
use crate::cells::costs::is_short;
use crate::cells::panels::{self, Group};
use crate::cells::{CellResult, rounding_floor};
use crate::stats::selection::selection_error;
use crate::stats::verdict::LEVEL;
use crate::stats::{Ratio, geometric_mean, holm, mean};
use exactfed_runner::manifest::{ComparedAt, Quantity, Start};
use exactfed_runner::plan::short;
use std::collections::{BTreeSet, HashMap};

/// Means whose relative difference is at most this are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// What the comparison of an algorithm with the best one at its grid point shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// Its mean loss is larger than that of the best, after Holm's correction.
    Larger,
    /// The runs do not decide whether it is larger.
    Unclear,
    /// Both mean losses are equal but for rounding: both geometric means where the ranking is by these.
    Equal,
    /// Both mean losses are zero to rounding, so that there is no ratio.
    BothZero,
}

/// An algorithm that is compared with the best of its grid point.
#[derive(Clone, Debug)]
pub struct Rival {
    /// The index of its cell among the cells that are compared at the grid point.
    pub cell: u32,
    /// Its mean loss as a multiple of that of the best, over paired runs; infinite where only the mean of the best is
    /// zero to rounding, NaN where both are.
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
    /// The quantity is not recorded for some algorithm, or its mean is NaN, and no other has a mean.
    WithoutValues,
    /// The smallest mean error is above the error at the start, so that no algorithm is worth ranking. The means are
    /// arithmetic, also where algorithms are ranked by geometric means.
    AboveStart {
        /// The smallest mean error.
        error: f64,
    },
    /// One algorithm has the best mean.
    Ranked {
        /// The index of the best algorithm's cell among the cells that are compared.
        best: usize,
        /// The mean of the quantity for the best algorithm, which is no loss: an accuracy stays one.
        error: f64,
        /// Whether the mean loss of the best algorithm is zero to rounding.
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
    /// The best algorithm and those that are not separated from it, as indices among the cells that are compared; none
    /// if nothing is ranked.
    pub fn leaders(&self) -> Vec<usize> {
        self.ranked(|rival| rival.separation != Separation::Larger)
    }

    /// Replaces the ratios to a best mean that is zero to rounding, which counts as 0: the ratio of a number to it is
    /// infinite, two zeros have no ratio, and neither has an interval.
    fn remove_ratios_to_zero(&mut self) {
        let Self::Ranked { is_zero: true, rivals, .. } = self else { return };
        for rival in rivals {
            rival.ratio = Ratio::to_zero(rival.separation == Separation::BothZero);
        }
    }

    /// The best algorithm and the rivals for which `is_meant` is true, from the best to the worst, as indices among the
    /// cells that are compared; none if nothing is ranked.
    pub fn ranked(&self, is_meant: fn(&Rival) -> bool) -> Vec<usize> {
        let Self::Ranked { best, rivals, .. } = self else { return Vec::new() };
        let meant = rivals.iter().filter(|rival| is_meant(rival));
        std::iter::once(*best).chain(meant.map(|rival| rival.cell as usize)).collect()
    }
}

/// The cells that are compared at a grid point, by which quantity, and at which cost; at the last
/// round if there is none.
pub type ComparedPoint<'a> = (Vec<&'a CellResult<'a>>, Quantity, Option<ComparedAt>);

/// What a compared point is found by: the ids of its cells in their order, the quantity, and whether it is at a target,
/// with the quantity and the number of this target or cost. The number is kept as bits because numbers cannot be keys.
type PointKey<'a> = (Vec<&'a str>, Quantity, Option<(bool, Quantity, u64)>);

/// The rankings at all grid points of a page, in its table and its maps.
#[derive(Default)]
pub struct Rankings<'a> {
    outcomes: HashMap<PointKey<'a>, PointRanking>,
    /// The number of comparisons with the best that needed a test: the family of Holm's correction.
    pub compared: usize,
}

impl<'a> Rankings<'a> {
    /// Compares the algorithms of each of these grid points with the best there, and corrects the p-values of all
    /// comparisons together. A grid point that occurs several times is compared once.
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

    /// The ranking of these cells by a quantity, at a cost or else at the last round; `None` if they were not among the
    /// grid points of [`Rankings::new`], in the same order. The indices in it are those of the cells in this order.
    pub fn outcome(
        &self,
        cells: &[&'a CellResult<'a>],
        quantity: Quantity,
        at: Option<ComparedAt>,
    ) -> Option<&PointRanking> {
        self.outcomes.get(&key(cells, quantity, at))
    }
}

/// What the ranking of these cells is found by among [`Rankings`].
fn key<'a>(
    cells: &[&'a CellResult<'a>],
    quantity: Quantity,
    at: Option<ComparedAt>,
) -> PointKey<'a> {
    let at = at.map(|at| match at {
        ComparedAt::Target { until } => (true, until.metric, until.target.to_bits()),
        ComparedAt::Cost(cost) => (false, cost.unit, cost.most.to_bits()),
    });
    (cells.iter().map(|c| c.cell.id.as_str()).collect(), quantity, at)
}

/// The losses of a cell by whose mean it is ranked, at a cost or else at the last round.
///
/// # Errors
/// Why the cell is not ranked: [`NoSample::Unrecorded`] also if the mean is NaN.
pub fn ranked_losses(
    cell: &CellResult<'_>,
    quantity: Quantity,
    at: Option<ComparedAt>,
) -> Result<Vec<f64>, NoSample> {
    if at.is_none() && !cell.knows_cost(quantity) {
        return Err(NoSample::Unreached);
    }
    let sample = cell.runs.sample(quantity, at)?;
    let losses: Vec<f64> = sample.into_iter().map(|value| quantity.loss(value)).collect();
    if mean(&losses).is_nan() { Err(NoSample::Unrecorded) } else { Ok(losses) }
}

/// The outcome at a grid point of these cells, none of which has a mean by the quantity, at a cost or else at the last
/// round: why nothing is ranked. Runs that end before the cost come first, and divergence is the reason only if runs of
/// every cell diverged.
fn without_means(
    cells: &[&CellResult<'_>],
    quantity: Quantity,
    at: Option<ComparedAt>,
) -> PointRanking {
    if cells.iter().any(|cell| is_short(cell, at)) {
        return PointRanking::Ended;
    }
    let diverged =
        |cell: &&CellResult<'_>| ranked_losses(cell, quantity, at) == Err(NoSample::Diverged);
    if cells.iter().all(diverged) { PointRanking::Diverged } else { PointRanking::WithoutValues }
}

/// Ranks the cells of a grid point by their mean losses, at a cost or else at the last round. Comparisons that need a
/// test are left unclear, since [`Rankings::new`] corrects their p-values together with those of other grid points.
fn rank(cells: &[&CellResult<'_>], quantity: Quantity, at: Option<ComparedAt>) -> PointRanking {
    let mut all: Vec<(usize, Vec<f64>)> = Vec::with_capacity(cells.len());
    for (i, cell) in cells.iter().enumerate() {
        if let Ok(losses) = ranked_losses(cell, quantity, at) {
            all.push((i, losses));
        }
    }
    // Instances are compared by ratios, so that those with the largest errors do not decide alone. A
    // loss of 0, as of an algorithm that predicts every class of an instance, has no ratio: then all
    // algorithms are compared by their means, since means of two kinds have no order.
    let is_geometric = cells.iter().any(|cell| cell.is_over_instances())
        && all.iter().all(|(_, sample)| !geometric_mean(sample).is_nan());
    all.sort_by(|(_, a), (_, b)| {
        ordering_mean(a, is_geometric).total_cmp(&ordering_mean(b, is_geometric))
    });
    let Some(((best, sample), others)) = all.split_first() else {
        return without_means(cells, quantity, at);
    };
    let start = cells.iter().map(|c| c.runs.start).fold(0.0, f64::max);
    // A run that starts at its destination, at θ* or at the limit of its mean, can only go up.
    let is_away =
        start > 0.0 && cells.iter().all(|c| !matches!(*c.cell.identity.start, Start::Limit(_)));
    // The algorithm with the least geometric mean need not have the least mean.
    let least_mean = all.iter().map(|(_, losses)| mean(losses)).fold(f64::INFINITY, f64::min);
    if quantity == Quantity::SqError && is_away && least_mean > start {
        return PointRanking::AboveStart { error: least_mean };
    }
    let error = cells[*best].runs.sample(quantity, at).map_or(f64::NAN, |values| mean(&values));
    let floor = rounding_floor(quantity);
    let mut rivals = Vec::with_capacity(others.len());
    for (cell, other) in others {
        let error_of_selection = selection_error(&[
            (1.0, cells[*cell].loss_selection_changes(quantity)),
            (-1.0, cells[*best].loss_selection_changes(quantity)),
        ]);
        let is_exact = cells[*cell].is_deterministic() && cells[*best].is_deterministic();
        let ratio = if is_exact {
            Ratio::without_error(other, sample)
        } else {
            Ratio::of_selected(other, sample, is_geometric, error_of_selection)
        };
        let separation = untested_separation(other, sample, is_geometric, is_exact, floor);
        rivals.push(Rival { cell: *cell as u32, ratio, separation });
    }
    let is_zero = mean(sample) < floor;
    PointRanking::Ranked { best: *best, error, is_zero, n: sample.len(), rivals, is_geometric }
}

/// The mean of a sample of losses by which algorithms are ordered: the geometric mean if `is_geometric`.
fn ordering_mean(sample: &[f64], is_geometric: bool) -> f64 {
    if is_geometric { geometric_mean(sample) } else { mean(sample) }
}

/// Whether several runs have equal values, which shows that nothing in them is random; one run shows nothing.
fn is_constant(sample: &[f64]) -> bool {
    sample.len() > 1 && sample.iter().all(|v| *v == sample[0])
}

/// Compares the losses of an algorithm with those of the best, whose mean is not the larger one, where that needs no
/// test: both means are equal or below `floor`, which is rounding, no run of either differs from another, or nothing in
/// either is random (`is_exact`), so that one run says all. [`Separation::Unclear`] where a test is needed. Where
/// algorithms are ordered by geometric means (`is_geometric`), these are the means that are equal; whether errors are
/// rounding depends on their arithmetic means in any case.
fn untested_separation(
    other: &[f64],
    best: &[f64],
    is_geometric: bool,
    is_exact: bool,
    floor: f64,
) -> Separation {
    let [other_level, best_level] = [other, best].map(|losses| ordering_mean(losses, is_geometric));
    // By geometric means the best may have the larger mean.
    if mean(other).max(mean(best)) < floor {
        Separation::BothZero
    } else if (other_level - best_level).abs() <= ROUNDING * other_level.max(best_level) {
        Separation::Equal
    } else if is_exact || is_constant(other) && is_constant(best) {
        Separation::Larger
    } else {
        Separation::Unclear
    }
}

/// Whether a cell of this label has the setting with this path, or one with its short name in its table of the manifest
/// (`problem` or `algorithm`): a batch of the problem is another setting than the batch of mini-batch SGD.
fn has_setting(cells: &[&CellResult<'_>], label: &str, path: &str) -> bool {
    let table = path.split('.').next();
    cells.iter().filter(|cell| cell.cell.label == label).any(|cell| {
        let own = cell.cell.settings.path(short(path));
        own.is_some_and(|own| own.split('.').next() == table)
    })
}

/// The names of the varied settings that the algorithms of all labels have, and the grid points that the values of
/// these settings make, as far as several cells are at one; no grid points if there is a single label. A label may have
/// several cells at a grid point, which differ in settings that another label lacks.
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
    use crate::cells::runs::{Grouping, Runs, TraceNeeds};
    use crate::needs::Needs;
    use crate::simulated;
    use crate::wrong::{self, Mutation};
    use exactfed_core::federated::Cost;
    use exactfed_runner::manifest::Prices;
    use exactfed_runner::plan::Cell;
    use exactfed_runner::runner::prepare;
    use exactfed_runner::trace::Trace;

    const FLOOR: f64 = 1e-28;

    /// Compares samples of cells with something random.
    fn random(other: &[f64], best: &[f64]) -> Separation {
        untested_separation(other, best, false, false, FLOOR)
    }

    /// Compares single runs of cells without anything random.
    fn exact(other: f64, best: f64) -> Separation {
        untested_separation(&[other], &[best], false, true, FLOOR)
    }

    /// Compares samples over drawn instances, which are ordered by their geometric means.
    fn over_instances(other: &[f64], best: &[f64]) -> Separation {
        untested_separation(other, best, true, false, FLOOR)
    }

    #[test]
    fn comparisons_that_need_no_test() {
        assert_eq!(random(&[2.0, 2.0], &[2.0, 2.0]), Separation::Equal);
        assert_eq!(random(&[0.0, 0.0], &[0.0, 0.0]), Separation::BothZero);
        assert_eq!(random(&[2.0, 2.0], &[1.0, 1.0]), Separation::Larger);
        assert_eq!(random(&[2.0, 2.0], &[0.0, 0.0]), Separation::Larger);
        assert_eq!(random(&[2.0, 2.5], &[1.0, 1.0]), Separation::Unclear);
        // One run shows no spread, unless there is none.
        assert_eq!(random(&[2.0], &[1.0]), Separation::Unclear);
        assert_eq!(exact(2.0, 1.0), Separation::Larger);
        // Rounding is not larger than rounding, but a number is.
        assert_eq!(exact(2e-30, 1e-32), Separation::BothZero);
        assert_eq!(exact(2e-20, 1e-32), Separation::Larger);
        // The geometric mean of the second is smaller, and its mean larger.
        assert_eq!(random(&[2.0, 2.0], &[0.5, 4.0]), Separation::Unclear);
    }

    /// Geometric means decide where they order, and not means: [1, 3] and [2, 2] have equal means and others do not.
    #[test]
    fn instances_are_equal_by_geometric_means() {
        assert_eq!(over_instances(&[2.0, 2.0], &[1.0, 3.0]), Separation::Unclear);
        assert_eq!(over_instances(&[2.0, 2.0], &[1.0, 4.0]), Separation::Equal);
        assert_eq!(over_instances(&[2e-30, 2e-30], &[1e-30, 3e-30]), Separation::BothZero);
        assert_eq!(random(&[2.0, 2.0], &[1.0, 3.0]), Separation::Equal);
    }

    /// Single runs without anything random have no sampling error: the ratio is known.
    #[test]
    fn the_interval_of_an_exact_ratio_is_the_ratio() {
        let exact = wrong::manifest(1, "4").replace("seed = 5", "seed = 5\noracle = \"exact\"");
        let plan = simulated::plan(exact);
        let cells: Vec<_> = plan.cells.iter().collect();
        let prepared = prepare(&plan.folder(), &cells).unwrap();
        let results = simulated::results(&prepared, &Needs::of_claims(&plan), Mutation::None);
        let compared: Vec<_> = results.iter().collect();
        let ranking = rank(&compared, Quantity::SqError, None);
        let PointRanking::Ranked { rivals, n: 1, .. } = &ranking else { panic!("{ranking:?}") };
        let [Rival { ratio, separation: Separation::Larger, .. }] = rivals.as_slice() else {
            panic!("{rivals:?}")
        };
        assert!(ratio.estimate > 1.0 && ratio.low == ratio.estimate, "{ratio:?}");
        assert_eq!((ratio.high, ratio.p), (ratio.estimate, 0.0));
    }

    /// The result of a cell with two instances whose runs begin with an error of 10 and end with these errors.
    fn result_ending_at(cell: &Cell, ends: [f64; 2]) -> CellResult<'_> {
        let traces = ends.map(|end| Trace {
            round: vec![0, 60],
            cost: vec![Cost::default(); 2],
            sq_error: vec![10.0, end],
            ..Trace::default()
        });
        let grouping = Grouping::new(cell);
        let runs = Runs::new(traces.to_vec(), grouping, &TraceNeeds::default(), &Prices::default());
        simulated::result(cell, runs)
    }

    /// The ranking of two algorithms over two instances that end with these errors.
    fn rank_ending_at(first: [f64; 2], second: [f64; 2]) -> PointRanking {
        let text = wrong::manifest(1, "4").replace("seed = 5", "seed = 5\ninstances = 2");
        let plan = simulated::plan(text);
        let results =
            [result_ending_at(&plan.cells[0], first), result_ending_at(&plan.cells[1], second)];
        rank(&[&results[0], &results[1]], Quantity::SqError, None)
    }

    /// The algorithm with the least geometric mean may end above the start on average, and another one not.
    #[test]
    fn all_end_above_the_start_if_the_least_mean_does() {
        let ranking = rank_ending_at([1e-6, 1e3], [1.0, 1.0]);
        let PointRanking::Ranked { best: 0, is_geometric: true, rivals, .. } = &ranking else {
            panic!("{ranking:?}")
        };
        assert_eq!(rivals.len(), 1);
        let ranking = rank_ending_at([1e-6, 1e3], [20.0, 20.0]);
        let PointRanking::AboveStart { error } = ranking else { panic!("{ranking:?}") };
        assert_eq!(error, 20.0);
    }

    /// Cells with two runs each on the problem of [`wrong::manifest`]: FedLSA and then SCAFFLSA.
    fn with_two_cells<T>(see: impl FnOnce(&mut [CellResult<'_>]) -> T) -> T {
        let plan = simulated::plan(wrong::manifest(2, "4"));
        let cells: Vec<_> = plan.cells.iter().collect();
        let prepared = prepare(&plan.folder(), &cells).unwrap();
        see(&mut simulated::results(&prepared, &Needs::of_claims(&plan), Mutation::None))
    }

    /// The cells do not record the bias, and none diverged.
    #[test]
    fn cells_without_values_have_not_diverged() {
        with_two_cells(|results| {
            let compared: Vec<_> = results.iter().collect();
            let by_error = rank(&compared, Quantity::SqError, None);
            assert!(matches!(by_error, PointRanking::Ranked { .. }), "{by_error:?}");
            let by_bias = rank(&compared, Quantity::Bias, None);
            assert!(matches!(by_bias, PointRanking::WithoutValues), "{by_bias:?}");
        });
    }

    #[test]
    fn runs_of_all_cells_diverged_or_only_of_some() {
        with_two_cells(|results| {
            results[0].runs.diverged = 1;
            let first_diverged: Vec<_> = results.iter().collect();
            let by_error = rank(&first_diverged, Quantity::SqError, None);
            assert!(matches!(by_error, PointRanking::Ranked { best: 1, .. }), "{by_error:?}");
            let by_bias = rank(&first_diverged, Quantity::Bias, None);
            assert!(matches!(by_bias, PointRanking::WithoutValues), "{by_bias:?}");
            results[1].runs.diverged = 1;
            let all_diverged: Vec<_> = results.iter().collect();
            let by_bias = rank(&all_diverged, Quantity::Bias, None);
            assert!(matches!(by_bias, PointRanking::Diverged), "{by_bias:?}");
        });
    }

    fn rival(separation: Separation) -> Rival {
        let ratio = Ratio { estimate: 832.0, low: 677.0, high: 986.0, p: 0.0 };
        Rival { cell: 1, ratio, separation }
    }

    /// The ratios of two rivals to a best mean that is zero to rounding, or is not.
    fn ratios(is_zero: bool) -> Vec<f64> {
        let mut ranked = PointRanking::Ranked {
            best: 0,
            error: 4e-33,
            is_zero,
            n: 5,
            rivals: vec![rival(Separation::BothZero), rival(Separation::Larger)],
            is_geometric: false,
        };
        ranked.remove_ratios_to_zero();
        let PointRanking::Ranked { rivals, .. } = ranked else { unreachable!("it is ranked") };
        rivals.iter().map(|rival| rival.ratio.estimate).collect()
    }

    #[test]
    fn a_mean_that_is_zero_to_rounding_has_no_finite_ratio() {
        let to_zero = ratios(true);
        assert!(to_zero[0].is_nan() && to_zero[1] == f64::INFINITY);
        assert_eq!(ratios(false), [832.0, 832.0]);
    }
}
