//! The published bounds for the cells of an experiment that names them: their value at the last
//! round, or the conditions that fail.

use super::CellResult;
use super::theory::{Theory, fits};
use crate::stats::mean;
use driftbench_core::theory::bounds::Bounded;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::figure::TheoryKind;
use driftbench_runner::plan::Plan;

/// A bound for a cell.
#[derive(Clone, Debug)]
pub struct BoundRow {
    /// The cell's id and label.
    pub cell: (String, String),
    /// The settings that distinguish the cell.
    pub details: String,
    /// Source and number of the bound.
    pub name: &'static str,
    /// Whether it is proved; if not, it has the leading terms alone.
    pub proved: bool,
    /// Its value at the last round; `None` where conditions fail.
    pub value: Option<f64>,
    /// The conditions that fail: their text, the value of the cell and the value that they allow;
    /// 0 and 1 of a condition that holds or does not.
    pub unmet: Vec<(String, f64, f64)>,
    /// The mean at the last round of the quantity that it bounds, where it is recorded.
    pub measured: Option<f64>,
}

/// The bounds for each cell, if a figure draws bounds or a claim is tested on one.
pub fn rows(plan: &Plan, cells: &[CellResult<'_>], theory: &Theory<'_>) -> Vec<BoundRow> {
    let figures = &plan.manifest.figure;
    let convergence = figures.convergence.iter().flat_map(|f| &f.theory);
    let mut drawn = convergence.chain(figures.scaling.iter().flat_map(|f| &f.theory));
    let claims = &plan.manifest.claim;
    let mut named = claims
        .less
        .iter()
        .map(|c| c.prediction)
        .chain(claims.reaches.iter().map(|c| c.prediction))
        .flatten();
    if !drawn.any(|t| *t == TheoryKind::Bounds) && !named.any(|p| p.is_bound()) {
        return Vec::new();
    }
    let rows = cells.iter().flat_map(|cell| {
        let bounds = theory.bounds(&cell.cell.id, cell.cell.identity.rounds);
        bounds.into_iter().map(move |bound| {
            let quantity = match bound.quantity {
                Bounded::SqError => Quantity::SqError,
                Bounded::Lyapunov => Quantity::Lyapunov,
                Bounded::Bias => Quantity::Bias,
                Bounded::LimitSqError => Quantity::SqErrorLimit,
            };
            let measured = cell.finals(quantity).filter(|_| fits(&bound, quantity));
            BoundRow {
                cell: (cell.cell.id.clone(), cell.cell.label.clone()),
                details: super::setting_text::details(cell.cell, &[]),
                measured: measured.map(|sample| mean(&sample)),
                name: bound.name,
                proved: bound.proved,
                value: bound.value.as_ref().ok().copied(),
                unmet: bound
                    .value
                    .err()
                    .into_iter()
                    .flatten()
                    .map(|u| (u.condition, u.have, u.need))
                    .collect(),
            }
        })
    });
    rows.collect()
}
