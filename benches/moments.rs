//! Exact moments: the expected curve of a hundred clients over rounds of ten thousand local
//! steps, and of a million clients with two distributions.

#[path = "support/problems.rs"]
mod problems;

use criterion::{Criterion, criterion_group, criterion_main};
use exactfed::problem::Facts;
use exactfed::problem::garnet::Heterogeneity;
use exactfed::problem::td::Noise;
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
    group.finish();
}

criterion_group!(moments, benches);
criterion_main!(moments);
