//! The least costs of a search at its prices, THEORY (6.8), and the rounds beyond which settings are not refined.

use super::Search;
use crate::round_program::RoundSettings;
use std::sync::atomic::{AtomicU64, Ordering};

/// The factor by which a refinement is assumed to lower a cost at most. It is no bound: settings whose cost
/// would be lowered by more are not found.
const MOST_REFINED: f64 = 1.5;

/// The least costs of a method so far, by number of clients, target and price. Threads share them: they
/// decide what is computed, and nothing that is kept depends on when they fall.
pub struct LeastCosts<'s> {
    search: &'s Search,
    /// The bits of the costs, whose order as whole numbers is that of the costs.
    bits: Vec<AtomicU64>,
}

impl<'s> LeastCosts<'s> {
    /// The costs of a search that has found nothing so far.
    pub fn new(search: &'s Search) -> Self {
        let count = search.clients.len() * search.targets.len() * search.prices.len();
        let none = || AtomicU64::new(f64::INFINITY.to_bits());
        Self { search, bits: std::iter::repeat_with(none).take(count).collect() }
    }

    /// The least costs at a number of clients and a target, which are number `place`, each with its price.
    fn at(&self, place: usize) -> impl Iterator<Item = (f64, &AtomicU64)> {
        let prices = &self.search.prices;
        let bits = &self.bits[place * prices.len()..][..prices.len()];
        prices.iter().copied().zip(bits)
    }

    /// What each round of a run costs at a price, in gradients of a client: THEORY (6.8) for one round.
    fn of_round(&self, run: &RoundSettings, price: f64) -> f64 {
        let round = self.search.round_price(run);
        price * round.communications + round.gradients
    }

    /// Lowers the least costs at a number of clients and a target, which are number `place`, to those of so
    /// many rounds of a run.
    pub fn lower(&self, place: usize, run: &RoundSettings, rounds: u64) {
        for (price, bits) in self.at(place) {
            let cost = rounds as f64 * self.of_round(run, price);
            bits.fetch_min(cost.to_bits(), Ordering::Relaxed);
        }
    }

    /// Whether so many rounds of a run cost more than [`MOST_REFINED`] times the least cost at each of the
    /// prices, if there are any.
    pub fn is_beyond(&self, place: usize, run: &RoundSettings, rounds: u64) -> bool {
        let is_beyond = |(price, bits): (f64, &AtomicU64)| {
            let least = f64::from_bits(bits.load(Ordering::Relaxed));
            rounds as f64 * self.of_round(run, price) > MOST_REFINED * least
        };
        !self.search.prices.is_empty() && self.at(place).all(is_beyond)
    }

    /// The most rounds of a run that are not [beyond](Self::is_beyond), or one more.
    pub fn most_rounds(&self, place: usize, run: &RoundSettings) -> u64 {
        let most = |(price, bits): (f64, &AtomicU64)| {
            let least = f64::from_bits(bits.load(Ordering::Relaxed));
            let of_round = self.of_round(run, price);
            // Rounding may hide the last of them. Rounds without a price may be as many as one likes.
            let most = MOST_REFINED * least / of_round * (1.0 + 1e-12);
            if of_round > 0.0 { libm::floor(most) as u64 } else { u64::MAX }
        };
        self.at(place).map(most).max().unwrap_or(u64::MAX)
    }
}
