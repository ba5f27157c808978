//! The loss of softmax regression, and sums over records of classes.
//!
//! A *set* is the records that a client holds; client c holds set number c modulo the number of sets. θ has the d
//! weights of one class after the other, Θ is θ as a K × d matrix, and the *logits* of a record x are the K products
//! Θx. E is the mean over the records of a set, δ is the residual of a record, the derivative of its loss by the
//! logits, and W its weight, the second derivative, K × K; f ⊗ x are the K d products of K numbers f with x.

use crate::kernel::softmax::{ClassTables, MOST_CLASSES};
use crate::kernel::{Cohort, InstructionSet, Rows, axpy, difference, dot, fold_sum};
use crate::linalg::{DD_EPSILON, DD_EXP_ERROR, Dd, Matrix};
use crate::problem::records::{RecordLoss, RecordPlace, RecordProblem, RecordSets, SetTerm};

/// An instance of softmax regression, on dense records.
pub type Softmax = RecordProblem<SoftmaxLoss, ClassTables>;

/// The loss log Σ_k exp(u_k) − u_y of a record of class y with logits u.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxLoss {
    /// K, the number of classes.
    pub classes: usize,
    /// λ, the weight of the penalty λ/2 ‖θ‖².
    pub l2: f64,
    /// B, the number of records of an oracle call.
    pub batch: usize,
}

/// The records of a client: their features, rows of d numbers one after the other, and their classes, from 0 and below
/// [`MOST_CLASSES`], so that a byte holds one.
pub type ClassRecords = (Vec<f64>, Vec<u8>);

/// Replaces changes v of the logits of a record by the changes of its probabilities p to first order, W v:
/// p_k (v_k − Σ_l p_l v_l). Both have K numbers.
fn to_probability_changes(p: &[f64], v: &mut [f64]) {
    let mean = dot(p, v);
    v.iter_mut().zip(p).for_each(|(v, p)| *v = p * (*v - mean));
}

/// log Σ exp(u_l) over all classes but one, −∞ if it is the only class. The largest of these logits is subtracted
/// first, so that no exponential overflows; with two classes the result is the other logit to the last bit.
fn log_sum_of_others(u: &[f64], class: usize) -> f64 {
    let mut most = f64::NEG_INFINITY;
    for (k, u) in u.iter().enumerate() {
        if k != class {
            most = most.max(*u);
        }
    }
    let mut sum = 0.0;
    for (k, u) in u.iter().enumerate() {
        if k != class {
            sum += libm::exp(u - most);
        }
    }
    most + libm::log(sum)
}

/// The numbers that are kept of a record at a point θ (`at`, K per record) are the probabilities p of the
/// classes. With them the residual δ = ∂ℓ/∂u is p, less 1 for the record's class, and the weight
/// W = ∂²ℓ/∂u² is diag(p) − ppᵀ.
impl RecordLoss<ClassTables> for SoftmaxLoss {
    /// The eigenvalues of diag(p) − ppᵀ are at most ½.
    const LARGEST_WEIGHT: f64 = 0.5;
    /// D³ℓ\[h, h, v\] = E (h − Eh)²(v − Ev) under p, and v − Ev is at most max v − min v ≤ √2 ‖v‖.
    const SELF_CONCORDANCE: f64 = std::f64::consts::SQRT_2;
    /// A common change of all logits changes no probability.
    const OF_DIFFERENCES: bool = true;
    /// A product with the Hessian costs about 4 d K operations per record, and the Hessian itself (d K)²/2.
    const MOST_FACTORED: usize = 100;

    fn l2(&self) -> f64 {
        self.l2
    }
    fn batch(&self) -> usize {
        self.batch
    }
    fn record_numbers(&self, records: &ClassTables, set: usize, theta: &[f64]) -> Vec<f64> {
        records.probabilities(set, theta)
    }
    /// δ of each record of a set: the probabilities `at`, less 1 for the record's class, K numbers per record.
    fn residuals(&self, records: &ClassTables, set: usize, at: &[f64]) -> Vec<f64> {
        let mut residuals = at.to_vec();
        let rows = residuals.chunks_exact_mut(self.classes);
        for (residuals, label) in rows.zip(records.labels(set)) {
            residuals[usize::from(*label)] -= 1.0;
        }
        residuals
    }
    /// Replaces the logits u of a record in double-double by its probabilities p, and returns a bound on the
    /// error ‖Δp‖, if the error of u is at most `error`. It is half of the error of u, to which subtracting the
    /// largest logit adds, and the error of its own operations: exponentials, sum and quotient have relative
    /// errors of less than 8 `DD_EXP_ERROR` together, and the squares of p add up to at most 1.
    fn extended_numbers(
        &self,
        _: &ClassTables,
        _set: usize,
        _record: usize,
        u: &mut [Dd],
        error: f64,
    ) -> f64 {
        let most = u.iter().fold(f64::NEG_INFINITY, |most, u| most.max(u.hi));
        let squares = u.iter().fold(0.0, |sum, u| sum + (u.hi.abs() + most.abs()).powi(2));
        let mut sum = Dd::default();
        for u in u.iter_mut() {
            let below = u.plus(-most);
            *u = if below.hi < -700.0 { Dd::default() } else { below.exp() };
            sum = sum.plus_dd(*u);
        }
        u.iter_mut().for_each(|u| *u = u.over(sum));
        0.5 * (error + 2.0 * DD_EPSILON * libm::sqrt(squares)) + 8.0 * DD_EXP_ERROR
    }
    /// Replaces p in double-double by δ: the probability of the record's class is reduced by 1.
    fn extended_residuals(
        &self,
        records: &ClassTables,
        set: usize,
        record: usize,
        numbers: &mut [Dd],
    ) {
        let label = usize::from(records.labels(set)[record]);
        numbers[label] = numbers[label].plus(-1.0);
    }
    /// Replaces a change v of a record's logits by W v, p_k (v_k − Σ_l p_l v_l), in double-double.
    fn extended_change(&self, numbers: &[Dd], v: &mut [Dd]) {
        let products = numbers.iter().zip(v.iter()).map(|(p, v)| p.times(*v));
        let mean = products.fold(Dd::default(), Dd::plus_dd).negated();
        v.iter_mut().zip(numbers).for_each(|(v, p)| *v = p.times(v.plus_dd(mean)));
    }
    /// W_kl = p_k (1\[k = l\] − p_l) of record i.
    fn weight(&self, at: &[f64], i: usize, k: usize, l: usize) -> f64 {
        let p = &at[i * self.classes..][..self.classes];
        p[k] * (f64::from(u8::from(k == l)) - p[l])
    }
    /// Replaces changes v of the logits of all records of a set by `scale` W v.
    fn change(&self, at: &[f64], scale: f64, v: &mut [f64]) {
        for (v, p) in v.chunks_exact_mut(self.classes).zip(at.chunks_exact(self.classes)) {
            to_probability_changes(p, v);
            v.iter_mut().for_each(|change| *change *= scale);
        }
    }
    /// Replaces v, the products of a record with Θ − Θ*, by δ + W v, given p at θ*.
    fn linearised(&self, records: &ClassTables, place: RecordPlace, at: &[f64], v: &mut [f64]) {
        let p = &at[place.record * self.classes..][..self.classes];
        to_probability_changes(p, v);
        v.iter_mut().zip(p).for_each(|(v, p)| *v += p);
        v[usize::from(records.labels(place.set)[place.record])] -= 1.0;
    }
    /// log Σ_k exp(θ_kᵀx) − θ_yᵀx of each record of a set; the largest logit is subtracted first, so that no
    /// exponential overflows.
    fn losses(&self, records: &ClassTables, set: usize, theta: &[f64]) -> Vec<f64> {
        let logits = records.logits(set, theta);
        let mut losses = Vec::with_capacity(records.labels(set).len());
        for (u, label) in logits.chunks_exact(self.classes).zip(records.labels(set)) {
            let most = u.iter().fold(f64::NEG_INFINITY, |most, u| most.max(*u));
            let own = u[usize::from(*label)];
            losses.push(most - own + libm::log(fold_sum(u.len(), |k| libm::exp(u[k] - most))));
        }
        losses
    }
    /// 1 for each record of a set whose class θ predicts, else 0: the predicted class has the largest logit, and is the
    /// first of those that tie.
    fn hits(&self, records: &ClassTables, set: usize, theta: &[f64]) -> Option<Vec<f64>> {
        let logits = records.logits(set, theta);
        let mut hits = Vec::with_capacity(records.labels(set).len());
        for (u, label) in logits.chunks_exact(self.classes).zip(records.labels(set)) {
            let first = (1..u.len()).fold(0, |best, k| if u[k] > u[best] { k } else { best });
            hits.push(f64::from(u8::from(first == usize::from(*label))));
        }
        Some(hits)
    }
    /// The log-odds of each class of each record of a set, K numbers per record: u_k − log Σ_{l≠k} exp(u_l), which
    /// grows with the probability of the class and does not round to the same number where that is close to 0 or 1.
    fn class_scores(&self, records: &ClassTables, set: usize, theta: &[f64]) -> Option<Vec<f64>> {
        let logits = records.logits(set, theta);
        let mut scores = Vec::with_capacity(logits.len());
        for u in logits.chunks_exact(self.classes) {
            scores.extend((0..self.classes).map(|class| u[class] - log_sum_of_others(u, class)));
        }
        Some(scores)
    }
    /// For each record of a set the Bregman divergence ℓ(u) − ℓ(u*) − δ(u*)ᵀ(u − u*) between its logits u at θ
    /// and u* at θ*.
    fn divergences(
        &self,
        records: &ClassTables,
        set: usize,
        at: &[f64],
        [theta, star]: [&[f64]; 2],
    ) -> Vec<f64> {
        records.divergences(set, at, &difference(theta, star))
    }
    /// The factors c of the third derivatives of a set's losses at θ* along M, Σ c ⊗ x, with
    /// c_k = Σ_lm G_lm ∂²p_k/∂u_l∂u_m and G_lm = xᵀ M_lm x, where M_lm is block (l, m), of d × d, of the K·d × K·d
    /// matrix M, which need not be symmetric.
    fn third_derivatives(
        &self,
        records: &ClassTables,
        set: usize,
        at: &[f64],
        m: &Matrix,
    ) -> Vec<f64> {
        let mut factors = Vec::with_capacity(at.len());
        for (i, p) in at.chunks_exact(self.classes).enumerate() {
            let g = records.contracted(set, i, m);
            // Σ_l G_kl p_l and Σ_l p_l G_lk for each k, and then Σ_l p_l G_ll and pᵀGp.
            let right = g.apply(p);
            let left = g.transpose().apply(p);
            let diagonal = fold_sum(self.classes, |l| p[l] * g[(l, l)]);
            let square = dot(p, &right);
            for k in 0..self.classes {
                let third = g[(k, k)] - right[k] - left[k] + 2.0 * square - diagonal;
                factors.push(p[k] * third);
            }
        }
        factors
    }
}

/// The K·d × K·d matrix whose block (k, l), of d × d, is the mean of w_kl x xᵀ over the records of a set;
/// `weight(i, k, l)` is w_kl of record i. If w is `symmetric`, `weight` is asked for l ≥ k alone, and the blocks with
/// l < k are copies.
fn blocks(
    records: &ClassTables,
    set: usize,
    symmetric: bool,
    weight: impl Fn(usize, usize, usize) -> f64,
) -> Matrix {
    let classes = records.classes();
    let rows = records.rows(set);
    let d = rows.dim();
    let n = rows.len();
    let mut all = Matrix::zeros(classes * d, classes * d);
    for k in 0..classes {
        for l in if symmetric { k } else { 0 }..classes {
            let weights: Vec<f64> = (0..n).map(|i| weight(i, k, l) / n as f64).collect();
            let block = Matrix::weighted_gram(rows, &weights);
            for (i, j) in (0..d * d).map(|entry| (entry / d, entry % d)) {
                all[(k * d + i, l * d + j)] = block[(i, j)];
                if symmetric {
                    all[(l * d + i, k * d + j)] = block[(i, j)];
                }
            }
        }
    }
    all
}

/// Sums over dense records whose losses depend on K products, one for each class. What each function computes
/// is stated by [`RecordSets`].
impl RecordSets for ClassTables {
    fn classes(&self) -> usize {
        self.classes()
    }
    fn sets(&self) -> usize {
        self.sets()
    }
    fn dense_rows(&self, set: usize) -> Option<Rows<'_>> {
        Some(self.rows(set))
    }
    fn labels(&self, set: usize) -> Option<&[u8]> {
        Some(self.labels(set))
    }
    fn loss_weights(&self, set: usize) -> Option<&[f64]> {
        self.loss_weights(set)
    }
    fn with_loss_weights(self, loss_weights: Vec<Vec<f64>>) -> Self {
        self.with_loss_weights(loss_weights)
    }
    fn products(&self, set: usize, v: &[f64]) -> Vec<f64> {
        self.logits(set, v)
    }
    fn add_rows(&self, set: usize, factors: &[f64], out: &mut [f64]) {
        self.add_rows_on(InstructionSet::best(), set, factors, out);
    }
    /// xᵀ m_kl x of a record for each block (k, l), of d × d, of the K·d × K·d matrix `m`: K × K. `m` may have one
    /// row and column more, as the s of a noise map has, which count as a class whose only feature is 1: then the
    /// result is (K + 1) × (K + 1).
    fn contracted(&self, set: usize, record: usize, m: &Matrix) -> Matrix {
        let x = self.rows(set).row(record);
        let classes = self.classes();
        let d = x.len();
        let size = m.rows() - classes * d + classes;
        let mut out = Matrix::zeros(size, size);
        for i in 0..m.rows() {
            let (k, scale) = if i < classes * d { (i / d, x[i % d]) } else { (classes, 1.0) };
            let (blocks, last) = m.row(i).split_at(classes * d);
            for (l, block) in blocks.chunks_exact(d).enumerate() {
                out[(k, l)] += scale * dot(block, x);
            }
            last.iter().for_each(|last| out[(k, classes)] += scale * last);
        }
        out
    }
    /// E W ⊗ xxᵀ over a set, K·d × K·d, where `weight(i, k, l)` is entry (k, l) of the symmetric W of record i.
    fn gram(&self, set: usize, weight: impl Fn(usize, usize, usize) -> f64) -> Matrix {
        let symmetric = true;
        blocks(self, set, symmetric, weight)
    }
    /// ∇²f of the weighted mean of the losses of sets, whose weights must sum to 1, K·d × K·d, with the penalty and
    /// with all entries.
    fn mean_hessian(&self, loss: &impl RecordLoss<Self>, sets: &[SetTerm]) -> Matrix {
        let mut sum = Matrix::identity(self.classes() * self.features()).scaled(loss.l2());
        for SetTerm { set, share, at } in sets {
            sum.add(*share, &self.gram(*set, self.second_derivatives(loss, *set, at)));
        }
        sum
    }
    /// The covariance of the oracle calls of a client that holds a set, linearised at θ*, K·d × K·d, between two
    /// points Θ and Θ' with s = E (e, 1)(e', 1)ᵀ, where e = Θ − Θ* and e' = Θ' − Θ*; `at` are the set's numbers at θ*.
    /// With v = (Θ − Θ*)x, it is E (W v + δ)(W v' + δ)ᵀ ⊗ xxᵀ minus E (W v + δ) ⊗ x (E (W v' + δ) ⊗ x)ᵀ, divided by
    /// the batch size. It is linear in `s`, which need not be such a moment.
    fn noise_map(
        &self,
        loss: &impl RecordLoss<Self>,
        set: usize,
        at: &[f64],
        s: &Matrix,
    ) -> Matrix {
        let residuals = self.weighted_residuals(loss, set, at);
        let second_derivative = self.second_derivatives(loss, set, at);
        let classes = self.classes();
        let mut seconds = Vec::with_capacity(self.records(set));
        for i in 0..self.records(set) {
            // (W, δ) of record i.
            let w = Matrix::from_fn(classes, classes + 1, |k, l| match l {
                _ if l == classes => residuals[i * classes + k],
                _ => second_derivative(i, k, l),
            });
            seconds.push(w.times(&self.contracted(set, i, s)).times(&w.transpose()));
        }
        let symmetric = false;
        let second = blocks(self, set, symmetric, |i, k, l| seconds[i][(k, l)]);
        let hessian = self.gram(set, &second_derivative);
        let d = hessian.rows();
        let mut pull = vec![0.0; hessian.rows()];
        self.add_pull(set, 1.0, residuals, &mut pull);
        let field = Matrix::from_fn(d, d + 1, |i, j| if j < d { hessian[(i, j)] } else { pull[i] });
        let mean = field.times(s).times(&field.transpose());
        second.plus(-1.0, &mean).scaled(1.0 / loss.batch() as f64)
    }
    #[inline(always)]
    fn field(
        &self,
        client: usize,
        theta: &[f64],
        batch: usize,
        next_record: impl FnMut() -> usize,
        out: &mut [f64],
    ) {
        self.field(client % self.sets(), theta, batch, next_record, out);
    }
    /// field ← field + f ⊗ x of a record, where `make_factors` gets the K products (Θ − Θ*)x and replaces them by f.
    fn add_linearised(
        &self,
        place: RecordPlace,
        [theta, star]: [&[f64]; 2],
        make_factors: impl FnOnce(&mut [f64]),
        field: &mut [f64],
    ) {
        let row = self.rows(place.set).row(place.record);
        let d = row.len();
        let mut room = [0.0; MOST_CLASSES];
        let factors = &mut room[..self.classes()];
        let both = theta.chunks_exact(d).zip(star.chunks_exact(d));
        for (factor, (theta, star)) in factors.iter_mut().zip(both) {
            *factor = fold_sum(d, |j| row[j] * (theta[j] - star[j]));
        }
        make_factors(factors);
        for (factor, field) in factors.iter().zip(field.chunks_exact_mut(d)) {
            axpy(*factor, row, field);
        }
    }
    /// Takes the local steps of a cohort and returns `None`: there is a kernel for all of them, also with a proximal
    /// term or with means of several oracle calls.
    fn advance_on<'a>(
        &self,
        path: InstructionSet,
        batch: usize,
        cohort: Cohort<'a, ()>,
    ) -> Option<Cohort<'a, ()>> {
        self.advance_on(path, batch, cohort);
        None
    }
}
