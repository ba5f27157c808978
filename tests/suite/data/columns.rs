//! What the columns of a file of records are taken for: features, the label, the client, an index of rows, or
//! values in a file without a header.

use super::{Data, TABLE, records};
use crate::npz::doubles;

#[test]
fn the_labels_are_no_feature() {
    let settings = "clients = 1, features = [\"a\", \"label\"]";
    let table = b"a,label\n1,0\n2,1\n3,1\n";
    let text = "names `label`, which is the label column";
    Data::new(&records(settings), "r.csv", table).refused(text);
}

#[test]
fn records_of_every_format_give_the_same_cells_results() {
    let split = "features = [\"age\"], clients = 2, split = \"iid\"";
    let csv = Data::of_records(split, "r.csv", TABLE.as_bytes()).final_errors();
    let text = b"0 1:1\n1 1:2\n1 1:3\n0 1:4\n1 1:5.5\n0 1:-6\n";
    let libsvm = Data::of_records("clients = 2", "r.svm", text).final_errors();
    assert_eq!(libsvm, csv);
    let x = vec![1.0, 2.0, 3.0, 4.0, 5.5, -6.0];
    let y = vec![0.0, 1.0, 1.0, 0.0, 1.0, 0.0];
    let columns = doubles(&[("age", &[6], x.clone()), ("label", &[6], y.clone())]);
    let named = "features = [\"age\"], clients = 2";
    assert_eq!(Data::of_records(named, "r.npz", &columns).final_errors(), csv);
    let arrays = doubles(&[("x", &[6, 1], x), ("y", &[6], y)]);
    assert_eq!(Data::of_records("clients = 2", "r.npz", &arrays).final_errors(), csv);
}

/// Forty records of an age and a label, after a column with this name and these values.
fn indexed(name: &str, value: impl Fn(usize) -> String) -> String {
    let rows = (0..40).map(|i| {
        let age = i * 17 % 23;
        let label = i * i % 7 % 2;
        format!("{},{age}.5,{label}\n", value(i))
    });
    std::iter::once(format!("{name},age,label\n")).chain(rows).collect()
}

/// What a manifest on records gives its user.
struct Outputs {
    /// The final errors of its cell.
    errors: String,
    /// The standard error output of `check`.
    warning: String,
    /// The Markdown page of its report.
    page: String,
}

/// Checks, runs and reports the records of this table with these settings.
fn checked_and_reported(settings: &str, table: &str) -> Outputs {
    let data = Data::of_records(settings, "r.csv", table.as_bytes());
    let warning = data.bench.run(&["check", "mine.toml"]).expect(0).err;
    let errors = data.final_errors();
    Outputs { errors, warning, page: data.bench.read("reports/mine/report.md") }
}

/// A column that numbers or names the rows is no feature unless `features` names it; `check` and the page say so.
#[test]
fn an_index_of_rows_is_no_feature() {
    let settings = "clients = 2, standardise = true";
    let only = format!("{settings}, features = [\"age\"]");
    let without = checked_and_reported(&only, &indexed("", |i| i.to_string()));
    assert_eq!(without.warning, "");
    for (name, value, column) in [
        ("", (|i| i.to_string()) as fn(usize) -> String, "the first column, which has no name,"),
        ("\"\"", |i| (i + 1).to_string(), "the first column, which has no name,"),
        ("", |i| format!("car {i}"), "the first column, which has no name,"),
        ("Unnamed: 0", |i| (i * 3).to_string(), "column `Unnamed: 0`"),
        ("id", |i| (i + 1).to_string(), "column `id`"),
    ] {
        let with_index = checked_and_reported(settings, &indexed(name, value));
        assert_eq!(with_index.errors, without.errors, "{name}");
        let text = format!("r.csv: {column} numbers or names the rows, and is no feature");
        let warning = with_index.warning;
        assert!(warning.starts_with(&format!("warning: mine.toml: {text}")), "{warning}");
        let page = with_index.page;
        assert!(page.contains("numbers or names the rows, and is no feature"), "{page}");
        assert!(page.contains("; `features` can name it."), "{page}");
    }
    // A column that a manifest names is a feature.
    let named = format!("{settings}, features = [\"id\", \"age\"]");
    let with = checked_and_reported(&named, &indexed("id", |i| (i + 1).to_string()));
    assert!(with.errors != without.errors && with.warning.is_empty(), "{}", with.warning);
    // Distinct whole numbers in another order are a feature, with a warning.
    let shuffled = indexed("id", |i| (1000 + i * 7 % 40).to_string());
    let warning = checked_and_reported(settings, &shuffled).warning;
    let text = "all values of column `id` are different whole numbers: if they number the records";
    assert!(warning.contains(text), "{warning}");
}

/// A first line that holds values is not read as the names of columns.
#[test]
fn a_file_without_a_header_is_refused() {
    let mut numbers = String::new();
    let mut texts = String::new();
    for i in 0..30 {
        numbers += &format!("{}.25,{},{}\n", i * 7 % 11, i * 5 % 13, i % 2);
        texts += &format!("{}.1,{}\n", i * 7 % 11, ["setosa", "virginica"][i % 2]);
    }
    for (table, label, what) in [(&numbers, "1", "numbers"), (&texts, "setosa", "values")] {
        let said = format!("line 1 holds {what} and no names; add a header line");
        let label = format!("clients = 2, label = \"{label}\"");
        let data = Data::new(&records(&label), "r.csv", table.as_bytes());
        data.refused(&said);
        for command in [&["check", "mine.toml"][..], &["data", "r.csv"], &["init", "r.csv"]] {
            data.bench.run(command).expect(2).warns(&said);
        }
    }
    // Numbers, here years, are names of columns where another column has a name of letters.
    let years = "country,1990,1991,label\na,1,2,0\nb,2,1,1\na,3,5,1\nb,4,1,0\n";
    let settings = records("split = { column = \"country\" }, features = [\"1990\", \"1991\"]");
    Data::new(&settings, "r.csv", years.as_bytes()).accepted();
}

/// Settings that make a client of each user.
const BY_USER: &str = "features = [\"age\"], split = { column = \"user\" }";

/// 48 records of four users with three labels in turn; names of users or labels may be equal.
fn users_and_labels(users: [&str; 4], labels: [&str; 3]) -> String {
    let mut table = String::from("age,user,label\n");
    for i in 0..48 {
        let user = users[i % 4];
        let label = labels[i / 4 % 3];
        table += &format!("{}.5,{user},{label}\n", i * 17 % 23);
    }
    table
}

/// The final errors on the records of these users and labels, with a client for each user.
fn errors_of(users: [&str; 4], labels: [&str; 3]) -> String {
    let table = users_and_labels(users, labels);
    Data::of_records(BY_USER, "r.csv", table.as_bytes()).final_errors()
}

/// Whole numbers that double precision cannot tell apart are different clients and classes.
#[test]
fn long_numbers_of_clients_and_classes_are_told_apart() {
    let two = ["0", "1", "1"];
    // Clients are in the order of the numbers, in which 7 comes first.
    let letters = errors_of(["b", "c", "d", "a"], two);
    let long = ["1234567890123456789", "1234567890123456790", "1234567890123456800", "7"];
    assert_eq!(errors_of(long, two), letters);
    // One number in several spellings is one client; texts are compared as texts.
    let one = errors_of(["b", "a", "a", "a"], two);
    assert_eq!(errors_of(["2", "1", "01", "1.0"], two), one);
    assert_eq!(errors_of(["y", "1", "01", "1.0"], two), errors_of(["d", "b", "a", "c"], two));

    let labels = ["9007199254740992", "9007199254740993", "5"];
    let three = users_and_labels(["a", "b", "c", "d"], labels);
    let data = Data::new(&records(BY_USER), "r.csv", three.as_bytes());
    data.refused("has 3 distinct labels (9007199254740992, 9007199254740993, 5); two are needed");
    assert_eq!(
        errors_of(["a", "b", "c", "d"], [labels[0], labels[1], labels[1]]),
        errors_of(["a", "b", "c", "d"], two)
    );
    data.bench.run(&["data", "r.csv"]).expect(0).prints("3 classes: 5 (16)");
    let libsvm = b"5 1:1\n9007199254740993 1:2\n5 1:3\n";
    let data = Data::of_records("clients = 2", "r.svm", libsvm);
    data.refused("line 2: the label 9007199254740993 is a whole number beyond 2^53");
    // As a feature such a number is the nearest of double precision.
    let feature = "big,label\n1234567890123456789,0\n5,1\n1234567890123456700,1\n";
    Data::new(&records("clients = 1, standardise = true"), "r.csv", feature.as_bytes()).accepted();
}

/// `label` and `features` name columns: with a file whose columns have no names they are refused, and not ignored.
#[test]
fn columns_are_not_named_where_there_are_none() {
    let arrays = doubles(&[("x", &[2, 1], vec![1.0, 2.0]), ("y", &[2], vec![0.0, 1.0])]);
    for (key, value) in [("label", "\"y\""), ("features", "[\"x\"]")] {
        for (file, kind, bytes) in
            [("r.npz", "an .npz file", &arrays[..]), ("r.svm", "a LIBSVM file", b"0 1:1\n1 1:2\n")]
        {
            let settings = format!("clients = 1, {key} = {value}");
            let message = format!("names columns, but {kind} has none; leave it out");
            Data::of_records(&settings, file, bytes).refused(&message);
        }
    }
}
