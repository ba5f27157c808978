//! Algorithms that are defined outside of this crate, whose rounds are programs.

use super::curve::{Crossing, ErrorCurve};
use super::search::TypedProblem;
use super::{MethodRun, OwnRounds, Search};
use crate::program::Traced;
use crate::theory::program::Squares;

impl TypedProblem<'_> {
    /// What `then` makes of the second moments of a method's rounds.
    ///
    /// # Errors
    /// Why there are none.
    pub fn of_own<T>(
        &self,
        run: &MethodRun,
        own: Option<&dyn OwnRounds>,
        then: impl FnOnce(&Squares<'_>) -> T,
    ) -> Result<T, String> {
        let rounds = |own: &dyn OwnRounds| -> Traced { own.program(run) };
        let program = own.map_or_else(|| Err("its code is not at hand".into()), rounds)?;
        Squares::new(&program, self.facts, &self.start).map(|found| then(&found))
    }

    /// Where the error comes below these squares and stays, and where it first is below each.
    /// It may oscillate, and is followed until it provably stays.
    pub fn own_crossings(
        &self,
        run: &MethodRun,
        search: &Search,
        squares: &[f64],
    ) -> Vec<[Option<Crossing>; 2]> {
        let curve = self.of_own(run, search.own(), ErrorCurve::of_squares);
        let Ok(mut curve) = curve else { return vec![[None; 2]; squares.len()] };
        let both = |square: &f64| [curve.proven(*square), curve.first_passage(*square)];
        squares.iter().map(both).collect()
    }
}
