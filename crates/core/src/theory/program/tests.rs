//! Programs of built-in algorithms against the moments of [`crate::theory::moments`], which share
//! no code with them but single local steps.

use super::*;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::spectrum::Spectrum;
use crate::problem::{Facts, td};
use crate::sample;
use crate::theory::linear::LocalUpdate;
use crate::theory::moments::{AlgorithmModel, Correction, ExactMoments, Moments, RunModel};

fn quadratic() -> Quadratic {
    let settings = quadratic::Settings {
        dimension: 2,
        spectrum: Spectrum { from: 0.5, to: 1.5 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.2,
        noise: 0.7,
        multiplicative_noise: 0.3,
        ..sample::quadratic(4)
    };
    sample::build(&settings, 3)
}

/// An algorithm of one run.
fn model<'a>(
    cohort: usize,
    correction: Correction,
    server_step: f64,
    update: impl Fn(usize) -> LocalUpdate + Sync + 'a,
) -> AlgorithmModel<'a> {
    let run = RunModel { weight: 1.0, update: Box::new(update), server_step, correction };
    let (coin, burn_in, decay) = (None, None, None);
    AlgorithmModel { runs: vec![run], cohort, common: true, coin, burn_in, decay }
}

/// The largest difference of two lists, by the largest number of the second, or by `size`.
fn apart(a: &[f64], b: &[f64], size: f64) -> f64 {
    let size = b.iter().fold(size, |most, x| most.max(x.abs()));
    a.iter().zip(b).fold(0.0_f64, |most, (x, y)| most.max((x - y).abs())) / size
}

fn compare(what: &str, found: &Moments, known: &Moments, within: f64) {
    // A mean of 0 is a rounding error.
    let size = 0.1 * known.sq_error.sqrt();
    let pairs = [
        ("error", vec![found.sq_error], vec![known.sq_error], 0.0),
        ("mean", found.mean.clone(), known.mean.clone(), size),
        ("covariance", entries(&found.covariance), entries(&known.covariance), size * size),
        ("average", vec![found.sq_error_average], vec![known.sq_error_average], 0.0),
    ];
    for (name, found, known, size) in pairs {
        let off = apart(&found, &known, size);
        let any = known.iter().all(|x| x.is_finite());
        assert!(!any || off < within, "{what}, {name}: {found:?} is not {known:?}, by {off:e}");
    }
}

fn entries(matrix: &crate::linalg::Matrix) -> Vec<f64> {
    matrix.entries().to_vec()
}

fn check(what: &str, facts: &dyn Facts, model: &AlgorithmModel<'_>) {
    let old = ExactMoments::new(facts, model).unwrap_or_else(|| panic!("{what}"));
    let program = built_in::program(facts, model, 60).unwrap();
    program.check().unwrap_or_else(|e| panic!("{what}: {e}"));
    let new = ProgramMoments::new(&program, facts).unwrap_or_else(|e| panic!("{what}: {e}"));
    let start: Vec<f64> =
        facts.optimum().iter().enumerate().map(|(i, x)| x + 1.0 + i as f64).collect();
    let rounds = [0, 1, 2, 3, 10, 60];
    let known = old.at_rounds(&start, &rounds);
    let found = new.at_rounds(&start, &rounds).unwrap();
    for (found, known) in found.iter().zip(&known) {
        // The other theory keeps c̄ beside c_k, and rounding errors of their difference stay.
        let kept = matches!(model.runs[0].correction, Correction::Kept | Correction::KeptFresh);
        let within = if kept { 1e-11 } else { 1e-12 };
        compare(&format!("{what}, round {}", known.round), found, known, within);
    }
    if let Some(known) = old.coupled(&start, &rounds) {
        assert!(
            apart(&new.coupled(&start, &rounds).unwrap(), &known, 0.0) < 1e-12,
            "{what}, coupled"
        );
    }
    if program.cycle == 0 {
        return;
    }
    let cycle = Cycle::new(&program, facts).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (known, _) = old.stationary().unwrap_or_else(|| panic!("{what}: not stationary"));
    let (found, _) = cycle.stationary().unwrap_or_else(|e| panic!("{what}: {e}"));
    compare(&format!("{what}, at rest"), &found, &known, 1e-12);
    let off = apart(&cycle.bias().unwrap(), &known.mean, 0.1 * known.sq_error.sqrt());
    assert!(off < 1e-12, "{what}: the bias is off by {off:e}");
    let radii = old.stability().unwrap();
    let own = cycle.radii().unwrap();
    assert!((own.square / radii.square - 1.0).abs() < 1e-5, "{what}: {own:?}, {radii:?}");
    let (a, b) = (own.mean.unwrap(), radii.mean.unwrap());
    assert!((a / b - 1.0).abs() < 1e-6, "{what}: {own:?}, {radii:?}");
}

/// Every algorithm of one run, also with unequal work, a proximal term, a server step, a cohort and
/// steps that fall.
fn every_algorithm(name: &str, facts: &dyn Facts, gamma: f64) {
    let n = facts.clients();
    let uneven = move |k: usize| LocalUpdate {
        step: gamma / (1 + k % 2) as f64,
        steps: 1 + 2 * (k as u64 % 3),
        batch: 2,
        proximal: 0.0,
    };
    let plain = |steps: u64| move |_: usize| LocalUpdate::plain(gamma, steps);
    let pulled = move |_: usize| LocalUpdate { proximal: 0.3, ..LocalUpdate::plain(gamma, 4) };
    for correction in [Correction::None, Correction::Kept, Correction::KeptFresh, Correction::Fresh]
    {
        for steps in [1, 5] {
            let what = format!("{name}, {correction:?}, H = {steps}");
            check(&what, facts, &model(n, correction, 1.0, plain(steps)));
            check(&format!("{what}, server"), facts, &model(n, correction, 0.7, plain(steps)));
            if facts.unequal_shares().is_none() {
                check(
                    &format!("{what}, cohort"),
                    facts,
                    &model(n / 2, correction, 1.0, plain(steps)),
                );
            }
            let falling = AlgorithmModel {
                decay: Some(Box::new(|t| 1.0 / (1.0 + 0.1 * t as f64))),
                ..model(n, correction, 1.0, plain(steps))
            };
            check(&format!("{what}, decay"), facts, &falling);
        }
        check(
            &format!("{name}, {correction:?}, uneven"),
            facts,
            &model(n, correction, 1.0, uneven),
        );
        check(
            &format!("{name}, {correction:?}, pulled"),
            facts,
            &model(n, correction, 1.0, pulled),
        );
    }
}

#[test]
fn built_in_algorithms_have_the_moments_of_the_other_theory() {
    every_algorithm("quadratic", &quadratic(), 0.12);
    every_algorithm("ridge", &sample::weighted_ridge(), 0.05);
    every_algorithm("chains", &sample::chain(vec![0, 1, 1, 0, 1], td::Noise::Independent), 0.2);
}
