//! The fused local step of logistic regression with one record a step: one
//! draw, one dot product, one σ, one update, for up to twelve clients in lockstep.
//!
//! A step is bound by the latency of σ (two divisions and a polynomial). Its lanes are
//! the clients, and several registers of them hide the latency. Every instruction set
//! computes, per step and client, s = σ(m − Σ xθ) and
//! θ ← θ − step ((λθ − s x) + ξ) for a record x (already times its label), in
//! the order of [`super::fold_sum`] and [`super::descend`].

use super::cohort::{Cohort, EqualSteps};
use super::exp::{sigmoid, sigmoids};
use super::product::long_dots;
#[cfg(target_arch = "aarch64")]
use super::simd::Neon;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Sse2};
use super::simd::{InstructionSet, ScalarLane, Simd, fold_registers, padded, prefetch_all};
use super::{Rows, Table, axpy, dot, products};

/// Records, in rows that are padded with zeros to whole registers.
#[derive(Clone, Debug)]
pub struct RecordTables {
    d: usize,
    stride: usize,
    /// λ.
    l2: f64,
    /// m.
    margin: f64,
    /// Record sets; client c holds set c modulo their number.
    sets: Vec<Table>,
}

/// The most clients in lockstep.
const MOST: usize = 12;

impl RecordTables {
    /// Tables of these record sets (rows y x of d numbers), under λ and margin m.
    ///
    /// # Panics
    /// If there is no set, or one is empty or not rows of `d`.
    pub fn new(d: usize, l2: f64, margin: f64, sets: &[Vec<f64>]) -> Self {
        assert!(d > 0 && !sets.is_empty());
        let table = |set: &Vec<f64>| {
            assert!(!set.is_empty());
            Table::new(d, set)
        };
        Self { d, stride: padded(d), l2, margin, sets: sets.iter().map(table).collect() }
    }

    /// How many record sets there are.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// How many records a set has.
    #[inline(always)]
    pub fn records(&self, set: usize) -> usize {
        self.sets[set].rows().len()
    }

    /// A record y x, d numbers.
    #[inline(always)]
    pub fn row(&self, set: usize, record: usize) -> &[f64] {
        self.sets[set].rows().row(record)
    }

    /// The records of a set.
    pub fn rows(&self, set: usize) -> Rows<'_> {
        self.sets[set].rows()
    }

    /// The weights of all records of a set.
    pub fn weights(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        let rows = self.rows(set);
        let mut weights = vec![0.0; rows.len()];
        products(rows, theta, &mut weights);
        weights.iter_mut().for_each(|along| *along = sigmoid(self.margin - *along));
        weights
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

    /// Runs the local steps of every client of the cohort, one record per step, if there
    /// is a fused body for the dimension; otherwise returns the cohort.
    pub fn advance_on<'a, S>(
        &self,
        path: InstructionSet,
        mut cohort: Cohort<'a, S>,
    ) -> Option<Cohort<'a, S>> {
        if self.d < 2 || cohort.dim() != self.d {
            return Some(cohort);
        }
        // SAFETY: this processor has the instruction set; dimensions were checked
        // above, and every client has a set.
        cohort.each_equal_run(|clients| unsafe { self.run(path, clients) });
        None
    }

    /// Not generic, so that the fused bodies are compiled once.
    ///
    /// # Safety
    /// This processor has the instruction set; dimensions agree.
    #[inline(never)]
    unsafe fn run(&self, path: InstructionSet, clients: &mut EqualSteps<'_>) {
        // SAFETY: passed on to the caller.
        unsafe {
            match path {
                InstructionSet::Scalar => self.groups::<ScalarLane, ScalarLane>(clients),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Sse2 => self.groups::<Sse2, Sse2>(clients),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 => self.avx2(clients),
                #[cfg(target_arch = "aarch64")]
                InstructionSet::Neon => self.groups::<Neon, Neon>(clients),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn avx2(&self, clients: &mut EqualSteps<'_>) {
        // SAFETY: the instruction set is on by the attribute above; the rest
        // was checked by the only caller.
        unsafe {
            if self.d == 2 {
                self.groups::<Sse2, Avx2>(clients)
            } else {
                self.groups::<Avx2, Avx2>(clients)
            }
        }
    }

    /// Rows in registers of `I`, σ in registers of `W`.
    ///
    /// # Safety
    /// The instruction sets are present; dimensions agree.
    #[inline(always)]
    unsafe fn groups<I: Simd, W: Simd>(&self, clients: &mut EqualSteps<'_>) {
        // SAFETY: passed on to the caller; R registers hold a padded row.
        unsafe {
            match self.stride / I::LANES {
                1 => self.split::<I, W, 1>(clients),
                2 => self.split::<I, W, 2>(clients),
                3 => self.split::<I, W, 3>(clients),
                4 => self.split::<I, W, 4>(clients),
                6 if I::LANES < 4 => self.split::<I, W, 6>(clients),
                8 if I::LANES < 4 => self.split::<I, W, 8>(clients),
                12 if I::LANES < 2 => self.split::<I, W, 12>(clients),
                16 if I::LANES < 2 => self.split::<I, W, 16>(clients),
                _ => self.split::<I, W, 0>(clients),
            }
        }
    }

    /// Splits the clients into groups of nearly equal size that fit in the first-level
    /// cache.
    ///
    /// # Safety
    /// As for `groups`; R registers hold a padded row, or R is 0.
    #[inline(always)]
    unsafe fn split<I: Simd, W: Simd, const R: usize>(&self, clients: &mut EqualSteps<'_>) {
        const ROOM: usize = 1024;
        let n = clients.members().len();
        let groups = n.div_ceil((ROOM / self.stride).clamp(2, MOST));
        let mut room = vec![0.0; 2 * n.div_ceil(groups) * self.stride];
        for group in 0..groups {
            let (from, to) = (n * group / groups, n * (group + 1) / groups);
            // SAFETY: passed on to the caller; the room is enough.
            unsafe { self.lockstep::<I, W, R>(clients, from, to - from, &mut room) };
        }
    }

    /// Steps `len` members from number `from` on. θ and ξ are copied to padded rows of
    /// `room`, whose latency is below that of σ.
    ///
    /// # Safety
    /// As for `split`; `room` has 2·len rows, and the padding of those of ξ is zero.
    #[inline(always)]
    unsafe fn lockstep<I: Simd, W: Simd, const R: usize>(
        &self,
        clients: &mut EqualSteps<'_>,
        from: usize,
        len: usize,
        room: &mut [f64],
    ) {
        let (d, stride, mut left) = (self.d, self.stride, clients.steps);
        let mut lanes = clients.some::<MOST>(from, len);
        let (theta, xi) = room.split_at_mut(room.len() / 2);
        let (theta, xi) = (theta.as_mut_ptr(), xi.as_mut_ptr());
        let (mut sets, mut records) = ([std::ptr::null(); MOST], [0; MOST]);
        for k in 0..len {
            let set = &self.sets[lanes.client[k] % self.sets.len()];
            (sets[k], records[k]) = (set.as_ptr(), set.rows().len() as u64);
            // SAFETY: θ and ξ hold d numbers, and a row has room for them.
            unsafe {
                lanes.start[k].copy_to_nonoverlapping(theta.add(k * stride), d);
                lanes.correction[k].copy_to_nonoverlapping(xi.add(k * stride), d);
                // If the previous group diverged, it may have left a NaN in the padding.
                theta.add(k * stride + d).write_bytes(0, stride - d);
            }
        }
        // SAFETY: only draws that are ready are read; records start at record·stride
        // with record < the set's records.
        unsafe {
            let row = |k: usize, draw: u64| -> *const f64 {
                let wide = u128::from(draw) * u128::from(records[k]);
                sets[k].add((wide >> 64) as usize * stride)
            };
            let mut rows = [std::ptr::null(); MOST];
            while left > 0 {
                let (draws, now) = lanes.ready(left);
                for k in 0..len {
                    rows[k] = row(k, *draws[k]);
                }
                for i in 0..now {
                    let (mut next, mut weights) = (rows, [0.0; MOST]);
                    for k in 0..len {
                        if i + 1 < now {
                            next[k] = row(k, *draws[k].add(i + 1));
                            prefetch_all(next[k], 8 * stride);
                        }
                        let along = dot_rows::<I, R>(theta.add(k * stride), rows[k], stride);
                        weights[k] = self.margin - along;
                    }
                    sigmoids::<W>(&mut weights[..len.next_multiple_of(4)]);
                    for k in 0..len {
                        let own = (theta.add(k * stride), xi.add(k * stride).cast_const());
                        self.update::<I, R>(own, rows[k], weights[k], lanes.step[k]);
                    }
                    rows = next;
                }
                lanes.skip(now);
                left -= now as u64;
            }
            (0..len).for_each(|k| theta.add(k * stride).copy_to_nonoverlapping(lanes.theta[k], d));
        }
    }

    /// θ ← θ − step ((λθ + (−s) x) + ξ).
    ///
    /// # Safety
    /// As for `lockstep`; rows are padded.
    #[inline(always)]
    unsafe fn update<I: Simd, const R: usize>(
        &self,
        (theta, xi): (*mut f64, *const f64),
        row: *const f64,
        weight: f64,
        step: f64,
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            let scale = (I::splat(self.l2), I::splat(step), I::splat(-weight));
            if R > 0 {
                return moved::<I, R>((theta, xi), row, scale);
            }
            let (mut i, block) = (0, 4 * I::LANES);
            while i + block <= self.stride {
                moved::<I, 4>((theta.add(i), xi.add(i)), row.add(i), scale);
                i += block;
            }
            while i < self.stride {
                moved::<I, 1>((theta.add(i), xi.add(i)), row.add(i), scale);
                i += I::LANES;
            }
        }
    }
}

/// θ ← θ − step ((λθ + (−s) x) + ξ) in R registers.
///
/// # Safety
/// `I` is present; the rows have R registers.
#[inline(always)]
unsafe fn moved<I: Simd, const R: usize>(
    (theta, xi): (*mut f64, *const f64),
    row: *const f64,
    (l2, step, away): (I::V, I::V, I::V),
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut values = I::load_all::<R>(theta);
        let (row, xi) = (I::load_all::<R>(row), I::load_all::<R>(xi));
        for (r, values) in values.iter_mut().enumerate() {
            let field = I::add(I::mul(l2, *values), I::mul(away, row[r]));
            *values = I::sub(*values, I::mul(step, I::add(field, xi[r])));
        }
        for (r, values) in values.into_iter().enumerate() {
            I::store(theta.add(r * I::LANES), values);
        }
    }
}

/// xᵀy of two padded rows of `stride` numbers, R registers if R is not 0.
///
/// # Safety
/// `I` is present; the rows have `stride` numbers, more than 16 if R is 0.
#[inline(always)]
unsafe fn dot_rows<I: Simd, const R: usize>(x: *const f64, y: *const f64, stride: usize) -> f64 {
    // SAFETY: passed on to the caller.
    unsafe {
        if R > 0 {
            let mut v = I::load_all::<R>(x);
            let y = I::load_all::<R>(y);
            for r in 0..R {
                v[r] = I::mul(v[r], y[r]);
            }
            return fold_registers::<I, R>(v);
        }
        let [along] = long_dots::<I, 1>([y], x, stride);
        along
    }
}

#[cfg(test)]
mod tests {
    use super::super::cohort::testing::thetas;
    use super::super::descend;
    use super::*;
    use crate::rng::Stream;

    fn tables(d: usize, margin: f64, scale: f64) -> RecordTables {
        let mut rng = Stream::shared_instance(7);
        let set = |n: usize| (0..n * d).map(|_| scale * rng.gaussian()).collect();
        RecordTables::new(d, 0.1, margin, &[5, 11, 3].map(set))
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
                for path in InstructionSet::available() {
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
