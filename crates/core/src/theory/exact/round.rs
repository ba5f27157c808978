//! A round, prepared for a problem: every atom as a form of the state's coordinates and of noises, THEORY (4.1).

use super::coin::InfiniteMoments;
use super::error::MomentsError;
use super::form::Form;
use super::local::Drive;
use super::setup::{Origin, Setup, tidy};
use super::stages::{Drawn, NoiseSource, PreparedRound, Stage};
use crate::linalg::Matrix;
use crate::round_program::{Expression, Level, Operation, Round, Weights};

/// An atom, whose clients' vectors are split by THEORY (3.1).
#[derive(Clone, Debug)]
pub(super) struct RoundAtom {
    pub level: Level,
    /// The form of v̄_g for each type g; one form of the server.
    pub mean: Vec<Form>,
    /// The form of a client's deviation ṽ_k for each type, over coordinates of deviations; none of the server.
    pub own: Vec<Form>,
    pub origin: Origin,
    /// The masks, and as the last bit the cohort, on which the atom depends.
    pub depends: u64,
}

/// The bit of the cohort.
pub(super) const COHORT: u64 = 1 << 63;

/// Local steps or gradients that share their draws with later ones of their kind.
#[derive(Clone)]
pub(super) struct SharedSteps {
    /// The number of the draws, and whether these are of single gradients.
    pub draws: (usize, bool),
    /// The number of the noise.
    pub id: usize,
    pub source: NoiseSource,
    pub drive: Drive,
}

/// A round that is being prepared.
pub(super) struct Preparation<'s, 'a> {
    pub setup: &'s Setup<'a>,
    pub round: &'s Round,
    pub atoms: Vec<RoundAtom>,
    /// The number of coordinates so far.
    pub width: usize,
    pub stages: Vec<Stage>,
    /// The number of noises so far.
    pub noises: usize,
    /// For each mask of the round the noises that its coins made, with what they mask.
    pub masked: Vec<Vec<(usize, NoiseSource)>>,
    pub shared: Vec<SharedSteps>,
    /// What was drawn of the cohort so far.
    pub drawn: Vec<Drawn>,
    pub infinite: Option<InfiniteMoments>,
}

/// Prepares a round whose state has these origins, and after which the state has these levels; the
/// next state has the origins of `target`, if they are given.
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
        infinite: None,
    };
    p.state(origins);
    for operation in &round.operations {
        let atom = p.operation(operation)?;
        p.atoms.push(atom);
    }
    Ok(p.finish(after, target))
}

impl Preparation<'_, '_> {
    /// Makes the vectors of the state atoms, whose forms are coordinates.
    fn state(&mut self, origins: &[Origin]) {
        let d = self.setup.d;
        let types = self.setup.types.len();
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

    /// The value of an expression of the server, or of clients: Σ coefficient · atom + constant, for each
    /// type. Its origin is the sum of the atoms' origins where that is the same for all entries, and
    /// otherwise 0; what the origin does not contain goes into the constants, THEORY (4.8).
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
            // The sums of α and of β, and of their sizes, by entries.
            let mut sums = vec![[0.0_f64; 4]; d];
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
                    let parts = [w * optimum, w * fields, (w * optimum).abs(), (w * fields).abs()];
                    sums.iter_mut().zip(parts).for_each(|(sum, x)| *sum += x);
                }
            }
            for s in &mut sums {
                s[0] = tidy(s[0], s[2]);
                s[1] = tidy(s[1], s[3]);
            }
            let optimum = common_number(&sums, 0);
            let fields = common_number(&sums, 1);
            let star = self.setup.facts.optimum();
            for (i, sums) in sums.iter().enumerate() {
                constant[i] += (sums[0] - optimum) * star[i];
                constant[i] += (sums[1] - fields) * self.setup.fields[g][i];
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

    /// An atom's vector with another origin, the α and β that `to` states for each type: THEORY (4.8). Its
    /// coordinates change by constants.
    pub fn moved(&self, mut atom: RoundAtom, to: impl Fn(usize) -> (f64, f64)) -> RoundAtom {
        for (g, form) in atom.mean.iter_mut().enumerate() {
            let (alpha, beta) = atom.origin.of_type(g);
            let (optimum, fields) = to(g);
            form.add_constant(&self.setup.origin(g, alpha - optimum, beta - fields));
            atom.origin.0[g] = (optimum, fields);
        }
        atom
    }

    /// An atom's vector minus θ*, as (α, β) = (1, 0) says.
    pub fn error(&self, atom: RoundAtom) -> RoundAtom {
        self.moved(atom, |_| (1.0, 0.0))
    }

    /// The value of an expression for each client.
    pub fn rows(&self, expression: &Expression) -> RoundAtom {
        self.value(expression, Level::Clients)
    }

    /// The number of the next noise.
    pub fn next_noise(&mut self) -> usize {
        self.noises += 1;
        self.noises - 1
    }

    /// The atom that an operation makes.
    ///
    /// # Errors
    /// Why its moments do not close.
    fn operation(&mut self, operation: &Operation) -> Result<RoundAtom, MomentsError> {
        match operation {
            Operation::Steps { .. } => self.steps(operation),
            Operation::Fields { at, calls, draws, .. } => self.fields(at, calls, *draws),
            Operation::Sum { rows, weights } => Ok(self.sum(&self.rows(rows), weights)),
            Operation::Members { rows } => self.members(rows),
            Operation::Select { member, other } => self.select(member, other),
            Operation::Mix { rows, matrix } => Ok(self.mix(&self.rows(rows), matrix)),
            Operation::Matrix { of, matrix, level } => Ok(self.matrix(of, matrix, *level)),
            Operation::Normal { level } => Ok(self.normal(*level)),
            Operation::Mask { of, mask, level } => self.mask(of, *mask, *level),
        }
    }

    /// Σ_k w_k v_k over clients = Σ_g n_g w_g v̄_g, where `weights` are w_g: deviations add up to 0,
    /// THEORY (3.1).
    pub fn weighted(&self, rows: &RoundAtom, weights: impl Fn(usize) -> f64) -> Form {
        let mut form = Form::zero(self.setup.d);
        for (g, t) in self.setup.types.iter().enumerate() {
            form.add(&vec![t.count * weights(g); self.setup.d], &rows.mean[g]);
        }
        form
    }

    /// The server's sum of rows with weights. A sum by shares loses β of its origin, THEORY (1.1).
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
        let whole =
            ratios[1..].iter().all(|ratio| (ratio - ratios[0]).abs() <= 1e-13 * ratios[0].abs());
        for (g, t) in self.setup.types.iter().enumerate() {
            let part = t.count * of_types[g];
            let (alpha, beta) = rows.origin.of_type(g);
            optimum += part * alpha;
            size += (part * alpha).abs();
            if !whole {
                let own = self.setup.origin(g, 0.0, part * beta);
                crate::kernel::axpy(1.0, &own, &mut constant);
            }
        }
        form.add_constant(&constant);
        self.server(form, tidy(optimum, 10.0 * size), rows.depends)
    }

    /// A vector of the server with the origin `optimum` · θ*. Many weights become new coordinates, and many
    /// noises one noise, so that later products stay small.
    pub fn server(&mut self, mut form: Form, optimum: f64, depends: u64) -> RoundAtom {
        let d = self.setup.d;
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

    /// Σ_j m_kj v_j for each client k, THEORY (4.4), where `matrix` is (m_kj), N × N.
    fn mix(&mut self, rows: &RoundAtom, matrix: &[f64]) -> RoundAtom {
        let n = self.setup.facts.clients();
        let d = self.setup.d;
        let types = &self.setup.types;
        let mut out = self.empty(rows.depends);
        // The rows with β = 0, whose origins are multiples of θ* alone.
        let plain = self.moved(rows.clone(), |g| (rows.origin.of_type(g).0, 0.0));
        for (g, t) in types.iter().enumerate() {
            let line = &matrix[t.first * n..(t.first + 1) * n];
            let another = (0..n).find(|&j| j != t.first && self.setup.type_of[j] == g);
            let apart = another.map_or(0.0, |j| line[j]);
            let mut form = Form::zero(d);
            let mut optimum = 0.0;
            let mut size = 0.0;
            for (h, other) in types.iter().enumerate() {
                let weight = if g == h {
                    line[t.first] + (t.count - 1.0) * apart
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
            own.add(&vec![line[t.first] - apart; d], &plain.own[g]);
            out.mean.push(form);
            out.own.push(own);
            out.origin.0.push((tidy(optimum, 10.0 * size), 0.0));
        }
        out
    }

    /// A d × d matrix times a vector of the server or of each client, which acts on means and deviations alike.
    fn matrix(&mut self, of: &Expression, matrix: &[f64], level: Level) -> RoundAtom {
        let d = self.setup.d;
        let map = Matrix::from_entries(d, d, matrix.to_vec());
        let mut atom = self.moved(self.value(of, level), |_| (0.0, 0.0));
        for form in atom.mean.iter_mut().chain(&mut atom.own) {
            *form = form.mapped(&map);
        }
        atom
    }

    /// The largest sum of the sizes of an expression's coefficients, over types and entries.
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
        let result = self.error(result).mean.remove(0);
        let d = self.setup.d;
        let ends = self.round.ends.as_ref().map(|ends| {
            let atom = self.error(self.rows(ends));
            (atom.mean, atom.own)
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

/// Number k of the sums of each entry, if it is the same for all entries, and otherwise 0.
fn common_number(sums: &[[f64; 4]], k: usize) -> f64 {
    let equal = sums.iter().all(|of_entry| of_entry[k] == sums[0][k]);
    if equal { sums[0][k] } else { 0.0 }
}
