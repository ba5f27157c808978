//! A round, prepared for a problem: every atom as a form of the state's coordinates and of noises, THEORY (4.1). Of a
//! vector that each client has, `mean` is the mean over a type of clients, and `own` a client's deviation from it.
//!
//! An atom is a vector of the round: a vector of its state, or the result of an operation. A form is W x + Σ G_i n_i,
//! with coordinates x and noises n_i. The forms of an atom state what is left of its vector after its origin
//! α θ* + β F̄_k(θ*), THEORY (4.8). A type is all clients that no round tells apart.
//!
//! ```text
//! THEORY (1.1)   F̄_k(θ) = F̄_k(θ*) + A_k (θ − θ*),  Σ_k π_k F̄_k(θ*) = 0
//! THEORY (3.1)   v_k = v̄_g + ṽ_k,  Σ_{k in g} ṽ_k = 0
//! THEORY (4.4)   a matrix (m_kj) of clients:  v̄_g ← (m_own + (n_g − 1) m_other) v̄_g + Σ_{h≠g} n_h m_gh v̄_h,
//!                ṽ_k ← (m_own − m_other) ṽ_k,  with m_own = m_kk, and m_other = m_kj for j ≠ k in type g
//! ```

use super::coin::InfiniteMoments;
use super::error::MomentsError;
use super::form::Form;
use super::local::Drive;
use super::participation::DrawLaw;
use super::setup::{Origin, Setup, tidy};
use super::stages::{ClientForms, Drawn, NoiseSource, PreparedRound, Stage};
use crate::linalg::Matrix;
use crate::round_program::{Expression, Level, Operation, Round, Weights};
use std::sync::Arc;

/// An atom of a round, the result of an operation or a vector of the state. Vectors of clients are split into means
/// over types and deviations, THEORY (3.1).
#[derive(Clone, Debug)]
pub(super) struct RoundAtom {
    /// Whether the server or each client has the vector.
    pub level: Level,
    /// The form of v̄_g for each type g; one form of the server.
    pub mean: Vec<Form>,
    /// The form of a client's deviation ṽ_k for each type, over coordinates of deviations; none of the server.
    pub own: Vec<Form>,
    /// What must be added to the forms for the vector itself, THEORY (4.8).
    pub origin: Origin,
    /// The draws on which the atom depends: bit i says whether it depends on the coins of mask number i, and the bit
    /// [`COHORT`] whether it depends on which clients take part.
    pub depends: u64,
}

/// The bit of [`RoundAtom::depends`] for the draw of the clients that take part.
pub(super) const COHORT: u64 = 1 << 63;

/// Which draws an operation uses: operations with the same draws share them, THEORY (2.3).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct DrawsNumber {
    /// The number that the operations of the program state.
    pub number: usize,
    /// Whether the draws are of single gradients, which share no draws with local steps.
    pub is_of_gradients: bool,
}

/// Local steps or gradients of a type of clients, whose draws later ones may share.
#[derive(Clone)]
pub(super) struct SharedSteps {
    pub draws: DrawsNumber,
    /// The number of the noise.
    pub id: usize,
    /// The y of THEORY (2.2).
    pub source: NoiseSource,
    /// What drives the clients.
    pub drive: Drive,
}

/// A round that is being prepared: its atoms and noises up to the present operation.
pub(super) struct Preparation<'s, 'a> {
    pub setup: &'s Setup<'a>,
    pub round: &'s Round,
    /// The atoms so far: the vectors of the state, and the results of operations.
    pub atoms: Vec<RoundAtom>,
    /// The number of coordinates so far.
    pub width: usize,
    /// How the coordinates and noises so far become known, in order.
    pub stages: Vec<Stage>,
    /// The number of noises so far.
    pub noises: usize,
    /// For each mask of the round the noises that its coins made, with what they mask.
    pub masked: Vec<Vec<(usize, NoiseSource)>>,
    /// The noises so far whose draws later operations may share.
    pub shared: Vec<SharedSteps>,
    /// The operations so far that read which clients take part.
    pub drawn: Vec<Drawn>,
    /// The moments of the draw of the clients that take part; `None` if all do.
    pub draw_law: Option<Arc<DrawLaw>>,
    /// The moments that are infinite after the local steps so far, if any are.
    pub infinite: Option<InfiniteMoments>,
}

/// Prepares a round, so that it can be applied to any moments of a state with these origins: the local steps are
/// computed, and the next state is written as forms. The vectors of the next state have the levels `after`, which is
/// empty after the last round of a program, and the origins `target`, if they are given.
///
/// # Errors
/// Why its moments do not close.
pub(super) fn prepare(
    setup: &Setup<'_>,
    round: &Round,
    origins: &[Origin],
    after: &[Level],
    target: Option<&[Origin]>,
) -> Result<PreparedRound, MomentsError> {
    let draw_law = if round.draws_clients(setup.facts.clients()) {
        Some(Arc::new(DrawLaw::new(setup, round)?))
    } else {
        None
    };
    let mut p = Preparation {
        setup,
        round,
        atoms: Vec::new(),
        width: setup.before_state(),
        stages: Vec::new(),
        noises: 0,
        masked: vec![Vec::new(); round.masks.len()],
        shared: Vec::new(),
        drawn: Vec::new(),
        draw_law,
        infinite: None,
    };
    p.add_state(origins);
    for operation in &round.operations {
        let atom = p.atom_of(operation)?;
        p.atoms.push(atom);
    }
    Ok(p.finish(after, target))
}

impl Preparation<'_, '_> {
    /// Adds the vectors of the state, which have these origins, as the first atoms. Their forms are coordinates, of
    /// means and, for vectors of clients, of deviations.
    fn add_state(&mut self, origins: &[Origin]) {
        let d = self.setup.d;
        let types = self.setup.types.len();
        // The number of coordinates of a client's deviations so far.
        let mut own = 0;
        for (level, origin) in self.round.state.iter().zip(origins) {
            let vectors = if *level == Level::Server { 1 } else { types };
            let mean = (0..vectors).map(|g| Form::coordinates(self.width + g * d, d)).collect();
            self.width += vectors * d;
            let deviations = match level {
                Level::Server => Vec::new(),
                Level::Clients => {
                    own += d;
                    vec![Form::coordinates(own - d, d); types]
                }
            };
            let origin = origin.clone();
            self.atoms.push(RoundAtom { level: *level, mean, own: deviations, origin, depends: 0 });
        }
    }

    /// The vector Σ coefficient · atom + constant that an expression states, of the server, or of each client, as an
    /// atom. Its α (or β) is the sum of the atoms' α (or β) times coefficients, if that is the same for all entries,
    /// and otherwise 0; what the origin does not contain goes into the constants, THEORY (4.8).
    pub fn value(&self, expression: &Expression, level: Level) -> RoundAtom {
        let d = self.setup.d;
        let types = self.setup.types.len();
        let vectors = if level == Level::Server { 1 } else { types };
        let mut out = RoundAtom { level, ..self.empty(0) };
        for g in 0..vectors {
            let first = self.setup.types[g].first;
            let mut mean = Form::zero(d);
            let mut own = Form::zero(d);
            let mut constant = expression.constant.entries_of_client(first, d);
            let mut sums = vec![OriginSums::default(); d];
            for (atom, coefficient) in &expression.terms {
                let weights = coefficient.entries_of_client(first, d);
                let atom = &self.atoms[*atom];
                mean.add(&weights, &atom.mean[if atom.level == Level::Server { 0 } else { g }]);
                if atom.level == Level::Clients {
                    own.add(&weights, &atom.own[g]);
                }
                out.depends |= atom.depends;
                let (optimum, fields) = atom.origin.of_type(g);
                for (sums, w) in sums.iter_mut().zip(&weights) {
                    sums.optimum += w * optimum;
                    sums.fields += w * fields;
                    sums.optimum_size += (w * optimum).abs();
                    sums.fields_size += (w * fields).abs();
                }
            }
            for sums in &mut sums {
                sums.optimum = tidy(sums.optimum, sums.optimum_size);
                sums.fields = tidy(sums.fields, sums.fields_size);
            }
            let optimum = common_number(&sums, |of_entry| of_entry.optimum);
            let fields = common_number(&sums, |of_entry| of_entry.fields);
            let star = self.setup.facts.optimum();
            for (i, sums) in sums.iter().enumerate() {
                constant[i] += (sums.optimum - optimum) * star[i];
                constant[i] += (sums.fields - fields) * self.setup.fields[g][i];
            }
            mean.add_constant(&constant);
            out.mean.push(mean);
            if level == Level::Clients {
                out.own.push(own);
            }
            out.origin.0.push((optimum, fields));
        }
        out
    }

    /// The vector of an atom, written with another origin, the α and β that `to` states for each type: THEORY (4.8).
    /// Its coordinates change by constants.
    pub fn moved(&self, mut atom: RoundAtom, to: impl Fn(usize) -> (f64, f64)) -> RoundAtom {
        for (g, form) in atom.mean.iter_mut().enumerate() {
            let (alpha, beta) = atom.origin.of_type(g);
            let (optimum, fields) = to(g);
            form.add_constant(&self.setup.origin(g, alpha - optimum, beta - fields));
            atom.origin.0[g] = (optimum, fields);
        }
        atom
    }

    /// An atom's vector with the origin θ*, (α, β) = (1, 0), so that its forms are those of the vector minus θ*.
    pub fn minus_optimum(&self, atom: RoundAtom) -> RoundAtom {
        self.moved(atom, |_| (1.0, 0.0))
    }

    /// The vector of each client that an expression states, as an atom.
    pub fn rows(&self, expression: &Expression) -> RoundAtom {
        self.value(expression, Level::Clients)
    }

    /// Counts one more noise, and returns its number. Stages do not state the numbers of the noises that they make,
    /// which are counted again in the order of the stages: the caller pushes the noise's [`Stage::Noise`] or
    /// [`Stage::Sum`] before another noise is counted.
    pub fn next_noise(&mut self) -> usize {
        self.noises += 1;
        self.noises - 1
    }

    /// The atom that an operation makes, whose forms may contain new noises.
    ///
    /// # Errors
    /// Why its moments do not close.
    fn atom_of(&mut self, operation: &Operation) -> Result<RoundAtom, MomentsError> {
        match operation {
            Operation::Steps { .. } => self.steps(operation),
            Operation::Fields { at, calls, draws, .. } => self.fields(at, calls, *draws),
            Operation::MeanFields { at } => Ok(self.mean_fields(at)),
            Operation::Sum { rows, weights } => Ok(self.sum(&self.rows(rows), weights)),
            Operation::Members { rows } => self.members(rows),
            Operation::Select { member, other } => self.select(member, other),
            Operation::Mix { rows, matrix } => Ok(self.mix(&self.rows(rows), matrix)),
            Operation::Matrix { of, level, .. } => Ok(self.matrix(operation, of, *level)),
            Operation::Normal { level } => Ok(self.normal(*level)),
            Operation::Mask { of, mask, level } => self.mask(of, *mask, *level),
        }
    }

    /// The form of Σ_k w_k v_k over clients = Σ_g n_g w_g v̄_g, where v_k are the rows and `weights` states w_g:
    /// deviations add up to 0, THEORY (3.1).
    pub fn weighted(&self, rows: &RoundAtom, weights: impl Fn(usize) -> f64) -> Form {
        let mut form = Form::zero(self.setup.d);
        for (g, t) in self.setup.types.iter().enumerate() {
            form.add(&vec![t.count * weights(g); self.setup.d], &rows.mean[g]);
        }
        form
    }

    /// The atom of the server's sum Σ_k w_k v_k of the clients' rows. Its origin has β = 0. In a sum by shares of rows
    /// with one β, the parts β F̄_k(θ*) cancel exactly, THEORY (1.1); otherwise their sum goes into the constants.
    fn sum(&mut self, rows: &RoundAtom, weights: &Weights) -> RoundAtom {
        let facts = self.setup.facts;
        // w_g of each type, and w_g β_g/π_g, by which the sum differs from one by shares with a common β.
        let mut of_types = Vec::with_capacity(self.setup.types.len());
        let mut ratios = Vec::with_capacity(self.setup.types.len());
        for (g, t) in self.setup.types.iter().enumerate() {
            let share = facts.share(t.first);
            let weight = match weights {
                Weights::Shares(_) => share,
                Weights::Each(all) => all[t.first],
            };
            of_types.push(weight);
            ratios.push(weight * rows.origin.of_type(g).1 / share);
        }
        let mut form = self.weighted(rows, |g| of_types[g]);
        let mut optimum = 0.0;
        let mut size = 0.0;
        let mut constant = vec![0.0; self.setup.d];
        // If all ratios are equal, the parts β F̄_k(θ*) cancel exactly, since Σ π_k F̄_k(θ*) = 0.
        let is_cancelled =
            ratios[1..].iter().all(|ratio| (ratio - ratios[0]).abs() <= 1e-13 * ratios[0].abs());
        for (g, t) in self.setup.types.iter().enumerate() {
            let part = t.count * of_types[g];
            let (alpha, beta) = rows.origin.of_type(g);
            optimum += part * alpha;
            size += (part * alpha).abs();
            if !is_cancelled {
                let own = self.setup.origin(g, 0.0, part * beta);
                crate::kernel::axpy(1.0, &own, &mut constant);
            }
        }
        form.add_constant(&constant);
        self.server(form, tidy(optimum, 10.0 * size), rows.depends)
    }

    /// The atom of a vector of the server with this form and the origin `optimum` · θ*, which depends on the draws
    /// `depends` ([`RoundAtom::depends`]). If the form has many weights, they become new coordinates, and many noises
    /// become one noise, so that later products stay small.
    pub fn server(&mut self, mut form: Form, optimum: f64, depends: u64) -> RoundAtom {
        let d = self.setup.d;
        // Many weights are more than 3 min(d, 4) for each number of the vector, on average.
        if form.weights.len() > 3 * d * d.min(4) {
            let known = Form::coordinates(self.width, d).weights;
            let weights = std::mem::replace(&mut form.weights, known);
            self.stages.push(Stage::Coordinates(Form { weights, ..Form::zero(d) }));
            self.width += d;
        }
        if form.noise.len() > 2 {
            let id = self.next_noise();
            let parts = std::mem::replace(&mut form.noise, vec![(id, Matrix::identity(d))]);
            self.stages.push(Stage::Sum(parts));
        }
        let origin = Origin::server(optimum);
        RoundAtom { level: Level::Server, mean: vec![form], own: Vec::new(), origin, depends }
    }

    /// The atom of Σ_j m_kj v_j for each client k, THEORY (4.4), where v_j are the rows and `matrix` is (m_kj), N × N.
    fn mix(&mut self, rows: &RoundAtom, matrix: &[f64]) -> RoundAtom {
        let n = self.setup.facts.clients();
        let d = self.setup.d;
        let types = &self.setup.types;
        let mut out = self.empty(rows.depends);
        // The rows with β = 0, whose origins are multiples of θ* alone.
        let plain = self.moved(rows.clone(), |g| (rows.origin.of_type(g).0, 0.0));
        for (g, t) in types.iter().enumerate() {
            let line = &matrix[t.first * n..(t.first + 1) * n];
            // m_own of THEORY (4.4), and m_other, which is the entry of any other client of the type.
            let m_own = line[t.first];
            let another = (0..n).find(|&j| j != t.first && self.setup.type_of[j] == g);
            let m_other = another.map_or(0.0, |j| line[j]);
            let mut form = Form::zero(d);
            let mut optimum = 0.0;
            let mut size = 0.0;
            for (h, other) in types.iter().enumerate() {
                let weight = if g == h {
                    m_own + (t.count - 1.0) * m_other
                } else {
                    other.count * line[other.first]
                };
                if weight != 0.0 {
                    form.add(&vec![weight; d], &plain.mean[h]);
                    optimum += weight * plain.origin.of_type(h).0;
                    size += (weight * plain.origin.of_type(h).0).abs();
                }
            }
            let mut own = Form::zero(d);
            own.add(&vec![m_own - m_other; d], &plain.own[g]);
            out.mean.push(form);
            out.own.push(own);
            out.origin.0.push((tidy(optimum, 10.0 * size), 0.0));
        }
        out
    }

    /// The atom of the mean fields A_k e + F̄_k(θ*), THEORY (1.1), of all clients. Its origin is F̄_k(θ*).
    fn mean_fields(&self, at: &Expression) -> RoundAtom {
        let at = self.minus_optimum(self.rows(at));
        let mut out = self.empty(at.depends);
        for (g, t) in self.setup.types.iter().enumerate() {
            let jacobian = self.setup.facts.jacobian(t.first);
            out.mean.push(at.mean[g].mapped(&jacobian));
            out.own.push(at.own[g].mapped(&jacobian));
            out.origin.0.push((0.0, 1.0));
        }
        out
    }

    /// The atom of a d × d matrix times a vector of the server or of each client, which acts on means and deviations
    /// alike. Clients of a type have the same matrix.
    fn matrix(&mut self, operation: &Operation, of: &Expression, level: Level) -> RoundAtom {
        let d = self.setup.d;
        // The matrix acts on the whole vector, so that its origin goes into the constants.
        let mut atom = self.moved(self.value(of, level), |_| (0.0, 0.0));
        for forms in [&mut atom.mean, &mut atom.own] {
            for (g, form) in forms.iter_mut().enumerate() {
                let client = if level == Level::Server { 0 } else { self.setup.types[g].first };
                let entries = operation.matrix_of_client(client, d).to_vec();
                *form = form.mapped(&Matrix::from_entries(d, d, entries));
            }
        }
        atom
    }

    /// The largest sum of the absolute values of an expression's coefficients, over types and entries: how much larger
    /// than its value the numbers are that it adds up ([`PreparedRound::gain`]).
    fn gain(&self, expression: &Expression) -> f64 {
        let d = self.setup.d;
        let mut gain = 0.0_f64;
        for t in &self.setup.types {
            let mut sums = vec![0.0; d];
            for (_, coefficient) in &expression.terms {
                let sizes = coefficient.entries_of_client(t.first, d);
                sums.iter_mut().zip(sizes).for_each(|(sum, x)| *sum += x.abs());
            }
            gain = sums.into_iter().fold(gain, f64::max);
        }
        gain
    }

    /// The prepared round. Its result is the error θ_t − θ* of the estimate. The next coordinates are the number 1,
    /// the sum of these errors if it is followed, and the vectors of the next state. `after` has the levels of these
    /// vectors, and `target` their origins; without it they are what [`Origin::of_state`] keeps of the present ones.
    fn finish(self, after: &[Level], target: Option<&[Origin]>) -> PreparedRound {
        let result = self.value(&self.round.result, Level::Server);
        let result = self.minus_optimum(result).mean.remove(0);
        let d = self.setup.d;
        let ends = self.round.ends.as_ref().map(|ends| {
            let atom = self.minus_optimum(self.rows(ends));
            ClientForms { mean: atom.mean, own: atom.own }
        });
        let mut next = vec![Form::coordinates(0, 1)];
        let mut origins = Vec::new();
        let mut own_next = vec![Vec::new(); self.setup.types.len()];
        if self.setup.average {
            let mut sum = Form::coordinates(1, d);
            sum.add(&vec![1.0; d], &result);
            next.push(sum);
        }
        for (i, (expression, level)) in self.round.next.iter().zip(after).enumerate() {
            let atom = self.value(expression, *level);
            let origin = target.map_or_else(|| atom.origin.of_state(), |all| all[i].clone());
            let atom = self.moved(atom, |g| origin.of_type(g));
            next.extend(atom.mean);
            own_next.iter_mut().zip(atom.own).for_each(|(all, own)| all.push(own));
            origins.push(atom.origin);
        }
        let gains = self.round.next.iter().map(|expression| self.gain(expression));
        let gain = gains.fold(0.0, f64::max);
        let Self { width, stages, infinite, .. } = self;
        PreparedRound { width, gain, infinite, stages, next, own_next, result, ends, origins }
    }
}

/// The origin of one entry of a vector: the sums of the atoms' α and β times coefficients.
#[derive(Clone, Copy, Default)]
struct OriginSums {
    /// α of the entry.
    optimum: f64,
    /// β of the entry.
    fields: f64,
    /// The sum of the absolute values of the summands of α.
    optimum_size: f64,
    /// The sum of the absolute values of the summands of β.
    fields_size: f64,
}

/// The number that `number` reads of each entry, if it is the same for all entries, and otherwise 0.
fn common_number(sums: &[OriginSums], number: fn(&OriginSums) -> f64) -> f64 {
    let first = number(&sums[0]);
    let is_common = sums.iter().all(|of_entry| number(of_entry) == first);
    if is_common { first } else { 0.0 }
}
