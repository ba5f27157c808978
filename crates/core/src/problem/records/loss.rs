//! What a problem of records is made of: sets of records in some storage, and a loss.

use crate::kernel::records::RecordTables;
use crate::kernel::{Cohort, InstructionSet, Rows, SparseRecords, dot};
use crate::linalg::{Dd, Matrix};
use crate::problem::affine::Affine;
use crate::problem::minimise::MOST_FACTORED;

/// A set in a weighted mean over sets, at a point θ.
pub struct SetTerm {
    /// The number of the set.
    pub set: usize,
    /// The weight of the set in the mean.
    pub share: f64,
    /// [`RecordLoss::record_numbers`] of the set at θ.
    pub at: Vec<f64>,
}

/// Which record is meant: the number of its set, and its number in the set.
#[derive(Clone, Copy)]
pub struct RecordPlace {
    pub set: usize,
    pub record: usize,
}

/// Records in sets, and sums over them, whose order of operations each storage decides. Client c
/// holds set c modulo the number of sets. E is the mean over the records of a set, x are the features of a
/// record, δ is its residual and W its weight ([`RecordLoss`]); f ⊗ x are the K d products of K numbers f
/// with x. The loss of a record is w ℓ, with w its *loss weight*, which is 1 unless [`RecordSets::loss_weights`] says
/// otherwise, and which the δ and W of all functions here include. `at` are the [`RecordLoss::record_numbers`] of a set
/// at the point at which a function is computed.
pub trait RecordSets: Send + Sync + Sized + 'static {
    /// K, the number of products of a record with rows of θ.
    fn classes(&self) -> usize {
        1
    }
    /// The number of features.
    fn features(&self) -> usize {
        self.dense_rows(0).map_or(0, |rows| rows.dim())
    }
    /// How many sets there are.
    fn sets(&self) -> usize;
    /// The records of a set, if they are stored as rows of all their numbers.
    fn dense_rows(&self, set: usize) -> Option<Rows<'_>>;
    /// How many records a set has.
    fn records(&self, set: usize) -> usize {
        self.dense_rows(set).map_or(0, |rows| rows.len())
    }
    /// The class of each record of a set, from 0; `None` if the storage does not know it.
    fn labels(&self, _set: usize) -> Option<&[u8]> {
        None
    }
    /// w of each record of a set, by which its loss is multiplied; `None` if all of them are 1. A test set has none, since
    /// its losses are not optimised.
    fn loss_weights(&self, _set: usize) -> Option<&[f64]> {
        None
    }
    /// The same records, whose losses are multiplied by these weights, one for each record of each set.
    ///
    /// # Panics
    /// If there is not one weight per record, or the storage is that of linear regression.
    fn with_loss_weights(self, loss_weights: Vec<Vec<f64>>) -> Self;
    /// w of a record, 1 without loss weights.
    fn loss_weight(&self, set: usize, record: usize) -> f64 {
        self.loss_weights(set).map_or(1.0, |weights| weights[record])
    }
    /// Multiplies the numbers of each record of a set by its w: as many for each record, one after the other.
    fn weigh(&self, set: usize, numbers: &mut [f64]) {
        let Some(weights) = self.loss_weights(set) else { return };
        let per_record = numbers.len() / weights.len();
        for (numbers, weight) in numbers.chunks_exact_mut(per_record).zip(weights) {
            numbers.iter_mut().for_each(|number| *number *= weight);
        }
    }
    /// δ of a set's records, K numbers per record: those of ℓ, times w.
    fn weighted_residuals(&self, loss: &impl RecordLoss<Self>, set: usize, at: &[f64]) -> Vec<f64> {
        let mut residuals = loss.residuals(self, set, at);
        self.weigh(set, &mut residuals);
        residuals
    }
    /// The function of (i, k, l) that returns W_kl of record i of a set: that of ℓ, times w.
    fn second_derivatives<L: RecordLoss<Self>>(
        &self,
        loss: &L,
        set: usize,
        at: &[f64],
    ) -> impl Fn(usize, usize, usize) -> f64 {
        let loss_weights = self.loss_weights(set);
        move |i, k, l| {
            let of_loss = loss.weight(at, i, k, l);
            loss_weights.map_or(of_loss, |weights| weights[i] * of_loss)
        }
    }
    /// How many multiplications [`RecordSets::products`] takes for all sets together, of which theory
    /// estimates how long its computations take; no result depends on it.
    fn multiplications(&self) -> usize {
        let records = (0..self.sets()).map(|set| self.records(set)).sum::<usize>();
        records * self.features() * self.classes()
    }

    /// The products of each record of a set with the K rows of v, each of d numbers: K numbers per record.
    fn products(&self, set: usize, v: &[f64]) -> Vec<f64>;
    /// Calls `visit` with the feature and the value of each stored number of a record.
    fn visit_record(&self, set: usize, record: usize, mut visit: impl FnMut(usize, f64)) {
        let row = self.dense_rows(set).map_or(&[][..], |rows| rows.row(record));
        row.iter().enumerate().for_each(|(feature, value)| visit(feature, *value));
    }
    /// out ← out + Σ f ⊗ x over the records of a set, with K factors f per record; `out` has K d numbers.
    fn add_rows(&self, set: usize, factors: &[f64], out: &mut [f64]);
    /// ‖x‖² of each record of a set.
    fn squares(&self, set: usize) -> Vec<f64> {
        self.dense_rows(set).map_or(Vec::new(), |rows| rows.iter().map(|x| dot(x, x)).collect())
    }
    /// (I ⊗ x)ᵀ m (I ⊗ x) of a record, K × K: xᵀ m_kl x for each d × d block of the K d × K d matrix m.
    fn contracted(&self, set: usize, record: usize, m: &Matrix) -> Matrix;
    /// E W ⊗ xxᵀ over a set, K d × K d, with W_kl = `weight(i, k, l)` of record i.
    fn gram(&self, set: usize, weight: impl Fn(usize, usize, usize) -> f64) -> Matrix;

    /// out ← out + share E δ ⊗ x over a set, given δ of its records, K numbers per record, in the order of the records:
    /// the part of the gradient of a mean over sets that this set adds, without the penalty.
    fn add_pull(&self, set: usize, share: f64, mut residuals: Vec<f64>, out: &mut [f64]) {
        let scale = share / self.records(set) as f64;
        residuals.iter_mut().for_each(|delta| *delta *= scale);
        self.add_rows(set, &residuals, out);
    }
    /// ∇f of the weighted mean of the losses of sets, with the penalty, at θ into `out`, K d numbers. The weights of
    /// the sets must sum to 1, and their numbers must be those at this θ.
    fn mean_gradient<L>(&self, loss: &L, sets: &[SetTerm], theta: &[f64], out: &mut [f64])
    where
        L: RecordLoss<Self>,
    {
        out.iter_mut().zip(theta).for_each(|(out, theta)| *out = loss.l2() * theta);
        for SetTerm { set, share, at } in sets {
            self.add_pull(*set, *share, self.weighted_residuals(loss, *set, at), out);
        }
    }
    /// ∇²f of the weighted mean of the losses of sets, whose weights must sum to 1, with the penalty, K d × K d. With
    /// more unknowns than [`crate::problem::MOST_REFINED`] its upper triangle may be undefined: the search
    /// for an optimum, for which this is, then reads the lower one alone. [`RecordSets::hessian`] has all entries.
    fn mean_hessian(&self, loss: &impl RecordLoss<Self>, sets: &[SetTerm]) -> Matrix;
    /// ∇²f of the mean loss of one set, with the penalty, K d × K d, with all entries.
    fn hessian(&self, loss: &impl RecordLoss<Self>, set: usize, at: &[f64]) -> Matrix {
        let penalty = Matrix::identity(self.features() * self.classes());
        self.gram(set, self.second_derivatives(loss, set, at)).plus(loss.l2(), &penalty)
    }
    /// The covariance of an oracle call on a set, K d × K d: of the mean of δ ⊗ x over a batch of records.
    fn noise_covariance(&self, loss: &impl RecordLoss<Self>, set: usize, at: &[f64]) -> Matrix {
        let residuals = self.weighted_residuals(loss, set, at);
        let classes = self.classes();
        let mut second =
            self.gram(set, |i, k, l| residuals[i * classes + k] * residuals[i * classes + l]);
        let mut mean = vec![0.0; second.rows()];
        self.add_pull(set, 1.0, residuals, &mut mean);
        second.add_outer(-1.0, &mean, &mean);
        second.scaled(1.0 / loss.batch() as f64)
    }
    /// The trace of [`RecordSets::noise_covariance`], without the matrix: tr E δδᵀ ⊗ xxᵀ is
    /// E ‖δ‖² ‖x‖².
    fn noise_trace(&self, loss: &impl RecordLoss<Self>, set: usize, at: &[f64]) -> f64 {
        let residuals = self.weighted_residuals(loss, set, at);
        let squares = self.squares(set);
        let records = residuals.chunks_exact(self.classes()).zip(&squares);
        let second = records.fold(0.0, |sum, (delta, x)| sum + x * dot(delta, delta));
        let mut mean = vec![0.0; self.features() * self.classes()];
        self.add_pull(set, 1.0, residuals, &mut mean);
        (second / squares.len() as f64 - dot(&mean, &mean)) / loss.batch() as f64
    }
    /// [`crate::problem::Facts::noise_map`] of a client that holds a set: the covariance of its oracle calls,
    /// linearised at θ*, between θ and θ', given s = E (e, 1)(e', 1)ᵀ with e = θ − θ* and e' = θ' − θ*; `at` are the
    /// set's numbers at θ*. The linearised field of a record is (W v + δ) ⊗ x, with v its products with e; the penalty
    /// adds no noise.
    ///
    /// This default is for losses of one product: with w = (W x, δ), d + 1 numbers, the field is (wᵀ(e, 1)) x. The
    /// result is linear in `s`, which need not be such a moment.
    fn noise_map(
        &self,
        loss: &impl RecordLoss<Self>,
        set: usize,
        at: &[f64],
        s: &Matrix,
    ) -> Matrix {
        let d = self.features();
        // A copy with all numbers of the records of the set, if they are sparse.
        let copy = self.sparse().map_or(Vec::new(), |records| records.sets[set].to_dense());
        let rows = self.dense_rows(set).unwrap_or_else(|| Rows::new(&copy, d, d));
        let residuals = self.weighted_residuals(loss, set, at);
        let second_derivative = self.second_derivatives(loss, set, at);
        let n = at.len() as f64;
        let mut second = Matrix::zeros(d, d);
        let mut mean = Matrix::zeros(d, d + 1);
        for (i, (x, residual)) in rows.iter().zip(&residuals).enumerate() {
            let weight = second_derivative(i, 0, 0);
            let mut w: Vec<f64> = x.iter().map(|x| weight * x).collect();
            w.push(*residual);
            second.add_outer(dot(&w, &s.apply(&w)) / n, x, x);
            mean.add_outer(1.0 / n, x, &w);
        }
        let mean = mean.times(s).times(&mean.transpose());
        second.plus(-1.0, &mean).scaled(1.0 / loss.batch() as f64)
    }

    /// Writes an oracle call of a client to `out`: the mean gradient of `batch` records, 1 or more, with the penalty.
    /// `next_record` is called once for each of them, and returns its number in the client's set.
    fn field(
        &self,
        client: usize,
        theta: &[f64],
        batch: usize,
        next_record: impl FnMut() -> usize,
        out: &mut [f64],
    );
    /// field ← field + f ⊗ x for a record. `factors` is called with the K products of the record with
    /// θ − θ*, and replaces them by f; `points` are θ and θ*.
    fn add_linearised(
        &self,
        place: RecordPlace,
        points: [&[f64]; 2],
        factors: impl FnOnce(&mut [f64]),
        field: &mut [f64],
    );
    /// Takes the local steps of a cohort with oracle calls on `batch` records, if the storage has a kernel for
    /// them, and returns `None`. Else it takes none and returns the cohort, and the caller loops over the
    /// oracle. The bits do not depend on the instruction set `path`, of which only such
    /// values exist that this processor has.
    fn advance_on<'a>(
        &self,
        path: InstructionSet,
        batch: usize,
        cohort: Cohort<'a, ()>,
    ) -> Option<Cohort<'a, ()>>;
    /// The tables that have fused steps on single records, also of several runs together and on linearised
    /// fields, if this storage is one.
    fn tables(&self) -> Option<&RecordTables> {
        None
    }
    /// The storage itself, if it is sparse.
    fn sparse(&self) -> Option<&SparseRecords> {
        None
    }
}

/// A loss ℓ of a record's K products u, without the penalty, with its residual δ = ∂ℓ/∂u, K
/// numbers, and its weight W = ∂²ℓ/∂u², K × K. No function here knows the loss weight of a record, by which its callers
/// multiply what is linear in ℓ ([`RecordSets::weigh`]).
pub trait RecordLoss<S: RecordSets>: Send + Sync + Sized + 'static {
    /// A bound on the eigenvalues of W.
    const LARGEST_WEIGHT: f64;
    /// R with |D³ℓ\[h, h, v\]| ≤ R ‖v‖ hᵀWh for all changes h and v of the products: along a segment
    /// of length r all Hessians are within factors of e^(Rr‖x‖) of each other (Bach 2010).
    const SELF_CONCORDANCE: f64;
    /// Whether δ is affine in the products, so that the fields are affine in θ.
    const AFFINE: bool = false;
    /// Whether ℓ depends on the differences of the K products alone: it then does not change where all rows of θ change
    /// alike.
    const OF_DIFFERENCES: bool = false;
    /// The inverse of a bound on the third derivatives of ℓ by u, if one is known.
    const INVERSE_THIRD: Option<f64> = None;
    /// Whether a mean over dense records multiplies the sum over a set by the set's share before it divides
    /// the product by the number of records. Both orders are kept, since stored results have their bits.
    const SHARES_FIRST: bool = false;
    /// The most unknowns for which the search for an optimum factors Hessians
    /// ([`crate::problem::minimise::Objective::most_factored`]).
    const MOST_FACTORED: usize = MOST_FACTORED;

    /// λ, the weight of the penalty λ/2 ‖θ‖².
    fn l2(&self) -> f64;
    /// B, the number of records of an oracle call.
    fn batch(&self) -> usize;
    /// The mean field of a set by its matrix; `None` if it is not affine, or is computed from the records because
    /// these have fewer numbers than a matrix.
    fn affine(&self, _set: usize) -> Option<&Affine> {
        None
    }
    /// The mean field of all clients by its matrix; `None` for the same reasons.
    fn mean_affine(&self) -> Option<&Affine> {
        None
    }
    /// The numbers of a set's records at θ, K per record, from which δ and W follow: what is computed once at
    /// a point, and passed as `at` to the functions that need δ or W there.
    fn record_numbers(&self, records: &S, set: usize, theta: &[f64]) -> Vec<f64>;
    /// δ of a set's records, K numbers per record.
    fn residuals(&self, records: &S, set: usize, at: &[f64]) -> Vec<f64>;
    /// Replaces the products u of a record in double-double by its numbers, from which δ and W
    /// follow, and returns a bound on the error of the numbers, if the error of u is at most `error`; both
    /// errors are Euclidean lengths. The bound on the error of θ* is computed from these.
    fn extended_numbers(
        &self,
        records: &S,
        set: usize,
        record: usize,
        u: &mut [Dd],
        error: f64,
    ) -> f64;
    /// Replaces the numbers of a record in double-double by δ, to within the error of an operation.
    fn extended_residuals(&self, _: &S, _set: usize, _record: usize, _numbers: &mut [Dd]) {}
    /// Replaces a change v of the products of a record by W v in double-double; `numbers` are the record's.
    fn extended_change(&self, _numbers: &[Dd], _v: &mut [Dd]) {}
    /// W_kl of record i of the set whose numbers are `at`.
    fn weight(&self, at: &[f64], i: usize, k: usize, l: usize) -> f64;
    /// Replaces changes v of the products of all records of a set, K per record, by `scale` W v.
    fn change(&self, at: &[f64], scale: f64, v: &mut [f64]) {
        v.iter_mut().enumerate().for_each(|(i, v)| *v *= scale * self.weight(at, i, 0, 0));
    }
    /// ℓ of each record of a set at θ, without the penalty.
    fn losses(&self, records: &S, set: usize, theta: &[f64]) -> Vec<f64>;
    /// How much each record of a set counts in the accuracy: 1 if θ predicts its class, else 0 or, on the boundary of
    /// two classes, half. `None` without classes.
    fn hits(&self, _records: &S, _set: usize, _theta: &[f64]) -> Option<Vec<f64>> {
        None
    }
    /// The scores by which θ ranks the records of a set: one number per record, of which that of a record of class 1
    /// should be higher, or a number per class for each record. `None` where the storage does not know classes.
    fn class_scores(&self, _records: &S, _set: usize, _theta: &[f64]) -> Option<Vec<f64>> {
        None
    }
    /// Replaces v, the products of a record with θ − θ*, by δ + W v at θ*. `at` are the
    /// [`record_numbers`](Self::record_numbers) of its set at θ*. This function and the one for third derivatives are not
    /// called for losses whose fields are affine.
    fn linearised(&self, _: &S, _place: RecordPlace, _at: &[f64], _v: &mut [f64]) {
        unreachable!("an affine field is its own linearisation");
    }
    /// For each record of a set the Bregman divergence ℓ(u) − ℓ(u*) − δ(u*)ᵀ(u − u*) between its products u at θ
    /// and u* at θ*; `points` are θ and θ*, and `at` the set's numbers at θ*.
    fn divergences(&self, records: &S, set: usize, at: &[f64], points: [&[f64]; 2]) -> Vec<f64>;
    /// The factors f of the records of a set, K numbers per record, with which the sum of ℓ has the third derivatives
    /// Σ_jk m_jk ∂³/∂θ∂θ_j∂θ_k = Σ f ⊗ x at θ*; `at` are the set's numbers at θ*.
    fn third_derivatives(&self, _: &S, _set: usize, _at: &[f64], _m: &Matrix) -> Vec<f64> {
        unreachable!("quadratic losses have no curvature");
    }
}
