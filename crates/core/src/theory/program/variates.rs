//! Control variates as part of a program's state, and what is known of them.

use super::form::Form;
use super::moments::ProgramMoments;
use super::noise::{KnownMoments, Small};
use super::setup::ProgramState;
use super::values::CovarianceBlocks;
use crate::program::Level;

/// ξ_k − ξ_k* of each type as forms of the coordinates, and a client's deviations from it.
struct Corrections {
    mean: Vec<Small>,
    own: Vec<Small>,
}

impl ProgramMoments<'_> {
    /// Those of a state before round `next`.
    fn corrections(&self, state: &ProgramState, next: u64) -> Option<Corrections> {
        let variates = self.variates.as_ref().filter(|variates| variates.corrected)?;
        let (d, types) = (self.setup.d, &self.setup.types);
        let levels = &self.program.round(next)?.state;
        let atom = variates.atom.filter(|atom| *atom < levels.len() && next > 1);
        let vectors = |level: &Level| if *level == Level::Server { 1 } else { types.len() };
        let before = |atom: usize| levels[..atom].iter().map(vectors).sum::<usize>();
        let own_before =
            |atom: usize| levels[..atom].iter().filter(|level| **level == Level::Clients).count();
        // c_k − F̄_k(θ*).
        let from_limit = |g: usize| {
            let (mut form, (optimum, fields)) = match atom {
                None => (Form::zero(d), (0.0, 0.0)),
                Some(atom) => {
                    let begin = self.setup.before_state() + (before(atom) + g) * d;
                    (Form::coordinates(begin, d), state.origins[atom].of(g))
                }
            };
            form.add_constant(&self.setup.origin(g, optimum, fields - 1.0));
            form
        };
        let each: Vec<Form> = (0..types.len()).map(from_limit).collect();
        let mut mean = Form::zero(d);
        if atom.is_some() {
            for (t, form) in types.iter().zip(&each) {
                let share = t.count * self.setup.facts.share(t.first);
                mean.add(&vec![share; d], form);
            }
        }
        let correction = |form: &Form| {
            let mut out = mean.clone();
            out.add(&vec![-1.0; d], form);
            Small::new(&out)
        };
        let own = match atom {
            None => Form::zero(d),
            Some(atom) => Form::coordinates(own_before(atom) * d, d),
        };
        let own = vec![Small::new(&own); types.len()];
        Some(Corrections { mean: each.iter().map(correction).collect(), own })
    }

    /// E ψ after round `round`: `square` and Σ π_k ℓ_k² E‖ξ_k − ξ_k*‖².
    pub(super) fn lyapunov(&self, state: &ProgramState, round: u64, square: f64) -> Option<f64> {
        let corrections = self.corrections(state, round + 1)?;
        let known = KnownMoments::new(state, state.mean.len());
        let variates = self.variates.as_ref()?;
        let mut psi = square;
        for (g, t) in self.setup.types.iter().enumerate() {
            let (mean, own) = (&corrections.mean[g], &corrections.own[g]);
            let square = known.second(mean, mean).trace() + known.own_second(g, own, own).trace();
            let length = (variates.length)(t.first, round);
            psi += t.count * self.setup.facts.share(t.first) * length * length * square;
        }
        Some(psi)
    }

    /// The second moments of θ and of the variates.
    pub(super) fn blocks(&self, state: &ProgramState, next: u64) -> CovarianceBlocks {
        let known = KnownMoments::new(state, state.mean.len());
        let theta = Small::new(&Form::coordinates(self.setup.before_state(), self.setup.d));
        let mut blocks = CovarianceBlocks {
            theta: known.second(&theta, &theta),
            theta_variate: Vec::new(),
            variate: Vec::new(),
            variate_pair: Vec::new(),
        };
        let Some(Corrections { mean, own }) = self.corrections(state, next) else { return blocks };
        let n = self.setup.type_of.len();
        for c in 0..n {
            let (g, h) = (self.setup.type_of[c], self.setup.type_of[(c + 1) % n]);
            let deviations = |g: usize| known.own_second(g, &own[g], &own[g]);
            blocks.theta_variate.push(known.second(&theta, &mean[g]));
            let square = known.second(&mean[g], &mean[g]).plus(1.0, &deviations(g));
            // Deviations from a mean of n clients add up to 0.
            let pair = match (n, g == h) {
                (1, _) => square.clone(),
                (_, true) => {
                    let rest = -1.0 / (self.setup.types[g].count - 1.0);
                    known.second(&mean[g], &mean[h]).plus(rest, &deviations(g))
                }
                _ => known.second(&mean[g], &mean[h]),
            };
            blocks.variate.push(square);
            blocks.variate_pair.push(pair);
        }
        blocks
    }
}
