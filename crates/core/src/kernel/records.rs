//! The fused local step of regressions on records: one draw, one dot product, one update, for up
//! to twelve clients in lockstep.
//!
//! Every instruction set computes, per step and client, the error e of a record x and
//! θ ← θ − step ((λθ + e x) + ξ), in the order of [`super::fold_sum`] and [`super::descend`]. In
//! logistic regression, whose records are already times their labels, e = −σ(m − Σ xθ); in linear
//! regression e = Σ xθ − y. A step on a short record is bound by the latency of σ (two divisions
//! and a polynomial); its lanes are the clients, and several registers of them hide the latency. A
//! step on a long record is bound by memory.
//!
//! Along a *tangent* the field of logistic regression is linearised at θ* for each record by itself:
//! e = −(s + s (1 − s) xᵀ(θ* − θ)) with s = σ(m − xᵀθ*), which is known for each record.
//!
//! In logistic regression a record may have a *loss weight* w, by which its loss is multiplied: its error is then w e.

mod rows;

use super::cohort::{Cohort, EqualSteps};
use super::exp::{sigmoid, sigmoids};
use super::padding::{WIDEST_SHORT, padded};
use super::product::products;
use super::rows::{Aligned, Rows, Table};
use super::simd::{BaseLanes, InstructionSet, Simd, Strips, in_lanes};
use super::strips::with_strip;
use super::vectors::{axpy, dot};
pub use rows::Tangent;
use rows::{InRegisters, InStrips, MOST, RowForm, RowUpdate, StepRows, copy_row};

/// The loss of a record, and what its error e depends on: the factor of the record in the gradient of its loss.
#[derive(Clone, Debug)]
pub enum Link {
    /// log(1 + exp(m − u)) with u = y xᵀθ; the rows are y x.
    Logistic {
        /// m, which is subtracted from the product of a record with θ.
        margin: f64,
    },
    /// ½ (xᵀθ − y)².
    Linear {
        /// The targets y: for each set one number per record.
        targets: Vec<Vec<f64>>,
    },
}

/// The records of all clients of a regression, as the kernel reads them: in sets, of which each client holds one, and
/// in rows that are padded with zeros to whole registers.
#[derive(Clone, Debug)]
pub struct RecordTables {
    d: usize,
    /// The distance from one row to the next: d, padded to whole registers.
    stride: usize,
    /// λ, the weight of the penalty λ/2 ‖θ‖².
    l2: f64,
    link: Link,
    /// The records of all sets, one after the other.
    records: Table,
    /// For each set the number of its first record among all records, and at the end the number of all records. Client
    /// c holds set c modulo the number of sets.
    begins: Vec<usize>,
    /// The class, 0 or 1, of each record of each set; empty if it is not known. No step reads it.
    labels: Vec<Vec<u8>>,
    /// The loss weight of each record of each set; empty if all are 1.
    loss_weights: Vec<Vec<f64>>,
}

/// How many numbers of the rows of clients are kept on the stack: enough for [`MOST`] clients with rows of four
/// numbers.
const NEAR: usize = (3 * MOST + 1) * 4;

/// Numbers that begin at a cache line.
#[repr(align(64))]
struct CacheLines([f64; NEAR]);

impl RecordTables {
    /// Tables of these sets of records, each a list of rows of d numbers, under the penalty λ = `l2`. In logistic
    /// regression the rows are records times their labels.
    ///
    /// # Panics
    /// If `d` is 0, there is no set, one is empty or not rows of `d`, or targets are not one per record.
    pub fn new(d: usize, l2: f64, link: Link, sets: &[Vec<f64>]) -> Self {
        assert!(d > 0 && !sets.is_empty());
        if let Link::Linear { targets } = &link {
            let counts = targets.iter().map(|targets| targets.len() * d);
            assert!(counts.eq(sets.iter().map(Vec::len)));
        }
        let mut begins = vec![0];
        for set in sets {
            assert!(!set.is_empty() && set.len().is_multiple_of(d));
            begins.push(begins[begins.len() - 1] + set.len() / d);
        }
        let records = Table::new(d, sets);
        let labels = Vec::new();
        let loss_weights = Vec::new();
        Self { d, stride: padded(d), l2, link, records, begins, labels, loss_weights }
    }

    /// Adds the class, 0 or 1, of each record of each set, which rows y x do not show. Metrics of classes need it;
    /// steps do not.
    ///
    /// # Panics
    /// If there is not one class per record.
    pub fn with_labels(self, labels: Vec<Vec<u8>>) -> Self {
        assert!(labels.iter().map(Vec::len).eq((0..self.sets()).map(|set| self.records(set))));
        Self { labels, ..self }
    }

    /// The class of each record of a set; `None` if it is not known.
    pub fn labels(&self, set: usize) -> Option<&[u8]> {
        self.labels.get(set).map(Vec::as_slice)
    }

    /// Multiplies the loss of each record of each set by a weight, in logistic regression alone.
    ///
    /// # Panics
    /// If there is not one weight per record, or the link is another one.
    pub fn with_loss_weights(self, loss_weights: Vec<Vec<f64>>) -> Self {
        assert!(matches!(self.link, Link::Logistic { .. }));
        let counts = (0..self.sets()).map(|set| self.records(set));
        assert!(loss_weights.iter().map(Vec::len).eq(counts));
        Self { loss_weights, ..self }
    }

    /// The loss weight of each record of a set; `None` if all are 1.
    pub fn loss_weights(&self, set: usize) -> Option<&[f64]> {
        self.loss_weights.get(set).map(Vec::as_slice)
    }

    /// Whether there are fused local steps for the dimension: for every d but 1, since a row of one number is not
    /// padded to a register. Without them, steps are a loop over the oracle.
    pub fn has_fused_steps(&self) -> bool {
        self.d > 1
    }

    /// How many record sets there are.
    pub fn sets(&self) -> usize {
        self.begins.len() - 1
    }

    /// How many records a set has.
    #[inline(always)]
    pub fn records(&self, set: usize) -> usize {
        self.begins[set + 1] - self.begins[set]
    }

    /// A record of a set by its number there, d numbers; in logistic regression it is times its label.
    #[inline(always)]
    pub fn row(&self, set: usize, record: usize) -> &[f64] {
        self.records.rows().row(self.begins[set] + record)
    }

    /// The records of a set.
    pub fn rows(&self, set: usize) -> Rows<'_> {
        self.records.rows().part(self.begins[set], self.begins[set + 1])
    }

    /// The errors e of all records of a set at θ, in the order of the records.
    pub fn errors(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        let rows = self.rows(set);
        let mut products_with_theta = vec![0.0; rows.len()];
        products(rows, theta, &mut products_with_theta);
        let records = products_with_theta.iter().enumerate();
        records.map(|(record, along)| self.error(set, record, *along)).collect()
    }

    /// The error of a record x, its factor in the gradient, where `along` = xᵀθ; it includes the loss weight.
    #[inline(always)]
    pub fn error(&self, set: usize, record: usize, along: f64) -> f64 {
        match &self.link {
            Link::Logistic { margin } => {
                let error = -sigmoid(margin - along);
                self.loss_weights(set).map_or(error, |weights| weights[record] * error)
            }
            Link::Linear { targets } => along - targets[set][record],
        }
    }

    /// The definition of an oracle call: `field` ← λθ + B⁻¹ Σ e x over B = `batch` records of the client, whose numbers
    /// in its set `next_record` returns one by one, with e the error of the record x at θ. θ and `field` have d
    /// numbers.
    #[inline(always)]
    pub fn field(
        &self,
        client: usize,
        theta: &[f64],
        batch: usize,
        mut next_record: impl FnMut() -> usize,
        field: &mut [f64],
    ) {
        let d = theta.len();
        let set = client % self.sets();
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.l2 * theta;
        }
        for _ in 0..batch {
            let record = next_record();
            let row = &self.row(set, record)[..d];
            let error = self.error(set, record, dot(theta, row));
            axpy(error / batch as f64, row, field);
        }
    }

    /// Runs the local steps of every client of the cohort, plain ones on one record each, and returns `None`; without
    /// fused steps for the dimension, or where the cohort has another one than the records, it runs nothing and returns
    /// the cohort, whose steps the caller takes by the oracle. With a tangent the steps are those of the
    /// linearised field, which is known for logistic regression alone. A caller takes steps with a proximal term or on
    /// batches otherwise: what the cohort says of these is not read.
    ///
    /// # Panics
    /// If the tangent's θ* has another dimension, or the tangent does not have a weight for each record.
    pub fn advance_on<'a, S>(
        &self,
        path: InstructionSet,
        mut cohort: Cohort<'a, S>,
        tangent: Option<&Tangent<'_>>,
    ) -> Option<Cohort<'a, S>> {
        if !self.has_fused_steps() || cohort.dim() != self.d {
            return Some(cohort);
        }
        assert!(tangent.is_none_or(|tangent| tangent.star.len() == self.d));
        // SAFETY: dimensions were checked above, and every client has a set.
        cohort.each_equal_run(|clients| unsafe { self.run(path, clients, tangent) });
        None
    }

    /// Runs the local steps of the cohorts of several runs, which have the same clients, client by client; each step is
    /// a plain one on one record. So the records of a client are read once for all runs, even where the records of all
    /// clients do not fit in a cache. The bits are those of running one cohort after the other. A caller takes steps
    /// with a proximal term or on batches otherwise: what the cohorts say of these is not read.
    ///
    /// # Panics
    /// If the cohorts differ in their clients or in their numbers of steps, or have another dimension than the records,
    /// or there are no fused steps ([`Self::has_fused_steps`]).
    pub fn advance_together_on<S>(&self, path: InstructionSet, mut cohorts: Vec<Cohort<'_, S>>) {
        assert!(self.has_fused_steps());
        assert!(cohorts.iter().all(|cohort| cohort.dim() == self.d));
        // SAFETY: dimensions were checked above, and every client has a set.
        Cohort::each_client(&mut cohorts, |client| unsafe { self.run(path, client, None) });
    }

    /// Runs all local steps of some clients with equal numbers of steps. It is not generic, so that the fused steps are
    /// compiled once for all types of states.
    ///
    /// # Safety
    /// The clients' θ and ξ have the dimension of the records, for which there are fused steps, and so has the
    /// tangent's θ*.
    #[inline(never)]
    unsafe fn run(
        &self,
        path: InstructionSet,
        clients: &mut EqualSteps<'_>,
        tangent: Option<&Tangent<'_>>,
    ) {
        let tables = self;
        let path = path.for_rows(self.stride);
        // SAFETY: passed on to the caller.
        in_lanes!(path, I, (
            tables: &RecordTables,
            clients: &mut EqualSteps<'_>,
            tangent: Option<&Tangent<'_>>
        ) => match I::LANES {
            // A row of two numbers is not padded, and fills a register of two lanes.
            WIDEST_SHORT if tables.d == 2 => tables.groups::<BaseLanes, I>(clients, tangent),
            // Wider registers for σ would serve no more clients.
            _ => tables.groups::<I, <I as Strips>::Short>(clients, tangent),
        });
    }

    /// Runs all local steps, with rows in registers of `I` and σ in registers of `W`: short rows are held by a number
    /// of registers that is known at compile time, and long ones are passed over in strips.
    ///
    /// # Safety
    /// `I` and `W` are present, and W has at most [`WIDEST_SHORT`] lanes; a padded row is whole registers of `I`; rows
    /// of θ and ξ have d numbers.
    #[inline(always)]
    unsafe fn groups<I: Simd, W: Simd>(
        &self,
        clients: &mut EqualSteps<'_>,
        tangent: Option<&Tangent<'_>>,
    ) {
        // SAFETY: passed on to the caller; R registers hold a padded row.
        unsafe {
            match self.stride / I::LANES {
                1 => self.split::<I, W, InRegisters<1>>(clients, tangent),
                2 => self.split::<I, W, InRegisters<2>>(clients, tangent),
                3 => self.split::<I, W, InRegisters<3>>(clients, tangent),
                4 => self.split::<I, W, InRegisters<4>>(clients, tangent),
                6 if I::LANES < 4 => self.split::<I, W, InRegisters<6>>(clients, tangent),
                8 if I::LANES < 4 => self.split::<I, W, InRegisters<8>>(clients, tangent),
                12 if I::LANES < 2 => self.split::<I, W, InRegisters<12>>(clients, tangent),
                16 if I::LANES < 2 => self.split::<I, W, InRegisters<16>>(clients, tangent),
                _ => with_strip!(I, S => self.split::<I, W, InStrips<S>>(clients, tangent)),
            }
        }
    }

    /// Runs all local steps of one group of clients after the other. The groups are of nearly equal size, of at most
    /// [`MOST`] clients, and their rows fit in the first-level cache, unless those of two clients are too long.
    ///
    /// # Safety
    /// As for `groups`; rows have the form `F`.
    #[inline(always)]
    unsafe fn split<I: Simd, W: Simd, F: RowForm>(
        &self,
        clients: &mut EqualSteps<'_>,
        tangent: Option<&Tangent<'_>>,
    ) {
        /// Numbers that stay in the first-level cache together with the records.
        const ROOM: usize = 1280;
        let n = clients.len();
        let groups = n.div_ceil((ROOM / self.stride).clamp(2, MOST));
        let size = (3 * n.div_ceil(groups) + 1) * self.stride;
        // A round may be a step of each client, which an allocation would make noticeably longer.
        let (mut near, mut far);
        let room = if size <= NEAR {
            near = CacheLines([0.0; NEAR]);
            &mut near.0[..size]
        } else {
            far = Aligned::zeros(size);
            &mut far[..]
        };
        for group in 0..groups {
            let from = n * group / groups;
            let to = n * (group + 1) / groups;
            // SAFETY: passed on to the caller; the room is enough.
            unsafe { self.lockstep::<I, W, F>(clients, from, to - from, room, tangent) };
        }
    }

    /// Runs all local steps of `len` members from number `from` on, step by step for all of them. θ and ξ are copied to
    /// padded rows of `room`, since reading them takes less time than σ, which hides it. With a tangent, `room` has
    /// rows for θ* and θ* − θ too.
    ///
    /// # Safety
    /// As for `split`; `room` has 3·len + 1 rows; the padding of the rows of ξ and θ* is zero.
    #[inline(always)]
    unsafe fn lockstep<I: Simd, W: Simd, F: RowForm>(
        &self,
        clients: &mut EqualSteps<'_>,
        from: usize,
        len: usize,
        room: &mut [f64],
        tangent: Option<&Tangent<'_>>,
    ) {
        let d = self.d;
        let stride = self.stride;
        let mut left = clients.steps;
        let mut lanes = clients.lanes_up_to::<MOST>(from, len);
        let is_tangent = tangent.is_some();
        // SAFETY: passed on to the caller; lanes hold rows of d numbers.
        let room = unsafe { StepRows::new(room, d, stride, &lanes, tangent) };
        let theta = room.theta;
        let xi = room.xi.cast_const();
        // Records are multiplied with θ or, along a tangent, with θ* − θ.
        let factor = if is_tangent { room.apart } else { theta };
        // Only a tangent needs θ* − θ, which changes with every step.
        let apart_rows = if is_tangent { len } else { 0 };
        // SAFETY: passed on to the caller.
        unsafe { room.update_apart::<I>(apart_rows, stride) };
        let held = self.held_by(&lanes.client[..len], tangent);
        // SAFETY: only draws that are ready are read; records start at record·stride
        // with record < the set's records.
        unsafe {
            let mut drawn = [0; MOST];
            while left > 0 {
                let (draws, now) = lanes.ready(left);
                for k in 0..len {
                    drawn[k] = held.pick(k, *draws[k]);
                }
                for i in 0..now {
                    let mut rows = [std::ptr::null(); MOST];
                    let mut errors = [0.0; MOST];
                    let current = drawn;
                    for k in 0..len {
                        rows[k] = held.sets[k].add(current[k] * stride);
                        if i + 1 < now {
                            drawn[k] = held.pick(k, *draws[k].add(i + 1));
                            F::prefetch_row(held.sets[k].add(drawn[k] * stride), stride);
                        }
                        errors[k] = F::dot::<I>(factor.add(k * stride), rows[k], stride);
                    }
                    self.products_to_errors::<W>(&held, &current[..len], &mut errors, is_tangent);
                    for k in 0..len {
                        let update = RowUpdate {
                            theta: theta.add(k * stride),
                            xi: xi.add(k * stride),
                            record: rows[k],
                            next: held.sets[k].add(drawn[k] * stride),
                            l2: I::splat(self.l2),
                            step: I::splat(lanes.step[k]),
                            error: I::splat(errors[k]),
                        };
                        F::update::<I>(update, stride);
                    }
                    room.update_apart::<I>(apart_rows, stride);
                }
                lanes.skip(now);
                left -= now as u64;
            }
            (0..len).for_each(|k| copy_row(theta.add(k * stride), lanes.theta[k], d));
        }
    }

    /// Where the records of some clients are and, along a tangent or in linear regression, one more number per record.
    ///
    /// # Panics
    /// If the tangent does not have a weight for each record.
    #[inline(always)]
    fn held_by(&self, clients: &[usize], tangent: Option<&Tangent<'_>>) -> HeldRecords {
        let sets = [std::ptr::null(); MOST];
        let counts = [0; MOST];
        let targets = [std::ptr::null(); MOST];
        let loss_weights = [std::ptr::null(); MOST];
        let mut held = HeldRecords { sets, counts, targets, loss_weights };
        for (k, client) in clients.iter().enumerate() {
            let set = client % self.sets();
            held.sets[k] = self.records.as_ptr().wrapping_add(self.begins[set] * self.stride);
            held.counts[k] = self.records(set) as u64;
            if let Some(tangent) = tangent {
                let weights = (tangent.weights)(set);
                assert_eq!(weights.len(), self.records(set));
                held.targets[k] = weights.as_ptr();
            } else if let Link::Linear { targets } = &self.link {
                held.targets[k] = targets[set].as_ptr();
            }
            if let Some(weights) = self.loss_weights(set) {
                held.loss_weights[k] = weights.as_ptr();
            }
        }
        held
    }

    /// Replaces products by errors: `along` has the product of one record of each client, xᵀθ or, along a tangent,
    /// xᵀ(θ* − θ), and afterwards the record's error, which includes its loss weight. `records` are the numbers of the
    /// records in their sets.
    ///
    /// # Safety
    /// `W` is present, with at most [`WIDEST_SHORT`] lanes; the clients have these records.
    #[inline(always)]
    unsafe fn products_to_errors<W: Simd>(
        &self,
        held: &HeldRecords,
        records: &[usize],
        along: &mut [f64; MOST],
        is_tangent: bool,
    ) {
        let len = records.len();
        match &self.link {
            _ if is_tangent => {
                for (k, (record, along)) in records.iter().zip(&mut *along).enumerate() {
                    // SAFETY: passed on to the caller.
                    let s = unsafe { *held.targets[k].add(*record) };
                    *along = -(s + s * (1.0 - s) * *along);
                }
            }
            Link::Logistic { margin } => {
                along[..len].iter_mut().for_each(|u| *u = margin - *u);
                // SAFETY: passed on to the caller; whole registers.
                unsafe { sigmoids::<W>(&mut along[..len.next_multiple_of(4)]) };
                along[..len].iter_mut().for_each(|s| *s = -*s);
            }
            Link::Linear { .. } => {
                for (k, (record, along)) in records.iter().zip(&mut *along).enumerate() {
                    // SAFETY: passed on to the caller.
                    *along -= unsafe { *held.targets[k].add(*record) };
                }
            }
        }
        if !self.loss_weights.is_empty() {
            for k in 0..len {
                // SAFETY: passed on to the caller; there is a weight for each record of each set.
                along[k] *= unsafe { *held.loss_weights[k].add(records[k]) };
            }
        }
    }
}

/// The records of the clients in lockstep.
struct HeldRecords {
    /// The first row of each client's records.
    sets: [*const f64; MOST],
    /// The number of each client's records.
    counts: [u64; MOST],
    /// The targets of each client's records in linear regression, or their weights along a tangent; null otherwise.
    targets: [*const f64; MOST],
    /// The loss weights of each client's records; null if all are 1.
    loss_weights: [*const f64; MOST],
}

impl HeldRecords {
    /// The number of the record that a draw of 64 bits gives client number k of the group.
    #[inline(always)]
    fn pick(&self, k: usize, draw: u64) -> usize {
        ((u128::from(draw) * u128::from(self.counts[k])) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::cohort::testing::{assert_paths, plain_steps, thetas_of_runs};
    use super::*;
    use crate::rng::Stream;

    /// Three sets of random records, with what `link` returns for their numbers of records.
    fn tables(d: usize, link: &mut dyn FnMut(&[usize]) -> Link, scale: f64) -> RecordTables {
        let mut rng = Stream::shared_instance(7);
        let counts = [5, 11, 3];
        let sets = counts.map(|n| (0..n * d).map(|_| scale * rng.gaussian()).collect());
        RecordTables::new(d, 0.1, link(&counts), &sets)
    }

    /// The link of linear regression with random targets, for sets with these numbers of records.
    fn linear(counts: &[usize]) -> Link {
        let mut rng = Stream::shared_instance(8);
        let targets = counts.iter().map(|n| (0..*n).map(|_| rng.gaussian()).collect());
        Link::Linear { targets: targets.collect() }
    }

    #[test]
    fn every_path_gives_the_bits_of_the_definition() {
        let dimensions = (1..=130).chain([300, 784, 1025]);
        for (d, (margin, scale)) in
            dimensions.zip([(0.0, 1.0), (1.0, 3.0), (0.5, 400.0)].into_iter().cycle())
        {
            compare(&tables(d, &mut |_| Link::Logistic { margin }, scale));
            compare(&tables(d, &mut linear, scale.min(1.0)));
        }
    }

    #[test]
    fn every_path_multiplies_errors_by_loss_weights() {
        for d in [1, 2, 3, 5, 9, 16, 17, 40, 130] {
            let plain = tables(d, &mut |_| Link::Logistic { margin: 0.5 }, 1.0);
            let weights =
                [5, 11, 3].map(|n| (0..n).map(|i| 0.3 + 0.7 * f64::from(i % 4)).collect());
            compare(&plain.with_loss_weights(weights.to_vec()));
        }
    }

    /// Asserts that fused steps have the bits of the loop over the oracle on every instruction set, alone and in
    /// several runs.
    fn compare(tables: &RecordTables) {
        let d = tables.d;
        for (clients, steps) in
            [(1, 0), (1, 33), (2, 70), (3, 1), (4, 10), (5, 33), (6, 1), (7, 200), (13, 64)]
        {
            let define = plain_steps(d, |client, theta, rng, field| {
                let set = client % tables.sets();
                tables.field(client, theta, 1, || rng.index(tables.records(set)), field);
            });
            let fused = |path, cohort: Cohort<'_, ()>| {
                if let Some(cohort) = tables.advance_on(path, cohort, None) {
                    assert_eq!(d, 1);
                    define(cohort);
                }
            };
            assert_paths("records", [1, d, clients], |_| steps, &define, fused);
            for path in InstructionSet::available().into_iter().filter(|_| d > 1) {
                compare_together(tables, path, clients, steps);
            }
        }
    }

    /// Asserts that three runs have the same bits client by client and one after the other.
    fn compare_together(tables: &RecordTables, path: InstructionSet, clients: usize, steps: u64) {
        let steps = |client: usize| steps + client as u64 % 2;
        let expected = thetas_of_runs(3, tables.d, clients, steps, |cohorts| {
            for cohort in cohorts {
                assert!(tables.advance_on(path, cohort, None).is_none());
            }
        });
        let got = thetas_of_runs(3, tables.d, clients, steps, |cohorts| {
            tables.advance_together_on(path, cohorts);
        });
        assert!(got == expected, "d {}, {clients} clients, {path:?}", tables.d);
    }
}
