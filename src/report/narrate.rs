//! The analysis text of a manifest, its numbers taken from the results, so
//! that a sentence cannot go stale:
//!
//! - `cell("FedLSA", local_steps=10)` names the one cell of this label with
//!   these settings (`_` for `-`);
//! - `mean(a)` is its final mean squared error with its 95 % interval,
//!   `mean(a, of="lyapunov")` that of another quantity, `limit(a)` that around
//!   the exact limit, `bias(a)` its squared exact bias;
//! - `ratio(a, b)` is how many times larger a's mean is than b's, with its
//!   95 % interval over paired runs; `ratio(a, b, of="…")` of another quantity,
//!   `ratio_limit(a, b)` around the limits;
//! - `diverged(a)` is how many of its runs diverged, as in "3 of 10".
//!
//! Where runs do not differ, without noise, the number stands alone.

use super::view::short;
use crate::analysis::{Experiment, Result as CellResult};
use crate::manifest::Quantity;
use crate::plan::{Cell, Setting};
use crate::stats::{Ratio, Summary};
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a text may ask of a cell.
struct Facts {
    label: String,
    id: String,
    settings: crate::plan::Settings,
    /// What is recorded at the last round; nothing where runs diverged.
    finals: BTreeMap<Quantity, Vec<f64>>,
    exact_bias: Option<f64>,
    /// Replicates that diverged, and all.
    diverged: (usize, usize),
    /// Whether the cell has results; without, every number is a dash.
    run: bool,
}

impl Facts {
    /// A cell that was not run yet.
    fn planned(cell: &Cell) -> Self {
        let (label, id, settings) = (cell.label.clone(), cell.id.clone(), cell.settings.clone());
        let (finals, exact_bias, diverged) = Default::default();
        Self { label, id, settings, finals, exact_bias, diverged, run: false }
    }

    fn of(cell: &CellResult<'_>) -> Self {
        Self {
            label: cell.cell.label.clone(),
            id: cell.cell.id.clone(),
            settings: cell.cell.settings.clone(),
            finals: Quantity::ALL
                .iter()
                .filter_map(|&quantity| Some((quantity, cell.finals(quantity)?)))
                .collect(),
            exact_bias: cell.exact_bias,
            diverged: (cell.diverged(), cell.replicates()),
            run: true,
        }
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Whether a text is one of a template that has something to work out.
fn asks(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// Renders the analysis text.
///
/// # Errors
/// If it is no template, or names no cell or more than one.
pub fn render(text: &str, experiment: &Experiment<'_>) -> Result<String, String> {
    if !experiment.missing.is_empty() && text.contains("{{") {
        let parts = text.split("{{").enumerate().map(|(i, part)| match part.split_once("}}") {
            Some((_, rest)) if i > 0 => format!("(no result){rest}"),
            _ => part.to_owned(),
        });
        return Ok(parts.collect());
    }
    if !asks(text) {
        return Ok(text.to_owned());
    }
    tell(text, experiment.cells.iter().map(Facts::of).collect())
}

/// Whether an analysis text is a template that names cells of this plan.
///
/// # Errors
/// What is wrong with it.
pub fn check(text: &str, cells: &[Cell]) -> Result<(), String> {
    if !asks(text) {
        return Ok(());
    }
    tell(text, cells.iter().map(Facts::planned).collect()).map(|_| ())
}

fn tell(text: &str, facts: Vec<Facts>) -> Result<String, String> {
    if text.contains("{%") {
        return Err("statements {% … %} are not offered, only {{ … }}".into());
    }
    let facts = Arc::new(facts);
    // Nothing but what is added here: no filters, no ranges, no loops without end.
    let mut env = Environment::empty();
    let known = facts.clone();
    env.add_function("cell", move |label: String, settings: Kwargs| {
        find(&known, &label, &settings)
    });
    for (name, usual) in [("mean", Quantity::SqError), ("limit", Quantity::SqErrorLimit)] {
        let known = facts.clone();
        env.add_function(name, move |id: String, how: Kwargs| -> Result<String, Error> {
            let quantity = quantity(&how, usual)?;
            let Some(sample) = finals(&known, &id, quantity)? else { return Ok("diverged".into()) };
            let summary = Summary::of(sample);
            let (low, high) = summary.interval();
            Ok(with_interval(summary.mean, low, high))
        });
    }
    for (name, usual) in [("ratio", Quantity::SqError), ("ratio_limit", Quantity::SqErrorLimit)] {
        let known = facts.clone();
        env.add_function(name, move |a: String, b: String, how: Kwargs| -> Result<String, Error> {
            let quantity = quantity(&how, usual)?;
            match (finals(&known, &a, quantity)?, finals(&known, &b, quantity)?) {
                (Some(a), Some(b)) => {
                    let Ratio { estimate, low, high, .. } = Ratio::of_means(a, b);
                    Ok(with_interval(estimate, low, high))
                }
                _ => Ok("diverged".into()),
            }
        });
    }
    let known = facts.clone();
    env.add_function("bias", move |id: String| -> Result<String, Error> {
        let cell = by_id(&known, &id)?;
        let bias = cell.exact_bias.map(short).or((!cell.run).then(|| "–".to_owned()));
        bias.ok_or_else(|| wrong("no figure asks for the exact bias".into()))
    });
    let known = facts.clone();
    env.add_function("diverged", move |id: String| -> Result<String, Error> {
        let (count, runs) = by_id(&known, &id)?.diverged;
        Ok(if runs == 0 { "–".to_owned() } else { format!("{count} of {runs}") })
    });
    let said = env.render_str(text, ());
    said.map_err(|e| {
        let told = e.detail().map_or(e.to_string(), str::to_owned);
        match e.kind() {
            ErrorKind::UnknownFunction => {
                format!("{told} (allowed: cell, mean, limit, bias, ratio, ratio_limit, diverged)")
            }
            _ => told,
        }
    })
}

fn by_id<'a>(facts: &'a [Facts], id: &str) -> Result<&'a Facts, Error> {
    facts.iter().find(|f| f.id == id).ok_or_else(|| wrong(format!("{id} is no cell")))
}

/// `1.23 [1.20, 1.26]`; the estimate alone where it has no interval: one run,
/// or runs that are the same but for rounding.
fn with_interval(estimate: f64, low: f64, high: f64) -> String {
    if high - low > 1e-9 * estimate.abs() {
        format!("{} [{}, {}]", short(estimate), short(low), short(high))
    } else {
        short(estimate)
    }
}

/// The quantity that `of="…"` names.
fn quantity(how: &Kwargs, usual: Quantity) -> Result<Quantity, Error> {
    let named: Option<String> = how.get("of")?;
    how.assert_all_used()?;
    let Some(name) = named else { return Ok(usual) };
    Quantity::named(&name).ok_or_else(|| {
        let all: Vec<&str> = Quantity::ALL.iter().map(|q| q.name()).collect();
        wrong(format!("\"{name}\" is no quantity (allowed: {})", all.join(", ")))
    })
}

fn finals<'a>(facts: &'a [Facts], id: &str, of: Quantity) -> Result<Option<&'a [f64]>, Error> {
    let facts = by_id(facts, id)?;
    match facts.finals.get(&of) {
        Some(sample) => Ok(Some(sample)),
        // A cell that was run and did not diverge has its errors.
        None if facts.finals.is_empty() => Ok(None),
        None => Err(wrong(format!("`{}` is not recorded of {}", of.name(), facts.label))),
    }
}

fn find(facts: &[Facts], label: &str, wanted: &Kwargs) -> Result<String, Error> {
    let names: Vec<&str> = wanted.args().collect();
    let mut values = Vec::new();
    for name in names {
        let value: Value = wanted.get(name)?;
        values.push((name.replace('_', "-"), value));
    }
    let fits = |f: &&Facts| {
        let same = |(name, value): &(String, Value)| match f.settings.get(name) {
            Some(Setting::Number(x)) => f64::try_from(value.clone()).is_ok_and(|v| v == *x),
            Some(Setting::Text(text)) => value.as_str().is_some_and(|v| text.starts_with(v)),
            None => false,
        };
        f.label == label && values.iter().all(same)
    };
    let found: Vec<&Facts> = facts.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok(one.id.clone()),
        several => {
            let mut labels: Vec<&str> = facts.iter().map(|f| f.label.as_str()).collect();
            labels.dedup();
            let settings: Vec<String> =
                values.iter().map(|(n, v)| format!(", {n} = {v}")).collect();
            let (count, settings) = (several.len(), settings.concat());
            let labels = labels.join(", ");
            Err(wrong(format!(
                "cell(\"{label}\"{settings}) names {count} cells, not one (labels: {labels})"
            )))
        }
    }
}
