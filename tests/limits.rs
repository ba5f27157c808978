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
        ("folder.csv", "folder.csv cannot be read: it is not a file"),
    ] {
        bench.write("m.toml", &dataset(file));
        let said = bench.run(&["run", "m.toml"]).expect(2);
        assert!(said.err.contains(message), "{file}: {}", said.err);
        assert!(said.err.len() < 1_000, "{}", said.err.len());
    }
    assert!(!bench.path("results").exists());
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
        assert!(said.err.contains("it is not a file"), "{}", said.err);
    }
}
