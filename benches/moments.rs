//! Exact moments: the expected curve of a hundred clients over rounds of ten thousand local
//! steps, and of a million clients with two distributions; and a frontier in eight dimensions.

#[path = "support/problems.rs"]
mod problems;

use criterion::{Criterion, criterion_group, criterion_main};
use exactfed::problem::Facts;
use exactfed::problem::garnet::Heterogeneity;
use exactfed::problem::td::Noise;
use exactfed::theory::frontier::{FrontierAlgorithm, Search, StartError, StepSizes, search};
use exactfed::theory::moments::{AlgorithmModel, Correction, ExactMoments};
use std::hint::black_box;

fn curve(facts: &dyn Facts, correction: Correction, steps: u64, rounds: u64) -> f64 {
    let alone = AlgorithmModel::plain(facts.clients(), &[(1.0, 0.01)], steps, correction);
    let scheme = AlgorithmModel { common: true, ..alone };
    let exact = ExactMoments::new(facts, &scheme).expect("moments close");
    let start: Vec<f64> = facts.optimum().iter().map(|x| x + 1.0).collect();
    let rounds: Vec<u64> = (0..=rounds).collect();
    exact.at_rounds(&start, &rounds).last().map_or(f64::NAN, |m| m.sq_error)
}

/// The fewest rounds of four algorithms, for a hundred clients, five targets and H up to 4096.
fn frontier(facts: &dyn Facts) -> usize {
    let asked = Search {
        methods: vec![
            FrontierAlgorithm::Sgd,
            FrontierAlgorithm::MinibatchSgd,
            FrontierAlgorithm::Fedavg,
            FrontierAlgorithm::Scaffold,
        ],
        clients: vec![100],
        targets: vec![0.3, 0.2, 0.1, 0.06, 0.03],
        local_steps: (0..=12).map(|power| 1 << power).collect(),
        step_sizes: StepSizes { from: 1e-4, to: 1.0, points: 60 },
        refinements: 0,
        prices: Vec::new(),
        start: StartError::Isotropic { mean_square: 1.0 },
        own: None,
    };
    let found = search(facts, &asked, &|_| ()).unwrap_or_default();
    assert!(!found.is_empty(), "no target is reached");
    found.len()
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("moments");
    group.sample_size(10);
    let garnet = |clients, of| problems::garnet([30, 8, clients], of, Noise::Independent, 2024);
    let hundred = garnet(100, Heterogeneity::Independent {});
    let million = garnet(1_000_000, Heterogeneity::TwoKernels {});
    for (name, correction) in [("FedLSA", Correction::None), ("SCAFFLSA", Correction::Kept)] {
        group.bench_function(format!("{name}, N = 100, d = 8, H = 10 000, 50 rounds"), |b| {
            b.iter(|| black_box(curve(&hundred, correction, 10_000, 50)));
        });
        group.bench_function(format!("{name}, N = 1 000 000 of two kinds, 1000 rounds"), |b| {
            b.iter(|| black_box(curve(&million, correction, 100, 1000)));
        });
    }
    group.bench_function("frontier, N = 100 of two kinds, d = 8, H up to 4096", |b| {
        let two_kinds = garnet(100, Heterogeneity::TwoKernels {});
        b.iter(|| black_box(frontier(&two_kinds)));
    });
    group.finish();
}

criterion_group!(moments, benches);
criterion_main!(moments);
