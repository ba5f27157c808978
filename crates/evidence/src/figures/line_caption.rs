//! The captions of figures of lines.

use crate::cells::CellResult;
use crate::cells::cost_sample::NoSample;
use crate::cells::costs::{paid_costs, when_text};
use crate::cells::symbols::quantity_symbol;
use crate::figures::kind::TheoryKind;
use crate::figures::line_figure::LineFigure;
use crate::figures::measured::band_name;
use crate::figures::predicted_lines;
use crate::predictions::Theory;
use crate::ranking::grid_points;
use crate::scene::figure::{Band, NO_RESULTS, Plot, Scale, XAxis};
use crate::scene::line::Line;
use exactfed_core::words::{count, enumerated};
use exactfed_runner::manifest::{ComparedAt, Quantity};

impl LineFigure<'_> {
    /// The caption of the figure of these cells, which `plot` has drawn: what the points are means of, what the band
    /// and the predictions are, and what a reader must know of diverged runs, clipped bands and omitted points.
    pub(super) fn caption(
        &self,
        cells: &[&CellResult<'_>],
        plot: &Plot,
        theory: &Theory<'_>,
    ) -> String {
        if plot.series().all(|s| s.points.is_empty()) {
            return empty_caption(cells);
        }
        let over_rounds = matches!(self.x, XAxis::Rounds(_));
        let mut caption = self.sentence_on_means(cells);
        if let XAxis::Rounds(x) = self.x
            && cells.iter().any(|cell| has_uneven_values(cell, x))
        {
            caption.push_str(
                " Runs have different costs at the same recorded round; the x axis shows their mean.",
            );
        }
        if plot.labels.is_ranked && cells.iter().any(|cell| cell.is_over_instances()) {
            caption.push_str(
                " Ratios next to the curves are of geometric means over the instances, as in the ranking.",
            );
        }
        if self.band != Band::None {
            caption.push_str(
                " A band that reaches beyond the panel, or down to 0, is clipped at its edge.",
            );
        }
        if over_rounds
            && plot.scale_y == Scale::Log
            && plot.series().any(|s| s.line.is_measured() && s.points.iter().any(|p| p.y == 0.0))
        {
            caption.push_str(" A mean of 0 is omitted, because the axis is logarithmic.");
        }
        if plot.series().any(|s| matches!(s.line, Line::Reference(_))) {
            caption.push_str(
                " Grey dots: a reference slope through the first point of the first curve.",
            );
        }
        caption.push_str(&predicted_lines::caption(
            self.theory,
            &self.x,
            self.first(),
            plot,
            cells,
            theory,
        ));
        let with_bias = over_rounds && self.theory.contains(&TheoryKind::ExactBias);
        if with_bias && cells.iter().all(|cell| cell.exact_bias.is_none()) {
            caption.push_str(
                " The exact bias is not known: the field is not linear, or draws are not independent.",
            );
        }
        caption.push_str(&diverged_text(cells, over_rounds));
        caption.push_str(&self.unreached_text(cells));
        caption
    }

    /// What the caption says about the cells with runs that do not reach the target at which the figure shows them,
    /// with the number of such runs; empty if there are none, and in a figure without a target.
    fn unreached_text(&self, cells: &[&CellResult<'_>]) -> String {
        let Some(at) = self.at.filter(|at| at.target().is_some()) else { return String::new() };
        let y = self.first();
        let without =
            |cell: &&&CellResult<'_>| cell.runs.sample(y, Some(at)) == Err(NoSample::Unreached);
        let omitted: Vec<&&CellResult<'_>> = cells.iter().filter(without).collect();
        if omitted.is_empty() {
            return String::new();
        }
        let values = omitted.iter().flat_map(|cell| cell.runs.values_at_target(y, at));
        let unreached = values.clone().filter(|value| value.is_none()).count();
        format!(
            " {} of {} cells are omitted: {} of {} do not reach the target.",
            omitted.len(),
            cells.len(),
            unreached,
            count(values.count(), "run")
        )
    }

    /// The beginning of the caption: what the points are means of, over how many runs, what the band is, and what the
    /// runs behind points at the last round have paid.
    fn sentence_on_means(&self, cells: &[&CellResult<'_>]) -> String {
        let names: Vec<String> = self.y.iter().map(|y| quantity_symbol(*y, cells)).collect();
        let y = enumerated(&names);
        let runs = crate::cells::sample_in_words(cells);
        let band = band_name(self.band, self.first());
        if matches!(self.x, XAxis::Rounds(_)) {
            return format!("Mean of {y} over n = {runs}; {band}.");
        }
        if self.first().average().is_some() {
            return format!(
                "{y}, from averages over the rounds after the burn-in, of n = {runs}; {band}."
            );
        }
        let costs = costs_of_points(cells, self.at);
        format!("Mean of {y} {} over n = {runs}; {band}.{costs}", when_text(self.at))
    }
}

/// What a caption says about the cells with runs that diverged; empty if none did. `over_rounds` tells curves over
/// rounds, which end there, from points at the last round, which such cells do not have.
fn diverged_text(cells: &[&CellResult<'_>], over_rounds: bool) -> String {
    let all = cells.len();
    let diverged = cells.iter().filter(|c| c.runs.diverged > 0).count();
    match diverged {
        0 => String::new(),
        _ if over_rounds => format!(
            " Runs diverged in {diverged} of {all} cells (✕): the curve of such a cell ends where the first run diverged."
        ),
        _ => format!(" {diverged} of {all} cells have runs that diverged and are omitted."),
    }
}

/// A sentence of a caption about what the runs behind the points have paid, which is stated for the algorithms that
/// are compared at each grid point; with one algorithm, which is compared with nothing, for each cell by itself. It
/// may be empty.
fn costs_of_points(cells: &[&CellResult<'_>], at: Option<ComparedAt>) -> String {
    let (_, points) = grid_points(cells);
    let mut points: Vec<&[&CellResult<'_>]> = points.iter().map(|p| &p.cells[..]).collect();
    if points.is_empty() {
        points = cells.chunks(1).collect();
    }
    let costs = paid_costs(&points, at);
    if costs.is_empty() { costs } else { format!(" {costs}") }
}

/// Whether the runs of a cell have different values of a quantity at the same recorded round, as costs that are random.
fn has_uneven_values(cell: &CellResult<'_>, quantity: Quantity) -> bool {
    let columns = cell.runs.columns(quantity);
    let Some((first, others)) = columns.split_first() else { return false };
    others.iter().any(|other| first.iter().zip(other.iter()).any(|(a, b)| a != b))
}

/// The caption of a figure of these cells without any point: why it is empty.
fn empty_caption(cells: &[&CellResult<'_>]) -> String {
    let diverged = cells.iter().filter(|c| c.runs.diverged > 0).count();
    let why = match (cells.len(), diverged) {
        (0, _) => return NO_RESULTS.into(),
        (all, diverged) if all == diverged => "runs of every cell diverged",
        _ => "no cell has results for this metric",
    };
    format!("The figure is empty: {why}.")
}
