//! Exact first and second moments of the built-in algorithms on linear fields, without sampling:
//! E‖θ_t − θ*‖², mean and covariance at every round and at stationarity, the limits of infinitely
//! many replicates. Their rounds are written as programs ([`rounds`]), of which
//! [`super::program`] knows the moments.

mod rounds;

pub use super::program::{CovarianceBlocks, Moments, SpectralRadii};
use super::program::{Cycle, ProgramMoments, ProgramSizes, WatchedVariates};
use crate::kernel::{difference, dot};
use crate::problem::Facts;
use crate::program::Program;
use crate::theory::effort::Effort;
use crate::theory::linear::LocalUpdate;
pub(super) use rounds::constant;

/// The correction of the clients' fields, in the theory's own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// None (FedAvg and its variants).
    None,
    /// ξ_k = c̄ − c_k with c_k ← c_k − c̄ + (θ_t − θ_k)/(γ_k E_k).
    Kept,
    /// The same with c_k ← the mean of E_k more oracle calls at θ_t.
    KeptFresh,
    /// c_k is the mean of E_k oracle calls at θ_t, made before the round.
    Fresh,
}

/// One run of the engine, in the theory's own type.
pub struct RunModel<'a> {
    /// The weight of its estimate in that of the algorithm.
    pub weight: f64,
    /// The local update of each client.
    pub update: Box<dyn Fn(usize) -> LocalUpdate + Sync + 'a>,
    /// γ_g.
    pub server_step: f64,
    /// The correction of the clients' fields.
    pub correction: Correction,
}

/// An algorithm in the theory's own type: runs in parallel, whose weighted estimates are
/// added up.
pub struct AlgorithmModel<'a> {
    /// The runs.
    pub runs: Vec<RunModel<'a>>,
    /// L, the number of clients that take part in a round.
    pub cohort: usize,
    /// Whether the runs share their draws.
    pub common: bool,
    /// p, if clients communicate by a coin (H1); a round is one communication.
    pub coin: Option<f64>,
    /// The rounds before averaging begins, if the estimate is an average over rounds.
    pub burn_in: Option<u64>,
    /// The factor of all step sizes in the round after so many others; without it they are
    /// constant. Then there is no stationary distribution.
    pub decay: Option<StepFactor<'a>>,
}

impl AlgorithmModel<'_> {
    /// Runs on draws of their own, given as weights and step sizes, each of H = `steps` equal local
    /// steps of `cohort` clients in each round.
    pub fn plain(
        cohort: usize,
        runs: &[(f64, f64)],
        steps: u64,
        correction: Correction,
    ) -> AlgorithmModel<'static> {
        let run = |&(weight, step): &(f64, f64)| RunModel {
            weight,
            update: Box::new(move |_| LocalUpdate::plain(step, steps)),
            server_step: 1.0,
            correction,
        };
        let runs = runs.iter().map(run).collect();
        AlgorithmModel { runs, cohort, common: false, coin: None, burn_in: None, decay: None }
    }
}

/// The factor of all step sizes in the round after so many others.
pub type StepFactor<'a> = Box<dyn Fn(u64) -> f64 + Sync + 'a>;

/// The version of these computations. It changes whenever a bit of their results changes,
/// so that cached moments of another version are recomputed.
pub const VERSION: u32 = 6;

/// The exact moments of an algorithm on a problem.
pub struct ExactMoments<'a> {
    facts: &'a dyn Facts,
    model: &'a AlgorithmModel<'a>,
}

/// Whether the moments cover the way in which the runs of an algorithm share their draws.
fn shared_draws_are_tracked(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> bool {
    let runs = &model.runs;
    let updates = |c: usize| runs.iter().map(|run| (run.update)(c)).collect::<Vec<LocalUpdate>>();
    let all: Vec<Vec<LocalUpdate>> = (0..facts.clients()).map(updates).collect();
    let differ = |of: fn(&LocalUpdate) -> u64| {
        all.iter().any(|each| each.iter().any(|update| of(update) != of(&each[0])))
    };
    let fresh =
        |r: &RunModel<'_>| matches!(r.correction, Correction::Fresh | Correction::KeptFresh);
    let uneven_fresh = differ(|update| update.steps) && runs.iter().any(fresh);
    let draws_fit = !(uneven_fresh || model.common && differ(|update| update.batch));
    let cohort = model.common || model.cohort == facts.clients();
    draws_fit && (runs.len() == 1 || model.coin.is_none() && cohort)
}

/// Whether second moments close and this module covers them. The mean of a part of the clients
/// of unequal shares is no fixed linear map of them, so it is not covered.
pub fn are_closed(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> bool {
    let by_shares = facts.unequal_shares().is_none() || model.cohort == facts.clients();
    by_shares && facts.linear() && facts.independent() && shared_draws_are_tracked(facts, model)
}

impl<'a> ExactMoments<'a> {
    /// The moments of an algorithm; `None` unless [`are_closed`].
    pub fn new(facts: &'a dyn Facts, model: &'a AlgorithmModel<'a>) -> Option<Self> {
        are_closed(facts, model).then_some(Self { facts, model })
    }

    fn program(&self, rounds: u64) -> Program {
        rounds::program(self.facts, self.model, rounds)
    }

    /// The control variates of one run, if it has any, and the lengths with which they enter ψ.
    fn variates<'b>(&'b self, factor: impl Fn(u64) -> f64 + 'b) -> Option<WatchedVariates<'b>> {
        let run = &self.model.runs[0];
        let length = move |k: usize, round: u64| {
            let update = (run.update)(k);
            let step = update.step * factor(round);
            match self.model.coin {
                Some(p) => step / p,
                None => step * update.steps as f64,
            }
        };
        let atom = self.model.runs.len();
        let watched = WatchedVariates { atom, length: Box::new(length), of_clients: false };
        (atom == 1 && run.keeps()).then_some(watched)
    }

    /// The moments at these rounds, in increasing order, from θ_0 = `start`.
    pub fn at_rounds(&self, start: &[f64], rounds: &[u64]) -> Vec<Moments> {
        let last = rounds.last().copied().unwrap_or(0);
        let program = self.program(last);
        let decay = |round: u64| match &self.model.decay {
            Some(factor) if round > 0 => factor(round - 1),
            _ => 1.0,
        };
        let exact = ProgramMoments::new(&program, self.facts, self.variates(decay));
        let found = exact.and_then(|exact| exact.at_rounds(start, rounds, self.model.burn_in));
        let mut found = found.unwrap_or_default();
        // The weights of runs need not sum to one (RR Remark 1, as printed).
        let weights = self.model.runs.iter().map(|run| run.weight).sum::<f64>();
        let uneven = (weights - 1.0).abs() > 1e-12;
        if let Some(first) = found.first_mut().filter(|first| uneven && first.round == 0) {
            let scaled: Vec<f64> = start.iter().map(|x| weights * x).collect();
            first.mean = difference(&scaled, self.facts.optimum());
            first.sq_error = dot(&first.mean, &first.mean);
            if first.sq_error_average.is_finite() {
                first.sq_error_average = first.sq_error;
            }
        }
        found
    }

    /// E‖θ̂_t − θ̂'_t‖² of two copies on the same draws, one from θ_0 = `start` and one from θ*, at
    /// these rounds, in increasing order. Their difference follows the same recursion without its
    /// constant terms; `None` if clients communicate by a coin.
    pub fn coupled(&self, start: &[f64], rounds: &[u64]) -> Option<Vec<f64>> {
        if self.model.coin.is_some() || self.model.burn_in.is_some() {
            return None;
        }
        let program = self.program(rounds.last().copied().unwrap_or(0));
        ProgramMoments::new(&program, self.facts, None).ok()?.coupled(start, rounds).ok()
    }

    /// The moments at stationarity, and the covariance blocks of the first run; `None` unless second
    /// moments are proven to converge.
    pub fn stationary(&self) -> Option<(Moments, CovarianceBlocks)> {
        let program = self.program(2);
        let cycle = Cycle::new(&program, self.facts, self.variates(|_| 1.0)).ok()?;
        let (mut phases, blocks) = cycle.stationary().ok()?;
        Some((phases.pop()?, blocks))
    }

    /// The spectral radii of a round, infinite if moments are infinite after one; `None` if the second
    /// moments' rate of growth does not settle.
    pub fn stability(&self) -> Option<SpectralRadii> {
        Cycle::new(&self.program(2), self.facts, None).ok()?.radii()
    }
}

/// Whether the means of all runs of an algorithm converge, from every start, where draws are
/// independent; close to θ\* if the field is curved. `per_step` says that under a coin rounds end after
/// a fixed number of local steps. False as well if this is not known: for a part of clients of unequal
/// shares, or a state of too many coordinates.
pub fn means_converge(facts: &dyn Facts, model: &AlgorithmModel<'_>, per_step: bool) -> bool {
    // Means of runs do not depend on each other.
    model.runs.iter().all(|run| {
        let alone = AlgorithmModel {
            runs: vec![RunModel { update: Box::new(|client| (run.update)(client)), ..*run }],
            cohort: model.cohort,
            common: model.common,
            coin: model.coin,
            burn_in: None,
            decay: None,
        };
        let program = match model.coin.filter(|_| per_step) {
            Some(probability) => rounds::single_steps(facts, run, probability),
            None => constant((facts.clients(), facts.dim()), &alone),
        };
        Cycle::of_means(&program, facts).is_ok_and(|cycle| cycle.check_means().is_ok())
    })
}

/// The moments of one run under a coin at the end of rounds of `per_round` local
/// steps each, from θ_0 = `start`: the second reading of SCAFFLSA H1 (Theorem 5.1). `None` if they do
/// not close.
pub fn at_rounds_of_steps(
    facts: &dyn Facts,
    model: &AlgorithmModel<'_>,
    per_round: u64,
    start: &[f64],
    rounds: &[u64],
) -> Option<Vec<Moments>> {
    let probability = model.coin?;
    let exact = ExactMoments::new(facts, model).filter(|_| model.burn_in.is_none())?;
    let pulled = (0..facts.clients()).any(|k| (model.runs[0].update)(k).proximal != 0.0);
    if pulled || model.runs.len() > 1 {
        return None;
    }
    let program = rounds::single_steps(facts, &model.runs[0], probability);
    let variates = exact.variates(|_| 1.0);
    let variates = variates.map(|variates| WatchedVariates { of_clients: true, ..variates });
    let steps = ProgramMoments::new(&program, facts, variates).ok()?;
    let ends: Vec<u64> = rounds.iter().map(|round| round * per_round).collect();
    let mut found = steps.at_rounds(start, &ends, None).ok()?;
    for (moments, round) in found.iter_mut().zip(rounds) {
        (moments.round, moments.sq_error_average) = (*round, f64::NAN);
    }
    Some(found)
}

fn sizes(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> ProgramSizes {
    ProgramSizes::new(&constant((facts.clients(), facts.dim()), model), facts)
}

/// The effort of moments up to round `rounds`, stored at `rows` rounds.
pub fn effort(facts: &dyn Facts, model: &AlgorithmModel<'_>, rounds: u64, rows: usize) -> Effort {
    // Local steps whose size falls are prepared in each round.
    let prepared = if model.decay.is_some() { rounds.max(1) } else { 1 };
    sizes(facts, model).effort(prepared, rounds, rows)
}

/// The effort of [`ExactMoments::stationary`], with the blocks of all clients.
pub fn stationary_effort(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> Effort {
    let corrected = model.runs.iter().any(|run| run.correction != Correction::None);
    let (n, d) = (facts.clients() as f64, facts.dim() as f64);
    let blocks = if corrected { 6.0 * n * d * d } else { 0.0 };
    sizes(facts, model).at_rest(1) + Effort::new(blocks, blocks)
}

#[cfg(test)]
mod tests;
