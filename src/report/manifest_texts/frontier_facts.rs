//! What texts may name of frontiers.

use crate::evidence::frontier::{ComputedFrontier, FrontierPoint};
use exactfed_core::words::number;
use exactfed_runner::manifest::frontier::{Frontier, FrontierObjective, FrontierQuantity};

/// A point of a frontier that a text may name: an algorithm, a number of clients N, a target ε, and what is least
/// there.
pub struct FrontierFacts {
    algorithm: String,
    /// The number of clients N; `None` where the manifest names none: then the problem determines it, which is not
    /// built yet.
    clients: Option<u64>,
    target: f64,
    /// The cost that is least at the point, and whether it is the one that a text means which names no price and no
    /// budget.
    least: (FrontierObjective, bool),
    /// The quantities of the least cost. There are none before it is computed, and where the target is not reached.
    quantities: Vec<(FrontierQuantity, f64)>,
}

impl FrontierFacts {
    /// The points of a frontier that is not computed yet; `is_priced` says whether the manifest has prices in seconds.
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

    /// The points of a computed frontier, with the quantities of the least cost where the target is reached.
    pub fn computed(frontier: &ComputedFrontier<'_>) -> Vec<Self> {
        frontier.best.iter().map(|point| Self::of_point(frontier, point)).collect()
    }

    /// A point of a computed frontier, with the quantities that its least cost has: none if the target is not reached.
    fn of_point(frontier: &ComputedFrontier<'_>, point: &FrontierPoint<'_>) -> Self {
        let mut quantities = Vec::new();
        for (quantity, ..) in FrontierQuantity::ALL {
            quantities.extend(frontier.quantity(quantity, point).map(|value| (quantity, value)));
        }
        Self {
            algorithm: point.algorithm.name.clone(),
            clients: Some(point.clients),
            target: point.target,
            least: (point.minimises, point.minimises == frontier.lead),
            quantities,
        }
    }

    /// Whether this is the point that a text names by an algorithm, a number of clients, a target, and a price and a
    /// budget (`least`), each of which it may leave out but the algorithm and the target. The target of a text may have
    /// fewer digits: it must agree to one percent.
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

    /// A quantity of the least cost with three digits; `None` where the target is not reached, nothing is computed yet,
    /// or a cost has no such quantity, as without prices it has no seconds.
    pub fn text(&self, quantity: FrontierQuantity) -> Option<String> {
        let known = self.quantities.iter().find(|(of, _)| *of == quantity)?;
        Some(number(known.1, 3))
    }
}
