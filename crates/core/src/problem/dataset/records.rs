//! The records of a file, with features that are ready for use.

use super::ranks::{number_of_classes, ranks, ranks_among};
use crate::kernel::SparseRows;
use crate::kernel::softmax::MOST_CLASSES;
use crate::problem::arrays::{Column, sanitised};
use crate::problem::fault::Fault;
use crate::words::count;
use std::collections::BTreeMap;
use std::ops::Range;

/// A column of categories among the features of records.
#[derive(Clone)]
pub(super) struct CategoryColumn {
    pub(super) name: String,
    /// The features that are its indicators: one for each category but the first.
    pub(super) indicators: Range<usize>,
    /// What it holds if that is numbers, or numbers and marks of missing values, for a message; else `None`.
    pub(super) numbers: Option<String>,
}

/// Records of a file: all, or those that clients hold, or the test set. Their features are as the file has them
/// until `Dataset::prepare_features` makes them ready for use.
pub struct Records {
    /// The number of features, with the intercept once it is added.
    pub(super) d: usize,
    /// The names of the features that the file has; empty where it has none.
    pub(super) names: Vec<String>,
    /// The features, a row of d numbers for each record; empty if they are sparse.
    pub(super) features: Vec<f64>,
    /// The features, if they are stored sparse; else `None`.
    pub(super) sparse: Option<SparseRows>,
    /// The columns of categories.
    pub(super) categories: Vec<CategoryColumn>,
    /// The label of each record.
    pub(super) labels: Column,
    /// The value of each record in the column that names its client, if records are split by a column.
    pub(super) groups: Option<Column>,
    /// The value of each record in the column that marks the test set, if there is one and the test set is not
    /// held out yet.
    pub(super) marks: Option<Column>,
    /// The path of the file, for messages.
    pub(super) file: String,
    /// The number of records of the file, from which these are taken.
    pub(super) file_records: usize,
    /// For each of these records its row among the records of the file, from 0, for messages; `None` if these are all
    /// records of the file.
    pub(super) file_rows: Option<Vec<usize>>,
}

impl Records {
    /// d, the number of features.
    pub fn dimension(&self) -> usize {
        self.d
    }

    /// The number of records.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// The row of record i among the records of the file, from 0.
    pub(super) fn file_row(&self, i: usize) -> usize {
        self.file_rows.as_ref().map_or(i, |rows| rows[i])
    }

    /// The features of all records, if they are stored sparse.
    pub fn sparse(&self) -> Option<&SparseRows> {
        self.sparse.as_ref()
    }

    /// The features of a record that is stored dense, d numbers.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.features[i * self.d..][..self.d]
    }

    /// The features of the records with these indices, which are stored dense: rows of d numbers, one after the
    /// other.
    pub fn rows(&self, indices: &[usize]) -> Vec<f64> {
        indices.iter().flat_map(|&i| self.row(i)).copied().collect()
    }

    /// The values of feature j, from 0, of all records in their order, which are stored dense, to be changed. The
    /// iterator is empty if features are stored sparse.
    pub(super) fn values_of_feature(&mut self, j: usize) -> impl Iterator<Item = &mut f64> {
        self.features.iter_mut().skip(j).step_by(self.d)
    }

    /// For each client that has some of these records their indices, in the order of the values of the column that
    /// names clients; `None` if no column does, as then nobody says whose the records of a test set are.
    pub(super) fn of_clients(&self) -> Option<Vec<Vec<usize>>> {
        let clients = ranks(self.groups.as_ref()?);
        Some(records_of_each(clients.into_iter().map(Some)))
    }

    /// The class, from 0, of each record of `part`, which is these records, those that clients hold, or the test
    /// set: the rank of its label among the labels of these records, so that a class has one number in both.
    ///
    /// # Errors
    /// If `part` has a label that none of these records has.
    pub fn classes_of(&self, part: &Self) -> Result<Vec<usize>, Fault> {
        let ranks = ranks_among(&self.labels, &part.labels);
        if let Some(row) = ranks.iter().position(Option::is_none) {
            let file = &self.file;
            let label = sanitised(&part.labels.text(row));
            let message = format!(
                "{file}: only records of the test set have the label \"{label}\"; no client could learn it"
            );
            return Err(Fault::new("dataset.test", message));
        }
        Ok(ranks.into_iter().flatten().collect())
    }

    /// The sign of the label of each record of `part` as logistic regression has it: −1 if its class is the first
    /// one of these records, else +1.
    ///
    /// # Errors
    /// If `part` has a label that none of these records has.
    pub fn signs_of(&self, part: &Self) -> Result<Vec<f64>, Fault> {
        let classes = self.classes_of(part)?.into_iter();
        Ok(classes.map(|class| if class == 0 { -1.0 } else { 1.0 }).collect())
    }

    /// Checks that there are exactly two distinct labels, which logistic regression needs. It is asked of the records
    /// that clients hold.
    ///
    /// # Errors
    /// The number of distinct labels, and the first five of them.
    pub fn check_two_classes(&self) -> Result<(), Fault> {
        let ranks = ranks(&self.labels);
        let classes = number_of_classes(&ranks);
        if classes != 2 {
            let mut seen: Vec<String> = Vec::new();
            for i in 0..ranks.len() {
                let label = sanitised(&self.labels.text(i));
                if seen.len() < 5 && !seen.contains(&label) {
                    seen.push(label);
                }
            }
            let more = if classes > seen.len() { ", …" } else { "" };
            return Err(Fault::new(
                "dataset.label",
                format!(
                    "{} has {} ({}{more}); two are needed",
                    self.file,
                    count(classes, "distinct label"),
                    seen.join(", ")
                ),
            ));
        }
        Ok(())
    }

    /// The number of classes, which is the number of distinct labels, for softmax regression. It is asked of the
    /// records that clients hold.
    ///
    /// # Errors
    /// If there are fewer than two, or more than [`MOST_CLASSES`].
    pub fn count_classes(&self) -> Result<usize, Fault> {
        let classes = number_of_classes(&ranks(&self.labels));
        if !(2..=MOST_CLASSES).contains(&classes) {
            let labels = count(classes, "distinct label");
            let message = format!("{} has {labels}; 2 to {MOST_CLASSES} are needed", self.file);
            return Err(Fault::new("dataset.label", message));
        }
        Ok(classes)
    }

    /// The label of each record as a number, for a regression.
    ///
    /// # Errors
    /// If one is not a finite number, or the file holds the labels as text.
    pub fn label_numbers(&self) -> Result<Vec<f64>, Fault> {
        let numbers = self.labels.numbers();
        if let Some(values) = numbers.filter(|values| values.iter().all(|x| x.is_finite())) {
            return Ok(values.into_owned());
        }
        let wrong = (0..self.count())
            .find(|row| !self.labels.text(*row).parse::<f64>().is_ok_and(f64::is_finite));
        let value = sanitised(&self.labels.text(wrong.unwrap_or(0)));
        let message = match wrong {
            Some(_) => format!("{}: the label \"{value}\" is not a finite number", self.file),
            None => format!(
                "{}: the labels are numbers as text, such as \"{value}\"; convert them to a column of numbers",
                self.file
            ),
        };
        Err(Fault::new("dataset.label", message))
    }
}

/// For each client that has some records their indices, in the order of the clients, given the client of each record, if
/// it has one.
pub(super) fn records_of_each(clients: impl Iterator<Item = Option<usize>>) -> Vec<Vec<usize>> {
    let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (record, client) in clients.enumerate() {
        if let Some(client) = client {
            sets.entry(client).or_default().push(record);
        }
    }
    sets.into_values().collect()
}
