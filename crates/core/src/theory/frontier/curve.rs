//! The error over rounds of one method with one step size and number of clients, and the first
//! round from which it stays below a target.
//!
//! The errors are THEORY (6.1): E‖θ_t − θ*‖² = r_phase · z and z ← Q z in each cycle of rounds, where a cycle is the
//! rounds that repeat for ever, and z are the second moments of the state at its start: the entries of E u uᵀ, where
//! u begins with the number 1, and of D_g for each type of clients. They are split into parts. The first
//! cycles are computed one by one. Beyond them, Q is squared until the error after the largest power is below
//! the target; the last cycle with an error above the target is found by adding smaller powers, from the
//! largest to the smallest.

use super::parts::{CurvePart, PartPlaces, parts_of};
use crate::linalg::Matrix;
use crate::theory::exact::Squares;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Solve;
use faer::{Accum, Mat, MatRef, Par};

/// The number of first cycles that are computed one by one.
const FIRST_CYCLES: usize = 64;
/// The number of rounds among which a first passage is sought.
pub const MOST_PASSING: u64 = FIRST_CYCLES as u64;
/// The number of cycles that are computed one by one after a target is reached, to see whether the error rises again.
const CHECKED_CYCLES: usize = 8;
/// The binary logarithm of the most cycles.
pub(super) const MOST_LEVELS: usize = 40;
/// How often an error may exceed a target again after it was below; then the target counts as not reached.
pub(super) const MOST_RETURNS: usize = 50;
/// The rounding errors of E‖θ_t − θ*‖², relative to the error of the start.
const ROUNDING: f64 = 1e-12;
/// The size beyond which the powers of a map are taken to grow for ever.
const GROWN: f64 = 1e40;

/// States, the numbers z: one matrix for each part, in which each column is a state.
pub(super) type PartStates = Vec<Mat<f64>>;

/// A target whose crossing is sought.
#[derive(Clone, Copy)]
pub(super) struct SoughtTarget {
    /// The place of its crossing in the list of all crossings.
    pub place: usize,
    /// Its square ε², with which errors are compared.
    pub square: f64,
}

/// The start of a cycle.
#[derive(Clone)]
pub(super) struct CycleStart {
    /// The number of cycles before it.
    pub cycles: u64,
    /// The state at its start.
    pub state: PartStates,
}

/// The errors up to the end of a cycle, and the state at the start of that cycle.
#[derive(Clone, Default)]
pub(super) struct FollowedCycles {
    /// The errors after 0, 1, … rounds.
    pub errors: Vec<f64>,
    /// The state at the start of the last of the cycles.
    pub state: PartStates,
}

/// E‖θ_t − θ*‖² over rounds t of an algorithm with all its settings.
pub struct ErrorCurve {
    /// The errors after 0, 1, … rounds, up to the start of the first cycle.
    first: Vec<f64>,
    /// The blocks of z, which are coupled only through numbers that they share.
    pub(super) parts: Vec<CurvePart>,
    /// z at the start of the first cycle.
    pub(super) start: PartStates,
    /// Q^(2^j) of each part for j = 0, 1, …, as far as they have been computed.
    pub(super) levels: Vec<Vec<Mat<f64>>>,
    /// The errors up to the end of the cycle that follows the first [`FIRST_CYCLES`] cycles.
    pub(super) early: FollowedCycles,
}

/// Where an error comes below a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The number of rounds after which the error is at most the target: the first after which it stays there, or just
    /// the first, where passages are sought.
    pub rounds: u64,
    /// The error after that round, E‖θ_t − θ*‖².
    pub square: f64,
}

impl ErrorCurve {
    /// The errors of rounds that have these second moments. Q is computed, split into parts, and applied to the first
    /// cycles.
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
        let early = FollowedCycles::default();
        let mut new = Self { first, parts, start, levels: vec![maps], early };
        new.early = new.one_by_one(FIRST_CYCLES);
        new
    }

    /// The number of rounds before the first cycle.
    pub(super) fn rounds_before_cycles(&self) -> u64 {
        self.first.len() as u64 - 1
    }

    /// The number of rounds of a cycle.
    pub(super) fn rounds_of_cycle(&self) -> u64 {
        self.parts.first().map_or(1, |part| part.errors.len() as u64)
    }

    /// r_phase · z = E‖θ_t − θ*‖² after each round of a cycle, THEORY (6.1), where z at its start is column number
    /// `column` of `states`.
    pub(super) fn errors_in<'s>(
        &'s self,
        states: &'s PartStates,
        column: usize,
    ) -> impl Iterator<Item = f64> + 's {
        (0..self.rounds_of_cycle() as usize).map(move |phase| {
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
        !(error >= -ROUNDING * self.early.errors[0] && error <= most)
    }

    /// Whether the error after some round of the cycle that begins with column number `column` of `states` is above
    /// ε² = `most`.
    fn is_missed(&self, states: &PartStates, column: usize, most: f64) -> bool {
        self.errors_in(states, column).any(|error| self.is_above(error, most))
    }

    /// The states 2^`level` cycles after these ones, which have a matrix for each part, of one column for each state.
    pub(super) fn advance(&mut self, level: usize, states: &PartStates) -> PartStates {
        self.reach(level);
        let maps = self.levels[level].iter().zip(states);
        maps.map(|(map, state)| product(map.as_ref(), state.as_ref())).collect()
    }

    /// Computes Q^(2^j) for all j up to `level`, as far as they are not known yet.
    pub(super) fn reach(&mut self, level: usize) {
        while self.levels.len() <= level {
            let last = self.levels[self.levels.len() - 1].iter();
            let next = last.map(|map| product(map.as_ref(), map.as_ref())).collect();
            self.levels.push(next);
        }
    }

    /// The errors after each round up to the end of the cycle that follows the first `cycles` cycles, with the state at
    /// the start of that cycle.
    fn one_by_one(&mut self, cycles: usize) -> FollowedCycles {
        let mut state = self.start.clone();
        let mut errors = self.first.clone();
        errors.extend(self.errors_in(&state, 0));
        for _ in 0..cycles {
            state = self.advance(0, &state);
            errors.extend(self.errors_in(&state, 0));
        }
        FollowedCycles { errors, state }
    }

    /// The errors after rounds 0 to `rounds`, each of which is computed: `rounds` + 1 numbers.
    pub fn errors(&mut self, rounds: usize) -> Vec<f64> {
        let cycles = rounds.div_ceil(self.rounds_of_cycle() as usize);
        let mut errors = self.one_by_one(cycles).errors;
        errors.truncate(rounds + 1);
        errors
    }

    /// The first of the first [`MOST_PASSING`] rounds after which the error is at most `square` = ε², with the error
    /// after it. Later errors may be above ε² again. `None` if there is no such round.
    pub fn first_passage(&self, square: f64) -> Option<Crossing> {
        let errors = &self.early.errors;
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
            // The constants of the map, whose solution is z_∞, and the identity, whose solution may prove that the map
            // contracts.
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

    /// Whether a solution `x` of X = T(X) + I proves that the map T of second moments of part number `part` contracts,
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

    /// Whether Tᵏ(I) vanishes as k grows, for the map T of second moments of part number `part`: then T contracts. A
    /// part without squares has the identity 0, and needs no proof, since its numbers are bounded by the numbers of the
    /// parts that have the squares.
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

    /// For each target ε the first round from which the error stays at most ε², as [`Self::crossings`] finds it; `None`
    /// where there is none.
    pub fn rounds_to(&mut self, targets: &[f64]) -> Vec<Option<u64>> {
        let squares: Vec<f64> = targets.iter().map(|target| target * target).collect();
        let found = self.crossings(&squares).into_iter();
        found.map(|found| found.map(|crossing| crossing.rounds)).collect()
    }

    /// Where the error comes below each of these squares ε² and stays, as far as the rounds that are looked
    /// at show: the first cycles, and later ones at distances that grow and shrink by powers of two. `None` where the
    /// error does not stay below, as where the stationary error is above ε² or does not exist.
    pub fn crossings(&mut self, squares: &[f64]) -> Vec<Option<Crossing>> {
        let mut out = vec![None; squares.len()];
        let FollowedCycles { errors, state } = self.early.clone();
        if errors.iter().any(|error| !error.is_finite()) {
            return out;
        }
        let Some(stationary) = self.stationary() else { return out };
        // The targets that are reached in these cycles, and those that are missed in the last of them.
        let mut early = Vec::new();
        let mut late = Vec::new();
        // The first round of the last cycle.
        let last = errors.len() - self.rounds_of_cycle() as usize;
        for (place, &square) in squares.iter().enumerate() {
            if self.is_missed(&stationary, 0, square) {
                continue;
            }
            let target = SoughtTarget { place, square };
            match errors.iter().rposition(|&error| self.is_above(error, square)) {
                Some(missed) if missed >= last => late.push(target),
                missed => {
                    let rounds = missed.map_or(0, |missed| missed + 1);
                    out[place] = Some(Crossing { rounds: rounds as u64, square: errors[rounds] });
                    early.push(target);
                }
            }
        }
        let begin = CycleStart { cycles: FIRST_CYCLES as u64, state };
        self.descend(&begin, &late, MOST_RETURNS, &mut out);
        // An error that does not rise from the last round but one to the last is taken to stay below the targets that
        // it has reached. This is not relied on if a cycle has several rounds, nor if powers of Q are computed anyway.
        if errors[last] > errors[last - 1] || self.rounds_of_cycle() > 1 || !late.is_empty() {
            let reached = vec![FIRST_CYCLES as u64; early.len()];
            // The same state for each target.
            let columns: PartStates = begin
                .state
                .iter()
                .map(|state| Mat::from_fn(state.nrows(), early.len(), |i, _| state[(i, 0)]))
                .collect();
            self.check_returns(&reached, &columns, &early, MOST_RETURNS, &mut out);
        }
        out
    }

    /// Writes to `out` the crossings of targets that the error misses in the cycle at `begin`, and checks that it stays
    /// below them afterwards, by [`Self::check_returns`]. `returns` is how often the error may rise above a target
    /// again; beyond it, and if a target is not reached within 2^[`MOST_LEVELS`] cycles, the crossing becomes `None`.
    pub(super) fn descend(
        &mut self,
        begin: &CycleStart,
        targets: &[SoughtTarget],
        returns: usize,
        out: &mut [Option<Crossing>],
    ) {
        // The states 0, 1, 3, 7, … cycles after `begin`. `tops` are the levels j of the first step from one of them to
        // the next, of 2^j cycles, after which each target is met; MOST_LEVELS stands for none so far.
        let mut ladder = vec![begin.clone()];
        let mut tops = vec![MOST_LEVELS; targets.len()];
        while tops.contains(&MOST_LEVELS) && ladder.len() <= MOST_LEVELS {
            let level = ladder.len() - 1;
            let next = self.advance(level, &ladder[level].state);
            for (top, target) in tops.iter_mut().zip(targets) {
                if *top == MOST_LEVELS && !self.is_missed(&next, 0, target.square) {
                    *top = level;
                }
            }
            let cycles = ladder[level].cycles + (1 << level);
            ladder.push(CycleStart { cycles, state: next });
        }
        for (top, target) in tops.iter().zip(targets) {
            out[target.place] = out[target.place].filter(|_| *top < MOST_LEVELS);
        }
        let (targets, tops): (Vec<SoughtTarget>, Vec<usize>) =
            targets.iter().zip(tops).filter(|(_, top)| *top < MOST_LEVELS).unzip();
        let Some(&highest) = tops.iter().max() else { return };
        let mut cycles: Vec<u64> = tops.iter().map(|&top| ladder[top].cycles).collect();
        // Column j is the last state of the ladder from which the error misses target j.
        let mut columns: PartStates = Vec::with_capacity(begin.state.len());
        for (part, state) in begin.state.iter().enumerate() {
            columns.push(Mat::from_fn(state.nrows(), tops.len(), |i, j| {
                ladder[tops[j]].state[part][(i, 0)]
            }));
        }
        // Smaller and smaller steps, which are taken as long as the error still misses the target after them.
        for level in (0..highest).rev() {
            let next = self.advance(level, &columns);
            for (j, target) in targets.iter().enumerate() {
                if tops[j] > level && self.is_missed(&next, j, target.square) {
                    cycles[j] += 1 << level;
                    for (columns, next) in columns.iter_mut().zip(&next) {
                        columns.col_mut(j).copy_from(next.col(j));
                    }
                }
            }
        }
        // From the last cycle that misses the target to the first that meets it.
        let lead = self.rounds_before_cycles();
        let length = self.rounds_of_cycle();
        let after = self.advance(0, &columns);
        for (j, target) in targets.iter().enumerate() {
            let errors: Vec<f64> =
                self.errors_in(&columns, j).chain(self.errors_in(&after, j)).collect();
            let above =
                errors[..length as usize].iter().rposition(|e| self.is_above(*e, target.square));
            let below = above.map_or(0, |above| above + 1);
            let rounds = lead + cycles[j] * length + below as u64 + 1;
            out[target.place] = Some(Crossing { rounds, square: errors[below] });
            cycles[j] += 1;
        }
        self.check_returns(&cycles, &after, &targets, returns, out);
    }

    /// Looks for later cycles in which the error misses targets again after it has met them, and replaces the crossings
    /// of these targets in `out` by later ones. Column j of `columns` is the state after `cycles[j]` cycles, from which
    /// the error meets target j. The next [`CHECKED_CYCLES`] cycles are looked at, and the cycles at distances that are
    /// powers of two. `returns` is how often the error may still rise; a target that it misses beyond that becomes
    /// `None`.
    fn check_returns(
        &mut self,
        cycles: &[u64],
        columns: &PartStates,
        targets: &[SoughtTarget],
        returns: usize,
        out: &mut [Option<Crossing>],
    ) {
        // For each target the last cycle found so far in which the error misses it again.
        let mut latest: Vec<Option<CycleStart>> = vec![None; targets.len()];
        let mut next = columns.clone();
        for after in 1..=CHECKED_CYCLES {
            next = self.advance(0, &next);
            self.note_misses(after as u64, &next, cycles, targets, &mut latest);
        }
        for level in CHECKED_CYCLES.ilog2() as usize + 1..self.levels.len() {
            let later = self.advance(level, columns);
            self.note_misses(1 << level, &later, cycles, targets, &mut latest);
        }
        for (target, latest) in targets.iter().zip(latest) {
            let Some(missed) = latest else { continue };
            if returns == 0 {
                out[target.place] = None;
            } else {
                self.descend(&missed, &[*target], returns - 1, out);
            }
        }
    }

    /// Sets `latest[j]` for each target j that the error misses in the cycle that begins `after` cycles after the first
    /// `cycles[j]` cycles, with the state in column j of `states`.
    fn note_misses(
        &self,
        after: u64,
        states: &PartStates,
        cycles: &[u64],
        targets: &[SoughtTarget],
        latest: &mut [Option<CycleStart>],
    ) {
        for (j, target) in targets.iter().enumerate() {
            if self.is_missed(states, j, target.square) {
                let state = states.iter().map(|state| state.subcols(j, 1).to_owned()).collect();
                latest[j] = Some(CycleStart { cycles: cycles[j] + after, state });
            }
        }
    }
}

/// The product a b of two matrices, on one thread, so that its bits do not depend on the number of threads. Entries
/// whose products with each other could be subnormal numbers, which are slow, become 0.
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
