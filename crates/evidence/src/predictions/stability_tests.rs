//! Stationary values, limits and radii against the exact moments of many rounds, and against runs, at
//! random step sizes on both sides of the edge of stability: for every built-in algorithm on every
//! linear problem. `EXACTFED_STABILITY=10` draws so many step sizes for each problem, and includes
//! Markov chains, whose moments take a quarter of an hour then.

use crate::plan;
use crate::predictions::{MomentsCache, Theory};
use crate::simulated::published_manifests;
use exactfed_core::kernel::squared_distance;
use exactfed_core::linalg::Matrix;
use exactfed_core::problem;
use exactfed_core::rng::Stream;
use exactfed_core::theory::exact::{Moments, SpectralRadii};
use exactfed_runner::manifest::{Prediction, Quantity, Source, TimeAverage};
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::predict::{self, AveragedOver};
use exactfed_runner::runner::{Prepared, prepare};
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::Path;

/// The rounds after which moments are compared with what is stationary.
const ROUNDS: u64 = 1500;
/// Every how many rounds moments are recorded.
const EVERY: u64 = 100;

/// The plan of the published manifest with all algorithms on a kind of problem, in which every step size is multiplied
/// by a factor, and coins fall with a probability. It has neither figures nor claims.
fn plan_at(manifests: &Path, kind: &str, factor: f64, coin: f64) -> Plan {
    let file = manifests.join(format!("smoke/all-{kind}.toml"));
    let mut text = std::fs::read_to_string(&file).unwrap();
    for size in ["0.01", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5"] {
        let value: f64 = size.parse().unwrap();
        // A space ends the new line, so that no later size replaces it again.
        text = text.replace(
            &format!("step-size = {size}\n"),
            &format!("step-size = {:?} \n", factor * value),
        );
    }
    text = text.replace("probability = 0.25", &format!("probability = {coin:?}"));
    let figures = text.find("[[figure").or_else(|| text.find("[[claim")).unwrap_or(text.len());
    text.truncate(figures);
    let overrides = [
        "replicates=1".to_owned(),
        "instance=\"fixed\"".into(),
        format!("budget.rounds={ROUNDS}"),
        format!("record.every={EVERY}"),
    ];
    let name = file.display().to_string();
    let source = Source { name, text, overrides: overrides.to_vec(), ..Source::default() };
    plan("smoke/t".into(), source).unwrap_or_else(|e| panic!("{kind}: {e}"))
}

/// In how many cells each thing was seen that a check is about, so that none of the checks is empty.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Stationary moments exist.
    stationary: usize,
    /// Errors grew.
    growing: usize,
    /// Second moments are infinite after one round.
    infinite: usize,
    /// Means went to their limit, or away from where it would be.
    limits: usize,
    /// Errors grew at the rate of the spectral radius.
    rates: usize,
    /// A run went away as its mean does.
    runs: usize,
}

impl Seen {
    fn plus(self, other: Self) -> Self {
        Self {
            stationary: self.stationary + other.stationary,
            growing: self.growing + other.growing,
            infinite: self.infinite + other.infinite,
            limits: self.limits + other.limits,
            rates: self.rates + other.rates,
            runs: self.runs + other.runs,
        }
    }
}

/// What is known of a cell, to be compared.
struct KnownRest<'a> {
    alone: &'a Prepared<'a>,
    /// The exact moments at the recorded rounds.
    moments: Vec<Moments>,
    /// The stationary E‖θ_t − θ*‖², if there is one.
    at_rest: Option<f64>,
    /// The spectral radii of a round, if they are known.
    radii: Option<SpectralRadii>,
    /// Whether all rounds are the same, so that something is stationary.
    has_constant_rounds: bool,
    /// The cell in words, for messages.
    what: &'a str,
}

/// Checks what theory says of a cell at rest, on its only instance, and returns what was seen. `what` names the cell in
/// messages.
fn check(prepared: &[Prepared<'_>; 1], what: &str) -> Seen {
    let [alone] = prepared;
    let cell = alone.cell;
    let scenario = alone.scenario(0);
    let known =
        predict::check_exact_moments(alone).and_then(|()| predict::exact_moments(cell, scenario));
    let theory = Theory::new(prepared, &HashSet::new(), MomentsCache::Off);
    let at_rest = theory.at_rest(&cell.id, Quantity::SqError);
    let stationary = (TimeAverage::Covariance, Prediction::Stationary);
    let covariance = theory.vector(&cell.id, stationary.0, stationary.1, AveragedOver::Cycle);
    assert_eq!(at_rest.is_some(), covariance.is_some(), "{what}");
    if let Some(covariance) = covariance {
        let d = scenario.instance.dim();
        let covariance = Matrix::from_entries(d, d, covariance).symmetric_part();
        let least = covariance.symmetric_extremes().unwrap().1;
        assert!(least >= -1e-9 * covariance.trace(), "{what}: an eigenvalue is {least}");
    }
    let radii = super::radii::radii(alone).ok();
    let Ok(moments) = known else {
        return at_rest
            .map_or_else(Seen::default, |at_rest| check_run_at_rest(alone, at_rest, what));
    };
    let has_constant_rounds =
        predict::stationary_components(&cell.identity, &*scenario.instance).is_some();
    let known = KnownRest { alone, moments, at_rest, radii, has_constant_rounds, what };
    Seen {
        stationary: usize::from(at_rest.is_some()),
        infinite: usize::from(radii.is_some_and(|radii| radii.square == f64::INFINITY)),
        growing: known.check_squares(),
        rates: known.check_growth(),
        limits: known.check_limit(),
        runs: known.check_runs(),
    }
}

/// The error of a run stays near what is stationary. This is all that can be asked of Markov chains
/// that restart in every call, whose moments at single rounds are not known.
fn check_run_at_rest(alone: &Prepared<'_>, at_rest: f64, what: &str) -> Seen {
    let errors = alone.simulate(0).sq_error;
    let late = &errors[errors.len() / 2..];
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!(mean > at_rest / 10.0 && mean < 10.0 * at_rest, "{what}: {mean}, {at_rest} at rest");
    Seen { stationary: 1, ..Seen::default() }
}

impl KnownRest<'_> {
    fn last(&self) -> &Moments {
        &self.moments[self.moments.len() - 1]
    }

    fn middle(&self) -> &Moments {
        &self.moments[self.moments.len() / 2]
    }

    /// Checks that moments are stationary if and only if errors settle. Returns 1 if errors were seen to grow, else 0.
    fn check_squares(&self) -> usize {
        let Self { moments, at_rest, radii, what, .. } = self;
        let last = self.last();
        if let Some(radii) = radii.filter(|radii| radii.square == f64::INFINITY) {
            assert_eq!(moments[1].sq_error, f64::INFINITY, "{what}: {radii:?}");
        }
        if let Some(at_rest) = at_rest {
            if let Some(radii) = radii {
                assert!(radii.square < 1.0 && radii.mean < 1.0, "{what}: {at_rest} at {radii:?}");
            }
            self.check_rest(*at_rest);
            return 0;
        }
        if !self.has_constant_rounds {
            return 0;
        }
        // Nothing that settles is refused, but close to the edge.
        let rate = rate(self.middle(), last);
        assert!(rate.is_none_or(|rate| rate > 0.999), "{what}: it settles at {rate:?}");
        let ratio = last.sq_error / self.middle().sq_error;
        let is_average = moments[0].sq_error_average.is_nan();
        assert!(
            is_average || (ratio - 1.0).abs() > 1e-9 || ratio.is_nan(),
            "{what}: it has settled"
        );
        if let Some(radii) = radii {
            assert!(radii.square > 1.0 - 1e-9, "{what}: {radii:?} has no stationary values");
        }
        usize::from(last.sq_error.is_nan() || last.sq_error > 10.0 * moments[0].sq_error)
    }

    /// Checks that E‖θ_t − θ*‖² goes to its stationary value `at_rest`.
    fn check_rest(&self, at_rest: f64) {
        let what = self.what;
        let apart = |m: &Moments| (m.sq_error - at_rest).abs();
        let last = self.last();
        // Averages over rounds come to rest slowly; what is stationary is that of single rounds.
        if last.sq_error_average.is_nan() {
            return;
        }
        let square = self.radii.map_or(1.0, |radii| radii.square);
        if libm::pow(square, ROUNDS as f64 / 2.0) < 1e-8 {
            let most = 1e-6 * at_rest.abs() + 1e-12 * self.moments[0].sq_error;
            assert!(apart(last) <= most, "{what}: {} at the end, {at_rest} at rest", last.sq_error);
        } else {
            assert!(last.sq_error.is_finite(), "{what}: {} and {at_rest}", last.sq_error);
            let largest = self.moments.iter().map(apart).fold(0.0, f64::max);
            assert!(apart(last) <= largest, "{what}: {} and {at_rest}", last.sq_error);
        }
    }

    /// Checks that errors that grow do so at the rate of the spectral radius. Returns 1 if they were seen to grow, else
    /// 0.
    fn check_growth(&self) -> usize {
        let Self { moments, what, .. } = self;
        let Some(square) = self.radii.map(|radii| radii.square) else { return 0 };
        let is_average = moments[0].sq_error_average.is_nan();
        if !self.has_constant_rounds || is_average || square <= 1.0 || square.is_infinite() {
            return 0;
        }
        let is_grown = |m: &&Moments| {
            m.sq_error.is_finite() && m.sq_error > 1e6 * moments[0].sq_error && m.sq_error < 1e250
        };
        let grown: Vec<&Moments> = moments.iter().filter(is_grown).collect();
        let [first, .., last] = grown[..] else { return 0 };
        let rate = rate(first, last).unwrap();
        let most = 0.02 * (square - 1.0).min(1.0) + 1e-3;
        assert!((rate / square - 1.0).abs() < most, "{what}: {rate} and {square}");
        1
    }

    /// Checks that means go to the limit where there is one, and away from the fixed point of a round where there is
    /// none. Returns 1 if one of these was seen, else 0.
    fn check_limit(&self) -> usize {
        let Self { alone, moments, what, .. } = self;
        let cell = alone.cell;
        let scenario = alone.scenario(0);
        let Some(point) = scenario.fixed_point(cell) else { return 0 };
        let optimum = scenario.instance.optimum();
        let apart = |m: &Moments| {
            let mean: Vec<f64> = m.mean.iter().zip(optimum).map(|(x, y)| x + y).collect();
            squared_distance(&mean, point).sqrt()
        };
        let [begin, middle, end] = [&moments[0], self.middle(), self.last()].map(apart);
        if moments[0].sq_error_average.is_nan() || begin == 0.0 || !middle.is_finite() {
            return 0;
        }
        let has_limit = predict::limit(cell, scenario).is_some();
        if end > 1e3 * begin || end.is_nan() {
            assert!(!has_limit, "{what}: the mean goes away from its limit");
            return 1;
        }
        if end < 1e-9 * begin && middle < 1e-4 * begin {
            assert!(has_limit, "{what}: the mean goes to a limit that is not given");
            return 1;
        }
        0
    }

    /// Checks that a run goes away where means do. Returns 1 if it was seen to, else 0.
    fn check_runs(&self) -> usize {
        let Self { alone, moments, what, .. } = self;
        let first = &moments[1];
        let square: f64 = first.mean.iter().map(|x| x * x).sum();
        // Means of this size, beside which deviations are small, do not come of rare runs.
        let is_driven =
            square > 1e12 * moments[0].sq_error && first.sq_error < 1e4 * square && square < 1e250;
        if !is_driven {
            return 0;
        }
        // Not at the end: with falling step sizes runs come back.
        let trace = alone.simulate(0);
        let error = trace.sq_error.get(1).copied().unwrap_or(f64::INFINITY);
        assert!(error.is_nan() || error > 1e3 * moments[0].sq_error, "{what}: {error}");
        1
    }
}

/// The factor by which the error changes per round from one round to a later one; `None` if it is not a finite number
/// above 0.
fn rate(from: &Moments, to: &Moments) -> Option<f64> {
    let ratio = to.sq_error / from.sq_error;
    let rounds = (to.round - from.round) as f64;
    (ratio.is_finite() && ratio > 0.0).then(|| libm::pow(ratio, 1.0 / rounds))
}

#[test]
fn what_is_stationary_is_where_moments_come_to_rest() {
    let Some(manifests) = published_manifests() else { return };
    let asked = std::env::var("EXACTFED_STABILITY").ok();
    let draws = asked.as_ref().map_or(1, |n| n.parse().unwrap());
    let linear = |kind: &&&str| {
        plan_at(&manifests, kind, 1.0, 0.25).cells.iter().all(|cell| cell.identity.problem.linear())
    };
    let kinds: Vec<&&str> = problem::Spec::KINDS.iter().filter(linear).collect();
    let mut all: Vec<(usize, &str)> = Vec::new();
    kinds.iter().for_each(|kind| all.extend((0..draws).map(|draw| (draw, **kind))));
    let seen = all.par_iter().map(|&(draw, kind)| {
        let number: u64 = kind.bytes().fold(draw as u64, |sum, x| 31 * sum + u64::from(x));
        let mut rng = Stream::shared_instance(number);
        // From well within to far beyond the edge of most algorithms.
        let factor = if draw == 0 { 12.0 } else { 0.5 * libm::pow(120.0, rng.uniform()) };
        let coin = 0.1 + 0.8 * rng.uniform();
        let plan = plan_at(&manifests, kind, factor, coin);
        let is_quick = |cell: &&Cell| {
            let settings = cell.varied.iter().filter_map(|v| cell.settings.get(v));
            !settings.map(ToString::to_string).any(|setting| setting.starts_with("markov"))
        };
        let cells: Vec<_> =
            plan.cells.iter().filter(|cell| asked.is_some() || is_quick(cell)).collect();
        let prepared = prepare(&plan.folder(), &cells).unwrap_or_else(|e| panic!("{e:?}"));
        let each = prepared.into_par_iter().map(|prepared| {
            let cell = prepared.cell;
            let varied = cell.varied.iter().map(|v| cell.settings.get(v).map(ToString::to_string));
            let varied: Vec<_> = varied.collect();
            let what = format!("{kind} × {factor}, p = {coin}: {} {varied:?}", cell.label);
            check(&[prepared], &what)
        });
        each.reduce(Seen::default, Seen::plus)
    });
    let seen = seen.reduce(Seen::default, Seen::plus);
    println!("{} plans: {seen:?}", all.len());
    let counts = [seen.stationary, seen.growing, seen.infinite, seen.limits, seen.rates];
    assert!(counts.iter().all(|count| *count > 2), "{seen:?}");
}
