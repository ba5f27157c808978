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
mod tables;
mod wide;

use super::cohort::{Cohort, Local};
use super::padding::SHORT;
use super::simd::{InstructionSet, InstructionSetName};
use super::vectors::descend;
pub use tables::{MAX_STATES, TransitionTables};

impl TransitionTables {
    /// Runs the local steps of every client of the cohort, θ ← θ − γ_k (F_k(θ; Z) + ξ_k), on independent draws Z: the
    /// states of the clients' noise are not read. The bits do not depend on the instruction set.
    ///
    /// # Panics
    /// If a member is no client of these tables, dimensions differ, or steps are extended ([`Cohort::extended`]): with
    /// a proximal term, or on means of several oracle calls.
    #[inline]
    pub fn advance_on<S>(&self, path: InstructionSet, mut cohort: Cohort<'_, S>) {
        assert!(cohort.end() <= self.distribution_of.len() && cohort.dim() == self.d);
        assert!(cohort.extended.is_none());
        // One lane has a fused body for long rows alone.
        let is_scalar = path.name() == InstructionSetName::Scalar;
        if self.d < 2 || (is_scalar && self.stride <= SHORT) {
            return cohort.each(|local| self.define(local));
        }
        // SAFETY: clients and dimension were checked above, states when they were pushed.
        cohort.each_equal_run(|clients| unsafe { self.run(path, clients) });
    }

    /// The local steps of one client as a loop over the oracle: what the fused bodies must
    /// reproduce to the last bit.
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
    use crate::kernel::Proximal;
    use crate::kernel::cohort::testing::{assert_paths, thetas};
    use crate::rng::Stream;

    /// Random tables, in which each client has a distribution of its own on three transitions from each state.
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

    /// Asserts that `steps(client)` steps of each client have the bits of their definition on every instruction set.
    fn compare(tables: &TransitionTables, clients: usize, steps: impl Fn(usize) -> u64) {
        let define = |cohort: Cohort<'_, ()>| cohort.each(|local| tables.define(local));
        assert_paths("TD", [1, tables.d, clients], steps, define, |path, cohort| {
            tables.advance_on(path, cohort);
        });
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
    #[should_panic(expected = "extended")]
    fn extended_steps_are_refused() {
        let tables = tables(3, 11, 1);
        thetas(
            [2, 3, 1],
            |_| 1,
            |mut cohort| {
                cohort.extended = Some(Proximal::NONE);
                tables.advance_on(InstructionSet::best(), cohort);
            },
        );
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
