//! Maps of the best algorithm: small ones as users make them, and the published ones against brute force.

use crate::support::Bench;
use exactfed::manifest::Source;
use exactfed::manifest::phase::{PhaseNumber, PhaseNumbers};
use exactfed::plan::{Plan, phase_problem};
use exactfed::runner::{PhaseProblem, PreparedPhase, prepare_frontiers};
use exactfed::theory::frontier::{FrontierAlgorithm, MethodRun, errors, rounds_to};
use std::collections::HashMap;

/// The frontier of `frontier.toml`, and two maps around it, one over prices.
const MAPS: &str =
    concat!(include_str!("../browser/frontier.toml"), "\n", include_str!("../browser/phase.toml"));

type Row = HashMap<String, String>;

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

fn plan(name: &str, text: &str) -> Plan {
    let source = Source { name: "m.toml".into(), text: text.into(), ..Source::default() };
    exactfed::evidence::plan(name.into(), source).unwrap_or_else(|bad| panic!("{bad}"))
}

/// Every square has the least cost, also where all come from the cache, and `verify` computes it again.
#[test]
fn small_maps_have_all_squares() {
    let bench = Bench::ran(MAPS);
    bench.report();
    let files = ["noise", "prices"].map(|id| format!("reports/m/figures/{id}.csv"));
    let read = || files.each_ref().map(|file| bench.read(file));
    let before = read();
    for (file, count) in files.iter().zip([15, 9]) {
        let rows = bench.rows(file);
        assert_eq!(rows.len(), count);
        for row in rows {
            let times = |column: &String| row[column].parse::<f64>().ok();
            let all = row.keys().filter(|column| column.starts_with("times_")).filter_map(times);
            let least = all.fold(f64::INFINITY, f64::min);
            assert_eq!(least, 1.0, "{row:?}");
            assert_eq!(number(&row, &format!("times_{}", row["algorithm"].replace('-', "_"))), 1.0);
        }
    }
    let page = bench.read("reports/m/report.md");
    assert!(page.contains("Line: a line.") && page.contains("for 15 problems"), "{page}");
    std::fs::remove_dir_all(bench.path("reports")).unwrap();
    bench.report();
    assert_eq!(read(), before, "from the cache");
    std::fs::remove_dir_all(bench.path("results/.frontiers")).unwrap();
    bench.report();
    assert_eq!(read(), before, "computed again");
}

/// A fixed sequence that looks random.
fn shuffled(count: usize, from: usize) -> Vec<usize> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % from as u64) as usize
    };
    (0..count).map(|_| next()).collect()
}

/// The error of a run after so many rounds, and of all later ones up to four times as many, is at most ε.
fn holds(errors: &[f64], rounds: usize, square: f64) -> bool {
    errors[rounds..].iter().all(|error| *error <= square * (1.0 + 1e-9))
}

/// Fifty squares of the published maps: the settings that they name reach the target after the rounds that they
/// name and no sooner. On one at most, other settings on a finer grid cost 5 % less.
#[test]
fn published_maps_are_those_of_brute_force() {
    let name = "frontier/phases";
    let text = std::fs::read_to_string(format!("experiments/{name}.toml")).unwrap();
    let plan = plan(name, &text);
    let frontiers = prepare_frontiers(&plan).unwrap_or_default();
    let prepared = PreparedPhase::all(&plan, &frontiers[0]);
    let squares: Vec<(usize, usize)> = (0..prepared.len())
        .flat_map(|map| (0..prepared[map].squares.len()).map(move |square| (map, square)))
        .collect();
    let bench = Bench::new();
    let rows: Vec<Vec<Row>> = prepared
        .iter()
        .map(|map| {
            let file = format!("reports/{name}/figures/{}.csv", map.phase.id);
            let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
            bench.write("rows.csv", &text);
            bench.rows("rows.csv")
        })
        .collect();
    let mut cheaper = Vec::new();
    for place in shuffled(50, squares.len()) {
        let (map, square) = squares[place];
        let (map, row) = (&prepared[map], &rows[map][square]);
        let square = &map.squares[square];
        for of in PhaseNumber::ALL {
            let (wanted, found) =
                (square.numbers.get(of), number(row, &of.name().replace('-', "_")));
            assert!((found / wanted - 1.0).abs() < 1e-5 || wanted == found, "{of:?}: {row:?}");
        }
        cheaper.extend(check(map, &map.problems[square.problem], &square.numbers, row));
    }
    // At isolated step sizes the bias of FedAvg vanishes, which a grid may miss.
    assert!(cheaper.len() <= 1, "{cheaper:#?}");
    assert!(phase_problem(plan.frontier_problem.as_ref().unwrap()).is_some());
}

/// Checks the settings of a square; those that cost less.
fn check(
    map: &PreparedPhase<'_>,
    problem: &PhaseProblem,
    numbers: &PhaseNumbers,
    row: &Row,
) -> Option<String> {
    let (instance, search) = (map.build(problem).unwrap(), &problem.search);
    let (clients, square) = (search.clients[0], search.targets[0] * search.targets[0]);
    let price = numbers.get(PhaseNumber::Price);
    let follow = |run: &MethodRun, rounds: usize| {
        errors(&*instance, run, &search.start, 4 * rounds.max(16)).unwrap()
    };
    let algorithms = &map.frontier.algorithms;
    let method = *algorithms.iter().find(|method| method.name() == row["algorithm"]).unwrap();
    let server_step = number(row, "server_step");
    let choice = method.server_steps().iter().position(|step| *step == server_step).unwrap();
    let (local_steps, step_size) = (number(row, "local_steps") as u64, number(row, "step_size"));
    let run = MethodRun { method, clients, local_steps, step_size, choice };
    let rounds = number(row, "rounds") as usize;
    let errors = follow(&run, rounds);
    let is_below = |rounds: usize| holds(&errors, rounds, square);
    assert!(is_below(rounds) && (rounds == 0 || !is_below(rounds - 1)), "{row:?}");
    let sizes = search.step_sizes;
    let step_sizes: Vec<f64> = (0..40)
        .map(|i| sizes.from * libm::pow(sizes.to / sizes.from, f64::from(i) / 39.0))
        .collect();
    for method in algorithms {
        for choice in 0..method.choices() {
            for &local_steps in &search.local_steps {
                for &step_size in &step_sizes {
                    let run =
                        MethodRun { method: *method, clients, local_steps, step_size, choice };
                    let round = search.round_price(&run);
                    let each = price * round.communications + round.gradients;
                    let fewer = 0.95 * number(row, "cost") / each;
                    if fewer < 1.0 || (*method == FrontierAlgorithm::Sgd && local_steps > 1) {
                        continue;
                    }
                    let found = rounds_to(&*instance, &run, (&search.start, None), &search.targets);
                    if found.unwrap()[0].is_some_and(|rounds| rounds as f64 <= fewer) {
                        return Some(format!("{run:?} costs less: {row:?}"));
                    }
                }
            }
        }
    }
    None
}
