//! Numbers beyond what any machine runs, and files that do not end: refused in a
//! moment with the place and the limit, before anything is made or written.

mod support;

use support::Bench;
#[cfg(unix)]
use support::process::Program;

const GOOD: &str = "title = \"t\"\nseed = 1\nreplicates = 1\n
[problem.garnet]
states = 4
actions = 2
branching = 2
features = 2
discount = 0.9
clients = 2
heterogeneity = \"independent\"
noise = { markov = { burn-in = 1 } }

[start]
zero = true

[budget]
rounds = 2

[record]
every = 1

[[algorithm.fedavg]]
step-size = 0.1
local-steps = 2
batch-per-client = [1]
";

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
            &format!("points = {huge}\nspacing = \"log\""),
            "`points` must be at most 10000000, not 9000000000000000000",
        ),
        ("local-steps = 2", &format!("local-steps = {huge}"), "must be at most 1000000000, not"),
        ("client = [1]", &format!("client = [{huge}]"), "must be at most 1000000000, not"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        bench.write("m.toml", &GOOD.replace(from, to));
        for verb in ["check", "plan", "run"] {
            let said = bench.run(&[verb, "m.toml"]).expect(2);
            assert!(said.err.contains(message), "{to}: {}", said.err);
            assert!(said.err.contains("--> m.toml:"), "{}", said.err);
        }
    }
    assert_eq!(bench.files(), ["m.toml"]);
}

/// A manifest whose problem is a data file of this name.
fn dataset(file: &str) -> String {
    let (top, rest) = (GOOD.find("[problem").unwrap(), GOOD.find("[start]").unwrap());
    let problem = format!(
        "[problem.least-squares-dataset]\ndataset = {{ file = \"{file}\", clients = 1 }}\n\n"
    );
    format!("{}{problem}{}", &GOOD[..top], &GOOD[rest..])
}

#[test]
fn data_that_does_not_end_is_refused() {
    let bench = Bench::new();
    bench.write("line.csv", &format!("a,label\n1,2\n{}\n", "3".repeat(5 << 20)));
    bench.write("line.svm", &format!("1 1:2\n1 1:{}\n", "3".repeat(5 << 20)));
    bench.write("index.svm", "1 1:2\n1 4000000000:1\n");
    bench.write("folder.csv/file", "");
    for (file, message) in [
        ("line.csv", "line.csv: line 3 has 5242880 bytes; at most 4194304 are allowed"),
        ("line.svm", "line.svm: line 2 has 5242884 bytes; at most 4194304 are allowed"),
        ("index.svm", "index.svm: line 2: index 4000000000 is above 5000"),
        ("folder.csv", "folder.csv cannot be read: it is a folder"),
    ] {
        bench.write("m.toml", &dataset(file));
        let said = bench.run(&["run", "m.toml"]).expect(2);
        assert!(said.err.contains(message), "{file}: {}", said.err);
        assert!(said.err.len() < 1_000, "{}", said.err.len());
    }
    assert!(!bench.path("results").exists());
}

/// As manifests too they are refused at once, and so is what is too large to be one.
#[cfg(unix)]
#[test]
fn devices_and_pipes_are_no_manifests() {
    let bench = Bench::new();
    let made = Program::new("mkfifo").args([bench.path("pipe.toml")]).run();
    assert!(made.status.success());
    std::os::unix::fs::symlink("/dev/zero", bench.path("zero.toml")).unwrap();
    let huge = std::fs::File::create(bench.path("huge.toml")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for (file, message) in [
        ("pipe.toml", "it is not a regular file"),
        ("zero.toml", "it is not a regular file"),
        ("huge.toml", "it has more than 16777216 bytes"),
    ] {
        let said = bench.run(&["check", file]).expect(2);
        assert!(said.err.contains(message), "{}", said.err);
    }
}

/// A device has no end, and a pipe that nobody writes to no beginning.
#[cfg(unix)]
#[test]
fn devices_and_pipes_are_no_data() {
    let bench = Bench::new();
    let made = Program::new("mkfifo").args([bench.path("pipe.csv")]).run();
    assert!(made.status.success());
    std::os::unix::fs::symlink("/dev/zero", bench.path("zero.csv")).unwrap();
    for file in ["pipe.csv", "zero.csv"] {
        bench.write("m.toml", &dataset(file));
        let said = bench.run(&["run", "m.toml"]).expect(2);
        assert!(said.err.contains("it is not a regular file"), "{}", said.err);
    }
}

/// A quadratic on which a figure or a claim asks theory for more than it computes.
fn quadratic(dimension: usize, clients: usize, more: &str) -> String {
    format!(
        "title = \"Large\"\nseed = 1\nreplicates = 2\n
[problem.quadratic]\ndimension = {dimension}\nclients = {clients}
spectrum = {{ from = 0.5, to = 1.0 }}\ngradient-heterogeneity = 1.0\nnoise = 1.0\n
[start]\noffset = 1.0\n\n[budget]\nrounds = 2\n
[[algorithm.fedavg]]\nstep-size = 0.05\nlocal-steps = 5\n\n{more}"
    )
}

const AT_REST: &str = "[[claim.matches]]\nid = \"at-rest\"\nstatement = \"s\"
of = { label = \"FedAvg\" }\nmetric = \"sq-error\"\nprediction = \"stationary\"\nmargin = 0.5\n";
const EXACT: &str = "[[figure.convergence]]\ntheory = [\"exact-moments\"]\n";

/// Theory that would take hours or hundreds of gigabytes is refused by its estimate: the page
/// says so, and a claim on it is not tested, with the reason.
#[test]
fn theory_beyond_its_bounds_is_not_computed() {
    for (name, manifest, told) in [
        ("stationary", quadratic(300, 2, AT_REST), "exact moments at stationarity"),
        ("stationary-60", quadratic(60, 2, AT_REST), "exact moments at stationarity"),
        ("moments", quadratic(100, 2, EXACT), "exact moments round by round"),
        ("clients", quadratic(1, 30_000, EXACT), "exact moments round by round"),
    ] {
        let bench = Bench::new();
        bench.write("m.toml", &manifest);
        bench.run(&["run", "m.toml", "--yes", "--quiet"]).expect(0);
        // A claim that is not tested fails a report.
        bench.run(&["report", "--quiet"]).expect(i32::from(manifest.contains("claim")));
        for page in ["report.md", "report.html"] {
            let text = bench.read(&format!("reports/m/{page}"));
            assert!(text.contains("Theory that is not computed at this size"), "{name}: {page}");
            assert!(text.contains(told), "{name}: {page}");
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
    let problem = "[problem.logistic]\ndimension = 200\nrecords = 5\nclients = 2
data = { noisy = { spread = 1.0 } }\nl2 = 0.1\n";
    let figure = "[record]\naverages = [\"bias\"]\n
[[figure.scaling]]\nx = \"step-size\"\ny = \"bias\"\ntheory = [\"closure\"]\n";
    let manifest = quadratic(400, 2, figure).replace("step-size = 0.05", "step-size = [0.05, 0.1]");
    let (top, rest) = (manifest.find("[problem").unwrap(), manifest.find("[start]").unwrap());
    bench.write("m.toml", &format!("{}{problem}\n{}", &manifest[..top], &manifest[rest..]));
    bench.run(&["run", "m.toml", "--yes", "--quiet"]).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
    let text = bench.read("reports/m/report.md");
    assert!(
        text.contains("Of 2 cells the closure: for one of them that would take about"),
        "{text}"
    );
}

/// An analysis text may hold calls and nothing else: no expression that makes texts of any
/// length, and nothing that results could not fill.
#[test]
fn analysis_texts_that_cannot_be_filled_are_found_by_check() {
    let bench = Bench::new();
    let cell = "cell(\"FedAvg\")";
    let doubled = format!("\"{}\" * 10000000", "x".repeat(600));
    for (text, message) in [
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
        bench.write("m.toml", &quadratic(2, 2, "").replace("seed = 1", &analysis));
        let said = bench.run(&["check", "m.toml"]).expect(2);
        assert!(said.err.contains(message), "{text}: {}", said.err);
        assert!(said.err.contains("m.toml:3"), "{text}: {}", said.err);
    }
    let analysis =
        format!("seed = 1\nanalysis = '''{{{{ mean({cell}) }}}}, {{{{ limit({cell}) }}}}'''");
    bench.write("m.toml", &quadratic(2, 2, "").replace("seed = 1", &analysis));
    bench.run(&["run", "m.toml", "--quiet"]).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
}

/// An experiment that cannot be reported stops no other: it is named with its reason.
#[test]
fn one_experiment_that_cannot_be_reported_stops_no_other() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.write(&format!("experiments/{name}.toml"), &quadratic(2, 2, ""));
        bench.run(&["run", &format!("experiments/{name}.toml"), "--quiet"]).expect(0);
    }
    for file in bench.files_below("results/b") {
        if file.ends_with("traces.parquet") {
            std::fs::write(file, "damaged").unwrap();
        }
    }
    let said = bench.run(&["report", "--quiet"]).expect(2);
    assert!(said.err.contains("error: b cannot be reported: "), "{}", said.err);
    for (page, told) in [("README.md", "- b: "), ("index.html", "<li>b: "), ("claims.md", "- b: ")]
    {
        let text = bench.read(&format!("reports/{page}"));
        assert!(text.contains("1 experiment could not be reported"), "{page}: {text}");
        assert!(text.contains(told), "{page}: {text}");
    }
    for name in ["a", "c"] {
        assert!(bench.read("reports/README.md").contains(&format!("({name}/report.md)")));
        assert!(bench.path(&format!("reports/{name}/report.html")).is_file());
    }
    assert!(!bench.path("reports/b/report.html").exists());
}
