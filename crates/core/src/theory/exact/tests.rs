//! Operations that no built-in algorithm has, where their moments are known by hand. The moments of
//! built-in algorithms are tested in `moments`, those of algorithms in Python against runs.
//!
//! The programs of [`program`] have four clients in one dimension. In their operations atom 0 is θ of the server, atom
//! 1 where the clients end after one local step of size [`STEP`], atom 2 the mean θ̄ of the ends, and atoms 3, 4, … are
//! the results of further operations. The next θ, which is also the estimate, is the last argument.

use super::*;
use crate::kernel::squared_distance;
use crate::linalg::Matrix;
use crate::problem::Facts;
use crate::rng::{Purpose, Stream};
use crate::round_program::{
    Coefficient, Each, Expression, Level, Mask, Operation, PerClient, Program, ProgramError, Round,
    mean, sum,
};
use crate::sample::{self, STEP, alternating, program};

const CURVATURE: f64 = 0.8;

/// The ratio of the mean square errors after rounds 2 and 1 of a program on [`quadratic`] clients, and the stationary
/// one; `None` if there is none.
fn ratio_and_rest(program: &Program) -> (f64, Option<f64>) {
    let facts = quadratic(program);
    program.check().unwrap();
    let exact = ProgramMoments::new(program, &facts, None).unwrap();
    let start = [facts.optimum()[0] + 1.0];
    let found = exact.at_rounds(&start, &[1, 2], None).unwrap();
    assert_eq!(squared_distance(&start, facts.optimum()), 1.0);
    let rest = Cycle::new(program, &facts, None).unwrap().stationary().ok();
    (found[1].sq_error / found[0].sq_error, rest.map(|(phases, _)| phases[0].sq_error))
}

/// With M a coin of probability p, θ + M(θ̄ − θ)/p has the mean square 1 + 2(f − 1) + (f − 1)²/p of
/// what it was, f = 1 − γa; where each client has its own coin the last term is over N clients.
#[test]
fn masks_multiply_what_they_hide() {
    let f = 1.0 - STEP * CURVATURE;
    let p = 0.3;
    let mask = |each, level| vec![Mask { probability: p, each, level }];
    for each in [Each::Row, Each::Entry] {
        let of = sum([(0, -1.0), (2, 1.0)]);
        let shared = Operation::Mask { of, mask: 0, level: Level::Server };
        let next = sum([(0, 1.0), (3, 1.0 / p)]);
        let server = program(mask(each, Level::Server), vec![shared], next);
        let wanted = 1.0 + 2.0 * (f - 1.0) + (f - 1.0).powi(2) / p;
        assert!((ratio_and_rest(&server).0 / wanted - 1.0).abs() < 1e-13);
        for (level, count) in [(Level::Clients, 4.0), (Level::Server, 1.0)] {
            let of = sum([(0, -1.0), (1, 1.0)]);
            let own = Operation::Mask { of, mask: 0, level: Level::Clients };
            let mean = mean(sum([(3, 1.0)]));
            let next = sum([(0, 1.0), (4, 1.0 / p)]);
            let rows = program(mask(each, level), vec![own, mean], next);
            let wanted = f * f + (1.0 / p - 1.0) * (f - 1.0).powi(2) / count;
            assert!((ratio_and_rest(&rows).0 / wanted - 1.0).abs() < 1e-13, "{each:?} {level:?}");
        }
    }
}

/// A matrix under which the entries of a vector count together.
const MIXING: [f64; 9] = [1.0, 0.5, -0.3, 0.2, 1.0, 2.0, 0.5, 0.1, 1.0];

/// The program whose next θ is θ + (3/k) M (b ∘ (θ̄ − θ)) in three dimensions, with M = [`MIXING`], where b has k of
/// the 3 entries; for clients it is the mean over clients with subsets of their own.
fn subset_program(size: usize, level: Level) -> Program {
    let mask = Mask { probability: size as f64 / 3.0, each: Each::Subset, level };
    let ends = if level == Level::Server { 2 } else { 1 };
    let of = sum([(0, -1.0), (ends, 1.0)]);
    let mut operations = vec![Operation::Mask { of, mask: 0, level }];
    if level == Level::Clients {
        operations.push(mean(sum([(3, 1.0)])));
    }
    let masked = 2 + operations.len();
    let of = sum([(masked, 1.0)]);
    let matrix = MIXING.to_vec();
    operations.push(Operation::Matrix { of, matrix, level: Level::Server });
    let next = sum([(0, 1.0), (masked + 1, 3.0 / size as f64)]);
    Program { dimension: 3, ..program(vec![mask], operations, next) }
}

/// A mask of fixed size has the mean square error of the mean over all subsets, of which there are three. Where each of
/// four clients has a subset of its own, the noise is a quarter of it.
#[test]
fn subsets_of_fixed_size_are_the_mean_over_all_subsets() {
    let of_size = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]],
        [[1.0; 3]; 3],
    ];
    let settings = sample::isotropic(4, 3, CURVATURE);
    let facts = sample::build::<crate::problem::quadratic::Settings>(&settings, 1);
    let error = [1.0, -2.0, 0.5];
    let start: Vec<f64> = facts.optimum().iter().zip(error).map(|(x, e)| x + e).collect();
    let matrix = Matrix::from_entries(3, 3, MIXING.to_vec());
    let change = error.map(|e| -STEP * CURVATURE * e);
    let after: Vec<f64> = matrix.apply(&change).iter().zip(error).map(|(x, e)| x + e).collect();
    for (size, subsets) in (1_u8..).zip(of_size) {
        let scale = 3.0 / f64::from(size);
        let mut variance = 0.0;
        for subset in subsets {
            let noise: Vec<f64> = (0..3).map(|i| (scale * subset[i] - 1.0) * change[i]).collect();
            variance += squared_distance(&matrix.apply(&noise), &[0.0; 3]) / 3.0;
        }
        for (level, count) in [(Level::Server, 1.0), (Level::Clients, 4.0)] {
            let program = subset_program(usize::from(size), level);
            program.check().unwrap();
            let exact = ProgramMoments::new(&program, &facts, None).unwrap();
            let found = exact.at_rounds(&start, &[1], None).unwrap()[0].sq_error;
            let wanted = squared_distance(&after, &[0.0; 3]) + variance / count;
            assert!((found / wanted - 1.0).abs() < 1e-12, "{size} {level:?}: {found}, {wanted}");
        }
    }
    let mut half = subset_program(1, Level::Server);
    half.rounds[0].masks[0].probability = 0.5;
    assert_eq!(half.check(), Err(ProgramError::MaskProbability), "no whole number of entries");
}

/// Noise of standard deviation s after each round leads to the square s²/(1 − f²), that of each of N
/// clients to an N-th of it.
#[test]
fn noise_adds_up_to_its_stationary_square() {
    let f = 1.0 - STEP * CURVATURE;
    let s = 0.5;
    let normal = |level| Operation::Normal { level };
    let next = sum([(2, 1.0), (3, s)]);
    let server = program(vec![], vec![normal(Level::Server)], next);
    let wanted = s * s / (1.0 - f * f);
    assert!((ratio_and_rest(&server).1.unwrap() / wanted - 1.0).abs() < 1e-13);
    let mean = mean(sum([(3, 1.0)]));
    let next = sum([(2, 1.0), (4, s)]);
    let rows = program(vec![], vec![normal(Level::Clients), mean], next);
    assert!((ratio_and_rest(&rows).1.unwrap() * 4.0 / wanted - 1.0).abs() < 1e-13);
}

/// One-dimensional clients without noise, F_k(θ) = a(θ − θ*) with a = [`CURVATURE`], as many as the program has.
fn quadratic(program: &Program) -> impl Facts {
    let settings = sample::isotropic(program.clients, 1, CURVATURE);
    sample::build::<crate::problem::quadratic::Settings>(&settings, 1)
}

/// Each phase of a period has the moments of late rounds, and a round of any phase their mean.
#[test]
fn phases_come_to_rest_each_at_its_own_moments() {
    let program = alternating();
    program.check().unwrap();
    let facts = quadratic(&program);
    let exact = ProgramMoments::new(&program, &facts, None).unwrap();
    let late = exact.at_rounds(&[3.0], &[400, 401], None).unwrap();
    let cycle = Cycle::new(&program, &facts, None).unwrap();
    let (phases, _) = cycle.stationary().unwrap();
    let near = |x: f64, y: f64| assert!((x / y - 1.0).abs() < 1e-12, "{x} {y}");
    assert_eq!((phases.len(), [400, 401].map(|t| program.phase(t))), (2, [0, 1]));
    for ((phase, late), bias) in phases.iter().zip(&late).zip(cycle.biases().unwrap()) {
        near(phase.sq_error, late.sq_error);
        near(phase.mean[0], late.mean[0]);
        near(phase.covariance[(0, 0)], late.covariance[(0, 0)]);
        assert_eq!(bias, phase.mean);
    }
    assert!(phases[0].sq_error > 2.0 * phases[1].sq_error, "{phases:?}");
    let any = Moments::mixture(&phases, &[0.5, 0.5]);
    near(any.sq_error, (late[0].sq_error + late[1].sq_error) / 2.0);
    near(any.mean[0], (late[0].mean[0] + late[1].mean[0]) / 2.0);
    near(any.covariance[(0, 0)], any.sq_error - any.mean[0] * any.mean[0]);
}

/// Runs of the same rounds have these errors.
#[test]
fn runs_have_the_errors_of_their_phases() {
    let program = alternating();
    let facts = quadratic(&program);
    let (phases, _) = Cycle::new(&program, &facts, None).unwrap().stationary().unwrap();
    let f = 1.0 - STEP * CURVATURE;
    let optimum = facts.optimum()[0];
    let runs = 20_000;
    let mut stream = Stream::new(1, Purpose::Client, 0, 0, 0);
    let mut errors = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        let mut theta = optimum;
        for round in 1..=41 {
            let mean = optimum + f * (theta - optimum);
            let phase = program.phase(round);
            theta = if phase == 0 { mean + 0.5 * stream.gaussian() } else { 0.1 * mean + 0.6 };
            if round >= 40 {
                errors[phase].push((theta - optimum) * (theta - optimum));
            }
        }
    }
    for (number, (phase, errors)) in phases.iter().zip(&errors).enumerate() {
        sample::assert_mean(errors, phase.sq_error, &format!("phase {number}"));
    }
}

/// Two draws that are combined in both orders, and draws that are shared by what reads each other, are refused: their
/// noises are correlated in a way that moments do not follow.
#[test]
fn draws_that_are_combined_in_both_orders_are_refused() {
    let clients = Level::Clients;
    let coin = Mask { probability: 0.5, each: Each::Row, level: Level::Server };
    let masked = |atom| Operation::Mask { of: sum([(atom, 1.0)]), mask: 0, level: clients };
    let of_part = |atom| Operation::Select { member: sum([(atom, 1.0)]), other: sum([]) };
    let gradients = |atom, draws| Operation::Fields {
        at: sum([(atom, 1.0)]),
        calls: PerClient::All(1),
        members: false,
        draws: Some(draws),
    };
    let checked = |operations: Vec<Operation>| {
        let mut program = program(vec![], operations, sum([(0, 1.0)]));
        program.rounds[0].cohort = Some(2);
        program.rounds[0].masks = vec![coin.clone()];
        program.check()
    };
    // Atoms 3 and later are those of these operations.
    checked(vec![of_part(1), masked(3)]).unwrap();
    checked(vec![masked(1), of_part(3)]).unwrap();
    checked(vec![of_part(1), of_part(3)]).unwrap();
    checked(vec![gradients(1, 0), gradients(1, 0), gradients(3, 1)]).unwrap();
    for operations in [
        vec![of_part(1), masked(3), masked(1), of_part(5)],
        vec![masked(1), masked(3)],
        vec![gradients(1, 0), gradients(3, 0)],
        vec![of_part(1), gradients(3, 0)],
    ] {
        let refused = checked(operations).unwrap_err();
        assert!(matches!(refused, ProgramError::CombinedDraws { .. }), "{refused}");
    }
}

/// What never changes is found, and has no stationary distribution if noise is added to it.
#[test]
fn a_walk_does_not_come_to_rest() {
    let normal = Operation::Normal { level: Level::Server };
    let walk = program(vec![], vec![normal], sum([(0, 1.0), (3, 1.0)]));
    assert_eq!(ratio_and_rest(&walk).1, None);
}

/// Gradient descent with a counter, s ← s + 0.01, which is 0 in the first round. The estimate after a round is
/// θ + `read` · s.
fn with_counter(read: f64) -> Program {
    let plain = program(vec![], vec![], sum([(2, 1.0)]));
    let step = || Expression { constant: Coefficient::Number(0.01), ..sum([]) };
    let alone = plain.rounds[0].clone();
    let first = Round { next: vec![alone.next[0].clone(), step()], ..alone };
    let later = Round {
        state: vec![Level::Server, Level::Server],
        operations: vec![sample::steps(1, STEP), mean(sum([(2, 1.0)]))],
        next: vec![sum([(3, 1.0)]), Expression { terms: sum([(1, 1.0)]).terms, ..step() }],
        result: sum([(1, read), (3, 1.0)]),
        ..first.clone()
    };
    Program { rounds: vec![first, later], order: vec![0, 1], cycle: 1, ..plain }
}

/// A counter that estimates read moves them for ever. One that nothing reads changes nothing.
#[test]
fn a_counter_does_not_come_to_rest_where_it_is_read() {
    let f = 1.0 - STEP * CURVATURE;
    for read in [1.0, 0.0] {
        let program = with_counter(read);
        let (errors, radii, rest) = of_trivial(&program);
        let wanted = |rounds: i32| (f.powi(rounds) + 0.01 * read * f64::from(rounds - 1)).powi(2);
        for (error, rounds) in errors.iter().zip([1, 5]) {
            assert!((error / wanted(rounds) - 1.0).abs() < 1e-12, "{read}: {error}");
        }
        let facts = quadratic(&program);
        let start = StartError::Point(vec![facts.optimum()[0] + 1.0]);
        let squares = Squares::new(&program, &facts, &start, None);
        if read == 0.0 {
            assert!(
                (radii.mean / f - 1.0).abs() < 1e-7 && (radii.square / f / f - 1.0).abs() < 1e-7
            );
            assert!(rest.unwrap().abs() < 1e-20);
            let errors = squares.unwrap().errors(5);
            assert!((errors[5] / wanted(5) - 1.0).abs() < 1e-12);
        } else {
            assert_eq!(radii, SpectralRadii { mean: 1.0, square: 1.0 });
            assert_eq!(rest, Err(MomentsError::UnstableSum(KeptSum::Constant)));
            assert_eq!(squares.err(), Some(MomentsError::Sum(KeptSum::Constant)));
        }
    }
}

/// The mean square errors after 1 and 5 rounds of a program from a distance of 1 on [`quadratic`] clients, the spectral
/// radii, and the stationary mean square error or why there is none.
fn of_trivial(program: &Program) -> (Vec<f64>, SpectralRadii, Result<f64, MomentsError>) {
    program.check().unwrap();
    let facts = quadratic(program);
    let exact = ProgramMoments::new(program, &facts, None).unwrap();
    let start = [facts.optimum()[0] + 1.0];
    let found = exact.at_rounds(&start, &[1, 5], None).unwrap();
    let cycle = Cycle::new(program, &facts, None).unwrap();
    let rest = cycle.stationary().map(|(phases, _)| phases[0].sq_error);
    assert_eq!(rest.is_ok(), cycle.biases().is_ok());
    (found.iter().map(|m| m.sq_error).collect(), cycle.radii().unwrap(), rest)
}

/// Rounds that keep θ_0, that give a constant, and that give noise alone have moments as all others.
#[test]
fn trivial_rounds_have_their_moments() {
    let radii = |x: f64| SpectralRadii { mean: x, square: x };
    let stay = of_trivial(&program(vec![], vec![], sum([(0, 1.0)])));
    assert_eq!((stay.0, stay.1), (vec![1.0, 1.0], radii(1.0)));
    assert!(stay.2.is_err(), "where it stays depends on the start");
    let mut constant = sum([]);
    constant.constant = Coefficient::Number(0.25);
    let star = quadratic(&program(vec![], vec![], sum([]))).optimum()[0];
    let apart = (0.25 - star) * (0.25 - star);
    let near = |x: f64, y: f64| assert!((x / y - 1.0).abs() < 1e-13, "{x} {y}");
    let shrunk = Expression { terms: sum([(2, 0.0)]).terms, ..constant.clone() };
    for next in [constant, shrunk] {
        let found = of_trivial(&program(vec![], vec![], next));
        found.0.iter().for_each(|x| near(*x, apart));
        near(found.2.unwrap(), apart);
        assert_eq!(found.1, radii(0.0));
    }
    let normal = Operation::Normal { level: Level::Server };
    let memoryless = of_trivial(&program(vec![], vec![normal], sum([(3, 0.5)])));
    memoryless.0.iter().for_each(|x| near(*x, 0.25 + star * star));
    near(memoryless.2.unwrap(), 0.25 + star * star);
    assert_eq!(memoryless.1, radii(0.0));
}

/// Rounds that read nothing of the rounds before have no state, and second moments at rest.
#[test]
fn rounds_without_a_state_have_stationary_moments() {
    let mut program = program(vec![], vec![], sum([]));
    let round = &mut program.rounds[0];
    round.operations = vec![Operation::Normal { level: Level::Server }];
    round.state.clear();
    round.next.clear();
    round.result = sum([(0, 0.5)]);
    program.check().unwrap();
    let facts = quadratic(&program);
    let star = facts.optimum()[0];
    let cycle = Cycle::new(&program, &facts, None).unwrap();
    let (phases, blocks) = cycle.stationary().unwrap();
    assert!((phases[0].sq_error - (0.25 + star * star)).abs() < 1e-14);
    assert!((blocks.theta[(0, 0)] - (0.25 + star * star)).abs() < 1e-14);
}
