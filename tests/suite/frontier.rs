//! Frontiers: the numbers of `frontier.csv` against theory point by point, claims that must fail,
//! the cache, and a manifest without runs.

use crate::support::{Bench, Finished, edited, exactfed};
use exactfed::manifest::Source;
use exactfed::plan::Plan;
use exactfed::runner::prepare_frontiers;
use exactfed::theory::frontier::{FrontierAlgorithm, MethodRun, rounds_to};

/// Two quadratics with different optima and Hessians, and a frontier that is computed in no time.
const FRONTIER: &str = include_str!("../browser/frontier.toml");

/// Runs the manifest, in `m.toml`, and reports.
fn reported(text: &str) -> Bench {
    let bench = Bench::ran(text);
    bench.report();
    bench
}

/// The rows of `frontier.csv`, by the names of its columns.
fn rows(bench: &Bench) -> Vec<csv::StringRecord> {
    let text = bench.read("reports/m/frontier.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let expected = "algorithm,clients,target,step_size,local_steps,rounds,communications,gradients,bytes,flag,seconds,minimises,frontier";
    assert_eq!(heads.join(","), expected);
    reader.records().map(Result::unwrap).collect()
}

fn plan(text: &str) -> Plan {
    let source = Source { name: "m.toml".into(), text: text.into(), ..Source::default() };
    exactfed::evidence::plan("m".into(), source).unwrap_or_else(|rejected| panic!("{rejected}"))
}

/// Every row of the table is a whole number of rounds that theory finds for its settings alone, its costs
/// follow from it, and no row is above the cap.
#[test]
fn the_table_is_what_theory_computes() {
    let bench = reported(FRONTIER);
    let (rows, plan) = (rows(&bench), plan(FRONTIER));
    let prepared = prepare_frontiers(&plan).unwrap_or_default();
    let (instance, start) = (&*prepared[0].instance, &prepared[0].search.start);
    assert_eq!(rows.len(), 2 * 5 * 2 * 3, "objectives, algorithms, N, ε");
    let number = |row: &csv::StringRecord, i: usize| row[i].parse::<f64>().unwrap();
    let of_sgd = |clients: &str, target: &str| {
        let is_it = |r: &&csv::StringRecord| &r[0] == "sgd" && &r[1] == clients && &r[2] == target;
        number(rows.iter().find(is_it).unwrap(), 7)
    };
    let mut reached = 0;
    for row in rows.iter().filter(|row| !row[3].is_empty()) {
        let method = *FrontierAlgorithm::ALL.iter().find(|m| m.name() == &row[0]).unwrap();
        let (clients, local_steps) = (row[1].parse().unwrap(), row[4].parse().unwrap());
        let run = MethodRun { method, clients, local_steps, step_size: number(row, 3) };
        let found = rounds_to(instance, &run, start, &[number(row, 2)]).unwrap();
        assert_eq!(found, [Some(row[5].parse().unwrap())], "{row:?}");
        let (price, rounds) = (method.round_price(local_steps), number(row, 5));
        assert_eq!(number(row, 6), price.communications * rounds, "{row:?}");
        assert_eq!(number(row, 7), price.gradients * rounds, "{row:?}");
        assert_eq!(number(row, 8), price.vectors * rounds * clients as f64 * 2.0 * 8.0, "{row:?}");
        assert!(number(row, 7) <= 2.0 * of_sgd(&row[1], &row[2]), "above the cap: {row:?}");
        reached += 1;
    }
    assert!(reached > 30, "{reached} points");
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

/// Whether a curve of the fewest communications rises with the target, by the table.
fn rises(bench: &Bench) -> bool {
    let rows = rows(bench).into_iter().filter(|row| &row[11] == "communications");
    let reached: Vec<_> = rows.filter(|row| !row[6].is_empty()).collect();
    let number = |row: &csv::StringRecord, i: usize| row[i].parse::<f64>().unwrap();
    let above = |a: &csv::StringRecord, b: &csv::StringRecord| {
        a[0] == b[0] && a[1] == b[1] && number(a, 2) > number(b, 2) && number(a, 6) > number(b, 6)
    };
    reached.iter().any(|a| reached.iter().any(|b| above(a, b)))
}

/// Richardson-Romberg needs more communications for a larger target, where the cap allows fewer
/// oracle calls, and the figure says why. Without that it says nothing of it.
#[test]
fn a_figure_says_why_a_curve_rises_with_the_target() {
    let capped = |cap: &str| edited(FRONTIER, &[("gradient-cap = 2.0", cap)]);
    let mut found = [0; 2];
    for cap in ["gradient-cap = 1.0", "gradient-cap = 2.0", "gradient-cap = 1000.0"] {
        let bench = reported(&capped(cap));
        let says =
            bench.read("reports/m/report.md").contains("A curve rises with ε where the cap binds");
        assert_eq!(says, rises(&bench), "{cap}");
        found[usize::from(says)] += 1;
    }
    assert!(
        found.iter().all(|count| *count > 0),
        "{found:?} of curves that do not rise and that do"
    );
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
"#;
    let bench = Bench::ran(&format!("{FRONTIER}{claims}"));
    let output = bench.run(&["report"]).expect(1);
    for id in ["slope", "constant", "less"] {
        output.warns(&format!("m: the claim \"{id}\" is refuted: s"));
    }
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
