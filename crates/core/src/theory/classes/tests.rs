//! Coefficients against the errors of exact moments, on instances with other distances, heterogeneities and noise.

use super::*;
use crate::algorithm::fedlin::FedLin;
use crate::algorithm::fedprox::FedProx;
use crate::algorithm::minibatch_sgd::MinibatchSgd;
use crate::algorithm::richardson_romberg::{Base, Coupling, Extrapolate, RichardsonRomberg};
use crate::algorithm::rounds::ProblemSize;
use crate::algorithm::{SearchedSpecs, Settings, Spec, WithWork, fedavg, scaffold};
use crate::federated::Learning;
use crate::linalg::Matrix;
use crate::problem::spectrum::Spectrum;
use crate::problem::{Facts, drawn_quadratic};
use crate::round_program::{RoundSettings, Rounds};
use crate::sample;
use crate::theory::exact::{KnownSteps, LinearRounds, StartError};
use crate::theory::frontier::{Search, StepSizes, curve, search};
use std::sync::Arc;

/// Six clients of three types in three dimensions, with a ζ₁ and a σ of 1.
fn class() -> drawn_quadratic::Settings {
    drawn_quadratic::Settings {
        dimension: 3,
        clients: 6,
        types: 3,
        spectrum: Spectrum { from: 0.1, to: 1.0 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.05,
        noise: 1.0,
    }
}

/// Algorithms of local steps alone, and three with other operations.
fn algorithms() -> Vec<Spec> {
    let mut server = fedavg::Settings::new(0.2, 5);
    server.own.own.server_step = 1.5;
    let plain = fedavg::Settings::new(0.2, 5);
    let common = plain.own.common.clone();
    let prox = WithWork { common: common.clone(), own: FedProx::new(0.7) };
    let fedlin = WithWork { common, own: FedLin::default() };
    let mut option_one = scaffold::Settings::new(0.2, 5);
    option_one.own.own.variates = Learning::OptionOne;
    let romberg = |over, coupling| {
        let own = RichardsonRomberg { over, coupling, ..sample::romberg(5, Extrapolate::StepSize) };
        Spec::RichardsonRomberg(Settings::plain(0.2, own))
    };
    vec![
        Spec::MinibatchSgd(Settings::plain(0.2, MinibatchSgd::new(5))),
        Spec::FedAvg(plain),
        Spec::FedAvg(server),
        Spec::Scaffold(scaffold::Settings::new(0.2, 5)),
        romberg(Base::Fedavg, Coupling::Common),
        romberg(Base::Fedavg, Coupling::Independent),
        romberg(Base::Scaffold, Coupling::Common),
        Spec::FedProx(Settings::plain(0.2, prox)),
        Spec::FedLin(Settings::plain(0.2, fedlin)),
        Spec::Scaffold(option_one),
    ]
}

/// An algorithm as a search varies its settings.
fn searched(spec: Spec) -> Arc<dyn Rounds> {
    Arc::new(SearchedSpecs::built_in(spec, ProblemSize { clients: 6, dimension: 3 }))
}

#[test]
fn errors_are_those_of_exact_moments() {
    let apart = [0.6, 0.0, -0.8];
    let unit = sample::build(&class(), 7);
    let scale = ProblemScale { distance: 2.0, gradients: 0.3, noise: 0.04 };
    let other = drawn_quadratic::Settings { gradient_heterogeneity: 0.3, noise: 0.2, ..class() };
    let other = sample::build(&other, 7);
    let instance = ClassInstance::new(&unit, &apart);
    let settings =
        RoundSettings { algorithm: 0, clients: 6, local_steps: 5, step_size: 0.2, choice: 0 };
    let mut reached = 0;
    for spec in algorithms() {
        let rounds = searched(spec.clone());
        let known = KnownSteps::of_constant_noise();
        let linear = instance.linear_rounds(&*rounds, &settings, &known);
        let found = Coefficients::new(&linear.unwrap());
        assert!(found.is_settled && found.rounds.len() > 40, "{}", spec.kind());
        let start = other.optimum().iter().zip(apart).map(|(x, a)| x + 2.0 * a).collect();
        let search = Search {
            known: vec![rounds],
            algorithms: vec![0],
            clients: vec![6],
            targets: Vec::new(),
            local_steps: vec![5],
            step_sizes: StepSizes { from: 0.2, to: 0.2, points: 1 },
            refinements: 0,
            prices: Vec::new(),
            start: StartError::Point(start),
        };
        let last = *found.rounds.last().unwrap() as usize;
        let exact = curve(&other, &search, &settings).unwrap().errors(last);
        for (round, error) in found.rounds.iter().zip(found.errors(&scale)) {
            let want = exact[*round as usize];
            assert!((error - want).abs() < 1e-11 * want, "{} {round}: {error} {want}", spec.kind());
        }
        for target in [1.5, 0.3, 0.1, 0.03] {
            let have = found.rounds_to(&scale, target * target);
            let is_above = |error: &f64| *error > target * target;
            let want = exact.iter().rposition(is_above).map(|above| above as u64 + 1);
            let want = want.filter(|want| *want <= last as u64);
            assert_eq!(have.is_some(), want.is_some(), "{} {target}", spec.kind());
            let Some((have, want)) = have.zip(want) else { continue };
            assert!(want <= have && have <= want + want / 16, "{} {have} {want}", spec.kind());
            reached += 1;
        }
    }
    assert!(reached > 12, "{reached}");
}

#[test]
fn rounds_that_diverge_have_no_coefficients() {
    let rounds = LinearRounds {
        lead: Vec::new(),
        start_of_distance: vec![1.0, 0.0],
        start_of_gradients: vec![0.0; 2],
        start_noise: None,
        map: Matrix::identity(2).scaled(1.5),
        constant: vec![0.0; 2],
        noise: Matrix::identity(2),
        result: Matrix::identity(2),
        result_constant: vec![0.0; 2],
        result_noise: 0.0,
    };
    assert!(Coefficients::new(&rounds).rounds.is_empty());
    let slow = LinearRounds { map: Matrix::identity(2).scaled(1.0 - 1e-9), ..rounds };
    let found = Coefficients::new(&slow);
    assert!(!found.is_settled && found.rounds.len() == 32 + 14 * 16);
}

#[test]
fn least_costs_are_those_of_a_search() {
    let problem = drawn_quadratic::Settings { gradient_heterogeneity: 0.3, noise: 0.2, ..class() };
    let problem = sample::build(&problem, 11);
    let apart = [1.2, 0.0, -1.6];
    let tried = SettingsGrid {
        largest_step: 1.5,
        steps: 24,
        per_factor: 1,
        local_steps: vec![1, 2, 8, 32],
    };
    let known: Vec<_> = algorithms().into_iter().map(searched).collect();
    let tables = CostTables::new(&ClassInstance::new(&problem, &apart), &known, &tried);
    let mut compared = 0;
    for (target, price) in [(0.5, 1.0), (0.1, 100.0), (0.05, 10.0)] {
        let square = ClassSquare {
            scale: ProblemScale { distance: 1.0, gradients: 1.0, noise: 1.0 },
            target,
            price,
        };
        let found = tables.least(&square);
        let smallest = tried.largest_step * libm::pow(ROBUST_FACTOR, -23.0);
        let start = problem.optimum().iter().zip(apart).map(|(x, a)| x + a).collect();
        let brute = Search {
            known: known.clone(),
            algorithms: (0..known.len()).collect(),
            clients: vec![6],
            targets: vec![target],
            local_steps: tried.local_steps.clone(),
            step_sizes: StepSizes { from: smallest, to: 1.5, points: 24 },
            refinements: 0,
            prices: Vec::new(),
            start: StartError::Point(start),
        };
        let reached = search(&problem, &brute, &|_| ()).unwrap();
        for (algorithm, found) in found.iter().enumerate() {
            let of_algorithm =
                reached.iter().filter(|one| one.held && one.run.algorithm == algorithm);
            let cost = |one: &crate::theory::frontier::Reached| {
                let of_round = brute.round_price(&one.run);
                one.rounds as f64 * (price * of_round.communications + of_round.gradients)
            };
            let want = of_algorithm.map(cost).reduce(f64::min);
            assert_eq!(found.least.is_some(), want.is_some(), "{algorithm}");
            let Some((have, want)) = found.least.zip(want) else { continue };
            assert!(want <= have.cost && have.cost <= want * (1.0 + 1.0 / 16.0), "{have:?} {want}");
            if let Some(robust) = found.robust {
                assert!(have.cost <= robust.cost);
                compared += 1;
            }
        }
    }
    assert!(compared > 15, "{compared}");
}
