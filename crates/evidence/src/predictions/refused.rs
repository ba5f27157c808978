//! Predictions that are not computed because they would take too much time or memory.

use super::Theory;
use exactfed_core::theory::effort::{Effort, MOST_BYTES, MOST_PRODUCTS};
use exactfed_runner::manifest::Prediction;
use exactfed_runner::runner::Prepared;
use std::collections::{BTreeMap, HashMap};

/// A computation that predictions need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Computation {
    /// Exact moments round by round.
    Moments,
    /// Exact moments at stationarity.
    Stationary,
    /// The terms of expansions in the step size.
    Expansion,
    /// The closure beyond the first order.
    Closure,
    /// The constants that published bounds are made of.
    Constants,
    /// Measures of how clients differ.
    Measures,
}

impl Computation {
    fn words(self) -> &'static str {
        match self {
            Self::Moments => "exact moments round by round",
            Self::Stationary => "exact moments at stationarity",
            Self::Expansion => "the expansion in the step size",
            Self::Closure => "the closure",
            Self::Constants => "the constants of published bounds",
            Self::Measures => "the measures of heterogeneity",
        }
    }

    /// Whether a prediction needs it.
    fn serves(self, by: Prediction) -> bool {
        match by {
            Prediction::ExactMoments => matches!(self, Self::Moments | Self::Stationary),
            Prediction::Stationary => self == Self::Stationary,
            Prediction::Closure => matches!(self, Self::Closure | Self::Expansion),
            Prediction::FirstOrder
            | Prediction::FirstOrderPrinted
            | Prediction::SecondOrder
            | Prediction::Clt
            | Prediction::RrIdentity
            | Prediction::RrIdentityPrinted => self == Self::Expansion,
            Prediction::Contraction | Prediction::ContractionPrinted => self == Self::Measures,
            Prediction::ExactBias => false,
            by => by.is_bound() && self == Self::Constants,
        }
    }
}

/// Costs that exceed the bounds, by cell and computation.
pub type Refused = HashMap<(String, Computation), Effort>;

/// The bounds on time and memory, as a sentence.
pub fn bounds() -> String {
    let memory = MOST_BYTES / 1e9;
    format!("A computation may take {MOST_PRODUCTS:.0e} products and {memory:.0} GB of memory.")
}

impl Theory<'_> {
    /// Whether a computation for a cell fits in time and memory; `None` if it does not, which is
    /// remembered.
    pub(super) fn permit(
        &self,
        prepared: &Prepared<'_>,
        part: Computation,
        cost: impl FnOnce() -> Effort,
    ) -> Option<()> {
        let key = (prepared.cell.id.clone(), part);
        if self.refused.borrow().contains_key(&key) {
            return None;
        }
        let cost = cost();
        if !cost.fits() {
            self.refused.borrow_mut().insert(key, cost);
        }
        cost.fits().then_some(())
    }

    /// The cost of a prediction for a cell, if that is why there is none; known once the
    /// prediction was asked for.
    pub fn too_costly(&self, id: &str, by: Prediction) -> Option<Effort> {
        let known = self.refused.borrow();
        let mine = known.iter().filter(|((cell, part), _)| cell == id && part.serves(by));
        mine.map(|(_, cost)| *cost).reduce(Effort::most)
    }

    /// The computations that were refused, one sentence each.
    pub fn not_computed(&self) -> Vec<String> {
        let mut parts: BTreeMap<Computation, (usize, Effort)> = BTreeMap::new();
        for ((_, part), cost) in self.refused.borrow().iter() {
            let known = parts.entry(*part).or_default();
            *known = (known.0 + 1, known.1.most(*cost));
        }
        let sentence = |(part, (count, cost)): (Computation, (usize, Effort))| {
            let (cells, of) = if count == 1 { ("cell", "it") } else { ("cells", "one of them") };
            let part = part.words();
            format!("Of {count} {cells} {part}: for {of} that would take {cost}.")
        };
        parts.into_iter().map(sentence).collect()
    }
}
