//! Files with contents that are unusual but readable, such as labels of text in arrays, and those that are not, such as
//! empty files and numbers that are infinite or too large.

use super::{Data, records_in};
use crate::npz::npz;
use crate::support::Bench;

/// The number of records of these files.
const N: usize = 12;

/// The feature of record i.
fn feature(i: usize) -> f64 {
    (i * 7 % 5) as f64 - 2.0
}

/// The label of record i.
fn label(i: usize) -> &'static str {
    if i * 7 % 5 + i % 3 > 2 { "red" } else { "tan" }
}

/// The client of record i.
fn client(i: usize) -> &'static str {
    ["b", "a", "a", "a"][i % 4]
}

/// An archive with the features `x` of shape (N, 1) of the type that `descr` names, and the labels `y` and the clients
/// `client` as texts.
fn archive(descr: &str, x: Vec<u8>) -> Vec<u8> {
    let labels = (0..N).flat_map(|i| label(i).bytes()).collect();
    let clients = (0..N).flat_map(|i| client(i).bytes()).collect();
    npz(&[
        ("x", descr, false, &[N, 1], x),
        ("y", "|S3", false, &[N], labels),
        ("client", "|S1", false, &[N], clients),
    ])
}

/// The bytes of the features as numbers of double precision.
fn numbers() -> Vec<u8> {
    (0..N).flat_map(|i| feature(i).to_le_bytes()).collect()
}

/// Labels and clients that are texts give the same runs from arrays as from a CSV file.
#[test]
fn texts_of_arrays_are_those_of_a_table() {
    let settings = "split = { column = \"client\" }, intercept = true";
    let arrays = Data::of_records(settings, "r.npz", &archive("<f8", numbers()));
    let mut table = "x,client,label\n".to_owned();
    for i in 0..N {
        table += &format!("{},{},{}\n", feature(i), client(i), label(i));
    }
    let csv = Data::of_records(settings, "r.csv", table.as_bytes());
    assert_eq!(arrays.final_errors(), csv.final_errors());
    let described = arrays.bench.run(&["data", "r.npz"]).expect(0);
    let red = (0..N).filter(|i| label(*i) == "red").count();
    let classes = format!("# labels: 2 classes: red ({red}), tan ({})", N - red);
    assert!(described.out.contains(&classes), "{}", described.out);
    assert!(described.out.contains("split = { column = \"client\" }"), "{}", described.out);
}

/// A label that is missing is so in an array of texts too.
#[test]
fn marks_of_missing_values_in_arrays_of_texts() {
    let labels = (0..N).flat_map(|i| if i == 5 { *b"NA\0" } else { *b"red" }).collect();
    let bytes = npz(&[("x", "<f8", false, &[N, 1], numbers()), ("y", "|S3", false, &[N], labels)]);
    let data = Data::of_records("clients = 2", "r.npz", &bytes);
    data.refused("r.npz: row 5: the label is missing (\"NA\"); fill it in");
}

#[test]
fn features_of_arrays_are_numbers() {
    let texts = (0..N).flat_map(|_| *b"low").collect();
    for (bytes, message) in [
        (archive("|S3", texts), "r.npz: `x`: it holds texts, such as \"low\"; expected numbers"),
        (
            archive("|O", vec![0; 8 * N]),
            "r.npz: `x`: it holds Python objects (dtype object): make it an array of numbers or of texts",
        ),
        (archive("<M8[D]", vec![0; 8 * N]), "r.npz: `x`: it holds datetime64: make it an array"),
    ] {
        let data = Data::of_records("clients = 2", "r.npz", &bytes);
        data.refused(message).warns("mine.toml:7");
        data.bench.run(&["init", "r.npz"]).expect(2).warns(message);
    }
}

#[test]
fn an_empty_file_is_called_empty() {
    for file in ["r.csv", "r.tsv", "r.svm", "r.npz", "r.parquet"] {
        let data = Data::of_records("clients = 2", file, b"");
        data.refused(&format!("{file}: the file is empty"));
        for arguments in [&["data", file][..], &["init", file, "--label", "label"]] {
            data.bench.run(arguments).expect(2).warns(&format!("{file}: the file is empty"));
        }
    }
    Data::of_records("clients = 2", "r.csv", b" \n\r\n").refused("r.csv: the file is empty");
    let comments = "clients = 2, comment = \"#\"";
    Data::of_records(comments, "r.csv", b"# nothing\n")
        .refused("r.csv: there is no line but comments and empty ones");
}

/// Records in LIBSVM's format, in which one value is the largest number of double precision, as a mark of a missing
/// value may be.
fn text_with_large_value() -> String {
    let mut text = String::new();
    for i in 0..40 {
        let first = if i == 12 { "1.797e308".to_owned() } else { feature(i).to_string() };
        text += &format!("{} 1:{first} 2:{}\n", i % 2, i * i % 11);
    }
    text
}

/// Such a number is named with its place. It makes no features dependent, and if it is standardised the records run.
#[test]
fn values_beyond_double_precision_are_named() {
    let text = text_with_large_value();
    let described = {
        let bench = Bench::new();
        bench.write("r.svm", &text);
        bench.run(&["data", "r.svm"]).expect(0).out
    };
    let line = "# values whose squares are beyond double precision: 1 in feature 0 from 0, first 1.797e308 in line 13; \
                if they mark missing values, write them as NaN";
    assert!(described.lines().any(|have| have == line), "{described}");
    assert!(!described.contains("dependent"), "{described}");
    // The large value is an outlier, and the features are almost independent.
    assert!(
        described.contains("condition number of the standardised Gram matrix: 1."),
        "{described}"
    );
    let standardised =
        Data::of_records("clients = 2, standardise = true", "r.svm", text.as_bytes());
    let checked = standardised.bench.run(&["check", "mine.toml"]).expect(0);
    let place =
        "r.svm: line 13, feature 0 from 0: the square of 1.797e308 is beyond double precision";
    checked.warns(&format!("{place}; if this marks a missing value, write NaN"));
    standardised.accepted();
    Data::of_records("clients = 2", "r.svm", text.as_bytes())
        .refused(&format!("{place}; give the feature another unit"));
}

/// Sums of several such numbers are infinite, so that no standardised features and no step size exist.
#[test]
fn sums_beyond_double_precision_give_no_manifest() {
    let bench = Bench::new();
    bench.write("r.csv", "a,b,label\n1,2,0\n1.7e308,3,1\n1.7e308,5,0\n3,1,1\n");
    let output = bench.run(&["init", "r.csv"]).expect(2);
    output
        .warns("r.csv: some features are beyond double precision when they are squared or summed");
    let all = output.out + &output.err;
    assert!(all.contains("2 in `a`, first 1.7e308 in line 3"), "{all}");
    assert!(!all.contains("dependent"), "{all}");
}

#[test]
fn infinite_values_are_not_called_missing() {
    let bench = Bench::new();
    for (file, text, found) in [
        ("r.csv", "a,b,label\n1,2,0\ninf,3,1\n2,5,0\n3,1,1\n", "1 in `a`, first inf in line 3"),
        ("r.svm", "0 1:1 2:-inf\n1 1:2 2:3\n", "1 in feature 1 from 0, first -inf in line 1"),
        ("y.csv", "a,label\n1,0.5\n2,inf\n4,1.5\n", "1 in the labels, first inf in line 3"),
    ] {
        bench.write(file, text);
        let output = bench.run(&["init", file]).expect(2);
        output.warns(&format!("{file}: values are infinite"));
        let all = output.out + &output.err;
        assert!(all.contains("missing values: none"), "{all}");
        assert!(all.contains(&format!("infinite values: {found}")), "{all}");
    }
}

/// The settings of a dataset are not checked against arrays that they do not use.
#[test]
fn an_array_of_dates_that_is_not_used_blocks_nothing() {
    let labels =
        (0..N).flat_map(|i| f64::from(u8::from(label(i) == "red")).to_le_bytes()).collect();
    let bytes = npz(&[
        ("x", "<f8", false, &[N, 1], numbers()),
        ("y", "<f8", false, &[N], labels),
        ("day", "<M8[D]", false, &[N], vec![0; 8 * N]),
    ]);
    Data::new(&records_in("r.npz", "clients = 2"), "r.npz", &bytes).accepted();
}
