//! What a user's functions are given and return, and what a call of them costs.

use super::margins::MarginRecords;
use super::rows::FieldRows;
use std::panic::resume_unwind;
use thiserror::Error;

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
    /// The records, if the loss of a record depends on its margin alone: local steps then ask for [`Self::slopes`] in
    /// place of [`Self::fields`].
    fn margin_records(&self) -> Option<&MarginRecords> {
        None
    }
    /// Writes the slope φ′ of the loss at each margin to `slopes`. It is asked for if there are [`Self::margin_records`].
    ///
    /// # Errors
    /// As for [`Self::fields`].
    fn slopes(&self, _margins: &[f64], _slopes: &mut [f64]) -> Result<(), FunctionError> {
        Err(FunctionError("the loss does not depend on margins".to_owned()))
    }
    /// Has the processor read from memory what the field of a client and a draw reads, since it is evaluated next.
    /// Functions that do not know where that lies, or evaluate many rows at once, need not do anything.
    fn read_ahead(&self, _client: usize, _draw: u64) {}
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

/// How many numbers the fields of one call have at most, so that the memory of a call is bounded: 8 MiB. A single row
/// may have more.
const MOST_NUMBERS: usize = 1 << 20;

/// The number of rows in dimension d that one call evaluates at most.
pub(super) fn rows_of_call(dimension: usize) -> usize {
    (MOST_NUMBERS / dimension).max(1)
}

/// Ends the run that needs a value which a function of a user did not return. The runner reports the text as the reason
/// why the cell has failed; no other place is looked for, since the text of an exception has its own traceback.
pub(super) fn fail(error: FunctionError) -> ! {
    resume_unwind(Box::new(error.0))
}
