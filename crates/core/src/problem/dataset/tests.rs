//! Records are read and partitioned as in the settings.

use super::*;
use crate::problem::arrays::{Column, Contents};
use crate::problem::{
    Facts, RecordsOf, Sampling, Settings as _, check, least_squares, logistic, softmax,
};
use crate::rng::Stream;
use crate::sample::{self, Fixed, distance};

/// A file of 60 records with the columns `a` and `b`, features that follow the label, `label`, which is 0 or 1, and
/// `group`, one of three texts.
fn table() -> Contents {
    let mut rng = Stream::shared_instance(3);
    let label: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i % 4 == 0))).collect();
    let feature = |rng: &mut Stream| -> Vec<f64> {
        label.iter().map(|y| 10.0 + 3.0 * (y + rng.gaussian())).collect()
    };
    let a = feature(&mut rng);
    let b = feature(&mut rng);
    let group = (0..60).map(|i| ["x", "z", "y"][i % 3].to_owned()).collect();
    Contents::Table(vec![
        ("a".into(), Column::Numbers(a)),
        ("label".into(), Column::Numbers(label)),
        ("group".into(), Column::Text(group)),
        ("b".into(), Column::Numbers(b)),
    ])
}

/// Five clients, or those of the column, and both features of [`table`].
fn dataset(split: Split) -> Dataset {
    let clients = (!matches!(split, Split::Column(_))).then_some(5);
    let features = vec!["b".into(), "a".into()];
    Dataset { split, clients, features, ..Dataset::example() }
}

/// The records of [`table`], and for each client the indices of its records.
fn partitioned(split: Split) -> (Records, Vec<Vec<usize>>) {
    let dataset = dataset(split);
    assert_eq!(dataset.check(), []);
    let (records, _) = dataset.read_records(&Fixed(table()), 1, FeatureForms::Dense).unwrap();
    let parts = dataset.partition(&records, 1).unwrap();
    (records, parts)
}

/// Why the records of this file cannot be used.
fn said(dataset: &Dataset, file: Contents) -> String {
    dataset.read_records(&Fixed(file), 1, FeatureForms::Dense).map(|_| ()).unwrap_err().message
}

fn logistic(dataset: Dataset) -> logistic::dataset::Settings {
    logistic::dataset::Settings {
        dataset,
        l2: 0.1.into(),
        margin: 0.0,
        class_weights: ClassWeights::Equal,
        batch: 1,
        sampling: Sampling::default(),
    }
}

fn squares(dataset: Dataset) -> least_squares::Settings {
    least_squares::Settings { dataset, l2: 0.1.into(), batch: 1, sampling: Sampling::default() }
}

#[test]
fn every_record_is_dealt_once() {
    for split in [
        Split::Iid,
        Split::ByLabel,
        Split::Dirichlet(2.0),
        Split::Quantity(0.1),
        Split::Column("group".into()),
    ] {
        let (_, parts) = partitioned(split.clone());
        let mut all: Vec<usize> = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..60).collect::<Vec<_>>(), "{split:?}");
    }
}

#[test]
fn splits_are_what_they_say() {
    let count_positive = |records: &Records, part: &[usize]| {
        let signs = records.signs_of(records).unwrap();
        part.iter().filter(|&&i| signs[i] > 0.0).count()
    };
    let (records, by_label) = partitioned(Split::ByLabel);
    // 15 of the 60 records have the greater label, and each client holds 12.
    let positive: Vec<usize> = by_label.iter().map(|part| count_positive(&records, part)).collect();
    assert_eq!(positive, [0, 0, 0, 3, 12]);
    let (_, columns) = partitioned(Split::Column("group".into()));
    assert_eq!(columns.len(), 3);
    assert!(columns[1].iter().all(|i| i % 3 == 2), "y is the second in order");
    let sizes =
        |alpha| partitioned(Split::Quantity(alpha)).1.iter().map(Vec::len).collect::<Vec<_>>();
    assert!(sizes(1e6).iter().all(|n| (11..=13).contains(n)), "{:?}", sizes(1e6));
    let uneven = sizes(0.05);
    assert!(uneven.contains(&1) && uneven.iter().any(|n| *n > 40), "{uneven:?}");
    let (_, even) = partitioned(Split::Dirichlet(1e6));
    assert!(even.iter().all(|s| (10..=14).contains(&s.len())), "{even:?}");
}

#[test]
fn features_are_standard_and_in_the_order_asked_for() {
    let (records, _) = partitioned(Split::Iid);
    assert_eq!(records.dimension(), 3);
    let b: Vec<f64> = (0..60).map(|i| records.row(i)[0]).collect();
    let mean = b.iter().sum::<f64>() / 60.0;
    let variance = b.iter().map(|x| x * x).sum::<f64>() / 60.0;
    assert!(mean.abs() < 1e-13 && (variance - 1.0).abs() < 1e-13);
    assert!((0..60).all(|i| records.row(i)[2] == 1.0));
    let Contents::Table(columns) = table() else { panic!() };
    let Column::Numbers(raw) = &columns[3].1 else { panic!() };
    assert_eq!(raw[7] > raw[8], b[7] > b[8], "the first feature is b");
}

#[test]
fn the_oracle_of_ridge_regression_matches_its_facts() {
    let squares = least_squares::Settings { batch: 2, ..squares(dataset(Split::Iid)) };
    let problem = squares.build(1, &Fixed(table())).unwrap();
    assert_eq!((problem.clients(), problem.dim()), (5, 3));
    check::agree(&problem, 100_000);
}

/// Weighted by their records, clients have the optimum of the pooled records: that of one client
/// that holds them all.
#[test]
fn weights_by_records_pool_them() {
    let pooled =
        |split, clients| Dataset { clients, weights: ClientWeights::Records, ..dataset(split) };
    let many = pooled(Split::Dirichlet(2.0), Some(5));
    let one = pooled(Split::Iid, Some(1));
    let of = |dataset: Dataset| {
        let logistic = logistic(dataset.clone());
        let squares = squares(dataset);
        let files = Fixed(table());
        (logistic.build(1, &files).unwrap(), squares.build(1, &files).unwrap())
    };
    let (many, many_squares) = of(many);
    let (one, one_square) = of(one);
    assert!(many.unequal_shares().is_some() && one.unequal_shares().is_none());
    assert!(distance(many.optimum(), one.optimum()) < 1e-12);
    assert!(distance(many_squares.optimum(), one_square.optimum()) < 1e-12);
    let theta = [0.3, -0.2, 0.1];
    let gaps = [many.suboptimality(&theta), one.suboptimality(&theta)].map(Option::unwrap);
    assert!((gaps[0] - gaps[1]).abs() < 1e-13, "{gaps:?}");
    check::roots(&many, 1e-10);
    check::roots(&many_squares, 1e-10);
    assert_eq!(sample::weighted_ridge().unequal_shares().unwrap(), [0.1, 0.2, 0.3, 0.4]);
}

/// The test set is drawn, or marked by a column. The other records are standardised by their own mean and variance,
/// and partitioned as if there were no test set.
#[test]
fn records_are_held_out() {
    let drawn = Dataset { test: Some(TestRecords::Fraction(0.2)), ..dataset(Split::Iid) };
    let open = |dataset: &Dataset, seed| {
        let ClientRecords { records, test, held, .. } =
            dataset.load(&Fixed(table()), seed, FeatureForms::Dense).unwrap();
        assert_eq!(held.concat().len(), records.count());
        (records, test.unwrap())
    };
    let (records, test) = open(&drawn, 1);
    assert_eq!((records.count(), test.count()), (48, 12));
    let mean = |records: &Records| {
        (0..records.count()).map(|i| records.row(i)[0]).sum::<f64>() / records.count() as f64
    };
    assert!(mean(&records).abs() < 1e-13 && mean(&test).abs() > 1e-3);
    assert!((0..12).all(|i| test.row(i)[2] == 1.0));
    let (_, other) = open(&drawn, 2);
    assert_ne!(test.features, other.features, "it depends on the seed");

    let Contents::Table(mut columns) = table() else { panic!() };
    let marks = (0..60).map(|i| f64::from(u8::from(i % 6 == 5))).collect();
    columns.push(("held".into(), Column::Numbers(marks)));
    let files = Fixed(Contents::Table(columns));
    let marked = Dataset {
        test: Some(TestRecords::Column("held".into())),
        features: vec!["b".into(), "a".into()],
        ..dataset(Split::Column("group".into()))
    };
    let ClientRecords { records, test, held, .. } =
        marked.load(&files, 1, FeatureForms::Dense).unwrap();
    let test = test.unwrap();
    assert_eq!((records.count(), test.count(), held.len()), (50, 10, 3));
    assert!((0..10).all(|i| test.groups.as_ref().unwrap().text(i) == "y"));
    let wrong = Dataset { test: Some(TestRecords::Column("a".into())), ..marked };
    let said = wrong.load(&files, 1, FeatureForms::Dense).err().unwrap().message;
    assert!(said.contains("it must be 1 or 0, true or false"), "{said}");
}

/// With a test set that is drawn, the number of clients is the one that every seed gives which leaves each client some
/// records; here seed 0 draws the only record of a client in every fifth file. A column may leave a client out.
#[test]
fn clients_are_counted_before_a_test_set_is_drawn() {
    let drawn = Dataset {
        test: Some(TestRecords::Fraction(0.2)),
        ..dataset(Split::Column("group".into()))
    };
    let marked = Dataset { test: Some(TestRecords::Column("held".into())), ..drawn.clone() };
    let mut lost = 0;
    for only in 0..60 {
        let Contents::Table(mut columns) = table() else { panic!() };
        let Column::Text(groups) = &mut columns[2].1 else { panic!() };
        groups[only] = "w".to_owned();
        let held = (0..60).map(|i| f64::from(u8::from(i == only))).collect();
        columns.push(("held".into(), Column::Numbers(held)));
        let files = Fixed(Contents::Table(columns));
        assert_eq!(drawn.clients_in(&files), Some(4), "record {only}");
        assert_eq!(marked.clients_in(&files), Some(3), "record {only}");
        match drawn.load(&files, 0, FeatureForms::Dense) {
            Ok(loaded) => assert_eq!(loaded.held.len(), 4, "record {only}"),
            Err(_) => lost += 1,
        }
    }
    assert_eq!(lost, 12);
}

/// Records that lack a value are dropped from the clients and from the test set that a column marks.
#[test]
fn marks_of_the_test_set_survive_dropped_records() {
    let Contents::Table(mut columns) = table() else { panic!() };
    let mut marks: Vec<String> = (0..60).map(|i| (i % 6 == 5).to_string()).collect();
    marks[7] = "NA".to_owned();
    columns.push(("held".into(), Column::Text(marks.clone())));
    let place = columns.iter().position(|(name, _)| name == "a").unwrap();
    let Column::Numbers(values) = &mut columns[place].1 else { panic!() };
    // Records 5 and 11 are marked, and record 0 is not.
    for row in [0, 5, 11] {
        values[row] = f64::NAN;
    }
    let dropping = Dataset {
        test: Some(TestRecords::Column("held".into())),
        features: vec!["b".into(), "a".into()],
        missing: Some(MissingValues::Drop),
        ..dataset(Split::Iid)
    };
    let files = Fixed(Contents::Table(columns.clone()));
    let ClientRecords { records, test, .. } =
        dropping.load(&files, 1, FeatureForms::Dense).unwrap();
    assert_eq!((records.count(), test.unwrap().count()), (48, 8));

    marks[9] = "maybe".to_owned();
    columns.last_mut().unwrap().1 = Column::Text(marks);
    let files = Fixed(Contents::Table(columns));
    let said = dropping.load(&files, 1, FeatureForms::Dense).err().unwrap().message;
    assert!(said.contains("row 9 of the column of the test set is \"maybe\""), "{said}");
}

/// Messages count rows as the file has them, also where records before the row are dropped.
#[test]
fn messages_count_records_that_are_dropped() {
    for (name, message) in [
        ("a", "row 9, column `a`: inf is not a finite number"),
        ("label", "row 9: the label is inf, not finite"),
    ] {
        let Contents::Table(mut columns) = table() else { panic!() };
        for (column, values) in &mut columns {
            let Column::Numbers(values) = values else { continue };
            if column == "b" {
                // Records 0 and 4 lack a value and are dropped.
                values[0] = f64::NAN;
                values[4] = f64::NAN;
            }
            if column == name {
                values[9] = f64::INFINITY;
            }
        }
        let dropping = Dataset {
            missing: Some(MissingValues::Drop),
            ..dataset(Split::Column("group".into()))
        };
        let said = said(&dropping, Contents::Table(columns));
        assert!(said.contains(message), "{said}");
    }
}

/// Losses and accuracies against the formula, and a class that no client has.
#[test]
fn losses_and_accuracies_are_means_over_records() {
    let weighted = Dataset {
        weights: ClientWeights::Records,
        test: Some(TestRecords::Fraction(0.25)),
        ..dataset(Split::Dirichlet(2.0))
    };
    let files = Fixed(table());
    let ClientRecords { records, test, .. } =
        weighted.load(&files, 4, FeatureForms::Dense).unwrap();
    let test = test.unwrap();
    let theta = [0.8, -0.3, 0.2];
    let problem = logistic(weighted.clone()).build(4, &files).unwrap();
    for (of, part) in [(RecordsOf::Clients, &records), (RecordsOf::Test, &test)] {
        let mut loss = 0.0;
        let mut right = 0.0;
        for i in 0..part.count() {
            let y = if part.labels.text(i) == "1" { 1.0 } else { -1.0 };
            let along = y * part.row(i).iter().zip(&theta).map(|(x, t)| x * t).sum::<f64>();
            loss += libm::log(1.0 + libm::exp(-along)) / part.count() as f64;
            right += f64::from(u8::from(along > 0.0)) / part.count() as f64;
        }
        assert!((problem.loss(&theta, of).unwrap() - loss).abs() < 1e-13);
        assert!((problem.accuracy(&theta, of).unwrap() - right).abs() < 1e-13);
        assert!((problem.accuracy(&[0.0; 3], of).unwrap() - 0.5).abs() < 1e-13);
    }
    let squares = squares(weighted).build(4, &files).unwrap();
    let square = |i: usize| {
        let along = test.row(i).iter().zip(&theta).map(|(x, t)| x * t).sum::<f64>();
        let y: f64 = test.labels.text(i).parse().unwrap();
        0.5 * (along - y).powi(2) / test.count() as f64
    };
    let loss: f64 = (0..test.count()).map(square).sum();
    assert!((squares.loss(&theta, RecordsOf::Test).unwrap() - loss).abs() < 1e-13);
    assert_eq!(squares.accuracy(&theta, RecordsOf::Test), None);

    let alone = Records { labels: Column::Numbers(vec![7.0; test.count()]), ..test };
    let said = records.classes_of(&alone).unwrap_err().message;
    assert!(said.contains("only records of the test set have the label \"7\""), "{said}");
}

/// A record as the plain computations of the test below see it.
struct PlainRecord {
    client: usize,
    /// How much it counts in means over records.
    weight: f64,
    positive: bool,
    /// xᵀθ.
    score: f64,
}

/// The mean over pairs of a positive and a negative record of whether the positive one has the higher score.
fn plain_auc(records: &[PlainRecord]) -> f64 {
    let mut right = 0.0;
    let mut all = 0.0;
    for one in records.iter().filter(|record| record.positive) {
        for other in records.iter().filter(|record| !record.positive) {
            let pair = one.weight * other.weight;
            all += pair;
            right += pair
                * if one.score > other.score {
                    1.0
                } else if one.score == other.score {
                    0.5
                } else {
                    0.0
                };
        }
    }
    right / all
}

/// The mean of the recalls of the two classes.
fn plain_balanced_accuracy(records: &[PlainRecord]) -> f64 {
    let recall = |positive: bool| {
        let own = || records.iter().filter(move |record| record.positive == positive);
        let right = own().filter(|record| (record.score > 0.0) == positive);
        right.map(|record| record.weight).sum::<f64>()
            / own().map(|record| record.weight).sum::<f64>()
    };
    0.5 * (recall(false) + recall(true))
}

/// Of each client and of each class, against sums over records; in softmax regression of two classes with the
/// differences of logits of logistic regression, whose classes and ranks are the same.
#[test]
fn metrics_of_clients_and_classes_are_means_over_their_records() {
    let theta = [0.8, -0.3, 0.2];
    let both_rows = [-0.4, 0.15, -0.1, 0.4, -0.15, 0.1];
    for weights in [ClientWeights::Equal, ClientWeights::Records] {
        let dataset = Dataset {
            weights: weights.clone(),
            test: Some(TestRecords::Fraction(0.3)),
            ..dataset(Split::Column("group".into()))
        };
        let files = Fixed(table());
        let loaded = dataset.load(&files, 4, FeatureForms::Dense).unwrap();
        let problem = logistic(dataset.clone()).build(4, &files).unwrap();
        let softmax = softmax::dataset::Settings {
            dataset,
            l2: 0.1.into(),
            class_weights: ClassWeights::Equal,
            batch: 1,
            sampling: Sampling::default(),
        };
        let softmax = softmax.build(4, &files).unwrap();
        let test = loaded.test.as_ref().unwrap();
        for (of, part) in [(RecordsOf::Clients, &loaded.records), (RecordsOf::Test, test)] {
            let client = |i| ["x", "y", "z"].iter().position(|name| *name == client_of(part, i));
            let clients: Vec<usize> = (0..part.count()).map(|i| client(i).unwrap()).collect();
            let sizes = [0, 1, 2].map(|c| clients.iter().filter(|own| **own == c).count() as f64);
            let mut records = Vec::new();
            for (i, client) in clients.iter().enumerate() {
                let is_weighed = of == RecordsOf::Clients && weights == ClientWeights::Equal;
                records.push(PlainRecord {
                    client: *client,
                    weight: if is_weighed { 1.0 / sizes[*client] } else { 1.0 },
                    positive: part.labels.text(i) == "1",
                    score: part.row(i).iter().zip(&theta).map(|(x, t)| x * t).sum::<f64>(),
                });
            }
            let mut accuracies = [0.0; 3];
            let mut losses = [0.0; 3];
            for record in &records {
                let right = (record.score > 0.0) == record.positive;
                let along = if record.positive { record.score } else { -record.score };
                let size = sizes[record.client];
                accuracies[record.client] += f64::from(u8::from(right)) / size;
                losses[record.client] += libm::log(1.0 + libm::exp(-along)) / size;
            }
            let auc = plain_auc(&records);
            let balanced = plain_balanced_accuracy(&records);
            assert!(
                auc < 1.0 && auc != balanced && balanced != problem.accuracy(&theta, of).unwrap()
            );
            for (facts, theta) in [(&problem as &dyn Facts, &theta[..]), (&softmax, &both_rows)] {
                let have = facts.client_accuracies(theta, of).unwrap();
                assert!(distance(&have, &accuracies) < 1e-13, "{have:?} {accuracies:?}");
                let have = facts.client_losses(theta, of).unwrap();
                assert!(distance(&have, &losses) < 1e-13, "{have:?} {losses:?}");
                assert!((facts.auc(theta, of).unwrap() - auc).abs() < 1e-13);
                assert!((facts.balanced_accuracy(theta, of).unwrap() - balanced).abs() < 1e-13);
            }
        }
        assert_eq!(problem.auc(&[0.0; 3], RecordsOf::Test), Some(0.5), "all records tie");
    }
}

/// The value of a record in the column that names clients.
fn client_of(records: &Records, i: usize) -> String {
    records.groups.as_ref().unwrap().text(i)
}

/// Nobody says whose the records of a test set are if clients get records at random, and numbers have no classes.
#[test]
fn metrics_that_a_problem_lacks_are_none() {
    let files = Fixed(table());
    let random = Dataset { test: Some(TestRecords::Fraction(0.3)), ..dataset(Split::Iid) };
    let problem = logistic(random.clone()).build(4, &files).unwrap();
    let theta = [0.8, -0.3, 0.2];
    assert_eq!(problem.client_losses(&theta, RecordsOf::Test), None);
    assert_eq!(problem.client_accuracies(&theta, RecordsOf::Test), None);
    assert_eq!(problem.client_losses(&theta, RecordsOf::Clients).unwrap().len(), 5);
    let squares = squares(random).build(4, &files).unwrap();
    assert_eq!(squares.client_losses(&theta, RecordsOf::Clients).unwrap().len(), 5);
    assert_eq!(squares.client_accuracies(&theta, RecordsOf::Clients), None);
    assert_eq!(squares.balanced_accuracy(&theta, RecordsOf::Clients), None);
    assert_eq!(squares.auc(&theta, RecordsOf::Clients), None);
}

#[test]
fn a_client_without_records_gets_one_of_the_largest() {
    let uneven = Dataset { clients: Some(50), ..dataset(Split::Dirichlet(0.01)) };
    let (records, _) = uneven.read_records(&Fixed(table()), 1, FeatureForms::Dense).unwrap();
    let mut parts = uneven.partition(&records, 1).unwrap();
    assert!(parts.iter().filter(|own| own.len() == 1).count() > 30);
    parts.iter_mut().for_each(|own| own.sort_unstable());
    let mut all = parts.concat();
    all.sort_unstable();
    assert_eq!(all, (0..60).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_used_is_refused() {
    let unknown = Dataset { label: "class".into(), ..dataset(Split::Iid) };
    assert!(said(&unknown, table()).contains("no column `class`"));
    let text = Dataset { features: vec!["group".into()], ..dataset(Split::Iid) };
    assert!(said(&text, table()).contains("row 0 is \"x\", not a number"));
    let many = Dataset { clients: Some(61), ..dataset(Split::Dirichlet(0.01)) };
    let (records, _) = many.read_records(&Fixed(table()), 1, FeatureForms::Dense).unwrap();
    assert!(many.partition(&records, 1).unwrap_err().message.contains("gets no records"));
    let label = Dataset { label: "a".into(), features: vec!["b".into()], ..many };
    let (records, _) = label.read_records(&Fixed(table()), 1, FeatureForms::Dense).unwrap();
    assert!(records.check_two_classes().unwrap_err().message.contains("60 distinct labels"));
}

/// The columns of [`table`] with the features in another unit.
fn table_in(unit: f64) -> Contents {
    let Contents::Table(mut columns) = table() else { unreachable!() };
    for (name, column) in &mut columns {
        if let (true, Column::Numbers(values)) = (name != "label", column) {
            values.iter_mut().for_each(|x| *x *= unit);
        }
    }
    Contents::Table(columns)
}

#[test]
fn a_standardised_feature_does_not_depend_on_its_unit() {
    let dataset = Dataset { standardise: true, ..dataset(Split::Iid) };
    let features = |unit| {
        dataset.read_records(&Fixed(table_in(unit)), 1, FeatureForms::Dense).unwrap().0.features
    };
    let expected = features(1.0);
    for unit in [1e-200, 1e-160, 1e-300, 1e200, 1e300] {
        let largest = features(unit)
            .iter()
            .zip(&expected)
            .fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
        assert!(largest < 1e-12, "{unit:e}: {largest:e}");
    }
    let constant = said(&dataset, table_in(0.0));
    assert!(constant.contains("the same in all records"), "{constant}");
}

#[test]
fn a_feature_whose_square_is_not_finite_is_refused() {
    let as_they_are = Dataset { standardise: false, ..dataset(Split::Iid) };
    let standardised = Dataset { standardise: true, ..dataset(Split::Iid) };
    for (dataset, unit) in [(as_they_are, 1e200), (standardised, 5e306)] {
        let said = said(&dataset, table_in(unit));
        assert!(
            said.contains("is beyond double precision; give the feature another unit"),
            "{said}"
        );
        assert!(said.contains(", column `b`: the square of "), "{said}");
    }
}

#[test]
fn numbers_as_text_are_named() {
    let Contents::Table(mut columns) = table() else { unreachable!() };
    columns[0].1 = Column::Text(vec!["1.5".into(); 60]);
    let said = said(&dataset(Split::Iid), Contents::Table(columns));
    assert!(said.contains("such as \"1.5\" in row 0"), "{said}");
}

/// Least squares need labels that are numbers. Labels that a file holds as text are refused with what to do, and other
/// texts by name.
#[test]
fn labels_as_text_are_named() {
    for (first, message) in [
        (
            "0.5",
            "the labels are numbers as text, such as \"0.5\"; convert them to a column of numbers",
        ),
        ("inf", "the label \"inf\" is not a finite number"),
        ("red", "the label \"red\" is not a finite number"),
    ] {
        let Contents::Table(mut columns) = table() else { unreachable!() };
        let mut labels = vec!["0.5".to_owned(); 60];
        labels[0] = first.to_owned();
        columns[1].1 = Column::Text(labels);
        let files = Fixed(Contents::Table(columns));
        let fault = squares(dataset(Split::Iid)).build(1, &files).err().unwrap();
        assert_eq!(fault.key, "dataset.label");
        assert!(fault.message.contains(message), "{}", fault.message);
    }
}

/// The settings of the draw of a test set within these groups.
fn drawn_within(groups: TestGroups, split: Split) -> Dataset {
    let test = Some(TestRecords::Fraction(0.2));
    Dataset { test, test_within: Some(groups), ..dataset(split) }
}

/// Shards of sorted labels: 15 of the 60 records have the greater label, which are the last 2.5 of ten shards of six.
#[test]
fn shards_are_of_sorted_labels() {
    let (records, parts) = partitioned(Split::Shards(2));
    let labels: Vec<String> = (0..60).map(|i| records.labels.text(i)).collect();
    let mut sorted: Vec<usize> = (0..60).collect();
    sorted.sort_by_key(|&i| labels[i].clone());
    let shard_of = |own: &[usize]| -> usize {
        let place = sorted.iter().position(|i| *i == own[0]).unwrap();
        assert_eq!(place % 6, 0);
        assert_eq!(own, &sorted[place..place + 6], "a shard has the order of the file");
        place / 6
    };
    let mut hands: Vec<usize> =
        parts.iter().flat_map(|part| [shard_of(&part[..6]), shard_of(&part[6..])]).collect();
    assert_ne!(hands, (0..10).collect::<Vec<_>>(), "shards are drawn");
    hands.sort_unstable();
    assert_eq!(hands, (0..10).collect::<Vec<_>>());

    let many = Dataset { clients: Some(31), ..dataset(Split::Shards(2)) };
    let fault = many.load(&Fixed(table()), 1, FeatureForms::Dense).err().unwrap();
    assert_eq!(fault.key, "dataset.split.shards");
    assert!(fault.message.contains("31 clients into 62 shards, and there are 60 records"));
    assert_eq!(dataset(Split::Shards(0)).check()[0].key, "dataset.split.shards");
    let numbers =
        Dataset { label: "a".into(), features: vec!["b".into()], ..dataset(Split::Shards(1)) };
    let loaded = numbers.load_with_numbers(&Fixed(table()), 1).unwrap();
    let values = loaded.records.label_numbers().unwrap();
    let mut ranges: Vec<(f64, f64)> = Vec::new();
    for part in &loaded.held {
        let own = part.iter().map(|i| values[*i]);
        ranges.push((own.clone().fold(f64::MAX, f64::min), own.fold(f64::MIN, f64::max)));
    }
    ranges.sort_by(|one, two| one.0.total_cmp(&two.0));
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "numbers are sorted by value");
}

/// Within classes 0.2 of 45 and of 15 records are drawn, and within the five clients 0.2 of 12 records each: 2 or 3.
#[test]
fn test_sets_are_drawn_within_groups() {
    for seed in 0..5 {
        let files = Fixed(table());
        let classes = drawn_within(TestGroups::Classes, Split::Iid);
        let loaded = classes.load(&files, seed, FeatureForms::Dense).unwrap();
        let test = loaded.test.unwrap();
        let greater = (0..12).filter(|i| test.labels.text(*i) == "1").count();
        assert_eq!((test.count(), greater, loaded.test_clients), (12, 3, None));

        for split in [Split::Iid, Split::ByLabel, Split::Column("group".into())] {
            let clients = drawn_within(TestGroups::Clients, split.clone());
            let loaded = clients.load(&files, seed, FeatureForms::Dense).unwrap();
            let owners: Vec<usize> = loaded.test_clients.unwrap().into_iter().flatten().collect();
            assert_eq!((loaded.records.count(), loaded.test.unwrap().count()), (48, 12));
            assert_eq!(owners.len(), 12, "{split:?}");
            let number = loaded.held.len();
            for (client, own) in loaded.held.iter().enumerate() {
                let tested = owners.iter().filter(|owner| **owner == client).count();
                assert_eq!(own.len() + tested, 60 / number, "{split:?}");
                assert!((12 / number..=12 / number + 1).contains(&tested), "{split:?}");
            }
            let mut all = loaded.held.concat();
            all.sort_unstable();
            assert_eq!(all, (0..48).collect::<Vec<_>>());
        }
    }
}

/// A record of the test set is of the client that its file names, whichever way the test set is drawn.
#[test]
fn records_of_the_test_set_know_their_client() {
    let by_column = Split::Column("group".into());
    let drawn =
        Dataset { test_within: None, ..drawn_within(TestGroups::Clients, by_column.clone()) };
    for dataset in [
        drawn,
        drawn_within(TestGroups::Classes, by_column.clone()),
        drawn_within(TestGroups::Clients, by_column),
    ] {
        let loaded = dataset.load(&Fixed(table()), 3, FeatureForms::Dense).unwrap();
        let test = loaded.test.unwrap();
        let groups = test.groups.as_ref().unwrap();
        let clients = loaded.test_clients.unwrap();
        assert_eq!(clients.len(), 12);
        for (i, client) in clients.into_iter().enumerate() {
            assert_eq!(["x", "y", "z"][client.unwrap()], groups.text(i));
        }
    }
}

/// Clients, classes, categories and features of which only one record has a value keep it with every seed.
#[test]
fn rare_records_are_kept_for_training() {
    let Contents::Table(mut columns) = table() else { panic!() };
    let rare = |only: usize, one: &str, other: &str| {
        Column::Text((0..60).map(|i| if i == only { one } else { other }.to_owned()).collect())
    };
    columns[1].1 = rare(7, "yes", "no");
    columns[2].1 = rare(8, "small", "large");
    // Of the categories, the first one in sorted order has no indicator.
    columns.push(("first".into(), rare(9, "a", "b")));
    columns.push(("last".into(), rare(10, "c", "b")));
    let flag = (0..60).map(|i| f64::from(u8::from(i == 11))).collect();
    columns.push(("flag".into(), Column::Numbers(flag)));
    let mut known = vec![f64::NAN; 60];
    known[12] = 1.5;
    columns.push(("known".into(), Column::Numbers(known)));
    let files = Fixed(Contents::Table(columns));
    for groups in [TestGroups::Classes, TestGroups::Clients] {
        let features = ["a", "first", "last", "flag"].map(str::to_owned).to_vec();
        let settings = Dataset {
            features,
            categorical: vec!["first".into(), "last".into()],
            standardise: true,
            ..drawn_within(groups, Split::Column("group".into()))
        };
        let raw = Dataset {
            features: vec!["a".into(), "known".into(), "first".into()],
            categorical: vec!["first".into()],
            standardise: false,
            missing: Some(MissingValues::Mean),
            ..settings.clone()
        };
        for seed in 0..20 {
            let loaded = settings.load(&files, seed, FeatureForms::Dense).unwrap();
            assert_eq!((loaded.held.len(), loaded.records.count_classes().unwrap()), (2, 2));
            assert_eq!(loaded.test.unwrap().count(), 12);
            let loaded = raw.load(&files, seed, FeatureForms::Dense).unwrap();
            let column = |j| (0..48).map(|i| loaded.records.row(i)[j]).collect::<Vec<f64>>();
            assert_eq!(column(1), [1.5; 48]);
            assert_eq!(column(2).iter().filter(|x| **x == 0.0).count(), 1);
        }
    }
    let whole = Dataset { test_within: None, ..drawn_within(TestGroups::Classes, Split::Iid) };
    let lost = (0..20).filter(|seed| {
        let flagged = Dataset { features: vec!["flag".into()], ..whole.clone() };
        flagged.load(&files, *seed, FeatureForms::Dense).is_err()
    });
    assert!(lost.count() > 0, "without the key, some seeds lose the only record");
}

#[test]
fn wrong_draws_and_weights_are_refused() {
    let classes = drawn_within(TestGroups::Classes, Split::Iid);
    let fault = classes.load_with_numbers(&Fixed(table()), 1).err().unwrap();
    assert_eq!(fault.key, "dataset.test-within");
    let marked = Dataset { test: Some(TestRecords::Column("held".into())), ..classes.clone() };
    assert_eq!(marked.check()[0].key, "dataset.test-within");
    assert_eq!(Dataset { test: None, ..classes }.check()[0].key, "dataset.test-within");
    let weighted = |numbers: &[f64], split| Dataset {
        weights: ClientWeights::Given(numbers.to_vec()),
        ..dataset(split)
    };
    let message = |numbers: &[f64]| weighted(numbers, Split::Iid).check()[0].message.clone();
    assert!(message(&[1.0, 2.0]).contains("has 2 numbers, and there are 5 clients"));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(message(&[1.0, 1.0, 1.0, 1.0, wrong]).contains(&format!("not {wrong}")));
    }
    for far in [[1e308; 5], [1.0, 1.0, 1.0, 1e-320, 1e20]] {
        assert!(message(&far).contains("too large or too far apart"));
    }
    let by_column = weighted(&[1.0, 2.0], Split::Column("group".into()));
    assert_eq!(by_column.check(), []);
    let fault = by_column.load(&Fixed(table()), 1, FeatureForms::Dense).err().unwrap();
    assert!(fault.message.contains("has 2 numbers, and there are 3 clients"));
}

/// Given weights are divided by their sum; those that are equal, or the numbers of records, are the other two kinds.
#[test]
fn given_weights_are_shares() {
    let counts = [4, 8, 12];
    let shares = |weights: ClientWeights| weights.shares("weights", &counts).unwrap();
    let given = |numbers: [f64; 3]| shares(ClientWeights::Given(numbers.to_vec()));
    assert_eq!(given([2.0, 1.0, 1.0]), Some(vec![0.5, 0.25, 0.25]));
    assert_eq!(given([4.0, 8.0, 12.0]), shares(ClientWeights::Records));
    assert_eq!((given([0.3; 3]), shares(ClientWeights::Equal)), (None, None));
    let split = Split::Column("group".into());
    let weights = ClientWeights::Given(vec![3.0, 1.0, 1.0]);
    let problem = squares(Dataset { weights, ..dataset(split) }).build(1, &Fixed(table())).unwrap();
    assert_eq!(problem.unequal_shares(), Some(&[0.6, 0.2, 0.2][..]));
    check::roots(&problem, 1e-10);
}
