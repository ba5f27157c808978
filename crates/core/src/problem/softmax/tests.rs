//! Softmax regression against differences, its own oracle and logistic regression.

use super::*;
use crate::kernel::exp::beyond_linear;
use crate::kernel::softmax::{ClassTables, divergence, softmax};
use crate::kernel::{difference, dot};
use crate::linalg::Matrix;
use crate::problem::logistic::{self, Logistic};
use crate::problem::{Facts, InstanceInputs, RecordsOf, check};
use crate::rng::Stream;
use crate::sample;

/// For each size the features and classes of a client's records: Gaussian features, of which the first decides the
/// class.
fn records(sizes: &[usize], d: usize, classes: usize) -> Vec<(Vec<f64>, Vec<u8>)> {
    let mut rng = Stream::shared_instance(11);
    let mut set = |n: usize| {
        let rows: Vec<f64> = (0..n * d).map(|_| rng.gaussian()).collect();
        let label = |row: &[f64]| (row[0].abs() * 1.5) as usize % classes;
        let labels = rows.chunks_exact(d).map(|row| label(row) as u8).collect();
        (rows, labels)
    };
    sizes.iter().map(|&n| set(n)).collect()
}

/// The instance on these records, each client's in a set.
fn on(records: &[ClassRecords], [d, classes, batch]: [usize; 3], l2: f64) -> Softmax {
    let tables = ClassTables::new(d, classes, l2, records);
    Softmax::new(SoftmaxLoss { classes, l2, batch }, tables, InstanceInputs::default()).unwrap()
}

fn instance(d: usize, classes: usize, batch: usize) -> Softmax {
    on(&records(&[20, 7, 31], d, classes), [d, classes, batch], 0.1)
}

#[test]
fn the_oracle_has_the_stated_mean_and_covariance() {
    for (d, classes, batch) in [(2, 3, 1), (3, 2, 3), (2, 5, 2)] {
        let problem = instance(d, classes, batch);
        check::roots(&problem, 1e-14);
        check::agree(&problem, 100_000);
    }
}

/// The mean over classes of each against all others, from probabilities and pairs; the recalls of three classes.
#[test]
fn auc_and_balanced_accuracy_are_means_over_classes() {
    let records = records(&[20, 20], 2, 3);
    let problem = on(&records, [2, 3, 1], 0.1);
    let theta = [0.5, 0.1, -0.6, 0.4, 0.2, -0.9];
    let mut scored: Vec<([f64; 3], u8)> = Vec::new();
    for (rows, labels) in &records {
        for (row, label) in rows.chunks_exact(2).zip(labels) {
            let exps = [0, 1, 2].map(|k| libm::exp(dot(&theta[2 * k..][..2], row)));
            scored.push((exps.map(|e| e / exps.iter().sum::<f64>()), *label));
        }
    }
    let mut auc = 0.0;
    let mut recall = 0.0;
    for class in 0..3_u8 {
        let k = usize::from(class);
        let own: Vec<&[f64; 3]> =
            scored.iter().filter(|(_, label)| *label == class).map(|(p, _)| p).collect();
        let others: Vec<&[f64; 3]> =
            scored.iter().filter(|(_, label)| *label != class).map(|(p, _)| p).collect();
        let higher: usize = own.iter().map(|p| others.iter().filter(|q| p[k] > q[k]).count()).sum();
        auc += higher as f64 / (own.len() * others.len()) as f64 / 3.0;
        let right = own.iter().filter(|p| p.iter().all(|other| *other <= p[k])).count();
        recall += right as f64 / own.len() as f64 / 3.0;
    }
    assert!((problem.auc(&theta, RecordsOf::Clients).unwrap() - auc).abs() < 1e-13, "{auc}");
    let have = problem.balanced_accuracy(&theta, RecordsOf::Clients).unwrap();
    assert!((have - recall).abs() < 1e-13, "{have} {recall}");
}

/// θ_1 = −θ_0 at the optimum, and with θ = θ_1 − θ_0 the loss of a record is log(1 + e^(−y xᵀθ))
/// and the penalty λ/2 (‖θ/2‖² + ‖θ/2‖²), that of logistic regression with λ/2.
#[test]
fn two_classes_are_logistic_regression_with_half_the_penalty() {
    let records = records(&[20, 7, 31], 3, 2);
    let problem = on(&records, [3, 2, 1], 0.2);
    let mut signed_rows: Vec<Vec<f64>> = Vec::new();
    for (rows, labels) in &records {
        let mut signed = Vec::new();
        for (row, label) in rows.chunks_exact(3).zip(labels) {
            let sign = if *label == 0 { -1.0 } else { 1.0 };
            signed.extend(row.iter().map(|x| sign * x));
        }
        signed_rows.push(signed);
    }
    let loss = logistic::Loss { l2: 0.1, margin: 0.0, batch: 1 };
    let tables = logistic::dense_tables(3, &loss, &signed_rows);
    let logistic = Logistic::new(loss, tables, InstanceInputs::default()).unwrap();
    let apart = |theta: &[f64]| difference(&theta[3..], &theta[..3]);
    assert!(sample::distance(&apart(problem.optimum()), logistic.optimum()) < 1e-13);
    let theta = [0.3, -0.5, 0.7, -0.3, 0.5, -0.7];
    let gap = problem.suboptimality(&theta).unwrap();
    let expected = logistic.suboptimality(&apart(&theta)).unwrap();
    assert!((gap / expected - 1.0).abs() < 1e-13, "{gap} {expected}");
    for client in 0..3 {
        let local = apart(problem.local_optimum(client).unwrap());
        let of_logistic = logistic.local_optimum(client).unwrap();
        assert!(sample::distance(&local, of_logistic) < 1e-13);
        let mut field = [0.0; 6];
        let mut expected = [0.0; 3];
        problem.mean_field(client, &theta, &mut field);
        logistic.mean_field(client, &apart(&theta), &mut expected);
        assert!(sample::distance(&field[3..], &expected) < 1e-14);
    }
}

#[test]
fn suboptimality_is_the_difference_of_losses_to_the_last_digits() {
    let problem = instance(3, 4, 1);
    let loss = |theta: &[f64]| {
        let mut sum = 0.05 * dot(theta, theta);
        for client in 0..3 {
            let rows = problem.records.rows(client);
            for (row, label) in rows.iter().zip(problem.records.labels(client)) {
                let mut p: Vec<f64> = theta.chunks_exact(3).map(|t| dot(t, row)).collect();
                softmax(&mut p);
                sum -= libm::log(p[usize::from(*label)]) / (3.0 * rows.len() as f64);
            }
        }
        sum
    };
    let shifted = |step: f64| -> Vec<f64> {
        let along = |(i, x): (usize, &f64)| x + step / (1.0 + i as f64);
        problem.optimum().iter().enumerate().map(along).collect()
    };
    for step in [0.7, 20.0, 3000.0] {
        let direct = loss(&shifted(step)) - loss(problem.optimum());
        let gap = problem.suboptimality(&shifted(step)).unwrap();
        // At 3000 probabilities underflow.
        assert!((gap / direct - 1.0).abs() < 1e-12 || step > 1e3, "{step}: {gap} {direct}");
        assert!(gap.is_finite());
    }
    // Close by it is half the square of the Hessian.
    let mut hessian = Matrix::zeros(12, 12);
    (0..3).for_each(|c| hessian.add(1.0 / 3.0, &problem.jacobian(c)));
    let apart = difference(&shifted(1e-8), problem.optimum());
    let quadratic = 0.5 * dot(&apart, &hessian.apply(&apart));
    let gap = problem.suboptimality(&shifted(1e-8)).unwrap();
    assert!((gap / quadratic - 1.0).abs() < 1e-7, "{gap} {quadratic}");
}

/// Two formulas meet at |x| = 0.5 in e^x − 1 − x, and two others where the largest change of a logit, less the mean
/// change, is 700 in the divergence: both sides agree there.
#[test]
fn the_divergence_has_no_seam() {
    for x in [0.5, -0.5] {
        let inside = beyond_linear(x * 0.999_999_999_9);
        let outside = beyond_linear(x * 1.000_000_000_1);
        assert!((inside / outside - 1.0).abs() < 1e-8, "{inside} {outside}");
    }
    let inside = divergence(&[0.25, 0.75], &mut [933.3, 0.0]);
    let outside = divergence(&[0.25, 0.75], &mut [933.4, 0.0]);
    assert!((outside - inside - 0.075).abs() < 1e-9, "{inside} {outside}");
}

/// Newton's method by conjugate gradients and by Cholesky's factorisation.
#[test]
fn many_unknowns_have_an_optimum_within_the_bound_on_its_error() {
    for (d, classes) in [(8, 5), (160, 10)] {
        let problem = on(&records(&[50, 80], d, classes), [d, classes, 1], 0.01);
        let error = problem.optimum_error().unwrap();
        assert!(error < 1e-11, "{error}");
        check::roots(&problem, 1e-13);
    }
}
