//! The number that a penalty is which is written as a multiple of the smoothness of the losses without it.

use super::arrays::{Contents, DataFile, Files, FilesError};
use super::constants::{Constant, ProblemConstants};
use super::fault::Fault;
use super::form::{OracleForm, Visitor};
use super::minimise::OptimumSearch;
use super::oracle::Problem;
use super::penalty::Penalty;
use super::spec::Spec;
use std::any::Any;
use std::sync::Arc;

/// Data files from which an instance is built without a search for its optimum.
struct ProbedFiles<'a>(&'a dyn Files);

impl Files for ProbedFiles<'_> {
    fn open(&self, file: &DataFile) -> Result<Arc<Contents>, FilesError> {
        self.0.open(file)
    }
    fn optimum_search(&self) -> OptimumSearch<'_> {
        OptimumSearch::LeftOut
    }
}

/// Computes a constant of an instance.
struct ConstantOf(Constant);

impl Visitor for ConstantOf {
    type Out = Option<f64>;

    fn visit<P: Problem + 'static>(self, problem: P) -> Self::Out {
        ProblemConstants::default().get(&problem, self.0)
    }

    fn visit_custom(self, _: Box<dyn Any>) -> Option<Self::Out> {
        Some(None)
    }
}

impl Spec {
    /// This problem with a number as λ, if λ is written as a multiple of the smoothness of the losses without the penalty
    /// on the instance of this seed; `None` if λ is a number already, or the problem has none.
    ///
    /// # Errors
    /// A [`Fault`] of `l2` if the smoothness is not known, or the one that the instance has.
    pub fn with_number_as_penalty(
        &self,
        seed: u64,
        files: &dyn Files,
    ) -> Result<Option<Self>, Fault> {
        let mut resolved = self.clone();
        let Some(penalty) = resolved.penalty_mut() else { return Ok(None) };
        let Penalty::Multiple(multiple) = *penalty else { return Ok(None) };
        let number = multiple.written().1;
        let constant = multiple.constant();
        // The smoothness without the penalty does not depend on it.
        *penalty = Penalty::Number(1.0);
        let probed = ProbedFiles(files);
        let found = resolved.build(seed, &probed, OracleForm::Own, ConstantOf(constant))?;
        let smoothness = found.ok_or_else(|| Fault::new("l2", constant.reason_of_absence()))?;
        let lambda = Penalty::Number(number * smoothness);
        resolved.penalty_mut().into_iter().for_each(|penalty| *penalty = lambda);
        Ok(Some(resolved))
    }
}
