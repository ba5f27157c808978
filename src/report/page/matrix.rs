//! The ranking as a matrix: a column for each value of the setting with the most numbers, a row
//! for each combination of the other settings.
//!
//! *Invariant*: a grid point that is ranked is in the matrix once.

use super::headline::words::listed;
use crate::evidence::{Separation, Standing, Standings, unique, when_text};
use crate::report::number_text::{ratio_text, short, zero, zero_below};
use exactfed_core::words::{count, joined, readable, thousands};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::Setting;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The most rows that a page shows unfolded.
const MOST_SHOWN: usize = 40;
/// The most columns that a page shows.
const MOST_COLUMNS: usize = 200;
/// A mean loss that is this many times as large as the smallest has the longest bar.
const LONGEST_LEAD: f64 = 1000.0;

/// The most rows without a result that are named.
const MOST_NAMED: usize = 12;

/// The ranking as templates see it.
#[derive(Default, Serialize)]
pub struct RankingMatrix {
    /// What distinguishes the columns; a single empty text if no setting is a number.
    pub columns: Vec<String>,
    /// What is said of the algorithms in the cells, the head of a column without settings.
    pub ends: &'static str,
    pub rows: Vec<MatrixRow>,
    /// Rows that the page shows folded, if there are more than [`MOST_SHOWN`]. The rows in which some algorithm is
    /// separated from the others come before all others, in `rows` and here.
    pub further: Vec<MatrixRow>,
    /// A sentence on the rows in which no algorithm is separated from another, which are left out of the matrix.
    pub open: String,
    /// The result in words, where there is a single grid point, or none that is decided, or the matrix is too wide; a
    /// page shows it in place of the matrix. Empty where the page shows the matrix.
    pub sentence: String,
}

/// A combination of settings.
#[derive(Serialize)]
pub struct MatrixRow {
    pub settings: String,
    /// A cell for each column; `None` where the grid has no such point.
    pub cells: Vec<Option<MatrixCell>>,
}

/// The ranking at a grid point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MatrixCell {
    /// The algorithm that ends best, those that are not separated, or why there is none.
    pub text: String,
    /// The family of the algorithm that ends best, where it is separated from the others.
    pub family: Option<usize>,
    /// How many times larger the mean loss of the next algorithm is, or `alone` if there is no other; empty where the
    /// best is not separated. Templates colour the cell and draw its bar only if this is not empty.
    pub times: String,
    /// The length in percent of a bar that shows how far the best algorithm is ahead; 0 where it is not separated.
    pub bar: u32,
    /// The result in words.
    pub words: String,
}

impl MatrixRow {
    /// Whether no algorithm is separated from another at any grid point of the row.
    fn is_open(&self) -> bool {
        self.cells.iter().flatten().all(|cell| cell.text == OPEN)
    }

    /// Whether one algorithm is separated from the others at some grid point of the row.
    fn has_lead(&self) -> bool {
        self.cells.iter().flatten().any(|cell| cell.bar > 0)
    }
}

impl RankingMatrix {
    /// The matrix of these grid points, with at most `most_rows` rows, those in which some algorithm is separated
    /// first; what is left out is in the table of the ranking. With more than [`MOST_COLUMNS`] columns it is empty but
    /// for a sentence that says so.
    pub fn new(standings: &Standings, most_rows: usize) -> Self {
        let all = &standings.rows;
        let by = standings.by;
        let sentence = sentence(standings);
        let axis = column_axis(standings);
        // The indices of the settings that the columns show; the rows show all others.
        let merged: Vec<usize> =
            (0..standings.axes.len()).filter(|i| follows(all, *i, axis)).collect();
        // For each grid point the text of its column.
        let texts: Vec<String> = all.iter().map(|row| part(row, |i| merged.contains(&i))).collect();
        // By which number of the axis each column is ordered.
        let mut first: HashMap<&str, f64> = HashMap::new();
        for (row, text) in all.iter().zip(&texts) {
            first.entry(text).or_insert_with(|| axis.map_or(0.0, |axis| number(&row.values[axis])));
        }
        let mut columns = unique(texts.iter());
        if columns.len() > MOST_COLUMNS {
            let many = thousands(columns.len());
            let too_wide = format!(
                "A matrix of the ranking would have {many} columns, too many for a page: all settings are in the table below."
            );
            let said = if sentence.is_empty() { too_wide } else { sentence };
            return Self { sentence: said, ..Self::default() };
        }
        columns.sort_by(|a, b| first[a.as_str()].total_cmp(&first[b.as_str()]));
        // The index of each column by its text.
        let at: HashMap<&str, usize> =
            columns.iter().enumerate().map(|(i, text)| (text.as_str(), i)).collect();
        let mut rows: Vec<MatrixRow> = Vec::new();
        // The index of each row by its settings.
        let mut places: HashMap<String, usize> = HashMap::new();
        for (standing, text) in all.iter().zip(&texts) {
            let settings = part(standing, |i| !merged.contains(&i));
            let place = *places.entry(settings.clone()).or_insert(rows.len());
            if place == rows.len() {
                rows.push(MatrixRow { settings, cells: vec![None; columns.len()] });
            }
            rows[place].cells[at[text.as_str()]] = Some(cell(standing, standings));
        }
        let open: Vec<String> =
            rows.extract_if(.., |row| row.is_open()).map(|row| row.settings).collect();
        if rows.len() > MOST_SHOWN {
            rows.sort_by_key(|row| !row.has_lead());
        }
        rows.truncate(most_rows);
        let further = rows.split_off(rows.len().min(MOST_SHOWN));
        let columns = columns.into_iter().cloned().collect();
        Self { columns, ends: ends(by), rows, further, open: open_text(&open), sentence }
    }
}

/// The ranking in a sentence that replaces the matrix: the result at the only grid point, or that no algorithms are
/// separated at any of several. Empty if there is a matrix to show.
fn sentence(standings: &Standings) -> String {
    let is_open = |row: &Standing| {
        let leaders = row.leaders.len();
        leaders > 1 && leaders == 1 + row.rivals().len() && row.zeros().len() < 2
    };
    match standings.rows.as_slice() {
        [one] => match standings.at {
            Some(_) => {
                format!("Compared {}: {}", when_text(standings.at), cell(one, standings).words)
            }
            None => cell(one, standings).words,
        },
        rows @ [first, ..] if rows.iter().all(is_open) => {
            let names = match first.leaders.as_slice() {
                [one, other] => format!("{one} and {other}"),
                leaders => format!("the {} algorithms", leaders.len()),
            };
            format!("In none of the {} settings are {names} separated.", rows.len())
        }
        _ => String::new(),
    }
}

/// The text of a grid point at which no algorithm is separated from another.
const OPEN: &str = "not separated";

/// A sentence on the rows, with these settings, in which nothing is separated: it names a few, and counts more.
fn open_text(open: &[String]) -> String {
    match open {
        [] => String::new(),
        few if few.len() <= MOST_NAMED => {
            format!("Nothing is separated in these rows: {}.", few.join("; "))
        }
        many => format!("Nothing is separated in {} further rows.", many.len()),
    }
}

/// The number of a setting; NaN for a text.
fn number(value: &Setting) -> f64 {
    value.number().unwrap_or(f64::NAN)
}

/// The index, among the settings that distinguish grid points, of the one whose values are the columns: the setting
/// with the most values, all of which are numbers. If several have as many, it is the local steps, else the step size,
/// else the first. `None` if no setting is a number with several values.
fn column_axis(standings: &Standings) -> Option<usize> {
    let mut best: Option<((usize, u8), usize)> = None;
    for (axis, name) in standings.axes.iter().enumerate() {
        let values: Vec<&Setting> = standings.rows.iter().map(|row| &row.values[axis]).collect();
        let different = unique(values.iter()).len();
        let is_numeric = different > 1 && values.iter().all(|value| number(value).is_finite());
        let rate = (different, column_preference(name));
        if is_numeric && best.is_none_or(|(best_rate, _)| rate > best_rate) {
            best = Some((rate, axis));
        }
    }
    best.map(|(_, axis)| axis)
}

/// How much readers prefer the setting of this name as the columns, among settings with as many values.
fn column_preference(name: &str) -> u8 {
    match name {
        "local-steps" => 2,
        "step-size" => 1,
        _ => 0,
    }
}

/// Whether the setting with this index belongs to the columns: it is their axis, or its value follows from the value of
/// the axis, as the number of rounds may from the number of local steps, and is not the same everywhere. False without
/// an axis: then all settings are in the rows.
fn follows(rows: &[Standing], setting: usize, axis: Option<usize>) -> bool {
    let Some(axis) = axis else { return false };
    let mut known = HashMap::new();
    let agrees = rows.iter().all(|row| {
        let value = &row.values[setting];
        *known.entry(&row.values[axis]).or_insert(value) == value
    });
    agrees && unique(known.values()).len() > 1
}

/// The settings of a grid point whose indices, among those that distinguish grid points, are meant, as one text: the
/// head of a column or a row. Empty if none is meant.
fn part(row: &Standing, is_meant: impl Fn(usize) -> bool) -> String {
    let settings = row.settings.iter().enumerate().filter(|(i, _)| is_meant(*i));
    joined(&settings.map(|(_, text)| text.as_str()).collect::<Vec<_>>())
}

/// How the runs of the best algorithm end among those of all, in words: the head of a column without settings, and a
/// part of a sentence.
fn ends(by: Quantity) -> &'static str {
    if by.more_is_better() { "ends highest" } else { "ends lowest" }
}

/// The cell of a grid point, which is a row of these standings.
fn cell(standing: &Standing, standings: &Standings) -> MatrixCell {
    let words = words(standing, standings);
    let plain = |text: &str| MatrixCell {
        text: text.to_owned(),
        words: words.clone(),
        ..MatrixCell::default()
    };
    match (standing.leaders.as_slice(), standing.next()) {
        ([], _) => plain(standing.nothing_ranked()),
        ([one], next) => {
            let (times, bar) = next.map_or(("alone".to_owned(), 100), |(_, rival)| {
                let ratio = rival.ratio.estimate;
                let lead = libm::log10(ratio.max(1.0)) / libm::log10(LONGEST_LEAD);
                let times = format!("×{}", readable(ratio, if ratio < 1.005 { 4 } else { 3 }));
                // A lead is never without a bar.
                (times, (100.0 * lead.min(1.0)).max(4.0) as u32)
            });
            MatrixCell { family: standing.family, times, bar, ..plain(one) }
        }
        _ if standing.zeros().len() > 1 => plain(&zeros_in_cell(standing, standings.by)),
        (all, _) if all.len() == 1 + standing.rivals().len() => plain(OPEN),
        ([one, other], _) => plain(&format!("{one} or {other}")),
        (some, _) => plain(&format!("{} of {} {OPEN}", some.len(), 1 + standing.rivals().len())),
    }
}

/// The result at a grid point as a sentence, with the number of pairs and the algorithms that are not compared. A page
/// shows it when a reader points at the cell, and instead of the matrix if there is one grid point alone.
fn words(standing: &Standing, standings: &Standings) -> String {
    let by = standings.by;
    let result = match (standing.leaders.as_slice(), standing.next()) {
        ([], _) => words_without_ranking(standing),
        ([one], None) => {
            format!("{one} ends at {}; {}", short(standing.error), standing.no_others())
        }
        ([one], Some((next, _))) if standing.is_zero => format!(
            "{one} ends lowest, at {}, which is zero to rounding; {next}’s mean is not",
            short(standing.error)
        ),
        ([one], Some((next, rival))) => format!(
            "{one} {}, at {}; {next}’s {}{} is {} times as large",
            ends(by),
            short(standing.error),
            standing.mean(),
            of_loss(by),
            ratio_text(&rival.ratio)
        ),
        _ if standing.zeros().len() > 1 => words_on_zeros(standing, standings),
        (several, _) => words_on_tie(several, standing, by),
    };
    let pairs = count(standing.n, &format!("paired {}", standing.unit));
    let others = if standing.leaders.is_empty() { String::new() } else { not_compared(standing) };
    format!("{result}; {pairs}{others}.")
}

/// The name of the loss of a quantity of which more is better, such as the error rate of an accuracy, with a space
/// before it: ratios are ratios of it. Empty for other quantities.
fn of_loss(by: Quantity) -> String {
    by.info().shortfall.map_or(String::new(), |shortfall| format!(" {}", shortfall.name))
}

/// Why no algorithm is ranked at a grid point without leaders, as a sentence without its full stop: the cases of
/// [`Standing::nothing_ranked`] at greater length.
fn words_without_ranking(standing: &Standing) -> String {
    if !standing.error.is_nan() {
        let smallest = short(standing.error);
        format!("The smallest mean, {smallest}, is above the error at the start")
    } else if !standing.ended.is_empty() {
        "No algorithm’s runs reach the cost".to_owned()
    } else if !standing.unreached.is_empty() {
        "No algorithm reaches the target in all runs".to_owned()
    } else if standing.without_values.is_empty() {
        "Runs of every algorithm diverged".to_owned()
    } else {
        format!("No algorithm has values{}", not_compared(standing))
    }
}

/// The text of a grid point at which several mean losses are zero to rounding.
fn zeros_in_cell(standing: &Standing, by: Quantity) -> String {
    let zeros = standing.zeros().len();
    let all = 1 + standing.rivals().len();
    if zeros == all { zero(by).to_owned() } else { format!("{zeros} of {all} {}", zero(by)) }
}

/// The result at a grid point at which several mean losses are zero to rounding, with the level of rounding.
fn words_on_zeros(standing: &Standing, standings: &Standings) -> String {
    let zeros = standing.zeros();
    let names = listed(&zeros, 1 + standing.rivals().len());
    let both = if zeros.len() == 2 { "both " } else { "" };
    format!("The {} of {both}{names} is {}", standings.by.loss_name(), zero_below(standings.by))
}

/// The result at a grid point at which several algorithms, the best of them first, are not separated.
fn words_on_tie(several: &[Arc<str>], standing: &Standing, by: Quantity) -> String {
    let ratio = standing.next().and_then(|(name, rival)| match rival.separation {
        Separation::Equal | Separation::BothZero => None,
        _ if by.more_is_better() => {
            let times = ratio_text(&rival.ratio);
            let mean = standing.mean();
            Some(format!("; {name}’s {mean}{} is {times} times as large", of_loss(by)))
        }
        _ => Some(format!("; {name}’s is {} times that", ratio_text(&rival.ratio))),
    });
    let best = match standing.unit {
        "instance" => format!("{}’s mean", several[0]),
        _ => format!("the {} mean", by.best_mean()),
    };
    let names = match several {
        [one, other] => format!("{one} and {other}"),
        all => format!("{} algorithms ({})", all.len(), all.join("; ")),
    };
    let smallest = short(standing.error);
    format!("{names} are not separated: {best} is {smallest}{}", ratio.unwrap_or_default())
}

/// The algorithms that are not compared at a grid point, and why, as the continuation of a sentence; empty if there are
/// none.
pub fn not_compared(standing: &Standing) -> String {
    let diverged = ("diverged", &standing.diverged);
    let ended = ("runs end before", &standing.ended);
    let without_values = ("no values", &standing.without_values);
    let unreached = ("not at the target in all runs", &standing.unreached);
    [diverged, ended, unreached, without_values]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(why, names)| format!("; {why}: {}", names.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{RankedAlgorithm, Rival};
    use crate::stats::Ratio;
    use exactfed_runner::plan::CellId;

    /// A grid point with these values of its settings, at which the mean of B is `ratio` times that of A.
    fn standing(values: &[&str], ratio: f64, separation: Separation) -> Standing {
        let ratio = Ratio { estimate: ratio, low: ratio / 2.0, high: 2.0 * ratio, p: 0.5 };
        let alike = separation != Separation::Larger;
        let leaders = if alike { vec!["A".into(), "B".into()] } else { vec!["A".into()] };
        Standing {
            values: values.iter().map(|v| Setting::displayed_as(v)).collect(),
            settings: values.iter().map(|v| format!("s = {v}")).collect(),
            leaders,
            family: Some(2),
            algorithms: vec![RankedAlgorithm {
                name: "B".into(),
                cell: CellId::default(),
                rank: Some(2),
                rival: Some(Rival { cell: 1, ratio, separation }),
            }],
            error: 0.5,
            is_zero: false,
            is_geometric: false,
            n: 3,
            unit: "run",
            diverged: Vec::new(),
            ended: Vec::new(),
            unreached: Vec::new(),
            without_values: Vec::new(),
        }
    }

    /// The ranking at grid points, which these settings distinguish, by the error at the last round.
    fn standings(axes: &[&str], rows: Vec<Standing>) -> Standings {
        let axes = axes.iter().map(|a| (*a).to_owned()).collect();
        Standings {
            axes,
            rows,
            by: Quantity::SqError,
            at: None,
            margin: 0.05,
            costs: String::new(),
            compared: 1,
        }
    }

    #[test]
    fn columns_are_numbers_in_their_order_and_ratios_stand_where_algorithms_differ() {
        let mut rows = Vec::new();
        for noise in ["two", "one"] {
            for steps in ["100", "10", "1"] {
                let separation =
                    if steps == "100" { Separation::Larger } else { Separation::Unclear };
                rows.push(standing(&[noise, steps, &format!("{steps}0")], 1920.0, separation));
            }
        }
        let matrix =
            RankingMatrix::new(&standings(&["noise", "local-steps", "rounds"], rows), 1000);
        assert_eq!(matrix.columns, ["s = 1, s = 10", "s = 10, s = 100", "s = 100, s = 1000"]);
        let names: Vec<&str> = matrix.rows.iter().map(|row| row.settings.as_str()).collect();
        assert_eq!(names, ["s = two", "s = one"]);
        let texts = |row: &MatrixRow| -> Vec<String> {
            let cell = |cell: &Option<MatrixCell>| {
                let cell = cell.as_ref().unwrap();
                format!("{} {:?} {} {}", cell.text, cell.family, cell.times, cell.bar)
            };
            row.cells.iter().map(cell).collect()
        };
        let expected = ["not separated None  0", "not separated None  0", "A Some(2) ×1 920 100"];
        assert_eq!(texts(&matrix.rows[0]), expected);
        assert!(matrix.sentence.is_empty() && matrix.further.is_empty());
        let words = &matrix.rows[0].cells[2].as_ref().unwrap().words;
        let expected = "A ends lowest, at 0.500; B’s mean is 1.92e3 [960, 3.84e3] times as large; 3 paired runs.";
        assert_eq!(words, expected);
    }

    #[test]
    fn a_matrix_that_is_too_wide_is_left_to_the_table() {
        let row = |i: usize| standing(&[&i.to_string()], 2.0, Separation::Larger);
        let rows = |count| standings(&["step-size"], (1..=count).map(row).collect());
        assert_eq!(RankingMatrix::new(&rows(MOST_COLUMNS), 45).columns.len(), MOST_COLUMNS);
        let wide = RankingMatrix::new(&rows(MOST_COLUMNS + 1), 45);
        assert!(
            wide.columns.is_empty() && wide.sentence.contains("201 columns"),
            "{}",
            wide.sentence
        );
    }

    #[test]
    fn rows_with_a_result_are_not_below_a_fold() {
        let row = |i: usize| {
            let last = if i % 2 == 1 { Separation::Larger } else { Separation::Unclear };
            let mut row = standing(&[&format!("name {i}")], 2.0, last);
            if i == 10 {
                row.leaders.clear();
            }
            row
        };
        let of =
            |count| RankingMatrix::new(&standings(&["problem"], (0..count).map(row).collect()), 45);
        let matrix = of(100);
        assert_eq!((matrix.rows.len(), matrix.further.len()), (40, 5));
        assert!(matrix.rows.iter().all(|row| row.settings != "s = name 10"), "nothing is lowest");
        assert_eq!(matrix.columns, [""]);
        let expected = "Nothing is separated in 49 further rows.";
        assert_eq!(matrix.open, expected);
        assert_eq!(of(4).open, "Nothing is separated in these rows: s = name 0; s = name 2.");
    }

    #[test]
    fn a_ranking_without_a_result_is_a_sentence() {
        let row = |name| standing(&[name], 2.0, Separation::Unclear);
        let matrix = RankingMatrix::new(&standings(&["x"], vec![row("1"), row("2")]), 9);
        assert_eq!(matrix.sentence, "In none of the 2 settings are A and B separated.");
    }

    #[test]
    fn a_single_grid_point_is_a_sentence() {
        let one = standing(&[], 2.0, Separation::Unclear);
        let matrix = RankingMatrix::new(&standings(&[], vec![one]), 9);
        let expected = "A and B are not separated: the smallest mean is 0.500; B’s is 2.00 [1.00, 4.00] times that; 3 paired runs.";
        assert_eq!(matrix.sentence, expected);
    }
}
