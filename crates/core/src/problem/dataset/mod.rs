//! Records from a data file, and how they are dealt to clients.
//!
//! Clients weigh the same whatever they hold: F̄ is the mean of the clients'
//! means, as in the theory, not of the records.

use super::arrays::{Column, Contents, DataFile, Files, index, sanitised};
use super::{Fault, Faults, MOST_DIMENSIONS};
use crate::rng::{MAX_CLIENTS, Stream};
use crate::words::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A data file, and how its records are partitioned among clients. All clients have the same
/// weight, however many records they hold: θ* is that of the mean of their means and not of the
/// pooled records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dataset {
    /// The file: CSV with a header (`.csv`), Parquet (`.parquet`), LIBSVM (`.libsvm`,
    /// `.svm`, `.txt`), or `.npz` with `x` (n, d), `y` (n,) and, for a split by
    /// column, `client` (n,).
    #[schemars(example = &"records.csv")]
    pub file: DataFile,
    /// The column of the labels (CSV, Parquet).
    #[serde(default = "label", skip_serializing_if = "is_label")]
    #[schemars(example = &"label", extend("default" = "label"))]
    pub label: String,
    /// The columns of the features (CSV, Parquet), in this order; by default all
    /// but those of the label and the split.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_FEATURES)]
    pub features: Vec<String>,
    /// N, the number of clients, 1 or more; not beside a split by column, which determines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub clients: Option<usize>,
    /// How records are partitioned.
    #[serde(default)]
    #[schemars(example = Split::Dirichlet(0.5))]
    pub split: Split,
    /// Whether each feature is shifted and scaled to mean 0 and variance 1 over
    /// all records.
    #[serde(default)]
    #[schemars(example = true)]
    pub standardise: bool,
    /// Whether a feature that is always 1 is added at the end.
    #[serde(default)]
    #[schemars(example = true)]
    pub intercept: bool,
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
    /// The records of each label are split in proportions drawn from Dirichlet(α, …, α), with α above 0.
    Dirichlet(f64),
    /// One client for each value of this column (npz: of the array `client`).
    Column(#[schemars(example = &"client")] String),
}

/// The column of the labels where a manifest names none.
fn label() -> String {
    "label".into()
}

/// Whether this is what is meant where a manifest names no column of labels.
fn is_label(name: &str) -> bool {
    name == label()
}

/// An example for the documentation.
const EXAMPLE_FEATURES: [&str; 2] = ["age", "height"];

/// Labels more than this many are not classes.
const MOST_CLASSES: usize = 100;

/// Records as they were read, features ready.
pub struct Records {
    d: usize,
    /// Rows of d.
    features: Vec<f64>,
    labels: Column,
    /// What the split's column says.
    groups: Option<Column>,
    file: String,
}

/// d, features row by row, labels, and what the split's column says.
type Raw = (usize, Vec<f64>, Column, Option<Column>);

impl Dataset {
    /// An example for the documentation.
    pub fn example() -> Self {
        Self {
            file: DataFile { path: "records.csv".into(), sha256: None },
            label: label(),
            features: Vec::new(),
            clients: Some(10),
            split: Split::Dirichlet(0.5),
            standardise: true,
            intercept: true,
        }
    }

    /// What is wrong with the settings.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        match (&self.split, self.clients) {
            (Split::Column(_), Some(_)) => faults.0.push(Fault::new(
                "dataset.clients",
                "stands beside a split by column, whose values are the clients",
            )),
            (Split::Column(_), None) => {}
            (_, None) => faults.0.push(Fault::new(
                "dataset.clients",
                "is needed: to how many clients are the records dealt?",
            )),
            (_, Some(clients)) => faults.require(
                (1..=MAX_CLIENTS).contains(&(clients as u64)),
                "dataset.clients",
                || format!("must be from 1 to {MAX_CLIENTS}, not {clients}"),
            ),
        }
        if let Split::Dirichlet(alpha) = self.split {
            faults.positive("dataset.split.dirichlet", alpha);
        }
        faults.0
    }

    /// Whether the seed says how records are dealt.
    pub fn uses_seed(&self) -> bool {
        !matches!(self.split, Split::Column(_))
    }

    fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault::new("dataset.file", format!("{}: {message}", self.file.path))
    }

    /// The records.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should.
    pub fn open(&self, files: &dyn Files) -> Result<Records, Fault> {
        let contents = files.open(&self.file).map_err(|e| Fault::new("dataset.file", e))?;
        let (d, features, labels, groups) = match &*contents {
            Contents::Table(columns) => self.table(columns)?,
            Contents::Records { labels, features } => {
                self.refuse_column_names("a LIBSVM file")?;
                if let Split::Column(_) = self.split {
                    return Err(self.fault("a LIBSVM file has no column to split by"));
                }
                let d = features.shape[1];
                (d, features.data.clone(), Column::Numbers(labels.clone()), None)
            }
            Contents::Arrays(arrays) => {
                self.refuse_column_names("an .npz file")?;
                let get = |name: &str, axes: usize| match arrays.get(name) {
                    Some(array) if array.shape.len() == axes => Ok(array),
                    Some(array) => Err(self.fault(format!(
                        "`{name}` has the shape {:?}; expected {axes} axes",
                        array.shape
                    ))),
                    None => Err(self.fault(format!("there is no array `{name}`"))),
                };
                let (x, y) = (get("x", 2)?, get("y", 1)?);
                let groups = match &self.split {
                    Split::Column(name) => Some(Column::Numbers(get(name, 1)?.data.clone())),
                    _ => None,
                };
                (x.shape[1], x.data.clone(), Column::Numbers(y.data.clone()), groups)
            }
        };
        if d == 0 {
            return Err(self.fault("there is no feature"));
        }
        if d > MOST_DIMENSIONS {
            return Err(self.fault(format!(
                "there are {d} features; at most {MOST_DIMENSIONS} are allowed (d × d matrices are made)"
            )));
        }
        let n = features.len() / d;
        for (what, column) in [("labels", Some(&labels)), ("split's values", groups.as_ref())] {
            if let Some(column) = column.filter(|column| column.len() != n) {
                let have = column.len();
                return Err(
                    self.fault(format!("the features have {}, the {what} {have}", count(n, "row")))
                );
            }
        }
        if n == 0 {
            return Err(self.fault("there are no records"));
        }
        // What is no number has no place among the others.
        for (what, column) in [("label", Some(&labels)), ("split's value", groups.as_ref())] {
            let Some(Column::Numbers(values)) = column else { continue };
            if let Some(row) = values.iter().position(|x| !x.is_finite()) {
                let value = values[row];
                return Err(self.fault(format!("the {what} of row {row} is {value}, not finite")));
            }
        }
        if let Some(at) = features.iter().position(|x| !x.is_finite()) {
            let place = index(at, &[n, d]);
            return Err(self.fault(format!(
                "feature [row, column] = [{place}], counted from 0, is {}; every number must be finite",
                features[at]
            )));
        }
        let mut records = Records { d, features, labels, groups, file: self.file.path.clone() };
        if self.standardise {
            self.standard(&mut records)?;
        }
        if self.intercept {
            let rows = records.features.chunks_exact(d);
            records.features = rows.flat_map(|row| row.iter().copied().chain([1.0])).collect();
            records.d += 1;
        }
        Ok(records)
    }

    /// An error if `label` or `features` is set for a file that has no named columns.
    fn refuse_column_names(&self, kind_of_file: &str) -> Result<(), Fault> {
        let key = match (is_label(&self.label), self.features.is_empty()) {
            (true, true) => return Ok(()),
            (false, _) => "dataset.label",
            (true, false) => "dataset.features",
        };
        Err(Fault::new(key, format!("names columns, but {kind_of_file} has none; leave it out")))
    }

    fn table(&self, columns: &[(String, Column)]) -> Result<Raw, Fault> {
        let find = |key: &'static str, name: &str| {
            let found = columns.iter().find(|(have, _)| have == name).map(|(_, column)| column);
            found.ok_or_else(|| {
                let known: Vec<String> =
                    columns.iter().take(40).map(|(name, _)| sanitised(name)).collect();
                if known.is_empty() {
                    return self.fault("there are no columns");
                }
                Fault::new(
                    key,
                    format!(
                        "there is no column `{name}` in {}, only {}",
                        self.file.path,
                        known.join(", ")
                    ),
                )
            })
        };
        let label = self.label.as_str();
        let labels = find("dataset.label", label)?.clone();
        let (group, groups) = match &self.split {
            Split::Column(name) => (name.as_str(), Some(find("dataset.split", name)?.clone())),
            _ => ("", None),
        };
        let all = || columns.iter().map(|(name, _)| name.clone());
        let names: Vec<String> = if self.features.is_empty() {
            all().filter(|name| name != label && name != group).collect()
        } else {
            self.features.clone()
        };
        if names.len() > MOST_DIMENSIONS {
            let d = names.len();
            return Err(self.fault(format!(
                "there are {d} features; at most {MOST_DIMENSIONS} are allowed (d × d matrices are made)"
            )));
        }
        let twice = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
        if let Some((_, name)) = twice {
            return Err(Fault::new("dataset.features", format!("names `{name}` twice")));
        }
        if names.iter().any(|name| name == label) {
            let message = format!("names `{label}`, which is the column of the labels");
            return Err(Fault::new("dataset.features", message));
        }
        let mut chosen = Vec::with_capacity(names.len());
        for name in &names {
            match find("dataset.features", name)? {
                Column::Numbers(values) => chosen.push(values),
                Column::Text(values) => {
                    let odd = values.iter().enumerate().find(|(_, v)| v.parse::<f64>().is_err());
                    let (row, value) =
                        odd.map_or((0, String::new()), |(row, v)| (row, sanitised(v)));
                    let name = sanitised(name);
                    return Err(self.fault(format!(
                        "column `{name}` is no feature: row {row} is \"{value}\", not a number; list the `features` that are meant"
                    )));
                }
            }
        }
        let features = (0..labels.len()).flat_map(|i| chosen.iter().map(move |c| c[i])).collect();
        Ok((names.len(), features, labels, groups))
    }

    fn standard(&self, records: &mut Records) -> Result<(), Fault> {
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

    /// The numbers of the records that each client holds.
    ///
    /// # Errors
    /// A client without records, or labels that are no classes.
    pub fn partition(&self, records: &Records, seed: u64) -> Result<Vec<Vec<usize>>, Fault> {
        let n = records.labels.len();
        let mut rng = Stream::shared_instance(seed);
        let clients = self.clients.unwrap_or(1);
        if clients > n {
            // Before room is made for them.
            return Err(self.empty_client(n / clients, clients, n));
        }
        let equal = |order: Vec<usize>| -> Vec<Vec<usize>> {
            let cut = |k: usize| (k as u128 * n as u128 / clients as u128) as usize;
            (0..clients).map(|k| order[cut(k)..cut(k + 1)].to_vec()).collect()
        };
        let shards = match &self.split {
            Split::Iid => equal(rng.distinct(n, n)),
            Split::ByLabel => {
                let mut order = rng.distinct(n, n);
                let rank = records.rank(&records.labels);
                order.sort_by_key(|&i| rank[i]);
                equal(order)
            }
            Split::Dirichlet(alpha) => {
                let rank = records.rank(&records.labels);
                let classes = rank.iter().max().map_or(0, |most| most + 1);
                if classes > MOST_CLASSES {
                    return Err(Fault::new(
                        "dataset.split",
                        format!("needs classes, but there are {classes} different labels"),
                    ));
                }
                let mut shards = vec![Vec::new(); clients];
                for class in 0..classes {
                    let members: Vec<usize> = (0..n).filter(|&i| rank[i] == class).collect();
                    let order = rng.distinct(members.len(), members.len());
                    let (mut begin, mut sum) = (0, 0.0);
                    let shares = rng.dirichlet(clients, *alpha);
                    for (k, share) in shares.iter().enumerate() {
                        sum += share;
                        let last = k + 1 == clients;
                        let all = members.len();
                        let end = if last { all } else { ((sum * all as f64) as usize).min(all) };
                        shards[k].extend(order[begin..end].iter().map(|&i| members[i]));
                        begin = end;
                    }
                }
                shards
            }
            Split::Column(_) => {
                let Some(groups) = &records.groups else { return Ok(vec![(0..n).collect()]) };
                let rank = records.rank(groups);
                let count = rank.iter().max().map_or(0, |most| most + 1);
                let mut shards = vec![Vec::new(); count];
                rank.iter().enumerate().for_each(|(i, &k)| shards[k].push(i));
                shards
            }
        };
        match shards.iter().position(Vec::is_empty) {
            None => Ok(shards),
            Some(empty) => Err(self.empty_client(empty, shards.len(), n)),
        }
    }

    /// A client without records.
    fn empty_client(&self, empty: usize, count: usize, n: usize) -> Fault {
        let alpha = matches!(self.split, Split::Dirichlet(_));
        let hint = if alpha { " or a larger α" } else { "" };
        let message = format!(
            "client {empty} of {count} gets no records of the {n}; fewer clients{hint} would leave none empty"
        );
        Fault::new("dataset.clients", message)
    }
}

impl Records {
    /// d.
    pub fn dimension(&self) -> usize {
        self.d
    }

    /// The features of a record, d numbers.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.features[i * self.d..][..self.d]
    }

    /// The place of each row's value among the different values, in order.
    fn rank(&self, column: &Column) -> Vec<usize> {
        match column {
            Column::Numbers(values) => {
                let mut all = values.clone();
                all.sort_by(f64::total_cmp);
                all.dedup();
                values.iter().map(|v| all.partition_point(|x| x < v)).collect()
            }
            Column::Text(values) => {
                let mut all: Vec<&String> = values.iter().collect();
                all.sort();
                all.dedup();
                values.iter().map(|v| all.partition_point(|x| *x < v)).collect()
            }
        }
    }

    /// −1 for the smaller of two labels, +1 for the greater.
    ///
    /// # Errors
    /// If there are not exactly two.
    pub fn two_classes(&self) -> Result<Vec<f64>, Fault> {
        let rank = self.rank(&self.labels);
        let classes = rank.iter().max().map_or(0, |most| most + 1);
        if classes != 2 {
            let mut seen: Vec<String> = Vec::new();
            for i in 0..rank.len() {
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
        Ok(rank.into_iter().map(|class| if class == 0 { -1.0 } else { 1.0 }).collect())
    }

    /// The labels as numbers.
    ///
    /// # Errors
    /// If one is not a finite number.
    pub fn numbers(&self) -> Result<Vec<f64>, Fault> {
        let wrong = |row: usize| {
            let value = sanitised(&self.labels.text(row));
            Fault::new(
                "dataset.label",
                format!("{}: row {row} is \"{value}\", not a finite number", self.file),
            )
        };
        match &self.labels {
            Column::Numbers(values) => match values.iter().position(|v| !v.is_finite()) {
                Some(row) => Err(wrong(row)),
                None => Ok(values.clone()),
            },
            Column::Text(values) => {
                Err(wrong(values.iter().position(|v| v.parse::<f64>().is_err()).unwrap_or(0)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
