//! The time of a local step of one client in the kernels alone, by problem, dimension and
//! instruction set, with lower limits for any kernel. Read the time per element.
//!
//! `cargo bench --bench local_step`, or `make bench`.

#[path = "support/problems.rs"]
mod problems;

use criterion::{Criterion, criterion_group, criterion_main};
use exactfed::kernel::InstructionSet;
use exactfed::rng::Stream;
use faer::linalg::matmul::matmul;
use faer::{Accum, ColMut, ColRef, MatRef, Par};
use problems::{Bench, group, lms, logistic, quadratic, softmax, streams, td, timing};
use std::hint::black_box;

/// Every instruction set of the fused kernel of TD(0), the loop that only draws, gathers
/// and updates, and the draws alone.
fn temporal_differences(c: &mut Criterion) {
    let (clients, steps) = (100, 1000);
    let problem = td(8, clients);
    let mut group = group(c, "td d=8 N=100 H=1000", clients as u64 * steps);
    let mut bench = Bench::new(&problem, 0.1, steps);
    for path in InstructionSet::available() {
        group.bench_function(format!("{path:?}"), |b| {
            b.iter(|| problem.tables().advance_on(path, bench.cohort()));
        });
    }
    group.bench_function("limit", |b| {
        let (mut streams, mut theta) = (streams(clients), vec![[0.0; 8]; clients]);
        b.iter(|| problem.tables().limit(&mut streams, &mut theta, 0.1, steps));
        black_box(theta);
    });
    group.bench_function("draws alone", |b| {
        let mut streams = streams(clients);
        b.iter(|| {
            for stream in &mut streams {
                let mut left = steps as usize;
                while left > 0 {
                    let ready = black_box(stream.ready()).len().min(left);
                    stream.skip(ready);
                    left -= ready;
                }
            }
        });
    });
    group.finish();
    for d in [2, 4, 10, 16, 32] {
        let problem = td(d, clients);
        let mut group = problems::group(c, &format!("td d={d} N=100 H=100"), 100 * 100);
        let mut bench = Bench::new(&problem, 0.1, 100);
        group.bench_function("problem", |b| b.iter(|| bench.run()));
    }
}

fn logistics(c: &mut Criterion) {
    let (clients, steps) = (10_u64, 1000);
    for d in [2, 10, 50] {
        let problem = logistic(d, 200, 10);
        let mut group = group(c, &format!("logistic d={d}"), clients * steps);
        let mut bench = Bench::new(&problem, 0.01, steps);
        for path in InstructionSet::available() {
            group.bench_function(format!("{path:?}"), |b| {
                b.iter(|| problem.advance_on(path, bench.cohort()));
            });
        }
        group.finish();
    }
}

/// Ten classes, one record a step and 32: the time per record.
fn softmaxes(c: &mut Criterion) {
    let (clients, steps) = (20, 128);
    for d in [64, 784] {
        for batch in [1, 32] {
            let problem = softmax(d, clients, batch);
            let name = format!("softmax d={d} K=10 B={batch}");
            let mut group = group(c, &name, clients as u64 * steps);
            let mut bench = Bench::new(&problem, 0.1, steps / batch as u64);
            for path in InstructionSet::available() {
                group.bench_function(format!("{path:?}"), |b| {
                    b.iter(|| problem.advance_on(path, bench.cohort()));
                });
            }
            group.finish();
        }
    }
}

/// Fills a slice with Gaussians, which every program that draws this noise must do.
fn gaussians(rng: &mut Stream, out: &mut [f64]) {
    out.iter_mut().for_each(|x| *x = rng.gaussian());
}

fn filled(n: usize, seed: u64) -> Vec<f64> {
    let mut out = vec![0.0; n];
    gaussians(&mut Stream::shared_instance(seed), &mut out);
    out
}

/// A d × d product, by faer.
fn product(matrix: &[f64], x: &[f64], out: &mut [f64]) {
    let d = x.len();
    let matrix = MatRef::from_row_major_slice(matrix, d, d);
    let (x, out) = (ColRef::from_slice(x), ColMut::from_slice_mut(out));
    matmul(out.as_mat_mut(), Accum::Replace, matrix, x.as_mat(), 1.0, Par::Seq);
}

/// A number of steps that takes about the same time for every d.
fn steps(d: usize) -> u64 {
    (100_000 / (d * d) as u64).max(2)
}

/// One client's step on a quadratic, and its lower limit: d Gaussians and faer's product.
fn quadratics(c: &mut Criterion) {
    for d in [8, 64, 512] {
        let problem = quadratic(d, 1, [0.0, 0.0]);
        let mut group = group(c, &format!("quadratic d={d}"), steps(d));
        let mut bench = Bench::new(&problem, 0.01, steps(d));
        group.bench_function("problem", |b| b.iter(|| bench.run()));
        group.bench_function("floor", |b| {
            let (mut rng, matrix) = (Stream::shared_instance(2), filled(d * d, 3));
            let (mut theta, mut field, mut noise) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
            b.iter(|| {
                for _ in 0..steps(d) {
                    gaussians(&mut rng, &mut noise);
                    product(&matrix, &theta, &mut field);
                    for ((theta, field), noise) in theta.iter_mut().zip(&field).zip(&noise) {
                        *theta -= 1e-4 * (field + noise);
                    }
                }
            });
            black_box(theta);
        });
        group.finish();
    }
}

/// One client's step on a stream of regressors, and its lower limit: d + 1 Gaussians, two
/// products of vectors for the regressor's covariance, two for the error.
fn streaming(c: &mut Criterion) {
    for d in [8, 64, 512] {
        let problem = lms(d);
        let steps = steps(d).min(1000) * 8;
        let mut group = group(c, &format!("lms d={d}"), steps);
        let mut bench = Bench::new(&problem, 1e-3, steps);
        group.bench_function("problem", |b| b.iter(|| bench.run()));
        group.bench_function("floor", |b| {
            let mut rng = Stream::shared_instance(2);
            let (roots, axis, model) = (filled(d, 3), filled(d, 4), filled(d, 5));
            let (mut theta, mut h) = (vec![0.0; d], vec![0.0; d]);
            let dot = |x: &[f64], y: &[f64]| {
                let mut acc = [0.0; 8];
                for (x, y) in x.as_chunks::<8>().0.iter().zip(y.as_chunks::<8>().0) {
                    (0..8).for_each(|i| acc[i] += x[i] * y[i]);
                }
                acc.iter().sum::<f64>()
            };
            b.iter(|| {
                for _ in 0..steps {
                    gaussians(&mut rng, &mut h);
                    h.iter_mut().zip(&roots).for_each(|(h, root)| *h *= root);
                    let along = 2e-3 * dot(&axis, &h);
                    h.iter_mut().zip(&axis).for_each(|(h, axis)| *h -= along * axis);
                    let error = dot(&h, &theta) - dot(&h, &model) - 0.1 * rng.gaussian();
                    theta.iter_mut().zip(&h).for_each(|(theta, h)| *theta -= 1e-5 * error * h);
                }
            });
            black_box(theta);
        });
        group.finish();
    }
}

criterion_group! { name = benches; config = timing(); targets = temporal_differences, logistics, softmaxes, quadratics, streaming }
criterion_main!(benches);
