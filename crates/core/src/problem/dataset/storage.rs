//! Records with sparse features: which are, and how they are read.

use super::{Dataset, Records, Split, Storage};
use crate::kernel::SparseRows;
use crate::problem::arrays::{Column, Contents, Files};
use crate::problem::{Fault, MOST_DIMENSIONS};

/// The most features that are always dense by default.
const FEW: usize = 32;
/// Features are dense by default if this many times their non-zeros are all numbers or more.
const RARE: usize = 8;
/// The most bytes of dense features.
const MOST_BYTES: u128 = 8 << 30;
/// The most bytes of the vectors of a run.
const MOST_BYTES_OF_RUN: u128 = 16_000_000_000;
/// Vectors of d numbers of a client: its θ, its control variate and ξ.
const VECTORS: u128 = 3;

impl Dataset {
    /// Reads the records, with sparse or dense features as [`Dataset::storage`] says.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should.
    pub fn open_stored(&self, files: &dyn Files) -> Result<Records, Fault> {
        let contents = files.open(&self.file).map_err(|e| Fault::new("dataset.file", e))?;
        let features = match &*contents {
            Contents::Records { features, .. } | Contents::SparseArrays { features, .. } => {
                Some(features)
            }
            Contents::Arrays(_) | Contents::Table(_) => None,
        };
        match (features, self.storage) {
            (Some(features), storage)
                if storage.unwrap_or_else(|| self.default_storage(features))
                    == Storage::Sparse =>
            {
                let mut records = self.read_sparse(&contents, features)?;
                self.check_sparse(&records, features)?;
                let rows =
                    if self.intercept { features.with_ones() } else { features.clone() };
                (records.d, records.sparse) = (rows.dim(), Some(rows));
                Ok(records)
            }
            (None, Some(Storage::Sparse)) => {
                let mut records = self.read_dense(&contents)?;
                let dense = std::mem::take(&mut records.features);
                records.sparse = Some(SparseRows::from_dense(records.d, &dense));
                Ok(records)
            }
            _ => self.read_dense(&contents),
        }
    }

    fn default_storage(&self, features: &SparseRows) -> Storage {
        let (d, n) = (features.dim(), features.len());
        let rare = features.values().len() as u128 * (RARE as u128) < n as u128 * d as u128;
        if rare && d > FEW && !self.standardise { Storage::Sparse } else { Storage::Dense }
    }

    /// The records of a file of sparse rows, without their features.
    pub(super) fn read_sparse(
        &self,
        contents: &Contents,
        features: &SparseRows,
    ) -> Result<Records, Fault> {
        let (labels, groups) = match contents {
            Contents::SparseArrays { others, .. } => {
                self.refuse_column_names("an .npz file")?;
                self.read_labels(others)?
            }
            Contents::Records { labels, .. } => {
                self.refuse_column_names("a LIBSVM file")?;
                if let Split::Column(_) = self.split {
                    return Err(self.fault("a LIBSVM file has no column to split by"));
                }
                (Column::Numbers(labels.clone()), None)
            }
            Contents::Arrays(_) | Contents::Table(_) => {
                return Err(self.fault("it does not hold sparse rows"));
            }
        };
        Ok(self.records(features.dim(), Vec::new(), labels, groups))
    }

    fn check_sparse(&self, records: &Records, features: &SparseRows) -> Result<(), Fault> {
        if features.dim() == 0 {
            return Err(self.fault("there is no feature"));
        }
        self.check_lengths(records, features.len())?;
        self.check_finite_labels(records)?;
        match features.values().iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(entry) => Err(self.infinite(features.place(entry), features.values()[entry])),
        }
    }

    /// An error if these features are too many to be stored dense.
    pub(super) fn check_dense(&self, features: &SparseRows) -> Result<(), Fault> {
        let (n, d) = (features.len(), features.dim());
        if d > MOST_DIMENSIONS {
            return Err(self.fault(format!(
                "there are {d} features; dense ones are at most {MOST_DIMENSIONS} (d × d matrices are made). `logistic-dataset` with `storage = \"sparse\"` and without `standardise` allows more"
            )));
        }
        let bytes = n as u128 * d as u128 * 8;
        if bytes > MOST_BYTES {
            return Err(self.fault(format!(
                "{n} records of {d} features would take {bytes} bytes; at most {MOST_BYTES} are allowed"
            )));
        }
        Ok(())
    }

    /// An error if the vectors of so many clients of a run do not fit in memory.
    ///
    /// # Errors
    /// A fault of the file, which determines d.
    pub fn check_vectors(&self, clients: usize, d: usize) -> Result<(), Fault> {
        let bytes = VECTORS * 8 * clients as u128 * d as u128;
        if bytes > MOST_BYTES_OF_RUN {
            let (gigabytes, most) = (bytes as f64 / 1e9, MOST_BYTES_OF_RUN as f64 / 1e9);
            return Err(self.fault(format!(
                "{clients} clients with vectors of {d} numbers would take about {gigabytes:.1} GB in a run; at most {most} are allowed"
            )));
        }
        Ok(())
    }
}
