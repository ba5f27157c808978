//! Replicates that are added until claims are decided (`run --until-decided`), and pages that know
//! at which looks their verdicts were seen, driven as a user drives them.

use crate::support::markup::blocks;
use crate::support::{Bench, Finished, QUADRATIC, edited};

/// Two step sizes, whose errors differ by a factor of about 2.4.
const MANIFEST: &str = r#"title = "t"
seed = 1
replicates = 5
problem.quadratic = { dimension = 3, clients = 4, spectrum = { from = 0.5, to = 1.5 }, gradient-heterogeneity = 1.0, noise = 1.0 }
start.offset = 1.0
budget.rounds = 40
[[algorithm.fedavg]]
step-size = 0.05
local-steps = 2
[[algorithm.fedavg]]
label = "twice"
step-size = 0.1
local-steps = 2
"#;

/// The claim that the error at the smaller step size is at most so many times the other.
fn at_most(id: &str, factor: f64) -> String {
    format!(
        "[[claim.less]]\nid = \"{id}\"\nstatement = \"s\"\nleft = {{ label = \"FedAvg\" }}\n\
         right = {{ label = \"twice\" }}\nfactor = {factor:?}\n"
    )
}

/// One claim that few runs decide and one that takes more.
fn two_claims() -> String {
    [MANIFEST, &at_most("easy", 5.0), &at_most("hard", 0.75)].concat()
}

/// A claim at the boundary of what is true, which no number of runs here decides.
fn open_claim() -> String {
    [MANIFEST, &at_most("easy", 5.0), &at_most("open", 0.4)].concat()
}

/// A bench with this manifest, `m.toml`.
fn bench_of(text: &str) -> Bench {
    let bench = Bench::new();
    bench.write("m.toml", text);
    bench
}

/// What a run prints without the speed of its cells.
fn looks_of(output: &Finished) -> String {
    let lines = output.err.lines().filter(|line| !line.contains("steps/s"));
    lines.map(|line| format!("{line}\n")).collect()
}

impl Bench {
    #[track_caller]
    fn decide(&self, more: &[&str]) -> String {
        let output = self.run(&[&["run", "m.toml", "--until-decided"], more].concat());
        looks_of(&output.expect(0))
    }

    /// The page of an experiment after a report.
    #[track_caller]
    fn page(&self) -> String {
        // With 1 it says that a claim is refuted.
        let code = self.run(&["report", "--quiet"]).code;
        assert!([0, 1].contains(&code), "{code}");
        self.read("reports/m/report.md")
    }

    /// The verdict on each claim that the last report recorded.
    #[track_caller]
    fn verdicts(&self) -> Vec<String> {
        let record: toml::Table = self.read("reports/m/record.toml").parse().unwrap();
        let claims = record["claim"].as_array().unwrap().iter();
        claims.map(|claim| claim["verdict"].as_str().unwrap().to_owned()).collect()
    }
}

/// What an option that makes no sense is answered with; nothing is written.
#[track_caller]
fn refused(text: &str, options: &[&str]) -> String {
    let bench = bench_of(text);
    let output = bench.run(&[&["run", "m.toml"], options].concat()).expect(2);
    assert_eq!(bench.files(), ["m.toml"], "something was written");
    output.err
}

#[test]
fn a_claim_is_decided_at_the_second_look() {
    let bench = bench_of(&two_claims());
    insta::assert_snapshot!(
        "decided_at_the_second_look",
        bench.decide(&["--max-replicates", "80"])
    );
    let page = bench.page();
    assert_eq!(bench.verdicts(), ["supported", "supported"]);
    let sentence = page.lines().find(|line| line.starts_with("They were judged at"));
    insta::assert_snapshot!("sentence_on_looks", sentence.unwrap_or(&page));
    assert!(page.contains("decided at look 2 of at most 5, at 10 replicates"), "{page}");
    let command = "exactfed run m.toml --replicates 5 --until-decided --max-replicates 80";
    assert!(page.contains(command), "{page}");
    assert!(!page.contains("optional stopping"), "the looks were planned: {page}");
    let html = bench.read("reports/m/report.html");
    assert!(html.contains(sentence.unwrap_or_default()), "{html}");
    assert_eq!(bench.page(), page, "a second report changes nothing");
    assert!(!bench.path("results/m/shown.toml").exists(), "planned looks need no other record");

    // The replicates of the first look were not run again, and the bits are those of one run.
    bench.compute(&["m.toml", "--replicates", "10", "--out", "plain"]);
    let plain = bench.digests("plain");
    let decided = bench.digests("results");
    assert_eq!((plain.len(), decided.len()), (2, 4));
    assert!(plain.iter().all(|line| decided.contains(line)), "{plain:?} {decided:?}");
    bench.run(&["verify", "--all", "--quiet"]).expect(0);
    bench.run(&["export", "--out", "all.csv", "--quiet"]).expect(0);
    let last = |of: &str| bench.rows("all.csv").iter().filter(|row| row["last_run"] == of).count();
    assert_eq!(last("true"), 2 * last("false"), "the rows of both looks");

    // The command that the page states does the same in another folder.
    bench
        .run(&[
            "run",
            "m.toml",
            "--out",
            "again",
            "--replicates",
            "5",
            "--until-decided",
            "--max-replicates",
            "80",
            "--quiet",
        ])
        .expect(0);
    assert_eq!(bench.digests("again"), decided);
}

#[test]
fn all_replicates_may_leave_a_claim_inconclusive() {
    let bench = bench_of(&open_claim());
    insta::assert_snapshot!("no_more_replicates", bench.decide(&["--max-replicates", "13"]));
    let page = bench.page();
    assert_eq!(bench.verdicts(), ["supported", "inconclusive"]);
    assert!(page.contains("at the family-wise levels 1.92 %, 1.92 % and 1.15 %"), "{page}");
    assert!(page.contains("1 claim was not decided"), "{page}");

    // The plan stands; calling it again says the same and runs nothing.
    let again = bench.decide(&[]);
    assert!(
        again.contains("look 3 of at most 3, at 13 replicates: 1 of 2 claims is open"),
        "{again}"
    );
    assert_eq!(bench.page(), page);
    let most = ["run", "m.toml", "--until-decided", "--max-replicates", "80"];
    insta::assert_snapshot!("another_plan", bench.run(&most).expect(2).err);
    let other = ["run", "m.toml", "--until-decided", "--replicates", "6"];
    insta::assert_snapshot!("other_looks", bench.run(&other).expect(2).err);
    assert_eq!(bench.page(), page, "what is refused changes nothing");

    // More by hand are outside of the plan, and the page says so.
    bench.compute(&["m.toml", "--replicates", "20"]);
    let page = bench.page();
    assert!(page.contains("Replicates were added, from 13 to 20"), "{page}");
    assert!(page.contains("(at 5, 10, 13)"), "{page}");
    assert!(!page.contains("They were judged at"), "{page}");
}

/// By default there are up to 16 times as many replicates. A second experiment on the command line
/// that needs no more ends at its first look.
#[test]
fn several_experiments_are_looked_at_together() {
    let bench = bench_of(&two_claims());
    let exact = edited(MANIFEST, &[("start.offset", "oracle = \"exact\"\nstart.offset")]);
    bench.write("exact.toml", exact + &at_most("exact", 0.0001));
    let output = bench.run(&["run", "m.toml", "exact.toml", "--until-decided", "--threads", "2"]);
    let all = looks_of(&output.expect(0));
    assert!(
        all.contains("exact: look 1 of at most 5, at 5 replicates: every claim is decided"),
        "{all}"
    );
    assert!(
        all.contains("m: look 1 of at most 5, at 5 replicates: 1 of 2 claims is open"),
        "{all}"
    );
    assert!(all.contains("m: look 2 of at most 5, at 10 replicates: every claim"), "{all}");
    assert!(!all.contains("exact: look 2"), "{all}");
    assert!(bench.read("results/m/looks.toml").contains("most = 80\n"));
}

/// Some seconds of work at the second look.
fn slow() -> String {
    let slow = ("budget.rounds = 40", "budget.rounds = 60000\nrecord.points = 4");
    let at_boundary = ("factor = 0.4", "factor = 0.52");
    edited(&open_claim(), &[slow, at_boundary, ("replicates = 5", "replicates = 10")])
}

#[cfg(unix)]
#[test]
fn what_was_interrupted_between_looks_goes_on() {
    let calm = bench_of(&slow());
    let most = ["--max-replicates", "40"];
    calm.decide(&most);
    calm.page();
    for signal in ["INT", "KILL"] {
        let bench = bench_of(&slow());
        let arguments = [&["run", "m.toml", "--until-decided"], &most[..]].concat();
        let mut run = crate::support::exactfed().args(&arguments).folder(&bench.folder).start();
        run.wait_for("a look", |run| run.err().contains("m: look 1 of at most 3").then_some(()));
        run.signal(signal);
        let code = Finished::from(run.finish()).code;
        let killed = if signal == "INT" { 130 } else { -1 };
        assert_eq!(code, killed, "after the first look it was not interrupted: {signal}");
        assert!(bench.digests("results").len() < calm.digests("results").len());
        // A page at this time knows what was planned.
        let page = bench.page();
        assert!(page.contains("They were judged at 10") && !page.contains("optional"), "{page}");
        let all = bench.decide(&[]);
        assert!(all.contains("m: look 1 of at most 3, at 10 replicates: 2 of 2 claims"), "{all}");
        assert_eq!(bench.digests("results"), calm.digests("results"), "{signal}");
        bench.page();
        for file in ["report.md", "record.toml"] {
            let file = format!("reports/m/{file}");
            assert_eq!(bench.read(&file), calm.read(&file), "{signal}");
        }
        assert!(!bench.path("results/m/shown.toml").exists());
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let decide = "--until-decided";
    let untuned = [("step-size = 0.05\n", ""), ("step-size = 0.1", "server-step = 0.9")];
    let tuned = edited(MANIFEST, &untuned)
        + &at_most("easy", 5.0)
        + "[tune]\nover = \"step-size\"\nvalues = [0.05, 0.2]\n";
    let several = edited(&two_claims(), &[("replicates = 5", "replicates = 5\ninstances = 3")]);
    let text = two_claims();
    for (name, text, options) in [
        ("no_claims", MANIFEST, &[decide][..]),
        ("tuned_settings", &tuned, &[decide]),
        ("several_instances", &several, &[decide]),
        ("shards", &text, &[decide, "--shard", "1/2"]),
        ("below_the_replicates", &text, &[decide, "--max-replicates", "4"]),
        ("above_all_streams", &text, &[decide, "--max-replicates", "16777217"]),
        ("without_the_option", &text, &["--max-replicates", "40"]),
    ] {
        insta::assert_snapshot!(name, refused(text, options));
    }
}

/// Adding replicates by hand after a page showed verdicts is said on later pages, also where the
/// looks are planned afterwards; a page that is made twice is the same.
#[test]
fn replicates_that_are_added_after_verdicts_are_reported() {
    let bench = bench_of(&two_claims());
    bench.compute(&["m.toml"]);
    let first = bench.page();
    assert!(!first.contains("optional stopping"), "{first}");
    assert_eq!(bench.page(), first, "the record of the first report changes no page");
    bench.compute(&["m.toml", "--replicates", "8"]);
    let more = bench.page();
    let sentence = "Replicates were added, from 5 to 8, after verdicts had been seen (at 5).";
    assert!(more.contains(sentence) && more.contains("(optional stopping)"), "{more}");
    assert!(bench.read("reports/m/report.html").contains(sentence));
    assert!(!more.contains("The results contain"), "it is said once: {more}");
    assert_eq!(bench.page(), more);
    let output = bench.run(&["run", "m.toml", "--until-decided"]).expect(0);
    output.warns("m: a page showed verdicts at 5 replicates before these looks were planned");
    let planned = bench.page();
    let sentence = "Replicates were added, from 5 to 10, after verdicts had been seen (at 5, 8).";
    let sentence = sentence.replace("from 5", "from 8");
    assert!(planned.contains(&sentence) && planned.contains("They were judged at"), "{planned}");

    // Another seed and another manifest are not the same runs.
    bench.compute(&["m.toml", "--replicates", "20", "--set", "seed=2"]);
    assert!(!bench.page().contains("Replicates were added"));
    bench.compute(&["m.toml", "--replicates", "20", "--set", "budget.rounds=30"]);
    assert!(!bench.page().contains("Replicates were added"));
}

/// Makes the folder of an experiment read-only, if `is_read_only`, or writable again; those who may do everything write
/// there in either case.
fn set_read_only(bench: &Bench, is_read_only: bool) {
    let folder = bench.path("results/m");
    let mut permissions = std::fs::metadata(&folder).unwrap().permissions();
    permissions.set_readonly(is_read_only);
    std::fs::set_permissions(&folder, permissions).unwrap();
}

/// A page without verdicts leaves no record, and one that cannot be written is no failure; a
/// damaged one is.
#[test]
fn records_of_shown_verdicts() {
    let algorithm = "[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n";
    let bench = Bench::ran(&(QUADRATIC.to_owned() + algorithm));
    bench.report();
    assert!(!bench.path("results/m/shown.toml").exists());
    let bench = Bench::ran(&two_claims());
    let is_read_only = true;
    set_read_only(&bench, is_read_only);
    let first = bench.page();
    set_read_only(&bench, !is_read_only);
    assert_eq!(bench.page(), first);
    let recorded = bench.read("results/m/shown.toml");
    bench.write("results/m/shown.toml", recorded.replace("= 5", "= 4"));
    let output = bench.run(&["report", "--quiet"]).expect(2);
    output.warns("shown.toml: is not as it was written");
}

#[test]
fn merged_results_have_the_looks_of_both() {
    let bench = bench_of(&two_claims());
    bench.decide(&["--max-replicates", "80"]);
    let page = bench.page();
    bench.run(&["merge", "results", "--out", "merged", "--quiet"]).expect(0);
    bench.run(&["report", "merged", "--quiet"]).expect(0);
    assert_eq!(bench.read("reports/m/report.md"), page);
    bench
        .run(&["run", "m.toml", "--until-decided", "--max-replicates", "40", "--out", "other"])
        .expect(0);
    let merge = ["merge", "merged", "other", "--out", "both"];
    insta::assert_snapshot!("different_looks", bench.run(&merge).expect(2).err);
    assert!(!bench.path("both").exists());
    bench.damage("results/m/looks.toml");
    bench.run(&["verify", "--quiet"]).expect(4).prints("looks.toml: is not as it was written");
    bench.run(&["report", "--quiet"]).expect(2).warns("looks.toml: is not as it was written");
    let diff = bench.run(&["diff", "results", "merged"]).expect(2);
    diff.warns("looks.toml: is not as it was written");
}

/// The verdicts of planned looks are not those of one look at the same runs: `diff` judges both.
#[test]
fn a_diff_judges_the_same_runs_at_other_looks() {
    let bench = bench_of(&open_claim());
    bench.decide(&["--max-replicates", "20"]);
    bench.compute(&["m.toml", "--replicates", "20", "--out", "once"]);
    let verdicts = |folder: &str| {
        bench.run(&["report", folder, "--quiet"]);
        let record: toml::Table = bench.read("reports/m/record.toml").parse().unwrap();
        (record.get("looks").cloned(), bench.verdicts())
    };
    let (looks, at_looks) = verdicts("results");
    let looks = looks.expect("the report says which looks were planned");
    assert_eq!(looks["first"].as_integer(), Some(5));
    assert_eq!(looks["most"].as_integer(), Some(20));
    let (none, at_once) = verdicts("once");
    assert_eq!(none, None);
    // The pages are of `once` now.
    for sides in [["results", "once"], ["results", "reports"]] {
        let arguments =
            [&["diff"], &sides[..], &["--format", "json", "--fail-on", "none"]].concat();
        let diff: serde_json::Value = serde_json::from_str(&bench.run(&arguments).out).unwrap();
        let changed = diff["claims"].as_array().unwrap().len();
        let wanted = at_looks.iter().zip(&at_once).filter(|(a, b)| a != b).count();
        assert_eq!(changed, wanted, "{sides:?}: {at_looks:?} and {at_once:?}, {diff}");
    }
}

/// The command and what it prints in the documentation are those of the program.
#[test]
fn the_documentation_shows_what_a_run_prints() {
    let commands =
        std::fs::read_to_string(crate::support::root().join("docs/COMMANDS.md")).unwrap();
    let shown = blocks(&commands).into_iter().find(|block| block.text.contains("look 1"));
    let shown = shown.expect("a block of what --until-decided prints").text;
    let bench = bench_of(&two_claims());
    let printed = bench.decide(&["--max-replicates", "80"]);
    for line in shown.lines().filter(|line| line.starts_with("m: look")) {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
}

/// What a page says of a set of runs whose looks were the only planned ones, before any of its runs.
const CONFIRMED: &str = "These verdicts rest on the noise of seed 2 alone";
/// What it says of sets among which somebody may have chosen.
const CHOSEN: &str = "Choosing the number of replicates or the seed after seeing verdicts voids";

impl Bench {
    /// The page after these looks at the noise of a seed.
    #[track_caller]
    fn page_of_noise(&self, seed: u64) -> String {
        let noise = format!("noise-seed={seed}");
        self.decide(&["--set", &noise]);
        self.page()
    }
}

/// Planned looks at other noise confirm what was seen before, once.
#[test]
fn looks_at_fresh_noise_are_a_confirmation_once() {
    let bench = bench_of(&two_claims());
    bench.compute(&["m.toml"]);
    assert!(!bench.page().contains("These verdicts rest"), "there is one set of runs");
    let page = bench.page_of_noise(2);
    assert!(page.contains(CONFIRMED) && !page.contains("optional stopping"), "{page}");
    assert!(page.contains("also contain 1 further set of these cells with the noise of seed 1,"));
    let html = bench.read("reports/m/report.html");
    assert!(html.contains(CONFIRMED) && !html.contains("optional stopping"));
    assert_eq!(bench.page(), page);
    bench.run(&["merge", "results", "--out", "merged", "--quiet"]).expect(0);
    bench.run(&["report", "merged", "--quiet"]).expect(0);
    assert_eq!(bench.read("reports/m/report.md"), page);

    // The page of the first runs is one that may have been chosen.
    bench.compute(&["m.toml"]);
    let first = bench.page();
    assert!(first.contains(CHOSEN) && !first.contains(CONFIRMED), "{first}");

    // So is that of a second confirmation, and that of the first since there is another.
    for seed in [3, 2] {
        let page = bench.page_of_noise(seed);
        assert!(page.contains(CHOSEN) && !page.contains("These verdicts rest"), "{seed}: {page}");
    }
}

/// Looks that are planned after runs with their noise confirm nothing, shown or not.
#[test]
fn looks_at_noise_that_was_run_before_are_no_confirmation() {
    for replicates in ["5", "7"] {
        let bench = bench_of(&two_claims());
        bench.compute(&["m.toml"]);
        bench.compute(&["m.toml", "--set", "noise-seed=2", "--replicates", replicates]);
        let page = bench.page_of_noise(2);
        assert!(page.contains(CHOSEN) && !page.contains(CONFIRMED), "{replicates}: {page}");
    }
    // Of a record of an earlier release nothing is known.
    let bench = bench_of(&two_claims());
    bench.compute(&["m.toml"]);
    bench.page_of_noise(2);
    let fields = ["seed = 1\n", "noise-seed = 2\n", "fresh = true\n"];
    bench.reseal("results/m/looks.toml", &fields.map(|field| (field, "")));
    let page = bench.page();
    assert!(page.contains(CHOSEN) && !page.contains(CONFIRMED), "{page}");
}

/// Other settings with the same noise are another experiment, with a confirmation of its own.
#[test]
fn each_manifest_has_a_confirmation() {
    let bench = bench_of(&two_claims());
    for rounds in ["budget.rounds=40", "budget.rounds=30"] {
        bench.compute(&["m.toml", "--set", rounds]);
        bench.decide(&["--set", rounds, "--set", "noise-seed=2"]);
        let page = bench.page();
        assert!(page.contains(CONFIRMED) && !page.contains(CHOSEN), "{rounds}: {page}");
    }
}

/// README's commands in README's order, in an empty directory: its promise about wrong verdicts is
/// not contradicted by the page that they make.
#[test]
fn the_commands_of_the_readme_keep_its_promise() {
    let readme = std::fs::read_to_string(crate::support::root().join("README.md")).unwrap();
    let all = blocks(&readme);
    let manifest = all.iter().position(|block| block.text.starts_with("title")).unwrap();
    let commands: Vec<Vec<&str>> = all[manifest + 1..]
        .iter()
        .take_while(|block| block.language == "sh")
        .flat_map(|block| block.text.lines())
        .filter_map(|line| line.split('#').next()?.trim().strip_prefix("exactfed "))
        .map(|command| command.split_whitespace().collect())
        .collect();
    let decides = |command: &&Vec<&str>| command.contains(&"--until-decided");
    assert_eq!(commands.iter().filter(decides).count(), 1, "{commands:?}");
    assert_eq!(commands.last().map(|last| last[0]), Some("report"), "{commands:?}");

    let bench = Bench::new();
    bench.run(&["init"]).expect(0);
    assert_eq!(bench.read("mine.toml"), all[manifest].text);
    let mut pages = Vec::new();
    for command in &commands {
        bench.run(command).expect(0);
        if command[0] == "report" {
            pages.push(bench.read("reports/mine/report.md"));
            let html = bench.read("reports/mine/report.html");
            for page in [&pages[pages.len() - 1], &html] {
                for voided in ["optional stopping", "voids", "were added, from"] {
                    assert!(!page.contains(voided), "{command:?}: {page}");
                }
                assert!(page.contains("supported"), "{page}");
            }
        }
    }
    let [first, last] = &pages[..] else { panic!("{} pages", pages.len()) };
    assert!(!first.contains("These verdicts rest"), "{first}");
    assert!(last.contains(CONFIRMED), "{last}");
}
