//! Class weights against plain loops over the records.

use super::*;
use crate::federated::{Run, Terms};
use crate::kernel::{axpy, dot};
use crate::linalg::{Matrix, solve};
use crate::problem::arrays::Contents;
use crate::problem::dataset::{ClientWeights, Dataset, FeatureForms, Split, Storage, TestRecords};
use crate::problem::{
    DrawSmoothness, Exact, Facts, Problem, RecordsOf, Reshuffled, Sampling, Settings as _, Twin,
    check, logistic, softmax,
};
use crate::rng::{Purpose, Stream};
use crate::sample::{self, Fixed, distance};

/// λ of all problems here.
const L2: f64 = 0.15;

/// A record as plain loops read it.
struct PlainRecord {
    client: usize,
    /// The features, with the intercept.
    x: Vec<f64>,
    class: usize,
    /// The weight of its class.
    weight: f64,
}

/// A file of 48 records of classes of these names, the first of which are the most frequent, with two features that
/// follow the class; three clients hold unequal numbers of records, and every sixth record is of the test set.
fn file(classes: &[&str]) -> Fixed {
    let mut rng = Stream::shared_instance(29);
    let class: Vec<usize> =
        (0..48).map(|i| [0, 0, 1, 0, 2, 0, 1, 0][(i + i / 8) % 8] % classes.len()).collect();
    let client = |i: usize| f64::from([2, 0, 1, 2][i % 4] + u8::from(i % 16 == 1));
    let mut feature = |slope: f64| -> Vec<f64> {
        class.iter().map(|class| slope * *class as f64 + rng.gaussian()).collect()
    };
    Fixed(Contents::Table(vec![
        ("a".into(), Column::Numbers(feature(1.0))),
        ("b".into(), Column::Numbers(feature(-0.5))),
        ("site".into(), Column::Numbers((0..48).map(client).collect())),
        ("label".into(), Column::Text(class.iter().map(|k| classes[*k].to_owned()).collect())),
        (
            "held".into(),
            Column::Numbers((0..48).map(|i| f64::from(u8::from(i % 6 == 5))).collect()),
        ),
    ]))
}

/// The records of [`file`], whose clients weigh by their records.
fn dataset() -> Dataset {
    Dataset {
        clients: None,
        split: Split::Column("site".into()),
        weights: ClientWeights::Records,
        test: Some(TestRecords::Column("held".into())),
        standardise: false,
        ..Dataset::example()
    }
}

/// Logistic regression on batches of this size.
fn logistic(class_weights: ClassWeights, batch: usize) -> logistic::dataset::Settings {
    let sampling = Sampling::default();
    let dataset = dataset();
    logistic::dataset::Settings {
        dataset,
        l2: L2.into(),
        margin: 0.0,
        class_weights,
        batch,
        sampling,
    }
}

/// Softmax regression on batches of this size.
fn softmax(class_weights: ClassWeights, batch: usize) -> softmax::dataset::Settings {
    let sampling = Sampling::default();
    softmax::dataset::Settings { dataset: dataset(), l2: L2.into(), class_weights, batch, sampling }
}

/// The instance with dense features.
fn build<S: crate::problem::Settings>(settings: &S, file: &Fixed) -> S::Instance {
    settings.build(1, file).unwrap()
}

/// The instance of logistic regression with sparse features.
fn build_sparse(
    settings: &logistic::dataset::Settings,
    file: &Fixed,
) -> logistic::sparse::SparseLogistic {
    let takes = FeatureForms::DenseOrSparse;
    let dataset = Dataset { storage: Some(Storage::Sparse), ..settings.dataset.clone() };
    let settings = logistic::dataset::Settings { dataset, ..settings.clone() };
    let loaded = settings.dataset.load(file, 1, takes).unwrap();
    settings.build_sparse(&loaded, 3, file).unwrap()
}

/// The records that clients hold, in the order of each client's, and those of the test set.
fn plain_records(file: &Fixed, class_weights: &[f64]) -> [Vec<PlainRecord>; 2] {
    let loaded = dataset().load(file, 1, FeatureForms::Dense).unwrap();
    let test = loaded.test.as_ref().unwrap();
    let mut held = Vec::new();
    let classes = loaded.records.classes_of(&loaded.records).unwrap();
    for (client, own) in loaded.held.iter().enumerate() {
        held.extend(own.iter().map(|i| PlainRecord {
            client,
            x: loaded.records.row(*i).to_vec(),
            class: classes[*i],
            weight: class_weights[classes[*i]],
        }));
    }
    let classes = loaded.records.classes_of(test).unwrap();
    let test_records = (0..test.count()).map(|i| PlainRecord {
        client: 0,
        x: test.row(i).to_vec(),
        class: classes[i],
        weight: 1.0,
    });
    [held, test_records.collect()]
}

/// The number of records of a client.
fn count_records(records: &[PlainRecord], client: usize) -> f64 {
    records.iter().filter(|record| record.client == client).count() as f64
}

/// The probabilities of the classes of a record: K numbers for K rows of θ, and two for one row, the log-odds of class
/// 1.
fn probabilities(theta: &[f64], x: &[f64]) -> Vec<f64> {
    let mut logits: Vec<f64> = theta.chunks_exact(3).map(|row| dot(row, x)).collect();
    if logits.len() == 1 {
        logits.insert(0, 0.0);
    }
    let sum: f64 = logits.iter().map(|u| libm::exp(*u)).sum();
    logits.iter().map(|u| libm::exp(*u) / sum).collect()
}

/// Adds `scale` times the gradient of w ℓ of a record to `out`, without the penalty.
fn add_gradient(record: &PlainRecord, theta: &[f64], scale: f64, out: &mut [f64]) {
    let p = probabilities(theta, &record.x);
    let skipped = p.len() - theta.len() / 3;
    for (k, out) in out.chunks_exact_mut(3).enumerate() {
        let is_own = f64::from(u8::from(record.class == k + skipped));
        axpy(scale * record.weight * (p[k + skipped] - is_own), &record.x, out);
    }
}

/// The gradient of a client's objective, (1/n_c) Σ w ∇ℓ + λθ.
fn client_gradient(records: &[PlainRecord], client: usize, theta: &[f64]) -> Vec<f64> {
    let mut gradient: Vec<f64> = theta.iter().map(|x| L2 * x).collect();
    for record in records.iter().filter(|record| record.client == client) {
        add_gradient(record, theta, 1.0 / count_records(records, client), &mut gradient);
    }
    gradient
}

/// The mean of w ℓ over records, without the penalty.
fn mean_loss(records: &[PlainRecord], theta: &[f64]) -> f64 {
    let of_record = |record: &PlainRecord| {
        -record.weight * libm::log(probabilities(theta, &record.x)[record.class])
    };
    records.iter().map(of_record).sum::<f64>() / records.len() as f64
}

/// θ* of logistic regression by Newton's method on plain sums: the clients weigh by their records, so that the
/// objective is the mean over all records.
fn newton_optimum(records: &[PlainRecord]) -> Vec<f64> {
    let mut theta = vec![0.0; 3];
    for _ in 0..30 {
        let mut gradient: Vec<f64> = theta.iter().map(|x| L2 * x).collect();
        let mut hessian = Matrix::identity(3).scaled(L2);
        for record in records {
            let scale = 1.0 / records.len() as f64;
            add_gradient(record, &theta, scale, &mut gradient);
            let p = probabilities(&theta, &record.x)[1];
            hessian.add_outer(scale * record.weight * p * (1.0 - p), &record.x, &record.x);
        }
        axpy(-1.0, &solve(&hessian, &gradient).unwrap(), &mut theta);
    }
    theta
}

/// θ after `rounds` rounds of FedAvg from `start` with `steps` local steps of size 0.2, where `field` writes the field of
/// a client's step. The server takes the mean weighted by the clients' records.
fn plain_fedavg(
    records: &[PlainRecord],
    start: &[f64],
    rounds: usize,
    mut field: impl FnMut(usize, &[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let mut theta = start.to_vec();
    for _ in 0..rounds {
        let mut mean = vec![0.0; theta.len()];
        for client in 0..3 {
            let mut own = theta.clone();
            for _ in 0..4 {
                let gradient = field(client, &own);
                axpy(-0.2, &gradient, &mut own);
            }
            axpy(count_records(records, client) / records.len() as f64, &own, &mut mean);
        }
        theta = mean;
    }
    theta
}

/// θ after 5 rounds of FedAvg on plain loops, with the draws that the engine has in replicate 2.
fn plain_stochastic_fedavg(records: &[PlainRecord], start: &[f64], batch: usize) -> Vec<f64> {
    let mut streams: Vec<Stream> =
        (0..3).map(|c| Stream::new(5, Purpose::Client, 0, 2, c)).collect();
    plain_fedavg(records, start, 5, |client, theta| {
        let own: Vec<&PlainRecord> = records.iter().filter(|of| of.client == client).collect();
        let mut field: Vec<f64> = theta.iter().map(|x| L2 * x).collect();
        for _ in 0..batch {
            let record = own[streams[client].index(own.len())];
            add_gradient(record, theta, 1.0 / batch as f64, &mut field);
        }
        field
    })
}

/// A start of as many numbers as θ has.
fn start_of(d: usize) -> Vec<f64> {
    (0..d).map(|i| 0.4 * (i % 5) as f64 - 0.7).collect()
}

/// Asserts that the weighted objective and its gradients, and the metrics of the test set, which are not weighted, are
/// those of plain loops, and so are trajectories of FedAvg with noise and without it.
#[track_caller]
fn assert_is_plain<P: Problem + 'static>(
    problem: P,
    batch: usize,
    records: &[Vec<PlainRecord>; 2],
) {
    let [held, test] = records;
    let theta = start_of(problem.dim());
    for client in 0..3 {
        let mut field = vec![0.0; theta.len()];
        problem.mean_field(client, &theta, &mut field);
        assert!(distance(&field, &client_gradient(held, client, &theta)) < 1e-14);
    }
    let loss = problem.loss(&theta, RecordsOf::Clients).unwrap();
    assert!((loss - mean_loss(held, &theta)).abs() < 1e-14, "{loss}");
    let loss = problem.loss(&theta, RecordsOf::Test).unwrap();
    assert!((loss - mean_loss(test, &theta)).abs() < 1e-14, "{loss}");
    for (of, records) in [(RecordsOf::Clients, held), (RecordsOf::Test, test)] {
        let is_hit = |record: &PlainRecord| {
            let p = probabilities(&theta, &record.x);
            p.iter().all(|other| *other <= p[record.class])
        };
        let hits = records.iter().filter(|record| is_hit(record)).count();
        let accuracy = hits as f64 / records.len() as f64;
        assert!((problem.accuracy(&theta, of).unwrap() - accuracy).abs() < 1e-14);
    }
    let star = problem.optimum().to_vec();
    let objective = |theta: &[f64]| mean_loss(held, theta) + 0.5 * L2 * dot(theta, theta);
    let gap = problem.suboptimality(&theta).unwrap();
    assert!((gap - (objective(&theta) - objective(&star))).abs() < 1e-13, "{gap}");
    let run = sample::run(&problem, &Terms::fedavg(0.2, 4), &theta, 5, 2);
    let plain = plain_stochastic_fedavg(held, &theta, batch);
    assert!(distance(run.estimate(), &plain) < 1e-13, "{plain:?}");
    let exact = Exact::new(problem);
    let run = sample::run(&exact, &Terms::fedavg(0.2, 4), &theta, 5, 2);
    let plain = plain_fedavg(held, &theta, 5, |client, theta| client_gradient(held, client, theta));
    assert!(distance(run.estimate(), &plain) < 1e-13, "{plain:?}");
    assert!(distance(&plain, &theta) > 0.1 && distance(&plain, &star) > 1e-3);
}

#[test]
fn objectives_and_steps_are_those_of_plain_loops() {
    let two = file(&["no", "yes"]);
    let weights = vec![0.7, 2.9];
    let records = plain_records(&two, &weights);
    let given = ClassWeights::Given(weights);
    for batch in [1, 3] {
        let settings = logistic(given.clone(), batch);
        assert_is_plain(build(&settings, &two), batch, &records);
        assert_is_plain(build_sparse(&settings, &two), batch, &records);
    }
    let three = file(&["low", "middle", "high"]);
    // Classes are in the sorted order of their labels: high, low, middle.
    let weights = vec![0.5, 2.0, 3.5];
    let records = plain_records(&three, &weights);
    for batch in [1, 3] {
        let settings = softmax(ClassWeights::Given(weights.clone()), batch);
        assert_is_plain(build(&settings, &three), batch, &records);
    }
}

#[test]
fn optima_are_those_of_newtons_method_on_plain_sums() {
    let two = file(&["no", "yes"]);
    let weights = [0.7, 2.9];
    let [held, _] = plain_records(&two, &weights);
    let star = newton_optimum(&held);
    let settings = logistic(ClassWeights::Given(weights.to_vec()), 1);
    let dense = build(&settings, &two);
    let sparse = build_sparse(&settings, &two);
    let unweighted = build(&logistic(ClassWeights::Equal, 1), &two);
    assert!(distance(dense.optimum(), &star) < 1e-14, "{star:?}");
    assert!(distance(sparse.optimum(), &star) < 1e-14);
    assert!(distance(unweighted.optimum(), &star) > 0.3);
    let error = dense.optimum_error().unwrap();
    assert!(error > 0.0 && error < 1e-14, "{error}");
    // θ* of two classes is that of logistic regression with half the penalty, which is in θ₁ − θ₀.
    let settings =
        softmax::dataset::Settings { l2: (2.0 * L2).into(), ..softmax(settings.class_weights, 1) };
    let both = build(&settings, &two);
    let apart = crate::kernel::difference(&both.optimum()[3..], &both.optimum()[..3]);
    assert!(distance(&apart, &star) < 1e-13);
}

/// The Jacobian is the derivative of the mean field, and draws have the stated moments at θ* and, linearised, elsewhere.
#[test]
fn facts_agree_with_draws() {
    let two = file(&["no", "yes"]);
    let weights = ClassWeights::Given(vec![0.7, 2.9]);
    check::agree(&build(&logistic(weights.clone(), 2), &two), 40_000);
    check::agree(&build_sparse(&logistic(weights.clone(), 2), &two), 40_000);
    let three = file(&["low", "middle", "high"]);
    check::agree(&build(&softmax(ClassWeights::Given(vec![0.5, 2.0, 3.5]), 2), &three), 40_000);
    // Steps of the field linearised at θ* are a loop over the records' linearised fields.
    let linearised = |problem: &Twin<logistic::Logistic>| {
        sample::run(problem, &Terms::fedavg(0.2, 4), &start_of(3), 5, 2).estimate().to_vec()
    };
    let twin = Twin::new(build(&logistic(weights, 1), &two));
    let fused = linearised(&twin);
    let mut streams: Vec<Stream> =
        (0..3).map(|c| Stream::new(5, Purpose::Client, 0, 2, c)).collect();
    let [held, _] = plain_records(&two, &[0.7, 2.9]);
    let star = newton_optimum(&held);
    let plain = plain_fedavg(&held, &start_of(3), 5, |client, theta| {
        let own: Vec<&PlainRecord> = held.iter().filter(|of| of.client == client).collect();
        let record = own[streams[client].index(own.len())];
        let mut field: Vec<f64> = theta.iter().map(|x| L2 * x).collect();
        add_gradient(record, &star, 1.0, &mut field);
        let p = probabilities(&star, &record.x)[1];
        let along = dot(&record.x, theta) - dot(&record.x, &star);
        axpy(record.weight * p * (1.0 - p) * along, &record.x, &mut field);
        field
    });
    assert!(distance(&fused, &plain) < 1e-13, "{fused:?} {plain:?}");
}

/// The bounds of the theory: on the Hessian of a client, its third derivatives and the smoothness of single records.
#[test]
fn bounds_count_the_weights() {
    let two = file(&["no", "yes"]);
    let weights = [0.7, 2.9];
    let [held, _] = plain_records(&two, &weights);
    let problem = build(&logistic(ClassWeights::Given(weights.to_vec()), 1), &two);
    let square = |record: &PlainRecord| dot(&record.x, &record.x);
    let largest = held.iter().map(|record| record.weight * square(record)).fold(0.0, f64::max);
    let DrawSmoothness::AtMost(smoothness) = problem.draw_smoothness() else { panic!() };
    assert!((smoothness - (L2 + 0.25 * largest)).abs() < 1e-14);
    for client in 0..3 {
        let n = count_records(&held, client);
        let mut bound = Matrix::identity(3).scaled(L2);
        let mut third = 0.0;
        for record in held.iter().filter(|record| record.client == client) {
            bound.add_outer(0.25 * record.weight / n, &record.x, &record.x);
            third += record.weight * libm::pow(square(record), 1.5) / n / (6.0 * 3.0_f64.sqrt());
        }
        let most = bound.symmetric_extremes().unwrap().0;
        assert!((problem.mean_smoothness(client).unwrap() - most).abs() < 1e-13);
        assert!((problem.third_derivative(client).unwrap() - third).abs() < 1e-13);
    }
}

/// A step on all records of a client, in batches without replacement, is one along its gradient.
#[test]
fn reshuffled_batches_are_weighted() {
    let two = file(&["no", "yes"]);
    let weights = [0.7, 2.9];
    let [held, _] = plain_records(&two, &weights);
    let settings = logistic(ClassWeights::Given(weights.to_vec()), 48);
    let problem = Reshuffled(build(&settings, &two));
    let run = sample::run(&problem, &Terms::fedavg(0.2, 4), &start_of(3), 5, 2);
    let plain =
        plain_fedavg(&held, &start_of(3), 5, |client, theta| client_gradient(&held, client, theta));
    assert!(distance(run.estimate(), &plain) < 1e-13, "{plain:?}");
}

/// Balanced weights are n/(K n_k) over the records of clients, as scikit-learn computes them.
#[test]
fn all_forms_of_weights_mean_the_same() {
    let three = file(&["low", "middle", "high"]);
    let [held, _] = plain_records(&three, &[1.0; 3]);
    let count = |class| held.iter().filter(|record| record.class == class).count() as f64;
    let balanced: Vec<f64> = (0..3).map(|k| held.len() as f64 / (3.0 * count(k))).collect();
    assert!(balanced[0] > 1.0 && balanced[1] < 1.0, "{balanced:?}");
    let names = ["high", "low", "middle"].map(str::to_owned);
    let labels = BTreeMap::from_iter(names.into_iter().zip(balanced.clone()));
    let forms =
        [ClassWeights::Balanced, ClassWeights::Given(balanced), ClassWeights::Labels(labels)];
    let optima = forms.map(|form| build(&softmax(form, 1), &three).optimum().to_vec());
    assert!(optima[0] == optima[1] && optima[0] == optima[2], "{optima:?}");
    // A label that is left out weighs 1.
    let some = ClassWeights::Labels(BTreeMap::from([("middle".to_owned(), 4.0)]));
    let all = ClassWeights::Given(vec![1.0, 1.0, 4.0]);
    let [some, all] = [some, all].map(|form| build(&softmax(form, 1), &three).optimum().to_vec());
    assert!(some == all && some != optima[0]);
}

/// The bits are those without weights where all of them are 1: of θ*, its bound, facts and steps.
#[test]
fn weights_of_one_change_no_bit() {
    fn bits(problem: &impl Problem) -> Vec<u64> {
        let theta = start_of(problem.dim());
        let mut numbers = problem.optimum().to_vec();
        numbers.extend(problem.optimum_error());
        numbers.extend(problem.suboptimality(&theta));
        numbers.extend(problem.loss(&theta, RecordsOf::Clients));
        numbers.extend(problem.mean_smoothness(1));
        numbers.extend(problem.third_derivative(1));
        let DrawSmoothness::AtMost(smoothness) = problem.draw_smoothness() else { panic!() };
        numbers.push(smoothness);
        let m = Matrix::from_fn(theta.len(), theta.len(), |i, j| 1.0 / (1.0 + (i + 2 * j) as f64));
        let size = theta.len() + 1;
        let s = Matrix::from_fn(size, size, |i, j| 1.0 / (1.0 + (i + j) as f64));
        for client in 0..3 {
            numbers.extend(problem.local_optimum(client).unwrap());
            numbers.extend(problem.jacobian(client).entries());
            numbers.extend(problem.noise_covariance(client).entries());
            numbers.push(problem.noise_trace(client));
            numbers.extend(problem.noise_map(client, &s).unwrap().entries());
            numbers.extend(problem.curvature(client, &m).unwrap());
        }
        for terms in sample::terms(0.1, 5) {
            numbers.extend(sample::run(problem, &terms, &theta, 4, 1).estimate());
        }
        numbers.into_iter().map(f64::to_bits).collect()
    }
    let two = file(&["no", "yes"]);
    let three = file(&["low", "middle", "high"]);
    for batch in [1, 3] {
        let [plain, ones] = [ClassWeights::Equal, ClassWeights::Given(vec![1.0; 2])]
            .map(|weights| logistic(weights, batch));
        assert!(bits(&build(&plain, &two)) == bits(&build(&ones, &two)));
        assert!(bits(&build_sparse(&plain, &two)) == bits(&build_sparse(&ones, &two)));
        let [plain, ones] = [ClassWeights::Equal, ClassWeights::Given(vec![1.0; 3])]
            .map(|weights| build(&softmax(weights, batch), &three));
        assert!(bits(&plain) == bits(&ones));
    }
}

#[test]
fn wrong_weights_are_refused() {
    let checked = |weights: ClassWeights| {
        let faults = logistic(weights, 1).check();
        faults.iter().map(|fault| format!("{}: {fault}", fault.key)).collect::<Vec<_>>().concat()
    };
    assert_eq!(checked(ClassWeights::Given(vec![1.0, 0.5])), "");
    let said = checked(ClassWeights::Given(vec![1.0, 0.0]));
    assert_eq!(said, "class-weights: must have finite numbers above 0, not 0");
    let said = checked(ClassWeights::Labels(BTreeMap::from([("yes".into(), f64::INFINITY)])));
    assert_eq!(said, "class-weights: must have finite numbers above 0, not inf for \"yes\"");
    let said = checked(ClassWeights::Labels(BTreeMap::new()));
    assert!(said.contains("names no class: write a label with its weight"), "{said}");
    let built = |weights: ClassWeights| {
        let fault = softmax(weights, 1).build(1, &file(&["low", "middle", "high"])).map(|_| ());
        fault.map_err(|fault| format!("{}: {fault}", fault.key)).unwrap_err()
    };
    let said = built(ClassWeights::Given(vec![1.0, 2.0]));
    let wanted = "class-weights: has 2 numbers, and records.csv has 3 classes (high, low, middle); each class needs one";
    assert_eq!(said, wanted);
    let said = built(ClassWeights::Labels(BTreeMap::from([("Low".into(), 2.0)])));
    let wanted = "class-weights: no record of a client has the label \"Low\"; records.csv has 3 classes (high, low, middle)";
    assert_eq!(said, wanted);
}

/// Labels that are numbers are named by any form of the number.
#[test]
fn labels_that_are_numbers_are_compared_as_numbers() {
    let Contents::Table(mut columns) = file(&["no", "yes"]).0 else { panic!() };
    let Column::Text(labels) = &columns[3].1 else { panic!() };
    let numbers = labels.iter().map(|label| if label == "yes" { 1.0 } else { -1.0 }).collect();
    columns[3].1 = Column::Numbers(numbers);
    let file = Fixed(Contents::Table(columns));
    let optimum = |weights: ClassWeights| build(&logistic(weights, 1), &file).optimum().to_vec();
    let label = |name: &str| ClassWeights::Labels(BTreeMap::from([(name.to_owned(), 3.0)]));
    let wanted = optimum(ClassWeights::Given(vec![1.0, 3.0]));
    assert!(optimum(label("1")) == wanted && optimum(label("1.0")) == wanted);
    assert!(optimum(label("-1")) == optimum(ClassWeights::Given(vec![3.0, 1.0])));
    let fault = logistic(label("yes"), 1).build(1, &file).map(|_| ()).unwrap_err();
    assert!(fault.message.contains("records.csv has 2 classes (-1, 1)"), "{fault}");
}
