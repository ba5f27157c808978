//! Gradients on one draw at several points have the covariances of THEORY (2.3): algorithms with variance reduction,
//! written as programs, against runs of custom algorithms.

use crate::federated::{Conditions, RoundClients, StatedPrice};
use crate::kernel::axpy;
use crate::problem::{Facts, Problem, Reshuffled};
use crate::round_program::{Expression, Level, Operation, PerClient, Program, Round, mean, sum};
use crate::sample;
use crate::theory::exact::{MomentsError, ProgramMoments};

const STEP: f64 = 0.2;
const RUNS: u64 = 3000;
const ROUNDS: usize = 4;

/// Gradients at an atom on the draws with number 0; `calls` of them are averaged.
fn gradients(atom: usize, calls: u64) -> Operation {
    let at = sum([(atom, 1.0)]);
    Operation::Fields { at, calls: PerClient::All(calls), members: false, draws: Some(0) }
}

/// A program whose first round makes the state θ, w and v of the later ones, all of the server. Its estimate is θ.
fn program(
    problem: &dyn Facts,
    operations: [Vec<Operation>; 2],
    next: [[Expression; 3]; 2],
) -> Program {
    let [first, later] = operations;
    let [first_next, later_next] = next;
    let round = |state, operations, next: [Expression; 3]| Round {
        state,
        cohort: None,
        participation: Default::default(),
        masks: Vec::new(),
        operations,
        result: next[0].clone(),
        next: next.to_vec(),
        ends: None,
    };
    Program {
        clients: problem.clients(),
        dimension: problem.dim(),
        rounds: vec![
            round(vec![Level::Server], first, first_next),
            round(vec![Level::Server; 3], later, later_next),
        ],
        order: vec![0, 1],
        cycle: 1,
        start_weight: 1.0,
    }
}

/// STORM (Cutkosky and Orabona 2019) with the weight a of new gradients:
/// v_t = (1 − a) v_{t−1} + F(θ_t; Z_t) − (1 − a) F(θ_{t−1}; Z_t), and θ_{t+1} = θ_t − γ v_t.
fn storm_program(problem: &dyn Facts, a: f64) -> Program {
    // Atoms of the first round: θ, gradients, their mean.
    let first = vec![gradients(0, 2), mean(sum([(1, 1.0)]))];
    let first_next = [sum([(0, 1.0), (2, -STEP)]), sum([(0, 1.0)]), sum([(2, 1.0)])];
    // Atoms of later rounds: θ_t, θ_{t−1}, v_{t−1}, two gradients, their means.
    let later = vec![gradients(0, 2), gradients(1, 2), mean(sum([(3, 1.0), (4, a - 1.0)]))];
    let v = [(2, 1.0 - a), (5, 1.0)];
    let later_next = [sum([(0, 1.0), (2, -STEP * v[0].1), (5, -STEP)]), sum([(0, 1.0)]), sum(v)];
    program(problem, [first, later], [first_next, later_next])
}

/// A run of STORM: θ_1, θ_2, ….
fn storm_run<P: Problem>(
    problem: &P,
    clients: &mut RoundClients<'_>,
    start: &[f64],
    a: f64,
) -> Vec<Vec<f64>> {
    let d = problem.dim();
    let mut theta = start.to_vec();
    let mut previous = theta.clone();
    let mut v: Option<Vec<f64>> = None;
    let mut rows = vec![0.0; problem.clients() * d];
    let mut estimates = Vec::new();
    for _ in 0..ROUNDS {
        let draw = clients.draw(2);
        let mut new = vec![0.0; d];
        clients.fields_of_draw(&theta, &draw, &mut rows).unwrap();
        clients.mean(&rows, &mut new);
        if let Some(v) = &v {
            let mut old = vec![0.0; d];
            clients.fields_of_draw(&previous, &draw, &mut rows).unwrap();
            clients.mean(&rows, &mut old);
            axpy(1.0 - a, v, &mut new);
            axpy(a - 1.0, &old, &mut new);
        }
        previous.clone_from(&theta);
        axpy(-STEP, &new, &mut theta);
        v = Some(new);
        clients.end_round();
        estimates.push(theta.clone());
    }
    estimates
}

/// SVRG with an anchor w that stays at θ_0: θ_{t+1} = θ_t − γ (F(θ_t; Z_t) − F(w; Z_t) + F̄(w)).
fn svrg_program(problem: &dyn Facts) -> Program {
    // v is the mean field at the anchor.
    let first = vec![Operation::MeanFields { at: sum([(0, 1.0)]) }, mean(sum([(1, 1.0)]))];
    let first_next = [sum([(0, 1.0), (2, -STEP)]), sum([(0, 1.0)]), sum([(2, 1.0)])];
    let later = vec![gradients(0, 1), gradients(1, 1), mean(sum([(3, 1.0), (4, -1.0)]))];
    let later_next = [sum([(0, 1.0), (2, -STEP), (5, -STEP)]), sum([(1, 1.0)]), sum([(2, 1.0)])];
    program(problem, [first, later], [first_next, later_next])
}

/// A run of SVRG: θ_1, θ_2, …. The first round has the anchor itself, so that its two gradients cancel.
fn svrg_run<P: Problem>(
    problem: &P,
    clients: &mut RoundClients<'_>,
    start: &[f64],
) -> Vec<Vec<f64>> {
    let d = problem.dim();
    let mut theta = start.to_vec();
    let mut rows = vec![0.0; problem.clients() * d];
    let mut of_anchor = rows.clone();
    clients.mean_fields(start, &mut of_anchor);
    let mut estimates = Vec::new();
    for round in 0..ROUNDS {
        let mut new = vec![0.0; d];
        clients.mean(&of_anchor, &mut new);
        if round > 0 {
            let draw = clients.draw(1);
            for (point, sign) in [(&theta[..], 1.0), (start, -1.0)] {
                let mut part = vec![0.0; d];
                clients.fields_of_draw(point, &draw, &mut rows).unwrap();
                clients.mean(&rows, &mut part);
                axpy(sign, &part, &mut new);
            }
        }
        axpy(-STEP, &new, &mut theta);
        clients.end_round();
        estimates.push(theta.clone());
    }
    estimates
}

/// Compares the exact errors of a program with those of runs, and returns the exact ones.
fn assert_errors<P: Problem>(
    problem: &P,
    program: &Program,
    run: impl Fn(&mut RoundClients<'_>, &[f64]) -> Vec<Vec<f64>>,
    what: &str,
) -> Vec<f64> {
    program.check().unwrap();
    let start: Vec<f64> = problem.optimum().iter().map(|x| x + 0.2).collect();
    let exact = ProgramMoments::new(program, problem, None).unwrap();
    let rounds: Vec<u64> = (1..=ROUNDS as u64).collect();
    let moments = exact.at_rounds(&start, &rounds, None).unwrap();
    let mut errors = vec![Vec::new(); ROUNDS];
    let price = StatedPrice { communications: 1, vectors: 2, calls_per_step: 1 };
    for replicate in 0..RUNS {
        let from = Conditions { seed: 5, replicate, start: &start, rounds: ROUNDS as u64, copy: 0 };
        let mut clients = RoundClients::new(problem, &from, price);
        for (errors, theta) in errors.iter_mut().zip(run(&mut clients, &start)) {
            errors.push(crate::kernel::squared_distance(&theta, problem.optimum()));
        }
    }
    for (round, (errors, moments)) in errors.iter().zip(&moments).enumerate() {
        // The first round of SVRG has no noise, and rounding errors alone.
        if sample::standard_error(errors) < 1e-14 {
            assert!((errors[0] / moments.sq_error - 1.0).abs() < 1e-12, "{what}");
        } else {
            sample::assert_mean(errors, moments.sq_error, &format!("{what}, round {}", round + 1));
        }
    }
    moments.iter().map(|moments| moments.sq_error).collect()
}

/// Errors of STORM and SVRG are those of runs; with draws of their own for each point they would be others.
fn assert_variance_reduction<P: Problem>(problem: &P) {
    let a = 0.3;
    let storm = storm_program(problem, a);
    let run_storm =
        |clients: &mut RoundClients<'_>, start: &[f64]| storm_run(problem, clients, start, a);
    let svrg = svrg_program(problem);
    let run_svrg =
        |clients: &mut RoundClients<'_>, start: &[f64]| svrg_run(problem, clients, start);
    let shared = [
        assert_errors(problem, &storm, run_storm, "STORM"),
        assert_errors(problem, &svrg, run_svrg, "SVRG"),
    ];
    for (mut program, shared) in [storm, svrg].into_iter().zip(shared) {
        for operation in &mut program.rounds[1].operations {
            if let Operation::Fields { draws, .. } = operation {
                *draws = None;
            }
        }
        let start: Vec<f64> = problem.optimum().iter().map(|x| x + 0.2).collect();
        let exact = ProgramMoments::new(&program, problem, None).unwrap();
        let apart = exact.at_rounds(&start, &[2], None).unwrap()[0].sq_error;
        assert!(apart > 1.02 * shared[1], "{apart} {}", shared[1]);
    }
}

#[test]
fn gradients_on_one_draw_have_exact_errors() {
    assert_variance_reduction(&sample::noisy(3));
    assert_variance_reduction(&sample::weighted_ridge());
}

/// Passes over records have dependent draws, so that these moments do not close.
#[test]
fn gradients_on_dependent_draws_have_no_moments() {
    let problem = Reshuffled(sample::short_ridge(1));
    let refused = ProgramMoments::new(&storm_program(&problem, 0.3), &problem, None).err();
    assert_eq!(refused, Some(MomentsError::PartOfPass));
}
