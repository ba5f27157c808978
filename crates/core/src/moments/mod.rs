//! Exact first and second moments of the built-in algorithms on linear fields, without sampling:
//! E‖θ_t − θ*‖², mean and covariance at every round and at stationarity, the limits of infinitely
//! many replicates. The terms of an algorithm say what its rounds are ([`crate::algorithm::rounds`]),
//! as a program of operations, and [`crate::theory::exact`] knows the moments of programs.
//!
//! Second moments *close* where the field is linear and draws are independent: those before a round determine those
//! after it.

use crate::algorithm::Component;
use crate::algorithm::rounds::{
    LONGEST_PERIOD, ProblemSize, constant_rounds, constant_rounds_unchecked, rounds_up_to,
    single_steps, variates_atom,
};
use crate::federated::Variates;
use crate::kernel::axpy;
use crate::problem::Facts;
use crate::round_program::Program;
use crate::theory::effort::Effort;
use crate::theory::exact::{
    CovarianceBlocks, Cycle, Moments, MomentsError, ProgramMoments, ProgramSizes, SpectralRadii,
    check_passes, closes,
};

/// The version of these computations. It changes whenever a bit of their results changes,
/// so that cached moments of another version are recomputed.
pub const VERSION: u32 = 6;

/// The exact moments of an algorithm on a problem whose second moments close.
pub struct ExactMoments<'a> {
    facts: &'a dyn Facts,
    components: &'a [Component],
}

/// N and d of a problem, for which programs are written.
fn size(facts: &dyn Facts) -> ProblemSize {
    ProblemSize { clients: facts.clients(), dimension: facts.dim() }
}

/// Whether the server weighs the progress of clients by their numbers of local steps (FedNova) where their shares are
/// unequal. Such weights are not those of the programs that are written here, which take shares to be equal: so no
/// moments are given then.
fn weighs_unequal_shares(facts: &dyn Facts, run: &Component) -> bool {
    let shares = facts.unequal_shares();
    shares.is_some() && run.terms.progress_weights(facts.clients(), shares).is_some()
}

impl<'a> ExactMoments<'a> {
    /// The exact moments of an algorithm that is made of these runs, one or more; nothing is computed yet.
    ///
    /// # Errors
    /// Why second moments do not close on this problem, or are not followed for this algorithm: the field is curved,
    /// draws depend on each other and are no whole passes over few records, a part of clients of unequal shares is drawn
    /// whose shares are divided by their random sum, FedNova weighs unequal shares, or no program says what the rounds
    /// do, as for custom algorithms.
    pub fn new(facts: &'a dyn Facts, components: &'a [Component]) -> Result<Self, MomentsError> {
        closes(facts)?;
        let terms = &components[0].terms;
        if terms.participation.divides_by_random_sum(terms.cohort, facts.unequal_shares()) {
            return Err(MomentsError::UnequalPart);
        }
        if components.iter().any(|run| weighs_unequal_shares(facts, run)) {
            return Err(MomentsError::UnequalProgress);
        }
        // Written to see whether a program can say what the rounds do.
        let program = constant_rounds(components, size(facts))?;
        check_passes(&program, facts)?;
        Ok(Self { facts, components })
    }

    /// The program of the algorithm's rounds 1 to `rounds`, and of all later ones if step sizes are constant. It does
    /// not fail, since [`Self::new`] has checked that there is one.
    fn program(&self, rounds: u64) -> Result<Program, MomentsError> {
        Ok(rounds_up_to(self.components, size(self.facts), rounds)?)
    }

    /// The moments of the estimate after each of these rounds, which are in increasing order, of runs from θ_0 =
    /// `start`, d numbers. With `burn_in` the estimate is the mean of the iterates after that round (up to it, the last
    /// iterate), and `sq_error_average` is NaN; otherwise it is the last iterate, and `sq_error_average` is the mean
    /// square error of the mean of θ_1 to θ_t. Moments that are infinite, as where local steps expand under a coin, are
    /// given as infinity.
    ///
    /// # Errors
    /// Why the moments are not known.
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

    /// The moments of one run under a coin from θ_0 = `start`, where a round is `per_round` local steps whether or not
    /// clients communicate in them, after each of these rounds, in increasing order: the second reading of SCAFFLSA H1
    /// (Theorem 5.1). The mean of the iterates over rounds is not followed: `sq_error_average` is NaN.
    ///
    /// # Errors
    /// Why the moments are not known: there are several runs, or one that is not under a coin.
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

    /// E‖θ_t − θ'_t‖² after each of these rounds, which are in increasing order, for two runs of the algorithm on the
    /// same draws, one from θ_0 = `start` and the other from θ*. Their difference follows the recursion of the state
    /// without its constant terms. It shows how fast a run forgets where it began.
    ///
    /// # Errors
    /// Why it is not known, such as that clients communicate by a coin.
    pub fn coupled(&self, start: &[f64], rounds: &[u64]) -> Result<Vec<f64>, MomentsError> {
        self.check_coupled()?;
        let program = self.program(rounds.last().copied().unwrap_or(0))?;
        ProgramMoments::new(&program, self.facts, None)?.coupled(start, rounds)
    }

    /// E‖θ_t − θ'_t‖² + Σ_k π_k ℓ_k² E‖ξ_k − ξ'_k‖² of the two runs of [`Self::coupled`]: their squared distance in the
    /// norm of THEORY (7.1). `None` unless the algorithm is one run with control variates.
    ///
    /// # Errors
    /// As [`Self::coupled`].
    pub fn coupled_with_variates(
        &self,
        start: &[f64],
        rounds: &[u64],
    ) -> Result<Option<Vec<f64>>, MomentsError> {
        self.check_coupled()?;
        let program = self.program(rounds.last().copied().unwrap_or(0))?;
        let variates = variates_atom(self.components);
        ProgramMoments::new(&program, self.facts, variates)?.coupled_with_variates(start, rounds)
    }

    /// An error if the distance of two runs on the same draws is not known, since clients communicate by a coin.
    fn check_coupled(&self) -> Result<(), MomentsError> {
        if self.components[0].terms.coin().is_some() {
            return Err(MomentsError::RandomLength);
        }
        Ok(())
    }

    /// The limits of the moments of the estimate as the number of rounds grows, and of its covariance block; if the
    /// algorithm is one run with control variates, also of the blocks of the corrections.
    ///
    /// # Errors
    /// Why there are none, such as that second moments are not proven to converge, or that step sizes fall.
    pub fn stationary(&self) -> Result<(Moments, CovarianceBlocks), MomentsError> {
        // Round 2 repeats.
        let program = self.program(2)?;
        let cycle = Cycle::new(&program, self.facts, variates_atom(self.components))?;
        let (mut phases, blocks) = cycle.stationary()?;
        // The moments after the last round of the cycle, which is its only one.
        let moments = phases.pop().ok_or(MomentsError::NoPeriod)?;
        Ok((moments, blocks))
    }

    /// The spectral radii of the maps that one round, from the second on, applies to the mean and to the second moments
    /// of the state: below 1 where they converge, and infinite if moments are infinite after one round. `None` if step
    /// sizes fall, the state has too many coordinates, or the iteration that finds a radius does not settle. A radius
    /// is given as below 1 if and only if that is proven.
    pub fn radii(&self) -> Option<SpectralRadii> {
        let program = self.program(2).ok()?;
        Cycle::new(&program, self.facts, None).ok()?.radii()
    }
}

/// The sizes of the algorithm's program, from which its effort follows. Also for an algorithm without exact moments.
fn sizes(facts: &dyn Facts, components: &[Component]) -> ProgramSizes {
    ProgramSizes::new(&constant_rounds_unchecked(components, size(facts)), facts)
}

/// The effort (multiplications and memory) of computing the moments of an algorithm up to round `rounds` and storing
/// them at `rows` of the rounds. It is estimated before anything is computed, to refuse what would take too long. Where
/// a round is a fixed number of local steps, `rounds` is the number of all local steps.
pub fn effort(facts: &dyn Facts, components: &[Component], rounds: u64, rows: usize) -> Effort {
    // Local steps are prepared once, or in each round if their size falls.
    let has_decay = components[0].terms.decay.is_some();
    let preparations = if has_decay { rounds.max(1) } else { 1 };
    sizes(facts, components).effort(preparations, rounds, rows)
}

/// The effort (multiplications and memory) of [`ExactMoments::stationary`], with the covariance blocks of all clients'
/// corrections if there are some, for which six d × d matrices are counted for each client. It is estimated before
/// anything is computed, to refuse what would take too long.
pub fn stationary_effort(facts: &dyn Facts, components: &[Component]) -> Effort {
    let has_variates = components.iter().any(|run| run.terms.variates != Variates::None);
    let n = facts.clients() as f64;
    let d = facts.dim() as f64;
    let blocks = if has_variates { 6.0 * n * d * d } else { 0.0 };
    sizes(facts, components).at_rest(1) + Effort::new(blocks, blocks)
}

/// Whether the mean E θ_t of each of an algorithm's runs is known to converge where draws are independent: from every
/// start if the field is linear, and from starts close to θ\* if it is curved. `per_step` says that under a coin a
/// round is a fixed number of local steps. False also if it is not known, such as for a part of the clients with
/// unequal shares, or a state of too many coordinates. Not for custom algorithms, whose terms do not say what their
/// rounds do, nor for step sizes that fall, which are taken to be those of the first round.
pub fn means_converge(facts: &dyn Facts, components: &[Component], per_step: bool) -> bool {
    // The means of the runs do not depend on each other.
    components.iter().all(|run| mean_converges(facts, run, per_step))
}

/// [`means_converge`] for one run, whatever its weight is. False for FedNova on unequal shares, for an adaptive server,
/// for a schedule of clients in a drawn order or of too many rounds, for stragglers and for FedLin with a part of the
/// clients. If `per_step` is said of a run whose single local steps no program says, such as one without a coin, it is
/// asked of the rounds of its terms.
fn mean_converges(facts: &dyn Facts, run: &Component, per_step: bool) -> bool {
    let terms = &run.terms;
    let scheme = &terms.participation;
    let has_program = !scheme.is_shuffled() && scheme.period(facts.clients()) <= LONGEST_PERIOD;
    let has_cohort_twice =
        terms.variates == Variates::Fresh && terms.draws_clients(facts.clients());
    let is_open =
        terms.server_optimiser.is_some() || terms.stragglers.is_some() || has_cohort_twice;
    if weighs_unequal_shares(facts, run) || is_open || !has_program {
        return false;
    }
    let alone = std::slice::from_ref(run);
    let of_steps = if per_step { single_steps(&run.terms, size(facts)).ok() } else { None };
    let program = of_steps.unwrap_or_else(|| constant_rounds_unchecked(alone, size(facts)));
    Cycle::of_means(&program, facts).is_ok_and(|cycle| cycle.check_means().is_ok())
}

/// lim E θ_t of a run, d numbers: the mean of θ that its rounds leave as it is. `None` if means do not converge, or if
/// it is not known, such as where second moments do not close or θ* is not unique. The weight of the run is 1: any other would enter the
/// result. Step sizes that fall are taken to be those of the first round.
pub fn fixed_point(facts: &dyn Facts, run: &Component) -> Option<Vec<f64>> {
    // Rounding errors may hide that rounds leave several means as they are.
    if facts.optimum_set().is_some() {
        return None;
    }
    let alone = std::slice::from_ref(run);
    ExactMoments::new(facts, alone).ok()?;
    let program = constant_rounds(alone, size(facts)).ok()?;
    let mut point = Cycle::of_means(&program, facts).ok()?.biases().ok()?.pop()?;
    axpy(1.0, facts.optimum(), &mut point);
    Some(point)
}

#[cfg(test)]
mod tests;
