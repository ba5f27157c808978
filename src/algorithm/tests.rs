//! What the wrappers must keep, on real runs.

use super::richardson_romberg::{Base, Coupling, Extrapolate};
use super::*;
use crate::problem::arrays::NoFiles;
use crate::problem::{Settings as _, Visitor, garnet, td::Noise};

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
    Spec::FedLsa(fedavg::Settings { average, ..fedavg::Settings::new(step_size, 5) })
}

fn extrapolated(coupling: Coupling, over: Base) -> Spec {
    Spec::RichardsonRomberg(richardson_romberg::Settings {
        label: None,
        step_size: 0.1,
        local_steps: Some(5),
        extrapolate: Extrapolate::StepSize,
        cohort: None,
        average: Average::None,
        over,
        coupling,
    })
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
