//! What `init` writes for files that are hard to divide passes `check` and runs, whatever the seed is.

use crate::npz::{Named, doubles};
use crate::support::Bench;
use std::fmt::Write;

/// A file of `n` records with two features that vary, and further columns, whose names are `more`, with the values that
/// `values` returns for the number of a record.
fn table(n: usize, more: &str, values: impl Fn(usize) -> String) -> Vec<u8> {
    let mut text = format!("a,b,{more}\n");
    for i in 0..n {
        writeln!(text, "{}.5,{},{}", i * 7 % 23, i * 5 % 19, values(i)).unwrap();
    }
    text.into_bytes()
}

/// `rare` for one record, else `other`.
fn only(i: usize, rare: &'static str, other: &'static str) -> &'static str {
    if i == 13 { rare } else { other }
}

/// A file, with the options of `init`, and lines of the manifest that `init` then writes.
struct Case {
    file: &'static str,
    bytes: Vec<u8>,
    options: &'static [&'static str],
    lines: &'static [&'static str],
}

/// The class of a record.
fn class(i: usize) -> &'static str {
    if i.is_multiple_of(3) { "x" } else { "y" }
}

/// Tables with clients, classes, categories and features of few records.
fn tables_of_rare_values() -> Vec<Case> {
    vec![
        Case {
            file: "site.csv",
            bytes: table(60, "site,label", |i| format!("{},{}", only(i, "one", "many"), class(i))),
            options: &["--tune"],
            lines: &["test = 0.2", "test-within = \"clients\""],
        },
        Case {
            file: "class.csv",
            bytes: table(60, "label", |i| only(i, "z", class(i)).to_owned()),
            options: &["--tune"],
            lines: &["test-within = \"classes\"", "[problem.softmax-dataset]"],
        },
        Case {
            file: "pair.csv",
            bytes: table(60, "smoker,flag,label", |i| {
                format!("{},{},{}", only(i, "yes", "no"), only(i, "1", "0"), class(i))
            }),
            options: &[],
            lines: &["categorical = [\"smoker\"]", "test-within = \"classes\""],
        },
        Case {
            file: "numbers.csv",
            bytes: table(50, "one,outcome", |i| format!("1,{}.25", i * i % 31)),
            options: &["--tune"],
            lines: &["[problem.least-squares-dataset]", "test-within = \"clients\""],
        },
        Case {
            file: "labels.csv",
            bytes: table(60, "c,label", |i| {
                format!("{},{}", only(i, "", "2"), if i % 9 == 0 { "NA" } else { class(i) })
            }),
            options: &["--tune"],
            lines: &["missing = \"drop\"", "test-within = \"classes\""],
        },
    ]
}

/// Tables of few records or few known values.
fn small_tables() -> Vec<Case> {
    vec![
        Case {
            file: "known.csv",
            bytes: table(60, "c,label", |i| {
                let known = if i < 2 { i.to_string() } else { "NA".to_owned() };
                format!("{known},{}", class(i))
            }),
            options: &[],
            lines: &["missing = \"mean\"", "test-within = \"classes\""],
        },
        Case {
            file: "tiny.csv",
            bytes: table(4, "label", |i| class(i).to_owned()),
            options: &["--tune"],
            lines: &[
                "# test set: none, since clients, classes and features need nearly all records",
            ],
        },
        Case {
            file: "own.csv",
            bytes: table(30, "user,label", |i| format!("u{i},{}", class(i))),
            options: &["--clients", "user"],
            lines: &["split = { column = \"user\" }"],
        },
        Case {
            file: "parts.csv",
            bytes: table(30, "label", |i| class(i).to_owned()),
            options: &["--clients", "30"],
            lines: &["clients = 30"],
        },
    ]
}

/// Records of a LIBSVM file and of arrays that lack values.
fn incomplete_arrays() -> Vec<Case> {
    let mut svm = String::new();
    for i in 0..60 {
        let value = if i % 20 == 4 { "nan".to_owned() } else { format!("0.{}", i % 7 + 1) };
        writeln!(svm, "{} 1:{value} {}:1", i % 3 / 2, 2 + i % 4).unwrap();
    }
    let missing = |i: usize, x: f64| if i % 20 == 4 { f64::NAN } else { x };
    let x = (0..80).map(|i| missing(i, (i * 7 % 23) as f64)).collect();
    let y = (0..40).map(|i| missing(i, (i % 2) as f64)).collect();
    let dropped: [Named<'_>; 2] = [("x", &[40, 2], x), ("y", &[40], y)];
    vec![
        Case {
            file: "r.svm",
            bytes: svm.into_bytes(),
            options: &["--tune"],
            lines: &[
                "# missing values: 3 in feature 0 from 0, first in line 5",
                "missing = \"mean\"",
            ],
        },
        Case {
            file: "r.npz",
            bytes: doubles(&dropped),
            options: &[],
            lines: &[
                "# missing values: 4 in feature 0 from 0, first in row 2, \
                 2 in the labels, first in row 4, of 40 records, `missing = \"drop\"` leaves 34",
                "missing = \"drop\"",
                "test-within = \"classes\"",
            ],
        },
    ]
}

#[track_caller]
fn passes_for_every_seed(case: &Case) {
    let bench = Bench::new();
    bench.write(case.file, &case.bytes);
    let arguments = [&["init", case.file, "--out", "m.toml"], case.options].concat();
    bench.run(&arguments).expect(0);
    let text = bench.read("m.toml");
    for line in case.lines {
        assert!(text.lines().any(|have| have.starts_with(line)), "no line {line:?} in\n{text}");
    }
    for seed in 1..=5 {
        bench.run(&["check", "m.toml", "--set", &format!("seed={seed}")]).expect(0);
    }
    if !case.options.contains(&"--tune") {
        bench.compute(&["m.toml"]);
    }
}

#[test]
fn manifests_of_tables_that_are_hard_to_divide() {
    tables_of_rare_values().iter().chain(&small_tables()).for_each(passes_for_every_seed);
}

#[test]
fn manifests_of_arrays_that_lack_values() {
    incomplete_arrays().iter().for_each(passes_for_every_seed);
}

#[test]
fn more_clients_than_records_are_refused() {
    let bench = Bench::new();
    bench.write("r.csv", table(30, "label", |i| (i % 2).to_string()));
    let output = bench.run(&["init", "r.csv", "--clients", "31"]).expect(2);
    output.warns("--clients 31 is more than the number of records, 30");
}

/// The weights of clients may be a list of numbers, a choice, or an axis of choices.
#[test]
fn weights_are_a_list_or_an_axis() {
    let bench = Bench::new();
    bench.write("r.csv", table(30, "site,label", |i| format!("s{},{}", i % 3, i % 2)));
    let manifest = |weights: &str| {
        format!(
            "title = \"t\"\nseed = 1\nreplicates = 1\nstart = {{ zero = true }}\nbudget = {{ rounds = 3 }}\n\
             [problem.logistic-dataset]\nl2 = 0.1\ndataset = {{ file = \"r.csv\", split = {{ column = \"site\" }}, \
             features = [\"a\", \"b\"], standardise = true, weights = {weights} }}\n\
             [[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n"
        )
    };
    for (weights, said) in [
        ("[0.4, 0.3, 0.3]", "ok, 1 cell"),
        ("{ given = [4, 3, 3] }", "ok, 1 cell"),
        ("[\"equal\", { given = [4, 3, 3] }]", "ok, 2 cells"),
    ] {
        bench.write("m.toml", manifest(weights));
        let checked = bench.run(&["check", "m.toml"]).expect(0);
        let all = checked.out + &checked.err;
        assert!(all.contains(said), "{weights}: {all}");
    }
    for (weights, said) in [
        ("[0.5, 0.5]", "has 2 numbers, and there are 3 clients; each client needs one"),
        ("[0.5, 0.5, -1]", "must have finite numbers above 0, not -1"),
        ("[0.5, \"records\"]", "expected"),
    ] {
        bench.write("m.toml", manifest(weights));
        bench.run(&["check", "m.toml"]).expect(2).warns(said);
    }
}
