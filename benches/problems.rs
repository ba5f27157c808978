//! A local step of each problem, and a loop written for this problem alone (fixed d, the
//! same draws, no abstraction). A problem without a fused kernel must be at least half as
//! fast as its loop.
//!
//! `cargo bench --bench problems`, or `make bench`.

#[path = "support/problems.rs"]
mod problems;

use criterion::{Criterion, criterion_group, criterion_main};
use exactfed::kernel::alias::Alias;
use exactfed::problem::arrays::{Array, Column, Contents, DataFile, Files, FilesError};
use exactfed::problem::dataset::{Dataset, Split};
use exactfed::problem::garnet::Heterogeneity;
use exactfed::problem::td::Noise;
use exactfed::problem::{Problem, Sampling, Settings, atoms, least_squares};
use exactfed::rng::Stream;
use problems::Bench;
use std::hint::black_box;
use std::sync::Arc;

const D: usize = 10;
const STEPS: u64 = 1000;
const RECORDS: usize = 100;

/// Times the problem's `advance` for one client and the loop `hand`, H steps each.
fn pair<P: Problem>(
    c: &mut Criterion,
    name: &str,
    problem: &P,
    mut hand: impl FnMut(&mut Stream, &mut [f64; D]),
) {
    assert_eq!(problem.dim(), D);
    assert_eq!(problem.clients(), 1);
    let mut group = problems::group(c, name, STEPS);
    let mut bench = Bench::new(problem, 0.01, STEPS);
    group.bench_function("problem", |b| b.iter(|| bench.run()));
    group.bench_function("by hand", |b| {
        let (mut rng, mut theta) = (problems::streams(1).remove(0), [0.0; D]);
        b.iter(|| hand(&mut rng, &mut theta));
        black_box(theta);
    });
    group.finish();
}

fn rows<const W: usize>(n: usize) -> Vec<[f64; W]> {
    let mut rng = Stream::shared_instance(3);
    (0..n).map(|_| std::array::from_fn(|_| rng.gaussian())).collect()
}

#[inline(always)]
fn dot(x: &[f64], y: &[f64; D]) -> f64 {
    (0..D).map(|i| x[i] * y[i]).sum()
}

fn quadratics(c: &mut Criterion) {
    let (hessian, offset) = (rows::<D>(D), rows::<D>(1)[0]);
    pair(c, "quadratic", &problems::quadratic(D, 1, [0.0, 0.0]), |rng, theta| {
        for _ in 0..STEPS {
            let field: [f64; D] = std::array::from_fn(|i| {
                0.01 * dot(&hessian[i], theta) - offset[i] + rng.gaussian()
            });
            (0..D).for_each(|i| theta[i] -= 0.01 * field[i]);
        }
    });
}

fn streams(c: &mut Criterion) {
    let (axis, model) = (rows::<D>(1)[0], rows::<D>(2)[1]);
    pair(c, "lms", &problems::lms(D), |rng, theta| {
        for _ in 0..STEPS {
            let mut h: [f64; D] = std::array::from_fn(|i| (1.0 + i as f64) * rng.gaussian());
            let along = 0.1 * dot(&axis, &h);
            (0..D).for_each(|i| h[i] -= along * axis[i]);
            let error = dot(&h, theta) - dot(&h, &model) - 0.1 * rng.gaussian();
            (0..D).for_each(|i| theta[i] -= 1e-5 * error * h[i]);
        }
    });
}

struct Fixed(Contents);

impl Files for Fixed {
    fn open(&self, _file: &DataFile) -> Result<Arc<Contents>, FilesError> {
        Ok(Arc::new(self.0.clone()))
    }
}

fn file() -> DataFile {
    DataFile::at("a.npz")
}

fn linear(c: &mut Criterion) {
    let m = 4;
    let mut rng = Stream::shared_instance(5);
    let mut array = |shape: &[usize], scale: f64, diagonal: bool| {
        let entry = |i: usize| {
            let one = f64::from(u8::from(diagonal && (i / D) % D == i % D));
            one + scale * rng.gaussian()
        };
        Array::of_numbers(shape.to_vec(), (0..shape.iter().product()).map(entry).collect())
    };
    let a = array(&[1, m, D, D], 0.1, true);
    let b = array(&[1, m, D], 1.0, false);
    let p = Array::of_numbers(vec![1, m], vec![0.25; m]);
    let arrays = [("A".to_owned(), a), ("b".to_owned(), b), ("p".to_owned(), p)].into();
    let problem = atoms::Settings { file: file() }.build(1, &Fixed(Contents::Arrays(arrays)));
    let (matrices, offsets) = (rows::<{ D * D }>(m), rows::<D>(m));
    let alias = Alias::new(&[(0u32, 0.25), (1, 0.25), (2, 0.25), (3, 0.25)]);
    pair(c, "atoms", &problem.unwrap(), |rng, theta| {
        for _ in 0..STEPS {
            let z = alias.pick(rng.bits()) as usize;
            let field: [f64; D] = std::array::from_fn(|i| {
                0.01 * dot(&matrices[z][i * D..][..D], theta) - offsets[z][i]
            });
            (0..D).for_each(|i| theta[i] -= 0.01 * field[i]);
        }
    });
}

fn records(c: &mut Criterion) {
    let held = rows::<D>(RECORDS);
    pair(c, "logistic", &problems::logistic(D, RECORDS, 1), |rng, theta| {
        for _ in 0..STEPS {
            let row = &held[rng.index(RECORDS)];
            let weight = 1.0 / (1.0 + libm::exp(dot(row, theta)));
            (0..D).for_each(|i| theta[i] -= 0.01 * (0.1 * theta[i] - weight * row[i]));
        }
    });
    let column = |j: usize| Column::Numbers(held.iter().map(|row| row[j]).collect());
    let mut columns: Vec<(String, Column)> = (0..D).map(|j| (j.to_string(), column(j))).collect();
    columns.push(("label".into(), column(0)));
    let dataset = Dataset {
        file: file(),
        clients: Some(1),
        split: Split::Iid,
        standardise: false,
        intercept: false,
        ..Dataset::example()
    };
    let squares = least_squares::Settings {
        dataset,
        l2: 0.1.into(),
        batch: 1,
        sampling: Sampling::default(),
    };
    let problem = squares.build(1, &Fixed(Contents::Table(columns))).unwrap();
    pair(c, "least squares", &problem, |rng, theta| {
        for _ in 0..STEPS {
            let row = &held[rng.index(RECORDS)];
            let error = dot(row, theta) - row[0];
            (0..D).for_each(|i| theta[i] -= 0.01 * (0.1 * theta[i] + error * row[i]));
        }
    });
}

fn trajectories(c: &mut Criterion) {
    let (independent, noise) =
        (Heterogeneity::Independent {}, Noise::Markov { burn_in: 100, calls_per_state: 1.0 });
    let problem = problems::garnet([40, D, 1], independent, noise, 1);
    let phi = rows::<D>(40);
    let chain: Vec<Alias<u32>> = (0..40u32)
        .map(|s| Alias::new(&[(s, 1.0), ((s + 1) % 40, 1.0), ((s * 7) % 40, 1.0), (39 - s, 1.0)]))
        .collect();
    pair(c, "trajectory", &problem, |rng, theta| {
        let mut s = 0;
        for _ in 0..STEPS {
            let next = chain[s].pick(rng.bits()) as usize;
            let change: [f64; D] = std::array::from_fn(|i| phi[s][i] - 0.95 * phi[next][i]);
            let delta = dot(&change, theta) - 1.0;
            (0..D).for_each(|i| theta[i] -= 1e-3 * delta * phi[s][i]);
            s = next;
        }
    });
}

criterion_group!(benches, quadratics, streams, linear, records, trajectories);
criterion_main!(benches);
