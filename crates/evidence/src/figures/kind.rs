//! What every kind of figure states about itself. Each kind has a file with its cells, what it needs of
//! results and theory, and how it is drawn.

use super::sample::ShownCells;
use crate::cells::CellResult;
use crate::cells::runs::TraceNeeds;
use crate::frontier::ComputedFrontier;
use crate::predictions::Theory;
use crate::ranking::{ComparedPoint, Rankings};
use crate::scene::figure::Figure;
use exactfed_core::flattened::Flattened;
use exactfed_core::theory::bounds::BoundId;
use exactfed_runner::manifest::add_bounds;
use exactfed_runner::manifest::figure::FigureKeys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure of a kind, as a manifest asks for it: the common keys and those of the kind.
pub type FigureOf<K> = Flattened<FigureKeys, K>;

/// A prediction that a figure draws with its curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = add_bounds)]
pub enum TheoryKind {
    /// The squared exact bias ‖lim E θ_t − θ*‖² (SCAFFLSA, Theorem 4.1).
    ExactBias,
    /// The means that infinitely many replicates would give (linear problems).
    ExactMoments,
    /// The bias to first order in the step size (RR, Theorem 4; SLIDES).
    FirstOrder,
    /// The bias with the next term, which is not divided by N.
    SecondOrder,
    /// The bias by a closure of the equations of the mean, beyond first order.
    Closure,
    /// tr(A⁻¹CA⁻ᵀ)/(NHn), the mean square error of the mean of n iterates with falling step sizes
    /// by the central limit theorem.
    Clt,
    /// The published bounds whose conditions hold.
    Bounds,
    /// One published statement, where its conditions hold.
    #[serde(untagged)]
    #[schemars(skip, !untagged)]
    Bound(BoundId),
}

impl TheoryKind {
    /// Whether it stands for published bounds: all of them, or a single statement.
    pub fn is_of_bounds(self) -> bool {
        matches!(self, Self::Bounds | Self::Bound(_))
    }
}

/// A figure of cells that a manifest asks for. A report asks each figure what it needs of results and theory, reads
/// that, lets the figure choose the cells that it draws, and then lets it draw them.
pub trait DrawnFigure<'a>: Sync {
    /// The cells that it may show, and what it needs of theory for those that it draws.
    fn cells(&self) -> DrawnCells<'a>;

    /// Which cells it draws, among `all` cells of the experiment, and what its caption says about those that it
    /// leaves out because they are too many.
    fn shown_cells(&self, all: &[CellResult<'_>]) -> ShownCells;

    /// Adds what must be read of the traces of a cell that it draws.
    fn add_needs(&self, needs: &mut TraceNeeds);

    /// The groups of cells that it compares with one another, among the cells that it draws. They enter the
    /// correction for the number of comparisons of the page; most figures compare none.
    fn compared<'c>(&self, _: &[&'c CellResult<'c>]) -> Vec<ComparedPoint<'c>> {
        Vec::new()
    }

    /// Draws the figure of these cells, which are those that [`shown_cells`](Self::shown_cells) chose.
    fn draw<'c>(&self, cells: &[&'c CellResult<'c>], from: &DrawnFrom<'_, 'c>) -> Figure;
}

/// Which cells a figure may show, and what it needs of theory for those that it draws.
pub struct DrawnCells<'a> {
    /// The keys that every figure has, which say what it may show.
    pub common: &'a FigureKeys,
    /// If it draws cells along their traces, the largest number of cells with which it draws all of them; `None` if
    /// it draws values at the last round alone.
    pub most_followed: Option<usize>,
    /// The predictions that it draws with its curves.
    pub predictions: &'a [TheoryKind],
    /// Whether it needs theory of the cells.
    pub needs_theory: bool,
    /// Whether it needs the exact moments of the cells round by round.
    pub needs_moments: bool,
}

impl<'a> DrawnCells<'a> {
    /// The cells of a figure that draws values at the last round and needs no theory; other figures change what they
    /// need.
    pub fn new(common: &'a FigureKeys) -> Self {
        let needs_theory = false;
        let needs_moments = false;
        Self { common, most_followed: None, predictions: &[], needs_theory, needs_moments }
    }
}

/// What figures show besides the results of cells.
#[derive(Clone, Copy)]
pub struct DrawnFrom<'d, 'c> {
    /// Predictions for the cells.
    pub theory: &'d Theory<'d>,
    /// The rankings of algorithms.
    pub rankings: &'d Rankings<'c>,
    /// The frontiers of the manifest.
    pub frontiers: &'d [ComputedFrontier<'d>],
}
