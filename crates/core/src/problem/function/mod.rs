//! Problems that are given by a function: the field at θ of a client and a draw, for many such rows in one call.
//!
//! A user's problem in Python is one, with the array arithmetic of NumPy, or with a compiled function that engine threads
//! call themselves. What is known of it beyond its field is computed from it: mean fields over all
//! records, and where the field is affine, its coefficients, and with them all that theory needs ([`Atoms`]). Of other
//! functions nothing is known at θ*, and θ* itself only if it is stated.
//!
//! *Invariant*: a row's field depends on that row alone, whichever rows are evaluated with it, and is the same whenever
//! it is asked for. [`checks`] finds functions of which this is not so, before the first run.

mod advance;
mod affine;
mod checks;
mod functions;
mod instance;
mod margins;
mod rows;
#[cfg(test)]
mod tests;

use super::facts::Facts;
use super::oracle::{JointGain, Problem, advance_together_by_client};
use crate::kernel::{Cohort, Draws};
pub use affine::MOST_COEFFICIENTS;
pub use checks::FunctionFault;
use functions::fail;
pub use functions::{DrawSpace, FunctionError, FunctionSizes, ProblemFunctions};
pub use instance::FunctionProblem;
pub use margins::MarginRecords;
pub use rows::FieldRows;
use std::sync::Arc;

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
}

impl Problem for FunctionProblem {
    type State = ();

    fn oracle(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        let drawn = [self.next_draw(client, draws.rng)];
        let rows = FieldRows { thetas: theta, clients: &[client], draws: &drawn };
        self.functions.fields(rows, field).unwrap_or_else(|error| fail(error));
    }

    /// Draws the record or the seed that the oracle would draw, and adds it to `records` if it is a record.
    fn draw(&self, client: usize, draws: &mut Draws<()>, records: &mut Vec<usize>) {
        let drawn = self.next_draw(client, draws.rng);
        if self.record_count(client).is_some() {
            records.push(drawn as usize);
        }
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        if self.functions.prefers_many_rows() {
            advance::advance_by_rows(self, vec![cohort]);
        } else {
            advance::advance_by_draws(self, cohort);
        }
    }

    fn joint_gain(&self) -> JointGain {
        if self.functions.prefers_many_rows() { JointGain::SharedCalls } else { JointGain::None }
    }

    fn advance_together(&self, runs: Vec<Cohort<'_, ()>>) {
        if self.functions.prefers_many_rows() {
            advance::advance_by_rows(self, runs);
        } else {
            advance_together_by_client(self, runs);
        }
    }
}
