//! The records of all clients as the kernel reads them, and the definition of an oracle call.

use crate::kernel::fold::fold_sum;
use crate::kernel::padding::padded;
use crate::kernel::product::product;
use crate::kernel::rows::{Aligned, Rows};
use crate::kernel::vectors::axpy;

/// The most classes that a problem may have: the stack has room for the factors of a record with this many classes.
pub const MOST_CLASSES: usize = 100;

/// The length of a row of `n` numbers that is padded to whole registers of four lanes: rows over classes, in contrast
/// to rows over features ([`padded`]).
pub(super) fn whole(n: usize) -> usize {
    n.next_multiple_of(4)
}

/// The records of one client.
#[derive(Clone, Debug)]
pub(super) struct LabelledRows {
    /// Rows of d numbers, padded with zeros.
    pub(super) rows: Aligned,
    /// The class of each record, below K.
    pub(super) labels: Vec<u8>,
    /// The loss weight of each record; empty if all are 1.
    pub(super) loss_weights: Vec<f64>,
}

impl LabelledRows {
    /// The loss weight of a record.
    #[inline(always)]
    pub(super) fn loss_weight(&self, record: usize) -> f64 {
        self.loss_weights.get(record).copied().unwrap_or(1.0)
    }
}

/// The records of all clients; client c holds set c modulo the number of sets.
#[derive(Clone, Debug)]
pub struct ClassTables {
    /// The number of features of a record.
    pub(super) d: usize,
    /// The distance from one row of a record or of θ to the next: d, padded to whole registers.
    pub(super) stride: usize,
    /// K, the number of classes.
    pub(super) classes: usize,
    /// λ, the weight of the penalty λ/2 ‖θ‖².
    pub(super) l2: f64,
    /// K padded rows: row y is 1 at y and 0 elsewhere.
    pub(super) indicators: Aligned,
    /// K ones, padded with zeros to whole registers: which lanes are classes.
    pub(super) live: Aligned,
    /// The sets of records, of which each client holds one.
    pub(super) sets: Vec<LabelledRows>,
}

/// Replaces the logits of a record, one for each class, by the probabilities of the classes: the definition, which
/// kernels repeat in lanes to the bit.
///
/// # Panics
/// If there is no class.
pub fn softmax(u: &mut [f64]) {
    let mut most = u[0];
    for &u in u.iter() {
        most = if u > most { u } else { most };
    }
    u.iter_mut().for_each(|u| *u = libm::exp(*u - most));
    let total = fold_sum(u.len(), |k| u[k]);
    u.iter_mut().for_each(|u| *u /= total);
}

impl ClassTables {
    /// Tables of these sets of records, each a list of rows of d numbers and the rows' classes, under the penalty λ =
    /// `l2`.
    ///
    /// # Panics
    /// If `d` is 0, there is no set, one is empty or not rows of `d`, or a class is not below `classes`, which is 1 to
    /// [`MOST_CLASSES`].
    pub fn new(d: usize, classes: usize, l2: f64, sets: &[(Vec<f64>, Vec<u8>)]) -> Self {
        assert!(d > 0 && !sets.is_empty() && (1..=MOST_CLASSES).contains(&classes));
        let stride = padded(d).next_multiple_of(4);
        let mut indicators = Aligned::zeros(classes * whole(classes));
        (0..classes).for_each(|y| indicators[y * whole(classes) + y] = 1.0);
        let mut live = Aligned::zeros(whole(classes));
        live[..classes].fill(1.0);
        let mut padded_sets = Vec::with_capacity(sets.len());
        for (rows, labels) in sets {
            assert!(!labels.is_empty() && rows.len() == d * labels.len());
            assert!(labels.iter().all(|&y| usize::from(y) < classes));
            let rows = padded_rows(rows, d);
            let labels = labels.clone();
            padded_sets.push(LabelledRows { rows, labels, loss_weights: Vec::new() });
        }
        Self { d, stride, classes, l2, indicators, live, sets: padded_sets }
    }

    /// Multiplies the loss of each record of each set by a weight.
    ///
    /// # Panics
    /// If there is not one weight per record.
    pub fn with_loss_weights(mut self, loss_weights: Vec<Vec<f64>>) -> Self {
        assert_eq!(loss_weights.len(), self.sets.len());
        for (set, loss_weights) in self.sets.iter_mut().zip(loss_weights) {
            assert_eq!(loss_weights.len(), set.labels.len());
            set.loss_weights = loss_weights;
        }
        self
    }

    /// The loss weight of each record of a set; `None` if all are 1.
    pub fn loss_weights(&self, set: usize) -> Option<&[f64]> {
        Some(self.sets[set].loss_weights.as_slice()).filter(|weights| !weights.is_empty())
    }

    /// How many record sets there are.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// K, the number of classes.
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

    /// The definition of an oracle call: writes λθ plus the mean of the gradients of the loss on B = `batch` records of
    /// a set, whose numbers in the set `next_record` returns one by one, to `field`, K rows of d numbers.
    #[inline(always)]
    pub fn field(
        &self,
        set: usize,
        theta: &[f64],
        batch: usize,
        mut next_record: impl FnMut() -> usize,
        field: &mut [f64],
    ) {
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.l2 * theta;
        }
        for _ in 0..batch {
            let record = next_record();
            let row = self.rows(set).row(record);
            let mut room = [0.0; MOST_CLASSES];
            let factors = &mut room[..self.classes];
            product(theta, row, factors);
            softmax(factors);
            factors[usize::from(self.labels(set)[record])] -= 1.0;
            let loss_weight = self.sets[set].loss_weight(record);
            for (factor, field) in factors.iter().zip(field.chunks_exact_mut(self.d)) {
                axpy(loss_weight * (factor / batch as f64), row, field);
            }
        }
    }

    /// Copies K rows of d numbers to padded rows, and sets the padding to 0: a previous client that diverged may have
    /// left a NaN there.
    pub(super) fn pad(&self, from: &[f64], to: &mut Aligned) {
        for (from, to) in from.chunks_exact(self.d).zip(to.chunks_exact_mut(self.stride)) {
            to[..self.d].copy_from_slice(from);
            to[self.d..].fill(0.0);
        }
    }

    /// Copies padded rows, without their padding, to K rows of d numbers.
    pub(super) fn unpad(&self, from: &Aligned, to: &mut [f64]) {
        for (from, to) in from.chunks_exact(self.stride).zip(to.chunks_exact_mut(self.d)) {
            to.copy_from_slice(&from[..self.d]);
        }
    }
}

/// A copy of rows of d numbers in which each is padded with zeros to the stride of [`ClassTables`].
pub(super) fn padded_rows(rows: &[f64], d: usize) -> Aligned {
    let stride = padded(d).next_multiple_of(4);
    let mut padded = Aligned::zeros(rows.len() / d * stride);
    for (row, padded) in rows.chunks_exact(d).zip(padded.chunks_exact_mut(stride)) {
        padded[..d].copy_from_slice(row);
    }
    padded
}
