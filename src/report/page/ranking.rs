//! The ranking of the algorithms at each grid point.

use super::matrix::{RankingMatrix, not_compared};
use super::tuning;
use crate::evidence::{Experiment, Rival, Separation, Standing, Standings, when_text};
use crate::report::number_text::{ratio_text, zero, zero_below};
use crate::report::setting_cells::setting_cell;
use crate::report::text_table::{MOST_ROWS, TableFiles, TextCell, TextTable};
use crate::report::topics::has_records;
use exactfed_core::words::thousands;
use exactfed_runner::manifest::{ComparedAt, Quantity};
use exactfed_runner::plan::Plan;
use serde::Serialize;

/// The ranking: when the algorithms are compared, by which error and at what cost; its table and
/// its matrix.
#[derive(Serialize)]
pub struct RankingSection {
    pub table: TextTable,
    pub matrix: RankingMatrix,
    /// The quantity by which algorithms are ranked.
    pub error: &'static str,
    /// Whether the best has the smallest or the largest mean.
    pub best: &'static str,
    /// Which mean of the next algorithm is how many times as large as the best: the mean of the quantity, or of its
    /// loss where more of it is better.
    pub next_mean: String,
    /// When runs are compared: at a cost, or at the last round.
    pub when: String,
    /// The words that follow `when` and say which round of a run is compared.
    pub round: &'static str,
    /// What the ratios are, and their intervals.
    pub ratios: String,
    /// Sentences on what the runs have cost.
    pub costs: String,
    /// The number of comparisons in the table and in maps.
    pub comparisons: String,
}

impl RankingSection {
    /// The section on the ranking of an experiment; `files` gets the whole table if it is too long for the page.
    pub fn new(experiment: &Experiment<'_>, files: &mut TableFiles<'_>) -> Self {
        let standings = &experiment.standings;
        Self {
            table: table(standings, files),
            matrix: RankingMatrix::new(standings, MOST_ROWS),
            error: mean_error(standings),
            best: standings.by.best_mean(),
            next_mean: match standings.by.info().shortfall {
                Some(_) => format!("mean {}", standings.by.compared()),
                None => "mean".to_owned(),
            },
            when: when_text(standings.at),
            round: match standings.at {
                Some(ComparedAt::Cost(_)) => {
                    ": each run at its last recorded round that costs at most this"
                }
                Some(ComparedAt::Target { .. }) => {
                    ": each run by itself. An algorithm with a run that does not reach the target has no mean and no rank; the median over its runs counts such a run as one that costs more than any other"
                }
                None => ", whatever it costs",
            },
            ratios: ratios(experiment.plan, standings),
            costs: standings.costs.clone(),
            comparisons: match standings.compared {
                1 => "1 comparison".to_owned(),
                several => format!("{} comparisons", thousands(several)),
            },
        }
    }
}

/// The quantity by which algorithms are ranked, as a formula; the error at the last round says so by its index T.
fn mean_error(standings: &Standings) -> &'static str {
    match standings.by {
        Quantity::SqError if standings.at.is_none() => "‖θ_T − θ*‖²",
        by => by.formula(),
    }
}

/// The part of a sentence on ratios over instances that holds where the instances are made of a data file.
const SAME_RECORDS: &str = ". Instances are random divisions of the same records, and the interval does not cover new records";

/// The sentence on ratios that holds where some ratio has no logarithm.
const BY_MEANS: &str = " Where an algorithm’s value to be compared is 0 on an instance, ratios are of the means over the instances.";

/// Sentences on what the ratios of the ranking are, and which variation their intervals include.
fn ratios(plan: &Plan, standings: &Standings) -> String {
    if plan.manifest.instances.is_none_or(|instances| instances <= 1) {
        return "Ratios of means have a 95 % interval over paired runs (common noise).".to_owned();
    }
    let same_records = if has_records(plan) { SAME_RECORDS } else { "" };
    let by_means = if standings.rows.iter().any(is_by_means) { BY_MEANS } else { "" };
    format!(
        "Ratios are geometric means over instances of the problem, with a 95 % interval by Student’s t of their logarithms: it includes the variance between instances{same_records}.{by_means}"
    )
}

/// Whether algorithms were compared at a grid point over instances by their means, since one has a loss of 0 and so no
/// logarithm. False where nothing is ranked.
fn is_by_means(row: &Standing) -> bool {
    row.unit == "instance" && !row.leaders.is_empty() && !row.is_geometric
}

/// The table of which algorithm ranks first at each grid point, and how many times larger the mean of the next one is.
/// If there are more rows than a page shows, `files` gets `winners.csv` with all of them.
fn table(standings: &Standings, files: &mut TableFiles<'_>) -> TextTable {
    let mut heads = standings.axes.clone();
    heads.push(if standings.by.more_is_better() {
        format!("{} mean", standings.by.best_mean())
    } else {
        "smallest mean error".to_owned()
    });
    heads.extend([mean_error(standings).to_owned(), "next".to_owned()]);
    heads.push(tuning::times_larger(standings.by));
    heads.push(standings.rows.first().map_or("runs".into(), |row| format!("{}s", row.unit)));
    let rows = standings.rows.iter().map(|standing| row(standing, standings));
    TextTable::first_rows(&heads, rows, "winners", files)
}

/// The row of a grid point: its settings, which algorithm ranks first or why none does, its mean, the comparison with
/// the next, and the size of the sample with the algorithms that are not compared.
fn row(standing: &Standing, standings: &Standings) -> Vec<TextCell> {
    let mut cells: Vec<TextCell> =
        standing.values.iter().map(|value| setting_cell(Some(value))).collect();
    cells.push(first_cell(standing, standings.by));
    cells.push(TextCell::short(standing.error));
    cells.extend(next_cells(standing, standings));
    let runs = format!("{}{}", standing.n, not_compared(standing));
    cells.push(TextCell::stating(standing.n as f64, runs));
    cells
}

/// The cell that names the algorithm with the best mean, those that are not separated from it, or those whose means are
/// zero to rounding and so are no tie; or why nothing is ranked.
fn first_cell(standing: &Standing, by: Quantity) -> TextCell {
    let zeros = standing.zeros();
    match standing.leaders.as_slice() {
        [] => format!("none: {}", standing.nothing_ranked()).into(),
        [one] => (**one).into(),
        several if zeros.len() == several.len() => {
            format!("{}: {}", zero(by), zeros.join("; ")).into()
        }
        several => format!("tie: {}", several.join("; ")).into(),
    }
}

/// The cells on the algorithm that comes next: its name, and how many times larger its mean is; why there is none, or
/// dashes if nothing is ranked.
fn next_cells(standing: &Standing, standings: &Standings) -> [TextCell; 2] {
    let Some((next, Rival { separation, ratio, .. })) = standing.next() else {
        return if standing.leaders.is_empty() {
            [TextCell::dash(), TextCell::dash()]
        } else {
            [standing.no_others().into(), TextCell::dash()]
        };
    };
    let times = match separation {
        // Equal but for rounding.
        Separation::Equal => TextCell::stating(1.0, "1".to_owned()),
        Separation::BothZero => format!("both are {}", zero_below(standings.by)).into(),
        _ => TextCell::stating(ratio.estimate, ratio_text(ratio)),
    };
    [next.into(), times]
}
