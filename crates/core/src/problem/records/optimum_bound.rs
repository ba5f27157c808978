//! A rigorous bound on the distance of a computed θ from θ*, the minimiser of the mean loss of
//! records, all of which are taken as the doubles that are stored.
//!
//! The gradient g at θ is evaluated in double-double with a bound e on its own error, so that
//! ‖θ − θ*‖ ≤ r₀ = (‖g‖ + e)/μ with μ a lower bound on the eigenvalues of all Hessians. This is at most
//! as many times too large as the problem's condition number. A step x that nearly solves H x = g, with
//! H = ∇²f(θ), sharpens it. With H' the mean of the Hessians between θ and θ*, θ − θ* is H'⁻¹g, and
//!
//! ‖H'⁻¹g‖ ≤ ‖x‖ + ‖H⁻¹(g − H x)‖ + ‖(H'⁻¹ − H⁻¹) g‖ ≤ ‖x‖ + ‖g − H x‖/μ + (e^(R‖x_i‖r) − 1) r₀
//!
//! for any r ≥ ‖θ − θ*‖, since H' is within factors of e^±(R‖x_i‖r) of H
//! ([`RecordLoss::SELF_CONCORDANCE`]; ‖x_i‖ is the length of the longest record).
//!
//! Without a penalty only H is known to have eigenvalues of at least some μ, and it is not known whether there is a θ*.
//! Along a ray θ + tu with ‖u‖ = 1 the derivative of f is at least μ(1 − e^(−R‖x_i‖t))/(R‖x_i‖) − ‖g‖ at distance t. If
//! R‖x_i‖ ‖g‖ < μ it is positive beyond r = −log(1 − R‖x_i‖ ‖g‖/μ)/(R‖x_i‖) for all u, so that a θ* exists within r of
//! θ. The rest holds as above, with ‖g‖/μ as r₀. Where f is flat along some directions, all of this is meant orthogonal
//! to them: g has no part along them, and the distance is that from the set of all θ*.
//!
//! *Invariant*: nothing here changes θ. Bounds are lengths in doubles, whose own rounding errors
//! [`SLACK`] covers.

use super::instance::RecordProblem;
use super::loss::{RecordLoss, RecordSets};
use crate::kernel::dot;
use crate::linalg::{DD_EPSILON, Dd, Matrix, least_eigenvalue_bound};

/// More than the relative rounding error of lengths of up to 10⁸ numbers and of sums of lengths.
const SLACK: f64 = 1.0 + 1e-6;
/// More than all errors of products that underflow, whose rounding errors double-double does not keep: each sum of
/// bounds has it as a term.
const UNDERFLOW: f64 = 1e-280;
/// How often a bound is put into the formula for a sharper one, as the r of the head of this file.
const SHARPENINGS: usize = 10;

/// A vector in double-double, and a bound on the length of its error.
struct BoundedVector {
    /// The vector as it was computed.
    value: Vec<Dd>,
    /// A bound on the Euclidean distance of `value` from the exact vector.
    error: f64,
}

impl BoundedVector {
    /// An upper bound on the length of the exact vector.
    fn length(&self) -> f64 {
        SLACK * length(&self.rounded()) + self.error
    }

    /// The vector rounded to doubles.
    fn rounded(&self) -> Vec<f64> {
        self.value.iter().map(|value| value.hi).collect()
    }
}

/// What is needed of the records of a set at θ, computed once for the gradient and for a product with the Hessian.
struct SetAt {
    /// The number of the set.
    set: usize,
    /// The weight of each record of the set in the mean of f over clients.
    weight: Dd,
    /// [`RecordLoss::extended_numbers`], K per record.
    numbers: Vec<Dd>,
    /// A bound on the error of the numbers of each record.
    number_errors: Vec<f64>,
    /// An upper bound on ‖x‖ of each record.
    lengths: Vec<f64>,
}

/// What is known of μ, a lower bound on the eigenvalues of Hessians.
#[derive(Clone, Copy, Debug)]
pub(super) enum Convexity {
    /// It is a bound at all points.
    Everywhere(f64),
    /// It is a bound at the point whose distance from θ* is bounded.
    AtPoint(f64),
}

impl Convexity {
    /// μ.
    fn least_eigenvalue(self) -> f64 {
        match self {
            Self::Everywhere(least) | Self::AtPoint(least) => least,
        }
    }

    /// A bound on the distance of a point from θ*, given `scaled` ≥ ‖g‖/μ with g the gradient there, and R‖x_i‖ of the
    /// longest record; infinite where no θ* need exist.
    fn radius(self, scaled: f64, concordance: f64) -> f64 {
        match self {
            Self::AtPoint(_) if concordance > 0.0 => {
                let part = SLACK * concordance * scaled;
                // Also if the part is NaN.
                let is_proof = part < 1.0;
                if is_proof { -SLACK * libm::log1p(-part) / concordance } else { f64::INFINITY }
            }
            _ => scaled,
        }
    }
}

/// A bound on ‖θ − θ*‖ of the mean loss over all clients; infinite if none is found. `newton_step` gives some x for a gradient g: the closer it is to H⁻¹g the
/// sharper is the bound, which is right for any x. Where it gives `None` or numbers that are not finite, the bound is
/// (‖g‖ + e)/μ.
pub(super) fn optimum_error<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    theta: &[f64],
    convexity: Convexity,
    newton_step: impl FnOnce(&[f64]) -> Option<Vec<f64>>,
) -> f64 {
    let sets = records_at(problem, theta);
    let gradient = gradient(problem, &sets, theta);
    let longest = sets.iter().flat_map(|set| &set.lengths).fold(0.0_f64, |most, x| most.max(*x));
    let least_eigenvalue = convexity.least_eigenvalue();
    let scaled = SLACK * gradient.length() / least_eigenvalue;
    let radius = convexity.radius(scaled, L::SELF_CONCORDANCE * longest);
    if !radius.is_finite() {
        return f64::INFINITY;
    }
    let step = newton_step(&gradient.rounded()).filter(|x| x.iter().all(|x| x.is_finite()));
    let Some(step) = step else { return radius };
    let product = hessian_product(problem, &sets, &step);
    let pairs = gradient.value.iter().zip(&product.value);
    // g − H x, and then ‖x‖ + ‖g − H x‖/μ.
    let left: Vec<f64> = pairs.map(|(g, hx)| g.plus_dd(hx.negated()).hi).collect();
    let solved = SLACK * length(&step)
        + SLACK * (SLACK * length(&left) + gradient.error + product.error) / least_eigenvalue;
    let mut bound = radius;
    for _ in 0..SHARPENINGS {
        let change = libm::expm1(SLACK * L::SELF_CONCORDANCE * longest * bound);
        let sharper = SLACK * (solved + change * scaled);
        // The bound that is known stays where a number is NaN or infinite.
        if sharper.is_nan() || sharper >= bound {
            break;
        }
        bound = sharper;
    }
    bound
}

/// A lower bound on the eigenvalues of the exact Hessian E xxᵀ + λI of losses with affine fields: λ if no larger one
/// is found (0 without a penalty, and then no bound on the error of θ* is finite). `mean` has the Hessian as it was
/// summed in doubles, over the records of each client and over the clients, whose rounding errors are counted.
pub(super) fn affine_convexity<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    mean: &Matrix,
) -> f64 {
    let most_records = (0..problem.records.sets()).map(|set| problem.records.records(set)).max();
    let terms = most_records.unwrap_or(0) + problem.records.sets() + 10;
    // The sum of |x_i x_j| over records is a matrix whose norm is at most the mean of ‖x‖².
    let error = terms as f64 * f64::EPSILON * SLACK * mean.trace();
    least_eigenvalue_bound(mean, error, problem.loss.l2())
}

/// ‖x‖ without underflow or overflow of squares: numbers are divided by the largest. It is not finite if a number is
/// not.
fn length(x: &[f64]) -> f64 {
    let most = x.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    if most == 0.0 || !most.is_finite() {
        // All numbers are 0, or some are not finite: `max` ignores NaN, which the sum keeps.
        return x.iter().fold(most, |sum, x| sum + x.abs());
    }
    let parts: Vec<f64> = x.iter().map(|x| x / most).collect();
    most * libm::sqrt(dot(&parts, &parts))
}

/// The weight of each record of a set in the mean of f over clients: the share of the clients that hold the set,
/// divided by the number of its records. Client c holds set number c modulo the number of sets, so that sets may have
/// several holders. If all shares are the quotients of the sets' records and all records, as doubles, they count as
/// these quotients exactly, and the weight is 1 over all records; otherwise shares are the doubles that they are.
fn record_weight<L: RecordLoss<S>, S: RecordSets>(problem: &RecordProblem<L, S>, set: usize) -> Dd {
    let sets = problem.records.sets();
    let counts: Vec<f64> = (0..sets).map(|set| problem.records.records(set) as f64).collect();
    let Some(shares) = &problem.client_shares else {
        let holders = (problem.clients - set).div_ceil(sets) as f64;
        return Dd::from(holders).over(Dd::product(problem.clients as f64, counts[set]));
    };
    let all: f64 = counts.iter().sum();
    let is_by_records = |(share, count): (&f64, &f64)| *share == count / all;
    if shares.len() == sets && shares.iter().zip(&counts).all(is_by_records) {
        return Dd::from(1.0).over(Dd::from(all));
    }
    let of_holders = shares.iter().skip(set).step_by(sets);
    of_holders.fold(Dd::default(), |sum, share| sum.plus(*share)).over(Dd::from(counts[set]))
}

/// Writes the products of a record with the K rows of v, which is θ or a step, to `out` in double-double, K numbers.
fn products<S: RecordSets>(records: &S, set: usize, record: usize, v: &[f64], out: &mut [Dd]) {
    out.fill(Dd::default());
    let features = records.features();
    records.visit_record(set, record, |feature, x| {
        for (class, out) in out.iter_mut().enumerate() {
            *out = out.plus_dd(Dd::product(x, v[class * features + feature]));
        }
    });
}

/// out ← out + f ⊗ x for a record with the features x, in double-double; f has K numbers, and `out` K d.
fn add_record<S: RecordSets>(records: &S, set: usize, record: usize, f: &[Dd], out: &mut [Dd]) {
    let features = records.features();
    records.visit_record(set, record, |feature, x| {
        for (class, factor) in f.iter().enumerate() {
            let entry = &mut out[class * features + feature];
            *entry = entry.plus_dd(factor.times_double(x));
        }
    });
}

/// ∇f(θ) of the mean of f over clients, as exact as double-double gives it, rounded to doubles.
pub(super) fn extended_gradient<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    theta: &[f64],
) -> Vec<f64> {
    gradient(problem, &records_at(problem, theta), theta).rounded()
}

/// The numbers of the records of all sets at θ in double-double, with bounds on their errors.
fn records_at<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    theta: &[f64],
) -> Vec<SetAt> {
    let RecordProblem { loss, records, .. } = problem;
    let classes = records.classes();
    let size = length(theta);
    let mut sets = Vec::with_capacity(records.sets());
    for set in 0..records.sets() {
        let count = records.records(set);
        let squares = records.squares(set).into_iter();
        let lengths: Vec<f64> = squares.map(|square| SLACK * libm::sqrt(square)).collect();
        let mut numbers = vec![Dd::default(); count * classes];
        let mut number_errors = Vec::with_capacity(count);
        for (record, u) in numbers.chunks_exact_mut(classes).enumerate() {
            products(records, set, record, theta, u);
            // Each of the d sums errs by its size, which is at most ‖x‖ ‖θ‖.
            let error = DD_EPSILON * records.features() as f64 * lengths[record] * size + UNDERFLOW;
            number_errors.push(loss.extended_numbers(records, set, record, u, error));
        }
        let weight = record_weight(problem, set);
        sets.push(SetAt { set, weight, numbers, number_errors, lengths });
    }
    sets
}

/// ∇f(θ) of the mean of f over clients in double-double, with a bound on its error.
fn gradient<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    sets: &[SetAt],
    theta: &[f64],
) -> BoundedVector {
    let RecordProblem { loss, records, .. } = problem;
    let classes = records.classes();
    let mut sum = BoundedSum::from_penalty(loss.l2(), theta);
    let mut residuals = vec![Dd::default(); classes];
    for at in sets {
        let mut of_set = vec![Dd::default(); theta.len()];
        // Σ ‖x‖ ‖δ‖, and Σ ‖x‖ times the error of δ.
        let mut size = 0.0;
        let mut error = 0.0;
        for (record, numbers) in at.numbers.chunks_exact(classes).enumerate() {
            residuals.copy_from_slice(numbers);
            loss.extended_residuals(records, at.set, record, &mut residuals);
            let loss_weight = records.loss_weight(at.set, record);
            weigh(loss_weight, &mut residuals);
            add_record(records, at.set, record, &residuals, &mut of_set);
            let residual = length_of(&residuals);
            size += at.lengths[record] * residual;
            let rounding = (1.0 + rounding_of_weight(loss_weight)) * DD_EPSILON * residual;
            error += at.lengths[record] * (loss_weight * at.number_errors[record] + rounding);
        }
        sum.add_set(at, &of_set, size, error);
    }
    sum.finish(sets.len())
}

/// ∇²f(θ) x for a step x in double-double, with a bound on its error.
fn hessian_product<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    sets: &[SetAt],
    step: &[f64],
) -> BoundedVector {
    let RecordProblem { loss, records, .. } = problem;
    let classes = records.classes();
    let step_length = length(step);
    let mut sum = BoundedSum::from_penalty(loss.l2(), step);
    let mut change = vec![Dd::default(); classes];
    // How many operations add errors: those of the products with the step, of W v, and a few for the numbers of W.
    let operations = (records.features() + 8 * classes + 8) as f64;
    for at in sets {
        let mut of_set = vec![Dd::default(); step.len()];
        let mut size = 0.0;
        let mut error = 0.0;
        for (record, numbers) in at.numbers.chunks_exact(classes).enumerate() {
            products(records, at.set, record, step, &mut change);
            loss.extended_change(numbers, &mut change);
            let loss_weight = records.loss_weight(at.set, record);
            weigh(loss_weight, &mut change);
            add_record(records, at.set, record, &change, &mut of_set);
            // ‖v‖ ≤ ‖x‖ ‖step‖ and W, which is at most the loss weight, errs by three times as much as its numbers.
            let most = loss_weight * at.lengths[record] * at.lengths[record] * step_length;
            size += most;
            let roundings = operations + rounding_of_weight(loss_weight);
            error += most * (3.0 * at.number_errors[record] + roundings * DD_EPSILON);
        }
        sum.add_set(at, &of_set, size, error);
    }
    sum.finish(sets.len())
}

/// Multiplies the K numbers of a record by its loss weight.
fn weigh(loss_weight: f64, numbers: &mut [Dd]) {
    if loss_weight != 1.0 {
        numbers.iter_mut().for_each(|number| *number = number.times_double(loss_weight));
    }
}

/// The number of rounding errors that [`weigh`] adds: one, or none where the loss weight is 1.
fn rounding_of_weight(loss_weight: f64) -> f64 {
    f64::from(u8::from(loss_weight != 1.0))
}

/// ‖x‖ of a vector in double-double, such as the residual of a record; squares may underflow, which [`UNDERFLOW`]
/// covers.
fn length_of(x: &[Dd]) -> f64 {
    libm::sqrt(x.iter().fold(0.0, |sum, x| sum + x.hi * x.hi))
}

/// A gradient or a product with the Hessian while it is summed: λv plus a weighted sum over sets, with what bounds its
/// error.
struct BoundedSum {
    /// The sum so far, d numbers.
    value: Vec<Dd>,
    /// A bound on the sum of the lengths of all terms so far, to which rounding errors of sums are relative.
    size: f64,
    /// A bound on the sum of the errors of all terms so far.
    error: f64,
}

impl BoundedSum {
    /// Begins a sum with the term λv of the penalty: v is θ in a gradient, and the step in a product with the Hessian.
    fn from_penalty(l2: f64, v: &[f64]) -> Self {
        let value = v.iter().map(|v| Dd::product(l2, *v)).collect();
        Self { value, size: l2 * length(v), error: UNDERFLOW }
    }

    /// Adds `of_set`, the sum of a term for each record of a set, times the weight of a record, which `at` has.
    /// Before they are weighted, the lengths of the terms add up to at most `size`, and their errors to at most
    /// `error`.
    fn add_set(&mut self, at: &SetAt, of_set: &[Dd], size: f64, error: f64) {
        for (value, of_set) in self.value.iter_mut().zip(of_set) {
            *value = value.plus_dd(of_set.times(at.weight));
        }
        let weight = at.weight.hi;
        // One rounding error for each record that is added, and a few for the weight and its product.
        let operations = (at.lengths.len() + 4) as f64;
        self.size += weight * size;
        self.error += SLACK * weight * (error + operations * DD_EPSILON * size + UNDERFLOW);
    }

    /// The sum with a bound on its error, once all `sets` sets are added.
    fn finish(self, sets: usize) -> BoundedVector {
        let operations = (sets + 4) as f64;
        let error = SLACK * (self.error + SLACK * operations * DD_EPSILON * self.size);
        BoundedVector { value: self.value, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::softmax::ClassTables;
    use crate::problem::logistic::{Logistic, Loss, dense_tables};
    use crate::problem::softmax::{Softmax, SoftmaxLoss};
    use crate::problem::{Facts, InstanceInputs};
    use crate::sample;

    /// The records of the references below.
    const RECORDS: usize = 30;

    /// Feature j of record i, an exact double; `a` chooses one of several series.
    fn feature(a: usize, i: usize, j: usize, scale: f64) -> f64 {
        let residue = (a * i + 2 * j * j + i * j) % 23;
        (residue as f64 - 11.0) * scale * 0.125
    }

    /// The features of all records, a row for each, with one feature for each scale.
    fn rows(a: usize, scales: &[f64]) -> Vec<f64> {
        let mut rows = Vec::new();
        for i in 0..RECORDS {
            rows.extend(scales.iter().enumerate().map(|(j, scale)| feature(a, i, j, *scale)));
        }
        rows
    }

    /// Logistic regression of one client on these records.
    fn logistic(a: usize, scales: &[f64], l2: f64) -> Logistic {
        let mut records = rows(a, scales);
        for (i, row) in records.chunks_exact_mut(scales.len()).enumerate() {
            let label = if (i * i + a * i) % 5 < 2 { 1.0 } else { -1.0 };
            row.iter_mut().for_each(|x| *x *= label);
        }
        let loss = Loss { l2, margin: 0.0, batch: 1 };
        let tables = dense_tables(scales.len(), &loss, &[records]);
        Logistic::new(loss, tables, InstanceInputs::default()).unwrap()
    }

    /// Softmax regression of one client on these records, with three classes.
    fn softmax(a: usize, scales: &[f64], l2: f64) -> Softmax {
        let labels = (0..RECORDS).map(|i| (i % 3) as u8).collect();
        let tables = ClassTables::new(scales.len(), 3, l2, &[(rows(a, scales), labels)]);
        Softmax::new(SoftmaxLoss { classes: 3, l2, batch: 1 }, tables, InstanceInputs::default())
            .unwrap()
    }

    /// Checks that the error of θ* is within its bound, and not far below. `reference` is θ* to 32 digits, found in
    /// arithmetic of 50 digits: each number as a double and what the double lacks.
    #[track_caller]
    fn assert_within_bound(facts: &dyn Facts, reference: &[[f64; 2]]) {
        let mut apart = Vec::new();
        for (found, [hi, lo]) in facts.optimum().iter().zip(reference) {
            apart.push(Dd::from(*found).plus(-hi).plus(-lo).hi);
        }
        let error = length(&apart);
        let bound = facts.optimum_error().unwrap();
        assert!(error <= bound && bound <= 3.0 * error, "{error} {bound}");
    }

    /// The search ends where the gradient is 0 as computed, or a few ulps from θ*.
    #[test]
    fn the_bound_counts_the_rounding_of_gradients_and_of_the_optimum() {
        let one = logistic(3, &[1.0], 0.25);
        assert_within_bound(&one, &[[0.159_569_585_871_099_26, 1.144_087_247_412_964_8e-17]]);
        let other = logistic(5, &[1.0], 0.25);
        assert_within_bound(&other, &[[-0.402_273_508_632_984_7, 1.622_582_010_215_213e-17]]);
    }

    /// Weights of 2 and 3 for all records multiply the function whose penalty is as many times smaller: it has the same
    /// minimiser.
    #[test]
    fn the_bound_counts_loss_weights() {
        let reference = [
            [-1.094_678_989_478_323_8, 6.320_664_803_803_749e-17],
            [-0.004_827_950_852_433_972, -1.437_569_998_658_946_6e-19],
            [-0.002_873_784_242_662_397_4, -2.809_014_447_183_443e-20],
        ];
        for weight in [2.0, 3.0] {
            let Logistic { records, loss, .. } = logistic(5, &[1.0, 8.0, 64.0], 0.000_976_562_5);
            let loss = Loss { l2: weight * loss.l2, ..loss };
            let records = records.with_loss_weights(vec![vec![weight; RECORDS]]);
            let weighted = Logistic::new(loss, records, InstanceInputs::default()).unwrap();
            assert_within_bound(&weighted, &reference);
        }
    }

    #[test]
    fn the_bound_is_close_to_the_error_where_features_differ_in_scale() {
        let three = logistic(5, &[1.0, 8.0, 64.0], 0.000_976_562_5);
        let reference = [
            [-1.094_678_989_478_323_8, 6.320_664_803_803_749e-17],
            [-0.004_827_950_852_433_972, -1.437_569_998_658_946_6e-19],
            [-0.002_873_784_242_662_397_4, -2.809_014_447_183_443e-20],
        ];
        assert_within_bound(&three, &reference);
    }

    #[test]
    fn the_bound_holds_for_classes() {
        let reference = [
            [0.192_101_268_411_979_75, -7.599_926_658_294_59e-18],
            [-0.037_948_010_706_325_78, 8.625_910_471_383_546e-19],
            [0.002_755_720_583_676_035, 1.139_263_303_281_962_8e-19],
            [-0.000_156_613_611_304_393_77, -6.967_079_900_634_496e-21],
            [-0.194_856_988_995_655_8, 1.355_753_249_388_521_8e-17],
            [0.038_104_624_317_630_176, -2.969_818_203_584_453_7e-18],
        ];
        assert_within_bound(&softmax(5, &[1.0, 8.0], 0.25), &reference);
    }

    /// The targets are xᵀθ* for a known θ*, exactly in doubles. The coefficients of the linear system, means over 30
    /// records, are rounded, and so its solution is not quite θ*.
    #[test]
    fn solutions_of_rounded_systems_are_bounded_without_a_penalty() {
        let known = [0.25, 3.0, -0.625];
        let problem = sample::least_squares(&rows(5, &[1.0, 8.0, 64.0]), &known);
        let apart = crate::kernel::difference(problem.optimum(), &known);
        let error = length(&apart);
        let bound = problem.optimum_error().unwrap();
        assert!(error > 0.0 && error <= bound && bound <= 3.0 * error, "{error} {bound}");
        assert!(problem.searched_optimum().is_none());
    }

    #[test]
    fn records_weigh_what_their_number_says() {
        // Each of 40 records of clients that weigh by their records.
        let weighted = sample::weighted_logistic();
        let bound = weighted.optimum_error().unwrap();
        assert!(bound > 0.0 && bound < 1e-15, "{bound}");
        for set in 0..4 {
            assert_eq!(record_weight(&weighted, set).times_double(40.0).plus(-1.0).hi, 0.0);
        }
    }

    #[test]
    fn no_bound_is_given_where_numbers_overflow() {
        assert!((length(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!(length(&[f64::NAN, 1.0]).is_nan() && length(&[f64::NAN]).is_nan());
        assert_eq!(length(&[f64::INFINITY]), f64::INFINITY);
        let one = logistic(3, &[1.0], 0.25);
        assert_eq!(
            optimum_error(&one, &[f64::NAN], Convexity::Everywhere(0.25), |_| None),
            f64::INFINITY
        );
        let far = optimum_error(&one, &[1e3], Convexity::Everywhere(0.25), |_| None);
        assert!((999.0..1e4).contains(&far), "{far}");
    }
}
