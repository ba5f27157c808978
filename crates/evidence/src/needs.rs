//! What the figures and claims of a manifest need of each cell: columns of its traces, and
//! predictions of theory.

use crate::cells::CellResult;
use crate::cells::costs::STATED;
use crate::cells::runs::TraceNeeds;
use crate::claims::{Claim, ClaimedCells, claims};
use crate::figures::kind::{DrawnCells, DrawnFigure, TheoryKind};
use crate::figures::{Figures, drawn_figures};
use crate::predictions::instances::AT_ONCE;
use exactfed_runner::manifest::{Prediction, TimeAverage};
use exactfed_runner::plan::{Cell, Plan, selected, shows};
use std::collections::HashSet;

/// What the figures and the claims of a plan need of its cells.
pub struct Needs<'a> {
    plan: &'a Plan,
    /// The claims of the plan.
    claims: Vec<Box<dyn Claim<'a> + 'a>>,
    /// The figures that draw every cell that they may show, so that their needs are known before results are read.
    complete: Vec<Box<dyn DrawnFigure<'a> + 'a>>,
}

impl<'a> Needs<'a> {
    /// What the figures and the claims of a plan need.
    pub fn of_plan(plan: &'a Plan) -> Self {
        let mut complete = drawn_figures(plan);
        complete.retain(|figure| draws_all(&**figure, plan));
        Self { complete, ..Self::of_claims(plan) }
    }

    /// What the claims of a plan need, without its figures.
    pub fn of_claims(plan: &'a Plan) -> Self {
        Self { plan, claims: claims(plan), complete: Vec::new() }
    }

    /// What figures, claims, the ranking and tuning need of a cell's traces when they are read first. Figures that draw
    /// some of many cells choose them by these results, and the chosen cells are then read again for them.
    pub fn traces(&self, cell: &Cell) -> TraceNeeds {
        let mut needs = TraceNeeds::default();
        for figure in self.complete.iter().filter(|figure| shows(figure.cells().common, cell)) {
            figure.add_needs(&mut needs);
        }
        let manifest = &self.plan.manifest;
        needs.add_at(manifest.ranked_at(), STATED.into_iter().chain([manifest.ranked_by()]));
        if let Some(tune) = &manifest.tune {
            needs.add_at(tune.at, [tune.metric]);
        }
        let claimed = self.claims.iter().filter_map(|claim| claim.cells());
        claimed.for_each(|claimed| claimed.add_needs(cell, &mut needs));
        needs
    }

    /// What each claim needs of the cells that it is about, for the claims that are made for this cell, and not for
    /// claims that only compare other cells with it ([`ClaimedCells::right`]).
    fn claims_on<'c>(&'c self, cell: &'c Cell) -> impl Iterator<Item = ClaimedCells<'a>> {
        let claimed = self.claims.iter().filter_map(|claim| claim.cells());
        claimed.filter(|claimed| selected(cell, claimed.of))
    }

    /// The predictions of theory for a cell that claims compare it with, one for each such claim: a prediction may come
    /// several times.
    pub fn claimed_predictions<'c>(&'c self, cell: &'c Cell) -> impl Iterator<Item = Prediction> {
        self.claims_on(cell).filter_map(|claimed| claimed.prediction)
    }

    /// Whether a claim compares a cell with a prediction of theory.
    pub fn claims_need_theory(&self, cell: &Cell) -> bool {
        self.claimed_predictions(cell).next().is_some()
    }

    /// Whether a claim needs a cell's exact moments round by round.
    pub fn claims_need_moments(&self, cell: &Cell) -> bool {
        self.claims_on(cell).any(|claimed| claimed.needs_moments())
    }

    /// The cells for which a figure that is drawn of them, or a claim, needs theory. `cells` are the cells of the plan
    /// that have results, which `figures` names by their indices.
    pub fn theory<'c>(
        &self,
        figures: &Figures<'_>,
        cells: &'c [CellResult<'_>],
    ) -> TheoryNeeds<'c> {
        // The cells of the figures that draw something, and those that claims need it for.
        let ids = |draws: fn(&dyn DrawnFigure<'_>) -> bool, claimed: fn(&Self, &Cell) -> bool| {
            let chosen =
                figures.iter().filter(|(drawn, _)| draws(*drawn)).flat_map(|(_, places)| places);
            let in_claims = cells.iter().filter(|cell| claimed(self, cell.cell));
            let all = chosen.map(|place| &cells[*place]).chain(in_claims);
            all.map(|cell| cell.cell.id.as_str()).collect()
        };
        TheoryNeeds {
            // Of many cells, every one needs theory where the page has a table with a row for each: of published
            // bounds, or of measured biases.
            every_cell: self.plan.cells.len() <= AT_ONCE
                || shows_bounds(self.plan)
                || self.plan.manifest.record.averages.contains(&TimeAverage::Bias),
            any: ids(|figure| figure.cells().needs_theory, Self::claims_need_theory),
            moments: ids(|figure| figure.cells().needs_moments, Self::claims_need_moments),
        }
    }
}

/// The cells for which theory is needed, by id.
pub struct TheoryNeeds<'c> {
    /// Whether theory is needed for every cell: because the page has predictions for each, or because cells are few.
    pub every_cell: bool,
    /// The cells for which a figure or a claim needs theory.
    pub any: HashSet<&'c str>,
    /// The cells whose exact moments at each recorded round a figure draws or a claim needs.
    pub moments: HashSet<&'c str>,
}

/// Whether a figure draws every cell of a plan that it may show, so that it is known before results are read what must
/// be read for it. A figure that follows the traces of its cells draws a sample of them if they are more than its
/// [`DrawnCells::most_followed`].
pub fn draws_all(figure: &dyn DrawnFigure<'_>, plan: &Plan) -> bool {
    let DrawnCells { common, most_followed, .. } = figure.cells();
    most_followed.is_none_or(|most| {
        let cells = plan.cells.iter().filter(|cell| shows(common, cell));
        cells.take(most + 1).count() <= most
    })
}

/// Whether a figure draws the exact moments of a cell at each recorded round, or a claim is tested on them.
/// `exactfed plan` then says of how many cells they can be computed.
pub fn wants_moments(plan: &Plan, cell: &Cell) -> bool {
    let mut figures = drawn_figures(plan).into_iter().map(|figure| figure.cells());
    figures.any(|drawn| drawn.needs_moments && shows(drawn.common, cell))
        || Needs::of_claims(plan).claims_need_moments(cell)
}

/// Whether a figure of a plan draws published bounds or a claim is tested on one, so that the page has a table of them.
pub fn shows_bounds(plan: &Plan) -> bool {
    let claims = claims(plan);
    let mut claimed = claims.iter().filter_map(|claim| claim.cells()?.prediction);
    draws(plan, TheoryKind::is_of_bounds) || claimed.any(Prediction::is_bound)
}

/// Whether a figure draws exact biases, so that tables have them too.
pub fn draws_exact_bias(plan: &Plan) -> bool {
    draws(plan, |kind| kind == TheoryKind::ExactBias)
}

/// Whether a figure of a plan draws a prediction of a kind for which `is_meant` is true.
fn draws(plan: &Plan, is_meant: fn(TheoryKind) -> bool) -> bool {
    let figures = drawn_figures(plan);
    figures.iter().any(|figure| figure.cells().predictions.iter().any(|kind| is_meant(*kind)))
}
