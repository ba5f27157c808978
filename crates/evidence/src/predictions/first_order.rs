//! Where the first order of the bias holds: γ(H − 1)Nλ of each cell, and how far its measured bias
//! is from the first order, from the sum with the next term and from the closure.

use crate::cells::CellResult;
use crate::predictions::Theory;
use crate::stats::ROUNDING_FLOOR;
use exactfed_core::kernel::{axpy, dot};
use exactfed_runner::manifest::{Prediction, TimeAverage};
use exactfed_runner::plan::Cell;
use exactfed_runner::runner::predict::AveragedOver;

/// How far the measured bias of a cell is from its expansions.
#[derive(Clone, Debug)]
pub struct FirstOrderRow<'a> {
    /// The cell whose bias is compared.
    pub cell: &'a Cell,
    /// γ(H − 1)Nλ, with λ the largest diagonal entry of A: the first order holds where this is small.
    pub reach: f64,
    /// ‖E θ − θ*‖ as measured.
    pub bias: f64,
    /// ‖measured − predicted‖/‖predicted‖ of the first order, of the first order
    /// and the term after it, and of the closure; `None` where nothing but rounding is
    /// predicted, or where the prediction is not known.
    pub apart: [Option<f64>; 3],
}

/// A row for each cell with a measured bias and an expansion of it that predicts more than rounding, in the order of
/// γ(H − 1)Nλ.
pub fn rows<'a>(cells: &[CellResult<'a>], theory: &Theory<'_>) -> Vec<FirstOrderRow<'a>> {
    let mut rows: Vec<FirstOrderRow<'a>> =
        cells.iter().filter_map(|cell| row(cell, theory)).collect();
    rows.retain(|row| row.apart.iter().any(Option::is_some));
    rows.sort_by(|a, b| a.reach.total_cmp(&b.reach));
    rows
}

/// The row of a cell; `None` if its bias is not recorded, a run diverged, or no expansion applies.
fn row<'a>(cell: &CellResult<'a>, theory: &Theory<'_>) -> Option<FirstOrderRow<'a>> {
    let sample = cell
        .runs
        .averages(TimeAverage::Bias)
        .filter(|s| cell.runs.diverged == 0 && !s.is_empty())?;
    let mut mean = vec![0.0; sample[0].len()];
    sample.iter().for_each(|x| axpy(1.0 / sample.len() as f64, x, &mut mean));
    let by = [Prediction::FirstOrder, Prediction::SecondOrder, Prediction::Closure];
    let apart = by.map(|by| {
        let predicted =
            theory.vector(&cell.cell.id, TimeAverage::Bias, by, AveragedOver::Rounds)?;
        let size = norm(&predicted);
        let is_zero = size < ROUNDING_FLOOR.sqrt();
        let mut off = mean.clone();
        axpy(-1.0, &predicted, &mut off);
        (!is_zero).then(|| norm(&off) / size)
    });
    Some(FirstOrderRow {
        cell: cell.cell,
        reach: theory.reach(&cell.cell.id)?,
        bias: norm(&mean),
        apart,
    })
}

/// The length of a vector.
fn norm(x: &[f64]) -> f64 {
    libm::sqrt(dot(x, x))
}
