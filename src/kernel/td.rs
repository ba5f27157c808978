//! The fused local step of TD(0): one draw, two rows, one dot product, one
//! update, for up to four clients in lockstep.
//!
//! A chain of dependent steps is bound by latency; four independent chains
//! side by side fill the gaps. Every path computes, per step and client,
//! δ = Σ (φ(s) − γφ(s'))θ − r(s), θ ← θ − step (δ φ(s) + ξ), in the order of
//! [`super::fold_sum`] and [`super::descend`].

use super::alias::Alias;
use super::cohort::{Cohort, Even, Local};
#[cfg(target_arch = "aarch64")]
use super::simd::Neon;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Sse2};
use super::simd::{Path, Scalar, Simd, fold_registers, padded, prefetch_all};
use super::{descend, fold_sum};
use crate::rng::Stream;

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

/// The law of one client's transitions and its rewards.
#[derive(Clone, Debug)]
struct Client {
    pairs: Alias<Atom>,
    rewards: Vec<f64>,
}

/// What the kernel reads: features shared by all clients, and each client's
/// transition law as an alias table.
#[derive(Clone, Debug)]
pub struct Tables {
    d: usize,
    /// From one row of φ to the next: d, with zeros up to whole registers.
    stride: usize,
    /// φ, S rows.
    phi: Vec<f64>,
    /// γφ, S rows.
    discounted: Vec<f64>,
    laws: Vec<Client>,
    /// Which law is a client's.
    of: Vec<u32>,
    /// Pairs of all laws together.
    pairs: usize,
}

/// Pairs of all laws together beyond which a round finds most of them outside of
/// the second cache: 16 bytes each.
const NEAR: usize = 16_384;

/// The most states that a [`Tables`] can hold.
pub const MAX_STATES: usize = 1 << 16;

impl Tables {
    /// Tables of the features `phi` (S rows of d) under the discount γ.
    ///
    /// # Panics
    /// If `phi` is not S rows of `d`, or S exceeds [`MAX_STATES`].
    pub fn new(d: usize, phi: Vec<f64>, discount: f64) -> Self {
        assert!(d > 0 && phi.len().is_multiple_of(d) && phi.len() / d <= MAX_STATES);
        let stride = padded(d);
        let mut rows = vec![0.0; phi.len() / d * stride];
        rows.chunks_exact_mut(stride)
            .zip(phi.chunks_exact(d))
            .for_each(|(to, from)| to[..d].copy_from_slice(from));
        let discounted = rows.iter().map(|x| discount * x).collect();
        Self { d, stride, phi: rows, discounted, laws: Vec::new(), of: Vec::new(), pairs: 0 }
    }

    fn states(&self) -> usize {
        self.phi.len() / self.stride
    }

    /// The law of a client.
    #[inline(always)]
    fn law(&self, client: usize) -> &Client {
        &self.laws[self.of[client] as usize]
    }

    /// The law of a member of a cohort that was checked.
    ///
    /// # Safety
    /// There is such a client.
    #[inline(always)]
    unsafe fn member(&self, client: usize) -> &Client {
        // SAFETY: the caller's client; `of` only holds indices of laws.
        unsafe { self.laws.get_unchecked(*self.of.get_unchecked(client) as usize) }
    }

    /// Adds a client whose law is that of an earlier one.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn repeat(&mut self, client: usize) {
        self.of.push(self.of[client]);
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
        self.of.push(self.laws.len() as u32);
        self.pairs += pairs.len();
        self.laws.push(Client { pairs: Alias::new(&atoms), rewards });
    }

    /// The definition of one oracle call on a drawn pair.
    #[inline]
    pub fn oracle(&self, client: usize, draw: u64, theta: &[f64], field: &mut [f64]) {
        let atom = self.law(client).pairs.pick(draw);
        self.field(client, atom.state(), atom.next(), theta, field);
    }

    /// The field on the pair (s, s'): (φ(s) − γφ(s'))ᵀθ φ(s) − r(s) φ(s).
    #[inline(always)]
    pub fn field(&self, client: usize, s: usize, next: usize, theta: &[f64], field: &mut [f64]) {
        let d = theta.len();
        let phi = &self.phi[s * self.stride..][..d];
        let next = &self.discounted[next * self.stride..][..d];
        let delta = fold_sum(d, |i| (phi[i] - next[i]) * theta[i]) - self.law(client).rewards[s];
        for (field, phi) in field.iter_mut().zip(phi) {
            *field = delta * phi;
        }
    }

    /// Runs every client of the cohort through its local steps.
    ///
    /// # Panics
    /// If a member is no client of these tables, or dimensions differ.
    #[inline]
    pub fn advance<S>(&self, cohort: Cohort<'_, S>) {
        self.advance_on(Path::best(), cohort);
    }

    /// [`Tables::advance`] on a chosen path; the bits do not depend on it.
    #[inline]
    pub fn advance_on<S>(&self, path: Path, mut cohort: Cohort<'_, S>) {
        assert!(cohort.end() <= self.of.len() && cohort.dim() == self.d);
        if !self.fused(path) {
            return cohort.each(|local| self.define(local));
        }
        // SAFETY: the path was found on this processor; clients and dimension
        // were checked above, states when they were pushed.
        cohort.even(|even| unsafe { self.run(path, even) });
    }

    /// Whether there is a fused body for this dimension: half of the registers
    /// hold θ of a client at most.
    fn fused(&self, path: Path) -> bool {
        let most = match path {
            Path::Scalar => 0,
            #[cfg(target_arch = "x86_64")]
            Path::Sse2 => 16,
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => 32,
            #[cfg(target_arch = "aarch64")]
            Path::Neon => 32,
        };
        2 <= self.d && self.stride <= most
    }

    /// Not generic, so that the fused bodies are compiled once, whatever the
    /// clients' states are.
    ///
    /// # Safety
    /// The path is this processor's and has a fused body; clients and dimension
    /// agree with the tables.
    #[inline(never)]
    unsafe fn run(&self, path: Path, even: &mut Even<'_>) {
        // SAFETY: passed on to the caller.
        unsafe {
            match path {
                Path::Scalar => unreachable!("the definition is its body"),
                #[cfg(target_arch = "x86_64")]
                Path::Avx2 if self.d > 2 => self.avx2(even),
                #[cfg(target_arch = "x86_64")]
                Path::Sse2 | Path::Avx2 => self.groups::<Sse2>(even),
                #[cfg(target_arch = "aarch64")]
                Path::Neon => self.groups::<Neon>(even),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn avx2(&self, even: &mut Even<'_>) {
        // SAFETY: the instruction set is on by the attribute above; the rest
        // was checked by the only caller.
        unsafe { self.groups::<Avx2>(even) }
    }

    /// # Safety
    /// The instruction set `I` is present; clients and lengths are in range.
    #[inline(always)]
    unsafe fn groups<I: Simd>(&self, even: &mut Even<'_>) {
        // SAFETY: passed on to the caller; R registers hold a padded row.
        unsafe {
            match self.stride / I::LANES {
                1 => self.cascade::<I, 1>(even),
                2 => self.cascade::<I, 2>(even),
                3 => self.cascade::<I, 3>(even),
                4 => self.cascade::<I, 4>(even),
                5 => self.cascade::<I, 5>(even),
                6 => self.cascade::<I, 6>(even),
                7 => self.cascade::<I, 7>(even),
                8 => self.cascade::<I, 8>(even),
                #[cfg(target_arch = "aarch64")]
                10 => self.cascade::<I, 10>(even),
                #[cfg(target_arch = "aarch64")]
                12 => self.cascade::<I, 12>(even),
                #[cfg(target_arch = "aarch64")]
                14 => self.cascade::<I, 14>(even),
                #[cfg(target_arch = "aarch64")]
                16 => self.cascade::<I, 16>(even),
                _ => unreachable!("no fused body for d = {}", self.d),
            }
        }
    }

    /// Four or three clients in lockstep, fewer only where there are no more:
    /// three fill the gaps of a processor as well as four do.
    ///
    /// # Safety
    /// As for `groups`; R registers hold a padded row.
    #[inline(always)]
    unsafe fn cascade<I: Simd, const R: usize>(&self, even: &mut Even<'_>) {
        let (mut at, n) = (0, even.members().len());
        if even.steps == 1 {
            // SAFETY: passed on to the caller.
            return unsafe { self.single::<I, R>(even) };
        }
        while at < n {
            // SAFETY: passed on to the caller.
            at += unsafe {
                if self.pairs > NEAR {
                    self.foresee(even, at + 4, 4);
                }
                match n - at {
                    1 => self.lockstep::<I, R, 1>(even, at),
                    2 => self.lockstep::<I, R, 2>(even, at),
                    5 | 6 | 9 | 3 => self.lockstep::<I, R, 3>(even, at),
                    _ => self.lockstep::<I, R, 4>(even, at),
                }
            }
        }
    }

    /// Asks for what `count` members from number `next` on will read of their
    /// laws, for the draws of as many after them, and for where these are of as
    /// many again: where there are more clients than the caches hold, the wait
    /// for one is the work of others.
    ///
    /// # Safety
    /// Members are clients.
    #[inline(always)]
    unsafe fn foresee(&self, even: &mut Even<'_>, next: usize, count: usize) {
        /// Steps ahead at most: what comes later has time.
        const STEPS: u64 = 16;
        let steps = STEPS.min(even.steps);
        (next + 2 * count..next + 3 * count).for_each(|k| even.ask_first(k));
        (next + count..next + 2 * count).for_each(|k| even.ask(k));
        for k in next..(next + count).min(even.members().len()) {
            let mut lane = even.lanes::<1>(k);
            let ([draws], ready) = lane.ready(steps);
            // SAFETY: members have laws; draws are read that are ready.
            unsafe {
                let law = self.member(lane.client[0]);
                (0..ready).for_each(|i| law.pairs.ask(*draws.add(i)));
                prefetch_all(law.rewards.as_ptr(), 8 * law.rewards.len().min(64));
            }
        }
    }

    /// One step of every member. There is no chain of steps whose latency others
    /// could fill, but memory to wait for: first all draws of a block, then all
    /// updates, so that many waits are one.
    ///
    /// # Safety
    /// As for `cascade`.
    #[inline(always)]
    unsafe fn single<I: Simd, const R: usize>(&self, even: &mut Even<'_>) {
        const BLOCK: usize = 16;
        let (d, n) = (self.d, even.members().len());
        let phi = self.phi.as_ptr();
        let mut atoms = [Atom(0); BLOCK];
        let mut rewards = [0.0; BLOCK];
        for begin in (0..n).step_by(BLOCK) {
            let block = BLOCK.min(n - begin);
            if self.pairs > NEAR {
                // SAFETY: passed on to the caller.
                unsafe { self.foresee(even, begin + BLOCK, BLOCK) };
            }
            for at in 0..block {
                let mut lane = even.lanes::<1>(begin + at);
                // SAFETY: members have laws; there is a reward for each state.
                unsafe {
                    let law = self.member(lane.client[0]);
                    atoms[at] = law.pairs.pick(lane.bits(0));
                    rewards[at] = *law.rewards.get_unchecked(atoms[at].state());
                }
            }
            for at in 0..block {
                let lane = even.lanes::<1>(begin + at);
                // SAFETY: as in `lockstep`.
                unsafe {
                    let step = I::splat(lane.step[0]);
                    let mut theta = I::load_row::<R>(lane.start[0], d);
                    let xi = I::load_row::<R>(lane.correction[0], d);
                    let feature = I::load_all::<R>(phi.add(atoms[at].state() * R * I::LANES));
                    let along = self.along::<I, R>(atoms[at], &feature, &theta);
                    let delta = I::splat(along - rewards[at]);
                    for r in 0..R {
                        let field = I::mul(delta, feature[r]);
                        theta[r] = I::sub(theta[r], I::mul(step, I::add(field, xi[r])));
                    }
                    I::store_row(lane.theta[0], d, theta);
                }
            }
        }
    }

    /// (φ(s) − γφ(s'))ᵀθ.
    ///
    /// # Safety
    /// As for `cascade`; the atom is one of the law's.
    #[inline(always)]
    unsafe fn along<I: Simd, const R: usize>(
        &self,
        atom: Atom,
        feature: &[I::V; R],
        theta: &[I::V; R],
    ) -> f64 {
        // SAFETY: rows start at state·stride with state < S and have R registers.
        unsafe {
            let next = I::load_all::<R>(self.discounted.as_ptr().add(atom.next() * R * I::LANES));
            let mut product = *feature;
            for r in 0..R {
                product[r] = I::mul(I::sub(feature[r], next[r]), theta[r]);
            }
            fold_registers::<I, R>(product)
        }
    }

    /// Steps K members from number `from` on, and says K.
    ///
    /// # Safety
    /// As for `cascade`.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn lockstep<I: Simd, const R: usize, const K: usize>(
        &self,
        even: &mut Even<'_>,
        from: usize,
    ) -> usize {
        let phi = self.phi.as_ptr();
        let (d, mut left) = (self.d, even.steps);
        let mut lanes = even.lanes::<K>(from);
        // SAFETY: rows start at state·stride with state < S; R registers hold a
        // row, and θ and ξ hold d numbers; draws are read that are ready; members
        // have laws.
        unsafe {
            let mut laws = [self.member(lanes.client[0]); K];
            for k in 1..K {
                laws[k] = self.member(lanes.client[k]);
            }
            let mut theta = [[I::splat(0.0); R]; K];
            let (mut xi, mut step) = (theta, [I::splat(0.0); K]);
            for k in 0..K {
                theta[k] = I::load_row(lanes.start[k], d);
                xi[k] = I::load_row(lanes.correction[k], d);
                step[k] = I::splat(lanes.step[k]);
            }
            while left > 0 {
                let (draws, now) = lanes.ready(left);
                for i in 0..now {
                    for k in 0..K {
                        let atom = laws[k].pairs.pick(*draws[k].add(i));
                        let feature = I::load_all::<R>(phi.add(atom.state() * R * I::LANES));
                        let along = self.along::<I, R>(atom, &feature, &theta[k]);
                        let reward = *laws[k].rewards.get_unchecked(atom.state());
                        let delta = I::splat(along - reward);
                        for r in 0..R {
                            let field = I::mul(delta, feature[r]);
                            let move_ = I::mul(step[k], I::add(field, xi[k][r]));
                            theta[k][r] = I::sub(theta[k][r], move_);
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

    /// The least that a step of TD(0) can do, as a limit to compare with: draw,
    /// gather two rows, update θ (rows of 8), without rewards, without ξ,
    /// without anybody else's bits. Four clients in lockstep on the fastest path.
    ///
    /// # Panics
    /// If d is not 8, or there are not as many streams and rows as clients.
    #[doc(hidden)]
    pub fn limit(&self, streams: &mut [Stream], theta: &mut [[f64; 8]], step: f64, steps: u64) {
        assert!(self.d == 8 && streams.len() == theta.len() && theta.len() <= self.of.len());
        // SAFETY: the path was found on this processor; the rest was checked.
        unsafe {
            match Path::best() {
                #[cfg(target_arch = "x86_64")]
                Path::Avx2 => self.limit_avx2(streams, theta, step, steps),
                #[cfg(target_arch = "x86_64")]
                Path::Sse2 => self.least::<Sse2, 4>(streams, theta, step, steps),
                #[cfg(target_arch = "aarch64")]
                Path::Neon => self.least::<Neon, 4>(streams, theta, step, steps),
                Path::Scalar => self.least::<Scalar, 8>(streams, theta, step, steps),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn limit_avx2(&self, streams: &mut [Stream], theta: &mut [[f64; 8]], step: f64, steps: u64) {
        // SAFETY: as for `avx2`.
        unsafe { self.least::<Avx2, 2>(streams, theta, step, steps) }
    }

    /// # Safety
    /// As for `groups`; d = 8 = R·LANES.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn least<I: Simd, const R: usize>(
        &self,
        streams: &mut [Stream],
        theta: &mut [[f64; 8]],
        step: f64,
        steps: u64,
    ) {
        const K: usize = 4;
        let (streams, rows) = (streams.as_chunks_mut::<K>().0, theta.as_chunks_mut::<K>().0);
        for (g, (streams, rows)) in streams.iter_mut().zip(rows).enumerate() {
            // SAFETY: rows of 8 numbers; draws are read that are ready.
            unsafe {
                let laws: [&Client; K] = std::array::from_fn(|k| self.law(g * K + k));
                let mut theta = [[I::splat(0.0); R]; K];
                for k in 0..K {
                    theta[k] = I::load_all(rows[k].as_ptr());
                }
                let (step, mut left) = (I::splat(step), steps as usize);
                while left > 0 {
                    let mut now = left;
                    for k in 0..K {
                        now = now.min(streams[k].ready().len());
                    }
                    let draws: [*const u64; K] =
                        std::array::from_fn(|k| streams[k].ready().as_ptr());
                    for i in 0..now {
                        for k in 0..K {
                            let atom = laws[k].pairs.pick(*draws[k].add(i));
                            let feature = I::load_all::<R>(self.phi.as_ptr().add(atom.state() * 8));
                            let next =
                                I::load_all::<R>(self.discounted.as_ptr().add(atom.next() * 8));
                            let mut product = feature;
                            for r in 0..R {
                                product[r] = I::mul(I::sub(feature[r], next[r]), theta[k][r]);
                            }
                            let delta = I::mul(step, I::splat(fold_registers::<I, R>(product)));
                            for r in 0..R {
                                theta[k][r] = I::sub(theta[k][r], I::mul(delta, feature[r]));
                            }
                        }
                    }
                    streams.iter_mut().for_each(|stream| stream.skip(now));
                    left -= now;
                }
                for k in 0..K {
                    for r in 0..R {
                        I::store(rows[k].as_mut_ptr().add(r * I::LANES), theta[k][r]);
                    }
                }
            }
        }
    }

    /// The definition, for dimensions without a fused body.
    fn define<S>(&self, local: Local<'_, S>) {
        let mut field = vec![0.0; self.d];
        for _ in 0..local.steps {
            self.oracle(local.client, local.rng.bits(), local.theta, &mut field);
            descend(local.theta, &field, local.correction, local.step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cohort::testing::thetas;
    use crate::rng::Stream;

    fn tables(d: usize, states: usize, clients: usize) -> Tables {
        let mut s = Stream::shared_instance(7);
        let phi = (0..states * d).map(|_| s.uniform()).collect();
        let mut tables = Tables::new(d, phi, 0.95);
        for _ in 0..clients {
            let pairs: Vec<_> =
                (0..3 * states).map(|i| (i % states, s.index(states), s.uniform())).collect();
            let rewards = (0..states).map(|_| s.uniform()).collect();
            tables.push(&pairs, rewards);
        }
        tables
    }

    #[test]
    fn every_path_gives_the_bits_of_the_definition() {
        for d in (1..=33).chain([40]) {
            let tables = tables(d, 11, 11);
            for (clients, steps) in [(1, 0), (1, 33), (2, 70), (3, 1), (4, 10), (5, 33), (6, 1)]
                .into_iter()
                .chain([(7, 200), (9, 40), (10, 1), (11, 64)])
            {
                let define = |cohort: Cohort<'_, ()>| cohort.each(|local| tables.define(local));
                let expected = thetas(d, clients, |_| steps, define);
                for path in Path::available() {
                    let got =
                        thetas(d, clients, |_| steps, |cohort| tables.advance_on(path, cohort));
                    assert_eq!(got, expected, "d {d}, {clients} clients, {steps} steps, {path:?}");
                }
            }
        }
    }

    #[test]
    fn clients_beyond_the_caches_get_the_same_draws() {
        let tables = tables(8, 11, 530);
        assert!(tables.pairs > NEAR);
        for steps in [1, 10, 33] {
            let define = |cohort: Cohort<'_, ()>| cohort.each(|local| tables.define(local));
            let expected = thetas(8, 530, |_| steps, define);
            for path in Path::available() {
                let got = thetas(8, 530, |_| steps, |cohort| tables.advance_on(path, cohort));
                assert!(got == expected, "{steps} steps, {path:?}");
            }
        }
    }

    #[test]
    fn unequal_steps_are_kept_apart() {
        let tables = tables(8, 11, 7);
        let steps = |c: usize| [5, 5, 5, 40, 40, 0, 1][c];
        let expected = thetas(8, 7, steps, |c| c.each(|local| tables.define(local)));
        assert_eq!(thetas(8, 7, steps, |c| tables.advance(c)), expected);
    }
}
