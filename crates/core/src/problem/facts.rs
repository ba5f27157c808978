//! What is known exactly of a problem, which theory and measurements use.

use super::chain::Trajectory;
use super::groups::group_clients;
use super::minimise::Minimiser;
use super::optimum_set::OptimumSet;
use crate::kernel::squared_distance;
use crate::linalg::Matrix;

/// Exact facts about a problem. F_c is client c's field, F̄_c its mean,
/// F̄ = Σ π_c F̄_c with π_c the client's share; θ* solves F̄(θ*) = 0 and θ_c*, where there is one,
/// is the only solution of F̄_c(θ_c*) = 0. Where θ* is not unique either ([`Facts::optimum_set`]), F̄_c and the
/// covariances of its draws must be the same at all θ*, as they are for sums of convex functions.
pub trait Facts: Send + Sync {
    /// d, the dimension of θ.
    fn dim(&self) -> usize {
        self.optimum().len()
    }
    /// N, the number of clients.
    fn clients(&self) -> usize;
    /// The shares π_c of the clients, N positive numbers whose sum is 1; `None` if all are 1/N.
    /// Every mean over clients is weighted by them.
    fn unequal_shares(&self) -> Option<&[f64]> {
        None
    }
    /// The share π_c of a client.
    fn share(&self, client: usize) -> f64 {
        self.unequal_shares().map_or(1.0 / self.clients() as f64, |shares| shares[client])
    }
    /// N π_c, which is 1 to the last bit if shares are equal.
    fn weight(&self, client: usize) -> f64 {
        self.unequal_shares().map_or(1.0, |shares| self.clients() as f64 * shares[client])
    }
    /// θ*, d numbers; all NaN where it is not known ([`Facts::knows_optimum`]), and the one of least length where there
    /// are several ([`Facts::optimum_set`]).
    fn optimum(&self) -> &[f64];
    /// Whether θ* is known. It is not where it has no closed form and was not searched for; then no
    /// fact that depends on it is known either.
    fn knows_optimum(&self) -> bool {
        true
    }
    /// Whether the facts at θ* are known from which theory computes, such as Jacobians, covariances and the optima of
    /// clients. They are wherever θ* is, but of a problem that states θ* alone ([`super::function`]): then only distances
    /// from it are measured.
    fn knows_facts_at_optimum(&self) -> bool {
        self.knows_optimum()
    }
    /// All θ*, where there is not only one; `None` if θ* is unique, or not known. Errors are then distances to this set.
    fn optimum_set(&self) -> Option<&OptimumSet> {
        None
    }
    /// ‖θ − θ*‖², or the squared distance of θ from the set of all θ* if there are several.
    fn sq_distance_to_optimum(&self, theta: &[f64]) -> f64 {
        match self.optimum_set() {
            Some(set) => set.sq_distance(theta, self.optimum()),
            None => squared_distance(theta, self.optimum()),
        }
    }
    /// A bound on the Euclidean distance of [`Facts::optimum`] from the optimum that counts all
    /// rounding errors, where one is known: of a mean loss of records. Other optima are solutions of
    /// linear systems, which are solved to the last digit; but the coefficients of these systems are
    /// rounded, and nothing bounds what that changes.
    fn optimum_error(&self) -> Option<f64> {
        None
    }
    /// What a search found, if θ* was found by one.
    fn searched_optimum(&self) -> Option<&Minimiser> {
        None
    }
    /// θ_c*, d numbers; `None` if the client's mean field has no root or several, as that of a client with fewer records
    /// than features. θ* may be unique all the same.
    fn local_optimum(&self, client: usize) -> Option<&[f64]>;
    /// F̄_c(θ) into `field`, d numbers.
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]);
    /// F̄_c(θ*), d numbers, which is 0 for all clients only if they have a common root.
    fn field_at_optimum(&self, client: usize) -> Vec<f64> {
        let mut field = vec![0.0; self.dim()];
        self.mean_field(client, self.optimum(), &mut field);
        field
    }
    /// H_c = ∇F̄_c(θ*), d × d.
    fn jacobian(&self, client: usize) -> Matrix;
    /// Whether every H_c is symmetric, as the Jacobian of a gradient is.
    fn symmetric(&self) -> bool {
        false
    }
    /// Σ w_c H_c x over clients c and their weights w_c, or Σ w_c H_cᵀ x if `transposed`, into
    /// `out`, d numbers. Theory finds the eigenvalues and norms of large Jacobians by it; a problem of many dimensions
    /// computes it without a d × d matrix.
    fn jacobian_product(
        &self,
        weights: &[(usize, f64)],
        transposed: bool,
        x: &[f64],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        for (client, weight) in weights {
            self.jacobian(*client).add_product(*weight, transposed, x, out);
        }
    }
    /// The number of multiplications that [`Facts::jacobian_product`] takes for one client of each
    /// distribution. Theory estimates from it how long its computations take; no result depends on it.
    fn product_effort(&self) -> f64 {
        let distributions = group_clients(self.clients(), |c| self.distribution(c)).0.len();
        distributions as f64 * self.draws() as f64 * (self.dim() * self.dim()) as f64
    }
    /// C_c = Cov F_c(θ*; Z), d × d.
    fn noise_covariance(&self, client: usize) -> Matrix;
    /// tr C_c, the trace of [`Facts::noise_covariance`].
    fn noise_trace(&self, client: usize) -> f64 {
        self.noise_covariance(client).trace()
    }
    /// Whether every F_c is affine in θ.
    fn linear(&self) -> bool;
    /// Whether a client's draws are independent from step to step, so that means and
    /// moments close on a linear field; the draws of a Markovian oracle are not.
    fn independent(&self) -> bool {
        true
    }
    /// S, the number of states among which the draws of a client move; `None` if they are independent.
    fn positions(&self, _client: usize) -> Option<usize> {
        None
    }
    /// The Markov chain that the draws of a client follow, with the field at each of its moves: theory
    /// computes moments under Markovian noise from it. `None` if draws are independent, or the field is
    /// not linear.
    fn trajectory(&self, _client: usize) -> Option<Trajectory> {
        None
    }
    /// B, the number of evaluations of the field whose mean one oracle call returns: each counts as a
    /// gradient.
    fn batch(&self) -> u64 {
        1
    }
    /// The number of oracle calls of a client that use as many records as it holds, one epoch: n_c/B of n_c records
    /// and batches of B. Not whole where draws are with replacement and B does not divide n_c. `None` if the problem is
    /// not one of records.
    fn calls_of_epoch(&self, _client: usize) -> Option<f64> {
        None
    }
    /// The number of records from which a client's oracle calls draw; `None` if they do not draw records, as without
    /// noise.
    fn record_count(&self, _client: usize) -> Option<usize> {
        None
    }
    /// The fields of single records over which a client passes in a random order, without replacement: theory computes
    /// the moments of whole passes from it. `None` unless the client draws in this way and its fields are affine.
    fn record_pass(&self, _client: usize) -> Option<RecordPass> {
        None
    }
    /// E (F_c(θ; Z) − F̄_c(θ))(F_c(θ'; Z) − F̄_c(θ'))ᵀ, d × d, of the field
    /// linearised at θ* for each draw (a linear field is its own linearisation): a linear
    /// map of `s` = E (e, 1)(e', 1)ᵀ, (d+1) × (d+1), with e = θ − θ*
    /// and e' = θ' − θ*. Theory also asks for an `s` that is no such moment, such as a unit matrix, since the map is
    /// linear. `None`, whatever `s` is, if second moments do not close, as under Markovian noise.
    fn noise_map(&self, _client: usize, _s: &Matrix) -> Option<Matrix> {
        None
    }
    /// ∇²F̄_c(θ*)\[M\], d numbers: Σ_jk M_jk ∂²F̄_c/∂θ_j∂θ_k, the third derivatives
    /// of a loss; `None` if they are not known.
    fn curvature(&self, _client: usize, _m: &Matrix) -> Option<Vec<f64>> {
        self.linear().then(|| vec![0.0; self.dim()])
    }
    /// The strong convexity of every f_c at every θ, a lower bound of the eigenvalues of Hessians;
    /// `None` if it is not known, or if fields are linear and the Jacobians say it.
    fn convexity(&self) -> Option<f64> {
        None
    }
    /// How smooth the losses of single draws are.
    fn draw_smoothness(&self) -> DrawSmoothness {
        DrawSmoothness::Unknown
    }
    /// L with ∇F̄_c(θ) ≼ LI at every θ (RR A1(c)); `None` if it is not known,
    /// or if fields are linear and the Jacobians say it.
    fn mean_smoothness(&self, _client: usize) -> Option<f64> {
        None
    }
    /// The smoothness of a loss of records without its penalty, at every θ: of client c's, or without a client of the
    /// mean of the clients' losses by their shares. Settings may be written in units of it ([`super::Constant`]).
    /// `None` if there is no loss of records.
    fn data_smoothness(&self, _client: Option<usize>) -> Option<f64> {
        None
    }
    /// λ, the weight of the penalty λ/2 ‖θ‖² of every f_c; 0 without one.
    fn penalty(&self) -> f64 {
        0.0
    }
    /// Q with ‖∇²F̄_c(θ)‖ ≤ Q at every θ, a bound of third derivatives of the loss; `None` if it is not
    /// known.
    fn third_derivative(&self, _client: usize) -> Option<f64> {
        self.linear().then_some(0.0)
    }
    /// The most terms that an exact mean over a client's draws has: its records, pairs of states or
    /// atoms. Theory estimates from it how long its computations take, as if the field of each term had a matrix of
    /// rank one; so an atom, whose matrix may have rank d, counts as d terms. No result depends on it.
    fn draws(&self) -> usize {
        1
    }
    /// An identifier of the distribution of a client's oracle; clients with equal
    /// identifiers have the same distribution, whose facts theory computes once for all of them.
    fn distribution(&self, client: usize) -> usize {
        client
    }
    /// f(θ) − f(θ*), f the mean of the clients' losses by their shares; `None` if the
    /// field is not a gradient.
    fn suboptimality(&self, _theta: &[f64]) -> Option<f64> {
        None
    }
    /// The mean loss of records at θ without the penalty: over the records that clients hold, by the
    /// clients' shares, or over the test set. `None` if there are no such records, or no loss.
    fn loss(&self, _theta: &[f64], _of: RecordsOf) -> Option<f64> {
        None
    }
    /// The fraction of records whose class θ predicts, over the same records as [`Facts::loss`]; `None`
    /// without classes.
    fn accuracy(&self, _theta: &[f64], _of: RecordsOf) -> Option<f64> {
        None
    }
    /// The mean loss of each client's records at θ without the penalty: of the records that it holds, N numbers in the
    /// order of clients, or of its records in the test set, a number for each client that has some there. Metrics of
    /// the worst client and of deciles over clients are computed from it. `None` if there is no loss of records, or
    /// the test set is not divided among clients.
    fn client_losses(&self, _theta: &[f64], _of: RecordsOf) -> Option<Vec<f64>> {
        None
    }
    /// The fraction of each client's records whose class θ predicts, for the same clients as
    /// [`Facts::client_losses`]; `None` without classes, or where these clients are not known.
    fn client_accuracies(&self, _theta: &[f64], _of: RecordsOf) -> Option<Vec<f64>> {
        None
    }
    /// The mean over classes of the recall, the fraction of the records of a class whose class θ predicts. Records
    /// count as in [`Facts::accuracy`], and a class that none of them has is left out of the mean. `None` if the
    /// classes of the records are not known.
    fn balanced_accuracy(&self, _theta: &[f64], _of: RecordsOf) -> Option<f64> {
        None
    }
    /// The area under the receiver operating characteristic, which is the probability that a record of a class has a
    /// higher score for it than a record of another class, a tie counting half. Records count as in
    /// [`Facts::accuracy`]. With more than two classes it is the mean over classes, each against all others. `None`
    /// if the classes of the records are not known, or all records have the same one.
    fn auc(&self, _theta: &[f64], _of: RecordsOf) -> Option<f64> {
        None
    }
    /// xᵀ Σφ x with Σφ = N⁻¹ Σ E φφᵀ, the mean square of values under the stationary
    /// distributions (SCAFFLSA §4); `None` if there are no features.
    fn feature_norm(&self, _x: &[f64]) -> Option<f64> {
        None
    }
    /// θ̃, the TD fixed point of the averaged kernel and reward (Wang et al.
    /// 2023), d numbers; `None` if there is none.
    fn virtual_optimum(&self) -> Option<&[f64]> {
        None
    }
}

/// Whether the losses of single draws are convex and L-smooth with one L for all draws, as published
/// bounds require (RR A1(b)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DrawSmoothness {
    /// All draws are convex and smooth with this L.
    AtMost(f64),
    /// Some draws are not convex, or no constant serves all.
    Unbounded,
    /// Nothing is known of single draws, or fields are no gradients.
    Unknown,
}

/// What a client passes over in an epoch: all its records in an order that is drawn anew for each epoch, B at a time.
/// The last batch has the records that are left.
pub struct RecordPass {
    /// The affine field of each record.
    pub records: Vec<RecordField>,
    /// B, the number of records of an oracle call.
    pub batch: usize,
}

/// The affine field A (θ − θ*) + F(θ*) of a record.
pub struct RecordField {
    /// A, d × d.
    pub matrix: Matrix,
    /// F(θ*), d numbers.
    pub at_optimum: Vec<f64>,
}

/// Whose records a loss or an accuracy is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordsOf {
    /// The records that clients hold.
    Clients,
    /// The records of the test set.
    Test,
}

/// Computes a fact of clients once for each distribution of their oracles, at the first client that has
/// the distribution: clients that share one have equal facts. Returns the facts of the distributions, and
/// for each client the index of its own; `None` if `value` is `None` for one of them.
pub fn by_distribution<T>(
    facts: &dyn Facts,
    value: impl Fn(usize) -> Option<T>,
) -> Option<(Vec<T>, Vec<usize>)> {
    let (first, groups) = group_clients(facts.clients(), |client| facts.distribution(client));
    Some((first.into_iter().map(value).collect::<Option<_>>()?, groups))
}

/// Implements facts of a wrapper around a problem, such as [`crate::problem::Twin`], by those of the
/// problem in its field `$inner`: the facts that no wrapper changes, which are named below, and the facts
/// that the caller lists by their signatures.
macro_rules! forward_facts {
    ($self:ident.$inner:tt, { $($listed:tt)* }) => {
        forward_facts! { $self.$inner:
            fn clients(&self) -> usize;
            fn unequal_shares(&self) -> Option<&[f64]>;
            fn optimum(&self) -> &[f64];
            fn knows_optimum(&self) -> bool;
            fn knows_facts_at_optimum(&self) -> bool;
            fn optimum_set(&self) -> Option<&$crate::problem::optimum_set::OptimumSet>;
            fn optimum_error(&self) -> Option<f64>;
            fn searched_optimum(&self) -> Option<&$crate::problem::minimise::Minimiser>;
            fn jacobian(&self, client: usize) -> Matrix;
            fn symmetric(&self) -> bool;
            fn jacobian_product(&self, of: &[(usize, f64)], t: bool, x: &[f64], out: &mut [f64]);
            fn product_effort(&self) -> f64;
            fn draws(&self) -> usize;
            fn distribution(&self, client: usize) -> usize;
            fn data_smoothness(&self, client: Option<usize>) -> Option<f64>;
            fn penalty(&self) -> f64;
            $($listed)*
        }
    };
    ($self:ident.$inner:tt: $(fn $name:ident(&$own:ident$(, $arg:ident: $type:ty)*) $(-> $out:ty)?;)*) => {
        $(fn $name(&$own $(, $arg: $type)*) $(-> $out)? {
            $own.$inner.$name($($arg),*)
        })*
    };
}
pub(crate) use forward_facts;

/// Implements what runs on records are measured by, of a wrapper around a problem whose losses it does not change, by
/// that of the problem in its field `$inner`.
macro_rules! forward_measures {
    ($self:ident.$inner:tt) => {
        $crate::problem::facts::forward_facts! { $self.$inner:
            fn suboptimality(&self, theta: &[f64]) -> Option<f64>;
            fn loss(&self, theta: &[f64], of: $crate::problem::facts::RecordsOf) -> Option<f64>;
            fn accuracy(&self, theta: &[f64], of: $crate::problem::facts::RecordsOf) -> Option<f64>;
            fn client_losses(
                &self, theta: &[f64], of: $crate::problem::facts::RecordsOf
            ) -> Option<Vec<f64>>;
            fn client_accuracies(
                &self, theta: &[f64], of: $crate::problem::facts::RecordsOf
            ) -> Option<Vec<f64>>;
            fn balanced_accuracy(&self, theta: &[f64], of: $crate::problem::facts::RecordsOf) -> Option<f64>;
            fn auc(&self, theta: &[f64], of: $crate::problem::facts::RecordsOf) -> Option<f64>;
        }
    };
}
pub(crate) use forward_measures;
