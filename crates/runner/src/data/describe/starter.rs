//! The manifest to start from, which compares algorithms on the records of a file.

use super::clients::RecordClients;
use super::features::{FeatureMoments, FeatureRows};
use super::{FileRecords, Remedy, StarterError, is_classes, varying_features};
use exactfed_core::problem::MOST_DIMENSIONS;
use exactfed_core::problem::arrays::{Column, DataFile};
use std::collections::BTreeMap;

/// The share of non-zeros below which features are not standardised: that would make numbers of their zeros.
const SPARSE: f64 = 0.3;
/// The fewest records of each class, and the fewest that differ from the most frequent value of a feature, with which
/// a test set is held out: the clients' records must have all classes and varying features too.
const FEWEST: usize = 10;
/// The most bytes of dense features.
pub const MOST_DENSE_BYTES: u128 = super::super::MOST_BYTES as u128;
/// The weight of the penalty in the manifest.
const L2: f64 = 0.01;

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
    /// Whether some records are held out as a test set.
    test: bool,
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
        let kind = problem_kind(records, classes)?;
        let (n, d) = records.features.size();
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
        // A test set must leave the clients' records all classes, and features that vary.
        let varied = !standardise || {
            let rarer = records.features.rarer();
            kept.iter().all(|j| rarer[*j] >= FEWEST)
        };
        let several = kind == "least-squares-dataset" || classes.iter().all(|(_, n)| *n >= FEWEST);
        // And it must leave each client some of its records.
        let held = match records.clients {
            RecordClients::Column { fewest, .. } => fewest,
            RecordClients::Parts(Some(parts)) => n / parts.max(1),
            RecordClients::Parts(None) => FEWEST,
        };
        let test = n >= 2 * FEWEST && varied && several && held >= FEWEST;
        Ok(Self {
            records,
            file,
            kind,
            classes: kind != "least-squares-dataset",
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
                (None, Some(parts.unwrap_or((n / FEWEST).clamp(1, 10))))
            }
        };
        let is_drawn = self.test || column.is_none();
        let label = Some(records.label.as_str()).filter(|label| !matches!(*label, "" | "label"));
        let features: Vec<String> = self.features.iter().map(|name| quoted(name)).collect();
        let categorical = self.categorical_features();
        let clients = parts.map(|parts| parts.to_string());
        let metrics = self.metrics();
        let loss = if self.test { "test-loss" } else { "train-loss" };
        // Tuned step sizes are from a tenth of the safe one to thirty times as large, where some diverge.
        let low = one_digit(self.step_size / 10.0);
        let high = one_digit(self.step_size * 30.0);
        let missing = match records.table.remedy {
            Some(Remedy::Mean) => Some("mean"),
            Some(Remedy::Drop) => Some("drop"),
            Some(Remedy::Nothing) | None => None,
        };
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
            ("test", self.test.then(|| "0.2".to_owned())),
            ("missing", missing.map(quoted)),
            ("storage", self.sparse.then(|| quoted("sparse"))),
            ("standardise", Some(self.standardise.to_string())),
            ("metrics", Some(format!("{metrics:?}"))),
            // Without a test set candidates are selected by the default, the squared distance from the optimum.
            ("metric", self.test.then(|| quoted(loss))),
            ("loss", Some(quoted(loss))),
            ("last-metric", metrics.last().map(|last| quoted(last))),
            ("step-size", Some(self.step_size.to_string())),
            ("step-sizes", Some(format!("[{low}, {high}]"))),
        ];
        let rest = if tuned { include_str!("tuned.txt") } else { include_str!("fixed.txt") };
        fill_template(&[include_str!("dataset.txt"), rest].concat(), &values)
    }

    /// The metrics that the manifest records, of which a figure draws the last.
    fn metrics(&self) -> Vec<&'static str> {
        let mut metrics = vec!["train-loss"];
        metrics.extend(self.test.then_some("test-loss"));
        metrics.extend(self.classes.then_some("accuracy"));
        metrics.extend((self.classes && self.test).then_some("test-accuracy"));
        metrics.extend((!self.classes).then_some("suboptimality"));
        metrics
    }

    /// The names of the features that are categories, as TOML writes them.
    fn categorical_features(&self) -> Vec<String> {
        let all = self.records.table.categorical.iter();
        all.filter(|name| self.features.contains(name)).map(|name| quoted(name)).collect()
    }
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
    classes: &[(String, usize)],
) -> Result<&'static str, StarterError> {
    match (&*records.labels, classes.len()) {
        (_, 1) => Err(StarterError::EqualLabels),
        (_, 2) => Ok("logistic-dataset"),
        _ if is_classes(&records.labels, classes) => Ok("softmax-dataset"),
        (Column::Numbers(_) | Column::LongNumbers(_), _) => Ok("least-squares-dataset"),
        (Column::Text(_) | Column::Unread { .. }, n) => Err(StarterError::TextLabels(n)),
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
