//! What losses of records have in common: the mean over clients with its minimiser, and facts
//! that are computed once for each record set.

use super::minimise::{Minimiser, Objective, minimise};
use super::{Facts, Fault};
use crate::linalg::Matrix;
use std::sync::OnceLock;

/// Facts about one record set, each computed when it is first asked for.
#[derive(Default)]
pub struct SetFacts {
    at_optimum: OnceLock<Vec<f64>>,
    optimum: OnceLock<Vec<f64>>,
}

/// A record set in a mean: its number, its weight, and its records at a point
/// ([`RecordLoss::at`]).
pub struct SetAt {
    pub set: usize,
    pub share: f64,
    pub at: Vec<f64>,
}

/// A problem whose fields are gradients of f(θ) = E ℓ(θ; record) + λ/2 ‖θ‖² over the record sets
/// that its clients hold.
pub trait RecordLoss: Facts + Sized {
    /// λ.
    fn l2(&self) -> f64;
    /// The set that a client holds.
    fn set_of(&self, client: usize) -> usize {
        client
    }
    /// What is computed of a set only once.
    fn set_facts(&self, set: usize) -> &SetFacts;
    /// The numbers of a set's records from which derivatives at θ are sums, as many per record.
    fn at(&self, set: usize, theta: &[f64]) -> Vec<f64>;
    /// out ← out + share E ∇²ℓ v of a set.
    fn add_product(&self, set: usize, share: f64, at: &[f64], v: &[f64], out: &mut [f64]);
    /// The mean of ∇f over sets at θ.
    fn mean_gradient(&self, sets: &[SetAt], theta: &[f64]) -> Vec<f64>;
    /// The mean of ∇²f over sets; see [`Objective::hessian`].
    fn mean_hessian(&self, sets: &[SetAt]) -> Matrix;
    /// [`Objective::most_factored`].
    fn most_factored(&self) -> usize {
        super::minimise::MOST_FACTORED
    }

    /// [`RecordLoss::at`] θ*.
    fn at_optimum(&self, set: usize) -> &[f64] {
        self.set_facts(set).at_optimum.get_or_init(|| self.at(set, self.optimum()))
    }
    /// The minimiser of f over a set.
    fn optimum_of(&self, set: usize) -> &[f64] {
        let found = || minimise(&mut MeanLoss::new(self, [(set, 1.0)])).theta;
        self.set_facts(set).optimum.get_or_init(found)
    }
    /// [`Facts::jacobian_product`].
    fn hessian_product(&self, weights: &[(usize, f64)], x: &[f64], out: &mut [f64]) {
        let scale = self.l2() * weights.iter().fold(0.0, |sum, (_, weight)| sum + weight);
        out.iter_mut().zip(x).for_each(|(out, x)| *out = scale * x);
        for (client, weight) in weights {
            let set = self.set_of(*client);
            self.add_product(set, *weight, self.at_optimum(set), x, out);
        }
    }
}

/// θ*, the minimiser of the mean of f over sets, given with their weights.
///
/// # Errors
/// A [`Fault`] of `l2` if Newton's method does not find it.
pub fn optimum(
    problem: &impl RecordLoss,
    shares: impl IntoIterator<Item = (usize, f64)>,
) -> Result<Minimiser, Fault> {
    let found = minimise(&mut MeanLoss::new(problem, shares));
    let message = "the optimum cannot be found in double precision; is it too small?";
    if found.error.is_finite() { Ok(found) } else { Err(Fault::new("l2", message)) }
}

/// The mean of f over sets.
struct MeanLoss<'a, L> {
    problem: &'a L,
    /// At the point of the last gradient.
    sets: Vec<SetAt>,
}

impl<'a, L> MeanLoss<'a, L> {
    fn new(problem: &'a L, shares: impl IntoIterator<Item = (usize, f64)>) -> Self {
        let sets = shares.into_iter().map(|(set, share)| SetAt { set, share, at: Vec::new() });
        Self { problem, sets: sets.collect() }
    }
}

impl<L: RecordLoss> Objective for MeanLoss<'_, L> {
    fn dim(&self) -> usize {
        self.problem.dim()
    }
    fn convexity(&self) -> f64 {
        self.problem.l2()
    }
    fn gradient(&mut self, theta: &[f64]) -> Vec<f64> {
        self.sets.iter_mut().for_each(|of| of.at = self.problem.at(of.set, theta));
        self.problem.mean_gradient(&self.sets, theta)
    }
    fn product(&self, v: &[f64]) -> Vec<f64> {
        let mut mean: Vec<f64> = v.iter().map(|v| self.problem.l2() * v).collect();
        for SetAt { set, share, at } in &self.sets {
            self.problem.add_product(*set, *share, at, v, &mut mean);
        }
        mean
    }
    fn hessian(&self) -> Matrix {
        self.problem.mean_hessian(&self.sets)
    }
    fn most_factored(&self) -> usize {
        self.problem.most_factored()
    }
}
