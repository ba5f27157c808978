//! Shared by the programs `bars` and `compare` and their tests: criterion's results,
//! ratios of times and their verdicts, tables.

// Each of the three programs that include this file uses a part of it.
#![allow(dead_code)]

use exactfed::stats::Summary;
use serde::Deserialize;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The target folder of cargo.
pub fn target() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    env::var_os("CARGO_TARGET_DIR").map_or_else(default, PathBuf::from)
}

/// A number, with its 95 % interval if there is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
}

impl Value {
    pub fn alone(value: f64) -> Self {
        Self { value, interval: None }
    }

    pub fn times(self, factor: f64) -> Self {
        let interval = self.interval.map(|(low, high)| (low * factor, high * factor));
        Self { value: self.value * factor, interval }
    }

    /// The ratio of two independent values: the squares of the half widths of their
    /// logarithms add up.
    pub fn over(self, other: Self) -> Self {
        let value = self.value / other.value;
        let half = |v: Self| v.interval.map(|(low, high)| libm::log(high / low) / 2.0);
        let interval = match (half(self), half(other)) {
            (None, None) => None,
            (a, b) => {
                let (a, b) = (a.unwrap_or(0.0), b.unwrap_or(0.0));
                let factor = libm::exp((a * a + b * b).sqrt());
                Some((value / factor, value * factor))
            }
        };
        Self { value, interval }
    }

    /// The value with three digits, its unit and its interval.
    pub fn with_unit(self, unit: &str) -> String {
        let space = if unit.is_empty() { "" } else { " " };
        let value = format!("{}{space}{unit}", digits(self.value));
        match self.interval {
            Some((low, high)) => format!("{value} ({} to {})", digits(low), digits(high)),
            None => value,
        }
    }
}

/// A number with three digits.
pub fn digits(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() || a == 0.0 => format!("{x}"),
        a if a >= 1e6 => format!("{x:.2e}"),
        a if a >= 100.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        a if a >= 0.01 => format!("{x:.2}"),
        _ => format!("{x:.2e}"),
    }
}

/// A result of criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// `group/function/parameter`.
    pub id: String,
    /// Nanoseconds per iteration.
    pub iteration: Value,
    /// Elements per iteration, if the bench has them.
    pub elements: Option<f64>,
}

impl Timing {
    /// Nanoseconds per element, or per iteration without elements.
    pub fn each(&self) -> Value {
        self.iteration.times(1.0 / self.elements.unwrap_or(1.0))
    }
}

/// Every result under criterion's folder that is not older than `since`.
///
/// # Errors
/// The file that cannot be read.
pub fn timings(folder: &Path, since: Option<SystemTime>) -> Result<Vec<Timing>, String> {
    let mut found = Vec::new();
    if folder.exists() {
        collect(folder, since, &mut found)?;
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

fn collect(
    folder: &Path,
    since: Option<SystemTime>,
    found: &mut Vec<Timing>,
) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let estimates = path.join("estimates.json");
        let is_new = path.file_name().is_some_and(|name| name == "new");
        if is_new && estimates.exists() && path.join("benchmark.json").exists() {
            let written = fs::metadata(&estimates).and_then(|m| m.modified()).map_err(failed)?;
            if since.is_none_or(|since| written >= since) {
                found.push(timing(&path)?);
            }
        } else if path.is_dir() {
            collect(&path, since, found)?;
        }
    }
    Ok(())
}

fn timing(folder: &Path) -> Result<Timing, String> {
    let benchmark = json(&folder.join("benchmark.json"))?;
    let estimates = json(&folder.join("estimates.json"))?;
    let parts = ["group_id", "function_id", "value_str"];
    let parts: Vec<&str> = parts.iter().filter_map(|key| benchmark[key].as_str()).collect();
    let estimate = |name: &str| {
        let ends = &estimates[name]["confidence_interval"];
        Some(Value {
            value: estimates[name]["point_estimate"].as_f64()?,
            interval: Some((ends["lower_bound"].as_f64()?, ends["upper_bound"].as_f64()?)),
        })
    };
    let iteration = estimate("slope").or_else(|| estimate("mean"));
    let iteration = iteration.ok_or_else(|| format!("{}: no estimate", folder.display()))?;
    let elements = benchmark["throughput"]["Elements"].as_f64();
    Ok(Timing { id: parts.join("/"), iteration, elements })
}

fn json(path: &Path) -> Result<serde_json::Value, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// What became of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Slower,
    Faster,
    Same,
    /// The interval is too wide: more rounds would help.
    Undecided,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Same => "same",
            Self::Undecided => "undecided",
        }
    }
}

/// The geometric mean of paired ratios with Student's 95 % interval on the
/// logarithm; no interval for less than two.
pub fn geometric_mean(ratios: &[f64]) -> Value {
    let logs: Vec<f64> = ratios.iter().map(|r| libm::log(*r)).collect();
    let summary = Summary::new(&logs);
    let (low, high) = summary.interval;
    let interval = (!low.is_nan()).then(|| (libm::exp(low), libm::exp(high)));
    Value { value: libm::exp(summary.mean), interval }
}

/// A verdict needs the whole interval on one side of `threshold` or its inverse.
pub fn verdict(ratio: Value, threshold: f64) -> Verdict {
    match ratio.interval {
        Some((low, _)) if low > threshold => Verdict::Slower,
        Some((_, high)) if high < 1.0 / threshold => Verdict::Faster,
        Some((low, high)) if low >= 1.0 / threshold && high <= threshold => Verdict::Same,
        _ => Verdict::Undecided,
    }
}

/// A promised limit ("bar").
#[derive(Clone, Debug, Deserialize)]
pub struct Limit {
    /// The number in the list of promises.
    pub point: String,
    pub what: String,
    pub bar: String,
    /// The name of what measures it.
    pub bench: String,
}

/// What became of a limit.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub measured: String,
    pub peer: String,
    pub holds: Holds,
}

impl Outcome {
    pub fn new(measured: String, holds: Holds) -> Self {
        Self { measured, peer: String::new(), holds }
    }
}

/// Whether a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Yes,
    No,
    NotMeasured,
    /// A number without a limit.
    NoBar,
}

impl Holds {
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::NotMeasured => "not measured",
            Self::NoBar => "-",
        }
    }

    pub fn when(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// The table of limits, in Markdown.
pub fn bars(rows: &[(Limit, Outcome)]) -> String {
    let head = ["point", "what", "bar", "measured (95 % interval)", "peer", "holds", "command"];
    let row = |(limit, of): &(Limit, Outcome)| {
        let command = format!("`cargo bench --bench {}`", limit.bench);
        let Limit { point, what, bar, .. } = limit;
        [point, what, bar, &of.measured, &of.peer, of.holds.name(), &command]
            .map(str::to_owned)
            .to_vec()
    };
    table(&head, &rows.iter().map(row).collect::<Vec<_>>())
}

/// A table in Markdown, its columns padded so that it reads well on a terminal.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|r| r.iter().map(|c| cell(c)).collect()).collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|i| {
            let cells = rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count());
            cells.chain([head[i].chars().count(), 3]).max().unwrap_or(3)
        })
        .collect();
    let row_text = |cells: Vec<&str>| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(c, w)| format!("{c:<w$}", w = *w)).collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    let mut out = row_text(head.to_vec()) + &row_text(rule.iter().map(String::as_str).collect());
    for row in &rows {
        out += &row_text(row.iter().map(String::as_str).collect());
    }
    out
}

/// The text of a cell, with bars escaped and line ends replaced.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
