//! What a manifest's figures and claims ask of each cell: what is kept of its runs, and
//! whether theory has to speak of it.

use super::CellResult;
use super::downsample::{FigureCells, MOST_CURVES};
use super::panels::has_label;
use super::runs::{COSTS, TraceNeeds};
use driftbench_runner::manifest::claim::{Prediction, Selection, Table as Claims, When};
use driftbench_runner::manifest::figure::{Convergence, Theory as Drawn};
use driftbench_runner::manifest::{Quantity, TimeAverage};
use driftbench_runner::plan::{Cell, Plan, selected};
use std::collections::HashSet;

/// What a manifest asks.
pub struct Needs<'a> {
    plan: &'a Plan,
    /// The figures of curves that draw every cell that they name.
    whole: Vec<&'a Convergence>,
}

impl<'a> Needs<'a> {
    /// What figures and claims ask.
    pub fn of_plan(plan: &'a Plan) -> Self {
        let fits = |figure: &&Convergence| {
            let here = |cell: &&Cell| has_label(&figure.common.labels, cell);
            plan.cells.iter().filter(here).take(MOST_CURVES + 1).count() <= MOST_CURVES
        };
        Self { plan, whole: plan.manifest.figure.convergence.iter().filter(fits).collect() }
    }

    /// What claims ask.
    pub fn of_claims(plan: &'a Plan) -> Self {
        Self { plan, whole: Vec::new() }
    }

    /// Whether the cells of a figure are followed from the first reading on.
    pub fn draws_all(&self, figure: &Convergence) -> bool {
        self.whole.iter().any(|whole| std::ptr::eq(*whole, figure))
    }

    /// What is kept of a cell's runs when they are read.
    pub fn keep(&self, cell: &Cell) -> TraceNeeds {
        let mut keep = TraceNeeds::default();
        for figure in self.whole.iter().filter(|f| has_label(&f.common.labels, cell)) {
            follow(figure, &mut keep);
        }
        claims(&self.plan.manifest.claim, cell, &mut keep);
        keep
    }

    /// What is kept of a cell that a figure of more curves than it can draw has chosen.
    pub fn chosen(&self, cell: &Cell, by: &Convergence) -> TraceNeeds {
        let mut keep = self.keep(cell);
        follow(by, &mut keep);
        keep
    }
}

impl Needs<'_> {
    /// The cells of which a figure or a claim asks theory, by id.
    pub fn theory<'c>(&self, shown: &FigureCells, cells: &'c [CellResult<'_>]) -> HashSet<&'c str> {
        let mut wanted = self.ids(shown, cells, |line| !line.theory.is_empty(), theory_by_claims);
        let mapped = shown.stability.iter().flat_map(|chosen| &chosen.cells);
        wanted.extend(mapped.map(|place| cells[*place].cell.id.as_str()));
        wanted
    }

    /// The cells whose exact moments a figure draws or a claim asks for, by id.
    pub fn moments<'c>(
        &self,
        shown: &FigureCells,
        cells: &'c [CellResult<'_>],
    ) -> HashSet<&'c str> {
        self.ids(shown, cells, |line| line.of_moments(), moments_by_claims)
    }

    /// The cells that are shown in such a figure of lines, or that such a claim is about.
    fn ids<'c>(
        &self,
        shown: &FigureCells,
        cells: &'c [CellResult<'_>],
        figure: impl Fn(&Line<'_>) -> bool,
        claimed: impl Fn(&Plan, &Cell) -> bool,
    ) -> HashSet<&'c str> {
        let shown = shown.convergence.iter().chain(&shown.scaling);
        let drawn = lines(self.plan).zip(shown).filter(|(line, _)| figure(line));
        let drawn = drawn.flat_map(|(_, chosen)| &chosen.cells).map(|place| &cells[*place]);
        let claimed = cells.iter().filter(|cell| claimed(self.plan, cell.cell));
        drawn.chain(claimed).map(|cell| cell.cell.id.as_str()).collect()
    }
}

/// What a figure draws as lines, of theory too.
struct Line<'a> {
    labels: &'a [String],
    y: Quantity,
    theory: &'a [Drawn],
}

impl Line<'_> {
    /// Whether exact moments are drawn.
    fn of_moments(&self) -> bool {
        self.y.average().is_none() && self.theory.contains(&Drawn::ExactMoments)
    }
}

/// The figures of convergence, then those of scaling.
fn lines(plan: &Plan) -> impl Iterator<Item = Line<'_>> {
    let table = &plan.manifest.figure;
    let convergence = table.convergence.iter().map(|f| (&f.common.labels, f.y, &f.theory));
    let all = convergence.chain(table.scaling.iter().map(|f| (&f.common.labels, f.y, &f.theory)));
    all.map(|(labels, y, theory)| Line { labels, y, theory })
}

/// Whether a figure or a claim asks for a cell's exact moments round by round.
pub fn wants_moments(plan: &Plan, cell: &Cell) -> bool {
    lines(plan).any(|line| line.of_moments() && has_label(line.labels, cell))
        || moments_by_claims(plan, cell)
}

/// A page draws a curve over any cost.
fn follow(figure: &Convergence, keep: &mut TraceNeeds) {
    keep.along.extend(COSTS.into_iter().chain([figure.x, figure.y]));
}

fn claims(table: &Claims, cell: &Cell, keep: &mut TraceNeeds) {
    let mut follow = |of: &Selection, what: &[Quantity]| {
        if selected(cell, of) {
            keep.along.extend(what.iter().filter(|q| q.average().is_none()));
        }
    };
    let sides = table.less.iter().map(|c| (&c.left, &c.right, c.metric, c.at));
    let sides = sides.chain(table.at_least.iter().map(|c| (&c.left, &c.right, c.metric, c.at)));
    let matches = table.matches.iter().filter(|c| c.average.is_none());
    let sides = sides.chain(matches.map(|c| (&c.of, &c.right, c.metric.unwrap_or_default(), c.at)));
    for (left, right, metric, _) in sides.filter(|(.., at)| *at != When::End) {
        follow(left, &[metric]);
        right.iter().for_each(|right| follow(right, &[metric]));
    }
    for c in &table.slope {
        match &c.reaching {
            Some(reaching) => follow(&c.of, &[c.metric, reaching.cost]),
            None if c.at != When::End => follow(&c.of, &[c.metric]),
            None => {}
        }
    }
    for c in &table.reaches {
        follow(&c.of, &[c.metric, c.reaching.cost]);
    }
    let averages = table.matches.iter().filter(|c| selected(cell, &c.of));
    keep.averages.extend(averages.filter_map(|c| c.average));
}

/// Whether the page of a manifest tells something of theory for every cell.
pub fn theory_of_all(plan: &Plan) -> bool {
    let claims = &plan.manifest.claim;
    let named = claims.less.iter().map(|c| c.prediction);
    let mut named = named.chain(claims.reaches.iter().map(|c| c.prediction)).flatten();
    let averages = &plan.manifest.record.averages;
    drawn(plan).any(|t| t == Drawn::Bounds)
        || named.any(|p| p.is_bound())
        || averages.contains(&TimeAverage::Bias)
}

/// Whether a claim asks theory about a cell.
pub fn theory_by_claims(plan: &Plan, cell: &Cell) -> bool {
    let claims = &plan.manifest.claim;
    let asks = |of: &Selection, asked: bool| asked && selected(cell, of);
    claims.less.iter().any(|c| asks(&c.left, c.prediction.is_some()))
        || claims.at_least.iter().any(|c| asks(&c.left, c.prediction.is_some()))
        || claims.matches.iter().any(|c| asks(&c.of, c.prediction.is_some()))
        || claims.reaches.iter().any(|c| asks(&c.of, c.prediction.is_some()))
}

/// Whether a claim asks for a cell's exact moments round by round.
pub fn moments_by_claims(plan: &Plan, cell: &Cell) -> bool {
    let asks = |of: &Selection, y: Quantity, by: Option<Prediction>| {
        y.average().is_none() && by == Some(Prediction::ExactMoments) && selected(cell, of)
    };
    let claims = &plan.manifest.claim;
    let mut matches = claims.matches.iter().filter(|c| c.average.is_none());
    matches.any(|c| asks(&c.of, c.metric.unwrap_or_default(), c.prediction))
        || claims.less.iter().any(|c| asks(&c.left, c.metric, c.prediction))
        || claims.at_least.iter().any(|c| asks(&c.left, c.metric, c.prediction))
}

/// Whether a figure draws exact biases, so that tables have them too.
pub fn draws_exact_bias(plan: &Plan) -> bool {
    drawn(plan).any(|t| t == Drawn::ExactBias)
}

/// The kinds of lines that figures draw.
fn drawn(plan: &Plan) -> impl Iterator<Item = Drawn> {
    lines(plan).flat_map(|line| line.theory).copied()
}
