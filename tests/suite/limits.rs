//! Numbers beyond what any machine runs, and files that do not end: refused in a
//! moment with the place and the limit, before anything is made or written.

#[cfg(unix)]
use crate::support::process::Program;
use crate::support::{Bench, QUADRATIC, edited};

const GOOD: &str = include_str!("../manifests/limits.toml");

#[test]
fn numbers_beyond_every_machine_are_refused() {
    let bench = Bench::new();
    bench.write("m.toml", GOOD);
    bench.run(&["check", "m.toml"]).expect(0);
    let huge = "9_000_000_000_000_000_000";
    for (from, to, message) in [
        ("actions = 2", &*format!("actions = {huge}"), "`actions`: this needs about "),
        ("clients = 2", &format!("clients = {huge}"), "`clients` must be at most 268435456"),
        ("burn-in = 1", &format!("burn-in = {huge}"), "must be at most 10000000, not"),
        ("rounds = 2", &format!("rounds = {huge}"), "rounds; at most 1000000000000 are allowed"),
        (
            "rounds = 2",
            "rounds = 300_000_000",
            "would record 300000000 rounds of a run; at most 10000000",
        ),
        (
            "every = 1",
            &format!("points = {huge}, spacing = \"log\""),
            "`points` must be at most 10000000, not 9000000000000000000",
        ),
        ("local-steps = 2", &format!("local-steps = {huge}"), "must be at most 1000000000, not"),
        ("client = [1]", &format!("client = [{huge}]"), "must be at most 1000000000, not"),
    ] {
        bench.write("m.toml", edited(GOOD, &[(from, to)]));
        for verb in ["check", "plan", "run"] {
            bench.run(&[verb, "m.toml"]).expect(2).warns(message).warns("--> m.toml:");
        }
    }
    assert_eq!(bench.files(), ["m.toml"]);
}

/// A manifest whose problem is a data file of this name.
fn dataset(file: &str) -> String {
    let problem = GOOD.split("\n\n").find(|table| table.starts_with("[problem")).unwrap();
    let dataset = format!("dataset = {{ file = \"{file}\", clients = 1 }}");
    edited(GOOD, &[(problem, &format!("[problem.least-squares-dataset]\n{dataset}"))])
}

#[test]
fn data_that_does_not_end_is_refused() {
    let bench = Bench::new();
    bench.write("line.csv", format!("a,label\n1,2\n{}\n", "3".repeat(5 << 20)));
    bench.write("line.svm", format!("1 1:2\n1 1:{}\n", "3".repeat(5 << 20)));
    bench.write("index.svm", "1 1:2\n1 4000000000:1\n");
    bench.write("folder.csv/file", "");
    for (file, message) in [
        ("line.csv", "line.csv: line 3 has 5242880 bytes; at most 4194304 are allowed"),
        ("line.svm", "line.svm: line 2 has 5242884 bytes; at most 4194304 are allowed"),
        ("index.svm", "index.svm: line 2: index 4000000000 is above 100000000"),
        ("folder.csv", "folder.csv cannot be read: it is a folder"),
    ] {
        bench.write("m.toml", dataset(file));
        let output = bench.run(&["run", "m.toml"]).expect(2);
        assert!(output.err.contains(message), "{file}: {}", output.err);
        assert!(output.err.len() < 1_000, "{}", output.err.len());
    }
    assert!(!bench.path("results").exists());
}

/// A device has no end, and a pipe that nobody writes to no beginning: neither as a manifest,
/// nor as data. What is too large to be a manifest is refused as fast.
#[cfg(unix)]
#[test]
fn devices_and_pipes_are_not_read() {
    let bench = Bench::new();
    for end in ["toml", "csv"] {
        let pipe = bench.path(&format!("pipe.{end}"));
        assert!(Program::new("mkfifo").args([pipe]).run().status.success());
        std::os::unix::fs::symlink("/dev/zero", bench.path(&format!("zero.{end}"))).unwrap();
    }
    let huge = std::fs::File::create(bench.path("huge.toml")).unwrap();
    huge.set_len(1 << 40).unwrap();
    bench.run(&["check", "huge.toml"]).expect(2).warns("it has more than 16777216 bytes");
    for name in ["pipe", "zero"] {
        let output = bench.run(&["check", &format!("{name}.toml")]).expect(2);
        output.warns("it is not a regular file");
        bench.write("m.toml", dataset(&format!("{name}.csv")));
        bench.run(&["run", "m.toml"]).expect(2).warns("it is not a regular file");
    }
}

/// A quadratic on which a figure or a claim asks theory for more than it computes.
fn quadratic(dimension: usize, clients: usize, more: &str) -> String {
    let size = format!("dimension = {dimension}, clients = {clients}");
    let changes = [
        ("title = \"t\"", "title = \"Large\""),
        ("dimension = 2, clients = 2", &size),
        ("noise = 0.1", "gradient-heterogeneity = 1.0, noise = 1.0"),
        ("rounds = 20", "rounds = 2"),
    ];
    let entry = "[[algorithm.fedavg]]\nstep-size = 0.05\nlocal-steps = 5\n\n";
    edited(QUADRATIC, &changes) + entry + more
}

const AT_REST: &str = "[[claim.matches]]\nid = \"at-rest\"\nstatement = \"s\"
of = { label = \"FedAvg\" }\nmetric = \"sq-error\"\nprediction = \"stationary\"\nmargin = 0.5\n";
const EXACT: &str = "[[figure.convergence]]\ntheory = [\"exact-moments\"]\n";

/// Theory that would take hours or hundreds of gigabytes is refused by its estimate: the page
/// says so, and a claim on it is not tested, with the reason.
#[test]
fn theory_beyond_its_bounds_is_not_computed() {
    // Pairs of control variates.
    let pairs = quadratic(1, 30_000, EXACT).replace("algorithm.fedavg", "algorithm.scaffold");
    for (name, manifest, expected) in [
        ("stationary", quadratic(300, 2, AT_REST), "exact moments at stationarity"),
        ("stationary-60", quadratic(60, 2, AT_REST), "exact moments at stationarity"),
        ("moments", quadratic(100, 2, EXACT), "exact moments round by round"),
        ("clients", pairs, "exact moments round by round"),
    ] {
        let bench = Bench::new();
        bench.write("m.toml", &manifest);
        bench.compute(&["m.toml", "--yes"]);
        // A claim that is not tested fails a report.
        bench.run(&["report", "--quiet"]).expect(i32::from(manifest.contains("claim")));
        for page in ["report.md", "report.html"] {
            let text = bench.read(&format!("reports/m/{page}"));
            assert!(text.contains("Theory that is not computed at this size"), "{name}: {page}");
            assert!(text.contains(expected), "{name}: {page}");
            if manifest.contains("claim") {
                assert!(text.contains("is not computed at this size: about "), "{name}: {page}");
                assert!(text.contains("not tested"), "{name}: {page}");
            }
        }
    }
}

/// The closure and the expansion on a field that is not linear.
#[test]
fn a_closure_beyond_its_bounds_is_not_computed() {
    let bench = Bench::new();
    let figure = "[record]\naverages = [\"bias\"]\n
[[figure.scaling]]\nx = \"step-size\"\ny = \"bias\"\ntheory = [\"closure\"]\n";
    let manifest = quadratic(400, 2, figure);
    let problem = manifest.lines().find(|line| line.starts_with("problem")).unwrap();
    let logistic = "problem.logistic = { dimension = 200, records = 5, clients = 2, data = { noisy = { spread = 1.0 } }, l2 = 0.1 }";
    let changes = [(problem, logistic), ("step-size = 0.05", "step-size = [0.05, 0.1]")];
    bench.write("m.toml", edited(&manifest, &changes));
    bench.compute(&["m.toml", "--yes"]);
    bench.report();
    let text = bench.read("reports/m/report.md");
    assert!(
        text.contains("Of 2 cells the closure: for one of them that would take about"),
        "{text}"
    );
}

/// Jacobians of 5000 numbers a side are too many to decompose, and products with them are not.
#[test]
fn measures_of_many_dimensions_state_their_errors() {
    let bench = Bench::new();
    let manifest = quadratic(400, 2, "");
    let problem = manifest.lines().find(|line| line.starts_with("problem")).unwrap();
    for (dimension, iterates) in [(50, false), (5000, true)] {
        let sparse = format!(
            "problem.sparse-logistic = {{ dimension = {dimension}, nonzeros = 5, records = 20, clients = 2, l2 = 0.1 }}"
        );
        bench.write("m.toml", edited(&manifest, &[(problem, &sparse)]));
        bench.compute(&["m.toml", "--yes"]);
        bench.report();
        for page in ["report.md", "report.html"] {
            let text = bench.read(&format!("reports/m/{page}"));
            let stated = "found by Lanczos iteration, with estimated errors of at most";
            assert_eq!(text.contains(stated), iterates, "{page}");
            // μ is λ, which alone acts along most features.
            assert!(text.contains("</span>0.100<") || text.contains("| 0.100 |"), "{page}");
            assert!(!text.contains("measures and drifts"), "{page}");
        }
    }
}

/// An analysis text may hold calls and nothing else: no expression that makes texts of any
/// length, and nothing that results could not fill.
#[test]
fn analysis_texts_that_cannot_be_filled_are_found_by_check() {
    let bench = Bench::new();
    let cell = "cell(\"FedAvg\")";
    let doubled = format!("\"{}\" * 10000000", "x".repeat(600));
    // Each is read by recursion, and overflowed the stack.
    let [signs, words] = ["-", "not "].map(|deep| deep.repeat(9_700) + "1");
    let [open, close] = ["(", ")"].map(|bracket| bracket.repeat(9));
    for (text, message) in [
        (&*signs, "an expression has 9703 characters; at most 1000 are allowed: {{ ----"),
        (&*words, "an expression has 38803 characters; at most 1000 are allowed: {{ not not"),
        (&*format!("{open}1{close}"), "an expression has more than 8 open brackets: {{ ((("),
        (doubled.as_str(), "`*` is not offered in {{ … }}, only calls of cell, mean,"),
        ("mean(\"{{\") * 9", "`*` is not offered"),
        ("\"a\\\"b\" * 1000000000", "`\\` is not offered"),
        ("[1, 2]", "`[` is not offered"),
        ("\"a\" ~ \"b\"", "`~` is not offered"),
        (&*format!("{cell}|upper"), "`|` is not offered"),
        (&*format!("bias({cell})"), "no figure asks for the exact bias"),
        (&*format!("mean({cell}, of=\"lyapunov\")"), "`lyapunov` is not recorded"),
        (&*format!("mean({cell}, of=\"seconds\")"), "needs prices"),
        ("mean(cell(\"Fed\"))", "names 0 cells, not one (labels: FedAvg)"),
        ("median(1)", "median"),
        ("unknown", "unknown"),
    ] {
        let analysis = format!("seed = 1\nanalysis = '''Say {{{{ {text} }}}}.'''");
        bench.write("m.toml", edited(&quadratic(2, 2, ""), &[("seed = 1", &analysis)]));
        bench.run(&["check", "m.toml"]).expect(2).warns(message).warns("m.toml:3");
    }
    let analysis =
        format!("seed = 1\nanalysis = '''{{{{ mean({cell}) }}}}, {{{{ limit({cell}) }}}}'''");
    bench.write("m.toml", edited(&quadratic(2, 2, ""), &[("seed = 1", &analysis)]));
    bench.compute(&["m.toml"]);
    bench.report();
}

/// Results of somebody else may have any manifest, whose checksum is right.
#[test]
fn an_expression_too_deep_for_the_stack_stops_no_other_report() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        let analysis = "seed = 1\nanalysis = 'Say {{ 1 }}.'";
        bench.write(
            &format!("{name}.toml"),
            edited(&quadratic(2, 2, ""), &[("seed = 1", analysis)]),
        );
        bench.compute(&[&format!("{name}.toml")]);
    }
    let deep = format!("{{{{ {}1 }}}}", "-".repeat(20_000));
    bench.reseal("results/b/experiment.toml", &[("{{ 1 }}", &deep)]);
    let output = bench.run(&["report", "--quiet"]).expect(2);
    output.warns("error: b cannot be reported: ").warns("an expression has 20003 characters");
    assert!(bench.read("reports/README.md").contains("- b: "));
    for (name, is_there) in [("a", true), ("b", false), ("c", true)] {
        assert_eq!(bench.path(&format!("reports/{name}/report.html")).exists(), is_there);
    }
}

/// The tree of a manifest is walked by recursion.
#[test]
fn keys_that_are_too_deep_are_refused() {
    let bench = Bench::new();
    bench.write("m.toml", GOOD);
    let key = format!("x{}=1", ".a".repeat(40_000));
    let output = bench.run(&["check", "m.toml", "--set", &key]).expect(2);
    output.warns("the key has 40001 parts; at most 32 are allowed");
    for text in [
        format!("x{} = 1\n{GOOD}", ".a".repeat(40_000)),
        format!("{GOOD}\n[x{}]\n", ".a".repeat(40_000)),
        format!("x = {}{}\n{GOOD}", "[".repeat(40_000), "]".repeat(40_000)),
        format!("x = {}1{}\n{GOOD}", "{a=".repeat(40_000), "}".repeat(40_000)),
    ] {
        bench.write("m.toml", text);
        bench.run(&["check", "m.toml"]).expect(2).warns("not valid TOML");
    }
}

/// A file of a few bytes costs no vectors of a hundred million numbers.
#[test]
fn a_short_file_has_no_hundred_million_features() {
    let bench = Bench::new();
    bench.write("index.svm", format!("1 100000000:1\n{}", "0 1:1 2:0.5\n".repeat(40)));
    bench.write("m.toml", dataset("index.svm"));
    let message = "index.svm: line 1: index 100000000: the rows hold 81 numbers, too few for 100000000 features; at most 1000000 features are allowed, or 100 for each number";
    for arguments in [&["check", "m.toml"][..], &["data", "index.svm"]] {
        bench.run(arguments).expect(2).warns(message);
    }
    bench.write("index.svm", format!("1 1000000:1\n{}", "0 1:1 2:0.5\n".repeat(40)));
    bench.run(&["data", "index.svm"]).expect(0).prints("41 records of 1000000 features");
}

/// An experiment that cannot be reported stops no other: it is named with its reason.
#[test]
fn one_experiment_that_cannot_be_reported_stops_no_other() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.write(&format!("experiments/{name}.toml"), quadratic(2, 2, ""));
        bench.compute(&[&format!("experiments/{name}.toml")]);
    }
    for file in bench.files_below("results/b") {
        if file.extension().is_some_and(|end| end == "parquet") {
            std::fs::write(file, "damaged").unwrap();
        }
    }
    bench.run(&["report", "--quiet"]).expect(2).warns("error: b cannot be reported: ");
    for (page, expected) in [("README.md", "- b: "), ("index.html", "<li>b: ")] {
        let text = bench.read(&format!("reports/{page}"));
        assert!(text.contains("1 experiment could not be reported"), "{page}: {text}");
        assert!(text.contains(expected), "{page}: {text}");
    }
    for name in ["a", "c"] {
        assert!(bench.read("reports/README.md").contains(&format!("({name}/report.md)")));
        assert!(bench.path(&format!("reports/{name}/report.html")).is_file());
    }
    assert!(!bench.path("reports/b/report.html").exists());
}
