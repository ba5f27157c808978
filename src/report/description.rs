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
//!
//! *Invariant*: a text that [`check`] accepts can be filled from any results of its plan, in
//! time and memory that grow with the text alone: it holds nothing but calls.

use super::view::{bracket, short};
use crate::analysis::{CellResult, Experiment, draws_exact_bias};
use crate::stats::{Ratio, Summary};
use driftbench_runner::manifest::{Metric, Oracle, Quantity};
use driftbench_runner::plan::{Cell, Plan, Setting, unrecorded};
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a text may ask of a cell.
struct Facts {
    label: String,
    id: String,
    settings: driftbench_runner::plan::Settings,
    /// What is recorded at the last round; nothing where runs diverged.
    finals: BTreeMap<Quantity, Vec<f64>>,
    exact_bias: Option<f64>,
    /// Replicates that diverged, and all.
    diverged: (usize, usize),
    /// What cannot be asked of the cell, and why; known of cells that are planned.
    lacks: Arc<BTreeMap<Quantity, String>>,
    /// Why the exact bias cannot be asked for.
    lacks_bias: Option<&'static str>,
}

impl Facts {
    /// A cell that was not run yet.
    fn planned(cell: &Cell, lacks: &[Arc<BTreeMap<Quantity, String>>; 2], biases: bool) -> Self {
        let (label, id, settings) = (cell.label.clone(), cell.id.clone(), cell.settings.clone());
        let (finals, exact_bias, diverged) = Default::default();
        let limit = may_have_limit(cell);
        let lacks_bias = match (biases, limit) {
            (false, _) => Some("no figure asks for the exact bias"),
            (_, false) => Some(NO_LIMIT),
            _ => None,
        };
        let lacks = lacks[usize::from(limit)].clone();
        Self { label, id, settings, finals, exact_bias, diverged, lacks, lacks_bias }
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
            lacks: Arc::default(),
            lacks_bias: None,
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

/// Whether an analysis text can be filled from results of this plan.
///
/// # Errors
/// What is wrong with it.
pub fn check(text: &str, plan: &Plan) -> Result<(), String> {
    if !asks(text) {
        return Ok(());
    }
    let manifest = &plan.manifest;
    let unknown = |q: &Quantity| Some((*q, unrecorded(manifest, *q)?));
    let lacks: BTreeMap<Quantity, String> = Quantity::ALL.iter().filter_map(unknown).collect();
    let mut without_limit = lacks.clone();
    without_limit.insert(Quantity::SqErrorLimit, NO_LIMIT.into());
    let lacks = [Arc::new(without_limit), Arc::new(lacks)];
    let biases = draws_exact_bias(plan);
    let planned = |cell: &Cell| Facts::planned(cell, &lacks, biases);
    tell(text, plan.cells.iter().map(planned).collect()).map(|_| ())
}

const NO_LIMIT: &str = "the limit is not known: the field is not linear";

/// Whether theory may know a cell's limit; on a linear field that is seen when its instance
/// is built.
fn may_have_limit(cell: &Cell) -> bool {
    let identity = &cell.identity;
    let asked = identity.record.metrics.contains(&Metric::SqErrorLimit);
    identity.problem.linear() || (asked && identity.oracle == Oracle::Exact)
}

/// The functions that a text may call.
const FUNCTIONS: &str = "cell, mean, limit, bias, ratio, ratio_limit, diverged";

/// Whether there is nothing within `{{ … }}` but calls with texts and numbers: other
/// expressions could ask for any amount of memory.
fn only_calls(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some((_, expression)) = rest.split_once("{{") {
        let (mut quote, mut end) = (None, expression.len());
        for (at, c) in expression.char_indices() {
            let plain = c.is_alphanumeric() || c.is_whitespace() || "_(),=.+-".contains(c);
            match quote {
                // Escapes would say otherwise where a text ends.
                _ if c == '\\' => return Err(not_offered(c)),
                Some(open) => quote = Some(open).filter(|open| *open != c),
                None if expression[at..].starts_with("}}") => {
                    end = at + 2;
                    break;
                }
                None if c == '"' || c == '\'' => quote = Some(c),
                None if plain => {}
                None => return Err(not_offered(c)),
            }
        }
        rest = &expression[end..];
    }
    Ok(())
}

fn not_offered(c: char) -> String {
    format!("`{c}` is not offered in {{{{ … }}}}, only calls of {FUNCTIONS} with texts and numbers")
}

fn tell(text: &str, facts: Vec<Facts>) -> Result<String, String> {
    if text.contains("{%") {
        return Err("statements {% … %} are not offered, only {{ … }}".into());
    }
    only_calls(text)?;
    let facts = Arc::new(facts);
    // Nothing but what is added here: no filters, no ranges, no loops without end.
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    let known = facts.clone();
    env.add_function("cell", move |label: String, settings: Kwargs| {
        find(&known, &label, &settings)
    });
    for (name, usual) in [("mean", Quantity::SqError), ("limit", Quantity::SqErrorLimit)] {
        let known = facts.clone();
        env.add_function(name, move |id: String, how: Kwargs| -> Result<String, Error> {
            let quantity = quantity(&how, usual)?;
            Ok(finals(&known, &id, quantity)?.map_or_else(str::to_owned, |sample| {
                let summary = Summary::new(sample);
                let (low, high) = summary.interval;
                with_interval(summary.mean, low, high)
            }))
        });
    }
    for (name, usual) in [("ratio", Quantity::SqError), ("ratio_limit", Quantity::SqErrorLimit)] {
        let known = facts.clone();
        env.add_function(name, move |a: String, b: String, how: Kwargs| -> Result<String, Error> {
            let quantity = quantity(&how, usual)?;
            match (finals(&known, &a, quantity)?, finals(&known, &b, quantity)?) {
                (Ok(a), Ok(b)) => {
                    let Ratio { estimate, low, high, .. } = Ratio::of_means(a, b);
                    Ok(with_interval(estimate, low, high))
                }
                (Err(why), _) | (_, Err(why)) => Ok(why.into()),
            }
        });
    }
    let known = facts.clone();
    env.add_function("bias", move |id: String| -> Result<String, Error> {
        let cell = by_id(&known, &id)?;
        match cell.lacks_bias {
            Some(why) => Err(wrong(why.into())),
            None => Ok(cell.exact_bias.map_or_else(|| UNKNOWN.to_owned(), short)),
        }
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
                format!("{told} (allowed: {FUNCTIONS})")
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
        let interval = bracket(estimate, (low, high)).unwrap_or_default();
        format!("{} {interval}", short(estimate))
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

/// What a text says where there is no number.
const UNKNOWN: &str = "not known";

/// A quantity at the last round, or what a text says in its place.
fn finals<'a>(
    facts: &'a [Facts],
    id: &str,
    of: Quantity,
) -> Result<Result<&'a [f64], &'static str>, Error> {
    let facts = by_id(facts, id)?;
    if let Some(why) = facts.lacks.get(&of) {
        return Err(wrong(format!("of {}: {why}", facts.label)));
    }
    Ok(match facts.finals.get(&of) {
        Some(sample) => Ok(sample),
        // A cell that was run and did not diverge has its errors.
        None if facts.finals.is_empty() => Err("diverged"),
        None => Err(UNKNOWN),
    })
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
