//! Maps of the best algorithm: small ones as users make them, and the published ones against brute force.

use crate::support::{Bench, edited};
use exactfed::evidence::frontier::FrontierCost;
use exactfed::evidence::frontier::phase::ComputedSquare;
use exactfed::manifest::Source;
use exactfed::manifest::phase::PhaseNumber;
use exactfed::plan::Plan;
use exactfed::round_program::RoundSettings;
use exactfed::runner::{BuiltPhaseProblem, PhaseProblem, PreparedPhase, prepare_frontiers};
use exactfed::theory::frontier::curve;
use rayon::prelude::*;
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
    let answers = bench.read("reports/which-algorithm.html");
    assert_eq!(answers.matches("<figure class=\"chart\"><svg").count(), 1, "the first map");
    let page = bench.read("reports/m/report.md");
    assert!(page.contains("Line: a line.") && page.contains("for 15 problems"), "{page}");
    let verified = bench.run(&["verify", "--all"]).expect(0);
    verified.prints("3 caches of theory computed again: 0 different");
    std::fs::remove_dir_all(bench.path("reports")).unwrap();
    bench.report();
    assert_eq!(read(), before, "from the cache");
    std::fs::remove_dir_all(bench.path("results/.frontiers")).unwrap();
    bench.report();
    assert_eq!(read(), before, "computed again");
}

/// The range of step sizes of `frontier.toml`.
const STEP_SIZES: &str = "step-size = { from = 1e-4, to = 2.0, points = 30 }";

/// Claims on a map of four squares on two instances, with another range of step sizes: the verdicts by id, and the page.
fn verdicts_of(step_sizes: &str, claims: &str) -> (HashMap<String, String>, String) {
    let frontier = include_str!("../browser/frontier.toml");
    let changes = [
        (STEP_SIZES, step_sizes),
        ("up-to = 64", "up-to = 1024"),
        ("clients = [2, 10]", "clients = [2]"),
        ("targets = { from = 0.5, to = 0.1, points = 3 }", "targets = [0.1]"),
    ];
    let frontier = edited(frontier.split("[[claim").next().unwrap(), &changes);
    let map = r#"
[[phase]]
id = "map"
seeds = [1, 6]
x = { over = "noise", values = { from = 1.0, to = 1.5, points = 2 } }
y = { over = "gradient-heterogeneity", values = { from = 1.0, to = 10.0, points = 2 } }
"#;
    let bench = Bench::ran(&format!("{frontier}{map}{claims}"));
    bench.run(&["report", "--quiet"]);
    let record: toml::Table = bench.read("reports/m/record.toml").parse().unwrap();
    let claims = record["claim"].as_array().unwrap().iter();
    let text = |claim: &toml::Value, key: &str| claim[key].as_str().unwrap().to_owned();
    let verdicts = claims.map(|claim| (text(claim, "id"), text(claim, "verdict"))).collect();
    (verdicts, bench.read("reports/m/report.md"))
}

/// A claim on the map: an algorithm costs at most a factor times another.
fn claim(id: &str, [algorithm, than]: [&str; 2], factor: f64) -> String {
    let sides = format!("algorithm = \"{algorithm}\"\nthan = \"{than}\"");
    format!(
        "\n[[claim.phase-less]]\nid = \"{id}\"\nstatement = \"s\"\nphase = \"map\"\n{sides}\nfactor = {factor:?}\n"
    )
}

/// METHODOLOGY's rule of edges: where the best γ or H of a compared algorithm is at the end of its range, its least cost is
/// not known. So a claim that needs it is not supported, of whichever side it is.
#[test]
fn a_claim_at_the_end_of_a_range_is_not_supported() {
    let claims =
        claim("loose", ["fedavg", "sgd"], 1000.0) + &claim("strict", ["sgd", "fedavg"], 1e-6);
    let (wide, page) = verdicts_of(STEP_SIZES, &claims);
    assert_eq!((&*wide["loose"], &*wide["strict"]), ("supported", "refuted"), "{page}");
    // SGD's best step size is above this range.
    let (narrow, page) =
        verdicts_of("step-size = { from = 1e-4, to = 2e-3, points = 30 }", &claims);
    assert_eq!((&*narrow["loose"], &*narrow["strict"]), ("not tested", "not tested"), "{page}");
    assert!(page.contains("a wider range might give less"), "{page}");
}

/// A claim on several instances holds only if it holds on each, and the page has the number of each.
#[test]
fn a_claim_must_hold_on_every_instance() {
    let sides = ["richardson-romberg", "sgd"];
    let claims = claim("below-both", sides, 1e-3)
        + &claim("between", sides, 3.6)
        + &claim("above-both", sides, 4.5);
    let (verdicts, page) = verdicts_of(STEP_SIZES, &claims);
    let rows = page.split("Each cell of between").nth(1).unwrap_or_else(|| panic!("{page}"));
    let ratio = |seed: u64| -> f64 {
        let name = format!("| seed {seed}, the worst of 4");
        let row = rows.lines().find(|line| line.starts_with(&name));
        let row = row.unwrap_or_else(|| panic!("seed {seed}: {rows}"));
        row.split('|').nth(2).unwrap().trim().parse().unwrap()
    };
    assert!(ratio(6) < 3.6 && 3.6 < ratio(1) && ratio(1) < 4.5, "{rows}");
    let found = ["below-both", "between", "above-both"].map(|id| verdicts[id].as_str());
    assert_eq!(found, ["refuted", "refuted", "supported"], "{page}");
    assert!(page.contains("on 2 instances") && page.contains("(seeds 1, 6)"), "{page}");
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

/// Fifty squares and instances of the published maps: the best settings reach the target after the rounds that are found and no
/// sooner. On two of them, as the page says, other settings on a finer grid cost 5 % less.
#[test]
fn published_maps_are_those_of_brute_force() {
    let text = std::fs::read_to_string("experiments/frontier/phases.toml").unwrap();
    let plan = plan("frontier/phases", &text);
    let frontiers = prepare_frontiers(&plan).unwrap_or_default();
    let prepared = PreparedPhase::all(&plan, &frontiers[0]);
    let squares: Vec<(usize, usize)> = (0..prepared.len())
        .flat_map(|map| (0..prepared[map].squares.len()).map(move |square| (map, square)))
        .collect();
    assert_eq!(squares.len(), 1960);
    let cheaper = |place: usize| {
        let (map, square) = squares[place];
        let (map, square) = (&prepared[map], &prepared[map].squares[square]);
        cheaper(map, &map.problems[square.problem], &ComputedSquare::solved(map, square))
    };
    let cheaper: Vec<String> =
        shuffled(50, squares.len()).into_par_iter().filter_map(cheaper).collect();
    // At isolated step sizes the bias of FedAvg vanishes, which a grid may miss.
    assert!(cheaper.len() <= 2, "{cheaper:#?}");
}

/// Checks the best settings of a square; settings that cost less.
fn cheaper(
    map: &PreparedPhase<'_>,
    problem: &PhaseProblem,
    found: &ComputedSquare<'_>,
) -> Option<String> {
    let BuiltPhaseProblem { instance, search } = map.build(problem).unwrap();
    let (clients, square) = (search.clients[0], search.targets[0] * search.targets[0]);
    let price = found.numbers.get(PhaseNumber::Price);
    let (_, cost, least) = found.ranked.all.first()?;
    let FrontierCost { run, rounds, .. } = *cost;
    let followed = 4 * rounds.max(16) as usize;
    let errors = curve(&*instance, &search, &run).unwrap().errors(followed);
    let is_below = |rounds: usize| holds(&errors, rounds, square);
    let rounds = rounds as usize;
    assert!(is_below(rounds) && (rounds == 0 || !is_below(rounds - 1)), "{found:?}");
    let sizes = search.step_sizes;
    let step_sizes: Vec<f64> = (0..40)
        .map(|i| sizes.from * libm::pow(sizes.to / sizes.from, f64::from(i) / 39.0))
        .collect();
    for (algorithm, known) in map.frontier.algorithms.iter().enumerate() {
        for choice in 0..known.choices.len() {
            for &local_steps in &search.local_steps {
                for &step_size in &step_sizes {
                    let run = RoundSettings { algorithm, clients, local_steps, step_size, choice };
                    let round = search.round_price(&run);
                    let each = price * round.communications + round.gradients;
                    let fewer = 0.95 * least / each;
                    if fewer < 1.0 || (!known.has_local_steps && local_steps > 1) {
                        continue;
                    }
                    // Of a step size at the edge of stability no error comes to rest.
                    let Ok(mut curve) = curve(&*instance, &search, &run) else { continue };
                    let reached = curve.rounds_to(&search.targets);
                    if reached[0].is_some_and(|rounds| rounds as f64 <= fewer) {
                        return Some(format!(
                            "{run:?} costs less than {:?} on {:?}",
                            found.ranked.all[0], found.numbers
                        ));
                    }
                }
            }
        }
    }
    None
}
