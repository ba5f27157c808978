//! Frontiers: the numbers of `frontier.csv` against theory point by point, claims that must fail,
//! the cache, and a manifest without runs.

use crate::support::{Bench, Finished, edited, exactfed};
use exactfed::manifest::Source;
use exactfed::plan::Plan;
use exactfed::round_program::RoundSettings;
use exactfed::runner::prepare_frontiers;
use exactfed::theory::frontier::curve;

/// Two quadratics with different optima and Hessians, and a frontier that is computed in no time.
const FRONTIER: &str = include_str!("../browser/frontier.toml");

/// Runs the manifest, in `m.toml`, and reports.
fn reported(text: &str) -> Bench {
    let bench = Bench::ran(text);
    bench.report();
    bench
}

/// A row of `frontier.csv`, by the names of its columns.
type Row = std::collections::HashMap<String, String>;

/// A number of a row.
fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

fn plan(text: &str) -> Plan {
    let source = Source { name: "m.toml".into(), text: text.into(), ..Source::default() };
    exactfed::evidence::plan("m".into(), source).unwrap_or_else(|rejected| panic!("{rejected}"))
}

/// Every row of the table is a whole number of rounds that theory finds for its settings alone, its costs
/// follow from it, and no row is above its budget.
#[test]
fn the_table_is_what_theory_computes() {
    let bench = reported(FRONTIER);
    let (rows, plan) = (bench.rows("reports/m/frontier.csv"), plan(FRONTIER));
    let prepared = prepare_frontiers(&plan).unwrap_or_default();
    let (instance, search) = (&*prepared[0].instance, &prepared[0].search);
    assert_eq!(rows.len(), (3 + 2) * 6 * 2 * 3, "objectives, algorithms, N, ε");
    let of_sgd = |clients: &str| {
        let is_it =
            |r: &&Row| r["algorithm"] == "sgd" && r["clients"] == clients && r["target"] == "0.1";
        number(rows.iter().find(is_it).unwrap(), "gradients")
    };
    let mut reached = 0;
    for row in rows.iter().filter(|row| !row["step_size"].is_empty()) {
        let mut algorithms = prepared[0].frontier.algorithms.iter();
        let algorithm = algorithms.position(|known| known.name == row["algorithm"]).unwrap();
        let known = &prepared[0].frontier.algorithms[algorithm];
        let (clients, local_steps) =
            (row["clients"].parse().unwrap(), row["local_steps"].parse().unwrap());
        let (step_size, server_step) = (number(row, "step_size"), number(row, "server_step"));
        let mut choices = 0..known.choices.len();
        let choice = choices.find(|choice| known.server_step(*choice) == server_step).unwrap();
        let run = RoundSettings { algorithm, clients, local_steps, step_size, choice };
        let found = curve(instance, search, &run).unwrap().rounds_to(&[number(row, "target")]);
        assert_eq!(found, [Some(row["rounds"].parse().unwrap())], "{row:?}");
        let (price, rounds) = (search.round_price(&run), number(row, "rounds"));
        let bytes = price.vectors * clients as f64 * 2.0 * 8.0;
        for (column, each) in [
            ("communications", price.communications),
            ("gradients", price.gradients),
            ("samples", price.samples),
            ("bytes", bytes),
        ] {
            assert_eq!(number(row, column), each * rounds, "{column}: {row:?}");
        }
        if !row["budget"].is_empty() {
            let most = number(row, "budget") * of_sgd(&row["clients"]);
            assert!(number(row, "gradients") <= most, "above the budget: {row:?}");
        }
        reached += 1;
    }
    assert!(reached > 90, "{reached} points");
    let page = bench.read("reports/m/report.html");
    assert!(
        page.contains("id=\"least-map\"") && !page.contains("No cell has results yet"),
        "{page}"
    );
    assert!(bench.read("reports/which-algorithm.html").contains("Which algorithm, when?"));
    assert!(bench.read("reports/index.html").contains("which-algorithm.html"));
}

/// A claim on a frontier compares exact numbers: it has neither an interval nor a p-value.
#[test]
fn claims_on_frontiers_have_no_p_value() {
    let page = reported(FRONTIER).read("reports/m/report.md");
    let claims = page.split("## Claims").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(
        claims.contains("1 claim, on exact numbers") && claims.contains("| 0 | – |"),
        "{claims}"
    );
    assert!(!claims.contains("95 %") && !claims.contains("0.0001"), "{claims}");
}

/// No least cost of an algorithm at N is larger for a larger target, at any price and within any budget, nor
/// is that of a first passage; of how many pairs of targets.
fn compared(rows: &[Row], name: &str) -> usize {
    let value = |row: &Row| match row["minimises"].as_str() {
        "cost" => number(row, "price") * number(row, "communications") + number(row, "gradients"),
        other => number(row, other),
    };
    let passed = |row: &Row| match row["passing"].as_str() {
        "" if row["rounds"].is_empty() => f64::INFINITY,
        "" => value(row),
        _ => number(row, "passing"),
    };
    let curve = |row: &Row| {
        ["frontier", "minimises", "price", "budget", "algorithm", "clients"]
            .map(|key| row[key].clone())
    };
    let mut pairs = 0;
    for (i, a) in rows.iter().enumerate() {
        for b in rows[i + 1..].iter().take_while(|b| curve(b) == curve(a)) {
            let [larger, smaller] =
                if number(a, "target") > number(b, "target") { [a, b] } else { [b, a] };
            assert!(passed(larger) <= passed(smaller), "{name}: {larger:?} {smaller:?}");
            if !smaller["rounds"].is_empty() {
                assert!(value(larger) <= value(smaller), "{name}: {larger:?} {smaller:?}");
                pairs += 1;
            }
        }
    }
    pairs
}

#[test]
fn no_least_cost_rises_with_the_target() {
    assert!(compared(&reported(FRONTIER).rows("reports/m/frontier.csv"), "small") > 100);
    let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["quadratic", "low-heterogeneity", "garnet-two-kernels", "runs"] {
        let file = committed.join(format!("reports/frontier/{name}/frontier.csv"));
        let mut reader = csv::Reader::from_path(&file).unwrap();
        let rows: Vec<Row> = reader.deserialize().map(Result::unwrap).collect();
        assert!(compared(&rows, name) > 100, "{name}");
    }
}

/// What is kept changes no page: neither when it is there, nor when it is damaged or gone.
#[test]
fn kept_frontiers_change_no_page() {
    let bench = reported(FRONTIER);
    let pages = || {
        bench.report();
        bench.read("reports/m/report.html")
            + &bench.read("reports/m/frontier.csv")
            + &bench.read("reports/which-algorithm.html")
    };
    let first = pages();
    let folder = bench.path("results/.frontiers");
    let kept: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    let [file] = kept.as_slice() else { panic!("one file: {kept:?}") };
    assert!(first == pages(), "kept");
    let mut bytes = std::fs::read(file).unwrap();
    *bytes.last_mut().unwrap() ^= 0x40;
    std::fs::write(file, bytes).unwrap();
    assert!(first == pages(), "damaged");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(first == pages(), "gone");
}

/// A frontier has the same bits on any number of threads, and how far it is is printed only where it
/// is computed.
#[test]
fn frontiers_do_not_depend_on_threads() {
    let bench = Bench::ran(FRONTIER);
    let report = |threads: &str, arguments: &[&str]| {
        let arguments = [&["report"], arguments].concat();
        let program = exactfed().args(arguments).env("RAYON_NUM_THREADS", threads);
        Finished::from(program.folder(&bench.folder).run()).expect(0)
    };
    let kept = || {
        let all = bench.contents("results/.frontiers");
        std::fs::remove_dir_all(bench.path("results/.frontiers")).unwrap();
        all
    };
    report("1", &[]).warns("m: its frontiers took ");
    assert!(!report("1", &[]).err.contains("frontiers"), "nothing is computed again");
    let (pages, first) = (bench.contents("reports"), kept());
    assert_eq!(report("2", &["--quiet"]).err, "");
    assert!(kept() == first && bench.contents("reports") == pages);
}

/// Claims that are wrong are refuted, and one that needs a point at an edge is not tested.
#[test]
fn wrong_claims_fail() {
    let claims = r#"
[[claim.frontier-slope]]
id = "slope"
statement = "s"
of = { algorithm = "sgd" }
value = -1.0
margin = 0.2
[[claim.frontier-constant]]
id = "constant"
statement = "s"
of = { algorithm = "sgd" }
factor = 1.5
[[claim.frontier-less]]
id = "less"
statement = "s"
of = { algorithm = "sgd" }
than = "scaffold"
[[claim.frontier-slope]]
id = "none"
statement = "s"
of = { algorithm = "sgd", largest-target = 0.01 }
value = -2.0
margin = 0.2
"#;
    let bench = Bench::ran(&format!("{FRONTIER}{claims}"));
    let output = bench.run(&["report"]).expect(1);
    for id in ["slope", "constant", "less"] {
        output.warns(&format!("m: the claim \"{id}\" is refuted: s"));
    }
    output.warns("the claim \"none\" is not tested (the frontier has none of these points)");
    assert!(!output.err.contains("\"order\""), "{}", output.err);
    let narrow = edited(FRONTIER, &[("to = 2.0, points = 30", "to = 0.001, points = 5")]);
    let bench = Bench::ran(&edited(
        &narrow,
        &[("from = 0.5, to = 0.1, points = 3", "from = 0.5, to = 0.4, points = 2")],
    ));
    let output = bench.run(&["report"]).expect(1);
    output.warns("the claim \"order\" is not tested");
    output.warns("γ or H is at the end of its range");
}

/// Where no algorithm reaches any target there is one message.
#[test]
fn an_empty_feasible_set_is_a_message() {
    let far = edited(
        FRONTIER,
        &[("from = 1e-4, to = 2.0, points = 30", "from = 50.0, to = 60.0, points = 3")],
    );
    let bench = Bench::ran(&far);
    let output = bench.run(&["report"]).expect(2);
    output.warns("frontier \"least\": no algorithm reaches any target");
}

/// A frontier that a manifest no longer has leaves no files.
#[test]
fn files_of_a_frontier_go_with_it() {
    let bench = reported(FRONTIER);
    assert!(bench.path("reports/m/figures/least-map.svg").exists());
    let runs = "start.offset = 1.0\nbudget.rounds = 5\n[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n";
    let head = FRONTIER.split("[[frontier]]").next().unwrap();
    bench.write("m.toml", format!("{head}{runs}"));
    bench.compute(&["m.toml"]);
    bench.report();
    for file in ["m/frontier.csv", "m/figures/least-map.svg", "which-algorithm.html"] {
        assert!(!bench.path(&format!("reports/{file}")).exists(), "{file}");
    }
}

/// The kinds with an adaptive server, whose rounds are not linear, so that they cannot stand on frontiers.
const ADAPTIVE: [&str; 3] = ["fedadagrad", "fedadam", "fedyogi"];

/// A frontier or a map with an adaptive server is refused before anything runs, and the message says why.
#[test]
fn adaptive_servers_are_refused() {
    for kind in ADAPTIVE {
        let listed = format!("\"scaffold\", \"{kind}\"]");
        let text = edited(FRONTIER, &[("\"scaffold\"]", &listed)]);
        let bench = Bench::new();
        bench.write("m.toml", text);
        let output = bench.run(&["check", "m.toml"]).expect(2);
        output.warns(&format!(
            "{kind} cannot be solved exactly: the server adapts its step to the squares of its changes"
        ));
    }
}

/// Every kind of algorithm may stand on a frontier and on a map, with no line of code for it there, but for those with
/// an adaptive server.
#[test]
fn every_kind_of_algorithm_has_a_frontier_and_a_place_on_maps() {
    let built_in = exactfed::algorithm::Spec::ALL.iter();
    let kinds: Vec<&str> =
        built_in.map(|info| info.kind).filter(|kind| !ADAPTIVE.contains(kind)).collect();
    let written = kinds.iter().map(|kind| match *kind {
        "fedprox" => "{ fedprox = { proximal = [0.1, 1.0] } }".to_owned(),
        kind => format!("\"{kind}\""),
    });
    let written = written.collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"title = "t"
seed = 1
replicates = 1
problem.quadratic = {{ dimension = 2, clients = 2, spectrum = {{ from = 0.5, to = 1.5 }}, gradient-heterogeneity = 1.0, hessian-heterogeneity = 0.3, noise = 1.0 }}
[[frontier]]
id = "least"
algorithms = [{written}]
price-ratios = [1.0, 100.0]
clients = [2, 10]
targets = [0.5, 0.2]
step-size = {{ from = 1e-3, to = 2.0, points = 20 }}
local-steps = {{ up-to = 16 }}
radius = 2.0
[[phase]]
id = "map"
x = {{ over = "noise", values = {{ from = 0.1, to = 10.0, points = 2 }} }}
y = {{ over = "price", values = {{ from = 1.0, to = 100.0, points = 2 }} }}
"#
    );
    for algorithm in &plan(&text).manifest.frontier[0].algorithms {
        let rounds = |steps| algorithm.choices[0].with_scale(0.1, steps).components();
        let is_scaled = !algorithm.has_local_steps || rounds(3) != rounds(5);
        assert!(is_scaled, "{}: H changes nothing", algorithm.name);
    }
    let bench = reported(&text);
    let map = bench.rows("reports/m/figures/map.csv");
    assert_eq!(map.len(), 4);
    let frontier = bench.rows("reports/m/frontier.csv");
    for kind in kinds {
        let is_reached = |row: &&Row| row["algorithm"] == kind && !row["rounds"].is_empty();
        assert!(frontier.iter().filter(is_reached).count() > 4, "{kind} reaches no target");
        let column = format!("times_{}", kind.replace('-', "_"));
        assert!(map.iter().all(|row| number(row, &column) >= 1.0), "{kind} is on no square");
    }
}
