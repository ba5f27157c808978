//! Problems that are given by a function: the field at θ of a client and a draw, for many such rows in one call.
//!
//! A user's problem in Python is one, with the array arithmetic of NumPy, or with a compiled function that engine threads
//! call themselves ([`CompiledField`]). What is known of it beyond its field is computed from it: mean fields over all
//! records, and where the field is affine, its coefficients, and with them all that theory needs ([`Atoms`]). Of other
//! functions nothing is known at θ*, and θ* itself only if it is stated.
//!
//! *Invariant*: a row's field depends on that row alone, whichever rows are evaluated with it, and is the same whenever
//! it is asked for. [`checks`] finds functions of which this is not so, before the first run.

mod advance;
mod affine;
mod checks;
#[cfg(test)]
mod tests;

use super::atoms::Atoms;
use super::facts::{Facts, RecordsOf};
use super::optimum_set::OptimumSet;
use super::oracle::{JointGain, Problem, advance_by_oracle};
use crate::kernel::{Cohort, Draws, axpy};
use crate::linalg::Matrix;
use crate::rng::Stream;
pub use affine::MOST_COEFFICIENTS;
pub use checks::FunctionFault;
use std::panic::resume_unwind;
use std::sync::Arc;
use thiserror::Error;

/// Rows at which a field is evaluated: M points, each with a client and a draw.
#[derive(Clone, Copy, Debug)]
pub struct FieldRows<'a> {
    /// θ of each row, M × d numbers.
    pub thetas: &'a [f64],
    /// The index of the client of each row, M numbers.
    pub clients: &'a [usize],
    /// The draw of each row, M numbers ([`DrawSpace`]).
    pub draws: &'a [u64],
}

/// Why a function of a user has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FunctionError(pub String);

/// The functions of a problem, of which all but the field may be missing.
pub trait ProblemFunctions: Send + Sync {
    /// Writes F_c(θ; z) of each row to `fields`, M × d numbers.
    ///
    /// # Errors
    /// Why there are no such numbers, as an exception of a user's code says it.
    fn fields(&self, rows: FieldRows<'_>, fields: &mut [f64]) -> Result<(), FunctionError>;
    /// Whether a single call for many rows takes much less time than a call for each row: then the local steps of all
    /// clients, and of several runs, are taken by one call for each step.
    fn prefers_many_rows(&self) -> bool;
    /// Writes the mean field F̄_c(θ) of each row to `fields`, M × d numbers. Returns false if there is no function for
    /// it; it is then the mean over all draws, which must be records.
    ///
    /// # Errors
    /// As for [`Self::fields`].
    fn mean_fields(
        &self,
        _thetas: &[f64],
        _clients: &[usize],
        _fields: &mut [f64],
    ) -> Result<bool, FunctionError> {
        Ok(false)
    }
    /// The mean loss f_c(θ) of each row, M numbers; `None` if there is no function for it.
    ///
    /// # Errors
    /// As for [`Self::fields`].
    fn losses(
        &self,
        _thetas: &[f64],
        _clients: &[usize],
    ) -> Option<Result<Vec<f64>, FunctionError>> {
        None
    }
    /// The stated θ*, d numbers, which may take long to compute; `None` if none is stated.
    ///
    /// # Errors
    /// As for [`Self::fields`].
    fn optimum(&self) -> Option<Result<Vec<f64>, FunctionError>> {
        None
    }
}

/// What the draws of a client are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawSpace {
    /// The index of a record below the number of the client's records, uniformly; N numbers, 1 or more each.
    Records(Vec<usize>),
    /// 64 uniform bits, from which the function makes what it needs.
    Seeds,
}

/// The sizes of a problem that is given by functions.
#[derive(Clone, Debug)]
pub struct FunctionSizes {
    /// N, the number of clients.
    pub clients: usize,
    /// d, the dimension of θ.
    pub dimension: usize,
    /// What draws are.
    pub draws: DrawSpace,
    /// The shares π_c of the clients, N positive numbers, which are divided by their sum; `None` if all are 1/N.
    pub shares: Option<Vec<f64>>,
}

/// An instance of a problem that is given by functions. Copies share the functions and what was computed from them.
#[derive(Clone)]
pub struct FunctionProblem {
    functions: Arc<dyn ProblemFunctions>,
    sizes: FunctionSizes,
    /// The coefficients of the field and the facts that follow, if the field is affine and has a θ*.
    affine: Option<Arc<Atoms>>,
    /// θ*, d numbers; all NaN where it is not known.
    optimum: Vec<f64>,
    /// The mean loss at θ*, from which f(θ) − f(θ*) is computed; `None` if it is not known.
    least_loss: Option<f64>,
}

/// How many numbers the fields of one call have at most, so that the memory of a call is bounded: 8 MiB. A single row
/// may have more.
const MOST_NUMBERS: usize = 1 << 20;

/// The number of rows in dimension d that one call evaluates at most.
fn rows_of_call(dimension: usize) -> usize {
    (MOST_NUMBERS / dimension).max(1)
}

/// Ends the run that needs a value which a function of a user did not return. The runner reports the text as the reason
/// why the cell has failed; no other place is looked for, since the text of an exception has its own traceback.
fn fail(error: FunctionError) -> ! {
    resume_unwind(Box::new(error.0))
}

impl FunctionProblem {
    /// Checks the functions, looks whether the field is affine, and makes the instance. θ* is known if the field is
    /// affine; a stated θ* is not asked for before [`Self::with_stated_optimum`].
    ///
    /// # Errors
    /// What is wrong with the sizes or the functions.
    pub fn new(
        functions: Arc<dyn ProblemFunctions>,
        mut sizes: FunctionSizes,
    ) -> Result<Self, FunctionFault> {
        checks::check_sizes(&sizes)?;
        if let Some(shares) = &mut sizes.shares {
            let sum = shares.iter().fold(0.0, |sum, share| sum + share);
            shares.iter_mut().for_each(|share| *share /= sum);
            // Equal shares are none, so that means have the bits of those without shares.
            if shares.iter().all(|share| *share == shares[0]) {
                sizes.shares = None;
            }
        }
        let optimum = vec![f64::NAN; sizes.dimension];
        let mut problem = Self { functions, sizes, affine: None, optimum, least_loss: None };
        checks::check_functions(&problem)?;
        if let Some(atoms) = affine::find_atoms(&problem)? {
            problem.optimum = atoms.optimum().to_vec();
            problem.affine = Some(Arc::new(atoms));
        }
        Ok(problem)
    }

    /// Asks for the stated θ* unless it is known already, checks that the mean field is 0 there, and has distances
    /// measured from it.
    ///
    /// # Errors
    /// What is wrong with the stated θ*.
    pub fn with_stated_optimum(mut self) -> Result<Self, FunctionFault> {
        if self.affine.is_some() {
            return Ok(self);
        }
        let Some(stated) = self.functions.optimum() else { return Ok(self) };
        let stated = stated?;
        checks::check_optimum(&self, &stated)?;
        self.least_loss =
            match self.functions.losses(&stated.repeat(self.sizes.clients), &self.all_clients()) {
                Some(losses) => Some(self.mean_of_clients(&losses?)),
                None => None,
            };
        self.optimum = stated;
        Ok(self)
    }

    /// Whether the field is affine in θ, so that theory is exact.
    pub fn is_affine(&self) -> bool {
        self.affine.is_some()
    }

    /// The indices of all clients in order.
    fn all_clients(&self) -> Vec<usize> {
        (0..self.sizes.clients).collect()
    }

    /// Σ π_c x_c of a number for each client, summed in their order.
    fn mean_of_clients(&self, values: &[f64]) -> f64 {
        values.iter().enumerate().fold(0.0, |sum, (client, x)| sum + self.share(client) * x)
    }

    /// The next draw of a client from its stream.
    fn draw(&self, client: usize, stream: &mut Stream) -> u64 {
        match &self.sizes.draws {
            DrawSpace::Records(counts) => stream.index(counts[client]) as u64,
            DrawSpace::Seeds => stream.bits(),
        }
    }

    /// The mean loss of each client at θ, N numbers; `None` if there is no function for it.
    fn losses_of_clients(&self, theta: &[f64]) -> Option<Vec<f64>> {
        let clients = self.all_clients();
        let losses = self.functions.losses(&theta.repeat(clients.len()), &clients)?;
        Some(losses.unwrap_or_else(|error| fail(error)))
    }

    /// Writes F̄_c(θ) of a client to `field`, d numbers: by the function for it or, if there is none, as the mean over
    /// all its records, which are summed in their order. A function without records and without mean is refused before.
    fn write_mean_field(
        &self,
        client: usize,
        theta: &[f64],
        field: &mut [f64],
    ) -> Result<(), FunctionError> {
        if self.functions.mean_fields(theta, &[client], field)? {
            return Ok(());
        }
        self.write_mean_over_records(client, theta, field)
    }

    /// Writes the mean over the records of a client of its fields at θ to `field`, d numbers; NaN without records.
    fn write_mean_over_records(
        &self,
        client: usize,
        theta: &[f64],
        field: &mut [f64],
    ) -> Result<(), FunctionError> {
        let DrawSpace::Records(counts) = &self.sizes.draws else {
            field.fill(f64::NAN);
            return Ok(());
        };
        let records = counts[client];
        let d = self.sizes.dimension;
        field.fill(0.0);
        let all: Vec<u64> = (0..records as u64).collect();
        for draws in all.chunks(rows_of_call(d)) {
            let thetas = theta.repeat(draws.len());
            let clients = vec![client; draws.len()];
            let mut fields = vec![0.0; draws.len() * d];
            self.functions
                .fields(FieldRows { thetas: &thetas, clients: &clients, draws }, &mut fields)?;
            fields.chunks_exact(d).for_each(|one| axpy(1.0, one, field));
        }
        field.iter_mut().for_each(|x| *x /= records as f64);
        Ok(())
    }

    /// The facts of the affine field.
    ///
    /// # Panics
    /// If the field is not affine: what is known at θ* is not asked for then ([`Facts::knows_facts_at_optimum`]).
    fn atoms(&self) -> &Atoms {
        self.affine.as_deref().expect("facts at θ* are known of affine fields alone")
    }
}

impl Facts for FunctionProblem {
    fn dim(&self) -> usize {
        self.sizes.dimension
    }
    fn clients(&self) -> usize {
        self.sizes.clients
    }
    fn unequal_shares(&self) -> Option<&[f64]> {
        self.sizes.shares.as_deref()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn knows_optimum(&self) -> bool {
        !self.optimum[0].is_nan()
    }
    fn knows_facts_at_optimum(&self) -> bool {
        self.is_affine()
    }
    fn optimum_set(&self) -> Option<&OptimumSet> {
        self.affine.as_ref()?.optimum_set()
    }
    fn local_optimum(&self, client: usize) -> Option<&[f64]> {
        self.atoms().local_optimum(client)
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.write_mean_field(client, theta, field).unwrap_or_else(|error| fail(error));
    }
    /// F̄_c(θ*) of an affine field from its coefficients, and else as [`Facts::mean_field`] says.
    fn field_at_optimum(&self, client: usize) -> Vec<f64> {
        if let Some(atoms) = &self.affine {
            return atoms.field_at_optimum(client);
        }
        let mut field = vec![0.0; self.dim()];
        self.mean_field(client, &self.optimum, &mut field);
        field
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.atoms().jacobian(client)
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.atoms().noise_covariance(client)
    }
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        self.affine.as_ref()?.noise_map(client, s)
    }
    fn draws(&self) -> usize {
        match (&self.affine, &self.sizes.draws) {
            (Some(atoms), _) => atoms.draws(),
            (None, DrawSpace::Records(counts)) => counts.iter().copied().max().unwrap_or(1),
            (None, DrawSpace::Seeds) => 1,
        }
    }
    fn linear(&self) -> bool {
        self.is_affine()
    }
    fn calls_of_epoch(&self, client: usize) -> Option<f64> {
        match &self.sizes.draws {
            DrawSpace::Records(counts) => Some(counts[client] as f64),
            DrawSpace::Seeds => None,
        }
    }
    /// f(θ) − f(θ*), if the clients state their losses. Where the field is affine it is ½ (θ − θ*)ᵀ Ā (θ − θ*), and else
    /// a difference of two losses, which near θ* has the rounding errors of these.
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        let losses = self.losses_of_clients(theta)?;
        match &self.affine {
            Some(atoms) => {
                Some(super::affine::half_square(atoms.mean_matrix(), theta, &self.optimum))
            }
            None => Some(self.mean_of_clients(&losses) - self.least_loss?),
        }
    }
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.client_losses(theta, of).map(|losses| self.mean_of_clients(&losses))
    }
    fn client_losses(&self, theta: &[f64], of: RecordsOf) -> Option<Vec<f64>> {
        match of {
            RecordsOf::Clients => self.losses_of_clients(theta),
            RecordsOf::Test => None,
        }
    }
}

impl Problem for FunctionProblem {
    type State = ();

    fn oracle(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        let drawn = [self.draw(client, draws.rng)];
        let rows = FieldRows { thetas: theta, clients: &[client], draws: &drawn };
        self.functions.fields(rows, field).unwrap_or_else(|error| fail(error));
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        if self.functions.prefers_many_rows() {
            advance::advance_by_rows(self, vec![cohort]);
        } else {
            advance_by_oracle(self, cohort);
        }
    }

    fn joint_gain(&self) -> JointGain {
        if self.functions.prefers_many_rows() { JointGain::SharedCalls } else { JointGain::None }
    }

    fn advance_together(&self, runs: Vec<Cohort<'_, ()>>) {
        if self.functions.prefers_many_rows() {
            advance::advance_by_rows(self, runs);
        } else {
            super::oracle::advance_together_by_client(self, runs);
        }
    }
}

/// A compiled function that writes F_c(θ; z) to its fourth argument: `void field(const double *theta, int64_t client,
/// int64_t draw, double *field, void *data)`. A draw that is a seed has its 64 bits in a signed number. Threads call it
/// at the same time, and without Python's interpreter.
pub type CompiledField =
    unsafe extern "C" fn(*const f64, i64, i64, *mut f64, *mut std::ffi::c_void);
