//! Exact first and second moments of whole algorithms on linear fields, without
//! sampling: E‖θ_t − θ*‖², mean and covariance at every round and at stationarity, the
//! limits of infinitely many replicates.
//!
//! Given the state at the start of a round, clients are independent and all updates are
//! affine, so second moments close: a round is a linear map of them. Clients with the same distribution and the same local update form a type; cost and size
//! depend on the number of types, not on the number of clients. Coordinates are
//! θ − θ* and c_k − F̄_k(θ*), so that nothing cancels close to the optimum.

mod averages;
mod coin;
pub(super) mod local;
mod size;
mod stability;
mod stages;
mod state;
mod stationary;
pub mod steps;

use crate::linalg::Matrix;
use crate::problem::{Facts, group_clients};
use crate::theory::linear::LocalUpdate;
use averages::AverageMoments;
use local::{Drive, Steps};
pub use size::{rounds_effort as effort, stationary_effort};
pub use stability::SpectralRadii;
pub(super) use stability::{growth, radius};
use stages::{StateLayout, TypeSteps, second_moment};
use state::{MomentState, Past, Stage, sandwich};
pub(super) use stationary::gmres;

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

/// The factor of all step sizes in the round after so many others.
pub type StepFactor<'a> = Box<dyn Fn(u64) -> f64 + Sync + 'a>;

/// The version of these computations. It changes whenever a bit of their results changes,
/// so that cached moments of another version are recomputed.
pub const VERSION: u32 = 2;

/// Exact moments at the end of a round.
#[derive(Clone, Debug)]
pub struct Moments {
    /// t.
    pub round: u64,
    /// E‖θ̂_t − θ*‖² of the algorithm's estimate.
    pub sq_error: f64,
    /// E θ̂_t − θ*, d numbers.
    pub mean: Vec<f64>,
    /// Cov θ̂_t, d × d.
    pub covariance: Matrix,
    /// E‖t⁻¹ Σ_{s≤t} θ̂_s − θ*‖², the error of the mean of all estimates so far (at round 0,
    /// of the first); NaN if the estimate is itself an average.
    pub sq_error_average: f64,
    /// E Σ π_c ‖θ_c − θ*‖² at the end of the last local steps, for one run with full
    /// participation.
    pub sq_error_clients: Option<f64>,
    /// E of the Lyapunov function (SCAFFLSA 51, at communications 45).
    pub lyapunov: Option<f64>,
}

/// Second moments of θ and of a type's control variate at stationarity, in the
/// coordinates θ − θ* and ξ_c + F̄_c(θ*).
#[derive(Clone, Debug)]
pub struct CovarianceBlocks {
    /// E of the products of θ, d × d.
    pub theta: Matrix,
    /// E (θ − θ*)(ξ_c − ξ_c*)ᵀ by client, d × d each.
    pub theta_variate: Vec<Matrix>,
    /// E (ξ_c − ξ_c*)(ξ_c − ξ_c*)ᵀ by client.
    pub variate: Vec<Matrix>,
    /// E (ξ_c − ξ_c*)(ξ_c' − ξ_c'*)ᵀ with c' the client after c.
    pub variate_pair: Vec<Matrix>,
}

impl CovarianceBlocks {
    /// The number of their entries.
    pub fn numbers(&self) -> usize {
        let lists = [&self.theta_variate, &self.variate, &self.variate_pair];
        let all = std::iter::once(&self.theta).chain(lists.into_iter().flatten());
        all.map(|block| block.entries().len()).sum()
    }
}

/// Clients with the same distribution, the same local updates and the same share.
struct Type {
    first: usize,
    count: f64,
    /// N π of each.
    weight: f64,
    updates: Vec<LocalUpdate>,
}

/// The exact moments of an algorithm on a problem.
pub struct ExactMoments<'a> {
    facts: &'a dyn Facts,
    model: &'a AlgorithmModel<'a>,
    layout: StateLayout,
    types: Vec<Type>,
    /// The type of each client.
    type_of: Vec<usize>,
    type_steps: Vec<TypeSteps>,
    coins: Vec<local::GeometricSteps>,
    stages: Vec<Stage>,
}

fn types(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> (Vec<Type>, Vec<usize>) {
    let updates =
        |c: usize| model.runs.iter().map(|run| (run.update)(c)).collect::<Vec<LocalUpdate>>();
    let bits = |c: usize| model.runs.iter().map(|run| (run.update)(c).bits()).collect::<Vec<_>>();
    let key = |c: usize| (facts.distribution(c), facts.weight(c).to_bits(), bits(c));
    let (first, type_of) = group_clients(facts.clients(), key);
    let of_first = |first| {
        let (weight, updates) = (facts.weight(first), updates(first));
        Type { first, count: 0.0, weight, updates }
    };
    let mut types: Vec<Type> = first.into_iter().map(of_first).collect();
    type_of.iter().for_each(|&place| types[place].count += 1.0);
    (types, type_of)
}

/// The number of clients of each type, and N π of each.
fn counts_and_weights(types: &[Type]) -> (Vec<f64>, Vec<f64>) {
    types.iter().map(|t| (t.count, t.weight)).unzip()
}

/// Whether the moments cover the way in which the runs of an algorithm share their draws.
fn shared_draws_are_tracked(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> bool {
    let (types, _) = types(facts, model);
    let runs = &model.runs;
    let uneven = types.iter().any(|t| t.updates.iter().any(|w| w.steps != t.updates[0].steps));
    let fresh =
        |r: &RunModel<'_>| matches!(r.correction, Correction::Fresh | Correction::KeptFresh);
    let batches = types.iter().any(|t| t.updates.iter().any(|w| w.batch != t.updates[0].batch));
    let fresh = runs.iter().any(fresh);
    let alone = runs.len() == 1;
    let draws_fit = !(uneven && fresh || model.common && batches);
    let cohort = model.common || model.cohort == facts.clients();
    draws_fit && (alone || model.coin.is_none() && cohort)
}

/// Whether second moments close and this module covers them. The mean of a part of the clients
/// of unequal shares is no fixed linear map of them, so it is not covered.
pub fn are_closed(facts: &dyn Facts, model: &AlgorithmModel<'_>) -> bool {
    let by_shares = facts.unequal_shares().is_none() || model.cohort == facts.clients();
    by_shares && facts.linear() && facts.independent() && shared_draws_are_tracked(facts, model)
}

impl<'a> ExactMoments<'a> {
    /// Prepares the moments of an algorithm; `None` unless [`are_closed`].
    pub fn new(facts: &'a dyn Facts, model: &'a AlgorithmModel<'a>) -> Option<Self> {
        if !are_closed(facts, model) {
            return None;
        }
        let (types, type_of) = types(facts, model);
        Self::of_types(facts, model, types, type_of)
    }

    /// Prepares the local steps of these types.
    fn of_types(
        facts: &'a dyn Facts,
        model: &'a AlgorithmModel<'a>,
        types: Vec<Type>,
        type_of: Vec<usize>,
    ) -> Option<Self> {
        let runs = &model.runs;
        let corrected: Vec<bool> = runs.iter().map(|r| r.correction != Correction::None).collect();
        let layout = StateLayout::new(facts.dim(), &corrected, model.coin.is_some());
        let mut new = Self {
            facts,
            model,
            layout,
            types,
            type_of,
            type_steps: Vec::new(),
            coins: Vec::new(),
            stages: Vec::new(),
        };
        for g in 0..new.types.len() {
            if let Some(p) = model.coin {
                let update = LocalUpdate { steps: 1, ..new.types[g].updates[0] };
                let drive = Drive { update, pulled: new.pulled(0, &update) };
                let step = Steps::new(facts, new.types[g].first, [drive; 2], true)?;
                new.coins.push(local::GeometricSteps::new(&step, p));
            } else {
                let steps = new.steps_of_type(g)?;
                new.type_steps.push(steps);
            }
        }
        if model.coin.is_none() {
            new.stages = new.make_stages();
        }
        Some(new)
    }

    /// The same algorithm with step sizes that are `factor` times as large.
    fn with_steps(&self, factor: f64) -> Option<Self> {
        let scaled = |t: &Type| {
            let update = |u: &LocalUpdate| LocalUpdate { step: factor * u.step, ..*u };
            Type { updates: t.updates.iter().map(update).collect(), ..*t }
        };
        let types = self.types.iter().map(scaled).collect();
        Self::of_types(self.facts, self.model, types, self.type_of.clone())
    }

    /// The state before the first round, from θ_0.
    fn initial_state(&self, start: &[f64]) -> MomentState {
        let StateLayout { d, m, n, .. } = self.layout;
        let mut s = vec![0.0; m];
        s[0] = 1.0;
        for &e in &self.layout.e {
            (0..d).for_each(|i| s[e + i] = start[i] - self.facts.optimum()[i]);
        }
        let own = |t: &Type| {
            let field = self.facts.field_at_optimum(t.first);
            let mut v = vec![0.0; n];
            for own in self.layout.own.iter().flatten() {
                (0..d).for_each(|i| v[own + i] = -field[i]);
            }
            v
        };
        let v: Vec<Vec<f64>> = self.types.iter().map(own).collect();
        MomentState::fixed(counts_and_weights(&self.types), &s, &v)
    }

    /// L with L s = θ̂ − θ*.
    fn estimate(&self) -> Matrix {
        let mut out = Matrix::zeros(self.layout.d, self.layout.m);
        for (r, run) in self.model.runs.iter().enumerate() {
            out.add(run.weight, &self.layout.selection(self.layout.m, self.layout.e[r], 1.0));
        }
        // Weights need not sum to one (RR Remark 1, as printed).
        let weights = self.model.runs.iter().fold(0.0, |sum, run| sum + run.weight);
        if self.model.runs.len() > 1 && (weights - 1.0).abs() > 1e-12 {
            (0..self.layout.d)
                .for_each(|i| out[(i, 0)] = (weights - 1.0) * self.facts.optimum()[i]);
        }
        out
    }

    /// A round: the state after it and the sums over the past.
    fn round(&self, state: &MomentState, past: Option<&Past>) -> (MomentState, Option<Past>) {
        if self.model.coin.is_some() {
            return self.coin_round(state, past);
        }
        let (mut state, mut past) = (state.clone(), past.cloned());
        for (i, stage) in self.stages.iter().enumerate() {
            past = past.map(|past| past.after(stage, &state.counts));
            state = state.after(stage, &self.noises(&state, i));
        }
        (state, past)
    }

    /// E Σ π_c ‖θ_c − θ*‖² at the end of the local steps that begin in this state.
    fn clients_error(&self, state: &MomentState) -> Option<f64> {
        if self.model.runs.len() > 1 || self.model.cohort < self.facts.clients() {
            return None;
        }
        if self.model.coin.is_some() {
            return Some(self.coin_clients_error(state));
        }
        let fresh = self.stages.len() > 1;
        let moved = fresh.then(|| state.after(&self.stages[0], &self.noises(state, 0)));
        let state = moved.as_ref().unwrap_or(state);
        let mut sum = 0.0;
        for (g, steps) in self.type_steps.iter().enumerate() {
            let end = (steps.from_s.clone(), steps.from_v.clone());
            let end = second_moment(state, (g, &end), (g, &end), true);
            sum += state.weight(g) * end.plus(1.0, &self.local_noise(state, g)).trace();
        }
        Some(sum / self.facts.clients() as f64)
    }

    /// E ψ of the server's θ: E‖θ − θ*‖² + Σ π_c ℓ_c² E‖ξ_c − ξ_c*‖².
    fn lyapunov(&self, state: &MomentState) -> Option<f64> {
        let own = self.layout.own[0].filter(|_| self.model.runs.len() == 1)?;
        let d = self.layout.d;
        let e = self.layout.e[0];
        let mut psi = (0..d).fold(0.0, |sum, i| sum + state.s[(e + i, e + i)]);
        for (g, t) in self.types.iter().enumerate() {
            let update = &t.updates[0];
            let length = match self.model.coin {
                Some(p) => update.step / p,
                None => update.step * update.steps as f64,
            };
            let mut square = 0.0;
            for i in 0..d {
                square += state.p[g][(own + i, own + i)];
                if let Some(mean) = self.layout.mean[0] {
                    square += state.s[(mean + i, mean + i)] - 2.0 * state.x[g][(mean + i, own + i)];
                }
            }
            psi += t.count * t.weight / self.facts.clients() as f64 * length * length * square;
        }
        Some(psi)
    }

    /// The moments at these rounds, in increasing order, from θ_0 = `start`.
    pub fn at_rounds(&self, start: &[f64], rounds: &[u64]) -> Vec<Moments> {
        let estimate = self.estimate();
        let mut state = self.initial_state(start);
        let mut clients = None;
        let mut averages = AverageMoments::new(self, &state);
        let mut out = Vec::new();
        let (mut round, mut scaled) = (0, None);
        for &target in rounds {
            while round < target {
                if let Some(factor) = &self.model.decay {
                    scaled = self.with_steps(factor(round));
                }
                let of_round = scaled.as_ref().unwrap_or(self);
                if round + 1 == target {
                    clients = of_round.clients_error(&state);
                }
                let (next, past) = of_round.round(&state, averages.past.as_ref());
                (state, averages.past) = (next, past);
                round += 1;
                averages.observe(&state, &estimate, round);
            }
            let of_round = scaled.as_ref().unwrap_or(self);
            out.push(of_round.moments(&state, &averages, round, clients));
        }
        out
    }

    /// E‖θ̂_t − θ̂'_t‖² of two copies on the same draws, one from θ_0 = `start` and one from θ*, at
    /// these rounds, in increasing order. Their difference follows the same recursion without its
    /// constant terms; `None` if clients communicate by a coin.
    pub fn coupled(&self, start: &[f64], rounds: &[u64]) -> Option<Vec<f64>> {
        if self.model.coin.is_some() || self.model.burn_in.is_some() {
            return None;
        }
        let StateLayout { d, m, n, .. } = self.layout;
        let mut s = vec![0.0; m];
        for &e in &self.layout.e {
            (0..d).for_each(|i| s[e + i] = start[i] - self.facts.optimum()[i]);
        }
        let v = vec![vec![0.0; n]; self.types.len()];
        let mut state = MomentState::fixed(counts_and_weights(&self.types), &s, &v);
        let estimate = self.estimate();
        let (mut round, mut out) = (0, Vec::new());
        for &target in rounds {
            while round < target {
                let scaled = self.model.decay.as_ref().map(|factor| self.with_steps(factor(round)));
                let of_round = scaled.as_ref().map_or(Some(self), Option::as_ref)?;
                state = of_round.round(&state, None).0;
                round += 1;
            }
            out.push(sandwich(&estimate, &state.s, &estimate).trace());
        }
        Some(out)
    }

    fn moments(
        &self,
        state: &MomentState,
        averages: &AverageMoments,
        round: u64,
        clients: Option<f64>,
    ) -> Moments {
        let estimate = self.estimate();
        let last = sandwich(&estimate, &state.s, &estimate);
        let column: Vec<f64> = (0..state.s.rows()).map(|i| state.s[(i, 0)]).collect();
        let last_mean = estimate.apply(&column);
        let averaged = self.model.burn_in.is_some();
        let (square, mean) = match averages.mean() {
            Some((square, mean)) if averaged => (square, mean),
            _ => (last.clone(), last_mean),
        };
        let mut covariance = square.clone();
        covariance.add_outer(-1.0, &mean, &mean);
        let average = match averages.mean() {
            _ if averaged => f64::NAN,
            Some((square, _)) => square.trace(),
            None => last.trace(),
        };
        Moments {
            round,
            sq_error: square.trace(),
            mean,
            covariance,
            sq_error_average: average,
            sq_error_clients: if round == 0 { None } else { clients },
            lyapunov: self.lyapunov(state),
        }
    }
}

#[cfg(test)]
mod tests;
