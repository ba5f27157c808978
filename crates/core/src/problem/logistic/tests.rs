//! Logistic regression against differences and its own oracle.

use super::loss::divergence;
use super::*;
use crate::kernel::testing::assert_paths;
use crate::kernel::{Cohort, dot};
use crate::linalg::Matrix;
use crate::problem::oracle::advance_by_oracle;
use crate::problem::{Facts, Twin, check};
use crate::sample;

fn settings(data: Data) -> Settings {
    Settings { clients: 5, data, l2: 0.1.into(), margin: 1.0, batch: 2, ..sample::blobs() }
}

const MIXED: Data = Data::Heterogeneous { spread: 1.0, separation: 1.0, perturbation: 0.5 };

#[test]
fn the_oracle_has_the_stated_mean_and_covariance() {
    let problem = sample::build(&settings(MIXED), 3);
    check::roots(&problem, 2e-15);
    check::agree(&problem, 200_000);
}

#[test]
fn one_distribution_means_one_optimum_and_the_first_clients_stay() {
    let noisy = Data::Noisy { spread: 2.0, separation: 1.0 };
    let same = Settings { split: SharedRecords::Same, ..settings(noisy) };
    let same = sample::build(&same, 4);
    assert_eq!(same.local_optimum(0), same.local_optimum(4));
    assert_eq!(Some(same.optimum()), same.local_optimum(2));
    let few = sample::build(&settings(MIXED), 4);
    let many = sample::build(&Settings { clients: 9, ..settings(MIXED) }, 4);
    assert_eq!(few.local_optimum(3), many.local_optimum(3));
}

#[test]
fn suboptimality_is_the_difference_of_losses_to_the_last_digits() {
    let problem = sample::build(&settings(MIXED), 6);
    let loss = |theta: &[f64]| {
        let mut sum = 0.05 * dot(theta, theta);
        for (set, share) in problem.shares() {
            let rows = problem.records.rows(set).iter();
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

/// Close to its second argument the divergence is computed by a series, which ends at a distance of 0.01.
#[test]
fn the_divergence_has_no_seam() {
    for v in [-3.0, 0.1, 4.0] {
        let inside = divergence(v + 0.0099999999, v);
        let outside = divergence(v + 0.0100000001, v);
        assert!((inside / outside - 1.0).abs() < 1e-7, "{inside} {outside}");
    }
}

/// On each instruction set (a path), fused steps of the field linearised at θ* have the bits of the loop over the
/// oracle of the twin.
#[test]
fn steps_of_the_twin_are_those_of_its_oracle_on_every_path() {
    for d in [2, 3, 5, 9, 17, 40, 130] {
        let settings = Settings { dimension: d, batch: 1, ..settings(MIXED) };
        let problem = sample::build(&settings, 3);
        let twin = Twin::new(sample::build(&settings, 3));
        for (clients, steps) in [(1, 0), (1, 33), (4, 10), (7, 200), (13, 64)] {
            assert_paths(
                "twin",
                [1, d, clients],
                |_| steps,
                |all: Cohort<'_, ()>| advance_by_oracle(&twin, all),
                |path, all| {
                    assert!(problem.advance_linearised_on(path, all).is_none());
                },
            );
        }
    }
}
