//! What the wrappers must keep, on real runs.

use super::richardson_romberg::{Base, Coupling, Extrapolate, RichardsonRomberg};
use super::*;
use crate::client_sampling::ParticipationScheme;
use crate::federated::Decay;
use crate::problem::Facts;
use crate::problem::{garnet, quadratic};
use crate::rng::{Purpose, Stream};
use crate::sample::{self, distance};

/// FedLSA with this step size and five local steps in a round, averaged or not.
fn fedlsa(step_size: f64, average: Average) -> Spec {
    let mut settings = fedavg::Settings::new(step_size, 5);
    settings.common.average = average;
    Spec::FedLsa(settings)
}

/// An extrapolation of FedAvg with five local steps in a round of the finest run.
fn romberg(step_size: f64, extrapolate: Extrapolate, points: u64, coupling: Coupling) -> Spec {
    let own = RichardsonRomberg { points, coupling, ..sample::romberg(5, extrapolate) };
    Spec::RichardsonRomberg(Settings::plain(step_size, own))
}

fn conditions(start: &[f64], rounds: u64) -> Conditions<'_> {
    Conditions { seed: 1, replicate: 0, start, rounds, copy: 0 }
}

/// The estimates θ_1, θ_2, … of a run of this number of rounds from θ_0 = 0, on a problem of TD learning, always the
/// same one, with the noise of this copy.
fn estimates(spec: &Spec, rounds: u64, copy: u8) -> Vec<Vec<f64>> {
    let settings = sample::garnet(garnet::Heterogeneity::Independent {}, 4);
    let problem = sample::build(&settings, 1);
    let from = Conditions { copy, ..conditions(&[0.0; 4], rounds) };
    let mut run = problem.launch(spec, &from);
    (0..rounds)
        .map(|_| {
            run.round();
            run.estimate().to_vec()
        })
        .collect()
}

#[test]
fn richardson_romberg_combines_the_very_runs_it_is_made_of() {
    let fine = estimates(&fedlsa(0.1, Average::None), 30, 0);
    for (copy, coupling) in [(0, Coupling::Common), (1, Coupling::Independent)] {
        let both = estimates(&romberg(0.1, Extrapolate::StepSize, 2, coupling), 30, 0);
        let coarse = estimates(&fedlsa(0.2, Average::None), 30, copy);
        for t in 0..30 {
            let expected: Vec<f64> =
                fine[t].iter().zip(&coarse[t]).map(|(f, c)| 2.0 * f - c).collect();
            assert_eq!(both[t], expected, "copy {copy}, round {t}");
        }
    }
}

/// The cost of an extrapolation is the sum of the costs of its runs, communications included, for whatever they differ
/// in and whichever algorithm is extrapolated.
#[test]
fn richardson_romberg_pays_for_all_runs() {
    let problem = sample::build(&sample::garnet(garnet::Heterogeneity::Independent {}, 4), 1);
    for (extrapolate, points, over, expected) in [
        // Three rounds of four clients in four dimensions: communications, local steps, calls of
        // all clients and of one, vectors.
        (Extrapolate::StepSize, 2, Base::Fedavg, [6, 30, 120, 30, 48]),
        (Extrapolate::StepSize, 3, Base::Fedavg, [9, 45, 180, 45, 72]),
        (Extrapolate::LocalSteps, 2, Base::Fedavg, [6, 45, 180, 45, 48]),
        (Extrapolate::Both, 2, Base::Fedavg, [12, 90, 360, 90, 96]),
        (Extrapolate::StepSize, 2, Base::Scaffold, [6, 30, 120, 30, 48]),
        (Extrapolate::StepSize, 2, Base::Fedlin, [12, 30, 240, 60, 96]),
        (Extrapolate::StepSize, 2, Base::MinibatchSgd, [6, 6, 120, 30, 48]),
    ] {
        let own = RichardsonRomberg { points, over, ..sample::romberg(5, extrapolate) };
        let spec = Spec::RichardsonRomberg(Settings::plain(0.05, own));
        let mut run = problem.launch(&spec, &conditions(&[0.0; 4], 3));
        (0..3).for_each(|_| run.round());
        let expected = sample::cost(expected, 4);
        assert_eq!(run.cost(), expected, "{extrapolate:?} {over:?}");
    }
}

/// The price of a round by which frontiers count is what a round of a run costs, on average over all clients, and at the
/// slowest client that takes part.
#[test]
fn the_price_of_a_round_is_its_cost() {
    let problem = sample::build(&sample::garnet(garnet::Heterogeneity::Independent {}, 4), 1);
    for cohort in [None, Some(1), Some(3)] {
        let own = fedavg::FedAvg {
            batch_per_client: Vec::new(),
            cohort: cohort.map(Participation::Clients),
            participation: ParticipationScheme::Normalised,
            server_step: 1.0,
        };
        let spec = Spec::FedAvg(Settings::plain(0.05, WithWork { common: Work::equal(5), own }));
        let mut run = problem.launch(&spec, &conditions(&[0.0; 4], 1));
        run.round();
        let cost = run.cost();
        let price = spec.round_price(4);
        assert_eq!(4.0 * price.gradients, cost.oracle_calls as f64, "{cohort:?}");
        assert_eq!(price.slowest_gradients, cost.sequential_calls as f64, "{cohort:?}");
        assert_eq!(4.0 * price.vectors, cost.vectors_sent as f64, "{cohort:?}");
    }
}

#[test]
fn averages_are_means_after_the_burn_in() {
    let plain = estimates(&fedlsa(0.1, Average::None), 40, 0);
    let averaged = estimates(&fedlsa(0.1, Average::BurnIn(0.25)), 40, 0);
    assert_eq!(averaged[..10], plain[..10]);
    for t in 10..40 {
        for i in 0..4 {
            let mean = plain[10..=t].iter().map(|x| x[i]).sum::<f64>() / (t - 9) as f64;
            assert!((averaged[t][i] - mean).abs() < 1e-13);
        }
    }
}

#[test]
fn names_follow_the_field() {
    let spec = fedlsa(0.1, Average::None);
    assert_eq!((spec.kind(), spec.label()), ("fedlsa", "FedLSA"));
}

/// Heterogeneous quadratic functions of four clients in three dimensions, with additive noise of this standard
/// deviation.
fn quadratics(noise: f64) -> quadratic::Quadratic {
    let settings = quadratic::Settings {
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.3,
        noise,
        ..sample::quadratic(4)
    };
    sample::build(&settings, 2)
}

/// The estimate of a replicate after `rounds` rounds that begin at the optimum.
fn end(problem: &dyn Instance, spec: &Spec, rounds: u64, replicate: u64) -> Vec<f64> {
    let from = Conditions { replicate, ..conditions(problem.optimum(), rounds) };
    let mut run = problem.launch(spec, &from);
    (0..rounds).for_each(|_| run.round());
    run.estimate().to_vec()
}

/// The mean over `runs` replicates of the square distance from the optimum after `rounds` rounds that begin at the
/// optimum.
fn spread(problem: &dyn Instance, spec: &Spec, rounds: u64, runs: u64) -> f64 {
    let mut sum = 0.0;
    for replicate in 0..runs {
        let end = end(problem, spec, rounds, replicate);
        sum += distance(&end, problem.optimum()).powi(2);
    }
    sum / runs as f64
}

/// RR Remark 1: over local steps the corrected weights make the bias quadratic
/// in γ; the printed ones do not sum to one, and the limit is H/(H − 1) θ*.
#[test]
fn weights_over_local_steps_must_sum_to_one() {
    let problem = quadratics(0.0);
    let optimum = problem.optimum().to_vec();
    let bias = |extrapolate, step: f64| {
        let spec = romberg(step, extrapolate, 2, Coupling::Common);
        // So many rounds that the run is at its limit.
        let rounds = (40.0 / (0.5 * 5.0 * step)) as u64;
        let theta = end(&problem, &spec, rounds, 0);
        (distance(&theta, &optimum), theta)
    };
    let (coarse, _) = bias(Extrapolate::LocalSteps, 0.02);
    let (fine, _) = bias(Extrapolate::LocalSteps, 0.01);
    assert!((libm::log2(coarse / fine) - 2.0).abs() < 0.15, "{coarse} {fine}");
    let (_, printed) = bias(Extrapolate::LocalStepsPrinted, 0.001);
    let scaled: Vec<f64> = optimum.iter().map(|x| 1.25 * x).collect();
    let length = distance(&optimum, &[0.0; 3]);
    assert!(
        distance(&printed, &scaled) < 0.01 * length && distance(&printed, &optimum) > 0.2 * length
    );
}

/// The order in γ of the bias of the limit without noise: K for γ, 2γ, …, Kγ; over both γ and H
/// every term of orders 0 and 1 cancels, and γ²(H − 1)² remains.
#[test]
fn leading_orders_of_the_bias_cancel() {
    let problem = quadratics(0.0);
    let optimum = problem.optimum().to_vec();
    for (extrapolate, points, order, step) in [
        (Extrapolate::StepSize, 2, 2.0, 0.01),
        (Extrapolate::StepSize, 3, 3.0, 0.01),
        (Extrapolate::StepSize, 4, 4.0, 0.01),
        (Extrapolate::Both, 2, 2.0, 0.01),
    ] {
        let spec = |step| romberg(step, extrapolate, points, Coupling::Common);
        let bias = |step| {
            // So many rounds that the run is at its limit.
            let rounds = (60.0 / (0.5 * 5.0 * step)) as u64;
            distance(&end(&problem, &spec(step), rounds, 0), &optimum)
        };
        let coarse = bias(step);
        let fine = bias(step / 2.0);
        let found = libm::log2(coarse / fine);
        assert!((found - order).abs() < 0.25, "{extrapolate:?} {points}: {found}");
        let weights: f64 = spec(step).components().iter().map(|run| run.weight).sum();
        assert!((weights - 1.0).abs() < 1e-14);
    }
}

/// To first order the runs with aγ and bγ have the covariance ab/(a + b) 2Cov θ^(γ) on common
/// draws, so that three runs over the step size have 0.6 times FedAvg's variance, and two have two
/// thirds of it; with draws of their own 30 and 6 times as much.
#[test]
fn the_variance_of_an_extrapolation_is_that_of_its_weights() {
    let settings = quadratic::Settings { noise: 1.0, ..sample::isotropic(4, 3, 0.5) };
    let flat = sample::build(&settings, 2);
    let spread = |spec: &Spec| spread(&flat, spec, 160, 800);
    let fedavg = spread(&fedlsa(0.01, Average::None));
    for (points, coupling, expected) in [
        (2, Coupling::Common, 2.0 / 3.0),
        (3, Coupling::Common, 0.6),
        (2, Coupling::Independent, 6.0),
        (3, Coupling::Independent, 30.0),
    ] {
        let ratio = spread(&romberg(0.01, Extrapolate::StepSize, points, coupling)) / fedavg;
        assert!((ratio / expected - 1.0).abs() < 0.15, "{points} {coupling:?}: {ratio}");
    }
}

/// Over local steps the finer run takes the first H of the 2H draws of the
/// coarser in each round: common noise, and a smaller variance for it.
#[test]
fn runs_of_unequal_work_share_their_noise_round_by_round() {
    let problem = quadratics(1.0);
    let spread =
        |coupling| spread(&problem, &romberg(0.05, Extrapolate::LocalSteps, 2, coupling), 30, 600);
    let common = spread(Coupling::Common);
    let independent = spread(Coupling::Independent);
    assert!(common < 0.8 * independent, "{common} {independent}");
    // Draw for draw: with γ → 0 a round moves by −γ Σ of its draws.
    let gamma = 1e-9;
    let spec = romberg(gamma, Extrapolate::LocalSteps, 2, Coupling::Common);
    let settings = quadratic::Settings { noise: 1.0, ..sample::isotropic(4, 3, 0.5) };
    let flat = sample::build(&settings, 2);
    let moved = end(&flat, &spec, 2, 0);
    let mut expected = [0.0; 3];
    for client in 0..4 {
        let mut rng = Stream::new(1, Purpose::Client, 0, 0, client);
        for step in 0..20 {
            let weight = if step % 10 < 5 { 1.8 - 0.8 } else { -0.8 };
            for x in &mut expected {
                *x -= gamma * weight * rng.gaussian() / 4.0;
            }
        }
    }
    for i in 0..3 {
        let off = moved[i] - flat.optimum()[i] - expected[i];
        assert!(off.abs() < 1e-14, "entry {i}: {off}");
    }
}

/// The first round has γ, later ones γ_t = γ (1 + t/t₀)^(−α): a run with falling steps is made of one
/// round at each of them.
#[test]
fn falling_steps_are_those_of_their_rounds() {
    let problem = quadratics(0.0);
    let decay = Decay::by_rounds(0.5, 3.0);
    let mut falling = fedavg::Settings::new(0.1, 4);
    falling.own.common.decay = Some(decay);
    let mut theta = vec![1.0; 3];
    let mut run = problem.launch(&Spec::FedAvg(falling), &conditions(&theta, 3));
    for t in 0..3 {
        run.round();
        let step = 0.1 / libm::sqrt(1.0 + t as f64 / 3.0);
        let constant = Spec::FedAvg(fedavg::Settings::new(step, 4));
        let mut one = problem.launch(&constant, &conditions(&theta, 3));
        one.round();
        let next = one.estimate().to_vec();
        assert!(distance(run.estimate(), &next) < 1e-14, "round {t}");
        theta = next;
    }
}

/// FedAvg with four local steps in a round and step sizes that fall from round to round.
fn with_decay(power: f64, offset: f64) -> Spec {
    let mut settings = fedavg::Settings::new(0.1, 4);
    settings.own.common.decay = Some(Decay::by_rounds(power, offset));
    Spec::FedAvg(settings)
}

/// The keys with which something is wrong.
fn faulty_keys(spec: &Spec) -> Vec<String> {
    spec.check().into_iter().map(|fault| fault.key.into_owned()).collect()
}

#[test]
fn what_is_wrong_with_falling_steps_and_points_is_named() {
    assert!(faulty_keys(&with_decay(1.0, 0.5)).is_empty());
    for (power, offset) in [(0.0, 1.0), (1.5, 1.0), (f64::NAN, 1.0)] {
        assert_eq!(faulty_keys(&with_decay(power, offset)), ["decay.power"]);
    }
    assert_eq!(faulty_keys(&with_decay(0.5, 0.0)), ["decay.offset"]);
    let mut coin = scaffold::Settings::new(0.1, 1);
    coin.own.common.local_steps = None;
    coin.own.common.decay = Some(Decay::by_rounds(0.5, 1.0));
    coin.own.own.communication_probability = Some(0.5.into());
    assert!(faulty_keys(&Spec::Scaffold(coin.clone())).is_empty());
    coin.own.own.clock = crate::federated::Clock::Steps;
    assert_eq!(faulty_keys(&Spec::Scaffold(coin)), ["decay"]);
    for (extrapolate, points, expected) in [
        (Extrapolate::StepSize, 4, &[][..]),
        (Extrapolate::StepSize, 1, &["points"]),
        (Extrapolate::StepSize, u64::MAX, &["points"]),
        (Extrapolate::Both, 3, &["points"]),
    ] {
        let spec = romberg(0.1, extrapolate, points, Coupling::Common);
        assert_eq!(faulty_keys(&spec), expected, "{extrapolate:?} {points}");
    }
}

/// What has two names is one algorithm, to the last bit.
#[test]
fn other_names_are_the_same_algorithms() {
    let problem = quadratics(1.0);
    let mut coin = scaffold::Settings::new(0.1, 1);
    coin.own.common.local_steps = None;
    coin.communication_probability = Some(0.2.into());
    let scaffnew = Settings::plain(0.1, scaffnew::Scaffnew::new(0.2));
    let sgd = Settings::plain(0.1, minibatch_sgd::MinibatchSgd::new(1));
    let not_pulled = fedprox::FedProx::new(0.0);
    let prox = Settings::plain(0.1, WithWork { common: Work::equal(3), own: not_pulled });
    let one_step = fedavg::Settings::new(0.1, 1);
    let three_steps = fedavg::Settings::new(0.1, 3);
    for (one, other) in [
        (Spec::Scaffold(coin.clone()), Spec::Scaffnew(scaffnew)),
        (Spec::Scaffold(coin.clone()), Spec::Scafflsa(coin)),
        (Spec::FedAvg(one_step), Spec::MinibatchSgd(sgd)),
        (Spec::FedAvg(three_steps.clone()), Spec::FedProx(prox)),
        (Spec::FedAvg(three_steps.clone()), Spec::FedLsa(three_steps)),
    ] {
        assert_eq!(end(&problem, &one, 20, 0), end(&problem, &other, 20, 0), "{}", other.kind());
    }
}
