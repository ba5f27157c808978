//! Optima without a penalty: of logistic regression, of softmax regression and of least squares.

use super::*;
use crate::kernel::softmax::ClassTables;
use crate::kernel::{difference, dot, squared_distance};
use crate::problem::logistic::{self, Logistic, dense_tables};
use crate::problem::softmax::{Softmax, SoftmaxLoss};
use crate::problem::{Facts, InstanceInputs, check};
use crate::rng::Stream;
use crate::sample;

/// The rows x of some clients, as many for each as `counts` says, and a label for each row, 1 or −1, which the first
/// feature suggests; `noise` is how much else decides it.
fn signed(counts: &[usize], d: usize, noise: f64) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut rng = Stream::shared_instance(17);
    let mut clients: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for count in counts {
        let rows: Vec<f64> = (0..count * d).map(|_| rng.gaussian()).collect();
        let sign = |row: &[f64], rng: &mut Stream| (row[0] + noise * rng.gaussian()).signum();
        let labels = rows.chunks_exact(d).map(|row| sign(row, &mut rng)).collect();
        clients.push((rows, labels));
    }
    clients
}

/// Logistic regression on such rows.
fn regression(d: usize, clients: &[(Vec<f64>, Vec<f64>)]) -> Result<Logistic, String> {
    let loss = logistic::Loss { l2: 0.0, margin: 0.0, batch: 1 };
    let mut signed_rows: Vec<Vec<f64>> = Vec::new();
    for (rows, labels) in clients {
        let pairs = rows.chunks_exact(d).zip(labels);
        signed_rows.push(pairs.flat_map(|(row, y)| row.iter().map(move |x| y * x)).collect());
    }
    let tables = dense_tables(d, &loss, &signed_rows);
    Logistic::new(loss, tables, InstanceInputs::default()).map_err(|fault| fault.message)
}

/// Softmax regression with two classes on such rows.
fn classes(d: usize, clients: &[(Vec<f64>, Vec<f64>)]) -> Softmax {
    let mut stored: Vec<(Vec<f64>, Vec<u8>)> = Vec::new();
    for (rows, labels) in clients {
        let labels = labels.iter().map(|label| u8::from(*label > 0.0)).collect();
        stored.push((rows.clone(), labels));
    }
    let tables = ClassTables::new(d, 2, 0.0, &stored);
    let loss = SoftmaxLoss { classes: 2, l2: 0.0, batch: 1 };
    Softmax::new(loss, tables, InstanceInputs::default()).unwrap()
}

/// A θ* that exists is found with a bound of the size of rounding, also where a client alone has none because its records
/// are fewer than the features.
#[test]
fn the_mean_of_clients_without_an_optimum_has_one() {
    let clients = signed(&[3, 40, 30], 4, 1.0);
    let problem = regression(4, &clients).unwrap();
    assert_eq!(problem.optimum_set(), None);
    let error = problem.optimum_error().unwrap();
    assert!(error < 1e-13, "{error}");
    assert_eq!(problem.local_optimum(0), None);
    assert!(problem.local_optimum(1).is_some() && problem.local_optimum(2).is_some());
    check::agree(&problem, 100_000);
    // A known optimum is taken without a search.
    let known = problem.optimum.clone();
    let again = search(&problem, Some(&known)).unwrap();
    assert_eq!(again.optimum, known);
    let far = Minimiser { theta: vec![0.5; 4], ..known.clone() };
    assert_eq!(search(&problem, Some(&far)).unwrap().optimum.theta, known.theta);
}

/// A feature that is a combination of others changes no product with a record: the minimisers are a line, and the
/// products with the shortest of them are those of the regression without this feature.
#[test]
fn dependent_features_leave_a_line_of_minimisers() {
    let clients = signed(&[25, 35], 3, 1.0);
    let three = regression(3, &clients).unwrap();
    let mut wider: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for (rows, labels) in &clients {
        let extend = |row: &[f64]| [row[0], row[1], row[2], row[0] - 2.0 * row[1]];
        wider.push((rows.chunks_exact(3).flat_map(extend).collect(), labels.clone()));
    }
    let problem = regression(4, &wider).unwrap();
    assert_eq!(problem.optimum_set().unwrap().dimension(), 1);
    let star = problem.optimum();
    let flat = [1.0, -2.0, 0.0, -1.0];
    assert!(dot(star, &flat).abs() < 1e-12, "it is the shortest");
    let same = [star[0] + star[3], star[1] - 2.0 * star[3], star[2]];
    assert!(squared_distance(&same, three.optimum()) < 1e-24, "{same:?}");
    assert!(problem.optimum_error().unwrap() < 1e-13);
    let along: Vec<f64> = star.iter().zip(flat).map(|(x, y)| x + 7.0 * y).collect();
    assert!(problem.sq_distance_to_optimum(&along) < 1e-24);
    assert!(problem.suboptimality(&along).unwrap() < 1e-24);
    check::agree(&problem, 100_000);
}

#[test]
fn separated_classes_have_no_optimum_and_are_named() {
    let message = regression(3, &signed(&[12, 20], 3, 0.0)).err().unwrap();
    assert!(message.contains("θ* does not exist without a penalty: the classes"), "{message}");
    // The classes of the second client's records alone are separated.
    let mut clients = signed(&[40], 3, 1.0);
    clients.extend(signed(&[20], 3, 0.0));
    let problem = regression(3, &clients).unwrap();
    assert!(problem.local_optimum(0).is_some());
    assert_eq!(problem.local_optimum(1), None);
    // One record of the other class on the hyperplane that separates all others: the loss falls for ever, and only
    // nearly all records show it.
    let rows = vec![1.0, 0.0, 2.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    let labels = vec![1.0, 1.0, -1.0, 1.0, -1.0];
    let message = regression(2, &[(rows, labels)]).err().unwrap();
    assert!(message.contains("θ* may not exist without a penalty"), "{message}");
}

/// Only the difference of the weights of two classes matters: it is θ* of logistic regression.
#[test]
fn classes_may_change_together() {
    let clients = signed(&[25, 35], 3, 1.0);
    let problem = classes(3, &clients);
    assert_eq!(problem.optimum_set().unwrap().dimension(), 3);
    let star = problem.optimum();
    let apart = difference(&star[3..], &star[..3]);
    let logistic = regression(3, &clients).unwrap();
    assert!(squared_distance(&apart, logistic.optimum()) < 1e-22);
    let moved: Vec<f64> = (0..6).map(|i| star[i] + [4.0, -1.0, 2.5][i % 3]).collect();
    assert!(problem.sq_distance_to_optimum(&moved) < 1e-22);
    assert!(problem.optimum_error().unwrap() < 1e-11);
    assert_eq!(problem.local_optimum(1), None);
    check::agree(&problem, 100_000);
}

/// More unknowns than are factored in a search, so that conjugate gradients take its steps.
#[test]
fn many_classes_have_a_set_of_optima() {
    let mut rng = Stream::shared_instance(3);
    let rows: Vec<f64> = (0..500 * 12).map(|_| rng.gaussian()).collect();
    let labels: Vec<u8> = (0..500).map(|_| rng.index(10) as u8).collect();
    let tables = ClassTables::new(12, 10, 0.0, &[(rows, labels)]);
    let loss = SoftmaxLoss { classes: 10, l2: 0.0, batch: 1 };
    let problem = Softmax::new(loss, tables, InstanceInputs::default()).unwrap();
    assert_eq!(problem.optimum_set().unwrap().dimension(), 12);
    assert!(problem.optimum_error().unwrap() < 1e-9, "{:?}", problem.optimum_error());
    check::roots(&problem, 1e-12);
}

/// Clients with fewer records than features, which are as many together: the mean is regular, each client has its field
/// from its records, and the exact oracle, the Jacobians and the noise agree with it.
#[test]
fn least_squares_of_few_records_at_each_client() {
    let problem = sample::unpenalised_ridge(&[3, 9, 1], 4);
    assert_eq!(problem.optimum_set(), None);
    assert_eq!([0, 1, 2].map(|c| problem.local_optimum(c).is_some()), [false, true, false]);
    check::agree(&problem, 100_000);
    let theta = [0.3, -1.0, 2.0, 0.5];
    let gap = problem.suboptimality(&theta).unwrap();
    let at = |theta: &[f64]| problem.loss(theta, crate::problem::RecordsOf::Clients).unwrap();
    assert!((gap - (at(&theta) - at(problem.optimum()))).abs() < 1e-12, "{gap}");
}

/// All records together are fewer than the features, or dependent: the minimisers are a space, and the shortest of them
/// interpolates the records, or is the solution of the normal equations.
#[test]
fn least_squares_of_few_records_have_a_space_of_optima() {
    let problem = sample::unpenalised_ridge(&[3, 1, 3], 9);
    assert_eq!(problem.optimum_set().unwrap().dimension(), 2);
    let star = problem.optimum();
    let loss = problem.loss(star, crate::problem::RecordsOf::Clients).unwrap();
    assert!(loss < 1e-29, "{loss}");
    assert!(problem.optimum_error().unwrap() < 1e-14, "{:?}", problem.optimum_error());
    let mut theta = vec![0.5; 9];
    theta[2] = -1.0;
    let set = problem.optimum_set().unwrap();
    let left = difference(&theta, &set.project(&difference(&theta, star)));
    assert!(problem.suboptimality(&left).unwrap() < 1e-28);
    let gap = problem.suboptimality(&theta).unwrap();
    let of_losses = problem.loss(&theta, crate::problem::RecordsOf::Clients).unwrap();
    assert!((gap / of_losses - 1.0).abs() < 1e-12, "{gap} {of_losses}");
    check::agree(&problem, 100_000);
    // Twice the records of one client: more records than features, of rank 5.
    let doubled = sample::repeated_ridge(5, 8, 3);
    assert_eq!(doubled.optimum_set().unwrap().dimension(), 3);
    check::agree(&doubled, 100_000);
}
