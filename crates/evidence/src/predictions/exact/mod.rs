//! What theory knows of one cell as plain arrays: for programs that compare algorithms of their own
//! with it.
//!
//! *Invariant*: the values are those that pages show and claims are tested on; nothing is computed
//! here that [`crate::predictions`], [`crate::predictions::radii`] and [`crate::predictions::problems`] do not compute.

mod kinds;
mod known;

use crate::cells::setting_text::cell_name;
use crate::predictions::expected::quantity_of_any_moments;
use crate::predictions::instances::build_knowing;
use crate::predictions::quantity_of;
use exactfed_core::round_program::ProgramError;
use exactfed_core::theory::bounds::Bound;
use exactfed_core::theory::exact::MomentsError;
use exactfed_core::words::count;
use exactfed_runner::files::{Error, error};
use exactfed_runner::manifest::Prediction;
use exactfed_runner::manifest::claim::Selection;
use exactfed_runner::plan::{Cell, Plan, needs_optimum, selected};
use exactfed_runner::runner::predict::{self, AveragedOver};
use exactfed_runner::runner::{KnownOptima, Prepared};
use kinds::ValueSource;
pub use kinds::{ArrayAxis, KINDS, KnownWhere, ValueKind};
use known::KnownCell;
use std::path::Path;
use thiserror::Error;

/// Why a value is not known.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum UnknownValue {
    /// There are no moments, or they are not computed.
    #[error(transparent)]
    NoMoments(#[from] predict::NoMoments),
    /// The value follows from the settings of built-in algorithms.
    #[error("it is known of built-in algorithms alone")]
    BuiltInAlone,
    /// The moments of the rounds, of which the value is made, are not known.
    #[error("{error}: it is known {known}")]
    OfRounds {
        /// Why they are not known.
        error: MomentsError,
        /// Where such values are known.
        known: KnownWhere,
    },
    /// The value is known of other cells than this one.
    #[error("it is known {0}")]
    Elsewhere(KnownWhere),
}

/// Why the rounds of a cell's algorithm are not shown as a program, that is, as linear operations.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownProgram {
    /// The rounds are no linear operations, or none that can be traced.
    #[error(transparent)]
    Rounds(#[from] ProgramError),
    /// The algorithm is built in: its settings say what its rounds are.
    #[error("it is known of algorithms of your own alone")]
    BuiltIn,
}

/// Why a request for one cell does not find one, with lines that list cells to choose from.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FindError {
    /// No cell is selected; the lines list those of the plan.
    #[error("no cell is selected; there are{0}")]
    NoCell(String),
    /// Several cells are selected, which the lines list.
    #[error("several cells are selected; name one of{0}")]
    SeveralCells(String),
}

/// A kind of value for a cell: its numbers, or why they are not known.
#[derive(Debug)]
pub struct TheoryValue {
    /// The kind of the value.
    pub kind: &'static ValueKind,
    /// The lengths of its axes.
    pub shape: Vec<usize>,
    /// Its numbers, the last axis fastest. Some may be infinite or NaN, but never all of them, except for a spectral
    /// radius, which may be infinite.
    pub value: Result<Vec<f64>, UnknownValue>,
}

/// A published bound or equality at each recorded round.
#[derive(Debug)]
pub struct BoundCurve {
    /// The bound at the last recorded round: its name, its formula, and its conditions if they
    /// fail there.
    pub bound: Bound,
    /// The name of the bounded quantity.
    pub quantity: &'static str,
    /// A number for each recorded round, NaN where its conditions fail.
    pub values: Vec<f64>,
}

/// What theory knows of a cell on one of its instances.
#[derive(Debug)]
pub struct CellTheory<'a> {
    /// The cell for which theory is computed.
    pub cell: &'a Cell,
    /// Its label with the settings that distinguish it.
    pub name: String,
    /// The recorded rounds, at which curves have values.
    pub rounds: Vec<u64>,
    /// All values, in the order of [`KINDS`].
    pub values: Vec<TheoryValue>,
    /// The published bounds that are about its algorithm.
    pub bounds: Vec<BoundCurve>,
    /// The rounds of a custom algorithm as linear operations, as text, or why they are not shown.
    pub program: Result<String, UnknownProgram>,
}

impl CellTheory<'_> {
    /// The value of this name; `None` if no kind has it.
    pub fn get(&self, name: &str) -> Option<&TheoryValue> {
        self.values.iter().find(|value| value.kind.name == name)
    }
}

/// The one cell of a plan whose id begins with `id`, perhaps empty, and that a selection selects.
///
/// # Errors
/// If there is no such cell, or several.
pub fn find_cell<'a>(plan: &'a Plan, id: &str, wanted: &Selection) -> Result<&'a Cell, FindError> {
    const MOST_NAMED: usize = 12;
    let found: Vec<&Cell> = plan
        .cells
        .iter()
        .filter(|cell| cell.id.starts_with(id) && selected(cell, wanted))
        .collect();
    let (error, all): (fn(String) -> FindError, Vec<&Cell>) = match found.as_slice() {
        [one] => return Ok(one),
        [] => (FindError::NoCell, plan.cells.iter().collect()),
        _ => (FindError::SeveralCells, found),
    };
    let lines = all.iter().take(MOST_NAMED).map(|c| format!("\n  {} {}", c.id, cell_name(c)));
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!("\n  and {}", count(more, "further cell")),
    };
    Err(error(lines.collect::<String>() + &more))
}

/// Computes what theory knows of a cell of a plan on one of its instances, whose number is counted from 0; `known`
/// gives optima that earlier runs searched for.
///
/// # Errors
/// If the instance cannot be built, or there is none of this number.
pub fn cell_theory<'a>(
    plan: &Plan,
    known: KnownOptima<'_>,
    cell: &'a Cell,
    instance: usize,
) -> Result<CellTheory<'a>, Error> {
    if !plan.manifest.record.optimum {
        let why = needs_optimum(plan.manifest.problem());
        let message = format!("what theory knows of a cell {why}");
        return Err(error(Path::new(&plan.source.name), message));
    }
    let prepared = build_knowing(plan, known, &[cell])?.remove(0);
    let Some(scenario) = prepared.scenarios.get(instance) else {
        let there = count(prepared.scenarios.len(), "instance");
        let message = format!("the cell has {there}; none has the number {instance}, from 0");
        return Err(error(Path::new(&plan.source.name), message));
    };
    if !scenario.instance.knows_facts_at_optimum() {
        let kind = cell.identity.problem.kind();
        let message = format!(
            "there is no theory of `{kind}`: its fields are not affine, and nothing but θ* is known of them"
        );
        return Err(error(Path::new(&plan.source.name), message));
    }
    let alone = [Prepared { scenarios: vec![scenario.clone()], ..prepared }];
    let known = KnownCell::new(&alone);
    let rounds = alone[0].recorded.to_vec();
    let values = KINDS.iter().map(|kind| value(&known, kind)).collect();
    let name = cell_name(cell);
    let bounds = bounds(&known, &rounds);
    let program = match predict::program(cell, known.scenario).map(|traced| &**traced) {
        Some(Ok(program)) => Ok(program.to_string()),
        Some(Err(why)) => Err(UnknownProgram::Rounds(why.clone())),
        None => Err(UnknownProgram::BuiltIn),
    };
    Ok(CellTheory { cell, name, rounds, values, bounds, program })
}

/// The value of this kind for a cell, or why it is not known. A value without any finite number counts as not known.
fn value(known: &KnownCell<'_>, kind: &'static ValueKind) -> TheoryValue {
    // With the prediction that gives it, if one does.
    let (value, by) = match kind.how {
        ValueSource::Found(_, find) => (find(known), None),
        ValueSource::Moments(quantity) => {
            // The clients have taken no local steps at round 0.
            let on = (known.prepared.cell, known.scenario);
            (
                known.of_moments(|m| {
                    vec![quantity_of_any_moments(m, quantity, on).unwrap_or(f64::NAN)]
                }),
                None,
            )
        }
        ValueSource::Curve(quantity, by) => {
            (known.theory.curve(known.id(), quantity, by), Some(by))
        }
        ValueSource::AtRest(quantity) => {
            let found = known.theory.at_rest(known.id(), quantity);
            (found.map(|x| vec![x]), Some(Prediction::Stationary))
        }
        ValueSource::Vector(what, by) => {
            (known.theory.vector(known.id(), what, by, AveragedOver::Cycle), Some(by))
        }
    };
    // A radius may be infinite.
    let value = value.filter(|all: &Vec<f64>| {
        all.iter().any(|x: &f64| x.is_finite() || kind.is_radius() && !x.is_nan())
    });
    TheoryValue {
        kind,
        shape: kind.axes.iter().map(|axis| length(known, axis)).collect(),
        value: value.ok_or_else(|| reason(known, kind, by)),
    }
}

/// How many entries a value of a cell has along an axis.
fn length(known: &KnownCell<'_>, axis: &ArrayAxis) -> usize {
    match axis {
        ArrayAxis::Rounds => known.prepared.recorded.len(),
        ArrayAxis::Clients => known.facts.clients(),
        ArrayAxis::Entries => known.facts.dim(),
    }
}

/// Why a value of this kind, which the prediction `by` would give if there is one, is not known of a cell. The value
/// was asked for before and was not found, so that theory has noted what was too costly.
fn reason(known: &KnownCell<'_>, kind: &ValueKind, by: Option<Prediction>) -> UnknownValue {
    let too_costly = match &known.moments {
        Err(predict::NoMoments::Costly(cost)) if kind.needs_moments() => Some(*cost),
        _ => by.and_then(|by| known.theory.too_costly(known.id(), by)),
    };
    let too_costly = too_costly.map(|cost| predict::NoMoments::Costly(cost).into());
    too_costly.or_else(|| own_reason(known, kind)).unwrap_or_else(|| {
        let elsewhere = UnknownValue::Elsewhere(kind.known);
        match &known.moments {
            Err(predict::NoMoments::Unknown(error)) if kind.is_of_rounds() => {
                UnknownValue::OfRounds { error: error.clone(), known: kind.known }
            }
            Ok(_) if kind.is_radius() => match known.radii() {
                Ok(_) => elsewhere,
                Err(none) => none.clone().into(),
            },
            _ => elsewhere,
        }
    })
}

/// Why a value of this kind is not known of a cell with a custom algorithm; `None` if the algorithm is built in, or if
/// it is not the reason.
fn own_reason(known: &KnownCell<'_>, kind: &ValueKind) -> Option<UnknownValue> {
    let cell = known.prepared.cell;
    let scenario = known.scenario;
    let program = predict::program(cell, scenario)?;
    if kind.is_of_instance() {
        return None;
    }
    Some(match (&**program, &known.moments) {
        _ if !kind.is_of_rounds() => UnknownValue::BuiltInAlone,
        (Err(error), _) => predict::NoMoments::Unknown(error.clone().into()).into(),
        (Ok(_), Err(none)) => none.clone().into(),
        (Ok(_), Ok(_)) if kind.is_radius() => known.radii().as_ref().err()?.clone().into(),
        (Ok(_), Ok(_)) => match predict::cycle(cell, scenario)? {
            Err(none) => none.into(),
            Ok(cycle) => predict::NoMoments::Unknown(cycle.stationary().err()?).into(),
        },
    })
}

/// The published bounds that are about a cell's algorithm, with their values at a round: first those that tables list.
/// The list has the same bounds at each round.
fn bounds_at(known: &KnownCell<'_>, round: u64) -> Vec<Bound> {
    let mut bounds = known.theory.listed_bounds(known.id(), round);
    bounds.extend(known.theory.unlisted_bounds(known.id(), round));
    bounds
}

/// The published bounds that are about a cell's algorithm, with their values at these rounds.
fn bounds(known: &KnownCell<'_>, rounds: &[u64]) -> Vec<BoundCurve> {
    let mut curves = Vec::new();
    for bound in rounds.last().into_iter().flat_map(|last| bounds_at(known, *last)) {
        let quantity = quantity_of(&bound).name();
        curves.push(BoundCurve { bound, quantity, values: Vec::with_capacity(rounds.len()) });
    }
    for round in rounds {
        for (curve, bound) in curves.iter_mut().zip(bounds_at(known, *round)) {
            curve.values.push(bound.value.unwrap_or(f64::NAN));
        }
    }
    curves
}
