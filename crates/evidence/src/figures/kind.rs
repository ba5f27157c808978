//! What every kind of figure states about itself. Each kind has a file with its cells, what it needs of
//! results and theory, and how it is drawn.

use super::sample::Sample;
use crate::cells::CellResult;
use crate::cells::runs::TraceNeeds;
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
    /// Whether it stands for published statements.
    pub fn is_of_bounds(self) -> bool {
        matches!(self, Self::Bounds | Self::Bound(_))
    }
}

/// A figure of cells that a manifest asks for.
pub trait DrawnFigure<'a>: Sync {
    /// The keys that every figure has.
    fn keys(&self) -> &'a FigureKeys;

    /// Which of the cells that it may show it draws.
    fn sample(&self, all: &[CellResult<'_>]) -> Sample;

    /// Adds what must be read of the traces of a cell that it draws.
    fn add_needs(&self, needs: &mut TraceNeeds);

    /// The most cells of which it draws all, if it draws them along their traces.
    fn most_followed(&self) -> Option<usize> {
        None
    }

    /// The predictions that it draws with its curves.
    fn predictions(&self) -> &'a [TheoryKind] {
        &[]
    }

    /// Whether it needs theory of the cells that it draws.
    fn needs_theory(&self) -> bool {
        !self.predictions().is_empty()
    }

    /// Whether it needs the exact moments of its cells round by round.
    fn needs_moments(&self) -> bool {
        false
    }

    /// The cells that it compares with one another.
    fn compared<'c>(&self, _: &[&'c CellResult<'c>]) -> Vec<ComparedPoint<'c>> {
        Vec::new()
    }

    /// The figure of these cells.
    fn draw<'c>(
        &self,
        cells: &[&'c CellResult<'c>],
        theory: &Theory<'_>,
        rankings: &Rankings<'c>,
    ) -> Figure;
}
