//! Which algorithm is best at N and ε, by how much, and when that is too little to be called a lead.

use super::{ComputedFrontier, FrontierCost};
use exactfed_runner::manifest::frontier::FrontierObjective;
use exactfed_runner::manifest::searched::SearchedAlgorithm;

/// An algorithm with its least cost at a point of a frontier or on a square of a map, and the value that is compared:
/// the number of the objective, such as the price times the communications plus the gradients.
pub type RankedCost<'a> = (&'a SearchedAlgorithm, FrontierCost<'a>, f64);

/// The algorithms that reach ε with N clients, ordered by what they cost.
#[derive(Clone, Debug)]
pub struct RankedCosts<'a> {
    /// Each with its least cost and the value of the objective, the smallest value first. Of equals, which
    /// whole rounds have, that with the fewest oracle calls is first.
    pub all: Vec<RankedCost<'a>>,
    /// How many of the first ones have the smallest value, or one that counts as equal; 1 if the first is alone, and
    /// 0 if no algorithm reaches ε.
    pub tied: usize,
}

impl<'a> ComputedFrontier<'a> {
    /// The algorithms that reach the target ε with N clients, ordered by an objective. Only equal values are tied.
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
    /// Orders algorithms by their values. Those with at most `tie` times the smallest value are tied with it; `tie` is
    /// at least 1.
    pub fn new(mut all: Vec<RankedCost<'a>>, tie: f64) -> Self {
        all.sort_by(|(_, a_cost, a_value), (_, b_cost, b_value)| {
            a_value.total_cmp(b_value).then(a_cost.gradients.total_cmp(&b_cost.gradients))
        });
        let least = all.first().map_or(f64::NAN, |(_, _, value)| *value);
        let tied = all.iter().take_while(|(_, _, value)| *value <= tie * least).count();
        Self { all, tied }
    }

    /// Whether an algorithm has the smallest value, or one that counts as equal. False if it does not reach ε.
    pub fn ties(&self, algorithm: &SearchedAlgorithm) -> bool {
        self.all.iter().take(self.tied).any(|(tied, ..)| *tied == algorithm)
    }

    /// Whether the first algorithm is ahead of all others by more than one of its rounds: with one round more it
    /// would still cost less than the next. A smaller lead may only come from rounds being whole.
    pub fn is_ahead(&self) -> bool {
        let Some((_, cost, least)) = self.all.first() else { return false };
        let with_one_more = least * (1.0 + 1.0 / cost.rounds.max(1) as f64);
        self.tied == 1 && self.all.get(1).is_none_or(|(_, _, next)| *next > with_one_more)
    }

    /// How many times more than the first the next algorithm costs that is not tied with it; `None` if there is none.
    pub fn lead(&self) -> Option<f64> {
        let (_, _, least) = self.all.first()?;
        let (_, _, next) = self.all.get(self.tied)?;
        Some(next / least)
    }
}
