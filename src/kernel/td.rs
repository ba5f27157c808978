//! The fused local step of TD(0): one draw, two rows, one dot product, one
//! update, for up to four clients in lockstep.
//!
//! A chain of dependent steps is bound by latency; four independent chains
//! side by side fill the gaps. Every path computes, per step and client,
//! δ = Σ (φ(s) − γφ(s'))θ − r(s), θ ← θ − step (δ φ(s) + ξ), in the order of
//! [`super::fold_sum`] and [`super::descend`].

use super::alias::Alias;
#[cfg(target_arch = "aarch64")]
use super::simd::Neon;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Sse2};
use super::simd::{Path, Scalar, Simd};
use super::{Local, descend, fold_sum};

/// Draws taken from a client's stream at a time.
const BATCH: usize = 32;

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
    /// φ, S rows of d.
    phi: Vec<f64>,
    /// γφ, S rows of d.
    discounted: Vec<f64>,
    laws: Vec<Client>,
    /// Which law is a client's.
    of: Vec<u32>,
}

/// The most states that a [`Tables`] can hold.
pub const MAX_STATES: usize = 1 << 16;

impl Tables {
    /// Tables of the features `phi` (S rows of d) under the discount γ.
    ///
    /// # Panics
    /// If `phi` is not S rows of `d`, or S exceeds [`MAX_STATES`].
    pub fn new(d: usize, phi: Vec<f64>, discount: f64) -> Self {
        assert!(d > 0 && phi.len().is_multiple_of(d) && phi.len() / d <= MAX_STATES);
        let discounted = phi.iter().map(|x| discount * x).collect();
        Self { d, phi, discounted, laws: Vec::new(), of: Vec::new() }
    }

    fn states(&self) -> usize {
        self.phi.len() / self.d
    }

    /// The law of a client.
    #[inline(always)]
    fn law(&self, client: usize) -> &Client {
        &self.laws[self.of[client] as usize]
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
        let phi = &self.phi[s * d..][..d];
        let next = &self.discounted[next * d..][..d];
        let delta = fold_sum(d, |i| (phi[i] - next[i]) * theta[i]) - self.law(client).rewards[s];
        for (field, phi) in field.iter_mut().zip(phi) {
            *field = delta * phi;
        }
    }

    /// Runs every client of the cohort through its local steps.
    #[inline]
    pub fn advance<S>(&self, cohort: &mut [Local<'_, S>]) {
        self.advance_on(Path::best(), cohort);
    }

    /// [`Tables::advance`] on a chosen path; the bits do not depend on it.
    pub fn advance_on<S>(&self, path: Path, cohort: &mut [Local<'_, S>]) {
        for local in cohort.iter() {
            assert!(local.client < self.of.len());
            assert!(local.theta.len() == self.d && local.correction.len() == self.d);
        }
        for even in cohort.chunk_by_mut(|a, b| a.steps == b.steps) {
            // SAFETY: the path was found on this processor; clients and
            // lengths were checked above, states when they were pushed.
            unsafe {
                match path {
                    Path::Scalar => self.groups::<Scalar, S>(even),
                    #[cfg(target_arch = "x86_64")]
                    Path::Sse2 => self.groups::<Sse2, S>(even),
                    #[cfg(target_arch = "x86_64")]
                    Path::Avx2 => self.avx2(even),
                    #[cfg(target_arch = "aarch64")]
                    Path::Neon => self.groups::<Neon, S>(even),
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn avx2<S>(&self, cohort: &mut [Local<'_, S>]) {
        // SAFETY: the instruction set is on by the attribute above; the rest
        // was checked by the only caller.
        unsafe { self.groups::<Avx2, S>(cohort) }
    }

    /// # Safety
    /// The instruction set `I` is present; clients and lengths are in range.
    #[inline(always)]
    unsafe fn groups<I: Simd, S>(&self, cohort: &mut [Local<'_, S>]) {
        // SAFETY: passed on to the caller; R·LANES = d in every arm.
        unsafe {
            match self.d / I::LANES * usize::from(self.d.is_multiple_of(I::LANES)) {
                1 if I::LANES > 1 => self.cascade::<I, 1, S>(cohort),
                2 => self.cascade::<I, 2, S>(cohort),
                4 => self.cascade::<I, 4, S>(cohort),
                8 => self.cascade::<I, 8, S>(cohort),
                16 => self.cascade::<I, 16, S>(cohort),
                _ => cohort.iter_mut().for_each(|local| self.define(local)),
            }
        }
    }

    /// Four clients in lockstep, then two, then one.
    ///
    /// # Safety
    /// As for `groups`; R·LANES = d; all of the cohort have the same steps.
    #[inline(always)]
    unsafe fn cascade<I: Simd, const R: usize, S>(&self, cohort: &mut [Local<'_, S>]) {
        let (fours, rest) = cohort.as_chunks_mut::<4>();
        let (twos, ones) = rest.as_chunks_mut::<2>();
        // SAFETY: passed on to the caller.
        unsafe {
            fours.iter_mut().for_each(|group| self.lockstep::<I, R, 4, S>(group));
            twos.iter_mut().for_each(|group| self.lockstep::<I, R, 2, S>(group));
            let (ones, _) = ones.as_chunks_mut::<1>();
            ones.iter_mut().for_each(|group| self.lockstep::<I, R, 1, S>(group));
        }
    }

    /// # Safety
    /// As for `cascade`.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn lockstep<I: Simd, const R: usize, const K: usize, S>(
        &self,
        group: &mut [Local<'_, S>; K],
    ) {
        let (phi, discounted) = (self.phi.as_ptr(), self.discounted.as_ptr());
        let laws: [&Client; K] = std::array::from_fn(|k| self.law(group[k].client));
        let mut draws = [[0u64; BATCH]; K];
        let mut left = group[0].steps;
        // SAFETY: rows start at state·d with state < S; θ and ξ hold d = R·LANES.
        unsafe {
            let load = |from: *const f64| -> [I::V; R] {
                std::array::from_fn(|r| I::load(from.add(r * I::LANES)))
            };
            let mut theta: [[I::V; R]; K] = std::array::from_fn(|k| load(group[k].theta.as_ptr()));
            let xi: [[I::V; R]; K] = std::array::from_fn(|k| load(group[k].correction.as_ptr()));
            let step: [I::V; K] = std::array::from_fn(|k| I::splat(group[k].step));
            while left > 0 {
                let now = left.min(BATCH as u64) as usize;
                for k in 0..K {
                    group[k].rng.fill(&mut draws[k][..now]);
                }
                for i in 0..now {
                    for k in 0..K {
                        let atom = laws[k].pairs.pick(draws[k][i]);
                        let feature = load(phi.add(atom.state() * R * I::LANES));
                        let next = load(discounted.add(atom.next() * R * I::LANES));
                        let product = std::array::from_fn(|r| {
                            I::mul(I::sub(feature[r], next[r]), theta[k][r])
                        });
                        let reward = *laws[k].rewards.get_unchecked(atom.state());
                        let delta = I::splat(fold_registers::<I, R>(product) - reward);
                        for r in 0..R {
                            let field = I::mul(delta, feature[r]);
                            let move_ = I::mul(step[k], I::add(field, xi[k][r]));
                            theta[k][r] = I::sub(theta[k][r], move_);
                        }
                    }
                }
                left -= now as u64;
            }
            for k in 0..K {
                for r in 0..R {
                    I::store(group[k].theta.as_mut_ptr().add(r * I::LANES), theta[k][r]);
                }
            }
        }
    }

    /// The definition, for dimensions without a fused body.
    fn define<S>(&self, local: &mut Local<'_, S>) {
        let mut field = vec![0.0; self.d];
        for _ in 0..local.steps {
            self.oracle(local.client, local.rng.bits(), local.theta, &mut field);
            descend(local.theta, &field, local.correction, local.step);
        }
    }
}

/// The folding tree over R registers: whole registers first, then within one.
/// Up to 16 numbers this is `fold`; 32 are two blocks added first, as in `fold_sum`.
///
/// # Safety
/// The instruction set `I` is present.
#[inline(always)]
unsafe fn fold_registers<I: Simd, const R: usize>(mut v: [I::V; R]) -> f64 {
    let mut n = R / 2;
    // SAFETY: passed on to the caller.
    unsafe {
        while n > 0 {
            for r in 0..n {
                v[r] = I::add(v[r], v[r + n]);
            }
            n /= 2;
        }
        I::fold(v[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

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

    /// θ of every client after `steps(client)` steps, by `run`.
    fn thetas(
        d: usize,
        clients: usize,
        steps: impl Fn(usize) -> u64,
        run: impl FnOnce(&mut [Local<'_, ()>]),
    ) -> Vec<u64> {
        let mut streams: Vec<_> =
            (0..clients).map(|c| Stream::new(1, Purpose::Client, 0, 0, c as u64)).collect();
        let mut theta = vec![0.5; d * clients];
        let correction: Vec<f64> = (0..d * clients).map(|i| 0.01 * (i % 5) as f64 - 0.02).collect();
        let mut units = vec![(); clients];
        let mut cohort: Vec<_> = theta
            .chunks_mut(d)
            .zip(correction.chunks(d))
            .zip(&mut streams)
            .zip(&mut units)
            .enumerate()
            .map(|(client, (((theta, correction), rng), state))| Local {
                client,
                theta,
                correction,
                rng,
                state,
                step: 0.1,
                steps: steps(client),
            })
            .collect();
        run(&mut cohort);
        drop(cohort);
        let mut out: Vec<u64> = theta.iter().map(|x| x.to_bits()).collect();
        out.extend(streams.iter_mut().map(|s| s.bits()));
        out
    }

    #[test]
    fn every_path_gives_the_bits_of_the_definition() {
        for d in [1, 2, 3, 4, 6, 8, 12, 16, 32] {
            let tables = tables(d, 11, 7);
            for clients in 1..=7 {
                for steps in [0, 1, 10, 33, 200] {
                    let expected = thetas(
                        d,
                        clients,
                        |_| steps,
                        |cohort| {
                            cohort.iter_mut().for_each(|local| tables.define(local));
                        },
                    );
                    for path in Path::available() {
                        let got =
                            thetas(d, clients, |_| steps, |cohort| tables.advance_on(path, cohort));
                        assert_eq!(
                            got, expected,
                            "d {d}, {clients} clients, {steps} steps, {path:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn unequal_steps_are_kept_apart() {
        let tables = tables(8, 11, 7);
        let steps = |c: usize| [5, 5, 5, 40, 40, 0, 1][c];
        let expected = thetas(8, 7, steps, |c| c.iter_mut().for_each(|local| tables.define(local)));
        assert_eq!(thetas(8, 7, steps, |c| tables.advance(c)), expected);
    }
}
