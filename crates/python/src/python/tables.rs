//! What pages state, as frames of numbers. What is not known is null.

use exactfed::evidence::claims::JudgedClaim;
use exactfed::evidence::frontier::columns::{COLUMNS, FrontierValue, ReadPoint};
use exactfed::evidence::frontier::{ComputedFrontier, FrontierPoint};
use exactfed::evidence::{
    CellResult, Experiment, NoSample, RankedAlgorithm, Rival, Separation, Standing, TunedRow,
    TuningResult,
};
use exactfed::stats::{Ratio, Summary};
use exactfed_runner::plan::Setting;
use polars::prelude::*;
use std::collections::HashMap;

/// The claims with their verdicts, in the order of the manifest.
pub fn claims(claims: &[JudgedClaim<'_>]) -> PolarsResult<DataFrame> {
    let text =
        |name: &str, of: &dyn Fn(&JudgedClaim<'_>) -> String| column(name, claims.iter().map(of));
    let number =
        |name: &str, of: &dyn Fn(&JudgedClaim<'_>) -> f64| numbers(name, claims.iter().map(of));
    let columns = vec![
        text("claim", &|claim| claim.common.id.clone()),
        text("statement", &|claim| claim.common.statement.clone()),
        column("source", claims.iter().map(|claim| claim.common.source.clone())),
        text("verdict", &|claim| claim.decision.verdict.name().to_owned()),
        text("expected", &|claim| claim.common.expected.words().to_owned()),
        column("as_expected", claims.iter().map(|claim| claim.contradiction().is_none())),
        text("formula", &|claim| claim.formula.clone()),
        number("value", &|claim| claim.estimate().value),
        number("low", &|claim| claim.estimate().interval.0),
        number("high", &|claim| claim.estimate().interval.1),
        number("region_low", &|claim| claim.region().0),
        number("region_high", &|claim| claim.region().1),
        number("p", &|claim| claim.p().unwrap_or(f64::NAN)),
        column("replicates", claims.iter().map(|claim| claim.n as u64)),
        column("tested", claims.iter().map(|claim| claim.parts.len() as u64)),
        text("nearest", &|claim| claim.nearest().map_or(String::new(), |part| part.name.clone())),
        text("weakest", &|claim| claim.weakest().map_or(String::new(), |part| part.name.clone())),
    ];
    DataFrame::new(claims.len(), columns)
}

/// What tuning selected, a row for each algorithm at each point of the grid.
pub fn tuned(found: &TuningResult) -> PolarsResult<DataFrame> {
    let rows = &found.rows;
    let number = |name: &str, of: &dyn Fn(&TunedRow) -> f64| numbers(name, rows.iter().map(of));
    let count = |name: &str, of: &dyn Fn(&TunedRow) -> u64| column(name, rows.iter().map(of));
    let gain = |row: &TunedRow, of: fn(&Ratio) -> f64| {
        row.shared.as_ref().map_or(f64::NAN, |(_, ratio)| of(ratio))
    };
    let mut columns = vec![column("label", rows.iter().map(|row| row.label.clone()))];
    let value = |i: usize| rows.iter().map(move |row| row.values[i].as_ref());
    columns
        .extend(found.axes.iter().enumerate().map(|(i, axis)| setting(axis, value(i).collect())));
    for (i, tuned) in found.settings.iter().enumerate() {
        let selected = |row: &TunedRow| row.selected.as_ref().and_then(|all| all[i]);
        let (name, values) = (snake(&tuned.key), rows.iter().map(selected));
        // The type follows from the candidates, whichever is selected.
        columns.push(match tuned.whole {
            true => whole_or_real(&name, values.collect()),
            false => column(&name, values),
        });
    }
    columns.extend([
        column("at_edge", rows.iter().map(|row| row.edges.join("; "))),
        number("tuning_value", &|row| row.tuning_value),
        number("value", &|row| row.fresh.map_or(f64::NAN, |fresh| fresh.mean)),
        number("low", &|row| row.fresh.map_or(f64::NAN, |fresh| fresh.interval.0)),
        number("high", &|row| row.fresh.map_or(f64::NAN, |fresh| fresh.interval.1)),
        count("runs", &|row| row.replicates),
        count("candidates", &|row| row.candidates.0 as u64),
        count("diverged", &|row| row.candidates.1 as u64),
        number("gain", &|row| gain(row, |ratio| ratio.estimate)),
        number("gain_low", &|row| gain(row, |ratio| ratio.low)),
        number("gain_high", &|row| gain(row, |ratio| ratio.high)),
    ]);
    DataFrame::new(rows.len(), columns)
}

/// Every point of all frontiers.
pub fn frontier(frontiers: &[ComputedFrontier<'_>]) -> PolarsResult<DataFrame> {
    let points: Vec<(&ComputedFrontier<'_>, &FrontierPoint)> =
        frontiers.iter().flat_map(|f| f.best.iter().map(move |point| (f, point))).collect();
    let column_of = |(name, read): (&str, ReadPoint)| {
        let values: Vec<FrontierValue> = points.iter().map(|(f, point)| read(f, point)).collect();
        let number =
            |v: &FrontierValue| if let FrontierValue::Number(x) = v { *x } else { f64::NAN };
        let count = |v: &FrontierValue| if let FrontierValue::Count(n) = v { *n } else { None };
        match values.first() {
            Some(FrontierValue::Number(_)) => numbers(name, values.iter().map(number)),
            Some(FrontierValue::Count(_)) => column(name, values.iter().map(count)),
            _ => column(name, values.iter().map(FrontierValue::to_string)),
        }
    };
    DataFrame::new(points.len(), COLUMNS.map(column_of).into())
}

/// Which algorithm ranks first at each point of the grid.
pub fn ranking(experiment: &Experiment<'_>) -> PolarsResult<DataFrame> {
    let standings = &experiment.standings;
    let rows = &standings.rows;
    let text = |name: &str, of: &dyn Fn(&Standing) -> String| column(name, rows.iter().map(of));
    let ratio = |name: &str, of: fn(&Ratio) -> f64| {
        let of = |row: &Standing| row.next().map_or(f64::NAN, |(_, next)| of(&next.ratio));
        numbers(name, rows.iter().map(of))
    };
    let separation = |row: &Standing| row.next().map(|(_, next)| separation_name(next));
    let instances = |row: &Standing| instances(row, row.n);
    let runs = |row: &Standing| runs(row, row.n, experiment);
    let value = |i: usize| rows.iter().map(move |row| Some(&row.values[i]));
    let axes = standings.axes.iter().enumerate();
    let mut columns: Vec<Column> =
        axes.map(|(i, axis)| setting(axis, value(i).collect())).collect();
    let leaders = rows.iter().map(|row| row.leaders.first().map(|name| name.to_string()));
    let next = rows.iter().map(|row| row.next().map(|(name, _)| name.to_owned()));
    columns.extend([
        column("best", leaders),
        text("leaders", &|row| row.leaders.join("; ")),
        numbers("value", rows.iter().map(|row| row.error)),
        column("runs", rows.iter().map(runs)),
        column("instances", rows.iter().map(instances)),
        column("next", next),
        ratio("ratio", |ratio| ratio.estimate),
        ratio("low", |ratio| ratio.low),
        ratio("high", |ratio| ratio.high),
        column("separation", rows.iter().map(separation)),
        text("diverged", &|row| row.diverged.join("; ")),
        text("ended", &|row| row.ended.join("; ")),
    ]);
    DataFrame::new(rows.len(), columns)
}

/// An algorithm at a point of the grid, with its sample there.
struct RankedRow<'a> {
    at: &'a Standing,
    algorithm: &'a RankedAlgorithm,
    label: &'a str,
    sample: Result<Summary, NoSample>,
}

impl RankedRow<'_> {
    fn separation(&self) -> Option<&'static str> {
        match (&self.algorithm.rival, self.algorithm.rank, &self.sample) {
            (Some(rival), ..) => Some(separation_name(rival)),
            (None, Some(_), _) => Some("best"),
            (None, None, Ok(_)) => Some("above start"),
            (None, None, Err(NoSample::Diverged)) => Some("diverged"),
            (None, None, Err(NoSample::Ended)) => Some("ended"),
            (None, None, Err(NoSample::Unrecorded)) => None,
        }
    }

    fn leads(&self) -> bool {
        let rival = self.algorithm.rival.as_ref();
        let is_close = rival.is_none_or(|rival| rival.separation != Separation::Larger);
        self.algorithm.rank.is_some() && is_close
    }
}

/// Every algorithm at each point of the grid, from the best to the last.
pub fn ranking_of_all(experiment: &Experiment<'_>) -> PolarsResult<DataFrame> {
    let standings = &experiment.standings;
    let cells: HashMap<&str, &CellResult<'_>> =
        experiment.cells.iter().map(|cell| (cell.cell.id.as_str(), cell)).collect();
    let mut rows = Vec::new();
    for at in &standings.rows {
        for algorithm in &at.algorithms {
            let cell = cells[algorithm.cell.as_str()];
            let sample = cell.sample(standings.by, standings.at).map(|all| Summary::new(&all));
            rows.push(RankedRow { at, algorithm, label: &cell.cell.label, sample });
        }
    }
    let text =
        |name: &str, of: &dyn Fn(&RankedRow<'_>) -> String| column(name, rows.iter().map(of));
    let number = |name: &str, of: fn(&Summary) -> f64| {
        numbers(name, rows.iter().map(|row| row.sample.as_ref().map_or(f64::NAN, of)))
    };
    let ratio = |name: &str, of: fn(&Ratio) -> f64| {
        let rival =
            |row: &RankedRow<'_>| row.algorithm.rival.as_ref().map(|rival| of(&rival.ratio));
        numbers(name, rows.iter().map(|row| rival(row).unwrap_or(f64::NAN)))
    };
    let count =
        |name: &str, of: &dyn Fn(&RankedRow<'_>) -> Option<u64>| column(name, rows.iter().map(of));
    let size = |row: &RankedRow<'_>| row.sample.as_ref().ok().map(|sample| sample.n);
    let value = |i: usize| rows.iter().map(move |row| Some(&row.at.values[i]));
    let axes = standings.axes.iter().enumerate();
    let mut columns: Vec<Column> =
        axes.map(|(i, axis)| setting(axis, value(i).collect())).collect();
    columns.extend([
        count("rank", &|row| row.algorithm.rank.map(|rank| rank as u64)),
        text("name", &|row| row.algorithm.name.to_string()),
        text("label", &|row| row.label.to_owned()),
        text("cell", &|row| row.algorithm.cell.to_string()),
        number("value", |sample| sample.mean),
        number("low", |sample| sample.interval.0),
        number("high", |sample| sample.interval.1),
        count("runs", &|row| Some(runs(row.at, size(row)?, experiment))),
        count("instances", &|row| instances(row.at, size(row)?)),
        ratio("ratio", |ratio| ratio.estimate),
        ratio("ratio_low", |ratio| ratio.low),
        ratio("ratio_high", |ratio| ratio.high),
        column("separation", rows.iter().map(RankedRow::separation)),
        column("leads", rows.iter().map(RankedRow::leads)),
    ]);
    DataFrame::new(rows.len(), columns)
}

/// The instances of a sample of this size, where it is of several.
fn instances(at: &Standing, size: usize) -> Option<u64> {
    (at.unit == "instance").then_some(size as u64)
}

/// The runs of a sample of this size.
fn runs(at: &Standing, size: usize, experiment: &Experiment<'_>) -> u64 {
    match instances(at, size) {
        Some(instances) => instances * experiment.plan.manifest.replicates,
        None => size as u64,
    }
}

fn separation_name(rival: &Rival) -> &'static str {
    match rival.separation {
        Separation::Larger => "larger",
        Separation::Unclear => "unclear",
        Separation::Equal => "equal",
    }
}

/// The cells without results: those that failed with the reason, and those that were not run.
pub fn failures(cells: &[[String; 3]]) -> PolarsResult<DataFrame> {
    let part = |name: &str, i: usize| column(name, cells.iter().map(|cell| cell[i].clone()));
    let columns = vec![part("cell", 0), part("label", 1), part("reason", 2)];
    DataFrame::new(cells.len(), columns)
}

/// A column of these values.
fn column<T, Kind: ?Sized>(name: &str, values: impl Iterator<Item = T>) -> Column
where
    Series: NamedFrom<Vec<T>, Kind>,
{
    Column::new(name.into(), values.collect::<Vec<T>>())
}

fn numbers(name: &str, values: impl Iterator<Item = f64>) -> Column {
    column(name, values.map(|value| (!value.is_nan()).then_some(value)))
}

/// The column of a setting: of numbers, if all its values are.
fn setting(name: &str, values: Vec<Option<&Setting>>) -> Column {
    let name = snake(name);
    let number = |value: &Option<&Setting>| match value {
        None => Some(None),
        Some(Setting::Number(value)) => Some(Some(*value)),
        Some(Setting::Text(_)) => None,
    };
    match values.iter().map(number).collect() {
        Some(numbers) => whole_or_real(&name, numbers),
        None => column(
            &name,
            values.iter().map(|value| value.map(Setting::to_string).unwrap_or_default()),
        ),
    }
}

/// A column of numbers, of whole ones if all are.
fn whole_or_real(name: &str, values: Vec<Option<f64>>) -> Column {
    let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() < 1e15;
    if !values.iter().flatten().all(is_whole) {
        return Column::new(name.into(), values);
    }
    column(name, values.into_iter().map(|value| value.map(|value| value as i64)))
}

fn snake(name: &str) -> String {
    name.replace(['-', '.'], "_")
}
