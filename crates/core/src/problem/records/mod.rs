//! Problems whose losses are means over records: f_c(θ) = E ℓ(θ; record) + λ/2 ‖θ‖² over the
//! records that client c holds. The oracle draws a batch of records with replacement.
//!
//! A loss depends on θ through the products of a record x with K rows of θ (K is 1 but for
//! softmax regression). So a problem is a pair: a [`RecordLoss`] is a function of the products of
//! one record, and [`RecordSets`] sum over records.
//!
//! *Invariant*: d × d matrices are made only by facts that are such matrices, and by the search
//! for an optimum in few unknowns.

mod dense;
mod loss;
mod optimum_bound;

use super::affine::{Affine, half_square};
use super::minimise::{Minimiser, Objective, OptimumSearch, factored_step, minimise};
use super::{DrawSmoothness, Draws, Facts, Fault, Problem, RecordSizes, RecordsOf, generic, once};
use crate::kernel::records::Tangent;
use crate::kernel::{Cohort, InstructionSet, SparseRecords, squared_distance};
use crate::linalg::{Matrix, solve};
pub use loss::{RecordLoss, RecordSets, SetTerm};
use std::sync::OnceLock;

/// Facts about one record set, each computed when it is first asked for.
#[derive(Default)]
struct SetFacts {
    /// [`RecordLoss::record_numbers`] at θ*.
    at_optimum: OnceLock<Vec<f64>>,
    optimum: OnceLock<Vec<f64>>,
}

/// What is given of an instance in addition to its loss and its records.
#[derive(Clone, Debug, Default)]
pub struct InstanceInputs<'a> {
    /// N, if it is not the number of record sets.
    pub clients: Option<usize>,
    /// π_c, N numbers, if clients do not weigh the same; then each holds its own set.
    pub shares: Option<Vec<f64>>,
    /// How θ* is found where it has no closed form.
    pub optimum: OptimumSearch<'a>,
}

/// An instance: a loss, and the records that clients hold.
pub struct RecordProblem<L, S> {
    pub(super) loss: L,
    pub(super) records: S,
    clients: usize,
    /// π_c, if they are not equal.
    client_shares: Option<Vec<f64>>,
    held: Vec<SetFacts>,
    /// The records of the test set, if there is one.
    test: Option<S>,
    optimum: Minimiser,
}

impl<L: RecordLoss<S>, S: RecordSets> RecordProblem<L, S> {
    /// The instance in which client c holds record set c modulo their number.
    ///
    /// # Errors
    /// A [`Fault`] of `l2` if Newton's method finds no optimum.
    ///
    /// # Panics
    /// If there are not as many shares as sets.
    pub fn new(loss: L, records: S, given: InstanceInputs<'_>) -> Result<Self, Fault> {
        let InstanceInputs { clients, shares: client_shares, optimum: search } = given;
        let (d, sets) = (records.features() * records.classes(), records.sets());
        assert!(client_shares.as_ref().is_none_or(|shares| shares.len() == sets));
        let held = (0..sets).map(|_| SetFacts::default()).collect();
        let (clients, test, optimum) = (clients.unwrap_or(sets), None, Minimiser::unknown(d));
        let mut instance = Self { loss, records, clients, client_shares, held, test, optimum };
        instance.optimum = match (instance.loss.affine(), search) {
            (Some((_, mean)), _) => solved_optimum(&instance, mean),
            (None, OptimumSearch::New) => find_optimum(&instance, instance.shares(), None)?,
            (None, OptimumSearch::Known(known)) => {
                find_optimum(&instance, instance.shares(), Some(known))?
            }
            (None, OptimumSearch::LeftOut) => return Ok(instance),
        };
        Ok(instance)
    }

    /// The same instance with a test set, the only set of `test`.
    pub fn with_test(self, test: S) -> Self {
        Self { test: Some(test), ..self }
    }

    /// The set that a client holds.
    fn set_of(&self, client: usize) -> usize {
        client % self.held.len()
    }

    /// The mean field of a client, if it is affine.
    fn affine(&self, client: usize) -> Option<&Affine> {
        self.loss.affine().map(|(fields, _)| &fields[self.set_of(client)])
    }

    /// The record sets, and the fraction of the clients that hold each, or the share of the one
    /// client that does.
    pub(super) fn shares(&self) -> impl Iterator<Item = (usize, f64)> {
        let (n, sets) = (self.clients, self.held.len());
        (0..sets).map(move |set| match &self.client_shares {
            Some(shares) => (set, shares[set]),
            None => (set, (n - set).div_ceil(sets) as f64 / n as f64),
        })
    }

    /// [`RecordLoss::record_numbers`] at θ*.
    fn at_optimum(&self, set: usize) -> &[f64] {
        let at = || self.loss.record_numbers(&self.records, set, self.optimum());
        once(&self.held[set].at_optimum, at).as_slice()
    }

    /// A function of the storage, of the loss and a client's set at θ*.
    fn of_client<T>(&self, client: usize, fact: impl Fn(&S, &L, usize, &[f64]) -> T) -> T {
        let set = self.set_of(client);
        fact(&self.records, &self.loss, set, self.at_optimum(set))
    }

    /// out ← out + share E ∇²ℓ v of a set.
    fn add_product(&self, set: usize, share: f64, at: &[f64], v: &[f64], out: &mut [f64]) {
        let mut along = self.records.products(set, v);
        self.loss.change(at, share / self.records.records(set) as f64, &mut along);
        self.records.add_rows(set, &along, out);
    }

    /// The mean over records of a number whose sum over a set is `sum`: over the clients' records,
    /// by their shares, or over the test set.
    fn mean_over(&self, of: RecordsOf, sum: impl Fn(&S, usize) -> Option<f64>) -> Option<f64> {
        if of == RecordsOf::Test {
            let test = self.test.as_ref()?;
            return Some(sum(test, 0)? / test.records(0) as f64);
        }
        let shares_first = L::SHARES_FIRST && self.records.dense_rows(0).is_some();
        self.shares().try_fold(0.0, |all, (set, share)| {
            let (sum, n) = (sum(&self.records, set)?, self.records.records(set) as f64);
            Some(all + if shares_first { share * sum / n } else { share * (sum / n) })
        })
    }

    /// [`Problem::advance`] on a chosen instruction set, of which the bits are independent.
    pub fn advance_on(&self, path: InstructionSet, cohort: Cohort<'_, ()>) {
        if let Some(cohort) = self.records.advance_on(path, self.loss.batch(), cohort) {
            generic::advance(self, cohort);
        }
    }

    /// [`Problem::advance_linearised`] on a chosen instruction set, likewise.
    pub(super) fn advance_linearised_on<'a>(
        &self,
        path: InstructionSet,
        cohort: Cohort<'a, ()>,
    ) -> Option<Cohort<'a, ()>> {
        let tables = self.records.tables().filter(|_| self.loss.batch() == 1);
        let Some(tables) = tables else { return Some(cohort) };
        let tangent = Tangent { star: self.optimum(), weights: &|set| self.at_optimum(set) };
        tables.advance_on(path, cohort, Some(&tangent))
    }
}

impl<L: RecordLoss<S>, S: RecordSets> Facts for RecordProblem<L, S> {
    fn clients(&self) -> usize {
        self.clients
    }
    fn unequal_shares(&self) -> Option<&[f64]> {
        self.client_shares.as_deref()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum.theta
    }
    fn optimum_error(&self) -> Option<f64> {
        Some(self.optimum.error).filter(|error| error.is_finite())
    }
    fn knows_optimum(&self) -> bool {
        self.optimum.is_searched()
    }
    fn searched_optimum(&self) -> Option<&Minimiser> {
        (!self.linear()).then_some(&self.optimum).filter(|found| found.is_searched())
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        if let Some(own) = self.affine(client) {
            return &own.optimum;
        }
        let set = self.set_of(client);
        let found = || minimise(&mut MeanLoss::new(self, [(set, 1.0)])).theta;
        once(&self.held[set].optimum, found).as_slice()
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        if let Some(own) = self.affine(client) {
            return own.evaluate(theta, field);
        }
        let set = self.set_of(client);
        let at = self.loss.record_numbers(&self.records, set, theta);
        self.records.mean_gradient(&self.loss, &[SetTerm { set, share: 1.0, at }], theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        let affine = self.affine(client).map(|own| own.matrix.clone());
        affine.unwrap_or_else(|| self.of_client(client, S::hessian))
    }
    fn symmetric(&self) -> bool {
        true
    }
    fn jacobian_product(&self, weights: &[(usize, f64)], _: bool, x: &[f64], out: &mut [f64]) {
        let sum = weights.iter().fold(0.0, |sum, (_, weight)| sum + weight);
        let scale = if self.linear() { 0.0 } else { self.loss.l2() * sum };
        out.iter_mut().zip(x).for_each(|(out, x)| *out = scale * x);
        for (client, share) in weights {
            let set = self.set_of(*client);
            match self.affine(*client) {
                Some(own) => own.matrix.add_product(*share, false, x, out),
                None => self.add_product(set, *share, self.at_optimum(set), x, out),
            }
        }
    }
    fn product_effort(&self) -> f64 {
        match self.loss.affine() {
            Some((fields, _)) => (fields.len() * self.dim() * self.dim()) as f64,
            None => (2 * self.records.multiplications()) as f64,
        }
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.of_client(client, S::noise_covariance)
    }
    fn noise_trace(&self, client: usize) -> f64 {
        self.of_client(client, S::noise_trace)
    }
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let map = |rows: &S, loss: &L, set, at: &[f64]| rows.noise_map(loss, set, at, s);
        Some(self.of_client(client, map))
    }
    fn curvature(&self, client: usize, m: &Matrix) -> Option<Vec<f64>> {
        let of_loss = |rows: &S, loss: &L, set, at: &[f64]| loss.curvature(rows, set, at, m);
        Some(if self.linear() { vec![0.0; self.dim()] } else { self.of_client(client, of_loss) })
    }
    fn convexity(&self) -> Option<f64> {
        (!self.linear()).then_some(self.loss.l2())
    }
    /// λ + w ‖E xxᵀ‖ with w the bound of the weights, where third derivatives are known; it is not
    /// computed of sparse records, which may have many features.
    fn mean_smoothness(&self, client: usize) -> Option<f64> {
        let set = self.set_of(client);
        let rows = L::INVERSE_THIRD.and(self.records.dense_rows(set))?;
        let weights = vec![L::LARGEST_WEIGHT / rows.len() as f64; rows.len()];
        let bound = Matrix::weighted_gram(rows, &weights);
        Some(bound.plus(self.loss.l2(), &Matrix::identity(self.dim())).symmetric_extremes()?.0)
    }
    /// That of ℓ times E‖x‖³, likewise.
    fn third_derivative(&self, client: usize) -> Option<f64> {
        if self.linear() {
            return Some(0.0);
        }
        let (inverse, set) = (L::INVERSE_THIRD?, self.set_of(client));
        let n = self.records.dense_rows(set)?.len() as f64;
        let cubes = self.records.squares(set).into_iter().map(|square| libm::pow(square, 1.5));
        Some(cubes.fold(0.0, |sum, x| sum + x) / n / inverse)
    }
    fn draw_smoothness(&self) -> DrawSmoothness {
        let squares = (0..self.held.len()).flat_map(|set| self.records.squares(set));
        let longest = squares.fold(0.0, f64::max);
        DrawSmoothness::AtMost(self.loss.l2() + longest * L::LARGEST_WEIGHT)
    }
    fn draws(&self) -> usize {
        (0..self.held.len()).map(|set| self.records.records(set)).max().unwrap_or(1)
    }
    fn distribution(&self, client: usize) -> usize {
        self.set_of(client)
    }
    fn linear(&self) -> bool {
        self.loss.affine().is_some()
    }
    fn batch(&self) -> u64 {
        self.loss.batch() as u64
    }
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, |records, set| Some(self.loss.losses(records, set, theta)))
    }
    fn accuracy(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, |records, set| self.loss.hits(records, set, theta))
    }
    /// Of losses that are not quadratic the mean of Bregman divergences from θ*, where the gradient
    /// is 0, so that there is no cancellation close to θ*.
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        let star = self.optimum();
        if let Some((_, mean)) = self.loss.affine() {
            return Some(half_square(&mean.matrix, theta, star));
        }
        let mut gap = 0.5 * self.loss.l2() * squared_distance(theta, star);
        for (set, share) in self.shares() {
            let weight = share / self.records.records(set) as f64;
            let at = self.at_optimum(set);
            let divergences = self.loss.divergences(&self.records, set, at, [theta, star]);
            divergences.iter().for_each(|divergence| gap += weight * divergence);
        }
        Some(gap)
    }
}

impl<L: RecordLoss<S>, S: RecordSets> Problem for RecordProblem<L, S> {
    type State = ();

    #[inline(always)]
    fn oracle(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        self.records.field(client, theta, self.loss.batch(), draws.rng, field);
    }

    #[inline(always)]
    fn linearised(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        if self.linear() {
            return self.oracle(client, draws, theta, field);
        }
        let (set, l2, batch) = (self.set_of(client), self.loss.l2(), self.loss.batch());
        let (at, points) = (self.at_optimum(set), [theta, self.optimum()]);
        field.iter_mut().zip(theta).for_each(|(field, theta)| *field = l2 * theta);
        for _ in 0..batch {
            let place = (set, draws.rng.index(self.records.records(set)));
            let factors = |v: &mut [f64]| {
                self.loss.linearised(&self.records, place, at, v);
                v.iter_mut().for_each(|v| *v /= batch as f64);
            };
            self.records.add_linearised(place, points, factors, field);
        }
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        self.advance_on(InstructionSet::best(), cohort);
    }

    fn advance_linearised<'a>(&self, cohort: Cohort<'a, ()>) -> Option<Cohort<'a, ()>> {
        if self.linear() {
            self.advance(cohort);
            return None;
        }
        self.advance_linearised_on(InstructionSet::best(), cohort)
    }

    fn held_records(&self) -> Option<RecordSizes> {
        self.records.dense_rows(0)?;
        let all: usize = (0..self.held.len()).map(|set| self.records.records(set)).sum();
        Some(RecordSizes { bytes: 8 * self.records.features() * all, largest: self.draws() })
    }

    fn sparse_records(&self) -> Option<&SparseRecords> {
        self.records.sparse()
    }

    fn advance_together(&self, runs: Vec<Cohort<'_, ()>>) {
        let plain = self.loss.batch() == 1 && runs.iter().all(|run| run.extended.is_none());
        match self.records.tables().filter(|tables| plain && tables.has_fused_steps()) {
            Some(tables) => tables.advance_together_on(InstructionSet::best(), runs),
            None => generic::advance_together(self, runs),
        }
    }
}

/// θ*, the root of an affine mean field.
fn solved_optimum<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    mean: &Affine,
) -> Minimiser {
    let convexity = optimum_bound::affine_convexity(problem, mean);
    let step = |gradient: &[f64]| solve(&mean.matrix, gradient).ok();
    let error = optimum_bound::optimum_error(problem, &mean.optimum, convexity, step);
    Minimiser { theta: mean.optimum.clone(), residual: 0.0, error }
}

/// θ*, the minimiser of the mean of f over sets, given with their weights. The result of an
/// earlier search is taken if its residual is found again to the last bit: then it is of this very
/// function.
///
/// # Errors
/// A [`Fault`] of `l2` if Newton's method does not find it, or it is not known to within its length.
fn find_optimum<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    shares: impl IntoIterator<Item = (usize, f64)>,
    known: Option<&Minimiser>,
) -> Result<Minimiser, Fault> {
    let mut mean = MeanLoss::new(problem, shares);
    let known = known.filter(|known| known.theta.len() == problem.dim());
    if let Some(known) = known.filter(|known| known.is_at(&mut mean)) {
        return Ok(known.clone());
    }
    let mut found = minimise(&mut mean);
    // The point of Hessians.
    mean.gradient(&found.theta);
    let step = |gradient: &[f64]| factored_step(&mean, gradient);
    found.error = optimum_bound::optimum_error(problem, &found.theta, mean.convexity(), step);
    let message = "the optimum cannot be found in double precision; it may be too small, or features too large";
    if found.is_known() { Ok(found) } else { Err(Fault::new("l2", message)) }
}

/// The mean of f over sets.
struct MeanLoss<'a, L, S> {
    problem: &'a RecordProblem<L, S>,
    /// Their numbers are those at the point of the last gradient.
    sets: Vec<SetTerm>,
}

impl<'a, L: RecordLoss<S>, S: RecordSets> MeanLoss<'a, L, S> {
    fn new(
        problem: &'a RecordProblem<L, S>,
        shares: impl IntoIterator<Item = (usize, f64)>,
    ) -> Self {
        let term = |(set, share)| SetTerm { set, share, at: Vec::new() };
        Self { problem, sets: shares.into_iter().map(term).collect() }
    }
}

impl<L: RecordLoss<S>, S: RecordSets> Objective for MeanLoss<'_, L, S> {
    fn dim(&self) -> usize {
        self.problem.dim()
    }
    fn convexity(&self) -> f64 {
        self.problem.loss.l2()
    }
    fn gradient(&mut self, theta: &[f64]) -> Vec<f64> {
        let RecordProblem { loss, records, .. } = self.problem;
        let sets = self.sets.iter_mut();
        sets.for_each(|of| of.at = loss.record_numbers(records, of.set, theta));
        let mut mean = vec![0.0; theta.len()];
        records.mean_gradient(loss, &self.sets, theta, &mut mean);
        mean
    }
    fn product(&self, v: &[f64]) -> Vec<f64> {
        let mut mean: Vec<f64> = v.iter().map(|v| self.problem.loss.l2() * v).collect();
        for SetTerm { set, share, at } in &self.sets {
            self.problem.add_product(*set, *share, at, v, &mut mean);
        }
        mean
    }
    fn hessian(&self) -> Matrix {
        self.problem.records.mean_hessian(&self.problem.loss, &self.sets)
    }
    fn most_factored(&self) -> usize {
        L::MOST_FACTORED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::dot;
    use crate::sample;

    /// Without a search nothing that depends on θ* is a number, and the losses are what they are.
    #[test]
    fn an_optimum_that_is_left_out_is_not_known() {
        let RecordProblem { loss, records, clients, client_shares, .. } =
            sample::weighted_logistic();
        let theta = vec![0.5; records.features()];
        let searched = sample::weighted_logistic();
        let given = InstanceInputs {
            clients: Some(clients),
            shares: client_shares,
            optimum: OptimumSearch::LeftOut,
        };
        let problem = RecordProblem::new(loss, records, given).unwrap();
        assert!(searched.knows_optimum() && !problem.knows_optimum());
        assert_eq!(problem.dim(), theta.len());
        assert!(problem.optimum().iter().all(|x| x.is_nan()));
        assert_eq!(problem.optimum_error(), None);
        assert_eq!(problem.searched_optimum(), None);
        assert!(problem.suboptimality(&theta).unwrap().is_nan());
        assert!(problem.field_at_optimum(0).iter().all(|x| x.is_nan()));
        let [a, b] = [&searched, &problem].map(|p| p.loss(&theta, RecordsOf::Clients).unwrap());
        assert_eq!(a.to_bits(), b.to_bits());
    }

    #[test]
    fn a_known_optimum_is_taken_if_it_is_of_this_very_function() {
        let problem = sample::weighted_logistic();
        let shares = || (0..problem.clients()).map(|client| (client, problem.share(client)));
        let found = find_optimum(&problem, shares(), None).unwrap();
        // Any point that comes with its residual is taken without a search.
        let theta = vec![0.5; problem.dim()];
        let gradient = MeanLoss::new(&problem, shares()).gradient(&theta);
        let residual = libm::sqrt(dot(&gradient, &gradient)) / problem.loss.l2;
        let point = Minimiser { theta, residual, error: 1.0 };
        assert_eq!(find_optimum(&problem, shares(), Some(&point)).unwrap(), point);
        for stale in [
            Minimiser { residual: residual + 1e-12, ..point.clone() },
            Minimiser { theta: vec![0.25; problem.dim()], ..point.clone() },
            Minimiser { theta: vec![0.5; problem.dim() + 1], ..point.clone() },
        ] {
            assert_eq!(find_optimum(&problem, shares(), Some(&stale)).unwrap(), found);
        }
    }
}
