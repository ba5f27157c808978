//! The body for rows that are longer than the registers: θ and ξ of up to four clients in
//! lockstep in a buffer that stays in the first-level cache, passed over in strips.

use super::tables::{Atom, TransitionTables};
use crate::kernel::cohort::EqualSteps;
use crate::kernel::fold::WIDTH;
use crate::kernel::rows::Aligned;
use crate::kernel::simd::{Simd, prefetch};
use crate::kernel::strips::{folded, over_strips};

/// The most clients in lockstep if rows are at most [`NARROW`] long.
const MOST: usize = 4;
/// The longest rows with which the rows of [`MOST`] clients fit in the first-level cache; of longer rows, those of two
/// clients are stepped in lockstep.
const NARROW: usize = 128;

/// How many numbers a cache line has.
const LINE: usize = 8;

/// A local step of one client on padded rows.
struct StripDescent<V> {
    /// The row of θ, which is changed.
    theta: *mut f64,
    /// The row of ξ.
    xi: *const f64,
    /// The transition (s, s') of this step.
    atom: Atom,
    /// The transition of the client's next step, whose features are prefetched.
    coming: Atom,
    /// δ in every lane.
    delta: V,
    /// The step size in every lane.
    step: V,
}

impl TransitionTables {
    /// Runs all local steps, of one group of members in lockstep after the other, with rows that are passed over in
    /// strips.
    ///
    /// # Safety
    /// `I` is present, W is the number of its registers in a strip; clients and dimension agree with the tables, and
    /// the stride is a multiple of 4, as that of all rows of 3 numbers or more, and of the lanes of `I`.
    #[inline(always)]
    pub(super) unsafe fn run_in_strips<I: Simd, const W: usize>(
        &self,
        clients: &mut EqualSteps<'_>,
    ) {
        let mut first = 0;
        let n = clients.len();
        let most = if self.stride <= NARROW { MOST } else { 2 };
        let mut room = Aligned::zeros(2 * most.min(n) * self.stride);
        while first < n {
            // SAFETY: passed on to the caller; the room has two rows for each member.
            first += unsafe {
                match (n - first).min(most) {
                    1 => self.strips::<I, W, 1>(clients, first, &mut room),
                    2 => self.strips::<I, W, 2>(clients, first, &mut room),
                    3 => self.strips::<I, W, 3>(clients, first, &mut room),
                    _ => self.strips::<I, W, 4>(clients, first, &mut room),
                }
            };
        }
    }

    /// Runs all local steps of K members from number `from` on, step by step for all of them, and returns K.
    ///
    /// # Safety
    /// As for `run_in_strips`; `room` has 2 K rows.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn strips<I: Simd, const W: usize, const K: usize>(
        &self,
        clients: &mut EqualSteps<'_>,
        from: usize,
        room: &mut [f64],
    ) -> usize {
        let d = self.d;
        let stride = self.stride;
        let mut left = clients.steps;
        let theta = room.as_mut_ptr();
        let mut lanes = clients.lanes::<K>(from);
        // SAFETY: rows start at state·stride with state < S; θ and ξ hold d numbers, and the
        // room has rows for them; only draws that are ready are read; members have distributions.
        unsafe {
            let xi = theta.add(K * stride);
            let mut distributions = [self.member(lanes.client[0]); K];
            for k in 0..K {
                distributions[k] = self.member(lanes.client[k]);
                for (row, from) in [(theta, lanes.start[k]), (xi, lanes.correction[k])] {
                    row.add(k * stride).copy_from_nonoverlapping(from, d);
                    // If the previous group diverged, it may have left a NaN in the padding.
                    row.add(k * stride + d).write_bytes(0, stride - d);
                }
            }
            while left > 0 {
                let (draws, now) = lanes.ready(left);
                let mut atoms = [Atom(0); K];
                for k in 0..K {
                    atoms[k] = distributions[k].pairs.pick(*draws[k]);
                }
                for i in 0..now {
                    let current = atoms;
                    let mut deltas = [0.0; K];
                    for k in 0..K {
                        if i + 1 < now {
                            atoms[k] = distributions[k].pairs.pick(*draws[k].add(i + 1));
                        }
                        if i + 2 < now {
                            distributions[k].pairs.prefetch(*draws[k].add(i + 2));
                        }
                        let along = self.along_strips::<I, W>(current[k], theta.add(k * stride));
                        let state = current[k].state();
                        deltas[k] = along - *distributions[k].rewards.get_unchecked(state);
                    }
                    for k in 0..K {
                        let descent = StripDescent {
                            theta: theta.add(k * stride),
                            xi: xi.add(k * stride),
                            atom: current[k],
                            coming: atoms[k],
                            delta: I::splat(deltas[k]),
                            step: I::splat(lanes.step[k]),
                        };
                        self.descend_strips::<I, W>(descent);
                    }
                }
                lanes.skip(now);
                left -= now as u64;
            }
            for k in 0..K {
                theta.add(k * stride).copy_to_nonoverlapping(lanes.theta[k], d);
            }
        }
        K
    }

    /// Makes a step, θ ← θ − step (δ φ(s) + ξ). The features of the next step's transition are prefetched meanwhile.
    ///
    /// # Safety
    /// As for `run_in_strips`; both are atoms of these tables, θ and ξ are padded rows.
    #[inline(always)]
    unsafe fn descend_strips<I: Simd, const W: usize>(&self, descent: StripDescent<I::V>) {
        let StripDescent { theta, xi, atom, coming, delta, step } = descent;
        let phi = self.phi.as_ptr();
        let stride = self.stride;
        let here = phi.wrapping_add(coming.state() * stride);
        let next = phi.wrapping_add(coming.next() * stride);
        // SAFETY: passed on to the caller; rows start at state·stride with state < S.
        unsafe {
            let feature = phi.add(atom.state() * stride);
            over_strips!(I, W, stride, |at, _r| {
                if at % LINE == 0 {
                    prefetch(here.wrapping_add(at));
                    prefetch(next.wrapping_add(at));
                }
                let field = I::mul(delta, I::load(feature.add(at)));
                let change = I::mul(step, I::add(field, I::load(xi.add(at))));
                I::store(theta.add(at), I::sub(I::load(theta.add(at)), change));
            });
        }
    }

    /// (φ(s) − γφ(s'))ᵀθ for the transition `atom` and a padded row θ.
    ///
    /// # Safety
    /// As for `run_in_strips`; the atom is one of these tables.
    #[inline(always)]
    unsafe fn along_strips<I: Simd, const W: usize>(&self, atom: Atom, theta: *const f64) -> f64 {
        // SAFETY: rows start at state·stride with state < S.
        unsafe {
            let here = self.phi.as_ptr().add(atom.state() * self.stride);
            let next = self.phi.as_ptr().add(atom.next() * self.stride);
            let discount = I::splat(self.discount);
            // The first term that is added to −0 keeps its bits, also if it is −0.
            let mut sums = [I::splat(-0.0); W];
            over_strips!(I, W, self.stride, |at, r| {
                let later = I::mul(discount, I::load(next.add(at)));
                let change = I::sub(I::load(here.add(at)), later);
                sums[r] = I::add(sums[r], I::mul(change, I::load(theta.add(at))));
            });
            folded::<I, W>(sums)
        }
    }
}
