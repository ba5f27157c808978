//! Logistic regression against differences and its own oracle.

use super::*;
use crate::problem::Settings as _;
use crate::problem::arrays::NoFiles;

fn settings(data: Data) -> Settings {
    Settings {
        dimension: 3,
        records: 50,
        clients: 5,
        data,
        split: SharedRecords::Own,
        l2: 0.1,
        margin: 1.0,
        batch: 2,
    }
}

const MIXED: Data = Data::Heterogeneous { spread: 1.0, separation: 1.0, perturbation: 0.5 };

#[test]
fn optima_are_roots_to_rounding() {
    let problem = settings(MIXED).build(1, &NoFiles).unwrap();
    let mut mean = vec![0.0; 3];
    let mut field = vec![0.0; 3];
    for c in 0..5 {
        problem.mean_field(c, problem.local_optimum(c), &mut field);
        assert!(field.iter().all(|g| g.abs() < 1e-15), "client {c}: {field:?}");
        problem.mean_field(c, problem.optimum(), &mut field);
        axpy(0.2, &field, &mut mean);
    }
    assert!(mean.iter().all(|g| g.abs() < 1e-15), "{mean:?}");
}

#[test]
fn jacobian_is_the_derivative_of_the_mean_field() {
    let problem = settings(MIXED).build(2, &NoFiles).unwrap();
    let h = 1e-5;
    for c in 0..2 {
        let jacobian = problem.jacobian(c);
        for j in 0..3 {
            let (mut up, mut down) = (vec![0.0; 3], vec![0.0; 3]);
            let mut theta = problem.optimum().to_vec();
            theta[j] += h;
            problem.mean_field(c, &theta, &mut up);
            theta[j] -= 2.0 * h;
            problem.mean_field(c, &theta, &mut down);
            for i in 0..3 {
                let slope = (up[i] - down[i]) / (2.0 * h);
                assert!((slope - jacobian[(i, j)]).abs() < 1e-9);
            }
        }
    }
}

#[test]
fn the_oracle_has_the_stated_mean_and_covariance() {
    let problem = settings(MIXED).build(3, &NoFiles).unwrap();
    crate::problem::check::agree(&problem, 200_000);
}

#[test]
fn one_law_means_one_optimum_and_the_first_clients_stay() {
    let noisy = Data::Noisy { spread: 2.0, separation: 1.0 };
    let same =
        Settings { split: SharedRecords::Same, ..settings(noisy) }.build(4, &NoFiles).unwrap();
    assert_eq!(same.local_optimum(0), same.local_optimum(4));
    assert_eq!(same.optimum(), same.local_optimum(2));
    let few = settings(MIXED).build(4, &NoFiles).unwrap();
    let many = Settings { clients: 9, ..settings(MIXED) }.build(4, &NoFiles).unwrap();
    assert_eq!(few.local_optimum(3), many.local_optimum(3));
}

#[test]
fn suboptimality_is_the_difference_of_losses_to_the_last_digits() {
    let problem = settings(MIXED).build(6, &NoFiles).unwrap();
    let loss = |theta: &[f64]| {
        let mut sum = 0.05 * dot(theta, theta);
        for (set, share) in problem.shares() {
            let rows = problem.rows(set);
            let n = rows.len() as f64;
            rows.for_each(|row| sum += share / n * libm::log1p(libm::exp(1.0 - dot(row, theta))));
        }
        sum
    };
    let shifted = |step: f64| -> Vec<f64> { problem.optimum().iter().map(|x| x + step).collect() };
    let direct = loss(&shifted(0.7)) - loss(problem.optimum());
    assert!((problem.suboptimality(&shifted(0.7)).unwrap() / direct - 1.0).abs() < 1e-12);
    // Close by it is half the square of the Hessian.
    let mut hessian = Matrix::zeros(3, 3);
    (0..5).for_each(|c| hessian = hessian.plus(0.2, &problem.jacobian(c)));
    let quadratic = 0.5e-16 * dot(&[1.0; 3], &hessian.apply(&[1.0; 3]));
    let gap = problem.suboptimality(&shifted(1e-8)).unwrap();
    assert!((gap / quadratic - 1.0).abs() < 1e-6, "{gap} {quadratic}");
}

#[test]
fn the_divergence_has_no_seam() {
    for v in [-3.0, 0.1, 4.0] {
        let (inside, outside) = (divergence(v + 0.0099999999, v), divergence(v + 0.0100000001, v));
        assert!((inside / outside - 1.0).abs() < 1e-7, "{inside} {outside}");
    }
}
