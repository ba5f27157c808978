//! Softmax regression: the definition of its oracle, and the same operations in registers, for
//! local steps and for facts about all records.
//!
//! θ is K rows of d numbers, one row per class. For a record x of class y:
//!
//! 1. u_k = Σ_j x_j θ_kj in the order of [`super::fold_sum`];
//! 2. m = max_k u_k, e_k = exp(u_k − m) with the bits of `libm`, t = Σ_k e_k in the order of
//!    [`super::fold_sum`], and p_k = e_k / t;
//! 3. the field of a batch of B records is λθ_kj + Σ_b ((p_bk − 1\[y_b = k\]) / B) x_bj, added in
//!    the order of the draws, and a step is that of [`super::descend`].
//!
//! A sum of logits here begins with 0 and has 16 accumulators also for short rows. That changes
//! at most the sign of a zero, and e^(u − m) is the same for both zeros.
//!
//! With one record a step, a step and the logits of the next record are computed in one pass over
//! θ, two classes at a time. With more, the field is summed in tiles of five classes and two
//! registers over the batch, so that θ is read and written once a step.

use super::cohort::Cohort;
use super::exp::{LARGE, exps};
#[cfg(target_arch = "aarch64")]
use super::simd::Neon;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512, SHORT, Sse2};
use super::simd::{
    FoldEach, InstructionSet, ScalarLane, Simd, Strips, WIDEST_SHORT, padded, prefetch_all,
};
use super::{Aligned, Rows, WIDTH, axpy, fold_sum, product};
use crate::rng::Stream;

/// The most classes.
pub const MOST_CLASSES: usize = 100;
/// Records whose products with a pair of classes are computed together: both stay in the
/// first-level cache.
const TOGETHER: usize = 4;
/// Records of a mini-batch, or of a set, whose rows are added in one pass over θ.
const PANEL: usize = 32;

/// Calls a generic function with the number of registers of the class lanes that are 16 numbers.
macro_rules! with_short {
    ($I:ident, $S:ident => $call:expr) => {
        match $I::Short::LANES {
            1 => {
                const $S: usize = 16;
                $call
            }
            2 => {
                const $S: usize = 8;
                $call
            }
            _ => {
                const $S: usize = 4;
                $call
            }
        }
    };
}

/// The length of a row of `n` numbers padded with zeros to whole registers.
fn whole(n: usize) -> usize {
    n.next_multiple_of(4)
}

/// The records of one client.
#[derive(Clone, Debug)]
struct LabelledRows {
    /// Rows of d numbers, padded with zeros.
    rows: Aligned,
    /// The class of each, below K.
    labels: Vec<u8>,
}

/// The records of all clients; client c holds set c.
#[derive(Clone, Debug)]
pub struct ClassTables {
    d: usize,
    /// d, padded.
    stride: usize,
    /// K.
    classes: usize,
    /// λ.
    l2: f64,
    /// Row y has a 1 at y; K padded rows.
    indicators: Aligned,
    /// K ones, padded.
    live: Aligned,
    sets: Vec<LabelledRows>,
}

/// Replaces logits by probabilities: the definition.
pub fn softmax(u: &mut [f64]) {
    let mut most = u[0];
    for &u in u.iter() {
        most = if u > most { u } else { most };
    }
    u.iter_mut().for_each(|u| *u = libm::exp(*u - most));
    let total = fold_sum(u.len(), |k| u[k]);
    u.iter_mut().for_each(|u| *u /= total);
}

/// The local steps of one client.
struct ClientSteps<'a> {
    set: usize,
    batch: usize,
    steps: u64,
    step: f64,
    rng: &'a mut Stream,
    /// Padded rows, one per class.
    theta: &'a mut Aligned,
    /// Padded rows, or empty if ξ is 0.
    correction: &'a Aligned,
}

/// What runs on a chosen instruction set.
enum SetWork<'a> {
    Steps(ClientSteps<'a>),
    /// The logits of a set's records at θ (padded rows), K numbers each.
    Logits {
        set: usize,
        theta: &'a Aligned,
        out: &'a mut [f64],
    },
    /// Adds a set's rows, times K factors each, to padded rows.
    Sum {
        set: usize,
        factors: &'a [f64],
        out: &'a mut Aligned,
    },
}

impl ClassTables {
    /// Tables of these record sets (rows of d numbers, and their classes), under λ.
    ///
    /// # Panics
    /// If there is no set, one is empty or not rows of `d`, or a class is not below `classes`.
    pub fn new(d: usize, classes: usize, l2: f64, sets: &[(Vec<f64>, Vec<u8>)]) -> Self {
        assert!(d > 0 && !sets.is_empty() && (1..=MOST_CLASSES).contains(&classes));
        let stride = padded(d).next_multiple_of(4);
        let mut indicators = Aligned::zeros(classes * whole(classes));
        (0..classes).for_each(|y| indicators[y * whole(classes) + y] = 1.0);
        let mut live = Aligned::zeros(whole(classes));
        live[..classes].fill(1.0);
        let set = |(rows, labels): &(Vec<f64>, Vec<u8>)| {
            assert!(!labels.is_empty() && rows.len() == d * labels.len());
            assert!(labels.iter().all(|&y| usize::from(y) < classes));
            LabelledRows { rows: padded_rows(rows, d), labels: labels.clone() }
        };
        let sets = sets.iter().map(set).collect();
        Self { d, stride, classes, l2, indicators, live, sets }
    }

    /// How many record sets there are.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// K.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The records of a set.
    #[inline(always)]
    pub fn rows(&self, set: usize) -> Rows<'_> {
        Rows::new(&self.sets[set].rows, self.d, self.stride)
    }

    /// The classes of a set's records.
    #[inline(always)]
    pub fn labels(&self, set: usize) -> &[u8] {
        &self.sets[set].labels
    }

    /// The definition of an oracle call with a batch drawn by `draw(records)`.
    #[inline(always)]
    pub fn field(
        &self,
        set: usize,
        theta: &[f64],
        batch: usize,
        mut draw: impl FnMut(usize) -> usize,
        field: &mut [f64],
    ) {
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.l2 * theta;
        }
        for _ in 0..batch {
            let record = draw(self.labels(set).len());
            let row = self.rows(set).row(record);
            let mut factors = [0.0; MOST_CLASSES];
            let factors = &mut factors[..self.classes];
            product(theta, row, factors);
            softmax(factors);
            factors[usize::from(self.labels(set)[record])] -= 1.0;
            for (factor, field) in factors.iter().zip(field.chunks_exact_mut(self.d)) {
                axpy(factor / batch as f64, row, field);
            }
        }
    }

    /// The logits of all records of a set, K numbers each.
    pub fn logits(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        self.logits_on(InstructionSet::best(), set, theta)
    }

    fn logits_on(&self, path: InstructionSet, set: usize, theta: &[f64]) -> Vec<f64> {
        assert!(theta.len() == self.classes * self.d);
        let mut out = vec![0.0; self.labels(set).len() * self.classes];
        let theta = &padded_rows(theta, self.d);
        // SAFETY: this processor has the instruction set; lengths agree.
        unsafe { self.run(path, SetWork::Logits { set, theta, out: &mut out }) };
        out
    }

    /// The probabilities of the classes of all records of a set, K numbers each.
    pub fn probabilities(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        let mut all = self.logits(set, theta);
        all.chunks_exact_mut(self.classes).for_each(softmax);
        all
    }

    /// out ← out + Σ_i f_ik x_i, K rows of d numbers, with x_i a set's records in their order and
    /// f the `factors`, K numbers per record.
    ///
    /// # Panics
    /// If lengths do not agree.
    pub fn add_rows(&self, set: usize, factors: &[f64], out: &mut [f64]) {
        self.add_rows_on(InstructionSet::best(), set, factors, out);
    }

    fn add_rows_on(&self, path: InstructionSet, set: usize, factors: &[f64], out: &mut [f64]) {
        assert!(factors.len() == self.labels(set).len() * self.classes);
        assert!(out.len() == self.classes * self.d);
        let mut sums = padded_rows(out, self.d);
        // SAFETY: this processor has the instruction set; lengths agree.
        unsafe { self.run(path, SetWork::Sum { set, factors, out: &mut sums }) };
        self.unpad(&sums, out);
    }

    /// Runs the local steps of every client of the cohort with batches of `batch` records.
    ///
    /// # Panics
    /// If dimensions do not agree, or a client has no set.
    pub fn advance_on<S>(&self, path: InstructionSet, batch: usize, cohort: Cohort<'_, S>) {
        assert!(cohort.dim() == self.classes * self.d && cohort.end() <= self.sets.len());
        let mut theta = Aligned::zeros(self.classes * self.stride);
        let mut held = Aligned::zeros(self.classes * self.stride);
        let none = Aligned::zeros(0);
        cohort.each(|local| {
            self.pad(local.theta, &mut theta);
            // Without −0, adding a ξ of 0 changes no bit of θ; −0 can only come from the start.
            let negative_zero = (-0.0_f64).to_bits();
            let plain = local.correction.iter().all(|xi| xi.to_bits() == 0)
                && local.theta.iter().all(|theta| theta.to_bits() != negative_zero);
            if !plain {
                self.pad(local.correction, &mut held);
            }
            let work = ClientSteps {
                set: local.client,
                batch,
                steps: local.steps,
                step: local.step,
                rng: local.rng,
                theta: &mut theta,
                correction: if plain { &none } else { &held },
            };
            // SAFETY: this processor has the instruction set; dimensions were checked above.
            unsafe { self.run(path, SetWork::Steps(work)) };
            self.unpad(&theta, local.theta);
        });
    }

    /// Copies K rows of d numbers to padded rows. If a previous client diverged, it may have left
    /// a NaN in the padding.
    fn pad(&self, from: &[f64], to: &mut Aligned) {
        for (from, to) in from.chunks_exact(self.d).zip(to.chunks_exact_mut(self.stride)) {
            to[..self.d].copy_from_slice(from);
            to[self.d..].fill(0.0);
        }
    }

    fn unpad(&self, from: &Aligned, to: &mut [f64]) {
        for (from, to) in from.chunks_exact(self.stride).zip(to.chunks_exact_mut(self.d)) {
            to.copy_from_slice(&from[..self.d]);
        }
    }

    /// Not generic, so that the bodies are compiled once.
    ///
    /// # Safety
    /// This processor has the instruction set; dimensions agree.
    #[inline(never)]
    unsafe fn run(&self, path: InstructionSet, work: SetWork<'_>) {
        // SAFETY: passed on to the caller.
        unsafe {
            match path {
                InstructionSet::Scalar => self.execute::<ScalarLane, 16>(work),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Sse2 => self.execute::<Sse2, 8>(work),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx512 if self.stride > SHORT => self.avx512(work),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 | InstructionSet::Avx512 => self.avx2(work),
                #[cfg(target_arch = "aarch64")]
                InstructionSet::Neon => self.execute::<Neon, 8>(work),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn avx2(&self, work: SetWork<'_>) {
        // SAFETY: the instruction set is on by the attribute above; the rest was checked by the
        // only caller.
        unsafe { self.execute::<Avx2, 4>(work) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2,avx512f,avx512dq,avx512vl")]
    fn avx512(&self, work: SetWork<'_>) {
        // SAFETY: as for `avx2`; rows are whole registers.
        unsafe { self.execute::<Avx512, 2>(work) }
    }

    /// # Safety
    /// The instruction set `I` is present, W registers of it are 16 numbers, and dimensions agree.
    #[inline(always)]
    unsafe fn execute<I: Strips, const W: usize>(&self, work: SetWork<'_>) {
        // SAFETY: passed on to the caller.
        unsafe {
            match work {
                SetWork::Steps(steps) if steps.batch > 1 => self.batches::<I, W>(steps),
                SetWork::Steps(steps) if steps.correction.is_empty() => {
                    self.singles::<I, W, false>(steps);
                }
                SetWork::Steps(steps) => self.singles::<I, W, true>(steps),
                SetWork::Logits { set, theta, out } => {
                    let rows: Vec<_> = self.rows(set).iter().map(<[f64]>::as_ptr).collect();
                    let mut partial = [[0.0; WIDEST_SHORT]; TOGETHER * MOST_CLASSES];
                    for (rows, out) in
                        rows.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER * self.classes))
                    {
                        self.products::<I, W>(rows, theta.as_ptr(), &mut partial, &[]);
                        for (out, partial) in out.iter_mut().zip(&partial) {
                            *out = I::Short::fold(I::Short::load(partial.as_ptr()));
                        }
                    }
                }
                SetWork::Sum { set, factors, out } => {
                    let rows: Vec<_> = self.rows(set).iter().map(<[f64]>::as_ptr).collect();
                    let panels = rows.chunks(PANEL).zip(factors.chunks(PANEL * self.classes));
                    for (rows, factors) in panels {
                        let sum = RowSum {
                            rows,
                            factors: (factors.as_ptr(), self.classes),
                            l2: 0.0,
                            step: 0.0,
                            correction: std::ptr::null(),
                        };
                        self.tiles::<I, ADD>(&sum, out.as_mut_ptr());
                    }
                }
            }
        }
    }

    /// A record of a set and its class.
    #[inline(always)]
    fn drawn(&self, set: usize, rng: &mut Stream) -> (*const f64, usize) {
        let set = &self.sets[set];
        let record = rng.index(set.labels.len());
        (set.rows[record * self.stride..].as_ptr(), usize::from(set.labels[record]))
    }

    /// Steps of one record each; `XI` says whether there is a correction.
    ///
    /// # Safety
    /// As for `execute`.
    #[inline(always)]
    unsafe fn singles<I: Strips, const W: usize, const XI: bool>(&self, work: ClientSteps<'_>) {
        let ClientSteps { set, steps, step, rng, theta, correction, .. } = work;
        if steps == 0 {
            return;
        }
        let (theta, xi) = (theta.as_mut_ptr(), correction.as_ptr());
        let mut partial = [[0.0; WIDEST_SHORT]; MOST_CLASSES];
        let mut factors = [0.0; MOST_CLASSES];
        let mut record = self.drawn(set, rng);
        let mut next = if steps > 1 { self.drawn(set, rng) } else { record };
        let pairs = self.classes.div_ceil(2);
        let part = (8 * self.stride).div_ceil(pairs).next_multiple_of(64);
        // SAFETY: passed on to the caller; a row of `stride` numbers starts at each record.
        unsafe {
            self.products::<I, W>(&[record.0], theta, &mut partial, &[]);
            for left in (0..steps).rev() {
                with_short!(I, S => self.residuals::<I::Short, S>(&partial, &mut factors, (record.1, 1)));
                let after = if left > 1 { self.drawn(set, rng) } else { next };
                for pair in 0..pairs {
                    let ahead = after.0.cast::<u8>().wrapping_add(pair * part);
                    prefetch_all(ahead, part);
                    let k = 2 * pair;
                    let rows = Pass { record: record.0, next: next.0, l2: self.l2, step };
                    let (from, stride) = (k * self.stride, self.stride);
                    let own = (theta.add(from), if XI { xi.add(from) } else { xi });
                    let (factors, partial) = (&factors[k..], &mut partial[k..]);
                    match (self.classes - k, left > 0) {
                        (1, true) => rows.run::<I, W, 1, XI, true>(own, stride, factors, partial),
                        (_, true) => rows.run::<I, W, 2, XI, true>(own, stride, factors, partial),
                        (1, false) => rows.run::<I, W, 1, XI, false>(own, stride, factors, partial),
                        (_, false) => rows.run::<I, W, 2, XI, false>(own, stride, factors, partial),
                    }
                }
                (record, next) = (next, after);
            }
        }
    }

    /// Steps of a mini-batch each.
    ///
    /// # Safety
    /// As for `execute`.
    #[inline(always)]
    unsafe fn batches<I: Strips, const W: usize>(&self, work: ClientSteps<'_>) {
        let ClientSteps { set, batch, steps, step, rng, theta, correction } = work;
        let lanes = whole(self.classes);
        let mut rows = vec![std::ptr::null(); batch];
        let mut labels = vec![0; batch];
        let mut factors = Aligned::zeros(batch * lanes);
        let mut partial = [[0.0; WIDEST_SHORT]; TOGETHER * MOST_CLASSES];
        for _ in 0..steps {
            for (row, label) in rows.iter_mut().zip(&mut labels) {
                (*row, *label) = self.drawn(set, rng);
            }
            let theta = theta.as_mut_ptr();
            // SAFETY: passed on to the caller; a row of `stride` numbers starts at each record,
            // and there are `lanes` factors for each.
            unsafe {
                for first in (0..batch).step_by(TOGETHER) {
                    let end = (first + TOGETHER).min(batch);
                    let ahead = &rows[end..(end + TOGETHER).min(batch)];
                    self.products::<I, W>(&rows[first..end], theta, &mut partial, ahead);
                    for b in first..end {
                        let partial = &partial[(b - first) * self.classes..];
                        let factors = &mut factors[b * lanes..][..lanes];
                        with_short!(I, S => self.residuals::<I::Short, S>(partial, factors, (labels[b], batch)));
                    }
                }
                let sum = RowSum {
                    rows: &rows,
                    factors: (factors.as_ptr(), lanes),
                    l2: self.l2,
                    step,
                    correction: correction.as_ptr(),
                };
                if correction.is_empty() {
                    self.tiles::<I, STEP>(&sum, theta);
                } else {
                    self.tiles::<I, CORRECTED_STEP>(&sum, theta);
                }
            }
        }
    }

    /// The products of up to [`TOGETHER`] records with all classes of θ, folded to one register
    /// each; K of them per record. Other records are prefetched.
    ///
    /// # Safety
    /// As for `execute`; records and θ are padded rows, and `partial` has room.
    #[inline(always)]
    unsafe fn products<I: Strips, const W: usize>(
        &self,
        records: &[*const f64],
        theta: *const f64,
        partial: &mut [[f64; WIDEST_SHORT]],
        ahead: &[*const f64],
    ) {
        let pairs = self.classes.div_ceil(2);
        let part = (8 * self.stride).div_ceil(pairs).next_multiple_of(64);
        // SAFETY: passed on to the caller.
        unsafe {
            for pair in 0..pairs {
                let k = 2 * pair;
                let theta = theta.add(k * self.stride);
                for (b, record) in records.iter().enumerate() {
                    if let Some(ahead) = ahead.get(b) {
                        prefetch_all(ahead.cast::<u8>().wrapping_add(pair * part), part);
                    }
                    let partial = &mut partial[b * self.classes + k..];
                    if k + 1 < self.classes {
                        dots::<I, W, 2>(theta, *record, self.stride, partial);
                    } else {
                        dots::<I, W, 1>(theta, *record, self.stride, partial);
                    }
                }
            }
        }
    }

    /// The logits of a record from the folded products, into whole registers; returns the
    /// greatest.
    ///
    /// # Safety
    /// As for `execute`; there is room for K numbers, padded.
    #[inline(always)]
    unsafe fn folded_logits<I: FoldEach>(
        &self,
        partial: &[[f64; WIDEST_SHORT]],
        u: *mut f64,
    ) -> f64 {
        let partial = partial[..self.classes].as_ptr().cast::<f64>();
        // SAFETY: passed on to the caller.
        unsafe {
            let mut most = I::splat(f64::NEG_INFINITY);
            let mut k = 0;
            while k < self.classes {
                let mut sums = [most; WIDEST_SHORT];
                let mut lane = 0;
                while lane < I::LANES {
                    // Beyond the last class it is repeated.
                    let own = (k + lane).min(self.classes - 1);
                    sums[lane] = I::load(partial.add(own * WIDEST_SHORT));
                    lane += 1;
                }
                let logits = I::fold_each(sums);
                most = I::below(most, logits, logits, most);
                I::store(u.add(k), logits);
                k += I::LANES;
            }
            greatest::<I>(most)
        }
    }

    /// (p − 1\[y = k\]) / B of a record from the folded products, K numbers, padded to whole
    /// registers.
    ///
    /// # Safety
    /// As for `execute`.
    #[inline(always)]
    unsafe fn residuals<I: FoldEach, const W: usize>(
        &self,
        partial: &[[f64; WIDEST_SHORT]],
        out: &mut [f64],
        (label, batch): (usize, usize),
    ) {
        let lanes = self.classes.next_multiple_of(I::LANES);
        let out = &mut out[..lanes];
        let (u, live) = (out.as_mut_ptr(), self.live.as_ptr());
        // SAFETY: passed on to the caller; whole registers of `lanes` numbers.
        unsafe {
            let (zero, one) = (I::splat(0.0), I::splat(1.0));
            let most = I::splat(self.folded_logits::<I>(partial, u));
            let mut large = zero;
            for k in (0..lanes).step_by(I::LANES) {
                let below = I::sub(I::load(u.add(k)), most);
                large = I::add(large, I::below(I::abs(below), I::splat(LARGE), zero, one));
                I::store(u.add(k), below);
            }
            exps::<I>(out, I::fold(large) == 0.0);
            let mut sums = [zero; W];
            for k in (0..lanes).step_by(I::LANES) {
                let exp = I::below(zero, I::load(live.add(k)), I::load(u.add(k)), zero);
                I::store(u.add(k), exp);
                let r = k / I::LANES % W;
                sums[r] = I::add(sums[r], exp);
            }
            let total = I::splat(I::fold(folded::<I, W>(sums)));
            let own = self.indicators.as_ptr().add(label * whole(self.classes));
            // A product with a power of two is the quotient by its inverse, to the last bit.
            let (divisor, inverse) = (I::splat(batch as f64), I::splat(1.0 / batch as f64));
            let exact = batch.is_power_of_two();
            for k in (0..lanes).step_by(I::LANES) {
                let p = I::div(I::load(u.add(k)), total);
                let residual = I::sub(p, I::load(own.add(k)));
                let share =
                    if exact { I::mul(residual, inverse) } else { I::div(residual, divisor) };
                I::store(u.add(k), share);
            }
        }
    }

    /// All tiles of a sum.
    ///
    /// # Safety
    /// As for `execute`; `target` is padded rows.
    #[inline(always)]
    unsafe fn tiles<I: Strips, const KIND: u8>(&self, sum: &RowSum<'_>, target: *mut f64) {
        let mut column = 0;
        // SAFETY: passed on to the caller.
        unsafe {
            while column < self.stride {
                let two = column + 2 * I::LANES <= self.stride;
                let mut k = 0;
                while k < self.classes {
                    let left = self.classes - k;
                    let at = (target, k, column);
                    match (left, two) {
                        (1, true) => sum.tile::<I, KIND, 1, 2>(at, self.stride),
                        (2, true) => sum.tile::<I, KIND, 2, 2>(at, self.stride),
                        (3, true) => sum.tile::<I, KIND, 3, 2>(at, self.stride),
                        (4, true) => sum.tile::<I, KIND, 4, 2>(at, self.stride),
                        (_, true) => sum.tile::<I, KIND, 5, 2>(at, self.stride),
                        (1, false) => sum.tile::<I, KIND, 1, 1>(at, self.stride),
                        (2, false) => sum.tile::<I, KIND, 2, 1>(at, self.stride),
                        (3, false) => sum.tile::<I, KIND, 3, 1>(at, self.stride),
                        (4, false) => sum.tile::<I, KIND, 4, 1>(at, self.stride),
                        (_, false) => sum.tile::<I, KIND, 5, 1>(at, self.stride),
                    }
                    k += 5;
                }
                column += if two { 2 } else { 1 } * I::LANES;
            }
        }
    }
}

/// Rows of d numbers, padded with zeros.
fn padded_rows(rows: &[f64], d: usize) -> Aligned {
    let stride = padded(d).next_multiple_of(4);
    let mut padded = Aligned::zeros(rows.len() / d * stride);
    for (row, padded) in rows.chunks_exact(d).zip(padded.chunks_exact_mut(stride)) {
        padded[..d].copy_from_slice(row);
    }
    padded
}

/// What tiles do with their sums: they add them to the target, or they begin with λθ and make a
/// step, with a correction or without one.
const ADD: u8 = 0;
const STEP: u8 = 1;
const CORRECTED_STEP: u8 = 2;

/// A sum of rows, times factors.
struct RowSum<'a> {
    rows: &'a [*const f64],
    /// The factors of the first row, and the distance to those of the next.
    factors: (*const f64, usize),
    l2: f64,
    step: f64,
    correction: *const f64,
}

impl RowSum<'_> {
    /// `CLASSES` classes from k on, `REGISTERS` registers from a column on, in the order of rows.
    ///
    /// # Safety
    /// `I` is present, and all rows have these columns.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn tile<I: Strips, const KIND: u8, const CLASSES: usize, const REGISTERS: usize>(
        &self,
        (target, k, column): (*mut f64, usize, usize),
        stride: usize,
    ) {
        let (factors, pitch) = self.factors;
        let at = |class: usize, r: usize| (k + class) * stride + column + r * I::LANES;
        // SAFETY: passed on to the caller.
        unsafe {
            let mut sums = [[I::splat(0.0); REGISTERS]; CLASSES];
            for class in 0..CLASSES {
                for r in 0..REGISTERS {
                    let start = I::load(target.add(at(class, r)));
                    let scale = I::splat(self.l2);
                    sums[class][r] = if KIND == ADD { start } else { I::mul(scale, start) };
                }
            }
            let mut factors = factors.add(k);
            for row in self.rows {
                let x = I::load_all::<REGISTERS>(row.add(column));
                for class in 0..CLASSES {
                    let factor = I::splat(*factors.add(class));
                    for r in 0..REGISTERS {
                        sums[class][r] = I::add(sums[class][r], I::mul(factor, x[r]));
                    }
                }
                factors = factors.wrapping_add(pitch);
            }
            for class in 0..CLASSES {
                for r in 0..REGISTERS {
                    let to = target.add(at(class, r));
                    let sum = sums[class][r];
                    let value = match KIND {
                        ADD => sum,
                        STEP => descended::<I>(I::load(to), sum, self.step),
                        _ => {
                            let xi = I::load(self.correction.add(at(class, r)));
                            descended::<I>(I::load(to), I::add(sum, xi), self.step)
                        }
                    };
                    I::store(to, value);
                }
            }
        }
    }
}

/// θ − step · field.
///
/// # Safety
/// `I` is present.
#[inline(always)]
unsafe fn descended<I: Strips>(theta: I::V, field: I::V, step: f64) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe { I::sub(theta, I::mul(I::splat(step), field)) }
}

/// A step with a record and the products with the next one, in one pass over θ.
struct Pass {
    record: *const f64,
    next: *const f64,
    l2: f64,
    step: f64,
}

impl Pass {
    /// `CLASSES` classes with these factors, p − 1\[y = k\]; with `DOTS` their products with the
    /// next record, folded to one register each, go to `partial`.
    ///
    /// # Safety
    /// `I` is present, W registers of it are 16 numbers, and rows have `stride` numbers.
    #[inline(always)]
    unsafe fn run<
        I: Strips,
        const W: usize,
        const CLASSES: usize,
        const XI: bool,
        const DOTS: bool,
    >(
        &self,
        rows: (*mut f64, *const f64),
        stride: usize,
        factors: &[f64],
        partial: &mut [[f64; WIDEST_SHORT]],
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut scale = [I::splat(0.0); CLASSES];
            for class in 0..CLASSES {
                scale[class] = I::splat(factors[class]);
            }
            let mut sums = [[I::splat(0.0); W]; CLASSES];
            let mut column = 0;
            while column + WIDTH <= stride {
                for r in 0..W {
                    let column = column + r * I::LANES;
                    let new = self.step::<I, CLASSES, XI>(rows, stride, column, scale);
                    if DOTS {
                        add_products::<I, W, CLASSES>(&mut sums, r, self.next.add(column), new);
                    }
                }
                column += WIDTH;
            }
            for r in 0..W {
                let column = column + r * I::LANES;
                if column < stride {
                    let new = self.step::<I, CLASSES, XI>(rows, stride, column, scale);
                    if DOTS {
                        add_products::<I, W, CLASSES>(&mut sums, r, self.next.add(column), new);
                    }
                }
            }
            if DOTS {
                for class in 0..CLASSES {
                    I::store_short(partial[class].as_mut_ptr(), folded::<I, W>(sums[class]));
                }
            }
        }
    }

    /// Steps a register of each class, and returns its new values.
    ///
    /// # Safety
    /// As for `run`.
    #[inline(always)]
    unsafe fn step<I: Strips, const CLASSES: usize, const XI: bool>(
        &self,
        (theta, xi): (*mut f64, *const f64),
        stride: usize,
        column: usize,
        scale: [I::V; CLASSES],
    ) -> [I::V; CLASSES] {
        // SAFETY: passed on to the caller.
        unsafe {
            let x = I::load(self.record.add(column));
            let mut new = scale;
            for (class, new) in new.iter_mut().enumerate() {
                let i = class * stride + column;
                let old = I::load(theta.add(i));
                let field = I::add(I::mul(I::splat(self.l2), old), I::mul(*new, x));
                let field = if XI { I::add(field, I::load(xi.add(i))) } else { field };
                *new = descended::<I>(old, field, self.step);
                I::store(theta.add(i), *new);
            }
            new
        }
    }
}

/// Adds the products of a register of a record with those of some classes to accumulators r.
///
/// # Safety
/// `I` is present, and the record has a register.
#[inline(always)]
unsafe fn add_products<I: Strips, const W: usize, const CLASSES: usize>(
    sums: &mut [[I::V; W]; CLASSES],
    r: usize,
    record: *const f64,
    theta: [I::V; CLASSES],
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let x = I::load(record);
        for class in 0..CLASSES {
            sums[class][r] = I::add(sums[class][r], I::mul(x, theta[class]));
        }
    }
}

/// The products of a record with `CLASSES` rows of θ, folded to one register each.
///
/// # Safety
/// `I` is present, W registers of it are 16 numbers, and rows have `stride` numbers.
#[inline(always)]
unsafe fn dots<I: Strips, const W: usize, const CLASSES: usize>(
    theta: *const f64,
    record: *const f64,
    stride: usize,
    partial: &mut [[f64; WIDEST_SHORT]],
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut sums = [[I::splat(0.0); W]; CLASSES];
        let mut column = 0;
        while column + WIDTH <= stride {
            for r in 0..W {
                let column = column + r * I::LANES;
                let theta = columns::<I, CLASSES>(theta.add(column), stride);
                add_products::<I, W, CLASSES>(&mut sums, r, record.add(column), theta);
            }
            column += WIDTH;
        }
        for r in 0..W {
            let column = column + r * I::LANES;
            if column < stride {
                let theta = columns::<I, CLASSES>(theta.add(column), stride);
                add_products::<I, W, CLASSES>(&mut sums, r, record.add(column), theta);
            }
        }
        for class in 0..CLASSES {
            I::store_short(partial[class].as_mut_ptr(), folded::<I, W>(sums[class]));
        }
    }
}

/// One register of each of `CLASSES` rows.
///
/// # Safety
/// `I` is present, and the rows have a register.
#[inline(always)]
unsafe fn columns<I: Strips, const CLASSES: usize>(
    from: *const f64,
    stride: usize,
) -> [I::V; CLASSES] {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut all = [I::splat(0.0); CLASSES];
        for (class, register) in all.iter_mut().enumerate() {
            *register = I::load(from.add(class * stride));
        }
        all
    }
}

/// The folding tree of 16 accumulators in W registers, down to one register.
///
/// # Safety
/// `I` is present, and W registers of it are 16 numbers.
#[inline(always)]
unsafe fn folded<I: Simd, const W: usize>(mut sums: [I::V; W]) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut n = W / 2;
        while n > 0 {
            for r in 0..n {
                sums[r] = I::add(sums[r], sums[r + n]);
            }
            n /= 2;
        }
        sums[0]
    }
}

/// The greatest number of a register.
///
/// # Safety
/// `I` is present.
#[inline(always)]
unsafe fn greatest<I: FoldEach>(v: I::V) -> f64 {
    let mut each = [0.0; WIDEST_SHORT];
    // SAFETY: passed on to the caller; a register has at most as many lanes.
    unsafe { I::store(each.as_mut_ptr(), v) };
    let mut most = each[0];
    for &x in &each[1..I::LANES] {
        most = if x > most { x } else { most };
    }
    most
}

#[cfg(test)]
mod tests {
    use super::super::cohort::testing::thetas;
    use super::super::descend;
    use super::*;

    fn tables(d: usize, classes: usize, clients: usize, scale: f64) -> ClassTables {
        let mut rng = Stream::shared_instance(7);
        let set = |n: usize| {
            let rows = (0..n * d).map(|_| scale * rng.gaussian()).collect();
            (rows, (0..n).map(|i| (i * i % classes) as u8).collect())
        };
        let sizes = [5, 11, 3, 40].into_iter().cycle().take(clients);
        ClassTables::new(d, classes, 0.1, &sizes.map(set).collect::<Vec<_>>())
    }

    fn sizes() -> impl Iterator<Item = (usize, usize, f64)> {
        let dimensions = (1..=35).chain([47, 48, 49, 61, 64, 65, 100, 130]);
        let classes = [2, 3, 4, 5, 6, 7, 9, 10, 11, 17, 20, 31];
        let both = dimensions.zip(classes.into_iter().cycle());
        // With 60, logits are so far apart that e^(u − m) underflows.
        let both = both.chain([(8, 100), (30, 33), (2, 2), (300, 3), (784, 2)]);
        both.zip([1.0, 3.0, 60.0].into_iter().cycle()).map(|((d, k), scale)| (d, k, scale))
    }

    #[test]
    fn every_path_gives_the_bits_of_the_definition() {
        for (d, classes, scale) in sizes() {
            for (clients, steps, batch) in [(1, 0, 1), (4, 20, 1), (3, 1, 1), (2, 7, 3), (3, 2, 32)]
            {
                let tables = tables(d, classes, clients, scale / (1.0 + 0.1 * d as f64));
                let define = |cohort: Cohort<'_, ()>| {
                    cohort.each(|local| {
                        let mut field = vec![0.0; d * classes];
                        for _ in 0..local.steps {
                            let draw = |records: usize| local.rng.index(records);
                            tables.field(local.client, local.theta, batch, draw, &mut field);
                            descend(local.theta, &field, local.correction, local.step);
                        }
                    });
                };
                let steps = |client: usize| steps + client as u64 % 2;
                let expected = thetas(d * classes, clients, steps, define);
                for path in InstructionSet::available() {
                    let fused = |cohort: Cohort<'_, ()>| tables.advance_on(path, batch, cohort);
                    let got = thetas(d * classes, clients, steps, fused);
                    assert_eq!(got, expected, "d {d}, K {classes}, batch {batch}, {path:?}");
                }
            }
        }
    }

    #[test]
    fn without_a_correction_the_bits_are_the_same() {
        use crate::kernel::{LocalSteps, Members};
        use crate::rng::Purpose;
        let (d, classes) = (13, 5);
        let tables = tables(d, classes, 1, 1.0);
        for batch in [1, 4] {
            let after = |path: Option<InstructionSet>| {
                let (members, mut theta) = (Members::all(1), vec![0.0; d * classes]);
                let xi = vec![0.0; d * classes];
                let mut streams = [Stream::new(1, Purpose::Client, 0, 0, 0)];
                let plans = [LocalSteps { step: 0.1, steps: 50, batch: 1 }];
                let own = (&mut streams[..], &mut [()][..]);
                let cohort = Cohort::new(&members, (None, &mut theta), &xi, own, &plans, None);
                match path {
                    Some(path) => tables.advance_on(path, batch, cohort),
                    None => cohort.each(|local| {
                        let mut field = vec![0.0; d * classes];
                        for _ in 0..local.steps {
                            let draw = |records: usize| local.rng.index(records);
                            tables.field(0, local.theta, batch, draw, &mut field);
                            descend(local.theta, &field, local.correction, local.step);
                        }
                    }),
                }
                theta.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            let expected = after(None);
            for path in InstructionSet::available() {
                assert_eq!(after(Some(path)), expected, "batch {batch}, {path:?}");
            }
        }
    }

    #[test]
    fn sums_over_a_set_have_the_bits_of_plain_loops_on_every_path() {
        for (d, classes, scale) in sizes() {
            let tables = tables(d, classes, 4, scale);
            let theta: Vec<f64> = (0..d * classes).map(|i| 0.1 * (i % 7) as f64 - 0.3).collect();
            for set in 0..4 {
                let rows = tables.rows(set);
                let mut logits = vec![0.0; rows.len() * classes];
                for (row, logits) in rows.iter().zip(logits.chunks_exact_mut(classes)) {
                    product(&theta, row, logits);
                }
                let mut sums = theta.clone();
                for (row, factors) in rows.iter().zip(logits.chunks_exact(classes)) {
                    for (sums, factor) in sums.chunks_exact_mut(d).zip(factors) {
                        axpy(*factor, row, sums);
                    }
                }
                for path in InstructionSet::available() {
                    assert_eq!(tables.logits_on(path, set, &theta), logits, "{d} {path:?}");
                    let mut out = theta.clone();
                    tables.add_rows_on(path, set, &logits, &mut out);
                    assert_eq!(out, sums, "{d} {classes} {path:?}");
                }
            }
        }
    }
}
