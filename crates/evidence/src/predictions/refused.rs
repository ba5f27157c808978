//! Predictions that are not computed because they would take too much time or memory.

use exactfed_core::theory::effort::{Effort, MOST_BYTES, MOST_PRODUCTS};
use exactfed_runner::manifest::Prediction;
use exactfed_runner::runner::Prepared;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// A computation of theory that may take too long for a large cell.
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
}

impl Computation {
    /// What is computed, in words.
    fn words(self) -> &'static str {
        match self {
            Self::Moments => "exact moments round by round",
            Self::Stationary => "exact moments at stationarity",
            Self::Expansion => "the expansion in the step size",
            Self::Closure => "the closure",
            Self::Constants => "the constants of published bounds",
        }
    }

    /// Whether a prediction needs this computation, so that there is no prediction where the computation is refused.
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
            Prediction::Contraction | Prediction::ContractionPrinted => self == Self::Constants,
            Prediction::ExactBias => false,
            by => by.is_bound() && self == Self::Constants,
        }
    }
}

/// The computations that were refused because they would take too much time or memory: their costs, by the id of the
/// cell and the computation.
pub struct Refused(RefCell<HashMap<(String, Computation), Effort>>);

/// The most time and memory that a computation of theory may take, as a sentence for pages.
pub fn bounds() -> String {
    let memory = MOST_BYTES / 1e9;
    format!("A computation may take {MOST_PRODUCTS:.0e} products and {memory:.0} GB of memory.")
}

impl Refused {
    /// The refused computations at the beginning: this one, for these cells, with its cost for each.
    pub fn new(part: Computation, costs: impl Iterator<Item = (String, Effort)>) -> Self {
        Self(RefCell::new(costs.map(|(id, cost)| ((id, part), cost)).collect()))
    }

    /// Permits a computation for a cell if its cost fits in time and memory. `None` if it does not, which is
    /// remembered, so that pages can say why a prediction is missing.
    pub fn permit(
        &self,
        prepared: &Prepared<'_>,
        part: Computation,
        cost: impl FnOnce() -> Effort,
    ) -> Option<()> {
        let key = (prepared.cell.id.to_string(), part);
        if self.0.borrow().contains_key(&key) {
            return None;
        }
        let cost = cost();
        if !cost.fits() {
            self.0.borrow_mut().insert(key, cost);
        }
        cost.fits().then_some(())
    }

    /// The largest cost of the computations that a prediction for a cell needs and that were refused; `None` if none
    /// was.
    pub fn cost(&self, id: &str, by: Prediction) -> Option<Effort> {
        let known = self.0.borrow();
        let mine = known.iter().filter(|((cell, part), _)| cell == id && part.serves(by));
        mine.map(|(_, cost)| *cost).reduce(Effort::most)
    }

    /// A sentence for each computation that was refused for some cell, with the number of cells and the largest cost.
    pub fn sentences(&self) -> Vec<String> {
        let mut parts: BTreeMap<Computation, (usize, Effort)> = BTreeMap::new();
        for ((_, part), cost) in self.0.borrow().iter() {
            let known = parts.entry(*part).or_default();
            *known = (known.0 + 1, known.1.most(*cost));
        }
        parts
            .into_iter()
            .map(|(part, (count, cost))| {
                let (cells, of) =
                    if count == 1 { ("cell", "it") } else { ("cells", "one of them") };
                let part = part.words();
                format!("Of {count} {cells} {part}: for {of} that would take {cost}.")
            })
            .collect()
    }
}
