//! Records from a data file, and how they are partitioned among clients.
//!
//! Clients have equal weights by default, however many records they hold: F̄ is the mean of the
//! clients' means, as in the theory. Weighted by their records, it is the mean over the records.

mod columns;
mod read;
mod storage;

use super::arrays::{Column, DataFile, Files, is_libsvm, sanitised};
use super::column::LongNumber;
use super::records::{InstanceInputs, RecordLoss, RecordProblem, RecordSets};
use super::{Fault, Faults};
use crate::kernel::SparseRows;
use crate::kernel::softmax::MOST_CLASSES;
use crate::rng::{MAX_CLIENTS, Stream};
use crate::words::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A data file, and how its records are partitioned among clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dataset {
    /// The file: CSV with a header (`.csv`), Parquet (`.parquet`), LIBSVM (`.libsvm`, `.svm`,
    /// `.txt`) or NumPy (`.npz`). An `.npz` has the arrays `x` (n, d), `y` (n,) and, for a split by
    /// column, `client` (n,). Instead of `x` it may have sparse rows as `scipy.sparse.save_npz`
    /// writes them: `data`, `indices`, `indptr`, `shape` and `format` (`"csr"`). An `.npz` of two
    /// or more arrays that all have one axis (n,) holds columns by name, numbers or texts, as a CSV
    /// file does.
    #[schemars(example = &"records.csv")]
    pub file: DataFile,
    /// The column of the labels (CSV, Parquet, `.npz` of columns).
    #[serde(default = "label", skip_serializing_if = "is_label")]
    #[schemars(example = &"label", extend("default" = "label"))]
    pub label: String,
    /// The columns of the features (CSV, Parquet, `.npz` of columns), in this order; by default all
    /// but those of the label, the split and the test set, and those that number or name the rows:
    /// first columns without a name (also `Unnamed: 0`, as pandas calls it), and a first column whose
    /// values are 0, 1, 2, … or 1, 2, 3, … in ten records or more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_FEATURES)]
    pub features: Vec<String>,
    /// The features that hold categories, texts or numbers (CSV, Parquet, `.npz` of columns). Each
    /// is replaced by indicators, one for each category but the first, in sorted order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_CATEGORICAL)]
    pub categorical: Vec<String>,
    /// What is done where a value is missing (CSV, Parquet, `.npz` of columns): it is NaN, an empty
    /// field of CSV, or one of the marks NA, N/A, nan, null, None, ?, -, ., #N/A, NaT and their usual
    /// spellings. Without this key that is an error. A label, a client or a mark of the test set
    /// that is missing has no mean: only `"drop"` takes such a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = MissingValues::Mean)]
    pub missing: Option<MissingValues>,
    /// N, the number of clients, 1 or more. A split by column determines it and refuses this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub clients: Option<usize>,
    /// How records are partitioned.
    #[serde(default)]
    #[schemars(example = Split::Dirichlet(0.5))]
    pub split: Split,
    /// How much clients count in every mean: the server's, that of the control variates, and the
    /// objective, whose minimum is θ*.
    #[serde(default, skip_serializing_if = "super::is_default")]
    #[schemars(extend("default" = "equal"), example = ClientWeights::Records)]
    pub weights: ClientWeights,
    /// The records that no client holds: a fraction of all, or those that a column marks. A
    /// fraction is drawn from the seed before the other records are partitioned. The metrics
    /// `test-loss` and `test-accuracy` are computed on these records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 0.2)]
    pub test: Option<TestRecords>,
    /// Whether each feature is shifted and scaled to mean 0 and variance 1 over
    /// all records that clients hold.
    #[serde(default)]
    #[schemars(example = true)]
    pub standardise: bool,
    /// Whether a feature that is always 1 is added at the end.
    #[serde(default)]
    #[schemars(example = true)]
    pub intercept: bool,
    /// How features are stored during a run. By default those of LIBSVM and of sparse `.npz` files
    /// are sparse if there are more than 32, fewer than an eighth of them are not 0, and they are
    /// not standardised. All others are dense. Only `logistic-dataset` has sparse features. There
    /// are at most 5000 dense features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = Storage::Sparse)]
    pub storage: Option<Storage>,
}

/// What is done where a feature has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingValues {
    /// It is the mean of the feature over the records that clients hold, also in the test set; an
    /// indicator of a category is the category's fraction of them.
    Mean,
    /// The record is left out; also one without a label, a client or a mark of the test set.
    Drop,
}

/// How features are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// All numbers.
    Dense,
    /// The numbers other than 0; the cost of a local step grows with them, not with d.
    Sparse,
}

/// How records are partitioned among clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Shuffled, then split into equal parts.
    #[default]
    Iid,
    /// Shuffled, sorted by label, then split into equal parts.
    ByLabel,
    /// The records of each label are split in proportions drawn from Dirichlet(α, …, α), with α
    /// above 0; a client that would get none gets one of the client that holds most.
    Dirichlet(f64),
    /// Shuffled, then split into parts of drawn sizes: each client gets one record, and the others
    /// are split in proportions drawn from Dirichlet(α, …, α), with α above 0.
    Quantity(f64),
    /// One client for each value of this column (npz: of the array `client`). Numbers are compared as
    /// numbers, whole ones exactly whatever their length: 1, 01 and 1.0 are one client. In a column
    /// that has other texts too, these are three.
    Column(#[schemars(example = &"client")] String),
}

/// The records of the test set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = or_number)]
pub enum TestRecords {
    /// This fraction of the records, above 0 and below 1; `test = 0.2` is short for it.
    Fraction(#[schemars(example = 0.2)] f64),
    /// Those for which this column (npz: array) is 1 or true; for the others it is 0 or false.
    Column(#[schemars(example = &"test")] String),
}

/// A number stands for the choice `fraction`, which the reader of manifests knows by its name.
fn or_number(schema: &mut schemars::Schema) {
    if let Some(choices) = schema.get_mut("oneOf").and_then(|choices| choices.as_array_mut()) {
        choices.push(schemars::json_schema!({ "type": "number" }).to_value());
    }
}

/// How much clients count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientWeights {
    /// All the same, however many records they hold: θ* is that of the mean of their means. The
    /// theory of the sources assumes it.
    #[default]
    Equal,
    /// In proportion to the records that they hold (McMahan et al. 2017): θ* is that of the
    /// pooled records. Under partial participation, the weights of the participating clients are
    /// divided by their sum. That is biased: the mean of a round's step is then not the gradient of
    /// the objective, and only control variates (`scaffold`) keep θ* as the fixed point.
    Records,
}

impl ClientWeights {
    /// The share of each client, which holds so many records; `None` if all are equal.
    pub fn shares(self, counts: &[usize]) -> Option<Vec<f64>> {
        let unequal = counts.iter().any(|count| *count != counts[0]);
        let all = counts.iter().sum::<usize>() as f64;
        let shares = || counts.iter().map(|count| *count as f64 / all).collect();
        (self == Self::Records && unequal).then(shares)
    }
}

/// The records of a file as the clients of a problem hold them.
pub struct ClientRecords {
    /// All of them.
    pub records: Records,
    /// The records of the test set, if there is one.
    pub test: Option<Records>,
    /// The indices of the records that each client holds.
    pub held: Vec<Vec<usize>>,
    /// The clients' shares, if they are not equal.
    pub shares: Option<Vec<f64>>,
}

impl ClientRecords {
    /// The problem of this loss on the records and on those of the test set; `store` makes the sets
    /// of indices of some records a storage.
    ///
    /// # Errors
    /// Those of `store`, and a [`Fault`] of `l2` if no optimum is found.
    pub(super) fn problem<L: RecordLoss<S>, S: RecordSets>(
        &self,
        loss: L,
        files: &dyn Files,
        store: impl Fn(&Records, &[Vec<usize>]) -> Result<S, Fault>,
    ) -> Result<RecordProblem<L, S>, Fault> {
        let (shares, held) = (self.shares.clone(), store(&self.records, &self.held)?);
        let optimum = files.optimum_search();
        let given = InstanceInputs { shares, optimum, ..InstanceInputs::default() };
        let problem = RecordProblem::new(loss, held, given)?;
        let Some(test) = &self.test else { return Ok(problem) };
        Ok(problem.with_test(store(test, &[(0..test.count()).collect()])?))
    }
}

/// The default name of the label column.
fn label() -> String {
    "label".into()
}

/// Whether this is the default name of the label column.
fn is_label(name: &str) -> bool {
    name == label()
}

/// An example for the documentation.
const EXAMPLE_FEATURES: [&str; 2] = ["age", "height"];
const EXAMPLE_CATEGORICAL: [&str; 1] = ["colour"];

/// The records of a file, with features that are ready for use.
pub struct Records {
    d: usize,
    /// Their names; empty where the file has none.
    names: Vec<String>,
    /// Rows of d; empty if they are sparse.
    features: Vec<f64>,
    /// The rows instead, if they are stored sparse.
    sparse: Option<SparseRows>,
    labels: Column,
    /// The values of the split's column.
    groups: Option<Column>,
    /// The values of the column that marks the test set.
    marks: Option<Column>,
    file: String,
}

impl Dataset {
    /// An example for the documentation.
    pub fn example() -> Self {
        Self {
            file: DataFile { path: "records.csv".into(), sha256: None, size: None },
            label: label(),
            features: Vec::new(),
            categorical: Vec::new(),
            missing: None,
            clients: Some(10),
            split: Split::Dirichlet(0.5),
            weights: ClientWeights::Equal,
            test: None,
            standardise: true,
            intercept: true,
            storage: None,
        }
    }

    /// What is wrong with the settings.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        match (&self.split, self.clients) {
            (Split::Column(_), Some(_)) => faults.0.push(Fault::new(
                "dataset.clients",
                "cannot be combined with a split by column, which defines the clients",
            )),
            (Split::Column(_), None) => {}
            (_, None) => faults.0.push(Fault::new(
                "dataset.clients",
                "is required: the number of clients among which the records are partitioned",
            )),
            (_, Some(clients)) => faults.require(
                (1..=MAX_CLIENTS).contains(&(clients as u64)),
                "dataset.clients",
                || format!("must be from 1 to {MAX_CLIENTS}, not {clients}"),
            ),
        }
        match self.split {
            Split::Dirichlet(alpha) => faults.positive("dataset.split.dirichlet", alpha),
            Split::Quantity(alpha) => faults.positive("dataset.split.quantity", alpha),
            _ => {}
        }
        if let Some(TestRecords::Fraction(fraction)) = self.test {
            faults.require(fraction > 0.0 && fraction < 1.0, "dataset.test", || {
                format!("must be a fraction of the records above 0 and below 1, not {fraction}")
            });
        }
        faults.require(
            !(self.standardise && self.storage == Some(Storage::Sparse)),
            "dataset.standardise",
            || {
                "cannot be combined with sparse features: a shift makes every 0 another number; scale the features in the file instead".into()
            },
        );
        faults.0
    }

    /// The number of clients. Where a column names them the file says it; 1 of a file that cannot
    /// be read, which is reported when the problem is built.
    pub fn clients_in(&self, files: &dyn Files) -> Option<usize> {
        let Split::Column(_) = self.split else { return self.clients };
        let groups = self.open(files, 0, true).ok().and_then(|(records, _)| records.groups);
        Some(groups.map_or(1, |groups| distinct_texts(&groups).len()))
    }

    /// Whether the test set or the partition depends on the seed.
    pub fn uses_seed(&self) -> bool {
        let drawn = matches!(self.test, Some(TestRecords::Fraction(_)));
        drawn || !matches!(self.split, Split::Column(_))
    }

    /// Whether features are stored sparse, as far as the settings and the file's name say.
    pub fn is_sparse(&self) -> bool {
        let by_name = is_libsvm(&self.file.path) && !self.standardise;
        self.storage.map_or(by_name, |storage| storage == Storage::Sparse)
    }

    /// Reads the records and those of the test set, and partitions the former among clients. Their
    /// features are dense or, where the problem `takes_sparse` ones, as [`Dataset::storage`] says.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should, a client without records,
    /// labels that are not classes where they must be, or sparse features in the settings where
    /// they must be dense.
    pub fn load(
        &self,
        files: &dyn Files,
        seed: u64,
        takes_sparse: bool,
    ) -> Result<ClientRecords, Fault> {
        let (records, test) = self.open(files, seed, takes_sparse)?;
        self.check_test_clients(&records, test.as_ref())?;
        let held = self.partition(&records, seed)?;
        let counts: Vec<usize> = held.iter().map(Vec::len).collect();
        let shares = self.weights.shares(&counts);
        Ok(ClientRecords { records, test, held, shares })
    }

    /// An error if a test set that is drawn takes all records of a client that a column names; a
    /// column that marks the test set may leave clients out on purpose.
    fn check_test_clients(&self, records: &Records, test: Option<&Records>) -> Result<(), Fault> {
        let groups = |of: &Records| of.groups.as_ref().map(distinct_texts);
        let (Some(TestRecords::Fraction(_)), Some(test)) = (&self.test, test) else {
            return Ok(());
        };
        let (Some(own), Some(other)) = (groups(records), groups(test)) else { return Ok(()) };
        let Some(lost) = other.difference(&own).next() else { return Ok(()) };
        let message = format!(
            "all records of the client \"{}\" are drawn for the test set; another seed, a smaller fraction or `test = {{ column = … }}` leaves it some",
            sanitised(lost)
        );
        Err(Fault::new("dataset.test", message))
    }

    /// The indices of the records that each client holds.
    ///
    /// # Errors
    /// A client without records, or labels that are not classes.
    fn partition(&self, records: &Records, seed: u64) -> Result<Vec<Vec<usize>>, Fault> {
        let n = records.labels.len();
        let mut rng = Stream::shared_instance(seed);
        let clients = self.clients.unwrap_or(1);
        if clients > n {
            // Checked before any list is allocated: `clients` may be huge.
            return Err(self.empty_client(n / clients, clients, n));
        }
        let equal_parts = |order: Vec<usize>| -> Vec<Vec<usize>> {
            let begin = |k: usize| (k as u128 * n as u128 / clients as u128) as usize;
            (0..clients).map(|k| order[begin(k)..begin(k + 1)].to_vec()).collect()
        };
        let parts = match &self.split {
            Split::Iid => equal_parts(rng.distinct(n, n)),
            Split::ByLabel => {
                let mut order = rng.distinct(n, n);
                let ranks = ranks(&records.labels);
                order.sort_by_key(|&i| ranks[i]);
                equal_parts(order)
            }
            Split::Dirichlet(alpha) => {
                one_each(records.dirichlet_parts(clients, *alpha, &mut rng)?)
            }
            Split::Quantity(alpha) => {
                let order = rng.distinct(n, n);
                let begins = begins(&rng.dirichlet(clients, *alpha), n - clients);
                let begin = |k: usize| begins[k] + k;
                (0..clients).map(|k| order[begin(k)..begin(k + 1)].to_vec()).collect()
            }
            Split::Column(_) => match &records.groups {
                None => vec![(0..n).collect()],
                Some(groups) => {
                    let ranks = ranks(groups);
                    let mut parts = vec![Vec::new(); number_of_classes(&ranks)];
                    ranks.iter().enumerate().for_each(|(i, &k)| parts[k].push(i));
                    parts
                }
            },
        };
        match parts.iter().position(Vec::is_empty) {
            None => Ok(parts),
            Some(empty) => Err(self.empty_client(empty, parts.len(), n)),
        }
    }

    /// The fault of a client without records.
    fn empty_client(&self, empty: usize, count: usize, n: usize) -> Fault {
        let message = format!(
            "client {empty} of {count} gets no records of the {n}; fewer clients would leave none empty"
        );
        Fault::new("dataset.clients", message)
    }
}

/// Where parts in these proportions begin among so many, and where the last one ends.
fn begins(shares: &[f64], all: usize) -> Vec<usize> {
    let mut sum = 0.0;
    let end = |share: &f64| {
        sum += share;
        ((sum * all as f64) as usize).min(all)
    };
    let ends = shares[..shares.len() - 1].iter().map(end);
    std::iter::once(0).chain(ends).chain([all]).collect()
}

/// Parts in which each client without records gets the last one of the client that has most.
fn one_each(mut parts: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    while let Some(empty) = parts.iter().position(Vec::is_empty) {
        let most = (0..parts.len()).rev().max_by_key(|&k| parts[k].len());
        let Some(record) = most.and_then(|k| parts[k].pop()) else { break };
        parts[empty].push(record);
    }
    parts
}

/// The distinct values of a column, as texts.
fn distinct_texts(column: &Column) -> BTreeSet<String> {
    (0..column.len()).map(|row| column.text(row)).collect()
}

/// The rank of each value among the distinct values of a column, from 0.
fn ranks(column: &Column) -> Vec<usize> {
    ranks_among(column, column).into_iter().flatten().collect()
}

/// The rank of each value among the distinct values of `all`, from 0; `None` if it is none of them.
fn ranks_among(all: &Column, values: &Column) -> Vec<Option<usize>> {
    fn among<T: PartialOrd + Clone>(
        all: &[T],
        values: &[T],
        order: fn(&T, &T) -> Ordering,
    ) -> Vec<Option<usize>> {
        let mut all = all.to_vec();
        all.sort_by(order);
        all.dedup();
        let rank = |value: &T| all.partition_point(|x| x < value);
        let found = |value: &T| Some(rank(value)).filter(|rank| all.get(*rank) == Some(value));
        values.iter().map(found).collect()
    }
    match (all, values) {
        (Column::Numbers(all), Column::Numbers(values)) => among(all, values, f64::total_cmp),
        (Column::LongNumbers(all), Column::LongNumbers(values)) => {
            let all: Vec<LongNumber<'_>> = all.iter().map(|text| LongNumber(text)).collect();
            let values: Vec<LongNumber<'_>> = values.iter().map(|text| LongNumber(text)).collect();
            among(&all, &values, LongNumber::total_cmp)
        }
        (Column::Text(all), Column::Text(values)) => among(all, values, Ord::cmp),
        _ => vec![None; values.len()],
    }
}

fn number_of_classes(ranks: &[usize]) -> usize {
    ranks.iter().max().map_or(0, |largest| largest + 1)
}

impl Records {
    /// d.
    pub fn dimension(&self) -> usize {
        self.d
    }

    /// How many there are.
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

    /// The indices of each client's records: of each class, shares drawn from a symmetric
    /// Dirichlet distribution.
    fn dirichlet_parts(
        &self,
        clients: usize,
        alpha: f64,
        rng: &mut Stream,
    ) -> Result<Vec<Vec<usize>>, Fault> {
        let ranks = ranks(&self.labels);
        let classes = number_of_classes(&ranks);
        if classes > MOST_CLASSES {
            let message = format!("needs classes, but there are {classes} different labels");
            return Err(Fault::new("dataset.split", message));
        }
        let mut parts = vec![Vec::new(); clients];
        for class in 0..classes {
            let members: Vec<usize> = (0..ranks.len()).filter(|&i| ranks[i] == class).collect();
            let all = members.len();
            let order = rng.distinct(all, all);
            let begins = begins(&rng.dirichlet(clients, alpha), all);
            for (k, part) in parts.iter_mut().enumerate() {
                part.extend(order[begins[k]..begins[k + 1]].iter().map(|&i| members[i]));
            }
        }
        Ok(parts)
    }

    /// The class of each record of a part of the file, these or the test set: the rank of its label
    /// among the labels of these records.
    ///
    /// # Errors
    /// If these records lack one of its labels.
    pub fn classes_of(&self, part: &Self) -> Result<Vec<usize>, Fault> {
        let classes = ranks_among(&self.labels, &part.labels).into_iter().enumerate();
        let class = |(row, class): (usize, Option<usize>)| {
            class.ok_or_else(|| {
                let (file, label) = (&self.file, sanitised(&part.labels.text(row)));
                let message = format!(
                    "{file}: only records of the test set have the label \"{label}\"; no client could learn it"
                );
                Fault::new("dataset.test", message)
            })
        };
        classes.map(class).collect()
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
        let wrong = |row: usize| {
            let value = sanitised(&self.labels.text(row));
            let message = format!("{}: the label \"{value}\" is not a finite number", self.file);
            Fault::new("dataset.label", message)
        };
        let is_number =
            |row: &usize| self.labels.text(*row).parse::<f64>().is_ok_and(f64::is_finite);
        match self.labels.numbers() {
            Some(values) if values.iter().all(|x| x.is_finite()) => Ok(values.into_owned()),
            _ => Err(wrong((0..self.count()).find(|row| !is_number(row)).unwrap_or(0))),
        }
    }
}

#[cfg(test)]
mod tests;
