//! The loss of logistic regression.
//!
//! A *set* is the records that a client holds; client c holds set number c modulo the number of sets.

use crate::kernel::exp::sigmoid;
use crate::kernel::records::{Link, RecordTables};
use crate::linalg::{DD_EPSILON, DD_EXP_ERROR, Dd, Matrix};
use crate::problem::records::{RecordLoss, RecordPlace, RecordProblem, RecordSets};

pub use crate::kernel::LogisticLoss as Loss;

/// An instance of logistic regression on dense records.
pub type Logistic = RecordProblem<Loss, RecordTables>;

/// The storage of dense records for this loss. Each set is given as its rows y x of d numbers, one after the
/// other, where y is the label, 1 or −1: this loss needs x and y by their product alone. There must be a set, and each
/// must have a record. [`RecordTables::with_labels`] adds the labels, which some metrics need.
pub fn dense_tables(d: usize, loss: &Loss, sets: &[Vec<f64>]) -> RecordTables {
    RecordTables::new(d, loss.l2, Link::Logistic { margin: loss.margin }, sets)
}

/// The class of a record by its label y: 1 if y is 1, and 0 if it is −1.
pub(super) fn class_of_label(label: f64) -> u8 {
    u8::from(label > 0.0)
}

/// The loss depends on the product u = y xᵀθ of a stored row y x with θ, and is ℓ(u) = log(1 + exp(m − u)). The
/// number that is kept of a record at a point θ (`at`, one per record) is s = σ(m − u). With it the residual
/// δ = ∂ℓ/∂u is −s and the weight W = ∂²ℓ/∂u² is s(1 − s).
impl<S: RecordSets> RecordLoss<S> for Loss {
    /// σ' is at most 1/4.
    const LARGEST_WEIGHT: f64 = 0.25;
    /// σ'' = σ'(1 − 2σ).
    const SELF_CONCORDANCE: f64 = 1.0;
    /// |σ''| is at most 1/(6√3).
    const INVERSE_THIRD: Option<f64> = Some(6.0 * 1.732_050_807_568_877_2);
    const SHARES_FIRST: bool = true;

    fn l2(&self) -> f64 {
        self.l2
    }
    fn batch(&self) -> usize {
        self.batch
    }
    /// s = σ(m − y xᵀθ) of each record of a set at θ.
    fn record_numbers(&self, records: &S, set: usize, theta: &[f64]) -> Vec<f64> {
        let mut numbers = records.products(set, theta);
        numbers.iter_mut().for_each(|along| *along = sigmoid(self.margin - *along));
        numbers
    }
    /// δ of each record of a set: −s, where `at` are the s.
    fn residuals(&self, _records: &S, _set: usize, at: &[f64]) -> Vec<f64> {
        at.iter().map(|s| -s).collect()
    }
    /// Replaces u of a record in double-double by s = σ(m − u), and returns a bound on the error of s, if the error
    /// of u is at most `error`: a quarter of the error of m − u, since σ' is at most 1/4, and the error of σ's own
    /// operations.
    fn extended_numbers(&self, _: &S, _set: usize, _: usize, u: &mut [Dd], error: f64) -> f64 {
        let z = u[0].negated().plus(self.margin);
        let rounding = DD_EPSILON * (self.margin.abs() + u[0].hi.abs());
        u[0] = extended_sigmoid(z);
        0.25 * (error + 2.0 * rounding) + 4.0 * DD_EXP_ERROR
    }
    fn extended_residuals(&self, _: &S, _set: usize, _record: usize, numbers: &mut [Dd]) {
        numbers[0] = numbers[0].negated();
    }
    /// Replaces a change v of u by W v = s(1 − s)v in double-double.
    fn extended_change(&self, numbers: &[Dd], v: &mut [Dd]) {
        let s = numbers[0];
        v[0] = s.times(s.negated().plus(1.0)).times(v[0]);
    }
    fn weight(&self, at: &[f64], i: usize, _k: usize, _l: usize) -> f64 {
        at[i] * (1.0 - at[i])
    }
    /// Replaces v, the product of a record with θ − θ*, by δ + W v at θ*, where `at` are the set's s.
    fn linearised(&self, _records: &S, place: RecordPlace, at: &[f64], v: &mut [f64]) {
        let s = at[place.record];
        v[0] = s * (1.0 - s) * v[0] - s;
    }
    /// log(1 + exp(m − y xᵀθ)) of each record of a set.
    fn losses(&self, records: &S, set: usize, theta: &[f64]) -> Vec<f64> {
        let mut losses = records.products(set, theta);
        losses.iter_mut().for_each(|along| *along = softplus(self.margin - *along));
        losses
    }
    /// How much each record of a set counts in the accuracy; a record on the boundary counts half.
    fn hits(&self, records: &S, set: usize, theta: &[f64]) -> Option<Vec<f64>> {
        Some(records.products(set, theta).into_iter().map(score_prediction).collect())
    }
    /// xᵀθ of each record of a set, which is y times the product of its stored row y x: the log-odds of class 1.
    fn class_scores(&self, records: &S, set: usize, theta: &[f64]) -> Option<Vec<f64>> {
        let labels = records.labels(set)?;
        let mut scores = records.products(set, theta);
        for (score, label) in scores.iter_mut().zip(labels) {
            if *label == 0 {
                *score = -*score;
            }
        }
        Some(scores)
    }
    /// For each record of a set the Bregman divergence ℓ(u) − ℓ(u*) − ℓ'(u*)(u − u*) between its products u with θ
    /// and u* with θ*.
    fn divergences(
        &self,
        records: &S,
        set: usize,
        _at: &[f64],
        [theta, star]: [&[f64]; 2],
    ) -> Vec<f64> {
        let pairs = records.products(set, theta).into_iter().zip(records.products(set, star));
        pairs.map(|(here, there)| divergence(self.margin - here, self.margin - there)).collect()
    }
    /// The factors of the third derivatives of a set's losses at θ* along M, d × d: −s(1 − s)(1 − 2s)(xᵀMx), where `at`
    /// are the set's s at θ*.
    fn third_derivatives(&self, records: &S, set: usize, at: &[f64], m: &Matrix) -> Vec<f64> {
        let mut factors = Vec::with_capacity(at.len());
        for (record, s) in at.iter().enumerate() {
            let third = s * (1.0 - s) * (1.0 - 2.0 * s);
            factors.push(-third * records.contracted(set, record, m)[(0, 0)]);
        }
        factors
    }
}

/// The Bregman divergence of softplus(u) = log(1 + eᵘ), softplus(u) − softplus(v) − σ(v)(u − v), which is 0 or
/// more. It has a relative error of a few ulps also where u is close to v and the difference would cancel. With
/// u = m − y xᵀθ and v = m − y xᵀθ*, f(θ) − f(θ*) of logistic regression is a mean of it plus λ/2 ‖θ − θ*‖².
pub(super) fn divergence(u: f64, v: f64) -> f64 {
    let s = sigmoid(v);
    let step = u - v;
    if step.abs() < 1e-2 {
        // Taylor's series of softplus at v, from its second derivative on.
        let w = s * (1.0 - s);
        let third = w * (1.0 - 2.0 * s);
        let fourth = w * (1.0 - 6.0 * w);
        let fifth = third * (1.0 - 12.0 * w);
        let sixth = w * (1.0 - 30.0 * w + 120.0 * w * w);
        let tail = fifth / 120.0 + step * sixth / 720.0;
        return step
            * step
            * (w / 2.0 + step * (third / 6.0 + step * (fourth / 24.0 + step * tail)));
    }
    softplus(u) - softplus(v) - s * step
}

/// σ(z) in double-double, from e^−|z|, which is taken to be 0 below e^−700, where [`Dd::exp`] ends.
fn extended_sigmoid(z: Dd) -> Dd {
    let falling = if z.hi < 0.0 { z } else { z.negated() };
    let power = if falling.hi < -700.0 { Dd::default() } else { falling.exp() };
    let above = if z.hi < 0.0 { power } else { Dd::from(1.0) };
    above.over(power.plus(1.0))
}

/// log(1 + eᵘ), without overflow for large u.
fn softplus(u: f64) -> f64 {
    u.max(0.0) + libm::log1p(libm::exp(-u.abs()))
}

/// How much a record counts in the accuracy, from `along` = y xᵀθ: 1 if its class is predicted, 0 if it is not,
/// and half on the boundary of the classes.
fn score_prediction(along: f64) -> f64 {
    if along > 0.0 {
        1.0
    } else if along == 0.0 {
        0.5
    } else {
        0.0
    }
}
