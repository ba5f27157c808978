//! Records are read and partitioned as in the settings.

use super::*;
use crate::problem::arrays::{Contents, Files};
use crate::problem::{Facts, Settings as _, check};
use std::sync::Arc;

struct Fixed(Contents);

impl Files for Fixed {
    fn open(&self, _file: &DataFile) -> Result<Arc<Contents>, String> {
        Ok(Arc::new(self.0.clone()))
    }
}

/// 60 records in three groups, features that follow the label.
fn table() -> Contents {
    let mut rng = Stream::shared_instance(3);
    let label: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i % 4 == 0))).collect();
    let feature = |rng: &mut Stream| -> Vec<f64> {
        label.iter().map(|y| 10.0 + 3.0 * (y + rng.gaussian())).collect()
    };
    let (a, b) = (feature(&mut rng), feature(&mut rng));
    let group = (0..60).map(|i| ["x", "z", "y"][i % 3].to_owned()).collect();
    Contents::Table(vec![
        ("a".into(), Column::Numbers(a)),
        ("label".into(), Column::Numbers(label)),
        ("group".into(), Column::Text(group)),
        ("b".into(), Column::Numbers(b)),
    ])
}

fn dataset(split: Split) -> Dataset {
    let clients = (!matches!(split, Split::Column(_))).then_some(5);
    let features = vec!["b".into(), "a".into()];
    Dataset { split, clients, features, ..Dataset::example() }
}

fn shards(split: Split) -> (Records, Vec<Vec<usize>>) {
    let dataset = dataset(split);
    assert_eq!(dataset.check(), []);
    let records = dataset.open(&Fixed(table())).unwrap();
    let shards = dataset.partition(&records, 1).unwrap();
    (records, shards)
}

#[test]
fn every_record_is_dealt_once() {
    for split in [Split::Iid, Split::ByLabel, Split::Dirichlet(2.0), Split::Column("group".into())]
    {
        let (_, shards) = shards(split.clone());
        let mut all: Vec<usize> = shards.concat();
        all.sort_unstable();
        assert_eq!(all, (0..60).collect::<Vec<_>>(), "{split:?}");
    }
}

#[test]
fn splits_are_what_they_say() {
    let share = |records: &Records, shard: &[usize]| {
        let signs = records.two_classes().unwrap();
        shard.iter().filter(|&&i| signs[i] > 0.0).count()
    };
    let (records, by_label) = shards(Split::ByLabel);
    let positive: Vec<usize> = by_label.iter().map(|s| share(&records, s)).collect();
    assert_eq!(positive, [0, 0, 0, 3, 12]);
    let (_, columns) = shards(Split::Column("group".into()));
    assert_eq!(columns.len(), 3);
    assert!(columns[1].iter().all(|i| i % 3 == 2), "y is the second in order");
    let (_, even) = shards(Split::Dirichlet(1e6));
    assert!(even.iter().all(|s| (10..=14).contains(&s.len())), "{even:?}");
}

#[test]
fn features_are_standard_and_in_the_order_asked_for() {
    let (records, _) = shards(Split::Iid);
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
fn oracles_on_records_match_their_facts() {
    let logistic = crate::problem::logistic::dataset::Settings {
        dataset: dataset(Split::Dirichlet(2.0)),
        l2: 0.1,
        margin: 0.0,
        batch: 2,
    };
    let problem = logistic.build(1, &Fixed(table())).unwrap();
    assert_eq!((problem.clients(), problem.dim()), (5, 3));
    check::agree(&problem, 100_000);
    let softmax = crate::problem::softmax::dataset::Settings {
        dataset: dataset(Split::Dirichlet(2.0)),
        l2: 0.1,
        batch: 2,
    };
    let problem = softmax.build(1, &Fixed(table())).unwrap();
    assert_eq!((problem.clients(), problem.dim()), (5, 6));
    check::agree(&problem, 100_000);
    let squares =
        crate::problem::least_squares::Settings { dataset: dataset(Split::Iid), l2: 0.1, batch: 2 };
    let problem = squares.build(1, &Fixed(table())).unwrap();
    check::agree(&problem, 100_000);
}

#[test]
fn what_cannot_be_used_is_refused() {
    let open = |dataset: Dataset| dataset.open(&Fixed(table())).map(|_| ()).unwrap_err().message;
    let unknown = Dataset { label: "class".into(), ..dataset(Split::Iid) };
    assert!(open(unknown).contains("no column `class`"));
    let text = Dataset { features: vec!["group".into()], ..dataset(Split::Iid) };
    assert!(open(text).contains("row 0 is \"x\", not a number"));
    let many = Dataset { clients: Some(50), ..dataset(Split::Dirichlet(0.01)) };
    let records = many.open(&Fixed(table())).unwrap();
    assert!(many.partition(&records, 1).unwrap_err().message.contains("gets no records"));
    let label = Dataset { label: "a".into(), features: vec!["b".into()], ..many };
    let records = label.open(&Fixed(table())).unwrap();
    assert!(records.two_classes().unwrap_err().message.contains("60 distinct labels"));
}
