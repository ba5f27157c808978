//! With the split `all` clients are as if each held its own copy of the records, which are stored once.

use super::*;
use crate::federated::{Run as _, Terms};
use crate::linalg::Matrix;
use crate::problem::arrays::{Column, Contents};
use crate::problem::records::Sampling;
use crate::problem::{Problem, Settings as _, check, least_squares, logistic, softmax};
use crate::rng::Stream;
use crate::sample::{self, Fixed, distance};

const CLIENTS: usize = 3;
const RECORDS: usize = 20;

/// A file of 20 records with two features and a label of two classes, `copies` times one after the other; `who` numbers
/// the copies.
fn file(copies: usize) -> Fixed {
    let mut rng = Stream::shared_instance(7);
    let labels: Vec<f64> = (0..RECORDS).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
    let mut feature = || -> Vec<f64> { labels.iter().map(|y| y + rng.gaussian()).collect() };
    let columns = [("a", feature()), ("b", feature()), ("label", labels.clone())];
    let mut all = Vec::new();
    for (name, values) in columns {
        all.push((name.to_owned(), Column::Numbers(values.repeat(copies))));
    }
    let who = (0..copies).flat_map(|copy| vec![copy as f64; RECORDS]).collect();
    all.push(("who".to_owned(), Column::Numbers(who)));
    Fixed(Contents::Table(all))
}

/// The records of [`file`], all of which every client holds.
fn shared(weights: &ClientWeights, storage: Storage) -> Dataset {
    Dataset {
        split: Split::All,
        clients: Some(CLIENTS),
        features: vec!["a".into(), "b".into()],
        standardise: false,
        weights: weights.clone(),
        storage: Some(storage),
        ..Dataset::example()
    }
}

/// The records of [`file`], of which every client holds a copy.
fn copied(weights: &ClientWeights, storage: Storage) -> Dataset {
    Dataset { split: Split::Column("who".into()), clients: None, ..shared(weights, storage) }
}

/// The largest difference of two entries at the same place.
fn largest_difference(a: &Matrix, b: &Matrix) -> f64 {
    let n = a.rows();
    let places = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    places.fold(0.0, |most: f64, place| most.max((a[place] - b[place]).abs()))
}

/// Expects that both instances have the same facts up to rounding, and the same local steps to the last bit.
#[track_caller]
fn assert_alike<P: Problem>(one: &P, copies: &P) {
    assert_eq!((one.clients(), copies.clients()), (CLIENTS, CLIENTS));
    assert!(distance(one.optimum(), copies.optimum()) < 1e-12);
    for client in 0..CLIENTS {
        assert_eq!(one.share(client), copies.share(client));
        assert!(largest_difference(&one.jacobian(client), &copies.jacobian(client)) < 1e-12);
        let covariances = [one.noise_covariance(client), copies.noise_covariance(client)];
        assert!(largest_difference(&covariances[0], &covariances[1]) < 1e-12);
    }
    let start = vec![0.25; one.dim()];
    for terms in [Terms::fedavg(0.1, 5), Terms::scaffold(0.1, 5)] {
        let ends = [one, copies]
            .map(|problem| sample::run(problem, &terms, &start, 3, 0).estimate().to_vec());
        assert_eq!(ends[0], ends[1]);
        assert!(distance(&ends[0], &start) > 0.01);
    }
}

#[test]
fn clients_that_hold_all_records_are_as_if_each_had_a_copy() {
    let given = ClientWeights::Given(vec![0.5, 0.2, 0.3]);
    for weights in [ClientWeights::Equal, ClientWeights::Records, given] {
        let datasets = |storage| [(shared(&weights, storage), 1), (copied(&weights, storage), 3)];
        let ridge = datasets(Storage::Dense).map(|(dataset, copies)| {
            let sampling = Sampling::default();
            let settings = least_squares::Settings { dataset, l2: 0.1.into(), batch: 2, sampling };
            settings.build(1, &file(copies)).unwrap()
        });
        assert_alike(&ridge[0], &ridge[1]);
        let softmax = datasets(Storage::Dense).map(|(dataset, copies)| {
            let settings = softmax::dataset::Settings {
                dataset,
                l2: 0.1.into(),
                class_weights: ClassWeights::Equal,
                batch: 1,
                sampling: Sampling::default(),
            };
            settings.build(1, &file(copies)).unwrap()
        });
        assert_alike(&softmax[0], &softmax[1]);
        let logistic = |dataset| logistic::dataset::Settings {
            dataset,
            l2: 0.1.into(),
            margin: 0.0,
            class_weights: ClassWeights::Balanced,
            batch: 1,
            sampling: Sampling::default(),
        };
        let dense = datasets(Storage::Dense)
            .map(|(dataset, copies)| logistic(dataset).build(1, &file(copies)).unwrap());
        assert_alike(&dense[0], &dense[1]);
        let sparse = datasets(Storage::Sparse).map(|(dataset, copies)| {
            let file = file(copies);
            let loaded = dataset.load(&file, 1, FeatureForms::DenseOrSparse).unwrap();
            logistic(dataset).build_sparse(&loaded, 3, &file).unwrap()
        });
        assert_alike(&sparse[0], &sparse[1]);
    }
}

/// The draws of clients that share their records have the moments that the exact theory takes.
#[test]
fn facts_agree_with_draws() {
    let dataset = shared(&ClientWeights::Equal, Storage::Dense);
    let sampling = Sampling::default();
    let settings = least_squares::Settings { dataset, l2: 0.1.into(), batch: 1, sampling };
    check::agree(&settings.build(1, &file(1)).unwrap(), 20_000);
}

/// More clients than records are possible, and records are stored once; a draw of the test set cannot be within
/// clients.
#[test]
fn records_are_stored_once_for_any_number_of_clients() {
    let many = Dataset { clients: Some(1000), ..shared(&ClientWeights::Equal, Storage::Dense) };
    assert_eq!(many.check(), []);
    assert!(!many.uses_seed());
    let loaded = many.load(&file(1), 1, FeatureForms::Dense).unwrap();
    assert_eq!((loaded.clients, loaded.held.len(), loaded.held[0].len()), (1000, 1, RECORDS));
    let without = Dataset { clients: None, ..many.clone() };
    assert_eq!(without.check()[0].key, "dataset.clients");
    let test = Some(TestRecords::Fraction(0.2));
    let within = Dataset { test, test_within: Some(TestGroups::Clients), ..many };
    assert_eq!(within.check()[0].key, "dataset.test-within");
}
