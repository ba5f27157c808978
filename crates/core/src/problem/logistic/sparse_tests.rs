//! Sparse records against the dense problem on the same records.

use super::super::{Logistic, dense_tables, generated};
use super::*;
use crate::federated::{Conditions, Federated, Run, Terms};
use crate::kernel::SparseRows;
use crate::kernel::records::RecordTables;
use crate::problem::{Exact, Facts, InstanceInputs, Problem, RecordsOf, check};
use crate::rng::Stream;
use crate::sample;

/// These records in rows of all their numbers.
fn densely(loss: Loss, sets: &[SparseRows]) -> RecordTables {
    let rows: Vec<_> = sets.iter().map(SparseRows::to_dense).collect();
    dense_tables(sets[0].dim(), &loss, &rows)
}

/// A problem and the dense problem on its records.
fn both(settings: &generated::Settings) -> (SparseLogistic, Logistic) {
    let sparse = sample::build(settings, 3);
    let loss = Loss { l2: settings.l2.value(), margin: 0.0, batch: settings.batch };
    let dense = Logistic::new(loss, densely(loss, &sparse.records.sets), InstanceInputs::default());
    (sparse, dense.unwrap())
}

/// A sparse and a dense problem as [`both`] makes them, with unequal shares and a test set.
fn weighted(settings: &generated::Settings) -> (SparseLogistic, Logistic) {
    let SparseLogistic { records, loss, .. } = sample::build(settings, 3);
    let test = sample::build(settings, 4).records.sets.swap_remove(0);
    let given =
        InstanceInputs { shares: Some(vec![0.1, 0.2, 0.3, 0.4]), ..InstanceInputs::default() };
    let dense = Logistic::new(loss, densely(loss, &records.sets), given.clone()).unwrap();
    let dense = dense.with_test(densely(loss, std::slice::from_ref(&test)));
    let sparse = SparseLogistic::new(loss, records, given).unwrap();
    (sparse.with_test(SparseRecords::new(loss, vec![test])), dense)
}

/// Checks that numbers differ by at most `most` times the largest of those that are wanted.
#[track_caller]
fn assert_close(have: &[f64], want: &[f64], most: f64) {
    let size = want.iter().fold(1e-300_f64, |size, x| size.max(x.abs()));
    for (have, want) in have.iter().zip(want) {
        assert!((have - want).abs() <= most * size, "{have}, not {want}");
    }
    assert_eq!(have.len(), want.len());
}

#[test]
fn the_oracle_has_the_stated_mean_and_covariance() {
    let settings = generated::Settings { dimension: 6, nonzeros: 2, batch: 2, ..sample::sparse() };
    let problem = sample::build(&settings, 3);
    check::roots(&problem, 2e-15);
    check::agree(&problem, 100_000);
}

#[test]
fn facts_are_those_of_the_dense_problem() {
    let equal = both(&sample::sparse());
    let unequal = weighted(&sample::sparse());
    assert_eq!(equal.0.unequal_shares(), None);
    assert_eq!(unequal.0.unequal_shares(), unequal.1.unequal_shares());
    assert!(crate::kernel::squared_distance(equal.0.optimum(), unequal.0.optimum()) > 1e-4);
    facts_agree(&equal.0, &equal.1);
    facts_agree(&unequal.0, &unequal.1);
    assert_eq!(equal.0.loss(equal.0.optimum(), RecordsOf::Test), None);
}

/// Checks that the facts of a sparse and a dense problem on the same records are equal up to rounding.
#[track_caller]
fn facts_agree(sparse: &SparseLogistic, dense: &Logistic) {
    assert_close(sparse.optimum(), dense.optimum(), 1e-11);
    let theta: Vec<f64> = (0..40).map(|i| 0.3 * f64::from(i % 7) - 1.0).collect();
    let m = Matrix::from_fn(40, 40, |i, j| 1.0 / (1.0 + (i + 2 * j) as f64));
    let s = Matrix::from_fn(41, 41, |i, j| 1.0 / (1.0 + (i + j) as f64));
    for client in 0..4 {
        let [own, of_dense] = [sparse.local_optimum(client), dense.local_optimum(client)];
        assert_close(own.unwrap(), of_dense.unwrap(), 1e-11);
        let mut have = vec![0.0; 40];
        let mut want = vec![0.0; 40];
        sparse.mean_field(client, &theta, &mut have);
        dense.mean_field(client, &theta, &mut want);
        assert_close(&have, &want, 1e-13);
        let pairs = [
            (sparse.jacobian(client), dense.jacobian(client)),
            (sparse.noise_covariance(client), dense.noise_covariance(client)),
            (sparse.noise_map(client, &s).unwrap(), dense.noise_map(client, &s).unwrap()),
        ];
        pairs.iter().for_each(|(have, want)| assert_close(have.entries(), want.entries(), 1e-11));
        let curved = (sparse.curvature(client, &m).unwrap(), dense.curvature(client, &m).unwrap());
        assert_close(&curved.0, &curved.1, 1e-11);
    }
    let gaps = [sparse.suboptimality(&theta), dense.suboptimality(&theta)].map(Option::unwrap);
    assert_close(&gaps[..1], &gaps[1..], 1e-12);
    for of in [RecordsOf::Clients, RecordsOf::Test] {
        for theta in [&theta, &vec![0.0; 40]] {
            let have = sparse.accuracy(theta, of);
            let want = dense.accuracy(theta, of);
            assert_close(have.as_slice(), want.as_slice(), 1e-13);
            let have = sparse.loss(theta, of);
            let want = dense.loss(theta, of);
            assert_close(have.as_slice(), want.as_slice(), 1e-13);
        }
    }
    assert_eq!((sparse.draws(), sparse.dim(), sparse.clients()), (30, 40, 4));
}

/// The labels of generated records, which metrics of classes need: all scores of one sign make the recalls of the two
/// classes 1 and 0, and the dense problem with the same labels has the same AUC.
#[test]
fn classes_of_generated_records_are_their_labels() {
    let settings = sample::sparse();
    let sparse = sample::build(&settings, 3);
    let ones = vec![1.0; settings.dimension];
    let recall = sparse.balanced_accuracy(&ones, RecordsOf::Clients).unwrap();
    assert_eq!(recall, 0.5, "features are positive, so that class 1 is always predicted");
    let sets = &sparse.records.sets;
    let labels: Vec<Vec<u8>> =
        (0..sets.len()).map(|set| sparse.records.labels(set).unwrap().to_vec()).collect();
    let positive = labels.iter().flatten().filter(|label| **label == 1).count() as f64;
    let all = labels.iter().map(Vec::len).sum::<usize>() as f64;
    let accuracy = sparse.accuracy(&ones, RecordsOf::Clients).unwrap();
    assert!((accuracy - positive / all).abs() < 1e-13 && accuracy != 0.5, "{accuracy}");
    let theta: Vec<f64> = (0..40).map(|i| 0.3 * f64::from(i % 7) - 1.0).collect();
    let loss = sparse.loss;
    let dense = densely(loss, sets).with_labels(labels);
    let dense = Logistic::new(loss, dense, InstanceInputs::default()).unwrap();
    let of = RecordsOf::Clients;
    let have = sparse.client_accuracies(&theta, of).unwrap();
    assert_close(&have, &dense.client_accuracies(&theta, of).unwrap(), 1e-13);
    let have = sparse.client_losses(&theta, of).unwrap();
    assert_close(&have, &dense.client_losses(&theta, of).unwrap(), 1e-13);
    let auc = sparse.auc(&theta, of).unwrap();
    assert!(auc > 0.0 && auc < 1.0 && auc != 0.5, "{auc}");
    assert_close(&[auc], &[dense.auc(&theta, of).unwrap()], 1e-13);
}

/// θ after 30 rounds.
fn after<P: Problem>(problem: &P, terms: &Terms) -> Vec<f64> {
    sample::run(problem, terms, &vec![0.5; problem.dim()], 30, 0).estimate().to_vec()
}

#[test]
fn runs_are_those_of_the_dense_problem_on_the_same_draws() {
    for batch in [1, 3] {
        let settings = generated::Settings { batch, ..sample::sparse() };
        for (sparse, dense) in [both(&settings), weighted(&settings)] {
            for terms in sample::terms(0.4, 30) {
                assert_close(&after(&sparse, &terms), &after(&dense, &terms), 1e-11);
            }
        }
    }
}

#[test]
fn runs_without_noise_are_those_of_the_dense_problem() {
    let (sparse, dense) = both(&sample::sparse());
    let sparse = Exact::new(sparse);
    let dense = Exact::new(dense);
    for terms in sample::terms(0.4, 30) {
        assert_close(&after(&sparse, &terms), &after(&dense, &terms), 1e-11);
    }
}

#[test]
fn linearised_runs_are_those_of_the_dense_problem() {
    let (sparse, dense) = both(&sample::sparse());
    let sparse = crate::problem::Twin::new(sparse);
    let dense = crate::problem::Twin::new(dense);
    let terms = Terms::fedavg(0.4, 30);
    assert_close(&after(&sparse, &terms), &after(&dense, &terms), 1e-10);
}

#[test]
fn the_first_clients_stay_and_records_are_as_stated() {
    let few = sample::build(&sample::sparse(), 4);
    let many = sample::build(&generated::Settings { clients: 9, ..sample::sparse() }, 4);
    assert_eq!(few.records.sets, many.records.sets[..4]);
    // The last features are so rare that records are filled up with frequent ones.
    let steep = generated::Settings { frequency_decay: 30.0, nonzeros: 7, ..sample::sparse() };
    for set in sample::build(&steep, 4).records.sets {
        for row in set.iter() {
            assert_eq!(row.indices, [0, 1, 2, 3, 4, 5, 6]);
            let norm: f64 = row.values.iter().map(|x| x * x).sum();
            assert!((norm - 1.0).abs() < 1e-12);
        }
    }
}

/// A d × d matrix would take 320 GB.
#[test]
fn many_features_take_vectors_alone() {
    let wide = generated::Settings { dimension: 200_000, nonzeros: 20, ..sample::sparse() };
    let problem = sample::build(&wide, 1);
    let error = problem.optimum_error().unwrap();
    assert!(error < 1e-10, "{error}");
    let mut mean = vec![0.0; 200_000];
    for client in 0..4 {
        crate::kernel::axpy(0.25, &problem.field_at_optimum(client), &mut mean);
    }
    assert!(mean.iter().all(|x| x.abs() < 1e-11));
    let far = |theta: &[f64]| crate::kernel::squared_distance(theta, problem.optimum());
    let at_start: f64 = far(&vec![0.5; 200_000]);
    let at_end: f64 = far(&after(&problem, &Terms::scaffold(0.4, 30)));
    assert!(at_end < 1e-4 * at_start, "{at_start} {at_end}");
}

/// 20 000 features, of which each record has three; the sets have unequal supports.
fn wide() -> SparseLogistic {
    let d = 20_000;
    let mut rng = Stream::shared_instance(4);
    let mut set = |records: usize| {
        let mut indices = Vec::new();
        for _ in 0..records {
            let mut columns: Vec<u32> = (0..3).map(|_| rng.index(d - 3) as u32).collect();
            columns.sort_unstable();
            columns.iter_mut().zip(0..).for_each(|(column, i)| *column = (*column / 3) * 3 + i);
            indices.extend(columns);
        }
        let values = indices.iter().map(|_| rng.gaussian()).collect();
        let offsets = (0..=records).map(|row| 3 * row).collect();
        SparseRows::new(d, offsets, indices, values).unwrap()
    };
    let loss = Loss { l2: 0.01, margin: 0.0, batch: 1 };
    let records = SparseRecords::new(loss, [4, 9, 1, 30, 7].map(&mut set).to_vec());
    SparseLogistic::new(loss, records, InstanceInputs::default()).unwrap()
}

/// The support of a client is the features that its records have. Where nobody reads the ends of clients
/// (`without_ends`), local steps write the numbers of θ in the support alone. Estimates and control variates
/// have the bits of steps that write whole rows: with one step and many, with and without ξ and a proximal
/// term. Where only some clients participate, ends are formed all the same.
#[test]
fn rounds_on_supports_have_the_bits_of_rounds_on_rows() {
    let problem = wide();
    let start: Vec<f64> = (0..problem.dim()).map(|i| 0.01 * (i % 7) as f64).collect();
    let from = Conditions { seed: 5, replicate: 2, start: &start, rounds: 3, copy: 0 };
    let fedavg = |steps| Terms::fedavg(0.5, steps);
    let all = [
        fedavg(1),
        fedavg(30),
        fedavg(5000),
        Terms { local_steps: vec![3, 8], ..fedavg(1) },
        Terms { batches: vec![2], ..fedavg(6) },
        Terms { proximal: 0.2, ..fedavg(20) },
        Terms { server_step: 0.5, ..Terms::scaffold(0.5, 20) },
        Terms { proximal: 0.2, ..Terms::scaffold(0.5, 6) },
    ];
    for terms in all {
        let [mut rows, mut supports] =
            [(); 2].map(|()| Federated::new(&problem, terms.clone(), &from));
        supports.without_ends();
        for round in 0..3 {
            rows.round();
            supports.round();
            assert!(supports.clients().unwrap().ends.is_empty(), "{terms:?}");
            assert!(rows.estimate() == supports.estimate(), "{terms:?}, round {round}");
            let corrections = |run: &Federated<'_, _>| run.clients().unwrap().corrections.to_vec();
            assert!(corrections(&rows) == corrections(&supports), "{terms:?}, round {round}");
        }
    }
    let mut parts = Federated::new(&problem, Terms { cohort: Some(2), ..fedavg(3) }, &from);
    parts.without_ends();
    assert!(!parts.clients().unwrap().ends.is_empty(), "members alone have ends");
}
