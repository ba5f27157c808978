//! What pages state, as frames of numbers. What is not known is null.
//! The names of the columns, and the words in them, are public: `python/exactfed/_results.py` documents them.

use exactfed::evidence::claims::JudgedClaim;
use exactfed::evidence::frontier::columns::{COLUMNS, FrontierValue, ReadPoint};
use exactfed::evidence::frontier::{ComputedFrontier, FrontierPoint};
use exactfed::evidence::{
    CellResult, Experiment, NoSample, RankedAlgorithm, Rival, Separation, Standing, TunedRow,
    TuningResult, summary,
};
use exactfed::stats::{CensoredMedian, Ratio, Summary};
use exactfed::store::export::column;
use exactfed_runner::plan::Setting;
use polars::prelude::*;
use std::collections::HashMap;

/// The claims with their verdicts, in the order of the manifest.
pub fn claims(claims: &[JudgedClaim<'_>]) -> PolarsResult<DataFrame> {
    let columns = vec![
        column("claim", claims, |claim| claim.common.id.clone()),
        column("statement", claims, |claim| claim.common.statement.clone()),
        column("source", claims, |claim| claim.common.source.clone()),
        column("verdict", claims, |claim| claim.judgement.verdict.name()),
        column("expected", claims, |claim| claim.expected().name()),
        column("as_expected", claims, |claim| claim.contradiction().is_none()),
        column("formula", claims, |claim| claim.formula.clone()),
        numbers("value", claims, |claim| claim.estimate().value),
        numbers("low", claims, |claim| claim.estimate().interval.0),
        numbers("high", claims, |claim| claim.estimate().interval.1),
        numbers("region_low", claims, |claim| claim.region().0),
        numbers("region_high", claims, |claim| claim.region().1),
        numbers("p", claims, |claim| claim.p().unwrap_or(f64::NAN)),
        column("replicates", claims, |claim| claim.n as u64),
        column("tested", claims, |claim| claim.parts.len() as u64),
        column("nearest", claims, |claim| {
            claim.nearest().map_or(String::new(), |part| part.name.clone())
        }),
        column("weakest", claims, |claim| {
            claim.weakest().map_or(String::new(), |part| part.name.clone())
        }),
    ];
    DataFrame::new(claims.len(), columns)
}

/// What tuning selected, a row for each algorithm at each point of the grid: the settings, the mean of the runs by
/// which they were selected, the mean of fresh runs with its interval, and the gain: how many times larger the mean
/// loss is with the settings that are best for all algorithms together.
pub fn tuned(found: &TuningResult) -> PolarsResult<DataFrame> {
    let rows = &found.rows;
    let gain = |row: &TunedRow, of: fn(&Ratio) -> f64| {
        row.shared.as_ref().map_or(f64::NAN, |(_, ratio)| of(ratio))
    };
    let mut columns = vec![column("label", rows, |row| row.label.clone())];
    columns.extend(settings(&found.axes, rows, |row, i| row.values[i].as_ref()));
    for (i, tuned) in found.settings.iter().enumerate() {
        let selected = |row: &TunedRow| row.selected.as_ref().and_then(|all| all[i]);
        let name = snake(&tuned.key);
        // The type follows from the candidates, whichever is selected.
        columns.push(if tuned.whole {
            whole_or_real(&name, rows.iter().map(selected).collect())
        } else {
            column(&name, rows, selected)
        });
    }
    columns.extend([
        column("at_edge", rows, |row| row.edges.join("; ")),
        numbers("tuning_value", rows, |row| row.tuning_value),
        numbers("value", rows, |row| row.fresh.map_or(f64::NAN, |fresh| fresh.mean)),
        numbers("low", rows, |row| row.fresh.map_or(f64::NAN, |fresh| fresh.interval.0)),
        numbers("high", rows, |row| row.fresh.map_or(f64::NAN, |fresh| fresh.interval.1)),
        column("runs", rows, |row| row.replicates),
        column("candidates", rows, |row| row.candidates.all as u64),
        column("diverged", rows, |row| row.candidates.diverged as u64),
        column("stopped", rows, |row| row.candidates.stopped as u64),
        numbers("gain", rows, |row| gain(row, |ratio| ratio.estimate)),
        numbers("gain_low", rows, |row| gain(row, |ratio| ratio.low)),
        numbers("gain_high", rows, |row| gain(row, |ratio| ratio.high)),
    ]);
    DataFrame::new(rows.len(), columns)
}

/// Every point of all frontiers, in the columns of `frontier.csv`. The type of a column follows from its first value.
pub fn frontier(frontiers: &[ComputedFrontier<'_>]) -> PolarsResult<DataFrame> {
    let points: Vec<(&ComputedFrontier<'_>, &FrontierPoint<'_>)> =
        frontiers.iter().flat_map(|f| f.best.iter().map(move |point| (f, point))).collect();
    let column_of = |(name, read): (&str, ReadPoint)| {
        let values: Vec<FrontierValue> = points.iter().map(|(f, point)| read(f, point)).collect();
        let number =
            |v: &FrontierValue| if let FrontierValue::Number(x) = v { *x } else { f64::NAN };
        let count = |v: &FrontierValue| if let FrontierValue::Count(n) = v { *n } else { None };
        match values.first() {
            Some(FrontierValue::Number(_)) => numbers(name, &values, number),
            Some(FrontierValue::Count(_)) => column(name, &values, count),
            _ => column(name, &values, FrontierValue::to_string),
        }
    };
    DataFrame::new(points.len(), COLUMNS.map(column_of).into())
}

/// Which algorithm ranks first at each point of the grid, a row for each: the leaders, those that are not separated
/// from the best; and the next one, with the ratio of its error to that of the best.
pub fn ranking(experiment: &Experiment<'_>) -> PolarsResult<DataFrame> {
    let standings = &experiment.standings;
    let rows = &standings.rows;
    let ratio = |name: &str, of: fn(&Ratio) -> f64| {
        numbers(name, rows, |row| row.next().map_or(f64::NAN, |(_, next)| of(&next.ratio)))
    };
    let mut columns = settings(&standings.axes, rows, |row, i| Some(&row.values[i]));
    columns.extend([
        column("best", rows, |row| row.leaders.first().map(|name| name.to_string())),
        column("leaders", rows, |row| row.leaders.join("; ")),
        numbers("value", rows, |row| row.error),
        column("runs", rows, |row| runs(row, row.n, experiment)),
        column("instances", rows, |row| instances(row, row.n)),
        column("next", rows, |row| row.next().map(|(name, _)| name.to_owned())),
        ratio("ratio", |ratio| ratio.estimate),
        ratio("low", |ratio| ratio.low),
        ratio("high", |ratio| ratio.high),
        column("separation", rows, |row| row.next().map(|(_, next)| separation_name(next))),
        column("diverged", rows, |row| row.diverged.join("; ")),
        column("ended", rows, |row| row.ended.join("; ")),
    ]);
    DataFrame::new(rows.len(), columns)
}

/// An algorithm at a point of the grid: a row of [`ranking_of_all`].
struct RankedRow<'a> {
    /// The ranking at the point.
    at: &'a Standing,
    algorithm: &'a RankedAlgorithm,
    /// The label of its cell.
    label: &'a str,
    /// Its mean over runs or instances, or why there is none.
    sample: Result<Summary, NoSample>,
    /// The number of its runs that come to the target, if algorithms are compared at one.
    reached: u64,
    /// The median over its runs at the target; NaN if algorithms are not compared at one.
    at_target: CensoredMedian,
}

impl RankedRow<'_> {
    /// How the algorithm compares with the best one, by a word, or why it has no rank; `None` if what ranks was not
    /// recorded.
    fn separation(&self) -> Option<&'static str> {
        match (&self.algorithm.rival, self.algorithm.rank, &self.sample) {
            (Some(rival), ..) => Some(separation_name(rival)),
            (None, Some(_), _) => Some("best"),
            (None, None, Ok(_)) => Some("above start"),
            (None, None, Err(NoSample::Diverged)) => Some("diverged"),
            (None, None, Err(NoSample::Ended)) => Some("ended"),
            (None, None, Err(NoSample::Unreached)) => Some("unreached"),
            (None, None, Err(NoSample::Unrecorded)) => None,
        }
    }

    /// Whether it is the best or not found to be worse than the best.
    fn leads(&self) -> bool {
        let rival = self.algorithm.rival.as_ref();
        let is_close = rival.is_none_or(|rival| rival.separation != Separation::Larger);
        self.algorithm.rank.is_some() && is_close
    }
}

/// Every algorithm at each point of the grid, a row for each, from the best to the last; at each point those without a
/// rank come after the others.
pub fn ranking_of_all(experiment: &Experiment<'_>) -> PolarsResult<DataFrame> {
    let standings = &experiment.standings;
    let cells: HashMap<&str, &CellResult<'_>> =
        experiment.cells.iter().map(|cell| (cell.cell.id.as_str(), cell)).collect();
    let mut rows = Vec::new();
    for at in &standings.rows {
        for algorithm in &at.algorithms {
            let cell = cells[algorithm.cell.as_str()];
            let sample = cell.runs.sample(standings.by, standings.at);
            let sample = sample.map(|values| summary(standings.by, &values));
            let values = standings
                .at
                .map_or(&[][..], |place| cell.runs.values_at_target(standings.by, place));
            rows.push(RankedRow {
                at,
                algorithm,
                label: &cell.cell.label,
                sample,
                reached: values.iter().filter(|value| value.is_some()).count() as u64,
                at_target: CensoredMedian::new(values),
            });
        }
    }
    let number = |name: &str, of: fn(&Summary) -> f64| {
        numbers(name, &rows, |row| row.sample.as_ref().map_or(f64::NAN, of))
    };
    let ratio = |name: &str, of: fn(&Ratio) -> f64| {
        let of = |rival: &Rival| of(&rival.ratio);
        numbers(name, &rows, |row| row.algorithm.rival.as_ref().map_or(f64::NAN, of))
    };
    let size = |row: &RankedRow<'_>| row.sample.as_ref().ok().map(|sample| sample.n);
    let mut columns = settings(&standings.axes, &rows, |row, i| Some(&row.at.values[i]));
    columns.extend([
        column("rank", &rows, |row| row.algorithm.rank.map(|rank| rank as u64)),
        column("name", &rows, |row| row.algorithm.name.to_string()),
        column("label", &rows, |row| row.label),
        column("cell", &rows, |row| row.algorithm.cell.to_string()),
        number("value", |sample| sample.mean),
        number("low", |sample| sample.interval.0),
        number("high", |sample| sample.interval.1),
        column("runs", &rows, |row| Some(runs(row.at, size(row)?, experiment))),
        column("instances", &rows, |row| instances(row.at, size(row)?)),
        ratio("ratio", |ratio| ratio.estimate),
        ratio("ratio_low", |ratio| ratio.low),
        ratio("ratio_high", |ratio| ratio.high),
        column("separation", &rows, RankedRow::separation),
        column("leads", &rows, RankedRow::leads),
    ]);
    if standings.at.is_some_and(|at| at.target().is_some()) {
        let median = |name: &str, of: fn(&CensoredMedian) -> f64| {
            numbers(name, &rows, |row| of(&row.at_target))
        };
        columns.extend([
            column("reached", &rows, |row| row.reached),
            median("median", |found| found.median),
            median("median_low", |found| found.interval.0),
            median("median_high", |found| found.interval.1),
        ]);
    }
    DataFrame::new(rows.len(), columns)
}

/// The number of instances in a sample of this size; `None` if it is a sample of runs on one instance.
fn instances(at: &Standing, size: usize) -> Option<u64> {
    (at.unit == "instance").then_some(size as u64)
}

/// The number of runs in a sample of this size, whose elements are runs or instances with several runs each.
fn runs(at: &Standing, size: usize, experiment: &Experiment<'_>) -> u64 {
    match instances(at, size) {
        Some(instances) => instances * experiment.plan.manifest.replicates,
        None => size as u64,
    }
}

/// How an algorithm compares with the best one, by a word.
fn separation_name(rival: &Rival) -> &'static str {
    match rival.separation {
        Separation::Larger => "larger",
        Separation::Unclear => "unclear",
        Separation::Equal => "equal",
        Separation::BothZero => "both zero",
    }
}

/// The cells that failed or are damaged; each of `cells` is an id, a label and the reason.
pub fn failures(cells: &[[String; 3]]) -> PolarsResult<DataFrame> {
    let part = |name: &str, i: usize| column(name, cells, |cell| cell[i].clone());
    let columns = vec![part("cell", 0), part("label", 1), part("reason", 2)];
    DataFrame::new(cells.len(), columns)
}

/// A column of numbers, null where they are NaN.
fn numbers<'a, T>(name: &str, rows: &'a [T], of: impl Fn(&'a T) -> f64) -> Column {
    column(name, rows, |row| Some(of(row)).filter(|value| !value.is_nan()))
}

/// A column for each of the settings that are called `axes`; `of` returns the value of a row by the place of the
/// setting among them, `None` if the row has no such setting.
fn settings<'a, T>(
    axes: &[String],
    rows: &'a [T],
    of: impl Fn(&'a T, usize) -> Option<&'a Setting>,
) -> Vec<Column> {
    let values = |i: usize| rows.iter().map(|row| of(row, i)).collect();
    axes.iter().enumerate().map(|(i, axis)| setting(axis, values(i))).collect()
}

/// The column of a setting, a value for each row: of numbers if all values are, and else of texts. It is null, or an
/// empty text, where a row has no value.
fn setting(name: &str, values: Vec<Option<&Setting>>) -> Column {
    let name = snake(name);
    let number = |value: &Option<&Setting>| match value {
        None => Some(None),
        Some(Setting::Number(value)) => Some(Some(*value)),
        Some(Setting::Text(_)) => None,
    };
    match values.iter().map(number).collect() {
        Some(numbers) => whole_or_real(&name, numbers),
        None => {
            let text = |value: &Option<&Setting>| value.map(Setting::to_string).unwrap_or_default();
            column(&name, &values, text)
        }
    }
}

/// A column of numbers, which are integers if all values are whole; null where there is no value.
fn whole_or_real(name: &str, values: Vec<Option<f64>>) -> Column {
    let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() < 1e15;
    if !values.iter().flatten().all(is_whole) {
        return Column::new(name.into(), values);
    }
    column(name, &values, |value| value.map(|value| value as i64))
}

/// The name of a setting as a name of a column, with `_` for `-` and `.`.
fn snake(name: &str) -> String {
    name.replace(['-', '.'], "_")
}
