//! `[[claim.published]]`: means equal published numbers, which a file next to the manifest has.

use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::{ClaimOf, When};
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::published_rows::{PublishedNumber, check_row, published_rows};
use super::sample::{MetricSample, samples};
use super::text::number_text;
use crate::cells::CellResult;
use crate::cells::symbols::quantity_symbol;
use crate::stats::log_means::LogMeans;
use crate::stats::verdict::{Evidence, Region};
use crate::stats::{mean, standard_deviation};
use exactfed_core::words::{joined, number, thousands};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::plan::{Checker, KindKeys, selected};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The mean of a metric equals published numbers, each up to a relative margin or to the digits with which it is
/// printed: an equivalence test for each number. The numbers are in a CSV file, one in each line. The other columns of
/// the file are the labels and the settings of the cells that the number is of, and the column `round` is the recorded
/// round (by default the last one). A line that leaves a setting empty is of cells with any value of it. The page
/// states the largest relative difference, and for random runs how many standard errors the farthest number is away.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PublishedKeys {
    /// The quantity that is measured.
    #[serde(default)]
    pub metric: Quantity,
    /// The cells. The columns of the file select among them.
    #[serde(default)]
    #[schemars(example = Selection::example("FedAvg"))]
    pub of: Selection,
    /// The CSV file with the published numbers, relative to the manifest's folder.
    #[schemars(example = &"files/published.csv")]
    pub file: String,
    /// The column with the numbers, which must be above 0.
    #[serde(default = "value_column")]
    pub column: String,
    /// The relative margin, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 1e-10)]
    pub margin: Option<f64>,
    /// The decimals with which the numbers are printed: half a unit of the last one is allowed in addition to `margin`.
    #[schemars(range(max = 17), example = 4)]
    pub decimals: Option<u32>,
    /// The number of runs of which each published number is the mean. Their error is taken to be that of as many runs
    /// of the cell.
    #[serde(default = "one_run")]
    #[schemars(range(min = 1), example = 5)]
    pub runs: u64,
}

fn value_column() -> String {
    "value".to_owned()
}

fn one_run() -> u64 {
    1
}

impl KindKeys<ClaimKeys> for PublishedKeys {
    /// Notes what is wrong with the keys and the file: a column that is missing, a number that is not above 0, and the
    /// first line that selects no cell or a round that is not recorded.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        table.quantity("metric", claim.metric);
        let is_average = claim.metric.average().is_some();
        let message = format!("`{}` has no value at a round", claim.metric.name());
        table.require(!is_average, "metric", message);
        table.selection("of", &claim.of);
        if let Some(margin) = claim.margin {
            table.above("margin", margin, 0.0);
        }
        let has_tolerance = claim.margin.is_some() || claim.decimals.is_some();
        table.require(has_tolerance, "", "write `margin`, `decimals` or both");
        // A file that could not be read has its message already.
        let Some(contents) = table.named_files.contents(&claim.file) else { return };
        let rows = match published_rows(contents, &claim.file, &claim.column) {
            Ok(rows) => rows,
            Err(message) => return table.fault("file", message),
        };
        let fault = rows.iter().find_map(|row| check_row(row, &claim.of, table));
        if let Some(message) = fault {
            return table.fault("file", message);
        }
        let mut claimed = table.cells.iter().filter(|cell| selected(cell, &claim.of));
        let has_numbers = claimed.any(|cell| rows.iter().any(|row| selected(cell, &row.cells)));
        let message = format!("no line of {} is of a cell in `of`", claim.file);
        table.require(has_numbers, "of", message);
    }

    fn file(claim: &ClaimOf<Self>) -> Option<(&'static str, &str)> {
        Some(("file", &claim.file))
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<PublishedKeys> {
    /// The cells of the claim, of which the metric is needed at every recorded round.
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        let measured = (vec![self.metric], When::EveryRound);
        Some(ClaimedCells { measured, ..ClaimedCells::new(&self.of) })
    }

    /// Tests each cell against the numbers of the lines that select it, as a part.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        let cells = judge.chosen(&self.of);
        // The checks of the manifest have read the same file, so that there are rows.
        let contents = judge.plan.named_files.contents(&self.file);
        let rows = contents.and_then(|all| published_rows(all, &self.file, &self.column).ok());
        let rows = rows.unwrap_or_default();
        let mut lines = BTreeSet::new();
        let mut farthest = None;
        for cell in &cells {
            let own: Vec<_> = rows.iter().filter(|row| selected(cell.cell, &row.cells)).collect();
            lines.extend(own.iter().map(|row| row.line));
            let found: Vec<ComparedNumber> =
                own.iter().map(|row| self.compare_with(cell, row)).collect();
            let errors = found.iter().filter_map(ComparedNumber::standard_errors);
            farthest = errors.chain(farthest).max_by(f64::total_cmp);
            add_part(&mut parts, &judge.name(cell, &self.of, &[]), &found);
        }
        let symbol = quantity_symbol(self.metric, &cells);
        let mut formula = format!(
            "mean {symbol} equals {} published numbers of {}, {}",
            thousands(lines.len()),
            self.file,
            self.tolerance_text()
        );
        if let Some(most) = farthest {
            let most = number(most, 2);
            formula.push_str(&format!("; the farthest is {most} standard errors away"));
        }
        Tested { parts, formula, scale: EstimateScale::RelativeDifference }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        vec![WrongResult::Doubled, WrongResult::Halved]
    }
}

/// What the comparison of a cell with a published number found.
struct ComparedNumber {
    /// The round in words, as a part of a name; empty for the last one.
    time: String,
    /// The evidence that the logarithm of the mean over the published number is within the tolerance, or why there is
    /// none: the metric is not recorded at the round, or the mean is not a number.
    found: Result<Evidence, String>,
}

impl ComparedNumber {
    /// By how many standard errors the mean differs from the published number; `None` where nothing is random or the
    /// error is not known.
    fn standard_errors(&self) -> Option<f64> {
        let evidence = self.found.as_ref().ok()?;
        let errors = (evidence.estimate / evidence.error).abs();
        errors.is_finite().then_some(errors)
    }
}

/// Adds the part of a cell of this name, which must agree with each of its published numbers. The part names the round
/// of the number that is nearest to the end of its tolerance, or farthest beyond it; numbers that could not be compared
/// are parts of their own. Nothing is added for a cell without numbers.
fn add_part(parts: &mut Parts, name: &str, numbers: &[ComparedNumber]) {
    let mut tested = Vec::new();
    for ComparedNumber { time, found } in numbers {
        match found {
            Ok(evidence) => tested.push((time, *evidence)),
            Err(reason) => parts.add(joined(&[name, time]), None, reason),
        }
    }
    let each: Vec<Evidence> = tested.iter().map(|(_, evidence)| *evidence).collect();
    let Some(all) = Evidence::all(&each, false) else { return };
    let weakest = tested.iter().find(|(_, one)| one.estimate.to_bits() == all.estimate.to_bits());
    let time = weakest.map_or("", |(time, _)| time.as_str());
    parts.tested.push((joined(&[name, time]), all));
}

impl PublishedKeys {
    /// Compares the mean of a cell with the published number of a row.
    fn compare_with(&self, cell: &CellResult<'_>, row: &PublishedNumber) -> ComparedNumber {
        let time = row.round.map_or_else(String::new, |round| format!("round {round}"));
        ComparedNumber { time, found: self.evidence(cell, row) }
    }

    /// Evidence that the logarithm of the mean of a cell over the published number of a row is within the tolerance of
    /// the number. The error of a random cell is that of its own mean and that of the published runs.
    ///
    /// # Errors
    /// Why there is none: the metric is not recorded at the round, or the mean is not a number.
    fn evidence(&self, cell: &CellResult<'_>, row: &PublishedNumber) -> Result<Evidence, String> {
        let region = self.region(row.value);
        let at = row.round.map_or(When::End, When::Round);
        let all = samples(cell, self.metric, at).map_err(|error| error.to_string())?;
        let Some(MetricSample { values, fixed, .. }) = all.first().map(|timed| &timed.sample)
        else {
            return Err("it is not recorded".to_owned());
        };
        let measured = mean(values);
        if measured.is_nan() || measured < 0.0 {
            return Err("the mean is not a number above 0".to_owned());
        }
        // 0 and infinity are outside of every region: their logarithms are infinite.
        let log = libm::log(measured / row.value);
        if *fixed || log.is_infinite() {
            return Ok(Evidence { n: values.len(), ..Evidence::exact(log, region) });
        }
        let Some(known) = LogMeans::new(&[(1.0, values)]) else {
            return Ok(Evidence::undecided(log, values.len()));
        };
        let of_published = standard_deviation(values) / measured / (self.runs as f64).sqrt();
        let known = known.with_selection_error(of_published).shifted(-libm::log(row.value));
        Ok(Evidence::from_log_means(&known, region))
    }

    /// The logarithms of the ratios to a published number that are within the tolerance.
    fn region(&self, value: f64) -> Region {
        let printed =
            self.decimals.map_or(0.0, |decimals| 0.5 * libm::pow(10.0, -f64::from(decimals)));
        let relative = self.margin.unwrap_or(0.0) + printed / value;
        let low = if relative < 1.0 { libm::log1p(-relative) } else { f64::NEG_INFINITY };
        (low, libm::log1p(relative))
    }

    /// The tolerance in words.
    fn tolerance_text(&self) -> String {
        let margin = self.margin.map(|margin| format!("up to a relative {}", number_text(margin)));
        let decimals = self.decimals.map(|n| format!("up to half a unit of decimal {n}"));
        let both: Vec<String> = [margin, decimals].into_iter().flatten().collect();
        both.join(" and ")
    }
}

#[cfg(test)]
mod tests;
