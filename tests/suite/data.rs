//! A user's own data: what is right runs, what is wrong costs one message that
//! names the file, the array or column, the index and what was expected.

use crate::npz::{Named, doubles, singles};
use crate::support::{Bench, Finished, QUADRATIC, edited};

fn manifest(problem: &str) -> String {
    format!(
        "title = \"t\"\nseed = 1\nreplicates = 1\n\n{problem}\n\n[start]\nzero = true\n\n\
         [budget]\nrounds = 3\n\n[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n"
    )
}

struct Data {
    bench: Bench,
}

impl Data {
    fn new(problem: &str, file: &str, bytes: &[u8]) -> Self {
        let bench = Bench::new();
        bench.write("mine.toml", manifest(problem));
        bench.write(file, bytes);
        Self { bench }
    }

    /// It is refused with this message, and nothing is written.
    #[track_caller]
    fn refused(&self, message: &str) -> Finished {
        let before = self.bench.files();
        let output = self.bench.run(&["run", "mine.toml"]).expect(2);
        assert_eq!(self.bench.files(), before, "something was written");
        output.warns(message);
        output
    }

    fn accepted(&self) {
        self.bench.compute(&["mine.toml"]);
        self.bench.report();
    }
}

const CHAINS: &str = "[problem.mdp]\nfile = \"chains.npz\"";

/// Two clients on three states, two features.
fn chains(p: Vec<f64>, mu: Vec<f64>, gamma: f64) -> [Named<'static>; 5] {
    [
        ("phi", &[3, 2], vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5]),
        ("P", &[2, 3, 3], p),
        ("r", &[2, 3], vec![1.0, 0.0, 0.5, 0.2, 0.1, 0.9]),
        ("mu", &[2, 3], mu),
        ("gamma", &[], vec![gamma]),
    ]
}

fn doubly() -> Vec<f64> {
    [0.2, 0.3, 0.5, 0.3, 0.5, 0.2, 0.5, 0.2, 0.3].repeat(2)
}

/// Readers tell files apart by their names, not by the hashes of their contents.
#[test]
fn files_that_vary_are_named() {
    let records = |shift: f64| -> String {
        let record = |i: u32| format!("{},{}\n", shift + f64::from(i % 7), i % 2);
        std::iter::once("a,label\n".to_owned()).chain((0..20).map(record)).collect()
    };
    for (paths, names) in [
        (["data/first.csv", "data/second.csv"], ["first.csv", "second.csv"]),
        (["low/records.csv", "high/records.csv"], ["low/records.csv", "high/records.csv"]),
    ] {
        let problem = format!(
            "[problem.logistic-dataset]\nl2 = 0.1\n[problem.logistic-dataset.dataset]\nclients = 2\nfile = {paths:?}"
        );
        let bench = Bench::new();
        bench.write("mine.toml", manifest(&problem));
        for (place, path) in paths.iter().enumerate() {
            bench.write(path, records(place as f64));
        }
        bench.compute(&["mine.toml"]);
        bench.report();
        let page = bench.read("reports/mine/report.md");
        bench.run(&["export", "--out", "frame.csv"]).expect(0);
        let frame = bench.read("frame.csv");
        for name in names {
            assert!(page.contains(name) && frame.contains(name), "{name}\n{page}\n{frame}");
        }
        assert!(!page.contains("sha256:") && !frame.contains("sha256:"), "{page}\n{frame}");
    }
}

#[test]
fn chains_from_a_file_run() {
    let bytes = doubles(&chains(doubly(), vec![1.0 / 3.0; 6], 0.9));
    Data::new(CHAINS, "chains.npz", &bytes).accepted();
}

#[test]
fn chains_that_are_wrong_are_refused() {
    let third = vec![1.0 / 3.0; 6];
    let chains = |p, mu, gamma| doubles(&chains(p, mu, gamma));
    let with = |at: usize, x: f64| {
        let mut p = doubly();
        p[at] = x;
        p
    };
    let wheel = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0].repeat(2);
    let islands = [1.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.5, 0.5].repeat(2);
    let mut other = third.clone();
    other[4] = 0.4;
    for (bytes, message) in [
        (
            chains(with(13, 0.6), third.clone(), 0.9),
            "`P`[1, 1] sums to 1.0999999999999999; a row must sum to one",
        ),
        (
            chains(with(2, -0.5), third.clone(), 0.9),
            "`P`[0, 0, 2] is -0.5; a probability is 0 or more",
        ),
        (chains(with(2, f64::NAN), third.clone(), 0.9), "`P`[0, 0, 2] is NaN; every number"),
        (chains(doubly(), third.clone(), 1.0), "`gamma` is 1; a discount is in [0, 1)"),
        (
            chains(doubly(), other, 0.9),
            "`mu`[1, 1] is 0.4, but the stationary distribution of `P`[1] has 0.333",
        ),
        (chains(wheel, third.clone(), 0.9), "`P`[0] is periodic"),
        (chains(islands, third.clone(), 0.9), "`P`[0] has no unique stationary distribution"),
        (doubles(&[("phi", &[3, 2], vec![0.0; 6])]), "there is no array `P`, only phi"),
        (doubles(&[("phi", &[6], vec![0.0; 6])]), "`phi` has the shape [6]; expected (S, d)"),
        (b"PK\x03\x04 no more".to_vec(), "chains.npz: it is not a zip archive"),
    ] {
        let output = Data::new(CHAINS, "chains.npz", &bytes).refused(message);
        output.warns("mine.toml:6:8 (problem.mdp.file)");
    }
}

/// Rows of float32 sum to one within float32's rounding; more is another matter, and the
/// message has the digits that tell.
#[test]
fn chains_in_single_precision_run() {
    let p = [0.1, 0.2, 0.7, 0.2, 0.7, 0.1, 0.7, 0.1, 0.2].repeat(2);
    let sum = p[..3].iter().fold(0.0, |sum, x| sum + f64::from(*x as f32));
    assert!((sum - 1.0).abs() > 1e-9, "{sum} is no test");
    let single = |p| singles(&chains(p, vec![1.0 / 3.0; 6], 0.9));
    Data::new(CHAINS, "chains.npz", &single(p.clone())).accepted();
    let mut off = p;
    off[0] += 2e-6;
    let output = Data::new(CHAINS, "chains.npz", &single(off)).refused("`P`[0, 0] sums to 1.00000");
    assert!(!output.err.contains("sums to 1.000000;"), "{}", output.err);
}

#[test]
fn the_labels_are_no_feature() {
    let settings = "clients = 1, features = [\"a\", \"label\"]";
    let table = b"a,label\n1,0\n2,1\n3,1\n";
    let text = "names `label`, which is the label column";
    Data::new(&records(settings), "r.csv", table).refused(text);
}

#[test]
fn a_singular_system_is_refused() {
    let law_of = |entries: [f64; 2]| {
        let ones = vec![1.0, 1.0];
        let arrays: [Named<'_>; 3] = [
            ("A", &[2, 1, 1, 1], entries.to_vec()),
            ("b", &[2, 1, 1], ones.clone()),
            ("p", &[2, 1], ones),
        ];
        Data::new("[problem.atoms]\nfile = \"lsa.npz\"", "lsa.npz", &doubles(&arrays))
    };
    law_of([1.0, -1.0]).refused("the clients' mean matrix is singular");
    law_of([1.0, 2.0]).accepted();
}

/// Those of the one cell, as `finals.csv` has them.
fn last_errors(bench: &Bench, pages: &str) -> String {
    let text = bench.read(&format!("{pages}/mine/finals.csv"));
    text.lines().nth(1).unwrap().rsplit(',').next().unwrap().to_owned()
}

fn records(settings: &str) -> String {
    format!("[problem.logistic-dataset]\nl2 = 0.1\ndataset = {{ file = \"r.csv\", {settings} }}")
}

const TABLE: &str = "age,site,label\n1,a,0\n2,b,1\n3,a,1\n4,b,0\n5.5,c,1\n-6,c,0\n";

#[test]
fn records_of_every_format_give_the_same_cells_results() {
    let finals = |settings: &str, file: &str, bytes: &[u8]| {
        let data = Data::new(&records(settings).replace("r.csv", file), file, bytes);
        data.accepted();
        last_errors(&data.bench, "reports")
    };
    let csv =
        finals("features = [\"age\"], clients = 2, split = \"iid\"", "r.csv", TABLE.as_bytes());
    let libsvm = "0 1:1\n1 1:2\n1 1:3\n0 1:4\n1 1:5.5\n0 1:-6\n";
    assert_eq!(finals("clients = 2", "r.svm", libsvm.as_bytes()), csv);
    let x = vec![1.0, 2.0, 3.0, 4.0, 5.5, -6.0];
    let y = vec![0.0, 1.0, 1.0, 0.0, 1.0, 0.0];
    let columns = doubles(&[("age", &[6], x.clone()), ("label", &[6], y.clone())]);
    assert_eq!(finals("features = [\"age\"], clients = 2", "r.npz", &columns), csv);
    let arrays = doubles(&[("x", &[6, 1], x), ("y", &[6], y)]);
    assert_eq!(finals("clients = 2", "r.npz", &arrays), csv);
}

/// Where a column says who holds which records, nothing is drawn, and the file says how many
/// clients there are.
#[test]
fn clients_that_a_column_names() {
    let settings = "features = [\"age\"], split = { column = \"site\" }";
    let data = Data::new(&records(settings), "r.csv", TABLE.as_bytes());
    let run = |set: &str| data.bench.run(&["run", "mine.toml", "--set", set]);
    let remedy = "delete `instances`, or draw a test set for each with `test = 0.2` in `dataset`";
    run("instances=3").expect(2).warns(remedy);
    run("algorithm.fedavg.cohort=1").expect(0);
    let digests = data.bench.digests("results");
    run("algorithm.fedavg.cohort=0.1").expect(0);
    assert_eq!(data.bench.digests("results"), digests);
}

/// Categories are indicators of all but the first, and values that are missing are means, or their
/// records are left out: as in a file that holds that.
#[test]
fn categories_and_missing_values() {
    let finals = |settings: &str, table: &str| {
        let settings = format!("clients = 2, split = \"iid\"{settings}");
        let data = Data::new(&records(&settings), "r.csv", table.as_bytes());
        data.accepted();
        last_errors(&data.bench, "reports")
    };
    let colours = "age,colour,label\n1,red,0\n2,blue,1\n3,green,1\n4,blue,0\n";
    let holes = "age,x,label\n1,2,0\n,4,1\n3,NA,1\n5,6,0\n7,8,1\n";
    for (settings, table, like) in [
        (
            ", categorical = [\"colour\"]",
            colours,
            "age,green,red,label\n1,0,1,0\n2,0,0,1\n3,1,0,1\n4,0,0,0\n",
        ),
        (", missing = \"mean\"", holes, "age,x,label\n1,2,0\n4,4,1\n3,5,1\n5,6,0\n7,8,1\n"),
        (", missing = \"drop\"", holes, "age,x,label\n1,2,0\n5,6,0\n7,8,1\n"),
    ] {
        assert_eq!(finals(settings, table), finals("", like), "{settings}");
    }
}

/// Marks of missing values, as pandas, R, databases and spreadsheets write them.
const MARKS: [&str; 12] =
    ["", "NA", "N/A", "nan", "NaN", "null", "None", "?", "-", ".", "#N/A", "NaT"];

/// Three columns in which a mark may be: a feature, the label and the client.
fn with_mark(column: usize, mark: &str) -> String {
    let mut table = String::from("age,label,site\n");
    for i in 0..12 {
        let age = format!("{}.5", i * 5 % 7);
        let mut row = [age.as_str(), ["yes", "no"][i % 3 % 2], ["a", "b"][i % 2]];
        if i == 4 {
            row[column] = mark;
        }
        table += &format!("{}\n", row.join(","));
    }
    table
}

/// The table without the record of the mark.
fn without_mark(column: usize) -> String {
    let table = with_mark(column, "NA");
    table
        .lines()
        .enumerate()
        .filter(|(i, _)| *i != 5)
        .map(|(_, line)| format!("{line}\n"))
        .collect()
}

/// One list of marks for features, labels and clients: each is refused with its place and the key,
/// or its record is left out, as in a file without it.
#[test]
fn a_mark_of_a_missing_value_is_no_value_in_any_column() {
    let settings = "split = { column = \"site\" }, features = [\"age\"]";
    let dropping = records(&format!("{settings}, missing = \"drop\""));
    for (column, what) in [
        (0, "line 6, column `age`: the value is missing"),
        (1, "line 6, column `label`: the label is missing"),
        (2, "line 6, column `site`: the name of the client is missing"),
    ] {
        let data = Data::new(&records(settings), "r.csv", without_mark(column).as_bytes());
        data.accepted();
        let without = last_errors(&data.bench, "reports");
        // All of them where a mark is easily a class; the list is the same for the other columns.
        let marks = if column == 1 { &MARKS[..] } else { &MARKS[..2] };
        for mark in marks {
            data.bench.write("r.csv", with_mark(column, mark));
            let output = data.bench.run(&["check", "mine.toml"]).expect(2);
            output.warns(what).warns("write `missing = \"");
        }
        data.bench.write("mine.toml", manifest(&dropping));
        for mark in ["", "-"] {
            data.bench.write("r.csv", with_mark(column, mark));
            data.accepted();
            assert_eq!(last_errors(&data.bench, "reports"), without, "{column} {mark:?}");
        }
    }
    let means = records(&format!("{settings}, missing = \"mean\""));
    for (column, name) in [(1, "label"), (2, "site")] {
        let data = Data::new(&means, "r.csv", with_mark(column, "NA").as_bytes());
        data.refused("`missing = \"mean\"` fills in features alone").warns(&format!("`{name}`"));
    }
    // Numbers with a mark are numbers: of ten classes, 10 comes last.
    let numbers = "age,label\n1,9\n2,10\n3,9\n2.5,10\n4,10\n";
    let dropping = records("clients = 1, split = \"iid\", missing = \"drop\"");
    let finals = |table: &str| {
        let data = Data::new(&dropping, "r.csv", table.as_bytes());
        data.accepted();
        last_errors(&data.bench, "reports")
    };
    assert_eq!(finals(&format!("{numbers}9,NA\n")), finals(numbers));
    // A sign is no mark, and neither is a text that only resembles one.
    for (one, other) in [("+", "-"), ("Na", "K"), ("none", "some")] {
        let table = format!("age,label\n1,{one}\n2,{other}\n3,{one}\n4.5,{other}\n");
        Data::new(&records("clients = 1"), "r.csv", table.as_bytes()).accepted();
    }
}

/// A column that marks the test set.
#[test]
fn a_mark_of_the_test_set_may_be_missing() {
    let settings = "clients = 1, features = [\"age\"], test = { column = \"held\" }";
    let table = "age,held,label\n1,0,0\n2,NA,1\n3,0,1\n4,1,0\n5.5,1,1\n";
    let data = Data::new(&records(settings), "r.csv", table.as_bytes());
    data.refused("line 3, column `held`: the mark of the test set is missing");
    let dropping = records(&format!("{settings}, missing = \"drop\""));
    Data::new(&dropping, "r.csv", table.as_bytes()).accepted();
}

/// Forty records with a column before the others.
fn indexed(name: &str, value: impl Fn(usize) -> String) -> String {
    let rows = (0..40).map(|i| {
        let (age, label) = (i * 17 % 23, i * i % 7 % 2);
        format!("{},{age}.5,{label}\n", value(i))
    });
    std::iter::once(format!("{name},age,label\n")).chain(rows).collect()
}

/// What numbers or names the rows is no feature unless it is named, and that is said.
#[test]
fn an_index_of_rows_is_no_feature() {
    let settings = "clients = 2, standardise = true";
    let only = format!("{settings}, features = [\"age\"]");
    let finals = |settings: &str, table: &str| {
        let data = Data::new(&records(settings), "r.csv", table.as_bytes());
        let said = data.bench.run(&["check", "mine.toml"]).expect(0).err;
        data.accepted();
        let page = data.bench.read("reports/mine/report.md");
        (last_errors(&data.bench, "reports"), said, page)
    };
    let index = |i: usize| i.to_string();
    let (without, said, _) = finals(&only, &indexed("", index));
    assert_eq!(said, "");
    for (name, value, column) in [
        ("", index as fn(usize) -> String, "the first column, which has no name,"),
        ("\"\"", |i| (i + 1).to_string(), "the first column, which has no name,"),
        ("", |i| format!("car {i}"), "the first column, which has no name,"),
        ("Unnamed: 0", |i| (i * 3).to_string(), "column `Unnamed: 0`"),
        ("id", |i| (i + 1).to_string(), "column `id`"),
    ] {
        let (without_index, said, page) = finals(settings, &indexed(name, value));
        assert_eq!(without_index, without, "{name}");
        let text = format!("r.csv: {column} numbers or names the rows, and is no feature");
        assert!(said.starts_with(&format!("warning: mine.toml: {text}")), "{said}");
        assert!(page.contains("numbers or names the rows, and is no feature"), "{page}");
    }
    // A column that a manifest names is a feature.
    let named = format!("{settings}, features = [\"id\", \"age\"]");
    let (with, said, _) = finals(&named, &indexed("id", |i| (i + 1).to_string()));
    assert!(with != without && said.is_empty(), "{said}");
    // Distinct whole numbers in another order are a feature, with a warning.
    let (_, said, _) = finals(settings, &indexed("id", |i| (1000 + i * 7 % 40).to_string()));
    let text = "all values of column `id` are different whole numbers: if they number the records";
    assert!(said.contains(text), "{said}");
}

/// A first line of values is not taken for names.
#[test]
fn a_file_without_a_header_is_refused() {
    let rows = |i: usize| format!("{}.25,{},{}\n", i * 7 % 11, i * 5 % 13, i % 2);
    let numbers: String = (0..30).map(rows).collect();
    let species = |i: usize| format!("{}.1,{}\n", i * 7 % 11, ["setosa", "virginica"][i % 2]);
    let texts: String = (0..30).map(species).collect();
    for (table, label, what) in [(&numbers, "1", "numbers"), (&texts, "setosa", "values")] {
        let said = format!("line 1 holds {what} and no names; add a header line");
        let label = format!("clients = 2, label = \"{label}\"");
        let data = Data::new(&records(&label), "r.csv", table.as_bytes());
        data.refused(&said);
        for command in [&["check", "mine.toml"][..], &["data", "r.csv"], &["init", "r.csv"]] {
            data.bench.run(command).expect(2).warns(&said);
        }
    }
    // Years are names beside another one.
    let years = "country,1990,1991,label\na,1,2,0\nb,2,1,1\na,3,5,1\nb,4,1,0\n";
    let settings = records("split = { column = \"country\" }, features = [\"1990\", \"1991\"]");
    Data::new(&settings, "r.csv", years.as_bytes()).accepted();
}

/// Whole numbers that double precision cannot tell apart are different clients and classes.
#[test]
fn long_numbers_of_clients_and_classes_are_told_apart() {
    let table = |users: [&str; 4], labels: [&str; 3]| -> String {
        let row = |i: usize| {
            let (user, label) = (users[i % 4], labels[i / 4 % 3]);
            format!("{}.5,{user},{label}\n", i * 17 % 23)
        };
        std::iter::once("age,user,label\n".to_owned()).chain((0..48).map(row)).collect()
    };
    let settings = "features = [\"age\"], split = { column = \"user\" }";
    let finals = |users: [&str; 4], labels: [&str; 3]| {
        let data = Data::new(&records(settings), "r.csv", table(users, labels).as_bytes());
        data.accepted();
        last_errors(&data.bench, "reports")
    };
    let two = ["0", "1", "1"];
    // In the order of the numbers.
    let letters = finals(["b", "c", "d", "a"], two);
    let long = ["1234567890123456789", "1234567890123456790", "1234567890123456800", "7"];
    assert_eq!(finals(long, two), letters);
    // One number in several spellings is one client; texts are compared as texts.
    let one = finals(["b", "a", "a", "a"], two);
    assert_eq!(finals(["2", "1", "01", "1.0"], two), one);
    assert_eq!(finals(["y", "1", "01", "1.0"], two), finals(["d", "b", "a", "c"], two));

    let labels = ["9007199254740992", "9007199254740993", "5"];
    let three = table(["a", "b", "c", "d"], labels);
    let data = Data::new(&records(settings), "r.csv", three.as_bytes());
    data.refused("has 3 distinct labels (9007199254740992, 9007199254740993, 5); two are needed");
    assert_eq!(
        finals(["a", "b", "c", "d"], [labels[0], labels[1], labels[1]]),
        finals(["a", "b", "c", "d"], two)
    );
    data.bench.run(&["data", "r.csv"]).expect(0).prints("3 classes: 5 (16)");
    let libsvm = records("clients = 2").replace("r.csv", "r.svm");
    let data = Data::new(&libsvm, "r.svm", b"5 1:1\n9007199254740993 1:2\n5 1:3\n");
    data.refused("line 2: the label 9007199254740993 is a whole number beyond 2^53");
    // As a feature such a number is the nearest of double precision.
    let feature = "big,label\n1234567890123456789,0\n5,1\n1234567890123456700,1\n";
    Data::new(&records("clients = 1, standardise = true"), "r.csv", feature.as_bytes()).accepted();
}

/// With unequal shares and a part of the clients in each round FedAvg has another fixed point, also
/// with one local step and without noise; Scaffold has not. That is said, before and after the run.
#[test]
fn unequal_shares_of_a_part_of_the_clients_are_biased() {
    let site = |i: usize| ["a", "a", "a", "b", "b", "c"][i % 6];
    let row = |i: usize| {
        let label = u8::from(i * 17 % 23 > [4, 4, 4, 12, 12, 18][i % 6]);
        format!("{}.5,{},{label}\n", i * 17 % 23, site(i))
    };
    let table: String =
        std::iter::once("age,site,label\n".to_owned()).chain((0..60).map(row)).collect();
    let problem = |weights: &str| {
        format!(
            "oracle = \"exact\"\n{}",
            records(&format!(
                "split = {{ column = \"site\" }}, standardise = true, weights = \"{weights}\""
            ))
        )
    };
    let of = |weights: &str, cohort: &str| {
        let data = Data::new("", "r.csv", table.as_bytes());
        let algorithm = |kind: &str| {
            format!("[[algorithm.{kind}]]\nstep-size = 0.2\nlocal-steps = 1\n{cohort}")
        };
        let text = manifest(&problem(weights))
            .replace("rounds = 3", "rounds = 4000")
            .replace("[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n", "");
        data.bench.write("mine.toml", text + &algorithm("fedavg") + &algorithm("scaffold"));
        let checked = data.bench.run(&["check", "mine.toml"]).expect(0).err;
        let planned = data.bench.run(&["plan", "mine.toml"]).expect(0).err;
        data.accepted();
        let page = data.bench.read("reports/mine/report.md");
        let rows = data.bench.rows("reports/mine/summary.csv");
        let error = |label: &str| {
            let row = rows.iter().find(|row| row["label"] == label).unwrap();
            row["sq_error_mean"].parse::<f64>().unwrap()
        };
        (checked, planned, page, error("FedAvg"), error("Scaffold"))
    };
    let bias = "the mean of a round’s step is not the gradient of the objective";
    let (checked, planned, page, fedavg, scaffold) = of("records", "cohort = 1\n");
    for text in [&checked, &planned] {
        assert!(
            text.contains(bias) && text.contains("FedAvg (1 of 3 clients in a round)"),
            "{text}"
        );
        assert!(!text.contains("Scaffold"), "{text}");
    }
    assert!(page.contains("Participation is biased: with unequal shares"), "{page}");
    assert!(page.contains("expected weight is then not its share"), "{page}");
    assert!(fedavg > 1e-4 && scaffold < 1e-20, "{fedavg} {scaffold}");
    for (weights, cohort) in [("records", ""), ("equal", "cohort = 1\n")] {
        let (checked, planned, page, ..) = of(weights, cohort);
        assert_eq!((checked.as_str(), planned.as_str()), ("", ""));
        assert!(!page.contains("Participation is biased"), "{page}");
    }
}

#[test]
fn values_that_are_no_numbers_are_named() {
    let settings = records("features = [\"age\"], clients = 2");
    for (table, message) in [
        ("age,label\n1,0\n2,inf\n", "line 3: the label is inf, not finite"),
        (
            "age,label\n1,0\n2,1\n3,0\n<0.5,1\n4,1\n<0.5,0\n",
            "it holds numbers but for \"<0.5\" in 2 rows, first in line 5; replace these",
        ),
        (
            "age,label\n1,0\n2,1\n3,0\n-,1\n<0.5,1\n4,1\n>9,0\n",
            "it holds numbers but for 2 texts in 2 rows, first \"<0.5\" in line 6; replace these",
        ),
        (
            "age,label\n1,0\n-,1\n",
            "the value is missing (\"-\"); fill it in, or remove the record, or write `missing",
        ),
    ] {
        Data::new(&settings, "r.csv", table.as_bytes()).refused(message);
    }
}

#[test]
fn records_that_are_wrong_are_refused() {
    let iid = "features = [\"age\"], clients = 2";
    for (settings, table, message) in [
        (iid, "age,label\n1,0\n2,0\n", "has 1 distinct label (0); two are needed"),
        (iid, "age,label\n1,0\n2,1\n3,2\n", "has 3 distinct labels (0, 1, 2)"),
        (iid, "age,label\n1,0\n,1\n", "line 3, column `age`: the value is missing; fill it in"),
        (iid, "age,label\n1,0\nNaN,1\n", "line 3, column `age`: the value is missing"),
        (iid, "age,label\n1,0\nNA,1\n", "or remove the record, or write `missing = \"mean\"`"),
        (iid, "age,label\n1,0\nx,1\n", "column `age` is not a feature: line 3 is \"x\""),
        (
            "categorical = [\"age\"], clients = 2",
            "age,label\n1,0\n,1\n2,1\n",
            "line 3, column `age`: the value is missing; fill it in",
        ),
        (iid, "age,label\n1,0\n2,\n", "line 3, column `label`: the label is missing; fill it in"),
        (
            "categorical = [\"site\"], clients = 2, features = [\"age\"]",
            TABLE,
            "names `site`, which is no feature",
        ),
        (iid, "age,label\n1,0\n2\n", "line 3: it has 1 value, but there are 2 columns"),
        (iid, "old,label\n1,0\n2,1\n", "there is no column `age` in r.csv, only old, label"),
        ("clients = 2, features = [\"age\"], label = \"y\"", TABLE, "there is no column `y`"),
        ("clients = 9, features = [\"age\"]", TABLE, "client 0 of 9 gets no records of the 6"),
        ("clients = 2, split = { column = \"site\" }", TABLE, "combined with a split by column"),
        ("split = \"iid\"", TABLE, "the number of clients among which"),
        ("clients = 2, split = { dirichlet = 0.0 }", TABLE, "must be a finite number above 0"),
        (
            "clients = 9, features = [\"age\"], split = { dirichlet = 1e-3 }",
            TABLE,
            "gets no records",
        ),
        (
            "clients = 2, features = [\"one\"], standardise = true",
            "one,label\n1,0\n1,1\n",
            "of the clients cannot be standardised; leave them out: `one`",
        ),
        (
            "clients = 9, features = [\"age\"], split = { quantity = 1 }",
            TABLE,
            "client 0 of 9 gets",
        ),
        ("clients = 2, split = { quantity = -1 }", TABLE, "must be a finite number above 0"),
        ("clients = 2, features = [\"age\"], test = 1.5", TABLE, "above 0 and below 1, not 1.5"),
        ("clients = 2, features = [\"age\"], test = 0.01", "age,label\n1,0\n", "0 of 1 records to"),
        ("clients = 2, test = { column = \"t\" }", TABLE, "there is no column `t`"),
        (
            "clients = 2, test = { column = \"site\" }",
            TABLE,
            "line 2 of the column of the test set",
        ),
        ("clients = 2, test = \"most\"", TABLE, "unknown name `most`"),
        ("clients = 2, test = true", TABLE, "expected a number or one of fraction, column"),
        ("clients = 2, weights = \"size\"", TABLE, "unknown name `size`"),
    ] {
        let data = Data::new(&records(settings), "r.csv", table.as_bytes());
        data.refused(message).warns("mine.toml:7");
    }
}

/// A class of the test set that no client has, and metrics that a problem does not have.
#[test]
fn test_sets_and_metrics_that_are_wrong_are_refused() {
    let marked = "clients = 2, features = [\"age\"], test = { column = \"held\" }";
    let table = "age,label,held\n1,a,0\n2,b,0\n3,c,1\n4,a,0\n";
    let data = Data::new(&records(marked), "r.csv", table.as_bytes());
    data.refused("only records of the test set have the label \"c\"").warns("dataset.test)");

    let ridge = "[problem.least-squares-dataset]\ndataset = { file = \"r.csv\", clients = 2, features = [\"age\"] }";
    for (problem, metric, message) in [
        (ridge, "accuracy", "`metrics` has `accuracy`, but `least-squares-dataset` has no classes"),
        (ridge, "test-loss", "`metrics` has `test-loss`, but there is no test set: write `test"),
        (
            "[problem.quadratic]\ndimension = 2\nclients = 2\nspectrum = { from = 1.0, to = 2.0 }\nnoise = 0.1",
            "train-loss",
            "`metrics` has `train-loss`, but `quadratic` is not a problem of records",
        ),
    ] {
        let problem = format!("{problem}\n[record]\nmetrics = [\"{metric}\"]");
        Data::new(&problem, "r.csv", TABLE.as_bytes()).refused(message);
    }
}

/// A client that a column names must keep records when a test set is drawn; a column that marks the
/// test set may leave it out.
#[test]
fn a_test_set_takes_no_client_away() {
    let mut table = String::from("age,site,held,label\n");
    (0..20).for_each(|i| table += &format!("{i}.5,s{},0,{}\n", i % 2, i % 3 % 2));
    table += "7.5,alone,1,1\n";
    let settings = |test: &str| {
        format!(
            "[problem.logistic-dataset]\ndataset = {{ file = \"r.csv\", features = [\"age\"], split = {{ column = \"site\" }}, test = {test} }}\nl2 = 0.1"
        )
    };
    let marked = Data::new(&settings("{ column = \"held\" }"), "r.csv", table.as_bytes());
    marked.accepted();
    let drawn = Data::new(&settings("0.5"), "r.csv", table.as_bytes());
    let lost = (1..20).filter(|seed| {
        let output = drawn.bench.run(&["check", "mine.toml", "--set", &format!("seed={seed}")]);
        let lost = output.code == 2;
        assert!(!lost || output.err.contains("all records of the client \"alone\" are drawn"));
        lost
    });
    // Half of the seeds draw the only record of the client.
    assert!((4..16).contains(&lost.count()));
}

/// Clients that weigh by their records, a test set, and what is measured over records: an
/// accuracy has a linear axis, and the page says that means are weighted.
#[test]
fn losses_and_accuracies_are_recorded_and_drawn() {
    let rows = (0..60).map(|i| {
        let label = if i % 3 == 0 { "yes" } else { "no" };
        let age = f64::from(i % 7) + if i % 3 == 0 { 4.0 } else { 0.0 };
        format!("{age},{label},{}\n", ["a", "b", "b", "c", "c", "c"][i as usize % 6])
    });
    let table: String = std::iter::once("age,label,site\n".to_owned()).chain(rows).collect();
    let settings = "split = { column = \"site\" }, weights = \"records\", test = 0.2, standardise = true, intercept = true";
    let data = Data::new(&records(settings), "r.csv", table.as_bytes());
    let metrics = ["train-loss", "test-loss", "accuracy", "test-accuracy", "correction-sum"];
    let figures = metrics[..4].iter().map(|y| format!("[[figure.convergence]]\ny = \"{y}\"\n"));
    let more = format!(
        "[[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = 2\n[record]\nmetrics = {metrics:?}\n{}",
        figures.collect::<String>()
    );
    let text = manifest(&records(settings)).replace("rounds = 3", "rounds = 300");
    data.bench.write("mine.toml", text + &more);
    data.accepted();
    let page = data.bench.read("reports/mine/report.md");
    assert!(page.contains("Clients weigh by their records"), "{page}");
    assert!(page.contains("test accuracy over communications"), "{page}");
    data.bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
    let rows = data.bench.read("rows.csv");
    let heads: Vec<&str> = rows.lines().next().unwrap().split(',').collect();
    let at = |name: &str| heads.iter().position(|head| *head == name).unwrap();
    for line in rows.lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let value = |name: &str| row[at(name)].parse::<f64>().unwrap();
        assert!((0.0..=1.0).contains(&value("test_accuracy")), "{line}");
        if row[at("round")] == "0" {
            assert!((value("train_loss") - std::f64::consts::LN_2).abs() < 1e-12, "{line}");
            assert_eq!(value("accuracy"), 0.5);
        }
        if row[at("round")] == "300" {
            assert!(value("accuracy") > 0.6 && value("test_loss") < 0.69, "{line}");
        }
    }
}

/// Twelve records of 40 features, of which two are not 0.
fn sparse_text() -> String {
    let line = |i: usize| format!("{} {}:1.5 {}:-0.5\n", i % 2, 1 + i % 7, 9 + 5 * (i % 3) + i);
    (0..12).map(line).collect::<String>() + "1 40:1\n"
}

/// The same file in both forms gives the same problem: θ* and runs agree up to rounding.
#[test]
fn sparse_and_dense_records_agree() {
    let finals = |settings: &str, file: &str, bytes: &[u8]| -> f64 {
        let data = Data::new(&records(settings).replace("r.csv", file), file, bytes);
        data.accepted();
        last_errors(&data.bench, "reports").split(' ').next().unwrap().parse().unwrap()
    };
    let text = sparse_text();
    let weighted =
        ", intercept = true, split = { quantity = 1.0 }, weights = \"records\", test = 0.25";
    for settings in ["", ", intercept = true", weighted] {
        let of = |storage: &str| format!("clients = 2{settings}{storage}");
        let dense = finals(&of(", storage = \"dense\""), "r.svm", text.as_bytes());
        let sparse = finals(&of(""), "r.svm", text.as_bytes());
        assert_ne!(dense.to_bits(), 0);
        assert!((sparse / dense - 1.0).abs() < 1e-10, "{sparse} {dense}");
        let rows = finals(&of(""), "r.npz", &scipy(&text));
        assert_eq!(rows.to_bits(), sparse.to_bits());
    }
}

/// Losses and accuracies over the clients' records and a test set that an array marks, of clients
/// that weigh by their records.
#[test]
fn sparse_and_dense_records_are_measured_the_same() {
    let metrics = ["suboptimality", "train-loss", "test-loss", "accuracy", "test-accuracy"];
    let measured = |storage: &str| -> Vec<f64> {
        let settings = format!(
            "split = {{ column = \"client\" }}, weights = \"records\", test = {{ column = \"held\" }}, storage = \"{storage}\""
        );
        let settings = records(&settings).replace("r.csv", "r.npz");
        let text = sparse_text();
        let n = text.lines().count();
        let column = |of: fn(usize) -> bool| (0..n).map(|i| f64::from(u8::from(of(i)))).collect();
        let mut arrays = scipy_arrays(&text);
        arrays.push(("client".into(), vec![n], column(|i| i % 5 == 0)));
        arrays.push(("held".into(), vec![n], column(|i| i % 4 == 1)));
        let data = Data::new(&settings, "r.npz", &npz_of(&arrays));
        let more = format!(
            "[[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = 2\n[record]\nmetrics = {metrics:?}\n"
        );
        data.bench.write("mine.toml", manifest(&settings) + &more);
        data.accepted();
        data.bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
        let rows = data.bench.read("rows.csv");
        let heads: Vec<&str> = rows.lines().next().unwrap().split(',').collect();
        let names = metrics.map(|name| name.replace('-', "_"));
        let places =
            names.map(|name| heads.iter().position(|head| *head == name.as_str()).unwrap());
        let values = |line: &str| {
            let row: Vec<&str> = line.split(',').collect();
            places.map(|place| row[place].parse::<f64>().unwrap())
        };
        // By all but the experiment and the cell, whose identifiers differ.
        let mut lines: Vec<&str> = rows.lines().skip(1).collect();
        lines.sort_by_key(|line| line.splitn(3, ',').nth(2));
        lines.into_iter().flat_map(values).collect()
    };
    let (sparse, dense) = (measured("sparse"), measured("dense"));
    assert_eq!(sparse.len(), dense.len());
    assert!(sparse.len() > 5 * metrics.len());
    for (have, want) in sparse.iter().zip(&dense) {
        assert!((have - want).abs() <= 1e-10 * want.abs(), "{have}, not {want}");
    }
}

/// A text of LIBSVM as the arrays of `scipy.sparse.save_npz` with labels.
fn scipy(text: &str) -> Vec<u8> {
    npz_of(&scipy_arrays(text))
}

/// Arrays with their shapes.
fn npz_of(arrays: &[(String, Vec<usize>, Vec<f64>)]) -> Vec<u8> {
    let named: Vec<crate::npz::Named<'_>> = arrays
        .iter()
        .map(|(name, shape, values)| (name.as_str(), shape.as_slice(), values.clone()))
        .collect();
    doubles(&named)
}

fn scipy_arrays(text: &str) -> Vec<(String, Vec<usize>, Vec<f64>)> {
    let (mut values, mut indices, mut ends, mut labels) = (vec![], vec![], vec![0.0], vec![]);
    for line in text.lines() {
        let mut words = line.split(' ');
        labels.push(words.next().unwrap().parse().unwrap());
        for (i, x) in words.map(|word| word.split_once(':').unwrap()) {
            indices.push(i.parse::<f64>().unwrap() - 1.0);
            values.push(x.parse().unwrap());
        }
        ends.push(values.len() as f64);
    }
    let vector = |name: &str, values: Vec<f64>| (name.to_owned(), vec![values.len()], values);
    vec![
        vector("shape", vec![labels.len() as f64, 40.0]),
        vector("data", values),
        vector("indices", indices),
        vector("indptr", ends),
        vector("y", labels),
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
        (sparse, changed("1:", "0:"), "line 1: \"0:1.5\" is not index:value with an index from 1"),
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
        let settings = records(settings).replace("r.csv", "r.svm");
        Data::new(&settings, "r.svm", text.as_bytes()).refused(message).warns("mine.toml:7");
    }
    let ridge = "[problem.least-squares-dataset]\nl2 = 0.1\ndataset = { file = \"r.svm\", clients = 2, storage = \"sparse\" }";
    Data::new(ridge, "r.svm", good.as_bytes()).refused("this problem has no sparse features");
    let rows = scipy(&good);
    let text = "of the formats of scipy.sparse only csr is read";
    let columns = [("format", "|S3", false, &[][..], b"csc".to_vec())];
    let settings = records("clients = 2").replace("r.csv", "r.npz");
    Data::new(&settings, "r.npz", &crate::npz::npz(&columns)).refused(text);
    Data::new(&settings, "r.npz", &rows[..rows.len() / 2]).refused("it is not a zip archive");
}

/// d × d matrices are asked for in vain where there are thousands of features.
#[test]
fn matrices_of_many_features_are_refused() {
    let wide = "1 1:1 6000:2\n0 2:1\n";
    let settings = records("clients = 2").replace("r.csv", "r.svm");
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

/// Keys that only files with named columns read are not ignored for the others.
#[test]
fn columns_are_not_named_where_there_are_none() {
    let arrays = doubles(&[("x", &[2, 1], vec![1.0, 2.0]), ("y", &[2], vec![0.0, 1.0])]);
    for (key, value) in [("label", "\"y\""), ("features", "[\"x\"]")] {
        for (file, kind, bytes) in
            [("r.npz", "an .npz file", &arrays[..]), ("r.svm", "a LIBSVM file", b"0 1:1\n1 1:2\n")]
        {
            let settings = records(&format!("clients = 1, {key} = {value}")).replace("r.csv", file);
            let message = format!("names columns, but {kind} has none; leave it out");
            Data::new(&settings, file, bytes).refused(&message);
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_path() {
    let bench = Bench::new();
    bench.write("folder/mine.toml", manifest(&records("clients = 2")));
    let output = bench.run(&["check", "folder/mine.toml"]).expect(2);
    output.warns("folder/r.csv cannot be read: there is no such file");
    bench.write("folder/r.csv", TABLE);
    bench.write("folder/mine.toml", manifest(&records("clients = 2").replace("r.csv", "r.xls")));
    bench.write("folder/r.xls", "");
    bench.run(&["check", "folder/mine.toml"]).expect(2).warns("must end in .npz, .csv");
}

/// A cell's id follows the file's bytes and not its name.
#[test]
fn cells_follow_the_bytes_of_their_file() {
    let settings = records("features = [\"age\"], clients = 2");
    let ids = |settings: &str, file: &str, table: &str| {
        let data = Data::new(settings, file, table.as_bytes());
        let output = data.bench.run(&["plan", "mine.toml"]).expect(0);
        output.out.lines().nth(1).unwrap().trim().split(' ').next().unwrap().to_owned()
    };
    let base = ids(&settings, "r.csv", TABLE);
    assert_eq!(ids(&settings.replace("r.csv", "other.csv"), "other.csv", TABLE), base);
    assert_ne!(ids(&settings, "r.csv", &TABLE.replace("5.5", "5.6")), base);
}

/// A report reads the copy that the results keep of a data file: its bytes are the same when
/// the file is changed or gone, and from another folder. Without the copy it names the file,
/// and `verify` still counts the other cells.
#[test]
fn reports_outlive_their_data() {
    let data = Data::new(&records("features = [\"age\"], clients = 2"), "r.csv", TABLE.as_bytes());
    data.accepted();
    let bench = &data.bench;
    let page = bench.read("reports/mine/report.md");
    assert!(page.contains("Heterogeneity of the clients"), "{page}");
    for change in [Some(TABLE.replace("5.5", "5.6")), None] {
        match change {
            Some(table) => bench.write("r.csv", &table),
            None => std::fs::remove_file(bench.path("r.csv")).unwrap(),
        }
        bench.report();
        assert_eq!(bench.read("reports/mine/report.md"), page);
        bench.run(&["verify"]).expect(0).prints("1 of 1 cells run again: 1 bit-identical");
    }
    let elsewhere = Bench::new();
    let results = bench.path("results");
    elsewhere.run(&["report", results.to_str().unwrap(), "--quiet"]).expect(0);
    assert_eq!(elsewhere.read("reports/mine/report.md"), page);
    elsewhere.run(&["merge", results.to_str().unwrap(), "--out", "results", "-q"]).expect(0);
    elsewhere.run(&["report", "--out", "merged", "--quiet"]).expect(0);
    assert_eq!(elsewhere.read("merged/mine/report.md"), page);
    elsewhere.run(&["diff", results.to_str().unwrap(), "results"]).expect(0);

    let copies = bench.files_below("results/.data");
    assert_eq!(copies.len(), 1);
    std::fs::write(&copies[0], "damaged").unwrap();
    let output = bench.run(&["report", "--quiet"]).expect(2);
    let text = "r.csv cannot be read: there is no such file; and these results have no sound copy";
    assert!(output.err.contains("error: mine cannot be reported: "), "{}", output.err);
    assert!(output.err.contains(text), "{}", output.err);
    let output = bench.run(&["verify"]).expect(4);
    output
        .prints("cannot be run: ")
        .prints(text)
        .prints("0 bit-identical, 0 different, 1 not comparable");
    // Once the file is there again, a run heals the copy.
    bench.write("r.csv", TABLE);
    bench.compute(&["mine.toml"]);
    std::fs::remove_file(bench.path("r.csv")).unwrap();
    bench.report();
}

/// θ* of many unknowns is kept beside the results by the content of the instance. What is kept
/// changes no result, whether it is read, damaged, or of another instance.
#[test]
fn optima_are_kept() {
    let wide = "[problem.synthetic]\nalpha = 1.0\nbeta = 1.0\nclients = 3\ndimension = 10\n\
                classes = 4\nrecords = { equal = 30 }\nl2 = 0.01";
    let bench = Bench::new();
    bench.write("mine.toml", manifest(wide));
    bench.compute(&["mine.toml"]);
    bench.report();
    let (digests, page) = (bench.digests("results"), bench.read("reports/mine/report.md"));
    let kept = bench.files_below("results/.optima");
    let [file] = &kept[..] else { panic!("{kept:?}") };
    let bytes = std::fs::read(file).unwrap();
    let again = || {
        bench.compute(&["mine.toml", "--force"]);
        bench.report();
        assert_eq!(bench.digests("results"), digests);
        assert_eq!(bench.read("reports/mine/report.md"), page);
        assert_eq!(std::fs::read(file).unwrap(), bytes);
    };
    again();
    std::fs::write(file, &bytes[..bytes.len() - 8]).unwrap();
    again();
    std::fs::remove_file(file).unwrap();
    again();
    // Another seed is another instance.
    bench.compute(&["mine.toml", "--set", "seed=2"]);
    assert_eq!(bench.files_below("results/.optima").len(), 2);
}

/// Instances of their own: replicates differ in the problem, and the first ones
/// stay what they were when there are more.
#[test]
fn instances_per_replicate_differ() {
    let bench = Bench::new();
    let own = "replicates = 3\ninstance = \"per-replicate\"\noracle = \"exact\"";
    let changes = [
        ("replicates = 2", own),
        ("quadratic", "lms"),
        ("clients = 2", "clients = 3"),
        ("noise = 0.1", "model-spread = 1.0, noise = 0.1"),
        ("offset = 1.0", "zero = true"),
        ("rounds = 20", "rounds = 5"),
    ];
    let entry = "algorithm.fedavg = [{ step-size = 0.1, local-steps = 2 }]\n";
    bench.write("mine.toml", edited(QUADRATIC, &changes) + entry);
    let finals = |out: &str, replicates: &str| {
        bench.compute(&["mine.toml", "--out", out, "--replicates", replicates]);
        bench.run(&["report", out, "--out", "pages", "-q"]).expect(0);
        last_errors(&bench, "pages").split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let (few, many) = (finals("a", "2"), finals("b", "4"));
    assert_eq!(few[..], many[..2]);
    assert!(many[0] != many[1] && many[1] != many[2], "{many:?}");
}
