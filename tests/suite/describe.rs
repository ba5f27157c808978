//! `exactfed data`: what it prints of a file is true, and the manifest that it prints runs.

use crate::npz::{Named, doubles, singles};
use crate::support::{Bench, files_with, root};
use std::fmt::Write;

/// 120 records of two classes of text at four sites, with a constant column, one of text and one
/// that is the sum of two others.
fn table() -> String {
    let mut text = "height,width,area,one,city,site,grade\n".to_owned();
    for i in 0..120_u32 {
        let (height, width) = (f64::from(i % 11) - 3.0, f64::from((i * 7) % 13) * 0.5);
        let site = ["north", "south", "east", "west"][(i % 10 / 3) as usize];
        let grade = if height + width > 4.0 { "good" } else { "poor" };
        let area = height + width;
        writeln!(text, "{height},{width},{area},1,city {i},{site},{grade}").unwrap();
    }
    text
}

/// What is printed of this file, run as it is printed, and reported.
#[track_caller]
fn runs(file: &str, bytes: &[u8], arguments: &[&str]) -> (Bench, String) {
    let bench = Bench::new();
    bench.write(file, bytes);
    let output = bench.run(&[&["data", file], arguments].concat()).expect(0);
    assert_eq!(output.err, "");
    bench.write("start.toml", &output.out);
    bench.compute(&["start.toml"]);
    bench.report();
    for row in bench.rows("reports/start/summary.csv") {
        assert_eq!(row["diverged"], "0", "{row:?}");
    }
    (bench, output.out)
}

#[track_caller]
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|have| have == *line), "no line {line:?} in\n{text}");
    }
}

/// What `init` writes is what `data` prints; it is checked, run and reported by the commands that
/// it names, and the page has a figure. In a tuned comparison each algorithm has settings that are
/// selected among the same candidates.
#[test]
fn a_manifest_of_records_runs_by_the_commands_that_are_printed() {
    let bench = Bench::new();
    for (arguments, manifest, experiment) in [
        (&["my records.csv", "--label", "grade"][..], "my-records.toml", "my-records"),
        (&["my records.csv", "--tune", "--out", "t/tuned.toml"], "t/tuned.toml", "tuned"),
    ] {
        bench.write("my records.csv", table());
        std::fs::create_dir_all(bench.path("t")).unwrap();
        let output = bench.run(&[&["init"], arguments].concat()).expect(0);
        assert_eq!(output.err, "");
        insta::assert_snapshot!(format!("init_{experiment}"), output.out);
        let text = bench.read(manifest);
        if manifest == "my-records.toml" {
            assert_eq!(text, bench.run(&[&["data"], arguments].concat()).expect(0).out);
        }
        for line in output.out.lines().filter_map(|line| line.strip_prefix("  exactfed ")) {
            let command = line.split(" #").next().unwrap();
            bench.run(&command.split_whitespace().collect::<Vec<_>>()).expect(0);
        }
        let pages = format!("reports/{experiment}");
        assert!(bench.read(&format!("{pages}/report.html")).contains("<svg"));
        assert!(!files_with(&bench.path(&pages), "svg").is_empty());
    }
    let rows = bench.rows("reports/tuned/tuned.csv");
    let labels: Vec<&str> = rows.iter().map(|row| row["label"].as_str()).collect();
    assert_eq!(labels, ["FedAvg", "FedProx", "Richardson-Romberg", "Scaffold", "mini-batch SGD"]);
    for row in &rows {
        let number = |name: &str| row[name].parse::<f64>().unwrap();
        assert!(number("selected_step-size") > 0.0 && number("low") < number("high"), "{row:?}");
    }
}

/// What follows a line break in the name of a file would be a key of the manifest.
#[cfg(unix)]
#[test]
fn a_line_break_in_a_name_writes_no_key() {
    let bench = Bench::new();
    for line_break in ["\n", "\r\n"] {
        let name = format!("x{line_break}python = [\"code.py\"]{line_break}#.csv");
        bench.write(&name, table());
        bench.run(&["init", &name, "--out", "m.toml", "--force"]).expect(0);
        let text = bench.read("m.toml");
        assert_eq!(text, bench.run(&["data", &name]).expect(0).out);
        let comment = text.lines().next().unwrap();
        assert!(comment.contains("python = [\"code.py\"]\u{fffd}"), "{comment}");
        let table: toml::Table = text.parse().unwrap();
        assert!(!table.contains_key("python"), "{text}");
        bench.run(&["check", "m.toml"]).expect(0);
    }
}

/// Without a file and without a terminal it is the manifest that the README shows.
#[test]
fn a_manifest_of_a_synthetic_problem_is_that_of_the_readme() {
    let bench = Bench::new();
    let output = bench.run(&["init"]).expect(0);
    insta::assert_snapshot!("init_synthetic", output.out);
    let text = bench.read("mine.toml");
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(&format!("```toml\n{text}```\n")));
    bench.run(&["check", "mine.toml"]).expect(0);
    bench.compute(&["mine.toml"]);
    bench.report();
    assert!(!files_with(&bench.path("reports/mine"), "svg").is_empty());
}

#[test]
fn a_manifest_is_not_replaced_unless_asked_for() {
    let bench = Bench::new();
    bench.write("records.csv", table());
    bench.write("records.toml", "mine");
    let refused = |arguments: &[&str], message: &str| {
        let before = bench.files();
        let output = bench.run(&[&["init"], arguments].concat()).expect(2);
        assert_eq!((output.out.as_str(), bench.files()), ("", before));
        output.warns(message);
        assert_eq!(bench.read("records.toml"), "mine");
    };
    let exists = "error: records.toml exists; --force replaces it, and --out names another";
    refused(&["records.csv", "--label", "grade"], exists);
    refused(&["records.csv", "--out", "records.csv", "--force"], "a manifest ends in .toml");
    refused(&["records.csv", "--out", "a b.toml"], "cannot contain \"a b\"");
    refused(&["records.csv", "--out", "gone/a.toml"], "gone: No such file");
    refused(&["--label", "grade"], "FILE");
    refused(&["records.csv", "--label", "price", "--out", "a.toml"], "no column `price`, only");
    refused(&["gone.csv"], "gone.csv cannot be read: there is no such file");
    bench.run(&["init", "records.csv", "--label", "grade", "--force"]).expect(0);
    assert!(bench.read("records.toml").contains("label = \"grade\""));
}

/// Scripts that name all commands and their options.
#[test]
fn completions_name_every_command_and_option() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = bench.run(&["completions", shell]).expect(0).out;
        for word in ["reproduce", "completions", "until-decided", "fail-on"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        bench.write(shell, script);
    }
    let output = bench.run(&["completions", "tcsh"]).expect(2);
    output.warns("[possible values: bash, elvish, fish, powershell, zsh]");
    #[cfg(unix)]
    {
        let read = "complete -p exactfed >&2 && exit 1; . ./bash && complete -p exactfed";
        let bash = crate::support::process::Program::new("bash").args(["-c", read]);
        let output = bash.folder(&bench.folder).run();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_table_of_classes() {
    let (bench, printed) = runs("grades.csv", table().as_bytes(), &["--label", "grade"]);
    has(
        &printed,
        &[
            "# grades.csv",
            "# 120 records of 4 features",
            "# missing values: none",
            "# constant features: `one`",
            "# columns of text, which are left out: `city`; to use one, add it to `features` and `categorical`",
            "# clients: column `site` has 4 different values",
            "# condition number of the standardised Gram matrix: infinite, the features are linearly dependent",
            "features = [\"height\", \"width\", \"area\"]",
            "split = { column = \"site\" }",
            "weights = \"records\"",
            "test = 0.2",
        ],
    );
    let good = table().lines().filter(|line| line.ends_with("good")).count();
    let classes =
        format!("# labels (column `grade`): 2 classes: good ({good}), poor ({})", 120 - good);
    has(&printed, &[&classes]);
    let summary = bench.read("reports/start/summary.csv");
    let heads: Vec<&str> = summary.lines().next().unwrap().split(',').collect();
    let at = heads.iter().position(|head| *head == "test_accuracy_mean").unwrap();
    for line in summary.lines().skip(1) {
        let accuracy: f64 = line.split(',').nth(at).unwrap().parse().unwrap();
        assert!(accuracy > 0.85, "the classes are separable: {line}");
    }
}

#[test]
fn numbers_as_labels_of_a_table_and_of_arrays() {
    let (_, printed) = runs("grades.csv", table().as_bytes(), &["--label", "area"]);
    has(&printed, &["[problem.least-squares-dataset]", "y = \"test-loss\""]);
    let x: Vec<f64> = (0..80).map(|i| f64::from(i * i % 17) - f64::from(i % 3)).collect();
    let y: Vec<f64> = (0..40).map(|i| 0.5 * x[2 * i] - x[2 * i + 1] + 0.25).collect();
    let client: Vec<f64> = (0..40).map(|i| f64::from(i % 5)).collect();
    let arrays: [Named<'_>; 3] = [("x", &[40, 2], x), ("y", &[40], y), ("client", &[40], client)];
    let (_, printed) = runs("r.npz", &singles(&arrays), &[]);
    has(&printed, &["# 40 records of 2 features", "split = { column = \"client\" }"]);
}

/// Images in a part for training and a test set, as Keras writes them: the same numbers as of rows with a mark of the
/// test set. A feature that is constant in training alone is not standardised, and a class of the test set alone is none
/// that could be learnt.
#[test]
fn parts_for_training_and_tests_in_an_archive() {
    let pixel = |i: usize| (i * i % 17) as f64 - (i % 3) as f64;
    let of_class = |i: usize| f64::from(u32::from(pixel(4 * i) > 4.0));
    let part = |records: std::ops::Range<usize>| -> (Vec<f64>, Vec<f64>) {
        let pixels = 4 * records.start..4 * records.end;
        (pixels.map(pixel).collect(), records.map(of_class).collect())
    };
    let (x, y) = part(0..60);
    let (x_test, y_test) = part(60..75);
    let arrays: [Named<'_>; 4] = [
        ("x_train", &[60, 2, 2], x.clone()),
        ("y_train", &[60], y.clone()),
        ("x_test", &[15, 2, 2], x_test.clone()),
        ("y_test", &[15], y_test.clone()),
    ];
    let (bench, printed) = runs("images.npz", &doubles(&arrays), &[]);
    has(
        &printed,
        &[
            "# 60 records of 4 features",
            "# test set: 15 records more, which `test` marks",
            "test = { column = \"test\" }",
            "standardise = true",
        ],
    );
    let mut rows = "a,b,c,d,label,test\n".to_owned();
    for (i, (pixels, label)) in
        [&x[..], &x_test].concat().chunks(4).zip([y, y_test].concat()).enumerate()
    {
        let [a, b, c, d] = pixels else { panic!() };
        writeln!(rows, "{a},{b},{c},{d},{label},{}", u8::from(i >= 60)).unwrap();
    }
    let other = Bench::new();
    other.write("rows.csv", rows);
    other.write("start.toml", printed.replace("images.npz", "rows.csv"));
    other.compute(&["start.toml"]);
    other.report();
    let [images, rows] = [&bench, &other].map(|of| of.read("reports/start/summary.csv"));
    let values = |summary: &str| -> Vec<String> {
        let mut heads = summary.lines().next().unwrap().split(',');
        let at = heads.position(|head| head == "test_loss_mean").unwrap();
        summary.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().to_owned()).collect()
    };
    assert_eq!(values(&images), values(&rows));
    let constant: Vec<f64> =
        x.iter().enumerate().map(|(i, x)| if i % 4 == 1 { 2.0 } else { *x }).collect();
    let arrays = [
        ("x_train", &[60, 4][..], constant),
        ("y_train", &[60], (0..60).map(of_class).collect()),
        ("x_test", &[15, 4], x_test),
        ("y_test", &[15], vec![2.0; 15]),
    ];
    let of_known_classes = arrays.clone().map(|(name, shape, values)| {
        (name, shape, if name == "y_test" { (60..75).map(of_class).collect() } else { values })
    });
    let (_, printed) = runs("flat.npz", &doubles(&of_known_classes), &[]);
    has(&printed, &["# constant features: 1", "standardise = false"]);
    let (_, printed) = runs("new.npz", &doubles(&arrays), &[]);
    has(&printed, &["# 75 records of 4 features", "test = 0.2"]);
}

/// Values that are missing are filled in, as the manifest says.
#[test]
fn records_that_lack_values() {
    let holes = table().replace("\n-3,", "\n,").replace("\n2,", "\nNA,");
    let (_, printed) = runs("records.csv", holes.as_bytes(), &[]);
    let lacking = "# missing values: 22 in `height`, first in line 2";
    has(&printed, &[lacking, "missing = \"mean\""]);
}

/// Labels and clients that are marks of missing values are neither a class nor a client: their
/// records are left out, as the manifest says.
#[test]
fn records_that_lack_labels_or_clients() {
    for mark in ["NA", "?", ""] {
        let lines = table().replacen(",poor\n", &format!(",{mark}\n"), 1);
        let lines = lines.replacen(",west,", &format!(",{mark},"), 1);
        let (_, printed) = runs("records.csv", lines.as_bytes(), &["--label", "grade"]);
        let whole = lines.lines().skip(1).filter(|line| {
            !line.ends_with(&format!(",{mark}")) && !line.contains(&format!(",{mark},"))
        });
        let good = whole.clone().filter(|line| line.ends_with("good")).count();
        let kept = whole.count();
        has(
            &printed,
            &[
                &format!("# {kept} records of 4 features"),
                &format!(
                    "# labels (column `grade`): 2 classes: good ({good}), poor ({})",
                    kept - good
                ),
                "# clients: column `site` has 4 different values",
                "missing = \"drop\"",
            ],
        );
        let dropped = format!("of 120 records, `missing = \"drop\"` leaves {kept}");
        assert!(printed.contains(&dropped), "{printed}");
    }
}

/// A mark among numbers is filled in; another text among them is named; a column without any value,
/// and what numbers the rows, is left out.
#[test]
fn columns_that_are_no_features_as_they_are() {
    let mut text = ",pid,a,b,c,empty,label\n".to_owned();
    for i in 0..60_u32 {
        let a = if i % 30 == 3 { "-".to_owned() } else { format!("{}.5", i * 7 % 11) };
        let b = if i % 30 == 5 { "<0.006".to_owned() } else { format!("0.{}", 10 + i) };
        writeln!(text, "{i},{},{a},{b},{}.25,NA,{}", 5000 + i * 7 % 60, i % 13, i % 2).unwrap();
    }
    let (_, printed) = runs("r.csv", text.as_bytes(), &[]);
    has(
        &printed,
        &[
            "# 60 records of 3 features",
            "# missing values: 2 in `a`, first in line 5",
            "# columns that number or name the rows, which are left out: column 1, which has no name",
            "# columns without any value, which are left out: `empty`",
            "# columns that are left out: `b` holds numbers but for \"<0.006\" in 2 rows, first in line 7; replace these texts to use one",
            "# columns of which all values are different whole numbers: `pid`; if they number the records, remove them from `features`",
            "features = [\"pid\", \"a\", \"c\"]",
            "missing = \"mean\"",
        ],
    );
}

/// Records whose clients have long numbers.
#[test]
fn clients_of_long_numbers_are_counted() {
    let mut text = "a,user,label\n".to_owned();
    for i in 0..40_u64 {
        let user = [
            1_234_567_890_123_456_789_u64,
            1_234_567_890_123_456_790,
            1_234_567_890_123_456_800,
            7,
        ];
        writeln!(text, "{}.5,{},{}", i * 7 % 11, user[(i % 4) as usize], i / 4 % 2).unwrap();
    }
    let (_, printed) = runs("r.csv", text.as_bytes(), &[]);
    has(&printed, &["# clients: column `user` has 4 different values"]);
}

/// A sparse file is not standardised; half of each record's two numbers is 3, of twelve.
#[test]
fn sparse_records() {
    let mut text = String::new();
    for i in 0..60_usize {
        let (first, second) = (1 + i % 5, 6 + i % 7);
        writeln!(text, "{} {first}:1 {second}:3", if i % 5 < 2 { "+1" } else { "-1" }).unwrap();
    }
    let (_, printed) = runs("r.svm", text.as_bytes(), &[]);
    has(
        &printed,
        &[
            "# non-zeros: 16.7 %, 2.0 in a record",
            "# labels: 2 classes: -1 (36), 1 (24)",
            "standardise = false",
        ],
    );
}

/// More features than may be dense, of which most are in no record: nothing is made of n × d
/// numbers, neither for the description nor by the manifest.
#[test]
fn sparse_records_of_many_features() {
    let mut text = String::new();
    for i in 0..60_usize {
        let (first, second) = (1 + i % 50, 40_000 + 100 * (i % 7));
        writeln!(text, "{} {first}:1 {second}:3", u8::from(i % 50 < 20)).unwrap();
    }
    let (_, printed) = runs("r.svm", text.as_bytes(), &[]);
    let some = "0.005 %";
    has(
        &printed,
        &[
            "# 60 records of 40600 features",
            &format!("# non-zeros: {some}, 2.0 in a record"),
            "# labels: 2 classes: 0 (30), 1 (30)",
            "[problem.logistic-dataset]",
            "storage = \"sparse\"",
            "standardise = false",
            "test = 0.2",
        ],
    );
    assert!(printed.contains("# constant features: 50, 51, "), "{printed}");
    assert!(printed.contains("… (40543 in all)"), "{printed}");

    let bench = Bench::new();
    bench.write("r.svm", text.replace("1 1:", "2.5 1:"));
    let output = bench.run(&["data", "r.svm"]).expect(2);
    output.warns("`least-squares-dataset` stores these features dense, and there are 40600");
}

/// The arrays of `scipy.sparse.save_npz` with labels and clients.
#[test]
fn sparse_arrays() {
    let n = 40;
    let column = |of: fn(usize) -> usize| (0..n).map(|i| of(i) as f64).collect::<Vec<f64>>();
    let mut arrays: Vec<Named<'_>> = vec![
        ("data", &[80], (0..80).map(|i| 0.5 + f64::from(i % 3)).collect()),
        ("indices", &[80], (0..80).map(|i| f64::from(30 * (i % 2) + i / 2 % 20)).collect()),
        ("indptr", &[41], (0..=40).map(|i| f64::from(2 * i)).collect()),
        ("shape", &[2], vec![40.0, 50.0]),
        ("client", &[40], column(|i| i % 4)),
    ];
    let bench = Bench::new();
    bench.write("r.npz", doubles(&arrays));
    let output = bench.run(&["data", "r.npz"]).expect(2);
    output.warns("beside sparse rows, records need the array y (n,); there are: client [40]");
    arrays.push(("y", &[40], column(|i| i / 2 % 2)));
    let (_, printed) = runs("r.npz", &doubles(&arrays), &[]);
    has(
        &printed,
        &[
            "# 40 records of 50 features",
            "# non-zeros: 4.0 %, 2.0 in a record",
            "# clients: column `client` has 4 different values",
            "split = { column = \"client\" }",
        ],
    );
}

#[test]
fn a_table_without_records_or_features_says_what_it_lacks() {
    let bench = Bench::new();
    for (file, text, reason) in [
        ("none.csv", "a,label\n", "there is no record after the header"),
        (
            "empty.csv",
            "e,f,label\n,NA,0\n,NA,1\n",
            "no column but that of the labels, `label`, is a feature: columns without any value, which are left out: `e`, `f`\n",
        ),
        (
            "texts.csv",
            "e,t,label\n,x,0\n,y,1\n",
            "; write the manifest by hand, with `t` in `features` and `categorical`\n",
        ),
    ] {
        bench.write(file, text);
        let output = bench.run(&["data", file]).expect(2);
        assert_eq!(output.out, "");
        output.warns(&format!("error: {file}: ")).warns(reason);
    }
}

#[test]
fn what_no_problem_takes_is_described_with_the_reason() {
    let bench = Bench::new();
    for (file, text, arguments, described, reason) in [
        (
            "holes.csv",
            "a,b,label\n1,,x\n2,NA,y\n,3,\n",
            &[][..],
            "missing values: 1 in `a`, first in line 4, 2 in `b`, first in line 2",
            "no record has a value in every column",
        ),
        (
            "unlabelled.csv",
            "a,label\n1,\n2,NA\n",
            &[],
            "labels (column `label`): no record has one",
            "no record has a value in every column",
        ),
        (
            "one.csv",
            "a,label\n1,x\n2,x\n",
            &[],
            "labels (column `label`): 1 class: x (2)",
            "all labels are the same",
        ),
        (
            "r.csv",
            "a,label\n1,x\n",
            &["--label", "b"],
            "",
            "there is no column `b`, only a, label\n",
        ),
        (
            "many.csv",
            "a,b,c,d,e,f,g,h,i,j,k,l,m,outcome\n",
            &["--label", "out"],
            "",
            "k, l, m, outcome; did you mean `outcome`?",
        ),
        (
            "r.svm",
            "1 1:2\n",
            &["--label", "b"],
            "",
            "--label names a column, but the file has none",
        ),
        ("r.txt", "1 1:2\n1 x\n", &[], "", "\"x\" is not index:value"),
    ] {
        bench.write(file, text);
        let output = bench.run(&[&["data", file], arguments].concat()).expect(2);
        assert_eq!(output.out, "");
        output.warns(described).warns(&format!("error: {file}: ")).warns(reason);
    }
    bench.run(&["data", "gone.csv"]).expect(2).warns("gone.csv cannot be read");
    let chains: [Named<'_>; 1] = [("P", &[1, 2], vec![0.5, 0.5])];
    bench.write("chains.npz", doubles(&chains));
    let output = bench.run(&["data", "chains.npz"]).expect(2);
    output.warns(
        "records are the arrays x (n, d) and y (n,), or x_train and y_train with or without x_test and y_test, not P [1, 2]",
    );
}
