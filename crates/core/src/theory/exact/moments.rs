//! The exact moments of a program's rounds, one round after another: THEORY (4.9). Of a
//! vector that each client has, `mean` is the mean over a type of clients, and `own` a client's deviation from it,
//! THEORY (3.1).
//!
//! An atom is a vector of a round: a vector of its state, or the result of an operation. A round is prepared once for
//! states whose vectors have the same origins α θ* + β F̄_k(θ*), which coordinates leave out, THEORY (4.8), and then
//! applied to any number of states. The state may have several layers of second moments ([`super::layers`]).
//!
//! By THEORY (4.9) E‖θ_t − θ*‖² = ‖E θ_t − θ*‖² + tr Cov θ_t. For means over rounds the sum S of all θ_t − θ* is part
//! of the state; with a burn-in of b rounds S is set to 0 after round b, and the estimate's error is S/(t − b).

use super::error::MomentsError;
use super::form::Form;
use super::known::KnownSteps;
use super::noise::KnownMoments;
use super::pass::{check_lengths, check_passes};
use super::round::prepare;
use super::setup::{Origin, ProgramState, Setup};
use super::stages::PreparedRound;
use super::types::client_types;
use super::values::Moments;
use crate::kernel::difference;
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::round_program::{Level, Program};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// Checks that exact moments of programs can be computed on a problem: second moments after a round must follow from
/// second moments before it, so that the field must be linear and its draws independent, or passes over few records.
/// On the latter a program must consist of whole passes ([`check_passes`]).
///
/// # Errors
/// What it is not.
pub fn closes(facts: &dyn Facts) -> Result<(), MomentsError> {
    if !facts.linear() {
        Err(MomentsError::CurvedField)
    } else if !facts.independent() {
        check_lengths(facts)
    } else {
        Ok(())
    }
}

/// What identifies a prepared round.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct RoundKey {
    /// The place of the round among the program's different rounds.
    place: usize,
    /// The place of the round after it; `None` if there is none.
    next: Option<usize>,
    /// The bits of the origins of the state before it, and of the state after it, if they are given.
    origins: Vec<u64>,
}

/// The exact moments of a program on a problem with a linear field and independent draws.
pub struct ProgramMoments<'a> {
    pub(super) program: &'a Program,
    pub(super) setup: Setup<'a>,
    /// The rounds of the cycle that were prepared so far.
    pub(super) prepared: RefCell<HashMap<RoundKey, Rc<PreparedRound>>>,
    /// The atom of the state that has the control variates from the second round on; before that round they are 0.
    /// `None` if ψ of THEORY (4.10), which is made of them, is not followed.
    pub(super) variates: Option<usize>,
}

impl<'a> ProgramMoments<'a> {
    /// The moments of a program on a problem, with the mean of all estimates. `variates` is the atom of the state that
    /// has the control variates from the second round on; with it ψ is followed too.
    ///
    /// # Errors
    /// Why there are no moments.
    pub fn new(
        program: &'a Program,
        facts: &'a dyn Facts,
        variates: Option<usize>,
    ) -> Result<Self, MomentsError> {
        closes(facts)?;
        let average = true;
        Self::with_steps(program, facts, variates, average, KnownSteps::default())
    }

    /// [`Self::new`] without the mean of all estimates, for what is asked of a cycle alone.
    ///
    /// # Errors
    /// Why there are no moments.
    pub(super) fn without_average(
        program: &'a Program,
        facts: &'a dyn Facts,
        variates: Option<usize>,
    ) -> Result<Self, MomentsError> {
        closes(facts)?;
        let average = false;
        Self::with_steps(program, facts, variates, average, KnownSteps::default())
    }

    /// The means of a program alone, linearised at θ\* if the field is curved: local steps have no noise. Draws must be
    /// independent, which is not checked.
    ///
    /// # Errors
    /// Why there are no means.
    pub(super) fn of_means(
        program: &'a Program,
        facts: &'a dyn Facts,
    ) -> Result<Self, MomentsError> {
        let average = false;
        Self::with_steps(program, facts, None, average, KnownSteps::of_means())
    }

    /// The moments of a program with this cache of local steps, after a check that the program is for the problem's
    /// numbers of clients and dimensions. With `average` the mean of all estimates is followed too. Callers check
    /// [`closes`] unless the cache is of means alone.
    ///
    /// # Errors
    /// If it is not, if rounds end inside of passes over records, or if a part of clients of unequal shares is drawn
    /// whose shares are divided by their sum, which is random: their mean is no fixed map.
    fn with_steps(
        program: &'a Program,
        facts: &'a dyn Facts,
        variates: Option<usize>,
        average: bool,
        steps: KnownSteps,
    ) -> Result<Self, MomentsError> {
        if (program.clients, program.dimension) != (facts.clients(), facts.dim()) {
            return Err(MomentsError::OtherSize);
        }
        check_passes(program, facts)?;
        let shares = facts.unequal_shares();
        let has_random_sum = program
            .rounds
            .iter()
            .any(|round| round.participation.divides_by_random_sum(round.cohort, shares));
        if has_random_sum {
            return Err(MomentsError::UnequalCohort);
        }
        let (types, type_of) = client_types(program, facts);
        let setup = Setup::new(facts, types, type_of, average, steps);
        Ok(Self { program, setup, prepared: RefCell::default(), variates })
    }

    /// Round number `round`, prepared for a state with these origins, or found if it was prepared before; the next
    /// state has the origins `target`, if they are given.
    ///
    /// # Errors
    /// Why the moments of the round do not close, or if the program has no such round.
    pub(super) fn prepared(
        &self,
        round: u64,
        origins: &[Origin],
        target: Option<&[Origin]>,
    ) -> Result<Rc<PreparedRound>, MomentsError> {
        let place = self.program.place(round).ok_or(MomentsError::UnknownRound { round })?;
        let next = self.program.place(round + 1);
        let all_origins = origins.iter().chain(target.into_iter().flatten());
        let bits: Vec<u64> = all_origins.flat_map(Origin::bits).collect();
        let key = RoundKey { place, next, origins: bits };
        if let Some(known) = self.prepared.borrow().get(&key) {
            return Ok(known.clone());
        }
        let after: &[Level] = next.map_or(&[], |next| &self.program.rounds[next].state);
        let made =
            Rc::new(prepare(&self.setup, &self.program.rounds[place], origins, after, target)?);
        if round as usize + self.program.cycle > self.program.order.len() {
            // Other rounds come once.
            self.prepared.borrow_mut().insert(key, made.clone());
        }
        Ok(made)
    }

    /// The state before the first round, of which θ_0 = `start` is the only vector if the first round reads it. The
    /// coordinate that is the number 1 has the value `unit`: 1, or 0 for the difference of two runs. The state has no
    /// variance.
    pub(super) fn initial(&self, start: &[f64], unit: f64) -> ProgramState {
        let mut mean = vec![0.0; self.setup.before_state()];
        mean[0] = unit;
        let mut origins = Vec::new();
        if self.program.round(1).is_some_and(|first| !first.state.is_empty()) {
            mean.extend(difference(start, self.setup.facts.optimum()));
            origins.push(Origin::server(1.0));
        }
        let own = vec![Matrix::zeros(0, 0); self.setup.types.len()];
        let covariance = Matrix::zeros(mean.len(), mean.len());
        ProgramState { covariance, mean, own, origins, layers: 1 }
    }

    /// The state after a round, and the moments of the estimate θ_t after it, without ψ and without the mean of all
    /// estimates: THEORY (4.2) of the forms of the next state, and THEORY (4.9). The origins of `state` must be those
    /// for which the round was prepared. If the state has several layers, so has the covariance of θ_t, and no other
    /// number of its moments means anything. If second moments are infinite, covariances are NaN.
    pub(super) fn after(
        &self,
        round: &PreparedRound,
        state: &ProgramState,
    ) -> (ProgramState, Moments) {
        if round.infinite.is_some() {
            return without_second_moments(round, state);
        }
        let layers = state.layers;
        let mut known = KnownMoments::new(state, round.width);
        round.stages.iter().for_each(|stage| self.learn(&mut known, stage));
        let clients = round.ends.as_ref().filter(|_| layers == 1).map(|ends| {
            let types = self.setup.types.iter().enumerate();
            types
                .map(|(g, t)| {
                    let share = t.count * self.setup.facts.share(t.first);
                    share * known.square(g, &ends.mean[g], &ends.own[g])
                })
                .sum()
        });
        let result = &round.result;
        let left = result.times(&known.covariance, known.covariance.cols());
        let square = known.noise.with_coordinates(result, result, &left);
        let own = round.own_next.iter().zip(&known.own);
        let own = own.map(|(forms, own)| known.own_noise.of_forms(forms, own));
        let state = ProgramState {
            mean: round.next_mean(&known.mean),
            covariance: known.noise.of_forms(&round.next, &known.covariance),
            own: own.collect(),
            origins: round.origins.clone(),
            layers,
        };
        let found = Moments::at_rest(result.value(&known.mean), square);
        (state, Moments { sq_error_clients: clients, ..found })
    }

    /// The moments at these rounds, in increasing order, from θ_0 = `start`. The mean of all estimates must
    /// be followed, as [`Self::new`] does. The estimate is the mean of θ_t over the rounds after round `burn_in`,
    /// if that is given, and otherwise the last θ_t, which it is up to round `burn_in` too. The moments are cached with
    /// results: a change of a bit needs another [`crate::moments::VERSION`].
    ///
    /// # Errors
    /// Why there are no moments.
    pub fn at_rounds(
        &self,
        start: &[f64],
        rounds: &[u64],
        burn_in: Option<u64>,
    ) -> Result<Vec<Moments>, MomentsError> {
        self.followed(start, 1.0, rounds, burn_in)
    }

    /// The moments of [`Self::at_rounds`], where the number 1 is `unit`, which is 0 for the difference of two
    /// runs. With means over rounds the estimate is S/(t − b) of THEORY (4.9), where `burn_in` is b. After a round
    /// with infinite second moments the mean square error of such a mean is infinite too.
    fn followed(
        &self,
        start: &[f64],
        unit: f64,
        rounds: &[u64],
        burn_in: Option<u64>,
    ) -> Result<Vec<Moments>, MomentsError> {
        let d = self.setup.d;
        let mut state = self.initial(start, unit);
        // The difference of two runs is not weighted: it is 0 at θ* whatever the weights of the runs.
        let weight = if unit == 0.0 { 1.0 } else { self.program.start_weight };
        let estimate: Vec<f64> = start.iter().map(|x| weight * x).collect();
        let mean = difference(&estimate, self.setup.facts.optimum());
        let mut last = Moments::at_rest(mean, Matrix::zeros(d, d));
        let mut round = 0;
        let mut out = Vec::with_capacity(rounds.len());
        for &target in rounds {
            while round < target {
                round += 1;
                let prepared = self.prepared(round, &state.origins, None)?;
                (state, last) = self.after(&prepared, &state);
                if burn_in == Some(round) {
                    state.forget(1..=d);
                }
            }
            let averaged = round.saturating_sub(burn_in.unwrap_or(0));
            let average = (averaged > 0).then(|| {
                let n = averaged as f64;
                let mean = state.mean[1..=d].iter().map(|x| x / n).collect();
                let covariance =
                    Matrix::from_fn(d, d, |i, j| state.covariance[(1 + i, 1 + j)] / (n * n));
                let found = Moments::at_rest(mean, covariance);
                if last.sq_error.is_infinite() {
                    return Moments { sq_error: f64::INFINITY, ..found };
                }
                found
            });
            let estimate = average.as_ref().filter(|_| burn_in.is_some()).unwrap_or(&last);
            let at_server = last.sq_error;
            let ends = last.sq_error_clients;
            // The first term of ψ, THEORY (4.10).
            let square = if self.keeps_clients() { ends.unwrap_or(at_server) } else { at_server };
            out.push(Moments {
                round,
                sq_error_average: match burn_in {
                    Some(_) => f64::NAN,
                    None => average.as_ref().unwrap_or(&last).sq_error,
                },
                sq_error_clients: ends,
                lyapunov: self.lyapunov(&state, round, square),
                ..estimate.clone()
            });
        }
        Ok(out)
    }

    /// E‖θ_t − θ'_t‖² of two runs on the same draws, one from θ_0 = `start` and one from θ*, at these
    /// rounds, in increasing order: THEORY (4.9) of their difference, which is linear in θ_0 − θ*. Local steps must not
    /// end by a coin, which callers check.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn coupled(&self, start: &[f64], rounds: &[u64]) -> Result<Vec<f64>, MomentsError> {
        let found = self.followed(start, 0.0, rounds, None)?;
        Ok(found.iter().map(|moments| moments.sq_error).collect())
    }

    /// E‖θ_t − θ'_t‖² + Σ_k π_k ℓ_k² E‖ξ_k − ξ'_k‖² of the two runs of [`Self::coupled`], which begin with the same
    /// control variates: THEORY (4.10) of their difference, in which F̄_k(θ*) cancels. `None` if there are no variates, or
    /// it is not known where the state has them.
    ///
    /// # Errors
    /// Why it is not known otherwise.
    pub fn coupled_with_variates(
        &self,
        start: &[f64],
        rounds: &[u64],
    ) -> Result<Option<Vec<f64>>, MomentsError> {
        let found = self.followed(start, 0.0, rounds, None)?;
        Ok(found.iter().map(|moments| moments.lyapunov).collect())
    }
}

/// The state and the moments after a round whose local steps, of a random number, leave infinite second moments. The
/// mean may exist; the entries of covariances are NaN, and mean square errors are infinite.
fn without_second_moments(round: &PreparedRound, state: &ProgramState) -> (ProgramState, Moments) {
    let layers = state.layers;
    let known = round.known_mean(&state.mean);
    let mean = round.result.value(&known);
    let next = ProgramState {
        mean: round.next_mean(&known),
        covariance: unknown_covariance(&round.next, layers),
        own: round.own_next.iter().map(|forms| unknown_covariance(forms, layers)).collect(),
        origins: round.origins.clone(),
        layers,
    };
    let result = std::slice::from_ref(&round.result);
    let rest = Moments::at_rest(mean, unknown_covariance(result, layers));
    let sq_error_clients = round.ends.as_ref().map(|_| f64::INFINITY);
    (next, Moments { sq_error: f64::INFINITY, sq_error_clients, ..rest })
}

/// The covariance of the numbers of all these forms where it is not known: its entries are NaN.
fn unknown_covariance(forms: &[Form], layers: usize) -> Matrix {
    let n: usize = forms.iter().map(|form| form.length).sum();
    Matrix::from_fn(n, n * layers, |_, _| f64::NAN)
}

impl ProgramState {
    /// Sets these coordinates of the server, and with them their covariances, to 0: the sum of errors begins anew after
    /// the burn-in, THEORY (4.9).
    fn forget(&mut self, which: RangeInclusive<usize>) {
        for i in which {
            self.mean[i] = 0.0;
            for j in 0..self.covariance.rows() {
                self.covariance[(i, j)] = 0.0;
                self.covariance[(j, i)] = 0.0;
            }
        }
    }
}
