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
//! θ, two classes at a time. With more, the probabilities of several records are computed in lanes,
//! and the field is summed in tiles of five classes and two registers over the batch, so that θ is
//! read and written once a step. So are steps on the mean of several oracle calls, or with a
//! proximal term: the order of their operations is that of `problem::generic`.

mod dots;
mod in_lanes;
mod pass;
mod residuals;
mod steps;
mod tiles;

use super::cohort::Cohort;
use super::simd::{InstructionSet, Simd, Strips, in_lanes, padded};
use super::{Aligned, Rows, WIDTH, axpy, fold_sum, product};
use crate::rng::Stream;
pub use in_lanes::divergence;
use steps::ClientSteps;
use tiles::{ADD, Calls, RowSum};

/// The most classes.
pub const MOST_CLASSES: usize = 100;
/// Records of a mini-batch, or of a set, whose rows are added in one pass over θ.
const PANEL: usize = 32;

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

/// What runs on a chosen instruction set.
enum SetWork<'a> {
    Steps(ClientSteps<'a>),
    /// The logits of a set's records at θ (padded rows), K numbers each; or with probabilities,
    /// K numbers per record too, the [`divergence`] of each record whose logits change by these.
    Logits {
        set: usize,
        theta: &'a Aligned,
        apart_from: Option<&'a [f64]>,
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

    /// The definition of an oracle call on a batch.
    #[inline(always)]
    pub fn field(
        &self,
        set: usize,
        theta: &[f64],
        batch: usize,
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.l2 * theta;
        }
        for _ in 0..batch {
            let record = rng.index(self.labels(set).len());
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
        self.logits_on(InstructionSet::best(), set, theta, None)
    }

    /// The [`divergence`] of each record of a set with probabilities `p`, K numbers each, whose
    /// logits change by those of θ.
    ///
    /// # Panics
    /// If lengths do not agree.
    pub fn divergences(&self, set: usize, p: &[f64], theta: &[f64]) -> Vec<f64> {
        self.logits_on(InstructionSet::best(), set, theta, Some(p))
    }

    /// The logits, or what they are apart from these probabilities.
    fn logits_on(
        &self,
        path: InstructionSet,
        set: usize,
        theta: &[f64],
        apart_from: Option<&[f64]>,
    ) -> Vec<f64> {
        let (records, classes) = (self.labels(set).len(), self.classes);
        assert!(theta.len() == classes * self.d);
        assert!(apart_from.is_none_or(|p| p.len() == records * classes));
        let mut out = vec![0.0; records * if apart_from.is_some() { 1 } else { classes }];
        let (theta, out_of) = (&padded_rows(theta, self.d), &mut out);
        // SAFETY: this processor has the instruction set; lengths agree.
        unsafe { self.run(path, SetWork::Logits { set, theta, apart_from, out: out_of }) };
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
    pub fn add_rows_on(&self, path: InstructionSet, set: usize, factors: &[f64], out: &mut [f64]) {
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
        let extended = cohort.extended;
        assert!(cohort.dim() == self.classes * self.d && cohort.end() <= self.sets.len());
        let mut theta = Aligned::zeros(self.classes * self.stride);
        let mut held = Aligned::zeros(self.classes * self.stride);
        let none = Aligned::zeros(0);
        let proximal = extended.map(|term| (term.weight, padded_rows(term.anchor, self.d)));
        cohort.each(|local| {
            self.pad(local.theta, &mut theta);
            // Without −0, adding a ξ of 0 changes no bit of θ; −0 can only come from the start.
            let negative_zero = (-0.0_f64).to_bits();
            let plain = extended.is_none()
                && local.correction.iter().all(|xi| xi.to_bits() == 0)
                && local.theta.iter().all(|theta| theta.to_bits() != negative_zero);
            if !plain {
                self.pad(local.correction, &mut held);
            }
            let work = ClientSteps {
                set: local.client,
                batch,
                calls: if extended.is_some() { local.batch as usize } else { 1 },
                steps: local.steps,
                step: local.step,
                rng: local.draws.rng,
                theta: &mut theta,
                correction: if plain { &none } else { &held },
                proximal: proximal.as_ref().map(|(weight, anchor)| (*weight, anchor)),
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
        let (tables, path) = (self, path.for_rows(self.stride));
        // SAFETY: passed on to the caller.
        in_lanes!(path, I, (tables: &ClassTables, work: SetWork<'_>) => {
            tables.execute::<I, { WIDTH / I::LANES }>(work)
        });
    }

    /// # Safety
    /// The instruction set `I` is present, W registers of it are 16 numbers, and dimensions agree.
    #[inline(always)]
    unsafe fn execute<I: Strips, const W: usize>(&self, work: SetWork<'_>) {
        // SAFETY: passed on to the caller.
        unsafe {
            match work {
                SetWork::Steps(steps) if steps.batch > 1 || steps.proximal.is_some() => {
                    self.batches::<I, W>(steps);
                }
                SetWork::Steps(steps) if steps.correction.is_empty() => {
                    self.singles::<I, W, false>(steps);
                }
                SetWork::Steps(steps) => self.singles::<I, W, true>(steps),
                SetWork::Logits { set, theta, apart_from, out } => {
                    self.logits_of::<I, W>(set, theta, apart_from, out);
                }
                SetWork::Sum { set, factors, out } => {
                    let rows: Vec<_> = self.rows(set).iter().map(<[f64]>::as_ptr).collect();
                    let panels = rows.chunks(PANEL).zip(factors.chunks(PANEL * self.classes));
                    for (rows, factors) in panels {
                        let sum = RowSum {
                            rows,
                            factors: (factors.as_ptr(), self.classes, 1),
                            l2: 0.0,
                            step: 0.0,
                            correction: std::ptr::null(),
                            calls: Calls::NONE,
                        };
                        self.tiles::<I, ADD>(&sum, out.as_mut_ptr());
                    }
                }
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

#[cfg(test)]
mod tests;
