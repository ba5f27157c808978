//! The texts of a manifest on its results (`analysis` and `finding`), in which calls stand for
//! numbers from the results, so that no sentence becomes outdated. The reference of manifests lists
//! the functions at the key `analysis`.
//!
//! Where runs do not differ, because nothing is random, the number has no interval.
//!
//! *Invariant*: a text that [`check`] accepts can be filled from any results of its plan, in time
//! and memory that grow with the text alone, because it contains nothing but calls.

use super::frontier::FrontierFacts;
use crate::evidence::claims::{ClaimPart, Estimate, EstimateScale, JudgedClaim};
use crate::evidence::{CellResult, Experiment, SelectedBy, draws_exact_bias};
use crate::stats::selection::selection_error;
use crate::stats::verdict::Verdict;
use crate::stats::{Ratio, Summary};
use exactfed_core::words::{number, readable};
use exactfed_runner::manifest::frontier::FrontierQuantity;
use exactfed_runner::manifest::{Metric, Oracle, Quantity};
use exactfed_runner::plan::{Cell, Plan, Setting, unrecorded};
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// What a text may name of a cell.
struct CellFacts {
    cell: Cell,
    /// The recorded quantities at the last round; empty where runs diverged.
    finals: BTreeMap<Quantity, Vec<f64>>,
    exact_bias: Option<f64>,
    /// As of [`CellResult`].
    selected_by: Option<SelectedBy>,
    /// Replicates that diverged, and all.
    diverged: (usize, usize),
    /// The quantities that the cell cannot have, and why; known of planned cells.
    lacks: Arc<BTreeMap<Quantity, String>>,
    /// Why the cell cannot have an exact bias.
    lacks_bias: Option<&'static str>,
}

impl CellFacts {
    /// A cell that was not run yet.
    fn planned(cell: &Cell, lacks: &[Arc<BTreeMap<Quantity, String>>; 2], biases: bool) -> Self {
        let (finals, exact_bias, diverged) = Default::default();
        let selected_by = None;
        let limit = may_have_limit(cell);
        let lacks_bias = match (biases, limit) {
            (false, _) => Some("no figure asks for the exact bias"),
            (_, false) => Some(NO_LIMIT),
            _ => None,
        };
        let lacks = lacks[usize::from(limit)].clone();
        let cell = cell.clone();
        Self { cell, finals, exact_bias, selected_by, diverged, lacks, lacks_bias }
    }

    /// A cell with its results.
    fn from_result(cell: &CellResult<'_>) -> Self {
        Self {
            cell: cell.cell.clone(),
            finals: Quantity::ALL
                .iter()
                .filter_map(|&quantity| Some((quantity, cell.runs.finals(quantity)?)))
                .collect(),
            exact_bias: cell.exact_bias,
            selected_by: cell.selected_by.clone(),
            diverged: (cell.runs.diverged, cell.runs.count),
            lacks: Arc::default(),
            lacks_bias: None,
        }
    }
}

/// What a text may name of a claim.
struct ClaimFacts {
    verdict: Verdict,
    /// How its estimates are written.
    text: DigitsText,
    /// The estimate that pages show, and the name of its part.
    nearest: (Estimate, String),
    /// Those of the part with the least support.
    weakest: (Estimate, String),
    /// The smallest and the largest estimate of a part.
    range: (f64, f64),
    /// Parts for which the claim holds by itself, and all.
    supported: (usize, usize),
}

impl ClaimFacts {
    /// A claim on these parts, which are none before its cells were run.
    fn of_parts(parts: &[ClaimPart]) -> Self {
        let values = || parts.iter().map(|part| part.estimate.value);
        let holds = |part: &&ClaimPart| part.verdict == Verdict::Supported;
        Self {
            verdict: Verdict::NotTested,
            text: readable,
            nearest: (Estimate::NONE, String::new()),
            weakest: (Estimate::NONE, String::new()),
            range: (values().fold(f64::NAN, f64::min), values().fold(f64::NAN, f64::max)),
            supported: (parts.iter().filter(holds).count(), parts.len()),
        }
    }

    /// A claim with its verdict.
    fn judged(claim: &JudgedClaim<'_>) -> Self {
        let of_part = |part: Option<&ClaimPart>| {
            part.map_or((Estimate::NONE, String::new()), |part| (part.estimate, part.name.clone()))
        };
        Self {
            verdict: claim.judgement.verdict,
            text: number_text(claim.scale == EstimateScale::Counted),
            nearest: of_part(claim.nearest()),
            weakest: of_part(claim.weakest()),
            ..Self::of_parts(&claim.parts)
        }
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Whether a text has anything to fill in or to reject.
fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// What a text may name: the cells and the claims.
#[derive(Default)]
struct Known {
    cells: Vec<CellFacts>,
    /// The claims by their ids.
    claims: BTreeMap<String, ClaimFacts>,
    /// The points of frontiers.
    frontiers: Vec<FrontierFacts>,
    /// Whether a claim has another verdict than the text says.
    fails: AtomicBool,
}

/// Renders a text; `None` if a claim has another verdict than the text says.
///
/// # Errors
/// If it is no template, or names no cell or more than one.
pub fn render(text: &str, experiment: &Experiment<'_>) -> Result<Option<String>, String> {
    if !experiment.missing.is_empty() && text.contains("{{") {
        let parts = text.split("{{").enumerate().map(|(i, part)| match part.split_once("}}") {
            Some((_, rest)) if i > 0 => format!("(no result){rest}"),
            _ => part.to_owned(),
        });
        return Ok(Some(parts.collect()));
    }
    if !is_template(text) {
        return Ok(Some(text.to_owned()));
    }
    let claim = |claim: &JudgedClaim<'_>| (claim.common.id.clone(), ClaimFacts::judged(claim));
    let cells = experiment.cells.iter().map(CellFacts::from_result).collect();
    let claims = experiment.claims.iter().map(claim).collect();
    let frontiers = experiment.frontiers.iter().flat_map(FrontierFacts::computed).collect();
    fill(text, Known { cells, claims, frontiers, ..Known::default() })
}

/// Whether a text can be filled from results of this plan.
///
/// # Errors
/// What is wrong with it.
pub fn check(text: &str, plan: &Plan) -> Result<(), String> {
    if !is_template(text) {
        return Ok(());
    }
    let manifest = &plan.manifest;
    let unknown = |q: &Quantity| Some((*q, unrecorded(manifest, *q)?));
    let lacks: BTreeMap<Quantity, String> = Quantity::ALL.iter().filter_map(unknown).collect();
    let mut without_limit = lacks.clone();
    without_limit.insert(Quantity::SqErrorLimit, NO_LIMIT.into());
    let lacks = [Arc::new(without_limit), Arc::new(lacks)];
    let biases = draws_exact_bias(plan);
    let planned = |cell: &Cell| CellFacts::planned(cell, &lacks, biases);
    let cells = plan.cells.iter().map(planned).collect();
    let claims = plan.claim_tables.iter().map(|claim| claim.common().id.clone());
    let claims = claims.map(|id| (id, ClaimFacts::of_parts(&[]))).collect();
    let is_priced = manifest.prices.is_some();
    let planned = |frontier| FrontierFacts::planned(frontier, is_priced);
    let frontiers = manifest.frontier.iter().flat_map(planned).collect();
    fill(text, Known { cells, claims, frontiers, ..Known::default() }).map(|_| ())
}

const NO_LIMIT: &str = "the limit is not known: the field is not linear";

/// Whether theory may know a cell's limit; on a linear field that is seen when its instance
/// is built.
fn may_have_limit(cell: &Cell) -> bool {
    let identity = &cell.identity;
    let is_recorded = identity.record.metrics.contains(&Metric::SqErrorLimit);
    identity.problem.linear() || (is_recorded && identity.oracle == Oracle::Exact)
}

/// The functions that a text may call.
const FUNCTIONS: &str = "cell, mean, value, limit, bias, ratio, times, ratio_limit, overtaken, diverged, estimate, number, nearest, least_certain, weakest, smallest, largest, supported, least, holds, refuted, undecided";

/// The most characters of an expression, and the most open brackets in it. The template engine
/// reads signs and brackets by recursion, so that thousands of them would overflow the stack.
const MOST_CHARACTERS: usize = 1000;
const MOST_OPEN: usize = 8;

/// Accepts only short calls with texts and numbers within `{{ … }}`, because other expressions
/// could take any amount of memory.
///
/// # Errors
/// The first character that belongs to no call, or which limit an expression exceeds.
fn only_calls(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some((_, expression)) = rest.split_once("{{") {
        let (mut quote, mut open, mut end) = (None, 0_usize, expression.len());
        for (at, c) in expression.char_indices() {
            let plain = c.is_alphanumeric() || c.is_whitespace() || "_(),=.+-".contains(c);
            match quote {
                // An escape could hide the end of a text.
                _ if c == '\\' => return Err(not_offered(c)),
                Some(opened) => quote = Some(opened).filter(|opened| *opened != c),
                None if expression[at..].starts_with("}}") => {
                    end = at + 2;
                    break;
                }
                None if c == '"' || c == '\'' => quote = Some(c),
                None if c == '(' => open += 1,
                None if c == ')' => open = open.saturating_sub(1),
                None if plain => {}
                None => return Err(not_offered(c)),
            }
            if open > MOST_OPEN {
                return Err(beyond(expression, &format!("more than {MOST_OPEN} open brackets")));
            }
        }
        let length = expression[..end].trim_end_matches('}').chars().count();
        if length > MOST_CHARACTERS {
            let has = format!("{length} characters; at most {MOST_CHARACTERS} are allowed");
            return Err(beyond(expression, &has));
        }
        rest = &expression[end..];
    }
    Ok(())
}

/// That an expression is beyond a limit, with its beginning.
fn beyond(expression: &str, has: &str) -> String {
    let begin: String = expression.trim_start().chars().take(20).collect();
    format!("an expression has {has}: {{{{ {begin}…")
}

fn not_offered(c: char) -> String {
    format!("`{c}` is not offered in {{{{ … }}}}, only calls of {FUNCTIONS} with texts and numbers")
}

/// Fills a text from what is known.
fn fill(text: &str, known: Known) -> Result<Option<String>, String> {
    if text.contains("{%") {
        return Err("statements {% … %} are not offered, only {{ … }}".into());
    }
    only_calls(text)?;
    // Without filters, ranges and loops, which an empty environment does not have.
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    let known = Arc::new(known);
    add_values(&mut env, &known);
    add_facts(&mut env, &known);
    add_frontiers(&mut env, &known);
    let filled = env.render_str(text, ()).map_err(|e| {
        let message = e.detail().map_or(e.to_string(), str::to_owned);
        match e.kind() {
            ErrorKind::UnknownFunction => format!("{message} (allowed: {FUNCTIONS})"),
            _ => message,
        }
    })?;
    Ok((!known.fails.load(Relaxed)).then_some(filled))
}

/// A number with this many digits.
type DigitsText = fn(f64, usize) -> String;

/// How numbers are written that are counted or not.
fn number_text(is_counted: bool) -> DigitsText {
    if is_counted { number } else { readable }
}

/// An estimate as text.
type Shown = fn(DigitsText, Estimate) -> String;

/// What a text shows of a claim.
type ShownClaim = fn(&ClaimFacts) -> String;

/// An estimate without its interval, for a headline.
fn two_digits(text: DigitsText, estimate: Estimate) -> String {
    text(estimate.value, 2)
}

/// An estimate with its interval, with three digits; alone where it has no interval.
fn three_digits(text: DigitsText, Estimate { value, interval: (low, high) }: Estimate) -> String {
    let number = text(value, 3);
    match high - low > 1e-9 * value.abs() {
        true => format!("{number} [{}, {}]", text(low, 3), text(high, 3)),
        false => number,
    }
}

/// Offers the functions for means and ratios.
fn add_values(env: &mut Environment<'_>, all: &Arc<Known>) {
    let means: [(&str, &str, Quantity, Shown); 3] = [
        ("mean", "ratio", Quantity::SqError, three_digits),
        ("limit", "ratio_limit", Quantity::SqErrorLimit, three_digits),
        ("value", "times", Quantity::SqError, two_digits),
    ];
    for (name, name_of_ratio, usual, shown) in means {
        let known = all.clone();
        env.add_function(name, move |id: String, options: Kwargs| -> Result<String, Error> {
            let quantity = quantity(&options, usual)?;
            Ok(finals(&known.cells, &id, quantity)?.map_or_else(str::to_owned, |sample| {
                let Summary { mean, interval, .. } = Summary::new(sample);
                let text = number_text(quantity.is_counted());
                shown(text, Estimate { value: mean, interval })
            }))
        });
        let known = all.clone();
        let ratio = move |a: String, b: String, options: Kwargs| -> Result<String, Error> {
            let quantity = quantity(&options, usual)?;
            let error_of_selection = selection_error(&[
                (1.0, selection_changes(by_id(&known.cells, &a)?, quantity)),
                (-1.0, selection_changes(by_id(&known.cells, &b)?, quantity)),
            ]);
            match (finals(&known.cells, &a, quantity)?, finals(&known.cells, &b, quantity)?) {
                (Ok(a), Ok(b)) => {
                    let has_instances = |facts: &CellFacts| facts.cell.identity.instances > 1;
                    let several = known.cells.iter().any(has_instances);
                    let Ratio { estimate, low, high, .. } =
                        Ratio::of_selected(a, b, several, error_of_selection);
                    Ok(shown(readable, Estimate { value: estimate, interval: (low, high) }))
                }
                (Err(why), _) | (_, Err(why)) => Ok(why.into()),
            }
        };
        env.add_function(name_of_ratio, ratio);
    }
}

/// Offers the other functions of [`FUNCTIONS`].
fn add_facts(env: &mut Environment<'_>, all: &Arc<Known>) {
    let known = all.clone();
    env.add_function("cell", move |label: String, settings: Kwargs| {
        find(&known.cells, &label, &settings)
    });
    let of_claims: [(&str, ShownClaim); 8] = [
        ("estimate", |c| three_digits(c.text, c.nearest.0)),
        ("number", |c| two_digits(c.text, c.nearest.0)),
        ("nearest", |c| c.nearest.1.clone()),
        ("least_certain", |c| three_digits(c.text, c.weakest.0)),
        ("weakest", |c| c.weakest.1.clone()),
        ("smallest", |c| (c.text)(c.range.0, 3)),
        ("largest", |c| (c.text)(c.range.1, 3)),
        ("supported", |c| format!("{} of {}", c.supported.0, c.supported.1)),
    ];
    for (name, shown) in of_claims {
        let known = all.clone();
        let text = move |id: String| -> Result<String, Error> { Ok(shown(claim(&known, &id)?)) };
        env.add_function(name, text);
    }
    for (name, wanted) in [
        ("holds", Verdict::Supported),
        ("refuted", Verdict::Refuted),
        ("undecided", Verdict::Inconclusive),
    ] {
        let known = all.clone();
        env.add_function(name, move |id: String| -> Result<&str, Error> {
            if claim(&known, &id)?.verdict != wanted {
                known.fails.store(true, Relaxed);
            }
            Ok("")
        });
    }
    let known = all.clone();
    env.add_function("bias", move |id: String| -> Result<String, Error> {
        let cell = by_id(&known.cells, &id)?;
        match cell.lacks_bias {
            Some(why) => Err(invalid(why.into())),
            None => {
                Ok(cell.exact_bias.map_or_else(|| UNKNOWN.to_owned(), |bias| readable(bias, 3)))
            }
        }
    });
    let known = all.clone();
    env.add_function("overtaken", move |few: String, many: String| -> Result<String, Error> {
        let found = overtaken(&known.cells, &few, &many)?;
        // The text says that it is between the two.
        if found.is_none() {
            known.fails.store(true, Relaxed);
        }
        Ok(found.map_or_else(|| UNKNOWN.to_owned(), |clients| readable(clients, 2)))
    });
    let known = all.clone();
    env.add_function("diverged", move |id: String| -> Result<String, Error> {
        let (count, runs) = by_id(&known.cells, &id)?.diverged;
        Ok(if runs == 0 { "–".to_owned() } else { format!("{count} of {runs}") })
    });
}

/// Offers the function for points of frontiers.
fn add_frontiers(env: &mut Environment<'_>, all: &Arc<Known>) {
    let known = all.clone();
    env.add_function("least", move |algorithm: String, options: Kwargs| -> Result<String, Error> {
        let (clients, target): (Option<u64>, f64) =
            (options.get("clients")?, options.get("target")?);
        let least: [Option<f64>; 2] = [options.get("price")?, options.get("budget")?];
        let named: Option<String> = options.get("of")?;
        options.assert_all_used()?;
        let named = named.as_deref().unwrap_or(FrontierQuantity::default().name());
        let Some((quantity, ..)) = FrontierQuantity::ALL.into_iter().find(|q| q.1 == named) else {
            let all = FrontierQuantity::ALL.map(|(_, name, _)| name).join(", ");
            return Err(invalid(format!("\"{named}\" is no quantity (allowed: {all})")));
        };
        let found = known.frontiers.iter().find(|f| f.is_at(&algorithm, clients, target, least));
        let found = found.ok_or_else(|| {
            let clients = clients.map_or_else(String::new, |n| format!(", clients = {n}"));
            let least = ["price", "budget"].into_iter().zip(least);
            let least = least.filter_map(|(key, value)| Some(format!(", {key} = {}", value?)));
            let message = format!(
                "no frontier has the point {algorithm}{clients}, target = {target}{}",
                least.collect::<String>()
            );
            invalid(message)
        })?;
        Ok(found.text(quantity).unwrap_or_else(|| UNKNOWN.to_owned()))
    });
}

/// The number of clients between those of two cells at which the squared bias is as large as the
/// variance; `None` if it is not known, or not between them.
fn overtaken(facts: &[CellFacts], few: &str, many: &str) -> Result<Option<f64>, Error> {
    let few = BiasShare::new(facts, few)?;
    let many = BiasShare::new(facts, many)?;
    Ok(few.zip(many).and_then(|(few, many)| few.equality_before(many)))
}

/// How large the squared bias of a cell is beside its variance.
#[derive(Clone, Copy)]
struct BiasShare {
    clients: f64,
    /// The squared bias over the variance.
    ratio: f64,
}

impl BiasShare {
    /// That of the cell of this id; `None` if its clients, bias or variance are not known.
    fn new(facts: &[CellFacts], id: &str) -> Result<Option<Self>, Error> {
        let mean = |quantity| finals(facts, id, quantity).map(|f| f.ok().map(crate::stats::mean));
        let clients = by_id(facts, id)?.cell.settings.get("clients").and_then(Setting::number);
        let (Some(clients), Some(variance), Some(bias)) =
            (clients, mean(Quantity::Variance)?, mean(Quantity::Bias)?)
        else {
            return Ok(None);
        };
        Ok(Some(Self { clients, ratio: bias * bias / variance }))
    }

    /// The number of clients at which the ratio is 1, by a line through the logarithms of the two:
    /// no law of the variance is assumed. `None` unless it is between them.
    fn equality_before(self, other: Self) -> Option<f64> {
        let is_between = self.clients < other.clients && self.ratio <= 1.0 && other.ratio >= 1.0;
        let share = -libm::log(self.ratio) / libm::log(other.ratio / self.ratio);
        let clients = self.clients * libm::pow(other.clients / self.clients, share);
        (is_between && clients.is_finite()).then_some(clients)
    }
}

/// The claim of this id.
fn claim<'a>(known: &'a Known, id: &str) -> Result<&'a ClaimFacts, Error> {
    known.claims.get(id).ok_or_else(|| {
        let all: Vec<&str> = known.claims.keys().map(String::as_str).collect();
        let all = if all.is_empty() { "there are none".into() } else { all.join(", ") };
        invalid(format!("\"{id}\" is no claim (allowed: {all})"))
    })
}

fn by_id<'a>(facts: &'a [CellFacts], id: &str) -> Result<&'a CellFacts, Error> {
    facts.iter().find(|f| f.cell.id == *id).ok_or_else(|| invalid(format!("{id} is no cell")))
}

/// The quantity that `of="…"` names.
fn quantity(options: &Kwargs, usual: Quantity) -> Result<Quantity, Error> {
    let named: Option<String> = options.get("of")?;
    options.assert_all_used()?;
    let Some(name) = named else { return Ok(usual) };
    Quantity::named(&name).ok_or_else(|| {
        let all: Vec<&str> = Quantity::ALL.iter().map(|q| q.name()).collect();
        invalid(format!("\"{name}\" is no quantity (allowed: {})", all.join(", ")))
    })
}

/// The text in the place of a number that is missing.
const UNKNOWN: &str = "not known";

/// A quantity at the last round, or the text in its place.
fn finals<'a>(
    facts: &'a [CellFacts],
    id: &str,
    quantity: Quantity,
) -> Result<Result<&'a [f64], &'static str>, Error> {
    let facts = by_id(facts, id)?;
    if let Some(why) = facts.lacks.get(&quantity) {
        return Err(invalid(format!("of {}: {why}", facts.cell.label)));
    }
    Ok(match facts.finals.get(&quantity) {
        Some(sample) => Ok(sample),
        // A cell that was run and did not diverge has its errors.
        None if facts.finals.is_empty() => Err("diverged"),
        None => Err(UNKNOWN),
    })
}

/// [`CellResult::selection_changes`].
fn selection_changes(facts: &CellFacts, quantity: Quantity) -> &[f64] {
    let selected_by = facts.selected_by.as_ref().filter(|by| by.metric == quantity);
    selected_by.map_or(&[][..], |by| &by.changes)
}

fn find(facts: &[CellFacts], label: &str, wanted: &Kwargs) -> Result<String, Error> {
    let value = |name: &str| Ok((name.replace('_', "-"), wanted.get(name)?));
    let values: Vec<(String, Value)> = wanted.args().map(value).collect::<Result<_, Error>>()?;
    let fits = |f: &&CellFacts| {
        let same = |(name, value): &(String, Value)| match f.cell.settings.get(name) {
            Some(Setting::Number(x)) => f64::try_from(value.clone()).is_ok_and(|v| v == *x),
            Some(Setting::Text(text)) => value.as_str().is_some_and(|v| text.starts_with(v)),
            None => false,
        };
        f.cell.label == label && values.iter().all(same)
    };
    let found: Vec<&CellFacts> = facts.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok(one.cell.id.to_string()),
        several => {
            let settings: String = values.iter().map(|(n, v)| format!(", {n} = {v}")).collect();
            let named =
                format!("cell(\"{label}\"{settings}) names {} cells, not one", several.len());
            let mut labels: Vec<&str> = facts.iter().map(|f| f.cell.label.as_str()).collect();
            labels.dedup();
            // What tells the first two apart, as an argument.
            let apart = several.first().zip(several.get(1)).and_then(|(a, b)| {
                let differ =
                    |name: &&String| a.cell.settings.get(name) != b.cell.settings.get(name);
                let name = a.cell.varied.iter().find(differ)?;
                Some((name.replace('-', "_"), a.cell.settings.get(name)?))
            });
            Err(invalid(match apart {
                Some((name, value)) => format!("{named}: add a setting, such as {name} = {value}"),
                None => format!("{named} (labels: {})", labels.join(", ")),
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, claims: impl IntoIterator<Item = (&'static str, ClaimFacts)>) -> String {
        let claims = claims.into_iter().map(|(id, facts)| (id.to_owned(), facts)).collect();
        let known = Known { claims, ..Known::default() };
        fill(text, known).expect("a template").expect("no guard fails")
    }

    #[test]
    fn the_reference_of_manifests_lists_every_function() {
        let page = crate::evidence::KINDS.reference();
        for name in FUNCTIONS.split(", ") {
            assert!(page.contains(&format!("`{name}(")), "{name}");
        }
    }

    /// Between two cells, and nowhere else: the variance may fall by any law.
    #[test]
    fn the_bias_is_as_large_as_the_variance_between_two_cells() {
        let share = |clients, ratio| BiasShare { clients, ratio };
        let found = share(100.0, 0.1).equality_before(share(1000.0, 10.0)).unwrap();
        assert!((found - 1e5_f64.sqrt()).abs() < 1e-9 * found, "{found}");
        assert_eq!(share(100.0, 1.0).equality_before(share(1000.0, 2.0)), Some(100.0));
        for (few, many) in [(0.1, 0.9), (1.1, 10.0), (0.0, 2.0), (f64::NAN, 2.0), (0.5, f64::NAN)] {
            assert_eq!(share(100.0, few).equality_before(share(1000.0, many)), None);
        }
        assert_eq!(share(1000.0, 0.1).equality_before(share(100.0, 10.0)), None);
    }

    #[test]
    fn parts_of_a_claim() {
        let part = |name: &str, value: f64, verdict| ClaimPart {
            name: name.into(),
            estimate: Estimate { value, interval: (value, value) },
            is_exact: true,
            region: (0.0, 5.0),
            verdict,
        };
        let parts = [
            part("round 1", 1.234, Verdict::Supported),
            part("round 2", 4.155, Verdict::Inconclusive),
            part("round 3", 2.403, Verdict::Supported),
        ];
        let facts = |text| ClaimFacts {
            text,
            weakest: (parts[1].estimate, "round 2".into()),
            nearest: (parts[2].estimate, "round 3".into()),
            ..ClaimFacts::of_parts(&parts)
        };
        let text = r#"{{ smallest("a") }} to {{ largest("a") }}, {{ supported("a") }}, not at {{ weakest("a") }}"#;
        assert_eq!(filled(text, [("a", facts(readable))]), "1.23 to 4.16, 2 of 3, not at round 2");
        let text = r#"{{ estimate("a") }} at {{ nearest("a") }}, {{ number("a") }}; {{ least_certain("a") }}"#;
        assert_eq!(filled(text, [("a", facts(readable))]), "2.40 at round 3, 2.4; 4.16");
        let text = r#"{{ smallest("a") }}, {{ largest("a") }}, {{ supported("a") }}"#;
        assert_eq!(filled(text, [("a", ClaimFacts::of_parts(&[]))]), "–, –, 0 of 0");
        let unknown = fill(r#"{{ largest("b") }}"#, Known::default());
        assert_eq!(unknown, Err(r#""b" is no claim (allowed: there are none)"#.to_owned()));
    }
}
