//! The rounds of a frontier's algorithms as programs, on a problem whose clients are of types.

use super::curve::ErrorCurve;
use super::{FrontierAlgorithm, MethodRun, Search};
use crate::problem::Facts;
use crate::program::Program;
use crate::theory::linear::LocalUpdate;
use crate::theory::moments::{AlgorithmModel, Correction, RunModel, constant};
use crate::theory::program::{KnownSteps, Outline, OutlinedRun, OutlinedRuns, Squares, Type};

/// A problem with its clients in types, and what is searched for on it.
pub struct TypedProblem<'a> {
    /// The problem.
    pub facts: &'a dyn Facts,
    /// The types.
    pub types: Vec<Type>,
    /// What is searched for.
    pub search: &'a Search,
    /// The noise of the types' oracles.
    pub known: KnownSteps,
}

/// A built-in algorithm in the type of its exact moments.
pub fn model(run: &MethodRun) -> AlgorithmModel<'static> {
    let MethodRun { method, local_steps, step_size, .. } = *run;
    let correction = if method.is_corrected() { Correction::Kept } else { Correction::None };
    let (steps, batch) = match method {
        FrontierAlgorithm::Sgd | FrontierAlgorithm::Scaffnew => (1, 1),
        FrontierAlgorithm::MinibatchSgd => (1, local_steps),
        _ => (local_steps, 1),
    };
    let server_step = run.server_step();
    let runs = method.weights().iter().enumerate().map(|(r, &weight)| {
        let step = (r + 1) as f64 * step_size;
        let update = LocalUpdate { step, steps, batch, proximal: 0.0 };
        RunModel { weight, update: Box::new(move |_| update), server_step, correction }
    });
    let coin = (method == FrontierAlgorithm::Scaffnew).then(|| 1.0 / local_steps as f64);
    AlgorithmModel {
        runs: runs.collect(),
        cohort: usize::MAX,
        common: method.shares_draws(),
        coin,
        burn_in: None,
        decay: None,
    }
}

impl TypedProblem<'_> {
    /// How many clients of each type there are among N.
    pub fn counts(&self, clients: u64) -> impl Iterator<Item = f64> {
        let factor = clients as f64 / self.facts.clients() as f64;
        self.types.iter().map(move |t| libm::round(t.count * factor))
    }

    /// What `then` makes of the second moments of a method's rounds.
    ///
    /// # Errors
    /// Why there are none.
    pub fn squares<T>(
        &self,
        run: &MethodRun,
        known: &KnownSteps,
        then: impl FnOnce(&mut Squares<'_>) -> T,
    ) -> Result<T, String> {
        let program = match (run.method, &self.search.own) {
            (FrontierAlgorithm::Own(_), Some(own)) => own.program(run)?,
            (FrontierAlgorithm::Own(_), None) => return Err("its code is not at hand".into()),
            _ => {
                // All clients do the same.
                let program = constant((1, self.facts.dim()), &model(run));
                Program { clients: self.facts.clients(), ..program }
            }
        };
        let built_in = !run.method.is_own();
        let known = built_in.then(|| (self.types.clone(), known));
        let mut found = Squares::new(&program, self.facts, &self.search.start, known)?;
        if built_in && run.clients != self.facts.clients() as u64 {
            found.set_counts(self.counts(run.clients));
        }
        Ok(then(&mut found))
    }

    /// The outline of a method's rounds, if there is one: not of random numbers of local steps, and of no method that
    /// is defined outside of this crate.
    pub fn outline(&self, run: &MethodRun, known: &KnownSteps) -> Option<Outline> {
        let method = run.method;
        if method.is_own() || method == FrontierAlgorithm::Scaffnew {
            return None;
        }
        let runs = model(run).runs.into_iter().map(|one| OutlinedRun {
            weight: one.weight,
            update: (one.update)(0),
            server_step: one.server_step,
        });
        let runs = OutlinedRuns {
            runs: runs.collect(),
            is_corrected: method.is_corrected(),
            is_common: method.shares_draws(),
        };
        Outline::new(runs, (self.facts, &self.types), &self.search.start, known)
    }

    /// The errors of a method with all its settings.
    ///
    /// # Errors
    /// Why they have no moments.
    pub fn curve(&self, run: &MethodRun) -> Result<ErrorCurve, String> {
        self.squares(run, &self.known.afresh(), |squares| ErrorCurve::new(squares))
    }
}
