//! The functions that texts of a manifest may call. Each returns the text that stands in place of its call. Where runs
//! do not differ, because nothing is random, a number has no interval.
//!
//! A function returns an error where no results could give it a number, as for a cell that the plan does not have.
//! Texts are checked with the facts of the plan ([`TextFacts::of_plan`]), so that such a manifest is refused before it
//! is run. A number that results could give, and these do not, is no error but a word such as "diverged" or "not
//! known".

use super::bias_share::BiasShare;
use super::facts::{CellFacts, ClaimFacts, DigitsText, TextFacts, number_text};
use crate::evidence::claims::Estimate;
use crate::evidence::summary;
use crate::stats::selection::selection_error;
use crate::stats::verdict::Verdict;
use crate::stats::{self, Ratio, Summary};
use exactfed_core::words::readable;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::frontier::FrontierQuantity;
use exactfed_runner::plan::{Setting, begins_with_words};
use minijinja::value::{Kwargs, Object, Value};
use minijinja::{Environment, Error, ErrorKind, State};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// The names of the functions.
pub const NAMES: &str = "cell, mean, value, limit, bias, ratio, times, ratio_limit, overtaken, diverged, estimate, number, nearest, least_certain, weakest, smallest, largest, supported, least, holds, refuted, undecided";

/// The name of the [`Guards`] among the variables of a template, which no text can write.
pub const GUARDS: &str = "the results";

/// What the functions see that are called in one text: the facts, and whether what the text says of verdicts holds so
/// far.
pub struct Guards {
    facts: Arc<TextFacts>,
    /// Whether a claim does not have the verdict that the text says.
    fails: AtomicBool,
}

impl Guards {
    /// The facts for a text of which no function was called yet.
    pub fn new(facts: &Arc<TextFacts>) -> Arc<Self> {
        Arc::new(Self { facts: facts.clone(), fails: AtomicBool::new(false) })
    }

    /// Whether each claim that the text names in a guard has the verdict that the guard says.
    pub fn hold(&self) -> bool {
        !self.fails.load(Relaxed)
    }

    /// Notes that a claim does not have the verdict that the text says.
    fn fail(&self) {
        self.fails.store(true, Relaxed);
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(GUARDS)
    }
}

impl Object for Guards {}

/// The facts and the guards of the text that is being filled, which the template engine keeps for its functions.
fn guards(state: &State<'_, '_>) -> Result<Arc<Guards>, Error> {
    let value = state.lookup(GUARDS).and_then(|value| value.downcast_object::<Guards>());
    value.ok_or_else(|| invalid("there are no results".to_owned()))
}

/// The error of a template that uses a function wrongly.
fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Registers the functions of [`NAMES`] in a template engine. Functions that differ only in the quantity or in the form
/// of a number are made by one function.
pub fn register(environment: &mut Environment<'static>) {
    environment.add_function("cell", cell);
    add_means(environment, "mean", Quantity::SqError, three_digits);
    add_means(environment, "limit", Quantity::SqErrorLimit, three_digits);
    add_means(environment, "value", Quantity::SqError, two_digits);
    add_ratios(environment, "ratio", Quantity::SqError, three_digits);
    add_ratios(environment, "ratio_limit", Quantity::SqErrorLimit, three_digits);
    add_ratios(environment, "times", Quantity::SqError, two_digits);
    environment.add_function("bias", bias);
    environment.add_function("overtaken", overtaken);
    environment.add_function("diverged", diverged);
    add_of_claim(environment, "estimate", |c| three_digits(c.text, c.nearest.estimate));
    add_of_claim(environment, "number", |c| two_digits(c.text, c.nearest.estimate));
    add_of_claim(environment, "nearest", |c| c.nearest.name.clone());
    add_of_claim(environment, "least_certain", |c| three_digits(c.text, c.weakest.estimate));
    add_of_claim(environment, "weakest", |c| c.weakest.name.clone());
    add_of_claim(environment, "smallest", |c| (c.text)(c.smallest, 3));
    add_of_claim(environment, "largest", |c| (c.text)(c.largest, 3));
    add_of_claim(environment, "supported", |c| format!("{} of {}", c.supported, c.parts));
    add_guard(environment, "holds", Verdict::Supported);
    add_guard(environment, "refuted", Verdict::Refuted);
    add_guard(environment, "undecided", Verdict::Inconclusive);
    environment.add_function("least", least);
}

/// A function that writes an estimate, whose numbers another function writes.
type EstimateText = fn(DigitsText, Estimate) -> String;

/// An estimate with two digits and without its interval, for a headline.
fn two_digits(text: DigitsText, estimate: Estimate) -> String {
    text(estimate.value, 2)
}

/// An estimate and its interval with three digits; the estimate alone if it has no interval, or one without width.
fn three_digits(text: DigitsText, Estimate { value, interval: (low, high) }: Estimate) -> String {
    let number = text(value, 3);
    if high - low > 1e-9 * value.abs() {
        format!("{number} [{}, {}]", text(low, 3), text(high, 3))
    } else {
        number
    }
}

/// Registers a function that states the mean of a cell at the last round, over its runs, or over instances where there
/// are several. The quantity is `usual` unless the text names another, and `shown` writes it.
fn add_means(
    environment: &mut Environment<'static>,
    name: &'static str,
    usual: Quantity,
    shown: EstimateText,
) {
    let function = move |state: &State<'_, '_>, id: String, options: Kwargs| {
        let guards = guards(state)?;
        let quantity = quantity(&options, usual)?;
        Ok::<String, Error>(match finals(&guards.facts.cells, &id, quantity)? {
            Finals::Sample(sample) => {
                let Summary { mean, interval, .. } = summary(quantity, sample);
                let text = number_text(quantity.is_counted());
                shown(text, Estimate { value: mean, interval })
            }
            Finals::Missing(why) => why.to_owned(),
        })
    };
    environment.add_function(name, function);
}

/// Registers a function that states the ratio of the means of two cells, first over second, over paired runs at the
/// last round; over instances, where there are several, the geometric mean of the paired ratios. The quantity is
/// `usual` unless the text names another, and `shown` writes the ratio. Its interval counts in that other runs would
/// have selected other candidates, where the cells were tuned.
fn add_ratios(
    environment: &mut Environment<'static>,
    name: &'static str,
    usual: Quantity,
    shown: EstimateText,
) {
    let function = move |state: &State<'_, '_>, a: String, b: String, options: Kwargs| {
        let guards = guards(state)?;
        let cells = &guards.facts.cells;
        let quantity = quantity(&options, usual)?;
        let error_of_selection = selection_error(&[
            (1.0, selection_changes(by_id(cells, &a)?, quantity)),
            (-1.0, selection_changes(by_id(cells, &b)?, quantity)),
        ]);
        Ok::<String, Error>(match (finals(cells, &a, quantity)?, finals(cells, &b, quantity)?) {
            (Finals::Sample(a), Finals::Sample(b)) => {
                let several = cells.iter().any(|facts| facts.cell.identity.instances > 1);
                let ratio = Ratio::of_selected(a, b, several, error_of_selection);
                let interval = (ratio.low, ratio.high);
                shown(readable, Estimate { value: ratio.estimate, interval })
            }
            (Finals::Missing(why), _) | (_, Finals::Missing(why)) => why.to_owned(),
        })
    };
    environment.add_function(name, function);
}

/// Registers a function that states what `shown` returns for the claim whose id it is called with.
fn add_of_claim(
    environment: &mut Environment<'static>,
    name: &'static str,
    shown: fn(&ClaimFacts) -> String,
) {
    environment.add_function(name, move |state: &State<'_, '_>, id: String| {
        Ok::<String, Error>(shown(claim(&guards(state)?.facts, &id)?))
    });
}

/// Registers a guard: a function that writes nothing, and keeps the text from being shown unless the claim that it
/// names has this verdict.
fn add_guard(environment: &mut Environment<'static>, name: &'static str, wanted: Verdict) {
    environment.add_function(name, move |state: &State<'_, '_>, id: String| {
        let guards = guards(state)?;
        if claim(&guards.facts, &id)?.verdict != wanted {
            guards.fail();
        }
        Ok::<&str, Error>("")
    });
}

/// The function `cell`: the id of the only cell with this label and these settings, which other functions take.
///
/// # Errors
/// If no cell, or more than one, has them.
fn cell(state: &State<'_, '_>, label: String, settings: Kwargs) -> Result<String, Error> {
    find(&guards(state)?.facts.cells, &label, &settings)
}

/// The function `bias`: the squared norm of the exact bias of a cell, ‖lim E θ_t − θ*‖²; "not known" where theory does
/// not know the limit.
///
/// # Errors
/// If there is no such cell. For a cell that was not run yet also if no figure of the manifest draws the exact bias,
/// which is not computed otherwise, or if theory cannot know the limit, since the field is not linear.
fn bias(state: &State<'_, '_>, id: String) -> Result<String, Error> {
    let guards = guards(state)?;
    let facts = by_id(&guards.facts.cells, &id)?;
    if let Some(why) = facts.lacks_bias {
        return Err(invalid(why.into()));
    }
    Ok(facts.exact_bias.map_or_else(|| UNKNOWN.to_owned(), |bias| readable(bias, 3)))
}

/// The function `overtaken`: the number of clients, between the numbers of two cells, at which the squared bias is as
/// large as the variance. Where there is none, the text says something false, and is not shown.
///
/// # Errors
/// If there is no such cell, or a cell cannot have a bias or a variance.
fn overtaken(state: &State<'_, '_>, few: String, many: String) -> Result<String, Error> {
    let guards = guards(state)?;
    let few = bias_share(&guards.facts.cells, &few)?;
    let many = bias_share(&guards.facts.cells, &many)?;
    let Some(clients) = few.zip(many).and_then(|(few, many)| few.equality_before(many)) else {
        guards.fail();
        return Ok(UNKNOWN.to_owned());
    };
    Ok(readable(clients, 2))
}

/// The squared bias of a cell over its variance, with its number of clients; `None` if one of these is not known, as
/// where runs diverged, and for a planned cell.
///
/// # Errors
/// If there is no such cell, or it cannot have a bias or a variance.
fn bias_share(facts: &[CellFacts], id: &str) -> Result<Option<BiasShare>, Error> {
    let clients = by_id(facts, id)?.cell.settings.get("clients").and_then(Setting::number);
    let variance = finals(facts, id, Quantity::Variance)?.mean();
    let bias = finals(facts, id, Quantity::Bias)?.mean();
    let (Some(clients), Some(variance), Some(bias)) = (clients, variance, bias) else {
        return Ok(None);
    };
    Ok(Some(BiasShare { clients, ratio: bias * bias / variance }))
}

/// The function `diverged`: how many runs of a cell diverged, out of all; a dash for a planned cell.
///
/// # Errors
/// If there is no such cell.
fn diverged(state: &State<'_, '_>, id: String) -> Result<String, Error> {
    let guards = guards(state)?;
    let facts = by_id(&guards.facts.cells, &id)?;
    if facts.replicates == 0 {
        return Ok("–".to_owned());
    }
    Ok(format!("{} of {}", facts.diverged, facts.replicates))
}

/// The function `least`: a quantity of the least cost of an algorithm at a point of a frontier, which the options name
/// by `clients`, `target`, `price` and `budget`. The option `of` names the quantity; without it, the communications.
///
/// # Errors
/// If the target is missing, an option is unknown or of another type, there is no such quantity, or no frontier has
/// the point.
fn least(state: &State<'_, '_>, algorithm: String, options: Kwargs) -> Result<String, Error> {
    let guards = guards(state)?;
    let clients: Option<u64> = options.get("clients")?;
    let target: f64 = options.get("target")?;
    let price: Option<f64> = options.get("price")?;
    let budget: Option<f64> = options.get("budget")?;
    let named: Option<String> = options.get("of")?;
    options.assert_all_used()?;
    let named = named.as_deref().unwrap_or(FrontierQuantity::default().name());
    let Some((quantity, ..)) = FrontierQuantity::ALL.into_iter().find(|q| q.1 == named) else {
        let all = FrontierQuantity::ALL.map(|(_, name, _)| name).join(", ");
        return Err(invalid(format!("\"{named}\" is no quantity (allowed: {all})")));
    };
    let mut frontiers = guards.facts.frontiers.iter();
    let found = frontiers.find(|f| f.is_at(&algorithm, clients, target, [price, budget]));
    let Some(found) = found else {
        let clients = clients.map_or_else(String::new, |n| format!(", clients = {n}"));
        let price = price.map_or_else(String::new, |price| format!(", price = {price}"));
        let budget = budget.map_or_else(String::new, |budget| format!(", budget = {budget}"));
        return Err(invalid(format!(
            "no frontier has the point {algorithm}{clients}, target = {target}{price}{budget}"
        )));
    };
    Ok(found.text(quantity).unwrap_or_else(|| UNKNOWN.to_owned()))
}

/// The facts about the claim of this id.
///
/// # Errors
/// If there is no such claim; the message names those that there are.
fn claim<'a>(facts: &'a TextFacts, id: &str) -> Result<&'a ClaimFacts, Error> {
    facts.claims.get(id).ok_or_else(|| {
        let all: Vec<&str> = facts.claims.keys().map(String::as_str).collect();
        let all = if all.is_empty() { "there are none".into() } else { all.join(", ") };
        invalid(format!("\"{id}\" is no claim (allowed: {all})"))
    })
}

/// The facts about the cell of this id.
///
/// # Errors
/// If there is no such cell.
fn by_id<'a>(facts: &'a [CellFacts], id: &str) -> Result<&'a CellFacts, Error> {
    facts.iter().find(|f| f.cell.id == *id).ok_or_else(|| invalid(format!("{id} is no cell")))
}

/// The quantity that the option `of="…"` of a call, its only one, names; `usual` without the option.
///
/// # Errors
/// If there is no quantity of this name, or the call has another option.
fn quantity(options: &Kwargs, usual: Quantity) -> Result<Quantity, Error> {
    let named: Option<String> = options.get("of")?;
    options.assert_all_used()?;
    let Some(name) = named else { return Ok(usual) };
    Quantity::named(&name).ok_or_else(|| {
        let all: Vec<&str> = Quantity::known().map(|q| q.name()).collect();
        invalid(format!("\"{name}\" is no quantity (allowed: {})", all.join(", ")))
    })
}

/// The text in the place of a number that is missing.
const UNKNOWN: &str = "not known";

/// The values of a quantity at the last round, one for each run, or for each instance where there are several.
enum Finals<'a> {
    Sample(&'a [f64]),
    /// Why there is none.
    Missing(&'static str),
}

impl Finals<'_> {
    /// The mean of the sample, if there is one.
    fn mean(&self) -> Option<f64> {
        match self {
            Self::Sample(sample) => Some(stats::mean(sample)),
            Self::Missing(_) => None,
        }
    }
}

/// The values of a quantity of the cell with this id at the last round.
///
/// # Errors
/// If there is no such cell, or if it was not run yet and cannot have the quantity ([`CellFacts::lacks`]).
fn finals<'a>(facts: &'a [CellFacts], id: &str, quantity: Quantity) -> Result<Finals<'a>, Error> {
    let facts = by_id(facts, id)?;
    if let Some(why) = facts.lacks.get(&quantity) {
        return Err(invalid(format!("of {}: {why}", facts.cell.label)));
    }
    Ok(match facts.finals.get(&quantity) {
        Some(sample) => Finals::Sample(sample),
        // A cell that was run has a sample of some quantity, unless a run diverged. Of a planned cell, which has none,
        // only the errors of its texts matter.
        None if facts.finals.is_empty() => Finals::Missing("diverged"),
        None => Finals::Missing(UNKNOWN),
    })
}

/// By how much other selections would change the logarithm of a tuned cell's mean, as in
/// [`CellResult::selection_changes`](crate::evidence::CellResult::selection_changes); empty if the cell was not
/// selected by this quantity.
fn selection_changes(facts: &CellFacts, quantity: Quantity) -> &[f64] {
    let selected_by = facts.selected_by.as_ref().filter(|by| by.metric == quantity);
    selected_by.map_or(&[][..], |by| &by.changes)
}

/// The id of the only cell with this label and these settings, which a call names with `_` in place of `-`. Settings
/// that the call does not name may have any value. A setting that is a text needs only its first words.
///
/// # Errors
/// If no cell, or more than one, has them.
fn find(facts: &[CellFacts], label: &str, wanted: &Kwargs) -> Result<String, Error> {
    let mut values: Vec<(String, Value)> = Vec::new();
    for name in wanted.args() {
        values.push((name.replace('_', "-"), wanted.get(name)?));
    }
    let mut found: Vec<&CellFacts> = Vec::new();
    for one in facts {
        let mut wanted_values = values.iter();
        if one.cell.label == label && wanted_values.all(|(name, v)| has_setting(one, name, v)) {
            found.push(one);
        }
    }
    match found.as_slice() {
        [one] => Ok(one.cell.id.to_string()),
        several => {
            let settings: String = values.iter().map(|(n, v)| format!(", {n} = {v}")).collect();
            let problem =
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
                Some((name, value)) => {
                    format!("{problem}: add a setting, such as {name} = {value}")
                }
                None => format!("{problem} (labels: {})", labels.join(", ")),
            }))
        }
    }
}

/// Whether a cell has this value in the setting of this name; of a text the value may be the first words. False if the
/// cell has no such setting.
fn has_setting(facts: &CellFacts, name: &str, value: &Value) -> bool {
    match facts.cell.settings.get(name) {
        Some(Setting::Number(x)) => f64::try_from(value.clone()).is_ok_and(|wanted| wanted == *x),
        Some(Setting::Text(text)) => {
            value.as_str().is_some_and(|begin| begins_with_words(text, begin))
        }
        None => false,
    }
}
