//! Records with sparse features: they give what dense features give, and what is not possible with them, or with
//! thousands of features, is refused.

use super::{Data, manifest, records_in};
use crate::npz::{Named, doubles, npz};

/// LIBSVM text of thirteen records of 40 features: twelve in which two features are not 0, and one in which the last is
/// not 0.
fn sparse_text() -> String {
    let mut text = String::new();
    for i in 0..12 {
        text += &format!("{} {}:1.5 {}:-0.5\n", i % 2, 1 + i % 7, 9 + 5 * (i % 3) + i);
    }
    text + "1 40:1\n"
}

/// Sparse and dense storage of one file give one problem: θ* and runs agree up to rounding. The arrays of SciPy give
/// what the text of LIBSVM gives, bit for bit.
#[test]
fn sparse_and_dense_records_agree() {
    let text = sparse_text();
    let weighted =
        ", intercept = true, split = { quantity = 1.0 }, weights = \"records\", test = 0.25";
    for more in ["", ", intercept = true", weighted] {
        let sparse_settings = format!("clients = 2{more}");
        let dense_settings = format!("{sparse_settings}, storage = \"dense\"");
        let dense = first_final_error(&dense_settings, "r.svm", text.as_bytes());
        let sparse = first_final_error(&sparse_settings, "r.svm", text.as_bytes());
        assert_ne!(dense.to_bits(), 0);
        assert!((sparse / dense - 1.0).abs() < 1e-10, "{sparse} {dense}");
        let arrays = first_final_error(&sparse_settings, "r.npz", &scipy(&text));
        assert_eq!(arrays.to_bits(), sparse.to_bits());
    }
}

/// The final error of the first run on the records of a file.
fn first_final_error(settings: &str, file: &str, bytes: &[u8]) -> f64 {
    let errors = Data::of_records(settings, file, bytes).final_errors();
    errors.split(' ').next().unwrap().parse().unwrap()
}

/// The metrics that `measured` records: the distance from the optimum in value, and losses and accuracies over records.
const METRICS: [&str; 5] =
    ["suboptimality", "train-loss", "test-loss", "accuracy", "test-accuracy"];

/// With either storage, clients that weigh by their records have the same losses and accuracies, over their records and
/// over a test set that an array marks.
#[test]
fn sparse_and_dense_records_are_measured_the_same() {
    let sparse = measured("sparse");
    let dense = measured("dense");
    assert_eq!(sparse.len(), dense.len());
    assert!(sparse.len() > 5 * METRICS.len());
    for (have, want) in sparse.iter().zip(&dense) {
        assert!((have - want).abs() <= 1e-10 * want.abs(), "{have}, not {want}");
    }
}

/// The values of `METRICS`, point by point, that FedAvg and Scaffold have with this storage of the features.
fn measured(storage: &str) -> Vec<f64> {
    let settings = format!(
        "split = {{ column = \"client\" }}, weights = \"records\", \
         test = {{ column = \"held\" }}, storage = \"{storage}\""
    );
    let data = Data::of_records(&settings, "r.npz", &arrays_with_clients_and_test_set());
    let more = format!(
        "[[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = 2\n[record]\nmetrics = {METRICS:?}\n"
    );
    data.bench.write("mine.toml", manifest(&records_in("r.npz", &settings)) + &more);
    data.accepted();
    data.bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    let rows = data.bench.read("rows.csv");
    let heads: Vec<&str> = rows.lines().next().unwrap().split(',').collect();
    let places = METRICS.map(|metric| {
        let name = metric.replace('-', "_");
        heads.iter().position(|head| *head == name).unwrap()
    });
    // The experiment and the cell, whose identifiers differ between the storages, have no say in the order.
    let mut lines: Vec<&str> = rows.lines().skip(1).collect();
    lines.sort_by_key(|line| line.splitn(3, ',').nth(2));
    let mut values = Vec::new();
    for line in lines {
        let row: Vec<&str> = line.split(',').collect();
        values.extend(places.map(|place| row[place].parse::<f64>().unwrap()));
    }
    values
}

/// The records of `sparse_text` as an archive, with arrays that name their clients and mark the test set.
fn arrays_with_clients_and_test_set() -> Vec<u8> {
    let text = sparse_text();
    let n = text.lines().count();
    let mut arrays = scipy_arrays(&text);
    let client = (0..n).map(|i| if i % 5 == 0 { 1.0 } else { 0.0 }).collect();
    arrays.push(Array::vector("client", client));
    let held = (0..n).map(|i| if i % 4 == 1 { 1.0 } else { 0.0 }).collect();
    arrays.push(Array::vector("held", held));
    npz_of(&arrays)
}

/// The records of a text of LIBSVM as an archive of `scipy.sparse.save_npz` with labels.
fn scipy(text: &str) -> Vec<u8> {
    npz_of(&scipy_arrays(text))
}

/// An array of an archive, which owns its numbers.
struct Array {
    name: &'static str,
    shape: Vec<usize>,
    numbers: Vec<f64>,
}

impl Array {
    fn vector(name: &'static str, numbers: Vec<f64>) -> Self {
        Self { name, shape: vec![numbers.len()], numbers }
    }
}

/// The bytes of an archive of these arrays.
fn npz_of(arrays: &[Array]) -> Vec<u8> {
    let named: Vec<Named<'_>> = arrays
        .iter()
        .map(|array| (array.name, array.shape.as_slice(), array.numbers.clone()))
        .collect();
    doubles(&named)
}

/// The arrays of the matrix of features, 40 columns in compressed rows, and of the labels `y`.
fn scipy_arrays(text: &str) -> Vec<Array> {
    let mut values = Vec::new();
    let mut indices = Vec::new();
    let mut ends = vec![0.0];
    let mut labels = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        labels.push(words.next().unwrap().parse().unwrap());
        for (i, x) in words.map(|word| word.split_once(':').unwrap()) {
            indices.push(i.parse::<f64>().unwrap() - 1.0);
            values.push(x.parse().unwrap());
        }
        ends.push(values.len() as f64);
    }
    vec![
        Array::vector("shape", vec![labels.len() as f64, 40.0]),
        Array::vector("data", values),
        Array::vector("indices", indices),
        Array::vector("indptr", ends),
        Array::vector("y", labels),
    ]
}

#[test]
fn sparse_records_that_are_wrong_are_refused() {
    let good = sparse_text();
    let sparse = "clients = 2, storage = \"sparse\"";
    let wide = "1 1:1 6000:2\n0 2:1\n";
    let far = "1 1:1 1000000:2\n0 2:1\n".repeat(1000);
    let changed = |from: &str, to: &str| good.replacen(from, to, 1);
    for (settings, text, message) in [
        (sparse, changed("1.5", "x"), "line 1: \"1:x\" is not index:value"),
        (sparse, changed("1:", "-1:"), "line 1: \"-1:1.5\" is not index:value with a whole index"),
        (sparse, changed("1:", "30:"), "line 1: index 9 does not rise"),
        (sparse, changed("1:1.5", "1:inf"), "feature 0 from 0: inf is not a finite number"),
        (sparse, changed("40:", "100000001:"), "index 100000001 is above 100000000"),
        (
            "clients = 2000",
            far,
            "2000 clients with vectors of 1000000 numbers would take about 48.0 GB",
        ),
        ("clients = 2, storage = \"dense\"", wide.into(), "there are 6000 features; dense ones"),
        ("clients = 2, standardise = true", wide.into(), "and without `standardise` allows more"),
        (
            "clients = 2, storage = \"sparse\", standardise = true",
            good.clone(),
            "cannot be combined with sparse features: a shift makes every 0 another number",
        ),
    ] {
        Data::of_records(settings, "r.svm", text.as_bytes()).refused(message).warns("mine.toml:7");
    }
    let ridge = "[problem.least-squares-dataset]\nl2 = 0.1\n\
                 dataset = { file = \"r.svm\", clients = 2, storage = \"sparse\" }";
    Data::new(ridge, "r.svm", good.as_bytes()).refused("this problem has no sparse features");
    let text = "of the formats of scipy.sparse only csr is read";
    let columns = [("format", "|S3", false, &[][..], b"csc".to_vec())];
    Data::of_records("clients = 2", "r.npz", &npz(&columns)).refused(text);
    let archive = scipy(&good);
    let half = &archive[..archive.len() / 2];
    Data::of_records("clients = 2", "r.npz", half).refused("it is not a zip archive");
}

/// Quantities that need d × d matrices are refused where there are thousands of features.
#[test]
fn matrices_of_many_features_are_refused() {
    let wide = "1 1:1 6000:2\n0 2:1\n";
    let settings = records_in("r.svm", "clients = 2");
    for (record, message) in [
        ("averages = [\"covariance\"]", "covariances: d must be at most 5000; here it is 6000"),
        ("averages = [\"bias\"]", "`bias` needs d × d matrices"),
        ("iterates = true", "`iterates`: d must be at most 5000"),
        ("metrics = [\"sq-error-limit\"]", "`sq-error-limit`: d must be at most 5000"),
    ] {
        let data = Data::new(&settings, "r.svm", wide.as_bytes());
        data.bench.write("mine.toml", format!("{}\n[record]\n{record}\n", manifest(&settings)));
        data.refused(message);
    }
    Data::new(&settings, "r.svm", wide.as_bytes()).accepted();
}
