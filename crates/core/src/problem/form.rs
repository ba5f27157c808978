//! The form of the oracle with which an instance is built, and what is called with the instance.

use super::exact::Exact;
use super::fault::{Fault, MOST_DIMENSIONS};
use super::oracle::Problem;
use super::twin::Twin;
use std::any::Any;

/// The oracle with which an instance is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OracleForm {
    /// The oracle of the problem itself.
    Own,
    /// An oracle without noise, which returns the mean field ([`Exact`]).
    Exact,
    /// The problem's oracle, linearised at θ* for each draw ([`Twin`]).
    Twin,
}

impl OracleForm {
    /// Wraps a problem so that its oracle has this form, calls the visitor with it, and returns what the
    /// visitor returns.
    ///
    /// # Errors
    /// If a twin is asked for, which needs d × d matrices, and d is above [`MOST_DIMENSIONS`], or the facts at θ* are not
    /// known. Its message names the key `bias`, since manifests ask for twins by it alone, and only on fields that are not
    /// linear.
    pub fn visit<P: Problem + 'static, V: Visitor>(
        self,
        problem: P,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        Ok(match self {
            Self::Own => visitor.visit(problem),
            Self::Exact => visitor.visit(Exact::new(problem)),
            Self::Twin if problem.dim() > MOST_DIMENSIONS => {
                let d = problem.dim();
                let message = format!(
                    "`bias` needs d × d matrices on a field that is not linear: d must be at most {MOST_DIMENSIONS}; here it is {d}"
                );
                return Err(Fault::new("dimension", message));
            }
            Self::Twin if !problem.knows_facts_at_optimum() => {
                let message = "`bias` needs the Jacobians of the clients at θ*, which are not known of this problem";
                return Err(Fault::new("", message));
            }
            Self::Twin => visitor.visit(Twin::new(problem)),
        })
    }
}

/// A generic function of a problem, called when its type is known.
pub trait Visitor {
    /// What the visitor returns.
    type Out;
    /// Does its work with the instance.
    fn visit<P: Problem + 'static>(self, problem: P) -> Self::Out;
    /// Does its work with an instance of a problem that is defined outside of this crate, as
    /// [`super::custom::CustomProblem::build`] returns it: a box around a boxed `Instance` of the module `algorithm`, a
    /// type that this module does not know. `None` if this visitor cannot, as by default.
    fn visit_custom(self, _built: Box<dyn Any>) -> Option<Self::Out>
    where
        Self: Sized,
    {
        None
    }
}
