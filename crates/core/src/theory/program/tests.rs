//! Operations that no built-in algorithm has, where their moments are known by hand. The moments of
//! built-in algorithms are tested in `theory::moments`, those of algorithms in Python against runs.

use super::*;
use crate::kernel::squared_distance;
use crate::problem::Facts;
use crate::program::{
    Coefficient, Each, Expression, Level, Mask, Operation, PerClient, Program, Round, Shares,
    Weights,
};
use crate::sample;

fn sum<const K: usize>(terms: [(usize, f64); K]) -> Expression {
    let terms = terms.map(|(atom, x)| (atom, Coefficient::Number(x))).to_vec();
    Expression { terms, constant: Coefficient::Number(0.0) }
}

const STEP: f64 = 0.2;
const CURVATURE: f64 = 0.8;

/// θ of the server and N ends after a step, and what follows: a program that repeats.
fn program(clients: usize, masks: Vec<Mask>, more: Vec<Operation>, next: Expression) -> Program {
    let steps = Operation::Steps {
        start: sum([(0, 1.0)]),
        correction: None,
        anchor: None,
        step: PerClient::All(STEP),
        count: PerClient::All(1),
        batch: PerClient::All(1),
        proximal: 0.0,
        members: false,
        draws: None,
        coin: None,
    };
    let mean = Operation::Sum { rows: sum([(1, 1.0)]), weights: Weights::Shares(Shares::Shares) };
    let mut operations = vec![steps, mean];
    operations.extend(more);
    let (state, cohort, ends) = (vec![Level::Server], None, None);
    let result = next.clone();
    let round = Round { state, cohort, masks, operations, next: vec![next], result, ends };
    Program { clients, dimension: 1, rounds: vec![round], order: vec![0], cycle: 1 }
}

/// The ratio of mean squares of two successive rounds, and the square to which they lead, on N
/// equal clients with F_k(θ) = a(θ − θ*) and no noise.
fn ratio_and_rest(program: &Program) -> (f64, Option<f64>) {
    let facts = sample::build::<crate::problem::quadratic::Settings>(
        &sample::isotropic(program.clients, 1, CURVATURE),
        1,
    );
    program.check().unwrap();
    let exact = ProgramMoments::new(program, &facts).unwrap();
    let start = [facts.optimum()[0] + 1.0];
    let found = exact.at_rounds(&start, &[1, 2], None).unwrap();
    assert_eq!(squared_distance(&start, facts.optimum()), 1.0);
    let rest = Cycle::new(program, &facts).unwrap().stationary().ok();
    (found[1].sq_error / found[0].sq_error, rest.map(|(moments, _)| moments.sq_error))
}

/// With M a coin of probability p, θ + M(θ̄ − θ)/p has the mean square 1 + 2(f − 1) + (f − 1)²/p of
/// what it was, f = 1 − γa; where each client has its own coin the last term is over N clients.
#[test]
fn masks_multiply_what_they_hide() {
    let (f, p) = (1.0 - STEP * CURVATURE, 0.3);
    let mask = |each, level| vec![Mask { probability: p, each, level }];
    for each in [Each::Row, Each::Entry] {
        let of = sum([(0, -1.0), (2, 1.0)]);
        let shared = Operation::Mask { of, mask: 0, level: Level::Server };
        let next = sum([(0, 1.0), (3, 1.0 / p)]);
        let server = program(4, mask(each, Level::Server), vec![shared], next);
        let wanted = 1.0 + 2.0 * (f - 1.0) + (f - 1.0).powi(2) / p;
        assert!((ratio_and_rest(&server).0 / wanted - 1.0).abs() < 1e-13);
        for (level, count) in [(Level::Clients, 4.0), (Level::Server, 1.0)] {
            let of = sum([(0, -1.0), (1, 1.0)]);
            let own = Operation::Mask { of, mask: 0, level: Level::Clients };
            let weights = Weights::Shares(Shares::Shares);
            let mean = Operation::Sum { rows: sum([(3, 1.0)]), weights };
            let next = sum([(0, 1.0), (4, 1.0 / p)]);
            let rows = program(4, mask(each, level), vec![own, mean], next);
            let wanted = f * f + (1.0 / p - 1.0) * (f - 1.0).powi(2) / count;
            assert!((ratio_and_rest(&rows).0 / wanted - 1.0).abs() < 1e-13, "{each:?} {level:?}");
        }
    }
}

/// Noise of standard deviation s after each round leads to the square s²/(1 − f²), that of each of N
/// clients to an N-th of it.
#[test]
fn noise_adds_up_to_its_stationary_square() {
    let (f, s) = (1.0 - STEP * CURVATURE, 0.5);
    let normal = |level| Operation::Normal { level };
    let next = sum([(2, 1.0), (3, s)]);
    let server = program(4, vec![], vec![normal(Level::Server)], next);
    let wanted = s * s / (1.0 - f * f);
    assert!((ratio_and_rest(&server).1.unwrap() / wanted - 1.0).abs() < 1e-13);
    let weights = Weights::Shares(Shares::Shares);
    let mean = Operation::Sum { rows: sum([(3, 1.0)]), weights };
    let next = sum([(2, 1.0), (4, s)]);
    let rows = program(4, vec![], vec![normal(Level::Clients), mean], next);
    assert!((ratio_and_rest(&rows).1.unwrap() * 4.0 / wanted - 1.0).abs() < 1e-13);
}

/// What never changes is found, and has no stationary distribution if noise is added to it.
#[test]
fn a_walk_does_not_come_to_rest() {
    let normal = Operation::Normal { level: Level::Server };
    let walk = program(4, vec![], vec![normal], sum([(0, 1.0), (3, 1.0)]));
    assert_eq!(ratio_and_rest(&walk).1, None);
}

#[test]
fn what_is_no_program_is_refused() {
    let good = program(4, vec![], vec![], sum([(2, 1.0)]));
    good.check().unwrap();
    let with = |change: fn(&mut Program)| {
        let mut changed = good.clone();
        change(&mut changed);
        changed.check().unwrap_err()
    };
    assert!(with(|p| p.order = vec![1]).contains("names a round"));
    assert!(with(|p| p.cycle = 2).contains("cycle is longer"));
    assert!(with(|p| p.rounds[0].result = sum([(7, 1.0)])).contains("not there"));
    assert!(with(|p| p.rounds[0].result = sum([(1, 1.0)])).contains("not there"));
    assert!(with(|p| p.rounds[0].next = vec![]).contains("another state"));
    assert!(with(|p| p.rounds[0].state = vec![Level::Clients]).contains("more than θ_0"));
    assert!(with(|p| p.rounds[0].cohort = Some(4)).contains("everybody"));
    let members = Operation::Members { rows: sum([(1, 1.0)]) };
    let changed = program(4, vec![], vec![members], sum([(2, 1.0)]));
    assert!(changed.check().unwrap_err().contains("not complete"));
    let mask = Operation::Mask { of: sum([(1, 1.0)]), mask: 0, level: Level::Clients };
    let changed = program(4, vec![], vec![mask], sum([(2, 1.0)]));
    assert!(changed.check().unwrap_err().contains("not complete"));
}
