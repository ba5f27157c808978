//! The fused local step of TD(0): one draw, two rows, one dot product, one
//! update, for up to four clients in lockstep; in registers for short rows, in strips for
//! long ones.
//!
//! A chain of dependent steps is bound by latency, which four independent chains in
//! lockstep hide. Every instruction set computes, per step and client,
//! δ = Σ (φ(s) − γφ(s'))θ − r(s), θ ← θ − step (δ φ(s) + ξ), in the order of
//! [`super::fold_sum`] and [`super::descend`].

mod fused;
mod limit;
mod wide;

use super::alias::Alias;
use super::cohort::{Cohort, Local};
use super::simd::{InstructionSet, SHORT, padded};
use super::{Table, descend, fold_sum};

/// A pair (s, s') of states, each below 2¹⁶.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Atom(u32);

impl Atom {
    fn new(state: usize, next: usize) -> Self {
        Self((state as u32) << 16 | next as u32)
    }
    #[inline(always)]
    fn state(self) -> usize {
        (self.0 >> 16) as usize
    }
    #[inline(always)]
    fn next(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// The distribution of a client's transitions, and its rewards.
#[derive(Clone, Debug)]
struct Transitions {
    pairs: Alias<Atom>,
    rewards: Vec<f64>,
}

/// What the kernel reads: features that all clients share, and each client's
/// distribution of transitions as an alias table.
#[derive(Clone, Debug)]
pub struct TransitionTables {
    d: usize,
    /// The distance between rows of φ: d, padded to whole registers.
    stride: usize,
    /// γ.
    discount: f64,
    /// φ, S rows.
    phi: Table,
    distributions: Vec<Transitions>,
    /// The index of each client's distribution.
    distribution_of: Vec<u32>,
    /// The number of pairs of all distributions together.
    pairs: usize,
}

/// The most states that a [`TransitionTables`] can hold.
pub const MAX_STATES: usize = 1 << 16;

impl TransitionTables {
    /// Tables of the features `phi` (S rows of d) under the discount γ.
    ///
    /// # Panics
    /// If `phi` is not S rows of `d`, or S exceeds [`MAX_STATES`].
    pub fn new(d: usize, phi: &[f64], discount: f64) -> Self {
        assert!(d > 0 && phi.len().is_multiple_of(d) && phi.len() / d <= MAX_STATES);
        Self {
            d,
            stride: padded(d),
            discount,
            phi: Table::new(d, &[phi]),
            distributions: Vec::new(),
            distribution_of: Vec::new(),
            pairs: 0,
        }
    }

    fn states(&self) -> usize {
        self.phi.rows().len()
    }

    /// The distribution of a client.
    #[inline(always)]
    fn distribution(&self, client: usize) -> &Transitions {
        &self.distributions[self.distribution_of[client] as usize]
    }

    /// The distribution of a member of a cohort whose indices were checked.
    ///
    /// # Safety
    /// There is such a client.
    #[inline(always)]
    unsafe fn member(&self, client: usize) -> &Transitions {
        // SAFETY: there is such a client; `distribution_of` holds indices of `distributions`.
        unsafe {
            self.distributions.get_unchecked(*self.distribution_of.get_unchecked(client) as usize)
        }
    }

    /// Adds a client with the distribution of an earlier one.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn repeat(&mut self, client: usize) {
        self.distribution_of.push(self.distribution_of[client]);
    }

    /// Adds a client: the probabilities of its pairs (s, s') and its rewards.
    ///
    /// # Panics
    /// If a state is out of range, there is no pair, or rewards are not S numbers.
    pub fn push(&mut self, pairs: &[(usize, usize, f64)], rewards: Vec<f64>) {
        let states = self.states();
        assert!(!pairs.is_empty() && rewards.len() == states);
        assert!(pairs.iter().all(|&(s, t, _)| s < states && t < states));
        let atoms: Vec<(Atom, f64)> = pairs.iter().map(|&(s, t, p)| (Atom::new(s, t), p)).collect();
        self.distribution_of.push(self.distributions.len() as u32);
        self.pairs += pairs.len();
        self.distributions.push(Transitions { pairs: Alias::new(&atoms), rewards });
    }

    /// The definition of one oracle call on the pair of a draw.
    #[inline]
    pub fn oracle(&self, client: usize, draw: u64, theta: &[f64], field: &mut [f64]) {
        let atom = self.distribution(client).pairs.pick(draw);
        self.field(client, atom.state(), atom.next(), theta, field);
    }

    /// The field on the pair (s, s'): (φ(s) − γφ(s'))ᵀθ φ(s) − r(s) φ(s).
    #[inline(always)]
    pub fn field(&self, client: usize, s: usize, next: usize, theta: &[f64], field: &mut [f64]) {
        let d = theta.len();
        let phi = &self.phi.rows().row(s)[..d];
        let next = &self.phi.rows().row(next)[..d];
        let along = fold_sum(d, |i| (phi[i] - self.discount * next[i]) * theta[i]);
        let delta = along - self.distribution(client).rewards[s];
        for (field, phi) in field.iter_mut().zip(phi) {
            *field = delta * phi;
        }
    }

    /// Runs the local steps of every client of the cohort. The bits do not depend on the
    /// instruction set.
    ///
    /// # Panics
    /// If a member is no client of these tables, or dimensions differ.
    #[inline]
    pub fn advance_on<S>(&self, path: InstructionSet, mut cohort: Cohort<'_, S>) {
        assert!(cohort.end() <= self.distribution_of.len() && cohort.dim() == self.d);
        if self.d < 2 || (path == InstructionSet::Scalar && self.stride <= SHORT) {
            return cohort.each(|local| self.define(local));
        }
        // SAFETY: this processor has the instruction set; clients and dimension
        // were checked above, states when they were pushed.
        cohort.each_equal_run(|clients| unsafe { self.run(path, clients) });
    }

    /// The definition.
    fn define<S>(&self, local: Local<'_, S>) {
        let mut field = vec![0.0; self.d];
        for _ in 0..local.steps {
            self.oracle(local.client, local.draws.rng.bits(), local.theta, &mut field);
            descend(local.theta, &field, local.correction, local.step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fused::NEAR;
    use super::*;
    use crate::kernel::cohort::testing::assert_paths;
    use crate::rng::Stream;

    fn tables(d: usize, states: usize, clients: usize) -> TransitionTables {
        let mut s = Stream::shared_instance(7);
        let phi: Vec<f64> = (0..states * d).map(|_| s.uniform()).collect();
        let mut tables = TransitionTables::new(d, &phi, 0.95);
        for _ in 0..clients {
            let pairs: Vec<_> =
                (0..3 * states).map(|i| (i % states, s.index(states), s.uniform())).collect();
            let rewards = (0..states).map(|_| s.uniform()).collect();
            tables.push(&pairs, rewards);
        }
        tables
    }

    fn compare(tables: &TransitionTables, clients: usize, steps: impl Fn(usize) -> u64) {
        let define = |cohort: Cohort<'_, ()>| cohort.each(|local| tables.define(local));
        let run = |path, cohort: Cohort<'_, ()>| tables.advance_on(path, cohort);
        assert_paths("TD", [1, tables.d, clients], steps, define, run);
    }

    #[test]
    fn every_path_gives_the_bits_of_the_definition() {
        for d in (1..=130).chain([300, 784, 1025]) {
            let tables = tables(d, 11, 11);
            for (clients, steps) in [(1, 0), (1, 33), (2, 70), (3, 1), (4, 10), (5, 33), (6, 1)]
                .into_iter()
                .chain([(7, 200), (9, 40), (10, 1), (11, 64)])
            {
                compare(&tables, clients, |_| steps);
            }
        }
    }

    #[test]
    fn clients_beyond_the_caches_get_the_same_draws() {
        let tables = tables(8, 11, 530);
        assert!(tables.pairs > NEAR);
        for steps in [1, 10, 33] {
            compare(&tables, 530, |_| steps);
        }
    }

    #[test]
    fn unequal_steps_are_kept_apart() {
        compare(&tables(8, 11, 7), 7, |c| [5, 5, 5, 40, 40, 0, 1][c]);
    }
}
