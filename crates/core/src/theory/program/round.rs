//! A round, prepared for a problem: every atom as a form of the state's coordinates and of noises.
//!
//! A vector's coordinates have the origin α θ* + β F̄_k(θ*): with α = 1 they are its distance from
//! θ*, and with β = 1 that of a control variate from its limit. So nothing cancels close to θ*, and
//! whatever α and β are chosen, the numbers are exact.

use super::form::Form;
use super::local::{Drive, GeometricSteps, Steps};
use super::noise::Small;
use super::types::{Type, types};
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::program::{
    Each, Expression, Level, Mask, Operation, PerClient, Program, Round, Weights,
};
use crate::theory::linear::LocalUpdate;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// The most local steps that are kept: where step sizes fall, each round has its own.
const MOST_KEPT: usize = 4096;

/// What identifies local steps: the distribution of the oracle, and each run.
type StepsKey = (usize, [([u64; 4], bool); 2], bool);

/// What a problem says of each type of clients.
pub(super) struct Setup<'a> {
    pub facts: &'a dyn Facts,
    pub d: usize,
    pub types: Vec<Type>,
    /// The type of each client.
    pub type_of: Vec<usize>,
    /// F̄_k(θ*) of each type, d numbers.
    fields: Vec<Vec<f64>>,
    /// Whether the sum of all estimates is part of the state.
    pub average: bool,
    steps: RefCell<HashMap<StepsKey, Rc<Steps>>>,
}

/// α and β of each type of clients; of the server one α.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Origin {
    pub optimum: Vec<f64>,
    pub fields: Vec<f64>,
}

/// An atom: forms of the mean over each type (of the server one), and of a client's deviation
/// from it.
#[derive(Clone, Debug)]
struct Atom {
    level: Level,
    mean: Vec<Form>,
    own: Vec<Form>,
    origin: Origin,
    /// The masks, and as the last bit the cohort, that it depends on.
    depends: u64,
}

const COHORT: u64 = 1 << 63;

/// What makes coordinates and noises of a round known, in order.
pub(super) enum Stage {
    /// A vector becomes coordinates.
    Coordinates(Form),
    /// A sum of noises becomes one.
    Sum(Vec<(usize, Matrix)>),
    /// A noise, with those before it that are drawn together with it.
    Noise { source: Source, law: Law, with: Vec<(usize, Source, Law)> },
    /// What comes of the draw of a cohort, together with what came of it before.
    Drawn(Vec<Drawn>),
}

/// What a noise is linear in, for a type of clients or for the server: the form of y, and of a
/// client's deviation from it.
#[derive(Clone)]
pub(super) struct Source {
    pub of: Option<usize>,
    pub y: Small,
    pub own: Small,
}

/// How the covariance of two noises follows from E y y'ᵀ.
#[derive(Clone)]
pub(super) enum Law {
    /// As that of local steps of two runs.
    Steps(Rc<Steps>),
    /// Standard normal.
    Normal,
    /// What a mask of this variance removes; of all clients together, or of each for itself.
    Mask { variance: f64, each: Each, shared: bool },
    /// Local steps up to a coin that all clients share.
    Coin(Rc<GeometricSteps>, Rc<GeometricSteps>),
}

/// Local steps that share their draws with later ones.
#[derive(Clone)]
struct Shared {
    /// The number of the draws, and whether they are those of single fields.
    draws: (usize, bool),
    id: usize,
    source: Source,
    drive: Drive,
}

/// Rows of which those of a drawn cohort count, by types: less their mean chance.
#[derive(Clone)]
pub(super) struct Drawn {
    /// The number of its first noise: one of each type, or one of the server.
    pub first: usize,
    /// Whether it is a sum over all.
    pub server: bool,
    /// L/N.
    pub chance: f64,
    pub mean: Vec<Small>,
    pub own: Vec<Small>,
    /// Σ over all clients.
    pub total: Small,
}

/// A round, ready to be applied.
pub(super) struct Prepared {
    /// The number of its coordinates.
    pub width: usize,
    pub stages: Vec<Stage>,
    /// Each vector of the next state, and by types each of a client's deviation.
    pub next: Vec<Form>,
    pub own_next: Vec<Vec<Form>>,
    /// θ_t − θ*.
    pub result: Form,
    /// θ_k − θ* of the clients before they communicate, and the deviations, by types.
    pub ends: Option<(Vec<Small>, Vec<Small>)>,
    pub origins: Vec<Origin>,
}

impl<'a> Setup<'a> {
    pub fn new(program: &Program, facts: &'a dyn Facts, average: bool) -> Self {
        let (types, type_of) = types(program, facts);
        let fields = types.iter().map(|t| facts.field_at_optimum(t.first)).collect();
        Self { facts, d: facts.dim(), types, type_of, fields, average, steps: RefCell::default() }
    }

    /// The coordinates of the number 1 and of the sum of estimates.
    pub fn before_state(&self) -> usize {
        1 + if self.average { self.d } else { 0 }
    }

    /// The local steps of two runs on the same draws, or of one run, given twice.
    fn local(&self, g: usize, drives: [Drive; 2], same: bool) -> Result<Rc<Steps>, String> {
        let first = self.types[g].first;
        let key =
            (self.facts.distribution(first), drives.map(|d| (d.update.bits(), d.pulled)), same);
        if let Some(known) = self.steps.borrow().get(&key) {
            return Ok(known.clone());
        }
        let one = Steps::new(self.facts, first, drives, same).ok_or(OPEN)?;
        let [a, b] = drives.map(|drive| drive.update.steps);
        let rest = one.times(a.max(b) - a.min(b));
        let made = match (one.times(a.min(b)), a.cmp(&b)) {
            (both, Ordering::Equal) => both,
            (both, Ordering::Less) => both.alone(1, &rest),
            (both, Ordering::Greater) => both.alone(0, &rest),
        };
        let made = Rc::new(made);
        let mut known = self.steps.borrow_mut();
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert(key, made.clone());
        Ok(made)
    }

    /// α θ* + β F̄ of a type.
    pub fn origin(&self, g: usize, optimum: f64, fields: f64) -> Vec<f64> {
        let star = self.facts.optimum();
        (0..self.d).map(|i| optimum * star[i] + fields * self.fields[g][i]).collect()
    }
}

impl Origin {
    pub fn server(optimum: f64) -> Self {
        Self { optimum: vec![optimum], fields: vec![0.0] }
    }

    pub fn of(&self, g: usize) -> (f64, f64) {
        let at = if self.optimum.len() == 1 { 0 } else { g };
        (self.optimum[at], self.fields[at])
    }

    /// Its bits, to find rounds that are prepared already.
    pub fn bits(&self) -> impl Iterator<Item = u64> {
        self.optimum.iter().chain(&self.fields).map(|x| (x + 0.0).to_bits())
    }

    /// Small whole numbers, which a pattern repeats.
    fn of_state(&self) -> Self {
        let whole = |x: &f64| {
            let near = x.round();
            if (x - near).abs() < 1e-9 && near.abs() <= 8.0 { near } else { 0.0 }
        };
        let all = |list: &[f64]| list.iter().map(whole).collect();
        Self { optimum: all(&self.optimum), fields: all(&self.fields) }
    }
}

/// A sum whose rounding errors are 0 if it is next to a whole number or 0.
fn tidy(sum: f64, size: f64) -> f64 {
    let near = sum.round();
    if (sum - near).abs() <= 1e-13 * size { near } else { sum }
}

struct Preparation<'s, 'a> {
    setup: &'s Setup<'a>,
    round: &'s Round,
    atoms: Vec<Atom>,
    width: usize,
    stages: Vec<Stage>,
    noises: usize,
    masked: Vec<Vec<(usize, Source)>>,
    shared: Vec<Shared>,
    drawn: Vec<Drawn>,
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
) -> Result<Prepared, String> {
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
    };
    p.state(origins);
    for operation in &round.operations {
        let atom = p.operation(operation)?;
        p.atoms.push(atom);
    }
    p.finish(after, target)
}

impl Preparation<'_, '_> {
    fn state(&mut self, origins: &[Origin]) {
        let (d, types) = (self.setup.d, self.setup.types.len());
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
            self.atoms.push(Atom { level: *level, mean, own: deviations, origin, depends: 0 });
        }
    }

    /// An expression: its value for each type, or for the server.
    fn value(&self, expression: &Expression, level: Level) -> Atom {
        let (d, types) = (self.setup.d, self.setup.types.len());
        let vectors = if level == Level::Server { 1 } else { types };
        let mut out = Atom {
            level,
            mean: Vec::with_capacity(vectors),
            own: Vec::new(),
            origin: Origin { optimum: Vec::new(), fields: Vec::new() },
            depends: 0,
        };
        for g in 0..vectors {
            let first = self.setup.types[g].first;
            let (mut mean, mut own) = (Form::zero(d), Form::zero(d));
            let mut constant = expression.constant.of(first, d);
            // The sums of α and of β, and of their sizes, by entries.
            let mut sums = vec![[0.0_f64; 4]; d];
            for (atom, coefficient) in &expression.terms {
                let weights = coefficient.of(first, d);
                let atom = &self.atoms[*atom];
                mean.add(&weights, &atom.mean[if atom.level == Level::Server { 0 } else { g }]);
                if atom.level == Level::Clients {
                    own.add(&weights, &atom.own[g]);
                }
                out.depends |= atom.depends;
                let (optimum, fields) = atom.origin.of(g);
                for (sums, w) in sums.iter_mut().zip(&weights) {
                    let parts = [w * optimum, w * fields, (w * optimum).abs(), (w * fields).abs()];
                    sums.iter_mut().zip(parts).for_each(|(sum, x)| *sum += x);
                }
            }
            sums.iter_mut().for_each(|s| (s[0], s[1]) = (tidy(s[0], s[2]), tidy(s[1], s[3])));
            let same = |k: usize| {
                let equal = sums.iter().all(|s| s[k] == sums[0][k]);
                if equal { sums[0][k] } else { 0.0 }
            };
            let (optimum, fields) = (same(0), same(1));
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
            out.origin.optimum.push(optimum);
            out.origin.fields.push(fields);
        }
        out
    }

    /// The same vector with another origin.
    fn moved(
        &self,
        mut atom: Atom,
        optimum: impl Fn(usize) -> f64,
        fields: impl Fn(usize) -> f64,
    ) -> Atom {
        for (g, form) in atom.mean.iter_mut().enumerate() {
            let (alpha, beta) = atom.origin.of(g);
            form.add_constant(&self.setup.origin(g, alpha - optimum(g), beta - fields(g)));
            (atom.origin.optimum[g], atom.origin.fields[g]) = (optimum(g), fields(g));
        }
        atom
    }

    fn rows(&self, expression: &Expression) -> Atom {
        self.value(expression, Level::Clients)
    }

    fn next_noise(&mut self) -> usize {
        self.noises += 1;
        self.noises - 1
    }

    fn operation(&mut self, operation: &Operation) -> Result<Atom, String> {
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

    fn steps(&mut self, operation: &Operation) -> Result<Atom, String> {
        let Operation::Steps {
            start,
            correction,
            anchor,
            step,
            count,
            batch,
            proximal,
            draws,
            coin,
            ..
        } = operation
        else {
            return Err("no local steps".into());
        };
        let start = self.moved(self.rows(start), |_| 1.0, |_| 0.0);
        let correction = correction.as_ref().map(|xi| self.rows(xi));
        let anchor = match (anchor, *proximal != 0.0) {
            (_, false) => None,
            (Some(anchor), true) => Some(self.moved(self.rows(anchor), |_| 1.0, |_| 0.0)),
            (None, true) => Some(start.clone()),
        };
        let pulled = correction.is_some() || anchor.is_some();
        let (d, types) = (self.setup.d, self.setup.types.clone());
        let mut out = self.empty(start.depends);
        for part in [&correction, &anchor].into_iter().flatten() {
            out.depends |= part.depends;
        }
        let mut tossed = Vec::new();
        for (g, t) in types.iter().enumerate() {
            // The drift that is constant within the steps: F̄_k(θ*) + ξ − μ(anchor − θ*).
            let (mut drift, mut own_drift) = (Form::zero(d), Form::zero(d));
            let mut fields = 1.0;
            if let Some(xi) = &correction {
                drift.add(&vec![1.0; d], &xi.mean[g]);
                own_drift.add(&vec![1.0; d], &xi.own[g]);
                let (optimum, own) = xi.origin.of(g);
                drift.add_constant(&self.setup.origin(g, optimum, 0.0));
                fields += own;
            }
            if let Some(anchor) = &anchor {
                drift.add(&vec![-proximal; d], &anchor.mean[g]);
                own_drift.add(&vec![-proximal; d], &anchor.own[g]);
            }
            drift.add_constant(&self.setup.origin(g, 0.0, fields));
            let update = LocalUpdate {
                step: step.of(t.first),
                steps: if coin.is_some() { 1 } else { count.of(t.first) },
                batch: batch.of(t.first),
                proximal: *proximal,
            };
            let drive = Drive { update, pulled };
            let mut one = Form::zero(1);
            one.add_constant(&[1.0]);
            let (mean, own) = (&start.mean[g], &start.own[g]);
            let (y, own) = match pulled {
                true => (
                    Form::stacked(&[mean, &one, &drift]),
                    Form::stacked(&[own, &Form::zero(1), &own_drift]),
                ),
                false => (Form::stacked(&[mean, &one]), Form::stacked(&[own, &Form::zero(1)])),
            };
            let length = match coin {
                Some(coin) => update.step / coin,
                None => update.step * update.steps as f64,
            };
            let origin = if pulled { -length * fields } else { 0.0 };
            let source = Source { of: Some(g), y: Small::new(&y), own: Small::new(&own) };
            let steps = self.setup.local(g, [drive; 2], true)?;
            match coin {
                None => {
                    let end = steps.end(0).clone();
                    self.noisy(&mut out, (&y, &own), &end, source.clone(), Law::Steps(steps));
                    let draws = draws.map(|draws| (draws, false));
                    self.share(draws, source, drive)?;
                }
                Some(coin) => {
                    let steps = Rc::new(GeometricSteps::new(&steps, *coin));
                    let end = steps.end.clone();
                    let law = Law::Coin(steps.clone(), steps.clone());
                    let id = self.noises;
                    self.noisy(&mut out, (&y, &own), &end, source.clone(), law);
                    let with = tossed.iter().map(|(id, source, other): &(_, _, Rc<_>)| {
                        (*id, Source::clone(source), Law::Coin(steps.clone(), Rc::clone(other)))
                    });
                    self.correlate(with.collect());
                    tossed.push((id, source, steps));
                }
            }
            out.mean[g].add_constant(&self.setup.origin(g, 0.0, -origin));
            out.origin.optimum.push(1.0);
            out.origin.fields.push(origin);
        }
        Ok(out)
    }

    fn fields(
        &mut self,
        at: &Expression,
        calls: &PerClient<u64>,
        draws: Option<usize>,
    ) -> Result<Atom, String> {
        let at = self.moved(self.rows(at), |_| 1.0, |_| 0.0);
        let mut out = self.empty(at.depends);
        for g in 0..self.setup.types.len() {
            // The noise of a step of length 1.
            let batch = calls.of(self.setup.types[g].first);
            let update = LocalUpdate { step: 1.0, steps: 1, batch, proximal: 0.0 };
            let drive = Drive { update, pulled: false };
            let law = Law::Steps(self.setup.local(g, [drive; 2], true)?);
            let mut one = Form::zero(1);
            one.add_constant(&[1.0]);
            let y = Form::stacked(&[&at.mean[g], &one]);
            let own = Form::stacked(&[&at.own[g], &Form::zero(1)]);
            let jacobian = self.setup.facts.jacobian(self.setup.types[g].first);
            let d = self.setup.d;
            let map = Matrix::from_fn(d, d + 1, |i, j| if j < d { jacobian[(i, j)] } else { 0.0 });
            let source = Source { of: Some(g), y: Small::new(&y), own: Small::new(&own) };
            self.noisy(&mut out, (&y, &own), &map, source.clone(), law);
            self.share(draws.map(|draws| (draws, true)), source, drive)?;
            out.origin.optimum.push(0.0);
            out.origin.fields.push(1.0);
        }
        Ok(out)
    }

    /// An atom of the clients without vectors yet.
    fn empty(&self, depends: u64) -> Atom {
        let origin = Origin { optimum: Vec::new(), fields: Vec::new() };
        Atom { level: Level::Clients, mean: Vec::new(), own: Vec::new(), origin, depends }
    }

    /// Adds `map` y and a noise.
    fn noisy(
        &mut self,
        out: &mut Atom,
        (y, own): (&Form, &Form),
        map: &Matrix,
        source: Source,
        law: Law,
    ) {
        let id = self.next_noise();
        let unit = vec![1.0; self.setup.d];
        for (to, from) in [(&mut out.mean, y), (&mut out.own, own)] {
            let mut end = from.mapped(map);
            end.add(&unit, &Form::noise(id, self.setup.d));
            to.push(end);
        }
        self.stages.push(Stage::Noise { source, law, with: Vec::new() });
    }

    /// Says with what the last noise is drawn together.
    fn correlate(&mut self, all: Vec<(usize, Source, Law)>) {
        if let Some(Stage::Noise { with, .. }) = self.stages.last_mut() {
            *with = all;
        }
    }

    /// The last noise is of local steps whose draws others may share.
    fn share(
        &mut self,
        draws: Option<(usize, bool)>,
        source: Source,
        drive: Drive,
    ) -> Result<(), String> {
        let Some(draws) = draws else { return Ok(()) };
        let mut with = Vec::new();
        let type_of = source.of.unwrap_or(0);
        let same = |other: &&Shared| other.draws == draws && other.source.of == source.of;
        for other in self.shared.iter().filter(same) {
            let law = Law::Steps(self.setup.local(type_of, [drive, other.drive], false)?);
            with.push((other.id, other.source.clone(), law));
        }
        self.shared.push(Shared { draws, id: self.noises - 1, source, drive });
        self.correlate(with);
        Ok(())
    }

    /// Σ_g n_g w_g of the means over types.
    fn weighted(&self, rows: &Atom, weights: impl Fn(usize) -> f64) -> Form {
        let mut form = Form::zero(self.setup.d);
        for (g, t) in self.setup.types.iter().enumerate() {
            form.add(&vec![t.count * weights(g); self.setup.d], &rows.mean[g]);
        }
        form
    }

    fn sum(&mut self, rows: &Atom, weights: &Weights) -> Atom {
        let facts = self.setup.facts;
        let first = |g: usize| self.setup.types[g].first;
        let weight = |g: usize| match weights {
            Weights::Shares(_) => facts.share(first(g)),
            Weights::Each(all) => all[first(g)],
        };
        let mut form = self.weighted(rows, weight);
        let (mut optimum, mut size) = (0.0, 0.0);
        let mut constant = vec![0.0; self.setup.d];
        // Σ π_k F̄_k(θ*) = 0.
        let level = |g: usize| weight(g) * rows.origin.fields[g] / facts.share(first(g));
        let whole = (1..self.setup.types.len())
            .all(|g| (level(g) - level(0)).abs() <= 1e-13 * level(0).abs());
        for (g, t) in self.setup.types.iter().enumerate() {
            let part = t.count * weight(g);
            optimum += part * rows.origin.optimum[g];
            size += (part * rows.origin.optimum[g]).abs();
            if !whole {
                let own = self.setup.origin(g, 0.0, part * rows.origin.fields[g]);
                crate::kernel::axpy(1.0, &own, &mut constant);
            }
        }
        form.add_constant(&constant);
        self.server(form, tidy(optimum, 10.0 * size), rows.depends)
    }

    /// A vector of the server: what is long becomes coordinates and a noise of its own.
    fn server(&mut self, mut form: Form, optimum: f64, depends: u64) -> Atom {
        let d = self.setup.d;
        if form.size() > 3 * d * d.min(4) {
            self.stages.push(Stage::Coordinates(form.without_noise()));
            form.rows = Form::coordinates(self.width, d).rows;
            self.width += d;
        }
        if form.noise.len() > 2 {
            let id = self.next_noise();
            let parts = std::mem::replace(&mut form.noise, vec![(id, Matrix::identity(d))]);
            self.stages.push(Stage::Sum(parts));
        }
        let origin = Origin::server(optimum);
        Atom { level: Level::Server, mean: vec![form], own: Vec::new(), origin, depends }
    }

    /// Notes that rows count only for the members of the cohort.
    fn draw(&mut self, rows: &Atom, server: bool) -> Result<usize, String> {
        if rows.depends & COHORT != 0 {
            return Err("what comes of the cohort's draw enters what its members send again".into());
        }
        let first = self.noises;
        self.noises += if server { 1 } else { self.setup.types.len() };
        let (mean, own) = (rows.mean.iter().map(Small::new), rows.own.iter().map(Small::new));
        let total = Small::new(&self.weighted(rows, |_| 1.0));
        let chance = self.chance();
        self.drawn.push(Drawn {
            first,
            server,
            chance,
            mean: mean.collect(),
            own: own.collect(),
            total,
        });
        self.stages.push(Stage::Drawn(self.drawn.clone()));
        Ok(first)
    }

    fn chance(&self) -> f64 {
        let n = self.setup.facts.clients();
        self.round.cohort.unwrap_or(n) as f64 / n as f64
    }

    fn members(&mut self, rows: &Expression) -> Result<Atom, String> {
        // A part of all rows that is the same for all is the same in the mean.
        let rows = self.rows(rows);
        let optimum = rows.origin.optimum[0];
        let rows = self.moved(rows, |_| optimum, |_| 0.0);
        let (n, d) = (self.setup.facts.clients() as f64, self.setup.d);
        let mut form = self.weighted(&rows, |_| 1.0 / n);
        let id = self.draw(&rows, true)?;
        form.add(&vec![1.0 / (n * self.chance()); d], &Form::noise(id, d));
        Ok(self.server(form, optimum, rows.depends | COHORT))
    }

    fn select(&mut self, member: &Expression, other: &Expression) -> Result<Atom, String> {
        let other = self.rows(other);
        let origin = other.origin.clone();
        let member = self.moved(self.rows(member), |g| origin.of(g).0, |g| origin.of(g).1);
        let mut change = member.clone();
        let (d, chance) = (self.setup.d, self.chance());
        change.depends |= other.depends;
        for g in 0..change.mean.len() {
            change.mean[g].add(&vec![-1.0; d], &other.mean[g]);
            change.own[g].add(&vec![-1.0; d], &other.own[g]);
        }
        let first = self.draw(&change, false)?;
        let mut out = other;
        for g in 0..change.mean.len() {
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

    fn mix(&mut self, rows: &Atom, matrix: &[f64]) -> Atom {
        let (n, d) = (self.setup.facts.clients(), self.setup.d);
        let types = &self.setup.types;
        let mut out = self.empty(rows.depends);
        let plain = self.moved(rows.clone(), |g| rows.origin.of(g).0, |_| 0.0);
        for (g, t) in types.iter().enumerate() {
            let line = &matrix[t.first * n..(t.first + 1) * n];
            let another = (0..n).find(|&j| j != t.first && self.setup.type_of[j] == g);
            let apart = another.map_or(0.0, |j| line[j]);
            let mut form = Form::zero(d);
            let (mut optimum, mut size) = (0.0, 0.0);
            for (h, other) in types.iter().enumerate() {
                let weight = match g == h {
                    true => line[t.first] + (t.count - 1.0) * apart,
                    false => other.count * line[other.first],
                };
                if weight != 0.0 {
                    form.add(&vec![weight; d], &plain.mean[h]);
                    optimum += weight * plain.origin.of(h).0;
                    size += (weight * plain.origin.of(h).0).abs();
                }
            }
            let mut own = Form::zero(d);
            own.add(&vec![line[t.first] - apart; d], &plain.own[g]);
            let near = tidy(optimum, 10.0 * size);
            out.mean.push(form);
            out.own.push(own);
            out.origin.optimum.push(near);
            out.origin.fields.push(0.0);
        }
        out
    }

    fn matrix(&mut self, of: &Expression, matrix: &[f64], level: Level) -> Atom {
        let d = self.setup.d;
        let map = Matrix::from_entries(d, d, matrix.to_vec());
        let mut atom = self.moved(self.value(of, level), |_| 0.0, |_| 0.0);
        for form in atom.mean.iter_mut().chain(&mut atom.own) {
            *form = form.mapped(&map);
        }
        atom
    }

    fn normal(&mut self, level: Level) -> Atom {
        let d = self.setup.d;
        let none = Small::new(&Form::zero(d));
        let mut add = |of: Option<usize>| {
            let source = Source { of, y: none.clone(), own: none.clone() };
            self.stages.push(Stage::Noise { source, law: Law::Normal, with: Vec::new() });
            self.noises += 1;
            Form::noise(self.noises - 1, d)
        };
        if level == Level::Server {
            let noise = add(None);
            return self.server(noise, 0.0, 0);
        }
        let mean: Vec<Form> = (0..self.setup.types.len()).map(|g| add(Some(g))).collect();
        let zeros = vec![0.0; mean.len()];
        let origin = Origin { optimum: zeros.clone(), fields: zeros };
        Atom { level, own: mean.clone(), mean, origin, depends: 0 }
    }

    fn mask(&mut self, of: &Expression, mask: usize, level: Level) -> Result<Atom, String> {
        let Mask { probability, each, level: drawn } = self.round.masks[mask].clone();
        let mut out = self.moved(self.value(of, level), |_| 0.0, |_| 0.0);
        let bit = 1 << mask.min(62);
        if out.depends & bit != 0 || mask > 62 {
            return Err("what a random mask removes is masked by it again".into());
        }
        let d = self.setup.d;
        let variance = probability * (1.0 - probability);
        let law = Law::Mask { variance, each, shared: drawn == Level::Server };
        for g in 0..out.mean.len() {
            let own = out.own.get(g).cloned().unwrap_or_else(|| Form::zero(d));
            let of = (level == Level::Clients).then_some(g);
            let source = Source { of, y: Small::new(&out.mean[g]), own: Small::new(&own) };
            let together =
                |other: &&(usize, Source)| drawn == Level::Server || other.1.of == source.of;
            let with = self.masked[mask].iter().filter(together);
            let with = with.map(|(id, other)| (*id, other.clone(), law.clone())).collect();
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

    fn finish(self, after: &[Level], target: Option<&[Origin]>) -> Result<Prepared, String> {
        let result = self.value(&self.round.result, Level::Server);
        let result = self.moved(result, |_| 1.0, |_| 0.0).mean.remove(0);
        let d = self.setup.d;
        let ends = self.round.ends.as_ref().map(|ends| {
            let atom = self.moved(self.rows(ends), |_| 1.0, |_| 0.0);
            let small = |forms: &[Form]| forms.iter().map(Small::new).collect();
            (small(&atom.mean), small(&atom.own))
        });
        let (mut next, mut origins) = (Vec::new(), Vec::new());
        let mut own_next = vec![Vec::new(); self.setup.types.len()];
        if self.setup.average {
            let mut sum = Form::coordinates(1, d);
            sum.add(&vec![1.0; d], &result);
            next.push(sum);
        }
        for (i, (expression, level)) in self.round.next.iter().zip(after).enumerate() {
            let atom = self.value(expression, *level);
            let origin = target.map_or_else(|| atom.origin.of_state(), |all| all[i].clone());
            let atom = self.moved(atom, |g| origin.of(g).0, |g| origin.of(g).1);
            next.extend(atom.mean);
            for (all, own) in own_next.iter_mut().zip(atom.own) {
                all.push(own);
            }
            origins.push(atom.origin);
        }
        let Self { width, stages, .. } = self;
        Ok(Prepared { width, stages, next, own_next, result, ends, origins })
    }
}

const OPEN: &str = "second moments of the problem's field do not close";
