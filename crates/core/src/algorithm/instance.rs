//! Problems of any type on which algorithms are launched.

use super::Spec;
use crate::federated::{
    Conditions, RoundClients, Run, RunsTogether, StatedPrice, Together, runs_together,
};
use crate::problem::{Facts, Problem};
use crate::round_program::Traced;
use std::any::Any;

/// A problem of any type on which algorithms can be launched.
pub trait Instance: Facts {
    /// A run of the algorithm on this problem, before its first round.
    fn launch<'p>(&'p self, spec: &Spec, from: &Conditions) -> Box<dyn Run + 'p>;
    /// The rounds of an algorithm as a program, or why they are none. The conditions are those of one of its runs.
    fn program(&self, spec: &Spec, from: &Conditions) -> Traced;
    /// How many of so many runs of the algorithm, which differ in their noise alone, go together;
    /// 1 if each goes alone.
    fn runs_together(&self, spec: &Spec, runs: u64) -> u64;
    /// The runs of the algorithm from these conditions, before their first round; `None` if runs
    /// of the algorithm go alone.
    fn launch_together<'p>(
        &'p self,
        spec: &Spec,
        from: &[Conditions<'_>],
    ) -> Option<Box<dyn RunsTogether + 'p>>;
    /// The clients at the start of a run whose rounds have this price.
    fn round_clients<'p>(&'p self, from: &Conditions, price: StatedPrice) -> RoundClients<'p>;
}

impl<P: Problem> Instance for P {
    fn launch<'p>(&'p self, spec: &Spec, from: &Conditions) -> Box<dyn Run + 'p> {
        spec.launch(self, from)
    }
    fn program(&self, spec: &Spec, from: &Conditions) -> Traced {
        spec.program(self, from)
    }
    fn runs_together(&self, spec: &Spec, runs: u64) -> u64 {
        let records = self.held_records();
        let entries = self.clients() * self.dim();
        spec.single_run().map_or(1, |terms| runs_together(records, entries, &terms, runs))
    }
    fn launch_together<'p>(
        &'p self,
        spec: &Spec,
        from: &[Conditions<'_>],
    ) -> Option<Box<dyn RunsTogether + 'p>> {
        let terms = spec.single_run()?;
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
    fn visit_custom(self, built: Box<dyn Any>) -> Option<Self::Out> {
        built.downcast::<Self::Out>().ok().map(|instance| *instance)
    }
}
