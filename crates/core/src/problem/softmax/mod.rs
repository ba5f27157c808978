//! Softmax regression with K classes, on a user's records ([`dataset`]) or on those of
//! Li et al. 2020 ([`synthetic`]).
//!
//! f_c(Θ) = E \[log Σ_k exp(θ_kᵀx) − θ_yᵀx\] + λ/2 ‖Θ‖² over client c's records (x, y), with
//! Θ of K × d: θ has K·d numbers, one class after the other. The oracle draws a batch of records
//! with replacement; [`crate::kernel::softmax`] states its operations and their order.

pub mod dataset;
pub mod synthetic;

use super::minimise::Minimiser;
use super::record_loss::{self, RecordLoss, SetAt, SetFacts};
use super::{DrawSmoothness, Facts, Fault, Given, Problem, RecordSizes, RecordsOf};
use crate::kernel::softmax::{ClassTables, MOST_CLASSES};
use crate::kernel::{
    Cohort, InstructionSet, Proximal, axpy, difference, dot, fold_sum, squared_distance,
};
use crate::linalg::Matrix;
use crate::rng::Stream;

/// An instance.
pub struct Softmax {
    /// d, the number of features.
    features: usize,
    /// λ.
    l2: f64,
    batch: usize,
    /// Client c holds set c.
    tables: ClassTables,
    held: Vec<SetFacts>,
    /// π_c, if clients do not weigh the same.
    client_shares: Option<Vec<f64>>,
    /// The records of the test set, if there is one.
    test: Option<ClassTables>,
    optimum: Minimiser,
}

/// Rows of d numbers, and their classes.
pub type ClassRecords = (Vec<f64>, Vec<u8>);

impl Softmax {
    /// The instance in which client c holds set c of the records (rows of d numbers, and their
    /// classes), under λ, with what else is given.
    ///
    /// # Errors
    /// A [`Fault`] of `l2` if Newton's method finds no optimum.
    pub fn new(
        [features, classes, batch]: [usize; 3],
        l2: f64,
        records: &[ClassRecords],
        Given { shares: client_shares, optimum: known }: Given<'_>,
    ) -> Result<Self, Fault> {
        let tables = ClassTables::new(features, classes, l2, records);
        let held = records.iter().map(|_| SetFacts::default()).collect();
        let (test, optimum) = (None, Minimiser::unknown(features * classes));
        let mut instance = Self { features, l2, batch, tables, held, client_shares, test, optimum };
        instance.optimum = record_loss::optimum(&instance, instance.shares(), known)?;
        Ok(instance)
    }

    /// The same instance with a test set.
    pub fn with_test(self, records: ClassRecords) -> Self {
        let test = ClassTables::new(self.features, self.classes(), self.l2, &[records]);
        Self { test: Some(test), ..self }
    }

    /// K.
    pub fn classes(&self) -> usize {
        self.tables.classes()
    }

    /// [`Problem::advance`] on a chosen instruction set, of which the bits are independent.
    pub fn advance_on(&self, path: InstructionSet, cohort: Cohort<'_, ()>) {
        self.tables.advance_on(path, self.batch, cohort, None);
    }

    /// The clients and their weights.
    fn shares(&self) -> impl Iterator<Item = (usize, f64)> {
        (0..self.held.len()).map(|client| (client, self.share(client)))
    }

    /// The mean of a value of a record's logits and class: over the clients' records, by their
    /// shares, or over the test set; `None` if there is none.
    fn mean_over(
        &self,
        of: RecordsOf,
        theta: &[f64],
        value: impl Fn(&[f64], usize) -> f64,
    ) -> Option<f64> {
        let mean = |tables: &ClassTables, set: usize| {
            let (logits, labels) = (tables.logits(set, theta), tables.labels(set));
            let records = logits.chunks_exact(self.classes()).zip(labels);
            let sum = records.fold(0.0, |sum, (u, label)| sum + value(u, usize::from(*label)));
            sum / labels.len() as f64
        };
        match of {
            RecordsOf::Test => self.test.as_ref().map(|test| mean(test, 0)),
            RecordsOf::Clients => {
                let own = |sum, (client, share)| sum + share * mean(&self.tables, client);
                Some(self.shares().fold(0.0, own))
            }
        }
    }

    /// How many records a client holds.
    fn records(&self, client: usize) -> usize {
        self.tables.labels(client).len()
    }

    /// p − 1\[y = k\], K numbers per record, from p.
    fn residuals(&self, client: usize, probabilities: &[f64]) -> Vec<f64> {
        let mut residuals = probabilities.to_vec();
        let records = residuals.chunks_exact_mut(self.classes());
        for (residuals, label) in records.zip(self.tables.labels(client)) {
            residuals[usize::from(*label)] -= 1.0;
        }
        residuals
    }

    /// out ← out + scale E (p − 1\[y\]) ⊗ x, the gradient without the penalty, from p.
    fn add_pull(&self, client: usize, probabilities: &[f64], scale: f64, out: &mut [f64]) {
        let mut factors = self.residuals(client, probabilities);
        let scale = scale / self.records(client) as f64;
        factors.iter_mut().for_each(|factor| *factor *= scale);
        self.tables.add_rows(client, &factors, out);
    }

    /// The matrix of K × K blocks E w_kl x xᵀ, each of d × d; `weight(i, k, l)` is w_kl of
    /// record i. If w is symmetric, blocks below the diagonal are copied.
    fn blocks(
        &self,
        client: usize,
        symmetric: bool,
        weight: impl Fn(usize, usize, usize) -> f64,
    ) -> Matrix {
        let (classes, d, n) = (self.classes(), self.features, self.records(client));
        let mut all = Matrix::zeros(classes * d, classes * d);
        for k in 0..classes {
            for l in if symmetric { k } else { 0 }..classes {
                let weights: Vec<f64> = (0..n).map(|i| weight(i, k, l) / n as f64).collect();
                let block = Matrix::weighted_gram(self.tables.rows(client), &weights);
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

    /// ∇²f of a client without the penalty, E (diag(p) − ppᵀ) ⊗ xxᵀ, from p.
    fn hessian(&self, client: usize, probabilities: &[f64]) -> Matrix {
        let p = |i: usize| &probabilities[i * self.classes()..][..self.classes()];
        self.blocks(client, true, |i, k, l| p(i)[k] * (f64::from(u8::from(k == l)) - p(i)[l]))
    }

    /// The matrix of (x ⊗ I)ᵀ s (x ⊗ I): each d × d block of `s` becomes xᵀ(block)x, K × K. A
    /// row and a column of `s` beyond the K·d are kept.
    fn contracted(&self, s: &Matrix, x: &[f64]) -> Matrix {
        let (classes, d) = (self.classes(), self.features);
        let size = s.rows() - classes * d + classes;
        let mut out = Matrix::zeros(size, size);
        for i in 0..s.rows() {
            let (k, scale) = if i < classes * d { (i / d, x[i % d]) } else { (classes, 1.0) };
            let (blocks, last) = s.row(i).split_at(classes * d);
            for (l, block) in blocks.chunks_exact(d).enumerate() {
                out[(k, l)] += scale * dot(block, x);
            }
            last.iter().for_each(|last| out[(k, classes)] += scale * last);
        }
        out
    }
}

impl RecordLoss for Softmax {
    fn l2(&self) -> f64 {
        self.l2
    }
    fn set_facts(&self, set: usize) -> &SetFacts {
        &self.held[set]
    }
    /// The probabilities p of the classes, K numbers per record.
    fn at(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        self.tables.probabilities(set, theta)
    }
    fn mean_gradient(&self, sets: &[SetAt], theta: &[f64]) -> Vec<f64> {
        let mut mean: Vec<f64> = theta.iter().map(|theta| self.l2 * theta).collect();
        sets.iter().for_each(|of| self.add_pull(of.set, &of.at, of.share, &mut mean));
        mean
    }
    /// share E ((diag(p) − ppᵀ) Vx) ⊗ x.
    fn add_product(&self, set: usize, share: f64, p: &[f64], v: &[f64], out: &mut [f64]) {
        let (scale, classes) = (share / self.records(set) as f64, self.classes());
        let mut along = self.tables.logits(set, v);
        for (along, p) in along.chunks_exact_mut(classes).zip(p.chunks_exact(classes)) {
            changes(p, along);
            along.iter_mut().for_each(|change| *change *= scale);
        }
        self.tables.add_rows(set, &along, out);
    }
    fn mean_hessian(&self, sets: &[SetAt]) -> Matrix {
        let penalty = Matrix::identity(self.dim()).scaled(self.l2);
        sets.iter().fold(penalty, |mut sum, of| {
            sum.add(of.share, &self.hessian(of.set, &of.at));
            sum
        })
    }
    /// A product costs 4 d K numbers per record, and the Hessian (d K)²/2.
    fn most_factored(&self) -> usize {
        100
    }
}

/// Replaces changes v of the logits by those of the probabilities to first order,
/// p_k (v_k − Σ_l p_l v_l).
fn changes(p: &[f64], v: &mut [f64]) {
    let mean = dot(p, v);
    v.iter_mut().zip(p).for_each(|(v, p)| *v = p * (*v - mean));
}

impl Facts for Softmax {
    fn clients(&self) -> usize {
        self.held.len()
    }
    fn unequal_shares(&self) -> Option<&[f64]> {
        self.client_shares.as_deref()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum.theta
    }
    fn optimum_error(&self) -> Option<f64> {
        Some(self.optimum.error)
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        self.optimum_of(client)
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        field.iter_mut().zip(theta).for_each(|(field, theta)| *field = self.l2 * theta);
        self.add_pull(client, &self.tables.probabilities(client, theta), 1.0, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        let hessian = self.hessian(client, self.at_optimum(client));
        hessian.plus(self.l2, &Matrix::identity(self.dim()))
    }
    fn symmetric(&self) -> bool {
        true
    }
    fn jacobian_product(&self, weights: &[(usize, f64)], _: bool, x: &[f64], out: &mut [f64]) {
        self.hessian_product(weights, x, out);
    }
    fn product_effort(&self) -> f64 {
        let records = (0..self.held.len()).map(|client| self.records(client)).sum::<usize>();
        (2 * records * self.dim()) as f64
    }
    /// tr E δδᵀ ⊗ xxᵀ is E ‖δ‖² ‖x‖².
    fn noise_trace(&self, client: usize) -> f64 {
        let p = self.at_optimum(client);
        let residuals = self.residuals(client, p);
        let mut mean = vec![0.0; self.dim()];
        self.add_pull(client, p, 1.0, &mut mean);
        let records = self.tables.rows(client).iter().zip(residuals.chunks_exact(self.classes()));
        let second = records.fold(0.0, |sum, (x, delta)| sum + dot(x, x) * dot(delta, delta));
        (second / self.records(client) as f64 - dot(&mean, &mean)) / self.batch as f64
    }
    /// Each record's field is (p − 1\[y\]) ⊗ x; λ adds no noise.
    fn noise_covariance(&self, client: usize) -> Matrix {
        let p = self.at_optimum(client);
        let (residuals, classes) = (self.residuals(client, p), self.classes());
        let own = |i: usize| &residuals[i * classes..][..classes];
        let mut second = self.blocks(client, true, |i, k, l| own(i)[k] * own(i)[l]);
        let mut mean = vec![0.0; self.dim()];
        self.add_pull(client, p, 1.0, &mut mean);
        second.add_outer(-1.0, &mean, &mean);
        second.scaled(1.0 / self.batch as f64)
    }
    /// A record's linearised field is δ ⊗ x with δ = (diag(p) − ppᵀ) E x + p − 1\[y\], where E is
    /// Θ − Θ* and p that of θ*; so E δδ'ᵀ ⊗ xxᵀ minus the same of the means. λ adds no noise.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let (p, classes) = (self.at_optimum(client), self.classes());
        let residuals = self.residuals(client, p);
        let second = |(i, x): (usize, &[f64])| {
            let p = &p[i * classes..][..classes];
            let delta = Matrix::from_fn(classes, classes + 1, |k, l| match l {
                _ if l == classes => residuals[i * classes + k],
                _ => p[k] * (f64::from(u8::from(k == l)) - p[l]),
            });
            delta.times(&self.contracted(s, x)).times(&delta.transpose())
        };
        let seconds: Vec<Matrix> =
            self.tables.rows(client).iter().enumerate().map(second).collect();
        let second = self.blocks(client, false, |i, k, l| seconds[i][(k, l)]);
        let (hessian, d) = (self.hessian(client, p), self.dim());
        let mut pull = vec![0.0; d];
        self.add_pull(client, p, 1.0, &mut pull);
        let mean = Matrix::from_fn(d, d + 1, |i, j| if j < d { hessian[(i, j)] } else { pull[i] });
        let mean = mean.times(s).times(&mean.transpose());
        Some(second.plus(-1.0, &mean).scaled(1.0 / self.batch as f64))
    }
    fn convexity(&self) -> Option<f64> {
        Some(self.l2)
    }
    /// The eigenvalues of diag(p) − ppᵀ are at most 1/2.
    fn draw_smoothness(&self) -> DrawSmoothness {
        let rows = (0..self.held.len()).flat_map(|client| self.tables.rows(client).iter());
        let longest = rows.map(|x| dot(x, x)).fold(0.0, f64::max);
        DrawSmoothness::AtMost(self.l2 + longest / 2.0)
    }
    /// E c ⊗ x with c_k = Σ_lm G_lm ∂²p_k/∂u_l∂u_m and G_lm = xᵀ M_lm x.
    fn curvature(&self, client: usize, m: &Matrix) -> Option<Vec<f64>> {
        let (p, classes) = (self.at_optimum(client), self.classes());
        let n = self.records(client) as f64;
        let mut factors = Vec::with_capacity(p.len());
        for (x, p) in self.tables.rows(client).iter().zip(p.chunks_exact(classes)) {
            let g = self.contracted(m, x);
            // Σ_l p_l (G_lk + G_kl), Σ_l p_l G_ll and pᵀGp.
            let (right, left) = (g.apply(p), g.transpose().apply(p));
            let diagonal = fold_sum(classes, |l| p[l] * g[(l, l)]);
            let square = dot(p, &right);
            let third = |k: usize| g[(k, k)] - right[k] - left[k] + 2.0 * square - diagonal;
            factors.extend((0..classes).map(|k| p[k] * third(k) / n));
        }
        let mut sum = vec![0.0; self.dim()];
        self.tables.add_rows(client, &factors, &mut sum);
        Some(sum)
    }
    fn draws(&self) -> usize {
        self.held_records().map_or(1, |held| held.largest)
    }
    fn linear(&self) -> bool {
        false
    }
    fn batch(&self) -> u64 {
        self.batch as u64
    }
    /// The mean of log Σ_k exp(θ_kᵀx) − θ_yᵀx.
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, theta, |u, label| {
            let most = u.iter().fold(f64::NEG_INFINITY, |most, u| most.max(*u));
            most - u[label] + libm::log(fold_sum(u.len(), |k| libm::exp(u[k] - most)))
        })
    }
    /// The share of records whose class has the largest logit, the first of those that tie.
    fn accuracy(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, theta, |u, label| {
            let first = (1..u.len()).fold(0, |best, k| if u[k] > u[best] { k } else { best });
            f64::from(u8::from(first == label))
        })
    }
    /// The mean of Bregman divergences from θ*, where the gradient is 0, so that there is no
    /// cancellation close to θ*.
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        let apart = difference(theta, self.optimum());
        let mut gap = 0.5 * self.l2 * squared_distance(theta, self.optimum());
        for (client, share) in self.shares() {
            let weight = share / self.records(client) as f64;
            let divergences = self.tables.divergences(client, self.at_optimum(client), &apart);
            divergences.iter().for_each(|divergence| gap += weight * divergence);
        }
        Some(gap)
    }
}

impl Problem for Softmax {
    type State = ();

    #[inline(always)]
    fn oracle(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        self.tables.field(client, theta, self.batch, |records| rng.index(records), field);
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        self.advance_on(InstructionSet::best(), cohort);
    }

    fn advance_extended(&self, cohort: Cohort<'_, ()>, proximal: Proximal<'_>) {
        self.tables.advance_on(InstructionSet::best(), self.batch, cohort, Some(proximal));
    }

    fn held_records(&self) -> Option<RecordSizes> {
        let counts = (0..self.held.len()).map(|client| self.records(client));
        Some(RecordSizes::of(self.features, counts))
    }

    fn has_twin(&self) -> bool {
        true
    }

    /// p(u) ≈ p + (diag(p) − ppᵀ)(u − u*) with p = p(u*), record by record.
    fn linearised(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        let (d, classes) = (self.features, self.classes());
        field.iter_mut().zip(theta).for_each(|(field, theta)| *field = self.l2 * theta);
        for _ in 0..self.batch {
            let record = rng.index(self.records(client));
            let row = self.tables.rows(client).row(record);
            let p = &self.at_optimum(client)[record * classes..][..classes];
            let mut factors = [0.0; MOST_CLASSES];
            let factors = &mut factors[..classes];
            let both = theta.chunks_exact(d).zip(self.optimum().chunks_exact(d));
            for (factor, (theta, star)) in factors.iter_mut().zip(both) {
                *factor = fold_sum(d, |j| row[j] * (theta[j] - star[j]));
            }
            changes(p, factors);
            factors.iter_mut().zip(p).for_each(|(factor, p)| *factor += p);
            factors[usize::from(self.tables.labels(client)[record])] -= 1.0;
            for (factor, field) in factors.iter().zip(field.chunks_exact_mut(d)) {
                axpy(factor / self.batch as f64, row, field);
            }
        }
    }
}

#[cfg(test)]
mod tests;
