//! The fused local step of logistic regression with one record a step: one
//! draw, one dot product, one σ, one update, for up to four clients in lockstep.
//!
//! The steps are bound by the latency of σ; its lanes are the clients. Every
//! path computes, per step and client, s = σ(m − Σ xθ) and
//! θ ← θ − step ((λθ − s x) + ξ) for a record x (already times its label), in
//! the order of [`super::fold_sum`] and [`super::descend`].

use super::cohort::{Cohort, Even, Lanes};
use super::exp::{sigmoid, sigmoids};
#[cfg(target_arch = "aarch64")]
use super::simd::Neon;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Sse2};
use super::simd::{Path, Scalar, Simd, fold_registers, padded};
use super::{axpy, dot};

/// Records in rows that are padded with zeros to whole registers.
#[derive(Clone, Debug)]
pub struct Tables {
    d: usize,
    stride: usize,
    /// λ.
    l2: f64,
    /// m.
    margin: f64,
    /// Record sets, rows of `stride`; client c holds number c modulo their count.
    sets: Vec<Vec<f64>>,
}

/// Clients in lockstep, and lanes of σ.
const MOST: usize = 4;

impl Tables {
    /// Tables of these record sets (rows y x of d numbers), under λ and margin m.
    ///
    /// # Panics
    /// If there is no set, or one is empty or not rows of `d`.
    pub fn new(d: usize, l2: f64, margin: f64, sets: &[Vec<f64>]) -> Self {
        assert!(d > 0 && !sets.is_empty());
        let stride = padded(d);
        let pad = |set: &Vec<f64>| {
            assert!(!set.is_empty() && set.len().is_multiple_of(d));
            let mut rows = vec![0.0; set.len() / d * stride];
            let pairs = rows.chunks_exact_mut(stride).zip(set.chunks_exact(d));
            pairs.for_each(|(to, from)| to[..d].copy_from_slice(from));
            rows
        };
        Self { d, stride, l2, margin, sets: sets.iter().map(pad).collect() }
    }

    /// How many record sets there are.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// How many records a set has.
    #[inline(always)]
    pub fn records(&self, set: usize) -> usize {
        self.sets[set].len() / self.stride
    }

    /// A record y x, d numbers.
    #[inline(always)]
    pub fn row(&self, set: usize, record: usize) -> &[f64] {
        &self.sets[set][record * self.stride..][..self.d]
    }

    /// The records of a set.
    pub fn rows(&self, set: usize) -> impl ExactSizeIterator<Item = &[f64]> {
        self.sets[set].chunks_exact(self.stride).map(|row| &row[..self.d])
    }

    /// σ(m − y xᵀθ), the weight of a record in the gradient.
    #[inline(always)]
    pub fn weight(&self, row: &[f64], theta: &[f64]) -> f64 {
        sigmoid(self.margin - dot(theta, row))
    }

    /// The definition of an oracle call with a batch drawn by `draw(records)`.
    #[inline(always)]
    pub fn field(
        &self,
        client: usize,
        theta: &[f64],
        batch: usize,
        mut draw: impl FnMut(usize) -> usize,
        field: &mut [f64],
    ) {
        let (d, set) = (theta.len(), client % self.sets.len());
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.l2 * theta;
        }
        for _ in 0..batch {
            let row = &self.row(set, draw(self.records(set)))[..d];
            axpy(-self.weight(row, theta) / batch as f64, row, field);
        }
    }

    /// Runs every client of the cohort through its local steps, one record each,
    /// if a fused body serves the dimension; else gives the cohort back.
    pub fn advance_on<'a, S>(
        &self,
        path: Path,
        mut cohort: Cohort<'a, S>,
    ) -> Option<Cohort<'a, S>> {
        if self.d < 2 || cohort.dim() != self.d {
            return Some(cohort);
        }
        // SAFETY: the path was found on this processor; dimensions were checked
        // above, and any client has a set.
        cohort.even(|even| unsafe {
            match path {
                Path::Scalar => self.groups::<Scalar, Scalar>(even),
                #[cfg(target_arch = "x86_64")]
                Path::Sse2 => self.groups::<Sse2, Sse2>(even),
                #[cfg(target_arch = "x86_64")]
                Path::Avx2 => self.avx2(even),
                #[cfg(target_arch = "aarch64")]
                Path::Neon => self.groups::<Neon, Neon>(even),
            }
        });
        None
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn avx2(&self, even: &mut Even<'_>) {
        // SAFETY: the instruction set is on by the attribute above; the rest
        // was checked by the only caller.
        unsafe {
            if self.d == 2 {
                self.groups::<Sse2, Avx2>(even)
            } else {
                self.groups::<Avx2, Avx2>(even)
            }
        }
    }

    /// Rows in registers of `I`, σ in registers of `W`.
    ///
    /// # Safety
    /// The instruction sets are present; dimensions agree.
    #[inline(always)]
    unsafe fn groups<I: Simd, W: Simd>(&self, even: &mut Even<'_>) {
        // SAFETY: passed on to the caller; R registers hold a padded row.
        unsafe {
            match self.stride / I::LANES {
                1 => self.cascade::<I, W, 1>(even),
                2 => self.cascade::<I, W, 2>(even),
                3 => self.cascade::<I, W, 3>(even),
                4 => self.cascade::<I, W, 4>(even),
                6 if I::LANES < 4 => self.cascade::<I, W, 6>(even),
                8 if I::LANES < 4 => self.cascade::<I, W, 8>(even),
                12 if I::LANES < 2 => self.cascade::<I, W, 12>(even),
                16 if I::LANES < 2 => self.cascade::<I, W, 16>(even),
                _ => self.cascade::<I, W, 0>(even),
            }
        }
    }

    /// # Safety
    /// As for `groups`; R registers hold a padded row, or R is 0.
    #[inline(always)]
    unsafe fn cascade<I: Simd, W: Simd, const R: usize>(&self, even: &mut Even<'_>) {
        let (mut at, n) = (0, even.members().len());
        while at < n {
            // SAFETY: passed on to the caller.
            at += unsafe {
                match n - at {
                    1 => self.lockstep::<I, W, R, 1>(even, at),
                    2 => self.lockstep::<I, W, R, 2>(even, at),
                    5 | 6 | 9 | 3 => self.lockstep::<I, W, R, 3>(even, at),
                    _ => self.lockstep::<I, W, R, 4>(even, at),
                }
            }
        }
    }

    /// Steps K members from number `from` on, and says K.
    ///
    /// # Safety
    /// As for `cascade`.
    #[inline(always)]
    unsafe fn lockstep<I: Simd, W: Simd, const R: usize, const K: usize>(
        &self,
        even: &mut Even<'_>,
        from: usize,
    ) -> usize {
        let mut left = even.steps;
        let mut lanes = even.lanes::<K>(from);
        let (mut sets, mut records) = ([&self.sets[0][..]; K], [0; K]);
        for k in 0..K {
            sets[k] = &self.sets[lanes.client[k] % self.sets.len()];
            records[k] = (sets[k].len() / self.stride) as u64;
        }
        // SAFETY: passed on to the caller; θ and ξ hold d numbers.
        let (mut long, mut short) = unsafe {
            let long =
                if R == 0 { Long::new(&lanes, self.d, self.stride) } else { Long::default() };
            (long, Short::<I, R, K>::new(&lanes, self.d))
        };
        let step = lanes.step;
        while left > 0 {
            let (draws, now) = lanes.ready(left);
            for i in 0..now {
                // SAFETY: draws are read that are ready; rows start at
                // record·stride with record < the set's records.
                unsafe {
                    let mut rows = [std::ptr::null(); K];
                    for k in 0..K {
                        let wide = u128::from(*draws[k].add(i)) * u128::from(records[k]);
                        rows[k] = sets[k].as_ptr().add((wide >> 64) as usize * self.stride);
                    }
                    let mut weights = [0.0; MOST];
                    for k in 0..K {
                        let along =
                            if R == 0 { long.dot::<I>(k, rows[k]) } else { short.dot(k, rows[k]) };
                        weights[k] = self.margin - along;
                    }
                    sigmoids::<W, MOST>(&mut weights);
                    for k in 0..K {
                        if R == 0 {
                            long.update::<I>(k, rows[k], self.l2, weights[k], step[k]);
                        } else {
                            short.update(k, rows[k], self.l2, weights[k], step[k]);
                        }
                    }
                }
            }
            lanes.skip(now);
            left -= now as u64;
        }
        for k in 0..K {
            // SAFETY: θ holds d numbers.
            unsafe {
                if R == 0 {
                    long.theta(k).copy_to_nonoverlapping(lanes.theta[k], self.d);
                } else {
                    I::store_row(lanes.theta[k], self.d, short.theta[k]);
                }
            }
        }
        K
    }
}

/// θ and ξ of K clients in R registers each.
struct Short<I: Simd, const R: usize, const K: usize> {
    theta: [[I::V; R]; K],
    xi: [[I::V; R]; K],
}

impl<I: Simd, const R: usize, const K: usize> Short<I, R, K> {
    /// # Safety
    /// `I` is present; rows of `d` numbers fit into R registers, or R is 0.
    #[inline(always)]
    unsafe fn new(lanes: &Lanes<'_, K>, d: usize) -> Self {
        let d = if R == 0 { 0 } else { d };
        // SAFETY: θ and ξ hold d numbers.
        unsafe {
            let zero = [[I::splat(0.0); R]; K];
            let mut all = Self { theta: zero, xi: zero };
            for k in 0..K {
                all.theta[k] = I::load_row(lanes.start[k], d);
                all.xi[k] = I::load_row(lanes.correction[k], d);
            }
            all
        }
    }

    /// # Safety
    /// `I` is present; `row` has R registers.
    #[inline(always)]
    unsafe fn dot(&self, k: usize, row: *const f64) -> f64 {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut product = self.theta[k];
            for (r, product) in product.iter_mut().enumerate() {
                *product = I::mul(*product, I::load(row.add(r * I::LANES)));
            }
            fold_registers::<I, R>(product)
        }
    }

    /// # Safety
    /// As for `dot`.
    #[inline(always)]
    unsafe fn update(&mut self, k: usize, row: *const f64, l2: f64, weight: f64, step: f64) {
        // SAFETY: passed on to the caller.
        unsafe {
            for r in 0..R {
                let row = I::load(row.add(r * I::LANES));
                self.theta[k][r] =
                    moved::<I>(self.theta[k][r], row, self.xi[k][r], l2, weight, step);
            }
        }
    }
}

/// θ and ξ of some clients in padded rows, where registers do not hold them.
#[derive(Default)]
struct Long {
    stride: usize,
    theta: Vec<f64>,
    xi: Vec<f64>,
}

impl Long {
    /// # Safety
    /// θ and ξ hold `d` numbers.
    unsafe fn new<const K: usize>(lanes: &Lanes<'_, K>, d: usize, stride: usize) -> Self {
        let (mut theta, mut xi) = (vec![0.0; K * stride], vec![0.0; K * stride]);
        for k in 0..K {
            // SAFETY: a row has room for d numbers.
            unsafe {
                lanes.start[k].copy_to_nonoverlapping(theta.as_mut_ptr().add(k * stride), d);
                lanes.correction[k].copy_to_nonoverlapping(xi.as_mut_ptr().add(k * stride), d);
            }
        }
        Self { stride, theta, xi }
    }

    /// θ of client k.
    fn theta(&self, k: usize) -> *const f64 {
        self.theta[k * self.stride..].as_ptr()
    }

    /// # Safety
    /// `I` is present; `row` has a padded row, and so have θ and ξ of client k.
    #[inline(always)]
    unsafe fn dot<I: Simd>(&self, k: usize, row: *const f64) -> f64 {
        let (blocks, theta) = (self.stride / 4, self.theta.as_ptr());
        // SAFETY: passed on to the caller; blocks of 4 numbers are whole
        // registers, and there are more than 16 numbers.
        unsafe {
            let theta = theta.add(k * self.stride);
            // 16 numbers are 16/LANES registers; the rest go round them.
            let mut acc = [I::splat(0.0); super::WIDTH];
            let width = super::WIDTH / I::LANES;
            for (r, acc) in acc.iter_mut().enumerate().take(width) {
                *acc = product::<I>(theta, row, r * I::LANES);
            }
            let whole = blocks / 4;
            for block in 1..whole {
                for (r, acc) in acc.iter_mut().enumerate().take(width) {
                    *acc =
                        I::add(*acc, product::<I>(theta, row, block * super::WIDTH + r * I::LANES));
                }
            }
            let (begin, rest) = (whole * super::WIDTH, (blocks % 4) * 4 / I::LANES);
            for (r, acc) in acc.iter_mut().enumerate().take(rest) {
                *acc = I::add(*acc, product::<I>(theta, row, begin + r * I::LANES));
            }
            let mut n = width / 2;
            while n > 0 {
                for r in 0..n {
                    acc[r] = I::add(acc[r], acc[r + n]);
                }
                n /= 2;
            }
            I::fold(acc[0])
        }
    }

    /// # Safety
    /// As for `dot`.
    #[inline(always)]
    unsafe fn update<I: Simd>(
        &mut self,
        k: usize,
        row: *const f64,
        l2: f64,
        weight: f64,
        step: f64,
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            let theta = self.theta.as_mut_ptr().add(k * self.stride);
            let xi = self.xi.as_ptr().add(k * self.stride);
            for i in (0..self.stride).step_by(I::LANES) {
                let (row, xi) = (I::load(row.add(i)), I::load(xi.add(i)));
                I::store(
                    theta.add(i),
                    moved::<I>(I::load(theta.add(i)), row, xi, l2, weight, step),
                );
            }
        }
    }
}

/// The products of a register of each row, from number `i` on.
///
/// # Safety
/// `I` is present; the rows hold the register.
#[inline(always)]
unsafe fn product<I: Simd>(x: *const f64, y: *const f64, i: usize) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe { I::mul(I::load(x.add(i)), I::load(y.add(i))) }
}

/// θ − step ((λθ + (−s) x) + ξ).
///
/// # Safety
/// `I` is present.
#[inline(always)]
unsafe fn moved<I: Simd>(
    theta: I::V,
    row: I::V,
    xi: I::V,
    l2: f64,
    weight: f64,
    step: f64,
) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe {
        let pull = I::mul(I::splat(-weight), row);
        let field = I::add(I::mul(I::splat(l2), theta), pull);
        I::sub(theta, I::mul(I::splat(step), I::add(field, xi)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cohort::testing::thetas;
    use super::super::descend;
    use super::*;
    use crate::rng::Stream;

    fn tables(d: usize, margin: f64, scale: f64) -> Tables {
        let mut rng = Stream::shared_instance(7);
        let set = |n: usize| (0..n * d).map(|_| scale * rng.gaussian()).collect();
        Tables::new(d, 0.1, margin, &[5, 11, 3].map(set))
    }

    #[test]
    fn every_path_gives_the_bits_of_the_definition() {
        let dimensions = (1..=21).chain([31, 32, 33, 48, 49, 50, 64, 65, 100]);
        for (d, (margin, scale)) in
            dimensions.zip([(0.0, 1.0), (1.0, 3.0), (0.5, 400.0)].into_iter().cycle())
        {
            let tables = tables(d, margin, scale);
            for (clients, steps) in
                [(1, 0), (1, 33), (2, 70), (3, 1), (4, 10), (5, 33), (6, 1), (7, 200), (10, 64)]
            {
                let define = |cohort: Cohort<'_, ()>| {
                    cohort.each(|local| {
                        let mut field = vec![0.0; d];
                        for _ in 0..local.steps {
                            let draw = |records: usize| local.rng.index(records);
                            tables.field(local.client, local.theta, 1, draw, &mut field);
                            descend(local.theta, &field, local.correction, local.step);
                        }
                    });
                };
                let expected = thetas(d, clients, |_| steps, define);
                for path in Path::available() {
                    let fused = |cohort: Cohort<'_, ()>| {
                        if let Some(cohort) = tables.advance_on(path, cohort) {
                            assert_eq!(d, 1);
                            define(cohort);
                        }
                    };
                    let got = thetas(d, clients, |_| steps, fused);
                    assert_eq!(got, expected, "d {d}, {clients} clients, {steps} steps, {path:?}");
                }
            }
        }
    }
}
