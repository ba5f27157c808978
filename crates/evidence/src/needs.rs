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

/// What a manifest needs.
pub struct Needs<'a> {
    plan: &'a Plan,
    claims: Vec<Box<dyn Claim<'a> + 'a>>,
    /// The figures that draw every cell that they may show.
    complete: Vec<Box<dyn DrawnFigure<'a> + 'a>>,
}

impl<'a> Needs<'a> {
    /// What figures and claims need.
    pub fn of_plan(plan: &'a Plan) -> Self {
        let mut complete = drawn_figures(plan);
        complete.retain(|figure| draws_all(&**figure, plan));
        Self { complete, ..Self::of_claims(plan) }
    }

    /// What the claims of a plan need, without its figures.
    pub fn of_claims(plan: &'a Plan) -> Self {
        Self { plan, claims: claims(plan), complete: Vec::new() }
    }

    /// What is needed of a cell's traces when they are read first.
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

    /// What claims state of their cells, of which the cell is one.
    fn claims_on<'c>(&'c self, cell: &'c Cell) -> impl Iterator<Item = ClaimedCells<'a>> {
        let claimed = self.claims.iter().filter_map(|claim| claim.cells());
        claimed.filter(|claimed| selected(cell, claimed.of))
    }

    /// The predictions for a cell that claims are tested on.
    pub fn claimed_predictions<'c>(&'c self, cell: &'c Cell) -> impl Iterator<Item = Prediction> {
        self.claims_on(cell).filter_map(|claimed| claimed.prediction)
    }

    /// Whether a claim needs theory of a cell.
    pub fn claims_need_theory(&self, cell: &Cell) -> bool {
        self.claimed_predictions(cell).next().is_some()
    }

    /// Whether a claim needs a cell's exact moments round by round.
    pub fn claims_need_moments(&self, cell: &Cell) -> bool {
        self.claims_on(cell).any(|claimed| claimed.needs_moments())
    }

    /// The cells for which a figure or a claim needs theory.
    pub fn theory<'c>(
        &self,
        figures: &Figures<'_>,
        cells: &'c [CellResult<'_>],
    ) -> TheoryNeeds<'c> {
        let ids = |draws: fn(&dyn DrawnFigure<'_>) -> bool, claimed: fn(&Self, &Cell) -> bool| {
            let chosen =
                figures.iter().filter(|(drawn, _)| draws(*drawn)).flat_map(|(_, places)| places);
            let in_claims = cells.iter().filter(|cell| claimed(self, cell.cell));
            let all = chosen.map(|place| &cells[*place]).chain(in_claims);
            all.map(|cell| cell.cell.id.as_str()).collect()
        };
        TheoryNeeds {
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
    /// Whether the page has predictions for every cell, or these are few.
    pub every_cell: bool,
    /// Cells for which a figure or a claim needs theory.
    pub any: HashSet<&'c str>,
    /// Cells whose exact moments a figure draws or a claim needs.
    pub moments: HashSet<&'c str>,
}

/// Whether a figure draws every cell that it may show, as far as its traces are followed.
pub fn draws_all(figure: &dyn DrawnFigure<'_>, plan: &Plan) -> bool {
    let DrawnCells { common, most_followed, .. } = figure.cells();
    most_followed.is_none_or(|most| {
        let cells = plan.cells.iter().filter(|cell| shows(common, cell));
        cells.take(most + 1).count() <= most
    })
}

/// Whether a figure or a claim needs a cell's exact moments round by round.
pub fn wants_moments(plan: &Plan, cell: &Cell) -> bool {
    let mut figures = drawn_figures(plan).into_iter().map(|figure| figure.cells());
    figures.any(|drawn| drawn.needs_moments && shows(drawn.common, cell))
        || Needs::of_claims(plan).claims_need_moments(cell)
}

/// Whether a figure draws published bounds or a claim is tested on one.
pub fn shows_bounds(plan: &Plan) -> bool {
    let claims = claims(plan);
    let mut claimed = claims.iter().filter_map(|claim| claim.cells()?.prediction);
    draws(plan, TheoryKind::is_of_bounds) || claimed.any(Prediction::is_bound)
}

/// Whether a figure draws exact biases, so that tables have them too.
pub fn draws_exact_bias(plan: &Plan) -> bool {
    draws(plan, |kind| kind == TheoryKind::ExactBias)
}

fn draws(plan: &Plan, is_meant: fn(TheoryKind) -> bool) -> bool {
    let figures = drawn_figures(plan);
    figures.iter().any(|figure| figure.cells().predictions.iter().any(|kind| is_meant(*kind)))
}
