//! From a file's contents to records, with every error at its key, column and row.

use super::{Dataset, Records, Split, Storage, is_label};
use crate::problem::arrays::{Array, Column, Contents, Files, sanitised};
use crate::problem::{Fault, MOST_DIMENSIONS};
use crate::words::count;
use std::collections::BTreeMap;

impl Dataset {
    pub(super) fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault::new("dataset.file", format!("{}: {message}", self.file.path))
    }

    /// Reads the records, with dense features.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should, or sparse features in the
    /// settings.
    pub fn open(&self, files: &dyn Files) -> Result<Records, Fault> {
        if self.storage == Some(Storage::Sparse) {
            let message = "this problem has no sparse features; only `logistic-dataset` has them";
            return Err(Fault::new("dataset.storage", message));
        }
        let contents = files.open(&self.file).map_err(|e| Fault::new("dataset.file", e))?;
        self.read_dense(&contents)
    }

    /// The records of a file, with dense features.
    pub(super) fn read_dense(&self, contents: &Contents) -> Result<Records, Fault> {
        let mut records = match contents {
            Contents::Table(columns) => self.read_table(columns)?,
            Contents::Records { features, .. } | Contents::SparseArrays { features, .. } => {
                self.check_dense(features)?;
                let mut records = self.read_sparse(contents, features)?;
                (records.features, records.sparse) = (features.to_dense(), None);
                records
            }
            Contents::Arrays(arrays) => self.read_arrays(arrays)?,
        };
        self.check_shape(&records)?;
        self.check_finite(&records)?;
        if self.standardise {
            self.standardise(&mut records)?;
        }
        if self.intercept {
            let rows = records.features.chunks_exact(records.d);
            records.features = rows.flat_map(|row| row.iter().copied().chain([1.0])).collect();
            records.d += 1;
        }
        Ok(records)
    }

    pub(super) fn records(
        &self,
        d: usize,
        features: Vec<f64>,
        labels: Column,
        groups: Option<Column>,
    ) -> Records {
        Records { d, features, sparse: None, labels, groups, file: self.file.path.clone() }
    }

    fn read_arrays(&self, arrays: &BTreeMap<String, Array>) -> Result<Records, Fault> {
        self.refuse_column_names("an .npz file")?;
        let x = self.array(arrays, "x", 2)?;
        let (labels, groups) = self.read_labels(arrays)?;
        Ok(self.records(x.shape[1], x.data.clone(), labels, groups))
    }

    fn array<'a>(
        &self,
        arrays: &'a BTreeMap<String, Array>,
        name: &str,
        axes: usize,
    ) -> Result<&'a Array, Fault> {
        match arrays.get(name) {
            Some(array) if array.shape.len() == axes => Ok(array),
            Some(array) => Err(self
                .fault(format!("`{name}` has the shape {:?}; expected {axes} axes", array.shape))),
            None => Err(self.fault(format!("there is no array `{name}`"))),
        }
    }

    /// The labels, and the values of the split's column.
    pub(super) fn read_labels(
        &self,
        arrays: &BTreeMap<String, Array>,
    ) -> Result<(Column, Option<Column>), Fault> {
        let labels = Column::Numbers(self.array(arrays, "y", 1)?.data.clone());
        let groups = match &self.split {
            Split::Column(name) => Some(Column::Numbers(self.array(arrays, name, 1)?.data.clone())),
            _ => None,
        };
        Ok((labels, groups))
    }

    fn check_dimension(&self, d: usize) -> Result<(), Fault> {
        if d > MOST_DIMENSIONS {
            return Err(self.fault(format!(
                "there are {d} features; at most {MOST_DIMENSIONS} are allowed (d × d matrices are made)"
            )));
        }
        Ok(())
    }

    fn check_shape(&self, records: &Records) -> Result<(), Fault> {
        if records.d == 0 {
            return Err(self.fault("there is no feature"));
        }
        self.check_dimension(records.d)?;
        self.check_lengths(records, records.features.len() / records.d)
    }

    /// An error unless there are as many labels and values of the split as rows, one or more.
    pub(super) fn check_lengths(&self, records: &Records, n: usize) -> Result<(), Fault> {
        let columns =
            [("labels", Some(&records.labels)), ("split's values", records.groups.as_ref())];
        for (name, column) in columns {
            if let Some(column) = column.filter(|column| column.len() != n) {
                let (rows, have) = (count(n, "row"), column.len());
                return Err(self.fault(format!("the features have {rows}, the {name} {have}")));
            }
        }
        if n == 0 {
            return Err(self.fault("there are no records"));
        }
        Ok(())
    }

    /// An error if a number is not finite: it could be neither compared nor averaged.
    fn check_finite(&self, records: &Records) -> Result<(), Fault> {
        self.check_finite_labels(records)?;
        let features = &records.features;
        match features.iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(entry) => {
                Err(self.infinite((entry / records.d, entry % records.d), features[entry]))
            }
        }
    }

    /// The fault of a feature that is not finite.
    pub(super) fn infinite(&self, (row, column): (usize, usize), value: f64) -> Fault {
        self.fault(format!(
            "feature [row, column] = [{row}, {column}], counted from 0, is {value}; every number must be finite"
        ))
    }

    pub(super) fn check_finite_labels(&self, records: &Records) -> Result<(), Fault> {
        let columns =
            [("label", Some(&records.labels)), ("split's value", records.groups.as_ref())];
        for (name, column) in columns {
            let Some(Column::Numbers(values)) = column else { continue };
            if let Some(row) = values.iter().position(|x| !x.is_finite()) {
                let value = values[row];
                return Err(self.fault(format!("the {name} of row {row} is {value}, not finite")));
            }
        }
        Ok(())
    }

    /// An error if `label` or `features` is set for a file that has no named columns.
    pub(super) fn refuse_column_names(&self, kind_of_file: &str) -> Result<(), Fault> {
        let key = match (is_label(&self.label), self.features.is_empty()) {
            (true, true) => return Ok(()),
            (false, _) => "dataset.label",
            (true, false) => "dataset.features",
        };
        Err(Fault::new(key, format!("names columns, but {kind_of_file} has none; leave it out")))
    }

    fn read_table(&self, columns: &[(String, Column)]) -> Result<Records, Fault> {
        let find = |key: &'static str, name: &str| {
            let found = columns.iter().find(|(have, _)| have == name).map(|(_, column)| column);
            found.ok_or_else(|| self.unknown_column(key, name, columns))
        };
        let labels = find("dataset.label", &self.label)?.clone();
        let (group, groups) = match &self.split {
            Split::Column(name) => (name.as_str(), Some(find("dataset.split", name)?.clone())),
            _ => ("", None),
        };
        let names: Vec<&String> = if self.features.is_empty() {
            let all = columns.iter().map(|(name, _)| name);
            all.filter(|name| **name != self.label && *name != group).collect()
        } else {
            self.features.iter().collect()
        };
        self.check_names(&names)?;
        let mut chosen = Vec::with_capacity(names.len());
        for name in &names {
            match find("dataset.features", name)? {
                Column::Numbers(values) => chosen.push(values),
                Column::Text(values) => return Err(self.not_numeric(name, values)),
            }
        }
        let features = (0..labels.len()).flat_map(|i| chosen.iter().map(move |c| c[i])).collect();
        Ok(self.records(names.len(), features, labels, groups))
    }

    fn unknown_column(&self, key: &'static str, name: &str, columns: &[(String, Column)]) -> Fault {
        let known: Vec<String> = columns.iter().take(40).map(|(name, _)| sanitised(name)).collect();
        if known.is_empty() {
            return self.fault("there are no columns");
        }
        let (path, known) = (&self.file.path, known.join(", "));
        Fault::new(key, format!("there is no column `{name}` in {path}, only {known}"))
    }

    /// An error if there are too many features, one is named twice, or one is the label.
    fn check_names(&self, names: &[&String]) -> Result<(), Fault> {
        self.check_dimension(names.len())?;
        let repeated = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
        if let Some((_, name)) = repeated {
            return Err(Fault::new("dataset.features", format!("names `{name}` twice")));
        }
        if names.contains(&&self.label) {
            let message = format!("names `{}`, which is the label column", self.label);
            return Err(Fault::new("dataset.features", message));
        }
        Ok(())
    }

    fn not_numeric(&self, name: &str, values: &[String]) -> Fault {
        let first = values.iter().enumerate().find(|(_, value)| value.parse::<f64>().is_err());
        let (row, value) = first.map_or((0, String::new()), |(row, value)| (row, sanitised(value)));
        let name = sanitised(name);
        self.fault(format!(
            "column `{name}` is not a feature: row {row} is \"{value}\", not a number; list the `features` that are meant"
        ))
    }

    fn standardise(&self, records: &mut Records) -> Result<(), Fault> {
        let (d, n) = (records.d, (records.features.len() / records.d) as f64);
        for j in 0..d {
            let column = || records.features.iter().skip(j).step_by(d);
            let mean = column().fold(0.0, |sum, x| sum + x) / n;
            let variance = column().fold(0.0, |sum, x| sum + (x - mean) * (x - mean)) / n;
            let scale = libm::sqrt(variance);
            if scale.is_nan() || scale <= 1e-12 * mean.abs() {
                return Err(self.fault(format!(
                    "feature {j} is the same in all records: it cannot be standardised; leave it out"
                )));
            }
            for x in records.features.iter_mut().skip(j).step_by(d) {
                *x = (*x - mean) / scale;
            }
        }
        Ok(())
    }
}
