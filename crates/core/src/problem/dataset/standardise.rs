//! Features that are shifted and scaled to mean 0 and variance 1.

use super::records::{CategoryColumn, Records};
use super::settings::{Dataset, TestRecords};
use crate::problem::arrays::sanitised;
use crate::problem::fault::Fault;

/// The most features that a message names.
const MOST_NAMED: usize = 8;

impl Dataset {
    /// Shifts and scales each feature to mean 0 and variance 1 over the records that clients hold; the features of
    /// the test set are shifted and scaled by the same numbers. Features must be stored dense, as they are where the
    /// settings ask for this, and no value may be missing any more. The intercept is added later.
    ///
    /// # Errors
    /// Features that are the same in all records of the clients, which cannot be scaled.
    pub(super) fn standardise(
        &self,
        records: &mut Records,
        mut test: Option<&mut Records>,
    ) -> Result<(), Fault> {
        let d = records.d;
        let n = (records.features.len() / records.d) as f64;
        let mut constant = Vec::new();
        for j in 0..d {
            let column: Vec<f64> = records.features.iter().skip(j).step_by(d).copied().collect();
            let mean = column.iter().fold(0.0, |sum, x| sum + x) / n;
            if !mean.is_finite() {
                // Numbers this large are reported by `check_squares`, which comes next.
                continue;
            }
            let scale = deviation(&column, mean);
            if scale.is_nan() || scale <= 1e-12 * mean.abs() {
                constant.push(j);
                continue;
            }
            records.shift_and_scale(j, mean, scale);
            if let Some(test) = test.as_deref_mut() {
                test.shift_and_scale(j, mean, scale);
            }
        }
        if constant.is_empty() { Ok(()) } else { Err(self.constant_features(&constant, records)) }
    }

    /// The fault that these features, given by their numbers, are the same in all records of the clients.
    fn constant_features(&self, features: &[usize], records: &Records) -> Fault {
        const WHAT: &str =
            "features that are the same in all records of the clients cannot be standardised";
        let is_drawn_from_all =
            matches!(self.test, Some(TestRecords::Fraction(_))) && self.test_within.is_none();
        let other_remedy = if is_drawn_from_all {
            "; if all other values are in the test set, `test-within = \"clients\"` leaves clients some"
        } else {
            ""
        };
        if let Some(column) = records.column_of_indicators(features) {
            let name = sanitised(&column.name);
            let indicators = column.indicators.len();
            let remedy = match &column.numbers {
                Some(numbers) => format!(
                    "it holds {numbers}: unless they are codes, remove it from `categorical`"
                ),
                None => "leave it out, or unite rare categories in the file".to_owned(),
            };
            return self.fault(format!(
                "{WHAT}: {} of the {indicators} indicators of column `{name}`, which has {} categories; {remedy}",
                features.len(),
                indicators + 1
            ) + other_remedy);
        }
        let shown: Vec<String> =
            features.iter().take(MOST_NAMED).map(|j| records.feature_in_message(*j)).collect();
        let more = if features.len() > MOST_NAMED { ", …" } else { "" };
        let names = shown.join(", ");
        self.fault(format!("{WHAT}; leave them out: {names}{more}{other_remedy}"))
    }
}

impl Records {
    /// Replaces each value x of feature j by (x − mean)/scale.
    fn shift_and_scale(&mut self, j: usize, mean: f64, scale: f64) {
        self.values_of_feature(j).for_each(|x| *x = (*x - mean) / scale);
    }

    /// The column of categories of which these features, two or more, are indicators; `None` if there is no such column.
    fn column_of_indicators(&self, features: &[usize]) -> Option<&CategoryColumn> {
        let mut columns = self.categories.iter();
        columns
            .find(|column| features.iter().all(|j| column.indicators.contains(j)))
            .filter(|_| features.len() > 1)
    }

    /// How a message names feature j: by its name in quotes or, where the file has no names, by its number
    /// from 0.
    fn feature_in_message(&self, j: usize) -> String {
        match self.names.get(j) {
            Some(name) => format!("`{}`", sanitised(name)),
            None => j.to_string(),
        }
    }
}

/// The standard deviation of numbers around their mean, also where their squares are too small or too large for
/// double precision; NaN or infinite if numbers are not finite.
fn deviation(numbers: &[f64], mean: f64) -> f64 {
    let plain = variance(numbers, mean, 1.0);
    if plain.is_normal() {
        return libm::sqrt(plain);
    }
    // Squares are too small or too large: they are taken of numbers in units of the largest.
    let unit = numbers.iter().fold(0.0, |most: f64, x| most.max((x - mean).abs()));
    if unit == 0.0 { 0.0 } else { unit * libm::sqrt(variance(numbers, mean, unit)) }
}

/// The variance of numbers around their mean, when both are measured in this unit: the variance over `unit`².
fn variance(numbers: &[f64], mean: f64, unit: f64) -> f64 {
    let from_mean = numbers.iter().map(|x| (x - mean) / unit);
    from_mean.fold(0.0, |sum, x| sum + x * x) / numbers.len() as f64
}
