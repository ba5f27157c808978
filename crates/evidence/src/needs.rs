//! What the figures and claims of a manifest need of each cell: columns of its traces, and
//! predictions of theory.

use crate::cells::CellResult;
use crate::cells::costs::STATED;
use crate::cells::runs::TraceNeeds;
use crate::claims::{Against, MeanComparison};
use crate::figures::downsample::{FigureCells, MOST_CURVES};
use crate::figures::line_figure::LineFigure;
use exactfed_runner::manifest::claim::{ClaimTables as Claims, Prediction, Selection, When};
use exactfed_runner::manifest::figure::{Convergence, TheoryKind};
use exactfed_runner::manifest::{Quantity, TimeAverage};
use exactfed_runner::plan::{Cell, Plan, selected, shows};
use std::collections::HashSet;

/// What a manifest needs.
pub struct Needs<'a> {
    plan: &'a Plan,
    /// The figures of curves that draw every cell that they may show.
    complete: Vec<&'a Convergence>,
}

impl<'a> Needs<'a> {
    /// What figures and claims need.
    pub fn of_plan(plan: &'a Plan) -> Self {
        let is_complete = |figure: &&Convergence| {
            let cells = plan.cells.iter().filter(|cell| shows(&figure.common, cell));
            cells.take(MOST_CURVES + 1).count() <= MOST_CURVES
        };
        let figures = plan.manifest.figure.convergence.iter();
        Self { plan, complete: figures.filter(is_complete).collect() }
    }

    /// What claims need.
    pub fn of_claims(plan: &'a Plan) -> Self {
        Self { plan, complete: Vec::new() }
    }

    /// Whether a figure draws every cell that it may show.
    pub fn draws_all(&self, figure: &Convergence) -> bool {
        self.complete.iter().any(|complete| std::ptr::eq(*complete, figure))
    }

    /// What is needed of a cell's traces when they are read first.
    pub fn traces(&self, cell: &Cell) -> TraceNeeds {
        let mut needs = TraceNeeds::default();
        for figure in self.complete.iter().filter(|figure| shows(&figure.common, cell)) {
            add_figure(figure, &mut needs);
        }
        let manifest = &self.plan.manifest;
        if let Some(at) = manifest.ranked_at() {
            needs.add_at(at, STATED.into_iter().chain([manifest.ranked_by()]));
        }
        if let Some(tune) = &manifest.tune {
            tune.at.iter().for_each(|at| needs.add_at(*at, [tune.metric]));
        }
        for figure in manifest.figure.winners.iter().filter(|figure| shows(&figure.common, cell)) {
            if let Some(at) = figure.at {
                needs.add_at(at, STATED.into_iter().chain([figure.metric]));
            }
        }
        add_claims(&manifest.claim, cell, &mut needs);
        needs
    }

    /// The cells for which a figure or a claim needs theory, by id.
    pub fn theory<'c>(&self, shown: &FigureCells, cells: &'c [CellResult<'_>]) -> HashSet<&'c str> {
        let mut ids = self.ids(shown, cells, |line| !line.theory.is_empty(), claims_need_theory);
        let maps = self.plan.manifest.figure.stability.iter();
        let mapped = maps.flat_map(|figure| &shown.of(&figure.common).cells);
        ids.extend(mapped.map(|place| cells[*place].cell.id.as_str()));
        ids
    }

    /// The cells whose exact moments a figure draws or a claim needs, by id.
    pub fn moments<'c>(
        &self,
        shown: &FigureCells,
        cells: &'c [CellResult<'_>],
    ) -> HashSet<&'c str> {
        self.ids(shown, cells, draws_moments, claims_need_moments)
    }

    /// The cells that are drawn in such a figure of lines, or that such a claim is about.
    fn ids<'c>(
        &self,
        shown: &FigureCells,
        cells: &'c [CellResult<'_>],
        figure: impl Fn(&LineFigure<'_>) -> bool,
        claimed: impl Fn(&Plan, &Cell) -> bool,
    ) -> HashSet<&'c str> {
        let lines = LineFigure::all(&self.plan.manifest.figure).filter(figure);
        let chosen = lines.flat_map(|line| &shown.of(line.common).cells);
        let in_claims = cells.iter().filter(|cell| claimed(self.plan, cell.cell));
        let all = chosen.map(|place| &cells[*place]).chain(in_claims);
        all.map(|cell| cell.cell.id.as_str()).collect()
    }
}

/// Whether a figure draws exact moments.
fn draws_moments(figure: &LineFigure<'_>) -> bool {
    figure.y.average().is_none() && figure.theory.contains(&TheoryKind::ExactMoments)
}

/// Adds what a figure of curves draws: a page offers each curve over any cost.
pub fn add_figure(figure: &Convergence, needs: &mut TraceNeeds) {
    needs.along.extend(Quantity::COSTS.into_iter().chain([figure.x, figure.y]));
}

/// Adds what claims need of a cell.
fn add_claims(table: &Claims, cell: &Cell, needs: &mut TraceNeeds) {
    let mut follow = |cells: &Selection, at: When, quantities: &[Quantity]| {
        let quantities = quantities.iter().copied().filter(|q| q.average().is_none());
        match at.cost() {
            _ if at == When::End || !selected(cell, cells) => {}
            Some(at) => needs.add_at(at, quantities),
            None => needs.along.extend(quantities),
        }
    };
    for c in MeanComparison::all(table) {
        follow(c.left, c.at, &[c.metric]);
        if let Against::Cells(right) = c.against {
            follow(right, c.at, &[c.metric]);
        }
    }
    for c in &table.slope {
        match &c.reaching {
            Some(reaching) => follow(&c.of, When::EveryRound, &[c.metric, reaching.cost]),
            None => follow(&c.of, c.at, &[c.metric]),
        }
    }
    for c in &table.reaches {
        follow(&c.of, When::EveryRound, &[c.metric, c.reaching.cost]);
    }
    let averages = table.matches.iter().filter(|c| selected(cell, &c.of));
    needs.averages.extend(averages.filter_map(|c| c.average));
}

/// Whether a figure or a claim needs a cell's exact moments round by round.
pub fn wants_moments(plan: &Plan, cell: &Cell) -> bool {
    LineFigure::all(&plan.manifest.figure)
        .any(|figure| draws_moments(&figure) && shows(figure.common, cell))
        || claims_need_moments(plan, cell)
}

/// Whether the page of a manifest has predictions for every cell.
pub fn every_cell_needs_theory(plan: &Plan) -> bool {
    shows_bounds(plan) || plan.manifest.record.averages.contains(&TimeAverage::Bias)
}

/// Whether a figure draws published bounds or a claim is tested on one.
pub fn shows_bounds(plan: &Plan) -> bool {
    let mut claimed = plan.manifest.claim.predictions();
    draws(plan, TheoryKind::Bounds) || claimed.any(|(_, by)| by.is_bound())
}

/// Whether a claim needs theory of a cell.
pub fn claims_need_theory(plan: &Plan, cell: &Cell) -> bool {
    plan.manifest.claim.predictions().any(|(cells, _)| selected(cell, cells))
}

/// Whether a claim needs a cell's exact moments round by round.
pub fn claims_need_moments(plan: &Plan, cell: &Cell) -> bool {
    MeanComparison::all(&plan.manifest.claim).any(|c| {
        let is_moment = matches!(c.against, Against::Prediction(Prediction::ExactMoments));
        is_moment && c.metric.average().is_none() && selected(cell, c.left)
    })
}

/// Whether a figure draws exact biases, so that tables have them too.
pub fn draws_exact_bias(plan: &Plan) -> bool {
    draws(plan, TheoryKind::ExactBias)
}

fn draws(plan: &Plan, kind: TheoryKind) -> bool {
    LineFigure::all(&plan.manifest.figure).any(|figure| figure.theory.contains(&kind))
}
