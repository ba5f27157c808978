//! Problems of any type on which algorithms are launched.

use super::Spec;
use crate::federated::{
    Conditions, RoundClients, Run, RunsTogether, StatedPrice, Together, runs_together,
};
use crate::problem::{Facts, Problem};
use crate::round_program::Traced;
use std::any::Any;

/// A problem on which algorithms can be launched. It hides the problem's type, which the engine is compiled for, so
/// that runners can hold problems of all types.
pub trait Instance: Facts {
    /// A run of the algorithm on this problem, before its first round.
    fn launch<'p>(&'p self, spec: &Spec, from: &Conditions) -> Box<dyn Run + 'p>;
    /// The rounds of the algorithm on this problem as a program, or why they are none. The code of a custom algorithm
    /// is traced in a run from these conditions.
    fn program(&self, spec: &Spec, from: &Conditions) -> Traced;
    /// How many of `runs` replicates of the algorithm should be launched together, because that takes less time than
    /// one after the other; 1 if each should be launched alone, as where [`Self::launch_together`] is not possible.
    fn runs_together(&self, spec: &Spec, runs: u64) -> u64;
    /// One run of the algorithm from each of these conditions, which go on together, before their first round. `None`
    /// if the algorithm is more than one run of the engine, such as an averaged one: then each must be launched alone.
    ///
    /// # Panics
    /// If clients communicate by a coin, or only a part of them takes part and runs share no calls.
    fn launch_together<'p>(
        &'p self,
        spec: &Spec,
        from: &[Conditions<'_>],
    ) -> Option<Box<dyn RunsTogether + 'p>>;
    /// The clients of this problem at the start of a run of a custom algorithm whose rounds have this price.
    fn round_clients<'p>(&'p self, from: &Conditions, price: StatedPrice) -> RoundClients<'p>;
}

impl<P: Problem> Instance for P {
    fn launch<'p>(&'p self, spec: &Spec, from: &Conditions) -> Box<dyn Run + 'p> {
        spec.for_launch(self).launch(self, from)
    }
    fn program(&self, spec: &Spec, from: &Conditions) -> Traced {
        spec.for_launch(self).program(self, from)
    }
    fn runs_together(&self, spec: &Spec, runs: u64) -> u64 {
        let gain = self.joint_gain();
        let entries = self.clients() * self.dim();
        spec.for_launch(self)
            .single_run()
            .map_or(1, |terms| runs_together(gain, entries, &terms, runs))
    }
    fn launch_together<'p>(
        &'p self,
        spec: &Spec,
        from: &[Conditions<'_>],
    ) -> Option<Box<dyn RunsTogether + 'p>> {
        let terms = spec.for_launch(self).single_run()?;
        Some(Box::new(Together::new(self, &terms, from)))
    }
    fn round_clients<'p>(&'p self, from: &Conditions, price: StatedPrice) -> RoundClients<'p> {
        RoundClients::new(self, from, price)
    }
}

/// Makes an [`Instance`] of whatever problem it visits.
pub struct Boxed;

impl crate::problem::Visitor for Boxed {
    type Out = Box<dyn Instance>;
    fn visit<P: Problem + 'static>(self, problem: P) -> Self::Out {
        Box::new(problem)
    }
    /// The instance of a problem that is defined outside of this crate, whose builder made it as a `Box<dyn Instance>`;
    /// `None` if it made anything else.
    fn visit_custom(self, built: Box<dyn Any>) -> Option<Self::Out> {
        built.downcast::<Self::Out>().ok().map(|instance| *instance)
    }
}
