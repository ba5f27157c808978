//! The server's operations on the rows of all clients: their mean, and the update of the
//! control variates. A block of columns stays in registers during a pass over the rows;
//! each column is summed in the order of the clients on every instruction set.

use super::cohort::Members;
use super::simd::{InstructionSet, ScalarLane, Simd, in_lanes};
use super::vectors::axpy;

/// Runs the method `$columns` of [`ServerRows`] over all blocks of columns on the instruction set `$path`:
/// `$columns::<I, R>(column)` computes R registers of `I` from column `column` on.
macro_rules! by_columns {
    ($path:expr, $rows:ident, $columns:ident) => {{
        /// Passes over all blocks of columns, from long ones to single columns at the end.
        ///
        /// # Safety
        /// `I` is present, and the invariant of [`ServerRows`] holds.
        #[inline(always)]
        unsafe fn columns<I: Simd>(all: &mut ServerRows<'_>) {
            let mut column = 0;
            let d = all.d;
            // SAFETY: each block ends at column d or before it.
            unsafe {
                while d - column >= LONG * I::LANES {
                    all.$columns::<I, LONG>(column);
                    column += LONG * I::LANES;
                }
                while d - column >= 2 * I::LANES {
                    all.$columns::<I, 2>(column);
                    column += 2 * I::LANES;
                }
                while d - column >= I::LANES {
                    all.$columns::<I, 1>(column);
                    column += I::LANES;
                }
                while column < d {
                    all.$columns::<ScalarLane, 1>(column);
                    column += 1;
                }
            }
        }
        let all = &mut $rows;
        // SAFETY: the invariant of `ServerRows`.
        in_lanes!($path.for_rows(all.d), I, (all: &mut ServerRows<'_>) => columns::<I>(all));
    }};
}

/// The number of registers of a long block of columns. So many are in memory and not in the processor, but the pieces
/// of rows that are pages apart are then long enough to be fetched ahead.
const LONG: usize = 64;

/// The rows of d numbers that an operation reads and writes; those it does not need are
/// empty.
///
/// *Invariant*: every member has its row in each list that the operation uses.
#[derive(Default)]
struct ServerRows<'a> {
    d: usize,
    /// The distance between rows of ξ in [`ServerRows::learn_implied`].
    stride: usize,
    /// The members, whose rows are read.
    who: &'a [usize],
    /// The number N of all clients, members or not, whose variates are averaged.
    all: usize,
    /// θ_k, one row for each client.
    ends: &'a [f64],
    /// θ_t, d numbers.
    start: &'a [f64],
    /// ℓ_k, one number for each client ([`FinishedSteps`]).
    lengths: &'a [f64],
    /// c_k, one row for each client.
    variates: &'a mut [f64],
    /// ξ_k, one row for each client.
    corrections: &'a mut [f64],
    /// A mean that is written, of `ends` or of variates, d numbers.
    mean: &'a mut [f64],
    /// θ_{t+1}, d numbers, if it is written together with the mean of variates.
    after: &'a mut [f64],
}

/// Writes the mean of the members' rows of `rows`, all of equal weight, to `out`; each row has as many numbers as
/// `out`. `rows` has a row for every client, of which those of other clients are not read. They are summed in the order
/// of the members.
///
/// # Panics
/// If a member has no row, or there is no member.
pub fn mean_of(members: &Members, rows: &[f64], out: &mut [f64]) {
    match members.indices() {
        // The bits of the general case, where the sum begins at 0 and is divided by 1.
        &[client] => {
            let row = &rows[client * out.len()..][..out.len()];
            out.iter_mut().zip(row).for_each(|(mean, x)| *mean = 0.0 + x);
        }
        _ => mean_on(InstructionSet::best(), members, rows, out),
    }
}

/// Writes the mean of the members' rows of `rows`, weighted by their `shares`, to `out`; each row has as many numbers
/// as `out`. The shares of the members are divided by their sum.
///
/// # Panics
/// If a member has no row or no share, or there is no member.
pub fn weighted_mean_of(members: &Members, shares: &[f64], rows: &[f64], out: &mut [f64]) {
    let d = out.len();
    assert!(!members.indices().is_empty());
    out.fill(0.0);
    let mut total = 0.0;
    for &client in members.indices() {
        axpy(shares[client], &rows[client * d..][..d], out);
        total += shares[client];
    }
    out.iter_mut().for_each(|x| *x /= total);
}

/// [`mean_of`] on a chosen instruction set, on which the bits do not depend.
///
/// # Panics
/// If a member has no row, or there is no member.
fn mean_on(path: InstructionSet, members: &Members, rows: &[f64], out: &mut [f64]) {
    let d = out.len();
    assert!(members.end() * d <= rows.len() && !members.indices().is_empty());
    let who = members.indices();
    let mut rows = ServerRows { d, who, ends: rows, mean: out, ..ServerRows::default() };
    by_columns!(path, rows, average);
}

/// Where the local steps of a round began and ended, from which control variates learn.
pub struct FinishedSteps<'a> {
    /// θ_t, d numbers, where the steps of all members began.
    pub start: &'a [f64],
    /// θ_k, N rows of d numbers, where they ended.
    pub ends: &'a [f64],
    /// ℓ_k, N numbers: the sum of the step sizes of client k in the round, γ_k E_k.
    pub lengths: &'a [f64],
}

/// Control variates that are stored, their mean and the corrections that follow from them; all are updated.
pub struct StoredVariates<'a> {
    /// c_k, N rows of d numbers.
    pub variates: &'a mut [f64],
    /// c̄ = N⁻¹ Σ c_k, d numbers.
    pub mean: &'a mut [f64],
    /// ξ_k = c̄ − c_k, N rows of d numbers.
    pub corrections: &'a mut [f64],
}

/// Control variates of which only the mean and the corrections are stored, both of which are updated: c_k is c̄ − ξ_k.
pub struct ImpliedVariates<'a> {
    /// c̄, d numbers.
    pub mean: &'a mut [f64],
    /// ξ_k, N rows of d numbers that begin `stride` apart.
    pub corrections: &'a mut [f64],
    /// The distance between the rows of ξ: more than d where the d numbers of a row are some of its
    /// columns.
    pub stride: usize,
}

/// Lets the variates of the members learn, c_k ← c_k − c̄ + (θ_t − θ_k)/ℓ_k, and then updates c̄ ← N⁻¹ Σ c_k over all
/// clients and ξ_k ← c̄ − c_k of each. On entry c̄ is the mean of the c_k; ξ is only written. All clients have equal
/// shares here. The bits do not depend on the instruction set.
///
/// # Panics
/// If lengths do not agree, a member is not among the N clients, or N is 0.
pub fn learn_on(
    path: InstructionSet,
    members: &Members,
    steps: FinishedSteps<'_>,
    stored: StoredVariates<'_>,
) {
    let FinishedSteps { start, ends, lengths } = steps;
    let StoredVariates { variates, mean, corrections } = stored;
    let d = mean.len();
    let n = lengths.len();
    assert!(start.len() == d && members.end() <= n && n > 0);
    assert!([ends.len(), variates.len(), corrections.len()] == [n * d; 3]);
    let who = members.indices();
    let kept = ServerRows { d, who, all: n, ..ServerRows::default() };
    let mut rows = ServerRows { ends, start, lengths, variates, corrections, mean, ..kept };
    by_columns!(path, rows, learn_stored);
}

/// [`learn_on`] with all clients as members: then c_k − c̄ is −ξ_k, so that c_k need not be stored, and c̄ is only
/// written. In the same pass over the ends it also writes their mean θ_{t+1} to `after`, d numbers.
///
/// # Panics
/// If lengths do not agree, rows of ξ are less than d apart, or N is 0.
pub fn learn_all_on(
    path: InstructionSet,
    steps: FinishedSteps<'_>,
    after: &mut [f64],
    implied: ImpliedVariates<'_>,
) {
    let FinishedSteps { start, ends, lengths } = steps;
    let ImpliedVariates { mean, corrections, stride } = implied;
    let d = mean.len();
    let n = lengths.len();
    assert!(start.len() == d && after.len() == d && n > 0);
    assert!(ends.len() == n * d && stride >= d && corrections.len() >= (n - 1) * stride + d);
    let kept = ServerRows { d, stride, all: n, ..ServerRows::default() };
    let mut rows = ServerRows { ends, start, after, lengths, corrections, mean, ..kept };
    by_columns!(path, rows, learn_implied);
}

/// Updates the mean and the corrections after variates have changed: c̄ ← N⁻¹ Σ c_k and ξ_k ← c̄ − c_k. `variates`,
/// c_k, and `corrections`, ξ_k, are N rows of d numbers, and `mean`, c̄, is d numbers. The variates are only read.
///
/// # Panics
/// If lengths do not agree, or N or d is 0.
pub fn update_corrections(variates: &mut [f64], mean: &mut [f64], corrections: &mut [f64]) {
    let d = mean.len();
    let n = variates.len() / d;
    assert!(n > 0 && variates.len() == n * d && corrections.len() == n * d);
    let mut rows = ServerRows { d, all: n, variates, corrections, mean, ..ServerRows::default() };
    by_columns!(InstructionSet::best(), rows, update_corrections);
}

impl ServerRows<'_> {
    /// [`mean_of`] for the columns in R registers of `I`, from number `column` on. There is at least one member.
    ///
    /// # Safety
    /// `I` is present; R·LANES columns begin at `column`.
    #[inline(always)]
    unsafe fn average<I: Simd, const R: usize>(&mut self, column: usize) {
        // SAFETY: the invariant, and the caller's columns.
        unsafe {
            let rows = self.ends.as_ptr().add(column);
            let mut sum = [I::splat(0.0); R];
            for &client in self.who {
                add_row::<I, R>(&mut sum, rows.add(client * self.d));
            }
            let n = I::splat(self.who.len() as f64);
            for (r, sum) in sum.into_iter().enumerate() {
                I::store(self.mean.as_mut_ptr().add(column + r * I::LANES), I::div(sum, n));
            }
        }
    }

    /// [`learn_on`] for the columns in R registers of `I`, from number `column` on.
    ///
    /// # Safety
    /// As for `average`.
    #[inline(always)]
    unsafe fn learn_stored<I: Simd, const R: usize>(&mut self, column: usize) {
        // SAFETY: the invariant, and the caller's columns.
        unsafe {
            let ends = self.ends.as_ptr().add(column);
            let variates = self.variates.as_mut_ptr().add(column);
            let mean = I::load_all::<R>(self.mean.as_ptr().add(column));
            let start = I::load_all::<R>(self.start.as_ptr().add(column));
            for &client in self.who {
                let end = ends.add(client * self.d);
                let variate = variates.add(client * self.d);
                let length = I::splat(*self.lengths.get_unchecked(client));
                for r in 0..R {
                    let end = end.add(r * I::LANES);
                    let variate = variate.add(r * I::LANES);
                    let field = I::div(I::sub(start[r], I::load(end)), length);
                    let learnt = I::add(I::sub(I::load(variate), mean[r]), field);
                    I::store(variate, learnt);
                }
            }
            self.update_corrections::<I, R>(column);
        }
    }

    /// [`learn_all_on`] for the columns in R registers of `I`, from number `column` on. A row of ξ holds the new c_k
    /// until the mean of all c_k is known, and then ξ_k again, while its columns are in the first cache.
    ///
    /// # Safety
    /// As for `average`.
    #[inline(always)]
    unsafe fn learn_implied<I: Simd, const R: usize>(&mut self, column: usize) {
        // SAFETY: the invariant, and the caller's columns.
        unsafe {
            let ends = self.ends.as_ptr().add(column);
            let rows = self.corrections.as_mut_ptr().add(column);
            let start = I::load_all::<R>(self.start.as_ptr().add(column));
            let mut sum = [I::splat(0.0); R];
            let mut theta = [I::splat(0.0); R];
            for client in 0..self.all {
                let end = ends.add(client * self.d);
                let row = rows.add(client * self.stride);
                let length = I::splat(*self.lengths.get_unchecked(client));
                for r in 0..R {
                    let row = row.add(r * I::LANES);
                    let end = I::load(end.add(r * I::LANES));
                    theta[r] = I::add(theta[r], end);
                    let field = I::div(I::sub(start[r], end), length);
                    let learnt = I::sub(field, I::load(row));
                    sum[r] = I::add(sum[r], learnt);
                    I::store(row, learnt);
                }
            }
            let n = I::splat(self.all as f64);
            for r in 0..R {
                let at = column + r * I::LANES;
                let mean = I::div(sum[r], n);
                I::store(self.after.as_mut_ptr().add(at), I::div(theta[r], n));
                I::store(self.mean.as_mut_ptr().add(at), mean);
                sum[r] = mean;
            }
            for client in 0..self.all {
                for (r, mean) in sum.iter().enumerate() {
                    let row = rows.add(client * self.stride + r * I::LANES);
                    I::store(row, I::sub(*mean, I::load(row)));
                }
            }
        }
    }

    /// [`update_corrections`] for the columns in R registers of `I`, from number `column` on.
    ///
    /// # Safety
    /// As for `average`.
    #[inline(always)]
    unsafe fn update_corrections<I: Simd, const R: usize>(&mut self, column: usize) {
        // SAFETY: the invariant, and the caller's columns.
        unsafe {
            let d = self.d;
            let variates = self.variates.as_ptr().add(column);
            let corrections = self.corrections.as_mut_ptr().add(column);
            let mut sum = [I::splat(0.0); R];
            for client in 0..self.all {
                add_row::<I, R>(&mut sum, variates.add(client * d));
            }
            let mut mean = sum;
            let n = I::splat(self.all as f64);
            for (r, mean) in mean.iter_mut().enumerate() {
                *mean = I::div(*mean, n);
                I::store(self.mean.as_mut_ptr().add(column + r * I::LANES), *mean);
            }
            for client in 0..self.all {
                let from = variates.add(client * d);
                let to = corrections.add(client * d);
                for (r, mean) in mean.iter().enumerate() {
                    let correction = I::sub(*mean, I::load(from.add(r * I::LANES)));
                    I::store(to.add(r * I::LANES), correction);
                }
            }
        }
    }
}

/// Adds R registers of a row to R registers of sums.
///
/// # Safety
/// `I` is present; `row` has R registers.
#[inline(always)]
unsafe fn add_row<I: Simd, const R: usize>(sum: &mut [I::V; R], row: *const f64) {
    for (r, sum) in sum.iter_mut().enumerate() {
        // SAFETY: passed on to the caller.
        *sum = unsafe { I::add(*sum, I::load(row.add(r * I::LANES))) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn every_path_gives_the_same_bits() {
        for (n, d) in [(1, 1), (3, 2), (5, 3), (4, 8), (7, 11), (10, 13), (2, 40), (3, 301)] {
            let mut rng = Stream::shared_instance(3);
            let mut numbers = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.gaussian()).collect() };
            let ends = numbers(n * d);
            let variates = numbers(n * d);
            let mean = numbers(d);
            let start = numbers(d);
            let lengths = numbers(n);
            for who in [(0..n).collect(), vec![n - 1], (0..n).step_by(2).collect::<Vec<_>>()] {
                let members = Members::new(who.clone());
                let mut expected = variates.clone();
                for &k in &who {
                    for i in 0..d {
                        let entry = k * d + i;
                        expected[entry] =
                            expected[entry] - mean[i] + (start[i] - ends[entry]) / lengths[k];
                    }
                }
                let column_mean = |rows: &[f64], who: &[usize], i: usize| {
                    who.iter().fold(0.0, |sum, k| sum + rows[k * d + i]) / who.len() as f64
                };
                let everyone: Vec<usize> = (0..n).collect();
                for path in InstructionSet::available() {
                    let mut out = vec![0.0; d];
                    mean_on(path, &members, &ends, &mut out);
                    assert!((0..d).all(|i| out[i] == column_mean(&ends, &who, i)), "{path:?}");
                    let mut best = vec![0.0; d];
                    mean_of(&members, &ends, &mut best);
                    assert_eq!(best, out);
                    let mut v = variates.clone();
                    let mut m = mean.clone();
                    let mut xi = vec![0.0; n * d];
                    let steps = FinishedSteps { start: &start, ends: &ends, lengths: &lengths };
                    let stored =
                        StoredVariates { variates: &mut v, mean: &mut m, corrections: &mut xi };
                    learn_on(path, &members, steps, stored);
                    assert_eq!(v, expected, "{path:?}");
                    assert!(
                        (0..d).all(|i| m[i] == column_mean(&expected, &everyone, i)),
                        "{path:?}"
                    );
                    assert!(
                        (0..n * d).all(|entry| xi[entry] == m[entry % d] - v[entry]),
                        "{path:?}"
                    );
                    if who == everyone {
                        let mut c = mean.clone();
                        let mut all = vec![0.0; n * d];
                        (0..n * d).for_each(|entry| all[entry] = mean[entry % d] - variates[entry]);
                        let mut after = vec![0.0; d];
                        let steps = FinishedSteps { start: &start, ends: &ends, lengths: &lengths };
                        let implied =
                            ImpliedVariates { mean: &mut c, corrections: &mut all, stride: d };
                        learn_all_on(path, steps, &mut after, implied);
                        assert_eq!((c, all, after), (m, xi, out), "{path:?}");
                    }
                }
            }
        }
    }
}
