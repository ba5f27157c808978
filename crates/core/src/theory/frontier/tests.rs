//! The frontier against exact moments client by client, and against brute force.

mod curves;
mod searches;

use super::*;
use crate::algorithm::fedlin::FedLin;
use crate::algorithm::fedprox::FedProx;
use crate::algorithm::minibatch_sgd::MinibatchSgd;
use crate::algorithm::richardson_romberg::{Base, Coupling, Extrapolate, RichardsonRomberg};
use crate::algorithm::rounds::{ProblemSize, constant_rounds};
use crate::algorithm::scaffnew::Scaffnew;
use crate::algorithm::{Participation, SearchedSpecs, Settings, Spec, WithWork, fedavg, scaffold};
use crate::linalg::Matrix;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::td::{Environment, Noise, Td};
use crate::sample;

/// The places of algorithms in [`known`].
const SGD: usize = 0;
const FEDAVG: usize = 2;
const FEDAVG_SERVER_STEP: usize = 3;
const SCAFFOLD: usize = 4;
const SCAFFNEW: usize = 5;
const RICHARDSON_ROMBERG: usize = 6;
const SCAFFOLD_RR: usize = 8;
const FEDLIN: usize = 9;
const FEDPROX: usize = 10;

/// The number of algorithms.
const ALL: usize = 11;

/// The algorithms, on problems of this size.
fn known(facts: &dyn Facts) -> Vec<Arc<dyn Rounds>> {
    let romberg = |over, coupling| {
        let own = RichardsonRomberg { over, coupling, ..sample::romberg(1, Extrapolate::StepSize) };
        vec![Spec::RichardsonRomberg(Settings::plain(1.0, own))]
    };
    let minibatch = vec![Spec::MinibatchSgd(Settings::plain(1.0, MinibatchSgd::new(1)))];
    let coin = Scaffnew::new(1.0);
    let server_steps = [1.0, 2.0, 4.0, 8.0, 32.0, 128.0].map(|server_step| {
        let mut settings = fedavg::Settings::new(1.0, 1);
        settings.own.own.server_step = server_step;
        Spec::FedAvg(settings)
    });
    let one_step = fedavg::Settings::new(1.0, 1).own.common;
    let prox = WithWork { common: one_step.clone(), own: FedProx::new(0.7) };
    let fedlin = WithWork { common: one_step, own: FedLin::default() };
    let all: [(&str, Vec<Spec>); ALL] = [
        ("sgd", minibatch.clone()),
        ("minibatch-sgd", minibatch),
        ("fedavg", vec![Spec::FedAvg(fedavg::Settings::new(1.0, 1))]),
        ("fedavg-server-step", server_steps.into()),
        ("scaffold", vec![Spec::Scaffold(scaffold::Settings::new(1.0, 1))]),
        ("scaffnew", vec![Spec::Scaffnew(Settings::plain(1.0, coin))]),
        ("richardson-romberg", romberg(Base::Fedavg, Coupling::Common)),
        ("richardson-romberg-independent", romberg(Base::Fedavg, Coupling::Independent)),
        ("scaffold-rr", romberg(Base::Scaffold, Coupling::Common)),
        ("fedlin", vec![Spec::FedLin(Settings::plain(1.0, fedlin))]),
        ("fedprox", vec![Spec::FedProx(Settings::plain(1.0, prox))]),
    ];
    let size = ProblemSize { clients: facts.clients(), dimension: facts.dim() };
    let rounds = |(name, choices): (&str, Vec<Spec>)| {
        Arc::new(SearchedSpecs {
            name: name.to_owned(),
            choices,
            has_local_steps: name != "sgd",
            program_of: Arc::new(move |spec| constant_rounds(&spec.components(), size)),
        }) as Arc<dyn Rounds>
    };
    all.map(rounds).into()
}

/// Settings of an algorithm, with a server step other than 1 where it has several.
fn run_of(algorithm: usize, clients: u64, local_steps: u64, step_size: f64) -> RoundSettings {
    let choice = usize::from(algorithm == FEDAVG_SERVER_STEP);
    RoundSettings { algorithm, clients, local_steps, step_size, choice }
}

/// A search from this start, for [`curve`], which reads nothing else of it but the algorithms.
fn from(facts: &dyn Facts, start: StartError) -> Search {
    Search { start, ..settings(facts, &[], &[]) }
}

/// TD(0) on two chains, one for `first` and one for `second` clients: two types.
fn two_chains(first: usize, second: usize) -> Td {
    let turned = |i: usize, j: usize| sample::CHAIN[3 * ((i + 1) % 3) + (j + 1) % 3];
    let environments = [(0.0, 1.0), (1.0, -1.0)].map(|(turn, sign)| Environment {
        transitions: Matrix::from_fn(3, 3, |i, j| {
            (1.0 - turn) * sample::CHAIN[3 * i + j] + turn * turned(i, j)
        }),
        rewards: vec![sign, -sign, 0.5 * sign],
    });
    let phi = vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5];
    let of_clients = [vec![0; first], vec![1; second]].concat();
    Td::new(phi, 2, 0.8, environments.into_iter(), of_clients, Noise::Independent).unwrap()
}

/// A search of all algorithms over a coarse grid, without refinements and prices, from a random start of the mean
/// square distance 4.
fn settings(facts: &dyn Facts, clients: &[u64], targets: &[f64]) -> Search {
    Search {
        known: known(facts),
        algorithms: (0..ALL).collect(),
        clients: clients.to_vec(),
        targets: targets.to_vec(),
        local_steps: vec![1, 3, 10],
        step_sizes: StepSizes { from: 0.004, to: 2.5, points: 15 },
        refinements: 0,
        prices: Vec::new(),
        start: StartError::Isotropic { mean_square: 4.0 },
    }
}

/// The first round from which all errors are at most at the target, `None` if one of the last half of the errors is
/// above it; and the first round whose error is, `None` if none is.
fn passages(errors: &[f64], target: f64) -> (Option<usize>, Option<usize>) {
    let is_above = |error: &f64| !(*error >= 0.0 && *error <= target * target);
    let held = errors.iter().rposition(is_above).map_or(0, |last| last + 1);
    let first = errors.iter().position(|error| !is_above(error));
    ((held <= errors.len() / 2).then_some(held), first)
}

/// The fewest rounds, the error after them, γ and the choice of further settings. The smaller tuple is the better one.
type BruteForce = (u64, f64, f64, usize);

/// The number of rounds that brute force follows one by one.
const ROUNDS: usize = 6000;

/// For each target the best step size and choice to stay below it, and the best to come below it if that needs fewer
/// rounds, found by following the errors of all of them round by round.
fn by_brute_force(
    facts: &dyn Facts,
    search: &Search,
    algorithm: usize,
    clients: u64,
    local_steps: u64,
) -> Vec<[Option<BruteForce>; 2]> {
    let mut best = vec![[None; 2]; search.targets.len()];
    let range = &search.step_sizes;
    let steps = (0..range.points).flat_map(|i| {
        (0..search.known[algorithm].choices()).map(move |choice| (range.nth(i), choice))
    });
    for (step_size, choice) in steps {
        let run = RoundSettings { algorithm, clients, local_steps, step_size, choice };
        // Settings whose second moments are infinite after one round have no curve.
        let Ok(mut curve) = curve(facts, search, &run) else { continue };
        let errors = curve.errors(ROUNDS);
        for (best, &target) in best.iter_mut().zip(&search.targets) {
            let (held, first) = passages(&errors, target);
            let first = first.filter(|first| *first <= MOST_PASSING as usize);
            for (best, rounds) in best.iter_mut().zip([held, first]) {
                let Some(rounds) = rounds else { continue };
                let key = (rounds as u64, errors[rounds], step_size, choice);
                if best.is_none_or(|best| key < best) {
                    *best = Some(key);
                }
            }
        }
    }
    for [held, first] in &mut best {
        *first = first.filter(|first| held.is_none_or(|held| first.0 < held.0));
    }
    best
}

/// Asserts that a search finds what brute force finds. Returns how many targets are held, and how many are passed in
/// fewer rounds than it takes to hold them.
fn compare(facts: &dyn Facts, search: &Search) -> [usize; 2] {
    let found = super::search(facts, search, &|_| ()).unwrap();
    let mut compared = [0, 0];
    let runs = search.algorithms.iter().flat_map(|algorithm| {
        let local_steps = search.local_steps_of(*algorithm).iter();
        local_steps.flat_map(|h| search.clients.iter().map(|n| (*algorithm, *n, *h)))
    });
    for of in runs {
        let best = by_brute_force(facts, search, of.0, of.1, of.2);
        for (best, &target) in best.into_iter().zip(&search.targets) {
            for (best, is_held) in best.into_iter().zip([true, false]) {
                let is_same = |r: &&Reached| {
                    let RoundSettings { algorithm, clients, local_steps, .. } = r.run;
                    (algorithm, clients, local_steps) == of
                        && (r.target, r.held) == (target, is_held)
                };
                // More rounds are beyond the sight of brute force.
                let found = found.iter().find(is_same).filter(|r| r.rounds <= ROUNDS as u64 / 2);
                let found = found.map(|r| (r.rounds, r.run.step_size, r.run.choice));
                let best = best.map(|(rounds, _, step_size, choice)| (rounds, step_size, choice));
                assert_eq!(found, best, "{of:?}, {target}, {is_held}");
                compared[usize::from(!is_held)] += usize::from(best.is_some());
            }
        }
    }
    compared
}

/// One dimension, two clients of curvatures of their own.
fn scalar_types() -> Quadratic {
    let settings = quadratic::Settings {
        gradient_heterogeneity: 0.7,
        hessian_heterogeneity: 0.3,
        noise: 0.4,
        multiplicative_noise: 0.2,
        ..sample::isotropic(2, 1, 0.8)
    };
    sample::build(&settings, 5)
}
