//! Control variates as part of a program's state, their Lyapunov function and their second moments.
//!
//! Forms are linear functions of the state's coordinates. Of a vector that each client has, there is one for its mean
//! over each type of clients, and one for a client's deviation from this mean, THEORY (3.1). The origin
//! α θ* + β F̄_k(θ*) of a vector is what its coordinates leave out, THEORY (4.8).
//!
//! The correction ξ_k = Σ_j π_j c_j − c_k of a client is made of the control variates c_k; its limit is −F̄_k(θ*).
//!
//! ```text
//! THEORY (4.10)   E ψ_t = E‖θ_t − θ*‖² + Σ_k π_k ℓ_k² E‖ξ_k + F̄_k(θ*)‖²
//! THEORY (3.2)    E v_k v_kᵀ = E v̄_g v̄_gᵀ + D_g,  D_g = E ṽ_k ṽ_kᵀ
//! THEORY (3.3)    E v_k v_jᵀ = E v̄_g v̄_gᵀ − D_g / (n_g − 1)  for two clients of one type
//! ```

use super::form::Form;
use super::moments::ProgramMoments;
use super::noise::KnownMoments;
use super::setup::ProgramState;
use super::values::{CovarianceBlocks, Moments};
use crate::round_program::{Level, Operation};

/// The distance ξ_k − ξ_k* = ξ_k + F̄_k(θ*) of the clients' corrections ξ_k = Σ_j π_j c_j − c_k from their limits.
struct Corrections {
    /// The form of its mean over each type.
    mean: Vec<Form>,
    /// The form of a client's deviation up to its sign, which second moments do not need: it is the same for all types.
    own: Form,
}

impl ProgramMoments<'_> {
    /// The corrections in a state before round `next`; `None` if the state has no control variates that are followed,
    /// or the program does not say what that round does.
    fn corrections(&self, state: &ProgramState, next: u64) -> Option<Corrections> {
        let variates = self.variates?;
        let d = self.setup.d;
        let types = &self.setup.types;
        let levels = &self.program.round(next)?.state;
        // The atom of the variates c_k. Before the first round there is none, and they are 0.
        let atom = Some(variates).filter(|atom| *atom < levels.len() && next > 1);
        // The place of its coordinates after those of the atoms before it.
        let before = &levels[..atom.unwrap_or(0)];
        let own_before = before.iter().filter(|level| **level == Level::Clients).count();
        let vectors = before.len() - own_before + own_before * types.len();
        let begin = self.setup.before_state() + vectors * d;
        // c_k − F̄_k(θ*) of each type.
        let mut each: Vec<Form> = Vec::with_capacity(types.len());
        for g in 0..types.len() {
            let (mut form, (optimum, fields)) = match atom {
                None => (Form::zero(d), (0.0, 0.0)),
                Some(atom) => (Form::coordinates(begin + g * d, d), state.origins[atom].of_type(g)),
            };
            form.add_constant(&self.setup.origin(g, optimum, fields - 1.0));
            each.push(form);
        }
        let mut mean = Form::zero(d);
        if atom.is_some() {
            for (t, form) in types.iter().zip(&each) {
                let share = t.count * self.setup.facts.share(t.first);
                mean.add(&vec![share; d], form);
            }
        }
        let mut corrections = Vec::with_capacity(types.len());
        for form in &each {
            let mut correction = mean.clone();
            correction.add(&vec![-1.0; d], form);
            corrections.push(correction);
        }
        let own = atom.map_or_else(|| Form::zero(d), |_| Form::coordinates(own_before * d, d));
        Some(Corrections { mean: corrections, own })
    }

    /// Whether the state has an iterate of each client in place of the server's, as where rounds are single local steps
    /// under a coin: then ψ of THEORY (4.10) is made of the clients' errors.
    pub(super) fn keeps_clients(&self) -> bool {
        let last = self.program.rounds.last();
        last.is_some_and(|round| round.state.first() == Some(&Level::Clients))
    }

    /// ℓ_k of a client in round `round`, with which its variate enters ψ, THEORY (4.10): γ_k E_k, or γ_k/p where a coin
    /// or the round's first mask with this probability p decides when clients communicate. Where step sizes fall from
    /// step to step, it is their sum over the operations of the round. `None` if the round has no local steps. Round 0,
    /// before the first one, has the length of round 1.
    fn variate_length(&self, client: usize, round: u64) -> Option<f64> {
        let round = self.program.round(round.max(1))?;
        let of_mask = round.masks.first().map(|mask| mask.probability);
        let mut length = None;
        for operation in &round.operations {
            let Operation::Steps { step, count, coin, .. } = operation else { continue };
            let of_operation = match coin.or(of_mask) {
                Some(probability) => step.of_client(client) / probability,
                None => step.of_client(client) * count.of_client(client) as f64,
            };
            length = Some(length.unwrap_or(0.0) + of_operation);
        }
        length
    }

    /// E ψ_t in the state after round t = `round`, THEORY (4.10), where `first_term` is the mean square error that it
    /// begins with. `None` without control variates that are followed, or if the round has no local steps.
    pub(super) fn lyapunov(
        &self,
        state: &ProgramState,
        round: u64,
        first_term: f64,
    ) -> Option<f64> {
        let Corrections { mean, own } = self.corrections(state, round + 1)?;
        if first_term.is_infinite() {
            return Some(first_term);
        }
        let known = KnownMoments::new(state, state.mean.len());
        let mut psi = first_term;
        for (g, t) in self.setup.types.iter().enumerate() {
            let square = known.square(g, &mean[g], &own);
            let length = self.variate_length(t.first, round)?;
            psi += t.count * self.setup.facts.share(t.first) * length * length * square;
        }
        Some(psi)
    }

    /// The second moments in a state before round `next`, of θ, whose moments are `estimate`, and of the clients'
    /// corrections: THEORY (3.2), (3.3), (3.4). Without control variates that are followed, of θ alone.
    pub(super) fn blocks(
        &self,
        state: &ProgramState,
        next: u64,
        estimate: &Moments,
    ) -> CovarianceBlocks {
        let mut blocks = CovarianceBlocks {
            theta: estimate.second_moment(),
            theta_variate: Vec::new(),
            variate: Vec::new(),
            variate_pair: Vec::new(),
        };
        let Some(Corrections { mean, own }) = self.corrections(state, next) else { return blocks };
        let known = KnownMoments::new(state, state.mean.len());
        // The state of an algorithm with variates begins with the server's θ, unless rounds are single local steps. Of
        // such rounds nobody asks for blocks.
        let theta = Form::coordinates(self.setup.before_state(), self.setup.d);
        let n = self.setup.type_of.len();
        for c in 0..n {
            // The types of client c and of the client after it.
            let g = self.setup.type_of[c];
            let h = self.setup.type_of[(c + 1) % n];
            let deviations = known.own_second(g, &own, &own);
            blocks.theta_variate.push(known.second(&theta, &mean[g]));
            let square = known.second(&mean[g], &mean[g]).plus(1.0, &deviations);
            // Deviations from the mean of a type add up to 0, (3.3).
            let pair = if n == 1 {
                square.clone()
            } else if g == h {
                let rest = -1.0 / (self.setup.types[g].count - 1.0);
                known.second(&mean[g], &mean[h]).plus(rest, &deviations)
            } else {
                known.second(&mean[g], &mean[h])
            };
            blocks.variate.push(square);
            blocks.variate_pair.push(pair);
        }
        blocks
    }
}
