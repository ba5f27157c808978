//! Which algorithm is best at N and ε, by how much, and when that is too little to be called a lead.

use super::{ComputedFrontier, FrontierCost};
use exactfed_runner::manifest::frontier::FrontierObjective;
use exactfed_runner::manifest::searched::SearchedAlgorithm;

/// An algorithm with its least cost, and the value of the objective.
pub type RankedCost<'a> = (&'a SearchedAlgorithm, FrontierCost<'a>, f64);

/// The algorithms that reach ε with N clients.
#[derive(Clone, Debug)]
pub struct RankedCosts<'a> {
    /// Each with its least cost and the value of the objective, the smallest value first. Of equals, which
    /// whole rounds have, that with the fewest oracle calls is first.
    pub all: Vec<RankedCost<'a>>,
    /// How many have the smallest value, or one that counts as equal.
    pub tied: usize,
}

impl<'a> ComputedFrontier<'a> {
    /// The algorithms that reach ε with N clients.
    pub fn ranked(
        &self,
        objective: FrontierObjective,
        clients: u64,
        target: f64,
    ) -> RankedCosts<'a> {
        RankedCosts::new(
            self.algorithms
                .iter()
                .filter_map(|algorithm| {
                    let points = self.points(objective, algorithm);
                    let best =
                        points.into_iter().find(|b| b.clients == clients && b.target == target)?;
                    let cost = best.cost?;
                    Some((algorithm, cost, self.value(objective, &cost)))
                })
                .collect(),
            1.0,
        )
    }
}

impl<'a> RankedCosts<'a> {
    /// Algorithms with their costs, of which those are tied that cost at most `tie` times the least.
    pub fn new(mut all: Vec<RankedCost<'a>>, tie: f64) -> Self {
        all.sort_by(|a, b| a.2.total_cmp(&b.2).then(a.1.gradients.total_cmp(&b.1.gradients)));
        let tied = all.iter().take_while(|one| one.2 <= tie * all[0].2).count();
        Self { all, tied }
    }

    /// Whether an algorithm has the smallest value, or one that counts as equal.
    pub fn ties(&self, algorithm: &SearchedAlgorithm) -> bool {
        self.all.iter().take(self.tied).any(|one| one.0 == algorithm)
    }

    /// Whether the first is ahead of all others by more than one of its rounds.
    pub fn is_ahead(&self) -> bool {
        let Some((_, cost, least)) = self.all.first() else { return false };
        let with_one_more = least * (1.0 + 1.0 / cost.rounds.max(1) as f64);
        self.tied == 1 && self.all.get(1).is_none_or(|(_, _, next)| *next > with_one_more)
    }

    /// How many times more the next costs; `None` where there is none.
    pub fn lead(&self) -> Option<f64> {
        Some(self.all.get(self.tied)?.2 / self.all[0].2)
    }
}
