//! The command line, driven as a user drives it.

use crate::support::{Bench, DIVERGING, GARNET, LOGISTIC, edited};

#[test]
fn a_main_job_from_manifests_to_pages_twice() {
    let bench = Bench::with_smoke(&["garnet", "logistic", "diverging"]);
    bench.run(&["reproduce", "--quiet"]).expect(0);
    let pages = |bench: &Bench| {
        [
            "README.md",
            "index.html",
            "smoke/garnet/report.md",
            "smoke/garnet/report.html",
            "smoke/garnet/summary.csv",
            "smoke/garnet/finals.csv",
            "smoke/garnet/figures/convergence.svg",
            "smoke/logistic/report.md",
            "smoke/diverging/report.md",
        ]
        .map(|f| bench.read(&format!("reports/{f}")))
    };
    let first = pages(&bench);
    let again = bench.run(&["reproduce"]).expect(0);
    assert!(again.err.contains("smoke/garnet: all 36 cells are done"), "{}", again.err);
    assert_eq!(pages(&bench), first, "a second reproduce changes no page");
    bench.run(&["reproduce", "--quiet", "--force", "--threads", "1"]).expect(0);
    assert_eq!(pages(&bench), first, "nor does running everything again");
    let same = bench.run(&["diff", "reports", "reports"]).expect(0).out;
    assert!(same.ends_with("66 cells bit-identical, 0 changed.\n"), "{same}");
    assert!(first[8].contains("diverged"), "{}", first[8]);
}

/// What `--log json` writes are lines of JSON: the status of the run from its begin to its end.
#[test]
fn a_log_for_programs_is_lines_of_json() {
    let bench = Bench::with_smoke(&["logistic"]);
    let run = bench.run(&["run", LOGISTIC, "--log", "json"]).expect(0);
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    let lines: Vec<serde_json::Value> = run.err.lines().map(read).collect();
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!((&first["phase"], &first["done"]), (&"running".into(), &0.into()));
    assert_eq!((&last["phase"], &last["done"]), (&"finished".into(), &last["cells"]));
    assert!(last["cells"].as_u64() > Some(0) && last["steps"].as_u64() > Some(0), "{last}");
}

#[test]
fn quiet_says_nothing_and_lines_are_plain_without_a_terminal() {
    let bench = Bench::with_smoke(&["logistic"]);
    let quiet = bench.run(&["run", LOGISTIC, "--quiet"]).expect(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
    let plain = bench.run(&["run", LOGISTIC, "--force"]).expect(0);
    assert!(plain.err.contains("smoke/logistic: 28 cells"), "{}", plain.err);
    assert!(!plain.err.contains('\x1b'), "{:?}", plain.err);
}

#[test]
fn plan_tells_done_from_to_do() {
    let bench = Bench::with_smoke(&["logistic"]);
    bench.run(&["plan", LOGISTIC]).expect(0).prints("0 done, 28 missing");
    assert_eq!(bench.files(), ["experiments"], "plan writes nothing");
    bench.compute(&[LOGISTIC, "--shard", "1/2"]);
    bench.run(&["plan", LOGISTIC]).expect(0).prints("14 done, 14 missing");
    bench.compute(&[LOGISTIC, "--shard", "2/2"]);
    bench.run(&["plan", LOGISTIC]).expect(0).prints("28 done, 0 missing");
}

#[test]
fn check_accepts_what_is_right() {
    let bench = Bench::with_smoke(&["garnet"]);
    let text = bench.run(&["check", GARNET]).expect(0);
    assert_eq!(text.out, "experiments/smoke/garnet.toml: ok, 36 cells\n");
}

/// A fraction of the clients makes the cells of the number that it stands for.
#[test]
fn a_fraction_of_the_clients_is_a_number_of_them() {
    let bench = Bench::new();
    let manifest = |edits: &[(&str, &str)]| {
        let text = edited(include_str!("../manifests/valid.toml"), edits);
        bench.write("m.toml", edited(&text, &[("clients = 3", "clients = [3, 10]")]));
    };
    let zip = ("seed = 1", "seed = 1\nzip = [[\"clients\", \"cohort\"]]");
    manifest(&[("step-size = 0.1", "step-size = 0.1\ncohort = [1, 3]"), zip]);
    bench.compute(&["m.toml"]);
    manifest(&[("step-size = 0.1", "step-size = 0.1\ncohort = 0.3")]);
    bench.run(&["plan", "m.toml"]).expect(0).prints("4 done, 0 missing");
}

/// Mini-batch SGD with one gradient in a round is no baseline of tuned local steps.
#[test]
fn a_batch_that_is_not_tuned_is_a_warning() {
    let bench = Bench::new();
    let tuned = "[tune]\nover = [\"step-size\", \"local-steps\"]\n\
                 range = { step-size = [0.1, 1.0], local-steps = [1, 10] }\n\n\
                 [[algorithm.minibatch-sgd]]\n\n[[algorithm.fedlsa]]\n";
    let good = include_str!("../manifests/valid.toml");
    let text = good.split("[[algorithm").next().unwrap().to_owned() + tuned;
    bench.write("m.toml", &text);
    let warning = "warning: m.toml: \"mini-batch SGD\" takes one gradient of each client";
    bench.run(&["check", "m.toml"]).expect(0).warns(warning);
    bench.write("m.toml", edited(&text, &[("sgd]]", "sgd]]\nbatch = 5")]));
    assert_eq!(bench.run(&["check", "m.toml"]).expect(0).err, "");
}

#[test]
fn every_verb_has_help_with_an_example() {
    let bench = Bench::new();
    let verbs = "run watch report reproduce check plan init data diff history digest export merge submit \
         schema completions";
    for verb in verbs.split(' ') {
        bench.run(&[verb, "--help"]).expect(0).prints("Example: exactfed");
    }
}

#[test]
fn bad_input_costs_exit_two_and_writes_nothing() {
    let bench = Bench::with_smoke(&["logistic"]);
    bench.write("bad.toml", "title = 1");
    bench.write("file", "");
    let before = bench.files();
    for arguments in [
        vec!["run", "absent.toml"],
        vec!["run", "bad.toml"],
        vec!["run", LOGISTIC, "bad.toml"],
        vec!["run", LOGISTIC, "--set", "seed=-1"],
        vec!["run", LOGISTIC, "--replicates", "0"],
        vec!["run", LOGISTIC, "--replicates", "99999999"],
        vec!["run", LOGISTIC, "--out", "file"],
        vec!["run", LOGISTIC, "--out", "/dev/null/results"],
        vec!["run", LOGISTIC, "--out", "experiments"],
        vec!["run", LOGISTIC, "--threads", "0"],
        vec!["run", LOGISTIC, "--shard", "3/2"],
        vec!["run", LOGISTIC, LOGISTIC],
        vec!["watch", "absent.toml"],
        vec!["watch", LOGISTIC, "--out", "experiments"],
        vec!["watch", LOGISTIC, "--reports", "file"],
        vec!["run", LOGISTIC, "--reports", "reports"],
        vec!["run", LOGISTIC, "--live", "--log", "json"],
        vec!["run", LOGISTIC, "--live", "--until-decided"],
        vec!["run", LOGISTIC, "--live", "--reports", "file"],
        vec!["report", "absent"],
        vec!["digest", "experiments"],
        vec!["diff", "absent", "reports"],
        vec!["reproduce", "--experiments", "absent"],
        vec!["run"],
        vec!["fly"],
    ] {
        let text = bench.run(&arguments).expect(2);
        assert!(text.err.starts_with("error: "), "{arguments:?}: {}", text.err);
        assert_eq!(bench.files(), before, "{arguments:?} left something");
    }
}

#[test]
fn a_results_folder_of_another_version_is_refused() {
    let bench = Bench::with_smoke(&["logistic"]);
    bench.write("results/exactfed.toml", "schema = 99\nversion = \"9.9.9\"\n");
    for arguments in [vec!["run", LOGISTIC], vec!["report"], vec!["digest"]] {
        bench.run(&arguments).expect(2).warns("schema 99, written by exactfed 9.9.9");
    }
}

#[test]
fn results_under_the_former_name_are_refused() {
    let bench = Bench::with_smoke(&["logistic"]);
    bench.write(concat!("results/drift", "bench.toml"), "schema = 4\nversion = \"0.1.0\"\n");
    let before = bench.files();
    for arguments in [vec!["run", LOGISTIC], vec!["report"], vec!["digest"]] {
        let text = bench.run(&arguments).expect(2);
        text.warns("now called exactfed").warns("run the experiments again into another folder");
        assert_eq!(bench.files(), before, "{arguments:?} left something");
    }
}

#[test]
fn an_unwritable_report_folder_is_named() {
    let bench = Bench::of_smoke(&["logistic"]);
    bench.write("file", "");
    bench.run(&["report", "--out", "file/reports"]).expect(2).warns("file/reports");
}

#[test]
fn labels_and_titles_leave_the_cells_alone() {
    let bench = Bench::of_smoke(&["logistic"]);
    let digests = bench.digests("results");
    let changes = [
        ("Scaffold-RR", "a <b>new</b> name"),
        ("title = \"", "title = \"<script>alert(1)</script> "),
    ];
    let text = edited(&bench.read(LOGISTIC), &changes);
    bench.write(LOGISTIC, &text);
    bench.run(&["run", LOGISTIC]).expect(0).warns("all 28 cells are done");
    assert_eq!(bench.digests("results"), digests);
    bench.report();
    for page in ["report.md", "report.html"] {
        let page = bench.read(&format!("reports/smoke/logistic/{page}"));
        let (text, fenced) = page.split_once("````").map_or((page.as_str(), ""), |p| p);
        assert!(!text.contains("<script>alert") && text.contains("&lt;script&gt;"), "{fenced}");
        assert!(!text.contains("<b>new"));
    }
}

#[test]
fn overrides_are_named_on_the_page() {
    let bench = Bench::with_smoke(&["diverging"]);
    bench.compute(&[DIVERGING, "--set", "seed=8"]);
    bench.report();
    assert!(bench.read("reports/smoke/diverging/report.md").contains("--set 'seed=8'"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let output = crate::support::exactfed().args(["schema"]).without_reader().run();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.as_str()), (Some(0), ""));
}

/// A claim that the results refute fails `report` and `reproduce`, and leaves the
/// pages in place; one that is expected to be refuted does not.
#[test]
fn a_refuted_claim_is_exit_one() {
    let bench = Bench::with_smoke(&["garnet"]);
    let good = bench.read(GARNET);
    let claim = |more: &str| {
        format!(
            "{good}\n[[claim.less]]\nid = \"small\"\nstatement = \"Errors <b>vanish</b>\"\nfigure = \"convergence\"\nleft = {{ label = \"FedLSA\" }}\nvalue = 1e-9\n{more}"
        )
    };
    bench.write(GARNET, claim(""));
    let text = bench.run(&["reproduce", "--quiet"]).expect(1);
    text.warns("smoke/garnet: the claim \"small\" is refuted");
    bench.run(&["report", "--quiet"]).expect(1);
    let page = bench.read("reports/smoke/garnet/report.md");
    assert!(page.contains("## Claims") && page.contains("**refuted**"), "{page}");
    for page in ["reports/claims.html", "reports/smoke/garnet/report.html"] {
        let page = bench.read(page);
        assert!(page.contains("&lt;b&gt;vanish") && !page.contains("<b>vanish"), "{page}");
    }
    bench.write(
        GARNET,
        claim("expected = \"refuted\"\nrefutes = \"reading\"\nreason = \"they do not\"\n"),
    );
    bench.run(&["reproduce", "--quiet"]).expect(0);
    let page = bench.read("reports/claims.md");
    assert!(page.contains("refuted, as expected: a reading"), "{page}");
    bench.write(GARNET, claim("").replace("value = 1e-9", "value = 1e9"));
    bench.run(&["reproduce", "--quiet"]).expect(0);
    assert!(bench.read("reports/claims.md").contains("1 supported"));
    bench.report();
}

/// The plan says for how many cells exact moments are known.
#[test]
fn plan_tells_of_exact_moments() {
    let bench = Bench::with_smoke(&["garnet"]);
    let text = bench.read(GARNET).replace("[\"exact-bias\"]", "[\"exact-moments\"]");
    bench.write(GARNET, &text);
    bench.run(&["plan", GARNET]).expect(0).prints("exact moments: known for 36 of 36 cells");
    bench.run(&["reproduce", "--quiet"]).expect(0);
    let svg = bench.read("reports/smoke/garnet/figures/convergence.svg");
    assert!(svg.contains("infinite replicates (exact)"));
}

/// What `report` did not write it neither overwrites nor removes; what it wrote it does, also
/// where an earlier report was cut short or kept no list.
#[test]
fn reports_overwrite_nothing_that_they_did_not_write() {
    let bench = Bench::of_smoke(&["diverging"]);
    bench.write("README.md", "mine");
    let text = bench.run(&["report", "--out", "."]).expect(2);
    text.warns("README.md: was not written by `exactfed report`");
    assert_eq!(bench.read("README.md"), "mine");
    assert!(!bench.path("index.html").exists() && !bench.path("smoke").exists());

    let page = "other/smoke/diverging/report.md";
    bench.write(page, "mine");
    let text = bench.run(&["report", "--out", "other"]).expect(2);
    text.warns("smoke/diverging cannot be reported: ").warns("report.md: was not written by");
    assert_eq!(bench.read(page), "mine");

    bench.report();
    let own = ["figures/mine.svg", "claim-mine.csv", "notes.md"];
    let own = own.map(|name| format!("reports/smoke/diverging/{name}"));
    own.iter().for_each(|name| bench.write(name, "mine"));
    let left = bench.path("reports/.writing-abc");
    std::fs::write(&left, "half").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    std::fs::File::options().write(true).open(&left).unwrap().set_modified(old).unwrap();
    let list = "reports/.exactfed-reports";
    let whole = bench.read(list);
    assert!(whole.contains("\nsmoke/diverging/report.html\n"), "{whole}");
    bench.write(list, format!("{whole}smoke/diverg"));
    bench.report();
    assert_eq!(bench.read(list), whole);
    assert!(own.iter().all(|name| bench.read(name) == "mine") && !left.exists());
    std::fs::remove_file(bench.path(list)).unwrap();
    std::fs::remove_file(bench.path("reports/smoke/diverging/figures/mine.svg")).unwrap();
    std::fs::remove_file(bench.path("reports/smoke/diverging/claim-mine.csv")).unwrap();
    bench.report();
    assert_eq!(bench.read(list), whole);
}
