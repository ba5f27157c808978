//! The exact moments of a program's rounds.

use super::noise::Known;
use super::round::{Drawn, Law, Origin, Prepared, Setup, Source, Stage, prepare};
use super::types::types;
use crate::kernel::{difference, dot};
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::program::{Each, Level, Operation, PerClient, Program};
use crate::theory::effort::{self, Effort};
use crate::theory::moments::Moments;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Whether second moments of programs close on a problem.
///
/// # Errors
/// Why they do not.
pub fn closes(facts: &dyn Facts) -> Result<(), String> {
    match (facts.linear(), facts.independent()) {
        (true, true) => Ok(()),
        (false, _) => Err("the field of the problem is not linear".into()),
        (_, false) => Err("the draws of a client depend on each other".into()),
    }
}

/// What identifies a prepared round: its place, that of the round after it, and origins.
type Key = (usize, Option<usize>, Vec<u64>);

/// The exact moments of a program on a problem with a linear field and independent draws.
pub struct ProgramMoments<'a> {
    pub(super) program: &'a Program,
    pub(super) setup: Setup<'a>,
    prepared: RefCell<HashMap<Key, Rc<Prepared>>>,
}

/// The state between two rounds: mean and covariance of its coordinates, of which the first is the
/// number 1, and the covariance of a client's deviation from the mean of its type.
#[derive(Clone)]
pub(super) struct State {
    pub mean: Vec<f64>,
    pub covariance: Matrix,
    pub own: Vec<Matrix>,
    pub origins: Vec<Origin>,
}

impl<'a> ProgramMoments<'a> {
    /// Prepares the moments of a program.
    ///
    /// # Errors
    /// Why there are none.
    pub fn new(program: &'a Program, facts: &'a dyn Facts) -> Result<Self, String> {
        Self::with_average(program, facts, true)
    }

    /// The same; the mean of all estimates is followed on request.
    pub(super) fn with_average(
        program: &'a Program,
        facts: &'a dyn Facts,
        average: bool,
    ) -> Result<Self, String> {
        if (program.clients, program.dimension) != (facts.clients(), facts.dim()) {
            return Err("the program is that of another number of clients or dimensions".into());
        }
        closes(facts)?;
        let cohort = program.rounds.iter().any(|round| round.cohort.is_some());
        if cohort && facts.unequal_shares().is_some() {
            return Err("a cohort of clients of unequal shares has no fixed mean".into());
        }
        let setup = Setup::new(program, facts, average);
        Ok(Self { program, setup, prepared: RefCell::default() })
    }

    /// Round number `round` from a state with these origins.
    pub(super) fn prepared(
        &self,
        round: u64,
        origins: &[Origin],
        target: Option<&[Origin]>,
    ) -> Result<Rc<Prepared>, String> {
        let beyond = || format!("nothing is known of round {round}");
        let place = self.program.place(round).ok_or_else(beyond)?;
        let next = self.program.place(round + 1);
        let of = |all: &[Origin]| all.iter().flat_map(Origin::bits).collect::<Vec<_>>();
        let mut bits = of(origins);
        bits.extend(target.into_iter().flat_map(of));
        let key = (place, next, bits);
        if let Some(known) = self.prepared.borrow().get(&key) {
            return Ok(known.clone());
        }
        let after: &[Level] = next.map_or(&[], |next| &self.program.rounds[next].state);
        let made = prepare(&self.setup, &self.program.rounds[place], origins, after, target)?;
        let made = Rc::new(made);
        self.prepared.borrow_mut().insert(key, made.clone());
        Ok(made)
    }

    /// The state before the first round, from θ_0; the number 1 is `unit`.
    pub(super) fn initial(&self, start: &[f64], unit: f64) -> State {
        let mut mean = vec![0.0; self.setup.before_state()];
        mean[0] = unit;
        let mut origins = Vec::new();
        if self.program.round(1).is_some_and(|first| !first.state.is_empty()) {
            mean.extend(difference(start, self.setup.facts.optimum()));
            origins.push(Origin::server(1.0));
        }
        let own = vec![Matrix::zeros(0, 0); self.setup.types.len()];
        State { covariance: Matrix::zeros(mean.len(), mean.len()), mean, own, origins }
    }

    /// A round: the state after it, and E (θ_t − θ*) and Cov θ_t.
    pub(super) fn after(&self, round: &Prepared, state: &State) -> (State, Vec<f64>, Matrix) {
        let mut known = Known::new(&state.mean, &state.covariance, &state.own, round.width);
        round.stages.iter().for_each(|stage| self.learn(&mut known, stage));
        let covariance = |left: &Matrix, a, b: &super::form::Form| {
            let mut out = b.transposed_after(left);
            if let Some(noise) = known.noise.between(a, b) {
                out.add(1.0, &noise);
            }
            out
        };
        let result = &round.result;
        let square = covariance(&result.times(&known.covariance, round.width), result, result);
        let d = self.setup.d;
        let size = 1 + round.next.len() * d;
        let mut next = State {
            mean: vec![known.mean[0]],
            covariance: Matrix::zeros(size, size),
            own: Vec::with_capacity(state.own.len()),
            origins: round.origins.clone(),
        };
        next.covariance[(0, 0)] = known.covariance[(0, 0)];
        for (i, form) in round.next.iter().enumerate() {
            next.mean.extend(form.value(&known.mean));
            let left = form.times(&known.covariance, round.width);
            for k in 0..d {
                next.covariance[(1 + i * d + k, 0)] = left[(k, 0)];
                next.covariance[(0, 1 + i * d + k)] = left[(k, 0)];
            }
            for (j, other) in round.next.iter().enumerate().skip(i) {
                let block = covariance(&left, form, other);
                put(&mut next.covariance, (1 + i * d, 1 + j * d), &block);
            }
        }
        for (g, forms) in round.own_next.iter().enumerate() {
            let mut own = Matrix::zeros(forms.len() * d, forms.len() * d);
            for (i, form) in forms.iter().enumerate() {
                let left = form.times(&known.own[g], known.own[g].cols());
                for (j, other) in forms.iter().enumerate().skip(i) {
                    let mut block = other.transposed_after(&left);
                    if let Some(noise) = known.own_noise.between(form, other) {
                        block.add(1.0, &noise);
                    }
                    put(&mut own, (i * d, j * d), &block);
                }
            }
            next.own.push(own);
        }
        (next, result.value(&known.mean), square)
    }

    /// Makes what a stage gives known.
    fn learn(&self, known: &mut Known, stage: &Stage) {
        match stage {
            Stage::Coordinates(form) => known.append(form),
            Stage::Sum(parts) => known.add_sum(parts),
            Stage::Noise { source, law, with } => {
                let (mut mean, mut own) = (Vec::new(), Vec::new());
                for (id, other, law) in with {
                    let (covariance, deviation) = self.covariance(known, source, other, law);
                    mean.push((*id, covariance));
                    own.extend(deviation.map(|deviation| (*id, deviation)));
                }
                let (covariance, deviation) = self.covariance(known, source, source, law);
                let d = self.setup.d;
                let deviation = deviation.unwrap_or_else(|| Matrix::zeros(d, d));
                known.add_noise((covariance, deviation), mean, own);
            }
            Stage::Drawn(all) => self.draw(known, all),
        }
    }

    /// The covariance of two noises that are drawn together, and that of the deviations of a client
    /// where both are of one type.
    fn covariance(
        &self,
        known: &Known,
        a: &Source,
        b: &Source,
        law: &Law,
    ) -> (Matrix, Option<Matrix>) {
        let d = self.setup.d;
        let same = a.of.filter(|_| a.of == b.of);
        let mean = || known.second(&a.y, &b.y);
        let own = || same.map(|g| known.own_second(g, &a.own, &b.own));
        let whole = || own().map_or_else(mean, |own| mean().plus(1.0, &own));
        // The mean over a type has the n-th part of a client's variance, a deviation has the rest.
        let split = |covariance: Matrix| match same {
            None => (covariance, None),
            Some(g) => {
                let n = self.setup.types[g].count;
                (covariance.scaled(1.0 / n), Some(covariance.scaled(1.0 - 1.0 / n)))
            }
        };
        match law {
            Law::Steps(steps) => split(steps.covariance(&whole())),
            Law::Normal => split(Matrix::identity(d).scaled(known.unit())),
            Law::Mask { variance, each, shared } => {
                let kept = |m: Matrix| {
                    let of = |i, j| if *each == Each::Row || i == j { *variance } else { 0.0 };
                    Matrix::from_fn(d, d, |i, j| of(i, j) * m[(i, j)])
                };
                if *shared { (kept(mean()), own().map(kept)) } else { split(kept(whole())) }
            }
            Law::Coin(mine, theirs) => {
                // What the number of steps, which all clients share, adds to the product of means.
                let beyond = |y: &Matrix| {
                    let product = mine.end.times(y).times_transposed(&theirs.end);
                    mine.pair(theirs, y).plus(-1.0, &product)
                };
                let (mean, Some(own)) = (mean(), own()) else { return (beyond(&mean()), None) };
                let whole = mean.plus(1.0, &own);
                let (each, rest) = split(mine.own(&whole).plus(-1.0, &mine.pair(mine, &whole)));
                let rest = rest.map(|rest| rest.plus(1.0, &beyond(&own)));
                (each.plus(1.0, &beyond(&mean)), rest)
            }
        }
    }

    /// The noise of the last of what came of a cohort, with the others.
    fn draw(&self, known: &mut Known, all: &[Drawn]) {
        let Some(last) = all.last() else { return };
        let types = &self.setup.types;
        let groups = |drawn: &Drawn| if drawn.server { 1 } else { types.len() };
        for g in 0..groups(last) {
            let (mut with, mut own_with, mut own) = (Vec::new(), Vec::new(), Matrix::zeros(0, 0));
            for other in all {
                for h in 0..groups(other) {
                    let id = other.first + h;
                    if id > last.first + g {
                        break;
                    }
                    let (covariance, deviation) = self.drawn(known, (last, g), (other, h));
                    if id == last.first + g {
                        own =
                            deviation.unwrap_or_else(|| Matrix::zeros(self.setup.d, self.setup.d));
                    } else if let Some(deviation) = deviation {
                        own_with.push((id, deviation));
                    }
                    with.push((id, covariance));
                }
            }
            let Some((_, covariance)) = with.pop() else { return };
            known.add_noise((covariance, own), with, own_with);
        }
    }

    /// Cov Σ (1_k − p) a_k, Σ (1_k − p) b_k of a cohort's members k, drawn without replacement, a
    /// of the clients of a type or of all, and that of the deviations of a type.
    fn drawn(
        &self,
        known: &Known,
        (a, g): (&Drawn, usize),
        (b, h): (&Drawn, usize),
    ) -> (Matrix, Option<Matrix>) {
        let types = &self.setup.types;
        let n = self.setup.facts.clients() as f64;
        let p = a.chance;
        let q = p * (1.0 - p);
        // Of two clients.
        let c = -q / (n - 1.0);
        let d = self.setup.d;
        let mut out = Matrix::zeros(d, d);
        let mut deviation = None;
        let both = (0..types.len()).filter(|k| (a.server || *k == g) && (b.server || *k == h));
        for k in both {
            let mean = known.second(&a.mean[k], &b.mean[k]);
            let own = known.own_second(k, &a.own[k], &b.own[k]);
            let count = types[k].count;
            out.add((q - c) * count, &mean.plus(1.0, &own));
            if !a.server && !b.server {
                let rest = if count > 1.0 { q + c / (count - 1.0) } else { 0.0 };
                let each = mean.scaled(q - c).plus(rest, &own);
                deviation = Some(each.scaled(1.0 - 1.0 / count));
            }
        }
        let all = |drawn: &Drawn, k: usize| match drawn.server {
            true => (drawn.total.clone(), 1.0),
            false => (drawn.mean[k].clone(), types[k].count),
        };
        let ((x, m), (y, w)) = (all(a, g), all(b, h));
        out.add(c * m * w, &known.second(&x, &y));
        // The mean over a type.
        let scale = |drawn: &Drawn, k: usize| if drawn.server { 1.0 } else { types[k].count };
        (out.scaled(1.0 / (scale(a, g) * scale(b, h))), deviation)
    }

    /// The moments at these rounds, in increasing order, from θ_0 = `start`.
    ///
    /// # Errors
    /// Why there are none.
    pub fn at_rounds(&self, start: &[f64], rounds: &[u64]) -> Result<Vec<Moments>, String> {
        let mut state = self.initial(start, 1.0);
        let apart = difference(start, self.setup.facts.optimum());
        let d = self.setup.d;
        let mut last = (apart, Matrix::zeros(d, d));
        let (mut round, mut out) = (0, Vec::with_capacity(rounds.len()));
        for &target in rounds {
            while round < target {
                round += 1;
                let prepared = self.prepared(round, &state.origins, None)?;
                let (next, mean, covariance) = self.after(&prepared, &state);
                (state, last) = (next, (mean, covariance));
            }
            let (mean, covariance) = last.clone();
            let square = |mean: &[f64], covariance: f64| dot(mean, mean) + covariance;
            let average = match round {
                0 => square(&mean, 0.0),
                t => {
                    let all = (1..=d).fold(0.0, |sum, i| sum + state.covariance[(i, i)]);
                    square(&state.mean[1..=d], all) / (t as f64 * t as f64)
                }
            };
            out.push(Moments {
                round,
                sq_error: square(&mean, covariance.trace()),
                mean,
                covariance,
                sq_error_average: average,
                sq_error_clients: None,
                lyapunov: None,
            });
        }
        Ok(out)
    }

    /// E‖θ_t − θ'_t‖² of two runs on the same draws, one from θ_0 = `start` and one from θ*, at these
    /// rounds, in increasing order.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn coupled(&self, start: &[f64], rounds: &[u64]) -> Result<Vec<f64>, String> {
        let mut state = self.initial(start, 0.0);
        let apart = difference(start, self.setup.facts.optimum());
        let (mut round, mut out, mut last) = (0, Vec::new(), dot(&apart, &apart));
        for &target in rounds {
            while round < target {
                round += 1;
                let prepared = self.prepared(round, &state.origins, None)?;
                let (next, mean, covariance) = self.after(&prepared, &state);
                state = next;
                last = dot(&mean, &mean) + covariance.trace();
            }
            out.push(last);
        }
        Ok(out)
    }
}

/// Puts a block into a symmetric matrix.
fn put(matrix: &mut Matrix, (row, column): (usize, usize), block: &Matrix) {
    for i in 0..block.rows() {
        for j in 0..block.cols() {
            matrix[(row + i, column + j)] = block[(i, j)];
            matrix[(column + j, row + i)] = block[(i, j)];
        }
    }
}

/// The effort of a program's moments up to a round, of which `rows` are kept.
pub fn effort(program: &Program, facts: &dyn Facts, rounds: u64, rows: usize) -> Effort {
    let (types, _) = types(program, facts);
    let (d, types) = (facts.dim() as f64, types.len() as f64);
    let y = 2.0 * d + 1.0;
    let (mut round, mut prepare, mut numbers) = (0.0_f64, 0.0, 0.0_f64);
    for each in &program.rounds {
        let of = |level: Level| if level == Level::Server { 1.0 } else { types };
        let state: f64 = each.state.iter().map(|level| of(*level)).sum();
        let made = |o: &Operation| of(o.level());
        let local = |o: &Operation| match o {
            Operation::Steps { count: PerClient::All(count), .. } => *count as f64,
            Operation::Steps { .. } => 1e4,
            _ => 1.0,
        };
        let atoms: f64 = state + each.operations.iter().map(made).sum::<f64>();
        let width = 1.0 + d * (state + each.operations.len() as f64);
        let noisy = each.operations.len() as f64 * types;
        round =
            round.max(4.0 * width * width * d + noisy * (2.0 * d * d * y * y + d * d * d * atoms));
        let doublings: f64 = each.operations.iter().map(|o| 1.5 * libm::log2(local(o) + 1.0)).sum();
        let noise = (d + 1.0) * (d + 1.0) * effort::noise_map(facts);
        prepare += types * (doublings * d * d * y * y * (d * d + 2.0 * y) + noise);
        let steps = noisy * (d * d * y * y + d * d);
        numbers = numbers.max(3.0 * width * width + steps + 3.0 * types * d * d * state * state);
    }
    let stored = rows as f64 * (d * d + 2.0 * d);
    Effort::new(prepare + rounds as f64 * round, numbers + stored)
}
