//! The loss of logistic regression.

use crate::kernel::exp::sigmoid;
use crate::kernel::records::{Link, RecordTables};
use crate::linalg::{DD_EPSILON, DD_EXP_ERROR, Dd, Matrix};
use crate::problem::records::{RecordLoss, RecordPlace, RecordProblem, RecordSets};

pub use crate::kernel::LogisticLoss as Loss;

/// An instance on dense records.
pub type Logistic = RecordProblem<Loss, RecordTables>;

/// Dense rows y x of d numbers, in sets.
pub fn dense(d: usize, loss: &Loss, sets: &[Vec<f64>]) -> RecordTables {
    RecordTables::new(d, loss.l2, Link::Logistic { margin: loss.margin }, sets)
}

/// The numbers of a record y x are s = σ(m − y xᵀθ), and δ = −s.
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
    fn record_numbers(&self, records: &S, set: usize, theta: &[f64]) -> Vec<f64> {
        let mut weights = records.products(set, theta);
        weights.iter_mut().for_each(|along| *along = sigmoid(self.margin - *along));
        weights
    }
    fn residuals(&self, _records: &S, _set: usize, at: &[f64]) -> Vec<f64> {
        at.iter().map(|s| -s).collect()
    }
    /// The error of σ is at most a quarter of the error of m − u, and the error of its own operations.
    fn extended_numbers(&self, _: &S, _set: usize, _: usize, u: &mut [Dd], error: f64) -> f64 {
        let z = u[0].negated().plus(self.margin);
        let rounding = DD_EPSILON * (self.margin.abs() + u[0].hi.abs());
        u[0] = extended_sigmoid(z);
        0.25 * (error + 2.0 * rounding) + 4.0 * DD_EXP_ERROR
    }
    fn extended_residuals(&self, _: &S, _set: usize, _record: usize, numbers: &mut [Dd]) {
        numbers[0] = numbers[0].negated();
    }
    fn extended_change(&self, numbers: &[Dd], v: &mut [Dd]) {
        let s = numbers[0];
        v[0] = s.times(s.negated().plus(1.0)).times(v[0]);
    }
    fn weight(&self, at: &[f64], i: usize, _k: usize, _l: usize) -> f64 {
        at[i] * (1.0 - at[i])
    }
    fn linearised(&self, _records: &S, place: RecordPlace, at: &[f64], v: &mut [f64]) {
        let s = at[place.record];
        v[0] = s * (1.0 - s) * v[0] - s;
    }
    /// The sum of log(1 + exp(m − y xᵀθ)).
    fn losses(&self, records: &S, set: usize, theta: &[f64]) -> f64 {
        let along = records.products(set, theta);
        along.iter().fold(0.0, |sum, along| sum + softplus(self.margin - along))
    }
    fn hits(&self, records: &S, set: usize, theta: &[f64]) -> Option<f64> {
        let along = records.products(set, theta);
        Some(along.into_iter().fold(0.0, |sum, along| sum + score_prediction(along)))
    }
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
    /// −E s(1 − s)(1 − 2s)(xᵀMx) y x.
    fn curvature(&self, records: &S, set: usize, at: &[f64], m: &Matrix) -> Vec<f64> {
        let n = at.len() as f64;
        let mut factors = Vec::with_capacity(at.len());
        for (record, s) in at.iter().enumerate() {
            let third = s * (1.0 - s) * (1.0 - 2.0 * s);
            factors.push(-third * records.contracted(set, record, m)[(0, 0)] / n);
        }
        let mut sum = vec![0.0; m.rows()];
        records.add_rows(set, &factors, &mut sum);
        sum
    }
}

/// softplus(u) − softplus(v) − σ(v)(u − v), 0 or more, to a few ulps also
/// where u is close to v.
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

/// σ(z) in double-double, from e^−|z|, which is taken to be 0 below e^−700.
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

/// 1 if a record's class is predicted and 0 if it is not, from `along` = y xᵀθ; half on the boundary.
fn score_prediction(along: f64) -> f64 {
    if along > 0.0 {
        1.0
    } else if along == 0.0 {
        0.5
    } else {
        0.0
    }
}
