//! The least costs of a search at its prices, THEORY (6.8), and the rounds beyond which settings are not refined: T
//! rounds cost T (price · communications + gradients), in gradients of a client, with the communications and the
//! gradients of one round.

use super::Search;
use crate::round_program::RoundSettings;
use std::sync::atomic::{AtomicU64, Ordering};

/// The factor by which a refinement is assumed to lower a cost at most. It is no bound: settings whose cost
/// would be lowered by more are not found.
const MOST_REFINED: f64 = 1.5;

/// The least costs with which an algorithm holds each target so far, for each number of clients, target and price. They
/// exclude settings that cost too much to become the cheapest. Threads share them: they decide what is computed, and
/// nothing that is kept depends on when they fall. A `place` is the number of a pair of a number of clients and a
/// target, with the targets of one number of clients next to each other.
pub struct LeastCosts<'s> {
    search: &'s Search,
    /// The bits of the costs, the prices of one place next to each other; infinite before a cost is known. As whole
    /// numbers the bits have the order of the costs, which are not negative.
    bits: Vec<AtomicU64>,
}

impl<'s> LeastCosts<'s> {
    /// The infinite costs of a search that has found nothing so far.
    pub fn new(search: &'s Search) -> Self {
        let count = search.clients.len() * search.targets.len() * search.prices.len();
        let bits = (0..count).map(|_| AtomicU64::new(f64::INFINITY.to_bits())).collect();
        Self { search, bits }
    }

    /// The prices, each with the bits of the least cost at a place.
    fn costs_at(&self, place: usize) -> impl Iterator<Item = (f64, &AtomicU64)> {
        let prices = &self.search.prices;
        let bits = &self.bits[place * prices.len()..][..prices.len()];
        prices.iter().copied().zip(bits)
    }

    /// The cost of one round of a run at a price, in gradients of a client, THEORY (6.8).
    fn cost_of_round(&self, run: &RoundSettings, price: f64) -> f64 {
        let round = self.search.round_price(run);
        price * round.communications + round.gradients
    }

    /// Lowers the least costs at a place to the costs of `rounds` rounds of a run, where these are lower.
    pub fn lower(&self, place: usize, run: &RoundSettings, rounds: u64) {
        for (price, bits) in self.costs_at(place) {
            let cost = rounds as f64 * self.cost_of_round(run, price);
            bits.fetch_min(cost.to_bits(), Ordering::Relaxed);
        }
    }

    /// Whether `rounds` rounds of a run cost more than [`MOST_REFINED`] times the least cost at a place at each of the
    /// prices, so that they are assumed not to become the cheapest at any. False if the search has no prices.
    pub fn is_too_costly(&self, place: usize, run: &RoundSettings, rounds: u64) -> bool {
        if self.search.prices.is_empty() {
            return false;
        }
        self.costs_at(place).all(|(price, bits)| {
            let least = f64::from_bits(bits.load(Ordering::Relaxed));
            rounds as f64 * self.cost_of_round(run, price) > MOST_REFINED * least
        })
    }

    /// The most rounds of a run at a place for which [`Self::is_too_costly`] is false, or one more; the largest number
    /// if the search has no prices.
    pub fn most_rounds(&self, place: usize, run: &RoundSettings) -> u64 {
        self.costs_at(place)
            .map(|(price, bits)| {
                let least = f64::from_bits(bits.load(Ordering::Relaxed));
                let of_round = self.cost_of_round(run, price);
                if of_round > 0.0 {
                    // Rounding errors of the quotient may hide the last round.
                    libm::floor(MOST_REFINED * least / of_round * (1.0 + 1e-12)) as u64
                } else {
                    // Any number of rounds is free.
                    u64::MAX
                }
            })
            .max()
            .unwrap_or(u64::MAX)
    }
}
