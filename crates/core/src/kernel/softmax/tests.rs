//! Every instruction set against the definition.

use super::*;
use crate::kernel::cohort::testing::{assert_paths, plain_steps, thetas};
use crate::kernel::product::product;
use crate::kernel::vectors::axpy;
use crate::kernel::{Proximal, descend};
use crate::problem::mean_of_calls;
use crate::rng::Stream;

/// Tables of random records with entries of the standard deviation `scale`, for this number of clients.
fn tables(d: usize, classes: usize, clients: usize, scale: f64) -> ClassTables {
    let mut rng = Stream::shared_instance(7);
    let mut sets = Vec::new();
    for n in [5, 11, 3, 40].into_iter().cycle().take(clients) {
        let rows = (0..n * d).map(|_| scale * rng.gaussian()).collect();
        let labels = (0..n).map(|i| (i * i % classes) as u8).collect();
        sets.push((rows, labels));
    }
    ClassTables::new(d, classes, 0.1, &sets)
}

/// The same tables with loss weights that differ from record to record.
fn weighted(tables: &ClassTables) -> ClassTables {
    let mut weights = Vec::new();
    for set in 0..tables.sets() {
        let count = tables.labels(set).len();
        weights.push((0..count).map(|i| 0.3 + 0.7 * (i % 4) as f64).collect());
    }
    tables.clone().with_loss_weights(weights)
}

/// Numbers of features, numbers of classes and standard deviations of records.
fn sizes() -> impl Iterator<Item = (usize, usize, f64)> {
    let dimensions = (1..=35).chain([47, 48, 49, 61, 64, 65, 100, 130]);
    let classes = [2, 3, 4, 5, 6, 7, 9, 10, 11, 17, 20, 31];
    let both = dimensions.zip(classes.into_iter().cycle());
    // With 60, logits are so far apart that e^(u − m) underflows.
    let all = both.chain([(8, 100), (30, 33), (2, 2), (300, 3), (784, 2)]);
    all.zip([1.0, 3.0, 60.0].into_iter().cycle()).map(|((d, k), scale)| (d, k, scale))
}

#[test]
fn every_path_gives_the_bits_of_the_definition() {
    for (d, classes, scale) in sizes() {
        let plain = tables(d, classes, 4, scale / (1.0 + 0.1 * d as f64));
        let weighted = weighted(&plain);
        for (tables, clients, steps, batch) in [
            (&plain, 1, 0, 1),
            (&plain, 4, 20, 1),
            (&weighted, 3, 1, 1),
            (&weighted, 2, 7, 1),
            (&weighted, 2, 7, 3),
            (&plain, 3, 2, 32),
        ] {
            let define = plain_steps(d * classes, |client, theta, rng, field| {
                let records = tables.labels(client).len();
                tables.field(client, theta, batch, || rng.index(records), field);
            });
            let steps = |client: usize| steps + client as u64 % 2;
            let what = format!("K {classes}, batch {batch}");
            assert_paths(&what, [1, d * classes, clients], steps, define, |path, cohort| {
                tables.advance_on(path, batch, cohort);
            });
        }
    }
}

/// Means of several calls, more of them than are drawn together, and proximal terms.
#[test]
fn extended_steps_have_the_bits_of_the_definition_on_every_path() {
    for (d, classes, scale) in sizes() {
        let anchor: Vec<f64> = (0..d * classes).map(|i| 0.03 * (i % 11) as f64 - 0.2).collect();
        for (batch, calls, weight) in
            [(1, 1, 0.7), (3, 1, 0.0), (3, 4, 0.0), (1, 3, 0.2), (10, 60, 0.5), (300, 2, 0.0)]
        {
            let tables = weighted(&tables(d, classes, 2, scale / (1.0 + 0.1 * d as f64)));
            let proximal = Proximal { weight, anchor: &anchor };
            let define = |cohort: Cohort<'_, ()>| {
                cohort.each(|local| {
                    let mut field = vec![0.0; d * classes];
                    let mut one = field.clone();
                    for _ in 0..local.steps {
                        mean_of_calls(local.batch, &mut field, &mut one, |out| {
                            let rng = &mut *local.draws.rng;
                            let records = tables.labels(local.client).len();
                            let next_record = || rng.index(records);
                            tables.field(local.client, local.theta, batch, next_record, out);
                        });
                        proximal.add_to(local.theta, &mut field);
                        descend(local.theta, &field, local.correction, local.step);
                    }
                });
            };
            let steps = |client: usize| 2 + client as u64 % 2;
            let what = format!("K {classes}, {calls} of {batch}");
            assert_paths(&what, [calls, d * classes, 2], steps, define, |path, cohort| {
                let mut cohort = cohort;
                cohort.extended = Some(proximal);
                tables.advance_on(path, batch, cohort);
            });
        }
    }
}

/// The anchor of [`Proximal::NONE`] is empty, but θ has four numbers.
#[test]
#[should_panic(expected = "anchor")]
fn an_anchor_of_another_length_is_refused() {
    let tables = tables(2, 2, 1, 1.0);
    let run = |mut cohort: Cohort<'_, ()>| {
        cohort.extended = Some(Proximal::NONE);
        tables.advance_on(InstructionSet::best(), 1, cohort);
    };
    thetas([2, 4, 1], |_| 1, run);
}

#[test]
fn sums_over_a_set_have_the_bits_of_plain_loops_on_every_path() {
    for (d, classes, scale) in sizes() {
        let tables = tables(d, classes, 4, scale);
        let theta: Vec<f64> = (0..d * classes).map(|i| 0.1 * (i % 7) as f64 - 0.3).collect();
        for set in 0..4 {
            let rows = tables.rows(set);
            let mut logits = vec![0.0; rows.len() * classes];
            for (row, logits) in rows.iter().zip(logits.chunks_exact_mut(classes)) {
                product(&theta, row, logits);
            }
            let mut sums = theta.clone();
            for (row, factors) in rows.iter().zip(logits.chunks_exact(classes)) {
                for (sums, factor) in sums.chunks_exact_mut(d).zip(factors) {
                    axpy(*factor, row, sums);
                }
            }
            for path in InstructionSet::available() {
                assert_eq!(tables.logits_on(path, set, &theta, None), logits, "{d} {path:?}");
                let mut out = theta.clone();
                tables.add_rows_on(path, set, &logits, &mut out);
                assert_eq!(out, sums, "{d} {classes} {path:?}");
            }
        }
    }
}

/// Also for changes of the logits beyond what an exponential has room for, and of one record among
/// others.
#[test]
fn divergences_have_the_bits_of_the_definition_on_every_path() {
    for (d, classes, scale) in sizes() {
        let tables = tables(d, classes, 4, scale);
        for size in [0.0, 1e-9, 0.03, 1.0, 10.0, 300.0, f64::INFINITY, f64::NAN] {
            let theta: Vec<f64> =
                (0..d * classes).map(|i| size * ((i * i % 7) as f64 - 3.0)).collect();
            for set in 0..4 {
                let p = tables.probabilities(set, &vec![0.01; d * classes]);
                let scalar = InstructionSet::available()[0];
                let mut along = tables.logits_on(scalar, set, &theta, None);
                let records = p.chunks_exact(classes).zip(along.chunks_exact_mut(classes));
                let expected: Vec<u64> = records.map(|(p, h)| divergence(p, h).to_bits()).collect();
                for path in InstructionSet::available() {
                    let divergences = tables.logits_on(path, set, &theta, Some(&p));
                    let got: Vec<u64> = divergences.into_iter().map(f64::to_bits).collect();
                    assert_eq!(got, expected, "d {d}, K {classes}, θ {size}, {path:?}");
                }
            }
        }
    }
}
