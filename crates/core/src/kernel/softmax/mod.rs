//! Softmax regression: the definition of its oracle, and the same operations in registers, for
//! local steps and for facts about all records.
//!
//! θ is K rows of d numbers, one row per class. For a record x of class y:
//!
//! 1. u_k = Σ_j x_j θ_kj in the order of [`super::fold_sum`];
//! 2. m = max_k u_k, e_k = exp(u_k − m) with the bits of `libm`, t = Σ_k e_k in the order of
//!    [`super::fold_sum`], and p_k = e_k / t;
//! 3. the field of a batch of B records is λθ_kj + Σ_b w_b ((p_bk − 1\[y_b = k\]) / B) x_bj, added in
//!    the order of the draws, where w_b is the *loss weight* of the record, by which its loss is
//!    multiplied, and a step is that of [`super::descend`].
//!
//! A sum of logits here begins with 0 and has 16 accumulators also for short rows. That changes
//! at most the sign of a zero, and e^(u − m) is the same for both zeros.
//!
//! With one record a step, a step and the logits of the next record are computed in one pass over
//! θ, two classes at a time. With more, the probabilities of several records are computed in lanes,
//! and the field is summed in tiles of five classes and two registers over the batch, so that θ is
//! read and written once a step. So are steps on the mean of several oracle calls, or with a
//! proximal term: the order of their operations is that of `problem::oracle`.

mod dots;
mod in_lanes;
mod pass;
mod residuals;
mod steps;
mod tables;
mod tiles;

use super::cohort::Cohort;
use super::fold::WIDTH;
use super::rows::Aligned;
use super::simd::{InstructionSet, Simd, Strips, in_lanes};
pub use in_lanes::divergence;
use steps::{ClientSteps, PaddedProximal};
use tables::padded_rows;
pub use tables::{ClassTables, MOST_CLASSES, softmax};
use tiles::{ADD, Calls, FactorTable, RowSum};

/// How many records of a set are added to rows of θ in one pass over these rows.
const PANEL: usize = 32;

/// Work on the records of one set, which is compiled for each instruction set.
enum SetWork<'a> {
    /// The local steps of the client that holds the set.
    Steps(ClientSteps<'a>),
    /// The logits of all records, or their divergences ([`ClassTables::logits_on`]).
    Logits {
        set: usize,
        /// Padded rows, one per class.
        theta: &'a Aligned,
        /// For divergences the probabilities from which the logits change, K numbers per record.
        apart_from: Option<&'a [f64]>,
        /// Where logits, K numbers per record, or divergences, one number per record, are written.
        out: &'a mut [f64],
    },
    /// Adds all records, each times one factor per class, to the rows of the classes.
    Sum {
        set: usize,
        /// K numbers per record.
        factors: &'a [f64],
        /// Padded rows, one per class.
        out: &'a mut Aligned,
    },
}

impl ClassTables {
    /// The logits of all records of a set at θ, K numbers for each record.
    ///
    /// # Panics
    /// If θ is not K rows of d numbers.
    pub fn logits(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        self.logits_on(InstructionSet::best(), set, theta, None)
    }

    /// For each record of a set the [`divergence`] by which log Σ_k exp(u_k) exceeds its tangent if the record's logits
    /// change by the logits that it has at `theta`, a difference of two points. `p` are the probabilities before the
    /// change, K numbers for each record.
    ///
    /// # Panics
    /// If lengths do not agree.
    pub fn divergences(&self, set: usize, p: &[f64], theta: &[f64]) -> Vec<f64> {
        self.logits_on(InstructionSet::best(), set, theta, Some(p))
    }

    /// [`ClassTables::logits`] or, with probabilities `apart_from`, [`ClassTables::divergences`], on a chosen
    /// instruction set.
    ///
    /// # Panics
    /// If lengths do not agree.
    fn logits_on(
        &self,
        path: InstructionSet,
        set: usize,
        theta: &[f64],
        apart_from: Option<&[f64]>,
    ) -> Vec<f64> {
        let records = self.labels(set).len();
        let classes = self.classes;
        assert!(theta.len() == classes * self.d);
        assert!(apart_from.is_none_or(|p| p.len() == records * classes));
        let mut out = vec![0.0; records * if apart_from.is_some() { 1 } else { classes }];
        let theta = &padded_rows(theta, self.d);
        let work = SetWork::Logits { set, theta, apart_from, out: &mut out };
        // SAFETY: lengths agree.
        unsafe { self.run(path, work) };
        out
    }

    /// The probabilities of the classes for all records of a set at θ, K numbers for each record.
    ///
    /// # Panics
    /// If θ is not K rows of d numbers.
    pub fn probabilities(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        let mut all = self.logits(set, theta);
        all.chunks_exact_mut(self.classes).for_each(softmax);
        all
    }

    /// Adds all records of a set, each times one factor per class, to K rows of d numbers: row k of `out` grows by
    /// Σ_i f_ik x_i, with x_i the records in their order and f the `factors`, K numbers per record.
    ///
    /// # Panics
    /// If lengths do not agree.
    pub fn add_rows_on(&self, path: InstructionSet, set: usize, factors: &[f64], out: &mut [f64]) {
        assert!(factors.len() == self.labels(set).len() * self.classes);
        assert!(out.len() == self.classes * self.d);
        let mut sums = padded_rows(out, self.d);
        // SAFETY: lengths agree.
        unsafe { self.run(path, SetWork::Sum { set, factors, out: &mut sums }) };
        self.unpad(&sums, out);
    }

    /// Runs the local steps of every client of the cohort, with `batch` records in an oracle call. Extended steps take
    /// the mean of [`Local::batch`](super::cohort::Local::batch) oracle calls, or have a proximal term; in plain steps
    /// that number is not read. Client c holds set c modulo the number of sets.
    ///
    /// # Panics
    /// If dimensions do not agree, also that of the [`Proximal::anchor`](super::cohort::Proximal::anchor) of extended
    /// steps.
    pub fn advance_on<S>(&self, path: InstructionSet, batch: usize, cohort: Cohort<'_, S>) {
        let extended = cohort.extended;
        assert!(cohort.dim() == self.classes * self.d);
        // Every extended step reads all numbers of the anchor, also where the weight of the term is 0.
        assert!(extended.is_none_or(|term| term.anchor.len() == cohort.dim()));
        let mut theta = Aligned::zeros(self.classes * self.stride);
        let mut held = Aligned::zeros(self.classes * self.stride);
        let none = Aligned::zeros(0);
        let anchor = extended.map(|term| padded_rows(term.anchor, self.d));
        cohort.each(|local| {
            self.pad(local.theta, &mut theta);
            // A step without ξ takes less time. It has the bits of a step with ξ = 0 unless a number of θ is −0 at the
            // start.
            let negative_zero = (-0.0_f64).to_bits();
            let is_plain = extended.is_none()
                && local.correction.iter().all(|xi| xi.to_bits() == 0)
                && local.theta.iter().all(|theta| theta.to_bits() != negative_zero);
            if !is_plain {
                self.pad(local.correction, &mut held);
            }
            let work = ClientSteps {
                set: local.client % self.sets.len(),
                batch,
                calls: if extended.is_some() { local.batch as usize } else { 1 },
                steps: local.steps,
                step: local.step,
                rng: local.draws.rng,
                theta: &mut theta,
                correction: if is_plain { &none } else { &held },
                proximal: extended
                    .zip(anchor.as_ref())
                    .map(|(term, anchor)| PaddedProximal { weight: term.weight, anchor }),
            };
            // SAFETY: dimensions were checked above.
            unsafe { self.run(path, SetWork::Steps(work)) };
            self.unpad(&theta, local.theta);
        });
    }

    /// Does the work on a chosen instruction set. It is not generic, so that the work is compiled once.
    ///
    /// # Safety
    /// The work is as [`ClassTables::execute`] needs it, apart from the instruction set, which is present.
    #[inline(never)]
    unsafe fn run(&self, path: InstructionSet, work: SetWork<'_>) {
        let tables = self;
        let path = path.for_rows(self.stride);
        // SAFETY: passed on to the caller.
        in_lanes!(path, I, (tables: &ClassTables, work: SetWork<'_>) => {
            tables.execute::<I, { WIDTH / I::LANES }>(work)
        });
    }

    /// Does the work in registers of `I`: steps on batches, or extended ones, by tiles, and plain steps on single
    /// records by passes over pairs of classes.
    ///
    /// # Safety
    /// The instruction set `I` is present, W registers of it are 16 numbers, and a padded row is whole registers.
    /// Padded rows of the work (θ, ξ unless it is empty, θ_t and sums) have `stride` numbers, one row for each of the K
    /// classes; factors are K for each record.
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
                            factors: FactorTable {
                                first: factors.as_ptr(),
                                row_distance: self.classes,
                                class_distance: 1,
                            },
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

#[cfg(test)]
mod tests;
