//! An instance of a problem that is given by functions: its values at a point, and what is known of it.

use super::functions::{
    DrawSpace, FunctionError, FunctionSizes, ProblemFunctions, fail, rows_of_call,
};
use super::rows::FieldRows;
use crate::kernel::axpy;
use crate::linalg::Matrix;
use crate::problem::affine::half_square;
use crate::problem::atoms::Atoms;
use crate::problem::facts::{Facts, RecordsOf};
use crate::problem::optimum_set::OptimumSet;
use crate::rng::Stream;
use std::sync::Arc;

/// An instance of a problem that is given by functions. Copies share the functions and what was computed from them.
#[derive(Clone)]
pub struct FunctionProblem {
    pub(super) functions: Arc<dyn ProblemFunctions>,
    pub(super) sizes: FunctionSizes,
    /// The coefficients of the field and the facts that follow, if the field is affine and has a θ*.
    pub(super) affine: Option<Arc<Atoms>>,
    /// θ*, d numbers; all NaN where it is not known.
    pub(super) optimum: Vec<f64>,
    /// The mean loss at θ*, from which f(θ) − f(θ*) is computed; `None` if it is not known.
    pub(super) least_loss: Option<f64>,
}

impl FunctionProblem {
    /// Whether the field is affine in θ, so that theory is exact.
    pub fn is_affine(&self) -> bool {
        self.affine.is_some()
    }

    /// The indices of all clients in order.
    pub(super) fn all_clients(&self) -> Vec<usize> {
        (0..self.sizes.clients).collect()
    }

    /// Σ π_c x_c of a number for each client, summed in their order.
    pub(super) fn mean_of_clients(&self, values: &[f64]) -> f64 {
        values.iter().enumerate().fold(0.0, |sum, (client, x)| sum + self.share(client) * x)
    }

    /// The next draw of a client from its stream.
    pub(super) fn next_draw(&self, client: usize, stream: &mut Stream) -> u64 {
        match &self.sizes.draws {
            DrawSpace::Records(counts) => stream.index(counts[client]) as u64,
            DrawSpace::Seeds => stream.bits(),
        }
    }

    /// The mean loss of each client at θ, N numbers; `None` if there is no function for it.
    pub(super) fn losses_of_clients(&self, theta: &[f64]) -> Option<Vec<f64>> {
        let clients = self.all_clients();
        let losses = self.functions.losses(&theta.repeat(clients.len()), &clients)?;
        Some(losses.unwrap_or_else(|error| fail(error)))
    }

    /// Writes F̄_c(θ) of a client to `field`, d numbers: by the function for it or, if there is none, as the mean over
    /// all its records, which are summed in their order. A function without records and without mean is refused before.
    pub(super) fn write_mean_field(
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
    pub(super) fn write_mean_over_records(
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
    pub(super) fn atoms(&self) -> &Atoms {
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
    fn record_count(&self, client: usize) -> Option<usize> {
        match &self.sizes.draws {
            DrawSpace::Records(counts) => Some(counts[client]),
            DrawSpace::Seeds => None,
        }
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
            Some(atoms) => Some(half_square(atoms.mean_matrix(), theta, &self.optimum)),
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
