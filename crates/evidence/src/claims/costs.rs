//! The cost to bring the mean of a metric to a target: down to it, or up to it if more is better.
//!
//! Each recorded round has two hypotheses: that the mean there misses the target, and that it
//! meets it. Limits of the first round at which the mean meets the target
//! follow by testing rounds in a fixed order, from the first onwards for the lower limit and from
//! the last backwards for the upper one, so that the number of rounds costs no power; the upper
//! limit also tests all rounds together, at half of the level.

use super::judge::setting_number;
use super::keys::Reaching;
use super::sample::{MetricSample, log_ratio};
use crate::cells::CellResult;
use crate::stats::verdict::{Doubt, EQUAL, Evidence, Region, widened};
use exactfed_runner::manifest::Quantity;

/// Evidence for the slope of the cost to reach a target over a setting ([`slope_of_curves`]). `group` has the value of
/// the setting and the cell at each point of the line, and `weights` their weights in the slope of logarithms. `None`
/// if a cell does not reach the target, or is there at no cost, which has no logarithm.
pub fn slope_of_cost(
    metric: Quantity,
    reaching: &Reaching,
    group: &[(f64, &CellResult<'_>)],
    weights: &[f64],
    region: Region,
) -> Option<Evidence> {
    let curves: Vec<CostCurve> = group
        .iter()
        .map(|(_, cell)| CostCurve::new(cell, metric, reaching))
        .collect::<Option<_>>()?;
    slope_of_curves(&curves, weights, region)
}

/// Evidence for the slope of the cost to reach a target, from the curve of the cell at each point of the line and the
/// weights of these points. The limits of the cells are combined as if their errors were independent (MOVER), which
/// common noise makes too wide. Without noise the region is widened by rounding ([`widened`]). `None` if a cell does
/// not reach the target, or is there at no cost.
fn slope_of_curves(curves: &[CostCurve], weights: &[f64], region: Region) -> Option<Evidence> {
    let logs: Vec<f64> =
        curves.iter().map(|curve| Some(libm::log(curve.cost_reached()?))).collect::<Option<_>>()?;
    let estimate: f64 = weights.iter().zip(&logs).map(|(w, log)| w * log).sum();
    let n = curves.iter().map(|curve| curve.n).min()?;
    if !estimate.is_finite() {
        // A cell is at the target from the start: its cost of 0 has no logarithm.
        return None;
    }
    if curves.iter().all(|curve| curve.fixed) {
        return Some(Evidence { n, ..Evidence::exact(estimate, widened(region)) });
    }
    let curve_list: Vec<&CostCurve> = curves.iter().collect();
    let combined = CombinedCosts { curves: &curve_list, weights, logs: &logs, estimate };
    let (low, high) = region;
    let support =
        combined.excluding_level(|l| l.0 > low).max(combined.excluding_level(|l| l.1 < high));
    let beyond =
        combined.excluding_level(|l| l.1 < low).min(combined.excluding_level(|l| l.0 > high));
    Some(Evidence {
        interval: combined.limits(0.025),
        support,
        refute: (2.0 * beyond).min(1.0),
        region,
        doubt: curves.iter().map(|curve| curve.doubt).max().unwrap_or_default(),
        ..Evidence::undecided(estimate, n)
    })
}

/// A weighted sum of the logarithms of the costs of several cells, as the slope of a cost is.
struct CombinedCosts<'a> {
    /// The metric of each cell against the target.
    curves: &'a [&'a CostCurve],
    /// The weight of each cell.
    weights: &'a [f64],
    /// The logarithm of the cost of each cell; of what its runs have paid in all, if it does not reach the target.
    logs: &'a [f64],
    /// The weighted sum of the logarithms.
    estimate: f64,
}

impl CombinedCosts<'_> {
    /// The lower and the upper limit of the weighted sum of logarithms at this one-sided level, by MOVER: the distances
    /// of the limits of the cells from their estimates are added as independent errors are. A limit is infinite if a
    /// limit of a cell is at infinity or 0; cells without weight do not count.
    fn limits(&self, level: f64) -> (f64, f64) {
        let largest = self.weights.iter().fold(0.0_f64, |largest, w| largest.max(libm::fabs(*w)));
        let mut below = 0.0;
        let mut above = 0.0;
        for ((curve, w), log) in self.curves.iter().zip(self.weights).zip(self.logs) {
            // The weight of the middle one of three equidistant points is 0 or the rounding error of 0: the product
            // with a limit at infinity would be NaN or infinite, though the sum does not depend on this cell.
            if libm::fabs(*w) <= NO_WEIGHT * largest {
                continue;
            }
            let (low, high) = curve.limits_beyond_the_last_round(level);
            let to_low = w * (log - libm::log(low));
            let to_high = w * (libm::log(high) - log);
            // A cell with a negative weight takes the sum down where its own cost goes up.
            let (down, up) = if *w > 0.0 { (to_low, to_high) } else { (to_high, to_low) };
            below += down * down;
            above += up * up;
        }
        (self.estimate - below.sqrt(), self.estimate + above.sqrt())
    }

    /// A p-value of a hypothesis on the weighted sum, which `is_excluded` says that limits exclude: the smallest of
    /// [`LEVELS`] at which they do, going down from the largest; 1 if they do not even at the largest.
    fn excluding_level(&self, is_excluded: impl Fn((f64, f64)) -> bool) -> f64 {
        let excluding = LEVELS.iter().take_while(|level| is_excluded(self.limits(**level)));
        excluding.last().copied().unwrap_or(1.0)
    }
}

/// The largest ratio of a weight to the largest one at which the weight is taken for 0, from which it differs by
/// rounding.
const NO_WEIGHT: f64 = 1e-12;

/// The levels at which limits of a slope of costs are computed, to find its p-values.
const LEVELS: [f64; 16] = [
    0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.035, 0.025, 0.0125, 6e-3, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6,
];

/// A recorded round of a cell: what the replicates have paid by then, and whether the mean of the metric meets the
/// target.
struct RoundCost {
    /// The mean of `costs`.
    cost: f64,
    /// The cost of each replicate up to this round.
    costs: MetricSample,
    /// Whether the mean of the metric over the replicates meets the target.
    is_met: bool,
    /// The p-value of the hypothesis that the expected metric misses the target.
    missed: f64,
    /// The p-value of the hypothesis that the expected metric meets the target.
    met: f64,
}

/// p-values of the claim that something holds (`support`), and of the claim that it does not (`refute`).
struct PValues {
    support: f64,
    refute: f64,
}

impl RoundCost {
    /// The p-values of the claim that the round costs at most `limit` on average; 1 where the costs have no ratio to
    /// it.
    fn affordable(&self, limit: f64) -> PValues {
        let limit = MetricSample::exact(limit);
        match log_ratio(&self.costs, &limit, (f64::NEG_INFINITY, 0.0)) {
            Ok(Evidence { support, refute, .. }) => PValues { support, refute },
            Err(_) => PValues { support: 1.0, refute: 1.0 },
        }
    }
}

/// Whether a cell comes to its target within its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CostAtTarget {
    /// It does, at this mean cost.
    At(f64),
    /// It does not, though its runs have paid this on average: its cost is above this number.
    Never(f64),
}

impl CostAtTarget {
    /// The cost, or the number that it is above.
    fn least(self) -> f64 {
        match self {
            Self::At(cost) | Self::Never(cost) => cost,
        }
    }
}

/// Evidence that the logarithm of the cost of a cell, divided by that of another cell, is below `high`, if nothing is
/// random in either; `estimate` is this logarithm, where what a cell has paid in vain takes the place of its cost.
fn ratio_without_noise(
    own: CostAtTarget,
    others: CostAtTarget,
    estimate: f64,
    high: f64,
    n: usize,
) -> Evidence {
    let region = (f64::NEG_INFINITY, high);
    let exact = Evidence { n, ..Evidence::exact(estimate, widened(region)) };
    let undecided = Evidence { support: 1.0, refute: 1.0, ..exact };
    let is_limit = libm::fabs(estimate - high) <= EQUAL;
    match (own, others) {
        // Equal costs, or costs of exactly this ratio: neither is below the other.
        (CostAtTarget::At(_), CostAtTarget::At(_)) if is_limit => {
            Evidence { error: f64::NAN, doubt: Doubt::Equal, ..undecided }
        }
        (CostAtTarget::At(_), CostAtTarget::At(_)) => exact,
        // The other cost is larger than what stands for it here, and the ratio smaller: it is below a limit that the
        // estimate equals.
        (_, CostAtTarget::Never(_)) if exact.support == 0.0 => {
            Evidence { interval: (f64::NEG_INFINITY, estimate), ..exact }
        }
        (_, CostAtTarget::Never(_)) => {
            Evidence { interval: (f64::NEG_INFINITY, estimate), ..undecided }
        }
        (CostAtTarget::Never(_), _) if estimate >= high || is_limit => {
            let interval = (estimate, f64::INFINITY);
            Evidence { interval, support: 1.0, refute: 0.0, ..exact }
        }
        (CostAtTarget::Never(_), _) => {
            Evidence { interval: (estimate, f64::INFINITY), ..undecided }
        }
    }
}

/// What the mean of a metric must come to.
#[derive(Clone, Copy)]
pub struct Goal {
    /// The number that the mean is compared with.
    target: f64,
    /// The metric, of which the mean must be at most the target, or at least if it is an accuracy.
    metric: Quantity,
}

impl Goal {
    /// The goal of a claim for a cell; `None` if the target is not known.
    pub fn new(cell: &CellResult<'_>, metric: Quantity, reaching: &Reaching) -> Option<Self> {
        let target = target_of(cell, reaching)?;
        Some(Self { target, metric })
    }

    /// Whether a mean meets the goal.
    fn is_met(self, mean: f64) -> bool {
        self.metric.meets(mean, self.target)
    }

    /// The region in which log(mean/target) is where the goal is met.
    fn region(self) -> Region {
        if self.metric.more_is_better() { (0.0, f64::INFINITY) } else { (f64::NEG_INFINITY, 0.0) }
    }
}

/// The sign between a metric and its target in the formula of a claim.
pub fn target_sign(metric: Quantity) -> &'static str {
    if metric.more_is_better() { "≥" } else { "≤" }
}

/// The metric of a cell against a target at each recorded round, from which the cost to reach the target follows.
pub struct CostCurve {
    /// The recorded rounds in their order, as far as no run had diverged.
    rounds: Vec<RoundCost>,
    /// The size of the samples.
    n: usize,
    /// Whether nothing in the cell is random.
    fixed: bool,
    /// The gravest doubt about the samples of the metric.
    doubt: Doubt,
}

impl CostCurve {
    /// The metric of a cell against the target of a claim; `None` if the metric or the cost is not recorded, or the
    /// target is not known.
    pub fn new(cell: &CellResult<'_>, metric: Quantity, reaching: &Reaching) -> Option<Self> {
        let goal = Goal::new(cell, metric, reaching)?;
        // Both samples end where the first run diverges: after that no mean meets the target.
        let costs = cell.samples(reaching.cost);
        let metrics = cell.samples(metric);
        if costs.is_empty() || metrics.is_empty() {
            return None;
        }
        let samples = costs.into_iter().zip(metrics).map(|(costs, metrics)| {
            let costs = MetricSample::new(cell, reaching.cost, costs);
            (costs, MetricSample::new(cell, metric, metrics))
        });
        Some(Self::from_samples(samples, goal, cell.is_deterministic(), cell.runs.sample_size()))
    }

    /// The curve of a cell with `n` replicates, from two samples at each recorded round: the costs of the replicates,
    /// and their values of the metric. `fixed` says that nothing in its runs is random.
    fn from_samples(
        rounds: impl Iterator<Item = (MetricSample, MetricSample)>,
        goal: Goal,
        fixed: bool,
        n: usize,
    ) -> Self {
        let target = MetricSample::exact(goal.target);
        let mut doubt = Doubt::None;
        Self {
            rounds: rounds
                .map(|(costs, metric)| {
                    let evidence = log_ratio(&metric, &target, goal.region()).ok();
                    let (missed, met) = evidence.map_or((1.0, 1.0), |e| (e.support, e.refute));
                    doubt = doubt.max(evidence.map_or(Doubt::None, |e| e.doubt));
                    let is_met = goal.is_met(metric.mean());
                    RoundCost { cost: costs.mean(), costs, is_met, missed, met }
                })
                .collect(),
            n,
            fixed,
            doubt,
        }
    }

    /// Whether the mean of the metric comes to the target, and what the runs have paid on average by then.
    pub fn reached(&self) -> CostAtTarget {
        match self.cost_reached() {
            Some(cost) => CostAtTarget::At(cost),
            None => CostAtTarget::Never(self.rounds.last().map_or(0.0, |round| round.cost)),
        }
    }

    /// Evidence that the logarithm of the cost to reach the target, divided by that of another cell, is below the upper
    /// end of a region that is open below. A cell that does not reach the target costs more than its runs have paid:
    /// this number is its estimate and its lower limit, and its upper limit is infinite. `None` if neither cell reaches
    /// the target, or if one has paid nothing, which has no logarithm.
    pub fn ratio_to(&self, other: &Self, region: Region) -> Option<Evidence> {
        let own = self.reached();
        let others = other.reached();
        if matches!((own, others), (CostAtTarget::Never(_), CostAtTarget::Never(_))) {
            return None;
        }
        let logs = [libm::log(own.least()), libm::log(others.least())];
        let estimate = logs[0] - logs[1];
        if !estimate.is_finite() {
            return None;
        }
        let n = self.n.min(other.n);
        let (_, high) = region;
        if self.fixed && other.fixed {
            return Some(ratio_without_noise(own, others, estimate, high, n));
        }
        let combined =
            CombinedCosts { curves: &[self, other], weights: &[1.0, -1.0], logs: &logs, estimate };
        Some(Evidence {
            interval: combined.limits(0.025),
            support: combined.excluding_level(|limits| limits.1 < high),
            refute: combined.excluding_level(|limits| limits.0 > high),
            region,
            doubt: self.doubt.max(other.doubt),
            ..Evidence::undecided(estimate, n)
        })
    }

    /// The limits of [`Self::limits`], of which the lower one is at most what the runs have paid in all: where they
    /// have not met the target, later rounds may.
    fn limits_beyond_the_last_round(&self, level: f64) -> (f64, f64) {
        let (low, high) = self.limits(level);
        (low.min(self.rounds.last().map_or(0.0, |round| round.cost)), high)
    }

    /// The mean cost of the first round at which the mean of the metric meets the target; `None` if none does.
    fn cost_reached(&self) -> Option<f64> {
        self.rounds.iter().find(|round| round.is_met).map(|round| round.cost)
    }

    /// The lower and the upper limit of the cost of the first round at which the expected metric meets the target, each
    /// at this one-sided level. The lower one is infinite if no round may meet the target, the upper one if no round is
    /// known to.
    fn limits(&self, level: f64) -> (f64, f64) {
        let never = f64::INFINITY;
        if self.fixed {
            let cost = self.cost_reached().unwrap_or(never);
            return (cost, cost);
        }
        let low = self.rounds.iter().find(|round| round.met > level);
        // Half of the level is for the rounds from the last one backwards, half for all.
        let count = self.rounds.len();
        let backwards = self.rounds.iter().rev().take_while(|round| round.missed <= 0.5 * level);
        let backwards = Some(count - backwards.count()).filter(|first| *first < count);
        let among = self.rounds.iter().position(|r| r.missed * 2.0 * count as f64 <= level);
        let first = backwards.into_iter().chain(among).min();
        let high = first.map_or(never, |row| self.rounds[row].cost);
        (low.map_or(never, |round| round.cost), high)
    }

    /// Evidence that the expected metric meets the target at some round that costs at most `limit` on average. The
    /// estimate is the cost of the first round at which the mean meets it, infinite if none does. Support and
    /// refutation are p-values: the smaller, the more the samples say.
    pub fn within(&self, limit: f64) -> Evidence {
        // Half of the level is for the last affordable round, the rest for the others.
        let paid: Vec<&RoundCost> = self.rounds.iter().filter(|r| r.cost <= limit).collect();
        let mut support = 1.0_f64;
        for (i, round) in paid.iter().enumerate() {
            let factor = match paid.len() {
                1 => 1.0,
                many if i + 1 == many => 2.0,
                many => 2.0 * (many - 1) as f64,
            };
            support = support.min(factor * round.missed.max(round.affordable(limit).support));
        }
        let mut refute = 0.0_f64;
        for round in &self.rounds {
            // A round fails if its mean misses the target, or if it costs too much.
            let fails = match round.affordable(limit).refute {
                0.0 => 0.0,
                1.0 => round.met,
                too_dear => 2.0 * round.met.min(too_dear),
            };
            refute = refute.max(fails);
        }
        let estimate = self.cost_reached().unwrap_or(f64::INFINITY);
        Evidence {
            error: if self.fixed { 0.0 } else { f64::NAN },
            interval: self.limits(0.025),
            support: support.min(1.0),
            refute: refute.min(1.0),
            region: (f64::NEG_INFINITY, limit),
            doubt: self.doubt,
            ..Evidence::undecided(estimate, self.n)
        }
    }
}

/// The target of a claim for a cell, which may be a multiple of a setting; `None` if this setting is no number there.
pub fn target_of(cell: &CellResult<'_>, reaching: &Reaching) -> Option<f64> {
    match &reaching.per {
        None => Some(reaching.target),
        Some(per) => Some(reaching.target * setting_number(cell, per)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::verdict::{Verdict, slope_weights};
    use crate::stats::{mean, share};
    use exactfed_core::rng::Stream;

    /// Runs whose mean falls by a tenth in each round, from 1, times a skewed factor of each run
    /// and one of each round, against a target that the mean meets exactly at a round.
    fn curve(rng: &mut Stream, n: usize, target: f64) -> CostCurve {
        let own: Vec<f64> = (0..n).map(|_| skewed_factor(rng)).collect();
        let rows: Vec<(MetricSample, MetricSample)> = (0..30)
            .map(|row| {
                let mean = libm::pow(0.9, f64::from(row));
                let values = own.iter().map(|own| mean * own * skewed_factor(rng)).collect();
                (sample(vec![f64::from(row); n]), sample(values))
            })
            .collect();
        CostCurve::from_samples(
            rows.into_iter(),
            Goal { target, metric: Quantity::SqError },
            false,
            n,
        )
    }

    /// A lognormal factor with mean 1.
    fn skewed_factor(rng: &mut Stream) -> f64 {
        libm::exp(0.7 * rng.gaussian() - 0.245)
    }

    fn sample(values: Vec<f64>) -> MetricSample {
        MetricSample { values, fixed: false, floor: 0.0, ..MetricSample::exact(0.0) }
    }

    /// Runs whose mean accuracy rises from 0 towards 1, against a target from below.
    fn rising_curve(rng: &mut Stream, n: usize, target: f64) -> CostCurve {
        let rows: Vec<(MetricSample, MetricSample)> = (0..30)
            .map(|row| {
                let mean = 1.0 - libm::pow(0.9, f64::from(row));
                let values = (0..n).map(|_| mean * (1.0 + 0.02 * rng.gaussian())).collect();
                (sample(vec![f64::from(row); n]), sample(values))
            })
            .collect();
        CostCurve::from_samples(
            rows.into_iter(),
            Goal { target, metric: Quantity::Accuracy },
            false,
            n,
        )
    }

    /// A false claim, with the target just below the mean at the round that is allowed, is
    /// supported at most as often as the level says, and a true one refuted; run with
    /// --nocapture for the table of docs/notes/simulations.md.
    #[test]
    fn claims_on_costs_have_their_size() {
        let mut rng = Stream::shared_instance(1);
        let trials = 600;
        let meets = libm::pow(0.9, 15.0);
        let most = 0.05 + 4.0 * (0.05_f64 * 0.95 / f64::from(trials)).sqrt();
        for n in [2, 3, 5, 10, 30, 100] {
            let mut rate = |target: f64, wrong: Verdict| {
                share(trials, || curve(&mut rng, n, target).within(15.0).alone() == wrong)
            };
            let supported = rate(meets * (1.0 - 1e-9), Verdict::Supported);
            let refuted = rate(meets * (1.0 + 1e-9), Verdict::Refuted);
            println!("reaches, n = {n}: {supported:.3} supported, {refuted:.3} refuted");
            assert!(supported <= most && refuted <= most, "n = {n}: {supported} {refuted}");
        }
    }

    #[test]
    fn limits_of_the_first_round_hold_it() {
        let mut rng = Stream::shared_instance(2);
        let meets = libm::pow(0.9, 15.0) * (1.0 + 1e-9);
        let covered = share(400, || {
            let (low, high) = curve(&mut rng, 10, meets).limits(0.025);
            low <= 15.0 && 15.0 <= high
        });
        assert!(covered >= 0.9);
    }

    #[test]
    fn clear_cases_are_decided() {
        let mut rng = Stream::shared_instance(3);
        assert_eq!(curve(&mut rng, 40, 0.5).within(25.0).alone(), Verdict::Supported);
        assert_eq!(curve(&mut rng, 40, 0.1).within(10.0).alone(), Verdict::Refuted);
    }

    /// The middle one of three equidistant points has the weight 0, up to rounding. Its cell may be at the target from
    /// the start, and is not known ever to reach it: its limits are 0 and infinity.
    #[test]
    fn a_cell_without_weight_leaves_the_limits_of_a_slope_finite() {
        let cell = |met: f64, missed: f64| {
            let round = |cost: f64, met: f64, missed: f64| RoundCost {
                cost,
                costs: MetricSample::exact(cost),
                is_met: cost > 0.0,
                missed,
                met,
            };
            let rounds = vec![round(0.0, met, 1.0), round(8.0, 1.0, missed)];
            CostCurve { rounds, n: 5, fixed: false, doubt: Doubt::None }
        };
        let curves = [cell(0.0, 0.0), cell(1.0, 1.0), cell(0.0, 0.0)];
        assert_eq!(curves[1].limits(0.025), (0.0, f64::INFINITY));
        let log = libm::log(8.0);
        let logs = [log; 3];
        let curves = curves.each_ref();
        for points in [[2.0, 8.0, 32.0], [10.0, 100.0, 1000.0]] {
            let weights = slope_weights(&points);
            let combined =
                CombinedCosts { curves: &curves, weights: &weights, logs: &logs, estimate: 0.0 };
            assert_eq!(combined.limits(0.025), (0.0, 0.0), "{points:?}");
        }
        let weights = slope_weights(&[2.0, 7.0, 32.0]);
        let combined =
            CombinedCosts { curves: &curves, weights: &weights, logs: &logs, estimate: 0.0 };
        assert_eq!(combined.limits(0.025), (f64::NEG_INFINITY, f64::INFINITY));
    }

    /// A cell without noise whose metric falls from 1 to 0.1 when this was paid, or stays where it is until then.
    fn step_curve(cost: f64, falls: bool) -> CostCurve {
        let end = if falls { 0.1 } else { 1.0 };
        let rounds = [(0.0, 1.0), (0.5 * cost, 1.0), (cost, end)]
            .map(|(cost, metric)| (MetricSample::exact(cost), MetricSample::exact(metric)));
        let goal = Goal { target: 0.5, metric: Quantity::SqError };
        CostCurve::from_samples(rounds.into_iter(), goal, true, 1)
    }

    /// Without noise: who reaches the target first, and what is known where one side never reaches it.
    #[test]
    fn costs_until_the_target_are_ordered_without_noise() {
        use Verdict::{Inconclusive, Refuted, Supported};
        let region = (f64::NEG_INFINITY, 0.0);
        let verdict = |left: (f64, bool), right: (f64, bool)| {
            let curves = [left, right].map(|(cost, falls)| step_curve(cost, falls));
            curves[0].ratio_to(&curves[1], region).map(|evidence| evidence.alone())
        };
        assert_eq!(verdict((10.0, true), (20.0, true)), Some(Supported));
        assert_eq!(verdict((20.0, true), (10.0, true)), Some(Refuted));
        assert_eq!(verdict((10.0, true), (10.0, true)), Some(Inconclusive));
        // The right side has paid as much, or more, in vain; if it has paid less, it may still be first.
        assert_eq!(verdict((10.0, true), (20.0, false)), Some(Supported));
        assert_eq!(verdict((10.0, true), (10.0, false)), Some(Supported));
        assert_eq!(verdict((20.0, true), (10.0, false)), Some(Inconclusive));
        assert_eq!(verdict((20.0, false), (10.0, true)), Some(Refuted));
        assert_eq!(verdict((10.0, false), (10.0, true)), Some(Refuted));
        assert_eq!(verdict((10.0, false), (20.0, true)), Some(Inconclusive));
        assert_eq!(verdict((10.0, false), (20.0, false)), None);
        // A factor of a half, which is as large as the ratio of the costs.
        let half = (f64::NEG_INFINITY, libm::log(0.5));
        let found = step_curve(10.0, true).ratio_to(&step_curve(20.0, true), half).unwrap();
        assert_eq!(found.alone(), Inconclusive, "{found:?}");
    }

    /// With noise: the mean is at 0.5 after 7 rounds, at 0.1 after 22, and at 0.01 after none of 30.
    #[test]
    fn costs_until_the_target_are_ordered_with_noise() {
        let mut rng = Stream::shared_instance(5);
        let region = (f64::NEG_INFINITY, 0.0);
        let early = curve(&mut rng, 40, 0.5);
        let late = curve(&mut rng, 40, 0.1);
        let never = curve(&mut rng, 40, 0.01);
        let verdict =
            |left: &CostCurve, right: &CostCurve| left.ratio_to(right, region).unwrap().alone();
        assert_eq!(never.reached(), CostAtTarget::Never(29.0));
        assert_eq!(verdict(&early, &late), Verdict::Supported);
        assert_eq!(verdict(&late, &early), Verdict::Refuted);
        assert_eq!(verdict(&early, &never), Verdict::Supported);
        assert_eq!(verdict(&never, &early), Verdict::Refuted);
        assert!(never.ratio_to(&never, region).is_none());
    }

    /// Two cells of one distribution are ordered at most as often as the level says, also where one may not reach the
    /// target within its rounds.
    #[test]
    fn orders_of_costs_have_their_size() {
        let mut rng = Stream::shared_instance(6);
        let trials = 200;
        let most = 0.05 + 4.0 * (0.05_f64 * 0.95 / f64::from(trials)).sqrt();
        let region = (f64::NEG_INFINITY, 0.0);
        for target in [libm::pow(0.9, 10.0), libm::pow(0.9, 29.0)] {
            let supported = share(trials, || {
                let left = curve(&mut rng, 10, target);
                let right = curve(&mut rng, 10, target);
                let evidence = left.ratio_to(&right, region);
                evidence.is_some_and(|evidence| evidence.alone() == Verdict::Supported)
            });
            assert!(supported <= most, "{target}: {supported}");
        }
    }

    /// Costs without noise that double where the setting is four times as large have a slope of 0.5 but for rounding,
    /// which is inside a region that ends there.
    #[test]
    fn rounding_takes_no_slope_out_of_its_region() {
        let weights = slope_weights(&[1.0, 4.0]);
        for cost in 1..=100 {
            let curve = |cost: f64| {
                let rounds = [(0.0, 1.0), (cost, 0.1)]
                    .map(|(cost, metric)| (MetricSample::exact(cost), MetricSample::exact(metric)));
                let goal = Goal { target: 0.5, metric: Quantity::SqError };
                CostCurve::from_samples(rounds.into_iter(), goal, true, 1)
            };
            let curves = [curve(f64::from(cost)), curve(f64::from(2 * cost))];
            for region in [(0.5, 1.5), (-0.5, 0.5)] {
                let found = slope_of_curves(&curves, &weights, region).unwrap();
                assert_eq!(found.alone(), Verdict::Supported, "{cost}: {found:?}");
            }
            let found = slope_of_curves(&curves, &weights, (0.5 + 1e-6, 1.5)).unwrap();
            assert_eq!(found.alone(), Verdict::Refuted, "{cost}: {found:?}");
        }
    }

    /// The mean is above 0.5 from round 7 on, and never at 0.999: at the first round it is below both.
    #[test]
    fn an_accuracy_comes_up_to_its_target() {
        let mut rng = Stream::shared_instance(4);
        let mut evidence =
            |target: f64, limit: f64| rising_curve(&mut rng, 10, target).within(limit);
        let found = evidence(0.5, 10.0);
        assert_eq!((found.alone(), found.estimate), (Verdict::Supported, 7.0));
        assert_eq!(evidence(0.5, 5.0).alone(), Verdict::Refuted);
        let never = evidence(0.999, 29.0);
        assert_eq!((never.alone(), never.estimate), (Verdict::Refuted, f64::INFINITY));
        // Three runs of 0.7 have a mean that is less than 0.7 by rounding.
        assert!(
            mean(&[0.7; 3]) < 0.7
                && Goal { target: 0.7, metric: Quantity::Accuracy }.is_met(mean(&[0.7; 3]))
        );
    }
}
