//! The manifest to start from.

use super::{FileRecords, is_classes};
use driftbench_core::problem::Spec;
use driftbench_core::problem::arrays::Column;
use std::fmt::Write;

/// The share of non-zeros below which features are not standardised, which would fill in zeros.
const SPARSE: f64 = 0.3;
/// The fewest records of each class, and with another value of a feature than most have, if some
/// records are held out: the others must have them too.
const FEWEST: usize = 10;
/// The weight of the penalty.
const L2: f64 = 0.01;

/// What the manifest says.
pub struct Starter<'a> {
    records: &'a FileRecords<'a>,
    path: &'a str,
    kind: &'static str,
    /// Whether the labels are classes.
    classes: bool,
    /// The features that are listed; all if there are none.
    features: Vec<String>,
    standardise: bool,
    test: bool,
    step_size: f64,
}

impl<'a> Starter<'a> {
    /// The manifest for these records.
    ///
    /// # Errors
    /// Why no problem takes them.
    pub fn new(
        records: &'a FileRecords<'a>,
        path: &'a str,
        classes: &[(String, usize)],
        constant: &[usize],
    ) -> Result<Self, String> {
        let has_classes = is_classes(&records.labels, classes);
        let known = |kind: &str| Spec::KINDS.iter().copied().find(|known| *known == kind);
        let several = known("softmax-dataset").filter(|_| has_classes && classes.len() > 2);
        let kind = match (&*records.labels, classes.len()) {
            (_, 1) => return Err("all labels are the same".into()),
            (_, 2) => "logistic-dataset",
            (Column::Numbers(_), _) => several.unwrap_or("least-squares-dataset"),
            (Column::Text(_), n) => several.ok_or_else(|| {
                format!("there are {n} different labels of text; two classes or numbers are needed")
            })?,
        };
        let nonzero = records.features.iter().filter(|x| **x != 0.0).count();
        let sparse = (nonzero as f64) < SPARSE * records.features.len() as f64;
        let listed = !records.others.is_empty() || !constant.is_empty();
        let vary = (0..records.names.len()).filter(|j| !constant.contains(j));
        let features: Vec<String> =
            if listed { vary.map(|j| records.names[j].clone()).collect() } else { Vec::new() };
        let fixed = records.names.is_empty() && !constant.is_empty();
        if constant.len() == records.size.1 {
            return Err("no feature varies".into());
        }
        let standardise = !sparse && !fixed;
        let kept: Vec<usize> = (0..records.size.1).filter(|j| !constant.contains(j)).collect();
        let curvature = if kind == "least-squares-dataset" { 1.0 } else { 0.25 };
        let largest = largest_square(records, &kept, standardise);
        let step_size = one_digit(0.5 / (curvature * (largest + 1.0) + L2));
        if step_size.is_nan() || step_size <= 0.0 {
            return Err("some features are too large: scale them".into());
        }
        let varied = !standardise || kept.iter().all(|j| records.rarer(*j) >= FEWEST);
        let several = kind == "least-squares-dataset" || classes.iter().all(|(_, n)| *n >= FEWEST);
        let test = records.size.0 >= 2 * FEWEST && varied && several;
        Ok(Self {
            records,
            path,
            kind,
            classes: kind != "least-squares-dataset",
            features,
            standardise,
            test,
            step_size,
        })
    }

    /// The text of the manifest.
    pub fn text(&self) -> String {
        let (kind, quoted) = (self.kind, |text: &str| toml::Value::from(text).to_string());
        let mut out = format!(
            "title = {}\nseed = 1\nreplicates = 3\n\n[problem.{kind}]\nl2 = {L2}\n\n[problem.{kind}.dataset]\nfile = {}\n",
            quoted(&format!("FedAvg and Scaffold on {}", self.path)),
            quoted(self.path)
        );
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        if !matches!(self.records.label.as_str(), "" | "label") {
            line(format!("label = {}", quoted(&self.records.label)));
        }
        if !self.features.is_empty() {
            let names: Vec<String> = self.features.iter().map(|name| quoted(name)).collect();
            line(format!("features = [{}]", names.join(", ")));
        }
        match &self.records.clients {
            Some((name, _)) => line(format!("split = {{ column = {} }}", quoted(name))),
            None => {
                let clients = (self.records.size.0 / FEWEST).clamp(1, 10);
                line(format!("clients = {clients}\nsplit = \"iid\""));
            }
        }
        line("weights = \"records\"".into());
        if self.test {
            line("test = 0.2".into());
        }
        line(format!("standardise = {}\nintercept = true\n", self.standardise));
        let mut metrics = vec!["train-loss"];
        metrics.extend(self.test.then_some("test-loss"));
        metrics.extend(self.classes.then_some("accuracy"));
        metrics.extend((self.classes && self.test).then_some("test-accuracy"));
        line(format!(
            "[start]\nzero = true\n\n[budget]\nrounds = 200\n\n[record]\npoints = 50\nmetrics = {metrics:?}\n"
        ));
        for algorithm in ["fedavg", "scaffold"] {
            let step = self.step_size;
            line(format!("[[algorithm.{algorithm}]]\nstep-size = {step}\nlocal-steps = 10\n"));
        }
        line("[[figure.convergence]]\ny = \"sq-error\"\n".into());
        let last = metrics[metrics.len() - 1];
        line(format!("[[figure.convergence]]\ny = \"{last}\""));
        out
    }
}

impl FileRecords<'_> {
    /// How many records have another value of a feature than the majority, if there is one; otherwise
    /// half of all or more.
    fn rarer(&self, feature: usize) -> usize {
        let (mut most, mut lead) = (f64::NAN, 0_usize);
        for x in self.column(feature) {
            match lead {
                0 => (most, lead) = (x, 1),
                _ if x == most => lead += 1,
                _ => lead -= 1,
            }
        }
        self.column(feature).filter(|x| *x != most).count()
    }
}

/// The largest ‖x‖² of a record of the features that vary, standardised or not.
fn largest_square(records: &FileRecords<'_>, kept: &[usize], standardise: bool) -> f64 {
    let scale = |&j: &usize| {
        let (mean, variance) = if standardise { records.moments(j) } else { (0.0, 1.0) };
        (j, mean, variance)
    };
    let scales: Vec<(usize, f64, f64)> = kept.iter().map(scale).collect();
    let square = |row: &[f64]| {
        let parts = scales.iter().map(|(j, mean, variance)| (row[*j] - mean).powi(2) / variance);
        parts.fold(0.0, |sum, x| sum + x)
    };
    records.features.chunks_exact(records.size.1).map(square).fold(0.0, f64::max)
}

/// The number with one digit that is next below.
fn one_digit(x: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(x)));
    let text = format!("{:e}", libm::floor(x / power) * power);
    // As text with one digit, so that it is printed with one.
    let digits = text.split(['e', '.']).next().unwrap_or("1");
    let exponent = text.split('e').nth(1).unwrap_or("0");
    format!("{digits}e{exponent}").parse().unwrap_or(x)
}
