//! What losses of records have in common: the mean over clients with its minimiser, and facts
//! that are computed once for each record set.

use super::minimise::{Minimiser, Objective, minimise};
use super::{Facts, Fault, once};
use crate::linalg::Matrix;
use std::sync::OnceLock;

/// Facts about one record set, each computed when it is first asked for.
#[derive(Default)]
pub struct SetFacts {
    at_optimum: OnceLock<Vec<f64>>,
    optimum: OnceLock<Vec<f64>>,
}

/// What is given of an instance beside its records.
#[derive(Clone, Debug, Default)]
pub struct Given<'a> {
    /// π_c, N numbers, if clients do not weigh the same.
    pub shares: Option<Vec<f64>>,
    /// What an earlier search found.
    pub optimum: Option<&'a Minimiser>,
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
        once(&self.set_facts(set).at_optimum, || self.at(set, self.optimum())).as_slice()
    }
    /// The minimiser of f over a set.
    fn optimum_of(&self, set: usize) -> &[f64] {
        let found = || minimise(&mut MeanLoss::new(self, [(set, 1.0)])).theta;
        once(&self.set_facts(set).optimum, found).as_slice()
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

/// θ*, the minimiser of the mean of f over sets, given with their weights. What is `known` of an
/// earlier search is taken if its error is found again to the last bit, so that it is of this
/// very function.
///
/// # Errors
/// A [`Fault`] of `l2` if Newton's method does not find it, or it is not known to within its length.
pub fn optimum(
    problem: &impl RecordLoss,
    shares: impl IntoIterator<Item = (usize, f64)>,
    known: Option<&Minimiser>,
) -> Result<Minimiser, Fault> {
    let mut mean = MeanLoss::new(problem, shares);
    let known = known.filter(|known| known.theta.len() == problem.dim());
    if let Some(known) = known.filter(|known| known.is_at(&mut mean)) {
        return Ok(known.clone());
    }
    let found = minimise(&mut mean);
    let message = "the optimum cannot be found in double precision; it may be too small, or features too large";
    if found.is_known() { Ok(found) } else { Err(Fault::new("l2", message)) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::dot;
    use crate::sample;

    #[test]
    fn a_known_optimum_is_taken_if_it_is_of_this_very_function() {
        let problem = sample::weighted_logistic();
        let shares = || (0..problem.clients()).map(|client| (client, problem.share(client)));
        let found = optimum(&problem, shares(), None).unwrap();
        // Any point that comes with its error is taken without a search.
        let theta = vec![0.5; problem.dim()];
        let gradient = MeanLoss::new(&problem, shares()).gradient(&theta);
        let error = libm::sqrt(dot(&gradient, &gradient)) / problem.l2();
        let point = Minimiser { theta, error };
        assert_eq!(optimum(&problem, shares(), Some(&point)).unwrap(), point);
        for stale in [
            Minimiser { error: error + 1e-12, ..point.clone() },
            Minimiser { theta: vec![0.25; problem.dim()], ..point.clone() },
            Minimiser { theta: vec![0.5; problem.dim() + 1], ..point.clone() },
        ] {
            assert_eq!(optimum(&problem, shares(), Some(&stale)).unwrap(), found);
        }
    }
}
