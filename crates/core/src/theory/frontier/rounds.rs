//! The rounds of a search's algorithms on a problem whose clients are of types.

use super::Search;
use super::curve::ErrorCurve;
use crate::problem::Facts;
use crate::round_program::{LocalRuns, Program, RoundSettings, Rounds};
use crate::theory::exact::{KnownSteps, MomentsError, Outline, Squares, Type};

/// A problem with its clients in types, and what is searched for on it.
pub struct TypedProblem<'a> {
    /// What is known of the problem.
    pub facts: &'a dyn Facts,
    /// The types of the problem's clients.
    pub types: Vec<Type>,
    /// What is searched for.
    pub search: &'a Search,
    /// A cache that keeps the matrices of C_k, THEORY (1.2), of the types' oracles. Each step size begins with a cache
    /// of local steps that shares them, [`KnownSteps::afresh`].
    pub known: KnownSteps,
}

impl<'a> TypedProblem<'a> {
    /// The rounds of the algorithm at this place of [`Search::known`].
    pub fn rounds(&self, algorithm: usize) -> &'a dyn Rounds {
        &*self.search.known[algorithm]
    }

    /// n_g of each type among N = `clients`, in the problem's proportions. They are whole numbers, because the search
    /// refuses other numbers of clients.
    pub fn counts(&self, clients: u64) -> impl Iterator<Item = f64> {
        let factor = clients as f64 / self.facts.clients() as f64;
        self.types.iter().map(move |t| libm::round(t.count * factor))
    }

    /// Computes the second moments of an algorithm's rounds with these settings, THEORY (6.1), gives them to `then`,
    /// and returns its result: they borrow from the program of the rounds, which ends here. `known` is the cache of
    /// local steps of this step size.
    ///
    /// # Errors
    /// Why there are no second moments.
    pub fn squares<T>(
        &self,
        settings: &RoundSettings,
        known: &KnownSteps,
        then: impl FnOnce(&mut Squares<'_>) -> T,
    ) -> Result<T, MomentsError> {
        let rounds = self.rounds(settings.algorithm);
        let mut program = rounds.program(settings)?;
        let mut types_and_steps = None;
        if rounds.treats_clients_alike() {
            program = Program { clients: self.facts.clients(), ..program };
            types_and_steps = Some((self.types.clone(), known));
        }
        let mut found = Squares::new(&program, self.facts, &self.search.start, types_and_steps)?;
        if settings.clients != self.facts.clients() as u64 {
            found.set_counts(self.counts(settings.clients));
        }
        Ok(then(&mut found))
    }

    /// The outline of an algorithm's rounds, THEORY (6.6); `None` if they are no runs of local steps, or second moments
    /// of the problem's field do not close. `known` is the cache of local steps of this step size.
    pub fn outline(&self, settings: &RoundSettings, known: &KnownSteps) -> Option<Outline> {
        let runs = self.rounds(settings.algorithm).local_runs(settings)?;
        Outline::new(runs, self.facts, &self.types, &self.search.start, known)
    }

    /// How many second moments must be followed together: for runs of local steps those of a pair of runs, and
    /// otherwise those of the whole state.
    ///
    /// # Errors
    /// Why there are no second moments.
    pub fn moments(&self, settings: &RoundSettings) -> Result<usize, MomentsError> {
        match self.rounds(settings.algorithm).local_runs(settings) {
            Some(runs) => Ok(moments_of_runs(&runs, self.facts.dim(), self.types.len())),
            None => self.squares(settings, &self.known, |squares| squares.size()),
        }
    }

    /// The errors over rounds of an algorithm with all its settings, with local steps of its own that no cache keeps.
    ///
    /// # Errors
    /// Why there are no second moments.
    pub fn curve(&self, settings: &RoundSettings) -> Result<ErrorCurve, MomentsError> {
        self.squares(settings, &self.known.afresh(), |squares| ErrorCurve::new(squares))
    }
}

/// The most moments of a pair of runs in `d` dimensions. The moments of different pairs do not depend on each
/// other.
fn moments_of_runs(runs: &LocalRuns, d: usize, types: usize) -> usize {
    let is_one_run = runs.runs.len() == 1;
    if runs.is_corrected {
        products_of(types * d + 1, is_one_run) + types * products_of(d, is_one_run)
    } else {
        products_of(d + 1, is_one_run)
    }
}

/// The number of different products x_i y_j of two vectors of n numbers, where y is x if `is_one_run`.
fn products_of(n: usize, is_one_run: bool) -> usize {
    if is_one_run { n * (n + 1) / 2 } else { n * n }
}
