//! The operations of a round that draw: each makes an atom whose forms have new noises, THEORY (4.1), and records
//! as a [`Stage`] how the covariance of each noise follows from its source. Of a vector that each client has, `mean`
//! is the mean over a type of clients, and `own` a client's deviation from it, THEORY (3.1).
//!
//! An atom is a vector of a round: a vector of its state, or the result of an operation. A form is W x + Σ G_i n_i,
//! with coordinates x and noises n_i. The forms of an atom state what is left of its vector after its origin
//! α θ* + β F̄_k(θ*), THEORY (4.8). A type is all clients that no round tells apart.
//!
//! A local step of client k takes its error e = θ − θ* to e − γ (A_k e + F̄_k(θ*) + ε + ξ + μ (e − a)), THEORY (2.1),
//! with the noise ε, the correction ξ and, with a proximal term μ, the error a of its anchor. What is constant in it
//! during local steps, w = F̄_k(θ*) + ξ − μ a, is the drift, and clients begin in y = (e, 1, w), or (e, 1) without ξ
//! and μ.

use super::coin::{CoinPair, GeometricSteps};
use super::error::MomentsError;
use super::form::Form;
use super::local::Drive;
use super::participation::DrawLaw;
use super::round::{COHORT, DrawsNumber, Preparation, RoundAtom, SharedSteps};
use super::setup::Origin;
use super::stages::{Drawn, EarlierNoise, Law, NoiseSource, Stage};
use crate::linalg::Matrix;
use crate::round_program::LocalUpdate;
use crate::round_program::{Expression, Level, Mask, Operation, PerClient, ProgramError};
use std::sync::Arc;

/// The drift w of a type of clients, THEORY (2.1), which is constant during local steps.
struct Drift {
    /// The form of its mean over the type.
    mean: Form,
    /// The form of a client's deviation.
    own: Form,
    /// The multiple 1 + β_ξ of F̄_k(θ*) that the origins put into w, THEORY (4.8).
    fields: f64,
}

/// A type of clients whose local steps a coin ends. The coin is the same for all types, so that the noises of the
/// types that come after it are correlated with its noise.
struct TossedType {
    /// The number of its noise.
    noise: usize,
    source: NoiseSource,
    steps: Arc<GeometricSteps>,
}

impl Preparation<'_, '_> {
    /// The atom of an operation of local steps: the ends Π y + n of all clients, THEORY (2.2), (2.5), or Π̄ y + n under
    /// a coin, THEORY (2.8). A proximal term without an anchor pulls to the start. The start and the anchor are read
    /// minus θ*; a correction keeps its origin, which [`Self::drift`] adds.
    ///
    /// # Errors
    /// If second moments of the problem's field do not close, or the operation is another one.
    pub fn steps(&mut self, operation: &Operation) -> Result<RoundAtom, MomentsError> {
        let Operation::Steps { start, correction, anchor, proximal, .. } = operation else {
            return Err(MomentsError::NoLocalSteps);
        };
        let start = self.minus_optimum(self.rows(start));
        let correction = correction.as_ref().map(|xi| self.rows(xi));
        let anchor = match (anchor, *proximal != 0.0) {
            (_, false) => None,
            (Some(anchor), true) => Some(self.minus_optimum(self.rows(anchor))),
            (None, true) => Some(start.clone()),
        };
        let parts = [&correction, &anchor].into_iter().flatten();
        let mut out = self.empty(parts.fold(start.depends, |all, part| all | part.depends));
        let mut tossed = Vec::new();
        for g in 0..self.setup.types.len() {
            let drift = self.drift(g, correction.as_ref(), anchor.as_ref(), *proximal);
            self.local_steps(&mut out, g, operation, &start, drift, &mut tossed)?;
        }
        Ok(out)
    }

    /// The drift w = F̄_k(θ*) + ξ − μ a of type g, THEORY (2.1); `None` if w is F̄_k(θ*) alone.
    fn drift(
        &self,
        g: usize,
        correction: Option<&RoundAtom>,
        anchor: Option<&RoundAtom>,
        proximal: f64,
    ) -> Option<Drift> {
        if correction.is_none() && anchor.is_none() {
            return None;
        }
        let d = self.setup.d;
        let mut mean = Form::zero(d);
        let mut own = Form::zero(d);
        let mut fields = 1.0;
        for (part, weight) in [(correction, 1.0), (anchor, -proximal)] {
            let Some(part) = part else { continue };
            mean.add(&vec![weight; d], &part.mean[g]);
            own.add(&vec![weight; d], &part.own[g]);
        }
        if let Some((optimum, of_correction)) = correction.map(|xi| xi.origin.of_type(g)) {
            mean.add_constant(&self.setup.origin(g, optimum, 0.0));
            fields += of_correction;
        }
        mean.add_constant(&self.setup.origin(g, 0.0, fields));
        Some(Drift { mean, own, fields })
    }

    /// Adds to `out` the ends of the clients of type g, which begin in the state y that `start` and `drift` make.
    /// Under a coin `tossed` has the types before g, and then also g.
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
    fn local_steps(
        &mut self,
        out: &mut RoundAtom,
        g: usize,
        operation: &Operation,
        start: &RoundAtom,
        drift: Option<Drift>,
        tossed: &mut Vec<TossedType>,
    ) -> Result<(), MomentsError> {
        let Operation::Steps { step, count, batch, proximal, draws, coin, .. } = operation else {
            return Ok(());
        };
        let first = self.setup.types[g].first;
        let update = LocalUpdate {
            step: step.of_client(first),
            steps: if coin.is_some() { 1 } else { count.of_client(first) },
            batch: batch.of_client(first),
            proximal: *proximal,
        };
        let drive = Drive { update, pulled: drift.is_some() };
        // γh, or γ/p under a coin.
        let length = update.step * coin.map_or(update.steps as f64, |coin| 1.0 / coin);
        // β of the ends, −γh (1 + β_ξ), or 0 without correction and pull.
        let fields = drift.as_ref().map_or(0.0, |drift| -length * drift.fields);
        // y = (e, 1, w), or (e, 1); the number 1 does not differ between clients.
        let one = Form::coordinates(0, 1);
        let none = Form::zero(1);
        let mut y = vec![&start.mean[g], &one];
        let mut own = vec![&start.own[g], &none];
        if let Some(drift) = &drift {
            y.push(&drift.mean);
            own.push(&drift.own);
        }
        let source = NoiseSource { of: Some(g), y: Form::stacked(&y), own: Form::stacked(&own) };
        if let Some(coin) = coin {
            let one = self.setup.one_step(g, drive);
            let steps = self.setup.known.until_coin(one, *coin)?;
            self.infinite = self.infinite.max(steps.infinite);
            let law = Law::Coin(CoinPair::new(&steps, &steps));
            let mut with = Vec::with_capacity(tossed.len());
            for other in tossed.iter() {
                with.push(EarlierNoise {
                    id: other.noise,
                    source: other.source.clone(),
                    law: Law::Coin(CoinPair::new(&steps, &other.steps)),
                });
            }
            let noise = self.noises;
            tossed.push(TossedType { noise, source: source.clone(), steps: steps.clone() });
            self.add_noisy_type(out, &steps.end, source, law, with);
        } else {
            let steps = self.setup.local_steps_of_one(g, drive)?;
            let draws = draws.map(|number| DrawsNumber { number, is_of_gradients: false });
            let with = self.share(draws, &source, drive)?;
            let law = Law::Steps(steps.clone());
            self.add_noisy_type(out, &steps.ends[0], source, law, with);
        }
        out.mean[g].add_constant(&self.setup.origin(g, 0.0, -fields));
        out.origin.0.push((1.0, fields));
        Ok(())
    }

    /// The atom of an operation of gradients: the mean A_k e + F̄_k(θ*) + n of `calls` gradients of each client,
    /// THEORY (1.1). Its noise has the covariance of the noise of a step of length 1, THEORY (2.3), and its origin is
    /// F̄_k(θ*). `draws` is the number of the draws that it shares with other gradients, if it does.
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
    pub fn fields(
        &mut self,
        at: &Expression,
        calls: &PerClient<u64>,
        draws: Option<usize>,
    ) -> Result<RoundAtom, MomentsError> {
        let at = self.minus_optimum(self.rows(at));
        let mut out = self.empty(at.depends);
        for g in 0..self.setup.types.len() {
            let batch = calls.of_client(self.setup.types[g].first);
            let update = LocalUpdate { step: 1.0, steps: 1, batch, proximal: 0.0 };
            let drive = Drive { update, pulled: false };
            let law = Law::Steps(self.setup.local_steps_of_one(g, drive)?);
            let y = Form::stacked(&[&at.mean[g], &Form::coordinates(0, 1)]);
            let own = Form::stacked(&[&at.own[g], &Form::zero(1)]);
            let jacobian = self.setup.facts.jacobian(self.setup.types[g].first);
            let d = self.setup.d;
            let map = Matrix::from_fn(d, d + 1, |i, j| if j < d { jacobian[(i, j)] } else { 0.0 });
            let source = NoiseSource { of: Some(g), y, own };
            let draws = draws.map(|number| DrawsNumber { number, is_of_gradients: true });
            let with = self.share(draws, &source, drive)?;
            self.add_noisy_type(&mut out, &map, source, law, with);
            out.origin.0.push((0.0, 1.0));
        }
        Ok(out)
    }

    /// An atom of the clients that depends on these draws of masks and cohort ([`RoundAtom::depends`]). It has no forms
    /// and no origins yet: the caller pushes those of one type after another.
    pub fn empty(&self, depends: u64) -> RoundAtom {
        let level = Level::Clients;
        let origin = Origin::default();
        RoundAtom { level, mean: Vec::new(), own: Vec::new(), origin, depends }
    }

    /// Adds to `out` the forms of the next type: `map` y and a new noise, whose covariance follows by `law` from its
    /// source y, and which is drawn together with the earlier noises `with`.
    fn add_noisy_type(
        &mut self,
        out: &mut RoundAtom,
        map: &Matrix,
        source: NoiseSource,
        law: Law,
        with: Vec<EarlierNoise>,
    ) {
        let id = self.next_noise();
        let unit = vec![1.0; self.setup.d];
        for (to, from) in [(&mut out.mean, &source.y), (&mut out.own, &source.own)] {
            let mut end = from.mapped(map);
            end.add(&unit, &Form::noise(id, self.setup.d));
            to.push(end);
        }
        self.stages.push(Stage::Noise { source, law, with });
    }

    /// The earlier noises of the same type with which the next noise is drawn together, THEORY (2.3), (2.7): the noises
    /// of other runs' local steps or gradients that use `draws` as well. The next noise, of this source and drive, is
    /// recorded for later ones, so that the caller must add it before any other noise. `None` shares its draws with
    /// nothing.
    ///
    /// # Errors
    /// If second moments of the problem's field do not close.
    fn share(
        &mut self,
        draws: Option<DrawsNumber>,
        source: &NoiseSource,
        drive: Drive,
    ) -> Result<Vec<EarlierNoise>, MomentsError> {
        let mut with = Vec::new();
        let Some(draws) = draws else { return Ok(with) };
        let type_of = source.of.unwrap_or(0);
        for other in &self.shared {
            if other.draws != draws || other.source.of != source.of {
                continue;
            }
            let law = Law::Steps(self.setup.local_steps_of_two(type_of, [drive, other.drive])?);
            with.push(EarlierNoise { id: other.id, source: other.source.clone(), law });
        }
        self.shared.push(SharedSteps { draws, id: self.noises, source: source.clone(), drive });
        Ok(with)
    }

    /// Records that the noises Σ_k (m_k − E m_k) a_k of THEORY (4.6), (4.11) come next, where a_k are these rows: one
    /// noise `of` the server, or the means over each type of clients, with 1_k in place of m_k. Returns the number of the first of these noises. It counts
    /// them and pushes their stage itself.
    ///
    /// # Errors
    /// If the rows depend on the draw of the cohort.
    fn note_draw(&mut self, rows: &RoundAtom, of: Level) -> Result<usize, MomentsError> {
        if rows.depends & COHORT != 0 {
            return Err(MomentsError::RepeatedCohort);
        }
        let first = self.noises;
        let server = of == Level::Server;
        self.noises += if server { 1 } else { self.setup.types.len() };
        let mean = rows.mean.clone();
        let own = rows.own.clone();
        let law = self.draw_law()?;
        let total = self.weighted(rows, |_| 1.0);
        self.drawn.push(Drawn { first, server, law, mean, own, total });
        self.stages.push(Stage::Drawn(self.drawn.clone()));
        Ok(first)
    }

    /// The moments of the draw of the clients that take part in the round.
    ///
    /// # Errors
    /// If all take part. Programs that were checked do not ask for it then ([`Program::check`]).
    ///
    /// [`Program::check`]: crate::round_program::Program::check
    fn draw_law(&self) -> Result<Arc<DrawLaw>, MomentsError> {
        self.draw_law.clone().ok_or(MomentsError::Program(ProgramError::CohortSize))
    }

    /// The atom of the weighted sum Σ_k w_k a_k of the rows of the clients that take part: Σ_k E w_k a_k and w_k/m_k
    /// times the noise Σ_k (m_k − E m_k) a_k of THEORY (4.6), (4.11). Where clients are drawn with equal probabilities
    /// and their shares are rescaled, the rows are N π_k a_k here. Clients whose shares are divided by a random sum have
    /// equal shares, since others are refused ([`MomentsError::UnequalCohort`]).
    ///
    /// # Errors
    /// If the rows depend on the draw of the cohort.
    pub fn members(&mut self, rows: &Expression) -> Result<RoundAtom, MomentsError> {
        let facts = self.setup.facts;
        let n = facts.clients() as f64;
        let d = self.setup.d;
        let law = self.draw_law()?;
        let given = self.rows(rows);
        let is_uniform = matches!(*law, DrawLaw::Uniform { .. });
        let is_rescaled = is_uniform && facts.unequal_shares().is_some();
        // An offset that all rows share does not depend on which clients are drawn, unless the sum of weights does.
        let has_fixed_offset = !is_rescaled && law.weights_sum_to_one();
        let optimum = if has_fixed_offset { given.origin.of_type(0).0 } else { 0.0 };
        let mut rows = self.moved(given, |_| (optimum, 0.0));
        if is_rescaled {
            for (g, t) in self.setup.types.iter().enumerate() {
                for form in [&mut rows.mean[g], &mut rows.own[g]] {
                    let mut weighted = Form::zero(d);
                    weighted.add(&vec![facts.weight(t.first); d], form);
                    *form = weighted;
                }
            }
        }
        let mut form = self.weighted(&rows, |g| law.mean_weight(g, 1.0 / n));
        let id = self.note_draw(&rows, Level::Server)?;
        let size = self.round.cohort.map_or(n, |size| size as f64);
        let weight_of_count = law.weight_of_count(1.0 / (n * (size / n)));
        form.add(&vec![weight_of_count; d], &Form::noise(id, d));
        Ok(self.server(form, optimum, rows.depends | COHORT))
    }

    /// The atom that is the row `member` for each client of the cohort, and `other` for each other client: b_k + p_k a_k
    /// and the noise (1_k − p_k) a_k of THEORY (4.6), (4.7), where p_k = E 1_k, b_k is `other` and a_k is `member` −
    /// `other`.
    ///
    /// # Errors
    /// If one of the rows depends on the draw of the cohort.
    pub fn select(
        &mut self,
        member: &Expression,
        other: &Expression,
    ) -> Result<RoundAtom, MomentsError> {
        let other = self.rows(other);
        let origin = other.origin.clone();
        // `member` with the origin of `other`, so that their difference has none.
        let mut change = self.moved(self.rows(member), |g| origin.of_type(g));
        let d = self.setup.d;
        let law = self.draw_law()?;
        change.depends |= other.depends;
        for g in 0..change.mean.len() {
            change.mean[g].add(&vec![-1.0; d], &other.mean[g]);
            change.own[g].add(&vec![-1.0; d], &other.own[g]);
        }
        let first = self.note_draw(&change, Level::Clients)?;
        let mut out = other;
        for g in 0..change.mean.len() {
            let chance = law.chance(g);
            for (to, from) in
                [(&mut out.mean[g], &change.mean[g]), (&mut out.own[g], &change.own[g])]
            {
                to.add(&vec![chance; d], from);
                to.add(&vec![1.0; d], &Form::noise(first + g, d));
            }
        }
        out.depends = change.depends | COHORT;
        Ok(out)
    }

    /// The atom of d independent standard normal numbers, of the server or of each client. THEORY (3.5) splits those of
    /// the clients into means and deviations.
    pub fn normal(&mut self, level: Level) -> RoundAtom {
        let types = self.setup.types.len();
        if level == Level::Server {
            let noise = self.add_normal(None);
            return self.server(noise, 0.0, 0);
        }
        let mean: Vec<Form> = (0..types).map(|g| self.add_normal(Some(g))).collect();
        let origin = Origin(vec![(0.0, 0.0); types]);
        // A noise has one number for its mean over the type and for a client's deviation.
        RoundAtom { level, own: mean.clone(), mean, origin, depends: 0 }
    }

    /// Adds a standard normal noise of the clients of type `of`, or of the server for `None`, and returns its form.
    fn add_normal(&mut self, of: Option<usize>) -> Form {
        let d = self.setup.d;
        let source = NoiseSource { of, y: Form::zero(d), own: Form::zero(d) };
        self.stages.push(Stage::Noise { source, law: Law::Normal, with: Vec::new() });
        Form::noise(self.next_noise(), d)
    }

    /// The atom of what mask number `mask` of the round, of probability s, leaves of a vector v, the server's or each
    /// client's: s v and the noise (b − s) v of THEORY (4.5), (4.19).
    ///
    /// # Errors
    /// If v depends on the coins of the mask, or the round has more masks than [`RoundAtom::depends`] has bits for.
    pub fn mask(
        &mut self,
        of: &Expression,
        mask: usize,
        level: Level,
    ) -> Result<RoundAtom, MomentsError> {
        let Mask { probability, each, level: drawn } = self.round.masks[mask].clone();
        // The coins act on the whole vector, so that its origin goes into the constants.
        let mut out = self.moved(self.value(of, level), |_| (0.0, 0.0));
        let bit = 1 << mask.min(62);
        if out.depends & bit != 0 || mask > 62 {
            return Err(MomentsError::RepeatedMask);
        }
        let d = self.setup.d;
        let variance = probability * (1.0 - probability);
        let law = Law::Mask { variance, each, shared: drawn == Level::Server };
        for g in 0..out.mean.len() {
            let own = out.own.get(g).cloned().unwrap_or_else(|| Form::zero(d));
            let of = (level == Level::Clients).then_some(g);
            let source = NoiseSource { of, y: out.mean[g].clone(), own };
            // The earlier noises that these coins made: the server's coins mask the vectors of all types, and a
            // client's own coins the vectors of that client.
            let mut with = Vec::new();
            for (id, other) in &self.masked[mask] {
                if drawn == Level::Server || other.of == source.of {
                    let law = law.clone();
                    with.push(EarlierNoise { id: *id, source: other.clone(), law });
                }
            }
            let id = self.next_noise();
            self.masked[mask].push((id, source.clone()));
            self.stages.push(Stage::Noise { source, law: law.clone(), with });
            let noise = Form::noise(id, d);
            for form in [Some(&mut out.mean[g]), out.own.get_mut(g)].into_iter().flatten() {
                let mut shrunk = noise.clone();
                shrunk.add(&vec![probability; d], form);
                *form = shrunk;
            }
        }
        out.depends |= bit;
        Ok(out)
    }
}
