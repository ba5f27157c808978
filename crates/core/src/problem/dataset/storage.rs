//! Files of sparse features: whether they are stored sparse or dense in a run, and how they are read.

use super::records::Records;
use super::settings::{Dataset, Storage};
use crate::kernel::SparseRows;
use crate::problem::arrays::{Column, Contents};
use crate::problem::fault::{Fault, MOST_DIMENSIONS};

/// The most features that are stored dense by default, however few of them are not 0.
const FEW: usize = 32;
/// Features are stored sparse by default only if fewer than one in this many of their numbers is not 0.
const RARE: usize = 8;
/// The most bytes that dense features of a file of sparse rows may take.
const MOST_BYTES: u128 = 8 << 30;
/// The most bytes that the vectors of the clients may take in a run.
const MOST_BYTES_OF_RUN: u128 = 16_000_000_000;
/// The number of vectors of d numbers that a client has in a run: its θ, its control variate and ξ.
const VECTORS: u128 = 3;

impl Dataset {
    /// How the sparse rows of a file are stored in a run if the settings do not say it: sparse if there are many
    /// features, few of whose numbers are not 0, and they are not standardised, since a shift makes every 0
    /// another number.
    pub(super) fn default_storage(&self, features: &SparseRows) -> Storage {
        let d = features.dim();
        let n = features.len();
        let rare = features.values().len() as u128 * (RARE as u128) < n as u128 * d as u128;
        if rare && d > FEW && !self.standardise { Storage::Sparse } else { Storage::Dense }
    }

    /// The records of a file of sparse rows of `d` features, with their labels and further columns but without their
    /// features, which the caller stores.
    ///
    /// # Errors
    /// Settings that name columns which the file does not have, or a file of another kind.
    pub(super) fn read_without_features(
        &self,
        contents: &Contents,
        d: usize,
    ) -> Result<Records, Fault> {
        match contents {
            Contents::SparseArrays { others, .. } => self.read_arrays(others, d, Vec::new()),
            Contents::Records { labels, .. } => {
                self.refuse_column_names("a LIBSVM file")?;
                self.split_and_test_columns(|key, _| -> Result<(), Fault> {
                    Err(Fault::new(key, "names a column, but a LIBSVM file has none"))
                })?;
                let labels = Column::Numbers(labels.clone());
                Ok(self.bare_records(Vec::new(), d, Vec::new(), labels))
            }
            Contents::Arrays(_) | Contents::Table(_) => {
                Err(self.fault("it does not hold sparse rows"))
            }
        }
    }

    /// An error if these features of a file of sparse rows are too many, or would take too much memory, to be stored
    /// dense. It is asked where they shall be so: by the settings, by the default for such a file, or because the
    /// problem takes dense features alone.
    pub(super) fn check_dense(&self, features: &SparseRows) -> Result<(), Fault> {
        let n = features.len();
        let d = features.dim();
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

    /// Checks that the vectors of d numbers that this number of clients have do not take too much memory in a run. It
    /// is for sparse features, of which there may be millions.
    ///
    /// # Errors
    /// A fault of the file, which determines d.
    pub fn check_vectors(&self, clients: usize, d: usize) -> Result<(), Fault> {
        let bytes = VECTORS * 8 * clients as u128 * d as u128;
        if bytes > MOST_BYTES_OF_RUN {
            let gigabytes = bytes as f64 / 1e9;
            let most = MOST_BYTES_OF_RUN as f64 / 1e9;
            return Err(self.fault(format!(
                "{clients} clients with vectors of {d} numbers would take about {gigabytes:.1} GB in a run; at most {most} are allowed"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::FeatureForms;
    use super::*;
    use crate::problem::arrays::Array;
    use crate::problem::dataset::{ClientWeights, MissingValues, Split, TestRecords};
    use crate::sample::Fixed;
    use std::collections::BTreeMap;

    /// Four records of `d` features, of which the first and one more are not 0.
    fn rows(d: usize) -> SparseRows {
        let indices = (0..4).flat_map(|i| [0, 1 + i]).collect();
        let values = (0..8).map(|i| 1.0 + f64::from(i)).collect();
        SparseRows::new(d, vec![0, 2, 4, 6, 8], indices, values).unwrap()
    }

    fn libsvm(features: SparseRows) -> Fixed {
        Fixed(Contents::Records { labels: vec![1.0, -1.0, 1.0, -1.0], features })
    }

    /// Two clients, and features as the file has them.
    fn dataset() -> Dataset {
        Dataset {
            clients: Some(2),
            standardise: false,
            intercept: false,
            split: Split::Iid,
            ..Dataset::example()
        }
    }

    /// The records of [`rows`] as they are stored, or the fault.
    fn stored(dataset: &Dataset, d: usize) -> Result<Records, String> {
        dataset
            .read_records(&libsvm(rows(d)), 1, FeatureForms::DenseOrSparse)
            .map(|(records, _)| records)
            .map_err(|fault| format!("{}: {}", fault.key, fault.message))
    }

    #[test]
    fn wide_files_of_few_numbers_are_sparse_by_default() {
        for (d, standardise, storage, sparse) in [
            (40, false, None, true),
            (40, true, None, false),
            (40, false, Some(Storage::Dense), false),
            (32, false, None, false),
            (16, false, Some(Storage::Sparse), true),
            (6000, false, None, true),
        ] {
            // Standardising needs features that differ.
            let dataset = Dataset { standardise, storage, ..dataset() };
            match stored(&dataset, d) {
                Ok(records) => {
                    assert_eq!((records.sparse().is_some(), records.dimension()), (sparse, d))
                }
                Err(said) => {
                    assert!(standardise && said.contains("the same in all records"), "{said}")
                }
            }
        }
        // An eighth is not few.
        let dense =
            SparseRows::from_dense(40, &[[1.0; 5].as_slice(), &[0.0; 35]].concat().repeat(4));
        assert!(
            dataset()
                .read_records(&libsvm(dense), 1, FeatureForms::DenseOrSparse)
                .unwrap()
                .0
                .sparse()
                .is_none()
        );
    }

    #[test]
    fn dense_and_sparse_records_are_the_same() {
        let dataset = |storage| Dataset { storage: Some(storage), intercept: true, ..dataset() };
        let sparse = stored(&dataset(Storage::Sparse), 9);
        let dense = stored(&dataset(Storage::Dense), 9);
        let sparse = sparse.unwrap();
        let dense = dense.unwrap();
        assert_eq!(sparse.sparse().unwrap().to_dense(), dense.features);
        assert_eq!((sparse.dimension(), dense.dimension(), dense.row(3)[9]), (10, 10, 1.0));
        // A dense file may be made sparse.
        let x = Array::of_numbers(vec![4, 9], rows(9).to_dense());
        let y = Array::of_numbers(vec![4], vec![0.0, 1.0, 0.0, 1.0]);
        let arrays = BTreeMap::from([("x".to_owned(), x), ("y".to_owned(), y.clone())]);
        let file = Fixed(Contents::Arrays(arrays));
        let (made, _) =
            dataset(Storage::Sparse).read_records(&file, 1, FeatureForms::DenseOrSparse).unwrap();
        assert_eq!(made.sparse(), sparse.sparse());
        // A file of sparse arrays, split by column.
        let others = BTreeMap::from([("y".to_owned(), y.clone()), ("who".to_owned(), y)]);
        let file = Fixed(Contents::SparseArrays { features: rows(9), others });
        let by_column = Dataset {
            split: Split::Column("who".into()),
            clients: None,
            ..dataset(Storage::Sparse)
        };
        let (records, _) = by_column.read_records(&file, 1, FeatureForms::DenseOrSparse).unwrap();
        assert_eq!(by_column.partition(&records, 1).unwrap(), [[0, 2], [1, 3]]);
        assert_eq!(records.sparse(), sparse.sparse());
        assert_eq!(
            by_column.read_records(&file, 1, FeatureForms::Dense).map(|_| ()).unwrap_err().key,
            "dataset.storage"
        );
    }

    /// A missing value of a table is filled in before its features are stored sparse, in the records of the clients and
    /// in the test set: the numbers are those of dense storage.
    #[test]
    fn means_are_filled_in_before_features_are_stored_sparse() {
        let table = Fixed(Contents::Table(vec![
            ("a".into(), Column::Numbers(vec![1.0, f64::NAN, 0.0, 4.5, 0.5, f64::NAN])),
            ("b".into(), Column::Numbers(vec![0.0, 2.0, 0.0, f64::NAN, 0.0, 3.0])),
            ("label".into(), Column::Numbers(vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0])),
            ("held".into(), Column::Numbers(vec![0.0, 0.0, 0.0, 0.0, 1.0, 1.0])),
        ]));
        let read = |storage| {
            let dataset = Dataset {
                missing: Some(MissingValues::Mean),
                test: Some(TestRecords::Column("held".into())),
                features: vec!["a".into(), "b".into()],
                storage: Some(storage),
                intercept: true,
                ..dataset()
            };
            dataset.read_records(&table, 1, FeatureForms::DenseOrSparse).unwrap()
        };
        let (sparse, sparse_test) = read(Storage::Sparse);
        let (dense, dense_test) = read(Storage::Dense);
        assert_eq!(sparse.sparse().unwrap().to_dense(), dense.features);
        let dense_test = dense_test.unwrap().features;
        assert_eq!(sparse_test.unwrap().sparse().unwrap().to_dense(), dense_test);
        // The mean of 1, 0 and 4.5, which clients hold.
        let mean = 5.5 / 3.0;
        assert_eq!(dense.row(1), [mean, 2.0, 1.0]);
        assert_eq!(dense_test, [0.5, 0.0, 1.0, mean, 3.0, 1.0]);
    }

    /// Values that are missing are treated alike in files without names of columns: the records that lack one are
    /// dropped, or it is filled in with the same numbers as in a table, sparse or dense.
    #[test]
    fn missing_values_of_files_without_columns_are_dropped_or_filled_in() {
        let nan = f64::NAN;
        let a = vec![1.0, nan, 0.0, 4.5, 0.5];
        let b = vec![2.0, 2.0, 0.0, nan, 3.0];
        let y = vec![0.0, 1.0, 0.0, 1.0, 0.0];
        let dense: Vec<f64> = a.iter().zip(&b).flat_map(|(a, b)| [*a, *b]).collect();
        let features = SparseRows::from_dense(2, &dense);
        let label = Array::of_numbers(vec![5], y.clone());
        let others = BTreeMap::from([("y".to_owned(), label)]);
        let x = Array::of_numbers(vec![5, 2], dense);
        let arrays = BTreeMap::from([("x".to_owned(), x), ("y".to_owned(), others["y"].clone())]);
        let table = Contents::Table(vec![
            ("a".into(), Column::Numbers(a)),
            ("b".into(), Column::Numbers(b)),
            ("label".into(), Column::Numbers(y.clone())),
        ]);
        let files = [
            Contents::Arrays(arrays),
            Contents::SparseArrays { features: features.clone(), others },
            Contents::Records { labels: y, features },
        ];
        let read = |file: &Contents, missing, storage| {
            let dataset = Dataset { missing, storage: Some(storage), ..dataset() };
            let found = dataset.read_records(&Fixed(file.clone()), 1, FeatureForms::DenseOrSparse);
            found.map(|(records, _)| records).map_err(|fault| fault.message)
        };
        for (missing, count) in [(MissingValues::Drop, 3), (MissingValues::Mean, 5)] {
            let wanted = read(&table, Some(missing), Storage::Dense).unwrap();
            assert_eq!(wanted.count(), count);
            for file in &files {
                let dense = read(file, Some(missing), Storage::Dense).unwrap();
                assert_eq!((&dense.features, &dense.labels), (&wanted.features, &wanted.labels));
                let sparse = read(file, Some(missing), Storage::Sparse).unwrap();
                assert_eq!(sparse.sparse().unwrap().to_dense(), wanted.features);
                assert_eq!(sparse.labels, wanted.labels);
            }
        }
        for file in &files {
            let said = read(file, None, Storage::Dense).map(|_| ()).unwrap_err();
            assert!(said.contains("row 1, feature 0 from 0: NaN is not a finite number"), "{said}");
            assert!(said.contains("or write `missing = \"mean\"` or `\"drop\"`"), "{said}");
        }
        // Arrays may differ in length, which is said before records are dropped.
        let short = Array::of_numbers(vec![4], vec![0.0; 4]);
        let others = BTreeMap::from([("y".to_owned(), short)]);
        let features = SparseRows::from_dense(2, &[1.0; 10]);
        let uneven = Contents::SparseArrays { features, others };
        let found = read(&uneven, Some(MissingValues::Drop), Storage::Sparse);
        let said = found.map(|_| ()).unwrap_err();
        assert!(said.contains("the features have 5 rows, the labels 4"), "{said}");
    }

    /// Categories are columns, which these files do not have.
    #[test]
    fn categories_of_files_without_columns_are_refused() {
        let categorical = Dataset { categorical: vec!["a".into()], ..dataset() };
        let said = stored(&categorical, 40).map(|_| ()).unwrap_err();
        assert_eq!(
            said,
            "dataset.categorical: names columns, but a LIBSVM file has none; leave it out"
        );
        let y = Array::of_numbers(vec![4], vec![0.0, 1.0, 0.0, 1.0]);
        let x = Array::of_numbers(vec![4, 9], rows(9).to_dense());
        let arrays = BTreeMap::from([("x".to_owned(), x), ("y".to_owned(), y)]);
        let file = Fixed(Contents::Arrays(arrays));
        let found = categorical.read_records(&file, 1, FeatureForms::Dense).map(|_| ());
        assert_eq!(found.unwrap_err().key, "dataset.categorical");
    }

    /// Every split gives clients and the test set the same records in both forms.
    #[test]
    fn dense_and_sparse_records_are_dealt_the_same() {
        let n = 60;
        let indices = (0..n).flat_map(|i| [i % 9, 9 + i % 11]).collect();
        let values = (0..2 * n).map(|i| f64::from(i) - 50.5).collect();
        let offsets = (0..=n as usize).map(|i| 2 * i).collect();
        let features = SparseRows::new(40, offsets, indices, values).unwrap();
        let column = |of: fn(u32) -> u32| {
            let data: Vec<f64> = (0..n).map(|i| f64::from(of(i))).collect();
            Array::of_numbers(vec![data.len()], data)
        };
        let others = BTreeMap::from([
            ("y".to_owned(), column(|i| u32::from(i % 4 == 0))),
            ("who".to_owned(), column(|i| i % 10 / 4)),
            ("held".to_owned(), column(|i| u32::from(i % 7 == 3))),
        ]);
        let file = Fixed(Contents::SparseArrays { features: features.clone(), others });
        let splits = [
            Split::Iid,
            Split::ByLabel,
            Split::Dirichlet(2.0),
            Split::Quantity(0.5),
            Split::Column("who".into()),
        ];
        for (split, test) in splits.into_iter().flat_map(|split| {
            let tests =
                [None, Some(TestRecords::Fraction(0.2)), Some(TestRecords::Column("held".into()))];
            tests.map(|test| (split.clone(), test))
        }) {
            let load = |storage| {
                let dataset = Dataset {
                    clients: (!matches!(split, Split::Column(_))).then_some(4),
                    split: split.clone(),
                    test: test.clone(),
                    weights: ClientWeights::Records,
                    storage: Some(storage),
                    intercept: true,
                    ..dataset()
                };
                dataset.load(&file, 5, FeatureForms::DenseOrSparse).unwrap()
            };
            let sparse = load(Storage::Sparse);
            let dense = load(Storage::Dense);
            assert_eq!((&sparse.held, &sparse.shares), (&dense.held, &dense.shares));
            let held_out = match test {
                None => 0,
                Some(TestRecords::Fraction(_)) => 12,
                Some(TestRecords::Column(_)) => 9,
            };
            assert_eq!(sparse.records.count(), n as usize - held_out, "{split:?}");
            assert_eq!(sparse.test.as_ref().map_or(0, Records::count), held_out);
            let parts = [(Some(sparse.records), Some(dense.records)), (sparse.test, dense.test)];
            for (sparse, dense) in parts {
                let (Some(sparse), Some(dense)) = (sparse, dense) else { continue };
                assert_eq!((sparse.labels, sparse.groups), (dense.labels, dense.groups));
                let rows = sparse.sparse.unwrap();
                assert_eq!((rows.dim(), rows.to_dense()), (41, dense.features));
            }
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let fails = |dataset: &Dataset, d| stored(dataset, d).map(|_| ()).unwrap_err();
        let dense = Dataset { storage: Some(Storage::Dense), ..dataset() };
        assert!(
            fails(&dense, 6000).contains("there are 6000 features; dense ones are at most 5000")
        );
        let standard = Dataset { standardise: true, ..dataset() };
        assert!(fails(&standard, 6000).contains("without `standardise`"));
        let both = Dataset { storage: Some(Storage::Sparse), ..standard };
        assert!(both.check().iter().any(|fault| fault.key == "dataset.standardise"));
        let column = Dataset { split: Split::Column("who".into()), clients: None, ..dataset() };
        assert!(fails(&column, 40).contains("names a column, but a LIBSVM file has none"));
        let open = |file: Contents| {
            dataset()
                .read_records(&Fixed(file), 1, FeatureForms::DenseOrSparse)
                .map(|_| ())
                .unwrap_err()
                .message
        };
        let mut values = vec![1.0; 8];
        values[5] = f64::NAN;
        let indices = (0..4).flat_map(|i| [0, 1 + i]).collect();
        let nan = SparseRows::new(40, vec![0, 2, 4, 6, 8], indices, values).unwrap();
        let labels = vec![1.0, -1.0, 1.0, -1.0];
        let said = open(Contents::Records { labels, features: nan });
        assert!(said.contains("row 2, feature 3 from 0: NaN is not a finite number"), "{said}");
        let said = open(Contents::Records { labels: vec![1.0; 3], features: rows(40) });
        assert!(said.contains("the features have 4 rows, the labels 3"), "{said}");
        let said = open(Contents::SparseArrays { features: rows(40), others: BTreeMap::new() });
        assert!(said.contains("there is no array `y`"), "{said}");
        let said = dataset().check_vectors(1000, 1_000_000).unwrap_err().message;
        assert!(said.contains("would take about 24.0 GB in a run; at most 16"), "{said}");
    }
}
