//! Exact moments: the expected curve of a hundred clients over rounds of ten thousand local
//! steps, and of a million clients with two distributions; and a frontier in eight dimensions.

#[path = "support/problems.rs"]
mod problems;

use criterion::{Criterion, criterion_group, criterion_main};
use exactfed::algorithm::minibatch_sgd::MinibatchSgd;
use exactfed::algorithm::rounds::ProblemSize;
use exactfed::algorithm::{Component, SearchedSpecs, Settings, Spec, fedavg, scaffold};
use exactfed::federated::Terms;
use exactfed::moments::ExactMoments;
use exactfed::problem::Facts;
use exactfed::problem::garnet::Heterogeneity;
use exactfed::problem::td::Noise;
use exactfed::round_program::Rounds;
use exactfed::theory::frontier::{Search, StartError, StepSizes, search};
use std::hint::black_box;
use std::sync::Arc;

fn curve(facts: &dyn Facts, terms: &Terms, rounds: u64) -> f64 {
    let components = [Component::one(terms.clone())];
    let exact = ExactMoments::new(facts, &components).expect("moments close");
    let start: Vec<f64> = facts.optimum().iter().map(|x| x + 1.0).collect();
    let rounds: Vec<u64> = (0..=rounds).collect();
    let moments = exact.at_rounds(&start, &rounds, None).expect("moments close");
    moments.last().map_or(f64::NAN, |m| m.sq_error)
}

/// The fewest rounds of four algorithms, for a hundred clients, five targets and H up to 4096.
fn frontier(facts: &dyn Facts) -> usize {
    let size = ProblemSize { clients: facts.clients(), dimension: facts.dim() };
    let batches = Spec::MinibatchSgd(Settings::plain(1.0, MinibatchSgd::new(1)));
    let sgd =
        SearchedSpecs { has_local_steps: false, ..SearchedSpecs::built_in(batches.clone(), size) };
    let known: Vec<Arc<dyn Rounds>> = vec![
        Arc::new(sgd),
        Arc::new(SearchedSpecs::built_in(batches, size)),
        Arc::new(SearchedSpecs::built_in(Spec::FedAvg(fedavg::Settings::new(1.0, 1)), size)),
        Arc::new(SearchedSpecs::built_in(Spec::Scaffold(scaffold::Settings::new(1.0, 1)), size)),
    ];
    let asked = Search {
        algorithms: (0..known.len()).collect(),
        known,
        clients: vec![100],
        targets: vec![0.3, 0.2, 0.1, 0.06, 0.03],
        local_steps: (0..=12).map(|power| 1 << power).collect(),
        step_sizes: StepSizes { from: 1e-4, to: 1.0, points: 60 },
        refinements: 0,
        prices: Vec::new(),
        start: StartError::Isotropic { mean_square: 1.0 },
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
    let fedlsa: fn(f64, u64) -> Terms = Terms::fedavg;
    for (name, terms) in [("FedLSA", fedlsa), ("SCAFFLSA", Terms::scaffold)] {
        group.bench_function(format!("{name}, N = 100, d = 8, H = 10 000, 50 rounds"), |b| {
            b.iter(|| black_box(curve(&hundred, &terms(0.01, 10_000), 50)));
        });
        group.bench_function(format!("{name}, N = 1 000 000 of two kinds, 1000 rounds"), |b| {
            b.iter(|| black_box(curve(&million, &terms(0.01, 100), 1000)));
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
