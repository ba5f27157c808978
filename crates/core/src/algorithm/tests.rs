//! What the wrappers must keep, on real runs.

use super::richardson_romberg::{Base, Coupling, Extrapolate, RichardsonRomberg};
use super::*;
use crate::problem::arrays::NoFiles;
use crate::problem::spectrum::Spectrum;
use crate::problem::{Settings as _, Visitor, garnet, quadratic, td::Noise};
use crate::rng::{Purpose, Stream};

fn instance() -> Box<dyn Instance> {
    let problem = garnet::Settings {
        states: 10,
        actions: 2,
        branching: 3,
        features: 4,
        discount: 0.9,
        clients: 4,
        heterogeneity: garnet::Heterogeneity::Independent {},
        policy: garnet::Policy::Uniform,
        noise: Noise::Independent,
    };
    Boxed.visit(problem.build(1, &NoFiles).unwrap())
}

fn fedlsa(step_size: f64, average: Average) -> Spec {
    let mut settings = fedavg::Settings::new(step_size, 5);
    settings.common.average = average;
    Spec::FedLsa(settings)
}

fn extrapolated(coupling: Coupling, over: Base) -> Spec {
    romberg(0.1, Extrapolate::StepSize, over, coupling)
}

fn romberg(step_size: f64, extrapolate: Extrapolate, over: Base, coupling: Coupling) -> Spec {
    let (local_steps, cohort) = (Some(5), None);
    let own = RichardsonRomberg { local_steps, extrapolate, cohort, over, coupling };
    Spec::RichardsonRomberg(Settings::plain(step_size, own))
}

fn estimates(spec: &Spec, rounds: u64, copy: u8) -> Vec<Vec<f64>> {
    let problem = instance();
    let start = vec![0.0; 4];
    let mut run =
        problem.launch(spec, &Conditions { seed: 1, replicate: 0, start: &start, rounds, copy });
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
    let common = estimates(&extrapolated(Coupling::Common, Base::Fedavg), 30, 0);
    let independent = estimates(&extrapolated(Coupling::Independent, Base::Fedavg), 30, 0);
    for (copy, both) in [(0, common), (1, independent)] {
        let coarse = estimates(&fedlsa(0.2, Average::None), 30, copy);
        for t in 0..30 {
            let expected: Vec<f64> =
                fine[t].iter().zip(&coarse[t]).map(|(f, c)| 2.0 * f - c).collect();
            assert_eq!(both[t], expected, "copy {copy}, round {t}");
        }
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
fn weights_of_components_sum_to_one() {
    for spec in [fedlsa(0.1, Average::None), extrapolated(Coupling::Common, Base::Scaffold)] {
        assert_eq!(spec.components().iter().map(|c| c.weight).sum::<f64>(), 1.0);
    }
}

#[test]
fn names_follow_the_field() {
    assert_eq!(
        (fedlsa(0.1, Average::None).kind(), fedlsa(0.1, Average::None).label()),
        ("fedlsa", "FedLSA")
    );
}

fn quadratics(noise: f64) -> quadratic::Quadratic {
    quadratic::Settings {
        dimension: 3,
        clients: 4,
        spectrum: Spectrum { from: 0.5, to: 2.0 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.3,
        noise,
        multiplicative_noise: 0.0,
    }
    .build(2, &NoFiles)
    .unwrap()
}

fn over_steps(extrapolate: Extrapolate, coupling: Coupling, step_size: f64) -> Spec {
    romberg(step_size, extrapolate, Base::Fedavg, coupling)
}

fn end(problem: &dyn Instance, spec: &Spec, rounds: u64, replicate: u64) -> Vec<f64> {
    let start = problem.optimum().to_vec();
    let from = Conditions { seed: 1, replicate, start: &start, rounds, copy: 0 };
    let mut run = problem.launch(spec, &from);
    (0..rounds).for_each(|_| run.round());
    run.estimate().to_vec()
}

fn apart(x: &[f64], y: &[f64]) -> f64 {
    crate::kernel::squared_distance(x, y).sqrt()
}

/// RR Remark 1: over local steps the corrected weights make the bias quadratic
/// in γ; the printed ones do not sum to one, and the limit is H/(H − 1) θ*.
#[test]
fn weights_over_local_steps_must_sum_to_one() {
    let problem = Boxed.visit(quadratics(0.0));
    let optimum = problem.optimum().to_vec();
    let bias = |extrapolate, step: f64| {
        let spec = over_steps(extrapolate, Coupling::Common, step);
        let rounds = (40.0 / (0.5 * 5.0 * step)) as u64;
        let theta = end(&*problem, &spec, rounds, 0);
        (apart(&theta, &optimum), theta)
    };
    let (coarse, _) = bias(Extrapolate::LocalSteps, 0.02);
    let (fine, _) = bias(Extrapolate::LocalSteps, 0.01);
    assert!((libm::log2(coarse / fine) - 2.0).abs() < 0.15, "{coarse} {fine}");
    let (_, printed) = bias(Extrapolate::LocalStepsPrinted, 0.001);
    let scaled: Vec<f64> = optimum.iter().map(|x| 1.25 * x).collect();
    let length = apart(&optimum, &[0.0; 3]);
    assert!(apart(&printed, &scaled) < 0.01 * length && apart(&printed, &optimum) > 0.2 * length);
}

/// Over local steps the finer run takes the first H of the 2H draws of the
/// coarser in each round: common noise, and a smaller variance for it.
#[test]
fn runs_of_unequal_work_share_their_noise_round_by_round() {
    let problem = Boxed.visit(quadratics(1.0));
    let spread = |coupling| {
        let spec = over_steps(Extrapolate::LocalSteps, coupling, 0.05);
        let total: f64 =
            (0..600).map(|r| apart(&end(&*problem, &spec, 30, r), problem.optimum()).powi(2)).sum();
        total / 600.0
    };
    let (common, independent) = (spread(Coupling::Common), spread(Coupling::Independent));
    assert!(common < 0.8 * independent, "{common} {independent}");
    // Draw for draw: with γ → 0 a round moves by −γ Σ of its draws.
    let gamma = 1e-9;
    let spec = over_steps(Extrapolate::LocalSteps, Coupling::Common, gamma);
    let flat = Boxed.visit(
        quadratic::Settings { gradient_heterogeneity: 0.0, ..flat() }.build(2, &NoFiles).unwrap(),
    );
    let moved = end(&*flat, &spec, 2, 0);
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

fn flat() -> quadratic::Settings {
    quadratic::Settings {
        dimension: 3,
        clients: 4,
        spectrum: Spectrum { from: 0.5, to: 0.5 },
        gradient_heterogeneity: 0.0,
        hessian_heterogeneity: 0.0,
        noise: 1.0,
        multiplicative_noise: 0.0,
    }
}

/// What has two names is one algorithm, to the last bit.
#[test]
fn other_names_are_the_same_algorithms() {
    let problem = Boxed.visit(quadratics(1.0));
    let mut coin = scaffold::Settings::new(0.1, 1);
    coin.own.common.local_steps = None;
    coin.communication_probability = Some(0.2);
    let clock = crate::federated::Clock::Communications;
    let scaffnew = scaffnew::Scaffnew { communication_probability: 0.2, clock };
    let scaffnew = Settings::plain(0.1, scaffnew);
    let sgd = Settings::plain(0.1, minibatch_sgd::MinibatchSgd { batch: 1, cohort: None });
    let prox = fedprox::FedProx { local_steps: 3, proximal: 0.0, cohort: None };
    let prox = Settings::plain(0.1, prox);
    let fedavg = |h| fedavg::Settings::new(0.1, h);
    for (one, other) in [
        (Spec::Scaffold(coin.clone()), Spec::Scaffnew(scaffnew)),
        (Spec::Scaffold(coin.clone()), Spec::Scafflsa(coin)),
        (Spec::FedAvg(fedavg(1)), Spec::MinibatchSgd(sgd)),
        (Spec::FedAvg(fedavg(3)), Spec::FedProx(prox)),
        (Spec::FedAvg(fedavg(3)), Spec::FedLsa(fedavg(3))),
    ] {
        assert_eq!(end(&*problem, &one, 20, 0), end(&*problem, &other, 20, 0), "{}", other.kind());
    }
}
