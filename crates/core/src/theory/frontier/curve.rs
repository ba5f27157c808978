//! The error over rounds of one method with one step size and number of clients, and the first
//! round from which it stays below a target.
//!
//! The errors are THEORY (6.1): E‖θ_t − θ*‖² = r_phase · z and z ← Q z in each cycle of rounds. The first
//! cycles are computed one by one. Beyond them, Q is squared until the error after the largest power is below
//! the target; the last cycle with an error above the target is found by adding smaller powers, from the
//! largest to the smallest.

use super::parts::{CurvePart, PartPlaces, parts_of};
use crate::linalg::Matrix;
use crate::theory::exact::Squares;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Solve;
use faer::{Accum, Mat, MatRef, Par};

/// Cycles that are computed one by one.
const EXACT: usize = 64;
/// The rounds among which a first passage is sought.
pub const MOST_PASSING: u64 = EXACT as u64;
/// Later cycles that are computed one by one after a target is reached.
const AFTER: usize = 8;
/// The binary logarithm of the most cycles.
pub(super) const MOST_LEVELS: usize = 40;
/// The times that an error may exceed a target again after it was below.
pub(super) const MOST_RETURNS: usize = 50;
/// Rounding errors of E‖θ_t − θ*‖² relative to the start.
const ROUNDING: f64 = 1e-12;
/// The size at which the powers of a map count as growing without bound.
const GROWN: f64 = 1e40;

/// The numbers z of all parts; several states are columns.
pub(super) type PartStates = Vec<Mat<f64>>;

/// E‖θ_t − θ*‖² over rounds.
pub struct ErrorCurve {
    /// The errors after 0, 1, … rounds, up to the start of the cycle.
    first: Vec<f64>,
    /// The blocks of z, which are coupled only through numbers that they share.
    pub(super) parts: Vec<CurvePart>,
    /// z at the start of the cycle.
    pub(super) start: PartStates,
    /// Q^(2^j) of each part for j = 0, 1, …, as far as they have been computed.
    pub(super) levels: Vec<Vec<Mat<f64>>>,
    /// The errors of the first rounds, with [`EXACT`] cycles, and the states after these.
    pub(super) early: (Vec<f64>, PartStates),
}

/// Where an error comes below a target and stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The first round from which it stays below.
    pub rounds: u64,
    /// The error after that round, E‖θ_t − θ*‖².
    pub square: f64,
}

impl ErrorCurve {
    /// The errors of rounds whose second moments these are.
    pub fn new(squares: &Squares<'_>) -> Self {
        let all_places: Vec<_> = squares.blocks().places().collect();
        let (map, errors) = squares.after(&Matrix::identity(all_places.len()));
        let (numbers, first) = squares.start();
        let mut parts = Vec::new();
        let mut maps = Vec::new();
        let mut start = Vec::new();
        for PartPlaces { places, adds } in parts_of(&map, &errors) {
            let n = places.len();
            let mut of_phases: Vec<Vec<f64>> = Vec::with_capacity(errors.rows());
            for phase in 0..errors.rows() {
                let each = places.iter().zip(&adds);
                let of_phase = each.map(|(i, adds)| if *adds { errors[(phase, *i)] } else { 0.0 });
                of_phases.push(of_phase.collect());
            }
            maps.push(Mat::from_fn(n, n, |i, j| map[(places[i], places[j])]));
            parts.push(CurvePart {
                errors: of_phases,
                places: places.iter().map(|place| all_places[*place]).collect(),
            });
            start.push(Mat::from_fn(n, 1, |i, _| numbers[places[i]]));
        }
        let mut new = Self { first, parts, start, levels: vec![maps], early: Default::default() };
        new.early = new.one_by_one(EXACT);
        new
    }

    /// The number of rounds before the cycle, and the number of rounds of a cycle.
    pub(super) fn lengths(&self) -> (u64, u64) {
        (self.first.len() as u64 - 1, self.parts.first().map_or(1, |part| part.errors.len() as u64))
    }

    /// r_phase · z = E‖θ_t − θ*‖² after each round of a cycle, THEORY (6.1), where z at its start is a column
    /// of states.
    pub(super) fn errors_in<'s>(
        &'s self,
        states: &'s PartStates,
        column: usize,
    ) -> impl Iterator<Item = f64> + 's {
        (0..self.lengths().1 as usize).map(move |phase| {
            // The sum over parts of the sums over their numbers.
            self.parts.iter().zip(states).fold(0.0, |sum, (part, state)| {
                let factors = part.errors[phase].iter().enumerate();
                sum + factors.fold(0.0, |sum, (k, factor)| sum + factor * state[(k, column)])
            })
        })
    }

    /// Whether an error is above ε² = `most`, is not a number, or is so far below 0 that this is no rounding
    /// error but divergence.
    pub(super) fn is_above(&self, error: f64, most: f64) -> bool {
        !(error >= -ROUNDING * self.early.0[0] && error <= most)
    }

    /// Whether an error in the cycle that begins with a column of states is above ε² = `most`.
    fn is_missed(&self, states: &PartStates, column: usize, most: f64) -> bool {
        self.errors_in(states, column).any(|error| self.is_above(error, most))
    }

    /// The states after 2^`level` more cycles.
    pub(super) fn advance(&mut self, level: usize, states: &PartStates) -> PartStates {
        self.reach(level);
        let maps = self.levels[level].iter().zip(states);
        maps.map(|(map, state)| product(map.as_ref(), state.as_ref())).collect()
    }

    /// Computes Q^(2^j) for all j up to `level`.
    pub(super) fn reach(&mut self, level: usize) {
        while self.levels.len() <= level {
            let last = self.levels[self.levels.len() - 1].iter();
            let next = last.map(|map| product(map.as_ref(), map.as_ref())).collect();
            self.levels.push(next);
        }
    }

    /// The errors after each round up to the end of the cycle that follows `cycles` others, and the states at
    /// the start of that cycle.
    fn one_by_one(&mut self, cycles: usize) -> (Vec<f64>, PartStates) {
        let mut states = self.start.clone();
        let mut errors = self.first.clone();
        errors.extend(self.errors_in(&states, 0));
        for _ in 0..cycles {
            states = self.advance(0, &states);
            errors.extend(self.errors_in(&states, 0));
        }
        (errors, states)
    }

    /// The errors after rounds 0 to `rounds`, one by one.
    pub fn errors(&mut self, rounds: usize) -> Vec<f64> {
        let mut errors = self.one_by_one(rounds.div_ceil(self.lengths().1 as usize)).0;
        errors.truncate(rounds + 1);
        errors
    }

    /// The first of [`MOST_PASSING`] rounds after which the error is at most `square` = ε², with the error
    /// after it. Later errors may be above ε² again.
    pub fn first_passage(&self, square: f64) -> Option<Crossing> {
        let errors = &self.early.0;
        let mut shown = errors.iter().take(MOST_PASSING as usize + 1);
        let rounds = shown.position(|&error| !self.is_above(error, square))?;
        Some(Crossing { rounds: rounds as u64, square: errors[rounds] })
    }

    /// The stationary z_∞ = Q z_∞ of each part; `None` unless the map of each part is proven to contract, as in
    /// THEORY (5.5).
    pub(super) fn stationary(&mut self) -> Option<PartStates> {
        let mut states = Vec::new();
        for part in 0..self.parts.len() {
            let map = &self.levels[0][part];
            // I − L, where L is Q without the coordinate of E 1·1, which is 1.
            let n = map.nrows();
            let system = Mat::from_fn(n - 1, n - 1, |i, j| {
                f64::from(u8::from(i == j)) - map[(i + 1, j + 1)]
            });
            let identity = self.parts[part].identity();
            // The constants of the map, and the identity, by which it is proven to contract.
            let constants =
                Mat::from_fn(
                    n - 1,
                    2,
                    |i, j| if j == 0 { map[(i + 1, 0)] } else { identity[i + 1] },
                );
            let found = system.partial_piv_lu().solve(constants);
            let state = Mat::from_fn(n, 1, |i, _| if i == 0 { 1.0 } else { found[(i - 1, 0)] });
            let proof = Mat::from_fn(n, 1, |i, _| if i == 0 { 0.0 } else { found[(i - 1, 1)] });
            if !self.is_proof(part, &proof) && !self.vanishes(part) {
                return None;
            }
            states.push(state);
        }
        Some(states)
    }

    /// Whether a solution `x` of X = T(X) + I proves that the map T of second moments of a part contracts,
    /// THEORY (5.5), as in [`crate::linalg::SymmetricBlocks`]. Entries of X that are not in the part count as
    /// 0, which may make X indefinite where it need not be: then nothing is proven.
    fn is_proof(&self, part: usize, x: &Mat<f64>) -> bool {
        let after = product(self.levels[0][part].as_ref(), x.as_ref());
        let part = &self.parts[part];
        let identity = part.identity();
        let numbers: Vec<f64> = (0..x.nrows()).map(|i| x[(i, 0)]).collect();
        // X − T(X) − ½ I.
        let left: Vec<f64> =
            (0..x.nrows()).map(|i| x[(i, 0)] - after[(i, 0)] - 0.5 * identity[i]).collect();
        part.is_definite(&numbers) && part.is_definite(&left)
    }

    /// Whether Tᵏ(I) vanishes for the map T of a part as k grows: then T contracts. A part without squares
    /// has the identity 0, and needs no proof, since its numbers are bounded by those of parts that have the
    /// squares.
    fn vanishes(&mut self, part: usize) -> bool {
        let identity = self.parts[part].identity();
        let begin = Mat::from_fn(identity.len(), 1, |i, _| identity[i]);
        for level in 0..MOST_LEVELS {
            self.reach(level);
            let after = product(self.levels[level][part].as_ref(), begin.as_ref());
            // Each number stands for two entries at most.
            let size: f64 = 2.0 * (0..after.nrows()).map(|i| after[(i, 0)].abs()).sum::<f64>();
            if size <= 0.5 {
                return true;
            }
            if size.is_nan() || size > GROWN {
                return false;
            }
        }
        false
    }

    /// The first round from which the error stays at or below the square of each target; `None` where there
    /// is none.
    pub fn rounds_to(&mut self, targets: &[f64]) -> Vec<Option<u64>> {
        let squares: Vec<f64> = targets.iter().map(|target| target * target).collect();
        let found = self.crossings(&squares).into_iter();
        found.map(|found| found.map(|crossing| crossing.rounds)).collect()
    }

    /// Where the error comes below each of these squares ε² and stays, as far as the rounds that are looked
    /// at show: the first cycles, and later ones at distances that grow and shrink by powers of two.
    pub fn crossings(&mut self, squares: &[f64]) -> Vec<Option<Crossing>> {
        let mut out = vec![None; squares.len()];
        let (errors, states) = self.early.clone();
        if errors.iter().any(|error| !error.is_finite()) {
            return out;
        }
        let Some(stationary) = self.stationary() else { return out };
        let mut early = Vec::new();
        let mut late = Vec::new();
        // The first round of the last cycle.
        let last = errors.len() - self.lengths().1 as usize;
        for (at, &most) in squares.iter().enumerate() {
            if self.is_missed(&stationary, 0, most) {
                continue;
            }
            match errors.iter().rposition(|&error| self.is_above(error, most)) {
                Some(missed) if missed >= last => late.push((at, most)),
                missed => {
                    let rounds = missed.map_or(0, |missed| missed + 1);
                    out[at] = Some(Crossing { rounds: rounds as u64, square: errors[rounds] });
                    early.push((at, most));
                }
            }
        }
        self.descend(EXACT as u64, &states, &late, MOST_RETURNS, &mut out);
        if errors[last] > errors[last - 1] || self.lengths().1 > 1 || !late.is_empty() {
            let reached = vec![EXACT as u64; early.len()];
            // The same state for each target.
            let columns: PartStates = states
                .iter()
                .map(|state| Mat::from_fn(state.nrows(), early.len(), |i, _| state[(i, 0)]))
                .collect();
            self.check_returns(&reached, &columns, &early, MOST_RETURNS, &mut out);
        }
        out
    }

    /// Finds the crossings of targets that the error misses in the cycle after `base` cycles, which begins
    /// with `states`, and checks that it stays below them. A target is its place in `out` and its square ε²;
    /// at most `returns` times an error may rise above it again.
    pub(super) fn descend(
        &mut self,
        base: u64,
        states: &PartStates,
        targets: &[(usize, f64)],
        returns: usize,
        out: &mut [Option<Crossing>],
    ) {
        // States after base, base + 1, base + 3, base + 7, …, and the first level from which
        // each target is met.
        let mut ladder = vec![(base, states.clone())];
        let mut tops = vec![MOST_LEVELS; targets.len()];
        while tops.contains(&MOST_LEVELS) && ladder.len() <= MOST_LEVELS {
            let level = ladder.len() - 1;
            let next = self.advance(level, &ladder[level].1);
            for (top, (_, most)) in tops.iter_mut().zip(targets) {
                if *top == MOST_LEVELS && !self.is_missed(&next, 0, *most) {
                    *top = level;
                }
            }
            ladder.push((ladder[level].0 + (1 << level), next));
        }
        for (top, (at, _)) in tops.iter().zip(targets) {
            out[*at] = out[*at].filter(|_| *top < MOST_LEVELS);
        }
        let (targets, tops): (Vec<(usize, f64)>, Vec<usize>) =
            targets.iter().zip(tops).filter(|(_, top)| *top < MOST_LEVELS).unzip();
        let Some(&highest) = tops.iter().max() else { return };
        let mut cycles: Vec<u64> = tops.iter().map(|&top| ladder[top].0).collect();
        // Column j is the last state of the ladder from which the error misses target j.
        let mut columns: PartStates = Vec::with_capacity(states.len());
        for (part, state) in states.iter().enumerate() {
            columns.push(Mat::from_fn(state.nrows(), tops.len(), |i, j| {
                ladder[tops[j]].1[part][(i, 0)]
            }));
        }
        for level in (0..highest).rev() {
            let next = self.advance(level, &columns);
            for (j, (_, most)) in targets.iter().enumerate() {
                if tops[j] > level && self.is_missed(&next, j, *most) {
                    cycles[j] += 1 << level;
                    for (columns, next) in columns.iter_mut().zip(&next) {
                        columns.col_mut(j).copy_from(next.col(j));
                    }
                }
            }
        }
        // From the last cycle above to the first below.
        let (lead, length) = self.lengths();
        let after = self.advance(0, &columns);
        for (j, (at, most)) in targets.iter().enumerate() {
            let errors: Vec<f64> =
                self.errors_in(&columns, j).chain(self.errors_in(&after, j)).collect();
            let above = errors[..length as usize].iter().rposition(|e| self.is_above(*e, *most));
            let below = above.map_or(0, |above| above + 1);
            let rounds = lead + cycles[j] * length + below as u64 + 1;
            out[*at] = Some(Crossing { rounds, square: errors[below] });
            cycles[j] += 1;
        }
        self.check_returns(&cycles, &after, &targets, returns, out);
    }

    /// Replaces the crossings of targets that the error misses again. Column j of `columns` is the state
    /// after `cycles[j]` cycles, from which the error meets target j; the next [`AFTER`] cycles are looked
    /// at, and those at distances that are powers of two.
    fn check_returns(
        &mut self,
        cycles: &[u64],
        columns: &PartStates,
        targets: &[(usize, f64)],
        returns: usize,
        out: &mut [Option<Crossing>],
    ) {
        // For each target the last cycle that misses it, as the number of cycles before it and the state then.
        let mut latest: Vec<Option<(u64, PartStates)>> = vec![None; targets.len()];
        let mut next = columns.clone();
        for after in 1..=AFTER {
            next = self.advance(0, &next);
            self.note_misses(after as u64, &next, cycles, targets, &mut latest);
        }
        for level in AFTER.ilog2() as usize + 1..self.levels.len() {
            let later = self.advance(level, columns);
            self.note_misses(1 << level, &later, cycles, targets, &mut latest);
        }
        for (target, latest) in targets.iter().zip(latest) {
            let Some((base, state)) = latest else { continue };
            if returns == 0 {
                out[target.0] = None;
            } else {
                self.descend(base, &state, &[*target], returns - 1, out);
            }
        }
    }

    /// Replaces the latest misses of those targets that the error misses in the cycle that begins `after` cycles
    /// after `cycles[j]`, with the column j of `states`.
    fn note_misses(
        &self,
        after: u64,
        states: &PartStates,
        cycles: &[u64],
        targets: &[(usize, f64)],
        latest: &mut [Option<(u64, PartStates)>],
    ) {
        for (j, (_, most)) in targets.iter().enumerate() {
            if self.is_missed(states, j, *most) {
                let state = states.iter().map(|state| state.subcols(j, 1).to_owned());
                latest[j] = Some((cycles[j] + after, state.collect()));
            }
        }
    }
}

/// a b, on one thread: its bits do not depend on the number of threads. Entries whose products
/// with each other could be subnormal numbers, which are slow, become 0.
pub(super) fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    const LEAST: f64 = 1e-150;
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
    for column in out.col_iter_mut() {
        for x in column.iter_mut().filter(|x| x.abs() < LEAST) {
            *x = 0.0;
        }
    }
    out
}
