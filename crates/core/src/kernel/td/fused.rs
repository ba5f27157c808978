//! The fused bodies: up to four clients in lockstep, one step of many clients, and
//! prefetching if there are more clients than fit in the caches.

use super::tables::{Atom, TransitionTables};
use crate::kernel::cohort::EqualSteps;
use crate::kernel::padding::{SHORT, WIDEST, WIDEST_SHORT};
use crate::kernel::simd::{InstructionSet, Simd, fold_registers, in_lanes, prefetch_all};
use crate::kernel::strips::with_strip;

/// The most registers that θ of a client may fill: half of those that the processor has.
const MOST_REGISTERS: usize = if cfg!(target_arch = "aarch64") { 16 } else { 8 };

/// If all distributions together have more transitions than this (16 bytes each), most of them are not in the
/// second-level cache when a round reads them, and are prefetched.
pub(super) const NEAR: usize = 16_384;

impl TransitionTables {
    /// Runs all local steps of some clients with equal numbers of steps. It is not generic, so that the fused steps are
    /// compiled once for all types of states.
    ///
    /// # Safety
    /// Clients and dimension agree with the tables, and steps are plain: one oracle call each, without a proximal term.
    /// There is a fused body: d is at least 2, and with one lane the stride exceeds [`SHORT`].
    #[inline(never)]
    pub(super) unsafe fn run(&self, path: InstructionSet, clients: &mut EqualSteps<'_>) {
        // A row of one register of eight lanes waits longer for its sum than two of four do.
        let most = match self.stride {
            0..=2 => 2,
            long if long >= 2 * WIDEST && long.is_multiple_of(WIDEST) => WIDEST,
            _ => WIDEST_SHORT,
        };
        let tables = self;
        let path = path.at_most(most);
        // SAFETY: passed on to the caller.
        in_lanes!(path, I, (tables: &TransitionTables, clients: &mut EqualSteps<'_>) => {
            tables.groups::<I>(clients)
        });
    }

    /// Runs all local steps in registers of `I`: short rows are held by a number of registers that is known at compile
    /// time, and long ones are passed over in strips.
    ///
    /// # Safety
    /// The instruction set `I` is present, and a padded row is whole registers of it; clients and dimension agree with
    /// the tables, and there is a fused body, as for `run`.
    #[inline(always)]
    unsafe fn groups<I: Simd>(&self, clients: &mut EqualSteps<'_>) {
        // SAFETY: passed on to the caller; R registers hold a padded row.
        unsafe {
            let is_long = self.stride > SHORT || self.stride / I::LANES > MOST_REGISTERS;
            if I::LANES == 1 || is_long {
                return with_strip!(I, W => self.run_in_strips::<I, W>(clients));
            }
            match self.stride / I::LANES {
                1 => self.cascade::<I, 1>(clients),
                2 => self.cascade::<I, 2>(clients),
                3 => self.cascade::<I, 3>(clients),
                4 => self.cascade::<I, 4>(clients),
                5 => self.cascade::<I, 5>(clients),
                6 => self.cascade::<I, 6>(clients),
                7 => self.cascade::<I, 7>(clients),
                8 => self.cascade::<I, 8>(clients),
                10 if MOST_REGISTERS > 8 => self.cascade::<I, 10>(clients),
                12 if MOST_REGISTERS > 8 => self.cascade::<I, 12>(clients),
                14 if MOST_REGISTERS > 8 => self.cascade::<I, 14>(clients),
                16 if MOST_REGISTERS > 8 => self.cascade::<I, 16>(clients),
                _ => unreachable!("no fused body for d = {}", self.d),
            }
        }
    }

    /// Runs all local steps of clients whose rows R registers hold, of four or three clients in lockstep after each
    /// other, and of fewer only at the end: three hide the latency of a step as well as four do.
    ///
    /// # Safety
    /// As for `groups`; R registers hold a padded row.
    #[inline(always)]
    unsafe fn cascade<I: Simd, const R: usize>(&self, clients: &mut EqualSteps<'_>) {
        let mut first = 0;
        let n = clients.len();
        if clients.steps == 1 {
            // SAFETY: passed on to the caller.
            return unsafe { self.step_once::<I, R>(clients) };
        }
        while first < n {
            // SAFETY: passed on to the caller.
            first += unsafe {
                if self.pairs > NEAR {
                    self.prefetch_members(clients, first + 4, 4);
                }
                match n - first {
                    1 => self.lockstep::<I, R, 1>(clients, first),
                    2 => self.lockstep::<I, R, 2>(clients, first),
                    5 | 6 | 9 | 3 => self.lockstep::<I, R, 3>(clients, first),
                    _ => self.lockstep::<I, R, 4>(clients, first),
                }
            }
        }
    }

    /// Prefetches what the `count` members from number `next` on will read of their distributions, the draws of the
    /// `count` members after them, and where the streams of the `count` members after those stand: each is needed to
    /// know what to prefetch next. With more clients than fit in the caches, memory is so read while other clients are
    /// stepped. Numbers beyond the last member are ignored. Streams may make draws ahead here, which changes none.
    ///
    /// # Safety
    /// Members are clients of these tables.
    #[inline(always)]
    unsafe fn prefetch_members(&self, clients: &mut EqualSteps<'_>, next: usize, count: usize) {
        /// The most steps to prefetch; later ones are prefetched in time by the processor.
        const STEPS: u64 = 16;
        let steps = STEPS.min(clients.steps);
        (next + 2 * count..next + 3 * count).for_each(|k| clients.prefetch_position(k));
        (next + count..next + 2 * count).for_each(|k| clients.prefetch_draws(k));
        for k in next..(next + count).min(clients.len()) {
            let mut lane = clients.lanes::<1>(k);
            let ([draws], ready) = lane.ready(steps);
            // SAFETY: members have distributions; only draws that are ready are read.
            unsafe {
                let distribution = self.member(lane.client[0]);
                (0..ready).for_each(|i| distribution.pairs.prefetch(*draws.add(i)));
                prefetch_all(distribution.rewards.as_ptr(), 8 * distribution.rewards.len().min(64));
            }
        }
    }

    /// Runs the local steps where each member takes one. There is no chain of steps whose latency could be
    /// hidden, but the latency of memory dominates: first all draws of a block of members are made, then all
    /// updates, so that the reads of a block overlap.
    ///
    /// # Safety
    /// As for `cascade`.
    #[inline(always)]
    unsafe fn step_once<I: Simd, const R: usize>(&self, clients: &mut EqualSteps<'_>) {
        const BLOCK: usize = 16;
        let d = self.d;
        let n = clients.len();
        let phi = self.phi.as_ptr();
        let mut atoms = [Atom(0); BLOCK];
        let mut rewards = [0.0; BLOCK];
        for begin in (0..n).step_by(BLOCK) {
            let block = BLOCK.min(n - begin);
            if self.pairs > NEAR {
                // SAFETY: passed on to the caller.
                unsafe { self.prefetch_members(clients, begin + BLOCK, BLOCK) };
            }
            for k in 0..block {
                let mut lane = clients.lanes::<1>(begin + k);
                // SAFETY: members have distributions; there is a reward for each state.
                unsafe {
                    let distribution = self.member(lane.client[0]);
                    atoms[k] = distribution.pairs.pick(lane.bits(0));
                    rewards[k] = *distribution.rewards.get_unchecked(atoms[k].state());
                }
            }
            for k in 0..block {
                let lane = clients.lanes::<1>(begin + k);
                // SAFETY: as in `lockstep`.
                unsafe {
                    let step = I::splat(lane.step[0]);
                    let mut theta = I::load_row::<R>(lane.start[0], d);
                    let xi = I::load_row::<R>(lane.correction[0], d);
                    let feature = I::load_all::<R>(phi.add(atoms[k].state() * R * I::LANES));
                    let along = self.along::<I, R>(atoms[k], &feature, &theta);
                    let delta = I::splat(along - rewards[k]);
                    for r in 0..R {
                        let field = I::mul(delta, feature[r]);
                        theta[r] = I::sub(theta[r], I::mul(step, I::add(field, xi[r])));
                    }
                    I::store_row(lane.theta[0], d, theta);
                }
            }
        }
    }

    /// (φ(s) − γφ(s'))ᵀθ for the transition `atom`, with `feature` = φ(s).
    ///
    /// # Safety
    /// As for `cascade`; the atom is one of these tables.
    #[inline(always)]
    unsafe fn along<I: Simd, const R: usize>(
        &self,
        atom: Atom,
        feature: &[I::V; R],
        theta: &[I::V; R],
    ) -> f64 {
        // SAFETY: rows start at state·stride with state < S and have R registers.
        unsafe {
            let phi = self.phi.as_ptr();
            let discount = I::splat(self.discount);
            let next = I::load_all::<R>(phi.add(atom.next() * R * I::LANES));
            let mut product = *feature;
            for r in 0..R {
                let change = I::sub(feature[r], I::mul(discount, next[r]));
                product[r] = I::mul(change, theta[r]);
            }
            fold_registers::<I, R>(product)
        }
    }

    /// Runs all local steps of K members from number `from` on, step by step for all of them, and returns K.
    ///
    /// # Safety
    /// As for `cascade`.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn lockstep<I: Simd, const R: usize, const K: usize>(
        &self,
        clients: &mut EqualSteps<'_>,
        from: usize,
    ) -> usize {
        let phi = self.phi.as_ptr();
        let d = self.d;
        let mut left = clients.steps;
        let mut lanes = clients.lanes::<K>(from);
        // SAFETY: rows start at state·stride with state < S; R registers hold a
        // row, and θ and ξ hold d numbers; only draws that are ready are read; members
        // have distributions.
        unsafe {
            let mut distributions = [self.member(lanes.client[0]); K];
            for k in 1..K {
                distributions[k] = self.member(lanes.client[k]);
            }
            let mut theta = [[I::splat(0.0); R]; K];
            let mut xi = theta;
            let mut step = [I::splat(0.0); K];
            for k in 0..K {
                theta[k] = I::load_row(lanes.start[k], d);
                xi[k] = I::load_row(lanes.correction[k], d);
                step[k] = I::splat(lanes.step[k]);
            }
            while left > 0 {
                let (draws, now) = lanes.ready(left);
                for i in 0..now {
                    for k in 0..K {
                        let atom = distributions[k].pairs.pick(*draws[k].add(i));
                        let feature = I::load_all::<R>(phi.add(atom.state() * R * I::LANES));
                        let along = self.along::<I, R>(atom, &feature, &theta[k]);
                        let reward = *distributions[k].rewards.get_unchecked(atom.state());
                        let delta = I::splat(along - reward);
                        for r in 0..R {
                            let field = I::mul(delta, feature[r]);
                            let change = I::mul(step[k], I::add(field, xi[k][r]));
                            theta[k][r] = I::sub(theta[k][r], change);
                        }
                    }
                }
                lanes.skip(now);
                left -= now as u64;
            }
            for k in 0..K {
                I::store_row(lanes.theta[k], d, theta[k]);
            }
        }
        K
    }
}
