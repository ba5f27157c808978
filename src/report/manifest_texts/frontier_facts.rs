//! What texts may name of frontiers.

use crate::evidence::frontier::{ComputedFrontier, FrontierPoint};
use exactfed_core::words::number;
use exactfed_runner::manifest::frontier::{Frontier, FrontierObjective, FrontierQuantity};

/// What a text may name of a frontier: an algorithm at N and ε.
pub struct FrontierFacts {
    algorithm: String,
    /// N; `None` where it is that of the problem, before the problem is built.
    clients: Option<u64>,
    target: f64,
    /// What is least there, and whether it is so where a text names nothing.
    least: (FrontierObjective, bool),
    /// The quantities of the least cost. There are none before it is computed, and where the target is not reached.
    quantities: Vec<(FrontierQuantity, f64)>,
}

impl FrontierFacts {
    /// The points of a frontier that is not computed yet.
    pub fn planned(frontier: &Frontier, is_priced: bool) -> Vec<Self> {
        let clients = match frontier.clients.as_slice() {
            [] => vec![None],
            some => some.iter().copied().map(Some).collect(),
        };
        let mut all = Vec::new();
        for objective in frontier.objectives(is_priced) {
            let least = (objective, objective == frontier.lead(is_priced));
            for algorithm in &frontier.algorithms {
                for clients in &clients {
                    let at = |target| Self {
                        algorithm: algorithm.name.clone(),
                        clients: *clients,
                        target,
                        least,
                        quantities: Vec::new(),
                    };
                    all.extend(frontier.all_targets().into_iter().map(at));
                }
            }
        }
        all
    }

    /// The points of a frontier.
    pub fn computed(frontier: &ComputedFrontier<'_>) -> Vec<Self> {
        let fact = |best: &FrontierPoint<'_>| {
            let value = |quantity| Some((quantity, frontier.quantity(quantity, best)?));
            let quantities = FrontierQuantity::ALL.iter().filter_map(|(of, ..)| value(*of));
            Self {
                algorithm: best.algorithm.name.clone(),
                clients: Some(best.clients),
                target: best.target,
                least: (best.minimises, best.minimises == frontier.lead),
                quantities: quantities.collect(),
            }
        };
        frontier.best.iter().map(fact).collect()
    }

    /// Whether it is the point that a text names, whose target may have fewer digits; `least` are the price and the
    /// budget that it names.
    pub fn is_at(
        &self,
        algorithm: &str,
        clients: Option<u64>,
        target: f64,
        least: [Option<f64>; 2],
    ) -> bool {
        let (objective, is_lead) = self.least;
        let is_meant = match least {
            [None, None] => is_lead,
            some => some == [objective.price(), objective.budget()],
        };
        is_meant
            && self.algorithm == algorithm
            && clients.is_none_or(|n| self.clients.is_none_or(|own| own == n))
            && (self.target / target - 1.0).abs() < 0.01
    }

    /// A quantity as text; `None` where it is not known.
    pub fn text(&self, quantity: FrontierQuantity) -> Option<String> {
        let known = self.quantities.iter().find(|(of, _)| *of == quantity)?;
        Some(number(known.1, 3))
    }
}
