//! What theory knows of a cell, as arrays.

use super::errors::raise;
use super::plan::NativePlan;
use super::worker::interruptible;
use exactfed::cli::Failure;
use exactfed::evidence::exact::{
    ArrayAxis, BoundCurve, CellTheory, KINDS, ValueKind, cell_theory, find_cell,
};
use exactfed::store::Store;
use numpy::PyArray1;
use pyo3::prelude::*;

type FloatArray = Py<PyArray1<f64>>;
/// The id and the name of a cell, the recorded rounds, the values, the bounds, and the program of its rounds.
type FoundCell = (String, String, Vec<u64>, Vec<FoundValue>, Vec<FoundBound>, FoundProgram);
/// The program of the rounds of an algorithm as JSON, or why there is none: one of both is there.
type FoundProgram = (Option<String>, Option<String>);
/// A value: its name, the lengths of its axes, and its numbers or why there are none.
type FoundValue = (&'static str, Vec<usize>, Option<FloatArray>, Option<String>);
/// A bound: its name, its formula and the quantity that it bounds, whether it is proved, a number for each recorded
/// round, NaN where its conditions fail, and the conditions that fail at the last round.
type FoundBound = (&'static str, &'static str, &'static str, bool, FloatArray, Vec<String>);

/// What theory knows of a cell of a plan on one of its instances, for `exactfed.exact` of Python. The cell is the only
/// one whose id begins with `cell` and that matches `selection`, a table of settings as JSON; it is an error if there
/// is none or there are several.
#[pyfunction]
pub fn exact(
    py: Python<'_>,
    plan: &NativePlan,
    cell: String,
    selection: String,
    instance: usize,
) -> PyResult<FoundCell> {
    let plan = plan.plan.clone();
    let find = move || {
        let wanted = serde_json::from_str(&selection).map_err(Failure::input)?;
        let cell = find_cell(&plan, &cell, &wanted).map_err(Failure::input)?;
        let CellTheory { cell, name, rounds, values, bounds, program } =
            cell_theory(&plan, &Store::known_optima(&plan), cell, instance)?;
        Ok((cell.id, name, rounds, values, bounds, program))
    };
    let (id, name, rounds, values, bounds, program) = interruptible(py, raise, find)?;
    let values = values.into_iter().map(|value| {
        let (numbers, why) = match value.value {
            Ok(numbers) => (Some(PyArray1::from_vec(py, numbers).unbind()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        (value.kind.name, value.shape, numbers, why)
    });
    let curve = |BoundCurve { bound, quantity, values }| -> FoundBound {
        let info = bound.info;
        let unmet = bound.value.err().unwrap_or_default();
        let unmet = unmet.into_iter().map(|unmet| unmet.condition).collect();
        let values = PyArray1::from_vec(py, values).unbind();
        (&info.name, &info.formula, quantity, info.proved, values, unmet)
    };
    let bounds = bounds.into_iter().map(curve).collect();
    let program = (program.clone().ok(), program.err().map(|error| error.to_string()));
    Ok((id.to_string(), name, rounds, values.collect(), bounds, program))
}

/// The kinds of values that [`exact`] returns: the name of each, its axes as letters (R recorded rounds, N clients, d
/// entries of θ), and its meaning.
#[pyfunction]
pub fn theory_kinds() -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
    let axis = |axis: &ArrayAxis| match axis {
        ArrayAxis::Rounds => "R",
        ArrayAxis::Clients => "N",
        ArrayAxis::Entries => "d",
    };
    let kind = |kind: &ValueKind| (kind.name, kind.axes.iter().map(axis).collect(), kind.meaning);
    KINDS.iter().map(kind).collect()
}
