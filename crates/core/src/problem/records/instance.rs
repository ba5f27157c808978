//! An instance: a loss and the records that clients hold, with its facts and its oracle.
//!
//! The records that a client holds are a *set*; client c holds set number c modulo the number of sets. Local steps are
//! *plain* if they have no proximal term and make one oracle call each ([`Cohort::extended`] is `None`). Facts at θ*
//! are NaN where θ* is not known.

use super::by_class::{self, WeighedSet};
use super::flat::local_optimum;
use super::loss::{RecordLoss, RecordPlace, RecordSets, SetTerm};
use super::mean_loss::{MeanLoss, add_hessian_product};
use crate::kernel::records::Tangent;
use crate::kernel::{Cohort, Draws, InstructionSet, SparseRecords, squared_distance};
use crate::linalg::Matrix;
use crate::problem::affine::{Affine, half_square};
use crate::problem::facts::{DrawSmoothness, Facts, RecordField, RecordsOf};
use crate::problem::lazy::get_or_compute;
use crate::problem::minimise::{Minimiser, minimise};
use crate::problem::optimum_set::OptimumSet;
use crate::problem::oracle::{
    JointGain, Problem, RecordSizes, advance_by_oracle, advance_together_by_client,
};
use std::sync::OnceLock;

/// Facts about one set of records, each computed when it is first asked for.
#[derive(Default)]
struct SetFacts {
    /// The numbers of the set's records at θ*, such as probabilities of classes, from which the residuals and weights
    /// of the records there follow ([`RecordLoss::record_numbers`]).
    at_optimum: OnceLock<Vec<f64>>,
    /// θ_c* of the clients that hold the set, d numbers; `None` if there is none, or several.
    optimum: OnceLock<Option<Vec<f64>>>,
}

/// An instance: a loss, and the records that clients hold.
pub struct RecordProblem<L, S> {
    pub(in crate::problem) loss: L,
    pub(in crate::problem) records: S,
    /// N, which may be larger than the number of sets.
    pub(super) clients: usize,
    /// π_c, N numbers, if they are not equal.
    pub(super) client_shares: Option<Vec<f64>>,
    /// The facts of each set that clients hold.
    held: Vec<SetFacts>,
    /// The records of the test set, if there is one.
    test: Option<S>,
    /// The same records, in a set for each client that has some of them, if it is known whose they are.
    test_of_clients: Option<S>,
    /// θ*, or what stands for it if it was not searched for.
    pub(super) optimum: Minimiser,
    /// All optima, if there are several.
    pub(super) optimum_set: Option<OptimumSet>,
}

impl<L: RecordLoss<S>, S: RecordSets> RecordProblem<L, S> {
    /// The instance with an unknown optimum, which [`RecordProblem::new`] then finds, and without a test set.
    /// There are as many clients as sets if `clients` is `None`, and their shares are equal if
    /// `client_shares` is `None`.
    pub(super) fn without_optimum(
        loss: L,
        records: S,
        clients: Option<usize>,
        client_shares: Option<Vec<f64>>,
    ) -> Self {
        let sets = records.sets();
        Self {
            held: (0..sets).map(|_| SetFacts::default()).collect(),
            clients: clients.unwrap_or(sets),
            optimum: Minimiser::unknown(records.features() * records.classes()),
            optimum_set: None,
            loss,
            records,
            client_shares,
            test: None,
            test_of_clients: None,
        }
    }

    /// Adds a test set to the instance: the only set of `test`, records that no client holds. Losses and accuracies are
    /// measured on it; θ* and the oracle do not depend on it.
    pub fn with_test(self, test: S) -> Self {
        Self { test: Some(test), ..self }
    }

    /// Divides the test set among the clients whose records these are: `test` has a set for each client that has some
    /// of them. Metrics per client are measured on it.
    pub fn with_test_of_clients(self, test: S) -> Self {
        Self { test_of_clients: Some(test), ..self }
    }

    /// The number of the set that a client holds.
    fn set_of(&self, client: usize) -> usize {
        client % self.held.len()
    }

    /// The mean field of a client by its matrix, if the loss has one.
    fn affine(&self, client: usize) -> Option<&Affine> {
        self.loss.affine(self.set_of(client))
    }

    /// The sets, and how much each counts in means over clients: the fraction of the clients that hold it or,
    /// where shares are unequal, the sum of their shares. These weights sum to 1.
    pub(in crate::problem) fn shares(&self) -> impl Iterator<Item = (usize, f64)> {
        let n = self.clients;
        let sets = self.held.len();
        (0..sets).map(move |set| match &self.client_shares {
            Some(shares) => {
                (set, shares.iter().skip(set).step_by(sets).fold(0.0, |sum, share| sum + share))
            }
            None => (set, (n - set).div_ceil(sets) as f64 / n as f64),
        })
    }

    /// The numbers of a set's records at θ*, from which their residuals and weights there follow
    /// ([`RecordLoss::record_numbers`]).
    fn at_optimum(&self, set: usize) -> &[f64] {
        get_or_compute(&self.held[set].at_optimum, || {
            self.loss.record_numbers(&self.records, set, self.optimum())
        })
        .as_slice()
    }

    /// A fact about a client at θ*, computed by `fact` from the storage, the loss, the number of the
    /// client's set and the set's numbers at θ*.
    fn fact_at_optimum<T>(&self, client: usize, fact: impl Fn(&S, &L, usize, &[f64]) -> T) -> T {
        let set = self.set_of(client);
        fact(&self.records, &self.loss, set, self.at_optimum(set))
    }

    /// The mean of a number of each record, whose sum over a set of a storage is `sum`: over the records of the
    /// test set, or over each client's records and then over clients, weighted by their shares. `None` if
    /// there is no test set, or the records have no such number.
    fn mean_over(&self, of: RecordsOf, sum: impl Fn(&S, usize) -> Option<f64>) -> Option<f64> {
        if of == RecordsOf::Test {
            let test = self.test.as_ref()?;
            return Some(sum(test, 0)? / test.records(0) as f64);
        }
        // Some losses divide last where records are dense. Both orders are kept, since the bits of results depend on
        // them.
        let divides_last = L::SHARES_FIRST && self.records.dense_rows(0).is_some();
        let mut mean = 0.0;
        for (set, share) in self.shares() {
            let of_set = sum(&self.records, set)?;
            let n = self.records.records(set) as f64;
            mean += if divides_last { share * of_set / n } else { share * (of_set / n) };
        }
        Some(mean)
    }

    /// The mean of a number of each record, whose sum over a set of a storage is `sum`, for each client: over the
    /// records that it holds, or over its records in the test set, if it has some there. `None` if the test set is not
    /// divided among clients, or the records have no such number.
    fn means_of_clients(
        &self,
        of: RecordsOf,
        sum: impl Fn(&S, usize) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        let records = match of {
            RecordsOf::Clients => &self.records,
            RecordsOf::Test => self.test_of_clients.as_ref()?,
        };
        let mut means = Vec::with_capacity(records.sets());
        for set in 0..records.sets() {
            means.push(sum(records, set)? / records.records(set) as f64);
        }
        Some(match of {
            RecordsOf::Clients => (0..self.clients).map(|c| means[self.set_of(c)]).collect(),
            RecordsOf::Test => means,
        })
    }

    /// Σ w ℓ over the records of a set of a storage at θ, without the penalty.
    fn sum_losses(&self, records: &S, set: usize, theta: &[f64]) -> f64 {
        let mut losses = self.loss.losses(records, set, theta);
        records.weigh(set, &mut losses);
        losses.iter().fold(0.0, |sum, loss| sum + loss)
    }

    /// The number of records of a set that count as hits: a record on the boundary of two classes counts half.
    fn count_hits(&self, records: &S, set: usize, theta: &[f64]) -> Option<f64> {
        let hits = self.loss.hits(records, set, theta)?;
        Some(hits.iter().fold(0.0, |sum, hit| sum + hit))
    }

    /// The sets over which means of records are taken, with the weight of each of their records in these means.
    /// `None` if there is no test set.
    fn weighed_sets(&self, of: RecordsOf) -> Option<Vec<WeighedSet<'_, S>>> {
        if of == RecordsOf::Test {
            return Some(vec![WeighedSet { records: self.test.as_ref()?, set: 0, weight: 1.0 }]);
        }
        let mut sets = Vec::with_capacity(self.held.len());
        for (set, share) in self.shares() {
            let weight = share / self.records.records(set) as f64;
            sets.push(WeighedSet { records: &self.records, set, weight });
        }
        Some(sets)
    }

    /// The number of records that a client holds.
    pub(super) fn records_of(&self, client: usize) -> usize {
        self.records.records(self.set_of(client))
    }

    /// The field of each record of a client, with the penalty. `None` if fields are not affine.
    pub(super) fn record_fields(&self, client: usize) -> Option<Vec<RecordField>> {
        self.affine(client)?;
        let set = self.set_of(client);
        let d = self.dim();
        let at = self.at_optimum(set);
        let weight = self.records.second_derivatives(&self.loss, set, at);
        let mut fields = Vec::with_capacity(self.records.records(set));
        for record in 0..self.records.records(set) {
            // A field that is affine is of a loss of one product of the record with θ.
            let mut x = vec![0.0; d];
            self.records.visit_record(set, record, |feature, value| x[feature] = value);
            let mut matrix = Matrix::identity(d).scaled(self.loss.l2());
            matrix.add_outer(weight(record, 0, 0), &x, &x);
            let mut at_optimum = vec![0.0; d];
            self.records.field(client, self.optimum(), 1, || record, &mut at_optimum);
            fields.push(RecordField { matrix, at_optimum });
        }
        Some(fields)
    }

    /// Writes λθ plus the mean of the fields δ ⊗ x of `batch` records of a client, linearised at θ*, to `field`.
    /// `next_record` is called once for each of them, and returns its number in the client's set. An affine field is
    /// its own linearisation.
    #[inline(always)]
    pub(super) fn linearised_field(
        &self,
        client: usize,
        theta: &[f64],
        batch: usize,
        mut next_record: impl FnMut() -> usize,
        field: &mut [f64],
    ) {
        if self.linear() {
            return self.records.field(client, theta, batch, next_record, field);
        }
        let set = self.set_of(client);
        let l2 = self.loss.l2();
        let at = self.at_optimum(set);
        let points = [theta, self.optimum()];
        field.iter_mut().zip(theta).for_each(|(field, theta)| *field = l2 * theta);
        for _ in 0..batch {
            let place = RecordPlace { set, record: next_record() };
            self.records.add_linearised(
                place,
                points,
                |v: &mut [f64]| {
                    self.loss.linearised(&self.records, place, at, v);
                    let loss_weight = self.records.loss_weight(set, place.record);
                    v.iter_mut().for_each(|v| *v = loss_weight * *v / batch as f64);
                },
                field,
            );
        }
    }

    /// Takes the local steps of [`Problem::advance`] by the kernel of the storage on this instruction set, on which no
    /// bit depends, or by the oracle where it has no kernel for them.
    pub fn advance_on(&self, path: InstructionSet, cohort: Cohort<'_, ()>) {
        if let Some(cohort) = self.records.advance_on(path, self.loss.batch(), cohort) {
            advance_by_oracle(self, cohort);
        }
    }

    /// Takes the plain steps of the field linearised at θ* by the kernel on this instruction set, on which no bit
    /// depends, and returns `None`. Returns the cohort where there is no kernel: unless records are drawn one by one
    /// and stored in tables that have one. The field must not be affine, and the cohort must not be extended; neither
    /// is looked at.
    pub(in crate::problem) fn advance_linearised_on<'a>(
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
    fn optimum_set(&self) -> Option<&OptimumSet> {
        self.optimum_set.as_ref()
    }
    /// The root of the client's affine field or, if it is not affine, what a search finds when it is first
    /// asked for. In contrast to θ*, nothing bounds its error, and with a penalty the search has no fault if it finds no
    /// minimum. Without a penalty it is `None` if the search does not show that there is one; fewer records than features
    /// have several.
    fn local_optimum(&self, client: usize) -> Option<&[f64]> {
        if let Some(own) = self.affine(client) {
            return own.root();
        }
        let set = self.set_of(client);
        let found = get_or_compute(&self.held[set].optimum, || {
            if L::AFFINE {
                None
            } else if self.loss.l2() > 0.0 {
                let mut own = MeanLoss::new(&self.loss, &self.records, [(set, 1.0)]);
                Some(minimise(&mut own).theta)
            } else {
                local_optimum(&self.loss, &self.records, set)
            }
        });
        found.as_deref()
    }
    /// The mean gradient over all records of the client, with that of the penalty.
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        if let Some(own) = self.affine(client) {
            return own.evaluate(theta, field);
        }
        let set = self.set_of(client);
        let at = self.loss.record_numbers(&self.records, set, theta);
        self.records.mean_gradient(&self.loss, &[SetTerm { set, share: 1.0, at }], theta, field);
    }
    /// The Hessian of the client's loss at θ*, with the penalty.
    fn jacobian(&self, client: usize) -> Matrix {
        let affine = self.affine(client).map(|own| own.matrix.clone());
        affine.unwrap_or_else(|| self.fact_at_optimum(client, S::hessian))
    }
    fn symmetric(&self) -> bool {
        true
    }
    /// Writes Σ w_c H_c x, from products of the records with x where fields are not affine, so that no d × d
    /// matrix is made. Hessians are symmetric, so that the transpose is the same.
    fn jacobian_product(&self, weights: &[(usize, f64)], _: bool, x: &[f64], out: &mut [f64]) {
        // The matrix of an affine field has the penalty in it already.
        let by_records = weights.iter().filter(|(client, _)| self.affine(*client).is_none());
        let sum = by_records.fold(0.0, |sum, (_, weight)| sum + weight);
        let scale = self.loss.l2() * sum;
        out.iter_mut().zip(x).for_each(|(out, x)| *out = scale * x);
        for (client, share) in weights {
            let set = self.set_of(*client);
            match self.affine(*client) {
                Some(own) => {
                    let transposed = false;
                    own.matrix.add_product(*share, transposed, x, out);
                }
                None => {
                    let at = self.at_optimum(set);
                    add_hessian_product(&self.loss, &self.records, set, *share, at, x, out);
                }
            }
        }
    }
    /// The multiplications of `jacobian_product` for a client of each set: by a d × d matrix for each set that has one,
    /// and in two passes over all records if some set has none.
    fn product_effort(&self) -> f64 {
        let sets = 0..self.held.len();
        let by_matrices = sets.filter(|set| self.loss.affine(*set).is_some()).count();
        let passes = if by_matrices == self.held.len() { 0 } else { 2 };
        let of_matrices = by_matrices * self.dim() * self.dim();
        (of_matrices + passes * self.records.multiplications()) as f64
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.fact_at_optimum(client, S::noise_covariance)
    }
    fn noise_trace(&self, client: usize) -> f64 {
        self.fact_at_optimum(client, S::noise_trace)
    }
    /// The covariance of the client's oracle calls on the field linearised at θ*, between two points θ and θ' with
    /// s = E (e, 1)(e', 1)ᵀ, e = θ − θ* and e' = θ' − θ*, from the linearised fields of all its records. It is always
    /// known, since draws are independent.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        Some(self.fact_at_optimum(client, |rows: &S, loss: &L, set, at: &[f64]| {
            rows.noise_map(loss, set, at, s)
        }))
    }
    /// 0 if fields are affine; else Σ M_jk ∂³f_c/∂θ∂θ_j∂θ_k of the client's loss at θ*, which is always known.
    fn curvature(&self, client: usize, m: &Matrix) -> Option<Vec<f64>> {
        Some(if self.linear() {
            vec![0.0; self.dim()]
        } else {
            self.fact_at_optimum(client, |records: &S, loss: &L, set, at: &[f64]| {
                let mut factors = loss.third_derivatives(records, set, at, m);
                records.weigh(set, &mut factors);
                let n = records.records(set) as f64;
                factors.iter_mut().for_each(|factor| *factor /= n);
                let mut sum = vec![0.0; m.rows()];
                records.add_rows(set, &factors, &mut sum);
                sum
            })
        })
    }
    fn convexity(&self) -> Option<f64> {
        (!self.linear()).then_some(self.loss.l2())
    }
    /// λ + b ‖E w xxᵀ‖ with b the bound on the second derivatives of ℓ and w the loss weights. It is computed for
    /// losses that state a bound on their third derivatives, all of which are of one product, and not for sparse
    /// records, which may have many features.
    fn mean_smoothness(&self, client: usize) -> Option<f64> {
        let set = self.set_of(client);
        let rows = L::INVERSE_THIRD.and(self.records.dense_rows(set))?;
        let mut weights = vec![L::LARGEST_WEIGHT / rows.len() as f64; rows.len()];
        self.records.weigh(set, &mut weights);
        let bound = Matrix::weighted_gram(rows, &weights);
        Some(bound.plus(self.loss.l2(), &Matrix::identity(self.dim())).symmetric_extremes()?.0)
    }
    fn data_smoothness(&self, client: Option<usize>) -> Option<f64> {
        let sets: Vec<(usize, f64)> = match client {
            Some(client) => vec![(self.set_of(client), 1.0)],
            None => self.shares().collect(),
        };
        self.smoothness_of_sets(&sets)
    }
    fn penalty(&self) -> f64 {
        self.loss.l2()
    }
    /// The bound on the third derivatives of ℓ by the products of a record, times E w‖x‖³ over the client's records; 0 if
    /// fields are affine, and `None` if the loss states no such bound, or records are sparse.
    fn third_derivative(&self, client: usize) -> Option<f64> {
        if self.linear() {
            return Some(0.0);
        }
        let inverse = L::INVERSE_THIRD?;
        let set = self.set_of(client);
        let n = self.records.dense_rows(set)?.len() as f64;
        let mut cubes = self.records.squares(set);
        cubes.iter_mut().for_each(|square| *square = libm::pow(*square, 1.5));
        self.records.weigh(set, &mut cubes);
        Some(cubes.iter().fold(0.0, |sum, x| sum + x) / n / inverse)
    }
    /// λ + b max w‖x‖² over the records of all clients, with b the bound on the second derivatives of ℓ by the products
    /// of a record and w its loss weight. Losses are convex, so that every draw is.
    fn draw_smoothness(&self) -> DrawSmoothness {
        let mut largest = 0.0_f64;
        for set in 0..self.held.len() {
            let mut squares = self.records.squares(set);
            self.records.weigh(set, &mut squares);
            largest = squares.into_iter().fold(largest, f64::max);
        }
        DrawSmoothness::AtMost(self.loss.l2() + largest * L::LARGEST_WEIGHT)
    }
    fn draws(&self) -> usize {
        (0..self.held.len()).map(|set| self.records.records(set)).max().unwrap_or(1)
    }
    fn distribution(&self, client: usize) -> usize {
        self.set_of(client)
    }
    fn linear(&self) -> bool {
        L::AFFINE
    }
    fn batch(&self) -> u64 {
        self.loss.batch() as u64
    }
    /// n_c/B, with n_c the records that the client holds: draws are with replacement, so that an epoch need not be a
    /// whole number of calls.
    fn calls_of_epoch(&self, client: usize) -> Option<f64> {
        Some(self.records_of(client) as f64 / self.loss.batch() as f64)
    }
    fn record_count(&self, client: usize) -> Option<usize> {
        Some(self.records_of(client))
    }
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, |records, set| Some(self.sum_losses(records, set, theta)))
    }
    fn accuracy(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, |records, set| self.count_hits(records, set, theta))
    }
    fn client_losses(&self, theta: &[f64], of: RecordsOf) -> Option<Vec<f64>> {
        self.means_of_clients(of, |records, set| Some(self.sum_losses(records, set, theta)))
    }
    fn client_accuracies(&self, theta: &[f64], of: RecordsOf) -> Option<Vec<f64>> {
        self.means_of_clients(of, |records, set| self.count_hits(records, set, theta))
    }
    fn balanced_accuracy(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        by_class::balanced_accuracy(&self.loss, &self.weighed_sets(of)?, theta)
    }
    fn auc(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        by_class::auc(&self.loss, &self.weighed_sets(of)?, theta)
    }
    /// f(θ) − f(θ*) with the penalty, over the records that clients hold. Unless the Hessian is known as a matrix it is
    /// computed as the mean of Bregman divergences from θ*, where the gradient is 0, so that there is no cancellation
    /// close to θ*. It is NaN, and not `None`, if θ* was not searched for.
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        let star = self.optimum();
        if let Some(mean) = self.loss.mean_affine() {
            return Some(half_square(&mean.matrix, theta, star));
        }
        let mut gap = 0.5 * self.loss.l2() * squared_distance(theta, star);
        for (set, share) in self.shares() {
            let weight = share / self.records.records(set) as f64;
            let at = self.at_optimum(set);
            let mut divergences = self.loss.divergences(&self.records, set, at, [theta, star]);
            self.records.weigh(set, &mut divergences);
            divergences.iter().for_each(|divergence| gap += weight * divergence);
        }
        Some(gap)
    }
}

impl<L: RecordLoss<S>, S: RecordSets> Problem for RecordProblem<L, S> {
    type State = ();

    #[inline(always)]
    fn oracle(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        let records = self.records_of(client);
        let batch = self.loss.batch();
        self.records.field(client, theta, batch, || draws.rng.index(records), field);
    }

    /// Draws a batch of records, as many as the oracle does.
    fn draw(&self, client: usize, draws: &mut Draws<()>, records: &mut Vec<usize>) {
        let count = self.records_of(client);
        records.extend((0..self.loss.batch()).map(|_| draws.rng.index(count)));
    }

    /// Draws a batch of records, those that the oracle would draw from this stream, and writes λθ plus the mean of
    /// their fields δ ⊗ x, linearised at θ*.
    #[inline(always)]
    fn linearised(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        let records = self.records_of(client);
        let batch = self.loss.batch();
        self.linearised_field(client, theta, batch, || draws.rng.index(records), field);
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        self.advance_on(InstructionSet::best(), cohort);
    }

    /// Takes plain steps on the linearised field and returns `None`, or returns the cohort. An affine field is its own
    /// linearisation; steps on other fields have a kernel where records are drawn one by one and stored in tables that
    /// have one.
    fn advance_linearised<'a>(&self, cohort: Cohort<'a, ()>) -> Option<Cohort<'a, ()>> {
        if self.linear() {
            self.advance(cohort);
            return None;
        }
        self.advance_linearised_on(InstructionSet::best(), cohort)
    }

    /// What is gained by reading the records that clients hold for several runs at once: nothing if they are sparse.
    fn joint_gain(&self) -> JointGain {
        if self.records.dense_rows(0).is_none() {
            return JointGain::None;
        }
        let all: usize = (0..self.held.len()).map(|set| self.records.records(set)).sum();
        let bytes = 8 * self.records.features() * all;
        JointGain::SharedRecords(RecordSizes { bytes, largest: self.draws() })
    }

    fn sparse_records(&self) -> Option<&SparseRecords> {
        self.records.sparse()
    }

    /// Takes plain steps on single records by the fused kernel of the tables, if it has one; else all steps by
    /// [`Problem::advance`], client by client. Either way it requires and promises what [`Problem::advance_together`]
    /// says: the cohorts have the same clients with the same numbers of steps, else the fused kernel panics, and the
    /// bits are those of one run after the other.
    fn advance_together(&self, runs: Vec<Cohort<'_, ()>>) {
        let is_plain = self.loss.batch() == 1 && runs.iter().all(|run| run.extended.is_none());
        match self.records.tables().filter(|tables| is_plain && tables.has_fused_steps()) {
            Some(tables) => tables.advance_together_on(InstructionSet::best(), runs),
            None => advance_together_by_client(self, runs),
        }
    }
}
