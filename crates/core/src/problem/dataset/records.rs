//! The records of a file, with features that are ready for use.

use super::ranks::{number_of_classes, ranks, ranks_among};
use crate::kernel::SparseRows;
use crate::kernel::softmax::MOST_CLASSES;
use crate::problem::arrays::{Column, sanitised};
use crate::problem::fault::Fault;
use crate::words::count;

/// The records of a file, with features that are ready for use.
pub struct Records {
    pub(super) d: usize,
    /// Their names; empty where the file has none.
    pub(super) names: Vec<String>,
    /// Rows of d; empty if they are sparse.
    pub(super) features: Vec<f64>,
    /// The rows instead, if they are stored sparse.
    pub(super) sparse: Option<SparseRows>,
    pub(super) labels: Column,
    /// The values of the split's column.
    pub(super) groups: Option<Column>,
    /// The values of the column that marks the test set.
    pub(super) marks: Option<Column>,
    pub(super) file: String,
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

    /// The features of all records, if they are stored sparse.
    pub fn sparse(&self) -> Option<&SparseRows> {
        self.sparse.as_ref()
    }

    /// The features of a record that is stored dense, d numbers.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.features[i * self.d..][..self.d]
    }

    /// The features of records that are stored dense, one after the other.
    pub fn rows(&self, indices: &[usize]) -> Vec<f64> {
        indices.iter().flat_map(|&i| self.row(i)).copied().collect()
    }

    /// The class of each record of a part of the file, these or the test set: the rank of its label
    /// among the labels of these records.
    ///
    /// # Errors
    /// If these records lack one of its labels.
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

    /// −1 or +1 for each record of a part of the file, as its class is the first of two or not.
    ///
    /// # Errors
    /// As for [`Records::classes_of`].
    pub fn signs_of(&self, part: &Self) -> Result<Vec<f64>, Fault> {
        let classes = self.classes_of(part)?.into_iter();
        Ok(classes.map(|class| if class == 0 { -1.0 } else { 1.0 }).collect())
    }

    /// An error unless there are exactly two classes.
    ///
    /// # Errors
    /// The labels that there are.
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

    /// The number of classes, which are numbered from 0 in the order of their labels.
    ///
    /// # Errors
    /// If there are fewer than two, or more than 100.
    pub fn count_classes(&self) -> Result<usize, Fault> {
        let classes = number_of_classes(&ranks(&self.labels));
        if !(2..=MOST_CLASSES).contains(&classes) {
            let labels = count(classes, "distinct label");
            let message = format!("{} has {labels}; 2 to {MOST_CLASSES} are needed", self.file);
            return Err(Fault::new("dataset.label", message));
        }
        Ok(classes)
    }

    /// The labels as numbers.
    ///
    /// # Errors
    /// If one is not a finite number.
    pub fn numbers(&self) -> Result<Vec<f64>, Fault> {
        let numbers = self.labels.numbers();
        if let Some(values) = numbers.filter(|values| values.iter().all(|x| x.is_finite())) {
            return Ok(values.into_owned());
        }
        let first = (0..self.count())
            .find(|row| !self.labels.text(*row).parse::<f64>().is_ok_and(f64::is_finite));
        let value = sanitised(&self.labels.text(first.unwrap_or(0)));
        let message = format!("{}: the label \"{value}\" is not a finite number", self.file);
        Err(Fault::new("dataset.label", message))
    }
}
