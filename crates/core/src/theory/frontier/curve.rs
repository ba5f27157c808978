//! The error over rounds of one method with one step size and number of clients, and the first
//! round from which it stays below a target.
//!
//! The first rounds are computed one by one. Beyond, the round's map is squared until the error
//! of the largest power is below the target, and the last round above it is found by lifting
//! with the smaller powers, from the largest to the smallest.

use super::StartError;
use super::products::product;
use super::round::{PairMap, RoundMoments};
use faer::Mat;
use faer::linalg::solvers::Solve;

/// Rounds that are computed one by one.
const EXACT: usize = 64;
/// The rounds among which a first passage is sought.
pub const MOST_PASSING: u64 = EXACT as u64;
/// Later rounds that are computed one by one after a target is reached.
const AFTER: usize = 8;
/// The binary logarithm of the most rounds.
const MOST_LEVELS: usize = 40;
/// The times that an error may exceed a target again after it was below.
const MOST_RETURNS: usize = 50;
/// Rounding errors of E‖θ_t − θ*‖² relative to the start.
const ROUNDING: f64 = 1e-12;

/// Moments of all pairs of runs; several states are columns.
type PairStates = Vec<Mat<f64>>;

/// E‖θ_t − θ*‖² over rounds.
pub struct ErrorCurve {
    parts: Vec<PairMap>,
    start: PairStates,
    /// The powers 1, 2, 4, … of the maps, where they have been computed.
    levels: Vec<Vec<Mat<f64>>>,
    /// The errors after rounds 0 to [`EXACT`] and the states after the last, where they have been
    /// computed.
    early: Option<(Vec<f64>, PairStates)>,
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
    /// The errors of N clients from this start, given as θ_0 − θ* if it is a point.
    pub fn new(round: &RoundMoments, clients: u64, start: &StartError) -> Self {
        let parts = round.with_clients(clients);
        let pairs = super::local::run_pairs(round.means.weights.len());
        let states = parts.iter().zip(pairs).map(|(part, (r, q))| {
            let mut begins = [r, q].map(|run| round.means.begins[run].clone());
            if let StartError::Point(x) = start {
                begins.iter_mut().for_each(|begin| begin[..x.len()].copy_from_slice(x));
            }
            let mut state = Mat::zeros(part.map.nrows(), 1);
            for (k, (i, j)) in part.blocks[0].0.entries().enumerate() {
                state[(k, 0)] = begins[0][i] * begins[1][j];
            }
            if let StartError::Isotropic { mean_square } = start {
                let each = mean_square / part.trace.len() as f64;
                part.trace.iter().for_each(|&k| state[(k, 0)] += each);
            }
            state
        });
        let start = states.collect();
        Self { parts, start, levels: Vec::new(), early: None }
    }

    /// E‖θ − θ*‖² of a column.
    fn error(&self, states: &PairStates, column: usize) -> f64 {
        let of = |(part, state): (&PairMap, &Mat<f64>)| {
            part.weight * part.trace.iter().fold(0.0, |sum, &k| sum + state[(k, column)])
        };
        self.parts.iter().zip(states).fold(0.0, |sum, pair| sum + of(pair))
    }

    /// The states after 2^`level` rounds.
    fn advance(&mut self, level: usize, states: &PairStates) -> PairStates {
        if level == 0 {
            let pairs = self.parts.iter().zip(states);
            return pairs.map(|(part, state)| product(part.map.as_ref(), state.as_ref())).collect();
        }
        while self.levels.len() < level {
            let square = |map: &Mat<f64>| product(map.as_ref(), map.as_ref());
            let next = match self.levels.last() {
                None => self.parts.iter().map(|part| square(&part.map)).collect(),
                Some(last) => last.iter().map(square).collect(),
            };
            self.levels.push(next);
        }
        let maps = self.levels[level - 1].iter().zip(states);
        maps.map(|(map, state)| product(map.as_ref(), state.as_ref())).collect()
    }

    /// The errors after rounds 0 to `rounds`, one by one, and the states after the last.
    fn one_by_one(&mut self, rounds: usize) -> (Vec<f64>, PairStates) {
        let mut states = self.start.clone();
        let mut errors = vec![self.error(&states, 0)];
        for _ in 0..rounds {
            states = self.advance(0, &states);
            errors.push(self.error(&states, 0));
        }
        (errors, states)
    }

    /// The errors after rounds 0 to `rounds`, one by one.
    pub fn errors(&mut self, rounds: usize) -> Vec<f64> {
        self.one_by_one(rounds).0
    }

    fn early(&mut self) -> (Vec<f64>, PairStates) {
        if self.early.is_none() {
            self.early = Some(self.one_by_one(EXACT));
        }
        self.early.clone().unwrap_or_default()
    }

    /// The first of [`MOST_PASSING`] rounds after which the error is at most `square`, with that
    /// error; it may rise above it again.
    pub fn first_passage(&mut self, square: f64) -> Option<Crossing> {
        let (errors, _) = self.early();
        let target = ErrorTarget { at: 0, least: -ROUNDING * errors[0], most: square };
        let rounds = errors.iter().position(|&error| !target.is_missed(error))?;
        Some(Crossing { rounds: rounds as u64, square: errors[rounds] })
    }

    /// The stationary error; `None` if there is none.
    fn stationary(&self) -> Option<f64> {
        let mut states = Vec::new();
        for part in &self.parts {
            // Without the coordinate of E 1·1, which is 1.
            let n = part.map.nrows();
            let rest: Vec<usize> = (0..n).filter(|&i| i != part.one).collect();
            let system = Mat::from_fn(n - 1, n - 1, |i, j| {
                f64::from(u8::from(i == j)) - part.map[(rest[i], rest[j])]
            });
            let constant = Mat::from_fn(n - 1, 1, |i, _| part.map[(rest[i], part.one)]);
            let found = system.partial_piv_lu().solve(constant);
            let mut state = Mat::zeros(n, 1);
            state[(part.one, 0)] = 1.0;
            rest.iter().enumerate().for_each(|(i, &k)| state[(k, 0)] = found[(i, 0)]);
            states.push(state);
        }
        // The solution of an unstable system is no moment.
        for (part, state) in self.parts.iter().zip(&states) {
            for (products, begin) in part.blocks.iter().filter(|(products, _)| products.same) {
                let scale = (0..products.n)
                    .fold(0.0_f64, |most, i| most.max(state[(begin + products.index(i, i), 0)]));
                let least = -1e-12 * scale;
                if !(0..products.n).all(|i| state[(begin + products.index(i, i), 0)] >= least) {
                    return None;
                }
            }
        }
        Some(self.error(&states, 0))
    }

    /// Where the error comes below each of these squares and stays.
    pub fn crossings(&mut self, squares: &[f64]) -> Vec<Option<Crossing>> {
        let mut out = vec![None; squares.len()];
        let (errors, states) = self.early();
        if errors.iter().any(|error| !error.is_finite()) {
            return out;
        }
        let Some(stationary) = self.stationary() else { return out };
        let least = -ROUNDING * errors[0];
        let targets: Vec<ErrorTarget> =
            squares.iter().enumerate().map(|(at, &most)| ErrorTarget { at, least, most }).collect();
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for target in targets.into_iter().filter(|target| !target.is_missed(stationary)) {
            match errors.iter().rposition(|&error| target.is_missed(error)) {
                Some(EXACT) => late.push(target),
                last => {
                    let rounds = last.map_or(0, |last| last + 1);
                    out[target.at] =
                        Some(Crossing { rounds: rounds as u64, square: errors[rounds] });
                    early.push(target);
                }
            }
        }
        self.descend((EXACT as u64, &states), &late, MOST_RETURNS, &mut out);
        if errors[EXACT] > errors[EXACT - 1] || !late.is_empty() {
            let reached = vec![EXACT as u64; early.len()];
            let columns = repeated(&states, early.len());
            self.check_returns((&reached, &columns), &early, MOST_RETURNS, &mut out);
        }
        out
    }

    /// Finds the crossings of targets that a state after `base` rounds misses, and checks that
    /// the error stays below them.
    fn descend(
        &mut self,
        (base, states): (u64, &PairStates),
        targets: &[ErrorTarget],
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
            let error = self.error(&next, 0);
            for (top, target) in tops.iter_mut().zip(targets) {
                if *top == MOST_LEVELS && !target.is_missed(error) {
                    *top = level;
                }
            }
            ladder.push((ladder[level].0 + (1 << level), next));
        }
        for (top, target) in tops.iter().zip(targets) {
            out[target.at] = out[target.at].filter(|_| *top < MOST_LEVELS);
        }
        let (targets, tops): (Vec<ErrorTarget>, Vec<usize>) =
            targets.iter().zip(tops).filter(|(_, top)| *top < MOST_LEVELS).unzip();
        let Some(&highest) = tops.iter().max() else { return };
        let mut rounds: Vec<u64> = tops.iter().map(|&top| ladder[top].0).collect();
        let pick = |part: usize, rows: usize| {
            Mat::from_fn(rows, tops.len(), |i, j| ladder[tops[j]].1[part][(i, 0)])
        };
        let mut columns: PairStates =
            self.parts.iter().enumerate().map(|(k, part)| pick(k, part.map.nrows())).collect();
        for level in (0..highest).rev() {
            let next = self.advance(level, &columns);
            for (j, target) in targets.iter().enumerate() {
                if tops[j] > level && target.is_missed(self.error(&next, j)) {
                    rounds[j] += 1 << level;
                    for (columns, next) in columns.iter_mut().zip(&next) {
                        columns.col_mut(j).copy_from(next.col(j));
                    }
                }
            }
        }
        // From the last round above to the first below.
        let columns = self.advance(0, &columns);
        for (j, target) in targets.iter().enumerate() {
            rounds[j] += 1;
            out[target.at] = Some(Crossing { rounds: rounds[j], square: self.error(&columns, j) });
        }
        self.check_returns((&rounds, &columns), &targets, returns, out);
    }

    /// Replaces the crossings of targets that are missed again later than the columns, which
    /// meet them: in one of the next [`AFTER`] rounds, or at a distance that is a power of two.
    fn check_returns(
        &mut self,
        (rounds, columns): (&[u64], &PairStates),
        targets: &[ErrorTarget],
        returns: usize,
        out: &mut [Option<Crossing>],
    ) {
        let mut latest = vec![None; targets.len()];
        let mut see = |after: u64, states: &PairStates, curve: &Self| {
            for (j, target) in targets.iter().enumerate() {
                if target.is_missed(curve.error(states, j)) {
                    let column =
                        |state: &Mat<f64>| Mat::from_fn(state.nrows(), 1, |i, _| state[(i, j)]);
                    let state = states.iter().map(column).collect::<PairStates>();
                    latest[j] = Some((rounds[j] + after, state));
                }
            }
        };
        let mut next = columns.clone();
        for after in 1..=AFTER {
            next = self.advance(0, &next);
            see(after as u64, &next, self);
        }
        for level in AFTER.ilog2() as usize + 1..=self.levels.len() {
            let next = self.advance(level, columns);
            see(1 << level, &next, self);
        }
        for (target, latest) in targets.iter().zip(latest) {
            let Some((base, state)) = latest else { continue };
            if returns == 0 {
                out[target.at] = None;
            } else {
                self.descend((base, &state), &[*target], returns - 1, out);
            }
        }
    }
}

/// A target and its place among all.
#[derive(Clone, Copy)]
struct ErrorTarget {
    at: usize,
    /// Errors below this are no rounding errors but divergence.
    least: f64,
    /// ε².
    most: f64,
}

impl ErrorTarget {
    /// Whether an error is above the target, or is no number.
    fn is_missed(&self, error: f64) -> bool {
        !(error >= self.least && error <= self.most)
    }
}

/// The first column of the states, `count` times.
fn repeated(states: &PairStates, count: usize) -> PairStates {
    states.iter().map(|s| Mat::from_fn(s.nrows(), count, |i, _| s[(i, 0)])).collect()
}
