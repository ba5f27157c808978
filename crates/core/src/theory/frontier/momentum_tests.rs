//! Errors of server momentum, which oscillate.

use super::StartError;
use super::curve::ErrorCurve;
use crate::problem::Facts;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::spectrum::Spectrum;
use crate::program::{Level, Program, Round, mean, sum};
use crate::sample;
use crate::theory::program::Squares;

/// FedAvg with the momentum β of the server: v ← β v + θ̄ − θ, θ ← θ + v.
fn momentum(clients: usize, dimension: usize, steps: (u64, f64), beta: f64) -> Program {
    let (count, step) = steps;
    let round = |first: bool| {
        let after = usize::from(!first);
        let mean = mean(sum([(1 + after, 1.0)]));
        let (theta, velocity) = if first {
            (sum([(2, 1.0)]), sum([(0, -1.0), (2, 1.0)]))
        } else {
            (sum([(1, beta), (3, 1.0)]), sum([(0, -1.0), (1, beta), (3, 1.0)]))
        };
        Round {
            state: vec![Level::Server; 1 + after],
            cohort: None,
            masks: vec![],
            operations: vec![sample::steps(count, step), mean],
            next: vec![theta.clone(), velocity],
            result: theta,
            ends: None,
        }
    };
    let rounds = vec![round(true), round(false)];
    Program { clients, dimension, rounds, order: vec![0, 1], cycle: 1 }
}

/// Momentum that oscillates: the crossings are the last of the first 3000 rounds above the target,
/// also where the error was below it before.
#[test]
fn errors_that_oscillate_are_proven_to_stay_below() {
    let settings = quadratic::Settings {
        dimension: 3,
        spectrum: Spectrum { from: 0.2, to: 1.0 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.1,
        noise: 0.3,
        ..sample::quadratic(6)
    };
    let problem: Quadratic = sample::build(&settings, 3);
    let start = StartError::Point(problem.optimum().iter().map(|x| x + 1.0).collect());
    let squares = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003];
    let (mut proven, mut returned) = (0, 0);
    for (steps, beta) in [((1, 0.1), 0.9), ((8, 0.02), 0.9), ((1, 0.01), 0.95), ((4, 0.01), 0.0)] {
        let program = momentum(6, 3, steps, beta);
        program.check().unwrap();
        let found = Squares::new(&program, &problem, &start, None).unwrap();
        let mut curve = ErrorCurve::new(&found);
        let errors = curve.errors(3000);
        for square in squares {
            let wanted = errors.iter().rposition(|error| *error > square).map_or(0, |t| t + 1);
            let crossing = curve.proven(square).map(|crossing| crossing.rounds as usize);
            if wanted > errors.len() - 10 {
                assert_eq!(crossing, None, "{steps:?}, {beta}: {square}");
                continue;
            }
            assert_eq!(crossing, Some(wanted), "{steps:?}, {beta}: {square}");
            proven += 1;
            returned += usize::from(errors[..wanted].iter().any(|error| *error <= square));
        }
    }
    assert!(proven >= 12 && returned >= 3, "{proven} proven, {returned} after a return");
}
