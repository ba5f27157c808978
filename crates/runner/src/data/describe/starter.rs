//! The manifest to start from, which compares algorithms on the records of a file.

use super::clients::RecordClients;
use super::features::{FeatureMoments, FeatureRows};
use super::{FileRecords, Remedy, StarterError, is_classes, varying_features};
use crate::data::npz::train_test::TEST;
use exactfed_core::problem::MOST_DIMENSIONS;
use exactfed_core::problem::arrays::{Column, DataFile};
use exactfed_core::problem::column::Exceptions;
use exactfed_core::words::count;
use std::collections::BTreeMap;

/// The share of non-zeros below which features are not standardised: that would make numbers of their zeros.
const SPARSE: f64 = 0.3;
/// The number of records for each client where the user names no clients; twice as many are the fewest with which a
/// test set is held out.
const FEWEST: usize = 10;
/// The most bytes of dense features.
pub const MOST_DENSE_BYTES: u128 = super::super::MOST_BYTES as u128;
/// The weight of the penalty in the manifest.
const L2: f64 = 0.01;

/// The records that the manifest holds out as a test set.
#[derive(Clone, Copy)]
enum TestSet {
    /// A fifth of all, drawn within groups of this name, as manifests write it.
    DrawnWithin(&'static str),
    /// Those that an array of the file marks, this many.
    Marked(usize),
}

impl TestSet {
    /// The value of the key `test`.
    fn key(self) -> String {
        match self {
            Self::DrawnWithin(_) => "0.2".to_owned(),
            Self::Marked(_) => format!("{{ column = {} }}", quoted(TEST)),
        }
    }

    /// The groups within which it is drawn, if it is drawn.
    fn groups(self) -> Option<&'static str> {
        match self {
            Self::DrawnWithin(groups) => Some(groups),
            Self::Marked(_) => None,
        }
    }
}

/// What the manifest to start from says.
pub struct Starter<'a> {
    records: &'a FileRecords<'a>,
    file: &'a DataFile,
    /// The kind of the problem.
    kind: &'static str,
    /// Whether the labels are classes.
    classes: bool,
    /// The names of the features that the manifest lists; empty if it lists none, so that the problem takes all.
    features: Vec<String>,
    /// Whether features are shifted and scaled to mean 0 and variance 1.
    standardise: bool,
    /// Whether features are stored sparse whatever their density.
    sparse: bool,
    /// The test set; `None` if no records are held out.
    test: Option<TestSet>,
    /// The step size of the algorithms, which is safe: about half the inverse of the largest curvature that the loss of
    /// a record may have, and for softmax regression at most the inverse. It is rounded down to one digit.
    step_size: f64,
}

impl<'a> Starter<'a> {
    /// Chooses what the manifest says of these records: `classes` are the different labels with their numbers of
    /// records, `moments` those of all features, and `constant` the numbers of the features that do not vary,
    /// increasing. No value of the records may be missing.
    ///
    /// # Errors
    /// Why no problem takes the records.
    pub fn new(
        records: &'a FileRecords<'a>,
        file: &'a DataFile,
        classes: &[(String, usize)],
        moments: &[FeatureMoments],
        constant: &[usize],
    ) -> Result<Self, StarterError> {
        let kind = problem_kind(records, file, classes)?;
        let (n, d) = records.features.size();
        if let RecordClients::Parts(Some(clients)) = records.clients
            && clients > n
        {
            return Err(StarterError::TooManyClients { clients, records: n });
        }
        if constant.len() == d {
            return Err(StarterError::ConstantFeatures);
        }
        // Only named features can be left out. Where constant ones stay, a dataset refuses to be standardised.
        let fixed = records.names.is_empty() && !constant.is_empty();
        let kept = if fixed { (0..d).collect() } else { varying_features(d, constant) };
        let listed = records.table.lists_features || !constant.is_empty();
        let names = kept.iter().filter(|_| listed).filter_map(|j| records.names.get(*j));
        let features = names.cloned().collect();
        // Too many or too large to be stored dense; of the three problems only the logistic one stores them sparse.
        let wide = kept.len() > MOST_DIMENSIONS || n as u128 * d as u128 * 8 > MOST_DENSE_BYTES;
        if wide
            && !(matches!(records.features, FeatureRows::Sparse(_)) && kind == "logistic-dataset")
        {
            let features = kept.len();
            return Err(StarterError::TooManyFeatures { kind, features, records: n });
        }
        let rare = (records.features.nonzeros() as f64) < SPARSE * (n as f64 * d as f64);
        let standardise = !rare && !fixed && !wide;
        if standardise && kept.iter().any(|j| !moments[*j].deviation.is_finite()) {
            return Err(StarterError::LargeFeatures);
        }
        let largest = if standardise {
            records.features.largest_standard_square(&kept, moments)
        } else {
            records.features.largest_square(&kept)
        };
        // The largest second derivative of the loss of a record in the direction of its features, but for softmax,
        // whose one may be twice this. The 1 below is the square of the intercept.
        let curvature = if kind == "least-squares-dataset" { 1.0 } else { 0.25 };
        let step_size = one_digit(0.5 / (curvature * (largest + 1.0) + L2));
        if step_size.is_nan() || step_size <= 0.0 {
            return Err(StarterError::LargeFeatures);
        }
        let has_classes = kind != "least-squares-dataset";
        let labels = if has_classes { classes.len() } else { 0 };
        let varying: &[usize] = if standardise { &kept } else { &[] };
        let test = match records.test_records {
            0 => test_within(records, labels, varying).map(TestSet::DrawnWithin),
            marked => Some(TestSet::Marked(marked)),
        };
        Ok(Self {
            records,
            file,
            kind,
            classes: has_classes,
            features,
            standardise,
            sparse: wide,
            test,
            step_size,
        })
    }

    /// The text of the manifest, which runs algorithms with one step size or, if `tuned`, each with the best of
    /// several. It is filled into templates, whose lines with a value of `None` are left out, so that the default of
    /// the key holds.
    pub fn text(&self, tuned: bool) -> String {
        let Self { records, file, .. } = self;
        let path = &file.path;
        let dialect: BTreeMap<&str, String> = file.dialect.keys().into_iter().collect();
        let stated = |key: &str| dialect.get(key).cloned();
        let title = if tuned {
            format!("Which algorithm is best on {path}?")
        } else {
            format!("FedAvg and Scaffold on {path}")
        };
        // The records are split anew for each instance, unless nothing of the split is drawn.
        let (column, parts) = match &records.clients {
            RecordClients::Column { name, .. } => (Some(quoted(name)), None),
            RecordClients::Parts(parts) => {
                let (n, _) = records.features.size();
                (None, Some(number_of_parts(*parts, n)))
            }
        };
        let test_within = self.test.and_then(TestSet::groups);
        let is_drawn = test_within.is_some() || column.is_none();
        let label = Some(records.label.as_str()).filter(|label| !matches!(*label, "" | "label"));
        let features: Vec<String> = self.features.iter().map(|name| quoted(name)).collect();
        let categorical = self.categorical_features();
        let clients = parts.map(|parts| parts.to_string());
        let metrics = self.metrics();
        let loss = if self.has_test() { "test-loss" } else { "train-loss" };
        // Tuned step sizes are from a tenth of the safe one to thirty times as large, where some diverge.
        let low = one_digit(self.step_size / 10.0);
        let high = one_digit(self.step_size * 30.0);
        let values = [
            ("title", Some(quoted(&title))),
            ("instances", (tuned && is_drawn).then(|| "10".to_owned())),
            ("kind", Some(self.kind.to_owned())),
            ("l2", Some(L2.to_string())),
            ("file", Some(quoted(path))),
            ("separator", stated("separator")),
            ("decimal", stated("decimal")),
            ("thousands", stated("thousands")),
            ("comment", stated("comment")),
            ("header", stated("header")),
            ("label", label.map(quoted)),
            ("features", list_of(&features)),
            ("categorical", list_of(&categorical)),
            ("split-column", column.map(|name| format!("{{ column = {name} }}"))),
            ("split", clients.as_ref().map(|_| quoted("iid"))),
            ("clients", clients),
            ("test", self.test.map(TestSet::key)),
            ("test-within", test_within.map(quoted)),
            ("missing", self.missing_key().map(quoted)),
            ("storage", self.sparse.then(|| quoted("sparse"))),
            ("standardise", Some(self.standardise.to_string())),
            ("metrics", Some(format!("{metrics:?}"))),
            // Without a test set candidates are selected by the default, the squared distance from the optimum.
            ("metric", self.has_test().then(|| quoted(loss))),
            ("loss", Some(quoted(loss))),
            ("last-metric", metrics.last().map(|last| quoted(last))),
            ("step-size", Some(self.step_size.to_string())),
            ("step-sizes", Some(format!("[{low}, {high}]"))),
        ];
        let rest = if tuned { include_str!("tuned.txt") } else { include_str!("fixed.txt") };
        fill_template(&[include_str!("dataset.txt"), rest].concat(), &values)
    }

    /// The value of the key `missing`, which says what is done with missing values; `None` if the manifest leaves the
    /// key out.
    fn missing_key(&self) -> Option<&'static str> {
        match self.records.table.remedy {
            Some(Remedy::Mean) => Some("mean"),
            Some(Remedy::Drop) => Some("drop"),
            Some(Remedy::Nothing) | None => None,
        }
    }

    /// Whether some records are held out as a test set.
    fn has_test(&self) -> bool {
        self.test.is_some()
    }

    /// A line that says how the test set is drawn, or why there is none.
    pub fn test_line(&self) -> String {
        match self.test {
            Some(TestSet::DrawnWithin(groups)) => {
                format!("test set: a fifth of the records, drawn within {groups}")
            }
            Some(TestSet::Marked(records)) => {
                format!("test set: {} more, which `{TEST}` marks", count(records, "record"))
            }
            None => {
                "test set: none, since clients, classes and features need nearly all records".into()
            }
        }
    }

    /// The metrics that the manifest records, of which a figure draws the last.
    fn metrics(&self) -> Vec<&'static str> {
        let mut metrics = vec!["train-loss"];
        metrics.extend(self.has_test().then_some("test-loss"));
        metrics.extend(self.classes.then_some("accuracy"));
        metrics.extend((self.classes && self.has_test()).then_some("test-accuracy"));
        metrics.extend((!self.classes).then_some("suboptimality"));
        metrics
    }

    /// The names of the features that are categories, as TOML writes them.
    fn categorical_features(&self) -> Vec<String> {
        let all = self.records.table.categorical.iter();
        all.filter(|name| self.features.contains(name)).map(|name| quoted(name)).collect()
    }
}

/// The number of clients to which shuffled records are given: as the user wishes, or else one for [`FEWEST`] of the `n`
/// records, from 1 to 10.
fn number_of_parts(wanted: Option<usize>, n: usize) -> usize {
    wanted.unwrap_or((n / FEWEST).clamp(1, 10))
}

/// Within which groups a test set is drawn from these records, as manifests write them: within the classes of shuffled
/// records, which have this number of `classes`, and within clients that a column names or that fit numbers (0
/// classes). `None` if fewer than a tenth of the records would be drawn with some seed. `varying` are the numbers of the
/// features that are standardised.
fn test_within(
    records: &FileRecords<'_>,
    classes: usize,
    varying: &[usize],
) -> Option<&'static str> {
    let (n, _) = records.features.size();
    let is_by_column = matches!(records.clients, RecordClients::Column { .. });
    let clients = match records.clients {
        RecordClients::Column { values, .. } => values,
        RecordClients::Parts(wanted) => number_of_parts(wanted, n),
    };
    // Within classes, any record may be drawn, and those that are left must be as many as the clients.
    let within_classes = !is_by_column && classes > 0 && clients <= n / 2;
    // Each of these may keep up to one record, and each pair of categories and each feature that lacks values two.
    let lacking = records.table.missing.len() + records.table.categorical.len();
    let guarded_clients = if within_classes { 0 } else { clients };
    let guarded = guarded_clients + classes + 2 * lacking;
    let all_rarer = records.features.rarer();
    let rarer = varying.iter().map(|j| all_rarer[*j]).collect();
    let is_certain = free_records(n, guarded, rarer) >= n.div_ceil(10);
    let groups = if within_classes { "classes" } else { "clients" };
    (n >= 2 * FEWEST && is_certain).then_some(groups)
}

/// A lower bound on how many of `n` records a draw of the test set may take, whatever its random order is. It leaves
/// `guarded` records to the clients, and of each standardised feature the first record of the order and the first one
/// with another value; `rarer` has for each feature the number of records that differ from its most frequent value.
///
/// If r or more records differ, no value has more than n − r records, so that two values are among the first n − r + 1
/// records of any order. A feature with fewer than r adds a single record to these.
fn free_records(n: usize, guarded: usize, mut rarer: Vec<usize>) -> usize {
    if rarer.is_empty() {
        return n.saturating_sub(guarded);
    }
    // Where no value has more than half of the records, the number is only known to be half of them or more.
    rarer.iter_mut().for_each(|number| *number = (*number).min(n.div_ceil(2)));
    rarer.sort_unstable();
    let with_all_rare = n.saturating_sub(1 + rarer.len());
    let with_some = rarer.iter().enumerate().map(|(rare, r)| r.saturating_sub(1 + rare));
    with_some.fold(with_all_rare, usize::max).saturating_sub(guarded)
}

/// These values as an array of TOML; `None` if there are none.
fn list_of(values: &[String]) -> Option<String> {
    (!values.is_empty()).then(|| format!("[{}]", values.join(", ")))
}

/// A text as a string of TOML, in quotes.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A template with names in braces replaced by their values. A line has at most one name, and is left out where the
/// name has no value.
fn fill_template(template: &str, values: &[(&str, Option<String>)]) -> String {
    let mut text = String::new();
    for line in template.lines() {
        let mut named = values.iter().map(|(name, value)| (format!("{{{name}}}"), value));
        match named.find(|(name, _)| line.contains(name.as_str())) {
            None => text.extend([line, "\n"]),
            Some((name, Some(value))) => text.extend([&line.replacen(&name, value, 1), "\n"]),
            Some((_, None)) => {}
        }
    }
    text
}

/// The kind of the problem, as manifests write it, that a starter manifest has for records with these labels: logistic
/// regression for two different labels of any kind, softmax regression for a few texts or whole numbers
/// ([`is_classes`]), and least squares for all other numbers. `classes` has the different labels, each with the number
/// of its records.
///
/// # Errors
/// If all labels are equal, or are too many different texts to be classes.
fn problem_kind(
    records: &FileRecords<'_>,
    file: &DataFile,
    classes: &[(String, usize)],
) -> Result<&'static str, StarterError> {
    match (&*records.labels, classes.len()) {
        (_, 1) => Err(StarterError::EqualLabels),
        (_, 2) => Ok("logistic-dataset"),
        _ if is_classes(&records.labels, classes) => Ok("softmax-dataset"),
        (Column::Numbers(_) | Column::LongNumbers(_), _) => Ok("least-squares-dataset"),
        (Column::Text(texts), n) => Err(match Exceptions::among_numbers(texts) {
            Some(few) => {
                let held = few.describe(texts, |record| records.place(file, record));
                StarterError::TextsAmongLabels { held }
            }
            None => StarterError::TextLabels(n),
        }),
        (Column::Unread { .. }, n) => Err(StarterError::TextLabels(n)),
    }
}

/// The largest number with one significant digit that is not above x; x itself if it is no finite number above 0.
fn one_digit(x: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(x)));
    let text = format!("{:e}", libm::floor(x / power) * power);
    // As text with one digit, so that it is printed with one.
    let digits = text.split(['e', '.']).next().unwrap_or("1");
    let exponent = text.split('e').nth(1).unwrap_or("0");
    format!("{digits}e{exponent}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every order of small files, the records that the first two values of each feature take are at most as many as
    /// the bound says.
    #[test]
    fn the_bound_on_free_records_holds() {
        // Two features of six records: one value differs, and two do.
        let features = [[1, 0, 0, 0, 0, 0], [0, 0, 2, 0, 0, 3]];
        let mut least = 6;
        for order in 0..720_usize {
            let mut left: Vec<usize> = (0..6).collect();
            let mut code = order;
            let order: Vec<usize> = (1..=6)
                .rev()
                .map(|k| {
                    let i = code % k;
                    code /= k;
                    left.remove(i)
                })
                .collect();
            let mut kept = vec![order[0]];
            for values in features {
                let other = order.iter().find(|i| values[**i] != values[order[0]]);
                kept.extend(other);
            }
            kept.sort_unstable();
            kept.dedup();
            least = least.min(6 - kept.len());
        }
        assert_eq!((least, free_records(6, 0, vec![1, 2])), (3, 3));
        assert_eq!(free_records(100, 5, vec![90; 2000]), 44);
        assert_eq!(free_records(100, 5, vec![1; 200]), 0);
        assert_eq!(free_records(20, 3, Vec::new()), 17);
    }
}
