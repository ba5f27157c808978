//! Draws from a finite distribution in constant time: Walker's alias method.

use super::simd::prefetch;
use std::hint::select_unpredictable;

/// One slot of an alias table. A draw that falls into the slot gives `own` with the probability keep·2⁻⁶⁴, and `other`
/// otherwise.
#[derive(Clone, Copy, Debug)]
struct Slot<A> {
    keep: u64,
    own: A,
    other: A,
}

/// A finite distribution as an alias table: a draw costs one look-up, however many items there are.
#[derive(Clone, Debug)]
pub struct Alias<A>(Box<[Slot<A>]>);

impl<A: Copy> Alias<A> {
    /// The distribution in which each item's probability is proportional to its weight
    /// (Vose's method). An item may be listed several times: then its weights add up. One with the weight 0 is never
    /// drawn.
    ///
    /// # Panics
    /// If there is no item, a weight is negative or NaN, or the sum of the weights is 0 or not finite.
    pub fn new(weights: &[(A, f64)]) -> Self {
        assert!(!weights.is_empty(), "a distribution needs an item");
        assert!(weights.iter().all(|p| p.1 >= 0.0), "a weight is negative");
        let n = weights.len();
        let total: f64 = weights.iter().map(|p| p.1).sum();
        assert!(total.is_finite() && total > 0.0, "weights add up to {total}");
        // Each item's probability as a multiple of the probability 1/n of a slot.
        let mut share: Vec<f64> = weights.iter().map(|p| p.1 * n as f64 / total).collect();
        let mut slots: Vec<Slot<A>> =
            weights.iter().map(|&(own, _)| Slot { keep: u64::MAX, own, other: own }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&i| share[i] < 1.0);
        // An item with too small a share for its slot fills the rest of the slot with an item that has too large a
        // share.
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            slots[s].keep = (share[s] * 2f64.powi(64)) as u64;
            slots[s].other = weights[l].0;
            share[l] -= 1.0 - share[s];
            if share[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        // A slot that is left has a share of 1 up to rounding: every draw gives its own item, as it was initialised.
        Self(slots.into())
    }

    /// The slot into which a draw of 64 uniform bits falls, and the 64 bits that decide between the slot's two items.
    #[inline(always)]
    fn slot(&self, draw: u64) -> (&Slot<A>, u64) {
        let wide = u128::from(draw) * self.0.len() as u128;
        // SAFETY: draw < 2⁶⁴, so the index is below the number of slots.
        (unsafe { self.0.get_unchecked((wide >> 64) as usize) }, wide as u64)
    }

    /// Prefetches the slot that [`Alias::pick`] will read for this draw.
    #[inline(always)]
    pub fn prefetch(&self, draw: u64) {
        prefetch(self.slot(draw).0);
    }

    /// The item that a draw of 64 uniform bits gives: its upper bits choose a slot, and the rest one of the slot's two
    /// items.
    #[inline(always)]
    pub fn pick(&self, draw: u64) -> A {
        let (slot, fraction) = self.slot(draw);
        select_unpredictable(fraction < slot.keep, slot.own, slot.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alias_tables_keep_the_law() {
        let weights = [0.5, 0.2, 0.2, 0.0625, 0.0375];
        let items: Vec<(usize, f64)> = weights.iter().copied().enumerate().collect();
        let table = Alias::new(&items);
        let mut have = [0.0; 5];
        for slot in &table.0 {
            let keep = slot.keep as f64 / 2f64.powi(64);
            have[slot.own] += keep / 5.0;
            have[slot.other] += (1.0 - keep) / 5.0;
        }
        for (have, p) in have.iter().zip(&weights) {
            assert!((have - p).abs() < 1e-15);
        }
    }

    #[test]
    fn draws_cover_the_table() {
        let table = Alias::new(&[('a', 1.0), ('b', 0.0), ('c', 3.0)]);
        let picked: Vec<char> = (0..12u64).map(|i| table.pick(i * (u64::MAX / 12) + 1)).collect();
        assert!(picked.contains(&'a') && picked.contains(&'c') && !picked.contains(&'b'));
        assert_eq!(table.pick(u64::MAX), 'c');
    }
}
