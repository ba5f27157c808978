//! Class weights: how much the loss of a record counts, by its class.

use super::ranks::ranks;
use super::records::Records;
use super::settings::or_numbers;
use crate::problem::arrays::{Column, sanitised};
use crate::problem::fault::{Fault, Faults};
use crate::words::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of the weights, for faults.
const KEY: &str = "class-weights";

/// How many labels a message lists.
const MOST_LISTED: usize = 10;

/// An example of weights for the reference of keys.
const EXAMPLE_GIVEN: [f64; 2] = [1.0, 5.0];

/// How much the loss of a record counts in the objective, by its class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = or_numbers_or_labels)]
pub enum ClassWeights {
    /// 1 for every class.
    #[default]
    Equal,
    /// n/(K n_k) for class k, where n_k of the n records that clients hold are of it, and K is the
    /// number of classes: `class_weight="balanced"` of scikit-learn. The test set is not counted.
    Balanced,
    /// These numbers above 0, one for each class in the sorted order of their labels;
    /// `class-weights = [1.0, 5.0]` is short for it.
    Given(#[schemars(example = EXAMPLE_GIVEN)] Vec<f64>),
    /// A number above 0 for each of these labels, and 1 for the others;
    /// `class-weights = { yes = 5.0 }` is short for it.
    Labels(#[schemars(example = example_labels())] BTreeMap<String, f64>),
}

/// Adds to the schema that a list of numbers may stand for the choice `given`, and a table of numbers for the choice
/// `labels`, by which the reader of manifests replaces them.
fn or_numbers_or_labels(schema: &mut schemars::Schema) {
    or_numbers(schema);
    if let Some(choices) = schema.get_mut("oneOf").and_then(|choices| choices.as_array_mut()) {
        let numbers = schemars::json_schema!({
            "type": "object",
            "additionalProperties": { "type": "number" }
        });
        choices.push(numbers.to_value());
    }
}

/// An example of weights by label for the reference of keys.
fn example_labels() -> BTreeMap<String, f64> {
    BTreeMap::from([("yes".to_owned(), 5.0)])
}

/// What the records that clients hold say of their classes.
struct Classes {
    /// The label of each class, in the order of the classes.
    labels: Vec<String>,
    /// The number of records of each class.
    counts: Vec<usize>,
}

impl ClassWeights {
    /// Adds what is wrong with the numbers themselves, before the file is read: each must be finite and above 0.
    pub fn check(&self, faults: &mut Faults) {
        match self {
            Self::Equal | Self::Balanced => {}
            Self::Given(numbers) => {
                if let Some(wrong) = numbers.iter().find(|number| !is_weight(**number)) {
                    let message = format!("must have finite numbers above 0, not {wrong}");
                    faults.0.push(Fault::new(KEY, message));
                }
            }
            Self::Labels(numbers) => {
                faults.require(!numbers.is_empty(), KEY, || {
                    "names no class: write a label with its weight, or leave it out".into()
                });
                let wrong = numbers.iter().find(|(_, number)| !is_weight(**number));
                if let Some((label, wrong)) = wrong {
                    let label = sanitised(label);
                    let message =
                        format!("must have finite numbers above 0, not {wrong} for \"{label}\"");
                    faults.0.push(Fault::new(KEY, message));
                }
            }
        }
    }

    /// The weight of each class, in the order of the classes of `records`, which are those that clients hold; `None` if
    /// all are 1 because no weights are given.
    ///
    /// # Errors
    /// If there is not one given number for each class, or a label is none of a class.
    pub fn of_classes(&self, records: &Records) -> Result<Option<Vec<f64>>, Fault> {
        match self {
            Self::Equal => Ok(None),
            Self::Balanced => {
                let counts = Classes::of_records(records).counts;
                let all = records.count() as f64;
                let classes = counts.len() as f64;
                Ok(Some(counts.iter().map(|own| all / (classes * *own as f64)).collect()))
            }
            Self::Given(numbers) => {
                let classes = Classes::of_records(records);
                if numbers.len() != classes.labels.len() {
                    let given = count(numbers.len(), "number");
                    let message = format!(
                        "has {given}, and {}; each class needs one",
                        classes.in_words(&records.file)
                    );
                    return Err(Fault::new(KEY, message));
                }
                Ok(Some(numbers.clone()))
            }
            Self::Labels(numbers) => {
                let classes = Classes::of_records(records);
                let mut weights = vec![1.0; classes.labels.len()];
                for (label, weight) in numbers {
                    let Some(class) = classes.find(label, &records.labels) else {
                        let message = format!(
                            "no record of a client has the label \"{}\"; {}",
                            sanitised(label),
                            classes.in_words(&records.file)
                        );
                        return Err(Fault::new(KEY, message));
                    };
                    weights[class] = *weight;
                }
                Ok(Some(weights))
            }
        }
    }
}

impl Classes {
    /// The classes of these records: the distinct labels in sorted order.
    fn of_records(records: &Records) -> Self {
        let mut labels = Vec::new();
        let mut counts = Vec::new();
        for (row, class) in ranks(&records.labels).into_iter().enumerate() {
            if class >= counts.len() {
                labels.resize(class + 1, String::new());
                counts.resize(class + 1, 0);
            }
            if counts[class] == 0 {
                labels[class] = records.labels.text(row);
            }
            counts[class] += 1;
        }
        Self { labels, counts }
    }

    /// The class of a label as a manifest writes it. Where labels are numbers, so is it: "1.0" is the label 1.
    fn find(&self, label: &str, column: &Column) -> Option<usize> {
        let same_text = self.labels.iter().position(|known| known == label);
        if same_text.is_some() || !matches!(column, Column::Numbers(_)) {
            return same_text;
        }
        let number: f64 = label.parse().ok()?;
        self.labels.iter().position(|known| known.parse() == Ok(number))
    }

    /// A clause with the number of classes of a file and their labels.
    fn in_words(&self, file: &str) -> String {
        let listed: Vec<String> =
            self.labels.iter().take(MOST_LISTED).map(|label| sanitised(label)).collect();
        let more = if self.labels.len() > MOST_LISTED { ", …" } else { "" };
        let classes = self.labels.len();
        format!("{file} has {classes} classes ({}{more})", listed.join(", "))
    }
}

/// Whether a number can be a weight.
fn is_weight(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

#[cfg(test)]
#[path = "class_weights_tests.rs"]
mod tests;
