//! Exact first and second moments of the built-in algorithms on linear fields, without sampling:
//! E‖θ_t − θ*‖², mean and covariance at every round and at stationarity, the limits of infinitely
//! many replicates. The terms of an algorithm say what its rounds are ([`crate::algorithm::rounds`]),
//! and [`crate::theory::exact`] knows the moments of rounds.

use crate::algorithm::Component;
use crate::algorithm::rounds::{
    ProblemSize, constant_rounds, constant_rounds_unchecked, rounds_up_to, single_steps,
    variates_atom,
};
use crate::federated::Variates;
use crate::kernel::axpy;
use crate::problem::Facts;
use crate::round_program::Program;
use crate::theory::effort::Effort;
use crate::theory::exact::{
    CovarianceBlocks, Cycle, Moments, MomentsError, ProgramMoments, ProgramSizes, SpectralRadii,
    closes,
};

/// The version of these computations. It changes whenever a bit of their results changes,
/// so that cached moments of another version are recomputed.
pub const VERSION: u32 = 6;

/// The exact moments of an algorithm on a problem.
pub struct ExactMoments<'a> {
    facts: &'a dyn Facts,
    components: &'a [Component],
}

/// N and d of a problem.
fn size(facts: &dyn Facts) -> ProblemSize {
    ProblemSize { clients: facts.clients(), dimension: facts.dim() }
}

/// Whether the server weighs the progress of clients whose shares are unequal (FedNova): programs do not have these
/// weights.
fn weighs_unequal_shares(facts: &dyn Facts, run: &Component) -> bool {
    let shares = facts.unequal_shares();
    shares.is_some() && run.terms.progress_weights(facts.clients(), shares).is_some()
}

impl<'a> ExactMoments<'a> {
    /// The moments of an algorithm that is made of these runs.
    ///
    /// # Errors
    /// Why second moments do not close, or why they are not followed.
    pub fn new(facts: &'a dyn Facts, components: &'a [Component]) -> Result<Self, MomentsError> {
        closes(facts)?;
        let has_part = components[0].terms.cohort.is_some_and(|size| size < facts.clients());
        if has_part && facts.unequal_shares().is_some() {
            return Err(MomentsError::UnequalPart);
        }
        if components.iter().any(|run| weighs_unequal_shares(facts, run)) {
            return Err(MomentsError::UnequalProgress);
        }
        constant_rounds(components, size(facts))?;
        Ok(Self { facts, components })
    }

    /// The rounds up to a number.
    fn program(&self, rounds: u64) -> Result<Program, MomentsError> {
        Ok(rounds_up_to(self.components, size(self.facts), rounds)?)
    }

    /// The moments at these rounds, in increasing order, from θ_0 = `start`, d numbers. The estimate is the mean over
    /// the rounds after `burn_in`, if that is given.
    ///
    /// # Errors
    /// Why there are none.
    pub fn at_rounds(
        &self,
        start: &[f64],
        rounds: &[u64],
        burn_in: Option<u64>,
    ) -> Result<Vec<Moments>, MomentsError> {
        let program = self.program(rounds.last().copied().unwrap_or(0))?;
        let variates = variates_atom(self.components);
        ProgramMoments::new(&program, self.facts, variates)?.at_rounds(start, rounds, burn_in)
    }

    /// The moments of one run under a coin at the end of rounds of `per_round` local
    /// steps each, from θ_0 = `start`: the second reading of SCAFFLSA H1 (Theorem 5.1).
    ///
    /// # Errors
    /// Why there are none: there are several runs, or none under a coin.
    pub fn at_rounds_of_steps(
        &self,
        per_round: u64,
        start: &[f64],
        rounds: &[u64],
    ) -> Result<Vec<Moments>, MomentsError> {
        let [Component { terms, .. }] = self.components else {
            return Err(MomentsError::SeveralRuns);
        };
        let program = single_steps(terms, size(self.facts))?;
        let variates = variates_atom(self.components);
        let steps = ProgramMoments::new(&program, self.facts, variates)?;
        let ends: Vec<u64> = rounds.iter().map(|round| round * per_round).collect();
        let mut found = steps.at_rounds(start, &ends, None)?;
        for (moments, round) in found.iter_mut().zip(rounds) {
            moments.round = *round;
            moments.sq_error_average = f64::NAN;
        }
        Ok(found)
    }

    /// E‖θ̂_t − θ̂'_t‖² of two copies on the same draws, one from θ_0 = `start` and one from θ*, at
    /// these rounds, in increasing order. Their difference follows the same recursion without its
    /// constant terms.
    ///
    /// # Errors
    /// Why it is not known: clients communicate by a coin.
    pub fn coupled(&self, start: &[f64], rounds: &[u64]) -> Result<Vec<f64>, MomentsError> {
        if self.components[0].terms.coin().is_some() {
            return Err(MomentsError::RandomLength);
        }
        let program = self.program(rounds.last().copied().unwrap_or(0))?;
        ProgramMoments::new(&program, self.facts, None)?.coupled(start, rounds)
    }

    /// The stationary moments of the estimate after a cycle, and its block of second moments; if the algorithm is one run
    /// with control variates, also the blocks of the corrections.
    ///
    /// # Errors
    /// Why there are none: second moments are not proven to converge.
    pub fn stationary(&self) -> Result<(Moments, CovarianceBlocks), MomentsError> {
        // Rounds repeat from the second on.
        let program = self.program(2)?;
        let cycle = Cycle::new(&program, self.facts, variates_atom(self.components))?;
        let (mut phases, blocks) = cycle.stationary()?;
        // Those after the last round of the cycle.
        let moments = phases.pop().ok_or(MomentsError::NoPeriod)?;
        Ok((moments, blocks))
    }

    /// The spectral radii of a round, infinite if moments are infinite after one; `None` if the second
    /// moments' rate of growth does not settle.
    pub fn radii(&self) -> Option<SpectralRadii> {
        let program = self.program(2).ok()?;
        Cycle::new(&program, self.facts, None).ok()?.radii()
    }
}

fn sizes(facts: &dyn Facts, components: &[Component]) -> ProgramSizes {
    ProgramSizes::new(&constant_rounds_unchecked(components, size(facts)), facts)
}

/// The effort of moments of an algorithm up to round `rounds`, stored at `rows` rounds.
pub fn effort(facts: &dyn Facts, components: &[Component], rounds: u64, rows: usize) -> Effort {
    // Local steps whose size falls are prepared in each round.
    let has_decay = components[0].terms.decay.is_some();
    let prepared = if has_decay { rounds.max(1) } else { 1 };
    sizes(facts, components).effort(prepared, rounds, rows)
}

/// The effort of [`ExactMoments::stationary`], with the blocks of all clients.
pub fn stationary_effort(facts: &dyn Facts, components: &[Component]) -> Effort {
    let has_variates = components.iter().any(|run| run.terms.variates != Variates::None);
    let n = facts.clients() as f64;
    let d = facts.dim() as f64;
    let blocks = if has_variates { 6.0 * n * d * d } else { 0.0 };
    sizes(facts, components).at_rest(1) + Effort::new(blocks, blocks)
}

/// Whether the means of all runs of an algorithm converge, from every start, where draws are
/// independent; close to θ\* if the field is curved. `per_step` says that under a coin rounds end after
/// a fixed number of local steps. False as well if this is not known: for a part of clients of unequal
/// shares, or a state of too many coordinates.
pub fn means_converge(facts: &dyn Facts, components: &[Component], per_step: bool) -> bool {
    // Means of runs do not depend on each other.
    components.iter().all(|run| {
        if weighs_unequal_shares(facts, run) {
            return false;
        }
        let alone = std::slice::from_ref(run);
        let of_steps = if per_step { single_steps(&run.terms, size(facts)).ok() } else { None };
        let program = of_steps.unwrap_or_else(|| constant_rounds_unchecked(alone, size(facts)));
        Cycle::of_means(&program, facts).is_ok_and(|cycle| cycle.check_means().is_ok())
    })
}

/// The mean that the rounds of a run leave as it is, d numbers, where draws are independent and all shares are equal: it is
/// lim E θ_t if means converge. `None` if there is none, or if it is not known.
pub fn fixed_point(facts: &dyn Facts, run: &Component) -> Option<Vec<f64>> {
    let alone = std::slice::from_ref(run);
    ExactMoments::new(facts, alone).ok()?;
    let program = constant_rounds(alone, size(facts)).ok()?;
    let mut point = Cycle::of_means(&program, facts).ok()?.biases().ok()?.pop()?;
    axpy(1.0, facts.optimum(), &mut point);
    Some(point)
}

#[cfg(test)]
mod tests;
