//! `[tune]` and `instances`: what is selected, which runs follow, and what the pages say of it.

use crate::support::{Bench, edited};
use std::collections::{BTreeMap, BTreeSet};

/// Two algorithms at two numbers of local steps, each with its own step size.
const TUNED: &str = include_str!("../manifests/tuned.toml");

fn bench(manifest: &str) -> Bench {
    let bench = Bench::ran(manifest);
    bench.report();
    bench.run(&["export", "--out", "all.csv", "--quiet"]).expect(0);
    bench
}

/// The last ‖θ − θ*‖² of each run of each cell: (label, H, γ, number of runs) and the values.
type Ends = BTreeMap<(String, String, String), Vec<Vec<f64>>>;

fn ends(bench: &Bench) -> Ends {
    let mut last: BTreeMap<(String, u64), (u64, f64)> = BTreeMap::new();
    let mut of_cell: BTreeMap<String, (String, String, String)> = BTreeMap::new();
    for row in bench.rows("all.csv") {
        let key = (row["label"].clone(), row["local_steps"].clone(), row["step_size"].clone());
        of_cell.insert(row["cell"].clone(), key);
        let (run, round) = (row["replicate"].parse().unwrap(), row["round"].parse().unwrap());
        let error: f64 = row["sq_error"].parse().unwrap();
        let kept = last.entry((row["cell"].clone(), run)).or_insert((round, error));
        if round >= kept.0 {
            *kept = (round, error);
        }
    }
    let mut by_cell: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    last.into_iter().for_each(|((cell, _), (_, x))| by_cell.entry(cell).or_default().push(x));
    let mut ends = Ends::new();
    for (cell, values) in by_cell {
        ends.entry(of_cell[&cell].clone()).or_default().push(values);
    }
    ends
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-7 * b.abs()
}

/// What `tuned.csv` says is what the rows of all runs give when they are read by other code.
#[test]
fn the_selected_candidate_has_the_smallest_mean_of_the_stored_runs() {
    let bench = bench(TUNED);
    let ends = ends(&bench);
    let rows = bench.rows("reports/m/tuned.csv");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let own = ends.iter().filter(|((label, steps, _), _)| {
            *label == row["label"] && *steps == row["local-steps"]
        });
        // Three runs of each candidate; six fresh ones of what was selected.
        let candidates: Vec<(f64, &str)> = own
            .clone()
            .flat_map(|((_, _, step), cells)| {
                let runs = cells.iter().filter(|runs| runs.len() == 3);
                runs.map(move |runs| (mean(runs), step.as_str()))
            })
            .collect();
        assert_eq!(candidates.len().to_string(), row["candidates"]);
        let best = candidates.iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let number = |name: &str| row[name].parse::<f64>().unwrap();
        assert_eq!(best.1.parse::<f64>().unwrap(), number("selected"), "{row:?}");
        assert!(close(best.0, number("tuning_value")), "{row:?}");
        let fresh = own.filter(|((_, _, step), _)| step == best.1).flat_map(|(_, cells)| cells);
        let fresh: Vec<&Vec<f64>> = fresh.filter(|runs| runs.len() == 6).collect();
        let [fresh] = fresh[..] else { panic!("{} fresh cells", fresh.len()) };
        assert!(close(mean(fresh), number("value")), "{row:?}");
        assert_eq!(row["replicates"], "6");
    }
}

/// The first runs of a plain cell of six replicates have the noise of the candidate's; fresh runs
/// have none of it.
#[test]
fn candidates_share_cells_with_plain_runs_and_fresh_runs_share_no_noise() {
    let bench = bench(TUNED);
    let tuned = &bench.rows("reports/m/tuned.csv")[0];
    let plain = edited(
        TUNED,
        &[
            ("[tune]\nover = \"step-size\"\nrange = [1e-2, 0.5]\nevaluate = 6\n\n", ""),
            (
                "[[algorithm.fedavg]]\n",
                &format!("[[algorithm.fedavg]]\nstep-size = {}\n", tuned["selected"]),
            ),
            ("[[algorithm.scaffold]]\nlocal-steps = [1, 10]\n", ""),
        ],
    );
    bench.write("plain.toml", &plain);
    bench.compute(&["plain.toml"]);
    // The ids are those of the candidates: a plain experiment of the same settings has the cell.
    let candidates = bench.ids("results/m");
    let is_shared = |id: &String| candidates.contains(id);
    assert!(bench.ids("results/plain").iter().any(is_shared), "no cell is shared");
    let ends = ends(&bench);
    let key = (tuned["label"].clone(), tuned["local-steps"].clone(), tuned["selected"].clone());
    let cells = &ends[&key];
    let (three, six) = (cells.iter().find(|c| c.len() == 3), cells.iter().find(|c| c.len() == 6));
    for x in three.unwrap() {
        assert!(!six.unwrap().contains(x), "a fresh run has the noise of a candidate's");
    }
}

/// Ids and digests do not depend on the order of the work: shards that are merged, and one run
/// after them, give the cells of a single run.
/// The pages of candidates before all of them have results: no run follows them yet.
#[test]
fn the_first_candidates_are_shown() {
    let figure = "\n[[figure.convergence]]\nid = \"main\"\ntitle = \"Fresh runs\"\n";
    let bench = Bench::new();
    bench.write("m.toml", format!("{TUNED}{figure}"));
    let plan = bench.run(&["plan", "m.toml"]).expect(0).out;
    let missing = plan.lines().filter(|line| line.contains("missing  "));
    let ids: Vec<&str> = missing.filter_map(|line| line.split_whitespace().next()).collect();
    let all = ids.len();
    let pages = |missing: usize, all: usize| {
        bench.report();
        let [index, page] =
            ["index.html", "m/report.html"].map(|n| bench.read(&format!("reports/{n}")));
        let card = format!("m, {missing} of {all} cells without results");
        assert_eq!(index.contains(&card), missing > 0, "{card}: {index}");
        let sections = page.split("<section class=\"plot\" id=\"").skip(1);
        sections.map(|section| section.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Some of one algorithm, and then some of each.
    for some in [&ids[..3], &ids.iter().copied().step_by(3).collect::<Vec<_>>()] {
        bench.write("some", some.join("\n"));
        bench.compute(&["m.toml", "--only", "some"]);
        let stored = bench.digests("results").len();
        assert_eq!(pages(all - stored, all), ["tuning-step-size", "main"]);
        let page = bench.read("reports/m/report.html");
        for text in [
            &*format!("<figcaption>{stored} of {all} candidates have results."),
            "The figure is empty: it shows fresh runs of the selected candidates",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(!page.to_lowercase().contains("no cell has results yet"), "{page}");
        assert_eq!(bench.rows("reports/m/figures/tuning-step-size.csv").len(), stored);
    }
    bench.compute(&["m.toml"]);
    let plan = bench.run(&["plan", "m.toml"]).expect(0).out;
    assert!(plan.contains("0 missing"), "{plan}");
    assert_eq!(pages(0, bench.digests("results").len())[..2], ["main", "tuning-step-size"]);
    let page = bench.read("reports/m/report.html");
    assert!(!page.contains("The figure is empty") && !page.contains("candidates have results"));
}

#[test]
fn shards_give_the_cells_of_one_run() {
    let bench = Bench::ran(TUNED);
    for shard in ["1/3", "2/3", "3/3"] {
        let out = format!("part-{}", &shard[..1]);
        bench.compute(&["m.toml", "--shard", shard, "--out", &out]);
    }
    bench.run(&["merge", "part-1", "part-2", "part-3", "--out", "merged"]).expect(0);
    bench.compute(&["m.toml", "--out", "merged"]);
    assert_eq!(bench.digests("merged"), bench.digests("results"));
    // Nothing is left to be done.
    let again = bench.run(&["run", "m.toml", "--out", "merged"]).expect(0);
    again.warns("all 44 cells are done");
    bench.run(&["plan", "m.toml", "--out", "merged"]).expect(0).prints("0 missing");
    bench.run(&["verify", "results", "--all"]).expect(0);
}

/// Where the best candidate is the smallest of its range, further ones are run; where that is
/// not allowed the page says that it is at the edge.
#[test]
fn a_range_that_ends_too_early_is_extended_or_reported() {
    let narrow = edited(TUNED, &[("[1e-2, 0.5]", "[0.3, 0.5]")]);
    let extended = bench(&narrow);
    let fixed = bench(&edited(&narrow, &[("evaluate = 6", "evaluate = 6\nextend = 0")]));
    let selected = |bench: &Bench| -> Vec<f64> {
        let rows = bench.rows("reports/m/tuned.csv");
        rows.iter().map(|row| row["selected"].parse().unwrap()).collect()
    };
    for (free, bound) in selected(&extended).iter().zip(selected(&fixed)) {
        assert!(*free < 0.3 && bound == 0.3, "{free} {bound}");
    }
    for row in fixed.rows("reports/m/tuned.csv") {
        assert_eq!(row["at_edge"], "smallest step-size");
    }
    let page = fixed.read("reports/m/report.md");
    assert!(page.contains("4 of 4 selected candidates are at the edge"), "{page}");
    for row in extended.rows("reports/m/tuned.csv") {
        let candidates: usize = row["candidates"].parse().unwrap();
        assert!(candidates > 3, "{row:?}");
    }
}

/// Where further candidates were not run yet, nothing is selected among those that were.
#[test]
fn nothing_is_selected_while_candidates_are_missing() {
    let bench = Bench::new();
    bench.write("m.toml", edited(TUNED, &[("[1e-2, 0.5]", "[0.3, 0.5]")]));
    for i in ["1", "2"] {
        let (shard, part) = (format!("{i}/2"), format!("part-{i}"));
        bench.run(&["run", "m.toml", "--shard", &shard, "--out", &part]).expect(0);
    }
    bench.run(&["merge", "part-1", "part-2", "--out", "results"]).expect(0);
    bench.run(&["report"]).expect(0);
    let rows = bench.rows("reports/m/tuned.csv");
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!([&*row["selected"], &row["at_edge"], &row["tuning_value"]], [""; 3], "{row:?}");
    }
    let page = bench.read("reports/m/report.md");
    assert!(page.contains("`exactfed run m.toml` runs them"), "{page}");
}

/// FedAvg whose participation is tuned: noise is all that is left, of which more clients have less.
const PARTICIPATION: &str = include_str!("../manifests/participation.toml");

/// What tuning selected, and the border at which that stands.
fn selected(bench: &Bench) -> (String, String) {
    let [row] = &bench.rows("reports/m/tuned.csv")[..] else { panic!("not one row") };
    (row["selected"].clone(), row["at_edge"].clone())
}

/// Candidates beyond what the problem allows are left out by themselves, each with its reason.
#[test]
fn an_extended_participation_ends_at_the_number_of_clients() {
    let bench = Bench::new();
    bench.write("m.toml", PARTICIPATION);
    let output = bench.run(&["run", "m.toml"]).expect(0);
    for refused in [8, 16] {
        output.warns(&format!(
            "m: FedAvg: a further candidate is left out: `cohort` must be at most the number of clients, 5, not {refused}"
        ));
    }
    bench.report();
    let (cohort, edge) = selected(&bench);
    assert_eq!(cohort, "4", "it was added while 8 and 16 were refused");
    assert!(edge.starts_with("largest cohort; left out: `cohort` must be at most"), "{edge}");
    bench.run(&["run", "m.toml"]).expect(0).warns("cells are done");
    bench.run(&["plan", "m.toml"]).expect(0).prints(" 0 missing");

    // All clients are at no border: nothing is added, and nothing said.
    let bench = bench_of(&[("clients = 5", "clients = 4"), ("[1, 2]", "[1, 4]")]);
    assert_eq!(selected(&bench), ("4".to_owned(), String::new()));
}

fn bench_of(changes: &[(&str, &str)]) -> Bench {
    let bench = Bench::new();
    bench.write("m.toml", edited(PARTICIPATION, changes));
    assert!(!bench.run(&["run", "m.toml"]).expect(0).err.contains("left out"));
    bench.report();
    bench
}

/// The same where only a data file tells how many clients there are.
#[test]
fn an_extended_participation_ends_at_the_clients_of_a_file() {
    let bench = Bench::new();
    let record = |i: u32| format!("{},{},{},{}\n", i % 7, i * i % 11, i % 3, i % 2);
    let records: String = (0..60).map(record).collect();
    bench.write("r.csv", format!("a,b,site,label\n{records}"));
    let problem = edited(
        PARTICIPATION,
        &[
            (
                "[problem.quadratic]\ndimension = 2\nclients = 5\nspectrum = { from = 0.5, to = 1.0 }\nnoise = 1.0\n",
                "[problem.logistic-dataset]\nl2 = 0.1\ndataset = { file = \"r.csv\", split = { column = \"site\" } }\n",
            ),
            ("step-size = 0.1", "step-size = 0.01"),
        ],
    );
    bench.write("m.toml", problem);
    let output = bench.run(&["run", "m.toml"]).expect(0);
    bench.report();
    output.warns("`cohort` must be at most the number of clients, 3, not 4");
    assert_eq!(selected(&bench).0, "2");
    bench.run(&["plan", "m.toml"]).expect(0).prints(" 0 missing");
}

/// Each further number of local steps takes a hundred times as long: what follows from results is
/// not run unasked where it takes longer than the plan said.
#[test]
fn an_extension_beyond_the_planned_time_is_confirmed() {
    let bench = Bench::new();
    let dear = edited(
        PARTICIPATION,
        &[
            ("replicates = 20", "replicates = 3"),
            ("noise = 1.0", "noise = 0.01"),
            ("offset = 0.0", "offset = 1.0"),
            ("\"cohort\"", "\"local-steps\""),
            ("range = [1, 2]\nratio = 2.0", "range = [10, 1000]\nratio = 100.0"),
            ("step-size = 0.1\nlocal-steps = 5\n", "step-size = 1e-9\n"),
        ],
    );
    bench.write("m.toml", &dear);
    bench.run(&["plan", "m.toml"]).expect(0).prints("where candidates are best at the edge of their range, up to 12 further candidates: run asks before what follows takes more than 10 min");
    for _ in 0..2 {
        let output = bench.run(&["run", "m.toml", "--threads", "2"]).expect(4);
        output.warns("error: m: 3 cells that follow from the candidates to run, about ");
        output.warns(" h on 2 threads, where ");
        output.warns("; pass --yes to run them, or add no candidates (`extend = 0` in [tune]); all others are stored");
    }
    assert_eq!(bench.digests("results").len(), 2, "both candidates are stored");
    bench.run(&["run", "m.toml", "--set", "tune.extend=0"]).expect(0);
    bench.report();
    assert_eq!(selected(&bench), ("1000".to_owned(), "largest local-steps".to_owned()));
}

/// FedProx at γμ = 3, where the proximal term alone makes local steps diverge.
const PROXIMAL: &str = "[[algorithm.fedprox]]\nlocal-steps = 5\nproximal = 60.0\n";

/// The table of tuned algorithms, and another one in its place.
fn with_algorithms(tables: &str) -> String {
    let (settings, _) = TUNED.split_once("[[algorithm.fedavg]]").unwrap();
    settings.to_owned() + tables
}

/// `check`, `plan` and the page name an algorithm whose proximal term makes local steps diverge. Candidates are not
/// named, since the search discards those that diverge, and of what is selected only the page says it.
#[test]
fn proximal_terms_that_overshoot_are_named_unless_they_are_candidates() {
    let text = "with γμ ≥ 2 a local step overshoots";
    let plain = with_algorithms(PROXIMAL).replace("local-steps = 200", "local-steps = 20");
    let tune = "[tune]\nover = \"step-size\"\nrange = [1e-2, 0.5]\nevaluate = 6\n";
    let plain = edited(&plain, &[(tune, ""), ("proximal", "step-size = 0.05\nproximal")]);
    // The candidate with γμ = 0.6 is selected, and that with γμ = 30 diverges.
    let tuned = edited(
        &with_algorithms(PROXIMAL),
        &[("range = [1e-2, 0.5]", "values = [1e-2, 0.5]\nextend = 0")],
    );
    // All candidates have γμ = 3, and few steps.
    let fixed = edited(
        &with_algorithms(PROXIMAL),
        &[
            ("\"step-size\"\nrange = [1e-2, 0.5]", "\"local-steps\"\nvalues = [2, 3]\nextend = 0"),
            ("local-steps = 5\n", "step-size = 0.05\n"),
            ("local-steps = 200", "local-steps = 6"),
        ],
    );
    for (manifest, is_warned, is_on_page) in
        [(&plain, true, true), (&tuned, false, false), (&fixed, false, true)]
    {
        let bench = Bench::new();
        bench.write("m.toml", manifest);
        let mut warnings = vec![bench.run(&["check", "m.toml"]).expect(0).err];
        warnings.push(bench.run(&["plan", "m.toml"]).expect(0).err);
        bench.compute(&["m.toml"]);
        warnings.push(bench.run(&["plan", "m.toml"]).expect(0).err);
        for warning in warnings {
            assert_eq!(warning.contains(text), is_warned, "{warning}\n{manifest}");
        }
        bench.report();
        let page = bench.read("reports/m/report.md");
        assert_eq!(page.contains(text), is_on_page, "{page}");
        let remedy = "reduce `step-size` or `proximal` of FedProx (γ = 0.05, μ = 60).";
        assert_eq!(page.contains(remedy), is_on_page, "{page}");
        let html = bench.read("reports/m/report.html");
        assert_eq!(html.contains("<code>proximal</code> of FedProx"), is_on_page, "{html}");
    }
}

/// A candidate of which a run diverges is never selected.
#[test]
fn what_diverges_is_not_selected() {
    let bench = bench(&edited(
        TUNED,
        &[
            ("range = [1e-2, 0.5]", "values = [0.05, 1e3]"),
            ("local-steps = 200", "local-steps = 5000"),
        ],
    ));
    for row in bench.rows("reports/m/tuned.csv") {
        assert_eq!((&*row["selected"], &*row["diverged"]), ("0.05", "1"));
        assert!(row["at_edge"].contains("next larger step-size diverges"), "{row:?}");
    }
}

#[test]
fn several_settings_are_tuned_together() {
    let manifest = edited(
        TUNED,
        &[
            (
                "over = \"step-size\"\nrange = [1e-2, 0.5]",
                "over = [\"step-size\", \"local-steps\"]\nrange = { step-size = [0.05, 0.5] }\nvalues = { local-steps = [1, 5, 20] }",
            ),
            ("local-steps = [1, 10]\n", ""),
        ],
    );
    let bench = bench(&manifest);
    let rows = bench.rows("reports/m/tuned.csv");
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert!(row["selected_step-size"].parse::<f64>().is_ok(), "{row:?}");
        assert!(["1", "5", "20"].contains(&&*row["selected_local-steps"]), "{row:?}");
    }
}

#[test]
fn what_cannot_be_tuned_costs_one_message() {
    let bench = Bench::new();
    for (change, message) in [
        (
            ("[[algorithm.scaffold]]\n", "[[algorithm.scaffold]]\nstep-size = [0.1, 0.2]\n"),
            "`step-size` is tuned, so that it has no value here",
        ),
        (
            ("\"step-size\"", "\"stepsize\""),
            "no algorithm of this manifest has a setting `stepsize`",
        ),
        (
            ("range = [1e-2, 0.5]\n", ""),
            "`step-size` has no candidates: write `range = [1e-3, 1.0]`",
        ),
        (("[1e-2, 0.5]", "[0.5, 1e-2]"), "must be two numbers above 0, the smaller first"),
        (
            ("[1e-2, 0.5]", "[1e-300, 1e300]"),
            "`range` = [1e-300, 1e300]: the larger must be at most 1e308 times the smaller",
        ),
        (
            ("[1e-2, 0.5]", "[1e-2, 0.5]\nratio = 1.0000000000000002"),
            "with `ratio` = 1.0000000000000002 makes 1.8e16 candidates; at most 1000 are allowed",
        ),
        (
            ("[1e-2, 0.5]", "[1e-2, 0.5]\nratio = 1.0000001"),
            "`range` = [0.01, 0.5] with `ratio` = 1.0000001 makes 39120233 candidates; at most 1000",
        ),
        (("[1e-2, 0.5]", "[1e-2, 0.5]\nratio = 1.0"), "`ratio` must be a number above 1, not 1"),
        (
            ("[1e-2, 0.5]", "[1e-2, 0.5]\nvalues = [0.1, 0.2]"),
            "`range` and `values` exclude each other",
        ),
        (
            ("range = [1e-2, 0.5]", "values = [0.1]"),
            "two different candidates; write a single value in the algorithm's table",
        ),
        (("evaluate = 6", "evaluate = 0"), "`evaluate` must be 1 or more, not 0"),
        (("evaluate = 6", "metric = \"suboptimality\""), "`suboptimality` is not recorded"),
        (
            ("replicates = 3", "replicates = 3\ninstances = 0"),
            "`instances` must be 1 or more, not 0",
        ),
        (
            ("replicates = 3", "replicates = 3\ninstances = 4\ninstance = \"per-replicate\""),
            "exclude each other",
        ),
    ] {
        bench.write("m.toml", edited(TUNED, &[change]));
        let before = bench.files();
        let output = bench.run(&["run", "m.toml"]).expect(2);
        output.warns(message).warns("--> m.toml:");
        assert_eq!(output.err.matches("error:").count(), 1, "{}", output.err);
        assert_eq!(bench.files(), before);
    }
}

/// The runs on the first instance are those of the manifest without `instances`; every other
/// instance has a problem and noise of its own.
#[test]
fn the_first_instance_is_that_of_the_seed() {
    let plain = edited(
        TUNED,
        &[
            ("[tune]\nover = \"step-size\"\nrange = [1e-2, 0.5]\nevaluate = 6\n\n", ""),
            ("local-steps = [1, 10]\n", "local-steps = 10\nstep-size = 0.1\n"),
        ],
    );
    let several = edited(&plain, &[("replicates = 3", "replicates = 3\ninstances = 4")]);
    let (one, four) = (bench(&plain), bench(&several));
    let (a, b) = (ends(&one), ends(&four));
    for (key, cells) in a {
        let (plain, several) = (&cells[0], &b[&key][0]);
        assert_eq!((plain.len(), several.len()), (3, 12));
        assert_eq!(plain[..], several[..3]);
        let different: BTreeSet<u64> = several.iter().map(|x| x.to_bits()).collect();
        assert_eq!(different.len(), 12);
    }
    let instances: BTreeSet<String> = four
        .rows("all.csv")
        .iter()
        .map(|row| format!("{} {}", row["instance"], row["replicate"]))
        .collect();
    let expected: BTreeSet<String> = (0..12).map(|run| format!("{} {run}", run / 3)).collect();
    assert_eq!(instances, expected);
    let page = four.read("reports/m/report.md");
    assert!(page.contains("4 instances with 3 runs each"), "{page}");
}
