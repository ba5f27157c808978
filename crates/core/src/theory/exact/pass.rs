//! The moments of a pass: local steps by which a client uses each of its records once, in a random order, B at a time.
//! Draws within a pass depend on each other, and passes are independent, so that a pass takes the place of a single
//! local step.
//!
//! A local step with the records K has the map X_K of y = (e, 1, w), the state of [`super::local`] in which a client
//! begins its local steps. For a set S of records, let P_S be the mean of the product of the maps of its batches, and
//! Q_S(Y) the mean of the product times Y times the transposed product, over all orders of S. The last batch of an
//! order is any subset K of S of the size of a batch with equal probability, hence
//!
//! ```text
//! THEORY (2.12)   P_S = mean over K of X_K P_{S∖K},   Q_S(Y) = mean over K of X_K Q_{S∖K}(Y) X_Kᵀ
//! ```

use super::error::MomentsError;
use super::local::{Drive, Steps, length};
use crate::linalg::Matrix;
use crate::problem::{Facts, RecordPass};
use crate::round_program::{Operation, Program};

/// The most records of a client whose passes are followed: there are 2¹² subsets of as many records.
const MOST_RECORDS: usize = 12;

/// Whether clients draw records without replacement in passes on a problem with affine fields.
pub(super) fn has_passes(facts: &dyn Facts) -> bool {
    facts.linear()
        && !facts.independent()
        && facts.positions(0).is_none()
        && facts.record_count(0).is_some()
}

/// Checks that moments of passes are computed on a problem whose draws depend on each other.
///
/// # Errors
/// If its draws are not passes over records, or a client has too many records.
pub(super) fn check_lengths(facts: &dyn Facts) -> Result<(), MomentsError> {
    if !has_passes(facts) {
        return Err(MomentsError::DependentDraws);
    }
    let counts = (0..facts.clients()).filter_map(|client| facts.record_count(client));
    let records = counts.max().unwrap_or(0);
    if records > MOST_RECORDS {
        return Err(MomentsError::LongPass { records, most: MOST_RECORDS });
    }
    Ok(())
}

/// Checks that all draws of a program are whole passes, if clients pass over their records on the problem: each round
/// then begins with new passes.
///
/// # Errors
/// [`MomentsError::PartOfPass`] otherwise.
pub fn check_passes(program: &Program, facts: &dyn Facts) -> Result<(), MomentsError> {
    if !has_passes(facts) {
        return Ok(());
    }
    let mut operations = program.rounds.iter().flat_map(|round| &round.operations);
    let are_whole = operations.all(|operation| match operation {
        Operation::Steps { count, batch, coin, .. } => (0..program.clients).all(|client| {
            let calls = calls_of_pass(facts, client);
            let is_whole = count.of_client(client).is_multiple_of(calls);
            coin.is_none() && batch.of_client(client) == 1 && is_whole
        }),
        Operation::Fields { .. } => false,
        _ => true,
    });
    if are_whole { Ok(()) } else { Err(MomentsError::PartOfPass) }
}

/// The number of oracle calls of a client that are one pass, or 1 where clients do not pass over records: as many local
/// steps are independent of others.
pub(super) fn calls_of_pass(facts: &dyn Facts, client: usize) -> u64 {
    let calls = if has_passes(facts) { facts.calls_of_epoch(client) } else { None };
    calls.map_or(1, |calls| calls as u64)
}

/// How many multiplications and numbers the moments of one pass take for a client in dimension d; 0 where clients do
/// not pass over records.
pub(super) fn pass_sizes(facts: &dyn Facts, client: usize) -> [f64; 2] {
    let Some(records) = facts.record_count(client).filter(|_| has_passes(facts)) else {
        return [0.0; 2];
    };
    let d = facts.dim() as f64;
    let y = length(facts.dim(), true) as f64;
    let subsets = libm::ldexp(1.0, records as i32);
    // Subsets have n/2 records on average, so that batches of one record make 2ⁿ n/2 pairs of a subset and its last
    // batch; with larger batches there are at most twice as many. Each pair takes two products of a step with a map of
    // E y yᵀ.
    let pairs = records as f64 * subsets;
    [2.0 * pairs * d * y * y * y * y, subsets * y * y * y * y]
}

/// One pass of client `client` in two runs on the same order (or in one run, given twice, if `same`): the mean of the
/// ends as a map of y, and the noise map. With `of_means` there is no noise map.
///
/// # Errors
/// If the fields of single records are not known.
pub(super) fn pass_of(
    facts: &dyn Facts,
    client: usize,
    drives: [Drive; 2],
    same: bool,
    of_means: bool,
) -> Result<Steps, MomentsError> {
    let pass = facts.record_pass(client).ok_or(MomentsError::DependentDraws)?;
    let mean_field = facts.field_at_optimum(client);
    let orders = Orders { pass: &pass, mean_field: &mean_field, drives };
    let ends = [orders.mean_end(0), orders.mean_end(1)];
    let d = facts.dim();
    if of_means {
        let columns = ends[0].cols() * ends[1].cols();
        return Ok(Steps::with_noise(ends, Matrix::zeros(0, columns), same));
    }
    let mut noise = orders.second_moments();
    let [a, b] = &ends;
    let n = b.cols();
    for i in 0..d * d {
        for k in 0..noise.cols() {
            noise[(i, k)] -= a[(i / d, k / n)] * b[(i % d, k % n)];
        }
    }
    Ok(Steps::with_noise(ends, noise, same))
}

/// The orders of a client's records, and what drives the client in two runs. A set of records is a number whose bit i
/// says whether record i is in it.
struct Orders<'a> {
    pass: &'a RecordPass,
    /// F̄_k(θ*) of the client, d numbers.
    mean_field: &'a [f64],
    drives: [Drive; 2],
}

impl Orders<'_> {
    /// The number of records.
    fn records(&self) -> usize {
        self.pass.records.len()
    }

    /// The size of the batch with which a pass over the first `size` records ends: B, or what is left of all records.
    fn last_batch(&self, size: usize) -> usize {
        let rest = size % self.pass.batch;
        if rest == 0 { self.pass.batch.min(size) } else { rest }
    }

    /// Whether a pass has used as many records as `size` after some oracle call.
    fn is_between_calls(&self, size: usize) -> bool {
        size == self.records() || size.is_multiple_of(self.pass.batch)
    }

    /// The subsets of `set` with `size` records.
    fn batches(set: usize, size: usize) -> impl Iterator<Item = usize> {
        // All subsets of a set in decreasing order: the next one is what remains of the one before minus 1.
        let mut next = Some(set);
        let subsets = std::iter::from_fn(move || {
            let subset = next?;
            next = subset.checked_sub(1).map(|below| below & set);
            Some(subset)
        });
        subsets.filter(move |subset| subset.count_ones() as usize == size)
    }

    /// The map of y to e by a local step with the records of a batch in run 0 or 1, d rows: X_K without its last rows,
    /// which keep 1 and w. It is THEORY (2.2) with the field of the batch in place of the mean field.
    fn step(&self, batch: usize, run: usize) -> Matrix {
        let d = self.mean_field.len();
        let Drive { update, pulled } = self.drives[run];
        let mut out = Matrix::zeros(d, length(d, pulled));
        let share = update.step / f64::from(batch.count_ones());
        for (record, field) in self.pass.records.iter().enumerate() {
            if batch >> record & 1 == 0 {
                continue;
            }
            for i in 0..d {
                for j in 0..d {
                    out[(i, j)] -= share * field.matrix[(i, j)];
                }
                // With a drift in y the mean field is part of w.
                let of_drift = if pulled { self.mean_field[i] } else { 0.0 };
                out[(i, d)] -= share * (field.at_optimum[i] - of_drift);
            }
        }
        for i in 0..d {
            out[(i, i)] += 1.0 - update.step * update.proximal;
            if pulled {
                out[(i, d + 1 + i)] = -update.step;
            }
        }
        out
    }

    /// The mean of the ends of a pass in a run, d rows: the e-rows of P of all records, THEORY (2.12).
    fn mean_end(&self, run: usize) -> Matrix {
        let d = self.mean_field.len();
        let start = Matrix::from_fn(d, length(d, self.drives[run].pulled), |i, j| {
            f64::from(u8::from(i == j))
        });
        self.over_subsets(start, |before, batch, sum| {
            sum.add(1.0, &after_step(&self.step(batch, run), before));
        })
    }

    /// E e e'ᵀ after a pass as a map of E y y'ᵀ, d² rows: the e-block of Q of all records, THEORY (2.12).
    fn second_moments(&self) -> Matrix {
        let d = self.mean_field.len();
        let [m, n] = self.drives.map(|drive| length(d, drive.pulled));
        let start = Matrix::from_fn(m * n, m * n, |i, k| f64::from(u8::from(i == k)));
        let all = self.over_subsets(start, |before, batch, sum| {
            let steps = [self.step(batch, 0), self.step(batch, 1)];
            sum.add(1.0, &after_step_of_two(&steps, before));
        });
        Matrix::from_fn(d * d, m * n, |i, k| all[((i / d) * n + i % d, k)])
    }

    /// The value of the set of all records, where that of the empty set is `start`, and that of each other set is the
    /// mean over its last batches of what `add` adds for the value of the rest: THEORY (2.12). Sets in the middle of a
    /// batch have no value.
    fn over_subsets(&self, start: Matrix, add: impl Fn(&Matrix, usize, &mut Matrix)) -> Matrix {
        let all = (1_usize << self.records()) - 1;
        let mut values: Vec<Option<Matrix>> = vec![None; all + 1];
        for set in 1..=all {
            let size = set.count_ones() as usize;
            if !self.is_between_calls(size) {
                continue;
            }
            let mut sum = Matrix::zeros(start.rows(), start.cols());
            let mut batches = 0.0;
            for batch in Self::batches(set, self.last_batch(size)) {
                // The rest of a set is smaller as a number, so that its value is known.
                let before = values[set & !batch].as_ref().unwrap_or(&start);
                add(before, batch, &mut sum);
                batches += 1.0;
            }
            values[set] = Some(sum.scaled(1.0 / batches));
        }
        values[all].take().unwrap_or(start)
    }
}

/// The e-rows after a step, d × n, of a map of y whose e-rows are `before`: the step reads e, and 1 and w, which no
/// step changes.
fn after_step(step: &Matrix, before: &Matrix) -> Matrix {
    let d = step.rows();
    Matrix::from_fn(d, step.cols(), |i, j| {
        let kept = if j < d { 0.0 } else { step[(i, j)] };
        (0..d).fold(kept, |sum, k| sum + step[(i, k)] * before[(k, j)])
    })
}

/// E y y'ᵀ after a step of two runs as a map of E y y'ᵀ before the pass, if it was `before` before the step.
fn after_step_of_two(steps: &[Matrix; 2], before: &Matrix) -> Matrix {
    let [a, b] = steps;
    let d = a.rows();
    let m = a.cols();
    let n = b.cols();
    // First the rows of run 0, and then those of run 1: X Y, and X Y X'ᵀ.
    let mut half = before.clone();
    for i in 0..d {
        for j in 0..n {
            let row = half.row_mut(i * n + j);
            row.fill(0.0);
            for k in (0..m).filter(|k| a[(i, *k)] != 0.0) {
                crate::kernel::axpy(a[(i, k)], before.row(k * n + j), row);
            }
        }
    }
    let mut out = half.clone();
    for i in 0..m {
        for j in 0..d {
            let row = out.row_mut(i * n + j);
            row.fill(0.0);
            for k in (0..n).filter(|k| b[(j, *k)] != 0.0) {
                crate::kernel::axpy(b[(j, k)], half.row(i * n + k), row);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Reshuffled;
    use crate::round_program::{LocalUpdate, PerClient, sum};
    use crate::sample;

    /// All orders of the numbers below `count`.
    fn all_orders(count: usize) -> Vec<Vec<usize>> {
        if count == 0 {
            return vec![Vec::new()];
        }
        let mut orders = Vec::new();
        for shorter in all_orders(count - 1) {
            for place in 0..count {
                let mut order = shorter.clone();
                order.insert(place, count - 1);
                orders.push(order);
            }
        }
        orders
    }

    /// The end of a pass over the records in this order, from y = (e, 1, w) or (e, 1): plain steps, one batch after
    /// another.
    fn end_of_order(
        facts: &dyn Facts,
        client: usize,
        order: &[usize],
        drive: Drive,
        y: &[f64],
    ) -> Vec<f64> {
        let pass = facts.record_pass(client).unwrap();
        let mean_field = facts.field_at_optimum(client);
        let d = facts.dim();
        let mut e = y[..d].to_vec();
        for batch in order.chunks(pass.batch) {
            let mut field = vec![0.0; d];
            for &record in batch {
                let one = &pass.records[record];
                let mut at = one.matrix.apply(&e);
                crate::kernel::axpy(1.0, &one.at_optimum, &mut at);
                crate::kernel::axpy(1.0 / batch.len() as f64, &at, &mut field);
            }
            if drive.pulled {
                crate::kernel::axpy(-1.0, &mean_field, &mut field);
                crate::kernel::axpy(1.0, &y[d + 1..], &mut field);
            }
            crate::kernel::axpy(drive.update.proximal, &e, &mut field);
            crate::kernel::axpy(-drive.update.step, &field, &mut e);
        }
        e
    }

    /// The mean of the ends and their covariance are those over all orders, also in two runs with other step sizes,
    /// with a drift, and where the last batch is smaller.
    #[test]
    fn a_pass_has_the_moments_of_all_orders() {
        for batch in [1, 2, 3, 7] {
            let problem = Reshuffled(sample::short_ridge(batch));
            for client in 0..3 {
                for (pulled, proximal) in [(false, 0.0), (true, 0.4)] {
                    let update = |step| LocalUpdate { step, steps: 1, batch: 1, proximal };
                    let drives = [0.2, 0.35].map(|step| Drive { update: update(step), pulled });
                    let all = [0.7, -0.4, 1.0, 0.3, -0.2];
                    let y = &all[..length(2, pulled)];
                    let orders = all_orders(problem.record_count(client).unwrap());
                    let share = 1.0 / orders.len() as f64;
                    let mut mean = vec![0.0; 2];
                    let mut second = Matrix::zeros(2, 2);
                    for order in &orders {
                        let [a, b] =
                            drives.map(|drive| end_of_order(&problem, client, order, drive, y));
                        crate::kernel::axpy(share, &a, &mut mean);
                        second.add(share, &Matrix::outer(&a, &b));
                    }
                    let found = pass_of(&problem, client, drives, false, false).unwrap();
                    assert!(sample::distance(&found.ends[0].apply(y), &mean) < 1e-13);
                    let noise = found.noise_from(&Matrix::outer(y, y), 1).into_entries();
                    let means = Matrix::outer(&mean, &found.ends[1].apply(y));
                    let covariance = second.plus(-1.0, &means);
                    assert!(sample::distance(&noise, covariance.entries()) < 1e-13);
                    let is_one_batch = batch >= problem.record_count(client).unwrap();
                    assert_eq!(covariance.spectral_norm().unwrap() < 1e-13, is_one_batch);
                }
            }
        }
    }

    /// Rounds that end inside of a pass, batches of several gradients and single gradients are refused, and so are
    /// passes over many records.
    #[test]
    fn parts_of_passes_are_refused() {
        let problem = Reshuffled(sample::short_ridge(2));
        let steps = |counts: Vec<u64>, calls| Operation::Steps {
            start: sum([(0, 1.0)]),
            correction: None,
            anchor: None,
            step: PerClient::All(0.1),
            count: PerClient::Each(counts),
            batch: PerClient::All(calls),
            proximal: 0.0,
            members: false,
            draws: None,
            coin: None,
        };
        let fields = Operation::Fields {
            at: sum([(0, 1.0)]),
            calls: PerClient::All(2),
            members: false,
            draws: None,
        };
        let checked = |operation| {
            let mut program = sample::program(vec![], vec![], sum([(0, 1.0)]));
            program.clients = 3;
            program.rounds[0].operations = vec![operation];
            check_passes(&program, &problem)
        };
        assert_eq!(checked(steps(vec![2, 2, 3], 1)), Ok(()));
        assert_eq!(checked(steps(vec![4, 2, 6], 1)), Ok(()));
        let refused = Err(MomentsError::PartOfPass);
        assert_eq!(checked(steps(vec![2, 2, 2], 1)), refused);
        assert_eq!(checked(steps(vec![2, 2, 3], 2)), refused);
        assert_eq!(checked(fields), refused);
        assert_eq!(check_lengths(&problem), Ok(()));
        let long = check_lengths(&Reshuffled(sample::weighted_ridge()));
        assert_eq!(long, Err(MomentsError::LongPass { records: 16, most: 12 }));
    }
}
